"""The loss against numpy and finite differences, lessons against the problem itself."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from lib.beyond.propose import teaching
from lib.beyond.propose.propose import TERMS, Proposer, Settings
from lib.beyond.propose.teaching import Lessons
from lib.method import classifier, flow
from lib.method.frames import Nearest
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem
from lib.method.scm import SCM, additive
from lib.search import continuous
from lib.search.sets import Table, sets_of

SMALL = Settings(
    n_epochs=30, batch_size=32, hidden=16, n_hidden=2, learning_rate=1e-2, most_nats=0.03
)


@pytest.fixture(scope="module")
def lessons(problem):
    return teaching.searched(
        problem, n_people=42, most=(0.8, 0.05), n_scouts=16, n_starts=1
    )


@pytest.fixture(scope="module")
def taught(problem, lessons):
    return teaching.fit(problem, SMALL, seed=1, lessons=lessons)


@pytest.fixture(scope="module")
def in_whole_numbers(problem):
    """The problem for people whose features are whole numbers, but for education."""
    population = problem.population
    seen = population.in_units(population.x["recourse/train"]).numpy().round()
    is_whole = np.array([name != "education" for name in population.features])
    return replace(
        problem, population=replace(population, whole=Nearest.of(seen, is_whole))
    )


@pytest.fixture(scope="module")
def with_eight():
    """A small problem with eight features that can be acted on, and one that can't."""
    noise = stats.norm(0, 1)
    equations = {"root": additive((), lambda pa: 0.0, noise)}
    for k in range(8):
        equations[f"x{k}"] = additive(("root",), lambda pa: 0.5 * pa["root"], noise)
    kinds = {name: "actionable" if name != "root" else "immutable" for name in equations}
    drawn = Population.from_scm(
        SCM(equations),
        kinds,
        label=lambda x: x[:, 1:] @ torch.arange(1.0, 9.0).double() > 0,
        n_classifier=500,
        n_flow=500,
        n_recourse=200,
    )
    drawn = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    h, _ = classifier.fit(drawn, n_epochs=10)
    for_flow = drawn.x["flow/train"], drawn.x["flow/validation"]
    density, _ = flow.fit(drawn.graph, *for_flow, n_epochs=5)
    return Problem(drawn, h, density)


def drawn_lessons(n_people, n_features, seed):
    """Return lessons with random costs; a third of the sets do not help."""
    rng, sets = np.random.default_rng(seed), sets_of(n_features)
    shape = (n_people, len(sets))
    cost = np.where(rng.random(shape) < 1 / 3, np.inf, rng.random(shape))
    cost[:, 0] = np.inf  # the first set helps nobody
    return Lessons(
        sets,
        torch.arange(n_people),
        torch.from_numpy(rng.uniform(0.5, 2, (n_people, n_features))),
        torch.from_numpy(rng.random((n_people, 2))),
        torch.from_numpy(cost),
        torch.from_numpy(rng.normal(size=(*shape, n_features))),
    )


def numpy_values(proposer, x, z, weights, asked):
    """Return what the network proposes, by numpy, (N, S, K)."""
    s = proposer.settings
    w = {name: value.detach().numpy() for name, value in proposer.weights.items()}
    ratio = weights / weights.mean(-1, keepdims=True)
    most = np.array([s.most_log_odds, s.most_nats], dtype=np.float32)
    out = np.concatenate([z, x, np.log(ratio), asked / most], -1)
    for i in range(s.n_hidden + 1):
        out = (np.maximum(out, 0) if i else out) @ w[f"weight_{i}"] + w[f"bias_{i}"]
    columns = proposer.problem.population.actionable_index
    return x[:, None, columns] + out.reshape(len(x), *proposer.sets.shape)


