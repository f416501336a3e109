"""Tables in csv files: read within bounds, with errors that name the file."""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from lib.base import files

MOST_BYTES = 200_000_000  # of a table, unpacked; the longest of this project has 8 million
MOST_CELLS = 50_000_000  # of a table, also empty ones
MOST_COLUMNS = 10_000
LONGEST_NAME = 1_000  # letters of a column's name
LONGEST_CELL = 100_000  # letters
# what pandas raises of content that it can't make a table of
UNREADABLE = (ValueError, TypeError, OverflowError, IndexError, KeyError, csv.Error)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack without bounds
UNPACKING = (  # what a damaged, encrypted or exotic zip or gz raises
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
)


def read(
    path: Path,
    columns: Iterable[str] = (),
    most: int = MOST_BYTES,
    **options: Any,
) -> pd.DataFrame:
    """Return the table of a csv file.

    Arguments:
        path: Of the file (.gz and .zip: packed). Its first line names
            the columns, unless options say otherwise.
        columns: That it needs; there may be others.
        most: So many bytes at most, unpacked.
        options: As for `pandas.read_csv`.
    Raises: ValueError: there is no such file, it is too large or no
        csv, a column is missing or stands there twice, rows have more
        fields than there are names, or a text is too long.
    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("age,income\\n30,2000\\n")
        >>> read(path).income.tolist()
        [2000]
        >>> read(path, ["savings"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...people.csv: It has no column savings; found age, income.
    """
    found = unpacked(path, most)
    with files.in_file(path):
        return table(found, columns, **options)


def unpacked(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file; of one that is packed (.gz, .zip), what is in it.

    Raises: ValueError: there is no such file, it is damaged, or holds
        more bytes.
    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv.gz"
        >>> _ = path.write_bytes(gzip.compress(b"age"))
        >>> unpacked(path)
        b'age'
    """
    found = files.content(path, most)
    with files.in_file(path):
        if path.suffix == ".gz":
            return gunzipped(found, most)
        return unzipped(found, None, most) if path.suffix == ".zip" else found


def table(found: bytes, columns: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Return the table in the bytes of a csv file; arguments and errors as for `read`.

    Example:
        >>> table(b"age,age\\n30,30")
        Traceback (most recent call last):
        ...
        ValueError: It has the column age twice. Keep one of them.
    """
    names, *row = first_lines(found, 2, options.get("sep", ","))
    check_size(max(found.count(b"\n"), found.count(b"\r")), len(names))
    if options.get("header", 0) is not None:
        check_names(names, columns)
        if row and len(row[0]) > len(names):  # pandas takes the first as names of rows
            raise ValueError(
                f"Its rows have {len(row[0])} fields, its first line {len(names)} names. "
                "Name every column."
            )
    try:
        frame = pd.read_csv(io.BytesIO(found), **options)
    except UNREADABLE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"This is no csv in UTF-8: {why.rstrip('.')}. Expected a line of names, then "
            "a line for each row with as many fields."
        ) from error
    check_cells(frame)
    return frame


def first_lines(found: bytes, n_lines: int, separator: str = ",") -> list[list[str]]:
    """Return the fields of a csv's first lines that are not blank; at least one line.

    Raises: ValueError: there is no such line, or they are no csv.
    Example:
        >>> first_lines(b'age,"income, a month"\\n\\n30,2000', 2)
        [['age', 'income, a month'], ['30', '2000']]
    """
    try:
        content = io.TextIOWrapper(io.BytesIO(found), "utf-8-sig", newline="")
        lines = csv.reader(content, delimiter=separator)
        first = list(islice(filter(None, lines), n_lines))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"This is no csv in UTF-8: {error}.") from error
    if not first:
        raise ValueError("It is empty: expected a line of names, then rows.")
    return first


def check_size(n_rows: int, n_columns: int) -> None:
    """Raise ValueError if a table has too many columns, or cells.

    Where rows have fewer fields than there are names, the rest is
    filled: a file of 200 kB can name 10,000 columns of 50,000 rows.

    Example:
        >>> check_size(1_000_000, 20)
        >>> check_size(50_000, 10_000)
        Traceback (most recent call last):
        ...
        ValueError: It has 50,000 rows of 10,000 columns: expected 50,000,000 cells at most.
    """
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"It has {n_columns:,} columns: expected {MOST_COLUMNS:,} at most."
        )
    if n_rows * n_columns > MOST_CELLS:
        raise ValueError(
            f"It has {n_rows:,} rows of {n_columns:,} columns: expected {MOST_CELLS:,} "
            "cells at most."
        )


