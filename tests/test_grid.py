"""The oracle against a plain loop over every action, one by one."""

from itertools import product

import numpy as np
import pytest
import torch

from lib.preferences.samplers import RankingSampler
from lib.preferences.scores import Preferences, Profile
from lib.solvers import grid


def brute_force(problem, world, x, preferences, profile, n_values, must_be_plausible):
    """Cheapest cost for each person (inf if nothing will do), and how many actions would do."""
    population = problem.population
    columns = population.actionable_index
    grids = [
        [None, *torch.linspace(population.low[j], population.high[j], n_values).tolist()]
        for j in columns
    ]
    actions = list(product(*grids))[1:]
    is_acted = torch.zeros(len(actions), x.shape[-1], dtype=torch.bool)
    values = torch.zeros(len(actions), x.shape[-1], dtype=x.dtype)
    for row, action in enumerate(actions):
        for j, value in zip(columns, action, strict=True):
            if value is not None:
                is_acted[row, j], values[row, j] = True, value
    best, n_good = [], []
    weights = profile.weight(preferences).to(x.dtype)
    for person, may, weight in zip(x, preferences.is_actionable, weights, strict=True):
        everyone = person.expand(len(actions), -1)
        x_cf = world.counterfactual(everyone, is_acted, values)
        good = problem.classifier.accepts(x_cf) & ~(is_acted[:, columns] & ~may).any(-1)
        if must_be_plausible:
            good &= problem.flow.log_prob(x_cf) >= problem.flow.log_prob(person)
        effort = (
            weight
            * is_acted[:, columns]
            * (person - values)[:, columns] ** 2
            / problem.range[columns]
        )
        cost = effort.mean(-1)[good]
        best.append(cost.min().item() if len(cost) else np.inf)
        n_good.append(len(cost))
    return np.array(best), np.array(n_good)


def cost_of(problem, x, found, weights=None):
    columns = problem.population.actionable_index
    return problem.action_cost(
        *(part[:, columns] for part in (x, found.is_acted, found.values)), weights
    )


@pytest.mark.parametrize("world_name", ["scm", "flow"])
@pytest.mark.parametrize("must_be_plausible", [True, False])
@pytest.mark.parametrize("profile", [Profile(), Profile(gamma=1, w_max=5)])
def test_equals_brute_force(problem, people, world_name, must_be_plausible, profile):
    x, preferences = people
    world = problem.population.truth if world_name == "scm" else problem.flow
    found = grid.search(
        problem,
        world,
        x,
        preferences,
        profile,
        n_values=5,
        must_be_plausible=must_be_plausible,
    )
    expected, n_good = brute_force(
        problem, world, x, preferences, profile, 5, must_be_plausible
    )
    weights = profile.weight(preferences).to(x.dtype)
    cost = cost_of(problem, x, found, weights).numpy()
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    assert 0 < found.has_recourse.sum() < len(x) or not must_be_plausible
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    assert torch.allclose(
        found.x_cf, world.counterfactual(x, found.is_acted, found.values), atol=1e-12
    )


def test_equals_brute_force_when_nothing_is_forbidden(problem, people):
    """Four people and 13^4 - 1 actions each, enough for the cheapest few not to be all."""
    x = people[0][:4]
    preferences = Preferences(torch.ones(4, 4, dtype=torch.long))
    world = problem.population.truth
    found = grid.search(problem, world, x, preferences, n_values=12)
    expected, n_good = brute_force(problem, world, x, preferences, Profile(), 12, True)
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    cost = cost_of(problem, x, found).numpy()
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)


def test_what_is_found_holds(problem, people):
    x, preferences = people
    found = grid.search(problem, problem.population.truth, x, preferences, n_values=9)
    some = found.has_recourse
    assert problem.classifier.accepts(found.x_cf[some]).all()
    assert (problem.flow.log_prob(found.x_cf) >= problem.flow.log_prob(x)).all()
    assert torch.equal(found.x_cf[~some], x[~some]) and torch.equal(
        found.values[~some], x[~some]
    )
    may = torch.zeros_like(found.is_acted)
    may[:, problem.population.actionable_index] = preferences.is_actionable
    assert not (found.is_acted & ~may).any()


