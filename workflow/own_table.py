"""Run notebook 12 on a table of your own.

`.venv/bin/python workflow/own_table.py mine.yaml`, with a parameter
file like examples/own_table.yaml. The executed notebook lies beside
its results, in the folder that the file calls `outputs`; so do the
figures, unless it names another folder for them. A relative path of
the table starts at the folder of the parameter file.
"""

import lib.reproducible

import argparse
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import papermill
import parameters

from lib import io

OURS = "ours"  # tag of cells about the table of the repository
CLAIM = ("**Claim.**", "| claim")  # and paragraphs about it
LINK = re.compile(r"\]\((?!\w+:|#|/)([^)]+)\)")  # to another file
EXAMPLE = io.ROOT / "examples" / "own_table.yaml"
NOTEBOOK = parameters.NOTEBOOKS / "12_your_own_problem.ipynb"


def run(path: Path) -> Path:
    """Return the notebook, executed with the parameters of a file.

    Raises: ValueError: the file does not fit the notebook; its table
        is nowhere; a folder can't be made.
        papermill.PapermillExecutionError: a cell failed, for instance
        because the table can't be used; the notebook is kept.
    """
    defaults, given = parameters.defaults_of(NOTEBOOK.stem), io.load_yaml(path)
    parameters.check(given, defaults, str(path))
    if "outputs" not in given:
        raise ValueError(
            f"{path} does not name outputs, a folder for what is made, such as "
            "outputs: runs/mine."
        )
    given = {"figures": str(Path(given["outputs"], "figures"))} | given
    given["table"] = _table(path, given, defaults["table"])
    runs = io.ROOT / "runs"
    folders = {name: io.inside(given[name]) for name in ("outputs", "figures")}
    for name, where in folders.items():
        if where.is_relative_to(io.ROOT) and not where.is_relative_to(runs):
            raise ValueError(
                f"{name} is {given[name]!r}, a folder of the repository: name one below "
                "runs, such as runs/mine, or one elsewhere."
            )
    for name, where in folders.items():
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"{name} is {given[name]!r}, but the folder {where} can't be made: "
                f"{error.strerror}. Name another one."
            ) from error
    folder = folders["outputs"]
    executed = folder / NOTEBOOK.name
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    if given["table"] != defaults["table"]:
        given = {"group": "", "person": "", "limits": {}} | given
        notebook.cells = [cell for cell in notebook.cells if OURS not in _tags(cell)]
        paragraphs = notebook.cells[0].source.split("\n\n")
        notebook.cells[0].source = "\n\n".join(
            text for text in paragraphs if not text.startswith(CLAIM)
        )
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(partial(_from, folder), cell.source)
    papermill.execute_notebook(
        notebook, executed, given, kernel_name="python3", cwd=io.ROOT
    )
    return executed


def _table(path: Path, given: dict[str, Any], default: str) -> str:
    """Return the path of the table that a parameter file names.

    A relative one starts at the file's folder; that of the example,
    at the repository's root.

    Raises: ValueError: there is no such file.
    """
    if "table" not in given:
        return default
    start = io.ROOT if path.resolve() == EXAMPLE else path.parent
    table = Path(start, given["table"]).absolute()
    if not table.is_file():
        raise ValueError(
            f"{path}: table is {given['table']!r}, but there is no file {table}. A "
            "relative path starts at the folder of the parameter file."
        )
    return default if table.samefile(io.ROOT / default) else str(table)


def _from(folder: Path, link: re.Match[str]) -> str:
    """Return a link of the notebook as it reads from another folder."""
    return f"]({os.path.relpath(NOTEBOOK.parent / link[1], folder)})"


def _tags(cell: nbformat.NotebookNode) -> list[str]:
    """Return the tags of a notebook's cell."""
    return list(cell.metadata.get("tags", []))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="parameters, in YAML")
    try:
        print("Read", run(parser.parse_args().file))
    except ValueError as error:
        sys.exit(str(error))
    except papermill.PapermillExecutionError as error:
        sys.exit(f"{error.ename}: {error.evalue}")
