"""hap with ties by brute force, averages by hand; pruning against plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from lib.io import MODELS
from lib.method import loan, metrics
from lib.method.graph import Graph
from lib.method.grid import Grid
from lib.method.icarma import load_by_profile
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation
from lib.method.samplers import RankingSampler, ScoreSampler
from lib.method.scm import CausalModel


def test_hard_action_by_brute_force():
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 6, (500, 4))
    scores[(scores == 5).all(1)] = 1
    is_acted = (rng.random((500, 4)) < 0.4) & (scores < 5)
    expected = []
    for person, acts in zip(scores.tolist(), is_acted.tolist(), strict=True):
        hardest = max(score for score in person if score < 5)
        expected.append(any(a and s == hardest for s, a in zip(person, acts, strict=True)))
    preferences = Preferences(torch.from_numpy(scores))
    result = metrics.hard_action(preferences, torch.from_numpy(is_acted))
    assert result.tolist() == expected
    ensemble = torch.from_numpy(np.stack([is_acted, is_acted]))
    assert metrics.hard_action(preferences, ensemble).tolist() == [expected] * 2


def test_summary_by_hand():
    people = pd.DataFrame(
        {
            "group": ["a", "a", "a", "b"],
            "has_recourse": [True, True, False, True],
            "valid": [True, True, False, False],
            "plausible": [True, False, True, True],
            "joint": [True, False, False, False],
            "cost": [1.0, 3.0, 0.0, 9.0],
            "hard_action": [True, False, False, True],
            "n_acted": [1, 2, 0, 4],
            "outside": [False, True, False, False],
        }
    )
    a, b = metrics.summarise(people, ["group"]).to_dict("records")
    assert a == {
        "group": "a",
        "n_people": 3,
        "validity": pytest.approx(2 / 3),
        "plausibility": 0.5,
        "joint": pytest.approx(1 / 3),
        "cost_mean": 2.0,
        "cost_sd": pytest.approx(2**0.5),
        "hap": 0.5,
        "n_acted": 1.5,
        "outside": 0.5,
        "has_recourse": pytest.approx(2 / 3),
    }
    assert b["validity"] == 0 and np.isnan(b["cost_mean"])


def test_per_person_agrees_with_the_oracle(problem, people):
    """Recourse in the true model is valid and plausible by the metrics, too."""
    x, preferences = people
    truth = problem.population.truth
    result = Grid(problem, truth, n_values=7).recommend(x, preferences)
    table = metrics.per_person(problem, x, preferences, result, truth=truth)
    assert (table.joint == result.has_recourse.numpy()).all()
    assert (table.valid_in_truth == table.valid).all()
    assert (table.cost[~table.has_recourse] == 0).all()


def random_actions(problem, x, seed):
    """Return actions at random: less debt, more income; the first person does nothing."""
    columns, rng = problem.population.actionable_index, np.random.default_rng(seed)
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[1:, columns] = torch.from_numpy(rng.random((len(x) - 1, 4)) < 0.7)
    steps = np.array([-1, -1, 1, 1]) * rng.normal(0.6, 0.8, (len(x), 4))
    values[:, columns] += torch.from_numpy(steps)
    values = torch.where(is_acted, values, x)
    return Recommendation(
        is_acted, values, problem.flow.counterfactual(x, is_acted, values)
    )


def test_per_person_by_hand(problem):
    """With people of every kind: implausible, refused, without recourse."""
    x = problem.refused("test")[:40]
    result = random_actions(problem, x, seed=1)
    ranks = torch.tensor([[1, 2, 3, 4]]).expand(40, -1)
    table = metrics.per_person(problem, x, Preferences(ranks), result)
    columns = problem.population.actionable_index
    is_acted, x_cf = result.is_acted.numpy(), result.x_cf
    assert table.has_recourse.tolist() == is_acted.any(1).tolist()
    assert table.valid.tolist() == (problem.classifier.probability(x_cf) >= 0.5).tolist()
    gain = []
    for before, after in zip(x, x_cf, strict=True):
        log_p = []
        for person in (before, after):
            slopes = torch.autograd.functional.jacobian(problem.flow.abduct, person)
            noise = problem.flow.abduct(person)
            log_p.append(slopes.det().log() - 0.5 * noise.square().sum())
        gain.append((log_p[1] - log_p[0]).item())
    gain = np.array(gain)
    assert table.log_p_change.to_numpy() == pytest.approx(gain, abs=1e-9)
    assert table.plausible[1:].tolist() == (gain[1:] >= 0).tolist()
    assert table.joint.tolist() == (table.valid & table.plausible).tolist()
    width = (problem.population.high - problem.population.low).numpy()[columns]
    squares = is_acted[:, columns] * (x - result.values).numpy()[:, columns] ** 2
    assert table.cost.to_numpy() == pytest.approx((squares / width).mean(1))
    assert table.cost_l2.to_numpy() == pytest.approx((squares / width**2).sum(1) ** 0.5)
    assert table.cost_l1.to_numpy() == pytest.approx((squares**0.5 / width).sum(1))
    assert table.hard_action.tolist() == is_acted[:, columns[3]].tolist()
    assert table.n_acted.tolist() == is_acted.sum(1).tolist()
    kinds = set(zip(table.valid, table.plausible, strict=True))
    assert {(True, False), (False, True), (True, True)} <= kinds


def test_outside_counts_only_what_moved(problem):
    """Somebody who is outside already is not sent there."""
    population = problem.population
    duration = population.features.index("loan_duration")
    x = problem.refused("test")[:1].repeat(3, 1)
    x[1:, duration] = population.low[duration] - 0.01
    x_cf = x.clone()
    x_cf[2, duration] -= 0.01
    assert metrics.outside(problem, x, x_cf).tolist() == [False, False, True]


def is_joint(problem, x, is_acted, values):
    """Return whether one person's action is valid and plausible."""
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(x)
    return bool(problem.accepts(x_cf[None])) and gain.item() >= 0


