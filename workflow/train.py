"""Fit what the batch fits outside of notebooks; called by the Snakefile.

`python workflow/train.py SIZE JOB`

JOB is a stack of networks of the study of soft preferences (notebook
05), or gmsc_icarma (the scaler, the classifier, the flow and the
networks of notebook 07), or gmsc_other_flows (flows under other
graphs), or loan_other_flows (the flow of notebook 02, refitted to
people drawn anew), or proposers of notebook 11 (loan_propose,
loan_propose_others, gmsc_propose). params/SIZE/run.yaml and networks.yaml say how
many people, seeds and epochs, and in which folder models lie. A job
saves what it fits there, and the file of its own name last. Stopped
and started again, it goes on where it was, fit by fit.
"""

import lib.pinned

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jobs import run
from parameters import read_parameters

from lib.base import files, progress
from lib.base.files import inside
from lib.beyond.propose import propose, teaching
from lib.method import classifier, flow, loan, training
from lib.method.population import Population
from lib.method.problem import Problem
from lib.method.world import Graph
from lib.paper import gmsc, stacks

# flows of other shapes, whose corners are not where ours are
SHAPES = tuple(
    (activation, width) for activation in ("relu", "tanh") for width in (8, 16, 32)
)
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


def loan_networks(given: Mapping[str, Any], name: str) -> None:
    """Save a stack of networks for the Loan population.

    Its classifier and its flow are fitted by notebooks 01 and 02, and
    are loaded here.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the stack, one of `stacks.STACKS`.
    """
    drawn = _drawn(given)
    problem = loan.problem(inside(given["models"]), **drawn)
    _save_networks(problem, stacks.STACKS[name], given, name, drawn)


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
    drawn = _drawn(given)
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
    for i, (key, own) in enumerate(settings.items(), start=1):
        rows = np.random.default_rng([drawn["seed"], i]).integers(len(x), size=len(x))
        flows[key], history = flow.fit(
            population.graph,
            x[torch.from_numpy(rows)],
            population.x["flow/validation"],
            n_epochs=n_epochs,
            seed=drawn["seed"] + i,
            progress=progress.bar(f"{name}, {key}"),
            checkpoint=given["partial"] / key,
            **own,
        )
        print(f"{key}: {history['validation'].max():.3f} nats", flush=True)
    made_with = drawn | {"n_epochs": n_epochs}
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


def loan_propose(given: Mapping[str, Any], name: str) -> None:
    """Save the proposer of notebook 11, and the terms of its loss by epoch beside it.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    drawn, n_epochs = _drawn(given), given["n_epochs"][name]
    folder, partial = inside(given["models"]), given["partial"]
    problem = loan.problem(folder, **drawn)
    lessons = teaching.searched(
        problem,
        given["n_lessons"],
        seed=drawn["seed"],
        progress=progress.bar("lessons"),
        checkpoint=partial,
    )
    fitted, history = teaching.fit(
        problem,
        propose.Settings(n_epochs=n_epochs),
        drawn["seed"],
        lessons,
        progress=progress.bar(name),
        checkpoint=partial,
    )
    by_epoch = pd.DataFrame(history).rename_axis("epoch")
    files.write(folder / f"{name}_history.csv", by_epoch.to_csv(float_format="%.6g"))
    made_with = {"seed": drawn["seed"], "n_epochs": n_epochs}
    fitted.save(folder, name, made_with)


def loan_propose_others(given: Mapping[str, Any], name: str) -> None:
    """Save the proposers that notebook 11 compares, each with a part left out.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    drawn, n_epochs = _drawn(given), given["n_epochs"][name]
    problem = loan.problem(inside(given["models"]), **drawn)
    lessons = teaching.searched(
        problem, given["n_lessons"], seed=drawn["seed"], checkpoint=given["partial"]
    )
    fitted = {}
    for key, (seed, n_people, weights) in PROPOSERS.items():
        taught = None if n_people == 0 else lessons[:n_people]
        fitted[key], _ = teaching.fit(
            problem,
            propose.Settings(n_epochs=n_epochs, **weights),
            drawn["seed"] + seed,
            taught,
            progress=progress.bar(f"{name}, {key}"),
            checkpoint=given["partial"] / key,
        )
    made_with = drawn | {"n_epochs": n_epochs, "n_lessons": len(lessons)}
    propose.save_all(fitted, inside(given["models"]), name, made_with)


