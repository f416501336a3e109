"""The loss against numpy, the laws of a recommendation, and what a stack promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib.method import classifier, flow, icarma, training
from lib.method.icarma import Settings
from lib.method.population import Population
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.method.scm import SCM, additive

LINEAR = Profile(gamma=1, w_max=3, p_min=0.1)
SHORT = Settings(n_epochs=3, batch_size=64, hidden=16)


@pytest.fixture(scope="module")
def stack(problem):
    sampler = RankingSampler(problem.population.actionable)
    members = [
        SHORT,
        Settings(n_epochs=3, batch_size=64, hidden=16, profile=LINEAR, mask=1.0, tau=0.5),
        replace(SHORT, on_probability=True, margin=0.013),
    ]
    return training.fit(problem, [sampler] * 3, members, [1, 2, 3])


def numpy_loss(stack, member, x, preferences, noise):
    """Return the five terms for one member in numpy, from its weights."""
    problem, s = stack.problem, stack.settings[member]
    w = {name: value[member].detach().numpy() for name, value in stack.weights.items()}

    def sigma(t):
        return 1 / (1 + np.exp(-t))

    def network(which, inputs):
        for i in range(3):
            inputs = (np.maximum(inputs, 0) if i else inputs) @ w[
                f"{which}_weight_{i}"
            ] + w[f"{which}_bias_{i}"]
        return inputs

    allowed = preferences.is_actionable.numpy().astype(float)
    hard, weight, prior = (
        part(preferences).numpy()
        for part in (s.profile.hardness, s.profile.weight, s.profile.prior)
    )
    context = np.concatenate([problem.flow.abduct(x).numpy(), allowed, hard], -1)
    logits = network("mask", context)
    m = (sigma((logits + noise) / s.tau) > 0.5) * allowed
    columns = problem.population.actionable_index
    a = x.numpy()[:, columns] + network("action", np.concatenate([context, m], -1))
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[:, columns] = torch.from_numpy(m > 0)
    values[:, columns] = torch.from_numpy(a)
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    q = sigma(logits)
    low, high = problem.population.low.numpy(), problem.population.high.numpy()
    over = np.maximum(x_cf.numpy() - high, 0) + np.maximum(low - x_cf.numpy(), 0)
    may_move = [
        j for j, kind in enumerate(problem.population.kinds.values()) if kind != "immutable"
    ]
    lost = np.maximum((problem.flow.log_prob(x) - problem.flow.log_prob(x_cf)).numpy(), 0)
    probability = problem.classifier.probability(x_cf).numpy()
    if s.on_probability:
        lacking = np.maximum(s.margin - (2 * probability - 1), 0)
    else:
        lacking = np.maximum(s.margin - np.log(probability / (1 - probability)), 0)
        lacking = lacking * s.cap / (s.cap + lacking)
    effort = weight * m * (x.numpy()[:, columns] - a) ** 2 / (high - low)[columns]
    return {
        "cost": effort.mean(-1).mean(),
        "mask": (
            allowed * (q * np.log(q / prior) + (1 - q) * np.log((1 - q) / (1 - prior)))
        )
        .sum(-1)
        .mean(),
        "hinge": lacking.mean(),
        "plausibility": (lost * s.cap / (s.cap + lost)).mean(),
        "feasibility": (over / (high - low))[:, may_move].sum(-1).mean(),
    }


@pytest.fixture
def batch(problem, stack, people):
    x, preferences = people
    noise = torch.from_numpy(np.random.default_rng(0).logistic(size=(3, len(x), 4)))
    return stack[0].batch(
        problem.flow.factual(x, problem.population.actionable_index), preferences, noise
    )


def test_loss_term_by_term(stack, batch, people):
    terms = stack[0].loss_terms(batch)
    assert tuple(terms) == icarma.TERMS
    for member in range(3):
        expected = numpy_loss(stack[0], member, *people, batch["noise"][member].numpy())
        for name, value in expected.items():
            assert value >= 0, name
            assert terms[name][member].item() == pytest.approx(value, rel=1e-5, abs=1e-9), (
                name
            )
    assert all(term.max() > 0 for term in terms.values())


def test_who_does_nothing_feels_no_plausibility(problem, stack, batch):
    """Their gain is exactly zero, where the hinge has a kink; our choice is no gradient."""
    one = {name: value.detach().clone() for name, value in batch.items()}
    one["noise"] = torch.full_like(one["noise"], -99.0)  # nobody acts
    weights = {k: w.clone().requires_grad_() for k, w in stack[0].weights.items()}
    still = icarma.ICarma(problem, stack[0].settings, stack[0].seeds, weights)
    terms = still.loss_terms(one)
    assert (terms["plausibility"] == 0).all() and (terms["cost"] == 0).all()
    loss = terms["plausibility"].sum()
    gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    assert all(g is None or (g == 0).all() for g in gradients)
    gradients = torch.autograd.grad(
        still.loss_terms(one)["hinge"].sum(), weights["mask_bias_2"]
    )
    assert gradients[0].abs().max() > 0  # to be accepted, they must act


def test_far_from_acceptance_only_the_log_odds_point_the_way(problem):
    """At 40 log-odds below zero, 2 h - 1 is -1 whatever one does."""
    sampler = RankingSampler(problem.population.actionable)
    both, _ = training.fit(
        problem, sampler, [SHORT, replace(SHORT, on_probability=True)], [0, 0]
    )
    log_odds = torch.full((2, 1), -40.0, dtype=torch.float64, requires_grad=True)
    hinge = both._hinge(log_odds)
    assert hinge[0].item() == pytest.approx(SHORT.cap * 40.05 / (SHORT.cap + 40.05))
    assert hinge[1].item() == pytest.approx(1 + SHORT.margin)
    hinge.sum().backward()
    assert log_odds.grad[0].item() == pytest.approx(-((1 + 40.05 / SHORT.cap) ** -2))
    assert abs(log_odds.grad[1].item()) < 1e-16


def test_multiplier_of_carma_by_hand():
    """It grows by the hinge of each batch, and is held back by ten times that hinge."""
    weigh = training._TermWeights([SHORT, replace(SHORT, hinge=None)])
    terms = torch.zeros(5, 2)
    position = icarma.TERMS.index("hinge")
    multiplier = 0.0
    for hinge in (0.5, 0.25, 0.0, 1.0):
        terms[position] = hinge
        multiplier += hinge
        weights = weigh(terms)
        assert weights[position].tolist() == pytest.approx(
            [SHORT.hinge, multiplier - 10 * hinge]
        )
        assert weights[0].tolist() == pytest.approx([SHORT.cost] * 2)


def test_members_of_other_lengths_are_trained_after_each_other(problem):
    """Each becomes what it becomes alone; its history ends where its training does."""
    sampler = RankingSampler(problem.population.actionable)
    members = [SHORT, replace(SHORT, n_epochs=2), replace(SHORT, mask=0.1)]
    stack, history = training.fit(problem, sampler, members, [1, 1, 2])
    assert history["cost"].shape == (3, 3)
    assert np.isnan(history["cost"][2]).tolist() == [False, True, False]
    for i, (own, seed) in enumerate(zip(members, [1, 1, 2], strict=True)):
        alone, _ = training.fit(problem, sampler, own, [seed])
        for name, weight in alone.weights.items():
            assert torch.allclose(weight[0], stack.weights[name][i], atol=1e-8), name


def test_gradient_of_the_action_network_by_finite_differences(stack, batch):
    """Masks are constant in these weights, so no gradient goes straight through."""
    weights = {name: value.clone() for name, value in stack[0].weights.items()}
    moved = icarma.ICarma(stack[0].problem, stack[0].settings, stack[0].seeds, weights)
    bias = weights["action_bias_2"].requires_grad_()
    sum(term.sum() for term in moved.loss_terms(batch).values()).backward()
    step = 1e-6
    for member, k in ((0, 0), (0, 3), (1, 2), (2, 1)):
        total = []
        for sign in (1, -1):
            weights["action_bias_2"] = bias.detach().clone()
            weights["action_bias_2"][member, 0, k] += sign * step
            total.append(
                sum(term.sum() for term in moved.loss_terms(batch).values()).item()
            )
        assert bias.grad[member, 0, k].item() == pytest.approx(
            (total[0] - total[1]) / (2 * step), rel=1e-4, abs=1e-7
        )


def scores_of_somebody():
    return st.lists(st.integers(1, 5), min_size=4, max_size=4).filter(lambda s: min(s) < 5)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(scores_of_somebody(), min_size=6, max_size=6))
def test_a_forbidden_feature_is_never_acted_on(problem, stack, scores):
    x = problem.refused("test")[:6]
    preferences = Preferences(torch.tensor(scores))
    told = stack[0].recommend(x, preferences)
    columns = problem.population.actionable_index
    assert not (told.is_acted[..., columns] & ~preferences.is_actionable).any()
    others = [j for j in range(7) if j not in columns]
    assert not told.is_acted[..., others].any()
    assert torch.equal(told.x_cf[..., :3], x[:, :3].expand(3, -1, -1))


def test_recommendation_is_what_the_networks_say(problem, stack, people):
    """Acts where the probability is above one half; the counterfactual is the flow's."""
    x, preferences = people
    told = stack[0].recommend(x, preferences)
    columns = problem.population.actionable_index
    for member in range(3):
        logits = stack[0].mask_logits(
            stack[0].context(problem.flow.abduct(x), preferences)
        )[member]
        m = (torch.sigmoid(logits) > 0.5) & preferences.is_actionable
        assert torch.equal(told[member].is_acted[:, columns], m)
        x_cf = problem.flow.counterfactual(x, told[member].is_acted, told[member].values)
        assert torch.allclose(told[member].x_cf, x_cf, atol=1e-12)
    assert torch.equal(told.values[~told.is_acted], x.expand(3, -1, -1)[~told.is_acted])


