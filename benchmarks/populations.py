"""Seconds and memory of recommendations for data sets that are larger than memory.

    .venv/bin/python benchmarks/populations.py              one and ten million applicants
    .venv/bin/python benchmarks/populations.py hundred      a hundred million; 7 GB of disk
    .venv/bin/python benchmarks/populations.py killed       a million, through twenty kills
    .venv/bin/python benchmarks/populations.py jobs         a job of each problem and solver
    .venv/bin/python benchmarks/populations.py draw 1000000 runs/applicants

Loan applicants are drawn and written to runs/populations. Then `make recommend` answers
them from nothing, by two jobs at once. What was written is deleted at the end. Memory is
that of all processes together, Snakemake among them, each page counted once, looked at four
times a second. Prints what it measures and puts it into benchmarks/populations.csv. The
third line kills a process of the run at random, twenty times, and fails if the answers then
differ in a bit. The fourth leaves its runs where they are: `python workflow/resources.py`
then puts what they took into workflow/resources.csv. The last line only draws.
"""

import lib.pinned

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from lib.base import checks
from lib.base.files import MODELS, PARAMS, ROOT
from lib.beyond.millions import blocks
from lib.method import loan
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.samplers import RankingSampler
from lib.paper import gmsc

RESULTS = Path(__file__).with_suffix(".csv")
FOLDER = ROOT / "runs" / "populations"
PER_FILE = 1_000_000
AT_ONCE = 100_000  # applicants that are drawn
A_JOB = 250_000  # as in workflow/resources.py
MILLION = 1_000_000
ONE = {"model": "loan_icarma_hard", "members": [0]}
ALL = {"model": "loan_icarma_hard", "members": []}
PROPOSER = {"solver": "proposer", "model": "loan_propose", "members": []}
# by name: who answers, how many applicants, and what differs from params/recommend.yaml
WORK: dict[str, tuple[str, int, dict[str, Any]]] = {
    "one": ("one member of iCARMA", MILLION, ONE),
    "ten": ("one member of iCARMA", 10 * MILLION, ONE),
    "hundred": ("one member of iCARMA", 100 * MILLION, ONE),
    "members": ("ten members of iCARMA", MILLION, ALL),
    "proposer": ("proposer, verified and walked", MILLION, PROPOSER),
}
LONG = ("hundred",)
# the models of each problem's jobs, by solver
JOBS = {
    "loan": {"icarma": "loan_icarma_hard", "proposer": "loan_propose"},
    "gmsc": {"icarma": "gmsc_icarma", "proposer": "gmsc_propose"},
}


def of_loan(n_people: int, rng: np.random.Generator) -> np.ndarray:
    """Draw Loan applicants, in the units of the data."""
    return loan.scm().sample(n_people, rng).numpy()


def of_gmsc(n_people: int, rng: np.random.Generator) -> np.ndarray:
    """Draw people like those of Give Me Some Credit from the committed flow."""
    flow = CausalFlow.load(MODELS, "gmsc_flow")
    h = NetworkClassifier.load(MODELS, "gmsc_classifier")
    scaler, _ = gmsc.scaler(MODELS)
    drawn = gmsc.stand_in(flow, h, scaler, n_people, int(rng.integers(2**31)))
    return drawn[list(gmsc.COLUMNS)].to_numpy(float)


# by problem: what draws people, and the kinds of their features
DRAWN = {"loan": (of_loan, loan.KINDS), "gmsc": (of_gmsc, gmsc.KINDS)}


def draw(n_people: int, folder: Path, problem: str = "loan", seed: int = 0) -> None:
    """Write applicants, with what they find hard, in Parquet files of a million."""
    folder.mkdir(parents=True, exist_ok=True)
    people, kinds = DRAWN[problem]
    actionable = [name for name, kind in kinds.items() if kind == "actionable"]
    sampler = RankingSampler(actionable)
    rng = np.random.default_rng(seed)
    for first in range(0, n_people, PER_FILE):
        parts = []
        for start in range(first, min(first + PER_FILE, n_people), AT_ONCE):
            n = min(AT_ONCE, n_people - start)
            x = people(n, rng)
            scores = sampler.draw(range(n), rng).scores.numpy().astype(np.int8)
            names = [*kinds, *(f"{blocks.SCORE}{name}" for name in actionable)]
            parts.append(pa.table(dict(zip(names, [*x.T, *scores.T], strict=True))))
        path = folder / f"applicants_{first // PER_FILE:04d}.parquet"
        pq.write_table(pa.concat_tables(parts), path, compression="zstd")


