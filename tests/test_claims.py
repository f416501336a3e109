"""Estimates, the paper's numbers beside rows made by hand and of networks, verdicts."""

import numpy as np
import pandas as pd
import pytest

from lib import io
from lib.io import PARAMS
from lib.method import grid, icarma, metrics
from lib.method.preferences import CONSTANT
from lib.method.samplers import RankingSampler
from lib.paper import claims, designs, tables
from lib.paper.claims import Estimate, Verdicts, by_person, contrast, difference, ratio

GOOD = {
    "has_recourse": True,
    "valid": True,
    "plausible": True,
    "joint": True,
    "cost": 1.0,
    "n_acted": 1,
    "outside": False,
    "networks": "",
}


def people(hap: dict[str, dict[int, float]], reported: int) -> pd.DataFrame:
    """Ten people a setting and seed, of whom the given share acts on the hardest feature.

    As in several ensembles, each setting has other members.
    """
    rows, member = [], 0
    for setting, by_seed in hap.items():
        for seed, share in by_seed.items():
            for person in range(10):
                rows.append(
                    {
                        "setting": setting,
                        "method": "iCARMA",
                        "member": member,
                        "seed": seed,
                        "reported": seed == reported,
                        "person": person,
                        "hard_action": person < 10 * share,
                    }
                )
            member += 1
    return pd.DataFrame(rows).assign(**GOOD)


TWO_SEEDS = {"soft, linear": {1: 0.1, 2: 0.2}}


def test_rows_of_two_ensembles_under_one_name_are_refused():
    rows = people(TWO_SEEDS, reported=1)
    with pytest.raises(ValueError, match=r"Member 0 of iCARMA answers person 0 more than"):
        claims.beside_paper(pd.concat([rows, rows]), number=2)


@pytest.mark.parametrize(
    ("rows", "number", "message"),
    [
        (people(TWO_SEEDS, 1), 4, r"Unknown table of the paper 4"),
        (people(TWO_SEEDS, 1)[:0], 2, r"got 0 rows without anybody"),
        (people(TWO_SEEDS, 1).drop(columns="member"), 2, r"without member"),
    ],
)
def test_what_cannot_be_compared_is_said(rows, number, message):
    with pytest.raises(ValueError, match=message):
        claims.beside_paper(rows, number)


@pytest.mark.parametrize(
    ("number", "n_settings"), [(1, 5), (2, 8), (3, 8), (5, 10), (6, 12)]
)
def test_published_rows_are_told_apart(number, n_settings):
    table = claims.published(number)
    assert not table.duplicated(["setting", "method"]).any()
    assert table.setting.nunique() == n_settings


def test_unknown_data_sets_are_named():
    with pytest.raises(ValueError, match=r"Unknown data set 'loan'.*Did you mean 'Loan'"):
        claims.published(1, "loan")


@pytest.fixture(scope="module")
def everyone(problem):
    """Table 1, of a search on a coarse grid and of two members, of whom 1 is reported."""
    sampler = RankingSampler(problem.population.actionable, profile=CONSTANT)
    quick = icarma.Settings(n_epochs=2, batch_size=64, width=8)
    ensemble, _ = icarma.fit(problem, sampler, quick, [1000, 2000])
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
    table = claims.beside_paper(everyone, number=1)
    assert len(table) == 2 * 5 * 5
    row = table[
        (table.setting == "2") & (table.method == "iCARMA") & (table.metric == "validity")
    ].squeeze()
    people = everyone[(everyone.setting == "2") & (everyone.method == "iCARMA")]
    by_member = people.groupby("member").valid.mean()
    assert row.paper == 0.991 and row.reported == by_member[1]
    assert row["mean"] == pytest.approx(by_member.mean())
    assert row.difference == pytest.approx(by_member.mean() - 0.991)
    assert (row.lowest, row.highest) == pytest.approx((by_member.min(), by_member.max()))
    assert row.se_networks == pytest.approx(by_member.std() / 2**0.5)
    assert row.se_paper == pytest.approx((0.991 * 0.009 / 25 + 0.011**2) ** 0.5)
    of_oracle = table[table.method == "oracle"]
    assert of_oracle[["lowest", "highest", "se_networks"]].isna().all(axis=None)
    cost = table[table.metric == "cost_mean"]
    assert cost.paper.isna().all() and cost.agrees.isna().all()
    shares = table[table.metric.isin(["validity", "plausibility"])]
    assert shares.agrees.notna().all() and len(shares) == 2 * 5 * 2


