"""ICARMA_REQUIRE: a test that is skipped for want of what is required fails."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lib.io import ROOT

TESTS = """
import pytest

@pytest.mark.skipif(True, reason="Chromium is not installed")
def test_by_mark(): ...

def test_within():
    pytest.skip("node.js is not installed")

@pytest.fixture
def here():
    pytest.skip("the data is not here: ICARMA_GMSC_CSV names it")

def test_by_fixture(here): ...
"""


def counts(folder: Path, require: str) -> tuple[int, dict[str, int], str]:
    """Return pytest's exit code, what it counts, and its output."""
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "--rootdir", str(folder)]
    command += ["-q", "--noconftest", "-p", "no:cacheprovider", str(folder)]
    run = subprocess.run(
        command,
        env=os.environ | {"ICARMA_REQUIRE": require, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    output = run.stdout + run.stderr
    outcomes = re.findall(r"(\d+) (passed|failed|skipped|error)", output)
    return run.returncode, {name: int(n) for n, name in outcomes}, output


@pytest.mark.parametrize(
    ("require", "n_failed"),
    [("", 0), ("gmsc,node", 2), ("chromium, gmsc, node", 3)],
)
def test_what_is_required_fails_and_the_rest_is_skipped(tmp_path, require, n_failed):
    code, outcomes, output = counts(tmp_path, require)
    n_lost = outcomes.get("failed", 0) + outcomes.get("error", 0)
    assert (n_lost, outcomes.get("skipped", 0)) == (n_failed, 3 - n_failed), output
    assert (code == 0) == (n_failed == 0)


def test_what_nobody_knows_is_refused(tmp_path):
    code, _, output = counts(tmp_path, "chromium,chrome")
    assert code == 4 and "ICARMA_REQUIRE names chrome: expected some of" in output


def test_every_reason_that_a_machine_may_lack_something_is_known():
    """Each of these words stands in a reason of a test of ours."""
    required = runpy.run_path(str(ROOT / "conftest.py"))["REQUIRED"]
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    for name, pattern in required.items():
        assert any(re.search(pattern, text, re.IGNORECASE) for text in texts), name