def test_a_very_dear_feature_is_as_good_as_forbidden(problem, people):
    """Weight 1e9 on the last rank: whoever has recourse without it never uses it."""
    x, _ = people
    ranking = RankingSampler(problem.population.actionable, n_actionable=4).draw(
        range(len(x)), np.random.default_rng(0)
    )
    forbidden = Preferences(torch.where(ranking.scores == 4, 5, ranking.scores))
    world = problem.population.truth
    dear = grid.search(problem, world, x, ranking, Profile(gamma=60, w_max=1e9), n_values=6)
    never = grid.search(problem, world, x, forbidden, n_values=6)
    some = never.has_recourse
    assert some.any()
    assert torch.equal(dear.is_acted[some], never.is_acted[some])


def test_blocks_follow_the_graph(problem):
    names = problem.population.features
    found = grid.blocks(problem, problem.population.truth, 25)
    assert [[names[j] for j in block.columns] for block in found] == [
        ["loan_amount", "loan_duration"],
        ["income", "savings"],
    ]
    assert [len(block.acts) for block in found] == [676, 676]
    assert not found[0].acts[0].any()


@pytest.mark.parametrize("must_be_plausible", [True, False])
def test_choice_among_three_blocks_by_enumeration(problem, people, must_be_plausible):
    """Made-up tables: what the pruning leaves holds the cheapest, whatever the number of blocks; some people have no answer."""
    person, h = people[0][0], problem.classifier
    at_start = h.weights[0] @ person + h.biases[0]
    n_answers = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tables = []
        for size in (7, 5, 6):
            gain, cost, allowed = (
                rng.normal(-0.5, 1, size),
                rng.random(size),
                rng.random(size) < 0.8,
            )
            layer = rng.normal(scale=3, size=(size, 32))
            gain[0], cost[0], allowed[0], layer[0] = 0, 0, True, 0
            nothing = torch.zeros(size, 7)
            tables.append(
                grid._Table(
                    torch.from_numpy(allowed),
                    nothing,
                    nothing,
                    nothing,
                    *map(torch.from_numpy, (cost, gain, layer)),
                )
            )
        best = np.inf
        for rows in list(product(*(range(len(table.cost)) for table in tables)))[1:]:
            chosen = list(zip(tables, rows, strict=True))
            plausible = (
                sum(table.gain[row] for table, row in chosen) >= 0 or not must_be_plausible
            )
            if plausible and all(table.allowed[row] for table, row in chosen):
                if (
                    h.logit_from_first_layer(
                        at_start + sum(table.first_layer[row] for table, row in chosen)
                    )
                    >= 0
                ):
                    best = min(best, sum(table.cost[row] for table, row in chosen).item())
        found = grid._cheapest(problem, person, tables, must_be_plausible)
        n_answers += found is not None
        assert (found is None) == np.isinf(best)
        if found is not None:
            assert sum(
                table.cost[row] for table, row in zip(tables, found, strict=True)
            ).item() == pytest.approx(best, abs=1e-12)
    assert 0 < n_answers < 40 or not must_be_plausible


def test_bad_input_is_named(problem, people):
    x, preferences = people
    accepted = problem.population.x["recourse/test"]
    accepted = accepted[problem.classifier.accepts(accepted)][:1]
    with pytest.raises(ValueError, match="already accepted .the first is row 29."):
        grid.search(
            problem, problem.population.truth, torch.cat([x[:-1], accepted]), preferences
        )
    with pytest.raises(ValueError, match="preferences.scores has shape"):
        grid.search(problem, problem.population.truth, x[:5], preferences)
    with pytest.raises(ValueError, match="n_values is 1"):
        grid.search(problem, problem.population.truth, x, preferences, n_values=1)
