"""What of a batch equals the committed files: verdicts, and their count."""

import lib.reproducible

from pathlib import Path

import chain
import compare
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from lib import io
from lib.io import ROOT
from lib.paper.pictures import plots

MODEL = "models/loan_flow.safetensors"
TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(2)}
SETTINGS = {"hidden": [64]}


def fill(folder: Path) -> Path:
    """One model, one table and one figure, as a batch leaves them."""
    io.save(folder / "models", "loan_flow", TENSORS, SETTINGS, {"seed": 0})
    table = pd.DataFrame({"setting": ["4", "3"], "validity": [0.5, np.nan]})
    io.write(folder / "tables" / "04_hard.csv", table.to_csv(index=False))
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, 1])
    plots.save(figure, folder / "figures", "04_validity")
    return folder


@pytest.fixture
def run(tmp_path):
    """A batch, beside a repository with the same files."""
    fill(tmp_path / "root")
    return fill(tmp_path / "run")


def verdicts(run: Path, has_data: bool = True) -> dict[str, str]:
    """The verdict on each file that is not equal."""
    compared = compare.compare(run, run.parent / "root", has_data)
    return {one.file: one.verdict for one in compared if one.verdict != "equal"}


def test_files_made_twice_are_equal(run):
    assert len(compare.compare(run, run.parent / "root", has_data=True)) == 4
    assert verdicts(run) == {}


@pytest.mark.parametrize(
    ("tensors", "settings", "what"),
    [
        (TENSORS | {"b": torch.tensor([0.0, 0.5])}, {}, "1 of 2 tensors, by 0.5 at most"),
        ({"a": TENSORS["a"]}, {}, "names or shapes of tensors: b"),
        (TENSORS | {"b": torch.zeros(3)}, {}, "names or shapes of tensors: b"),
        (TENSORS, {"hidden": [32]}, "only the header"),
    ],
)
def test_what_differs_in_a_model_is_named(run, tensors, settings, what):
    io.save(run / "models", "loan_flow", tensors, SETTINGS | settings, {"seed": 0})
    assert verdicts(run) == {MODEL: f"DIFFERS: {what}"}


def test_a_damaged_model_is_named(run):
    (run / MODEL).write_bytes(b"{}")
    assert verdicts(run)[MODEL].startswith("DIFFERS: one of the files is damaged")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("setting,validity\n4,0.75\n3,\n", "1 of 4 cells, by 0.25 at most, in validity"),
        ("setting,validity\n4,0.5\n2,x\n", "2 of 4 cells, by 1 at most, in setting, val"),
        ("setting,validity\n4,0.5\n", "1 rows of 2, not 2 of 2"),
        ("setting,cost\n4,0.5\n3,\n", "columns setting, cost, not setting, validity"),
    ],
)
def test_what_differs_in_a_table_is_counted(run, text, what):
    (run / "tables" / "04_hard.csv").write_text(text)
    assert verdicts(run)["tables/04_hard.csv"].startswith(f"DIFFERS: {what}")


def test_a_changed_pixel_is_counted(run):
    path = run / "figures" / "04_validity.png"
    pixels = np.asarray(Image.open(path)).copy()
    pixels[0, 0, 0] -= 7
    Image.fromarray(pixels).save(path)
    n_pixels = f"{pixels.shape[0] * pixels.shape[1]:,}"
    verdict = f"DIFFERS: 1 of {n_pixels} pixels, by 7 of 255 at most"
    assert verdicts(run) == {"figures/04_validity.png": verdict}


def test_missing_and_extra_files_are_named_and_only_the_missing_fail(run):
    (run / MODEL).unlink()
    io.write(run / "tables" / "05_soft.csv", "")
    compared = compare.compare(run, run.parent / "root", has_data=True)
    assert [one.file for one in compared if one.fails] == [MODEL]
    assert verdicts(run) == {MODEL: "missing", "tables/05_soft.csv": "not committed"}
    assert "0 of 1 models, 1 of 2 tables, 2 of 2 figures" in compare.count(compared)


def test_without_data_its_files_are_named_and_do_not_fail(run):
    io.write(run.parent / "root" / "tables" / "11_gmsc.csv", "a\n1\n")
    compared = compare.compare(run, run.parent / "root", has_data=False)
    assert not any(one.fails for one in compared)
    assert "not rebuilt (no data): tables/11_gmsc.csv" in compare.count(compared)


def test_every_committed_file_is_of_one_part_at_least():
    for folder, patterns in compare.PATTERNS.items():
        names = {
            path.name for pattern in patterns for path in (ROOT / folder).glob(pattern)
        }
        for name in names:
            assert any(chain.is_of(part, folder, name) for part in chain.PARTS.values())
