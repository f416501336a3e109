"""The method on one page against lib: the same weights, people and noise give the same.

All is in float64. Settings and profiles stay in float32 in lib, so that what depends on
them agrees to a hundred-thousandth: 1 - 0.99 has so many digits there.
"""

import lib.pinned

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import one_page
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from lib.base import files
from lib.method import loan, training
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import TERMS, ICarma
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler

# a committed stack, and the position of the member that is compared
STACKS = {"loan_icarma_hard": 3, "loan_icarma_ranking": 10}
LINEAR = Profile(gamma=1.0)
FIXED = [term for term in TERMS if term != "hinge"]  # that of the hinge grows

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
    population, h, flow = committed.population, committed.classifier, committed.flow
    x = {split: own.double() for split, own in population.x.items()}
    x["recourse/train"] = x["recourse/train"][torch.arange(10_000) % 50]
    layers = ([part.double() for part in parts] for parts in (h.weights, h.biases))
    weights = {name: weight.double() for name, weight in flow.weights.items()}
    return Problem(
        replace(population, x=x),
        NetworkClassifier(h.features, *layers),
        CausalFlow(flow.graph, weights=weights, **flow.settings),
    )


def copy(page: nn.Module, weights: list[Tensor], biases: list[Tensor]) -> None:
    """Copy weights of lib, with shapes (in, out), into a dense network of the page."""
    layers = [part for part in page.modules() if isinstance(part, nn.Linear)]
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        layer.weight.data.copy_(weight.T)
        layer.bias.data.copy_(bias.flatten())


@pytest.fixture(scope="module")
def bank(problem) -> nn.Module:
    h = nn.Sequential(one_page.network(7, 32, 32, 1), nn.Flatten(0)).double()
    copy(h, problem.classifier.weights, problem.classifier.biases)
    return h.requires_grad_(False)


@pytest.fixture(scope="module")
def flow(problem) -> one_page.Flow:
    (width,), weights = problem.flow.settings["hidden"], problem.flow.weights
    page = one_page.Flow(width).double()
    for name, own in zip(problem.flow.features, page.networks, strict=True):
        if f"{name}.raw" in weights:  # nothing causes it: the network sees a zero
            own[-1].weight.data.zero_()
            own[-1].bias.data.copy_(weights[f"{name}.raw"])
        else:
            kinds = ("weight", "bias")
            copy(own, *([weights[f"{name}.{kind}_{i}"] for i in (0, 1)] for kind in kinds))
    return page.requires_grad_(False)


@pytest.fixture(scope="module", params=STACKS)
def both(request, committed, problem, bank, flow) -> Compared:
    """One member, as a stack of lib's that asks for gradients, and as the page has it."""
    found = ICarma.load(files.MODELS, request.param, committed)
    found = found.select([STACKS[request.param]])
    weights = {k: w.detach().double().requires_grad_() for k, w in found.weights.items()}
    stack = ICarma(problem, found.settings, found.seeds, weights)
    low, high = problem.population.low, problem.population.high
    page = one_page.ICarma(bank, flow, low, high).double()
    for which, own in (("mask", page.mask), ("action", page.values)):
        kinds = ("weight", "bias")
        copy(
            own, *([weights[f"{which}_{kind}_{i}"][0] for i in range(3)] for kind in kinds)
        )
    (settings,) = stack.settings
    page.weights = tuple(getattr(settings, term) for term in FIXED)
    page.tau, page.margin = settings.tau, settings.margin
    for name in ("w_max", "p_max", "p_min"):
        setattr(page, name, getattr(settings.profile, name))
    return stack, page


@pytest.fixture(scope="module")
def people(problem) -> tuple[Tensor, Preferences]:
    x = problem.refused("test")[:500]
    sampler = RankingSampler(problem.population.actionable)
    return x, sampler.draw(range(len(x)), np.random.default_rng(1))


def told(stack: ICarma, preferences: Preferences) -> tuple[Tensor, Tensor]:
    """Return preferences of lib as the page takes them: who can, and how hard it is."""
    hard = stack.settings[0].profile.hardness(preferences)
    return preferences.is_actionable.double(), hard.double()


def in_columns(part: Tensor) -> Tensor:
    """Return something of the actionable features in the columns of all seven."""
    return torch.cat([part.new_zeros(len(part), 3), part], -1)


# the true world


def test_true_world():
    scm, rng = loan.scm(), np.random.default_rng(2)
    u = scm.draw_noise(2_000, rng)
    m = torch.from_numpy(rng.integers(0, 2, (len(u), one_page.K))).double()
    a = torch.from_numpy(rng.normal(0, 5, m.shape))
    x = one_page.true_world(u, torch.zeros_like(m), a)
    assert torch.allclose(x, scm.predict(u), rtol=1e-12, atol=1e-12)
    assert torch.allclose(scm.abduct(x), u, rtol=1e-8, atol=1e-8)  # of a logit
    acted = scm.counterfactual(x, in_columns(m) > 0, in_columns(a))
    ours = one_page.true_world(u, m, a)
    assert torch.allclose(ours, acted, rtol=1e-12, atol=1e-12)
    for people in (x, ours):
        assert torch.equal(one_page.repays(people), loan.label(people))
    assert 0.4 < loan.label(x).double().mean() < 0.6


