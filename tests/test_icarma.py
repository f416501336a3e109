"""The loss against numpy, the laws of a recommendation, and what an ensemble promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from lib.method import icarma
from lib.method.icarma import Settings
from lib.method.preferences import CONSTANT, LINEAR, Preferences, Profile
from lib.method.samplers import RankingSampler

GENTLE = Profile(gamma=1.0, w_max=3.0)
SHORT = Settings(n_epochs=3, batch_size=64, width=16)
MEMBERS = [
    SHORT,
    replace(SHORT, mask=1.0, tau=0.5, p_max=0.6, plausibility_form="drop"),
    replace(SHORT, margin_on="log_odds", margin=0.05, hinge=0.2, prior_form="weight"),
]


@pytest.fixture(scope="module")
def trained(problem):
    sampler = RankingSampler(problem.population.actionable, profile=GENTLE)
    return icarma.fit(problem, sampler, MEMBERS, [1, 2, 3])


@pytest.fixture(scope="module")
def ensemble(trained):
    return trained[0]


@pytest.fixture
def asked(people):
    x, preferences = people
    return x, preferences.with_profile(GENTLE)


def numpy_loss(ensemble, member, x, preferences, noise):
    """Return the five terms of one member in numpy, from its weights."""
    problem, s = ensemble.problem, ensemble.settings[member]

    def network(stacked, inputs):
        for i in range(3):
            inputs = np.maximum(inputs, 0) if i else inputs
            weight, bias = stacked.weights[i][member], stacked.biases[i][member]
            inputs = inputs @ weight.numpy() + bias.numpy()
        return inputs

    allowed = preferences.is_actionable.numpy().astype(float)
    difficulty, scores = np.zeros(allowed.shape), preferences.scores.numpy()
    difficulty[allowed > 0] = (scores[allowed > 0] - 1) / 3
    weight = 1 + (GENTLE.w_max - 1) * difficulty
    prior = s.p_max - (s.p_max - s.p_min) * difficulty
    if s.prior_form == "weight":
        prior = np.maximum(s.p_max / weight, s.p_min)
    context = np.concatenate([problem.flow.abduct(x).numpy(), allowed, difficulty], -1)
    logits = network(ensemble.mask, context)
    m = (expit((logits + noise) / s.tau) > 0.5) * allowed
    columns = problem.population.actionable_index
    a = x.numpy()[:, columns] + network(ensemble.action, np.concatenate([context, m], -1))
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[:, columns], values[:, columns] = torch.from_numpy(m > 0), torch.from_numpy(a)
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    q = expit(logits)
    low, high = problem.population.low.numpy(), problem.population.high.numpy()
    over = np.maximum(x_cf.numpy() - high, 0) + np.maximum(low - x_cf.numpy(), 0)
    kinds = problem.population.kinds.values()
    mutable = [j for j, kind in enumerate(kinds) if kind != "immutable"]
    log_p = problem.flow.log_prob(x_cf).numpy()
    drop = np.maximum(problem.flow.log_prob(x).numpy() - log_p, 0)
    drop = drop * s.saturation / (s.saturation + drop)
    h = problem.classifier.probability(x_cf).numpy()
    lacking = np.maximum(s.margin - (2 * h - 1), 0)
    if s.margin_on == "log_odds":
        lacking = np.maximum(s.margin - np.log(h / (1 - h)), 0)
        lacking = lacking * s.saturation / (s.saturation + lacking)
    effort = weight * m * (x.numpy()[:, columns] - a) ** 2 / (high - low)[columns]
    divergence = q * np.log(q / prior) + (1 - q) * np.log((1 - q) / (1 - prior))
    return {
        "cost": effort.mean(-1).mean(),
        "mask": (allowed * divergence).sum(-1).mean(),
        "hinge": lacking.mean(),
        "plausibility": (-log_p if s.plausibility_form == "nll" else drop).mean(),
        "feasibility": (over / (high - low))[:, mutable].sum(-1).mean(),
    }


@pytest.fixture
def batch(problem, ensemble, asked):
    x, preferences = asked
    noise = torch.from_numpy(np.random.default_rng(0).logistic(size=(3, len(x), 4)))
    return ensemble.batch(problem.flow.factual(x), preferences, noise)


def test_loss_term_by_term(ensemble, batch, asked):
    terms = ensemble.loss_terms(batch)
    assert tuple(terms) == icarma.TERMS
    for member in range(3):
        expected = numpy_loss(ensemble, member, *asked, batch["noise"][member].numpy())
        of_member = {name: term[member].item() for name, term in terms.items()}
        assert of_member == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert all(term.max() > 0 for term in terms.values())


def test_lagrange_multiplier_by_hand(problem):
    """It grows by the hinge of each batch, and is held back by ten times that hinge."""
    both = icarma.ICarma(problem, [replace(SHORT, hinge=0.2), SHORT], [0, 0])
    multiplier = torch.zeros(2, dtype=torch.float64)
    total = 0.0
    for value in (0.5, 0.25, 0.0, 1.0):
        terms = {name: torch.zeros(2, dtype=torch.float64) for name in icarma.TERMS}
        terms["hinge"] = torch.full((2,), value, dtype=torch.float64, requires_grad=True)
        multiplier += terms["hinge"].detach()
        total += value
        both.loss(terms, multiplier).backward()
        slope = terms["hinge"].grad.tolist()
        assert slope == pytest.approx([0.2, total - 10 * value])


def test_gradient_of_the_action_network_by_finite_differences(problem, ensemble, batch):
    """Masks are constant in these weights, so no gradient goes straight through."""
    moved = ensemble[:].requires_grad_(True)
    bias = moved.action.biases[2]
    sum(term.sum() for term in moved.loss_terms(batch).values()).backward()
    step = 1e-6
    for member, k in ((0, 0), (0, 3), (1, 2), (2, 1)):
        totals = []
        for sign in (1, -1):
            with torch.no_grad():
                bias[member, 0, k] += sign * step
                terms = moved.loss_terms(batch).values()
                totals.append(sum(term.sum() for term in terms).item())
                bias[member, 0, k] -= sign * step
        slope = (totals[0] - totals[1]) / (2 * step)
        assert bias.grad[member, 0, k].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)


def scores_of_somebody():
    return st.lists(st.integers(1, 5), min_size=4, max_size=4).filter(lambda s: min(s) < 5)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(scores_of_somebody(), min_size=6, max_size=6))
def test_a_forbidden_feature_is_never_acted_on(problem, ensemble, scores):
    x = problem.refused("test")[:6]
    preferences = Preferences(torch.tensor(scores), profile=GENTLE)
    recommendation = ensemble.recommend_each(x, preferences)
    columns = problem.population.actionable_index
    is_acted = recommendation.is_acted
    assert not (is_acted[..., columns] & ~preferences.is_actionable).any()
    assert not is_acted[..., [j for j in range(7) if j not in columns]].any()
    assert torch.equal(recommendation.x_cf[..., :3], x[:, :3].expand(3, -1, -1))


def test_recommendation_is_what_the_networks_give(problem, ensemble, asked):
    """Acts where the probability is above one half; the counterfactual is the flow's."""
    x, preferences = asked
    every = ensemble.recommend_each(x, preferences)
    z = problem.flow.abduct(x)
    for member in range(3):
        logits = ensemble.mask_logits(ensemble.context(x, z, preferences))[member]
        m = (torch.sigmoid(logits) > 0.5) & preferences.is_actionable
        one = ensemble[member].recommend(x, preferences)
        columns = problem.population.actionable_index
        assert torch.equal(every[member].is_acted[:, columns], m)
        assert torch.equal(one.is_acted, every[member].is_acted)
        assert torch.allclose(one.values, every[member].values, atol=1e-12)
        x_cf = problem.flow.counterfactual(x, one.is_acted, one.values)
        assert torch.allclose(every[member].x_cf, x_cf, atol=1e-12)
    stays = ~every.is_acted
    assert torch.equal(every.values[stays], x.expand(3, -1, -1)[stays])


