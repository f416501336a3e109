"""What a proposer's network adds to a walk, and what both add to a search, at every effort.

    .venv/bin/python benchmarks/walks.py      five minutes on an idle core

Refused validation people of Loan are answered by the search, by the search cut short in
three ways, by the committed proposer without a walk and with walks of several efforts, and
by the same walks without a network (`WithoutNetwork`), which begin at people's own values.
Rows "no rescue" leave out the second round, for people without an answer. In the setting
"random" a number of features is drawn for each person that they may act on; in "all (4)"
everything is open, so that the search, which answers for every set, does nothing that
nobody asked for. One process, one thread, all people at once; solvers take turns, so that a
busy machine slows all of them. The result is benchmarks/walks.csv: share helped by the
flow, mean cost beside the search's on people whom both help, and the median microseconds of
processor time a person. By these rows notebook 11 chooses the two walks without a network
that it shows; its times are theirs.
"""

import lib.pinned

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from lib.base.files import MODELS
from lib.beyond.propose.propose import Proposer, Walk, WithoutNetwork
from lib.method import icarma, loan, metrics
from lib.method.problem import Recommendation
from lib.paper import designs
from lib.search.continuous import Search

PATH = Path(__file__).with_suffix(".csv")
# the search cut short, and how many steps its descents have
SHORT: dict[str, Any] = {"n_scouts": 8, "n_starts": 1}
SHORT_STEPS = (2, 3, 5)
EFFORTS = [Walk(n_sets, n_steps) for n_sets in (4, 8, 15) for n_steps in (3, 5, 7, 10, 15)]
FEWER = [Walk(n_sets, n_steps) for n_sets in (4, 8) for n_steps in (5, 7, 10)]
REPEATS = {"random": 5, "all (4)": 3}

Key = tuple[str, str, int, int]  # setting, solver, sets, steps
Answers = dict[Key, Callable[[], Recommendation]]
problem = loan.problem(MODELS)
x = problem.refused("validation")
asked = designs.hard_preferences(problem, len(x), seed=0)
proposer = Proposer.load(MODELS, "loan_propose", problem)
alone = WithoutNetwork(problem, proposer.sets)
first = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem).select([0])


def searched(setting: str, **effort: Any) -> Recommendation:
    """Return what a search of all sets finds for everybody."""
    search = Search(problem, problem.flow, **effort)
    return search.recommend(x, asked[setting], search.table(x))


def answers_in(setting: str) -> Answers:
    """Return the solvers that are timed in a setting, each ready to answer."""
    own = asked[setting]
    answers: Answers = {(setting, "search", 0, 0): partial(searched, setting)}
    for n in SHORT_STEPS:
        short = partial(searched, setting, n_steps=n, **SHORT)
        answers[setting, "search, cut short", 15, n] = short
    answers[setting, "iCARMA", 0, 0] = lambda: first.recommend(x, own)[0]
    still = partial(proposer.recommend, x, own, walk=None)
    answers[setting, "proposer, no walk", 0, 0] = still
    for who, solver in (("walk alone", alone), ("proposer", proposer)):
        for walk in EFFORTS if setting == "random" else FEWER:
            at = walk.n_sets, walk.n_steps
            answers[setting, who, *at] = partial(solver.recommend, x, own, walk=walk)
            if setting == "random" and walk in FEWER:
                once = replace(walk, has_rescue=False)
                name = f"{who}, no rescue"
                answers[setting, name, *at] = partial(solver.recommend, x, own, walk=once)
    return answers


def main() -> None:
    """Answer everybody, in turns, and save."""
    rows = []
    for setting, n_repeats in REPEATS.items():
        answers, own = answers_in(setting), asked[setting]
        seconds: dict[Key, list[float]] = {key: [] for key in answers}
        people = {}
        for _ in range(n_repeats):
            for key, answer in answers.items():
                start = process_time()
                found = answer()
                seconds[key].append(process_time() - start)
                if key not in people:
                    people[key] = metrics.per_person(problem, x, own, found)
        best = people[setting, "search", 0, 0]
        for key, mine in people.items():
            both = best.joint & mine.joint
            rows.append(
                dict(zip(("setting", "solver", "sets", "steps"), key, strict=True))
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
