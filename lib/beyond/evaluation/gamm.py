r"""A curve for everybody, and people who differ from it: the mixed additive model.

People rate several things each, and x says how far away each thing
is. Some people give high ratings throughout, and some mind the
distance more than others do:

.. math:: y_i = \beta_0 + s(x_i) + b_{u(i)} + c_{u(i)} x_i + e_i, \quad
          b \sim N(0, \tau_b), \ c \sim N(0, \tau_c), \ e \sim N(0, \sigma^2)

The curve s is a thin plate regression spline. Its wiggly part is one
more random effect, so that three variances have to be estimated, and
restricted maximum likelihood (REML) does that. This is the model that
R's mgcv fits to `y ~ s(x) + s(u, bs = "re") + s(u, x, bs = "re")`.

A fit takes milliseconds for two reasons. What depends on x and people
alone is made once, in a `Design`. And the columns of one person meet
those of another only through the curve: each evaluation inverts one
2 x 2 matrix a person and one matrix with k columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib.base import checks
from lib.base.arithmetic import each
from lib.beyond.evaluation import term_tests
from lib.beyond.evaluation.reml import FLAT, N_FIXED, ROUNDING, Products, Search, State
from lib.beyond.evaluation.term_tests import TermTest
from lib.beyond.evaluation.thin_plate import ThinPlate

TERMS = ("smooth", "intercepts", "slopes")
FEWEST_X = 4  # distinct values of x that a curve needs
NO_ERROR = 1e-9  # share of the sum of squares below which nothing is left for an error


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
        residual_df: Answers less all effective degrees of freedom.
        aic: Conditional AIC, which takes the variances as known.
        aic_corrected: AIC that counts their uncertainty too, as
            mgcv's bam does.
        reml: Restricted log-likelihood at its maximum.
        effects: Predicted effects of each person (BLUPs), indexed by
            person, with a column for each kind.
        coefficients, covariance: Of the constant, the straight line
            and the wiggly columns, with shapes (k,) and (k, k).
        log_lambda: Logarithm of sigma2 over each variance, in the
            order of `TERMS`, with shape (3,); 0 for a term that is
            not in the model.
    """

    design: "Design"
    intercept: float
    intercept_se: float
    edf: dict[str, float]
    variance: dict[str, float]
    sigma2: float
    residual_df: float
    aic: float
    aic_corrected: float
    reml: float
    effects: pd.DataFrame
    coefficients: np.ndarray
    covariance: np.ndarray
    log_lambda: np.ndarray

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
        Raises: ValueError: grid is empty or not finite.
        """
        columns = self.design._spline(_numbers("grid", grid))
        covariance = self.covariance[1:, 1:]
        errors = np.sqrt(((columns @ covariance) * columns).sum(1))
        return columns @ self.coefficients[1:], errors

    def difference(self, first: float, last: float) -> tuple[float, float]:
        """Return how much higher the curve is at one x than at another, with its error.

        Arguments:
            first, last: Values of x.
        Returns: s(first) - s(last) and its standard error, in units
            of y.
        Raises: ValueError: one of them is not finite.
        """
        ends = self.design._spline(_numbers("x", [first, last]))
        apart = ends[0] - ends[1]
        error = math.sqrt(apart @ self.covariance[1:, 1:] @ apart)
        return float(apart @ self.coefficients[1:]), error

    def test(self, term: str = "smooth") -> TermTest:
        """Return the test of a term against its absence, with mgcv's approximate p.

        Effects are tested for all people at once.

        Arguments:
            term: One of `TERMS` that is in the model.
        Raises: ValueError: the model has no such term.
        Source: see `term_tests.smooth` and `term_tests.effects`.
        """
        checks.known("term", [term], tuple(self.edf))
        return _test_smooth(self) if term == "smooth" else _test_effects(self, term)


class Design:
    """What a model needs to know of x and people, to be fitted to many y.

    Arguments:
        x: Where each answer was given, with shape (n,).
        people: Who gave it: anything that can be sorted, with shape
            (n,).
        k: Columns of the curve with its constant, at most the number
            of distinct x; 2 is a straight line.
        slopes: Whether people have slopes of their own on x as it is.
            x is not centred: another zero of x is another model.
        intercepts: Whether people have levels of their own.
    Raises: ValueError: lengths differ, something is not finite, there
        are too few distinct x or k is too large, or nobody gave two
        answers, so that effects of people cannot be told from errors.
    Source: Wood, Thin plate regression splines, JRSS B 2003, for the
        curve: mgcv's default, s(x, bs = "tp", k = 10).
    """

    def __init__(
        self,
        x: Sequence[float] | np.ndarray,
        people: Sequence[Any] | np.ndarray,
        k: int = 10,
        slopes: bool = True,
        intercepts: bool = True,
    ) -> None:
        self.x = _numbers("x", x)
        self.people, person = _check_people(people, len(self.x))
        _check_size(self.x, len(self.people), k, slopes or intercepts)
        self.k = k
        self._spline = ThinPlate(self.x, k)
        ones = np.ones_like(self.x)
        columns = np.column_stack([ones, self._spline(self.x)])
        own_columns = np.array([ones * intercepts, self.x * slopes])
        self._products = Products(columns, own_columns, person)

    def known(self, log_lambda: np.ndarray) -> tuple[dict[str, float], float]:
        """Return what ratios of variances tell before anybody has answered.

        Arguments:
            log_lambda: As `Fit.log_lambda`, with shape (3,).
        Returns: The effective degrees of freedom of each term, as
            `Fit.edf`, and the standard error of the intercept over
            the standard deviation of the error.
        """
        anything = Search(self._products, self.x)
        state = anything.at(np.asarray(log_lambda, dtype=float))
        return _edf(state, self._products), math.sqrt(state.inverse[0, 0])

    def fit(self, y: Sequence[float] | np.ndarray) -> Fit:
        """Return the model fitted by restricted maximum likelihood.

        Arguments:
            y: The answers, with shape (n,).
        Raises: ValueError: y is not finite, has another length than
            x, or is fitted without any error, as a constant is.
        """
        values = _numbers("y", y)
        _check_length("y", len(values), len(self.x))
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            raise ValueError(
                f"All {len(values)} answers in y are {values[0]:g}: expected some that "
                "differ. Was the right column handed over?"
            )
        search = Search(self._products, values)
        return _finish(self, values, search, search.maximise())


def fit(
    y: Sequence[float] | np.ndarray,
    x: Sequence[float] | np.ndarray,
    people: Sequence[Any] | np.ndarray,
    k: int = 10,
    slopes: bool = True,
    intercepts: bool = True,
) -> Fit:
    """Return the model y ~ s(x) with random intercepts and slopes, fitted by REML.

    Arguments:
        y: Answers, with shape (n,).
        x, people, k, slopes, intercepts: As for `Design`, which is
            the thing to keep if many y are fitted to the same x.
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
    return Design(x, people, k, slopes, intercepts).fit(y)


