"""The oracle against a plain loop over every action, one by one."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method import flow, grid
from lib.method.classifier import Classifier
from lib.method.population import Population
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.method.scm import SCM, additive
from lib.method.world import Graph, World


def answer(problem, world, x, preferences, profile, n_values, slack=0.0, **bounds):
    """Return what the grid recommends, asked as `brute_force` is."""
    how = {"profile": profile, "n_values": n_values, "slack": slack}
    return grid.Grid(problem, world, **how, **bounds).recommend(x, preferences)


def even_grids(problem, person, n_values):
    """Return the values of each actionable feature that are tried for anybody."""
    population = problem.population
    return [
        population.grid(population.features[j], n_values).tolist()
        for j in population.actionable_index
    ]


def centred_grids(problem, person, n_values, centred):
    """Return the values around a person's own, cut at the range of the training people."""
    low, high = (
        getattr(problem.population.x["recourse/train"], end)(0) for end in ("amin", "amax")
    )
    return [
        [
            min(max((person[j] + share * (high - low)[j]).item(), low[j]), high[j])
            for share in np.linspace(-centred, centred, n_values)
        ]
        for j in problem.population.actionable_index
    ]


def brute_force(
    problem,
    world,
    x,
    preferences,
    profile,
    n_values,
    slack,
    values_of=None,
    max_acted=None,
    margin=0.0,
):
    """Return each person's lowest cost (inf if nothing will do) and how many actions do."""
    found = [
        brute_force_on(
            problem,
            world,
            *(person, may, weight),
            (values_of or even_grids)(problem, person, n_values),
            slack,
            max_acted,
            margin,
        )
        for person, may, weight in zip(
            x,
            preferences.is_actionable,
            profile.weight(preferences).to(x.dtype),
            strict=True,
        )
    ]
    costs = [cost.min().item() if len(cost) else np.inf for cost in found]
    return np.array(costs), np.array([len(cost) for cost in found])


def brute_force_on(problem, world, person, may, weight, grids, slack, max_acted, margin):
    """Return the costs of all actions of a person that will do."""
    population = problem.population
    columns = population.actionable_index
    actions = list(product(*([None, *own] for own in grids)))[1:]
    is_acted = torch.zeros(len(actions), len(person), dtype=torch.bool)
    values = torch.zeros(len(actions), len(person), dtype=person.dtype)
    is_acted[:, columns] = torch.tensor([[v is not None for v in own] for own in actions])
    listed = [[v or 0.0 for v in own] for own in actions]
    values[:, columns] = torch.tensor(listed, dtype=person.dtype)
    everyone = person.expand(len(actions), -1)
    if population.whole is not None:  # the same number: not moved
        values = torch.where(is_acted, population.settled(everyone, values), values)
    x_cf = world.counterfactual(everyone, is_acted, values)
    x_cf = population.settled(everyone, x_cf)
    good = (problem.classifier.logit(population.possible(x_cf)) >= margin) & ~(
        is_acted[:, columns] & ~may
    ).any(-1)
    gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(person)
    good &= gain >= -slack
    if max_acted is not None:
        good &= is_acted.sum(-1) <= max_acted
    effort = (
        weight
        * is_acted[:, columns]
        * (person - values)[:, columns] ** 2
        / problem.range[columns]
    )
    return effort.mean(-1)[good]


def cost_of(problem, x, found, weights=None):
    columns = problem.population.actionable_index
    return problem.action_cost(
        *(part[:, columns] for part in (x, found.is_acted, found.values)), weights
    )


