"""Who applies: features and what may be done about them, splits, the scaler, the labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, gmsc, scm
from lib.world import World

FOR_RECOURSE = {"train": 0.5, "validation": 0.25, "test": 0.25}
KINDS = ("actionable", "mutable", "immutable")


@dataclass(frozen=True)
class Population:
    """Applicants with D features, all in standard deviations from the mean of the recourse training split.

    Arguments:
        name: What the population is called in tables.
        kinds: Of each feature, in causal order: "actionable" (a person may act on it), "mutable" (may only
            move as a consequence) or "immutable".
        graph: The causal graph, as a world; the true SCM in standardised units where one is known.
        mean, std: The scaler, in the units of the data, with shape (D,).
        x: Standardised features of each split ("classifier/train", "flow/validation", "recourse/test", ...), (N, D).
        y: Whether the loan was paid back, for each split, with shape (N,).
        whole: From features in the units of the data (N, D) to the nearest that a person can have, for instance whole
            numbers of credit lines; None: every value is possible.
    """

    name: str
    kinds: Mapping[str, str]
    graph: World
    mean: Tensor
    std: Tensor
    x: Mapping[str, Tensor]
    y: Mapping[str, Tensor]
    whole: Callable[[Tensor], Tensor] | None = None

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
        spread[:, column] = torch.quantile(self.possible(people)[:, column].double(), shares).to(people)
        return self.possible(spread)[:, column].unique()

    @property
    def truth(self) -> World | None:
        """The true equations, where they are known."""
        return self.graph if isinstance(self.graph, scm.SCM) else None


def _split(x: Tensor, names_and_shares: Mapping[str, float]) -> dict[str, Tensor]:
    """Consecutive parts of the rows of x, with the given shares."""
    stops = (np.cumsum(list(names_and_shares.values())) * len(x)).round().astype(int)
    return dict(zip(names_and_shares, np.split(np.arange(len(x)), stops[:-1]), strict=True))


def loan(
    n_classifier: int = 20_000, n_flow: int = 25_000, n_recourse: int = 20_000, seed: int = 0
) -> Population:
    """The Loan population: three independent draws, for the classifier, the flow and recourse.

    Arguments:
        n_classifier, n_flow: People drawn for each fit; split 0.8 / 0.1 / 0.1 into train, validation, test.
        n_recourse: People drawn for recourse; split 0.5 / 0.25 / 0.25.
        seed: Of all three draws.
    Raises: ValueError: a size is too small to be split.
    Source: section 5.1 and appendix C of arXiv:2604.08030; sizes as in the public code of CARMA.
    """
    sizes = {"classifier": n_classifier, "flow": n_flow, "recourse": n_recourse}
    for draw, n_people in sizes.items():
        if n_people < 20:
            raise ValueError(f"n_{draw} is {n_people}: at least 20 people are needed to fill three splits.")
    model = scm.loan()
    for_fits = {"train": 0.8, "validation": 0.1, "test": 0.1}
    in_units: dict[str, Tensor] = {}
    for stream, (draw, n_people) in zip(np.random.SeedSequence(seed).spawn(3), sizes.items(), strict=True):
        drawn = model.sample(n_people, np.random.default_rng(stream))
        for part, rows in _split(drawn, FOR_RECOURSE if draw == "recourse" else for_fits).items():
            in_units[f"{draw}/{part}"] = drawn[rows]
    mean = in_units["recourse/train"].mean(0)
    std = torch.from_numpy(in_units["recourse/train"].numpy().std(0))
    return Population(
        name="Loan",
        kinds={
            "gender": "immutable",
            "age": "immutable",
            "education": "mutable",
            "loan_amount": "actionable",
            "loan_duration": "actionable",
            "income": "actionable",
            "savings": "actionable",
        },
        graph=model.standardised(mean, std),
        mean=mean,
        std=std,
        x={split: ((x - mean) / std).float() for split, x in in_units.items()},
        y={split: scm.loan_label(x) for split, x in in_units.items()},
    )


def give_me_some_credit(people: pd.DataFrame, edges: pd.DataFrame, seed: int = 0) -> Population:
    """The Give Me Some Credit population: one sample, whose splits serve the classifier, the flow and recourse alike.

    Arguments:
        people: As `gmsc.clean` gives them; or a stand-in with the same columns.
        edges: The causal graph, with the columns parent and child, called as in the csv.
        seed: Of who is in which split, and of the noise that spreads counts and atoms over cells.
    Raises: ValueError: too few people to be split.
    Source: sections 5.2 and C.3 of arXiv:2604.08030; graph of PEAR (De Toni et al.); spreading is ours.
    """
    if len(people) < 20:
        raise ValueError(f"There are {len(people)} people: at least 20 are needed to fill three splits.")
    order, noise = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    people = people.iloc[order.permutation(len(people))]
    in_units = torch.from_numpy(gmsc.dequantised(people, noise))
    paid_back = torch.from_numpy(people.paid_back.to_numpy(copy=True))
    rows = _split(in_units, FOR_RECOURSE)
    mean = in_units[rows["train"]].mean(0)
    std = torch.from_numpy(in_units[rows["train"]].numpy().std(0))
    x = {part: ((in_units[own] - mean) / std).float() for part, own in rows.items()}
    y = {part: paid_back[own] for part, own in rows.items()}
    kinds = dict.fromkeys(gmsc.COLUMNS, "actionable") | dict.fromkeys(("age", "dependents"), "immutable")
    kinds |= dict.fromkeys(("debt_ratio", *gmsc.LATENESS), "mutable")
    return Population(
        name="Give Me Some Credit",
        kinds=kinds,
        graph=World(gmsc.parents(edges)),
        mean=mean,
        std=std,
        x={f"{use}/{part}": own for use in ("classifier", "flow", "recourse") for part, own in x.items()},
        y={f"{use}/{part}": own for use in ("classifier", "flow", "recourse") for part, own in y.items()},
        whole=gmsc.whole,
    )
