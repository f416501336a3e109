"""iCARMA: two small networks that recommend an action for everyone at once.

Networks of several seeds (or settings) are trained side by side: every tensor of weights has a leading member
axis M, every batch has shape (M, B, ...), and one matrix product serves all members.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, files
from lib.base.arithmetic import Adam, stacked_network
from lib.preferences.samplers import Sampler
from lib.preferences.scores import Preferences, Profile
from lib.problem.recourse import Problem, Recommendation, in_columns

TERMS = ("cost", "mask", "hinge", "plausibility", "feasibility")
PEOPLE_AT_ONCE = (
    16_384  # who are answered in one go; more of them do not fit a processor's caches
)
SHARED = ("n_epochs", "batch_size", "learning_rate", "hidden")


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
    mask: float = 0.1
    hinge: float = 40.0
    plausibility: float = 11.0
    feasibility: float = 0.1
    cap: float = 3.0
    margin: float = 0.013
    tau: float = 0.36
    n_epochs: int = 450
    batch_size: int = 128
    learning_rate: float = 3e-3
    hidden: int = 64

    def __post_init__(self) -> None:
        checks.positive(
            tau=self.tau, cap=self.cap, n_epochs=self.n_epochs, batch_size=self.batch_size
        )
        checks.positive(learning_rate=self.learning_rate, hidden=self.hidden)
        for name in TERMS:
            if not getattr(self, name) >= 0:
                raise ValueError(
                    f"The weight of {name} must not be below zero, got {getattr(self, name)!r}."
                )


class ICarma:
    """A stack of M members, each a mask network and an action network.

    Arguments:
        problem: What they were trained for.
        settings: Of each member.
        seeds: Of each member's random draws; several members may share one.
        weights: By name, "mask_weight_0" with shape (M, in, out), "mask_bias_0" with shape (M, 1, out), ...
        ids: By which each member is told apart; left out: 0 to M - 1.
    Source: section 4.3 and Fig. 1 of arXiv:2604.08030. The loss is explained term by term in notebook 03.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Sequence[Settings],
        seeds: Sequence[int],
        weights: dict[str, Tensor],
        ids: Sequence[int] | None = None,
    ) -> None:
        self.problem, self.weights = problem, weights
        self.settings, self.seeds = list(settings), list(seeds)
        self.ids = list(range(len(self.seeds)) if ids is None else ids)
        self.columns = problem.population.actionable_index
        self._low, self._high = problem.population.low, problem.population.high
        can_move = torch.tensor(
            [kind != "immutable" for kind in problem.population.kinds.values()]
        )
        self._leeway = torch.where(
            can_move, problem.range, torch.inf
        )  # an immutable feature may lie anywhere
        self._scales = [
            torch.tensor([getattr(s, k) for s in self.settings])[:, None]
            for k in ("tau", "margin", "cap")
        ]

    @property
    def n_members(self) -> int:
        return len(self.seeds)

    def select(self, members: Sequence[int]) -> "ICarma":
        """The members with these positions, as a stack of their own."""
        weights = {name: weight[list(members)] for name, weight in self.weights.items()}
        return ICarma(
            self.problem,
            [self.settings[i] for i in members],
            [self.seeds[i] for i in members],
            weights,
            [self.ids[i] for i in members],
        )

    def _network(self, which: str, inputs: Tensor) -> Tensor:
        weights, biases = (
            [self.weights[f"{which}_{part}_{i}"] for i in range(3)]
            for part in ("weight", "bias")
        )
        return stacked_network(inputs, weights, biases)

    def _by_profile(self, what: str, preferences: Preferences) -> Tensor:
        """Each member's "hardness", "weight" or "prior", (M, N, K), of scores (N, K) or (M, N, K)."""
        profiles = [member.profile for member in self.settings]
        if len(set(profiles)) == 1:
            return getattr(profiles[0], what)(preferences).expand(self.n_members, -1, -1)
        given = torch.empty(self.n_members, *preferences.scores.shape[-2:])
        for profile in dict.fromkeys(profiles):
            members = [i for i, own in enumerate(profiles) if own == profile]
            own = (
                preferences
                if preferences.scores.ndim == 2
                else Preferences(preferences.scores[members])
            )
            given[members] = getattr(profile, what)(own)
        return given

    def context(self, z: Tensor, preferences: Preferences) -> Tensor:
        """What the networks know of each person, (M, N, D + 2K): latent, mask of A_u, and hardness.

        Arguments: z with shape (N, D) or (M, N, D), scores with shape (N, K) or (M, N, K).
        """
        parts = (z, preferences.is_actionable, self._by_profile("hardness", preferences))
        return torch.cat(
            [part.to(z.dtype).expand(self.n_members, -1, -1) for part in parts], -1
        )

    def batch(
        self, factual: dict[str, Tensor], preferences: Preferences, noise: Tensor
    ) -> dict[str, Tensor]:
        """What `loss_terms` reads, for all people of an epoch.

        Arguments:
            factual: As `CausalFlow.factual` gives it, each tensor with shape (N, *) or (M, N, *).
            preferences: With scores (N, K) or (M, N, K).
            noise: Difference of two Gumbel draws, with shape (M, N, K).
        """
        prior = self._by_profile("prior", preferences).to(noise.dtype)
        rows = factual | {
            "context": self.context(factual["z"], preferences),
            "allowed": preferences.is_actionable,
            "weight": self._by_profile("weight", preferences),
            "log_prior": prior.log(),
            "log_no_prior": (1 - prior).log(),
            "noise": noise,
        }
        return {
            name: row.to(noise.dtype).expand(self.n_members, -1, -1)
            for name, row in rows.items()
        }

    def mask_logits(self, context: Tensor) -> Tensor:
        """Log-odds of q, the probability of acting on each actionable feature, with shape (M, N, K)."""
        return self._network("mask", context)

    def action_values(self, x: Tensor, context: Tensor, m: Tensor) -> Tensor:
        """Values a_j for the actionable features, given which are acted on, m; both with shape (M, N, K)."""
        return x[..., self.columns] + self._network("action", torch.cat([context, m], -1))

    def loss_terms(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        r"""The five terms of the loss, each a mean over the batch, with shape (M,).

        Arguments:
            batch: Tensors with leading axes (M, B), cut from what `batch` gives.
        """
        tau, margin, cap = self._scales
        x, allowed = batch["x"], batch["allowed"]
        logits = self.mask_logits(batch["context"])
        soft = torch.sigmoid((logits + batch["noise"]) / tau[..., None])
        m = (
            (soft > 0.5).to(soft.dtype) + soft - soft.detach()
        ) * allowed  # straight-through, hard constraints
        a = self.action_values(x, batch["context"], m)
        x_cf, gain = self.problem.flow.act(batch, self.columns, m, a)

        q, log_q, log_no_q = (
            torch.sigmoid(logits),
            F.logsigmoid(logits),
            F.logsigmoid(-logits),
        )
        divergence = q * (log_q - batch["log_prior"]) + (1 - q) * (
            log_no_q - batch["log_no_prior"]
        )
        possible = self.problem.population.possible(x_cf)
        as_lived = (
            x_cf if possible is x_cf else x_cf + (possible - x_cf).detach()
        )  # straight-through, whole numbers
        h = torch.sigmoid(self.problem.classifier.logit(as_lived))
        lost = (-gain).relu()
        outside = (x_cf - self._high).relu() + (self._low - x_cf).relu()
        return {
            "cost": self.problem.action_cost(
                x[..., self.columns], m, a, batch["weight"]
            ).mean(-1),
            "mask": (allowed * divergence).sum(-1).mean(-1),
            "hinge": (margin - (2 * h - 1)).relu().mean(-1),
            "plausibility": (lost / (1 + lost / cap)).mean(-1),
            "feasibility": (outside / self._leeway).sum(-1).mean(-1),
        }

    @torch.no_grad()
    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Every member's recommendation for refused people (N, D), each tensor with shape (M, N, D).

        A feature is acted on where its probability, the one used in training, is above one half and the person can.
        Raises: ValueError: shapes differ, x holds NaN, or someone is accepted already.
        """
        self.problem.check(x, preferences)
        some = (
            [preferences]
            if len(x) <= PEOPLE_AT_ONCE
            else map(Preferences, preferences.scores.split(PEOPLE_AT_ONCE, -2))
        )
        parts = [
            self._recommend(people, own)
            for people, own in zip(x.split(PEOPLE_AT_ONCE), some, strict=True)
        ]
        return Recommendation(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))

    def _recommend(
        self, x: Tensor, preferences: Preferences
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What is acted on, the values, and the features after it, each with shape (M, N, D)."""
        z = self.problem.flow.abduct(x)
        context = self.context(z, preferences)
        m = ((self.mask_logits(context) > 0) & preferences.is_actionable).to(x.dtype)
        x, z = x.expand(self.n_members, -1, -1), z.expand(self.n_members, -1, -1)
        a = self.action_values(x, context, m)
        is_acted = in_columns(m, self.columns, x.shape[-1]) > 0.5
        values = torch.where(is_acted, in_columns(a, self.columns, x.shape[-1]), x)
        return is_acted, values, self.problem.flow.counterfactual(x, is_acted, values, z)

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Write folder/name.safetensors and return its path; `made_with` as for `files.save`."""
        members = {
            "seeds": self.seeds,
            "settings": [dataclasses.asdict(s) for s in self.settings],
        }
        if self.ids != list(range(self.n_members)):
            members["ids"] = self.ids
        fingerprint = self.problem.population.fingerprint
        return files.save(folder, name, self.weights, members, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "ICarma":
        """Return the stack of folder/name.safetensors.

        Raises: ValueError: no such file, or it was fitted to another population.
        """
        weights, members = files.load(folder, name, problem.population.fingerprint)
        settings = [
            Settings(**(s | {"profile": Profile(**s["profile"])}))
            for s in members["settings"]
        ]
        return cls(problem, settings, members["seeds"], weights, members.get("ids"))


def _initial_weights(
    sizes: Sequence[int],
    which: str,
    rngs: Sequence[np.random.Generator],
    dtype: torch.dtype,
) -> dict[str, Tensor]:
    """Uniform within 1/sqrt(fan-in), each member from its own stream."""
    weights = {}
    for i, (n_in, n_out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        for part, shape in (("weight", (n_in, n_out)), ("bias", (1, n_out))):
            drawn = np.stack([rng.uniform(-1, 1, shape) / np.sqrt(n_in) for rng in rngs])
            weights[f"{which}_{part}_{i}"] = torch.tensor(
                drawn, dtype=dtype, requires_grad=True
            )
    return weights


def fit(
    problem: Problem,
    samplers: Sequence[Sampler],
    settings: Sequence[Settings],
    seeds: Sequence[int],
    progress: Callable[[range], range] = iter,
    after_epoch: Callable[[int, ICarma], None] | None = None,
) -> tuple[ICarma, dict[str, np.ndarray]]:
    """Members trained side by side on the refused people of the training split.

    Preferences are drawn anew for every person in every epoch; an epoch ends with the last full batch. Each member
    has its own random stream, so that its result does not depend on who is trained beside it (up to rounding).

    Arguments:
        samplers, settings, seeds: Of each of the M members.
        progress: Wraps the range of epochs, for instance `tqdm`.
        after_epoch: Called with the number of epochs done and the stack as it stands.
    Returns: The stack, and the mean of each loss term (see `TERMS`) by epoch and member, (n_epochs, M).
    Raises: ValueError: lists of different lengths, settings that a stack must share differ, or no one is refused.
    """
    if not len(samplers) == len(settings) == len(seeds) > 0:
        raise ValueError(
            f"Expected one sampler, one setting and one seed a member, got {len(samplers)}, {len(settings)} and {len(seeds)}."
        )
    for name in SHARED:
        if len({getattr(s, name) for s in settings}) > 1:
            raise ValueError(
                f"Members of one stack must share {name}. Train those that differ in a stack of their own."
            )
    shared = settings[0]
    x = problem.refused("train")
    if len(x) == 0:
        raise ValueError(
            "Nobody in the training split is refused, so there is no one to train on. Draw more people."
        )
    n_people, n_features = x.shape
    n_actionable = len(problem.population.actionable)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    sizes = [n_features + 2 * n_actionable, shared.hidden, shared.hidden, n_actionable]
    weights = _initial_weights(sizes, "mask", rngs, x.dtype)
    weights |= _initial_weights(
        [sizes[0] + n_actionable, *sizes[1:]], "action", rngs, x.dtype
    )
    stack = ICarma(problem, settings, seeds, weights)
    optimiser = Adam(weights.values(), shared.learning_rate, shared.n_epochs)
    term_weights = torch.tensor([[getattr(s, term) for s in settings] for term in TERMS])
    factual = problem.flow.factual(x, problem.population.actionable_index)
    batch_size = min(shared.batch_size, n_people)
    n_batches = n_people // batch_size
    history = np.zeros((len(TERMS), shared.n_epochs, len(seeds)))

    for epoch in progress(range(shared.n_epochs)):
        orders = [rng.permutation(n_people) for rng in rngs]
        order = np.stack(orders)
        drawn = [
            sampler.draw(own, rng)
            for sampler, own, rng in zip(samplers, orders, rngs, strict=True)
        ]
        uniform = torch.from_numpy(
            np.stack([rng.random((n_people, n_actionable)) for rng in rngs])
        )
        preferences = Preferences(torch.stack([own.scores for own in drawn]))
        noise = torch.logit(uniform, eps=1e-9).to(x.dtype)
        shuffled = {
            name: torch.from_numpy(np.take(value.numpy(), order, axis=0))
            for name, value in factual.items()
        }
        rows = stack.batch(shuffled, preferences, noise)
        for i in range(n_batches):
            terms = stack.loss_terms(
                {
                    name: row[:, i * batch_size : (i + 1) * batch_size]
                    for name, row in rows.items()
                }
            )
            terms = torch.stack([terms[name] for name in TERMS])
            optimiser.step(
                torch.autograd.grad((term_weights * terms).sum(), optimiser.weights)
            )
            history[:, epoch] += terms.detach().numpy() / n_batches
        optimiser.decay()
        if after_epoch is not None:
            after_epoch(epoch + 1, stack)
    return ICarma(
        problem, settings, seeds, {k: w.detach() for k, w in weights.items()}
    ), dict(zip(TERMS, history, strict=True))
