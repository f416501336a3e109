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
from lib.paper import calibration, choosing, gmsc, readings, stacks

N_APPLICANTS = 120_269  # all of the cleaned data of Give Me Some Credit
# of the search that networks are compared with: splines take their time
EFFORT = {"n_samples": 64, "n_starts": 3}
MAX_VALIDATION = 1_000  # refused validation people at most


def main(search: str, folder: Path) -> None:
    """Choose the settings of a search, for both profiles, and save them."""
    problem = problem_of(search)
    n_people = min(MAX_VALIDATION, len(problem.refused("validation")))
    path = folder / f"chosen_{search}.yaml"
    table = folder / f"chosen_{search}_trials.csv"
    known = path.is_file() and table.is_file()
    chosen = dict(io.load_yaml(path)) if known else {}
    trials = [pd.read_csv(table)] if known else []
    for name in [profile for profile in readings.CHOSEN if profile not in chosen]:
        profile = readings.profile(name, stacks.ASKED[search])
        features = problem.population.actionable
        samplers = stacks.soft_samplers(features, stacks.ASKED[search], profile)
        sampler = samplers[stacks.MIXED]
        preferences = sampler.draw(range(n_people), np.random.default_rng(0))
        bar = io.progress_bar(f"{search}, {name}: validation people")
        validation = choosing.Validation.of(problem, preferences, bar, **EFFORT)
        bar = io.progress_bar(f"{search}, {name}")
        as_printed = readings.as_printed(search, name)
        best, tried = choosing.search(validation, sampler, as_printed, bar)
        chosen[name] = dataclasses.asdict(best)
        trials.append(tried.assign(search=search, profile=name))
        print(tried[tried["round"] == tried["round"].max()].to_string(), flush=True)
        path.write_text(yaml.safe_dump(chosen, sort_keys=False))
        pd.concat(trials).round(6).to_csv(table, index=False)


def problem_of(search: str) -> Problem:
    """Return the problem of a search."""
    if search == "transfer":
        return gmsc.problem(gmsc.applicants("", N_APPLICANTS, 0))
    population, how = loan.population(), readings.calibrated()["classifier"]
    flow = CausalFlow.load(MODELS, "loan_flow", population.fingerprint)
    return calibration.fit_problem(population, flow, 0, **how)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else PARAMS)
