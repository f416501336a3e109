"""SIMULATED answers against closed forms, large draws and numbers by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.beyond.evaluation import willingness
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


def drawn(pool=POOLS["middle"], seed=0, n_people=362, n_removed=72):
    return pool.draw(np.random.default_rng(seed), n_people, n_removed)


def test_everyone_is_shown_five_plans_and_the_first_is_the_sparsest():
    x, people = drawn(n_removed=0)
    assert np.bincount(people).tolist() == [5] * 362
    rows = x.reshape(362, 5)
    assert (rows.min(1) == rows[:, 0]).all() and rows.max() <= 14
    assert set(rows[:, 0]) == {1, 2, 3, 4} and (rows[:, 1] - rows[:, 0]).max() == 3
    left, people = drawn()
    assert len(left) == len(people) == 1738


@pytest.mark.parametrize(
    ("pool", "expected"),
    [("middle", [0.2, 0.3, 0.3, 0.2]), ("high", [0.05, 0.2, 0.4, 0.35])],
)
def test_sparsest_plans_have_the_shares_of_their_pool(pool, expected):
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


def test_an_answer_is_removed_with_a_chance_proportional_to_its_changes():
    """One of five, 1,000 times: the expectation of what is removed is a ratio of sums."""
    beyond = []
    for seed in range(1_000):
        full, _ = drawn(seed=seed, n_people=1, n_removed=0)
        left, _ = drawn(seed=seed, n_people=1, n_removed=1)
        beyond.append(full.sum() - left.sum() - (full**2).sum() / full.sum())
    assert abs(np.mean(beyond)) < ERRORS * stats.sem(beyond)
    assert stats.sem(beyond) < 0.1  # with equal chances it would be 1 lower


@pytest.mark.parametrize("shape", SHAPES)
def test_a_curve_falls_by_one_from_one_change_to_nine_and_never_rises(shape):
    assert curve(shape, np.array([1.0, 9.0])) == pytest.approx([1.0, 0.0], abs=1e-15)
    along = curve(shape, np.linspace(1, 14, 261))
    assert (np.diff(along) <= 1e-15).all()


@pytest.mark.parametrize(
    ("shape", "x", "expected"),
    [
        ("elbow at 3.5", 2.0, 1.5 / 2.5),
        ("elbow at 4", 2.0, 2 / 3),
        ("elbow at 5", 4.0, 1 / 4),
        ("elbow at 3, 1/4 later", 2.0, (1.5 + 7 / 8) / 4),
        ("elbow at 3, 3/4 later", 5.0, (1 / 2) * 3 / 4),
        ("exp(-(x-1)/1)", 2.0, (np.exp(-1) - np.exp(-8)) / (1 - np.exp(-8))),
        ("exp(-(x-1)/1.5)", 4.0, (np.exp(-2) - np.exp(-16 / 3)) / (1 - np.exp(-16 / 3))),
        ("exp(-(x-1)/2)", 3.0, (np.exp(-1) - np.exp(-4)) / (1 - np.exp(-4))),
        ("1/x", 2.0, (1 / 2 - 1 / 9) / (1 - 1 / 9)),
        ("line", 13.0, -1 / 2),
        (FLAT, 7.0, 0.0),
    ],
)
def test_curves_by_hand(shape, x, expected):
    assert curve(shape, np.array([x])) == pytest.approx(expected, abs=1e-14)


def test_answers_have_the_mean_and_the_variance_of_their_latent():
    points, n = np.array([1.0, 3.0, 8.0]), 100_000
    x = np.repeat(points, n)
    rng = np.random.default_rng(0)
    y = LATENT.answers(x, np.arange(3 * n), rng, is_rounded=False).reshape(3, n)
    f = curve(LATENT.shape, points)
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
    given = drawn()
    exact = LATENT.answers(*given, np.random.default_rng(2), is_rounded=False)
    whole = LATENT.answers(*given, np.random.default_rng(2))
    assert exact.min() < 0.5 and exact.max() > 7.5
    scale = np.arange(1.0, 8.0)
    nearest = scale[np.abs(exact[:, None] - scale).argmin(1)]
    assert (whole == nearest).all()


def test_predictions_are_anchored_at_the_mean():
    shown = drawn()[0].clip(1, 12)
    assert predicted("1/x", 1.1, 2.63, shown, shown).mean() == pytest.approx(2.63)
    one, nine = predicted("1/x", 1.1, 2.63, shown, np.array([1.0, 9.0]))
    assert one - nine == pytest.approx(1.1)


def test_what_the_study_says_nothing_of_is_named():
    quotes = pd.read_csv(PUBLISHED / "tominaga_quotes.csv")
    assert quotes.sparsity.max() == willingness.MOST_QUOTED
    for shape, x, message in (
        ("line", 13.0, "A plan has 13 changes, expected 1 to 12, as in the plans that"),
        ("line", 0.0, "Curves begin at 1 change, got 0: leave out people"),
        ("elbow at 6", 2.0, "Unknown shape 'elbow at 6'"),
    ):
        with pytest.raises(ValueError, match=message):
            predicted(shape, 1.0, 2.5, np.array([1.0, 9.0]), np.array([2.0, x]))
