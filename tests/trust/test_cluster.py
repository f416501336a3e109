"""The batch by the profiles of a cluster: equal results, kills, what was left before."""

import getpass
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import clusters
import kills
import pandas as pd
import parameters
import plans
import psutil
import pytest
import reproduce
import resources
import seeds
import sweep
import test_batch
import yaml
from test_batch import FIRST, LIMIT, WRITE, set_chain, set_parameters
from test_workflow import ROOT, write_notebook

from lib.base import fits
from lib.method import loan
from lib.method.icarma import Settings

batch = test_batch.batch
PROFILES = ROOT / "workflow" / "profiles"

# Every start is written down; who finds the same job at work already says so.
ALONE = """
import fcntl
alone = open("runs/{name}.alone", "w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    found = "alone"
except BlockingIOError:
    found = "beside another"
with open("runs/starts", "a") as starts:
    print("{name}", found, file=starts)
"""
FIT = """
with open("runs/tiny/models/willingness.csv", "w") as models:
    print("fitted", file=models)
"""


@pytest.fixture
def watched(batch):
    """The batch of a notebook and of a fit that it needs, which say when they begin."""
    set_chain(
        batch,
        NEEDS={"one": ("willingness.csv",)},
        FITS={"willingness": ("willingness", ())},
        PROGRAMS={"willingness": ("workflow/willingness.py",)},
        LEAVES={"willingness": ("willingness.csv",)},
    )
    fit = ALONE.format(name="fit") + FIT
    (batch / "workflow" / "willingness.py").write_text(fit)
    for file in (batch / "notebooks" / "two.ipynb", batch / "params/tiny/two.yaml"):
        file.unlink()
    notebook = ALONE.format(name="notebook")
    write_notebook(batch / "notebooks" / "one.ipynb", FIRST, notebook, WRITE)
    return batch


def start(batch: Path, profile: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "workflow/reproduce.py", "tiny", "--profile", profile],
        cwd=batch,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finished(run: subprocess.Popen) -> None:
    output, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, output


def kill_in_the_notebook(run: subprocess.Popen, batch: Path, whom: Callable) -> None:
    """Kill some of a batch's processes while the notebook is at work."""
    said, end = batch / "runs" / "tiny" / "seconds", time.monotonic() + LIMIT
    while not said.is_file() or said.read_text() != "600":
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.05)
    batch_itself = [psutil.Process(run.pid), *psutil.Process(run.pid).children()]
    for process in whom(batch_itself):
        process.kill()
    run.communicate(timeout=LIMIT)
    psutil.wait_procs(batch_itself, timeout=LIMIT)


@pytest.fixture(scope="module")
def local() -> dict[str, object]:
    """What a local run leaves, once a test has made one."""
    return {}


def killed_and_gone_on_with(
    batch: Path, local: dict, profile: str, whom: Callable, **environment: str
) -> None:
    """Kill a batch, finish it by one command, and compare it with a local run."""
    if not local:
        copy = shutil.copytree(batch, batch / "local")
        finished(start(copy, "local"))
        local |= kills.results(copy / "runs" / "tiny")
    set_parameters(batch, "one", seconds=600)
    kill_in_the_notebook(start(batch, profile, **environment), batch, whom)
    set_parameters(batch, "one")
    finished(start(batch, profile, **environment))
    begun = (batch / "runs" / "starts").read_text()
    assert begun == "fit alone\nnotebook alone\nnotebook alone\n"
    assert kills.results(batch / "runs" / "tiny") == local
    assert {"one.ipynb", "models/willingness.csv"} < local.keys()
    assert dict(resources.measured(batch / "runs" / "tiny"))["notebook_one"]["mem_mb"] > 100


# --- what is said before anything starts


def test_a_profile_that_is_not_there_or_lacks_a_part_is_named(watched, monkeypatch):
    run = start(watched, "slrum")
    output, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 1
    assert output == "There is no profile 'slrum'; there are generic, local, slurm.\n"
    assert not (watched / "runs").exists()
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: None)
    clusters.check_profile("local")
    with pytest.raises(ValueError, match=r"pip install snakemake-executor-plugin-slurm$"):
        clusters.check_profile("slurm")


def test_without_slurm_a_login_node_is_asked_for(tmp_path):
    (tmp_path / "bash").symlink_to(shutil.which("bash"))
    alone = {"PATH": str(tmp_path), "ICARMA_BATCH": "none"}
    with pytest.raises(ValueError, match=r"start PROFILE=slurm on a login node"):
        clusters.cancel_earlier("slurm", alone)


