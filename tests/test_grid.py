"""The oracle against every action, one by one; and its laws."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method import flow, grid
from lib.method.classifier import Classifier
from lib.method.data import Discretisation, Population
from lib.method.graph import Graph
from lib.method.grid import Grid, Table
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.method.scm import SCM, CausalModel, additive


def values_to_try(search: Grid, person):
    """Return the values of each actionable feature."""
    population = search.problem.population
    if search.half_width is None:
        return [population.grid(n, search.n_values).tolist() for n in population.actionable]
    x_train, columns = population.x["recourse/train"], population.actionable_index
    ends = -search.half_width, search.half_width
    shares = torch.linspace(*ends, search.n_values, dtype=person.dtype)
    low, high = x_train.amin(0), x_train.amax(0)
    around = person + shares[:, None] * (high - low)
    return around.maximum(low).minimum(high)[:, columns].T.tolist()


def lowest_cost(search: Grid, person, is_actionable, weight):
    """Return the lowest cost of all actions; infinite if no action will do."""
    problem, population = search.problem, search.problem.population
    columns = population.actionable_index
    tried = [[None, *values] for values in values_to_try(search, person)]
    actions = list(product(*tried))[1:]
    is_acted = torch.zeros(len(actions), len(person), dtype=torch.bool)
    is_acted[:, columns] = torch.tensor([[v is not None for v in a] for a in actions])
    x = person.expand(len(actions), -1)
    values = x.clone()
    values[:, columns] = torch.tensor(
        [[0.0 if v is None else v for v in action] for action in actions], dtype=x.dtype
    )
    values = torch.where(is_acted, population.round_counterfactual(x, values), x)
    x_cf = problem.resolve_model(search.model).counterfactual(x, is_acted, values)
    x_cf = population.round_counterfactual(x, x_cf)
    is_allowed = ~(is_acted[:, columns] & ~is_actionable).any(-1)
    if search.max_acted is not None:
        is_allowed &= is_acted.sum(-1) <= search.max_acted
    is_valid = problem.log_odds(x_cf) >= search.margin
    gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(person)
    squares = (is_acted * (x - values) ** 2)[:, columns] / problem.range[columns]
    cost = (weight * squares).mean(-1)
    will_do = is_allowed & is_valid & (gain >= -search.slack)
    return cost[will_do].min().item() if will_do.any() else np.inf


def check_brute_force(search: Grid, x, preferences):
    """Search, assert that everybody's answer is the cheapest there is, and return it."""
    result = search.recommend(x, preferences)
    problem = search.problem
    cost = problem.cost_of(x, result, preferences.weight.to(x)).numpy()
    everyone = zip(x, preferences.is_actionable, preferences.weight, strict=True)
    expected = np.array([lowest_cost(search, *person) for person in everyone])
    cost[~result.has_recourse] = np.inf
    assert cost == pytest.approx(expected, abs=1e-12)
    x_cf = problem.resolve_model(search.model).counterfactual(
        x, result.is_acted, result.values
    )
    x_cf = problem.population.round_counterfactual(x, x_cf)
    torch.testing.assert_close(result.x_cf, x_cf, atol=1e-12, rtol=0)
    return result


def discretised(problem: Problem) -> Problem:
    """Return the problem with whole numbers only, in the units of the data."""
    population = problem.population
    seen = population.inverse_transform(population.x["recourse/train"]).numpy()
    whole = Discretisation.of(seen.round(), np.ones(seen.shape[1], dtype=bool))
    return replace(problem, population=replace(population, discretisation=whole))


def tree(x):
    """Accept who has savings, or little debt and an income: steps without a gradient."""
    amount, duration, income, savings = x[:, 3:].unbind(-1)
    has_little_debt = (amount + duration < 0.3) & (income > -0.2)
    return torch.where((savings > 0.8) | has_little_debt, 1.0, -1.0)


@pytest.mark.parametrize("slack", [0.0, torch.inf])
@pytest.mark.parametrize("profile", [CONSTANT, Profile(w_max=5.0)])
@pytest.mark.parametrize("in_truth", [True, False])
def test_equals_brute_force(problem, people, in_truth, profile, slack):
    x, preferences = people
    model = None if in_truth else problem.flow
    search = Grid(problem, model, n_values=5, slack=slack)
    result = check_brute_force(search, x, preferences.with_profile(profile))
    assert 0 < result.has_recourse.sum() < len(x) or slack == torch.inf
    assert torch.equal(result.x_cf[~result.has_recourse], x[~result.has_recourse])
    assert torch.equal(result.values[~result.is_acted], x[~result.is_acted])


@pytest.mark.parametrize(
    "settings",
    [
        {"margin": 2.0},
        {"slack": -0.05},
        {"half_width": 0.1},
        {"max_acted": 1},
        {"max_acted": 2, "half_width": 0.3},
    ],
)
def test_each_setting_equals_brute_force(problem, people, settings):
    x, preferences = people
    result = check_brute_force(Grid(problem, n_values=5, **settings), x, preferences)
    usual = Grid(problem, n_values=5).recommend(x, preferences)
    assert result.has_recourse.any() and not torch.equal(result.values, usual.values)


