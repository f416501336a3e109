"""The causal flow against zuko's own transform, autograd, and a linear model."""

import numpy as np
import pytest
import torch

from lib.base import files
from lib.method import flow, networks
from lib.method.world import Graph


@pytest.fixture(scope="module")
def with_splines(problem):
    """The same problem with a spline in the place of every affine map."""
    x = problem.population.x
    fitted, _ = flow.fit(
        problem.flow.graph,
        x["flow/train"],
        x["flow/validation"],
        n_bins=5,
        n_epochs=15,
        batch_size=100,
    )
    return problem.under(fitted)


@pytest.fixture(params=["affine", "splines"])
def either(request, problem, with_splines):
    return problem if request.param == "affine" else with_splines


def test_agrees_with_zuko(problem, as_zuko):
    """A network a feature is the same function as zuko's transform around all of them."""
    x = problem.population.x["flow/test"]
    transform = as_zuko(problem.flow)
    z, log_volume = transform.call_and_ladj(x)
    assert torch.allclose(problem.flow.abduct(x), z, atol=1e-9)
    log_p = log_volume + torch.distributions.Normal(0, 1).log_prob(z).sum(-1)
    assert torch.allclose(problem.flow.log_prob(x), log_p, atol=1e-9)
    assert torch.allclose(problem.flow.predict(z), transform.inv(z), atol=1e-9)


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
@pytest.mark.parametrize("n_bins", [0, 5])
def test_networks_side_by_side_are_the_networks(problem, hidden, n_bins):
    """The stack in which networks are fitted has the likelihood of the single ones."""
    x, graph = problem.population.x["flow/test"], problem.flow.graph
    rng = np.random.default_rng(0)
    weights = networks.first_weights(graph, hidden, n_bins, rng, x.dtype)
    weights = {name: w + 0.1 for name, w in weights.items()}  # roots, too, differ from zero
    stack = networks.SideBySide(graph, hidden, "elu", n_bins, weights)
    ours = flow.CausalFlow(graph, hidden, "elu", weights, n_bins)
    one = stack.log_likelihood(x)
    assert one.item() == pytest.approx(ours.log_prob(x).mean().item(), abs=1e-10)
    for _ in range(3):
        gradients = torch.autograd.grad(stack.log_likelihood(x), stack.leaves)
        with torch.no_grad():
            for leaf, gradient in zip(stack.leaves, gradients, strict=True):
                leaf += 0.01 * gradient
    later = flow.CausalFlow(graph, hidden, "elu", stack.by_name(), n_bins)
    now = stack.log_likelihood(x).item()
    assert now == pytest.approx(later.log_prob(x).mean().item(), abs=1e-10)
    assert now > one.item()  # uphill
    assert all(torch.equal(w, ours.weights[name]) for name, w in weights.items())


def test_causes_may_be_listed_in_any_order(problem):
    x = problem.population.x["flow/test"]
    parents, settings = problem.flow.graph.parents, problem.flow.settings
    turned = Graph({name: causes[::-1] for name, causes in parents.items()})
    weights = {
        name: weight.flip(0) if name.endswith("weight_0") else weight  # a row a cause
        for name, weight in problem.flow.weights.items()
    }
    same = flow.CausalFlow(turned, weights=weights, **settings)
    assert turned.parents != parents and torch.allclose(
        same.log_prob(x), problem.flow.log_prob(x), atol=1e-12
    )


def test_terms_add_up_and_can_be_picked(either):
    x = either.population.x["flow/test"][:20]
    terms = either.flow.log_prob_terms(x)
    assert torch.allclose(terms.sum(-1), either.flow.log_prob(x))
    assert torch.equal(either.flow.log_prob_terms(x, [5, 2]), terms[:, [5, 2]])


