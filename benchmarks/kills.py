"""Kill a batch in every kind of its jobs, go on each time, and compare with a whole run.

    PYTHONPATH=workflow .venv/bin/python benchmarks/kills.py          20, over make smoke
    PYTHONPATH=workflow .venv/bin/python benchmarks/kills.py 100 7    100, drawn with seed 7

Needs the data of Give Me Some Credit. Takes two to three times as long as make smoke. Each
kill is a kill -9 of one of `KINDS`, at a random moment of one of `MOMENTS`, which get equal
numbers of kills; the next run of the command goes on. Prints a line a kill. The exit code
is 1 if something that was finished ran again, a process outlived its batch, or a file of
the end differs from that of a run without a kill (of a notebook: what its cells print and
show, without warnings). Both runs lie in runs/kills.
"""

import lib.pinned

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
import psutil
import verify
from chain import PROGRAMS
from parameters import ROOT

SIZE = "smoke"
KINDS = (
    "everything",
    "its process group",
    "the command",
    "Snakemake",
    "a job",
    "a kernel",
)
# what runs meanwhile: a program of workflow, or what the command does behind all jobs
MOMENTS = (*PROGRAMS, "run_notebook", "the end")
LONGEST = 3.0  # seconds into a moment, at most
DYING = 20.0  # seconds in which the processes of a killed batch must be gone
NO_RESULTS = (
    "done",
    "failed",
    "locks",
    "partial",
    "benchmarks",
    ".lock",
    ".profile",
    "snakemake.log",
)


