"""Fit flows that a study compares with the one at hand; called by the Snakefile.

`python workflow/other_flows.py SIZE JOB`

JOB is gmsc_other_flows (notebook 07: Give Me Some Credit under other
graphs) or loan_other_flows (notebook 11: the flow of notebook 02,
refitted to people drawn anew). params/SIZE/run.yaml and networks.yaml
say how many people and epochs, and in which folder models lie.
"""

import lib.reproducible

from collections.abc import Mapping
from typing import Any

import fitting
import numpy as np
import torch
from jobs import run
from parameters import read_parameters

from lib import io
from lib.io import inside
from lib.method import flow, loan
from lib.paper import gmsc

# flows of other shapes, whose corners are not where ours are
SHAPES = tuple(
    (activation, width) for activation in ("relu", "tanh") for width in (8, 16, 32)
)


def loan_other_flows(given: Mapping[str, Any], name: str) -> None:
    """Save flows of the Loan population, each fitted to its own resample of the people.

    A resample has as many people as the split flow/train, drawn from
    it with replacement. For some flows all else is as notebook 02
    fits its flow: the graph, the settings (those that `flow.fit` has
    by itself), the people of validation, and the epochs, which are
    read from that notebook's file of parameters. The others have
    `SHAPES` of their own.

    Arguments:
        given: As `read_network_parameters` returns it, with the size.
        name: Of the file.
    """
    drawn = fitting.drawn(given)
    population = loan.population(**drawn)
    n_epochs = read_parameters(given["size"], "02_causal_flow")["n_epochs"]
    x = population.x["flow/train"]
    settings: dict[str, dict[str, Any]] = {
        f"resampled {i + 1}": {} for i in range(given["n_refits"])
    } | {
        f"{activation} {width}": {"hidden": (width,), "activation": activation}
        for activation, width in SHAPES
    }
    flows = {}
    for i, (key, how) in enumerate(settings.items(), start=1):
        rows = np.random.default_rng([drawn["seed"], i]).integers(len(x), size=len(x))
        flows[key], history = flow.fit(
            population.graph,
            x[torch.from_numpy(rows)],
            population.x["flow/validation"],
            n_epochs=n_epochs,
            seed=drawn["seed"] + i,
            progress=io.progress_bar(f"{name}, {key}"),
            **how,
        )
        print(f"{key}: {history['validation'].max():.3f} nats", flush=True)
    made_with = drawn | {"n_epochs": n_epochs}
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


def gmsc_other_flows(given: Mapping[str, Any], name: str) -> None:
    """Save a flow for each graph of params/gmsc_graphs.yaml, all in one file.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    people, made_with = fitting.applicants(given)
    population = gmsc.population(people, given["seed"])
    flows = {
        key: fitting.credit_flow(
            population,
            graph,
            given["n_epochs"][name],
            given["seed"] + i,
            f"{name}, {key}",
        )
        for i, (key, graph) in enumerate(gmsc.graphs().items(), start=1)
    }
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


JOBS = {"gmsc_other_flows": gmsc_other_flows, "loan_other_flows": loan_other_flows}


if __name__ == "__main__":
    run(JOBS)
