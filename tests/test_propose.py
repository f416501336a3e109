"""Propose and verify: every answer is worked out anew; loops over the sets; laws."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from lib.beyond.propose import propose, teaching
from lib.beyond.propose.propose import Proposer, Settings, Walk, WithoutNetwork
from lib.method import classifier, flow, loan
from lib.method.classifier import Classifier
from lib.method.population import Population
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import ROUNDING, Problem
from lib.search import continuous
from lib.search.sets import sets_of

# hinge and cost weigh more than usual, so that few epochs are enough
SMALL = Settings(
    n_epochs=40, batch_size=64, hidden=32, n_hidden=2, learning_rate=1e-2, hinge=1.0
)
LINEAR = Profile(gamma=1.0, w_max=5.0)
# what may be asked for: margin, slack, and from scores to weights
ASKED = {
    "today": (0.0, 0.0, CONSTANT),
    "margin and gain": (0.4, -0.02, LINEAR),
    "slack": (0.1, 0.3, Profile(gamma=0.5, w_max=20.0)),
    "no plausibility": (1.0, np.inf, CONSTANT),
}
asks = pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
walks = pytest.mark.parametrize("walk", [None, Walk(2, 2, 3, 4)], ids=["still", "walked"])


@pytest.fixture(scope="module")
def trained(problem):
    return teaching.fit(problem, SMALL, seed=1)[0]


def random_proposer(problem, sets, seed, size=1.0):
    """Return a proposer whose network nobody trained."""
    n_features, n_actionable = len(problem.population.features), sets.shape[-1]
    widths = [2 * n_features + n_actionable + 2, 16, 16, sets.numel()]
    rng, weights = np.random.default_rng(seed), {}
    for i in range(3):
        drawn = rng.normal(scale=size / np.sqrt(widths[i]), size=(widths[i], widths[i + 1]))
        weights[f"weight_{i}"] = torch.from_numpy(drawn)
        weights[f"bias_{i}"] = torch.from_numpy(rng.normal(size=widths[i + 1]))
    weights["weight_0"][-2:] *= 60  # of what is asked for: it shall change proposals
    settings = Settings(n_hidden=2, hidden=16)
    return Proposer(problem, settings, sets, weights)


@pytest.fixture(scope="module")
def untrained(problem):
    return random_proposer(problem, sets_of(4), seed=2, size=0.5)


@pytest.fixture(scope="module")
def counted():
    """A problem with two counts that can be acted on, and one that follows from them."""
    rng, n_people = np.random.default_rng(2), 600
    age = rng.integers(20, 70, n_people)
    income = 40.0 * age + rng.normal(0, 400, n_people)
    cards = rng.poisson(3, n_people)
    loans = rng.poisson(1 + cards / 3)
    late = rng.poisson(0.3 + loans / 2)
    frame = pd.DataFrame(
        {"age": age, "income": income, "cards": cards, "loans": loans, "late": late}
    )
    noise = rng.normal(0, 0.5, n_people)
    frame["repaid"] = income / 800 - 0.9 * late - 0.4 * cards + noise > -0.3
    kinds = dict.fromkeys(("income", "cards", "loans"), "actionable")
    kinds = {"age": "immutable"} | kinds | {"late": "mutable"}
    edges = {"income": ["age"], "loans": ["cards"], "late": ["loans"]}
    drawn = Population.from_frame(frame, "repaid", kinds, edges)
    drawn = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    h, _ = classifier.fit(drawn, n_epochs=30)
    for_flow = drawn.x["flow/train"], drawn.x["flow/validation"]
    density, _ = flow.fit(drawn.graph, *for_flow, n_epochs=30, batch_size=100)
    return Problem(drawn, h, density)


@pytest.fixture(scope="module")
def wild(problem):
    """A proposer whose values lie far outside the range."""
    return random_proposer(problem, sets_of(4), seed=1, size=3.0)


def somebody(problem, n_people, seed):
    """Return refused people, and preferences that were drawn feature by feature."""
    n_features = len(problem.population.actionable)
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, n_features + 2, (n_people, n_features))
    easy = rng.integers(0, n_features, n_people)
    scores[np.arange(n_people), easy] = rng.integers(1, n_features + 1, n_people)
    return problem.refused("test")[:n_people], Preferences(torch.from_numpy(scores))


def everything(n_people, n_features=4):
    return Preferences(torch.ones(n_people, n_features, dtype=torch.long))


def check_truth(problem, x, preferences, found, margin, slack):
    """Assert what is promised of every answer, from the flow and the classifier alone."""
    population = problem.population
    columns = population.actionable_index
    has = found.has_recourse
    may = torch.zeros_like(found.is_acted)
    may[:, columns] = preferences.is_actionable
    assert not (found.is_acted & ~may).any()
    assert torch.equal(found.values[~found.is_acted], x[~found.is_acted])
    assert torch.equal(found.values[~has], x[~has])
    assert torch.equal(found.x_cf[~has], x[~has])
    x_cf = problem.flow.counterfactual(x, found.is_acted, found.values)
    x_cf = population.settled(x, x_cf)
    assert torch.allclose(found.x_cf, x_cf, atol=1e-12)
    assert problem.accepts(found.x_cf)[has].all()
    log_odds = problem.classifier.logit(population.possible(x_cf))
    gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(x)
    assert (log_odds[has] >= margin).all() and (gain[has] >= -slack).all()
    within = (population.low <= found.values) & (found.values <= population.high)
    assert population.whole is not None or within[found.is_acted].all()


@walks
@asks
@pytest.mark.parametrize("which", ["trained", "untrained", "wild"])
def test_verified_means_verified(problem, which, asked, walk, request):
    """A network may be wrong, and what is returned holds."""
    proposer = request.getfixturevalue(which)
    margin, slack, profile = asked
    n_helped = 0
    for seed in range(2):
        x, preferences = somebody(problem, 40, seed)
        found = proposer.recommend(x, preferences, profile, margin, slack, walk)
        check_truth(problem, x, preferences, found, margin, slack)
        n_helped += found.has_recourse.sum()
    assert n_helped > 0 or which != "trained"


@walks
def test_whole_numbers_are_verified_as_whole_numbers(counted, walk):
    """Values and consequences are what people can have, and can be carried out as such."""
    proposer = random_proposer(counted, sets_of(3), seed=5)
    x, population = counted.refused("test")[:25], counted.population
    preferences, counts = everything(len(x), 3), population.whole.is_whole
    found = proposer.recommend(x, preferences, walk=walk)
    check_truth(counted, x, preferences, found, 0.0, 0.0)
    done = counted.carried_out(x, found)
    assert torch.equal(done.values, found.values) and torch.equal(done.x_cf, found.x_cf)
    for part in (found.values, found.x_cf):
        moved = (part != x) & counts
        own = population.in_units(part)[moved]
        assert len(own) and (own - own.round()).abs().max() < 1e-9
    assert ((found.x_cf != x) & counts & ~found.is_acted).any()
    # looked up in a table it is as whole
    table = proposer.table(x, n_steps=3)
    looked_up = continuous.Search(counted, counted.flow).recommend(x, preferences, table)
    check_truth(counted, x, preferences, looked_up, 0.0, 0.0)
    assert looked_up.has_recourse.any()
    miss = proposer.nearest_miss(x, preferences)
    own = population.in_units(miss.values)[(miss.values != x) & counts]
    assert len(own) and (own - own.round()).abs().max() < 1e-9


def test_neighbouring_whole_numbers_make_nothing_dearer(counted, monkeypatch):
    proposer = random_proposer(counted, sets_of(3), seed=5)
    x, walk = counted.refused("test")[:40], Walk(1, 1, 2, 2)
    found = proposer.recommend(x, everything(len(x), 3), walk=walk)
    monkeypatch.setattr(propose, "descend_from_neighbours", lambda *_: None)
    without = proposer.recommend(x, everything(len(x), 3), walk=walk)
    assert torch.equal(found.is_acted, without.is_acted)
    cost, before = (counted.cost_of(x, own) for own in (found, without))
    assert (cost <= before + 1e-12).all() and (cost < 0.9 * before).any()


def held(action):
    """Whether an action is surely valid and plausible."""
    return action[1] >= ROUNDING and action[2] >= ROUNDING


def actions_on_sets(problem, sets, x, weights, values, margin, slack):
    """Return what loops find of proposals (N, S, K): cost, log-odds, gain, and action.

    Log-odds and gain are beyond what is asked for.
    """
    columns, population = problem.population.actionable_index, problem.population
    n_sets, costs, n_actionable = len(sets), [], len(columns)
    people = x.repeat_interleave(n_sets, 0)
    is_acted, to = torch.zeros_like(people, dtype=torch.bool), people.clone()
    for row, person in enumerate(people):
        i, j = divmod(row, n_sets)
        costs.append(0.0)
        for k in sets[j].nonzero().squeeze(-1).tolist():
            low, high = (bound[columns[k]] for bound in (population.low, population.high))
            is_acted[row, columns[k]] = True
            to[row, columns[k]] = value = min(max(values[i, j, k], low), high)
            far = (value - person[columns[k]]) ** 2 / (high - low)
            costs[-1] += (weights[i, k] * far / n_actionable).item()
    x_cf = problem.flow.counterfactual(people, is_acted, to)
    log_odds = problem.classifier.logit(x_cf) - margin
    gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(people) + slack
    rows = zip(costs, log_odds.tolist(), gain.tolist(), is_acted, to, strict=True)
    return {divmod(row, n_sets): action for row, action in enumerate(rows)}


def cheapest(actions, sets, i, may):
    """Return the cheapest action of person i that holds, or None."""
    holding = [
        actions[i, j]
        for j, own in enumerate(sets)
        if not (own & ~may).any() and held(actions[i, j])
    ]
    return min(holding, key=lambda action: action[0]) if holding else None


def test_without_a_walk_it_is_the_cheapest_that_holds(problem, request):
    """Of all proposals; of more careful ones for people of whom none holds."""
    x, preferences = somebody(problem, 30, seed=3)
    n_at, n_dearer = [0, 0, 0], 0
    for which, asked in product(("trained", "untrained", "wild"), ASKED.values()):
        proposer = request.getfixturevalue(which)
        margin, slack, profile = asked
        weights = profile.weight(preferences).double()
        most = proposer.settings.most_log_odds, proposer.settings.most_nats
        careful = margin + 0.3 * most[0], slack - 0.6 * most[1]
        tries = [
            actions_on_sets(problem, proposer.sets, x, weights, values, margin, slack)
            for values in (
                proposer.propose(x, weights, margin, slack),
                proposer.propose(x, weights, *careful),
            )
        ]
        found = proposer.recommend(x, preferences, profile, margin, slack, walk=None)
        cost = problem.cost_of(x, found, weights)
        for i, may in enumerate(preferences.is_actionable):
            best = [cheapest(actions, proposer.sets, i, may) for actions in tries]
            at = 0 if best[0] else 1 if best[1] else 2
            n_at[at] += 1
            assert found.has_recourse[i] == (at < 2), (asked, i)
            if at < 2:
                assert cost[i].item() == pytest.approx(best[at][0], rel=1e-9), (asked, i)
                assert torch.equal(found.is_acted[i], best[at][3]), (asked, i)
                assert torch.allclose(found.values[i], best[at][4], atol=1e-9), (asked, i)
                n_dearer += any(tries[at][i, j][0] < best[at][0] for j in range(15))
    # all three kinds of people are among them; the cheapest that is proposed may not hold
    assert min(n_at) > 3 and n_dearer > 3


@asks
@pytest.mark.parametrize("walk", [propose.WALK, Walk(1, 1, 1, 1)], ids=["far", "a step"])
@pytest.mark.parametrize("which", ["trained", "untrained"])
def test_a_walk_loses_nobody_and_nothing_gets_dearer(problem, which, walk, asked, request):
    """It is no dearer than the cheapest first proposal that holds."""
    proposer = request.getfixturevalue(which)
    margin, slack, profile = asked
    x, preferences = somebody(problem, 60, seed=4)
    weights = profile.weight(preferences).to(x)
    still, walked = (
        proposer.recommend(x, preferences, profile, margin, slack, own)
        for own in (None, walk)
    )
    has = still.has_recourse
    assert walked.has_recourse[has].all()
    values = proposer.propose(x, weights, margin, slack)
    actions = actions_on_sets(problem, proposer.sets, x, weights, values, margin, slack)
    best = [
        cheapest(actions, proposer.sets, i, may)
        for i, may in enumerate(preferences.is_actionable)
    ]
    before = torch.tensor([own[0] if own else np.inf for own in best], dtype=x.dtype)
    after = problem.cost_of(x, walked, weights)
    at_first = before.isfinite()
    assert (after[at_first] <= before[at_first] + 1e-12).all()
    assert (after[at_first] < 0.9 * before[at_first]).any()
    assert (walked.has_recourse & ~has).any() or walk.n_steps == 1


@pytest.mark.parametrize("which", ["trained", "untrained"])
def test_a_walk_that_leads_nowhere_is_no_walk(problem, which, monkeypatch, request):
    """All proposals are kept, and the more careful ones are where a walk begins."""
    proposer = request.getfixturevalue(which)
    x, preferences = somebody(problem, 40, seed=3)

    def stay(judge, start, found, n_steps):
        values = judge.allowed(start)
        found.see(values, *judge(values))

    monkeypatch.setattr(propose, "descend", stay)
    monkeypatch.setattr(propose, "scout", lambda judge, *_: judge.factual[None])
    for margin, slack, profile in ASKED.values():
        still, walked = (
            proposer.recommend(x, preferences, profile, margin, slack, walk)
            for walk in (None, Walk(1, 1, 1, 1))
        )
        same(walked, still, tolerance=1e-12)


def test_a_walk_on_all_sets_finds_what_the_table_has(problem, trained):
    """Both begin at the same proposals and take the same steps."""
    x, preferences = somebody(problem, 40, seed=6)
    weights = LINEAR.weight(preferences).to(x)
    table = trained.table(x, weights, 0.2, -0.01, n_steps=4)
    cost, _ = table.cheapest(preferences.is_actionable)
    found = trained.recommend(x, preferences, LINEAR, 0.2, -0.01, Walk(15, 4, 1, 1))
    has = cost.isfinite()
    assert has.any() and found.has_recourse[has].all()
    assert torch.allclose(problem.cost_of(x, found, weights)[has], cost[has], rtol=1e-6)


@pytest.mark.parametrize("asked", [(0.0, 0.0), (0.3, -0.02), (0.1, np.inf)])
def test_a_table_holds_what_it_says(problem, trained, asked):
    """Its cost is that of its values, which are in the range, valid and plausible."""
    margin, slack = asked
    x, preferences = somebody(problem, 20, seed=7)
    weights = LINEAR.weight(preferences).to(x)
    table = trained.table(x, weights, margin, slack, n_steps=3)
    columns, n_held = problem.population.actionable_index, 0
    nothing_done = problem.classifier.logit(x) - margin
    for j, own in enumerate(table.sets):
        has = table.cost[:, j].isfinite()
        n_held += has.sum()
        is_acted = torch.zeros_like(x, dtype=torch.bool)
        is_acted[:, columns] = own & has[:, None]
        values = torch.where(is_acted, 0.0, x)
        values[:, columns] = torch.where(own, table.values[:, j], values[:, columns])
        x_cf = problem.flow.counterfactual(x, is_acted, values)
        effort = weights * own * (x[:, columns] - table.values[:, j]) ** 2
        cost = (effort / problem.range[columns]).sum(-1) / len(columns)
        assert torch.allclose(table.cost[has, j], cost[has])
        inside = (problem.population.low <= values) & (values <= problem.population.high)
        assert inside[is_acted].all()
        log_odds = problem.classifier.logit(x_cf) - margin
        gain = problem.flow.log_prob(x_cf) - problem.flow.log_prob(x) + slack
        assert (log_odds[has] >= 0).all() and (gain[has] >= 0).all()
        # the highest that was seen; no action is plausible, too
        assert (table.log_odds[has, j] >= log_odds[has] - 1e-9).all()
        assert (table.log_odds[:, j] >= nothing_done).all()
        assert (table.gain[has, j] >= gain[has] - 1e-9).all()
    assert 0 < n_held < table.cost.numel()
    is_at_rest = torch.isclose(table.log_odds, nothing_done[:, None])
    assert is_at_rest.any() == (slack < np.inf)  # any action is plausible, or some are


def test_looked_up_in_a_table(problem, trained):
    """More open features never cost more; recommend gives what the lookup says."""
    x, preferences = somebody(problem, 20, seed=8)
    weights = LINEAR.weight(preferences).to(x)
    table = trained.table(x, weights, n_steps=3)
    may, rng = preferences.is_actionable, np.random.default_rng(0)
    cost, _ = table.cheapest(may)
    more = may | torch.from_numpy(rng.random(may.shape) < 0.4)
    assert (table.cheapest(more)[0] <= cost).all()
    assert (table.unlocked_by(may) <= cost[:, None]).all()
    found = continuous.Search(problem, problem.flow).recommend(x, preferences, table)
    check_truth(problem, x, preferences, found, 0.0, 0.0)
    has = cost.isfinite()
    assert torch.equal(found.has_recourse, has) and 0 < has.sum() < len(x)
    assert torch.allclose(problem.cost_of(x, found, weights)[has], cost[has])
    # all weights one, if none are given
    plain, ones = (trained.table(x[:4], own) for own in (None, torch.ones(4, 4).double()))
    assert torch.equal(plain.cost, ones.cost)


def same(one, other, tolerance=1e-7):
    """Assert that two recommendations agree.

    A product with another number of rows differs in its last digits,
    and descents make more of that.
    """
    assert torch.equal(one.is_acted, other.is_acted)
    assert torch.allclose(one.values, other.values, atol=tolerance)
    assert torch.allclose(one.x_cf, other.x_cf, atol=tolerance)


@walks
def test_others_do_not_matter(problem, trained, monkeypatch, walk):
    """People in another order, alone, and in parts get what they get in one batch."""
    x, preferences = somebody(problem, 23, seed=9)
    asked = {"margin": 0.2, "slack": 0.05, "profile": LINEAR}
    found = trained.recommend(x, preferences, walk=walk, **asked)
    assert 0 < found.has_recourse.sum() < len(x)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    same(trained.recommend(x[order], preferences[order], walk=walk, **asked), found[order])
    for i in range(0, len(x), 4):
        alone = trained.recommend(x[[i]], preferences[[i]], walk=walk, **asked)
        same(alone, found[[i]])
    miss, table = trained.nearest_miss(x, preferences), trained.table(x, n_steps=2)
    monkeypatch.setattr(propose, "PEOPLE_AT_ONCE", 5)
    same(trained.recommend(x, preferences, walk=walk, **asked), found)
    same(trained.nearest_miss(x, preferences), miss)
    in_parts = trained.table(x, n_steps=2)
    for name in ("cost", "values", "log_odds", "gain"):
        one, other = (getattr(part, name) for part in (table, in_parts))
        assert torch.allclose(one, other, atol=1e-7), name


def test_what_is_given_stays_as_it_is(problem, trained):
    x, preferences = somebody(problem, 10, seed=10)
    before = x.clone(), preferences.scores.clone()
    weights = {name: weight.clone() for name, weight in trained.weights.items()}
    trained.recommend(x, preferences, LINEAR)
    trained.nearest_miss(x, preferences)
    trained.table(x, n_steps=1)
    trained.select(torch.tensor([3]))
    assert torch.equal(x, before[0]) and torch.equal(preferences.scores, before[1])
    assert all(torch.equal(trained.weights[name], own) for name, own in weights.items())


def test_only_ratios_of_weights_are_proposed_for(problem, trained):
    """Scaled by a power of two to the bit, else but for rounding."""
    x, preferences = somebody(problem, 12, seed=11)
    weights = LINEAR.weight(preferences).to(x)
    values = trained.propose(x, weights, 0.3, -0.01)
    assert torch.equal(trained.propose(x, 4 * weights, 0.3, -0.01), values)
    assert torch.allclose(trained.propose(x, 0.3 * weights, 0.3, -0.01), values, atol=1e-9)
    other = weights * torch.tensor([3.0, 1.0, 1.0, 1.0], dtype=x.dtype)
    assert not torch.allclose(trained.propose(x, other, 0.3, -0.01), values, atol=1e-3)


def test_what_is_asked_for_reaches_the_network(problem, trained):
    """Nothing is proposed otherwise because nats may be given up."""
    x = problem.refused("test")[:5]
    weights = torch.ones(5, 4, dtype=x.dtype)
    plain = trained.propose(x, weights)
    assert torch.equal(trained.propose(x, weights, slack=0.7), plain)
    assert torch.equal(trained.propose(x, weights, slack=np.inf), plain)
    for asked in ({"margin": 0.5}, {"slack": -0.02}):
        assert (trained.propose(x, weights, **asked) != plain).any(), asked
    # the same people, each of whom asks for something else, as with `values`
    z, both = problem.flow.abduct(x), torch.tensor([[0.0, 0.0]] * 3 + [[0.5, 0.02]] * 2)
    mixed = trained.values(x, z, weights, both)
    asked = trained.propose(x, weights, 0.5, -0.02)
    assert torch.allclose(mixed[:3], plain[:3]) and torch.allclose(mixed[3:], asked[3:])


def test_a_very_dear_feature_is_avoided(problem, trained):
    """Where another proposal holds, nothing costlier than that is returned."""
    x, k = problem.refused("test"), 2
    scores = torch.ones(len(x), 4, dtype=torch.long)
    scores[:, k] = 4
    dear = Preferences(scores)
    profile = Profile(gamma=1.0, w_max=1e4)
    weights = profile.weight(dear).to(x)
    found = trained.recommend(x, dear, profile, walk=None)
    actions = actions_on_sets(
        problem, trained.sets, x, weights, trained.propose(x, weights), 0.0, 0.0
    )
    without = torch.tensor([j != k for j in range(4)])
    best = [cheapest(actions, trained.sets, i, without) for i in range(len(x))]
    other = torch.tensor([own is not None for own in best])
    least = torch.tensor([own[0] if own else np.inf for own in best], dtype=x.dtype)
    cost = problem.cost_of(x, found, weights)
    assert (cost[other] <= least[other] + 1e-12).all()
    column = problem.population.actionable_index[k]
    acts = found.is_acted[:, column]
    cheap = trained.recommend(x, everything(len(x)), walk=None).is_acted[:, column]
    assert other.sum() > 10 and cheap[other].any()
    assert acts[other].sum() < cheap[other].sum()


@asks
@pytest.mark.parametrize("has_rescue", [True, False], ids=["rescue", "walk only"])
def test_without_a_network_answers_hold(problem, asked, has_rescue):
    """Begun at people's own values; who has none after the walk gets scattered actions."""
    margin, slack, profile = asked
    alone, walk = WithoutNetwork(problem, sets_of(4)), Walk(4, 8, 8, 4, has_rescue)
    x, preferences = somebody(problem, 60, seed=15)
    found = alone.recommend(x, preferences, profile, margin, slack, walk)
    check_truth(problem, x, preferences, found, margin, slack)
    assert found.has_recourse.any()
    still = alone.recommend(x, preferences, profile, margin, slack, walk=None)
    assert not still.has_recourse.any() and torch.equal(still.x_cf, x)
    plain = torch.ones(len(x), 4, dtype=x.dtype)
    own = x[:, problem.population.actionable_index]
    assert torch.equal(alone.propose(x, plain), own[:, None].expand(-1, 15, -1))