def family(parent: int) -> list[int]:
    """Return the numbers of a process and of all that it started."""
    found, waiting = [], [parent]
    while waiting:
        found.append(waiting.pop())
        with contextlib.suppress(OSError):  # it has ended
            for thread in Path("/proc", str(found[-1]), "task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
    return found


def together(parent: int) -> float:
    """Return the memory of a process and all that it started, in MB, each page once."""
    total = 0
    for number in family(parent):
        with contextlib.suppress(OSError):
            memory = Path("/proc", str(number), "smaps_rollup").read_text()
            own = [line for line in memory.splitlines() if line.startswith("Pss:")]
            total += sum(int(line.split()[1]) for line in own)
    return total / 1e3


def begun(name: str, data: Path, **differs: object) -> tuple[subprocess.Popen, Path]:
    """Return a run of its own parameters, which has begun, and its folder."""
    given = yaml.safe_load((PARAMS / "recommend.yaml").read_text(encoding="utf-8"))
    outputs, file = FOLDER / name, FOLDER / f"{name}.yaml"
    own = {"data": str(data), "outputs": str(outputs.relative_to(ROOT))}
    file.write_text(yaml.safe_dump(given | differs | own), encoding="utf-8")
    program = [sys.executable, "workflow/recommend.py", str(file)]
    return subprocess.Popen(program, cwd=ROOT, stdout=sys.stderr), outputs


def found_in(outputs: Path) -> dict[str, Any]:
    """Return the manifest of a run that ended well."""
    return json.loads((outputs / "manifest.json").read_text(encoding="utf-8"))


def measure(name: str) -> dict[str, Any]:
    """Return what one piece of work takes, as cells."""
    who, n_people, differs = WORK[name]
    data = FOLDER / f"applicants_{n_people}"
    if not data.is_dir():
        draw(n_people, data)
    load, start, peak = os.getloadavg()[0], time.perf_counter(), 0.0
    run, outputs = begun(name, data, **differs)
    while run.poll() is None:
        peak = max(peak, together(run.pid))
        time.sleep(0.25)
    seconds = time.perf_counter() - start
    if run.returncode:
        sys.exit(f"{name} failed")
    manifest = found_in(outputs)
    written = sum(part["bytes"] for part in manifest["parts"].values())
    shutil.rmtree(outputs)
    return {
        "who answers": who,
        "applicants": n_people,
        "seconds": f"{seconds:.0f}",
        "seconds a million": f"{seconds / n_people * MILLION:.2f}",
        "peak memory (MB)": f"{peak:.0f}",
        "read (MB)": f"{sum(f.stat().st_size for f in data.iterdir()) / 1e6:.0f}",
        "written (MB)": f"{written / 1e6:.0f}",
        "jobs": len(manifest["parts"]),
        "load before": f"{load:.1f}",
    }


def killed(n_kills: int = 20) -> None:
    """Kill processes of a run at random, and compare what it comes to without kills."""
    rng, data = np.random.default_rng(0), FOLDER / f"applicants_{MILLION}"
    draw(MILLION, data)
    own = {"n_per_job": MILLION // 20}
    run, whole = begun("whole", data, **own)
    run.wait()
    expected, n_ended, n_done = found_in(whole)["found"], 0, 0
    while True:
        run, outputs = begun("killed", data, **own)
        if n_done < n_kills:
            time.sleep(rng.uniform(0, 20))
            victim = int(rng.choice(family(run.pid)))
            if run.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    n_done += 1
        if run.wait():
            continue
        if found_in(outputs)["found"] != expected:
            sys.exit(f"After {n_done} kills, answers DIFFER: see {outputs}")
        n_ended += 1
        shutil.rmtree(outputs)
        if n_done == n_kills:
            break
    print(f"{n_kills} kills, {n_ended} whole data sets, and all answers equal to the bit")
    shutil.rmtree(FOLDER)


def jobs() -> None:
    """Answer a job of applicants of each problem by each solver, and keep what it took."""
    for problem, models in JOBS.items():
        data = FOLDER / f"applicants_{problem}"
        draw(A_JOB, data, problem)
        for solver, model in models.items():
            own: dict[str, Any] = {"problem": problem, "solver": solver, "model": model}
            own["members"] = [0] if solver == "icarma" else []
            own["n_per_job"] = A_JOB
            name = f"{problem}_{solver}"
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            run, _ = begun(name, data, **own)
            if run.wait():
                sys.exit(f"{problem}, {solver} failed")


def main(names: list[str]) -> None:
    """Measure these pieces of work and save the results, each as soon as it is known."""
    names = names or [name for name in WORK if name not in LONG]
    checks.known("piece of work", names, tuple(WORK))
    known: dict[tuple[str, str], dict[str, Any]] = {}
    if RESULTS.exists():
        with open(RESULTS, newline="", encoding="utf-8") as file:
            known = {
                (row["who answers"], row["applicants"]): row for row in csv.DictReader(file)
            }
    for name in names:
        row = measure(name)
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)
        known[row["who answers"], str(row["applicants"])] = row
        in_order = [(who, str(n)) for who, n, _ in WORK.values()]
        with open(RESULTS, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, row)
            table.writeheader()
            table.writerows(known[key] for key in in_order if key in known)
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    if sys.argv[1:2] == ["draw"]:
        draw(int(sys.argv[2]), ROOT / sys.argv[3])
    elif sys.argv[1:] == ["killed"]:
        killed()
    elif sys.argv[1:] == ["jobs"]:
        jobs()
    else:
        main(sys.argv[1:])
