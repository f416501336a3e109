"""What a batch says of the paper: its numbers beside ours, and its claims."""

from pathlib import Path

import chain
import pandas as pd

from lib import io
from lib.paper import claims

COLUMNS = [
    "table",
    "setting",
    "method",
    "networks",
    "metric",
    "calibration",
    "paper",
    "mean",
    "lowest",
    "highest",
    "reported",
    "difference",
    "se_people",
    "se_networks",
    "se_paper",
    "agrees",
]
TABLES, CLAIMS = "*_paper_vs_ours.csv", "*_claims.csv"


def collect(run: Path) -> pd.DataFrame:
    """Return the rows of all tables/*_paper_vs_ours.csv of a batch, notebook by notebook.

    Those of a stand-in are left out: what the paper says is about
    people who were not there. The rows are also saved as
    paper_vs_ours.csv in the folder of the batch.

    Raises: ValueError: there is no such table, or one has other
        columns.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     (Path(folder) / "tables").mkdir()
        ...     table = pd.DataFrame([["Table 1"] + [0.5] * 15], columns=COLUMNS)
        ...     path = Path(folder) / "tables" / "04_paper_vs_ours.csv"
        ...     table.to_csv(path, index=False)
        ...     collect(Path(folder)).table.tolist()
        ['Table 1']
    """
    paths = _paths(run, TABLES)
    if not paths:
        raise ValueError(
            f"No table {TABLES} in {run / 'tables'}: did the notebooks write to "
            "another folder?"
        )
    tables = []
    for path in paths:
        table = io.read_csv(path)
        if list(table.columns) != COLUMNS:
            raise ValueError(
                f"{path} has the columns {', '.join(table.columns)}; expected "
                f"{', '.join(COLUMNS)}."
            )
        tables.append(table)
    rows = pd.concat(tables, ignore_index=True)
    rows["networks"] = rows.networks.fillna("")
    io.write(run / "paper_vs_ours.csv", rows.to_csv(index=False))
    return rows


def has_stand_in(run: Path) -> bool:
    """Return whether a batch has such tables of a stand-in for Give Me Some Credit.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     has_stand_in(Path(folder))
        False
    """
    names = [path.name for path in (run / "tables").glob(TABLES)]
    if not any(map(chain.is_of_the_data, names)):
        return False
    import compare  # here, since it takes seconds

    return not compare.is_of_real_people(run / "models")


def verdicts(run: Path) -> pd.DataFrame:
    """Return how many of the paper's claims hold, by who answers, of all *_claims.csv.

    Their rows are also saved as claims.csv in the folder of the batch.

    Returns: A row for the paper's own numbers, the search and each
        set of networks; empty where no notebook has judged a claim.
    """
    paths = _paths(run, CLAIMS)
    if not paths:
        return pd.DataFrame()
    rows = pd.concat([io.read_csv(path) for path in paths], ignore_index=True)
    io.write(run / "claims.csv", rows.to_csv(index=False))
    overall = claims.Verdicts(rows.to_dict("records")).overall()
    said = overall.stack().str.partition(":")[0]
    said = said[said != ""].rename("verdict").reset_index(level=-1)
    counts = said.groupby(["level_2", "verdict"]).size().unstack(fill_value=0)
    order = [name for name in overall if name in counts.index]
    return counts.loc[order].rename_axis(index=None, columns=None)


def _paths(run: Path, pattern: str) -> list[Path]:
    """Return tables of a batch; those of a stand-in are left out."""
    paths = sorted((run / "tables").glob(pattern))
    if has_stand_in(run):
        paths = [path for path in paths if not chain.is_of_the_data(path.name)]
    return paths


def as_text(rows: pd.DataFrame) -> str:
    """Return how near ours are to the paper's, a line a table and who answers."""
    near = claims.agreement(rows).reset_index()
    return near.to_string(index=False, na_rep="", float_format="{:.3f}".format)
