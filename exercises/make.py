"""Make the students' files from the solutions, and the lists at the end of the notebooks.

    python exercises/make.py

The source is exercises/solutions. There, a cell's lines between `# solution: BLANK` and
`# end` become BLANK in the student's file; cells tagged `solution` are left out, with a
link in their place. The title "Solutions: ..." becomes "Exercises: ...". An exercise begins
with a heading, `## 04.2 Its title`.
"""

import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOLUTIONS = HERE / "solutions"
BLANK = re.compile(r"^( *)# solution: (.*)\n(?:.*\n)*?^ *# end$", re.MULTILINE)
TITLE = "# Solutions: "
HEADING = re.compile(r"^## (\w+\.\d+) (.+)$", re.MULTILINE)
SECTION = re.compile(r"(?<=## Exercises\n)(?:.*\n)*?(?=\n## |\Z)")


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
            target.outputs, target.execution_count = [], None
        made.cells.append(target)
    return made


def titles(solutions: NotebookNode) -> dict[str, str]:
    """Return the exercises of a notebook: number and title, in order."""
    text = "\n".join(c.source for c in solutions.cells if c.cell_type == "markdown")
    return dict(HEADING.findall(text))


def listed(source: str, solutions: NotebookNode, name: str) -> str:
    """Return a cell's source with its section "Exercises" made from the solutions."""
    lines = [
        f"In [exercises/{name}](../exercises/{name}). What you answer there is checked, "
        "and for common mistakes you are told what went wrong.",
        "",
    ]
    lines += [f"- **{n}** {title}" for n, title in titles(solutions).items()]
    return SECTION.sub(lambda _: "\n".join(lines) + "\n", source + "\n").rstrip("\n")


def written(notebook: Any) -> str:
    """Return a notebook as it is written to a file."""
    return nbformat.writes(notebook) + "\n"


def made() -> dict[Path, str]:
    """Return what each file that depends on the solutions should hold."""
    files = {}
    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        solutions = nbformat.read(path, as_version=4)
        files[HERE / path.name] = written(students(solutions, path.name))
        story = nbformat.read(ROOT / "notebooks" / path.name, as_version=4)
        for cell in story.cells:
            if cell.cell_type == "markdown" and "## Exercises\n" in cell.source:
                cell.source = listed(cell.source, solutions, path.name)
        files[ROOT / "notebooks" / path.name] = written(story)
    return files


if __name__ == "__main__":
    for path, text in made().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
