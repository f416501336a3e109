"""The proposer: what it returns is checked by the flow and the classifier, and by loops."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from own_problem import EDGES, KINDS, past_applicants

from lib import io
from lib.beyond.propose import propose, training
from lib.beyond.propose.propose import Proposer, Settings
from lib.method import classifier, flow
from lib.method.data import Population
from lib.method.preferences import CONSTANT, LINEAR, Preferences, Profile
from lib.method.problem import ROUNDING, Problem
from lib.method.samplers import ScoreSampler

# hinge and cost weigh more than usual, so that few epochs are enough
SMALL = Settings(
    n_epochs=40, batch_size=64, width=32, n_hidden=2, learning_rate=1e-2, hinge=1.0
)
# margin, slack, and from scores to weights
DEMANDS = {
    "none": (0.0, 0.0, CONSTANT),
    "margin and gain": (0.4, -0.02, LINEAR),
    "slack": (0.1, 0.3, Profile(gamma=0.5, w_max=20.0)),
    "no plausibility": (1.0, np.inf, CONSTANT),
}
demands = pytest.mark.parametrize("demanded", DEMANDS.values(), ids=DEMANDS)
searches = pytest.mark.parametrize("n_steps", [0, 2], ids=["verified", "improved"])


@pytest.fixture(scope="module")
def trained(problem):
    return training.fit(problem, SMALL, seed=1)[0]


def random_proposer(problem, seed, scale=1.0):
    """Return a proposer whose network was never trained."""
    torch.manual_seed(seed)
    proposer = Proposer(problem, Settings(n_hidden=2, width=16)).requires_grad_(False)
    for parameter in proposer.parameters():
        parameter *= 1.7 * scale
    proposer.network[0].weight[:, -2:] *= 60  # demands shall change proposals
    return proposer


@pytest.fixture(scope="module")
def wild(problem):
    """A proposer whose values lie far outside the range."""
    return random_proposer(problem, seed=1, scale=4.0)


@pytest.fixture(scope="module")
def counted():
    """A problem with counts, of which cards can be acted on, and late is downstream."""
    frame = past_applicants(600)
    frame["late"] = np.random.default_rng(2).poisson(frame.cards)
    kinds, edges = KINDS | {"late": "mutable"}, EDGES | {"late": ["cards"]}
    population = Population.from_frame(frame, "repaid", kinds, edges)
    x = {split: x.double() for split, x in population.x.items()}
    population = replace(population, x=x)
    h, _ = classifier.fit(population, n_epochs=30)
    splits = x["flow/train"], x["flow/validation"]
    density, _ = flow.fit(population.graph, *splits, n_epochs=30, batch_size=100)
    return Problem(population, h, density)


def somebody(problem, n_people, seed, profile=LINEAR):
    """Return refused people, and preferences that were drawn feature by feature."""
    n_features = len(problem.population.actionable)
    sampler = ScoreSampler(n_features, with_impossible=True, profile=profile)
    preferences = sampler.draw(range(n_people), np.random.default_rng(seed))
    return problem.refused("test")[:n_people], preferences


def all_easy(n_people, n_features=4):
    return Preferences(torch.ones(n_people, n_features, dtype=torch.long))


def check_verified(problem, x, preferences, recommendation, margin, slack):
    """Assert what every answer must fulfil, from the flow and the classifier alone."""
    population, has = problem.population, recommendation.has_recourse
    is_acted, values = recommendation.is_acted, recommendation.values
    is_allowed = torch.zeros_like(is_acted)
    is_allowed[:, population.actionable_index] = preferences.is_actionable
    assert not (is_acted & ~is_allowed).any()
    assert torch.equal(values[~is_acted], x[~is_acted])
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    x_cf = population.round_counterfactual(x, x_cf)
    assert torch.allclose(recommendation.x_cf, x_cf, atol=1e-12)
    assert torch.equal(recommendation.x_cf[~has], x[~has])
    log_odds, gain = problem.outcome(x, x_cf)
    assert (log_odds[has] >= margin).all() and (gain[has] >= -slack).all()
    is_within = (population.low <= values) & (values <= population.high)
    assert population.discretisation is not None or is_within[is_acted].all()


@searches
@demands
@pytest.mark.parametrize("solver", ["trained", "wild"])
def test_recommendations_are_valid_and_plausible(
    problem, solver, demanded, n_steps, request
):
    margin, slack, profile = demanded
    x, preferences = somebody(problem, 40, 0, profile)
    proposer = request.getfixturevalue(solver)
    recommendation = proposer.recommend(x, preferences, margin, slack, n_steps)
    check_verified(problem, x, preferences, recommendation, margin, slack)
    if solver != "wild":
        assert recommendation.has_recourse.any()


@searches
def test_whole_numbers_are_whole(counted, n_steps):
    """Values and consequences are what people can have."""
    proposer, population = random_proposer(counted, seed=5), counted.population
    x = counted.refused("test")[:25]
    preferences = all_easy(len(x), 3)
    recommendation = proposer.recommend(x, preferences, n_steps=n_steps)
    check_verified(counted, x, preferences, recommendation, 0.0, 0.0)
    done = counted.discretise(x, recommendation)
    assert torch.equal(done.values, recommendation.values)
    is_moved = (done.x_cf != x) & population.discretisation.is_whole
    units = population.inverse_transform(done.x_cf)[is_moved]
    assert len(units) and (units - units.round()).abs().max() < 1e-9
    assert (is_moved & ~done.is_acted).any()


def cheapest_by_loop(proposer, x, preferences, margin, slack):
    """Return the cost of each person's cheapest proposal that is verified, by loops."""
    problem, weights = proposer.problem, preferences.weight.double()
    population, columns = problem.population, problem.population.actionable_index
    values = proposer.propose(x, weights, margin, slack)
    best = torch.full((len(x),), torch.inf, dtype=x.dtype)
    for i, person in enumerate(x):
        for j, mask in enumerate(proposer.sets):
            if (mask & ~preferences.is_actionable[i]).any():
                continue
            is_acted, to, cost = torch.zeros(len(person)) > 0, person.clone(), 0.0
            for k in mask.nonzero().squeeze(-1).tolist():
                low, high = population.low[columns[k]], population.high[columns[k]]
                is_acted[columns[k]] = True
                to[columns[k]] = value = values[i, j, k].clamp(low, high)
                squared = (value - person[columns[k]]) ** 2
                cost += weights[i, k] * squared / (high - low) / len(columns)
            x_cf = problem.flow.counterfactual(person[None], is_acted[None], to[None])
            log_odds, gain = problem.outcome(person[None], x_cf)
            if log_odds >= margin + ROUNDING and gain >= -slack + ROUNDING:
                best[i] = min(best[i], cost)
    return best


