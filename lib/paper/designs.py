"""The designs of the studies: who may do what, and likes what, in each setting of a table.

A setting is a row label of one of the paper's tables, for instance
"random" in table 1 or "soft, linear" in table 2. A design gives the
preferences of the same people in every setting of a table, drawn
under one seed. They carry the constant profile, unless another is
asked for.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler, Sampler
from lib.paper import readings
from lib.paper.stacks import soft_samplers

# table 1: how many of the four features a person may act on; None draws it for each
CONSTRAINTS = {"all (4)": 4, "3": 3, "2": 2, "1": 1, "random": None}

# table 5: the population that leans to some features, and how its rankings are drawn
BIASES = {"causal order aligned": "co", "reverse causal order aligned": "rco"}

# table 6: the same, with a population that leans to none
DISTRIBUTIONS = {
    "uniform random": "uniform",
    "causal order": "co",
    "reverse causal order": "rco",
}

# tables 1 and 2 for Give Me Some Credit: how many features a person may act on, as for
# `RankingSampler`, and the profile that is trained for the setting; what thresholds the
# paper's random row is drawn from is lost, so there are two readings of it
TRANSFER: dict[int, dict[str, tuple[dict[str, Any], str]]] = {
    1: {k: ({"n_actionable": n}, "constant") for k, n in CONSTRAINTS.items()}
    | {"random (2 to 4)": ({"min_actionable": 2}, "constant")},
    2: {
        "soft, linear": ({"n_actionable": 4}, "linear"),
        "hard (3) + soft, constant": ({"n_actionable": 3}, "constant"),
        "hard (3) + soft, linear": ({"n_actionable": 3}, "linear"),
    },
}


def hard_preferences(
    problem: Problem,
    n_people: int,
    seed: int,
    distribution: str = "uniform",
    profile: Profile = CONSTANT,
) -> dict[str, Preferences]:
    """Draw the preferences of n_people in each setting of table 1.

    Everyone keeps one ranking in all settings. It is cut at another
    threshold in each, so that whoever may act on two features may act
    on the same two when three are left.

    Arguments:
        problem: Of which the actionable features are read.
        n_people: How many people.
        seed: Of the draw.
        distribution: Of the rankings, a value of `DISTRIBUTIONS`.
        profile: Of the preferences.
    Returns: For each setting of `CONSTRAINTS`, scores with shape
        (n_people, K).
    Raises: ValueError: the distribution is unknown.
    Source: table 1 of arXiv:2604.08030.
    Example:
        >>> problem.population.actionable
        ('loan_amount', 'loan_duration', 'income', 'savings')
        >>> drawn = hard_preferences(problem, n_people=2, seed=0)
        >>> drawn["all (4)"].scores
        tensor([[3, 2, 4, 1],
                [2, 1, 3, 4]])
        >>> drawn["2"].scores
        tensor([[5, 2, 5, 1],
                [2, 1, 5, 5]])
    """
    features = tuple(problem.population.actionable)
    samplers = {
        setting: RankingSampler(features, distribution, n_actionable, profile=profile)
        for setting, n_actionable in CONSTRAINTS.items()
    }
    return _draw(samplers, n_people, seed)


def soft_preferences(
    problem: Problem,
    elicitation: str,
    n_people: int,
    seed: int,
    profile: Profile = CONSTANT,
) -> dict[str, Preferences]:
    """Draw the preferences of n_people in the two settings of table 2 or 3.

    With rankings, everyone has the same ranking in both settings, and
    in the mixed one some of it is out of reach. Scores are drawn
    anew. `Preferences.with_profile` gives the same under another
    profile.

    Arguments:
        problem: Of which the actionable features are read.
        elicitation: "ranking" for table 2, "score" for table 3.
        n_people: How many people.
        seed: Of the draw.
        profile: Of the preferences.
    Returns: For each setting of `stacks.soft_samplers`, scores with
        shape (n_people, K).
    Raises: ValueError: the elicitation is unknown.
    Source: tables 2 and 3 of arXiv:2604.08030.
    """
    samplers = soft_samplers(problem.population.actionable, elicitation, profile)
    return _draw(samplers, n_people, seed)


def biased_preferences(
    problem: Problem, n_people: int, seed: int
) -> dict[str, Preferences]:
    """Draw the preferences of n_people in each setting of table 5.

    The settings are those of table 1, for two populations that lean
    to some features.

    Arguments:
        problem: Of which the actionable features are read.
        n_people: How many people.
        seed: Of the draw.
    Returns: For each setting, for instance "causal order aligned, 2",
        scores with shape (n_people, K).
    Source: table 5 of arXiv:2604.08030.
    """
    return {
        f"{bias}, {setting}": preferences
        for bias, distribution in BIASES.items()
        for setting, preferences in hard_preferences(
            problem, n_people, seed, distribution
        ).items()
    }


def transfer_preferences(
    problem: Problem, n_people: int, seed: int
) -> dict[str, Preferences]:
    """Draw the preferences of n_people in the settings of `TRANSFER`, tables 1 and 2.

    Everyone keeps one ranking in all settings. The preferences carry
    the profile that is trained for the setting.

    Arguments:
        problem: Of which the actionable features, four of them, are
            read.
        n_people: How many people.
        seed: Of the draw.
    Returns: For each setting, scores with shape (n_people, K).
    Source: tables 1 and 2 of arXiv:2604.08030.
    """
    features = tuple(problem.population.actionable)
    samplers = {
        setting: RankingSampler(features, **how_many, profile=readings.profile(name))
        for settings in TRANSFER.values()
        for setting, (how_many, name) in settings.items()
    }
    return _draw(samplers, n_people, seed)


def _draw(
    samplers: Mapping[str, Sampler], n_people: int, seed: int
) -> dict[str, Preferences]:
    """Draw everyone's preferences in each setting, from a stream of the same seed."""
    return {
        setting: sampler.draw(range(n_people), np.random.default_rng(seed))
        for setting, sampler in samplers.items()
    }
