"""Rows of a Parquet data set, read in blocks that are counted from its first row.

A data set may be larger than memory. It is a file, or a folder of
files, and its rows are numbered through all of them. Where its files
and their row groups end makes no difference to a block.

A column is unpacked page by page, and its pages may be of any size. A
process of its own does that, under a limit of memory: see
`lib.base.sandbox`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lib.base import checks, files, sandbox

ENDING = ".parquet"


@dataclass(frozen=True)
class Rows:
    """Hold where the rows of a data set lie, and which columns are read; see `find`.

    Arguments:
        paths: The files, in order.
        n_rows: Of each file.
        columns: Names of the C columns.
    """

    paths: tuple[Path, ...]
    n_rows: tuple[int, ...]
    columns: tuple[str, ...]

    @property
    def total(self) -> int:
        """Number of rows in all files."""
        return sum(self.n_rows)

    def blocks(self, size: int, first: int, last: int) -> Iterator[np.ndarray]:
        """Yield blocks of rows as float64, each with shape (size, C).

        The data set's last block may have fewer rows. What is missing
        is NaN.

        Arguments:
            size: Rows of a block.
            first, last: Numbers of the first block and of the one
                after the last; block 0 begins at the first row.
        Raises: ValueError: a file is damaged, is gone, has another
            number of rows by now, or needs too much memory.
        """
        checks.counts(size=size)
        waiting: list[np.ndarray] = []
        n_waiting = 0
        stop = min(last * size, self.total)
        for part in sandbox.rows(self.paths, self.n_rows, self.columns, first * size, stop):
            waiting.append(part)
            n_waiting += len(part)
            if n_waiting >= size:
                together = np.concatenate(waiting)
                n_whole = n_waiting - n_waiting % size
                yield from np.split(together[:n_whole], n_whole // size)
                waiting, n_waiting = [together[n_whole:]], n_waiting % size
        if n_waiting:
            yield np.concatenate(waiting)


def names(path: str | Path) -> list[str]:
    """Return what the columns of a data set are called, in its first file.

    Raises: ValueError: as `find`.
    """
    return sandbox.footers(_files(path)[:1])[0]["names"]


def find(path: str | Path, columns: Sequence[str]) -> Rows:
    """Return where the rows of a data set lie, once all its files have been looked at.

    Arguments:
        path: Of a Parquet file, or of a folder with files that end in
            .parquet. Those of a folder are taken in the order of
            their names; names that begin with a dot or an underscore
            are left out.
        columns: That every file must have, once each, and with
            numbers; other columns are not read.
    Raises: ValueError: there is no file, or folders in the folder
        hold some; a file is damaged, or lacks such a column; or there
        are no rows.
    """
    found = _files(path)
    n_rows = []
    for own, footer in zip(found, sandbox.footers(found), strict=True):
        with files.in_file(own):
            _check_columns(footer, columns)
        n_rows.append(sum(footer["groups"]))
    if not sum(n_rows):
        raise ValueError(f"{path} has no rows: expected one or more.")
    return Rows(tuple(found), tuple(n_rows), tuple(columns))


def _files(path: str | Path) -> list[Path]:
    """Return the files of a data set in their order; raise ValueError if there is none."""
    path = Path(path)
    found = [path]
    if path.is_dir():
        seen = sorted(own for own in path.iterdir() if not own.name.startswith((".", "_")))
        inner = (own for own in seen if own.is_dir())
        if folders := [own.name for own in inner if any(own.rglob(f"*{ENDING}"))]:
            raise ValueError(
                f"{path} has Parquet files in folders, which would not be looked into: "
                f"{', '.join(folders[:5])}. Name one of them, or put all files into one "
                "folder."
            )
        found = [own for own in seen if own.suffix == ENDING]
    if not found or not all(own.is_file() for own in found):
        raise ValueError(
            f"There is no data set {path}: expected a Parquet file, or a folder with files "
            f"that end in {ENDING}."
        )
    return found


def _check_columns(footer: dict[str, Any], columns: Sequence[str]) -> None:
    """Raise ValueError unless a file has all columns, once each, and numbers in them."""
    names = footer["names"]
    if missing := [name for name in columns if name not in names]:
        raise ValueError(
            f"It has no column {', '.join(missing)}; found {', '.join(names) or 'none'}."
        )
    for name in columns:
        if names.count(name) > 1:
            raise ValueError(f"It has the column {name} twice. Keep one of them.")
        at = names.index(name)
        if not footer["is_number"][at]:
            raise ValueError(
                f"Column {name} holds {footer['kinds'][at]}: expected whole numbers or "
                "floats. Make it float64."
            )
