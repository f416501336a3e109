"""Descent: the evaluator against the whole density, the moves against laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import optimize

from lib.method.classifier import Classifier
from lib.method.problem import ROUNDING
from lib.search import descent
from lib.search.evaluator import ActionEvaluator, Incumbents


@pytest.fixture(scope="module", params=["truth", "flow"])
def model(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


@pytest.fixture(scope="module")
def descended(problem, people):
    """What descents from some starts find with all features open."""
    x = people[0]
    mask = torch.ones(len(x), 4, dtype=torch.bool)
    weights = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, (len(x), 4)))
    evaluator = ActionEvaluator(problem, None, x, mask, weights)
    incumbents = Incumbents.empty(evaluator.factual)
    rng = np.random.default_rng(0)
    best = descent.sobol_starts(evaluator, incumbents, 256, 8, rng)
    before = incumbents.cost.clone()
    for start in [evaluator.factual, *best]:
        descent.descend(evaluator, start, incumbents, n_steps=15)
    descent.descend(evaluator, incumbents.values, incumbents, n_steps=30)
    assert (incumbents.cost <= before).all() and (incumbents.cost < before).any()
    return evaluator, incumbents


def test_what_a_descent_finds_is_good_and_within_the_range(descended):
    evaluator, incumbents = descended
    has = incumbents.cost.isfinite()
    cost, log_odds, gain = evaluator(incumbents.values)
    assert has.sum() > 10 and torch.allclose(cost[has], incumbents.cost[has])
    assert (log_odds[has] >= ROUNDING).all() and (gain[has] >= ROUNDING).all()
    low, high = evaluator.interval.low, evaluator.interval.high
    is_within = (low <= incumbents.values) & (incumbents.values <= high)
    assert is_within[has].all()


def test_no_small_step_is_better(descended):
    """Random steps of every size: one of thirty people gains, at most."""
    evaluator, incumbents = descended
    has, rng = incumbents.cost.isfinite(), np.random.default_rng(1)
    better = Incumbents.empty(incumbents.values)
    for size in np.geomspace(1e-4, 0.3, 400):
        step = torch.from_numpy(rng.normal(scale=size, size=incumbents.values.shape))
        values = evaluator.project(incumbents.values + step)
        better.update(values, evaluator(values))
    assert (better.cost[has] < 0.99 * incumbents.cost[has]).sum() <= 1


def test_a_library_finds_nothing_cheaper_nearby(descended):
    """SLSQP of scipy, started at what was found, with the same bounds."""
    evaluator, incumbents = descended
    for i in incumbents.cost.isfinite().nonzero().squeeze(-1).tolist()[:6]:
        of_one = evaluator[torch.tensor([i])]

        def value(a, entry, of_one=of_one):
            return of_one(torch.from_numpy(a)[None])[entry].item()

        def slope(a, entry, of_one=of_one):
            values = torch.from_numpy(a)[None].requires_grad_()
            (gradient,) = torch.autograd.grad(of_one(values)[entry].sum(), values)
            return gradient[0].numpy()

        def above(a, entry, value=value):
            return value(a, entry) - ROUNDING

        low, high = of_one.interval.low[0].tolist(), of_one.interval.high[0].tolist()
        constraints = [
            {"type": "ineq", "fun": above, "jac": slope, "args": (entry,)}
            for entry in (1, 2)
        ]
        solved = optimize.minimize(
            value,
            incumbents.values[i].numpy(),
            (0,),
            "SLSQP",
            slope,
            bounds=list(zip(low, high, strict=True)),
            constraints=constraints,
        )
        is_good = all(value(solved.x, entry) >= 0 for entry in (1, 2))
        assert not is_good or solved.fun >= 0.99 * incumbents.cost[i].item(), i


def test_slopes_against_finite_differences(descended):
    evaluator, _ = descended
    values = (evaluator.factual + 0.1).requires_grad_()
    outcome, step = evaluator(values), 1e-5
    slopes = [torch.autograd.grad(f.sum(), values, retain_graph=True)[0] for f in outcome]
    for k in range(4):
        away = step * (torch.arange(4) == k)
        with torch.no_grad():
            above, below = evaluator(values + away), evaluator(values - away)
        for slope, up, down in zip(slopes, above, below, strict=True):
            # beside a bend of the classifier the two sides differ
            is_close = ((up - down) / (2 * step) - slope[:, k]).abs() < 1e-4
            assert is_close.double().mean() > 0.95


def test_the_cheapest_change_within_two_bounds():
    """Against points that keep both bounds: none is cheaper, and the bounds are kept."""
    rng = np.random.default_rng(0)
    one, other = torch.from_numpy(rng.normal(size=(2, 50, 1, 3)))
    metric = torch.from_numpy(rng.uniform(0.5, 2, size=(50, 1, 3)))
    bounds = torch.from_numpy(rng.normal(size=(2, 50)))
    tried = torch.from_numpy(rng.normal(scale=2, size=(50, 20_000, 3)))
    v = descent.cheapest_within((one[:, 0], other[:, 0]), bounds, metric[:, 0])[:, None]
    keeps = torch.ones(50, 20_000, dtype=torch.bool)
    for slope, bound in ((one, bounds[0]), (other, bounds[1])):
        assert ((slope * v).sum(-1)[:, 0] >= bound - 1e-9).all()
        keeps &= (slope * tried).sum(-1) >= bound[:, None]
    least = (metric * tried**2).sum(-1).masked_fill(~keeps, torch.inf).amin(1)
    cost = (metric * v**2).sum(-1)[:, 0]
    assert (cost <= least).all()
    is_near = keeps.any(1) & (cost > 0.1)  # there the best point comes near
    assert is_near.sum() > 20 and (least[is_near] <= 2.5 * cost[is_near]).all()


def test_evaluator_agrees_with_the_whole_density(problem, people, model):
    """It evaluates only what an action can move; the sum must be that over all."""
    x, columns = people[0], problem.population.actionable_index
    rng = np.random.default_rng(1)
    mask = torch.from_numpy(rng.random((len(x), 4)) < 0.5)
    values = torch.from_numpy(rng.normal(size=(len(x), 4)))
    evaluator = ActionEvaluator(problem, model, x, mask, torch.ones_like(values))
    expected = problem.outcome(x, evaluator.recommendation(values).x_cf)
    cost, *outcome = evaluator(values)
    for bound, in_full in zip(outcome, expected, strict=True):
        assert torch.allclose(bound, in_full, atol=1e-9) and (bound != 0).any()
    assert torch.allclose(cost, problem.action_cost(x[:, columns], mask, values))
    rows = torch.tensor([3, 3, 1])
    for some, every in zip(evaluator[rows](values[rows]), (cost, *outcome), strict=True):
        assert torch.allclose(some, every[rows])


def test_no_descent_without_a_gradient(problem, people):
    """The density alone has a gradient: without this check a descent would follow that."""
    tree = Classifier(problem.population.features, lambda x: (x[:, 5] > 1).double() - 0.5)
    x, mask = people[0][:3], torch.ones(3, 4, dtype=torch.bool)
    without = replace(problem, classifier=tree)
    evaluator = ActionEvaluator(without, None, x, mask, torch.ones(3, 4, dtype=x.dtype))
    incumbents = Incumbents.empty(evaluator.factual)
    with pytest.raises(ValueError, match=r"descent needs the gradient"):
        descent.descend(evaluator, evaluator.factual, incumbents, 5)
    assert incumbents.cost.isinf().all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": torch.ones(3, 3, dtype=torch.bool)}, r"mask has shape \(3, 3\)"),
        ({"weights": torch.ones(4)}, r"weights has shape \(4,\), expected \(3, 4\)"),
    ],
)
def test_bad_input_is_named(problem, people, changes, message):
    mask = torch.ones(3, 4, dtype=torch.bool)
    arguments = {"x": people[0][:3], "mask": mask, "weights": torch.ones(3, 4)}
    with pytest.raises(ValueError, match=message):
        ActionEvaluator(problem, None, **(arguments | changes))
