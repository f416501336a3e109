"""Who applies: features and what may be done about them, splits, the scaler, the labels."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method import frames
from lib.method.limits import Limits
from lib.method.scm import SCM
from lib.method.world import Graph

FOR_RECOURSE = {"train": 0.5, "validation": 0.25, "test": 0.25}
FOR_FITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
USES = ("classifier", "flow", "recourse")
KINDS = ("actionable", "mutable", "immutable")
FEWEST = 20  # people that fill three splits
T = TypeVar("T")


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
        whole: From features in the units of the data to the nearest
            that a person can have, for instance whole numbers of
            credit lines; None: every value is possible.
        truth: The true SCM, in standardised units, where it is known.
        people: What the people of each split are called, where that
            is known: the row labels of their table.
        has_units: Whether people know the units of the data, as years
            or euros; if not, `words` tells a value by its rank.
        limits: Between what values anybody may set the K actionable
            features who does not say otherwise, with shape (K,).
        categories: Of features that are one of several: what codes 0,
            1, ... stand for.
    Raises: ValueError: kinds, graph or limits are of other features;
        an action would move an immutable feature; a split is empty,
        has NaN, or labels that do not fit.

    Example:
        >>> population = loan.population(100, 100, 100)
        >>> population.actionable
        ('loan_amount', 'loan_duration', 'income', 'savings')
    """

    name: str
    kinds: Mapping[str, str]
    graph: Graph
    mean: Tensor
    std: Tensor
    x: Mapping[str, Tensor]
    y: Mapping[str, Tensor]
    whole: frames.Nearest | None = None
    truth: SCM | None = None
    people: Mapping[str, pd.Index] = field(default_factory=dict)
    has_units: bool = True
    limits: Limits | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.known("kind of feature", self.kinds.values(), KINDS)
        if tuple(self.kinds) != self.graph.features:
            raise ValueError(
                f"The kinds name {', '.join(self.kinds)}; the graph names "
                f"{', '.join(self.graph.features)}. Both must list the same features in "
                "the same order."
            )
        if not self.actionable:
            raise ValueError("No feature is actionable, so nothing can be recommended.")
        self._check_immutable()
        if self.limits is not None:
            checks.shape("limits", self.limits.low, (len(self.actionable),))
        checks.known("feature with categories:", self.categories, self.features)
        for split, x in self.x.items():
            checks.people(f"split {split!r}", x, self.features)
            if len(x) == 0:
                raise ValueError(f"Split {split!r} is empty: ask for more people.")
        checks.known("split with labels:", self.y, tuple(self.x))
        for split, y in self.y.items():
            checks.shape(f"y of split {split!r}", y, self.x[split].shape[:-1])

    def _check_immutable(self) -> None:
        """Raise ValueError if an action would move a feature that never moves."""
        reached = set(self.graph.reached_by(self.actionable_index))
        moving = {*reached, *self.actionable_index}
        for j, causes in enumerate(self.graph.parent_index):
            name = self.features[j]
            if self.kinds[name] == "immutable" and j in reached:
                cause = self.features[next(i for i in causes if i in moving)]
                raise ValueError(
                    f"{name} is immutable, but {cause} causes it, and an action can move "
                    f"that. Call {name} mutable, or leave out the edge {cause} -> {name}."
                )

    @classmethod
    def from_units(
        cls,
        name: str,
        kinds: Mapping[str, str],
        graph: Graph,
        x: Mapping[str, Tensor],
        y: Mapping[str, Tensor],
        whole: frames.Nearest | None = None,
        truth: SCM | None = None,
        scaler: tuple[Tensor, Tensor] | None = None,
    ) -> "Population":
        """Return a population from splits in the units of the data; fit its scaler.

        Arguments:
            x: As for a population, but in the units of the data,
                float64.
            truth: The true SCM, in the units of the data.
            scaler: Mean and standard deviation of other people, whose
                models are used for these; left out: their own.
        Raises: ValueError: as for a population, or a feature is the
            same for everyone.

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
        checks.known("split that a population needs:", ["recourse/train"], tuple(x))
        for part, people in x.items():
            checks.people(f"split {part!r}", people, tuple(kinds))
        own = x["recourse/train"]
        _check_differ(list(kinds), own)
        mean, std = scaler or (own.mean(0), torch.from_numpy(own.numpy().std(0)))
        standardised = {part: ((own - mean) / std).float() for part, own in x.items()}
        true = None if truth is None else truth.standardised(mean, std)
        return cls(name, kinds, graph, mean, std, standardised, y, whole, true)

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
        Raises: ValueError: a size is too small to be split; as for a
            population.

        Example:
            >>> from scipy import stats
            >>> from lib.method.scm import additive
            >>> normal = stats.norm(0, 1)
            >>> model = SCM({
            ...     "income": additive((), lambda pa: 3.0, normal),
            ...     "savings": additive(("income",), lambda pa: pa["income"], normal),
            ... })
            >>> kinds = {"income": "actionable", "savings": "mutable"}
            >>> population = Population.from_scm(
            ...     model, kinds, label=lambda x: x[:, 1] > 3,
            ...     n_classifier=50, n_flow=50, n_recourse=50,
            ... )
            >>> len(population.x["recourse/train"]), population.truth is None
            (25, False)
        """
        sizes = {"classifier": n_classifier, "flow": n_flow, "recourse": n_recourse}
        for use, n_people in sizes.items():
            check_enough(f"n_{use}", n_people)
        streams = np.random.SeedSequence(seed).spawn(len(sizes))
        x: dict[str, Tensor] = {}
        for stream, (use, n_people) in zip(streams, sizes.items(), strict=True):
            drawn = model.sample(n_people, np.random.default_rng(stream))
            shares = FOR_RECOURSE if use == "recourse" else FOR_FITS
            x |= {
                f"{use}/{part}": drawn[rows] for part, rows in split(drawn, shares).items()
            }
        y = {part: label(own) for part, own in x.items()}
        return cls.from_units(name, kinds, model.graph, x, y, truth=model)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        label: str,
        kinds: Mapping[str, str],
        edges: frames.Edges,
        name: str = "own data",
        whole: Sequence[str] | None = None,
        seed: int = 0,
        atoms: Sequence[str] = (),
    ) -> "Population":
        """Return the population of a table of past applicants, a row a person.

        Columns of whole numbers are counted: where a density is
        fitted, a count n is spread over [n - 1/2, n + 1/2).
        `possible` makes it whole again, within the range that was
        seen. So are the codes of categories (`frames.categories`): a
        person always has exactly one. The row labels are kept as
        `people`.

        Arguments:
            frame: Numbers and categories, without gaps; columns that
                are neither feature nor label are left out.
            label: Column that says whether the decision should be
                positive: true or 1 for a loan that was paid back.
            kinds: Of each feature, as for a population; its order is
                kept.
            edges: The causal graph: a dict effect -> causes, pairs
                (cause, effect), a frame with the columns cause and
                effect, or a `Graph`.
            whole: Features that are whole numbers; left out: columns
                of integers or bools.
            seed: Of who is in which split (0.5 / 0.25 / 0.25), and of
                the spreading.
            atoms: Features that have exactly their lowest, or their
                highest, value for many people, for instance savings
                of 0. These people are spread, too
                (`frames.spread_atoms`), and `possible` brings them
                back.
        Raises: ValueError: a column is missing, holds text among
            numbers, gaps, or one value far from all others;
            categories are given as columns of 0 and 1 that can be
            acted on; labels are not 0 and 1, or all alike; too few
            people; an atom is no feature, or one of whole numbers.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> frame = pd.DataFrame({"income": rng.normal(3, 1, 80)})
            >>> frame["cards"] = rng.integers(0, 5, 80)
            >>> frame["repaid"] = frame.income > 3
            >>> kinds = {"income": "actionable", "cards": "actionable"}
            >>> edges = {"cards": ["income"]}
            >>> population = Population.from_frame(frame, "repaid", kinds, edges)
            >>> population.graph.parents, len(population.x["recourse/train"])
            ({'income': (), 'cards': ('income',)}, 40)
            >>> x = population.possible(population.x["recourse/train"])
            >>> float(population.in_units(x)[0, 1]) % 1
            0.0
        """
        if not isinstance(kinds, Mapping):
            raise ValueError(f"kinds is {kinds!r}: expected a dict feature -> kind.")
        if label in kinds:
            raise ValueError(
                f"The label {label!r} is also among the kinds: leave it out there, or the "
                "classifier learns from the answer."
            )
        frames.check_columns(frame, list(kinds))
        labels = frames.labels(frame, label)
        check_enough("The number of rows", len(frame))
        order, noise = (
            np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2)
        )
        rows = order.permutation(len(frame))
        parts = split(torch.from_numpy(rows), FOR_RECOURSE)
        known = frames.categories(frame, list(kinds), labels, rows[parts["train"]])
        frame = frames.as_codes(frame, known)
        values = frames.values(frame, list(kinds))
        _check_differ(list(kinds), torch.from_numpy(values))
        for name, column in zip(kinds, values.T, strict=True):
            frames.check_near(name, column)
        _check_dummies(frame, kinds)
        graph = frames.graph(list(kinds), edges)
        numbers = None if whole is None else [*whole, *known]
        is_whole = frames.is_whole(frame, list(kinds), numbers)
        is_atom = frames.is_atom(list(kinds), atoms, is_whole)
        drawn = noise.random(values.shape)
        spread = frames.spread_atoms(values[rows], is_atom, drawn)
        spread += is_whole * (drawn - 0.5)
        in_units, paid = torch.from_numpy(spread), torch.from_numpy(labels[rows])
        x = for_every_use({part: in_units[own] for part, own in parts.items()})
        y = for_every_use({part: paid[own] for part, own in parts.items()})
        if len(y["classifier/train"].unique()) < 2:
            raise ValueError(
                f"Everyone to learn from has the same {label}: nothing to decide."
            )
        has_cells = (is_whole | is_atom).any()
        nearest = frames.Nearest.of(values, is_whole) if has_cells else None
        made = cls.from_units(name, kinds, graph, x, y, nearest)
        people = {part: frame.index[rows[own]] for part, own in parts.items()}
        return replace(made, people=for_every_use(people), categories=known)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of features, categories, graph and scaler, for models fitted to them.

        The scaler counts to six digits, so that another processor
        gives the same digest.

        Example:
            >>> one, other = (loan.population(100, 100, 100, seed=i) for i in range(2))
            >>> len(one.fingerprint), one.fingerprint == other.fingerprint
            (16, False)
        """
        scaler = [f"{value:.5e}" for value in (*self.mean.tolist(), *self.std.tolist())]
        causes = {name: sorted(own) for name, own in self.graph.parents.items()}
        parts = [list(own.items()) for own in (self.kinds, self.categories, causes)]
        told_apart = json.dumps([*parts, scaler])
        return hashlib.sha256(told_apart.encode()).hexdigest()[:16]

    def with_limits(self, said: Mapping[str, str]) -> "Population":
        """Return the population with other limits for who says nothing.

        Arguments:
            said: From actionable features to phrases, as for
                `Limits.from_words`.
        Raises: ValueError: as `Limits.from_words`.
        Example:
            >>> careful = loan.population(100, 100, 100).with_limits({"income": "only up"})
            >>> careful.limits.fall
            tensor([nan, nan, 0., nan], dtype=torch.float64)
        """
        limits = Limits.from_words(said, self.actionable, self.categories)
        return replace(self, limits=limits)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the D features.

        Example:
            >>> loan.population(100, 100, 100).features[:3]
            ('gender', 'age', 'education')
        """
        return tuple(self.kinds)

    @property
    def actionable(self) -> tuple[str, ...]:
        """Names of the K globally actionable features (A), in the order of the features.

        Example:
            >>> loan.population(100, 100, 100).actionable
            ('loan_amount', 'loan_duration', 'income', 'savings')
        """
        return tuple(name for name, kind in self.kinds.items() if kind == "actionable")

    @property
    def actionable_index(self) -> list[int]:
        """Columns of the globally actionable features.

        Example:
            >>> loan.population(100, 100, 100).actionable_index
            [3, 4, 5, 6]
        """
        return [self.features.index(name) for name in self.actionable]

    @cached_property
    def low(self) -> Tensor:
        """Smallest standardised value of each feature, with shape (D,).

        It is taken over the recourse training split.

        Example:
            >>> population = loan.population(100, 100, 100)
            >>> bool((population.low < population.high).all())
            True
        """
        return self.x["recourse/train"].amin(0)

    @cached_property
    def high(self) -> Tensor:
        """Largest standardised value of each feature, with shape (D,); see `low`.

        Example:
            >>> loan.population(100, 100, 100).high.shape
            torch.Size([7])
        """
        return self.x["recourse/train"].amax(0)

    def in_units(self, x: Tensor) -> Tensor:
        """Return standardised features (*, D) in the units of the data.

        Example:
            >>> population = loan.population(100, 100, 100)
            >>> bool((population.in_units(torch.zeros(7)) == population.mean.float()).all())
            True
        """
        return x * self.std.to(x) + self.mean.to(x)

    def standardised(self, frame: pd.DataFrame) -> Tensor:
        """Return people of a table as solvers take them, with shape (N, D).

        Arguments:
            frame: In the units of the data, with a column for each
                feature; other columns are left out.
        Raises: ValueError: as `from_frame` of such a table.
        Example:
            >>> population = loan.population(100, 100, 100)
            >>> mean = pd.DataFrame([population.mean.tolist()], columns=population.features)
            >>> population.standardised(mean)
            tensor([[0., 0., 0., 0., 0., 0., 0.]])
        """
        frame = frames.as_codes(frame, self.categories)
        values = torch.from_numpy(frames.values(frame, self.features))
        return ((values - self.mean) / self.std).to(self.low.dtype)

    def as_recorded(self, x: Tensor) -> Tensor:
        """Return standardised features (*, D) as a table would hold them, in float64.

        They are in the units of the data, and whole numbers are
        whole.

        Example:
            >>> population = loan.population(100, 100, 100)
            >>> recorded = population.as_recorded(torch.zeros(7))
            >>> bool((recorded == population.mean).all())
            True
        """
        units = self.in_units(x.double())
        return units if self.whole is None else self.whole(units)

    def possible(self, x: Tensor) -> Tensor:
        """Return the nearest standardised features that a person can have.

        A gradient goes straight through where values are made whole.
        Beyond the range it is zero: to go farther changes nothing.

        Arguments:
            x: Standardised features, with shape (*, D).

        Example:
            >>> x = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
            >>> bool((loan.population(100, 100, 100).possible(x) == x).all())
            True
        """
        if self.whole is None:
            return x
        return (self.whole(self.in_units(x)) - self.mean.to(x)) / self.std.to(x)

    def settled(self, x: Tensor, x_cf: Tensor) -> Tensor:
        """Return counterfactual features as people can have them.

        A value that changed becomes the nearest possible one. One
        that did not is returned unchanged, to the bit.

        Arguments:
            x, x_cf: Standardised features before and after an action,
                with shape (*, D).

        Example:
            >>> x = torch.zeros(7)
            >>> bool((loan.population(100, 100, 100).settled(x, x + 1) == x + 1).all())
            True
        """
        if self.whole is None:
            return x_cf
        after = self.possible(x_cf)
        return torch.where(after == self.possible(x), x, after)

    def counts(self, column: int) -> Tensor:
        """Return every whole number that a feature can be, standardised, with shape (n,).

        They are those within its range in the recourse training
        split; none if it is no count.

        Example:
            >>> loan.population(100, 100, 100).counts(5).shape  # income is a fraction
            torch.Size([0])
        """
        if self.whole is None or not self.whole.is_whole[column]:
            return self.low.new_zeros(0)
        ends = self.as_recorded(torch.stack([self.low, self.high]))[:, column]
        numbers = torch.arange(int(ends[0]), int(ends[1]) + 1, dtype=ends.dtype)
        return ((numbers - self.mean[column]) / self.std[column]).to(self.low)

    def grid(self, feature: str, n_values: int) -> Tensor:
        """Return the values that an exact search tries for a feature, with shape (n,).

        They are standardised and evenly spread over its range in the
        recourse training split. Where a population has whole numbers,
        they are those at evenly spread quantiles instead, each once,
        so that one extreme value does not use up the grid. Of
        categories they are all.

        Raises: ValueError: there is no such feature, or n_values is
            below 2.

        Example:
            >>> loan.population(100, 100, 100).grid("income", 25).shape
            torch.Size([25])
        """
        checks.known("feature", [feature], self.features)
        if n_values < 2:
            raise ValueError(f"n_values is {n_values}: a grid needs at least its two ends.")
        column = self.features.index(feature)
        if feature in self.categories:
            return self.counts(column)
        if self.whole is None:
            return torch.linspace(
                float(self.low[column]),
                float(self.high[column]),
                n_values,
                dtype=self.low.dtype,
            )
        people = self.x["recourse/train"]
        shares = torch.linspace(0, 1, n_values, dtype=torch.float64)
        values = torch.quantile(self.possible(people)[:, column].double(), shares)
        spread = people.mean(0).expand(n_values, -1).clone()
        spread[:, column] = values.to(people)
        return self.possible(spread)[:, column].unique()


