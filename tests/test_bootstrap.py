"""Intervals against the central limit, and which people answer what."""

import numpy as np
import pytest
from scipy import stats

from lib.studies.bootstrap import FEWEST, TOO_FEW, Question, answered, check_groups

GROUPS = {"a": np.arange(0, 500), "b": np.arange(500, 900)}
COST = np.random.default_rng(0).gamma(2.0, 0.05, 900)


def mean(*people):
    """Return the mean of the first group, less that of the second if there are two."""
    first, *second = (COST[who].mean(-1) for who in people)
    return first - second[0] if second else first


def test_intervals_are_those_of_the_central_limit():
    asked = [
        Question({"n_counted": 500}, ("a",), mean),
        Question({"n_counted": 400}, ("a", "b"), mean),
    ]
    one, both = answered(asked, GROUPS, 4_000, seed=0)
    errors = [COST[who].std(ddof=1) / np.sqrt(len(who)) for who in GROUPS.values()]
    for row, error in ((one, errors[0]), (both, np.hypot(*errors))):
        expected = stats.norm.interval(0.95, row["estimate"], error)
        assert (row["low"], row["high"]) == pytest.approx(expected, abs=0.06 * error * 3.92)
    assert one["estimate"] == COST[:500].mean()
    assert both["estimate"] == COST[:500].mean() - COST[500:].mean()


def test_the_same_people_answer_all_questions_about_the_same_groups():
    row = {"n_counted": 500}
    asked = [
        Question(row, ("a",), mean),
        Question(row, ("b",), mean),
        Question(row, ("a",), lambda who: 2 * mean(who)),
    ]
    first, other, twice = answered(asked, GROUPS, 100, seed=0)
    assert (twice["low"], twice["high"]) == (2 * first["low"], 2 * first["high"])
    (alone,) = answered(asked[:1], GROUPS, 100, seed=0)  # whoever else is asked
    assert alone == first and other["low"] != first["low"]
    (again,) = answered(asked[:1], GROUPS, 100, seed=1)
    assert again["low"] != alone["low"] and again["estimate"] == alone["estimate"]


def test_an_interval_needs_people_and_an_estimate_somebody():
    asked = [
        Question({"n_counted": n, "name": n}, ("a",), mean) for n in (FEWEST, FEWEST - 1, 0)
    ]
    enough, few, nobody = answered(asked, GROUPS, 50, seed=0)
    assert enough["low"] < enough["estimate"] < enough["high"]
    assert few == asked[1].row | {
        "estimate": enough["estimate"],
        "low": TOO_FEW,
        "high": TOO_FEW,
    }
    assert nobody["estimate"] == nobody["low"] == nobody["high"] == TOO_FEW


@pytest.mark.parametrize("n_resamples", [0, -1])
def test_no_resamples_are_refused(n_resamples):
    asked = [Question({"n_counted": 500}, ("a",), mean)]
    with pytest.raises(ValueError, match="n_resamples must be above zero"):
        answered(asked, GROUPS, n_resamples, seed=0)


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ([], "There is no one in the group 'a'"),
        ([3], "from 0 to 2, got int64 from 3 to 3"),
        ([-1, 0], "from 0 to 2, got int64 from -1 to 0"),
        ([True, False, True], "np.flatnonzero gives the row numbers"),
        ([0.5], "got float64"),
    ],
)
def test_groups_of_no_people_are_refused(who, message):
    with pytest.raises(ValueError, match=message):
        check_groups({"a": np.array(who)}, 3)