def test_many_people_are_answered_in_parts(problem, stack, people, monkeypatch):
    x, preferences = people
    at_once = stack[0].recommend(x, preferences)
    monkeypatch.setattr(icarma, "PEOPLE_AT_ONCE", 7)
    in_parts = stack[0].recommend(x, preferences)
    assert (
        torch.equal(in_parts.is_acted, at_once.is_acted)
        and in_parts.values.shape == at_once.values.shape
    )
    assert torch.allclose(in_parts.values, at_once.values, atol=1e-12) and torch.allclose(
        in_parts.x_cf, at_once.x_cf, atol=1e-12
    )


def test_a_member_does_not_depend_on_its_neighbours(problem, stack):
    sampler = RankingSampler(problem.population.actionable)
    alone, history = training.fit(problem, [sampler], [stack[0].settings[1]], [2])
    for name, weight in alone.weights.items():
        assert torch.allclose(weight[0], stack[0].weights[name][1], atol=1e-8), name
    assert history["hinge"][:, 0] == pytest.approx(stack[1]["hinge"][:, 1], abs=1e-8)


def test_same_seed_same_bits(problem, stack):
    sampler = RankingSampler(problem.population.actionable)
    again, _ = training.fit(problem, [sampler] * 3, stack[0].settings, [1, 2, 3])
    assert all(
        torch.equal(again.weights[name], weight)
        for name, weight in stack[0].weights.items()
    )