def test_known_maps_are_used_in_place_of_the_networks(either):
    """Amount and income keep their parents when they are acted on: their maps may be given.

    Another feature's map gives another answer, so that they are really used.
    """
    x = either.population.x["flow/test"][:20]
    after = x.clone()
    after[:, [3, 5]] += 0.7
    known = {
        j: either.flow.map_of(j, x[:, either.flow.graph.parent_index[j]]) for j in (3, 5)
    }
    assert torch.equal(
        either.flow.log_prob_terms(after, known=known), either.flow.log_prob_terms(after)
    )
    wrong = {3: known[5]}
    assert not torch.allclose(
        either.flow.log_prob_terms(after, [3], wrong),
        either.flow.log_prob_terms(after, [3]),
    )


def test_training_walk_is_the_counterfactual(either):
    """`act` gives what `counterfactual` gives, and the change of `log_prob`."""
    x = either.population.x["flow/test"]
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy((rng.random((len(x), 4)) < 0.5).astype(float))
    a = torch.from_numpy(rng.normal(size=(len(x), 4)))
    x_cf, gain = either.flow.act(either.flow.factual(x, columns), columns, m, a)
    is_acted, values = torch.zeros_like(x, dtype=torch.bool), x.clone()
    is_acted[:, columns], values[:, columns] = m > 0, a
    assert torch.allclose(x_cf, either.flow.counterfactual(x, is_acted, values), atol=1e-9)
    assert torch.allclose(
        gain, either.flow.log_prob(x_cf) - either.flow.log_prob(x), atol=1e-8
    )


def test_what_nobody_acts_on_is_kept_to_the_bit_in_training(either):
    """In float32, where rounding shows; gradients are those of the plain walk."""
    weights = {name: weight.float() for name, weight in either.flow.weights.items()}
    ours = flow.CausalFlow(either.flow.graph, weights=weights, **either.flow.settings)
    x = either.population.x["flow/test"].float()
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m = torch.from_numpy((rng.random((len(x), 4)) < 0.4).astype("float32"))
    m[:50] = 0  # people told nothing
    a = torch.from_numpy(rng.normal(size=(len(x), 4)).astype("float32"))
    m, a = m.requires_grad_(), a.requires_grad_()
    # others before them, so that they stand in other rows than when they were abducted
    turned = ours.factual(x.flip(0), columns)
    factual = {name: part.flip(0) for name, part in turned.items()}
    x_cf, gain = ours.act(factual, columns, m, a)
    assert torch.equal(gain[:50], torch.zeros(50)) and torch.equal(x_cf[:50], x[:50])
    assert (gain[m.any(-1)] != 0).all()
    for j in columns:
        movers = [k for k, i in enumerate(columns) if j in ours.graph.moved_by([i])]
        stays = (m[:, movers] == 0).all(-1)
        assert stays.any() and torch.equal(x_cf[stays, j], x[stays, j])
    # a mask next to nothing counts as an action: nothing is replaced there
    barely = torch.where(m > 0, m, 1e-30).detach().requires_grad_()
    found = [
        torch.autograd.grad(sum(part.sum() for part in act), (own, a))
        for own, act in (
            (m, (x_cf, gain)),
            (barely, ours.act(factual, columns, barely, a)),
        )
    ]
    for with_zeros, plain in zip(*found, strict=True):
        assert torch.allclose(with_zeros, plain, atol=1e-4, rtol=1e-4)
    assert (found[0][0][:50] != 0).any(-1).all()  # they still learn what acting would do


def test_gradient_of_the_training_walk_by_finite_differences(either):
    """Masks between 0 and 1, so that every part of it counts."""
    x = either.population.x["flow/test"][:4]
    rng = np.random.default_rng(0)
    columns = either.population.actionable_index
    m, a = (
        torch.from_numpy(part).requires_grad_()
        for part in (rng.uniform(0.2, 0.8, (4, 4)), rng.normal(size=(4, 4)))
    )
    factual = either.flow.factual(x, columns)
    assert torch.autograd.gradcheck(
        lambda m, a: either.flow.act(factual, columns, m, a), (m, a)
    )


