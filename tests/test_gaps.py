"""Means of groups, gaps and their intervals, against brute force and closed forms."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.method import flow
from lib.method.classifier import Classifier
from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem
from lib.method.scm import SCM, Equation, additive
from lib.paper import tables
from lib.paper.claims import ask
from lib.paper.fairness import facts, gaps
from lib.search import continuous

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
    rows["cost"] = rng.gamma(2.0, 0.05, len(rows)) * (1 + 0.2 * rows.member)
    return rows.sample(frac=1, random_state=0)


@pytest.fixture(scope="module")
def chances():
    share = np.random.default_rng(1).random(N_PEOPLE)
    return pd.DataFrame({"income": share, "savings": 1 - share})


def by_hand(answers, chances, column, over, who):
    """Return each network's mean over people and over their chances, row by row."""
    above, below = np.zeros(3), np.zeros(3)
    for row in answers[answers.person.isin(who)].itertuples():
        chance = chances[row.setting][row.person]
        chance *= 1 if over is None else getattr(row, over)
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


def test_who_does_not_count_may_be_nan(answers, chances):
    unknown = answers.assign(cost=answers.cost.where(answers.valid))
    for a, b in zip(
        gaps.expected(unknown, "cost", chances, "valid"),
        gaps.expected(answers, "cost", chances, "valid"),
        strict=True,
    ):
        assert np.array_equal(a, b)


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


def test_equal_decisions_do_not_make_equal_recourse():
    """Two groups, x ~ N(0, 10^s) for s = 0 and 1, accepted from zero on.

    Half of either group is accepted. Who is refused has to go to
    zero, at the cost x^2 / range: in the mean 10^s / range, ten times
    as much in one group as in the other.

    Source: Karimi, Barthe, Schölkopf and Valera, A survey of
    algorithmic recourse, section 5.4.1, with 10^s as the variance.
    """
    spread = Equation(
        ("s",),
        lambda pa, u: 10 ** (pa["s"] / 2) * u,
        lambda pa, x: x / 10 ** (pa["s"] / 2),
        stats.norm(),
    )
    truth = SCM({"s": additive((), lambda pa: 0.0, stats.bernoulli(0.5)), "x": spread})
    kinds = {"s": "immutable", "x": "actionable"}
    sizes = {"n_classifier": 100, "n_flow": 200, "n_recourse": 12_000}
    people = Population.from_scm(truth, kinds, lambda x: x[:, 1] >= 0, **sizes)
    h = Classifier(people.features, lambda x: people.inverse_transform(x)[:, 1])
    fitted_to = people.x["flow/train"], people.x["flow/validation"]
    density, _ = flow.fit(people.graph, *fitted_to, n_epochs=1)
    problem = Problem(people, h, density)
    everyone = people.x["recourse/test"]
    for is_in in (everyone[:, 0] < 0, everyone[:, 0] > 0):  # standardised
        share = problem.accepts(everyone[is_in]).double().mean().item()
        assert share == pytest.approx(0.5, abs=0.04)
    x = problem.refused("test")
    only_x = Preferences(torch.ones(len(x), 1, dtype=torch.long))
    effort = {"n_samples": 8, "n_starts": 1, "n_steps": 5}
    table = continuous.Search(problem, people.truth, slack=np.inf, **effort).table(x)
    answer_of = continuous.Search(problem, people.truth).recommend(x, only_x, table)
    answers = tables.evaluate(problem, {"all": answer_of}, x, {"all": only_x})
    feature_values = people.inverse_transform(x)[:, 1].double()
    in_closed_form = feature_values**2 / people.std[1] ** 2 / problem.range[1]
    assert answers.valid.all()
    assert answers.cost.to_numpy() == pytest.approx(in_closed_form.numpy(), abs=1e-4)
    is_wide = (x[:, 0] > 0).numpy()
    groups = {"narrow": np.flatnonzero(~is_wide), "wide": np.flatnonzero(is_wide)}
    chances = {"all can": pd.DataFrame({"all": np.ones(len(x))})}
    parts = gaps.expected(answers, "cost", chances["all can"], over="valid")
    ratio = gaps.gap(parts, groups["wide"], groups["narrow"], "ratio")
    mean = {name: in_closed_form[who].mean().item() for name, who in groups.items()}
    assert ratio.value == pytest.approx(mean["wide"] / mean["narrow"], rel=1e-2)
    # x^2 / variance has the mean 1 and the variance 2
    error = 10 * np.sqrt(sum(2 / len(who) for who in groups.values()))
    assert ratio.value == pytest.approx(10, abs=3 * error)
    assert 5 < ratio.low < 10 < ratio.high < 20
