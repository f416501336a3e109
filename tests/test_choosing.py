"""The rule of what we would choose, and a search that cannot see published numbers."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.io import ROOT
from lib.method import metrics
from lib.method.icarma import Settings
from lib.method.samplers import RankingSampler
from lib.paper import choosing
from lib.paper.readings import PRINTED
from lib.search.continuous import Search

AS_PRINTED = Settings(p_max=0.9, p_min=0.1, width=8, **PRINTED["ranking"])


def table(**columns):
    return pd.DataFrame(columns).assign(n_people=400, n_spared=400)


def test_the_rule_by_hand():
    """Two standard errors: 0.05 of 0.5 among 400 people; 0.03 of 0.1."""
    measured = table(
        joint=[0.50, 0.46, 0.46, 0.44, 0.50],
        avoidable=[0.90, 0.10, 0.12, 0.00, 0.20],
        efficiency=[0.9, 0.3, 0.4, 0.9, 0.8],
    )
    assert choosing.ranked(measured).index.tolist() == [2, 1, 4, 0, 3]


def test_the_rule_knows_no_order_and_is_not_swayed_by_who_helps_nobody():
    rng = np.random.default_rng(0)
    useless = table(joint=[0.0], avoidable=[0.0], efficiency=[1.0]).rename({0: 99})
    for _ in range(50):
        rows = {name: rng.random(8) for name in ("joint", "avoidable", "efficiency")}
        measured = table(**rows)
        best = choosing.ranked(measured).index[0]
        mixed = pd.concat([useless, measured]).sample(frac=1, random_state=1)
        assert choosing.ranked(mixed).index[0] == best


def test_the_space_contains_what_is_printed():
    for printed in PRINTED.values():
        for name in ("cost", "mask", "plausibility", "margin", "tau"):
            low, high = choosing.SPACE[name]
            assert low <= printed[name] <= high, name
    drawn = choosing.candidates(AS_PRINTED)
    assert drawn[0] == AS_PRINTED and len(set(map(str, drawn))) == choosing.N_CANDIDATES
    for name, (_, second) in choosing.CHOICES.items():
        share = np.mean([getattr(settings, name) == second for settings in drawn[1:]])
        assert 0.4 < share < 0.6
    constant = replace(AS_PRINTED, p_min=0.9)
    for settings in choosing.candidates(constant):
        assert settings.p_min == settings.p_max and settings.prior_form == "difficulty"


def test_it_reads_no_published_table():
    code = "import sys, lib.paper.choosing; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {"lib.paper.tables", "lib.paper.calibration"} & set(run.stdout.split())


EFFORT = {"n_samples": 16, "n_starts": 1, "n_steps": 3}


@pytest.fixture(scope="module")
def validation(problem):
    n_people = min(40, len(problem.refused("validation")))
    sampler = RankingSampler(problem.population.actionable)
    preferences = sampler.draw(range(n_people), np.random.default_rng(0))
    return choosing.Validation.of(problem, preferences, **EFFORT)


def test_measures_of_the_search_itself(problem, validation):
    """It helps all whom it helps, and asks nobody for what is avoidable."""
    solver = Search(problem, problem.flow, **EFFORT)
    recommendation = solver.recommend(validation.x, validation.preferences)
    measured = validation.measure(recommendation)
    helped = validation.cheapest.isfinite()
    assert measured["joint"] == pytest.approx(helped.float().mean().item())
    assert measured["efficiency"] == pytest.approx(measured["joint"], rel=1e-4)
    assert measured["cost_ratio"] == pytest.approx(1, rel=1e-4)
    assert not (validation.can_be_spared & ~helped).any()
    acts = recommendation.is_acted[:, problem.population.actionable_index]
    hard = metrics.hard_action(validation.preferences, acts)
    assert measured["avoidable"] == pytest.approx(
        hard[validation.can_be_spared].float().mean().item()
    )


def test_a_small_search(problem, validation, monkeypatch):
    monkeypatch.setattr(choosing, "N_CANDIDATES", 4)
    monkeypatch.setattr(choosing, "ROUNDS", ((0.5, 1, 2), (1.0, 2, 1)))
    monkeypatch.setattr(choosing, "HOW", choosing.HOW | {"width": 8})
    short = replace(AS_PRINTED, n_epochs=4)
    sampler = RankingSampler(problem.population.actionable)
    chosen, tried = choosing.search(validation, sampler, short)
    last = tried[tried["round"] == 1]
    assert 0 in last.candidate.tolist() and last.chosen.sum() == 1
    assert chosen == choosing.candidates(short)[last[last.chosen].candidate.iloc[0]]
    again, _ = choosing.search(validation, sampler, short)
    assert again == chosen
