"""Everything that the base generators need fitted: classifiers and autoencoders, in a file.

For each data set that is a classifier for each kind and seed, fitted as the HARE paper
fits it, and an autoencoder of each kind. Autoencoders do not know the classifier, so
that all seeds share them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from lib import checks, io
from lib.beyond.hare import autoencoders, generators
from lib.beyond.hare.autoencoders import KINDS, Autoencoder, dense
from lib.beyond.hare.draws import streams
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import Classifier

HIDDEN = {"ANN": (10, 5, 10), "LR": ()}  # units of the classifiers' layers
GENERATORS = ("Wachter", "GS", "FACE", *KINDS)


class Models(nn.Module):
    """Hold what is fitted to one data set, in float64.

    Its modules are `networks`, the classifiers' by "KIND SEED" ("ANN 1"), from features
    (N, D) to log-odds (N, 1); and `autoencoders`, by kind.

    Arguments:
        table: The data set.
        seeds: Of the classifiers.
    """

    def __init__(self, table: Tabular, seeds: Sequence[int]) -> None:
        super().__init__()
        self.features, self.seeds = table.features, tuple(seeds)
        self.networks = nn.ModuleDict(
            {
                f"{kind} {seed}": dense(len(table.features), *hidden, 1)
                for kind, hidden in HIDDEN.items()
                for seed in seeds
            }
        )
        self.autoencoders = nn.ModuleDict({k: Autoencoder(table, k) for k in KINDS})
        self.requires_grad_(False)

    def classifier(self, kind: str, seed: int) -> Classifier:
        """Return a classifier, for instance ("ANN", 1).

        Raises: ValueError: there is none.
        """
        checks.one_of("classifier", [f"{kind} {seed}"], [*self.networks])
        return Classifier(self.features, self.networks[f"{kind} {seed}"])


def fit_classifier(
    table: Tabular, kind: str = "ANN", n_epochs: int = 20, seed: int = 0
) -> tuple[nn.Sequential, np.ndarray]:
    """Fit a classifier of the HARE paper; return it and its mean loss by epoch.

    It is fitted with an output for each class, by cross-entropy and RMSprop. The
    difference of the outputs is the log-odds, so that the last layer is folded into one
    output in the end.

    Twenty epochs are too few for COMPAS: its classifier depends on where it started,
    and so does every published number about it. Therefore initial weights and the order
    of people are those that torch itself draws in float32 after `torch.manual_seed`.

    Arguments:
        table: Its split "train" is learned from.
        kind: A key of `HIDDEN`: "ANN", D-10-5-10 with ReLU, or "LR", which is linear.
    Returns: A network from features (N, D) to log-odds (N, 1), in float64, and its
        losses in nats, with shape (n_epochs,).
    Raises: ValueError: another kind, or the fit diverges.
    Source: section 5 of HARE (TMLR 2025); the settings are facts of its released code.
    """
    checks.one_of("kind of classifier", [kind], tuple(HIDDEN))
    x, y = table.x["train"], table.y["train"].double()
    losses = np.zeros(n_epochs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = dense(len(table.features), *HIDDEN[kind], 2)
        optimiser = torch.optim.RMSprop(network.parameters(), lr=2e-3)
        loader: DataLoader[Tensor] = DataLoader(
            range(len(x)),  # type: ignore[arg-type]
            batch_size=256,
            shuffle=True,
        )
        for epoch in range(n_epochs):
            for rows in loader:
                outputs = network(x[rows])
                log_odds = outputs[:, 1] - outputs[:, 0]
                loss = F.binary_cross_entropy_with_logits(log_odds, y[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses[epoch] += loss.item() * len(rows) / len(x)
            checks.converging("classifier", epoch, {"cross-entropy": losses[epoch]})
    folded = dense(len(table.features), *HIDDEN[kind], 1)
    state = network.state_dict()
    for name in list(state)[-2:]:  # of the last layer
        state[name] = state[name][1:] - state[name][:1]
    folded.load_state_dict(state)
    return folded, losses


def fit_all(
    table: Tabular,
    seeds: Sequence[int],
    n_epochs: int = autoencoders.N_EPOCHS,
    progress: Callable[[range], Iterable[int]] = iter,
) -> Models:
    """Fit the classifiers of each kind and seed, and the three autoencoders.

    Arguments:
        seeds: Of the classifiers; that of the autoencoders is 0.
        n_epochs: Of the autoencoders.
        progress: Wraps the range of kinds and seeds, for instance `tqdm`.
    Raises: ValueError: a fit diverges.
    """
    models = Models(table, seeds)
    names = [*models.networks]
    for i in progress(range(len(names))):
        kind, seed = names[i].split()
        network, _ = fit_classifier(table, kind, seed=int(seed))
        models.networks[names[i]].load_state_dict(network.state_dict())
    for kind in KINDS:
        models.autoencoders[kind], _ = autoencoders.fit(table, kind, n_epochs=n_epochs)
    return models


def save(
    folder: Path, name: str, models: Mapping[str, Models], made_with: Mapping[str, Any]
) -> Path:
    """Save what is fitted to one or several data sets; return the path.

    Arguments:
        folder, name, made_with: As for `io.save`.
        models: By name of the data set.
    """
    tensors = {
        f"{key}/{name}": weight.float() if "autoencoders" in name else weight  # rounded
        for key, fits in models.items()
        for name, weight in fits.state_dict().items()
    }
    seeds = {key: fits.seeds for key, fits in models.items()}
    return io.save(folder, name, tensors, {"seeds": seeds}, made_with)


def load(folder: Path, name: str, tables: Mapping[str, Tabular]) -> dict[str, Models]:
    """Return what is fitted to these data sets, by their names.

    Arguments:
        folder, name: As for `io.load`.
        tables: Which of the saved data sets are wanted, by name.
    Raises: ValueError: no such file, it lacks a data set, or was fitted to another.
    """
    tensors, settings = io.load(folder, name)
    models = {}
    with io.loading("fits for the base generators", folder, name):
        checks.one_of("data set in it", tables, tuple(settings["seeds"]))
        by_table = io.unflatten(tensors)
        for key, table in tables.items():
            models[key] = Models(table, settings["seeds"][key])
            models[key].load_state_dict(by_table[key])
    return models


def base(
    name: str, table: Tabular, h: Classifier, models: Models, x: Tensor, seed: int
) -> Tensor:
    """Return what a base generator finds for people x, as published.

    Arguments:
        name: One of `GENERATORS`.
        h: The classifier.
        x: Refused people, with shape (N, D).
        seed: Of all draws, which are the same for everybody.
    Returns: With shape (N, D), and NaN for whom there is none.
    Raises: ValueError: another name; or as the generators.
    """
    checks.one_of("generator", [name], GENERATORS)
    rngs, where = streams(len(x), seed, are_equal=True), (table, h, x)
    if name == "Wachter":
        return generators.wachter(*where)
    if name == "GS":
        return generators.growing_spheres(*where, rngs, is_clipped=False)
    if name == "FACE":
        return generators.nearest_accepted(*where, np.random.default_rng(seed))
    model = cast(Autoencoder, models.autoencoders[name])
    if name == "CCHVAE":
        return generators.cchvae(*where, model, rngs, as_published=True)
    return (generators.clue if name == "CLUE" else generators.cruds)(*where, model)
