"""No file can do more than be refused: a ValueError that names it, before anything is used.

Most cases were found by benchmarks/fuzz.py, or by hand before it.
"""

import lib.pinned

import ast
import gzip
import io
import json
import os
import re
import resource
import socket
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import answer
import clusters
import compare
import numpy as np
import pandas as pd
import parameters
import plans
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import valid_files
from safetensors.torch import save

from lib.base import files, sandbox
from lib.base.files import ROOT
from lib.beyond.evaluation import willingness
from lib.beyond.hare import fitted, tabular
from lib.beyond.millions import parquet_blocks
from lib.beyond.own_table import findings
from lib.beyond.propose import propose
from lib.method import flow, frames, icarma, loan
from lib.method.classifier import NetworkClassifier
from lib.method.preferences import from_frame, read_answers
from lib.paper import claims, gmsc


@pytest.fixture(scope="module")
def small():
    """The Loan problem, a small model of each kind, and what loads it."""
    problem = loan.problem()
    return problem, *valid_files.small_models(problem, tabular.compas())


def refusal(load: Callable[[], object]) -> str:
    """Return what a loader's ValueError says."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  (callers look at it)
        load()
    return str(error.value)


# --- models

KINDS = ("classifier", "flow", "flows", "icarma", "proposers", "fits", "gmsc_scaler")


def write_model(small, folder: Path, kind: str, tensors, settings) -> Callable[[], object]:
    """Save a model of a kind, and return what loads it."""
    problem, _, loads = small
    header = {"settings": settings, "provenance": {}}
    header["fingerprint"] = problem.population.fingerprint
    contents = {name: part.contiguous() for name, part in tensors.items()}
    header["checksum"] = files.checksum(contents, header)
    path = folder / f"{kind}.safetensors"
    path.write_bytes(save(contents, {"model": json.dumps(header)}))
    return lambda: loads[kind](folder)


def with_first(value: float) -> Callable:
    """Return what puts a value in the place of a tensor's first number."""

    def change(part):
        changed = part.clone()
        changed.view(-1)[0] = value
        return changed

    return change


TENSORS = {
    "a weight is NaN": with_first(torch.nan),
    "a weight is infinite": with_first(-torch.inf),
    "other floats": lambda part: (
        part.double() if part.dtype == torch.float32 else part.float()
    ),
    "half floats": lambda part: part.half(),
    "whole numbers": lambda part: part.long(),
    "an axis too many": lambda part: part[None],
    "no axis": lambda part: part.reshape(-1)[0] if part.ndim else part[None],
    "empty": lambda part: part.reshape(-1)[:0],
    "missing": None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_one_wrong_tensor_is_refused(small, tmp_path, kind):
    """Every tensor of every kind of model, in all ways, is refused in a file's name."""
    tensors, settings = small[1][kind]
    write_model(small, tmp_path, kind, tensors, settings)()  # as it is, it loads
    for name, part in list(tensors.items())[:8]:
        for way, change in TENSORS.items():
            if part.dtype == torch.bool and change is not None and way not in ("empty",):
                continue
            others = {key: other for key, other in tensors.items() if key != name}
            wrong = others if change is None else others | {name: change(part)}
            said = refusal(write_model(small, tmp_path, kind, wrong, settings))
            assert f"{kind}.safetensors holds no " in said, (name, way)
            assert said.endswith("Restore the file, or fit and save it again."), (name, way)
    more = tensors | {f"{next(iter(tensors))}x": torch.zeros(1)}
    assert "holds no " in refusal(write_model(small, tmp_path, kind, more, settings))


SETTINGS = {
    "classifier": [
        {},
        {"features": 7},
        {"features": ["age", "age"]},
        {"features": [[]] * 7},
    ],
    "flow": [
        {"hidden": None},
        {"hidden": [0]},
        {"hidden": [True]},
        {"hidden": ["8"]},
        {"activation": []},
        {"n_bins": -1},
        {"n_bins": True},
        {"n_bins": 2**70},
        {"parents": {}},
        {"parents": {"age": 1}},
        {"parents": {"age": {"age": 1}}},
        {"parents": {"age": [[]]}},
        {"depth": 1},
    ],
    "icarma": [
        {"seeds": [-1, 2]},
        {"seeds": [1.0, 2]},
        {"seeds": [True, 2]},
        {"seeds": []},
        {"seeds": [1]},
        {"ids": [0, 0]},
        {"ids": [-1, 0]},
        {"settings": []},
        {"settings": None},
        {"settings": [{}] * 2},
        {"settings": [None, None]},
    ],
    "gmsc_scaler": [{"people": "others"}, {"people": None}, {"people": []}],
    "fits": [{"fingerprints": None}, {"fingerprints": {"compas": 1}}, {"fingerprints": {}}],
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_model_with_wrong_settings_is_refused(small, tmp_path, kind):
    tensors, settings = small[1][kind]
    for change in SETTINGS[kind]:
        wrong = settings | change if change else {}
        said = refusal(write_model(small, tmp_path, kind, tensors, wrong))
        assert f"{kind}.safetensors holds no " in said, change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": "0.4"}, "tau of Settings must be float, got '0.4'"),
        ({"tau": True}, "tau of Settings must be float, got True"),
        ({"tau": 2**70}, "tau of Settings must be float"),
        ({"tau": -0.4}, "tau must be above zero"),
        ({"cost": float("inf")}, "cost must not be below zero, got inf"),
        ({"margin": float("inf")}, "margin must be finite"),
        ({"hidden": 2.0}, "hidden of Settings must be int"),
        ({"hidden": 3}, "different widths"),
        ({"on_probability": 1}, "on_probability of Settings must be bool"),
        ({"profile": None}, "Profile must be settings by name"),
        ({"profile": {"gamma": 1.0}}, "Profile lacks w_max"),
        ({"depth": 2}, "Unknown setting of Settings 'depth'"),
    ],
)
def test_each_setting_of_a_member_is_checked(small, tmp_path, change, message):
    tensors, settings = small[1]["icarma"]
    wrong = settings | {
        "settings": [settings["settings"][0] | change, settings["settings"][1]]
    }
    assert message in refusal(write_model(small, tmp_path, "icarma", tensors, wrong))