def split(x: Tensor, names_and_shares: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Return consecutive row numbers of x, by name, with the given shares.

    Example:
        >>> parts = split(torch.zeros(4), FOR_RECOURSE)
        >>> {name: rows.tolist() for name, rows in parts.items()}
        {'train': [0, 1], 'validation': [2], 'test': [3]}
    """
    stops = (np.cumsum(list(names_and_shares.values())) * len(x)).round().astype(int)
    return dict(zip(names_and_shares, np.split(np.arange(len(x)), stops[:-1]), strict=True))


def _check_differ(features: Sequence[str], people: Tensor) -> None:
    """Raise ValueError if some feature is the same for all of these people (N, D)."""
    if len(people) == 0:
        raise ValueError("There is nobody: expected a row a person.")
    is_constant = (people.amax(0) == people.amin(0)).tolist()
    if constant := [f for f, same in zip(features, is_constant, strict=True) if same]:
        raise ValueError(
            f"{', '.join(constant)} has the same value for everyone. Leave the feature "
            "out, or use more people."
        )


def _check_dummies(frame: pd.DataFrame, kinds: Mapping[str, str]) -> None:
    """Raise ValueError if one of several is given as columns that can be acted on."""
    for group in frames.dummies(frame, list(kinds)):
        if any(kinds[name] == "actionable" for name in group):
            raise ValueError(
                f"{', '.join(group)} are 0 and 1, and nobody has two: one category each. "
                "Acted on one by one they leave people with none or several. Give them as "
                "one column of words, for instance by frame[names].idxmax(axis=1), or make "
                "none of them actionable."
            )


def for_every_use(parts: Mapping[str, T]) -> dict[str, T]:
    """Return one sample's parts as the splits of the classifier, the flow and recourse.

    Example:
        >>> for_every_use({"train": 1})
        {'classifier/train': 1, 'flow/train': 1, 'recourse/train': 1}
    """
    return {f"{use}/{part}": own for use in USES for part, own in parts.items()}


def check_enough(what: str, n_people: int) -> None:
    """Raise ValueError if so many people can't fill three splits.

    Example:
        >>> check_enough("n_flow", 3)
        Traceback (most recent call last):
        ...
        ValueError: n_flow is 3: at least 20 people are needed to fill three splits.
    """
    if n_people < FEWEST:
        raise ValueError(
            f"{what} is {n_people}: at least {FEWEST} people are needed to fill three "
            "splits."
        )