@pytest.mark.parametrize("world_name", ["scm", "flow"])
@pytest.mark.parametrize("slack", [0.0, np.inf])
@pytest.mark.parametrize("profile", [Profile(), Profile(gamma=1, w_max=5)])
def test_equals_brute_force(problem, people, world_name, slack, profile):
    x, preferences = people
    world = problem.population.truth if world_name == "scm" else problem.flow
    found = grid.Grid(problem, world, profile=profile, n_values=5, slack=slack).recommend(
        x, preferences
    )
    expected, n_good = brute_force(problem, world, x, preferences, profile, 5, slack)
    weights = profile.weight(preferences).to(x.dtype)
    cost = cost_of(problem, x, found, weights).numpy()
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    assert 0 < found.has_recourse.sum() < len(x) or slack == np.inf
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    assert torch.allclose(
        found.x_cf, world.counterfactual(x, found.is_acted, found.values), atol=1e-12
    )


@pytest.mark.parametrize(("margin", "slack"), [(2.0, 0.0), (0.0, -0.05), (1.0, -0.02)])
def test_with_a_margin_equals_brute_force(problem, people, margin, slack):
    x, preferences = people
    asked = problem, problem.population.truth, x, preferences, Profile(), 5, slack
    found = answer(*asked, margin=margin)
    expected, n_good = brute_force(*asked, margin=margin)
    cost = cost_of(problem, x, found).numpy()
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    assert found.has_recourse.any()
    without = answer(*asked[:6])
    assert not torch.equal(found.values, without.values)  # it binds for somebody


def test_equals_brute_force_when_nothing_is_forbidden(problem, people):
    """Four people and 13^4 - 1 actions each, enough for the cheapest few not to be all."""
    x = people[0][:4]
    preferences = Preferences(torch.ones(4, 4, dtype=torch.long))
    world = problem.population.truth
    found = grid.Grid(problem, world, n_values=12).recommend(x, preferences)
    expected, n_good = brute_force(problem, world, x, preferences, Profile(), 12, 0.0)
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    cost = cost_of(problem, x, found).numpy()
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)


@pytest.mark.parametrize("centred", [0.1, 0.42])
@pytest.mark.parametrize("slack", [0.0, np.inf])
def test_a_grid_around_the_person_equals_brute_force(problem, people, centred, slack):
    x, preferences = people
    world = problem.population.truth
    found = grid.Grid(problem, world, n_values=5, slack=slack, centred=centred).recommend(
        x, preferences
    )
    expected, n_good = brute_force(
        problem,
        world,
        x,
        preferences,
        Profile(),
        5,
        slack,
        partial(centred_grids, centred=centred),
    )
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    assert 0 < found.has_recourse.sum() < len(x) or slack == np.inf
    cost = cost_of(problem, x, found).numpy()
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    after = world.counterfactual(x, found.is_acted, found.values)
    assert torch.allclose(found.x_cf, after, atol=1e-12)
    low, high = problem.population.low, problem.population.high
    inside = (low <= found.values) & (found.values <= high)
    assert inside[found.is_acted].all()


@pytest.mark.parametrize("whole", [None, torch.round])
@pytest.mark.parametrize("slack", [0.0, np.inf])
def test_few_features_acted_on_equals_brute_force(problem, people, slack, whole):
    """Nobody acts on more; to act on fewer never costs less; four of four is no bound."""
    population = replace(problem.population, whole=whole)
    rounded = replace(problem, population=population)
    x, world = rounded.refused("test")[:12], population.truth
    everything = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    profile = Profile(gamma=1.0, w_max=5.0)
    for own in (everything, people[1][: len(x)]):
        asked = rounded, world, x, own, profile, 6, slack
        unbounded = answer(*asked)
        before = torch.full((len(x),), -torch.inf, dtype=x.dtype)
        n_bound = 0
        for most in (4, 3, 2, 1):
            found = answer(*asked, max_acted=most)
            expected, n_good = brute_force(*asked, max_acted=most)
            assert (found.is_acted.sum(-1) <= most).all()
            assert found.has_recourse.tolist() == (n_good > 0).tolist()
            cost = rounded.cost_of(x, found, profile.weight(own).to(x))
            cost[~found.has_recourse] = torch.inf
            assert cost.numpy() == pytest.approx(expected, abs=1e-12)
            assert (cost >= before - 1e-12).all()
            if most == 4:
                for one, other in zip(
                    vars(unbounded).values(), vars(found).values(), strict=True
                ):
                    assert torch.equal(one, other)
            n_bound += int((cost > before + 1e-9)[before.isfinite()].sum())
            before = cost
        assert n_bound > 0


