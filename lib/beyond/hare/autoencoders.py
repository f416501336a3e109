"""Three autoencoders: what CCHVAE, CLUE and CRUDS know of the data.

Each is fitted once for a data set. It encodes people into a small latent space, and
what it decodes looks like people again; so a generator can look for recourse among
plausible people. Weights are rounded to float32 after the fit, as they are saved, and
then used in float64.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare.tabular import Tabular

KINDS = ("CCHVAE", "CLUE", "CRUDS")
N_LABEL = 2  # dimensions of CRUDS's w, which belongs to the label
N_EPOCHS = 5


# By kind: units of the encoder's layers (the decoder has them in reverse), dimensions of
# the latent space, batch size and learning rate of the fit by Adam. Facts of the HARE
# paper's code, but for batches that are larger and learning rates that go with them.
RECIPES = {
    "CCHVAE": ((32, 16), 4, 256, 5e-3),
    "CLUE": ((10, 10, 10), 12, 256, 5e-3),
    "CRUDS": ((16,), 8, 1_024, 5e-4),
}
FOR_COMPAS = {"CCHVAE": ((512, 256), 8, 256, 5e-3), "CLUE": ((10, 10, 10), 12, 64, 1e-2)}


class Autoencoder(nn.Module):
    """Hold an autoencoder of people with D features, in float64.

    Its networks are `encoder`, `decoder` and, for CRUDS, `w` (the encoder of features
    and label), `prior` (of w given the label) and `label` (which guesses the label from
    the rest).

    Arguments:
        table: The data set, for the number of features and which of them are immutable.
        kind: One of `KINDS`. CCHVAE and CRUDS encode the mutable features, and their
            decoders get the immutable ones; CLUE encodes all. CRUDS has two latent
            dimensions more, w, in which people with and without a positive label lie
            apart.
    Attributes:
        kind: As above.
        is_seen: Which features are encoded and decoded, with shape (D,).
        batch_size, learning_rate: Of the fit.
    Raises: ValueError: another kind.
    """

    def __init__(self, table: Tabular, kind: str) -> None:
        super().__init__()
        checks.one_of("kind of autoencoder", [kind], KINDS)
        self.kind = kind
        self.is_seen = ~table.is_immutable | torch.tensor(kind == "CLUE")
        hidden, n_latent, self.batch_size, self.learning_rate = (
            FOR_COMPAS if table.name == "compas" else {}
        ).get(kind, RECIPES[kind])
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
        mean = self.encoder(seen).chunk(2, -1)[0]
        if self.kind != "CRUDS":
            return mean
        w = self.w(torch.cat([seen, torch.zeros_like(x[:, :1])], -1)).chunk(2, -1)[0]
        return torch.cat([mean, w], -1)

    def decode(self, codes: Tensor, x: Tensor) -> Tensor:
        """Return people with shape (*, D).

        Arguments:
            codes: Latent points, and the features that are not encoded, with shape
                (*, latent + D - seen).
            x: Whose features are kept where nothing is decoded, with shape (*, D).
        Returns: Decoded features within [0, 1] for CCHVAE; those of the other two may
            leave it.
        """
        people, out = x.clone(), self.decoder(codes)
        people[..., self.is_seen] = out.sigmoid() if self.kind == "CCHVAE" else out
        return people

    def loss(
        self, x: Tensor, y: Tensor, rng: np.random.Generator, progress: float
    ) -> Tensor:
        """Return the loss of a batch.

        CCHVAE: cross-entropy of the features, and a divergence that gains weight. CLUE:
        the negative evidence lower bound of a Gaussian autoencoder, but for a constant.
        CRUDS: errors, divergences, and how surely the label is known from z.

        Arguments:
            x, y: People (N, D), and their labels (N, 1).
            rng: Draws the latent points.
            progress: Share of the epochs that are over.
        """
        seen = x[:, self.is_seen]
        code = self.encoder(seen)
        z = sample(code, rng)
        codes = [z, x[:, ~self.is_seen]]
        if self.kind == "CRUDS":
            w_code = self.w(torch.cat([seen, y], -1))
            codes.insert(1, sample(w_code, rng))
        out = self.decoder(torch.cat(codes, -1))
        if self.kind == "CCHVAE":
            error = F.binary_cross_entropy_with_logits(out, seen, reduction="none")
            return error.sum(-1).mean() + 0.3 * progress * divergence(code)
        if self.kind == "CLUE":
            return (out - x).square().sum(-1).mean() / 2 + divergence(code)
        logit = self.label(z)
        p = logit.sigmoid()
        certainty = (p * F.logsigmoid(logit) + (1 - p) * F.logsigmoid(-logit)).mean()
        apart = divergence(w_code, self.prior(y))
        error = (out - seen).square().mean()
        return 40 * error + 0.2 * divergence(code) + apart + 110 * certainty


def fit(
    table: Tabular, kind: str, seed: int = 0, n_epochs: int = N_EPOCHS
) -> tuple[Autoencoder, np.ndarray]:
    """Fit an autoencoder to the training people; return it and its mean loss by epoch.

    Arguments:
        kind: One of `KINDS`.
    Raises: ValueError: another kind, or the fit diverges.
    Source: Pawelczyk et al. (2020) for CCHVAE, Antoran et al. (2021) for CLUE, Downs et
        al. (2020) for CRUDS.
    """
    model, rng = Autoencoder(table, kind), np.random.default_rng(seed)
    _draw_weights(model, rng)
    rate = model.learning_rate
    others = [net for name, net in model.named_children() if name != "label"]
    optimiser = torch.optim.Adam(nn.ModuleList(others).parameters(), rate, fused=True)
    if kind == "CRUDS":
        adversary = torch.optim.Adam(model.label.parameters(), rate, fused=True)
    x, y = table.x["train"], table.y["train"].double()[:, None]
    losses = np.zeros(n_epochs)
    for epoch in range(n_epochs):
        order = torch.from_numpy(rng.permutation(len(x)))
        for rows in order.split(model.batch_size):
            loss = model.loss(x[rows], y[rows], rng, epoch / n_epochs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses[epoch] += loss.item() * len(rows) / len(x)
            if kind == "CRUDS":
                z = sample(model.encoder(x[rows][:, model.is_seen]), rng).detach()
                error = F.binary_cross_entropy_with_logits(model.label(z), y[rows])
                adversary.zero_grad()
                (100 * error).backward()
                adversary.step()
        checks.converging(f"{kind} autoencoder", epoch, {"loss": losses[epoch]})
    return model.float().double().requires_grad_(False), losses


def dense(*widths: int) -> nn.Sequential:
    """Return linear layers of these widths with ReLU between them, in float64.

    Weights are drawn by torch, in float32.
    """
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def sample(out: Tensor, rng: np.random.Generator) -> Tensor:
    """Return a latent point for each person, from the outputs of an encoder."""
    mean, log_variance = out.chunk(2, -1)
    noise = torch.from_numpy(rng.standard_normal(mean.shape))
    return mean + (log_variance / 2).exp() * noise


def divergence(out: Tensor, other: Tensor | None = None) -> Tensor:
    """Return the mean divergence (Kullback-Leibler) of normals from others, or N(0, 1).

    Arguments:
        out, other: Means and log-variances, side by side, with shape (N, 2 K).
    """
    mean, log_variance = out.chunk(2, -1)
    m, v = (torch.zeros_like(out) if other is None else other).chunk(2, -1)
    ratio = (log_variance - v).exp() + (mean - m).square() / v.exp()
    return ((ratio - 1 + v - log_variance) / 2).sum(-1).mean()


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
