"""Train networks of many seeds at many settings, and measure each: `make sweep`.

`python workflow/sweep.py params/sweep.yaml` (or a file of yours with its
names; `--profile slurm` for a cluster) leaves networks.csv in the
folder of outputs: a row a network, with its elicitation, profile, trial and
seed, and what its recommendations come to for refused validation people of Loan
(`tuning.SUMMARISED`). An interrupted sweep goes on with the parts that
are missing. The networks themselves are not kept: the same file makes
the same ones again.
"""

import lib.pinned

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plans
from parameters import ROOT
from reproduce import run_of_its_own, run_rules

from lib.base import checks, files, tables
from lib.paper import stacks, tuning

ELICITATIONS = ("ranking", "score")
NAMED = ("elicitation", "profile", "trial")  # columns of settings beside `tuning.SPACE`
MODELS = ("loan_classifier", "loan_flow")  # that networks are trained through


def sweep(parameters: Path, given: Mapping[str, Any], profile: str) -> None:
    """Leave the plan, run the parts that are missing, and print the summary.

    Arguments:
        parameters: File.
        given: What it says, as `read_run_parameters` reads it.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: the table of settings does not fit, the folder
        has another plan, or a job failed.
    """
    outputs = given["outputs"]
    plans.leave(plan(given), ROOT / outputs, "parts")
    config, folder = f"outputs={outputs}", ROOT / outputs
    run_rules("workflow/sweep.smk", config, folder, profile=profile)
    table = tables.read(ROOT / outputs / "networks.csv")
    summary = table.groupby(list(NAMED))["joint"].describe().round(3)
    print(f"\nValid and plausible ({outputs}/networks.csv):\n\n{summary.to_string()}")


def plan(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what jobs read: the settings, and the parts in the order of the table.

    Arguments:
        given: As `read_run_parameters` returns it.
    Raises: ValueError: the table of settings lacks a column or rows.

    Example:
        >>> given = {"settings": "params/trials_ranking.csv", "n_settings": 2}
        >>> made = plan(given | {"n_seeds": 100, "n_per_job": 40, "outputs": "runs/sweep"})
        >>> made["parts"]
        ['0_0', '0_40', '0_80', '1_0', '1_40', '1_80']
    """
    where = ROOT / given["settings"]
    columns = [*NAMED, *tuning.SPACE]
    table = tables.read(where, columns)[columns]
    n_settings, n_seeds = given["n_settings"], given["n_seeds"]
    if len(table) < n_settings:
        raise ValueError(f"{where} has {len(table)} rows, expected {n_settings} settings.")
    for number, row in enumerate(table.head(n_settings).to_dict("records"), start=1):
        with files.in_file(where, f"Look at row {number}."):
            checks.known("elicitation", [row["elicitation"]], ELICITATIONS)
            stacks.soft_settings(values_of(row), row["profile"])
    return {
        "settings": table.head(n_settings).to_dict("records"),
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


def values_of(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row of a table of trials, for `stacks.soft_settings`.

    Raises: ValueError: one is no number, or no whole number of epochs.

    Example:
        >>> row = dict.fromkeys(tuning.SPACE, "0.1") | {"n_epochs": "100.0"}
        >>> values_of(row)["n_epochs"], values_of(row)["mask"]
        (100, 0.1)
    """
    values: dict[str, Any] = {key: float(setting[key]) for key in tuning.SPACE}
    if not values["n_epochs"].is_integer():
        raise ValueError(f"n_epochs is {values['n_epochs']}, expected a whole number.")
    return values | {"n_epochs": int(values["n_epochs"])}


if __name__ == "__main__":
    run_of_its_own(__doc__, "sweep", sweep)
