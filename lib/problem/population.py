"""Who applies: features and what may be done about them, splits, the scaler, the labels."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.causal.graph import Graph
from lib.causal.world import World

FOR_RECOURSE = {"train": 0.5, "validation": 0.25, "test": 0.25}
KINDS = ("actionable", "mutable", "immutable")


@dataclass(frozen=True)
class Population:
    """Applicants with D features, all in standard deviations from the mean of the recourse training split.

    Arguments:
        name: What the population is called in tables.
        kinds: Of each feature, in causal order: "actionable" (a person may act on it), "mutable" (may only
            move as a consequence) or "immutable".
        graph: The causal graph over these features.
        mean, std: The scaler, in the units of the data, with shape (D,).
        x: Standardised features of each split ("classifier/train", "flow/validation", "recourse/test", ...), (N, D).
        y: Whether the loan was paid back, for each split, with shape (N,).
        whole: From features in the units of the data (N, D) to the nearest that a person can have, for instance whole
            numbers of credit lines; None: every value is possible.
        truth: The true SCM, in standardised units, where it is known.
    """

    name: str
    kinds: Mapping[str, str]
    graph: Graph
    mean: Tensor
    std: Tensor
    x: Mapping[str, Tensor]
    y: Mapping[str, Tensor]
    whole: Callable[[Tensor], Tensor] | None = None
    truth: World | None = None

    def __post_init__(self) -> None:
        checks.known("kind of feature", self.kinds.values(), KINDS)
        if tuple(self.kinds) != self.graph.features:
            raise ValueError(
                f"The kinds name {', '.join(self.kinds)}; the graph names {', '.join(self.graph.features)}. "
                "Both must list the same features in the same order."
            )
        for split, x in self.x.items():
            checks.people(f"split {split!r}", x, self.features)
            if len(x) == 0:
                raise ValueError(f"Split {split!r} is empty: ask for more people.")

    @cached_property
    def fingerprint(self) -> str:
        """Digest of features, kinds and scaler; travels with every model fitted to them.

        The scaler counts to six digits, so that another processor gives the same digest.
        """
        scaler = [f"{value:.5e}" for value in (*self.mean.tolist(), *self.std.tolist())]
        told_apart = json.dumps([list(self.kinds.items()), scaler])
        return hashlib.sha256(told_apart.encode()).hexdigest()[:16]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    @property
    def actionable(self) -> tuple[str, ...]:
        """Names of the K globally actionable features (A), in causal order."""
        return tuple(name for name, kind in self.kinds.items() if kind == "actionable")

    @property
    def actionable_index(self) -> list[int]:
        """Columns of the globally actionable features."""
        return [self.features.index(name) for name in self.actionable]

    @property
    def low(self) -> Tensor:
        """Smallest standardised value of each feature in the recourse training split, with shape (D,)."""
        return self.x["recourse/train"].amin(0)

    @property
    def high(self) -> Tensor:
        """Largest standardised value of each feature in the recourse training split, with shape (D,)."""
        return self.x["recourse/train"].amax(0)

    def in_units(self, x: Tensor) -> Tensor:
        """Standardised features (*, D) in the units of the data."""
        return x * self.std.to(x) + self.mean.to(x)

    def possible(self, x: Tensor) -> Tensor:
        """The nearest standardised features that a person can have; both with shape (*, D)."""
        if self.whole is None:
            return x
        return (self.whole(self.in_units(x)) - self.mean.to(x)) / self.std.to(x)

    def settled(self, x: Tensor, x_cf: Tensor) -> Tensor:
        """Counterfactual features as people can have them: what is another value is made possible, the rest stays to the bit."""
        if self.whole is None:
            return x_cf
        after = self.possible(x_cf)
        return torch.where(after == self.possible(x), x, after)

    def grid(self, feature: str, n_values: int) -> Tensor:
        """Values that an exact search tries for a feature, standardised, with shape (n,).

        Evenly spread over its range in the recourse training split; where only some values are possible, these at evenly
        spread quantiles instead, each once, so that 54 real-estate loans of one person do not use up the grid.
        """
        column = self.features.index(feature)
        if self.whole is None:
            return torch.linspace(self.low[column], self.high[column], n_values)
        people = self.x["recourse/train"]
        shares = torch.linspace(0, 1, n_values, dtype=torch.float64)
        spread = people.mean(0).expand(n_values, -1).clone()
        spread[:, column] = torch.quantile(
            self.possible(people)[:, column].double(), shares
        ).to(people)
        return self.possible(spread)[:, column].unique()


def split(x: Tensor, names_and_shares: Mapping[str, float]) -> dict[str, Tensor]:
    """Consecutive parts of the rows of x, with the given shares."""
    stops = (np.cumsum(list(names_and_shares.values())) * len(x)).round().astype(int)
    return dict(zip(names_and_shares, np.split(np.arange(len(x)), stops[:-1]), strict=True))
