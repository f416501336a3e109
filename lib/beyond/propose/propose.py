"""Propose and verify: recourse in a network's time, at nearly a search's cost.

A network proposes values for every set of features at once. The
classifier and the flow then verify the proposals, and a short local
search improves the best of them. So the network may be wrong: what is
returned is valid and plausible.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib import checks, io
from lib.method.limits import Interval
from lib.method.preferences import Preferences
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    check_bounds,
    is_plausible,
    is_valid,
    scatter_to_features,
)
from lib.search.descent import LEAST_WEIGHT, descend, descend_from_neighbours, sobol_starts
from lib.search.evaluator import ActionEvaluator, Incumbents, penalised_cost
from lib.search.sets import contains, sets_of

TERMS = ("cost", "hinge", "plausibility", "feasibility", "imitation")
PEOPLE_BATCH_SIZE = 4_096

# by how much more the fallback asks the network for, as shares of max_margin and max_gain
FALLBACK_MARGIN, FALLBACK_GAIN = 0.3, 0.6


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


@dataclass(frozen=True)
class LocalSearch:
    """Hold how proposals are improved; see `Proposer.recommend`.

    Arguments:
        n_sets: Descents start from the best proposals on so many sets
            of features.
        n_steps: Of each descent.
        has_fallback: Whether there are more descents for people whom
            these do not help.
        n_fallback_steps, n_samples: Steps of each of those, and on how
            many scattered actions each looks for a start (a power of
            two).
    Raises: ValueError: a number is no whole number above zero.
    """

    n_sets: int = 4
    n_steps: int = 5
    n_fallback_steps: int = 10
    n_samples: int = 32
    has_fallback: bool = True

    def __post_init__(self) -> None:
        numbers = asdict(self)
        del numbers["has_fallback"]
        checks.positive_int(**numbers)


LOCAL_SEARCH = LocalSearch()


@dataclass(frozen=True)
class _Query:
    """Hold people (N, D), what they can do, and what an action must reach.

    Arguments:
        is_open: Which of S sets they may act on, with shape (N, S).
        weights: Of their cost, with shape (N, K).
        interval: To what values they may set features, (N, K).
    """

    x: Tensor
    is_open: Tensor
    weights: Tensor
    interval: Interval
    margin: float
    slack: float

    def __getitem__(self, rows: Tensor) -> "_Query":
        x, is_open, weights = self.x[rows], self.is_open[rows], self.weights[rows]
        return _Query(x, is_open, weights, self.interval[rows], self.margin, self.slack)


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
        local_search: LocalSearch | None = LOCAL_SEARCH,
    ) -> Recommendation:
        """Return each person's cheapest verified action, or none, each part (N, D).

        Proposals on all sets that a person may act on are verified.
        Descents start from those with the lowest `penalised_cost`.
        The fallback, for people whom that does not help: descents on
        all of their sets, from proposals with a larger margin and
        from the best of a few scattered actions. Where a population
        has whole numbers, actions and their consequences are whole.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K); the cost is
                weighted by `preferences.weight`.
            margin: Log-odds that a positive decision must have.
            slack: Nats of log-density that may be given up; below
                zero: that must be gained.
            local_search: How proposals are improved; None: they are
                only verified.
        Raises: ValueError: as `Problem.check`; margin or slack are
            out of their range.
        Example:
            >>> proposer = Proposer.load(io.MODELS, "loan_propose", problem)
            >>> x = problem.refused("test")[:3]
            >>> all_easy = Preferences(torch.ones(3, 4, dtype=torch.long))
            >>> problem.accepts(proposer.recommend(x, all_easy).x_cf)
            tensor([True, True, True])
        """
        self.problem.check(x, preferences)
        check_bounds(margin, slack)
        interval = self.problem.interval(x, preferences)
        is_open = contains(interval.is_allowed, self.sets)
        weights = preferences.weight.to(x)
        query = _Query(x, is_open, weights, interval, margin, slack)
        batches = torch.arange(len(x)).split(PEOPLE_BATCH_SIZE)
        answers = [self._recommend(query[rows], local_search) for rows in batches]
        return Recommendation(*(torch.cat(t) for t in zip(*answers, strict=True)))

    def _recommend(
        self, query: _Query, local_search: LocalSearch | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what is acted on, the values, and the features after, each (N, D)."""
        scores, costs, values = self._initial(query)
        if local_search is not None:
            n_sets = min(local_search.n_sets, len(self.sets))
            best = scores.topk(n_sets, largest=False).indices
            is_tried = torch.zeros_like(query.is_open).scatter(1, best, True)
            is_tried &= query.is_open
            improved = self._descend(query, is_tried, [values], local_search.n_steps)
            is_cheaper = (improved[0] < costs)[..., None]
            costs = torch.minimum(improved[0], costs)
            values = torch.where(is_cheaper, improved[1], values)
        stuck = ~costs.isfinite().any(-1)
        if stuck.any() and (local_search is None or local_search.has_fallback):
            costs[stuck], values[stuck] = self._fall_back(query[stuck], local_search)
        cost, which = costs.min(-1)
        people = torch.arange(len(cost))
        action = values[people, which]
        has_whole = self.problem.population.discretisation is not None
        if local_search is not None and (has_whole or query.interval.step is not None):
            incumbents = Incumbents.empty(action)
            incumbents.cost = cost.clone()
            evaluator = self._evaluator(query, people, which)
            descend_from_neighbours(evaluator, incumbents, local_search.n_steps)
            action = incumbents.values
        return self._outcome(query.x, self.sets[which] & cost.isfinite()[:, None], action)

    def _initial(self, query: _Query) -> tuple[Tensor, Tensor, Tensor]:
        """Return where descents start.

        Returns: By what they are chosen, the lowest first, and the
            cost where an action is verified, both with shape (N, S)
            and infinite otherwise; values (N, S, K).
        """
        values = self.propose(query.x, query.weights, query.margin, query.slack)
        return self._verify(query, values)

    def _fall_back(
        self, query: _Query, local_search: LocalSearch | None
    ) -> tuple[Tensor, Tensor]:
        """Return costs (N, S) and values (N, S, K) of proposals with a larger margin."""
        margin = query.margin + FALLBACK_MARGIN * self.settings.max_margin
        slack = query.slack - FALLBACK_GAIN * self.settings.max_gain
        values = self.propose(query.x, query.weights, margin, slack)
        if local_search is None:
            return self._verify(query, values)[1:]
        effort = local_search.n_fallback_steps, local_search.n_samples
        return self._descend(query, query.is_open, [values], *effort)

    def _verify(self, query: _Query, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return penalised cost, cost if verified, and the values as people can have them.

        The first two have shape (N, S), and are infinite where they
        do not apply; values have shape (N, S, K).
        """
        people, which = query.is_open.nonzero(as_tuple=True)
        evaluator = self._evaluator(query, people, which)
        feasible = evaluator.project(values[people, which])
        outcome = evaluator(feasible)
        is_verified = is_valid(outcome.log_odds, tolerance=ROUNDING)
        is_verified &= is_plausible(outcome.gain, tolerance=ROUNDING)
        scores = values.new_full(query.is_open.shape, torch.inf)
        costs, values = scores.clone(), values.clone()
        scores[people, which] = penalised_cost(outcome)
        costs[people, which] = torch.where(is_verified, outcome.cost, torch.inf)
        values[people, which] = feasible
        return scores, costs, values

    def _descend(
        self,
        query: _Query,
        is_tried: Tensor,
        starts: list[Tensor],
        n_steps: int,
        n_samples: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Return costs (N, S) and values (N, S, K) that descents find on some sets.

        Arguments:
            is_tried: The sets, a mask with shape (N, S).
            starts: A descent starts from each, with shape (N, S, K).
            n_samples: Another starts from the best of so many
                scattered actions; 0: none.
        """
        people, which = is_tried.nonzero(as_tuple=True)
        evaluator = self._evaluator(query, people, which)
        incumbents = Incumbents.empty(evaluator.factual)
        begin = [values[people, which] for values in starts]
        if n_samples:
            rng = np.random.default_rng(0)
            begin += sobol_starts(evaluator, incumbents, n_samples, 1, rng)
        for start in begin:
            descend(evaluator, start, incumbents, n_steps)
        values = self._factual_values(query.x)
        costs = values.new_full(is_tried.shape, torch.inf)
        costs[people, which] = incumbents.cost
        values[people, which] = incumbents.values
        return costs, values

    def _evaluator(self, query: _Query, people: Tensor, which: Tensor) -> ActionEvaluator:
        """Return the evaluator of actions of some people on some sets, each (R,)."""
        return ActionEvaluator(
            self.problem,
            self.problem.flow,
            query.x[people],
            self.sets[which],
            query.weights[people],
            query.slack,
            query.margin,
            query.interval[people],
        )

    def _factual_values(self, x: Tensor) -> Tensor:
        """Return people's values before any action, for every set, (N, S, K)."""
        return x[:, None, self.columns].repeat(1, len(self.sets), 1)

    def _outcome(
        self, x: Tensor, acts: Tensor, action: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return a recommendation's tensors, (N, D), from a mask and values (N, K)."""
        is_acted = scatter_to_features(acts.to(x), self.columns, x.shape[-1]) > 0
        values = scatter_to_features(action, self.columns, x.shape[-1])
        values = torch.where(is_acted, values, x)
        x_cf = self.problem.flow.counterfactual(x, is_acted, values)
        return is_acted, values, self.problem.population.round_counterfactual(x, x_cf)

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
            return cls._rebuilt(problem, weights, settings)

    @classmethod
    def _rebuilt(
        cls, problem: Problem, weights: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> "Proposer":
        """Return the proposer with these weights, frozen."""
        proposer = cls(problem, io.from_dict(Settings, settings))
        proposer.load_state_dict(dict(weights), strict=True)
        return proposer.requires_grad_(False)


class WithoutNetwork(Proposer):
    """Hold the local search of a `Proposer` from people's factual values, with no network.

    It shows what the network adds. The largest sets that a person may
    act on are searched first; the fallback starts from scattered
    actions alone. Without a local search it recommends nothing.

    Arguments:
        problem: As for `Proposer`.
    Example:
        >>> baseline = WithoutNetwork(problem)
        >>> x = problem.refused("test")[:3]
        >>> all_easy = Preferences(torch.ones(3, 4, dtype=torch.long))
        >>> problem.accepts(baseline.recommend(x, all_easy).x_cf)
        tensor([True, True, True])
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, Settings(width=1, n_hidden=1))

    def _initial(self, query: _Query) -> tuple[Tensor, Tensor, Tensor]:
        order = self.sets.sum(-1).argsort(descending=True, stable=True)
        rank = order.argsort().to(query.x).expand(query.is_open.shape)
        costs = torch.full_like(rank, torch.inf)
        scores = torch.where(query.is_open, rank, costs)
        return scores, costs, self._factual_values(query.x)

    def _fall_back(
        self, query: _Query, local_search: LocalSearch | None
    ) -> tuple[Tensor, Tensor]:
        if local_search is None:
            return self._initial(query)[1:]
        effort = local_search.n_fallback_steps, local_search.n_samples
        return self._descend(query, query.is_open, [], *effort)


def save_all(
    proposers: Mapping[str, Proposer],
    folder: Path,
    name: str,
    made_with: Mapping[str, Any],
) -> Path:
    """Save proposers for one problem, by name, as one file, and return its path."""
    weights = io.flatten({key: p.state_dict() for key, p in proposers.items()})
    settings = {key: asdict(p.settings) for key, p in proposers.items()}
    fingerprint = next(iter(proposers.values())).problem.population.fingerprint
    return io.save(folder, name, weights, settings, made_with, fingerprint)


def load_all(folder: Path, name: str, problem: Problem) -> dict[str, Proposer]:
    """Return the proposers that `save_all` saved, by name.

    Raises: ValueError: as `Proposer.load`.
    """
    weights, settings = io.load(folder, name, problem.population.fingerprint)
    by_name = io.unflatten(weights)
    with io.loading("proposers", folder, name):
        return {
            key: Proposer._rebuilt(problem, by_name[key], entries)
            for key, entries in settings.items()
        }
