"""Beyond the grid: dense grids by brute force, laws, and what preferences change."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method.classifier import Classifier
from lib.method.graph import Graph
from lib.method.grid import Grid
from lib.method.limits import Limits
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    is_plausible,
    is_valid,
)
from lib.method.samplers import RankingSampler
from lib.method.scm import CausalModel
from lib.search import continuous
from lib.search.continuous import Search
from lib.search.evaluator import ActionEvaluator


@pytest.fixture(scope="module", params=["truth", "flow"])
def model(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


@pytest.fixture(scope="module")
def table(problem, people):
    return Search(problem).table(people[0])


def evaluator_of(problem, x, mask, model=None):
    """The evaluator of one set of features for all people, with weights of one."""
    mask = mask.expand(len(x), -1)
    return ActionEvaluator(problem, model, x, mask, torch.ones(mask.shape, dtype=x.dtype))


def holds(problem, x, recommendation):
    """Whether what is recommended is valid and plausible, worked out in full."""
    log_odds, gain = problem.outcome(x, recommendation.x_cf)
    return recommendation.has_recourse & is_valid(log_odds) & is_plausible(gain)


@pytest.mark.parametrize("slack", [0.0, 0.3, np.inf])
def test_single_features_against_a_dense_grid(problem, people, model, slack):
    """One feature at a time, 4,001 values: nothing cheaper exists, nothing is missed."""
    x, population = people[0][:12], problem.population
    searched = Search(problem, model, slack=slack).table(x)
    for k, column in enumerate(population.actionable_index):
        low, high = population.low[column], population.high[column]
        dense = torch.linspace(low, high, 4_001, dtype=x.dtype)
        mask = torch.arange(4) == k
        step = dense[1] - dense[0]
        error = step**2 / problem.range[column] + 2 * step * problem.range[column].sqrt()
        for i, person in enumerate(x):
            rows = person.expand(len(dense), -1)
            evaluator = evaluator_of(problem, rows, mask, model)
            values = evaluator.factual.clone()
            values[:, k] = dense
            log_odds, gain = problem.outcome(rows, evaluator.recommendation(values).x_cf)
            aim = 2 * ROUNDING  # of a descent
            is_good = (log_odds >= aim) & (gain + slack >= aim)
            least = evaluator.cost(values).masked_fill(~is_good, torch.inf).min()
            cost = searched.cost[i, k]
            assert cost <= least * (1 + 1e-5)
            assert cost.isinf() or not is_good.any() or cost >= least - error


def test_more_slack_never_hurts(problem, people, model):
    """Who is helped stays helped, and pays no more but for the search's own error."""
    slacks = (0.0, 0.1, 0.5, 2.0, np.inf)
    costs = [
        Search(problem, model, n_samples=64, n_starts=4, slack=s).table(people[0]).cost
        for s in slacks
    ]
    for less, more in pairwise(costs):
        has = less.isfinite()
        assert more[has].isfinite().all()
        assert (more[has] <= 1.01 * less[has]).double().mean() >= 0.98
    shares = [cost.isfinite().double().mean().item() for cost in costs]
    assert shares[0] < shares[2] < shares[-1]


def test_a_margin_is_that_of_a_stricter_classifier(problem, people):
    x, h = people[0], problem.classifier
    stricter = Classifier(h.features, lambda x: h.logit(x) - 2)
    with_margin = Search(problem, slack=-0.05, margin=2.0).table(x)
    strict = Search(replace(problem, classifier=stricter), slack=-0.05).table(x)
    for one, other in zip(vars(with_margin).values(), vars(strict).values(), strict=True):
        assert torch.allclose(one.to(x), other.to(x), atol=1e-6)
    anything = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    recommended = Search(problem).recommend(x, anything, with_margin)
    helped = recommended.has_recourse
    log_odds, gain = problem.outcome(x, recommended.x_cf)
    assert helped.any()
    assert (log_odds[helped] >= 2).all() and (gain[helped] >= 0.05).all()


def test_the_table_holds_and_costs_what_it_says(problem, people, table):
    x = people[0]
    for s, mask in enumerate(table.sets):
        evaluator = evaluator_of(problem, x, mask)
        recommended = evaluator.recommendation(table.values[:, s])
        has = table.cost[:, s].isfinite()
        assert torch.allclose(problem.cost_of(x, recommended)[has], table.cost[has, s])
        assert holds(problem, x, recommended)[has].all()
        assert (table.log_odds[has, s] >= 0).all() and (table.gain[has, s] >= 0).all()


