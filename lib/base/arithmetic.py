"""What equal bits and speed cost: dense networks, an exact root, exp, and a descent.

A rerun has to give the same bits on every x86 processor (`lib.pinned`
says how). torch's own matrix products keep to that only on a path
that is about 2.5 times slower (MKL_CBWR=COMPATIBLE). The products of
numpy's OpenBLAS, pinned to its Haswell kernels, are both fast and the
same everywhere. So every network of the project multiplies with
numpy. Autograd cannot look into numpy, and therefore the gradient is
written out here.

This is also the one room that calls what torch does not document.
Each call says why.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from lib.base import checks


def exact_root(x: Tensor) -> Tensor:
    """Return the square root of each entry, correctly rounded.

    torch's own root is not: under the pins, every fifth of its
    float32 values differs from the correctly rounded one, and which
    do depends on the processor. numpy's is the same everywhere.

    Example:
        >>> x = torch.tensor([4.0, 2.0], requires_grad=True)
        >>> exact_root(x).tolist()
        [2.0, 1.4142135381698608]
        >>> exact_root(x).sum().backward()
        >>> x.grad
        tensor([0.2500, 0.3536])
    """
    return _Root.apply(x)


class _Root(Function):
    """The square root by numpy, with gradient 0.5 / root."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the root, and keep it for the gradient."""
        root = torch.empty_like(x)
        np.sqrt(x.numpy(), out=root.numpy())
        ctx.save_for_backward(root)
        return root

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Return the gradient by x."""
        (root,) = ctx.saved_tensors
        return gradient * (0.5 / root)


def each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """Return a function of module math of each of some values, with shape (C,).

    numpy's own exp and log differ in their last bit from processor to
    processor.

    Example:
        >>> each(math.exp, np.array([0.0, 1.0])).round(3)
        array([1.   , 2.718])
    """
    return np.array([function(value) for value in values.tolist()])


def kept_where(x: Tensor, keep: Tensor, otherwise: Tensor) -> Tensor:
    """Return x where it is kept, other values elsewhere, and x's gradient everywhere.

    Arguments:
        x: With any shape.
        keep: Which entries are kept, bool, with the same shape.
        otherwise: What the others become, with a shape that expands
            to that of x. No gradient reaches it.

    Example:
        >>> x = torch.tensor([1e-7, 2.0], requires_grad=True)
        >>> clean = kept_where(x, torch.tensor([False, True]), torch.zeros(()))
        >>> clean.tolist()
        [0.0, 2.0]
        >>> clean.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    return _KeptWhere.apply(x, keep, otherwise)


class _KeptWhere(Function):
    """A choice of values that the gradient passes straight through."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor, otherwise: Tensor) -> Tensor:
        """Return the chosen values."""
        return torch.where(keep, x, otherwise)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient by x: all of it."""
        return gradient, None, None


# Each works in place. The gradients are the kernels that autograd itself calls behind the
# activation, given what it gave. They have no public names. The public ways, a mask or an
# exponential and then a product, take several times as long for the same bits: they need
# more passes and new arrays.
_ACTIVATE = {"relu": torch.relu_, "elu": F.elu_, "tanh": torch.tanh_}
_aten = torch.ops.aten
_GRADIENT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda g, out: _aten.threshold_backward.grad_input(g, out, 0, grad_input=g),
    "elu": lambda g, out: _aten.elu_backward.grad_input(
        g, 1, 1, 1, True, out, grad_input=g
    ),
    "tanh": lambda g, out: _aten.tanh_backward.grad_input(g, out, grad_input=g),
}
ACTIVATIONS = tuple(_ACTIVATE)


