"""The job of notebook 08's appendix B: harder looks count what a search missed."""

import shutil
from dataclasses import replace

import fit
import pandas as pd
import parameters
import pytest
import torch

from lib.io import MODELS
from lib.paper import designs
from lib.search.thorough import Looks

N_PEOPLE, N_VALUES = 12, 9


@pytest.fixture(scope="module")
def looks(problem):
    x = problem.refused("test")[:N_PEOPLE]
    preferences = designs.hard_preferences(problem, N_PEOPLE, 1)
    return Looks(problem, problem.population.truth, x, preferences, seed=0)


def knows_nothing(looks: Looks) -> Looks:
    """The same people, and a search that found an action for none."""
    other = object.__new__(Looks)
    table = replace(looks.table, cost=torch.full_like(looks.table.cost, torch.inf))
    other.__dict__ |= vars(looks) | {"table": table}
    other.known = table.cheapest(looks.is_allowed)[0]
    return other


@pytest.mark.parametrize("look", ["scanned", "on_grid"])
def test_what_nobody_found_is_missed_by_those_whom_a_look_helps(looks, look):
    """By the search itself: a look helps nobody else, and most of them."""
    (row,) = getattr(knows_nothing(looks), look)(
        40 if look == "scanned" else N_VALUES
    ).values()
    group = looks.few if look == "scanned" else ~looks.few
    helped = int(looks.known[group].isfinite().sum())
    assert row["answers"] == 0 and row["none found"] == int(group.sum())
    assert helped / 2 <= row["missed"] <= helped


def test_a_scan_finds_nothing_cheaper_than_a_search(looks):
    (row,) = looks.scanned(60).values()
    assert row["answers"] == int(looks.known[looks.few].isfinite().sum()) > 0
    assert row["more than 1 % dearer"] == row["missed"] == 0


def test_what_costs_twice_as_much_is_told(looks):
    """Three of the people; all they have is dearer than what is found again."""
    dear = knows_nothing(looks)
    dear.table = replace(looks.table, cost=2 * looks.table.cost)
    effort = {"n_samples": 256, "n_starts": 8, "n_steps": 10}
    row = dear.ten_times(3, effort)["ten times, all fifteen sets"]
    assert row["more than 1 % dearer"] == row["answers"] > 0


def test_the_job_leaves_a_row_for_each_look(tmp_path):
    for name in ("loan_classifier", "loan_flow"):
        shutil.copy(MODELS / f"{name}.safetensors", tmp_path)
    given = parameters.of_fits("paper") | {
        "size": "smoke",
        "models": str(tmp_path),
        "n_searched": {"loan_how_sure": 1},
        "n_scan": {"loan_how_sure": 5},
        "effort": {"n_samples": 16, "n_starts": 1, "n_steps": 1},
    }
    fit.how_sure(given, "loan_how_sure")
    looks = pd.read_csv(tmp_path / "loan_how_sure.csv").look
    assert looks[0] == "ten times, all fifteen sets"
    assert looks.str.contains("scan, random").sum() == 1


def test_what_is_committed_is_of_the_people_that_the_parameters_name():
    """Fifteen sets a person, and nobody counted twice."""
    sizes = parameters.of_fits("paper")["n_searched"]
    for name, n in sizes.items():
        rows = pd.read_csv(MODELS / f"{name}.csv", index_col="look")
        of = rows["answers"] + rows["none found"]
        assert of["ten times, all fifteen sets"] == 15 * n
        assert (of[[look for look in of.index if "setting" in look]] == n).all()
        assert (rows.missed <= rows["none found"]).all()
