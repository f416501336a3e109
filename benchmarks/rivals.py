"""What people would install today, on the same people as ours: `benchmarks/rivals.py`.

    .venv/bin/python benchmarks/rivals.py                      everything
    .venv/bin/python benchmarks/rivals.py alibi --seeds 0      one package, its first seed
    .venv/bin/python benchmarks/rivals.py --problems Loan      one problem
    .venv/bin/python benchmarks/rivals.py judge                evaluate stored answers again

500 refused test people of Loan and of Give Me Some Credit; for each of them a number of
features is drawn that they may act on. Each package gets an environment of its own,
runs/rivals/PACKAGE, from the pinned benchmarks/rivals/PACKAGE.txt, and answers through its
own interface (benchmarks/rivals/ask_PACKAGE.py) with its documented defaults. It gets which
features a person may set, and between what values, if its interface has that. "ours" stands
for this repository: its solvers, CARMA, and four of the generators that the HARE paper
begins at. Whatever draws (a network's training, a sample) has up to three seeds. A method
that needs more than five minutes of processor time is evaluated on the people that it
came to.

An answer is evaluated twice. As a profile: is it valid, as plausible as before by our flow,
and still valid for five classifiers fitted anew? And as an action: each actionable feature
that differs is set, the downstream effects follow, and classifier and density are asked
again, in the true SCM of Loan, and in three other flows for real applicants. An action on
what a person can't do helps nobody.

The result is benchmarks/rivals.csv, a row for each problem, package, method, seed and
people ("all", or "open": who may act on every feature). Differences are to the first
network of iCARMA as printed, cost ratios to our search, on the same people, with two
standard errors over people. Rows that nobody asked for anew stay as they are. Without the
data (docs/run.md) Give Me Some Credit is left out.
"""

import lib.reproducible

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.io import MODELS, ROOT
from lib.method import classifier, loan
from lib.method import flow as flows
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, is_plausible, is_valid
from lib.paper import designs, estimates, gmsc

HERE = Path(__file__).parent / "rivals"
FOLDER = ROOT / "runs" / "rivals"
PATH = Path(__file__).with_suffix(".csv")
N_PEOPLE, N_TRAIN, SEED = 500, 10_000, 1
N_REFITS = 5  # classifiers fitted anew
SETTING = "random"  # of table 1: how many features a person may act on is drawn
FAR = 1e-4  # standard deviations: more than rounding moves a value
OURS, SEARCH, PRINTED, JUDGE = "ours", "search", "iCARMA as printed", "judge"
SEEDS = (0, 1, 2)
ONCE = SEEDS[:1]
# packages, their methods, and the seeds of each
RIVALS: dict[str, dict[str, tuple[int, ...]]] = {
    OURS: {
        SEARCH: ONCE,
        "search, margin": ONCE,
        "grid": ONCE,
        PRINTED: SEEDS,
        "iCARMA as chosen": SEEDS,
        "CARMA": SEEDS,
        "Wachter": ONCE,
        "growing spheres": SEEDS,
        "FACE": SEEDS,
        "C-CHVAE": SEEDS,
    },
    "dice-ml": {"random": SEEDS, "genetic": SEEDS, "gradient": ONCE},
    "ellice": {"continuous": ONCE, "data_supported": ONCE},
    "alibi": {"CFRL": SEEDS},
    "ce-library": {"PPCEF": ONCE, "PPCEF, held": SEEDS},
}
Run = tuple[str, str, int]  # package, method, seed
KEY = ["problem", "package", "method", "seed", "people"]
ALL_APPLICANTS = 120_269
LOAN_ALONE = ("CARMA",)  # which is trained for Loan alone
# as the batch fits both classifiers at the paper's size
HOW_FITTED: dict[str, dict[str, Any]] = {
    "Loan": {"n_epochs": 500},
    "GMSC": {"n_epochs": 30, **gmsc.CLASSIFIER},
}
MODELS_OF_CREDIT = ("refitted", "utilization changes income", "lateness is past")


@dataclass(frozen=True)
class Asked:
    """Hold who asks, and the causal models in which their actions are carried out."""

    name: str
    problem: Problem
    x: Tensor
    preferences: Preferences
    models: Mapping[str, Any]


def on_loan() -> Asked:
    """Return who is refused in Loan's test split; the truth is known."""
    problem = loan.problem(MODELS)
    return _asked("Loan", problem, {"truth": problem.population.truth})


