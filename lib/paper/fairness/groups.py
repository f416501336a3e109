"""Who is compared with whom: attributes of people and the groups that they make.

`params/groups.yaml` says how people are told apart. A new attribute
is a new entry there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from lib import checks, io
from lib.method.data import Population

OF = ("refused", "applicants")


@dataclass(frozen=True)
class Attribute:
    """How people are told apart: by where a feature lies, or by a label drawn at random.

    Arguments:
        name: Of the attribute.
        labels: From low to high; at least two.
        feature: Which feature tells; None: labels are drawn,
            independent of everything and each alike.
        cuts: Where the next label begins, in the units of the data;
            one less than there are labels.
        quantiles: The same as shares of people, in place of `cuts`.
        of: Whose quantiles: "refused" (the people handed over) or
            "applicants" (the recourse training split).
    Raises: ValueError: too few labels or one twice; cuts that do
        not fit or do not ascend; quantiles outside of [0, 1].
    """

    name: str
    labels: tuple[str, ...]
    feature: str | None = None
    cuts: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    of: str = "refused"

    def __post_init__(self) -> None:
        checks.one_of(
            f"people whose quantiles cut the attribute {self.name!r}:", [self.of], OF
        )
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ValueError(
                f"The attribute {self.name!r} has the labels {list(self.labels)}: expected "
                "two or more, each once."
            )
        cuts = list(self.cuts or self.quantiles)
        n_cuts = 0 if self.feature is None else len(self.labels) - 1
        is_both = bool(self.cuts and self.quantiles)
        if (
            is_both
            or len(cuts) != n_cuts
            or cuts != sorted(set(cuts))
            or not np.isfinite(cuts).all()
        ):
            raise ValueError(
                f"The attribute {self.name!r} has {len(self.labels)} labels, so it needs "
                f"{n_cuts} ascending cuts or quantiles (not both; none where labels are "
                f"drawn), got cuts {list(self.cuts)}, quantiles {list(self.quantiles)}."
            )
        if any(not 0 <= share <= 1 for share in self.quantiles):
            raise ValueError(
                f"The attribute {self.name!r} has quantiles {list(self.quantiles)}: "
                "expected shares within [0, 1]."
            )

    def read_off(self, population: Population, x: Tensor) -> np.ndarray:
        """Return the label of each person, as strings with shape (N,).

        Arguments:
            population: Whose units the cuts are in.
            x: Standardised features of N people, with shape (N, D).
        Raises: ValueError: labels of this attribute are drawn; the
            population has no such feature; x is not of people of
            this population.
        """
        if self.feature is None:
            raise ValueError(
                f"The attribute {self.name!r} is read off no feature, its labels are "
                "drawn: `balanced` draws them."
            )
        checks.people("x", x, population.features)
        column = population.graph.index(self.feature)
        value = _in_units(population, x, column)
        cuts: Sequence[float] | np.ndarray = self.cuts
        if self.quantiles:
            people = value
            if self.of == "applicants":
                people = _in_units(population, population.x["recourse/train"], column)
            cuts = np.quantile(people, self.quantiles)
        return np.array(self.labels)[np.digitize(value, cuts)]


def read_attributes(path: Path, features: Sequence[str]) -> dict[str, Attribute]:
    """Return attributes by name, from a file such as `params/groups.yaml`.

    Arguments:
        features: Names of the features that an attribute may be
            read off.
    Raises: ValueError: no such file; an unknown key or feature;
        what `Attribute` refuses. The message names the file.
    """
    attributes = {}
    for name, given in io.load_yaml(path).items():
        try:
            attributes[name] = _attribute(name, given, features)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
    return attributes


def balanced(
    population: Population,
    x: Tensor,
    attributes: Mapping[str, Attribute],
    compared: Sequence[str],
    seed: int,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return rows of x that make all cells equally large, and these people's labels.

    A cell is a combination of compared labels. Chance decides who
    is left out and which label is drawn; of a person's features,
    only those that `compared` are read off have a say.

    Arguments:
        x: Standardised features of N people, with shape (N, D).
        attributes: All attributes that people get a label of, by
            name.
        compared: Names of the attributes that make the cells.
        seed: Of who is left out and of the labels drawn.
    Returns: Row numbers with shape (n,), ascending, and a table
        with a row for each person and a column for each attribute.
    Raises: ValueError: an attribute is unknown; a cell has no one
        in it, or fewer people than the drawn labels need.
    """
    _to_compare(attributes, compared)
    checks.people("x", x, population.features)
    rng = np.random.default_rng(seed)
    read_off = pd.DataFrame(
        {
            name: attributes[name].read_off(population, x)
            for name in compared
            if attributes[name].feature is not None
        },
        index=range(len(x)),
    )
    drawn = [name for name in compared if name not in read_off]
    cells = _cells(attributes, drawn)
    dealt = _deal(_people_by_cell(attributes, read_off), cells, len(x), rng)
    rows = np.array(sorted(dealt))
    labels = read_off.loc[rows].reset_index(drop=True)
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
    """Return the row numbers of the people in each group: by attribute, then by cell.

    A cell's name begins with the label of the last attribute
    ("non-white women").

    Arguments:
        labels: A row for each person, a column for each attribute.
        attributes: By name.
        compared: Names of the attributes that make the groups.
    Raises: ValueError: an attribute is unknown, no one is in a
        group, or two groups have one name.

    Example:
        >>> attributes = {
        ...     "gender": Attribute("gender", ("women", "men")),
        ...     "race": Attribute("race", ("white", "non-white")),
        ... }
        >>> labels = pd.DataFrame({"gender": ["women", "men", "women"]})
        >>> members(labels, attributes, ["gender"])
        {'women': array([0, 2]), 'men': array([1])}
    """
    _to_compare(attributes, compared)
    checks.one_of("attribute that people have labels of:", compared, list(labels))
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
        for cell, rows in _people_by_cell(attributes, labels[list(compared)]).items():
            groups[" ".join(reversed(cell))] = rows
    if empty := [group for group, rows in groups.items() if len(rows) == 0]:
        raise ValueError(
            f"There is no one in the group {empty[0]!r}, so nothing can be said of it. "
            "Draw more people, or cut the attribute elsewhere."
        )
    return groups


