"""What an audit averages: measures of recommendations, and their means over people.

Answers are rows of `metrics.per_person` as `tables.judged` gives
them: one for each method, network (the column member), person (0 to N
- 1) and set of features that the person may be able to act on (the
column setting). Chances say how likely each
set is for each person (`scenarios.Scenario.chances`). A mean is the
expected sum over all draws of sets, divided by the expected number of
people counted; each network has its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Measure:
    """What is averaged, and over whom.

    Arguments:
        column: Of the answers.
        over: Column that is true for those who are counted; None:
            everyone.
        worse: 1 if more of it is worse for a person, -1 if less is.
        has_zero: Whether it has a natural zero, so that ratios mean
            something.
    """

    column: str
    over: str | None
    worse: int
    has_zero: bool


MEASURES = {
    "cost": Measure("cost", "valid", 1, True),
    "log-density": Measure("log_p_cf", "valid", -1, False),
    "joint": Measure("joint", None, -1, True),
    "weighted cost": Measure("weighted_cost", "valid", 1, True),
    "hap": Measure("hard_action", "has_recourse", 1, True),
}
SHARES = ("joint", "hard_action")  # columns of true and false


@dataclass(frozen=True)
class Mean:
    """Mean of a measure over some people, for each of M networks.

    Arguments:
        total, counted: What each person adds above and below the
            line, with shape (M, N).
        reported: Which of the networks is the reported one.

    Example:
        >>> mean = Mean(np.array([[0.2, 0.0, 0.4]]), np.array([[1.0, 0.0, 1.0]]))
        >>> mean(np.array([0, 1, 2])).round(3)  # the second person isn't counted
        array([[0.3]])
    """

    total: np.ndarray
    counted: np.ndarray
    reported: int = 0

    @classmethod
    def of(cls, answers: pd.DataFrame, measure: Measure, chances: pd.DataFrame) -> "Mean":
        """Return the mean over people and over the sets of features that they may have.

        Arguments:
            answers: Of one method. Networks are told apart by the
                column member; without it there is one.
            chances: A row for each person, a column for each set.
        Raises: ValueError: a column is missing; a network has no
            answer for a person and a set, or several; a value that
            counts is not finite; more than one network is reported.

        Example:
            >>> answers = pd.DataFrame(
            ...     {"setting": ["income", "savings"], "joint": [True, False], "person": 0}
            ... )
            >>> chances = pd.DataFrame({"income": [0.7], "savings": [0.3]})
            >>> Mean.of(answers, MEASURES["joint"], chances)(np.array([0]))
            array([[0.7]])
        """
        networks = [answers]
        if "member" in answers:
            networks = [network for _, network in answers.groupby("member", sort=True)]
        parts = [_parts(network, measure, chances) for network in networks]
        total, counted = (np.stack(arrays) for arrays in zip(*parts, strict=True))
        is_reported = [
            "reported" not in network or network.reported.any() for network in networks
        ]
        if sum(is_reported) > 1:
            raise ValueError(
                f"{sum(is_reported)} networks are marked as reported: expected one. Are "
                "there answers of several methods?"
            )
        return cls(total, counted, int(np.argmax(is_reported)))

    def __call__(self, who: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """Return each network's mean over people with these row numbers, (R, M).

        Arguments:
            who: Row numbers, with shape (n,).
            counts: How often each of them counts, with shape (R, n);
                left out: once, with R = 1.
        """
        if counts is None:
            counts = np.ones((1, len(who)))
        return (counts @ self.total[:, who].T) / (counts @ self.counted[:, who].T)

    def n_counted(self, who: np.ndarray) -> int:
        """Return how many of them the mean is over; an expected number, rounded.

        Of several networks it is the fewest.
        """
        return round(self.counted[:, who].sum(1).min())

    def n_successes(self, who: np.ndarray) -> int:
        """Return for how many of them a share is true; an expected number, rounded.

        Of several networks it is the fewest.
        """
        return round(self.total[:, who].sum(1).min())

    def n_in_ratio(self, who: np.ndarray, measure: Measure) -> int:
        """Return how many of them a ratio rests on; an expected number, rounded.

        For a share, these are the people who succeed. Otherwise they
        are all who are counted, or nobody if the measure is zero for
        all of them.
        """
        if measure.column in SHARES:
            return self.n_successes(who)
        return self.n_counted(who) * bool((self.total[:, who].sum(1) != 0).all())


def _parts(
    answers: pd.DataFrame, measure: Measure, chances: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each person adds above and below the line for one network, (N,) each."""
    value = wide(answers, measure.column, chances)
    weight = chances.to_numpy() * (
        1.0 if measure.over is None else wide(answers, measure.over, chances)
    )
    if not np.isfinite(value[weight > 0]).all():
        person = np.argwhere((weight > 0) & ~np.isfinite(value))[0, 0]
        raise ValueError(
            f"{measure.column} of person {person} is NaN or infinite. Leave such "
            "people out, or find out why."
        )
    return np.where(weight > 0, weight * value, 0.0).sum(1), weight.sum(1)


def wide(answers: pd.DataFrame, column: str, chances: pd.DataFrame) -> np.ndarray:
    """Return a column of the answers for each person and each set that has a chance.

    Arguments:
        answers: Of one method and one network.
        chances: A row for each of N people, a column for each of S
            sets.
    Returns: Values with shape (N, S).
    Raises: ValueError: a column is missing; a chance is NaN or below
        zero; a person has no answer for one of the sets, or several.
    """
    needs(answers, ["person", "setting", column])
    if not (np.isfinite(chances).all(axis=None) and (chances >= 0).all(axis=None)):
        raise ValueError("chances must be finite and not below zero, one for each set.")
    rows = answers[answers.setting.isin(chances.columns)]
    person, column_of = rows.person.to_numpy(), chances.columns.get_indexer(rows.setting)
    times = np.zeros(chances.shape, dtype=int)
    known = (person >= 0) & (person < len(chances))
    np.add.at(times, (person[known], column_of[known]), 1)
    if not known.all() or (times != 1).any():
        raise ValueError(
            f"Expected one answer for each of {chances.shape[0]} people and "
            f"{chances.shape[1]} sets ({'; '.join(chances)}), got {len(rows)}. Are there "
            "answers of several seeds or methods, or of other people?"
        )
    values = np.empty(chances.shape)
    values[person, column_of] = rows[column]
    return values


def needs(answers: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise ValueError unless there are answers, with these columns."""
    if missing := [name for name in columns if name not in answers]:
        raise ValueError(
            f"The answers have no column {', '.join(missing)}; "
            f"found {', '.join(map(str, answers.columns)) or 'nothing'}."
        )
    if len(answers) == 0:
        raise ValueError("There are no answers, so there is nothing to average.")
