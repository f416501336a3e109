"""How a job of the batch is started by name, and leaves a note if it fails."""

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from lifeline import end_with_batch
from only import only_job
from parameters import ROOT, read_network_parameters

from lib.base import files, fits

Job: TypeAlias = Callable[[Mapping[str, Any], str], None]


def run(jobs: Mapping[str, Job]) -> None:
    """Run the job that the command line names, `SIZE JOB`; leave a note if it fails.

    The note is in runs/<size>/failed, and the batch prints it at its
    end. How far the job is lies in runs/<size>/partial/<name>: until
    the end of the batch, or of a job that was started by hand. What
    other parameters or other code left there is removed.

    Arguments:
        jobs: By name: functions of the size's parameters, as
            `read_network_parameters` returns them, with the "size"
            itself and the folder "partial", and of the name.
    """
    is_of_batch = end_with_batch()
    program = sys.argv[0]
    if len(sys.argv) != 3 or sys.argv[2] not in jobs:
        sys.exit(f"usage: {program} SIZE JOB, where JOB is one of {', '.join(jobs)}")
    size, name = sys.argv[1:]
    run_folder = ROOT / "runs" / size
    partial = run_folder / "partial" / name
    with noted(run_folder, name), only_job(run_folder, name):
        given = read_network_parameters(size) | {"size": size, "partial": partial}
        try:
            jobs[name](given, name)
        except fits.OtherInputs as error:
            print(f"{name}: begins anew. {error}", flush=True)
            shutil.rmtree(partial)
            jobs[name](given, name)
        if not is_of_batch:
            shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def noted(folder: Path, name: str) -> Iterator[None]:
    """Say how long a block of a job took; if it fails, leave a note and end the process.

    Arguments:
        folder: Of the run; the note is in its folder failed.
        name: Of the job.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, noted(Path(folder), "nothing"):
        ...     pass
        nothing: finished after 0.0 min
    """
    began = time.monotonic()
    try:
        yield
    except Exception as error:  # printed at the end of the batch, like a failed notebook's
        why = f"{name} failed\n  {type(error).__name__}: {error}\n"
        with contextlib.suppress(OSError):  # a full disk has no room for it either
            files.write(folder / "failed" / f"{name}.txt", why)
        sys.exit(why)
    print(f"{name}: finished after {(time.monotonic() - began) / 60:.1f} min", flush=True)