@pytest.mark.parametrize("settings", [{}, {"slack": torch.inf}, {"max_acted": 2}])
@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("is_tree", [True, False])
def test_any_population_and_classifier_equal_brute_force(
    problem, people, settings, is_whole, is_tree
):
    """Whole numbers; a decision tree, which has no gradient."""
    problem = discretised(problem) if is_whole else problem
    if is_tree:
        problem = replace(problem, classifier=Classifier(problem.flow.features, tree))
    x = problem.refused("test")[:20]
    search = Grid(problem, n_values=5, **settings)
    result = check_brute_force(search, x, people[1][:20])
    assert result.has_recourse.any()


def test_fine_grid_equals_brute_force(problem, people):
    """13^4 - 1 actions a person: more than the classifier is asked about first."""
    easy = Preferences(torch.ones(4, 4, dtype=torch.long))
    check_brute_force(Grid(problem, n_values=12), people[0][:4], easy)


@pytest.fixture(scope="module", params=[1, 2, 8])
def linear(request) -> Problem:
    """A linear SCM with K actionable features and two others, in float64.

    Of eight, the first three are a chain, two share an effect, the rest stand alone.
    """
    n_actionable = request.param
    names = [f"a{k}" for k in range(n_actionable)]
    causes = {name: ["age"] for name in names} | {"debt": [names[-1]]}
    if n_actionable == 8:
        causes |= {"a1": ["a0"], "a2": ["a1", "age"], "debt": ["a3", "a4"]}
    rng = np.random.default_rng(n_actionable)

    def mechanism(parents):
        weights = dict(zip(parents, rng.normal(size=len(parents)), strict=True))
        return lambda values: sum(weights[name] * values[name] for name in parents)

    noise = stats.norm(0, 1)
    equations = {"age": additive((), lambda _: 0.0, noise)} | {
        name: additive(tuple(parents), mechanism(parents), noise)
        for name, parents in causes.items()
    }
    scm = SCM(equations)
    kinds = {"age": "immutable"} | dict.fromkeys(names, "actionable") | {"debt": "mutable"}
    sizes = {"n_classifier": 20, "n_flow": 600, "n_recourse": 600}
    drawn = Population.from_scm(scm, kinds, label=lambda x: x.sum(-1) > 0, **sizes)
    population = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    x = population.x["flow/train"]
    density, _ = flow.fit(scm.graph, x, x, n_epochs=20, batch_size=200)
    weights = torch.from_numpy(rng.normal(size=len(kinds))).abs()
    h = Classifier(population.features, lambda x: x @ weights)
    return Problem(population, h, density)


@pytest.mark.parametrize("max_acted", [None, 2])
def test_any_number_of_features_equals_brute_force(linear, max_acted):
    n_actionable = len(linear.population.actionable)
    x, rng = linear.refused("test")[:4], np.random.default_rng(0)
    is_actionable = torch.from_numpy(rng.random((len(x), n_actionable)) < 0.8)
    is_actionable[:2] = True
    is_actionable[:, 0] |= ~is_actionable.any(-1)
    n_values = 3 if n_actionable == 8 else 9
    search = Grid(linear, n_values=n_values, max_acted=max_acted)
    result = check_brute_force(search, x, Preferences.from_mask(is_actionable))
    assert result.has_recourse.any()


@pytest.mark.parametrize(
    ("first", "growth", "batch"), [(256, 8, 2**15), (1, 1, 1), (3, 2, 7)]
)
@pytest.mark.parametrize("max_acted", [None, 6])
@pytest.mark.parametrize("slack", [0.0, torch.inf])
def test_choice_among_three_components_by_enumeration(
    problem, people, slack, max_acted, first, growth, batch, monkeypatch
):
    """Made-up tables with many equal costs: the first with the fewest features.

    However many actions the classifier is asked about at once.
    """
    monkeypatch.setattr(grid, "FIRST_ASKED", first)
    monkeypatch.setattr(grid, "ASKED_GROWTH", growth)
    monkeypatch.setattr(grid, "CLASSIFIER_BATCH", batch)
    x, rng = people[0][:20], np.random.default_rng(0)
    h = Classifier(problem.flow.features, lambda x: x.sum(-1) - 2)
    search = Grid(replace(problem, classifier=h), slack=slack, max_acted=max_acted)
    tables = [
        made_up_table(rng, x, n_actions, columns)
        for n_actions, columns in ((7, [0, 1, 2]), (5, [3, 4]), (6, [5, 6]))
    ]
    combinations = list(product(*(range(len(table.is_acted)) for table in tables)))[1:]
    expected, n_ties = [], 0
    for person in range(len(x)):
        will_do = []
        for rows in combinations:
            chosen = list(zip(tables, rows, strict=True))
            gain = sum(table.gain[person, row] for table, row in chosen)
            cost = sum(table.cost[person, row].item() for table, row in chosen)
            n_acted = sum(table.is_acted[row].sum().item() for table, row in chosen)
            log_odds = sum(table.x_cf[person, row].sum() for table, row in chosen) - 2
            is_few = max_acted is None or n_acted <= max_acted
            if (gain >= 0 or slack == torch.inf) and is_few and log_odds >= 0:
                will_do.append((cost, n_acted, rows))
        cost, _, rows = min(will_do, default=(None, None, (0, 0, 0)))
        expected.append(rows)
        n_ties += sum(other == cost for other, *_ in will_do) > 1
    assert list(map(tuple, search._cheapest(x, tables).tolist())) == expected
    assert n_ties > 5


