"""What small audits would have seen: audits simulated on people whose gaps are known."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from lib.base import checks
from lib.studies.audit import gaps_of
from lib.studies.bootstrap import TOO_FEW, answered, check_groups
from lib.studies.measures import MEASURES, Mean


def audits(
    answers: pd.DataFrame,
    measure: str,
    chances: pd.DataFrame,
    pair: Sequence[np.ndarray],
    sizes: Sequence[int],
    n_audits: int,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return what audits of so many people would have reported of a difference.

    Each audit draws people with replacement from the two groups, as
    if these were everyone there is, and for each person one set of
    features.

    Arguments:
        answers: Of one method and one network.
        measure: Name of one of `MEASURES`.
        chances: A row for each person, a column for each set.
        pair: Row numbers of the two groups.
        sizes: How many people an audit draws from each group.
        n_audits: How many audits of each size.
        n_resamples: How often an audit resamples its people for its
            interval.
        seed: Of all draws.
    Returns: Columns n_people, width, seen, too_few. seen is the share
        of audits whose interval leaves out zero, too_few the share
        that can give no interval, width the mean of the intervals
        given ("too few" if there are none).
    Raises: ValueError: the measure is unknown, a number is not above
        zero, or the answers, the chances and the groups do not fit
        together.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> cost = rng.normal(0.3, 0.1, 400) + 0.1 * (np.arange(400) < 200)
        >>> answers = pd.DataFrame({"person": range(400), "cost": cost, "valid": True})
        >>> answers["setting"] = "income"
        >>> chances = pd.DataFrame({"income": np.ones(400)})
        >>> pair = np.arange(200), np.arange(200, 400)
        >>> table = audits(answers, "cost", chances, pair, [20, 40], 20, 100, seed=0)
        >>> table[["n_people", "seen", "too_few"]]
           n_people  seen  too_few
        0        20   0.0      1.0
        1        40   1.0      0.0
    """
    checks.known("measure", [measure], tuple(MEASURES))
    checks.positive(n_audits=n_audits, n_resamples=n_resamples)
    if not sizes or not all(isinstance(n, Integral) and n > 0 for n in sizes):
        raise ValueError(
            f"sizes must be whole numbers of people above zero, one or more, got {sizes!r}."
        )
    if len(pair) != 2:
        raise ValueError(f"Expected row numbers of two groups, got {len(pair)}.")
    check_groups({"first": pair[0], "second": pair[1]}, len(chances))
    rng = np.random.default_rng(seed)
    alone = [
        Mean.of(answers, MEASURES[measure], pd.DataFrame({name: np.ones(len(chances))}))
        for name in chances
    ]
    each = Mean(
        np.stack([one.total for one in alone], 1),
        np.stack([one.counted for one in alone], 1),
    )
    steps = chances.to_numpy().cumsum(1)[:, :-1]
    rows = []
    for n_people in sizes:
        found = [
            _one_audit(each, measure, steps, pair, n_people, n_resamples, rng)
            for _ in range(n_audits)
        ]
        given = [(own["low"], own["high"]) for own in found if own["low"] != TOO_FEW]
        width = float(np.mean([high - low for low, high in given])) if given else TOO_FEW
        row = {
            "n_people": n_people,
            "width": width,
            "seen": sum(low > 0 or high < 0 for low, high in given) / n_audits,
            "too_few": 1 - len(given) / n_audits,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _one_audit(
    each: Mean,
    measure: str,
    steps: np.ndarray,
    pair: Sequence[np.ndarray],
    n_people: int,
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the row of the difference that one audit reports.

    Arguments:
        each: Mean of each set alone, with total and counted of shape
            (N, S).
        steps: Cumulated chances of all sets but the last, with shape
            (N, S - 1).
    """
    halves = {"first": np.arange(n_people), "second": np.arange(n_people, 2 * n_people)}
    who = np.concatenate([rng.choice(group, n_people) for group in pair])
    drawn = (rng.random((len(who), 1)) >= steps[who]).sum(1)
    mean = Mean(each.total[who, drawn], each.counted[who, drawn])
    asked = gaps_of({}, measure, [mean], halves, {"": ("first", "second")})[:1]
    return answered(asked, halves, n_resamples, int(rng.integers(2**31)))[0]
