"""Three autoencoders: what CCHVAE, CLUE and CRUDS know of the data.

Each is fitted once for a data set. It encodes people into a small
latent space, and what it decodes looks like people again; so a
generator can look for recourse among plausible people. Weights are
rounded to float32 after the fit and then used in float64: a fitted
autoencoder and the same one loaded from a file give equal bits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, fits
from lib.base.arithmetic import Adam, network
from lib.beyond.hare.tabular import Tabular

KINDS = ("CCHVAE", "CLUE", "CRUDS")
N_LABEL = 2  # dimensions of CRUDS's w, which belongs to the label


@dataclass(frozen=True)
class Recipe:
    """Hold the sizes of an autoencoder and the settings of its fit.

    Arguments:
        hidden: Units of the encoder's layers; the decoder has them in
            reverse.
        n_latent: Dimensions of the latent space.
        batch_size, learning_rate, n_epochs: Of the fit by Adam.
    Source: facts of the HARE paper's code, but for batches that are
        larger and learning rates that go with them.
    """

    hidden: tuple[int, ...]
    n_latent: int
    batch_size: int
    learning_rate: float
    n_epochs: int = 5


RECIPES = {
    "CCHVAE": Recipe((32, 16), 4, 256, 5e-3),
    "CLUE": Recipe((10, 10, 10), 12, 256, 5e-3),
    "CRUDS": Recipe((16,), 8, 1_024, 5e-4),
}
FOR_COMPAS = {
    "CCHVAE": Recipe((512, 256), 8, 256, 5e-3),
    "CLUE": Recipe((10, 10, 10), 12, 64, 1e-2),
}


@dataclass(frozen=True)
class Autoencoder:
    """Hold a fitted autoencoder of people with D features.

    Arguments:
        kind: One of `KINDS`. CCHVAE and CRUDS encode the mutable
            features, and their decoders are told the immutable ones;
            CLUE encodes all. CRUDS has two latent dimensions more,
            w, in which people with and without a positive label lie
            apart.
        is_seen: Which features are encoded and decoded, with shape
            (D,).
        nets: Weights and biases in turn, float64, of the networks
            "encoder", "decoder" and, for CRUDS, "w" (the encoder of
            features and label), "prior" (of w given the label) and
            "label" (which guesses the label from the rest).
    """

    kind: str
    is_seen: Tensor
    nets: Mapping[str, Sequence[Tensor]]

    def encode(self, x: Tensor) -> Tensor:
        """Return the latent mean of people (N, D), with shape (N, latent).

        For CRUDS w is that of somebody with a negative label.
        """
        seen = x[:, self.is_seen]
        mean = _halves(_run(self.nets["encoder"], seen))[0]
        if self.kind != "CRUDS":
            return mean
        label = torch.zeros_like(x[:, :1])
        w = _halves(_run(self.nets["w"], torch.cat([seen, label], -1)))[0]
        return torch.cat([mean, w], -1)

    def decode(self, z: Tensor, x: Tensor) -> Tensor:
        """Return people with shape (*, D) for latent points z (*, latent).

        Arguments:
            x: Whose features are kept where nothing is decoded, with
                shape (*, D).
        Returns: Decoded features within [0, 1] for CCHVAE; those of
            the other two may leave it.
        """
        people = x.clone()
        people[..., self.is_seen] = self.seen(torch.cat([z, x[..., ~self.is_seen]], -1))
        return people

    def seen(self, conditioned: Tensor) -> Tensor:
        """Return the decoded features alone, for latent points and what goes with them."""
        out = _run(self.nets["decoder"], conditioned)
        return out.sigmoid() if self.kind == "CCHVAE" else out


def fit(
    table: Tabular,
    kind: str,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
) -> tuple[Autoencoder, np.ndarray]:
    """Fit an autoencoder to the training people; return it and its mean loss by epoch.

    Arguments:
        kind: One of `KINDS`.
        progress: Wraps the range of epochs, for instance `tqdm`.
    Raises: ValueError: another kind, or the fit diverges.
    Source: Pawelczyk et al. (2020) for CCHVAE, Antoran et al. (2021)
        for CLUE, Downs et al. (2020) for CRUDS.
    """
    checks.known("kind of autoencoder", [kind], KINDS)
    recipe = recipe_for(table, kind)
    rng = np.random.default_rng(seed)
    model = _initial(table, kind, rng)
    others = [part for name, net in model.nets.items() if name != "label" for part in net]
    descent = Adam(others, recipe.learning_rate)
    guess = list(model.nets.get("label", ()))
    guessing = Adam(guess, recipe.learning_rate) if guess else None
    x, y = table.x["train"], table.y["train"].double()[:, None]
    losses = np.zeros(recipe.n_epochs)

    def epoch(number: int, step: Callable[[Tensor], None]) -> dict[str, float]:
        order = torch.from_numpy(rng.permutation(len(x)))
        total = 0.0
        for rows in order.split(recipe.batch_size):
            own, label = x[rows], y[rows]
            loss = _LOSSES[kind](model, own, label, rng, number / recipe.n_epochs)
            step(loss)
            total += loss.item() * len(rows)
            if guessing:
                z = _drawn(_run(model.nets["encoder"], own[:, model.is_seen]), rng)
                error = 100 * F.binary_cross_entropy_with_logits(
                    _run(guess, z.detach()), label
                )
                guessing.step(torch.autograd.grad(error, guess))
        losses[number] = total / len(x)
        return {"loss": losses[number]}

    how = (recipe.n_epochs, epoch, fits.Live())
    fits.descend(f"{kind} autoencoder", descent, *how, progress=progress)
    nets = {name: [_rounded(part) for part in net] for name, net in model.nets.items()}
    return Autoencoder(kind, model.is_seen, nets), losses


def is_seen(table: Tabular, kind: str) -> Tensor:
    """Return which features an autoencoder encodes and decodes, with shape (D,)."""
    return torch.ones_like(table.is_free) if kind == "CLUE" else ~table.is_immutable


def recipe_for(table: Tabular, kind: str) -> Recipe:
    """Return the recipe of an autoencoder for a data set."""
    return (FOR_COMPAS if table.name == "compas" else {}).get(kind, RECIPES[kind])


def widths(table: Tabular, kind: str) -> dict[str, tuple[int, ...]]:
    """Return the widths of each network of an autoencoder: inputs, hidden, outputs."""
    recipe = recipe_for(table, kind)
    n_seen = int(is_seen(table, kind).sum())
    n_told, hidden, n_z = len(table.features) - n_seen, recipe.hidden, recipe.n_latent
    n_in = n_z + n_told + (N_LABEL if kind == "CRUDS" else 0)
    sizes = {
        "encoder": (n_seen, *hidden, 2 * n_z),
        "decoder": (n_in, *hidden[::-1], n_seen),
    }
    if kind == "CRUDS":
        sizes |= {
            "w": (n_seen + 1, *hidden, 2 * N_LABEL),
            "prior": (1, 2 * N_LABEL),
            "label": (n_z, *hidden, 1),
        }
    return sizes


def _initial(table: Tabular, kind: str, rng: np.random.Generator) -> Autoencoder:
    """Return an autoencoder with weights uniform within 1 / sqrt(fan-in)."""
    nets: dict[str, list[Tensor]] = {}
    for name, sizes in widths(table, kind).items():
        nets[name] = []
        for n_from, n_to in pairwise(sizes):
            bound = 1 / np.sqrt(n_from)
            for shape in ((n_from, n_to), (n_to,)):
                part = torch.from_numpy(rng.uniform(-bound, bound, shape))
                nets[name].append(part.requires_grad_())
    return Autoencoder(kind, is_seen(table, kind), nets)


def _run(net: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return what a network gives."""
    return network(x, net[0::2], net[1::2])


