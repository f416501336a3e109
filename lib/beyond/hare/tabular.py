"""The data sets of the HARE paper: people in [0, 1], without a causal graph.

Adult and COMPAS come with the repository (`data/README.md`); Give Me Some Credit is
built from the reader's own cs-training.csv.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lib import io
from lib.io import DATA
from lib.paper import gmsc

SPLITS = ("train", "test")
COLUMNS = DATA / "hare_columns.yaml"
MOST_DEVIATIONS = 3.0  # rows with a value so far from the mean are dropped (Credit)


@dataclass(frozen=True)
class Tabular:
    """Hold a data set whose D features all lie in [0, 1].

    Arguments:
        name: "adult", "compas", "credit", or that of your own.
        features: Names of the D features.
        is_continuous: Which are numbers, with shape (D,); the others are 0 or 1.
        is_immutable: Which nobody can change, with shape (D,).
        low, high: What 0 and 1 stand for, in the units of the data, with shape (D,).
        x: Features of the splits "train" and "test", float64, with shape (N, D).
        y: Labels of the same people, bool, with shape (N,).
    Raises: ValueError: no feature is free.
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
        if not self.is_free.any():
            raise ValueError(
                "No feature is free: expected one or more that are continuous and not "
                "immutable, or nothing can be recommended."
            )

    @property
    def is_free(self) -> Tensor:
        """Which features recourse may move: continuous and mutable ones, (D,), bool."""
        return self.is_continuous & ~self.is_immutable

    def refused(self, accepts: Callable[[Tensor], Tensor], n_people: int) -> Tensor:
        """Return the first refused people of the test split, in the order of the file.

        Arguments:
            accepts: From features (N, D) to whether the decision is positive (N,), for
                instance `Classifier.accepts`.
            n_people: So many at most; where fewer are refused, all of them.
        Returns: With shape (n, D).
        Raises: ValueError: nobody is refused.
        """
        people = self.x["test"][~accepts(self.x["test"])][:n_people]
        if len(people) == 0:
            raise ValueError(
                f"Nobody in the test split of {self.name} is refused: recourse is for "
                "refused people. Fit the classifier with another seed."
            )
        return people


def adult() -> Tabular:
    """Return UCI Adult: 13 features of 48,832 people; positive is above 50,000 dollars.

    Source: `data/README.md`; features as in section 5 of HARE (TMLR 2025).
    """
    return _bundled("adult")


def compas() -> Tabular:
    """Return COMPAS: 7 features of 6,172 people; positive is a score that is not "High".

    two_year_recid says whether somebody offended again, which nobody can choose
    afterwards. It counts as mutable because it does so in the paper.

    Source: `data/README.md`; features as in section 5 of HARE (TMLR 2025).
    """
    return _bundled("compas")


def credit(path: str | Path) -> Tabular:
    """Return Give Me Some Credit: 10 features of 115,527 people; positive is paid back.

    Rows with missing values are dropped, then rows with a feature 3 standard deviations
    or more from its mean. That is *not* the cleaning of `gmsc.clean`.

    Arguments:
        path: Where cs-training.csv (or its zip) lies; `gmsc.find` looks for it.
    Raises: ValueError: there is no file, or it is not the data.
    Source: CARLA's cf-data, whose test split this equals to 9e-16.
    """
    raw = gmsc.read(path).dropna().rename(columns=gmsc.COLUMNS)
    values = raw[io.load_yaml(COLUMNS)["credit"]["continuous"]]
    spread = values.std(ddof=0)
    kept = raw[((values - values.mean()).abs() < MOST_DEVIATIONS * spread).all(axis=1)]
    kept = kept.assign(paid_back=1 - kept[gmsc.LABEL])
    index = io.read_csv(DATA / "give_me_some_credit_test_index.csv.gz", header=None)
    rows = index[0] + 1
    frames = {"train": kept.drop(index=rows), "test": kept.loc[rows]}
    return from_frames("credit", frames)


def _bundled(name: str) -> Tabular:
    """Return a data set that comes with the repository."""
    return from_frames(
        name, {split: io.read_csv(DATA / f"{name}_{split}.csv.gz") for split in SPLITS}
    )


def from_frames(name: str, frames: Mapping[str, pd.DataFrame]) -> Tabular:
    """Return a data set from a table for each split, scaled by both together.

    Arguments:
        name: Of an entry of data/hare_columns.yaml, which says what the columns are.
        frames: The splits "train" and "test", without missing values.
    """
    columns = io.load_yaml(COLUMNS)[name]
    features = [*columns["continuous"], *columns["binary"]]
    both = pd.concat([frames[split] for split in SPLITS], keys=SPLITS)
    second = {column: both[column] == both[column].max() for column in columns["binary"]}
    numbers = both.assign(**second)[features].astype(float)
    low, high = numbers.min(), numbers.max()
    scaled, labels = (numbers - low) / (high - low), both[columns["label"]] == 1
    return Tabular(
        name,
        tuple(features),
        torch.tensor([feature in columns["continuous"] for feature in features]),
        torch.tensor([feature in columns["immutable"] for feature in features]),
        torch.tensor(low.to_numpy()),
        torch.tensor(high.to_numpy()),
        {split: torch.tensor(scaled.loc[split].to_numpy()) for split in SPLITS},
        {split: torch.tensor(labels.loc[split].to_numpy()) for split in SPLITS},
    )
