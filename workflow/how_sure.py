"""Look harder for actions that notebook 08's search did not find.

`python workflow/how_sure.py SIZE JOB`

Called by the Snakefile. JOB is loan_how_sure or gmsc_how_sure. It
leaves, in the folder of models, JOB.csv: what each harder look
changes. The parameters of notebook 08 say how many people there are,
and networks.yaml of the same size how hard is looked.
"""

import lib.reproducible

from collections.abc import Mapping
from typing import Any

import fitting
import pandas as pd
import torch
from jobs import run
from parameters import read_parameters

from lib import io
from lib.io import inside
from lib.method import grid, loan
from lib.method.preferences import Preferences
from lib.method.problem import Problem, is_plausible, is_valid
from lib.method.scm import CausalModel
from lib.paper import designs, gmsc
from lib.search.continuous import Search
from lib.search.evaluator import ActionEvaluator

NOTEBOOK = "08_exact_and_unlocked"


def loan_how_sure(given: Mapping[str, Any], name: str) -> None:
    """Save what harder looks change for refused people of Loan, in the true model.

    Arguments:
        given: As `read_network_parameters` returns it, with the size.
        name: Of the file, without its ending.
    """
    problem = loan.problem(inside(given["models"]), **fitting.drawn(given))
    truth = problem.population.truth
    assert truth is not None, "Loan's is known"
    _save(problem, truth, "n_people", given, name)


def gmsc_how_sure(given: Mapping[str, Any], name: str) -> None:
    """Save the same for refused people of Give Me Some Credit, through the flow.

    Arguments: as for `loan_how_sure`.
    """
    people, _ = fitting.applicants(given)
    problem = gmsc.problem(people, inside(given["models"]), given["seed"])
    _save(problem, problem.flow, "n_credit", given, name)


def _save(
    problem: Problem, model: CausalModel, people: str, given: Mapping[str, Any], name: str
) -> None:
    """Save a row for each harder look.

    Arguments:
        people: The parameter of the notebook that says how many.
    """
    of_notebook = read_parameters(given["size"], NOTEBOOK)
    n_people, n_values = of_notebook[people], of_notebook["n_values"]
    n_searched, n_scan = given["n_searched"][name], given["n_scan"][name]
    harder = given["n_harder"]
    effort = {"n_samples": harder["scouts"], "n_starts": harder["starts"]}
    effort["n_steps"] = harder["steps"]
    looks = Looks(problem, model, n_people, given["seed"])
    rows = looks.ten_times(n_searched, effort)
    rows |= looks.scanned(n_scan)
    rows |= looks.on_grid(n_values)
    as_csv = pd.DataFrame(rows).T.to_csv(index_label="look")
    io.write(inside(given["models"]) / f"{name}.csv", as_csv)


class Looks:
    """Hold what the notebook's search finds for refused people, and look again.

    Arguments:
        problem: Whose refused test people they are.
        model: Where actions take effect.
        n_people: How many, at most.
        seed: Of the preferences, and of the search.
    """

    def __init__(
        self, problem: Problem, model: CausalModel, n_people: int, seed: int
    ) -> None:
        self.problem, self.model, self.seed = problem, model, seed
        self.x = problem.refused("test")[:n_people]
        self.asked = designs.hard_preferences(problem, len(self.x), seed + 1)
        self.is_allowed = self.asked["random"].is_actionable
        self.table = Search(problem, model, seed=seed).table(self.x)
        self.known = self.table.cheapest(self.is_allowed)[0]
        self.few = self.is_allowed.sum(-1) <= 2

    def ten_times(self, n: int, effort: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return what more effort and another seed change for n people.

        Arguments:
            n: Of the people; the first are taken.
            effort: n_samples, n_starts and n_steps of the search.
        """
        how: dict[str, Any] = {"seed": self.seed + 1, **effort}
        other = Search(self.problem, self.model, **how).table(self.x[:n])
        rows = {"ten times, all fifteen sets": changed(self.table.cost[:n], other.cost)}
        for setting, preferences in self.asked.items():
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
        solver = grid.Grid(self.problem, self.model, n_values=n_values)
        recommendation = solver.recommend(x, preferences)
        cost = self.problem.cost_of(x, recommendation)
        cost = cost.where(recommendation.has_recourse, torch.inf)
        row = changed(self.known[stuck], cost)
        return {'grid, random, three or four open, a "no"': row}

    def _scan(self, i: torch.Tensor, n: int) -> torch.Tensor:
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


def changed(before: torch.Tensor, after: torch.Tensor) -> dict[str, int]:
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


JOBS = {"loan_how_sure": loan_how_sure, "gmsc_how_sure": gmsc_how_sure}


if __name__ == "__main__":
    run(JOBS)
