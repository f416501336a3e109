"""Three autoencoders: what CCHVAE, CLUE and CRUDS know of the data.

Each is fitted once for a data set. It encodes people into a small
latent space, and what it decodes looks like people again; so a
generator can look for recourse among plausible people. Weights are
rounded to float32 after the fit, as they are saved, and then used in
float64.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib import checks
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


class Autoencoder(nn.Module):
    """Hold an autoencoder of people with D features, in float64.

    Its networks are `encoder`, `decoder` and, for CRUDS, `w` (the
    encoder of features and label), `prior` (of w given the label) and
    `label` (which guesses the label from the rest).

    Arguments:
        table: The data set, for the number of features and which of
            them are immutable.
        kind: One of `KINDS`. CCHVAE and CRUDS encode the mutable
            features, and their decoders get the immutable ones; CLUE
            encodes all. CRUDS has two latent dimensions more, w, in
            which people with and without a positive label lie apart.
    Attributes:
        kind: As above.
        is_seen: Which features are encoded and decoded, with shape
            (D,).
    """

    def __init__(self, table: Tabular, kind: str) -> None:
        super().__init__()
        self.kind = kind
        is_clue = kind == "CLUE"
        self.is_seen = torch.ones_like(table.is_free) if is_clue else ~table.is_immutable
        recipe = recipe_for(table, kind)
        hidden, n_latent = recipe.hidden, recipe.n_latent
        n_seen = int(self.is_seen.sum())
        n_codes = n_latent + len(table.features) - n_seen
        n_codes += N_LABEL if kind == "CRUDS" else 0
        self.encoder = dense(n_seen, *hidden, 2 * n_latent)
        self.decoder = dense(n_codes, *hidden[::-1], n_seen)
        if kind == "CRUDS":
            self.w = dense(n_seen + 1, *hidden, 2 * N_LABEL)
            self.prior = dense(1, 2 * N_LABEL)
            self.label = dense(n_latent, *hidden, 1)

    def encode(self, x: Tensor) -> Tensor:
        """Return the latent mean of people (N, D), with shape (N, latent).

        For CRUDS w is that of somebody with a negative label.
        """
        seen = x[:, self.is_seen]
        mean = _halves(self.encoder(seen))[0]
        if self.kind != "CRUDS":
            return mean
        label = torch.zeros_like(x[:, :1])
        w = _halves(self.w(torch.cat([seen, label], -1)))[0]
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
        codes = torch.cat([z, x[..., ~self.is_seen]], -1)
        people[..., self.is_seen] = self.decode_seen(codes)
        return people

    def decode_seen(self, codes: Tensor) -> Tensor:
        """Return the decoded features alone, with shape (*, seen).

        Arguments:
            codes: Latent points, and the features that are not
                encoded, with shape (*, latent + D - seen).
        """
        out = self.decoder(codes)
        return out.sigmoid() if self.kind == "CCHVAE" else out


def dense(*widths: int) -> nn.Sequential:
    """Return linear layers of these widths with ReLU between them, in float64.

    Weights are drawn by torch, in float32.
    """
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def fit(
    table: Tabular,
    kind: str,
    seed: int = 0,
    progress: Callable[[range], Iterable[int]] = iter,
    n_epochs: int | None = None,
) -> tuple[Autoencoder, np.ndarray]:
    """Fit an autoencoder to the training people; return it and its mean loss by epoch.

    Arguments:
        kind: One of `KINDS`.
        progress: Wraps the range of epochs, for instance `tqdm`.
        n_epochs: None: as many as the recipe says.
    Raises: ValueError: another kind, the number of epochs is not above
        zero, or the fit diverges.
    Source: Pawelczyk et al. (2020) for CCHVAE, Antoran et al. (2021)
        for CLUE, Downs et al. (2020) for CRUDS.
    """
    checks.one_of("kind of autoencoder", [kind], KINDS)
    recipe, rng = recipe_for(table, kind), np.random.default_rng(seed)
    n_epochs = recipe.n_epochs if n_epochs is None else n_epochs
    checks.positive_int(n_epochs=n_epochs)
    model = Autoencoder(table, kind)
    _draw_weights(model, rng)
    networks = [net for name, net in model.named_children() if name != "label"]
    weights = nn.ModuleList(networks).parameters()
    adam = torch.optim.Adam(weights, recipe.learning_rate, fused=True)
    if kind == "CRUDS":
        guessing = torch.optim.Adam(
            model.label.parameters(), recipe.learning_rate, fused=True
        )
    x, y = table.x["train"], table.y["train"].double()[:, None]
    losses = np.zeros(n_epochs)
    for epoch in progress(range(n_epochs)):
        order = torch.from_numpy(rng.permutation(len(x)))
        for rows in order.split(recipe.batch_size):
            loss = _LOSSES[kind](model, x[rows], y[rows], rng, epoch / n_epochs)
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses[epoch] += loss.item() * len(rows) / len(x)
            if kind == "CRUDS":
                z = _draw(model.encoder(x[rows][:, model.is_seen]), rng).detach()
                error = F.binary_cross_entropy_with_logits(model.label(z), y[rows])
                guessing.zero_grad()
                (100 * error).backward()
                guessing.step()
        checks.converging(f"{kind} autoencoder", epoch, {"loss": losses[epoch]})
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.float())
    return model.requires_grad_(False), losses


def recipe_for(table: Tabular, kind: str) -> Recipe:
    """Return the recipe of an autoencoder for a data set."""
    return (FOR_COMPAS if table.name == "compas" else {}).get(kind, RECIPES[kind])


@torch.no_grad()
def _draw_weights(model: nn.Module, rng: np.random.Generator) -> None:
    """Draw all weights and biases anew, uniform within 1 / sqrt(fan-in)."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            bound = 1 / np.sqrt(layer.in_features)
            weight = rng.uniform(-bound, bound, (layer.in_features, layer.out_features))
            bias = rng.uniform(-bound, bound, layer.out_features)
            layer.weight.copy_(torch.from_numpy(weight).T)
            layer.bias.copy_(torch.from_numpy(bias))


