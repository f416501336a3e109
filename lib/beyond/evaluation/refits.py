"""A printed table of a mixed model read backwards, and refits of SIMULATED answers.

The study's answers are not public; the table of its fits is. A fit's
residual variance follows from its AIC, its variance components from
its effective degrees of freedom (EDF), and both are tested by its
standard errors. Answers drawn with what was found are fitted again,
by the same model, and set beside the print.

Source: table S2 of Tominaga, Yamashita and Kurashima (IJCAI 2024).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
from scipy.optimize import root

from lib import checks
from lib.beyond.evaluation import gamm
from lib.beyond.evaluation.tominaga import KINDS, Printed, printed
from lib.beyond.evaluation.willingness import (
    FIRST,
    FLAT,
    LAST,
    MIDDLE,
    POOLS,
    SHAPES,
    Latent,
    Pool,
    curve,
)

N_STEPS, N_COMMON = 3, 24  # Newton's, and data sets whose mean they bring to the print
SMALL = 0.05  # of a log-parameter, for a slope by differences
LONGEST = 0.5  # step of one parameter
EXACT = 1e-8  # relative error of EDFs that were solved for
REACH = 20.0  # log ratios of variances are looked for so far around the start
K = 10  # columns of the curve: mgcv's default, which the study does not change
LEVEL = 0.05  # of p
FALLS = (0.2, 0.3, 0.4, 0.6)  # points from 1 change to 9: can the test see them?
# what calibration brings to the print, and the parameter of `Latent` that moves it most
CALIBRATED = {
    "intercept": "mean",
    "edf_intercepts": "between",
    "edf_slopes": "slope",
    "sigma2": "error",
    "F_smooth": "amplitude",
}


def design(x: np.ndarray, people: np.ndarray) -> gamm.Design:
    """Return the study's model of what people were shown: distances, and to whom."""
    return gamm.Design(x, people, min(K, len(np.unique(x))))


def samples(pool: Pool, n: int, seed: int) -> list[gamm.Design]:
    """Return n draws of what people were shown, from a pool."""
    return [design(*pool.draw(np.random.default_rng([seed, i]))) for i in range(n)]


def read_backwards(model: Printed, sample: gamm.Design) -> tuple[Latent, float]:
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
    n, n_people = len(sample.x), len(sample.people)
    # where penalties weigh about as much as answers
    start = np.log(np.array([n, n / n_people, sample.x @ sample.x / n_people]))

    def near(log_ratio: np.ndarray) -> np.ndarray:
        return log_ratio.clip(start - REACH, start + REACH)

    def missed(log_ratio: np.ndarray) -> np.ndarray:
        edf, _ = sample.known(near(log_ratio))
        return np.array([math.log(edf[term] / goal) for term, goal in model.edf.items()])

    try:
        log_ratio = near(root(missed, start, tol=1e-10).x)
        is_solved = bool(np.abs(missed(log_ratio)).max() < EXACT)
    except ValueError:  # of the design, where hardly anything is penalised
        is_solved = False
    if not is_solved:
        raise ValueError(
            f"No variances have the EDFs {model.edf} for this draw of what was shown. Are "
            f"these numbers of its distance, {model.distance}? Else take another pool."
        )
    _, se = sample.known(log_ratio)
    _, between, slope = (model.error * np.exp(-log_ratio / 2)).tolist()
    latent = Latent(model.intercept, between, slope, model.error, 0.0, FLAT)
    return latent, model.error * se


def of_print(model: Printed, drawn: Sequence[gamm.Design]) -> tuple[Latent, float]:
    """Return what `read_backwards` does, in the mean over draws of what was shown."""
    latents, errors = zip(*(read_backwards(model, one) for one in drawn), strict=True)
    between, slope = (
        math.fsum(getattr(latent, name) for latent in latents) / len(latents)
        for name in ("between", "slope")
    )
    mean = replace(latents[0], between=between, slope=slope)
    return mean, math.fsum(errors) / len(errors)