def network(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str = "relu",
) -> Tensor:
    """Return what a dense network gives, or a stack of them, each for its own inputs.

    A network is a row of linear layers with an activation between
    them. Gradients are worked out for those of its arguments that ask
    for one.

    Arguments:
        x: Inputs, with shape (*, in); for a stack of M members,
            inputs of each, with shape (M, N, in).
        weights: Of each layer, with shape (in, out); for a stack (M,
            in, out).
        biases: Of each layer, with shape (out,); for a stack (M, 1,
            out).
        activation: "relu", "elu" or "tanh".
    Returns: Outputs of the last layer, with shape (*, out); for a
        stack (M, N, out).
    Raises: ValueError: no layers, layers that do not fit each other
        or x, or another activation.

    Example:
        Two members with one layer each: the first doubles its input,
        the second negates it.

        >>> weight = torch.tensor([2.0, -1.0]).view(2, 1, 1)
        >>> x = torch.tensor([[[1.0], [3.0]], [[1.0], [3.0]]])
        >>> network(x, [weight], [torch.zeros(2, 1, 1)]).squeeze(-1)
        tensor([[ 2.,  6.],
                [-1., -3.]])
        >>> network(torch.tensor([5.0]), [weight[0]], [torch.ones(1)])  # one network
        tensor([11.])
    """
    checks.known("activation", [activation], ACTIVATIONS)
    _check_layers(x, weights, biases)
    layers = [part for layer in zip(weights, biases, strict=True) for part in layer]
    if weights[0].ndim == 3 or x.ndim == 2:
        return _Network.apply(activation, x, *layers)
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # one product for them all
    out = _Network.apply(activation, rows, *layers)
    return out.view(*x.shape[:-1], out.shape[-1])


