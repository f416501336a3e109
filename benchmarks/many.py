"""Recommendations for ten million simulated applicants: seconds, memory, bytes.

    .venv/bin/python benchmarks/many.py             ten million, beside what is in many.csv
    .venv/bin/python benchmarks/many.py 100000      as many as you say

People are drawn from Loan's equations, with their label left out, and each ranks what is
hard and says what can't be done. They are written as Parquet, one file a million. Then
`lib.beyond.batches.recommend` answers them with two worker processes, as
`make recommend` does. Memory is the highest sum of the resident sets of this process and
its workers, looked at twice a second.
"""

import lib.reproducible

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from tqdm.auto import tqdm

from lib.beyond import batches
from lib.method import loan
from lib.method.samplers import RankingSampler

RESULTS = Path(__file__).with_suffix(".csv")
PER_FILE = 1_000_000


def write_applicants(folder: Path, n_people: int) -> None:
    """Write simulated applicants with answers, in files of at most a million."""
    population = loan.population()
    assert population.truth is not None
    features = population.actionable
    sampler = RankingSampler(features)
    for start in tqdm(range(0, n_people, PER_FILE), "applicants"):
        size = min(PER_FILE, n_people - start)
        rng = np.random.default_rng(start)
        x = population.truth.sample(size, rng)
        frame = pd.DataFrame(
            population.inverse_transform(x).numpy(), columns=list(population.features)
        )
        scores = sampler.draw(range(size), rng).scores.numpy()
        for j, name in enumerate(features):
            answers = np.where(
                scores[:, j] > len(features), "can't", scores[:, j].astype(str)
            )
            frame[batches.ANSWER + name] = answers
        frame.to_parquet(folder / f"{start // PER_FILE:03}.parquet", index=False)


class PeakMemory(threading.Thread):
    """Watch the memory of this process and its children; `peak` is in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.is_over = 0.0, False

    def run(self) -> None:
        """Look twice a second until `is_over`."""
        this = psutil.Process()
        while not self.is_over:
            total = 0
            for process in [this, *this.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total / 1e6)
            time.sleep(0.5)


def size_in_mb(folder: Path) -> float:
    """Return how large the files of a folder are, in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e6


def main(n_people: int) -> None:
    """Measure, print, and add a row to the results."""
    folder = Path(tempfile.mkdtemp())
    source, target = folder / "applicants", folder / "recommendations"
    source.mkdir()
    try:
        write_applicants(source, n_people)
        memory = PeakMemory()
        memory.start()
        start = time.perf_counter()
        n_answered = batches.recommend(batches.Adviser(), source, target)
        seconds = time.perf_counter() - start
        memory.is_over = True
        row = {
            "people": n_people,
            "answered": n_answered,
            "seconds": round(seconds),
            "microseconds a person": round(1e6 * seconds / n_people, 1),
            "peak memory (MB)": round(memory.peak),
            "applicants (MB)": round(size_in_mb(source)),
            "recommendations (MB)": round(size_in_mb(target)),
        }
    finally:
        shutil.rmtree(folder)
    print(row)
    known = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=list(row))
    known = known[known.people != n_people]
    table = pd.concat([known, pd.DataFrame([row])]).sort_values("people")
    table.to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000_000)
