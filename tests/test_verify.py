"""What equals the committed files: verdicts, their count, a copy without any result."""

import lib.pinned

import json
import re
import shutil
from pathlib import Path

import chain
import compare
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
import verify
from matplotlib.figure import Figure
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

from lib.base import files
from lib.base.files import ROOT
from lib.paper.pictures import plots

MODEL = "models/loan_flow.safetensors"
TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([0.0, torch.nan])}
SETTINGS = {"hidden": [64], "parents": {"z": [], "a": ["z"]}}


def fill(folder: Path) -> Path:
    """One model, one table and one figure, as a batch leaves them."""
    files.save(folder / "models", "loan_flow", TENSORS, SETTINGS, {"seed": 0}, "f1")
    (folder / "tables").mkdir()
    table = pd.DataFrame({"setting": ["4", "3"], "validity": [0.5, np.nan]})
    table.to_csv(folder / "tables" / "04_hard.csv", index=False)
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


def save_model(run: Path, tensors=TENSORS, settings=SETTINGS, seed=0, fingerprint="f1"):
    files.save(run / "models", "loan_flow", tensors, settings, {"seed": seed}, fingerprint)


def test_files_made_twice_are_equal(run):
    root = run.parent / "root"
    assert [str(one) for one in compare.compare(run, root, has_data=True)] == [
        f"{MODEL}: equal",
        "tables/04_hard.csv: equal",
        "figures/04_validity.pdf: equal",
        "figures/04_validity.png: equal",
    ]


@pytest.mark.parametrize(
    ("name", "place", "value", "what"),
    [
        ("a", (1, 2), 5.5, "1 of 8 values, by 0.5 at most, in a"),
        ("b", 0, -0.0, "1 of 8 values, by 0 at most, in b"),
        ("b", 1, 1.0, "1 of 8 values, by 0 at most, in b"),
    ],
)
def test_a_changed_value_is_counted(run, name, place, value, what):
    changed = TENSORS[name].clone()
    changed[place] = value
    save_model(run, TENSORS | {name: changed})
    assert verdicts(run) == {MODEL: f"DIFFERS: {what}"}


@pytest.mark.parametrize(
    ("tensors", "what"),
    [
        ({"a": TENSORS["a"]}, "lacks b, which the other has"),
        (TENSORS | {"c": torch.ones(1)}, "has c, which the other lacks"),
        (
            TENSORS | {"b": torch.zeros(3)},
            "b is (3,) torch.float32, not (2,) torch.float32",
        ),
        (
            TENSORS | {"b": TENSORS["b"].double()},
            "b is (2,) torch.float64, not (2,) torch.float32",
        ),
    ],
)
def test_other_tensors_are_named(run, tensors, what):
    save_model(run, tensors)
    assert verdicts(run) == {MODEL: f"DIFFERS: {what}"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            {"settings": SETTINGS | {"hidden": [32]}},
            "model.settings.hidden.0 is 32, not 64",
        ),
        ({"settings": SETTINGS | {"n": 3}}, "model.settings.n is 3, not nothing"),
        ({"seed": 1}, "model.provenance.seed is 1, not 0"),
        ({"fingerprint": "f2"}, 'model.fingerprint is "f2", not "f1"'),
        (
            {"settings": {"parents": SETTINGS["parents"], "hidden": [64]}},
            "its order, or its spaces",
        ),
    ],
)
def test_a_changed_header_is_named(run, change, what):
    save_model(run, **change)
    assert verdicts(run) == {MODEL: f"DIFFERS: only the header: {what}"}


def test_tensors_and_header_are_both_named(run):
    save_model(run, TENSORS | {"a": TENSORS["a"] + 1}, fingerprint="f2")
    assert verdicts(run) == {
        MODEL: "DIFFERS: 6 of 8 values, by 1 at most, in a; header: "
        'model.fingerprint is "f2", not "f1"'
    }


def made_with(run: Path, version: str) -> None:
    """Write the model again, as a torch of this version would have."""
    path = run / MODEL
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["model"])
    header["provenance"]["torch"] = version
    save_file(TENSORS, path, metadata={"model": json.dumps(header)})


def test_another_build_of_the_same_torch_is_said_and_equal(run):
    public = torch.__version__.partition("+")[0]
    made_with(run.parent / "root", f"{public}+cpu")
    made_with(run, f"{public}+cu130")
    assert verdicts(run) == {
        MODEL: f"equal, made with another build of torch ({public}+cu130 for {public}+cpu)"
    }
    made_with(run, "1.0.0+cpu")
    assert verdicts(run)[MODEL].startswith("DIFFERS: only the header: model.provenance.tor")


