"""ICARMA_REQUIRE: a test that is skipped for want of what is required fails."""

import os
import re
import subprocess
import sys

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

def test_that_nobody_requires():
    pytest.skip("make is not installed")

def test_for_another_reason():
    pytest.skip("not on Sundays")
"""


@pytest.fixture
def guard(pytestconfig):
    """The module that holds the guard."""
    return pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))


def test_what_is_required_fails_and_the_rest_is_skipped(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "--rootdir", str(tmp_path)]
    command += ["-q", "--noconftest", "-p", "no:cacheprovider", "-rA", str(tmp_path)]
    environment = {"ICARMA_REQUIRE": "chromium, gmsc,node", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, env=os.environ | environment, cwd=tmp_path, capture_output=True, text=True
    )
    lost = set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", run.stdout, re.MULTILINE))
    assert lost == {"test_by_mark", "test_within", "test_by_fixture"}, run.stdout
    assert "2 skipped" in run.stdout and run.returncode == 1


def test_nothing_is_required_by_default(guard, monkeypatch):
    monkeypatch.delenv("ICARMA_REQUIRE", raising=False)
    assert guard.required() == []


def test_what_nobody_knows_is_refused(guard, monkeypatch):
    monkeypatch.setenv("ICARMA_REQUIRE", "chromium,chrome")
    with pytest.raises(pytest.UsageError, match="names chrome: expected some of"):
        guard.pytest_configure()


def test_every_reason_that_a_machine_may_lack_something_is_known(guard):
    """Each of these words stands in a reason of a test of ours."""
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    for name, pattern in guard.REQUIRED.items():
        assert any(re.search(pattern, text, re.IGNORECASE) for text in texts), name
