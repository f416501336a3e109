"""Ten iCARMA seeds at each of several plausibility weights (notebook 03, section 4).

    .venv/bin/python benchmarks/plausibility_weight.py     three minutes a row on one core

They are judged on validation people; no test person is touched. Writes
benchmarks/plausibility_weight.csv, a row as soon as it is known; rows that are there are
not run again. Needs the committed classifier and flow.
"""

import lib.pinned

import csv
from dataclasses import replace
from pathlib import Path

from lib.base import progress
from lib.preferences.samplers import RankingSampler
from lib.problem import loan
from lib.problem.recourse import Problem
from lib.solvers import icarma, training
from lib.studies import designs, tables

RESULTS = Path(__file__).with_suffix(".csv")
TRIED = [(8.0, 3e-3), (9.0, 3e-3), (10.0, 3e-3), (11.0, 3e-3), (12.0, 3e-3), (11.0, 5e-3)]


SEEDS = [1000 * (i + 1) for i in range(10)]


def done() -> set[tuple[float, float]]:
    """Return the pairs of weight and learning rate that have a row already."""
    if not RESULTS.exists():
        return set()
    with open(RESULTS, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(float(row["plausibility"]), float(row["learning_rate"])) for row in rows}


def judged(problem: Problem, weight: float, rate: float) -> dict[str, float]:
    """Fit a network for each seed; return their row of the table."""
    settings = replace(icarma.Settings(), plausibility=weight, learning_rate=rate)
    sampler = RankingSampler(problem.population.actionable)
    bar = progress.bar(f"weight {weight}, rate {rate}")
    stack, _ = training.fit(problem, sampler, settings, SEEDS, progress=bar)
    x = problem.refused("validation")
    preferences = designs.hard_preferences(problem, len(x), seed=0)
    people = tables.recommend(problem, stack, x, preferences)
    chosen = tables.best_member(people)
    joint = people[people.setting == "random"].groupby("member").joint.mean()
    row = {
        "plausibility": settings.plausibility,
        "learning_rate": settings.learning_rate,
        "chosen": SEEDS[chosen],
        "joint_chosen": joint[chosen],
        "joint_low": joint.min(),
        "joint_high": joint.max(),
    }
    for setting in ("2", "1", "random"):
        own = people[(people.member == chosen) & (people.setting == setting)]
        row[f"validity_{setting}"] = own.valid.mean()
        row[f"plausibility_{setting}"] = own.plausible.mean()
    return row


def main() -> None:
    """Measure what is not in the file yet, and add it to the file."""
    problem, known = loan.problem(), done()
    for weight, rate in TRIED:
        if (weight, rate) in known:
            continue
        row = judged(problem, weight, rate)
        is_new = not RESULTS.exists()
        with open(RESULTS, "a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, row)
            if is_new:
                table.writeheader()
            table.writerow(
                {
                    key: value if isinstance(value, int) else f"{value:.4g}"
                    for key, value in row.items()
                }
            )


if __name__ == "__main__":
    main()
