"""Rows of a Parquet data set, read in blocks that are counted from its first row.

A data set may be larger than memory. It is a file, or a folder of
files, and its rows are numbered through all of them. Where its files
and their row groups end makes no difference to a block.

A column is unpacked page by page. Its pages may be of any size, and a
file of 3 kB can hold a page of 100 MB. The footer says nothing of pages,
but how long each row group is, unpacked: that is `MOST_UNPACKED` at
most. Even if each column is a single page, reading takes no more than
twice as much: the pages as they are packed, and unpacked. The footer is
believed: pyarrow does not compare it with the pages, so a file that was
made to deceive can take more.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lib.base import checks, files

ENDING = ".parquet"
ROWS_AT_ONCE = 16_384  # that are made numbers of
BYTES_AT_ONCE = 1_000_000  # that are read of a column
MOST_UNPACKED = 1_000_000_000  # bytes of a row group; a million rows of 100 floats fit in


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
        Raises: ValueError: a file is damaged, is gone, or has another
            number of rows by now.
        """
        checks.counts(size=size)
        waiting: list[np.ndarray] = []
        n_waiting = 0
        for part in self._between(first * size, min(last * size, self.total)):
            waiting.append(part)
            n_waiting += len(part)
            if n_waiting >= size:
                together = np.concatenate(waiting)
                n_whole = n_waiting - n_waiting % size
                yield from np.split(together[:n_whole], n_whole // size)
                waiting, n_waiting = [together[n_whole:]], n_waiting % size
        if n_waiting:
            yield np.concatenate(waiting)

    def _between(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Yield the rows from one number to another, in parts with shape (*, C)."""
        before = 0
        for path, n_rows in zip(self.paths, self.n_rows, strict=True):
            first, last = max(start - before, 0), min(stop - before, n_rows)
            if first < last:
                with _of_file(path):
                    yield from self._of_one(path, n_rows, first, last)
            before += n_rows

    def _of_one(
        self, path: Path, n_rows: int, first: int, last: int
    ) -> Iterator[np.ndarray]:
        """Yield the rows of one file from a number to another, in parts."""
        with _opened(path) as file:
            groups = _group_sizes(file)
            if sum(groups) != n_rows:
                raise ValueError(
                    f"It has {sum(groups):,} rows by now, and had {n_rows:,} at the "
                    "beginning. Begin again, in another folder."
                )
            ends = np.cumsum(groups)
            wanted = np.flatnonzero((ends > first) & (ends - groups < last)).tolist()
            at = int(ends[wanted[0]]) - groups[wanted[0]]
            batches = file.iter_batches(
                ROWS_AT_ONCE, wanted, list(self.columns), use_threads=False
            )
            for batch in batches:
                cut = batch[max(first - at, 0) : max(last - at, 0)]
                at += len(batch)
                if len(cut):
                    yield np.stack([_numbers(cut[name]) for name in self.columns], -1)
            if at < last:
                raise ValueError(f"Only {at:,} of {n_rows:,} rows can be read.")


def names(path: str | Path) -> list[str]:
    """Return what the columns of a data set are called, in its first file.

    Raises: ValueError: as `find`.
    """
    first = _files(path)[0]
    with _of_file(first), _opened(first) as file:
        return list(file.schema_arrow.names)


def find(path: str | Path, columns: Sequence[str]) -> Rows:
    """Return where the rows of a data set lie, once all its files have been looked at.

    Arguments:
        path: Of a Parquet file, or of a folder with files that end in
            .parquet. Those of a folder are taken in the order of
            their names; names that begin with a dot or an underscore
            are left out.
        columns: That every file must have, once each, and with
            numbers; other columns are not read.
    Raises: ValueError: there is no file; one is damaged, or lacks
        such a column; there are no rows; or a row group is longer
        than `MOST_UNPACKED`.
    """
    found = _files(path)
    n_rows = []
    for own in found:
        with _of_file(own), _opened(own) as file:
            _check_columns(file.schema_arrow, columns)
            n_rows.append(sum(_group_sizes(file)))
    if not sum(n_rows):
        raise ValueError(f"{path} has no rows: expected one or more.")
    return Rows(tuple(found), tuple(n_rows), tuple(columns))


def _files(path: str | Path) -> list[Path]:
    """Return the files of a data set in their order; raise ValueError if there is none."""
    path = Path(path)
    found = [path]
    if path.is_dir():
        found = sorted(
            own for own in path.glob(f"*{ENDING}") if not own.name.startswith((".", "_"))
        )
    if not found or not all(own.is_file() for own in found):
        raise ValueError(
            f"There is no data set {path}: expected a Parquet file, or a folder with files "
            f"that end in {ENDING} (folders in it are not looked into)."
        )
    return found


def _opened(path: Path) -> pq.ParquetFile:
    """Return a Parquet file that is read a little at a time, with its checksums."""
    return pq.ParquetFile(
        path,
        pre_buffer=False,
        buffer_size=BYTES_AT_ONCE,
        page_checksum_verification=True,
    )


@contextmanager
def _of_file(path: Path) -> Iterator[None]:
    """Raise what pyarrow says of a damaged file as ValueError that names the file."""
    with files.in_file(path):
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            said = " ".join(str(error).split())
            raise ValueError(
                f"It can't be read as Parquet ({said.rstrip('.')}). Write it as such, for "
                "instance by to_parquet of pandas."
            ) from error


def _group_sizes(file: pq.ParquetFile) -> list[int]:
    """Return how many rows each row group of a file has.

    Raises: ValueError: its footer does not add up, or a row group is
        too long.
    """
    about = file.metadata
    sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    if sum(sizes) != about.num_rows or min(sizes, default=0) < 0:
        raise ValueError(
            f"It is damaged: it counts {about.num_rows:,} rows, and its groups {sizes}."
        )
    # not by column: pyarrow's column(j) ends the process where statistics are damaged
    unpacked = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
    if max(unpacked, default=0) > MOST_UNPACKED:
        raise ValueError(
            f"A row group of it unpacks to {max(unpacked):,} bytes: expected "
            f"{MOST_UNPACKED:,} at most. Write it in smaller ones, for instance by "
            "to_parquet(..., row_group_size=100_000) of pandas."
        )
    return sizes


def _check_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise ValueError unless a file has all columns, once each, and numbers in them."""
    names = schema.names
    if missing := [name for name in columns if name not in names]:
        raise ValueError(
            f"It has no column {', '.join(missing)}; found {', '.join(names) or 'none'}."
        )
    for name in columns:
        if names.count(name) > 1:
            raise ValueError(f"It has the column {name} twice. Keep one of them.")
        kind = schema.field(name).type
        is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if not any(is_one(kind) for is_one in is_number):
            raise ValueError(
                f"Column {name} holds {kind}: expected whole numbers or floats. Make it "
                "float64."
            )


def _numbers(column: pa.Array) -> np.ndarray:
    """Return a column of numbers as float64, NaN where there is none."""
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