def test_many_people_are_answered_in_batches(ensemble, asked, monkeypatch):
    at_once = ensemble.recommend_each(*asked)
    monkeypatch.setattr(icarma, "PEOPLE_BATCH_SIZE", 7)
    in_batches = ensemble.recommend_each(*asked)
    assert torch.equal(in_batches.is_acted, at_once.is_acted)
    assert torch.allclose(in_batches.x_cf, at_once.x_cf, atol=1e-12)


def test_a_member_does_not_depend_on_its_neighbours(problem, trained):
    ensemble, history = trained
    sampler = RankingSampler(problem.population.actionable, profile=GENTLE)
    alone, alone_history = icarma.fit(problem, sampler, MEMBERS[1], [2])
    for name, weight in alone.state_dict().items():
        assert torch.allclose(weight[0], ensemble.state_dict()[name][1], atol=1e-8), name
    expected = history.loc["hinge"].iloc[:, 1].to_numpy()
    assert alone_history.loc["hinge"][2].to_numpy() == pytest.approx(expected, abs=1e-8)


def test_same_seed_same_bits(problem, ensemble):
    sampler = RankingSampler(problem.population.actionable, profile=GENTLE)
    again, _ = icarma.fit(problem, sampler, MEMBERS, [1, 2, 3])
    for name, weight in ensemble.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name


def test_the_best_member_has_the_lowest_cost_plus_share_refused(problem, ensemble):
    x = problem.refused("validation")
    sampler = RankingSampler(problem.population.actionable, profile=GENTLE)
    preferences = sampler.draw(range(len(x)), np.random.default_rng(0))
    scores = []
    for member in range(3):
        recommendation = ensemble[member].recommend(x, preferences)
        is_valid = problem.accepts(recommendation.x_cf)
        cost = problem.cost_of(x, recommendation)[is_valid].mean().item()
        scores.append(cost + 1 - is_valid.double().mean().item())
    assert ensemble.best_index == int(np.nanargmin(scores))
    assert ensemble.best.seeds == [ensemble.seeds[ensemble.best_index]]
    assert ensemble[[2, 1]].seeds == [3, 2] and len(ensemble[1:]) == 2


