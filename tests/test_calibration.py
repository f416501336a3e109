"""What is lost is chosen by the declared cells, and by code that can see no others."""

import sys
from pathlib import Path

import dask
import pandas as pd
import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))
import calibrate

from lib import io
from lib.io import PARAMS, PUBLISHED
from lib.paper import calibration, readings, tables

RECORD = "calibration_trials.csv", "calibrated.yaml"
NETWORKS = calibration.networks
OPENED: list[str] = []
IS_WATCHED = [False]


def watch(event, args):
    """Note what is opened; a hook can't be taken away again."""
    if IS_WATCHED[0] and event == "open":
        OPENED.append(str(args[0]))


sys.addaudithook(watch)


@pytest.fixture(scope="module")
def given():
    return io.load_yaml(PARAMS / "calibration.yaml")


@pytest.fixture(scope="module")
def small(given):
    """A few of the candidates, and hardly any fitting."""
    banks = {
        "adam 1e-3": {"learning_rate": 0.01},
        "sgd, 375 epochs": {"learning_rate": 0.1},
    }
    banks = {
        name: given["banks"][name] | {"n_epochs": 30} | bank for name, bank in banks.items()
    }
    few = {name: values[:2] for name, values in given.items() if isinstance(values, list)}
    alone = ("bank_seeds", "seeds", "more_seeds", "priors", "weight_decays", "gammas")
    few |= {name: given[name][:1] for name in (*alone, "constant_sees")}
    return given | few | {"banks": banks, "grids": {"even": None, "reach 0.42": 0.42}}


def test_all_stages_and_no_file_with_published_numbers(
    small, problem, tmp_path, monkeypatch
):
    for elicitation in ("ranking", "score"):
        shorter = {**readings.PRINTED[elicitation], "n_epochs": 1}
        monkeypatch.setitem(readings.PRINTED, elicitation, shorter)
    IS_WATCHED[0] = True
    with dask.config.set(scheduler="synchronous"):
        calibrate.run(problem.population, problem.flow, small, tmp_path)
    IS_WATCHED[0] = False
    assert any(str(tmp_path) in path for path in OPENED)  # the hook sees what is opened
    assert not [path for path in OPENED if PUBLISHED.name in Path(path).parts]
    chosen = yaml.safe_load((tmp_path / "calibrated.yaml").read_text())
    assert (
        chosen["classifier"]["optimiser"] == "adam"
    )  # as printed, however near others are
    trials = pd.read_csv(tmp_path / RECORD[0])
    of_banks = trials[trials.stage == "banks"]
    assert len(of_banks) == 2 * 2 and of_banks.score.notna().all()
    # started again, nothing is run that is there; and what is missing is
    before = [(tmp_path / name).read_text() for name in RECORD]
    is_last = trials.stage.isin(["more seeds", "scores", "another optimiser"])
    trials[~is_last].to_csv(tmp_path / RECORD[0], index=False)
    asked = []

    def networks(problems, readings, *how):
        asked.append(len(readings))
        return NETWORKS(problems, readings, *how)

    monkeypatch.setattr(calibration, "networks", networks)
    monkeypatch.delattr(calibration, "banks")
    monkeypatch.delattr(calibration, "shapes")
    with dask.config.set(scheduler="synchronous"):
        calibrate.run(problem.population, problem.flow, small, tmp_path)
    assert [(tmp_path / name).read_text() for name in RECORD] == before
    assert asked == [small["n_best"], 1]  # readings with more seeds, and the departure


def test_the_declared_cells_are_the_papers(given):
    """Each is read off the published tables again, here and nowhere in the program."""
    one, two, three, six = (tables.published(number) for number in (1, 2, 3, 6))

    def cell(rows, metric, **where):
        for column, value in where.items():
            rows = rows[rows[column] == value]
        assert len(rows) == 1
        return float(rows[metric].iloc[0])

    declared = [
        (stage, *cell) for stage, cells in given["cells"].items() for cell in cells.items()
    ]
    for stage, name, value in declared:
        metric, setting, *demand = name.split(", ")
        method = "iCARMA" if stage in ("networks", "scores") else "oracle"
        table = {"bank": six if demand else one, "shape": two, "scores": three}.get(stage)
        if stage == "networks":
            table = one if setting == "random" else two
        if demand:
            setting = f"uniform random, {setting}, No"
        elif stage != "bank" and setting != "random":
            setting = f"soft, {'linear' if method == 'iCARMA' else setting}"
        assert value == cell(table, metric, setting=setting, method=method), name


def test_the_score_by_hand():
    ours, paper = {"a": 0.5, "b": 0.2, "other": 9.0}, {"a": 0.6, "b": 0.2}
    by_hand = 0.01 / (0.6 * 0.4 / 100 + 0.05**2)
    assert calibration.score(ours, paper, 100, 0.05) == pytest.approx(by_hand)
