"""What a check of somebody's table says, how errors are said, and how a file is read.

`Unfit` is raised without a traceback in a notebook: who brings a table
reads a sentence.
"""

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import checks, io

SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}
VERDICTS = ("error", "warning", "fine")


class Unfit(ValueError):
    """A table that can't be used, or a fit that failed; the message says why.

    Jupyter shows the message, and no traceback. For papermill it is
    an error as any other.
    """

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@contextmanager
def in_sentences() -> Iterator[None]:
    """Raise each ValueError of a block as `Unfit`: same message, without a traceback."""
    try:
        yield
    except ValueError as error:
        raise Unfit(str(error)) from None


@dataclass(frozen=True)
class Finding:
    """Hold what one check found.

    Arguments:
        verdict: One of `VERDICTS`.
        check: What was looked at.
        found: What was found.
        do: What to do about it; empty where all is well.
    """

    verdict: str
    check: str
    found: str
    do: str = ""

    @property
    def is_error(self) -> bool:
        """Whether recourse is impossible."""
        return self.verdict == "error"


def as_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """Return the findings as a table, a row each: verdict, check, found, what to do."""
    rows = [(one.verdict, one.check, one.found, one.do) for one in findings]
    columns = ["verdict", "check", "what was found", "what to do"]
    return pd.DataFrame(rows, columns=columns)


def require(findings: Sequence[Finding]) -> None:
    """Raise `Unfit` with all errors at once, if there are any.

    Example:
        >>> require([Finding("fine", "gaps", "none")])
        >>> require([Finding("error", "gaps", "3 in income", "Drop these people.")])
        Traceback (most recent call last):
        ...
        lib.beyond.own_table.findings.Unfit: This table can't be used yet. 1 thing to mend:
          1. gaps: 3 in income. Drop these people.
    """
    errors = [one for one in findings if one.is_error]
    if errors:
        things = "1 thing" if len(errors) == 1 else f"{len(errors)} things"
        lines = [f"This table can't be used yet. {things} to mend:"]
        for i, one in enumerate(errors, start=1):
            lines.append(f"  {i}. {one.check}: {one.found}. {one.do}")
        raise Unfit("\n".join(lines))


def read(path: str | Path, separator: str = ",", decimal: str = ".") -> pd.DataFrame:
    """Return the table of a csv or Parquet file.

    Arguments:
        path: Ends in .parquet, or is a csv file, which may be packed
            (.gz, .zip). A relative one is looked for where the
            program runs, then in the repository.
        separator: Between the columns of a csv file.
        decimal: Before the decimals of a csv file: a point or a
            comma.
    Raises: Unfit: there is no such file; it is empty, or no table; it
        does not fit into memory; its rows have more fields than
        names; a column is there twice; it has another separator.
    """
    found = _find(path)
    _check_signs(separator, decimal)
    with in_sentences(), io.in_file(found):
        try:
            if found.suffix == ".parquet":
                frame = pd.read_parquet(found).reset_index(drop=True)
            else:
                frame = _read_csv(found, separator, decimal)
        except MemoryError as error:
            raise ValueError("It does not fit into memory. Write fewer columns.") from error
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, UnicodeError) as error:
            kind = "Parquet" if found.suffix == ".parquet" else "a csv in UTF-8"
            raise ValueError(f"It can't be read as {kind} ({error}).") from error
        twice = frame.columns[frame.columns.duplicated()]
        if len(twice):
            raise ValueError(f"It has the column {twice[0]} twice. Keep one of them.")
        return frame


def _read_csv(path: Path, separator: str, decimal: str) -> pd.DataFrame:
    """Return the table of a csv file; whatever pandas would correct is an error."""
    how = {"sep": separator, "low_memory": False, "encoding": "utf-8"}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **how)
    names = first.iloc[0].tolist()
    if len(names) == 1:
        for other, word in SEPARATORS.items():
            if other in names[0] and other != separator:
                raise ValueError(
                    f"It has one column, {names[0][:60]!r}: its separator seems to be "
                    f"{word}. Say so, separator: {other!r}."
                )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows that are longer than the line of names
        try:
            frame = pd.read_csv(path, decimal=decimal, index_col=False, **how)
        except pd.errors.ParserWarning as error:
            raise ValueError(
                f"Its rows have more fields than its first line names ({len(names)}). "
                "Name every column."
            ) from error
    # pandas calls a second column `age` `age.1`; columns without a name may be several
    given = [name or own for name, own in zip(names, frame.columns, strict=True)]
    return frame.set_axis(given, axis="columns")


def named(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a table whose rows are called as a column says, and without that column.

    Raises: ValueError: there is no such column, or two people are
        called the same.
    """
    checks.one_of("column with people's names:", [column], tuple(frame.columns))
    if not frame[column].is_unique:
        twice = frame[column][frame[column].duplicated()].iloc[0]
        raise ValueError(
            f"Several people are called {twice!r} in {column!r}. Expected a name of "
            "their own for each, or none: person: ''."
        )
    return frame.set_index(column)


def _find(path: str | Path) -> Path:
    """Return the file of this name, here or in the repository."""
    if not isinstance(path, str | Path) or not str(path).strip("\0 "):
        raise Unfit(f"The path of the table is {path!r}: expected the name of a file.")
    try:
        here = Path(path).expanduser()
    except RuntimeError:  # nobody is called so
        here = Path(path)
    for place in (here, io.ROOT / path):
        if os.path.isfile(place):
            return place
    raise Unfit(
        f"There is no file {path}, neither here nor in the repository. Give the whole "
        "path, from the root on."
    )


def _check_signs(separator: str, decimal: str) -> None:
    """Raise Unfit unless a csv can be told apart by these two signs."""
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n\0':
        raise Unfit(f"separator is {separator!r}: expected one sign, such as ',' or ';'.")
    if decimal not in (".", ",") or decimal == separator:
        raise Unfit(
            f"decimal is {decimal!r}: expected '.' or ',', and not the separator, which is "
            f"{separator!r}."
        )
