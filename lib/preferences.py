"""What a person can do and how hard they find it: scores, and the masks, weights and priors derived from them.

Scores are whole numbers with shape (*, N, K), one for each of the K globally actionable features: 1 is easiest,
K the hardest that can still be done, K + 1 means "I can't" (a hard constraint).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from lib import checks

# the two features that most people of a named distribution put first (appendix B of arXiv:2604.08030)
FAVOURITES = {
    "uniform": None,
    "co": ("income", "loan_amount"),
    "rco": ("loan_duration", "savings"),
    "privileged": ("income", "savings"),
    "non_privileged": ("loan_amount", "loan_duration"),
}


@dataclass(frozen=True)
class Preferences:
    """Scores of N people, and what follows from them.

    Arguments:
        scores: Whole numbers from 1 to K + 1, with shape (*, N, K); see the module.
    Raises: ValueError: a score is out of range, or someone may act on nothing at all.
    Source: section 4 of arXiv:2604.08030.
    """

    scores: Tensor

    def __post_init__(self) -> None:
        if self.scores.ndim < 2 or self.scores.is_floating_point() or self.scores.dtype == torch.bool:
            raise ValueError(
                f"scores must be whole numbers with shape (N, K), got {self.scores.dtype} with shape "
                f"{tuple(self.scores.shape)}. To give a mask, use Preferences.from_mask."
            )
        n_features = self.scores.shape[-1]
        if ((self.scores < 1) | (self.scores > n_features + 1)).any():
            raise ValueError(
                f"scores must lie between 1 and {n_features} ({n_features + 1} for a feature a person can't act on), "
                f"got {int(self.scores.min())} to {int(self.scores.max())}."
            )
        stuck = ~self.is_actionable.any(-1)
        if stuck.any():
            first = tuple(stuck.nonzero()[0].tolist())
            raise ValueError(
                f"{int(stuck.sum())} people may act on nothing at all (the first is row {first[-1]}), so nothing can be "
                "recommended to them. Give at least one feature a score of K or less, or leave these people out."
            )

    @classmethod
    def from_mask(cls, is_actionable: Tensor) -> "Preferences":
        """Preferences of people who only say what they can do; all of that is equally easy. Mask: (N, K) of bool."""
        if is_actionable.dtype != torch.bool or is_actionable.ndim < 2:
            raise ValueError(
                f"A mask must be of bool with shape (N, K), got {is_actionable.dtype} with shape {tuple(is_actionable.shape)}."
            )
        n_features = is_actionable.shape[-1]
        return cls(torch.where(is_actionable, 1, n_features + 1))

    @property
    def is_actionable(self) -> Tensor:
        """A_u: which features each person may act on, with shape (*, N, K)."""
        return self.scores <= self.scores.shape[-1]


@dataclass(frozen=True)
class Profile:
    r"""How a score becomes a weight in the cost and a prior of acting.

    .. math:: h(s) = \Big(\frac{s - 1}{K - 1}\Big)^\gamma, \quad
              w(s) = 1 + (w_{max} - 1)\, h(s), \quad p(s) = p_{max} - (p_{max} - p_{min})\, h(s)

    Arguments:
        gamma: Shape of h: 1 linear, above 1 convex, below 1 concave; None is constant, h = 0.
        w_max: Weight of the hardest feature that can still be done, >= 1.
        p_min, p_max: Prior probability of acting on the hardest and on the easiest feature.
    Source: section 4.2 of arXiv:2604.08030; the formulas are reconstructed.
    """

    gamma: float | None = None
    w_max: float = 1.0
    p_min: float = 0.5
    p_max: float = 0.5

    def __post_init__(self) -> None:
        if self.gamma is not None:
            checks.positive(gamma=self.gamma)
        if not self.w_max >= 1:
            raise ValueError(f"w_max must be at least 1, the weight of the easiest feature, got {self.w_max!r}.")
        if not 0 < self.p_min <= self.p_max < 1:
            raise ValueError(
                f"Priors must satisfy 0 < p_min <= p_max < 1 (0 and 1 would make the mask's KL term infinite), "
                f"got p_min {self.p_min!r} and p_max {self.p_max!r}."
            )

    def hardness(self, preferences: Preferences) -> Tensor:
        """h(s) in [0, 1], with shape (*, N, K); 0 for features a person can't act on (no one asks how hard)."""
        scores = preferences.scores
        if self.gamma is None:
            return torch.zeros(scores.shape)
        share = (scores - 1).float() / max(scores.shape[-1] - 1, 1)
        return torch.where(preferences.is_actionable, share.pow(self.gamma), 0.0)

    def weight(self, preferences: Preferences) -> Tensor:
        """Actionability weights w(s) >= 1, with shape (*, N, K)."""
        return 1 + (self.w_max - 1) * self.hardness(preferences)

    def prior(self, preferences: Preferences) -> Tensor:
        """Actionability priors p(s), with shape (*, N, K)."""
        return self.p_max - (self.p_max - self.p_min) * self.hardness(preferences)


