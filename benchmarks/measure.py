"""Time and peak memory of fits, searches and answers at the paper's size.

    .venv/bin/python benchmarks/measure.py                       all but the long ones
    .venv/bin/python benchmarks/measure.py oracle_4 recommend_one some of them
    .venv/bin/python benchmarks/measure.py all                   the long ones too

The first takes about a quarter of an hour; the last, with `make reproduce` and `make test`,
two hours. Each piece of work runs in a process of its own. Work of up to half a minute is
done once to warm up, then five times; longer work once. Prints what it measures and puts
it into benchmarks/results.csv, in place of what was there. Needs the committed models, and
for gmsc* the data; changes none of them.
"""

import lib.reproducible

import csv
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lib import checks
from lib.beyond.hare import dialogues
from lib.beyond.hare.draws import streams
from lib.beyond.hare.hare import Simulated
from lib.beyond.hare.spaces import Actions
from lib.beyond.propose import propose, training
from lib.io import MODELS, ROOT
from lib.method import classifier, flow, icarma, loan
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.preferences import GAMMA, Preferences
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.paper import designs, gmsc, readings, stacks, tables
from lib.search.continuous import Search

RESULTS = Path(__file__).parent / "results.csv"
SHORT = 30.0  # seconds up to which work is repeated
REPEATS = 5
SEEDS = [1000 * (i + 1) for i in range(10)]

Task = Callable[[], object]


def gmsc_problem() -> Problem:
    """Return the problem of the real applicants; ValueError without the data."""
    return gmsc.problem(gmsc.applicants("", 120_269, seed=0))


def fit_classifier() -> Task:
    """Prepare the fit of Loan's classifier."""
    return partial(classifier.fit, loan.population())


def fit_flow(n_epochs: int, within: float = np.inf) -> Task:
    """Prepare the fit of Loan's flow, to within so many nats of the committed one.

    Raises: RuntimeError: what is fitted is not as close to it, once it is run.
    """
    population = loan.population()
    x = population.x["flow/train"], population.x["flow/validation"]
    best = flow.CausalFlow.load(MODELS, "loan_flow").log_prob(x[1]).mean()

    def fit() -> None:
        short_of_best = (
            best - flow.fit(population.graph, *x, n_epochs=n_epochs)[1]["validation"].max()
        )
        if short_of_best > within:
            raise RuntimeError(
                f"The flow is {short_of_best:.4f} nats short of the committed one."
            )

    return fit


def fit_networks(stack: stacks.Stack) -> Task:
    """Prepare the fit of a study's ensembles for Loan, of ten seeds."""
    problem = loan.problem()
    by_profile = stack(problem.population.actionable, SEEDS, None)

    def fit() -> None:
        for members in by_profile.values():
            icarma.fit(problem, *members)

    return fit


def fit_gmsc_flow() -> Task:
    """Prepare the fit of the flow of Give Me Some Credit."""
    population = gmsc_problem().population
    x = population.x["flow/train"], population.x["flow/validation"]
    return partial(flow.fit, population.graph, *x, n_epochs=30, **gmsc.FLOW)


def on_test_people(
    n_actionable: int | None = None, n_people: int | None = None
) -> tuple[Problem, Tensor, Preferences]:
    """Return Loan's problem, refused test people and their preferences.

    Arguments:
        n_actionable: How many features are open to each; None: a number drawn for each.
        n_people: How many people, over again if there are not as many; None: all.
    """
    problem = loan.problem()
    x = problem.refused("test")
    x = x if n_people is None else x[np.arange(n_people) % len(x)]
    profile, features = readings.profile("constant"), problem.population.actionable
    sampler = RankingSampler(features, n_actionable=n_actionable, profile=profile)
    return problem, x, sampler.draw(range(len(x)), np.random.default_rng(0))


def table_rows() -> Task:
    """Prepare the exact searches behind the oracle rows of three tables."""
    problem, x, _ = on_test_people()
    soft = designs.soft_preferences(problem, "ranking", len(x), seed=1)

    def search() -> None:
        for name in GAMMA:
            profile = readings.profile(name)
            drawn = {key: p.with_profile(profile) for key, p in soft.items()}
            tables.evaluate(problem, Grid(problem), x, drawn)
        biased = designs.biased_preferences(problem, len(x), seed=1)
        tables.evaluate(problem, Grid(problem), x, biased)
        tables.ablation(problem, x, seed=0)

    return search


def search_grid(n_actionable: int, n_people: int | None = None) -> Task:
    """Prepare the exact search on a grid; arguments as for `on_test_people`."""
    problem, x, preferences = on_test_people(n_actionable, n_people)
    return partial(Grid(problem).recommend, x, preferences)


