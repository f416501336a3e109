"""The causal normalizing flow: a world learned from data and a graph, that also gives densities."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import zuko
from torch import Tensor, nn
from torch.nn import functional as F

from lib.base import checks, files
from lib.base.arithmetic import Adam
from lib.causal.graph import Graph
from lib.causal.maps import Affine, Spline
from lib.causal.world import World

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}


def _build(graph: Graph, hidden: Sequence[int], activation: str, n_bins: int = 0):
    """Return zuko's masked network, with the causal graph for its masks.

    It gives every feature's raw parameters.
    """
    n_features = len(graph.features)
    adjacency = graph.adjacency() | torch.eye(n_features, dtype=torch.bool)
    shapes = ((n_bins,), (n_bins,), (n_bins - 1,)) if n_bins else ((), ())
    layer = zuko.flows.MaskedAutoregressiveTransform(
        n_features,
        adjacency=adjacency,
        shapes=shapes,
        hidden_features=hidden,
        activation=ACTIVATIONS[activation],
    )
    seen = torch.eye(n_features)
    for module in _linear(layer):
        seen = module.mask.float() @ seen
    blind = [
        name
        for name, own, causes in zip(
            graph.features, seen[:: layer.total] > 0, graph.adjacency(), strict=True
        )
        if (own != causes).any()
    ]
    if blind:
        n_needed = len({frozenset(causes) for causes in graph.parents.values() if causes})
        raise ValueError(
            f"hidden is {list(hidden)}: too narrow for the networks of {', '.join(blind)} to see their causes. "
            f"Give every layer {n_needed} units or more, one for each set of causes."
        )
    return layer


def _linear(layer: zuko.flows.MaskedAutoregressiveTransform) -> list[nn.Linear]:
    return [module for module in layer.hyper if isinstance(module, nn.Linear)]


class CausalFlow(World):
    r"""One autoregressive layer whose masks are the causal graph; z = T(x) stands for the exogenous noise.

    .. math:: z_j = T(x_j;\ \theta_j(x_{pa(j)})), \quad z_j \sim N(0, 1)

    T is an `Affine` map or a `Spline`. One layer only: a stack of them would let a feature depend on its parents' noise by other
    ways than through the parents, and interventions would no longer be consistent with the graph.

    Arguments:
        graph: The causal graph.
        hidden: Widths of the hidden layers.
        activation: "elu", "relu" or "tanh".
        weights: State of the zuko layer, by name.
        n_bins: Of the splines; 0: affine.
    Source: section 3 of arXiv:2604.08030; causal normalizing flows, Javaloy et al., 2023.
    """

    def __init__(
        self,
        graph: Graph,
        hidden: Sequence[int],
        activation: str,
        weights: Mapping[str, Tensor],
        n_bins: int = 0,
    ) -> None:
        super().__init__(graph)
        self.settings: dict[str, Any] = {
            "hidden": list(hidden),
            "activation": activation,
            "n_bins": n_bins,
        }
        dtype = next(w.dtype for w in weights.values() if w.is_floating_point())
        self.univariate = Spline if n_bins else Affine
        self.zuko_layer = _build(graph, **self.settings).to(dtype)
        self.zuko_layer.load_state_dict(weights)
        self.zuko_layer.requires_grad_(False)
        self._conditioners = [self._conditioner(j) for j in range(len(self.features))]

    def _conditioner(self, j: int) -> list[tuple[Tensor, Tensor]]:
        """Dense layers that give feature j's parameters from its parents alone.

        The masked network holds D such networks side by side; most of its products are by zero.
        """
        total = self.zuko_layer.total
        outputs = torch.arange(total * j, total * (j + 1))
        layers: list[tuple[Tensor, Tensor]] = []
        for i, module in reversed(list(enumerate(_linear(self.zuko_layer)))):
            weight = (module.weight * module.mask)[outputs]
            inputs = (
                module.mask[outputs].any(0).nonzero().squeeze(-1)
                if i
                else torch.tensor(self.graph.parent_index[j], dtype=torch.long)
            )
            layers.insert(
                0, (weight[:, inputs].contiguous(), module.bias[outputs].contiguous())
            )
            outputs = inputs
        return layers

    def raw_parameters(self, j: int, x_parents: Tensor) -> Tensor:
        """What the networks give for feature j, with shape (*, total), from its parents (*, P)."""
        layers = self._conditioners[j]
        if not self.graph.parent_index[j]:  # a root: nothing but the last bias
            return layers[-1][1].expand(*x_parents.shape[:-1], -1)
        activation = getattr(F, self.settings["activation"])
        hidden = x_parents
        for i, (weight, bias) in enumerate(layers):
            hidden = F.linear(activation(hidden) if i else hidden, weight, bias)
        return hidden

    def map_of(self, j: int, x_parents: Tensor) -> Affine | Spline:
        """The map between feature j and its noise, given its parents (*, P)."""
        return self.univariate(self.raw_parameters(j, x_parents))

    def abduct(self, x: Tensor) -> Tensor:
        if (
            self.univariate is Spline
        ):  # all features' raw parameters at once would be D times 47 numbers a person
            return self._noise_and_slopes(x, range(len(self.features)))[0]
        values = x.unbind(-1)
        raw = [
            self.raw_parameters(j, self.of_parents(j, values))
            for j in range(len(self.features))
        ]
        return self.univariate(torch.stack(raw, -2)).forward(x)[0]

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        return self.map_of(j, x_parents).inverse(noise)

    def _noise_and_slopes(
        self,
        x: Tensor,
        columns: Sequence[int],
        known: Mapping[int, Affine | Spline] = MappingProxyType({}),
    ) -> tuple[Tensor, Tensor]:
        """z and log dz/dx of these features, each with shape (*, len(columns))."""
        values = x.unbind(-1)
        both = [
            (known.get(j) or self.map_of(j, self.of_parents(j, values))).forward(values[j])
            for j in columns
        ]
        return torch.stack([z for z, _ in both], -1), torch.stack(
            [slope for _, slope in both], -1
        )

    def log_prob_terms(
        self,
        x: Tensor,
        columns: Sequence[int] | None = None,
        known: Mapping[int, Affine | Spline] = MappingProxyType({}),
    ) -> Tensor:
        """Each feature's term log p(x_j | parents) of the log-density, in nats, with shape (*, len(columns)).

        Arguments:
            x: Standardised features, with shape (*, D).
            columns: Which terms are wanted; left out: all D.
            known: Maps, as `map_of` gives them, of features whose networks need not be asked again: their parents are as before.
        """
        z, log_slope = self._noise_and_slopes(
            x, range(len(self.features)) if columns is None else columns, known
        )
        return log_slope - 0.5 * z.square() - 0.5 * float(np.log(2 * np.pi))

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density of standardised features (*, D), in nats, with shape (*,)."""
        checks.people("x", x, self.features)
        return self.log_prob_terms(x).sum(-1)

    def factual(self, x: Tensor, columns: Sequence[int]) -> dict[str, Tensor]:
        """What `act` reads of people before they act: "x", "z" and "slope" (N, D), and "fixed".

        "fixed" holds the raw parameters of those features among the columns that no other of them reaches, side by side.
        """
        z, slope = self._noise_and_slopes(x, range(len(self.features)))
        fixed = [
            self.raw_parameters(j, x[..., self.graph.parent_index[j]]).expand(
                *x.shape[:-1], -1
            )
            for j in self._fixed(columns)
        ]
        return {"x": x, "z": z, "slope": slope, "fixed": torch.cat(fixed, -1)}

    def _fixed(self, columns: Sequence[int]) -> list[int]:
        """Return those of these columns that no other of them reaches."""
        reached = self.graph.reached_by(columns)
        return [j for j in columns if j not in reached]

    def act(
        self, factual: Mapping[str, Tensor], columns: Sequence[int], m: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`counterfactual` and the change of the log-density in one walk, for training: masks carry gradients.

        The networks behind the parameters are asked anew only where a parent may have moved, and once for both results.

        Arguments:
            factual: As the method of this name gives it, with leading axes (*).
            columns: The K features that may be acted on.
            m, a: Mask (0 or 1 in value) and values of these features, with shape (*, K). Only they, and what follows from
                them, carry gradients; `factual` must not.
        Returns: x_cf with shape (*, D) and log p(x_cf) - log p(x) in nats with shape (*,).
        """
        x, z, slope = (factual[name].unbind(-1) for name in ("x", "z", "slope"))
        m, rest, a = m.unbind(-1), (1 - m).unbind(-1), a.unbind(-1)
        after, gain = list(x), torch.zeros(x[0].shape, dtype=x[0].dtype)
        known = dict(
            zip(
                self._fixed(columns),
                factual["fixed"].split(self.zuko_layer.total, -1),
                strict=True,
            )
        )
        reached = set(self.graph.reached_by(columns))
        for j in self.graph.order:
            if j not in reached and j not in columns:
                continue
            follows = j in reached
            map_j = (
                self.map_of(j, self.of_parents(j, after))
                if follows
                else self.univariate(known[j])
            )
            if j in columns:
                k, before = columns.index(j), None if follows else x[j]
                after[j], slope_cf, gain_z = map_j.after_action(
                    z[j], before, m[k], rest[k], a[k]
                )
            else:  # only its parents changed: the noise stays
                after[j], gain_z = map_j.inverse(z[j]), 0.0
                slope_cf = map_j.forward(after[j])[1]
            if follows or self.univariate.slope_depends_on_x:
                gain = gain + slope_cf - slope[j]
            gain = gain + gain_z
        return torch.stack(after, -1), gain

    @property
    def dtype(self) -> torch.dtype:
        """The kind of numbers that the flow computes with."""
        return next(self.zuko_layer.parameters()).dtype

    def save(
        self, folder: Path, name: str, made_with: Mapping[str, Any], fingerprint: str = ""
    ) -> Path:
        """Write folder/name.safetensors and return its path; arguments as for `files.save`."""
        weights = {
            k: v for k, v in self.zuko_layer.state_dict().items() if not k.endswith("mask")
        }
        return files.save(
            folder, name, weights, self._saved_settings(), made_with, fingerprint
        )

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "CausalFlow":
        """Return the flow of folder/name.safetensors; arguments as for `files.load`."""
        tensors, settings = files.load(folder, name, fingerprint)
        return cls._rebuilt(tensors, settings)

    def _saved_settings(self) -> dict[str, Any]:
        """Return what rebuilds the flow, beside its weights, as JSON can hold it."""
        parents = {name: list(causes) for name, causes in self.graph.parents.items()}
        settings = {"parents": parents, **self.settings}
        return {
            name: value
            for name, value in settings.items()
            if (name, value) != ("n_bins", 0)
        }

    @classmethod
    def _rebuilt(
        cls, weights: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> "CausalFlow":
        """Return the flow with these weights and `_saved_settings`."""
        others = {name: value for name, value in settings.items() if name != "parents"}
        graph = Graph(settings["parents"])
        masks = {
            k: v
            for k, v in _build(graph, **others).state_dict().items()
            if k.endswith("mask")
        }
        return cls(graph, **others, weights={**weights, **masks})


def save_all(
    flows: Mapping[str, CausalFlow],
    folder: Path,
    name: str,
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Write flows that belong together to one file, folder/name.safetensors; `made_with` as for `files.save`."""
    weights = {
        f"{key}/{k}": v
        for key, flow in flows.items()
        for k, v in flow.zuko_layer.state_dict().items()
        if not k.endswith("mask")
    }
    return files.save(
        folder,
        name,
        weights,
        {key: flow._saved_settings() for key, flow in flows.items()},
        made_with,
        fingerprint,
    )


def load_all(folder: Path, name: str, fingerprint: str = "") -> dict[str, CausalFlow]:
    """The flows that `save_all` wrote."""
    weights, settings = files.load(folder, name, fingerprint)
    own = {
        key: {
            k.removeprefix(f"{key}/"): v
            for k, v in weights.items()
            if k.startswith(f"{key}/")
        }
        for key in settings
    }
    return {key: CausalFlow._rebuilt(own[key], settings[key]) for key in settings}


def fit(
    graph: Graph,
    x: Tensor,
    x_validation: Tensor,
    hidden: Sequence[int] = (64,),
    activation: str = "elu",
    n_bins: int = 0,
    n_epochs: int = 300,
    batch_size: int = 1000,
    learning_rate: float = 5e-3,
    seed: int = 0,
    progress: Callable[[range], range] = iter,
) -> tuple[CausalFlow, dict[str, np.ndarray]]:
    """A flow fitted by maximum likelihood with Adam and a cosine-decayed learning rate.

    Arguments:
        graph: The causal graph.
        x, x_validation: Standardised features, each with shape (N, D).
        hidden, activation, n_bins: As `CausalFlow`.
        progress: Wraps the range of epochs, for instance `tqdm`.
    Returns: The flow of the epoch with the best validation log-likelihood, and the mean log-likelihoods
        "train" and "validation" after each epoch, in nats.
    """
    checks.people("x", x, graph.features)
    checks.people("x_validation", x_validation, graph.features)
    checks.known("activation", [activation], tuple(ACTIVATIONS))
    checks.positive(n_epochs=n_epochs, batch_size=batch_size, learning_rate=learning_rate)
    rng = np.random.default_rng(seed)
    layer = _build(graph, hidden, activation, n_bins).to(x.dtype)
    univariate = Spline if n_bins else Affine
    with torch.no_grad():
        for module in _linear(layer):
            bound = 1 / np.sqrt(module.in_features)
            module.weight.copy_(
                torch.from_numpy(rng.uniform(-bound, bound, module.weight.shape))
            )
            module.bias.copy_(
                torch.from_numpy(rng.uniform(-bound, bound, module.bias.shape))
            )
    optimiser = Adam(layer.parameters(), learning_rate, n_epochs)

    def log_likelihood(x: Tensor) -> Tensor:
        z, slope = univariate(layer.hyper(x).unflatten(-1, (-1, layer.total))).forward(x)
        return (slope.sum(-1) - 0.5 * z.square().sum(-1)).mean() - 0.5 * len(
            graph.features
        ) * np.log(2 * np.pi)

    history = {"train": np.zeros(n_epochs), "validation": np.zeros(n_epochs)}
    best, best_weights = -np.inf, layer.state_dict()
    for epoch in progress(range(n_epochs)):
        for batch in x[torch.from_numpy(rng.permutation(len(x)))].split(batch_size):
            loss = -log_likelihood(batch)
            optimiser.step(torch.autograd.grad(loss, optimiser.weights))
            history["train"][epoch] -= loss.item() * len(batch) / len(x)
        optimiser.decay()
        with torch.no_grad():
            history["validation"][epoch] = log_likelihood(x_validation).item()
        if history["validation"][epoch] > best:
            best = history["validation"][epoch]
            best_weights = {k: v.clone() for k, v in layer.state_dict().items()}
    return CausalFlow(graph, hidden, activation, best_weights, n_bins), history