def test_without_a_network_largest_sets_are_walked_first(problem, monkeypatch):
    """Of the open sets the largest; of one size, those that are listed first."""
    sets = sets_of(4)[torch.randperm(15, generator=torch.Generator().manual_seed(3))]
    alone, (x, preferences) = WithoutNetwork(problem, sets), somebody(problem, 60, seed=1)
    tried = []
    monkeypatch.setattr(propose, "descend", lambda judge, *_: tried.append(judge.acts))
    alone.recommend(x, preferences, walk=Walk(4, 1, has_rescue=False))
    expected = []
    for may in preferences.is_actionable:
        rows = [j for j, own in enumerate(sets) if not (own & ~may).any()]
        largest = sorted(rows, key=lambda j: -int(sets[j].sum()))[:4]
        expected += [sets[j] for j in sorted(largest)]
    (walked,) = tried
    assert torch.equal(walked, torch.stack(expected)) and len(walked) < 4 * len(x)


def test_without_a_network_nobody_descends_again_from_own_values(problem, monkeypatch):
    """Of people without an answer each set is tried once more, from a scattered action."""
    alone, (x, preferences) = WithoutNetwork(problem, sets_of(4)), somebody(problem, 20, 17)
    starts = []

    def descend(judge, start, *_):
        starts.append((judge.factual, start))

    monkeypatch.setattr(propose, "descend", descend)
    alone.recommend(x, preferences, walk=Walk(15, 1, 1, 1))
    (own, first), (again, second) = starts
    assert torch.equal(first, own) and len(again) == len(own)
    assert (second != again).any(-1).float().mean() > 0.9