def numpy_terms(proposer, x, weights, asked):
    """Return the terms of the loss, a mean over people and sets, in numpy."""
    problem, s, sets = proposer.problem, proposer.settings, proposer.sets.numpy()
    population = problem.population
    columns = population.actionable_index
    z = problem.flow.abduct(x)
    a = numpy_values(proposer, *(part.numpy() for part in (x, z, weights, asked)))
    low, high = population.low.numpy(), population.high.numpy()
    kinds = population.kinds.values()
    may_move = [j for j, kind in enumerate(kinds) if kind != "immutable"]
    found = {name: [] for name in ("cost", "hinge", "plausibility", "feasibility")}
    for j, own in enumerate(sets):
        is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
        for k, column in enumerate(columns):
            if own[k]:
                is_acted[:, column] = True
                values[:, column] = torch.from_numpy(a[:, j, k])
        x_cf = problem.flow.counterfactual(x, is_acted, values)
        gain = (problem.flow.log_prob(x_cf) - problem.flow.log_prob(x)).numpy()
        probability = problem.classifier.probability(population.possible(x_cf)).numpy()
        log_odds = np.log(probability / (1 - probability))
        for name, lacks in (
            ("hinge", asked[:, 0].numpy() + s.spare_log_odds - log_odds),
            ("plausibility", asked[:, 1].numpy() + s.spare_nats - gain),
        ):
            lacks = np.maximum(lacks, 0)
            found[name].append(s.cap * lacks / (s.cap + lacks))
        over = np.maximum(x_cf.numpy() - high, 0) + np.maximum(low - x_cf.numpy(), 0)
        found["feasibility"].append((over / (high - low))[:, may_move].sum(-1))
        effort = (x.numpy()[:, columns] - a[:, j]) ** 2 / (high - low)[columns]
        found["cost"].append((weights.numpy() * own * effort).sum(-1) / len(columns))
    return {name: np.mean(parts) for name, parts in found.items()}


def wild(proposer, problem, seed=3):
    """Return the proposer with weights that lead far away, so that all terms count."""
    rng = np.random.default_rng(seed)
    weights = {
        name: (weight + torch.from_numpy(rng.normal(0, 0.25, weight.shape)))
        for name, weight in proposer.weights.items()
    }
    return Proposer(problem, proposer.settings, proposer.sets, weights)


def epoch_of(x, n_features, settings, seed=4):
    return teaching._Epoch.drawn(x, n_features, settings, np.random.default_rng(seed))


@pytest.mark.parametrize("which", ["problem", "in_whole_numbers"])
def test_loss_term_by_term(taught, which, request):
    """The classifier is shown what people can have."""
    own = request.getfixturevalue(which)
    proposer, x = wild(taught[0], own), own.refused("train")[:25]
    factual = own.flow.factual(x, proposer.columns)
    people, batch = epoch_of(x, 4, SMALL), slice(5, 20)
    terms = teaching._terms(proposer, factual, people, batch)
    expected = numpy_terms(
        proposer, x[people.order[batch]], people.weights[batch], people.asked[batch]
    )
    assert terms.keys() == expected.keys()
    for name, value in expected.items():
        assert value > 0, name
        assert terms[name].item() == pytest.approx(value, rel=1e-6), name


def test_imitation_against_numpy(problem, taught, lessons):
    """Squared distances to what was found, over ranges; nothing where nothing was."""
    proposer, x = taught[0], problem.refused("train")
    factual = problem.flow.factual(x, proposer.columns)
    rows = torch.tensor([3, 30, 11])
    term = teaching._imitation(proposer, factual, lessons, rows)
    own = lessons[rows]
    at = x[own.people]
    a = numpy_values(
        proposer,
        *(part.numpy() for part in (at, problem.flow.abduct(at), own.weights, own.asked)),
    )
    reach, total = problem.range[proposer.columns].numpy(), 0.0
    for i, j in product(range(3), range(15)):
        if own.cost[i, j].isfinite():
            far = (a[i, j] - own.values[i, j].numpy()) ** 2 / reach
            total += far[proposer.sets[j].numpy()].sum() / 4
    assert not own.cost.isfinite().all()
    assert term.item() == pytest.approx(total / 45, rel=1e-9)


