"""Beyond the grid: closed forms, dense grids by brute force, and laws."""

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from lib.causal.graph import Graph
from lib.causal.world import World
from lib.preferences.samplers import RankingSampler
from lib.preferences.scores import Preferences, Profile
from lib.problem.recourse import Recommendation
from lib.solvers import continuous, grid, icarma, metrics


@pytest.fixture(scope="module", params=["truth", "flow"])
def world(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


@pytest.fixture(scope="module")
def table(problem, people):
    return continuous.search(problem, problem.population.truth, people[0])


def test_the_sets_are_all_there_is_small_ones_first():
    sets = continuous.sets_of(4)
    assert (
        len(sets) == 15 == len({tuple(own) for own in sets.tolist()})
        and (sets.sum(-1).diff() >= 0).all()
        and sets.any(-1).all()
    )


def test_single_features_against_a_dense_grid(problem, people, world):
    """One feature at a time, 4,001 values: nothing cheaper exists, and nothing is missed that has some room."""
    x, columns = people[0][:12], problem.population.actionable_index
    found = continuous.search(problem, world, x)
    for k, column in enumerate(columns):
        on_grid = torch.linspace(
            problem.population.low[column],
            problem.population.high[column],
            4_001,
            dtype=x.dtype,
        )
        acts = torch.zeros(len(on_grid), len(columns), dtype=torch.bool)
        acts[:, k] = True
        for i, person in enumerate(x):
            rows = person.expand(len(on_grid), -1)
            values = rows[:, columns].clone()
            values[:, k] = on_grid
            judge = continuous.Judge(problem, world, rows, acts, torch.ones_like(values))
            cost, log_odds, gain = judge(values)
            will_do = (log_odds >= continuous.SURE) & (gain >= continuous.SURE)
            least = torch.where(will_do, cost, torch.inf).min()
            assert found.cost[i, k] <= least * (
                1 + 1e-5
            )  # the walk back ends within a millionth of the way
            if found.cost[i, k].isfinite():
                step = (on_grid[1] - on_grid[0]) ** 2 / problem.range[column] + 2 * (
                    on_grid[1] - on_grid[0]
                ) * problem.range[column].sqrt()
                assert not will_do.any() or found.cost[i, k] >= least - step


def test_what_is_found_is_valid_and_plausible_and_costs_what_it_says(
    problem, people, table
):
    x = people[0]
    for j, own in enumerate(table.sets):
        has = table.cost[:, j].isfinite()
        judge = continuous.Judge(
            problem,
            problem.population.truth,
            x,
            own.expand(len(x), -1),
            torch.ones(len(x), 4, dtype=x.dtype),
        )
        cost, log_odds, gain = judge(table.values[:, j])
        assert (
            torch.allclose(cost[has], table.cost[has, j])
            and (log_odds[has] >= 0).all()
            and (gain[has] >= 0).all()
        )
        x_cf = judge.advice(table.values[:, j]).x_cf
        assert (
            problem.flow.log_prob(x_cf)[has] >= problem.flow.log_prob(x)[has]
        ).all() and problem.accepts(x_cf)[has].all()
        assert (table.log_odds[has, j] >= 0).all() and (table.gain[has, j] >= 0).all()


@pytest.mark.parametrize("n_actionable", [1, 2, 4])
def test_never_worse_than_the_grid(problem, people, n_actionable):
    """For each person: recourse wherever the grid has it, at no higher cost by their own weights; and somewhere it is lower."""
    x, truth = people[0], problem.population.truth
    wishes = RankingSampler(problem.population.actionable, n_actionable=n_actionable).draw(
        range(len(x)), np.random.default_rng(0)
    )
    profile = Profile(gamma=1.0, w_max=5.0)
    on_grid = grid.search(problem, truth, x, wishes, profile, n_values=9)
    weights = profile.weight(wishes).to(x)
    found = continuous.search(problem, truth, x, weights, starts=[on_grid], n_steps=40)
    advice = continuous.recommend(problem, truth, x, wishes, found)
    columns = problem.population.actionable_index
    somewhere = found.cost.isfinite()
    assert (found.log_odds[somewhere] >= 0).all() and (found.gain[somewhere] >= 0).all()
    at_grid, beyond = (
        problem.action_cost(
            x[:, columns], own.is_acted[:, columns], own.values[:, columns], weights
        )
        for own in (on_grid, advice)
    )
    has = on_grid.has_recourse
    assert advice.has_recourse[has].all() and (beyond[has] <= at_grid[has] + 1e-12).all()
    assert (beyond[has] < 0.98 * at_grid[has]).any()
    assert not (advice.is_acted[:, columns] & ~wishes.is_actionable).any()
    judged = metrics.per_person(problem, x, wishes, advice)
    assert (
        judged.joint[advice.has_recourse.numpy()].all()
        and (judged.n_acted[~advice.has_recourse.numpy()] == 0).all()
    )


def test_one_table_is_never_worse_than_the_grids_for_several_masks(
    problem, people, monkeypatch
):
    """Even when the search itself hardly looks."""
    x, truth, columns = (
        people[0],
        problem.population.truth,
        problem.population.actionable_index,
    )
    features, rng = problem.population.actionable, np.random.default_rng(0)
    masks = [
        RankingSampler(features, n_actionable=n).draw(range(len(x)), rng)
        for n in (4, 3, 2, 1)
    ]
    grids = [grid.search(problem, truth, x, own, n_values=9) for own in masks]
    lazily = {"n_scouts": 2, "n_starts": 1, "n_steps": 1}
    monkeypatch.setattr(
        continuous, "PEOPLE_AT_ONCE", 8
    )  # each batch must take its own people's
    alone, helped = (
        continuous.search(problem, truth, x, starts=starts, **lazily)
        for starts in ([], grids)
    )
    lost = 0
    for own, on_grid in zip(masks, grids, strict=True):
        has = on_grid.has_recourse
        least = problem.action_cost(
            x[:, columns], on_grid.is_acted[:, columns], on_grid.values[:, columns]
        )[has]
        assert (helped.cheapest(own.is_actionable)[0][has] <= least + 1e-12).all()
        lost += (alone.cheapest(own.is_actionable)[0][has] > least + 1e-12).sum()
    assert lost > 0


def test_a_set_has_recourse_where_a_smaller_one_has(problem, people, table):
    """One feature more may be set to what would become of it anyway, if that is a value people have."""
    x, columns = people[0], problem.population.actionable_index
    low, high = (
        bound[columns] for bound in (problem.population.low, problem.population.high)
    )
    checked = 0
    for i, smaller in enumerate(table.sets):
        judge = continuous.Judge(
            problem,
            problem.population.truth,
            x,
            smaller.expand(len(x), -1),
            torch.ones(len(x), 4, dtype=x.dtype),
        )
        after = judge.advice(table.values[:, i]).x_cf[:, columns]
        for j, larger in enumerate(table.sets):
            if (smaller & ~larger).any() or larger.sum() != smaller.sum() + 1:
                continue
            within = ((low <= after) & (after <= high))[:, larger].all(-1)
            has = table.cost[:, i].isfinite() & within
            checked += has.sum()
            assert table.cost[has, j].isfinite().all()
    assert checked > 20


def test_what_would_unlock_recourse_by_enumeration(table, people):
    may = people[1].is_actionable
    sets = [set(np.flatnonzero(own)) for own in table.sets.numpy()]

    def cheapest(person, allowed):
        return min(
            (table.cost[person, j].item() for j, own in enumerate(sets) if own <= allowed),
            default=np.inf,
        )

    single, key, lowest = table.unlocked_by(may), table.key(may), table.cheapest(may)[0]
    log_odds, gain = table.blocked_by(may)
    for i, mask in enumerate(may):
        mine = set(np.flatnonzero(mask.numpy()))
        assert lowest[i].item() == cheapest(i, mine)
        for k in range(4):
            assert single[i, k].item() == cheapest(i, mine | {k})
        inside = [j for j, own in enumerate(sets) if own <= mine]
        assert (
            log_odds[i] == table.log_odds[i, inside].max()
            and gain[i] == table.gain[i, inside].max()
        )
        closed = sorted(set(range(4)) - mine)
        best = set()
        if not np.isfinite(cheapest(i, mine)):
            prices = {
                more: cheapest(i, mine | set(more))
                for more in product(*[[k, None] for k in closed])
                if any(k is not None for k in more)
            }
            prices = {
                tuple(k for k in more if k is not None): price
                for more, price in prices.items()
            }
            finite = {more: price for more, price in prices.items() if np.isfinite(price)}
            if finite:
                size = min(map(len, finite))
                best = set(
                    min((more for more in finite if len(more) == size), key=finite.get)
                )
        assert set(np.flatnonzero(key[i].numpy())) == best
    assert key.any() and (lowest.isinf()).any()


def test_the_way_back_stops_at_the_bound(problem, people):
    """From an action that overshoots: never costlier, still valid and plausible, and one of the two bounds is met."""
    x, columns = people[0], problem.population.actionable_index
    acts = torch.ones(len(x), 4, dtype=torch.bool)
    judge = continuous.Judge(
        problem, problem.population.truth, x, acts, torch.ones(len(x), 4, dtype=x.dtype)
    )
    found = continuous.Found.nothing(x[:, columns])
    continuous.descend(judge, x[:, columns], found, n_steps=25, learning_rate=0.3)
    before, has = found.cost.clone(), found.cost.isfinite()
    continuous.walk_back(judge, found, n_halvings=30)
    assert (
        has.any()
        and (found.cost <= before).all()
        and torch.equal(found.cost.isfinite(), has)
    )
    cost, log_odds, gain = judge(found.values)
    assert (log_odds[has] >= continuous.SURE).all() and (gain[has] >= continuous.SURE).all()
    moved = found.cost < before
    assert (
        moved.any()
        and (torch.minimum(log_odds, gain)[moved] < continuous.SURE + 1e-3).all()
    )


def test_refinement_never_makes_good_advice_worse(problem, people):
    x, wishes = people
    truth = problem.population.truth
    sampler = RankingSampler(problem.population.actionable)
    stack, _ = icarma.fit(
        problem, [sampler], [icarma.Settings(n_epochs=20, batch_size=64, hidden=16)], [1]
    )
    said = stack.recommend(x, wishes)[0]
    before = metrics.per_person(
        problem,
        x,
        wishes,
        replace(said, x_cf=truth.counterfactual(x, said.is_acted, said.values)),
    )
    after = metrics.per_person(
        problem, x, wishes, continuous.refine(problem, truth, x, wishes, said)
    )
    assert (
        after.joint[before.joint].all()
        and (after.cost[before.joint] <= before.cost[before.joint] + 1e-12).all()
    )
    assert after.joint.sum() > before.joint.sum()
    may = torch.zeros_like(said.is_acted)
    may[:, problem.population.actionable_index] = wishes.is_actionable
    assert not (continuous.refine(problem, truth, x, wishes, said).is_acted & ~may).any()


def test_threads_change_nothing(problem, people, monkeypatch):
    x, truth = people[0], problem.population.truth
    monkeypatch.setattr(continuous, "PEOPLE_AT_ONCE", 8)
    one, two = (
        continuous.search(problem, truth, x, n_scouts=32, n_starts=2, n_threads=n)
        for n in (1, 2)
    )
    assert all(
        torch.equal(getattr(one, name), getattr(two, name))
        for name in ("cost", "values", "log_odds", "gain")
    )
    assert one.cost.shape == (len(x), 15) and one.cost.isfinite().any()


def test_who_interrupts_does_not_wait_for_all(problem, people, monkeypatch):
    begun = []
    monkeypatch.setattr(continuous, "PEOPLE_AT_ONCE", 1)
    monkeypatch.setattr(
        continuous,
        "scout",
        lambda judge, *rest: begun.append(judge) or time.sleep(0.05) or 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        continuous.search(problem, problem.population.truth, people[0])
    assert len(begun) < len(people[0])


def test_judge_agrees_with_the_whole_density(problem, people, world):
    """It asks only the networks that an action can concern, and some of them once; the sum must be that over all."""
    x, columns = people[0], problem.population.actionable_index
    rng = np.random.default_rng(1)
    acts = torch.from_numpy(rng.random((len(x), 4)) < 0.5)
    values = torch.from_numpy(rng.normal(size=(len(x), 4)))
    judge = continuous.Judge(problem, world, x, acts, torch.ones_like(values))
    cost, log_odds, gain = judge(values)
    x_cf = judge.advice(values).x_cf
    assert (
        torch.allclose(
            gain, problem.flow.log_prob(x_cf) - problem.flow.log_prob(x), atol=1e-9
        )
        and (gain != 0).any()
    )
    assert torch.allclose(log_odds, problem.classifier.logit(x_cf)) and torch.allclose(
        cost, problem.action_cost(x[:, columns], acts, values)
    )


def test_bad_input_is_named(problem, people):
    x, truth = people[0], problem.population.truth
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    with pytest.raises(ValueError, match="give a list of them"):
        continuous.search(problem, truth, x, starts=nothing)
    with pytest.raises(ValueError, match=r"starts\[1\].values has shape"):
        continuous.search(
            problem,
            truth,
            x,
            starts=[nothing, Recommendation(nothing.is_acted[:3], x[:3], x[:3])],
        )
    with pytest.raises(ValueError, match="weights has shape"):
        continuous.search(problem, truth, x, torch.ones(3, 4))
    with pytest.raises(ValueError, match="already accepted"):
        continuous.search(problem, truth, problem.population.x["recourse/test"])
    with pytest.raises(ValueError, match="x holds nobody"):
        continuous.search(problem, truth, x[:0])
    other = World(Graph(problem.flow.graph.parents | {"savings": ("income", "gender")}))
    with pytest.raises(ValueError, match="different graphs .causes of savings"):
        continuous.search(problem, other, x)
    with pytest.raises(ValueError, match="different graphs .causes of savings"):
        grid.search(problem, other, x, people[1])
    whole = replace(problem, population=replace(problem.population, whole=torch.round))
    with pytest.raises(ValueError, match="whole numbers: use lib.oracle.search"):
        continuous.search(whole, truth, x)
    with pytest.raises(ValueError, match="scores has shape"):
        continuous.refine(
            problem, truth, x, Preferences(torch.ones(2, 4, dtype=torch.long)), None
        )