def test_a_damaged_model_is_said(run):
    path = run / MODEL
    path.write_bytes(path.read_bytes()[:-1])
    assert verdicts(run)[MODEL].startswith("DIFFERS: one of the files is damaged (")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("setting,validity\n4,0.25\n3,\n", "1 of 4 cells, by 0.25 at most, in validity"),
        ("setting,validity\n4,0.5\n3,none\n", "1 of 4 cells, in validity"),
        ("setting,validity\n4,0.5\n", "1 rows of 2, not 2 of 2"),
        ("setting,hap\n4,0.5\n3,\n", "columns setting, hap, not setting, validity"),
        ("setting,validity\r\n4,0.5\r\n3,\r\n", "its bytes, and no cell"),
    ],
)
def test_a_changed_table_is_counted(run, text, what):
    (run / "tables" / "04_hard.csv").write_bytes(text.encode())
    assert verdicts(run) == {"tables/04_hard.csv": f"DIFFERS: {what}"}


def test_a_changed_pixel_is_counted(run):
    path = run / "figures" / "04_validity.png"
    pixels = np.array(Image.open(path))
    pixels[3, 4, 1] ^= 1
    Image.fromarray(pixels).save(path)
    n = pixels.shape[0] * pixels.shape[1]
    said = f"DIFFERS: 1 of {n:,} pixels, by 1 of 255 at most"
    assert verdicts(run) == {"figures/04_validity.png": said}


def test_other_bytes_and_other_sizes_of_a_figure_are_said(run):
    path = run / "figures" / "04_validity.png"
    image = Image.open(path)
    image.save(path, compress_level=0)
    assert verdicts(run) == {"figures/04_validity.png": "DIFFERS: its bytes, and no pixel"}
    image.resize((7, 5)).save(path)
    width, height = image.size
    said = f"DIFFERS: 7 x 5 pixels, not {width} x {height}"
    assert verdicts(run) == {"figures/04_validity.png": said}
    with open(run / "figures" / "04_validity.pdf", "ab") as file:
        file.write(b" ")
    assert verdicts(run)["figures/04_validity.pdf"] == "DIFFERS: its bytes"


def test_missing_and_extra_files_are_named_and_only_the_missing_fail(run):
    (run / "figures" / "04_validity.pdf").unlink()
    shutil.copy(run / "tables" / "04_hard.csv", run / "tables" / "05_new.csv")
    drawn_elsewhere = run.parent / "root" / "figures" / "scaling.png"
    drawn_elsewhere.write_bytes(b"")
    assert verdicts(run) == {
        "figures/04_validity.pdf": "missing",
        "tables/05_new.csv": "not committed",
    }
    compared = compare.compare(run, run.parent / "root", has_data=True)
    assert [one.file for one in compared if one.fails] == ["figures/04_validity.pdf"]
    assert compare.count(compared).splitlines() == [
        "Equal to the committed files, to the bit: 1 of 1 models, 1 of 2 tables, "
        "1 of 2 figures (PNG and PDF)",
        "  tables/05_new.csv: not committed",
        "  figures/04_validity.pdf: missing",
    ]


def test_without_data_its_files_are_named_and_do_not_fail(run):
    root = run.parent / "root"
    shutil.copy(root / MODEL, root / "models" / "gmsc_flow.safetensors")
    (root / "tables" / "07_graphs.csv").write_text("a\n1\n")
    (run / "tables" / "07_graphs.csv").write_text("a\n2\n")  # of the stand-in
    (root / "models" / "gmsc_hare_own_ideals.csv").write_text("a\n1\n")  # of a job
    (root / "tables" / "09_gmsc_dialogues.csv").write_text("a\n1\n")
    assert set(verdicts(run, has_data=False).values()) == {compare.NO_DATA}
    compared = compare.compare(run, root, has_data=False)
    assert not [one for one in compared if one.fails]
    assert compare.count(compared).splitlines() == [
        "Equal to the committed files, to the bit: 1 of 1 models, 1 of 1 tables, "
        "2 of 2 figures (PNG and PDF)",
        "  not rebuilt (no data): models/gmsc_flow.safetensors, "
        "models/gmsc_hare_own_ideals.csv, tables/07_graphs.csv, "
        "tables/09_gmsc_dialogues.csv",
    ]
    assert len([one for one in compare.compare(run, root, has_data=True) if one.fails]) == 4


COMMITTED = [path for kind in compare.PATTERNS for path in (ROOT / kind).iterdir()]
# names of Give Me Some Credit, and of features that no other population has
TOLD = re.compile("gmsc|give me some credit|utilization|debt_ratio", re.IGNORECASE)


