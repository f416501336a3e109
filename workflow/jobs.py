"""How a job of the batch is started by name, and leaves a note if it fails."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lifeline import end_with_batch
from parameters import ROOT, read_network_parameters
from resources import Stopwatch

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
    watch = Stopwatch()
    try:
        jobs[name](read_network_parameters(size) | {"size": size}, name)
    except Exception as error:  # printed at the end of the batch, like a failed notebook's
        note = ROOT / "runs" / size / "failed" / f"{name}.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        why = f"{name} failed\n  {type(error).__name__}: {error}\n"
        note.write_text(why, encoding="utf-8")
        sys.exit(f"{name}: failed")
    watch.write(ROOT / "runs" / size, name)
    print(f"{name}: finished after {watch.minutes:.1f} min", flush=True)
