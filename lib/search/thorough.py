"""Look harder for actions that a search did not find, or found too dear.

Three looks, each beside the search of notebook 08: one with more
effort and another seed, a scan of all values where at most two
features are open, and a grid around each person.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lib.method.grid import Grid
from lib.method.preferences import Preferences
from lib.method.problem import Problem, is_plausible, is_valid
from lib.method.scm import CausalModel
from lib.search.continuous import Search
from lib.search.evaluator import ActionEvaluator


class Looks:
    """Hold what the search finds for refused people, and look again.

    Arguments:
        problem: Of the people.
        model: Where actions take effect.
        x: The people, with shape (N, D).
        preferences: Theirs in each setting, "random" among them.
        seed: Of the search.
        effort: Its n_samples, n_starts and n_steps, where they are not the
            defaults.
    """

    def __init__(
        self,
        problem: Problem,
        model: CausalModel,
        x: Tensor,
        preferences: Mapping[str, Preferences],
        seed: int,
        **effort: Any,
    ) -> None:
        self.problem, self.model, self.x, self.seed = problem, model, x, seed
        self.preferences = preferences
        self.is_allowed = preferences["random"].is_actionable
        self.table = Search(problem, model, seed=seed, **effort).table(self.x)
        self.known = self.table.cheapest(self.is_allowed)[0]
        self.few = self.is_allowed.sum(-1) <= 2

    def table_of(
        self, n_searched: int, effort: Mapping[str, int], n_scan: int, n_values: int
    ) -> pd.DataFrame:
        """Return what all looks change, a row a look; arguments as for each of them."""
        rows = self.ten_times(n_searched, effort)
        rows |= self.scanned(n_scan)
        rows |= self.on_grid(n_values)
        return pd.DataFrame(rows).T.rename_axis("look")

    def ten_times(self, n: int, effort: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return what more effort and another seed change for n people.

        Arguments:
            n: Of the people; the first are taken.
            effort: n_samples, n_starts and n_steps of the search.
        """
        how: dict[str, Any] = {"seed": self.seed + 1, **effort}
        other = Search(self.problem, self.model, **how).table(self.x[:n])
        rows = {"ten times, all fifteen sets": changed(self.table.cost[:n], other.cost)}
        for setting, preferences in self.preferences.items():
            costs = (
                table.cheapest(preferences.is_actionable[: len(table.cost)])[0][:n]
                for table in (self.table, other)
            )
            rows[f"ten times, setting {setting}"] = changed(*costs)
        return rows

    def scanned(self, n: int) -> dict[str, dict[str, int]]:
        """Return what a scan changes for whoever has at most two features open.

        Arguments:
            n: Values of a feature; ten times as many where it is alone.
        """
        costs = [self._scan(i, n) for i in self.few.nonzero()[:, 0]]
        by_scan = torch.stack(costs) if costs else self.known[:0]
        return {"scan, random, at most two open": changed(self.known[self.few], by_scan)}

    def on_grid(self, n_values: int) -> dict[str, dict[str, int]]:
        """Return what a grid changes for every other "no"; no row if there is none."""
        stuck = self.known.isinf() & ~self.few
        if not stuck.any():
            return {}
        x, preferences = self.x[stuck], Preferences.from_mask(self.is_allowed[stuck])
        solver = Grid(self.problem, self.model, n_values=n_values)
        recommendation = solver.recommend(x, preferences)
        cost = self.problem.cost_of(x, recommendation)
        cost = cost.where(recommendation.has_recourse, torch.inf)
        row = changed(self.known[stuck], cost)
        return {'grid, random, three or four open, a "no"': row}

    def _scan(self, i: Tensor, n: int) -> Tensor:
        """Return the lowest cost that a scan finds for person i; infinite for none.

        After an answer it looks at all that is cheaper, after a "no" at
        the whole range.
        """
        population, x = self.problem.population, self.x[i]
        columns = population.actionable_index
        factual, low, high = x[columns], population.low[columns], population.high[columns]
        best = torch.tensor(torch.inf)
        for is_acted in self.table.sets:
            if (is_acted & ~self.is_allowed[i]).any():
                continue
            reach = (self.known[i] * len(columns) * self.problem.range[columns]).sqrt()
            first, last = low.maximum(factual - reach), high.minimum(factual + reach)
            n_values = n if is_acted.sum() == 2 else 10 * n
            lines = [
                torch.linspace(first[k], last[k], n_values, dtype=x.dtype)
                for k in is_acted.nonzero()[:, 0]
            ]
            points = torch.cartesian_prod(*lines).view(-1, int(is_acted.sum()))
            values = factual.repeat(len(points), 1)
            values[:, is_acted] = points
            rows, mask = (one.expand(len(points), -1) for one in (x, is_acted))
            evaluator = ActionEvaluator(
                self.problem, self.model, rows, mask, torch.ones_like(values)
            )
            with torch.no_grad():
                outcome = evaluator(evaluator.project(values))
            holds = is_valid(outcome.log_odds) & is_plausible(outcome.gain)
            best = best.minimum(torch.where(holds, outcome.cost, torch.inf).min())
        return best


def changed(before: Tensor, after: Tensor) -> dict[str, int]:
    """Return what a harder look changes: costs before and after, infinite for none.

    Example:
        >>> before = torch.tensor([1.0, 1.0, torch.inf, torch.inf])
        >>> changed(before, torch.tensor([1.0, 0.9, 2.0, torch.inf]))
        {'answers': 2, 'more than 1 % dearer': 1, 'none found': 2, 'missed': 1}
    """
    has, could = before.isfinite(), after.isfinite()
    return {
        "answers": int(has.sum()),
        "more than 1 % dearer": int((has & (before > 1.01 * after)).sum()),
        "none found": int((~has).sum()),
        "missed": int((could & ~has).sum()),
    }
