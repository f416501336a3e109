"""Stacked networks against torch's own layers, values and gradients."""

import pytest
import torch
from torch.nn import functional as F

from lib.base.arithmetic import stacked_network, through_relu


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]


@pytest.mark.parametrize("widths", [(5, 2), (5, 8, 2), (5, 8, 6, 2)])
def test_values_and_gradients_are_torchs(widths):
    layers = list(zip(widths[:-1], widths[1:], strict=True))
    x, *weights_and_biases = drawn(
        (3, 7, 5),
        *[(3, *shape) for shape in layers],
        *[(3, 1, n_out) for _, n_out in layers],
    )
    weights, biases = weights_and_biases[: len(layers)], weights_and_biases[len(layers) :]
    theirs = x
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        theirs = torch.baddbmm(bias, F.relu(theirs) if i else theirs, weight)
    ours = stacked_network(x, weights, biases)
    assert torch.allclose(ours, theirs, atol=1e-12)
    outer = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view_as(ours)
    for wanted in ((x, *weights, *biases), tuple(weights)):  # data asks for no gradient
        x.requires_grad_(wanted[0] is x)
        found = [
            torch.autograd.grad(out, wanted, outer, retain_graph=True)
            for out in (stacked_network(x, weights, biases), theirs)
        ]
        assert all(
            torch.allclose(mine, reference, atol=1e-12)
            for mine, reference in zip(*found, strict=True)
        )


def test_gradient_by_finite_differences():
    x, *layers = drawn((2, 4, 3), (2, 3, 5), (2, 5, 2), (2, 1, 5), (2, 1, 2))
    assert torch.autograd.gradcheck(
        lambda x, *layers: stacked_network(x, layers[:2], layers[2:]), (x, *layers)
    )


def test_views_that_are_not_contiguous():
    x = torch.arange(24.0).reshape(4, 3, 2).transpose(0, 1)
    weight, bias = torch.ones(3, 2, 1), torch.zeros(3, 1, 1)
    assert torch.equal(stacked_network(x, [weight], [bias]), x.sum(-1, keepdim=True))


def test_the_gradient_stops_where_the_relu_gave_nothing():
    before = torch.tensor([-1.0, 0.0, 2.0])
    assert through_relu(torch.tensor([5.0, 6.0, 7.0]), before.relu()).tolist() == [0, 0, 7]