def test_what_is_found_holds(problem, people):
    x, preferences = people
    found = grid.Grid(problem, problem.population.truth, n_values=9).recommend(
        x, preferences
    )
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
    dear = grid.Grid(
        problem, world, profile=Profile(60, 1e9, shape="normalised"), n_values=6
    ).recommend(x, ranking)
    never = grid.Grid(problem, world, n_values=6).recommend(x, forbidden)
    some = never.has_recourse
    assert some.any()
    assert torch.equal(dear.is_acted[some], never.is_acted[some])


def test_blocks_follow_the_graph(problem):
    names = problem.population.features
    world, may = problem.population.truth, torch.ones(7, dtype=torch.bool)
    tried = grid.grids(problem, 25)
    found = grid.blocks(world, tried, may)
    assert [[names[j] for j in block.columns] for block in found] == [
        ["loan_amount", "loan_duration"],
        ["income", "savings"],
    ]
    assert [len(block.acts) for block in found] == [676, 676]
    assert not found[0].acts[0].any()
    may[[3, 6]] = False
    fewer = grid.blocks(world, tried, may)
    assert [len(block.acts) for block in fewer] == [26, 26]
    for block, part in zip(found, fewer, strict=True):
        allowed = ~(block.acts & ~may).any(-1)
        assert torch.equal(part.acts, block.acts[allowed])
        assert torch.equal(part.values, block.values[allowed])


@pytest.mark.parametrize(
    "at_once", [(1, 1, 9, 1, 1), (3, 2, 5, 7, 400), (256, 8, 2**22, 2**15, 2**16)]
)
@pytest.mark.parametrize("max_acted", [None, 6])
@pytest.mark.parametrize("slack", [0.0, np.inf])
def test_choice_among_three_blocks_by_enumeration(
    problem, people, slack, max_acted, at_once, monkeypatch
):
    """Made-up tables with many equal costs: the first with the fewest features.

    However many actions are shown to the classifier, and however many people are
    worked out side by side.
    """
    names = "SHOWN_FIRST", "TIMES_AS_MANY", "LISTED_AT_ONCE", "ASKED_AT_ONCE", "COMBINED"
    for name, value in zip(names, at_once, strict=True):
        monkeypatch.setattr(grid, name, value)
    x, h, rng = people[0][:20], problem.classifier, np.random.default_rng(0)
    at_start = x @ h.weights[0] + h.biases[0]
    tables = [made_up_table(rng, len(x), size) for size in (7, 5, 6)]
    every = list(product(*(range(table.cost.shape[1]) for table in tables)))[1:]
    expected, n_ties = {}, 0
    for person in range(len(x)):
        good = []
        for rows in every:
            chosen = list(zip(tables, rows, strict=True))
            cost, gain, layer = (
                sum(getattr(table, part)[person, row] for table, row in chosen)
                for part in ("cost", "gain", "first_layer")
            )
            n_acted = sum(table.acts[person, row].sum() for table, row in chosen)
            will_do = (
                (gain >= 0 or slack == np.inf)
                and (max_acted is None or n_acted <= max_acted)
                and h.logit_from_first_layer(at_start[person] + layer) >= 0
            )
            if will_do:
                good.append((cost.item(), n_acted.item(), rows))
        if good:
            expected[person] = min(good)[2]
            n_ties += sum(cost == min(good)[0] for cost, *_ in good) > 1
    helped, rows = grid._Choices(problem, x, tables, slack, max_acted, 0.0).cheapest()
    assert len(helped) == len(expected)
    assert dict(zip(helped.tolist(), map(tuple, rows.tolist()), strict=True)) == expected
    assert n_ties > 5 and (0 < len(expected) < 20 or slack == np.inf)


