"""Fit what notebook 09 starts from, and hold HARE's dialogues; called by the Snakefile.

`python workflow/hare.py SIZE JOB`

JOB is hare (Adult and COMPAS) or gmsc_hare (Give Me Some Credit). It
leaves, in the folder of models, JOB.safetensors (classifiers and
autoencoders), JOB_as_published.csv (what the loop comes to in every
setting of the paper's tables) and JOB_own_ideals.csv.
params/SIZE/networks.yaml says how many seeds and people.
"""

import lib.pinned

from collections.abc import Mapping
from typing import Any

import pandas as pd
from jobs import run

from lib.base import progress
from lib.base.files import inside
from lib.problem import gmsc_data, tabular
from lib.problem.tabular import Tabular
from lib.solvers import fitted
from lib.studies import hare_tables

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


JOBS = {"hare": hare, "gmsc_hare": gmsc_hare}

if __name__ == "__main__":
    run(JOBS)
