"""Models on disk: whole or not at all, and a remedy when they are missing."""

import lib.pinned

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lib.base import files
from lib.paper import claims


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
    with pytest.raises(ValueError, match=r"found none. `make all`, then `make models`"):
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
    """Safetensors would write several keys of a header in an order drawn at random."""
    tensors = {"a": torch.ones(3), "b": torch.zeros(2)}
    written = {
        files.save(tmp_path, "m", tensors, {"x": 1}, {"seed": 1}, "abc").read_bytes()
        for _ in range(8)
    }
    assert len(written) == 1


def test_a_file_without_a_checksum_or_with_another_is_refused(tmp_path):
    header = {"settings": {"tau": 0.4}, "provenance": {}, "fingerprint": ""}
    tensors = {"a": torch.ones(2)}
    for more, said in (({}, "has no checksum"), ({"checksum": "1f"}, "than its checksum")):
        told = {"model": json.dumps(header | more)}
        save_file(tensors, tmp_path / "mine.safetensors", metadata=told)
        with pytest.raises(ValueError, match=said):
            files.load(tmp_path, "mine")


def test_settings_keep_their_order_and_the_population_is_asked_for(tmp_path):
    files.save(tmp_path, "mine", {"a": torch.ones(2)}, {"order": {"z": 1, "a": 2}}, {})
    tensors, settings = files.load(tmp_path, "mine")
    assert tensors["a"].tolist() == [1, 1] and list(settings["order"]) == ["z", "a"]
    with pytest.raises(ValueError, match="does not say which population it was fitted to"):
        files.load(tmp_path, "mine", "abc")


@pytest.mark.parametrize(
    "name", ["", "a/b", "../a", "..", ".a", "a\\b", "/a", "a\0", "a.safetensors"]
)
def test_a_name_is_a_plain_file_name(tmp_path, name):
    for use in (
        lambda: files.save(tmp_path, name, {"a": torch.ones(1)}, {}, {}),
        lambda: files.load(tmp_path, name),
        lambda: files.same(name, tmp_path, tmp_path),
    ):
        with pytest.raises(ValueError, match="expected a plain file name"):
            use()
    assert not list(tmp_path.iterdir())


def test_settings_that_json_cannot_hold_leave_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"mine .*not JSON serializable"):
        files.save(tmp_path, "mine", {}, {"x": torch.ones(1)}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "header",
    [
        None,
        {"a": "b"},
        {"model": "{"},
        {"model": "[]"},
        {"model": "{}"},
        {"model": '{"settings": {}}'},
    ],
)
def test_a_header_that_is_not_ours_is_refused(tmp_path, header):
    save_file({"a": torch.ones(2)}, tmp_path / "mine.safetensors", metadata=header)
    with pytest.raises(ValueError, match="damaged or was not written by this project"):
        files.load(tmp_path, "mine")


@pytest.mark.parametrize("at", [3, 20, 90, 150])
def test_a_damaged_byte_of_the_header_is_our_error(tmp_path, at):
    path = files.save(tmp_path, "mine", {"a": torch.ones(4)}, {"x": [1, 2]}, {"seed": 1})
    content = bytearray(path.read_bytes())
    content[at] = 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or was not written by this project"):
        files.load(tmp_path, "mine")


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
