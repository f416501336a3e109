"""Everything that the base generators need fitted: classifiers and autoencoders, in a file.

For each data set that is a classifier for each kind and seed, fitted
as the HARE paper fits it, and an autoencoder of each kind.
Autoencoders do not know the classifier, so that all seeds share them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import checks, files
from lib.base.arithmetic import RMSprop
from lib.beyond.hare import autoencoders, generators
from lib.beyond.hare.autoencoders import Autoencoder
from lib.beyond.hare.draws import streams
from lib.beyond.hare.tabular import Tabular
from lib.method.classifier import Classifier, NetworkClassifier, descend

SEEDS = (1, 2, 3, 4)  # those that the published numbers are averaged over
HIDDEN = {"ANN": (10, 5, 10), "LR": ()}  # units of the classifiers' layers
GENERATORS = ("Wachter", "GS", "FACE", "CCHVAE", "CLUE", "CRUDS")


@dataclass(frozen=True)
class Models:
    """Hold what is fitted to one data set.

    Arguments:
        classifiers: By kind and seed, for instance ("ANN", 1).
        autoencoders: By kind, for instance "CLUE".
    """

    classifiers: Mapping[tuple[str, int], NetworkClassifier]
    autoencoders: Mapping[str, Autoencoder]


def fit_classifier(
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


def fit_all(
    table: Tabular,
    seeds: Sequence[int] = SEEDS,
    progress: Callable[[range], Iterable[int]] = iter,
) -> Models:
    """Fit the classifiers of each kind and seed, and the three autoencoders.

    Arguments:
        seeds: Of the classifiers; that of the autoencoders is 0.
        progress: Wraps the range of fits, for instance `tqdm`.
    Raises: ValueError: there are no seeds, or a fit diverges.
    """
    checks.not_empty("seeds", seeds)
    wanted = [(kind, seed) for kind in HIDDEN for seed in seeds]
    classifiers: dict[tuple[str, int], NetworkClassifier] = {}
    models: dict[str, Autoencoder] = {}
    for i in progress(range(len(wanted) + len(autoencoders.KINDS))):
        if i < len(wanted):
            kind, seed = wanted[i]
            classifiers[kind, seed], _ = fit_classifier(table, kind, seed=seed)
        else:
            kind = autoencoders.KINDS[i - len(wanted)]
            models[kind], _ = autoencoders.fit(table, kind)
    return Models(classifiers, models)


def save(
    folder: Path,
    name: str,
    models: Mapping[str, Models],
    tables: Mapping[str, Tabular],
    made_with: Mapping[str, Any],
) -> Path:
    """Save what is fitted to one or several data sets as folder/name.safetensors.

    Arguments:
        folder, name, made_with: As for `files.save`.
        models: By name of the data set.
        tables: The data sets, by the same names; their fingerprints
            travel along.
    Raises: ValueError: a data set is not there.
    """
    checks.known("data set", models, tuple(tables))
    tensors: dict[str, Tensor] = {}
    for table, own in models.items():
        for (kind, seed), h in own.classifiers.items():
            layers = [
                part for pair in zip(h.weights, h.biases, strict=True) for part in pair
            ]
            tensors |= _numbered(f"{table}/{kind}/{seed}", layers)
        for kind, model in own.autoencoders.items():
            for net, parts in model.nets.items():
                rounded = [part.float() for part in parts]  # exact: see `autoencoders.fit`
                tensors |= _numbered(f"{table}/{kind}/{net}", rounded)
    prints = {table: tables[table].fingerprint for table in models}
    return files.save(folder, name, tensors, {"fingerprints": prints}, made_with)


def load(folder: Path, name: str, tables: Mapping[str, Tabular]) -> dict[str, Models]:
    """Return what is fitted to these data sets, by their names.

    Arguments:
        folder, name: As for `files.load`.
        tables: Which of the saved data sets are wanted, by name.
    Raises: ValueError: no such file, it lacks a data set, or was
        fitted to another.
    """
    tensors, settings = files.load(folder, name)
    found = {}
    with files.holding("fits for the base generators", folder, name):
        prints = settings.get("fingerprints")
        if not isinstance(prints, dict):
            raise ValueError(f"its settings have no fingerprints, got {settings!r}.")
        checks.known("data set in it", tables, tuple(prints))
        by_table = _by_table(tensors, prints)
        for table, own in tables.items():
            if prints[table] != own.fingerprint:
                raise ValueError(
                    f"it was fitted to another {table} (features, their kinds or their "
                    "range differ)."
                )
            found[table] = _models(own, _nets(own, by_table[table]))
    return found


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
    checks.known("generator", [name], GENERATORS)
    rngs = streams(len(x), seed, as_published)
    if name == "Wachter":
        return generators.wachter(table, h, x)
    if name == "GS":
        return generators.growing_spheres(table, h, x, rngs, not as_published)
    if name == "FACE":
        return generators.face(table, h, x, np.random.default_rng(seed), as_published)
    checks.known("autoencoder among the models:", [name], tuple(models.autoencoders))
    model = models.autoencoders[name]
    if name == "CCHVAE":
        return generators.cchvae(table, h, x, model, rngs, as_published)
    if name == "CLUE":
        return generators.clue(table, h, x, model, as_published)
    return generators.cruds(table, h, x, model, as_published)


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


def _numbered(prefix: str, parts: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return tensors under names that keep their order."""
    return {f"{prefix}/{i}": part for i, part in enumerate(parts)}


