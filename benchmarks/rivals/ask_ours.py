"""This repository's solvers, CARMA, and the generators that the HARE paper begins at.

The last four know nothing of causes; for each person, what they may not set is immutable.
"""

import lib.reproducible

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from task import Task, Together, run
from torch import Tensor

from lib.beyond.hare import autoencoders, generators
from lib.beyond.hare.draws import streams
from lib.beyond.hare.tabular import Tabular
from lib.io import MODELS
from lib.method.classifier import Classifier
from lib.method.grid import Grid
from lib.method.icarma import ICarma, load_by_profile
from lib.method.problem import Solver
from lib.search.continuous import Search

sys.path.insert(0, str(Path(__file__).parents[1]))
import rivals

CHOSEN = {"Loan": "loan_chosen_ranking", "GMSC": "gmsc_chosen"}
MARGIN, SLACK = 0.1, -0.05  # log-odds and nats, as notebook 11 chooses


def prepare(task: Task, method: str, seed: int) -> Together:
    """Return the answers of one of ours; of an ensemble, the member with the seed."""
    asked = rivals.PROBLEMS[task.name]()
    if method in BASES:
        return rebuilt(task, asked, BASES[method], seed)
    solver = solver_of(asked, task.name, method, seed)
    population = asked.problem.population
    names = [f"sets {name}" for name in population.actionable]

    def answer(people: pd.DataFrame) -> pd.DataFrame:
        rows = people.index.to_list()
        x = asked.x[rows]
        recommendation = solver.recommend(x, asked.preferences[rows])
        recommendation = asked.problem.discretise(x, recommendation)
        profiles = population.to_records(recommendation.x_cf).numpy()
        is_acted = recommendation.is_acted[:, population.actionable_index].numpy()
        both = np.concatenate([profiles, is_acted], axis=1)
        table = pd.DataFrame(both, people.index, [*population.features, *names])
        table[~recommendation.has_recourse.numpy()] = np.nan
        return table

    return answer


def solver_of(asked: "rivals.Asked", name: str, method: str, seed: int) -> Solver:
    """Return a solver of the method by its name."""
    problem = asked.problem
    if method == "search":
        return Search(problem, problem.flow)
    if method == "search, margin":
        return Search(problem, problem.flow, margin=MARGIN, slack=SLACK)
    if method == "grid":
        return Grid(problem, problem.flow)
    if method == "iCARMA as printed" and name == "Loan":
        return ICarma.load(MODELS, "loan_icarma_hard", problem)[seed]
    files = {"iCARMA as printed": "gmsc_icarma", "CARMA": "loan_carma"}
    file = files.get(method, CHOSEN[name])
    return load_by_profile(MODELS, file, problem)["constant"][seed]


Base = Callable[[Tabular, Classifier, Tensor, dict, int], Tensor]
BASES: dict[str, Base] = {
    "Wachter": lambda table, h, x, _, seed: generators.wachter(table, h, x),
    "growing spheres": lambda table, h, x, _, seed: generators.growing_spheres(
        table, h, x, streams(len(x), seed)
    ),
    "FACE": lambda table, h, x, _, seed: generators.face(
        table, h, x, np.random.default_rng(seed)
    ),
    "C-CHVAE": lambda table, h, x, kept, seed: generators.cchvae(
        table, h, x, kept["model"], streams(len(x), seed)
    ),
}


def rebuilt(task: Task, asked: "rivals.Asked", base: Base, seed: int) -> Together:
    """Return the answers of a base generator, over features between 0 and 1."""
    problem, population = asked.problem, asked.problem.population
    features = tuple(population.features)
    low, high = (end.double() for end in (population.low, population.high))

    def scaled(x: Tensor) -> Tensor:
        return ((x.double() - low) / (high - low)).clamp(0, 1)

    def logit(r: Tensor) -> Tensor:
        return problem.log_odds((low + r * (high - low)).to(problem.flow.dtype)).double()

    x = {
        name: population.x[f"recourse/{name}"][: rivals.N_TRAIN]
        for name in ("train", "test")
    }
    is_number = torch.tensor(
        [len(x["train"][:, j].unique()) > 2 for j in range(len(features))]
    )
    fixed = torch.tensor([name not in population.actionable for name in features])
    people = {name: scaled(rows) for name, rows in x.items()}
    labels = {name: problem.accepts(rows) for name, rows in x.items()}
    table = Tabular(task.name, features, is_number, fixed, low, high, people, labels)
    h, kept = Classifier(features, logit), {}
    if base is BASES["C-CHVAE"]:
        kept["model"], _ = autoencoders.fit(table, "CCHVAE", seed)

    def answer(people: pd.DataFrame) -> pd.DataFrame:
        answers = []
        may = task.low.loc[people.index] < task.high.loc[people.index]
        for open_to, group in people.groupby([may[name] for name in task.actionable]):
            free = [
                name
                for name, is_open in zip(task.actionable, open_to, strict=True)
                if is_open
            ]
            if not free:
                continue
            is_fixed = torch.tensor([name not in free for name in features])
            x = asked.x[group.index.to_list()]
            now = scaled(x)
            r = base(replace(table, is_immutable=is_fixed), h, now, kept, seed)
            moved = population.inverse_transform(low + r * (high - low))
            profiles = torch.where(r == now, population.to_records(x), moved).numpy()
            answers.append(pd.DataFrame(profiles, group.index, features))
        return pd.concat(answers).reindex(people.index)

    return answer


run(prepare, at_once=True)
