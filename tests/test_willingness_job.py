"""The job of notebook 10: what it leaves, and how it goes on after it was stopped."""

import errno
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import parameters
import pytest
import willingness as job

from lib.base import fits
from lib.beyond.evaluation import refits
from lib.beyond.evaluation.willingness import POOLS

RESULTS = ["willingness.csv", "willingness_latent.csv"]
NAMES = ["study", "pool", "shape", "setting"]
SMOKE = parameters.read_network_parameters("smoke")
FALLS = ["0.2", "0.3", "0.4", "0.6"]


def run(folder, **changes):
    """Run the job at smoke size, and return the bytes of what it leaves."""
    given = SMOKE | {"models": str(folder), "partial": partial_of(folder)} | changes
    job.willingness(given, "willingness")
    assert sorted(path.name for path in folder.iterdir()) == RESULTS
    return [(folder / name).read_bytes() for name in RESULTS]


def partial_of(folder):
    """Where the job keeps how far it is."""
    return folder.with_name(f"{folder.name}_partial")


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
    """Keep four quick settings, each at once: a line that falls by 0.2, 0.3, 0.4, 0.6."""
    monkeypatch.setattr(job.fits, "steps", partial(fits.steps, every=0.0))
    every, calls = job.Job.settings, Stopped()

    def settings(self):
        lines = [("power", "line")]
        return [one for one in every(self) if (one[0]["study"], one[0]["shape"]) in lines]

    monkeypatch.setattr(job.Job, "settings", settings)
    monkeypatch.setattr(job, "found", calls)
    return calls


@pytest.fixture
def stopped(counted, tmp_path):
    """Stop the job before its third setting; count anew, and return its folder."""
    counted.begin(stop=2)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        run(folder)
    assert counted.n == 2 and not folder.exists()
    counted.begin()
    return folder


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
    assert len(names) == len(set(names)) == 4 * 12 + 2 + 2 * 4 + 3
    assert {name[0] for name in names} == set(SMOKE["n_datasets"])


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_job_that_was_stopped_goes_on_where_it_was(tmp_path, counted, stop):
    expected = run(tmp_path / "whole")
    assert counted.n == 4
    counted.begin(stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped")
    counted.begin()
    assert run(tmp_path / "stopped") == expected
    assert counted.n == 4 - stop


def test_a_job_may_be_stopped_twice(tmp_path, counted, stopped):
    counted.begin(stop=1)
    with pytest.raises(KeyboardInterrupt):
        run(stopped)
    counted.begin()
    left = run(stopped)
    assert counted.n == 1
    assert left == run(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 5}, "seed is 0 there, 5 here"),
        (
            {"n_datasets": {"family": 2, "refit": 2, "power": 3, "size": 2}},
            "n_datasets.power is 2 there, 3 here",
        ),
    ],
)
def test_other_parameters_are_refused(counted, stopped, changes, said):
    """`jobs.run` begins anew then."""
    with pytest.raises(fits.OtherInputs, match=said):
        run(stopped, **changes)
    assert counted.n == 0


def test_another_program_is_refused(tmp_path, counted, stopped, monkeypatch):
    (tmp_path / "edited.py").write_text("A = 2\n")
    monkeypatch.setattr(job, "__file__", str(tmp_path / "edited.py"))
    monkeypatch.setattr(fits, "_code_of", fits._code_of.__wrapped__)  # as a new process
    with pytest.raises(fits.OtherInputs, match=r"its code is '\w+' there"):
        run(stopped)


def test_what_is_finished_stays_if_results_cannot_be_written(
    tmp_path, counted, stopped, monkeypatch
):
    write = os.replace

    def full(half_done, path):
        if str(path).endswith(".csv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(half_done, path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"latent.csv can't be written.*No space left"):
            run(stopped)
    assert list(stopped.iterdir()) == []
    counted.begin()
    left = run(stopped)
    assert counted.n == 0
    assert left == run(tmp_path / "whole")
