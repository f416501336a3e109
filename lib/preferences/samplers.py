"""Who answers what: preferences drawn while networks train, drawn or read for the people of a study.

A sampler has one method, draw(people, rng), that gives the preferences of the people with these row numbers, for
instance range(n). All but `Grouped` only count them: there, everyone's preferences come from one distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.preferences.scores import Preferences

# the two features that most people of a named distribution put first (appendix B of arXiv:2604.08030)
FAVOURITES = {
    "uniform": None,
    "co": ("income", "loan_amount"),
    "rco": ("loan_duration", "savings"),
    "privileged": ("income", "savings"),
    "non_privileged": ("loan_amount", "loan_duration"),
}


@cache
def permutation_probabilities(
    distribution: str, features: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
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
    rankings.setflags(write=False)  # everyone who asks gets the same ones
    favourites = FAVOURITES[distribution]
    if favourites is None:
        return rankings, np.full(len(rankings), 1 / len(rankings))
    checks.known(f"favourite of the distribution {distribution!r}", favourites, features)
    if len(features) < 3:
        raise ValueError(
            f"The distribution {distribution!r} prefers two features to others: expected at least three, got {len(features)}."
        )
    ranks_of_both = rankings[:, [features.index(name) for name in favourites]]
    has_both = ranks_of_both.max(1) == 2
    has_one = (ranks_of_both.min(1) == 1) & ~has_both
    return rankings, has_both * (2 / 3 / has_both.sum()) + has_one * (1 / 3 / has_one.sum())


class Sampler(Protocol):
    """What `icarma.fit` and the studies draw from."""

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        """Preferences of the people with these row numbers, with scores of shape (N, K)."""
        ...


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
        permutation_probabilities(self.distribution, tuple(self.features))
        if self.n_actionable is not None and not 1 <= self.n_actionable <= len(
            self.features
        ):
            raise ValueError(
                f"n_actionable is {self.n_actionable}: expected 1 to {len(self.features)} features, or None for a "
                "random number. With none at all there is nothing to recommend."
            )

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        n_features = len(self.features)
        rankings, probabilities = permutation_probabilities(
            self.distribution, tuple(self.features)
        )
        ranks = rankings[
            np.searchsorted(
                probabilities.cumsum()[:-1], rng.random(len(people)), side="right"
            )
        ]
        if self.n_actionable is None:
            allowed = rng.integers(1, n_features + 1, len(people))[:, None]
        else:
            allowed = self.n_actionable
        return Preferences(
            torch.from_numpy(np.where(ranks <= allowed, ranks, n_features + 1))
        )


@dataclass(frozen=True)
class ScoreSampler:
    """Draws Likert scores, each feature on its own, so that features may tie. Who can do nothing at all is drawn again.

    Arguments:
        probabilities: Of the scores 1 to K + 1, the last being "can't", for any feature; with 0 at the end nobody is
            held back by a hard constraint.
    Raises: ValueError: not probabilities, or "can't" is certain.
    Source: section 4.1 of arXiv:2604.08030; drawing again is ours.
    """

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        probabilities = np.asarray(self.probabilities)
        if (
            probabilities.ndim != 1
            or len(probabilities) < 2
            or (probabilities < 0).any()
            or not np.isclose(probabilities.sum(), 1)
        ):
            raise ValueError(
                f'Scores need one probability for each of 1 to K and one for "can\'t", 0 or more and summing to 1, '
                f"got {self.probabilities!r}."
            )
        if probabilities[-1] == 1:
            raise ValueError(
                'Every feature would be "can\'t" for everyone: give some score of K or less a probability.'
            )

    @classmethod
    def uniform(cls, n_features: int, with_impossible: bool) -> "ScoreSampler":
        """Every score alike: of 1 to K + 1, or (soft preferences only) of 1 to K."""
        n_scores = n_features + with_impossible
        return cls((1 / n_scores,) * n_scores + (0.0,) * (not with_impossible))

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        n_features = len(self.probabilities) - 1
        scores = np.full((len(people), n_features), n_features + 1)
        while (stuck := (scores > n_features).all(1)).any():
            scores[stuck] = 1 + rng.choice(
                n_features + 1, (stuck.sum(), n_features), p=self.probabilities
            )
        return Preferences(torch.from_numpy(scores))


@dataclass(frozen=True)
class TableSampler:
    """Draws rows of a table of answers, each alike, with replacement. A table of one row: the same answer for everyone.

    Arguments:
        answers: With scores (R, K), for instance as `preferences.read` finds them in a file.
    """

    answers: Preferences

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        return Preferences(
            self.answers.scores[rng.integers(0, len(self.answers.scores), len(people))]
        )


@dataclass(frozen=True)
class HybridSampler:
    """Draws each person's preferences from one of several samplers, for instance a file's answers and random ones.

    Arguments:
        samplers, shares: The samplers, and how large a share of people each serves on average.
    """

    samplers: tuple[Sampler, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if (
            len(self.samplers) != len(self.shares)
            or min(self.shares, default=-1) < 0
            or not np.isclose(sum(self.shares), 1)
        ):
            raise ValueError(
                f"Expected a share for each of the {len(self.samplers)} samplers, 0 or more and summing to 1, got {self.shares!r}."
            )

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        which = torch.from_numpy(rng.choice(len(self.samplers), len(people), p=self.shares))
        return _by_group(self.samplers, which, people, rng)


@dataclass(frozen=True)
class Grouped:
    """Draws for each person from the distribution of their group.

    Two groups with one such sampler for training people and another for test people make the paper's four distributions.

    Arguments:
        samplers: Of each group.
        group: Number of each person's group, with shape (N,); row i is the person with row number i.
    Raises: ValueError: a group's number has no sampler; in `draw`: a row number that the groups do not cover.
    Source: appendix B of arXiv:2604.08030.
    """

    samplers: tuple[Sampler, ...]
    group: Tensor

    def __post_init__(self) -> None:
        numbers = self.group.unique().tolist()
        if (
            self.group.ndim != 1
            or self.group.is_floating_point()
            or not set(numbers) <= set(range(len(self.samplers)))
        ):
            raise ValueError(
                f"group must hold whole numbers from 0 to {len(self.samplers) - 1}, one a person, got {self.group.dtype} "
                f"with shape {tuple(self.group.shape)} and values {numbers[:5]}."
            )

    def draw(self, people: Sequence[int], rng: np.random.Generator) -> Preferences:
        rows = torch.as_tensor(np.asarray(people))
        if len(rows) and rows.max() >= len(self.group):
            raise ValueError(
                f"There is no group for person {int(rows.max())}: the groups are of {len(self.group)} people. "
                "Make one sampler for each split."
            )
        return _by_group(self.samplers, self.group[rows].long(), people, rng)


def _by_group(
    samplers: Sequence[Sampler],
    which: Tensor,
    people: Sequence[int],
    rng: np.random.Generator,
) -> Preferences:
    """Everyone's draw from every sampler, of which each person keeps the one with their number, which (N,)."""
    drawn = torch.stack([sampler.draw(people, rng).scores for sampler in samplers])
    return Preferences(drawn[which, torch.arange(len(people))])
