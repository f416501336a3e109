"""The printed table read backwards, and refits, against dense matrices and by hand."""

import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from lib.beyond.evaluation import gamm, refits
from lib.beyond.evaluation.refits import read_backwards, samples
from lib.beyond.evaluation.tominaga import KINDS, printed
from lib.beyond.evaluation.willingness import MIDDLE, POOLS, Latent

LATENT = Latent(2.6, 1.1, 0.1, 1.0, 1.0, MIDDLE)


@pytest.fixture(scope="module")
def shown():
    """Three draws of what people were shown."""
    return samples(POOLS["middle"], 3, seed=0)


@pytest.fixture(scope="module")
def small():
    """Twelve people with five plans each."""
    rng = np.random.default_rng(0)
    x, people = rng.choice([1.0, 2, 3, 4, 6, 7, 9], 60), np.repeat(np.arange(12), 5)
    return gamm.Design(x, people, k=7)


def dense(sample, log_lambda):
    """Return EDFs and the intercept's standard error over the error's, by full matrices.

    The curve is written by its values at the distinct x. Its penalty
    is that of a natural cubic spline (Green and Silverman, 1994).
    """
    knots, at = np.unique(sample.x, return_inverse=True)
    m, gap = len(knots), np.diff(knots)
    bends, weights = np.zeros((m, m - 2)), np.zeros((m - 2, m - 2))
    for j in range(m - 2):
        bends[j : j + 3, j] = 1 / gap[j], -1 / gap[j] - 1 / gap[j + 1], 1 / gap[j + 1]
        weights[j, j] = (gap[j] + gap[j + 1]) / 3
        if j:
            weights[j, j - 1] = weights[j - 1, j] = gap[j] / 6
    of_person = np.eye(len(sample.people))[sample.person]
    columns = np.hstack([np.eye(m)[at], of_person, of_person * sample.x[:, None]])
    smooth, intercepts, slopes = np.exp(log_lambda)
    n = of_person.shape[1]
    penalty = np.diag(np.repeat([0.0, intercepts, slopes], [m, n, n]))
    penalty[:m, :m] = smooth * bends @ np.linalg.solve(weights, bends.T)
    gram = columns.T @ columns
    inverse = np.linalg.inv(gram + penalty)
    of_column = np.diag(inverse @ gram)
    terms = of_column[:m].sum() - 1, of_column[m : m + n].sum(), of_column[m + n :].sum()
    share = columns[:, :m].mean(0)  # the intercept is the curve's mean over the answers
    edf = dict(zip(KINDS, terms, strict=True))
    return edf, np.sqrt(share @ inverse[:m, :m] @ share)


@pytest.mark.parametrize(
    "log_lambda", [[3.0, 0.5, 4.0], [8.0, 2.0, 2.0], [-2.0, -1.0, 9.0]]
)
def test_degrees_of_freedom_are_those_of_full_matrices(small, log_lambda):
    edf, se = small.known(np.array(log_lambda))
    expected, expected_se = dense(small, log_lambda)
    assert edf == pytest.approx(expected, rel=1e-8)
    assert se == pytest.approx(expected_se, rel=1e-8)


def test_variances_of_a_small_table_have_its_degrees_of_freedom(small):
    edf = {"smooth": 2.5, "intercepts": 6.0, "slopes": 4.0}
    model = replace(printed(3), edf=edf)
    latent, se = read_backwards(model, small)
    assert latent.error == model.error and latent.mean == 2.63
    assert latent.amplitude == 0 and latent.shape == "flat"
    people = [2 * np.log(latent.error / sd) for sd in (latent.between, latent.slope)]

    def missed(log_smooth):
        return dense(small, [log_smooth, *people])[0]["smooth"] - 2.5

    log_smooth = brentq(missed, -10, 25, xtol=1e-13)
    dense_edf, expected_se = dense(small, [log_smooth, *people])
    assert dense_edf == pytest.approx(edf, rel=1e-6)
    assert se == pytest.approx(latent.error * expected_se, rel=1e-6)


