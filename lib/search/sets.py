"""Every set of features: what a search found for each, and what unlocks recourse."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.base import checks

MOST_FEATURES = 8  # 255 sets: each feature more doubles the time and the table


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

    def cheapest(self, may: Tensor, max_acted: int | None = None) -> tuple[Tensor, Tensor]:
        """Return the lowest cost over the sets that a mask (N, K) allows, and that set.

        Arguments:
            may: Which features each person may act on.
            max_acted: How many of them at most; None: any number.
        Returns: The cost, infinite if there is none, and the row of
            `sets`; each with shape (N,).
        Raises: ValueError: the mask is not (N, K) of bool, or
            max_acted is not a whole number above zero.
        Example:
            >>> cost, anything = torch.tensor([[torch.inf, 0.4, 0.3]]), torch.zeros(1, 3)
            >>> table = Table(sets_of(2), cost, torch.zeros(1, 3, 2), anything, anything)
            >>> table.cheapest(torch.tensor([[True, True]]))
            (tensor([0.3000]), tensor([2]))
            >>> table.cheapest(torch.tensor([[True, True]]), max_acted=1)
            (tensor([0.4000]), tensor([1]))
        """
        allowed = self._allowed(self.cost, may, torch.inf)
        if max_acted is not None:
            checks.counts(max_acted=max_acted)
            allowed = allowed.masked_fill(self.sets.sum(-1) > max_acted, torch.inf)
        cost, which = allowed.min(-1)
        return cost, which

    def blocked_by(self, may: Tensor) -> tuple[Tensor, Tensor]:
        """Return how far the best attempts of a person without recourse fall short.

        Returns: The highest log-odds seen of a plausible action, and
            the highest change of log-density of a valid one, with
            the search's slack added; each with shape (N,).
        """
        log_odds = self._allowed(self.log_odds, may, -torch.inf)
        return log_odds.amax(-1), self._allowed(self.gain, may, -torch.inf).amax(-1)

    def unlocked_by(self, may: Tensor) -> Tensor:
        """Return the lowest cost if one more feature were open, for each feature, (N, K).

        It is infinite where that is not enough.

        Example:
            >>> cost, anything = torch.tensor([[torch.inf, 0.4, 0.3]]), torch.zeros(1, 3)
            >>> table = Table(sets_of(2), cost, torch.zeros(1, 3, 2), anything, anything)
            >>> table.unlocked_by(torch.tensor([[True, False]]))
            tensor([[   inf, 0.3000]])
        """
        one_more = torch.eye(may.shape[-1], dtype=torch.bool)
        return torch.stack([self.cheapest(may | more)[0] for more in one_more], -1)

    def key(self, may: Tensor) -> Tensor:
        """Return the fewest forbidden features that unlock recourse, as a mask (N, K).

        Of several such sets it is the cheapest. The key is empty for
        people who have recourse, and for those whom nothing helps.
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
        """Return the entries (N, S), replaced where a mask (N, K) forbids the set."""
        checks.shape("may", may, (len(self.cost), self.sets.shape[-1]))
        if may.dtype != torch.bool:
            raise ValueError(f"may must be a mask of bool, got {may.dtype}.")
        return entries.masked_fill((self.sets & ~may[:, None]).any(-1), otherwise)


def sets_of(n_features: int) -> Tensor:
    """Return the non-empty sets of n features, small ones first: (2^n - 1, n), bool.

    Raises: ValueError: there are more than `MOST_FEATURES` features,
        or none.
    Example:
        >>> sets_of(2).int()
        tensor([[1, 0],
                [0, 1],
                [1, 1]], dtype=torch.int32)
    """
    if not 1 <= n_features <= MOST_FEATURES:
        raise ValueError(
            f"{n_features} actionable features make {2**n_features - 1:,} sets: "
            f"expected 1 to {MOST_FEATURES} features. Make fewer of them actionable, or "
            "fit lib.method.icarma, which does not list sets."
        )
    codes = range(1, 2**n_features)
    sets = torch.tensor(
        [[bool(code >> j & 1) for j in range(n_features)] for code in codes]
    )
    return sets[sets.sum(-1).argsort(stable=True)]
