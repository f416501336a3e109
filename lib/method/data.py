"""Who applies: features in standard units, splits, kinds, categories; from a table too.

A table holds values as people have them: numbers, and categories under
their names. Inside, a category is a code, a whole number; only
`values` and `Population.to_frame` translate between the two.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import networkx as nx
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method.graph import Graph
from lib.method.limits import Categories, Limits
from lib.method.scm import SCM

FOR_RECOURSE = {"train": 0.5, "validation": 0.25, "test": 0.25}
FOR_FITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
USES = ("classifier", "flow", "recourse")
KINDS = ("actionable", "mutable", "immutable")
MIN_PEOPLE = 20  # people that fill three splits
MAX_CATEGORIES = 30
MAX_IQR = 1e6  # interquartile ranges from the median; real tables reach half of that
MIN_TOGETHER = 10  # people with both of two categories, if these were independent
CLOSE = 1e-9  # to a correlation of 1, as rounding leaves it
SPREAD = 0.2  # standard deviations over which an atom is spread
FEW = 10  # people of a class, or with another value than the rest
# often codes of a gap: 77, 88, 97, 98, 99, 777, ... of either sign, and -7, -8, -9
_CODES = [int("9" * n + last) for n in range(1, 6) for last in "789"]
_CODES += [int(digit * n) for n in range(2, 7) for digit in "78"]
SENTINELS = [*_CODES, *(-code for code in _CODES), -7, -8, -9]
NUMBER = re.compile(r"[-+$€£\s]*[.,]?\d+(?:[.,'\s]\d+)*(?:e[-+]?\d+)?[%$€£\s]*", re.I)
Pairs: TypeAlias = Iterable[tuple[str, str]]
Edges: TypeAlias = (
    Graph | nx.DiGraph | Mapping[str, Sequence[str]] | pd.DataFrame | Pairs | None
)
T = TypeVar("T")


@dataclass(frozen=True)
class Discretisation:
    """Map features to the nearest that a person can have: some whole, all in a range.

    A gradient goes straight through the rounding. Beyond the range it
    is zero.

    Arguments:
        is_whole: Which features are whole numbers, with shape (D,).
        low, high: Ends of each feature's range, in the units of the
            data, with shape (D,).

    Example:
        >>> seen = np.array([[0.0, 0.0], [9.0, 1.0]])
        >>> discretisation = Discretisation.of(seen, np.array([True, False]))
        >>> discretisation(torch.tensor([[3.7, 0.3], [12.0, -1.0]]))
        tensor([[4.0000, 0.3000],
                [9.0000, 0.0000]])
    """

    is_whole: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, seen: np.ndarray, is_whole: np.ndarray) -> "Discretisation":
        """Return the map whose range is that of the people seen, with shape (N, D)."""
        low, high = torch.from_numpy(seen.min(0)), torch.from_numpy(seen.max(0))
        return cls(torch.from_numpy(is_whole), low, high)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the nearest possible features (*, D), in the units of the data."""
        rounded = x.detach().round() + (x - x.detach())
        nearest = torch.where(self.is_whole, rounded, x)
        return nearest.clamp(self.low.to(x), self.high.to(x)) + 0.0  # -0 becomes 0