@pytest.mark.parametrize(
    ("n_actionable", "slack"), [(1, 0.0), (2, 0.0), (4, 0.0), (4, np.inf)]
)
def test_never_worse_than_the_grid(problem, people, n_actionable, slack):
    """Recourse wherever the grid has it, at no higher cost, and somewhere lower."""
    x, features = people[0], problem.population.actionable
    sampler = RankingSampler(features, n_actionable=n_actionable)
    preferences = sampler.draw(range(len(x)), np.random.default_rng(0))
    on_grid = Grid(problem, n_values=9, slack=slack).recommend(x, preferences)
    search = Search(problem, n_samples=64, n_steps=40, slack=slack)
    table = search.table(x, preferences.weight, starts=[on_grid])
    recommended = search.recommend(x, preferences, table)
    at_grid, beyond = (
        problem.cost_of(x, r, preferences.weight.to(x)) for r in (on_grid, recommended)
    )
    has = on_grid.has_recourse
    assert recommended.has_recourse[has].all()
    assert (beyond[has] <= at_grid[has] + 1e-12).all()
    assert (beyond[has] < 0.98 * at_grid[has]).any()
    is_acted = recommended.is_acted[:, problem.population.actionable_index]
    assert not (is_acted & ~preferences.is_actionable).any()


def test_known_actions_are_kept_though_the_search_hardly_looks(
    problem, people, monkeypatch
):
    """One table for several masks, each with the grid's answers as starts."""
    x, features = people[0], problem.population.actionable
    rng = np.random.default_rng(0)
    masks = [
        RankingSampler(features, n_actionable=n, profile=CONSTANT).draw(range(len(x)), rng)
        for n in (4, 3, 2, 1)
    ]
    grids = [Grid(problem, n_values=9).recommend(x, preferences) for preferences in masks]
    monkeypatch.setattr(continuous, "descend", lambda *_: None)
    monkeypatch.setattr(continuous, "PEOPLE_BATCH_SIZE", 8)
    search = Search(problem, n_samples=2, n_starts=1, n_steps=1)
    alone, helped = (search.table(x, starts=starts) for starts in ([], grids))
    n_lost = 0
    for preferences, on_grid in zip(masks, grids, strict=True):
        has = on_grid.has_recourse
        least = problem.cost_of(x, on_grid)[has] + 1e-12
        assert (helped.cheapest(preferences.is_actionable)[0][has] <= least).all()
        n_lost += (alone.cheapest(preferences.is_actionable)[0][has] > least).sum()
    assert n_lost > 0


def test_a_set_has_recourse_where_a_smaller_one_has(problem, people, table):
    """One feature more may be set to what would become of it anyway, within the range."""
    x, columns = people[0], problem.population.actionable_index
    low, high = problem.population.low[columns], problem.population.high[columns]
    n_checked = 0
    for i, smaller in enumerate(table.sets):
        evaluator = evaluator_of(problem, x, smaller)
        after = evaluator.recommendation(table.values[:, i]).x_cf[:, columns]
        for j, larger in enumerate(table.sets):
            if (smaller & ~larger).any() or larger.sum() != smaller.sum() + 1:
                continue
            is_within = ((low <= after) & (after <= high))[:, larger].all(-1)
            has = table.cost[:, i].isfinite() & is_within
            n_checked += has.sum()
            assert table.cost[has, j].isfinite().all()
    assert n_checked > 20


def test_no_more_features_are_acted_on_than_asked_for(problem, people, table):
    x, preferences = people
    for most in (3, 2, 1):
        recommended = Search(problem).recommend(x, preferences, table, max_acted=most)
        cost, _ = table.cheapest(preferences.is_actionable, most)
        has = recommended.has_recourse
        assert (recommended.is_acted.sum(-1) <= most).all()
        assert torch.equal(has, cost.isfinite())
        assert torch.allclose(problem.cost_of(x, recommended)[has], cost[has])


def test_how_hard_features_are_changes_the_answer(problem, people):
    """Everybody's easiest feature is used more often than the hardest."""
    x, columns = people[0], problem.population.actionable_index
    sampler = RankingSampler(problem.population.actionable, n_actionable=4)
    ranked = sampler.draw(range(len(x)), np.random.default_rng(0))
    search, costs = Search(problem, n_samples=64, n_starts=4), []
    for preferences in (ranked, replace(ranked, scores=5 - ranked.scores)):
        recommended = search.recommend(x, preferences)
        costs.append(problem.cost_of(x, recommended))
        is_acted = recommended.is_acted[:, columns]
        easiest, hardest = preferences.scores == 1, preferences.scores == 4
        assert (is_acted & easiest).sum() > (is_acted & hardest).sum()
    assert (costs[0] - costs[1]).abs().max() > 1e-3


def test_who_may_set_nothing_has_no_recourse(problem, people):
    x = people[0][:3]
    limits = dict.fromkeys(problem.population.actionable, "at least 1,000,000")
    closed = problem.with_limits(limits)
    assert Search(closed, n_samples=2, n_starts=1).table(x).cost.isinf().all()


