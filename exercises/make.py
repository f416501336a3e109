"""Make the students' files and the stored answers.

    python exercises/make.py         the students' files, in a second
    python exercises/make.py answers answers.json, too: runs the solutions, in minutes

The source is exercises/solutions. There, a cell's lines between `# solution: BLANK` and
`# end` become BLANK in the student's file; cells tagged `solution` are left out, with a
link in their place. The title "Solutions: ..." becomes "Exercises: ...". An exercise begins
with a heading, `## 04.2 Its title`. At its `check`, the key in exercises/keys gets the
solution's variables, and works out typical wrong answers.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from exercises.checking import ANSWERS, TWO, Key, agree, applied, read, source_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOLUTIONS = HERE / "solutions"
BLANK = re.compile(r"^( *)# solution: (.*)\n(?:.*\n)*?^ *# end$", re.MULTILINE)
TITLE = "# Solutions: "


def blanked(source: str) -> str:
    """Return a cell's source with each solution replaced by its blank.

    Raises: ValueError: a solution has no end.

    Example:
        >>> print(blanked("a = 1\\n# solution: b = ...\\nb = a + 1\\n# end\\nprint(b)"))
        a = 1
        b = ...
        print(b)
    """
    left = BLANK.sub(r"\1\2", source)
    if re.search(r"^ *# (solution:|end$)", left, re.MULTILINE):
        raise ValueError(
            f"Expected '# solution: ...' and '# end' around a solution in:\n{source}"
        )
    return left


def students(solutions: NotebookNode, name: str) -> NotebookNode:
    """Return the student's file of a notebook of solutions, which is called `name`."""
    made = nbformat.from_dict({**solutions, "cells": []})
    for cell in solutions.cells:
        if "solution" in cell.metadata.get("tags", ()):
            link = f"*A solution is in [solutions/{name}](solutions/{name}).*"
            if made.cells[-1].source != link:
                made.cells.append(new_markdown_cell(link, id=f"{cell.id}-link"))
            continue
        target = nbformat.from_dict({**cell, "source": blanked(cell.source)})
        target.source = target.source.replace("](../../", "](../")  # a folder less deep
        target.source = target.source.replace(TITLE, "# Exercises: ")
        if target.cell_type == "code":
            target.execution_count = None
            if "check(" in target.source:  # what is given is shown with its output
                target.outputs = []
            for output in target.outputs:
                output.execution_count = None
        made.cells.append(target)
    return made


def written(notebook: Any) -> str:
    """Return a notebook as it is written to a file."""
    return nbformat.writes(notebook) + "\n"


def run(notebook: NotebookNode, check: Callable[[str, Any, Any], Any]) -> list[Any]:
    """Return the last value of each code cell, run in order in one namespace.

    Arguments:
        notebook: Of solutions, or a student's.
        check: In place of the notebook's; gets the number, the answer,
            and the variables by their names.
    """
    names: dict[str, Any] = {"display": lambda *_: None}
    values = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell.id, "exec"), names)
            names["check"] = lambda number, answer: check(number, answer, names)
            asked = last and compile(ast.Expression(last.value), cell.id, "eval")
            values.append(eval(asked, names) if asked else None)
    return values


def stored(number: str, answer: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the key of an exercise, as it is stored.

    Arguments:
        number: Of the exercise.
        answer: The solution's.
        names: The solution's variables.

    Raises: ValueError: a wrong answer is the right one, or has two hints.
    """
    function, cases = source_of(number)
    parameters = inspect.signature(function).parameters
    key = function(**{name: names[name] for name in parameters})
    key = replace(key, is_function=bool(cases))
    if cases:
        results = [(applied(wrong, cases), hint) for wrong, hint in key.mistakes]
        key = replace(key, mistakes=results)
    if key.truth is None:
        key = replace(key, truth=applied(answer, cases) if cases else answer)
    if isinstance(key.truth, set | frozenset):
        key = replace(key, truth=sorted(key.truth))
    elif not isinstance(key.truth, str):
        key = replace(key, mistakes=_distinct(number, key))
    fields = _rounded(asdict(key))
    return {name: value for name, value in fields.items() if value not in ([], "", False)}


def _distinct(number: str, key: Key) -> list[tuple[Any, str]]:
    """Return the mistakes without pairs that cannot be told from something simpler."""
    kept: list[tuple[Any, str]] = []
    for wrong, hint in sorted(key.mistakes, key=lambda pair: pair[1].startswith(TWO)):
        value = np.broadcast_to(read(wrong, replace(key, truth=wrong)), np.shape(key.truth))
        others = [key.truth, *(other for other, known in kept if known != hint)]
        if not any(agree(value, read(other, key), key.within) for other in others):
            kept.append((value, hint))
        elif not hint.startswith(TWO):
            raise ValueError(
                f"Exercise {number}: expected a wrong answer that is neither the right one "
                f"nor another's, and {value} came for {hint!r}."
            )
    return kept


def _rounded(value: Any) -> Any:
    """Return lists for arrays and tensors, and numbers to six digits."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    if hasattr(value, "tolist"):
        return _rounded(value.tolist())
    return float(f"{value:.6g}") if isinstance(value, float) else value


def answers() -> dict[str, Any]:
    """Return what answers.json should hold: run all solutions."""
    found: dict[str, Any] = {}

    def record(number: str, answer: Any, names: dict[str, Any]) -> None:
        found[number] = stored(number, answer, names)

    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        run(nbformat.read(path, as_version=4), record)
    return found


def made() -> dict[Path, str]:
    """Return what each file that depends on the solutions should hold."""
    files = {}
    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        solutions = nbformat.read(path, as_version=4)
        files[HERE / path.name] = written(students(solutions, path.name))
    return files


if __name__ == "__main__":
    for path, text in made().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    if "answers" in sys.argv:
        lines = ",\n".join(
            f"{json.dumps(number)}: {json.dumps(key)}" for number, key in answers().items()
        )
        ANSWERS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