def test_means_are_those_of_summarise(everyone):
    """The same metric by two ways: every member by itself, then their mean."""
    table = claims.beside_paper(everyone, number=1)
    by_member = metrics.summarise(everyone, ["setting", "method", "member"])
    by_member = by_member.groupby(["setting", "method"])
    for metric in claims.METRICS:
        if metric == "hap":  # not in table 1
            continue
        expected = by_member[metric].agg(lambda values: values.mean(skipna=False))
        means = table[table.metric == metric].set_index(["setting", "method"])["mean"]
        assert means.loc[expected.index].to_numpy() == pytest.approx(
            expected.to_numpy(), nan_ok=True
        ), metric


def test_exactly_one_member_is_reported(everyone):
    nobody = everyone.assign(reported=everyone.method == "oracle")
    with pytest.raises(ValueError, match=r"0 of 2 members of iCARMA.*best_index"):
        claims.beside_paper(nobody, number=1)
    with pytest.raises(ValueError, match=r"2 of 2 members of iCARMA are reported"):
        claims.beside_paper(everyone.assign(reported=True), number=1)
    with pytest.raises(ValueError, match=r"got 0 rows without anybody"):
        claims.beside_paper(everyone[:0], number=1)


SOFT_LINEAR = GOOD | {"setting": "soft, linear", "member": 0, "seed": 0, "reported": True}


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
    table = claims.beside_paper(people, number=2).set_index("metric")
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
    row = claims.beside_paper(people, number=2).set_index("metric").loc["hap"]
    assert row.agrees == agrees


def test_networks_that_differ_more_agree_more_easily():
    """The same mean, 0.9 of 1,000, of two members that differ or do not."""
    rows_by_spread = {}
    for apart in (0.0, 0.1):
        rows = [
            SOFT_LINEAR
            | {"method": "iCARMA", "member": i, "reported": i == 0, "person": person}
            | {"hard_action": False, "valid": person < (0.9 + way * apart) * 1_000}
            for i, way in enumerate((-1, 1))
            for person in range(1_000)
        ]
        table = claims.beside_paper(pd.DataFrame(rows), number=2).set_index("metric")
        rows_by_spread[apart] = table.loc["validity"]
    assert rows_by_spread[0.0]["mean"] == rows_by_spread[0.1]["mean"] == pytest.approx(0.9)
    assert rows_by_spread[0.1].se_networks == pytest.approx(0.1)
    assert (rows_by_spread[0.0].agrees, rows_by_spread[0.1].agrees) == (False, True)


# --- standard errors against draws of people and of networks, and against formulas


def test_one_member_has_the_binomial_standard_error():
    helped = np.arange(200) < 60
    counted = np.arange(200) < 150
    assert ratio(helped).se_people == pytest.approx((0.3 * 0.7 / 200) ** 0.5)
    of_some = ratio(helped & counted, counted)
    assert of_some.value == pytest.approx(0.4)
    assert of_some.se_people == pytest.approx((0.4 * 0.6 / 150) ** 0.5)
    assert np.isnan(of_some.se_networks)


def test_members_that_answer_alike_are_no_more_people():
    """Ten copies of a network leave the error over people as it is."""
    helped = np.arange(50) % 3 == 0
    ten = ratio(np.tile(helped, (10, 1)))
    assert ten.se_people == pytest.approx(ratio(helped).se_people)
    assert ten.se_networks == pytest.approx(0, abs=1e-12)


def test_the_error_of_a_ratio_is_that_of_new_people():
    """Two costs of the same people: the spread of the ratio over 4,000 draws of people."""
    rng = np.random.default_rng(0)

    def draw():
        first = rng.gamma(2.0, size=300)
        return ratio(first * rng.uniform(0.5, 1.5, 300) + 0.2, first)

    drawn = [draw() for _ in range(4_000)]
    spread = np.std([one.value for one in drawn])
    assert np.mean([one.se_people for one in drawn]) == pytest.approx(spread, rel=0.05)


def test_intervals_cover_new_people_and_new_networks():
    """Each person has a chance, each network a level: 95 % of intervals hold the truth."""
    rng = np.random.default_rng(1)
    n_held = 0
    for _ in range(1_000):
        person, network = rng.uniform(-0.2, 0.2, 200), rng.normal(0, 0.05, (10, 1))
        chance = 0.5 + person + network
        estimate = ratio(rng.random(chance.shape) < chance)
        n_held += estimate.low <= 0.5 <= estimate.high
    assert 0.92 < n_held / 1_000 < 0.97  # the interval is for a normal, not for ten