@pytest.fixture(scope="module")
def many_features() -> Problem:
    """Ten actionable features, of which the first causes the second."""
    rng = np.random.default_rng(0)
    names = [f"feature_{i}" for i in range(10)]
    frame = pd.DataFrame(rng.normal(size=(400, 10)), columns=names)
    frame["feature_1"] += 0.5 * frame["feature_0"]
    frame["good"] = frame[names].sum(axis=1) + rng.normal(size=400) > 0
    kinds = dict.fromkeys(names, "actionable")
    edges = {"feature_1": ["feature_0"]}
    return Problem.from_frame(frame, "good", kinds, edges, n_epochs=15)


def test_more_features_than_all_sets_can_be_listed_of(many_features):
    """All sets of what is open to each person; of ten open ones sets up to a size."""
    problem = many_features
    x = problem.refused("test")[:6]
    is_allowed = torch.zeros(6, 10, dtype=torch.bool)
    is_allowed[:3, :3] = is_allowed[3:5, 4:6] = is_allowed[5] = True
    search = Search(problem, n_samples=32, n_starts=2)
    recommended = search.recommend(x, Preferences.from_mask(is_allowed))
    assert not (recommended.is_acted & ~is_allowed).any()
    assert recommended.has_recourse[5]
    assert holds(problem, x, recommended)[recommended.has_recourse].all()

    alone = search.recommend(x[:3], Preferences.from_mask(is_allowed[:3]))
    cost = problem.cost_of(x[:3], alone)
    assert torch.allclose(cost, problem.cost_of(x, recommended)[:3], rtol=0.01)

    interval = problem.interval(x[:3], Preferences.from_mask(is_allowed[:3]))
    assert len(search.table(x[:3], interval=interval).sets) == 7
    sizes = search.table(x[5:]).sets.sum(-1)
    assert sizes.tolist() == [1] * 10 + [2] * 45 + [3] * 120 + [10]


@pytest.mark.parametrize("largest", [5_350, 5_000_000])
def test_money_in_whole_numbers(largest):
    """It can be carried out, and a single feature costs what it does by enumeration."""
    rng = np.random.default_rng(0)
    income, debt = rng.uniform(0.1, 0.8, 400), rng.random(400)
    savings = (income + rng.uniform(0, 0.3, 400)) / 2
    money = pd.DataFrame({"income": income, "savings": savings, "debt": debt}) * largest
    frame = money.round().astype(int)
    frame["repaid"] = income + savings - debt > rng.normal(0.3, 0.1, 400)
    kinds, edges = dict.fromkeys(money, "actionable"), {"savings": ["income"]}
    problem = Problem.from_frame(frame, "repaid", kinds, edges, n_epochs=30)
    population, x = problem.population, problem.refused("test")[:10]
    assert all(len(population.whole_range(j)) > largest / 3 for j in range(3))
    search = Search(problem, n_samples=64, n_starts=4)
    table = search.table(x)
    everything = Preferences.from_mask(torch.ones(10, 3, dtype=torch.bool))
    recommended = search.recommend(x, everything, table)
    carried_out = problem.discretise(x, recommended)
    helped = recommended.has_recourse
    assert torch.allclose(carried_out.x_cf, recommended.x_cf, atol=1e-5)
    assert helped.any() and holds(problem, x, carried_out)[helped].all()
    for k in range(3 if largest < 10_000 else 0):  # few enough to be listed
        values = population.counts(k)[:, None].expand(-1, 3)
        for cost, person in zip(table.cost[:, k], x, strict=True):
            rows = person.expand(len(values), -1)
            evaluator = evaluator_of(problem, rows, torch.arange(3) == k)
            tried = evaluator(evaluator.project(values))
            is_good = (tried.log_odds >= ROUNDING) & (tried.gain >= ROUNDING)
            assert cost <= 1.01 * tried.cost.masked_fill(~is_good, torch.inf).min() + 1e-6


def test_bad_input_is_named(problem, people):
    x, preferences = people
    search, acts = Search(problem), (torch.arange(7) == 5).expand(x.shape)
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    ensemble = Recommendation(*(t.repeat(2, 1, 1) for t in vars(nothing).values()))
    spoilt = Recommendation(acts, x.where(~acts, torch.nan), x)
    limited = replace(preferences, limits=Limits.unlimited(len(x), 4))
    other = CausalModel()
    other.graph = Graph(problem.flow.graph.parents | {"savings": ("income", "gender")})
    for call, message in (
        (lambda: search.table(x, starts=[spoilt]), r"starts\[0\].values holds NaN"),
        (lambda: search.table(x, starts=nothing), "give a list of them"),
        (lambda: search.table(x, starts=[ensemble]), r"has shape \(2, 30, 7\)"),
        (lambda: search.table(x, torch.ones(3, 4)), "weights has shape"),
        (lambda: search.table(x, -torch.ones(30, 4)), "finite and not below zero"),
        (
            lambda: search.recommend(x, limited, search.table(x[:1])),
            "limits can't be asked of a table",
        ),
        (lambda: Search(problem, slack=np.nan), "slack is nan, expected nats"),
        (lambda: Search(problem, n_steps=0), "n_steps must be a whole number above zero"),
        (lambda: Search(problem, other), "different graphs: the causes of savings"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
