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


def test_changed_weights_are_seen(problem):
    """What is cut out of the network for each feature follows its weights."""
    x = problem.population.x["flow/test"]
    changed = flow.CausalFlow(problem.flow.graph, dtype=torch.float64)
    changed.load_state_dict(problem.flow.state_dict())
    before = changed.log_prob(x)
    with torch.no_grad():
        changed.layer.hyper[0].weight += 0.1
    assert not torch.equal(changed.log_prob(x), before)
    assert torch.allclose(changed.log_prob(x), changed(x)[1], atol=1e-9)
    changed.load_state_dict(problem.flow.state_dict())
    assert torch.equal(changed.log_prob(x), before)


def test_causes_may_be_listed_in_any_order(problem):
    x = problem.population.x["flow/test"]
    parents = {name: causes[::-1] for name, causes in problem.flow.graph.parents.items()}
    same = flow.CausalFlow(Graph(parents), dtype=torch.float64)
    same.load_state_dict(problem.flow.state_dict())
    assert torch.allclose(same.log_prob(x), problem.flow.log_prob(x), atol=1e-12)


def test_terms_add_up_and_can_be_picked(either):
    x = either.population.x["flow/test"][:20]
    terms = either.flow.log_prob_terms(x)
    assert torch.allclose(terms.sum(-1), either.flow.log_prob(x))
    assert torch.equal(either.flow.log_prob_terms(x, [5, 2]), terms[:, [5, 2]])


def test_cached_transforms_are_used(either):
    """Amount and income keep their parents when they are acted on.

    Another feature's transform gives another answer, so that they are really used.
    """
    x = either.population.x["flow/test"][:20]
    after = x.clone()
    after[:, [3, 5]] += 0.7
    cached = either.flow.transforms(x, [3, 5])
    assert torch.equal(
        either.flow.log_prob_terms(after, cached=cached), either.flow.log_prob_terms(after)
    )
    wrong = either.flow.log_prob_terms(after, [3], {3: cached[5]})
    assert not torch.allclose(wrong, either.flow.log_prob_terms(after, [3]))


def test_training_walk_is_the_counterfactual(either):
    """`act` gives what `counterfactual` gives, and its log-density."""
    x = either.population.x["flow/test"]
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy((rng.random((len(x), 4)) < 0.5).astype(float))
    a = torch.from_numpy(rng.normal(size=(len(x), 4)))
    x_cf, log_p = either.flow.act(either.flow.factual(x), columns, m, a)
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[:, columns], values[:, columns] = m > 0, a
    assert torch.allclose(x_cf, either.flow.counterfactual(x, is_acted, values), atol=1e-9)
    assert torch.allclose(log_p, either.flow.log_prob(x_cf), atol=1e-8)


def test_what_nobody_acts_on_is_kept_to_the_bit_in_training(either):
    """In float32, where rounding shows; they still learn what acting would do."""
    ours = flow.CausalFlow(either.flow.graph, **either.flow.settings)
    ours.load_state_dict(either.flow.state_dict())
    ours.requires_grad_(False)
    x = either.population.x["flow/test"].float()
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy((rng.random((len(x), 4)) < 0.4).astype("float32"))
    m[:50] = 0  # people who do nothing
    a = torch.from_numpy(rng.normal(size=(len(x), 4)).astype("float32"))
    m, a = m.requires_grad_(), a.requires_grad_()
    factual = ours.factual(x)
    x_cf, log_p = ours.act(factual, columns, m, a)
    assert torch.equal(x_cf[:50], x[:50])
    assert torch.equal(log_p[:50], factual["log_p"][:50].sum(-1))
    for j in columns:
        causes = [k for k, i in enumerate(columns) if j in ours.graph.affected_by([i])]
        stays = (m[:, causes] == 0).all(-1)
        assert stays.any() and torch.equal(x_cf[stays, j], x[stays, j])
    (slope,) = torch.autograd.grad(log_p[:50].sum(), m)
    assert (slope[:50] != 0).any(-1).all()


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