def test_gradients_against_finite_differences(problem, taught, lessons):
    """Of each term, along a random direction in the space of all weights."""
    start = wild(taught[0], problem)
    x = problem.refused("train")
    factual = problem.flow.factual(x, start.columns)
    people, rng = epoch_of(x, 4, SMALL), np.random.default_rng(0)
    away = {k: torch.from_numpy(rng.normal(size=w.shape)) for k, w in start.weights.items()}

    def terms_at(step, requires_grad=False):
        weights = {
            name: (weight + step * away[name]).requires_grad_(requires_grad)
            for name, weight in start.weights.items()
        }
        moved = Proposer(problem, start.settings, start.sets, weights)
        terms = teaching._terms(moved, factual, people, slice(0, 20))
        rows = torch.arange(10)
        terms["imitation"] = teaching._imitation(moved, factual, lessons, rows)
        return terms, weights

    step = 1e-6
    terms, weights = terms_at(0.0, requires_grad=True)
    assert tuple(terms) == TERMS
    above, below = (terms_at(sign * step)[0] for sign in (1, -1))
    for name, term in terms.items():
        slopes = torch.autograd.grad(term, list(weights.values()), retain_graph=True)
        along = zip(slopes, (away[key] for key in weights), strict=True)
        slope = sum((own * part).sum() for own, part in along).item()
        expected = (above[name] - below[name]).item() / (2 * step)
        assert abs(slope) > 1e-3, name
        assert slope == pytest.approx(expected, rel=1e-5), name