class Batch:
    """Hold a batch that runs in a copy of the repository, to be killed.

    Arguments:
        root: The copy.
        size: A folder of params.
    """

    def __init__(self, root: Path, size: str) -> None:
        self.run = root / "runs" / size
        self.said = root / f"{size}.log"
        (self.run / "snakemake.log").unlink(missing_ok=True)  # of the batch before
        with open(self.said, "a", encoding="utf-8") as said:
            self.process = psutil.Popen(
                [sys.executable, "workflow/reproduce.py", size],
                cwd=root,
                env=os.environ | {"PYTHONPATH": str(root)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.seen: set[psutil.Process] = set()
        self.has_begun = False

    def tree(self) -> list[psutil.Process]:
        """Return the processes of the batch that live, the first of all in front."""
        try:
            found = [self.process, *self.process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
        self.seen.update(found)
        return found

    def moments(self) -> set[str]:
        """Return which of `MOMENTS` it is; the batch does several things at once."""
        running = {Path(_program(one)).stem for one in self.tree()[1:]} - {""}
        self.has_begun |= "snakemake" in running
        is_over = self.has_begun and not running and self.process.poll() is None
        return {"the end"} if is_over else running & set(MOMENTS)

    def of_kind(self, kind: str) -> list[psutil.Process]:
        """Return the processes that one of `KINDS` means."""
        found = self.tree()
        if kind == "everything":
            return found
        if kind == "the command":
            return found[:1]
        if kind == "its process group":
            return [one for one in found if _group(one) == self.process.pid]
        is_one = {"Snakemake": "snakemake", "a job": "workflow", "a kernel": "ipykernel"}
        return [one for one in found[1:] if is_one[kind] in _program(one)]

    def kill(self, kind: str, rng: random.Random) -> str:
        """Kill what one of `KINDS` means, and return what was hit; "" if there is none."""
        hit = self.of_kind(kind)
        if kind in ("a job", "a kernel"):
            hit = [rng.choice(hit)] if hit else []
        names = [_name(one) for one in hit]
        for one in hit:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        return f"{kind} ({', '.join(filter(None, names))})" if hit else ""

    def left(self) -> list[psutil.Process]:
        """Wait for all processes that were seen to end, and return those that do not."""
        alive = psutil.wait_procs([self.process, *self.seen], timeout=DYING)[1]
        return [one for one in alive if one.is_running() and _arguments(one)]

    def log(self) -> tuple[list[str], list[str]]:
        """Return what Snakemake says was started, and what was finished."""
        path = self.run / "snakemake.log"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        started = re.findall(r"^(?:local)?(?:rule|checkpoint) (\w+):$", text, re.MULTILINE)
        return started, re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)", text, re.M)


def _group(process: psutil.Process) -> int:
    """Return the process group of a process, 0 if it is gone."""
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return 0


def _arguments(process: psutil.Process) -> list[str]:
    """Return the command line of a process, nothing if it is gone."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _program(process: psutil.Process) -> str:
    """Return what a process of Python runs: a module, or a file of workflow."""
    arguments = _arguments(process)
    if len(arguments) < 2 or "python" not in Path(arguments[0]).name:
        return ""
    return arguments[2] if arguments[1] == "-m" else arguments[1]


def _name(process: psutil.Process) -> str:
    """Return the job or the notebook of a process of workflow, else nothing."""
    is_job = "workflow/" in _program(process) and len(_arguments(process)) > 3
    return _arguments(process)[3] if is_job else ""


def left_by(run: Path, rule: str) -> Path:
    """Return the file whose time says when a rule was finished."""
    if rule.startswith("notebook_"):
        return run / "done" / rule.removeprefix("notebook_")
    path = run / "models" / rule
    return next(iter(run.glob(f"models/{rule}.*sv")), path.with_suffix(".safetensors"))


def results(run: Path) -> dict[str, object]:
    """Return what a batch leaves: bytes of files, and what notebooks show."""
    found: dict[str, object] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run)
        if not path.is_file() or name.parts[0] in NO_RESULTS:
            continue
        found[str(name)] = path.read_bytes()
        if path.suffix == ".ipynb" and len(name.parts) == 1:
            cells = nbformat.read(path, as_version=4).cells
            found[str(name)] = [
                (cell.source, *_shown(cell.get("outputs", [])))
                for cell in cells
                if "nbval-ignore-output" not in cell.metadata.get("tags", [])
            ]
    return found


def _shown(outputs: list[nbformat.NotebookNode]) -> tuple[str, list[object]]:
    """Return what a cell printed, and what else it shows; warnings name processes."""
    streams = [one for one in outputs if one.output_type == "stream"]
    printed = "".join(one.text for one in streams if one.name == "stdout")
    return printed, [one for one in outputs if one.output_type != "stream"]


class Record:
    """Hold what was finished before, to say what ran again."""

    def __init__(self) -> None:
        self.times: dict[Path, int] = {}
        self.rules: set[str] = set()

    def ran_again(self, batch: Batch) -> list[str]:
        """Return what ran again though it was finished; note what is finished now."""
        started, finished = batch.log()
        again = [rule for rule in started if rule in self.rules]
        again += [path.name for path, t in self.times.items() if _time(path) != t]
        self.rules |= set(finished)
        for rule in self.rules - {"all"}:
            path = left_by(batch.run, rule)
            self.times.setdefault(path, _time(path))
        return again


def _time(path: Path) -> int:
    """Return when a file was written, 0 if it is not there."""
    return path.stat().st_mtime_ns if path.exists() else 0


def main() -> None:
    """Run a batch without a kill, then others with as many as the command line says."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("kills", type=int, nargs="?", default=20)
    arguments.add_argument("seed", type=int, nargs="?", default=0)
    n_kills, seed = vars(arguments.parse_args()).values()
    folder = ROOT / "runs" / "kills"
    roots = [verify.copy_of_sources(ROOT, folder / name) for name in ("whole", "killed")]
    shutil.rmtree(roots[1] / "runs", ignore_errors=True)
    start = time.monotonic()
    whole = Batch(roots[0], SIZE)
    if whole.process.wait() != 0:
        sys.exit(f"The run without a kill failed: {whole.said} says why.")
    expected = results(whole.run)
    print(f"A run without a kill: {time.monotonic() - start:.0f} s", flush=True)
    print(f"{n_kills} kills, drawn with the seed {seed}", flush=True)
    rng = random.Random(seed)
    due = Counter(MOMENTS[i % len(MOMENTS)] for i in range(n_kills))
    n_survived = 0
    wrong: list[str] = []
    while due.total() and not wrong:
        n, wrong = killed(roots[1], rng, due, expected)
        n_survived += 0 if wrong else n
    n_done = n_kills - due.total()
    print(f"{n_survived} of {n_done} kills survived", flush=True)
    sys.exit("\n".join(wrong) if wrong else 0)


def killed(
    root: Path, rng: random.Random, due: Counter[str], expected: dict[str, object]
) -> tuple[int, list[str]]:
    """Run a batch from nothing to its end, and kill it on the way, again and again.

    Arguments:
        root: The copy of the repository.
        rng: Draws moments and what is killed.
        due: How many kills each moment still lacks; changed.
        expected: The results of a run without a kill.
    Returns: The number of kills, and what is wrong.
    """
    shutil.rmtree(root / "runs", ignore_errors=True)
    record, n, batch, is_hit = Record(), 0, Batch(root, SIZE), False
    while True:
        wanted = batch.moments() & set(+due)
        if wanted:
            moment = rng.choice(sorted(wanted))
            time.sleep(0.0 if moment == "the end" else rng.uniform(0.0, LONGEST))
            kind = rng.choice(KINDS)
            if moment in batch.moments() and (hit := batch.kill(kind, rng)):
                due[moment] -= 1
                n, is_hit = n + 1, True
                print(f"{n:3}  in {moment}: {hit}", flush=True)
                if kind not in ("a job", "a kernel"):  # the batch itself is ending
                    batch.process.wait()
        if batch.process.poll() is None:
            time.sleep(0.02)
            continue
        left, again = batch.left(), record.ran_again(batch)
        if left or again:
            return n, [f"Not gone: {left}. Ran again: {again}."]
        if batch.process.poll() == 0:
            break
        if not is_hit:
            return n, [f"It failed without a kill: {batch.said} says why."]
        batch, is_hit = Batch(root, SIZE), False
    found = results(batch.run)
    names = [name for name in expected | found if expected.get(name) != found.get(name)]
    print(f"     The end: {len(expected) - len(names)} of {len(expected)} files are equal")
    return n, [f"{name} differs." for name in names]


if __name__ == "__main__":
    main()
