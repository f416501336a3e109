"""Fit what the batch fits outside of notebooks; called by the Snakefile.

`python workflow/train.py SIZE JOB`

JOB is a stack of networks of the study of soft preferences (notebook
05), or gmsc_icarma (the scaler, the classifier, the flow and the
networks of notebook 07), or gmsc_other_flows (flows under other
graphs), or hare or gmsc_hare (what notebook 09 starts from, and the
tables of the HARE paper). params/SIZE/run.yaml and networks.yaml say how many people,
seeds and epochs, and in which folder models lie. A job saves what it
fits there, and the file of its own name last.
"""

import lib.pinned

import sys
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from lifeline import end_with_batch
from parameters import ROOT, read_network_parameters

from lib.base import checks, files, progress
from lib.base.files import PARAMS, inside
from lib.causal import flow
from lib.causal.graph import Graph
from lib.problem import classifier, gmsc, gmsc_data, loan, tabular
from lib.problem.population import Population
from lib.problem.recourse import Problem
from lib.problem.tabular import Tabular
from lib.solvers import fitted, training
from lib.studies import hare_tables, stacks, yaml_files


def loan_networks(given: Mapping[str, Any], name: str) -> None:
    """Save a stack of networks for the Loan population.

    Its classifier and its flow are fitted by notebooks 01 and 02, and
    are loaded here.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the stack, one of `stacks.STACKS`.
    """
    drawn = {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}
    problem = loan.problem(inside(given["models"]), **drawn)
    _save_networks(problem, stacks.STACKS[name], given, name, drawn)


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
        **stacks.GMSC_CLASSIFIER,
    )
    h.save(models, "gmsc_classifier", made_with, fingerprint)
    density = _flow(population, population.graph, epochs["gmsc_flow"], seed, "gmsc_flow")
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
    graphs = yaml_files.read(PARAMS / "gmsc_graphs.yaml")
    for key, change in graphs.items():
        checks.known(f"change of the graph {key}", change, ("remove", "reverse"))
    flows = {
        key: _flow(
            population,
            gmsc.graph(**change),
            given["n_epochs"][name],
            given["seed"] + i,
            f"{name}, {key}",
        )
        for i, (key, change) in enumerate(graphs.items(), start=1)
    }
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


def hare(given: Mapping[str, Any], name: str) -> None:
    """Save what is fitted to Adult and COMPAS, and what HARE comes to for their people.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the model file, and the beginning of those of the
            results.
    """
    _hare({"adult": tabular.adult(), "compas": tabular.compas()}, given, name)


def gmsc_hare(given: Mapping[str, Any], name: str) -> None:
    """Save the same for Give Me Some Credit; without the data, files that hold nothing.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: As for `hare`.
    """
    path = gmsc_data.find()
    if path is None:
        print(f"{name}: left out, without the data. {gmsc_data.HOW_TO_GET_IT}", flush=True)
    _hare({} if path is None else {"credit": tabular.credit(path)}, given, name)


def _hare(tables: Mapping[str, Tabular], given: Mapping[str, Any], name: str) -> None:
    """Save what is fitted to data sets, and the results of both protocols."""
    folder, seeds, n_people = (
        inside(given["models"]),
        given["hare_seeds"],
        given["hare_people"],
    )
    models = {
        table: fitted.fit_all(own, seeds, progress.bar(f"{name}, {table}"))
        for table, own in tables.items()
    }
    published, own_ideals = [], []
    for key, table in tables.items():
        every = list(models[key].classifiers)
        for i in progress.bar(f"{name}, {key}: tables")(range(len(every))):
            published.append(
                hare_tables.as_published(table, models[key], *every[i], n_people)
            )
        for seed in seeds:
            for scale, flips in OWN_IDEALS:
                own_ideals.append(
                    hare_tables.own_ideals(table, models[key], seed, n_people, scale, flips)
                )
    folder.mkdir(parents=True, exist_ok=True)
    for what, rows in (("as_published", published), ("own_ideals", own_ideals)):
        found = pd.concat(rows) if rows else pd.DataFrame()
        found.to_csv(folder / f"{name}_{what}.csv", index=False, float_format="%.9g")
    made_with = {"n_people": n_people, "seeds": list(seeds)}
    fitted.save(folder, name, models, tables, made_with)


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
    population: Population, graph: Graph, n_epochs: int, seed: int, name: str
) -> flow.CausalFlow:
    """Return a flow that is fitted to a population under a graph; print how well."""
    fitted, history = flow.fit(
        graph,
        population.x["flow/train"],
        population.x["flow/validation"],
        n_epochs=n_epochs,
        seed=seed,
        progress=progress.bar(name),
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
    fitted, _ = training.fit(problem, *members, progress=progress.bar(name))
    fitted.save(inside(given["models"]), name, made_with)


JOBS = dict.fromkeys(stacks.STACKS, loan_networks) | {
    "gmsc_icarma": gmsc_networks,
    "gmsc_other_flows": gmsc_other_flows,
    "hare": hare,
    "gmsc_hare": gmsc_hare,
}
# how far ideals of people's own are, and how often an answer about them is wrong
OWN_IDEALS = (("near", 0.0), ("intermediate", 0.0), ("far", 0.0), ("far", 0.1))


def main() -> None:
    """Run the job that the command line names; leave a note if it fails.

    The note is in runs/<size>/failed, and the batch prints it at its
    end.
    """
    if len(sys.argv) != 3 or sys.argv[2] not in JOBS:
        sys.exit(f"usage: train.py SIZE JOB, where JOB is one of {', '.join(JOBS)}")
    size, name = sys.argv[1:]
    start = time.monotonic()
    try:
        JOBS[name](read_network_parameters(size), name)
    except Exception as error:  # printed at the end of the batch, like a failed notebook's
        note = ROOT / "runs" / size / "failed" / f"{name}.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        why = f"{name} failed\n  {type(error).__name__}: {error}\n"
        note.write_text(why, encoding="utf-8")
        sys.exit(f"{name}: failed")
    print(f"{name}: finished after {(time.monotonic() - start) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    end_with_batch()
    main()
