"""Less of what is hard: features are dropped while bank and flow still say yes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import (
    Problem,
    Recommendation,
    Solver,
    in_columns,
    is_plausible,
    is_valid,
)


@dataclass(frozen=True)
class Pruned:
    """Hold a solver whose recommendations are pruned, from the hardest feature down.

    What a person would still have to do is verified with every
    feature that is dropped. So nobody who was helped loses it, and
    nobody is asked for more. Values stay as they are.

    Arguments:
        solver: Whose recommendations are pruned, a stack of networks
            too.
        problem: Its classifier and its flow are asked; consequences
            follow by the flow.
        profile: Of features that are equally hard the one goes first
            that saves the most by these weights.
    Example:
        The first member of a stack asks three people for less:

        >>> x = problem.refused("test")[:3]
        >>> all_easy = Preferences(torch.ones(3, 4).long())
        >>> pruned = Pruned(stack.member(0), problem)
        >>> before, after = (
        ...     own.recommend(x, all_easy) for own in (stack.member(0), pruned)
        ... )
        >>> bool((after.is_acted <= before.is_acted).all())
        True
    """

    solver: Solver
    problem: Problem
    profile: Profile = CONSTANT

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the solver's recommendations without what can be left out.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs.
        Returns: Parts of shape (N, D), or (M, N, D) of a stack. Who is
            not helped, validly and plausibly, keeps the solver's.
        Raises: ValueError: as the solver.
        """
        problem, columns = self.problem, self.problem.population.actionable_index
        found = problem.carried_out(x, self.solver.recommend(x, preferences))
        best, helps = found, self._helps(x, found)
        each = self._cost_of_each(x, found, preferences)
        # scores are whole: the dearer of two equally hard features comes first
        hardest = preferences.scores + each / (1 + each)
        order = hardest.argsort(-1, descending=True)
        for place in range(len(columns)):
            chosen = torch.nn.functional.one_hot(order[..., place], len(columns)) > 0
            is_dropped = in_columns(chosen.to(x), columns, x.shape[-1]) > 0
            acts = best.is_acted & ~is_dropped
            values = torch.where(acts, best.values, x)
            fewer = problem.carried_out(x, Recommendation(acts, values, values))
            drops = (helps & self._helps(x, fewer))[..., None]
            parts = zip(vars(fewer).values(), vars(best).values(), strict=True)
            best = Recommendation(*(torch.where(drops, new, old) for new, old in parts))
        return best

    def _helps(self, x: Tensor, found: Recommendation) -> Tensor:
        """Return whether recommendations are valid and plausible, with shape (*, N)."""
        log_odds, gain = self.problem.outcome(x, found.x_cf)
        return is_valid(log_odds, surely=True) & is_plausible(gain, surely=True)

    def _cost_of_each(
        self, x: Tensor, found: Recommendation, preferences: Preferences
    ) -> Tensor:
        """Return what each actionable feature adds to the cost, with shape (*, N, K)."""
        problem, columns = self.problem, self.problem.population.actionable_index
        moves = (found.values - x)[..., columns].square() * found.is_acted[..., columns]
        weights = self.profile.weight(preferences)
        return weights * moves / problem.range[columns]
