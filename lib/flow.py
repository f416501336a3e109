"""The causal normalizing flow: a world learned from data and a graph, that also gives densities."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zuko
from torch import Tensor, nn
from torch.nn import functional as F

from lib import artefacts, checks
from lib.world import World

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}


def _build(parents: Mapping[str, Sequence[str]], hidden: Sequence[int], activation: str):
    """zuko's masked autoregressive layer, with the causal graph for its masks."""
    adjacency = World(parents).adjacency() | torch.eye(len(parents), dtype=torch.bool)
    return zuko.flows.MaskedAutoregressiveTransform(
        len(parents), adjacency=adjacency, hidden_features=hidden, activation=ACTIVATIONS[activation]
    )


class CausalFlow(World):
    r"""One autoregressive layer whose masks are the causal graph; z = T(x) stands for the exogenous noise.

    .. math:: z_j = e^{s_j(x_{pa(j)})} x_j + t_j(x_{pa(j)}), \quad z_j \sim N(0, 1)

    One layer only: a stack of them would let a feature depend on its parents' noise by other ways than
    through the parents, and interventions would no longer be consistent with the graph.

    Arguments:
        parents: Direct causes of each feature, in causal order.
        hidden: Widths of the hidden layers.
        activation: "elu", "relu" or "tanh".
        weights: State of the zuko layer, by name.
    Source: section 3 of arXiv:2604.08030; causal normalizing flows, Javaloy et al., 2023.
    """

    def __init__(
        self, parents: Mapping[str, Sequence[str]], hidden: Sequence[int], activation: str, weights: Mapping[str, Tensor]
    ) -> None:
        super().__init__(parents)
        self.settings: dict[str, Any] = {
            "parents": {name: list(causes) for name, causes in parents.items()},
            "hidden": list(hidden),
            "activation": activation,
        }
        dtype = next(w.dtype for w in weights.values() if w.is_floating_point())
        self.zuko_layer = _build(parents, hidden, activation).to(dtype)
        self.zuko_layer.load_state_dict(weights)
        self.zuko_layer.requires_grad_(False)
        self._conditioners = [self._conditioner(j) for j in range(len(self.features))]

    def _conditioner(self, j: int) -> list[tuple[Tensor, Tensor]]:
        """Dense layers that give feature j's two numbers (t, s) from its parents alone.

        The masked network holds D such networks side by side; most of its products are by zero.
        """
        outputs = torch.arange(2 * j, 2 * j + 2)
        layers: list[tuple[Tensor, Tensor]] = []
        for module in reversed([m for m in self.zuko_layer.hyper if isinstance(m, nn.Linear)]):
            weight = (module.weight * module.mask)[outputs]
            inputs = (module.mask[outputs].any(0)).nonzero().squeeze(-1)
            layers.insert(0, (weight[:, inputs].contiguous(), module.bias[outputs].contiguous()))
            outputs = inputs
        if outputs.tolist() != self.parent_index[j]:  # the first layer reads the parents, or nothing (a root)
            layers = [(weight.new_zeros(2, 0), layers[-1][1])]
        return layers

    def shift_and_log_scale(self, j: int, x_parents: Tensor) -> tuple[Tensor, Tensor]:
        """Feature j's two numbers t and s, each with shape (*,), from its parents (*, P)."""
        activation = getattr(F, self.settings["activation"])
        hidden = x_parents
        for i, (weight, bias) in enumerate(self._conditioners[j]):
            hidden = F.linear(activation(hidden) if i else hidden, weight, bias)
        shift, raw = hidden.unbind(-1)
        return shift, raw / (1 + abs(raw / np.log(1e-3)))  # bounded as in zuko's MonotonicAffineTransform

    def abduct(self, x: Tensor) -> Tensor:
        columns = []
        for j, causes in enumerate(self.parent_index):
            shift, log_scale = self.shift_and_log_scale(j, x[..., causes])
            columns.append(x[..., j] * log_scale.exp() + shift)
        return torch.stack(columns, -1)

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        shift, log_scale = self.shift_and_log_scale(j, x_parents)
        return (noise - shift) * (-log_scale).exp()

    def log_prob_terms(self, x: Tensor, columns: Sequence[int] | None = None) -> Tensor:
        """Each feature's term log p(x_j | parents) of the log-density, in nats, with shape (*, len(columns)).

        Arguments:
            x: Standardised features, with shape (*, D).
            columns: Which terms are wanted; left out: all D.
        """
        terms = []
        for j in range(len(self.features)) if columns is None else columns:
            shift, log_scale = self.shift_and_log_scale(j, x[..., self.parent_index[j]])
            z = x[..., j] * log_scale.exp() + shift
            terms.append(log_scale - 0.5 * z.square() - 0.5 * float(np.log(2 * np.pi)))
        return torch.stack(terms, -1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density of standardised features (*, D), in nats, with shape (*,)."""
        checks.people("x", x, self.features)
        return self.log_prob_terms(x).sum(-1)

    def shifts_and_log_scales(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Every feature's two numbers t and s, each with shape (*, D)."""
        both = [self.shift_and_log_scale(j, x[..., causes]) for j, causes in enumerate(self.parent_index)]
        return torch.stack([t for t, _ in both], -1), torch.stack([s for _, s in both], -1)

    def act(
        self, x: Tensor, z: Tensor, t: Tensor, s: Tensor, columns: Sequence[int], m: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`counterfactual` and the change of the log-density in one walk, for training: masks carry gradients.

        The networks behind t and s are asked anew only where a parent may have moved, and once for both results.

        Arguments:
            x, z, t, s: The factual, its latent, shifts and log-scales, with shape (*, D).
            columns: The K features that may be acted on.
            m, a: Mask (0 or 1 in value) and values of these features, with shape (*, K).
        Returns: x_cf with shape (*, D) and log p(x_cf) - log p(x) in nats with shape (*,).
        """
        after, gain = list(x.unbind(-1)), torch.zeros(x.shape[:-1], dtype=x.dtype)
        movable = self.reaches[list(columns)].any(0).tolist()
        for j, causes in enumerate(self.parent_index):
            tj, sj = t[..., j], s[..., j]
            if movable[j]:
                tj, sj = self.shift_and_log_scale(j, torch.stack([after[i] for i in causes], -1))
                after[j] = (z[..., j] - tj) * (-sj).exp()
                gain = gain + sj - s[..., j]
            if j in columns:
                k = columns.index(j)
                after[j] = m[..., k] * a[..., k] + (1 - m[..., k]) * after[j]
                gain = gain + 0.5 * (z[..., j].square() - (after[j] * sj.exp() + tj).square())
        return torch.stack(after, -1), gain

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Write folder/name.safetensors; `made_with` as for `artefacts.save`."""
        weights = {k: v for k, v in self.zuko_layer.state_dict().items() if not k.endswith("mask")}
        return artefacts.save(folder, name, weights, self.settings, made_with)

    @classmethod
    def load(cls, folder: Path, name: str) -> "CausalFlow":
        tensors, settings = artefacts.load(folder, name)
        masks = {k: v for k, v in _build(**settings).state_dict().items() if k.endswith("mask")}
        return cls(**settings, weights=tensors | masks)


def fit(
    parents: Mapping[str, Sequence[str]],
    x: Tensor,
    x_validation: Tensor,
    hidden: Sequence[int] = (64,),
    activation: str = "elu",
    n_epochs: int = 300,
    batch_size: int = 1000,
    learning_rate: float = 5e-3,
    seed: int = 0,
    progress: Callable[[range], range] = iter,
) -> tuple[CausalFlow, dict[str, np.ndarray]]:
    """A flow fitted by maximum likelihood with Adam and a cosine-decayed learning rate.

    Arguments:
        parents: The causal graph.
        x, x_validation: Standardised features, each with shape (N, D).
        progress: Wraps the range of epochs, for instance `tqdm`.
    Returns: The flow of the epoch with the best validation log-likelihood, and the mean log-likelihoods
        "train" and "validation" after each epoch, in nats.
    """
    checks.people("x", x, tuple(parents))
    checks.people("x_validation", x_validation, tuple(parents))
    checks.known("activation", [activation], tuple(ACTIVATIONS))
    checks.positive(n_epochs=n_epochs, batch_size=batch_size, learning_rate=learning_rate)
    rng = np.random.default_rng(seed)
    layer = _build(parents, hidden, activation).to(x.dtype)
    with torch.no_grad():
        for module in layer.hyper:
            if isinstance(module, nn.Linear):
                bound = 1 / np.sqrt(module.in_features)
                module.weight.copy_(torch.from_numpy(rng.uniform(-bound, bound, module.weight.shape)))
                module.bias.copy_(torch.from_numpy(rng.uniform(-bound, bound, module.bias.shape)))
    optimiser = torch.optim.Adam(layer.parameters(), lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_epochs)

    def log_likelihood(x: Tensor) -> Tensor:
        z, log_volume = layer().call_and_ladj(x)
        return (log_volume - 0.5 * z.square().sum(-1)).mean() - 0.5 * len(parents) * np.log(2 * np.pi)

    history = {"train": np.zeros(n_epochs), "validation": np.zeros(n_epochs)}
    best, best_weights = -np.inf, layer.state_dict()
    for epoch in progress(range(n_epochs)):
        for batch in x[torch.from_numpy(rng.permutation(len(x)))].split(batch_size):
            loss = -log_likelihood(batch)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            history["train"][epoch] -= loss.item() * len(batch) / len(x)
        schedule.step()
        with torch.no_grad():
            history["validation"][epoch] = log_likelihood(x_validation).item()
        if history["validation"][epoch] > best:
            best = history["validation"][epoch]
            best_weights = {k: v.clone() for k, v in layer.state_dict().items()}
    return CausalFlow(parents, hidden, activation, best_weights), history