@dataclass(frozen=True)
class Population:
    """Hold applicants with D features, in standard deviations from the mean.

    Mean and standard deviation are those of the recourse training
    split. Most populations are made by `from_frame` (a table),
    `from_scm` (a model that people are drawn from) or `from_units`
    (splits that are there already).

    Arguments:
        name: What the population is called in tables.
        kinds: Of each feature: "actionable" (a person may act on it),
            "mutable" (may only move as a consequence) or "immutable".
        graph: The causal graph over these features, in the same
            order.
        mean, std: The scaler, in the units of the data, with shape
            (D,).
        x: Standardised features of each split ("classifier/train",
            "flow/validation", "recourse/test", ...), with shape (N,
            D).
        y: Whether the decision should be positive (the loan was paid
            back), for each split, with shape (N,).
        discretisation: From features in the units of the data to the
            nearest that a person can have, for instance whole numbers
            of credit lines; None: every value is possible.
        truth: The true SCM, in standardised units, where it is known.
        people: What the people of each split are called, where that
            is known: the row labels of their table.
        has_units: Whether people know the units of the data, as years
            or euros; if not, `report` shows a value by its rank.
        limits: Between what values anybody may set the K actionable
            features who does not state others, with shape (K,).
        categories: Of features with categories: the names of codes 0,
            1, ...
    Raises: ValueError: kinds and graph are of other features; no
        feature is actionable, or an action would move an immutable
        one; a split is empty, has NaN, or labels that do not fit.
    """

    name: str
    kinds: Mapping[str, str]
    graph: Graph
    mean: Tensor
    std: Tensor
    x: Mapping[str, Tensor]
    y: Mapping[str, Tensor]
    discretisation: Discretisation | None = None
    truth: SCM | None = None
    people: Mapping[str, pd.Index] = field(default_factory=dict)
    has_units: bool = True
    limits: Limits | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.one_of("kind of feature", self.kinds.values(), KINDS)
        if self.features != self.graph.features:
            raise ValueError(
                f"The kinds name {', '.join(self.kinds)}; the graph names "
                f"{', '.join(self.graph.features)}. Expected the same in one order."
            )
        if not self.actionable:
            raise ValueError(
                "No feature is actionable, so nothing can be recommended. Give one the "
                "kind 'actionable'."
            )
        for j in self.graph.descendants_of(self.actionable_index):
            name = self.features[j]
            if self.kinds[name] == "immutable":
                raise ValueError(
                    f"{name} is immutable, but an action would move one of its causes, "
                    f"{', '.join(self.graph.parents[name])}. Call {name} mutable, or leave "
                    "out that edge."
                )
        for split_name, x in self.x.items():
            checks.people(f"split {split_name!r}", x, self.features)
            checks.not_empty(f"Split {split_name!r}", x)
        checks.one_of("split with labels:", self.y, tuple(self.x))
        for split_name, y in self.y.items():
            checks.shape(f"y of split {split_name!r}", y, (len(self.x[split_name]),))

    @classmethod
    def from_units(
        cls,
        name: str,
        kinds: Mapping[str, str],
        graph: Graph,
        x: Mapping[str, Tensor],
        y: Mapping[str, Tensor],
        scaler: tuple[Tensor, Tensor] | None = None,
        **others: Any,
    ) -> "Population":
        """Return a population from splits in the units of the data; fit its scaler.

        Arguments:
            x: As for a population, but in the units of the data,
                float64.
            scaler: Mean and standard deviation of other people, whose
                models are used for these; None: those of these
                people.
            others: As for a population.
        Raises: ValueError: as for a population; a feature is the same
            for everyone.

        Example:
            >>> x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
            >>> population = Population.from_units(
            ...     "two people", {"income": "actionable"}, Graph({"income": ()}),
            ...     {"recourse/train": x}, {"recourse/train": torch.tensor([False, True])},
            ... )
            >>> population.mean, population.x["recourse/train"]
            (tensor([2.], dtype=torch.float64), tensor([[-1.],
                    [ 1.]]))
        """
        train = x["recourse/train"]
        checks.not_empty("Split 'recourse/train'", train)
        _check_not_constant(list(kinds), train.numpy())
        mean, std = scaler or (train.mean(0), torch.from_numpy(train.numpy().std(0)))
        standardised = {
            split_name: ((people - mean) / std).float() for split_name, people in x.items()
        }
        return cls(name, kinds, graph, mean, std, standardised, y, **others)

    @classmethod
    def from_scm(
        cls,
        model: SCM,
        kinds: Mapping[str, str],
        label: Callable[[Tensor], Tensor],
        name: str = "own model",
        n_classifier: int = 20_000,
        n_flow: int = 25_000,
        n_recourse: int = 20_000,
        seed: int = 0,
    ) -> "Population":
        """Return people drawn from an SCM: a draw each for classifier, flow and recourse.

        Arguments:
            model: In the units of the data; it is kept as the
                population's truth.
            label: From features in the units of the data (N, D) to
                whether the decision should be positive (N,).
            n_classifier, n_flow: People drawn for each fit; split 0.8
                / 0.1 / 0.1 into train, validation, test.
            n_recourse: People drawn for recourse; split 0.5 / 0.25 /
                0.25.
            seed: Of all three draws.
        Raises: ValueError: as `from_units`.
        """
        sizes = {"classifier": n_classifier, "flow": n_flow, "recourse": n_recourse}
        streams = np.random.SeedSequence(seed).spawn(len(sizes))
        x: dict[str, Tensor] = {}
        for stream, (use, n_people) in zip(streams, sizes.items(), strict=True):
            drawn = model.sample(n_people, np.random.default_rng(stream))
            shares = FOR_RECOURSE if use == "recourse" else FOR_FITS
            for split_name, rows in split(drawn, shares).items():
                x[f"{use}/{split_name}"] = drawn[rows]
        y = {split_name: label(people) for split_name, people in x.items()}
        population = cls.from_units(name, kinds, model.graph, x, y)
        truth = model.standardised(population.mean, population.std)
        return replace(population, truth=truth)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        label: str,
        kinds: Mapping[str, str],
        edges: Edges = None,
        name: str = "own data",
        whole: Sequence[str] | None = None,
        seed: int = 0,
        atoms: Sequence[str] = (),
    ) -> "Population":
        """Return the population of a table of past applicants, a row a person.

        Where a density is fitted, a whole number n is spread evenly
        over [n - 1/2, n + 1/2) (uniform dequantisation), and so is
        the code of a category. `to_feasible` makes it whole again,
        within the range that was seen. The row labels are kept as
        `people`.

        Arguments:
            frame: Numbers and categories, without gaps, as a table of
                pandas, polars or Arrow; columns that are neither
                feature nor label are left out.
            label: Column that states whether the decision should be
                positive: true or 1 for a loan that was paid back.
            kinds: Of each feature, as for a population; its order is
                kept.
            edges: The causal graph, as for `to_graph`.
            name: What the population is called in tables.
            whole: Features that are whole numbers; None: those in
                which no value has a fraction.
            seed: Of who is in which split (0.5 / 0.25 / 0.25), and of
                the spreading.
            atoms: Features that have exactly their lowest, or their
                highest, value for many people, for instance savings
                of 0. These people are spread, too (`spread_atoms`),
                and `to_feasible` brings them back. Whole numbers are
                spread in any case.
        Raises: ValueError: a column is missing, holds text among
            numbers, gaps, one value far from all others, or values
            that look alike once standardised; categories are given as
            columns of 0 and 1 that can be acted on; labels are not 0
            and 1, or all alike; too few people; an atom is no
            feature.
        Warns: UserWarning: a column of fractions holds whole numbers
            only, ends in a number that often stands for a gap, or
            holds words with numbers in them. DoubtfulTable: a feature
            decides the label alone, is (nearly) the same for
            everyone, or is perfectly correlated with another; very
            few people have one of the labels.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> frame = pd.DataFrame({"income": rng.normal(3, 1, 80)})
            >>> frame["cards"] = rng.integers(0, 5, 80)
            >>> frame["repaid"] = frame.income > frame.cards
            >>> kinds = {"income": "actionable", "cards": "actionable"}
            >>> population = Population.from_frame(
            ...     frame, "repaid", kinds, {"cards": ["income"]}
            ... )
            >>> population.graph.parents, len(population.x["recourse/train"])
            ({'income': (), 'cards': ('income',)}, 40)
        """
        if not isinstance(kinds, Mapping) or not kinds:
            raise ValueError(
                f"kinds is {kinds!r}: expected a dict feature -> kind, with one feature or "
                "more."
            )
        if label in kinds:
            raise ValueError(
                f"The label {label!r} is among the kinds: leave it out there, or the "
                "classifier learns from the answer."
            )
        for names in (whole, atoms):
            if isinstance(names, str):
                raise ValueError(f"Expected a list of names, [{names!r}], got {names!r}.")
        features = list(kinds)
        table = to_table(frame, [*features, label])
        is_positive = labels(table, label)
        if len(table) < MIN_PEOPLE:
            raise ValueError(
                f"The table has {len(table)} rows: expected {MIN_PEOPLE} at least, to fill "
                "three splits."
            )

        order, noise = (
            np.random.default_rng(stream)
            for stream in np.random.SeedSequence(seed).spawn(2)
        )
        people = order.permutation(len(table))
        positions = split(people, FOR_RECOURSE)
        to_learn_from = np.isin(np.arange(len(table)), people[positions["train"]])
        labels_to_learn_from = pd.Series(np.where(to_learn_from, is_positive, np.nan))
        if labels_to_learn_from.nunique() < 2:
            raise ValueError(
                f"Everyone to learn from has the same {label}: nothing to decide. Bring "
                "people of both kinds."
            )

        category_names = categories(table, features, labels_to_learn_from)
        numbers = values(table, features, category_names)
        for feature, column in zip(features, numbers.T, strict=True):
            check_near(feature, column, table[feature].nunique())
            if feature in category_names:
                _warn_of_numbers_as_words(feature, table[feature])
            else:
                _warn_of_sentinels(feature, column)
        _check_not_constant(features, numbers)
        _warn_of_doubts(label, features, numbers, is_positive)
        _check_dummies(table, kinds)
        graph = to_graph(features, edges)

        whole_names = None if whole is None else [*whole, *category_names]
        with_whole = _is_whole(table[features], numbers, whole_names, atoms)
        checks.one_of("feature with an atom:", atoms, features)
        with_atom = np.isin(features, atoms) & ~with_whole
        drawn = noise.random(numbers.shape)
        spread = spread_atoms(numbers[people], with_atom, drawn)
        spread = spread + with_whole * (drawn - 0.5)
        discretisation = None
        if (with_whole | with_atom).any():
            discretisation = Discretisation.of(numbers, with_whole)

        rows = for_every_use(positions)
        is_positive, row_labels = is_positive[people], table.index[people]
        return cls.from_units(
            name,
            kinds,
            graph,
            x={use: torch.from_numpy(spread[of]) for use, of in rows.items()},
            y={use: torch.from_numpy(is_positive[of]) for use, of in rows.items()},
            discretisation=discretisation,
            people={use: row_labels[of] for use, of in rows.items()},
            categories=category_names,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Digest of features, categories, graph and scaler, for models fitted to them.

        The scaler counts to six digits, so that another processor
        gives the same digest.
        """
        scaler = [f"{value:.5e}" for value in (*self.mean.tolist(), *self.std.tolist())]
        causes = {name: sorted(parents) for name, parents in self.graph.parents.items()}
        entries = [list(m.items()) for m in (self.kinds, self.categories, causes)]
        content = json.dumps([*entries, scaler])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def with_limits(self, words: Mapping[str, str]) -> "Population":
        """Return the population with more limits for who states none.

        Arguments:
            words: From actionable features to phrases, as for
                `Limits.from_words`: {"income": "only up"}. What they
                state replaces what was stated before, and the rest
                stays.
        Raises: ValueError: as `Limits.from_words`.
        """
        limits = Limits.from_words(words, self.actionable, self.categories)
        limits = limits.fill_from(self.limits)
        limits.check(self.actionable, self.categories)
        return replace(self, limits=limits if limits.is_stated.any() else None)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the D features."""
        return tuple(self.kinds)

    @property
    def actionable(self) -> tuple[str, ...]:
        """Names of the K globally actionable features (A), in the order of the features."""
        return tuple(name for name, kind in self.kinds.items() if kind == "actionable")

    @property
    def actionable_index(self) -> list[int]:
        """Columns of the globally actionable features."""
        return [self.features.index(name) for name in self.actionable]

    @cached_property
    def low(self) -> Tensor:
        """Smallest value of each feature in recourse/train, standardised, (D,)."""
        return self.x["recourse/train"].amin(0)

    @cached_property
    def high(self) -> Tensor:
        """Largest value of each feature in recourse/train, standardised, (D,)."""
        return self.x["recourse/train"].amax(0)

    @property
    def is_whole(self) -> Tensor:
        """Which features are whole numbers, or codes of categories, with shape (D,)."""
        if self.discretisation is None:
            return torch.zeros(len(self.features), dtype=torch.bool)
        return self.discretisation.is_whole

    def inverse_transform(self, x: Tensor) -> Tensor:
        """Return standardised features (*, D) in the units of the data, of x's dtype."""
        return (x.double() * self.std + self.mean).to(x.dtype)

    def transform(self, units: Tensor) -> Tensor:
        """Return features (*, D) in the units of the data as solvers take them.

        Unlike `standardise` it takes any numbers: who lies beyond the
        range that was seen is not refused.
        """
        return ((units.double() - self.mean) / self.std).to(self.low.dtype)

    def to_records(self, x: Tensor) -> Tensor:
        """Return standardised features (*, D) as a table would hold them, in float64.

        They are in the units of the data, and whole numbers are
        whole. Categories are codes; `to_frame` names them.
        """
        units = self.inverse_transform(x.double())
        return units if self.discretisation is None else self.discretisation(units)

    def to_frame(self, x: Tensor) -> pd.DataFrame:
        """Return standardised features (N, D) as a table like the one they came from.

        Whole numbers are integers. Categories have the values of that
        table.
        """
        frame = pd.DataFrame(self.to_records(x).detach().cpu(), columns=[*self.features])
        for j, feature in enumerate(self.features):
            if self.is_whole[j]:
                frame[feature] = frame[feature].astype("int64")
            if feature in self.categories:
                names = self.categories[feature]
                seen = names.values if isinstance(names, Categories) else names
                frame[feature] = pd.Series(seen).to_numpy()[frame[feature]]
        return frame

    def standardise(self, frame: Any) -> Tensor:
        """Return people of a table as solvers take them, with shape (N, D).

        Arguments:
            frame: In the units of the data, with a column for each
                feature, categories under their names; other columns
                are left out. One applicant may be a dict or a Series.
        Raises: ValueError: a column is missing, or holds text among
            numbers, gaps, fractions of whole numbers, or a category
            that is not known; somebody lies outside of the range that
            was seen, and the population has whole numbers or
            categories: `to_feasible` would take them for somebody at
            the end of the range.
        """
        table = to_table(frame, self.features)
        numbers = torch.from_numpy(values(table, self.features, self.categories))
        if (is_part := self.is_whole & (numbers % 1 != 0)).any():
            row, j = is_part.nonzero()[0].tolist()
            raise ValueError(
                f"{self.features[j]} of {table.index[row]!r} is {numbers[row, j]:g}: "
                "expected a whole number, as in the table that was fitted."
            )
        x = self.transform(numbers)
        if self.discretisation is not None and (outside := self._outside(table, x)):
            raise ValueError(
                f"{outside}. Nobody like that was seen, and they would be taken for "
                "somebody at the end of the range. Correct the value (another unit?), "
                "leave them out, or fit to a table that has such people."
            )
        return x

    def check_range(self, frame: Any) -> None:
        """Check that people of a table lie within the range that was seen, each feature.

        Somebody outside is an error where values are whole numbers or
        categories, else a UserWarning.

        Arguments, errors: as for `standardise`.
        """
        table = to_table(frame, self.features)
        if outside := self._outside(table, self.standardise(table)):
            warnings.warn(
                f"{outside}. Classifier and flow were fitted to nobody there: distrust "
                "what they say of these people.",
                stacklevel=3,
            )

    def _outside(self, table: pd.DataFrame, x: Tensor) -> str:
        """Return which values lie outside of the range that was seen, in words, or ""."""
        seen = torch.cat(list(self.x.values()))
        low, high = seen.amin(0), seen.amax(0)
        if self.discretisation is not None:
            ends = self.discretisation.low, self.discretisation.high
            low, high = map(self.transform, ends)
        is_outside = (x < low) | (x > high)
        low, high = self.inverse_transform(torch.stack([low, high]).double())
        ranges = [
            f"{first:,.6g} to {last:,.6g}"
            for first, last in zip(low.tolist(), high.tolist(), strict=True)
        ]
        outside = [
            f"{self.features[j]} of {table.index[row]!r} is {table.iloc[row, j]:,} (seen: "
            f"{ranges[j]})"
            for row, j in is_outside.nonzero().tolist()
        ]
        more = f"; and {len(outside) - 3} more" if len(outside) > 3 else ""
        return "; ".join(outside[:3]) + more

    def to_feasible(self, x: Tensor) -> Tensor:
        """Return the nearest standardised features (*, D) that a person can have.

        A gradient goes straight through where values are made whole.
        Beyond the range it is zero: to go farther changes nothing.
        """
        if self.discretisation is None:
            return x
        units = self.to_records(x)
        return ((units - self.mean) / self.std).to(x.dtype)

    def round_counterfactual(self, x: Tensor, x_cf: Tensor) -> Tensor:
        """Return counterfactual features as people can have them.

        A value that changed becomes the nearest possible one. One
        that did not, or by so little that rounding undoes it, is
        returned as it was, to the bit.

        Arguments:
            x, x_cf: Standardised features before and after an action,
                with shape (*, D).
        """
        if self.discretisation is None:
            return x_cf
        after = self.to_feasible(x_cf)
        return torch.where(after == self.to_feasible(x), x, after)

    def whole_range(self, column: int) -> range:
        """Return the whole numbers that a feature can be; none if it has fractions.

        They are those within its range in the recourse training
        split.
        """
        if not self.is_whole[column]:
            return range(0)
        ends = self.to_records(torch.stack([self.low, self.high]))[:, column]
        return range(int(ends[0]), int(ends[1]) + 1)

    def counts(self, column: int) -> Tensor:
        """Return every whole number that a feature can be, standardised, with shape (n,).

        Money may have millions: ask for `len(whole_range(column))`
        first.
        """
        numbers = self.whole_range(column)
        units = torch.arange(numbers.start, numbers.stop, dtype=torch.float64)
        return ((units - self.mean[column]) / self.std[column]).to(self.low)

    def grid(self, feature: str, n_values: int) -> Tensor:
        """Return the values that an exact search tries for a feature, with shape (n,).

        They are standardised and evenly spread over its range in the
        recourse training split. Where a population has whole numbers,
        they are those at evenly spread quantiles instead, each once,
        so that one extreme value does not use up the grid. Of
        categories they are all.

        Raises: ValueError: there is no such feature.
        """
        column = self.graph.index(feature)
        if feature in self.categories:
            return self.counts(column)
        if self.discretisation is None:
            low, high = float(self.low[column]), float(self.high[column])
            return torch.linspace(low, high, n_values, dtype=self.low.dtype)
        people = self.x["recourse/train"]
        shares = torch.linspace(0, 1, n_values, dtype=torch.float64)
        quantiles = torch.quantile(self.to_feasible(people)[:, column].double(), shares)
        grid = people.mean(0).expand(n_values, -1).clone()  # the others do not matter
        grid[:, column] = quantiles.to(people)
        return self.to_feasible(grid)[:, column].unique()


def split(people: Sized, shares: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Return consecutive row numbers of people, by name, with the given shares.

    Example:
        >>> rows = split(range(4), FOR_RECOURSE)
        >>> {name: numbers.tolist() for name, numbers in rows.items()}
        {'train': [0, 1], 'validation': [2], 'test': [3]}
    """
    stops = (np.cumsum(list(shares.values())) * len(people)).round().astype(int)
    return dict(zip(shares, np.split(np.arange(len(people)), stops[:-1]), strict=True))


def for_every_use(sample: Mapping[str, T]) -> dict[str, T]:
    """Return one sample's splits as those of the classifier, the flow and recourse.

    Example:
        >>> for_every_use({"train": 1})
        {'classifier/train': 1, 'flow/train': 1, 'recourse/train': 1}
    """
    return {f"{use}/{name}": rows for use in USES for name, rows in sample.items()}


def to_table(frame: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return these columns of a table as pandas holds it.

    Arguments:
        frame: A table of pandas, or one with `to_pandas` (polars,
            Arrow); a dict of columns; one person, as a dict or a
            Series.
        names: Of the columns.
    Raises: ValueError: it is none of these; a column is missing or
        there twice, or has no name.

    Example:
        >>> to_table({"age": 30, "job": "cook"}, ["age"])
           age
        0   30
    """
    if isinstance(frame, pd.Series):
        frame = pd.DataFrame([frame.to_dict()], index=[frame.name])
    elif isinstance(frame, Mapping):
        is_one = not any(map(pd.api.types.is_list_like, frame.values()))
        frame = pd.DataFrame([frame] if is_one else frame)
    elif hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"Expected a table, got {type(frame).__name__}: read the file first, for "
            "instance with pandas.read_csv."
        )
    is_text = all(isinstance(name, str) for name in names)
    if not is_text or isinstance(frame.columns, pd.MultiIndex):
        raise ValueError(
            f"The columns are {', '.join(map(str, frame.columns))}: expected a text each. "
            "Take frame.rename(columns=str), or join several levels: frame.columns = "
            "['_'.join(levels) for levels in frame.columns]."
        )
    if missing := [name for name in names if name not in frame.columns]:
        there = [str(name) for name in frame.columns]
        near = get_close_matches(missing[0], there, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{', '.join(missing)} {'are' if missing[1:] else 'is'} missing: the table has "
            f"the columns {', '.join(there)}.{hint}"
        )
    if twice := [name for name in names if isinstance(frame[name], pd.DataFrame)]:
        raise ValueError(f"The table has two columns {twice[0]!r}. Keep one.")
    return frame[list(names)]


def has_categories(column: pd.Series) -> bool:
    """Return whether a column holds categories: of that type, or words and no number.

    Example:
        >>> words = ["cook", "clerk"], ["1", "clerk"], ["1,200", "3,5"]
        >>> [has_categories(pd.Series(column)) for column in words]
        [True, False, False]
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if str(column.dtype).startswith("dictionary<"):  # of Arrow
        return True
    if column.dtype.kind not in "OU":
        return False
    cells = column.dropna()
    is_text = all(isinstance(cell, str) for cell in cells)
    return is_text and not any(NUMBER.fullmatch(cell) for cell in cells.unique())


def categories(
    frame: pd.DataFrame, features: Sequence[str], is_positive: pd.Series
) -> dict[str, Categories]:
    """Return the categories of each feature that has some, in the order of their codes.

    Those of an ordered type keep their order. Others are ordered by
    how often the label is positive, so that neighbours are alike;
    then by name.

    Arguments:
        is_positive: Whether each decision should be positive, 0.0 or
            1.0, with shape (N,); NaN: the person does not count.
    Raises: ValueError: a column has gaps, or too many categories.

    Example:
        >>> frame = pd.DataFrame({"job": ["cook", "clerk", "cook"], "age": [30, 40, 50]})
        >>> categories(frame, ["job", "age"], pd.Series([0.0, 1.0, 0.0]))
        {'job': ('cook', 'clerk')}
    """
    names_by_feature = {}
    for feature, column in frame[list(features)].items():
        if not has_categories(column):
            continue
        _check_gaps(feature, _is_empty(column))
        names = column.astype(object).map(_category_name).to_numpy()
        share = is_positive.groupby(names).mean()
        if len(share) > MAX_CATEGORIES:
            raise ValueError(
                f"Column {feature!r} has {len(share)} categories: expected "
                f"{MAX_CATEGORIES} at most. Join those that are rare, or leave it out."
            )
        in_order = share.sort_values(kind="stable").index
        is_ordered = bool(getattr(column.dtype, "ordered", False))
        if is_ordered:
            stated = map(_category_name, column.cat.categories)
            in_order = [name for name in stated if name in share]
        value_of = {
            _category_name(value): value for value in column.astype(object).unique()
        }
        seen = [value_of[name] for name in in_order]
        names_by_feature[str(feature)] = Categories(in_order, seen, is_ordered)
    return names_by_feature


def _category_name(value: Any) -> str:
    """Return what a category is called: 1.0 is "1", since a gap turns 1 into 1.0."""
    is_whole_float = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole_float else str(value)


def values(
    frame: pd.DataFrame,
    features: Sequence[str],
    categories: Mapping[str, Sequence[str]] | None = None,
) -> np.ndarray:
    """Return the features of a table as float64, with shape (N, D).

    A category becomes its code. A code is never read as one.

    Arguments:
        categories: As `categories` returns them; None: there are
            none.
    Raises: ValueError: a column is missing, or holds text among
        numbers, gaps or infinities, or a category that is not known.

    Example:
        >>> frame = pd.DataFrame({"age": [30, 40], "job": ["cook", "clerk"]})
        >>> values(frame, ["age", "job"], {"job": ("clerk", "cook")})
        array([[30.,  1.],
               [40.,  0.]])
    """
    table, names = to_table(frame, features), categories or {}
    columns = [
        _codes(feature, table[feature], names[feature])
        if feature in names
        else _numbers(feature, table[feature])
        for feature in features
    ]
    return np.stack(columns, -1)


def _codes(feature: str, column: pd.Series, names: Sequence[str]) -> np.ndarray:
    """Return the codes of a column of categories, float64 with shape (N,)."""
    _check_gaps(feature, _is_empty(column))
    given = column.astype(object).map(_category_name)
    checks.one_of(f"category of {feature}:", given.unique(), names)
    codes = {name: float(code) for code, name in enumerate(names)}
    return given.map(codes).to_numpy(dtype=float)


def _numbers(feature: str, column: pd.Series) -> np.ndarray:
    """Return a column of numbers as float64, with shape (N,)."""
    if column.dtype.kind not in "iufb":
        column = column.astype(object).where(column.notna(), np.nan)
        if not all(isinstance(cell, Real | Decimal) for cell in column):
            _raise_text(feature, column)
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    _check_gaps(feature, ~np.isfinite(numbers))
    return numbers


def _raise_text(feature: str, column: pd.Series) -> None:
    """Raise ValueError that names the cell which is no number."""
    texts = column.map(str)
    is_odd = pd.to_numeric(texts, errors="coerce").isna() & column.notna()
    if not 0 < is_odd.mean() < 0.5:  # numbers among words, or all as text
        is_odd = texts.map(lambda text: NUMBER.fullmatch(text) is not None)
    row = int(is_odd.to_numpy().argmax())
    raise ValueError(
        f"{feature} of row {row} is {column.iloc[row]!r}: expected a number. Read the "
        "table again with decimal=, thousands= and na_values= of pandas.read_csv, turn "
        "text with pandas.to_numeric, dates into years. If these are categories, up to "
        f"{MAX_CATEGORIES}, use frame[{feature!r}].astype('category')."
    )


def _is_empty(column: pd.Series) -> np.ndarray:
    """Return whether cells hold nothing, or a text of blanks, with shape (N,)."""
    return column.isna().to_numpy() | column.map(str).str.strip().eq("").to_numpy()


def _check_gaps(feature: str, is_gap: np.ndarray) -> None:
    """Raise ValueError if some values of a column are missing or infinite."""
    if is_gap.any():
        raise ValueError(
            f"Column {feature!r} has {is_gap.sum()} gaps or infinite values (the first in "
            f"row {int(is_gap.argmax())}). Drop or fill those rows first."
        )


def check_near(feature: str, column: np.ndarray, n_distinct: int) -> None:
    """Raise ValueError if values are so large, or one so far away, that others look alike.

    Networks calculate in float32, which tells numbers apart to seven
    digits. Half of the values have to be left once standardised.

    Arguments:
        column: Numbers in float64, with shape (N,).
        n_distinct: Different values that the table has.
    Example:
        >>> column = np.array([1.0, 2, 3, 4, 1e12])
        >>> check_near("income", column, 5)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: income of row 4 is 1e+12, and the others lie around 3: ...
    """
    middle = np.median(column)
    distance = np.abs(column - middle)
    row = int(distance.argmax())
    others = np.delete(column, row)
    iqr = _interquartile_range(others[others != middle])
    scaled = (column - column.mean()) / (column.std() or 1.0)
    n_left = len(np.unique(scaled.astype(np.float32)))
    if distance[row] > MAX_IQR * iqr > 0 or n_left < n_distinct / 2:
        raise ValueError(
            f"{feature} of row {row} is {column[row]:g}, and the others lie around "
            f"{middle:g}: so far from zero, or beside it, many of them look alike. Correct "
            "or drop it, subtract what is common to all, or take logarithms. The number of "
            "a person is no feature."
        )


def _interquartile_range(column: np.ndarray) -> float:
    """Return the distance between the quartiles; of nobody, zero."""
    return float(np.subtract(*np.quantile(column, [0.75, 0.25]))) if len(column) else 0.0


def _warn_of_sentinels(feature: str, column: np.ndarray) -> None:
    """Warn if a column ends in a number, such as -999, that often stands for a gap."""
    is_code = np.isin(column, SENTINELS)
    others = column[~is_code]
    if len(np.unique(others)) < 2:
        return
    low, high, spread = others.min(), others.max(), _interquartile_range(others)
    for value in np.unique(column[is_code]):
        neighbour = np.clip(value, low, high)  # itself, if it is not at an edge
        is_apart = abs(value - neighbour) > spread
        if value != neighbour and (is_apart or value < 0 <= neighbour):
            warnings.warn(
                f"{feature} is {value:g} for {(column == value).sum()} people, and the "
                f"nearest value to it is {neighbour:g}. Does it stand for a gap? Then drop "
                "or fill those rows.",
                stacklevel=3,
            )


def _warn_of_numbers_as_words(feature: str, column: pd.Series) -> None:
    """Warn if most cells of a column of words, not yet called categories, have a digit."""
    has_digit = column.map(str).str.contains(r"\d").to_numpy()
    if column.dtype.kind in "OU" and has_digit.mean() > 0.5:
        row = int(has_digit.argmax())
        warnings.warn(
            f"{feature} of row {row} is {column.iloc[row]!r}: "
            "read as a category, without an order. If these are numbers, drop the unit "
            "with str.replace and turn them with pandas.to_numeric; if not, say so with "
            f"frame[{feature!r}].astype('category').",
            stacklevel=3,
        )


class DoubtfulTable(UserWarning):
    """Say what makes recourse from a table doubtful; notebook 12 says more of the kind."""


def _warn_of_doubts(
    label: str, features: Sequence[str], numbers: np.ndarray, is_positive: np.ndarray
) -> None:
    """Warn of what the cheapest checks of notebook 12 find in features (N, D)."""
    doubts = []
    n_rarer = min(is_positive.sum(), (~is_positive).sum())
    if n_rarer < FEW:
        doubts.append(
            f"Only {n_rarer} of {len(numbers)} people have the rarer {label}: too few to "
            "learn from. Bring more of them."
        )
    positive, negative = numbers[is_positive], numbers[~is_positive]
    is_leak = (positive.min(0) > negative.max(0)) | (positive.max(0) < negative.min(0))
    n_other = (numbers != np.median(numbers, 0)).sum(0)
    for j, feature in enumerate(features):
        if is_leak[j]:
            doubts.append(
                f"{feature} decides {label} alone. Is it the label by another name, or "
                "made after the decision? Then leave it out."
            )
        if n_other[j] < FEW:
            doubts.append(
                f"{feature} is the same for all but {n_other[j]} people: nothing can be "
                "learned from it. Leave it out."
            )
    is_copy = np.abs(np.corrcoef(numbers.T)) > 1 - CLOSE
    doubts += [
        f"{features[i]} and {features[j]} are perfectly correlated: one is a copy of the "
        "other, and nobody can change it alone. Leave one out."
        for i, j in np.argwhere(np.triu(np.atleast_2d(is_copy), 1))
    ]
    for doubt in doubts:
        warnings.warn(doubt, DoubtfulTable, stacklevel=4)


def _check_not_constant(features: Sequence[str], people: np.ndarray) -> None:
    """Raise ValueError if some feature is the same for all of these people (N, D)."""
    for feature, spread in zip(features, np.ptp(people, axis=0), strict=True):
        if spread == 0:
            raise ValueError(
                f"{feature} has the same value for everyone. Leave the feature out, or use "
                "more people."
            )


def dummies(frame: pd.DataFrame, features: Sequence[str]) -> list[list[str]]:
    """Return groups of columns of 0 and 1 of which nobody has two, as get_dummies makes.

    Two that would be together in `MIN_TOGETHER` people, if they were
    independent, and are in nobody, belong to one group.

    Example:
        >>> frame = pd.get_dummies(pd.Series(["a", "b", "c"] * 30)).astype(int)
        >>> dummies(frame, ["a", "b", "c"])
        [['a', 'b', 'c']]
    """
    names = [name for name in features if set(frame[name].unique()) == {0, 1}]
    binary = frame[names].astype(float)
    n_together, n_people = binary.T @ binary, binary.sum()
    n_expected = np.outer(n_people, n_people) / len(binary)
    is_exclusive = (n_together == 0) & (n_expected >= MIN_TOGETHER)
    groups = nx.connected_components(nx.from_pandas_adjacency(is_exclusive))
    return [sorted(group, key=names.index) for group in groups if len(group) > 1]


def _check_dummies(frame: pd.DataFrame, kinds: Mapping[str, str]) -> None:
    """Raise ValueError if one of several is given as columns that can be acted on."""
    for group in dummies(frame, list(kinds)):
        if any(kinds[name] == "actionable" for name in group):
            raise ValueError(
                f"{', '.join(group)} are 0 and 1, and nobody has two: one category each. "
                "Acted on one by one they leave people with none or several. Give them as "
                "one column of words, for instance by frame[names].idxmax(axis=1), or make "
                "none of them actionable."
            )


def labels(frame: pd.DataFrame, label: str) -> np.ndarray:
    """Return whether each decision should be positive, bool with shape (N,).

    Raises: ValueError: the column holds something else than 0 and 1.

    Example:
        >>> labels(pd.DataFrame({"repaid": [1, 0]}), "repaid")
        array([ True, False])
    """
    if others := not_binary(frame[label]):
        raise ValueError(
            f"The label {label!r} holds {others[:5]}: expected True or 1 where the "
            "decision should be positive, and False or 0 else, without gaps. Turn text "
            f"with frame[{label!r}].map."
        )
    return (frame[label].astype(object) == 1).to_numpy(dtype=bool)


def not_binary(column: pd.Series) -> list[Any]:
    """Return what a column holds that is neither 0 nor 1, each value once.

    Example:
        >>> not_binary(pd.Series([0, True, 2, 2, "1"]))
        [2, '1']
    """
    cells = column.astype(object)
    return cells[~cells.isin([0, 1])].unique().tolist()


def to_graph(features: Sequence[str], edges: Edges) -> Graph:
    """Return the causal graph over these features, in their order.

    Arguments:
        edges: A dict effect -> causes, pairs (cause, effect), a frame
            with the columns cause and effect, a frame with a row and
            a column a feature, 1 where the row's causes the column's,
            a networkx.DiGraph or its edges, or a `Graph`. None: there
            are none.
    Raises: ValueError: it is none of these; an edge names an unknown
        feature; there is a circle.
    Warns: UserWarning: edges is None.

    Example:
        >>> to_graph(["age", "income"], {"income": ["age"]}).parents
        {'age': (), 'income': ('age',)}
        >>> to_graph(["age", "income"], [("age", "income")]).parents["income"]
        ('age',)
    """
    if isinstance(edges, Graph):
        return edges
    if edges is None:
        warnings.warn(
            "edges=None assumes that no feature causes another: nothing follows from an "
            "action, and what is plausible is judged feature by feature. If debt follows "
            'from income, say edges={"debt": ["income"]}; if nothing does, edges={}.',
            stacklevel=4,
        )
        edges = {}
    is_matrix = isinstance(edges, np.ndarray) and edges.dtype.kind in "biuf"
    if isinstance(edges, str) or is_matrix or not isinstance(edges, Iterable):
        raise ValueError(
            f"edges is {edges!r}: expected a dict effect -> causes, pairs (cause, effect), "
            "a networkx.DiGraph, or a matrix as a frame, rows and columns named as the "
            "features: pd.DataFrame(matrix, features, features), 1 where the row's feature "
            "causes the column's."
        )
    if isinstance(edges, Mapping) and not isinstance(edges, Set):  # edges of networkx: both
        checks.one_of("effect among the edges:", edges, tuple(features))
        return Graph({name: edges.get(name, ()) for name in features})
    if isinstance(edges, pd.DataFrame) and list(edges.index) == list(edges.columns):
        edges = nx.from_pandas_adjacency(edges, nx.DiGraph)
    elif isinstance(edges, pd.DataFrame):
        checks.one_of("column of the edges:", ("cause", "effect"), tuple(edges.columns))
        edges = list(zip(edges["cause"], edges["effect"], strict=True))
    return Graph.from_edges(features, edges)


def _is_whole(
    frame: pd.DataFrame,
    numbers: np.ndarray,
    whole: Sequence[str] | None,
    atoms: Sequence[str],
) -> np.ndarray:
    """Return which features are whole numbers, bool with shape (D,).

    Arguments:
        frame: With a column for each of the D features.
        numbers: What `values` returns for it, with shape (N, D).
        whole, atoms: As for `Population.from_frame`.
    """
    fractions = frame.columns[(numbers % 1 != 0).any(0)]
    if whole is None:
        whole = [
            name
            for name, column in frame.items()
            if column.dtype.kind in "iub" or has_categories(column)
        ]
        guessed = [name for name in frame if name not in [*whole, *atoms, *fractions]]
        if guessed:
            warnings.warn(
                f"{', '.join(guessed)}: no value has a fraction, so these are taken for "
                "whole numbers. Otherwise name those that are, with whole=[...].",
                stacklevel=3,
            )
        whole = whole + guessed
    checks.one_of("feature that is a whole number:", whole, tuple(frame))
    if wrong := [name for name in whole if name in fractions]:
        raise ValueError(f"{wrong[0]} has fractions: leave it out of the whole numbers.")
    return frame.columns.isin(whole)


def spread_atoms(numbers: np.ndarray, is_atom: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return features whose atoms at an end of the range are spread beyond that end.

    Many people with exactly the same lowest (or highest) value have
    an infinite density there. They are spread evenly over `SPREAD`
    standard deviations beyond it. `Discretisation` undoes that.

    Arguments:
        numbers: People, in the units of the data, with shape (N, D).
        is_atom: Which features have an atom, with shape (D,). It is
            at the end that more people share.
        noise: Between 0 and 1, with shape (N, D).
    Example:
        >>> savings = np.array([[0.0], [0.0], [30.0], [50.0]])
        >>> half = np.full((4, 1), 0.5)
        >>> spread_atoms(savings, np.array([True]), half).round(1).ravel().tolist()
        [-2.1, -2.1, 30.0, 50.0]
    """
    at_low, at_high = numbers == numbers.min(0), numbers == numbers.max(0)
    is_low = at_low.sum(0) >= at_high.sum(0)
    is_at_atom = np.where(is_low, at_low, at_high) & is_atom
    width = np.where(is_low, -SPREAD, SPREAD) * numbers.std(0)
    return numbers + is_at_atom * width * noise
