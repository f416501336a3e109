"""What each job of a batch takes: written down by the jobs, collected for the Snakefile.

`python workflow/resources.py` puts what the jobs of runs/paper took into
workflow/resources.csv, by which a cluster gives them memory and time;
and the most that a part of other runs took, if they are of the size in
`PARTS`. Run it after a paper-size batch that was not interrupted: a job
that went on from a checkpoint says only what the rest took. A job that
has not run keeps its line.
"""

import csv
import io
import json
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from parameters import MODEL_SIZE, ROOT

from lib.base import files

TABLE = ROOT / "workflow" / "resources.csv"
COLUMNS = ("job", "mem_mb", "minutes", "threads")
# A cluster gives so many times what was measured: another machine, or another day, has been
# seen to take twice as long, and Snakemake itself takes some of the memory.
MARGIN = 2
N_SWEEP, N_EPOCHS = 40, 300  # networks of the part of a sweep that was measured
N_ANSWERS = 250_000  # applicants of a job of recommendations that was measured
MB_A_MEMBER = 15  # what each further member of iCARMA adds to such a job's memory
RECOMMEND = "recommend_{problem}_{solver}"  # its name
# by job: a folder of runs, and what its plan must say to be that part
PARTS: dict[str, tuple[str, dict[str, object]]] = {
    "sweep": ("sweep", {"n_per_job": N_SWEEP}),
    **{
        RECOMMEND.format(problem=problem, solver=solver): (
            f"populations/{problem}_{solver}",
            {"n_per_job": N_ANSWERS, "n_members": 1, "solver": solver, "problem": problem},
        )
        for problem in ("loan", "gmsc")
        for solver in ("icarma", "proposer")
    },
}


class Stopwatch:
    """Hold when this process began a job.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> watch = Stopwatch()
        >>> with TemporaryDirectory() as folder:
        ...     watch.write(Path(folder), "a_fit")
        ...     (row,) = read(Path(folder) / "resources" / "a_fit.csv").values()
        >>> row["threads"], row["mem_mb"] > 10
        (1, True)
    """

    def __init__(self) -> None:
        self.start, self.busy_before = time.monotonic(), _busy()

    @property
    def minutes(self) -> float:
        """Return how many minutes ago that was."""
        return (time.monotonic() - self.start) / 60

    def write(self, run: Path, job: str) -> None:
        """Write peak memory, minutes and threads of a job to runs/<size>/resources.

        The peak is this process's own and the largest of those that
        it waited for, as if both came at once: a notebook's job and
        its kernel. Minutes are those that processors were busy, over
        the threads: what the job takes on cores of its own, however
        busy this machine is. Threads are processors that were busy on
        average, rounded, at least one.

        Arguments:
            run: The folder runs/<size>.
            job: Its name.
        """
        unit = 1e6 if sys.platform == "darwin" else 1e3
        busy = _busy() - self.busy_before
        threads = max(1, round(busy / self.minutes))
        row = {
            "job": job,
            "mem_mb": round(sum(used.ru_maxrss for used in _used()) / unit),
            "minutes": round(busy / threads, 2),
            "threads": threads,
        }
        write(run / "resources" / f"{job}.csv", {job: row})


def asked_for(
    job: str, table: Mapping[str, Mapping[str, float]], times: float = 1
) -> dict[str, int]:
    """Return what a cluster is asked to give a job: mem_mb, runtime in minutes, threads.

    It is `MARGIN` times what was measured, and one minute for the
    start. A job that was never measured gets the most that any needs.

    Arguments:
        job: Its name.
        table: As `read` returns it.
        times: As much work as was measured, so many times.

    Example:
        >>> table = {"a": {"mem_mb": 300, "minutes": 1.2, "threads": 1}}
        >>> asked_for("a", table)
        {'mem_mb': 600, 'runtime': 4, 'threads': 1}
        >>> asked_for("new", table) == asked_for("a", table)
        True
    """
    rows = [table[job]] if job in table else list(table.values())
    most = {name: max(row[name] for row in rows) for name in COLUMNS[1:]}
    return {
        "mem_mb": int(MARGIN * most["mem_mb"] * max(times, 1)),
        "runtime": int(MARGIN * most["minutes"] * times + 2),
        "threads": int(most["threads"]),
    }


def read(file: Path = TABLE) -> dict[str, dict[str, float]]:
    """Return a table of resources, by job.

    Example:
        >>> read()["loan_carma"]["threads"]
        1
    """
    with open(file, newline="", encoding="utf-8") as lines:
        return {
            row["job"]: {
                "mem_mb": int(row["mem_mb"]),
                "minutes": float(row["minutes"]),
                "threads": int(row["threads"]),
            }
            for row in csv.DictReader(lines)
        }


def write(file: Path, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Write a table of resources, in place of what was there in one step.

    Arguments:
        file: A csv file.
        rows: By job: its name, and what it took.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row = {"job": "a", "mem_mb": 300, "minutes": 1.2, "threads": 1}
        >>> with TemporaryDirectory() as folder:
        ...     write(Path(folder) / "a.csv", {"a": row})
        ...     read(Path(folder) / "a.csv")
        {'a': {'mem_mb': 300, 'minutes': 1.2, 'threads': 1}}
    """
    lines = io.StringIO()
    table = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows.values())
    files.write(file, lines.getvalue())


def of_parts(run: Path, size: Mapping[str, object]) -> list[dict[str, float]]:
    """Return what each part of a run took; nothing if its plan is of another size.

    Recommendations are made for the refused: their minutes are given
    as if all applicants were.

    Arguments:
        run: A folder with a plan.json, of a sweep or of recommendations.
        size: Entries of the plan, or of its parameters.

    Example:
        >>> of_parts(ROOT / "nowhere", {})
        []
    """
    plan = run / "plan.json"
    if not plan.is_file():
        return []
    own = json.loads(plan.read_text(encoding="utf-8"))
    said = own.get("parameters", {}) | own
    if any(said.get(name) != value for name, value in size.items()):
        return []
    rows = [
        row
        for file in sorted((run / "resources").glob("*.csv"))
        for row in read(file).values()
    ]
    if (run / "summary.csv").is_file():
        with open(run / "summary.csv", newline="", encoding="utf-8") as lines:
            found = next(csv.DictReader(lines))
        refused = int(found["asked"]) / int(found["applicants"])
        rows = [row | {"minutes": round(row["minutes"] / refused, 2)} for row in rows]
    return rows


def _used() -> list[resource.struct_rusage]:
    """Return what this process has used, and what those that it waited for."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return [resource.getrusage(who) for who in both]


def _busy() -> float:
    """Return the minutes that processors were busy for them."""
    return sum(used.ru_utime + used.ru_stime for used in _used()) / 60


def main() -> None:
    """Put what the jobs of the last paper-size batch took into the table."""
    known = read() if TABLE.is_file() else {}
    found = sorted((ROOT / "runs" / MODEL_SIZE / "resources").glob("*.csv"))
    measured = {job: row for file in found for job, row in read(file).items()}
    for job, (folder, size) in PARTS.items():
        parts = of_parts(ROOT / "runs" / folder, size)
        if parts:
            measured[job] = {name: max(row[name] for row in parts) for name in COLUMNS[1:]}
    rows = dict(sorted((known | measured).items()))
    write(TABLE, {job: {"job": job, **row} for job, row in rows.items()})
    print(f"{len(measured)} of {len(rows)} jobs were measured: {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
