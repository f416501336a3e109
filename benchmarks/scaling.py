"""How cost grows with the number of people, of features and of members of an ensemble.

    .venv/bin/python benchmarks/scaling.py         what is not in benchmarks/scaling.csv yet
    .venv/bin/python benchmarks/scaling.py draw    the figure alone

The first takes about a quarter of an hour. People are Loan's refused test people,
repeated. Features are those of one linear-Gaussian model a size, drawn at random, with
classifier and flow fitted briefly. Every point is a process of its own; a row is written
as soon as it is known. Work of up to five seconds is done once to warm up and five times
to be timed, longer work once. Seconds are "per" all people, one person or one training
step; peak memory includes imports and preparation, about 375 MB. Batches are large enough
for overhead to be small: some 4,000 pairs of a person and a set for the search over all
values, 10,000 people for the networks. Left out are points that would take more than a
few minutes, or more than a million actions a person on the grid.
"""

import lib.reproducible

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from measure import in_a_process, peak_memory, repeated
from scipy import stats
from torch import Tensor

from lib.io import MODELS, inside
from lib.method import classifier, flow, icarma, loan, scm
from lib.method.data import Population
from lib.method.grid import Grid
from lib.method.icarma import ICarma, Settings
from lib.method.problem import PrecomputedSolver, Problem
from lib.method.samplers import RankingSampler
from lib.paper import readings
from lib.paper.pictures import plots
from lib.search.continuous import Refined, Search

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
LOOKS = {  # colour and marker of each kind of work
    "grid": (plots.COLOURS["oracle"], "s"),
    "continuous": (plots.COLOURS["truth"], "^"),
    "refinement": (plots.COLOURS["flow"], "D"),
    "answer": (plots.COLOURS["icarma"], "o"),
}
STYLES = {"continuous": "-", "grid": ":", "answer": "--"}
SHADES = {5: "#9ecae1", 10: "#6baed6", 20: "#2171b5", 50: "#08306b"}


def random_model(n_features: int, rng: np.random.Generator) -> scm.SCM:
    """Return a random linear-Gaussian model with up to three causes a feature."""
    equations = {}
    for j in range(n_features):
        n_causes = min(j, int(rng.integers(1, 4)))
        causes = tuple(f"x{i}" for i in sorted(rng.choice(j, n_causes, replace=False)))
        weights = dict(zip(causes, rng.uniform(-0.8, 0.8, len(causes)), strict=True))
        equations[f"x{j}"] = scm.additive(causes, weighted_sum(weights), stats.norm(0, 1))
    return scm.SCM(equations)


def weighted_sum(weights: dict[str, float]) -> Callable[[scm.Parents], Tensor | float]:
    """Return a mechanism: the sum of a feature's causes with these weights."""
    return lambda causes: sum(weight * causes[name] for name, weight in weights.items())


def linear_gaussian(n_features: int, n_actionable: int, seed: int = 0) -> Problem:
    """Return a problem of a random linear-Gaussian model, with what is fitted to it."""
    rng = np.random.default_rng(seed)
    model = random_model(n_features, rng)
    x = model.sample(12_000, rng)
    mean, std = x.mean(0), x.std(0)
    x = ((x - mean) / std).float()
    acts = np.linspace(0, n_features - 1, n_actionable).round().astype(int)
    score = x[:, acts].sum(-1) + 0.5 * torch.from_numpy(rng.normal(size=len(x))).float()
    splits = {
        "classifier/train": slice(0, 4_000),
        "flow/train": slice(4_000, 7_000),
        "flow/validation": slice(7_000, 8_000),
        "recourse/train": slice(8_000, 10_000),
        "recourse/validation": slice(10_000, 11_000),
        "recourse/test": slice(11_000, 12_000),
    }
    kinds = {
        name: "actionable" if j in acts else "mutable"
        for j, name in enumerate(model.features)
    }
    population = Population(
        "linear-Gaussian",
        kinds,
        model.graph,
        mean,
        std,
        {name: x[rows] for name, rows in splits.items()},
        {name: score[rows] >= 0.5 for name, rows in splits.items()},
        truth=model.standardised(mean, std),
    )
    h, _ = classifier.fit(population, n_epochs=20)
    of_flow = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *of_flow, n_epochs=10)
    return Problem(population, h, density)


