"""A curve of one variable as a few columns: the thin plate regression spline.

A spline bends at every observed value. Of all its shapes the
regression spline keeps those that its penalty, the squared second
derivative, has most to say about; a handful lose next to nothing.
"""

import numpy as np
from scipy.sparse.linalg import eigsh

from lib.base import checks

N_STRAIGHT = 2  # columns that the penalty leaves alone: the constant and the line
MANY_KNOTS = 100  # above, only the eigenvectors that are needed are computed


class ThinPlate:
    """The columns of a thin plate regression spline, centred over some x.

    Called with a grid (G,), it returns its columns there, with shape
    (G, k - 1): the straight line, then the wiggly ones, scaled so
    that the penalty is the sum of their squared coefficients. The
    constant is left out. Beyond the observed x all columns go on
    straight.

    Arguments:
        x: Observed values, with shape (n,).
        k: Number of columns with the constant, from 2 (the straight
            line) to the number of distinct x.
    Raises: ValueError: k is not in this range.
    Source: Wood, Thin plate regression splines, JRSS B 2003: mgcv's
        s(x, bs = "tp").
    """

    def __init__(self, x: np.ndarray, k: int) -> None:
        checks.counts(k=k)
        self._knots = np.unique(x)
        if not N_STRAIGHT <= k <= len(self._knots):
            raise ValueError(
                f"k = {k} columns for {len(self._knots)} distinct values of x: expected a "
                f"k from {N_STRAIGHT} (a straight line) to {len(self._knots)}."
            )
        self._centre = x.mean()
        self._weights = _weights(self._knots - self._centre, k)
        self._mean = np.zeros(k - 1)
        self._mean = self(x).mean(0)

    def __call__(self, grid: np.ndarray) -> np.ndarray:
        """Return the columns at some values (G,), with shape (G, k - 1)."""
        bends = np.abs(grid[:, None] - self._knots) ** 3 / 12
        return np.column_stack([grid - self._centre, bends @ self._weights]) - self._mean


def _weights(knots: np.ndarray, k: int) -> np.ndarray:
    """Return the weights of |x - knot|^3 / 12 in the wiggly columns, (K, k - 2).

    The k largest eigenvectors of the knots' matrix, constrained to
    bend without a level or a slope, and turned and scaled so that the
    penalty on the curve's second derivative is a sum of squares.
    """
    if k == N_STRAIGHT:
        return np.zeros((len(knots), 0))
    bends = np.abs(knots[:, None] - knots) ** 3 / 12
    if len(knots) > MANY_KNOTS:
        values, vectors = eigsh(bends, k, v0=np.arange(1.0, len(knots) + 1))
    else:
        values, vectors = np.linalg.eigh(bends)
    largest = np.argsort(-np.abs(values), kind="stable")[:k]
    values, vectors = values[largest], vectors[:, largest]
    lines = vectors.T @ np.column_stack([np.ones_like(knots), knots])  # (k, 2)
    free = np.linalg.qr(lines, mode="complete")[0][:, N_STRAIGHT:]
    root = np.linalg.cholesky(free.T @ (values[:, None] * free))
    return vectors @ free @ np.linalg.inv(root).T
