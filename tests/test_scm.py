"""Structural models against closed forms, laws of counterfactuals, unusable equations."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method.scm import SCM, Equation, additive

AGE = additive((), lambda pa: 0.0, stats.norm(40, 10))


def linear() -> SCM:
    return SCM(
        {
            "a": additive((), lambda pa: 0.0, stats.norm(0, 2)),
            "b": additive(("a",), lambda pa: 3 * pa["a"], stats.norm(0, 0.5)),
        }
    )


def test_density_of_a_linear_model_is_the_multivariate_normal():
    covariance = np.array([[4, 12], [12, 36.25]])
    x = linear().sample(50, np.random.default_rng(0))
    expected = stats.multivariate_normal(cov=covariance).logpdf(x.numpy())
    assert linear().log_prob(x).numpy() == pytest.approx(expected, abs=1e-9)


def test_volume_and_discrete_noise_count():
    """y = (1 + c) e^u with a coin c: the density of a scaled log-normal, times one half."""
    scm = SCM(
        {
            "y": Equation(
                ("coin",),
                lambda pa, u: (1 + pa["coin"]) * u.exp(),
                lambda pa, x: (x / (1 + pa["coin"])).log(),
                stats.norm(0, 0.7),
            ),
            "coin": additive((), lambda pa: 0.0, stats.bernoulli(0.3)),
        }
    )
    x = scm.sample(200, np.random.default_rng(0))
    y, coin = x.numpy().T
    expected = stats.lognorm(0.7, scale=1 + coin).logpdf(y)
    expected += np.where(coin == 1, np.log(0.3), np.log(0.7))
    assert scm.log_prob(x).numpy() == pytest.approx(expected, abs=1e-9)


def test_sample_has_the_moments_of_the_model():
    x = linear().sample(40_000, np.random.default_rng(0))
    assert x.shape == (40_000, 2) and x.dtype == torch.float64
    covariance = np.cov(x.numpy().T)
    assert covariance == pytest.approx(np.array([[4, 12], [12, 36.25]]), rel=0.03)
    again = linear().sample(40_000, np.random.default_rng(0))
    other = linear().sample(40_000, np.random.default_rng(1))
    assert torch.equal(x, again) and not torch.equal(x, other)


def test_equations_may_be_listed_before_their_causes():
    turned = SCM(dict(reversed(linear().equations.items())))
    x = torch.tensor([[1.0, 5.0], [2.0, 4.0]], dtype=torch.float64)
    assert torch.equal(turned.abduct(x.flip(-1)), linear().abduct(x).flip(-1))
    assert turned.counterfactual(x.flip(-1), do={"a": 0.0})[:, 0].tolist() == [2.0, -2.0]


def test_a_model_of_one_feature():
    scm = SCM({"age": AGE})
    assert scm.log_prob(torch.tensor([50.0])).item() == pytest.approx(
        stats.norm(40, 10).logpdf(50)
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            additive(("age",), lambda pa: pa["wage"], stats.norm()),
            r"forward of rent failed with KeyError: 'wage'.*of its parents \(age\)",
        ),
        (
            additive(("age",), lambda pa: torch.zeros(3), stats.norm()),
            r"forward of rent failed with RuntimeError: .* must be written in torch",
        ),
        (
            additive(("age",), lambda pa: pa["age"][:, None], stats.norm()),
            r"forward of rent gives a tensor with shape \(8, 8\) for 8 people",
        ),
        (
            Equation(("age",), lambda pa, u: 3.0, lambda pa, x: x, stats.norm()),
            r"forward of rent gives float for 8 people, expected a tensor",
        ),
        (
            Equation(("age",), lambda pa, u: u, lambda pa, x: x[0], stats.norm()),
            r"inverse of rent gives a tensor with shape \(\) for 8 people",
        ),
        (
            Equation(
                ("age",),
                lambda pa, u: pa["age"] + u,
                lambda pa, x: x + pa["age"],
                stats.norm(),
            ),
            r"inverse of rent does not invert its forward: from the noise",
        ),
        (
            Equation(("age",), lambda pa, u: u, lambda pa, x: x.detach(), stats.norm()),
            r"inverse of rent has no derivative that torch can follow",
        ),
        (
            Equation(
                ("age",),
                lambda pa, u: u,
                lambda pa, x: torch.from_numpy(np.asarray(x.numpy())),
                stats.norm(),
            ),
            r"inverse of rent failed with RuntimeError: Can't call numpy\(\)",
        ),
        (
            Equation(("age",), lambda pa, u: u.log(), lambda pa, x: x.exp(), stats.norm()),
            r"forward of rent gives NaN or infinite values",
        ),
        (additive(("age",), lambda pa: 0.0, 1.0), r"noise of rent must be a frozen scipy"),
        (
            additive("age", lambda pa: 0.0, stats.norm()),
            r"causes of rent are the text 'age'",
        ),
        (additive(("agee",), lambda pa: 0.0, stats.norm()), r"Did you mean 'age'"),
        (lambda pa: 0.0, r"rent must be an Equation, got function\. Write additive"),
    ],
)
def test_an_equation_that_does_not_work_is_named(broken, message):
    with pytest.raises(ValueError, match=message):
        SCM({"rent": broken, "age": AGE})


def test_discrete_noise_needs_no_derivative():
    """A coin that is turned round by rounding: there is no volume, so nothing to derive."""
    coin = Equation(
        (),
        lambda pa, u: 1 - u,
        lambda pa, x: (1 - x).detach().round(),
        stats.bernoulli(0.2),
    )
    log_p = SCM({"coin": coin}).log_prob(torch.tensor([[0.0], [1.0]]))
    assert log_p.exp().tolist() == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        (torch.zeros(3), torch.ones(2), r"mean has shape \(3,\)"),
        (torch.zeros(2), torch.ones(1, 2), r"std has shape \(1, 2\), expected \(2,\)"),
        (torch.zeros(2), torch.tensor([1.0, 0.0]), r"std must be above zero everywhere"),
        (torch.zeros(2), torch.tensor([1.0, torch.nan]), r"std holds NaN"),
        (np.zeros(2), torch.ones(2), r"mean must be a floating-point tensor"),
    ],
)
def test_a_wrong_scaler_is_named(mean, std, message):
    with pytest.raises(ValueError, match=message):
        linear().standardised(mean, std)


def test_the_log_density_works_without_gradients(problem):
    x = problem.population.x["recourse/test"][:20]
    with torch.no_grad():
        assert torch.equal(
            problem.population.truth.log_prob(x),
            problem.population.truth.log_prob(x.clone()),
        )


def chain() -> SCM:
    """A -> M -> B, linear: M = 2 A + u_M, B = M - A + u_B."""
    return SCM(
        {
            "a": additive((), lambda pa: 0.0, stats.norm()),
            "m": additive(("a",), lambda pa: 2 * pa["a"], stats.norm()),
            "b": additive(("a", "m"), lambda pa: pa["m"] - pa["a"], stats.norm()),
        }
    )


@pytest.fixture(params=["scm", "flow"])
def model(request, problem):
    return problem.population.truth if request.param == "scm" else problem.flow


@pytest.fixture
def actions(problem):
    """Two hundred people, random masks over every feature, random values."""
    rng = np.random.default_rng(0)
    x = problem.population.x["recourse/test"][:200]
    is_acted = torch.from_numpy(rng.random(x.shape) < 0.3)
    return x, is_acted, torch.from_numpy(rng.normal(size=x.shape))


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        ({}, [1.0, 3.0, 5.0]),  # u = (1, 1, 3)
        ({"a": 0.0}, [0.0, 1.0, 4.0]),
        ({"m": 0.0}, [1.0, 0.0, 2.0]),
        ({"a": 0.0, "m": 0.0}, [0.0, 0.0, 3.0]),
        ({"a": 0.0, "b": 9.0}, [0.0, 1.0, 9.0]),  # M follows, B is exactly as commanded
    ],
)
def test_chain_by_hand(do, expected):
    x = torch.tensor([[1.0, 3.0, 5.0]], dtype=torch.float64)
    is_acted = torch.tensor([[name in do for name in ("a", "m", "b")]])
    values = torch.tensor(
        [[do.get(name, torch.nan) for name in ("a", "m", "b")]], dtype=torch.float64
    )
    assert chain().counterfactual(x, is_acted, values).tolist() == [expected]
    assert chain().counterfactual(x, do=do).tolist() == [expected]
    assert chain().counterfactual(x[0], do=do).tolist() == expected


def test_abduction_and_prediction_are_inverse(model, problem):
    x = problem.population.x["recourse/test"]
    assert torch.allclose(model.predict(model.abduct(x)), x, atol=1e-9)


def test_no_action_changes_nothing(model, actions):
    x, is_acted, values = actions
    assert torch.equal(model.counterfactual(x, torch.zeros_like(is_acted), values), x)


def test_acted_on_features_take_their_values(model, actions):
    x, is_acted, values = actions
    x_cf = model.counterfactual(x, is_acted, values)
    assert torch.equal(x_cf[is_acted], values[is_acted])


def test_non_descendants_never_move(model, actions):
    x, is_acted, values = actions
    reached = (is_acted.double() @ model.graph.reachability.double()) > 0
    stays = ~reached & ~is_acted
    assert torch.equal(model.counterfactual(x, is_acted, values)[stays], x[stays])
    assert (model.counterfactual(x, is_acted, values) != x)[
        reached & ~is_acted
    ].float().mean() > 0.9


def test_mechanisms_left_alone_keep_their_noise(model, actions):
    x, is_acted, values = actions
    u_cf = model.abduct(model.counterfactual(x, is_acted, values))
    assert torch.allclose(u_cf[~is_acted], model.abduct(x)[~is_acted], atol=1e-8)


def test_people_do_not_affect_each_other(model, actions):
    x, is_acted, values = actions
    together = model.counterfactual(x, is_acted, values)
    alone = torch.cat(
        [
            model.counterfactual(x[i : i + 1], is_acted[i : i + 1], values[i : i + 1])
            for i in range(20)
        ]
    )
    assert torch.allclose(together[:20], alone, atol=1e-12)
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(x)))
    assert torch.allclose(
        model.counterfactual(x[order], is_acted[order], values[order]),
        together[order],
        atol=1e-12,
    )


def test_inputs_are_left_unmodified(model, actions):
    before = [tensor.clone() for tensor in actions]
    model.counterfactual(*actions)
    for tensor, copy in zip(actions, before, strict=True):
        assert torch.equal(tensor, copy)


def test_an_action_by_name_is_the_same_action(model, actions):
    x, _, values = actions
    j, k = model.index("income"), model.index("age")
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, [j, k]] = True
    values[:, k] = 0.5
    by_name = model.counterfactual(x, do={"income": values[:, j], "age": 0.5})
    assert torch.equal(by_name, model.counterfactual(x, is_acted, values))
    assert torch.equal(model.counterfactual(x, do={}), x)


def test_one_person_is_a_batch_of_one(model, actions):
    x, is_acted, values = actions
    for i in range(20):
        one = model.counterfactual(x[i], is_acted[i], values[i])
        assert torch.allclose(
            one, model.counterfactual(x, is_acted, values)[i], rtol=0, atol=1e-12
        )
    person, some = x[0], slice(0, 1)
    pairs = {
        "abduct": (model.abduct(person), model.abduct(x[some])[0]),
        "predict": (model.predict(person), model.predict(x[some])[0]),
        "log_prob": (model.log_prob(person), model.log_prob(x[some])[0]),
        "do": (
            model.counterfactual(person, do={"income": 1.0}),
            model.counterfactual(x[some], do={"income": 1.0})[0],
        ),
        "do, by a tensor": (
            model.counterfactual(person, do={"income": torch.tensor(1.0)}),
            model.counterfactual(x[some], do={"income": torch.tensor([1.0])})[0],
        ),
    }
    for name, (one, of_batch) in pairs.items():
        assert one.shape == of_batch.shape and torch.allclose(one, of_batch), name


def test_any_leading_axes_will_do(model, actions):
    x, is_acted, values = actions
    there = model.counterfactual(x, is_acted, values)
    deep = [tensor.reshape(4, 5, 10, 7) for tensor in actions]
    assert torch.allclose(model.counterfactual(*deep).reshape(200, 7), there, atol=1e-12)
    assert torch.allclose(
        model.log_prob(deep[0]).reshape(200), model.log_prob(x), atol=1e-12
    )
    assert model.counterfactual(x[:0], is_acted[:0], values[:0]).shape == (0, 7)


def test_known_noise_changes_nothing(model, actions):
    expected = model.counterfactual(*actions)
    assert torch.equal(model.counterfactual(*actions, model.abduct(actions[0])), expected)


def test_sample_is_what_follows_from_fresh_noise(model):
    x = model.sample(500, np.random.default_rng(0))
    noise = model.draw_noise(500, np.random.default_rng(0))
    assert x.shape == (500, 7) and torch.equal(x, model.predict(noise))
    assert torch.allclose(model.abduct(x), noise, atol=1e-8)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="n_people must be"):
            model.sample(wrong, np.random.default_rng(0))


WRONG = {  # what is handed over, from x, is_acted and values; what is said
    "no action": (lambda x, i, v: ((x,), {}), r"in one of two ways"),
    "half an action": (lambda x, i, v: ((x, i), {}), r"in one of two ways"),
    "two actions": (lambda x, i, v: ((x, i, v), {"do": {}}), r"in one of two ways"),
    "no label": (lambda x, i, v: ((x[:, :6], i[:, :6], v[:, :6]), {}), r"label column"),
    "fewer masks": (lambda x, i, v: ((x, i[:10], v), {}), r"is_acted has shape \(10, 7\)"),
    "masks of 0 and 1": (lambda x, i, v: ((x, i.double(), v), {}), r"tensor of torch.bool"),
    "fewer values": (lambda x, i, v: ((x, i, v[:10]), {}), r"values has shape \(10, 7\)"),
    "other numbers": (lambda x, i, v: ((x, i, v.float()), {}), r"values.to\(torch.float64"),
    "a list": (lambda x, i, v: ((x, i, v.tolist()), {}), r"got list"),
    "less noise": (lambda x, i, v: ((x, i, v, x[:1]), {}), r"noise has shape \(1, 7\)"),
    "NaN values": (lambda x, i, v: ((x, i, v * torch.nan), {}), r"values holds NaN"),
    "NaN people": (lambda x, i, v: ((x * torch.nan, i, v), {}), r"x holds NaN"),
    "a typing error": (lambda x, i, v: ((x,), {"do": {"incme": 1}}), r"mean 'income'"),
    "text": (
        lambda x, i, v: ((x,), {"do": {"income": "3 euros"}}),
        r"income must be set to a number or to a tensor .* \(200,\), got '3 euros'",
    ),
    "values of some": (
        lambda x, i, v: ((x,), {"do": {"income": v[:10, 0]}}),
        r"income must be set to .* shape \(200,\), got a tensor with shape \(10,\)",
    ),
    "do NaN": (
        lambda x, i, v: ((x,), {"do": {"income": float("nan")}}),
        r"values holds NaN or infinite values \(in income\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_action_is_named(model, actions, case):
    call, message = WRONG[case]
    args, kwargs = call(*actions)
    with pytest.raises(ValueError, match=message):
        model.counterfactual(*args, **kwargs)


@pytest.mark.parametrize("question", ["abduct", "predict", "log_prob"])
def test_wrong_people_are_named(model, actions, question):
    x, ask = actions[0].clone(), getattr(model, question)
    with pytest.raises(ValueError, match="label column"):
        ask(x[:, :6])
    with pytest.raises(ValueError, match="must be a floating-point tensor"):
        ask(x.long())
    x[3, 5] = torch.inf
    with pytest.raises(ValueError, match="in income"):
        ask(x)


def test_the_order_in_which_features_are_listed_does_not_matter(problem):
    """The Loan model with its features listed backwards gives the same answers."""
    truth = problem.population.truth
    backwards = SCM(
        dict(reversed(truth.equations.items())), truth.mean.flip(0), truth.std.flip(0)
    )
    assert torch.equal(backwards.graph.reachability, truth.graph.reachability.flip(0, 1))
    assert backwards.graph.order[0] > backwards.graph.order[-1]
    x = problem.population.x["recourse/test"][:50]
    is_acted = torch.from_numpy(np.random.default_rng(0).random(x.shape) < 0.3)
    assert torch.equal(
        backwards.predict(backwards.abduct(x.flip(-1))),
        truth.predict(truth.abduct(x)).flip(-1),
    )
    there = backwards.counterfactual(x.flip(-1), is_acted.flip(-1), (x + 1).flip(-1))
    assert torch.equal(there, truth.counterfactual(x, is_acted, x + 1).flip(-1))
