"""Who is compared with whom, and what each may act on: attributes and scenarios of the fairness study, read from files.

`params/groups.yaml` says how people are told apart, a file in `params/scenarios/` who is privileged and what privileged
and other people can act on. A new assumption is a new file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from torch import Tensor

from lib.base import checks
from lib.preferences.samplers import RankingSampler, permutation_probabilities
from lib.preferences.scores import Preferences
from lib.problem.population import Population

OF = ("refused", "applicants")


@dataclass(frozen=True)
class Attribute:
    """How people are told apart: by where a feature of theirs lies, or (without a feature) by a label drawn at random.

    Arguments:
        labels: From low to high; at least two.
        feature: Which feature tells; None: labels are drawn, independent of everything and each alike.
        cuts: Where the next label begins, in the units of the data; one less than there are labels.
        quantiles: The same as shares of people, in place of `cuts`.
        of: Whose quantiles: "refused" (the people handed over) or "applicants" (the recourse training split).
    Raises: ValueError: too few labels or one twice; cuts that do not fit or do not ascend; quantiles outside of [0, 1].
    """

    name: str
    labels: tuple[str, ...]
    feature: str | None = None
    cuts: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    of: str = "refused"

    def __post_init__(self) -> None:
        checks.known(
            f"people whose quantiles cut the attribute {self.name!r}:", [self.of], OF
        )
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ValueError(
                f"The attribute {self.name!r} has the labels {list(self.labels)}: expected two or more, each once."
            )
        cuts = self.cuts or self.quantiles
        if self.feature is None:
            if cuts:
                raise ValueError(
                    f"The attribute {self.name!r} has cuts but no feature. Name the feature, or leave the cuts out to draw labels."
                )
        elif (
            bool(self.cuts) == bool(self.quantiles)
            or len(cuts) != len(self.labels) - 1
            or list(cuts) != sorted(set(cuts))
        ):
            raise ValueError(
                f"The attribute {self.name!r} has {len(self.labels)} labels, so it needs {len(self.labels) - 1} ascending cuts "
                f"or quantiles (not both), got cuts {list(self.cuts)} and quantiles {list(self.quantiles)}."
            )
        if any(not 0 <= share <= 1 for share in self.quantiles):
            raise ValueError(
                f"The attribute {self.name!r} has quantiles {list(self.quantiles)}: expected shares within [0, 1]."
            )

    def read_off(self, population: Population, x: Tensor) -> np.ndarray:
        """Label of each person, from their standardised features x with shape (N, D), as strings with shape (N,)."""
        column = population.graph.index(self.feature)
        value = population.in_units(x)[:, column].double().numpy()
        cuts = self.cuts
        if self.quantiles:
            people = (
                population.in_units(population.x["recourse/train"])[:, column]
                .double()
                .numpy()
                if self.of == "applicants"
                else value
            )
            cuts = np.quantile(people, self.quantiles)
        return np.array(self.labels)[np.digitize(value, cuts)]


@dataclass(frozen=True)
class Scenario:
    """What people can act on: everyone the same number of features, drawn as for privileged and for other people.

    Arguments:
        n_actionable: How many features each person can act on; None draws the number.
        by: Attribute that says who is privileged; None: nobody is.
        rates: Share of each of its labels that is privileged.
        privileged, others: Permutation distribution of either (`samplers.FAVOURITES`).
    Raises: ValueError: n_actionable is no number of features; a rate is outside of [0, 1].
    Source: section 5.5 and appendix B of arXiv:2604.08030. The paper draws once for each person; `chances` are of all draws.
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
                f"n_actionable is {self.n_actionable!r}: expected how many features each person can act on, or null to draw the number."
            )
        for label, rate in (self.rates or {}).items():
            if (
                isinstance(rate, bool)
                or not isinstance(rate, (int, float))
                or not 0 <= rate <= 1
            ):
                raise ValueError(
                    f"Expected a rate within [0, 1] for each label of {self.by}, got {rate!r} for {label!r}."
                )

    def rate(self, labels: pd.DataFrame) -> np.ndarray:
        """How likely each person is to be privileged, with shape (N,).

        Raises: ValueError: a person has a label that has no rate.
        """
        if self.by is None:
            return np.zeros(len(labels))
        if missing := sorted(set(labels[self.by]) - set(self.rates)):
            raise ValueError(
                f"Expected a rate within [0, 1] for each label of {self.by}, got None for {missing[0]!r}."
            )
        return labels[self.by].map(self.rates).to_numpy(dtype=float)

    def chances(self, features: Sequence[str], labels: pd.DataFrame) -> pd.DataFrame:
        """How likely each person is to be able to act on just these features, over all draws of privilege and of rankings.

        Returns: A row a person, a column for each set that anyone may have (see `sets`); rows sum to 1.
        Raises: ValueError: n_actionable or a distribution does not suit the features; as `rate`.
        """
        for distribution in {self.others, self.privileged} if self.by else {self.others}:
            RankingSampler(features, distribution, self.n_actionable)
        rate = self.rate(labels)
        sizes = (
            range(1, len(features) + 1)
            if self.n_actionable is None
            else [self.n_actionable]
        )
        total = pd.DataFrame(
            0.0, index=range(len(labels)), columns=list(sets(features, sizes))
        )
        for distribution, share in ((self.others, 1 - rate), (self.privileged, rate)):
            if share.any():
                for ranking, probability in zip(
                    *permutation_probabilities(distribution, tuple(features)), strict=True
                ):
                    for size in sizes:
                        total[_name(features, ranking <= size)] += (
                            share * probability / len(sizes)
                        )
        return total.loc[:, (total > 0).any()]


