"""The batch: every notebook at one size, then one table of the paper's numbers beside ours.

`python workflow/reproduce.py paper` (or quick, or smoke) starts from
nothing in runs/paper, goes on where an interrupted batch stopped, and
runs again only what an edit since then touches.
"""

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lifeline
from parameters import ROOT, read_network_parameters, read_parameters

SNAKEMAKE = ["snakemake", "--snakefile", "workflow/Snakefile"]
PROFILE = ["--profile", "workflow/profile"]


def main() -> None:
    """Run the batch of the size that the command line names, and print its table."""
    sizes = sorted(file.parent.name for file in (ROOT / "params").glob("*/networks.yaml"))
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("size", choices=sizes)
    size = arguments.parse_args().size
    run = ROOT / "runs" / size
    try:
        for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
            read_parameters(size, notebook.stem)
        read_network_parameters(size)
        with only_batch(run):
            run_notebooks(size, run)
            print_table(run)
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: the same command goes on from here.")


@contextlib.contextmanager
def only_batch(run: Path) -> Iterator[None]:
    """Hold runs/<size>/.lock; the system lets go of it when this process ends, however.

    Raises: ValueError: another batch holds it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     with only_batch(Path(folder)), only_batch(Path(folder)):
        ...         print("never printed")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: A batch of this size is running already (process ...
    """
    run.mkdir(parents=True, exist_ok=True)
    with open(run / ".lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ValueError(
                f"A batch of this size is running already (process {lock.read()}, in "
                f"runs/{run.name}): wait for it, or stop it and start again, which goes on "
                "where it stopped."
            ) from None
        lock.truncate(0)
        print(os.getpid(), end="", file=lock, flush=True)
        yield


def run_notebooks(size: str, run: Path) -> None:
    """Run all notebooks of the batch that have to run, and wait for them.

    Raises: ValueError: a notebook failed; says which, in which cell,
        why, and where it is kept.
    """
    shutil.rmtree(run / "failed", ignore_errors=True)
    log = run / "snakemake.log"
    with open(log, "w", encoding="utf-8") as stderr:
        # The pipe stays open as long as this process lives, and the jobs watch it.
        batch = subprocess.Popen(
            [sys.executable, "-m", *SNAKEMAKE, *PROFILE, "--config", f"size={size}"],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", lifeline.VARIABLE: "stdin"},
            stdin=subprocess.PIPE,
            stderr=stderr,
        )
        status = batch.wait()
    if status != 0:
        notes = [
            note.read_text(encoding="utf-8")
            for note in sorted((run / "failed").glob("*.txt"))
        ]
        why = notes or log.read_text(encoding="utf-8").splitlines()[-15:]
        way_out = (
            f"Not everything ran ({log.relative_to(ROOT)} says more). "
            "The same command runs what is missing."
        )
        raise ValueError("\n".join(["", *why, way_out]))


def print_table(run: Path) -> None:
    """Print the paper's numbers beside ours, and save them."""
    import report  # here, since pandas is not needed before

    table = report.as_text(report.collect(run))
    where = f"runs/{run.name}/paper_vs_ours.csv"
    print(f"\nThe paper's numbers and ours ({where}):\n\n{table}")


if __name__ == "__main__":
    main()
