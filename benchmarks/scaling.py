"""How cost grows with the number of people, of features and of networks in a stack.

    .venv/bin/python benchmarks/scaling.py            what is not in benchmarks/scaling.csv yet, about a quarter of an hour
    .venv/bin/python benchmarks/scaling.py draw       the figure alone

People are Loan's refused test people, repeated. Features are those of one linear-Gaussian model a size, drawn at random, with
classifier and flow fitted briefly. Every point is a process of its own; a row is written as soon as it is known. Work of up to
five seconds is done once to warm up and five times to be timed, longer work once. Seconds are "per" all people, one person or
one training step; peak memory includes imports and preparation, about 375 MB. Batches are large enough for overhead to be
small: some 4,000 pairs of a person and a set for the search over all values, 10,000 people for the networks. Left out are
points that would take more than a few minutes, or more than a million actions a person on the grid.
"""

import lib.pinned

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from measure import in_a_process, peak_memory, repeated
from scipy import stats

from lib.base.files import inside
from lib.causal import flow, scm
from lib.preferences.samplers import RankingSampler
from lib.problem import classifier, loan
from lib.problem.population import Population
from lib.problem.recourse import Problem
from lib.solvers import continuous, grid, icarma
from lib.studies import plots

RESULTS = Path(__file__).with_suffix(".csv")
GRID = 5  # values a feature where features are many
EPOCHS = 4
MANY = [(d, k) for d in (5, 10, 20, 50) for k in (2, 4, 6, 8) if k < d]
POINTS = [  # study, work, people or networks, features, those that are actionable
    *(("people", "answer", n, 7, 4) for n in (1_000, 10_000, 100_000, 1_000_000)),
    *(("people", "refinement", n, 7, 4) for n in (1_000, 10_000, 100_000)),
    *(("people", "grid", n, 7, 4) for n in (1_000, 10_000)),
    *(("people", "continuous", n, 7, 4) for n in (1_000, 5_000)),
    *(("features", "answer", 10_000, d, k) for d, k in MANY),
    *(("features", "training", 10, d, k) for d, k in MANY),
    *(("features", "continuous", 4_080 // (2**k - 1), d, k) for d, k in MANY),
    *(("features", "grid", 64, d, k) for d, k in MANY if k <= 6),
    *(("stack", "training", n, 7, 4) for n in (1, 2, 5, 10, 20, 40, 80)),
]
COLUMNS = [
    "study",
    "work",
    "n",
    "features",
    "actionable",
    "per",
    "seconds",
    "fastest",
    "slowest",
    "peak memory (MB)",
]


def linear_gaussian(n_features: int, n_actionable: int, seed: int = 0) -> Problem:
    """A random linear-Gaussian model with up to three causes a feature, and who decides and what is plausible in it."""
    rng = np.random.default_rng(seed)
    equations = {}
    for j in range(n_features):
        causes = tuple(
            f"x{i}"
            for i in sorted(rng.choice(j, min(j, int(rng.integers(1, 4))), replace=False))
        )
        weights = dict(zip(causes, rng.uniform(-0.8, 0.8, len(causes)), strict=True))
        equations[f"x{j}"] = scm.additive(
            causes, lambda pa, w=weights: sum(w[i] * pa[i] for i in w), stats.norm(0, 1)
        )
    model = scm.SCM(equations)
    x = model.sample(12_000, rng)
    mean, std = x.mean(0), x.std(0)
    x = ((x - mean) / std).float()
    acts = np.linspace(0, n_features - 1, n_actionable).round().astype(int)
    score = x[:, acts].sum(-1) + 0.5 * torch.from_numpy(rng.normal(size=len(x))).float()
    parts = {
        "classifier/train": slice(0, 4_000),
        "flow/train": slice(4_000, 7_000),
        "flow/validation": slice(7_000, 8_000),
        "recourse/train": slice(8_000, 10_000),
        "recourse/validation": slice(10_000, 11_000),
        "recourse/test": slice(11_000, 12_000),
    }
    kinds = {
        name: "actionable" if j in acts else "mutable" for j, name in enumerate(equations)
    }
    population = Population(
        "linear-Gaussian",
        kinds,
        model.graph,
        mean,
        std,
        {name: x[rows] for name, rows in parts.items()},
        {name: score[rows] >= 0.5 for name, rows in parts.items()},
        truth=model.standardised(mean, std),
    )
    given = population.x
    h, _ = classifier.fit(
        population,
        n_epochs=20,
    )
    density, _ = flow.fit(
        population.graph, given["flow/train"], given["flow/validation"], n_epochs=10
    )
    return Problem(population, h, density)


def task_of(
    study: str, work: str, n: int, n_features: int, n_actionable: int
) -> tuple[Callable[[], object], float]:
    """What is timed, and by what its seconds are divided."""
    problem = (
        linear_gaussian(n_features, n_actionable) if study == "features" else loan.problem()
    )
    sampler = RankingSampler(problem.population.actionable, n_actionable=n_actionable)
    if work == "training":
        n_steps = EPOCHS * (len(problem.refused("train")) // 128)
        return lambda: icarma.fit(
            problem, [sampler] * n, [icarma.Settings(n_epochs=EPOCHS)] * n, range(n)
        ), n_steps
    if study == "people":
        one = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem).select([0])
    else:
        one, _ = icarma.fit(problem, [sampler], [icarma.Settings(n_epochs=2)], [0])
    x = problem.refused("test")
    x = x[np.arange(n) % len(x)]
    wishes, world = (
        sampler.draw(range(n), np.random.default_rng(0)),
        problem.population.truth,
    )
    per = n if study == "features" else 1
    if work == "answer":
        return lambda: one.recommend(x, wishes), per
    if work == "continuous":
        return lambda: continuous.search(problem, world, x), per
    if work == "grid":
        return lambda: grid.search(
            problem, world, x, wishes, n_values=25 if study == "people" else GRID
        ), per
    advice = one.recommend(x, wishes)[0]
    return lambda: continuous.refine(problem, world, x, wishes, advice), per


def measure_all() -> None:
    done = set()
    if RESULTS.exists():
        done = {
            tuple(row)
            for row in pd.read_csv(RESULTS)[COLUMNS[:5]].astype(str).itertuples(index=False)
        }
    for point in POINTS:
        if tuple(map(str, point)) in done:
            continue
        per = (
            "step"
            if point[1] == "training"
            else "person"
            if point[0] == "features"
            else "all"
        )
        row = dict(zip(COLUMNS, [*point, per], strict=False)) | in_a_process(
            __file__, *point
        )
        is_new = not RESULTS.exists()
        with open(RESULTS, "a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            if is_new:
                table.writeheader()
            table.writerow(row)
        print(*row.values(), flush=True)


def draw() -> None:
    plots.use_style()
    table = pd.read_csv(RESULTS)
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4))
    table["seconds"] = table.fastest  # on a machine that others share
    looks = {
        "grid": (plots.COLOURS["oracle"], "s"),
        "continuous": (plots.COLOURS["truth"], "^"),
        "refinement": (plots.COLOURS["flow"], "D"),
        "answer": (plots.COLOURS["icarma"], "o"),
    }
    people = table[table.study == "people"]
    for work, (colour, marker) in looks.items():
        own = people[people.work == work]
        axes[0].loglog(
            own.n,
            own.seconds,
            marker=marker,
            color=colour,
            label={"answer": "iCARMA", "grid": "grid, 25 values"}.get(work, work),
        )
    axes[0].set(title="Seconds for so many people at once", xlabel="people")
    axes[0].legend()
    features = table[table.study == "features"]
    shades = {5: "#9ecae1", 10: "#6baed6", 20: "#2171b5", 50: "#08306b"}
    for n_features, shade in shades.items():
        for work, line in (("continuous", "-"), ("grid", ":"), ("answer", "--")):
            own = features[(features.features == n_features) & (features.work == work)]
            axes[1].semilogy(
                own.actionable,
                1e3 * own.seconds,
                line,
                marker=looks[work][1],
                color=shade,
                markersize=4,
            )
        own = features[(features.features == n_features) & (features.work == "training")]
        axes[2].plot(
            own.actionable,
            1e3 * own.seconds,
            marker="o",
            color=shade,
            label=f"{n_features} features",
        )
    for work, line in (("grid", ":"), ("continuous", "-"), ("answer", "--")):
        axes[1].plot(
            [],
            [],
            line,
            marker=looks[work][1],
            color="#555555",
            label={"answer": "iCARMA", "grid": f"grid, {GRID} values"}.get(work, work),
        )
    axes[1].set(
        title="Milliseconds a person (shades as on the right)",
        xlabel="actionable features",
        xticks=[2, 4, 6, 8],
    )
    axes[1].legend()
    axes[2].set(
        title="Milliseconds a training step, ten networks",
        xlabel="actionable features",
        xticks=[2, 4, 6, 8],
        ylim=(0, None),
    )
    axes[2].legend()
    stack = table[table.study == "stack"]
    axes[3].loglog(
        stack.n, 1e3 * stack.seconds, marker="o", color="#0072B2", label="the stack"
    )
    axes[3].loglog(
        stack.n,
        1e3 * stack.seconds / stack.n,
        marker="o",
        mfc="white",
        color="#0072B2",
        ls="--",
        label="one of its networks",
    )
    axes[3].set(
        title="Milliseconds a training step",
        xlabel="networks in the stack",
        xticks=stack.n,
        xticklabels=stack.n,
    )
    axes[3].minorticks_off()
    axes[3].legend()
    plots.save(figure, inside("figures"), "scaling")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        study, work, *numbers = sys.argv[2:]
        task, per = task_of(study, work, *map(int, numbers))
        print(*(own / per for own in repeated(task, short=5.0)), peak_memory())
    else:
        if sys.argv[1:] != ["draw"]:
            measure_all()
        draw()