def on_credit() -> Asked:
    """Return real applicants, and three other flows."""
    people = gmsc.applicants("", ALL_APPLICANTS, seed=0)
    problem = gmsc.problem(people, MODELS)
    others = flows.load_all(MODELS, "gmsc_other_flows", problem.population.fingerprint)
    return _asked("GMSC", problem, {name: others[name] for name in MODELS_OF_CREDIT})


def _asked(name: str, problem: Problem, models: Mapping[str, Any]) -> Asked:
    x = problem.refused("test")[:N_PEOPLE]
    preferences = designs.hard_preferences(problem, len(x), SEED)[SETTING]
    return Asked(name, problem, x, preferences, models)


PROBLEMS: dict[str, Callable[[], Asked]] = {"Loan": on_loan, "GMSC": on_credit}


def refits(asked: Asked) -> list[Classifier]:
    """Return classifiers fitted anew to people drawn with replacement."""
    population, split = asked.problem.population, "classifier/train"
    how = HOW_FITTED[asked.name]
    fitted: list[Classifier] = []
    for seed in range(1, N_REFITS + 1):
        name = f"{asked.name}_classifier_{seed}"
        if not (FOLDER / f"{name}.safetensors").exists():
            n_people = len(population.x[split])
            rng = np.random.default_rng(seed)
            rows = torch.from_numpy(rng.integers(n_people, size=n_people))
            x = {**population.x, split: population.x[split][rows]}
            y = {**population.y, split: population.y[split][rows]}
            again = replace(population, x=x, y=y, people={})
            h, _ = classifier.fit(again, seed=seed, **how)
            h.save(FOLDER, name, how, population.fingerprint)
        fitted.append(NetworkClassifier.load(FOLDER, name, population.fingerprint))
    return fitted


def export(asked: Asked, folder: Path) -> None:
    """Write what a rival may see: people and limits in the data's units, the classifier."""
    folder.mkdir(parents=True, exist_ok=True)
    population, x = asked.problem.population, asked.x
    features, index = list(population.features), population.actionable_index
    for name, rows in (("people", x), ("train", population.x["recourse/train"][:N_TRAIN])):
        table = pd.DataFrame(population.to_records(rows).numpy(), columns=features)
        table.to_csv(folder / f"{name}.csv", index=name == "people")
    for name, rows in zip(("low", "high"), limits(asked), strict=True):
        ends = population.to_records(rows)[:, index].numpy()
        pd.DataFrame(ends, columns=list(population.actionable)).to_csv(
            folder / f"{name}.csv"
        )
    h: Any = asked.problem.classifier
    entries = {
        "features": features,
        "actionable": list(population.actionable),
        "whole": whole(population),
        "mean": population.mean.tolist(),
        "std": population.std.tolist(),
        "layers": [
            (layer.weight.T.tolist(), layer.bias.tolist()) for layer in h.network[::2]
        ],
    }
    (folder / "task.json").write_text(json.dumps(entries), encoding="utf-8")


def limits(asked: Asked) -> tuple[Tensor, Tensor]:
    """Return the least and most that people may set features to, each with shape (N, D).

    Equal to their own values where they may not; as people can have them.
    """
    population, index = asked.problem.population, asked.problem.population.actionable_index
    interval, rows = asked.problem.interval(asked.x, asked.preferences), []
    for end in (interval.low, interval.high):
        row = asked.x.clone()
        row[:, index] = torch.where(interval.is_allowed, end, asked.x[:, index])
        rows.append(population.to_feasible(row))
    return rows[0], rows[1]


def whole(population: Population) -> list[str]:
    """Return the features that are whole numbers."""
    if population.discretisation is None:
        return []
    is_whole = population.discretisation.is_whole.tolist()
    return [name for name, one in zip(population.features, is_whole, strict=True) if one]


@dataclass(frozen=True)
class Answers:
    """Hold what a method answers to N people.

    Arguments:
        x_cf: Profiles, standardised; the factual one where there is
            none.
        is_acted: Which features are set, with shape (N, D).
        has_answer: Who gets anything to change, with shape (N,).
        was_asked: Who was reached in time, with shape (N,).
        is_action: Whether the method itself states what is set, and
            that the rest of the profile follows.
    """

    x_cf: Tensor
    is_acted: Tensor
    has_answer: Tensor
    was_asked: Tensor
    is_action: bool


