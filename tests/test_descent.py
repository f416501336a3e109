"""Descent: the judge against the whole density, the moves against laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import optimize

from lib.method.classifier import Classifier
from lib.method.problem import ROUNDING
from lib.search import descent


@pytest.fixture(scope="module", params=["truth", "flow"])
def world(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


@pytest.fixture(scope="module")
def descended(problem, people):
    """Return what descents from some scattered actions find with all features open."""
    x = people[0]
    acts = torch.ones(len(x), 4, dtype=torch.bool)
    weights = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, (len(x), 4)))
    judge = descent.Judge(problem, problem.population.truth, x, acts, weights.to(x))
    found = descent.Found.nothing(judge.factual)
    scattered = descent.scout(judge, found, 256, 8, np.random.default_rng(0))
    after_scouts = found.cost.clone()
    for start in [judge.factual, *scattered]:
        descent.descend(judge, start, found, n_steps=15)
    descent.descend(judge, found.values, found, n_steps=30)
    assert (found.cost <= after_scouts).all() and (found.cost < after_scouts).any()
    return judge, found


def test_what_a_descent_finds_is_good_and_within_the_range(descended):
    judge, found = descended
    has = found.cost.isfinite()
    cost, log_odds, gain = judge(found.values)
    assert has.sum() > 10 and torch.allclose(cost[has], found.cost[has])
    assert (log_odds[has] >= ROUNDING).all() and (gain[has] >= ROUNDING).all()
    interval = judge.interval
    within = (interval.low <= found.values) & (found.values <= interval.high)
    assert within[has].all()


def test_no_small_step_is_better(descended):
    """Random steps of every size from what was found: hardly one in fifty people gains."""
    judge, found = descended
    has, rng = found.cost.isfinite(), np.random.default_rng(1)
    better = descent.Found.nothing(found.values)
    for size in np.geomspace(1e-4, 0.3, 400):
        away = torch.from_numpy(rng.normal(scale=size, size=found.values.shape))
        tried = judge.allowed(found.values + away)
        better.see(tried, *judge(tried))
    gained = better.cost[has] < 0.99 * found.cost[has]
    assert gained.float().mean() <= 0.02


def test_a_library_finds_nothing_cheaper_nearby(descended):
    """SLSQP of scipy, started at what was found, with the same bounds."""
    judge, found = descended
    for i in found.cost.isfinite().nonzero().squeeze(-1).tolist()[:6]:
        own = descent.Judge(
            judge.problem,
            judge.world,
            judge.x[[i]],
            judge.acts[[i]],
            judge.weights[[i]],
        )

        def value(a, part, own=own):
            return own(torch.from_numpy(a)[None])[part].item()

        def slope(a, part, own=own):
            values = torch.from_numpy(a)[None].requires_grad_()
            (gradient,) = torch.autograd.grad(own(values)[part].sum(), values)
            return gradient[0].numpy()

        above = [
            {
                "type": "ineq",
                "fun": lambda a, part, value=value: value(a, part) - ROUNDING,
                "jac": slope,
                "args": (part,),
            }
            for part in (1, 2)
        ]
        low, high = own.interval.low[0], own.interval.high[0]
        solved = optimize.minimize(
            value,
            found.values[i].numpy(),
            (0,),
            "SLSQP",
            slope,
            bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
            constraints=above,
        )
        is_good = all(value(solved.x, part) >= 0 for part in (1, 2))
        assert not is_good or solved.fun >= 0.99 * found.cost[i].item(), i


def test_the_cheapest_change_within_two_bounds():
    """Against points that keep both bounds: none is cheaper, and the bounds are kept."""
    rng = np.random.default_rng(0)
    one, other, price, tried = (
        torch.from_numpy(own)
        for own in (
            rng.normal(size=(50, 1, 3)),
            rng.normal(size=(50, 1, 3)),
            rng.uniform(0.5, 2, size=(50, 1, 3)),
            rng.normal(scale=2, size=(50, 20_000, 3)),
        )
    )
    bounds = torch.from_numpy(rng.normal(size=(2, 50)))
    v = descent.cheapest_within((one[:, 0], other[:, 0]), bounds, price[:, 0])[:, None]
    for slope, bound in ((one, bounds[0]), (other, bounds[1])):
        assert ((slope * v).sum(-1)[:, 0] >= bound - 1e-9).all()
    keeps = ((one * tried).sum(-1) >= bounds[0, :, None]) & (
        (other * tried).sum(-1) >= bounds[1, :, None]
    )
    cost = (price * tried**2).sum(-1).masked_fill(~keeps, torch.inf)
    own = (price * v**2).sum(-1)
    assert (own[:, 0] <= cost.amin(1)).all()
    # and the best of those points comes near
    near = keeps.any(1) & (own[:, 0] > 0.1)
    assert near.sum() > 20
    assert (cost.amin(1)[near] <= 2.5 * own[near, 0]).all()


def test_judge_agrees_with_the_whole_density(problem, people, world):
    """It asks only networks that an action can concern; the sum must be that over all."""
    x, columns = people[0], problem.population.actionable_index
    rng = np.random.default_rng(1)
    acts = torch.from_numpy(rng.random((len(x), 4)) < 0.5)
    values = torch.from_numpy(rng.normal(size=(len(x), 4)))
    judge = descent.Judge(problem, world, x, acts, torch.ones_like(values))
    cost, log_odds, gain = judge(values)
    x_cf = judge.recommendation(values).x_cf
    assert (
        torch.allclose(
            gain, problem.flow.log_prob(x_cf) - problem.flow.log_prob(x), atol=1e-9
        )
        and (gain != 0).any()
    )
    assert torch.allclose(log_odds, problem.classifier.logit(x_cf)) and torch.allclose(
        cost, problem.action_cost(x[:, columns], acts, values)
    )


def test_no_descent_without_a_gradient(problem, people):
    """The density alone has a gradient: without this check a descent would follow that."""
    tree = Classifier(problem.population.features, lambda x: (x[:, 5] > 1).float() - 0.5)
    x = people[0][:3]
    judge = descent.Judge(
        replace(problem, classifier=tree),
        problem.population.truth,
        x,
        torch.ones(3, 4, dtype=torch.bool),
        torch.ones(3, 4, dtype=x.dtype),
    )
    found = descent.Found.nothing(x[:, judge.columns])
    assert set(judge(x[:, judge.columns])[1].tolist()) <= {-0.5, 0.5}
    with pytest.raises(ValueError, match=r"descent needs the gradient"):
        descent.descend(judge, x[:, judge.columns], found, 5)
    assert found.cost.isinf().all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acts": torch.ones(3, 3, dtype=torch.bool)}, r"acts has shape \(3, 3\)"),
        ({"weights": torch.ones(4)}, r"weights has shape \(4,\), expected \(3, 4\)"),
        ({"x": torch.full((3, 7), torch.nan)}, r"x holds NaN"),
    ],
)
def test_bad_input_is_named(problem, people, changes, message):
    given = {
        "x": people[0][:3],
        "acts": torch.ones(3, 4, dtype=torch.bool),
        "weights": torch.ones(3, 4),
    }
    with pytest.raises(ValueError, match=message):
        descent.Judge(problem, problem.population.truth, **(given | changes))


def test_sets_must_fit_the_rows(problem, people):
    x = people[0][:4]
    acts = torch.ones(4, 4, dtype=torch.bool)
    judge = descent.Judge(problem, problem.population.truth, x, acts, torch.ones(4, 4))
    with pytest.raises(ValueError, match=r"4 rows, expected 3 for each person"):
        descent.copy_smaller_sets(
            judge, descent.Found.nothing(x[:, judge.columns]), acts[:3]
        )
