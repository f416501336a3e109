"""The networks of a causal flow: one small one a feature, and how they are fitted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, files, fits
from lib.base.arithmetic import ACTIVATIONS, Adam, network
from lib.method.maps import Affine, Map, Spline
from lib.method.world import Graph

LOG_2_PI = float(np.log(2 * np.pi))


def shapes(
    graph: Graph, hidden: Sequence[int], n_bins: int = 0
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a flow's networks, by its name.

    A feature with causes has a dense network from these, in the order
    in which the graph lists them, to the raw parameters of its map. A
    feature without causes has just its raw parameters.

    Arguments:
        hidden: Widths of the hidden layers of each network.
        n_bins: Of the splines; 0: affine.
    Raises: ValueError: a width or n_bins is of no use.
    Example:
        Shift and scale of two features; those of income know the age:

        >>> for name, shape in shapes(Graph({"age": (), "income": ("age",)}), [8]).items():
        ...     print(name, shape)
        age.raw (2,)
        income.weight_0 (1, 8)
        income.bias_0 (8,)
        income.weight_1 (8, 2)
        income.bias_1 (2,)
    """
    for width in hidden:
        checks.counts(hidden=width)
    if not isinstance(n_bins, Integral) or n_bins < 0:
        raise ValueError(
            f"n_bins must be a whole number, 0 (affine) or above, got {n_bins!r}."
        )
    n_raw = 3 * n_bins - 1 if n_bins else 2
    found: dict[str, tuple[int, ...]] = {}
    for name, causes in graph.parents.items():
        if not causes:
            found[f"{name}.raw"] = (n_raw,)
            continue
        found |= files.layers([len(causes), *hidden, n_raw], f"{name}.")
    return found


def first_weights(
    graph: Graph,
    hidden: Sequence[int],
    n_bins: int,
    rng: np.random.Generator,
    dtype: torch.dtype,
) -> dict[str, Tensor]:
    """Return weights to begin a fit with, by name.

    Those of a network are uniform within 1/sqrt(fan-in). Raw
    parameters of features without causes are zero.

    Arguments:
        graph, hidden, n_bins: As for `shapes`.
    Example:
        >>> graph, rng = Graph({"age": (), "income": ("age",)}), np.random.default_rng(0)
        >>> weights = first_weights(graph, [8], 0, rng, torch.float32)
        >>> weights["age.raw"], bool(weights["income.weight_1"].abs().max() < 8**-0.5)
        (tensor([0., 0.]), True)
    """
    found = {}
    bound = 0.0
    for name, shape in shapes(graph, hidden, n_bins).items():
        if len(shape) == 2:  # a layer's weight, and then its bias
            bound = 1 / np.sqrt(shape[0])
        within = 0.0 if name.endswith(".raw") else bound
        found[name] = torch.from_numpy(rng.uniform(-within, within, shape)).to(dtype)
    return found


