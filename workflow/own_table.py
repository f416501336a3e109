"""Run notebook 12 on a table of your own.

`.venv/bin/python workflow/own_table.py mine.yaml`, with a parameter
file like examples/own_table.yaml. The executed notebook lies beside
its results, in the folder that the file calls `outputs`; so do the
figures, unless it names another folder for them.
"""

import lib.pinned

import argparse
import os
import sys
from pathlib import Path

import papermill
from parameters import ROOT, check_own_folder, notebook_defaults, read_own
from reproduce import only_batch
from run_notebook import write_in_one_step

from lib.base import files

NOTEBOOK = ROOT / "notebooks" / "12_your_own_problem.ipynb"


def run(path: Path) -> Path:
    """Return the notebook, executed with the parameters of a file.

    Raises: ValueError: the file does not fit the notebook, or another
        run writes to its folder. papermill.PapermillExecutionError: a
        cell failed, for instance because the table can't be used; the
        notebook is kept.
    """
    given = read_own(path, notebook_defaults(NOTEBOOK))
    if "outputs" not in given:
        raise ValueError(
            f"{path} says nothing about outputs: name a folder for what is made, such as "
            "outputs: runs/mine."
        )
    given = {"figures": str(Path(given["outputs"], "figures"))} | given
    for name in ("outputs", "figures"):
        if files.inside(given[name]).is_relative_to(ROOT):
            check_own_folder(os.path.relpath(files.inside(given[name]), ROOT), name)
    folder = files.inside(given["outputs"])
    executed = folder / NOTEBOOK.name
    with only_batch(folder):
        papermill.execute_notebook(
            NOTEBOOK, executed, given, kernel_name="python3", cwd=ROOT
        )
    return executed


if __name__ == "__main__":
    write_in_one_step()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="parameters, in YAML")
    try:
        print("Read", run(parser.parse_args().file))
    except ValueError as error:
        sys.exit(str(error))
    except papermill.PapermillExecutionError as error:
        sys.exit(f"{error.ename}: {error.evalue}")
