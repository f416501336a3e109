"""Choose what the paper's text has lost, by the declared cells: half an hour on one core.

    python workflow/calibrate.py [FOLDER]

params/calibration.yaml holds the candidates and the cells, and is the
only file with published numbers that is opened. calibrated.yaml (what
was chosen) and calibration_trials.csv (all that was tried) are written
to FOLDER, by default params, after each stage.
"""

import lib.pinned

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lib.base import files, progress
from lib.base.files import MODELS, PARAMS
from lib.method import loan
from lib.method.flow import CausalFlow
from lib.method.population import Population
from lib.method.problem import Problem
from lib.paper import calibration
from lib.paper.calibration import Reading

FIELDS = [own.name for own in fields(Reading)]


def main(folder: Path) -> None:
    """Run all of it for the Loan population."""
    population = loan.population()
    flow = CausalFlow.load(MODELS, "loan_flow", population.fingerprint)
    run(population, flow, files.entries(PARAMS / "calibration.yaml"), folder)


def run(
    population: Population, flow: CausalFlow, given: Mapping[str, Any], folder: Path
) -> None:
    """Run the three stages, and save what they chose and all that they tried.

    Arguments:
        given: The contents of params/calibration.yaml.
        folder: For calibrated.yaml and calibration_trials.csv.
    """
    trials: list[pd.DataFrame] = []
    chosen: dict[str, Any] = {}

    def keep(stage: str, rows: pd.DataFrame, **found: Any) -> None:
        trials.append(rows.assign(stage=stage))
        plain = {k: v.item() if hasattr(v, "item") else v for k, v in found.items()}
        chosen.update(plain)
        table = pd.concat(trials, ignore_index=True).round(6)
        table.insert(0, "stage", table.pop("stage"))
        table.to_csv(folder / "calibration_trials.csv", index=False)
        text = yaml.safe_dump(chosen, sort_keys=False)
        (folder / "calibrated.yaml").write_text(text)
        print(f"{stage}: {plain}", flush=True)

    rows = calibration.banks(population, flow, given, progress.bar("banks"))
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
    keep("banks", rows, grids=grids)
    problems = {
        name: calibration.bank(population, flow, 0, **given["banks"][name])
        for name in grids
    }
    nearest = kept.bank.iloc[0]
    bar = progress.bar("shapes")
    rows = calibration.shapes(problems[nearest], grids[nearest], given, bar)
    best = calibration.nearest(rows, tie)
    print(best.head(8).to_string(), flush=True)
    shape = best[["shape", "gamma", "w_max"]].astype(object).iloc[0].to_dict()
    keep("shapes", rows, **shape)
    best, rows = _best_readings(problems, shape, given, keep, how)
    bar, seeds = progress.bar("more seeds"), given["more_seeds"]
    more = calibration.networks(problems, best, shape, seeds, given, bar)
    keep("more seeds", more)
    all_seeds = pd.concat([rows, more])
    is_best = all_seeds[FIELDS].apply(tuple, axis=1).isin([*map(astuple, best)])
    best = calibration.mean_over(all_seeds[is_best], FIELDS, cells["networks"], **how)
    best = calibration.nearest(best, tie)
    print(best.to_string(), flush=True)
    keep("chosen", best, **best[FIELDS].astype(object).iloc[0].to_dict())


def _best_readings(
    problems: Mapping[str, Problem],
    shape: Mapping[str, Any],
    given: Mapping[str, Any],
    keep: Callable[..., None],
    how: Mapping[str, Any],
) -> tuple[list[Reading], pd.DataFrame]:
    """Return the readings that come nearest, the nearest first, and rows of all tried.

    First the form, the bank and the priors are tried; then, for the
    three best pairs of bank and form, how the prior follows from the
    weight; then, of the two best readings so far, the widths, the
    rate and the decay.
    """
    seen: list[Reading] = []
    rows: list[pd.DataFrame] = []

    def tried(stage: str, readings: Iterable[Reading]) -> list[Reading]:
        new = [own for own in dict.fromkeys(readings) if own not in seen]
        if new:
            bar, seeds = progress.bar(stage), given["seeds"]
            rows.append(calibration.networks(problems, new, shape, seeds, given, bar))
            seen.extend(new)
            keep(stage, rows[-1])
        cells = given["cells"]["networks"]
        best = calibration.mean_over(pd.concat(rows), FIELDS, cells, **how)
        print(best.head(8).to_string(), flush=True)
        return [Reading(*own) for own in best[FIELDS].itertuples(index=False)]

    others = {
        "width": given["widths"][0],
        "learning_rate": given["learning_rates"][0],
        "weight_decay": given["weight_decays"][0],
        "prior": given["prior_shapes"][0],
    }
    first = product(problems, given["plausibility"], given["priors"])
    best = tried(
        "form, bank, priors",
        [Reading(bank, form, *prior, **others) for bank, form, prior in first],
    )
    pairs = list(dict.fromkeys((own.bank, own.plausibility) for own in best))[:3]
    some = [own for own in best if (own.bank, own.plausibility) in pairs]
    each = product(some, given["prior_shapes"])
    best = tried("prior", [replace(own, prior=prior) for own, prior in each])
    each = product(best[:2], given["widths"])
    best = tried("width", [replace(own, width=width) for own, width in each])
    every = product(best[:2], given["learning_rates"], given["weight_decays"])
    best = tried(
        "rate, decay",
        [
            replace(own, learning_rate=rate, weight_decay=decay)
            for own, rate, decay in every
        ],
    )
    return best[: given["n_best"]], pd.concat(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PARAMS)
