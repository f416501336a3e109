"""The proposer's loss against numpy and finite differences, targets against the problem."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from lib.beyond.propose import training
from lib.beyond.propose.propose import TERMS, Proposer, Settings
from lib.method.data import Discretisation
from lib.search.sets import sets_of

SMALL = Settings(
    n_epochs=30, batch_size=32, width=16, n_hidden=2, learning_rate=1e-2, max_gain=0.03
)


@pytest.fixture(scope="module")
def targets(problem):
    return training.search_targets(
        problem, n_people=42, max_margin=0.8, n_samples=16, n_starts=1
    )


@pytest.fixture(scope="module")
def fitted(problem, targets):
    return training.fit(problem, SMALL, seed=1, targets=targets)


@pytest.fixture
def wild(problem, fitted):
    """A proposer with weights that lead far away, so that all terms count."""
    proposer, rng = Proposer(problem, SMALL).requires_grad_(False), np.random.default_rng(3)
    proposer.load_state_dict(fitted[0].state_dict())
    for parameter in proposer.parameters():
        parameter += torch.from_numpy(rng.normal(0, 0.25, parameter.shape))
    return proposer


def drawn(proposer, n_people):
    return training._draw_demands(proposer, n_people, np.random.default_rng(4))


def numpy_values(proposer, x, z, weights, demands):
    """Return what the network proposes, by numpy, (N, S, K)."""
    settings, layers = proposer.settings, proposer.network[::2]
    ratio = weights / weights.mean(-1, keepdims=True)
    largest = np.array([settings.max_margin, settings.max_gain], dtype=np.float32)
    h = np.concatenate([z, x, np.log(ratio), demands / largest], -1)
    for i, layer in enumerate(layers):
        h = np.maximum(h, 0) if i else h
        h = h @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    return x[:, None, proposer.columns] + h.reshape(len(x), *proposer.sets.shape)


def numpy_terms(proposer, problem, x, weights, demands):
    """Return the terms of the loss, a mean over people and sets, in numpy."""
    settings, population = proposer.settings, problem.population
    columns = population.actionable_index
    z = problem.flow.abduct(x)
    a = numpy_values(proposer, *(t.numpy() for t in (x, z, weights, demands)))
    low, high = population.low.numpy(), population.high.numpy()
    kinds = population.kinds.values()
    mutable = [j for j, kind in enumerate(kinds) if kind != "immutable"]
    terms = {name: [] for name in TERMS[:4]}
    for j, mask in enumerate(proposer.sets.numpy()):
        is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
        is_acted[:, columns] = torch.from_numpy(mask)
        values[:, columns] = torch.from_numpy(np.where(mask, a[:, j], x[:, columns]))
        x_cf = problem.flow.counterfactual(x, is_acted, values)
        log_odds, gain = (t.numpy() for t in problem.outcome(x, x_cf))
        for name, lacking in (
            ("hinge", demands[:, 0].numpy() + settings.extra_margin - log_odds),
            ("plausibility", demands[:, 1].numpy() + settings.extra_gain - gain),
        ):
            lacking = np.maximum(lacking, 0)
            saturation = settings.saturation
            terms[name].append(saturation * lacking / (saturation + lacking))
        outside = np.maximum(x_cf.numpy() - high, 0) + np.maximum(low - x_cf.numpy(), 0)
        terms["feasibility"].append((outside / (high - low))[:, mutable].sum(-1))
        effort = (x.numpy()[:, columns] - a[:, j]) ** 2 / (high - low)[columns]
        terms["cost"].append((weights.numpy() * mask * effort).sum(-1) / len(columns))
    return {name: np.mean(values) for name, values in terms.items()}


@pytest.mark.parametrize("is_whole", [False, True])
def test_loss_term_by_term(problem, wild, is_whole):
    """The classifier is asked about what people can have."""
    if is_whole:
        population = problem.population
        seen = population.inverse_transform(population.x["recourse/train"]).numpy()
        whole = np.array([name != "education" for name in population.features])
        discretisation = Discretisation.of(seen.round(), whole)
        population = replace(population, discretisation=discretisation)
        wild.problem = problem = replace(problem, population=population)
    x = problem.refused("train")[:15]
    weights, demands = drawn(wild, len(x))
    terms = training.loss_terms(wild, problem.flow.factual(x), weights, demands)
    for name, value in numpy_terms(wild, problem, x, weights, demands).items():
        assert value > 0 and terms[name].item() == pytest.approx(value, rel=1e-6), name


def test_imitation_against_numpy(problem, wild, targets):
    """Squared distances to the targets, over ranges; nothing where there is none."""
    x = problem.refused("train")
    some = targets[torch.tensor([3, 30, 11])]
    term = training.imitation(wild, problem.flow.factual(x), some)
    people = x[some.people]
    inputs = (people, problem.flow.abduct(people), some.weights, some.demands)
    a = numpy_values(wild, *(t.numpy() for t in inputs))
    counts = some.cost.isfinite().numpy()[..., None] & wild.sets.numpy()
    squared = (a - some.values.numpy()) ** 2 / problem.range[wild.columns].numpy()
    assert not some.cost.isfinite().all()
    assert term.item() == pytest.approx((squared * counts).sum() / 4 / 45, rel=1e-9)


def test_gradients_against_finite_differences(problem, wild, targets):
    """Of each term, along a random direction in the space of all weights."""
    x, rng = problem.refused("train")[:20], np.random.default_rng(0)
    factual = problem.flow.factual(problem.refused("train"))
    people = {name: t[:20] for name, t in factual.items()}
    weights, demands = drawn(wild, len(x))
    parameters = list(wild.parameters())
    direction = [torch.from_numpy(rng.normal(size=p.shape)) for p in parameters]

    def terms_at(step):
        with torch.no_grad():
            for parameter, d in zip(parameters, direction, strict=True):
                parameter += step * d
        terms = training.loss_terms(wild, people, weights, demands)
        return terms | {"imitation": training.imitation(wild, factual, targets[:10])}

    above, below = terms_at(1e-6), terms_at(-2e-6)
    wild.requires_grad_(True)
    terms = terms_at(1e-6)
    for name in TERMS:
        gradients = torch.autograd.grad(terms[name], parameters, retain_graph=True)
        pairs = zip(gradients, direction, strict=True)
        slope = sum((g * d).sum() for g, d in pairs).item()
        expected = (above[name] - below[name]).item() / 2e-6
        assert abs(slope) > 1e-3 and slope == pytest.approx(expected, rel=1e-4), name


def test_training_lowers_the_loss(problem, fitted, targets):
    history = fitted[1]
    assert tuple(history) == TERMS and len(history) == SMALL.n_epochs
    assert history.hinge.iloc[-1] < 0.95 * history.hinge.iloc[0]
    assert history.imitation[-3:].mean() < 0.5 * history.imitation[:3].mean()
    _, alone = training.fit(problem, replace(SMALL, n_epochs=2), seed=1)
    assert (alone.imitation == 0).all()
    no_weight = replace(SMALL, imitation=0.0)
    _, heedless = training.fit(problem, no_weight, seed=1, targets=targets)
    assert heedless.imitation.iloc[-1] > 1.5 * history.imitation.iloc[-1]


def test_same_seed_same_bits(problem, fitted, targets):
    again, history = training.fit(problem, SMALL, seed=1, targets=targets)
    other, _ = training.fit(problem, replace(SMALL, n_epochs=1), seed=2, targets=targets)
    for name, weight in fitted[0].state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name
        assert not torch.equal(other.state_dict()[name], weight), name
    assert history.equals(fitted[1])


def test_first_proposals_are_near_the_factual_values(problem):
    still = replace(SMALL, n_epochs=1, learning_rate=1e-12)
    proposer, _ = training.fit(problem, still, seed=2)
    x = problem.refused("train")
    change = proposer.propose(x, torch.ones(len(x), 4).double()) - x[:, None, 3:]
    assert 0 < change.abs().max() < 1


def test_drawn_weights_and_demands(fitted):
    """Half of the weights are one; three in ten people have no demands."""
    n_people = 4_000
    weights, demands = drawn(fitted[0], n_people)
    is_one = (weights == 1).all(-1)
    assert abs(is_one.double().mean() - 0.5) < 4 * math.sqrt(0.25 / n_people)
    for column in weights[~is_one].log().T.numpy():
        assert stats.kstest(column, "uniform", args=(-1.2, 2.4)).pvalue > 1e-3
    has_none = (demands == 0).all(-1)
    assert abs(has_none.double().mean() - 0.3) < 4 * math.sqrt(0.3 * 0.7 / n_people)
    for column, most in zip(demands[~has_none].T, (8.0, 0.03), strict=True):
        assert stats.kstest(column.numpy() / most, "uniform").pvalue > 1e-3


def test_targets_are_valid_and_plausible_at_their_cost(problem, targets):
    """Of 42 people 22 demand nothing beyond acceptance, 10 a little, 10 more."""
    demanded, n_people = targets.demands.unique(dim=0, return_counts=True)
    assert torch.allclose(demanded, torch.tensor([[0, 0], [0.24, 0.01], [0.48, 0.02]]))
    assert n_people.tolist() == [22, 10, 10]
    columns, n_found = problem.population.actionable_index, 0
    people = problem.refused("train")[targets.people]
    for j, mask in enumerate(sets_of(4)):
        has = targets.cost[:, j].isfinite()
        n_found += has.sum()
        is_acted, values = torch.zeros_like(people, dtype=torch.bool), people.clone()
        is_acted[:, columns] = mask
        values[:, columns] = torch.where(mask, targets.values[:, j], people[:, columns])
        x_cf = problem.flow.counterfactual(people, is_acted, values)
        log_odds, gain = problem.outcome(people, x_cf)
        assert (log_odds >= targets.demands[:, 0])[has].all()
        assert (gain >= targets.demands[:, 1])[has].all()
        effort = mask * (people - values)[:, columns] ** 2 / problem.range[columns]
        cost = (targets.weights * effort).sum(-1) / 4
        assert torch.allclose(targets.cost[has, j], cost[has])
    assert 0 < n_found < targets.cost.numel()


def test_bad_input_is_named(problem, targets):
    with pytest.raises(ValueError, match="targets is empty"):
        training.fit(problem, SMALL, targets=targets[:0])
    with pytest.raises(ValueError, match="n_people must be a whole number above zero"):
        training.search_targets(problem, n_people=0)
    with pytest.raises(ValueError, match="fit of the proposer diverged"):
        training.fit(problem, replace(SMALL, n_epochs=3, learning_rate=1e200))
    x = problem.population.x["recourse/train"]
    accepted = {"recourse/train": x[problem.accepts(x)]}
    population = replace(problem.population, x=problem.population.x | accepted, y={})
    with pytest.raises(ValueError, match=r'problem.refused\("train"\) is empty'):
        training.fit(replace(problem, population=population), SMALL)
