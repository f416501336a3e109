"""What a proposer's network adds to a walk, and what both add to a search, at every effort.

    .venv/bin/python benchmarks/walks.py      three minutes on an idle core

Refused validation people of Loan, for each of whom a number of features is drawn that they
may act on, are answered by the search, by the search cut short, by the committed proposer
without a walk and with walks of several efforts, and by the same walks without a network:
with all weights zero they begin at today's values. One process, one thread, all people at
once; solvers take turns, so that a busy machine slows all of them. The result is
benchmarks/walks.csv: share helped by the flow, mean cost beside the search's on people whom
both help, and the median microseconds of processor time a person. By these rows notebook 11
chooses the two walks without a network that it shows; its times are theirs.
"""

import lib.pinned

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import torch

from lib.base.files import MODELS
from lib.beyond.propose.propose import Proposer, Walk
from lib.method import icarma, loan, metrics
from lib.method.problem import Recommendation
from lib.paper import designs
from lib.search.continuous import Search

PATH = Path(__file__).with_suffix(".csv")
SHORT = {"n_scouts": 8, "n_starts": 1, "n_steps": 5}  # the search cut short
EFFORTS = [Walk(n_sets, n_steps) for n_sets in (4, 8, 15) for n_steps in (3, 5, 7, 10, 15)]
REPEATS = 5

Answer = Callable[[], Recommendation]


def main() -> None:
    """Answer everybody, in turns, and save."""
    problem = loan.problem(MODELS)
    proposer = Proposer.load(MODELS, "loan_propose", problem)
    zeros = {name: torch.zeros_like(part) for name, part in proposer.weights.items()}
    alone = Proposer(problem, proposer.settings, proposer.sets, zeros)
    networks = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem)
    first = networks.select([0])
    rows = []
    x = problem.refused("validation")
    own = designs.hard_preferences(problem, len(x), seed=0)["random"]

    def searched(**effort: Any) -> Recommendation:
        search = Search(problem, problem.flow, **effort)
        return search.recommend(x, own, search.table(x))

    answers: dict[tuple[str, int, int], Answer] = {
        ("search", 0, 0): searched,
        ("search, cut short", 0, 0): lambda: searched(**SHORT),
        ("iCARMA", 0, 0): lambda: first.recommend(x, own)[0],
        ("proposer, no walk", 0, 0): lambda: proposer.recommend(x, own, walk=None),
    }
    for who, solver in (("walk alone", alone), ("proposer", proposer)):
        for walk in EFFORTS:
            own_answer = partial(solver.recommend, x, own, walk=walk)
            answers[who, walk.n_sets, walk.n_steps] = own_answer
    seconds: dict[tuple[str, int, int], list[float]] = {key: [] for key in answers}
    found = {}
    for _ in range(REPEATS):
        for key, answer in answers.items():
            start = process_time()
            found[key] = answer()
            seconds[key].append(process_time() - start)
    best = metrics.per_person(problem, x, own, found["search", 0, 0])
    for key, r in found.items():
        mine = metrics.per_person(problem, x, own, r)
        both = best.joint & mine.joint
        rows.append(
            dict(zip(("solver", "sets", "steps"), key, strict=True))
            | {"joint": mine.joint.mean()}
            | {"cost ratio": mine.cost[both].mean() / best.cost[both].mean()}
            | {"microseconds": 1e6 * float(np.median(seconds[key])) / len(x)}
        )
        print(rows[-1], flush=True)
    pd.DataFrame(rows).round({"joint": 4, "cost ratio": 4, "microseconds": 1}).to_csv(
        PATH, index=False
    )


if __name__ == "__main__":
    main()
