"""Everything that the base generators need fitted: classifiers and autoencoders, in a file.

For each data set that is a classifier for each kind and seed, fitted
as the HARE paper fits it, and an autoencoder of each kind.
Autoencoders do not know the classifier, so that all seeds share them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from lib import checks, io
from lib.beyond.hare import autoencoders, generators
from lib.beyond.hare.autoencoders import Autoencoder, dense
from lib.beyond.hare.draws import streams
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import Classifier

SEEDS = (1, 2, 3, 4)  # those that the published numbers are averaged over
HIDDEN = {"ANN": (10, 5, 10), "LR": ()}  # units of the classifiers' layers
GENERATORS = ("Wachter", "GS", "FACE", "CCHVAE", "CLUE", "CRUDS")


class PaperClassifier(Classifier):
    """Hold a classifier of the HARE paper.

    Arguments:
        features: Names of the D features.
        network: From features (N, D) to log-odds (N, 1), in float64.
    """

    def __init__(self, features: Sequence[str], network: nn.Sequential) -> None:
        super().__init__(features, network.requires_grad_(False))
        self.network = network


@dataclass(frozen=True)
class Models:
    """Hold what is fitted to one data set.

    Arguments:
        classifiers: By kind and seed, for instance ("ANN", 1).
        autoencoders: By kind, for instance "CLUE".
    """

    classifiers: Mapping[tuple[str, int], PaperClassifier]
    autoencoders: Mapping[str, Autoencoder]


def fit_classifier(
    table: Tabular,
    kind: str = "ANN",
    n_epochs: int = 20,
    batch_size: int = 256,
    learning_rate: float = 2e-3,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
) -> tuple[PaperClassifier, np.ndarray]:
    """Fit a classifier of the HARE paper; return it and its mean loss by epoch.

    It is fitted with an output for each class, by cross-entropy and
    RMSprop. The difference of the outputs is the log-odds, so that
    the last layer is folded into one output in the end.

    Twenty epochs are too few for COMPAS: its classifier depends on
    where it started, and so does every published number about it.
    Therefore initial weights and the order of people are those that
    torch itself draws in float32 after `torch.manual_seed`.

    Arguments:
        table: Its split "train" is learned from.
        kind: A key of `HIDDEN`: "ANN", D-10-5-10 with ReLU, or "LR",
            which is linear.
        progress: Wraps the range of epochs, for instance `tqdm`.
    Returns: A classifier in float64, and its losses in nats, with
        shape (n_epochs,).
    Raises: ValueError: another kind, a setting is not above zero, or
        the fit diverges.
    Source: section 5 of HARE (TMLR 2025); the settings are facts of
        its released code.
    """
    checks.one_of("kind of classifier", [kind], tuple(HIDDEN))
    checks.positive_int(n_epochs=n_epochs, batch_size=batch_size)
    checks.positive(learning_rate=learning_rate)
    x, y = table.x["train"], table.y["train"].double()
    losses = np.zeros(n_epochs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = dense(len(table.features), *HIDDEN[kind], 2)
        optimiser = torch.optim.RMSprop(network.parameters(), learning_rate)
        loader: DataLoader[Tensor] = DataLoader(
            range(len(x)),  # type: ignore[arg-type]
            batch_size,
            shuffle=True,
        )
        for epoch in progress(range(n_epochs)):
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
    return PaperClassifier(table.features, folded), losses


def fit_all(
    table: Tabular,
    seeds: Sequence[int] = SEEDS,
    n_epochs: int | None = None,
    progress: Callable[[range], Iterable[int]] = iter,
) -> Models:
    """Fit the classifiers of each kind and seed, and the three autoencoders.

    Arguments:
        seeds: Of the classifiers; that of the autoencoders is 0.
        n_epochs: Of the autoencoders; None: as many as published.
        progress: Wraps the range of fits, for instance `tqdm`.
    Raises: ValueError: there are no seeds, or a fit diverges.
    """
    checks.not_empty("seeds", seeds)
    wanted = [(kind, seed) for kind in HIDDEN for seed in seeds]
    classifiers: dict[tuple[str, int], PaperClassifier] = {}
    models: dict[str, Autoencoder] = {}
    for i in progress(range(len(wanted) + len(autoencoders.KINDS))):
        if i < len(wanted):
            kind, seed = wanted[i]
            classifiers[kind, seed], _ = fit_classifier(table, kind, seed=seed)
        else:
            kind = autoencoders.KINDS[i - len(wanted)]
            models[kind], _ = autoencoders.fit(table, kind, n_epochs=n_epochs)
    return Models(classifiers, models)


def save(
    folder: Path,
    name: str,
    models: Mapping[str, Models],
    tables: Mapping[str, Tabular],
    made_with: Mapping[str, Any],
) -> Path:
    """Save what is fitted to one or several data sets; return the path.

    Arguments:
        folder, name, made_with: As for `io.save`.
        models: By name of the data set.
        tables: The data sets, by the same names; their fingerprints
            travel along.
    Raises: ValueError: a data set is not there.
    """
    checks.one_of("data set", models, tuple(tables))
    tensors: dict[str, Tensor] = {}
    for table, fits in models.items():
        for (kind, seed), h in fits.classifiers.items():
            for key, weight in h.network.state_dict().items():
                tensors[f"{table}/{kind}/{seed}/{key}"] = weight
        for kind, model in fits.autoencoders.items():
            for key, weight in model.state_dict().items():
                tensors[f"{table}/{kind}/{key}"] = weight.float()  # they are rounded
    prints = {table: tables[table].fingerprint for table in models}
    return io.save(folder, name, tensors, {"fingerprints": prints}, made_with)


def load(folder: Path, name: str, tables: Mapping[str, Tabular]) -> dict[str, Models]:
    """Return what is fitted to these data sets, by their names.

    Arguments:
        folder, name: As for `io.load`.
        tables: Which of the saved data sets are wanted, by name.
    Raises: ValueError: no such file, it lacks a data set, or was
        fitted to another.
    """
    tensors, settings = io.load(folder, name)
    models = {}
    with io.loading("fits for the base generators", folder, name):
        prints = settings["fingerprints"]
        checks.one_of("data set in it", tables, tuple(prints))
        by_table = io.unflatten(tensors)
        for key, table in tables.items():
            if prints[key] != table.fingerprint:
                raise ValueError(
                    f"it was fitted to another {key} (features, their kinds or their "
                    "range differ)."
                )
            models[key] = _models(table, by_table[key])
    return models


def base(
    name: str,
    table: Tabular,
    h: Classifier,
    models: Models,
    x: Tensor,
    seed: int,
    as_published: bool = False,
) -> Tensor:
    """Return what a base generator finds for people x, called by its published name.

    Arguments:
        name: One of `GENERATORS`.
        h: The classifier, one of the models or your own.
        x: Refused people, with shape (N, D).
        seed: Of all draws: a stream for each person, or, as
            published, the same draws for everybody.
        as_published: As the released code of the paper does it; see
            the generators.
    Returns: With shape (N, D), and NaN for whom there is none.
    Raises: ValueError: another name; or as the generators.
    """
    checks.one_of("generator", [name], GENERATORS)
    rngs = streams(len(x), seed, as_published)
    if name == "Wachter":
        return generators.wachter(table, h, x)
    if name == "GS":
        return generators.growing_spheres(table, h, x, rngs, not as_published)
    if name == "FACE":
        return generators.face(table, h, x, np.random.default_rng(seed), as_published)
    checks.one_of("autoencoder among the models:", [name], tuple(models.autoencoders))
    model = models.autoencoders[name]
    if name == "CCHVAE":
        return generators.cchvae(table, h, x, model, rngs, as_published)
    if name == "CLUE":
        return generators.clue(table, h, x, model, as_published)
    return generators.cruds(table, h, x, model, as_published)


def _models(table: Tabular, tensors: Mapping[str, Tensor]) -> Models:
    """Return the models of a data set, of tensors called kind/parameter or kind/seed/..."""
    classifiers, models = {}, {}
    for kind, state in io.unflatten(tensors).items():
        if kind not in HIDDEN:
            checks.one_of("kind of model", [kind], (*HIDDEN, *autoencoders.KINDS))
            models[kind] = Autoencoder(table, kind).requires_grad_(False)
            models[kind].load_state_dict(state)
            continue
        for seed, weights in io.unflatten(state).items():
            network = dense(len(table.features), *HIDDEN[kind], 1)
            network.load_state_dict(weights)
            classifiers[kind, int(seed)] = PaperClassifier(table.features, network)
    return Models(dict(sorted(classifiers.items())), models)