@walks
def test_without_a_network_some_sets_may_be_selected(problem, walk):
    alone = WithoutNetwork(problem, sets_of(4))
    x, preferences = somebody(problem, 20, seed=18)
    pairs = alone.select(alone.sets.sum(-1) == 2)
    assert isinstance(pairs, WithoutNetwork) and len(pairs.sets) == 6
    found = pairs.recommend(x, preferences, walk=walk)
    assert set(found.is_acted.sum(-1).tolist()) <= {0, 2}
    assert found.has_recourse.any() == (walk is not None)


@walks
def test_to_forbid_a_feature_is_to_select_the_sets_without_it(problem, trained, walk):
    x = problem.refused("test")[:30]
    without = torch.tensor([True, False, True, True])
    some = ~(trained.sets & ~without).any(-1)
    scores = torch.where(without, 1, 5).expand(len(x), -1)
    forbidden = trained.recommend(x, Preferences(scores), walk=walk)
    for which in (some, some.nonzero().squeeze(-1)):
        selected = trained.select(which)
        assert torch.equal(selected.sets, trained.sets[some])
        same(selected.recommend(x, everything(len(x)), walk=walk), forbidden)
    assert forbidden.has_recourse.any()


def test_selected_sets(problem, trained):
    """Their values are the same; fewer sets help nobody else, and cost no less."""
    x, preferences = somebody(problem, 40, seed=12)
    weights = LINEAR.weight(preferences).to(x)
    rows = torch.tensor([14, 2, 6, 3])
    selected = trained.select(rows)
    assert torch.equal(selected.sets, trained.sets[rows])
    part = trained.propose(x, weights)[:, rows]
    assert torch.allclose(selected.propose(x, weights), part, atol=1e-12)
    again = selected.select(selected.sets.sum(-1) == 1)
    assert torch.allclose(again.propose(x, weights), part[:, [1, 3]], atol=1e-12)
    # those whom proposals helped at first; else there are more careful ones
    many, few = (
        own.recommend(x, preferences, LINEAR, walk=None) for own in (trained, selected)
    )
    assert not (few.has_recourse & ~many.has_recourse).any()
    assert few.has_recourse.sum() < many.has_recourse.sum()
    check_truth(problem, x, preferences, few, 0.0, 0.0)
    acts = few.is_acted[:, problem.population.actionable_index][few.has_recourse]
    assert (acts[:, None] == selected.sets).all(-1).any(-1).all()
    assert len(selected.table(x, n_steps=1).cost[0]) == 4