def test_a_network_of_more_layers_than_memory_is_refused(small, tmp_path):
    tensors, settings = small[1]["proposers"]
    wrong = {"a": settings["a"] | {"n_hidden": 2**60}}
    said = refusal(write_model(small, tmp_path, "proposers", tensors, wrong))
    assert "it has 2 layers, expected" in said


def test_a_classifier_of_other_floats_does_not_decide_for_these_people(small):
    problem = small[0]
    h = problem.classifier
    layers = ([part.double() for part in own] for own in (h.weights, h.biases))
    with pytest.raises(ValueError, match=r"torch.float64 and x torch.float32"):
        replace(problem, classifier=NetworkClassifier(h.features, *layers))


def raw(header: bytes, data: bytes = bytes(8)) -> bytes:
    """Return a model file with this header."""
    return len(header).to_bytes(8, "little") + header + data


def with_model(said: str) -> bytes:
    """Return a model file of which `said` is the project's own part of the header."""
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return raw(json.dumps({"w": tensor, "__metadata__": {"model": said}}).encode())


PARTS = {"settings": {}, "provenance": {}, "fingerprint": ""}
CHECKSUM = files.checksum({"w": torch.zeros(2)}, PARTS)
GOOD = json.dumps(PARTS | {"checksum": CHECKSUM})
TENSOR = b'"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}'
HEADERS = {
    "a tensor twice": raw(
        b'{"__metadata__": {"model": "{}"}, ' + TENSOR + b", " + TENSOR + b"}"
    ),
    "a key of the header twice": raw(
        b'{"__metadata__": {"model": "{}", "model": "{}"}, ' + TENSOR + b"}"
    ),
    "settings twice": with_model(GOOD.replace("{}", '{}, "settings": {}', 1)),
    "a number that is none": with_model(GOOD.replace("{}", '{"tau": NaN}', 1)),
    "too deep": with_model(GOOD.replace("{}", "[" * 100_000 + "]" * 100_000, 1)),
    "a number too long": with_model(GOOD.replace("{}", f'{{"tau": {"9" * 5_000}}}', 1)),
    "settings in a list": with_model(GOOD.replace("{}", "[]", 1)),
    "a fingerprint that is no text": with_model(GOOD.replace('""', "1")),
    "a header that is no text": raw(b"\xff" * 20),
    "a header in a list": raw(b"[]"),
    "a header without end": raw(b"{}")[:-9],
    "a header longer than memory": (2**60).to_bytes(8, "little") + b"{}",
    "nothing": b"",
    "floats of 8 bits": raw(
        b'{"__metadata__": {"model": "{}"}, "w": '
        b'{"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}'
    ),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_header_that_can_be_read_in_two_ways_or_none_is_refused(tmp_path, what):
    (tmp_path / "sound.safetensors").write_bytes(with_model(GOOD))
    files.load(tmp_path, "sound")
    (tmp_path / "mine.safetensors").write_bytes(HEADERS[what])
    said = refusal(lambda: files.load(tmp_path, "mine"))
    assert re.search(
        r"mine.safetensors is damaged or was not written by this project", said
    )
    assert said.endswith(files.REMEDY)


def test_any_other_byte_of_a_model_is_noticed(small, tmp_path):
    """A digit of a setting, a bit of a weight: it loads as it was, or not at all."""
    tensors, settings = small[1]["classifier"]
    load = write_model(small, tmp_path, "classifier", tensors, settings)
    path, x = tmp_path / "classifier.safetensors", torch.randn(5, 7)
    whole, answer, rng = path.read_bytes(), load().logit(x), np.random.default_rng(0)
    n_refused = 0
    for at in rng.integers(0, len(whole), 300).tolist():
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            assert torch.equal(load().logit(x), answer)
        except ValueError as error:
            assert "damaged" in str(error)  # noqa: PT017  (some changes mean nothing)
            n_refused += 1
    assert n_refused > 290


def test_a_model_too_large_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "mine.safetensors").write_bytes(with_model(GOOD))
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    assert "more than 10 bytes" in refusal(lambda: files.load(tmp_path, "mine"))


