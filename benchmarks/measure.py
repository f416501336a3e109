"""Time and peak memory of fits, searches and answers at the paper's size, each in a process of its own.

    .venv/bin/python benchmarks/measure.py                    all but the long ones, about ten minutes
    .venv/bin/python benchmarks/measure.py oracle refine      some of them
    .venv/bin/python benchmarks/measure.py long               the long ones, about an hour

Work that takes up to half a minute is done once to warm up, then five times; longer work once. Prints what it measures and
puts it into benchmarks/results.csv, in place of what was there. Needs the committed models, and for gmsc* the data; changes
none of them.
"""

import csv
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lib  # noqa: F401  (before torch: it pins the arithmetic)

import numpy as np

from lib import checks, classifier, continuous, flow, gmsc, icarma, oracle, populations, studies, training
from lib.paths import inside
from lib.recourse import Problem
from lib.samplers import RankingSampler

RESULTS = Path(__file__).parent / "results.csv"
SHORT = 30.0  # seconds up to which work is repeated
REPEATS = 5
# seconds that were asked for
TO_REACH = {
    "classifier": 12, "flow_close": 10, "icarma": 100, "oracle": 60, "continuous_two": 60, "refine": 5, "recommend": 0.5, "recommend_one": 0.001,
    "gmsc_flow": 180, "gmsc_long": 240,
}
LONG = ("ranking", "score", "gmsc", "gmsc_long")


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


def prepare_flow_close():
    """flow to within 0.005 nats of its best validation log-likelihood, 120 epochs"""
    population = populations.loan()
    x = population.x["flow/train"], population.x["flow/validation"]
    best = flow.CausalFlow.load(inside("models"), "loan_flow").log_prob(x[1]).mean()

    def fit():
        short_of_best = best - flow.fit(population.graph.parents, *x, n_epochs=120)[1]["validation"].max()
        if short_of_best > 0.005:
            raise RuntimeError(f"The flow is {short_of_best:.4f} nats short of the committed one.")

    return fit


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


def _prepare_continuous(n_threads: int):
    problem = loan_problem()
    x = problem.rejected("test")
    return lambda: continuous.search(problem, problem.population.truth, x, n_threads=n_threads)


def prepare_continuous():
    """continuous search, all test people, all fifteen sets of features"""
    return _prepare_continuous(1)


def prepare_continuous_two():
    """continuous search, all test people, all fifteen sets of features, two threads"""
    return _prepare_continuous(2)


def prepare_refine():
    """refinement, all test people, four features"""
    problem = loan_problem()
    one = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem).select([0])
    x = problem.rejected("test")
    wishes = RankingSampler(problem.population.actionable, n_actionable=4).draw(range(len(x)), np.random.default_rng(0))
    advice = one.recommend(x, wishes)[0]
    return lambda: continuous.refine(problem, problem.population.truth, x, wishes, advice)


def _prepare_recommend(n_people: int | None = None):
    problem = loan_problem()
    one = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem).select([0])
    x = problem.rejected("test")
    x = x if n_people is None else x[np.arange(n_people) % len(x)]
    wishes = RankingSampler(problem.population.actionable).draw(range(len(x)), np.random.default_rng(0))
    return lambda: one.recommend(x, wishes)


def prepare_recommend():
    """iCARMA's answer for 100,000 people at once"""
    return _prepare_recommend(100_000)


def prepare_recommend_test():
    """iCARMA's answer for all test people at once"""
    return _prepare_recommend()


def prepare_recommend_one():
    """iCARMA's answer for one person, mean of 200"""
    answer = _prepare_recommend(1)
    return lambda: [answer() for _ in range(200)]


WORK = {name.removeprefix("prepare_"): value for name, value in list(globals().items()) if name.startswith("prepare_")}
CALLS = {"recommend_one": 200}  # of the same kind, in one piece of work


def _seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def repeated(task: Callable[[], object], short: float = SHORT) -> list[float]:
    """Seconds of each repeat; the first is left out as a warm-up, unless it took too long to be repeated."""
    first = _seconds(task)
    return [first] if first > short else [_seconds(task) for _ in range(REPEATS)]


def peak_memory() -> float:
    """Of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e3 if platform.system() == "Linux" else 1e6)


def measure(name: str) -> None:
    """Print the seconds of every repeat of one piece of work, then peak memory in MB, in this process."""
    print(*(own / CALLS.get(name, 1) for own in repeated(WORK[name]())), peak_memory())


def in_a_process(script: str, *arguments: object) -> dict[str, str | int]:
    """What `script --here arguments` measures in a process of its own, as cells of a table."""
    answer = subprocess.run([sys.executable, script, "--here", *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    *seconds, megabytes = map(float, answer.stdout.split())
    shown = {"seconds": statistics.median(seconds), "fastest": min(seconds), "slowest": max(seconds)}
    return {key: f"{value:.4g}" for key, value in shown.items()} | {"repeats": len(seconds), "peak memory (MB)": f"{megabytes:.0f}"}


def main(names: list[str]) -> None:
    known = {}
    if RESULTS.exists():
        with open(RESULTS, newline="", encoding="utf-8") as file:
            known = {row["work"]: row for row in csv.DictReader(file)}
    if names == ["long"]:
        names = list(LONG)
    checks.known("piece of work", names, tuple(WORK))
    for name in names or [name for name in WORK if name not in LONG]:
        row = {"work": WORK[name].__doc__} | in_a_process(__file__, name) | {"to reach (s)": TO_REACH.get(name, "")}
        print("{work}: {seconds} s ({fastest} to {slowest}, {repeats} repeats), {peak memory (MB)} MB".format(**row), flush=True)
        known[row["work"]] = row
        in_order = [known[prepare.__doc__] for prepare in WORK.values() if prepare.__doc__ in known]
        with open(RESULTS, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, row)
            table.writeheader()
            table.writerows(in_order)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--here"] else main(sys.argv[1:])
