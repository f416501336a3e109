"""Group means, gaps and their intervals, against closed forms and by brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.studies import audit
from lib.studies.bootstrap import TOO_FEW

PAIRS = {"a - b": ("a", "b")}


def answered(
    n_people: int, seed: int = 0, method: str = "oracle", network: int = 0, **columns
) -> pd.DataFrame:
    """Random answers of n_people to two sets of features."""
    rng = np.random.default_rng(seed)
    parts = []
    for setting in ("income", "savings"):
        rows = pd.DataFrame(
            {
                "person": np.arange(n_people),
                "setting": setting,
                "method": method,
                "seed": network,
                "reported": network == 0,
            }
        )
        rows["valid"] = rng.random(n_people) < 0.8
        rows["joint"] = rows.valid & (rng.random(n_people) < 0.7)
        rows["cost"] = rng.gamma(2.0, 0.05, n_people)
        rows["log_p_cf"], rows["log_p_change"] = (
            rng.normal(-8, 1, n_people),
            rng.normal(0, 1, n_people),
        )
        parts.append(rows.assign(**columns))
    return pd.concat(parts, ignore_index=True)


def chances(n_people: int, seed: int = 1) -> pd.DataFrame:
    share = np.random.default_rng(seed).random(n_people)
    return pd.DataFrame({"income": share, "savings": 1 - share})


@pytest.fixture(scope="module")
def study():
    n_people = 600
    answers = pd.concat(
        [answered(n_people), *(answered(n_people, 10 + i, "iCARMA", i) for i in range(3))],
        ignore_index=True,
    )
    groups = {"a": np.arange(0, 400), "b": np.arange(400, 600)}
    return answers, {"s": chances(n_people), "t": chances(n_people, 2)}, groups


def test_intervals_of_means_and_differences_are_those_of_the_central_limit():
    answers, n_people = answered(900, valid=True), 900
    sure = {"s": pd.DataFrame({"income": np.ones(n_people)})}
    groups = {"a": np.arange(0, 500), "b": np.arange(500, 900)}
    cost = answers[answers.setting == "income"].cost.to_numpy()
    error = {
        name: cost[who].std(ddof=1) / np.sqrt(len(who)) for name, who in groups.items()
    }
    row = (
        audit.means(answers, sure, groups, 4_000, seed=0)
        .query("group == 'a' and measure == 'cost'")
        .squeeze()
    )
    assert (row.low, row.high) == pytest.approx(
        stats.norm.interval(0.95, cost[:500].mean(), error["a"]),
        abs=0.06 * error["a"] * 3.92,
    )
    row = (
        audit.gaps(answers, sure, groups, PAIRS, 4_000, seed=0)
        .query("measure == 'cost' and kind == 'difference'")
        .squeeze()
    )
    spread = np.hypot(error["a"], error["b"])
    expected = stats.norm.interval(0.95, cost[:500].mean() - cost[500:].mean(), spread)
    assert (row.low, row.high) == pytest.approx(expected, abs=0.06 * spread * 3.92)


def test_ratios_only_where_there_is_a_zero(study):
    answers, scenarios, groups = study
    found = audit.gaps(answers, scenarios, groups, PAIRS, 50, seed=0)
    assert set(found.measure[found.kind == "ratio"]) == {"cost", "validity", "joint"}
    means = (
        audit.means(answers, scenarios, groups, 50, seed=0)
        .set_index(["scenario", "method", "measure", "group"])
        .estimate
    )
    for row in found.itertuples():
        first, second = (
            means[row.scenario, row.method, row.measure, group] for group in ("a", "b")
        )
        assert row.estimate == pytest.approx(
            first - second if row.kind == "difference" else first / second
        )
        assert row.low < row.estimate < row.high


def test_growth_pairs_the_same_people(study):
    answers, scenarios, groups = study
    grown = audit.growth(
        answers, scenarios | {"again": scenarios["s"]}, groups, PAIRS, "s", 200, seed=0
    )
    again, other = (grown[grown.scenario == name] for name in ("again", "t"))
    nothing = again.kind.map(audit.NO_GAP)  # nothing changed, so nothing is uncertain
    assert all(
        (again[name] - nothing).abs().max() < 1e-12 for name in ("estimate", "low", "high")
    )
    gaps = audit.gaps(answers, scenarios, groups, PAIRS, 200, seed=0)
    now, then = (gaps[gaps.scenario == name].reset_index() for name in ("t", "s"))
    expected = np.where(
        now.kind == "difference", now.estimate - then.estimate, now.estimate / then.estimate
    )
    assert other.estimate.to_numpy() == pytest.approx(expected)
    with pytest.raises(ValueError, match="Unknown scenario 'u'"):
        audit.growth(answers, scenarios, groups, PAIRS, "u", 200, seed=0)


def test_the_spread_over_seeds_is_of_the_networks_only(study):
    answers, scenarios, groups = study
    found = audit.over_seeds(answers, scenarios, groups, PAIRS)
    assert (
        set(found.method) == {"iCARMA"}
        and found.groupby(["scenario", "measure"]).seed.nunique().eq(3).all()
    )
    gaps = audit.gaps(answers, scenarios, groups, PAIRS, 20, seed=0).query(
        "method == 'iCARMA'"
    )
    assert found[found.seed == 0].estimate.tolist() == pytest.approx(gaps.estimate.tolist())


def test_too_few_is_said_and_is_never_a_nan(study):
    answers, scenarios, _ = study
    nobody = answers.assign(
        valid=answers.valid & (answers.person != 0),
        joint=answers.joint & (answers.person < 20),
    )
    groups = {"a": np.arange(40), "b": np.arange(20, 50), "one": np.array([0])}
    pairs = {"a - b": ("a", "b"), "a - one": ("a", "one")}
    means = audit.means(nobody, scenarios, groups, 50, seed=0)
    gaps = audit.gaps(nobody, scenarios, groups, pairs, 50, seed=0)
    assert not means.isna().any(axis=None) and not gaps.isna().any(axis=None)
    one = means[(means.group == "one") & (means.measure == "cost")]
    assert (one[["estimate", "low", "high"]] == TOO_FEW).all(axis=None) and one.apply(
        audit.as_text, axis=1
    ).eq(TOO_FEW).all()
    few = means[(means.group == "b") & (means.measure == "cost")].iloc[
        0
    ]  # 30 people, of whom about 24 are valid
    assert (
        few.low == TOO_FEW
        and audit.as_text(few) == f"{few.estimate:.3f} [too few: {few.n_counted}]"
    )
    assert (
        audit.verdict(gaps[(gaps.measure == "cost") & (gaps.gap == "a - b")].iloc[0])
        == TOO_FEW
    )
    # nobody in b succeeds: a difference can be given, a ratio can't
    joint = gaps[(gaps.measure == "joint") & (gaps.gap == "a - b")].groupby("kind")
    assert (joint.get_group("ratio").estimate == TOO_FEW).all() and (
        joint.get_group("difference").low != TOO_FEW
    ).all()


def test_recourse_within_a_budget(study):
    answers, scenarios, groups = study
    own = answers[answers.method == "oracle"]
    shares = audit.within_budget(own, scenarios["s"], groups["a"], [0.0, 0.1, np.inf])
    expected = np.zeros(3)
    for row in own[own.joint & own.person.isin(groups["a"])].itertuples():
        expected += (
            scenarios["s"][row.setting][row.person]
            * (np.array([0.0, 0.1, np.inf]) >= row.cost)
            / 400
        )
    assert shares == pytest.approx(expected)


def test_a_share_that_is_true_for_everyone_has_the_exact_interval(study):
    answers, scenarios, groups = study
    means = audit.means(
        answers.assign(valid=True, joint=False), scenarios, groups, 50, seed=0
    ).set_index(["scenario", "method", "group", "measure"])
    everyone, no_one = (
        means.loc[("s", "oracle", "b", "validity")],
        means.loc[("s", "oracle", "b", "joint")],
    )
    assert (everyone.low, everyone.high) == pytest.approx(
        (0.025 ** (1 / 200), 1.0)
    )  # closed form of the exact interval
    assert (no_one.low, no_one.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 200)))


def test_verdicts_know_which_way_is_worse():
    def say(measure, low, high, kind="difference"):
        return audit.verdict(
            pd.Series({"measure": measure, "kind": kind, "low": low, "high": high})
        )

    assert (
        say("cost", 0.1, 0.2) == "holds"
        and say("cost", -0.2, -0.1) == "opposite holds"
        and say("cost", -0.1, 0.1) == "open"
    )
    assert (
        say("joint", -0.2, -0.1) == "holds"
        and say("log-density", 0.1, 0.2) == "opposite holds"
    )
    assert (
        say("cost", 1.1, 1.2, "ratio") == "holds"
        and say("joint", 0.9, 1.1, "ratio") == "open"
        and say("joint", 0.8, 0.9, "ratio") == "holds"
    )


def test_what_would_be_a_nan_is_refused(study):
    answers, scenarios, groups = study
    broken = answers.assign(log_p_cf=answers.log_p_cf.where(answers.person != 3))
    with pytest.raises(ValueError, match="log_p_cf of person 3 is NaN or infinite"):
        audit.means(broken, scenarios, groups, 50, seed=0)
    with pytest.raises(ValueError, match="No seed of iCARMA is reported"):
        audit.means(
            answers.assign(reported=answers.method == "oracle"),
            scenarios,
            groups,
            50,
            seed=0,
        )
    with pytest.raises(ValueError, match="no one in the group 'c'"):
        audit.gaps(
            answers, scenarios, groups | {"c": np.array([], dtype=int)}, PAIRS, 50, seed=0
        )
    with pytest.raises(ValueError, match="Unknown group 'z'"):
        audit.gaps(answers, scenarios, groups, {"a - z": ("a", "z")}, 50, seed=0)
    free = audit.gaps(answers.assign(cost=0.0), scenarios, groups, PAIRS, 50, seed=0).query(
        "measure == 'cost' and kind == 'ratio'"
    )
    assert (free.estimate == TOO_FEW).all()


def test_one_network_has_no_spread(study):
    answers, scenarios, groups = study
    found = audit.over_seeds(answers[answers.seed == 0], scenarios, groups, PAIRS)
    assert len(found) == 0 and "estimate" in found


def test_networks_of_one_seed_are_told_apart_by_member(study):
    answers, scenarios, groups = study
    by_seed = audit.over_seeds(answers, scenarios, groups, PAIRS)
    with_members = answers.assign(member=10 + answers.seed)
    assert audit.over_seeds(with_members, scenarios, groups, PAIRS).equals(by_seed)
    of_one_seed = with_members.assign(seed=7)
    found = audit.over_seeds(of_one_seed, scenarios, groups, PAIRS)
    assert set(found.seed) == {7} and list(found) == list(by_seed)
    keys = ["scenario", "measure", "kind", "estimate"]
    assert found[keys].sort_values(keys).to_numpy().tolist() == (
        by_seed[keys].sort_values(keys).to_numpy().tolist()
    )
    with pytest.raises(ValueError, match="answers of several seeds"):
        audit.over_seeds(
            of_one_seed.assign(member=answers.seed > 0), scenarios, groups, PAIRS
        )


def test_a_method_without_members_has_no_spread(study):
    """Of a search, the answers of which have no member, there is nothing to spread."""
    answers, scenarios, groups = study
    members = answers.seed.where(answers.method == "iCARMA")
    found = audit.over_seeds(answers.assign(member=members), scenarios, groups, PAIRS)
    assert found.equals(audit.over_seeds(answers, scenarios, groups, PAIRS))


NAMED = {"a": np.arange(0, 400), "b": np.arange(400, 600)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": lambda rows: rows[:0]}, "There are no answers"),
        ({"answers": lambda rows: rows.drop(columns="reported")}, "no column reported"),
        (
            {"answers": lambda rows: rows.drop(columns="cost")},
            "no column cost; found person",
        ),
        ({"scenarios": {}}, "one scenario or more and one group or more, got 0 and 2"),
        ({"groups": {}}, "got 2 and 0"),
        ({"groups": NAMED | {"a": np.array([-1, 0])}}, r"'a' must hold .* 0 to 599, .* -1"),
        ({"groups": NAMED | {"a": np.array([0, 600])}}, r"must hold .* from 0 to 600"),
        ({"groups": NAMED | {"a": np.ones(600, bool)}}, r"np.flatnonzero gives"),
        (
            {"groups": NAMED | {"a": np.array([0.0])}},
            r"must hold row numbers .* got float64",
        ),
        ({"n_resamples": 0}, "n_resamples must be above zero"),
    ],
)
def test_what_does_not_fit_together_is_named(study, change, message):
    answers, scenarios, groups = study
    given = {"scenarios": scenarios, "groups": groups, "n_resamples": 20, "seed": 0}
    given |= {name: value for name, value in change.items() if name != "answers"}
    answers = change.get("answers", lambda rows: rows)(answers)
    with pytest.raises(ValueError, match=message):
        audit.means(answers, **given)
    with pytest.raises(ValueError, match=message):
        audit.gaps(answers, pairs=PAIRS, **given)
    with pytest.raises(ValueError, match=message):
        audit.growth(answers, pairs=PAIRS, since="s", **given)
    del given["seed"]
    if given.pop("n_resamples"):
        with pytest.raises(ValueError, match=message):
            audit.over_seeds(answers, pairs=PAIRS, **given)
