"""What people would install today, on the same people as ours: `benchmarks/rivals.py`.

    .venv/bin/python benchmarks/rivals.py             everything, an hour of two cores
    .venv/bin/python benchmarks/rivals.py dice-ml     one package is asked anew
    .venv/bin/python benchmarks/rivals.py judge       none is: their answers are evaluated

500 refused test people of Loan and of Give Me Some Credit; for each of them a number of
features is drawn that they may act on. Each package gets an environment of its own,
runs/rivals/PACKAGE, from the pinned benchmarks/rivals/PACKAGE.txt, and answers through its
own interface (benchmarks/rivals/ask_PACKAGE.py): with its documented defaults ("default"),
and with the seconds a person that our search takes, up to one, where that is more
("budget"). It gets which features a person may set, and between what values, if its
interface has that. "ours" stands for this repository: its solvers, CARMA, and four of the
generators that the HARE paper begins at. A method that needs more than five minutes is
evaluated on the people that it came to.

An answer is evaluated twice. As a profile: is it valid, and as plausible as before by our
flow? And as an action: each actionable feature that differs is set, the downstream effects
follow, and classifier and density are asked again, in the true SCM of Loan, and in three
other flows for real applicants. An action on what a person can't do helps nobody.

The result is benchmarks/rivals.csv, a row for each problem, people ("all", or "open": who
may act on every feature), package, method and effort. Differences are to our search with a
margin, on the same people, with two standard errors. Without the data (docs/run.md)
Give Me Some Credit is left out.
"""

import lib.reproducible

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.io import MODELS, ROOT
from lib.method import flow as flows
from lib.method import loan
from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, is_plausible, is_valid
from lib.paper import designs, estimates, gmsc

HERE = Path(__file__).parent / "rivals"
FOLDER = ROOT / "runs" / "rivals"
PATH = Path(__file__).with_suffix(".csv")
N_PEOPLE, N_TRAIN, SEED = 500, 10_000, 1
SETTING = "random"  # of table 1: how many features a person may act on is drawn
FAR = 1e-4  # standard deviations: more than rounding moves a value
OURS, REFERENCE, JUDGE = "ours", "search, margin", "judge"
RIVALS: dict[str, tuple[str, ...]] = {
    OURS: (
        REFERENCE,
        "search",
        "grid",
        "proposer",
        "proposer, margin",
        "proposer, unwalked",
        "iCARMA as printed",
        "iCARMA as chosen",
        "iCARMA as chosen, pruned",
        "CARMA",
        "Wachter",
        "growing spheres",
        "FACE",
        "C-CHVAE",
    ),
    "dice-ml": ("random", "genetic", "gradient"),
    "ellice": ("continuous", "data_supported"),
    "alibi": ("CFRL",),
    "ce-library": ("PPCEF",),
    "carla-recourse": ("Wachter",),
}
ALL_APPLICANTS = 120_269
MOST_SECONDS = 1.0  # a person, of a budget
# answers that are evaluated once more, cut to what each person may set
CUT = {("ce-library", "PPCEF"): "PPCEF, cut"}
OTHER = "iCARMA as printed"  # differences to it are stored, too
LOAN_ALONE = ("CARMA",)  # which is trained for Loan alone
# whose effort for a person can be set
BUDGETED = ("random", "genetic", "gradient", "continuous")
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


def read(asked: Asked, path: Path, is_cut: bool = False) -> Answers:
    """Return what a method left; a difference by rounding is no change.

    Arguments:
        is_cut: Whether profiles are cut to what each person may set.
    """
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
    if is_cut:
        low, high = limits(asked)
        differs &= low < high
        x_cf = torch.where(differs, profiles.maximum(low).minimum(high), asked.x)
    names = [f"sets {name}" for name in population.actionable]
    is_action = names[0] in table
    is_acted[:, columns] = (
        torch.tensor(table[names].fillna(0).to_numpy() > 0)
        if is_action
        else differs[:, columns]
    )
    return Answers(x_cf, is_acted, has_profile & differs.any(-1), was_asked, is_action)


