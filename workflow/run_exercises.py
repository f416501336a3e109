"""Run what the exercises of the notebooks ask for: `make exercises`, some minutes.

    python workflow/run_exercises.py               of all notebooks
    python workflow/run_exercises.py 00 03b        of those whose names begin so

An exercise's lines of Python are run at the end of its notebook, and the notebook is run
again with each parameter that an exercise says to set, as in: Set `n_flow = 2_500`. The
models are the committed ones; everything is left in runs/exercises.
"""

import re
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import nbformat
import papermill
from lifeline import end_with_batch
from nbformat.v4 import new_code_cell
from parameters import ROOT

FOLDER = Path("runs/exercises")
LINES = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SETTING = re.compile(r"Set `(\w+) = ([\d._]+)`")


def exercises(notebook: nbformat.NotebookNode) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the lines of Python of a notebook's exercises, and the parameters they set.

    Example:
        >>> text = "## Exercises\\nSet `n = 2_000`:\\n   ```python\\n   n + 1\\n   ```"
        >>> markdown = nbformat.v4.new_markdown_cell(text)
        >>> exercises(nbformat.v4.new_notebook(cells=[markdown]))
        (['n + 1\\n'], [{'n': 2000}])
    """
    lines, settings = [], []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "## Exercises" in cell.source:
            asked = cell.source.split("## Exercises")[1].split("\n## ")[0]
            lines += [textwrap.dedent(found) for found in LINES.findall(asked)]
            for name, value in SETTING.findall(asked):
                number = float(value.replace("_", ""))
                settings.append({name: int(number) if "." not in value else number})
    return lines, settings


def run(path: Path) -> None:
    """Run one notebook's exercises; an error of a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    lines, settings = exercises(notebook)
    notebook.cells += [new_code_cell(own) for own in lines]
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    with_lines = ROOT / FOLDER / path.name
    nbformat.write(notebook, with_lines)
    places = {"outputs": str(FOLDER), "figures": str(FOLDER)}
    for i, changed in enumerate([{}, *settings]):
        start = time.monotonic()
        papermill.execute_notebook(
            with_lines,
            ROOT / FOLDER / f"{path.stem}_{i}.ipynb",
            places | changed,
            kernel_name="python3",
            language="python",
            cwd=ROOT,
            progress_bar=sys.stderr.isatty(),
            extra_arguments=["--IPKernelApp.log_level=50"],
        )
        what = f"with {changed}" if changed else f"{len(lines)} exercises with lines"
        print(f"{path.stem}, {what}: {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    """Run the exercises of the notebooks that the command line names, or of all."""
    names = sys.argv[1:] or [""]
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    chosen = [path for path in paths if path.name.startswith(tuple(names))]
    if not chosen:
        sys.exit(f"No notebook's name begins with {', '.join(names)}.")
    for path in chosen:
        run(path)


if __name__ == "__main__":
    end_with_batch()
    main()
