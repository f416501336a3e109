"""How sure one can be of a statistic of groups of people: 95 % percentile intervals.

People are resampled with replacement, within each group. The same
resampled people answer all questions about the same groups.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lib.base import checks

FEWEST = 30  # people that a statistic must be of for an interval to be given
TOO_FEW = "too few"

Groups = Mapping[str, np.ndarray]  # row numbers of the people in each group


@dataclass(frozen=True)
class Question:
    """A statistic of one or two groups of people whose interval is wanted.

    Arguments:
        row: What its row of a table says already. One entry is
            n_counted, the number of people that it is of.
        groups: Names of the groups, in the order in which the
            statistic takes them.
        statistic: From row numbers of people, (*, n) for each group,
            to (*,).

    Example:
        >>> cost = np.array([0.1, 0.2, 0.3])
        >>> asked = Question({"n_counted": 3}, ("women",), lambda who: cost[who].mean(-1))
        >>> round(float(asked.statistic(np.array([0, 1, 2]))), 3)
        0.2
    """

    row: dict[str, Any]
    groups: tuple[str, ...]
    statistic: Callable[..., np.ndarray]


def answered(
    asked: Sequence[Question], groups: Groups, n_resamples: int, seed: int
) -> list[dict[str, Any]]:
    """Return the questions' rows with estimate, low and high.

    low and high are the words "too few" if fewer than `FEWEST` people
    are counted, and so is estimate if there are none.

    Arguments:
        groups: Row numbers of the people in each group.
        n_resamples: How often people are resampled.
        seed: Of the resampling; the same for each set of groups.
    Raises: ValueError: n_resamples is not above zero.

    Example:
        >>> cost = np.random.default_rng(0).normal(0.3, 0.1, 100)
        >>> asked = Question({"n_counted": 100}, ("all",), lambda who: cost[who].mean(-1))
        >>> (row,) = answered([asked], {"all": np.arange(100)}, 500, seed=0)
        >>> round(row["estimate"], 2), round(row["low"], 2), round(row["high"], 2)
        (0.31, 0.29, 0.33)
    """
    checks.positive(n_resamples=n_resamples)
    found: dict[int, dict[str, float]] = {}
    for names in dict.fromkeys(question.groups for question in asked):
        own = {
            i: question.statistic
            for i, question in enumerate(asked)
            if question.groups == names and question.row["n_counted"] >= FEWEST
        }
        if own:
            people = tuple(groups[name] for name in names)
            low, high = _interval(people, list(own.values()), n_resamples, seed)
            for i, below, above in zip(own, low, high, strict=True):
                found[i] = {"low": float(below), "high": float(above)}
    rows = []
    for i, question in enumerate(asked):
        who = (groups[name] for name in question.groups)
        counts = bool(question.row["n_counted"])
        estimate = float(question.statistic(*who)) if counts else TOO_FEW
        interval = found.get(i, {"low": TOO_FEW, "high": TOO_FEW})
        rows.append(question.row | {"estimate": estimate} | interval)
    return rows


def check_groups(groups: Groups, n_people: int) -> None:
    """Raise ValueError unless every group holds row numbers of people.

    Arguments:
        n_people: How many people there are.

    Example:
        >>> check_groups({"women": np.array([0, 2]), "men": np.array([1])}, 3)
        >>> check_groups({"women": np.array([], dtype=int)}, 3)
        Traceback (most recent call last):
        ...
        ValueError: There is no one in the group 'women', so nothing can be said of it.
    """
    for group, who in groups.items():
        if len(who) == 0:
            raise ValueError(
                f"There is no one in the group {group!r}, so nothing can be said of it."
            )
        rows = np.asarray(who)
        if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_people:
            raise ValueError(
                f"The group {group!r} must hold row numbers of people, from 0 to "
                f"{n_people - 1}, got {rows.dtype} from {rows.min()} to {rows.max()}. Of a "
                "mask, np.flatnonzero gives the row numbers."
            )


def _interval(
    people: tuple[np.ndarray, ...],
    statistics: Sequence[Callable[..., np.ndarray]],
    n_resamples: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and the high ends of the statistics' intervals."""
    interval = stats.bootstrap(
        people,
        lambda *drawn, axis: np.stack([statistic(*drawn) for statistic in statistics]),
        n_resamples=n_resamples,
        batch=200,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return interval.low, interval.high
