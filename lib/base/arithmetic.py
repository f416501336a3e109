"""What equal bits and speed cost: stacked layers, their gradient, and a descent.

A rerun has to give the same bits on every x86 processor (`lib.pinned`
says how). torch's own matrix products keep to that only on a path
that is about 2.5 times slower (MKL_CBWR=COMPATIBLE). The products of
numpy's OpenBLAS, pinned to its Haswell kernels, are both fast and the
same everywhere. So the layers of a stack multiply with numpy.
Autograd cannot look into numpy, and therefore their gradient is
written out here.

This is also the one room that calls what torch does not document.
Each call says why.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from lib.base import checks


def through_relu(gradient: Tensor, out: Tensor) -> Tensor:
    """Return the gradient in front of a ReLU, given the gradient behind it.

    It is computed in place, by the kernel that autograd itself calls
    behind `relu`. The kernel has no public name. The public ways, a
    mask and then a product or a fill, take 10 to 20 times as long for
    the same bits: they need a second pass and a new array.

    Arguments:
        gradient: Of the loss by what the ReLU gave, with any shape;
            overwritten.
        out: What the ReLU gave, with the same shape.
    Returns: `gradient`, which is zero now where the ReLU gave
        nothing.
    Raises: ValueError: the shapes differ.

    Example:
        >>> out = torch.tensor([-1.0, 0.0, 2.0]).relu()
        >>> through_relu(torch.tensor([5.0, 6.0, 7.0]), out)
        tensor([0., 0., 7.])
    """
    if gradient.shape != out.shape:
        raise ValueError(
            f"The gradient has shape {tuple(gradient.shape)}, but the ReLU gave "
            f"{tuple(out.shape)}: expected the same shape."
        )
    return torch.ops.aten.threshold_backward.grad_input(
        gradient, out, 0, grad_input=gradient
    )


def stacked_network(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> Tensor:
    """Return what each member's own network gives for its own inputs.

    A network is a row of linear layers with ReLU between them.

    Arguments:
        x: Inputs of the M members, with shape (M, N, in).
        weights: Of each layer, with shape (M, in, out).
        biases: Of each layer, with shape (M, 1, out).
    Returns: Outputs of the last layer, with shape (M, N, out).
    Raises: ValueError: no layers, or layers that do not fit each
        other or x.

    Example:
        Two members with one layer each: the first doubles its input,
        the second negates it.

        >>> weight = torch.tensor([2.0, -1.0]).view(2, 1, 1)
        >>> x = torch.tensor([[[1.0], [3.0]], [[1.0], [3.0]]])
        >>> stacked_network(x, [weight], [torch.zeros(2, 1, 1)]).squeeze(-1)
        tensor([[ 2.,  6.],
                [-1., -3.]])
    """
    _check_layers(x, weights, biases)
    return _StackedNetwork.apply(
        x, *(part for layer in zip(weights, biases, strict=True) for part in layer)
    )


def _check_layers(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """Raise ValueError unless the layers fit each other and x; a few microseconds."""
    if not weights or len(weights) != len(biases):
        raise ValueError(
            "A stack needs one weight and one bias for each of its layers, at least one: "
            f"got {len(weights)} weights and {len(biases)} biases."
        )
    if x.ndim != 3:
        raise ValueError(f"x has shape {tuple(x.shape)}, expected (members, people, in).")
    n_members, _, width = x.shape
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if weight.dtype != x.dtype:
            raise ValueError(
                f"The weight of layer {i} holds {weight.dtype} and x {x.dtype}: convert x, "
                "for instance with x.float(), or the weights."
            )
        if weight.shape[:-1] != (n_members, width):
            raise ValueError(
                f"The weight of layer {i} has shape {tuple(weight.shape)}, expected "
                f"({n_members}, {width}, out): as many members as x, and one row an input."
            )
        width = weight.shape[-1]
        if bias.shape != (n_members, 1, width):
            raise ValueError(
                f"The bias of layer {i} has shape {tuple(bias.shape)}, expected "
                f"{(n_members, 1, width)}."
            )


class _StackedNetwork(Function):
    """Linear layers with ReLU between them, for each member of a stack.

    All layers are one node of autograd's graph, so that what lies
    between them can be worked on in place, and nothing is kept twice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights_and_biases: Tensor) -> Tensor:
        """Return the outputs of the last layer, and keep what the gradient needs."""
        weights, biases = weights_and_biases[0::2], weights_and_biases[1::2]
        inputs = [x.contiguous()]
        for weight, bias in zip(weights, biases, strict=True):
            out = torch.from_numpy(np.matmul(inputs[-1].numpy(), weight.numpy())).add_(bias)
            inputs.append(out if len(inputs) == len(weights) else out.relu_())
        ctx.save_for_backward(*inputs[:-1], *weights)
        return inputs[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x and by each layer's weight and bias.

        It goes from the last layer to the first. Of a layer out = in
        W + b, with the gradient G by out, the gradient by W is in^T
        G, that by b is the sum of G over people, and that by in is G
        W^T.
        """
        saved = ctx.saved_tensors
        n_layers = len(saved) // 2
        inputs, weights = saved[:n_layers], saved[n_layers:]
        gradients: list[Tensor] = []
        for i in reversed(range(n_layers)):
            outer = gradient.contiguous()
            for_weight = torch.from_numpy(
                np.matmul(inputs[i].numpy().swapaxes(-1, -2), outer.numpy())
            )
            gradients = [for_weight, outer.sum(-2, keepdim=True), *gradients]
            if i or ctx.needs_input_grad[0]:
                gradient = torch.from_numpy(
                    np.matmul(outer.numpy(), weights[i].numpy().swapaxes(-1, -2))
                )
            if i:
                gradient = through_relu(gradient, inputs[i])
        return gradient if ctx.needs_input_grad[0] else None, *gradients


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
    ) -> None:
        checks.positive(learning_rate=learning_rate)
        self.weights = list(weights)
        checks.not_empty("weights", self.weights)
        self.learning_rate = learning_rate
        self.n_decays = n_decays
        self.lowest = lowest
        self._means, self._squares = (
            [torch.zeros_like(w, requires_grad=False) for w in self.weights]
            for _ in range(2)
        )
        self._shapes = [w.shape for w in self.weights]
        self._n_steps = torch.zeros((), dtype=torch.float32)
        self._decayed = 0

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
        if [g.shape for g in found] != self._shapes:
            raise ValueError(
                "Gradients must have the weights' shapes "
                f"{[tuple(shape) for shape in self._shapes]}, got "
                f"{[tuple(g.shape) for g in found]}."
            )
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
            [],
            [self._n_steps.add_(1)] * len(in_place),
            lr=self.learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
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
        if self._decayed >= self.n_decays:
            raise ValueError(
                f"The learning rate has been lowered {self._decayed} times already, and "
                f"n_decays is {self.n_decays}: ask for more when Adam is made."
            )
        self._decayed += 1
        now, last = (
            1 + math.cos(math.pi * n / self.n_decays)
            for n in (self._decayed, self._decayed - 1)
        )
        self.learning_rate = now / last * (self.learning_rate - self.lowest) + self.lowest