def test_a_file_is_of_the_data_if_its_name_or_its_content_says_so():
    """Else a batch without the data would miss it."""
    names = {path.name for path in COMMITTED}
    of_the_data = {name for name in names if chain.is_of_the_data(name)}
    assert {"gmsc_flow.safetensors", "07_graphs.csv", "11_gmsc.csv"} < of_the_data
    assert {"04_paper_vs_ours.csv", "hare.safetensors"} < names - of_the_data
    for path in COMMITTED:
        says_so = path.name.startswith("07_") or bool(TOLD.search(path.name))
        if path.suffix == ".csv":
            says_so |= bool(TOLD.search(path.read_text(encoding="utf-8")))
        assert (path.name in of_the_data) is says_so, path.name


def test_what_is_of_another_part_is_not_missing(run):
    """Notebook 04 makes the table and the figures; 02, which it needs, the model."""
    root = run.parent / "root"
    (root / "tables" / "11_fronts.csv").write_text("a\n1\n")
    (root / "models" / "hare_own_ideals.csv").write_text("a\n1\n")
    found = compare.compare(run, root, has_data=True, notebooks=["04_hard_constraints"])
    assert [one.file for one in found if one.is_equal] == [one.file for one in found]
    assert len(found) == 4
    whole = compare.compare(run, root, has_data=True)
    assert [one.file for one in whole if one.fails] == [
        "models/hare_own_ideals.csv",
        "tables/11_fronts.csv",
    ]


def test_every_committed_file_is_of_one_part_at_least():
    parts = [set(part) for part in chain.PARTS.values()]
    for folder, patterns in compare.PATTERNS.items():
        for pattern in patterns:
            for path in (ROOT / folder).glob(pattern):
                assert any(chain.is_of(part, folder, path.name) for part in parts), path


# --- from nothing


@pytest.fixture
def repository(tmp_path):
    """A repository with a file in each of what the batch reads, and results beside them."""
    root = tmp_path / "root"
    for name in verify.SOURCES:
        path = root / name / "inner" / "file" if "." not in name else root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name in ("models", "tables", "figures", "runs/paper", "lib/__pycache__"):
        (root / name).mkdir(parents=True)
        (root / name / "result").write_text("of an earlier run")
    return root


def rebuilt(copy: Path) -> Path:
    """A model that a batch leaves in the copy."""
    path = copy / "runs" / "paper" / "models" / "loan_flow.safetensors"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def test_the_copy_holds_what_is_read_and_no_result(repository, tmp_path):
    copy = verify.copy_of_sources(repository, tmp_path / "verify")
    paths = [str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()]
    assert sorted(paths) == sorted(
        f"{name}/inner/file" if "." not in name else name for name in verify.SOURCES
    )


def test_what_notebooks_and_lib_read_is_copied():
    code = [
        cell.source
        for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
    ]
    code += [path.read_text() for path in (ROOT / "lib").rglob("*.py")]
    named = re.findall(r'ROOT / "(\w+)"(?: / "(\w+)")?', "\n".join(code))
    folders = {Path(*parts) for parts in named}
    assert folders > {Path("page"), Path("benchmarks"), Path("tests/reference")}
    there = {Path(name) for name in (*verify.SOURCES, "models", "runs", "figures")}
    missing = {one for one in folders if not there & {one, *one.parents}}
    assert missing == {Path("nowhere")}  # of a docstring


def test_an_interrupted_run_goes_on_and_a_finished_one_starts_anew(repository, tmp_path):
    folder = tmp_path / "verify"
    model = rebuilt(verify.copy_of_sources(repository, folder))
    verify.copy_of_sources(repository, folder)
    assert model.exists()
    (folder / "verified.txt").write_text("all lines")
    verify.copy_of_sources(repository, folder)
    assert not model.exists()
    assert not (folder / "verified.txt").exists()


@pytest.mark.parametrize("name", ["lib", "requirements.lock"])
def test_an_edit_of_what_is_read_starts_anew(repository, tmp_path, name):
    folder = tmp_path / "verify"
    copy = verify.copy_of_sources(repository, folder)
    model = rebuilt(copy)
    path = repository / name if "." in name else repository / name / "inner" / "file"
    path.write_text("edited")
    verify.copy_of_sources(repository, folder)
    assert not model.exists()
    assert (copy / path.relative_to(repository)).read_text() == "edited"


def test_an_interrupted_copy_starts_anew(repository, tmp_path, monkeypatch):
    folder = tmp_path / "verify"
    model = rebuilt(verify.copy_of_sources(repository, folder))
    (repository / "lib" / "inner" / "file").write_text("edited")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verify.copy_of_sources(repository, folder)
    (repository / "lib" / "inner" / "file").write_text("lib")  # as it was
    verify.copy_of_sources(repository, folder)
    assert not model.exists()
