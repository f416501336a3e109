"""The oracle: for each person the cheapest valid and plausible action on a grid.

Every actionable feature takes "no action" or one of n values, which
makes 26^4 - 1 = 456,975 actions for four features and 25 values. The
search returns the grid's optimum without visiting the actions one by
one:

* Features that no causal path connects (amount and duration on one
  side, income and savings on the other) form separate blocks. A
  person's cost and their log-density are sums over blocks, so the
  world and the flow are evaluated for 676 + 676 actions and not for
  676 x 676. The first layer of a network classifier is such a sum,
  too.
* An action of one block that would be implausible beside the best of
  every other block is left out at once.
* Of the plausible actions the cheapest few hundred are shown to the
  classifier first. If one of them is valid, nothing unseen is
  cheaper; else the next are shown. Among the valid actions that cost
  the same, shown or not, the first with the fewest features is the
  answer.

People who may act on the same features have the same actions, and are
searched side by side. The classifier may be any: it is asked for
decisions only, and never for gradients.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from lib.base import checks
from lib.base.arithmetic import network
from lib.method.classifier import NetworkClassifier
from lib.method.limits import Interval
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import (
    Problem,
    Recommendation,
    check_bounds,
    check_weights,
    in_columns,
    is_plausible,
    is_valid,
)
from lib.method.world import World

SHOWN_FIRST, TIMES_AS_MANY = 256, 8  # of each person's candidates; and the next time
LISTED_AT_ONCE = 2**22  # of one person's candidates: 32 MB for each number that is kept
ASKED_AT_ONCE = 2**15  # candidates shown to the classifier in one call
TABULATED = 2**15  # of one block's actions, for all people side by side
COMBINED = 2**16  # actions over all blocks, of all people side by side
MOST_COMBINED = (
    2**26
)  # actions of one person, over all blocks: 256 MB for each of their sums
MOST_FLOATS = 2**27  # of one block's actions that are worked out in one go: 512 MB
WIDTH = 64  # floats an action needs at least: what the flow's networks make of it


@dataclass(frozen=True)
class Block:
    """Hold the actions on one causally connected set of features.

    Arguments:
        columns: All features that the actions of this block can move.
        acts, values: The block's actions, over all D features, each
            with shape (C, D). The first is "no action".
    Example:
        >>> acts = torch.tensor([[False, False], [True, False]])
        >>> Block([0, 1], acts, torch.tensor([[0.0, 0.0], [1.5, 0.0]])).acts.sum(-1)
        tensor([0, 1])
    """

    columns: list[int]
    acts: Tensor
    values: Tensor


def grids(
    problem: Problem, n_values: int, centred: float | None = None
) -> dict[int, Tensor]:
    """Return the values that are tried for each actionable feature, by its column.

    Arguments:
        n_values: Values per feature.
        centred: As for `Grid`. If given, what is returned are
            distances from a person's own value.
    Example:
        >>> {j: len(values) for j, values in grids(problem, 25).items()}
        {3: 25, 4: 25, 5: 25, 6: 25}
    """
    population = problem.population
    if centred is not None:
        dtype = problem.range.dtype
        steps = torch.linspace(-centred, centred, n_values, dtype=dtype)
        return {j: steps * problem.range[j] for j in population.actionable_index}
    return {
        j: population.grid(population.features[j], n_values)
        for j in population.actionable_index
    }


def blocks(
    world: World, grids: Mapping[int, Tensor], may: Tensor, max_acted: int | None = None
) -> list[Block]:
    """Return the blocks of the world's graph, each with the grid of its actions.

    Arguments:
        grids: The values of each actionable feature, by its column.
        may: The features that may be acted on, a mask with shape
            (D,). An actionable feature that may not be acted on stays
            in its block, without values.
        max_acted: How many of them an action is on at most; None: any
            number.
    Example:
        >>> world, may = problem.population.truth, torch.ones(7, dtype=torch.bool)
        >>> [(b.columns, len(b.acts)) for b in blocks(world, grids(problem, 25), may)]
        [([3, 4], 676), ([5, 6], 676)]
        >>> [len(b.acts) for b in blocks(world, grids(problem, 25), may, max_acted=1)]
        [51, 51]
    """
    found = []
    for columns in world.graph.blocks(list(grids)):
        at = [j for j in columns if j in grids]
        lists = [
            torch.cat([own.new_zeros(1), own if may[j] else own[:0]])  # first: no action
            for j, own in ((j, grids[j]) for j in at)
        ]
        places = torch.cartesian_prod(*(torch.arange(len(own)) for own in lists))
        places = places.view(-1, len(at))
        if max_acted is not None:
            places = places[(places > 0).sum(-1) <= max_acted]
        values = torch.stack(
            [own[place] for own, place in zip(lists, places.unbind(-1), strict=True)], -1
        )
        n_features = len(world.features)
        acts = in_columns((places > 0).float(), at, n_features) > 0
        found.append(Block(columns, acts, in_columns(values, at, n_features)))
    return found


@dataclass(frozen=True)
class Grid:
    """Hold an exact search on a grid; `recommend` gives each person's cheapest action.

    Arguments:
        problem: Its classifier says what is valid, its flow what is
            plausible.
        world: Where actions take effect; the true SCM in the paper.
            Left out: the problem's own world.
        profile: Gives the weights of the cost; the default is the
            unweighted cost.
        n_values: Values per feature, evenly spread; without
            `centred`, over its range in the recourse training split.
        slack: Nats of log-density that may be given up; below zero:
            so many must be gained; infinite: no demand for
            plausibility.
        progress: Wraps the range of batches of people, for instance
            `tqdm`.
        centred: A share of each feature's range. The values are then
            spread over so much on either side of the person's own
            value; those beyond the training split's smallest or
            largest become the smallest or largest.
        max_acted: How many features an action is on at most; None:
            any number.
        margin: Log-odds that a positive decision must have.
    Raises: ValueError: as `Problem.in_world`; n_values is below 2;
        centred is not above zero, or the population has whole
        numbers; max_acted is not a whole number above zero; margin or
        slack are none.
    Source: section 5.2 of arXiv:2604.08030; without plausibility:
        table 6. Appendix C.2.3 centres the values on the person's
        own; how far they reach is lost. The bound on how many
        features are acted on: section 3.4.2 of Karimi et al., A
        survey of algorithmic recourse, ACM Computing Surveys 55(5),
        2022.
    Example:
        >>> x = problem.refused("test")[:3]
        >>> only_income_and_savings = Preferences(torch.tensor([[5, 5, 1, 2]] * 3))
        >>> found = Grid(problem).recommend(x, only_income_and_savings)
        >>> found.has_recourse
        tensor([False,  True,  True])
    """

    problem: Problem
    world: World | None = None
    profile: Profile = CONSTANT
    n_values: int = 25
    slack: float = 0.0
    progress: Callable[[range], Iterable[int]] = iter
    centred: float | None = None
    max_acted: int | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        self.problem.in_world(self.world)
        if not isinstance(self.n_values, Integral) or self.n_values < 2:
            raise ValueError(
                f"n_values is {self.n_values!r}, expected a whole number of 2 or more: a "
                "grid needs at least its two ends."
            )
        check_bounds(self.margin, self.slack)
        _check_centred(self.problem, self.centred)
        if self.max_acted is not None:
            checks.counts(max_acted=self.max_acted)

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return each person's cheapest action on the grid, or none where none will do.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs.
        Returns: Of several actions that cost the same, to the
            rounding of their dtype, the one with the fewest features;
            of several such, the first in the grid's order. For a
            person without recourse nothing is acted on and x_cf is x.
            Where a population has whole numbers, the counterfactual
            is judged, and returned, as the person can have it
            (`Population.settled`).
        Raises: ValueError: as `Problem.check`; the profile's weights
            are not finite; or somebody has more actions than memory
            holds, those on too many features counted.
        Example:
            Who may change the amount only finds nothing:
            >>> only_amount = Preferences(torch.tensor([[1, 5, 5, 5]]))
            >>> found = Grid(problem).recommend(problem.refused("test")[:1], only_amount)
            >>> found.has_recourse
            tensor([False])
        """
        problem, world = self.problem, self.problem.in_world(self.world)
        problem.check(x, preferences)
        columns, n_features = problem.population.actionable_index, x.shape[-1]
        interval = problem.interval(x, preferences)
        may = in_columns(interval.may.float(), columns, n_features) > 0
        batches = _batches(problem, world, self.n_values, may)
        tried = grids(problem, self.n_values, self.centred)
        is_centred = self.centred is not None
        has_limits = interval.step is not None
        weights = self.profile.weight(preferences).to(x.dtype)
        check_weights(weights, (len(x), len(columns)))
        best = Recommendation(torch.zeros_like(x, dtype=torch.bool), x.clone(), x.clone())
        for i in self.progress(range(len(batches))):
            people = batches[i]
            own, their_weights = x[people], weights[people]
            noise = world.abduct(own)
            tables = [
                _tabulate(
                    problem,
                    world,
                    block,
                    own,
                    noise,
                    their_weights,
                    is_centred,
                    interval[people] if has_limits else None,
                )
                for block in blocks(world, tried, may[people[0]], self.max_acted)
            ]
            bounds = self.slack, self.max_acted, self.margin
            helped, rows = _Choices(problem, own, tables, *bounds).cheapest()
            person = people[helped]
            for table, row in zip(tables, rows.unbind(-1), strict=True):
                acts, values, x_cf = (
                    part[helped, row] for part in (table.acts, table.values, table.x_cf)
                )
                at = person[:, None], torch.tensor(table.columns)
                best.is_acted[at] = acts[:, table.columns]
                best.x_cf[at] = x_cf[:, table.columns]
                best.values[person] = torch.where(acts, values, best.values[person])
        return best


