"""Train and measure the networks of one part of a sweep; called by sweep.smk.

`python workflow/seeds.py OUTPUTS SETTING FIRST`
"""

import lib.pinned

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import plans
import torch
from jobs import noted
from lifeline import end_with_batch
from only import only_job
from parameters import ROOT
from sweep import NAMED, made_with, values_of

from lib.base import files, progress
from lib.method import loan, training
from lib.method.problem import Problem
from lib.paper import stacks, tuning

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
    own = plan["settings"][int(setting)]
    with noted(folder, name), only_job(folder, name):
        found = measured(loan.problem(), own, seeds, name, partial)
        files.write(part, found.to_csv(index=False, float_format="%.9g"))
        shutil.rmtree(partial, ignore_errors=True)


def measured(
    problem: Problem,
    setting: Mapping[str, Any],
    seeds: Sequence[int],
    name: str = "",
    checkpoint: Path | None = None,
) -> pd.DataFrame:
    """Train networks of one setting, and return what validation people show of each.

    Arguments:
        problem: Of the people.
        setting: A row of a table of trials, as params/trials_ranking.csv
            has them.
        seeds: One a network.
        name: For the bar.
        checkpoint: As for `training.fit`.
    Returns: A row a network: elicitation, profile, trial, seed, and the shares and
        means of `tuning.SUMMARISED`.

    Example:
        >>> from lib.base.files import PARAMS
        >>> row = pd.read_csv(PARAMS / "trials_ranking.csv").iloc[0]
        >>> measured(loan.problem(), {**row, "n_epochs": 1}, [1000, 2000]).seed.tolist()
        [1000, 2000]
    """
    own = stacks.soft_settings(values_of(setting), setting["profile"])
    features, elicitation = problem.population.actionable, setting["elicitation"]
    sampler = stacks.soft_samplers(features, elicitation)[stacks.MIXED]
    trained, _ = training.fit(
        problem, sampler, own, seeds, progress.bar(name), checkpoint=checkpoint
    )
    x, asked = problem.refused("validation"), tuning.judged_by(problem, elicitation)
    recommended = problem.carried_out(x, trained.recommend(x, asked))
    no_cost_known = torch.full((len(x),), torch.inf)
    rows = []
    for i, seed in enumerate(seeds):
        shown = tuning.measure(
            problem, x, asked, recommended[i], own.profile, no_cost_known
        )
        row = {name: setting[name] for name in NAMED}
        row["seed"] = seed
        rows.append(row | {key: shown[key] for key in tuning.SUMMARISED})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    end_with_batch()
    main(*sys.argv[1:])
