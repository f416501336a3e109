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
    with torch.no_grad():  # models are made and asked all the same
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


BROKEN = {
    "failed with KeyError: 'wage'.*a dictionary of parents .age.": additive(
        ("age",), lambda pa: pa["wage"], stats.norm()
    ),
    r"what forward returns has shape \(8, 8\), expected \(8,\)": additive(
        ("age",), lambda pa: pa["age"][:, None], stats.norm()
    ),
    r"what inverse returns has shape \(\), expected \(8,\)": Equation(
        ("age",), lambda pa, u: u, lambda pa, x: x[0], stats.norm()
    ),
    "does not invert its forward: from the noise": Equation(
        ("age",), lambda pa, u: pa["age"] + u, lambda pa, x: x + pa["age"], stats.norm()
    ),
    "forward gives nan": Equation(
        ("age",), lambda pa, u: u.log(), lambda pa, x: x.exp(), stats.norm()
    ),
    "no derivative that torch can follow": Equation(
        ("age",), lambda pa, u: u, lambda pa, x: x.detach(), stats.norm()
    ),
    "must be a frozen scipy": additive(("age",), lambda pa: 0.0, 1.0),
}


@pytest.mark.parametrize("message", BROKEN)
def test_an_equation_that_does_not_work_is_named(message):
    with pytest.raises(ValueError, match=f"of rent .*{message}"):
        SCM({"rent": BROKEN[message], "age": AGE})


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


def test_a_wrong_scaler_is_named():
    with pytest.raises(ValueError, match=r"mean has shape \(3,\)"):
        linear().standardised(torch.zeros(3), torch.ones(2))
    with pytest.raises(ValueError, match=r"std has shape \(1, 2\), expected \(2,\)"):
        linear().standardised(torch.zeros(2), torch.ones(1, 2))


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


def test_laws_of_counterfactuals(model, actions):
    """What is acted on takes its values, and what it does not reach stays, to the bit."""
    x, is_acted, values = actions
    before = [tensor.clone() for tensor in actions]
    x_cf = model.counterfactual(*actions)
    assert all(map(torch.equal, actions, before))
    assert torch.equal(x_cf[is_acted], values[is_acted])
    follows = ((is_acted.double() @ model.graph.reachability.double()) > 0) & ~is_acted
    stays = ~follows & ~is_acted
    assert torch.equal(x_cf[stays], x[stays])
    assert (x_cf != x)[follows].double().mean() > 0.9
    u, u_cf = model.abduct(x), model.abduct(x_cf)
    assert torch.allclose(u_cf[~is_acted], u[~is_acted], atol=1e-8)
    assert torch.equal(model.counterfactual(*actions, u), x_cf)
    assert torch.equal(model.counterfactual(x, torch.zeros_like(is_acted), values), x)


def test_people_do_not_affect_each_other(model, actions):
    together = model.counterfactual(*actions)
    for i in range(20):
        alone = model.counterfactual(*(tensor[i : i + 1] for tensor in actions))
        assert torch.allclose(together[i], alone[0], atol=1e-12)
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(together)))
    shuffled = model.counterfactual(*(tensor[order] for tensor in actions))
    assert torch.allclose(shuffled, together[order], atol=1e-12)


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


@pytest.mark.parametrize("axes", [(), (5, 2, 10)])
def test_any_leading_axes_will_do(model, actions, axes):
    n = max(1, int(np.prod(axes)))
    shaped = [tensor[:n].reshape(*axes, 7) for tensor in actions]
    plain = [tensor[:n] for tensor in actions]
    close = {"rtol": 0, "atol": 1e-12}
    for question in (model.abduct, model.predict, model.log_prob):
        one, other = question(shaped[0]), question(plain[0])
        assert torch.allclose(one, other.reshape(one.shape), **close)
    acted = model.counterfactual(*shaped).reshape(n, 7)
    assert torch.allclose(acted, model.counterfactual(*plain), **close)
    by_name = model.counterfactual(shaped[0], do={"income": 1.0}).reshape(n, 7)
    assert torch.allclose(by_name, model.counterfactual(plain[0], do={"income": 1.0}))


def test_sample_is_what_follows_from_fresh_noise(model):
    x = model.sample(500, np.random.default_rng(0))
    noise = model.draw_noise(500, np.random.default_rng(0))
    assert x.shape == (500, 7) and torch.equal(x, model.predict(noise))
    assert torch.allclose(model.abduct(x), noise, atol=1e-8)


WRONG = {  # what is handed over, from x, is_acted and values; the message
    "no action": (lambda x, i, v: ((x,), {}), r"in one of two ways"),
    "two actions": (lambda x, i, v: ((x, i, v), {"do": {}}), r"in one of two ways"),
    "fewer masks": (lambda x, i, v: ((x, i[:1], v), {}), r"is_acted has shape \(1, 7\)"),
    "fewer values": (lambda x, i, v: ((x, i, v[:1]), {}), r"values has shape \(1, 7\)"),
    "less noise": (lambda x, i, v: ((x, i, v, x[:1]), {}), r"noise has shape \(1, 7\)"),
    "other numbers": (lambda x, i, v: ((x, i, v.float()), {}), r"values.to\(torch.float64"),
    "NaN values": (lambda x, i, v: ((x, i, v * torch.nan), {}), r"values holds NaN"),
    "NaN people": (lambda x, i, v: ((x * torch.nan, i, v), {}), r"x holds NaN"),
    "a typing error": (lambda x, i, v: ((x,), {"do": {"incme": 1}}), r"mean 'income'"),
    "do NaN": (lambda x, i, v: ((x,), {"do": {"income": np.nan}}), r"NaN .*in income"),
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
    x[3, 5] = torch.inf
    with pytest.raises(ValueError, match="in income"):
        ask(x)
