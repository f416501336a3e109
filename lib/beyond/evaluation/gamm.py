r"""A curve for everybody, and people who differ from it: the mixed additive model.

People rate several things each, and x says how far away each thing
is. Some people give high ratings throughout, and some mind the
distance more than others do:

.. math:: y_i = \beta_0 + s(x_i) + b_{u(i)} + c_{u(i)} x_i + e_i, \quad
          b \sim N(0, \tau_b), \ c \sim N(0, \tau_c), \ e \sim N(0, \sigma^2)

The curve s is a thin plate regression spline (`ThinPlate`). The
coefficients of its wiggly columns are one more random effect, so that
three variances have to be estimated, by restricted maximum likelihood
(REML). This is the model that R's mgcv fits to `y ~ s(x) +
s(u, bs = "re") + s(u, x, bs = "re")`.

What is looked for are the logarithms of the ratios of sigma^2 to each
variance. With these as penalties everything else is least squares.
The derivative of -2 times the restricted log-likelihood by the
logarithm of a ratio r is r |b|^2 / sigma^2 - EDF, with the effective
degrees of freedom of the coefficients b: at the maximum each variance
is the sum of squares of its coefficients over their degrees of
freedom. The columns of one person meet those of another only through
the curve, so an evaluation inverts one small matrix a person and one
with k columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, sparse

from lib import checks
from lib.beyond.evaluation.term_tests import TermTest, curve_test, effects_test

EFFECTS = ("intercepts", "slopes")
N_FIXED = 2  # columns without a penalty: the constant and the straight line
REACH = -12.0, 25.0  # log ratios are looked for so far around the columns' own scale
STARTS = (-3.0, 6.0)  # of the curve's log ratio: the likelihood may have two maxima
ROUNDING = 1e-12  # relative
NO_ERROR = 1e-9  # share of the sum of squares below which nothing is left for an error


class Penalised(NamedTuple):
    """What the ratios of variances determine before anybody has answered.

    Arguments:
        inverse: Covariance over sigma2 of the columns' coefficients,
            with shape (k, k).
        person_inverse: Of each person's penalised products, with
            shape (q, q, m).
        solved: The same times the products with the columns, with
            shape (q, m, k).
        edf: Effective degrees of freedom of the penalised
            coefficients of each term, with shape (1 + q,).
        log_determinant: Of all penalised products.
    """

    inverse: np.ndarray
    person_inverse: np.ndarray
    solved: np.ndarray
    edf: np.ndarray
    log_determinant: float


@dataclass(frozen=True)
class Fit:
    """A fitted model; `fit` and `Design.fit` return it.

    Arguments:
        design: What it was fitted with.
        intercept, intercept_se: Mean of the fitted answers at these x
            for a person without an effect, and its standard error.
        edf: Effective degrees of freedom of each term: between 1 and
            k - 1 for the smooth, between 0 and the number of people
            for intercepts and slopes.
        variance: Of each term's effects. That of intercepts is in
            squared units of y, that of slopes in these over squared
            units of x; that of the smooth, over cubed units of x, is
            how fast the curve's second derivative wanders.
        sigma2: Variance of the error.
        aic: Conditional AIC, which takes the variances as known.
        reml: Restricted log-likelihood at its maximum.
        effects: Predicted effects of each person (BLUPs), indexed by
            person, with a column for each kind.
        coefficients, covariance: Of the constant, the straight line
            and the wiggly columns, with shapes (k,) and (k, k).
        log_ratio: Logarithm of sigma2 over each variance, with shape
            (1 + q,).
    """

    design: "Design"
    intercept: float
    intercept_se: float
    edf: dict[str, float]
    variance: dict[str, float]
    sigma2: float
    aic: float
    reml: float
    effects: pd.DataFrame
    coefficients: np.ndarray
    covariance: np.ndarray
    log_ratio: np.ndarray

    @property
    def residual_df(self) -> float:
        """Answers less all effective degrees of freedom."""
        return len(self.design.x) - 1 - sum(self.edf.values())

    def curve(self, grid: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the centred curve s at some x, and its standard errors.

        The curve's mean over the answers' x is zero, and its standard
        errors are those of s alone, without the intercept (mgcv's
        predict with type "terms"). Outside the observed x it goes on
        as a straight line.

        Arguments:
            grid: Values of x, with shape (G,).
        Returns: Values and standard errors, each with shape (G,), in
            units of y.
        """
        return self._of_columns(self.design.spline(np.asarray(grid, dtype=float)))

    def difference(self, first: float, last: float) -> tuple[float, float]:
        """Return s(first) - s(last) and its standard error, in units of y."""
        ends = self.design.spline(np.array([first, last], dtype=float))
        value, error = self._of_columns(ends[:1] - ends[1:])
        return value.item(), error.item()

    def _of_columns(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        variance = ((columns @ self.covariance[1:, 1:]) * columns).sum(1)
        return columns @ self.coefficients[1:], np.sqrt(variance)

    def test(self, term: str = "smooth") -> TermTest:
        """Return the test of a term against its absence, with mgcv's approximate p.

        Effects are tested for all people at once.

        Arguments:
            term: "smooth", or one of the model's effects.
        Raises: ValueError: the model has no such term.
        Source: see `curve_test` and `effects_test`.
        """
        checks.one_of("term", [term], tuple(self.edf))
        return _test_smooth(self) if term == "smooth" else _test_effects(self, term)


class Design:
    """What a model needs to know of x and people, to be fitted to many y.

    Arguments:
        x: Where each answer was given, with shape (n,).
        people: Who gave it: anything that can be sorted, with shape
            (n,).
        k: Columns of the curve with its constant, at most the number
            of distinct x; 2 is a straight line.
        effects: How people differ, of `EFFECTS`. Slopes are on x as
            it is: another zero of x is another model.
    Raises: ValueError: lengths differ, something is not finite, k is
        larger than the number of distinct x, or nobody gave two
        answers, so that effects of people cannot be told from errors.
    Source: Wood, Thin plate regression splines, JRSS B 2003, for the
        curve: mgcv's default, s(x, bs = "tp", k = 10).
    """

    def __init__(
        self,
        x: Sequence[float] | np.ndarray,
        people: Sequence[Any] | np.ndarray,
        k: int = 10,
        effects: Sequence[str] = EFFECTS,
    ) -> None:
        self.x, self.k, self.effects = _numbers("x", x), k, tuple(effects)
        _check_people(np.asarray(people), len(self.x), bool(self.effects))
        self.people, self.person = np.unique(np.asarray(people), return_inverse=True)
        n, m = len(self.x), len(self.people)
        self.spline = ThinPlate(self.x, k)
        self.columns = np.column_stack([np.ones(n), self.spline(self.x)])  # (n, k)
        of_person = {"intercepts": np.ones(n), "slopes": self.x}
        self.person_columns = np.empty((n, 0))  # (n, q)
        if self.effects:
            self.person_columns = np.column_stack([of_person[e] for e in self.effects])
        self._sum_by_person = sparse.csr_array((np.ones(n), (self.person, np.arange(n))))
        self.gram = self.columns.T @ self.columns
        outer = self.person_columns[:, :, None]
        cross = self.by_person(outer * self.columns[:, None, :])
        self.cross = np.ascontiguousarray(cross.swapaxes(0, 1))  # (q, m, k)
        self.squares = self.by_person(
            outer * self.person_columns[:, None, :]
        ).T  # (q, q, m)
        self.sizes = np.array([k - N_FIXED, *[m for _ in self.effects]])
        # ratios at which penalties weigh about as much as answers
        wiggly = self.gram.diagonal()[N_FIXED:].sum() / max(1, k - N_FIXED) or 1.0
        self.scale = np.log([wiggly, *self.squares.diagonal().mean(0)])

    def by_person(self, values: np.ndarray) -> np.ndarray:
        """Return sums of values (n, ...) over each person's answers: (m, ...)."""
        flat = values.reshape(len(values), -1)
        return (self._sum_by_person @ flat).reshape(len(self.people), *values.shape[1:])

    def penalised(self, log_ratio: np.ndarray) -> Penalised:
        """Return what ratios of variances (1 + q,) determine without any answers."""
        k, ratio = self.k, np.exp(log_ratio)
        of_people = self.squares + np.diag(ratio[1:])[:, :, None]
        person_inverse, determinant = _inverse(of_people)
        solved = np.einsum("ijm,jmk->imk", person_inverse, self.cross)
        left = self.gram - self.cross.reshape(-1, k).T @ solved.reshape(-1, k)
        left[range(N_FIXED, k), range(N_FIXED, k)] += ratio[0]
        root = np.linalg.cholesky(left)
        root_inverse = np.linalg.inv(root)
        inverse = root_inverse.T @ root_inverse
        traces = np.einsum("imk,imk->i", solved @ inverse, solved)
        traces += person_inverse.diagonal().sum(0)
        edf = self.sizes - ratio * [inverse.diagonal()[N_FIXED:].sum(), *traces]
        log_determinant = 2 * np.log(root.diagonal()).sum()
        log_determinant += np.log(determinant).sum()
        return Penalised(inverse, person_inverse, solved, edf, float(log_determinant))

    def known(self, log_ratio: np.ndarray) -> tuple[dict[str, float], float]:
        """Return what ratios of variances tell before anybody has answered.

        Arguments:
            log_ratio: As `Fit.log_ratio`, with shape (1 + q,).
        Returns: The effective degrees of freedom of each term, as
            `Fit.edf`, and the standard error of the intercept over
            the standard deviation of the error.
        """
        penalised = self.penalised(np.asarray(log_ratio, dtype=float))
        return self._edf(penalised), math.sqrt(penalised.inverse[0, 0])

    def _edf(self, penalised: Penalised) -> dict[str, float]:
        smooth, *effects = penalised.edf.tolist()
        return {"smooth": 1 + smooth} | dict(zip(self.effects, effects, strict=True))

    def fit(self, y: Sequence[float] | np.ndarray) -> Fit:
        """Return the model fitted by restricted maximum likelihood.

        Arguments:
            y: The answers, with shape (n,).
        Raises: ValueError: y is not finite, has another length than
            x, or is fitted without any error, as a constant is.
        """
        y, n = _numbers("y", y), len(self.x)
        if len(y) != n:
            raise ValueError(f"y has {len(y)} values and x has {n}: expected as many.")
        centred = y - y.mean()
        total, to_columns = centred @ centred, self.columns.T @ centred
        to_people = self.by_person(self.person_columns * centred[:, None]).T  # (q, m)
        n_free, least = n - N_FIXED, NO_ERROR * total

        def solve(p: Penalised) -> tuple[np.ndarray, np.ndarray, float]:
            """Return coefficients (k,), effects (q, m), and the penalised RSS."""
            alone = (p.person_inverse * to_people).sum(1)
            right = to_columns - p.solved.reshape(-1, self.k).T @ to_people.ravel()
            beta = p.inverse @ right
            rss = total - (to_people * alone).sum() - right @ beta
            return beta, alone - p.solved @ beta, float(max(rss, least / 2))

        def deviance(log_ratio: np.ndarray) -> tuple[float, np.ndarray]:
            """Return -2 REML without its constants, and its gradient."""
            p = self.penalised(log_ratio)
            beta, effects, rss = solve(p)
            squares = np.array([beta[N_FIXED:] @ beta[N_FIXED:], *(effects**2).sum(1)])
            value = n_free * math.log(rss) + p.log_determinant - self.sizes @ log_ratio
            return value, n_free * np.exp(log_ratio) * squares / rss - p.edf

        is_constant = not total > n * (ROUNDING * np.abs(y).max()) ** 2
        if not is_constant:
            best = min(self._climb(deviance), key=lambda result: result.fun)
            p = self.penalised(best.x)
            beta, effects, penalised_rss = solve(p)
        if is_constant or penalised_rss <= least:
            raise ValueError(
                "The model fits y without any error, so no variance can be estimated. Is "
                "y a constant, or computed from x and people instead of observed?"
            )
        sigma2 = penalised_rss / n_free
        fitted = self.columns @ beta + (self.person_columns * effects.T[self.person]).sum(1)
        mean_square = ((centred - fitted) ** 2).mean()
        edf, variances = self._edf(p), (sigma2 / np.exp(best.x)).tolist()
        aic = n * (math.log(2 * math.pi * mean_square) + 1) + 2 * (2 + sum(edf.values()))
        beta[0] += y.mean()
        return Fit(
            design=self,
            intercept=float(beta[0]),
            intercept_se=math.sqrt(sigma2 * p.inverse[0, 0]),
            edf=edf,
            variance=dict(zip(edf, variances, strict=True)),
            sigma2=sigma2,
            aic=float(aic),
            reml=-(best.fun + n_free * (math.log(2 * math.pi / n_free) + 1)) / 2,
            effects=pd.DataFrame(effects.T, self.people, list(self.effects)),
            coefficients=beta,
            covariance=sigma2 * p.inverse,
            log_ratio=best.x,
        )

    def _climb(self, deviance: Callable[..., Any]) -> list[optimize.OptimizeResult]:
        """Return where the search for the log ratios ends, for each start."""
        options = {"ftol": 1e-15, "gtol": 1e-8, "maxls": 50}
        bounds = self.scale[:, None] + REACH
        starts = [self.scale + np.eye(len(self.sizes))[0] * start for start in STARTS]
        return [
            optimize.minimize(
                deviance, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            for start in starts
        ]


def fit(
    y: Sequence[float] | np.ndarray,
    x: Sequence[float] | np.ndarray,
    people: Sequence[Any] | np.ndarray,
    k: int = 10,
    effects: Sequence[str] = EFFECTS,
) -> Fit:
    """Return the model y ~ s(x) with random intercepts and slopes, fitted by REML.

    Arguments:
        y: Answers, with shape (n,).
        x, people, k, effects: As for `Design`, which is the thing to
            keep if many y are fitted to the same x.
    Raises: ValueError: as `Design` and `Design.fit`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> people, x = np.repeat(np.arange(40), 5), rng.integers(1, 9, 200)
        >>> slopes = rng.normal(0, 0.3, 40)
        >>> fitted = fit(slopes[people] * x + rng.normal(0, 0.5, 200), x, people, k=6)
        >>> round(fitted.variance["slopes"] ** 0.5, 1)
        0.3
        >>> bool(np.corrcoef(fitted.effects["slopes"], slopes)[0, 1] > 0.95)
        True
    """
    return Design(x, people, k, effects).fit(y)


def _test_smooth(fit: Fit) -> TermTest:
    """Return the test of the curve, with the covariance of its values at the answers.

    Its reference degrees of freedom are tr(2 F - F F), where F maps
    the coefficients without a penalty to those with one, and the
    trace is over the curve's own.
    """
    design, (smooth, *others) = fit.design, np.exp(fit.log_ratio)
    p = design.penalised(fit.log_ratio)
    lost = smooth * (p.inverse[N_FIXED:, N_FIXED:] ** 2).sum()
    lost += np.array(others) @ ((p.solved @ p.inverse[:, N_FIXED:]) ** 2).sum((1, 2))
    root = np.linalg.cholesky(design.gram[1:, 1:]).T
    covariance = root @ fit.covariance[1:, 1:] @ root.T
    values = root @ fit.coefficients[1:]
    reference_df = design.k - 1 - smooth * lost
    return curve_test(values, covariance, float(reference_df), fit.residual_df)


def _test_effects(fit: Fit, term: str) -> TermTest:
    """Return the test of one kind of effects of people.

    The statistic weighs them by the information that the other kind
    of effects and the curve leave.
    """
    design, (smooth, *others) = fit.design, np.exp(fit.log_ratio)
    p, one = design.penalised(fit.log_ratio), design.effects.index(term)
    solved = p.solved[one]  # (m, k)
    joint = np.diag(p.person_inverse[one, one]) + solved @ p.inverse @ solved.T
    to_curve = solved @ p.inverse[:, N_FIXED:]
    covariance = joint - others[one] * joint @ joint - smooth * to_curve @ to_curve.T
    squares = design.squares[one, one] + others[one]
    left, fixed = design.cross[one].copy(), design.gram.copy()
    for other in set(range(len(others))) - {one}:
        mixed = design.squares[one, other]
        cross = design.cross[other]
        squares += mixed**2 / others[other]
        left += mixed[:, None] * cross / others[other]
        fixed += cross.T @ cross / others[other]
    wiggly = range(N_FIXED, len(fixed))
    fixed[wiggly, wiggly] += smooth
    weight = np.diag(squares) - left @ np.linalg.solve(fixed, left.T)
    values = fit.effects[term].to_numpy() / math.sqrt(fit.sigma2)
    return effects_test(values, weight, covariance, fit.residual_df)


def _inverse(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverses of symmetric matrices (q, q, m), q < 3, and determinants (m,).

    In closed form, since LAPACK is called for one matrix at a time.
    """
    if len(matrices) < 2:
        return 1 / matrices, matrices.prod((0, 1))
    (a, b), (_, d) = matrices
    determinant = a * d - b * b
    return np.array([[d, -b], [-b, a]]) / determinant, determinant


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
        checks.positive_int(k=k)
        self._knots = np.unique(x)
        if not N_FIXED <= k <= len(self._knots):
            raise ValueError(
                f"k = {k} columns for {len(self._knots)} distinct values of x: expected a "
                f"k from {N_FIXED} (a straight line) to {len(self._knots)}."
            )
        self._centre = x.mean()
        self._weights = _weights_of_knots(self._knots - self._centre, k)
        self._mean = np.zeros(k - 1)
        self._mean = self(x).mean(0)

    def __call__(self, grid: np.ndarray) -> np.ndarray:
        """Return the columns at some values (G,), with shape (G, k - 1)."""
        bends = np.abs(grid[:, None] - self._knots) ** 3 / 12
        return np.column_stack([grid - self._centre, bends @ self._weights]) - self._mean


def _weights_of_knots(knots: np.ndarray, k: int) -> np.ndarray:
    """Return the weights of |x - knot|^3 / 12 in the wiggly columns, (K, k - 2).

    The k largest eigenvectors of the knots' matrix, constrained to
    bend without a level or a slope, and turned and scaled so that the
    penalty on the curve's second derivative is a sum of squares.
    """
    bends = np.abs(knots[:, None] - knots) ** 3 / 12
    values, vectors = np.linalg.eigh(bends)
    largest = np.argsort(-np.abs(values), kind="stable")[:k]
    values, vectors = values[largest], vectors[:, largest]
    lines = vectors.T @ np.column_stack([np.ones_like(knots), knots])  # (k, 2)
    free = np.linalg.qr(lines, mode="complete")[0][:, N_FIXED:]
    root = np.linalg.cholesky(free.T @ (values[:, None] * free))
    return vectors @ free @ np.linalg.inv(root).T


def _numbers(name: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return values as float64 with shape (n,); raise ValueError if they are no such."""
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"{name} has shape {numbers.shape}: expected a number an answer.")
    if n_bad := int((~np.isfinite(numbers)).sum()):
        raise ValueError(
            f"{name} holds {n_bad} NaN or infinite values of {len(numbers)}. Drop these "
            "answers from y, x and people first."
        )
    return numbers


def _check_people(people: np.ndarray, n: int, has_effects: bool) -> None:
    """Raise ValueError unless people say for each answer who gave it, and some gave two."""
    if people.shape != (n,) or pd.isna(people).any():
        raise ValueError(
            f"people has shape {people.shape} and {int(pd.isna(people).sum())} missing: "
            f"expected a name for each of {n} answers. Drop answers without one from y, x "
            "and people first."
        )
    if has_effects and not 1 < (n_people := len(np.unique(people))) < n:
        raise ValueError(
            f"{n} answers come from {n_people} people: effects of people need two of them "
            "or more, and two answers of somebody. Leave them out with effects=()."
        )