@pytest.mark.parametrize("model", [1, 3])
@pytest.mark.parametrize("pool", ["middle", "highest"])
def test_the_printed_error_is_no_part_of_what_is_solved_for_and_comes_out(model, pool):
    """One draw's error has a spread of 1 % over draws, their mean 0.3 %."""
    latent, se = refits.of_print(printed(model), samples(POOLS[pool], 8, seed=1))
    assert latent.error == printed(model).error
    assert se == pytest.approx(printed(model).se, rel=0.02)


@pytest.mark.parametrize(
    "edf", [(4.0, 400.0, 90.0), (4.0, 361.0, 361.0), (0.5, 250.0, 90.0)]
)
def test_tables_that_no_variances_have_are_named(shown, edf):
    """Of 362 people, and of a curve that has one degree of freedom or more."""
    model = replace(printed(3), edf=dict(zip(KINDS, edf, strict=True)))
    message = f"No variances have the EDFs {model.edf} for this draw of what was shown. Are"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_backwards(model, shown[0])


def test_draws_differ_and_do_not_depend_on_how_many_there_are(shown):
    assert len({tuple(sample.x[:20]) for sample in shown}) == len(shown)
    assert (samples(POOLS["middle"], 1, seed=0)[0].x == shown[0].x).all()


def test_a_row_is_one_fit(shown):
    rows = refits.refits(LATENT, shown[:2], seed=5, tested=("smooth", "slopes"))
    sample = shown[1]
    y = LATENT.answers(sample.x, sample.person, np.random.default_rng([5, 1, 1]))
    assert set(y) == set(range(1, 8))
    fit = gamm.fit(y, sample.x, sample.person)
    at, _ = fit.curve([1.0, 4.0, 9.0])
    expected = {
        "intercept": fit.intercept,
        "se": fit.intercept_se,
        "sigma2": fit.sigma2,
        "aic": fit.aic,
        "edf_smooth": fit.edf["smooth"],
        "edf_intercepts": fit.edf["intercepts"],
        "edf_slopes": fit.edf["slopes"],
        "F_smooth": fit.test().f,
        "p_smooth": fit.test().p,
        "F_slopes": fit.test("slopes").f,
        "p_slopes": fit.test("slopes").p,
        "drop": at[0] - at[2],
        "tail_se": fit.difference(4.0, 9.0)[1],
    }
    assert rows.loc[1].to_dict() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("number", "moved", "is_rounded", "rel"),
    [
        (3, list(refits.CALIBRATED), False, 1e-4),  # three of Newton's steps leave 1e-5
        # whole points move one by one: slopes by differences are rough
        (1, ["intercept", "edf_slopes", "sigma2"], True, 0.02),
    ],
)
def test_calibration_brings_the_mean_refit_to_the_print(
    shown, number, moved, is_rounded, rel
):
    model = printed(number)
    start, _ = read_backwards(model, shown[0])
    start = replace(start, amplitude=1.0, shape=MIDDLE) if number == 3 else start
    latent = refits.calibrated(model, start, shown, 0, moved, is_rounded)
    means = refits.refits(latent, shown, 0, is_rounded)[moved].mean().to_dict()
    goal = {
        "intercept": model.intercept,
        "edf_intercepts": model.edf["intercepts"],
        "edf_slopes": model.edf["slopes"],
        "sigma2": model.error**2,
        "F_smooth": model.F["smooth"],
    }
    assert means == pytest.approx({name: goal[name] for name in moved}, rel=rel)
    assert latent.shape == start.shape


def test_printed_numbers_that_are_not_aimed_at_are_named(shown):
    with pytest.raises(ValueError, match="Unknown printed number 'edf_smooth'"):
        refits.calibrated(printed(3), LATENT, shown[:1], 0, ["edf_smooth"])


