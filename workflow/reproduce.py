"""The batch: every notebook at one size, then one table of the paper's numbers beside ours.

`python workflow/reproduce.py paper` (or quick, or smoke) starts from
nothing in runs/paper, goes on where an interrupted batch stopped, and
runs again only what an edit since then touches. At the paper's size it
also counts which of its files equal the committed ones. `--part paper`
runs the notebooks about the paper, 00 to 07, and `--part beyond` the
others, each with what they need. `--profile slurm` hands the jobs to a
cluster (workflow/CLUSTER.md).
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import chain
import clusters
import lifeline
from only import only_one
from parameters import (
    MODEL_SIZE,
    ROOT,
    read_network_parameters,
    read_parameters,
    read_run_parameters,
)

from lib.base import files

SNAKEMAKE = ["snakemake", "--snakefile"]
LARGEST_MODEL = 1_000_000_000  # bytes; a larger one is taken for changed if it is newer
INTERRUPTED = "\nInterrupted: the same command goes on from here."
LEAST_ROOM = 10_000_000  # bytes on a disk; with less it is called full
LEFT_OUT = (
    "Left out: Give Me Some Credit. Its data was not there, and the paper's numbers are "
    "about its people, not about the stand-in's (docs/run.md says where to get the data)."
)


def main() -> None:
    """Run the batch of the size that the command line names, and print its table."""
    sizes = sorted(file.parent.name for file in (ROOT / "params").glob("*/networks.yaml"))
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("size", choices=sizes)
    arguments.add_argument(
        "--part", choices=chain.PARTS, help="the notebooks about the paper, or the others"
    )
    add_profile(arguments)
    size, part, profile = vars(arguments.parse_args()).values()
    run = ROOT / "runs" / size
    try:
        clusters.check_profile(profile)
        for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
            read_parameters(size, notebook.stem)
        read_network_parameters(size)
        with only_batch(run):
            wanted = chain.PARTS[part] if part else ()
            run_notebooks(size, notebooks=wanted, profile=profile)
            if part != "beyond":
                print_table(run)
            if size == MODEL_SIZE:
                print_count(run, part)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def run_of_its_own(
    doc: str, kind: str, work: Callable[[Path, dict[str, Any], str], None]
) -> None:
    """Do the work of a file that the command line names, alone in its folder of outputs.

    What goes wrong is printed, and ends the process.

    Arguments:
        doc: Of the program; its first line is its help.
        kind: As for `read_run_parameters`.
        work: Called with the file, with what it says (outputs without
            "." and ".."), and with the profile.
    """
    arguments = argparse.ArgumentParser(description=doc.splitlines()[0])
    arguments.add_argument("parameters", type=Path)
    add_profile(arguments)
    path, profile = vars(arguments.parse_args()).values()
    try:
        clusters.check_profile(profile)
        given = read_run_parameters(path, kind)
        given["outputs"] = os.path.normpath(given["outputs"])
        with only_batch(ROOT / given["outputs"]):
            work(path, given, profile)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def add_profile(arguments: argparse.ArgumentParser) -> None:
    """Let a command line say where jobs run."""
    arguments.add_argument(
        "--profile", default=clusters.LOCAL, help="a folder of workflow/profiles"
    )


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
        ValueError: A batch in runs/... is running already (process ...
    """
    what = f"A batch in runs/{run.name}"
    way_out = "wait for it, or stop it and start again, which goes on where it stopped."
    with only_one(run / ".lock", what, way_out):
        yield


def run_notebooks(
    size: str,
    root: Path = ROOT,
    notebooks: Sequence[str] = (),
    profile: str = clusters.LOCAL,
) -> None:
    """Run what has to run of a batch, and wait for it.

    Arguments:
        size: A folder of params.
        root: The repository, or a copy: its `lib` is imported, and
            runs/<size> in it gets everything.
        notebooks: Those that are wanted, with what they need; none
            named: all.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: a notebook failed; says which, in which cell,
        why, and where it is kept. Or jobs that an earlier batch left
        on a cluster could not be cancelled.
    """
    wanted = [f"runs/{size}/done/{notebook}" for notebook in notebooks]
    run = root / "runs" / size
    run_rules("workflow/Snakefile", f"size={size}", run, root, wanted, profile)


