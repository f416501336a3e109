"""How the rooms of lib hang together: five floors, imports that only go down, examples."""

import ast
import json
from pathlib import Path

import pytest

from lib.base.files import ROOT

# from the ground up; causal and preferences share a floor and do not know each other
folders = ("base", "causal", "preferences", "problem", "solvers", "studies")
FLOORS = dict(zip(folders, (1, 2, 2, 3, 4, 5), strict=True))
ROOMS = sorted(path for path in (ROOT / "lib").rglob("*.py") if path.name != "__init__.py")
CODE = [*ROOMS, *sorted((ROOT / "workflow").glob("*.py")), ROOT / "workflow" / "Snakefile"]
CODE += [*sorted((ROOT / "page").glob("*.py")), *sorted((ROOT / "book").glob("*.py"))]
names = pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.stem)


def imported(path: Path) -> set[str]:
    """Return the modules of lib that a room imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib."):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("lib")}
    return found


def test_every_room_is_on_a_floor():
    folders = {path.parent.name for path in ROOMS} - {"lib"}
    assert folders == set(FLOORS)
    assert [path.stem for path in ROOMS if path.parent.name == "lib"] == ["pinned"]


@names
def test_imports_only_go_down(path):
    if path.stem == "pinned":
        assert not imported(path)
        return
    own = path.parent.name
    for module in imported(path):
        folder = module.split(".")[1]
        goes_down = folder == own or FLOORS[folder] < FLOORS[own]
        assert goes_down, f"{path.stem} imports {module}"


def test_no_circles():
    graph = {
        f"lib.{path.parent.name}.{path.stem}": {
            name for name in map(room_of, imported(path)) if name
        }
        for path in ROOMS
    }
    seen: dict[str, str] = {}

    def visit(room: str) -> None:
        assert seen.get(room) != "open", f"{room} imports itself in a circle"
        if room not in seen:
            seen[room] = "open"
            for other in graph.get(room, ()):
                visit(other)
            seen[room] = "done"

    for room in graph:
        visit(room)


def room_of(module: str) -> str | None:
    """Return the room of an imported name: lib.causal.flow of lib.causal.flow.fit."""
    parts = module.split(".")
    known = {f"lib.{path.parent.name}.{path.stem}" for path in ROOMS}
    candidates = (".".join(parts[:3]), ".".join(parts[:4]))
    return next((name for name in candidates if name in known), None)


def test_importing_lib_does_nothing():
    assert len(ast.parse((ROOT / "lib" / "__init__.py").read_text()).body) == 1


@names
def test_every_public_name_has_an_example(path):
    """A function or method without a leading underscore runs an example of itself."""
    missing = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            missing += [node.name] * lacks_example(node)
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    missing += [f"{node.name}.{method.name}"] * lacks_example(method)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            missing += [node.name] * lacks_example(node)
    assert not missing


def lacks_example(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Return whether a class or function has no doctest."""
    return ">>>" not in (ast.get_docstring(node) or "")


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.name)
def test_lines_and_rooms_are_short(path):
    """A room with more than 400 lines beside its docstrings has two jobs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 92
    nodes = ast.walk(ast.parse("\n".join(lines))) if path.suffix == ".py" else []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documented = [
        node for node in nodes if isinstance(node, kinds) and ast.get_docstring(node)
    ]
    in_docstrings = sum(n.body[0].end_lineno - n.body[0].lineno + 1 for n in documented)
    assert len(lines) - in_docstrings <= 400


@names
def test_functions_have_one_idea(path):
    """Without its docstring a function has at most 60 lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            has_more = ast.get_docstring(node) and len(node.body) > 1
            first = node.body[1 if has_more else 0]
            assert node.end_lineno - first.lineno < 60, node.name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_loads_the_models_of_its_run(path):
    """By default models/, which a batch from nothing does not have."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert not any("loan.problem()" in own or "MODELS" in own for own in code)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_prints_no_warnings(path):
    """A warning names a temporary file, and so differs from one execution to the next."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [out for cell in cells for out in cell.get("outputs", [])]
    assert not ["".join(out["text"]) for out in outputs if out.get("name") == "stderr"]
