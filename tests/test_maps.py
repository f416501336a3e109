"""Maps between features and noise against zuko's own, autograd and finite differences."""

import numpy as np
import pytest
import torch
from zuko.transforms import MonotonicAffineTransform, MonotonicRQSTransform

from lib.method.maps import Affine, Spline

N_BINS = 4
RAW = {Affine: 2, Spline: 3 * N_BINS - 1}


def draw(*shape, seed=0, scale=1.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).normal(size=shape))


@pytest.fixture(params=[Affine, Spline])
def map_and_x(request):
    """Two hundred people, each with their own map; some beyond the splines' range."""
    x = draw(200, seed=1)
    x[:4] = torch.tensor([-300.0, 300.0, -80.0, 80.0], dtype=torch.float64)
    return request.param(draw(200, RAW[request.param], scale=2.0)), x


def test_inverse_gives_the_feature_back(map_and_x):
    own, x = map_and_x
    assert torch.allclose(own.inverse(own.forward(x)[0]), x, rtol=1e-9, atol=1e-9)


def test_slope_is_the_derivative(map_and_x):
    own, x = map_and_x
    x = x.requires_grad_()
    z, log_slope = own.forward(x)
    (slope,) = torch.autograd.grad(z.sum(), x)
    assert (slope > 0).all()
    assert torch.allclose(log_slope.exp(), slope, rtol=1e-7)


def test_affine_is_zukos():
    raw, x = draw(100, 2, scale=20.0), draw(100, seed=1)
    z, log_slope = Affine(raw).forward(x)
    theirs = MonotonicAffineTransform(*raw.unbind(-1), slope=1e-3)
    z_theirs, log_slope_theirs = theirs.call_and_ladj(x)
    assert torch.allclose(z, z_theirs) and torch.allclose(log_slope, log_slope_theirs)
    assert 1e-3 < log_slope.exp().min() < 0.01 and 100 < log_slope.exp().max() < 1e3


def test_spline_is_zukos_after_the_bend():
    raw, x = draw(100, 3 * N_BINS - 1), draw(100, seed=1)
    theirs = MonotonicRQSTransform(*raw.split([N_BINS, N_BINS, N_BINS - 1], -1))
    z = theirs(torch.asinh(x))
    assert torch.allclose(Spline(raw).forward(x)[0], z)
    z[:3] = torch.tensor([-7.0, 5.0, 9.0])  # at the splines' end and beyond it
    assert torch.allclose(Spline(raw).inverse(z), theirs.inv(z).sinh(), rtol=0, atol=1e-10)


def test_inverse_and_its_gradient_are_zukos():
    """To float64 accuracy: the terms are the same, and only the root is taken otherwise."""
    parts = draw(100, 3 * N_BINS - 1), draw(100, seed=1)
    found = []
    for inverse in (
        lambda raw, z: Spline(raw).spline.inv(z),
        lambda raw, z: MonotonicRQSTransform(
            *raw.split([N_BINS, N_BINS, N_BINS - 1], -1)
        ).inv(z),
    ):
        inputs = [part.clone().requires_grad_() for part in parts]
        x = inverse(*inputs)
        found.append([x, *torch.autograd.grad(x.sum(), inputs)])
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_the_inverse_takes_no_root_of_torchs(monkeypatch):
    """torch's root depends on the processor (`exact_root` says how)."""

    def refuse(*_):
        raise AssertionError

    spline = Spline(draw(20, 3 * N_BINS - 1))
    for name in ("sqrt", "pow", "__pow__"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    assert spline.inverse(draw(20, seed=1)).isfinite().all()


@pytest.mark.parametrize("kind", [Affine, Spline])
@pytest.mark.parametrize("follows", [False, True])
def test_action_sets_or_leaves_the_feature(kind, follows):
    own, z, before, a = kind(draw(50, RAW[kind])), *draw(3, 50, seed=2)
    m = (draw(50, seed=3) > 0).double()
    x, log_slope, gain = own.after_action(z, None if follows else before, m, 1 - m, a)
    left = own.inverse(z) if follows else before
    assert torch.equal(x, torch.where(m > 0, a, left))
    z_cf, log_slope_cf = own.forward(x)
    normal = torch.distributions.Normal(0, 1)
    assert torch.allclose(gain, normal.log_prob(z_cf) - normal.log_prob(z), atol=1e-12)
    assert torch.equal(log_slope, log_slope_cf)


@pytest.mark.parametrize("kind", [Affine, Spline])
@pytest.mark.parametrize("follows", [False, True])
def test_gradient_of_an_action_by_finite_differences(kind, follows):
    """Masks between 0 and 1, so that every part of it counts."""
    z, before, a = draw(3, 6, seed=2)
    raw, m = draw(6, RAW[kind]), draw(6, seed=3).sigmoid()

    def action(raw, m, rest, a):
        return kind(raw).after_action(z, None if follows else before, m, rest, a)

    inputs = [part.clone().requires_grad_() for part in (raw, m, 1 - m, a)]
    assert torch.autograd.gradcheck(action, inputs)
