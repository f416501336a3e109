"""The causal normalizing flow: a world learned from data, that also gives densities."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import checks, files
from lib.base.arithmetic import Adam, kept_where
from lib.method import networks
from lib.method.maps import Map, Spline
from lib.method.networks import Networks, SideBySide
from lib.method.world import Graph, World

ODD = 20.0  # a feature's median noise, or one over it, that no fit leaves
NOTHING_KNOWN: Mapping[int, Map] = MappingProxyType({})


class CausalFlow(World):
    r"""One autoregressive layer along the causal graph; z is the noise.

    .. math:: z_j = T(x_j;\ \theta_j(x_{pa(j)})), \quad z_j \sim N(0, 1)

    T is an `Affine` map or a `Spline`, and each theta_j a small
    network of its own. There is one layer only. In a stack of layers,
    a feature could depend on its parents' noise by other ways than
    through the parents, and interventions would no longer be
    consistent with the graph.

    Arguments:
        graph: The causal graph.
        hidden: Widths of the hidden layers of each feature's network.
        activation: "elu", "relu" or "tanh".
        weights: Of the networks, by feature: "income.weight_0", ...;
            `networks.shapes` lists them.
        n_bins: Of the splines; 0: affine.
    Raises: ValueError: a setting is of no use, or the weights do not
        fit the settings.
    Source: section 3 of arXiv:2604.08030; causal normalizing flows,
        Javaloy et al., 2023.
    Example:
        The committed flow of the Loan population. A standard
        deviation more income brings more savings, and nothing else:
        >>> x = torch.zeros(7)
        >>> x_cf = loan_flow.counterfactual(x, do={"income": 1.0})
        >>> [name for name, moves in zip(loan_flow.features, x_cf != x) if moves]
        ['income', 'savings']
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
        fixed = {name: weight.detach() for name, weight in weights.items()}
        self._networks = Networks(graph, weights=fixed, **self.settings)
        self.univariate = self._networks.univariate

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights of the networks, by feature.

        Example:
            >>> weights = CausalFlow.load(MODELS, "loan_flow").weights
            >>> [name for name in weights if name.startswith("savings.weight")]
            ['savings.weight_0', 'savings.weight_1']
        """
        return self._networks.weights

    @property
    def dtype(self) -> torch.dtype:
        """The kind of numbers that the flow computes with, and expects.

        Example:
            >>> CausalFlow.load(MODELS, "loan_flow").dtype
            torch.float32
        """
        return self._networks.dtype

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless x is finite, and has the flow's features and its dtype.

        Example:
            >>> loan_flow.check("x", torch.zeros(7, dtype=torch.float64))
            Traceback (most recent call last):
            ...
            ValueError: x is torch.float64, the flow is torch.float32. Use x.to(flow.dtype).
        """
        super().check(name, x)
        if x.dtype != self.dtype:
            raise ValueError(
                f"{name} is {x.dtype}, the flow is {self.dtype}. Use {name}.to(flow.dtype)."
            )

    def raw_parameters(self, j: int, x_parents: Tensor) -> Tensor:
        """Return what feature j's network gives for its map, with one entry a parameter.

        Arguments:
            j: Column of the feature.
            x_parents: Its direct causes, with shape (*, P).
        Returns: With shape (*, 2): shift and scale; for splines (*,
            3 n_bins - 1).
        Raises: ValueError: the number of causes is another one.
        Example:
            Age has no causes, so that everyone has the same shift and
            scale:
            >>> raw = loan_flow.raw_parameters(loan_flow.index("age"), torch.zeros(3, 0))
            >>> raw.shape, bool((raw == raw[0]).all())
            (torch.Size([3, 2]), True)
        """
        causes = self.graph.parents[self.features[j]]
        if x_parents.shape[-1] != len(causes):
            raise ValueError(
                f"x_parents of {self.features[j]} has shape {tuple(x_parents.shape)}: its "
                f"last axis must hold the {len(causes)} causes "
                f"({', '.join(causes) or 'none'})."
            )
        return self._networks.raw(j, x_parents)

    def map_of(self, j: int, x_parents: Tensor) -> Map:
        """Return the map between feature j and its noise, given its parents (*, P).

        Example:
            Savings, of somebody with an average income:
            >>> savings = loan_flow.map_of(loan_flow.index("savings"), torch.zeros(1))
            >>> z, _ = savings.forward(torch.tensor(0.5))
            >>> round(savings.inverse(z).item(), 4)
            0.5
        """
        return self.univariate(self.raw_parameters(j, x_parents))

    def maps(self, x: Tensor, columns: Iterable[int]) -> dict[int, Map]:
        """Return the maps of these features, given their parents in x (*, D), by column.

        Example:
            >>> income = loan_flow.index("income")
            >>> x = torch.zeros(3, 7)
            >>> known = loan_flow.maps(x, [income])
            >>> z, _ = known[income].forward(x[:, income])
            >>> torch.equal(z, loan_flow.abduct(x)[:, income])
            True
        """
        return {j: self.map_of(j, x[..., self.graph.parent_index[j]]) for j in columns}

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise z behind each person's features; see `World.abduct`.

        Raises: ValueError: x has another shape or dtype, or is not
            finite.
        Example:
            >>> x = torch.zeros(7)
            >>> torch.allclose(loan_flow.predict(loan_flow.abduct(x)), x, atol=1e-5)
            True
        """
        self.check("x", x)
        every = range(len(self.features))
        if self.univariate is Spline:  # at once would be D times 47 numbers a person
            return self._noise_and_slopes(x, every)[0]
        values = x.unbind(-1)
        raw = [self.raw_parameters(j, self.of_parents(j, values)) for j in every]
        return self.univariate(torch.stack(raw, -2)).forward(x)[0]

    def check_units(self, x: Tensor) -> None:
        """Raise ValueError if the noise behind people (N, D) is none that a fit leaves.

        Half of it should lie within 0.67, a normal's quartile.

        Example:
            >>> loan_flow.check_units(loan.population(100, 100, 100).x["recourse/train"])
            >>> loan_flow.check_units(torch.full((9, 7), 1e6))  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: The flow does not fit these people: half of the noise behind ...
        """
        size = self.abduct(x).detach().abs().median(0).values
        for name, half in zip(self.features, size.tolist(), strict=True):
            if not 1 / ODD < half < ODD:
                raise ValueError(
                    f"The flow does not fit these people: half of the noise behind {name} "
                    f"lies beyond {half:.3g}, of a normal beyond 0.67. Was it fitted in "
                    "other units? Expected standardised features, as in population.x."
                )

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j, with shape (*,); see `World.feature`.

        Example:
            >>> loan_flow.feature(6, torch.zeros(3, 1), torch.zeros(3)).shape  # savings
            torch.Size([3])
        """
        return self.map_of(j, x_parents).inverse(noise)

    def follow(
        self,
        columns: Sequence[Tensor],
        reached: Mapping[int, Tensor],
        noise: Tensor,
        maps: dict[int, Map] | None = None,
    ) -> list[Tensor]:
        """Return features after an action; see `World.follow`.

        Arguments:
            columns, reached, noise: As for `World.follow`.
            maps: A dictionary that is filled with the maps that are
                asked on the way, by column.
        Example:
            >>> x, acts = torch.zeros(1, 7), torch.zeros(1, 7, dtype=torch.bool)
            >>> acts[:, loan_flow.index("income")] = True
            >>> maps, noise = {}, loan_flow.abduct(x)
            >>> columns = torch.where(acts, x + 1, x).unbind(-1)
            >>> after = loan_flow.follow(columns, loan_flow.reached(acts), noise, maps)
            >>> [loan_flow.features[j] for j in maps]
            ['savings']
        """
        after, maps = list(columns), {} if maps is None else maps
        for j, moves in reached.items():
            maps[j] = self.map_of(j, self.of_parents(j, after))
            after[j] = torch.where(moves, maps[j].inverse(noise[..., j]), after[j])
        return after

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return standard normal noise with shape (N, D); see `World.draw_noise`.

        Example:
            >>> loan_flow.draw_noise(5, np.random.default_rng(0)).shape
            torch.Size([5, 7])
        """
        drawn = rng.standard_normal((n_people, len(self.features)))
        return torch.from_numpy(drawn).to(self.dtype)

    def _noise_and_slopes(
        self, x: Tensor, columns: Iterable[int], known: Mapping[int, Map] = NOTHING_KNOWN
    ) -> tuple[Tensor, Tensor]:
        """Return z and log dz/dx of these features, each with shape (*, len(columns))."""
        values = x.unbind(-1)
        both = [
            (known.get(j) or self.map_of(j, self.of_parents(j, values))).forward(values[j])
            for j in columns
        ]
        z, slopes = zip(*both, strict=True)
        return torch.stack(z, -1), torch.stack(slopes, -1)

    def log_prob_terms(
        self,
        x: Tensor,
        columns: Sequence[int] | None = None,
        known: Mapping[int, Map] = NOTHING_KNOWN,
    ) -> Tensor:
        """Return the terms log p(x_j | parents) of the log-density, in nats.

        Searches ask for them at every step, so that x is not searched
        for NaN.

        Arguments:
            x: Standardised features, with shape (*, D).
            columns: Which terms are wanted; left out: all D.
            known: Maps, as `map_of` gives them, of features whose
                networks need not be asked again: their parents are as
                before.
        Returns: One term a column, with shape (*, len(columns)).
        Raises: ValueError: columns are unknown, or none are wanted.
        Example:
            >>> x = loan_flow.sample(4, np.random.default_rng(0))
            >>> torch.allclose(loan_flow.log_prob_terms(x).sum(-1), loan_flow.log_prob(x))
            True
        """
        every = range(len(self.features))
        columns = every if columns is None else columns
        checks.known("column", columns, every)
        if not columns:
            raise ValueError("columns is empty: name the columns whose terms are wanted.")
        z, log_slope = self._noise_and_slopes(x, columns, known)
        return log_slope - 0.5 * z.square() - 0.5 * networks.LOG_2_PI

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density of standardised features (*, D), in nats, with shape (*,).

        Raises: ValueError: x has another shape or dtype, or is not
            finite.
        Example:
            Somebody average is more likely than somebody ten standard
            deviations away:
            >>> log_p = CausalFlow.load(MODELS, "loan_flow").log_prob
            >>> bool(log_p(torch.zeros(7)) > log_p(torch.full((7,), 10.0)))
            True
        """
        self.check("x", x)
        return self.log_prob_terms(x).sum(-1)

    def factual(self, x: Tensor, columns: Sequence[int]) -> dict[str, Tensor]:
        """Return what `act` reads of people before they act.

        Arguments:
            x: Standardised features, with shape (*, D).
            columns: The features that may be acted on.
        Returns: "x", "z" and "slope", each with shape (*, D), and
            "fixed": side by side, the raw parameters of those
            features among the columns that no other of them reaches.
        Raises: ValueError: x has another shape or dtype, or is not
            finite; a column is unknown.
        Example:
            Income (5) keeps its raw parameters, shift and scale;
            savings (6) follow from it:
            >>> parts = loan_flow.factual(torch.zeros(3, 7), [5, 6])
            >>> {name: tuple(part.shape) for name, part in parts.items()}
            {'x': (3, 7), 'z': (3, 7), 'slope': (3, 7), 'fixed': (3, 2)}
        """
        self.check("x", x)
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
        """Return the counterfactual and the change of the log-density, in one walk.

        It is there for training: masks carry gradients. The networks
        behind the parameters are asked anew only where a parent may
        have moved, and once for both results.

        What is out of reach of a person's action keeps its value and
        adds exactly nothing to the change, free of rounding. Its
        gradients are those of the walk.

        Arguments:
            factual: As the method of this name gives it for these
                columns, with leading axes (*), without gradients.
            columns: The K features that may be acted on.
            m, a: Mask (0 or 1 in value) and values of these features,
                with shape (*, K). Gradients reach only them, and what
                follows from them.
        Returns: x_cf with shape (*, D), and log p(x_cf) - log p(x) in
            nats with shape (*,).
        Example:
            >>> x, income = torch.zeros(1, 7), loan_flow.index("income")
            >>> a = torch.ones(1, 1, requires_grad=True)
            >>> x_cf, gain = loan_flow.act(
            ...     loan_flow.factual(x, [income]), [income], torch.ones(1, 1), a
            ... )
            >>> torch.equal(x_cf, loan_flow.counterfactual(x, do={"income": 1.0}))
            True
            >>> change = loan_flow.log_prob(x_cf) - loan_flow.log_prob(x)
            >>> torch.allclose(gain, change, atol=1e-5)
            True
            >>> gain.backward()
            >>> a.grad.item() < 0  # still more income would be still less likely
            True
        """
        x, z, slope = (factual[name].unbind(-1) for name in ("x", "z", "slope"))
        masks, rest, values = m.unbind(-1), (1 - m).unbind(-1), a.unbind(-1)
        acted = (m > 0).unbind(-1)
        reached = set(self.graph.reached_by(columns))
        at_rest = self._fixed(columns)
        raw = factual["fixed"].chunk(len(at_rest), -1)
        fixed = dict(zip(at_rest, raw, strict=True))
        after, gain, nothing = list(x), z[0].new_zeros(()), z[0].new_zeros(())
        moved: dict[int, Tensor] = {}  # which people's actions reach it
        for j in self.graph.order:
            follows = j in reached
            if not follows and j not in columns:
                continue
            causes = [moved[i] for i in self.graph.parent_index[j] if i in moved]
            if follows:
                map_j = self.map_of(j, self.of_parents(j, after))
            else:
                map_j = self.univariate(fixed[j])
            if j in columns:
                k, before = columns.index(j), None if follows else x[j]
                causes.append(acted[k])
                after[j], slope_cf, gain_j = map_j.after_action(
                    z[j], before, masks[k], rest[k], values[k]
                )
            else:  # only its parents changed: the noise stays
                after[j], gain_j = map_j.inverse(z[j]), nothing
                slope_cf = map_j.forward(after[j])[1]
            moved[j] = reduce(torch.logical_or, causes)
            if follows:
                after[j] = kept_where(after[j], moved[j], x[j])
            if follows or self.univariate.slope_depends_on_x:
                gain_j = gain_j + (slope_cf - slope[j])
            gain = gain + kept_where(gain_j, moved[j], nothing)
        return torch.stack(after, -1), gain

    def save(
        self, folder: Path, name: str, made_with: Mapping[str, Any], fingerprint: str = ""
    ) -> Path:
        """Save the flow as folder/name.safetensors and return the path.

        Arguments:
            folder, name, made_with, fingerprint: As for `files.save`.
        Example:
            >>> with TemporaryDirectory() as folder:
            ...     loan_flow.save(Path(folder), "mine", {"seed": 0}).name
            'mine.safetensors'
        """
        return files.save(
            folder, name, self.weights, self._saved_settings(), made_with, fingerprint
        )

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "CausalFlow":
        """Return the flow of folder/name.safetensors.

        Arguments:
            folder, name, fingerprint: As for `files.load`.
        Raises: ValueError: as `files.load`, or the file holds
            something else than a flow.
        Example:
            >>> CausalFlow.load(MODELS, "loan_flow").settings
            {'hidden': [8], 'activation': 'elu', 'n_bins': 0}
        """
        weights, settings = files.load(folder, name, fingerprint)
        with files.holding("causal flow", folder, name):
            return cls._rebuilt(weights, settings)

    def _saved_settings(self) -> dict[str, Any]:
        """Return what rebuilds the flow, beside its weights, as JSON can hold it."""
        parents = {name: list(causes) for name, causes in self.graph.parents.items()}
        settings = {"parents": parents, **self.settings}
        if not self.settings["n_bins"]:
            del settings["n_bins"]
        return settings

    @classmethod
    def _rebuilt(cls, weights: Mapping[str, Tensor], settings: Any) -> "CausalFlow":
        """Return the flow with these weights and `_saved_settings`."""
        given: dict[str, Any] = {"n_bins": 0}
        given |= settings if isinstance(settings, dict) else {}
        needed = {"parents": dict, "hidden": list, "activation": str, "n_bins": int}
        checks.known("setting", given, tuple(needed))
        for key, kind in needed.items():
            if type(given.get(key)) is not kind:
                raise ValueError(
                    f"its setting {key} must be {kind.__name__}, got {given.get(key)!r}."
                )
        return cls(Graph(given.pop("parents")), weights=weights, **given)