def test_a_summary_by_hand():
    rows = pd.DataFrame(
        {"se": [0.06, 0.07, 0.08, 0.07], "p_smooth": [0.04, 0.001, 0.02, 0.6]}
    )
    summary = refits.summary(rows)
    assert (summary.datasets == 4).all()
    means = {"se": 0.07, "p_smooth": 0.16525, "p_smooth < 0.05": 0.75}
    assert summary["mean"].to_dict() == pytest.approx(means)
    assert summary.sd["se"] == pytest.approx(np.sqrt(2 * 0.01**2 / 3))


def test_the_print_stands_beside_refits():
    names = [f"{what}_{term}" for what in ("edf", "F") for term in KINDS]
    means = pd.DataFrame({"mean": 0.08, "sd": 0.01}, index=["se", "sigma2", "aic", *names])
    table = refits.beside_print(printed(3), means)
    assert table.printed["edf_slopes"] == 99.44 and table.printed["F_smooth"] == 18.46
    assert table.printed["se"] == pytest.approx(2.63 / 38.06)
    assert table.sds_away["se"] == pytest.approx((2.63 / 38.06 - 0.08) / 0.01)
    assert np.isnan(table.refitted["intercept"])  # it was not among what was found


@pytest.fixture(scope="module")
def studied():
    """All four studies, of one or two data sets, one pool and one shape."""
    n_datasets = {"family": 1, "refit": 1, "power": 2, "size": 1}
    return refits.studies(n_datasets, 0, {"middle": POOLS["middle"]}, ("1/x",))


def test_every_study_has_its_settings(studied):
    latents, summaries = studied
    counts = {"family": 1, "refit": 2, "power": 8, "size": 1}
    assert latents.study.value_counts().to_dict() == counts
    # people's terms are tested where they are compared with the print, and there alone
    tested = summaries[summaries.quantity == "F_slopes"].study
    assert tested.tolist() == ["refit", "refit"]
    with pytest.raises(ValueError, match="1 simulated data set"):
        refits.curves_that_fit(latents, summaries)


def test_a_study_is_its_refits(studied):
    """One setting by hand: acceptance falls by 0.6 in a line, and what is seen of it."""
    latents, summaries = studied
    tried = [read_backwards(printed(1), one)[0] for one in samples(POOLS["middle"], 2, 0)]
    between, slope = (
        np.mean([vars(one)[name] for one in tried]) for name in ("between", "slope")
    )
    latent = replace(tried[0], shape="line", amplitude=0.6, between=between, slope=slope)
    is_it = (latents["shape"] == "line") & (latents.fall == 0.6)
    row = latents[is_it].squeeze()[list(asdict(latent))].to_dict()
    assert row.pop("shape") == "line"
    assert row == pytest.approx({k: v for k, v in asdict(latent).items() if k in row})
    again = refits.refits(latent, samples(POOLS["middle"], 2, 1), 2, is_rounded=False)
    is_it = (summaries["shape"] == "line") & (summaries.fall == 0.6)
    means = summaries[is_it].set_index("quantity")["mean"].to_dict()
    assert means == pytest.approx(refits.summary(again)["mean"].to_dict())


def test_curves_fit_if_f_is_reached_and_the_degrees_of_freedom_are_near():
    same = {"study": "family", "pool": "middle", "datasets": 2, "amplitude": 1.0}
    found = {"F_smooth": [18.0, 18.0, 14.0], "edf_smooth": [4.6, 1.4, 4.2]}
    rows = pd.DataFrame(found | {"shape": ["1/x", "line", "elbow at 5"]})
    rows = rows.assign(**same, drop=1.0, tail_se=0.1)
    quantities = [*found, "drop", "tail_se"]
    summaries = rows.melt([*same, "shape"], quantities, "quantity", "mean").assign(sd=0.5)
    table = refits.curves_that_fit(rows, summaries).loc["middle"]
    assert table.fits.to_dict() == {"1/x": True, "line": False, "elbow at 5": False}
    assert table.is_reached.to_dict() == {"1/x": True, "line": True, "elbow at 5": False}
    assert table["by the fifth"]["line"] == pytest.approx(0.5)