def _check_centred(problem: Problem, centred: float | None) -> None:
    """Raise ValueError unless the grid can be centred so, or is not to be."""
    if centred is None:
        return
    checks.positive(centred=centred)
    if problem.population.whole is not None:
        raise ValueError(
            "This population has whole numbers, and a grid around a person's own value "
            "would try others. Leave centred out: the values are then whole."
        )


def _batches(problem: Problem, world: World, n_values: int, may: Tensor) -> list[Tensor]:
    """Return who is searched side by side, batch after batch, as rows (n,) of people.

    All in a batch may do the same, and their actions fit into memory.

    Arguments:
        may: The features that each person may act on, with shape (N,
            D).
    Raises: ValueError: one person alone has too many actions.
    """
    population = problem.population
    columns = population.actionable_index
    n_choices = torch.ones(may.shape[-1], dtype=torch.float64)  # counts overflow int64
    if population.whole is None:
        n_choices[columns] += n_values
    else:  # some values may be the same
        for j, values in grids(problem, n_values).items():
            n_choices[j] += len(values)
    masks, whose = torch.unique(may, dim=0, return_inverse=True)
    choices = torch.where(masks, n_choices, 1.0)
    parts = world.graph.blocks(columns)
    sizes = torch.stack([choices[:, part].prod(-1) for part in parts], -1)
    width = max(len(population.features), WIDTH)
    n_actions, n_rows = sizes.prod(-1), sizes.amax(-1)
    if (n_actions > MOST_COMBINED).any() or (n_rows * width > MOST_FLOATS).any():
        exactly = math.prod(map(int, sizes[n_actions.argmax()].tolist()))
        raise ValueError(
            f"The grid is too large: with {n_values} values a feature one person has up to "
            f"{exactly:,} actions, up to {sizes.amax().item():,.0f} of them in one "
            f"causally connected block. Memory holds {MOST_COMBINED:,}, and "
            f"{MOST_FLOATS // width:,} in a block. Lower n_values, or let people act on "
            "fewer features; else use lib.search.continuous.Search, or fit "
            "lib.method.icarma."
        )
    return [
        batch
        for i, n in enumerate(n_rows.tolist())
        for batch in (whose == i).nonzero().squeeze(-1).split(max(1, TABULATED // int(n)))
    ]


@dataclass(frozen=True)
class _Table:
    """Hold what the C actions of one block lead to, for P people.

    Arguments:
        columns: All features that the actions of this block can move.
        acts, values: As in the block, with shape (P, C, D).
        x_cf: Features after the action, with shape (P, C, D).
        cost: Weighted cost, with shape (P, C).
        gain: Change of the block's terms of the log-density, with
            shape (P, C).
        first_layer: Change of the classifier's first-layer sums, with
            shape (P, C, 32); zero wide if the classifier is no
            network.
    """

    columns: list[int]
    acts: Tensor
    values: Tensor
    x_cf: Tensor
    cost: Tensor
    gain: Tensor
    first_layer: Tensor


def _tabulate(
    problem: Problem,
    world: World,
    block: Block,
    x: Tensor,
    noise: Tensor,
    weights: Tensor,
    is_centred: bool,
    interval: Interval | None,
) -> _Table:
    """Return the table of people (P, D) with their noise (P, D) and weights (P, K).

    If it is centred, the block's values are distances from the
    people's own. Values beyond somebody's limits become the nearest
    within.
    """
    population = problem.population
    columns = population.actionable_index
    acts = block.acts.expand(len(x), -1, -1)
    values = block.values.to(x).expand(len(x), -1, -1)
    is_repeated = None
    before = x[:, None].expand_as(values)
    if is_centred:
        values = (before + values).clamp(population.low, population.high)
        values = torch.where(acts, values, 0.0)
    if interval is not None:
        near = interval[:, None].nearest(values[..., columns])
        is_repeated = _is_repeated(block, near, columns)
        values = torch.where(acts, in_columns(near, columns, x.shape[-1]), values)
    if population.whole is not None:  # a count that is set to what it was is not moved
        values = torch.where(acts, population.settled(before, values), values)
    noise = noise[:, None].expand_as(values)
    x_cf = population.settled(
        before, world.counterfactual(before, acts, values, noise=noise)
    )
    gain = _gain(problem, block, x, x_cf)
    x_k, m_k, a_k = (part[..., columns] for part in (before, acts, values))
    cost = problem.action_cost(x_k, m_k, a_k, weights[:, None])
    if is_repeated is not None:
        cost = cost.masked_fill(is_repeated, torch.inf)
        gain = gain.masked_fill(is_repeated, -torch.inf)
    return _Table(
        columns=block.columns,
        acts=acts,
        values=values,
        x_cf=x_cf,
        cost=cost,
        gain=gain,
        first_layer=_first_layer(problem, block, before, x_cf),
    )


def _is_repeated(block: Block, near: Tensor, columns: list[int]) -> Tensor:
    """Return which actions are the same within somebody's limits as one before, (P, C).

    Arguments:
        near: The values within limits, with shape (P, C, K).
    """
    is_repeated = torch.zeros(near.shape[:2], dtype=torch.bool)
    for k, j in enumerate(columns):
        (rows,) = block.acts[:, j].nonzero(as_tuple=True)
        tried, place = block.values[rows, j].unique(return_inverse=True)
        first = rows.new_zeros(len(tried)).scatter(0, place, rows)
        own = near[:, first, k]  # in the order of the grid
        repeats = own.diff(prepend=own.new_full((len(own), 1), torch.nan)) == 0
        is_repeated[:, rows] |= repeats[:, place]
    return is_repeated


def _gain(problem: Problem, block: Block, x: Tensor, x_cf: Tensor) -> Tensor:
    """Return the gain in the block's log-density, (P, C), of x_cf (P, C, D) on x (P, D)."""
    flow, n_rows = problem.flow, x_cf.shape[:-1]
    known = {}
    for j in flow.graph.at_rest(block.columns):  # asked once a person
        raw = flow.raw_parameters(j, x[:, None, flow.graph.parent_index[j]])
        known[j] = flow.univariate(raw.expand(*n_rows, -1))
    terms = flow.log_prob_terms(x_cf, block.columns, known).sum(-1)
    # the first is "no action", whose gain is zero
    return (terms - terms[:, :1]).nan_to_num(nan=-torch.inf)


def _first_layer(problem: Problem, block: Block, before: Tensor, x_cf: Tensor) -> Tensor:
    """Return how actions move a network classifier's first-layer sums, (P, C, 32)."""
    classifier, possible = problem.classifier, problem.population.possible
    if not isinstance(classifier, NetworkClassifier):
        return x_cf.new_zeros(*x_cf.shape[:-1], 0)
    change = (possible(x_cf) - possible(before))[..., block.columns]
    weight = classifier.weights[0][block.columns]
    return network(change, [weight], [torch.zeros_like(weight[0])])


class _Choices:
    """Choose the cheapest action for each of P people who may do the same.

    Arguments:
        x: The people, with shape (P, D).
        tables: What the actions of each of B blocks lead to for them.
        slack, max_acted, margin: As for `Grid`.
    """

    def __init__(
        self,
        problem: Problem,
        x: Tensor,
        tables: list[_Table],
        slack: float,
        max_acted: int | None,
        margin: float,
    ) -> None:
        self.problem, self.x, self.tables = problem, x, tables
        self.slack, self.max_acted, self.margin = slack, max_acted, margin
        self.kept = self._plausible_beside_others()  # each with shape (P, C)
        classifier = problem.classifier
        if isinstance(classifier, NetworkClassifier):
            first = classifier.weights[:1], classifier.biases[:1]
            self.first_layer = network(problem.population.possible(x), *first)

    def _plausible_beside_others(self) -> list[Tensor]:
        """Return which actions of each block are plausible beside the best of all others.

        "No action", row 0, stays in any case. Sums over blocks are
        added in the same order here and where actions are combined,
        and rounding is monotone: no action that is plausible as a
        whole is left out.
        """
        if self.slack == math.inf:
            return [torch.ones_like(table.gain, dtype=torch.bool) for table in self.tables]
        best = [table.gain.amax(-1, keepdim=True) for table in self.tables]
        kept = []
        for i, table in enumerate(self.tables):
            beside = sum([*best[:i], table.gain, *best[i + 1 :]], torch.zeros(()))
            holds = is_plausible(beside, self.slack)
            holds[:, 0] = True
            kept.append(holds)
        return kept

    def cheapest(self) -> tuple[Tensor, Tensor]:
        """Return whom an action helps, (n,), and its row in each table, (n, B)."""
        n_kept = torch.stack([own.sum(-1) for own in self.kept], -1)
        found = [self._cheapest_for(people) for people in _side_by_side(n_kept)]
        people, rows = zip(*found, strict=True)
        return torch.cat(people), torch.cat(rows)

    def _cheapest_for(self, people: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same of some of the people, whose places these are.

        The cheapest actions of each are shown to the classifier, then
        more to those who have no answer yet.
        """
        rows, cost = self._combined(people)
        lowest = torch.full_like(cost[:, 0], torch.nan)
        known = torch.zeros_like(people)
        waiting, n_shown = torch.arange(len(people)), SHOWN_FIRST
        while len(waiting):
            n_shown = min(n_shown, cost.shape[1], LISTED_AT_ONCE)
            shown_cost, shown = cost[waiting].topk(n_shown, largest=False)
            is_left = shown_cost.isfinite()
            at, rank = is_left.nonzero(as_tuple=True)
            person, action = waiting[at], shown[at, rank]
            not_valid = ~self._is_valid(people[person], _rows_of(rows, person, action))
            shown_cost[at[not_valid], rank[not_valid]] = torch.inf
            cost[person[not_valid], action[not_valid]] = torch.inf  # shown no more
            best, first = shown_cost.min(-1)
            found = best.isfinite()
            lowest[waiting[found]] = best[found]
            known[waiting[found]] = shown[found, first[found]]
            has_more = is_left.all(-1) & (n_shown < cost.shape[1])
            waiting = waiting[~found & has_more]
            n_shown *= TIMES_AS_MANY
        return self._with_fewest_features(people, rows, cost, lowest, known)

    def _combined(self, people: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return all that can be combined of the actions that are kept, of some people.

        Returns: The rows of each table that take part, each with
            shape (P, n_b); and the cost of every combination, in the
            grid's order, with shape (P, n_1 ... n_B), infinite where
            it is none: not plausible, on too many features, or no
            action at all.
        """
        rows, takes_part = [], []
        for own in self.kept:
            kept = own[people]
            is_in, row = kept.sort(dim=-1, descending=True, stable=True)
            n_most = int(kept.sum(-1).amax())
            rows.append(row[:, :n_most])
            takes_part.append(is_in[:, :n_most])

        def in_all(parts: Iterable[Tensor], otherwise: float) -> Tensor:
            """Return sums over the blocks for every combination, (P, n_1 ... n_B)."""
            chosen = zip(parts, rows, takes_part, strict=True)
            return _outer_sum(
                [
                    part[people].gather(1, row).masked_fill(~is_in, otherwise)
                    for part, row, is_in in chosen
                ]
            )

        cost = in_all((table.cost for table in self.tables), torch.inf)
        cost[:, 0] = torch.inf
        if self.slack < math.inf:
            gain = in_all((table.gain for table in self.tables), -torch.inf)
            cost.masked_fill_(~is_plausible(gain, self.slack), torch.inf)
        if self.max_acted is not None:
            n_acted = in_all((table.acts.sum(-1) for table in self.tables), 0)
            cost.masked_fill_(n_acted > self.max_acted, torch.inf)
        return rows, cost

    def _with_fewest_features(
        self,
        people: Tensor,
        rows: list[Tensor],
        cost: Tensor,
        lowest: Tensor,
        known: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return each person's answer: of equally cheap ones that with the fewest features.

        Of several such it is the first.

        Arguments:
            people: Their places, with shape (P,).
            rows, cost: As `_combined` gives them; infinite where an
                action is known to be not valid.
            lowest: Each person's lowest cost, NaN if they have no
                answer, with shape (P,).
            known: An action of that cost that is known to be valid,
                even if its log-odds round differently here, with
                shape (P,).
        """
        at, action = (cost == lowest[:, None]).nonzero(as_tuple=True)
        chosen = _rows_of(rows, at, action)
        if len(at) > (~lowest.isnan()).sum():
            is_valid = self._is_valid(people[at], chosen) | (action == known[at])
            at, chosen = at[is_valid], chosen[is_valid]
            parts = zip(self.tables, chosen.unbind(-1), strict=True)
            n_acted = [table.acts[people[at], row].sum(-1) for table, row in parts]
            by_number = torch.stack(n_acted).sum(0).argsort(stable=True)
            order = by_number[at[by_number].argsort(stable=True)]
            is_first = at[order].diff(prepend=at.new_full((1,), -1)) != 0
            at, chosen = at[order][is_first], chosen[order][is_first]
        return people[at], chosen

    def _is_valid(self, people: Tensor, rows: Tensor) -> Tensor:
        """Return whether actions, rows (n, B) of the tables, reach the margin, (n,)."""
        parts = zip(people.split(ASKED_AT_ONCE), rows.split(ASKED_AT_ONCE), strict=True)
        log_odds = [self._log_odds(*part) for part in parts]
        return is_valid(torch.cat(log_odds), self.margin)

    def _log_odds(self, people: Tensor, rows: Tensor) -> Tensor:
        """Return the log-odds of a positive decision after actions, with shape (n,)."""
        classifier = self.problem.classifier
        chosen = list(zip(self.tables, rows.unbind(-1), strict=True))
        if isinstance(classifier, NetworkClassifier):
            changes = [table.first_layer[people, row] for table, row in chosen]
            return classifier.logit_from_first_layer(
                self.first_layer[people] + sum(changes)
            )
        x_cf = self.x[people]
        for table, row in chosen:  # no two blocks move the same feature
            x_cf[:, table.columns] = table.x_cf[people, row][:, table.columns]
        return self.problem.log_odds(x_cf)


def _side_by_side(n_kept: Tensor) -> list[Tensor]:
    """Return shares of people whose combinations are worked out side by side.

    A share has at most `COMBINED` combinations, or is one person.
    People with like numbers are put together.

    Arguments:
        n_kept: How many actions of each block, with shape (P, B).
    """
    order = n_kept.prod(-1).argsort(stable=True)
    ends, most = [0], n_kept.new_zeros(n_kept.shape[-1])
    for i, own in enumerate(n_kept[order]):
        most = most.maximum(own)
        if i > ends[-1] and most.prod() * (i + 1 - ends[-1]) > COMBINED:
            ends.append(i)
            most = own
    return [order[a:b] for a, b in pairwise([*ends, len(order)])]


def _outer_sum(parts: list[Tensor]) -> Tensor:
    """Return a person's sums over every choice of one entry from each part.

    Arguments:
        parts: Each with shape (P, n_b).
    Returns: With shape (P, n_1 * n_2 * ...).
    """
    total = parts[0]
    for part in parts[1:]:
        total = (total[:, :, None] + part[:, None, :]).flatten(1)
    return total


def _rows_of(rows: list[Tensor], place: Tensor, which: Tensor) -> Tensor:
    """Return the rows (n, B) that make up entries (n,) of an `_outer_sum`.

    Arguments:
        rows: Of each person, each with shape (P, n_b).
        place: The person, with shape (n,).
        which: The entry, with shape (n,).
    """
    places = np.unravel_index(which.numpy(), [own.shape[1] for own in rows])
    chosen = zip(rows, places, strict=True)
    return torch.stack([own[place, torch.from_numpy(at)] for own, at in chosen], -1)