def _finish(design: Design, y: np.ndarray, search: Search, log_lambda: np.ndarray) -> Fit:
    """Return the fit at the precision ratios that a search found."""
    state = search.at(log_lambda)
    n = len(y)
    if state.rss <= NO_ERROR * search.total:
        raise ValueError(
            "The model fits y without any error, so no variance can be told. Is y computed "
            "from x and people instead of observed?"
        )
    sigma2 = state.rss / (n - N_FIXED)
    fitted = search.products.fitted(state.beta, state.effects)
    rss = float(((y - y.mean() - fitted) ** 2).sum())
    n_coefficients = N_FIXED + state.edf.sum()
    in_model = {name: i for i, name in enumerate(TERMS) if search.products.sizes[i]}
    aic = n * (math.log(2 * math.pi * rss / n) + 1) + 2 * (n_coefficients + 1)
    constants = (n - N_FIXED) * (math.log(2 * math.pi / (n - N_FIXED)) + 1)
    coefficients = state.beta.copy()
    coefficients[0] += y.mean()
    effects = {name: state.effects[i - 1] for name, i in in_model.items() if i}
    return Fit(
        design=design,
        intercept=float(coefficients[0]),
        intercept_se=float(np.sqrt(sigma2 * state.inverse[0, 0])),
        edf=_edf(state, search.products),
        variance={
            name: float(sigma2 / math.exp(log_lambda[i])) for name, i in in_model.items()
        },
        sigma2=sigma2,
        residual_df=float(n - n_coefficients),
        aic=float(aic),
        aic_corrected=float(aic + 2 * _edf_of_variances(search, log_lambda, state)),
        reml=float(-(state.deviance + constants) / 2),
        effects=pd.DataFrame(effects, index=design.people),
        coefficients=coefficients,
        covariance=sigma2 * state.inverse,
        log_lambda=log_lambda,
    )


