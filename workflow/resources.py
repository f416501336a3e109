"""How many minutes each job of a batch takes, as Snakemake measured it.

`python workflow/resources.py` puts what the jobs of runs/paper took into
workflow/resources.csv, by which the longest are begun first. Run it
after a paper-size batch that was not interrupted. A job that has not
run keeps its line.
"""

import csv
from pathlib import Path

from parameters import MODEL_SIZE, ROOT

TABLE = ROOT / "workflow" / "resources.csv"


def read(file: Path = TABLE) -> dict[str, float]:
    """Return the minutes of each job.

    Example:
        >>> read()["loan_carma"] > 1
        True
    """
    with open(file, newline="", encoding="utf-8") as lines:
        return {row["job"]: float(row["minutes"]) for row in csv.DictReader(lines)}


def measured(run: Path) -> dict[str, float]:
    """Return the minutes of each job of a run, of its benchmarks/<job>.tsv.

    Example:
        >>> measured(ROOT / "nowhere")
        {}
    """
    minutes = {}
    for file in sorted((run / "benchmarks").glob("*.tsv")):
        with open(file, newline="", encoding="utf-8") as lines:
            (row,) = csv.DictReader(lines, delimiter="\t")
        minutes[file.stem] = round(float(row["s"]) / 60, 2)
    return minutes


if __name__ == "__main__":
    rows = read() | measured(ROOT / "runs" / MODEL_SIZE)
    with open(TABLE, "w", newline="", encoding="utf-8") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(["job", "minutes"])
        table.writerows(sorted(rows.items()))
