"""The classifier h that decides; it is fixed once fitted."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, files
from lib.base.arithmetic import Adam, through_relu


class Classifier:
    """h: features to the probability of a positive decision, a D-32-32-1 network with ReLU.

    Arguments:
        features: Names of the D features.
        weights, biases: Of each layer, with shapes (out, in) and (out,).
    Source: section 5.1 of arXiv:2604.08030.
    """

    def __init__(
        self, features: Sequence[str], weights: Sequence[Tensor], biases: Sequence[Tensor]
    ) -> None:
        self.features = tuple(features)
        self.weights = [w.detach() for w in weights]
        self.biases = [b.detach() for b in biases]

    def logit(self, x: Tensor) -> Tensor:
        """Log-odds of a positive decision, with shape (*,), for standardised features (*, D)."""
        return self.logit_from_first_layer(F.linear(x, self.weights[0], self.biases[0]))

    def logit_from_first_layer(self, hidden: Tensor) -> Tensor:
        """Log-odds, with shape (*,), from the first layer's sums before their ReLU, with shape (*, 32)."""
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = F.linear(F.relu(hidden), weight, bias)
        return hidden.squeeze(-1)

    def probability(self, x: Tensor) -> Tensor:
        """h(x), with shape (*,)."""
        checks.people("x", x, self.features)
        return torch.sigmoid(self.logit(x))

    def accepts(self, x: Tensor) -> Tensor:
        """Whether the decision is positive, h(x) >= 0.5, with shape (*,)."""
        checks.people("x", x, self.features)
        return self.logit(x) >= 0

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Write folder/name.safetensors; `made_with` as for `files.save`."""
        tensors = {f"weight_{i}": w for i, w in enumerate(self.weights)}
        tensors |= {f"bias_{i}": b for i, b in enumerate(self.biases)}
        return files.save(folder, name, tensors, {"features": self.features}, made_with)

    @classmethod
    def load(cls, folder: Path, name: str) -> "Classifier":
        tensors, settings = files.load(folder, name)
        layers = range(len(tensors) // 2)
        return cls(
            settings["features"],
            [tensors[f"weight_{i}"] for i in layers],
            [tensors[f"bias_{i}"] for i in layers],
        )


def _logits_and_gradients(
    layers: Sequence[Tensor], x: Tensor, y: Tensor, weight: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Log-odds (N,) and the gradient of their mean weighted cross-entropy for each of the layers, written out.

    Arguments:
        layers: Three weights with shapes (out, in), each followed by its bias (out,).
        x, y, weight: People (N, D), their labels (N,) as 0 or 1, and how much they weigh (N,).
    """
    w0, b0, w1, b1, w2, b2 = layers
    first = F.linear(x, w0, b0).relu_()
    second = F.linear(first, w1, b1).relu_()
    logits = F.linear(second, w2, b2).squeeze(-1)
    g2 = logits.sigmoid().sub_(y).mul_(weight).div_(len(x)).unsqueeze(-1)
    g1 = through_relu(g2 @ w2, second)
    g0 = through_relu(g1 @ w1, first)
    return logits, [
        g0.t() @ x,
        g0.sum(0),
        g1.t() @ first,
        g1.sum(0),
        g2.t() @ second,
        g2.sum(0),
    ]


def fit(
    features: Sequence[str],
    x: Tensor,
    y: Tensor,
    n_epochs: int = 500,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    weight_of_refusable: float = 1.0,
    seed: int = 0,
    progress: Callable[[range], range] = iter,
) -> tuple[Classifier, np.ndarray]:
    """A classifier fitted by cross-entropy with Adam, and its mean training loss after each epoch.

    Arguments:
        x, y: Standardised features (N, D) and labels (N,) of the training split.
        weight_of_refusable: How much more it costs to accept someone with a negative label than to refuse someone with a
            positive one; people with a negative label weigh that much in the loss.
        progress: Wraps the range of epochs, for instance `tqdm`.
    Source: section 5.1 and appendix C of arXiv:2604.08030.
    """
    checks.people("x", x, features)
    checks.shape("y", y, x.shape[:-1])
    checks.positive(
        n_epochs=n_epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_of_refusable=weight_of_refusable,
    )
    if len(x) == 0:
        raise ValueError("x holds nobody: give at least one person to learn from.")
    rng = np.random.default_rng(seed)
    sizes = [x.shape[-1], 32, 32, 1]
    layers = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        bound = 1 / np.sqrt(n_in)
        weight, bias = (
            rng.uniform(-bound, bound, (n_out, n_in)),
            rng.uniform(-bound, bound, n_out),
        )
        layers += [torch.tensor(weight, dtype=x.dtype), torch.tensor(bias, dtype=x.dtype)]
    optimiser = Adam(layers, learning_rate)
    weight = torch.where(y.bool(), 1.0, weight_of_refusable)
    losses = np.zeros(n_epochs)
    for epoch in progress(range(n_epochs)):
        order = torch.from_numpy(rng.permutation(len(x)))
        shuffled = [part[order].to(x.dtype) for part in (x, y, weight)]
        logits = []
        for batch in zip(*(part.split(batch_size) for part in shuffled), strict=True):
            shown, gradients = _logits_and_gradients(layers, *batch)
            optimiser.step(gradients)
            logits.append(shown)
        losses[epoch] = F.binary_cross_entropy_with_logits(
            torch.cat(logits), *shuffled[1:]
        ).item()
    return Classifier(features, layers[0::2], layers[1::2]), losses
