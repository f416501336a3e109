"""The method on one page against lib: the same weights, people and noise give the same.

All is in float64. Settings and profiles stay in float32 in lib, so that what depends on
them agrees to a hundred-thousandth: 1 - 0.99 has so many digits there.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import one_page
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from lib.io import MODELS
from lib.method import icarma as lib_icarma
from lib.method import loan
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma, Settings
from lib.method.preferences import LINEAR, Preferences
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler

TERMS = ("cost", "mask", "plausibility", "feasibility", "hinge")  # in the page's order

Compared = tuple[ICarma, one_page.ICarma]


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="module")
def committed() -> Problem:
    return loan.problem()


@pytest.fixture(scope="module")
def problem(committed) -> Problem:
    """The committed problem in float64.

    Its training people are 50 again and again: a narrow range, out of which actions lead.
    """
    population = committed.population
    x = {split: rows.double() for split, rows in population.x.items()}
    x["recourse/train"] = x["recourse/train"][torch.arange(10_000) % 50]
    h = NetworkClassifier(population.features, dtype=torch.float64)
    h.load_state_dict(committed.classifier.state_dict())
    flow = CausalFlow(population.graph, dtype=torch.float64)
    flow.load_state_dict(committed.flow.state_dict())
    frozen = h.requires_grad_(False), flow.requires_grad_(False)
    return Problem(replace(population, x=x), *frozen)


@pytest.fixture(scope="module")
def classifier(problem) -> nn.Module:
    page = nn.Sequential(one_page.network(7, 32, 1), nn.Flatten(0)).double()
    page[0].load_state_dict(problem.classifier.network.state_dict())
    return page.requires_grad_(False)


@pytest.fixture(scope="module")
def flow(problem) -> one_page.Flow:
    page = one_page.Flow().double()
    page.layer.load_state_dict(problem.flow.layer.state_dict())
    return page.requires_grad_(False)


@pytest.fixture(scope="module")
def both(committed, problem, classifier, flow) -> Compared:
    """The best member of lib's that asks for gradients, and the same as the page has it."""
    best = lib_icarma.load_by_profile(MODELS, "loan_icarma_ranking", committed)[
        "linear"
    ].best
    member = ICarma(problem, best.settings, best.seeds, best.profile)
    member.load_state_dict(best.state_dict())
    low, high = problem.population.low, problem.population.high
    page = one_page.ICarma(classifier, flow, low, high).double()
    for stacked, network in ((member.mask, page.mask), (member.action, page.values)):
        layers = zip(stacked.weights, stacked.biases, network[::2], strict=True)
        for weight, bias, layer in layers:
            layer.weight.data.copy_(weight[0].T)
            layer.bias.data.copy_(bias[0, 0])
    return member, page


@pytest.fixture(scope="module")
def people(problem) -> tuple[Tensor, Preferences]:
    x = problem.refused("test")[:500]
    sampler = RankingSampler(problem.population.actionable)
    return x, sampler.draw(range(len(x)), np.random.default_rng(1))


def for_page(preferences: Preferences) -> tuple[Tensor, Tensor]:
    """Return preferences of lib as the page takes them: who can, and how hard it is."""
    return preferences.is_actionable.double(), preferences.difficulty.double()


def in_columns(values: Tensor) -> Tensor:
    """Return values of the actionable features in the columns of all seven."""
    return torch.cat([values.new_zeros(len(values), 3), values], -1)


# the true model


def test_true_model():
    scm, rng = loan.scm(), np.random.default_rng(2)
    u = scm.draw_noise(2_000, rng)
    m = torch.from_numpy(rng.integers(0, 2, (len(u), one_page.K))).double()
    a = torch.from_numpy(rng.normal(0, 5, m.shape))
    x = one_page.true_model(u, torch.zeros_like(m), a)
    assert torch.allclose(x, scm.predict(u), rtol=1e-12, atol=1e-12)
    acted = scm.counterfactual(x, in_columns(m) > 0, in_columns(a))
    ours = one_page.true_model(u, m, a)
    assert torch.allclose(ours, acted, rtol=1e-12, atol=1e-12)
    for people in (x, ours):
        assert torch.equal(one_page.repays(people), loan.label(people))
    assert 0.4 < loan.label(x).double().mean() < 0.6


def test_noise_has_the_distributions_of_lib():
    u = one_page.draw_noise(20_000)
    for column, (name, equation) in zip(
        u.T.numpy(), loan.scm().equations.items(), strict=True
    ):
        if name == "gender":
            assert set(column) == {0, 1} and abs(column.mean() - 0.5) < 0.02
        else:
            assert stats.kstest(column, equation.noise.cdf).pvalue > 1e-3, name
    assert abs(np.corrcoef(u.T.numpy()) - np.eye(7)).max() < 0.03


# what is learned


def test_classifier(problem, classifier):
    x = problem.population.x["recourse/test"]
    ours, of_lib = classifier(x), problem.classifier.logit(x)
    assert torch.allclose(ours, of_lib, rtol=1e-10, atol=1e-10)