def test_noise_has_the_laws_of_lib():
    u = one_page.draw_noise(20_000)
    for own, (name, equation) in zip(
        u.T.numpy(), loan.scm().equations.items(), strict=True
    ):
        if name == "gender":
            assert set(own) == {0, 1} and abs(own.mean() - 0.5) < 0.02
        else:
            assert stats.kstest(own, equation.noise.cdf).pvalue > 1e-3, name
    assert abs(np.corrcoef(u.T.numpy()) - np.eye(7)).max() < 0.03


# what is learned


def test_bank(problem, bank):
    x = problem.population.x["recourse/test"]
    ours, of_lib = bank(x), problem.classifier.logit(x)
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


def test_steep_slopes_stay_bounded():
    """A network that asks for a slope of exp(40) gets less than 1,000, here and in lib."""
    page, zero, raw = one_page.Flow(1).double(), torch.zeros(1), torch.tensor([0.5, 40.0])
    graph = loan.population(20, 20, 20).graph
    weights = {}
    for name, own in zip(graph.features, page.networks, strict=True):
        n_causes = max(len(graph.parents[name]), 1)
        layers = [torch.zeros(n_causes, 1), torch.zeros(1, 2)], [zero, raw]
        copy(own, *layers)
        if graph.parents[name]:
            for kind, parts in zip(("weight", "bias"), layers, strict=True):
                weights |= {f"{name}.{kind}_{i}": p.double() for i, p in enumerate(parts)}
        else:
            weights[f"{name}.raw"] = raw.double()
    of_lib = CausalFlow(graph, [1], "elu", weights)
    x = torch.randn(10, 7, dtype=torch.float64)
    with torch.no_grad():
        z, log_p = page(x)
    assert (z - 0.5).abs().max() < 1_000 * x.abs().max()
    assert torch.allclose(z, of_lib.abduct(x), rtol=1e-12, atol=1e-12)
    assert torch.allclose(log_p, of_lib.log_prob(x), rtol=1e-12, atol=1e-12)


# preferences


def test_preferences_are_rankings_of_lib():
    can, hard = one_page.preferences(4_000)
    scores = torch.where(can > 0, (3 * hard).round().long() + 1, 5)
    preferences = Preferences(scores)  # everybody can do something
    assert torch.equal(preferences.is_actionable.float(), can)
    assert torch.allclose(LINEAR.hardness(preferences), hard, rtol=1e-6, atol=0)
    n_open = can.sum(-1).long()
    for row, n in zip(scores.tolist(), n_open.tolist(), strict=True):
        assert sorted(row)[:n] == list(range(1, n + 1))
    of_lib = RankingSampler(("a", "b", "c", "d")).draw(
        range(4_000), np.random.default_rng(0)
    )
    for ours, drawn in (
        (n_open, of_lib.is_actionable.sum(-1)),
        (scores[:, 0], of_lib.scores[:, 0]),
    ):
        table = [torch.bincount(part, minlength=6)[1:].numpy() for part in (ours, drawn)]
        table = np.array(table)[:, np.sum(table, 0) > 0]
        assert stats.chi2_contingency(table).pvalue > 1e-3


# iCARMA


def test_settings_are_those_that_were_found(committed):
    """The page trains with the linear profile, as printed."""
    stack = ICarma.load(files.MODELS, "loan_icarma_ranking", committed)
    settings, page = stack.settings[STACKS["loan_icarma_ranking"]], one_page.ICarma
    assert page.weights == tuple(getattr(settings, term) for term in FIXED)
    assert settings.hinge is None and settings.likelihood and settings.on_probability
    assert (page.tau, page.margin) == (settings.tau, settings.margin)
    assert Profile(1.0, page.w_max, page.p_min, page.p_max) == settings.profile
    how = settings.batch_size, settings.learning_rate, settings.hidden
    assert how == (128, 5e-3, 64) and settings.falling


