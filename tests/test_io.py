"""Files: whole or not at all, models with their settings, and what is wrong is named."""

import json
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import save_file

from lib import io
from lib.method.preferences import Profile


def test_a_model_is_saved_and_loaded(tmp_path):
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(1).double()}
    settings = {"hidden": [64], "order": {"z": 1, "a": 2}}
    path = io.save(tmp_path / "new", "mine", tensors, settings, {"seed": 3}, "abc")
    loaded, again = io.load(tmp_path / "new", "mine", "abc")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert again == settings and list(again["order"]) == ["z", "a"]  # order survives
    assert [p.name for p in path.parent.iterdir()] == ["mine.safetensors"]
    first = path.read_bytes()
    io.save(tmp_path / "new", "mine", tensors, settings, {"seed": 3}, "abc")
    assert path.read_bytes() == first  # equal models are equal files
    with pytest.raises(ValueError, match=r"another population \(made with seed 3"):
        io.load(tmp_path / "new", "mine", "abd")


def test_missing_and_damaged_models_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"found none. Restore the file, or fit it"):
        io.load(tmp_path, "mine")
    path = io.save(tmp_path, "mine", {"a": torch.ones(100)}, {}, {})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"damaged.*Restore it"):
        io.load(tmp_path, "mine")
    for header in (None, {"a": "b"}, {"model": "{"}, {"model": "[]"}, {"model": "{}"}):
        save_file({"a": torch.ones(2)}, path, metadata=header)
        with pytest.raises(ValueError, match="is no model"):
            io.load(tmp_path, "mine")
    io.save(tmp_path, "mine", {"a": torch.tensor([1.0, torch.nan])}, {}, {})
    with pytest.raises(ValueError, match="NaN or infinite values"):
        io.load(tmp_path, "mine")


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    io.write(path, "whole")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io.Path, "replace", full)
    with pytest.raises(OSError, match=r"can't be written, 5 bytes: No space left"):
        io.write(path, "other")
    assert path.read_text() == "whole"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    io.write(tmp_path / "file", "whole")
    for folder in (tmp_path / "file", tmp_path / "file" / "new"):
        with pytest.raises(OSError, match=r"a\.csv can't be written, 1 bytes"):
            io.write(folder / "a.csv", "x")
    assert (tmp_path / "file").read_text() == "whole"


@pytest.mark.parametrize(
    ("tensors", "settings", "expected"),
    [
        ({"a": torch.ones(2)}, {"hidden": 1}, True),
        ({"a": torch.tensor([1.0, 1.0 + 2**-23])}, {"hidden": 1}, False),  # one bit
        ({"a": torch.ones(2)}, {"hidden": 2}, False),
        ({"a": torch.ones(2), "b": torch.ones(1)}, {"hidden": 1}, False),
    ],
)
def test_same_means_to_the_bit(tmp_path, tensors, settings, expected):
    one, other = tmp_path / "one", tmp_path / "other"
    io.save(one, "mine", {"a": torch.ones(2)}, {"hidden": 1}, {"seed": 1})
    io.save(other, "mine", tensors, settings, {"seed": 2})
    assert io.same("mine", one, other) is expected
    assert io.same("mine", one, tmp_path / "nowhere") is False


def test_several_models_share_a_file():
    models = {"x": {"a": 1, "b/c": 2}, "y": {"a": 3}}
    assert io.unflatten(io.flatten(models)) == models


def test_dataclasses_come_back_from_json():
    profile = Profile(gamma=None, w_max=1.0)
    entries = json.loads(json.dumps(asdict(profile)))
    assert io.from_dict(Profile, entries) == profile
    for wrong, message in (
        ({**entries, "depth": 1}, "Unknown setting of Profile 'depth'"),
        ({"gamma": 1, "curve": "slope"}, "Profile lacks w_max"),
        ([1], "Expected gamma, w_max, curve"),
        ({**entries, "gamma": -1}, "gamma"),
    ):
        with pytest.raises(ValueError, match=message):
            io.from_dict(Profile, wrong)


def test_yaml_by_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("rates: {white: 0.9, non-white: 0.05}\n# a comment\nby: race\n")
    rates = {"white": 0.9, "non-white": 0.05}
    assert io.load_yaml(path) == {"rates": rates, "by": "race"}
    for text, message in (
        ("n_actionable: [", "mine.yaml: This is not YAML"),
        ("", "mine.yaml: It should hold lines `name: value`, got None"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            io.load_yaml(path)
    with pytest.raises(ValueError, match=r"found none. Those in its folder: mine"):
        io.load_yaml(tmp_path / "other.yaml")


def test_csv_with_its_columns(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,income\n30,2000\n")
    assert io.read_csv(path, ["age"]).income.tolist() == [2000]
    with pytest.raises(ValueError, match=r"people.csv: .* 'savings': expected .* age"):
        io.read_csv(path, ["savings"])
    with pytest.raises(ValueError, match=r"nowhere.csv: It can't be read"):
        io.read_csv(tmp_path / "nowhere.csv")


def test_a_folder_stays_in_the_repository(tmp_path):
    assert io.inside("models") == io.MODELS and io.inside(tmp_path) == tmp_path
    with pytest.raises(ValueError, match="leads out of the repository"):
        io.inside("../models")
