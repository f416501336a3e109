"""What no linter knows of the repository: links, dependencies, the wheel."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from lib.io import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells_of(path: Path) -> list[dict]:
    """Return the cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_importing_lib_loads_nothing_heavy():
    code = "import sys, lib; print({'numpy', 'torch', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()", run.stderr


def test_a_notebook_loads_the_models_of_its_run():
    """By default models/, which a batch from nothing does not have."""
    wrong = [
        path.stem
        for path in NOTEBOOKS
        for cell in cells_of(path)
        if cell["cell_type"] == "code"
        if "loan.problem()" in "".join(cell["source"])
        or "MODELS" in "".join(cell["source"])
    ]
    assert not wrong


def test_links_of_readme_and_docs_lead_to_files():
    """On GitHub and in the book; https is the web, ../../ the repository's pages there."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    wrong = [
        (page.name, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
        if not link.startswith(("https://", "../../")) and not (page.parent / link).exists()
    ]
    assert not wrong


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
    outside |= {"pyarrow"}  # pandas.read_parquet imports it
    assert names == {
        {"yaml": "pyyaml", "sklearn": "scikit"}.get(name, name.lower()) for name in outside
    }


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