def _halves(out: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log-variance, the two halves of an encoder's outputs."""
    mean, log_variance = out.chunk(2, -1)
    return mean, log_variance


def _drawn(out: Tensor, rng: np.random.Generator) -> Tensor:
    """Return a latent point for each person, from the outputs of an encoder."""
    mean, log_variance = _halves(out)
    return mean + (log_variance / 2).exp() * torch.from_numpy(
        rng.standard_normal(mean.shape)
    )


def _divergence(out: Tensor, other: Tensor | None = None) -> Tensor:
    """Return the mean divergence (Kullback-Leibler) of normals from others, or N(0, 1)."""
    mean, log_variance = _halves(out)
    m, v = _halves(torch.zeros_like(out) if other is None else other)
    ratio = (log_variance - v).exp() + (mean - m).square() / v.exp()
    return ((ratio - 1 + v - log_variance) / 2).sum(-1).mean()


def _told(model: Autoencoder, z: Tensor, x: Tensor) -> Tensor:
    """Return the decoder's outputs before any sigmoid."""
    return _run(model.nets["decoder"], torch.cat([z, x[:, ~model.is_seen]], -1))


def _loss_cchvae(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return cross-entropy of the features, and a divergence that gains weight."""
    seen = x[:, model.is_seen]
    code = _run(model.nets["encoder"], seen)
    out = _told(model, _drawn(code, rng), x)
    error = F.binary_cross_entropy_with_logits(out, seen, reduction="none").sum(-1).mean()
    return error + 0.3 * progress * _divergence(code)


def _loss_clue(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return the negative evidence bound of a Gaussian autoencoder, but for a constant."""
    code = _run(model.nets["encoder"], x)
    out = _told(model, _drawn(code, rng), x)
    return (out - x).square().sum(-1).mean() / 2 + _divergence(code)


def _loss_cruds(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return errors, divergences, and how surely the label is known from z."""
    seen = x[:, model.is_seen]
    code = _run(model.nets["encoder"], seen)
    w_code = _run(model.nets["w"], torch.cat([seen, y], -1))
    z, w = _drawn(code, rng), _drawn(w_code, rng)
    error = (_told(model, torch.cat([z, w], -1), x) - seen).square().mean()
    logit = _run(model.nets["label"], z)
    p = logit.sigmoid()
    known = (p * F.logsigmoid(logit) + (1 - p) * F.logsigmoid(-logit)).mean()
    apart = _divergence(w_code, _run(model.nets["prior"], y))
    return 40 * error + 0.2 * _divergence(code) + apart + 110 * known


_LOSSES = {"CCHVAE": _loss_cchvae, "CLUE": _loss_clue, "CRUDS": _loss_cruds}


def _rounded(part: Tensor) -> Tensor:
    """Return weights rounded to float32, in float64."""
    return part.detach().float().double()
