"""The tables: who is compared with whom, and how a seed is chosen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.preferences.samplers import RankingSampler
from lib.preferences.scores import GAMMA, Profile
from lib.solvers import icarma
from lib.studies import claims, stacks, tables


def validation(
    joint: dict[int, float], valid: dict[int, float], n_people: int = 400
) -> pd.DataFrame:
    """Rows in which the given shares of n_people are valid and plausible, and valid, for each seed."""
    rows = []
    for seed in joint:
        good = np.arange(n_people) < joint[seed] * n_people
        fine = np.arange(n_people) < valid[seed] * n_people
        rows.append(
            pd.DataFrame(
                {
                    "seed": seed,
                    "setting": "random",
                    "person": np.arange(n_people),
                    "joint": good,
                    "valid": fine,
                }
            )
        )
    return pd.concat(rows)


def test_best_seed_takes_the_most_valid_of_the_tied():
    # one standard error at 0.60 of 400 people is 0.0245: seed 2 is tied with the best, seed 3 is not
    rows = validation({1: 0.60, 2: 0.58, 3: 0.56}, {1: 0.90, 2: 0.95, 3: 1.0})
    assert tables.best_seed(rows) == 2


def test_best_seed_may_be_asked_to_spare_people():
    rows = validation({1: 0.60, 2: 0.50}, {1: 0.90, 2: 0.95})
    rows["spared"] = rows.joint & (rows.seed == 2)
    assert tables.best_seed(rows) == 1 and tables.best_seed(rows, success="spared") == 2


def test_settings_of_table_one_are_nested(problem):
    wishes = tables.hard_preferences(problem, 300, seed=0)
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
    x = problem.refused("test")[:25]
    wishes = tables.hard_preferences(problem, len(x), seed=0)
    return pd.concat(
        [
            tables.search(problem, x, wishes, n_values=4),
            tables.recommend(problem, stack, x, wishes, chosen=2000),
        ]
    )


def test_paper_and_ours_stand_side_by_side(everyone):
    table = tables.beside_paper(everyone, number=1)
    assert len(table) == 2 * 5 * 5
    row = table[
        (table.setting == "2") & (table.method == "iCARMA") & (table.metric == "validity")
    ].squeeze()
    own = (
        everyone[(everyone.setting == "2") & (everyone.method == "iCARMA")]
        .groupby("seed")
        .valid.mean()
    )
    assert (
        row.paper == 0.991
        and row.ours == own[2000]
        and row.difference == pytest.approx(own[2000] - 0.991)
    )
    assert (row.seed_low, row.seed_high) == (own.min(), own.max())
    assert row.within == (own[2000] >= 0.961)
    cost = table[table.metric == "cost_mean"]
    assert cost.paper.isna().all() and cost.within.isna().all()


def test_a_nested_constraint_never_helps(everyone):
    """Whoever has recourse with fewer features has it with more: on one grid this holds person by person."""
    found = (
        everyone[everyone.method == "oracle"]
        .pivot(index="person", columns="setting", values="has_recourse")
        .astype(bool)
    )
    for more, fewer in (("all (4)", "3"), ("3", "2"), ("2", "1")):
        assert not (found[fewer] & ~found[more]).any()


def test_table_two_by_profile(problem):
    """Profiles are told apart, each reports its own seed, and hap counts as reached when it is lower than the paper's."""
    features = problem.population.actionable
    members = [
        replace(
            icarma.Settings(n_epochs=2, batch_size=64, hidden=8),
            profile=Profile(GAMMA[name]),
        )
        for name in GAMMA
    ]
    sampler = RankingSampler(features)
    stack, _ = icarma.fit(
        problem, [sampler] * 8, [m for m in members for _ in range(2)], [1000, 2000] * 4
    )
    x = problem.refused("test")[:25]
    people = tables.soft(
        problem, stack, "ranking", x, problem.refused("validation"), seed=0
    )
    reported = people[people.reported]
    assert len(reported) == 2 * 4 * 25 and set(people.profile) == set(GAMMA)
    assert (reported.groupby("profile").seed.nunique() == 1).all()
    table = tables.beside_paper(people, number=2)
    assert (
        table[table.metric == "hap"].within.notna().sum() == 6
    )  # two settings, three profiles that ask for less
    row = table[(table.setting == "soft, linear") & (table.metric == "hap")].squeeze()
    own = reported[(reported.setting == "soft, linear") & reported.has_recourse]
    assert row.paper == 0.029 and row.ours == own.hard_action.mean()
    assert row.within == (row.ours <= 0.029 + 0.05)


@pytest.mark.parametrize("elicitation", ["ranking", "score"])
def test_soft_settings_are_those_of_the_tables(problem, elicitation):
    wishes = tables.soft_preferences(problem, elicitation, 400, seed=0)
    assert list(wishes) == ["soft", "hard (random) + soft"]
    assert (
        wishes["soft"].is_actionable.all()
        and not wishes["hard (random) + soft"].is_actionable.all()
    )
    if elicitation == "ranking":  # the same ranking, cut for some
        kept = wishes["hard (random) + soft"].is_actionable
        assert torch.equal(
            wishes["soft"].scores[kept], wishes["hard (random) + soft"].scores[kept]
        )
    with pytest.raises(ValueError, match="Did you mean 'ranking'"):
        tables.soft_preferences(problem, "rankings", 3, seed=0)


