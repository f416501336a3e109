"""Models on disk: whole or not at all, and a remedy when they are missing."""

import lib.pinned

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open

from lib.base import files
from lib.studies import claims


def test_round_trip(tmp_path):
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.ones(1, dtype=torch.float64),
    }
    files.save(
        tmp_path / "new",
        "loan_flow",
        tensors,
        {"hidden": [64], "order": {"z": 1, "a": 2}},
        {},
    )
    loaded, settings = files.load(tmp_path / "new", "loan_flow")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert settings == {"hidden": [64], "order": {"z": 1, "a": 2}}
    assert list(settings["order"]) == ["z", "a"]  # causal order survives
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["loan_flow.safetensors"]


def test_missing_and_corrupt_files_name_the_remedy(tmp_path):
    with pytest.raises(
        ValueError, match=r"found none. `make reproduce`, then `make models`"
    ):
        files.load(tmp_path, "loan_flow")
    path = files.save(tmp_path, "loan_flow", {"a": torch.ones(100)}, {}, {})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"is damaged.*restore the file"):
        files.load(tmp_path, "loan_flow")
    path.write_text("not a model")
    with pytest.raises(ValueError, match="is damaged"):
        files.load(tmp_path, "loan_flow")


def test_a_model_of_another_population_is_refused(tmp_path):
    files.save(
        tmp_path, "mine", {"a": torch.ones(1)}, {}, {"seed": 3, "n_flow": 500}, "abc"
    )
    assert files.load(tmp_path, "mine", "abc")[0]["a"] == 1
    with pytest.raises(
        ValueError, match=r"another population \(made with seed 3, n_flow 500"
    ):
        files.load(tmp_path, "mine", "abd")


def test_equal_models_are_equal_files(tmp_path):
    tensors = {"a": torch.ones(3), "b": torch.zeros(2)}
    one, two = (files.save(tmp_path / str(i), "m", tensors, {"x": 1}, {}) for i in range(2))
    assert one.read_bytes() == two.read_bytes()


def test_provenance_is_in_the_header(tmp_path):
    path = files.save(
        tmp_path, "loan_flow", {"a": torch.ones(1)}, {}, {"seed": 3, "n_epochs": 10}
    )
    with safe_open(path, framework="pt") as file:
        provenance = json.loads(file.metadata()["model"])["provenance"]
    assert provenance["seed"] == 3 and provenance["torch"] == torch.__version__


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
    files.save(
        tmp_path / "one", "loan_flow", {"a": torch.ones(2)}, {"hidden": 1}, {"seed": 1}
    )
    files.save(tmp_path / "other", "loan_flow", tensors, settings, {"seed": 2})
    assert files.same("loan_flow", tmp_path / "one", tmp_path / "other") is expected
    assert files.same("loan_flow", tmp_path / "one", tmp_path / "nowhere") is False


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_arithmetic_cannot_be_pinned_too_late(library):
    unpinned = {
        name: value for name, value in os.environ.items() if name not in lib.pinned.PINS
    }
    late = subprocess.run(
        [sys.executable, "-c", f"import {library}, lib.pinned"],
        env=unpinned,
        capture_output=True,
        text=True,
    )
    assert (
        late.returncode == 1 and f"{library} was imported before lib.pinned" in late.stderr
    )


def test_published_tables():
    table = claims.published(1)
    assert len(table) == 10 and not {"cost_mean", "note", "dataset"} & set(table)
    assert (
        table[
            (table.n_individually_actionable == "2") & (table.method == "oracle")
        ].validity.item()
        == 0.539
    )
    assert len(claims.published(1, "GMSC")) == 2
    with pytest.raises(ValueError, match="Unknown table of the paper 4"):
        claims.published(4)