@pytest.mark.parametrize("asked", [(0.0, 0.0), (0.5, -0.02), (0.1, np.inf)])
@pytest.mark.parametrize("which", ["trained", "wild"])
def test_nearest_miss_against_loops(problem, which, asked, request):
    """Cost, and what is missing: the least of all sets that are open."""
    proposer = request.getfixturevalue(which)
    margin, slack = asked
    x, preferences = somebody(problem, 20, seed=13)
    weights = LINEAR.weight(preferences).to(x)
    values = proposer.propose(x, weights, margin, slack)
    actions = actions_on_sets(problem, proposer.sets, x, weights, values, margin, slack)
    miss = proposer.nearest_miss(x, preferences, LINEAR, margin, slack)
    aim, n_held = 2 * ROUNDING, 0
    for i, may in enumerate(preferences.is_actionable):
        losses = {
            j: actions[i, j][0]
            + 4 * sum(max(aim - beyond, 0) for beyond in actions[i, j][1:3])
            for j, own in enumerate(proposer.sets)
            if not (own & ~may).any()
        }
        j = min(losses, key=losses.get)
        assert torch.equal(miss.is_acted[i], actions[i, j][3]), i
        assert torch.allclose(miss.values[i], actions[i, j][4], atol=1e-9), i
        n_held += held(actions[i, j])
    x_cf = problem.flow.counterfactual(x, miss.is_acted, miss.values)
    assert torch.allclose(miss.x_cf, x_cf, atol=1e-12)
    assert n_held < len(x)  # most are no recourse


