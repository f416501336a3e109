"""Beyond the grid: for every person and every set of features the cheapest valid and plausible action over all values.

All pairs of a person and a set are searched side by side, by descent on the values from several starts. The best of what was
visited is then walked back towards the person until it is only just valid and plausible. What a person may do is not asked:
the answers for all sets are one table, in which anybody's recourse, and what would unlock it, is looked up.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from lib.base import checks
from lib.base.arithmetic import Adam
from lib.causal.world import World
from lib.preferences.scores import Preferences, Profile
from lib.problem.recourse import Problem, Recommendation, in_columns

SURE = 1e-4  # by which log-odds and log-density must exceed their bounds, so that rounding cannot take it back
MISSING = 4.0  # what a unit of log-odds, or a nat, that is missing weighs beside the cost
PEOPLE_AT_ONCE = 256


class Judge:
    """What actions come to, a row an action: cost, log-odds of a positive decision, change of log-density.

    Arguments:
        world: Where actions take effect.
        x: Whose action it is, with shape (R, D).
        acts: Which of the K actionable features they act on, with shape (R, K), bool.
        weights: Of their cost, with shape (R, K).
    """

    def __init__(
        self, problem: Problem, world: World, x: Tensor, acts: Tensor, weights: Tensor
    ) -> None:
        self.problem, self.world, self.x, self.acts, self.weights = (
            problem,
            world,
            x,
            acts,
            weights,
        )
        self.columns = problem.population.actionable_index
        problem.check_world(world)
        self.moves = world.graph.moved_by(self.columns)
        self.is_acted = in_columns(acts.to(x.dtype), self.columns, x.shape[-1]) > 0
        self.low, self.high = (
            bound[self.columns].to(x)
            for bound in (problem.population.low, problem.population.high)
        )
        with torch.no_grad():
            at_rest = problem.flow.graph.at_rest(self.moves)
            self.known = {
                j: problem.flow.map_of(j, x[:, problem.flow.graph.parent_index[j]])
                for j in at_rest
            }
            self.before = problem.flow.log_prob_terms(x, self.moves, self.known).sum(-1)
            self.noise = world.abduct(x)

    def advice(self, values: Tensor) -> Recommendation:
        """The action of each row as a recommendation; values with shape (R, K)."""
        spread = torch.where(
            self.is_acted, in_columns(values, self.columns, self.x.shape[-1]), self.x
        )
        return Recommendation(
            self.is_acted,
            spread,
            self.world.counterfactual(self.x, self.is_acted, spread, self.noise),
        )

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cost, log-odds, and change of log-density in nats of setting features to values (R, K); each with shape (R,)."""
        x_cf = self.advice(values).x_cf
        cost = self.problem.action_cost(
            self.x[:, self.columns], self.acts, values, self.weights
        )
        gain = (
            self.problem.flow.log_prob_terms(x_cf, self.moves, self.known).sum(-1)
            - self.before
        )
        return cost, self.problem.classifier.logit(x_cf), gain


@dataclass
class Found:
    """The best so far, a row an action.

    Arguments:
        cost: Of the cheapest valid and plausible action, infinite where there is none, with shape (R,).
        values: Of that action, or anything, with shape (R, K).
        log_odds: The highest seen of plausible actions; gain: the highest seen of valid actions; minus infinity if none was.
    """

    cost: Tensor
    values: Tensor
    log_odds: Tensor
    gain: Tensor

    @classmethod
    def nothing(cls, values: Tensor) -> "Found":
        none = torch.full(values.shape[:-1], torch.inf, dtype=values.dtype)
        return cls(none, values.clone(), -none, -none)

    def of(self, rows: Tensor) -> "Found":
        """That of some rows, a mask (R,)."""
        return Found(
            self.cost[rows], self.values[rows], self.log_odds[rows], self.gain[rows]
        )

    def put(self, rows: Tensor, other: "Found") -> None:
        """What was found for these rows, a mask (R,), in place of what is here."""
        for name in ("cost", "values", "log_odds", "gain"):
            getattr(self, name)[rows] = getattr(other, name)

    def see(self, values: Tensor, cost: Tensor, log_odds: Tensor, gain: Tensor) -> None:
        """Keep what is better."""
        valid, plausible = log_odds >= SURE, gain >= SURE
        better = valid & plausible & (cost < self.cost)
        self.cost = torch.where(better, cost, self.cost)
        self.values = torch.where(better[:, None], values, self.values)
        self.log_odds = torch.where(
            plausible, torch.maximum(log_odds, self.log_odds), self.log_odds
        )
        self.gain = torch.where(valid, torch.maximum(gain, self.gain), self.gain)


