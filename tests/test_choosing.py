"""The rule of what we would choose, and a search that cannot see published numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.base import rooms
from lib.base.files import ROOT
from lib.method import metrics
from lib.method.icarma import Settings
from lib.method.preferences import Profile
from lib.method.samplers import RankingSampler
from lib.paper import choosing
from lib.paper.readings import PRINTED
from lib.search.continuous import Search

LINEAR = Profile(1.0, 4.0, 0.1, 0.9)
AS_PRINTED = Settings(LINEAR, hinge=None, likelihood=True, hidden=8, **PRINTED["ranking"])


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
    for own in drawn[1:]:
        assert own.profile.w_max == 4.0 and own.profile.p_min <= own.profile.p_max
        assert own.n_epochs == 450 and own.batch_size == 128
    for choice in ("likelihood", "on_probability"):
        share = np.mean([getattr(own, choice) for own in drawn[1:]])
        assert 0.4 < share < 0.6
    assert 0.4 < np.mean([own.hinge is None for own in drawn[1:]]) < 0.6
    constant = replace(AS_PRINTED, profile=Profile(p_min=0.9, p_max=0.9))
    assert all(own.profile.gamma is None for own in choosing.candidates(constant))


def test_it_reads_no_published_table():
    read = rooms.imported_by("lib/paper/choosing.py", root=ROOT)
    assert "lib/paper/claims.py" not in read and "lib/paper/calibration.py" not in read


@pytest.fixture(scope="module")
def judges(problem):
    n_people = min(40, len(problem.refused("validation")))
    sampler = RankingSampler(problem.population.actionable)
    preferences = sampler.draw(range(n_people), np.random.default_rng(0))
    effort = {"n_scouts": 16, "n_starts": 1, "n_steps": 3}
    return choosing.Judges.of(problem, preferences, LINEAR, **effort)


def test_judges_by_hand(problem, judges):
    """What the search itself says: helped are all it helps, and avoidable is nobody."""
    effort = {"n_scouts": 16, "n_starts": 1, "n_steps": 3}
    solver = Search(problem, problem.flow, LINEAR, **effort)
    answer = solver.recommend(judges.x, judges.preferences)
    said = judges.measure(problem, answer, LINEAR)
    helped = judges.cheapest.isfinite()
    assert said["joint"] == pytest.approx(helped.float().mean().item())
    assert said["efficiency"] == pytest.approx(said["joint"], rel=1e-4)
    assert said["cost_ratio"] == pytest.approx(1, rel=1e-4)
    assert not (judges.can_be_spared & ~helped).any()
    acts = answer.is_acted[:, problem.population.actionable_index]
    hard = metrics.hard_action(judges.preferences, acts)
    assert said["avoidable"] == pytest.approx(
        hard[judges.can_be_spared].float().mean().item()
    )
    only_one = judges.preferences.is_actionable.sum(-1) == 1
    assert only_one.any() and not judges.can_be_spared[only_one].any()


def test_a_small_search(problem, judges, monkeypatch):
    monkeypatch.setattr(choosing, "N_CANDIDATES", 4)
    monkeypatch.setattr(choosing, "HOW", choosing.HOW | {"hidden": 8})
    short = replace(AS_PRINTED, n_epochs=4)
    sampler = RankingSampler(problem.population.actionable)
    rounds = ((0.5, 1, 2), (1.0, 2, 1))
    chosen, tried = choosing.search(problem, sampler, judges, short, rounds=rounds)
    assert tried[tried["round"] == 0].candidate.tolist() == [0, 1, 2, 3]
    last = tried[tried["round"] == 1]
    assert 0 in last.candidate.tolist() and last.chosen.sum() == 1
    assert chosen == choosing.candidates(short)[last[last.chosen].candidate.iloc[0]]
    again, _ = choosing.search(problem, sampler, judges, short, rounds=rounds)
    assert again == chosen
    assert torch.isfinite(torch.tensor(last.joint.tolist())).all()
