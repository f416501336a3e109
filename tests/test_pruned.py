"""Pruning: a reference in plain loops, and laws."""

import pytest
import torch

from lib.base.files import MODELS
from lib.method import loan, metrics
from lib.method.icarma import ICarma
from lib.method.preferences import Profile
from lib.method.problem import Recommendation, is_plausible, is_valid
from lib.method.pruned import Pruned
from lib.paper.designs import soft_preferences
from lib.paper.stacks import MIXED

LINEAR = Profile(1.0, w_max=7.0)


@pytest.fixture(scope="module")
def committed():
    return loan.problem()


@pytest.fixture(scope="module", params=["ranking", "score"])
def answered(request, committed):
    """Refused people, their preferences, a stack, and its answers before and after."""
    x = committed.refused("test")[:150]
    preferences = soft_preferences(committed, request.param, len(x), seed=3)[MIXED]
    stack = ICarma.load(MODELS, f"loan_icarma_{request.param}", committed).select([0, 9])
    before = stack.recommend(x, preferences)
    after = Pruned(stack, committed, LINEAR).recommend(x, preferences)
    return x, preferences, before, after


def helped(problem, x, answer):
    log_odds, gain = problem.outcome(x, answer.x_cf)
    return is_valid(log_odds) & is_plausible(gain)


def test_laws(committed, answered):
    x, preferences, before, after = answered
    columns = committed.population.actionable_index
    was, stays = helped(committed, x, before), helped(committed, x, after)
    assert stays[was].all() and was.any() and not was.all()
    assert (after.is_acted <= before.is_acted).all()
    dropped = (before.is_acted & ~after.is_acted).any(-1)
    assert dropped.any() and not (dropped & ~was).any()
    assert not (after.is_acted[..., columns] & ~preferences.is_actionable).any()
    kept = after.is_acted
    assert torch.equal(after.values[kept], before.values[kept])
    cost = [committed.cost_of(x, answer) for answer in (before, after)]
    assert (cost[1] <= cost[0]).all() and cost[1].mean() < cost[0].mean()
    hap = [
        metrics.hard_action(preferences, answer.is_acted[..., columns]).float().mean()
        for answer in (before, after)
    ]
    assert hap[1] < hap[0]


def test_person_by_person_in_plain_loops(committed, answered):
    x, preferences, before, after = answered
    columns = committed.population.actionable_index
    weights = LINEAR.weight(preferences)
    for i in range(40):
        one, answer = x[i : i + 1], before[0, i : i + 1]
        if helped(committed, one, answer):
            saved = weights[i] * (answer.values - one)[0, columns] ** 2
            saved /= committed.range[columns]
            hardness = list(
                zip(preferences.scores[i].tolist(), saved.tolist(), strict=True)
            )
            for k in sorted(range(4), key=lambda k, h=hardness: h[k], reverse=True):
                acts = answer.is_acted.clone()
                acts[0, columns[k]] = False
                x_cf = committed.flow.counterfactual(one, acts, answer.values)
                fewer = Recommendation(acts, torch.where(acts, answer.values, one), x_cf)
                if helped(committed, one, fewer):
                    answer = fewer
        assert torch.equal(answer.is_acted[0], after.is_acted[0, i])
        torch.testing.assert_close(answer.x_cf[0], after.x_cf[0, i])
