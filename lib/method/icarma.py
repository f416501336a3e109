r"""iCARMA: two small networks that recommend an action for everyone at once.

The mask network says which features a person acts on, the action
network to what values. Both are conditioned on the person's noise z,
on what the person can do (A_u), and on how hard it is, h(s).

.. math:: \min\; \mathbb{E}\Big[
          \frac{\beta_1}{K} \sum_j w_j m_j \frac{(x_j - a_j)^2}{\text{range}_j}
          + \beta_2 \sum_{j \in A_u} \text{KL}(q_j \| p_j)
          + c\, \big(\text{margin} - (2 h(x^{CF}) - 1)\big)_+
          - \beta_4 \log p(x^{CF}) + \beta_5\, \text{out of range}(x^{CF})\Big]

The weights :math:`\beta` are `Settings.cost`, `mask`, `plausibility`
and `feasibility`. The fourth, c, is the setting `hinge`, or a Lagrange
multiplier as in CARMA's code. With :math:`H_t`, the mean of the hinge
in batch t, it is :math:`c_t = H_1 + \dots + H_t - 10 H_t`, so that it is
below zero in the first batches.

Networks of several seeds are trained together as one ensemble: each
weight has a leading member axis M, and one batched product serves all
members.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, kl_divergence

from lib import checks, io
from lib.method import preferences as preferences_of
from lib.method.limits import Interval
from lib.method.preferences import LINEAR, Preferences, Profile
from lib.method.problem import Problem, Recommendation, scatter_to_features
from lib.method.samplers import Sampler

TERMS = ("cost", "mask", "hinge", "plausibility", "feasibility")

# settings in which all members of an ensemble agree
SHARED = (
    "n_epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "cosine_schedule",
    "width",
)

# by how much CARMA's code holds its multiplier back while people still lack validity
DAMPING = 10.0

# share of the people trained on; networks that help fewer have learned nothing
HELPS_NOBODY = 0.05

# people who are answered in one go; more of them do not fit a processor's caches
PEOPLE_BATCH_SIZE = 16_384


@dataclass(frozen=True)
class Settings:
    """Hold how a member is trained; the defaults are the paper's as printed, for rankings.

    What the paper's text has lost (width, prior, the form of the
    plausibility term) is as `workflow/calibrate.py` chose it. Members of an
    ensemble may differ in all but `SHARED`.

    Arguments:
        cost, mask, plausibility, feasibility: Weights of four of the
            five terms of the loss. The mask's term is a sum over
            features.
        hinge: Weight of the fifth, or "lagrangian": a multiplier that
            grows in training, as in CARMA's code (see `fit`).
        plausibility_form: "nll", -log p(x_cf), or "drop", by how much
            the log-density falls.
        saturation: Level, in nats, that such a drop of one person
            approaches and never exceeds, and so does the hinge where
            it is on the log-odds; math.inf: none. It counts for
            these two forms alone, not for the defaults.
        margin: Demanded of 2 h(x_cf) - 1, or of the log-odds.
        margin_on: "probability", as printed in the paper, or
            "log_odds". For people far from acceptance 2 h - 1 is near
            -1 and hardly changes; the log-odds still do.
        tau: Temperature of the relaxed mask.
        p_max, p_min: Prior probability of acting on the easiest and
            on the hardest feature.
        prior_form: "difficulty", p falls with h(s); or "weight",
            p = p_max / w(s), as in CARMA's code.
        n_epochs, batch_size, learning_rate, weight_decay: Of Adam.
        cosine_schedule: Whether the learning rate falls to zero along
            a cosine, or stays.
        width: Of the two hidden layers of either network.
    Raises: ValueError: a setting is out of its range.
    Source: appendix C of arXiv:2604.08030.
    """

    cost: float = 1.1
    mask: float = 1.5
    hinge: float | str = "lagrangian"
    plausibility: float = 0.225
    plausibility_form: str = "nll"
    feasibility: float = 0.1
    saturation: float = 4.0
    margin: float = 0.013
    margin_on: str = "probability"
    tau: float = 0.36
    p_max: float = 0.99
    p_min: float = 0.01
    prior_form: str = "difficulty"
    n_epochs: int = 450
    batch_size: int = 128
    learning_rate: float = 5e-3
    weight_decay: float = 0.0
    cosine_schedule: bool = True
    width: int = 64

    def __post_init__(self) -> None:
        checks.positive(tau=self.tau, learning_rate=self.learning_rate)
        checks.positive_int(
            n_epochs=self.n_epochs, batch_size=self.batch_size, width=self.width
        )
        checks.one_of("plausibility_form", [self.plausibility_form], ("nll", "drop"))
        checks.one_of("margin_on", [self.margin_on], ("probability", "log_odds"))
        checks.one_of("prior_form", [self.prior_form], ("difficulty", "weight"))
        for name in (*TERMS, "weight_decay"):
            value = getattr(self, name)
            if name == "hinge" and value == "lagrangian":
                continue
            if isinstance(value, str) or not 0 <= value < math.inf:
                raise ValueError(
                    f"{name} must be a finite number, zero or above, got {value!r}. "
                    'Only hinge may be a multiplier, "lagrangian".'
                )
        if not self.saturation > 0:
            raise ValueError(
                f"saturation must be above zero (math.inf: none), got {self.saturation!r}."
            )
        if not 0 < self.p_min <= self.p_max < 1:
            raise ValueError(
                "Priors must satisfy 0 < p_min <= p_max < 1 (0 and 1 would make the "
                f"mask's KL term infinite), got {self.p_min!r} and {self.p_max!r}."
            )

    def prior(self, preferences: Preferences) -> Tensor:
        """Return the prior probability p(s) of acting on each feature, (*, N, K).

        Example:
            >>> ranks = Preferences(torch.tensor([[1, 2, 3]]))
            >>> Settings(p_max=0.5, p_min=0.1).prior(ranks)
            tensor([[0.5000, 0.3000, 0.1000]])
        """
        if self.prior_form == "weight":
            return (self.p_max / preferences.weight).clamp_min(self.p_min)
        difficulty = preferences.difficulty
        prior = self.p_max * (1 - difficulty) + self.p_min * difficulty
        return prior.clamp_min(self.p_min)


class StackedMLP(nn.Module):
    """M independent ReLU networks; from (M, N, in) to (M, N, out).

    Arguments:
        n_members: M.
        widths: Of the inputs, the hidden layers and the outputs.
    """

    def __init__(self, n_members: int, *widths: int) -> None:
        super().__init__()
        layers = list(pairwise(widths))
        self.weights = nn.ParameterList(
            torch.zeros(n_members, n_in, n_out) for n_in, n_out in layers
        )
        self.biases = nn.ParameterList(
            torch.zeros(n_members, 1, n_out) for _, n_out in layers
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return what each member's network gives for its inputs."""
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = torch.baddbmm(bias, x, weight).relu()
        weight, bias = last
        return torch.baddbmm(bias, x, weight)

    @torch.no_grad()
    def draw_weights(self, rngs: Sequence[np.random.Generator]) -> None:
        """Draw each member's weights from its generator, uniform within 1/sqrt(fan-in)."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = weight.shape[1] ** -0.5
            for parameter in (weight, bias):
                shape = parameter.shape[1:]
                drawn = np.stack([rng.uniform(-bound, bound, shape) for rng in rngs])
                parameter.copy_(torch.from_numpy(drawn))


class ICarma(nn.Module):
    """Hold an ensemble of M members, each a mask network and an action network.

    `icarma[3]` is one member, and `icarma.best` the one that did best
    on validation people; each is a solver. `recommend_each` asks all
    members at once.

    Arguments:
        problem: What they are trained for.
        settings: Of each member.
        seeds: Of each member's random draws.
        profile: From scores to difficulty, under which they are
            trained.
        limit_conditioned: Whether the networks are conditioned on
            limits. If not, answers are only cut to them.
        best_index: Of the best member on validation people.
    Raises: ValueError: settings differ in what is shared; the
        classifier has no gradient.
    Source: section 4.3 and Fig. 1 of arXiv:2604.08030. The loss is
        explained term by term in notebook 03.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Sequence[Settings],
        seeds: Sequence[int],
        profile: Profile = LINEAR,
        limit_conditioned: bool = False,
        best_index: int = 0,
    ) -> None:
        super().__init__()
        for name in SHARED:
            if len({getattr(s, name) for s in settings}) > 1:
                raise ValueError(
                    f"Members of one ensemble must share {name}. Train those that differ "
                    "in an ensemble of their own."
                )
        problem.check_gradient("iCARMA")
        self.problem, self.profile = problem, profile
        self.settings, self.seeds = list(settings), [int(seed) for seed in seeds]
        self.limit_conditioned, self.best_index = limit_conditioned, best_index
        self.columns = problem.population.actionable_index
        n_features, n_actionable = len(problem.population.features), len(self.columns)
        n_context = n_features + (4 if limit_conditioned else 2) * n_actionable
        n_members, width = len(self.seeds), self.settings[0].width
        self.mask = StackedMLP(n_members, n_context, width, width, n_actionable)
        self.action = StackedMLP(
            n_members, n_context + n_actionable, width, width, n_actionable
        )
        self.to(problem.flow.dtype)

    def __len__(self) -> int:
        """Return the number of members M."""
        return len(self.seeds)

    def __getitem__(self, index: int | slice | Sequence[int]) -> "ICarma":
        """Return one member, or several as a smaller ensemble.

        Raises: IndexError: there is no such member.
        """
        members = np.atleast_1d(np.arange(len(self))[index]).tolist()
        chosen = ICarma(
            self.problem,
            [self.settings[i] for i in members],
            [self.seeds[i] for i in members],
            self.profile,
            self.limit_conditioned,
            members.index(self.best_index) if self.best_index in members else 0,
        )
        chosen.load_state_dict({name: w[members] for name, w in self.state_dict().items()})
        return chosen.requires_grad_(False)

    @property
    def best(self) -> "ICarma":
        """The member with the best result on validation people; see `fit`."""
        return self[self.best_index]

    def context(self, x: Tensor, z: Tensor, preferences: Preferences) -> Tensor:
        """Return what the networks are conditioned on, with shape (M, N, D + 2K).

        That is the noise z, the mask of what the person can act on
        (A_u), and the difficulty. Limit-conditioned networks get the
        headroom as well, `Interval.headroom`: (M, N, D + 4K).

        Arguments:
            x, z: People and the noise behind them, each with shape
                (N, D) or (M, N, D).
            preferences: With scores (N, K) or (M, N, K).
        """
        inputs = [z, preferences.is_actionable, preferences.difficulty]
        if self.limit_conditioned:
            interval = self.problem.interval(x, preferences)
            spread = self.problem.range[self.columns].to(x)
            inputs.append(interval.headroom(x[..., self.columns], spread))
        return torch.cat([t.to(z.dtype).expand(len(self), -1, -1) for t in inputs], -1)

    def mask_logits(self, context: Tensor) -> Tensor:
        """Return the log-odds of acting on each actionable feature, with shape (M, N, K).

        Their sigmoid is q.
        """
        return self.mask(context)

    def action_values(self, x: Tensor, context: Tensor, m: Tensor) -> Tensor:
        """Return the values a_j of the actionable features, with shape (M, N, K).

        Arguments:
            x: People, with shape (M, N, D).
            context: As `context` gives it.
            m: Which features are acted on (0 or 1), with shape (M, N,
                K).
        """
        return x[..., self.columns] + self.action(torch.cat([context, m], -1))

    def batch(
        self, factual: Mapping[str, Tensor], preferences: Preferences, noise: Tensor
    ) -> dict[str, Tensor]:
        """Return what `loss_terms` reads, by name, each with shape (M, N, *).

        Arguments:
            factual: As `CausalFlow.factual` gives it, each tensor
                with shape (N, D) or (M, N, D).
            preferences: With scores (N, K) or (M, N, K).
            noise: Logistic noise, the difference of two Gumbel draws,
                with shape (M, N, K).
        """
        rows = dict(factual) | {
            "context": self.context(factual["x"], factual["z"], preferences),
            "is_allowed": preferences.is_actionable,
            "weight": preferences.weight,
            "prior": self._prior(preferences),
            "noise": noise,
        }
        if self.limit_conditioned:
            interval = self.problem.interval(factual["x"], preferences)
            rows["is_allowed"] = interval.is_allowed
            rows |= {"low": interval.low, "high": interval.high}
        return {
            name: row.to(noise.dtype).expand(len(self), -1, -1)
            for name, row in rows.items()
        }

    def _prior(self, preferences: Preferences) -> Tensor:
        """Return each member's prior, with shape (M, N, K)."""
        if preferences.scores.ndim == 2:
            return torch.stack([s.prior(preferences) for s in self.settings])
        pairs = enumerate(self.settings)
        return torch.stack([s.prior(preferences.members(i)) for i, s in pairs])

    def _setting(self, name: str) -> Tensor:
        """Return a setting of each member, with shape (M, 1); NaN for "lagrangian"."""
        values = [getattr(s, name) for s in self.settings]
        numbers = [math.nan if value == "lagrangian" else value for value in values]
        return torch.tensor(numbers, dtype=self.problem.flow.dtype)[:, None]

    def _has(self, name: str, value: str) -> Tensor:
        """Return of which members a setting is this one, with shape (M, 1)."""
        return torch.tensor([[getattr(s, name) == value] for s in self.settings])

    def loss(self, terms: Mapping[str, Tensor], multiplier: Tensor) -> Tensor:
        """Return the loss of all members in sum, with shape ().

        Arguments:
            terms: As `loss_terms` gives them.
            multiplier: Lagrange multiplier of the hinge, with shape
                (M,); for members whose `Settings.hinge` has one.
        """
        weights = {name: self._setting(name)[:, 0] for name in TERMS}
        lagrangian = multiplier - DAMPING * terms["hinge"].detach()
        is_fixed = ~weights["hinge"].isnan()
        weights["hinge"] = torch.where(is_fixed, weights["hinge"], lagrangian)
        return torch.stack([weights[name] * terms[name] for name in TERMS]).sum()

    def loss_terms(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        r"""Return the five terms of the loss, each a mean over the batch, with shape (M,).

        The mask is drawn by the Gumbel trick: 0 or 1 in value, with
        the slope of the relaxed one (straight-through). It is
        multiplied by A_u, so that nobody acts on what they can't.

        Arguments:
            batch: Tensors with leading axes (M, B), cut from what
                `batch` gives.
        """
        problem, x, is_allowed = self.problem, batch["x"], batch["is_allowed"]
        logits = self.mask_logits(batch["context"])
        soft = torch.sigmoid((logits + batch["noise"]) / self._setting("tau")[..., None])
        hard = (soft > 0.5).to(soft.dtype)
        m = (hard + soft - soft.detach()) * is_allowed  # its gradient is that of soft
        a = self.action_values(x, batch["context"], m)
        if self.limit_conditioned:
            a = Interval(is_allowed > 0, batch["low"], batch["high"]).soft_clamp(a)
        x_cf, log_p_cf = problem.flow.act(batch, self.columns, m, a)
        divergence = kl_divergence(
            Bernoulli(logits=logits, validate_args=False),
            Bernoulli(batch["prior"], validate_args=False),
        )
        by_person = {
            "cost": problem.action_cost(x[..., self.columns], m, a, batch["weight"]),
            "mask": (is_allowed * divergence).sum(-1),
            "hinge": self._hinge(problem.log_odds(x_cf)),
            "plausibility": self._implausibility(batch["log_p"].sum(-1), log_p_cf),
            "feasibility": problem.out_of_range(x_cf),
        }
        return {name: term.mean(-1) for name, term in by_person.items()}

    def _hinge(self, log_odds: Tensor) -> Tensor:
        """Return what each person lacks of the margin, with shape (M, N)."""
        margin, saturation = self._setting("margin"), self._setting("saturation")
        on_probability = (margin - (2 * log_odds.sigmoid() - 1)).relu()
        on_log_odds = saturating((margin - log_odds).relu(), saturation)
        is_printed = self._has("margin_on", "probability")
        return torch.where(is_printed, on_probability, on_log_odds)

    def _implausibility(self, log_p: Tensor, log_p_cf: Tensor) -> Tensor:
        """Return -log p(x_cf) of each person, or by how much log p falls, (M, N)."""
        drop = saturating((log_p - log_p_cf).relu(), self._setting("saturation"))
        return torch.where(self._has("plausibility_form", "nll"), -log_p_cf, drop)

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the member's recommendation, each part with shape (N, D).

        A feature is acted on where its probability, the one used in
        training, is above one half and the person can. Values may be
        fractions: where a population has whole numbers, hand the
        result to `Problem.discretise`.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K), under the profile
                of the training.
        Raises: ValueError: this is an ensemble of several; shapes
            differ, x holds NaN, or someone is accepted already; the
            profile is another.
        """
        if len(self) > 1:
            raise ValueError(
                f"This ensemble holds {len(self)} members: ask one, icarma.best or "
                "icarma[3], or all of them, icarma.recommend_each(x, preferences)."
            )
        return self.recommend_each(x, preferences)[0]

    @torch.no_grad()
    def recommend_each(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return every member's recommendation, each part with shape (M, N, D).

        Arguments and errors as for `recommend`.
        """
        self.problem.check(x, preferences)
        if preferences.profile != self.profile:
            raise ValueError(
                f"The networks were trained under {self.profile}, the preferences carry "
                f"{preferences.profile}. Take preferences.with_profile(icarma.profile), or "
                "train networks under the other profile."
            )
        batches = [
            self._recommend(x[rows], preferences[rows])
            for rows in torch.arange(len(x)).split(PEOPLE_BATCH_SIZE)
        ]
        return Recommendation(
            *(torch.cat(values, 1) for values in zip(*batches, strict=True))
        )

    def _recommend(
        self, x: Tensor, preferences: Preferences
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what is acted on, the values, and the features after, each (M, N, D)."""
        problem, n_features = self.problem, x.shape[-1]
        z, interval = problem.flow.abduct(x), problem.interval(x, preferences)
        context = self.context(x, z, preferences)
        m = ((self.mask_logits(context) > 0) & interval.is_allowed).to(x.dtype)
        x, z = x.expand(len(self), -1, -1), z.expand(len(self), -1, -1)
        a = self.action_values(x, context, m)
        if self.limit_conditioned:
            a = interval.soft_clamp(a)
        if problem.population.limits is not None:
            a = interval.project(a)
        elif preferences.limits is not None:
            # those who state no limits get what they would get alone
            is_limited = preferences.limits.is_stated.any(-1, keepdim=True)
            a = torch.where(is_limited, interval.project(a), a)
        is_acted = scatter_to_features(m, self.columns, n_features) > 0.5
        values = torch.where(is_acted, scatter_to_features(a, self.columns, n_features), x)
        x_cf = problem.flow.counterfactual(x, is_acted, values, z)
        return is_acted, values, x_cf

    def _header(self) -> dict[str, Any]:
        """Return what rebuilds the ensemble beside its weights, as JSON can hold it."""
        return {
            "seeds": self.seeds,
            "settings": [asdict(s) for s in self.settings],
            "profile": asdict(self.profile),
            "limit_conditioned": self.limit_conditioned,
            "best_index": self.best_index,
        }

    @classmethod
    def _rebuilt(
        cls, problem: Problem, weights: Mapping[str, Tensor], header: Mapping[str, Any]
    ) -> "ICarma":
        """Return the ensemble with these weights, frozen."""
        settings = [io.from_dict(Settings, entries) for entries in header["settings"]]
        profile = io.from_dict(Profile, header["profile"])
        icarma = cls(problem, **{**header, "settings": settings, "profile": profile})
        icarma.load_state_dict(dict(weights), strict=True)
        return icarma.requires_grad_(False)

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `io.save`.

        The fingerprint of the problem's population goes with it.
        """
        fingerprint = self.problem.population.fingerprint
        return io.save(
            folder, name, self.state_dict(), self._header(), made_with, fingerprint
        )

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "ICarma":
        """Return the ensemble of folder/name.safetensors.

        Raises: ValueError: no such file, it holds no ensemble, or it
            was fitted to another population.
        """
        weights, header = io.load(folder, name, problem.population.fingerprint)
        with io.loading("ensemble of iCARMA", folder, name):
            return cls._rebuilt(problem, weights, header)


def save_by_profile(
    ensembles: Mapping[str, ICarma], folder: Path, name: str, made_with: Mapping[str, Any]
) -> Path:
    """Save ensembles of several profiles as one file, and return its path.

    Arguments:
        ensembles: By the name of their profile.
    """
    weights = io.flatten({key: e.state_dict() for key, e in ensembles.items()})
    headers = {key: e._header() for key, e in ensembles.items()}
    fingerprint = next(iter(ensembles.values())).problem.population.fingerprint
    return io.save(folder, name, weights, headers, made_with, fingerprint)


def load_by_profile(folder: Path, name: str, problem: Problem) -> dict[str, ICarma]:
    """Return the ensembles that `save_by_profile` saved, by the name of their profile."""
    weights, headers = io.load(folder, name, problem.population.fingerprint)
    by_profile = io.unflatten(weights)
    with io.loading("ensembles of iCARMA", folder, name):
        return {
            key: ICarma._rebuilt(problem, by_profile[key], header)
            for key, header in headers.items()
        }


def saturating(penalty: Tensor, level: Tensor | float) -> Tensor:
    """Return a penalty that approaches a level and never exceeds it.

    Of somebody whom no action helps, a penalty without a bound would
    weigh more than that of everybody who can be helped.

    Arguments:
        penalty: Zero or more, with any shape.
        level: Above zero, infinite for none; a number, or a shape
            that expands to that of the penalty.
    Example:
        >>> saturating(torch.tensor([0.0, 4.0, 1e9]), 4.0)
        tensor([0., 2., 4.])
    """
    return penalty / (1 + penalty / level)


def fit(
    problem: Problem,
    samplers: Sampler | Sequence[Sampler],
    settings: Settings | Sequence[Settings] | None = None,
    seeds: Sequence[int] = (0,),
    progress: Callable[[range], Iterable[int]] | None = None,
    after_epoch: Callable[[int, ICarma], None] | None = None,
) -> tuple[ICarma, pd.DataFrame]:
    r"""Train an ensemble on the refused people of the training split.

    Preferences are drawn anew for every person in every epoch; an
    epoch ends with the last full batch. Each member has its own
    random stream, so that its result does not depend on who is
    trained beside it (up to rounding).

    Where `Settings.hinge` is "lagrangian", the hinge has a Lagrange
    multiplier, as in CARMA's code. It begins at zero and grows with
    every batch by the hinge H of that batch; the weight is
    :math:`\lambda - 10 H`.

    Arguments:
        samplers, settings: Of each of the M members; one alone serves
            them all. Settings left out: the paper's. Where a sampler
            draws limits, the networks are conditioned on them; limits
            of the population alone only bind their answers.
        seeds: Of each member.
        progress: Wraps the range of epochs; None: a progress bar.
        after_epoch: Called with the number of epochs done and the
            ensemble as it stands.
    Returns: The ensemble, and a table of the mean of each loss term
        (see `TERMS`), with the index (term, epoch) and a column a
        seed. `icarma.best` is the member with the lowest mean
        unweighted cost of valid recommendations plus share of people
        who stay refused, on refused validation people with
        preferences drawn by the first member's sampler (appendix
        C.2.4).
    Raises: ValueError: lists of different lengths; profiles or shared
        settings differ; no one is refused; the classifier has no
        gradient; the fit diverges.
    Warns: UserWarning: the best member helps hardly anybody of the
        people it was trained on.
    Source: CARMA's multiplier: its public code, see notebook 03.
    """
    settings = Settings() if settings is None else settings
    settings = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    samplers = list(samplers) if isinstance(samplers, Sequence) else [samplers] * len(seeds)
    if not len(samplers) == len(settings) == len(seeds) > 0:
        raise ValueError(
            "Expected one sampler, one setting and one seed a member, got "
            f"{len(samplers)}, {len(settings)} and {len(seeds)}."
        )
    x = problem.refused("train")
    if len(x) == 0:
        raise ValueError(
            "Nobody in the training split is refused: there is no one to train on. Draw "
            "more people, or see that the classifier gives log-odds, 0 or above for yes."
        )
    examples = [s.draw(range(len(x)), np.random.default_rng(0)) for s in samplers]
    drawn = preferences_of.stack(examples)
    icarma = ICarma(problem, settings, seeds, drawn.profile, drawn.limits is not None)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    icarma.mask.draw_weights(rngs)
    icarma.action.draw_weights(rngs)
    how = settings[0]
    adam = torch.optim.Adam(
        icarma.parameters(), how.learning_rate, weight_decay=how.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, how.n_epochs)
    multiplier = torch.zeros(len(seeds), dtype=x.dtype)
    factual = problem.flow.factual(x)
    batch_size = min(how.batch_size, len(x))
    n_batches = len(x) // batch_size
    progress = progress or io.progress_bar("iCARMA")
    history = np.zeros((len(TERMS), how.n_epochs, len(seeds)))
    for epoch in progress(range(how.n_epochs)):
        people = _draw_epoch(icarma, samplers, factual, rngs)
        for i in range(n_batches):
            rows = slice(i * batch_size, (i + 1) * batch_size)
            terms = icarma.loss_terms({name: t[:, rows] for name, t in people.items()})
            multiplier += terms["hinge"].detach()
            adam.zero_grad()
            icarma.loss(terms, multiplier).backward()
            adam.step()
            history[:, epoch] += torch.stack(list(terms.values())).detach().numpy()
        history[:, epoch] /= n_batches
        means = history[:, epoch].sum(-1)
        checks.converging("networks", epoch, dict(zip(TERMS, means, strict=True)))
        if how.cosine_schedule:
            schedule.step()
        if after_epoch is not None:
            after_epoch(epoch + 1, icarma)
    icarma.requires_grad_(False)
    if len(seeds) > 1:
        icarma.best_index = _best_member(icarma, samplers)
    drawn = examples[icarma.best_index]
    recommendation = problem.discretise(x, icarma.best.recommend(x, drawn))
    n_helped = int(problem.accepts(recommendation.x_cf).sum())
    if n_helped < HELPS_NOBODY * len(x):
        warnings.warn(
            f"iCARMA helps {n_helped} of the {len(x)} people that it was trained on, in "
            f"{n_batches * how.n_epochs} steps. Train for more epochs, Settings(n_epochs="
            f'{4 * how.n_epochs}), bring more people, or take solver="search".',
            stacklevel=2,
        )
    epochs = pd.RangeIndex(1, how.n_epochs + 1)
    tables = [pd.DataFrame(means, epochs, icarma.seeds) for means in history]
    return icarma, pd.concat(tables, keys=TERMS, names=["term", "epoch"])


def _draw_epoch(
    icarma: ICarma,
    samplers: Sequence[Sampler],
    factual: Mapping[str, Tensor],
    rngs: Sequence[np.random.Generator],
) -> dict[str, Tensor]:
    """Return the people of an epoch as `ICarma.loss_terms` reads them, in random order."""
    x = factual["x"]
    orders = [rng.permutation(len(x)) for rng in rngs]
    draws = zip(samplers, orders, rngs, strict=True)
    drawn = preferences_of.stack([s.draw(order, rng) for s, order, rng in draws])
    uniform = np.stack([rng.random((len(x), len(icarma.columns))) for rng in rngs])
    noise = torch.logit(torch.from_numpy(uniform), eps=1e-9).to(x.dtype)
    order = torch.from_numpy(np.stack(orders))
    shuffled = {name: values[order] for name, values in factual.items()}
    return icarma.batch(shuffled, drawn, noise)


def _best_member(icarma: ICarma, samplers: Sequence[Sampler]) -> int:
    """Return the member with the lowest cost plus share refused on validation people."""
    problem = icarma.problem
    x = problem.refused("validation")
    if len(x) == 0:
        return 0
    preferences = samplers[0].draw(range(len(x)), np.random.default_rng(0))
    recommendation = problem.discretise(x, icarma.recommend_each(x, preferences))
    is_valid = problem.accepts(recommendation.x_cf)
    cost = problem.cost_of(x, recommendation)
    mean_cost = (cost * is_valid).sum(-1) / is_valid.sum(-1)
    score = mean_cost + 1 - is_valid.to(cost.dtype).mean(-1)
    return int(score.nan_to_num(math.inf).argmin())