def test_a_queue_that_does_not_answer_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    (tmp_path / "squeue").write_text("#!/bin/sh\necho Socket timed out >&2; exit 1\n")
    (tmp_path / "squeue").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ICARMA_BATCH", "none")
    with pytest.raises(ValueError, match=r"could not be cancelled(.|\n)*Socket timed out"):
        clusters.cancel_earlier("slurm", os.environ)


def test_what_another_profile_left_is_cancelled_first(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(clusters, "cancel_earlier", lambda one, *rest: seen.append(one))
    for profile in ("generic", "local", "local"):
        reproduce.cancel_earlier(tmp_path, profile, ROOT)
    assert seen == ["generic", "generic", "local", "local"]


# --- many seeds at many settings

GIVEN = {"search": "ranking", "profile": "linear", "n_settings": 1}
GIVEN |= {"n_seeds": 5, "n_per_job": 5}

PART = """
import pathlib, sys
outputs, setting, first = sys.argv[1:]
part = pathlib.Path(outputs, "parts", f"{setting}_{first}.csv")
part.write_text(f"candidate,seed,joint\\n{setting},{first},0.5\\n")
"""


def test_a_sweep_is_cut_into_parts_and_its_table_is_in_their_order(tmp_path):
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    (tmp_path / "workflow" / "seeds.py").write_text(PART)
    shutil.copytree(ROOT / "params", tmp_path / "params")
    mine = tmp_path / "mine.yaml"
    numbers = {"n_settings": 2, "n_seeds": 5, "n_per_job": 2}
    shared = {"search": "ranking", "profile": "linear", "outputs": "runs/mine"}
    mine.write_text(yaml.safe_dump(numbers | shared))
    run = subprocess.run(
        [sys.executable, "workflow/sweep.py", mine],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert run.returncode == 0, run.stderr
    table = (tmp_path / "runs" / "mine" / "networks.csv").read_text().splitlines()
    parts = [(setting, first) for setting in (0, 1) for first in (0, 2, 4)]
    rows = [f"{setting},{first},0.5" for setting, first in parts]
    assert table == ["candidate,seed,joint", *rows]
    assert "Valid and plausible (runs/mine/networks.csv)" in run.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"profile": "cubic"}, r"Unknown profile 'cubic'"),
        ({"search": "transfer"}, r"Unknown search 'transfer'"),
        ({"n_settings": 1_000}, r"There are 128 candidates, expected 1000"),
    ],
)
def test_a_sweep_of_what_there_is_not(change, message):
    with pytest.raises(ValueError, match=message):
        sweep.plan(GIVEN | change)


def test_a_part_of_a_sweep_that_was_stopped_goes_on(tmp_path, monkeypatch):
    problem, kept, trained = loan.problem(), tmp_path / "part", []
    own = "ranking", Settings(n_epochs=4), [1000]
    whole = seeds.measured(problem, *own)

    def until(last):
        for_a_while = itertools.takewhile(lambda epoch: epoch < last, itertools.count())

        def epochs(every):
            for epoch, _ in zip(every, for_a_while, strict=False):
                trained.append(epoch)
                yield epoch
            if last < 4:
                raise KeyboardInterrupt

        return lambda name: epochs

    monkeypatch.setattr(fits.steps, "__defaults__", (iter, 0.0))
    monkeypatch.setattr(seeds.progress, "bar", until(2))
    with pytest.raises(KeyboardInterrupt):
        seeds.measured(problem, *own, checkpoint=kept)
    monkeypatch.setattr(seeds.progress, "bar", until(4))
    again = seeds.measured(problem, *own, checkpoint=kept)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert trained == [0, 1, 2, 3]


def test_a_sweep_does_not_go_on_with_other_models(tmp_path, monkeypatch):
    plan = sweep.plan(GIVEN)
    plans.leave(plan, tmp_path, "parts")
    plans.leave(plan, tmp_path, "parts")
    monkeypatch.setattr(sweep, "MODELS", ("loan_flow", "loan_carma"))
    other = sweep.plan(GIVEN)
    with pytest.raises(ValueError, match=r"was begun with others: models\."):
        plans.leave(other, tmp_path, "parts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_seed": 5}, r"has no parameter 'n_seed'; did you mean n_seeds"),
        ({"n_seeds": 0}, r"n_seeds is 0, expected 1 or more"),
        ({"outputs": "models"}, r"expected a folder below runs"),
        ({"n_seeds": "5"}, r"n_seeds is '5' \(str\), expected int"),
    ],
)
def test_a_sweep_that_is_described_wrongly(tmp_path, change, message):
    given = yaml.safe_load((ROOT / "params" / "sweep.yaml").read_text()) | change
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(given))
    with pytest.raises(ValueError, match=message):
        parameters.read_run_parameters(tmp_path / "mine.yaml", "sweep")


