"""iCARMA: two small networks that recommend an action for everyone at once.

Networks of several seeds (or settings) are trained side by side: every tensor of weights has a leading member
axis M, every batch has shape (M, B, ...), and one matrix product serves all members.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib import artefacts, checks
from lib.preferences import Preferences, Profile, RankingSampler
from lib.recourse import Problem, Recommendation, in_columns


@dataclass(frozen=True)
class Settings:
    """How one member is trained. All but the last four may differ within a stack.

    Arguments:
        profile: From scores to weights and priors.
        cost, mask, hinge, plausibility, feasibility: Weights of the five terms of the loss.
        cap: Level, in nats, that the plausibility term of one person approaches and never exceeds.
        margin: Demanded of 2 h(x_cf) - 1.
        tau: Temperature of the relaxed mask.
        n_epochs, batch_size, learning_rate: Of Adam; the rate falls to zero along a cosine.
        hidden: Width of the two hidden layers of either network.
    """

    profile: Profile = Profile()
    cost: float = 1.1
    mask: float = 0.03
    hinge: float = 40.0
    plausibility: float = 8.0
    feasibility: float = 0.1
    cap: float = 3.0
    margin: float = 0.013
    tau: float = 0.36
    n_epochs: int = 450
    batch_size: int = 128
    learning_rate: float = 5e-3
    hidden: int = 64

    def __post_init__(self) -> None:
        checks.positive(tau=self.tau, cap=self.cap, n_epochs=self.n_epochs, batch_size=self.batch_size)
        checks.positive(learning_rate=self.learning_rate, hidden=self.hidden)


TERMS = ("cost", "mask", "hinge", "plausibility", "feasibility")
SHARED = ("n_epochs", "batch_size", "learning_rate", "hidden")


class ICarma:
    """A stack of M members, each a mask network and an action network.

    Arguments:
        problem: What they were trained for.
        settings: Of each member.
        seeds: Of each member.
        weights: By name, "mask_weight_0" with shape (M, in, out), "mask_bias_0" with shape (M, 1, out), ...
    Source: section 4.3 and Fig. 1 of arXiv:2604.08030. The loss is explained term by term in notebook 03.
    """

    def __init__(
        self, problem: Problem, settings: Sequence[Settings], seeds: Sequence[int], weights: dict[str, Tensor]
    ) -> None:
        self.problem, self.settings, self.seeds, self.weights = problem, list(settings), list(seeds), weights
        self.columns = problem.population.actionable_index
        self._low, self._high, self._range = problem.population.low, problem.population.high, problem.range
        # features that an action can move, and so the terms of log p(x) that an action can change
        flow = problem.flow
        moved = flow.reaches[self.columns].any(0)
        moved[self.columns] = True
        self._mutable = [j for j, kind in enumerate(problem.population.kinds.values()) if kind != "immutable"]
        self._terms = [j for j, causes in enumerate(flow.parent_index) if moved[j] or moved[causes].any()]

    @property
    def n_members(self) -> int:
        return len(self.seeds)

    def _network(self, which: str, inputs: Tensor) -> Tensor:
        hidden = inputs
        for i in range(3):
            hidden = torch.baddbmm(
                self.weights[f"{which}_bias_{i}"], F.relu(hidden) if i else hidden, self.weights[f"{which}_weight_{i}"]
            )
        return hidden

    def mask_logits(self, z: Tensor, is_actionable: Tensor, hardness: Tensor) -> Tensor:
        """Log-odds q of acting on each actionable feature, (M, N, K), from the latent (M, N, D) and preferences."""
        return self._network("mask", torch.cat([z, is_actionable, hardness * is_actionable], -1))

    def action_values(self, x: Tensor, z: Tensor, m: Tensor, is_actionable: Tensor, hardness: Tensor) -> Tensor:
        """Values a_j for the actionable features, with shape (M, N, K), given which are acted on, m."""
        shift = self._network("action", torch.cat([z, m, is_actionable, hardness * is_actionable], -1))
        return x[..., self.columns] + shift

    def loss_terms(
        self, x: Tensor, z: Tensor, log_p: Tensor, preferences: dict[str, Tensor], logistic_noise: Tensor
    ) -> dict[str, Tensor]:
        r"""The five terms of the loss, each a mean over the batch, with shape (M,).

        Arguments:
            x, z: Factual features and their latent, with shape (M, B, D).
            log_p: Log-density of the factual, restricted to the terms that an action can change, (M, B).
            preferences: "is_actionable" (0/1), "hardness", "weight" and "prior", each with shape (M, B, K).
            logistic_noise: Difference of two Gumbel draws, with shape (M, B, K).
        """
        tau, margin, cap = (torch.tensor([getattr(s, k) for s in self.settings])[:, None] for k in ("tau", "margin", "cap"))
        allowed = preferences["is_actionable"]
        logits = self.mask_logits(z, allowed, preferences["hardness"])
        soft = torch.sigmoid((logits + logistic_noise) / tau[..., None])
        m = ((soft > 0.5).to(soft.dtype) + soft - soft.detach()) * allowed  # straight-through, hard constraints
        a = self.action_values(x, z, m, allowed, preferences["hardness"])
        acts, values = (in_columns(part, self.columns, x.shape[-1]) for part in (m, a))
        x_cf = self.problem.flow.walk(x, z, acts, values)

        q, p = torch.sigmoid(logits), preferences["prior"]
        divergence = q * (F.logsigmoid(logits) - p.log()) + (1 - q) * (F.logsigmoid(-logits) - (1 - p).log())
        h = torch.sigmoid(self.problem.classifier.logit(x_cf))
        log_p_cf = self.problem.flow.log_prob_terms(x_cf, self._terms).sum(-1)
        loss_of_p = (log_p - log_p_cf).relu()
        outside = (x_cf - self._high).relu() + (self._low - x_cf).relu()
        return {
            "cost": self.problem.action_cost(x, acts, values, preferences["weight"]).mean(-1),
            "mask": (allowed * divergence).sum(-1).mean(-1),
            "hinge": (margin - (2 * h - 1)).relu().mean(-1),
            "plausibility": (loss_of_p / (1 + loss_of_p / cap)).mean(-1),
            "feasibility": (outside / self._range)[..., self._mutable].sum(-1).mean(-1),
        }

    @torch.no_grad()
    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Every member's recommendation for rejected people (N, D), each tensor with shape (M, N, D).

        A feature is acted on where its probability, the one used in training, is above one half and the person can.
        Raises: ValueError: shapes differ, x holds NaN, or someone is accepted already.
        """
        self.problem.check(x, preferences)
        allowed = preferences.is_actionable.to(x.dtype).expand(self.n_members, -1, -1)
        hardness = torch.stack([s.profile.hardness(preferences) for s in self.settings]).to(x.dtype)
        z = self.problem.flow.abduct(x).expand(self.n_members, -1, -1)
        x = x.expand(self.n_members, -1, -1)
        m = (self.mask_logits(z, allowed, hardness) > 0).to(x.dtype) * allowed
        a = self.action_values(x, z, m, allowed, hardness)
        is_acted = in_columns(m, self.columns, x.shape[-1]) > 0.5
        values = torch.where(is_acted, in_columns(a, self.columns, x.shape[-1]), x)
        return Recommendation(is_acted, values, self.problem.flow.counterfactual(x, is_acted, values))

    def save(self, folder: Path, name: str) -> Path:
        members = {"seeds": self.seeds, "settings": [dataclasses.asdict(s) for s in self.settings]}
        return artefacts.save(folder, name, self.weights, members)

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "ICarma":
        weights, members = artefacts.load(folder, name)
        settings = [Settings(**(s | {"profile": Profile(**s["profile"])})) for s in members["settings"]]
        return cls(problem, settings, members["seeds"], weights)