def test_without_local_search_it_is_the_cheapest_proposal(problem, trained):
    n_helped, proposers = 0, (trained, random_proposer(problem, 2, 0.5))
    for proposer, (margin, slack, profile) in product(proposers, DEMANDS.values()):
        x, preferences = somebody(problem, 12, 3, profile)
        weights = preferences.weight.double()
        best = cheapest_by_loop(proposer, x, preferences, margin, slack)
        recommendation = proposer.recommend(x, preferences, margin, slack, n_steps=0)
        cost, is_helped = problem.cost_of(x, recommendation, weights), best.isfinite()
        assert torch.equal(recommendation.has_recourse, is_helped)
        assert torch.allclose(cost[is_helped], best[is_helped], rtol=1e-6)
        n_helped += is_helped.sum()
    assert n_helped > 0


@demands
def test_a_local_search_loses_nobody_and_nothing_costs_more(problem, trained, demanded):
    margin, slack, profile = demanded
    x, preferences = somebody(problem, 60, 4, profile)
    verified, improved = (
        trained.recommend(x, preferences, margin, slack, n_steps) for n_steps in (0, 5)
    )
    is_helped = verified.has_recourse
    assert improved.has_recourse[is_helped].all()
    before, cost = (
        problem.cost_of(x, answer, preferences.weight)[is_helped]
        for answer in (verified, improved)
    )
    assert (cost <= before).all() and cost.mean() < 0.95 * before.mean()


@searches
def test_neither_order_nor_batches_matter(problem, trained, monkeypatch, n_steps):
    x, preferences = somebody(problem, 23, seed=9)
    demanded = (0.2, 0.05, n_steps)
    together = trained.recommend(x, preferences, *demanded)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    shuffled = trained.recommend(x[order], preferences[order], *demanded)
    monkeypatch.setattr(propose, "PEOPLE_BATCH_SIZE", 5)
    batched = trained.recommend(x, preferences, *demanded)
    for one, other in ((shuffled, together[order]), (batched, together)):
        assert torch.equal(one.is_acted, other.is_acted)
        assert torch.allclose(one.x_cf, other.x_cf, atol=1e-7)


def test_the_network_is_conditioned_on_what_is_demanded(problem, trained):
    """A larger margin changes proposals; a slack, that nats may be given up, does not."""
    x = problem.refused("test")[:5]
    weights = torch.ones(5, 4, dtype=x.dtype)
    plain = trained.propose(x, weights)
    assert torch.equal(trained.propose(x, weights, slack=np.inf), plain)
    for demanded in ({"margin": 0.5}, {"slack": -0.02}):
        assert (trained.propose(x, weights, **demanded) != plain).any()


def test_saved_is_loaded(problem, trained, people, tmp_path):
    trained.save(tmp_path, "one", {"seed": 1})
    one = Proposer.load(tmp_path, "one", problem)
    assert one.settings == SMALL
    before = trained.recommend(*people)
    assert torch.equal(one.recommend(*people).values, before.values)


def test_what_cannot_be_loaded_is_named(problem, tmp_path):
    problem.flow.save(tmp_path, "flow", {}, problem.population.fingerprint)
    with pytest.raises(ValueError, match=r"flow.safetensors holds no proposer"):
        Proposer.load(tmp_path, "flow", problem)
    with pytest.raises(ValueError, match=r"was fitted to another population"):
        Proposer.load(io.MODELS, "loan_propose", problem)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hinge": -0.1}, "hinge must be zero or above, and finite, got -0.1"),
        ({"max_margin": 0.0}, "max_margin must be above zero"),
        ({"width": 2.5}, "width must be a whole number above zero"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


def test_bad_input_is_named(problem, trained, people):
    for bounds, message in (
        ({"slack": -np.inf}, "slack is -inf, expected nats"),
        ({"n_steps": -1}, "n_steps must be a whole number above zero"),
    ):
        with pytest.raises(ValueError, match=message):
            trained.recommend(*people, **bounds)
    everybody = problem.population.x["recourse/test"]
    with pytest.raises(ValueError, match="people are already accepted"):
        trained.recommend(everybody, all_easy(len(everybody)))
    with pytest.raises(ValueError, match=r"weights has shape \(3, 4\), expected"):
        trained.propose(people[0], torch.ones(3, 4))
