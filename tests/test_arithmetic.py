"""Networks against torch's own layers, Adam against torch's own, bit by bit."""

import lib.pinned

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lib.base.arithmetic import SGD, Adam, RMSprop, exact_root, kept_where, network
from lib.base.files import ROOT


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]


PLAIN = {"relu": F.relu, "elu": F.elu, "tanh": torch.tanh}
MEMBERS = [(), (3,)]  # one network, and a stack


def layers_of(widths, members):
    """Return shapes of weights and of biases."""
    layers = list(itertools.pairwise(widths))
    in_front = (1,) if members else ()
    return (
        [(*members, *shape) for shape in layers],
        [(*members, *in_front, n_out) for _, n_out in layers],
    )


def plainly(x, weights, biases, activation):
    """Return what torch's own products and activations give."""
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = (PLAIN[activation](x) if i else x) @ weight + bias
    return x


@pytest.mark.parametrize("activation", PLAIN)
@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("widths", [(5, 2), (5, 8, 2), (5, 8, 6, 2), (1, 4, 1)])
def test_values_and_gradients_are_torchs(widths, members, activation):
    for_weights, for_biases = layers_of(widths, members)
    n = len(for_weights)
    x, *layers = drawn((*members, 7, widths[0]), *for_weights, *for_biases)
    weights, biases = layers[:n], layers[n:]
    theirs = plainly(x, weights, biases, activation)
    ours = network(x, weights, biases, activation)
    assert torch.allclose(ours, theirs, atol=1e-12)
    outer = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view_as(ours)
    everything = [x, *layers]
    for wanted in (  # frozen weights, data without a gradient, one layer alone
        everything,
        layers,
        [x],
        [weights[-1]],
        [biases[-1]],
        [weights[0], biases[-1]],
    ):
        for part in everything:
            part.requires_grad_(any(part is one for one in wanted))
        found = [
            torch.autograd.grad(out, wanted, outer)
            for out in (
                network(x, weights, biases, activation),
                plainly(x, weights, biases, activation),
            )
        ]
        assert all(
            torch.allclose(mine, reference, atol=1e-12)
            for mine, reference in zip(*found, strict=True)
        )


@pytest.mark.parametrize("activation", PLAIN)
@pytest.mark.parametrize("members", MEMBERS)
def test_gradient_by_finite_differences(members, activation):
    for_weights, for_biases = layers_of((3, 5, 2), members)
    x, *layers = drawn((*members, 4, 3), *for_weights, *for_biases)
    assert torch.autograd.gradcheck(
        lambda x, *layers: network(x, layers[:2], layers[2:], activation), (x, *layers)
    )


@pytest.mark.parametrize("activation", PLAIN)
def test_what_is_not_asked_for_is_not_worked_out(activation, monkeypatch):
    """Products are counted: forward one a layer, backward one a gradient that is needed."""
    x, *layers = drawn((7, 5), (5, 8), (8, 6), (6, 2), (8,), (6,), (2,))
    products = []
    multiply = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: products.append(1) or multiply(a, b))
    for wanted, n_products in (
        ([], 3),
        ([x], 3 + 3),
        (layers, 3 + 5),
        ([x, *layers], 3 + 6),
        ([layers[2]], 3 + 1),
        ([layers[1]], 3 + 2),
    ):
        products.clear()
        for part in (x, *layers):
            part.requires_grad_(any(part is one for one in wanted))
        out = network(x, layers[:3], layers[3:], activation)
        if wanted:
            torch.autograd.grad(out.sum(), wanted)
        assert len(products) == n_products


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_rows_of_any_shape_are_one_product(dtype):
    """A frozen network answers people of all members at once, and one or none alone."""
    shapes = (3, 7, 5), (5, 8), (8, 2)
    x, weight, second = (part.detach().to(dtype) for part in drawn(*shapes))
    layers = [weight, second], [torch.ones(8, dtype=dtype), torch.zeros(2, dtype=dtype)]
    flat = network(x.reshape(21, 5), *layers, "elu")
    assert torch.equal(network(x, *layers, "elu"), flat.view(3, 7, 2))
    assert flat.dtype == dtype and network(x[0, 0], *layers, "elu").shape == (2,)
    assert network(x[:0], *layers).shape == (0, 7, 2)
    assert network(x[:, :0], *layers).shape == (3, 0, 2)


