"""An audit of real people by age: Give Me Some Credit, under and over 45 years.

    .venv/bin/python benchmarks/age_audit.py      about two minutes on one core

The exact search on a grid of seven values a feature, through the flow, for some refused
people of each group: once with all four features open, once averaged over all pairs of
them. No network takes part. The result is benchmarks/age_audit.csv, which notebook 06
shows. Without the data (docs/run.md) the people are a synthetic stand-in, and the column
people says so.
"""

import lib.reproducible

from pathlib import Path

import numpy as np
import pandas as pd

from lib import io
from lib.paper import gmsc, readings, tables
from lib.paper.fairness import audit, burden
from lib.paper.fairness.bootstrap import answered
from lib.paper.fairness.groups import Attribute
from lib.paper.fairness.measures import MEASURES, Mean
from lib.paper.fairness.scenarios import Scenario, preferences_by_set

PATH = Path(__file__).with_suffix(".csv")
AGE = Attribute("age", ("under 45", "45 and over"), feature="age", cuts=(45.0,))
N_PEOPLE = 1_000  # refused people searched in each group
N_VALUES = 7  # grid values a feature
N_RESAMPLES = 2_000
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
    oracle = readings.oracle(
        problem, n_values=N_VALUES, progress=io.progress_bar("age audit")
    )
    answers = tables.evaluate(problem, oracle, every[rows], preferences)
    groups = {label: np.flatnonzero(ages.age == label) for label in AGE.labels}
    young, old = AGE.labels
    pair = {"age": (young, old)}
    gaps = audit.gaps(answers, chances, groups, pair, ["joint", "cost"])
    table = answered(gaps, groups, N_RESAMPLES, seed=0)
    means = audit.means(answers, chances, groups, N_RESAMPLES, 0, ["joint", "cost"])
    means = means.set_index(["scenario", "measure", "group"]).estimate
    for label in AGE.labels:
        keys = zip(table.scenario, table.measure, strict=True)
        table[label] = [means[(*key, label)] for key in keys]

    has_paid = population.y["recourse/test"].bool().numpy()
    among = {"": np.ones_like(has_paid), ", of those who paid back": has_paid}
    burdens = []
    for ending, is_counted in among.items():
        everyone = {
            label: np.flatnonzero((labels == label) & is_counted) for label in AGE.labels
        }
        asked = []
        for name, in_scenario in chances.items():
            of_sample = Mean.of(answers, MEASURES["cost"], in_scenario)
            cost = burden.spread(of_sample, rows, len(every))
            bearing = burden.Burden(is_refused, cost)
            row = {"scenario": name, "gap": "age"}
            asked += burden.ratios(row, bearing, everyone, pair["age"])
        ratios = answered(asked, everyone, N_RESAMPLES, seed=0)
        ratios = ratios[ratios["part"] != "mean cost"]
        burdens.append(ratios.assign(measure=ratios["part"] + ending))
    result = pd.concat([table, *burdens], ignore_index=True)
    result.insert(0, "people", applicants.heading)
    columns = ["people", "scenario", "measure", "kind", "n_counted", *AGE.labels]
    result[[*columns, "estimate", "low", "high"]].round(4).to_csv(PATH, index=False)


if __name__ == "__main__":
    main()
