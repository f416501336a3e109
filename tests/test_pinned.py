"""Pins of the arithmetic: asked for, in time, or not at all."""

import lib.pinned

import os
import subprocess
import sys

import pytest

from lib.base.files import ROOT


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    """A Python process without pins, but for those of the environment."""
    unpinned = {k: v for k, v in os.environ.items() if k not in lib.pinned.PINS}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=unpinned | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_arithmetic_cannot_be_pinned_too_late(library):
    late = run(f"import {library}, lib.pinned")
    assert late.returncode == 1
    assert f"{library} was imported before lib.pinned" in late.stderr


def test_an_environment_that_is_pinned_already_may_come_first():
    found = run(
        "import numpy, torch, lib.pinned; print(torch.get_num_threads())", **lib.pinned.PINS
    )
    assert found.stdout == "1\n", found.stderr


def test_lib_pins_nothing_by_itself():
    code = "import lib, os, sys; print('torch' in sys.modules, os.environ.get('MKL_CBWR'))"
    found = run(code)
    assert found.stdout == "False None\n", found.stderr


def test_pins_hold():
    code = (
        "import lib.pinned, os, torch; "
        "assert all(os.environ[k] == v for k, v in lib.pinned.PINS.items()); "
        "print(torch.get_num_threads(), torch.get_deterministic_debug_mode())"
    )
    found = run(code)
    assert found.stdout == "1 2\n", found.stderr