def test_splines_learn_two_modes():
    """Half of people near -1, half near 1: an affine flow can only give one broad mode."""
    rng = np.random.default_rng(0)
    modes = np.where(rng.random(6_000) < 0.5, -1, 1) + 0.1 * rng.normal(size=6_000)
    x = torch.from_numpy(np.stack([modes, modes + rng.normal(size=6_000)], -1))
    entropy = np.log(0.1) + np.log(2 * np.pi * np.e) + np.log(2)  # modes do not overlap
    how = {"n_epochs": 60, "batch_size": 250, "learning_rate": 2e-2}
    validation = {}
    for n_bins in (0, 8):
        graph = Graph({"a": [], "b": ["a"]})
        _, history = flow.fit(graph, x[:5000], x[5000:], n_bins=n_bins, **how)
        validation[n_bins] = history.validation.max()
    assert validation[8] == pytest.approx(-entropy, abs=0.1)
    assert validation[0] < -entropy - 0.5


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
    for name, fitted in flows.items():
        fitted.save(tmp_path, name, {"seed": 0}, "this one")
        loaded = flow.CausalFlow.load(tmp_path, name, "this one")
        of_all = flow.load_all(tmp_path, "all", "this one")[name]
        for again in (loaded, of_all):
            assert torch.equal(again.log_prob(x), fitted.log_prob(x))
            assert again.graph == fitted.graph and again.settings == fitted.settings
    with pytest.raises(ValueError, match="fitted to another population"):
        flow.CausalFlow.load(tmp_path, "affine", "that one")
    with pytest.raises(ValueError, match="fitted to another population"):
        flow.load_all(tmp_path, "all", "that one")


def test_files_that_hold_no_flow_are_named(problem, tmp_path):
    weights, header = problem.flow.state_dict(), problem.flow._header()
    broken = {
        "no weights": ({"a": torch.zeros(1)}, header),
        "no graph": (weights, {"hidden": [64], "activation": "elu"}),
        "another width": (weights, header | {"hidden": [5]}),
        "another graph": (weights, header | {"parents": {"a": [], "b": ["a"]}}),
        "a circle": (weights, header | {"parents": {"a": ["b"], "b": ["a"]}}),
        "more settings": (weights, header | {"depth": 3}),
    }
    for name, (tensors, settings) in broken.items():
        io.save(tmp_path, name, tensors, settings, {})
        with pytest.raises(ValueError, match=rf"{name}.safetensors holds no causal flow: "):
            flow.CausalFlow.load(tmp_path, name)


def three_features(problem):
    """Three features of the flow's training split, and a graph over them."""
    x = problem.population.x["flow/train"][:200, :3]
    return Graph({"gender": (), "age": (), "education": ("gender", "age")}), x


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "gelu"}, r"Unknown activation 'gelu'"),
        ({"hidden": (0,)}, r"hidden must be a whole number above zero"),
        ({"hidden": (2.5,)}, r"hidden must be a whole number above zero, got 2.5"),
        ({"n_bins": -1}, r"n_bins must be a whole number above zero"),
        ({"n_epochs": 0}, r"n_epochs must be a whole number above zero"),
        ({"batch_size": 0.5}, r"batch_size must be a whole number above zero"),
        ({"learning_rate": -1.0}, r"learning_rate must be above zero"),
    ],
)
def test_bad_settings_are_refused(problem, settings, message):
    graph, x = three_features(problem)
    with pytest.raises(ValueError, match=message):
        flow.fit(graph, x, x, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: (x[:, :2], x), r"x has shape \(200, 2\).* label column"),
        (lambda x: (x, x[:, :2]), r"x_validation has shape \(200, 2\)"),
        (lambda x: (x[:0], x), r"x has shape \(0, 3\), .* at least one person"),
        (lambda x: (x[None], x), r"x has shape \(1, 200, 3\), expected \(N, 3\)"),
        (lambda x: (x, x.float()), r"float64 and x_validation torch.float32"),
        (lambda x: (x * torch.nan, x), r"x holds NaN"),
    ],
)
def test_bad_people_are_refused(problem, change, message):
    graph, x = three_features(problem)
    with pytest.raises(ValueError, match=message):
        flow.fit(graph, *change(x))


def test_a_fit_that_diverges_stops(problem):
    graph, x = three_features(problem)
    with pytest.raises(
        ValueError, match=r"fit of the flow diverged: its .* is (nan|-?inf)"
    ):
        flow.fit(graph, x, x, learning_rate=1e200, n_epochs=5)


def test_other_dtypes_and_columns_are_refused(problem):
    x = problem.population.x["flow/test"]
    for ask in (problem.flow.abduct, problem.flow.predict, problem.flow.log_prob):
        with pytest.raises(ValueError, match=r"torch.float32, the model works in"):
            ask(x.float())
    with pytest.raises(ValueError, match="Unknown column 7"):
        problem.flow.log_prob_terms(x, [7])
    with pytest.raises(ValueError, match="columns is empty"):
        problem.flow.log_prob_terms(x, [])
    with pytest.raises(ValueError, match=r"x_parents of savings .* 1 causes \(income\)"):
        problem.flow.transform_of(6, x[:, :2])
