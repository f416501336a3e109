"""Fit, draw or search what notebooks load beside what they fit themselves.

`python workflow/fit.py SIZE NAME`

NAME is a key of `JOBS`. params/SIZE.yaml says how many people, seeds
and epochs, and in which folder models lie.
"""

import lib.reproducible

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import parameters
import torch

from lib import checks, io
from lib.beyond.evaluation import refits
from lib.beyond.hare import fitted, hare_tables, tabular
from lib.beyond.propose import propose, training
from lib.method import classifier, flow, icarma, loan
from lib.method.data import Population
from lib.method.graph import Graph
from lib.method.problem import Problem
from lib.paper import gmsc, stacks

Given: TypeAlias = Mapping[str, Any]  # as `parameters.of_fits` returns it
Job: TypeAlias = Callable[[Given, str], None]  # of the name of what is saved

# how far people's own ideals are, and how often an answer about them is wrong
OWN_IDEALS = (("far", 0.0), ("far", 0.1))


def loan_sizes(given: Given) -> dict[str, int]:
    """Return how many people the Loan population has, and its seed."""
    return {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}


def loan_problem(given: Given) -> Problem:
    """Return the Loan problem with the models of notebooks 01 and 02."""
    return loan.problem(io.inside(given["models"]), **loan_sizes(given))


def credit_applicants(given: Given) -> tuple[gmsc.Applicants, dict[str, Any]]:
    """Return who applies for Give Me Some Credit, and what models are made with."""
    n_people, seed = given["n_applicants"], given["seed"]
    people = gmsc.applicants("", n_people, seed, or_stand_in=True)
    print(people.heading, flush=True)
    kind = "real" if people.is_real else "synthetic"
    return people, {"people": kind, "n_people": len(people.people), "seed": seed}


def credit_problem(given: Given) -> tuple[Problem, dict[str, Any]]:
    """Return the problem of Give Me Some Credit, and what its models are made with."""
    people, made_with = credit_applicants(given)
    return gmsc.problem(people, io.inside(given["models"]), given["seed"]), made_with


def credit_flow(
    population: Population, graph: Graph, n_epochs: int, seed: int, name: str
) -> flow.CausalFlow:
    """Return a flow that is fitted to Give Me Some Credit; print how well."""
    x, x_validation = population.x["flow/train"], population.x["flow/validation"]
    bar = io.progress_bar(name)
    density, history = flow.fit(
        graph, x, x_validation, n_epochs=n_epochs, seed=seed, progress=bar, **gmsc.FLOW
    )
    print(f"{name}: {history['validation'].max():.3f} nats a validation person", flush=True)
    return density


def credit_models(given: Given, name: str) -> None:
    """Save the scaler, the classifier and the flow of Give Me Some Credit."""
    people, made_with = credit_applicants(given)
    models, n_epochs, seed = io.inside(given["models"]), given["n_epochs"], given["seed"]
    population = gmsc.population(people, seed)
    scaler = {
        "mean": population.mean,
        "std": population.std,
        "weight": torch.tensor(gmsc.CLASSIFIER["negative_class_weight"]),
    }
    kind, fingerprint = {"people": made_with["people"]}, population.fingerprint
    io.save(models, "gmsc_scaler", scaler, kind, made_with, fingerprint)
    h, _ = classifier.fit(
        population,
        n_epochs=n_epochs["gmsc_classifier"],
        seed=seed,
        progress=io.progress_bar("gmsc_classifier"),
        **gmsc.CLASSIFIER,
    )
    h.save(models, "gmsc_classifier", made_with, fingerprint)
    density = credit_flow(
        population, population.graph, n_epochs["gmsc_flow"], seed, "gmsc_flow"
    )
    density.save(models, "gmsc_flow", made_with, fingerprint)


def loan_ensembles(given: Given, name: str) -> None:
    """Save the ensembles of a study for the Loan population."""
    save_ensembles(loan_problem(given), stacks.STACKS[name], given, name, loan_sizes(given))


def credit_ensembles(given: Given, name: str) -> None:
    """Save ensembles for Give Me Some Credit; those of "past" are under another graph."""
    problem, made_with = credit_problem(given)
    if name == "gmsc_icarma_past":
        fingerprint = problem.population.fingerprint
        flows = flow.load_all(io.inside(given["models"]), "gmsc_other_flows", fingerprint)
        problem = problem.with_flow(flows[gmsc.PAST])
    save_ensembles(problem, stacks.TRANSFER[name], given, name, made_with)


def save_ensembles(
    problem: Problem,
    stack: stacks.Stack,
    given: Given,
    name: str,
    made_with: Mapping[str, Any],
) -> None:
    """Fit and save the ensembles of a study, with the seeds 1000, 2000, ...

    An ensemble alone is saved as such, several by their profile.
    """
    seeds = [1000 * (i + 1) for i in range(given["n_seeds"])]
    by_profile = stack(problem.population.actionable, seeds, given["n_epochs"][name])
    ensembles = {}
    for profile, members in by_profile.items():
        bar = io.progress_bar(f"{name}, {profile}")
        ensembles[profile], _ = icarma.fit(problem, *members, progress=bar)
    models = io.inside(given["models"])
    if len(ensembles) == 1:
        (ensemble,) = ensembles.values()
        ensemble.save(models, name, made_with)
    else:
        icarma.save_by_profile(ensembles, models, name, made_with)


