"""Simulated answers for notebook 10, and what the study's model finds in them.

Four studies: curves with the printed F ("family"), whole points that
are refitted as printed ("refit"), how far a curve has to fall to be
seen ("power"), and what is seen where there is nothing ("size").
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import TypeAlias

import pandas as pd

from lib.beyond.evaluation import gamm, refits
from lib.beyond.evaluation.refits import Sample
from lib.beyond.evaluation.willingness import FLAT, MIDDLE, POOLS, SHAPES, Latent, Pool

ACCEPTANCE, ACTION = refits.printed(1), refits.printed(3)  # by number of changes
FALLS = (0.2, 0.3, 0.4, 0.6)  # points from 1 change to 9: can the test see them?
NOT_CURVE = ("intercept", "edf_intercepts", "edf_slopes", "sigma2")
TERMS: dict[str, dict[str, bool]] = {  # models whose test may be wrong about no effect
    "full": {},
    "no slopes": {"slopes": False},
    "all people alike": {"slopes": False, "intercepts": False},
}

Refitted: TypeAlias = tuple[Latent, pd.DataFrame]  # with a row a quantity of its refits


class Studies:
    """Hold what the settings of the four studies share.

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

    def settings(self) -> Iterator[tuple[dict[str, str], Callable[[], Refitted]]]:
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

    def family(self, pool: Pool, shape: str) -> Refitted:
        """Return a curve with the printed F, and what else its refits have."""
        tried = self.tried("family", pool)
        start = replace(of_print(ACTION, tried), shape=shape, amplitude=1.0)
        latent = refits.calibrated(ACTION, start, tried, self.seed, ["F_smooth"], False)
        return self.exact(latent, self.drawn("family", pool))

    def refit(self, model: refits.Printed, shape: str) -> Refitted:
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

    def power(self, shape: str, fall: float) -> Refitted:
        """Return what is seen of a curve that falls by so many points."""
        pool = POOLS["middle"]
        latent = of_print(ACCEPTANCE, self.tried("power", pool))
        latent = replace(latent, shape=shape, amplitude=fall)
        return self.exact(latent, self.drawn("power", pool))

    def size(self, terms: Mapping[str, bool]) -> Refitted:
        """Return what a model with these terms sees where there is nothing to see."""
        pool = POOLS["middle"]
        latent = of_print(ACCEPTANCE, self.tried("size", pool))
        return self.exact(latent, self.drawn("size", pool, **terms))

    def exact(self, latent: Latent, drawn: list[Sample]) -> Refitted:
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


def summarised(latent: Latent, rows: pd.DataFrame) -> Refitted:
    """Return a latent and a summary of its refits, a row a quantity."""
    return latent, refits.summary(rows).reset_index(names="quantity")


def run(
    n_datasets: Mapping[str, int],
    seed: int,
    progress: Callable[[range], Iterable[int]] = iter,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what answers are drawn from, and what the model finds in them.

    Arguments:
        n_datasets: How many each study takes, by its name.
        seed: Of all draws.
        progress: Wraps the range of settings.
    Returns: A row for each setting; and a row for each setting and
        quantity of the refits.
    """
    settings = list(Studies(n_datasets, seed).settings())
    latents, rows = [], []
    for i in progress(range(len(settings))):
        names, work = settings[i]
        latent, summary = work()
        latents.append(names | asdict(latent))
        rows.append(summary.assign(**names)[[*names, *summary]])
    return pd.DataFrame(latents), pd.concat(rows)
