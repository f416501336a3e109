"""The causal normalizing flow: a causal model learned from data, with densities."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from zuko.flows.autoregressive import ElementWiseTransform, MaskedAutoregressiveTransform
from zuko.transforms import MonotonicAffineTransform, MonotonicRQSTransform, Transform

from lib import checks, io
from lib.method.graph import Graph
from lib.method.scm import CausalModel

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}

# The median of |z| is 0.67 for a normal; a fitted flow stays between its inverse and this.
MAX_MEDIAN_ABS_NOISE = 20.0


class ArsinhSpline(MonotonicRQSTransform):
    r"""A rational-quadratic spline after arsinh.

    .. math:: z = \mathrm{RQS}(\mathrm{arsinh}\,x)

    arsinh is the same for everyone. It brings long tails (54
    real-estate loans) into the spline's range, and does not change
    who causes whom.

    Source: neural spline flows, Durkan et al., 2019; arsinh is ours.
    """

    def _call(self, x: Tensor) -> Tensor:
        return super()._call(x.asinh())

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(y).sinh()

    def call_and_ladj(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return z and log dz/dx, each with shape (*,)."""
        z, log_slope = super().call_and_ladj(x.asinh())
        return z, log_slope - 0.5 * (1 + x.square()).log()


class CausalFlow(CausalModel, nn.Module):
    r"""One autoregressive layer along the causal graph; z is the noise.

    .. math:: z_j = T(x_j;\, \theta_j(x_{pa(j)})), \quad
              \log p(x) = \sum_j \log N(z_j) + \log |\partial z_j / \partial x_j|

    `layer` is zuko's masked autoregressive transform, with the graph
    as its adjacency. T is affine, or a spline after arsinh. There
    is one layer: a second that mixes features would let them depend
    on what does not cause them.

    Once fitted, only the hidden units that feed a feature are asked
    for it (`transform_of`). To fit, call the module: gradients reach
    the weights through `forward` alone.

    Arguments:
        graph: Over the D features.
        hidden: Widths of the hidden layers, shared by all features.
        activation: A key of `ACTIVATIONS`.
        n_bins: Of the splines; 0: affine.
        dtype: Of weights and people.
    Raises: ValueError: a width or n_bins is no whole number that
        fits; the activation is unknown.
    Source: Javaloy et al., Causal normalizing flows, NeurIPS 2023;
        arXiv:2604.08030, section 4: inner dimension 64, ELU. Notebook
        02 builds one step by step.
    """

    def __init__(
        self,
        graph: Graph,
        hidden: Sequence[int] = (64,),
        activation: str = "elu",
        n_bins: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        for width in hidden:
            checks.positive_int(hidden=width)
        checks.one_of("activation", [activation], tuple(ACTIVATIONS))
        self.graph = graph
        self.settings = {
            "parents": {name: list(causes) for name, causes in graph.parents.items()},
            "hidden": list(hidden),
            "activation": activation,
            "n_bins": n_bins,
        }
        univariate: dict[str, Any] = {}  # zuko's default is affine
        if n_bins:
            checks.positive_int(n_bins=n_bins)
            shapes = [(n_bins,), (n_bins,), (n_bins - 1,)]
            univariate = {"univariate": ArsinhSpline, "shapes": shapes}
        n_features, adjacency = len(graph.features), graph.adjacency()
        if adjacency.any():
            self.layer = MaskedAutoregressiveTransform(
                n_features,
                adjacency=adjacency | torch.eye(n_features, dtype=torch.bool),
                hidden_features=hidden,
                activation=ACTIVATIONS[activation],
                **univariate,
            )
        else:  # zuko's masked network needs an edge
            self.layer = ElementWiseTransform(n_features, 0, **univariate)
        self._activation = ACTIVATIONS[activation]()
        self._weights = tuple(self.layer.parameters())  # to walk the module takes long
        self._cache: tuple[Any, list[list[tuple[Tensor, Tensor]]]] = (None, [])
        self.to(dtype)

    @property
    def dtype(self) -> torch.dtype:
        """The kind of numbers that the flow computes with, and expects."""
        return next(self.parameters()).dtype

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless x is finite, with the flow's features and dtype."""
        checks.people(name, x, self.features, self.dtype)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the noise z (*, D) and the log-density (*,), in nats, for the fit."""
        z, log_slope = self.layer().call_and_ladj(x)
        return z, log_slope + log_normal(z).sum(-1)

    def transform_of(self, j: int, x_parents: Tensor) -> Transform:
        """Return the univariate transform from feature j to its noise.

        It is called as zuko's are: t(x), t.inv(z), t.call_and_ladj(x).

        Arguments:
            x_parents: The direct causes of j, with shape (*, P).
        Raises: ValueError: another number of causes.
        """
        n_causes = len(self.graph.parent_index[j])
        checks.shape("x_parents", x_parents, (*x_parents.shape[:-1], n_causes))
        *hidden_layers, (weight, bias) = self._feature_networks()[j]
        h = x_parents
        for hidden_weight, hidden_bias in hidden_layers:
            h = self._activation(F.linear(h, hidden_weight, hidden_bias))
        if n_causes:
            parameters = F.linear(h, weight, bias)
        else:  # a root: the same for everyone
            parameters = bias.expand(*x_parents.shape[:-1], -1)
        if not self.settings["n_bins"]:
            return MonotonicAffineTransform(*parameters.unbind(-1))
        return ArsinhSpline(*parameters.split([n for (n,) in self.layer.shapes], -1))

    def transforms(self, x: Tensor, columns: Iterable[int]) -> dict[int, Transform]:
        """Return the transforms of these columns, given their parents in x (*, D)."""
        return {
            j: self.transform_of(j, x[..., self.graph.parent_index[j]]) for j in columns
        }

    def _feature_networks(self) -> list[list[tuple[Tensor, Tensor]]]:
        """Return weight and bias of each layer, of each feature's part of the network.

        The masked network is evaluated as one small network a
        feature, so that a few features can be asked for. These are
        cut out again when a weight has changed: torch counts the
        changes of each tensor.
        """
        state = [(p.data_ptr(), p._version) for p in self._weights]
        if self._cache[0] != state:
            with torch.no_grad():
                networks = [self._network_of(j) for j in range(len(self.features))]
            self._cache = state, networks
        return self._cache[1]

    def _network_of(self, j: int) -> list[tuple[Tensor, Tensor]]:
        """Return weight and bias of each layer of feature j, from its parents on.

        Its parameters are some rows of the last layer. From these it
        goes back to the units that feed them, layer by layer.
        """
        if isinstance(self.layer, ElementWiseTransform):
            bias = torch.cat([phi[j].reshape(-1) for phi in self.layer.phi])
            return [(bias.new_zeros(len(bias), 0), bias)]
        rows = torch.arange(j * self.layer.total, (j + 1) * self.layer.total)
        linears = [layer for layer in self.layer.hyper if isinstance(layer, nn.Linear)]
        layers: list[tuple[Tensor, Tensor]] = []
        for linear in reversed(linears):
            weight = (linear.weight * linear.get_buffer("mask"))[rows]
            inputs = weight.any(0).nonzero().squeeze(-1)
            if linear is linears[0]:
                inputs = torch.tensor(self.graph.parent_index[j], dtype=torch.long)
            layers.insert(0, (weight[:, inputs], linear.bias[rows]))
            rows = inputs
        return layers

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise z behind each person's features; see `CausalModel.abduct`.

        Raises: ValueError: x has another shape or dtype, or is not
            finite.
        """
        self.check("x", x)
        return self._noise_and_log_p(x)[0]

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density of standardised features (*, D), in nats, with shape (*,).

        Raises: ValueError: as `abduct`.
        """
        self.check("x", x)
        return self.log_prob_terms(x).sum(-1)

    def log_prob_terms(
        self,
        x: Tensor,
        columns: Sequence[int] | None = None,
        cached: Mapping[int, Transform] | None = None,
    ) -> Tensor:
        """Return the terms log p(x_j | parents) of the log-density, in nats.

        Arguments:
            x: With shape (*, D); it is not checked.
            columns: Of the terms, one or more; None: all.
            cached: Transforms that are known already, by column.
        Returns: With shape (*, len(columns)).
        """
        return self._noise_and_log_p(x, columns, cached)[1]

    def _noise_and_log_p(
        self,
        x: Tensor,
        columns: Iterable[int] | None = None,
        cached: Mapping[int, Transform] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return z and the terms of the log-density; arguments as for `log_prob_terms`."""
        columns = range(len(self.features)) if columns is None else columns
        cached = cached or {}
        pairs = []
        for j in columns:
            transform = cached.get(j)
            if transform is None:
                transform = self.transform_of(j, x[..., self.graph.parent_index[j]])
            pairs.append(transform.call_and_ladj(x[..., j]))
        z, log_slope = (torch.stack(values, -1) for values in zip(*pairs, strict=True))
        return z, log_slope + log_normal(z)

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j, with shape (*,); see `CausalModel.feature`."""
        return self.transform_of(j, x_parents).inv(noise)

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return standard normal noise with shape (N, D)."""
        drawn = rng.standard_normal((n_people, len(self.features)))
        return torch.from_numpy(drawn).to(self.dtype)

    def propagate(
        self,
        columns: Sequence[Tensor],
        affected: Mapping[int, Tensor],
        noise: Tensor,
        transforms: dict[int, Transform] | None = None,
    ) -> list[Tensor]:
        """Return features after an action; see `CausalModel.propagate`.

        Arguments:
            transforms: Filled with the transforms of what the action
                affects, by column, given the causes after the action.
        """
        after = list(columns)
        transforms = {} if transforms is None else transforms
        for j, moves in affected.items():
            transforms[j] = self.transform_of(j, self.parent_values(j, after))
            after[j] = torch.where(moves, transforms[j].inv(noise[..., j]), after[j])
        return after

    def factual(self, x: Tensor) -> dict[str, Tensor]:
        """Return what `act` reads of people (*, D) before they act: x, z and log_p.

        log_p holds the terms of the log-density. Each has shape (*, D).
        """
        self.check("x", x)
        z, log_p = self._noise_and_log_p(x)
        return {"x": x, "z": z, "log_p": log_p}

    def act(
        self, factual: Mapping[str, Tensor], columns: Sequence[int], m: Tensor, a: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""Return the counterfactual and its log-density, differentiable in m and a.

        .. math:: x^{CF}_j = m_j a_j + (1 - m_j)\, T^{-1}(z_j; \theta_j(x^{CF}_{pa(j)}))

        It is the walk of `counterfactual` for training. What nobody's
        action reaches stays as it is, to the bit; its gradient is
        that of the walk.

        Arguments:
            factual: As the method of this name gives it.
            columns: The K actionable features.
            m: The mask, 0 or 1 in value, with shape (*, K).
            a: What features are set to where m is 1, with shape (*, K).
        Returns: x_cf, with shape (*, D), and log p(x_cf), in nats,
            with shape (*,).
        """
        x, z, terms = (list(factual[name].unbind(-1)) for name in ("x", "z", "log_p"))
        after = list(x)
        moved: dict[int, Tensor] = {}
        for j in self.graph.order:
            moves = [moved[i] for i in self.graph.parent_index[j] if i in moved]
            if j not in columns and not moves:
                continue
            transform = self.transform_of(j, self.parent_values(j, after))
            if moves:
                follows = transform.inv(z[j])
                stays = with_gradient_of(follows, x[j])
                after[j] = torch.where(torch.stack(moves).any(0), follows, stays)
            if j in columns:
                m_j, a_j = m[..., columns.index(j)], a[..., columns.index(j)]
                after[j] = m_j * a_j + (1 - m_j) * after[j]
                moves.append(m_j > 0)
            moved[j] = torch.stack(moves).any(0)
            z_cf, log_slope = transform.call_and_ladj(after[j])
            term = log_slope + log_normal(z_cf)
            terms[j] = torch.where(moved[j], term, with_gradient_of(term, terms[j]))
        return torch.stack(after, -1), torch.stack(terms, -1).sum(-1)

    def check_units(self, x: Tensor) -> None:
        """Raise ValueError if the noise behind people (N, D) is far from a normal."""
        size = self.abduct(x).detach().abs().median(0).values
        for name, median in zip(self.features, size.tolist(), strict=True):
            if not 1 / MAX_MEDIAN_ABS_NOISE < median < MAX_MEDIAN_ABS_NOISE:
                raise ValueError(
                    f"Half of the noise behind {name} lies beyond {median:.3g}, of a "
                    "normal beyond 0.67. Was the flow fitted in other units? Expected "
                    "standardised features, as in population.x."
                )

    @classmethod
    def _rebuilt(
        cls, weights: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> "CausalFlow":
        """Return the flow with these weights, frozen; settings as it has them."""
        dtype = next(w.dtype for w in weights.values() if w.is_floating_point())
        how = dict(settings)
        flow = cls(Graph(how.pop("parents")), dtype=dtype, **how)
        flow.load_state_dict(dict(weights))
        return flow.requires_grad_(False)

    def save(
        self,
        folder: Path,
        name: str,
        made_with: Mapping[str, Any],
        fingerprint: str = "",
    ) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `io.save`."""
        weights = self.state_dict()
        return io.save(folder, name, weights, self.settings, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "CausalFlow":
        """Return the flow of folder/name.safetensors; arguments as for `io.load`.

        Raises: ValueError: no such file, it holds no flow, or it is of
            another population.
        """
        weights, settings = io.load(folder, name, fingerprint)
        with io.loading("causal flow", folder, name):
            return cls._rebuilt(weights, settings)


def with_gradient_of(tensor: Tensor, value: Tensor) -> Tensor:
    """Return the value, with the gradient of another tensor of this shape."""
    return value + (tensor - tensor.detach())


def log_normal(z: Tensor) -> Tensor:
    """Return log N(z; 0, 1) of each entry."""
    return -0.5 * z.square() - 0.5 * math.log(2 * math.pi)


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
    progress: Callable[[range], Iterable[int]] | None = None,
) -> tuple[CausalFlow, pd.DataFrame]:
    """Fit a flow by maximum likelihood; return it, and how the fit went.

    The weights are those of the epoch with the best validation
    log-likelihood.

    Arguments:
        graph, hidden, activation, n_bins: As for `CausalFlow`.
        x, x_validation: Standardised people, each with shape (N, D).
        learning_rate: Of Adam, at the start; it falls to zero along a
            cosine.
        seed: Of the first weights and the order of people.
        progress: Wraps the range of epochs; None: a progress bar.
    Returns: The flow, and a table by epoch with the mean
        log-likelihood of x ("train") and x_validation ("validation"),
        in nats.
    Raises: ValueError: shapes or dtypes differ, there are no people, a
        number is not above zero, or the fit diverges.
    """
    checks.people("x", x, graph.features)
    checks.people("x_validation", x_validation, graph.features, x.dtype)
    checks.not_empty("x", x)
    checks.not_empty("x_validation", x_validation)
    checks.positive_int(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(learning_rate=learning_rate)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        flow = CausalFlow(graph, hidden, activation, n_bins, x.dtype)
    rng = np.random.default_rng(seed)
    adam = torch.optim.Adam(flow.parameters(), learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, n_epochs)
    progress = progress or io.progress_bar("flow")
    rows, best, best_weights = [], -math.inf, flow.state_dict()
    for epoch in progress(range(n_epochs)):
        total = 0.0
        for batch in torch.from_numpy(rng.permutation(len(x))).split(batch_size):
            _, log_p = flow(x[batch])
            loss = -log_p.mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += log_p.detach().sum().item()
        schedule.step()
        with torch.no_grad():
            validation = flow(x_validation)[1].mean().item()
        row = {"train": total / len(x), "validation": validation}
        checks.converging("flow", epoch, row)
        rows.append(row)
        if validation > best:
            best = validation
            best_weights = {name: w.clone() for name, w in flow.state_dict().items()}
    flow.load_state_dict(best_weights)
    history = pd.DataFrame(rows, pd.RangeIndex(1, n_epochs + 1, name="epoch"))
    return flow.requires_grad_(False), history


def save_all(
    flows: Mapping[str, CausalFlow],
    folder: Path,
    name: str,
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Save flows that belong together as one file, and return its path."""
    weights = io.flatten({key: flow.state_dict() for key, flow in flows.items()})
    settings = {key: flow.settings for key, flow in flows.items()}
    return io.save(folder, name, weights, settings, made_with, fingerprint)


def load_all(folder: Path, name: str, fingerprint: str = "") -> dict[str, CausalFlow]:
    """Return the flows that `save_all` saved, by name."""
    weights, settings = io.load(folder, name, fingerprint)
    by_flow = io.unflatten(weights)
    with io.loading("causal flow", folder, name):
        return {key: CausalFlow._rebuilt(by_flow[key], settings[key]) for key in settings}
