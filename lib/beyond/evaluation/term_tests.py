"""Tests of single terms of an additive model with penalties: how sure it is that they are.

What a penalty shrinks has no whole number of degrees of freedom, and
its covariance is nearly singular. Two statistics of Simon Wood's take
this into account, and mgcv prints them. Their laws are sums of
weighted chi-squared variables over an estimate of the error's
variance; `tail` computes these to all digits, however small.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy import optimize, stats
from torch import Tensor

from lib.base import checks
from lib.base.arithmetic import each

ROUNDING = 1e-12  # relative
STEP, END = 0.02, 40.0  # of the integral: more steps change nothing


class TermTest(NamedTuple):
    """Test of one term against its absence: F, its reference df, and p."""

    f: float
    ref_df: float
    p: float


def smooth(
    values: np.ndarray, covariance: np.ndarray, reference_df: float, residual_df: float
) -> TermTest:
    """Return the test of a smooth curve against none.

    Only the directions are counted in which the penalty has left
    something of the curve. Their number is reference_df, and if that
    is fractional, the last two directions enter with a sign that is
    arbitrary: mgcv takes one for F and the mean over both for p. Here
    F is the mean as well, so that no eigenvector's sign matters.

    Arguments:
        values: The curve, in coordinates in which its sum of squares
            over the answers is that of the coordinates, with shape
            (c,).
        covariance: Of these (Bayesian), with shape (c, c).
        reference_df: How many directions are counted.
        residual_df: Of the error.
    Raises: ValueError: there is no direction to count.
    Source: Wood, On p-values for smooth components of an extended
        generalized additive model, Biometrika 2013; mgcv 1.8-41,
        testStat.

    Example:
        With a whole number of directions it is the usual F test:

        >>> found = smooth(np.array([3.0, 1.0]), np.eye(2), 2.0, 100.0)
        >>> round(found.f, 3), round(found.p, 4), round(float(stats.f.sf(5, 2, 100)), 4)
        (5.0, 0.0085, 0.0085)
    """
    checks.positive(reference_df=reference_df, residual_df=residual_df)
    own, vectors = np.linalg.eigh(covariance)
    own, vectors = own[::-1], vectors[:, ::-1]
    squares = (vectors.T @ values) ** 2 / np.abs(own)
    whole = int(reference_df)
    part = reference_df - whole
    n_directions = int((own > own[0] * np.finfo(float).eps ** 0.9).sum())
    if whole == 0:
        raise ValueError(
            f"reference_df is {reference_df:g}: expected 1 or more, as any curve has "
            "that holds the straight line."
        )
    if part == 0 or n_directions <= whole:
        rank = min(whole, n_directions)
        f = float(squares[:rank].sum() / rank)
        return TermTest(f, float(rank), float(stats.f.sf(f, rank, residual_df)))
    weights = np.ones(whole + 1)
    weights[-2] = (part + 1 + np.sqrt((part + 1) * (1 - part))) / 2
    weights[-1] = part + 1 - weights[-2]
    statistic = squares[:whole].sum() + part * squares[whole]
    mixed = np.sqrt(2 * part * (1 - part) * squares[whole - 1] * squares[whole])
    n_error = max(1, round(residual_df))
    p = [tail(weights, n_error, statistic + sign * mixed) for sign in (-1, 1)]
    return TermTest(float(statistic / reference_df), float(reference_df), sum(p) / 2)


def effects(
    values: np.ndarray, weight: np.ndarray, covariance: np.ndarray, residual_df: float
) -> TermTest:
    """Return the test of random effects against none, all of them at once.

    Arguments:
        values: Predicted effects, over the error's standard
            deviation, with shape (m,).
        weight: Information on them, with shape (m, m).
        covariance: Of values (frequentist) if there are no effects,
            with shape (m, m).
        residual_df: Of the error.
    Source: Wood, A simple test for random effects in regression
        models, Biometrika 2013; mgcv 1.8-41, reTest.
    """
    checks.positive(residual_df=residual_df)
    own, vectors = np.linalg.eigh(weight)
    root = vectors * np.sqrt(np.maximum(own, 0))
    weights = np.maximum(np.linalg.eigvalsh(root.T @ covariance @ root), 0)
    rank = int((weights > weights.max() * np.finfo(float).eps ** 0.8).sum())
    statistic = float(values @ weight @ values)
    p = tail(weights, max(1, round(residual_df)), statistic)
    return TermTest(statistic / rank, float(rank), p)


def tail(weights: np.ndarray, n_error: int, value: float) -> float:
    r"""Return P(sum_j w_j X_j / (Y / n) > value), X_j chi-squared with 1 df, Y with n.

    The inverse Laplace transform along a line through its saddle
    point, so that tiny probabilities keep their digits:

    .. math:: p = \frac{1}{2 \pi i} \int_{s_0 - i \infty}^{s_0 + i \infty}
              e^{K(s)} \frac{ds}{s}, \quad K(s) = - \frac{1}{2} \sum_j
              \log(1 - 2 w_j s) - \frac{n}{2} \log(1 + 2 s \, value / n)

    Arguments:
        weights: Not negative, with shape (J,).
        n_error: Degrees of freedom n of the error.
        value: What is exceeded, above 0.
    Raises: ValueError: value or n_error is not above zero, or no
        weight is.
    Source: after Daniels, Tail probability approximations,
        International Statistical Review 1987.

    Example:
        With equal weights it is the F distribution:

        >>> p, expected = tail(np.ones(4), 30, 400.0), stats.f.sf(100, 4, 30)
        >>> f"{p:.10g}" == f"{expected:.10g}", f"{p:.1g}"
        (True, '7e-17')
    """
    checks.positive(n_error=n_error, value=value, largest_weight=float(weights.max()))
    weights = weights[weights > ROUNDING * weights.max()]

    # torch's log and exp are pinned, and numpy's differ in bits from processor to processor
    w = torch.from_numpy(weights)[:, None]

    def log_transform(s: Tensor) -> Tensor:
        own = torch.log(1 - 2 * w * s).sum(0)
        of_error = torch.log(1 + 2 * s * value / n_error)
        return -own / 2 - n_error / 2 * of_error - torch.log(s)

    end = 0.5 / weights.max()
    found = optimize.minimize_scalar(
        lambda s: float(log_transform(torch.tensor([s], dtype=torch.float64))),
        bounds=(0, end),
        method="bounded",
        options={"xatol": 1e-6 * end},
    )
    middle = found.x
    # s = middle + i width sinh(v): equal steps in v see the peak and the long tails
    v = np.arange(0, END, STEP)
    width = min(middle, end - middle)
    along = torch.from_numpy(width * each(math.sinh, v))
    s = torch.complex(torch.full_like(along, middle), along)
    terms = torch.exp(log_transform(s)).real * torch.from_numpy(each(math.cosh, v))
    terms[0] /= 2
    return float(terms.sum() * (width * STEP / math.pi))