@pytest.mark.parametrize("name", ["a.safetensors", "a.csv", "a.png"])
def test_a_damaged_result_is_told_apart_and_does_not_end_the_count(tmp_path, name):
    one, other = tmp_path / name, tmp_path / f"other_{name}"
    one.write_bytes(b"\xff damaged")
    other.write_bytes(b"")
    assert compare.verdict_on(one, other).startswith("DIFFERS: one of the files is damaged")


# --- tables, by a process of its own

CSVS = {
    "a column twice": b"age,income,age\n1,2,3\n",
    "more fields than names": b"age,income\n1,2,3\n4,5,6\n",
    "more fields in a row": b"age,income\n1,2\n1,2,3\n",
    "a field without end": b'age,income\n"1,2\n',
    "no text": b"age,income\n\xff\xfe,2\n",
    "no text in its names": b"age,\xff\n1,2\n",
    "another separator": b"age;income\n1;2\n",
    "nothing": b"",
    "blank lines": b"\n\n\n",
}


@pytest.mark.parametrize("what", CSVS)
def test_a_csv_that_holds_no_table_is_refused(tmp_path, here, what):
    path = tmp_path / "people.csv"
    path.write_bytes(CSVS[what])
    assert refusal(lambda: findings.read(path)).startswith(f"{path}: It")


def texts(n_rows: int, length: int = 90_000) -> pa.Array:
    """Return a column of one long text, which a file holds once."""
    one = pa.array(["x" * length]).dictionary_encode()
    return one.take(pa.array(np.zeros(n_rows, int)))


def wide() -> bytes:
    """Return a csv of 45 kB whose short rows would be filled to 600 million cells."""
    return ",".join(f"c{i}" for i in range(6_000)).encode() + b"\n" + b"1\n" * 100_000