def made_up_table(rng, n_people, size):
    """What so many actions of one block lead to; the first is "no action"."""
    shape = n_people, size
    acts, values = rng.random((*shape, 7)) < 0.4, np.zeros((*shape, 7))
    gain, layer = rng.normal(-0.5, 1, shape), rng.normal(scale=3, size=(*shape, 32))
    cost = rng.integers(0, 3, shape).astype(float)
    for part in (acts, gain, cost, layer):
        part[:, 0] = 0
    parts = acts, values, values, cost, gain, layer
    return grid._Table(list(range(7)), *map(torch.from_numpy, parts))


@pytest.mark.parametrize("slack", [0.0, np.inf])
def test_of_equally_cheap_actions_one_with_the_fewest_features(
    problem, people, slack, monkeypatch
):
    """However many are shown at a time.

    To set the amount, which follows from no other action, to what it is does nothing.
    """
    x, world = people[0].clone(), problem.population.truth
    amount = problem.population.features.index("loan_amount")
    tried = grid.grids(problem, 9)[amount]
    nearest = (x[:, amount, None] - tried).abs().argmin(1)
    x[:, amount] = tried[nearest]
    x = x[~problem.accepts(x)]
    anything = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    asked = problem, world, x, anything, Profile(), 9, slack
    found = answer(*asked)
    assert found.has_recourse.sum() > 5
    assert not (found.is_acted & (found.values == x))[:, amount].any()
    for n_first, times in ((1, 1), (3, 1_000)):
        monkeypatch.setattr(grid, "SHOWN_FIRST", n_first)
        monkeypatch.setattr(grid, "TIMES_AS_MANY", times)
        again = answer(*asked)
        assert torch.equal(again.is_acted, found.is_acted)
        assert torch.equal(again.x_cf, found.x_cf)


def tree(x):
    """Return -1 or 1: accepted is who has savings, or little debt and an income."""
    amount, duration, income, savings = x[:, 3:].unbind(-1)
    little = (amount + duration < 0.3) & (income > -0.2)
    return torch.where((savings > 0.8) | little, 1.0, -1.0)


@pytest.mark.parametrize("slack", [0.0, np.inf])
@pytest.mark.parametrize("whole", [None, torch.round])
def test_a_decision_tree_equals_brute_force(problem, people, slack, whole):
    """A classifier of steps, without gradients; also one that sees whole numbers only."""
    population = replace(problem.population, whole=whole)
    h = Classifier(population.features, tree)
    stepwise = replace(problem, classifier=h, population=population)
    x, preferences = stepwise.refused("test")[:30], people[1]
    world = population.truth
    found = grid.Grid(stepwise, world, n_values=5, slack=slack).recommend(x, preferences)
    expected, n_good = brute_force(stepwise, world, x, preferences, Profile(), 5, slack)
    assert not h.has_gradient
    assert found.has_recourse.tolist() == (n_good > 0).tolist()
    assert 0 < found.has_recourse.sum() < len(x) or slack == np.inf
    cost = cost_of(stepwise, x, found).numpy()
    assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    after = world.counterfactual(x, found.is_acted, found.values)
    assert torch.allclose(found.x_cf, population.settled(x, after), atol=1e-12)
    assert stepwise.accepts(found.x_cf[found.has_recourse]).all()


def test_weights_that_are_not_finite_are_refused(problem, people):
    x, preferences = people
    beyond = Profile(gamma=1.0, w_max=1e39)  # more than a float32 holds
    with pytest.raises(ValueError, match="finite and not below zero"):
        grid.Grid(problem, problem.population.truth, profile=beyond, n_values=5).recommend(
            x, preferences
        )


