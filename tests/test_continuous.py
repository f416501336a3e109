"""Beyond the grid: closed forms, dense grids by brute force, and laws."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from lib.method import grid, icarma, metrics, training
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.preferences import Preferences, Profile
from lib.method.problem import ROUNDING, Known, Recommendation
from lib.method.samplers import RankingSampler
from lib.method.world import Graph, World
from lib.search import continuous, descent


@pytest.fixture(scope="module", params=["truth", "flow"])
def world(request, problem):
    return problem.population.truth if request.param == "truth" else problem.flow


@pytest.fixture(scope="module")
def table(problem, people):
    return continuous.Search(problem, problem.population.truth).table(people[0])


@pytest.mark.parametrize("slack", [0.0, 0.3, np.inf])
def test_single_features_against_a_dense_grid(problem, people, world, slack):
    """One feature at a time, 4,001 values: nothing cheaper exists, nothing is missed."""
    x, columns = people[0][:12], problem.population.actionable_index
    found = continuous.Search(problem, world, slack=slack).table(x)
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
            judge = descent.Judge(problem, world, rows, acts, torch.ones_like(values))
            cost, log_odds, _ = judge(values)
            after = problem.flow.log_prob(judge.recommendation(values).x_cf)
            gain = after - problem.flow.log_prob(rows)
            aim = 2 * ROUNDING  # what a descent steps towards
            will_do = (log_odds >= aim) & (gain + slack >= aim)
            least = torch.where(will_do, cost, torch.inf).min()
            assert found.cost[i, k] <= least * (1 + 1e-5)
            if found.cost[i, k].isfinite():
                step = (on_grid[1] - on_grid[0]) ** 2 / problem.range[column] + 2 * (
                    on_grid[1] - on_grid[0]
                ) * problem.range[column].sqrt()
                assert not will_do.any() or found.cost[i, k] >= least - step


def test_more_slack_never_hurts(problem, people, world):
    """Who is helped stays helped, and pays no more but for the search's own error."""
    slacks = (0.0, 0.1, 0.5, 2.0, np.inf)
    costs = [
        continuous.Search(problem, world, slack=s).table(people[0]).cost for s in slacks
    ]
    for less, more in pairwise(costs):
        has = less.isfinite()
        assert more[has].isfinite().all()
        assert (more[has] <= 1.01 * less[has]).double().mean() >= 0.98
    shares = [cost.isfinite().double().mean().item() for cost in costs]
    assert shares[0] < shares[2] < shares[-1]


def test_without_bound_the_search_demands_what_the_grid_does_without_plausibility(
    problem, people
):
    x, preferences = people
    truth, columns = problem.population.truth, problem.population.actionable_index
    found = continuous.Search(problem, truth, slack=np.inf).table(x)
    cheapest = found.cheapest(preferences.is_actionable)[0]
    on_grid = grid.Grid(problem, truth, n_values=9, slack=np.inf).recommend(x, preferences)
    has = on_grid.has_recourse
    cost = problem.action_cost(
        *(part[:, columns] for part in (x, on_grid.is_acted, on_grid.values))
    )
    assert has.any() and (cheapest[has] <= cost[has] + 1e-12).all()
    assert found.gain[found.cost.isfinite()].eq(np.inf).all()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"slack": np.nan}, "slack is nan, expected nats"),
        ({"slack": -np.inf}, "slack is -inf, expected nats"),
        ({"margin": -0.1}, "margin is -0.1, expected log-odds, zero or more"),
    ],
)
def test_what_cannot_be_asked_for_is_named(problem, people, asked, message):
    with pytest.raises(ValueError, match=message):
        continuous.Search(problem, problem.population.truth, **asked).table(people[0])


