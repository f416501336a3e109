"""Who answers what: preferences drawn for training people or the people of a study.

A sampler draws everybody's preferences from one distribution, and
knows the profile that they carry.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Protocol, TypeAlias

import numpy as np
import torch

from lib import checks
from lib.method.data import Population
from lib.method.limits import Limits
from lib.method.preferences import LINEAR, Preferences, Profile

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

People: TypeAlias = Sequence[int] | np.ndarray  # row indices


def permutation_probabilities(
    distribution: str, features: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return all K! rankings of the features and how often each occurs.

    In a named distribution with favourites {a, b}, the rankings whose
    first two are a and b have probability two thirds together. The
    other rankings that begin with a or b share the remaining third.

    Arguments:
        distribution: A key of `FAVOURITES`.
        features: Names of the K actionable features; with favourites,
            at least three.
    Returns: Rankings with shape (K!, K), of which entry (r, j) is the
        rank of features[j], and their probabilities with shape (K!,).
    Raises: ValueError: the distribution is unknown or does not suit
        the features, or there are more than `MOST_RANKED` features.
    Source: appendix B of arXiv:2604.08030 for the meaning; the
        numbers are reconstructed.
    """
    checks.one_of("permutation distribution", [distribution], tuple(FAVOURITES))
    n_features = len(features)
    if n_features > MOST_RANKED:
        raise ValueError(
            f"{n_features} features have {math.factorial(n_features):,} rankings: expected "
            f"{MOST_RANKED} features at most. Draw scores (ScoreSampler), or rows of a "
            "table of answers (TableSampler), instead."
        )
    rankings = np.array(list(permutations(range(1, n_features + 1))))
    favourites = FAVOURITES[distribution]
    if favourites is None:
        return rankings, np.full(len(rankings), 1 / len(rankings))
    checks.one_of(f"favourite of {distribution!r}", favourites, features)
    favourite_ranks = rankings[:, [features.index(name) for name in favourites]]
    has_both = favourite_ranks.max(1) == 2
    has_one = (favourite_ranks.min(1) == 1) & ~has_both
    both, one = 2 / 3 / has_both.sum(), 1 / 3 / has_one.sum()
    return rankings, has_both * both + has_one * one


class Sampler(Protocol):
    """Anything that draws preferences, for `icarma.fit` and the studies."""

    @property
    def profile(self) -> Profile:
        """The profile of the preferences that it draws."""
        ...

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw preferences of the people with these row indices, with scores (N, K)."""
        ...


@dataclass(frozen=True)
class RankingSampler:
    """Draw rankings with hard constraints.

    A ranking is a permutation of 1..K, and a threshold says from
    which rank on a person "can't".

    Arguments:
        features: Names of the K actionable features, at most eight.
        distribution: Of the permutations; see
            `permutation_probabilities`.
        n_actionable: How many features each person may act on (the
            threshold is one more), from 1 to K; None draws it for
            each person, every number from `min_actionable` to K alike.
        min_actionable: The fewest features that may be drawn.
        profile: Of the preferences.
    Raises: ValueError: the distribution does not suit the features,
        or no one could have so many.
    Source: section 4.1 and appendix B of arXiv:2604.08030.
    Example:
        >>> sampler = RankingSampler(("income", "savings", "debt"), n_actionable=2)
        >>> sampler.draw(range(2), np.random.default_rng(0)).scores  # 4 means "can't"
        tensor([[2, 4, 1],
                [1, 4, 2]])
    """

    features: Sequence[str]
    distribution: str = "uniform"
    n_actionable: int | None = None
    min_actionable: int = 1
    profile: Profile = LINEAR

    def __post_init__(self) -> None:
        _ = self.rankings  # raises where there are none
        object.__setattr__(self, "features", tuple(self.features))
        for number in (self.n_actionable, self.min_actionable):
            if number is not None and not 1 <= number <= len(self.features):
                raise ValueError(
                    f"Expected that people can act on 1 to {len(self.features)} features, "
                    f"got {number}. n_actionable=None draws a number for each person."
                )

    @cached_property
    def rankings(self) -> tuple[np.ndarray, np.ndarray]:
        """All rankings with their probabilities; see `permutation_probabilities`."""
        return permutation_probabilities(self.distribution, self.features)

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw a ranking for each person, with scores of shape (N, K)."""
        n_features = len(self.features)
        rankings, probabilities = self.rankings
        bounds = probabilities.cumsum()[:-1]
        ranks = rankings[np.searchsorted(bounds, rng.random(len(people)), side="right")]
        n_actionable = self.n_actionable or rng.integers(
            self.min_actionable, n_features + 1, (len(people), 1)
        )
        scores = np.where(ranks <= n_actionable, ranks, n_features + 1)
        return Preferences(torch.from_numpy(scores), profile=self.profile)