def test_the_first_epoch_reports_the_loss_of_the_first_weights(problem):
    """With steps that lead nowhere it is the mean over all whole batches of people."""
    still = replace(SMALL, n_epochs=1, batch_size=60, learning_rate=1e-12)
    proposer, history = teaching.fit(problem, still, seed=2)
    x, rng = problem.refused("train"), np.random.default_rng(2)
    for weight in proposer.weights.values():
        rng.random(weight.shape)
    people = teaching._Epoch.drawn(x, 4, still, rng)
    own = slice(len(x) // 60 * 60)
    assert 60 < own.stop < len(x)
    expected = numpy_terms(
        proposer, x[people.order[own]], people.weights[own], people.asked[own]
    )
    for name, value in expected.items():
        assert history[name][0] == pytest.approx(value, rel=1e-6), name
    assert history["imitation"][0] == 0


def test_steps_get_shorter_along_a_cosine(problem, monkeypatch):
    rates = []

    class Watched(teaching.Adam):
        def step(self, gradients):
            rates.append(self.learning_rate)
            super().step(gradients)

    monkeypatch.setattr(teaching, "Adam", Watched)
    teaching.fit(problem, replace(SMALL, n_epochs=4, batch_size=10_000))
    cosine = [0.5 * 1e-2 * (1 + math.cos(math.pi * epoch / 4)) for epoch in range(4)]
    assert rates == pytest.approx(cosine)


def test_first_proposals_are_near_the_factual_values(problem):
    """Weights are uniform within one over the root of the fan-in, the last ones smaller."""
    still = replace(SMALL, n_epochs=1, learning_rate=1e-12, hidden=32)
    proposer, _ = teaching.fit(problem, still, seed=2)
    fan_in = {0: 7 + 7 + 4 + 2, 1: 32, 2: 32}
    for i, share in ((0, 1.0), (1, 1.0), (2, 0.3)):
        most = share / math.sqrt(fan_in[i])
        weight = proposer.weights[f"weight_{i}"]
        assert weight.shape == (fan_in[i], {0: 32, 1: 32, 2: 60}[i])
        assert 0.95 * most < weight.abs().max() < most + 1e-9
        assert proposer.weights[f"bias_{i}"].abs().max() < most + 1e-9
    x = problem.refused("train")
    far = proposer.propose(x, torch.ones(len(x), 4).double()) - x[:, None, 3:]
    assert 0 < far.abs().max() < 1


def test_training_lowers_the_loss(problem, taught, lessons):
    history = taught[1]
    assert tuple(history) == TERMS
    for name, values in history.items():
        assert values.shape == (SMALL.n_epochs,) and np.isfinite(values).all(), name
        assert (values >= 0).all() and values.max() > 0, name
    assert history["hinge"][-1] < 0.95 * history["hinge"][0]
    assert history["imitation"][-3:].mean() < 0.5 * history["imitation"][:3].mean()
    _, alone = teaching.fit(problem, replace(SMALL, n_epochs=2), seed=1)
    assert not alone["imitation"].any()
    # what is imitated is what was searched: nobody comes as near to it without lessons
    unheard = replace(SMALL, imitation=0.0)
    _, heedless = teaching.fit(problem, unheard, seed=1, lessons=lessons)
    assert heedless["imitation"][-1] > 1.5 * history["imitation"][-1]


def test_same_seed_same_bits(problem, taught, lessons):
    again, history = teaching.fit(problem, SMALL, seed=1, lessons=lessons)
    other, _ = teaching.fit(problem, SMALL, seed=2, lessons=lessons)
    for name, weight in taught[0].weights.items():
        assert torch.equal(again.weights[name], weight), name
        assert not torch.equal(other.weights[name], weight), name
        assert not weight.requires_grad, name
    assert all((history[name] == taught[1][name]).all() for name in TERMS)


def test_fitting_leaves_its_lessons_and_people_as_they_are(problem, lessons):
    before = {name: part.clone() for name, part in vars(lessons).items()}
    people, epochs = problem.population.x["recourse/train"].clone(), []
    brief = replace(SMALL, n_epochs=3)

    def progress(these):
        epochs.extend(these)
        return these

    teaching.fit(problem, brief, lessons=lessons, progress=progress)
    assert all(torch.equal(vars(lessons)[name], part) for name, part in before.items())
    assert torch.equal(problem.population.x["recourse/train"], people)
    assert epochs == [0, 1, 2]


def test_all_lessons_have_their_turn(problem, monkeypatch):
    """More lessons than an epoch has room for: each epoch takes others, none twice."""
    many = drawn_lessons(400, 4, seed=0)
    many = replace(many, people=torch.arange(400) % len(problem.refused("train")))
    seen, imitation = [], teaching._imitation

    def watched(proposer, factual, lessons, rows):
        seen.append(lessons.weights[rows, 0])
        return imitation(proposer, factual, lessons, rows)

    monkeypatch.setattr(teaching, "_imitation", watched)
    teaching.fit(problem, replace(SMALL, n_epochs=12), lessons=many)
    epochs = [torch.cat(seen[i : i + 6]) for i in range(0, len(seen), 6)]
    assert len(epochs) == 12 and torch.equal(epochs[0], many.weights[:192, 0])
    assert all(len(own.unique()) == 192 for own in epochs)
    assert len(torch.cat(epochs).unique()) > 390


def test_a_larger_margin_is_proposed_for(problem):
    """Who asks for more log-odds is proposed costlier values, which give more of them."""
    hard = replace(
        SMALL, hinge=3.0, plausibility=0.0, most_log_odds=2.0, spare_log_odds=0.1
    )
    proposer, _ = teaching.fit(problem, hard, seed=0)
    x, sets = problem.refused("test"), proposer.sets
    weights, costs, log_odds = torch.ones(len(x), 4, dtype=x.dtype), [], []
    for margin in (0.0, 0.7, 1.4):
        a = proposer.propose(x, weights, margin)
        on_sets = x[:, None].expand(-1, len(sets), -1)
        acts = torch.zeros_like(on_sets, dtype=torch.bool)
        acts[..., proposer.columns] = sets
        values = on_sets.clone()
        values[..., proposer.columns] = a
        x_cf = problem.flow.counterfactual(on_sets, acts, values)
        own = problem.action_cost(on_sets[..., proposer.columns], sets, a)
        costs.append(own.mean().item())
        log_odds.append(problem.classifier.logit(x_cf).mean().item())
    assert costs[0] < costs[1] < costs[2] and log_odds[0] < log_odds[1] < log_odds[2]


def test_who_asks_for_what_in_training(problem):
    """Three in ten ask for nothing; the others for anything up to the most."""
    x = problem.refused("train")[:1].expand(4_000, -1)
    settings = replace(SMALL, most_log_odds=3.0, most_nats=0.2)
    one = epoch_of(x, 4, settings)
    assert sorted(one.order.tolist()) == list(range(4_000))
    nothing = (one.asked == 0).all(-1)
    assert abs(nothing.double().mean() - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 4_000)
    assert (one.asked[~nothing] > 0).all()
    for part, most in zip(one.asked[~nothing].T, (3.0, 0.2), strict=True):
        assert stats.kstest(part.numpy() / most, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(one.asked[~nothing].T)[0, 1]) < 0.08
    assert one.weights.shape == (4_000, 4) and one.weights.dtype == x.dtype


def test_drawn_weights():
    """Half of the people weigh all features alike; the others' weights are log-uniform."""
    n_people = 4_000
    drawn = teaching.drawn_weights(n_people, 3, np.random.default_rng(0))
    plain = (drawn == 1).all(-1)
    assert abs(plain.double().mean() - 0.5) < 4 * math.sqrt(0.25 / n_people)
    others = drawn[~plain].log().numpy()
    assert (others != 0).all() and np.abs(others).max() <= 1.2
    for part in others.T:
        assert stats.kstest(part, "uniform", args=(-1.2, 2.4)).pvalue > 1e-3
    assert np.abs(np.corrcoef(others.T)[np.triu_indices(3, 1)]).max() < 0.08
    again = teaching.drawn_weights(n_people, 3, np.random.default_rng(0))
    assert torch.equal(again, drawn)


def test_what_was_searched_holds(problem, lessons):
    """Each answer reaches the margin and the gain that were asked for, at its cost."""
    x, columns = problem.refused("train"), problem.population.actionable_index
    assert len(lessons) == len(lessons.people.unique()) == 42
    assert torch.equal(lessons.sets, sets_of(4))
    people = x[lessons.people]
    before, n_held = problem.flow.log_prob(people), 0
    for j, own in enumerate(lessons.sets):
        has = lessons.cost[:, j].isfinite()
        n_held += has.sum()
        is_acted = torch.zeros_like(people, dtype=torch.bool)
        is_acted[:, columns] = own
        values = people.clone()
        values[:, columns] = lessons.values[:, j]
        x_cf = problem.flow.counterfactual(people, is_acted, values)
        log_odds = problem.classifier.logit(x_cf)
        gain = problem.flow.log_prob(x_cf) - before
        assert (log_odds >= lessons.asked[:, 0])[has].all()
        assert (gain >= lessons.asked[:, 1])[has].all()
        effort = own * (people - values)[:, columns] ** 2 / problem.range[columns]
        cost = (lessons.weights * effort).sum(-1) / 4
        assert torch.allclose(lessons.cost[has, j], cost[has])
        within = (problem.population.low <= values) & (values <= problem.population.high)
        assert within[is_acted & has[:, None]].all()
    assert 0 < n_held < lessons.cost.numel()


@pytest.fixture
def asked_for(monkeypatch):
    """Replace the search by one that only remembers what it was asked for."""
    seen = []

    def table(search, x, weights):
        seen.append((x, weights, search.slack, search.margin, search.seed, search))
        cost = torch.full((len(x), 15), float(search.seed), dtype=x.dtype)
        columns = search.problem.population.actionable_index
        values = x[:, None, columns].expand(-1, 15, -1)
        return Table(sets_of(4), cost, values, cost, cost)

    monkeypatch.setattr(continuous.Search, "table", table)
    return seen


def test_who_is_searched_for_what(problem, lessons, asked_for):
    """Of 42 people 22 ask for nothing more, 10 for a bit, and 10 for more."""
    asked, times = lessons.asked.unique(dim=0, return_counts=True)
    wanted = torch.tensor([[0.0, 0.0], [0.24, 0.01], [0.48, 0.02]])
    assert torch.allclose(asked, wanted) and times.tolist() == [22, 10, 10]
    # they are different people with weights of their own
    assert (lessons.weights == 1).all(-1).any() and (lessons.weights != 1).any()
    again, other = (teaching.searched(problem, 9, seed=seed) for seed in (0, 1))
    first = (lessons.people[:, None] == again.people).any(-1)
    assert first.sum() == 9  # more people begin with the same ones
    assert set(again.people.tolist()) != set(other.people.tolist())
    groups = []
    few = teaching.searched(problem, 2, progress=lambda i: groups.extend(i) or i)
    assert groups == [0, 1, 2, 3] and len(few) == 2


def test_everybody_is_searched_if_nobody_says_how_many(problem, asked_for):
    """Each once, at the slack and margin that lessons remember, with own weights."""
    found = teaching.searched(problem, n_scouts=7, n_starts=3, n_threads=2, seed=20)
    x = problem.refused("train")
    assert sorted(found.people.tolist()) == list(range(len(x)))
    for i, (people, weights, slack, margin, seed, search) in enumerate(asked_for):
        own = slice(i, None, 4)  # any few that come together are of all four groups
        assert torch.equal(people, x[found.people[own]])
        assert torch.equal(weights, found.weights[own])
        assert torch.equal(found.values[own][:, 0], people[:, 3:])
        assert (found.cost[own] == seed).all()
        asked = torch.tensor([margin, -slack]).expand(len(people), -1)
        assert torch.equal(found.asked[own], asked)
        assert (search.n_scouts, search.n_starts, search.n_threads) == (7, 3, 2)
    assert [asked[2:5] for asked in asked_for] == [
        (0.0, 0.0, 20),
        (0.0, 0.0, 21),
        (pytest.approx(-0.01), pytest.approx(2.4), 22),
        (pytest.approx(-0.02), pytest.approx(4.8), 23),
    ]


def test_some_of_the_lessons(lessons):
    names = ("people", "weights", "asked", "cost", "values")
    mask = torch.arange(len(lessons)) % 3 == 0
    for rows, n_rows in ((slice(5, 9), 4), (torch.tensor([7, 7, 0]), 3), (mask, 14)):
        some = lessons[rows]
        assert len(some) == n_rows and some.sets is lessons.sets
        for name in names:
            assert torch.equal(getattr(some, name), getattr(lessons, name)[rows]), name


def test_lessons_on_other_sets():
    """In another order each set keeps its own answers; a set that is missing is named."""
    given = drawn_lessons(5, 3, seed=0)
    rows = [4, 0, 6, 2]
    reordered = given.on(given.sets[rows])
    assert torch.equal(reordered.sets, given.sets[rows])
    assert torch.equal(reordered.cost, given.cost[:, rows])
    assert torch.equal(reordered.values, given.values[:, rows])
    for name in ("people", "weights", "asked"):
        assert torch.equal(getattr(reordered, name), getattr(given, name)), name
    back = reordered.on(given.sets[[2, 4]])
    assert torch.equal(back.cost, given.cost[:, [2, 4]])
    with pytest.raises(ValueError, match=r"no lessons on the set .* \[1\]: search"):
        reordered.on(given.sets[[0, 1]])
    with pytest.raises(ValueError, match=r"sets has shape \(15, 4\), expected \(15, 3\)"):
        given.on(sets_of(4))


@pytest.mark.parametrize(("n_features", "n_sets"), [(3, 3), (4, 6), (8, 20)])
def test_the_likeliest_sets_against_brute_force(n_features, n_sets):
    """Everybody's cheapest set under every mask is counted."""
    lessons = drawn_lessons(4, n_features, seed=n_features)
    sets = [frozenset(own.nonzero().squeeze(-1).tolist()) for own in lessons.sets]
    times = dict.fromkeys(range(len(sets)), 0)
    for bits in range(1, 2**n_features):
        may = {k for k in range(n_features) if bits >> k & 1}
        is_open = [j for j, own in enumerate(sets) if own <= may]
        for cost in lessons.cost.tolist():
            best = min(is_open, key=lambda j, cost=cost: cost[j])
            times[best] += cost[best] < np.inf
    wanted = sorted(sorted(times, key=lambda j: (-times[j], j))[:n_sets])
    assert torch.equal(lessons.likeliest(n_sets), lessons.sets[wanted])
    assert len(set(times.values())) > 2
    with pytest.raises(ValueError, match=r"n_sets must be a whole number above zero"):
        lessons.likeliest(0)


def test_eight_features_and_some_of_their_sets(with_eight):
    """Searched on all 255 sets; trained, asked and answered on twenty of them."""
    found = teaching.searched(with_eight, 6, most=(0.5, 0.02), n_scouts=4, n_starts=1)
    assert found.cost.shape == (6, 255) and found.values.shape == (6, 255, 8)
    assert torch.equal(found.likeliest(255), found.sets)
    sets = found.likeliest(20)
    brief = replace(SMALL, n_epochs=4)
    proposer, history = teaching.fit(with_eight, brief, lessons=found, sets=sets)
    assert torch.equal(proposer.sets, sets) and history["imitation"].all()
    columns = with_eight.population.actionable_index
    x, rng = with_eight.refused("test")[:30], np.random.default_rng(0)
    preferences = Preferences(torch.from_numpy(rng.integers(1, 9, (len(x), 8))))
    answer = proposer.recommend(x, preferences)
    has = answer.has_recourse
    acts = answer.is_acted[:, columns]
    assert has.any() and (acts[has][:, None] == sets).all(-1).any(-1).all()
    assert with_eight.accepts(answer.x_cf)[has].all()
    gain = with_eight.flow.log_prob(answer.x_cf) - with_eight.flow.log_prob(x)
    assert (gain[has] >= 0).all()
    assert proposer.table(x[:3], n_steps=1).cost.shape == (3, 20)
    miss = proposer.nearest_miss(x, preferences)
    assert (miss.is_acted[:, columns][:, None] == sets).all(-1).any(-1).all()
    everything, _ = teaching.fit(with_eight, replace(brief, n_epochs=1))
    assert everything.propose(x, torch.ones(len(x), 8).double()).shape == (len(x), 255, 8)


def test_bad_input_is_named(problem, lessons):
    brief = replace(SMALL, n_epochs=2)
    with pytest.raises(ValueError, match=r"no lessons on the set .* \[0, 1\]: search"):
        teaching.fit(problem, brief, lessons=lessons.on(sets_of(4)[:4]))
    with pytest.raises(ValueError, match=r"lessons is empty"):
        teaching.fit(problem, brief, lessons=lessons[:0])
    for sets, message in (
        (sets_of(3), r"sets has shape \(7, 3\), expected \(7, 4\)"),
        (sets_of(4).double(), r"sets must be of bool, got torch.float64"),
        (sets_of(4)[:0], r"sets is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            teaching.fit(problem, brief, sets=sets)
    for n_people in (0, -3, 2.5):
        with pytest.raises(ValueError, match=r"n_people must be a whole number above zero"):
            teaching.searched(problem, n_people=n_people)
    for given, message in (
        ({"n_scouts": 0}, r"n_scouts must be above zero"),
        ({"n_starts": 0}, r"n_starts must be above zero"),
        ({"n_threads": 0}, r"n_threads must be above zero"),
        ({"most": (-8.0, 0.05)}, r"margin is -2.4, expected log-odds"),
    ):
        with pytest.raises(ValueError, match=message):
            teaching.searched(problem, **({"n_people": 4, "n_scouts": 2} | given))


def test_nobody_to_train_on(problem):
    population = problem.population
    x = population.x["recourse/train"]
    accepted = x[problem.accepts(x)]
    parts = {"recourse/train": accepted}, {"recourse/train": torch.ones(len(accepted)) > 0}
    only = replace(population, x=population.x | parts[0], y=population.y | parts[1])
    with pytest.raises(ValueError, match=r'problem.refused\("train"\) is empty'):
        teaching.fit(replace(problem, population=only), SMALL)


@pytest.mark.filterwarnings("ignore:.*encountered in matmul")
def test_a_fit_that_diverges_is_named(problem):
    with pytest.raises(ValueError, match=r"fit of the proposer diverged"):
        teaching.fit(problem, replace(SMALL, n_epochs=3, learning_rate=1e200))
