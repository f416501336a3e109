"""An audit of real people by age: Give Me Some Credit, under and over 45 years.

    .venv/bin/python benchmarks/age_audit.py      about two minutes on one core

The exact search on a grid of seven values a feature, through the flow, for some refused
people of each group: once with all four features open, once averaged over all pairs of
them. No network takes part. Intervals are two standard errors on either side. The result is
benchmarks/age_audit.csv; no notebook shows it. Without the data (docs/run.md) the people
are a synthetic stand-in, and the column people says so.
"""

import lib.reproducible

from pathlib import Path

import numpy as np
import pandas as pd

from lib import io
from lib.method.grid import Grid
from lib.paper import gmsc, tables
from lib.paper.fairness import gaps
from lib.paper.fairness.groups import Attribute
from lib.paper.fairness.scenarios import Scenario, preferences_by_set

PATH = Path(__file__).with_suffix(".csv")
AGE = Attribute("age", ("under 45", "45 and over"), feature="age", cuts=(45.0,))
N_PEOPLE = 1_000  # refused people searched in each group
N_VALUES = 7  # grid values a feature
SCENARIOS = {"all four": 4, "two at random": 2}  # features open to each


def main() -> None:
    """Search, compare, and save."""
    applicants = gmsc.applicants("", 200_000, seed=0, or_stand_in=True)
    problem = gmsc.problem(applicants)
    population = problem.population
    every = population.x["recourse/test"]
    is_refused = ~problem.accepts(every).numpy()
    labels = AGE.read_off(population, every)
    rng = np.random.default_rng(0)
    rows = np.sort(
        np.concatenate(
            [
                rng.choice(np.flatnonzero(is_refused & (labels == label)), N_PEOPLE, False)
                for label in AGE.labels
            ]
        )
    )
    ages = pd.DataFrame({"age": labels[rows]})
    chances = {
        name: Scenario(name, n, others="uniform").chances(population.actionable, ages)
        for name, n in SCENARIOS.items()
    }
    names = list(dict.fromkeys(name for table in chances.values() for name in table))
    preferences = preferences_by_set(population.actionable, names, len(rows))
    grid = Grid(problem, n_values=N_VALUES, progress=io.progress_bar("age audit"))
    answers = tables.evaluate(problem, grid, every[rows], preferences)
    has_paid = population.y["recourse/test"].bool().numpy()
    among = {"": np.ones_like(has_paid), ", of those who paid back": has_paid}
    lines = []
    for scenario, weights in chances.items():
        helped = gaps.expected(answers, "joint", weights)
        cost = gaps.expected(answers, "cost", weights, over="valid")
        of_sample = [np.flatnonzero(ages.age == label) for label in AGE.labels]
        young, old = of_sample
        for measure, parts in (("joint", helped), ("cost", cost)):
            means = [gaps.mean(parts, who).value for who in of_sample]
            for scale in gaps.SCALES:
                estimate = gaps.gap(parts, young, old, scale)
                lines.append((scenario, measure, scale, *means, estimate))
        refused = is_refused[None].astype(float), np.ones((1, len(every)))
        placed = gaps.placed(cost, rows, len(every))
        for ending, is_counted in among.items():
            of_all = [np.flatnonzero((labels == name) & is_counted) for name in AGE.labels]
            for measure, factors in (("refused", [refused]), ("burden", [refused, placed])):
                both = [[(1.0, *gaps.among(p, who)) for p in factors] for who in of_all]
                means = [gaps.product(*terms).value for terms in both]
                divided = [(-1.0, numerator, people) for _, numerator, people in both[1]]
                estimate = gaps.product(*both[0], *divided)
                lines.append((scenario, measure + ending, "ratio", *means, estimate))
    names = ["scenario", "measure", "kind", *AGE.labels, "of"]
    result = pd.DataFrame(lines, columns=names)
    result.insert(0, "people", applicants.heading)
    of = result.pop("of")
    result["estimate"] = [one.value for one in of]
    result["low"], result["high"] = [one.low for one in of], [one.high for one in of]
    result.round(4).to_csv(PATH, index=False)


if __name__ == "__main__":
    main()
