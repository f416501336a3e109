"""Estimates: means over networks, and how sure they are.

Two things are drawn by chance, people and networks. An `Estimate`
holds a mean with the standard errors of both. `ratio` and `contrast`
make it from arrays with a row a network and a column a person.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

STANDARD_ERRORS = 2.0  # on either side; about 95 % of a normal distribution


@dataclass(frozen=True)
class Estimate:
    """Hold a mean over members, with what other people and other networks may change.

    Arguments:
        value: Mean over the members.
        lowest, highest: Of the members.
        se_people: Standard error over people. The same people are
            asked by all members, so it does not shrink with their
            number.
        se_networks: Standard error over networks, the standard
            deviation of the M members divided by the root of M; NaN
            for a search and for a single network.
    Example:
        >>> rise = Estimate(0.30, 0.1, 0.5, se_people=0.03, se_networks=0.04)
        >>> round(rise.standard_error, 3), round(rise.low, 3), round(rise.high, 3)
        (0.05, 0.2, 0.4)
    """

    value: float
    lowest: float
    highest: float
    se_people: float
    se_networks: float = np.nan

    @property
    def standard_error(self) -> float:
        """Of both sources together, the root of the sum of squares."""
        return float(np.hypot(self.se_people, np.nan_to_num(self.se_networks)))

    @property
    def low(self) -> float:
        """Lower end of the interval of two standard errors on either side."""
        return self.value - STANDARD_ERRORS * self.standard_error

    @property
    def high(self) -> float:
        """Upper end of the interval of two standard errors on either side."""
        return self.value + STANDARD_ERRORS * self.standard_error

    def lies(self, above: float = -np.inf, below: float = np.inf) -> str:
        """Return whether the value lies in a range: holds, does not hold, or undecided.

        "holds" and "does not hold" are said of the whole interval; if
        it reaches over an end of the range, the data do not decide.

        Example:
            >>> rise = Estimate(0.3, 0.3, 0.3, se_people=0.05)
            >>> rise.lies(above=0), rise.lies(below=0.1), rise.lies(above=0.25)
            ('holds', 'does not hold', 'undecided')
        """
        if not np.isfinite(self.standard_error + self.value):
            return "undecided"
        if above <= self.low and self.high <= below:
            return "holds"
        return "does not hold" if self.high < above or self.low > below else "undecided"


def ratio(numerator: np.ndarray, denominator: np.ndarray | None = None) -> Estimate:
    r"""Estimate a ratio of two sums over people, and its mean over networks.

    .. math:: r = \frac1M \sum_m r_m, \qquad
        r_m = \frac{\sum_i \text{numerator}_{mi}}{\sum_i \text{denominator}_{mi}}

    The denominator of a share of all people is one for everybody. In
    a share or a mean of some people, numerator and denominator are
    zero for the others. A ratio of two mean costs of the same people
    has the costs themselves.

    The standard error over people is that of the linearised ratio: a
    person counts once, with the mean over the members of
    (numerator - r_m denominator) / mean(denominator). For a share of
    one member it is the binomial one.

    Arguments:
        numerator, denominator: With shape (M, N), or (N,) for a
            search. A denominator left out is one for everybody.
    Source: Cochran, Sampling Techniques, chapter 6.
    Example:
        Two networks and four people, of whom they help two and three:

        >>> helped = np.array([[1, 1, 0, 0], [1, 1, 1, 0]])
        >>> share = ratio(helped)
        >>> share.value, share.lowest, round(share.se_networks, 4)
        (0.625, 0.5, 0.125)

        One in four of one network's people, binomial:

        >>> ratio(np.array([1, 0, 0, 0])).se_people, (0.25 * 0.75 / 4) ** 0.5
        (0.21650635094610965, 0.21650635094610965)
    """
    return contrast((1.0, numerator, denominator))


def contrast(
    *terms: tuple[float, np.ndarray, np.ndarray | None], of_logs: bool = False
) -> Estimate:
    r"""Estimate a weighted sum of ratios of the same people.

    .. math:: \sum_k c_k \, r_k, \qquad r_k \text{ as in `ratio`}

    With coefficients 1 and -1 it is the difference of two shares that
    are of different people among those asked, for instance of all who
    are recommended something by one network and by another. Members
    are set beside each other in their order, as those of one seed;
    where one ratio has more than another, the last are left out.
    Where they are not the same networks this is one of many pairs of
    independent draws, and the error holds all the same.

    Arguments:
        terms: A coefficient c_k, numerator and denominator for each
            ratio, as for `ratio`; of the same N people. A search, or
            a single member, is set beside every member of the others.
        of_logs: Of the logarithms of the ratios instead: with
            coefficients 1 and -1 the logarithm of a ratio of two means;
            NaN where a mean is zero.
    Example:
        Two of four people by one solver, one of the three whom another
        answers:

        >>> valid, fewer = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])
        >>> answered = np.array([1, 1, 1, 0])
        >>> round(contrast((1.0, valid, None), (-1.0, fewer, answered)).value, 3)
        0.167
    """
    of_terms = [_linearised(numerator, denominator) for _, numerator, denominator in terms]
    if of_logs:  # zero has no logarithm
        of_terms = [(np.where(r > 0, r, np.nan), moves) for r, moves in of_terms]
        of_terms = [(np.log(r), moves / r[:, None]) for r, moves in of_terms]
    n_members = min((len(ratios) for ratios, _ in of_terms if len(ratios) > 1), default=1)
    by_member, moved = np.zeros(n_members), np.zeros(of_terms[0][1].shape[1])
    for (coefficient, *_), (ratios, moves) in zip(terms, of_terms, strict=True):
        by_member = by_member + coefficient * ratios[:n_members]
        moved = moved + coefficient * moves[:n_members].mean(0)
    se_people, se_networks = np.sqrt((moved**2).sum()) / len(moved), np.nan
    if n_members > 1:
        se_networks = by_member.std(ddof=1) / np.sqrt(n_members)
    ours = by_member.mean(), by_member.min(), by_member.max(), se_people, se_networks
    return Estimate(*map(float, ours))


def _linearised(
    numerator: np.ndarray, denominator: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios of M members, and what each person moves them by, (M, N)."""
    numerator = np.atleast_2d(numerator).astype(float)
    if denominator is None:
        denominator = np.ones_like(numerator)
    base = np.atleast_2d(denominator).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = numerator.sum(1) / base.sum(1)  # NaN where a member counts nobody
        moves = (numerator - ratios[:, None] * base) / base.mean(1, keepdims=True)
    return ratios, moves