@pytest.mark.parametrize(
    ("number", "n_settings"), [(1, 5), (2, 8), (3, 8), (5, 10), (6, 12)]
)
def test_published_rows_are_told_apart(number, n_settings):
    table = claims.published(number)
    assert (
        not table.duplicated(["setting", "method"]).any()
        and table.setting.nunique() == n_settings
    )


def test_oracle_of_the_constant_profile_is_the_unweighted_one(problem):
    x = problem.refused("test")[:12]
    people = tables.soft_search(problem, x, seed=0, n_values=3)
    assert set(people.setting) == {
        f"{s}, {p}" for s in (stacks.SOFT, stacks.MIXED) for p in GAMMA
    }
    hard = tables.search(
        problem,
        x,
        {"random": tables.hard_preferences(problem, len(x), seed=1)["random"]},
        n_values=3,
    )
    own = people[people.setting == f"{stacks.MIXED}, constant"]
    assert (
        own.cost.to_numpy() == pytest.approx(hard.cost.to_numpy())
        and own.valid.tolist() == hard.valid.tolist()
    )
    validity = people.groupby("setting").valid.mean()
    for setting in (
        stacks.SOFT,
        stacks.MIXED,
    ):  # weights change which action is cheapest, never whether there is one
        assert len({validity[f"{setting}, {p}"] for p in GAMMA}) == 1


def test_populations_that_lean(problem):
    wishes = tables.biased_preferences(problem, 200, seed=0)
    assert list(wishes) == list(dict.fromkeys(claims.published(5).setting))
    features = problem.population.actionable
    for bias, favourites in (
        ("causal order aligned", ("income", "loan_amount")),
        ("reverse causal order aligned", ("loan_duration", "savings")),
    ):
        only = wishes[f"{bias}, 1"].is_actionable
        assert not only[
            :, [j for j, name in enumerate(features) if name not in favourites]
        ].any()


def test_what_is_not_demanded_is_not_given_up_for_it(problem):
    """Without the demand for plausibility nobody loses recourse, and nobody's action gets dearer."""
    x = problem.refused("test")[:15]
    people = tables.ablation(problem, x, seed=0, n_values=4)
    assert set(people.setting) == set(claims.published(6).setting)
    for name in tables.DISTRIBUTIONS:
        for k in ("1", "2"):
            free, bound = (
                people[people.setting == f"{name}, {k}, {d}"].reset_index()
                for d in ("No", "Yes")
            )
            assert (free.valid >= bound.valid).all() and bound.plausible[
                bound.has_recourse
            ].all()
            assert (free.cost <= bound.cost + 1e-9)[bound.has_recourse].all()


def test_standard_error_is_over_those_the_share_is_of():
    """Four people, of whom two are told to do something, one of them their hardest: 0.5 of two, 0.25 of four."""
    people = pd.DataFrame(
        {
            "setting": "soft, linear",
            "method": "oracle",
            "seed": 0,
            "reported": True,
            "has_recourse": [True, True, False, False],
            "valid": [True, False, False, False],
            "plausible": [True, False, False, False],
            "joint": [True, False, False, False],
            "cost": 1.0,
            "hard_action": [True, False, False, False],
            "n_acted": 1,
        }
    )
    table = tables.beside_paper(people, number=2).set_index("metric")
    assert (
        table.standard_error["hap"]
        == table.standard_error["plausibility"]
        == pytest.approx((0.25 / 2) ** 0.5)
    )
    assert table.standard_error["validity"] == pytest.approx((0.1875 / 4) ** 0.5)


def test_the_oracle_must_not_be_better_either():
    rows = {
        "setting": "soft, linear",
        "seed": 0,
        "reported": True,
        "has_recourse": True,
        "valid": True,
        "plausible": True,
        "joint": True,
        "cost": 1.0,
        "hard_action": False,
        "n_acted": 1,
    }
    for method, is_reached in (("oracle", False), ("iCARMA", True)):
        table = tables.beside_paper(
            pd.DataFrame([rows | {"method": method}] * 3), number=2
        ).set_index("metric")
        assert table.within["hap"] == is_reached, method


def test_transfer_has_the_settings_of_the_published_rows(problem):
    """Any population with four actionable features will do; here Loan's, with networks of two profiles."""
    samplers, settings, seeds = stacks.transfer(
        problem.population.actionable, [1000, 2000], 1
    )
    assert [own.profile.gamma for own in settings] == [None, None, 1.0, 1.0]
    stack, _ = icarma.fit(
        problem,
        samplers,
        [replace(own, batch_size=64, hidden=8) for own in settings],
        seeds,
    )
    rows = tables.transfer(
        problem,
        stack,
        problem.refused("test")[:40],
        problem.refused("validation")[:40],
        seed=0,
    )
    assert (
        len(rows) == 5 * 2 * 40
        and (rows.groupby(["setting", "person"]).reported.sum() == 1).all()
    )
    for number, own in rows.groupby("number"):
        table = tables.beside_paper(own, number, "GMSC")
        assert (
            set(table.setting) == set(claims.published(number, "GMSC").setting)
            and (table.table == f"{number}, GMSC").all()
        )
        printed = table.dropna(subset=["paper"]).set_index(["setting", "metric"])
        assert len(printed) == {1: 4, 2: 9}[number]
        for (setting, metric), row in printed.iterrows():
            if metric == "validity":
                assert row.within == (row.ours >= row.paper - 0.03)
    wishes = tables.transfer_preferences(problem, 40, seed=1)
    assert torch.equal(wishes["soft, linear"].scores, wishes["all (4)"].scores)
    assert (wishes["hard (3) + soft, linear"].is_actionable.sum(-1) == 3).all()