@pytest.mark.parametrize("n_actionable", [1, 2, 8])
def test_any_number_of_features(n_actionable):
    """Own equations, K features that can be acted on and one that can't: trained, asked."""
    noise = stats.norm(0, 1)
    equations = {"root": additive((), lambda pa: 0.0, noise)}
    for k in range(n_actionable):
        equations[f"x{k}"] = additive(("root",), lambda pa: 0.5 * pa["root"], noise)
    kinds = {name: "actionable" if name != "root" else "immutable" for name in equations}
    population = Population.from_scm(
        SCM(equations),
        kinds,
        label=lambda x: x[:, 1:].sum(-1) > 0,
        n_classifier=500,
        n_flow=500,
        n_recourse=400,
    )
    h, _ = classifier.fit(population, n_epochs=10)
    for_flow = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *for_flow, n_epochs=5)
    own = Problem(population, h, density)
    sampler = RankingSampler(population.actionable)
    fitted, _ = training.fit(own, sampler, SHORT, seeds=[0, 1])
    x = own.refused("test")
    preferences = sampler.draw(range(len(x)), np.random.default_rng(0))
    found = fitted.recommend(x, preferences)
    assert found.x_cf.shape == (2, len(x), n_actionable + 1)
    acts = found.is_acted[..., population.actionable_index]
    assert not (acts & ~preferences.is_actionable).any() and acts.any()
    assert torch.equal(found.x_cf[..., 0], x[:, 0].expand(2, -1))


def test_training_lowers_the_loss(problem):
    sampler = RankingSampler(problem.population.actionable)
    _, history = training.fit(
        problem, [sampler], [Settings(n_epochs=30, batch_size=32, hidden=16)], [0]
    )
    assert history["hinge"][-1, 0] < 0.7 * history["hinge"][0, 0]


def test_saved_is_loaded(problem, stack, people, tmp_path):
    stack[0].save(tmp_path, "loan_icarma_hard", {})
    loaded = icarma.ICarma.load(tmp_path, "loan_icarma_hard", problem)
    assert loaded.settings == stack[0].settings and loaded.seeds == [1, 2, 3]
    assert torch.equal(loaded.recommend(*people).x_cf, stack[0].recommend(*people).x_cf)


def accepted_people(problem):
    x = problem.population.x["recourse/test"]
    return x[problem.classifier.accepts(x)]


def test_bad_input_is_named(problem, stack, people):
    sampler = RankingSampler(problem.population.actionable)
    with pytest.raises(ValueError, match="one sampler, one setting and one seed"):
        training.fit(problem, [sampler], [SHORT, SHORT], [1])
    with pytest.raises(ValueError, match="must share hidden"):
        training.fit(problem, sampler, [SHORT, replace(SHORT, hidden=8)], [1, 2])
    assert Settings(cap=np.inf).cap == np.inf
    with pytest.raises(ValueError, match="tau must be above zero"):
        Settings(tau=0)
    with pytest.raises(ValueError, match="weight of hinge must not be below zero"):
        Settings(hinge=-1.0)
    accepted = accepted_people(problem)
    nobody = replace(
        problem.population,
        x=problem.population.x | {"recourse/train": accepted},
        y=problem.population.y | {"recourse/train": torch.ones(len(accepted)) > 0},
    )
    with pytest.raises(ValueError, match="Nobody in the training split is refused"):
        training.fit(replace(problem, population=nobody), [sampler], [SHORT], [1])
    with pytest.raises(ValueError, match=r"preferences.scores has shape"):
        stack[0].recommend(people[0][:3], people[1])
    with pytest.raises(ValueError, match="people are already accepted"):
        stack[0].recommend(accepted_people(problem)[:30], people[1])
