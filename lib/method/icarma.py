"""iCARMA: two small networks that recommend an action for everyone at once.

Networks of several seeds (or settings) are trained side by side:
every tensor of weights has a leading member axis M, every batch has
shape (M, B, ...), and one matrix product serves all members.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.base import checks, files
from lib.base.arithmetic import network
from lib.method.limits import Interval
from lib.method.networks import LOG_2_PI
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import Problem, Recommendation, in_columns

TERMS = ("cost", "mask", "hinge", "plausibility", "feasibility")

# people who are answered in one go; more of them do not fit a processor's caches
PEOPLE_AT_ONCE = 16_384


@dataclass(frozen=True)
class Settings:
    """Hold how one member is trained. All but `hidden` may differ within a stack.

    Arguments:
        profile: From scores to weights and priors.
        cost, mask, plausibility, feasibility: Weights of four of the
            five terms of the loss.
        hinge: Weight of the fifth; None: a multiplier that grows in
            training, as in CARMA's code (see `training.fit`).
        likelihood: Whether the plausibility term is -log p(x_cf), or
            only by how much the log-density falls.
        cap: Level, in nats, that such a fall of one person
            approaches and never exceeds, and so the hinge where it is
            on the log-odds; math.inf: none.
        margin: Demanded of the log-odds of a positive decision, or of
            2 h(x_cf) - 1.
        on_probability: Whether the hinge is on 2 h(x_cf) - 1, as
            printed in the paper. For people who are far from
            acceptance that is -1 and hardly changes; the log-odds
            still tell them where to go.
        tau: Temperature of the relaxed mask.
        n_epochs, batch_size, learning_rate, weight_decay: Of Adam.
        falling: Whether its learning rate falls to zero along a
            cosine, or stays.
        hidden: Width of the two hidden layers of either network.
    Raises: ValueError: a weight is below zero, or another setting is
        not above zero.
    Example:
        >>> Settings(n_epochs=10).cost
        1.1
    """

    profile: Profile = CONSTANT
    cost: float = 1.1
    mask: float = 0.001
    hinge: float | None = 0.2
    plausibility: float = 0.4
    feasibility: float = 0.1
    likelihood: bool = False
    cap: float = 4.0
    margin: float = 0.05
    on_probability: bool = False
    tau: float = 0.36
    n_epochs: int = 300
    batch_size: int = 128
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    falling: bool = True
    hidden: int = 128

    def __post_init__(self) -> None:
        checks.positive(tau=self.tau, learning_rate=self.learning_rate)
        checks.counts(
            n_epochs=self.n_epochs, batch_size=self.batch_size, hidden=self.hidden
        )
        if not self.cap > 0:
            raise ValueError(f"cap must be above zero (math.inf: none), got {self.cap!r}.")
        for name in TERMS:
            weight = getattr(self, name)
            if name == "hinge" and weight is None:
                continue
            if not 0 <= weight < math.inf:
                raise ValueError(
                    f"The weight of {name} must not be below zero, got {weight!r}; "
                    "expected a finite number."
                )
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(
                f"weight_decay is {self.weight_decay!r}, expected zero or more."
            )
        if not math.isfinite(self.margin):
            raise ValueError(f"margin must be finite, got {self.margin!r}.")


class ICarma:
    """Hold a stack of M members, each a mask network and an action network.

    Arguments:
        problem: What they were trained for.
        settings: Of each member.
        seeds: Of each member's random draws; several members may
            share one.
        weights: By name, "mask_weight_0" with shape (M, in, out),
            "mask_bias_0" with shape (M, 1, out), ... Networks with
            `n_context` inputs for it hear limits; answers of others
            are only cut to them.
        ids: A number of its own for each member; left out: 0 to M -
            1.
    Raises: ValueError: not one setting, seed and id a member, or an
        id twice; the classifier has no gradient.
    Source: section 4.3 and Fig. 1 of arXiv:2604.08030. The loss is
        explained term by term in notebook 03.
    Example:
        >>> stack.n_members, stack.seeds[:2], stack.ids[:2]
        (10, [1000, 2000], [0, 1])
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
        if not len(self.settings) == len(self.seeds) == len(set(self.ids)) == len(self.ids):
            raise ValueError(
                f"Expected one setting, seed and id a member, got {len(self.settings)}, "
                f"{len(self.seeds)} and {len(self.ids)} ({len(set(self.ids))} of them "
                "different)."
            )
        self.columns = problem.population.actionable_index
        n_inputs = weights["mask_weight_0"].shape[1]
        self.hears_limits = n_inputs == n_context(problem, hears_limits=True)
        self._tau, self._margin, self._cap = (
            torch.tensor([getattr(s, name) for s in self.settings])[:, None]
            for name in ("tau", "margin", "cap")
        )
        self._on_probability, self._likelihood = (
            torch.tensor([[getattr(s, name)] for s in self.settings])
            for name in ("on_probability", "likelihood")
        )

    @property
    def n_members(self) -> int:
        """Number M of members.

        Example:
            >>> stack.n_members
            10
        """
        return len(self.seeds)

    def select(self, members: Sequence[int]) -> "ICarma":
        """Return the members at these positions as a stack of their own; ids stay.

        Example:
            >>> stack.select([2, 5]).ids
            [2, 5]
        """
        weights = {name: weight[list(members)] for name, weight in self.weights.items()}
        settings = [self.settings[i] for i in members]
        seeds, ids = ([part[i] for i in members] for part in (self.seeds, self.ids))
        return ICarma(self.problem, settings, seeds, weights, ids)

    def position(self, member: int) -> int:
        """Return where the member with this id stands in the stack.

        Raises: ValueError: there is no such member.
        Example:
            >>> stack.select([2, 5]).position(5)
            1
        """
        checks.known("member", [member], self.ids)
        return self.ids.index(member)

    def member(self, member: int) -> "Member":
        """Return the member with this id as a solver of its own.

        Raises: ValueError: there is no such member.
        Example:
            >>> x = problem.refused("test")[:2]
            >>> anything = Preferences.from_mask(torch.ones(2, 4, dtype=torch.bool))
            >>> stack.member(3).recommend(x, anything).values.shape
            torch.Size([2, 7])
        """
        return Member(self.select([self.position(member)]))

    def _network(self, which: str, inputs: Tensor) -> Tensor:
        """Return what the "mask" or the "action" networks give for inputs (M, N, in)."""
        weights, biases = (
            [self.weights[f"{which}_{part}_{i}"] for i in range(3)]
            for part in ("weight", "bias")
        )
        return network(inputs, weights, biases)

    def _by_profile(self, what: str, preferences: Preferences) -> Tensor:
        """Return each member's "hardness", "weight" or "prior", with shape (M, N, K).

        Scores have shape (N, K), or (M, N, K) for preferences of each
        member's own.
        """
        profiles = [member.profile for member in self.settings]
        if len(set(profiles)) == 1:
            return getattr(profiles[0], what)(preferences).expand(self.n_members, -1, -1)
        given = torch.empty(self.n_members, *preferences.scores.shape[-2:])
        for profile in dict.fromkeys(profiles):
            members = [i for i, own in enumerate(profiles) if own == profile]
            own = preferences
            if preferences.scores.ndim == 3:
                own = preferences.member(members)
            given[members] = getattr(profile, what)(own)
        return given

    def context(
        self,
        z: Tensor,
        preferences: Preferences,
        x: Tensor | None = None,
        interval: Interval | None = None,
    ) -> Tensor:
        """Return what the networks know of each person, with shape (M, N, D + 2K).

        That is the latent, the mask of what the person can act on
        (A_u), and the hardness. Networks that hear limits are told
        the room as well, `Interval.room`, with shape (M, N, D + 4K).

        Arguments:
            z: Latent of each person, with shape (N, D) or (M, N, D).
            preferences: With scores (N, K) or (M, N, K).
            x, interval: People, and to what values they may set
                features, where the networks hear limits.
        Example:
            >>> anything = Preferences.from_mask(torch.ones(3, 4, dtype=torch.bool))
            >>> stack.context(torch.zeros(3, 7), anything).shape
            torch.Size([10, 3, 15])
        """
        parts = [z, preferences.is_actionable, self._by_profile("hardness", preferences)]
        if self.hears_limits:
            assert x is not None and interval is not None
            spread = self.problem.range[self.columns].to(x)
            parts.append(interval.room(x[..., self.columns], spread))
        return torch.cat([p.to(z.dtype).expand(self.n_members, -1, -1) for p in parts], -1)

    def batch(
        self, factual: Mapping[str, Tensor], preferences: Preferences, noise: Tensor
    ) -> dict[str, Tensor]:
        """Return what `loss_terms` reads, for all people of an epoch, by name.

        Arguments:
            factual: As `CausalFlow.factual` gives it, each tensor
                with shape (N, *) or (M, N, *).
            preferences: With scores (N, K) or (M, N, K).
            noise: Difference of two Gumbel draws, with shape (M, N,
                K).
        Example:
            >>> anything = Preferences.from_mask(torch.ones(3, 4, dtype=torch.bool))
            >>> factual = problem.flow.factual(problem.refused("test")[:3], stack.columns)
            >>> batch = stack.batch(factual, anything, torch.zeros(10, 3, 4))
            >>> batch["allowed"].shape
            torch.Size([10, 3, 4])
        """
        prior = self._by_profile("prior", preferences).to(noise.dtype)
        x, may, interval = factual["x"], preferences.is_actionable, None
        ends = {}
        if self.hears_limits:
            interval = self.problem.interval(x, preferences)
            may, ends = interval.may, {"low": interval.low, "high": interval.high}
        rows = {
            **factual,
            **ends,
            "context": self.context(factual["z"], preferences, x, interval),
            "allowed": may,
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
        """Return the log-odds of q, with shape (M, N, K); see `loss_terms` for an example.

        q is the probability of acting on each actionable feature.

        Example:
            >>> stack.mask_logits(torch.zeros(10, 3, 15)).shape
            torch.Size([10, 3, 4])
        """
        return self._network("mask", context)

    def action_values(self, x: Tensor, context: Tensor, m: Tensor) -> Tensor:
        """Return the values a_j of the actionable features, with shape (M, N, K).

        Arguments:
            x: People, with shape (M, N, D).
            context: As `context` gives it.
            m: Which features are acted on (0 or 1), with shape (M, N,
                K).
        Example:
            >>> parts = (torch.zeros(10, 3, n) for n in (7, 15, 4))
            >>> stack.action_values(*parts).shape
            torch.Size([10, 3, 4])
        """
        return x[..., self.columns] + self._network("action", torch.cat([context, m], -1))

    def loss_terms(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        r"""Return the five terms of the loss, each a mean over the batch, with shape (M,).

        Arguments:
            batch: Tensors with leading axes (M, B), cut from what
                `batch` gives.
        Example:
            >>> anything = Preferences.from_mask(torch.ones(3, 4, dtype=torch.bool))
            >>> factual = problem.flow.factual(problem.refused("test")[:3], stack.columns)
            >>> batch = stack.batch(factual, anything, torch.zeros(10, 3, 4))
            >>> list(stack.loss_terms(batch))
            ['cost', 'mask', 'hinge', 'plausibility', 'feasibility']
        """
        allowed, logits = batch["allowed"], self.mask_logits(batch["context"])
        soft = torch.sigmoid((logits + batch["noise"]) / self._tau[..., None])
        # straight-through, hard constraints
        m = ((soft > 0.5).to(soft.dtype) + soft - soft.detach()) * allowed
        q, log_q, log_no_q = (
            torch.sigmoid(logits),
            F.logsigmoid(logits),
            F.logsigmoid(-logits),
        )
        divergence = q * (log_q - batch["log_prior"]) + (1 - q) * (
            log_no_q - batch["log_no_prior"]
        )
        terms = self.terms_of_each(batch, m)
        terms["mask"] = (allowed * divergence).sum(-1)
        return {name: terms[name].mean(-1) for name in TERMS}

    def terms_of_each(self, batch: Mapping[str, Tensor], m: Tensor) -> dict[str, Tensor]:
        """Return all terms but the mask's for each person under a mask, with shape (M, B).

        Arguments:
            batch: As for `loss_terms`.
            m: Which features are acted on (0 or 1 in value), with
                shape (M, B, K).
        Example:
            Who does nothing has no cost:
            >>> stack = stack.select([0])
            >>> anything = Preferences.from_mask(torch.ones(1, 4, dtype=torch.bool))
            >>> factual = problem.flow.factual(problem.refused("test")[:1], stack.columns)
            >>> batch = stack.batch(factual, anything, torch.zeros(1, 1, 4))
            >>> terms = stack.terms_of_each(batch, torch.zeros(1, 1, 4))
            >>> bool(terms["cost"] == 0)
            True
        """
        x = batch["x"]
        a = self.action_values(x, batch["context"], m)
        if self.hears_limits:
            a = Interval(batch["allowed"], batch["low"], batch["high"]).smoothly(a)
        x_cf, gain = self.problem.flow.act(batch, self.columns, m, a)
        log_odds = self.problem.log_odds(x_cf)
        return {
            "cost": self.problem.action_cost(x[..., self.columns], m, a, batch["weight"]),
            "hinge": self._hinge(log_odds),
            "plausibility": self._implausible(batch, gain),
            "feasibility": self.problem.outside(x_cf),
        }

    def _hinge(self, log_odds: Tensor) -> Tensor:
        """Return what each person lacks of the margin, with shape (M, N)."""
        lacking = capped((self._margin - log_odds).relu(), self._cap)
        if not self._on_probability.any():
            return lacking
        printed = (self._margin - (2 * torch.sigmoid(log_odds) - 1)).relu()
        return torch.where(self._on_probability, printed, lacking)

    def _implausible(self, batch: Mapping[str, Tensor], gain: Tensor) -> Tensor:
        """Return -log p(x_cf) of each person, or what is lost of log p, shape (M, N)."""
        # at a gain of exactly zero, that of people who do nothing, the gradient is zero
        falls = capped((-gain).relu(), self._cap)
        if not self._likelihood.any():
            return falls
        z, slope = batch["z"], batch["slope"]
        log_p = (slope - 0.5 * (z.square() + LOG_2_PI)).sum(-1)
        return torch.where(self._likelihood, -(log_p + gain), falls)

    @torch.no_grad()
    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return every member's recommendation, each part with shape (M, N, D).

        A feature is acted on where its probability, the one used in
        training, is above one half and the person can. Values may be
        fractions: where a population has whole numbers, hand the
        result to `Problem.carried_out`.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K).
        Raises: ValueError: shapes differ, x holds NaN, or someone is
            accepted already.
        Example:
            >>> x = problem.refused("test")[:2]
            >>> income_only = torch.tensor([[False, False, True, False]]).expand(2, -1)
            >>> found = stack.recommend(x, Preferences.from_mask(income_only))
            >>> bool(found.is_acted[..., [3, 4, 6]].any())  # nothing forbidden
            False
        """
        self.problem.check(x, preferences)
        firsts = range(0, len(x), PEOPLE_AT_ONCE)
        some = [slice(first, first + PEOPLE_AT_ONCE) for first in firsts]
        parts = [self._recommend(x[own], preferences[own]) for own in some]
        return Recommendation(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))

    def _recommend(
        self, x: Tensor, preferences: Preferences
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what is acted on, the values, and the features after, each (M, N, D)."""
        z, interval = self.problem.flow.abduct(x), self.problem.interval(x, preferences)
        context = self.context(z, preferences, x, interval)
        m = ((self.mask_logits(context) > 0) & interval.may).to(x.dtype)
        x, z = x.expand(self.n_members, -1, -1), z.expand(self.n_members, -1, -1)
        a = self.action_values(x, context, m)
        if self.hears_limits:
            a = interval.smoothly(a)
        if interval.step is not None:
            a = interval.nearest(a)
        is_acted = in_columns(m, self.columns, x.shape[-1]) > 0.5
        values = torch.where(is_acted, in_columns(a, self.columns, x.shape[-1]), x)
        x_cf = self.problem.flow.counterfactual(x, is_acted, values, z)
        return is_acted, values, x_cf

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `files.save`.

        The fingerprint of the problem's population goes with it.

        Example:
            >>> folder = Path(tempfile.mkdtemp())
            >>> stack.select([0]).save(folder, "mine", {"seed": 1000}).name
            'mine.safetensors'
        """
        members: dict[str, Any] = {
            "seeds": self.seeds,
            "settings": [dataclasses.asdict(s) for s in self.settings],
        }
        if self.ids != list(range(self.n_members)):
            members["ids"] = self.ids
        fingerprint = self.problem.population.fingerprint
        return files.save(folder, name, self.weights, members, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "ICarma":
        """Load the stack in folder/name.safetensors.

        Raises: ValueError: no such file, it holds no stack, or it was
            fitted to another population.
        Example:
            >>> other = loan.problem()
            >>> ICarma.load(files.MODELS, "loan_flow", other)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: ...loan_flow.safetensors holds no stack: seeds must be a list...
        """
        weights, members = files.load(folder, name, problem.population.fingerprint)
        with files.holding("stack", folder, name):
            seeds = files.whole_numbers("seeds", members.get("seeds"))
            ids = files.whole_numbers("ids", members.get("ids", list(range(len(seeds)))))
            given = files.filled("settings", members.get("settings"))
            settings = [files.rebuilt(Settings, own) for own in given]
            if len({own.hidden for own in settings}) > 1:
                raise ValueError("its members have layers of different widths.")
            first = weights.get("mask_weight_0", torch.zeros(0, 0, 0))
            hears = first.shape[1:2] == (n_context(problem, hears_limits=True),)
            shapes = weight_shapes(problem, settings[0].hidden, len(seeds), hears)
            files.check_tensors(weights, shapes, [problem.flow.dtype])
            return cls(problem, settings, seeds, weights, ids)


@dataclass(frozen=True)
class Member:
    """Hold one member of a stack, which recommends as any solver does; see `ICarma.member`.

    Arguments:
        stack: Of this member alone.
    Example:
        >>> x = problem.refused("test")[:2]
        >>> anything = Preferences.from_mask(torch.ones(2, 4, dtype=torch.bool))
        >>> stack.member(3).recommend(x, anything).values.shape
        torch.Size([2, 7])
    """

    stack: ICarma

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the member's recommendation, each part with shape (N, D)."""
        return self.stack.recommend(x, preferences)[0]


def n_context(problem: Problem, hears_limits: bool) -> int:
    """Return how many numbers networks know of a person; see `ICarma.context`.

    Example:
        >>> n_context(problem, hears_limits=False), n_context(problem, hears_limits=True)
        (15, 23)
    """
    n_known = 4 if hears_limits else 2
    n_actionable = len(problem.population.actionable)
    return len(problem.population.features) + n_known * n_actionable


def weight_shapes(
    problem: Problem, hidden: int, n_members: int, hears_limits: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a stack, by its name.

    Arguments:
        hidden: Width of the two hidden layers of either network.
        hears_limits: Whether they are told how far people may move
            each feature.
    Example:
        >>> shapes = weight_shapes(problem, 64, n_members=2)
        >>> shapes["mask_weight_0"]  # members, inputs, width
        (2, 15, 64)
    """
    n_actionable = len(problem.population.actionable)
    n_known = n_context(problem, hears_limits)
    n_inputs = {"mask": n_known, "action": n_known + n_actionable}
    found: dict[str, tuple[int, ...]] = {}
    for which, n_first in n_inputs.items():
        widths = [n_first, hidden, hidden, n_actionable]
        found |= files.layers(widths, f"{which}_", n_members)
    return found


def capped(lacking: Tensor, cap: Tensor | float) -> Tensor:
    """Return what is lacking, bent so that it approaches the cap and never exceeds it.

    Of somebody whom no action helps, a term without a cap would
    weigh more than that of everybody who can be helped.

    Arguments:
        lacking: Zero or more, with any shape.
        cap: Above zero, infinite for none; a number, or a shape that
            expands to that of `lacking`.
    Example:
        >>> capped(torch.tensor([0.0, 4.0, 1e9]), 4.0)
        tensor([0., 2., 4.])
    """
    return lacking / (1 + lacking / cap)
