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
    """Twelve draws of what people were shown."""
    return samples(POOLS["middle"], 12, seed=0)


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


def ratios(sample, latent, edf_smooth, known):
    """Return log ratios of a latent's variances, with the curve's that has an EDF."""
    people = [2 * np.log(latent.error / sd) for sd in (latent.between, latent.slope)]

    def missed(log_smooth):
        return known(sample, [log_smooth, *people])[0]["smooth"] - edf_smooth

    return [brentq(missed, -10, 25, xtol=1e-13), *people]


# --- read backwards


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
    dense_edf, expected_se = dense(small, ratios(small, latent, 2.5, dense))
    assert dense_edf == pytest.approx(edf, rel=1e-6)
    assert se == pytest.approx(latent.error * expected_se, rel=1e-6)


@pytest.mark.parametrize("model", [1, 3])
@pytest.mark.parametrize("pool", ["middle", "highest"])
def test_variances_have_the_printed_degrees_of_freedom(model, pool):
    target, errors = printed(model), []
    for i, sample in enumerate(samples(POOLS[pool], 8, seed=1)):
        latent, se = read_backwards(target, sample)
        assert latent.error == target.error
        errors.append(se)
        if i == 0:

            def known(one, log_lambda):
                return one.known(np.array(log_lambda))

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
    assert len({tuple(sample.x[:20]) for sample in shown}) == 12
    # a draw does not depend on how many there are
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


# --- calibration


def test_calibration_brings_the_mean_refit_to_the_print(shown):
    model, moved, drawn = printed(3), list(refits.CALIBRATED), shown[:2]
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
    model, moved, drawn = printed(1), ["intercept", "edf_slopes", "sigma2"], shown[:3]
    start, _ = read_backwards(model, shown[0])
    latent = refits.calibrated(model, start, drawn, 0, moved)
    means = refits.refits(latent, drawn, 0)[moved].mean().to_dict()
    goal = {"intercept": 3.28, "edf_slopes": 142.98, "sigma2": model.error**2}
    # whole points move one by one as a parameter moves: slopes by differences are rough
    assert means == pytest.approx(goal, rel=0.02)
    before = refits.refits(start, drawn, 0).edf_slopes.mean()
    assert before < 0.9 * 142.98


def test_printed_numbers_that_are_not_aimed_at_are_named(shown):
    with pytest.raises(ValueError, match="Unknown printed number 'edf_smooth'"):
        refits.calibrated(printed(3), LATENT, shown[:1], 0, ["edf_smooth"])


# --- summaries


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


# --- the studies


@pytest.fixture(scope="module")
def studied():
    """All four studies, of one or two data sets, one pool and one shape."""
    n_datasets = {"family": 1, "refit": 1, "power": 2, "size": 1}
    return refits.studies(n_datasets, 0, {"middle": POOLS["middle"]}, ("1/x",))


def test_every_study_has_its_settings(studied):
    latents, summaries = studied
    counts = {"family": 1, "refit": 2, "power": 8, "size": 1}
    assert latents.study.value_counts().to_dict() == counts
    assert summaries["mean"].notna().all()
    assert summaries.groupby("study").datasets.unique().map(list).to_dict() == {
        "family": [1],
        "refit": [1],
        "power": [2],
        "size": [1],
    }
    # people's terms are tested where they are compared with the print, and there alone
    tested = summaries[summaries.quantity == "F_slopes"].study
    assert tested.tolist() == ["refit", "refit"]


def test_a_standard_deviation_needs_two_data_sets(studied):
    latents, summaries = studied
    with pytest.raises(ValueError, match="1 simulated data set"):
        refits.curves_that_fit(latents, summaries)


def test_a_study_is_its_refits(studied):
    """One setting by hand: acceptance falls by 0.6 in a line, and what is seen of it."""
    latents, summaries = studied
    tried = [read_backwards(printed(1), one)[0] for one in samples(POOLS["middle"], 2, 0)]
    latent = replace(
        tried[0],
        shape="line",
        amplitude=0.6,
        between=np.mean([one.between for one in tried]),
        slope=np.mean([one.slope for one in tried]),
    )
    is_it = (latents["shape"] == "line") & (latents.fall == 0.6)
    row = latents[is_it].squeeze()[list(asdict(latent))].to_dict()
    assert row.pop("shape") == "line"
    assert row == pytest.approx({k: v for k, v in asdict(latent).items() if k in row})
    again = refits.refits(latent, samples(POOLS["middle"], 2, 1), 2, is_rounded=False)
    is_it = (summaries["shape"] == "line") & (summaries.fall == 0.6)
    means = summaries[is_it].set_index("quantity")["mean"].to_dict()
    assert means == pytest.approx(refits.summary(again)["mean"].to_dict())


def test_curves_fit_if_f_is_reached_and_the_degrees_of_freedom_are_near():
    names = {"study": "family", "pool": "middle", "datasets": 2}
    cases = {"1/x": (18.0, 4.6), "line": (18.0, 1.4), "elbow at 5": (14.0, 4.2)}
    latents = pd.DataFrame([names | {"shape": one, "amplitude": 1.0} for one in cases])
    rows = [
        names | {"shape": shape, "quantity": quantity, "mean": mean, "sd": 0.5}
        for shape, (f, edf) in cases.items()
        for quantity, mean in (
            ("F_smooth", f),
            ("edf_smooth", edf),
            ("drop", 1.0),
            ("tail_se", 0.1),
        )
    ]
    table = refits.curves_that_fit(latents, pd.DataFrame(rows)).loc["middle"]
    assert table.fits.to_dict() == {"1/x": True, "line": False, "elbow at 5": False}
    assert table.is_reached.to_dict() == {"1/x": True, "line": True, "elbow at 5": False}
    assert table["by the fifth"]["line"] == pytest.approx(0.5)
