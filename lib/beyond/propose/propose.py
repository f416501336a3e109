"""Propose and verify: recourse in a network's time, at nearly a search's cost.

A network proposes values for every set of features at once. The
classifier and the flow then verify the proposals, and a short local
search improves them. So the network may be wrong: what is returned is
valid and plausible by the classifier and the flow.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lib import checks, io
from lib.method.limits import Interval
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, check_bounds
from lib.search.descent import LEAST_WEIGHT, descend, descend_from_neighbours
from lib.search.evaluator import ActionEvaluator, Incumbents
from lib.search.sets import contains, sets_of

TERMS = ("cost", "hinge", "plausibility", "feasibility", "imitation")
PEOPLE_BATCH_SIZE = 4_096
N_STEPS = 5  # of each descent


@dataclass(frozen=True)
class Settings:
    """Hold how a proposer is trained.

    Arguments:
        cost, hinge, plausibility, feasibility: Weights of four terms
            of the loss, as of `icarma.Settings`.
        imitation: Weight of the fifth, the distance to the actions
            that a search found; without targets there is none.
        saturation: Level that the hinge and the plausibility term of
            one action approach and never exceed.
        extra_margin, extra_gain: Log-odds and nats by which the loss
            asks for more than is demanded.
        max_margin, max_gain: Demands in training are drawn between
            zero and these log-odds and nats.
        n_epochs, batch_size, learning_rate: Of Adam; the learning
            rate falls to zero along a cosine.
        width, n_hidden: Of the hidden layers, and how many.
    Raises: ValueError: a setting is out of its range.
    """

    cost: float = 1.0
    hinge: float = 0.2
    plausibility: float = 1.0
    feasibility: float = 0.1
    imitation: float = 8.0
    saturation: float = 4.0
    extra_margin: float = 0.5
    extra_gain: float = 0.02
    max_margin: float = 8.0
    max_gain: float = 0.05
    n_epochs: int = 450
    batch_size: int = 128
    learning_rate: float = 2e-3
    width: int = 256
    n_hidden: int = 3

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name in ("n_epochs", "batch_size", "width", "n_hidden"):
                checks.positive_int(**{name: value})
            elif name in ("saturation", "max_margin", "max_gain", "learning_rate"):
                checks.positive(**{name: value})
            elif not 0 <= value < math.inf:
                raise ValueError(
                    f"{name} must be zero or above, and finite, got {value!r}."
                )


class Proposer(nn.Module):
    """Hold a network that proposes actions on all S sets of the K actionable features.

    It is a solver; `training.fit` trains one.

    Arguments:
        problem: What it is trained for.
        settings: Its size, and how it is trained.
    Raises: ValueError: the classifier has no gradient, or there are
        more than `sets.MAX_FEATURES` actionable features.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__()
        problem.check_gradient("A proposer")
        self.problem, self.settings = problem, settings
        self.columns = problem.population.actionable_index
        self.sets = sets_of(len(self.columns))
        n_inputs = 2 * len(problem.population.features) + len(self.columns) + 2
        hidden = [settings.width] * settings.n_hidden
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise([n_inputs, *hidden, self.sets.numel()]):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        self.network = nn.Sequential(*layers[:-1]).to(problem.flow.dtype)

    def forward(self, x: Tensor, z: Tensor, weights: Tensor, demands: Tensor) -> Tensor:
        """Return proposed values on every set of features, with shape (N, S, K).

        Arguments:
            x, z: People and their noise, each with shape (N, D).
            weights: Of their cost, with shape (N, K); their ratios
                count.
            demands: Log-odds, and nats to be gained, with shape (N, 2).
        """
        most = torch.tensor([self.settings.max_margin, self.settings.max_gain])
        ratio = weights / weights.mean(-1, keepdim=True).clamp_min(LEAST_WEIGHT)
        inputs = [z, x, ratio.clamp_min(LEAST_WEIGHT).log(), demands / most]
        change = self.network(torch.cat([t.to(x) for t in inputs], -1))
        return x[:, None, self.columns] + change.unflatten(-1, self.sets.shape)

    @torch.no_grad()
    def propose(
        self, x: Tensor, weights: Tensor, margin: float = 0.0, slack: float = 0.0
    ) -> Tensor:
        """Return proposed values on every set, not verified, with shape (N, S, K).

        Arguments:
            x: People, with shape (N, D).
            weights: Of their cost, with shape (N, K).
            margin, slack: As for `recommend`.
        Raises: ValueError: shapes differ; margin or slack are out of
            their range.
        """
        check_bounds(margin, slack)
        checks.shape("weights", weights, (len(x), len(self.columns)))
        demands = torch.tensor([margin, max(-slack, 0.0)]).expand(len(x), -1)
        return self(x, self.problem.flow.abduct(x), weights, demands)

    def recommend(
        self,
        x: Tensor,
        preferences: Preferences,
        margin: float = 0.0,
        slack: float = 0.0,
        n_steps: int = N_STEPS,
    ) -> Recommendation:
        """Return each person's cheapest verified action, or none, each part (N, D).

        The network proposes an action on every set of features. Those
        that a person can carry out are verified, and a descent starts
        from each. Where a population has whole numbers, actions and
        their consequences are whole.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K); the cost is
                weighted by `preferences.weight`.
            margin: Log-odds that a positive decision must have.
            slack: Nats of log-density that may be given up; below
                zero: that must be gained.
            n_steps: Of each descent; 0: proposals are only verified.
        Raises: ValueError: as `Problem.check`; margin, slack or
            n_steps are out of their range.
        Example:
            >>> proposer = Proposer.load(io.MODELS, "loan_propose", problem)
            >>> x = problem.refused("test")[:3]
            >>> all_easy = Preferences(torch.ones(3, 4, dtype=torch.long))
            >>> problem.accepts(proposer.recommend(x, all_easy).x_cf)
            tensor([True, True, True])
        """
        self.problem.check(x, preferences)
        check_bounds(margin, slack)
        weights, interval = preferences.weight.to(x), self.problem.interval(x, preferences)
        bounds, answers = (margin, slack), []
        for rows in torch.arange(len(x)).split(PEOPLE_BATCH_SIZE):
            people = x[rows], weights[rows], interval[rows]
            answers.append(self._recommend(*people, *bounds, n_steps))
        parts = zip(*(vars(answer).values() for answer in answers), strict=True)
        return Recommendation(*(torch.cat(tensors) for tensors in parts))

    def _recommend(
        self,
        x: Tensor,
        weights: Tensor,
        interval: Interval,
        margin: float,
        slack: float,
        n_steps: int,
    ) -> Recommendation:
        """Return the recommendations of one batch of people."""
        proposed = self.propose(x, weights, margin, slack)
        is_open = contains(interval.is_allowed, self.sets)
        people, which = is_open.nonzero(as_tuple=True)  # R pairs of a person and a set

        def evaluator_of(people: Tensor, sets: Tensor) -> ActionEvaluator:
            of_people = x[people], sets, weights[people], slack, margin, interval[people]
            return ActionEvaluator(self.problem, self.problem.flow, *of_people)

        evaluator = evaluator_of(people, self.sets[which])
        start = evaluator.project(proposed[people, which])  # (R, K)
        verified = Incumbents.empty(start)
        verified.update(start, evaluator(start))
        if n_steps:
            descend(evaluator, start, verified, n_steps)

        costs = proposed.new_full(is_open.shape, torch.inf)  # (N, S)
        costs[people, which] = verified.cost
        proposed[people, which] = verified.values
        cost, which = costs.min(-1)
        everybody = torch.arange(len(x))
        sets = self.sets[which] & cost.isfinite()[:, None]  # no action where there is none
        evaluator = evaluator_of(everybody, sets)
        best = Incumbents.empty(proposed[everybody, which])
        best.cost = cost
        if n_steps:
            descend_from_neighbours(evaluator, best, n_steps)
        return evaluator.recommendation(best.values)

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `io.save`."""
        fingerprint = self.problem.population.fingerprint
        settings = asdict(self.settings)
        return io.save(folder, name, self.state_dict(), settings, made_with, fingerprint)

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "Proposer":
        """Return the proposer of folder/name.safetensors.

        Raises: ValueError: no such file, it holds no proposer, or it
            was fitted to another population.
        """
        weights, settings = io.load(folder, name, problem.population.fingerprint)
        with io.loading("proposer", folder, name):
            proposer = cls(problem, io.from_dict(Settings, settings))
            proposer.load_state_dict(weights, strict=True)
        return proposer.requires_grad_(False)