def gmsc_propose(given: Mapping[str, Any], name: str) -> None:
    """Save a proposer for Give Me Some Credit, trained through the flow alone.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    found, made_with = _applicants(given)
    problem = gmsc.problem(found, inside(given["models"]), given["seed"])
    n_epochs = given["n_epochs"][name]
    fitted, _ = teaching.fit(
        problem,
        propose.Settings(n_epochs=n_epochs, **stacks.GMSC_PROPOSE),
        given["seed"],
        progress=progress.bar(name),
        checkpoint=given["partial"],
    )
    fitted.save(inside(given["models"]), name, made_with | {"n_epochs": n_epochs})


def _drawn(given: Mapping[str, Any]) -> dict[str, int]:
    """Return how many people the Loan population has, and its seed."""
    return {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}


def gmsc_networks(given: Mapping[str, Any], name: str) -> None:
    """Save the scaler, the classifier, the flow and the networks for Give Me Some Credit.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the stack of networks.
    """
    found, made_with = _applicants(given)
    population = gmsc.population(found, given["seed"])
    models, epochs, seed = inside(given["models"]), given["n_epochs"], given["seed"]
    scaler = {
        "mean": population.mean,
        "std": population.std,
        "weight": torch.tensor(stacks.GMSC_CLASSIFIER["weight_of_refusable"]),
    }
    settings, fingerprint = {"people": made_with["people"]}, population.fingerprint
    files.save(models, "gmsc_scaler", scaler, settings, made_with, fingerprint)
    h, _ = classifier.fit(
        population,
        n_epochs=epochs["gmsc_classifier"],
        seed=seed,
        progress=progress.bar("gmsc_classifier"),
        checkpoint=given["partial"],
        **stacks.GMSC_CLASSIFIER,
    )
    h.save(models, "gmsc_classifier", made_with, fingerprint)
    density = _flow(
        population,
        population.graph,
        epochs["gmsc_flow"],
        seed,
        "gmsc_flow",
        given["partial"],
    )
    density.save(models, "gmsc_flow", made_with, fingerprint)
    problem = Problem(population, h, density)
    _save_networks(problem, stacks.transfer, given, name, made_with)


def gmsc_other_flows(given: Mapping[str, Any], name: str) -> None:
    """Save a flow for each graph of params/gmsc_graphs.yaml, all in one file.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file.
    """
    found, made_with = _applicants(given)
    population = gmsc.population(found, given["seed"])
    flows = {
        key: _flow(
            population,
            graph,
            given["n_epochs"][name],
            given["seed"] + i,
            f"{name}, {key}",
            given["partial"] / key,
        )
        for i, (key, graph) in enumerate(gmsc.graphs().items(), start=1)
    }
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


def _applicants(given: Mapping[str, Any]) -> tuple[gmsc.Applicants, dict[str, Any]]:
    """Return the applicants of Give Me Some Credit, and what models are made with."""
    n_people, seed = given["n_applicants"], given["seed"]
    found = gmsc.applicants("", n_people, seed, or_stand_in=True)
    print(found.heading, flush=True)
    made_with = {
        "people": "real" if found.is_real else "synthetic",
        "n_people": len(found.people),
        "seed": seed,
    }
    return found, made_with


def _flow(
    population: Population,
    graph: Graph,
    n_epochs: int,
    seed: int,
    name: str,
    partial: Path,
) -> flow.CausalFlow:
    """Return a flow that is fitted to a population under a graph; print how well.

    Arguments:
        name: Of the bar, and in what is printed.
        partial: The folder for how far the fit is.
    """
    fitted, history = flow.fit(
        graph,
        population.x["flow/train"],
        population.x["flow/validation"],
        n_epochs=n_epochs,
        seed=seed,
        progress=progress.bar(name),
        checkpoint=partial,
        **stacks.GMSC_FLOW,
    )
    print(f"{name}: {history['validation'].max():.3f} nats a validation person", flush=True)
    return fitted


def _save_networks(
    problem: Problem,
    stack: stacks.Stack,
    given: Mapping[str, Any],
    name: str,
    made_with: Mapping[str, Any],
) -> None:
    """Save the networks of a stack, fitted with the seeds 1000, 2000, ..."""
    seeds = [1000 * (i + 1) for i in range(given["n_seeds"])]
    members = stack(problem.population.actionable, seeds, given["n_epochs"].get(name))
    print(f"{name}: {len(members[2])} networks", flush=True)
    fitted, _ = training.fit(
        problem, *members, progress=progress.bar(name), checkpoint=given["partial"]
    )
    fitted.save(inside(given["models"]), name, made_with)


JOBS = dict.fromkeys(stacks.STACKS, loan_networks) | {
    "gmsc_icarma": gmsc_networks,
    "gmsc_other_flows": gmsc_other_flows,
    "loan_propose": loan_propose,
    "loan_propose_others": loan_propose_others,
    "gmsc_propose": gmsc_propose,
    "loan_other_flows": loan_other_flows,
}


if __name__ == "__main__":
    run(JOBS)