@pytest.mark.parametrize("store_schema", [True, False])
def test_a_file_of_bytes_that_takes_gigabytes_is_refused(tmp_path, store_schema):
    """Written out, its texts would take 3.7 GB."""
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"job": texts(41_000)}), path, store_schema=store_schema)
    assert path.stat().st_size < 7_000
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert "takes more than 2,000,000,000 bytes" in refusal(lambda: findings.read(path))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert max(most, before) * 1024 < 1.5 * sandbox.MOST_MEMORY


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv.gz", gzip.compress(bytes(300_000_000))),
        ("mine.zip", valid_files.packed(bytes(300_000_000), method=zipfile.ZIP_BZIP2)),
        ("mine.csv", wide()),
    ],
)
def test_what_unpacks_without_end_is_refused(tmp_path, monkeypatch, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert len(content) < 320_000
    monkeypatch.setattr(sandbox, "MOST_MEMORY", 300_000_000)
    said = refusal(lambda: findings.read(path))
    assert said.startswith(f"{path}: It") and re.search("memory|bytes|out of", said)


def test_what_takes_too_long_is_ended(tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"age,income\n" + b"1.5,2.5\n" * 2_000_000)
    monkeypatch.setattr(sandbox, "MOST_SECONDS", 0)
    said = refusal(lambda: sandbox.table(path))
    assert said.startswith(f"{path}: It can't be read: that ended the process that tried")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_nobody_waits_for_a_pipe(tmp_path, name):
    os.mkfifo(tmp_path / name)
    assert refusal(lambda: sandbox.table(tmp_path / name)).endswith("no such file.")


def test_the_sandbox_reads_what_pandas_reads(tmp_path):
    sound = pd.DataFrame(
        {
            "age": [30, 40, 50],
            "income": [2.5, np.nan, 1e-17],
            "job": ["cook", None, "clerk, \u00e9"],
            "member": [True, False, True],
        }
    )
    for name in ("a.csv", "a.csv.gz", "a.zip"):
        sound.to_csv(tmp_path / name, index=False)
    sound.to_parquet(tmp_path / "a.parquet", index=False)
    for path in sorted(tmp_path.iterdir()):
        pd.testing.assert_frame_equal(sandbox.table(path), sound)
    other = sound.set_index("job")
    other.to_parquet(tmp_path / "b.parquet")
    assert list(sandbox.table(tmp_path / "b.parquet")) == ["age", "income", "member", "job"]
    sound.head(0).to_csv(tmp_path / "b.csv", index=False)
    assert sandbox.table(tmp_path / "b.csv").shape == (0, 4)


def share_refused(
    path: Path, content: bytes, read: Callable[[Path], object], mask: int = 0x55
) -> float:
    """Return how often a file is refused whose bytes are each in turn another."""
    n_refused = 0
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= mask
        path.write_bytes(damaged)
        try:
            read(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: "), at  # noqa: PT017
            n_refused += 1
    return n_refused / len(content)


@pytest.mark.parametrize("method", valid_files.METHODS)
def test_a_damaged_zip_is_refused_or_read(tmp_path, here, method):
    """What zipfile raises becomes a ValueError."""
    content = valid_files.packed(valid_files.OWN, method=method)
    assert share_refused(tmp_path / "mine.zip", content, sandbox.table) > 0.5


def zips() -> dict[str, bytes]:
    """Return zips that are not the data, by what is wrong."""
    sound = valid_files.packed(valid_files.RAW)
    twice = io.BytesIO(sound)
    with zipfile.ZipFile(twice, "a") as file:
        file.writestr("more/cs-training.csv", valid_files.RAW)
    at = sound.index(b"PK\x01\x02")
    method, encrypted = bytearray(sound), bytearray(sound)
    method[8] = method[at + 10] = 99
    encrypted[6] |= 1
    encrypted[at + 8] |= 1
    return {
        "two of that name": twice.getvalue(),
        "a method that nobody knows": bytes(method),
        "a password": bytes(encrypted),
        "half of it": sound[: len(sound) // 2],
        "without its middle": sound[:50] + sound[60:],
        "another file": valid_files.packed(valid_files.CSV, "people.csv"),
        "a csv of other people": valid_files.RAW,
    }


def test_a_zip_that_is_not_the_data_is_refused(tmp_path, here):
    path = tmp_path / "data.zip"
    for what, content in zips().items():
        path.write_bytes(content)
        said = refusal(lambda: gmsc.read(path))
        assert str(path) in said and gmsc.HOW_TO_GET_IT in said, what
    assert "There is no file" in refusal(lambda: gmsc.read(tmp_path))


@pytest.mark.parametrize(
    "signs", [("",), (";;",), (None,), ('"',), ("\n",), (1,), (",", ","), (";", "x")]
)
def test_signs_that_tell_no_csv_apart_are_refused(tmp_path, signs):
    path = tmp_path / "mine.csv"
    path.write_bytes(valid_files.OWN)
    assert re.match(
        r"(separator|decimal) is ", refusal(lambda: findings.read(path, *signs))
    )


@pytest.mark.parametrize(
    "path", ["https://a.org/b.csv", "~nobody at all/b.csv", "../b.csv", "a\0b", "b" * 5_000]
)
def test_a_path_that_leads_nowhere_is_refused(path):
    assert "There is no file" in refusal(lambda: findings.read(path))


def refused_parquet(folder: Path, content: bytes) -> str:
    """Return what is said of a Parquet file, which names it."""
    path = folder / "mine.parquet"
    path.write_bytes(content)
    said = refusal(lambda: findings.read(path))
    assert said.startswith(f"{path}: ")
    return said


def packed_table(table: pa.Table) -> bytes:
    """Return a Parquet file."""
    packed = io.BytesIO()
    pq.write_table(table, packed)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"jobs": [["cook"]]}, "Column jobs holds list<element: string>: expected numbers"),
        ({"job": [{"at": "a"}]}, "Column job holds struct<at: string>: expected numbers"),
        ({"job": [b"cook"]}, "Column job holds binary: expected numbers"),
    ],
)
def test_a_nested_parquet_is_refused(tmp_path, here, table, message):
    assert message in refused_parquet(tmp_path, packed_table(pa.table(table)))


