"""Own tables: the search beside a full enumeration, and what tables of three sizes take.

    .venv/bin/python benchmarks/own_data.py enumeration    own_data_enumeration.csv
    .venv/bin/python benchmarks/own_data.py sizes          own_data_sizes.csv

Each takes about five minutes. All people are simulated.

**Enumeration.** Two tables whose actionable features are whole numbers, or categories and
whole numbers. 200 refused people each say at random what they can do and how hard it is.
For every one of them all combinations of values on every set of open features are tried,
carried out in whole numbers, and judged: how many does the search miss, or answer more
than one percent too dear?

**Sizes.** Tables of 300 rows, 20,000 rows with 12 features, and 200,000 rows with 30, of
which half are actionable; six are open to each of ten refused people. Every size is a
process of its own: seconds to fit classifier and flow, seconds a person to search, and the
peak of its memory.
"""

import lib.reproducible

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from measure import peak_memory
from torch import Tensor

from lib import Problem, recommend
from lib.method.grid import Grid
from lib.method.problem import Recommendation, Solver, is_plausible, is_valid
from lib.method.samplers import RankingSampler
from lib.search.continuous import Search
from lib.search.recommend import MAX_COMBINATIONS

FOLDER = Path(__file__).parent
N_PEOPLE = 200
SIZES = ((300, 6), (20_000, 12), (200_000, 30))  # rows, features


def main() -> None:
    """Measure what was asked for, and save it."""
    study = sys.argv[1] if len(sys.argv) > 1 else ""
    if study == "enumeration":
        rows = [row for name in TABLES for row in beside_enumeration(name)]
    elif study == "sizes":
        rows = [in_a_process(*size) for size in SIZES]
    else:
        raise SystemExit(__doc__)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    table.to_csv(FOLDER / f"own_data_{study}.csv", index=False)


def whole_numbers(rng: np.random.Generator, n: int = 3_000) -> Problem:
    """Return the problem of a table with three whole numbers, one of them wide."""
    age = rng.integers(20, 70, n)
    frame = pd.DataFrame({"age": age, "cards": rng.poisson(1 + age / 30)})
    frame["months"] = (6 + rng.gamma(2, 9, n)).round().clip(6, 60).astype(int)
    frame["hundreds"] = (5 + 0.6 * frame.months + rng.gamma(2, 8, n)).astype(int)
    frame["income"] = 10 + 0.3 * age + 1.5 * frame.cards + rng.normal(0, 4, n)
    worth = frame.income - 0.2 * frame.hundreds - 0.1 * frame.months - frame.cards
    frame["paid"] = worth + rng.normal(0, 2, n) > worth.median()
    kinds = {"age": "immutable", "income": "mutable"}
    kinds |= dict.fromkeys(("cards", "months", "hundreds"), "actionable")
    edges = {"cards": ["age"], "hundreds": ["months"], "income": ["age", "cards"]}
    return Problem.from_frame(frame, "paid", kinds, edges)


def categories(rng: np.random.Generator, n: int = 3_000) -> Problem:
    """Return the problem of a table with three categories and two whole numbers."""
    job = rng.choice(4, n, p=[0.2, 0.35, 0.3, 0.15])
    frame = pd.DataFrame({"job": np.array(["none", "cook", "clerk", "doctor"])[job]})
    frame["home"] = np.where(rng.random(n) < 0.2 + 0.15 * job, "own", "rent")
    region = rng.choice(5, n)
    frame["region"] = np.array(["north", "south", "east", "west", "centre"])[region]
    frame["cards"] = rng.poisson(1 + job / 2)
    frame["months"] = rng.integers(6, 37, n)
    frame["income"] = 15 + 6 * job + region + rng.normal(0, 4, n)
    worth = frame.income - 2 * frame.cards - 0.3 * frame.months + 4 * (frame.home == "own")
    frame["paid"] = worth + rng.normal(0, 3, n) > worth.median()
    kinds = dict.fromkeys(("job", "home", "region", "cards", "months"), "actionable")
    edges = {"home": ["job"], "cards": ["job"], "income": ["job", "region"]}
    return Problem.from_frame(frame, "paid", kinds | {"income": "mutable"}, edges)


TABLES = {"whole numbers": whole_numbers, "categories": categories}