def test_loss_and_gradients(problem, both, people):
    stack, page = both
    (x, preferences), (settings,) = people, stack.settings
    can, hard = told(stack, preferences)
    noise = torch.from_numpy(np.random.default_rng(4).logistic(size=(len(x), one_page.K)))
    factual = problem.flow.factual(x, stack.columns)
    terms = stack.loss_terms(stack.batch(factual, preferences, noise[None]))
    weigh = training._TermWeights([settings], torch.float64)
    page.multiplier = 20.0  # as after some batches
    weigh.multiplier += page.multiplier
    by_term = torch.stack([terms[name] for name in TERMS])
    weighed = (weigh(by_term.detach()) * by_term)[:, 0]
    of_lib = torch.stack([weighed[TERMS.index(name)] for name in [*FIXED, "hinge"]])
    ours = page.loss(x, can, hard, noise)
    assert page.multiplier == pytest.approx(weigh.multiplier.item(), rel=1e-6)
    for name, own, other in zip(
        [*FIXED, "hinge"], ours.tolist(), of_lib.tolist(), strict=True
    ):
        assert own != 0 and own == pytest.approx(other, rel=1e-5), name
    assert ours.sum().item() == pytest.approx(of_lib.sum().item(), rel=1e-5)

    page.zero_grad()
    ours.sum().backward()
    gradients = torch.autograd.grad(of_lib.sum(), list(stack.weights.values()))
    for name, gradient in zip(stack.weights, gradients, strict=True):
        which, kind, i = name.split("_")
        network = page.mask if which == "mask" else page.values
        found = getattr(network[2 * int(i)], kind).grad
        expected = gradient[0].T if kind == "weight" else gradient[0, 0]
        scale = expected.abs().max()
        assert scale > 0, name
        assert (found - expected).abs().max() < 1e-5 * scale, name


def test_recommendations(both, people, flow):
    stack, page = both
    x, preferences = people
    of_lib = stack.recommend(x, preferences)[0]
    with torch.no_grad():
        _, m, a = page(x, *told(stack, preferences), torch.zeros(len(x), one_page.K))
        x_cf = flow.act(x, m, a)
    is_acted = in_columns(m) > 0
    assert torch.equal(is_acted, of_lib.is_acted)
    assert 0.2 < m.mean() < 0.9
    values = torch.where(is_acted, in_columns(a), x)
    assert torch.allclose(values, of_lib.values, rtol=1e-8, atol=1e-8)
    assert torch.allclose(x_cf, of_lib.x_cf, rtol=1e-8, atol=1e-8)


def test_nothing_forbidden_is_acted_on(problem, bank, flow):
    """By networks that know nothing; what is forbidden only follows from other actions."""
    x, population = problem.population.x["recourse/test"], problem.population
    page = one_page.ICarma(bank, flow, population.low, population.high).double()
    with torch.no_grad():
        can = torch.randint(2, (len(x), one_page.K)).double()
        hard = can * torch.rand_like(can)
        logits, m, a = page(x, can, hard, torch.randn_like(can))
        moved = flow.act(x, m, a) - x
        logits, without_noise, _ = page(x, can, hard, torch.zeros_like(can))
    assert torch.equal(without_noise, can * (logits > 0))  # 0 or 1, to the bit
    assert (m[can == 0] == 0).all() and (m[can == 1].unique() == torch.tensor([0, 1])).all()
    assert 0.2 < m.mean() < 0.3  # about half of what is allowed
    for k in (0, 2):  # nothing that people can act on causes the amount or the income
        assert moved[m[:, k] == 0, 3 + k].abs().max() < 1e-9
        assert moved[m[:, k] == 1, 3 + k].abs().max() > 0.1
    assert moved[can.sum(-1) == 0].abs().max() < 1e-9
    assert (moved[:, :3] == 0).all()


# all of it


def test_a_quick_run_reports(capsys, monkeypatch):
    worlds, asked = [], []  # what the run asks the true world, and the networks
    true_world, forward = one_page.true_world, one_page.ICarma.forward

    def spied_world(*given):
        worlds.append(given)
        return true_world(*given)

    def spied_networks(self, x, *given):
        asked[:] = x, forward(self, x, *given)
        return asked[1]

    monkeypatch.setattr(one_page, "true_world", spied_world)
    monkeypatch.setattr(one_page.ICarma, "forward", spied_networks)
    one_page.main(0.01)

    (everyone, *nothing), (u, m, a) = worlds
    past = true_world(everyone, *nothing)[:20_000]
    x, (_, m_asked, a_asked) = asked
    in_units = x * past.std(0) + past.mean(0)
    assert torch.allclose(true_world(u, 0 * m, a), in_units, atol=1e-4)
    assert torch.equal(m, m_asked)
    values = a_asked * past.std(0)[3:] + past.mean(0)[3:]
    assert torch.allclose(a, values, atol=1e-4)

    lines = capsys.readouterr().out.splitlines()
    report = {line[:40].strip(" ."): float(line[40:]) for line in lines}
    assert len(report) == len(lines) == 11
    assert report["accuracy of the bank"] > 0.8
    assert -12 < report["log-likelihood of the flow, in nats"] < -8.5
    valid, plausible, joint, in_truth = list(report.values())[2:6]
    assert 0.3 < valid < 1 and 0.05 < plausible <= 1
    assert valid + plausible - 1 - 2e-3 <= joint <= min(valid, plausible)
    assert abs(valid - in_truth) < 0.1  # the flow knows the world by and large
    can, acts, forbidden, easiest, hardest = list(report.values())[6:]
    assert abs(can - 2.5) < 0.1 and 0 < acts <= can and forbidden == 0
    assert acts == pytest.approx(m.sum(-1).mean().item(), abs=1e-3)
    assert hardest < easiest
