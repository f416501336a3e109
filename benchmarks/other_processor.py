"""Small fits and searches, once on this processor and once on an emulated one: equal bits?

    .venv/bin/python benchmarks/other_processor.py            the other one is a Haswell
    .venv/bin/python benchmarks/other_processor.py EPYC-Rome  qemu-x86_64 -cpu help has more

Needs qemu-x86_64, 7.2 or later (Debian, Ubuntu: apt-get install qemu-user), and takes some
minutes: an emulated processor is twenty to sixty times slower. Prints a line a fit; the
exit code is 1 if one differs. No fit depends on another: what needs a classifier or a flow
reads the committed one.
"""

import lib.pinned

import argparse
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import files
from lib.base.files import MODELS
from lib.beyond.evaluation import gamm, refits
from lib.beyond.evaluation.willingness import POOLS, Latent
from lib.beyond.hare import fitted, ideals, tabular
from lib.beyond.hare.draws import streams
from lib.beyond.propose import propose, teaching
from lib.method import classifier, flow, grid, loan, training
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma, Settings
from lib.method.population import Population
from lib.method.problem import Problem, Recommendation
from lib.method.samplers import RankingSampler
from lib.paper import gmsc
from lib.search import continuous

EMULATOR = "qemu-x86_64"
HOW_TO_GET_IT = (
    f"{EMULATOR} is not there. Install Debian's or Ubuntu's qemu-user (apt-get install "
    "qemu-user), or Fedora's (dnf install qemu-user), in version 7.2 or later, which knows "
    "AVX2."
)
SEEDS = (1000, 2000)


def loan_people() -> Population:
    """Return a small Loan population."""
    return loan.population(n_classifier=1_500, n_flow=1_500, n_recourse=1_000)


def loan_problem() -> Problem:
    """Return the small Loan population with the committed classifier and flow."""
    return Problem(
        loan_people(),
        NetworkClassifier.load(MODELS, "loan_classifier"),
        CausalFlow.load(MODELS, "loan_flow"),
    )


def gmsc_people() -> Population:
    """Return invented people with the features, and the scaler, of Give Me Some Credit."""
    rng, n = np.random.default_rng(0), 600
    numbers: dict[str, Any] = {name: rng.poisson(1, n) for name in gmsc.COLUMNS}
    numbers |= {
        "age": rng.integers(21, 90, n),
        "income": rng.integers(500, 17_000, n),
        "credit_lines": rng.poisson(8, n),
        "utilization": rng.random(n).round(3),
        "debt_ratio": rng.random(n).round(3),
        "paid_back": rng.random(n) < 0.8,
    }
    scaler, _ = gmsc.scaler(MODELS)
    own = (scaler["mean"], scaler["std"])
    people = gmsc.Applicants(pd.DataFrame(numbers), {}, is_real=False, scaler=own)
    return gmsc.population(people)


def gmsc_problem() -> Problem:
    """Return the invented people with the committed classifier and flow."""
    return Problem(
        gmsc_people(),
        NetworkClassifier.load(MODELS, "gmsc_classifier"),
        CausalFlow.load(MODELS, "gmsc_flow"),
    )


def fitted_classifier() -> dict[str, Tensor]:
    """Return the layers of a classifier, and its loss."""
    h, losses = classifier.fit(loan_people(), n_epochs=100)
    layers = [*h.weights, *h.biases]
    return {f"layer {i}": layer for i, layer in enumerate(layers)} | {
        "loss": Tensor(losses)
    }


def fitted_flow(people: Population, n_bins: int, n_epochs: int) -> dict[str, Tensor]:
    """Return the weights of a flow."""
    x = people.x
    fitted, _ = flow.fit(
        people.graph,
        x["flow/train"],
        x["flow/validation"],
        hidden=(32,),
        n_bins=n_bins,
        n_epochs=n_epochs,
        batch_size=100,
    )
    return fitted.weights


def fitted_stack(problem: Problem, n_epochs: int) -> dict[str, Tensor]:
    """Return the weights of two members, and what they recommend to refused test people."""
    sampler = RankingSampler(problem.population.actionable)
    settings = Settings(n_epochs=n_epochs, batch_size=64)
    stack, _ = training.fit(problem, sampler, settings, SEEDS)
    return dict(stack.weights) | answers(problem, stack)


def answers(problem: Problem, stack: ICarma) -> dict[str, Tensor]:
    """Return what a stack recommends to a hundred refused test people."""
    x = problem.refused("test")[:100]
    sampler = RankingSampler(problem.population.actionable)
    preferences = sampler.draw(range(len(x)), np.random.default_rng(1))
    return parts_of(stack.recommend(x, preferences))


def drawn_from_splines() -> dict[str, Tensor]:
    """Return people drawn from the committed flow of Give Me Some Credit."""
    drawn = CausalFlow.load(MODELS, "gmsc_flow").sample(500, np.random.default_rng(0))
    return {"x": drawn}


def found_on_grid() -> dict[str, Tensor]:
    """Return what the grid search through the flow finds for 24 people."""
    problem = loan_problem()
    x = problem.refused("test")[:24]
    sampler = RankingSampler(problem.population.actionable)
    preferences = sampler.draw(range(len(x)), np.random.default_rng(1))
    return parts_of(grid.Grid(problem, problem.flow, n_values=9).recommend(x, preferences))


def found_over_all_values() -> dict[str, Tensor]:
    """Return what the search over all values through the flow finds for 8 people."""
    problem = loan_problem()
    x = problem.refused("test")[:8]
    table = continuous.Search(problem, problem.flow, n_scouts=64, n_starts=2).table(x)
    return {"cost": table.cost, "values": table.values}