def _check_layers(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """Raise ValueError unless the layers fit each other and x; a few microseconds."""
    if not weights or len(weights) != len(biases):
        raise ValueError(
            "A network needs one weight and one bias for each of its layers, at least one: "
            f"got {len(weights)} weights and {len(biases)} biases."
        )
    is_stack = weights[0].ndim == 3
    if x.ndim != 3 if is_stack else x.ndim < 1:
        expected = "(members, people, in)" if is_stack else "(*, in)"
        raise ValueError(f"x has shape {tuple(x.shape)}, expected {expected}.")
    members, width = x.shape[:1] if is_stack else (), x.shape[-1]
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if weight.dtype != x.dtype:
            raise ValueError(
                f"The weight of layer {i} holds {weight.dtype} and x {x.dtype}: convert x, "
                "for instance with x.float(), or the weights."
            )
        if weight.shape[:-1] != (*members, width):
            raise ValueError(
                f"The weight of layer {i} has shape {tuple(weight.shape)}, expected "
                f"({', '.join(map(str, (*members, width)))}, out): as many members as x, "
                "and one row an input."
            )
        width = weight.shape[-1]
        expected_bias = (*members, 1, width) if is_stack else (width,)
        if bias.shape != expected_bias:
            raise ValueError(
                f"The bias of layer {i} has shape {tuple(bias.shape)}, expected "
                f"{expected_bias}."
            )


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product, or that of each member, by numpy."""
    with np.errstate(over="ignore", invalid="ignore"):  # as torch; fits look at what comes
        return torch.from_numpy(np.matmul(a.numpy(), b.numpy()))


class _Network(Function):
    """Linear layers with an activation between them.

    All layers are one node of autograd's graph, so that what lies
    between them can be worked on in place, and nothing is kept twice.
    """

    @staticmethod
    def forward(
        ctx: Any, activation: str, x: Tensor, *weights_and_biases: Tensor
    ) -> Tensor:
        """Return the outputs of the last layer, and keep what the gradient needs."""
        weights, biases = weights_and_biases[0::2], weights_and_biases[1::2]
        inputs = [x.contiguous()]
        for weight, bias in zip(weights, biases, strict=True):
            out = _product(inputs[-1], weight).add_(bias)
            is_last = len(inputs) == len(weights)
            inputs.append(out if is_last else _ACTIVATE[activation](out))
        ctx.activation = activation
        ctx.save_for_backward(*inputs[:-1], *weights)
        return inputs[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x and by each layer's weight and bias, where needed.

        It goes from the last layer to the first that asks for one. Of
        a layer out = in W + b, with the gradient G by out, the
        gradient by W is in^T G, that by b is the sum of G over
        people, and that by in is G W^T.
        """
        saved = ctx.saved_tensors
        n_layers = len(saved) // 2
        inputs, weights = saved[:n_layers], saved[n_layers:]
        _, for_x, *for_layers = ctx.needs_input_grad
        first = 0 if for_x else for_layers.index(True) // 2
        found: list[Tensor | None] = [None] * (2 * n_layers)
        for i in reversed(range(first, n_layers)):
            outer = gradient.contiguous()
            if for_layers[2 * i]:
                found[2 * i] = _product(inputs[i].mT, outer)
            if for_layers[2 * i + 1]:
                found[2 * i + 1] = outer.sum(-2, keepdim=outer.ndim == 3)
            if i > first or for_x:
                gradient = _product(outer, weights[i].mT)
            if i > first:
                gradient = _GRADIENT[ctx.activation](gradient, inputs[i])
        return None, gradient if for_x else None, *found


class Adam:
    """Hold weights that descend against gradients, with torch's defaults for Adam.

    `torch.optim` would import torch's compiler, which takes seconds
    in every process. The steps and the schedule are those of
    `torch.optim.Adam(fused=True)` and of `CosineAnnealingLR`, to the
    bit.

    Arguments:
        weights: What is changed, in place; all of one dtype.
        learning_rate: At the start.
        n_decays: After so many calls of `decay` the rate has fallen
            to `lowest`, along a cosine. There may not be more calls.
        lowest: The learning rate at the end.
        amsgrad: Divide by the root of the largest mean square so far,
            not of the latest one.
        weight_decay: So much of each weight is added to its gradient.
    Raises: ValueError: there are no weights, or the learning rate is
        not above zero.

    Example:
        >>> w = torch.tensor([3.0])
        >>> adam = Adam([w], learning_rate=0.1)
        >>> for _ in range(100):
        ...     adam.step([2 * (w - 1)])  # the gradient of (w - 1)^2
        >>> round(w.item(), 1)
        1.0
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        learning_rate: float,
        n_decays: int = 0,
        lowest: float = 0.0,
        amsgrad: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        checks.positive(learning_rate=learning_rate)
        self.weights, self._weight_decay = list(weights), weight_decay
        checks.not_empty("weights", self.weights)
        self._rate = torch.tensor(learning_rate, dtype=torch.float64)
        self.n_decays = n_decays
        self.lowest = lowest
        self._means, self._squares = (
            [torch.zeros_like(w, requires_grad=False) for w in self.weights]
            for _ in range(2)
        )
        self._largest = [torch.zeros_like(own) for own in self._squares if amsgrad]
        self._n_steps = torch.zeros((), dtype=torch.float32)
        self._n_decayed = torch.zeros((), dtype=torch.int64)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step.

        Example:
            >>> Adam([torch.zeros(1)], learning_rate=0.1).learning_rate
            0.1
        """
        return self._rate.item()

    @property
    def state(self) -> dict[str, Tensor]:
        """What it remembers beside the weights, by name; copy into it to go on from there.

        Example:
            >>> list(Adam([torch.zeros(1)], learning_rate=0.1).state)
            ['rate', 'n_steps', 'n_decayed', 'mean_0', 'square_0']
        """
        found = {
            "rate": self._rate,
            "n_steps": self._n_steps,
            "n_decayed": self._n_decayed,
        }
        for name, own in (
            ("mean", self._means),
            ("square", self._squares),
            ("largest", self._largest),
        ):
            found |= {f"{name}_{i}": part for i, part in enumerate(own)}
        return found

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """Take one step against the gradient of the loss by each of the weights.

        Arguments:
            gradients: In the order of the weights, with their shapes.
        Raises: ValueError: a gradient has another shape, or one is
            missing.

        Example:
            The first step goes as far as the learning rate, whatever
            the gradient's size.

            >>> w = torch.zeros(2)
            >>> Adam([w], learning_rate=0.5).step([torch.tensor([1e-3, -1e3])])
            >>> w.round(decimals=3)
            tensor([-0.5000,  0.5000])
        """
        found = list(gradients)
        _check_gradients(found, self.weights)
        # The kernel walks through memory: a gradient must lie there as its weight does.
        in_place = [
            g if g.stride() == w.stride() else torch.empty_like(w).copy_(g)
            for g, w in zip(found, self.weights, strict=True)
        ]
        # All weights in one pass over memory. torch.optim calls the same kernel, and there
        # is no public way to it that does not import the compiler.
        torch._fused_adam_(
            self.weights,
            in_place,
            self._means,
            self._squares,
            self._largest,
            [self._n_steps.add_(1)] * len(in_place),
            lr=self.learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self._weight_decay,
            eps=1e-8,
            amsgrad=bool(self._largest),
            maximize=False,
        )

    def decay(self) -> None:
        """Lower the learning rate, as torch's CosineAnnealingLR does it: step by step.

        Raises: ValueError: it has been called `n_decays` times
            already.

        Example:
            >>> adam = Adam([torch.zeros(1)], learning_rate=0.1, n_decays=2)
            >>> adam.decay()
            >>> round(adam.learning_rate, 3)
            0.05
            >>> adam.decay()
            >>> round(adam.learning_rate, 3)
            0.0
        """
        n_decayed = int(self._n_decayed)
        if n_decayed >= self.n_decays:
            raise ValueError(
                f"The learning rate has been lowered {n_decayed} times already, and "
                f"n_decays is {self.n_decays}: ask for more when Adam is made."
            )
        self._n_decayed += 1
        now, last = (
            1 + math.cos(math.pi * n / self.n_decays) for n in (n_decayed + 1, n_decayed)
        )
        self._rate.fill_(now / last * (self.learning_rate - self.lowest) + self.lowest)


class SGD:
    """Hold weights that descend against gradients, each step as long as its gradient.

    The steps are those of `torch.optim.SGD` without momentum, to the
    bit.

    Arguments:
        weights: What is changed, in place; all of one dtype.
        learning_rate: The same in all steps.
    Raises: ValueError: there are no weights, or the learning rate is
        not above zero.

    Example:
        >>> w = torch.tensor([3.0])
        >>> sgd = SGD([w], learning_rate=0.1)
        >>> for _ in range(50):
        ...     sgd.step([2 * (w - 1)])  # the gradient of (w - 1)^2
        >>> round(w.item(), 3)
        1.0
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float) -> None:
        checks.positive(learning_rate=learning_rate)
        self.weights = list(weights)
        checks.not_empty("weights", self.weights)
        self.learning_rate = learning_rate

    @property
    def state(self) -> dict[str, Tensor]:
        """What it remembers beside the weights: nothing.

        Example:
            >>> SGD([torch.zeros(1)], learning_rate=0.1).state
            {}
        """
        return {}

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """Take one step against the gradient of the loss by each of the weights.

        Arguments:
            gradients: In the order of the weights, with their shapes.
        Raises: ValueError: a gradient has another shape, or one is
            missing.

        Example:
            >>> w = torch.zeros(2)
            >>> SGD([w], learning_rate=0.5).step([torch.tensor([1.0, -2.0])])
            >>> w
            tensor([-0.5000,  1.0000])
        """
        found = list(gradients)
        _check_gradients(found, self.weights)
        for w, gradient in zip(self.weights, found, strict=True):
            w.sub_(gradient, alpha=self.learning_rate)


class RMSprop:
    """Hold weights that descend, each step by its gradient over that gradient's usual size.

    The steps are those of `torch.optim.RMSprop` with its defaults,
    but for the root, which is correctly rounded here.

    Arguments:
        weights: What is changed, in place; all of one dtype.
        learning_rate: The same in all steps.
    Raises: ValueError: there are no weights, or the learning rate is
        not above zero.

    Example:
        >>> w = torch.tensor([3.0])
        >>> descent = RMSprop([w], learning_rate=0.02)
        >>> for _ in range(150):
        ...     descent.step([2 * (w - 1)])  # the gradient of (w - 1)^2
        >>> round(w.item(), 1)
        1.0
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float) -> None:
        checks.positive(learning_rate=learning_rate)
        self.weights = list(weights)
        checks.not_empty("weights", self.weights)
        self.learning_rate = learning_rate
        self._squares = [torch.zeros_like(w, requires_grad=False) for w in self.weights]

    @property
    def state(self) -> dict[str, Tensor]:
        """What it remembers beside the weights, as for `Adam`.

        Example:
            >>> RMSprop([torch.zeros(1)], learning_rate=0.1).state
            {'square_0': tensor([0.])}
        """
        return {f"square_{i}": part for i, part in enumerate(self._squares)}

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """Take one step against the gradient of the loss by each of the weights.

        Arguments:
            gradients: In the order of the weights, with their shapes.
        Raises: ValueError: a gradient has another shape, or one is
            missing.

        Example:
            The first step is ten times the learning rate, whatever
            the gradient's size.

            >>> w = torch.zeros(2)
            >>> RMSprop([w], learning_rate=0.5).step([torch.tensor([1e-3, -1e3])])
            >>> w.round(decimals=3)
            tensor([-5.,  5.])
        """
        found = list(gradients)
        _check_gradients(found, self.weights)
        for w, gradient, square in zip(self.weights, found, self._squares, strict=True):
            square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
            w.addcdiv_(gradient, exact_root(square).add_(1e-8), value=-self.learning_rate)


def _check_gradients(gradients: Sequence[Tensor], weights: Sequence[Tensor]) -> None:
    """Raise ValueError unless there is a gradient of its shape for each of the weights."""
    shapes = [tuple(w.shape) for w in weights]
    if [tuple(g.shape) for g in gradients] != shapes:
        raise ValueError(
            f"Gradients must have the weights' shapes {shapes}, got "
            f"{[tuple(g.shape) for g in gradients]}."
        )
