"""Which rooms of lib a program reads, so that an edit of another one reruns nothing."""

import ast
from pathlib import Path

from parameters import ROOT


def imported_by(program: str, root: Path = ROOT) -> list[str]:
    """Return the files of lib that a program imports, itself or through others, sorted.

    Arguments:
        program: Path of its file, in the repository.
        root: The repository.

    Example:
        >>> rooms = imported_by("workflow/train.py")
        >>> "lib/base/arithmetic.py" in rooms, "lib/paper/claims.py" in rooms
        (True, False)
    """
    found: set[str] = set()
    waiting = {program}
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= _imported_at_once(root / path, root) - found
    return sorted(found - {program})


def _imported_at_once(path: Path, root: Path) -> set[str]:
    """Return the files of lib that one file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    files = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == "lib":  # importing lib.base.files runs lib and lib.base as well
            for n in range(1, len(parts) + 1):
                module = "/".join(parts[:n])
                files |= {f"{module}.py", f"{module}/__init__.py"}
    return {file for file in files if (root / file).is_file()}
