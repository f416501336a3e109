"""Jobs as detached processes of this machine, for the profile `generic`.

    detached.py submit SCRIPT    start a job script, and print its id
    detached.py status ID        print running, success or failed
    detached.py cancel [ID ...]  end these jobs; without ids, all of ICARMA_BATCH

A job outlives the Snakemake that started it. Whatever belongs to it,
a notebook's kernel as well, is known by what stands in its
environment. So nothing is taken for a job because it got the number
of one that has ended.
"""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

FOLDER = Path(".snakemake/detached")  # what jobs print, and how they ended
BATCH, JOB = "ICARMA_BATCH", "ICARMA_JOB"
# the status is put in its place when it is whole
SCRIPT = '"$1"; echo $? > "$2.new"; mv "$2.new" "$2"'


def submit(script: str) -> str:
    """Start a job script as a process of its own session, and return the job's id."""
    job = uuid.uuid4().hex
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{job}.log", "w", encoding="utf-8") as log:
        subprocess.Popen(
            ["bash", "-c", SCRIPT, "job", script, _status_file(job)],
            env=os.environ | {JOB: job},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return job


def status(job: str) -> str:
    """Return how a job is: running, success or failed."""
    is_running = any(processes(JOB, job))
    if _status_file(job).exists():  # looked for last: it may have ended just now
        code = _status_file(job).read_text(encoding="utf-8").strip()
        return "success" if code == "0" else "failed"
    return "running" if is_running else "failed"


def cancel(name: str, value: str) -> None:
    """End every process in whose environment a name has this value, and wait for it."""
    while found := list(processes(name, value)):
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(found, timeout=0.2)


def processes(name: str, value: str) -> Iterator[psutil.Process]:
    """Yield the processes in whose environment a name has this value, but for this one."""
    for process in psutil.process_iter(["environ", "status"]):
        environment = process.info["environ"] or {}  # None: somebody else's
        is_there = process.info["status"] != psutil.STATUS_ZOMBIE
        if is_there and process.pid != os.getpid() and environment.get(name) == value:
            yield process


def _status_file(job: str) -> Path:
    return FOLDER / f"{job}.status"


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "submit":
        print(submit(*rest))
    elif command == "status":
        print(status(*rest))
    elif rest:
        for one in rest:
            cancel(JOB, one)
    else:
        cancel(BATCH, os.environ[BATCH])