def test_the_loss_falls_and_the_networks_listen(problem):
    """Ranks reversed, other answers; what is easy is acted on at least as often."""
    features = problem.population.actionable
    soft = RankingSampler(features, n_actionable=4)
    long = replace(SHORT, n_epochs=60, batch_size=32, width=32)
    linear, history = icarma.fit(problem, soft, long)
    losses = history.loc["hinge"][0]
    assert losses.iloc[-1] < 0.7 * losses.iloc[0]
    x = problem.refused("test")
    ranks = soft.draw(range(len(x)), np.random.default_rng(0))
    reverse = replace(ranks, scores=5 - ranks.scores)
    columns = problem.population.actionable_index
    acts = linear.recommend(x, ranks).is_acted[:, columns]
    assert not torch.equal(acts, linear.recommend(x, reverse).is_acted[:, columns])
    share = [acts[ranks.scores == rank].double().mean().item() for rank in (1, 4)]
    assert share[0] >= share[1]


def test_one_actionable_feature(problem):
    kinds = {"loan_amount": "mutable", "loan_duration": "mutable", "savings": "mutable"}
    population = replace(problem.population, kinds=problem.population.kinds | kinds)
    sampler = RankingSampler(population.actionable)
    fitted, _ = icarma.fit(replace(problem, population=population), sampler, SHORT)
    x = problem.refused("test")
    preferences = sampler.draw(range(len(x)), np.random.default_rng(0))
    is_acted = fitted.recommend(x, preferences).is_acted
    assert is_acted.any(0).nonzero().tolist() == [[problem.flow.index("income")]]


def test_saved_is_loaded(problem, ensemble, asked, tmp_path):
    ensemble.save(tmp_path, "loan_icarma_hard", {})
    loaded = icarma.ICarma.load(tmp_path, "loan_icarma_hard", problem)
    assert loaded.settings == ensemble.settings and loaded.seeds == [1, 2, 3]
    assert loaded.profile == GENTLE and loaded.best_index == ensemble.best_index
    expected = ensemble.recommend_each(*asked).x_cf
    assert torch.equal(loaded.recommend_each(*asked).x_cf, expected)
    both = {"linear": ensemble, "other": ensemble[[0]]}
    icarma.save_by_profile(both, tmp_path, "several", {})
    several = icarma.load_by_profile(tmp_path, "several", problem)
    assert list(several) == ["linear", "other"] and len(several["other"]) == 1
    assert torch.equal(several["linear"].recommend_each(*asked).x_cf, expected)
    with pytest.raises(ValueError, match="holds no ensemble"):
        icarma.ICarma.load(tmp_path, "several", problem)


def test_defaults_are_as_printed_for_rankings():
    """Appendix C.2 of the paper: the settings for rankings, under the linear profile."""
    s = Settings()
    printed = (s.batch_size, s.n_epochs, s.learning_rate, s.margin, s.tau)
    assert printed == (128, 450, 5e-3, 0.013, 0.36)
    assert (s.cost, s.mask, s.plausibility, s.feasibility) == (1.1, 1.5, 0.225, 0.1)


def test_bad_input_is_named(problem, ensemble, asked):
    x, preferences = asked
    sampler = RankingSampler(problem.population.actionable)
    constant = replace(sampler, profile=CONSTANT)
    narrow = replace(SHORT, width=8)
    for call, message in (
        (lambda: icarma.fit(problem, [sampler], [SHORT, SHORT], [1]), "one sampler, one"),
        (lambda: icarma.fit(problem, sampler, [SHORT, narrow], [1, 2]), "must share width"),
        (lambda: icarma.fit(problem, [sampler, constant], SHORT, [1, 2]), "profile"),
        (lambda: Settings(tau=0), "tau must be above zero"),
        (lambda: Settings(hinge=-1.0), "hinge must be a finite number, zero or above"),
        (lambda: Settings(plausibility="lagrangian"), "Only hinge may be a multiplier"),
        (lambda: Settings(p_min=0.9, p_max=0.1), "Priors must satisfy"),
        (lambda: ensemble.recommend(x, preferences), r"holds 3 members.*icarma.best"),
        (lambda: ensemble.recommend_each(x, preferences.with_profile(LINEAR)), "trained"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_networks_that_help_nobody_say_so(problem):
    idle = replace(SHORT, hinge=0.0, mask=100.0, p_max=0.01)
    with pytest.warns(UserWarning, match=r"iCARMA helps \d of the \d+ .* steps. Train for"):
        icarma.fit(problem, RankingSampler(problem.population.actionable), idle)


def test_somebody_has_to_be_refused(problem):
    population = problem.population
    x, y = population.x["recourse/train"], population.y["recourse/train"]
    accepted = problem.accepts(x)
    nobody = replace(
        population,
        x=population.x | {"recourse/train": x[accepted]},
        y=population.y | {"recourse/train": y[accepted]},
    )
    with pytest.raises(ValueError, match="Nobody in the training split is refused"):
        icarma.fit(replace(problem, population=nobody), RankingSampler(nobody.actionable))
