"""Every set of features: what the search found for each, and what unlocks recourse."""

from dataclasses import dataclass
from itertools import accumulate, combinations
from math import comb

import torch
from torch import Tensor

from lib import checks

MAX_FEATURES = 8  # 255 sets: one more feature doubles the time and the table
MAX_SETS = 2**MAX_FEATURES - 1


@dataclass(frozen=True)
class Table:
    """Hold what was found for N people and S sets of the K actionable features.

    Arguments:
        sets: The non-empty sets, small ones first, with shape (S, K),
            bool.
        cost: Of the cheapest valid and plausible action on each set,
            infinite where none was found, with shape (N, S).
        values: Of that action, with shape (N, S, K).
        log_odds: The highest seen of plausible actions and of no
            action, with shape (N, S); below zero where none was
            valid.
        gain: The highest change of log-density seen of valid actions,
            in nats, with the search's slack added, with shape (N, S);
            minus infinity: none was valid.
    """

    sets: Tensor
    cost: Tensor
    values: Tensor
    log_odds: Tensor
    gain: Tensor

    def cheapest(
        self, is_allowed: Tensor, max_acted: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the lowest cost over the sets that a mask (N, K) allows, and that set.

        Arguments:
            is_allowed: Which features each person may act on.
            max_acted: How many of them at most; None: any number.
        Returns: The cost, infinite if there is none, and the row of
            `sets`; each with shape (N,).
        Raises: ValueError: the mask is not (N, K) of bool, or
            max_acted is not a whole number above zero.
        """
        cost, set_index = self.plans(is_allowed, 1, max_acted)
        return cost[:, 0], set_index[:, 0]

    def plans(
        self, is_allowed: Tensor, n_plans: int, max_acted: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the costs of several plans a person, and their sets, each (N, n_plans).

        The first plan is the cheapest set. Each further one is the
        cheapest that does without some feature of every plan before
        it. Where there is no further plan, the cost is infinite.

        Arguments, errors: as for `cheapest`; n_plans is a whole number
            above zero.
        """
        checks.positive_int(n_plans=n_plans)
        cost = self._where_allowed(self.cost, is_allowed, torch.inf)
        if max_acted is not None:
            checks.positive_int(max_acted=max_acted)
            cost = cost.masked_fill(self.sets.sum(-1) > max_acted, torch.inf)
        costs, rows = [], []
        for _ in range(n_plans):
            lowest, row = cost.min(-1)
            costs.append(lowest)
            rows.append(row)
            has_all_features = contains(self.sets, self.sets[row]).T
            cost = cost.masked_fill(has_all_features, torch.inf)
        return torch.stack(costs, -1), torch.stack(rows, -1)

    def blocked_by(self, is_allowed: Tensor) -> tuple[Tensor, Tensor]:
        """Return how far the best attempts of a person without recourse fall short.

        Returns: The highest log-odds seen of a plausible action, and
            the highest change of log-density of a valid one, with
            the search's slack added; each with shape (N,).
        """
        log_odds = self._where_allowed(self.log_odds, is_allowed, -torch.inf)
        gain = self._where_allowed(self.gain, is_allowed, -torch.inf)
        return log_odds.amax(-1), gain.amax(-1)

    def unlocked_by(self, is_allowed: Tensor) -> Tensor:
        """Return the lowest cost if one more feature were open, for each feature, (N, K).

        It is infinite where that is not enough.
        """
        one_more = torch.eye(is_allowed.shape[-1], dtype=torch.bool)
        return torch.stack([self.cheapest(is_allowed | more)[0] for more in one_more], -1)

    def minimal_unlocking_set(self, is_allowed: Tensor) -> Tensor:
        """Return the fewest forbidden features that unlock recourse, as a mask (N, K).

        Of several such sets it is the cheapest. It is empty for
        people who have recourse, and for those whom no set helps.
        """
        unlocking = torch.zeros_like(is_allowed)
        is_done = self.cheapest(is_allowed)[0].isfinite()
        sizes = self.sets.sum(-1)
        for size in sizes.unique().tolist():
            # those already open unlock nothing
            added = self.sets[sizes == size][:, None] & ~is_allowed
            cost = torch.stack([self.cheapest(is_allowed | more)[0] for more in added])
            cost[added.sum(-1) != size] = torch.inf
            lowest, best = cost.min(0)
            is_new = ~is_done & lowest.isfinite()
            unlocking[is_new] = added[best, torch.arange(len(best))][is_new]
            is_done |= is_new
        return unlocking

    def _where_allowed(self, entries: Tensor, is_allowed: Tensor, fill: float) -> Tensor:
        """Return the entries (N, S), replaced where a mask (N, K) forbids the set."""
        checks.shape("is_allowed", is_allowed, (len(self.cost), self.sets.shape[-1]))
        if is_allowed.dtype != torch.bool:
            raise ValueError(f"is_allowed must be a mask of bool, got {is_allowed.dtype}.")
        return entries.masked_fill(~contains(is_allowed, self.sets), fill)


def contains(is_allowed: Tensor, sets: Tensor) -> Tensor:
    """Return whether each mask (N, K) allows all of each set (S, K), with shape (N, S)."""
    return ~(sets & ~is_allowed[:, None]).any(-1)


def sets_of(n_features: int, max_size: int | None = None) -> Tensor:
    """Return the non-empty sets of n features, small ones first, with shape (S, n), bool.

    Arguments:
        max_size: Features in a set, at most; None: any number.
    Raises: ValueError: there is no feature, or there are more than
        `MAX_FEATURES` and any number of them may be in a set.
    Example:
        >>> sets_of(2).int().tolist()
        [[1, 0], [0, 1], [1, 1]]
    """
    if n_features < 1 or (n_features > MAX_FEATURES and max_size is None):
        raise ValueError(
            f"{n_features} actionable features make {2**n_features - 1:,} sets: "
            f"expected 1 to {MAX_FEATURES} features. Make fewer of them actionable, or "
            "fit lib.method.icarma, which does not list sets."
        )
    sets = [
        [column in chosen for column in range(n_features)]
        for size in range(1, (max_size or n_features) + 1)
        for chosen in sorted(combinations(range(n_features), size), key=_last_first)
    ]
    return torch.tensor(sets)


def _last_first(columns: tuple[int, ...]) -> tuple[int, ...]:
    """Return columns, ascending, as sets of one size are ordered by."""
    return columns[::-1]


def sets_to_search(is_open: Tensor) -> Tensor:
    """Return the sets of features among which a search looks, with shape (S, K), bool.

    They are all sets of the K features, if there are `MAX_FEATURES`
    at most, else all sets of those that are open. If more than that
    are open, they are the sets up to a size, `MAX_SETS` at most, and
    the set of all: no proof, then, that there is nothing cheaper.

    Arguments:
        is_open: Whether somebody may act on each feature, with shape
            (K,).
    """
    n_features = len(is_open)
    if n_features <= MAX_FEATURES:
        return sets_of(n_features)
    if not is_open.any():
        is_open = ~is_open
    (columns,) = is_open.nonzero(as_tuple=True)
    n_open = len(columns)
    n_up_to = list(accumulate(comb(n_open, size) for size in range(1, n_open + 1)))
    max_size = max(1, sum(n_sets <= MAX_SETS for n_sets in n_up_to))
    among_open = sets_of(n_open, max_size)
    if max_size < n_open:
        among_open = torch.cat([among_open, among_open.new_ones(1, n_open)])
    sets = torch.zeros(len(among_open), n_features, dtype=torch.bool)
    sets[:, columns] = among_open
    return sets
