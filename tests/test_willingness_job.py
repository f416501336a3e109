"""The job of notebook 10: what it leaves."""

from dataclasses import replace

import fit
import numpy as np
import pandas as pd
import parameters
import pytest

from lib.beyond.evaluation import refits, simulations
from lib.beyond.evaluation.willingness import POOLS

RESULTS = ["willingness.csv", "willingness_latent.csv"]
NAMES = ["study", "pool", "shape", "setting"]
SMOKE = parameters.of_fits("smoke")


def run(folder):
    """Run the job at smoke size, and return the bytes of what it leaves."""
    fit.willingness(SMOKE | {"models": str(folder)}, "willingness")
    assert sorted(path.name for path in folder.iterdir()) == RESULTS
    return [(folder / name).read_bytes() for name in RESULTS]


def read(folder):
    return [pd.read_csv(folder / name, dtype={"setting": str}) for name in RESULTS]


@pytest.fixture
def quick(monkeypatch):
    """Keep four quick settings: a line that falls by 0.2, 0.3, 0.4, 0.6."""
    every = simulations.Studies.settings

    def settings(self):
        lines = [("power", "line")]
        return [one for one in every(self) if (one[0]["study"], one[0]["shape"]) in lines]

    monkeypatch.setattr(simulations.Studies, "settings", settings)


def test_the_job_leaves_both_results(tmp_path, monkeypatch):
    """All studies, with one of three pools and two of ten shapes."""
    monkeypatch.setattr(simulations, "POOLS", {"middle": POOLS["middle"]})
    monkeypatch.setattr(simulations, "SHAPES", ("1/x", "line"))
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


def test_a_row_is_what_refits_give(tmp_path, quick):
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
    row = latents[latents.setting == "0.6"].squeeze().to_dict()
    named = {"study": "power", "pool": "middle", "setting": "0.6", "shape": "line"}
    assert {name: row.pop(name) for name in named} == named
    expected = {name: value for name, value in vars(latent).items() if name != "shape"}
    assert row == pytest.approx(expected, rel=1e-5)
    drawn = refits.samples(pool, n, seed=seed + 1)
    again = refits.refits(latent, drawn, seed=seed + 2, is_rounded=False)
    table = rows[rows.setting == "0.6"].set_index("quantity")
    for column, by_hand in refits.summary(again).items():
        assert table[column].to_dict() == pytest.approx(by_hand.to_dict(), rel=1e-5)


def test_every_setting_is_there():
    names = [
        tuple(names.values())
        for names, _ in simulations.Studies(SMOKE["n_datasets"], 0).settings()
    ]
    assert len(names) == len(set(names)) == 4 * 12 + 2 + 2 * 4 + 3
    assert {name[0] for name in names} == set(SMOKE["n_datasets"])
