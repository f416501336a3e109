"""Refit SIMULATED answers for notebook 10; called by the Snakefile.

`python workflow/willingness.py SIZE willingness`

It leaves, in the folder of models, willingness_latent.csv (what
answers are drawn from) and willingness.csv (what the model finds in
them). params/SIZE/networks.yaml says how many data sets.
"""

import lib.reproducible

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeAlias

import pandas as pd
from jobs import run

from lib import io
from lib.beyond.evaluation import gamm, refits
from lib.beyond.evaluation.refits import Sample
from lib.beyond.evaluation.willingness import FLAT, MIDDLE, POOLS, SHAPES, Latent, Pool
from lib.io import inside

ACCEPTANCE, ACTION = refits.printed(1), refits.printed(3)  # by number of changes
FALLS = (0.2, 0.3, 0.4, 0.6)  # points from 1 change to 9: can the test see them?
NOT_CURVE = ("intercept", "edf_intercepts", "edf_slopes", "sigma2")
TERMS: dict[str, dict[str, bool]] = {  # models whose test may be wrong about no effect
    "full": {},
    "no slopes": {"slopes": False},
    "all people alike": {"slopes": False, "intercepts": False},
}

Found: TypeAlias = tuple[Latent, pd.DataFrame]  # and a row for each quantity of its refits


class Job:
    """What the settings of the job share.

    Arguments:
        n_datasets: How many each study takes, by its name.
        seed: Of all draws.
    """

    def __init__(self, n_datasets: Mapping[str, int], seed: int) -> None:
        self.n_datasets, self.seed = n_datasets, seed

    def drawn(self, study: str, pool: Pool, **terms: bool) -> list[Sample]:
        """Return what people were shown in the data sets of a study."""
        return refits.samples(pool, self.n_datasets[study], self.seed + 1, **terms)

    def tried(self, study: str, pool: Pool) -> list[Sample]:
        """Return other draws, for calibration."""
        n = min(refits.N_COMMON, self.n_datasets[study])
        return refits.samples(pool, n, self.seed)

    def settings(self) -> Iterator[tuple[dict[str, str], Callable[[], Found]]]:
        """Yield names of each setting, and what works it out."""
        for pool in POOLS:
            for shape in SHAPES:
                names = {"study": "family", "pool": pool, "shape": shape}
                yield names, partial(self.family, POOLS[pool], shape)
        for model, shape in ((ACTION, MIDDLE), (ACCEPTANCE, FLAT)):
            names = {"study": "refit", "pool": "middle", "shape": shape}
            yield names, partial(self.refit, model, shape)
        for shape in ("line", MIDDLE):
            for fall in FALLS:
                names = {"study": "power", "pool": "middle", "shape": shape}
                names["setting"] = f"{fall:g}"
                yield names, partial(self.power, shape, fall)
        for terms in TERMS:
            names = {"study": "size", "pool": "middle", "shape": FLAT, "setting": terms}
            yield names, partial(self.size, TERMS[terms])

    def family(self, pool: Pool, shape: str) -> Found:
        """Return a curve with the printed F, and what else its refits have."""
        tried = self.tried("family", pool)
        start = replace(of_print(ACTION, tried), shape=shape, amplitude=1.0)
        latent = refits.calibrated(ACTION, start, tried, self.seed, ["F_smooth"], False)
        return self.exact(latent, self.drawn("family", pool))

    def refit(self, model: refits.Printed, shape: str) -> Found:
        """Return what whole points are drawn from to be refitted as printed."""
        pool = POOLS["middle"]
        tried = self.tried("refit", pool)
        start, moved = of_print(model, tried), list(NOT_CURVE)
        if shape != FLAT:
            start = replace(start, shape=shape, amplitude=1.0)
            moved.append("F_smooth")
        latent = refits.calibrated(model, start, tried, self.seed, moved)
        rows = refits.refits(
            latent, self.drawn("refit", pool), self.seed + 2, tested=gamm.TERMS
        )
        return summarised(latent, rows)

    def power(self, shape: str, fall: float) -> Found:
        """Return what is seen of a curve that falls by so many points."""
        pool = POOLS["middle"]
        latent = of_print(ACCEPTANCE, self.tried("power", pool))
        latent = replace(latent, shape=shape, amplitude=fall)
        return self.exact(latent, self.drawn("power", pool))

    def size(self, terms: Mapping[str, bool]) -> Found:
        """Return what a model with these terms sees where there is nothing to see."""
        pool = POOLS["middle"]
        latent = of_print(ACCEPTANCE, self.tried("size", pool))
        return self.exact(latent, self.drawn("size", pool, **terms))

    def exact(self, latent: Latent, drawn: list[Sample]) -> Found:
        """Return a latent, and what refits find in answers that are any number."""
        return summarised(
            latent, refits.refits(latent, drawn, self.seed + 2, is_rounded=False)
        )


def of_print(model: refits.Printed, drawn: list[Sample]) -> Latent:
    """Return what a model's print implies, in the mean over draws of what was shown."""
    latents = [refits.read_backwards(model, sample)[0] for sample in drawn]
    n = len(latents)
    between = math.fsum(latent.between for latent in latents) / n
    slope = math.fsum(latent.slope for latent in latents) / n
    return replace(latents[0], between=between, slope=slope)


def summarised(latent: Latent, rows: pd.DataFrame) -> Found:
    """Return a latent and a summary of its refits, a row a quantity."""
    return latent, refits.summary(rows).reset_index(names="quantity")


def willingness(given: Mapping[str, Any], name: str) -> None:
    """Save what the study's model finds in answers that were drawn to fit its print.

    Arguments:
        given: As `read_network_parameters` returns it.
        name: Of the results.
    """
    folder = inside(given["models"])
    settings = list(Job(given["n_datasets"], given["seed"]).settings())
    latents, rows = [], []
    for i in io.progress_bar(name)(range(len(settings))):
        names, work = settings[i]
        latent, summary = work()
        latents.append(names | asdict(latent))
        rows.append(summary.assign(**names)[[*names, *summary]])
    tables = {"_latent": pd.DataFrame(latents), "": pd.concat(rows)}
    for ending, table in tables.items():
        as_csv = table.to_csv(index=False, float_format="%.6g")
        io.write(folder / f"{name}{ending}.csv", as_csv)


JOBS = {"willingness": willingness}

if __name__ == "__main__":
    run(JOBS)
