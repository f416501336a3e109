"""Models on disk: whole or not at all, and a remedy when they are missing."""

import pytest
import torch

from lib import artefacts, published


def test_round_trip(tmp_path):
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(1, dtype=torch.float64)}
    artefacts.save(tmp_path / "new", "loan_flow", tensors, {"hidden": [64], "order": {"z": 1, "a": 2}})
    loaded, settings = artefacts.load(tmp_path / "new", "loan_flow")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert settings == {"hidden": [64], "order": {"z": 1, "a": 2}}
    assert list(settings["order"]) == ["z", "a"]  # causal order survives
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["loan_flow.safetensors"]


def test_missing_and_corrupt_files_name_the_remedy(tmp_path):
    with pytest.raises(ValueError, match="found none. Run notebooks/02_causal_flow.ipynb.*make reproduce"):
        artefacts.load(tmp_path, "loan_flow")
    path = artefacts.save(tmp_path, "loan_flow", {"a": torch.ones(100)}, {})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="is damaged.*02_causal_flow"):
        artefacts.load(tmp_path, "loan_flow")
    path.write_text("not a model")
    with pytest.raises(ValueError, match="is damaged"):
        artefacts.load(tmp_path, "loan_flow")
    with pytest.raises(ValueError, match="Unknown model"):
        artefacts.load(tmp_path, "loan_flwo")


def test_published_tables():
    table = published.table(1)
    assert len(table) == 10 and not {"cost_mean", "note", "dataset"} & set(table)
    assert table[(table.n_individually_actionable == "2") & (table.method == "oracle")].validity.item() == 0.539
    assert len(published.table(1, "GMSC")) == 2
    with pytest.raises(ValueError, match="Unknown table of the paper 4"):
        published.table(4)
