"""How a job of the batch is started by name, and leaves a note if it fails."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from parameters import ROOT, read_network_parameters

from lib import io

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
    if len(sys.argv) != 3 or sys.argv[2] not in jobs:
        sys.exit(f"usage: {sys.argv[0]} SIZE JOB, where JOB is one of {', '.join(jobs)}")
    size, name = sys.argv[1:]
    began = time.monotonic()
    try:
        jobs[name](read_network_parameters(size) | {"size": size}, name)
    except Exception as error:  # printed at the end of the batch, like a failed notebook's
        note = f"{name} failed\n  {type(error).__name__}: {error}\n"
        io.write(ROOT / "runs" / size / "failed" / f"{name}.txt", note)
        raise
    print(f"{name}: finished after {(time.monotonic() - began) / 60:.1f} min", flush=True)
