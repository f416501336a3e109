"""A printed table of a mixed model read backwards, and refits of SIMULATED answers.

The study's answers are not public; the table of its fits is. A fit's
residual variance follows from its AIC, its variance components from
its effective degrees of freedom (EDF), and both are tested by its
standard errors. Answers drawn with what was found are fitted again,
by the same model, and set beside the print.

Source: table S2 of Tominaga, Yamashita and Kurashima (IJCAI 2024).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import root

from lib import checks, io
from lib.beyond.evaluation import gamm
from lib.beyond.evaluation.willingness import (
    FIRST,
    FLAT,
    LAST,
    N_PEOPLE,
    N_REMOVED,
    Latent,
    Pool,
)
from lib.io import PUBLISHED

N_ANSWERS = 5 * N_PEOPLE - N_REMOVED
N_STEPS, N_COMMON = 3, 24  # Newton's, and data sets whose mean they bring to the print
SMALL = 0.05  # of a log-parameter, for a slope by differences
LONGEST = 0.5  # step of one parameter
EXACT = 1e-8  # relative error of EDFs that were solved for
REACH = 20.0  # log ratios of variances are looked for so far around the start
MODELS = (1, 2, 3, 4)
K = 10  # columns of the curve: mgcv's default, which the study does not change
LEVELS = (0.05, 0.01, 0.001)  # of p, as the study marks them


@dataclass(frozen=True)
class Printed:
    """Hold what table S2 prints of one model.

    Arguments:
        outcome, distance: What was asked, and what explains it.
        intercept, t, aic: As printed.
        edf, F: By term: one of `gamm.TERMS`.
    """

    outcome: str
    distance: str
    intercept: float
    t: float
    aic: float
    edf: dict[str, float]
    F: dict[str, float]

    @property
    def se(self) -> float:
        """Return the standard error of the intercept, with more digits than printed."""
        return self.intercept / self.t

    @property
    def error(self) -> float:
        """Return the standard deviation of the residuals that the AIC implies."""
        return error_of(self.aic, 1 + sum(self.edf.values()), N_ANSWERS)


def printed(model: int) -> Printed:
    """Return what table S2 prints of a model, 1 to 4.

    Raises: ValueError: there is no such model.
    """
    checks.one_of("model", [model], MODELS)
    table = io.read_csv(PUBLISHED / "tominaga_tableS2.csv")
    rows = table[table.model == model].set_index("kind")
    first = rows.loc["parametric"]
    kinds = dict(
        zip(gamm.TERMS, ("smooth", "random intercept", "random slope"), strict=True)
    )
    return Printed(
        outcome=str(first.outcome),
        distance=str(rows.term["smooth"]),
        intercept=float(first.coefficient),
        t=float(first.t),
        aic=float(first.aic_of_model),
        edf={key: float(rows.edf[kind]) for key, kind in kinds.items()},
        F={key: float(rows.F[kind]) for key, kind in kinds.items()},
    )


def error_of(aic: float, edf: float, n: int) -> float:
    """Return the standard deviation of a Gaussian fit's residuals, from its AIC.

    AIC = n (1 + log(2 pi RSS / n)) + 2 (edf + 1), and the variance is
    RSS / (n - edf). This is the conditional AIC, everywhere in this
    package. The corrected one adds degrees of freedom for the variances;
    they depend on the answers, so no printed table can be read back
    by it.

    Arguments:
        aic: Conditional, with the fit's degrees of freedom.
        edf: Of all terms, the intercept included.
        n: Answers.
    Example:
        >>> n, rss, edf = 100, 80.0, 10.0
        >>> aic = n * (1 + np.log(2 * np.pi * rss / n)) + 2 * (edf + 1)
        >>> round(error_of(aic, edf, n) ** 2, 6), round(80 / 90, 6)
        (0.888889, 0.888889)
    """
    rss = n * math.exp((aic - 2 * (edf + 1)) / n - 1) / (2 * math.pi)
    return math.sqrt(rss / (n - edf))


@dataclass(frozen=True)
class Sample:
    """Hold one draw of what 362 people were shown, ready to be fitted to answers.

    Arguments:
        x: Numbers of changes.
        people: To whom they were shown.
        design: Of the model.
    """

    x: np.ndarray
    people: np.ndarray
    design: gamm.Design


def samples(pool: Pool, n: int, seed: int, **terms: bool) -> list[Sample]:
    """Return draws of what people were shown.

    Arguments:
        pool: Where plans come from.
        n: How many draws.
        terms: As for `gamm.Design`: slopes, intercepts.
    """
    checks.positive_int(n=n)
    drawn = []
    for i in range(n):
        x, people = pool.drawn(np.random.default_rng([seed, i]))
        k = min(K, len(np.unique(x)))
        drawn.append(Sample(x, people, gamm.Design(x, people, k, **terms)))
    return drawn


def read_backwards(model: Printed, sample: Sample) -> tuple[Latent, float]:
    """Return latent parameters with the printed EDFs, and the standard error they imply.

    EDFs depend on what was shown and on ratios of variances, not on
    the answers. So the three printed EDFs give three ratios, and the
    residual variance comes from the AIC. The standard error of the
    intercept follows, and is no part of what was solved for.

    Arguments:
        model: What is printed.
        sample: What people were shown, in the model's distance.
    Returns: The parameters, without a curve, and the standard error.
    Raises: ValueError: no ratios have these EDFs.
    Example:
        >>> sample = samples(Pool(6.0, 1.8), 1, seed=0)[0]
        >>> latent, se = read_backwards(printed(3), sample)
        >>> round(latent.between, 1), round(latent.slope, 1), round(se, 2)
        (1.1, 0.1, 0.07)
    """
    target = {term: model.edf[term] for term in gamm.TERMS}
    n, n_people = len(sample.x), len(np.unique(sample.people))
    # where penalties weigh about as much as answers
    start = np.log(np.array([n, n / n_people, sample.x @ sample.x / n_people]))

    def near(log_lambda: np.ndarray) -> np.ndarray:
        return log_lambda.clip(start - REACH, start + REACH)

    def missed(log_lambda: np.ndarray) -> np.ndarray:
        edf, _ = sample.design.known(near(log_lambda))
        return np.array([math.log(edf[term] / goal) for term, goal in target.items()])

    try:
        log_lambda = near(root(missed, start, tol=1e-10).x)
        is_solved = bool(np.abs(missed(log_lambda)).max() < EXACT)
    except ValueError:  # of the design, where hardly anything is penalised
        is_solved = False
    if not is_solved:
        raise ValueError(
            f"No variances have the EDFs {model.edf} for this draw of what was shown. Are "
            f"these numbers of its distance, {model.distance}? Else take another pool."
        )
    _, se = sample.design.known(log_lambda)
    _, between, slope = model.error * np.exp(-log_lambda / 2)
    latent = Latent(
        mean=model.intercept,
        between=float(between),
        slope=float(slope),
        error=model.error,
        amplitude=0.0,
        shape=FLAT,
    )
    return latent, model.error * se


def refits(
    latent: Latent,
    drawn: Sequence[Sample],
    seed: int,
    is_rounded: bool = True,
    tested: Sequence[str] = ("smooth",),
) -> pd.DataFrame:
    """Return what the model finds in SIMULATED answers, a row for each data set.

    Arguments:
        latent: What answers are drawn from.
        drawn: What people were shown, one for each data set.
        seed: Of the answers, apart from that of `samples`. The same
            seed draws the same people, so that two latents can be
            compared.
        is_rounded: As for `Latent.answers`.
        tested: Terms that are tested; people's take ten times as long
            as the fit.
    Returns: Columns intercept, se, sigma2, aic (conditional, as
        `error_of` reads the printed one); edf_ of each term that is
        in the model, F_ and p_ of each that is tested; drop (by how
        much the curve falls from 1 change to 9), drop_8 (to 8), tail
        (from 4 to 9) and tail_se.
    """
    rows = []
    for i, sample in enumerate(drawn):
        rng = np.random.default_rng([seed, i, 1])  # not the stream of what was shown
        y = latent.answers(sample.x, sample.people, rng, is_rounded)
        fitted = sample.design.fit(y)
        row = {
            "intercept": fitted.intercept,
            "se": fitted.intercept_se,
            "sigma2": fitted.sigma2,
            "aic": fitted.aic,
        }
        row |= {f"edf_{term}": edf for term, edf in fitted.edf.items()}
        for term in tested:
            test = fitted.test(term)
            row |= {f"F_{term}": test.f, f"p_{term}": test.p}
        row["drop"], _ = fitted.difference(FIRST, LAST)
        row["drop_8"], _ = fitted.difference(FIRST, 8.0)
        row["tail"], row["tail_se"] = fitted.difference(4.0, LAST)
        rows.append(row)
    return pd.DataFrame(rows)


# what calibration brings to the print, and the parameter of `Latent` that moves it most
CALIBRATED = {
    "intercept": "mean",
    "edf_intercepts": "between",
    "edf_slopes": "slope",
    "sigma2": "error",
    "F_smooth": "amplitude",
}


def calibrated(
    model: Printed,
    start: Latent,
    drawn: Sequence[Sample],
    seed: int,
    moved: Sequence[str],
    is_rounded: bool = True,
) -> Latent:
    """Return latent parameters with which the mean refit has printed numbers.

    Newton's method by differences, on the same draws at every step.
    Whole points move one by one: with them it comes within half a
    percent for 24 data sets, and within some percents for a few.

    Arguments:
        model: Whose print is aimed at.
        start: Where it begins.
        drawn: What people were shown, one for each data set.
        seed: As for `refits`.
        moved: Of `CALIBRATED`: which printed numbers are aimed at, by
            moving as many parameters. The others stay.
        is_rounded: As for `Latent.answers`.
    Returns: The mean is moved by points, all else by shares of
        itself.
    Raises: ValueError: there is no such printed number; it is zero,
        or its parameter begins at zero, so that shares of it are
        nothing.
    """
    checks.one_of("printed number", moved, tuple(CALIBRATED))
    checks.not_empty("moved", moved)
    goal = _of_print(model)[list(moved)]
    names = [CALIBRATED[name] for name in moved]
    for name, parameter in zip(moved, names, strict=True):
        begins = getattr(start, parameter)
        if parameter != "mean" and not (goal[name] > 0 and begins > 0):
            raise ValueError(
                f"{name} is printed as {goal[name]:g} and {parameter} begins at "
                f"{begins:g}: expected both above zero, as it is moved by shares of "
                f"itself. Leave {name} out, or begin elsewhere."
            )

    def scaled(numbers: pd.Series) -> np.ndarray:
        return np.array(
            [v if name == "intercept" else math.log(v) for name, v in numbers.items()]
        )

    def refitted(latent: Latent) -> np.ndarray:
        return scaled(refits(latent, drawn, seed, is_rounded)[list(moved)].mean())

    def stepped(latent: Latent, step: np.ndarray) -> Latent:
        moves = zip(names, step.tolist(), strict=True)
        old = vars(latent)
        new = {n: old[n] + by if n == "mean" else old[n] * math.exp(by) for n, by in moves}
        return replace(latent, **new)

    latent = start
    for _ in range(N_STEPS):
        here = refitted(latent)
        slopes = np.column_stack(
            [
                (refitted(stepped(latent, SMALL * unit)) - here) / SMALL
                for unit in np.eye(len(names))
            ]
        )
        step = np.linalg.solve(slopes, scaled(goal) - here)
        latent = stepped(latent, step.clip(-LONGEST, LONGEST))
    return latent


def _of_print(model: Printed) -> pd.Series:
    """Return what is printed, or follows from the print, of what `refits` measures."""
    known = {"intercept": model.intercept, "se": model.se, "aic": model.aic}
    known["sigma2"] = model.error**2
    known |= {f"edf_{term}": value for term, value in model.edf.items()}
    known |= {f"F_{term}": value for term, value in model.F.items()}
    return pd.Series(known)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each quantity: its mean and sd over data sets, and how many.

    For each p there are shares of data sets with p below a level too,
    and for the curve the share with an EDF above 2.

    Arguments:
        rows: As `refits` gives them.
    """
    shares = {
        f"{name} < {level:g}": (rows[name] < level).astype(float)
        for name in rows
        if name.startswith("p_")
        for level in LEVELS
    }
    shares["edf_smooth > 2"] = (rows.edf_smooth > 2).astype(float)
    every = rows.assign(**shares)
    return pd.DataFrame(
        {"mean": every.mean(), "sd": every.std(ddof=1), "datasets": float(len(every))}
    )


def beside_print(model: Printed, refit_summary: pd.DataFrame) -> pd.DataFrame:
    """Return what a model's print says, and refits beside it: a row for each quantity.

    Arguments:
        model: What is printed.
        refit_summary: As `summary` gives it, of refits with all terms
            tested.
    Returns: Columns printed, refitted (mean), sd (over data sets)
        and sds_away, how far the print is from the mean.
    """
    table = pd.DataFrame({"printed": _of_print(model)})
    table["refitted"], table["sd"] = refit_summary["mean"], refit_summary["sd"]
    return table.assign(sds_away=(table.printed - table.refitted) / table.sd)
