"""Read a table from a file."""

import warnings
from pathlib import Path
from zipfile import BadZipFile

import pandas as pd

from lib import checks, io


class TableError(ValueError):
    """A table that can't be used; the message states why.

    Jupyter shows the message, and no traceback. For papermill it is
    an error like any other.
    """

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def read(path: str | Path, separator: str = ",", decimal: str = ".") -> pd.DataFrame:
    """Return the table of a csv or Parquet file.

    Arguments:
        path: Ends in .parquet, or is a csv file, which may be packed
            (.gz, .zip). A relative one is looked for where the
            program runs, then in the repository.
        separator: Between the columns of a csv file.
        decimal: Before the decimals of a csv file: a point or a
            comma.
    Raises: ValueError: there is no such file; it is no table; its
        rows have more fields than names; a column is there twice.
    """
    path = Path(path) if Path(path).is_file() else io.ROOT / path
    if path.suffix == ".parquet":
        with io.in_file(path):
            frame = pd.read_parquet(path)
        return frame.reset_index(drop=frame.index.name is None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows that are longer than the line of names
        try:
            frame = io.read_csv(
                path, sep=separator, decimal=decimal, index_col=False, low_memory=False
            )
        except (Warning, BadZipFile) as error:
            raise ValueError(f"{path}: It can't be read: {error}.") from error
    if twice := [name for name in frame if f"{name}.1" in frame]:
        raise ValueError(f"{path} has the column {twice[0]} twice. Keep one of them.")
    return frame


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