def loan_flows(given: Given, name: str) -> None:
    """Save flows of the Loan population, each fitted to a resample of its people.

    A resample has as many people as the split flow/train, drawn from
    it with replacement. All else is as notebook 02 fits its flow.
    """
    population, seed = loan.population(**loan_sizes(given)), given["seed"]
    n_epochs = parameters.with_defaults(given["size"], "02_causal_flow")["n_epochs"]
    x, flows = population.x["flow/train"], {}
    for i in range(1, given["n_refits"] + 1):
        key = f"resampled {i}"
        rows = np.random.default_rng([seed, i]).integers(len(x), size=len(x))
        flows[key], _ = flow.fit(
            population.graph,
            x[torch.from_numpy(rows)],
            population.x["flow/validation"],
            n_epochs=n_epochs,
            seed=seed + i,
            progress=io.progress_bar(f"{name}, {key}"),
        )
    made_with = loan_sizes(given) | {"n_epochs": n_epochs}
    models = io.inside(given["models"])
    flow.save_all(flows, models, name, made_with, population.fingerprint)


def credit_flows(given: Given, name: str) -> None:
    """Save a flow for each graph of params/gmsc_graphs.yaml, all in one file."""
    people, made_with = credit_applicants(given)
    population, n_epochs = gmsc.population(people, given["seed"]), given["n_epochs"][name]
    flows = {}
    for i, (key, graph) in enumerate(gmsc.graphs().items(), start=1):
        bar_name = f"{name}, {key}"
        flows[key] = credit_flow(population, graph, n_epochs, given["seed"] + i, bar_name)
    models = io.inside(given["models"])
    flow.save_all(flows, models, name, made_with, population.fingerprint)


def loan_proposer(given: Given, name: str) -> None:
    """Save the proposer of notebook 11, and the terms of its loss by epoch beside it."""
    problem, seed, n_epochs = loan_problem(given), given["seed"], given["n_epochs"][name]
    targets = training.search_targets(problem, given["n_targets"], seed=seed)
    settings, bar = propose.Settings(n_epochs=n_epochs), io.progress_bar(name)
    proposer, history = training.fit(problem, settings, seed, targets, progress=bar)
    models = io.inside(given["models"])
    io.write(models / f"{name}_history.csv", history.to_csv(float_format="%.6g"))
    proposer.save(models, name, {"seed": seed, "n_epochs": n_epochs})


def credit_proposer(given: Given, name: str) -> None:
    """Save a proposer for Give Me Some Credit, trained through the flow alone."""
    (problem, made_with), n_epochs = credit_problem(given), given["n_epochs"][name]
    settings = propose.Settings(n_epochs=n_epochs, **training.GMSC_SETTINGS)
    bar = io.progress_bar(name)
    proposer, _ = training.fit(problem, settings, given["seed"], progress=bar)
    models = io.inside(given["models"])
    proposer.save(models, name, made_with | {"n_epochs": n_epochs})


def hare(given: Given, name: str) -> None:
    """Save what is fitted to HARE's data sets, and what its dialogues come to.

    Without the data of Give Me Some Credit its files hold nothing.
    """
    path = gmsc.find() if name == "gmsc_hare" else None
    if name == "hare":
        tables = {"adult": tabular.adult(), "compas": tabular.compas()}
    elif path is not None:
        tables = {"credit": tabular.credit(path)}
    else:
        print(f"{name}: left out, without the data. {gmsc.HOW_TO_GET_IT}", flush=True)
        tables = {}
    models, seeds, n_people = {}, given["hare_seeds"], given["hare_people"]
    sizes, n_epochs = (n_people, given["hare_steps"]), given["n_epochs"][name]
    published: list[pd.DataFrame] = []
    own_ideals: list[pd.DataFrame] = []
    for key, table in tables.items():
        bar = io.progress_bar(f"{name}, {key}")
        models[key] = fitted.fit_all(table, seeds, n_epochs, bar)
        for kind in fitted.HIDDEN:
            for seed in seeds:
                which = (models[key], kind, seed)
                published.append(hare_tables.as_published(table, *which, *sizes))
        for seed in seeds:
            for scale, flips in OWN_IDEALS:
                how = (seed, n_people, scale, flips)
                own_ideals.append(hare_tables.own_ideals(table, models[key], *how))
    folder = io.inside(given["models"])
    for ending, results in {"as_published": published, "own_ideals": own_ideals}.items():
        joined = pd.concat(results) if results else pd.DataFrame()
        as_csv = joined.to_csv(index=False, float_format="%.9g")
        io.write(folder / f"{name}_{ending}.csv", as_csv)
    made_with = {"n_people": n_people, "seeds": list(seeds)}
    fitted.save(folder, name, models, made_with)


def willingness(given: Given, name: str) -> None:
    """Save what the study's model finds in simulated answers, for notebook 10."""
    bar = io.progress_bar(name)
    latents, summaries = refits.studies(given["n_datasets"], given["seed"], progress=bar)
    for ending, table in {"_latent": latents, "": summaries}.items():
        as_csv = table.to_csv(index=False, float_format="%.6g")
        io.write(io.inside(given["models"]) / f"{name}{ending}.csv", as_csv)


JOBS: dict[str, Job] = {
    **dict.fromkeys(stacks.STACKS, loan_ensembles),
    "gmsc_models": credit_models,
    **dict.fromkeys(stacks.TRANSFER, credit_ensembles),
    "loan_other_flows": loan_flows,
    "gmsc_other_flows": credit_flows,
    "loan_propose": loan_proposer,
    "gmsc_propose": credit_proposer,
    "hare": hare,
    "gmsc_hare": hare,
    "willingness": willingness,
}


if __name__ == "__main__":
    size, name = sys.argv[1:]
    checks.one_of("job", [name], tuple(JOBS))
    JOBS[name](parameters.of_fits(size) | {"size": size}, name)