def read(asked: Asked, path: Path) -> Answers:
    """Return what a method left; a difference by rounding is no change."""
    population, table = asked.problem.population, pd.read_csv(path, index_col=0)
    was_asked = torch.arange(len(asked.x)) < len(table)
    table = table.reindex(range(len(asked.x)))
    features, columns = list(population.features), population.actionable_index
    has_profile = torch.tensor(table[features].notna().all(axis=1).to_numpy())
    recorded = pd.DataFrame(population.to_records(asked.x).numpy(), columns=features)
    # not by `standardise`, which refuses what nobody can be: some methods answer it
    profiles, before = (
        population.transform(torch.from_numpy(units.to_numpy(dtype=float)))
        for units in (table[features].fillna(recorded), recorded)
    )
    differs = (profiles - before).abs() > FAR
    x_cf, is_acted = torch.where(differs, profiles, asked.x), torch.zeros_like(differs)
    names = [f"sets {name}" for name in population.actionable]
    is_action = names[0] in table
    is_acted[:, columns] = (
        torch.tensor(table[names].fillna(0).to_numpy() > 0)
        if is_action
        else differs[:, columns]
    )
    return Answers(x_cf, is_acted, has_profile & differs.any(-1), was_asked, is_action)


def evaluate(
    asked: Asked, answers: Answers, classifiers: Sequence[Classifier] = ()
) -> pd.DataFrame:
    """Return how good answers are, as profiles and as actions, a row a person.

    Columns: answered; valid, plausible and joint, as a profile; "valid anew": the share of
    other classifiers for which a valid profile is valid, too; forbidden: it changes what
    the person can't, or beyond their limits; impossible: nobody can be so; carried: the
    share of causal models in which carrying it out helps them; "bank says no", "too rare":
    the shares in which it does not; cost; features. Empty for who was not reached.
    """
    problem, x, population = asked.problem, asked.x, asked.problem.population
    x_cf, is_acted, has = answers.x_cf, answers.is_acted, answers.has_answer
    low, high = limits(asked)
    values, is_moved = torch.where(is_acted, x_cf, x), x_cf != x
    as_set = population.to_feasible(values)
    forbidden = (is_acted & ((as_set < low - FAR) | (as_set > high + FAR))).any(-1)
    if not answers.is_action:
        forbidden |= (is_moved & ~is_acted).any(-1)
    odd = (is_moved & ((population.to_feasible(x_cf) - x_cf).abs() > FAR)).any(-1)
    log_odds, gain = problem.outcome(x, x_cf)
    valid, plausible = has & is_valid(log_odds), has & is_plausible(gain)
    people = {"answered": has, "valid": valid, "plausible": plausible}
    people |= {"joint": valid & plausible, "forbidden": has & forbidden}
    people |= {"impossible": has & odd}
    anew = [valid & h.accepts(x_cf) for h in classifiers]
    if anew:
        people["valid anew"] = torch.stack(anew).double().mean(0)
    by_model: dict[str, list[Tensor]] = {"carried": [], "bank says no": [], "too rare": []}
    for model in asked.models.values():
        after = model.counterfactual(x, is_acted, values)
        after = population.round_counterfactual(x, after)
        is_yes = problem.accepts(after)
        is_seen = is_plausible(model.log_prob(after) - model.log_prob(x))
        by_model["carried"].append(has & ~forbidden & is_yes & is_seen)
        by_model["bank says no"].append(has & ~is_yes)
        by_model["too rare"].append(has & is_yes & ~is_seen)
    people |= {name: torch.stack(t).double().mean(0) for name, t in by_model.items()}
    people |= dict(
        zip(map("carried: {}".format, asked.models), by_model["carried"], strict=True)
    )
    people["cost"] = problem.cost_of(x, Recommendation(is_acted, values, x_cf))
    people["features"] = is_acted.sum(-1)
    table = pd.DataFrame({name: t.double().numpy() for name, t in people.items()})
    table[~answers.was_asked.numpy()] = np.nan
    return table


def summary(
    mine: pd.DataFrame, search: pd.DataFrame, printed: pd.DataFrame
) -> dict[str, float]:
    """Return shares, means over who is helped, and differences on the same people.

    Arguments:
        mine, search, printed: As `evaluate` gives them, of the method, the search, and the
            first network of iCARMA as printed.
    """
    row = mine.drop(columns=["cost", "features"]).mean().to_dict()
    more = estimates.ratio((mine["carried"] - printed["carried"]).to_numpy())
    row |= {"more than iCARMA": more.value, "2 s.e.": 2 * more.se_people}
    is_helped = mine["carried"] > 0
    row |= mine[is_helped][["cost", "features"]].mean().to_dict()
    both = (is_helped & (search["carried"] > 0)).to_numpy() * 1.0
    if both.sum() > 1:
        costs = (people["cost"].to_numpy() * both for people in (mine, search))
        times = estimates.ratio(*costs)
        row |= {"cost ratio": times.value, "cost ratio, 2 s.e.": 2 * times.se_people}
    return row