def test_who_may_use_none_of_the_sets_gets_nothing(problem, trained):
    """Not even what comes nearest; beside people who get something, and alone."""
    x = problem.refused("test")[:6]
    pairs = trained.select(trained.sets.sum(-1) == 2)
    scores = torch.tensor([[1, 5, 5, 5], [1, 1, 1, 1]] * 3)
    for rows in (range(6), [0, 2]):
        own, preferences = x[list(rows)], Preferences(scores[list(rows)])
        none = preferences.scores[:, 1] == 5
        for found in (
            pairs.recommend(own, preferences),
            pairs.recommend(own, preferences, walk=None),
            pairs.nearest_miss(own, preferences),
        ):
            assert not found.is_acted[none].any()
            assert torch.equal(found.values[none], own[none])
            assert torch.equal(found.x_cf[none], own[none])
    assert pairs.nearest_miss(x, Preferences(scores)).is_acted[1::2].any(-1).all()


def test_several_are_saved_as_one(problem, trained, tmp_path):
    """Each comes back under its name; one file, one population; `load` takes one only."""
    both = {"all": trained, "few": trained.select(torch.tensor([0, 9]))}
    propose.save_all(both, tmp_path, "both", {"seed": 1})
    loaded = propose.load_all(tmp_path, "both", problem)
    assert list(loaded) == ["all", "few"]
    for name, own in both.items():
        assert torch.equal(loaded[name].sets, own.sets)
        for key, weight in own.weights.items():
            assert torch.equal(loaded[name].weights[key], weight)
    with pytest.raises(
        ValueError, match=r"holds several proposers \(all, few\): use load_all"
    ):
        Proposer.load(tmp_path, "both", problem)
    with pytest.raises(ValueError, match="for one population, at least one of them"):
        propose.save_all({}, tmp_path, "none", {})