def permutation_probabilities(distribution: str, features: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """All K! rankings of the features and how often each occurs, with shapes (K!, K) and (K!,).

    In a named distribution with favourites {a, b}, a ranking whose first two are a and b has probability 1/6
    (four features: there are four of them); the other rankings that begin with a or b share the remaining third.

    Arguments:
        distribution: "uniform", "co", "rco", "privileged" or "non_privileged".
        features: Names of the K actionable features; entry (r, j) of the first result is the rank of features[j].
    Source: appendix B of arXiv:2604.08030 for the meaning; the numbers are reconstructed.
    """
    checks.known("permutation distribution", [distribution], tuple(FAVOURITES))
    rankings = np.array(list(permutations(range(1, len(features) + 1))))
    favourites = FAVOURITES[distribution]
    if favourites is None:
        return rankings, np.full(len(rankings), 1 / len(rankings))
    checks.known(f"favourite of the distribution {distribution!r}", favourites, features)
    ranks_of_both = rankings[:, [features.index(name) for name in favourites]]
    has_both = ranks_of_both.max(1) == 2
    has_one = (ranks_of_both.min(1) == 1) & ~has_both
    return rankings, has_both * (2 / 3 / has_both.sum()) + has_one * (1 / 3 / has_one.sum())


@dataclass(frozen=True)
class RankingSampler:
    """Draws rankings with hard constraints: a permutation of 1..K, and a threshold from which on a rank means "can't".

    Arguments:
        features: Names of the K actionable features.
        distribution: Of the permutations; see `permutation_probabilities`.
        n_actionable: How many features each person may act on (the threshold is one more), from 1 to K;
            None draws it for each person, every number alike.
    Source: section 4.1 and appendix B of arXiv:2604.08030.
    """

    features: tuple[str, ...]
    distribution: str = "uniform"
    n_actionable: int | None = None

    def __post_init__(self) -> None:
        permutation_probabilities(self.distribution, self.features)
        if self.n_actionable is not None and not 1 <= self.n_actionable <= len(self.features):
            raise ValueError(
                f"n_actionable is {self.n_actionable}: expected 1 to {len(self.features)} features, or None for a "
                "random number. With none at all there is nothing to recommend."
            )

    def draw(self, n_people: int, rng: np.random.Generator) -> Preferences:
        """Preferences of n_people, with scores of shape (N, K)."""
        n_features = len(self.features)
        rankings, probabilities = permutation_probabilities(self.distribution, self.features)
        ranks = rankings[np.searchsorted(probabilities.cumsum()[:-1], rng.random(n_people), side="right")]
        if self.n_actionable is None:
            allowed = rng.integers(1, n_features + 1, n_people)[:, None]
        else:
            allowed = self.n_actionable
        return Preferences(torch.from_numpy(np.where(ranks <= allowed, ranks, n_features + 1)))