def environment(package: str) -> Path:
    """Return the Python of a package's own environment, made if its pins are new."""
    if package == OURS:
        return Path(sys.executable)
    folder, pins = FOLDER / package, (HERE / f"{package}.txt").read_text(encoding="utf-8")
    kept, python = folder / "pins.txt", folder / "bin" / "python"
    if kept.exists() and kept.read_text(encoding="utf-8") == pins:
        return python
    print(f"{package}: an environment of its own ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "-r", str(HERE / f"{package}.txt")], check=True)
    kept.write_text(pins, encoding="utf-8")
    return python


def ask(asked: Asked, package: str, method: str, seed: int) -> None:
    """Let a method answer everybody; answers and what they took lie in a folder then."""
    print(f"{asked.name}: {package}, {method}, seed {seed}", flush=True)
    folder, program = FOLDER / asked.name, HERE / f"ask_{package}.py"
    command = [str(environment(package)), str(program), str(folder), method, str(seed)]
    log = folder / f"{package}_{method}_{seed}.log"
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(command, check=True, cwd=ROOT, stdout=file, stderr=file)


def runs(asked: Asked, packages: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Return the package, method and seed of each run that a problem has."""
    return [
        (package, method, seed)
        for package in packages
        for method, its_seeds in RIVALS[package].items()
        for seed in its_seeds
        if seed in seeds and (asked.name == "Loan" or method not in LOAN_ALONE)
    ]


def rows_of(asked: Asked) -> list[dict[str, Any]]:
    """Return a row for each run whose answers are there, and for each group of people."""
    folder, classifiers = FOLDER / asked.name, refits(asked)

    def of(package: str, method: str, seed: int) -> pd.DataFrame:
        path = folder / f"{package}_{method}_{seed}.csv"
        return evaluate(asked, read(asked, path), classifiers)

    search, printed = of(OURS, SEARCH, 0), of(OURS, PRINTED, 0)
    is_open, rows = asked.preferences.is_actionable.all(-1).numpy(), []
    for package, method, seed in runs(asked, list(RIVALS), SEEDS):
        path = folder / f"{package}_{method}_{seed}.json"
        if not path.exists():
            continue
        took = json.loads(path.read_text(encoding="utf-8"))
        key: dict[str, Any] = {"problem": asked.name, "package": package}
        key |= {"method": method, "seed": seed}
        mine = of(package, method, seed)
        for people, counted in (("all", is_open | ~is_open), ("open", is_open)):
            who = counted & mine["answered"].notna().to_numpy()
            counts = key | {"people": people, "n": int(who.sum())}
            rows.append(counts | summary(mine[who], search[who], printed[who]) | took)
    return rows


def main() -> None:
    """Ask who is named, evaluate everybody, and save."""
    parser = argparse.ArgumentParser(
        description="Ask packages, and evaluate their answers."
    )
    parser.add_argument("packages", nargs="*", default=list(RIVALS))
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    given = parser.parse_args()
    checks.one_of("package", given.packages, (*RIVALS, JUDGE))
    checks.one_of("problem", given.problems, tuple(PROBLEMS))
    checks.one_of("seed", given.seeds, SEEDS)
    packages = [name for name in given.packages if name != JUDGE]
    rows: list[dict[str, Any]] = []
    for name in given.problems:
        if name == "GMSC" and gmsc.find() is None:
            print(f"Left out: {gmsc.HOW_TO_GET_IT}")
            continue
        asked = PROBLEMS[name]()
        export(asked, FOLDER / name)
        wanted = runs(asked, packages, given.seeds)
        for run in ((OURS, SEARCH, 0), (OURS, PRINTED, 0)):  # beside which others stand
            if not (FOLDER / name / "{}_{}_{}.json".format(*run)).exists():
                wanted = list(dict.fromkeys([run, *wanted]))
        for package, _, _ in wanted:
            environment(package)
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(ask, asked, *run) for run in wanted]:
                future.result()
        rows += rows_of(asked)
    table = pd.DataFrame(rows)
    if PATH.exists():  # what was not asked anew stays
        old = pd.read_csv(PATH)
        is_new = pd.MultiIndex.from_frame(old[KEY]).isin(
            pd.MultiIndex.from_frame(table[KEY])
        )
        table = pd.concat([table, old[~is_new]])
    table.to_csv(PATH, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
