"""Habits of the house that no linter knows; imports are held by `make check`."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

from lib.base.files import ROOT

# where a public name has an example that runs: what a reader meets first
WITH_EXAMPLES = [
    ROOT / "lib" / "__init__.py",
    *(
        p
        for folder in ("base", "method")
        for p in sorted((ROOT / "lib" / folder).glob("*.py"))
    ),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# public names that nothing here uses but their tests: readers may
OFFERED = {
    "asking",  # a real person, in place of the simulated ones of notebook 09:
    "typed",
    "buttons",
    "when_alike",  # the noise that HARE's released code has
    "nearest_miss",  # of a proposer
    "likeliest",  # sets for a proposer of many features
    "HybridSampler",  # which the paper has
    "Grouped",  # which the paper has
    "adjacency",  # of a graph
    "ref_df",  # as R prints it
}


def cells_of(path: Path) -> list[dict]:
    """Return the cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_the_method_and_its_base_have_examples():
    """A public function runs an example of itself; a method, or its class's uses it."""
    missing = []
    for path in WITH_EXAMPLES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_":
                shown = ast.get_docstring(node) or ""
                missing += [f"{path.stem}: {node.name}"] * (">>>" not in shown)
                methods = node.body if isinstance(node, ast.ClassDef) else []
                missing += [
                    f"{path.stem}: {node.name}.{method.name}"
                    for method in methods
                    if isinstance(method, ast.FunctionDef) and method.name[0] != "_"
                    if ">>>" not in (ast.get_docstring(method) or "")
                    and f".{method.name}" not in shown.partition(">>>")[2]
                ]
    assert not missing


def test_importing_lib_loads_nothing_heavy():
    code = "import sys, lib; print({'numpy', 'torch', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()", run.stderr


def test_a_notebook_loads_the_models_of_its_run():
    """By default models/, which a batch from nothing does not have."""
    found = [
        path.stem
        for path in NOTEBOOKS
        for cell in cells_of(path)
        if cell["cell_type"] == "code"
        if "loan.problem()" in "".join(cell["source"])
        or "MODELS" in "".join(cell["source"])
    ]
    assert not found


def test_a_notebook_prints_no_warnings():
    """A warning names a temporary file, and so differs from one execution to the next."""
    outputs = [
        (path.stem, "".join(out["text"]))
        for path in NOTEBOOKS
        for cell in cells_of(path)
        for out in cell.get("outputs", [])
        if out.get("name") == "stderr"
    ]
    assert not outputs


def test_links_of_readme_and_docs_lead_to_files():
    """On GitHub and in the book; what is meant for the web begins with https."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    found = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
        if not link.startswith("https://") and not (page.parent / link).exists()
    ]
    assert not found


def test_readme_can_be_read_in_three_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700


def code_of(path: Path) -> str:
    """Return the code of a program or a notebook, without docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [own for own in cells_of(path) if own["cell_type"] == "code"]
        text = "\n".join("".join(own["source"]) for own in cells)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        is_room = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if is_room and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def test_nothing_lies_about():
    """Rooms, public names, parameters and csv files: each is used, not by tests alone."""
    folders = ("lib", "workflow", "benchmarks", "page", "docs", "exercises", "examples")
    paths = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    code = {path: code_of(path) for path in [*paths, *NOTEBOOKS]}
    code[ROOT / "workflow" / "Snakefile"] = (ROOT / "workflow" / "Snakefile").read_text()
    words = Counter(word for own in code.values() for word in re.findall(r"\w+", own))
    unused = []
    for path in (ROOT / "lib").rglob("*.py"):
        if not words[path.stem] and path.name != "__init__.py":
            unused.append(path.stem)
        for node in ast.walk(ast.parse(code[path])):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [one.id for one in targets if isinstance(one, ast.Name)]
            else:
                continue
            unused += [name for name in names if words[name] == 1 and name[0] != "_"]
    assert set(unused) == OFFERED

    for path in NOTEBOOKS:
        first, rest = "", ""
        for cell in cells_of(path):
            is_first = "parameters" in cell["metadata"].get("tags", [])
            source = "".join(cell["source"]) + "\n"
            first, rest = (first + source, rest) if is_first else (first, rest + source)
        names = re.findall(r"^(\w+) = ", first, re.MULTILINE)
        assert names and not set(names) - set(re.findall(r"\w+", rest)), path.stem

    for folder in ("params", "data", "benchmarks"):
        for path in (ROOT / folder).rglob("*.csv*"):
            parts = re.sub(r"S?\d+$", "", path.name.partition(".")[0]).split("_")
            assert all(any(part in own for own in code.values()) for part in parts), path


def test_the_package_declares_what_it_imports():
    paths = sorted((ROOT / "lib").rglob("*.py"))
    imported = set()
    for node in (one for path in paths for one in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    outside = imported - set(sys.stdlib_module_names) - {"lib"}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "dependencies"
    ]
    names = {re.match(r"[a-z]+", one)[0] for one in declared}
    assert names == {{"yaml": "pyyaml"}.get(name, name.lower()) for name in outside}


def test_the_wheel_holds_lib_alone(tmp_path):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("lib", "workflow", "exercises"):
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=without)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", "wheels", "."], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = (path for path in (ROOT / "lib").rglob("*.py"))
    assert held == {path.relative_to(ROOT).as_posix() for path in ours}
