"""The causal flow against zuko's own transform, autograd, and a linear model."""

import numpy as np
import pytest
import torch

from lib import io
from lib.method import flow
from lib.method.graph import Graph


@pytest.fixture(scope="module")
def with_splines(problem):
    """The same problem with a spline in the place of every affine transform."""
    x = problem.population.x
    fitted, _ = flow.fit(
        problem.flow.graph,
        x["flow/train"],
        x["flow/validation"],
        hidden=(24, 16),
        n_bins=5,
        n_epochs=15,
        batch_size=100,
    )
    return problem.with_flow(fitted)


@pytest.fixture(params=["affine", "splines"])
def either(request, problem, with_splines):
    return problem if request.param == "affine" else with_splines


def test_agrees_with_zuko(either):
    """Feature by feature it is the same function as zuko's transform of all of them."""
    x = either.population.x["flow/test"]
    transform = either.flow.layer()
    z, log_volume = transform.call_and_ladj(x)
    assert torch.allclose(either.flow.abduct(x), z, atol=1e-9)
    log_p = log_volume + torch.distributions.Normal(0, 1).log_prob(z).sum(-1)
    assert torch.allclose(either.flow.log_prob(x), log_p, atol=1e-9)
    assert torch.allclose(either.flow(x)[1], log_p, atol=1e-9)
    assert torch.allclose(either.flow.predict(z), transform.inv(z), atol=1e-7)


def test_as_printed_it_has_1422_parameters(population):
    """CARMA's public configuration counts so many, with inner dimension 64."""
    printed = flow.CausalFlow(population.graph)
    assert sum(p.numel() for p in printed.parameters()) == 1_422


def test_weights_are_seen_when_they_change(problem):
    """What is cut out of the network follows its weights; causes stand in any order."""
    x, fitted = problem.population.x["flow/test"], problem.flow
    parents = {name: causes[::-1] for name, causes in fitted.graph.parents.items()}
    changed = flow.CausalFlow(Graph(parents), dtype=torch.float64)
    before = changed.log_prob(x)
    changed.load_state_dict(fitted.state_dict())
    assert not torch.allclose(changed.log_prob(x), before)
    assert torch.allclose(changed.log_prob(x), fitted.log_prob(x), atol=1e-12)
    with torch.no_grad():
        changed.layer.hyper[0].weight += 0.1
    assert not torch.allclose(changed.log_prob(x), fitted.log_prob(x))
    assert torch.allclose(changed.log_prob(x), changed(x)[1], atol=1e-9)


def test_terms_are_picked_and_known_transforms_are_used(either):
    """Amount and income keep their parents when they are acted on.

    Another feature's transform gives another answer, so that they are really used.
    """
    x = either.population.x["flow/test"][:20]
    terms = either.flow.log_prob_terms(x)
    assert torch.equal(either.flow.log_prob_terms(x, [5, 2]), terms[:, [5, 2]])
    after = x.clone()
    after[:, [3, 5]] += 0.7
    cached = either.flow.transforms(x, [3, 5])
    expected = either.flow.log_prob_terms(after)
    assert torch.equal(either.flow.log_prob_terms(after, cached=cached), expected)
    wrong = either.flow.log_prob_terms(after, [3], {3: cached[5]})
    assert not torch.allclose(wrong, expected[:, [3]])


def test_training_walk_is_the_counterfactual(either):
    """What nobody moves stays to the bit, and its gradient tells what acting would do."""
    x, rng = either.population.x["flow/test"], np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy((rng.random((len(x), 4)) < 0.4).astype(float))
    m[:50] = 0  # people who do nothing
    a = torch.from_numpy(rng.normal(size=(len(x), 4)))
    factual = either.flow.factual(x)
    x_cf, log_p = either.flow.act(factual, columns, m.requires_grad_(), a)
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[:, columns], values[:, columns] = m > 0, a
    assert torch.allclose(x_cf, either.flow.counterfactual(x, is_acted, values), atol=1e-9)
    assert torch.allclose(log_p, either.flow.log_prob(x_cf), atol=1e-8)
    assert torch.equal(log_p[:50], factual["log_p"][:50].sum(-1))
    (slope,) = torch.autograd.grad(log_p[:50].sum(), m)
    assert (slope[:50] != 0).any(-1).all()
    is_moved = is_acted.clone()
    for j, moves in either.flow.affected(is_acted).items():
        is_moved[:, j] |= moves
    assert (~is_moved).any(0).all() and torch.equal(x_cf[~is_moved], x[~is_moved])