def test_saved_is_loaded(problem, trained, people, tmp_path):
    """Weights, sets and answers to the bit, and every setting."""
    unusual = Settings(
        cost=0.9,
        hinge=0.3,
        plausibility=0.7,
        feasibility=0.0,
        imitation=3.0,
        cap=2.5,
        spare_log_odds=0.25,
        spare_nats=0.0,
        most_log_odds=5.0,
        most_nats=0.125,
        n_epochs=7,
        batch_size=9,
        learning_rate=1e-3,
        hidden=32,
        n_hidden=2,
    )
    own = Proposer(problem, unusual, trained.sets, trained.weights)
    for name, one in (("all", own), ("few", own.select(torch.tensor([0, 9])))):
        path = one.save(tmp_path, name, {"seed": 1})
        assert path == tmp_path / f"{name}.safetensors"
        loaded = Proposer.load(tmp_path, name, problem)
        assert loaded.settings == unusual
        assert torch.equal(loaded.sets, one.sets)
        assert loaded.weights.keys() == one.weights.keys()
        for key, weight in one.weights.items():
            assert torch.equal(loaded.weights[key], weight), key
        before, after = one.recommend(*people), loaded.recommend(*people)
        for key, part in vars(before).items():
            assert torch.equal(part, vars(after)[key]), key
    before = (tmp_path / "all.safetensors").read_bytes()
    own.save(tmp_path, "all", {"seed": 1})
    assert (tmp_path / "all.safetensors").read_bytes() == before


