"""What actions come to: cost, decision and plausibility, many of them in one batch.

A row is an action of one person on one set of features. The search
and the proposer evaluate millions of actions; so only what an action
can move is computed anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from zuko.transforms import Transform

from lib import checks
from lib.method.limits import Interval
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    check_bounds,
    is_plausible,
    is_valid,
)
from lib.method.scm import CausalModel

# by which a consequence is moved up and down before it is made whole (in standard
# deviations): one on the edge between two whole numbers can fall to either side
EDGE = 1e-5
PENALTY = 4.0  # weight beside the cost of a unit of log-odds, or a nat, that is missing


class Outcome(NamedTuple):
    """Hold what R actions come to, each with shape (R,).

    Arguments:
        cost: Weighted.
        log_odds: Of a positive decision, less the margin: zero or
            more is valid.
        gain: Change of the log-density in nats, with the slack added:
            zero or more is plausible.
    """

    cost: Tensor
    log_odds: Tensor
    gain: Tensor


class ActionEvaluator:
    """Evaluate actions: their cost, the decision, the change of log-density; a row each.

    Arguments:
        problem: Its classifier decides, its flow measures.
        model: Where actions take effect; None: the problem's own.
        x: Whose action it is, with shape (R, D).
        mask: Which of the K actionable features are acted on, with
            shape (R, K), bool.
        weights: Of the cost, with shape (R, K).
        slack: Nats by which the log-density may fall; below zero: by
            which it must rise; infinite: it does not matter.
        margin: Log-odds that a positive decision must have.
        interval: To what values features may be set, with shape
            (R, K); None: to any within the range of the data.
    Raises: ValueError: a shape is another, slack is not a number,
        margin is below zero, or the model's graph is not the flow's.
    """

    def __init__(
        self,
        problem: Problem,
        model: CausalModel | None,
        x: Tensor,
        mask: Tensor,
        weights: Tensor,
        slack: float = 0.0,
        margin: float = 0.0,
        interval: Interval | None = None,
    ) -> None:
        self.columns = columns = problem.population.actionable_index
        checks.people("x", x, problem.population.features)
        checks.shape("mask", mask, (len(x), len(columns)))
        checks.shape("weights", weights, mask.shape)
        check_bounds(margin, slack)
        self.problem, self.model = problem, problem.resolve_model(model)
        self.x, self.mask, self.weights = x, mask, weights
        self.slack, self.margin = slack, margin
        if interval is None:
            ends = torch.stack([problem.population.low, problem.population.high])
            low, high = ends[:, None, columns].to(x).expand(2, *mask.shape)
            interval = Interval(mask, low, high)
        self.interval = interval
        self.factual = x[:, columns]
        self.is_acted = torch.zeros_like(x, dtype=torch.bool)
        self.is_acted[:, columns] = mask
        self._index = torch.tensor(columns)
        self._affected = self.model.affected(self.is_acted)
        self._movable = problem.flow.graph.affected_by(columns)

    def __getitem__(self, rows: Tensor) -> "ActionEvaluator":
        """Return the evaluator of some of these rows, once or several times each."""
        x, mask, weights = self.x[rows], self.mask[rows], self.weights[rows]
        how = (self.slack, self.margin, self.interval[rows])
        return ActionEvaluator(self.problem, self.model, x, mask, weights, *how)

    def __call__(self, values: Tensor) -> Outcome:
        """Return what setting features to values (R, K) comes to.

        Where consequences lie on the edge between two whole numbers,
        the worst counts: as they are, all a little lower, or all a
        little higher.
        """
        x_cf, transforms = self._propagate(values)
        feasible, cached = self._round(x_cf), self._fixed_transforms
        if feasible is x_cf:  # then the causes are those of the walk, too
            cached = cached | transforms
        log_odds = self._log_odds(feasible)
        gain = self._log_density(feasible, cached) - self._min_log_density
        discretisation = self.problem.population.discretisation
        if discretisation is None:
            return Outcome(self.cost(values), log_odds, gain)
        is_moved = ~self.is_acted & (x_cf.detach() != self.x)
        # wide whole numbers (money) have edges everywhere, and one more is little
        has_edges = discretisation.is_whole & (self.problem.population.std < 0.1 / EDGE)
        offset = EDGE * (has_edges & is_moved)
        for beside in (self._round(x_cf - offset), self._round(x_cf + offset)):
            (rows,) = (beside != feasible).any(-1).nonzero(as_tuple=True)  # mostly few
            if len(rows):
                there, cached = beside[rows], self._transforms_of_fixed(self.x[rows])
                gain_there = self._log_density(there, cached) - self._min_log_density[rows]
                log_odds = _lower_at(rows, log_odds, self._log_odds(there))
                gain = _lower_at(rows, gain, gain_there)
        return Outcome(self.cost(values), log_odds, gain)

    def cost(self, values: Tensor) -> Tensor:
        """Return what setting features to values (R, K) costs, with shape (R,)."""
        return self.problem.action_cost(self.factual, self.mask, values, self.weights)

    def project(self, values: Tensor) -> Tensor:
        """Return the nearest values that these people can choose, with shape (R, K).

        They are within the interval, whole where a person can't have
        fractions, and the factual ones where a row does not act.
        """
        population, values = self.problem.population, self.interval.project(values)
        if population.discretisation is not None:
            acted = population.round_counterfactual(self.x, self._set(values))
            values = acted[:, self.columns]
        return torch.where(self.mask, values, self.factual)

    def recommendation(self, values: Tensor) -> Recommendation:
        """Return the action of each row as a recommendation; values with shape (R, K).

        Where a population has whole numbers, its consequences are as
        people can have them; their gradient goes straight through.

        Raises: ValueError: values are not finite.
        """
        acted = self._set(values)
        checks.people("values", acted, self.problem.population.features)
        x_cf, _ = self._propagate(values)
        return Recommendation(self.is_acted, acted, self._round(x_cf))

    @cached_property
    def _fixed_transforms(self) -> dict[int, Transform]:
        """The flow's transforms of features whose causes no action moves, by column."""
        return self._transforms_of_fixed(self.x)

    @cached_property
    @torch.no_grad()
    def _min_log_density(self) -> Tensor:
        """The log-density that must be reached, with shape (R,)."""
        return self._log_density(self.x, self._fixed_transforms) - self.slack

    @cached_property
    @torch.no_grad()
    def _noise(self) -> Tensor:
        """What these people keep whatever they do, with shape (R, D)."""
        return self.model.counterfactual_noise(self.x, self.model.abduct(self.x))

    @torch.no_grad()
    def _transforms_of_fixed(self, x: Tensor) -> dict[int, Transform]:
        """Return `_fixed_transforms` of people with shape (*, D)."""
        flow = self.problem.flow
        return flow.transforms(x, flow.graph.roots_within(self._movable))

    def _set(self, values: Tensor) -> Tensor:
        """Return all features (R, D), those acted on with these values (R, K)."""
        chosen = torch.where(self.mask, values, self.factual)
        return self.x.index_copy(1, self._index, chosen)

    def _propagate(self, values: Tensor) -> tuple[Tensor, dict[int, Transform]]:
        """Return features (R, D) after the action, and the flow's transforms on the way."""
        columns, flow = self._set(values).unbind(-1), self.problem.flow
        transforms: dict[int, Transform] = {}
        if self.model is flow:
            after = flow.propagate(columns, self._affected, self._noise, transforms)
        else:
            after = self.model.propagate(columns, self._affected, self._noise)
        return torch.stack(after, -1), transforms

    def _round(self, x_cf: Tensor) -> Tensor:
        """Return features after an action as people can have them; gradients pass."""
        population = self.problem.population
        if population.discretisation is None:
            return x_cf
        rounded = population.round_counterfactual(self.x, x_cf.detach())
        return rounded + (x_cf - x_cf.detach())

    def _log_density(self, x: Tensor, cached: Mapping[int, Transform]) -> Tensor:
        """Return the log-density of the features that can move, with shape (R,)."""
        return self.problem.flow.log_prob_terms(x, self._movable, cached).sum(-1)

    def _log_odds(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, less the margin, with shape (R,)."""
        return self.problem.log_odds(x) - self.margin


def _lower_at(rows: Tensor, values: Tensor, others: Tensor) -> Tensor:
    """Return values (R,), at some rows the lower of them and others, one for each row."""
    return values.index_copy(0, rows, torch.minimum(values[rows], others))


@dataclass
class Incumbents:
    """Hold the best actions so far, a row an action.

    Arguments:
        cost: Of the cheapest valid and plausible action, infinite
            where there is none, with shape (R,).
        values: Of that action, or anything, with shape (R, K).
        log_odds: The highest seen of plausible actions, with shape
            (R,); minus infinity if none was plausible.
        gain: The highest change of log-density seen of valid actions,
            with shape (R,); minus infinity if none was valid.
    """

    cost: Tensor
    values: Tensor
    log_odds: Tensor
    gain: Tensor

    @classmethod
    def empty(cls, values: Tensor) -> "Incumbents":
        """Return incumbents before any action was seen, with these values (R, K)."""
        none = torch.full(values.shape[:-1], torch.inf, dtype=values.dtype)
        return cls(none, values.clone(), -none, -none)

    def update(
        self, values: Tensor, outcome: Outcome, rows: Tensor | slice = slice(None)
    ) -> None:
        """Replace what is worse than these actions.

        Arguments:
            values: With shape (R, K).
            outcome: What they come to.
            rows: Which rows they are of; left out: all.
        """
        valid = is_valid(outcome.log_odds, tolerance=ROUNDING)
        plausible = is_plausible(outcome.gain, tolerance=ROUNDING)
        better = valid & plausible & (outcome.cost < self.cost[rows])
        log_odds = torch.where(plausible, outcome.log_odds, -torch.inf)
        gain = torch.where(valid, outcome.gain, -torch.inf)
        self.cost[rows] = torch.where(better, outcome.cost, self.cost[rows])
        self.values[rows] = torch.where(better[:, None], values, self.values[rows])
        self.log_odds[rows] = log_odds.maximum(self.log_odds[rows])
        self.gain[rows] = gain.maximum(self.gain[rows])


def shortfall(outcome: Outcome) -> Tensor:
    """Return by how much an outcome misses its two bounds, with shape (2, R).

    First that of the log-odds, then that of the log-density; below
    zero where it is kept. Aim is twice `ROUNDING`, so that rounding
    does not decide.
    """
    return 2 * ROUNDING - torch.stack([outcome.log_odds, outcome.gain])


def penalised_cost(outcome: Outcome) -> Tensor:
    """Return the cost plus `PENALTY` times the `shortfall`, with shape (R,).

    Example:
        >>> outcome = Outcome(*torch.tensor([[0.5, 0.5], [1.0, -1.0], [1.0, 1.0]]))
        >>> penalised_cost(outcome).round(decimals=2)
        tensor([0.5000, 4.5000])
    """
    return outcome.cost + PENALTY * shortfall(outcome).relu().sum(0)
