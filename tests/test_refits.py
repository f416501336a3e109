"""The printed table read backwards, and refits, against dense matrices and by hand."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from lib.beyond.evaluation import gamm, refits
from lib.beyond.evaluation.refits import Sample, printed, read_backwards, samples
from lib.beyond.evaluation.willingness import MIDDLE, POOLS, Latent, Pool

LATENT = Latent(2.6, 1.1, 0.1, 1.0, 1.0, MIDDLE)
TABLE_S2 = {  # copied from the paper: outcome, distance, intercept, t, AIC, EDFs
    1: ("acceptance", "sparsity", 3.28, 45.60, 5597.44, (1.01, 235.35, 142.98)),
    2: ("acceptance", "proximity", 3.29, 45.93, 5590.47, (1.00, 258.69, 133.20)),
    3: ("action", "sparsity", 2.63, 38.06, 5261.35, (4.25, 269.32, 99.44)),
    4: ("action", "proximity", 2.63, 38.77, 5280.33, (4.32, 288.58, 69.98)),
}
TABLE_S2_F = {
    1: (0.00, 9.21, 5.21),
    2: (0.89, 9.40, 4.00),
    3: (18.46, 10.37, 2.89),
    4: (20.81, 8.49, 1.13),
}


@pytest.fixture(scope="module")
def shown():
    """Twelve draws of what people were shown."""
    return samples(POOLS["middle"], 12, seed=0)


@pytest.fixture(scope="module")
def small():
    """Twelve people with five plans each."""
    rng = np.random.default_rng(0)
    x, people = rng.choice([1.0, 2, 3, 4, 6, 7, 9], 60), np.repeat(np.arange(12), 5)
    return Sample(x, people, gamm.Design(x, people, k=7))


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
    of_person = np.eye(sample.people.max() + 1)[sample.people]
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
    edf = dict(zip(gamm.TERMS, terms, strict=True))
    return edf, np.sqrt(share @ inverse[:m, :m] @ share)


def ratios(sample, latent, edf_smooth, known):
    """Return log ratios of a latent's variances, with the curve's that has an EDF."""
    people = [2 * np.log(latent.error / sd) for sd in (latent.between, latent.slope)]

    def missed(log_smooth):
        return known(sample, [log_smooth, *people])[0]["smooth"] - edf_smooth

    return [brentq(missed, -10, 25, xtol=1e-13), *people]


# --- what is printed


@pytest.mark.parametrize("model", TABLE_S2)
def test_the_print_is_that_of_the_table(model):
    actual = printed(model)
    outcome, distance, intercept, t, aic, edf = TABLE_S2[model]
    assert (actual.outcome, actual.distance) == (outcome, distance)
    assert (actual.intercept, actual.t, actual.aic) == (intercept, t, aic)
    assert actual.edf == dict(zip(gamm.TERMS, edf, strict=True))
    assert dict(zip(gamm.TERMS, TABLE_S2_F[model], strict=True)) == actual.F
    assert actual.se == intercept / t and round(actual.se, 2) == 0.07  # as printed, too
    # AIC = n (1 + log(2 pi RSS / n)) + 2 (e + 1), and sigma^2 = RSS / (n - e)
    e, rss = 1 + sum(edf), actual.error**2 * (1738 - 1 - sum(edf))
    assert 1738 * (1 + np.log(2 * np.pi * rss / 1738)) + 2 * (e + 1) == pytest.approx(aic)


def test_models_that_are_not_printed_are_named():
    with pytest.raises(ValueError, match="Unknown model 5: expected one of 1, 2, 3, 4"):
        printed(5)


def test_an_error_follows_from_the_aic_of_a_fit(shown):
    for i, sample in enumerate(shown[:3]):
        y = LATENT.answers(sample.x, sample.people, np.random.default_rng(i))
        fit = sample.design.fit(y)
        error = refits.error_of(fit.aic, 1 + sum(fit.edf.values()), len(y))
        assert error**2 == pytest.approx(fit.sigma2, rel=1e-10)


# --- read backwards


@pytest.mark.parametrize(
    "log_lambda", [[3.0, 0.5, 4.0], [8.0, 2.0, 2.0], [-2.0, -1.0, 9.0]]
)
def test_degrees_of_freedom_are_those_of_full_matrices(small, log_lambda):
    edf, se = small.design.known(np.array(log_lambda))
    expected, expected_se = dense(small, log_lambda)
    assert edf == pytest.approx(expected, rel=1e-8)
    assert se == pytest.approx(expected_se, rel=1e-8)


def test_variances_of_a_small_table_have_its_degrees_of_freedom(small):
    edf = {"smooth": 2.5, "intercepts": 6.0, "slopes": 4.0}
    model = replace(printed(3), edf=edf)
    latent, se = read_backwards(model, small)
    assert latent.error == model.error and latent.mean == 2.63
    assert latent.amplitude == 0 and latent.shape == "flat"
    dense_edf, expected_se = dense(small, ratios(small, latent, 2.5, dense))
    assert dense_edf == pytest.approx(edf, rel=1e-6)
    assert se == pytest.approx(latent.error * expected_se, rel=1e-6)


@pytest.mark.parametrize("model", [1, 3])
@pytest.mark.parametrize("pool", POOLS)
def test_variances_have_the_printed_degrees_of_freedom(model, pool):
    target, errors = printed(model), []
    for i, sample in enumerate(samples(POOLS[pool], 12, seed=1)):
        latent, se = read_backwards(target, sample)
        assert latent.error == target.error
        errors.append(se)
        if i == 0:

            def known(one, log_lambda):
                return one.design.known(np.array(log_lambda))

            known_edf, _ = known(
                sample, ratios(sample, latent, target.edf["smooth"], known)
            )
            assert known_edf == pytest.approx(target.edf, rel=1e-6)
    # one draw's error has a spread of 1 % over draws, their mean 0.3 %
    assert np.mean(errors) == pytest.approx(target.se, rel=0.02)


def test_what_is_read_backwards_is_found_again(shown):
    """Degrees of freedom, variance and standard error over data sets, as they vary."""
    model = printed(3)
    latent, _ = read_backwards(model, shown[0])
    latent = replace(latent, amplitude=1.0, shape=MIDDLE)
    rows = refits.refits(latent, shown, seed=2, is_rounded=False)
    expected = {
        "intercept": 2.63,
        "sigma2": model.error**2,
        "edf_intercepts": 269.32,
        "edf_slopes": 99.44,
        "se": model.se,
    }
    for name, value in expected.items():
        assert abs(rows[name].mean() - value) < 4 * rows[name].sem(), name
        assert rows[name].sem() < 0.1 * value, name


@pytest.mark.parametrize(
    "edf",
    [
        {"smooth": 4.0, "intercepts": 400.0, "slopes": 90.0},  # of 362 people
        {"smooth": 4.0, "intercepts": 361.0, "slopes": 361.0},
        {"smooth": 10.0, "intercepts": 250.0, "slopes": 90.0},  # of 10 columns
        {"smooth": 0.5, "intercepts": 250.0, "slopes": 90.0},
    ],
)
def test_tables_that_no_variances_have_are_named(shown, edf):
    message = f"No variances have the EDFs {edf} for this draw of what was shown. Are these"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_backwards(replace(printed(3), edf=edf), shown[0])


# --- refits


def test_the_same_seed_gives_the_same_rows(shown):
    one, same, other = (refits.refits(LATENT, shown[:2], seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, same)
    assert (one.intercept != other.intercept).all()
    for first, second in zip(shown, samples(POOLS["middle"], 12, seed=0), strict=True):
        assert (first.x == second.x).all() and (first.people == second.people).all()
    assert len({tuple(sample.x[:20]) for sample in shown}) == 12
    # a draw does not depend on how many there are
    assert (samples(POOLS["middle"], 1, seed=0)[0].x == shown[0].x).all()


def test_another_latent_draws_the_same_people(shown):
    one, two = (
        refits.refits(replace(LATENT, mean=mean), shown[:3], 0, is_rounded=False)
        for mean in (2.6, 3.1)
    )
    assert (two.intercept - one.intercept).to_numpy() == pytest.approx(np.full(3, 0.5))
    rest = one.columns.drop("intercept")
    # as far as the search for the variances is exact
    np.testing.assert_allclose(one[rest], two[rest], rtol=1e-4, atol=1e-6)


def test_a_row_is_one_fit(shown):
    rows = refits.refits(LATENT, shown[:2], seed=5, tested=("smooth", "slopes"))
    sample = shown[1]
    y = LATENT.answers(sample.x, sample.people, np.random.default_rng([5, 1, 1]))
    assert set(y) == set(range(1, 8))
    fit = gamm.fit(y, sample.x, sample.people)
    at, _ = fit.curve([1.0, 4.0, 8.0, 9.0])
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
        "drop": at[0] - at[3],
        "drop_8": at[0] - at[2],
        "tail": at[1] - at[3],
        "tail_se": fit.difference(4.0, 9.0)[1],
    }
    assert rows.loc[1].to_dict() == pytest.approx(expected, rel=1e-9)


def test_terms_that_are_left_out_have_no_columns():
    drawn = samples(Pool(6.0, 1.8), 1, seed=0, slopes=False, intercepts=False)
    names = [name for name in refits.refits(LATENT, drawn, 0) if "edf" in name]
    assert names == ["edf_smooth"]


def test_a_narrow_pool_has_a_curve_of_fewer_columns():
    # fewer than ten distinct numbers of changes
    (sample,) = samples(Pool(4.0, 0.5), 1, seed=0)
    assert sample.design.k == len(np.unique(sample.x)) < refits.K


# --- calibration


def test_calibration_brings_the_mean_refit_to_the_print(shown):
    model, moved, drawn = printed(3), list(refits.CALIBRATED), shown[:3]
    start, _ = read_backwards(model, shown[0])
    start = replace(start, amplitude=1.0, shape=MIDDLE)
    latent = refits.calibrated(model, start, drawn, 0, moved, is_rounded=False)
    means = refits.refits(latent, drawn, 0, is_rounded=False)[moved].mean().to_dict()
    goal = {
        "intercept": 2.63,
        "edf_intercepts": 269.32,
        "edf_slopes": 99.44,
        "sigma2": model.error**2,
        "F_smooth": 18.46,
    }
    assert means == pytest.approx(goal, rel=1e-4)  # three of Newton's steps leave 1e-5
    assert latent.shape == MIDDLE


def test_whole_points_are_calibrated_too(shown):
    model, moved, drawn = printed(1), ["intercept", "edf_slopes", "sigma2"], shown[:4]
    start, _ = read_backwards(model, shown[0])
    latent = refits.calibrated(model, start, drawn, 0, moved)
    means = refits.refits(latent, drawn, 0)[moved].mean().to_dict()
    goal = {"intercept": 3.28, "edf_slopes": 142.98, "sigma2": model.error**2}
    # whole points move one by one as a parameter moves: slopes by differences are rough
    assert means == pytest.approx(goal, rel=0.02)
    before = refits.refits(start, drawn, 0).edf_slopes.mean()
    assert before < 0.9 * 142.98


def test_calibration_moves_what_it_is_asked_to_move(shown):
    moved = ["F_smooth"]
    latent = refits.calibrated(printed(3), LATENT, shown[:2], 0, moved, is_rounded=False)
    assert replace(latent, amplitude=LATENT.amplitude) == LATENT != latent
    F = refits.refits(latent, shown[:2], 0, is_rounded=False).F_smooth
    assert F.mean() == pytest.approx(18.46, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "change", "moved", "message"),
    [
        (3, {}, ["edf_smooth"], "Unknown printed number 'edf_smooth': expected one of"),
        (3, {}, [], "moved is empty: expected at least one"),
        (1, {}, ["F_smooth"], "F_smooth is printed as 0 and amplitude begins at 1: exp"),
        (3, {"slope": 0.0}, ["edf_slopes"], "edf_slopes is printed as 99.44 and slope beg"),
    ],
)
def test_calibrations_that_cannot_be_are_named(shown, model, change, moved, message):
    start = replace(LATENT, **change)
    with pytest.raises(ValueError, match=re.escape(message)):
        refits.calibrated(printed(model), start, shown[:1], 0, moved)


# --- summaries


def test_a_summary_by_hand():
    rows = pd.DataFrame(
        {
            "se": [0.06, 0.07, 0.08, 0.07],
            "edf_smooth": [4.0, 1.5, 2.0, 2.1],
            "p_smooth": [0.0005, 0.001, 0.02, 0.6],
        }
    )
    summary = refits.summary(rows)
    assert (summary.datasets == 4).all()
    assert summary["mean"].to_dict() == pytest.approx(
        {
            "se": 0.07,
            "edf_smooth": 2.4,
            "p_smooth": 0.155375,
            "p_smooth < 0.05": 0.75,
            "p_smooth < 0.01": 0.5,
            "p_smooth < 0.001": 0.25,
            "edf_smooth > 2": 0.5,
        }
    )
    assert summary.sd["se"] == pytest.approx(np.sqrt(2 * 0.01**2 / 3))
    assert summary.sd["edf_smooth > 2"] == pytest.approx(np.sqrt(4 * 0.25 / 3))
    assert list(summary.columns) == ["mean", "sd", "datasets"]


def test_the_print_stands_beside_refits():
    names = [f"{what}_{term}" for what in ("edf", "F") for term in gamm.TERMS]
    means = pd.DataFrame({"mean": 0.08, "sd": 0.01}, index=["se", "sigma2", "aic", *names])
    table = refits.beside_print(printed(3), means)
    assert table.printed["edf_slopes"] == 99.44 and table.printed["F_smooth"] == 18.46
    assert table.printed["se"] == pytest.approx(2.63 / 38.06)
    assert table.sds_away["se"] == pytest.approx((2.63 / 38.06 - 0.08) / 0.01)
    assert np.isnan(table.refitted["intercept"])  # it was not among what was found