def task_of(
    study: str, work: str, n: int, n_features: int, n_actionable: int
) -> tuple[Callable[[], object], float]:
    """Return what is timed, and by what its seconds are divided."""
    problem = (
        linear_gaussian(n_features, n_actionable) if study == "features" else loan.problem()
    )
    profile, features = readings.profile("constant"), problem.population.actionable
    sampler = RankingSampler(features, n_actionable=n_actionable, profile=profile)
    if work == "training":
        n_steps = EPOCHS * (len(problem.refused("train")) // 128)
        settings = Settings(n_epochs=EPOCHS)
        return lambda: icarma.fit(problem, sampler, settings, range(n)), n_steps
    if study == "people":
        network = ICarma.load(MODELS, "loan_icarma_hard", problem)[0]
    else:
        network, _ = icarma.fit(problem, sampler, Settings(n_epochs=2))
    x = problem.refused("test")
    x = x[np.arange(n) % len(x)]
    preferences = sampler.draw(range(n), np.random.default_rng(0))
    per = n if study == "features" else 1
    if work == "answer":
        return lambda: network.recommend(x, preferences), per
    if work == "continuous":
        return lambda: Search(problem).table(x), per
    if work == "grid":
        solver = Grid(problem, n_values=25 if study == "people" else GRID)
        return lambda: solver.recommend(x, preferences), per
    start = PrecomputedSolver(network.recommend(x, preferences))
    return lambda: Refined(start, problem).recommend(x, preferences), per


def measure_all() -> None:
    """Measure the points that are not in the file yet, and add them to the file."""
    done = set()
    if RESULTS.exists():
        done = {
            tuple(row)
            for row in pd.read_csv(RESULTS)[COLUMNS[:5]].astype(str).itertuples(index=False)
        }
    for point in POINTS:
        if tuple(map(str, point)) in done:
            continue
        per = "person" if point[0] == "features" else "all"
        per = "step" if point[1] == "training" else per
        measured = in_a_process(__file__, *point)
        row = dict(zip(COLUMNS, [*point, per], strict=False)) | measured
        is_new = not RESULTS.exists()
        with open(RESULTS, "a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            if is_new:
                table.writeheader()
            table.writerow(row)
        print(*row.values(), flush=True)


def draw() -> None:
    """Draw the figure of what is in the file."""
    plots.use_style()
    table = pd.read_csv(RESULTS)
    table["seconds"] = table.fastest  # on a machine that others share
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4))
    _draw_people(axes[0], table[table.study == "people"])
    _draw_features(axes[1], axes[2], table[table.study == "features"])
    _draw_stack(axes[3], table[table.study == "stack"])
    plots.save(figure, inside("figures"), "scaling")


def _draw_people(ax: Axes, people: pd.DataFrame) -> None:
    """Draw seconds by the number of people."""
    names = {"answer": "iCARMA", "grid": "grid, 25 values"}
    for work, (colour, marker) in LOOKS.items():
        rows = people[people.work == work]
        label = names.get(work, work)
        ax.loglog(rows.n, rows.seconds, marker=marker, color=colour, label=label)
    ax.set(title="Seconds for so many people at once", xlabel="people")
    ax.legend()


def _draw_features(ax: Axes, in_training: Axes, features: pd.DataFrame) -> None:
    """Draw milliseconds by the number of features: of an answer, and of a training step."""
    for n_features, shade in SHADES.items():
        same_size = features[features.features == n_features]
        for work, line in STYLES.items():
            rows = same_size[same_size.work == work]
            at, marker = (rows.actionable, 1e3 * rows.seconds), LOOKS[work][1]
            ax.semilogy(*at, line, marker=marker, color=shade, markersize=4)
        rows = same_size[same_size.work == "training"]
        at, label = (rows.actionable, 1e3 * rows.seconds), f"{n_features} features"
        in_training.plot(*at, marker="o", color=shade, label=label)
    names = {"answer": "iCARMA", "grid": f"grid, {GRID} values"}
    for work in ("grid", "continuous", "answer"):
        marker, label = LOOKS[work][1], names.get(work, work)
        ax.plot([], [], STYLES[work], marker=marker, color="#555555", label=label)
    for axes, title in (
        (ax, "Milliseconds a person (shades as on the right)"),
        (in_training, "Milliseconds a training step, ten networks"),
    ):
        axes.set(title=title, xlabel="actionable features", xticks=[2, 4, 6, 8])
    in_training.set(ylim=(0, None))
    ax.legend()
    in_training.legend()


def _draw_stack(ax: Axes, stack: pd.DataFrame) -> None:
    """Draw milliseconds by the number of members of an ensemble."""
    whole, look = 1e3 * stack.seconds, {"marker": "o", "color": "#0072B2"}
    ax.loglog(stack.n, whole, label="the ensemble", **look)
    dashed = {"mfc": "white", "ls": "--", "label": "one member"}
    ax.loglog(stack.n, whole / stack.n, **look, **dashed)
    ax.set(title="Milliseconds a training step", xlabel="members of the ensemble")
    ax.set(xticks=stack.n, xticklabels=stack.n)
    ax.minorticks_off()
    ax.legend()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        study, work, *numbers = sys.argv[2:]
        task, per = task_of(study, work, *map(int, numbers))
        print(*(seconds / per for seconds in repeated(task, short=5.0)), peak_memory())
    else:
        if sys.argv[1:] != ["draw"]:
            measure_all()
        draw()