def save_all(
    flows: Mapping[str, CausalFlow],
    folder: Path,
    name: str,
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Save flows that belong together as one file, and return its path.

    Arguments:
        flows: By a name without a slash.
        folder, name, made_with, fingerprint: As for `files.save`.
    Raises: ValueError: a name holds a slash.
    Example:
        >>> with TemporaryDirectory() as folder:
        ...     _ = save_all({"ours": loan_flow}, Path(folder), "graphs", {"seed": 0})
        ...     list(load_all(Path(folder), "graphs"))
        ['ours']
    """
    weights = files.in_one_file({key: flow.weights for key, flow in flows.items()})
    settings = {key: flow._saved_settings() for key, flow in flows.items()}
    return files.save(folder, name, weights, settings, made_with, fingerprint)


def load_all(folder: Path, name: str, fingerprint: str = "") -> dict[str, CausalFlow]:
    """Return the flows that `save_all` saved, by name.

    Arguments:
        folder, name, fingerprint: As for `files.load`.
    Raises: ValueError: as `CausalFlow.load`.
    Example:
        >>> flows = load_all(MODELS, "gmsc_other_flows")
        >>> len({flow.features for flow in flows.values()})  # other graphs, same features
        1
    """
    weights, settings = files.load(folder, name, fingerprint)
    with files.holding("causal flow", folder, name):
        return {
            key: CausalFlow._rebuilt(own, settings[key])
            for key, own in files.by_first_name(weights, settings).items()
        }


def fit(
    graph: Graph,
    x: Tensor,
    x_validation: Tensor,
    hidden: Sequence[int] = (8,),
    activation: str = "elu",
    n_bins: int = 0,
    n_epochs: int = 300,
    batch_size: int = 1000,
    learning_rate: float = 5e-3,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
    checkpoint: Path | None = None,
) -> tuple[CausalFlow, dict[str, np.ndarray]]:
    """Return a flow fitted by maximum likelihood, and how the fit went.

    Adam descends with a learning rate that falls to zero along a
    cosine.

    Arguments:
        graph: The causal graph.
        x, x_validation: Standardised features, each with shape (N,
            D).
        hidden, activation, n_bins: As `CausalFlow`.
        n_epochs: How often each person is seen.
        batch_size: People a step.
        learning_rate: Of the first epoch.
        seed: Of the first weights and of the order of people.
        progress: Wraps the range of epochs, for instance `tqdm`.
        checkpoint: A folder for how far the fit is. Started again
            with the same arguments, it goes on from there (see
            `lib.base.fits`). Remove it when the flow is saved.
    Returns: The flow of the epoch with the best validation
        log-likelihood, and the mean log-likelihoods "train" and
        "validation" of each epoch, in nats.
    Raises: ValueError: people or settings are of no use, the fit
        diverged, or the checkpoint is of other arguments.
    Example:
        Savings are twice the income, and noise; the flow finds out:

        >>> rng = np.random.default_rng(0)
        >>> income, noise = torch.from_numpy(rng.standard_normal((2, 500)))
        >>> x = torch.stack([income, 2 * income + noise], -1)
        >>> graph = Graph({"income": (), "savings": ("income",)})
        >>> fitted, history = fit(
        ...     graph, x[:400], x[400:], [8], n_epochs=60, batch_size=50, learning_rate=0.02
        ... )
        >>> poor = torch.zeros(2, dtype=torch.float64)
        >>> x_cf = fitted.counterfactual(poor, do={"income": 1.0})
        >>> round(x_cf[1].item())
        2
    """
    for name, part in (("x", x), ("x_validation", x_validation)):
        checks.people(name, part, graph.features)
        if part.ndim != 2 or not len(part):
            raise ValueError(
                f"{name} has shape {tuple(part.shape)}, expected "
                f"(N, {len(graph.features)}) with at least one person."
            )
    if x.dtype != x_validation.dtype:
        raise ValueError(
            f"x is {x.dtype} and x_validation {x_validation.dtype}: expected the same."
        )
    checks.counts(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(learning_rate=learning_rate)
    rng = np.random.default_rng(seed)
    weights = networks.first_weights(graph, hidden, n_bins, rng, x.dtype)
    stack = SideBySide(graph, hidden, activation, n_bins, weights)

    def inputs() -> dict[str, Any]:
        return {
            "x": x,
            "x_validation": x_validation,
            "parents": {name: list(own) for name, own in graph.parents.items()},
            "hidden": list(hidden),
            "activation": activation,
            "n_bins": n_bins,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "seed": seed,
        }

    best_weights, history = networks.fit(
        stack,
        x,
        x_validation,
        Adam(stack.leaves, learning_rate, n_epochs),
        n_epochs,
        batch_size,
        rng,
        progress,
        checkpoint,
        inputs,
    )
    return CausalFlow(graph, hidden, activation, best_weights, n_bins), history