def test_a_parquet_with_a_column_twice_is_refused(tmp_path, here):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["age", "age"])
    assert "the column age twice" in refused_parquet(tmp_path, packed_table(twice))


@pytest.mark.parametrize("which", range(4))
def test_a_damaged_parquet_is_refused_or_read(tmp_path, here, which):
    """What pyarrow raises becomes a ValueError."""
    content = valid_files.parquets()[which]
    path = tmp_path / "mine.parquet"
    path.write_bytes(content)
    assert len(findings.read(path)) in (1, 3)
    assert share_refused(path, content, findings.read) > 0.1
    for wrong in (b"", b"PAR1", content[:-1], content[10:], b"PAR1\xff\xff\xff\x7fPAR1"):
        refused_parquet(tmp_path, wrong)


def one_page(path: Path, n_rows: int) -> int:
    """Write zeros as a page of eight bytes a row; returns how long the file is."""
    content = pa.table({"a": np.zeros(n_rows)})
    whole = {"row_group_size": n_rows, "max_rows_per_page": n_rows}
    whole |= {"write_batch_size": n_rows, "data_page_size": 2**31 - 1}
    pq.write_table(content, path, compression="zstd", use_dictionary=False, **whole)
    return path.stat().st_size


def test_a_small_data_set_of_a_large_page_is_refused(tmp_path, monkeypatch):
    path, n_rows = tmp_path / "a.parquet", 20_000_000
    assert one_page(path, n_rows) < 30_000
    rows = parquet_blocks.find(path, ["a"])
    monkeypatch.setattr(sandbox, "MOST_MEMORY", 250_000_000)
    said = refusal(lambda: next(rows.blocks(1_000, 0, 1)))
    assert said.startswith(f"{path}: It takes more than 250,000,000 bytes")


def test_a_million_rows_of_a_hundred_columns_are_few_enough(tmp_path):
    content = np.random.default_rng(0).normal(size=1_000_000)
    names = [f"c{i}" for i in range(100)]
    table = pa.table(dict.fromkeys(names, content))
    pq.write_table(table, tmp_path / "a", compression="none", use_dictionary=False)
    assert pq.read_metadata(tmp_path / "a").num_row_groups == 1
    rows = parquet_blocks.find(tmp_path / "a", names)
    block = next(rows.blocks(16_384, 2, 3))
    np.testing.assert_array_equal(block[:, 99], content[2 * 16_384 : 3 * 16_384])


@pytest.mark.parametrize("how", ["none", "zstd"])
@pytest.mark.parametrize("mask", [0x01, 0x02, 0x55])
def test_a_damaged_data_set_is_refused_or_read(tmp_path, here, how, mask):
    """Pyarrow ends the process if it is asked for a column."""

    def read(path: Path) -> object:
        return list(parquet_blocks.find(path, ["age", "paid"]).blocks(2, 0, 3))

    content = valid_files.applicants(how)
    assert share_refused(tmp_path / "a.parquet", content, read, mask) > 0.1


# --- answers


def test_answers_that_hide_something_are_refused(tmp_path):
    path = tmp_path / "answers.csv"
    for content, message in (
        (b"income,savings\n1,2,1\n", "line 2: more answers than columns"),
        (b"income,savings,note,note\n1,2,a,b\n", "the column note twice"),
        (b'income,savings\n1,"2\n', "unexpected end of data"),
        (b"income,savings\n" + b"1" * 200_000 + b",1\n", "after line 1: field larger"),
        (b"income,savings\n1,\xff\n", "is no text in UTF-8"),
        (b"income,savings\n1," + b"1" * 5_000 + b"\n", "line 2: savings: can't read"),
    ):
        path.write_bytes(content)
        said = refusal(lambda: read_answers(path, ("income", "savings")))
        assert said.startswith(str(path)) and message in said, content[:40]
    path.write_bytes(b"income,savings,,\n1,2,,\n")  # as spreadsheets leave them
    assert read_answers(path, ("income", "savings")).scores.tolist() == [[1, 2]]


def test_a_cell_that_is_a_list_is_refused():
    frame = pd.DataFrame({"income": [["easy", "hard"]], "savings": ["easy"]})
    said = refusal(lambda: from_frame(frame, ("income", "savings")))
    assert "row 0: income: can't read" in said


def test_a_study_in_no_csv_is_refused(tmp_path):
    path = tmp_path / "study.csv"
    names = ",".join(willingness.COLUMNS)
    for content in (
        b"",
        b"\xff",
        f"{names},uid\n".encode(),
        f"{names}\nP,1,2,3,4,5".encode(),
    ):
        path.write_bytes(content)
        assert "study.csv" in refusal(lambda: willingness.read_answers(path))