def sets(features: Sequence[str], sizes: Sequence[int]) -> dict[str, Tensor]:
    """All sets of so many features, as masks with shape (K,), by their names ("income, savings")."""
    masks = [
        [name in chosen for name in features]
        for size in sizes
        for chosen in combinations(features, size)
    ]
    return {_name(features, mask): torch.tensor(mask) for mask in masks}


def preferences(
    features: Sequence[str], names: Sequence[str], n_people: int
) -> dict[str, Preferences]:
    """For each of these sets, the preferences of n_people who can all act on just its features."""
    masks = sets(features, range(1, len(features) + 1))
    return {name: Preferences.from_mask(masks[name].expand(n_people, -1)) for name in names}


def read_attributes(path: Path, features: Sequence[str]) -> dict[str, Attribute]:
    """Attributes by name, from a file such as `params/groups.yaml`.

    Raises: ValueError: no such file; an unknown key or feature; what `Attribute` refuses. The message names the file.
    """
    found = {}
    for name, given in _read(path).items():
        try:
            _only(
                given,
                [field.name for field in fields(Attribute) if field.name != "name"],
                f"entry of the attribute {name!r}",
            )
            for key, kind in (
                ("labels", str),
                ("cuts", (int, float)),
                ("quantiles", (int, float)),
            ):
                value = given.get(key, [])
                if not isinstance(value, list) or not all(
                    isinstance(item, kind) and item is not True and item == item
                    for item in value
                ):
                    raise ValueError(
                        f"The attribute {name!r} has {key} {value!r}: expected a list of {'texts' if kind is str else 'numbers'}."
                    )
            lists = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in given.items()
            }
            found[name] = Attribute(name, **({"labels": ()} | lists))
            checks.known(
                f"feature that the attribute {name!r} is read off:",
                [found[name].feature] * (found[name].feature is not None),
                features,
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
    return found


def read_scenario(
    path: Path, attributes: Mapping[str, Attribute], features: Sequence[str]
) -> Scenario:
    """A scenario, called as its file.

    Arguments:
        attributes: That privilege may follow.
        features: Names of the K actionable features.
    Raises: ValueError: no such file; an unknown key, attribute, label or distribution; a label without a rate; a rate outside
        of [0, 1]; a number of features that nobody can have. The message names the file.
    """
    given = _read(path)
    try:
        _only(given, ["n_actionable", "privileged", "distributions"], "entry of a scenario")
        if "n_actionable" not in given:
            raise ValueError(
                f"Nothing is said of n_actionable, how many features each person can act on: 1 to {len(features)}, or null to draw the number."
            )
        privilege, draws = given.get("privileged"), given.get("distributions", {})
        _only(
            draws, ["privileged", "others"] if privilege else ["others"], "kind of people"
        )
        if privilege is None:
            scenario = Scenario(
                path.stem, given["n_actionable"], **({"others": "uniform"} | draws)
            )
        else:
            _only(privilege, ["by", "rates"], "entry of privileged")
            checks.known(
                "attribute that privilege follows:",
                [privilege.get("by")],
                tuple(attributes),
            )
            labels, rates = attributes[privilege["by"]].labels, privilege.get("rates", {})
            _only(rates, labels, f"label of {privilege['by']}")
            scenario = Scenario(
                path.stem,
                given["n_actionable"],
                privilege["by"],
                {label: rates.get(label) for label in labels},
                **draws,
            )
        scenario.chances(
            features, pd.DataFrame({scenario.by: labels} if scenario.by else {})
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    return scenario


def balanced(
    population: Population,
    x: Tensor,
    attributes: Mapping[str, Attribute],
    compared: Sequence[str],
    seed: int,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Rows of x of as many people as make all cells (combinations of compared labels) equally large, and their labels.

    Chance decides who is left out and which label is drawn; of a person's features, only those that `compared` are read
    off have a say.

    Arguments:
        x: Standardised features of N people, with shape (N, D).
        compared: Names of the attributes that make the cells.
    Returns: Row numbers with shape (n,), ascending, and a table with a row a person and a column an attribute.
    Raises: ValueError: a cell has no one in it, or fewer people than the drawn labels need.
    """
    _to_compare(attributes, compared)
    rng = np.random.default_rng(seed)
    told = pd.DataFrame(
        {
            name: attributes[name].read_off(population, x)
            for name in compared
            if attributes[name].feature is not None
        },
        index=range(len(x)),
    )
    drawn = [name for name in compared if name not in told]
    dealt_in_turn = list(product(*(attributes[name].labels for name in drawn)))
    cells = {
        key: np.flatnonzero((told == list(key)).all(axis=1))
        for key in product(*(attributes[name].labels for name in told))
    }
    smallest = min(cells, key=lambda key: len(cells[key]))
    size = len(cells[smallest]) // len(dealt_in_turn)
    if size == 0:
        raise ValueError(
            f"Of {len(x):,} people {len(cells[smallest])} are {' and '.join(smallest) or 'there'}, but one is needed for each of {len(dealt_in_turn)} "
            "cells. Draw more people, or cut the attribute elsewhere."
        )
    dealt = {}
    for rows in cells.values():
        dealt |= dict(
            zip(
                rng.permutation(rows)[: size * len(dealt_in_turn)],
                dealt_in_turn * size,
                strict=True,
            )
        )
    rows = np.array(sorted(dealt))
    labels = told.loc[rows].reset_index(drop=True)
    labels[drawn] = [dealt[row] for row in rows]
    for name, attribute in attributes.items():
        if name not in compared and attribute.feature is not None:
            labels[name] = attribute.read_off(population, x)[rows]
        elif name not in compared:
            labels[name] = rng.choice(attribute.labels, len(rows))
    return rows, labels


def members(
    labels: pd.DataFrame, attributes: Mapping[str, Attribute], compared: Sequence[str]
) -> dict[str, np.ndarray]:
    """Row numbers of the people in each group: by attribute, then by cell ("non-white women", the last attribute first).

    Raises: ValueError: no one is in a group, or two groups have one name.
    """
    _to_compare(attributes, compared)
    every = [label for name in compared for label in attributes[name].labels]
    if twice := [label for label in every if every.count(label) > 1]:
        raise ValueError(
            f"{twice[0]!r} is a label of two attributes: give each label a name of its own."
        )
    groups = {
        label: np.flatnonzero(labels[name] == label)
        for name in compared
        for label in attributes[name].labels
    }
    if len(compared) > 1:
        for cell in product(*(attributes[name].labels for name in compared)):
            groups[" ".join(reversed(cell))] = np.flatnonzero(
                (labels[list(compared)] == list(cell)).all(axis=1)
            )
    if empty := [group for group, rows in groups.items() if len(rows) == 0]:
        raise ValueError(
            f"There is no one in the group {empty[0]!r}, so nothing can be said of it. Draw more people, or cut the attribute elsewhere."
        )
    return groups


def _name(features: Sequence[str], mask: Sequence[bool]) -> str:
    return ", ".join(name for name, is_in in zip(features, mask, strict=True) if is_in)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        there = (
            ", ".join(sorted(other.stem for other in path.parent.glob("*.yaml"))) or "none"
        )
        raise ValueError(
            f"Expected a file {path}, found none. Those in its folder: {there}."
        )
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(given, dict):
        raise ValueError(f"{path} should hold lines `name: value`, it holds {given!r}.")
    return given


def _only(given: Any, allowed: Sequence[str], what: str) -> None:
    """Raise ValueError unless given is a mapping with no other keys than the allowed ones."""
    if not isinstance(given, dict):
        raise ValueError(f"Expected {', '.join(allowed)} with a value each, got {given!r}.")
    checks.known(what, given, allowed)


def _to_compare(attributes: Mapping[str, Attribute], compared: Sequence[str]) -> None:
    checks.known("attribute to compare:", compared, tuple(attributes))
    if not compared or len(set(compared)) < len(compared):
        raise ValueError(
            f"Expected one attribute to compare or more, each once, got {list(compared)}."
        )
