"""Time and peak memory of the fits and the search at the paper's size, each in a process of its own.

    .venv/bin/python benchmarks/measure.py            all of them
    .venv/bin/python benchmarks/measure.py oracle     one of them

Prints what it measures and puts it into benchmarks/results.csv, in place of what was there. Needs the committed models, and
for gmsc* the data; changes none of them.
"""

import csv
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import lib  # noqa: F401  (before torch: it pins the arithmetic)

import numpy as np

from lib import classifier, continuous, flow, gmsc, icarma, oracle, populations, studies, training
from lib.paths import inside
from lib.recourse import Problem
from lib.samplers import RankingSampler

RESULTS = Path(__file__).parent / "results.csv"


def loan_problem() -> Problem:
    h = classifier.Classifier.load(inside("models"), "loan_classifier")
    return Problem(populations.loan(), h, flow.CausalFlow.load(inside("models"), "loan_flow"))


def prepare_classifier():
    """classifier, 500 epochs"""
    population = populations.loan()
    x, y = population.x["classifier/train"], population.y["classifier/train"]
    return lambda: classifier.fit(population.features, x, y)


def prepare_flow():
    """flow, 300 epochs"""
    population = populations.loan()
    return lambda: flow.fit(population.graph.parents, population.x["flow/train"], population.x["flow/validation"])


def prepare_icarma():
    """iCARMA, ten seeds, 450 epochs"""
    problem = loan_problem()
    samplers = [RankingSampler(problem.population.actionable)] * 10
    return lambda: icarma.fit(problem, samplers, [icarma.Settings()] * 10, [1000 * (i + 1) for i in range(10)])


def _prepare_stack(name: str, n_epochs: int):
    problem = loan_problem()
    seeds = [1000 * (i + 1) for i in range(10)]
    members = training.STACKS[name](problem.population.actionable, seeds, n_epochs)
    return lambda: icarma.fit(problem, *members)


def prepare_ranking():
    """forty ranking networks, 450 epochs"""
    return _prepare_stack("loan_icarma_ranking", 450)


def prepare_score():
    """forty score networks, 900 epochs"""
    return _prepare_stack("loan_icarma_score", 900)


def gmsc_problem() -> Problem:
    people, _ = gmsc.applicants("", 120_269, seed=0)
    population = populations.give_me_some_credit(people, gmsc.edges())
    h = classifier.Classifier.load(inside("models"), "gmsc_classifier")
    return Problem(population, h, flow.CausalFlow.load(inside("models"), "gmsc_flow"))


def prepare_gmsc_flow():
    """Give Me Some Credit: flow, 30 epochs"""
    population = gmsc_problem().population
    x = population.x["flow/train"], population.x["flow/validation"]
    return lambda: flow.fit(population.graph.parents, *x, n_epochs=30, **training.GMSC_FLOW)


def _prepare_gmsc(n_epochs: int):
    problem = gmsc_problem()
    samplers, settings, seeds = training.transfer(problem.population.actionable, [1000 * (i + 1) for i in range(10)], n_epochs)
    return lambda: icarma.fit(problem, samplers[:10], settings[:10], seeds[:10])


def prepare_gmsc():
    """Give Me Some Credit: ten networks, 100 epochs"""
    return _prepare_gmsc(100)


def prepare_gmsc_long():
    """Give Me Some Credit: ten networks, 400 epochs"""
    return _prepare_gmsc(400)


def prepare_tables():
    """oracle rows of tables 2, 5 and 6, one process"""
    problem = loan_problem()
    x = problem.rejected("test")

    def search():
        studies.soft_search(problem, x, seed=0)
        studies.search(problem, x, studies.biased_preferences(problem, len(x), seed=1))
        studies.ablation(problem, x, seed=0)

    return search


def prepare_oracle():
    """oracle, all test people, four features, 25 values"""
    problem = loan_problem()
    x = problem.rejected("test")
    sampler = RankingSampler(problem.population.actionable, n_actionable=4)
    wishes = sampler.draw(range(len(x)), np.random.default_rng(0))
    return lambda: oracle.search(problem, problem.population.graph, x, wishes)


def prepare_continuous():
    """continuous search, all test people, all fifteen sets of features"""
    problem = loan_problem()
    x = problem.rejected("test")
    return lambda: continuous.search(problem, problem.population.truth, x)


def prepare_refine():
    """refinement, all test people, four features"""
    problem = loan_problem()
    one = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem).select([0])
    x = problem.rejected("test")
    wishes = RankingSampler(problem.population.actionable, n_actionable=4).draw(range(len(x)), np.random.default_rng(0))
    advice = one.recommend(x, wishes)[0]
    return lambda: continuous.refine(problem, problem.population.truth, x, wishes, advice)


def prepare_recommend():
    """iCARMA, one seed, all test people (mean of 20 calls)"""
    problem = loan_problem()
    stack = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem)
    one = stack.select([0])
    x = problem.rejected("test")
    wishes = RankingSampler(problem.population.actionable).draw(range(len(x)), np.random.default_rng(0))
    return lambda: [one.recommend(x, wishes) for _ in range(20)]


WORK = {name.removeprefix("prepare_"): value for name, value in list(globals().items()) if name.startswith("prepare_")}


def measure(name: str) -> None:
    """Print seconds and peak memory in MB of one piece of work, in this process."""
    task = WORK[name]()
    if name == "recommend":
        task()  # warm up
    start = time.perf_counter()
    task()
    seconds = (time.perf_counter() - start) / (20 if name == "recommend" else 1)
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e3 if platform.system() == "Linux" else 1e6))


def main(names: list[str]) -> None:
    with open(RESULTS, newline="", encoding="utf-8") as file:
        known = {row["work"]: row for row in csv.DictReader(file)}
    for name in names or WORK:
        answer = subprocess.run([sys.executable, __file__, "--here", name], check=True, capture_output=True, text=True)
        seconds, megabytes = map(float, answer.stdout.split())
        row = {"work": WORK[name].__doc__, "seconds": f"{seconds:.4g}", "peak memory (MB)": f"{megabytes:.0f}"}
        print("{work}: {seconds} s, {peak memory (MB)} MB".format(**row), flush=True)
        known[row["work"]] = row
    in_order = [known[prepare.__doc__] for prepare in WORK.values() if prepare.__doc__ in known]
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, in_order[0])
        table.writeheader()
        table.writerows(in_order)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--here"] else main(sys.argv[1:])