def test_a_file_larger_than_expected_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    path.write_text("a: 1\n" * 30_000)
    said = refusal(lambda: files.entries(path))
    assert "mine.yaml is 150,000 bytes long: expected 100,000 at most" in said
    assert "There is no file" in refusal(lambda: files.content(Path("/dev/zero"), 10))


# --- YAML, profiles

YAMLS = {
    "a key twice": ("seed: 1\nseed: 2", "line 2: 'seed' stands there twice"),
    "a key twice inside": ("a: {b: 1, b: 2}", "line 1: 'b' stands there twice"),
    "3,000 brackets": ("a: " + "[" * 3_000, "more than 20 brackets within brackets"),
    "a reference": ("a: &b [1]\nc: *b", r"line 1: & and \* are not allowed"),
    "itself": ("a: &a [*a]", r"& and \* are not allowed"),
    "a tag": ("a: !!python/object:os.system x", "the tag .* is not allowed"),
    "a tag for no number": ('a: !!int ""', "the tag .* is not allowed"),
    "a list as a name": ("? [1]\n: 2", "a list can't be a name"),
    "a number as a name": ("1: 2", "It should hold lines `name: value`"),
    "no such day": ("a: 2001-13-45", "month must be in 1..12"),
    "a number too long": (f"a: {'9' * 5_000}", "Exceeds the limit"),
    "a hidden sign": ("a: \x01", "This is not YAML"),
    "no such sign": ('a: "\\Udfffffff"', r"too large|chr\(\) arg not in range"),
    "sixty to the 200th": (f"a: 1{':00' * 200}.5", "a sign or a number that is too large"),
    "two documents": ("a: 1\n---\na: 2", "This is not YAML"),
    "to be merged": ("<<: {a: 1}", "This is not YAML"),
    "a lone =": ("a: =", "This is not YAML"),
}


@pytest.mark.parametrize("what", YAMLS)
def test_yaml_that_is_not_plain_is_refused(tmp_path, what):
    text, message = YAMLS[what]
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    said = refusal(lambda: files.entries(path))
    assert said.startswith(f"{path}: ") and re.search(message, said)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "It should hold lines `name: value`, it holds None"),
        (b"- 1", "It should hold lines `name: value`"),
        (b"executor:\tlocal\n\tjobs: 2", "This is not YAML"),
        (b"jobs: 2\njobs: 3", "line 2: 'jobs' stands there twice"),
        (b"executor: \xff", "is no text in UTF-8"),
        *(
            (b"executor: " + own, "expected the name of one of Snakemake's")
            for own in (b"3", b"null", b"[a]", b"a.b", b"''", b"../a")
        ),
    ],
)
def test_a_profile_that_is_none_is_refused(tmp_path, content, message):
    path = tmp_path / clusters.PROFILES / "mine" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(valid_files.PROFILE)
    clusters.check_profile("mine", tmp_path)
    path.write_bytes(content)
    said = refusal(lambda: clusters.check_profile("mine", tmp_path))
    assert said.startswith(str(path)) and message in said


# --- plans

PLAN = json.loads(valid_files.PLAN)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((own, "It is no plan") for own in (b"[]", b"null", b"3", b"{}", b'{"parts": 1}')),
        (b'{"parts": [1]}', "It is no plan"),
        (b'{"parts": [', "Expecting value"),
        (b'{"parts": [], "parts": []}', "'parts' stands there twice"),
        (b'{"parts": [], "n": NaN}', "It holds NaN"),
        (b"\xff", "is no text in UTF-8"),
    ],
)
def test_a_plan_that_is_none_is_refused(tmp_path, content, message):
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    for read in (
        lambda: plans.read(tmp_path),
        lambda: plans.check_same({"n": 1}, tmp_path),
        lambda: plans.leave({"n": 1}, tmp_path, "parts"),
        lambda: answer.answer(tmp_path, 0, 0),
        lambda: answer.summarise(tmp_path),
    ):
        said = refusal(read)
        assert said.startswith(str(path)) and message in said
        assert said.endswith(plans.WAY_OUT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "It should hold parameters by name, it holds None"),
        ([], "It should hold parameters by name, it holds []"),
        ({}, "It says nothing about data, problem"),
        (PLAN["parameters"] | {"problem": 3}, "problem is 3 (int), expected str"),
        (PLAN["parameters"] | {"members": "all"}, "members is 'all' (str), expected list"),
        (PLAN["parameters"] | {"seed": 0}, "params/recommend.yaml has no parameter 'seed'"),
    ],
)
def test_a_plan_of_other_parameters_is_refused(tmp_path, given, message):
    path = tmp_path / "plan.json"
    path.write_bytes(valid_files.PLAN)
    assert answer.parameters_of(tmp_path) == PLAN["parameters"]
    path.write_text(json.dumps(PLAN | {"parameters": given}))
    said = refusal(lambda: answer.answer(tmp_path, 0, 0))
    assert said.startswith(f"{path}: ") and message in said
    assert said.endswith(plans.WAY_OUT)


