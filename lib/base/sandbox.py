"""Read other people's tables in a process of its own, under limits of memory and time.

A file of 351 bytes can hold a table of 3.8 GB, and a damaged one can
end the process that reads it. So pandas and pyarrow read it in a child
process. The system ends the child where it takes more than
`MOST_MEMORY` or `MOST_SECONDS`; what it has read comes back as Arrow
batches. This file is the child's program, too, and imports nothing of
lib: it has started within a second.

Linux keeps the child to both limits, macOS to that of time.
"""

import json
import os
import resource
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

MOST_MEMORY = 2_000_000_000  # bytes
MOST_SECONDS = 60  # of a processor, for a table, or for each batch of rows
ROWS_AT_ONCE = 16_384
BYTES_AT_ONCE = 1_000_000  # that are read of a column of a Parquet file
LONGEST_ERROR = 1_000  # letters
SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}
# the memory of pyarrow is counted where it comes from the system, and threads take some
SETTINGS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
REFUSED = 3  # how the child ends where it has said why


def table(path: str | Path, separator: str = ",", decimal: str = ".") -> pd.DataFrame:
    """Return the table of a csv or Parquet file.

    Arguments:
        path: Ends in .parquet, or is a csv file in UTF-8, which may
            be packed (.gz, .zip with one file). Its first line names
            the columns.
        separator: Between the columns of a csv file.
        decimal: Before the decimals of a csv file.
    Raises: ValueError: there is no such file; it is no table; a
        column stands there twice; a row has more fields than there
        are names; a cell is a list or bytes; or reading it takes too
        much memory or time.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("age,income\\n30,2000\\n")
        >>> table(path).income.tolist()
        [2000]
        >>> _ = path.write_text("age,age\\n30,30\\n")
        >>> table(path)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...people.csv: It has the column age twice. Keep one of them.
    """
    given = {"path": str(path), "separator": separator, "decimal": decimal}
    with asked("table", path, given) as batches:
        return batches.read_all().to_pandas()


def content(path: str | Path, member: str) -> bytes:
    """Return the bytes of a file; of a zip, those of one file in it.

    Arguments:
        path: Of the file.
        member: Name of the file in the zip, in whatever folder there.
    Raises: ValueError: there is no such file; the zip is damaged or
        has no such file, or two; or unpacking it takes too much
        memory or time.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("age")
        >>> content(path, "people.csv")
        b'age'
    """
    with asked("content", path, {"path": str(path), "member": member}) as batches:
        return batches.read_all()["content"][0].as_py()