def _in_units(population: Population, x: Tensor, column: int) -> np.ndarray:
    """Return a feature of standardised people in the units of the data, with shape (N,)."""
    return population.inverse_transform(x)[:, column].double().numpy()


def _attribute(name: str, given: Any, features: Sequence[str]) -> Attribute:
    """Return the attribute that an entry of a file describes."""
    keys = [field.name for field in fields(Attribute) if field.name != "name"]
    checks.keys(given, keys, f"entry of the attribute {name!r}")
    lists = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.items()
    }
    attribute = Attribute(name, **({"labels": ()} | lists))
    if attribute.feature is not None:
        what = f"feature that the attribute {name!r} is read off:"
        checks.one_of(what, [attribute.feature], features)
    return attribute


def _cells(
    attributes: Mapping[str, Attribute], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return all combinations of the labels of these attributes."""
    return list(product(*(attributes[name].labels for name in names)))


def _people_by_cell(
    attributes: Mapping[str, Attribute], labels: pd.DataFrame
) -> dict[tuple[str, ...], np.ndarray]:
    """Return the row numbers of the people in each combination of labels."""
    return {
        cell: np.flatnonzero((labels == list(cell)).all(axis=1))
        for cell in _cells(attributes, list(labels))
    }


def _deal(
    people: Mapping[tuple[str, ...], np.ndarray],
    cells: Sequence[tuple[str, ...]],
    n_people: int,
    rng: np.random.Generator,
) -> dict[int, tuple[str, ...]]:
    """Return the labels drawn for the people who stay, by row number.

    Arguments:
        people: Row numbers of the people in each combination of
            labels read off.
        cells: Combinations of labels to be drawn: as many people
            get each.
        n_people: How many people there are, for the message.
    Raises: ValueError: there are too few people for one in each
        cell.
    """
    smallest = min(people, key=lambda key: len(people[key]))
    size = len(people[smallest]) // len(cells)
    if size == 0:
        raise ValueError(
            f"Of {n_people:,} people {len(people[smallest])} are "
            f"{' and '.join(smallest) or 'there'}, but one is needed for each of "
            f"{len(cells)} cells. Draw more people, or cut the attribute elsewhere."
        )
    dealt: dict[int, tuple[str, ...]] = {}
    for rows in people.values():
        stay = rng.permutation(rows)[: size * len(cells)]
        dealt |= dict(zip(stay, list(cells) * size, strict=True))
    return dealt


def _to_compare(attributes: Mapping[str, Attribute], compared: Sequence[str]) -> None:
    """Raise ValueError unless known attributes are compared, one or more, each once."""
    checks.one_of("attribute to compare:", compared, tuple(attributes))
    if not compared or len(set(compared)) < len(compared):
        raise ValueError(
            f"Expected one attribute to compare or more, each once, got {list(compared)}."
        )
