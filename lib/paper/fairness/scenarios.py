"""What each person can act on, by scenarios read from files.

A file in `params/scenarios/` says who is privileged, and what
privileged and other people can act on. A new assumption is a new
file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, io
from lib.method.preferences import Preferences
from lib.method.samplers import RankingSampler, permutation_probabilities
from lib.paper.fairness.groups import Attribute


@dataclass(frozen=True)
class Scenario:
    """What people can act on: everyone the same number of features, drawn by privilege.

    Arguments:
        name: Of the scenario.
        n_actionable: How many features each person can act on; None
            draws the number.
        by: Attribute that says who is privileged; None: nobody is.
        rates: Share of each of its labels that is privileged.
        privileged, others: Permutation distribution of either
            (`samplers.FAVOURITES`).
    Raises: ValueError: n_actionable is no number of features; there
        is an attribute without rates, or the other way round; a rate
        is outside of [0, 1].
    Source: section 5.5 and appendix B of arXiv:2604.08030. The paper
        draws once for each person; `chances` are of all draws.
    """

    name: str
    n_actionable: int | None
    by: str | None = None
    rates: Mapping[str, float] | None = None
    privileged: str = "privileged"
    others: str = "non_privileged"

    def __post_init__(self) -> None:
        if type(self.n_actionable) not in (int, type(None)):
            raise ValueError(
                f"n_actionable is {self.n_actionable!r}: expected how many features each "
                "person can act on, or null to draw the number."
            )
        if bool(self.by) != bool(self.rates):
            raise ValueError(
                f"The scenario {self.name!r} has by {self.by!r} and rates {self.rates!r}: "
                "expected an attribute and, for each of its labels, the share that is "
                "privileged. Leave both out if nobody is privileged."
            )
        for label, rate in (self.rates or {}).items():
            is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
            if not is_number or not 0 <= rate <= 1:
                raise _no_rate(self.by, rate, label)

    def rate(self, labels: pd.DataFrame) -> np.ndarray:
        """Return how likely each person is to be privileged, with shape (N,).

        Arguments:
            labels: A row for each person, a column for each
                attribute.
        Raises: ValueError: a person has no label, or one that has no
            rate.
        """
        if self.by is None or self.rates is None:
            return np.zeros(len(labels))
        checks.one_of("attribute that people have labels of:", [self.by], list(labels))
        if missing := sorted(set(labels[self.by]) - set(self.rates), key=str):
            raise _no_rate(self.by, None, missing[0])
        return labels[self.by].map(self.rates).to_numpy(dtype=float)

    def chances(self, features: Sequence[str], labels: pd.DataFrame) -> pd.DataFrame:
        """Return how likely each person is to be able to act on just these features.

        The chances are over all draws of privilege and of rankings.

        Arguments:
            features: Names of the K actionable features.
            labels: A row for each person, a column for each
                attribute.
        Returns: A row for each person, a column for each set that
            anyone may have (see `sets`); rows sum to 1.
        Raises: ValueError: n_actionable or a distribution does not
            suit the features; as `rate`.

        Example:
            >>> features = ("loan_amount", "loan_duration", "income", "savings")
            >>> scenario = Scenario("mine", 1, "race", {"white": 1.0, "non-white": 0.0})
            >>> labels = pd.DataFrame({"race": ["white", "non-white"]})
            >>> scenario.chances(features, labels).round(2)
               loan_amount  loan_duration  income  savings
            0          0.0            0.0     0.5      0.5
            1          0.5            0.5     0.0      0.0
        """
        drawn_from = [self.others, self.privileged] if self.by else [self.others]
        for distribution in drawn_from:
            RankingSampler(features, distribution, self.n_actionable)
        rate = self.rate(labels)
        sizes: Sequence[int] = range(1, len(features) + 1)
        if self.n_actionable is not None:
            sizes = [self.n_actionable]
        total = pd.DataFrame(
            0.0, index=range(len(labels)), columns=list(sets(features, sizes))
        )
        for distribution, share in ((self.others, 1 - rate), (self.privileged, rate)):
            if not share.any():
                continue
            every = permutation_probabilities(distribution, features)
            for ranking, probability in zip(*every, strict=True):
                for size in sizes:
                    name = _name(features, ranking <= size)
                    total[name] += share * probability / len(sizes)
        return total.loc[:, (total > 0).any()]


def sets(features: Sequence[str], sizes: Sequence[int]) -> dict[str, Tensor]:
    """Return all sets of so many features, as masks with shape (K,), by their names.

    Example:
        >>> for name, mask in sets(("income", "savings"), [1, 2]).items():
        ...     print(name, mask.tolist())
        income [True, False]
        savings [False, True]
        income, savings [True, True]
    """
    masks = [
        [name in chosen for name in features]
        for size in sizes
        for chosen in combinations(features, size)
    ]
    return {_name(features, mask): torch.tensor(mask) for mask in masks}


def preferences_by_set(
    features: Sequence[str], names: Sequence[str], n_people: int
) -> dict[str, Preferences]:
    """Return for each set preferences of people who can act on just its features.

    Arguments:
        features: Names of the K actionable features.
        names: Of the sets, as `sets` names them.
        n_people: How many people; all are alike.
    Raises: ValueError: there is no set of that name.
    """
    masks = sets(features, range(1, len(features) + 1))
    checks.one_of("set of features", names, tuple(masks))
    return {name: Preferences.from_mask(masks[name].expand(n_people, -1)) for name in names}


def read_scenario(
    path: Path, attributes: Mapping[str, Attribute], features: Sequence[str]
) -> Scenario:
    """Return the scenario in a file; it is called as the file is.

    Arguments:
        attributes: That privilege may follow, by name.
        features: Names of the K actionable features.
    Raises: ValueError: no such file; an unknown key, attribute, label
        or distribution; a label without a rate; a rate outside of [0,
        1]; a number of features that nobody can have. The message
        names the file.
    """
    given = io.load_yaml(path)
    try:
        scenario = _scenario(path.stem, given, attributes, features)
        labels = {scenario.by: attributes[scenario.by].labels} if scenario.by else {}
        scenario.chances(features, pd.DataFrame(labels))  # finds what does not suit
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    return scenario


def _scenario(
    name: str,
    given: Mapping[str, Any],
    attributes: Mapping[str, Attribute],
    features: Sequence[str],
) -> Scenario:
    """Return the scenario that a file's entries describe."""
    checks.keys(
        given, ["n_actionable", "privileged", "distributions"], "entry of a scenario"
    )
    if "n_actionable" not in given:
        raise ValueError(
            "Nothing is said of n_actionable, how many features each person can act on: "
            f"1 to {len(features)}, or null to draw the number."
        )
    privilege, draws = given.get("privileged"), given.get("distributions", {})
    kinds = ["privileged", "others"] if privilege else ["others"]
    checks.keys(draws, kinds, "kind of people")
    if privilege is None:
        return Scenario(name, given["n_actionable"], **({"others": "uniform"} | draws))
    checks.keys(privilege, ["by", "rates"], "entry of privileged")
    by, rates = privilege.get("by"), privilege.get("rates", {})
    checks.one_of("attribute that privilege follows:", [by], tuple(attributes))
    labels = attributes[by].labels
    checks.keys(rates, labels, f"label of {by}")
    every = {label: rates.get(label) for label in labels}
    return Scenario(name, given["n_actionable"], by, every, **draws)


def _no_rate(by: str | None, rate: object, label: str) -> ValueError:
    return ValueError(
        f"Expected a rate within [0, 1] for each label of {by}, got {rate!r} for {label!r}."
    )


def _name(features: Sequence[str], mask: Sequence[bool] | np.ndarray) -> str:
    """Return the name of a set of features, for instance "income, savings"."""
    return ", ".join(name for name, is_in in zip(features, mask, strict=True) if is_in)
