"""Who answers what: preferences drawn in training, drawn or read for the people of a study.

A sampler has one method, draw(people, rng). It gives the
preferences of the people with these row numbers, for instance
range(n). All but `Grouped` only count them: there, everyone's
preferences come from one distribution.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from numbers import Integral
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.method.limits import Limits
from lib.method.population import Population
from lib.method.preferences import Preferences, side_by_side

# the two features that most people of a named distribution put first
# (appendix B of arXiv:2604.08030)
FAVOURITES = {
    "uniform": None,
    "co": ("income", "loan_amount"),
    "rco": ("loan_duration", "savings"),
    "privileged": ("income", "savings"),
    "non_privileged": ("loan_amount", "loan_duration"),
}

# features whose rankings are listed: eight have 40,320
MOST_RANKED = 8


def permutation_probabilities(
    distribution: str, features: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return all K! rankings of the features and how often each occurs.

    In a named distribution with favourites {a, b}, a ranking whose
    first two are a and b has probability 1/6 (four features: there
    are four of them). The other rankings that begin with a or b share
    the remaining third.

    Arguments:
        distribution: "uniform", "co", "rco", "privileged" or
            "non_privileged".
        features: Names of the K actionable features.
    Returns: Rankings with shape (K!, K), of which entry (r, j) is the
        rank of features[j], and their probabilities with shape (K!,).
        Both are read-only, because everyone who asks gets the same
        ones.
    Raises: ValueError: the distribution is unknown or does not suit
        the features; there are more than `MOST_RANKED` features, or
        one is named twice.
    Source: appendix B of arXiv:2604.08030 for the meaning; the
        numbers are reconstructed.

    Example:
        >>> rankings, probabilities = permutation_probabilities("uniform", ("a", "b"))
        >>> rankings.tolist(), probabilities.tolist()
        ([[1, 2], [2, 1]], [0.5, 0.5])
        >>> four = ("loan_amount", "loan_duration", "income", "savings")
        >>> rankings, probabilities = permutation_probabilities("co", four)
        >>> rankings[probabilities > 0.1].tolist()  # income and the amount come first
        [[1, 3, 2, 4], [1, 4, 2, 3], [2, 3, 1, 4], [2, 4, 1, 3]]
    """
    checks.known("permutation distribution", [distribution], tuple(FAVOURITES))
    n_features = len(features)
    if isinstance(features, str) or n_features == 0 or len(set(features)) < n_features:
        raise ValueError(
            f"Expected the names of one feature or more, each once, got {features!r}."
        )
    if n_features > MOST_RANKED:
        raise ValueError(
            f"{n_features} features have {math.factorial(n_features):,} rankings, too many "
            f"to list: rankings are for up to {MOST_RANKED} features. Draw scores instead, "
            "where features may tie (ScoreSampler), or rows of a table of answers "
            "(TableSampler)."
        )
    return _permutation_probabilities(distribution, tuple(features))