def _edf(state: State, products: Products) -> dict[str, float]:
    """Return the effective degrees of freedom of each term in the model."""
    edf = {term: float(state.edf[i]) for i, term in enumerate(TERMS) if products.sizes[i]}
    return edf | {"smooth": 1 + edf.get("smooth", 0.0)}


def _edf_of_variances(search: Search, log_lambda: np.ndarray, state: State) -> float:
    """Return the degrees of freedom that estimating the variances takes.

    How much the fitted answers move with the log ratios, times the
    covariance of these: the inverse of half the deviance's second
    derivatives. Directions in which it is flat are left out.

    Source: Wood, Pya and Saefken, Smoothing parameter and model
        selection for general smooth models, JASA 2016, section 4; as
        mgcv's bam, without the second-order term that gam adds.
    """
    products = search.products
    active = np.flatnonzero(products.sizes)
    if not len(active):
        return 0.0
    ratio = each(math.exp, log_lambda)
    moves = []
    for i in active:  # of the fitted answers, by a log ratio
        pulls = np.zeros_like(state.effects)  # the penalty's pull on each coefficient
        pull = np.zeros_like(state.beta)
        if i == 0:
            pull[N_FIXED:] = ratio[0] * state.beta[N_FIXED:]
        else:
            pulls[i - 1] = ratio[i] * state.effects[i - 1]
        beta = state.inverse @ (pull - np.einsum("jm,jmk->k", pulls, state.solved))
        first, mixed, second = state.own_inverse
        own = np.array(
            [first * pulls[0] + mixed * pulls[1], mixed * pulls[0] + second * pulls[1]]
        )
        own -= state.solved @ beta
        moves.append(products.fitted(beta, own))
    moved = np.array(moves)
    values, vectors = np.linalg.eigh(search.hessian(log_lambda)[np.ix_(active, active)] / 2)
    is_curved = values > FLAT
    along = (vectors.T @ moved)[is_curved]
    sigma2 = state.rss / (products.n - N_FIXED)
    return float(((along**2).sum(1) / values[is_curved]).sum() / sigma2)


def _test_smooth(fit: Fit) -> TermTest:
    """Return the test of the curve, with the covariance of its values at the answers."""
    root = np.linalg.cholesky(fit.design._products.gram[1:, 1:]).T
    covariance = root @ fit.covariance[1:, 1:] @ root.T
    values = root @ fit.coefficients[1:]
    return term_tests.smooth(values, covariance, _reference_df(fit), fit.residual_df)


def _reference_df(fit: Fit) -> float:
    """Return the reference degrees of freedom of the curve, tr(2 F - F F).

    F maps the coefficients without a penalty to those with one, and
    the trace is over the curve's own.
    """
    products, ratio = fit.design._products, each(math.exp, fit.log_lambda)
    inverse = fit.covariance / fit.sigma2
    *_, solved = products.solve(ratio, products.own)
    lost = ratio[0] * (inverse[N_FIXED:, N_FIXED:] ** 2).sum()
    lost += ratio[1:] @ ((solved @ inverse[:, N_FIXED:]) ** 2).sum((1, 2))
    return fit.design.k - 1 - ratio[0] * lost


