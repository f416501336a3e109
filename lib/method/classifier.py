"""The classifier h that decides; it is fixed once fitted."""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, files, fits
from lib.base.arithmetic import SGD, Adam, RMSprop, network
from lib.method.population import Population

FEWEST_LABELS = 30  # of either kind, by which a classifier is judged
SURELY = 5.0  # standard deviations that are no chance
Logit = Callable[[Tensor], Tensor]
DTYPES = (torch.float32, torch.float64)
OPTIMISERS: dict[str, type[Adam] | type[SGD]] = {"adam": Adam, "sgd": SGD}


class Classifier:
    """Hold any classifier: a map from standardised features to log-odds.

    The decision is positive where the log-odds are 0 or above. A
    probability p has the log-odds log(p / (1 - p)). `at` asks for
    another probability than one half.

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

    bound = 0.0  # log-odds of the threshold

    def __init__(self, features: Sequence[str], logit: Logit) -> None:
        self.features = tuple(features)
        self._logit = logit.eval() if isinstance(logit, torch.nn.Module) else logit

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,), for features (*, D).

        Where the threshold is not one half, its own are subtracted.

        Raises: ValueError: the function gives something else than one
            finite number a person.
        Example:
            >>> h = Classifier(("income", "age"), lambda x: x[:, 0] - 1)
            >>> h.logit(torch.zeros(3, 5, 2)).shape
            torch.Size([3, 5])
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
                f"The classifier gave NaN or infinite log-odds for "
                f"{int((~logits.isfinite()).sum())} of {len(rows)} people: expected a "
                "number for each. Does it know all these features?"
            )
        return logits.to(x.dtype).reshape(x.shape[:-1]) - self.bound

    @cached_property
    def has_gradient(self) -> bool:
        """Whether torch can differentiate the log-odds.

        Example:
            >>> Classifier(("income",), lambda x: x[:, 0]).has_gradient
            True
            >>> Classifier(("income",), lambda x: (x[:, 0] > 1).float()).has_gradient
            False
        """
        probes = (torch.zeros(2, len(self.features), dtype=dtype) for dtype in DTYPES)
        return any(self._is_differentiable(probe.requires_grad_()) for probe in probes)

    def _is_differentiable(self, probe: Tensor) -> bool:
        """Return whether the log-odds of a probe have a gradient."""
        try:
            with torch.enable_grad():
                return bool(torch.as_tensor(self._logit(probe)).requires_grad)
        except (RuntimeError, ValueError):  # numpy() of a gradient, or other numbers
            return False

    def probability(self, x: Tensor) -> Tensor:
        """Return h(x), the probability of a positive decision, with shape (*,).

        Example:
            >>> Classifier(("income",), lambda x: x[:, 0]).probability(torch.zeros(1, 1))
            tensor([0.5000])
        """
        checks.people("x", x, self.features)
        return torch.sigmoid(self.logit(x) + self.bound)

    def check(self, x: Tensor, y: Tensor) -> None:
        """Raise ValueError unless the log-odds of people are some, and fit their labels.

        Values from 0 to 1 only are probabilities or decisions. And of
        a person with a positive label and one with a negative it must
        not prefer the second more often than chance explains.

        Arguments:
            x: People, with shape (N, D).
            y: Whether their labels are positive, with shape (N,); or
                nobody's.
        Example:
            >>> x = torch.tensor([[0.0], [3.0]])
            >>> h = Classifier(("income",), lambda x: torch.sigmoid(x[:, 0]))
            >>> h.check(x, x[:, 0] > 1)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: The classifier's values of 2 people lie between 0.5 and 0.95...
        """
        raw = (self.logit(x) + self.bound).detach().double()
        low, high = raw.min().item(), raw.max().item()
        if 0 <= low < high <= 1:
            raise ValueError(
                f"The classifier's values of {len(x)} people lie between {low:g} and "
                f"{high:g}: these seem to be probabilities or decisions. Expected "
                "log-odds, 0 or above for a positive decision: torch.logit(p), or 2 * "
                "decision - 1."
            )
        of_yes, of_no = (raw[: len(y)][is_of] for is_of in (y.bool(), ~y.bool()))
        if min(len(of_yes), len(of_no)) < FEWEST_LABELS:
            return
        preferred = (of_yes[:, None] - of_no).sign().mean().item() / 2 + 0.5
        by_chance = math.sqrt((1 / len(of_yes) + 1 / len(of_no)) / 12)  # one sd, about
        if preferred < 0.5 - SURELY * by_chance:
            raise ValueError(
                "The classifier disagrees with the labels: of a person whose label is "
                f"positive and one whose is not it prefers the first in {preferred:.0%} of "
                "cases. Is 1 the bad outcome, in the table or in the classifier? Turn one "
                "of them round."
            )

    @property
    def threshold(self) -> float:
        """The probability from which on the decision is positive.

        Example:
            >>> h = Classifier(("income",), lambda x: x[:, 0])
            >>> h.threshold, h.at(0.8).threshold
            (0.5, 0.8)
        """
        return round(1 / (1 + math.exp(-self.bound)), 12)

    def at(self, threshold: float) -> Self:
        """Return this classifier with another threshold, a probability.

        Raises: ValueError: it is not between 0 and 1.
        Example:
            >>> h = Classifier(("income",), lambda x: x[:, 0]).at(0.8)
            >>> h.accepts(torch.tensor([[1.0], [2.0]])), h.probability(torch.zeros(1, 1))
            (tensor([False,  True]), tensor([0.5000]))
        """
        if not 0 < threshold < 1:
            raise ValueError(
                f"The threshold is {threshold!r}, expected a probability, between 0 and 1."
            )
        moved = copy.copy(self)
        moved.bound = math.log(threshold / (1 - threshold))
        return moved

    def accepting(self, share: float, x: Tensor) -> Self:
        """Return this classifier with the threshold that accepts a share of some people.

        Arguments:
            share: Of those to be accepted, between 0 and 1.
            x: People, standardised, with shape (N, D).
        Raises: ValueError: the share is not between 0 and 1.
        Example:
            >>> h = Classifier(("income",), lambda x: x[:, 0])
            >>> x = torch.arange(10.0)[:, None]
            >>> h.accepting(0.3, x).accepts(x).sum()
            tensor(3)
        """
        if not 0 < share < 1:
            raise ValueError(f"The share is {share!r}, expected one between 0 and 1.")
        log_odds = (self.logit(x) + self.bound).double()
        n = min(max(round(share * len(x)), 1), len(x) - 1)
        middle = log_odds.sort(descending=True).values[n - 1 : n + 1].mean()
        return self.at(torch.sigmoid(middle).item())

    def accepts(self, x: Tensor) -> Tensor:
        """Return whether the decision is positive, h(x) >= 0.5, with shape (*,).

        Example:
            >>> h = Classifier(("income",), lambda x: x[:, 0])
            >>> h.accepts(torch.tensor([[0.0], [-1.0]]))
            tensor([ True, False])
        """
        checks.people("x", x, self.features)
        return self.logit(x) >= 0


class NetworkClassifier(Classifier):
    """Hold the paper's classifier, a D-32-32-1 network with ReLU.

    Arguments:
        features: Names of the D features.
        weights, biases: Of each layer, with shapes (in, out) and
            (out,).
    Source: section 5.1 of arXiv:2604.08030.
    Example:
        >>> one, zero = torch.ones(1, 1), torch.zeros(1)
        >>> h = NetworkClassifier(("income",), [one, one], [zero, zero - 2])
        >>> h.logit(torch.tensor([[-1.0], [5.0]]))
        tensor([-2.,  3.])
    """

    has_gradient = True

    def at(self, threshold: float) -> Self:
        """Return this network with another threshold; see `Classifier.at`.

        Example:
            >>> one, zero = torch.ones(1, 1), torch.zeros(1)
            >>> h = NetworkClassifier(("income",), [one], [zero]).at(0.8)
            >>> h.accepts(torch.tensor([[1.0], [2.0]])), h.probability(torch.zeros(1, 1))
            (tensor([False,  True]), tensor([0.5000]))
        """
        moved = super().at(threshold)
        moved.biases = [*self.biases[:-1], self.biases[-1] + (self.bound - moved.bound)]
        return moved

    def __init__(
        self, features: Sequence[str], weights: Sequence[Tensor], biases: Sequence[Tensor]
    ) -> None:
        self.features = tuple(features)
        self.weights = [w.detach() for w in weights]
        self.biases = [b.detach() for b in biases]

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,), for x (*, D).

        Example:
            >>> one, zero = torch.ones(1, 1), torch.zeros(1)
            >>> h = NetworkClassifier(("income",), [one, one], [zero, zero - 2])
            >>> h.logit(torch.tensor([[-1.0], [5.0]]))
            tensor([-2.,  3.])
        """
        return network(x, self.weights, self.biases).squeeze(-1)

    def logit_from_first_layer(self, hidden: Tensor) -> Tensor:
        """Return the log-odds, with shape (*,), from the sums of the first layer.

        Arguments:
            hidden: The sums before their ReLU, with shape (*, 32).
                They are linear in x, so that the effects of two
                actions on them add up; the search on a grid uses
                that.
        Example:
            >>> one, zero = torch.ones(1, 1), torch.zeros(1)
            >>> h = NetworkClassifier(("income",), [one, one], [zero, zero - 2])
            >>> h.logit_from_first_layer(torch.tensor([[5.0]]))
            tensor([3.])
        """
        if len(self.weights) == 1:
            return hidden.squeeze(-1)
        return network(hidden.relu(), self.weights[1:], self.biases[1:]).squeeze(-1)

    def save(
        self, folder: Path, name: str, made_with: Mapping[str, Any], fingerprint: str = ""
    ) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `files.save`.

        Example:
            >>> folder, one = Path(tempfile.mkdtemp()), torch.ones(1, 1)
            >>> h = NetworkClassifier(("income",), [one], [torch.zeros(1)])
            >>> h.save(folder, "mine", {"seed": 0}).name
            'mine.safetensors'
        """
        tensors = {f"weight_{i}": w for i, w in enumerate(self.weights)}
        tensors |= {f"bias_{i}": b for i, b in enumerate(self.biases)}
        settings: dict[str, Any] = {"features": self.features}
        if self.bound:
            settings["bound"] = self.bound
        return files.save(folder, name, tensors, settings, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, fingerprint: str = "") -> "NetworkClassifier":
        """Load from folder/name.safetensors; arguments as for `files.load`.

        Raises: ValueError: no such file, it holds no classifier, or
            it is of another population.
        Example:
            >>> NetworkClassifier.load(files.MODELS, "loan_classifier").features[-1]
            'savings'
        """
        tensors, settings = files.load(folder, name, fingerprint)
        layers = range(sum(key.startswith("weight_") for key in tensors))
        with files.holding("classifier", folder, name):
            features = files.names("features", settings.get("features"))
            biases = [tensors.get(f"bias_{i}", torch.zeros(0)) for i in layers]
            hidden = [bias.numel() for bias in biases[:-1]]
            files.check_tensors(tensors, files.layers([len(features), *hidden, 1]))
            bound = settings.get("bound", 0.0)
            if not isinstance(bound, float) or not math.isfinite(bound):
                raise ValueError(f"its setting bound must be a number, got {bound!r}.")
        found = cls(features, [tensors[f"weight_{i}"] for i in layers], biases)
        found.bound = bound
        return found


def fit(
    population: Population,
    n_epochs: int = 500,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    weight_of_refusable: float = 1.0,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
    optimiser: str = "adam",
    checkpoint: Path | None = None,
) -> tuple[NetworkClassifier, np.ndarray]:
    """Fit a classifier by cross-entropy; return it and its mean loss by epoch.

    Arguments:
        population: Its split "classifier/train" is learned from, as
            people can be (whole numbers where the population has
            them).
        weight_of_refusable: How much more it costs to accept someone
            with a negative label than to refuse someone with a
            positive one; people with a negative label weigh that much
            in the loss.
        progress: Wraps the range of epochs, for instance `tqdm`.
        optimiser: A key of `OPTIMISERS`: "adam", as the paper says,
            or "sgd", plain descent, as CARMA's code does.
        checkpoint: A folder for how far the fit is. Started again
            with the same arguments, it goes on from there (see
            `lib.base.fits`). Remove it when the classifier is
            saved.
    Raises: ValueError: a setting is not above zero, the optimiser is
        unknown, the fit diverges, or the checkpoint is of other
        arguments.
    Source: section 5.1 and appendix C of arXiv:2604.08030; for "sgd",
        https://github.com/ayanmaj92/carma-recourse.
    Example:
        >>> h, losses = fit(loan.population(200, 200, 200), n_epochs=2)
        >>> len(losses), h.features[0]
        (2, 'gender')
    """
    checks.counts(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(learning_rate=learning_rate, weight_of_refusable=weight_of_refusable)
    checks.known("optimiser", [optimiser], tuple(OPTIMISERS))
    x = population.possible(population.x["classifier/train"])
    y = population.y["classifier/train"]
    weight = torch.where(y.bool(), 1.0, weight_of_refusable)
    rng = np.random.default_rng(seed)
    layers = initial_layers([x.shape[-1], 32, 32, 1], rng, x.dtype)
    descent = OPTIMISERS[optimiser](layers, learning_rate)

    def shuffled(n_people: int) -> Tensor:
        return torch.from_numpy(rng.permutation(n_people))

    def inputs() -> dict[str, Any]:
        return {
            "x": x,
            "y": y,
            "weights of people": weight,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "optimiser": optimiser,
            "seed": seed,
        }

    everyone, kept = (x, y, weight), ([rng], inputs, checkpoint)
    losses = descend(descent, everyone, n_epochs, batch_size, shuffled, progress, *kept)
    return NetworkClassifier(population.features, layers[0::2], layers[1::2]), losses


def descend(
    descent: Adam | SGD | RMSprop,
    people: tuple[Tensor, Tensor, Tensor],
    n_epochs: int,
    batch_size: int,
    shuffled: Callable[[int], Tensor],
    progress: Callable[[range], Iterable[int]] = iter,
    rngs: Sequence[np.random.Generator] = (),
    inputs: Callable[[], Mapping[str, Any]] = dict,
    checkpoint: Path | None = None,
) -> np.ndarray:
    """Descend on the cross-entropy, and return its mean by epoch.

    Arguments:
        descent: Holds each layer's weight and bias. The last layer
            has one output, the log-odds, or two, whose difference
            they are.
        people: Their features, labels and weights in the loss.
        shuffled: From how many people there are to an order of them;
            asked once an epoch.
        rngs: What it draws from.
        progress, inputs, checkpoint: As for `fits.descend`.
    Example:
        >>> layers = initial_layers([1, 1], np.random.default_rng(0), torch.float32)
        >>> x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([0.0, 1.0])
        >>> people = x, y, torch.ones(2)
        >>> losses = descend(Adam(layers, 0.1), people, 3, 2, torch.arange)
        >>> bool(losses[2] < losses[0])
        True
    """
    layers, losses = descent.weights, np.zeros(n_epochs)

    def epoch(number: int, step: Callable[[Tensor], None]) -> dict[str, float]:
        order = shuffled(len(people[0]))
        ordered = [part[order].to(people[0].dtype) for part in people]
        logits = []
        for xs, ys, ws in zip(*(part.split(batch_size) for part in ordered), strict=True):
            out = network(xs, layers[0::2], layers[1::2])
            shown = out.squeeze(-1) if out.shape[-1] == 1 else out[:, 1] - out[:, 0]
            step(F.binary_cross_entropy_with_logits(shown, ys, ws))
            logits.append(shown.detach())
        _, labels, weights = ordered
        loss = F.binary_cross_entropy_with_logits(torch.cat(logits), labels, weights)
        losses[number] = loss.item()
        return {"cross-entropy": losses[number]}

    live = fits.Live({"losses": torch.from_numpy(losses)}, rngs)
    fits.descend("classifier", descent, n_epochs, epoch, live, inputs, checkpoint, progress)
    return losses


def initial_layers(
    sizes: Sequence[int], rng: np.random.Generator, dtype: torch.dtype
) -> list[Tensor]:
    """Return each layer's weight and bias in turn, uniform within 1 / sqrt(fan-in).

    Example:
        >>> layers = initial_layers([7, 32, 1], np.random.default_rng(0), torch.float32)
        >>> [tuple(part.shape) for part in layers]
        [(7, 32), (32,), (32, 1), (1,)]
    """
    layers = []
    for n_in, n_out in pairwise(sizes):
        bound = 1 / np.sqrt(n_in)
        weight = rng.uniform(-bound, bound, (n_in, n_out))
        bias = rng.uniform(-bound, bound, n_out)
        layers += [
            torch.tensor(part, dtype=dtype, requires_grad=True) for part in (weight, bias)
        ]
    return layers
