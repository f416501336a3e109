"""Files: whole or not at all, and a remedy when they are missing or of another kind."""

import lib.reproducible

import errno
import os
from dataclasses import asdict, dataclass

import pytest
import torch
from safetensors.torch import save_file

from lib import io
from lib.paper import claims


def test_round_trip(tmp_path):
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.ones(1, dtype=torch.float64),
    }
    settings = {"hidden": [64], "order": {"z": 1, "a": 2}}
    io.save(tmp_path / "new", "loan_flow", tensors, settings, {})
    loaded, found = io.load(tmp_path / "new", "loan_flow")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert found == settings
    assert list(found["order"]) == ["z", "a"]  # causal order survives
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["loan_flow.safetensors"]


def test_missing_and_corrupt_files_name_the_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"found none. Restore the file, or fit it"):
        io.load(tmp_path, "loan_flow")
    path = io.save(tmp_path, "loan_flow", {"a": torch.ones(100)}, {}, {})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"is damaged.*Restore the file"):
        io.load(tmp_path, "loan_flow")
    for header in (None, {"a": "b"}, {"model": "{"}, {"model": "[]"}, {"model": "{}"}):
        save_file({"a": torch.ones(2)}, path, metadata=header)
        with pytest.raises(ValueError, match="was not written by this project"):
            io.load(tmp_path, "loan_flow")
    io.save(tmp_path, "loan_flow", {"a": torch.tensor([1.0, torch.nan])}, {}, {})
    with pytest.raises(ValueError, match="NaN or infinite values in a"):
        io.load(tmp_path, "loan_flow")


def test_a_model_of_another_population_is_refused(tmp_path):
    made_with = {"seed": 3, "n_flow": 500}
    io.save(tmp_path, "mine", {"a": torch.ones(1)}, {}, made_with, "abc")
    assert io.load(tmp_path, "mine", "abc")[0]["a"] == 1
    with pytest.raises(ValueError, match=r"population \(made with seed 3, n_flow 500"):
        io.load(tmp_path, "mine", "abd")


def test_equal_models_are_equal_files(tmp_path):
    tensors = {"a": torch.ones(3), "b": torch.zeros(2)}
    written = {
        io.save(tmp_path, "m", tensors, {"x": 1}, {"seed": 1}, "abc").read_bytes()
        for _ in range(8)
    }
    assert len(written) == 1


@pytest.mark.parametrize("name", ["", "a/b", "../a", "/a", "a.safetensors"])
def test_a_name_is_a_plain_file_name(tmp_path, name):
    for use in (
        lambda: io.save(tmp_path, name, {"a": torch.ones(1)}, {}, {}),
        lambda: io.load(tmp_path, name),
        lambda: io.same(name, tmp_path, tmp_path),
    ):
        with pytest.raises(ValueError, match="expected a plain file name"):
            use()
    assert not list(tmp_path.iterdir())


def test_settings_that_json_cannot_hold_leave_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"mine .*not JSON serializable"):
        io.save(tmp_path, "mine", {}, {"x": torch.ones(1)}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tensors", "settings", "expected"),
    [
        ({"a": torch.ones(2)}, {"hidden": 1}, True),
        ({"a": torch.tensor([1.0, 1.0 + 2**-23])}, {"hidden": 1}, False),  # one bit
        ({"a": torch.ones(2)}, {"hidden": 2}, False),
        ({"a": torch.ones(2), "b": torch.ones(1)}, {"hidden": 1}, False),
        ({}, {"hidden": 1}, False),
    ],
)
def test_same_means_to_the_bit(tmp_path, tensors, settings, expected):
    io.save(tmp_path / "one", "m", {"a": torch.ones(2)}, {"hidden": 1}, {"seed": 1})
    io.save(tmp_path / "other", "m", tensors, settings, {"seed": 2})
    assert io.same("m", tmp_path / "one", tmp_path / "other") is expected
    assert io.same("m", tmp_path / "one", tmp_path / "nowhere") is False


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    io.write(path, "before")

    def full(partial, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"a.csv can't be written, 5 bytes: No space left"):
        io.write(path, "after")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_models_that_share_a_file_come_apart_again():
    models = {"a": {"w": torch.ones(1), "x/b": torch.zeros(1)}, "b": {"w": torch.ones(2)}}
    together = io.flatten(models)
    assert list(together) == ["a/w", "a/x/b", "b/w"] and io.unflatten(together) == models


@dataclass
class Inner:
    """A part of settings."""

    rate: float


@dataclass
class Outer:
    """Settings with a part."""

    inner: Inner
    n: int


def test_settings_come_back_from_their_entries():
    outer = Outer(Inner(0.5), 3)
    assert io.from_dict(Outer, asdict(outer)) == outer
    for entries, message in (
        ({"n": 3}, "Outer lacks inner"),
        ({"inner": {"rate": 1.0}, "n": 3, "m": 1}, "Unknown setting of Outer 'm'"),
        ({"inner": 3, "n": 3}, "Inner must be settings by name, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            io.from_dict(Outer, entries)


def test_yaml_by_name(tmp_path):
    path = tmp_path / "mine.yaml"
    with pytest.raises(ValueError, match=r"found none. Those in its folder: none"):
        io.load_yaml(path)
    path.write_text("rates: {white: 0.9, non-white: 0.05}\n# a comment\nby: race\n")
    expected = {"rates": {"white": 0.9, "non-white": 0.05}, "by": "race"}
    assert io.load_yaml(path) == expected
    with pytest.raises(ValueError, match=r"Those in its folder: mine\."):
        io.load_yaml(tmp_path / "yours.yaml")
    for text, message in (
        ("n: [", "mine.yaml: This is not YAML"),
        ("- 2", r"mine.yaml: It should hold lines `name: value`, it holds \[2\]"),
        ("", "it holds None"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            io.load_yaml(path)


def test_csv_with_the_columns_that_are_needed(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("age,income\n30,2000\n")
    assert io.read_csv(path, ["income"]).income.tolist() == [2000]
    with pytest.raises(ValueError, match=r"mine.csv: It has no column debt; found age"):
        io.read_csv(path, ["debt"])
    with pytest.raises(ValueError, match=r"yours.csv: It can't be read"):
        io.read_csv(tmp_path / "yours.csv")


def test_folders_of_the_repository():
    assert io.inside("models") == io.MODELS and io.inside("/tmp").as_posix() == "/tmp"
    with pytest.raises(ValueError, match="leads out of the repository"):
        io.inside("../models")


def test_published_tables():
    table = claims.published(1)
    assert len(table) == 10 and not {"cost_mean", "note", "dataset"} & set(table)
    two = (table.n_individually_actionable == "2") & (table.method == "oracle")
    assert table[two].validity.item() == 0.539
    assert len(claims.published(1, "GMSC")) == 2
    with pytest.raises(ValueError, match="Unknown table of the paper 4"):
        claims.published(4)
