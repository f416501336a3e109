"""Fit what notebook 09 starts from, and hold HARE's dialogues; called by the Snakefile.

`python workflow/hare.py SIZE JOB`

JOB is hare (Adult and COMPAS) or gmsc_hare (Give Me Some Credit). It
leaves, in the folder of models, JOB.safetensors (classifiers and
autoencoders), JOB_as_published.csv (what the loop comes to in every
setting of the paper's tables) and JOB_own_ideals.csv.
params/SIZE/networks.yaml says how many seeds and people.
"""

import lib.pinned

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from jobs import run

from lib.base import files, fits, progress
from lib.base.files import inside
from lib.beyond.hare import fitted, hare_tables, tabular
from lib.beyond.hare.tabular import Tabular
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
    """Save what is fitted to data sets, and the results of both protocols.

    The fits take seconds each and are repeated by a job that goes on;
    what is kept are the results, classifier by classifier.
    """
    folder, seeds, n_people = (
        inside(given["models"]),
        given["hare_seeds"],
        given["hare_people"],
    )
    models = {
        table: fitted.fit_all(own, seeds, progress.bar(f"{name}, {table}"))
        for table, own in tables.items()
    }
    parts: list[tuple[str, Callable[[], pd.DataFrame]]] = []
    for key, table in tables.items():
        own = models[key]
        for kind, seed in own.classifiers:
            how = partial(hare_tables.as_published, table, own, kind, seed, n_people)
            parts.append(("as_published", how))
        for seed in seeds:
            for scale, flips in OWN_IDEALS:
                how = partial(
                    hare_tables.own_ideals, table, own, seed, n_people, scale, flips
                )
                parts.append(("own_ideals", how))
    live = fits.Live()
    bar = progress.bar(f"{name}: tables")
    for i in fits.steps(
        len(parts), live, partial(_inputs, tables, given), given["partial"], name, bar
    ):
        live.rows.append(parts[i][1]().to_csv(index=False, float_format="%.9g"))
    for what in ("as_published", "own_ideals"):
        found = [rows for (of, _), rows in zip(parts, live.rows, strict=True) if of == what]
        files.write(folder / f"{name}_{what}.csv", _joined(found))
    made_with = {"n_people": n_people, "seeds": list(seeds)}
    fitted.save(folder, name, models, tables, made_with)


def _inputs(tables: Mapping[str, Tabular], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the results depend on, beside this program and what it imports."""
    people = {
        f"{what} of {key}, {split}": part
        for key, table in tables.items()
        for what, parts in (("x", table.x), ("y", table.y))
        for split, part in parts.items()
    }
    own = {key: given[key] for key in ("hare_seeds", "hare_people")}
    return people | own


def _joined(tables: Sequence[str]) -> str:
    """Return tables with the same columns as one, each of them as CSV."""
    if not tables:
        return pd.DataFrame().to_csv(index=False)
    return tables[0] + "".join(table.partition("\n")[2] for table in tables[1:])


JOBS = {"hare": hare, "gmsc_hare": gmsc_hare}

if __name__ == "__main__":
    run(JOBS)
