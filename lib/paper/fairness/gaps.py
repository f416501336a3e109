"""Gaps between groups of people, as differences and as ratios, with their intervals.

Everything here is made of two arrays of shape (M, N), a row a network
and a column a person: what each person adds to a sum, and to the
number of people counted. `expected` makes them of recommendations,
`among` keeps a group of people, and `contrast` of `lib.paper.estimates`
gives estimates with standard errors over people and networks.

A difference and a ratio of two groups, by hand:

>>> total, counted = np.array([[1.0, 3.0, 2.0]]), np.ones((1, 3))
>>> women, men = np.array([0, 1]), np.array([2])
>>> gap((total, counted), women, men).value
0.0
>>> gap((total, counted), women, men, "ratio").value
1.0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.paper.estimates import Estimate, contrast

Parts = tuple[np.ndarray, np.ndarray]  # above and below the line of a mean, (M, N) each


@dataclass(frozen=True)
class Ratio:
    """Hold a product of means and of their inverses, estimated on the log scale.

    Arguments:
        log: Estimate of its logarithm.
    """

    log: Estimate

    @property
    def value(self) -> float:
        """Of the ratio; of several networks, their geometric mean."""
        return float(np.exp(self.log.value))

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return float(np.exp(self.log.low))

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return float(np.exp(self.log.high))


def expected(
    answers: pd.DataFrame, column: str, chances: pd.DataFrame, over: str | None = None
) -> Parts:
    """Return what each person adds to a mean, over all draws of what they can act on.

    Arguments:
        answers: Of one method, rows as of `tables.evaluate`: one for
            each network (member), person and set of features
            (setting).
        column: What is averaged.
        chances: How likely each person has each set, a row a person
            and a column a set (`Scenario.chances`).
        over: Column that is true for those who count; None: all do.
    Returns: The expected sum and the expected number who count, for
        each network and person.
    Raises: ValueError: a person has no answer of a network for one of
        the sets, or several; a value that counts is not finite.
    Example:
        >>> answers = pd.DataFrame(
        ...     {"member": 0, "person": 0, "setting": ["a", "b"], "cost": [0.1, 0.4]}
        ... )
        >>> chances = pd.DataFrame({"a": [0.5], "b": [0.5]})
        >>> expected(answers, "cost", chances)
        (array([[0.25]]), array([[1.]]))
    """
    rows = answers[answers.setting.isin(chances.columns)]
    members = np.unique(rows.member)
    index = pd.MultiIndex.from_product(
        [members, range(len(chances)), chances.columns],
        names=["member", "person", "setting"],
    )
    keyed = rows.set_index(["member", "person", "setting"])
    if len(keyed) != len(index) or not index.isin(keyed.index).all():
        raise ValueError(
            f"Expected one answer for each of {len(members)} networks, {len(chances)} "
            f"people and {chances.shape[1]} sets, got {len(rows)}. Are there answers of "
            "several methods, or of other people?"
        )
    keyed = keyed.reindex(index)
    shape = (len(members), *chances.shape)
    value = keyed[column].to_numpy(dtype=float).reshape(shape)
    weight = np.broadcast_to(chances.to_numpy(), shape)
    if over is not None:
        weight = weight * keyed[over].to_numpy(dtype=float).reshape(shape)
    if not np.isfinite(value[weight > 0]).all():
        raise ValueError(f"The column {column} is not finite for somebody who counts.")
    return np.where(weight > 0, weight * value, 0.0).sum(-1), weight.sum(-1)


def among(parts: Parts, who: np.ndarray) -> Parts:
    """Return the parts of a group's mean: nobody else counts.

    Arguments:
        parts: Of N people.
        who: Row numbers of the group.
    """
    is_in = np.zeros(parts[0].shape[-1], dtype=bool)
    is_in[who] = True
    return parts[0] * is_in, parts[1] * is_in


def mean(parts: Parts, who: np.ndarray) -> Estimate:
    """Return the mean of a group."""
    return contrast((1.0, *among(parts, who)))


def gap(
    parts: Parts,
    first: np.ndarray,
    second: np.ndarray,
    scale: str = "difference",
    since: Parts | None = None,
) -> Estimate | Ratio:
    """Return the mean of the first group less that of the second, or divided by it.

    Arguments:
        first, second: Row numbers of two groups.
        scale: "difference" or "ratio".
        since: Parts of the same people elsewhere. Then it is the
            growth of the gap: less the difference there, or divided
            by the ratio there.
    """
    terms = [(1.0, *among(parts, first)), (-1.0, *among(parts, second))]
    if since is not None:
        terms += [(-1.0, *among(since, first)), (1.0, *among(since, second))]
    return contrast(*terms) if scale == "difference" else product(*terms)


def means(
    parts: Mapping[tuple[str, str, str], Parts], members: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Return the mean of every group: a row a method, scenario, measure and group.

    Arguments:
        parts: Of the means, by method, scenario and measure.
        members: Row numbers of the people in each group.
    Returns: Columns scenario, method, group, measure, estimate, low,
        high.
    """
    rows = []
    for (method, scenario, measure), of_all in parts.items():
        for group, who in members.items():
            one = mean(of_all, who)
            rows.append((scenario, method, group, measure, one.value, one.low, one.high))
    names = ("scenario", "method", "group", "measure", "estimate", "low", "high")
    return pd.DataFrame(rows, columns=names)


def product(*terms: tuple[float, np.ndarray, np.ndarray]) -> Ratio:
    r"""Return a product of powers of means of the same people.

    .. math:: \prod_k r_k^{c_k}, \qquad r_k \text{ as in `estimates.contrast`}

    A burden is the share refused times the mean cost, and a ratio has
    the powers 1 and -1. The error is that of the logarithm, linearised.

    Arguments:
        terms: A power c_k, numerator and denominator for each mean.
    Example:
        >>> half, third = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]])
        >>> round(product((2.0, half, np.ones((1, 2)))).value, 3)
        0.25
    """
    return Ratio(contrast(*terms, of_logs=True))


def within_budget(
    answers: pd.DataFrame, chances: pd.DataFrame, who: np.ndarray, budgets: Sequence[float]
) -> np.ndarray:
    """Return the share of a group that has good recourse at each cost or less.

    Good is valid and plausible.

    Arguments:
        answers: Of one method, as for `expected`.
        chances: A row a person, a column a set.
        who: Row numbers of the group.
        budgets: Costs, B of them.
    Returns: Shares with shape (B,).
    """
    shares = []
    for budget in budgets:
        fits = answers.joint & (answers.cost <= budget)
        parts = expected(answers.assign(fits=fits), "fits", chances)
        shares.append(mean(parts, who).value)
    return np.array(shares)


def as_text(estimate: Estimate | Ratio, digits: int = 3) -> str:
    """Return an estimate with its interval, two standard errors on either side.

    Example:
        >>> as_text(Estimate(0.0312, 0.0312, 0.0312, se_people=0.01))
        '0.031 [0.011, 0.051]'
        >>> as_text(Estimate(np.nan, np.nan, np.nan, np.nan))
        '-'
    """
    if not np.isfinite([estimate.low, estimate.high]).all():
        return "-"
    low, high = (f"{end:.{digits}f}" for end in (estimate.low, estimate.high))
    return f"{estimate.value:.{digits}f} [{low}, {high}]"
