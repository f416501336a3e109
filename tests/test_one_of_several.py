"""Features with categories: one column, and a person always has exactly one."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method import icarma
from lib.method.grid import Grid
from lib.method.limits import Limits
from lib.method.metrics import Pruned
from lib.method.preferences import CONSTANT, Preferences, from_words
from lib.method.problem import (
    CATEGORY_COST,
    Problem,
    Recommendation,
    is_plausible,
    is_valid,
)
from lib.method.samplers import RankingSampler
from lib.search.continuous import Search

JOBS = ("none", "cook", "clerk", "doctor")


def table(n=1_600, seed=0):
    """People whose income depends on their job, and what they owe on it, too."""
    rng = np.random.default_rng(seed)
    job = rng.choice(4, n, p=[0.2, 0.35, 0.3, 0.15])
    income = 15 + 8 * job + rng.normal(0, 4, n)
    home = np.where(rng.random(n) < 0.2 + 0.15 * job, "owned", "rented")
    debt = 30 - 4 * job + rng.normal(0, 5, n)
    frame = pd.DataFrame({"job": np.array(JOBS)[job], "income": income, "home": home})
    frame["debt"] = debt
    frame["paid"] = income - debt + 4 * (home == "owned") + rng.normal(0, 4, n) > 4
    return frame


KINDS = dict.fromkeys(["job", "income", "home", "debt"], "actionable") | {"home": "mutable"}
EDGES = {"income": ["job"], "home": ["job"], "debt": ["job"]}


@pytest.fixture(scope="module")
def problem():
    return Problem.from_frame(table(), "paid", KINDS, EDGES, n_epochs=120)


def test_the_flow_knows_how_often_each_category_is(problem):
    """Its density, summed over the unit around each code, is close to the shares."""
    population = problem.population
    x = population.x["flow/train"]
    ends = torch.linspace(-0.5, 3.5, 801).double()
    middle = (ends[:-1] + ends[1:]) / 2
    column = ((middle - population.mean[0]) / population.std[0]).float()
    people = x[:1].expand(len(column), -1).clone()
    people[:, 0] = column
    density = problem.flow.log_prob_terms(people, [0])[:, 0].exp() / population.std[0]
    share = (density * (ends[1] - ends[0])).view(4, 200).sum(-1)
    seen = population.to_records(x)[:, 0].long().bincount() / len(x)
    assert torch.allclose(share.double(), seen.double(), atol=0.06)
    # downstream of the job: who owns their home
    drawn = problem.flow.sample(4_000, np.random.default_rng(0))
    records = population.to_records(population.to_feasible(drawn))
    rates = [records[records[:, 0] == j][:, 2].mean().item() for j in range(4)]
    assert np.allclose(rates, [0.2, 0.35, 0.5, 0.65], atol=0.12) and rates[3] > rates[0]


def test_another_category_costs_the_same_whichever_it_is(problem):
    x, m = torch.zeros(3, 3), torch.tensor([True, False, False])
    codes = problem.population.counts(0)
    x[:, 0] = codes[0]
    a = x.clone()
    a[:, 0] = codes[[0, 1, 3]]
    cost = problem.action_cost(x, m, a)
    assert cost.tolist() == pytest.approx([0, CATEGORY_COST / 3, CATEGORY_COST / 3])
    change = problem.relative_change(x, m, a)
    assert change[:, 0].tolist() == pytest.approx([0, CATEGORY_COST, CATEGORY_COST])
    assert (change[:, 1:] == 0).all()


@pytest.fixture(scope="module")
def solvers(problem):
    sampler = RankingSampler(problem.population.actionable)
    networks, _ = icarma.fit(problem, sampler, icarma.Settings(n_epochs=10, width=32))
    return {
        "grid": Grid(problem, n_values=9),
        "search": Search(problem, n_samples=32, n_starts=1, n_steps=3),
        "networks": networks,
        "pruned": Pruned(networks, problem),
    }


def test_everybody_gets_exactly_one_category_of_those_that_are_allowed(problem, solvers):
    """Whatever the solver; without limits some answers are others."""
    population, x = problem.population, problem.refused("test")[:100]
    rng = np.random.default_rng(2)
    scores = RankingSampler(population.actionable).draw(range(100), rng).scores
    codes = torch.from_numpy(rng.integers(1, 16, 100))
    allowed = torch.zeros(100, 3, 4, dtype=torch.bool)
    allowed[:, 0] = (codes[:, None] >> torch.arange(4)) & 1 > 0
    unlimited = Limits.unlimited(100, 3).numbers
    limited = Preferences(scores, limits=Limits(**unlimited, allowed_categories=allowed))
    n_beyond = 0
    for name, solver in solvers.items():
        for preferences in (limited, Preferences(scores)):
            recommendation = solver.recommend(x, preferences)
            x_cf = problem.discretise(x, recommendation).x_cf
            is_new = population.is_whole & (x_cf != x)
            units = population.inverse_transform(x_cf.double())[is_new]
            assert torch.allclose(units, units.round(), atol=1e-4), name
            job = population.to_records(recommendation.values)[:, 0].long()
            is_beyond = recommendation.is_acted[:, 0] & ~allowed[torch.arange(100), 0, job]
            if preferences is limited:
                assert not is_beyond.any() and recommendation.is_acted[:, 0].any(), name
            n_beyond += int(is_beyond.sum())
    assert n_beyond > 20


def test_the_search_misses_no_category_that_the_grid_finds(problem):
    """On the category alone both are exact; on all features the search costs no more."""
    x = problem.refused("test")[:30]
    job_only = from_words(
        "job: 1; income: can't; debt: can't", problem.population.actionable
    )
    everything = Preferences(torch.ones(30, 3, dtype=torch.long))
    solvers = Grid(problem, n_values=15), Search(problem, n_samples=64, n_starts=2)
    one, other = (solver.recommend(x, job_only[[0] * 30]) for solver in solvers)
    # the search is wary of consequences on an edge, by 1e-5
    assert (one.has_recourse == other.has_recourse).float().mean() > 0.95
    one, other = (solver.recommend(x, everything) for solver in solvers)
    both = one.has_recourse & other.has_recourse
    cost = [problem.cost_of(x, answer)[both] for answer in (one, other)]
    assert both.float().mean() > 0.8 and (other.has_recourse >= one.has_recourse).all()
    assert (cost[1] <= cost[0] + 1e-4).float().mean() > 0.97


def test_the_grid_finds_whom_the_allowed_categories_help(problem):
    """As by trying both by hand."""
    x, population = problem.refused("test")[:40], problem.population
    answers = "job: 1, one of cook or Clerk; income: can't; debt: can't"
    one = from_words(answers, population.actionable, categories=population.categories)
    assert one.limits.allowed_categories[0, 0].tolist() == [False, True, True, False]
    recommendation = Grid(problem).recommend(x, one[[0] * 40].with_profile(CONSTANT))
    is_helped = torch.zeros(40, dtype=torch.bool)
    for code in (1, 2):
        is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
        is_acted[:, 0], values[:, 0] = True, population.counts(0)[code]
        x_cf = problem.discretise(x, Recommendation(is_acted, values, x)).x_cf
        log_odds, gain = problem.outcome(x, x_cf)
        is_moved = (x_cf != x).any(-1)
        is_helped |= is_moved & is_valid(log_odds) & is_plausible(gain)
    assert torch.equal(recommendation.has_recourse, is_helped)
    assert is_helped.any() and not is_helped.all()
