"""Descent on the values of actions: the moves from which `lib.search.continuous` is built.

Each works on many actions side by side, a row an action, and keeps in
a `Found` the best of what it visits. A `Judge` says what an action
comes to. Gradients are needed: the classifier must be one that torch
can differentiate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from lib.base import checks
from lib.method.limits import Interval
from lib.method.maps import Map
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    check_bounds,
    in_columns,
    is_plausible,
    is_valid,
)
from lib.method.world import World

# by which a consequence is moved up and down before it is made whole (in standard
# deviations): one on the edge between two whole numbers can fall to either side
EDGE = 1e-5
MISSING = 4.0  # what a unit of log-odds, or a nat, that is missing weighs beside the cost
TINY = 1e-12  # so that nothing is divided by zero
MOST_COUNTED = 10_000  # combinations of whole numbers that are tried one by one
FIRST_COUNTED, TIMES_AS_MANY = 64, 4  # of them at once: the cheapest; and the next time
STRIDES = (-3, -1, 1, 3)  # by how much a count is moved from the best so far
LEAST_WEIGHT = 1e-3  # so that a step along a feature that costs nothing has a length, too


class Judge:
    """Say what actions come to: cost, log-odds and change of log-density, a row an action.

    Arguments:
        world: Where actions take effect; None: the problem's own.
        x: Whose action it is, with shape (R, D).
        acts: Which of the K actionable features they act on, with
            shape (R, K), bool.
        weights: Of their cost, with shape (R, K).
        slack: Nats by which the log-density may fall; below zero: by
            which it must rise; infinite: it is not asked for.
        margin: Log-odds that a positive decision must have; they are
            subtracted from what the judge says.
        interval: To what values they may set the features, with shape
            (R, K); None: to any within the range of the data.
    Raises: ValueError: a shape is another, slack is not a number,
        margin is below zero, or the world's graph is not the flow's.
    """

    def __init__(
        self,
        problem: Problem,
        world: World | None,
        x: Tensor,
        acts: Tensor,
        weights: Tensor,
        slack: float = 0.0,
        margin: float = 0.0,
        interval: Interval | None = None,
    ) -> None:
        self.columns = problem.population.actionable_index
        checks.people("x", x, problem.population.features)
        checks.shape("acts", acts, (len(x), len(self.columns)))
        checks.shape("weights", weights, acts.shape)
        check_bounds(margin, slack)
        self.problem, self.slack, self.margin = problem, slack, margin
        self.world = world = problem.in_world(world)
        self.x, self.acts, self.weights = x, acts, weights
        self.moves = world.graph.moved_by(self.columns)
        self.is_acted = in_columns(acts.to(x.dtype), self.columns, x.shape[-1]) > 0
        self.factual = x[:, self.columns]
        if interval is None:
            ends = problem.population.low, problem.population.high
            low, high = (end[self.columns].to(x).expand_as(weights) for end in ends)
            interval = Interval(acts, low, high)
        self.interval = interval
        self.reached = world.reached(self.is_acted)

    @cached_property
    @torch.no_grad()
    def known(self) -> dict[int, Map]:
        """The flow's maps of features whose causes no action moves, by column."""
        return self._at_rest(self.x)

    @cached_property
    @torch.no_grad()
    def least(self) -> Tensor:
        """The log-density that must be reached, with shape (R,)."""
        return self._log_density(self.x, self.known) - self.slack

    @cached_property
    @torch.no_grad()
    def noise(self) -> Tensor:
        """What these people keep whatever they do, with shape (R, D)."""
        return self.world.noise_after(self.x, self.world.abduct(self.x))

    def of(self, rows: Tensor) -> "Judge":
        """Return the judge of some of these rows, one or several times each."""
        x, acts, weights = self.x[rows], self.acts[rows], self.weights[rows]
        how = self.slack, self.margin, self.interval[rows]
        return Judge(self.problem, self.world, x, acts, weights, *how)

    def cost(self, values: Tensor) -> Tensor:
        """Return what setting features to values (R, K) costs, with shape (R,)."""
        return self.problem.action_cost(self.factual, self.acts, values, self.weights)

    def allowed(self, values: Tensor) -> Tensor:
        """Return the nearest values that these people can have, with shape (R, K).

        They are within the range of the data and what the row may
        set, whole where a person can't have fractions, and the
        factual ones where a row does not act.
        """
        population, values = self.problem.population, self.interval.nearest(values)
        if population.whole is not None:
            values = population.settled(self.x, self._spread(values))[:, self.columns]
        return torch.where(self.acts, values, self.factual)

    def recommendation(self, values: Tensor) -> Recommendation:
        """Return the action of each row as a recommendation; values with shape (R, K).

        Where a population has whole numbers, its consequences are as
        people can have them; their gradient goes straight through.

        Raises: ValueError: values are not finite.
        """
        spread = self._spread(values)
        checks.people("values", spread, self.problem.population.features)
        x_cf, _ = self._followed(values)
        return Recommendation(self.is_acted, spread, self._settled(x_cf))

    def _followed(self, values: Tensor) -> tuple[Tensor, dict[int, Map]]:
        """Return all features after the action with these values (R, K).

        And the flow's maps, by column, that were asked on the way.
        """
        columns = list(self.x.unbind(-1))
        acts = self.acts.unbind(-1)
        for j, is_on, value in zip(self.columns, acts, values.unbind(-1), strict=True):
            columns[j] = torch.where(is_on, value, columns[j])
        maps: dict[int, Map] = {}
        if self.world is self.problem.flow:
            after = self.problem.flow.follow(columns, self.reached, self.noise, maps)
        else:
            after = self.world.follow(columns, self.reached, self.noise)
        return torch.stack(after, -1), maps

    def _settled(self, x_cf: Tensor) -> Tensor:
        """Return features after an action as people can have them; gradients pass."""
        population = self.problem.population
        if population.whole is None:
            return x_cf
        return population.settled(self.x, x_cf.detach()) + (x_cf - x_cf.detach())

    def _spread(self, values: Tensor) -> Tensor:
        """Return all D features of each row, those acted on with these values (R, K)."""
        spread = in_columns(values, self.columns, self.x.shape[-1])
        return torch.where(self.is_acted, spread, self.x)

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what setting features to values (R, K) comes to; each with shape (R,).

        Where consequences lie on the edge between two whole numbers,
        the worst counts: as they are, all a little lower, or all a
        little higher.

        Returns: Cost, log-odds of a positive decision without the
            margin, and change of log-density in nats, with the slack
            added.
        """
        cost = self.cost(values)
        x_cf, maps = self._followed(values)
        settled, known = self._settled(x_cf), self.known
        if settled is x_cf and not values.requires_grad:
            # the same networks, of the same causes; a gradient would add up otherwise
            known = maps | known
        after = self._log_density(settled, known)
        log_odds, gain = self._log_odds(settled), after - self.least
        whole = self.problem.population.whole
        if whole is None:
            return cost, log_odds, gain
        off = EDGE * (whole.is_whole & ~self.is_acted & (x_cf.detach() != self.x))
        for side in (self._settled(x_cf - off), self._settled(x_cf + off)):
            (rows,) = (side != settled).any(-1).nonzero(as_tuple=True)  # few are on an edge
            if len(rows):
                there, known = side[rows], self._at_rest(self.x[rows])
                own_gain = self._log_density(there, known) - self.least[rows]
                log_odds = _lower_at(rows, log_odds, self._log_odds(there))
                gain = _lower_at(rows, gain, own_gain)
        return cost, log_odds, gain

    def _at_rest(self, x: Tensor) -> dict[int, Map]:
        """Return the flow's maps of features whose causes no action moves, by column."""
        flow = self.problem.flow
        return flow.maps(x, flow.graph.at_rest(self.moves))

    def _log_density(self, x: Tensor, known: Mapping[int, Map]) -> Tensor:
        """Return the log-density of the features that can move, with shape (R,)."""
        return self.problem.flow.log_prob_terms(x, self.moves, known).sum(-1)

    def _log_odds(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, less the margin, with shape (R,)."""
        return self.problem.log_odds(x) - self.margin


def _lower_at(rows: Tensor, values: Tensor, others: Tensor) -> Tensor:
    """Return values (R,), at some rows the lower of them and others, one for each row."""
    return values.index_copy(0, rows, torch.minimum(values[rows], others))


@dataclass
class Found:
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
    def nothing(cls, values: Tensor) -> "Found":
        """Return a `Found` that has seen nothing yet, with these values (R, K)."""
        none = torch.full(values.shape[:-1], torch.inf, dtype=values.dtype)
        return cls(none, values.clone(), -none, -none)

    def see(self, values: Tensor, cost: Tensor, log_odds: Tensor, gain: Tensor) -> None:
        """Keep of these actions, one a row, what is better than what is here."""
        valid = is_valid(log_odds, surely=True)
        plausible = is_plausible(gain, surely=True)
        better = valid & plausible & (cost < self.cost)
        self.cost = torch.where(better, cost, self.cost)
        self.values = torch.where(better[:, None], values, self.values)
        self.log_odds = torch.where(
            plausible, torch.maximum(log_odds, self.log_odds), self.log_odds
        )
        self.gain = torch.where(valid, torch.maximum(gain, self.gain), self.gain)

    def of(self, rows: Tensor) -> "Found":
        """Return a copy of some rows."""
        return Found(*(getattr(self, own.name)[rows] for own in fields(self)))

    def put(self, rows: Tensor, others: "Found") -> None:
        """Replace some rows by others."""
        for own in fields(self):
            part = getattr(self, own.name).clone()
            part[rows] = getattr(others, own.name)
            setattr(self, own.name, part)


def penalised_cost(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    """Return the cost and, `MISSING` times, what is missing to be valid and plausible.

    Example:
        >>> cost, log_odds, gain = torch.tensor([[0.5, 0.5], [1.0, -1.0], [1.0, 1.0]])
        >>> penalised_cost(cost, log_odds, gain).round(decimals=2)
        tensor([0.5000, 4.5000])
    """
    missing = (2 * ROUNDING - log_odds).relu() + (2 * ROUNDING - gain).relu()
    return cost + MISSING * missing


@torch.no_grad()
def scout(
    judge: Judge, found: Found, n_scouts: int, n_starts: int, rng: np.random.Generator
) -> Tensor:
    """Return the best of some scattered actions, as starts for descents: (n_starts, R, K).

    They are a Sobol sequence between the factual values and the ends
    of the range. Best is what has the lowest `penalised_cost`. What
    is found goes into `found`.

    Arguments:
        n_scouts, n_starts: How many actions are looked at for each
            row, and how many are kept.
        rng: Of where the actions are scattered.
    """
    checks.positive(n_scouts=n_scouts, n_starts=n_starts)
    factual, low, high = judge.factual, judge.interval.low, judge.interval.high
    sobol = qmc.Sobol(factual.shape[-1] + 1, rng=rng)
    points = torch.from_numpy(sobol.random(n_scouts)).to(factual)
    best = torch.full((n_starts, len(factual)), torch.inf, dtype=factual.dtype)
    starts = factual.expand(n_starts, -1, -1).clone()
    highest, worst = best.max(0)  # the place that a better one takes
    for point in points:
        anywhere = low + (high - low) * point[:-1]
        values = judge.allowed(factual + point[-1] * (anywhere - factual))
        seen = judge(values)
        found.see(values, *seen)
        loss = penalised_cost(*seen)
        better = (loss < highest).nonzero().squeeze(-1)
        best[worst[better], better] = loss[better]
        starts[worst[better], better] = values[better]
        highest[better], worst[better] = best[:, better].max(0)
    return starts


def descend(
    judge: Judge,
    start: Tensor,
    found: Found,
    n_steps: int,
    may_change: Tensor | None = None,
) -> None:
    """Descend from a start (R, K) by sequential quadratic programming.

    The cost is a sum of squares. Each step replaces the two bounds,
    on log-odds and on log-density, by their tangents, and goes
    towards the cheapest action within both, which has a closed form;
    so it slides along a bound that it has reached. A second, short
    step makes up for the bend of the bounds. A step that does not
    lower the `penalised_cost` is taken back, and the next is shorter.
    What is found on the way goes into `found`.

    Arguments:
        n_steps: How many steps.
        may_change: Which features may, a mask (R, K); the others keep
            the values of the start; left out: all that are acted on.
    Raises: ValueError: the classifier has no gradient.
    Source: Nocedal and Wright, *Numerical Optimization*, 2nd edition,
        chapter 18.
    """
    judge.problem.check_gradient("descent")
    checks.positive(n_steps=n_steps)
    moves = judge.acts if may_change is None else judge.acts & may_change
    price = judge.weights.clamp_min(LEAST_WEIGHT) / judge.problem.range[judge.columns]
    values = judge.allowed(start)
    share, rows = torch.ones_like(values[:, :1]), torch.arange(len(values))
    for _ in range(n_steps):
        seen, slopes = _slopes(judge, values, moves)
        found.see(values, *seen)
        with torch.no_grad():
            away = values - judge.factual
            at_once = torch.stack([(slope * away).sum(-1) for slope in slopes])
            bounds = at_once + _lacking(*seen)
            step = moves * (cheapest_within(slopes, bounds, price) - away)
            first = judge.allowed(values + share * step)
            of_first = judge(first)
            back = cheapest_within(slopes, _lacking(*of_first), price)
            second = judge.allowed(first + back)
            of_second = judge(second)
            for tried, own in ((first, of_first), (second, of_second)):
                found.see(tried, *own)
            losses = [penalised_cost(*own) for own in (seen, of_first, of_second)]
            best = torch.stack(losses).min(0).indices  # argmin takes 20 times as long
            values = torch.stack([values, first, second])[best, rows]
            longer, shorter = (1.5 * share).clamp_max(1.0), 0.4 * share
            share = torch.where(best[:, None] > 0, longer, shorter)


def _slopes(
    judge: Judge, values: Tensor, moves: Tensor
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return what values (R, K) come to, and how log-odds and gain change with them."""
    values = values.detach().requires_grad_()
    cost, log_odds, gain = judge(values)
    (of_odds,) = torch.autograd.grad(log_odds.sum(), values, retain_graph=True)
    (of_gain,) = torch.autograd.grad(gain.sum(), values)
    seen = (cost.detach(), log_odds.detach(), gain.detach())
    return seen, (of_odds * moves, of_gain * moves)


def _lacking(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    """Return by how much either bound is missed, below zero if it is not: (2, R)."""
    return 2 * ROUNDING - torch.stack([log_odds, gain])


def cheapest_within(slopes: tuple[Tensor, Tensor], bounds: Tensor, price: Tensor) -> Tensor:
    """Return the change v (R, K) of least sum of price v^2 with slope v >= bound for both.

    Where both cannot hold, at most one does.

    Arguments:
        slopes: Two, each with shape (R, K).
        bounds: Theirs, with shape (2, R).
        price: Above zero, with shape (R, K).
    """
    one, other = slopes
    # for each bound alone, then for both: multiples of slope / price
    length = torch.stack([(own * own / price).sum(-1) for own in slopes]).clamp_min(TINY)
    shared = (one * other / price).sum(-1)
    alone = (bounds / length).relu()
    is_enough = alone * shared >= bounds.flip(0) - TINY
    determinant = (length.prod(0) - shared**2).clamp_min(1e-6 * length.prod(0))
    both = ((length.flip(0) * bounds - shared * bounds.flip(0)) / determinant).relu()
    only_one = torch.stack([alone[0], torch.zeros_like(alone[0])])
    only_other = torch.stack([torch.zeros_like(alone[1]), alone[1]])
    much = torch.where(is_enough[0], only_one, torch.where(is_enough[1], only_other, both))
    return (much[0, :, None] * one + much[1, :, None] * other) / price


@torch.no_grad()
def copy_smaller_sets(judge: Judge, found: Found, sets: Tensor) -> None:
    """Let each set of features try what the best set with one feature less leads to.

    The added feature is set to what would become of it anyway. What
    is found goes into `found`.

    Arguments:
        sets: The sets, with shape (S, K), bool. The judge's rows are
            all sets of one person after the other, in this order.
    Raises: ValueError: the rows are not whole rounds of the sets.
    """
    if len(judge.acts) % len(sets):
        raise ValueError(
            f"The judge has {len(judge.acts)} rows, expected {len(sets)} for each person, "
            "one a set."
        )
    n_features = sets.sum(-1)
    # of the set in the row, the one in the column
    is_part = ~(sets[None] & ~sets[:, None]).any(-1)
    is_smaller = is_part & (n_features[:, None] == n_features + 1)
    cost = found.cost.view(-1, 1, len(sets))
    best = cost.masked_fill(~is_smaller, torch.inf).argmin(-1)
    after = judge.recommendation(found.values).x_cf[:, judge.columns].view(-1, *sets.shape)
    copied = after.gather(1, best[..., None].expand_as(after)).flatten(0, 1)
    copied = judge.allowed(copied)
    found.see(copied, *judge(copied))


@torch.no_grad()
def enumerate_counts(judge: Judge, found: Found) -> None:
    """Try every combination of whole numbers on the sets that consist of counts alone.

    The cheapest come first. What costs more than what is known is not
    tried, so that the answer is exact. Sets with more than
    `MOST_COUNTED` combinations are left to the descents. What is
    found goes into `found`.
    """
    counts = [judge.problem.population.counts(j) for j in judge.columns]
    is_count = torch.tensor([len(own) > 0 for own in counts])
    of_counts = ~(judge.acts & ~is_count).any(-1)
    for acts in judge.acts[of_counts].unique(dim=0):
        asked = zip(counts, acts, strict=True)
        lists = [own if on else own.new_zeros(1) for own, on in asked]
        every = torch.cartesian_prod(*lists).view(-1, len(acts))
        if len(every) > MOST_COUNTED:
            continue
        (rows,) = (judge.acts == acts).all(-1).nonzero(as_tuple=True)
        pairs = judge.of(rows.repeat_interleave(len(every)))
        values = pairs.allowed(every.repeat(len(rows), 1))
        cost, order = pairs.cost(values).view(len(rows), -1).sort(-1)
        values = values.view(len(rows), *every.shape)
        n_tried, n_next = 0, FIRST_COUNTED
        while n_tried < len(every):
            (waiting,) = (cost[:, n_tried] < found.cost[rows]).nonzero(as_tuple=True)
            if len(waiting) == 0:
                break
            next_ones = order[waiting, n_tried : n_tried + n_next]
            tried = values[waiting[:, None], next_ones]
            own = judge.of(rows[waiting].repeat_interleave(next_ones.shape[1]))
            seen = [part.view(next_ones.shape) for part in own(tried.flatten(0, 1))]
            here = found.of(rows[waiting])
            for i in range(next_ones.shape[1]):
                here.see(tried[:, i], *(part[:, i] for part in seen))
            found.put(rows[waiting], here)
            n_tried, n_next = n_tried + n_next, n_next * TIMES_AS_MANY


def descend_from_neighbours(judge: Judge, found: Found, n_steps: int) -> None:
    """Move one whole number at a time, and descend on what can be fractions.

    From the best so far each count that is acted on, or has a step,
    goes up and down by `STRIDES`, and each category is tried. It
    stays there while the other features descend. What is found goes
    into `found`.

    Arguments:
        n_steps: Of each descent.
    """
    population, step = judge.problem.population, judge.interval.step
    is_count = torch.zeros_like(judge.acts)
    one = (1 / population.std[judge.columns]).to(found.values).expand(judge.acts.shape)
    if population.whole is not None:
        is_count = population.whole.is_whole[judge.columns].expand(judge.acts.shape)
    if step is not None:
        is_count, one = is_count | (step > 0), torch.where(step > 0, step, one)
    for k in is_count.any(0).nonzero().squeeze(-1):
        codes = found.values.new_zeros(0)
        if population.actionable[k] in population.categories:
            codes = population.counts(judge.columns[k])
        for move in codes if len(codes) else STRIDES:
            start = found.values.clone()
            if len(codes):
                start[:, k] = move
            else:
                start[:, k] += move * one[:, k] * is_count[:, k]
            descend(judge, start, found, n_steps, may_change=~is_count)
