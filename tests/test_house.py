"""Habits of the house that no linter knows; imports are held by `make check`."""

import ast
import json
import re
import subprocess
import sys
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
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 720