def check_cells(frame: pd.DataFrame) -> None:
    """Raise ValueError if a text in a table is too long.

    Example:
        >>> check_cells(pd.DataFrame({"job": ["cook", "c" * 200_000]}))
        Traceback (most recent call last):
        ...
        ValueError: Column job has a text of 200,000 letters: expected 100,000 at most.
    """
    for name, column in frame.items():
        if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
            longest = max(
                (len(cell) for cell in column if isinstance(cell, str)), default=0
            )
            if longest > LONGEST_CELL:
                raise ValueError(
                    f"Column {name} has a text of {longest:,} letters: expected "
                    f"{LONGEST_CELL:,} at most."
                )


def check_names(names: Sequence[str], columns: Iterable[str]) -> None:
    """Raise ValueError if a column is missing, or one with a name stands there twice.

    No name may be longer than `LONGEST_NAME`.

    Example:
        >>> check_names(["age", "", ""], ["age"])  # of empty columns there may be many
        >>> check_names(["age"], ["income"])
        Traceback (most recent call last):
        ...
        ValueError: It has no column income; found age.
    """
    if longest := [name for name in names if len(str(name)) > LONGEST_NAME]:
        raise ValueError(
            f"It has a column's name of {len(longest[0]):,} letters: expected "
            f"{LONGEST_NAME:,} at most."
        )
    if missing := [name for name in columns if name not in names]:
        raise ValueError(
            f"It has no column {', '.join(missing)}; found {', '.join(names) or 'nothing'}."
        )
    known = set()
    for name in filter(None, names):
        if name in known:
            raise ValueError(f"It has the column {name} twice. Keep one of them.")
        known.add(name)


def gunzipped(packed: bytes, most: int) -> bytes:
    """Return what is packed in the bytes of a gz file, if it is not too much.

    Raises: ValueError: it is damaged, or holds more bytes.
    Example:
        >>> gunzipped(gzip.compress(b"age"), most=3)
        b'age'
        >>> gunzipped(gzip.compress(b"age" * 1000), most=3)
        Traceback (most recent call last):
        ...
        ValueError: Unpacked it is longer than 3 bytes. Is it the right file?
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            found = file.read(most + 1)
    except UNPACKING as error:
        raise ValueError(f"It can't be unpacked ({error}). Is it damaged?") from error
    return _at_most(found, most)


def unzipped(packed: bytes, name: str | None, most: int) -> bytes:
    """Return the one file of this name in the bytes of a zip, if it is not too large.

    Arguments:
        packed: The zip.
        name: Of the file, in whatever folder of the zip; None: it is
            the only one.
        most: So many bytes at most.
    Raises: ValueError: the zip is damaged, encrypted, holds no such
        file or several, or more bytes; or the file is packed by
        another method than deflate: Python unpacks LZMA and bzip2
        without a bound, and 850 bytes of bzip2 can hold a gigabyte.
    Example:
        >>> zipped = io.BytesIO()
        >>> with zipfile.ZipFile(zipped, "w") as file:
        ...     file.writestr("data/people.csv", "age")
        >>> unzipped(zipped.getvalue(), "people.csv", most=3)
        b'age'
        >>> unzipped(zipped.getvalue(), "others.csv", most=3)
        Traceback (most recent call last):
        ...
        ValueError: It is no zip with one others.csv inside (it holds data/people.csv).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as file:
            held = file.namelist()
            own = [other for other in held if name in (None, Path(other).name)]
            if len(own) != 1:
                raise KeyError(f"it holds {', '.join(held[:5]) or 'nothing'}")
            method = file.getinfo(own[0]).compress_type
            if method not in METHODS:
                raise NotImplementedError(
                    f"packed by method {method}, expected deflate: zip it again, or unpack "
                    "it"
                )
            with file.open(own[0]) as part:
                found = part.read(most + 1)
    except (*UNPACKING, KeyError) as error:
        said = str(error).strip("'\"") or type(error).__name__
        raise ValueError(
            f"It is no zip with one {name or 'file'} inside ({said})."
        ) from error
    return _at_most(found, most)


def _at_most(found: bytes, most: int) -> bytes:
    """Return what was read, unless it is more than asked for."""
    if len(found) > most:
        raise ValueError(
            f"Unpacked it is longer than {most:,} bytes. Is it the right file?"
        )
    return found
