"""What small audits would have seen: audits simulated on people whose gaps are known."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import pandas as pd

from lib.base import checks
from lib.paper.fairness.bootstrap import FEWEST, TOO_FEW, check_groups
from lib.paper.fairness.measures import MEASURES, Mean

STANDARD_ERRORS = 1.96  # on either side, of an audit's interval


def audits(
    answers: pd.DataFrame,
    measure: str,
    chances: pd.DataFrame,
    pair: Sequence[np.ndarray],
    sizes: Sequence[int],
    n_audits: int,
    seed: int,
) -> pd.DataFrame:
    """Return what audits of so many people would have reported of a difference.

    Each audit draws people with replacement from the two groups, as
    if these were everyone there is, and for each person one set of
    features. Its interval is the difference plus and minus 1.96
    standard errors of two means over whoever is counted.

    Arguments:
        answers: Of one method and one network.
        measure: Name of one of `MEASURES`.
        chances: A row for each person, a column for each set.
        pair: Row numbers of the two groups.
        sizes: How many people an audit draws from each group.
        n_audits: How many audits of each size.
        seed: Of all draws.
    Returns: Columns n_people, width, seen, too_few. seen is the share
        of audits whose interval leaves out zero, too_few the share
        that can give no interval, width the mean of the intervals
        given ("too few" if there are none).
    Raises: ValueError: the measure is unknown, a number is not above
        zero, or the answers, the chances and the groups do not fit
        together.
    Source: Cochran, Sampling Techniques, chapter 6, for the standard
        error of a mean over a random number of people.
    """
    checks.known("measure", [measure], tuple(MEASURES))
    checks.positive(n_audits=n_audits)
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
    total = np.stack([one.total[0] for one in alone], 1)  # (N, S)
    counted = np.stack([one.counted[0] for one in alone], 1)
    steps = chances.to_numpy().cumsum(1)[:, :-1]
    rows = []
    for n_people in sizes:
        halves = []
        for group in pair:
            who = rng.choice(group, (n_audits, n_people))
            own = (rng.random((n_audits, n_people, 1)) >= steps[who]).sum(-1)
            halves.append(_half(total[who, own], counted[who, own]))
        (first, error, n_first), (second, other, n_second) = halves
        is_given = np.minimum(n_first, n_second) >= FEWEST
        away = (STANDARD_ERRORS * np.hypot(error, other))[is_given]
        gap = (first - second)[is_given]
        row = {
            "n_people": n_people,
            "width": float(2 * away.mean()) if is_given.any() else TOO_FEW,
            "seen": float((np.abs(gap) > away).sum() / n_audits),
            "too_few": float(1 - is_given.mean()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _half(
    total: np.ndarray, counted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each audit's mean of one group, its standard error, and how many count.

    Arguments:
        total, counted: What each person adds above and below the
            line, with shape (audits, n).
    """
    n = counted.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):  # nobody counts
        mean = total.sum(1) / n
        moves = total - mean[:, None] * counted
        error = np.sqrt((moves**2).sum(1) * n / (n - 1)) / n
    return mean, error, n