def _loss(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    return cost + MISSING * ((2 * SURE - log_odds).relu() + (2 * SURE - gain).relu())


@torch.no_grad()
def scout(
    judge: Judge, found: Found, n_scouts: int, n_starts: int, rng: np.random.Generator
) -> Tensor:
    """The best of some scattered actions by the descent's loss, as starts for it, with shape (n_starts, R, K).

    They are a Sobol sequence between the factual values and the ends of the range, and what is found goes into `found`.
    """
    factual = judge.x[:, judge.columns]
    points = torch.from_numpy(
        qmc.Sobol(factual.shape[-1] + 1, rng=rng).random(n_scouts)
    ).to(factual)
    best = torch.full((n_starts, len(factual)), torch.inf, dtype=factual.dtype)
    starts = factual.expand(n_starts, -1, -1).clone()
    highest, worst = best.max(0)  # the place that a better one takes
    for point in points:
        values = factual + point[-1] * (
            judge.low + (judge.high - judge.low) * point[:-1] - factual
        )
        seen = judge(values)
        found.see(values, *seen)
        loss = _loss(*seen)
        better = (loss < highest).nonzero().squeeze(-1)
        best[worst[better], better], starts[worst[better], better] = (
            loss[better],
            values[better],
        )
        highest[better], worst[better] = best[:, better].max(0)
    return starts


def _shortfall(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    """What is missing alone, in logarithms, so that far too low odds do not drown the density."""
    return (2 * SURE - log_odds).relu().log1p() + (2 * SURE - gain).relu().log1p()


def descend(
    judge: Judge,
    start: Tensor,
    found: Found,
    n_steps: int,
    learning_rate: float,
    loss: Callable[..., Tensor] = _loss,
) -> None:
    """Adam on the values from a start (R, K), within the range of the data; what is found on the way goes into `found`."""
    values = start.clamp(judge.low, judge.high).requires_grad_()
    optimiser = Adam([values], learning_rate, n_steps, lowest=learning_rate / 20)
    for _ in range(n_steps):
        cost, log_odds, gain = judge(values)
        with torch.no_grad():
            found.see(values, cost, log_odds, gain)
        optimiser.step(torch.autograd.grad(loss(cost, log_odds, gain).sum(), values))
        optimiser.decay()
        with torch.no_grad():
            values.clamp_(judge.low, judge.high)
    with torch.no_grad():
        found.see(values, *judge(values))


@torch.no_grad()
def copy_smaller_sets(judge: Judge, found: Found, sets: Tensor) -> None:
    """Let each set try what the best set with a feature less leads to: the feature more does what would become of it anyway.

    Rows are all sets of one person after the other, in the order of `sets`. What is found goes into `found`.
    """
    n_features = sets.sum(-1)
    is_part = ~(sets[None] & ~sets[:, None]).any(
        -1
    )  # of the set in the row, the one in the column
    is_smaller = is_part & (n_features[:, None] == n_features + 1)
    best = found.cost.view(-1, 1, len(sets)).masked_fill(~is_smaller, torch.inf).argmin(-1)
    after = judge.advice(found.values).x_cf[:, judge.columns].view(-1, *sets.shape)
    copied = (
        after.gather(1, best[..., None].expand_as(after))
        .flatten(0, 1)
        .clamp(judge.low, judge.high)
    )
    found.see(copied, *judge(copied))


@torch.no_grad()
def walk_back(judge: Judge, found: Found, n_halvings: int = 20) -> None:
    """Bisection between the best action and none: the cost falls along the way, until one of the bounds is met."""
    factual, best = judge.x[:, judge.columns], found.values
    least, most = (
        torch.zeros(len(best), 1, dtype=best.dtype),
        torch.ones(len(best), 1, dtype=best.dtype),
    )
    for _ in range(n_halvings):
        share = (least + most) / 2
        values = factual + share * (best - factual)
        cost, log_odds, gain = judge(values)
        will_do = ((log_odds >= SURE) & (gain >= SURE))[:, None]
        found.see(values, cost, log_odds, gain)
        least, most = torch.where(will_do, least, share), torch.where(will_do, share, most)


@dataclass(frozen=True)
class Table:
    """What was found for N people and the S non-empty sets of the K actionable features.

    Arguments:
        sets: The sets, small ones first, with shape (S, K), bool.
        cost: Of the cheapest valid and plausible action on each set, infinite where none was found, with shape (N, S).
        values: Of that action, with shape (N, S, K).
        log_odds: The highest seen of plausible actions and of no action, with shape (N, S); below zero where none was valid.
        gain: The highest change of log-density seen of valid actions, in nats, with shape (N, S); minus infinity: none was valid.
    """

    sets: Tensor
    cost: Tensor
    values: Tensor
    log_odds: Tensor
    gain: Tensor

    def cheapest(self, may: Tensor) -> tuple[Tensor, Tensor]:
        """The lowest cost over the sets that a mask (N, K) allows, infinite if there is none, and the set; each (N,)."""
        return self._allowed(self.cost, may, torch.inf).min(-1)

    def blocked_by(self, may: Tensor) -> tuple[Tensor, Tensor]:
        """How far the best attempts of a person without recourse fall short; each with shape (N,).

        Returns: The highest log-odds seen of a plausible action, and the highest change of log-density of a valid one.
        """
        return self._allowed(self.log_odds, may, -torch.inf).amax(-1), self._allowed(
            self.gain, may, -torch.inf
        ).amax(-1)

    def unlocked_by(self, may: Tensor) -> Tensor:
        """The lowest cost if one more feature were open, for each feature, with shape (N, K); infinite if that is not enough."""
        one_more = torch.eye(may.shape[-1], dtype=torch.bool)
        return torch.stack([self.cheapest(may | more)[0] for more in one_more], -1)

    def key(self, may: Tensor) -> Tensor:
        """The fewest forbidden features that together unlock recourse (the cheapest such set), as a mask (N, K).

        Empty for people who have recourse, and for those whom nothing helps.
        """
        best = torch.zeros_like(may)
        found = self.cheapest(may)[0].isfinite()
        for size in range(1, may.shape[-1] + 1):
            of_size = self.sets[self.sets.sum(-1) == size]
            more = of_size[:, None] & ~may  # those already open are no part of the key
            price = torch.stack([self.cheapest(may | own)[0] for own in more])
            price[more.sum(-1) != size] = torch.inf
            lowest, which = price.min(0)
            now = ~found & lowest.isfinite()
            best[now] = more[which, torch.arange(len(may))][now]
            found |= now
        return best

    def _allowed(self, entries: Tensor, may: Tensor, otherwise: float) -> Tensor:
        return entries.masked_fill((self.sets & ~may[:, None]).any(-1), otherwise)


def sets_of(n_features: int) -> Tensor:
    """The non-empty sets of n features, small ones first, with shape (2^n - 1, n), bool."""
    sets = torch.tensor(
        [
            [bool(code >> j & 1) for j in range(n_features)]
            for code in range(1, 2**n_features)
        ]
    )
    return sets[sets.sum(-1).argsort(stable=True)]


def search(
    problem: Problem,
    world: World,
    x: Tensor,
    weights: Tensor | None = None,
    starts: Sequence[Recommendation] = (),
    n_scouts: int = 1024,
    n_starts: int = 8,
    n_steps: int = 15,
    learning_rate: float = 0.15,
    seed: int = 0,
    n_threads: int = 1,
    progress: Callable[[range], range] = iter,
) -> Table:
    """The cheapest action on every set of features for every person, within the range of the data.

    Descents begin at the best of some scattered actions, and at a known action on the set that it uses, else at the factual
    values. Where they find nothing, a longer one asks for no more than validity and plausibility, at any cost. The last begins
    at the best so far, which may be what the best set with a feature less leads to. Where actions are scattered is drawn for
    each batch of people, so that what is found for a person depends a little on who is beside them.

    Arguments:
        world: Where actions take effect: the true SCM, or the flow.
        x: Refused people, with shape (N, D).
        weights: Of the cost, with shape (N, K); left out: all one.
        starts: Known actions of each person, for instance the grid's for several masks. On their sets nothing costlier than the
            valid and plausible among them is returned (those that are so but for rounding, 1e-4, count).
        n_scouts, n_starts: Scattered actions that are looked at, and how many of them a descent begins at.
        n_steps, learning_rate: Of each descent.
        seed: Of where the actions are scattered.
        n_threads: Batches of people that are searched at once; the result is the same.
        progress: Wraps the range of batches of people.
    Raises: ValueError: x are not refused people, weights or starts have another shape, the world's graph is not the flow's, or
        values must be whole numbers.
    """
    population = problem.population
    if population.whole is not None:
        raise ValueError(
            f"{population.name} has features that are whole numbers: use lib.oracle.search, which tries those."
        )
    columns, sets = population.actionable_index, sets_of(len(population.actionable))
    weights = (
        torch.ones(len(x), len(columns), dtype=x.dtype)
        if weights is None
        else weights.to(x)
    )
    checks.people("x", x, population.features)
    if len(x) == 0:
        raise ValueError("x holds nobody: give at least one refused person.")
    checks.refused(problem.accepts(x))
    checks.shape("weights", weights, (len(x), len(columns)))
    if isinstance(starts, Recommendation):
        raise ValueError(
            "starts is one recommendation: give a list of them, [recommendation]."
        )
    starts = list(starts)
    for i, start in enumerate(starts):
        checks.shape(f"starts[{i}].values", start.values, x.shape)

    def search_some(first: int, rng: np.random.Generator) -> list[Tensor]:
        some = slice(first, first + PEOPLE_AT_ONCE)
        own, n_people = x[some], len(x[some])
        rows = own.repeat_interleave(len(sets), 0)
        judge = Judge(
            problem,
            world,
            rows,
            sets.repeat(n_people, 1),
            weights[some].repeat_interleave(len(sets), 0),
        )
        first_start = rows[:, columns]
        found = Found.nothing(first_start)
        for start in starts:
            known = start.values[some][:, columns].repeat_interleave(len(sets), 0)
            same_set = (
                start.is_acted[some][:, columns].repeat_interleave(len(sets), 0)
                == judge.acts
            ).all(-1)
            with torch.no_grad():
                cost, log_odds, gain = judge(known)
            # a known action that is valid and plausible stays so, on whichever side of a rounding error it lies
            good = same_set & (log_odds >= -SURE) & (gain >= -SURE)
            bounds = (
                torch.where(good, part.clamp_min(SURE), -torch.inf)
                for part in (log_odds, gain)
            )
            found.see(known, cost, *bounds)
            first_start = torch.where(same_set[:, None], known, first_start)
        scattered = scout(judge, found, n_scouts, n_starts, rng)
        for values in [first_start, *scattered]:
            descend(judge, values, found, n_steps, learning_rate)
        none = found.cost.isinf()
        if none.any():
            harder = Judge(
                problem, world, rows[none], judge.acts[none], judge.weights[none]
            )
            left = found.of(none)
            descend(
                harder, scattered[0][none], left, 4 * n_steps, learning_rate, _shortfall
            )
            descend(harder, left.values, left, n_steps, learning_rate)
            found.put(none, left)
        copy_smaller_sets(judge, found, sets)
        descend(judge, found.values, found, n_steps, learning_rate)
        walk_back(judge, found)
        found.log_odds = torch.maximum(
            found.log_odds, problem.classifier.logit(rows)
        )  # no action is plausible
        return [
            part.unflatten(0, (n_people, len(sets)))
            for part in (found.cost, found.values, found.log_odds, found.gain)
        ]

    firsts = range(0, len(x), PEOPLE_AT_ONCE)
    pool = ThreadPoolExecutor(n_threads)
    try:
        found_for = list(
            map(
                partial(pool.submit, search_some),
                firsts,
                np.random.default_rng(seed).spawn(len(firsts)),
            )
        )
        parts = [found_for[i].result() for i in progress(range(len(firsts)))]
    finally:
        pool.shutdown(
            cancel_futures=True
        )  # who interrupts waits for the batches that are being searched, not for all
    return Table(sets, *(torch.cat(part) for part in zip(*parts, strict=True)))


def recommend(
    problem: Problem, world: World, x: Tensor, preferences: Preferences, table: Table
) -> Recommendation:
    """Each person's cheapest action in the table that their mask allows; nothing where there is none."""
    problem.check(x, preferences)
    cost, which = table.cheapest(preferences.is_actionable)
    acts = table.sets[which] & cost.isfinite()[:, None]
    values = table.values[torch.arange(len(x)), which]
    return Judge(problem, world, x, acts, torch.ones_like(values)).advice(values)


def refine(
    problem: Problem,
    world: World,
    x: Tensor,
    preferences: Preferences,
    advice: Recommendation,
    profile: Profile = Profile(),
    n_scouts: int = 256,
    n_starts: int = 3,
    n_steps: int = 15,
    learning_rate: float = 0.15,
    seed: int = 0,
) -> Recommendation:
    """A network's recommendation (N, D) made better, on its own features and on all that a person may use.

    Short descents begin at the recommendation and at the best of a few scattered actions; other arguments as for `search`.

    Returns: What is cheapest of what is valid and plausible, else the recommendation as it was; so that one that is valid and
        plausible never gets worse.
    """
    problem.check(x, preferences)
    columns, weights = (
        problem.population.actionable_index,
        profile.weight(preferences).to(x),
    )
    acts, values = advice.is_acted[:, columns], advice.values[:, columns]
    own = Judge(problem, world, x, acts, weights)
    cost, log_odds, gain = (part.detach() for part in own(values))
    best_cost = torch.where((log_odds >= 0) & (gain >= 0), cost, torch.inf)
    rng = np.random.default_rng(seed)
    for on in (acts, preferences.is_actionable):
        judge = Judge(problem, world, x, on, weights)
        found = Found.nothing(values)
        for start in [values, *scout(judge, found, n_scouts, n_starts, rng)]:
            descend(judge, start, found, n_steps, learning_rate)
        walk_back(judge, found)
        better = found.cost < best_cost
        acts, values = (
            torch.where(better[:, None], on, acts),
            torch.where(better[:, None], found.values, values),
        )
        best_cost = torch.where(better, found.cost, best_cost)
    return Judge(problem, world, x, acts, weights).advice(values)
