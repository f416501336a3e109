"""Estimates: against draws of people and of networks, and against formulas."""

import numpy as np
import pytest

from lib.paper.estimates import Estimate, combined, contrast, ratio


def test_one_member_has_the_binomial_standard_error():
    helped = np.arange(200) < 60
    counted = np.arange(200) < 150
    assert ratio(helped).se_people == pytest.approx((0.3 * 0.7 / 200) ** 0.5)
    of_some = ratio(helped & counted, counted)
    assert of_some.value == pytest.approx(0.4)
    assert of_some.se_people == pytest.approx((0.4 * 0.6 / 150) ** 0.5)
    assert np.isnan(of_some.se_networks)


def test_members_that_answer_alike_are_no_more_people():
    """Ten copies of a network leave the error over people as it is."""
    helped = np.arange(50) % 3 == 0
    ten = ratio(np.tile(helped, (10, 1)))
    assert ten.se_people == pytest.approx(ratio(helped).se_people)
    assert ten.se_networks == pytest.approx(0, abs=1e-12)


def test_intervals_cover_new_people_and_new_networks():
    """Each person has a chance, each network a level: 95 % of intervals hold the truth."""
    rng = np.random.default_rng(1)
    n_held = 0
    for _ in range(1_000):
        person, network = rng.uniform(-0.2, 0.2, 200), rng.normal(0, 0.05, (10, 1))
        chance = 0.5 + person + network
        estimate = ratio(rng.random(chance.shape) < chance)
        n_held += estimate.low <= 0.5 <= estimate.high
    assert 0.92 < n_held / 1_000 < 0.97  # the interval is for a normal, not for ten


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, "holds"), (0.21, "undecided"), (0.15, "undecided"), (0.0, "does not hold")],
)
def test_verdicts_speak_of_the_whole_interval(value, expected):
    estimate = Estimate(value, value, value, se_people=0.05)
    assert estimate.lies(above=0.2) == expected
    mirrored = Estimate(-value, -value, -value, se_people=0.05)
    assert mirrored.lies(below=-0.2) == expected


def test_nobody_counted_decides_nothing():
    estimate = ratio(np.zeros(5), np.zeros(5))
    assert np.isnan(estimate.value) and estimate.lies(above=0) == "undecided"


def test_a_ratio_of_nobody_helped_is_undefined():
    nobody = np.zeros(5)
    with np.errstate(all="raise"):
        estimate = contrast((1.0, nobody, None), (-1.0, nobody, None), of_logs=True)
    assert np.isnan(estimate.value) and estimate.lies(above=0) == "undecided"


def test_a_contrast_is_paired_over_people_and_over_members():
    """Shares that differ by the same tenth for everybody: no error is left."""
    first = np.random.default_rng(5).random((4, 60))
    estimate = contrast((1.0, first + 0.1, None), (-1.0, first, None))
    assert estimate.value == pytest.approx(0.1)
    assert estimate.standard_error == pytest.approx(0, abs=1e-12)


def test_the_error_of_a_contrast_is_that_of_new_people():
    """Shares of different people among those asked, by two networks, over 3,000 draws."""
    rng = np.random.default_rng(6)

    def draw():
        luck = rng.random(300)
        answered = [rng.random(300) < share for share in (0.9, 0.6)]
        good = [
            (luck < share) & who for share, who in zip((0.5, 0.4), answered, strict=True)
        ]
        return contrast((1.0, good[0], answered[0]), (-1.0, good[1], answered[1]))

    drawn = [draw() for _ in range(3_000)]
    spread = np.std([one.value for one in drawn])
    assert np.mean([one.se_people for one in drawn]) == pytest.approx(spread, rel=0.05)
    assert np.mean([one.value for one in drawn]) == pytest.approx(0.1, abs=0.005)


def test_members_without_a_counterpart_are_left_out():
    members, search = np.array([[1, 1, 0], [1, 0, 0]]), np.array([1, 1, 1])
    estimate = contrast((1.0, members, None), (-1.0, search, None))  # beside every member
    assert (estimate.lowest, estimate.highest) == pytest.approx((-2 / 3, -1 / 3))
    assert estimate.se_networks == pytest.approx(1 / 6)
    three, two = np.array([[1, 1], [1, 0], [0, 0]]), np.array([[1, 0], [1, 0]])
    estimate = contrast((1.0, three, None), (-1.0, two, None))
    assert estimate == contrast((1.0, three[:2], None), (-1.0, two, None))
    assert (estimate.lowest, estimate.highest) == (0, 0.5)


def test_numbers_from_elsewhere_are_combined_as_independent_ones():
    gap = Estimate(0.5, 0.4, 0.6, se_people=0.03, se_networks=0.04)
    assert combined((1.0, gap)) is gap
    twice = combined((1.0, gap), (-2.0, Estimate(0.1, 0.1, 0.1, se_people=0.06)))
    assert twice.value == pytest.approx(0.3)
    assert twice.standard_error == pytest.approx((0.05**2 + 0.12**2) ** 0.5)
    assert twice.lowest == twice.highest == twice.value
    plain = combined((1.0, 0.5), (-1.0, 0.2))
    assert (
        (plain.low, plain.high) == (plain.value, plain.value) == pytest.approx((0.3, 0.3))
    )
