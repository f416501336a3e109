"""Runs one notebook with its parameter file: `python workflow/run_notebook.py SIZE NOTEBOOK`, called by the Snakefile."""

import sys
import time

import nbformat
import papermill
from lifeline import end_with_batch
from parameters import ROOT, read_parameters


def run_notebook(size: str, notebook: str) -> None:
    """Nothing; executes the notebook into runs/<size>/<notebook>.ipynb, which is kept when a cell fails.

    Raises: ValueError: the parameter file does not fit. SystemExit: a cell failed; what and where is also left in
        runs/<size>/failed/<notebook>.txt for the end of the batch.
    """
    parameters = read_parameters(size, notebook)
    executed = ROOT / "runs" / size / f"{notebook}.ipynb"
    start = time.monotonic()
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
        message = f"{notebook} failed in {_last_cell(executed)}\n  {_reason(error)}\n  kept: {executed.relative_to(ROOT)}\n"
        note = executed.parent / "failed" / f"{notebook}.txt"
        note.parent.mkdir(exist_ok=True)
        note.write_text(message, encoding="utf-8")
        sys.exit(f"{notebook}: failed")
    print(
        f"{notebook}: finished after {(time.monotonic() - start) / 60:.1f} min", flush=True
    )


def _last_cell(executed) -> str:
    """Number, as in `In [n]`, and first line of the last code cell that was started."""
    started = [
        cell.source
        for cell in nbformat.read(executed, as_version=4).cells
        if cell.cell_type == "code" and cell.metadata.papermill.get("start_time")
    ]
    return (
        f"cell In [{len(started)}]: {started[-1].strip().splitlines()[0]}"
        if started
        else "its first cell"
    )


def _reason(error: Exception) -> str:
    """An error in one line; the failed cell's own error rather than papermill's account of it."""
    if isinstance(error, papermill.PapermillExecutionError):
        return f"{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    end_with_batch()
    run_notebook(*sys.argv[1:])
