"""Simulated audits against what they must find: nothing, or an interval of known width."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.paper.fairness.bootstrap import TOO_FEW
from lib.paper.fairness.simulated_audits import audits

SURE = pd.DataFrame({"income": np.ones(600)})
PAIR = np.arange(0, 400), np.arange(400, 600)


def answered(cost: np.ndarray, setting: str = "income") -> pd.DataFrame:
    """Return valid answers with these costs, one for each person."""
    people = {"person": np.arange(len(cost)), "setting": setting, "valid": True}
    return pd.DataFrame(people).assign(cost=cost)


def test_intervals_of_equal_groups_leave_out_zero_in_one_of_twenty():
    n_people, rng = 4_000, np.random.default_rng(0)
    cost = pd.DataFrame(
        {
            "person": range(n_people),
            "setting": "income",
            "cost": rng.gamma(2.0, 0.05, n_people),
            "valid": True,
        }
    )
    everyone = np.arange(n_people)
    found = audits(
        cost,
        "cost",
        pd.DataFrame({"income": np.ones(n_people)}),
        (everyone, everyone),
        [80],
        4_000,
        seed=0,
    )
    # 5 % are expected, with a standard error of 0.3; 80 skewed values need a little more
    assert 0.04 < found.seen.item() < 0.065 and found.too_few.item() == 0


def test_audits_draw_one_set_for_each_person():
    own = pd.concat([answered(np.ones(600)), answered(np.zeros(600), "savings")])
    share = np.where(np.arange(600) < 400, 0.75, 0.25)
    unsure = pd.DataFrame({"income": share, "savings": 1 - share})
    found = audits(own, "cost", unsure, PAIR, [200], 100, seed=0).squeeze()
    # had chances been averaged, everyone would be alike: no width
    one_each = 2 * 1.96 * np.sqrt(2 * 0.75 * 0.25 / 200)
    assert found.width == pytest.approx(one_each, rel=0.05) and found.seen == 1


def test_an_interval_is_that_of_two_means():
    """The width by scipy, for values that all count."""
    cost = np.random.default_rng(1).gamma(2.0, 0.05, 600)
    found = audits(answered(cost), "cost", SURE, PAIR, [50_000], 1, seed=0)
    errors = [stats.sem(cost[who]) * np.sqrt(len(who) / 50_000) for who in PAIR]
    assert found.width.item() == pytest.approx(2 * 1.96 * np.hypot(*errors), rel=0.02)


def test_too_few_people_are_named():
    own = answered(np.arange(600.0))
    small = audits(own, "cost", SURE, PAIR, [10, 50], 5, seed=0)
    assert small.width[0] == TOO_FEW and small.too_few[0] == 1 and small.seen[0] == 0
    assert small.width[1] > 0 and small.too_few[1] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "price"}, "Unknown measure 'price'"),
        ({"n_audits": 0}, "n_audits must be above zero"),
        ({"sizes": []}, "sizes must be whole numbers"),
        ({"sizes": [50, 0]}, "sizes must be whole numbers"),
        ({"sizes": [50, 0.5]}, "sizes must be whole numbers"),
        ({"pair": (PAIR[0],)}, "two groups, got 1"),
        ({"pair": (PAIR[0], np.array([], dtype=int))}, "no one in the group 'second'"),
        ({"pair": (PAIR[0], PAIR[1] + 1)}, r"'second' must hold row numbers .* 0 to 599"),
        ({"answers": answered(np.ones(5))}, "one answer for each of 600 people"),
    ],
)
def test_audits_that_cannot_be_simulated_are_named(change, message):
    given = {"answers": answered(np.ones(600)), "measure": "cost", "chances": SURE}
    given |= {"pair": PAIR, "sizes": [50], "n_audits": 2, "seed": 0}
    with pytest.raises(ValueError, match=message):
        audits(**(given | change))