def test_redundant_by_enumeration(problem):
    """Against every feature left out, person by person."""
    x = problem.refused("test")
    result = random_actions(problem, x, seed=0)
    expected = []
    for person, is_acted, values in zip(x, result.is_acted, result.values, strict=True):
        fewer = is_acted.repeat(len(person), 1)
        fewer.fill_diagonal_(False)
        left_out = [
            is_joint(problem, person, fewer[j], values)
            for j in is_acted.nonzero().flatten()
        ]
        expected.append(is_joint(problem, person, is_acted, values) and any(left_out))
    assert metrics.redundant(problem, x, result).tolist() == expected
    assert any(expected) and not all(expected)


def test_wrong_input_of_per_person_is_named(problem, people):
    x = people[0][:3]
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    easy = Preferences(torch.ones(3, 4, dtype=torch.long))
    usual = {"x": x, "preferences": easy, "recommendation": nothing}
    shape = 5, 3, 7
    ensemble = Recommendation(torch.zeros(shape) > 0, x.expand(shape), x.expand(shape))
    backwards = CausalModel()
    backwards.graph = Graph(dict(reversed(problem.flow.graph.parents.items())))
    for change, message in (
        ({"recommendation": ensemble}, r"an ensemble's: choose a member"),
        ({"recommendation": nothing[:2]}, r"values has shape \(2, 7\), expected \(3, 7"),
        ({"preferences": people[1]}, r"scores has shape \(30, 4\), expected \(3"),
        ({"x": x[0]}, r"x has shape \(7,\)"),
        ({"truth": backwards}, r"truth has the features savings, income"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.per_person(problem, **usual | change)
    for wrong in (nothing.is_acted, torch.ones(3, 4)):
        with pytest.raises(ValueError, match="expected a mask over the actionable"):
            metrics.hard_action(easy, wrong)


@pytest.mark.parametrize("kind", ["ranking", "score"])
def test_pruning_person_by_person_in_plain_loops(kind):
    """Of an ensemble's two members: from the hardest feature down, one at a time."""
    problem = loan.problem()
    x = problem.refused("test")[:50]
    sampler = RankingSampler(problem.population.actionable)
    if kind == "score":
        sampler = ScoreSampler(4, with_impossible=True)
    ensemble = load_by_profile(MODELS, f"loan_icarma_{kind}", problem)["linear"][[0, 9]]
    preferences = sampler.draw(range(len(x)), np.random.default_rng(3))
    preferences = preferences.with_profile(ensemble.profile)
    before = ensemble.recommend_each(x, preferences)
    after = Pruned(ensemble, problem).recommend_each(x, preferences)
    columns = problem.population.actionable_index
    n_pruned = 0
    for member, i in itertools.product(range(2), range(len(x))):
        result, is_acted = before[member, i], before.is_acted[member, i].clone()
        if is_joint(problem, x[i], is_acted, result.values):
            squares = (result.values - x[i])[columns] ** 2 * is_acted[columns]
            cost = preferences.weight[i] * squares / problem.range[columns]
            keys = list(zip(preferences.scores[i].tolist(), cost.tolist(), strict=True))
            for k in sorted(range(4), key=keys.__getitem__, reverse=True):
                fewer = is_acted.clone()
                fewer[columns[k]] = False
                if is_joint(problem, x[i], fewer, result.values):
                    is_acted = fewer
        n_pruned += (result.is_acted & ~is_acted).sum().item()
        assert torch.equal(after.is_acted[member, i], is_acted)
        values = torch.where(is_acted, result.values, x[i])
        assert torch.equal(after.values[member, i], values)
        x_cf = problem.flow.counterfactual(x[i], is_acted, values)
        torch.testing.assert_close(after.x_cf[member, i], x_cf)
    assert n_pruned > 5
