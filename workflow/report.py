"""One table of a batch: the paper's numbers beside ours."""

from pathlib import Path

import chain
import pandas as pd

from lib.base import files, tables

COLUMNS = [
    "table",
    "setting",
    "method",
    "metric",
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
TABLES = "*_paper_vs_ours.csv"


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
        ...     table = pd.DataFrame([["Table 1"] + [0.5] * 13], columns=COLUMNS)
        ...     path = Path(folder) / "tables" / "04_paper_vs_ours.csv"
        ...     table.to_csv(path, index=False)
        ...     collect(Path(folder)).table.tolist()
        ['Table 1']
    """
    paths = sorted((run / "tables").glob(TABLES))
    if has_stand_in(run):
        paths = [path for path in paths if not chain.is_of_the_data(path.name)]
    if not paths:
        raise ValueError(
            f"No table {TABLES} in {run / 'tables'}: did the notebooks write to "
            "another folder?"
        )
    found = []
    for path in paths:
        table = tables.read(path)
        if list(table.columns) != COLUMNS:
            raise ValueError(
                f"{path} has the columns {', '.join(table.columns)}; expected "
                f"{', '.join(COLUMNS)}."
            )
        found.append(table)
    rows = pd.concat(found, ignore_index=True)
    files.write(run / "paper_vs_ours.csv", rows.to_csv(index=False))
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


def as_text(rows: pd.DataFrame) -> str:
    """Return the rows as rounded text, one block a table.

    A number that the paper does not give stays empty.

    Example:
        >>> rows = pd.DataFrame({"table": "Table 1", "paper": [0.9991, None], "ours": 1})
        >>> as_text(rows).splitlines()
        ['Table 1', ' paper  ours', ' 0.999     1', '           1']
    """
    blocks = []
    for name, block in rows.groupby("table", sort=False):
        text = block.drop(columns="table").to_string(
            index=False, na_rep="", float_format="{:.3f}".format
        )
        blocks.append(f"{name}\n{text}")
    return "\n\n".join(blocks)
