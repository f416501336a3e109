"""Rankings of the actionable features, and how often each occurs in a population.

A ranking is a permutation of 1..K: 1 is the feature that a person
finds easiest to act on.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import permutations

import numpy as np

from lib.base import checks

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
