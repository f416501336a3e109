"""Beyond the grid: the cheapest valid and plausible action over all values.

All pairs of a person and a set of features are searched side by side,
by descents on the values from several starts, which slide along the
bounds of what is valid and plausible. The search does not ask what a
person may do: its answers for all sets are one table, in which
anybody's recourse, and what would unlock it, is looked up.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.method.limits import Interval
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    Solver,
    check_bounds,
    check_weights,
    is_plausible,
    is_valid,
)
from lib.method.world import World
from lib.search.descent import (
    Found,
    Judge,
    copy_smaller_sets,
    descend,
    descend_from_neighbours,
    enumerate_counts,
    scout,
)
from lib.search.sets import Table, sets_of

PEOPLE_AT_ONCE = 256


@dataclass(frozen=True)
class Search:
    """Hold a search over all values; `recommend` gives each person's cheapest action.

    Values stay within the range of the data, and are whole where a
    population has whole numbers. Descents begin at the best of some
    scattered actions, and at a known action on the set that it uses,
    else at the factual values. The last begins at the best so far,
    which may be what the best set with a feature less leads to; where
    there are whole numbers, their neighbours are tried then. Where
    actions are scattered is drawn for each batch of people, so that
    what is found for a person depends a little on who is beside them.

    Arguments:
        problem: Its classifier says what is valid, its flow what is
            plausible.
        world: Where actions take effect: the true SCM, or the flow.
            Left out: the problem's own world.
        profile: From preferences to the weights of the cost.
        n_scouts, n_starts: Scattered actions that are looked at, and
            how many of them a descent begins at.
        n_steps: Of each descent; twice as many of the last.
        seed: Of where the actions are scattered.
        n_threads: Batches of people that are searched at once; the
            result is the same.
        progress: Wraps the range of batches of people.
        slack: Nats of log-density that may be given up; an action is
            called plausible here if it loses no more. Below zero: so
            many must be gained. Infinite: no demand for plausibility.
        margin: Log-odds of a positive decision that are asked for; an
            action is called valid here if it reaches them.
    Raises: ValueError: margin or slack are none, an effort is not
        above zero, the world's graph is not the flow's, the
        classifier has no gradient, or there are more than
        `MOST_FEATURES` actionable features.
    Example:
        Three people who may change the amount only:
        >>> x = problem.refused("test")[:3]
        >>> only_amount = Preferences(torch.tensor([[1, 5, 5, 5]] * 3))
        >>> search = Search(problem, n_scouts=32, n_starts=1)
        >>> search.recommend(x, only_amount).has_recourse
        tensor([False, False, False])
    """

    problem: Problem
    world: World | None = None
    profile: Profile = CONSTANT
    n_scouts: int = 256
    n_starts: int = 8
    n_steps: int = 10
    seed: int = 0
    n_threads: int = 1
    progress: Callable[[range], Iterable[int]] = iter
    slack: float = 0.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        _check(self.problem, self.world)
        check_bounds(self.margin, self.slack)
        checks.positive(n_threads=self.n_threads)
        sets_of(len(self.problem.population.actionable))
        self._effort  # noqa: B018 - raises if one is not above zero

    @property
    def _effort(self) -> "_Effort":
        """How hard is looked."""
        return _Effort(self.n_scouts, self.n_starts, self.n_steps)

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
            table: What was found for the same people before, whoever
                asked; left out: they are searched now, with the
                weights that the profile gives.
            max_acted: As for `Table.cheapest`.
        Raises: ValueError: as `Problem.check` and `Table.cheapest`;
            the table is of another number of people; or there is one,
            and people say limits of their own.
        """
        self.problem.check(x, preferences)
        interval = self.problem.interval(x, preferences)
        if table is not None and preferences.limits is not None:
            raise ValueError(
                "People's own limits can't be asked of a table that was made before. Leave "
                "the table out, or make it with interval=problem.interval(x, preferences) "
                "and look answers up by Table.cheapest."
            )
        if table is None:
            weights = self.profile.weight(preferences)
            table = self.table(x, weights, interval=interval)
        cost, which = table.cheapest(interval.may, max_acted)
        acts = table.sets[which] & cost.isfinite()[:, None]
        values = table.values[torch.arange(len(x)), which]
        judge = Judge(self.problem, self.world, x, acts, torch.ones_like(values))
        return judge.recommendation(values)

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
            weights: Of the cost, with shape (N, K); left out: all
                one.
            starts: Known actions of each person, for instance the
                grid's for several masks. On their sets nothing
                costlier than the valid and plausible among them is
                returned (those that are so but for rounding, 1e-4,
                count).
            interval: To what values people may set features
                (`Problem.interval`); left out: the population's own
                limits. Nothing is found on sets with a feature that
                they may not set.
        Raises: ValueError: x are not refused people, or weights or
            starts have another shape.
        Example:
            >>> x = problem.refused("test")[:3]
            >>> table = Search(problem, n_scouts=128, n_starts=2).table(x)
            >>> table.cost.shape  # 15 sets of four features
            torch.Size([3, 15])
        """
        problem, columns = self.problem, self.problem.population.actionable_index
        problem.check_people(x)
        if weights is None:
            weights = torch.ones(len(x), len(columns))
        check_weights(weights, (len(x), len(columns)))
        weights = weights.to(x)
        starts = _checked_starts(starts, x, problem.population.features)
        judge_of = partial(Judge, problem, self.world, slack=self.slack, margin=self.margin)
        if interval is None:
            everything = Preferences(torch.ones(len(x), len(columns), dtype=torch.long))
            interval = problem.interval(x, everything)
        sets = sets_of(len(columns))
        search_some = partial(_search_some, judge_of, sets, self._effort)
        firsts = range(0, len(x), PEOPLE_AT_ONCE)
        batches = [slice(first, first + PEOPLE_AT_ONCE) for first in firsts]
        rngs = np.random.default_rng(self.seed).spawn(len(firsts))
        pool = ThreadPoolExecutor(self.n_threads)
        try:
            found_for = [
                pool.submit(
                    search_some,
                    x[i],
                    weights[i],
                    [own[i] for own in starts],
                    rng,
                    interval[i],
                )
                for i, rng in zip(batches, rngs, strict=True)
            ]
            parts = [found_for[i].result() for i in self.progress(range(len(firsts)))]
        finally:
            # who interrupts waits for the batches that are being searched, not for all
            pool.shutdown(cancel_futures=True)
        return Table(sets, *(torch.cat(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True)
class _Effort:
    """Hold how hard is looked; see `Search`."""

    n_scouts: int
    n_starts: int
    n_steps: int

    def __post_init__(self) -> None:
        checks.positive(**vars(self))


def _search_some(
    judge_of: Callable[..., Judge],
    sets: Tensor,
    effort: _Effort,
    x: Tensor,
    weights: Tensor,
    starts: Sequence[Recommendation],
    rng: np.random.Generator,
    interval: Interval,
) -> list[Tensor]:
    """Return the table's cost, values, log-odds and gain for a batch of people (N, D).

    Arguments:
        judge_of: From people, sets, weights and interval to their
            judge.
        weights: Of the cost, with shape (N, K).
        starts: Known actions, each with shape (N, D).
    """
    people = torch.arange(len(x)).repeat_interleave(len(sets))
    rows, acts = x[people], sets.repeat(len(x), 1)
    judge = judge_of(rows, acts, weights[people], interval=interval[people])
    found = Found.nothing(rows[:, judge.columns])
    first_start = _see_known(judge, found, starts)
    scattered = scout(judge, found, effort.n_scouts, effort.n_starts, rng)
    for values in [first_start, *scattered]:
        descend(judge, values, found, effort.n_steps)
    enumerate_counts(judge, found)
    copy_smaller_sets(judge, found, sets)
    descend(judge, found.values, found, 2 * effort.n_steps)
    descend_from_neighbours(judge, found, effort.n_steps)
    # what the larger sets did not find
    copy_smaller_sets(judge, found, sets)
    # no action is plausible
    with torch.no_grad():
        as_they_are = judge.problem.log_odds(rows) - judge.margin
    found.log_odds = torch.maximum(found.log_odds, as_they_are)
    is_closed = (acts & ~judge.interval.may).any(-1)
    found.cost = found.cost.masked_fill(is_closed, torch.inf)
    parts = (found.cost, found.values, found.log_odds, found.gain)
    return [part.unflatten(0, (len(x), len(sets))) for part in parts]


def _see_known(judge: Judge, found: Found, starts: Sequence[Recommendation]) -> Tensor:
    """Keep known actions that are good; return where the first descent begins, (R, K).

    That is the last known action on the row's set of features, else
    the factual values.
    """
    first_start = judge.factual
    for start in starts:
        n_sets = len(first_start) // len(start.values)
        is_acted, known = (
            part[:, judge.columns].repeat_interleave(n_sets, 0)
            for part in (start.is_acted, start.values)
        )
        same_set = (is_acted == judge.acts).all(-1)
        if judge.interval.step is not None:  # beyond somebody's limits it is no answer
            is_within = (judge.interval.nearest(known) == known) | ~is_acted
            same_set &= is_within.all(-1)
        with torch.no_grad():
            cost, log_odds, gain = judge(known)
        # a known action that is valid and plausible stays so, on whichever side of a
        # rounding error it lies
        good = same_set & is_valid(log_odds + ROUNDING) & is_plausible(gain + ROUNDING)
        bounds = (
            torch.where(good, part.clamp_min(ROUNDING), -torch.inf)
            for part in (log_odds, gain)
        )
        found.see(known, cost, *bounds)
        first_start = torch.where(same_set[:, None], known, first_start)
    return first_start


@dataclass(frozen=True)
class Refined:
    """Hold a solver whose recommendations are improved by short descents.

    Descents begin at the recommendation and at the best of a few
    scattered actions: first on its own features, then on all that a
    person may use.

    Arguments:
        solver: Whose recommendations are improved; it gives one a
            person.
        problem, world, profile, n_scouts, n_starts, n_steps, seed: As
            for `Search`.
    Raises: ValueError: as `Search`.
    Example:
        A coarse grid, refined, costs less:
        >>> from lib.method.grid import Grid
        >>> x = problem.refused("test")[:3]
        >>> all_easy, grid = Preferences(torch.ones(3, 4).long()), Grid(problem, n_values=5)
        >>> refined = Refined(grid, problem, n_scouts=32)
        >>> before, after = (own.recommend(x, all_easy) for own in (grid, refined))
        >>> helped = before.has_recourse
        >>> (problem.cost_of(x, after) < problem.cost_of(x, before))[helped]
        tensor([True, True])
    """

    solver: Solver
    problem: Problem
    world: World | None = None
    profile: Profile = CONSTANT
    n_scouts: int = 64
    n_starts: int = 2
    n_steps: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.problem, self.world)
        self._effort  # noqa: B018 - raises if one is not above zero

    @property
    def _effort(self) -> _Effort:
        """How hard is looked."""
        return _Effort(self.n_scouts, self.n_starts, self.n_steps)

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the cheapest of what is valid and plausible, else what the solver says.

        What is valid and plausible never gets worse.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs.
        Raises: ValueError: as `Problem.check`, or the solver's
            recommendation has another shape.
        """
        problem, effort = self.problem, self._effort
        problem.check(x, preferences)
        recommendation = self.solver.recommend(x, preferences)
        features = problem.population.features
        _check_recommendation("recommendation", recommendation, x, features)
        columns = problem.population.actionable_index
        weights = self.profile.weight(preferences).to(x)
        interval = problem.interval(x, preferences)
        acts, values = (
            part[:, columns] for part in (recommendation.is_acted, recommendation.values)
        )
        if interval.step is not None:
            acts, values = acts & interval.may, interval.nearest(values)
        own = Judge(problem, self.world, x, acts, weights)
        cost, log_odds, gain = (part.detach() for part in own(values))
        best_cost = torch.where(is_valid(log_odds) & is_plausible(gain), cost, torch.inf)
        rng = np.random.default_rng(self.seed)
        for on in (acts, interval.may):
            judge = Judge(problem, self.world, x, on, weights, interval=interval)
            found = Found.nothing(values)
            scattered = scout(judge, found, effort.n_scouts, effort.n_starts, rng)
            for start in [values, *scattered]:
                descend(judge, start, found, effort.n_steps)
            descend_from_neighbours(judge, found, effort.n_steps)
            better = found.cost < best_cost
            acts = torch.where(better[:, None], on, acts)
            values = torch.where(better[:, None], found.values, values)
            best_cost = torch.where(better, found.cost, best_cost)
        return Judge(problem, self.world, x, acts, weights).recommendation(values)


