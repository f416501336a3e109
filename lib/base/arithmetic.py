"""Stacks of small networks, side by side: products by numpy, the gradient written out.

torch's products can be pinned to the same bits on every processor only by a path that is about 2.5 times slower
(MKL_CBWR=COMPATIBLE). numpy's OpenBLAS, pinned to its Haswell kernels (`lib/__init__.py`), is both fast and the same.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def through_relu(gradient: Tensor, out: Tensor) -> Tensor:
    """The gradient in front of a ReLU from the one behind it, in place; `out` is what the ReLU gave."""
    return torch.ops.aten.threshold_backward.grad_input(
        gradient, out, 0, grad_input=gradient
    )


class _StackedNetwork(Function):
    """Layers alternate with ReLU. One node of the graph: what lies between the layers is worked on in place."""

    @staticmethod
    def forward(ctx, x: Tensor, *weights_and_biases: Tensor) -> Tensor:
        weights, biases = weights_and_biases[0::2], weights_and_biases[1::2]
        inputs = [x.contiguous()]
        for weight, bias in zip(weights, biases, strict=True):
            out = torch.from_numpy(np.matmul(inputs[-1].numpy(), weight.numpy())).add_(bias)
            inputs.append(out if len(inputs) == len(weights) else out.relu_())
        ctx.save_for_backward(*inputs[:-1], *weights)
        return inputs[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
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


def stacked_network(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> Tensor:
    """Each member's own network with ReLU between its layers: x (M, N, in) gives (M, N, out).

    Arguments:
        weights, biases: Of each layer, with shapes (M, in, out) and (M, 1, out).
    """
    return _StackedNetwork.apply(
        x, *(part for layer in zip(weights, biases, strict=True) for part in layer)
    )


class Adam:
    """Descent against gradients, with torch's defaults for everything but the learning rate.

    Arguments:
        weights: What is changed in place.
        learning_rate: At the start.
        n_decays, lowest: After so many calls of `decay`, and there may not be more, the rate has fallen to the lowest one
            along a cosine.
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        learning_rate: float,
        n_decays: int = 0,
        lowest: float = 0.0,
    ) -> None:
        self.weights, self.learning_rate, self.n_decays, self.lowest = (
            list(weights),
            learning_rate,
            n_decays,
            lowest,
        )
        self._means, self._squares = (
            [torch.zeros_like(w, requires_grad=False) for w in self.weights]
            for _ in range(2)
        )
        self._shapes = [w.shape for w in self.weights]
        self._n_steps = torch.zeros((), dtype=torch.float32)
        self._decayed = 0

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """One step against the gradient of the loss for each of the weights, in their order."""
        found = list(gradients)
        if [g.shape for g in found] != self._shapes:
            raise ValueError(
                f"Gradients must have the weights' shapes {self._shapes}, got {[g.shape for g in found]}."
            )
        # the kernel walks memory, so that a gradient must lie there as its weight does
        pairs = zip(found, self.weights, strict=True)
        gradients = [
            g if g.stride() == w.stride() else torch.empty_like(w).copy_(g)
            for g, w in pairs
        ]
        n_steps = [self._n_steps.add_(1)] * len(gradients)
        torch._fused_adam_(
            self.weights,
            gradients,
            self._means,
            self._squares,
            [],
            n_steps,
            lr=self.learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def decay(self) -> None:
        """Lower the learning rate, as torch's CosineAnnealingLR does it: step by step."""
        self._decayed += 1
        now, last = (
            1 + math.cos(math.pi * n / self.n_decays)
            for n in (self._decayed, self._decayed - 1)
        )
        self.learning_rate = now / last * (self.learning_rate - self.lowest) + self.lowest