def search_values(n_people: int | None = None, **effort: Any) -> Task:
    """Prepare the search over all values; arguments as for `on_test_people`.

    Arguments:
        effort: As for `Search`.
    """
    problem, x, _ = on_test_people(n_people=n_people)
    return partial(Search(problem, **effort).table, x)


def one_network(problem: Problem) -> ICarma:
    """Return the first of the committed networks for hard constraints."""
    return ICarma.load(MODELS, "loan_icarma_hard", problem)[0]


def answer(n_people: int | None = None) -> Task:
    """Prepare a network's answers; arguments as for `on_test_people`."""
    problem, x, preferences = on_test_people(n_people=n_people)
    return partial(one_network(problem).recommend, x, preferences)


def fit_proposer() -> Task:
    """Prepare the search of targets and the fit of the proposer, as in notebook 11."""
    problem = loan.problem()

    def fit() -> None:
        targets = training.search_targets(problem)
        training.fit(problem, propose.Settings(), targets=targets)

    return fit


def proposals(n_steps: int, n_people: int) -> Task:
    """Prepare a proposer's answers; arguments as for `on_test_people`."""
    problem, x, preferences = on_test_people(n_people=n_people)
    proposer = propose.Proposer.load(MODELS, "loan_propose", problem)
    return partial(proposer.recommend, x, preferences, n_steps=n_steps)


def ask() -> Task:
    """Prepare dialogues with 100 people who would like a little more of everything."""
    problem, x, preferences = on_test_people(4, 100)
    start = one_network(problem).recommend(x, preferences)
    space, user = Actions(problem, x, preferences), Simulated(x + 1)
    return lambda: dialogues.hold(
        space, start, "remembered, 10", user, streams(len(x), seed=0)
    )


def make(*targets: str) -> Task:
    """Prepare the last of these targets in a clone of HEAD, from an empty pip cache.

    The other targets are made before.
    """
    clone = tempfile.TemporaryDirectory()
    subprocess.run(["git", "clone", "-q", str(ROOT), clone.name], check=True)

    def run(target: str, clone: tempfile.TemporaryDirectory) -> None:
        subprocess.run(
            ["make", target],
            cwd=clone.name,
            env=os.environ | {"PIP_NO_CACHE_DIR": "1"},
            check=True,
            stdout=sys.stderr,
        )

    for target in targets[:-1]:
        run(target, clone)
    return partial(run, targets[-1], clone)


@dataclass(frozen=True)
class Work:
    """Hold a piece of work.

    Arguments:
        title: What it is called in the results.
        prepare: Returns what is timed; takes no part in it.
        to_reach: Seconds that were asked for.
        is_long: Takes many minutes; measured only when it is asked for.
        n_calls: So many calls are one measurement.
    """

    title: str
    prepare: Callable[[], Task]
    to_reach: float | None = None
    is_long: bool = False
    n_calls: int = 1


