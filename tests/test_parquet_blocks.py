"""Blocks of a Parquet data set: each cut gives the same rows, each damage a sentence."""

import lib.pinned

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib.beyond.millions import parquet_blocks

RNG = np.random.default_rng(0)
N = 1_000
VALUES = np.stack([RNG.normal(size=N), RNG.integers(0, 9, N), RNG.integers(0, 2, N)], -1)
VALUES[::7, 0] = np.nan
pytestmark = pytest.mark.usefixtures("here")
NAMES = ["income", "cards", "is_new"]
KINDS = (pa.float64(), pa.int8(), pa.bool_())


def table(rows: slice, order=(0, 1, 2), kinds=KINDS):
    """Some of the rows, with a column that nobody asks for; NaN is written as a gap."""
    columns = {"name": [f"person {i}" for i in range(N)[rows]]}
    for j in order:
        own = VALUES[rows, j]
        columns[NAMES[j]] = pa.array(own, mask=np.isnan(own)).cast(kinds[j])
    return pa.table(columns)


@pytest.fixture
def folder(tmp_path):
    """Files of several types, orders and row groups, one without rows, and no data."""
    pq.write_table(table(slice(0, 300)), tmp_path / "1.parquet", row_group_size=77)
    pq.write_table(table(slice(0, 0)), tmp_path / "2.parquet")
    other = table(slice(300, 301), (2, 0, 1), (pa.float64(), pa.uint64(), pa.float16()))
    pq.write_table(other, tmp_path / "3.parquet")
    pq.write_table(table(slice(301, N)), tmp_path / "4.parquet", row_group_size=250)
    for name in (".5.parquet", "_6.parquet", "notes.txt"):
        (tmp_path / name).write_text("no data")
    return tmp_path


@pytest.mark.parametrize("size", [1, 64, 77, 300, 999, 1_000, 5_000])
def test_blocks_are_the_rows_whatever_the_files(folder, size):
    rows = parquet_blocks.find(folder, NAMES)
    assert rows.total == N and rows.n_rows == (300, 0, 1, 699)
    n_blocks = -(-N // size)
    blocks = list(rows.blocks(size, 0, n_blocks))
    assert [len(own) for own in blocks[:-1]] == [size] * (n_blocks - 1)
    np.testing.assert_array_equal(np.concatenate(blocks), VALUES)
    # any range by itself
    for first, last in ((0, 1), (n_blocks // 2, n_blocks), (n_blocks - 1, n_blocks + 3)):
        own = np.concatenate(list(rows.blocks(size, first, last)))
        np.testing.assert_array_equal(own, VALUES[first * size : last * size])


def test_a_file_by_itself_and_columns_in_any_order(folder):
    rows = parquet_blocks.find(str(folder / "4.parquet"), NAMES[::-1])
    (block,) = rows.blocks(N, 0, 1)
    np.testing.assert_array_equal(block, VALUES[301:, ::-1])


def test_a_name_with_a_dot_is_a_column(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [{"b": 3}], "a.b": [1.5], "c": [2]}), path)
    (block,) = parquet_blocks.find(path, ["c", "a.b"]).blocks(1, 0, 1)
    assert block.tolist() == [[2.0, 1.5]]


def test_large_whole_numbers_become_the_nearest_float(tmp_path):
    pq.write_table(pa.table({"a": pa.array([2**63 + 1], pa.uint64())}), tmp_path / "a")
    (block,) = parquet_blocks.find(tmp_path / "a", ["a"]).blocks(1, 0, 1)
    assert block.tolist() == [[2.0**63]]


def test_a_page_that_was_changed_is_refused(tmp_path):
    """It would be read as another number, if its checksum were not looked at."""
    path = tmp_path / "a.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table({"a": [500.0]}), path, write_page_checksum=True, **plain)
    content = path.read_bytes()
    at = content.index(np.float64(500).tobytes()) + 6
    path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
    with pytest.raises(ValueError, match=r"a\.parquet: It can't be read .*CRC"):
        list(parquet_blocks.find(path, ["a"]).blocks(1, 0, 1))


def refusal(path: Path, columns=NAMES, size: int = 100) -> str:
    """What is said of a data set that can't be read."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  (callers look at it)
        list(parquet_blocks.find(path, columns).blocks(size, 0, 10))
    return str(error.value)


def test_what_is_no_data_set_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "nowhere.parquet"):
        assert f"There is no data set {path}: expected a Parquet file" in refusal(path)
    (tmp_path / "b.parquet").mkdir()
    assert f"There is no data set {tmp_path}: expected a Parquet file" in refusal(tmp_path)
    (tmp_path / "year=2025").mkdir()
    (tmp_path / "year=2025" / "a.parquet").touch()
    assert f"{tmp_path} has Parquet files in folders" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"income": [1]}, "It has no column cards, is_new; found income."),
        (
            {"income": ["a"]},
            "Column income holds string: expected whole numbers",
        ),
        ({"income": [[1.0]]}, "Column income holds list<"),
        ({"income": [None]}, "Column income holds null: expected whole numbers"),
    ],
)
def test_columns_that_do_not_fit_are_named(folder, columns, message):
    others = {} if "no column" in message else {"cards": [1], "is_new": [True]}
    pq.write_table(pa.table(columns | others), folder / "9.parquet")
    assert re.search(re.escape(f"9.parquet: {message}"), refusal(folder))


def test_a_column_twice_is_refused(tmp_path):
    twice = pa.table([[1], [2]], names=["income", "income"])
    pq.write_table(twice, tmp_path / "a.parquet")
    assert "a.parquet: It has the column income twice" in refusal(tmp_path, ["income"])


def test_no_rows_are_refused(tmp_path):
    pq.write_table(table(slice(0, 0)), tmp_path / "a.parquet")
    assert "has no rows: expected one or more." in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"age,paid\n1,2\n", b"PAR1" * 9])
def test_what_is_not_parquet_is_named(folder, content):
    (folder / "9.parquet").write_bytes(content)
    assert "9.parquet: It can't be read as Parquet" in refusal(folder)


def test_a_footer_that_contradicts_itself_is_named(tmp_path):
    """Found by fuzzing: it counted more rows than its row groups."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"age": [30, 40, 50]}), path, row_group_size=2)
    content = path.read_bytes()
    three, five = b"\x16\x06\x19", b"\x16\x0a\x19"  # the number, and then a list begins
    assert content.count(three) == 1
    path.write_bytes(content.replace(three, five))
    said = "a.parquet: It is damaged: it counts 5 rows, and its groups [2, 1]."
    assert said in refusal(path, ["age"])


def test_damaged_pages_are_named(folder):
    """The footer is whole, so that the damage is found when rows are read."""
    path = folder / "4.parquet"
    content = bytearray(path.read_bytes())
    content[200:4_000] = RNG.bytes(3_800)
    path.write_bytes(content)
    assert parquet_blocks.find(folder, NAMES).total == N
    assert "4.parquet: " in refusal(folder)


def test_a_file_that_changes_meanwhile_is_named(folder):
    rows = parquet_blocks.find(folder, NAMES)
    pq.write_table(table(slice(0, 10)), folder / "4.parquet")
    with pytest.raises(ValueError, match=r"4\.parquet: It has 10 rows by now, and had 699"):
        list(rows.blocks(100, 0, 10))
    (folder / "4.parquet").unlink()
    with pytest.raises(ValueError, match=r"4\.parquet: It can't be read"):
        list(rows.blocks(100, 0, 10))
