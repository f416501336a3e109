"""The oracle: each person's cheapest valid and plausible action on a grid.

Every actionable feature takes "no action" or one of n values, which
makes 26^4 - 1 = 456,975 actions for four features and 25 values. The
grid's optimum is found without a visit to each:

* No causal path connects loan amount and duration with income and
  savings. Such components of the graph have a table each: cost and
  log-density are sums over components, so the causal model and the
  flow are evaluated for 676 + 676 actions, not for 676 x 676.
* An action on one component that is implausible beside the most
  plausible action on every other is left out, and so is what costs
  more than an action on one component alone that will do.
* The classifier is asked about the cheapest thousand of what is
  left, then about more, until one is valid.

People who may act on the same features have the same actions, and are
searched in one batch. The classifier may be any: it is asked for
decisions, never for gradients.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from lib import checks, io
from lib.method.limits import Interval
from lib.method.preferences import Preferences
from lib.method.problem import (
    Problem,
    Recommendation,
    check_bounds,
    is_plausible,
    is_valid,
)
from lib.method.scm import CausalModel

# actions of one person: in memory, on one component and on all together
MAX_COMPONENT_ACTIONS, MAX_ACTIONS = 2**21, 2**26
# the same of all people in a batch, if there are several
BATCH_COMPONENT_ACTIONS, BATCH_ACTIONS = 2**15, 2**23
# actions of a person that the classifier is asked about first, and by how much they grow
FIRST_ASKED, ASKED_GROWTH = 1024, 4
CLASSIFIER_BATCH = 2**15
# a component with more actions is not asked by itself: that would take longer than it saves
CEILING_ACTIONS = 2**10

# All actions on one causally connected component of the graph: the F columns that they can
# change, and the values (C, F) of each action, NaN where it is not on a feature. The first
# is no action at all.
Component = tuple[list[int], Tensor]


@dataclass(frozen=True)
class Table:
    """Hold what the C actions on one component lead to, for P people.

    Arguments:
        columns: The F features that these actions can change.
        is_acted: With shape (C, F).
        values, x_cf: What is acted on is set to, and all features
            after the action, with shape (P, C, F).
        cost: Weighted cost, with shape (P, C).
        gain: Change of the log-density, with shape (P, C).
    """

    columns: list[int]
    is_acted: Tensor
    values: Tensor
    x_cf: Tensor
    cost: Tensor
    gain: Tensor


@dataclass(frozen=True)
class Grid:
    """Search a grid of actions; `recommend` returns each person's cheapest.

    The cost is weighted by the preferences' profile.

    Arguments:
        problem: Its classifier decides what is valid, its flow what
            is plausible.
        model: Where actions take effect; None: the problem's causal
            model, the true SCM where it is known.
        n_values: Values of each feature, spread evenly over its range
            among the training people (`Population.grid`).
        slack: Nats of log-density that may be given up; below zero,
            that must be gained; infinite: plausibility is not asked
            for.
        progress: Wraps the range of batches; None: a progress bar.
        half_width: A share of each feature's range: values are spread
            so far on either side of the person's own, cut at the ends
            of the range. None: over the whole range.
        max_acted: Features that an action is on at most; None: any
            number.
        margin: Log-odds that a positive decision must have.
    Raises: ValueError: as `Problem.resolve_model`; n_values is below
        2; half_width is not above zero, or the population has whole
        numbers; max_acted is no whole number above zero; margin is
        not finite, or slack is NaN.
    Source: section 5.2 of arXiv:2604.08030; table 6 without
        plausibility. Appendix C.2.3 has values around the person's
        own; the width is lost. max_acted: Karimi et al., A survey of
        algorithmic recourse, 2022, section 3.4.2.
    """

    problem: Problem
    model: CausalModel | None = None
    n_values: int = 25
    slack: float = 0.0
    progress: Callable[[range], Iterable[int]] | None = None
    half_width: float | None = None
    max_acted: int | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        self.problem.resolve_model(self.model)
        check_bounds(self.margin, self.slack)
        checks.positive_int(n_values=self.n_values)
        if self.n_values == 1:
            raise ValueError("n_values is 1: a grid needs at least its two ends.")
        if self.max_acted is not None:
            checks.positive_int(max_acted=self.max_acted)
        if self.half_width is not None:
            checks.positive(half_width=self.half_width)
            if self.problem.population.discretisation is not None:
                raise ValueError(
                    "A grid around a person's value would try fractions, and this "
                    "population has whole numbers. Leave half_width out."
                )

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return each person's cheapest action on the grid, or none where none will do.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K).
        Returns: Of actions with equal cost the one on the fewest
            features; of several such the first in the grid's order.
            Who has no recourse acts on nothing, and x_cf is x. In a
            population with whole numbers, actions and what follows
            are whole.
        Raises: ValueError: as `Problem.check`; somebody has more
            actions than memory holds.
        """
        problem, model = self.problem, self.problem.resolve_model(self.model)
        problem.check(x, preferences)
        weights = preferences.weight.to(x.dtype)
        interval, noise = problem.interval(x, preferences), model.abduct(x)
        batches = self._batches(interval.is_allowed)
        progress = self.progress or io.progress_bar("grid")
        is_acted, values, x_cf = torch.zeros_like(x, dtype=torch.bool), x.clone(), x.clone()
        for i in progress(range(len(batches))):
            people, components = batches[i]
            person = torch.arange(len(people))
            about = x[people], noise[people], weights[people], interval[people]
            tables = [self._tabulate(component, *about) for component in components]
            rows = self._cheapest(x[people], tables)
            for table, row in zip(tables, rows.unbind(-1), strict=True):
                at = people[:, None], table.columns
                is_acted[at] = table.is_acted[row]
                values[at] = table.values[person, row]
                x_cf[at] = table.x_cf[person, row]
        return Recommendation(is_acted, values, x_cf)

    def _batches(self, is_allowed: Tensor) -> list[tuple[Tensor, list[Component]]]:
        """Return batches of people, each with the components of what they may act on.

        Arguments:
            is_allowed: The features that each person may act on, with
                shape (N, K).
        Raises: ValueError: somebody has more actions than memory
            holds.
        """
        population, grids = self.problem.population, self._grids()
        masks, group = torch.unique(is_allowed, dim=0, return_inverse=True)
        batches = []
        for i, mask in enumerate(masks.tolist()):
            tried = {j: grids[j] for j, is_on in zip(grids, mask, strict=True) if is_on}
            if not tried:  # limits close all that they can act on
                continue
            connected = population.graph.components(tried)
            sizes = [math.prod(1 + len(tried.get(j, ())) for j in c) for c in connected]
            if math.prod(sizes) > MAX_ACTIONS or max(sizes) > MAX_COMPONENT_ACTIONS:
                raise ValueError(
                    f"The grid is too large: one person has up to {math.prod(sizes):,} "
                    f"actions, up to {max(sizes):,} of them on one component of the graph. "
                    f"Memory holds {MAX_ACTIONS:,} and {MAX_COMPONENT_ACTIONS:,}. Lower "
                    "n_values, let people act on fewer features, or use "
                    "lib.search.continuous.Search."
                )
            components = [(c, _actions(c, tried, self.max_acted)) for c in connected]
            n_people = BATCH_COMPONENT_ACTIONS // max(sizes)
            n_people = max(1, min(n_people, BATCH_ACTIONS // math.prod(sizes)))
            people = (group == i).nonzero().squeeze(-1)
            batches += [(batch, components) for batch in people.split(n_people)]
        return batches

    def _grids(self) -> dict[int, Tensor]:
        """Return the values of each actionable feature, by column.

        With `half_width` they are distances from a person's value.
        """
        population, half_width = self.problem.population, self.half_width
        columns = population.actionable_index
        if half_width is None:
            grids = [population.grid(name, self.n_values) for name in population.actionable]
        else:
            shares = torch.linspace(
                -half_width, half_width, self.n_values, dtype=self.problem.range.dtype
            )
            grids = [shares * self.problem.range[j] for j in columns]
        return dict(zip(columns, grids, strict=True))

    def _tabulate(
        self,
        component: Component,
        x: Tensor,
        noise: Tensor,
        weights: Tensor,
        interval: Interval,
    ) -> Table:
        """Return what the actions on a component lead to, for P people.

        Arguments:
            x, noise: Features and the noise behind them, with shape
                (P, D).
            weights: Of the cost, with shape (P, K).
            interval: Where values may lie, for these people.
        """
        problem, population = self.problem, self.problem.population
        columns, actions = component
        actionable, shape = population.actionable_index, (len(x), len(actions), x.shape[-1])
        before, noise = (tensor[:, None].expand(shape) for tensor in (x, noise))
        chosen = x.new_full(shape[1:], torch.nan)
        chosen[:, columns] = actions
        is_acted = (~chosen.isnan()).expand(shape)
        a = chosen[:, actionable].nan_to_num()
        if self.half_width is not None:
            a = before[..., actionable] + a
        values = before.clone()
        values[..., actionable] = interval[:, None].project(a)
        values = torch.where(is_acted, values, before)
        values = population.round_counterfactual(before, values)
        model = problem.resolve_model(self.model)
        x_cf = model.counterfactual(before, is_acted, values, noise=noise)
        x_cf = population.round_counterfactual(before, x_cf)
        x_k, m_k, a_k = (tensor[..., actionable] for tensor in (before, is_acted, values))
        return Table(
            columns=columns,
            is_acted=~actions.isnan(),
            values=values[..., columns],
            x_cf=x_cf[..., columns],
            cost=problem.action_cost(x_k, m_k, a_k, weights[:, None]),
            gain=self._gain(columns, x, x_cf),
        )

    def _gain(self, columns: list[int], x: Tensor, x_cf: Tensor) -> Tensor:
        """Return how actions change the log-density of these columns, with shape (P, C).

        Arguments:
            x: Features before, with shape (P, D).
            x_cf: Features after each action, with shape (P, C, D).
        """
        flow = self.problem.flow
        # the causes of these stay as they are: one transform a person
        cached = flow.transforms(x[:, None], flow.graph.roots_within(columns))
        log_p = flow.log_prob_terms(x_cf, columns, cached).sum(-1)
        return (log_p - log_p[:, :1]).nan_to_num(nan=-math.inf)  # the first: no action

    def _cheapest(self, x: Tensor, tables: Sequence[Table]) -> Tensor:
        """Return each person's cheapest action that will do, as rows of the tables.

        Arguments:
            x: The people, with shape (P, D).
            tables: One for each of B components.
        Returns: With shape (P, B), row 0 being "no action".
        """
        rows, cost = self._combine(tables, self._ceiling(x, tables))
        best = torch.zeros(len(x), len(tables), dtype=torch.long)
        people, n_asked = torch.arange(len(x)), FIRST_ASKED
        largest = torch.finfo(cost.dtype).max
        while len(people):
            n_asked = min(n_asked, cost.shape[-1])
            nth = np.partition(cost.numpy(), n_asked - 1)[:, [n_asked - 1]]
            bound = torch.from_numpy(nth).clamp(max=largest)
            place, action = (cost <= bound).nonzero(as_tuple=True)  # and all ties
            person, price = people[place], cost[place, action]
            places = torch.unravel_index(action, [row.shape[1] for row in rows])
            chosen = torch.stack(
                [row[person, at] for row, at in zip(rows, places, strict=True)], -1
            )
            will_do = self._is_valid(x, tables, person, chosen)
            n_acted = torch.zeros_like(person)
            for table, row in zip(tables, chosen.unbind(-1), strict=True):
                n_acted += table.is_acted.sum(-1)[row]
            order = np.lexsort((n_acted[will_do], price[will_do], person[will_do]))
            helped, first = np.unique(person[will_do][order], return_index=True)
            best[helped] = chosen[will_do][order[first]]
            cost[place, action] = torch.inf
            is_left = bound.squeeze(-1) < largest
            is_left[place[will_do]] = False
            people, cost = people[is_left], cost[is_left]
            n_asked *= ASKED_GROWTH
        return best

    def _ceiling(self, x: Tensor, tables: Sequence[Table]) -> Tensor:
        """Return a cost above which nothing need be looked at, with shape (P, 1).

        It is that of the cheapest action on a single component that
        will do, infinite where there is none. Large components are
        left out.

        Arguments:
            x: The people, with shape (P, D).
            tables: One for each of B components.
        """
        ceiling = x.new_full((len(x), 1), torch.inf)
        for b, table in enumerate(tables):
            if table.cost.shape[-1] > CEILING_ACTIONS:
                continue
            cost = table.cost.masked_fill(~is_plausible(table.gain, self.slack), torch.inf)
            person, row = cost[:, 1:].isfinite().nonzero(as_tuple=True)
            rows = person.new_zeros(len(person), len(tables))
            rows[:, b] = row + 1  # after "no action"
            will_do = self._is_valid(x, tables, person, rows)
            cost[person[~will_do], rows[~will_do, b]] = torch.inf
            ceiling = torch.minimum(ceiling, cost[:, 1:].amin(-1, keepdim=True))
        return ceiling

    def _combine(
        self, tables: Sequence[Table], ceiling: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        """Return the combinations of actions on all components that may be chosen.

        Left out are actions that are implausible beside the most
        plausible ones on the other components, or dearer than the
        ceiling. Sums are taken in the same order here and below: one
        that is larger term by term is not smaller when it is rounded,
        so nothing is lost.

        Arguments:
            ceiling: The largest cost that is of interest, with shape
                (P, 1).
        Returns: The rows of each table that are combined, each with
            shape (P, n_b); and the cost of each combination, with
            shape (P, n_1 ... n_B), infinite where it is implausible,
            on too many features, or no action at all.
        """
        most = [table.gain.amax(-1, keepdim=True) for table in tables]
        rows = []
        for b, table in enumerate(tables):
            gains = [*most[:b], table.gain, *most[b + 1 :]]
            is_kept = is_plausible(sum(gains[1:], gains[0]), self.slack)
            is_kept &= table.cost <= ceiling
            is_kept[:, 0] = True
            kept_first = is_kept.sort(dim=-1, descending=True, stable=True).indices
            rows.append(kept_first[:, : int(is_kept.sum(-1).amax())])

        def total(terms: Iterable[Tensor]) -> Tensor:
            """Return the sums over all combinations of terms (P, C), one a table."""
            kept = [term.gather(1, row) for term, row in zip(terms, rows, strict=True)]
            return reduce(lambda a, b: (a[:, :, None] + b[:, None]).flatten(1), kept)

        cost, gain = (total(getattr(t, name) for t in tables) for name in ("cost", "gain"))
        cost.masked_fill_(~is_plausible(gain, self.slack) | (cost > ceiling), torch.inf)
        if self.max_acted is not None:
            n_acted = total(t.is_acted.sum(-1).expand_as(t.cost) for t in tables)
            cost.masked_fill_(n_acted > self.max_acted, torch.inf)
        cost[:, 0] = torch.inf
        return rows, cost

    def _is_valid(
        self, x: Tensor, tables: Sequence[Table], person: Tensor, rows: Tensor
    ) -> Tensor:
        """Return whether actions, rows (n, B) of the tables, are valid, with shape (n,)."""
        log_odds = []
        for at in torch.arange(len(rows)).split(CLASSIFIER_BATCH):
            x_cf = x[person[at]]
            for table, row in zip(tables, rows[at].unbind(-1), strict=True):
                x_cf[:, table.columns] = table.x_cf[person[at], row]
            log_odds.append(self.problem.log_odds(x_cf))
        return is_valid(torch.cat(log_odds), self.margin)


def _actions(
    columns: list[int], values: Mapping[int, Tensor], max_acted: int | None
) -> Tensor:
    """Return every combination of "no action", as NaN, and one of a feature's values.

    Arguments:
        columns: Of the component.
        values: Of the features that may be acted on, by column.
        max_acted: As for `Grid`.
    Returns: With shape (C, F).
    """
    nothing = next(iter(values.values())).new_full((1,), torch.nan)
    choices = [torch.cat([nothing, values.get(j, nothing[:0])]) for j in columns]
    actions = torch.cartesian_prod(*choices).reshape(-1, len(columns))
    if max_acted is not None:
        actions = actions[(~actions.isnan()).sum(-1) <= max_acted]
    return actions
