"""The tables: what solvers recommend, who is reported, and the paper beside it."""

import numpy as np
import pandas as pd
import pytest

from lib import io
from lib.io import PARAMS
from lib.method import grid, icarma, metrics
from lib.method.preferences import CONSTANT, PROFILES
from lib.method.samplers import RankingSampler
from lib.paper import designs, stacks, tables

QUICK = icarma.Settings(n_epochs=2, batch_size=64, width=8)


def validation(
    joint: dict[int, float], valid: dict[int, float], n_people: int = 400
) -> pd.DataFrame:
    """Rows in which the given shares of n_people are joint, and valid, for each member."""
    person, rows = np.arange(n_people), []
    for member in joint:
        row = {"member": member, "seed": 1000, "setting": "random", "person": person}
        row |= {"joint": person < joint[member] * n_people}
        rows.append(pd.DataFrame(row | {"valid": person < valid[member] * n_people}))
    return pd.concat(rows)


def test_best_member_has_the_lowest_cost_plus_share_refused():
    """Costs of those who are accepted: 0.1 + 0.1, 0.3 + 0.0, 0.05 + 0.2; the last, none."""
    rows = validation({1: 0.5, 2: 0.9, 3: 0.1, 4: 0.0}, {1: 0.9, 2: 1.0, 3: 0.8, 4: 0.0})
    cost = rows.member.map({1: 0.1, 2: 0.3, 3: 0.05, 4: 0.0})
    rows = rows.assign(cost=cost.where(rows.valid, 99.0))
    assert tables.best_member(rows) == 1


@pytest.fixture(scope="module")
def ensembles(problem) -> dict[str, icarma.ICarma]:
    """Two members of each profile; only two seeds."""
    features = problem.population.actionable
    return {
        name: icarma.fit(
            problem, RankingSampler(features, profile=profile), QUICK, [1000, 2000]
        )[0]
        for name, profile in PROFILES.items()
    }


def test_members_are_evaluated_one_by_one(problem, ensembles):
    """A member has a row a person, as if it were asked alone."""
    x, ensemble = problem.refused("test")[:25], ensembles["linear"]
    drawn = designs.soft_preferences(problem, "ranking", len(x), 0)
    preferences = {stacks.SOFT: drawn[stacks.SOFT]}
    people = tables.evaluate(problem, ensemble, x, preferences)
    assert (people.groupby("member").size() == len(x)).all()
    assert people.member[people.reported].unique().tolist() == [ensemble.best_index]
    measured = ["valid", "plausible", "cost", "hard_action", "log_p_cf"]
    for i, seed in enumerate([1000, 2000]):
        alone = tables.evaluate(problem, ensemble[i], x, preferences)
        assert (alone.seed == seed).all() and alone.reported.all()
        of_member = people[people.member == i].reset_index(drop=True)
        assert (of_member.seed == seed).all()
        pd.testing.assert_frame_equal(of_member[measured], alone[measured], rtol=1e-6)


@pytest.fixture(scope="module")
def networks(problem, ensembles):
    """Three sets: as printed, as chosen for two profiles, and the latter pruned."""
    chosen = {name: ensembles[name] for name in ("constant", "linear")}
    sampler = RankingSampler(problem.population.actionable)
    return tables.sets(problem, ensembles, chosen, sampler, 0)


def test_sets_have_their_profiles_and_a_member_to_report(problem, networks):
    x = problem.refused("test")[:25]
    drawn = designs.soft_preferences(problem, "ranking", len(x), 1)
    preferences = {
        f"{setting}, {name}": p.with_profile(profile)
        for setting, p in drawn.items()
        for name, profile in PROFILES.items()
    }
    people = tables.evaluate_sets(problem, networks, x, preferences)
    n_settings = people.groupby("networks").setting.nunique()
    assert n_settings.to_dict() == {"as chosen": 4, "as printed": 8, "pruned": 4}
    groups = people[people.reported].groupby(["networks", "setting"])
    assert (groups.member.nunique() == 1).all() and (groups.size() == 25).all()
    by_set = people[people.setting == "soft, linear"].groupby("networks")
    assert by_set.joint.mean()["pruned"] >= by_set.joint.mean()["as chosen"]
    assert by_set.n_acted.mean()["pruned"] <= by_set.n_acted.mean()["as chosen"]


def test_who_diverged_is_left_out_and_named(problem, ensembles, monkeypatch):
    monkeypatch.setattr(tables, "diverged", lambda rows: [rows.member.iloc[0]])
    three = ensembles["constant"][[0, 1, 1]]
    sampler = RankingSampler(problem.population.actionable)
    of_set = tables.sets(problem, {"constant": three}, {}, sampler, seed=0)["as printed"]
    assert of_set["constant"].diverged == [0]
    assert of_set["constant"].solver.seeds == [2000, 2000]
    assert of_set["constant"].solver.best_index == 0  # of two that are equal, the first


