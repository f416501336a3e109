"""Train the ensembles of networks that the batch trains outside of notebooks.

`python workflow/networks.py SIZE JOB`

Called by the Snakefile. JOB is a study's ensembles for Loan, or one of
notebook 07: gmsc_icarma fits the scaler, the classifier and the flow as
well, gmsc_icarma_past is under another graph. params/SIZE/run.yaml
and networks.yaml say how many people, seeds and epochs, and in which
folder models lie.
"""

import lib.reproducible

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import fitting
import numpy as np
import torch
from jobs import run

from lib import io
from lib.io import inside
from lib.method import classifier, flow, icarma, loan
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler
from lib.paper import claims, gmsc, readings, stacks


def loan_networks(given: Mapping[str, Any], name: str) -> None:
    """Save the ensembles of a study for the Loan population.

    Its classifier and its flow are fitted by notebooks 01 and 02, and
    are loaded here.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the study, one of `STACKS`.
    """
    drawn = fitting.drawn(given)
    problem = loan.problem(inside(given["models"]), **drawn)
    _save_networks(problem, STACKS[name], given, name, drawn)


def leaky(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> stacks.ByProfile:
    """Return one member whose prior acts on features as often as the paper's networks do.

    That is the mean share of hardest actions that table 2 prints for
    the constant profile; all else is as printed. It stands here and
    not in `stacks`: what calibrates imports that module, and can open no
    published table.

    Arguments, Returns and Raises: as for `stacks.printed`; the first
        seed is used.
    """
    rows = claims.published(2).query("method == 'iCARMA' and cost_profile == 'constant'")
    p = float(np.mean(rows.hap))
    settings = replace(readings.as_printed("ranking", "constant"), p_min=p, p_max=p)
    sampler = RankingSampler(tuple(features), profile=readings.profile("constant"))
    return {"constant": stacks.members(sampler, [settings], seeds[:1], n_epochs)}


STACKS: dict[str, stacks.Stack] = stacks.STACKS | {"loan_icarma_leaky": leaky}


def gmsc_networks(given: Mapping[str, Any], name: str) -> None:
    """Save the scaler, the classifier, the flow and the networks for Give Me Some Credit.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file of networks.
    """
    people, made_with = fitting.applicants(given)
    population = gmsc.population(people, given["seed"])
    models, epochs, seed = inside(given["models"]), given["n_epochs"], given["seed"]
    scaler = {
        "mean": population.mean,
        "std": population.std,
        "weight": torch.tensor(gmsc.CLASSIFIER["negative_class_weight"]),
    }
    settings, fingerprint = {"people": made_with["people"]}, population.fingerprint
    io.save(models, "gmsc_scaler", scaler, settings, made_with, fingerprint)
    h, _ = classifier.fit(
        population,
        n_epochs=epochs["gmsc_classifier"],
        seed=seed,
        progress=io.progress_bar("gmsc_classifier"),
        **gmsc.CLASSIFIER,
    )
    h.save(models, "gmsc_classifier", made_with, fingerprint)
    density = fitting.credit_flow(
        population,
        population.graph,
        epochs["gmsc_flow"],
        seed,
        "gmsc_flow",
    )
    density.save(models, "gmsc_flow", made_with, fingerprint)
    problem = Problem(population, h, density)
    _save_networks(problem, stacks.TRANSFER[name], given, name, made_with)


def other_gmsc_networks(given: Mapping[str, Any], name: str) -> None:
    """Save other networks for Give Me Some Credit, whose models lie there already.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the file of networks.
    """
    people, made_with = fitting.applicants(given)
    models = inside(given["models"])
    problem = gmsc.problem(people, models, given["seed"])
    if name == "gmsc_icarma_past":
        flows = flow.load_all(models, "gmsc_other_flows", problem.population.fingerprint)
        problem = problem.with_flow(flows[gmsc.PAST])
    _save_networks(problem, stacks.TRANSFER[name], given, name, made_with)


def _save_networks(
    problem: Problem,
    stack: stacks.Stack,
    given: Mapping[str, Any],
    name: str,
    made_with: Mapping[str, Any],
) -> None:
    """Train the ensembles of a study with the seeds 1000, 2000, ..., and save them.

    An ensemble alone is saved as such, several by their profile.
    """
    seeds = [1000 * (i + 1) for i in range(given["n_seeds"])]
    by_profile = stack(problem.population.actionable, seeds, given["n_epochs"].get(name))
    ensembles = {}
    for profile, members in by_profile.items():
        print(f"{name}, {profile}: {len(members[2])} networks", flush=True)
        bar = io.progress_bar(f"{name}, {profile}")
        ensembles[profile], _ = icarma.fit(problem, *members, progress=bar)
    models = inside(given["models"])
    if len(ensembles) == 1:
        (ensemble,) = ensembles.values()
        ensemble.save(models, name, made_with)
    else:
        icarma.save_by_profile(ensembles, models, name, made_with)


JOBS = {
    **dict.fromkeys(STACKS, loan_networks),
    **dict.fromkeys(stacks.TRANSFER, other_gmsc_networks),
    "gmsc_icarma": gmsc_networks,
}


if __name__ == "__main__":
    run(JOBS)
