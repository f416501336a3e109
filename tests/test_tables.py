"""The tables: who is asked what, and which member is reported."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.method import grid, icarma, metrics, training
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.samplers import RankingSampler
from lib.paper import claims, designs, stacks, tables

QUICK = icarma.Settings(n_epochs=2, batch_size=64, hidden=8)


def validation(
    joint: dict[int, float], valid: dict[int, float], n_people: int = 400
) -> pd.DataFrame:
    """Rows in which the given shares of n_people are joint, and valid, for each member."""
    rows = []
    for member in joint:
        good = np.arange(n_people) < joint[member] * n_people
        fine = np.arange(n_people) < valid[member] * n_people
        rows.append(
            pd.DataFrame(
                {
                    "member": member,
                    "seed": 1000,
                    "setting": "random",
                    "person": np.arange(n_people),
                    "joint": good,
                    "valid": fine,
                }
            )
        )
    return pd.concat(rows)


def test_best_member_has_the_lowest_cost_plus_share_refused():
    """Costs of those who are accepted: 0.1 + 0.1, 0.3 + 0.0, 0.05 + 0.2; the last, none."""
    rows = validation({1: 0.5, 2: 0.9, 3: 0.1, 4: 0.0}, {1: 0.9, 2: 1.0, 3: 0.8, 4: 0.0})
    cost = rows.member.map({1: 0.1, 2: 0.3, 3: 0.05, 4: 0.0})
    rows = rows.assign(cost=cost.where(rows.valid, 99.0))
    assert tables.best_member(rows) == 1


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        ({}, {"setting": "randm"}, r"Unknown setting 'randm'.*Did you mean 'random'"),
        ({"member": 1}, {}, r"answers one person more than once"),
    ],
)
def test_best_member_says_what_it_cannot_choose_by(change, asked, message):
    rows = validation({1: 0.6, 2: 0.5}, {1: 0.9, 2: 0.9}).assign(**change)
    with pytest.raises(ValueError, match=message):
        tables.best_member(rows, **asked)


@pytest.fixture(scope="module")
def profiles(problem) -> icarma.ICarma:
    """Eight members, two of each profile; only two seeds."""
    members = [replace(QUICK, profile=Profile(GAMMA[name])) for name in GAMMA]
    stack, _ = training.fit(
        problem,
        [RankingSampler(problem.population.actionable)] * 8,
        [own for own in members for _ in range(2)],
        [1000, 2000] * 4,
    )
    return stack


def test_members_of_one_seed_are_not_mixed(problem, profiles):
    """Four members share a seed. Each has a row a person, and they are its own."""
    x = problem.refused("test")[:25]
    preferences = {"soft": designs.soft_preferences(problem, "ranking", len(x), 0)["soft"]}
    people = tables.judged(problem, profiles, x, preferences, chosen=6)
    assert people.seed.nunique() == 2 and people.member.nunique() == 8
    assert (people.groupby("member").size() == len(x)).all()
    assert people.member[people.reported].unique().tolist() == [6]
    measured = ["valid", "plausible", "cost", "hard_action", "log_p_cf"]
    for i, own in people.groupby("member"):
        alone = tables.judged(problem, profiles.select([i]), x, preferences)
        assert (alone.member == i).all() and (alone.seed == own.seed.iloc[0]).all()
        pd.testing.assert_frame_equal(
            own[measured].reset_index(drop=True), alone[measured], rtol=1e-6
        )
    of_seed = people[people.seed == 1000].groupby("member").log_p_cf.mean()
    assert of_seed.nunique() == 4  # so that mixing them would show
    chosen = tables.best_member(people, "soft")
    cost = people[people.valid].groupby("member").cost.mean()
    price = cost + 1 - people.groupby("member").valid.mean()
    assert price[chosen] == price.min()


def test_reported_rows_are_of_the_chosen_member_of_a_selection(problem, profiles):
    """Members keep their ids when some are selected."""
    x = problem.refused("test")[:5]
    linear = stacks.by_profile(profiles)["linear"]
    drawn = designs.hard_preferences(problem, len(x), seed=0)
    people = tables.judged(problem, linear, x, {"2": drawn["2"]}, chosen=5)
    assert people.member.unique().tolist() == [4, 5]
    assert people[people.reported].seed.unique().tolist() == [2000]
    with pytest.raises(ValueError, match=r"Unknown member 2000: expected one of 4, 5"):
        tables.judged(problem, linear, x, {"2": drawn["2"]}, chosen=2000)


def ask(problem, stack, x, preferences, how):
    if how == "search":
        return tables.judged(problem, grid.Grid(problem, n_values=3), x, preferences)
    return tables.judged(problem, stack, x, preferences)


@pytest.mark.parametrize("how", ["search", "recommend"])
def test_bad_input_is_refused_before_any_work(problem, profiles, monkeypatch, how):
    monkeypatch.setattr(icarma.ICarma, "recommend", None)
    monkeypatch.setattr(grid.Grid, "recommend", None)
    x = problem.refused("test")[:5]
    own = designs.hard_preferences(problem, len(x), seed=0)
    fewer = {"1": own["1"], "2": Preferences(own["2"].scores[:4])}
    accepted = problem.population.x["recourse/test"]
    accepted = accepted[problem.accepts(accepted)][:5]
    for people, preferences, message in (
        (x[:0], own, r"at least one of them"),
        (x, {}, r"Expected preferences for at least one setting"),
        (x, fewer, r"preferences.scores has shape \(4, 4\)"),
        (x * float("nan"), own, r"NaN"),
        (x[:, :-1], own, r"x has shape \(5, 6\)"),
        (accepted, own, r"already accepted"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(problem, profiles, people, preferences, how)


def test_a_nested_constraint_never_helps(problem):
    """Whoever has recourse with fewer features has it with more, person by person."""
    x = problem.refused("test")[:25]
    preferences = designs.hard_preferences(problem, len(x), seed=0)
    people = tables.judged(problem, grid.Grid(problem, n_values=4), x, preferences)
    assert (people.member == 0).all() and (people.seed == 0).all()
    assert people.reported.all() and (people.method == "oracle").all()
    found = people.pivot(index="person", columns="setting", values="has_recourse")
    found = found.astype(bool)
    for more, fewer in (("all (4)", "3"), ("3", "2"), ("2", "1")):
        assert not (found[fewer] & ~found[more]).any()


@pytest.fixture(scope="module")
def networks(problem, profiles):
    """Three sets: of two stacks as printed, and of one as chosen, which is pruned, too."""
    printed = [profiles.select([0, 1]), profiles.select(range(2, 8))]
    sampler = RankingSampler(problem.population.actionable)
    return tables.sets(problem, printed, [profiles.select([0, 1, 4, 5])], sampler, 0)


def test_sets_have_their_profiles_and_a_member_to_report(problem, networks):
    assert {name: list(own) for name, own in networks.items()} == {
        "as printed": list(GAMMA),
        "as chosen": ["constant", "linear"],
        "pruned": ["constant", "linear"],
    }
    x = problem.refused("test")[:25]
    drawn = designs.soft_preferences(problem, "ranking", len(x), 1)
    asked = {
        f"{setting}, {name}": (own, name)
        for setting, own in drawn.items()
        for name in GAMMA
    }
    people = tables.answered(problem, networks, x, asked)
    assert people.groupby("networks").setting.nunique().to_dict() == {
        "as chosen": 4,
        "as printed": 8,
        "pruned": 4,
    }
    reported = people[people.reported]
    each = reported.groupby(["networks", "setting"])
    assert (each.member.nunique() == 1).all() and (each.size() == 25).all()
    table = claims.beside_paper(people, number=2)
    assert table[table.metric == "hap"].agrees.notna().sum() == 8 + 4 + 4
    row = table[(table.setting == "soft, linear") & (table.metric == "hap")]
    row = row.set_index("networks").loc["as printed"]
    own = reported[(reported.setting == "soft, linear") & reported.has_recourse]
    own = own[own.networks == "as printed"]
    assert row.paper == 0.029 and row.reported == own.hard_action.mean()
    by_set = people[people.setting == "soft, linear"].groupby("networks")
    assert by_set.joint.mean()["pruned"] >= by_set.joint.mean()["as chosen"]
    assert by_set.n_acted.mean()["pruned"] <= by_set.n_acted.mean()["as chosen"]


def test_who_diverged_is_left_out_and_named(problem, profiles, monkeypatch):
    monkeypatch.setattr(tables, "diverged", lambda rows: [rows.member.iloc[0]])
    three = icarma.ICarma(
        problem, profiles.settings[:1] * 3, [1, 2, 3], profiles.select([0, 2, 4]).weights
    )
    sampler = RankingSampler(problem.population.actionable)
    found = tables.sets(problem, [three], [], sampler, seed=0)["as printed"]["constant"]
    assert found.diverged == [0] and found.solver.ids == [1, 2]
    assert found.reported in (1, 2)


def test_oracle_of_the_constant_profile_is_the_unweighted_one(problem):
    x = problem.refused("test")[:12]
    drawn = designs.soft_preferences(problem, "ranking", len(x), seed=1)
    both = (stacks.SOFT, stacks.MIXED)
    people = pd.concat(
        tables.judged(
            problem,
            grid.Grid(problem, profile=Profile(gamma, stacks.W_MAX), n_values=3),
            x,
            {f"{setting}, {name}": own for setting, own in drawn.items()},
        )
        for name, gamma in GAMMA.items()
    )
    random = designs.hard_preferences(problem, len(x), seed=1)["random"]
    hard = tables.judged(problem, grid.Grid(problem, n_values=3), x, {"random": random})
    own = people[people.setting == f"{stacks.MIXED}, constant"]
    assert own.cost.to_numpy() == pytest.approx(hard.cost.to_numpy())
    assert own.valid.tolist() == hard.valid.tolist()
    validity = people.groupby("setting").valid.mean()
    for setting in both:
        # weights change which action is cheapest, never whether there is one
        assert len({validity[f"{setting}, {p}"] for p in GAMMA}) == 1


def test_what_is_not_demanded_is_not_given_up_for_it(problem):
    """Without the demand for plausibility nobody loses recourse or pays more."""
    x = problem.refused("test")[:15]
    people = tables.ablation(problem, x, seed=0, n_values=4)
    assert set(people.setting) == set(claims.published(6).setting)
    for name in designs.DISTRIBUTIONS:
        for k in ("1", "2"):
            free, bound = (
                people[people.setting == f"{name}, {k}, {d}"].reset_index()
                for d in ("No", "Yes")
            )
            helped = bound.has_recourse
            assert (free.valid >= bound.valid).all() and bound.plausible[helped].all()
            assert (free.cost <= bound.cost + 1e-9)[helped].all()


def test_a_centred_grid_is_another_grid(problem):
    x = problem.refused("test")[:20]
    even, centred = (
        tables.ablation(problem, x, seed=0, n_values=5, centred=reach)
        for reach in (None, 0.42)
    )
    assert even.setting.tolist() == centred.setting.tolist()
    named = {"uniform random, 2, No": designs.hard_preferences(problem, len(x), 1)["2"]}
    expected = tables.judged(
        problem, grid.Grid(problem, n_values=5, slack=np.inf, centred=0.42), x, named
    )
    rows = centred[centred.setting == "uniform random, 2, No"].cost.to_numpy()
    assert (rows == expected.cost.to_numpy()).all()
    assert (rows != even[even.setting == "uniform random, 2, No"].cost.to_numpy()).any()


def test_carried_out_recommendations_are_judged_as_people_follow_them(problem, profiles):
    x = problem.refused("test")[:20]
    own = designs.hard_preferences(problem, len(x), seed=0)["random"]
    people = tables.judged(problem, profiles, x, {"random": own}, carried_out=True)
    followed = problem.carried_out(x, profiles.recommend(x, own))
    judged = metrics.per_person(problem, x, own, followed[3])
    assert people[people.member == 3].log_p_cf.to_numpy() == pytest.approx(
        judged.log_p_cf.to_numpy()
    )


@pytest.mark.parametrize(
    ("cost", "joint", "odd"),
    [
        ({0: 0.2, 1: 0.3, 2: 0.39, 3: 0.1}, {0: 0.5, 1: 0.6, 2: 0.3, 3: 0.5}, []),
        ({0: 0.2, 1: 0.3, 2: 0.52, 3: 0.1}, {0: 0.5, 1: 0.6, 2: 0.3, 3: 0.5}, [2]),
        ({0: 0.2, 1: 0.3, 2: 0.39, 3: 0.1}, {0: 0.5, 1: 0.6, 2: 0.2, 3: 0.5}, [2]),
    ],
)
def test_who_diverged_by_hand(cost, joint, odd):
    """Beyond twice the median cost, 0.25; below half the median share, 0.5."""
    rows = validation(joint, dict.fromkeys(joint, 1.0))
    rows = rows.assign(cost=rows.member.map(cost))
    assert tables.diverged(rows) == odd
    rows.loc[rows.member == 1, "valid"] = False  # whose cost is that of nobody
    assert 1 in tables.diverged(rows)
    with pytest.raises(ValueError, match="three members or more, got 2"):
        tables.diverged(rows[rows.member < 2])
