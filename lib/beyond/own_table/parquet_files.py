"""Tables in Parquet files: read within bounds, with errors that name the file.

What is packed in such a file may be a million times as long as the
file: a value that a whole column shares is stored once. So the footer
is asked first how many rows there are, texts are counted before they
are written out, and columns of columns are refused.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from lib.base import files, tables

MOST_UNPACKED = 1_000_000_000  # bytes, as the footer says
MOST_FOOTER = 10_000_000  # bytes; 10,000 columns take a tenth of it
AT_ONCE = 10_000  # rows
MOST_PARTS = 100_000  # columns, groups of rows, or what else a footer lists
KINDS: tuple[Callable[[pa.DataType], bool], ...] = (  # that a cell may be
    types.is_boolean,
    types.is_integer,
    types.is_floating,
    types.is_decimal,
    types.is_string,
    types.is_large_string,
    types.is_date,
    types.is_time,
    types.is_timestamp,
    types.is_duration,
    types.is_null,
)
UNREADABLE = (  # what pyarrow raises of content that it can't make a table of
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
)


def read(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file; what was an index in pandas is a column.

    Arguments:
        path: Of the file. Its cells are numbers, texts, days, or true
            or false.
    Raises: ValueError: there is no such file, it is too large or
        damaged, a column stands there twice, or holds something else.
    """
    found = files.content(path, tables.MOST_BYTES)
    with files.in_file(path):
        try:
            return _table(found)
        except UNREADABLE as error:
            if type(error) is ValueError:
                raise
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise ValueError(
                f"This is no Parquet file, or it is damaged: {why.rstrip('.')}. Expected "
                "one of columns that hold numbers or texts."
            ) from error


def _table(found: bytes) -> pd.DataFrame:
    """Return the table in the bytes of a Parquet file.

    Raises: ValueError: it is too large, or not of simple columns.
        `UNREADABLE`: it is damaged.
    """
    if found.endswith(b"PAR1") and int.from_bytes(found[-8:-4], "little") > MOST_FOOTER:
        raise ValueError(f"Its footer is longer than {MOST_FOOTER:,} bytes.")
    texts = _check_footer(_opened(found))
    file = _opened(found, texts)
    n_bytes, columns = 0, {}
    for field in file.schema_arrow:
        parts = []
        for batch in file.iter_batches(AT_ONCE, columns=[field.name], use_threads=False):
            part = batch.column(field.name)
            part.validate(full=True)
            n_bytes += _n_bytes(part)  # the footer may have said less
            if n_bytes > tables.MOST_BYTES:
                raise ValueError(
                    f"Its texts take more than {tables.MOST_BYTES:,} bytes, written out."
                )
            parts.append(part.dictionary_decode() if field.name in texts else part)
        own = parts[0].type if parts else _kind(field)
        columns[field.name] = pa.chunked_array(parts, own)
    frame = pa.table(columns).to_pandas(ignore_metadata=True, use_threads=False)
    tables.check_cells(frame)
    return frame


def _opened(found: bytes, texts: list[str] | None = None) -> pq.ParquetFile:
    """Return a Parquet file of which texts are read as numbers of what stands once."""
    return pq.ParquetFile(
        pa.BufferReader(found),
        read_dictionary=texts,
        pre_buffer=False,
        thrift_string_size_limit=MOST_FOOTER,
        thrift_container_size_limit=MOST_PARTS,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )


def _check_footer(file: pq.ParquetFile) -> list[str]:
    """Return the columns of texts, if a footer promises a table that can be read.

    Raises: ValueError: it does not.
    """
    schema, footer = file.schema_arrow, file.metadata
    tables.check_names(schema.names, ())
    tables.check_size(footer.num_rows, len(schema.names))
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > MOST_UNPACKED:
        raise ValueError(
            f"Unpacked it is {unpacked:,} bytes long: expected {MOST_UNPACKED:,} at most."
        )
    texts = []
    for field in schema:
        kind = _kind(field)
        if not any(is_kind(kind) for is_kind in KINDS):
            raise ValueError(
                f"Column {field.name} holds {str(kind)[:60]}: expected numbers, texts, "
                "days, or true and false. Leave it out."
            )
        if types.is_string(kind) or types.is_large_string(kind):
            texts.append(field.name)
    return texts


def _kind(field: pa.Field) -> pa.DataType:
    """Return what the cells of a column are, once its texts are written out."""
    return field.type.value_type if types.is_dictionary(field.type) else field.type


def _n_bytes(part: pa.Array) -> int:
    """Return how many bytes the texts of a part of a column take, once written out."""
    if not types.is_dictionary(part.type):
        return 0
    lengths = pc.fill_null(pc.binary_length(part.dictionary), 0).to_numpy()
    used = np.bincount(part.indices.drop_null().to_numpy(), minlength=len(lengths))
    return int(used @ lengths.astype(np.int64))
