"""The classifiers of the HARE paper, fitted as it fits them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.base.arithmetic import RMSprop
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import NetworkClassifier, descend

HIDDEN = {"ANN": (10, 5, 10), "LR": ()}


def fit(
    table: Tabular,
    kind: str = "ANN",
    n_epochs: int = 20,
    batch_size: int = 256,
    learning_rate: float = 2e-3,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
) -> tuple[NetworkClassifier, np.ndarray]:
    """Fit a classifier of the HARE paper; return it and its mean loss by epoch.

    It is fitted with an output for each class, by cross-entropy and
    RMSprop. The difference of the outputs is the log-odds, so that
    the last layer is folded into one output in the end.

    Twenty epochs are too few for COMPAS: its classifier depends on
    where it started, and so does every published number about it.
    Therefore initial weights and the order of people are those that
    torch itself draws for this seed.

    Arguments:
        table: Its split "train" is learned from.
        kind: A key of `HIDDEN`: "ANN", D-10-5-10 with ReLU, or "LR",
            which is linear.
        progress: Wraps the range of epochs, for instance `tqdm`.
    Returns: A classifier in float64, and its losses.
    Raises: ValueError: another kind, a setting is not above zero, or
        the fit diverges.
    Source: section 5 of HARE (TMLR 2025); the settings are facts of
        its released code.
    """
    checks.known("kind of classifier", [kind], tuple(HIDDEN))
    checks.counts(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(learning_rate=learning_rate)
    x, y = table.x["train"], table.y["train"]
    layers, shuffled = _as_torch_draws([x.shape[-1], *HIDDEN[kind], 2], seed)
    descent = RMSprop(layers, learning_rate)
    everyone = (x, y, torch.ones_like(x[:, 0]))
    losses = descend(descent, everyone, n_epochs, batch_size, shuffled, progress)
    with torch.no_grad():
        folded = [*layers[:-2], *(part[..., 1:] - part[..., :1] for part in layers[-2:])]
    return NetworkClassifier(table.features, folded[0::2], folded[1::2]), losses


def _as_torch_draws(
    sizes: Sequence[int], seed: int
) -> tuple[list[Tensor], Callable[[int], Tensor]]:
    """Return initial layers in float64, and a function that gives an order of people.

    Both draw what `torch.nn.Linear`, and a shuffling `DataLoader`
    with it, draw in turn after `torch.manual_seed`. The generator
    (a Mersenne twister) gives the same on every processor.
    """
    drawn = torch.Generator().manual_seed(seed)
    layers = []
    for n_in, n_out in pairwise(sizes):
        bound = 1 / np.sqrt(n_in)
        for shape in ((n_out, n_in), (n_out,)):
            part = torch.empty(shape, dtype=torch.float32)
            part.uniform_(-bound, bound, generator=drawn)
            layers.append(part.t().contiguous().double().requires_grad_())

    def whole() -> int:
        return int(torch.empty((), dtype=torch.int64).random_(generator=drawn).item())

    def shuffled(n_people: int) -> Tensor:
        whole()  # for the loader's workers, of which there are none
        return torch.randperm(n_people, generator=torch.Generator().manual_seed(whole()))

    return layers, shuffled
