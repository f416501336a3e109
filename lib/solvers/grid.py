"""The oracle: for each person the cheapest valid and plausible action on a grid, by exact search.

Every actionable feature takes "no action" or one of n values, which makes 26^4 - 1 = 456,975 actions for four
features and 25 values. The search is exact and does not visit them one by one:

* Features that no causal path connects (amount and duration on one side, income and savings on the other) form
  separate blocks. A person's cost, their log-density and the classifier's first layer are sums over blocks, so
  the world and the flow are evaluated for 676 + 676 actions and not for 676 x 676.
* An action of one block that would be implausible beside the best of every other block is left out at once.
* Of the plausible actions only the cheapest few thousand are shown to the classifier; if one of them is valid,
  the cheapest valid one of them is the answer, since everything unseen costs no less. Else the next few are shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib.causal.world import World
from lib.preferences.scores import Preferences, Profile
from lib.problem.recourse import Problem, Recommendation, in_columns

SHOWN_FIRST, SHOWN_NEXT = 2_048, 32_768  # candidates shown to the classifier at a time
PEOPLE_TABULATED = 16  # people for whom a block's actions are worked out in one go


@dataclass(frozen=True)
class Block:
    """Actions on one causally connected set of features.

    Arguments:
        columns: All features that the actions of this block can move.
        acts, values: The block's actions, over all D features, each with shape (C, D). The first is "no action".
    """

    columns: list[int]
    acts: Tensor
    values: Tensor

    def only(self, may: Tensor) -> "Block":
        """The actions on features that may be acted on, a mask with shape (D,)."""
        kept = ~(self.acts & ~may).any(-1)
        return Block(self.columns, self.acts[kept], self.values[kept])


def blocks(problem: Problem, world: World, n_values: int) -> list[Block]:
    """The blocks of a population's graph, each with the grid of its actions."""
    population = problem.population
    found = []
    for columns in world.graph.blocks(population.actionable_index):
        at = [j for j in population.actionable_index if j in columns]
        grids = [
            [None, *population.grid(population.features[j], n_values).tolist()] for j in at
        ]
        actions = list(product(*grids))
        acts = torch.tensor([[value is not None for value in action] for action in actions])
        values = torch.tensor([[value or 0.0 for value in action] for action in actions])
        n_features = len(population.features)
        found.append(
            Block(
                columns,
                in_columns(acts.float(), at, n_features) > 0,
                in_columns(values, at, n_features),
            )
        )
    return found


def search(
    problem: Problem,
    world: World,
    x: Tensor,
    preferences: Preferences,
    profile: Profile = Profile(),
    n_values: int = 25,
    must_be_plausible: bool = True,
    progress: Callable[[range], range] = iter,
) -> Recommendation:
    """The cheapest action on the grid for each person, or none where no action will do.

    Arguments:
        world: Where actions take effect; the true SCM in the paper.
        x: Rejected people, with shape (N, D).
        profile: Gives the weights of the cost; the default is the unweighted cost.
        n_values: Values per feature, evenly spread over its range in the recourse training split.
        must_be_plausible: Whether log p(x_cf) >= log p(x) is demanded too.
        progress: Wraps the range of people, for instance `tqdm`.
    Returns: For a person without recourse nothing is acted on and x_cf is x. Where a population has whole numbers, the
        counterfactual is judged, and returned, as the person can have it (`Population.settled`).
    Raises: ValueError: as `Problem.check` and `Problem.check_world`; or n_values is below 2.
    Source: section 5.2 of arXiv:2604.08030; without plausibility: table 6.
    """
    problem.check(x, preferences)
    problem.check_world(world)
    if n_values < 2:
        raise ValueError(f"n_values is {n_values}: a grid needs at least its two ends.")
    parts = blocks(problem, world, n_values)
    weights = profile.weight(preferences).to(x.dtype)
    best = Recommendation(torch.zeros_like(x, dtype=torch.bool), x.clone(), x.clone())
    may = (
        in_columns(
            preferences.is_actionable.float(),
            problem.population.actionable_index,
            x.shape[-1],
        )
        > 0
    )
    order = torch.unique(may, dim=0, return_inverse=True)[1].argsort(
        stable=True
    )  # who can do the same, side by side
    for i in progress(range(len(x))):
        if i % PEOPLE_TABULATED == 0:
            some = order[i : i + PEOPLE_TABULATED]
            tables = [
                _tabulate(
                    problem,
                    world,
                    block.only(may[some].any(0)),
                    x[some],
                    may[some],
                    weights[some],
                )
                for block in parts
            ]
        person = order[i]
        own = [table.of_person(i % PEOPLE_TABULATED) for table in tables]
        choice = _cheapest(problem, x[person], own, must_be_plausible)
        if choice is None:
            continue
        for block, table, row in zip(parts, own, choice, strict=True):
            best.is_acted[person, block.columns] = table.acts[row, block.columns]
            best.x_cf[person, block.columns] = table.x_cf[row, block.columns]
            best.values[person] = torch.where(
                table.acts[row], table.values[row], best.values[person]
            )
    return best


