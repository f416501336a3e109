"""Which rooms of lib a program imports, and a digest of what their code says.

By them a batch, a plan and a checkpoint know what an edit touches. Docstrings, comments and
layout are no part of a digest.
"""

import ast
import functools
import hashlib
import json
import re
from pathlib import Path

from lib.base.files import ROOT

DOOR = "lib/__init__.py"


def imported_by(*programs: str | Path, root: Path = ROOT) -> list[str]:
    """Return the files of lib that programs import, themselves or through others, sorted.

    `lib` itself is its `__init__.py` alone, which loads names on
    demand; `from lib import Problem` is the room that its table
    `_ROOMS` names.

    Arguments:
        programs: Paths of programs, notebooks or rooms, in the
            repository or anywhere.
        root: The repository.

    Example:
        >>> found = imported_by("lib/method/flow.py")
        >>> "lib/base/arithmetic.py" in found, "lib/method/icarma.py" in found
        (True, False)
    """
    loads = _loaded_by_the_door(root)
    found, waiting = set[str](), set[str]()
    for program in programs:
        waiting |= _imported(program, loads, root)
    while waiting:
        path = waiting.pop()
        found.add(path)
        if path != DOOR:
            waiting |= _imported(path, loads, root) - found
    return sorted(found)


def digest(*paths: str | Path, root: Path = ROOT) -> str:
    """Return a short text that differs where the code of files does, in this order.

    Example:
        >>> flow, scm = "lib/method/flow.py", "lib/method/scm.py"
        >>> digest(flow) == digest(flow), digest(flow) == digest(scm)
        (True, False)
    """
    code = [_understood(_text(root / path))[1] for path in paths]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def _imported(path: str | Path, loads: dict[str, str], root: Path) -> set[str]:
    """Return the files of lib that one file imports, wherever in it."""
    found = set()
    for name in _understood(_text(root / path))[0]:
        parts = loads.get(name, name).split(".")
        for n in range(1, len(parts) + 1):  # lib.base.files runs lib and lib.base as well
            module = "/".join(parts[:n])
            found |= {f"{module}.py", f"{module}/__init__.py"}
    return {file for file in found if (root / file).is_file()}


def _loaded_by_the_door(root: Path) -> dict[str, str]:
    """Return the room of each name that `lib` loads on demand, both with dots."""
    if (root / DOOR).is_file():
        for node in ast.parse(_text(root / DOOR)).body:
            match node:
                case ast.Assign([ast.Name("_ROOMS")], ast.Dict() as table) | ast.AnnAssign(
                    ast.Name("_ROOMS"), value=ast.Dict() as table
                ):
                    said = ast.literal_eval(table)
                    return {f"lib.{name}": room for name, room in said.items()}
    return {}


def _text(path: Path) -> str:
    """Return the code of a file; of a notebook, that of its cells, without magics."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^[%!].*", "", code, flags=re.MULTILINE)


@functools.cache
def _understood(text: str) -> tuple[frozenset[str], str]:
    """Return what of lib a text imports, with dots, and what it computes, as one line."""
    tree, names = ast.parse(text), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                names |= {alias.name for alias in imported}
            case ast.ImportFrom(module=str() as module, names=imported):
                names |= {f"{module}.{alias.name}" for alias in imported}
            case ast.Attribute(ast.Name("lib"), name):
                names.add(f"lib.{name}")
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [part for part in body if not _is_read_only(part)]
    of_lib = frozenset(name for name in names if name.partition(".")[0] == "lib")
    return of_lib, ast.dump(tree)


def _is_read_only(part: ast.AST) -> bool:
    """Return whether a statement is a constant, as a docstring is: it computes nothing."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