def test_what_could_not_be_read_again_is_not_planned(tmp_path):
    plan = PLAN | {"settings": [{"p_max": float("nan")}]}
    said = refusal(lambda: plans.leave(plan, tmp_path, "parts"))
    assert said == (
        f"{tmp_path / 'plan.json'}: It holds NaN, expected numbers. Fill what is empty in "
        "the parameters, or in their table."
    )
    assert not list(tmp_path.iterdir())
    plan = PLAN | {"settings": [{"cap": float("inf")}]}
    plans.leave(plan, tmp_path, "parts")
    assert plans.read(tmp_path) == plan


# --- graphs, numbers, folders, notebooks

GRAPHS = {
    "a: null": "Expected remove and reverse, got None. See a.",
    "a: {remove: null}": "Expected a list of edges",
    "a: {reverse: 3}": "Expected a list of edges",
    "a: {remove: [3]}": "Expected an edge as a pair",
    "a: {remove: [{age: 1, income: 2}]}": "Expected an edge as a pair",
    "a: {remove: [[age, [income]]]}": r"Unknown feature \['income'\]",
    "a: {add: []}": "Unknown change of a graph 'add'",
    "a: {remove: [[age, age]]}": "There is no edge from age to age",
}


@pytest.mark.parametrize("text", GRAPHS)
def test_a_graph_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "graphs.yaml"
    path.write_text(text)
    said = refusal(lambda: gmsc.graphs(path))
    assert said.startswith(f"{path}: ") and re.search(GRAPHS[text], said)
    assert said.endswith("See a.")


DEFAULTS = {"seed": 0, "n_people": 10, "n_all": 0, "rate": 0.5, "shift": -1, "ks": [4, 3]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": -1}, "p.yaml: seed is -1, expected 0 or more"),
        ({"n_people": 0}, "n_people is 0, expected 1 or more"),
        ({"n_people": -5}, "n_people is -5, expected 1 or more"),
        ({"n_all": -1}, "n_all is -1, expected 0 or more"),
        ({"rate": -0.1}, "rate is -0.1, expected 0 or more"),
        ({"rate": float("nan")}, "rate is nan, expected a finite number"),
        ({"rate": float("inf")}, "rate is inf, expected a finite number"),
        ({"ks": [4, -3]}, "ks is -3, expected 0 or more"),
    ],
)
def test_a_number_out_of_range_is_refused(given, message):
    assert message in refusal(
        lambda: parameters.check_parameters(given, DEFAULTS, "p.yaml")
    )
    parameters.check_parameters({"n_all": 0, "shift": -2, "rate": 0}, DEFAULTS, "p.yaml")


@pytest.mark.parametrize(
    "folder",
    ["models", "../runs/x", "runs", "runs/mine/../paper", "runs/mines", "/elsewhere/x"],
)
def test_a_batch_writes_to_its_own_folder_alone(folder):
    for name in parameters.FOLDERS:
        said = refusal(
            lambda name=name: parameters._check_folders({name: folder}, "mine", "p.yaml")
        )
        assert f"p.yaml: {name} is {folder!r}, expected runs/mine or a folder in" in said
    good = {"models": "runs/mine/models", "outputs": "runs/a/../mine"}
    parameters._check_folders(good, "mine", "p.yaml")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        *((f, "expected a folder below runs") for f in ("models", "runs", "runs/../lib")),
        *((f, "is another command's") for f in ("runs/paper", "runs/quick/a", "runs/book")),
    ],
)
def test_a_run_of_its_own_writes_to_no_other(folder, message):
    assert message in refusal(lambda: parameters.check_own_folder(folder, "outputs"))


