"""What the cap of the loss is good for: five caps with the chosen settings, ten seeds each.

    .venv/bin/python benchmarks/caps.py      about five minutes on one core

A cap bends the hinge and the plausibility term of a person who can't be helped, so that
they do not outweigh everybody else. The settings are those that were found for the constant
profile; only the cap differs. The result is benchmarks/caps.csv, judged on validation
people, which notebook 03b shows.
"""

import lib.pinned

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
from masks import judge

from lib.base import progress
from lib.method import loan, training
from lib.paper import stacks
from lib.search import continuous

PATH = Path(__file__).with_suffix(".csv")
CAPS = (2.0, 5.0, 9.74, 20.0, math.inf)  # the third was found


def main() -> None:
    """Train, judge and save."""
    problem = loan.problem()
    seeds = [1000 * (i + 1) for i in range(10)]
    sampler, found, _ = stacks.hard(problem.population.actionable, seeds)
    settings = [replace(own, cap=cap) for cap in CAPS for own in found]
    stack, _ = training.fit(
        problem, sampler * len(CAPS), settings, seeds * len(CAPS), progress.bar("caps")
    )
    x = problem.refused("validation")
    solved = continuous.Search(
        problem, problem.flow, progress=progress.bar("search")
    ).table(x)
    rows = judge(problem, stack, solved)
    table = pd.DataFrame(rows)
    table.insert(0, "cap", [own.cap for own in settings])
    table.insert(1, "seed", stack.seeds)
    table.round(4).to_csv(PATH, index=False)


if __name__ == "__main__":
    main()