def test_what_is_not_demanded_is_not_given_up_for_it(problem):
    """Without the demand for plausibility nobody loses recourse or pays more."""
    x = problem.refused("test")[:15]
    people = tables.ablation(problem, x, seed=0, n_values=4)
    assert set(people.setting) == set(tables.published(6).setting)
    for name in designs.DISTRIBUTIONS:
        for k in ("1", "2"):
            free, bound = (
                people[people.setting == f"{name}, {k}, {d}"].reset_index()
                for d in ("No", "Yes")
            )
            helped = bound.has_recourse
            assert (free.valid >= bound.valid).all() and bound.plausible[helped].all()
            assert (free.cost <= bound.cost + 1e-9)[helped].all()


def test_discretised_recommendations_are_evaluated_as_people_follow_them(
    problem, ensembles
):
    x, ensemble = problem.refused("test")[:20], ensembles["constant"]
    drawn = designs.hard_preferences(problem, len(x), seed=0)["random"]
    people = tables.evaluate(problem, ensemble, x, {"random": drawn}, discretise=True)
    followed = problem.discretise(x, ensemble.recommend_each(x, drawn))
    expected = metrics.per_person(problem, x, drawn, followed[1]).log_p_cf.to_numpy()
    assert people[people.member == 1].log_p_cf.to_numpy() == pytest.approx(expected)


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


# --- the paper's numbers beside ours

GOOD = dict.fromkeys(("has_recourse", "valid", "plausible", "joint"), True)
GOOD |= {"cost": 1.0, "n_acted": 1, "outside": False, "networks": ""}
SOFT_LINEAR = GOOD | {"setting": "soft, linear", "member": 0, "seed": 0, "reported": True}


def test_published_rows_are_told_apart():
    for number, n_settings in {1: 5, 2: 8, 3: 8, 5: 10, 6: 12}.items():
        table = tables.published(number)
        assert not table.duplicated(["setting", "method"]).any()
        assert table.setting.nunique() == n_settings
    with pytest.raises(ValueError, match=r"Unknown data set 'loan'.*Did you mean 'Loan'"):
        tables.published(1, "loan")
    with pytest.raises(ValueError, match=r"Unknown table of the paper 4"):
        tables.published(4)


@pytest.fixture(scope="module")
def everyone(problem):
    """Table 1, of a search on a coarse grid and of two members, of whom 1 is reported."""
    sampler = RankingSampler(problem.population.actionable, profile=CONSTANT)
    ensemble, _ = icarma.fit(problem, sampler, QUICK, [1000, 2000])
    ensemble.best_index = 1
    x = problem.refused("test")[:25]
    preferences = designs.hard_preferences(problem, len(x), seed=0)
    return pd.concat(
        [
            tables.evaluate(problem, grid.Grid(problem, n_values=4), x, preferences),
            tables.evaluate(problem, ensemble, x, preferences),
        ]
    )


def test_paper_and_ours_stand_side_by_side(everyone):
    table = tables.beside_paper(everyone, number=1)
    assert len(table) == 2 * 5 * 5
    row = table.set_index(["setting", "method", "metric"]).loc[("2", "iCARMA", "validity")]
    people = everyone[(everyone.setting == "2") & (everyone.method == "iCARMA")]
    by_member = people.groupby("member").valid.mean()
    assert row.paper == 0.991 and row.reported == by_member[1]
    assert row.difference == pytest.approx(by_member.mean() - 0.991)
    assert (row.lowest, row.highest) == pytest.approx((by_member.min(), by_member.max()))
    assert row.se_networks == pytest.approx(by_member.std() / 2**0.5)
    assert row.se_paper == pytest.approx((0.991 * 0.009 / 25 + 0.011**2) ** 0.5)
    assert table[table.method == "oracle"].se_networks.isna().all()
    assert (table.agrees.notna() == table.paper.notna()).all()
    cells = tables.wide(table).loc["2", ("validity", "iCARMA")]
    assert cells.to_dict() == {"paper": "0.991", "ours": f"{by_member.mean():.3f}"}


def test_means_are_those_of_summarise(everyone):
    """The same metric by two ways: every member by itself, then their mean."""
    table = tables.beside_paper(everyone, number=1)
    by_member = metrics.summarise(everyone, ["setting", "method", "member"])
    by_member = by_member.groupby(["setting", "method"])
    for metric in tables.METRICS:
        if metric == "hap":  # not in table 1
            continue
        expected = by_member[metric].agg(lambda values: values.mean(skipna=False))
        means = table[table.metric == metric].set_index(["setting", "method"])["mean"]
        assert means.loc[expected.index].to_numpy() == pytest.approx(
            expected.to_numpy(), nan_ok=True
        ), metric


