"""The batch: every notebook at one size, then one table of the paper's numbers beside ours.

`python workflow/reproduce.py paper` (or quick, or smoke) starts from
nothing in runs/paper, goes on where an interrupted batch stopped, and
runs again only what an edit since then touches. At the paper's size it
also counts which of its files equal the committed ones.
"""

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import lifeline
from parameters import MODEL_SIZE, ROOT, read_network_parameters, read_parameters

SNAKEMAKE = ["snakemake", "--snakefile"]
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
            run_notebooks(size)
            print_table(run)
            if size == MODEL_SIZE:
                print_count(run)
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


def run_notebooks(size: str, root: Path = ROOT, notebooks: Sequence[str] = ()) -> None:
    """Run what has to run of a batch, and wait for it.

    Arguments:
        size: A folder of params.
        root: The repository, or a copy: its `lib` is imported, and
            runs/<size> in it gets everything.
        notebooks: Those that are wanted, with what they need; none
            named: all.
    Raises: ValueError: a notebook failed; says which, in which cell,
        why, and where it is kept.
    """
    wanted = [f"runs/{size}/done/{notebook}" for notebook in notebooks]
    run_rules("workflow/Snakefile", f"size={size}", root / "runs" / size, root, wanted)


def run_rules(
    snakefile: str, config: str, run: Path, root: Path = ROOT, wanted: Sequence[str] = ()
) -> None:
    """Run what has to run of a file of rules, and wait for it.

    Arguments:
        snakefile: Path of the rules, in the repository.
        config: What they read of their config, "name=value".
        run: Folder of what is made; it gets the log, and notes of
            jobs that failed.
        root: The repository, or a copy: its `lib` is imported.
        wanted: Files to be made; none named: those of the first rule.
    Raises: ValueError: something failed; says what and why.
    """
    run.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(run / "failed", ignore_errors=True)
    log = run / "snakemake.log"
    before = os.environ.get("PYTHONPATH")
    environment = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{root}{os.pathsep}{before}" if before else str(root),
        lifeline.VARIABLE: "stdin",
    }
    with open(log, "w", encoding="utf-8") as stderr:
        # The pipe stays open as long as this process lives, and the jobs watch it.
        batch = subprocess.Popen(
            [sys.executable, "-m", *SNAKEMAKE, snakefile, *PROFILE, "--config", config]
            + (["--", *wanted] if wanted else []),
            cwd=root,
            env=os.environ | environment,
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
            f"Not everything ran ({os.path.relpath(log, ROOT)} says more). "
            "The same command runs what is missing."
        )
        raise ValueError("\n".join(["", *why, way_out]))


def print_table(run: Path) -> None:
    """Print the paper's numbers beside ours, and save them."""
    import report  # here, since pandas is not needed before

    table = report.as_text(report.collect(run))
    where = f"runs/{run.name}/paper_vs_ours.csv"
    print(f"\nThe paper's numbers and ours ({where}):\n\n{table}")


def print_count(run: Path) -> None:
    """Print how many models, tables and figures equal the committed ones, and which do not.

    What was fitted to the stand-in for Give Me Some Credit is not
    compared.
    """
    import compare  # here, since torch is not needed before

    has_data = compare.is_of_real_people(run / "models")
    print(f"\n{compare.count(compare.compare(run, ROOT, has_data))}")


if __name__ == "__main__":
    main()
