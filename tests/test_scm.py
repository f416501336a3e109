"""Structural models against closed forms, and equations that do not work."""

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
