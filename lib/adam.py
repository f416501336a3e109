"""Adam with a cosine-decayed learning rate: torch's function, without the optimiser object around it.

`torch.optim.Adam` imports torch's compiler when it is made, three to seven seconds in every process, and takes some 0.4 ms a
step beside the arithmetic, a third of a step of the classifier. The bits are the same.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Descent on a loss, with torch's defaults for everything but the learning rate.

    Arguments:
        weights: What is changed in place; leaves that require gradients, all of them part of every loss.
        learning_rate: At the start.
        n_decays, lowest: After so many calls of `decay`, and there may not be more, the rate has fallen to the lowest one
            along a cosine.
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float, n_decays: int = 0, lowest: float = 0.0) -> None:
        self.weights, self.learning_rate, self.n_decays, self.lowest = list(weights), learning_rate, n_decays, lowest
        self._means, self._squares = ([torch.zeros_like(w, requires_grad=False) for w in self.weights] for _ in range(2))
        self._steps = [torch.zeros((), dtype=torch.float32) for _ in self.weights]
        self._decayed = 0

    def step(self, loss: Tensor) -> None:
        """One step against the gradient of the loss, a scalar."""
        found = zip(torch.autograd.grad(loss, self.weights), self.weights, strict=True)
        # the fused kernel walks memory, so that a gradient must lie there as its weight does
        gradients = [g if g.stride() == w.stride() else torch.empty_like(w, requires_grad=False).copy_(g) for g, w in found]
        with torch.no_grad():
            adam(
                self.weights, gradients, self._means, self._squares, [], self._steps, fused=True, amsgrad=False,
                beta1=0.9, beta2=0.999, lr=self.learning_rate, weight_decay=0.0, eps=1e-8, maximize=False,
            )  # fmt: skip

    def decay(self) -> None:
        """Lower the learning rate, as torch's CosineAnnealingLR does it: step by step."""
        self._decayed += 1
        now, last = (1 + math.cos(math.pi * n / self.n_decays) for n in (self._decayed, self._decayed - 1))
        self.learning_rate = now / last * (self.learning_rate - self.lowest) + self.lowest
