"""Beyond the grid: the cheapest valid and plausible action over all values.

All pairs of a person and a set of features are searched in one batch,
by descents on the values from several starts, which slide along the
bounds of what is valid and plausible. The answers for all sets are
one table, in which anybody's recourse, and what would unlock it, is
looked up.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

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
)
from lib.method.scm import CausalModel
from lib.search.descent import (
    copy_smaller_sets,
    descend,
    descend_from_neighbours,
    enumerate_counts,
    sobol_starts,
)
from lib.search.evaluator import ActionEvaluator, Incumbents, Outcome
from lib.search.sets import MAX_FEATURES, Table, contains, sets_to_search

PEOPLE_BATCH_SIZE = 256


@dataclass(frozen=True)
class Search:
    """Hold a search over all values; `recommend` gives each person's cheapest action.

    Values stay within the range of the data and people's limits, and
    are whole where a population has whole numbers. Descents begin at
    the best of a Sobol sequence of actions, and at a known action on
    the set that it uses, else at the factual values. The last begins
    at the best so far, which may be what the best set with a feature
    less leads to; where there are whole numbers, their neighbours are
    tried then. The sequence is drawn for each batch of people, so
    that what is found for a person depends a little on who is beside
    them.

    All sets of features are searched, if `MAX_FEATURES` at most are
    open to a person. If more are, only sets up to a size are, and the
    set of all: what is cheapest among them is no proof.

    Arguments:
        problem: Its classifier says what is valid, its flow what is
            plausible.
        model: Where actions take effect: the true SCM, or the flow;
            None: the problem's own.
        n_samples, n_starts: Actions of the sequence that are
            evaluated, and how many of them a descent begins at.
        n_steps: Of each descent; twice as many of the last.
        seed: Of the sequence.
        max_combinations: Of whole numbers on a set that are tried one
            by one, so that the answer is exact; sets with more are
            left to the descents.
        progress: Wraps the range of batches of people; None: a
            progress bar.
        slack: Nats of log-density that may be given up; an action is
            called plausible here if it loses no more. Below zero: so
            many must be gained. Infinite: no demand for plausibility.
        margin: Log-odds of a positive decision that are asked for; an
            action is called valid here if it reaches them.
    Raises: ValueError: margin or slack are none, a number is not above
        zero, the model's graph is not the flow's, or the classifier
        has no gradient.
    """

    problem: Problem
    model: CausalModel | None = None
    n_samples: int = 256
    n_starts: int = 8
    n_steps: int = 10
    seed: int = 0
    progress: Callable[[range], Iterable[int]] | None = None
    slack: float = 0.0
    margin: float = 0.0
    max_combinations: int = 10_000

    def __post_init__(self) -> None:
        self.problem.check_gradient("The continuous search")
        self.problem.resolve_model(self.model)
        checks.positive_int(
            n_samples=self.n_samples, n_starts=self.n_starts, n_steps=self.n_steps
        )
        check_bounds(self.margin, self.slack)

    def recommend(
        self,
        x: Tensor,
        preferences: Preferences,
        table: Table | None = None,
        max_acted: int | None = None,
    ) -> Recommendation:
        """Return each person's cheapest action that their mask allows, or none.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs.
            table: What was found for the same people before, whatever
                their preferences; None: they are searched now, with
                the weights of their preferences.
            max_acted: As for `Table.cheapest`.
        Raises: ValueError: as `Problem.check` and `Table.cheapest`;
            the table is of another number of people; or there is one,
            and people state limits of their own.
        """
        return self.plans(x, preferences, 1, table, max_acted)[0]

    def plans(
        self,
        x: Tensor,
        preferences: Preferences,
        n_plans: int,
        table: Table | None = None,
        max_acted: int | None = None,
    ) -> Recommendation:
        """Return several plans a person on different features, with shape (n_plans, N, D).

        The first is what `recommend` returns. Each further one is the
        cheapest that does without some feature of every plan before
        it, or nothing (`Table.plans`).

        Arguments, errors: as for `recommend`.
        """
        self.problem.check(x, preferences)
        if table is not None and preferences.limits is not None:
            raise ValueError(
                "People's own limits can't be asked of a table that was made before. Leave "
                "the table out, or make it with interval=problem.interval(x, preferences) "
                "and look answers up by Table.cheapest."
            )
        interval = self.problem.interval(x, preferences)
        if table is None:
            masks, group = interval.is_allowed.unique(dim=0, return_inverse=True)
            if len(masks) > 1 and masks.shape[-1] > MAX_FEATURES:
                rows = [(group == i).nonzero().squeeze(-1) for i in range(len(masks))]
                of_groups = [
                    self.plans(x[some], preferences[some], n_plans, None, max_acted)
                    for some in rows  # each group has a table, since it has its sets
                ]
                return _join(of_groups, 1)[:, torch.cat(rows).argsort()]
            table = self.table(x, preferences.weight, interval=interval)
        plans = []
        costs, set_indices = table.plans(interval.is_allowed, n_plans, max_acted)
        for cost, set_index in zip(costs.T, set_indices.T, strict=True):
            mask = table.sets[set_index] & cost.isfinite()[:, None]
            values = table.values[torch.arange(len(x)), set_index]
            weights = torch.ones_like(values)
            evaluator = ActionEvaluator(self.problem, self.model, x, mask, weights)
            plans.append(evaluator.recommendation(values)[None])
        return _join(plans, 0)

    def table(
        self,
        x: Tensor,
        weights: Tensor | None = None,
        starts: Sequence[Recommendation] = (),
        interval: Interval | None = None,
    ) -> Table:
        """Return the cheapest action on every set of features, for every person.

        Arguments:
            x: Refused people, with shape (N, D).
            weights: Of the cost, with shape (N, K), as
                `Preferences.weight`; None: all one.
            starts: Known actions of each person, for instance the
                grid's for several masks. On their sets nothing
                costlier than the valid and plausible among them is
                returned (those that are so but for rounding, 1e-4,
                count).
            interval: To what values people may set features
                (`Problem.interval`); None: the population's own
                limits. Nothing is found on sets with a feature that
                they may not set. The sets are those of
                `sets.sets_to_search`.
        Raises: ValueError: x are not refused people, or weights or
            starts have another shape.
        """
        problem = self.problem
        problem.check_people(x)
        shape = (len(x), len(problem.population.actionable))
        weights = torch.ones(shape) if weights is None else weights
        checks.shape("weights", weights, shape)
        if not (weights.isfinite() & (weights >= 0)).all():
            raise ValueError("weights must be finite and not below zero.")
        weights = weights.to(x)
        _check_starts(starts, x, problem.population.features)
        if interval is None:
            everything = Preferences.from_mask(torch.ones(shape, dtype=torch.bool))
            interval = problem.interval(x, everything)
        sets = sets_to_search(interval.is_allowed.any(0))
        batches = torch.arange(len(x)).split(PEOPLE_BATCH_SIZE)
        rngs = np.random.default_rng(self.seed).spawn(len(batches))
        progress = self.progress or io.progress_bar("search")
        tables = []
        for i in progress(range(len(batches))):
            rows = batches[i]
            starts_here = [start[rows] for start in starts]
            here = (x[rows], weights[rows], starts_here, interval[rows])
            tables.append(self._search_batch(sets, *here, rngs[i]))
        return Table(sets, *(torch.cat(tensors) for tensors in zip(*tables, strict=True)))

    def _search_batch(
        self,
        sets: Tensor,
        x: Tensor,
        weights: Tensor,
        starts: Sequence[Recommendation],
        interval: Interval,
        rng: np.random.Generator,
    ) -> tuple[Tensor, ...]:
        """Return the table's cost, values, log-odds and gain for a batch of people.

        Only pairs of a person and a set that is open to them are
        searched: these are the rows.
        """
        pairs = contains(interval.is_allowed, sets).nonzero(as_tuple=True)
        people, set_index = pairs
        actions = (x[people], sets[set_index], weights[people])
        bounds = (self.slack, self.margin, interval[people])
        evaluator = ActionEvaluator(self.problem, self.model, *actions, *bounds)
        incumbents = Incumbents.empty(evaluator.factual)
        first = _update_with_known(evaluator, incumbents, starts, people)
        best = sobol_starts(evaluator, incumbents, self.n_samples, self.n_starts, rng)
        for start in [first, *best]:
            descend(evaluator, start, incumbents, self.n_steps)
        enumerate_counts(evaluator, incumbents, self.max_combinations)
        copy_smaller_sets(evaluator, incumbents, sets, *pairs)
        descend(evaluator, incumbents.values, incumbents, 2 * self.n_steps)
        descend_from_neighbours(evaluator, incumbents, self.n_steps)
        copy_smaller_sets(evaluator, incumbents, sets, *pairs)

        with torch.no_grad():
            today = self.problem.log_odds(x) - self.margin  # who does nothing is plausible
        log_odds = today[:, None].repeat(1, len(sets))
        cost, gain = torch.full_like(log_odds, torch.inf), -torch.inf + 0 * log_odds
        values = x[:, None, evaluator.columns].repeat(1, len(sets), 1)
        cost[pairs], values[pairs] = incumbents.cost, incumbents.values
        log_odds[pairs] = incumbents.log_odds.maximum(log_odds[pairs])
        gain[pairs] = incumbents.gain
        return cost, values, log_odds, gain


@torch.no_grad()
def _update_with_known(
    evaluator: ActionEvaluator,
    incumbents: Incumbents,
    starts: Sequence[Recommendation],
    people: Tensor,
) -> Tensor:
    """Update the incumbents with known actions; return where the first descent begins.

    That is the last known action on the row's set of features, else
    the factual values, with shape (R, K).

    Arguments:
        people: Whose action each row is, counted from 0, with shape
            (R,).
    """
    first = evaluator.factual
    for start in starts:
        mask = start.is_acted[:, evaluator.columns][people]
        values = start.values[:, evaluator.columns][people]
        is_same_set = (mask == evaluator.mask).all(-1)
        if evaluator.interval.step is not None:  # beyond limits it is no answer
            is_within = (evaluator.interval.project(values) == values) | ~mask
            is_same_set &= is_within.all(-1)
        cost, log_odds, gain = evaluator(values)
        # a known action that is valid and plausible stays so, on whichever side of a
        # rounding error it lies
        holds = is_same_set & is_valid(log_odds + ROUNDING) & is_plausible(gain + ROUNDING)
        log_odds, gain = (
            torch.where(holds, bound.clamp_min(ROUNDING), -torch.inf)
            for bound in (log_odds, gain)
        )
        incumbents.update(values, Outcome(cost, log_odds, gain))
        first = torch.where(is_same_set[:, None], values, first)
    return first


def _join(recommendations: Sequence[Recommendation], axis: int) -> Recommendation:
    """Return several recommendations as one, joined along an axis."""
    parts = [(r.is_acted, r.values, r.x_cf) for r in recommendations]
    return Recommendation(*(torch.cat(part, axis) for part in zip(*parts, strict=True)))


def _check_starts(
    starts: Sequence[Recommendation], x: Tensor, features: Sequence[str]
) -> None:
    """Raise ValueError unless starts are a list of recommendations for people (N, D)."""
    if isinstance(starts, Recommendation):
        raise ValueError(
            "starts is one recommendation: give a list of them, [recommendation]."
        )
    for i, start in enumerate(starts):
        name = f"starts[{i}].values"
        checks.shape(name, start.values, x.shape)
        checks.people(name, torch.where(start.is_acted, start.values, x), features)