def test_the_network_as_any_classifier_finds_the_same(problem, people):
    """The sum over the first layer, and the features put together, lead to one answer."""
    x, preferences = people
    other = Classifier(problem.population.features, problem.classifier.logit)
    one, two = (
        grid.Grid(own, own.population.truth, n_values=9).recommend(x, preferences)
        for own in (problem, replace(problem, classifier=other))
    )
    assert one.has_recourse.any()
    assert torch.equal(one.values, two.values) and torch.equal(one.x_cf, two.x_cf)


@pytest.fixture(scope="module", params=[1, 2, 8])
def linear(request) -> Problem:
    """A linear SCM with K actionable features and two others, in float64.

    Of eight, the first three are a chain, two share an effect, the rest stand alone.
    """
    n = request.param
    names = [f"a{k}" for k in range(n)]
    causes = {name: ["age"] for name in names} | {"debt": [names[-1]]}
    if n == 8:
        causes |= {"a1": ["a0"], "a2": ["a1", "age"], "debt": ["a3", "a4"]}
    rng = np.random.default_rng(n)

    def mechanism(parents):
        weights = dict(zip(parents, rng.normal(size=len(parents)), strict=True))
        return lambda pa: sum(weight * pa[name] for name, weight in weights.items())

    scm = SCM(
        {"age": additive((), lambda pa: 0.0, stats.norm(0, 1))}
        | {
            name: additive(tuple(own), mechanism(own), stats.norm(0, 1))
            for name, own in causes.items()
        }
    )
    kinds = {"age": "immutable"} | dict.fromkeys(names, "actionable") | {"debt": "mutable"}
    drawn = Population.from_scm(
        scm,
        kinds,
        label=lambda x: x.sum(-1) > 0,
        n_classifier=20,
        n_flow=600,
        n_recourse=600,
    )
    population = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    x = population.x["flow/train"]
    density, _ = flow.fit(scm.graph, x, x, hidden=(8,), n_epochs=20, batch_size=200)
    w = torch.from_numpy(rng.normal(size=n + 2)).abs()
    return Problem(population, Classifier(population.features, lambda x: x @ w), density)


def test_any_number_of_features_equals_brute_force(linear):
    n = len(linear.population.actionable)
    x = linear.refused("test")[:4]
    rng = np.random.default_rng(0)
    may = torch.from_numpy(rng.random((len(x), n)) < 0.8)
    may[:2] = True
    may[~may.any(-1), 0] = True
    preferences = Preferences.from_mask(may)
    n_values = {1: 9, 2: 9, 8: 3}[n]
    world = linear.population.truth
    for most in (None, 2):
        asked = linear, world, x, preferences, Profile(), n_values
        found = answer(*asked, max_acted=most)
        expected, n_good = brute_force(*asked, 0.0, max_acted=most)
        assert found.has_recourse.tolist() == (n_good > 0).tolist()
        assert (n_good > 0).any()
        cost = cost_of(linear, x, found).numpy()
        assert cost[n_good > 0] == pytest.approx(expected[n_good > 0], abs=1e-12)
    if n == 8:
        assert len(world.graph.blocks(linear.population.actionable_index)) == 5