def test_a_margin_is_reached_and_costs(problem, people):
    """The search within a margin is the search for a bank that asks for more."""
    x, truth = people[0], problem.population.truth
    h = problem.classifier
    asks_more = NetworkClassifier(h.features, h.weights, [*h.biases[:-1], h.biases[-1] - 2])
    found = continuous.Search(problem, truth, slack=-0.05, margin=2.0).table(x)
    other = replace(problem, classifier=asks_more)
    for one, two in zip(
        vars(found).values(),
        vars(continuous.Search(other, truth, slack=-0.05).table(x)).values(),
        strict=True,
    ):
        assert torch.allclose(one.to(x), two.to(x), atol=1e-6)
    anything = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    asked = continuous.Search(problem, truth).recommend(x, anything, found)
    some = asked.has_recourse
    assert some.any()
    assert (h.logit(asked.x_cf)[some] >= 2).all()
    gain = problem.flow.log_prob(asked.x_cf) - problem.flow.log_prob(x)
    assert (gain[some] >= 0.05).all()


def test_what_is_found_is_valid_and_plausible_and_costs_what_it_says(
    problem, people, table
):
    x = people[0]
    for j, own in enumerate(table.sets):
        has = table.cost[:, j].isfinite()
        judge = descent.Judge(
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
        x_cf = judge.recommendation(table.values[:, j]).x_cf
        assert (
            problem.flow.log_prob(x_cf)[has] >= problem.flow.log_prob(x)[has]
        ).all() and problem.accepts(x_cf)[has].all()
        assert (table.log_odds[has, j] >= 0).all() and (table.gain[has, j] >= 0).all()


@pytest.mark.parametrize("n_actionable", [1, 2, 4])
def test_never_worse_than_the_grid(problem, people, n_actionable):
    """Recourse wherever the grid has it, at no higher cost, and somewhere lower."""
    x, truth = people[0], problem.population.truth
    preferences = RankingSampler(
        problem.population.actionable, n_actionable=n_actionable
    ).draw(range(len(x)), np.random.default_rng(0))
    profile = Profile(gamma=1.0, w_max=5.0)
    on_grid = grid.Grid(problem, truth, profile=profile, n_values=9).recommend(
        x, preferences
    )
    weights = profile.weight(preferences).to(x)
    found = continuous.Search(problem, truth, n_steps=40).table(
        x, weights, starts=[on_grid]
    )
    recommendation = continuous.Search(problem, truth).recommend(x, preferences, found)
    columns = problem.population.actionable_index
    somewhere = found.cost.isfinite()
    assert (found.log_odds[somewhere] >= 0).all() and (found.gain[somewhere] >= 0).all()
    at_grid, beyond = (
        problem.action_cost(
            x[:, columns], own.is_acted[:, columns], own.values[:, columns], weights
        )
        for own in (on_grid, recommendation)
    )
    has = on_grid.has_recourse
    assert (
        recommendation.has_recourse[has].all()
        and (beyond[has] <= at_grid[has] + 1e-12).all()
    )
    assert (beyond[has] < 0.98 * at_grid[has]).any()
    assert not (recommendation.is_acted[:, columns] & ~preferences.is_actionable).any()
    judged = metrics.per_person(problem, x, preferences, recommendation)
    assert (
        judged.joint[recommendation.has_recourse.numpy()].all()
        and (judged.n_acted[~recommendation.has_recourse.numpy()] == 0).all()
    )


def test_one_table_is_never_worse_than_the_grids_for_several_masks(
    problem, people, monkeypatch
):
    """Even when the search itself hardly looks, and never descends."""
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
    grids = [grid.Grid(problem, truth, n_values=9).recommend(x, own) for own in masks]
    lazily = {"n_scouts": 2, "n_starts": 1, "n_steps": 1}
    monkeypatch.setattr(continuous, "descend", lambda *_: None)
    monkeypatch.setattr(
        continuous, "PEOPLE_AT_ONCE", 8
    )  # each batch must take its own people's
    alone, helped = (
        continuous.Search(problem, truth, **lazily).table(x, starts=starts)
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
    """One feature more may be set to what would become of it anyway, within the range."""
    x, columns = people[0], problem.population.actionable_index
    low, high = (
        bound[columns] for bound in (problem.population.low, problem.population.high)
    )
    checked = 0
    for i, smaller in enumerate(table.sets):
        judge = descent.Judge(
            problem,
            problem.population.truth,
            x,
            smaller.expand(len(x), -1),
            torch.ones(len(x), 4, dtype=x.dtype),
        )
        after = judge.recommendation(table.values[:, i]).x_cf[:, columns]
        for j, larger in enumerate(table.sets):
            if (smaller & ~larger).any() or larger.sum() != smaller.sum() + 1:
                continue
            within = ((low <= after) & (after <= high))[:, larger].all(-1)
            has = table.cost[:, i].isfinite() & within
            checked += has.sum()
            assert table.cost[has, j].isfinite().all()
    assert checked > 20


def test_few_features_acted_on(problem, people, table):
    """Fewer than all is never more help, nor cheaper; four of four is no bound."""
    x, preferences = people
    world = problem.population.truth
    may = preferences.is_actionable
    unbounded = continuous.Search(problem, world).recommend(x, preferences, table)
    helped, least = unbounded.has_recourse, table.cheapest(may)[0]
    for most in (4, 3, 2, 1):
        found = continuous.Search(problem, world).recommend(
            x, preferences, table, max_acted=most
        )
        cost = table.cheapest(may, most)[0]
        assert (found.is_acted.sum(-1) <= most).all()
        assert not (found.has_recourse & ~helped).any() and (cost >= least).all()
        assert torch.equal(found.has_recourse, cost.isfinite())
        has = found.has_recourse
        assert torch.allclose(problem.cost_of(x, found)[has], cost[has])
        if most == 4:
            for one, other in zip(
                vars(unbounded).values(), vars(found).values(), strict=True
            ):
                assert torch.equal(one, other)
        helped, least = has, cost
    assert helped.sum() < unbounded.has_recourse.sum()
    with pytest.raises(ValueError, match="max_acted must be a whole number above zero"):
        continuous.Search(problem, world).recommend(x, preferences, table, max_acted=0)


def test_refinement_never_makes_a_good_recommendation_worse(problem, people):
    x, preferences = people
    truth = problem.population.truth
    sampler = RankingSampler(problem.population.actionable)
    stack, _ = training.fit(
        problem, [sampler], [icarma.Settings(n_epochs=20, batch_size=64, hidden=16)], [1]
    )
    proposed = stack.recommend(x, preferences)[0]
    before = metrics.per_person(
        problem,
        x,
        preferences,
        replace(proposed, x_cf=truth.counterfactual(x, proposed.is_acted, proposed.values)),
    )
    after = metrics.per_person(
        problem,
        x,
        preferences,
        continuous.Refined(Known(proposed), problem, truth).recommend(x, preferences),
    )
    assert (
        after.joint[before.joint].all()
        and (after.cost[before.joint] <= before.cost[before.joint] + 1e-12).all()
    )
    assert after.joint.sum() > before.joint.sum()
    may = torch.zeros_like(proposed.is_acted)
    may[:, problem.population.actionable_index] = preferences.is_actionable
    assert not (
        continuous.Refined(Known(proposed), problem, truth)
        .recommend(x, preferences)
        .is_acted
        & ~may
    ).any()


def test_threads_change_nothing(problem, people, monkeypatch):
    x, truth = people[0], problem.population.truth
    monkeypatch.setattr(continuous, "PEOPLE_AT_ONCE", 8)
    one, two = (
        continuous.Search(problem, truth, n_scouts=32, n_starts=2, n_threads=n).table(x)
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
        continuous.Search(problem, problem.population.truth).table(people[0])
    assert len(begun) < len(people[0])


def test_bad_input_is_named(problem, people):
    x, truth = people[0], problem.population.truth
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    with pytest.raises(ValueError, match="give a list of them"):
        continuous.Search(problem, truth).table(x, starts=nothing)
    with pytest.raises(ValueError, match=r"starts\[1\].values has shape"):
        continuous.Search(problem, truth).table(
            x, starts=[nothing, Recommendation(nothing.is_acted[:3], x[:3], x[:3])]
        )
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, 5] = True
    for value in (torch.nan, torch.inf):
        spoilt = Recommendation(acts, x.where(~acts, value), x)
        with pytest.raises(ValueError, match=r"starts\[0\].values holds NaN or infinite"):
            continuous.Search(problem, truth).table(x, starts=[spoilt])
        with pytest.raises(
            ValueError, match=r"recommendation\.values holds NaN or infinite"
        ):
            continuous.Refined(Known(spoilt), problem, truth).recommend(x, people[1])
    with pytest.raises(ValueError, match="weights has shape"):
        continuous.Search(problem, truth).table(x, torch.ones(3, 4))
    with pytest.raises(ValueError, match="already accepted"):
        continuous.Search(problem, truth).table(problem.population.x["recourse/test"])
    with pytest.raises(ValueError, match=r"and at least one of them"):
        continuous.Search(problem, truth).table(x[:0])
    with pytest.raises(ValueError, match=r"finite and not below zero"):
        continuous.Search(problem, truth).table(x, torch.full((len(x), 4), -1.0))
    with pytest.raises(ValueError, match=r"n_steps must be above zero"):
        continuous.Search(problem, truth, n_steps=0).table(x)
    stack = Recommendation(*(part.repeat(2, 1, 1) for part in vars(nothing).values()))
    with pytest.raises(ValueError, match=r"starts\[0\] is of a stack.* index a member"):
        continuous.Search(problem, truth).table(x, starts=[stack])
    with pytest.raises(ValueError, match=r"recommendation is of a stack.* index a member"):
        continuous.Refined(Known(stack), problem, truth).recommend(*people)
    with pytest.raises(ValueError, match=r"recommendation.values has shape \(2, 7\)"):
        continuous.Refined(Known(nothing[:2]), problem, truth).recommend(*people)
    with pytest.raises(ValueError, match=r"scores has shape"):
        continuous.Refined(Known(nothing), problem, truth).recommend(
            x, Preferences(torch.ones(2, 4, dtype=torch.long))
        )


def both_searches(problem, world, people):
    """Return calls that must be refused alike; nothing may be worked out before."""
    x, preferences = people
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    return {
        "search": lambda: continuous.Search(problem, world).table(x),
        "refine": lambda: continuous.Refined(Known(nothing), problem, world).recommend(
            x, preferences
        ),
    }


@pytest.fixture
def no_work(monkeypatch):
    """Make every search fail as soon as it begins."""
    for name in ("Judge", "scout", "descend"):
        monkeypatch.setattr(continuous, name, lambda *_: pytest.fail("work had begun"))


@pytest.mark.parametrize("which", ["search", "refine"])
def test_a_classifier_without_gradient_is_refused(problem, people, which, no_work):
    tree = Classifier(problem.population.features, lambda x: -(x[:, 5] < 9).double())
    stepwise = replace(problem, classifier=tree)
    with pytest.raises(ValueError, match=r"needs the gradient .*lib.method.grid"):
        both_searches(stepwise, problem.population.truth, people)[which]()


@pytest.mark.parametrize("which", ["search", "refine"])
def test_a_world_of_another_graph_or_order_is_refused(problem, people, which, no_work):
    parents = problem.flow.graph.parents
    other = World(Graph(parents | {"savings": ("income", "gender")}))
    with pytest.raises(ValueError, match=r"different graphs: the causes of savings"):
        both_searches(problem, other, people)[which]()
    backwards = World(Graph(dict(reversed(parents.items()))))
    with pytest.raises(ValueError, match=r"different graphs: the order of the features"):
        both_searches(problem, backwards, people)[which]()


def test_any_classifier_that_torch_can_differentiate(problem, people):
    """A function in the network's place: the same logits lead to the same table."""
    h = problem.classifier

    def logit(x):
        for i, (weight, bias) in enumerate(zip(h.weights, h.biases, strict=True)):
            x = (x.relu() if i else x) @ weight.to(x) + bias.to(x)
        return x

    other = replace(problem, classifier=Classifier(problem.population.features, logit))
    one, two = (
        continuous.Search(own, own.population.truth, n_scouts=32, n_starts=1).table(
            people[0][:6]
        )
        for own in (problem, other)
    )
    assert torch.allclose(one.cost, two.cost) and one.cost.isfinite().any()