def refits(
    latent: Latent,
    drawn: Sequence[gamm.Design],
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
    Returns: Columns intercept, se, sigma2, aic (conditional); edf_ of
        each term, F_ and p_ of each that is tested; drop (by how much
        the curve falls from 1 change to 9), and tail_se (the standard
        error of its fall from 4 to 9).
    """
    rows = []
    for i, sample in enumerate(drawn):
        rng = np.random.default_rng([seed, i, 1])  # not the stream of what was shown
        fitted = sample.fit(latent.answers(sample.x, sample.person, rng, is_rounded))
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
        _, row["tail_se"] = fitted.difference(4.0, LAST)
        rows.append(row)
    return pd.DataFrame(rows)


def calibrated(
    model: Printed,
    start: Latent,
    drawn: Sequence[gamm.Design],
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
            moving as many parameters. The others stay. The mean is
            moved by points, all else by shares of itself.
        is_rounded: As for `Latent.answers`.
    Raises: ValueError: there is no such printed number.
    """
    checks.one_of("printed number", moved, tuple(CALIBRATED))
    names = [CALIBRATED[name] for name in moved]

    def scaled(numbers: pd.Series) -> np.ndarray:
        return np.array(
            [v if name == "intercept" else math.log(v) for name, v in numbers.items()]
        )

    def refitted(latent: Latent) -> np.ndarray:
        return scaled(refits(latent, drawn, seed, is_rounded)[list(moved)].mean())

    def stepped(latent: Latent, step: np.ndarray) -> Latent:
        old, moves = vars(latent), dict(zip(names, step.tolist(), strict=True))
        new = {
            n: old[n] + by if n == "mean" else old[n] * math.exp(by)
            for n, by in moves.items()
        }
        return replace(latent, **new)

    goal, latent = scaled(numbers_of(model)[list(moved)]), start
    for _ in range(N_STEPS):
        here = refitted(latent)
        slopes = [
            refitted(stepped(latent, SMALL * unit)) - here for unit in np.eye(len(names))
        ]
        step = np.linalg.solve(np.column_stack(slopes) / SMALL, goal - here)
        latent = stepped(latent, step.clip(-LONGEST, LONGEST))
    return latent


def numbers_of(model: Printed) -> pd.Series:
    """Return what is printed, or follows from the print, of what `refits` measures."""
    known = {"intercept": model.intercept, "se": model.se, "aic": model.aic}
    known["sigma2"] = model.error**2
    known |= {f"edf_{term}": value for term, value in model.edf.items()}
    known |= {f"F_{term}": value for term, value in model.F.items()}
    return pd.Series(known)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and sd over data sets of each quantity of `refits`, and how many.

    For each p there is the share of data sets in which it is below
    `LEVEL`, too.
    """
    tests = rows.filter(like="p_")
    shares = (tests < LEVEL).astype(float).add_suffix(f" < {LEVEL:g}")
    every = rows.join(shares)
    return pd.DataFrame({"mean": every.mean(), "sd": every.std()}).assign(
        datasets=len(every)
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
    table = pd.DataFrame({"printed": numbers_of(model)})
    table["refitted"], table["sd"] = refit_summary["mean"], refit_summary["sd"]
    return table.assign(sds_away=(table.printed - table.refitted) / table.sd)


def studies(
    n_datasets: Mapping[str, int],
    seed: int,
    pools: Mapping[str, Pool] = POOLS,
    shapes: Iterable[str] = tuple(SHAPES),
    progress: Callable[[range], Iterable[int]] = iter,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what answers are drawn from in four studies, and what the model finds.

    "family": curves with the printed F, for each pool and shape;
    "refit": whole points that are refitted as printed, all terms
    tested; "power": a fall of acceptance by so many points; "size":
    none.

    Arguments:
        n_datasets: How many each study takes, by its name.
        seed: Of all draws.
        pools, shapes: Of the family.
        progress: Wraps the range of settings.
    Returns: A row for each setting; and a row for each setting and
        quantity of its `summary`.
    """
    acceptance, action, middle = printed(1), printed(3), POOLS["middle"]
    settings: list[tuple[str, str, str, float | None]]
    settings = [("family", pool, shape, None) for pool in pools for shape in shapes]
    settings += [("refit", "middle", shape, None) for shape in (MIDDLE, FLAT)]
    settings += [("power", "middle", s, fall) for s in ("line", MIDDLE) for fall in FALLS]
    settings += [("size", "middle", FLAT, 0.0)]
    latents, summaries = [], []
    for i in progress(range(len(settings))):
        study, name, shape, fall = settings[i]
        pool, n, tested = pools.get(name, middle), n_datasets[study], ["smooth"]
        tried = samples(pool, min(N_COMMON, n), seed)
        model = acceptance if shape == FLAT or fall is not None else action
        latent, _ = of_print(model, tried)
        amplitude = float(shape != FLAT) if fall is None else fall
        latent = replace(latent, shape=shape, amplitude=amplitude)
        if study == "family":
            latent = calibrated(model, latent, tried, seed, ["F_smooth"], False)
        elif study == "refit":
            tested = list(KINDS)
            moved = list(CALIBRATED)[: None if shape == MIDDLE else -1]
            latent = calibrated(model, latent, tried, seed, moved)
        rows = refits(
            latent, samples(pool, n, seed + 1), seed + 2, study == "refit", tested
        )
        names = {"study": study, "pool": name, "shape": shape, "fall": fall}
        latents.append(names | {k: v for k, v in asdict(latent).items() if k != "shape"})
        summaries.append(summary(rows).reset_index(names="quantity").assign(**names))
    joined = pd.concat(summaries)
    quantities = joined.columns[: -len(names)]
    return pd.DataFrame(latents), joined[[*names, *quantities]]


def curves_that_fit(latents: pd.DataFrame, summaries: pd.DataFrame) -> pd.DataFrame:
    """Return the family's curves, and which of them fit what is printed of model 3.

    A curve fits if its F is reached within 15 percent and the printed
    EDF lies within two standard deviations.

    Arguments:
        latents, summaries: As `studies` returns them.
    Returns: A row for each pool and shape, with columns fall (from 1
        change to 9, in points), F, by the fifth (share of the fall),
        EDF, sd of EDF, sd of fall, s.e. of 4 to 9, is_reached, fits.
    Raises: ValueError: a curve has a single data set, and so no
        standard deviation.
    """
    model, by = printed(3), ["pool", "shape"]
    family = summaries[summaries.study == "family"]
    if (family.datasets < 2).any():
        raise ValueError(
            "A curve has 1 simulated data set, and a standard deviation needs 2. Ask "
            "for more: n_datasets['family'] of `studies`."
        )
    mean, sd = (
        family.pivot_table(index=by, columns="quantity", values=column, sort=False)
        for column in ("mean", "sd")
    )
    table = pd.DataFrame(
        {
            "fall": latents[latents.study == "family"].set_index(by).amplitude,
            "F": mean.F_smooth,
            "EDF": mean.edf_smooth,
            "sd of EDF": sd.edf_smooth,
            "sd of fall": sd["drop"],
            "s.e. of 4 to 9": mean.tail_se,
        }
    )
    fifth = np.array([5.0])
    table["by the fifth"] = [1 - curve(shape, fifth)[0] for _, shape in table.index]
    table["is_reached"] = (table.F / model.F["smooth"] - 1).abs() <= 0.15
    off = (table.EDF - model.edf["smooth"]).abs()
    return table.assign(fits=table.is_reached & (off <= 2 * table["sd of EDF"]))
