"""What each job of a batch takes: measured by Snakemake, collected for the Snakefile.

`python workflow/resources.py` puts what the jobs of runs/paper took into
workflow/resources.csv, by which a cluster gives them memory and time;
and the most that a part of other runs took, if they are of the size in
`PARTS`. Run it after a paper-size batch that was not interrupted, on a
machine that did nothing else: a job that went on from a checkpoint says
only what the rest took, and minutes are those of a clock. A job that
has not run keeps its line.

Snakemake looks at a job and its processes, a notebook's kernel among
them, twice a second for the first fifteen seconds, then every half
minute. A peak of memory between two looks is not seen. Of the true
peaks of seven notebooks it found 68 % at least and 93 % in the mean;
`MARGIN` has room for that.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from parameters import MODEL_SIZE, ROOT

from lib.base import files

TABLE = ROOT / "workflow" / "resources.csv"
COLUMNS = ("job", "mem_mb", "minutes")
# A cluster gives so many times what was measured: another machine, or another day, has been
# seen to take twice as long; Snakemake itself takes some of the memory, and misses peaks.
MARGIN = 2
MB_A_MIB = 1.048576
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


def asked_for(
    job: str, table: Mapping[str, Mapping[str, float]], times: float = 1
) -> dict[str, int]:
    """Return what a cluster is asked to give a job: mem_mb, and runtime in minutes.

    It is `MARGIN` times what was measured, and one minute for the
    start. A job that was never measured gets the most that any needs.

    Arguments:
        job: Its name.
        table: As `read` returns it.
        times: As much work as was measured, so many times.

    Example:
        >>> table = {"a": {"mem_mb": 300, "minutes": 1.2}}
        >>> asked_for("a", table)
        {'mem_mb': 600, 'runtime': 4}
        >>> asked_for("new", table) == asked_for("a", table)
        True
    """
    rows = [table[job]] if job in table else list(table.values())
    most = {name: max(row[name] for row in rows) for name in COLUMNS[1:]}
    return {
        "mem_mb": int(MARGIN * most["mem_mb"] * max(times, 1)),
        "runtime": int(MARGIN * most["minutes"] * times + 2),
    }


def read(file: Path = TABLE) -> dict[str, dict[str, float]]:
    """Return a table of resources, by job.

    Example:
        >>> read()["loan_carma"]["mem_mb"] > 300
        True
    """
    with open(file, newline="", encoding="utf-8") as lines:
        return {
            row["job"]: {"mem_mb": int(row["mem_mb"]), "minutes": float(row["minutes"])}
            for row in csv.DictReader(lines)
        }


def write(file: Path, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Write a table of resources, in place of what was there in one step.

    Arguments:
        file: A csv file.
        rows: By job: what it took.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write(Path(folder) / "a.csv", {"a": {"mem_mb": 300, "minutes": 1.2}})
        ...     read(Path(folder) / "a.csv")
        {'a': {'mem_mb': 300, 'minutes': 1.2}}
    """
    lines = io.StringIO()
    table = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows({"job": job, **row} for job, row in rows.items())
    files.write(file, lines.getvalue())


def measured(run: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the name of each job of a run, and what it took.

    Arguments:
        run: A folder in which Snakemake left benchmarks/<job>.tsv. A
            job that ended before it was looked at is passed over.

    Example:
        >>> list(measured(ROOT / "nowhere"))
        []
    """
    for file in sorted((run / "benchmarks").glob("*.tsv")):
        with open(file, newline="", encoding="utf-8") as lines:
            (row,) = csv.DictReader(lines, delimiter="\t")
        if row["max_rss"] != "NA":
            minutes = round(float(row["s"]) / 60, 2)
            mem_mb = round(float(row["max_rss"]) * MB_A_MIB)
            yield file.stem, {"mem_mb": mem_mb, "minutes": minutes}


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
    rows = [row for _, row in measured(run)]
    if (run / "summary.csv").is_file():
        with open(run / "summary.csv", newline="", encoding="utf-8") as lines:
            found = next(csv.DictReader(lines))
        refused = int(found["asked"]) / int(found["applicants"])
        rows = [row | {"minutes": round(row["minutes"] / refused, 2)} for row in rows]
    return rows


def main() -> None:
    """Put what the jobs of the last paper-size batch took into the table."""
    known = read() if TABLE.is_file() else {}
    found = dict(measured(ROOT / "runs" / MODEL_SIZE))
    for job, (folder, size) in PARTS.items():
        parts = of_parts(ROOT / "runs" / folder, size)
        if parts:
            found[job] = {name: max(row[name] for row in parts) for name in COLUMNS[1:]}
    rows = dict(sorted((known | found).items()))
    write(TABLE, rows)
    print(f"{len(found)} of {len(rows)} jobs were measured: {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
