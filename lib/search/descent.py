"""Descent on the values of actions: the moves from which `lib.search.continuous` is built.

Each works on many actions in one batch, a row an action, and updates
the `Incumbents`. Gradients are needed: the classifier must be one
that torch can differentiate.
"""

import math

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from lib import checks
from lib.search.evaluator import (
    ActionEvaluator,
    Incumbents,
    Outcome,
    penalised_cost,
    shortfall,
)

TINY = 1e-12  # so that nothing is divided by zero
LEAST_WEIGHT = 1e-3  # so that a step along a feature that costs nothing has a length, too
FIRST_BLOCK, BLOCK_GROWTH = 64, 4  # of them in one batch: the cheapest; then more
PAIRS_BATCH_SIZE = 1_000_000  # of rows and combinations in memory
STRIDES = (-3, -1, 1, 3)  # by which a whole number is moved from the best so far
MANY_VALUES = 1_000  # a whole number with more of them descends as a fraction does


@torch.no_grad()
def sobol_starts(
    evaluator: ActionEvaluator,
    incumbents: Incumbents,
    n_samples: int,
    n_starts: int,
    rng: np.random.Generator,
) -> Tensor:
    """Return the best of a Sobol sequence of actions, as starts for descents.

    They lie between the factual values and the ends of the interval.
    Best is what has the lowest `penalised_cost`. The incumbents are
    updated.

    Arguments:
        n_samples, n_starts: How many actions are evaluated for each
            row, and how many are kept.
        rng: Of the sequence.
    Returns: With shape (n_starts, R, K).
    """
    checks.positive_int(n_samples=n_samples, n_starts=n_starts)
    factual, interval = evaluator.factual, evaluator.interval
    sobol = qmc.Sobol(factual.shape[-1] + 1, rng=rng)
    points = torch.from_numpy(sobol.random(n_samples)).to(factual)
    losses = torch.full((n_starts, len(factual)), torch.inf, dtype=factual.dtype)
    starts = factual.expand(n_starts, -1, -1).clone()
    highest, worst = losses.max(0)  # what a better one replaces
    for point in points:
        anywhere = interval.low + (interval.high - interval.low) * point[:-1]
        values = evaluator.project(factual + point[-1] * (anywhere - factual))
        outcome = evaluator(values)
        incumbents.update(values, outcome)
        loss = penalised_cost(outcome)
        better = (loss < highest).nonzero().squeeze(-1)
        losses[worst[better], better] = loss[better]
        starts[worst[better], better] = values[better]
        highest[better], worst[better] = losses[:, better].max(0)
    return starts


