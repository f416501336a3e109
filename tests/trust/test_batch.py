"""Small batches: what is run, run again, refused; what fails; the line to a job."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lifeline
import nbformat
import pytest
import report
import yaml
from reproduce import run_notebooks
from test_workflow import ROOT, write_notebook

LIMIT = 1_200  # seconds; what takes longer hangs, however busy the machine is

# --- a batch of two tiny notebooks

FIRST = "seconds = 0\nmodels = 'models'\noutputs = 'out'\nfigures = 'figures'"
TABLE = (
    ",".join(report.COLUMNS)
    + "\\nT1,k = 4,iCARMA,as printed,validity,False,0.5,0.5,0.4,0.6,0.5,0,0.01,0.01,,\\n"
)
WRITE = f"""
import pathlib, sys, time
folder = pathlib.Path(outputs)
(folder / "tables").mkdir(parents=True, exist_ok=True)
(folder / "python").write_text(sys.executable)
(folder / "seconds").write_text(str(seconds))
time.sleep(seconds)
(folder / "tables" / "1_paper_vs_ours.csv").write_text("{TABLE}")
"""
MODEL = """
import pathlib
model = pathlib.Path(models, "one.csv")
model.parent.mkdir(parents=True, exist_ok=True)
model.write_text("fitted")
"""


def set_chain(root: Path, **tables: object) -> None:
    """Let the batch of a copy be made of other notebooks and fits."""
    with open(root / "workflow" / "chain.py", "a") as chain:
        for name in ("NEEDS", "FITS", "PROGRAMS", "LEAVES", "READS", "PARTS"):
            print(f"{name} = {tables.get(name, {})!r}", file=chain)


@pytest.fixture
def batch(tmp_path):
    """A repository with this workflow and two notebooks; the second needs the first's."""
    shutil.copytree(
        ROOT / "workflow",
        tmp_path / "workflow",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    needs = {"one": (), "two": ("one.csv",)}
    set_chain(tmp_path, NEEDS=needs, LEAVES={"one": ("one.csv",)})
    shared = {"outputs": "runs/tiny", "models": "runs/tiny/models"}
    for size in ("paper", "tiny"):
        (tmp_path / "params" / size).mkdir(parents=True)
        (tmp_path / "params" / size / "run.yaml").write_text(yaml.safe_dump(shared))
        shutil.copy(ROOT / "params/smoke/networks.yaml", tmp_path / "params" / size)
    for name, more in (("one", [MODEL]), ("two", [])):
        write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", FIRST, WRITE, *more)
        set_parameters(tmp_path, name)
    return tmp_path


def set_parameters(batch: Path, notebook: str, **values) -> None:
    path = batch / "params" / "tiny" / f"{notebook}.yaml"
    path.write_text(yaml.safe_dump({"seconds": 0} | values))


def start(batch: Path, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "workflow/reproduce.py", "tiny", *options],
        cwd=batch,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def reproduce(batch: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of a whole batch."""
    run = start(batch, *options)
    output, _ = run.communicate(timeout=LIMIT)
    return run.returncode, output


def killed_when(run: subprocess.Popen, is_so: Callable[[], bool]) -> None:
    """Kill a batch as soon as something is so, and wait until its processes are gone."""
    end = time.monotonic() + LIMIT
    try:
        while not is_so():
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.05)
    finally:
        run.kill()
    run.communicate(timeout=LIMIT)  # returns once no process is left to write


def test_batch_runs_resumes_and_reruns_what_an_edit_touches(batch):
    # Killed in the middle of the second notebook: its kernel ends too, and the next call
    # begins there.
    set_parameters(batch, "two", seconds=600)
    said = batch / "runs/tiny/seconds"
    killed_when(start(batch), lambda: said.is_file() and said.read_text() == "600")
    assert [path.name for path in (batch / "runs/tiny/done").iterdir()] == ["one"]
    set_parameters(batch, "two")
    status, output = reproduce(batch)
    assert status == 0, output
    assert "one: started" not in output and "two: finished" in output
    assert "T1" in output and (batch / "runs/tiny/paper_vs_ours.csv").is_file()
    assert (batch / "runs/tiny/python").read_text() == sys.executable

    # An edit of what is shared runs both again; that of the second one's file above did not
    # touch the first.
    for size in ("paper", "tiny"):
        with open(batch / "params" / size / "run.yaml", "a") as shared:
            print(f"figures: runs/{size}/elsewhere", file=shared)
    assert started(batch) == ["one", "two"]


def started(batch: Path) -> list[str]:
    """The notebooks and fits that the next command begins."""
    status, output = reproduce(batch)
    assert status == 0, output
    return re.findall(r"^(\w+): started", output, flags=re.MULTILINE)


def test_what_was_made_again_and_is_the_same_to_the_bit_reruns_nothing(batch):
    """The third notebook reads two models, the second's and what that was made of."""
    needs = {"one": (), "two": ("one.csv",), "three": ("one.csv", "two.csv")}
    leaves = {"one": ("one.csv",), "two": ("two.csv",)}
    set_chain(batch, NEEDS=needs, LEAVES=leaves)
    folder = batch / "notebooks"
    first = (FIRST, WRITE, MODEL)
    write_notebook(folder / "one.ipynb", *first)
    write_notebook(folder / "two.ipynb", FIRST, MODEL.replace("one.csv", "two.csv"))
    write_notebook(folder / "three.ipynb", FIRST, WRITE)
    (batch / "params" / "tiny" / "three.yaml").write_text("seconds: 0\n")
    assert started(batch) == ["one", "two", "three"]
    assert started(batch) == []
    write_notebook(folder / "one.ipynb", *first, "looked_at = 1")
    assert started(batch) == ["one"]
    write_notebook(folder / "one.ipynb", *first, "model.write_text('fitted again')")
    assert started(batch) == ["one", "two", "three"]


def test_a_part_runs_with_what_it_needs_and_no_more(batch):
    """The paper's ends with a table; the other is on top of it."""
    needs = {"one": (), "two": ("one.csv",), "three": ()}
    parts = {"paper": ("three",), "beyond": ("two",)}
    set_chain(batch, NEEDS=needs, LEAVES={"one": ("one.csv",)}, PARTS=parts)
    shutil.copy(batch / "notebooks" / "two.ipynb", batch / "notebooks" / "three.ipynb")
    (batch / "params" / "tiny" / "three.yaml").write_text("seconds: 0\n")
    for part, begun in (("paper", {"three"}), ("beyond", {"one", "two"})):
        status, output = reproduce(batch, "--part", part)
        assert status == 0, output
        assert set(re.findall(r"^(\w+): started", output, flags=re.MULTILINE)) == begun
        assert ("T1" in output) is (part == "paper")


def test_part_of_a_batch_runs_in_a_copy_and_imports_its_lib(batch):
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lib", batch / "lib", ignore=without)
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "import lib, pathlib\npathlib.Path('seen').write_text(lib.__file__)",
        MODEL,
    )
    run_notebooks("tiny", batch, ["one"])
    assert (batch / "seen").read_text() == str(batch / "lib" / "__init__.py")
    assert [path.name for path in (batch / "runs/tiny/done").iterdir()] == ["one"]


def test_failed_notebook_is_kept_and_named(batch):
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "a = 1",
        "\nassert a == 2, 'no luck'\n",
        "b = 1",
    )
    status, output = reproduce(batch)
    assert status == 1
    # In [1] is the parameters cell, In [2] the values that papermill puts after it.
    assert (
        "one failed in cell In [4]: assert a == 2, 'no luck'\n"
        "  AssertionError: no luck\n"
        "  kept: runs/tiny/one.ipynb"
    ) in output
    assert "two" not in output
    kept = nbformat.read(batch / "runs/tiny/one.ipynb", as_version=4)
    counts = [c.execution_count for c in kept.cells if c.cell_type == "code"]
    assert counts == [1, 2, 3, 4, None]
    assert not (batch / "runs/tiny/done/one").exists()