def _check(problem: Problem, world: World | None) -> None:
    """Raise ValueError unless descent can search in this world."""
    problem.check_gradient("The continuous search")
    problem.in_world(world)


def _checked_starts(
    starts: Sequence[Recommendation], x: Tensor, features: Sequence[str]
) -> list[Recommendation]:
    """Return the starts as a list, each a recommendation for people (N, D)."""
    if isinstance(starts, Recommendation):
        raise ValueError(
            "starts is one recommendation: give a list of them, [recommendation]."
        )
    starts = list(starts)
    for i, start in enumerate(starts):
        _check_recommendation(f"starts[{i}]", start, x, features)
    return starts


def _check_recommendation(
    name: str, recommendation: Recommendation, x: Tensor, features: Sequence[str]
) -> None:
    """Raise ValueError unless this is a recommendation for people (N, D)."""
    if recommendation.values.ndim == x.ndim + 1:
        raise ValueError(
            f"{name} is of a stack, with shape {tuple(recommendation.values.shape)}: "
            "index a member first, recommendation[member]."
        )
    is_acted, values = recommendation.is_acted, recommendation.values
    checks.shape(f"{name}.values", values, x.shape)
    checks.shape(f"{name}.is_acted", is_acted, x.shape)
    checks.people(f"{name}.values", torch.where(is_acted, values, x), features)
