"""Run the command that makes .venv, alone: called by the Makefile, by any Python.

`python3 workflow/environment.py COMMAND ...`

A second one that is started meanwhile says so and stops. So does one
that would take .venv away from a batch that is using it.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from only import only_one

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run the command of the command line, and end as it does."""
    try:
        with contextlib.ExitStack() as held:
            lock = ROOT / "runs" / "environment.lock"
            way_out = "wait for it, then start this again."
            held.enter_context(only_one(lock, "The making of .venv", way_out))
            way_out = "it needs .venv, which is now to be made afresh. Wait, or stop it."
            for lock in sorted((ROOT / "runs").rglob(".lock")):
                what = f"A batch in {lock.parent.relative_to(ROOT)}"
                held.enter_context(only_one(lock, what, way_out))
            sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
