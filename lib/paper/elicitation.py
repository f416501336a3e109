"""How much an answer tells a solver: the same people, asked in several ways.

Each person knows how hard every feature is for them, as a number from
0 to 1. Nobody else does. A way of asking turns these numbers into an
answer, and the solver has only the answer. It then makes the cost
least by weights that it expects from the answer, and is judged by
what the person knows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.paper import readings

N_ASKED = 20_000  # other people, from whom it is learnt what an answer means
SHIFT = 0.5  # of a person's ruler: up to so much on either side

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _independent(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw each feature's hardness by itself, evenly from 0 to 1."""
    return rng.random(shape)


def _two_levels(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw each feature as not hard at all or as hard as can be."""
    return rng.integers(0, 2, shape).astype(float)


def _order_only(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Give everybody the same hardnesses, evenly spread, in an order of their own."""
    even = np.linspace(0, 1, shape[1])
    return rng.permuted(np.broadcast_to(even, shape), axis=1)


# what the people who are asked may be like
KINDS: dict[str, Draw] = {
    "independent": _independent,
    "two levels": _two_levels,
    "order only": _order_only,
}


def draw(kind: str, n_people: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Return how hard each feature is for each person, from 0 to 1, with shape (N, K).

    Arguments:
        kind: A key of `KINDS`. "independent": each feature by itself,
            evenly from 0 to 1. "two levels": each 0 or 1, as by a
            coin. "order only": 0, 1 and numbers evenly between them,
            in any order alike.
        n_people, n_features: N and K.
        rng: Of the draw.
    Raises: ValueError: the kind is unknown, or there is nobody.
    """
    checks.one_of("kind of people", [kind], tuple(KINDS))
    checks.positive_int(n_people=n_people, n_features=n_features)
    return KINDS[kind](rng, (n_people, n_features))


@dataclass(frozen=True)
class Way:
    """A way of asking how hard features are.

    Arguments:
        n_levels: Of a score: levels evenly spread from 0 to 1. 1: not
            asked at all. None: a ranking is asked for instead, without
            ties; features that are equally hard get any order.
        own_ruler: Each person calls features harder, or easier, than
            others with the same hardness would: by a shift of their
            own of up to `SHIFT`. A ranking does not notice it.
    Raises: ValueError: there is no level.
    Example:
        >>> known = np.array([[0.1, 0.2, 0.9, 0.6]])
        >>> rng = np.random.default_rng(0)
        >>> Way(None).answer(known, rng), Way(2).answer(known, rng)
        (array([[1, 2, 4, 3]]), array([[1, 1, 2, 2]]))
    """

    n_levels: int | None
    own_ruler: bool = False

    def __post_init__(self) -> None:
        if self.n_levels is not None:
            checks.positive_int(n_levels=self.n_levels)

    def answer(self, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return ranks or scores from 1 (easiest), with shape (N, K).

        Arguments:
            known: How hard features are, as `draw` gives it, with
                shape (N, K).
            rng: Of the order of ties, and of people's own rulers.
        """
        if self.n_levels is None:
            any_order = rng.random(known.shape)
            return 1 + np.lexsort((any_order, known)).argsort(-1)
        shift = rng.uniform(-SHIFT, SHIFT, (len(known), 1)) if self.own_ruler else 0.0
        level = np.floor(self.n_levels * np.clip(known + shift, 0, 1)).astype(int)
        return 1 + np.minimum(level, self.n_levels - 1)

    def bits(self, n_features: int) -> float:
        """Return the most that an answer can tell, in bits.

        Arguments:
            n_features: K, how many features are asked about.
        Example:
            >>> [round(Way(n).bits(4), 1) for n in (None, 2, 4)]
            [4.6, 4.0, 8.0]
        """
        if self.n_levels is None:
            return math.log2(math.factorial(n_features))
        return n_features * math.log2(self.n_levels)

    def expected(
        self, kind: str, answers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the hardness to expect behind each answer, with shape (N, K).

        It is the mean over `N_ASKED` other people of the same kind:
        of all their features that were answered so. Where costs are a
        sum over weights, no other reading of a single feature's
        answer gives a lower cost on average.

        Arguments:
            kind: Of the people, a key of `KINDS`.
            answers: Ranks or scores with shape (N, K).
            rng: Of the other people.
        Example:
            >>> answers = np.array([[1, 2, 4, 3]])
            >>> rng = np.random.default_rng(0)
            >>> Way(None).expected("independent", answers, rng).round(1)
            array([[0.2, 0.4, 0.8, 0.6]])
        """
        others = draw(kind, N_ASKED, answers.shape[1], rng)
        theirs = self.answer(others, rng).ravel()
        n_answered = np.bincount(theirs)
        sums = np.bincount(theirs, others.ravel())
        means = sums / np.maximum(n_answered, 1)
        return means[answers]


# how people may be asked; the four levels are those of the paper's scores
WAYS = {
    "nothing": Way(1),
    "ranking": Way(None),
    "score, 2 levels": Way(2),
    "score, 4 levels": Way(4),
    "score, 2 levels, own ruler": Way(2, own_ruler=True),
    "score, 4 levels, own ruler": Way(4, own_ruler=True),
}


@dataclass(frozen=True)
class Weighted(Preferences):
    """Preferences of people whose weights are given, whatever their scores.

    Arguments:
        given: Weights >= 1 with shape (N, K).
    Raises: ValueError: they have another shape than the scores.
    """

    given: Tensor = field(default_factory=lambda: torch.ones(1, 1))

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.shape("given", self.given, self.scores.shape)

    @property
    def weight(self) -> Tensor:
        """Return the weights that were given, with shape (N, K)."""
        return self.given


def weights_of(hardness: np.ndarray, w_max: float) -> Tensor:
    """Return the weights 1 + (w_max - 1) hardness, with shape (N, K).

    Arguments:
        hardness: From 0 to 1, with shape (N, K).
        w_max: Weight of what is as hard as can be.
    Example:
        >>> weights_of(np.array([[0.0, 0.5, 1.0]]), 7.0)
        tensor([[1., 4., 7.]])
    """
    return torch.tensor(1 + (w_max - 1) * hardness, dtype=torch.float32)


def cheapest(problem: Problem, x: Tensor, weights: Tensor, n_values: int) -> Recommendation:
    """Return what the exact search finds for people with these weights.

    Everything can be done by everybody.

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        weights: Theirs, with shape (N, K).
        n_values: Grid values a feature.
    """
    all_easy = torch.ones(weights.shape, dtype=torch.long)
    preferences = Weighted(all_easy, given=weights)
    return readings.oracle(problem, n_values=n_values).recommend(x, preferences)