def test_standard_error_is_over_those_the_share_is_of():
    """Four people, two with recourse, of whom one acts on the hardest feature.

    So hap is 0.5 of two, and validity 0.25 of four.
    """
    half, one = [True, True, False, False], [True, False, False, False]
    people = pd.DataFrame(
        SOFT_LINEAR
        | {"method": "oracle", "person": range(4), "has_recourse": half}
        | dict.fromkeys(("valid", "plausible", "joint", "hard_action"), one)
    )
    table = tables.beside_paper(people, number=2).set_index("metric")
    error = table.se_people
    assert error["hap"] == error["plausibility"] == pytest.approx((0.25 / 2) ** 0.5)
    assert error["validity"] == pytest.approx((0.1875 / 4) ** 0.5)
    assert table.se_paper["hap"] == pytest.approx((0.443 * 0.557 / 2) ** 0.5)
    assert table.se_paper["validity"] == pytest.approx((0.959 * 0.041 / 4) ** 0.5)


@pytest.mark.parametrize(
    ("method", "share", "agrees"),
    [
        *(("iCARMA", 0.0, False), ("iCARMA", 0.03, True), ("iCARMA", 0.2, False)),
        *(("oracle", 0.3, False), ("oracle", 0.44, True), ("oracle", 0.6, False)),
    ],
)
def test_a_difference_counts_in_both_directions(method, share, agrees):
    """hap of 1,000 people; the paper's is 0.029, and 0.443 for the oracle."""
    n_people = 1_000
    hard = [person < share * n_people for person in range(n_people)]
    people = pd.DataFrame(
        SOFT_LINEAR | {"method": method, "hard_action": hard, "person": range(n_people)}
    )
    row = tables.beside_paper(people, number=2).set_index("metric").loc["hap"]
    assert row.agrees == agrees


def test_declared_cells_are_the_declared_ones_and_their_repetitions():
    """Each repeats, in the paper, the number of a cell of params/calibration.yaml."""
    given = io.load_yaml(PARAMS / "calibration.yaml")["cells"]
    values = [value for cells in given.values() for value in cells.values()]
    n_found = 0
    for (number, method, metric), settings in tables.DECLARED.items():
        rows = tables.published(int(number)).set_index(["method", "setting"])
        for setting in settings:
            printed = rows.loc[(method, setting), metric]
            assert min(abs(printed - value) for value in values) <= 0.011, setting
            n_found += 1
    n_repeat = 8 + 2 + 2 + 2  # table 2's oracle and mixed constant, 5's and 6's oracle
    assert n_found == len(values) + n_repeat


def test_agreement_by_hand():
    table = pd.DataFrame(
        {
            "table": "1",
            "method": ["iCARMA", "iCARMA", "iCARMA", "oracle", "oracle"],
            "networks": ["as printed", "as printed", "as printed", "", ""],
            "metric": ["validity", "hap", "joint", "validity", "plausibility"],
            "calibration": [True, False, False, False, False],
            "paper": [0.5, 0.5, np.nan, 0.5, 1.0],
            "difference": [0.2, -0.04, np.nan, 0.06, 0.0],
            "agrees": [False, True, None, False, True],
        }
    )
    agreement = tables.agreement(table)
    ours = agreement.loc[("1", "as printed")]
    assert ours.to_list() == pytest.approx([2, 1, 0.04, 1.0, 1, 0.12])
    assert tables.agreement(table.assign(paper=np.nan)).empty
    search = agreement.loc[("1", "oracle")]  # what is demanded is no agreement
    assert search.to_list() == pytest.approx([1, 1, 0.06, 0.0, 0, 0.06])


def test_sums_of_costs_and_of_log_densities_by_hand():
    """The lowest twentieth of 0 to 40 ends at 2; without recourse nobody is counted."""
    rows = pd.DataFrame({"member": 0, "person": range(41), "log_p": range(41)})
    rows = rows.assign(log_p_cf=10.0, valid=False, cost_l2=0.5, has_recourse=True)
    rows.loc[[0, 1, 2, 3], "log_p_cf"] = [1.9, 2.0, -5.0, -5.0]
    rows.loc[3, "has_recourse"] = False
    rows.loc[[4, 5], "valid"] = True
    unlikely, counted = tables.sums(rows, "unlikely")
    assert np.flatnonzero(unlikely).tolist() == [0, 2] and counted.sum() == 40
    cost, counted = tables.sums(rows, "cost_l2")
    assert (cost.sum(), counted.sum()) == (1.0, 2.0)
    assert tables.sums(rows, "log_density")[0].sum() == 1.9 + 2 - 5 + 37 * 10