class Networks:
    """Hold the networks of a flow: from a feature's causes to its raw parameters.

    Arguments:
        graph: The causal graph.
        hidden: Widths of the hidden layers of each network.
        activation: "elu", "relu" or "tanh".
        n_bins: Of the splines; 0: affine.
        weights: By name, with the shapes that `shapes` gives. They
            are not copied.
    Raises: ValueError: a setting is of no use; weights are missing,
        unknown, have other shapes, differ in dtype, or are not
        finite.
    Example:
        Income knows the age; age has no causes, so that everyone has
        the same shift and scale:

        >>> graph, rng = Graph({"age": (), "income": ("age",)}), np.random.default_rng(0)
        >>> weights = first_weights(graph, [8], 0, rng, torch.float32)
        >>> own = Networks(graph, [8], "elu", 0, weights)
        >>> own.raw(0, torch.zeros(3, 0))
        tensor([[0., 0.],
                [0., 0.],
                [0., 0.]])
        >>> own.raw(1, torch.zeros(3, 1)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        graph: Graph,
        hidden: Sequence[int],
        activation: str,
        n_bins: int,
        weights: Mapping[str, Tensor],
    ) -> None:
        checks.known("activation", [activation], ACTIVATIONS)
        files.check_tensors(weights, shapes(graph, hidden, n_bins))
        self.graph, self.activation, self.weights = graph, activation, dict(weights)
        self.univariate: type[Map] = Spline if n_bins else Affine
        self._layers = {
            j: tuple(
                [weights[f"{name}.{part}_{i}"] for i in range(len(hidden) + 1)]
                for part in ("weight", "bias")
            )
            for j, (name, causes) in enumerate(graph.parents.items())
            if causes
        }

    @property
    def dtype(self) -> torch.dtype:
        """The kind of numbers that the networks compute with.

        Example:
            >>> graph, rng = Graph({"age": ()}), np.random.default_rng(0)
            >>> weights = first_weights(graph, [8], 0, rng, torch.float64)
            >>> Networks(graph, [8], "elu", 0, weights).dtype
            torch.float64
        """
        return next(iter(self.weights.values())).dtype

    def raw(self, j: int, x_parents: Tensor) -> Tensor:
        """Return the raw parameters of feature j, with shape (*, 2) or (*, 3 n_bins - 1).

        Arguments:
            j: Column of the feature.
            x_parents: Its direct causes, with shape (*, P).
        Example:
            >>> graph, rng = Graph({"age": ()}), np.random.default_rng(0)
            >>> weights = first_weights(graph, [8], 16, rng, torch.float32)
            >>> Networks(graph, [8], "elu", 16, weights).raw(0, torch.zeros(3, 0)).shape
            torch.Size([3, 47])
        """
        if j not in self._layers:
            own = self.weights[f"{self.graph.features[j]}.raw"]
            return own.expand(*x_parents.shape[:-1], -1)
        layer_weights, biases = self._layers[j]
        return network(x_parents, layer_weights, biases, self.activation)


class SideBySide:
    """Hold the networks of a flow as one stack, in which they are fitted together.

    Where a feature has fewer causes than another, its network sees
    zeros in their place.

    Arguments:
        graph, hidden, activation, n_bins, weights: As for `Networks`;
            weights are copied.
    Raises: ValueError: as `Networks`.
    Example:
        Weights of zeros leave the features as they are, and call them
        standard normal:

        >>> graph = Graph({"age": (), "income": ("age",)})
        >>> weights = {k: torch.zeros(shape) for k, shape in shapes(graph, [8]).items()}
        >>> stack = SideBySide(graph, [8], "elu", 0, weights)
        >>> round(stack.log_likelihood(torch.zeros(1, 2)).item(), 4)
        -1.8379
        >>> round(-LOG_2_PI, 4)
        -1.8379
    """

    def __init__(
        self,
        graph: Graph,
        hidden: Sequence[int],
        activation: str,
        n_bins: int,
        weights: Mapping[str, Tensor],
    ) -> None:
        own = Networks(graph, hidden, activation, n_bins, weights)
        self.univariate, self._activation, self._graph = own.univariate, activation, graph
        parents = graph.parent_index
        self._roots = [j for j, causes in enumerate(parents) if not causes]
        self._effects = [j for j, causes in enumerate(parents) if causes]
        most = max(map(len, parents))
        none = len(parents)  # the row of zeros in `log_likelihood`
        self._inputs = torch.tensor(
            [parents[j] + [none] * (most - len(parents[j])) for j in self._effects]
        )
        n_layers = len(hidden) + 1 if self._effects else 0
        parts = [("weight", "bias")[i % 2] + f"_{i // 2}" for i in range(2 * n_layers)]
        self._stacks = {"raw": torch.stack([weights[n] for n in self._names("raw")])}
        for part in parts:
            found = [weights[name] for name in self._names(part)]
            if part == "weight_0":
                found = [F.pad(w, (0, 0, 0, most - len(w))) for w in found]
            stack = torch.stack(found)
            self._stacks[part] = stack[:, None] if part.startswith("bias") else stack
        self.leaves = [stack.requires_grad_() for stack in self._stacks.values()]

    def _names(self, part: str) -> list[str]:
        """Return the names of the weights that lie in one stack, in their order."""
        columns = self._roots if part == "raw" else self._effects
        return [f"{self._graph.features[j]}.{part}" for j in columns]

    def by_name(self) -> dict[str, Tensor]:
        """Return a copy of each feature's weights as they are now, by name.

        Example:
            >>> graph = Graph({"age": (), "income": ("age",)})
            >>> weights = {k: torch.ones(shape) for k, shape in shapes(graph, [8]).items()}
            >>> copied = SideBySide(graph, [8], "elu", 0, weights).by_name()
            >>> all(torch.equal(copied[name], weight) for name, weight in weights.items())
            True
        """
        found = {}
        for part, stack in self._stacks.items():
            for i, name in enumerate(self._names(part)):
                own = stack[i].detach()
                if part == "weight_0":
                    own = own[: len(self._graph.parent_index[self._effects[i]])]
                found[name] = (own[0] if part.startswith("bias") else own).clone()
        return found

    def log_likelihood(self, x: Tensor) -> Tensor:
        """Return the mean log-density of people (N, D), in nats, with shape ().

        Example:
            Who is far from average is less likely:

            >>> graph = Graph({"age": ()})
            >>> stack = SideBySide(graph, [], "elu", 0, {"age.raw": torch.zeros(2)})
            >>> near, far = torch.zeros(5, 1), torch.ones(5, 1)
            >>> round((stack.log_likelihood(near) - stack.log_likelihood(far)).item(), 4)
            0.5
        """
        rows = F.pad(x.T, (0, 0, 0, 1))  # a row a feature, and one of zeros
        raw = [self._stacks["raw"][:, None].expand(-1, len(x), -1)]
        if self._effects:
            layers = list(self._stacks.values())[1:]
            inputs = rows[self._inputs].mT  # (effects, N, causes)
            raw.append(network(inputs, layers[0::2], layers[1::2], self._activation))
        z, slope = self.univariate(torch.cat(raw)).forward(
            rows[self._roots + self._effects]
        )
        of_each = slope.sum(0) - 0.5 * z.square().sum(0)
        return of_each.mean() - 0.5 * x.shape[-1] * LOG_2_PI


def fit(
    networks: SideBySide,
    x: Tensor,
    x_validation: Tensor,
    optimiser: Adam,
    n_epochs: int,
    batch_size: int,
    rng: np.random.Generator,
    progress: Callable[[range], Iterable[int]] = iter,
    checkpoint: Path | None = None,
    inputs: Callable[[], Mapping[str, Any]] = dict,
) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
    """Fit networks by maximum likelihood, in place; the door to it is `flow.fit`.

    Arguments:
        networks: With the weights to begin with.
        x, x_validation: Standardised features, each with shape (N,
            D).
        optimiser: Over the networks' leaves; its learning rate decays
            once an epoch.
        n_epochs: How often each person is seen.
        batch_size: People a step.
        rng: Draws the order of people in each epoch.
        progress: Wraps the range of epochs.
        checkpoint, inputs: As for `fits.steps`.
    Returns: The weights of the epoch with the best validation
        log-likelihood, and the mean log-likelihoods "train" and
        "validation" of each epoch, in nats.
    Raises: ValueError: a log-likelihood is NaN or infinite: the fit
        diverged; the checkpoint is of other inputs.
    Example:
        >>> graph, rng = Graph({"age": (), "income": ("age",)}), np.random.default_rng(0)
        >>> weights = first_weights(graph, [8], 0, rng, torch.float32)
        >>> stack = SideBySide(graph, [8], "elu", 0, weights)
        >>> x = torch.from_numpy(rng.standard_normal((60, 2))).float()
        >>> adam = Adam(stack.leaves, 0.01, 5)
        >>> _, history = fit(stack, x[:50], x[50:], adam, 5, 10, rng)
        >>> bool(history["train"][-1] > history["train"][0])
        True
    """
    train, validation = np.zeros(n_epochs), np.full(n_epochs, -np.inf)
    best_weights = networks.by_name()
    live = fits.Live(
        {
            **{f"best {name}": weight for name, weight in best_weights.items()},
            "train": torch.from_numpy(train),
            "validation": torch.from_numpy(validation),
        },
        [rng],
    )

    def epoch(number: int, step: Callable[[Tensor], None]) -> dict[str, float]:
        for batch in x[torch.from_numpy(rng.permutation(len(x)))].split(batch_size):
            loss = -networks.log_likelihood(batch)
            step(loss)
            train[number] -= loss.item() * len(batch) / len(x)
        with torch.no_grad():
            now = networks.log_likelihood(x_validation).item()
        if now > validation.max():
            for name, weight in networks.by_name().items():
                best_weights[name].copy_(weight)
        validation[number] = now
        return {
            "log-likelihood of x": float(train[number]),
            "log-likelihood of x_validation": now,
        }

    fits.descend("flow", optimiser, n_epochs, epoch, live, inputs, checkpoint, progress)
    return best_weights, {"train": train, "validation": validation}
