"""The networks of a causal flow: how they are built, filled and fitted."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from zuko.flows import MaskedAutoregressiveTransform

from lib.base import checks
from lib.base.arithmetic import Adam
from lib.causal.graph import Graph
from lib.causal.maps import Map

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}
LOG_2_PI = float(np.log(2 * np.pi))


def masked(
    graph: Graph, hidden: Sequence[int], activation: str, n_bins: int = 0
) -> MaskedAutoregressiveTransform:
    """Return zuko's masked network over all features, with the causal graph for its masks.

    It gives every feature's raw parameters: `layer.total` numbers for
    each of the D features.

    Arguments:
        graph: With at least one edge.
        hidden: Widths of the hidden layers.
        activation: "elu", "relu" or "tanh".
        n_bins: Of the splines; 0: affine.
    Raises: ValueError: a setting is of no use, or a layer is too
        narrow for every feature to see its causes.
    Example:
        Shift and scale of two features; raw parameters of income know
        the age:

        >>> layer = masked(Graph({"age": (), "income": ("age",)}), [8], "elu")
        >>> layer.total, layer.hyper(torch.zeros(2)).shape
        (2, torch.Size([4]))
    """
    n_features = len(graph.features)
    if not any(graph.parent_index):
        raise ValueError(
            f"The graph over {', '.join(graph.features)} has no edges. A causal flow needs "
            "at least one; features without causes or effects may stand beside it."
        )
    checks.known("activation", [activation], tuple(ACTIVATIONS))
    for width in hidden:
        checks.positive(hidden=width)
    if n_bins < 0:
        raise ValueError(f"n_bins must be 0 (affine) or above, got {n_bins!r}.")
    adjacency = graph.adjacency() | torch.eye(n_features, dtype=torch.bool)
    layer = MaskedAutoregressiveTransform(
        n_features,
        adjacency=adjacency,
        shapes=((n_bins,), (n_bins,), (n_bins - 1,)) if n_bins else ((), ()),
        hidden_features=hidden,
        activation=ACTIVATIONS[activation],
    )
    seen = torch.eye(n_features)
    for module in linear(layer):
        seen = module.get_buffer("mask").float() @ seen
    sees_all = (seen[:: layer.total] > 0).eq(graph.adjacency()).all(-1).tolist()
    blind = [name for name, ok in zip(graph.features, sees_all, strict=True) if not ok]
    if blind:
        n_needed = len({frozenset(causes) for causes in graph.parents.values() if causes})
        raise ValueError(
            f"hidden is {list(hidden)}: too narrow for the networks of {', '.join(blind)} "
            f"to see their causes. Give every layer {n_needed} units or more, one for each "
            "set of causes."
        )
    return layer


def linear(layer: MaskedAutoregressiveTransform) -> list[nn.Linear]:
    """Return the dense layers of the masked network, from first to last.

    Example:
        >>> layer = masked(Graph({"age": (), "income": ("age",)}), [8], "elu")
        >>> [tuple(module.weight.shape) for module in linear(layer)]
        [(8, 2), (4, 8)]
    """
    return [module for module in layer.hyper if isinstance(module, nn.Linear)]


@torch.no_grad()
def redraw(layer: MaskedAutoregressiveTransform, rng: np.random.Generator) -> None:
    """Draw all weights and biases anew, uniform within 1/sqrt(fan-in), in place.

    Example:
        >>> layer = masked(Graph({"age": (), "income": ("age",)}), [8], "elu")
        >>> redraw(layer, np.random.default_rng(0))
        >>> [module.weight.abs().max().item() < bound
        ...  for module, bound in zip(linear(layer), [2**-0.5, 8**-0.5])]
        [True, True]
    """
    for module in linear(layer):
        bound = 1 / np.sqrt(module.in_features)
        for part in (module.weight, module.bias):
            part.copy_(torch.from_numpy(rng.uniform(-bound, bound, part.shape)))


@torch.no_grad()
def fill(layer: MaskedAutoregressiveTransform, weights: Mapping[str, Tensor]) -> None:
    """Set the layer's weights and biases, in place and in their dtype; they are then fixed.

    Arguments:
        weights: By name, as `layer.state_dict()` has them; its masks
            may be missing.
    Raises: ValueError: weights are missing, unknown, or have other
        shapes.
    Example:
        >>> graph = Graph({"age": (), "income": ("age",)})
        >>> one, other = masked(graph, [8], "elu"), masked(graph, [8], "elu")
        >>> fill(one, other.state_dict())
        >>> torch.equal(one.hyper(torch.ones(2)), other.hyper(torch.ones(2)))
        True
    """
    own = dict(layer.named_parameters())
    expected = {name: tuple(part.shape) for name, part in own.items()}
    came = {name: tuple(weights[name].shape) for name in own if name in weights}
    unknown = sorted(weights.keys() - layer.state_dict().keys())
    if came != expected or unknown:
        raise ValueError(
            f"the weights of these networks must have the shapes {expected}, got {came}"
            + (f", and unknown ones: {', '.join(unknown)}." if unknown else ".")
        )
    layer.to(next(weights[name].dtype for name in own))
    layer.requires_grad_(False)
    for name, part in own.items():
        part.copy_(weights[name])


def of_feature(
    layer: MaskedAutoregressiveTransform, graph: Graph, j: int
) -> list[tuple[Tensor, Tensor]]:
    """Return the dense layers that give feature j's raw parameters from its parents.

    Each is a pair of weights and biases.

    The masked network holds D such networks side by side; most of its
    products are by zero.

    Example:
        The network of income has one input (age) and two outputs
        (shift and scale):

        >>> graph = Graph({"age": (), "income": ("age",)})
        >>> dense = of_feature(masked(graph, [8], "elu"), graph, 1)
        >>> [tuple(weight.shape) for weight, bias in dense]
        [(8, 1), (2, 8)]
    """
    outputs = torch.arange(layer.total * j, layer.total * (j + 1))
    dense: list[tuple[Tensor, Tensor]] = []
    for i, module in reversed(list(enumerate(linear(layer)))):
        mask = module.get_buffer("mask")
        weight = (module.weight * mask)[outputs]
        if i:
            inputs = mask[outputs].any(0).nonzero().squeeze(-1)
        else:
            inputs = torch.tensor(graph.parent_index[j], dtype=torch.long)
        dense.append((weight[:, inputs].contiguous(), module.bias[outputs].contiguous()))
        outputs = inputs
    return dense[::-1]


def log_likelihood(
    layer: MaskedAutoregressiveTransform, univariate: type[Map], x: Tensor
) -> Tensor:
    """Return the mean log-density of people, in nats, with shape ().

    Arguments:
        layer: As `masked` gives it.
        univariate: `Affine` or `Spline`, as the layer was made for.
        x: Standardised features, with shape (N, D).
    Example:
        Networks of zeros leave the features as they are, and call
        them standard normal:

        >>> from lib.causal.maps import Affine
        >>> layer = masked(Graph({"age": (), "income": ("age",)}), [8], "elu")
        >>> fill(layer, {k: torch.zeros_like(w) for k, w in layer.named_parameters()})
        >>> round(log_likelihood(layer, Affine, torch.zeros(1, 2)).item(), 4)
        -1.8379
        >>> round(-LOG_2_PI, 4)
        -1.8379
    """
    z, slope = univariate(layer.hyper(x).unflatten(-1, (-1, layer.total))).forward(x)
    of_each = slope.sum(-1) - 0.5 * z.square().sum(-1)
    return of_each.mean() - 0.5 * x.shape[-1] * LOG_2_PI


def fit(
    layer: MaskedAutoregressiveTransform,
    univariate: type[Map],
    x: Tensor,
    x_validation: Tensor,
    optimiser: Adam,
    batch_size: int,
    epochs: Iterable[int],
    rng: np.random.Generator,
) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
    """Fit the layer by maximum likelihood, in place; the door to it is `flow.fit`.

    Arguments:
        layer, univariate: As for `log_likelihood`; the layer starts
            from new weights.
        x, x_validation: Standardised features, each with shape (N,
            D).
        optimiser: Over the layer's parameters; its learning rate
            decays once an epoch.
        batch_size: People a step.
        epochs: Numbers of the epochs, from 0.
        rng: Draws the first weights, and the order of people in each
            epoch.
    Returns: The weights of the epoch with the best validation
        log-likelihood, and the mean log-likelihoods "train" and
        "validation" of each epoch, in nats.
    Raises: ValueError: a log-likelihood is NaN or infinite: the fit
        diverged.
    Example:
        >>> from lib.causal.maps import Affine
        >>> layer = masked(Graph({"age": (), "income": ("age",)}), [8], "elu")
        >>> rng = np.random.default_rng(0)
        >>> x = torch.from_numpy(rng.standard_normal((60, 2))).float()
        >>> adam = Adam(layer.parameters(), 0.01, 5)
        >>> _, history = fit(layer, Affine, x[:50], x[50:], adam, 10, range(5), rng)
        >>> bool(history["train"][-1] > history["train"][0])
        True
    """
    redraw(layer, rng)
    train: list[float] = []
    validation: list[float] = []
    best_weights: dict[str, Tensor] = {}
    for epoch in epochs:
        train.append(0.0)
        for batch in x[torch.from_numpy(rng.permutation(len(x)))].split(batch_size):
            loss = -log_likelihood(layer, univariate, batch)
            optimiser.step(torch.autograd.grad(loss, optimiser.weights))
            train[-1] -= loss.item() * len(batch) / len(x)
        optimiser.decay()
        with torch.no_grad():
            now = log_likelihood(layer, univariate, x_validation).item()
        reached = {"log-likelihood of x": train[-1], "log-likelihood of x_validation": now}
        checks.converging("flow", epoch, reached)
        if now > max(validation, default=-np.inf):
            best_weights = {k: w.detach().clone() for k, w in layer.named_parameters()}
        validation.append(now)
    return best_weights, {"train": np.array(train), "validation": np.array(validation)}
