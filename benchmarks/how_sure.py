"""How sure is a "no"? Three harder looks for actions that a search did not find.

    .venv/bin/python benchmarks/how_sure.py      six minutes of one core

For the people of notebook 08, each look beside its search: one with ten times the effort
and another seed; a scan of all values where at most two features are open; a grid for every
other "no". The last two know no gradient. The result is benchmarks/how_sure.csv. Without
the data (docs/run.md) Give Me Some Credit is left out.
"""

import lib.reproducible

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lib.method import loan
from lib.method.grid import Grid
from lib.method.preferences import Preferences
from lib.method.problem import Problem, is_plausible, is_valid
from lib.paper import designs, gmsc
from lib.search.continuous import Search
from lib.search.evaluator import ActionEvaluator
from lib.search.sets import Table, contains

PATH = Path(__file__).with_suffix(".csv")
# people; how many of them are searched harder; values of each feature in a scan of two
SIZES = {"Loan": (500, 200, 200), "real applicants": (200, 15, 100)}
HARDER: dict[str, Any] = {"n_samples": 2048, "n_starts": 64, "n_steps": 20, "seed": 1}


def main() -> None:
    """Look again for the people of each study, and save what that changes."""
    problems = {"Loan": loan.problem()}
    if gmsc.find() is not None:
        problems["real applicants"] = gmsc.problem(gmsc.applicants("", 120_269, 0))
    rows = {}
    for who, problem in problems.items():
        for look, row in looks(problem, *SIZES[who]).items():
            rows[who, look] = row
            print(who, look, row, flush=True)
    pd.DataFrame(rows).T.rename_axis(["people", "look"]).to_csv(PATH)


def looks(
    problem: Problem, n_people: int, n_searched: int, n_scan: int
) -> dict[str, dict[str, int]]:
    """Return what each look changes, by its name, as `changed` counts it."""
    x = problem.refused("test")[:n_people]
    preferences = designs.hard_preferences(problem, len(x), seed=1)
    table = Search(problem, seed=0).table(x)
    rows = more_effort(problem, x[:n_searched], preferences, table)

    is_open = preferences["random"].is_actionable
    known = table.cheapest(is_open)[0]
    few = is_open.sum(-1) <= 2
    by_scan = [
        scan(problem, x[i], is_open[i], known[i], n_scan) for i in few.nonzero()[:, 0]
    ]
    rows["scan, random, at most two open"] = changed(known[few], torch.stack(by_scan))

    stuck = known.isinf() & ~few
    answer = Grid(problem, n_values=25).recommend(
        x[stuck], Preferences.from_mask(is_open[stuck])
    )
    cost = problem.cost_of(x[stuck], answer).where(answer.has_recourse, torch.inf)
    rows['grid, random, three or four open, a "no"'] = changed(known[stuck], cost)
    return rows


def more_effort(
    problem: Problem, x: Tensor, preferences: Mapping[str, Preferences], table: Table
) -> dict[str, dict[str, int]]:
    """Return what a search with ten times the effort changes for the first N people.

    Arguments:
        x: With shape (N, D).
        preferences: Of these people and others behind them, by setting.
        table: What the search of notebook 08 found for all of them.
    """
    other = Search(problem, **HARDER).table(x)
    rows = {"ten times, all fifteen sets": changed(table.cost[: len(x)], other.cost)}
    for setting, asked in preferences.items():
        before = table.cheapest(asked.is_actionable)[0][: len(x)]
        after = other.cheapest(asked.is_actionable[: len(x)])[0]
        rows[f"ten times, setting {setting}"] = changed(before, after)
    return rows


def scan(problem: Problem, x: Tensor, is_open: Tensor, known: Tensor, n: int) -> Tensor:
    """Return the lowest cost in a scan of one person's values; infinite for none.

    After an answer all that is cheaper is scanned, after a "no" the
    whole range.

    Arguments:
        x: The person, with shape (D,).
        is_open: Which features are, at most two, with shape (K,).
        known: Cost of the search's answer, infinite for a "no".
        n: Values of each of two features; ten times as many of one.
    """
    population, columns = problem.population, problem.population.actionable_index
    factual, low, high = x[columns], population.low[columns], population.high[columns]
    reach = (known * len(columns) * problem.range[columns]).sqrt()
    first, last = low.maximum(factual - reach), high.minimum(factual + reach)
    best = torch.tensor(torch.inf)
    sets = torch.cat([torch.eye(len(columns)).bool(), is_open[None]])
    for acts in sets[contains(is_open[None], sets)[0]].unique(dim=0):
        n_values = n if acts.sum() == 2 else 10 * n
        lines = [torch.linspace(first[k], last[k], n_values) for k in acts.nonzero()[:, 0]]
        points = torch.cartesian_prod(*lines).view(-1, len(lines))
        values = factual.repeat(len(points), 1)
        values[:, acts] = points
        people, masks = x.expand(len(points), -1), acts.expand(len(points), -1)
        evaluator = ActionEvaluator(problem, None, people, masks, torch.ones_like(values))
        with torch.no_grad():
            outcome = evaluator(evaluator.project(values))
        holds = is_valid(outcome.log_odds) & is_plausible(outcome.gain)
        best = best.minimum(outcome.cost.where(holds, torch.inf).min())
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


if __name__ == "__main__":
    main()
