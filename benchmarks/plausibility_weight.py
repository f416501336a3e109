"""Ten iCARMA seeds at each of several plausibility weights, judged on validation people (notebook 03, section 4).

    .venv/bin/python benchmarks/plausibility_weight.py       (about three minutes a row on one core)

Writes benchmarks/plausibility_weight.csv, a row as soon as it is known; rows that are there already are not run again.
Needs the committed classifier and flow; touches no test person.
"""

import lib.pinned

import csv
from dataclasses import asdict, replace
from pathlib import Path

from lib.base import progress
from lib.preferences.samplers import RankingSampler
from lib.problem import loan
from lib.solvers import icarma
from lib.studies import tables

RESULTS = Path(__file__).with_suffix(".csv")
TRIED = [(8.0, 3e-3), (9.0, 3e-3), (10.0, 3e-3), (11.0, 3e-3), (12.0, 3e-3), (11.0, 5e-3)]


def main() -> None:
    problem = loan.problem()
    x = problem.refused("validation")
    wishes = tables.hard_preferences(problem, len(x), seed=0)
    done = set()
    if RESULTS.exists():
        with open(RESULTS, newline="", encoding="utf-8") as file:
            done = {
                (float(row["plausibility"]), float(row["learning_rate"]))
                for row in csv.DictReader(file)
            }
    for weight, rate in TRIED:
        if (weight, rate) in done:
            continue
        settings = replace(icarma.Settings(), plausibility=weight, learning_rate=rate)
        samplers, seeds = (
            [RankingSampler(problem.population.actionable)] * 10,
            [1000 * (i + 1) for i in range(10)],
        )
        bar = progress.bar(f"weight {weight}, rate {rate}")
        stack, _ = icarma.fit(problem, samplers, [settings] * 10, seeds, progress=bar)
        people = tables.recommend(problem, stack, x, wishes)
        chosen = tables.best_seed(people)
        row = {key: asdict(settings)[key] for key in ("plausibility", "learning_rate")} | {
            "chosen": chosen
        }
        joint = people[people.setting == "random"].groupby("seed").joint.mean()
        row |= {
            "joint_chosen": joint[chosen],
            "joint_low": joint.min(),
            "joint_high": joint.max(),
        }
        for setting in ("2", "1", "random"):
            own = people[(people.seed == chosen) & (people.setting == setting)]
            row |= {
                f"validity_{setting}": own.valid.mean(),
                f"plausibility_{setting}": own.plausible.mean(),
            }
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
