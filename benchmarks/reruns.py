"""Print how many minutes of a processor an edit of one room of lib runs again.

    .venv/bin/python benchmarks/reruns.py

An edit of code is meant: one of a docstring runs nothing. What reads the models of what was
run again is not counted, since it runs only if these changed. Minutes are those of
workflow/resources.csv. A room that nothing of a part imports counts with zero.
"""

import sys
from collections.abc import Collection
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

import chain  # noqa: E402 - the batch's own table
import resources  # noqa: E402

from lib.base import rooms  # noqa: E402


def minutes_by_room(jobs: Collection[str]) -> pd.Series:
    """Return the minutes of those of these notebooks and fits that import each room.

    Example:
        >>> found = minutes_by_room(["hare", "loan_carma"])
        >>> bool(found["lib/method/icarma.py"] < found["lib/method/classifier.py"])
        True
    """
    taken = resources.read()
    paths = (ROOT / "lib").rglob("[!_]*.py")
    found = pd.Series(0.0, index=[path.relative_to(ROOT).as_posix() for path in paths])
    for job in jobs:
        programs, name = [f"notebooks/{job}.ipynb"], f"notebook_{job}"
        if job in chain.FITS:
            programs, name = [*chain.PROGRAMS[chain.FITS[job][0]]], job
        own = set(rooms.imported_by(*programs, root=ROOT))
        found[found.index.isin(own)] += taken[name]["minutes"]
    return found


def main() -> None:
    """Print median, mean and largest over rooms, and the minutes of all jobs of a part."""
    rows = {}
    of_parts = {"00 to 07": chain.PARTS["paper"], "all": tuple(chain.NEEDS)}
    for part, notebooks in of_parts.items():
        fits = chain.run_for(notebooks) - chain.NEEDS.keys()
        for kind, jobs in {"notebooks": notebooks, "fits": fits}.items():
            own = minutes_by_room(jobs)  # every job imports lib.pinned
            rows[part, kind] = [own.median(), own.mean(), own["lib/pinned.py"]]
    table = pd.DataFrame(rows, index=["median room", "mean", "all jobs"]).T
    print(table.round(1).to_string())


if __name__ == "__main__":
    main()
