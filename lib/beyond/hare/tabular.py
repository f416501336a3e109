"""The data sets of the HARE paper: people in [0, 1], without a causal graph.

Adult and COMPAS come with the repository (`data/README.md`); Give Me
Some Credit is built from the reader's own cs-training.csv.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, io
from lib.io import DATA
from lib.method import data
from lib.paper import gmsc

SPLITS = ("train", "test")
# Continuous features first, then binary ones: of each data set all of them in this order.
ADULT = (
    ("age", "fnlwgt", "education-num", "capital-gain", "hours-per-week", "capital-loss"),
    (
        "marital-status",
        "native-country",
        "occupation",
        "race",
        "relationship",
        "sex",
        "workclass",
    ),
)
ADULT_IMMUTABLE = ("age", "fnlwgt", "sex", "race", "native-country", "relationship")
COMPAS = (
    ("age", "two_year_recid", "priors_count", "length_of_stay"),
    ("c_charge_degree", "race", "sex"),
)
COMPAS_IMMUTABLE = ("age", "race", "sex")
CREDIT = (
    "RevolvingUtilizationOfUnsecuredLines",
    "age",
    "NumberOfTime30-59DaysPastDueNotWorse",
    "DebtRatio",
    "MonthlyIncome",
    "NumberOfOpenCreditLinesAndLoans",
    "NumberOfTimes90DaysLate",
    "NumberRealEstateLoansOrLines",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfDependents",
)
CREDIT_IMMUTABLE = ("age", "NumberOfDependents")
MOST_DEVIATIONS = 3.0  # rows with a value so far from the mean are dropped (Credit)


@dataclass(frozen=True)
class Tabular:
    """Hold a data set whose D features all lie in [0, 1].

    Arguments:
        name: "adult", "compas", "credit", or that of your own.
        features: Names of the D features.
        is_continuous: Which are numbers, with shape (D,); the others
            are 0 or 1.
        is_immutable: Which nobody can change, with shape (D,).
        low, high: What 0 and 1 stand for, in the units of the data,
            with shape (D,).
        x: Features of the splits "train" and "test", float64, with
            shape (N, D).
        y: Labels of the same people, bool, with shape (N,).
    Raises: ValueError: shapes do not fit, a value lies outside [0,
        1], or no feature is free.
    """

    name: str
    features: tuple[str, ...]
    is_continuous: Tensor
    is_immutable: Tensor
    low: Tensor
    high: Tensor
    x: Mapping[str, Tensor]
    y: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        shape = (len(self.features),)
        for name in ("is_continuous", "is_immutable", "low", "high"):
            checks.shape(name, getattr(self, name), shape)
        if not self.is_free.any():
            raise ValueError(
                "No feature is free: expected one or more that are continuous and not "
                "immutable, or nothing can be recommended."
            )
        if not (self.low < self.high).all():
            same = self.features[int((self.low < self.high).int().argmin())]
            raise ValueError(
                f"{same} has the same value for everyone (low is not below high): drop it."
            )
        checks.one_of("split", self.x, SPLITS)
        for split in SPLITS:
            checks.one_of("split that a table needs:", [split], tuple(self.x))
            x = self.x[split]
            checks.people(f"split {split!r}", x, self.features, torch.float64)
            if ((x < 0) | (x > 1)).any():
                raise ValueError(
                    f"Split {split!r} has values outside [0, 1]: scale by low and high."
                )
            checks.shape(f"y of split {split!r}", self.y[split], x.shape[:-1])

    @property
    def is_free(self) -> Tensor:
        """Which features recourse may move: continuous and mutable ones, (D,), bool."""
        return self.is_continuous & ~self.is_immutable

    @property
    def fingerprint(self) -> str:
        """Digest of features, kinds and scaler; it travels with what is fitted to them."""
        kinds = [self.is_continuous.tolist(), self.is_immutable.tolist()]
        scaler = [f"{value:.5e}" for value in (*self.low.tolist(), *self.high.tolist())]
        text = json.dumps([list(self.features), kinds, scaler])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def refused(self, accepts: Callable[[Tensor], Tensor], n_people: int) -> Tensor:
        """Return the first refused people of the test split, in the order of the file.

        Arguments:
            accepts: From features (N, D) to whether the decision is
                positive (N,), for instance `Classifier.accepts`.
            n_people: So many at most; where fewer are refused, all of
                them.
        Returns: With shape (n, D).
        Raises: ValueError: nobody is refused.
        """
        checks.positive_int(n_people=n_people)
        people = self.x["test"][~accepts(self.x["test"])][:n_people]
        if len(people) == 0:
            raise ValueError(
                f"Nobody in the test split of {self.name} is refused: recourse is for "
                "refused people. Fit the classifier with another seed."
            )
        return people


def adult() -> Tabular:
    """Return UCI Adult: 13 features of 48,832 people; positive is above 50,000 dollars.

    Source: `data/README.md`; features as in section 5 of HARE (TMLR
        2025).
    """
    return from_frames("adult", _bundled("adult"), "income", *ADULT, ADULT_IMMUTABLE)


def compas() -> Tabular:
    """Return COMPAS: 7 features of 6,172 people; positive is a score that is not "High".

    two_year_recid says whether somebody offended again, which nobody
    can choose afterwards. It counts as mutable because it does so in
    the paper.

    Source: `data/README.md`; features as in section 5 of HARE (TMLR
        2025).
    """
    return from_frames("compas", _bundled("compas"), "score", *COMPAS, COMPAS_IMMUTABLE)


def credit(path: str | Path) -> Tabular:
    """Return Give Me Some Credit: 10 features of 115,527 people; positive is paid back.

    Rows with missing values are dropped, then rows with a feature 3
    standard deviations or more from its mean. That is *not* the
    cleaning of `gmsc.clean`.

    Arguments:
        path: Where cs-training.csv (or its zip) lies; `gmsc.find`
            looks for it.
    Raises: ValueError: there is no file, or it is not the data.
    Source: CARLA's cf-data, whose test split this equals to 9e-16.
    """
    raw = gmsc.read(path).dropna().rename(columns=gmsc.COLUMNS)
    values = raw[list(CREDIT)]
    spread = values.std(ddof=0)
    kept = raw[((values - values.mean()).abs() < MOST_DEVIATIONS * spread).all(axis=1)]
    kept = kept.assign(paid_back=1 - kept[gmsc.LABEL])
    index = io.read_csv(DATA / "give_me_some_credit_test_index.csv.gz", header=None)
    rows = index[0] + 1
    frames = {"train": kept.drop(index=rows), "test": kept.loc[rows]}
    return from_frames("credit", frames, "paid_back", CREDIT, (), CREDIT_IMMUTABLE)


def from_frames(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    label: str,
    continuous: tuple[str, ...],
    binary: tuple[str, ...],
    immutable: tuple[str, ...],
) -> Tabular:
    """Return a data set from a table for each split, scaled by both together.

    Arguments:
        frames: The splits "train" and "test".
        label: The column with 1 for a positive decision and 0 for a
            negative one.
        continuous, binary: Names of the features, which keep this
            order. A binary column may hold any two values; the
            alphabetically second becomes 1.
        immutable: Which of them nobody can change.
    Raises: ValueError: a split or column is missing, a value is, or a
        column is not what it is said to be.
    Example:
        >>> people = pd.DataFrame(
        ...     {"income": [1, 3, 5], "city": ["Rome", "Oslo", "Oslo"], "repaid": [0, 1, 1]}
        ... )
        >>> table = from_frames(
        ...     "own", dict.fromkeys(SPLITS, people), "repaid", ("income",), ("city",), ()
        ... )
        >>> table.x["train"].tolist()
        [[0.0, 1.0], [0.5, 0.0], [1.0, 0.0]]
    """
    features = (*continuous, *binary)
    checks.one_of("immutable feature", immutable, features)
    for split in SPLITS:
        checks.one_of("split that a table needs:", [split], tuple(frames))
        checks.one_of("column", [*features, label], tuple(frames[split]))
        if not frames[split].columns.is_unique:
            raise ValueError(f"Split {split!r} has a column twice. Keep one of them.")
        if frames[split][[*features, label]].isna().any(axis=None):
            raise ValueError(f"Split {split!r} misses values: drop those rows first.")
    both = pd.concat([frames[split] for split in SPLITS])
    for column in continuous:
        if not pd.api.types.is_numeric_dtype(both[column]):
            raise ValueError(f"{column} holds {both[column].dtype} values, not numbers.")
    if others := data.not_binary(both[label]):
        raise ValueError(f"{label} holds {others[0]!r}, expected 1 (positive) or 0.")
    second = {column: _second_of(both[column]) for column in binary}
    coded = both.assign(
        **{column: both[column] == value for column, value in second.items()}
    )
    low, high = (getattr(coded[list(features)].astype(float), f)() for f in ("min", "max"))
    scaled = ((coded[list(features)].astype(float) - low) / (high - low)).to_numpy()
    n_train = len(frames["train"])
    rows = {"train": slice(n_train), "test": slice(n_train, None)}
    y = both[label].to_numpy() == 1
    return Tabular(
        name,
        features,
        torch.tensor([f in continuous for f in features]),
        torch.tensor([f in immutable for f in features]),
        torch.from_numpy(low.to_numpy().copy()),
        torch.from_numpy(high.to_numpy().copy()),
        {split: torch.from_numpy(scaled[which].copy()) for split, which in rows.items()},
        {split: torch.from_numpy(y[which].copy()) for split, which in rows.items()},
    )


def _bundled(name: str) -> dict[str, pd.DataFrame]:
    """Return the splits of a data set that comes with the repository."""
    return {split: io.read_csv(DATA / f"{name}_{split}.csv.gz") for split in SPLITS}


def _second_of(column: pd.Series) -> object:
    """Return the alphabetically second of a column's two values."""
    values = np.unique(column)
    if len(values) != 2:
        raise ValueError(
            f"{column.name} holds {len(values)} values, expected two of a binary column."
        )
    return values[1]