def test_gradient_of_the_training_walk_by_finite_differences(either):
    """Masks between 0 and 1, so that every term of it counts."""
    x = either.population.x["flow/test"][:4]
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy(rng.uniform(0.2, 0.8, (4, 4))).requires_grad_()
    a = torch.from_numpy(rng.normal(size=(4, 4))).requires_grad_()
    factual = either.flow.factual(x)
    assert torch.autograd.gradcheck(
        lambda m, a: either.flow.act(factual, columns, m, a), (m, a)
    )


def test_noise_depends_on_parents_only(either):
    """The Jacobian of the abduction has the graph's pattern, and gives the volume term."""
    x = either.population.x["flow/test"][0]
    jacobian = torch.autograd.functional.jacobian(either.flow.abduct, x)
    allowed = either.flow.graph.adjacency() | torch.eye(7, dtype=torch.bool)
    assert (jacobian[~allowed] == 0).all()
    assert (jacobian[allowed] != 0).all()
    z = either.flow.abduct(x)
    log_p = jacobian.slogdet().logabsdet - 0.5 * z.square().sum() - 3.5 * np.log(2 * np.pi)
    assert either.flow.log_prob(x).item() == pytest.approx(log_p.item(), abs=1e-9)


def test_learns_a_linear_model():
    """M = 2 A + u: the fitted counterfactual of do(A = a) is M + 2 (a - A)."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=4_000)
    x = torch.from_numpy(np.stack([a, 2 * a + 0.5 * rng.normal(size=4_000)], -1))
    graph, short = Graph({"a": [], "m": ["a"]}), {"n_epochs": 60, "batch_size": 250}
    fitted, history = flow.fit(graph, x[:3000], x[3000:], hidden=(16,), **short)
    x_cf = fitted.counterfactual(x[3000:], do={"a": 0.5})
    assert (x_cf[:, 1] - (x[3000:, 1] + 2 * (0.5 - x[3000:, 0]))).abs().mean() < 0.1
    entropy = np.log(2 * np.pi * np.e) + np.log(0.5)  # of the truth, in nats
    assert history.validation.max() == pytest.approx(-entropy, abs=0.08)
    best = fitted.log_prob(x[3000:]).mean().item()
    assert best == pytest.approx(history.validation.max(), abs=1e-6)


@pytest.mark.parametrize("features", [["age"], ["age", "gender"]])
def test_without_edges_each_feature_has_its_own_normal(features):
    """The closed form: mean and standard deviation of the sample."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(0.3, 1.2, (500, len(features))))
    graph, short = Graph.from_edges(features, []), {"n_epochs": 400, "batch_size": 500}
    fitted, history = flow.fit(graph, x, x, learning_rate=0.05, **short)
    normal = torch.distributions.Normal(x.mean(0), x.std(0, correction=0))
    log_p = normal.log_prob(x).sum(-1)
    assert torch.allclose(fitted.log_prob(x), log_p, atol=1e-3)
    assert history.validation.max() == pytest.approx(log_p.mean().item(), abs=1e-5)
    moved = fitted.counterfactual(x, do={"age": 2.0})
    assert (moved[:, 0] == 2).all() and torch.equal(moved[:, 1:], x[:, 1:])