def test_latent_depends_on_parents_only(either):
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
    fitted, history = flow.fit(
        Graph({"a": [], "m": ["a"]}),
        x[:3000],
        x[3000:],
        hidden=(16,),
        n_epochs=60,
        batch_size=250,
    )
    is_acted = torch.tensor([[True, False]]).expand(1000, -1)
    x_cf = fitted.counterfactual(
        x[3000:], is_acted, torch.full((1000, 2), 0.5, dtype=torch.float64)
    )
    assert (x_cf[:, 1] - (x[3000:, 1] + 2 * (0.5 - x[3000:, 0]))).abs().mean() < 0.1
    entropy = np.log(2 * np.pi * np.e) + np.log(0.5)  # of the truth, in nats
    assert history["validation"].max() == pytest.approx(-entropy, abs=0.08)
    assert fitted.log_prob(x[3000:]).mean().item() == pytest.approx(
        history["validation"].max(), abs=1e-6
    )


def test_same_seed_same_bits_and_saved_is_loaded(problem, tmp_path):
    x = problem.population.x
    graph = problem.population.graph
    one, _ = flow.fit(
        graph, x["flow/train"][:300], x["flow/validation"], n_epochs=2, seed=4
    )
    two, _ = flow.fit(
        graph, x["flow/train"][:300], x["flow/validation"], n_epochs=2, seed=4
    )
    other, _ = flow.fit(
        graph, x["flow/train"][:300], x["flow/validation"], n_epochs=2, seed=5
    )
    test = x["flow/test"]
    assert torch.equal(one.log_prob(test), two.log_prob(test))
    assert not torch.equal(one.log_prob(test), other.log_prob(test))
    one.save(tmp_path, "loan_flow", {})
    assert torch.equal(
        flow.CausalFlow.load(tmp_path, "loan_flow").log_prob(test), one.log_prob(test)
    )


def three(problem):
    """Three features of the flow's training split, and a graph over them."""
    x = problem.population.x["flow/train"][:200, :3]
    return Graph({"gender": (), "age": (), "education": ("gender", "age")}), x


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "gelu"}, r"Unknown activation 'gelu'"),
        ({"hidden": (0,)}, r"hidden must be a whole number above zero"),
        ({"hidden": (2.5,)}, r"hidden must be a whole number above zero, got 2.5"),
        ({"n_bins": -1}, r"n_bins must be a whole number, 0 \(affine\) or above"),
        ({"n_bins": 2.5}, r"n_bins must be a whole number"),
        ({"n_epochs": 0}, r"n_epochs must be a whole number above zero"),
        ({"batch_size": 0.5}, r"batch_size must be a whole number above zero"),
        ({"learning_rate": -1.0}, r"learning_rate must be above zero"),
    ],
)
def test_bad_settings_are_refused(problem, settings, message):
    graph, x = three(problem)
    with pytest.raises(ValueError, match=message):
        flow.fit(graph, x, x, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: (x[:, :2], x), r"x has shape \(200, 2\).* label column"),
        (lambda x: (x, x[:, :2]), r"x_validation has shape \(200, 2\)"),
        (lambda x: (x[:0], x), r"x has shape \(0, 3\), .* at least one person"),
        (lambda x: (x, x[:0]), r"x_validation has shape \(0, 3\)"),
        (lambda x: (x[None], x), r"x has shape \(1, 200, 3\), expected \(N, 3\)"),
        (lambda x: (x, x.float()), r"float64 and x_validation torch.float32"),
        (lambda x: (x * torch.nan, x), r"x holds NaN"),
    ],
)
def test_bad_people_are_refused(problem, change, message):
    graph, x = three(problem)
    with pytest.raises(ValueError, match=message):
        flow.fit(graph, *change(x))


@pytest.mark.parametrize("n_bins", [0, 4])
def test_a_fit_that_diverges_stops(problem, n_bins):
    """After a huge step the log-likelihood is NaN or infinite."""
    graph, x = three(problem)
    with pytest.raises(
        ValueError,
        match=r"fit of the flow diverged: its log-likelihood of x.* is (nan|-?inf) after "
        r"epoch \d+. Try a smaller learning_rate",
    ):
        flow.fit(graph, x, x, n_bins=n_bins, learning_rate=1e200, n_epochs=5)


