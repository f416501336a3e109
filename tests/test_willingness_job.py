"""The job of notebook 10: what it leaves, and how it goes on after it was stopped."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import parameters
import pytest
import willingness as job

from lib.studies import refits
from lib.studies.willingness import POOLS

RESULTS = ["willingness.csv", "willingness_latent.csv"]
NAMES = ["study", "pool", "shape", "setting"]
SMOKE = parameters.read_network_parameters("smoke")
FALLS = ["0.2", "0.3", "0.4", "0.6"]


def run(folder, **changes):
    """Run the job at smoke size, and return the bytes of what it leaves."""
    job.willingness(SMOKE | {"models": str(folder)} | changes, "willingness")
    assert sorted(path.name for path in folder.iterdir()) == RESULTS
    return [(folder / name).read_bytes() for name in RESULTS]


def read(folder):
    return [pd.read_csv(folder / name, dtype={"setting": str}) for name in RESULTS]


class Stopped:
    """Count settings that are worked out, and stop before one of them."""

    def __init__(self):
        self.n, self.stop, self.work = 0, None, job.found

    def __call__(self, *given):
        if self.n == self.stop:
            raise KeyboardInterrupt
        self.n += 1
        return self.work(*given)

    def begin(self, stop=None):
        self.n, self.stop = 0, stop


@pytest.fixture
def counted(monkeypatch):
    """Keep four quick settings: a line that falls by 0.2, 0.3, 0.4 and 0.6."""
    every, calls = job.Job.settings, Stopped()

    def settings(self):
        lines = [("power", "line")]
        return [one for one in every(self) if (one[0]["study"], one[0]["shape"]) in lines]

    monkeypatch.setattr(job.Job, "settings", settings)
    monkeypatch.setattr(job, "found", calls)
    return calls


@pytest.fixture
def kept(counted, tmp_path):
    """Stop the job before its third setting; count anew, and return what it keeps."""
    counted.begin(stop=2)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        run(folder)
    assert counted.n == 2
    counted.begin()
    (path,) = folder.iterdir()
    assert path.name == "willingness.partial"
    return path


def test_the_job_leaves_both_results(tmp_path, monkeypatch):
    """All studies, with one of three pools and two of ten shapes."""
    monkeypatch.setattr(job, "POOLS", {"middle": POOLS["middle"]})
    monkeypatch.setattr(job, "SHAPES", ("1/x", "line"))
    folder = tmp_path / "not" / "there"
    run(folder)
    rows, latents = read(folder)
    assert latents.study.value_counts().to_dict() == {
        "family": 2,
        "refit": 2,
        "power": 8,
        "size": 3,
    }
    assert not latents[NAMES].duplicated().any()
    assert latents.drop(columns="setting").notna().all(axis=None)
    assert not rows[[*NAMES, "quantity"]].duplicated().any()
    assert len(rows[NAMES].drop_duplicates()) == 15
    sizes = rows.groupby("study").datasets.unique()
    assert {study: list(n) for study, n in sizes.items()} == {
        study: [n] for study, n in SMOKE["n_datasets"].items()
    }
    assert rows["mean"].notna().all()
    # people's terms are tested where they are compared with the print, and there alone
    tested = rows[rows.quantity == "F_slopes"].study
    assert tested.tolist() == ["refit", "refit"]
    alike = set(rows[rows.setting == "all people alike"].quantity)
    assert "edf_smooth" in alike and not alike & {"edf_slopes", "edf_intercepts"}


def test_a_row_is_what_refits_give(tmp_path, counted):
    """One setting by hand: a line that falls by 0.6, and what is seen of it."""
    run(tmp_path)
    rows, latents = read(tmp_path)
    pool, seed = POOLS["middle"], SMOKE["seed"]
    n = SMOKE["n_datasets"]["power"]
    tried = refits.samples(pool, n, seed=seed)
    latents_tried = [refits.read_backwards(refits.printed(1), one)[0] for one in tried]
    latent = replace(
        latents_tried[0],
        shape="line",
        amplitude=0.6,
        between=np.mean([one.between for one in latents_tried]),
        slope=np.mean([one.slope for one in latents_tried]),
    )
    own = latents[latents.setting == "0.6"].squeeze().to_dict()
    named = {"study": "power", "pool": "middle", "setting": "0.6", "shape": "line"}
    assert {name: own.pop(name) for name in named} == named
    expected = {name: value for name, value in vars(latent).items() if name != "shape"}
    assert own == pytest.approx(expected, rel=1e-5)
    drawn = refits.samples(pool, n, seed=seed + 1)
    again = refits.refits(latent, drawn, seed=seed + 2, is_rounded=False)
    found = rows[rows.setting == "0.6"].set_index("quantity")
    for column, by_hand in refits.summary(again).items():
        assert found[column].to_dict() == pytest.approx(by_hand.to_dict(), rel=1e-5)


def test_every_setting_is_there():
    names = [
        tuple(names.values()) for names, _ in job.Job(SMOKE["n_datasets"], 0).settings()
    ]
    assert len(names) == len(set(names)) == 2 * 10 + 2 + 2 * 4 + 3
    assert {name[0] for name in names} == set(SMOKE["n_datasets"])


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_job_that_was_stopped_goes_on_where_it_was(tmp_path, counted, stop):
    expected = run(tmp_path / "whole")
    assert counted.n == 4
    counted.begin(stop)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        run(folder)
    lines = (folder / "willingness.partial").read_text().splitlines()
    assert len(lines) == 1 + stop
    counted.begin()
    assert run(folder) == expected
    assert counted.n == 4 - stop


def test_a_job_may_be_stopped_twice(tmp_path, counted, kept):
    counted.begin(stop=1)
    with pytest.raises(KeyboardInterrupt):
        run(kept.parent)
    fingerprint, *lines = kept.read_text().splitlines()
    assert len(fingerprint) == 64
    done = [json.loads(line) for line in lines]
    assert [one["names"]["setting"] for one in done] == FALLS[:3]
    assert [one["latent"]["amplitude"] for one in done] == [0.2, 0.3, 0.4]
    counted.begin()
    left = run(kept.parent)
    assert counted.n == 1
    assert left == run(tmp_path / "whole")


@pytest.mark.parametrize(
    "changes",
    [{"seed": 5}, {"n_datasets": {"family": 2, "refit": 2, "power": 3, "size": 2}}],
)
def test_other_parameters_begin_anew(tmp_path, counted, kept, changes):
    left = run(kept.parent, **changes)
    assert counted.n == 4
    assert left == run(tmp_path / "whole", **changes)
    assert left != run(tmp_path / "other")


def test_other_code_begins_anew(tmp_path, counted, kept, monkeypatch):
    rooms = job.imported_by("workflow/willingness.py")
    assert {"lib/studies/refits.py", "lib/studies/gamm.py"} < set(rooms)
    edited = tmp_path / "edited.py"
    edited.write_text("A = 2\n")
    monkeypatch.setattr(job, "imported_by", lambda program: [*rooms, str(edited)])
    run(kept.parent)
    assert counted.n == 4


@pytest.mark.parametrize(
    ("cut", "n_left"), [(0, 2), (1, 3), (40, 3)], ids=["whole", "its end", "more of it"]
)
def test_a_last_line_that_was_cut_off_is_left_out(tmp_path, counted, kept, cut, n_left):
    text = kept.read_text()
    assert text.endswith("}\n")
    kept.write_text(text[: len(text) - cut])
    left = run(kept.parent)
    assert counted.n == n_left
    assert left == run(tmp_path / "whole")


def test_a_first_line_that_was_cut_off_begins_anew(counted, kept):
    kept.write_text(kept.read_text()[:20])
    run(kept.parent)
    assert counted.n == 4


def test_what_is_finished_stays_if_results_cannot_be_written(
    tmp_path, counted, kept, monkeypatch
):
    def full(*given, **named):
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_csv", full)
        with pytest.raises(OSError, match="No space left"):
            run(kept.parent)
    counted.begin()
    left = run(kept.parent)
    assert counted.n == 0
    assert left == run(tmp_path / "whole")