def test_flow(problem, flow):
    x, rng = problem.population.x["recourse/test"], np.random.default_rng(3)
    z, log_p = flow(x)
    close = {"rtol": 1e-10, "atol": 1e-10}
    assert torch.allclose(z, problem.flow.abduct(x), **close)
    assert torch.allclose(log_p, problem.flow.log_prob(x), **close)
    m = torch.from_numpy(rng.integers(0, 2, (len(x), one_page.K))).double()
    a = torch.from_numpy(rng.normal(0, 2, m.shape))
    of_lib = problem.flow.counterfactual(x, in_columns(m) > 0, in_columns(a))
    assert torch.allclose(flow.act(x, m, a), of_lib, **close)
    assert one_page.Flow.causes == tuple(map(tuple, problem.flow.graph.parent_index))


# preferences


def test_preferences_are_rankings_of_lib():
    can, hard = one_page.preferences(4_000)
    scores = torch.where(can > 0, (3 * hard).round().long() + 1, 5)
    preferences = Preferences(scores)  # everybody can do something
    assert torch.equal(preferences.is_actionable.float(), can)
    assert torch.allclose(preferences.difficulty, hard, rtol=1e-6, atol=0)
    for row, n in zip(scores.tolist(), can.sum(-1).long().tolist(), strict=True):
        assert sorted(row)[:n] == list(range(1, n + 1))
    sampler = RankingSampler(("a", "b", "c", "d"))
    of_lib = sampler.draw(range(4_000), np.random.default_rng(0)).scores
    both = (ranks[:, 0].bincount(minlength=6)[1:] for ranks in (scores, of_lib))
    assert stats.chi2_contingency(torch.stack(list(both))).pvalue > 1e-3


# iCARMA


def test_settings_are_the_defaults_of_lib():
    """The page trains as printed, under the linear profile."""
    settings, page = Settings(), one_page.ICarma
    assert page.weights == tuple(getattr(settings, term) for term in TERMS[:-1])
    assert settings.hinge == "lagrangian" and settings.plausibility_form == "nll"
    assert (page.tau, page.margin) == (settings.tau, settings.margin)
    assert (page.p_max, page.p_min) == (settings.p_max, settings.p_min)
    assert page.w_max == LINEAR.w_max and LINEAR.gamma == 1
    how = settings.batch_size, settings.learning_rate, settings.width
    assert how == (128, 5e-3, 64) and settings.cosine_schedule


def test_loss_and_gradients(problem, both, people):
    member, page = both
    x, preferences = people
    noise = torch.from_numpy(np.random.default_rng(4).logistic(size=(len(x), one_page.K)))
    batch = member.batch(problem.flow.factual(x), preferences, noise[None])
    terms = member.loss_terms(batch)
    page.multiplier = 20.0  # as after some batches
    multiplier = 20.0 + terms["hinge"].detach()
    of_lib = member.loss(terms, multiplier)
    ours = page.loss(x, *for_page(preferences), noise)
    assert page.multiplier == pytest.approx(multiplier.item(), rel=1e-6)
    for name, term, weight in zip(TERMS, ours.tolist(), page.weights, strict=False):
        assert term != 0, name
        assert term == pytest.approx(weight * terms[name].item(), rel=1e-5), name
    assert ours.sum().item() == pytest.approx(of_lib.item(), rel=1e-5)

    page.zero_grad()
    ours.sum().backward()
    of_lib.backward()
    for stacked, network in ((member.mask, page.mask), (member.action, page.values)):
        layers = zip(stacked.weights, stacked.biases, network[::2], strict=True)
        for weight, bias, layer in layers:
            for expected, gradient in (
                (weight.grad[0].T, layer.weight.grad),
                (bias.grad[0, 0], layer.bias.grad),
            ):
                scale = expected.abs().max()
                assert scale > 0
                assert (gradient - expected).abs().max() < 1e-5 * scale


def test_recommendations(both, people, flow):
    member, page = both
    x, preferences = people
    of_lib = member.recommend(x, preferences)
    with torch.no_grad():
        _, m, a = page(x, *for_page(preferences), torch.zeros(len(x), one_page.K))
        x_cf = flow.act(x, m, a)
    is_acted = in_columns(m) > 0
    assert torch.equal(is_acted, of_lib.is_acted)
    assert 0.2 < m.mean() < 0.9
    values = torch.where(is_acted, in_columns(a), x)
    assert torch.allclose(values, of_lib.values, rtol=1e-8, atol=1e-8)
    assert torch.allclose(x_cf, of_lib.x_cf, rtol=1e-8, atol=1e-8)


# all of it


def test_a_quick_run_reports(capsys):
    one_page.main(0.01)
    lines = capsys.readouterr().out.splitlines()
    report = {line[:40].strip(" ."): float(line[40:]) for line in lines}
    assert len(report) == len(lines) == 11
    assert report["accuracy of the classifier"] > 0.8
    assert -12 < report["log-likelihood of the flow, in nats"] < -8.5
    valid, plausible, joint, in_truth = list(report.values())[2:6]
    assert 0.3 < valid < 1 and 0.05 < plausible <= 1
    assert valid + plausible - 1 - 2e-3 <= joint <= min(valid, plausible)
    assert abs(valid - in_truth) < 0.1  # the flow is close to the true model
    can, acts, forbidden, easiest, hardest = list(report.values())[6:]
    assert abs(can - 2.5) < 0.1 and 0 < acts <= can and forbidden == 0
    assert hardest < easiest
