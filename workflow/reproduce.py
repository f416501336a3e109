"""The batch: every notebook at one size, then one table of the paper's numbers beside ours.

`python workflow/reproduce.py paper` (or quick, or smoke) starts from
nothing in runs/paper, goes on where an interrupted batch stopped, and
runs again only what an edit since then touches. At the paper's size it
also counts which of its files equal the committed ones. `--part paper`
runs the notebooks about the paper, 00 to 07, and `--part beyond` the
others, each with what they need.
"""

from lib.reproducible import VARIABLES

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import chain
from parameters import (
    MODEL_SIZE,
    ROOT,
    read_network_parameters,
    read_parameters,
)

PROFILE = "workflow/profiles/default"
LARGEST_MODEL = 1_000_000_000  # bytes; a larger one is taken for changed if it is newer
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
    arguments.add_argument(
        "options", nargs="*", help="of Snakemake, after --, such as --executor slurm"
    )
    size, part, options = vars(arguments.parse_args()).values()
    run = ROOT / "runs" / size
    try:
        for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
            read_parameters(size, notebook.stem)
        read_network_parameters(size)
        run_notebooks(size, chain.PARTS[part] if part else (), options)
        if part != "beyond":
            print_table(run)
        if size == MODEL_SIZE:
            print_count(run, part)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: the same command goes on from here.")


def run_notebooks(
    size: str, notebooks: Sequence[str] = (), options: Sequence[str] = ()
) -> None:
    """Run what has to run of a batch, and wait for it.

    Arguments:
        size: A folder of params.
        notebooks: Those that are wanted, with what they need; none
            named: all.
        options: Of Snakemake.
    Raises: ValueError: a notebook failed; says which, in which cell,
        why, and where it is kept.
    """
    run = ROOT / "runs" / size
    run.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(run / "failed", ignore_errors=True)
    wanted = [f"runs/{size}/done/{notebook}" for notebook in notebooks]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = VARIABLES | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    log = run / "snakemake.log"
    with open(log, "w", encoding="utf-8") as stderr:
        batch = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--snakefile", "workflow/Snakefile"]
            + ["--profile", PROFILE]
            + ["--max-checksum-file-size", str(LARGEST_MODEL)]
            + ["--config", f"size={size}", *options]
            + (["--", *wanted] if wanted else []),
            cwd=ROOT,
            env=os.environ | environment,
            stderr=stderr,
        )
        try:
            status = batch.wait()
        except KeyboardInterrupt:
            batch.wait()  # it ends its jobs, and what they left half done
            raise
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
    import compare

    has_data = compare.is_of_real_people(run / "models")
    wanted = None if part is None else chain.PARTS[part]
    print(f"\n{compare.count(compare.compare(run, ROOT, has_data, wanted))}")


if __name__ == "__main__":
    main()