def _halves(out: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log-variance, the two halves of an encoder's outputs."""
    mean, log_variance = out.chunk(2, -1)
    return mean, log_variance


def _draw(out: Tensor, rng: np.random.Generator) -> Tensor:
    """Return a latent point for each person, from the outputs of an encoder."""
    mean, log_variance = _halves(out)
    noise = torch.from_numpy(rng.standard_normal(mean.shape))
    return mean + (log_variance / 2).exp() * noise


def _divergence(out: Tensor, other: Tensor | None = None) -> Tensor:
    """Return the mean divergence (Kullback-Leibler) of normals from others, or N(0, 1)."""
    mean, log_variance = _halves(out)
    m, v = _halves(torch.zeros_like(out) if other is None else other)
    ratio = (log_variance - v).exp() + (mean - m).square() / v.exp()
    return ((ratio - 1 + v - log_variance) / 2).sum(-1).mean()


def _decode(model: Autoencoder, z: Tensor, x: Tensor) -> Tensor:
    """Return the decoder's outputs before any sigmoid."""
    return model.decoder(torch.cat([z, x[:, ~model.is_seen]], -1))


def _loss_cchvae(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return cross-entropy of the features, and a divergence that gains weight."""
    seen = x[:, model.is_seen]
    code = model.encoder(seen)
    out = _decode(model, _draw(code, rng), x)
    error = F.binary_cross_entropy_with_logits(out, seen, reduction="none").sum(-1).mean()
    return error + 0.3 * progress * _divergence(code)


def _loss_clue(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return the negative evidence bound of a Gaussian autoencoder, but for a constant."""
    code = model.encoder(x)
    out = _decode(model, _draw(code, rng), x)
    return (out - x).square().sum(-1).mean() / 2 + _divergence(code)


def _loss_cruds(
    model: Autoencoder, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
) -> Tensor:
    """Return errors, divergences, and how surely the label is known from z."""
    seen = x[:, model.is_seen]
    code = model.encoder(seen)
    w_code = model.w(torch.cat([seen, y], -1))
    z, w = _draw(code, rng), _draw(w_code, rng)
    error = (_decode(model, torch.cat([z, w], -1), x) - seen).square().mean()
    logit = model.label(z)
    p = logit.sigmoid()
    certainty = (p * F.logsigmoid(logit) + (1 - p) * F.logsigmoid(-logit)).mean()
    apart = _divergence(w_code, model.prior(y))
    return 40 * error + 0.2 * _divergence(code) + apart + 110 * certainty


_LOSSES = {"CCHVAE": _loss_cchvae, "CLUE": _loss_clue, "CRUDS": _loss_cruds}
