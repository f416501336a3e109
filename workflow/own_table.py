"""Run notebook 12 on a table of your own.

`.venv/bin/python workflow/own_table.py mine.yaml`, with a parameter
file like examples/own_table.yaml. The executed notebook lies beside
its results, in the folder that the file calls `outputs`.
"""

import argparse
import sys
from pathlib import Path

import papermill
from parameters import ROOT, notebook_defaults, read_own

from lib.base import files

NOTEBOOK = ROOT / "notebooks" / "12_your_own_problem.ipynb"


def run(path: Path) -> Path:
    """Return the notebook, executed with the parameters of a file.

    Raises: ValueError: the file does not fit the notebook.
        papermill.PapermillExecutionError: a cell failed, for instance
        because the table can't be used; the notebook is kept.
    """
    defaults = notebook_defaults(NOTEBOOK)
    given = read_own(path, defaults)
    folder = files.inside((defaults | given)["outputs"])
    folder.mkdir(parents=True, exist_ok=True)
    executed = folder / NOTEBOOK.name
    papermill.execute_notebook(NOTEBOOK, executed, given, kernel_name="python3", cwd=ROOT)
    return executed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="parameters, in YAML")
    try:
        print("Read", run(parser.parse_args().file))
    except ValueError as error:
        sys.exit(str(error))
    except papermill.PapermillExecutionError as error:
        sys.exit(f"{error.ename}: {error.evalue}")
