"""The tables: who is compared with whom, and how a seed is chosen."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib import icarma, studies
from lib.preferences import RankingSampler


def validation(joint: dict[int, float], valid: dict[int, float], n_people: int = 400) -> pd.DataFrame:
    """Rows in which the given shares of n_people are valid and plausible, and valid, for each seed."""
    rows = []
    for seed in joint:
        good = np.arange(n_people) < joint[seed] * n_people
        fine = np.arange(n_people) < valid[seed] * n_people
        rows.append(pd.DataFrame({"seed": seed, "setting": "random", "person": np.arange(n_people), "joint": good, "valid": fine}))
    return pd.concat(rows)


def test_best_seed_takes_the_most_valid_of_the_tied():
    # one standard error at 0.60 of 400 people is 0.0245: seed 2 is tied with the best, seed 3 is not
    rows = validation({1: 0.60, 2: 0.58, 3: 0.56}, {1: 0.90, 2: 0.95, 3: 1.0})
    assert studies.best_seed(rows) == 2


def test_settings_of_table_one_are_nested(problem):
    wishes = studies.hard_preferences(problem, 300, seed=0)
    assert list(wishes) == ["all (4)", "3", "2", "1", "random"]
    for more, fewer in (("all (4)", "3"), ("3", "2"), ("2", "1")):
        assert not (wishes[fewer].is_actionable & ~wishes[more].is_actionable).any()
    shared = wishes["2"].is_actionable
    assert torch.equal(wishes["2"].scores[shared], wishes["all (4)"].scores[shared])


@pytest.fixture(scope="module")
def everyone(problem):
    sampler = RankingSampler(problem.population.actionable)
    quick = icarma.Settings(n_epochs=2, batch_size=64, hidden=8)
    stack, _ = icarma.fit(problem, [sampler] * 2, [quick] * 2, [1000, 2000])
    x = problem.rejected("test")[:25]
    wishes = studies.hard_preferences(problem, len(x), seed=0)
    return pd.concat([studies.search(problem, x, wishes, n_values=4), studies.recommend(problem, stack, x, wishes)])


def test_paper_and_ours_stand_side_by_side(everyone):
    table = studies.beside_paper(everyone, chosen=2000)
    assert len(table) == 2 * 5 * 5
    row = table[(table.setting == "2") & (table.method == "iCARMA") & (table.metric == "validity")].squeeze()
    own = everyone[(everyone.setting == "2") & (everyone.method == "iCARMA")].groupby("seed").valid.mean()
    assert row.paper == 0.991 and row.ours == own[2000] and row.difference == pytest.approx(own[2000] - 0.991)
    assert (row.seed_low, row.seed_high) == (own.min(), own.max())
    assert row.within == (own[2000] >= 0.961)
    cost = table[table.metric == "cost_mean"]
    assert cost.paper.isna().all() and cost.within.isna().all()


def test_a_nested_constraint_never_helps(everyone):
    """Whoever has recourse with fewer features has it with more: on one grid this holds person by person."""
    found = everyone[everyone.method == "oracle"].pivot(index="person", columns="setting", values="has_recourse").astype(bool)
    for more, fewer in (("all (4)", "3"), ("3", "2"), ("2", "1")):
        assert not (found[fewer] & ~found[more]).any()