def test_features_may_stand_apart(problem):
    _, x = three(problem)
    graph = Graph({"gender": (), "age": ("gender",), "education": ()})
    fitted, _ = flow.fit(graph, x, x, hidden=(4,), n_epochs=3)
    x_cf = fitted.counterfactual(x, do={"gender": 3.0})
    assert torch.equal(x_cf[:, 2], x[:, 2]) and not torch.equal(x_cf[:, 1], x[:, 1])


@pytest.mark.parametrize("features", [["age"], ["age", "gender"]])
def test_without_edges_each_feature_has_its_own_normal(features):
    """The closed form: mean and standard deviation of the sample."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(0.3, 1.2, (500, len(features))))
    graph, short = Graph.from_edges(features, []), {"n_epochs": 200, "batch_size": 500}
    fitted, history = flow.fit(graph, x, x, learning_rate=0.05, **short)
    theirs = torch.distributions.Normal(x.mean(0), x.std(0, correction=0))
    assert torch.allclose(fitted.log_prob(x), theirs.log_prob(x).sum(-1), atol=1e-3)
    assert history["validation"].max() == pytest.approx(
        theirs.log_prob(x).sum(-1).mean().item(), abs=1e-5
    )
    moved = fitted.counterfactual(x, do={"age": 2.0})
    assert (moved[:, 0] == 2).all() and torch.equal(moved[:, 1:], x[:, 1:])


def test_other_numbers_than_the_flows_are_refused(problem):
    x = problem.population.x["flow/test"].float()
    for ask in (problem.flow.abduct, problem.flow.predict, problem.flow.log_prob):
        with pytest.raises(
            ValueError, match=r"is torch.float32, the flow is torch.float64"
        ):
            ask(x)


def test_bad_columns_are_refused(problem):
    x, ours = problem.population.x["flow/test"][:5], problem.flow
    with pytest.raises(ValueError, match="Unknown column 7"):
        ours.log_prob_terms(x, [7])
    with pytest.raises(ValueError, match="columns is empty"):
        ours.log_prob_terms(x, [])
    with pytest.raises(ValueError, match="Unknown column -1"):
        ours.factual(x, [-1])
    with pytest.raises(ValueError, match=r"x_parents of savings .* 1 causes \(income\)"):
        ours.map_of(6, x[:, :2])


def test_weights_that_do_not_fit_are_refused(problem):
    graph, settings = problem.flow.graph, problem.flow.settings
    weights = problem.flow.weights
    one, *others = weights
    for wrong in (
        {},
        {name: weights[name] for name in others},
        weights | {one: weights[one][..., :1]},
        weights | {"income.bias_9": weights[one]},
    ):
        with pytest.raises(ValueError, match=r" must have shape .*, got "):
            flow.CausalFlow(graph, weights=wrong, **settings)
    with pytest.raises(ValueError, match=r"must be of torch.float32, got torch.float64"):
        flow.CausalFlow(graph, weights=weights | {one: weights[one].float()}, **settings)


def test_files_that_hold_no_flow_are_named(problem, tmp_path):
    weights, hidden = problem.flow.weights, problem.flow.settings["hidden"]
    parents = {name: list(causes) for name, causes in problem.flow.graph.parents.items()}
    settings = {"parents": parents, "hidden": hidden, "activation": "elu"}
    broken = {
        "no weights": ({"a": torch.zeros(1)}, settings),
        "no graph": (weights, {"hidden": hidden, "activation": "elu"}),
        "another width": (weights, settings | {"hidden": [5]}),
        "another graph": (weights, settings | {"parents": {"a": [], "b": ["a"]}}),
        "no names": (weights, settings | {"parents": [1, 2]}),
        "a circle": (weights, settings | {"parents": {"a": ["b"], "b": ["a"]}}),
        "more settings": (weights, settings | {"depth": 3}),
    }
    for name, (tensors, own) in broken.items():
        files.save(tmp_path, name, tensors, own, {})
        files.save(
            tmp_path, "all", {f"x/{k}": w for k, w in tensors.items()}, {"x": own}, {}
        )
        with pytest.raises(ValueError, match=rf"{name}.safetensors holds no causal flow: "):
            flow.CausalFlow.load(tmp_path, name)
        with pytest.raises(ValueError, match=r"all.safetensors holds no causal flow: "):
            flow.load_all(tmp_path, "all")
    files.save(tmp_path, "a list", weights, [1, 2], {})
    with pytest.raises(ValueError, match=r"a list.safetensors is damaged .* no settings"):
        flow.CausalFlow.load(tmp_path, "a list")
    files.save(tmp_path, "whole", weights, settings, {})
    assert flow.CausalFlow.load(tmp_path, "whole").graph == problem.flow.graph


def test_flows_know_their_population(problem, tmp_path):
    problem.flow.save(tmp_path, "mine", {"seed": 0}, "this one")
    flow.save_all({"mine": problem.flow}, tmp_path, "all", {"seed": 0}, "this one")
    for load, name in ((flow.CausalFlow.load, "mine"), (flow.load_all, "all")):
        load(tmp_path, name, "this one")
        with pytest.raises(ValueError, match="fitted to another population"):
            load(tmp_path, name, "that one")
    with pytest.raises(ValueError, match="must not hold a slash"):
        flow.save_all({"a/b": problem.flow}, tmp_path, "all", {})


def test_spline_is_inverted_and_its_density_is_one(with_splines):
    fitted, x = with_splines.flow, with_splines.population.x["flow/test"]
    far = torch.cat([x, 3 * x, x[:1]])
    far[-1, fitted.index("age")] = 200.0  # beyond the splines' range: only bent
    assert torch.allclose(fitted.predict(fitted.abduct(far)), far, atol=1e-9)
    assert fitted.abduct(far)[-1, fitted.index("age")].item() == pytest.approx(
        np.arcsinh(200.0)
    )
    # one feature's density, given its parents, adds up to one
    grid = torch.linspace(-60, 60, 200_001, dtype=torch.float64)
    j = fitted.index("income")
    person = x[:1].expand(len(grid), -1).clone()
    person[:, j] = grid
    assert torch.trapezoid(
        fitted.log_prob_terms(person, [j])[:, 0].exp(), grid
    ).item() == pytest.approx(1, abs=1e-4)


def test_splines_learn_two_modes():
    """Half of people near -1, half near 1: an affine map can only give one broad mode."""
    rng = np.random.default_rng(0)
    modes = np.where(rng.random(6_000) < 0.5, -1, 1) + 0.1 * rng.normal(size=6_000)
    x = torch.from_numpy(np.stack([modes, modes + rng.normal(size=6_000)], -1))
    entropy = (
        np.log(0.1) + np.log(2 * np.pi * np.e) + np.log(2)
    )  # of the truth; the modes do not overlap
    graph = Graph({"a": [], "b": ["a"]})
    affine, splines = (
        flow.fit(
            graph,
            x[:5000],
            x[5000:],
            n_bins=n,
            n_epochs=60,
            batch_size=250,
            learning_rate=2e-2,
        )[1]
        for n in (0, 8)
    )
    assert splines["validation"].max() == pytest.approx(-entropy, abs=0.1)
    assert affine["validation"].max() < -entropy - 0.5


def test_saved_splines_are_loaded(with_splines, tmp_path):
    with_splines.flow.save(tmp_path, "loan_flow", {})
    loaded = flow.CausalFlow.load(tmp_path, "loan_flow")
    x = with_splines.population.x["flow/test"]
    assert (
        torch.equal(loaded.log_prob(x), with_splines.flow.log_prob(x))
        and loaded.settings == with_splines.flow.settings
    )


def test_flows_that_belong_together_share_a_file(problem, with_splines, tmp_path):
    flows = {"loan": problem.flow, "other": with_splines.flow}
    flow.save_all(flows, tmp_path, "gmsc_other_flows", {})
    loaded = flow.load_all(tmp_path, "gmsc_other_flows")
    assert list(loaded) == ["loan", "other"]
    for name, one in flows.items():
        x = torch.randn(
            5,
            len(one.features),
            dtype=torch.float64,
            generator=torch.Generator().manual_seed(0),
        )
        assert (
            torch.equal(loaded[name].log_prob(x), one.log_prob(x))
            and loaded[name].graph == one.graph
        )
