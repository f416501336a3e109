"""Train the proposers of notebook 11; called by the Snakefile.

`python workflow/proposers.py SIZE JOB`

JOB is loan_propose, loan_propose_others (each with a part left out) or
gmsc_propose. params/SIZE/run.yaml and networks.yaml say how many
people, targets and epochs, and in which folder models lie.
"""

import lib.reproducible

from collections.abc import Mapping
from typing import Any

import fitting
from jobs import run

from lib import io
from lib.beyond.propose import propose, training
from lib.io import inside
from lib.method import loan
from lib.paper import gmsc

# by name: the seed, how many people the search answered (None: all that it did), and
# weights of the loss that differ
PROPOSERS: dict[str, tuple[int, int | None, dict[str, Any]]] = {
    "both": (0, None, {}),
    "both, seed 1": (1, None, {}),
    "both, seed 2": (2, None, {}),
    "both, 256 people": (0, 256, {}),
    "both, 1,024 people": (0, 1024, {}),
    "flow alone": (0, 0, {}),
    "search alone": (0, None, dict.fromkeys(propose.TERMS[:4], 0.0)),
}


def loan_propose(given: Mapping[str, Any], name: str) -> None:
    """Save the proposer of notebook 11, and the terms of its loss by epoch beside it.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    drawn, n_epochs = fitting.drawn(given), given["n_epochs"][name]
    folder = inside(given["models"])
    problem = loan.problem(folder, **drawn)
    targets = training.search_targets(problem, given["n_lessons"], seed=drawn["seed"])
    fitted, history = training.fit(
        problem,
        propose.Settings(n_epochs=n_epochs),
        drawn["seed"],
        targets,
        progress=io.progress_bar(name),
    )
    io.write(folder / f"{name}_history.csv", history.to_csv(float_format="%.6g"))
    made_with = {"seed": drawn["seed"], "n_epochs": n_epochs}
    fitted.save(folder, name, made_with)


def loan_propose_others(given: Mapping[str, Any], name: str) -> None:
    """Save the proposers that notebook 11 compares, each with a part left out.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    drawn, n_epochs = fitting.drawn(given), given["n_epochs"][name]
    problem = loan.problem(inside(given["models"]), **drawn)
    targets = training.search_targets(problem, given["n_lessons"], seed=drawn["seed"])
    fitted = {}
    for key, (seed, n_people, weights) in PROPOSERS.items():
        fitted[key], _ = training.fit(
            problem,
            propose.Settings(n_epochs=n_epochs, **weights),
            drawn["seed"] + seed,
            None if n_people == 0 else targets[:n_people],
            progress=io.progress_bar(f"{name}, {key}"),
        )
    made_with = drawn | {"n_epochs": n_epochs, "n_lessons": len(targets)}
    propose.save_all(fitted, inside(given["models"]), name, made_with)


def gmsc_propose(given: Mapping[str, Any], name: str) -> None:
    """Save a proposer for Give Me Some Credit, trained through the flow alone.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    people, made_with = fitting.applicants(given)
    problem = gmsc.problem(people, inside(given["models"]), given["seed"])
    n_epochs = given["n_epochs"][name]
    fitted, _ = training.fit(
        problem,
        propose.Settings(n_epochs=n_epochs, **training.GMSC_SETTINGS),
        given["seed"],
        progress=io.progress_bar(name),
    )
    fitted.save(inside(given["models"]), name, made_with | {"n_epochs": n_epochs})


JOBS = {
    "loan_propose": loan_propose,
    "loan_propose_others": loan_propose_others,
    "gmsc_propose": gmsc_propose,
}


if __name__ == "__main__":
    run(JOBS)
