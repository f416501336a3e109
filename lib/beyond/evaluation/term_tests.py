"""Tests of single terms of a mixed additive model against their absence, as mgcv's.

What a penalty shrinks has no whole number of degrees of freedom, and
its covariance is nearly singular. Two statistics of Simon Wood's take
this into account. Their laws are sums of weighted chi-squared
variables over an estimate of the error's variance; `tail` computes
these to all digits, however small.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from lib import checks

ROUNDING = 1e-12  # relative
STEP, END = 0.02, 40.0  # of the integral of `tail`: more steps change nothing


class TermTest(NamedTuple):
    """Test of one term against its absence: F, its reference df, and p."""

    f: float
    ref_df: float
    p: float


def curve_test(
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
        reference_df: How many directions are counted, 1 or more.
        residual_df: Of the error.
    Source: Wood, On p-values for smooth components of an extended
        generalized additive model, Biometrika 2013; mgcv 1.8-41,
        testStat.

    Example:
        With a whole number of directions it is the usual F test:

        >>> test = curve_test(np.array([3.0, 1.0]), np.eye(2), 2.0, 100.0)
        >>> round(test.f, 3), round(test.p, 4), round(float(stats.f.sf(5, 2, 100)), 4)
        (5.0, 0.0085, 0.0085)
    """
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    squares = (vectors.T @ values) ** 2 / np.abs(eigenvalues)
    whole = int(reference_df)
    fraction = reference_df - whole
    n_directions = int((eigenvalues > eigenvalues[0] * np.finfo(float).eps ** 0.9).sum())
    if fraction == 0 or n_directions <= whole:
        rank = min(whole, n_directions)
        f = float(squares[:rank].sum() / rank)
        return TermTest(f, float(rank), float(stats.f.sf(f, rank, residual_df)))
    weights = np.ones(whole + 1)
    weights[-2] = (fraction + 1 + np.sqrt((fraction + 1) * (1 - fraction))) / 2
    weights[-1] = fraction + 1 - weights[-2]
    statistic = squares[:whole].sum() + fraction * squares[whole]
    mixed = np.sqrt(2 * fraction * (1 - fraction) * squares[whole - 1] * squares[whole])
    n_error = max(1, round(residual_df))
    p = [tail(weights, n_error, statistic + sign * mixed) for sign in (-1, 1)]
    return TermTest(float(statistic / reference_df), float(reference_df), sum(p) / 2)


def effects_test(
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
    eigenvalues, vectors = np.linalg.eigh(weight)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0))
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

    def log_transform(s: np.ndarray) -> np.ndarray:
        of_weights = np.log(1 - 2 * weights[:, None] * s).sum(0)
        of_error = np.log(1 + 2 * s * value / n_error)
        return -of_weights / 2 - n_error / 2 * of_error - np.log(s)

    end = 0.5 / weights.max()
    saddle = optimize.minimize_scalar(
        lambda s: log_transform(np.array([s])).item(),
        bounds=(0, end),
        method="bounded",
        options={"xatol": 1e-6 * end},
    ).x
    # s = saddle + i width sinh(v): equal steps in v see the peak and the long tails
    v = np.arange(0, END, STEP)
    width = min(saddle, end - saddle)
    s = saddle + 1j * width * np.sinh(v)
    terms = np.exp(log_transform(s)).real * np.cosh(v)
    terms[0] /= 2
    return float(terms.sum() * (width * STEP / math.pi))