def made_up_table(rng, x, n_actions, columns):
    """What so many actions on one component lead to; the first is "no action"."""
    shape = len(x), n_actions
    is_acted = rng.random((n_actions, len(columns))) < 0.5
    x_cf = rng.normal(size=(*shape, len(columns)))
    gain = rng.normal(-0.5, 1, shape)
    cost = rng.integers(0, 3, shape).astype(float)
    is_acted[0], gain[:, 0], cost[:, 0] = False, 0, 0
    tensors = is_acted, x_cf, x_cf, cost, gain
    return Table(columns, *map(torch.from_numpy, tensors))


def test_batches_do_not_matter(problem, people, monkeypatch):
    """One by one in place of many who may act on the same: the same answers."""
    x, preferences = people
    together = Grid(problem, n_values=5).recommend(x, preferences)
    monkeypatch.setattr(grid, "BATCH_ACTIONS", 1)
    alone = Grid(problem, n_values=5).recommend(x, preferences)
    assert torch.equal(together.is_acted, alone.is_acted)
    torch.testing.assert_close(together.x_cf, alone.x_cf, atol=1e-12, rtol=0)


def test_the_easiest_feature_is_acted_on_more(problem):
    """Weights follow the preferences, but not under the constant profile."""
    x = problem.refused("test")
    sampler = RankingSampler(problem.population.actionable, n_actionable=4)
    ranking = sampler.draw(range(len(x)), np.random.default_rng(0))
    reverse = replace(ranking, scores=5 - ranking.scores)
    search = Grid(problem, n_values=7)
    is_acted = search.recommend(x, ranking).is_acted[:, problem.population.actionable_index]
    easiest, hardest = (is_acted[ranking.scores == rank].sum() for rank in (1, 4))
    assert easiest > hardest
    one, other = (
        search.recommend(x, preferences.with_profile(CONSTANT)).values
        for preferences in (ranking, reverse)
    )
    assert torch.equal(one, other)


def test_a_single_feature_has_a_fine_grid(problem, people):
    """Actions are counted by what people may act on: one feature may have 1,000 values."""
    x = people[0]
    only_income = torch.tensor([[False, False, True, False]]).expand(len(x), -1)
    preferences = Preferences.from_mask(only_income)
    coarse, fine = (Grid(problem, n_values=n).recommend(x, preferences) for n in (3, 1001))
    assert fine.has_recourse.sum() > coarse.has_recourse.sum()
    assert fine.has_recourse[coarse.has_recourse].all()


@pytest.mark.parametrize(
    ("n_values", "n_actions"),
    [(91, "71,639,296"), (10**6, "1,000,004,000,006,000,004,000,001")],
)
def test_too_large_a_grid_is_refused(problem, people, n_values, n_actions):
    easy = Preferences(torch.ones(30, 4, dtype=torch.long))
    with pytest.raises(ValueError, match=rf"up to {n_actions}.*Lower n_values.*continuous"):
        Grid(problem, n_values=n_values).recommend(people[0], easy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"half_width": 0.0}, "half_width must be above zero"),
        ({"n_values": 1}, "n_values is 1"),
        ({"n_values": 2.5}, "n_values must be a whole number"),
        ({"max_acted": 0}, "max_acted must be a whole number above zero"),
        ({"slack": torch.nan}, "slack"),
        ({"margin": -1.0}, "margin"),
    ],
)
def test_bad_settings_are_named(problem, settings, message):
    with pytest.raises(ValueError, match=message):
        Grid(problem, **settings)


def test_what_does_not_fit_together_is_named(problem, people):
    x, preferences = people
    with pytest.raises(ValueError, match=r"whole numbers.*Leave half_width out"):
        Grid(discretised(problem), half_width=0.4)
    with pytest.raises(ValueError, match=r"preferences.scores has shape"):
        Grid(problem).recommend(x[:5], preferences)
    model = CausalModel()
    model.graph = Graph(dict(reversed(problem.flow.graph.parents.items())))
    with pytest.raises(ValueError, match=r"have different graphs"):
        Grid(problem, model)
