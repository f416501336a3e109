"""Recommendations for a data set whose run is killed: the same bits at its end."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import test_recommend
from test_batch import LIMIT
from test_recommend import parameters, told

from lib.base.files import ROOT
from lib.beyond.millions import blocks

people, data, whole = test_recommend.people, test_recommend.data, test_recommend.whole


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of what a run needs of the repository."""
    for name in ("workflow", "lib", "params"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "models").mkdir()
    for path in (ROOT / "models").glob("loan_*.safetensors"):
        shutil.copy(path, tmp_path / "models")
    return tmp_path


def start(copy: Path) -> subprocess.Popen:
    """Start the run of mine.yaml."""
    return subprocess.Popen(
        [sys.executable, "workflow/recommend.py", "mine.yaml"],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(whole, data, copy):
    """Killed when one of two jobs is done: that one is not done again."""
    outputs = copy / "runs" / "mine"
    differs = {"n_per_job": 2 * blocks.SIZE, "outputs": "runs/mine"}
    parameters(copy, data, **differs)
    parts, end = outputs / "recommendations", time.monotonic() + LIMIT
    log = outputs / "snakemake.log"
    run = start(copy)
    try:
        while not (log.is_file() and "1 of 4 steps" in log.read_text()):
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.02)
    finally:
        run.kill()
    run.communicate(timeout=LIMIT)  # returns once no process is left to write
    assert not (outputs / "manifest.json").exists()
    before = {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}

    again = start(copy)
    said = again.communicate(timeout=LIMIT)[0]
    assert again.returncode == 0, said
    after = {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}
    kept = [name for name in before if after[name] == before[name]]
    assert len(after) == 2 and kept, "what was finished is not answered again"
    assert told(outputs).equals(told(whole[0]))
    found = json.loads((outputs / "manifest.json").read_text())["found"]
    assert found == whole[1]["found"]
    assert (outputs / "summary.csv").read_text() in said
