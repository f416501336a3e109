"""hap with ties by brute force; averages on a table small enough to check by eye."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method import grid, metrics
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation
from lib.method.world import Graph, World


def test_hard_action_by_brute_force():
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 6, (500, 4))
    scores[(scores == 5).all(1)] = 1
    is_acted = (rng.random((500, 4)) < 0.4) & (scores < 5)
    expected = []
    for person, acts in zip(scores.tolist(), is_acted.tolist(), strict=True):
        worst = max(s for s in person if s < 5)
        expected.append(
            any(act and s == worst for s, act in zip(person, acts, strict=True))
        )
    found = metrics.hard_action(
        Preferences(torch.from_numpy(scores)), torch.from_numpy(is_acted)
    )
    assert found.tolist() == expected


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
    """What the oracle finds in the true world is valid and plausible by the metrics too."""
    x, preferences = people
    world = problem.population.truth
    found = grid.Grid(problem, world, n_values=7).recommend(x, preferences)
    table = metrics.per_person(problem, x, preferences, found, truth=world)
    assert len(table) == len(x)
    assert (table.joint == found.has_recourse.numpy()).all()
    assert (table.valid_in_truth == table.valid).all()
    assert (table.cost[~table.has_recourse] == 0).all()
    assert (table.n_acted <= preferences.is_actionable.sum(-1).numpy()).all()


def test_per_person_by_hand(problem, as_zuko):
    """Against numpy, for people of every kind: implausible, refused, without recourse."""
    x = problem.refused("test")[:40]
    columns = problem.population.actionable_index
    rng = np.random.default_rng(1)
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[1:, columns] = torch.from_numpy(rng.random((39, 4)) < 0.7)
    values[is_acted] += torch.from_numpy(rng.normal(1, 2, int(is_acted.sum())))
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    scores = np.tile([1, 2, 3, 4], (40, 1))
    table = metrics.per_person(
        problem,
        x,
        Preferences(torch.from_numpy(scores)),
        Recommendation(is_acted, values, x_cf),
    )
    acts, zukos = is_acted.numpy(), as_zuko(problem.flow)
    assert table.has_recourse.tolist() == acts.any(1).tolist() and not table.has_recourse[0]
    assert (
        table.valid.tolist()
        == (problem.classifier.probability(x_cf).numpy() >= 0.5).tolist()
    )
    gain = (
        zukos.log_abs_det_jacobian(x_cf, None)
        - 0.5 * problem.flow.abduct(x_cf).square().sum(-1)
    ) - (
        zukos.log_abs_det_jacobian(x, None) - 0.5 * problem.flow.abduct(x).square().sum(-1)
    )
    assert (table.log_p_cf - table.log_p).to_numpy() == pytest.approx(
        gain.numpy(), abs=1e-9
    )
    assert table.log_p_change.to_numpy() == pytest.approx(gain.numpy(), abs=1e-9)
    assert table.plausible[1:].tolist() == (gain[1:] >= 0).tolist()
    assert table.joint.tolist() == (table.valid & table.plausible).tolist()
    span = (problem.population.high - problem.population.low).numpy()[columns]
    effort = acts[:, columns] * (x - values).numpy()[:, columns] ** 2 / span
    assert table.cost.to_numpy() == pytest.approx(effort.sum(1) / 4)
    assert table.hard_action.tolist() == acts[:, columns[3]].tolist()
    assert table.n_acted.tolist() == acts.sum(1).tolist()
    kinds = set(zip(table.valid, table.plausible, strict=True))
    assert {(True, False), (False, True), (True, True)} <= kinds


def given(people, **changes):
    """Return arguments of `per_person` for people who do nothing, some of them changed."""
    nothing = Recommendation(torch.zeros_like(people, dtype=torch.bool), people, people)
    easy = Preferences(torch.ones(len(people), 4, dtype=torch.long))
    return {"x": people, "preferences": easy, "recommendation": nothing} | changes


def test_wrong_input_of_per_person_is_named(problem, people):
    x = people[0][:3]
    stack = Recommendation(torch.zeros(5, 3, 7) > 0, x.expand(5, 3, 7), x.expand(5, 3, 7))
    backwards = World(Graph(dict(reversed(problem.flow.graph.parents.items()))))
    for changes, message in (
        ({"recommendation": stack}, r"is of a stack, .*\(5, 3, 7\): index a member first"),
        ({"recommendation": stack[0][:2]}, r"values has shape \(2, 7\), expected \(3, 7"),
        (
            {"preferences": people[1]},
            r"preferences.scores has shape \(30, 4\), expected \(3",
        ),
        ({"x": x[0]}, r"x has shape \(7,\), expected \(N, 7\)"),
        ({"x": x[:0]}, r"x has shape \(0, 7\), expected \(N, 7\)"),
        ({"x": x * torch.nan}, r"x holds NaN"),
        ({"truth": backwards}, r"truth has the features savings, income"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.per_person(problem, **given(x, **changes))
    assert len(metrics.per_person(problem, **given(x, recommendation=stack[0]))) == 3


def test_wrong_input_of_the_other_two_is_named():
    easy = Preferences(torch.ones(3, 4, dtype=torch.long))
    with pytest.raises(
        ValueError, match=r"shape \(3, 7\).*expected a mask .* \(\*, 3, 4\)"
    ):
        metrics.hard_action(easy, torch.ones(3, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"is of torch.float32"):
        metrics.hard_action(easy, torch.ones(3, 4))
    stack = torch.ones(2, 3, 4, dtype=torch.bool)
    assert metrics.hard_action(easy, stack).shape == (2, 3)
    people = pd.DataFrame({name: [True] for name in ("group", *metrics.AVERAGED)})
    with pytest.raises(ValueError, match=r"give a list of names, \['group'\]"):
        metrics.summarise(people, "group")
    with pytest.raises(ValueError, match=r"Unknown column of people 'groups'.*'group'"):
        metrics.summarise(people, ["groups"])
    with pytest.raises(ValueError, match=r"Unknown column of people 'cost'"):
        metrics.summarise(people.drop(columns="cost"), ["group"])
    with pytest.raises(ValueError, match=r"nobody to average"):
        metrics.summarise(people[:0], ["group"])


def test_redundant_by_enumeration(problem, people):
    """Against every feature left out, person by person."""
    x, preferences = people
    rng = np.random.default_rng(0)
    columns = problem.population.actionable_index
    acts, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    acts[:, columns] = preferences.is_actionable
    values[:, columns] += torch.from_numpy(rng.normal(0.8, 1.5, (len(x), len(columns))))
    values = torch.where(acts, values, x)
    x_cf = problem.flow.counterfactual(x, acts, values)
    found = metrics.redundant(problem, x, Recommendation(acts, values, x_cf))

    def helps(i, own):
        after = problem.flow.counterfactual(x[i], own, values[i])
        gain = problem.flow.log_prob(after) - problem.flow.log_prob(x[i])
        return bool(problem.accepts(after[None])[0]) and gain.item() >= 0

    expected = []
    for i in range(len(x)):
        left_out = []
        for j in acts[i].nonzero().flatten().tolist():
            fewer = acts[i].clone()
            fewer[j] = False
            left_out.append(helps(i, fewer))
        expected.append(helps(i, acts[i]) and any(left_out))
    assert found.tolist() == expected


def test_efficiency_by_hand():
    joint = torch.tensor([[True, False], [True, True]])
    cost = torch.tensor([[4.0, 1.0], [1.0, 0.0]])
    cheapest = torch.tensor([[1.0, 1.0], [2.0, torch.inf]])
    found = metrics.efficiency(joint, cost, cheapest)
    assert found.tolist() == [[0.25, 0.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="cost has shape"):
        metrics.efficiency(joint, cost[0], cheapest)


def test_outside_counts_what_moved_only(problem):
    """Somebody who stands outside already is not sent there."""
    population = problem.population
    duration = population.features.index("loan_duration")
    x = problem.refused("test")[:1].repeat(3, 1)
    x[1:, duration] = population.low[duration] - 0.01
    x_cf = x.clone()
    x_cf[2, duration] -= 0.01
    assert metrics.outside(problem, x, x_cf).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="x_cf has shape"):
        metrics.outside(problem, x, x_cf[0])
