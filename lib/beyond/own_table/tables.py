"""Read a table from a file; its errors are sentences, without a traceback in a notebook."""

import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from lib import checks, io


class TableError(ValueError):
    """A table that can't be used, or a fit that failed; the message states why.

    Jupyter shows the message, and no traceback. For papermill it is
    an error like any other.
    """

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@contextmanager
def table_errors() -> Iterator[None]:
    """Raise each ValueError of a block as `TableError`: same message, no traceback."""
    try:
        yield
    except ValueError as error:
        raise TableError(str(error)) from None


def read(path: str | Path, separator: str = ",", decimal: str = ".") -> pd.DataFrame:
    """Return the table of a csv or Parquet file.

    Arguments:
        path: Ends in .parquet, or is a csv file, which may be packed
            (.gz, .zip). A relative one is looked for where the
            program runs, then in the repository.
        separator: Between the columns of a csv file.
        decimal: Before the decimals of a csv file: a point or a
            comma.
    Raises: TableError: there is no such file; it is no table; its
        rows have more fields than names; a column is there twice; it
        seems to have another separator.
    """
    places = [place for place in (Path(path), io.ROOT / path) if place.is_file()]
    if not places:
        raise TableError(
            f"There is no file {path}, neither here nor in the repository. Give the whole "
            "path, from the root on."
        )
    with table_errors(), io.in_file(places[0]):
        try:
            frame = _read(places[0], separator, decimal)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, Warning) as error:
            raise ValueError(f"It can't be read: {error}.") from error
        names = frame.columns
        if twice := [name for name in names if f"{name}.1" in names]:
            raise ValueError(f"It has the column {twice[0]} twice. Keep one of them.")
        if len(names) == 1 and not str(names[0]).isidentifier():
            raise ValueError(
                f"It has one column, {names[0][:60]!r}. If the columns are not separated "
                f"by {separator!r}, name the separator."
            )
        return frame


def _read(path: Path, separator: str, decimal: str) -> pd.DataFrame:
    """Return a table as pandas reads it; its warnings are errors."""
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        return frame.reset_index(drop=frame.index.name is None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows that are longer than the line of names
        return pd.read_csv(
            path, sep=separator, decimal=decimal, index_col=False, low_memory=False
        )


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