IN_WORDS = {4: "four features", 3: "three features", 2: "two features", 1: "one feature"}
WORK = {
    "classifier": Work("classifier, 500 epochs", fit_classifier, 12),
    "flow": Work("flow, 300 epochs", partial(fit_flow, 300)),
    "flow_close": Work(
        "flow to within 0.005 nats of its best validation log-likelihood, 130 epochs",
        partial(fit_flow, 130, 0.005),
        10,
    ),
    "icarma": Work("iCARMA, ten seeds", partial(fit_networks, stacks.hard), 100),
    "ranking": Work(
        "thirty ranking networks",
        partial(fit_networks, stacks.STACKS["loan_icarma_ranking"]),
        270,
        is_long=True,
    ),
    "score": Work(
        "forty score networks",
        partial(fit_networks, stacks.STACKS["loan_icarma_score"]),
        360,
        is_long=True,
    ),
    "gmsc_flow": Work("Give Me Some Credit: flow, 30 epochs", fit_gmsc_flow, 180),
    "tables": Work("oracle rows of tables 2, 5 and 6, one process", table_rows, 600),
    **{
        f"oracle_{k}": Work(
            f"oracle, all test people, {what}, 25 values",
            partial(search_grid, k),
            60 if k == 4 else None,
        )
        for k, what in IN_WORDS.items()
    },
    "continuous": Work(
        "continuous search, all test people, all fifteen sets of features",
        search_values,
        60,
    ),
    "continuous_32": Work(
        "continuous search, all test people, 32 scattered actions, one start, ten steps",
        partial(search_values, n_samples=32, n_starts=1),
    ),
    "continuous_8": Work(
        "continuous search, all test people, 8 scattered actions, one start, five steps",
        partial(search_values, n_samples=8, n_starts=1, n_steps=5),
    ),
    "oracle_one": Work(
        "oracle, one person, four features, 25 values",
        partial(search_grid, 4, 1),
        n_calls=20,
    ),
    "continuous_one": Work(
        "continuous search, one person, all fifteen sets of features",
        partial(search_values, 1),
    ),
    "recommend": Work(
        "iCARMA's answer for 100,000 people at once", partial(answer, 100_000), 0.5
    ),
    "recommend_test": Work("iCARMA's answer for all test people at once", answer),
    "recommend_one": Work(
        "iCARMA's answer for one person, mean of 200",
        partial(answer, 1),
        0.001,
        n_calls=200,
    ),
    "proposer": Work("proposer: targets and fit, 450 epochs", fit_proposer, 180),
    "proposals": Work(
        "proposals, verified, 10,000 people", partial(proposals, 0, 10_000), 0.6
    ),
    "proposals_walked": Work(
        "proposals, verified and walked, 10,000 people",
        partial(proposals, propose.N_STEPS, 10_000),
        2.0,
    ),
    "proposals_one": Work(
        "proposals, verified, one person, mean of 20",
        partial(proposals, 0, 1),
        0.005,
        n_calls=20,
    ),
    "proposals_walked_one": Work(
        "proposals, verified and walked, one person, mean of 20",
        partial(proposals, propose.N_STEPS, 1),
        0.005,
        n_calls=20,
    ),
    "dialogue": Work("dialogue of ten remembered questions, 100 people at once", ask),
    "reproduce": Work(
        "make reproduce, from an empty clone", partial(make, "reproduce"), 900, is_long=True
    ),
    "test": Work("make test, installed", partial(make, "setup", "test"), 600, is_long=True),
}


def _seconds(task: Task, n_calls: int) -> float:
    start = time.perf_counter()
    for _ in range(n_calls):
        task()
    return (time.perf_counter() - start) / n_calls


def repeated(task: Task, short: float = SHORT, n_calls: int = 1) -> list[float]:
    """Return the seconds a call of each repeat.

    The first is left out as a warm-up, unless it took too long to be repeated.
    """
    first = _seconds(task, n_calls)
    if first * n_calls > short:
        return [first]
    return [_seconds(task, n_calls) for _ in range(REPEATS)]


def peak_memory() -> float:
    """Return peak memory in MB, of this process or the largest that it has waited for."""
    largest = max(
        resource.getrusage(whose).ru_maxrss
        for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return largest / (1e3 if platform.system() == "Linux" else 1e6)


def measure(name: str) -> None:
    """Do one piece of work; print the seconds of every repeat, then peak memory in MB."""
    print(*repeated(WORK[name].prepare(), n_calls=WORK[name].n_calls), peak_memory())


def in_a_process(script: str, *arguments: object) -> dict[str, Any]:
    """Return what `script --here arguments` measures in a process of its own, as cells."""
    printed = subprocess.run(
        [sys.executable, script, "--here", *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    *seconds, megabytes = map(float, printed.stdout.split())
    shown = {
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "slowest": max(seconds),
    }
    return {key: f"{value:.4g}" for key, value in shown.items()} | {
        "repeats": len(seconds),
        "peak memory (MB)": f"{megabytes:.0f}",
    }


def main(names: list[str]) -> None:
    """Measure these pieces of work and save the results, each as soon as it is known."""
    known: dict[str, dict[str, Any]] = {}
    if RESULTS.exists():
        with open(RESULTS, newline="", encoding="utf-8") as file:
            known = {row["work"]: row for row in csv.DictReader(file)}
    if names in ([], ["all"]):
        names = [name for name, work in WORK.items() if names or not work.is_long]
    checks.one_of("piece of work", names, tuple(WORK))
    for name in names:
        measured = in_a_process(__file__, name)
        to_reach = {"to reach (s)": WORK[name].to_reach or ""}
        title = WORK[name].title
        row: dict[str, Any] = {"work": title} | measured | to_reach
        print(
            f"{row['work']}: {row['seconds']} s ({row['fastest']} to {row['slowest']}, "
            f"{row['repeats']} repeats), {row['peak memory (MB)']} MB",
            flush=True,
        )
        known[title] = row
        in_order = [known[work.title] for work in WORK.values() if work.title in known]
        with open(RESULTS, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, row)
            table.writeheader()
            table.writerows(in_order)


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1:2] == ["--here"] else main(sys.argv[1:])
