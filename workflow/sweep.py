"""Train networks of many seeds at many settings, and measure each: `make sweep`.

`python workflow/sweep.py params/sweep.yaml` (or a file of yours with its
names; `--profile slurm` for a cluster) leaves networks.csv in the
folder of outputs: a row a network, with its candidate (of
`choosing.candidates`; 0 is as printed) and seed, and what its
recommendations come to for refused validation people of Loan. An
interrupted sweep goes on with the parts that are missing. The networks
themselves are not kept: the same file makes the same ones again.
"""

import lib.pinned

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import plans
from parameters import ROOT
from reproduce import run_of_its_own, run_rules

from lib.base import checks, files, tables
from lib.paper import choosing, readings, stacks

MODELS = ("loan_classifier", "loan_flow")  # that networks are trained through


def sweep(parameters: Path, given: Mapping[str, Any], profile: str) -> None:
    """Leave the plan, run the parts that are missing, and print the summary.

    Arguments:
        parameters: File.
        given: What it says, as `read_run_parameters` reads it.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: the settings are unknown, the folder has
        another plan, or a job failed.
    """
    outputs = given["outputs"]
    plans.leave(plan(given), ROOT / outputs, "parts")
    config, folder = f"outputs={outputs}", ROOT / outputs
    run_rules("workflow/sweep.smk", config, folder, profile=profile)
    table = tables.read(ROOT / outputs / "networks.csv")
    summary = table.groupby("candidate")["joint"].describe().round(3)
    print(f"\nValid and plausible ({outputs}/networks.csv):\n\n{summary.to_string()}")


def plan(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what jobs read: the settings, and the parts in their order.

    Arguments:
        given: As `read_run_parameters` returns it.
    Raises: ValueError: the search or the profile is unknown, or there
        are fewer candidates.

    Example:
        >>> given = {"search": "ranking", "profile": "linear", "n_settings": 2}
        >>> made = plan(given | {"n_seeds": 100, "n_per_job": 40, "outputs": "runs/sweep"})
        >>> made["parts"], made["settings"][0]["tau"]
        (['0_0', '0_40', '0_80', '1_0', '1_40', '1_80'], 0.36)
    """
    search, n_settings, n_seeds = given["search"], given["n_settings"], given["n_seeds"]
    checks.known("search", [search], stacks.ELICITATIONS)
    every = choosing.candidates(readings.as_printed(search, given["profile"]))
    if len(every) < n_settings:
        raise ValueError(f"There are {len(every)} candidates, expected {n_settings}.")
    return {
        "search": search,
        "settings": [asdict(own) for own in every[:n_settings]],
        "n_seeds": n_seeds,
        "n_per_job": given["n_per_job"],
        "parts": [
            f"{setting}_{first}"
            for setting in range(n_settings)
            for first in range(0, n_seeds, given["n_per_job"])
        ],
        **made_with(),
    }


def made_with() -> dict[str, Any]:
    """Return the models, code and versions that networks are trained with."""
    models = [files.MODELS / f"{name}{files.ENDING}" for name in MODELS]
    return plans.made_with("workflow/seeds.py", models)


if __name__ == "__main__":
    run_of_its_own(__doc__, "sweep", sweep)