def test_inputs_and_weights_are_left_as_they_are():
    parts = drawn((2, 4, 3), (2, 3, 5), (2, 5, 2), (2, 1, 5), (2, 1, 2))
    before = [part.detach().clone() for part in parts]
    out = network(parts[0], parts[1:3], parts[3:], "elu")
    outer = torch.ones_like(out)
    torch.autograd.grad(out, parts, outer)
    assert (outer == 1).all()
    assert all(torch.equal(a, b) for a, b in zip(parts, before, strict=True))


def test_a_second_derivative_is_refused():
    x, weight, bias = drawn((4, 3), (3, 2), (2,))
    (slope,) = torch.autograd.grad(
        network(x, [weight], [bias]).square().sum(), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_views_that_are_not_contiguous():
    x = torch.arange(24.0).reshape(4, 3, 2).transpose(0, 1)
    weight, bias = torch.ones(3, 2, 1), torch.zeros(3, 1, 1)
    assert torch.equal(network(x, [weight], [bias]), x.sum(-1, keepdim=True))


W, B = (2, 3, 4), (2, 1, 4)  # shapes of a layer for two members, from 3 to 4 values


@pytest.mark.parametrize(
    ("x", "weights", "biases", "message"),
    [
        ((2, 5, 3), [], [], "at least one: got 0 weights and 0 biases"),
        ((2, 5, 3), [W], [], "got 1 weights and 0 biases"),
        ((5, 3), [W], [B], r"x has shape \(5, 3\), expected \(members, people, in\)"),
        ((), [(3, 4)], [(4,)], r"x has shape \(\), expected \(\*, in\)"),
        ((1, 5, 3), [W], [B], r"weight of layer 0 has shape \(2, 3, 4\), expected \(1, 3"),
        ((2, 5, 7), [W], [B], r"weight of layer 0 .* expected \(2, 7, out\)"),
        ((2, 5, 7), [(3, 4)], [(4,)], r"weight of layer 0 .* expected \(7, out\)"),
        ((2, 5, 3), [W, W], [B, B], r"weight of layer 1 .* expected \(2, 4, out\)"),
        ((2, 5, 3), [W, (4, 4)], [B, (4,)], r"weight of layer 1 .* expected \(2, 4, out\)"),
        ((2, 5, 3), [W], [(2, 4)], r"bias of layer 0 has shape \(2, 4\), expected \(2, 1"),
        ((2, 5, 3), [W], [(2, 1, 1)], r"expected \(2, 1, 4\)"),
        ((5, 3), [(3, 4)], [(1, 4)], r"bias .* has shape \(1, 4\), expected \(4,\)"),
    ],
)
def test_layers_that_do_not_fit(x, weights, biases, message):
    with pytest.raises(ValueError, match=message):
        network(
            torch.ones(x),
            [torch.ones(shape) for shape in weights],
            [torch.ones(shape) for shape in biases],
        )


def test_unknown_activations_are_refused():
    x, weight, bias = drawn((4, 3), (3, 2), (2,))
    with pytest.raises(ValueError, match="Unknown activation 'gelu'"):
        network(x, [weight], [bias], "gelu")


def test_other_types_of_numbers_are_not_mixed():
    x = torch.ones(2, 5, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"float32 and x torch.float64: .*x.float\(\)"):
        network(x, [torch.ones(W)], [torch.ones(B)])


# --- the exact root, and values that are put in place


def test_the_root_is_numpys_to_the_bit_and_its_gradient_autograds():
    x = torch.from_numpy(np.random.default_rng(0).uniform(1e-6, 50, 100_000)).float()
    assert np.array_equal(exact_root(x).numpy(), np.sqrt(x.numpy()))
    single = exact_root(torch.tensor(2.0))
    assert single.shape == () and single.item() == np.sqrt(np.float32(2))
    (few,) = drawn((3, 4))
    few = few.detach().abs().requires_grad_()
    assert torch.autograd.gradcheck(exact_root, few)


def test_the_exact_root_is_nearest_to_the_true_one():
    """Against integers: no other float32 has a square nearer to x (x itself is exact)."""
    x = torch.arange(2.0, 2_000.0)
    root = exact_root(x).double()
    for other in (
        torch.nextafter(root.float(), torch.tensor(0.0)).double(),
        torch.nextafter(root.float(), torch.tensor(1e9)).double(),
    ):
        true = torch.from_numpy(np.sqrt(x.double().numpy()))
        assert ((root - true).abs() <= (other - true).abs()).all()


def test_replaced_values_leave_the_gradient_alone():
    (x,) = drawn((3, 4))
    where = x.detach() > 0
    out = kept_where(x, where, torch.zeros((), dtype=x.dtype))
    assert torch.equal(out, x.detach().clamp(min=0))
    (gradient,) = torch.autograd.grad(out, x, 2 * torch.ones_like(x))
    assert (gradient == 2).all() and where.any() and not where.all()


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


def test_plain_descent_has_the_bits_of_torchs():
    start = torch.linspace(-2, 3, 70)
    ours, theirs = (start.clone().requires_grad_() for _ in range(2))
    own, optimiser = SGD([ours], 0.03), torch.optim.SGD([theirs], lr=0.03)
    for step in range(20):
        own.step(torch.autograd.grad((ours.sin() * ours).sum(), [ours]))
        optimiser.zero_grad()
        (theirs.sin() * theirs).sum().backward()
        optimiser.step()
        assert torch.equal(ours, theirs), step
    assert not torch.equal(ours, start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_amsgrad_has_the_bits_of_torchs(dtype):
    """The gradient shrinks and changes its sign, so that the largest square matters."""
    start = torch.linspace(-2, 3, 70, dtype=dtype)
    ours, theirs = (start.clone().requires_grad_() for _ in range(2))
    own = Adam([ours], 0.1, amsgrad=True)
    optimiser = torch.optim.Adam([theirs], lr=0.1, amsgrad=True, fused=True)
    plain = start.clone().requires_grad_()
    without = Adam([plain], 0.1)
    for step in range(40):
        own.step(torch.autograd.grad((ours.sin() * ours).sum() / (step + 1), [ours]))
        without.step(torch.autograd.grad((plain.sin() * plain).sum() / (step + 1), [plain]))
        optimiser.zero_grad()
        ((theirs.sin() * theirs).sum() / (step + 1)).backward()
        optimiser.step()
        assert torch.equal(ours, theirs), step
    assert not torch.allclose(ours, plain, rtol=0, atol=1e-4)


def test_rmsprop_steps_as_torchs():
    """Up to rounding: torch's own root is not the correctly rounded one."""
    start = torch.linspace(-2, 3, 70, dtype=torch.float64)
    ours, theirs = (start.clone().requires_grad_() for _ in range(2))
    own, optimiser = RMSprop([ours], 0.03), torch.optim.RMSprop([theirs], lr=0.03)
    for step in range(40):
        own.step(torch.autograd.grad((ours.sin() * ours).sum(), [ours]))
        optimiser.zero_grad()
        (theirs.sin() * theirs).sum().backward()
        optimiser.step()
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-13), step
    assert not torch.allclose(ours, start, atol=0.1)


@pytest.mark.parametrize("descent", [Adam, SGD, RMSprop])
def test_gradients_of_another_shape_are_refused(descent):
    for wrong in (torch.ones(1, 2), torch.ones(2, 2), torch.ones(2)):
        with pytest.raises(ValueError, match="must have the weights' shapes"):
            descent([torch.zeros(3, 2)], 0.1).step([wrong])
    with pytest.raises(ValueError, match="must have the weights' shapes"):
        descent([torch.zeros(2), torch.zeros(2)], 0.1).step([torch.ones(2)])


def test_training_does_not_import_the_compiler():
    """It is why there is an Adam of our own: seconds in every process."""
    code = (
        "import lib.pinned, sys, torch; from lib.method import icarma; "
        "from lib.search import continuous; "
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


@pytest.mark.parametrize("descent", [Adam, SGD, RMSprop])
def test_a_descent_needs_weights_and_a_rate(descent):
    with pytest.raises(ValueError, match="weights is empty"):
        descent([], 0.1)
    for wrong in (0.0, -1.0, float("nan"), "fast"):
        with pytest.raises(ValueError, match="learning_rate must be above zero"):
            descent([torch.zeros(1)], wrong)
