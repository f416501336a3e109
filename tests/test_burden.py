"""Social burden by hand, and its intervals against the delta method."""

import numpy as np
import pytest

from lib.paper.fairness.bootstrap import answered
from lib.paper.fairness.burden import PARTS, Burden, ratios, spread
from lib.paper.fairness.measures import Mean


def test_by_hand():
    """Ten applicants; four refused; recourse for three of them, at 0.1, 0.2 and 0.6."""
    is_refused = np.array([True] * 4 + [False] * 6)
    total, counted = np.zeros((1, 10)), np.zeros((1, 10))
    total[0, :3], counted[0, :3] = (0.1, 0.2, 0.6), 1
    burden = Burden(is_refused, Mean(total, counted))
    everyone = np.arange(10)
    values = [burden.part(name, everyone).item() for name in PARTS]
    assert (
        values == pytest.approx([0.4, 0.3, 0.12]) and burden(everyone).item() == values[2]
    )
    twice = np.ones((1, 10))
    twice[0, 3:] = 2  # three who count once, seven twice: 5 of 17 are refused
    assert burden.part("refused", everyone, twice).item() == pytest.approx(5 / 17)


def test_equal_means_hide_unequal_refusals():
    is_refused = np.arange(200) % 100 < np.where(np.arange(200) < 100, 60, 30)
    cost = Mean(np.where(is_refused, 0.2, 0)[None], is_refused[None].astype(float))
    groups = {"women": np.arange(100), "men": np.arange(100, 200)}
    asked = ratios({"method": "x"}, Burden(is_refused, cost), groups, ("women", "men"))
    table = answered(asked, groups, 50, seed=0).set_index("part").estimate
    assert table["mean cost"] == pytest.approx(1)
    assert table["refused"] == table["burden"] == pytest.approx(2)


def test_the_interval_is_that_of_the_delta_method():
    rng, n = np.random.default_rng(0), 2_000
    is_refused = rng.random(2 * n) < np.repeat([0.6, 0.3], n)
    values = rng.gamma(2, np.repeat([0.1, 0.05], n))
    cost = Mean((values * is_refused)[None], is_refused[None].astype(float))
    groups = {"a": np.arange(n), "b": np.arange(n, 2 * n)}
    asked = ratios({}, Burden(is_refused, cost), groups, ("a", "b"))
    row = answered(asked, groups, 4_000, seed=0).iloc[2]
    variance = 0.0
    for who in groups.values():
        costs, rate = values[who][is_refused[who]], is_refused[who].mean()
        variance += (costs.std() / costs.mean()) ** 2 / len(costs) + (1 - rate) / rate / n
    width = np.log(row.high_alone / row.low_alone)
    assert width == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.05)


def test_networks_have_burdens_of_their_own():
    cost = Mean(np.array([[0.1, 0.0], [0.3, 0.0]]), np.array([[1.0, 0], [1, 0]]), 1)
    burden = Burden(np.array([True, False]), cost)
    assert burden(np.arange(2)) == pytest.approx(np.array([[0.05, 0.15]]))
    assert burden.part("refused", np.arange(2)).shape == (1, 2)


def test_what_does_not_fit_is_named():
    cost = Mean(np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="expected a mask of 3 applicants"):
        Burden(np.ones(2, dtype=bool), cost)
    with pytest.raises(ValueError, match="counts somebody who is not refused"):
        Burden(np.array([True, True, False]), cost)
    burden = Burden(np.ones(3, dtype=bool), cost)
    with pytest.raises(ValueError, match="Unknown part 'sum'"):
        burden.part("sum", np.arange(3))
    with pytest.raises(ValueError, match="Unknown group 'c'"):
        ratios({}, burden, {"a": np.arange(3)}, ("a", "c"))
    with pytest.raises(ValueError, match=r"3 different rows, .* got 2"):
        spread(cost, np.array([0, 0, 1]), 9)
    with pytest.raises(ValueError, match="from 0 to 1"):
        spread(cost, np.array([0, 1, 2]), 2)


def test_each_ratio_says_how_many_it_is_over():
    cost = Mean(np.array([[0.1, 0, 0, 0.2, 0]]), np.array([[1.0, 0, 0, 1, 0]]))
    burden = Burden(np.array([True, True, False, True, False]), cost)
    groups = {"a": np.array([0, 1, 2]), "b": np.array([3, 4])}
    asked = ratios({}, burden, groups, ("a", "b"))
    assert {q.row["part"]: q.row["n_counted"] for q in asked} == {
        "refused": 2,
        "mean cost": 1,
        "burden": 1,
    }
