"""SIMULATED answers against closed forms, large draws and numbers by hand; files read."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.beyond.evaluation import gamm, willingness
from lib.beyond.evaluation.willingness import (
    FLAT,
    POOLS,
    SHAPES,
    Latent,
    Pool,
    curve,
    predicted,
)
from lib.io import PUBLISHED

LATENT = Latent(3.2, 1.1, 0.15, 0.9, 1.2, "elbow at 3.5")
ERRORS = 4  # standard errors within which a mean of draws has to be
GOOD = "uid,sparsity,proximity,acceptance,action\nP1,2,0.4,3,5\nP1,1,0.2,1,7\nP2,3,1,4,4\n"


def drawn(pool=POOLS["middle"], seed=0, n_people=362, n_removed=72):
    return pool.drawn(np.random.default_rng(seed), n_people, n_removed)


# --- what people were shown


def test_everyone_is_shown_five_plans_and_the_first_is_the_sparsest():
    x, people = drawn(n_removed=0)
    assert np.bincount(people).tolist() == [5] * 362
    assert set(x.tolist()) <= set(range(1, willingness.MOST_SHOWN + 1))
    sparsest, nearest, *others = x.reshape(362, 5).T
    assert set(sparsest) == {1, 2, 3, 4} and set(nearest - sparsest) == {0, 1, 2, 3}
    assert all((other >= sparsest).all() for other in others)


def test_as_many_answers_are_removed_as_asked():
    full, _ = drawn(n_removed=0)
    x, people = drawn(n_removed=72)
    assert len(x) == len(people) == 1738 and people.max() < 362
    # what is left is what was shown, without 72 of it
    missing = np.subtract(*(np.bincount(a.astype(int), minlength=15) for a in (full, x)))
    assert (missing >= 0).all() and missing.sum() == 72


@pytest.mark.parametrize(
    ("pool", "expected"),
    [("middle", [0.2, 0.3, 0.3, 0.2]), ("high", [0.05, 0.2, 0.4, 0.35])],
)
def test_sparsest_plans_have_the_shares_that_are_told(pool, expected):
    x, _ = drawn(POOLS[pool], n_people=20_000, n_removed=0)
    share = np.bincount(x.reshape(-1, 5)[:, 0].astype(int))[1:] / 20_000
    expected = np.array(expected)
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(share - expected) < ERRORS * error).all()


@pytest.mark.parametrize(("mean", "expected"), [(2.0, None), (8.0, 8), (20.0, 14)])
def test_plans_of_a_narrow_pool_are_its_mean(mean, expected):
    x, _ = drawn(Pool(mean, 1e-6), n_removed=0)
    rows = x.reshape(362, 5)
    wanted = np.maximum(rows[:, :1], 2) if expected is None else expected
    assert (rows[:, 2:] == wanted).all()


def test_nobody_sees_fewer_changes_from_a_pool_with_more():
    pools = [Pool(mean, 1.8) for mean in (2.0, 4.0, 6.0, 8.0, 10.0)]
    for fewer, more in pairwise(drawn(pool, n_removed=0)[0] for pool in pools):
        assert (more >= fewer).all() and more.mean() > fewer.mean()


def test_an_answer_is_removed_with_a_chance_proportional_to_its_changes():
    """One of five, 3,000 times: the expectation of what is removed is a ratio of sums."""
    beyond = []
    for seed in range(3_000):
        full, _ = drawn(seed=seed, n_people=1, n_removed=0)
        left, _ = drawn(seed=seed, n_people=1, n_removed=1)
        removed = full.sum() - left.sum()
        beyond.append(removed - (full**2).sum() / full.sum())
    assert abs(np.mean(beyond)) < ERRORS * stats.sem(beyond)
    assert stats.sem(beyond) < 0.05  # with equal chances it would be 1 lower


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Pool(6.0, 0.0), "sd must be above zero, got 0.0"),
        (lambda: Pool(np.nan, 1.0), "mean must be above zero, got nan"),
        (lambda: Pool(6.0, 1.8, (0.5, 0.4)), "four shares that sum to one, got (0.5, 0.4)"),
        (lambda: drawn(n_people=0), "n_people must be a whole number above zero, got 0"),
        (lambda: drawn(n_people=3, n_removed=15), "n_removed is 15, expected 0 to 14"),
        (lambda: drawn(n_removed=-1), "n_removed is -1, expected 0 to 1809"),
    ],
)
def test_pools_that_cannot_be_drawn_from_are_named(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong()


# --- curves


@pytest.mark.parametrize("shape", SHAPES)
def test_a_curve_falls_by_one_from_one_change_to_nine_and_never_rises(shape):
    assert curve(shape, np.array([1.0, 9.0])) == pytest.approx([1.0, 0.0], abs=1e-15)
    along = curve(shape, np.linspace(1, 14, 261))
    assert (np.diff(along) <= 1e-15).all()


@pytest.mark.parametrize(
    ("shape", "x", "expected"),
    [
        ("elbow at 3", 2.0, 1 / 2),
        ("elbow at 3.5", 2.0, 1.5 / 2.5),
        ("elbow at 4", 2.0, 2 / 3),
        ("elbow at 5", 4.0, 1 / 4),
        ("elbow at 5", 12.0, 0.0),
        ("elbow at 3, 1/4 later", 2.0, (1.5 + 7 / 8) / 4),
        ("elbow at 3, 1/4 later", 5.0, (1 / 2) / 4),
        ("elbow at 3, 3/4 later", 5.0, (1 / 2) * 3 / 4),
        ("exp(-(x-1)/1)", 2.0, (np.exp(-1) - np.exp(-8)) / (1 - np.exp(-8))),
        ("exp(-(x-1)/1.5)", 4.0, (np.exp(-2) - np.exp(-16 / 3)) / (1 - np.exp(-16 / 3))),
        ("exp(-(x-1)/2)", 3.0, (np.exp(-1) - np.exp(-4)) / (1 - np.exp(-4))),
        ("1/x", 2.0, (1 / 2 - 1 / 9) / (1 - 1 / 9)),
        ("line", 3.0, 3 / 4),
        ("line", 13.0, -1 / 2),
        (FLAT, 1.0, 0.0),
        (FLAT, 7.0, 0.0),
    ],
)
def test_curves_by_hand(shape, x, expected):
    assert curve(shape, np.array([x])) == pytest.approx(expected, abs=1e-14)


def test_curves_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"Unknown shape 'elbow at 6'.*Did you mean"):
        curve("elbow at 6", np.array([1.0]))
    with pytest.raises(ValueError, match=r"begin at 1 change, got 0\.5: leave out people"):
        curve("line", np.array([2.0, 0.5]))


# --- answers


@pytest.mark.parametrize("shape", ["elbow at 3.5", "1/x", FLAT])
def test_answers_have_the_mean_and_the_variance_of_their_latent(shape):
    latent = Latent(3.2, 1.1, 0.15, 0.9, 1.2, shape)
    points, n = np.array([1.0, 3.0, 8.0]), 100_000
    x = np.repeat(points, n)
    rng = np.random.default_rng(0)
    y = latent.answers(x, np.arange(3 * n), rng, is_rounded=False).reshape(3, n)
    f = curve(shape, points)
    mean = 3.2 + 1.2 * (f - f.mean())
    variance = 1.1**2 + 0.15**2 * points**2 + 0.9**2
    assert (np.abs(y.mean(1) - mean) < ERRORS * np.sqrt(variance / n)).all()
    assert (np.abs(y.var(1) - variance) < ERRORS * variance * np.sqrt(2 / n)).all()


def test_answers_of_one_person_go_together():
    n = 100_000
    x, people = np.tile([2.0, 7.0], n), np.repeat(np.arange(n), 2)
    y = LATENT.answers(x, people, np.random.default_rng(1), is_rounded=False)
    first, second = y.reshape(n, 2).T
    products = (first - first.mean()) * (second - second.mean())
    expected = 1.1**2 + 0.15**2 * 2 * 7
    assert abs(products.mean() - expected) < ERRORS * stats.sem(products)
    strangers = (first - first.mean()) * np.roll(second - second.mean(), 1)
    assert abs(strangers.mean()) < ERRORS * stats.sem(strangers)


def test_whole_points_are_the_nearest_on_the_scale():
    x, people = drawn()
    exact, whole = (
        LATENT.answers(x, people, np.random.default_rng(2), is_rounded)
        for is_rounded in (False, True)
    )
    assert exact.min() < 0.5 and exact.max() > 7.5
    scale = np.arange(1.0, 8.0)
    nearest = scale[np.abs(exact[:, None] - scale).argmin(1)]
    assert (whole == nearest).all()


def test_another_latent_draws_the_same_people():
    x, people = drawn()
    other = Latent(1.2, 2.2, 0.15, 0.9, 1.2, "elbow at 3.5")
    one, two = (
        latent.answers(x, people, np.random.default_rng(3), is_rounded=False)
        for latent in (LATENT, other)
    )
    effects = one - two - 2.0  # b of the first less b of the second, which is twice it
    for person in (0, 100, 361):
        person_effects = effects[people == person]
        assert person_effects == pytest.approx(person_effects[0])
    _, first = np.unique(people, return_index=True)
    assert stats.kstest(effects[first] / 1.1, "norm").pvalue > 0.01


@pytest.mark.parametrize(
    "change",
    [{"between": -0.1}, {"slope": np.nan}, {"error": 0.0}, {"shape": "parabola"}],
)
def test_latents_that_cannot_be_are_named(change):
    given = vars(LATENT) | change
    with pytest.raises(ValueError, match=r"expected 0 or more|Unknown shape 'parabola'"):
        Latent(**given)


# --- predictions


@pytest.mark.parametrize("shape", [*SHAPES, FLAT])
def test_predictions_are_anchored_at_the_mean(shape):
    shown = drawn()[0].clip(1, 12)
    ratings = predicted(shape, 1.1, 2.63, shown, shown)
    assert ratings.mean() == pytest.approx(2.63)
    fall = 0.0 if shape == FLAT else 1.1
    one, nine = predicted(shape, 1.1, 2.63, shown, np.array([1.0, 9.0]))
    assert one - nine == pytest.approx(fall)


def test_predictions_for_nobody_stay_missing():
    x = np.array([[np.nan, 1.0], [3.5, np.nan]])
    ratings = predicted("elbow at 3.5", 1.0, 2.5, np.array([1.0, 6.0]), x)
    np.testing.assert_allclose(ratings, [[np.nan, 3.0], [2.0, np.nan]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (13.0, "A plan has 13 changes, expected 1 to 12, as in the plans that the study"),
        (0.0, "Curves begin at 1 change, got 0: leave out people"),
    ],
)
def test_predictions_beyond_the_study_are_named(x, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predicted("line", 1.0, 2.5, np.array([1.0, 9.0]), np.array([np.nan, 2.0, x]))


def test_the_study_quotes_no_plan_with_more_changes():
    quotes = pd.read_csv(PUBLISHED / "tominaga_quotes.csv")
    assert quotes.sparsity.max() == willingness.MOST_QUOTED


# --- the study's own answers, for whoever has them


@pytest.fixture
def answers(tmp_path):
    """Write a csv file, and return where it is."""

    def write(text):
        path = tmp_path / "answers.csv"
        path.write_text(text)
        return path

    return write


def test_answers_are_read(answers):
    table = willingness.read_answers(answers("note," + GOOD.replace("\nP", "\nx,P")))
    assert tuple(table.columns) == willingness.COLUMNS
    assert table.uid.tolist() == ["P1", "P1", "P2"]
    assert table.drop(columns="uid").to_numpy().tolist() == [
        [2.0, 0.4, 3.0, 5.0],
        [1.0, 0.2, 1.0, 7.0],
        [3.0, 1.0, 4.0, 4.0],
    ]
    assert set(table.dtypes.drop("uid")) == {np.dtype(float)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "proximity",
            "l1",
            "answers.csv: Unknown column that it needs: 'proximity': expected one of uid, ",
        ),
        ("P2", "", "answers.csv, line 4: uid is missing: whose answer is it? (1 such"),
        ("3,5", "0,5", "line 2: acceptance is off the scale of 1 to 7 (1 such lines)"),
        ("1,7", "1,8", "line 3: action is off the scale of 1 to 7 (1 such lines)"),
        ("3,5", "yes,5", "line 2: acceptance is not a finite number (1 such lines)"),
        ("P1,2", "P1,", "line 2: sparsity is not a finite number (1 such lines)"),
        ("P2,3,1", "P2,3,inf", "line 4: proximity is not a finite number"),
        ("P1,2", "P1,-2", "line 2: sparsity is a distance below 0 (1 such lines). Mend or"),
        ("0.", "-0.", "line 2: proximity is a distance below 0 (2 such lines). Mend or"),
    ],
)
def test_answers_that_cannot_be_read_are_named(answers, old, new, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        willingness.read_answers(answers(GOOD.replace(old, new)))


def test_answers_are_found_where_the_variable_says(answers, monkeypatch):
    monkeypatch.delenv(willingness.ANSWERS, raising=False)
    assert willingness.find_answers() is None
    path = answers(GOOD)
    monkeypatch.setenv(willingness.ANSWERS, str(path))
    assert willingness.find_answers() == path
    monkeypatch.setenv(willingness.ANSWERS, str(path.parent))
    with pytest.raises(ValueError, match=r"ICARMA_TOMINAGA_CSV is .*no such file. .* Set"):
        willingness.find_answers()


@pytest.mark.parametrize(
    ("n_people", "n_distances", "message"),
    [(8, 3, "x has 3 distinct values"), (40, 5, "40 answers come from 40 people")],
)
def test_answers_that_are_too_few_for_the_model_are_named(
    answers, n_people, n_distances, message
):
    rows = [
        f"P{i % n_people},{1 + i % n_distances},0.5,{1 + i % 7},{1 + i % 6}"
        for i in range(40)
    ]
    read = willingness.read_answers(
        answers(",".join(willingness.COLUMNS) + "\n" + "\n".join(rows))
    )
    with pytest.raises(ValueError, match=message):
        gamm.fit(read.action, read.sparsity, read.uid, k=4)
