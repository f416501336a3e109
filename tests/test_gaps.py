"""Means of groups, gaps and their intervals, against brute force and closed forms."""

import numpy as np
import pandas as pd
import pytest

from lib.paper.claims import ask
from lib.paper.fairness import facts, gaps

N_PEOPLE = 600
A, B = np.arange(400), np.arange(400, N_PEOPLE)


@pytest.fixture(scope="module")
def answers():
    """Random answers of three networks to two sets of features, people in no order."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(3), range(N_PEOPLE), ["income", "savings"]])
    rows = index.to_frame(index=False, name=["member", "person", "setting"])
    rows["valid"] = rng.random(len(rows)) < 0.8
    rows["joint"] = rows.valid & (rng.random(len(rows)) < 0.7)
    cost = rng.gamma(2.0, 0.05, len(rows)) * (1 + 0.2 * rows.member)
    rows["cost"] = cost.where(rows.valid)  # who does not count may be NaN
    return rows.sample(frac=1, random_state=0)


@pytest.fixture(scope="module")
def chances():
    share = np.random.default_rng(1).random(N_PEOPLE)
    return pd.DataFrame({"income": share, "savings": 1 - share})


def by_hand(answers, chances, column, over, who):
    """Return each network's mean over people and over their chances, row by row."""
    above, below = np.zeros(3), np.zeros(3)
    counted = answers if over is None else answers[answers[over]]
    for row in counted[counted.person.isin(who)].itertuples():
        chance = chances[row.setting][row.person]
        above[row.member] += chance * getattr(row, column)
        below[row.member] += chance
    return above / below


@pytest.mark.parametrize(("column", "over"), [("cost", "valid"), ("joint", None)])
def test_gaps_are_those_of_means_over_people_and_chances(answers, chances, column, over):
    parts = gaps.expected(answers, column, chances, over)
    first, second = (by_hand(answers, chances, column, over, who) for who in (A, B))
    estimate = gaps.mean(parts, A)
    assert estimate.value == pytest.approx(first.mean())
    assert (estimate.lowest, estimate.highest) == pytest.approx((min(first), max(first)))
    assert gaps.gap(parts, A, B).value == pytest.approx((first - second).mean())
    ratio = gaps.gap(parts, A, B, "ratio")
    assert np.log(ratio.value) == pytest.approx(np.log(first / second).mean())
    assert ratio.low < ratio.value < ratio.high


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_errors_are_those_of_people_drawn_again(answers, chances, scale):
    """The linearised error of a gap, and of its growth, against 2,000 resamples."""
    other = chances.iloc[::-1].reset_index(drop=True)
    now, then = (gaps.expected(answers, "cost", one, "valid") for one in (chances, other))
    rng, drawn = np.random.default_rng(2), []
    for _ in range(2_000):
        rows = np.concatenate([rng.choice(who, len(who)) for who in (A, B)])
        one, two = (tuple(array[:, rows] for array in parts) for parts in (now, then))
        grown = (gaps.gap(one, A, B, scale, since) for since in (None, two))
        drawn.append([np.log(e.value) if scale == "ratio" else e.value for e in grown])
    for since, spread in zip((None, then), np.std(drawn, axis=0), strict=True):
        estimate = gaps.gap(now, A, B, scale, since)
        estimate = estimate.log if scale == "ratio" else estimate
        assert estimate.se_people == pytest.approx(spread, rel=0.06)


def test_a_gap_that_stays_has_not_grown(answers, chances):
    parts = gaps.expected(answers, "cost", chances, "valid")
    for scale, nothing in (("difference", 0.0), ("ratio", 1.0)):
        grown = gaps.gap(parts, A, B, scale, since=parts)
        assert (grown.value, grown.low, grown.high) == pytest.approx((nothing,) * 3)


def test_a_burden_is_a_share_times_a_mean(answers, chances):
    cost = gaps.expected(answers, "cost", chances, "valid")
    total, counted = np.zeros((2, len(cost[0]), 1_000))
    total[:, 300 : 300 + N_PEOPLE], counted[:, 300 : 300 + N_PEOPLE] = cost
    is_refused = np.zeros((1, 1_000))
    is_refused[0, 300:900] = 1
    refused = is_refused, np.ones((1, 1_000))
    burden = gaps.product((1.0, *refused), (1.0, total, counted))
    each = by_hand(answers, chances, "cost", "valid", np.arange(N_PEOPLE))
    assert burden.value == pytest.approx(0.6 * np.exp(np.log(each).mean()))


def test_recourse_within_a_budget(answers, chances):
    one = answers[answers.member == 0]
    shares = gaps.within_budget(one, chances, A, [0.0, 0.1, np.inf])
    expected = np.zeros(3)
    for row in one[one.joint & one.person.isin(A)].itertuples():
        is_within = np.array([0.0, 0.1, np.inf]) >= row.cost
        expected += chances[row.setting][row.person] * is_within / len(A)
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: pd.concat([rows, rows]), "Are there answers of several methods"),
        (lambda rows: rows[rows.person < 10], "one answer for each of 3 networks, 600"),
        (lambda rows: rows.assign(person=rows.person + 7), "Expected one answer"),
        (lambda rows: rows.assign(cost=np.nan), "The column cost is not finite"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers, chances, change, message):
    with pytest.raises(ValueError, match=message):
        gaps.expected(change(answers), "cost", chances, "valid")


def test_facts_have_the_names_of_the_claims():
    cells = dict(zip(facts.CELLS, np.arange(80).reshape(4, 20), strict=True))
    members = cells | {
        "women": np.arange(40),
        "men": np.arange(40, 80),
        "non-white": np.r_[0:20, 40:60],
        "white": np.r_[20:40, 60:80],
    }
    rng = np.random.default_rng(0)
    parts = {
        (method, scenario, measure): (rng.random((2, 80)) + 1, np.ones((2, 80)))
        for method in facts.WHO
        for scenario in facts.SCENARIOS
        for measure in (*facts.MEASURES, "helped")
    }
    numbers = facts.facts(parts, members)
    asked = ask({}, numbers, section="5.5")  # refuses names that no claim has
    assert (asked.groupby("who").size() == len(asked) / 2).all()
    value = parts["search", "race", "log-density"][0].mean(0)
    each = [value[who].mean() for who in cells.values()]
    interaction = numbers["log-density: interaction, race"]["full search"]
    assert interaction.value == pytest.approx(each[0] - each[1] - each[2] + each[3])
    wider = numbers["range over cells, log-density: race less baseline"]["full search"]
    value = parts["search", "baseline", "log-density"][0].mean(0)
    before = [value[who].mean() for who in cells.values()]
    assert wider.value == pytest.approx(np.ptp(each) - np.ptp(before))
    assert wider.se_people > 0