def combined(*terms: tuple[float, Estimate | float]) -> Estimate:
    """Estimate a weighted sum of numbers that were estimated elsewhere.

    Standard errors are added up as those of independent estimates.
    Numbers of the same people mostly move together, and their
    difference is then surer than said.

    Arguments:
        terms: A coefficient and a number each; one that is no
            `Estimate` has no error.
    Example:
        >>> gap = Estimate(0.5, 0.4, 0.6, se_people=0.03)
        >>> twice = combined((1.0, gap), (-2.0, 0.1))
        >>> round(twice.value, 3), twice.standard_error
        (0.3, 0.03)
    """
    estimates = [
        (times, one if isinstance(one, Estimate) else Estimate(one, one, one, 0.0))
        for times, one in terms
    ]
    if [times for times, _ in terms] == [1]:
        return estimates[0][1]
    value = float(sum(times * one.value for times, one in estimates))
    errors = [times * one.standard_error for times, one in estimates]
    return Estimate(value, value, value, float(np.linalg.norm(errors)))


def by_person(rows: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column of rows of people with shape (M, N), a row a member.

    Arguments:
        rows: Of one setting and method, as `tables.evaluate` gives them.
        column: Of numbers or of true and false.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1], "person": [0, 1, 1, 0]})
        >>> by_person(rows.assign(cost=[0.1, 0.2, 0.3, 0.4]), "cost")
        array([[0.1, 0.2],
               [0.4, 0.3]])
    """
    table = rows.pivot(index="member", columns="person", values=column)
    return table.astype(float).to_numpy()