def fitted_proposer() -> dict[str, Tensor]:
    """Return lessons, the proposer that is fitted to them, and what it recommends."""
    problem = loan_problem()
    lessons = teaching.searched(problem, 24, n_scouts=16, n_starts=1)
    settings = propose.Settings(n_epochs=20, batch_size=64, hidden=64)
    proposer, history = teaching.fit(problem, settings, seed=SEEDS[0], lessons=lessons)
    found = {f"term {name}": torch.from_numpy(terms) for name, terms in history.items()}
    found |= {"costs of lessons": lessons.cost, "values of lessons": lessons.values}
    x = problem.refused("test")[:24]
    sampler = RankingSampler(problem.population.actionable)
    preferences = sampler.draw(range(len(x)), np.random.default_rng(1))
    for margin, slack in ((0.0, 0.0), (2.0, -0.02)):
        r = proposer.recommend(x, preferences, margin=margin, slack=slack)
        found |= {f"{name} {margin}": part for name, part in parts_of(r).items()}
    return dict(proposer.weights) | found


def recourse_on_compas() -> dict[str, Tensor]:
    """Return what is fitted to COMPAS, with smaller networks, and what starts from it."""
    table = replace(tabular.compas(), name="small")
    models = fitted.fit_all(table, seeds=(1,))
    h = models.classifiers["ANN", 1]
    x = table.refused(h.accepts, 10)
    rngs = streams(len(x), 0)
    found = {f"classifier {i}": layer for i, layer in enumerate([*h.weights, *h.biases])}
    for kind, model in models.autoencoders.items():
        nets = model.nets.items()
        found |= {f"{kind} {net} {i}": w for net, own in nets for i, w in enumerate(own)}
    for name in fitted.GENERATORS:
        for as_published in (False, True):
            r = fitted.base(name, table, h, models, x, 0, as_published)
            found[f"{name} {as_published}"] = r
    found["own ideals"] = ideals.own(table, h, x, ideals.FAR, rngs)
    return found


def parts_of(recommendation: Recommendation) -> dict[str, Tensor]:
    """Return a recommendation as named tensors."""
    return {name: getattr(recommendation, name) for name in ("is_acted", "values", "x_cf")}


def refitted_answers() -> dict[str, Tensor]:
    """Return what the mixed model finds in simulated answers, with all tests."""
    drawn = refits.samples(POOLS["middle"], 3, seed=0)
    latent = Latent(2.6, 1.1, 0.1, 1.0, 1.2, "exp(-(x-1)/1)")
    rows = refits.refits(latent, drawn, seed=0, tested=gamm.TERMS)
    return {name: torch.from_numpy(rows[name].to_numpy()) for name in rows}


FITS: dict[str, Callable[[], Mapping[str, Tensor]]] = {
    "people of Loan": lambda: loan_people().x,
    "people like those of Give Me Some Credit": lambda: gmsc_people().x,
    "classifier": fitted_classifier,
    "affine flow": lambda: fitted_flow(loan_people(), n_bins=0, n_epochs=30),
    "spline flow": lambda: fitted_flow(gmsc_people(), n_bins=16, n_epochs=15),
    "iCARMA through an affine flow, two members": lambda: fitted_stack(loan_problem(), 25),
    "iCARMA through a spline's inverse, two members": lambda: fitted_stack(
        gmsc_problem(), 12
    ),
    "people drawn from a spline flow": drawn_from_splines,
    "grid search": found_on_grid,
    "search over all values": found_over_all_values,
    "proposer, with lessons": fitted_proposer,
    "base recourse on COMPAS, and what is fitted for it": recourse_on_compas,
    "the mixed model, fitted to simulated answers": refitted_answers,
}


def fit_all(folder: Path) -> None:
    """Save what each fit leaves, numbered, and print how long it took."""
    for number, (name, fit) in enumerate(FITS.items()):
        start = time.monotonic()
        tensors = {key.replace("/", " "): part for key, part in fit().items()}
        files.save(folder, f"{number}", tensors, {}, {})
        print(f"  {name}: {time.monotonic() - start:.1f} s", flush=True)


def run(where: str, folder: Path, *emulator: str) -> None:
    """Run all fits in a process of their own.

    Raises: SystemExit: it failed; with what it said.
    """
    print(f"On {where}:", flush=True)
    command = [*emulator, sys.executable, __file__, "--into", str(folder)]
    child = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if child.returncode:
        sys.exit(f"{child.stderr}\nThe fits on {where} failed; nothing was compared.")


def main() -> None:
    """Compare the fits of two processors."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("cpu", nargs="?", default="Haswell")
    arguments.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.into:
        return fit_all(given.into)
    if platform.machine() != "x86_64":
        sys.exit(f"Bits are equal between x86 processors; this is {platform.machine()}.")
    if shutil.which(EMULATOR) is None:
        sys.exit(HOW_TO_GET_IT)
    with TemporaryDirectory() as folder:
        here, there = Path(folder) / "here", Path(folder) / "there"
        run("this processor", here)
        run(f"an emulated {given.cpu}", there, EMULATOR, "-cpu", given.cpu)
        what = {
            name: files.difference(
                files.load(here, f"{number}")[0], files.load(there, f"{number}")[0]
            )
            for number, name in enumerate(FITS)
        }
    print()
    for name, difference in what.items():
        print(f"{name}: {f'DIFFERS: {difference}' if difference else 'equal to the bit'}")
    sys.exit(any(what.values()))


if __name__ == "__main__":
    main()