@dataclass(frozen=True)
class ScoreSampler:
    """Draw Likert scores of features independently, so that they may tie.

    Every score has the same probability. The scores of a person who
    could do nothing at all are drawn again.

    Arguments:
        n_features: K.
        with_impossible: Whether scores are 1 to C + 1, the last being
            "can't"; if not, 1 to C.
        n_categories: C; 0: as many as features.
        profile: Of the preferences.
    Source: section 4.1 of arXiv:2604.08030; drawing again is ours.
    Example:
        >>> sampler = ScoreSampler(2, with_impossible=True)  # 3 means "can't"
        >>> sampler.draw(range(2), np.random.default_rng(0)).scores
        tensor([[2, 1],
                [1, 1]])
    """

    n_features: int
    with_impossible: bool
    n_categories: int = 0
    profile: Profile = LINEAR

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw scores for each person, with shape (N, K)."""
        n_categories = self.n_categories or self.n_features
        n_scores = n_categories + self.with_impossible
        scores = np.full((len(people), self.n_features), n_categories + 1)
        while (is_stuck := (scores > n_categories).all(1)).any():
            shape = is_stuck.sum(), self.n_features
            # with p, or numpy draws other numbers
            scores[is_stuck] = 1 + rng.choice(n_scores, shape, p=[1 / n_scores] * n_scores)
        return Preferences(torch.from_numpy(scores), n_categories, profile=self.profile)


@dataclass(frozen=True, eq=False)
class TableSampler:
    """Draw rows of a table of answers, each alike, with replacement.

    Arguments:
        answers: With scores (R, K), for instance from
            `preferences.from_frame`. From one row everyone gets the
            same answer.
    """

    answers: Preferences

    @property
    def profile(self) -> Profile:
        """The profile of the answers."""
        return self.answers.profile

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw a row of the table for each person, with scores of shape (N, K)."""
        return self.answers[rng.integers(0, len(self.answers), len(people))]


@dataclass(frozen=True, eq=False)
class WithLimits:
    """Draw directions and limits beside what another sampler draws.

    What the other sampler draws of limits is replaced. Each feature of
    a person has, with probability `share`, one of six limits, each as
    often: only up, only down, at most so much more, at
    most so much less, at least, at most. How much is drawn evenly from
    the feature's range. Of categories any set may be chosen from, each
    as often.

    Arguments:
        sampler: Draws the scores.
        population: Whose features are limited.
        share: From 0 to 1.
    Raises: ValueError: the share is out of range.
    """

    sampler: Sampler
    population: Population
    share: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share is {self.share!r}, expected a number from 0 to 1.")

    @property
    def profile(self) -> Profile:
        """The profile of the other sampler."""
        return self.sampler.profile

    def draw(self, people: People, rng: np.random.Generator) -> Preferences:
        """Draw preferences with limits, as `Sampler.draw`."""
        population = self.population
        preferences = self.sampler.draw(people, rng)
        ends = population.to_records(torch.stack([population.low, population.high]))
        low, high = ends[:, population.actionable_index].numpy()
        n_categories = np.array(
            [len(population.categories.get(name, ())) for name in population.actionable]
        )
        shape = (len(people), len(n_categories))
        is_limited = rng.random(shape) < self.share
        kind = rng.integers(0, 6, shape)
        amount = rng.random(shape) * (high - low)
        kind = np.where(is_limited & (n_categories == 0), kind, -1)
        numbers = {
            "low": np.where(kind == 4, low + amount, np.nan),
            "high": np.where(kind == 5, low + amount, np.nan),
            "max_decrease": np.select([kind == 0, kind == 3], [0.0, amount], np.nan),
            "max_increase": np.select([kind == 1, kind == 2], [0.0, amount], np.nan),
            "step": np.full(shape, np.nan),
        }
        mask = np.zeros((*shape, n_categories.max()), dtype=bool)
        for k in np.flatnonzero(n_categories):
            # the bits of a number above zero are a set that is not empty
            subset = rng.integers(1, 2 ** n_categories[k], len(people))
            is_chosen = subset[:, None] >> np.arange(mask.shape[-1]) & 1 == 1
            mask[:, k] = is_chosen & is_limited[:, [k]]
        limits = Limits(
            **{name: torch.from_numpy(values) for name, values in numbers.items()},
            allowed_categories=torch.from_numpy(mask),
        )
        return replace(preferences, limits=limits)