def test_the_difference_of_other_people_has_the_error_of_both_draws():
    """Networks differ in level, which cancels; both draws of people remain."""
    rng = np.random.default_rng(2)
    level = np.array([[0.3], [0.7]])
    first, second = (np.tile(rng.random(n) < 0.5, (2, 1)) + level for n in (100, 400))
    estimate = difference(first, second)
    assert estimate.value == pytest.approx(first.mean() - second.mean())
    assert estimate.se_networks == pytest.approx(0, abs=1e-12)
    expected = np.hypot(ratio(first).se_people, ratio(second).se_people)
    assert estimate.se_people == pytest.approx(expected)
    with pytest.raises(ValueError, match="of 2 networks and second of 1"):
        difference(first, second[:1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, "holds"), (0.21, "undecided"), (0.15, "undecided"), (0.0, "does not hold")],
)
def test_verdicts_speak_of_the_whole_interval(value, expected):
    estimate = Estimate(value, value, value, se_people=0.05)
    assert estimate.lies(above=0.2) == expected
    mirrored = Estimate(-value, -value, -value, se_people=0.05)
    assert mirrored.lies(below=-0.2) == expected


def test_nobody_counted_decides_nothing():
    estimate = ratio(np.zeros(5), np.zeros(5))
    assert np.isnan(estimate.value) and estimate.lies(above=0) == "undecided"


def test_what_cannot_be_set_side_by_side_is_said():
    with pytest.raises(
        ValueError, match=r"numerator has shape \(1, 3\) and the denominator \(1, 2\)"
    ):
        ratio(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"numerator has shape \(1, 0\)"):
        ratio(np.ones(0))
    rows = pd.DataFrame({"member": [0, 1], "person": [0, 1], "cost": [1.0, 2.0]})
    with pytest.raises(ValueError, match="members answer different people"):
        by_person(rows, "cost")


def test_a_contrast_of_one_ratio_is_that_ratio():
    rng = np.random.default_rng(4)
    above, below = rng.random((3, 40)), rng.random((3, 40))
    assert contrast((1.0, above, below)) == ratio(above, below)


def test_a_contrast_is_paired_over_people_and_over_members():
    """Shares that differ by the same tenth for everybody: no error is left."""
    first = np.random.default_rng(5).random((4, 60))
    estimate = contrast((1.0, first + 0.1, None), (-1.0, first, None))
    assert estimate.value == pytest.approx(0.1)
    assert estimate.standard_error == pytest.approx(0, abs=1e-12)


def test_the_error_of_a_contrast_is_that_of_new_people():
    """Shares of different people among those asked, by two networks, over 3,000 draws."""
    rng = np.random.default_rng(6)

    def draw():
        luck = rng.random(300)
        answered = [rng.random(300) < share for share in (0.9, 0.6)]
        good = [
            (luck < share) & who for share, who in zip((0.5, 0.4), answered, strict=True)
        ]
        return contrast((1.0, good[0], answered[0]), (-1.0, good[1], answered[1]))

    drawn = [draw() for _ in range(3_000)]
    spread = np.std([one.value for one in drawn])
    assert np.mean([one.se_people for one in drawn]) == pytest.approx(spread, rel=0.05)
    assert np.mean([one.value for one in drawn]) == pytest.approx(0.1, abs=0.005)


def test_a_search_stands_beside_every_member():
    members, search = np.array([[1, 1, 0], [1, 0, 0]]), np.array([1, 1, 1])
    estimate = contrast((1.0, members, None), (-1.0, search, None))
    assert (estimate.lowest, estimate.highest) == pytest.approx((-2 / 3, -1 / 3))
    assert estimate.se_networks == pytest.approx(1 / 6)


def test_members_without_a_counterpart_are_left_out():
    three, two = np.array([[1, 1], [1, 0], [0, 0]]), np.array([[1, 0], [1, 0]])
    estimate = contrast((1.0, three, None), (-1.0, two, None))
    assert estimate == contrast((1.0, three[:2], None), (-1.0, two, None))
    assert (estimate.lowest, estimate.highest) == (0, 0.5)


def test_what_cannot_be_contrasted_is_said():
    with pytest.raises(ValueError, match=r"at least one ratio"):
        contrast()
    with pytest.raises(ValueError, match=r"of 5 and 6 people: expected the same people"):
        contrast((1.0, np.ones((2, 5)), None), (-1.0, np.ones((2, 6)), None))


# --- verdicts, on intervals made by hand


def at(value: float, error: float = 0.05) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, se_people=error, se_networks=0.01)


RISES, DEARER = "5.4: rises", "5.3: dearer"


def asked() -> Verdicts:
    verdicts = Verdicts()
    verdicts.ask(RISES, "as printed", "linear", at(0.5), above=0, paper=0.2)
    verdicts.ask(RISES, "as printed", "convex", at(0.05), above=0, paper=-0.2)
    verdicts.ask(RISES, "as printed", "concave", at(-0.5), above=0)
    verdicts.ask(RISES, "pruned", "linear", at(-0.5), above=0, paper=0.2)
    verdicts.ask(DEARER, "search", "k = 1", at(1.5), above=1)
    return verdicts


