"""Descent: the judge against the whole density, the moves against laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.problem.classifier import Classifier
from lib.solvers import descent


@pytest.fixture(scope="module", params=["truth", "flow"])
def world(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


def test_the_way_back_stops_at_the_bound(problem, people):
    """From an action that overshoots: never costlier, still good, and at a bound."""
    x, columns = people[0], problem.population.actionable_index
    acts = torch.ones(len(x), 4, dtype=torch.bool)
    judge = descent.Judge(
        problem, problem.population.truth, x, acts, torch.ones(len(x), 4, dtype=x.dtype)
    )
    found = descent.Found.nothing(x[:, columns])
    descent.descend(judge, x[:, columns], found, n_steps=25, learning_rate=0.3)
    before, has = found.cost.clone(), found.cost.isfinite()
    descent.walk_back(judge, found, n_halvings=30)
    assert (
        has.any()
        and (found.cost <= before).all()
        and torch.equal(found.cost.isfinite(), has)
    )
    _, log_odds, gain = judge(found.values)
    assert (log_odds[has] >= descent.SURE).all() and (gain[has] >= descent.SURE).all()
    moved = found.cost < before
    assert (
        moved.any() and (torch.minimum(log_odds, gain)[moved] < descent.SURE + 1e-3).all()
    )


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
        descent.descend(judge, x[:, judge.columns], found, 5, 0.1)
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