def _initial_weights(
    sizes: Sequence[int], which: str, rngs: Sequence[np.random.Generator], dtype: torch.dtype
) -> dict[str, Tensor]:
    """Uniform within 1/sqrt(fan-in), each member from its own stream."""
    weights = {}
    for i, (n_in, n_out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        for part, shape in (("weight", (n_in, n_out)), ("bias", (1, n_out))):
            drawn = np.stack([rng.uniform(-1, 1, shape) / np.sqrt(n_in) for rng in rngs])
            weights[f"{which}_{part}_{i}"] = torch.tensor(drawn, dtype=dtype, requires_grad=True)
    return weights


def fit(
    problem: Problem,
    samplers: Sequence[RankingSampler],
    settings: Sequence[Settings],
    seeds: Sequence[int],
    progress: Callable[[range], range] = iter,
    after_epoch: Callable[[int, ICarma], None] | None = None,
) -> tuple[ICarma, dict[str, np.ndarray]]:
    """Members trained side by side on the rejected people of the training split.

    Preferences are drawn anew for every person in every epoch. Each member has its own random stream, so that
    its result does not depend on who is trained beside it (up to rounding in batched products).

    Arguments:
        samplers, settings, seeds: Of each of the M members.
        progress: Wraps the range of epochs, for instance `tqdm`.
        after_epoch: Called with the number of epochs done and the stack as it stands.
    Returns: The stack, and the mean of each loss term (see `TERMS`) by epoch and member, (n_epochs, M).
    Raises: ValueError: lists of different lengths, or settings that a stack must share differ.
    """
    if not len(samplers) == len(settings) == len(seeds) > 0:
        raise ValueError(
            f"Expected one sampler, one setting and one seed a member, got {len(samplers)}, {len(settings)} and {len(seeds)}."
        )
    for name in SHARED:
        if len({getattr(s, name) for s in settings}) > 1:
            raise ValueError(f"Members of one stack must share {name}. Train those that differ in a stack of their own.")
    shared = settings[0]
    x = problem.rejected("train")
    n_people, n_features = x.shape
    n_actionable = len(problem.population.actionable)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    sizes = [n_features + 2 * n_actionable, shared.hidden, shared.hidden, n_actionable]
    weights = _initial_weights(sizes, "mask", rngs, x.dtype)
    weights |= _initial_weights([sizes[0] + n_actionable, *sizes[1:]], "action", rngs, x.dtype)
    stack = ICarma(problem, settings, seeds, weights)
    optimiser = torch.optim.Adam(weights.values(), lr=shared.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, shared.n_epochs)
    term_weights = {term: torch.tensor([getattr(s, term) for s in settings]) for term in TERMS}
    z = problem.flow.abduct(x)
    log_p = problem.flow.log_prob_terms(x, stack._terms).sum(-1)
    batch_size = min(shared.batch_size, n_people)
    history = {term: np.zeros((shared.n_epochs, len(seeds))) for term in TERMS}

    for epoch in progress(range(shared.n_epochs)):
        order = torch.from_numpy(np.stack([rng.permutation(n_people) for rng in rngs]))
        drawn = [sampler.draw(n_people, rng) for sampler, rng in zip(samplers, rngs, strict=True)]
        uniform = torch.from_numpy(np.stack([rng.random((n_people, n_actionable)) for rng in rngs]))
        rows = {
            "x": x[order],
            "z": z[order],
            "log_p": log_p[order],
            "noise": torch.logit(uniform, eps=1e-9),
            "is_actionable": torch.stack([p.is_actionable for p in drawn]),
            "hardness": torch.stack([s.profile.hardness(p) for s, p in zip(settings, drawn, strict=True)]),
            "weight": torch.stack([s.profile.weight(p) for s, p in zip(settings, drawn, strict=True)]),
            "prior": torch.stack([s.profile.prior(p) for s, p in zip(settings, drawn, strict=True)]),
        }
        rows = {name: row.to(x.dtype) for name, row in rows.items()}
        n_batches = n_people // batch_size
        for i in range(n_batches):
            batch = {name: row[:, i * batch_size : (i + 1) * batch_size] for name, row in rows.items()}
            terms = stack.loss_terms(batch["x"], batch["z"], batch["log_p"], batch, batch["noise"])
            loss = sum((term_weights[name] * term).sum() for name, term in terms.items())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            for name, term in terms.items():
                history[name][epoch] += term.detach().numpy() / n_batches
        schedule.step()
        if after_epoch is not None:
            after_epoch(epoch + 1, stack)
    return ICarma(problem, settings, seeds, {k: w.detach() for k, w in weights.items()}), history