def _test_effects(fit: Fit, term: str) -> TermTest:
    """Return the test of one kind of effects of people.

    The statistic weighs them by the information that the other kind
    of effects and the curve leave.
    """
    products, ratio = fit.design._products, each(math.exp, fit.log_lambda)
    inverse = fit.covariance / fit.sigma2
    own = products.own
    _, own_inverse, solved = products.solve(ratio, own)
    one = TERMS.index(term) - 1  # the row of these effects, and of the other kind
    other = 1 - one
    solved = solved[one]
    within = own_inverse[::2][one]
    joint = np.diag(within) + solved @ inverse @ solved.T
    to_curve = solved @ inverse[:, N_FIXED:]
    covariance = joint - ratio[1 + one] * joint @ joint - ratio[0] * to_curve @ to_curve.T
    mixed = products.own_squares[1]
    squares = products.own_squares[::2][one] + mixed**2 / ratio[1 + other] + ratio[1 + one]
    left = own[one] + mixed[:, None] * own[other] / ratio[1 + other]
    fixed = products.gram + own[other].T @ own[other] / ratio[1 + other]
    wiggly = range(N_FIXED, len(fixed))
    fixed[wiggly, wiggly] += ratio[0]
    weight = np.diag(squares) - left @ np.linalg.solve(fixed, left.T)
    own_effects = fit.effects[term].to_numpy() / np.sqrt(fit.sigma2)
    return term_tests.effects(own_effects, weight, covariance, fit.residual_df)


def _numbers(name: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return values as float64 with shape (n,); raise ValueError if they are no such."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from error
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(
            f"{name} must be a list of numbers, one for each answer, got the shape "
            f"{numbers.shape}."
        )
    n_bad = int((~np.isfinite(numbers)).sum())
    if n_bad:
        raise ValueError(
            f"{name} holds {n_bad} NaN or infinite values of {len(numbers)}. Drop these "
            "answers from y, x and people first."
        )
    return numbers


def _check_length(name: str, n: int, expected: int) -> None:
    """Raise ValueError unless there is one value for each answer."""
    if n != expected:
        raise ValueError(
            f"{name} has {n} values and x has {expected}: expected one of each for every "
            "answer."
        )


def _check_people(
    people: Sequence[Any] | np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the people, sorted (m,), and which of them gave each answer (n,)."""
    names = np.asarray(people)
    if names.ndim != 1:
        raise ValueError(
            f"people must say for each answer who gave it, got the shape {names.shape}."
        )
    _check_length("people", len(names), n)
    if pd.isna(names).any():
        raise ValueError(
            f"people is missing for {int(pd.isna(names).sum())} of {n} answers. Drop these "
            "answers from y, x and people first."
        )
    return np.unique(names, return_inverse=True)


def _check_size(x: np.ndarray, n_people: int, k: int, has_effects: bool) -> None:
    """Raise ValueError unless there are enough answers for the model."""
    checks.counts(k=k)
    n_distinct = len(np.unique(x))
    fewest = FEWEST_X if k > N_FIXED else 2
    if n_distinct < fewest:
        raise ValueError(
            f"x has {n_distinct} distinct values: a {'curve' if k > N_FIXED else 'line'} "
            f"needs {fewest} or more. Is x the distance of each answer?"
        )
    if len(x) <= k:
        raise ValueError(
            f"{len(x)} answers are too few for k = {k} columns and an error: expected more "
            "than k. Choose a smaller k."
        )
    if has_effects and not 1 < n_people < len(x):
        raise ValueError(
            f"{len(x)} answers come from {n_people} people: effects of people need two of "
            "them or more, and two answers of somebody, or they cannot be told from "
            "errors. Leave them out with slopes=False, intercepts=False."
        )
