"""Stacked networks against torch's own layers, Adam against torch's own, bit by bit."""

import lib.pinned

import itertools
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

from lib.base.arithmetic import Adam, stacked_network, through_relu
from lib.base.files import ROOT


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]


@pytest.mark.parametrize("widths", [(5, 2), (5, 8, 2), (5, 8, 6, 2)])
def test_values_and_gradients_are_torchs(widths):
    layers = list(itertools.pairwise(widths))
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


def test_the_gradient_through_a_relu_is_autograds_to_the_bit():
    (before,) = drawn((6, 50))
    out = before.relu()
    behind = torch.linspace(-3, 3, out.numel(), dtype=out.dtype).view_as(out)
    (theirs,) = torch.autograd.grad(out, before, behind)
    ours = behind.clone()
    assert through_relu(ours, out.detach()) is ours  # in place
    assert torch.equal(ours, theirs)
    with pytest.raises(ValueError, match=r"shape \(2,\), but the ReLU gave \(3,\)"):
        through_relu(torch.ones(2), torch.ones(3))


W, B = (2, 3, 4), (2, 1, 4)  # shapes of a layer for two members, from 3 to 4 values


@pytest.mark.parametrize(
    ("x", "weights", "biases", "message"),
    [
        ((2, 5, 3), [], [], "at least one: got 0 weights and 0 biases"),
        ((2, 5, 3), [W], [], "got 1 weights and 0 biases"),
        ((5, 3), [W], [B], r"x has shape \(5, 3\), expected \(members, people, in\)"),
        ((1, 5, 3), [W], [B], r"weight of layer 0 has shape \(2, 3, 4\), expected \(1, 3"),
        ((2, 5, 7), [W], [B], r"weight of layer 0 .* expected \(2, 7, out\)"),
        ((2, 5, 3), [W, W], [B, B], r"weight of layer 1 .* expected \(2, 4, out\)"),
        ((2, 5, 3), [W], [(2, 4)], r"bias of layer 0 has shape \(2, 4\), expected \(2, 1"),
        ((2, 5, 3), [W], [(2, 1, 1)], r"expected \(2, 1, 4\)"),
    ],
)
def test_layers_that_do_not_fit(x, weights, biases, message):
    with pytest.raises(ValueError, match=message):
        stacked_network(
            torch.ones(x),
            [torch.ones(shape) for shape in weights],
            [torch.ones(shape) for shape in biases],
        )


def test_other_types_of_numbers_are_not_mixed():
    x = torch.ones(2, 5, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"float32 and x torch.float64: .*x.float\(\)"):
        stacked_network(x, [torch.ones(W)], [torch.ones(B)])


# --- Adam


def test_adam_has_the_bits_of_torchs():
    start = [
        torch.linspace(-2, 3, 7),
        torch.linspace(1, 2, 6).view(2, 3),
        torch.ones(3, 4),
        torch.ones(3, 4),
    ]
    factors = torch.linspace(-1, 1, 12).view(4, 3)
    ours, theirs = ([part.clone().requires_grad_() for part in start] for _ in range(2))
    own = Adam(ours, 0.1, 30, lowest=0.004)
    optimiser = torch.optim.Adam(theirs, lr=0.1, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 30, eta_min=0.004)

    def loss(weights):
        # the gradients of the last two do not lie in memory as the weights do
        one, two, expanded, transposed = weights
        return (
            (one.sin() * one).sum()
            + two.square().mean() * one[0]
            + expanded.sum()
            + (transposed.t() * factors).sum()
        )

    for step in range(30):
        own.step(torch.autograd.grad(loss(ours), ours))
        optimiser.zero_grad()
        loss(theirs).backward()
        optimiser.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)), step
        own.decay()
        schedule.step()
        assert own.learning_rate == schedule.get_last_lr()[0]
    assert not torch.equal(ours[0], start[0])


def test_gradients_of_another_shape_are_refused():
    for wrong in (torch.ones(1, 2), torch.ones(2, 2), torch.ones(2)):
        with pytest.raises(ValueError, match="must have the weights' shapes"):
            Adam([torch.zeros(3, 2)], 0.1).step([wrong])
    with pytest.raises(ValueError, match="must have the weights' shapes"):
        Adam([torch.zeros(2), torch.zeros(2)], 0.1).step([torch.ones(2)])


def test_training_does_not_import_the_compiler():
    """It is why there is an Adam of our own: seconds in every process."""
    code = (
        "import lib.pinned, sys, torch; from lib.solvers import icarma, continuous; "
        "from lib.base.arithmetic import Adam; "
        "w = torch.ones(2); Adam([w], 0.1).step([w.clone()]); "
        "print('torch._dynamo' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "False"


def test_the_learning_rate_falls_no_further_than_asked():
    adam = Adam([torch.zeros(1)], 0.1, n_decays=1, lowest=0.01)
    adam.decay()
    assert adam.learning_rate == pytest.approx(0.01)
    with pytest.raises(ValueError, match="lowered 1 times already, and n_decays is 1"):
        adam.decay()


def test_adam_needs_weights_and_a_rate():
    with pytest.raises(ValueError, match="weights is empty"):
        Adam([], 0.1)
    for wrong in (0.0, -1.0, float("nan"), "fast"):
        with pytest.raises(ValueError, match="learning_rate must be above zero"):
            Adam([torch.zeros(1)], wrong)