def _by_table(
    tensors: Mapping[str, Tensor], tables: Iterable[str]
) -> dict[str, dict[tuple[str, str], dict[str, Tensor]]]:
    """Return tensors by data set, by kind and seed (or network), and by name."""
    found: dict[str, dict[tuple[str, str], dict[str, Tensor]]] = {t: {} for t in tables}
    for key, tensor in tensors.items():
        table, *rest = key.rsplit("/", 3)
        if table not in found or len(rest) != 3:
            raise ValueError(f"its tensor {key} is of no data set that it names.")
        found[table].setdefault((rest[0], rest[1]), {})["/".join(rest)] = tensor
    return found


def _nets(
    table: Tabular, found: Mapping[tuple[str, str], Mapping[str, Tensor]]
) -> dict[tuple[str, str], list[Tensor]]:
    """Return weights and biases in turn by kind and seed (or network), once checked."""
    kinds = {kind for kind, _ in found if kind in autoencoders.KINDS}
    due = {(kind, net) for kind in kinds for net in autoencoders.widths(table, kind)}
    if missing := due - found.keys():
        raise ValueError(f"it lacks {', '.join('/'.join(key) for key in sorted(missing))}.")
    nets = {}
    for (kind, which), tensors in found.items():
        if kind in HIDDEN and re.fullmatch("0|[1-9][0-9]{0,8}", which):
            dtype, widths = torch.float64, (len(table.features), *HIDDEN[kind], 1)
        elif (kind, which) in due:
            dtype, widths = torch.float32, autoencoders.widths(table, kind)[which]
        else:
            raise ValueError(f"{kind}/{which} is nothing that is fitted.")
        layers = list(files.layers(widths).values())
        shapes = {f"{kind}/{which}/{i}": shape for i, shape in enumerate(layers)}
        files.check_tensors(tensors, shapes, [dtype])
        nets[kind, which] = [tensors[key].double() for key in shapes]
    return nets


def _models(table: Tabular, nets: Mapping[tuple[str, str], Sequence[Tensor]]) -> Models:
    """Return the models of a data set from their weights and biases in turn."""
    seeds = sorted((of, int(which)) for of, which in nets if of in HIDDEN)
    classifiers = {}
    for kind, seed in seeds:
        net = nets[kind, str(seed)]
        classifiers[kind, seed] = NetworkClassifier(table.features, net[0::2], net[1::2])
    models = {}
    for kind in autoencoders.KINDS:
        if own := {which: net for (of, which), net in nets.items() if of == kind}:
            models[kind] = Autoencoder(kind, autoencoders.is_seen(table, kind), own)
    return Models(classifiers, models)