def descend(
    evaluator: ActionEvaluator,
    start: Tensor,
    incumbents: Incumbents,
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
    The incumbents are updated on the way.

    Arguments:
        n_steps: How many steps.
        may_change: Which features may change, a mask (R, K); the
            others keep the values of the start; None: all that are
            acted on.
    Raises: ValueError: the classifier has no gradient.
    Source: Nocedal and Wright, *Numerical Optimization*, 2nd edition,
        chapter 18.
    """
    problem, factual = evaluator.problem, evaluator.factual
    problem.check_gradient("descent")
    checks.positive_int(n_steps=n_steps)
    is_free = evaluator.mask if may_change is None else evaluator.mask & may_change
    metric = evaluator.weights.clamp_min(LEAST_WEIGHT) / problem.range[evaluator.columns]
    values, rows = evaluator.project(start), torch.arange(len(start))
    step_size = torch.ones_like(values[:, :1])
    for _ in range(n_steps):
        outcome, slopes = _linearise(evaluator, values, is_free)
        incumbents.update(values, outcome)
        with torch.no_grad():
            change = values - factual
            along = torch.stack([(slope * change).sum(-1) for slope in slopes])
            target = cheapest_within(slopes, along + shortfall(outcome), metric)
            step = is_free * (target - change)

            first = evaluator.project(values + step_size * step)
            first_outcome = evaluator(first)
            incumbents.update(first, first_outcome)

            correction = cheapest_within(slopes, shortfall(first_outcome), metric)
            second = evaluator.project(first + correction)
            second_outcome = evaluator(second)
            incumbents.update(second, second_outcome)

            outcomes = (outcome, first_outcome, second_outcome)
            losses = torch.stack([penalised_cost(o) for o in outcomes])
            best = losses.min(0).indices  # argmin takes 20 times as long
            values = torch.stack([values, first, second])[best, rows]
            longer, shorter = (1.5 * step_size).clamp_max(1.0), 0.4 * step_size
            step_size = torch.where(best[:, None] > 0, longer, shorter)


def _linearise(
    evaluator: ActionEvaluator, values: Tensor, is_free: Tensor
) -> tuple[Outcome, tuple[Tensor, Tensor]]:
    """Return the outcome of values (R, K), and the slopes of log-odds and gain (R, K)."""
    values = values.detach().requires_grad_()
    outcome = evaluator(values)
    (of_log_odds,) = torch.autograd.grad(outcome.log_odds.sum(), values, retain_graph=True)
    (of_gain,) = torch.autograd.grad(outcome.gain.sum(), values)
    slopes = (of_log_odds * is_free, of_gain * is_free)
    return Outcome(*(tensor.detach() for tensor in outcome)), slopes


def cheapest_within(
    slopes: tuple[Tensor, Tensor], bounds: Tensor, metric: Tensor
) -> Tensor:
    r"""Return the cheapest change that keeps two linear bounds, with shape (R, K).

    .. math:: \min_v \sum_k c_k v_k^2 \quad \text{subject to} \quad
              s_1 v \ge b_1, \; s_2 v \ge b_2

    Where both cannot hold, at most one does.

    Arguments:
        slopes: s, two of them, each with shape (R, K).
        bounds: b, with shape (2, R).
        metric: c, above zero, with shape (R, K).
    """
    one, other = slopes
    # v is a sum of multiples of slope / metric: for each bound alone, then for both
    length = torch.stack([(s * s / metric).sum(-1) for s in slopes]).clamp_min(TINY)
    product = (one * other / metric).sum(-1)
    alone = (bounds / length).relu()
    is_enough = alone * product >= bounds.flip(0) - TINY
    determinant = (length.prod(0) - product**2).clamp_min(1e-6 * length.prod(0))
    both = ((length.flip(0) * bounds - product * bounds.flip(0)) / determinant).relu()
    zero = torch.zeros_like(alone[0])
    multiples = torch.where(is_enough[1], torch.stack([zero, alone[1]]), both)
    multiples = torch.where(is_enough[0], torch.stack([alone[0], zero]), multiples)
    return (multiples[0, :, None] * one + multiples[1, :, None] * other) / metric


@torch.no_grad()
def copy_smaller_sets(
    evaluator: ActionEvaluator,
    incumbents: Incumbents,
    sets: Tensor,
    people: Tensor,
    set_index: Tensor,
) -> None:
    """Try on each set what the person's best set with one feature less leads to.

    The added feature is set to what would become of it anyway. The
    incumbents are updated.

    Arguments:
        sets: With shape (S, K), bool.
        people, set_index: Whose action each row is, counted from 0,
            and which of the sets it acts on, each with shape (R,).
    """
    if len(people) == 0:
        return
    n_features, n_people = sets.sum(-1), int(people.max()) + 1
    n_beyond = sets.float() @ (~sets).float().T  # of the row's set, not in the column's
    is_smaller = (n_beyond.T == 0) & (n_features[:, None] == n_features + 1)
    cost = incumbents.cost.new_full((n_people, len(sets)), torch.inf)
    cost[people, set_index] = incumbents.cost
    row_at = torch.zeros(cost.shape, dtype=torch.long)
    row_at[people, set_index] = torch.arange(len(people))
    best = cost[people].masked_fill(~is_smaller[set_index], torch.inf).argmin(-1)
    after = evaluator.recommendation(incumbents.values).x_cf[:, evaluator.columns]
    values = evaluator.project(after[row_at[people, best]])
    incumbents.update(values, evaluator(values))


@torch.no_grad()
def enumerate_counts(
    evaluator: ActionEvaluator, incumbents: Incumbents, max_combinations: int
) -> None:
    """Try every combination of whole numbers on the sets that consist of counts alone.

    The cheapest come first. What costs more than what is known is not
    tried, so that the answer is exact. Sets with more than
    `max_combinations` are left to the descents. The incumbents are
    updated.
    """
    population, masks = evaluator.problem.population, evaluator.mask
    n_counts = torch.tensor([len(population.whole_range(j)) for j in evaluator.columns])
    only_counts = ~(masks & (n_counts == 0)).any(-1)
    for mask in masks[only_counts].unique(dim=0):
        n_combinations = math.prod(n_counts[mask].tolist())
        if n_combinations > max_combinations:
            continue
        chosen = zip(evaluator.columns, mask, strict=True)
        counts = [
            population.counts(j) if is_on else population.low.new_zeros(1)
            for j, is_on in chosen
        ]
        combinations = torch.cartesian_prod(*counts).view(-1, len(mask))
        (rows,) = (masks == mask).all(-1).nonzero(as_tuple=True)
        for some in rows.split(max(1, PAIRS_BATCH_SIZE // n_combinations)):
            _try_combinations(evaluator, incumbents, some, combinations)


def _try_combinations(
    evaluator: ActionEvaluator, incumbents: Incumbents, rows: Tensor, combinations: Tensor
) -> None:
    """Try combinations (C, K) on some rows, cheapest first, while they are cheap enough."""
    n_combinations = len(combinations)
    pairs = evaluator[rows.repeat_interleave(n_combinations)]
    values = pairs.project(combinations.repeat(len(rows), 1))
    cost, order = pairs.cost(values).view(len(rows), -1).sort(-1)
    values = values.view(len(rows), *combinations.shape)
    n_tried, block_size = 0, FIRST_BLOCK
    while n_tried < n_combinations:
        is_cheaper = cost[:, n_tried] < incumbents.cost[rows]
        (waiting,) = is_cheaper.nonzero(as_tuple=True)
        if len(waiting) == 0:
            return
        block = order[waiting, n_tried : n_tried + block_size]
        tried = values[waiting[:, None], block]
        of_block = evaluator[rows[waiting].repeat_interleave(block.shape[1])]
        outcome = [t.view(block.shape) for t in of_block(tried.flatten(0, 1))]
        for i in range(block.shape[1]):
            of_column = Outcome(*(tensor[:, i] for tensor in outcome))
            incumbents.update(tried[:, i], of_column, rows[waiting])
        n_tried, block_size = n_tried + block_size, block_size * BLOCK_GROWTH


def descend_from_neighbours(
    evaluator: ActionEvaluator, incumbents: Incumbents, n_steps: int
) -> None:
    """Move one whole number at a time, and descend on what can be fractions.

    From the best so far each count that is acted on, or has a step,
    goes up and down by `STRIDES`, and each category is tried. It
    stays there while the other features descend. One with more than
    `MANY_VALUES` is moved, too, and descends with the others. The
    incumbents are updated.

    Arguments:
        n_steps: Of each descent.
    """
    population, interval = evaluator.problem.population, evaluator.interval
    if population.discretisation is None and interval.step is None:
        return
    stride = torch.zeros_like(evaluator.factual)  # between neighbours; 0: a fraction
    if population.discretisation is not None:
        unit = (1 / population.std[evaluator.columns]).to(stride)
        stride += unit * population.discretisation.is_whole[evaluator.columns]
    if interval.step is not None:
        stride = torch.where(interval.step > 0, interval.step, stride)
    descends = interval.high - interval.low > MANY_VALUES * stride
    for k in (stride > 0).any(0).nonzero().squeeze(-1):
        codes = stride.new_zeros(0)
        if population.actionable[k] in population.categories:
            codes = population.counts(evaluator.columns[k])
        for move in codes if len(codes) else STRIDES:
            start = incumbents.values.clone()
            start[:, k] = move if len(codes) else start[:, k] + move * stride[:, k]
            descend(evaluator, start, incumbents, n_steps, may_change=descends)