def test_the_whole_interval_decides_of_ours_and_one_number_of_the_paper():
    table = asked().of(RISES).loc["as printed"]
    assert table.here.to_dict() == {
        "linear": "holds",
        "convex": "undecided",
        "concave": "does not hold",
    }
    of_paper = ["holds", "does not hold", "cannot be asked"]
    assert table["in the paper"].tolist() == of_paper
    assert table.loc["linear", "members"] == "0.400 to 0.600"


def test_a_number_at_the_bound_is_a_tie():
    """0.991 less 0.991 is no rise."""
    verdicts = Verdicts()
    verdicts.ask(RISES, "search", "linear", at(0.5), above=0, paper=0.991 - 0.991)
    verdicts.ask(RISES, "search", "convex", at(0.5), above=0, paper=0.1)
    assert verdicts.of(RISES)["in the paper"].tolist() == ["a tie", "holds"]
    overall = verdicts.overall().loc[("5.4", "rises")]
    assert overall.to_list() == ["in part: holds 1, a tie 1", "holds"]
    short = verdicts.in_short().loc[("5.4", "rises")]
    assert short.to_list() == ["1 of 2 hold", "holds"]


def test_what_was_not_asked_of_the_paper_has_no_columns_for_it():
    verdicts = asked()
    assert "paper" not in verdicts.of(DEARER) and "paper" in verdicts.of(RISES)
    search = Estimate(0.5, 0.5, 0.5, se_people=0.1)  # without networks
    verdicts.ask("5.4: is possible", "search", "all", search, above=0)
    assert "members" not in verdicts.of("5.4: is possible")


def test_the_parts_of_two_claims_stand_in_one_table():
    both = asked().of(DEARER, RISES)
    what = ["linear", "convex", "concave", "linear", "k = 1"]
    assert both.index.get_level_values("what").tolist() == what
    assert both.loc[("search", "k = 1"), "in the paper"] == "cannot be asked"
    with pytest.raises(ValueError, match=r"Unknown claim '5.4: falls'"):
        asked().of(RISES, "5.4: falls")


def test_one_verdict_a_claim_and_answerer_counts_its_parts():
    overall = asked().overall()
    assert overall.loc[("5.3", "dearer")].to_dict() == {
        "the paper's numbers": "",
        "as printed": "",
        "pruned": "",
        "search": "holds",
    }
    rises = overall.loc[("5.4", "rises")]
    assert rises["as printed"] == "in part: holds 1, does not hold 1, undecided 1"
    assert rises["pruned"] == "does not hold" and rises["search"] == ""
    # a part that two answerers were asked about is one of the paper's
    assert rises["the paper's numbers"] == "in part: holds 1, does not hold 1"


def test_a_number_that_is_not_there_decides_nothing():
    verdicts = Verdicts()
    nobody = Estimate(np.nan, np.nan, np.nan, np.nan)
    verdicts.ask(RISES, "search", "nobody", nobody, above=0)
    assert verdicts.of(RISES).here.tolist() == ["undecided"]


def test_a_part_is_asked_once_and_a_claim_is_known():
    verdicts = asked()
    with pytest.raises(ValueError, match=r"'5.4: rises' has a part 'linear' of 'pruned'"):
        verdicts.ask(RISES, "pruned", "linear", at(0.5), above=0)
    with pytest.raises(ValueError, match=r"Unknown claim '5.4: rise'"):
        verdicts.of("5.4: rise")
    with pytest.raises(ValueError, match=r"Unknown claim '5.4: rises'"):
        Verdicts().of(RISES)
    with pytest.raises(ValueError, match=r"Expected a section and a phrase"):
        verdicts.ask("rises", "search", "linear", at(0.5), above=0)


# --- what was calibrated, and how near the rest comes


def test_declared_cells_are_the_declared_ones_and_their_repetitions():
    """Each repeats, in the paper, the number of a cell of params/calibration.yaml."""
    given = io.load_yaml(PARAMS / "calibration.yaml")["cells"]
    values = [value for cells in given.values() for value in cells.values()]
    n_found = 0
    for (number, method, metric), settings in claims.DECLARED.items():
        rows = claims.published(number).set_index(["method", "setting"])
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
    agreement = claims.agreement(table)
    ours = agreement.loc[("1", "as printed")]
    assert ours.to_list() == pytest.approx([2, 1, 0.04, 1.0, 1, 0.12])
    assert claims.agreement(table.assign(paper=np.nan)).empty
    search = agreement.loc[("1", "oracle")]  # what is demanded is no agreement
    assert search.to_list() == pytest.approx([1, 1, 0.06, 0.0, 0, 0.06])