@cache
def _permutation_probabilities(
    distribution: str, features: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `permutation_probabilities` does, worked out once."""
    rankings = np.array(list(permutations(range(1, len(features) + 1))))
    favourites = FAVOURITES[distribution]
    if favourites is None:
        probabilities = np.full(len(rankings), 1 / len(rankings))
    else:
        checks.known(
            f"favourite of the distribution {distribution!r}", favourites, features
        )
        if len(features) < 3:
            raise ValueError(
                f"The distribution {distribution!r} prefers two features to others: "
                f"expected at least three, got {len(features)}."
            )
        ranks_of_both = rankings[:, [features.index(name) for name in favourites]]
        has_both = ranks_of_both.max(1) == 2
        has_one = (ranks_of_both.min(1) == 1) & ~has_both
        both, one = 2 / 3 / has_both.sum(), 1 / 3 / has_one.sum()
        probabilities = has_both * both + has_one * one
    for shared in (rankings, probabilities):
        shared.setflags(write=False)
    return rankings, probabilities


People: TypeAlias = Sequence[int] | np.ndarray  # row numbers


class Sampler(Protocol):
    """Anything that draws preferences: what `training.fit` and the studies ask.

    Example:
        >>> class Undemanding:
        ...     def draw(self, people, rng):
        ...         return Preferences(torch.ones(len(people), 4, dtype=torch.long))
        >>> sampler: Sampler = Undemanding()
        >>> sampler.draw(range(2), np.random.default_rng(0)).scores
        tensor([[1, 1, 1, 1],
                [1, 1, 1, 1]])
    """

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw preferences of the people with these row numbers, with scores (N, K).

        Example:
            >>> sampler: Sampler = ScoreSampler.uniform(4, with_impossible=False)
            >>> sampler.draw(range(2), np.random.default_rng(0)).scores.shape
            torch.Size([2, 4])
        """
        ...


@dataclass(frozen=True)
class RankingSampler:
    """Draw rankings with hard constraints.

    A ranking is a permutation of 1..K, and a threshold says from
    which rank on a person "can't".

    Arguments:
        features: Names of the K actionable features, at most eight.
        distribution: Of the permutations; see `rankings`.
        n_actionable: How many features each person may act on (the
            threshold is one more), from 1 to K; None draws it for
            each person, every number from `fewest` to K alike.
        fewest: Features that may be drawn.
    Raises: ValueError: the distribution does not suit the features,
        or no one could have so many.
    Source: section 4.1 and appendix B of arXiv:2604.08030.

    Example:
        >>> sampler = RankingSampler(("income", "savings", "debt"), n_actionable=2)
        >>> sampler.draw(range(3), np.random.default_rng(0)).scores  # 4 means "can't"
        tensor([[2, 4, 1],
                [1, 4, 2],
                [1, 2, 4]])
    """

    features: Sequence[str]
    distribution: str = "uniform"
    n_actionable: int | None = None
    fewest: int = 1

    def __post_init__(self) -> None:
        permutation_probabilities(self.distribution, self.features)
        for name in ("n_actionable", "fewest"):
            number = getattr(self, name)
            if name == "n_actionable" and number is None:
                continue
            is_number = isinstance(number, Integral) and number is not True
            if not is_number or not 1 <= number <= len(self.features):
                raise ValueError(
                    f"{name} is {number}: expected 1 to {len(self.features)} features. "
                    "With none at all there is nothing to recommend; n_actionable=None "
                    "draws a number for each person."
                )

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw a ranking for each person, with scores of shape (N, K).

        Example:
            >>> sampler = RankingSampler(("income", "savings", "debt"), n_actionable=3)
            >>> sampler.draw(range(100), np.random.default_rng(0)).scores.sum(1).unique()
            tensor([6])
        """
        n_features = len(self.features)
        rankings, probabilities = permutation_probabilities(
            self.distribution, self.features
        )
        steps = probabilities.cumsum()[:-1]
        ranks = rankings[np.searchsorted(steps, rng.random(len(people)), side="right")]
        allowed: int | np.ndarray
        if self.n_actionable is None:
            allowed = rng.integers(self.fewest, n_features + 1, len(people))[:, None]
        else:
            allowed = self.n_actionable
        return Preferences(
            torch.from_numpy(np.where(ranks <= allowed, ranks, n_features + 1))
        )


@dataclass(frozen=True)
class ScoreSampler:
    """Draw Likert scores, each feature on its own, so that features may tie.

    The scores of a person who could do nothing at all are drawn
    again.

    Arguments:
        probabilities: Of the scores 1 to C + 1, the last being
            "can't", for any feature; with 0 at the end nobody is
            held back by a hard constraint.
        n_features: K; 0: as many as categories, C.
    Raises: ValueError: not probabilities, or "can't" is certain.
    Source: section 4.1 of arXiv:2604.08030; drawing again is ours.

    Example:
        >>> sampler = ScoreSampler((0.5, 0.0, 0.5))  # two features: easy, or impossible
        >>> sampler.draw(range(3), np.random.default_rng(0)).scores
        tensor([[3, 1],
                [1, 1],
                [3, 1]])
    """

    probabilities: tuple[float, ...]
    n_features: int = 0

    def __post_init__(self) -> None:
        if self.n_features == 0:
            object.__setattr__(self, "n_features", len(self.probabilities) - 1)
        if len(self.probabilities) < 2 or not _are_shares(self.probabilities):
            raise ValueError(
                'Scores need one probability for each of 1 to C and one for "can\'t", 0 or '
                f"more and summing to 1, got {self.probabilities!r}."
            )
        if self.probabilities[-1] == 1:
            raise ValueError(
                'Every feature would be "can\'t" for everyone: give some other score a '
                "probability."
            )

    @classmethod
    def uniform(
        cls, n_features: int, with_impossible: bool, n_categories: int = 0
    ) -> "ScoreSampler":
        """Return a sampler that gives every score the same probability.

        Arguments:
            n_features: K.
            with_impossible: Of the scores 1 to C + 1; if not, of 1
                to C (soft preferences only).
            n_categories: C; 0: as many as features.
        Raises: ValueError: there is no feature.

        Example:
            >>> ScoreSampler.uniform(4, with_impossible=False).probabilities
            (0.25, 0.25, 0.25, 0.25, 0.0)
        """
        checks.positive(n_features=n_features)
        n_scores = (n_categories or n_features) + with_impossible
        shares = (1 / n_scores,) * n_scores + (0.0,) * (not with_impossible)
        return cls(shares, n_features)

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw scores for each person, with shape (N, K).

        Example:
            >>> sampler = ScoreSampler.uniform(2, with_impossible=True)
            >>> drawn = sampler.draw(range(100), np.random.default_rng(0))
            >>> drawn.scores.unique(dim=0).tolist()  # all but [3, 3], "can't" twice
            [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3], [3, 1], [3, 2]]
        """
        most = len(self.probabilities) - 1
        scores = np.full((len(people), self.n_features), most + 1)
        while (stuck := (scores > most).all(1)).any():
            shape = stuck.sum(), self.n_features
            scores[stuck] = 1 + rng.choice(most + 1, shape, p=self.probabilities)
        return Preferences(torch.from_numpy(scores), most)


@dataclass(frozen=True)
class TableSampler:
    """Draw rows of a table of answers, each alike, with replacement.

    From a table of one row everyone gets the same answer.

    Arguments:
        answers: With scores (R, K), for instance as `scores.read`
            finds them in a file.
    Raises: ValueError: the table is empty, or scores have another
        number of axes.

    Example:
        >>> sampler = TableSampler(Preferences(torch.tensor([[1, 2], [3, 1]])))
        >>> sampler.draw(range(3), np.random.default_rng(0)).scores
        tensor([[3, 1],
                [3, 1],
                [3, 1]])
    """

    answers: Preferences

    def __post_init__(self) -> None:
        shape = tuple(self.answers.scores.shape)
        if len(shape) != 2 or len(self.answers) == 0:
            raise ValueError(
                f"Expected a table of answers of one person or more, with scores of shape "
                f"(R, K), got shape {shape}."
            )

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw a row of the table for each person, with scores of shape (N, K).

        Example:
            >>> sampler = TableSampler(Preferences(torch.tensor([[1, 2]])))
            >>> sampler.draw(range(2), np.random.default_rng(0)).scores
            tensor([[1, 2],
                    [1, 2]])
        """
        return self.answers[rng.integers(0, len(self.answers), len(people))]


@dataclass(frozen=True)
class HybridSampler:
    """Draw each person's preferences from one of several samplers.

    For instance from a file's answers for some, and at random for
    the others.

    Arguments:
        samplers, shares: The samplers, and how large a share of
            people each serves on average.
    Raises: ValueError: there is not one share for each sampler, or
        they are no shares.

    Example:
        >>> easy = TableSampler(Preferences(torch.tensor([[1, 1]])))
        >>> hard = TableSampler(Preferences(torch.tensor([[2, 2]])))
        >>> drawn = HybridSampler((easy, hard), (0.9, 0.1)).draw(
        ...     range(1000), np.random.default_rng(0)
        ... )
        >>> round((drawn.scores == 2).double().mean().item(), 1)
        0.1
    """

    samplers: tuple[Sampler, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.samplers) != len(self.shares) or not _are_shares(self.shares):
            raise ValueError(
                f"Expected a share for each of the {len(self.samplers)} samplers, 0 or "
                f"more and summing to 1, got {self.shares!r}."
            )

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw for each person from the sampler that serves them, with scores (N, K).

        Raises: ValueError: the samplers draw scores of different
            shapes.

        Example:
            >>> same = TableSampler(Preferences(torch.tensor([[1, 3]])))
            >>> sampler = HybridSampler((same,), (1.0,))
            >>> sampler.draw(range(2), np.random.default_rng(0)).scores
            tensor([[1, 3],
                    [1, 3]])
        """
        which = torch.from_numpy(rng.choice(len(self.samplers), len(people), p=self.shares))
        return _by_group(self.samplers, which, people, rng)


@dataclass(frozen=True)
class WithLimits:
    """Draw directions and limits beside what another sampler draws.

    Of each feature, with probability `share`, a person says one of
    six things, each as often: only up, only down, at most so much
    more, at most so much less, at least, at most. How much is drawn
    evenly from the feature's range. Of categories they say which may
    be chosen, any set as often.

    Arguments:
        sampler: Who draws the scores.
        population: Whose features are limited.
        share: From 0 to 1.
    Raises: ValueError: the share is out of range.
    Example:
        >>> population = loan.population(100, 100, 100)
        >>> sampler = WithLimits(RankingSampler(population.actionable), population)
        >>> drawn = sampler.draw(range(3), np.random.default_rng(0))
        >>> drawn.limits.fall.shape
        torch.Size([3, 4])
    """

    sampler: Sampler
    population: Population
    share: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share is {self.share!r}, expected a number from 0 to 1.")

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw preferences with limits, as `Sampler.draw`."""
        drawn, population = self.sampler.draw(people, rng), self.population
        columns = population.actionable_index
        ends = population.as_recorded(torch.stack([population.low, population.high]))
        low, high = ends[:, columns].numpy()
        size = (len(people), len(columns))
        sets = [2 ** len(population.categories.get(n, ())) for n in population.actionable]
        has_limits = np.array(sets) == 1
        is_said = rng.random(size) < self.share
        said = np.where(is_said & has_limits, rng.integers(0, 6, size), -1)
        much = rng.random(size)
        values = [
            ("fall", 0 * much),
            ("rise", 0 * much),
            ("rise", much * (high - low)),
            ("fall", much * (high - low)),
            ("low", low + much * (high - low)),
            ("high", low + much * (high - low)),
        ]
        limits = Limits.nothing(*size)
        for what, (name, value) in enumerate(values):
            at = torch.from_numpy(said == what)
            getattr(limits, name)[at] = torch.from_numpy(value)[at]
        for k in np.flatnonzero(~has_limits):
            among = rng.integers(1, sets[k], len(people)).astype(float)
            limits.among[:, k] = torch.from_numpy(np.where(is_said[:, k], among, np.nan))
        return replace(drawn, limits=limits)


@dataclass(frozen=True)
class Grouped:
    """Draw for each person from the distribution of their group.

    The groups belong to one list of people: entry i of `group` is
    the group of row i of the people that are handed to `draw`. In
    training these are the rows of `problem.refused("train")` (not
    those of all applicants), in a study the rows of the people it
    asks about, for instance `problem.refused("test")`. So every
    split needs a sampler of its own. A draw for fewer or more
    people than there are groups is refused, because then the groups
    are those of other people.

    Two groups with one such sampler for training people and another
    for test people make the paper's four distributions.

    Arguments:
        samplers: Of each group.
        group: Number of each person's group, with shape (N,).
    Raises: ValueError: a group's number has no sampler.
    Source: appendix B of arXiv:2604.08030.

    Example:
        >>> easy = TableSampler(Preferences(torch.tensor([[1, 1]])))
        >>> hard = TableSampler(Preferences(torch.tensor([[2, 2]])))
        >>> x = torch.tensor([[-0.3], [1.2], [0.8]])  # all refused people of a split
        >>> sampler = Grouped((easy, hard), (x[:, 0] > 0).long())
        >>> sampler.draw(range(len(x)), np.random.default_rng(0)).scores
        tensor([[1, 1],
                [2, 2],
                [2, 2]])
    """

    samplers: tuple[Sampler, ...]
    group: Tensor

    def __post_init__(self) -> None:
        if len(self.samplers) == 0:
            raise ValueError("Expected a sampler for each group, got none.")
        numbers = self.group.unique().tolist()
        if (
            self.group.ndim != 1
            or self.group.is_floating_point()
            or not set(numbers) <= set(range(len(self.samplers)))
        ):
            raise ValueError(
                f"group must hold whole numbers from 0 to {len(self.samplers) - 1}, one a "
                f"person, got {self.group.dtype} with shape {tuple(self.group.shape)} and "
                f"values {numbers[:5]}."
            )

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw for each person from the sampler of their group, with scores (N, K).

        Arguments:
            people: Row numbers of as many people as have a group,
                in any order.
        Raises: ValueError: other row numbers than the groups cover,
            fewer or more of them; the samplers draw scores of
            different shapes.

        Example:
            >>> easy = TableSampler(Preferences(torch.tensor([[1, 1]])))
            >>> hard = TableSampler(Preferences(torch.tensor([[2, 2]])))
            >>> sampler = Grouped((easy, hard), torch.tensor([0, 1]))
            >>> sampler.draw([1, 0], np.random.default_rng(0)).scores
            tensor([[2, 2],
                    [1, 1]])
        """
        rows = torch.as_tensor(np.asarray(people))
        n_groups = len(self.group)
        if len(rows) != n_groups:
            raise ValueError(
                f"The groups are of {n_groups:,} people, but preferences of "
                f"{len(rows):,} are to be drawn, so these are other people. Make one "
                "sampler for each split, from the people who are drawn for: in training, "
                'all rows of problem.refused("train").'
            )
        unknown = rows[(rows < 0) | (rows >= n_groups)]
        if len(unknown):
            raise ValueError(
                f"There is no group for person {int(unknown[0])}: the groups are of "
                f"{n_groups} people, counted from 0."
            )
        return _by_group(self.samplers, self.group[rows.long()].long(), people, rng)


def _are_shares(values: Sequence[float]) -> bool:
    """Return whether these are shares: 0 or more each, and 1 in all."""
    shares = np.asarray(values, dtype=float)
    return bool(
        shares.ndim == 1 and (shares >= 0).all() and abs(shares.sum() - 1) < 1e-8
    )  # as numpy asks


def _by_group(
    samplers: Sequence[Sampler],
    which: Tensor,
    people: People,
    rng: np.random.Generator,
) -> Preferences:
    """Draw everyone's preferences from every sampler, and keep each person's own.

    Arguments:
        which: Number of each person's sampler, with shape (N,).
    """
    drawn = side_by_side([sampler.draw(people, rng) for sampler in samplers])
    return drawn.member((which, torch.arange(len(people))))
