"""Descent on the values of actions: the moves from which `lib.solvers.continuous` is built.

Each works on many actions side by side, a row an action, and keeps in
a `Found` the best of what it visits. A `Judge` says what an action
comes to. Gradients are needed: the classifier must be one that torch
can differentiate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from lib.base import checks
from lib.base.arithmetic import Adam
from lib.causal.world import World
from lib.problem.recourse import Problem, Recommendation, in_columns

# by which log-odds and log-density must exceed their bounds, so that rounding cannot take
# it back
SURE = 1e-4
MISSING = 4.0  # what a unit of log-odds, or a nat, that is missing weighs beside the cost


class Judge:
    """Say what actions come to: cost, log-odds and change of log-density, a row an action.

    Arguments:
        world: Where actions take effect.
        x: Whose action it is, with shape (R, D).
        acts: Which of the K actionable features they act on, with
            shape (R, K), bool.
        weights: Of their cost, with shape (R, K).
    Raises: ValueError: a shape is another, or the world's graph is
        not the flow's.
    Example:
        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:1]
        >>> acts = torch.tensor([[False, False, True, True]])
        >>> judge = Judge(problem, problem.population.truth, x, acts, torch.ones(1, 4))
        >>> nothing_changes = x[:, judge.columns]
        >>> cost, log_odds, gain = judge(nothing_changes)
        >>> cost.item(), (log_odds < 0).item(), round(gain.item(), 4)
        (0.0, True, 0.0)
    """

    def __init__(
        self, problem: Problem, world: World, x: Tensor, acts: Tensor, weights: Tensor
    ) -> None:
        self.columns = problem.population.actionable_index
        checks.people("x", x, problem.population.features)
        checks.shape("acts", acts, (len(x), len(self.columns)))
        checks.shape("weights", weights, acts.shape)
        problem.check_world(world)
        self.problem, self.world = problem, world
        self.x, self.acts, self.weights = x, acts, weights
        self.moves = world.graph.moved_by(self.columns)
        self.is_acted = in_columns(acts.to(x.dtype), self.columns, x.shape[-1]) > 0
        self.low = problem.population.low[self.columns].to(x)
        self.high = problem.population.high[self.columns].to(x)
        flow = problem.flow
        with torch.no_grad():
            self.known = {
                j: flow.map_of(j, x[:, flow.graph.parent_index[j]])
                for j in flow.graph.at_rest(self.moves)
            }
            self.before = flow.log_prob_terms(x, self.moves, self.known).sum(-1)
            self.noise = world.abduct(x)

    def recommendation(self, values: Tensor) -> Recommendation:
        """Return the action of each row as a recommendation; values with shape (R, K).

        Example:
            >>> from lib.problem import loan
            >>> problem = loan.problem()
            >>> x = problem.refused("test")[:1]
            >>> acts = torch.tensor([[False, False, True, False]])
            >>> judge = Judge(problem, problem.population.truth, x, acts, torch.ones(1, 4))
            >>> richer = judge.recommendation(x[:, judge.columns] + 1)
            >>> (richer.x_cf - x)[0, 5:].round(decimals=2)  # savings follow income
            tensor([1.0000, 0.5600])
        """
        spread = in_columns(values, self.columns, self.x.shape[-1])
        spread = torch.where(self.is_acted, spread, self.x)
        x_cf = self.world.counterfactual(self.x, self.is_acted, spread, noise=self.noise)
        return Recommendation(self.is_acted, spread, x_cf)

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return what setting features to values (R, K) comes to; each with shape (R,).

        Returns: Cost, log-odds of a positive decision, and change of
            log-density in nats.
        """
        x_cf = self.recommendation(values).x_cf
        factual = self.x[:, self.columns]
        cost = self.problem.action_cost(factual, self.acts, values, self.weights)
        after = self.problem.flow.log_prob_terms(x_cf, self.moves, self.known).sum(-1)
        return cost, self.problem.classifier.logit(x_cf), after - self.before


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
    Example:
        >>> found = Found.nothing(torch.zeros(1, 1))
        >>> seen = torch.tensor([[2.0]]), torch.tensor([3.0]), torch.tensor([0.5])
        >>> found.see(*seen, torch.tensor([-0.1]))
        >>> found.cost, found.gain  # valid, but not plausible
        (tensor([inf]), tensor([-0.1000]))
        >>> found.see(*seen, torch.tensor([0.2]))
        >>> found.cost, found.values
        (tensor([3.]), tensor([[2.]]))
    """

    cost: Tensor
    values: Tensor
    log_odds: Tensor
    gain: Tensor

    @classmethod
    def nothing(cls, values: Tensor) -> "Found":
        """Return a `Found` that has seen nothing yet, with these values (R, K).

        Example:
            >>> Found.nothing(torch.zeros(2, 3)).cost
            tensor([inf, inf])
        """
        none = torch.full(values.shape[:-1], torch.inf, dtype=values.dtype)
        return cls(none, values.clone(), -none, -none)

    def of(self, rows: Tensor) -> "Found":
        """Return what was found for some rows, a mask (R,).

        Example:
            >>> found = Found.nothing(torch.tensor([[1.0], [2.0]]))
            >>> found.of(torch.tensor([False, True])).values
            tensor([[2.]])
        """
        return Found(
            self.cost[rows], self.values[rows], self.log_odds[rows], self.gain[rows]
        )

    def put(self, rows: Tensor, other: "Found") -> None:
        """Replace what is here for these rows, a mask (R,), by what another search found.

        Example:
            >>> found = Found.nothing(torch.zeros(2, 1))
            >>> found.put(torch.tensor([False, True]), Found.nothing(torch.ones(1, 1)))
            >>> found.values
            tensor([[0.],
                    [1.]])
        """
        for name in ("cost", "values", "log_odds", "gain"):
            getattr(self, name)[rows] = getattr(other, name)

    def see(self, values: Tensor, cost: Tensor, log_odds: Tensor, gain: Tensor) -> None:
        """Keep of these actions, one a row, what is better than what is here.

        Example:
            >>> found = Found.nothing(torch.zeros(1, 1))
            >>> good = torch.ones(1)
            >>> for value, cost in [(5.0, 2.0), (4.0, 1.0), (6.0, 3.0)]:
            ...     found.see(torch.tensor([[value]]), torch.tensor([cost]), good, good)
            >>> found.values
            tensor([[4.]])
        """
        valid, plausible = log_odds >= SURE, gain >= SURE
        better = valid & plausible & (cost < self.cost)
        self.cost = torch.where(better, cost, self.cost)
        self.values = torch.where(better[:, None], values, self.values)
        self.log_odds = torch.where(
            plausible, torch.maximum(log_odds, self.log_odds), self.log_odds
        )
        self.gain = torch.where(valid, torch.maximum(gain, self.gain), self.gain)


def penalised_cost(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    """Return the cost and, `MISSING` times, what is missing to be valid and plausible.

    Example:
        >>> cost, log_odds, gain = torch.tensor([[0.5, 0.5], [1.0, -1.0], [1.0, 1.0]])
        >>> penalised_cost(cost, log_odds, gain).round(decimals=2)
        tensor([0.5000, 4.5000])
    """
    return cost + MISSING * ((2 * SURE - log_odds).relu() + (2 * SURE - gain).relu())


def shortfall(cost: Tensor, log_odds: Tensor, gain: Tensor) -> Tensor:
    """Return what is missing to be valid and plausible, whatever the cost.

    It is taken in logarithms, so that far too low odds do not drown
    the density.

    Example:
        >>> cost, log_odds, gain = torch.tensor([[0.5, 9.0], [1.0, -1.0], [1.0, 1.0]])
        >>> shortfall(cost, log_odds, gain).round(decimals=2)
        tensor([0.0000, 0.6900])
    """
    return (2 * SURE - log_odds).relu().log1p() + (2 * SURE - gain).relu().log1p()


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
    Example:
        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:20]
        >>> acts = torch.ones(20, 4, dtype=torch.bool)
        >>> judge = Judge(problem, problem.population.truth, x, acts, torch.ones(20, 4))
        >>> found = Found.nothing(x[:, judge.columns])
        >>> scout(judge, found, 64, 2, np.random.default_rng(0)).shape
        torch.Size([2, 20, 4])
        >>> bool(found.cost.isfinite().any())
        True
    """
    checks.positive(n_scouts=n_scouts, n_starts=n_starts)
    factual = judge.x[:, judge.columns]
    sobol = qmc.Sobol(factual.shape[-1] + 1, rng=rng)
    points = torch.from_numpy(sobol.random(n_scouts)).to(factual)
    best = torch.full((n_starts, len(factual)), torch.inf, dtype=factual.dtype)
    starts = factual.expand(n_starts, -1, -1).clone()
    highest, worst = best.max(0)  # the place that a better one takes
    for point in points:
        values = factual + point[-1] * (
            judge.low + (judge.high - judge.low) * point[:-1] - factual
        )
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
    learning_rate: float,
    loss: Callable[..., Tensor] = penalised_cost,
) -> None:
    """Descend with Adam from a start (R, K), within the range of the data.

    What is found on the way goes into `found`.

    Arguments:
        n_steps, learning_rate: Of Adam; the rate falls to a twentieth
            along a cosine.
        loss: `penalised_cost` or `shortfall`.
    Raises: ValueError: the classifier has no gradient.
    Example:
        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:20]
        >>> acts = torch.ones(20, 4, dtype=torch.bool)
        >>> judge = Judge(problem, problem.population.truth, x, acts, torch.ones(20, 4))
        >>> found = Found.nothing(x[:, judge.columns])
        >>> descend(judge, x[:, judge.columns], found, n_steps=25, learning_rate=0.3)
        >>> bool(found.cost.isfinite().any())
        True
    """
    judge.problem.check_gradient("descent")
    checks.positive(n_steps=n_steps, learning_rate=learning_rate)
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
    """Let each set of features try what the best set with one feature less leads to.

    The added feature is set to what would become of it anyway. What
    is found goes into `found`.

    Arguments:
        sets: The sets, with shape (S, K), bool. The judge's rows are
            all sets of one person after the other, in this order.
    Raises: ValueError: the rows are not whole rounds of the sets.
    Example:
        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> sets = torch.tensor([[False, False, True, False], [False, False, True, True]])
        >>> x = problem.refused("test")[:20].repeat_interleave(2, 0)
        >>> acts, weights = sets.repeat(20, 1), torch.ones(40, 4)
        >>> judge = Judge(problem, problem.population.truth, x, acts, weights)
        >>> found = Found.nothing(x[:, judge.columns])
        >>> descend(judge, x[:, judge.columns], found, n_steps=25, learning_rate=0.3)
        >>> found.cost[1::2] = torch.inf  # forget what was found for the larger set
        >>> copy_smaller_sets(judge, found, sets)
        >>> bool(found.cost[1::2].isfinite().any())
        True
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
    copied = copied.clamp(judge.low, judge.high)
    found.see(copied, *judge(copied))


@torch.no_grad()
def walk_back(judge: Judge, found: Found, n_halvings: int = 20) -> None:
    """Bisect between the best action and none, as far as it stays valid and plausible.

    The cost falls along the way back, until one of the two bounds is
    met.

    Example:
        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:20]
        >>> acts = torch.ones(20, 4, dtype=torch.bool)
        >>> judge = Judge(problem, problem.population.truth, x, acts, torch.ones(20, 4))
        >>> found = Found.nothing(x[:, judge.columns])
        >>> descend(judge, x[:, judge.columns], found, n_steps=25, learning_rate=0.3)
        >>> before = found.cost
        >>> walk_back(judge, found)
        >>> bool((found.cost <= before).all()), bool((found.cost < before).any())
        (True, True)
    """
    factual, best = judge.x[:, judge.columns], found.values
    least = torch.zeros(len(best), 1, dtype=best.dtype)
    most = torch.ones(len(best), 1, dtype=best.dtype)
    for _ in range(n_halvings):
        share = (least + most) / 2
        values = factual + share * (best - factual)
        cost, log_odds, gain = judge(values)
        will_do = ((log_odds >= SURE) & (gain >= SURE))[:, None]
        found.see(values, cost, log_odds, gain)
        least, most = torch.where(will_do, least, share), torch.where(will_do, share, most)
