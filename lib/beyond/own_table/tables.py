"""Read a table from a file."""

import warnings
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from lib import checks, io

SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
SEPARATE = (
    "If something else stands between its columns, such as ';', set separator to that "
    "(and decimal to ',' if numbers are written like 1,5)."
)


class TableError(ValueError):
    """A table that can't be used; the message states why.

    Jupyter shows the message, and no traceback. For papermill it is
    an error like any other.
    """

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def read(
    path: str | Path, separator: str = ",", decimal: str = ".", person: str = ""
) -> pd.DataFrame:
    """Return the table of a csv or Parquet file.

    In a csv file only an empty cell is a gap: "NA" and "None" are
    words.

    Arguments:
        path: Ends in .parquet, or is a csv file in UTF-8, which may
            be packed (.gz, .zip).
        separator: Between the columns of a csv file.
        decimal: Before the decimals of a csv file: a point or a
            comma.
        person: Column of a csv file with people's names, which is
            kept as text: 00502 is not 502; "": none.
    Raises: ValueError: there is no such file; it is no table, or a
        spreadsheet; its rows have more fields than names; it has a
        single column; a column is there twice.
    """
    path = Path(path)
    if path.suffix.lower() in SPREADSHEETS:
        raise ValueError(f"{path} is a spreadsheet. Save it as csv (UTF-8) or Parquet.")
    if path.suffix == ".parquet":
        with io.in_file(path):
            frame = pd.read_parquet(path)
        return frame.reset_index(drop=frame.index.name is None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows that are longer than the line of names
        try:
            frame = pd.read_csv(
                path,
                sep=separator,
                decimal=decimal,
                dtype={person: str},
                keep_default_na=False,
                na_values=[""],
                index_col=False,
                low_memory=False,
            )
        except (OSError, ValueError, Warning, BadZipFile) as error:
            message = f"{path}: It can't be read: {str(error).strip()}."
            raise ValueError(f"{message} {_way_out(error)}".strip()) from error
    if len(frame.columns) == 1:
        raise ValueError(f"{path} has a single column, {frame.columns[0]!r}. {SEPARATE}")
    if twice := [name for name in frame if f"{name}.1" in frame]:
        raise ValueError(f"{path} has the column {twice[0]} twice. Keep one of them.")
    return frame


def _way_out(error: Exception) -> str:
    """Return what to do about a csv file that can't be read; "" where that is plain."""
    match error:
        case UnicodeDecodeError():
            return (
                "It is not UTF-8. Save it as csv (UTF-8), or convert it: "
                "iconv -f LATIN1 -t UTF-8 old.csv > new.csv."
            )
        case pd.errors.ParserError() | pd.errors.ParserWarning():
            return SEPARATE
    return ""


def with_names(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a table whose row labels are people's names, without the column of these.

    Raises: ValueError: there is no such column, or two people have
        the same name.
    """
    checks.one_of("column with people's names:", [column], tuple(map(str, frame.columns)))
    if not frame[column].is_unique:
        twice = frame[column][frame[column].duplicated()].iloc[0]
        raise ValueError(
            f"Several people are called {twice!r} in {column!r}. Give each a name of their "
            "own, or none: person: ''."
        )
    return frame.set_index(column)
