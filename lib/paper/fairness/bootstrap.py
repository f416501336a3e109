"""How sure one can be of statistics of groups of people, asked of several networks.

Two things were drawn by chance, the people and the networks, and both
are drawn again. All networks answer the same people, so the two
draws are crossed: a resample takes people with replacement, within
the smallest groups that can be told apart, and networks with
replacement, and every network drawn answers every person drawn. The
same resamples serve all questions.

Whoever looks at many intervals will find some that leave out zero by
chance. So besides the interval of each question alone there is one
that holds for all questions asked at once: estimate plus and minus c
standard errors, with the one c for which in 95 % of the resamples no
statistic at all is further away (a max-t band).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib import checks

FEWEST = 30  # people that a statistic must be of for an interval to be given
TOO_FEW = "too few"
LEVEL = 0.95
NO_SPREAD = 1e-9  # standard errors below this are rounding
ENDS = ("low", "high", "low_alone", "high_alone")

Groups = Mapping[str, np.ndarray]  # row numbers of the people in each group


@dataclass(frozen=True)
class Question:
    """A statistic of one or two groups of people whose interval is wanted.

    Arguments:
        row: What its row of a table says already. One entry is
            n_counted, the number of people that it is of.
        groups: Names of the groups, in the order in which the
            statistic takes them.
        statistic: From how often each person of a group counts, (R,
            n) for each group, to one value for each network, (R, M).
        is_ratio: Whether equal steps are equal ratios: its error is
            then measured on the log scale.
        reported: Which of the M networks is the reported one.
    """

    row: dict[str, Any]
    groups: tuple[str, ...]
    statistic: Callable[..., np.ndarray]
    is_ratio: bool = False
    reported: int = 0


def answered(
    asked: Sequence[Question], groups: Groups, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Return the questions' rows with their estimates and intervals.

    Of M networks M - 1 are drawn, so that the resampled mean spreads
    as much as the mean of M networks does (Rao and Wu). A single
    network is not drawn.

    Arguments:
        groups: Row numbers of the people in each group.
        n_resamples: How often people and networks are resampled.
        seed: Of the resampling.
    Returns: The rows, then estimate (the mean over networks),
        reported (of the reported network), lowest and highest (of the
        networks), low and high (95 % for all questions at once),
        low_alone and high_alone (95 % percentile interval of the
        question alone). The ends are the words "too few" if fewer
        than `FEWEST` people are counted, and all columns are if there
        is no one.
    Raises: ValueError: n_resamples is not above zero.
    Source: Owen, The pigeonhole bootstrap, 2007, for crossed draws;
        Rao and Wu, Resampling inference with complex survey data,
        1988; Montiel Olea and Plagborg-Moller, Simultaneous
        confidence bands, 2019, for the band.

    Example:
        >>> cost = np.random.default_rng(0).normal(0.3, 0.1, (1, 100))
        >>> def mean(counts):
        ...     return counts @ cost.T / counts.sum(1, keepdims=True)
        >>> asked = Question({"n_counted": 100}, ("all",), mean)
        >>> table = answered([asked], {"all": np.arange(100)}, 500, seed=0)
        >>> table[["estimate", "low_alone", "high_alone"]].round(2)
           estimate  low_alone  high_alone
        0      0.31       0.29        0.33
    """
    checks.positive(n_resamples=n_resamples)
    rng = np.random.default_rng(seed)
    people = _people(groups, n_resamples, rng)
    networks: dict[int, np.ndarray] = {}
    rows, drawn, places = [], [], []
    for question in asked:
        n_counted = question.row["n_counted"]
        if not n_counted:
            names = ("estimate", "reported", "lowest", "highest", *ENDS)
            rows.append(question.row | dict.fromkeys(names, TOO_FEW))
            continue
        ones = (np.ones((1, len(groups[name]))) for name in question.groups)
        values = question.statistic(*ones)[0]
        rows.append(
            question.row | _of_networks(values, question) | dict.fromkeys(ENDS, TOO_FEW)
        )
        if n_counted >= FEWEST:
            if len(values) not in networks:
                networks[len(values)] = _networks(len(values), n_resamples, rng)
            resampled = question.statistic(*(people[name] for name in question.groups))
            drawn.append((resampled * networks[len(values)]).sum(1))
            places.append(len(rows) - 1)
    if drawn:
        is_ratio = np.array([asked[i].is_ratio for i in places])
        estimates = np.array([rows[i]["estimate"] for i in places])
        for i, ends in zip(
            places, _ends(estimates, np.array(drawn), is_ratio), strict=True
        ):
            rows[i] |= dict(zip(ENDS, map(float, ends), strict=True))
    return pd.DataFrame(rows)


def check_groups(groups: Groups, n_people: int) -> None:
    """Raise ValueError unless every group holds row numbers of people.

    Arguments:
        n_people: How many people there are.
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


def _of_networks(values: np.ndarray, question: Question) -> dict[str, float]:
    """Return what the networks (M,) say, without intervals."""
    return {
        "estimate": float(values.mean()),
        "reported": float(values[question.reported]),
        "lowest": float(values.min()),
        "highest": float(values.max()),
    }


def _people(
    groups: Groups, n_resamples: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return how often each person of each group counts in each resample, (R, n).

    People are drawn within the smallest groups that can be told
    apart, so that groups of one kind stay as large as they are.
    """
    n_people = 1 + max(int(np.max(who)) for who in groups.values())
    is_in = np.zeros((n_people, len(groups)), dtype=int)
    for column, who in enumerate(groups.values()):
        is_in[who, column] = 1
    _, cell = np.unique(is_in, axis=0, return_inverse=True)
    counts = np.zeros((n_resamples, n_people))
    for number in range(cell.max() + 1):
        who = np.flatnonzero(cell == number)
        if is_in[who[0]].any():
            share = np.full(len(who), 1 / len(who))
            counts[:, who] = rng.multinomial(len(who), share, size=n_resamples)
    return {name: counts[:, who] for name, who in groups.items()}


def _networks(n_members: int, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return the share of each network in each resample, with shape (R, M)."""
    if n_members == 1:
        return np.ones((n_resamples, 1))
    n_drawn, share = n_members - 1, np.full(n_members, 1 / n_members)
    return rng.multinomial(n_drawn, share, size=n_resamples) / n_drawn


def _ends(estimates: np.ndarray, drawn: np.ndarray, is_ratio: np.ndarray) -> np.ndarray:
    """Return the `ENDS` of Q questions, with shape (Q, 4).

    Arguments:
        estimates, is_ratio: With shape (Q,).
        drawn: Resampled, with shape (Q, R).
    """
    alone = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    centre, resampled = estimates.copy(), drawn.copy()
    with np.errstate(divide="ignore"):  # a resample without a single success
        centre[is_ratio] = np.log(centre[is_ratio])
        resampled[is_ratio] = np.log(resampled[is_ratio])
    resampled[~np.isfinite(resampled)] = np.nan
    error = np.nanstd(resampled, axis=1)
    has_spread = error > NO_SPREAD * np.maximum(1, np.abs(centre))
    width = np.zeros_like(error)
    if has_spread.any():
        away = np.abs(resampled - centre[:, None])[has_spread] / error[has_spread, None]
        furthest = np.nan_to_num(away).max(0)
        width[has_spread] = np.quantile(furthest, LEVEL) * error[has_spread]
    low, high = centre - width, centre + width
    low[is_ratio], high[is_ratio] = np.exp(low[is_ratio]), np.exp(high[is_ratio])
    return np.column_stack([low, high, *alone])
