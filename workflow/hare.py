"""Fit what notebook 09 starts from, and hold HARE's dialogues; called by the Snakefile.

`python workflow/hare.py SIZE JOB`

JOB is hare (Adult and COMPAS) or gmsc_hare (Give Me Some Credit). It
leaves, in the folder of models, JOB.safetensors (classifiers and
autoencoders), JOB_as_published.csv (what the loop comes to in every
setting of the paper's tables) and JOB_own_ideals.csv.
params/SIZE/networks.yaml says how many seeds and people.
"""

import lib.reproducible

from collections.abc import Mapping
from typing import Any

import pandas as pd
from jobs import run

from lib import io
from lib.beyond.hare import fitted, hare_tables, tabular
from lib.beyond.hare.tabular import Tabular
from lib.io import inside
from lib.paper import gmsc

# how far ideals of people's own are, and how often an answer about them is wrong
OWN_IDEALS = (("far", 0.0), ("far", 0.1))


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
    path = gmsc.find()
    if path is None:
        print(f"{name}: left out, without the data. {gmsc.HOW_TO_GET_IT}", flush=True)
    _hare({} if path is None else {"credit": tabular.credit(path)}, given, name)


def _hare(tables: Mapping[str, Tabular], given: Mapping[str, Any], name: str) -> None:
    """Save what is fitted to data sets, and the results of both protocols."""
    folder = inside(given["models"])
    seeds, n_people = given["hare_seeds"], given["hare_people"]
    models = {}
    results: dict[str, list[pd.DataFrame]] = {"as_published": [], "own_ideals": []}
    for key, table in tables.items():
        models[key] = fitted.fit_all(table, seeds, io.progress_bar(f"{name}, {key}"))
        for kind, seed in models[key].classifiers:
            rows = hare_tables.as_published(table, models[key], kind, seed, n_people)
            results["as_published"].append(rows)
        for seed in seeds:
            for scale, flips in OWN_IDEALS:
                how = (seed, n_people, scale, flips)
                rows = hare_tables.own_ideals(table, models[key], *how)
                results["own_ideals"].append(rows)
    for what, tables_of_results in results.items():
        joined = pd.concat(tables_of_results) if tables_of_results else pd.DataFrame()
        as_csv = joined.to_csv(index=False, float_format="%.9g")
        io.write(folder / f"{name}_{what}.csv", as_csv)
    made_with = {"n_people": n_people, "seeds": list(seeds)}
    fitted.save(folder, name, models, tables, made_with)


JOBS = {"hare": hare, "gmsc_hare": gmsc_hare}

if __name__ == "__main__":
    run(JOBS)
