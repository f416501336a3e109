"""Run the smallest batch by other profiles, and compare with what this machine makes.

    PYTHONPATH=workflow .venv/bin/python benchmarks/profiles.py generic
    PYTHONPATH=workflow .venv/bin/python benchmarks/profiles.py slurm     on a login node

Prints how long each run took, and which files differ, if any; then the exit code is 1. All
runs begin from nothing, and lie in runs/profiles.
"""

import lib.pinned

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import clusters
import kills
import verify
from parameters import ROOT


def made_by(profile: str) -> dict[str, object]:
    """Return the results of a batch by a profile, as `kills.results` does."""
    root = verify.copy_of_sources(ROOT, ROOT / "runs" / "profiles" / profile)
    shutil.rmtree(root / "runs", ignore_errors=True)
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "workflow/reproduce.py", kills.SIZE, "--profile", profile],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    print(f"{profile}: {time.monotonic() - start:.0f} s", flush=True)
    return kills.results(Path(root, "runs", kills.SIZE))


def main() -> None:
    """Compare each profile that the command line names."""
    for profile in sys.argv[1:]:
        clusters.check_profile(profile)
    expected, wrong = made_by(clusters.LOCAL), []
    for profile in sys.argv[1:]:
        found = made_by(profile)
        names = sorted(expected.keys() | found.keys())
        differ = [name for name in names if found.get(name) != expected.get(name)]
        print(f"{profile}: {len(names) - len(differ)} of {len(names)} files are equal")
        wrong += [f"{profile}: {name} differs." for name in differ]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