def test_a_folder_outside_is_named_in_full_or_refused():
    assert files.inside("/elsewhere/models") == Path("/elsewhere/models")
    for folder in ("..", "../models", "runs/../../models"):
        assert "leads out of the repository" in refusal(
            lambda own=folder: files.inside(own)
        )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"cells": 1}',
        b'{"cells": [{}]}',
        b'{"cells": [], "cells": []}',
        b"[" * 100_000,
        b'{"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, '
        b'"source": ["n = 1\\n", "n = 2"]}]}',
        b'{"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, '
        b'"source": ["n = {[]: 1}"]}]}',
        b'{"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, '
        b'"source": ["n = \\u0000"]}]}',
    ],
)
def test_a_notebook_that_is_none_is_refused(tmp_path, content):
    path = tmp_path / "one.ipynb"
    path.write_bytes(content)
    assert "one.ipynb" in refusal(lambda: parameters.notebook_defaults(path))


# --- the network

WEB = {"aiohttp", "ftplib", "http", "httpx", "pooch", "requests", "smtplib", "socket"}
WEB |= {"telnetlib", "urllib", "urllib3", "websockets", "xmlrpc"}
ADDRESS = r"(https?|ftps?|sftp|git|gs|hf|s3)://"


def code(path: Path) -> ast.Module:
    """Return the parsed code of a program, or of a notebook's cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [own for own in json.loads(text)["cells"] if own["cell_type"] == "code"]
        text = "\n".join("".join(own["source"]) for own in cells)
    return ast.parse(text)  # a line that begins with ! or % is no Python, and fails


def reaches_out(node: ast.AST) -> bool:
    """Whether a node imports what speaks to the web, or is an address in it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names]
        names.append(getattr(node, "module", "") or "")
        return bool({name.split(".")[0] for name in names} & WEB)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and re.match(ADDRESS, node.value) is not None


def test_two_rooms_alone_can_reach_the_web():
    """The file of gmsc is the data only if its checksum is right; lock writes checksums."""
    folders = ("lib", "workflow", "exercises", "page", "examples", "notebooks")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    read = [path for path in paths if path.suffix in (".py", ".ipynb")]
    assert {path.parent.name for path in read} >= {"base", "notebooks", "workflow", "keys"}
    using = [path for path in read if any(map(reaches_out, ast.walk(code(path))))]
    found = [path.relative_to(ROOT).as_posix() for path in using]
    assert sorted(found) == ["lib/paper/gmsc.py", "workflow/lock.py"]


@pytest.fixture
def connections():
    """What this process asks of the network while a test runs: Python tells all of it."""
    asked: list[str] | None = []

    def hook(event: str, _: tuple) -> None:  # a hook can't be taken away again
        if asked is not None and event.startswith("socket."):
            asked.append(event)

    sys.addaudithook(hook)
    yield asked
    asked = None


def test_loaders_open_no_connection(small, tmp_path, monkeypatch, connections):
    monkeypatch.delenv(gmsc.VARIABLE, raising=False)
    problem, models, _ = small
    icarma.ICarma.load(files.MODELS, "loan_carma", problem)
    propose.load_all(files.MODELS, "loan_propose_others", problem)
    flow.load_all(files.MODELS, "loan_other_flows")
    fitted.load(files.MODELS, "hare", {"compas": tabular.compas()})
    for kind, (tensors, settings) in models.items():
        write_model(small, tmp_path, kind, tensors, settings)()
    gmsc.scaler(files.MODELS), gmsc.graph(), claims.published(1)
    for path in files.PARAMS.rglob("*.yaml"):
        files.entries(path)
    read_answers(files.PARAMS / "answers.csv", problem.population.actionable)
    parameters.read_parameters("smoke", "05_soft_constraints")
    gmsc.find(download=False)
    assert connections == []
    with pytest.raises(OSError), socket.socket() as one:  # noqa: PT011  (the hook works)
        one.connect(("127.0.0.1", 1))
    assert "socket.connect" in connections


def test_a_table_with_a_list_for_a_label_is_refused():
    frame = pd.DataFrame({"age": [1, 2], "repaid": [[0], [1]]})
    assert "The label 'repaid' holds" in refusal(lambda: frames.labels(frame, "repaid"))
    assert "repaid holds [0]" in refusal(
        lambda: tabular.from_frames(
            "own", dict.fromkeys(tabular.SPLITS, frame), "repaid", ("age",), (), ()
        )
    )


def test_complex_numbers_lose_no_half():
    frame = pd.DataFrame({"age": [1 + 2j]})
    said = refusal(lambda: frames.values(frame, ["age"]))
    assert "Column 'age' holds complex128: expected numbers" in said


def test_settings_of_a_member_are_rebuilt_as_they_were():
    settings = icarma.Settings(hidden=3, cap=float("inf"), hinge=None)
    as_read = json.loads(json.dumps(vars(settings) | {"profile": vars(settings.profile)}))
    assert files.rebuilt(icarma.Settings, as_read) == settings