def test_spline_is_inverted_and_its_density_is_one(with_splines):
    fitted, x = with_splines.flow, with_splines.population.x["flow/test"]
    far = torch.cat([x, 3 * x, x[:1]])
    age = fitted.index("age")
    far[-1, age] = 200.0  # beyond the splines' range: arsinh alone
    assert torch.allclose(fitted.predict(fitted.abduct(far)), far, atol=1e-7)
    assert fitted.abduct(far)[-1, age].item() == pytest.approx(np.arcsinh(200.0))
    grid = torch.linspace(-60, 60, 200_001, dtype=torch.float64)
    income = fitted.index("income")
    person = x[:1].expand(len(grid), -1).clone()
    person[:, income] = grid
    density = fitted.log_prob_terms(person, [income])[:, 0].exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-4)


def test_same_seed_same_bits(problem):
    x, graph = problem.population.x, problem.population.graph
    people = x["flow/train"][:300], x["flow/validation"]
    one, two, other = (
        flow.fit(graph, *people, n_epochs=2, seed=seed)[0] for seed in (4, 4, 5)
    )
    test = x["flow/test"]
    assert torch.equal(one.log_prob(test), two.log_prob(test))
    assert not torch.equal(one.log_prob(test), other.log_prob(test))


def test_saved_is_loaded_and_knows_its_population(problem, with_splines, tmp_path):
    flows = {"affine": problem.flow, "splines": with_splines.flow}
    x = problem.population.x["flow/test"]
    flow.save_all(flows, tmp_path, "all", {"seed": 0}, "this one")
    of_all = flow.load_all(tmp_path, "all", "this one")
    for name, fitted in flows.items():
        fitted.save(tmp_path, name, {"seed": 0}, "this one")
        loaded = flow.CausalFlow.load(tmp_path, name, "this one")
        for again in (loaded, of_all[name]):
            assert torch.equal(again.log_prob(x), fitted.log_prob(x))
            assert again.graph == fitted.graph and again.settings == fitted.settings
    for load, name in ((flow.CausalFlow.load, "affine"), (flow.load_all, "all")):
        with pytest.raises(ValueError, match="fitted to another population"):
            load(tmp_path, name, "that one")


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden": [5]},
        {"parents": {"a": [], "b": ["a"]}},
        {"parents": {"a": ["b"], "b": ["a"]}},
        {"depth": 3},
    ],
)
def test_files_that_hold_no_flow_are_named(problem, tmp_path, changed):
    settings = problem.flow.settings | changed
    io.save(tmp_path, "broken", problem.flow.state_dict(), settings, {})
    with pytest.raises(ValueError, match=r"broken.safetensors holds no causal flow: "):
        flow.CausalFlow.load(tmp_path, "broken")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "gelu"}, r"Unknown activation 'gelu'"),
        ({"hidden": (2.5,)}, r"hidden must be a whole number above zero, got 2.5"),
        ({"n_bins": -1}, r"n_bins must be a whole number above zero"),
        ({"n_epochs": 0}, r"n_epochs must be a whole number above zero"),
        ({"learning_rate": -1.0}, r"learning_rate must be above zero"),
        ({"x": torch.zeros(9, 2)}, r"x has shape \(9, 2\).* label column"),
        ({"x": torch.zeros(0, 1)}, "x is empty"),
        ({"x": torch.tensor([[torch.nan]])}, "x holds NaN"),
        ({"x_validation": torch.zeros(9, 1).double()}, r"the model works in torch.float32"),
        ({"learning_rate": 1e30}, r"fit of the flow diverged: its .* is (nan|-?inf)"),
    ],
)
def test_what_cannot_be_fitted_is_refused(settings, message):
    x = torch.randn(50, 1, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=message):
        flow.fit(
            Graph({"age": ()}), **{"x": x, "x_validation": x, "n_epochs": 5, **settings}
        )


def test_other_dtypes_and_columns_are_refused(problem):
    x = problem.population.x["flow/test"]
    for ask in (problem.flow.abduct, problem.flow.predict, problem.flow.log_prob):
        with pytest.raises(ValueError, match=r"torch.float32, the model works in"):
            ask(x.float())
    with pytest.raises(ValueError, match=r"x_parents has shape .*, expected \(\d+, 1\)"):
        problem.flow.transform_of(6, x[:, :2])