def test_people_are_searched_side_by_side(problem, people, monkeypatch):
    """One by one in place of many who may do the same: the same answers."""
    x, preferences = people
    world = problem.population.truth
    together = grid.Grid(problem, world, n_values=5).recommend(x, preferences)
    everything = torch.ones(30, 7, dtype=torch.bool)
    assert [len(own) for own in grid._batches(problem, world, 5, everything)] == [30]
    one_block = 36 * grid.WIDTH
    monkeypatch.setattr(grid, "MOST_FLOATS", one_block)
    monkeypatch.setattr(grid, "TABULATED", 71)
    assert [len(own) for own in grid._batches(problem, world, 5, everything)] == [1] * 30
    alone = grid.Grid(problem, world, n_values=5).recommend(x, preferences)
    assert torch.equal(together.is_acted, alone.is_acted)
    assert torch.allclose(together.x_cf, alone.x_cf, atol=1e-12)
    monkeypatch.setattr(grid, "MOST_FLOATS", one_block - 1)
    easy = Preferences(torch.ones(30, 4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"up to 1,296 actions, up to 36 of them in one"):
        grid.Grid(problem, world, n_values=5).recommend(x, easy)


@pytest.mark.parametrize(
    ("n_values", "n_actions"),
    [(91, "71,639,296"), (10**6, "1,000,004,000,006,000,004,000,001")],
)
def test_too_large_a_grid_is_refused_before_any_work(
    problem, people, monkeypatch, n_values, n_actions
):
    for name in ("grids", "blocks", "_tabulate"):
        monkeypatch.setattr(grid, name, lambda *_: pytest.fail("work had begun"))
    x, easy = people[0], Preferences(torch.ones(30, 4, dtype=torch.long))
    with pytest.raises(ValueError, match=rf"up to {n_actions}.*Lower n_values.*continuous"):
        grid.Grid(problem, problem.population.truth, n_values=n_values).recommend(x, easy)


def test_a_person_who_may_do_little_has_a_fine_grid(problem, people):
    """Actions are counted by what people may do: one feature may have 1,000 values."""
    x = people[0]
    only_income = torch.zeros(30, 4, dtype=torch.bool)
    only_income[:, 2] = True
    preferences = Preferences.from_mask(only_income)
    coarse, fine = (
        grid.Grid(problem, problem.population.truth, n_values=n).recommend(x, preferences)
        for n in (3, 1_001)
    )
    assert fine.has_recourse.sum() > coarse.has_recourse.sum()
    assert fine.has_recourse[coarse.has_recourse].all()


def test_bad_input_is_named(problem, people):
    x, preferences = people
    accepted = problem.population.x["recourse/test"]
    accepted = accepted[problem.classifier.accepts(accepted)][:1]
    with pytest.raises(ValueError, match=r"already accepted .the first is row 29."):
        grid.Grid(problem, problem.population.truth).recommend(
            torch.cat([x[:-1], accepted]), preferences
        )
    with pytest.raises(ValueError, match=r"preferences.scores has shape"):
        grid.Grid(problem, problem.population.truth).recommend(x[:5], preferences)
    with pytest.raises(ValueError, match="centred must be above zero"):
        grid.Grid(problem, problem.population.truth, centred=0.0).recommend(x, preferences)
    whole = replace(problem, population=replace(problem.population, whole=torch.round))
    own = whole.refused("test")[: len(x)]
    with pytest.raises(ValueError, match=r"whole numbers.*Leave centred out"):
        grid.Grid(whole, whole.population.truth, centred=0.4).recommend(own, preferences)
    with pytest.raises(ValueError, match="n_values is 1"):
        grid.Grid(problem, problem.population.truth, n_values=1).recommend(x, preferences)
    with pytest.raises(ValueError, match=r"n_values is 2.5"):
        grid.Grid(problem, problem.population.truth, n_values=2.5).recommend(x, preferences)
    for most in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="max_acted must be a whole number above zero"):
            grid.Grid(problem, problem.population.truth, max_acted=most).recommend(
                x, preferences
            )
    nobody = Preferences(preferences.scores[:0])
    with pytest.raises(ValueError, match=r"and at least one of them"):
        grid.Grid(problem, problem.population.truth).recommend(x[:0], nobody)


def test_a_world_of_another_graph_or_order_is_refused(problem, people):
    parents = problem.flow.graph.parents
    other = World(Graph(parents | {"savings": ("income", "gender")}))
    with pytest.raises(ValueError, match=r"different graphs: the causes of savings"):
        grid.Grid(problem, other).recommend(*people)
    backwards = World(Graph(dict(reversed(parents.items()))))
    with pytest.raises(ValueError, match=r"different graphs: the order of the features"):
        grid.Grid(problem, backwards).recommend(*people)
