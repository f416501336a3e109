r"""The most likely variances of a curve and of people's effects (REML).

.. math:: y = C \beta + W b + e, \quad e \sim N(0, \sigma^2)

The first two of the k columns of C are free; the others bend the
curve, and their coefficients are random with one variance. Each of m
people has up to two columns of their own in W, an intercept and a
slope, and each kind has its variance. What is looked for are the
logarithms of sigma^2 over each of these variances: with them as
penalties everything else is least squares, and sigma^2 follows.

The derivative of -2 times the restricted log-likelihood by the
logarithm of a ratio l is

.. math:: l \, |b|^2 / \sigma^2 - EDF,

so that at the maximum each variance is the sum of squares of its
coefficients over their effective degrees of freedom. The sums over
answers are made once; then one evaluation takes a 2 x 2 matrix a
person and one k x k matrix, a tenth of a millisecond.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

N_FIXED = 2  # columns without a penalty: the constant and the straight line
REACH = 25.0  # log ratios are looked for so far around the columns' own scale
FLAT = 1e-7  # of a gradient, in effective degrees of freedom
CLOSE = 1e-6  # a Newton step below it is the last one
ROUNDING = 1e-12  # relative


class Products:
    """Columns of a model and their products, which all answers to them share.

    Arguments:
        columns: Of the curve: the constant, the straight line, and
            wiggly ones that are penalised, with shape (n, k).
        person_columns: Of a person's own two effects, with shape (2, n);
            nothing but zeros for a kind that is not in the model.
        person: Which of m people gave each answer, from 0, with shape
            (n,).
    """

    def __init__(
        self, columns: np.ndarray, person_columns: np.ndarray, person: np.ndarray
    ) -> None:
        self.columns, self.person_columns, self.person = columns, person_columns, person
        self.n, n_columns = columns.shape
        self.n_people = int(person.max()) + 1
        has_effects = person_columns.any(axis=1)
        # how many coefficients of each term are penalised
        self.sizes = np.append(n_columns - N_FIXED, self.n_people * has_effects)
        self.gram = columns.T @ columns  # (k, k)
        cross = self.by_person(person_columns[:, None] * columns.T)
        self.cross = np.ascontiguousarray(cross.swapaxes(1, 2))  # (2, m, k)
        first, second = person_columns
        squares = np.array([first * first, first * second, second * second])
        self.person_squares = self.by_person(squares)  # (3, m)
        # A term that is not in the model has a ratio of one.
        wiggly = (columns[:, N_FIXED:] ** 2).sum(0)
        scales = np.array(
            [wiggly.sum() / max(1, len(wiggly)), *self.person_squares[::2].mean(1)]
        )
        self.centre = np.log(np.where(self.sizes > 0, scales, 1.0))

    def by_person(self, values: np.ndarray) -> np.ndarray:
        """Return sums of values (*, n) over each person's answers, with shape (*, m)."""
        flat = values.reshape(-1, values.shape[-1])
        sums = [np.bincount(self.person, row, self.n_people) for row in flat]
        return np.reshape(sums, (*values.shape[:-1], self.n_people))

    def fitted(self, beta: np.ndarray, effects: np.ndarray) -> np.ndarray:
        """Return the fitted answers (n,) of coefficients (k,) and effects (2, m)."""
        of_people = (self.person_columns * effects[:, self.person]).sum(0)
        return self.columns @ beta + of_people

    def solve(
        self, ratio: np.ndarray, cross: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what each person's own columns explain, for given variances.

        Arguments:
            ratio: Of sigma2 and each variance, with shape (3,).
            cross: Products of own columns and others, with shape (2, m,
                C).
        Returns: Determinant of each person's penalised products (m,),
            entries 11, 12, 22 of its inverse (3, m), and the inverse
            times cross, with shape (2, m, C).
        """
        first, mixed, second = self.person_squares
        first, second = first + ratio[1], second + ratio[2]
        determinant = first * second - mixed * mixed
        inverse = np.array([second, -mixed, first]) / determinant
        a, b, c = inverse[:, :, None]
        solved = np.array([a * cross[0] + b * cross[1], b * cross[0] + c * cross[1]])
        return determinant, inverse, solved


@dataclass(frozen=True)
class State:
    """What a model is at given log ratios; `Search.at` returns it.

    Arguments:
        deviance: -2 times the restricted log-likelihood, without its
            constants and with the best sigma2.
        gradient: Of the deviance by each log ratio, with shape (3,).
        edf: Effective degrees of freedom of the penalised
            coefficients of each term, with shape (3,).
        rss: Residual sum of squares plus the penalties.
        beta, inverse: Coefficients of the columns, for y less its
            mean, and their covariance over sigma2, with shapes (k,)
            and (k, k).
        effects: Of people, with shape (2, m).
        person_inverse, solved: Of each person; see `Products.solve`.
    """

    deviance: float
    gradient: np.ndarray
    edf: np.ndarray
    rss: float
    beta: np.ndarray
    inverse: np.ndarray
    effects: np.ndarray
    person_inverse: np.ndarray
    solved: np.ndarray


class Search:
    """The search for the most likely variances behind some answers.

    Arguments:
        products: Of the model's columns.
        y: Answers, with shape (n,).
    """

    def __init__(self, products: Products, y: np.ndarray) -> None:
        self.products = products
        y = y - y.mean()
        self.total = float(y @ y)
        both = np.column_stack([products.columns, y])
        self.gram = both.T @ both  # (k + 1, k + 1)
        cross = products.by_person(products.person_columns * y)
        self.cross = np.concatenate(
            [products.cross, cross[..., None]], axis=2
        )  # (2, m, k + 1)

    def at(self, log_lambda: np.ndarray) -> State:
        """Return what the model is at given log ratios, with shape (3,)."""
        products, k = self.products, len(self.gram) - 1
        ratio = np.exp(log_lambda)
        determinant, person_inverse, solved = products.solve(ratio, self.cross)
        left = self.gram - self.cross[0].T @ solved[0] - self.cross[1].T @ solved[1]
        penalised = left[:k, :k].copy()
        penalised[range(N_FIXED, k), range(N_FIXED, k)] += ratio[0]
        root = np.linalg.cholesky(penalised)
        root_inverse = np.linalg.inv(root)
        inverse = root_inverse.T @ root_inverse
        beta = inverse @ left[:k, k]
        rss = max(float(left[k, k] - left[:k, k] @ beta), ROUNDING * self.total)
        effects = solved[:, :, k] - solved[:, :, :k] @ beta
        solved = solved[:, :, :k]
        squares = [beta[N_FIXED:] @ beta[N_FIXED:], *(effects**2).sum(1)]
        traces = [
            inverse.diagonal()[N_FIXED:].sum(),
            *(person_inverse[::2].sum(1) + ((solved @ inverse) * solved).sum((1, 2))),
        ]
        n_free = products.n - N_FIXED
        edf = np.where(products.sizes > 0, products.sizes - ratio * traces, 0.0)
        deviance = (
            n_free * math.log(rss)
            + 2 * np.log(root.diagonal()).sum()
            + np.log(determinant).sum()
            - products.sizes @ log_lambda
        )
        gradient = np.where(
            products.sizes > 0, n_free * ratio * np.array(squares) / rss - edf, 0.0
        )
        return State(
            float(deviance),
            gradient,
            edf,
            rss,
            beta,
            inverse,
            effects,
            person_inverse,
            solved,
        )

    def maximise(self) -> np.ndarray:
        """Return the log ratios with the largest restricted likelihood, with shape (3,).

        It may have two maxima, a bent curve and a straight one, and
        is flat beyond the latter. So it is looked at along the
        curve's ratio first, and climbed from each maximum there.
        """
        sizes, centre = self.products.sizes, self.products.centre
        coarse, fine = np.linspace(-4, 4, 3), np.linspace(-12, 12, 13)
        along = [np.zeros(1) if size == 0 else coarse for size in sizes]
        start = self._best(centre + np.array(list(product([0.0], *along[1:]))))
        if sizes[0] == 0:
            return self._climb(start)
        starts = start + np.outer(fine, [1, 0, 0])
        deviance = np.array([self.at(point).deviance for point in starts])
        padded = np.pad(deviance, 1, constant_values=np.inf)
        is_least = (deviance <= padded[:-2]) & (deviance <= padded[2:])
        return self._best(np.array([self._climb(point) for point in starts[is_least]]))

    def _best(self, points: np.ndarray) -> np.ndarray:
        """Return the most likely of some log ratios (P, 3), with shape (3,)."""
        return points[np.argmin([self.at(point).deviance for point in points])]

    def _climb(self, point: np.ndarray) -> np.ndarray:
        """Return where Newton's steps from some log ratios end, with shape (3,)."""
        active, centre = np.flatnonzero(self.products.sizes), self.products.centre
        state = self.at(point)
        for _ in range(200):
            if np.abs(state.gradient).max() < FLAT:
                break
            values, vectors = np.linalg.eigh(self.hessian(point)[np.ix_(active, active)])
            values = np.maximum(np.abs(values), ROUNDING)
            step = vectors @ (vectors.T @ state.gradient[active] / values)
            step *= min(1.0, 4.0 / np.abs(step).max())
            for _ in range(30):
                trial = point.copy()
                trial[active] -= step
                trial = np.clip(trial, centre - REACH, centre + REACH)
                tried = self.at(trial)
                if tried.deviance <= state.deviance + ROUNDING * abs(state.deviance):
                    break
                step /= 2
            moved = np.abs(trial - point).max()
            point, state = trial, tried
            if moved < CLOSE:
                break
        return point

    def hessian(self, log_lambda: np.ndarray, width: float = 1e-4) -> np.ndarray:
        """Return second derivatives of the deviance, with shape (3, 3).

        Central differences of the gradient, which is exact.
        """
        n_terms = len(log_lambda)
        rows = np.zeros((n_terms, n_terms))
        for i in np.flatnonzero(self.products.sizes):
            away = np.zeros(n_terms)
            away[i] = width
            above, below = self.at(log_lambda + away), self.at(log_lambda - away)
            rows[i] = (above.gradient - below.gradient) / (2 * width)
        return (rows + rows.T) / 2
