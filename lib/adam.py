"""Adam with a cosine-decayed learning rate: torch's kernel, without the optimiser object around it.

`torch.optim.Adam` imports torch's compiler when it is made, three to seven seconds in every process, and takes some 0.4 ms a
step beside the arithmetic, as much as a whole step of the classifier. The bits are the same.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor


class Adam:
    """Descent against gradients, with torch's defaults for everything but the learning rate.

    Arguments:
        weights: What is changed in place.
        learning_rate: At the start.
        n_decays, lowest: After so many calls of `decay`, and there may not be more, the rate has fallen to the lowest one
            along a cosine.
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float, n_decays: int = 0, lowest: float = 0.0) -> None:
        self.weights, self.learning_rate, self.n_decays, self.lowest = list(weights), learning_rate, n_decays, lowest
        self._means, self._squares = ([torch.zeros_like(w, requires_grad=False) for w in self.weights] for _ in range(2))
        self._shapes = [w.shape for w in self.weights]
        self._n_steps = torch.zeros((), dtype=torch.float32)
        self._decayed = 0

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """One step against the gradient of the loss for each of the weights, in their order."""
        found = list(gradients)
        if [g.shape for g in found] != self._shapes:
            raise ValueError(f"Gradients must have the weights' shapes {self._shapes}, got {[g.shape for g in found]}.")
        # the kernel walks memory, so that a gradient must lie there as its weight does
        pairs = zip(found, self.weights, strict=True)
        gradients = [g if g.stride() == w.stride() else torch.empty_like(w).copy_(g) for g, w in pairs]
        n_steps = [self._n_steps.add_(1)] * len(gradients)
        torch._fused_adam_(
            self.weights, gradients, self._means, self._squares, [], n_steps, lr=self.learning_rate,
            beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    def decay(self) -> None:
        """Lower the learning rate, as torch's CosineAnnealingLR does it: step by step."""
        self._decayed += 1
        now, last = (1 + math.cos(math.pi * n / self.n_decays) for n in (self._decayed, self._decayed - 1))
        self.learning_rate = now / last * (self.learning_rate - self.lowest) + self.lowest
