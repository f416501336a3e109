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
from lib.method.problem import Problem
from lib.method.world import World
from lib.paper import designs, gmsc
from lib.search import continuous, descent

NOTEBOOK = "08_exact_and_unlocked"


def loan_how_sure(given: Mapping[str, Any], name: str) -> None:
    """Save what harder looks change for refused people of Loan, in the true world.

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
    found, _ = fitting.applicants(given)
    problem = gmsc.problem(found, inside(given["models"]), given["seed"])
    _save(problem, problem.flow, "n_credit", given, name)


def _save(
    problem: Problem, world: World, people: str, given: Mapping[str, Any], name: str
) -> None:
    """Save a row for each harder look.

    Arguments:
        people: The parameter of the notebook that says how many.
    """
    of_notebook = read_parameters(given["size"], NOTEBOOK)
    n_people, n_values = of_notebook[people], of_notebook["n_values"]
    n_searched, n_scan = given["n_searched"][name], given["n_scan"][name]
    effort: dict[str, Any] = {f"n_{what}": n for what, n in given["n_harder"].items()}
    looks = Looks(problem, world, n_people, given["seed"])
    rows = looks.ten_times(n_searched, effort)
    rows |= looks.scanned(n_scan)
    rows |= looks.on_grid(n_values)
    as_csv = pd.DataFrame(rows).T.to_csv(index_label="look")
    io.write(inside(given["models"]) / f"{name}.csv", as_csv)


class Looks:
    """Hold what the notebook's search finds for refused people, and look again.

    Arguments:
        problem: Whose refused test people they are.
        world: Where actions take effect.
        n_people: How many, at most.
        seed: Of the preferences, and where a search scatters its looks.
    """

    def __init__(self, problem: Problem, world: World, n_people: int, seed: int) -> None:
        self.problem, self.world, self.seed = problem, world, seed
        self.x = problem.refused("test")[:n_people]
        self.asked = designs.hard_preferences(problem, len(self.x), seed + 1)
        self.may = self.asked["random"].is_actionable
        self.table = continuous.Search(problem, world, seed=seed).table(self.x)
        self.known = self.table.cheapest(self.may)[0]
        self.few = self.may.sum(-1) <= 2

    def ten_times(self, n: int, effort: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return what more effort and another seed change for n people.

        Arguments:
            n: Of the people; the first are taken.
            effort: n_scouts, n_starts and n_steps of the search.
        """
        seed = self.seed + 1
        search = continuous.Search(self.problem, self.world, seed=seed, **effort)
        other = search.table(self.x[:n])
        rows = {"ten times, all fifteen sets": changed(self.table.cost[:n], other.cost)}
        for setting, said in self.asked.items():
            costs = (
                table.cheapest(said.is_actionable[: len(table.cost)])[0][:n]
                for table in (self.table, other)
            )
            rows[f"ten times, setting {setting}"] = changed(*costs)
        return rows

    def scanned(self, n: int) -> dict[str, dict[str, int]]:
        """Return what a scan changes for whoever has at most two features open.

        Arguments:
            n: Values of a feature; ten times as many where it is alone.
        """
        found = [self._scan(i, n) for i in self.few.nonzero()[:, 0]]
        by_scan = torch.stack(found) if found else self.known[:0]
        return {"scan, random, at most two open": changed(self.known[self.few], by_scan)}

    def on_grid(self, n_values: int) -> dict[str, dict[str, int]]:
        """Return what a grid changes for every other "no"; no row if there is none."""
        stuck = self.known.isinf() & ~self.few
        if not stuck.any():
            return {}
        x, said = self.x[stuck], Preferences.from_mask(self.may[stuck])
        r = grid.Grid(self.problem, self.world, n_values=n_values).recommend(x, said)
        cost = self.problem.cost_of(x, r).where(r.has_recourse, torch.inf)
        row = changed(self.known[stuck], cost)
        return {'grid, random, three or four open, a "no"': row}

    def _scan(self, i: torch.Tensor, n: int) -> torch.Tensor:
        """Return the lowest cost that a scan finds for person i; infinite for none.

        After an answer it looks at all that is cheaper, after a "no" at
        the whole range.
        """
        population, x = self.problem.population, self.x[i]
        at = population.actionable_index
        factual, low, high = x[at], population.low[at], population.high[at]
        best = torch.tensor(torch.inf)
        for acts in self.table.sets:
            if (acts & ~self.may[i]).any():
                continue
            reach = (self.known[i] * len(at) * self.problem.range[at]).sqrt()
            first, last = low.maximum(factual - reach), high.minimum(factual + reach)
            n_lines = n if acts.sum() == 2 else 10 * n
            lines = [
                torch.linspace(first[k], last[k], n_lines, dtype=x.dtype)
                for k in acts.nonzero()[:, 0]
            ]
            net = torch.cartesian_prod(*lines).view(-1, int(acts.sum()))
            values = factual.repeat(len(net), 1)
            values[:, acts] = net
            rows, on = (part.expand(len(net), -1) for part in (x, acts))
            one = torch.ones_like(values)
            judge = descent.Judge(self.problem, self.world, rows, on, one)
            with torch.no_grad():
                cost, log_odds, gain = judge(judge.allowed(values))
            good = (log_odds >= 0) & (gain >= 0)
            best = best.minimum(torch.where(good, cost, torch.inf).min())
        return best


def changed(own: torch.Tensor, other: torch.Tensor) -> dict[str, int]:
    """Return what a harder look changes: costs before and after, infinite for none.

    Example:
        >>> own = torch.tensor([1.0, 1.0, torch.inf, torch.inf])
        >>> changed(own, torch.tensor([1.0, 0.9, 2.0, torch.inf]))
        {'answers': 2, 'more than 1 % dearer': 1, 'none found': 2, 'missed': 1}
    """
    has, could = own.isfinite(), other.isfinite()
    return {
        "answers": int(has.sum()),
        "more than 1 % dearer": int((has & (own > 1.01 * other)).sum()),
        "none found": int((~has).sum()),
        "missed": int((could & ~has).sum()),
    }


JOBS = {"loan_how_sure": loan_how_sure, "gmsc_how_sure": gmsc_how_sure}


if __name__ == "__main__":
    run(JOBS)
