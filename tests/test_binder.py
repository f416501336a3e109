"""Binder builds from environment.yml: the rules of repo2docker, file by file.

Source: repo2docker's build packs (jupyterhub/repo2docker). They are tried in order, and the
first that finds its file builds.
"""

import os
import re

import yaml

from lib.io import ROOT

# These would be found before environment.yml, or in its place.
OTHERS = ("binder", ".binder", "Dockerfile", "Project.toml", "JuliaProject.toml", "REQUIRE")
OTHERS += ("default.nix", "install.R", "DESCRIPTION", "runtime.txt", "environment.yaml")
# These would be run in addition; postBuild is.
HOOKS = ("start", "apt.txt")
FROZEN = {"3.9", "3.10", "3.11", "3.12", "3.13"}  # Pythons with a base environment there

ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
(FROM_PIP,) = (
    entry["pip"]
    for entry in ENVIRONMENT["dependencies"]
    if entry != "pip" and "pip" in entry
)


def test_nothing_is_found_before_it():
    assert not [name for name in (*OTHERS, *HOOKS) if (ROOT / name).exists()]


def test_a_base_environment_of_its_python_exists():
    """It is read from the line "python=X.Y", by this expression."""
    lines = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
    (match,) = [
        m for m in (re.match(r"python\s*=+\s*([\d.]*)", line) for line in lines) if m
    ]
    assert match[1] in FROZEN
    assert f'requires-python = ">={match[1]}"' in (ROOT / "pyproject.toml").read_text()


def test_the_repository_is_there_when_pip_runs():
    """The whole repository is copied first if a line of pip's is local, such as -r."""
    assert any(line.startswith("-r ") for line in FROM_PIP)
    for line in FROM_PIP:
        option, _, value = line.partition(" ")
        if option == "-r":
            assert (ROOT / value).exists(), line
    assert os.access(ROOT / "postBuild", os.X_OK)


def test_what_a_notebook_needs_is_pinned():
    """JupyterLab is replaced by ours, the widget and the kernel come with it."""
    pinned = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name in ("jupyterlab", "ipykernel", "ipywidgets", "anywidget"):
        assert re.search(rf"^{name}==", pinned, re.MULTILINE), name
