"""Print the paper's numbers beside ours, and how many of its claims hold.

`python workflow/report.py [SIZE]` reads the tables of runs/SIZE, and
leaves paper_vs_ours.csv and claims.csv there.
"""

import sys
from pathlib import Path

import compare
import pandas as pd

from lib import io
from lib.paper import claims, tables

TABLES, CLAIMS = "*_paper_vs_ours.csv", "*_claims.csv"
# claims that no notebook asks, by the row of another table that answers them
OF_CLASSIFIER = {
    "accuracy of the classifier": "accuracy †",
    "share refused": "share refused †",
    "share that defaults": "share that defaults",
}
FASTER = "seconds of the search by those of iCARMA, three and four features"
LEFT_OUT = (
    "Left out: Give Me Some Credit. Its data was not there, and the paper's numbers are "
    "about its people (docs/run.md says where to get the data)."
)


def collect(run: Path, pattern: str, has_data: bool = True) -> pd.DataFrame:
    """Return the rows of all tables of a batch that match a pattern, notebook by notebook.

    Arguments:
        run: Folder of the batch.
        pattern: Of the files' names.
        has_data: Whether the batch had the data of Give Me Some
            Credit; without it the tables about it are left out.
    Raises: ValueError: there is no such table.
    """
    paths = sorted((run / "tables").glob(pattern))
    if not has_data:
        paths = [path for path in paths if not compare.is_of_credit(path.name)]
    if not paths:
        raise ValueError(f"There is no table {pattern} in {run / 'tables'}: run the batch.")
    texts = {"section": str}  # 5.3 is no number
    tables_of_notebooks = [io.read_csv(path, dtype=texts) for path in paths]
    return pd.concat(tables_of_notebooks, ignore_index=True)


def ask_tables(seconds: pd.Series, classifier: pd.Series) -> pd.DataFrame:
    """Return verdicts on claims about run-time and about the classifier of real people.

    Arguments:
        seconds: By the work they were spent on, of benchmarks/results.csv.
        classifier: What is measured of it, of 07_classifier.csv; empty
            without the data.
    Returns: Rows as of `claims.ask`.
    """
    searched = [
        f"oracle, all test people, {n} features, 25 values" for n in ("three", "four")
    ]
    answered = seconds["iCARMA's answer for all test people at once"]
    numbers = {FASTER: seconds[searched].mean() / answered}
    if len(classifier):
        numbers |= {fact: classifier[row] for fact, row in OF_CLASSIFIER.items()}
    return claims.ask({}, {fact: {"as printed": n} for fact, n in numbers.items()})


def count_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many of the paper's claims hold, by who answers.

    A claim of which no part holds does not hold.

    Arguments:
        rows: Of all tables of claims.
    Returns: A row for the paper's own numbers, the search and each
        set of networks, and a column a verdict.
    """
    overall = claims.overall(rows)
    by_claim = overall.stack().replace(
        {r"^0 of \d+ hold$": "does not hold", r"^\d+ of \d+ hold$": "in part"}, regex=True
    )
    by_claim = by_claim[by_claim != ""].rename("verdict").rename_axis([None, None, "who"])
    counts = by_claim.groupby(["who", by_claim]).size().unstack(fill_value=0)
    order = [name for name in overall if name in counts.index]
    return counts.loc[order].rename_axis(index=None, columns=None)


def main(size: str = "paper") -> None:
    """Print both tables of a batch."""
    run = io.ROOT / "runs" / size
    has_data = compare.has_real_people(run / "models")
    rows = collect(run, TABLES, has_data).fillna({"networks": ""})
    io.write(run / "paper_vs_ours.csv", rows.to_csv(index=False))
    near = tables.agreement(rows).reset_index()
    print(f"\nPaper against ours (cell by cell: runs/{size}/paper_vs_ours.csv)\n")
    print(near.to_string(index=False, na_rep="", float_format="{:.3f}".format))
    seconds = io.read_csv(io.ROOT / "benchmarks" / "results.csv", index_col="work").seconds
    classifier = pd.Series()
    if has_data:
        path = run / "tables" / "07_classifier.csv"
        classifier = io.read_csv(path, index_col="test people").ours
    verdicts = collect(run, CLAIMS, has_data)
    verdicts = pd.concat([verdicts, ask_tables(seconds, classifier)], ignore_index=True)
    io.write(run / "claims.csv", verdicts.to_csv(index=False))
    print(f"\nThe paper's claims (runs/{size}/claims.csv)\n")
    print(count_verdicts(verdicts).to_string())
    if not has_data:
        print(f"\n{LEFT_OUT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
