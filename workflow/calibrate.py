"""Choose what the paper's text has lost, by the declared cells: an hour or two of one core.

    python workflow/calibrate.py [FOLDER]

params/calibration.yaml holds the candidates and the cells, and is the
only file with published numbers that is opened. calibrated.yaml (what
was chosen) and calibration_trials.csv (all that was tried) are written
to FOLDER, by default params, after each stage. Started again, it goes
on after the last stage that is there, as long as the candidates are
the same; remove the two files to run all of it again.
"""

import lib.reproducible

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import yaml

from lib import io
from lib.io import MODELS, PARAMS
from lib.method import loan
from lib.method.data import Population
from lib.method.flow import CausalFlow
from lib.method.preferences import Profile
from lib.method.problem import Problem
from lib.paper import calibration
from lib.paper.calibration import Reading

FIELDS = [field.name for field in fields(Reading)]


def digest(given: Mapping[str, Any]) -> str:
    """Return a digest of the candidates, by which trials are known to be of them."""
    as_json = json.dumps(given, sort_keys=True)
    return hashlib.sha256(as_json.encode()).hexdigest()[:16]


class Record:
    """Hold all that was tried, and what was chosen, in a folder.

    A stage that is there already is not run again. Numbers have six
    digits after the point, whether they are read or new.

    Arguments:
        folder: For calibrated.yaml and calibration_trials.csv.
        given: The contents of params/calibration.yaml.
    """

    def __init__(self, folder: Path, given: Mapping[str, Any]) -> None:
        self.trials, self.choices = (
            folder / name for name in ("calibration_trials.csv", "calibrated.yaml")
        )
        self.given, self.chosen = given, {"candidates": digest(given)}
        self.known: dict[str, pd.DataFrame] = {}
        self.fitted: dict[Any, dict[str, float]] = {}
        if not (self.trials.is_file() and self.choices.is_file()):
            return
        if io.load_yaml(self.choices)["candidates"] == self.chosen["candidates"]:
            for stage, rows in pd.read_csv(self.trials).groupby("stage", sort=False):
                rows = rows.drop(columns="stage").dropna(axis=1, how="all")
                self.known[str(stage)] = rows.reset_index(drop=True)

    def rows(self, stage: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return the rows of a stage, which are made unless they are known."""
        if stage not in self.known:
            self.known[stage] = make().round(6).reset_index(drop=True)
            parts = [rows.assign(stage=name) for name, rows in self.known.items()]
            table = pd.concat(parts, ignore_index=True)
            table.insert(0, "stage", table.pop("stage"))
            table.to_csv(self.trials, index=False)
            self.choose()
        print(f"{stage}: {len(self.known[stage])} rows", flush=True)
        return self.known[stage]

    def networks(
        self,
        stage: str,
        problems: Mapping[str, Problem],
        readings: Sequence[Reading],
        shape: Mapping[str, Any],
        seeds: Sequence[int],
    ) -> pd.DataFrame:
        """Return the rows of networks of some readings, as `rows` does."""
        how = (shape, seeds, self.given, self.fitted)
        return self.rows(stage, lambda: calibration.networks(problems, readings, *how))

    def choose(self, **choices: Any) -> None:
        """Save what was chosen so far."""
        self.chosen |= {
            name: value.item() if hasattr(value, "item") else value
            for name, value in choices.items()
        }
        self.choices.write_text(yaml.safe_dump(self.chosen, sort_keys=False))


def main(folder: Path) -> None:
    """Run all of it for the Loan population."""
    population = loan.population()
    flow = CausalFlow.load(MODELS, "loan_flow", population.fingerprint)
    with dask.config.set(scheduler="processes", chunksize=1):
        run(population, flow, io.load_yaml(PARAMS / "calibration.yaml"), folder)


def run(
    population: Population, flow: CausalFlow, given: Mapping[str, Any], folder: Path
) -> None:
    """Run the three stages, and save what they chose and all that they tried.

    Arguments:
        given: The contents of params/calibration.yaml.
        folder: For calibrated.yaml and calibration_trials.csv.
    """
    record = Record(folder, given)
    rows = record.rows("banks", lambda: calibration.banks(population, flow, given))
    n_people = len(population.x["recourse/validation"]) // 2  # so many are refused
    how = {"n_people": n_people, "spread": given["spread"]}
    cells = given["cells"]
    best = calibration.mean_over(rows, ["bank", "grid"], cells["bank"], **how)
    tie = given["tie"]
    print(best.to_string(), flush=True)
    best["optimiser"] = [given["banks"][name]["optimiser"] for name in best.bank]
    of_each = best.drop_duplicates("bank").groupby("optimiser", sort=False)
    kept = of_each.head(given["n_banks"])
    grids = {row.bank: given["grids"][row.grid] for row in kept.itertuples()}
    record.choose(grids=grids)
    problems = {
        name: calibration.fit_problem(population, flow, 0, **given["banks"][name])
        for name in grids
    }
    printed = kept[kept.optimiser == given["optimiser"]].bank
    nearest, others = printed.iloc[0], [name for name in grids if name not in [*printed]]
    first, bar = problems[nearest], io.progress_bar("shapes")
    rows = record.rows(
        "shapes", lambda: calibration.shapes(first, grids[nearest], given, bar)
    )
    best = calibration.nearest(rows, tie)
    print(best.head(8).to_string(), flush=True)
    shape = best[["shape", "gamma", "w_max"]].astype(object).iloc[0].to_dict()
    record.choose(**shape)
    of_printed = {name: problems[name] for name in printed}
    best, rows = _best_readings(of_printed, shape, given, record, how)
    more = record.networks("more seeds", of_printed, best, shape, given["more_seeds"])
    all_seeds = pd.concat([rows, more])
    is_best = all_seeds[FIELDS].apply(tuple, axis=1).isin([*map(astuple, best)])
    best = calibration.mean_over(all_seeds[is_best], FIELDS, cells["networks"], **how)
    best = calibration.nearest(best, tie)
    print(best.to_string(), flush=True)
    chosen = Reading(*best[FIELDS].iloc[0])
    record.choose(**vars(chosen), classifier=given["banks"][chosen.bank])
    problem, linear = problems[chosen.bank], Profile(1.0, shape["w_max"], shape["shape"])
    rows = record.rows("scores", lambda: calibration.scores(problem, chosen, given, linear))
    best = calibration.mean_over(rows, ["w_max"], cells["scores"], **how)
    best = calibration.nearest(
        best.sort_values("w_max", key=lambda w: w != linear.w_max), tie
    )
    print(best.to_string(), flush=True)
    record.choose(w_max_scores=best.w_max.iloc[0])
    departures = [replace(chosen, bank=name) for name in others]
    seeds = [*given["seeds"], *given["more_seeds"]]
    record.networks("another optimiser", problems, departures, shape, seeds)


def _best_readings(
    problems: Mapping[str, Problem],
    shape: Mapping[str, Any],
    given: Mapping[str, Any],
    record: Record,
    how: Mapping[str, Any],
) -> tuple[list[Reading], pd.DataFrame]:
    """Return the readings that come nearest, the nearest first, and rows of all tried.

    First the form, the bank and the priors are tried; then, for the
    three best pairs of bank and form, how the prior follows from the
    weight; then, of the two best readings so far, how the constant
    profile and the reduction of the mask's term are read, and so for
    what the third edition took; then the widths, the rate and the
    decay. What won last is then given to every bank and
    form, with every prior of the constant profile.

    Arguments:
        problems: Of the classifiers that the optimiser of the paper
            trains, by name.
    """
    seen: list[Reading] = []
    rows: list[pd.DataFrame] = []

    def tried(stage: str, readings: Iterable[Reading]) -> list[Reading]:
        new = [reading for reading in dict.fromkeys(readings) if reading not in seen]
        seen.extend(new)
        if new:
            seeds = given["seeds"]
            rows.append(record.networks(stage, problems, new, shape, seeds))
        cells = given["cells"]["networks"]
        best = calibration.mean_over(pd.concat(rows), FIELDS, cells, **how)
        print(best.head(8).to_string(), flush=True)
        return [Reading(*row) for row in best[FIELDS].itertuples(index=False)]

    others = {
        "width": given["widths"][0],
        "learning_rate": given["learning_rates"][0],
        "weight_decay": given["weight_decays"][0],
        "prior": given["prior_shapes"][0],
        "mask": given["masks"][0],
        "constant_sees": given["constant_sees"][0],
    }
    first = product(
        problems, given["plausibility"], given["priors"], given["constant_priors"]
    )
    best = tried(
        "form, bank, priors",
        [
            Reading(bank, form, p_max, p_min, constant_prior=constant, **others)
            for bank, form, (p_max, p_min), constant in first
        ],
    )
    pairs = list(dict.fromkeys((one.bank, one.plausibility) for one in best))[:3]
    some = [one for one in best if (one.bank, one.plausibility) in pairs]
    both = product(some, given["prior_shapes"])
    best = tried("prior", [replace(one, prior=prior) for one, prior in both])
    fields = ("constant_prior", "mask", "constant_sees")
    every = list(product(given["constant_priors"], given["masks"], given["constant_sees"]))
    for stage, some in {
        "constant profile, reduction": best[:2],
        "the same, from the third edition": [Reading(**given["third_edition"])],
    }.items():
        best = tried(
            stage,
            [
                replace(one, **dict(zip(fields, values, strict=True)))
                for one, values in product(some, every)
                if one.bank in problems
            ],
        )
    both = product(best[:2], given["widths"])
    best = tried("width", [replace(one, width=width) for one, width in both])
    rates = product(best[:2], given["learning_rates"], given["weight_decays"])
    best = tried(
        "rate, decay",
        [
            replace(one, learning_rate=rate, weight_decay=decay)
            for one, rate, decay in rates
        ],
    )
    forms = product(problems, given["plausibility"], given["constant_priors"])
    best = tried(
        "same chance",
        [
            replace(best[0], bank=bank, plausibility=form, constant_prior=prior)
            for bank, form, prior in forms
        ],
    )
    return best[: given["n_best"]], pd.concat(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PARAMS)