def beside_enumeration(name: str) -> list[dict[str, object]]:
    """Return how a table's search and grid compare with every combination, a row each."""
    rng = np.random.default_rng(0)
    problem = TABLES[name](rng)
    refused = problem.refused("test")
    x = refused[rng.integers(0, len(refused), N_PEOPLE)]
    preferences = RankingSampler(problem.population.actionable).draw(range(N_PEOPLE), rng)
    people = zip(x, preferences.is_actionable, preferences.weight, strict=True)
    least = torch.stack([cheapest(problem, *person) for person in people])
    search = Search(problem, max_combinations=MAX_COMBINATIONS)
    solvers: dict[str, Solver] = {"search": search, "grid": Grid(problem)}
    rows = []
    for who, solver in solvers.items():
        start = perf_counter()
        answer = solver.recommend(x, preferences)
        seconds = perf_counter() - start
        done = problem.discretise(x, answer)
        log_odds, gain = problem.outcome(x, done.x_cf)
        holds = done.has_recourse & is_valid(log_odds) & is_plausible(gain)
        cost = problem.cost_of(x, done, preferences.weight)
        cost = torch.where(holds, cost.double(), torch.inf)
        both = holds & least.isfinite()
        rows.append(
            {
                "table": name,
                "solver": who,
                "people": N_PEOPLE,
                "with recourse": int(least.isfinite().sum()),
                "answered": int(holds.sum()),
                "missed": int((least.isfinite() & ~holds).sum()),
                "more than 1 % dearer": int((cost[both] > 1.01 * least[both]).sum()),
                "cheaper than the enumeration": int((cost < 0.9999 * least).sum()),
                "seconds": round(seconds, 1),
            }
        )
    return rows


@torch.no_grad()
def cheapest(problem: Problem, person: Tensor, is_open: Tensor, weight: Tensor) -> Tensor:
    """Return the lowest weighted cost over all combinations of all sets, as a scalar."""
    population = problem.population
    index = torch.tensor(population.actionable_index)
    columns = index[is_open].tolist()
    least = torch.tensor(torch.inf, dtype=torch.double)
    for size in range(1, len(columns) + 1):
        for chosen in combinations(columns, size):
            values = [population.counts(column).to(person) for column in chosen]
            tried = torch.cartesian_prod(*values).view(-1, size)
            x = person.expand(len(tried), -1)
            aim, is_acted = x.clone(), torch.zeros_like(x, dtype=torch.bool)
            aim[:, list(chosen)], is_acted[:, list(chosen)] = tried, True
            done = problem.discretise(x, Recommendation(is_acted, aim, aim))
            log_odds, gain = problem.outcome(x, done.x_cf)
            holds = is_valid(log_odds) & is_plausible(gain)
            weights = weight.to(x).expand(len(x), -1)
            cost = problem.cost_of(x, done, weights).double()
            least = torch.minimum(least, cost.masked_fill(~holds, torch.inf).min())
    return least


def in_a_process(n_rows: int, n_features: int) -> dict[str, object]:
    """Return what `time_of_size` measures in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(time_of_size, n_rows, n_features).result()


def time_of_size(n_rows: int, n_features: int) -> dict[str, object]:
    """Return seconds and memory of a table with so many rows and features."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(n_features)]
    noise = rng.normal(size=(n_rows, n_features))
    values = noise.copy()
    for j in range(2, n_features):
        values[:, j] += 0.4 * values[:, j - 1] - 0.3 * values[:, j - 2]
    frame = pd.DataFrame(values, columns=names)
    frame["label"] = values.sum(1) + rng.normal(size=n_rows) > 0
    halves = ["immutable"] * (n_features // 2) + ["actionable"] * (n_features // 2)
    edges = {names[j]: [names[j - 2], names[j - 1]] for j in range(2, n_features)}
    start = perf_counter()
    problem = Problem.from_frame(
        frame, "label", dict(zip(names, halves, strict=True)), edges
    )
    fitted = perf_counter()
    x = problem.refused("test")[:10]
    actionable = problem.population.actionable
    answers = dict.fromkeys(actionable, "can't") | dict.fromkeys(actionable[-6:], "easy")
    people = problem.population.to_frame(x)
    table = recommend(problem, people, [answers] * len(people))
    searched = perf_counter()
    return {
        "rows": n_rows,
        "features": n_features,
        "actionable": len(actionable),
        "seconds to fit": round(fitted - start, 1),
        "people": len(people),
        "open to each": min(6, len(actionable)),
        "accepted afterwards": int(table.accepted.sum()),
        "seconds to search": round(searched - fitted, 1),
        "peak memory (MB)": round(peak_memory()),
    }


if __name__ == "__main__":
    main()
