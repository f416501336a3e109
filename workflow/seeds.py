"""Train and measure the networks of one part of a sweep; called by sweep.smk.

`python workflow/seeds.py OUTPUTS SETTING FIRST`
"""

import lib.pinned

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plans
from jobs import noted
from lifeline import end_with_batch
from only import only_job
from parameters import ROOT
from sweep import made_with

from lib.base import files, progress
from lib.method import loan, metrics, training
from lib.method.icarma import Settings
from lib.method.problem import Problem
from lib.paper import stacks

# with the same seeds as the stacks of the studies
SEED_STEP = 1000


def main(outputs: str, setting: str, first: str) -> None:
    """Leave the rows of one part in the folder parts of the outputs.

    How far the training is lies in the folder partial until then.
    """
    folder, name = ROOT / outputs, f"{setting}_{first}"
    part, partial = folder / "parts" / f"{name}.csv", folder / "partial" / name
    plan = plans.read(folder)
    plans.check_same(made_with(), folder)
    last = min(int(first) + plan["n_per_job"], plan["n_seeds"])
    seeds = [SEED_STEP * (i + 1) for i in range(int(first), last)]
    own = files.rebuilt(Settings, plan["settings"][int(setting)])
    with noted(folder, name), only_job(folder, name):
        found = measured(loan.problem(), plan["search"], own, seeds, name, partial)
        found.insert(0, "candidate", int(setting))
        files.write(part, found.to_csv(index=False, float_format="%.9g"))
        shutil.rmtree(partial, ignore_errors=True)


def measured(
    problem: Problem,
    search: str,
    settings: Settings,
    seeds: Sequence[int],
    name: str = "",
    checkpoint: Path | None = None,
) -> pd.DataFrame:
    """Train networks of one setting, and return what validation people show of each.

    Arguments:
        problem: Of the people.
        search: How they are asked: "ranking" or "score".
        settings: Of the networks.
        seeds: One a network.
        name: For the bar.
        checkpoint: As for `training.fit`.
    Returns: A row a network: seed, and the columns of
        `metrics.summarise`.

    Example:
        >>> measured(problem, "score", Settings(n_epochs=1), [1000, 2000]).seed.tolist()
        [1000, 2000]
    """
    sampler = stacks.soft_samplers(problem.population.actionable, search)[stacks.MIXED]
    trained, _ = training.fit(
        problem, sampler, settings, seeds, progress.bar(name), checkpoint=checkpoint
    )
    x = problem.refused("validation")
    asked = sampler.draw(range(len(x)), np.random.default_rng(0))
    recommended = problem.carried_out(x, trained.recommend(x, asked))
    people = [
        metrics.per_person(problem, x, asked, recommended[i]).assign(seed=seed)
        for i, seed in enumerate(seeds)
    ]
    return metrics.summarise(pd.concat(people), ["seed"])


if __name__ == "__main__":
    end_with_batch()
    main(*sys.argv[1:])