# --- any scheduler: three commands


def test_a_batch_by_three_commands_equals_a_local_one_after_a_kill(watched, local):
    """Only reproduce.py is killed: its Snakemake ends by itself, their job goes on."""
    killed_and_gone_on_with(watched, local, "generic", lambda processes: processes[:1])


@pytest.fixture
def detached(tmp_path) -> Iterator[Callable]:
    """Call a command of the detached jobs, in a folder of their own."""
    environment = os.environ | {"ICARMA_BATCH": f"test-{tmp_path}"}

    def call(*arguments: object) -> str:
        return subprocess.run(
            [sys.executable, PROFILES / "generic" / "detached.py", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            timeout=LIMIT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()

    yield call
    call("cancel")


def submitted(detached: Callable, script: Path, lines: str) -> str:
    script.write_text(f"#!/bin/sh\n{lines}\n")
    script.chmod(0o700)
    return detached("submit", script)


def status_at_the_end(detached: Callable, job: str) -> str:
    end = time.monotonic() + LIMIT
    while (status := detached("status", job)) == "running":
        assert time.monotonic() < end
    return status


def test_detached_jobs_say_how_they_ended(detached, tmp_path):
    for lines, status in (("echo done", "success"), ("exit 3", "failed")):
        job = submitted(detached, tmp_path / "job.sh", lines)
        assert status_at_the_end(detached, job) == status
    assert detached("status", "unknown") == "failed"


@pytest.mark.parametrize("is_named", [True, False])
def test_a_cancelled_job_takes_along_what_has_a_session_of_its_own(
    detached, tmp_path, is_named
):
    """As a notebook's kernel has; another job goes on unless the whole batch is meant."""
    job_of = (
        f"{sys.executable} -c 'import subprocess as s; "
        's.Popen(["sleep", "600"], start_new_session=True).wait()\' &\n'
        f"echo $$ > {tmp_path}/pid; wait"
    )
    job = submitted(detached, tmp_path / "job.sh", job_of)
    other = submitted(detached, tmp_path / "other.sh", "sleep 600")
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    shell = psutil.Process(int((tmp_path / "pid").read_text()))
    while len(family := [shell, *shell.children(recursive=True)]) < 3:
        time.sleep(0.01)
    detached("cancel", *([job] if is_named else []))
    assert all(is_gone(process) for process in family)
    assert detached("status", job) == "failed"
    assert detached("status", other) == ("running" if is_named else "failed")


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended, whether or not somebody asked how."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


# --- Slurm

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIGURATION = """
ClusterName=tiny
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=100000
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture
def slurm(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A Slurm cluster that is this machine; yields what finds it, for the environment."""
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    missing = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=path)]
    if missing:
        pytest.skip(f"no {missing[0]}: apt-get install slurmctld slurmd slurm-client munge")
    folder = tmp_path_factory.mktemp("slurm")
    host, user = socket.gethostname(), getpass.getuser()
    ports = [free_port(), free_port()]
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(host=host, ports=ports, user=user, folder=folder)
    )
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    # Snakemake's plugin starts srun without SLURM_CONF, as if the file were in /etc
    srun = folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(
        f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n'
    )
    srun.chmod(0o700)
    path = f"{srun.parent}{os.pathsep}{path}"
    environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
    munge = [f"--{name}-file={folder / name}" for name in ("key", "log", "pid", "seed")]
    commands = (
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    )
    started = []
    try:
        for command in commands:
            with open(folder / f"{command[0]}.out", "w") as log:
                started.append(
                    subprocess.Popen(
                        command, env=os.environ | environment, stdout=log, stderr=log
                    )
                )
            wait_until((folder / "munge.socket").exists)
        wait_until(lambda: said("sinfo", "--format=%T", **environment) == "idle")
        yield environment
    finally:
        said("scancel", f"--user={user}", **environment)
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=LIMIT)


def said(*command: str, **environment: str) -> str:
    if command[0] in ("sinfo", "squeue"):
        command = (*command, "--noheader")
    ran = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT
    )
    return ran.stdout.strip()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_batch_by_slurm_equals_a_local_one_after_a_kill(watched, local, slurm):
    """Snakemake is killed in the middle, and its job goes on: it is cancelled."""
    profile = watched / "workflow" / "profiles" / "slurm" / "config.yaml"
    text, n_replaced = re.subn(r"(status-checks): \d+", r"\1: 2", profile.read_text())
    assert n_replaced == 1
    profile.write_text(text + "seconds-between-status-checks: 2\n")
    killed_and_gone_on_with(watched, local, "slurm", lambda own: own[1:], **slurm)
