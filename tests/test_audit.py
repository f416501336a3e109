"""Group means, gaps and their intervals, against closed forms and by brute force."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.method import flow
from lib.method.classifier import Classifier
from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem
from lib.method.scm import SCM, Equation, additive
from lib.paper import tables
from lib.paper.fairness import audit
from lib.paper.fairness.audit import simulated
from lib.paper.fairness.bootstrap import TOO_FEW
from lib.paper.fairness.bootstrap import answered as answer
from lib.paper.fairness.groups import Attribute
from lib.search import continuous

PAIRS = {"a - b": ("a", "b")}


def answers_of(
    n_people: int, seed: int = 0, method: str = "oracle", member: int = 0, **columns
) -> pd.DataFrame:
    """Random answers of n_people to two sets of features."""
    rng = np.random.default_rng(seed)
    answers_by_setting = []
    for setting in ("income", "savings"):
        rows = pd.DataFrame({"person": np.arange(n_people), "setting": setting})
        rows = rows.assign(method=method, member=member, reported=member == 0)
        rows["valid"] = rng.random(n_people) < 0.8
        rows["joint"] = rows.valid & (rng.random(n_people) < 0.7)
        rows["cost"] = rng.gamma(2.0, 0.05, n_people)
        rows["log_p_cf"] = rng.normal(-8, 1, n_people)
        answers_by_setting.append(rows.assign(**columns))
    return pd.concat(answers_by_setting, ignore_index=True)


def chances(n_people: int, seed: int = 1) -> pd.DataFrame:
    share = np.random.default_rng(seed).random(n_people)
    return pd.DataFrame({"income": share, "savings": 1 - share})


@pytest.fixture(scope="module")
def study():
    n_people = 600
    networks = (answers_of(n_people, 10 + i, "iCARMA", i) for i in range(3))
    answers = pd.concat([answers_of(n_people), *networks], ignore_index=True)
    groups = {"a": np.arange(0, 400), "b": np.arange(400, 600)}
    return answers, {"s": chances(n_people), "t": chances(n_people, 2)}, groups


def gaps(answers, scenarios, groups, n_resamples=200, pairs=PAIRS):
    """Return the answered gaps."""
    asked = audit.gaps(answers, scenarios, groups, pairs)
    return answer(asked, groups, n_resamples, seed=0)


def test_intervals_of_means_and_differences_are_those_of_the_central_limit():
    answers, n_people = answers_of(900, valid=True), 900
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
    assert (row.low_alone, row.high_alone) == pytest.approx(
        stats.norm.interval(0.95, cost[:500].mean(), error["a"]),
        abs=0.06 * error["a"] * 3.92,
    )
    result = gaps(answers, sure, groups, 4_000)
    row = result.query("measure == 'cost' and kind == 'difference'").squeeze()
    spread = np.hypot(error["a"], error["b"])
    expected = stats.norm.interval(0.95, cost[:500].mean() - cost[500:].mean(), spread)
    ends = (row.low_alone, row.high_alone)
    assert ends == pytest.approx(expected, abs=0.06 * spread * 3.92)
    assert (
        row.low < row.low_alone < row.high_alone < row.high
    )  # five gaps are asked at once


def test_a_gap_is_the_mean_of_the_networks_own_gaps(study):
    answers, scenarios, groups = study
    result = gaps(answers, scenarios, groups)
    result = result[(result.method == "iCARMA") & (result.scenario == "s")]
    result = result.set_index(["measure", "kind"])
    each = []
    for member in range(3):
        rows = answers[(answers.method == "iCARMA") & (answers.member == member)]
        rows = rows.assign(member=0, reported=True)
        each.append(gaps(rows, {"s": scenarios["s"]}, groups, 2))
    for key, row in result.iterrows():
        values = [table.set_index(["measure", "kind"]).loc[key].estimate for table in each]
        assert row.estimate == pytest.approx(np.mean(values)), key
        assert (row.lowest, row.highest) == pytest.approx((min(values), max(values)))
        assert row.reported == pytest.approx(values[0])


def test_ratios_only_where_there_is_a_zero(study):
    answers, scenarios, groups = study
    one = answers[answers.method == "oracle"]
    result = gaps(one, scenarios, groups)
    assert set(result.measure[result.kind == "ratio"]) == {"cost", "joint"}
    means = (
        audit.means(one, scenarios, groups, 50, seed=0)
        .set_index(["scenario", "measure", "group"])
        .estimate
    )
    for row in result.itertuples():
        first, second = (means[row.scenario, row.measure, group] for group in ("a", "b"))
        assert row.estimate == pytest.approx(
            first - second if row.kind == "difference" else first / second
        )
        assert row.low < row.estimate < row.high


def test_growth_pairs_the_same_people(study):
    answers, scenarios, groups = study
    given = scenarios | {"again": scenarios["s"]}
    asked = audit.growth(answers, given, groups, PAIRS, "s")
    grown = answer(asked, groups, 200, seed=0)
    again, other = (grown[grown.scenario == name] for name in ("again", "t"))
    nothing = again.kind.map(audit.NO_GAP)  # nothing changed, so nothing is uncertain
    for name in ("estimate", "low", "high"):
        assert (again[name] - nothing).abs().max() < 1e-12, name
    result = gaps(answers[answers.method == "oracle"], scenarios, groups)
    now, then = (result[result.scenario == name].reset_index() for name in ("t", "s"))
    expected = np.where(
        now.kind == "difference", now.estimate - then.estimate, now.estimate / then.estimate
    )
    of_oracle = other[other.method == "oracle"]
    assert of_oracle.estimate.to_numpy() == pytest.approx(expected)
    with pytest.raises(ValueError, match="Unknown scenario 'u'"):
        audit.growth(answers, scenarios, groups, PAIRS, "u")


def test_too_few_is_said_and_is_never_a_nan(study):
    answers, scenarios, _ = study
    nobody = answers.assign(
        valid=answers.valid & (answers.person != 0),
        joint=answers.joint & (answers.person < 20),
    )
    groups = {"a": np.arange(40), "b": np.arange(20, 50), "one": np.array([0])}
    pairs = {"a - b": ("a", "b"), "a - one": ("a", "one")}
    means = audit.means(nobody, scenarios, groups, 50, seed=0)
    result = gaps(nobody, scenarios, groups, 50, pairs)
    assert not means.isna().any(axis=None) and not result.isna().any(axis=None)
    one = means[(means.group == "one") & (means.measure == "cost")]
    assert (one[["estimate", "low", "high"]] == TOO_FEW).all(axis=None)
    assert one.apply(audit.as_text, axis=1).eq(TOO_FEW).all()
    # 30 people, of whom about 24 are valid
    few = means[(means.group == "b") & (means.measure == "cost")].iloc[0]
    assert few.low == TOO_FEW
    assert audit.as_text(few) == f"{few.estimate:.3f} [too few: {few.n_counted}]"
    costs = result[(result.measure == "cost") & (result.gap == "a - b")]
    assert audit.verdict(costs.iloc[0]) == TOO_FEW
    # nobody in b succeeds: a difference can be given, a ratio can't
    joint = result[(result.measure == "joint") & (result.gap == "a - b")].groupby("kind")
    assert (joint.get_group("ratio").estimate == TOO_FEW).all()
    assert (joint.get_group("difference").low != TOO_FEW).all()


def test_recourse_within_a_budget(study):
    answers, scenarios, groups = study
    of_oracle = answers[answers.method == "oracle"]
    shares = audit.within_budget(of_oracle, scenarios["s"], groups["a"], [0.0, 0.1, np.inf])
    expected = np.zeros(3)
    for row in of_oracle[of_oracle.joint & of_oracle.person.isin(groups["a"])].itertuples():
        expected += (
            scenarios["s"][row.setting][row.person]
            * (np.array([0.0, 0.1, np.inf]) >= row.cost)
            / 400
        )
    assert shares == pytest.approx(expected)


def test_a_share_that_is_true_for_everyone_has_the_exact_interval(study):
    answers, scenarios, groups = study
    for share, expected in ((True, (0.025 ** (1 / 200), 1.0)), (False, None)):
        rows = answers.assign(joint=share)
        means = audit.means(rows, scenarios, groups, 50, seed=0)
        means = means.set_index(["scenario", "method", "group", "measure"])
        row = means.loc[("s", "oracle", "b", "joint")]
        expected = expected or (0.0, 1 - 0.025 ** (1 / 200))  # closed forms
        assert (row.low_alone, row.high_alone) == pytest.approx(expected)


def test_verdicts_know_which_way_is_worse():
    def say(measure, low, high, kind="difference"):
        row = {"measure": measure, "kind": kind, "low": low, "high": high}
        return audit.verdict(pd.Series(row))

    assert say("cost", 0.1, 0.2) == "holds"
    assert say("cost", -0.2, -0.1) == "opposite holds"
    assert say("cost", -0.1, 0.1) == "open"
    assert say("joint", -0.2, -0.1) == "holds"
    assert say("log-density", 0.1, 0.2) == "opposite holds"
    assert say("cost", 1.1, 1.2, "ratio") == "holds"
    assert say("joint", 0.9, 1.1, "ratio") == "open"
    assert say("joint", 0.8, 0.9, "ratio") == "holds"


def test_what_would_be_a_nan_is_refused(study):
    answers, scenarios, groups = study
    broken = answers.assign(log_p_cf=answers.log_p_cf.where(answers.person != 3))
    with pytest.raises(ValueError, match="log_p_cf of person 3 is NaN or infinite"):
        audit.means(broken, scenarios, groups, 50, seed=0)
    unreported = answers.assign(reported=answers.method == "oracle")
    with pytest.raises(ValueError, match="No network of iCARMA is reported"):
        audit.means(unreported, scenarios, groups, 50, seed=0)
    with pytest.raises(ValueError, match="no one in the group 'c'"):
        gaps(answers, scenarios, groups | {"c": np.array([], dtype=int)})
    with pytest.raises(ValueError, match="Unknown group 'z'"):
        gaps(answers, scenarios, groups, pairs={"a - z": ("a", "z")})
    with pytest.raises(ValueError, match="Unknown measure 'price'"):
        audit.gaps(answers, scenarios, groups, PAIRS, ["price"])
    free = gaps(answers.assign(cost=0.0), scenarios, groups)
    free = free.query("measure == 'cost' and kind == 'ratio'")
    assert (free.estimate == TOO_FEW).all()


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
    del given["seed"]
    if given.pop("n_resamples"):
        with pytest.raises(ValueError, match=message):
            audit.gaps(answers, pairs=PAIRS, **given)
        with pytest.raises(ValueError, match=message):
            audit.growth(answers, pairs=PAIRS, since="s", **given)


def test_equal_decisions_do_not_make_equal_recourse():
    """Two groups, x ~ N(0, 10^s) for s = 0 and 1, accepted from zero on.

    Half of either group is accepted. Who is refused has to go to
    zero, at the cost x^2 / range: in the mean 10^s / range, ten times
    as much in one group as in the other.

    Source: Karimi, Barthe, Schölkopf and Valera, A survey of
    algorithmic recourse, section 5.4.1, with 10^s as the variance.
    """
    spread = Equation(
        ("s",),
        lambda pa, u: 10 ** (pa["s"] / 2) * u,
        lambda pa, x: x / 10 ** (pa["s"] / 2),
        stats.norm(),
    )
    truth = SCM({"s": additive((), lambda pa: 0.0, stats.bernoulli(0.5)), "x": spread})
    kinds = {"s": "immutable", "x": "actionable"}
    sizes = {"n_classifier": 100, "n_flow": 200, "n_recourse": 12_000}
    people = Population.from_scm(truth, kinds, lambda x: x[:, 1] >= 0, **sizes)
    h = Classifier(people.features, lambda x: people.inverse_transform(x)[:, 1])
    fitted_to = people.x["flow/train"], people.x["flow/validation"]
    density, _ = flow.fit(people.graph, *fitted_to, n_epochs=1)
    problem = Problem(people, h, density)
    group = Attribute("s", ("narrow", "wide"), "s", cuts=(0.5,))
    everyone = people.x["recourse/test"]
    of_all, rates = group.read_off(people, everyone), {}
    for name in group.labels:
        rates[name] = problem.accepts(everyone[of_all == name]).double().mean()
    assert rates == pytest.approx(dict.fromkeys(group.labels, 0.5), abs=0.04)
    x = problem.refused("test")
    only_x = Preferences(torch.ones(len(x), 1, dtype=torch.long))
    effort = {"n_samples": 8, "n_starts": 1, "n_steps": 5}
    table = continuous.Search(problem, people.truth, slack=np.inf, **effort).table(x)
    answer_of = continuous.Search(problem, people.truth).recommend(x, only_x, table)
    answers = tables.evaluate(problem, {"all": answer_of}, x, {"all": only_x})
    feature_values = people.inverse_transform(x)[:, 1].double()
    in_closed_form = feature_values**2 / people.std[1] ** 2 / problem.range[1]
    assert answers.valid.all()
    assert answers.cost.to_numpy() == pytest.approx(in_closed_form.numpy(), abs=1e-4)
    labels = group.read_off(people, x)
    groups = {name: np.flatnonzero(labels == name) for name in group.labels}
    chances = {"all can": pd.DataFrame({"all": np.ones(len(x))})}
    pairs = {"wide by narrow": ("wide", "narrow")}
    asked = audit.gaps(answers, chances, groups, pairs, ["cost"])
    result = answer(asked, groups, 500, seed=0).set_index(["measure", "kind"])
    ratio = result.loc["cost", "ratio"]
    mean = {name: in_closed_form[who].mean().item() for name, who in groups.items()}
    assert ratio.estimate == pytest.approx(mean["wide"] / mean["narrow"], rel=1e-2)
    # x^2 / variance has the mean 1 and the variance 2
    error = 10 * np.sqrt(sum(2 / len(who) for who in groups.values()))
    assert ratio.estimate == pytest.approx(10, abs=3 * error)
    assert 5 < ratio.low < 10 < ratio.high < 20


# --- what small audits would have seen: nothing, or an interval of known width


SURE = pd.DataFrame({"income": np.ones(600)})
PAIR = np.arange(0, 400), np.arange(400, 600)


def answered(cost: np.ndarray, setting: str = "income") -> pd.DataFrame:
    """Return valid answers with these costs, one for each person."""
    people = {"person": np.arange(len(cost)), "setting": setting, "valid": True}
    return pd.DataFrame(people).assign(cost=cost)


def test_intervals_of_equal_groups_leave_out_zero_in_one_of_twenty():
    n_people, rng = 4_000, np.random.default_rng(0)
    cost = pd.DataFrame(
        {
            "person": range(n_people),
            "setting": "income",
            "cost": rng.gamma(2.0, 0.05, n_people),
            "valid": True,
        }
    )
    everyone = np.arange(n_people)
    simulation = simulated(
        cost,
        "cost",
        pd.DataFrame({"income": np.ones(n_people)}),
        (everyone, everyone),
        [80],
        4_000,
        seed=0,
    )
    # 5 % are expected, with a standard error of 0.3; 80 skewed values need a little more
    assert 0.04 < simulation.seen.item() < 0.065 and simulation.too_few.item() == 0


def test_simulated_audits_draw_one_set_for_each_person():
    answers = pd.concat([answered(np.ones(600)), answered(np.zeros(600), "savings")])
    share = np.where(np.arange(600) < 400, 0.75, 0.25)
    unsure = pd.DataFrame({"income": share, "savings": 1 - share})
    simulation = simulated(answers, "cost", unsure, PAIR, [200], 100, seed=0).squeeze()
    # had chances been averaged, everyone would be alike: no width
    one_each = 2 * 1.96 * np.sqrt(2 * 0.75 * 0.25 / 200)
    assert simulation.width == pytest.approx(one_each, rel=0.05) and simulation.seen == 1


def test_the_interval_of_an_audit_is_that_of_two_means():
    """The width by scipy, for values that all count."""
    cost = np.random.default_rng(1).gamma(2.0, 0.05, 600)
    simulation = simulated(answered(cost), "cost", SURE, PAIR, [50_000], 1, seed=0)
    errors = [stats.sem(cost[who]) * np.sqrt(len(who) / 50_000) for who in PAIR]
    assert simulation.width.item() == pytest.approx(2 * 1.96 * np.hypot(*errors), rel=0.02)


def test_an_audit_of_too_few_people_gives_no_interval():
    answers = answered(np.arange(600.0))
    small = simulated(answers, "cost", SURE, PAIR, [10, 50], 5, seed=0)
    assert small.width[0] == TOO_FEW and small.too_few[0] == 1 and small.seen[0] == 0
    assert small.width[1] > 0 and small.too_few[1] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "price"}, "Unknown measure 'price'"),
        ({"n_audits": 0}, "n_audits must be above zero"),
        ({"sizes": []}, "sizes must be whole numbers"),
        ({"sizes": [50, 0]}, "sizes must be whole numbers"),
        ({"sizes": [50, 0.5]}, "sizes must be whole numbers"),
        ({"pair": (PAIR[0],)}, "two groups, got 1"),
        ({"pair": (PAIR[0], np.array([], dtype=int))}, "no one in the group 'second'"),
        ({"pair": (PAIR[0], PAIR[1] + 1)}, r"'second' must hold row numbers .* 0 to 599"),
        ({"answers": answered(np.ones(5))}, "one answer for each of 600 people"),
    ],
)
def test_audits_that_cannot_be_simulated_are_named(change, message):
    given = {"answers": answered(np.ones(600)), "measure": "cost", "chances": SURE}
    given |= {"pair": PAIR, "sizes": [50], "n_audits": 2, "seed": 0}
    with pytest.raises(ValueError, match=message):
        simulated(**(given | change))