def test_what_cannot_be_loaded_is_named(problem, trained, tmp_path):
    trained.save(tmp_path, "mine", {"seed": 1})
    problem.flow.save(tmp_path, "flow", {}, problem.population.fingerprint)
    with pytest.raises(ValueError, match=r"flow.safetensors holds no proposer"):
        Proposer.load(tmp_path, "flow", problem)
    with pytest.raises(ValueError, match=r"Expected a fitted model at .*nobodys"):
        Proposer.load(tmp_path, "nobodys", problem)
    others = loan.population(100, 100, 100, seed=9)
    others = replace(others, x={split: x.double() for split, x in others.x.items()})
    other = replace(problem, population=others)
    with pytest.raises(ValueError, match=r"mine.* was fitted to another population"):
        Proposer.load(tmp_path, "mine", other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hinge": -0.1}, r"hinge must not be below zero, got -0.1"),
        ({"plausibility": np.nan}, r"plausibility must not be below zero, got nan"),
        ({"feasibility": -1}, r"feasibility must not be below zero"),
        ({"imitation": -8.0}, r"imitation must not be below zero"),
        ({"spare_log_odds": -0.5}, r"spare_log_odds must not be below zero"),
        ({"spare_nats": -1e-9}, r"spare_nats must not be below zero"),
        ({"cap": 0.0}, r"cap must be above zero"),
        ({"most_log_odds": 0.0}, r"most_log_odds must be above zero"),
        ({"most_nats": -0.05}, r"most_nats must be above zero"),
        ({"learning_rate": 0.0}, r"learning_rate must be above zero"),
        ({"n_epochs": 0}, r"n_epochs must be a whole number above zero"),
        ({"batch_size": 2.5}, r"batch_size must be a whole number above zero"),
        ({"hidden": 0}, r"hidden must be a whole number above zero"),
        ({"n_hidden": True}, r"n_hidden must be a whole number above zero"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)
    nothing = dict.fromkeys(("hinge", "plausibility", "feasibility", "imitation"), 0.0)
    assert Settings(**nothing, spare_log_odds=0.0, spare_nats=0.0).hinge == 0


@pytest.mark.parametrize("name", ["n_sets", "n_steps", "n_steps_again", "n_scouts"])
@pytest.mark.parametrize("number", [0, -1, 1.5])
def test_a_walk_needs_steps(name, number):
    with pytest.raises(ValueError, match=f"{name} must be a whole number above zero"):
        Walk(**{name: number})


def test_without_a_rescue_nobody_else_is_helped(problem, untrained):
    """And who is helped by the walk itself gets the same."""
    x, preferences = somebody(problem, 60, seed=19)
    once, twice = (
        untrained.recommend(x, preferences, walk=Walk(2, 2, 6, 4, has_rescue))
        for has_rescue in (False, True)
    )
    has = once.has_recourse
    assert 0 < has.sum() < twice.has_recourse.sum()
    assert torch.equal(once.values[has], twice.values[has])


def test_bad_input_is_named(problem, trained, people):
    x, preferences = people
    answers = {
        "recommend": lambda *args, **more: trained.recommend(*args, **more),
        "nearest_miss": lambda *args, **more: trained.nearest_miss(*args, **more),
        "table": lambda x, _, **more: trained.table(x, **more),
    }
    everybody = problem.population.x["recourse/test"]
    for name, ask in answers.items():
        with pytest.raises(ValueError, match=r"last axis must hold the 7 features"):
            ask(x[:, :6], preferences)
        with pytest.raises(ValueError, match=r"x holds torch.float32"):
            ask(x.float(), preferences)
        with pytest.raises(ValueError, match=r"NaN or infinite values \(in income\)"):
            ask(torch.where(torch.arange(7) == 5, np.nan, x), preferences)
        with pytest.raises(ValueError, match=r"people are already accepted"):
            ask(everybody, everything(len(everybody)))
        with pytest.raises(ValueError, match=r"at least one of them"):
            ask(x[:0], preferences[:0])
        for asked, message in (
            ({"margin": -0.1}, r"margin is -0.1, expected log-odds, zero or more"),
            ({"margin": np.nan}, r"margin is nan"),
            ({"margin": np.inf}, r"margin is inf"),
            ({"slack": np.nan}, r"slack is nan, expected nats"),
            ({"slack": -np.inf}, r"slack is -inf, expected nats"),
        ):
            with pytest.raises(ValueError, match=message):
                ask(x, preferences, **asked)
            with pytest.raises(ValueError, match=message):
                trained.propose(x, torch.ones(len(x), 4).double(), **asked)
        if name != "table":
            with pytest.raises(ValueError, match=r"scores has shape \(3, 4\), expected"):
                ask(x, preferences[:3])
    for ask in (trained.table, trained.propose):
        with pytest.raises(ValueError, match=r"weights has shape \(3, 4\), expected"):
            ask(x, torch.ones(3, 4))
        with pytest.raises(ValueError, match=r"finite and not below zero"):
            ask(x, torch.full((len(x), 4), -1.0))
    with pytest.raises(ValueError, match=r"n_steps must be above zero"):
        trained.table(x, n_steps=0)
    with pytest.raises(ValueError, match=r"sets is empty"):
        trained.select(torch.zeros(15, dtype=torch.bool))
    for sets, message in (
        (sets_of(3), r"sets has shape \(7, 3\), expected \(7, 4\)"),
        (sets_of(4).long(), r"sets must be of bool, got torch.int64"),
    ):
        with pytest.raises(ValueError, match=message):
            Proposer(problem, SMALL, sets, trained.weights)


def test_a_classifier_without_gradient_is_refused(problem, trained):
    tree = Classifier(problem.population.features, lambda x: -(x[:, 5] < 9).double())
    stepwise = replace(problem, classifier=tree)
    with pytest.raises(ValueError, match=r"Proposing needs the gradient"):
        Proposer(stepwise, SMALL, trained.sets, trained.weights)
    with pytest.raises(ValueError, match=r"Proposing needs the gradient"):
        teaching.fit(stepwise, SMALL)
