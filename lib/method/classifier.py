"""The classifier h that decides; it is fixed once fitted."""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from scipy.stats import mannwhitneyu
from torch import Tensor, nn
from torch.nn import functional as F

from lib import checks, io
from lib.method.data import Population

P_CHANCE = 3e-7  # what is rarer is no chance; five standard deviations
HIDDEN = (32, 32)  # widths of the network's hidden layers
EPSILON = 1e-7  # nearest to 0 and 1 that a probability is taken for
OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
Logit = Callable[[Tensor], Tensor]

# methods of other libraries' models, and the log-odds from what they give
METHODS: dict[str, Logit] = {
    "predict_proba": lambda p: torch.logit(p[:, -1] if p.ndim > 1 else p, eps=EPSILON),
    "decision_function": lambda values: values,
    "predict": lambda decisions: 2 * decisions - 1,
}


class Classifier:
    """Adapt any classifier: a map from standardised features to log-odds.

    The decision is positive where the log-odds are 0 or above. A
    probability p has the log-odds log(p / (1 - p)). `of` makes one
    from what another library has fitted.

    Arguments:
        features: Names of the D features.
        logit: From features with shape (N, D) to log-odds with shape
            (N,) or (N, 1): a torch module (put into evaluation mode),
            or a function around another library's model. A solver
            that needs gradients asks `has_gradient`.
    Example:
        >>> h = Classifier(("income", "age"), lambda x: x[:, 0] - 1)
        >>> h.accepts(torch.tensor([[0.5, 0.0], [1.5, 0.0]]))
        tensor([False,  True])
    """

    threshold_logit = 0.0

    def __init__(self, features: Sequence[str], logit: Logit) -> None:
        self.features = tuple(features)
        self._logit = logit.eval() if isinstance(logit, nn.Module) else logit

    @classmethod
    def of(cls, model: Any, population: Population) -> "Classifier":
        """Return a fitted model of another library as a classifier.

        Arguments:
            model: With `predict_proba`, `decision_function` or
                `predict` (the first that it has), as scikit-learn's
                pipelines have; or a function or torch module that
                gives log-odds. Fitted in the units of the data, to
                columns of the population in any order, categories as
                they are.
            population: Whose features the model was fitted to.
        Raises: ValueError: it has none of these, or was fitted to
            other columns.
        """
        if isinstance(model, nn.Module):
            model.eval()
        name = next((name for name in METHODS if hasattr(model, name)), None)
        if name is None and not callable(model):
            raise ValueError(
                f"A classifier must have one of {', '.join(METHODS)}, or be a function "
                f"that gives log-odds; got {type(model).__name__}."
            )

        columns = [*getattr(model, "feature_names_in_", population.features)]
        n_columns = getattr(model, "n_features_in_", len(columns))
        unknown = [column for column in columns if column not in population.features]
        if name and (unknown or n_columns != len(columns)):
            of = f", among them {', '.join(map(str, unknown))}" if unknown else ""
            raise ValueError(
                f"The model was fitted to {n_columns} columns{of}; the population's are "
                f"{', '.join(population.features)}. Name every column of the model in "
                "kinds, as immutable if nobody can change it, or fit the model without it."
            )

        def logit(x: Tensor) -> Tensor:
            if name is None:
                return model(population.inverse_transform(x))
            rows = population.to_frame(x)[columns]
            if name != "predict" and not hasattr(model, "feature_names_in_"):
                rows = rows.to_numpy()
            values = np.asarray(getattr(model, name)(rows), dtype=float)
            if values.ndim > 1 and values.shape[1] > 2:
                raise ValueError(
                    f"The model tells {values.shape[1]} classes apart: expected two, with "
                    "the positive decision last. Fit it to a label of two values."
                )
            return METHODS[name](torch.from_numpy(values))

        return cls(population.features, logit)

    @classmethod
    def fitted(
        cls, fit: Callable[[pd.DataFrame, np.ndarray], Any], population: Population
    ) -> "Classifier":
        """Return another library's model, fitted to the people a classifier learns from.

        Arguments:
            fit: Takes a table of people, in the units of the data, and
                their labels, with shape (N,); returns a fitted model,
                as for `of`.
            population: Its split "classifier/train" is learned from.
        Raises: ValueError: as `of`.
        """
        people = population.to_frame(population.x["classifier/train"])
        return cls.of(fit(people, population.y["classifier/train"].numpy()), population)

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,), for features (*, D).

        Where the threshold is not one half, its log-odds are
        subtracted.

        Raises: ValueError: the function gives something else than one
            finite number a person.
        """
        rows = x.reshape(-1, len(self.features))
        if len(rows) == 0:  # many a library refuses to be asked about nobody
            return x.new_zeros(x.shape[:-1])
        if not self.has_gradient:
            rows = rows.detach()
        logits = torch.as_tensor(self._logit(rows))
        if logits.shape not in {(len(rows),), (len(rows), 1)}:
            raise ValueError(
                f"The classifier gave values with shape {tuple(logits.shape)} for "
                f"{len(rows)} people: expected one log-odds a person, ({len(rows)},)."
            )
        if not logits.isfinite().all():
            raise ValueError(
                "The classifier gave NaN or infinite log-odds: expected a number for each "
                "person. Classifier.of(model, population) takes a model's predict_proba."
            )
        return logits.to(x.dtype).reshape(x.shape[:-1]) - self.threshold_logit

    @cached_property
    def has_gradient(self) -> bool:
        """Whether torch can differentiate the log-odds."""
        for dtype in (torch.float32, torch.float64):
            x = torch.zeros(2, len(self.features), dtype=dtype, requires_grad=True)
            # numpy() of a gradient, and another dtype
            with suppress(RuntimeError, ValueError), torch.enable_grad():
                if torch.as_tensor(self._logit(x)).requires_grad:
                    return True
        return False

    def probability(self, x: Tensor) -> Tensor:
        """Return h(x), the probability of a positive decision, with shape (*,)."""
        checks.people("x", x, self.features)
        return torch.sigmoid(self.logit(x) + self.threshold_logit)

    def accepts(self, x: Tensor) -> Tensor:
        """Return whether h(x) is at the threshold or above, with shape (*,)."""
        checks.people("x", x, self.features)
        return self.logit(x) >= 0

    @property
    def threshold(self) -> float:
        """The probability from which on the decision is positive."""
        return round(1 / (1 + math.exp(-self.threshold_logit)), 12)

    def with_threshold(self, threshold: float) -> Self:
        """Return this classifier with another threshold, a probability.

        Raises: ValueError: it is not between 0 and 1.
        Example:
            >>> h = Classifier(("income",), lambda x: x[:, 0]).with_threshold(0.8)
            >>> h.accepts(torch.tensor([[1.0], [2.0]])), h.probability(torch.zeros(1, 1))
            (tensor([False,  True]), tensor([0.5000]))
        """
        if not 0 < threshold < 1:
            raise ValueError(
                f"The threshold is {threshold!r}, expected a probability, between 0 and 1."
            )
        moved = copy.copy(self)
        moved.threshold_logit = math.log(threshold / (1 - threshold))
        return moved

    def check(self, x: Tensor, y: Tensor) -> None:
        """Raise ValueError unless the log-odds of people are some, and fit their labels.

        Values from 0 to 1 only are probabilities or decisions, unless
        a `NetworkClassifier` gives them. And people with a positive
        label must not have lower log-odds than those with a negative
        one, more than chance explains.

        Arguments:
            x: People, with shape (N, D).
            y: Whether their labels are positive, with shape (N,); or
                nobody's.
        """
        raw = self.logit(x).detach().double() + self.threshold_logit
        if not raw.isfinite().all():
            raise ValueError("The classifier gives NaN. Was its fit broken off?")
        low, high = raw.min().item(), raw.max().item()
        if 0 <= low < high <= 1 and not isinstance(self, NetworkClassifier):
            raise ValueError(
                f"The classifier's values lie between {low:g} and {high:g}, as "
                "probabilities or decisions. Expected log-odds, 0 or above for a positive "
                "decision: torch.logit(p), or 2 * decision - 1."
            )
        if y.bool().all() or not y.any():
            return
        positive, negative = raw[: len(y)][y.bool()], raw[: len(y)][~y.bool()]
        n_better, p_value = mannwhitneyu(positive, negative, alternative="less")
        if p_value < P_CHANCE:
            share = n_better / (len(positive) * len(negative))
            raise ValueError(
                "The classifier prefers a person with a positive label to one with a "
                f"negative in {share:.0%} of cases: expected half or more. Is 1 the bad "
                "outcome, in the table or in the classifier? Turn one of them round."
            )


class NetworkClassifier(nn.Module, Classifier):
    """The paper's classifier, a D-32-32-1 network with ReLU.

    Arguments:
        features: Names of the D features.
        dtype: Of weights and people.
    Source: section 5.1 of arXiv:2604.08030; the widths are those of
        CARMA's public code.
    """

    has_gradient = True

    def __init__(self, features: Sequence[str], dtype: torch.dtype = torch.float32) -> None:
        nn.Module.__init__(self)
        self.features = tuple(features)
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise([len(self.features), *HIDDEN, 1]):
            layers += [nn.Linear(n_in, n_out, dtype=dtype), nn.ReLU()]
        self.network = nn.Sequential(*layers[:-1])

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,), for x (*, D).

        Where the threshold is not one half, its log-odds are
        subtracted.
        """
        return self.network(x).squeeze(-1) - self.threshold_logit

    forward = logit

    def save(
        self,
        folder: Path,
        name: str,
        made_with: Mapping[str, Any],
        fingerprint: str = "",
    ) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `io.save`."""
        settings: dict[str, Any] = {"features": self.features, "hidden": HIDDEN}
        if self.threshold_logit:
            settings["threshold_logit"] = self.threshold_logit
        return io.save(folder, name, self.state_dict(), settings, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "NetworkClassifier":
        """Load from folder/name.safetensors; arguments as for `io.load`.

        Raises: ValueError: no such file, it holds no classifier, or
            it is of another population.
        """
        weights, settings = io.load(folder, name, fingerprint)
        with io.loading("classifier", folder, name):
            loaded = cls(settings["features"], next(iter(weights.values())).dtype)
            loaded.load_state_dict(weights)
            loaded.threshold_logit = float(settings.get("threshold_logit", 0.0))
        return loaded.requires_grad_(False)


def fit(
    population: Population,
    n_epochs: int = 500,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    negative_class_weight: float = 1.0,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] | None = None,
    optimiser: str = "adam",
) -> tuple[NetworkClassifier, pd.DataFrame]:
    """Fit a classifier by cross-entropy; return it and its mean loss by epoch.

    Arguments:
        population: Its split "classifier/train" is learned from, as
            people can be (whole numbers where the population has
            them).
        negative_class_weight: How much more it costs to accept
            someone with a negative label than to refuse someone with
            a positive one; people with a negative label weigh that
            much in the loss.
        progress: Wraps the range of epochs; None: a progress bar.
        optimiser: "adam", as the paper says, or "sgd", plain descent,
            as CARMA's code does.
    Returns: The classifier, frozen, and a table by epoch with the
        column loss.
    Raises: ValueError: a setting is not above zero, the optimiser is
        unknown, or the fit diverges.
    Source: section 5.1 and appendix C of arXiv:2604.08030; for "sgd",
        https://github.com/ayanmaj92/carma-recourse.
    """
    checks.positive_int(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(
        learning_rate=learning_rate, negative_class_weight=negative_class_weight
    )
    checks.one_of("optimiser", [optimiser], tuple(OPTIMISERS))
    x = population.to_feasible(population.x["classifier/train"])
    y = population.y["classifier/train"].to(x.dtype)
    weight = torch.where(y.bool(), 1.0, negative_class_weight).to(x.dtype)
    rng = np.random.default_rng(seed)
    h = NetworkClassifier(population.features, dtype=x.dtype)
    draw_weights(h.network, rng)
    how = {"fused": True} if optimiser == "adam" else {}
    descent = OPTIMISERS[optimiser](h.parameters(), learning_rate, **how)
    progress = progress or io.progress_bar("classifier")
    losses = []
    for epoch in progress(range(n_epochs)):
        total = 0.0
        for rows in torch.from_numpy(rng.permutation(len(x))).split(batch_size):
            loss = F.binary_cross_entropy_with_logits(h(x[rows]), y[rows], weight[rows])
            descent.zero_grad()
            loss.backward()
            descent.step()
            total += loss.item() * len(rows)
        losses.append(total / len(x))
        checks.converging("classifier", epoch, {"cross-entropy": losses[-1]})
    history = pd.DataFrame({"loss": losses}, pd.RangeIndex(1, n_epochs + 1, name="epoch"))
    return h.requires_grad_(False), history


@torch.no_grad()
def draw_weights(network: nn.Sequential, rng: np.random.Generator) -> None:
    """Draw each layer's weight and bias from a generator, uniform within 1/sqrt(fan-in)."""
    for layer in network:
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            weight = rng.uniform(-bound, bound, (layer.in_features, layer.out_features))
            bias = rng.uniform(-bound, bound, layer.out_features)
            layer.weight.copy_(torch.from_numpy(weight.T))
            layer.bias.copy_(torch.from_numpy(bias))
