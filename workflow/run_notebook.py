"""Run one notebook with its parameter file; called by the Snakefile.

`python workflow/run_notebook.py SIZE NOTEBOOK`
"""

import sys
import time
from pathlib import Path

import nbformat
import papermill
from parameters import ROOT, read_parameters

from lib import io


def run_notebook(size: str, notebook: str) -> None:
    """Execute a notebook into runs/<size>/<notebook>.ipynb, which is kept if a cell fails.

    Raises: ValueError: the parameter file does not fit. SystemExit: a
        cell failed; what and where is also left in
        runs/<size>/failed/<notebook>.txt for the end of the batch.
    """
    parameters = read_parameters(size, notebook)
    executed = ROOT / "runs" / size / f"{notebook}.ipynb"
    began = time.time()
    print(f"{notebook}: started", flush=True)
    try:
        papermill.execute_notebook(
            ROOT / "notebooks" / f"{notebook}.ipynb",
            executed,
            parameters,
            kernel_name="python3",
            language="python",
            cwd=ROOT,
            progress_bar=False,
            extra_arguments=["--IPKernelApp.log_level=50"],
        )
    except Exception as error:  # a cell's own error, or a kernel that died
        why = (
            f"{notebook} failed in {_last_cell(executed, began)}\n  {_reason(error)}\n"
            f"  kept: {executed.relative_to(ROOT)}\n"
        )
        io.write(executed.parent / "failed" / f"{notebook}.txt", why)
        sys.exit(why)
    print(f"{notebook}: finished after {(time.time() - began) / 60:.1f} min", flush=True)


def _last_cell(executed: Path, since: float) -> str:
    """Return number, as in `In [n]`, and first line of the cell that was begun last.

    Arguments:
        executed: The notebook; what was written before this time is
            of an earlier run.
        since: The time, in seconds since 1970.
    """
    if not executed.exists() or executed.stat().st_mtime < since - 1:
        return "its first cell"
    started = [
        cell.source
        for cell in nbformat.read(executed, as_version=4).cells
        if cell.cell_type == "code" and cell.metadata.papermill.get("start_time")
    ]
    if not started:
        return "its first cell"
    return f"cell In [{len(started)}]: {started[-1].strip().splitlines()[0]}"


def _reason(error: Exception) -> str:
    """Return an error in one line: the cell's own rather than papermill's account of it."""
    if isinstance(error, papermill.PapermillExecutionError):
        return f"{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    run_notebook(*sys.argv[1:])
