"""A batch that is killed goes on and ends as one that was not; kernels end with it."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import kills
import psutil
import yaml
from test_batch import LIMIT, set_chain
from test_workflow import ROOT, write_notebook

# a fit of 40 slow epochs in place of this project's
PROGRAM = """
import lib.pinned
import time
import torch
from jobs import run
from parameters import ROOT
from lib.base import fits
from lib.method import flow
from lib.method.world import Graph

fits.steps.__defaults__ = (iter, 0.1)  # seconds from one write to the next

def slowly(epochs):
    for epoch in epochs:
        with open(ROOT / "epochs", "a") as seen:
            print(epoch, file=seen)
        time.sleep(0.04)
        yield epoch

def fit(given, name):
    x = torch.linspace(-1, 1, 100).outer(torch.tensor([1.0, 2.0])).sin()
    fitted, history = flow.fit(
        Graph({"a": (), "b": ("a",)}), x[:80], x[80:], n_epochs=40, batch_size=20,
        progress=slowly, checkpoint=given["partial"],
    )
    fitted.save(ROOT / given["models"], name, {"best": int(history["train"].argmax())})

run({"small_fit": fit})
"""
FIRST = "models = 'models'\noutputs = 'out'\nfigures = 'figures'\nseed = 0"
TABLE = """
import pathlib, time
from lib.base import files
folder = pathlib.Path(outputs)
model = (folder / "models" / "small_fit.safetensors").read_bytes()
for i in range(20):
    files.write(folder / "step", str(i))
    time.sleep(0.05)
header = "table,setting,method,networks,metric,calibration,paper,mean,lowest,highest,"
header += "reported,difference,se_people,se_networks,se_paper,agrees"
row = f"T1,k = 4,iCARMA,as printed,validity,False,,0.{len(model)},0.4,0.6,0.5,,0.01,0.01,,"
files.write(folder / "tables" / "1_paper_vs_ours.csv", header + "\\n" + row + "\\n")
print(row)
"""


def repository(root: Path) -> Path:
    """This workflow with one small fit, and one notebook that needs it."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "workflow", root / "workflow", ignore=without)
    shutil.copytree(ROOT / "lib", root / "lib", ignore=without)
    (root / "workflow" / "small.py").write_text(PROGRAM)
    set_chain(
        root,
        NEEDS={"one": ("small_fit",)},
        FITS={"small_fit": ("small", ())},
        PROGRAMS={"small": ("workflow/small.py",)},
    )
    shared = {"models": "runs/tiny/models", "outputs": "runs/tiny"}
    shared |= {"figures": "runs/tiny/figures", "seed": 0}
    for size in ("paper", "tiny"):
        folder = root / "params" / size
        folder.mkdir(parents=True)
        (folder / "run.yaml").write_text(yaml.safe_dump(shared))
        (folder / "one.yaml").write_text("{}")
        shutil.copy(ROOT / "params" / "smoke" / "networks.yaml", folder)
    write_notebook(root / "notebooks" / "one.ipynb", FIRST, TABLE)
    return root


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def wait_for(batch: kills.Batch, is_so) -> None:
    end = time.monotonic() + LIMIT
    while not is_so():
        assert batch.process.poll() is None, batch.said.read_text()
        assert time.monotonic() < end
        batch.tree()
        time.sleep(0.02)


def test_a_batch_that_is_killed_three_times_ends_as_one_that_was_not(tmp_path):
    """Twice in the fit, at random epochs, and once in the notebook."""
    whole = kills.Batch(repository(tmp_path / "whole"), "tiny")
    root = repository(tmp_path / "killed")
    rng, record = random.Random(0), kills.Record()
    step, epochs = root / "runs" / "tiny" / "step", root / "epochs"
    for kind in ("the command", "a job", "a kernel"):
        batch, n_before = kills.Batch(root, "tiny"), len(lines(epochs))
        if kind == "a kernel":
            moment = rng.randrange(15)
            wait_for(batch, lambda n=moment: int(next(iter(lines(step)), -1)) >= n)
        else:
            moment = n_before + rng.randrange(6, 12)
            wait_for(batch, lambda n=moment: len(lines(epochs)) >= n)
        hit = batch.kill(kind, rng)
        assert hit.startswith(kind), kind
        batch.process.wait(60)
        assert batch.left() == [] and record.ran_again(batch) == [], kind
    batch = kills.Batch(root, "tiny")
    assert batch.process.wait(LIMIT) == 0, batch.said.read_text()
    assert record.ran_again(batch) == [] and record.rules >= {"small_fit", "notebook_one"}

    # The fit lost at most what it did since it was last kept, and began once.
    seen = [int(epoch) for epoch in lines(epochs)]
    begun = [i for i, epoch in enumerate(seen) if i == 0 or epoch <= seen[i - 1]]
    assert sorted(set(seen)) == list(range(40)) and seen.count(0) == 1
    assert len(seen) <= 40 + 2 * 10 and len(begun) <= 1 + 2

    assert whole.process.wait(LIMIT) == 0, whole.said.read_text()
    expected = kills.results(whole.run)
    assert {"models/small_fit.safetensors", "paper_vs_ours.csv", "one.ipynb"} < set(
        expected
    )
    assert kills.results(batch.run) == expected
    assert not (batch.run / "partial").exists()


def test_a_kernel_ends_soon_after_its_notebook_and_writes_nothing_more(tmp_path):
    root = repository(tmp_path)
    beat = root / "beat"
    again = f"import time\nwhile True:\n    open({str(beat)!r}, 'a').write('x')\n"
    write_notebook(root / "notebooks" / "one.ipynb", FIRST, again + "    time.sleep(0.01)")
    run = psutil.Popen(
        [sys.executable, "workflow/run_notebook.py", "tiny", "one"],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + LIMIT
    while not beat.exists() and time.monotonic() < end:
        time.sleep(0.05)
    (kernel,) = run.children()
    run.kill()
    run.wait(10)
    assert psutil.wait_procs([kernel], timeout=60)[1] == []
    n_beats = beat.stat().st_size
    time.sleep(0.3)
    assert beat.stat().st_size == n_beats > 0