def test_kernel_that_dies_is_a_failure(batch):
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "b = 1",
    )
    (batch / "runs" / "tiny").mkdir(parents=True)
    run = subprocess.run(
        [sys.executable, "workflow/run_notebook.py", "tiny", "one"],
        cwd=batch,
        timeout=LIMIT,
    )
    assert run.returncode == 1
    note = (batch / "runs/tiny/failed/one.txt").read_text()
    assert note.startswith(
        "one failed in cell In [3]: import os, signal\n  DeadKernelError: Kernel died"
    )


def test_wrong_parameter_is_refused_before_any_kernel_starts(batch):
    set_parameters(batch, "two", secnods=1)
    status, output = reproduce(batch)
    assert status == 1
    assert (
        "params/tiny/two.yaml: the notebook has no parameter 'secnods'; did you mean "
        "seconds?"
    ) in output
    assert not (batch / "runs").exists()


def test_second_batch_at_once_is_refused(batch):
    (batch / "runs" / "tiny").mkdir(parents=True)
    with open(batch / "runs" / "tiny" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print("1234", end="", file=lock, flush=True)
        status, output = reproduce(batch)
    assert status == 1
    assert "A batch in runs/tiny is running already (process 1234): wait for it" in output


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (None, ""),
        ("runs/a/mine/.lock", "A batch in runs/a/mine is running already (process 12): it"),
        ("runs/environment.lock", "The making of .venv is running already (process 12): w"),
    ],
)
def test_the_environment_is_made_alone(tmp_path, lock, message):
    (tmp_path / "workflow").mkdir()
    for name in ("environment.py", "only.py"):
        shutil.copy(ROOT / "workflow" / name, tmp_path / "workflow")
    with contextlib.ExitStack() as held:
        if lock:
            (tmp_path / lock).parent.mkdir(parents=True)
            file = held.enter_context(open(tmp_path / lock, "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            print("12", end="", file=file, flush=True)
        ended = subprocess.run(
            [sys.executable, "workflow/environment.py", "sh", "-c", "echo made; exit 3"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.stderr.startswith(message)
    expected = (1, "") if lock else (3, "made\n")
    assert (ended.returncode, ended.stdout) == expected


# --- the line from a job to its batch

JOB = """
import os, subprocess, sys, time
from lifeline import VARIABLE, end_with_batch
end_with_batch()
print(os.environ.get(VARIABLE, "not passed on"), flush=True)
time.sleep(float(sys.argv[1]))
"""


def start_job(seconds: float, **environment) -> subprocess.Popen:
    """A job with a pipe as standard input."""
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(seconds)],
        env={k: v for k, v in os.environ.items() if k != lifeline.VARIABLE} | environment,
        cwd=ROOT / "workflow",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_job_of_a_batch_ends_with_it_and_says_so():
    job = start_job(60, **{lifeline.VARIABLE: "stdin"})
    assert job.stdout.readline() == "not passed on\n"
    with pytest.raises(subprocess.TimeoutExpired):  # the batch lives, and the job too
        job.wait(timeout=0.5)
    _, why = job.communicate(timeout=120)  # closes its standard input
    assert job.returncode == 1 and why == "The batch has ended, and so does this job.\n"


def test_job_started_by_hand_outlives_its_pipe():
    job = start_job(0.5)
    assert job.communicate(timeout=120) == ("not passed on\n", "")
    assert job.returncode == 0
