"""Choose settings by our rule, which can't see what the paper reports.

    python workflow/choose.py ranking
    python workflow/choose.py score
    python workflow/choose.py transfer    Give Me Some Credit; needs its data

The rule and the space stand in lib/paper/choosing.py. Beside
models and people only params/calibrated.yaml is read: the bank, and the
settings as printed, which are the first candidate.
chosen_<search>.yaml (what was chosen, for the constant and the linear
profile) and chosen_<search>_trials.csv (all that was tried) are written
to params, or to the folder that the command line names second, after
each profile. A profile that is there already is not searched again;
remove the two files to begin anew.
"""

import lib.reproducible

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from lib import io
from lib.io import MODELS, PARAMS
from lib.method import loan
from lib.method.flow import CausalFlow
from lib.method.problem import Problem
from lib.method.samplers import Sampler
from lib.paper import calibration, choosing, gmsc, readings, stacks

N_APPLICANTS = 120_269  # all of the cleaned data of Give Me Some Credit
# of a search by which networks are judged: splines take their time
EFFORT = {"n_scouts": 64, "n_starts": 3}
MOST_JUDGES = 1_000


def main(search: str, folder: Path) -> None:
    """Choose the settings of a search, for both profiles, and save them."""
    as_printed = {name: readings.as_printed(search, name) for name in readings.CHOSEN}
    problem, sampler = people(search)
    n_people = min(MOST_JUDGES, len(problem.refused("validation")))
    preferences = sampler.draw(range(n_people), np.random.default_rng(0))
    path = folder / f"chosen_{search}.yaml"
    table = folder / f"chosen_{search}_trials.csv"
    known = path.is_file() and table.is_file()
    chosen = dict(io.load_yaml(path)) if known else {}
    trials = [pd.read_csv(table)] if known else []
    for name in [own for own in readings.CHOSEN if own not in chosen]:
        bar = io.progress_bar(f"{search}, {name}: who judges")
        profile = as_printed[name].profile
        judges = choosing.Judges.of(problem, preferences, profile, bar, **EFFORT)
        bar = io.progress_bar(f"{search}, {name}")
        best, tried = choosing.search(problem, sampler, judges, as_printed[name], bar)
        chosen[name] = dataclasses.asdict(best)
        trials.append(tried.assign(search=search, profile=name))
        print(tried[tried["round"] == tried["round"].max()].to_string(), flush=True)
        path.write_text(yaml.safe_dump(chosen, sort_keys=False))
        pd.concat(trials).round(6).to_csv(table, index=False)


def people(search: str) -> tuple[Problem, Sampler]:
    """Return the problem of a search, and how preferences are drawn in training."""
    if search == "transfer":
        problem = gmsc.problem(gmsc.applicants("", N_APPLICANTS, 0))
    else:
        population, how = loan.population(), readings.calibrated()["classifier"]
        flow = CausalFlow.load(MODELS, "loan_flow", population.fingerprint)
        problem = calibration.bank(population, flow, 0, **how)
    how = stacks.soft_samplers(problem.population.actionable, stacks.ASKED[search])
    return problem, how[stacks.MIXED]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else PARAMS)
