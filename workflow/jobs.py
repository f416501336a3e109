"""How a job of the batch is started by name, and leaves a note if it fails."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from lifeline import end_with_batch
from parameters import ROOT, read_network_parameters

Job: TypeAlias = Callable[[Mapping[str, Any], str], None]


def run(jobs: Mapping[str, Job]) -> None:
    """Run the job that the command line names, `SIZE JOB`; leave a note if it fails.

    The note is in runs/<size>/failed, and the batch prints it at its
    end.

    Arguments:
        jobs: By name: functions of the size's parameters, as
            `read_network_parameters` returns them, with the "size"
            itself, and of the name.
    """
    end_with_batch()
    program = sys.argv[0]
    if len(sys.argv) != 3 or sys.argv[2] not in jobs:
        sys.exit(f"usage: {program} SIZE JOB, where JOB is one of {', '.join(jobs)}")
    size, name = sys.argv[1:]
    with noted(ROOT / "runs" / size, name):
        jobs[name](read_network_parameters(size) | {"size": size}, name)


@contextmanager
def noted(folder: Path, name: str) -> Iterator[None]:
    """Say how long a block of a job took; if it fails, leave a note and end the process.

    Arguments:
        folder: Of the run; the note is in its folder failed.
        name: Of the job.

    Example:
        >>> with noted(Path("runs/any"), "nothing"):
        ...     pass
        nothing: finished after 0.0 min
    """
    start = time.monotonic()
    try:
        yield
    except Exception as error:  # printed at the end of the batch, like a failed notebook's
        note = folder / "failed" / f"{name}.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        why = f"{name} failed\n  {type(error).__name__}: {error}\n"
        note.write_text(why, encoding="utf-8")
        sys.exit(f"{name}: failed")
    print(f"{name}: finished after {(time.monotonic() - start) / 60:.1f} min", flush=True)