def evaluate(asked: Asked, answers: Answers) -> pd.DataFrame:
    """Return how good answers are, as profiles and as actions, a row a person.

    Columns: answered; valid, plausible and joint, as a profile; forbidden: it changes what
    the person can't, or beyond their limits; impossible: nobody can be so; carried: the
    share of causal models in which carrying it out helps them; "bank says no", "too rare":
    the shares in which it does not; "profile there": the share in which the profile itself
    is accepted and as plausible; "lost", "won": the shares in which carrying it out takes
    that away, and brings it; cost; features. Empty for who was not reached.
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
    names = ("carried", "bank says no", "too rare", "profile there", "lost", "won")
    by_model: dict[str, list[Tensor]] = {name: [] for name in names}
    for model in asked.models.values():
        after = model.counterfactual(x, is_acted, values)
        after = population.round_counterfactual(x, after)
        is_yes = problem.accepts(after)
        is_seen = is_plausible(model.log_prob(after) - model.log_prob(x))
        is_good = valid & is_plausible(model.log_prob(x_cf) - model.log_prob(x))
        by_model["profile there"].append(is_good)
        by_model["lost"].append(is_good & ~(is_yes & is_seen))
        by_model["won"].append(has & ~is_good & is_yes & is_seen)
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
    mine: pd.DataFrame, best: pd.DataFrame, others: Mapping[str, pd.DataFrame]
) -> dict[str, float]:
    """Return shares, means over who is helped, and differences to the search and to others.

    Arguments:
        mine, best: As `evaluate` gives them, of the method and the search.
        others: The same, by what they are called.
    """
    shares = ["answered", "valid", "plausible", "joint", "forbidden", "impossible"]
    shares += ["carried", "bank says no", "too rare", "profile there", "lost", "won"]
    shares += [name for name in mine if name.startswith("carried: ")]
    row = mine[shares].mean().to_dict()
    for name, other in others.items():
        than = estimates.ratio((mine.carried - other.carried).to_numpy())
        row |= {f"more than {name}": than.value, f"{name}, 2 s.e.": 2 * than.se_people}
    more = estimates.ratio((mine.carried - best.carried).to_numpy())
    row |= {"more than the search": more.value, "2 s.e.": 2 * more.se_people}
    is_helped = mine.carried > 0
    row |= mine[is_helped][["cost", "features"]].mean().to_dict()
    both = (is_helped & (best.carried > 0)).to_numpy() * 1.0
    if both.sum() > 1:
        costs = (people.cost.to_numpy() * both for people in (mine, best))
        times = estimates.ratio(*costs)
        row |= {"cost ratio": times.value, "cost ratio, 2 s.e.": 2 * times.se_people}
    return row


def environment(package: str) -> Path:
    """Return the Python of a package's own environment, made if its pins are new.

    Raises: RuntimeError: it does not install; says why.
    """
    if package == OURS:
        return Path(sys.executable)
    folder, pins = FOLDER / package, HERE / f"{package}.txt"
    kept, python = folder / "pins.txt", folder / "bin" / "python"
    if kept.exists() and kept.read_text(encoding="utf-8") == pins.read_text(
        encoding="utf-8"
    ):
        return python
    print(f"{package}: an environment of its own ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    pip = ["-m", "pip", "install", "--quiet", "--no-compile", "-r", str(pins)]
    for command in ([sys.executable, "-m", "venv", str(folder)], [str(python), *pip]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.splitlines()
            wrong = [line for line in lines if re.match(r" *(ERROR|\w+Error):", line)]
            raise RuntimeError((wrong or lines or ["?"])[-1].strip())
    shutil.copy(pins, kept)
    return python


def ask(package: str, method: str, folder: Path, seconds: float | None = None) -> float:
    """Let a method answer everybody of a folder; return the seconds of one alone.

    Answers lie in the folder then, and what they took, or the error.

    Arguments:
        seconds: That a person may take; None: the package's defaults.
    """
    effort, budget = ("default", "default") if seconds is None else ("budget", f"{seconds}")
    stem = f"{package}_{method}_{effort}"
    wrong, output = "", ""
    try:
        program = str(HERE / f"ask_{package}.py")
        command = [str(environment(package)), program, str(folder), method, budget]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT
        )
        output = (done.stdout + done.stderr).strip()
        if done.returncode:
            wrong = (output.splitlines() or [f"exit {done.returncode}"])[-1]
    except RuntimeError as error:
        wrong = str(error)
    (folder / f"{stem}.log").write_text(output, encoding="utf-8")
    if wrong:
        (folder / f"{stem}.json").write_text(json.dumps({"error": wrong}), encoding="utf-8")
        return np.inf
    return float(took(folder, package, method, effort)["alone_s"])


def took(folder: Path, package: str, method: str, effort: str) -> dict[str, Any]:
    """Return what a method took, or its error; nothing if it was not asked."""
    path = folder / f"{package}_{method}_{effort}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def ask_all(asked: Asked, packages: Sequence[str], folder: Path) -> None:
    """Ask packages, two methods at a time: by their defaults, and within a budget."""
    export(asked, folder)
    known = {} if OURS in packages else took(folder, OURS, REFERENCE, "default")
    alone = known["alone_s"] if known else ask(OURS, REFERENCE, folder)
    seconds = min(alone, MOST_SECONDS)

    def ask_one(package: str, method: str) -> None:
        if (package, method) == (OURS, REFERENCE):
            return
        print(f"{asked.name}: {package}, {method}", flush=True)
        alone = ask(package, method, folder)
        if package != OURS and method in BUDGETED and alone < seconds:
            ask(package, method, folder, seconds)

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(ask_one, *pair) for pair in pairs(asked, packages)]:
            one.result()


def pairs(asked: Asked, packages: Sequence[str]) -> list[tuple[str, str]]:
    """Return packages and their methods that a problem has."""
    return [
        (package, method)
        for package in packages
        for method in RIVALS[package]
        if asked.name == "Loan" or method not in LOAN_ALONE
    ]


def rows_of(asked: Asked, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each method, effort and group of people.

    Raises: ValueError: somebody was not asked.
    """

    def of(
        package: str, method: str, effort: str = "default", cut: bool = False
    ) -> pd.DataFrame:
        path = folder / f"{package}_{method}_{effort}.csv"
        return evaluate(asked, read(asked, path, cut))

    best, other = of(OURS, REFERENCE), of(OURS, OTHER)
    is_open, rows = asked.preferences.is_actionable.all(-1).numpy(), []
    for package, method in pairs(asked, tuple(RIVALS)):
        for effort in ("default", "budget"):
            cost = took(folder, package, method, effort)
            if not cost and effort == "default":
                raise ValueError(f"{package} was not asked: benchmarks/rivals.py {package}")
            key: dict[str, Any] = {"problem": asked.name, "package": package}
            key |= {"method": method, "effort": effort}
            if "error" in cost:
                rows.append(key | {"people": "all"} | cost)
            if "alone_s" not in cost:
                continue
            evaluated = {method: of(package, method, effort)}
            if (package, method) in CUT:
                evaluated[CUT[package, method]] = of(package, method, effort, cut=True)
            for name, mine in evaluated.items():
                others = {"iCARMA": other}
                if effort == "budget":
                    others["default"] = of(package, method)
                for people, counted in (("all", is_open | ~is_open), ("open", is_open)):
                    who = counted & mine["answered"].notna().to_numpy()
                    who &= others.get("default", mine)["answered"].notna().to_numpy()
                    here = key | {"method": name, "people": people, "n": int(who.sum())}
                    compared = {what: table[who] for what, table in others.items()}
                    rows.append(here | summary(mine[who], best[who], compared) | cost)
    return rows


def main() -> None:
    """Ask who is named, evaluate everybody, and save."""
    named = sys.argv[1:] or list(RIVALS)
    checks.one_of("package", named, (*RIVALS, JUDGE))
    packages = [name for name in named if name != JUDGE]
    rows: list[dict[str, Any]] = []
    for name, make in PROBLEMS.items():
        if name == "GMSC" and gmsc.find() is None:
            print(f"Left out: {gmsc.HOW_TO_GET_IT}")
            continue
        asked, folder = make(), FOLDER / name
        if packages:
            ask_all(asked, packages, folder)
        rows += rows_of(asked, folder)
    table = pd.DataFrame(rows)
    if PATH.exists():  # of a problem that is left out
        old = pd.read_csv(PATH)
        table = pd.concat([table, old[~old["problem"].isin(table["problem"])]])
    table.to_csv(PATH, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