@dataclass(frozen=True)
class _Table:
    """What the C actions of one block lead to, for P people or (without the first axis) for one.

    Arguments:
        allowed: Whether the person may do it, with shape (P, C).
        acts, values: As in the block, with shape (P, C, D).
        x_cf: Features after the action, with shape (P, C, D).
        cost: Weighted cost, with shape (P, C).
        gain: Change of the block's terms of the log-density, with shape (P, C).
        first_layer: Change of the classifier's first-layer sums, with shape (P, C, 32).
    """

    allowed: Tensor
    acts: Tensor
    values: Tensor
    x_cf: Tensor
    cost: Tensor
    gain: Tensor
    first_layer: Tensor

    def of_person(self, i: int) -> "_Table":
        """What the actions lead to for the i-th person."""
        return _Table(*(getattr(self, field.name)[i] for field in fields(self)))


def _tabulate(
    problem: Problem, world: World, block: Block, x: Tensor, may: Tensor, weights: Tensor
) -> _Table:
    """For people x (P, D) who may act on features (P, D) at these weights (P, K)."""
    columns, possible = problem.population.actionable_index, problem.population.possible
    acts = block.acts.expand(len(x), -1, -1)
    values = block.values.to(x).expand(len(x), -1, -1)
    before = x[:, None].expand_as(values)
    noise = world.abduct(x)[:, None].expand_as(values)
    x_cf = problem.population.settled(
        before, world.counterfactual(before, acts, values, noise)
    )
    at_rest = problem.flow.graph.at_rest(block.columns)
    raw = {
        j: problem.flow.raw_parameters(j, x[:, None, problem.flow.graph.parent_index[j]])
        for j in at_rest
    }
    known = {
        j: problem.flow.univariate(own.expand(*x_cf.shape[:-1], -1))
        for j, own in raw.items()
    }  # asked once a person
    terms = problem.flow.log_prob_terms(x_cf, block.columns, known).sum(-1)
    return _Table(
        allowed=~(acts & ~may[:, None]).any(-1),
        acts=acts,
        values=values,
        x_cf=x_cf,
        cost=problem.action_cost(
            *(part[..., columns] for part in (before, acts, values)), weights[:, None]
        ),
        gain=(terms - terms[:, :1]).nan_to_num(
            nan=-torch.inf
        ),  # the first is "no action", whose gain is zero
        first_layer=F.linear(
            (possible(x_cf) - possible(before))[..., block.columns],
            problem.classifier.weights[0][:, block.columns],
        ),
    )


def _outer_sum(parts: list[Tensor]) -> Tensor:
    """Sums over every choice of one entry from each part, flattened: (C_1 * C_2 * ...,)."""
    total = parts[0]
    for part in parts[1:]:
        total = (total[:, None] + part[None, :]).flatten()
    return total


def _plausible_beside_others(gains: list[Tensor], rows: list[Tensor]) -> list[Tensor]:
    """Those rows of each block that are plausible beside the best row of every other block; "no action", row 0, always is.

    Sums over blocks are added in the same order here and where candidates are chosen, and rounding is monotone: nothing that
    would be a candidate is left out.
    """
    best = [gain[own].max()[None] for gain, own in zip(gains, rows, strict=True)]
    return [
        own[_outer_sum([*best[:i], gains[i][own], *best[i + 1 :]]) >= 0]
        for i, own in enumerate(rows)
    ]


def _cheapest(
    problem: Problem, x: Tensor, tables: list[_Table], must_be_plausible: bool
) -> list[int] | None:
    """Rows, one of each table, of the cheapest action that will do; None if there is none."""
    kept = [table.allowed.nonzero().squeeze(-1) for table in tables]
    if must_be_plausible:
        kept = _plausible_beside_others([table.gain for table in tables], kept)
    sizes = [len(rows) for rows in kept]
    cost = _outer_sum([table.cost[rows] for table, rows in zip(tables, kept, strict=True)])
    cost[0] = torch.inf  # no action at all
    if must_be_plausible:
        gain = _outer_sum(
            [table.gain[rows] for table, rows in zip(tables, kept, strict=True)]
        )
        candidates = (gain >= 0).nonzero().squeeze(-1)
        cost = cost[candidates]
    else:
        candidates = torch.arange(len(cost))
    at_start = F.linear(
        problem.population.possible(x),
        problem.classifier.weights[0],
        problem.classifier.biases[0],
    )
    # the cheapest few are found without sorting the rest; only if none of them is valid are all sorted
    for order in (
        lambda: cost.topk(min(SHOWN_FIRST, len(cost)), largest=False).indices,
        cost.argsort,
    ):
        for chunk in order().split(SHOWN_NEXT):
            shown = candidates[chunk]
            rows = [
                own[torch.from_numpy(row)]
                for own, row in zip(
                    kept, np.unravel_index(shown[shown > 0].numpy(), sizes), strict=True
                )
            ]
            hidden = at_start + sum(
                table.first_layer[row] for table, row in zip(tables, rows, strict=True)
            )
            valid = (problem.classifier.logit_from_first_layer(hidden) >= 0).nonzero()
            if len(valid):
                return [int(row[valid[0, 0]]) for row in rows]
    return None