def footers(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what the footers of Parquet files say.

    Arguments:
        paths: The files.
    Returns: Of each file the "names" of its columns, "kinds", what
        they hold in words, "is_number", and "groups": how many rows
        each row group has.
    Raises: ValueError: a file is missing, damaged or no Parquet file.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pd.DataFrame({"age": [30, 40]}).to_parquet(path)
        >>> footers([path])
        [{'names': ['age'], 'kinds': ['int64'], 'is_number': [True], 'groups': [2]}]
    """
    with asked("footers", paths[0].parent, {"paths": list(map(str, paths))}) as batches:
        return [json.loads(said) for batch in batches for said in batch[0].to_pylist()]


def rows(
    paths: Sequence[Path],
    n_rows: Sequence[int],
    columns: Sequence[str],
    first: int,
    last: int,
) -> Iterator[np.ndarray]:
    """Yield rows of Parquet files as float64, in parts with shape (*, C).

    Arguments:
        paths: The files, in order.
        n_rows: Of each file.
        columns: Names of C columns of numbers.
        first, last: Numbers of the first row and of the one after the
            last, counted through all files.
    Raises: ValueError: a file is missing or damaged, has another
        number of rows, or needs too much memory or time.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pd.DataFrame({"age": [30, 40]}).to_parquet(path)
        >>> [part.tolist() for part in rows([path], [2], ["age"], 1, 2)]
        [[[40.0]]]
    """
    own = {"paths": list(map(str, paths)), "n_rows": n_rows, "columns": columns}
    given = {**own, "first": first, "last": last}
    with asked("rows", paths[0].parent, given) as batches:
        for batch in batches:
            yield np.stack([own.to_numpy(zero_copy_only=False) for own in batch], -1)


@contextmanager
def asked(
    task: str, path: str | Path, given: dict[str, Any]
) -> Iterator[pa.RecordBatchReader]:
    """Have a child process do a task, and hand out its batches; all must be taken.

    Arguments:
        task: One of `TASKS`.
        path: Of what it reads, for the message.
        given: The task's arguments.
    Raises: ValueError: the child's, or the child was ended.

    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("age")
        >>> with asked("content", path, {"path": str(path), "member": ""}) as batches:
        ...     batches.read_all().num_rows
        1
    """
    program = [sys.executable, "-P", "-W", "ignore", __file__, task]
    pipe, settings = subprocess.PIPE, os.environ | SETTINGS
    with subprocess.Popen(
        program, stdin=pipe, stdout=pipe, stderr=pipe, env=settings
    ) as child:
        assert child.stdin and child.stdout and child.stderr
        limits = {"memory": MOST_MEMORY, "seconds": MOST_SECONDS}
        child.stdin.write(json.dumps([limits, given]).encode())
        child.stdin.close()
        ended = None
        try:
            with pa.ipc.open_stream(child.stdout) as batches:
                yield batches
        except pa.ArrowException as error:
            ended = error
        except BaseException:
            child.kill()
            raise
        said, code = child.stderr.read().decode(errors="replace").strip(), child.wait()
    if code == REFUSED:
        raise ValueError(said) from None
    if code or ended:
        raise ValueError(
            f"{path}: It can't be read: that ended the process that tried "
            f"({said[-LONGEST_ERROR:] or f'code {code}'}), so it is damaged, or takes more "
            f"than {MOST_MEMORY:,} bytes or {MOST_SECONDS} s of a processor."
        ) from ended


# --- the child


@contextmanager
def _of_file(path: str) -> Iterator[None]:
    """Raise what can't be read as ValueError that names the file."""
    kind = "Parquet" if path.endswith(".parquet") else "a csv in UTF-8"
    if not Path(path).is_file():  # a pipe would have to be waited for
        raise ValueError(f"{path}: It can't be read: there is no such file.")
    try:
        yield
    except MemoryError as error:
        most = resource.getrlimit(resource.RLIMIT_DATA)[0]
        raise ValueError(
            f"{path}: It takes more than {most:,} bytes of memory to read. Write "
            "fewer columns; Parquet in smaller row groups, for instance by "
            "to_parquet(..., row_group_size=100_000) of pandas."
        ) from error
    except Exception as error:  # of damaged content, they raise of many kinds
        said = " ".join(str(error).split()) or type(error).__name__
        if type(error) is not ValueError:
            said = f"It can't be read as {kind} ({said[:LONGEST_ERROR].rstrip('.')})."
        raise ValueError(f"{path}: {said}") from error


def _table(path: str, separator: str, decimal: str) -> pa.RecordBatchReader:
    """Return the rows of a csv or Parquet file."""
    with _of_file(path):
        if path.endswith(".parquet"):
            found = _parquet(path)
        else:
            frame = _csv(path, separator, decimal)
            found = pa.Table.from_pandas(frame, preserve_index=False)
        return found.to_reader()


def _csv(path: str, separator: str, decimal: str) -> pd.DataFrame:
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
    _check_once([name for name in names if name])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # rows that are longer than the line of names
            return pd.read_csv(path, decimal=decimal, index_col=False, **how)
    except pd.errors.ParserWarning as error:
        raise ValueError(
            f"Its rows have more fields than its first line names ({len(names)}). Name "
            "every column."
        ) from error


def _parquet(path: str) -> pa.Table:
    """Return the table of a Parquet file; what was an index in pandas is a column."""
    file, kinds = _opened(path), []
    _check_once(file.schema_arrow.names)
    for field in file.schema_arrow:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or "binary" in str(kind):
            raise ValueError(
                f"Column {field.name} holds {str(kind)[:60]}: expected numbers, texts, "
                "days, or true and false. Leave it out."
            )
        kinds.append((field.name, kind))
    found = file.read(use_threads=False).replace_schema_metadata(None)
    found.validate(full=True)
    return found.cast(pa.schema(kinds))  # a text is written out wherever it stands


def _check_once(names: Sequence[str]) -> None:
    """Raise ValueError if a column stands there twice."""
    known = set()
    for name in names:
        if name in known:
            raise ValueError(f"It has the column {name} twice. Keep one of them.")
        known.add(name)


def _content(path: str, member: str) -> pa.RecordBatchReader:
    """Return the bytes of a file, or of the one of this name in a zip."""
    with _of_file(path):
        found = Path(path).read_bytes()
        if path.endswith(".zip") or zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                held = file.namelist()
                own = [name for name in held if Path(name).name == member]
                if len(own) != 1:
                    raise ValueError(
                        f"It is no zip with one {member} inside (it holds "
                        f"{', '.join(held[:5]) or 'nothing'})."
                    )
                found = file.read(own[0])
        return pa.table({"content": [found]}).to_reader()


def _footers(paths: Sequence[str]) -> pa.RecordBatchReader:
    """Return of each Parquet file what its footer says, as JSON."""

    def found() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with _of_file(path), _opened(path) as file:
                names, kinds = file.schema_arrow.names, file.schema_arrow.types
                said = {
                    "names": names,
                    "kinds": [str(kind)[:60] for kind in kinds],
                    "is_number": [_is_number(kind) for kind in kinds],
                    "groups": _group_sizes(file),
                }
            yield pa.record_batch([[json.dumps(said)]], names=["said"])

    return pa.RecordBatchReader.from_batches(pa.schema([("said", pa.string())]), found())


def _rows(
    paths: Sequence[str],
    n_rows: Sequence[int],
    columns: Sequence[str],
    first: int,
    last: int,
) -> pa.RecordBatchReader:
    """Return the rows of Parquet files from a number to another, as float64."""
    schema = pa.schema([(name, pa.float64()) for name in columns])

    def found() -> Iterator[pa.RecordBatch]:
        before = 0
        for path, n_own in zip(paths, n_rows, strict=True):
            start, stop = max(first - before, 0), min(last - before, n_own)
            if start < stop:
                with _of_file(path), _opened(path) as file:
                    for batch in _between(file, n_own, columns, start, stop):
                        own = [column.cast(pa.float64(), safe=False) for column in batch]
                        yield pa.record_batch(own, schema=schema)
            before += n_own

    return pa.RecordBatchReader.from_batches(schema, found())


def _between(
    file: pq.ParquetFile, n_rows: int, columns: Sequence[str], start: int, stop: int
) -> Iterator[list[pa.Array]]:
    """Yield the columns of a file's rows from a number to another, in parts."""
    groups = _group_sizes(file)
    if sum(groups) != n_rows:
        raise ValueError(
            f"It has {sum(groups):,} rows by now, and had {n_rows:,} at the beginning. "
            "Begin again, in another folder."
        )
    ends = np.cumsum(groups)
    wanted = np.flatnonzero((ends > start) & (ends - groups < stop)).tolist()
    at = int(ends[wanted[0]]) - groups[wanted[0]]
    for batch in file.iter_batches(ROWS_AT_ONCE, wanted, list(columns), use_threads=False):
        cut = batch[max(start - at, 0) : max(stop - at, 0)]
        at += len(batch)
        if len(cut):
            yield [cut[name] for name in columns]
    if at < stop:
        raise ValueError(f"Only {at:,} of {n_rows:,} rows can be read.")


def _opened(path: str) -> pq.ParquetFile:
    """Return a Parquet file that is read a little at a time, with its checksums."""
    return pq.ParquetFile(
        path,
        pre_buffer=False,
        buffer_size=BYTES_AT_ONCE,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )


def _group_sizes(file: pq.ParquetFile) -> list[int]:
    """Return how many rows each row group of a file has.

    Raises: ValueError: its footer does not add up.
    """
    about = file.metadata
    sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    if sum(sizes) != about.num_rows or min(sizes, default=0) < 0:
        raise ValueError(
            f"It is damaged: it counts {about.num_rows:,} rows, and its groups {sizes}."
        )
    return sizes


def _is_number(kind: pa.DataType) -> bool:
    """Return whether a column holds whole numbers, floats, or true and false."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(is_one(kind) for is_one in tests)


TASKS: dict[str, Callable[..., pa.RecordBatchReader]] = {
    "table": _table,
    "content": _content,
    "footers": _footers,
    "rows": _rows,
}


def _limit(what: int, most: int) -> None:
    """Have the system refuse, or end, this process where it takes more than so much."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard < 0 else min(most, hard), hard))


def _main() -> None:
    """Do the task that the command line names, as standard input says."""
    limits, given = json.load(sys.stdin)

    def allow_seconds() -> None:
        used = int(sum(os.times()[:2]))
        _limit(resource.RLIMIT_CPU, used + limits["seconds"])

    _limit(resource.RLIMIT_DATA, limits["memory"])
    allow_seconds()
    try:
        batches = TASKS[sys.argv[1]](**given)
        with pa.ipc.new_stream(sys.stdout.buffer, batches.schema) as answer:
            for batch in batches:
                answer.write_batch(batch)
                allow_seconds()
        sys.stdout.flush()
    except ValueError as error:
        sys.stderr.write(str(error))
        sys.exit(REFUSED)


if __name__ == "__main__":
    _main()
