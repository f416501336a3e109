r"""A curve for everybody, and people who differ from it: the mixed additive model.

People rate several things each, and x says how far away each thing
is. Some people give high ratings throughout, and some mind the
distance more than others do:

.. math:: y_i = \beta_0 + s(x_i) + b_{u(i)} + c_{u(i)} x_i + e_i, \quad
          b \sim N(0, \tau_b), \ c \sim N(0, \tau_c), \ e \sim N(0, \sigma^2)

The curve s is a thin plate regression spline (`ThinPlate`). Its
wiggly part is one more random effect, so that three variances have to
be estimated, and restricted maximum likelihood does that (`reml`).
This is the model that R's mgcv fits to `y ~ s(x) + s(u, bs = "re") +
s(u, x, bs = "re")`.

A fit takes milliseconds for two reasons. What depends on x and people
alone is made once, in a `Design`. And the columns of one person meet
those of another only through the curve: each evaluation inverts one
2 x 2 matrix a person and one matrix with k columns.

Then single terms are tested: how sure is it that they are? What a
penalty shrinks has no whole number of degrees of freedom, and its
covariance is nearly singular. Two statistics of Simon Wood's take
this into account, and mgcv prints them. Their laws are sums of
weighted chi-squared variables over an estimate of the error's
variance; `tail` computes these to all digits, however small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats
from scipy.sparse.linalg import eigsh

from lib import checks
from lib.beyond.evaluation.reml import FLAT, N_FIXED, ROUNDING, Products, Search, State

TERMS = ("smooth", "intercepts", "slopes")
FEWEST_X = 4  # distinct values of x that a curve needs
MANY_KNOTS = 100  # above, only the eigenvectors that are needed are computed
NO_ERROR = 1e-9  # share of the sum of squares below which nothing is left for an error
STEP, END = 0.02, 40.0  # of the integral of `tail`: more steps change nothing


class TermTest(NamedTuple):
    """Test of one term against its absence: F, its reference df, and p."""

    f: float
    ref_df: float
    p: float


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
        person_columns = np.array([ones * intercepts, self.x * slopes])
        self._products = Products(columns, person_columns, person)

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
    ratio = np.exp(log_lambda)
    moves = []
    for i in active:  # of the fitted answers, by a log ratio
        pulls = np.zeros_like(state.effects)  # the penalty's pull on each coefficient
        pull = np.zeros_like(state.beta)
        if i == 0:
            pull[N_FIXED:] = ratio[0] * state.beta[N_FIXED:]
        else:
            pulls[i - 1] = ratio[i] * state.effects[i - 1]
        beta = state.inverse @ (pull - np.einsum("jm,jmk->k", pulls, state.solved))
        first, mixed, second = state.person_inverse
        effects = np.array(
            [first * pulls[0] + mixed * pulls[1], mixed * pulls[0] + second * pulls[1]]
        )
        effects -= state.solved @ beta
        moves.append(products.fitted(beta, effects))
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
    return curve_test(values, covariance, _reference_df(fit), fit.residual_df)


def _reference_df(fit: Fit) -> float:
    """Return the reference degrees of freedom of the curve, tr(2 F - F F).

    F maps the coefficients without a penalty to those with one, and
    the trace is over the curve's own.
    """
    products, ratio = fit.design._products, np.exp(fit.log_lambda)
    inverse = fit.covariance / fit.sigma2
    *_, solved = products.solve(ratio, products.cross)
    lost = ratio[0] * (inverse[N_FIXED:, N_FIXED:] ** 2).sum()
    lost += ratio[1:] @ ((solved @ inverse[:, N_FIXED:]) ** 2).sum((1, 2))
    return fit.design.k - 1 - ratio[0] * lost


def _test_effects(fit: Fit, term: str) -> TermTest:
    """Return the test of one kind of effects of people.

    The statistic weighs them by the information that the other kind
    of effects and the curve leave.
    """
    products, ratio = fit.design._products, np.exp(fit.log_lambda)
    inverse = fit.covariance / fit.sigma2
    cross = products.cross
    _, person_inverse, solved = products.solve(ratio, cross)
    one = TERMS.index(term) - 1  # the row of these effects, and of the other kind
    other = 1 - one
    solved = solved[one]
    within = person_inverse[::2][one]
    joint = np.diag(within) + solved @ inverse @ solved.T
    to_curve = solved @ inverse[:, N_FIXED:]
    covariance = joint - ratio[1 + one] * joint @ joint - ratio[0] * to_curve @ to_curve.T
    mixed = products.person_squares[1]
    squares = (
        products.person_squares[::2][one] + mixed**2 / ratio[1 + other] + ratio[1 + one]
    )
    left = cross[one] + mixed[:, None] * cross[other] / ratio[1 + other]
    fixed = products.gram + cross[other].T @ cross[other] / ratio[1 + other]
    wiggly = range(N_FIXED, len(fixed))
    fixed[wiggly, wiggly] += ratio[0]
    weight = np.diag(squares) - left @ np.linalg.solve(fixed, left.T)
    person_effects = fit.effects[term].to_numpy() / np.sqrt(fit.sigma2)
    return effects_test(person_effects, weight, covariance, fit.residual_df)


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
        reference_df: How many directions are counted.
        residual_df: Of the error.
    Raises: ValueError: there is no direction to count.
    Source: Wood, On p-values for smooth components of an extended
        generalized additive model, Biometrika 2013; mgcv 1.8-41,
        testStat.

    Example:
        With a whole number of directions it is the usual F test:

        >>> test = curve_test(np.array([3.0, 1.0]), np.eye(2), 2.0, 100.0)
        >>> round(test.f, 3), round(test.p, 4), round(float(stats.f.sf(5, 2, 100)), 4)
        (5.0, 0.0085, 0.0085)
    """
    checks.positive(reference_df=reference_df, residual_df=residual_df)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    squares = (vectors.T @ values) ** 2 / np.abs(eigenvalues)
    whole = int(reference_df)
    fraction = reference_df - whole
    n_directions = int((eigenvalues > eigenvalues[0] * np.finfo(float).eps ** 0.9).sum())
    if whole == 0:
        raise ValueError(
            f"reference_df is {reference_df:g}: expected 1 or more, as any curve has "
            "that holds the straight line."
        )
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
    checks.positive(residual_df=residual_df)
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
    if k == N_FIXED:
        return np.zeros((len(knots), 0))
    bends = np.abs(knots[:, None] - knots) ** 3 / 12
    if len(knots) > MANY_KNOTS:
        values, vectors = eigsh(bends, k, v0=np.arange(1.0, len(knots) + 1))
    else:
        values, vectors = np.linalg.eigh(bends)
    largest = np.argsort(-np.abs(values), kind="stable")[:k]
    values, vectors = values[largest], vectors[:, largest]
    lines = vectors.T @ np.column_stack([np.ones_like(knots), knots])  # (k, 2)
    free = np.linalg.qr(lines, mode="complete")[0][:, N_FIXED:]
    root = np.linalg.cholesky(free.T @ (values[:, None] * free))
    return vectors @ free @ np.linalg.inv(root).T


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
    checks.positive_int(k=k)
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
