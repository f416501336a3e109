"""The stacked linear layer against torch's own, values and gradients."""

import torch

from lib.linear import stacked_linear


def test_values_and_gradients_are_torchs():
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((3, 7, 5), (3, 5, 2), (3, 1, 2))
    )
    ours, theirs = stacked_linear(x, weight, bias), torch.baddbmm(bias, x, weight)
    assert torch.allclose(ours, theirs, atol=1e-12)
    outer = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    for mine, reference in zip(
        torch.autograd.grad(ours, (x, weight, bias), outer), torch.autograd.grad(theirs, (x, weight, bias), outer), strict=True
    ):
        assert torch.allclose(mine, reference, atol=1e-12)
    assert torch.autograd.gradcheck(stacked_linear, (x, weight, bias))


def test_views_that_are_not_contiguous():
    x = torch.arange(24.0).reshape(4, 3, 2).transpose(0, 1)
    weight, bias = torch.ones(3, 2, 1), torch.zeros(3, 1, 1)
    assert torch.equal(stacked_linear(x, weight, bias), x.sum(-1, keepdim=True))
