"""Fits what the batch fits outside of notebooks: `python workflow/train.py SIZE JOB`, called by the Snakefile.

JOB is a stack of networks of the study of soft preferences (notebook 05), gmsc_icarma (the scaler, classifier, flow and
networks of notebook 07) or gmsc_other_flows (flows under other graphs). params/SIZE/networks.yaml says how many people, seeds
and epochs, and where fitted models lie. What a job fits is left there; the file of its own name is written last.
"""

import lib.pinned

import sys
import time

import pandas as pd
import torch
import yaml
from lifeline import end_with_batch
from parameters import ROOT, read_network_parameters

from lib.base import checks, files, progress
from lib.base.files import PARAMS, inside
from lib.causal import flow
from lib.causal.graph import Graph
from lib.problem import classifier, gmsc, loan
from lib.problem.population import Population
from lib.problem.recourse import Problem
from lib.solvers import icarma
from lib.studies import stacks


def loan_networks(given: dict, name: str) -> None:
    """Nothing; leaves a stack of networks for the Loan population, whose classifier and flow are fitted already."""
    drawn = {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}
    problem = loan.problem(inside(given["models"]), **drawn)
    _networks(problem, stacks.STACKS[name], given, name, drawn)


def gmsc_networks(given: dict, name: str) -> None:
    """Nothing; leaves the scaler, the classifier, the flow and the networks for Give Me Some Credit."""
    people, made_with = _applicants(given)
    population = gmsc.population(people, given["seed"])
    models, epochs = inside(given["models"]), given["n_epochs"]
    weight = torch.tensor(stacks.GMSC_CLASSIFIER["weight_of_refusable"])
    scaler = {"mean": population.mean, "std": population.std, "weight": weight}
    fingerprint = population.fingerprint
    settings = {"people": made_with["people"]}
    files.save(models, "gmsc_scaler", scaler, settings, made_with, fingerprint)
    h, _ = classifier.fit(
        population,
        n_epochs=epochs["gmsc_classifier"],
        seed=given["seed"],
        progress=progress.bar("gmsc_classifier"),
        **stacks.GMSC_CLASSIFIER,
    )
    h.save(models, "gmsc_classifier", made_with, fingerprint)
    density = _flow(
        population.graph, population, epochs["gmsc_flow"], given["seed"], "gmsc_flow"
    )
    density.save(models, "gmsc_flow", made_with, fingerprint)
    _networks(Problem(population, h, density), stacks.transfer, given, name, made_with)


def gmsc_other_flows(given: dict, name: str) -> None:
    """Nothing; leaves a flow for each graph of params/gmsc_graphs.yaml."""
    people, made_with = _applicants(given)
    population = gmsc.population(people, given["seed"])
    graphs = yaml.safe_load((PARAMS / "gmsc_graphs.yaml").read_text(encoding="utf-8"))
    flows = {}
    for i, (key, change) in enumerate(graphs.items(), start=1):
        checks.known(f"change of the graph {key}", change, ("remove", "reverse"))
        flows[key] = _flow(
            gmsc.graph(**change),
            population,
            given["n_epochs"][name],
            given["seed"] + i,
            f"{name}, {key}",
        )
    flow.save_all(flows, inside(given["models"]), name, made_with, population.fingerprint)


def _applicants(given: dict) -> tuple[pd.DataFrame, dict]:
    people, steps = gmsc.applicants("", given["n_applicants"], given["seed"])
    return people, {
        "people": "real" if steps else "synthetic",
        "n_people": len(people),
        "seed": given["seed"],
    }


def _flow(
    graph: Graph, population: Population, n_epochs: int, seed: int, name: str
) -> flow.CausalFlow:
    x = population.x
    fitted, history = flow.fit(
        graph,
        x["flow/train"],
        x["flow/validation"],
        n_epochs=n_epochs,
        seed=seed,
        progress=progress.bar(name),
        **stacks.GMSC_FLOW,
    )
    print(f"{name}: {history['validation'].max():.3f} nats a validation person", flush=True)
    return fitted


def _networks(
    problem: Problem, stack: stacks.Stack, given: dict, name: str, made_with: dict
) -> None:
    seeds = [1000 * (i + 1) for i in range(given["n_seeds"])]
    members = stack(problem.population.actionable, seeds, given["n_epochs"][name])
    print(f"{name}: {len(members[2])} networks", flush=True)
    fitted, _ = icarma.fit(problem, *members, progress=progress.bar(name))
    fitted.save(inside(given["models"]), name, made_with)


JOBS = dict.fromkeys(stacks.STACKS, loan_networks) | {
    "gmsc_icarma": gmsc_networks,
    "gmsc_other_flows": gmsc_other_flows,
}


if __name__ == "__main__":
    end_with_batch()
    if len(sys.argv) != 3 or sys.argv[2] not in JOBS:
        sys.exit(f"usage: train.py SIZE JOB, where JOB is one of {', '.join(JOBS)}")
    size, name = sys.argv[1:]
    start = time.monotonic()
    try:
        JOBS[name](read_network_parameters(size), name)
    except Exception as error:  # said at the end of the batch, as of a failed notebook
        note = ROOT / "runs" / size / "failed" / f"{name}.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(
            f"{name} failed\n  {type(error).__name__}: {error}\n", encoding="utf-8"
        )
        sys.exit(f"{name}: failed")
    print(f"{name}: finished after {(time.monotonic() - start) / 60:.1f} min", flush=True)