def run_rules(
    snakefile: str,
    config: str,
    run: Path,
    root: Path = ROOT,
    wanted: Sequence[str] = (),
    profile: str = clusters.LOCAL,
) -> None:
    """Run what has to run of a file of rules, and wait for it.

    Arguments:
        snakefile: Path of the rules, in the repository.
        config: What they read of their config, "name=value".
        run: Folder of what is made; it gets the log, and notes of
            jobs that failed.
        root: The repository, or a copy: its `lib` is imported.
        wanted: Files to be made; none named: those of the first rule.
        profile: A folder of workflow/profiles: where jobs run.
    Raises: ValueError: something failed; says what and why. Or jobs
        that an earlier batch left on a cluster could not be cancelled.
    """
    run.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(run / "failed", ignore_errors=True)
    log = run / "snakemake.log"
    before = os.environ.get("PYTHONPATH")
    environment = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{root}{os.pathsep}{before}" if before else str(root),
        lifeline.VARIABLE: "stdin",
    } | clusters.environment(profile, run)
    cancel_earlier(run, profile, root)
    for half_done in run.rglob(f".*{files.HALF_DONE}"):
        half_done.unlink(missing_ok=True)
    with open(log, "w", encoding="utf-8") as stderr:
        # The pipe stays open as long as this process lives, and the jobs watch it.
        batch = subprocess.Popen(
            [sys.executable, "-m", *SNAKEMAKE, snakefile]
            + ["--profile", str(clusters.PROFILES / profile)]
            + ["--max-checksum-file-size", str(LARGEST_MODEL)]
            + ["--config", config, f"profile={profile}"]
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
        if status < 0:
            why = [f"Snakemake was ended by signal {-status}."]
        if shutil.disk_usage(run).free < LEAST_ROOM:
            why.append(f"There is no room left on the disk that {run} is on: make some.")
        way_out = (
            f"Not everything ran ({os.path.relpath(log, ROOT)} says more). "
            "The same command runs what is missing."
        )
        raise ValueError("\n".join(["", *why, way_out]))
    shutil.rmtree(run / "partial", ignore_errors=True)


def cancel_earlier(run: Path, profile: str, root: Path) -> None:
    """Cancel what an earlier batch of a folder left, by this profile or that one's.

    Arguments:
        run: Folder of what is made; it keeps the name of the profile.
        profile: Of the batch that is to begin.
        root: The repository, or a copy.
    Raises: ValueError: that failed; says why.
    """
    kept = run / ".profile"
    earlier = kept.read_text(encoding="utf-8") if kept.is_file() else profile
    for one in dict.fromkeys([earlier, profile]):
        environment = os.environ | clusters.environment(one, run)
        clusters.cancel_earlier(one, environment, root)
    files.write(kept, profile)


def print_table(run: Path) -> None:
    """Print the paper's numbers beside ours, and save them."""
    import report  # here, since pandas is not needed before

    where = f"runs/{run.name}"
    near = report.as_text(report.collect(run))
    print(f"\nPaper against ours (cell by cell: {where}/paper_vs_ours.csv)\n\n{near}")
    counts = report.verdicts(run)
    if len(counts):
        print(f"\nThe paper's claims ({where}/claims.csv)\n\n{counts.to_string()}")
    if report.has_stand_in(run):
        print(f"\n{LEFT_OUT}")


def print_count(run: Path, part: str | None = None) -> None:
    """Print how many models, tables and figures equal the committed ones, and which do not.

    What was fitted to the stand-in for Give Me Some Credit is not
    compared.

    Arguments:
        run: Folder of the batch.
        part: Only what is made for this part, of `chain.PARTS`; None:
            all.
    """
    import compare  # here, since torch is not needed before

    has_data = compare.is_of_real_people(run / "models")
    wanted = None if part is None else chain.PARTS[part]
    print(f"\n{compare.count(compare.compare(run, ROOT, has_data, wanted))}")


if __name__ == "__main__":
    main()
