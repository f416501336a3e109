"""Means over people and over their chances, by brute force."""

import numpy as np
import pandas as pd
import pytest

from lib.paper.fairness.measures import MEASURES, Mean, wide

N_PEOPLE = 60


@pytest.fixture(scope="module")
def answers():
    """Random answers of one network to two sets of features, people in no order."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            {"person": person, "setting": setting, "seed": 0}
            for person in rng.permutation(N_PEOPLE)
            for setting in ("savings", "income")
        ]
    )
    rows["valid"] = rng.random(len(rows)) < 0.8
    rows["joint"] = rows.valid & (rng.random(len(rows)) < 0.7)
    rows["has_recourse"] = rows.valid | (rng.random(len(rows)) < 0.5)
    rows["hard_action"] = rng.random(len(rows)) < 0.4
    for name in ("cost", "log_p_cf", "weighted_cost"):
        rows[name] = rng.normal(0, 1, len(rows))
    return rows


@pytest.fixture(scope="module")
def chances():
    share = np.random.default_rng(1).random(N_PEOPLE)
    return pd.DataFrame({"income": share, "savings": 1 - share})


@pytest.mark.parametrize("name", MEASURES)
def test_a_mean_is_over_people_and_over_their_chances(answers, chances, name):
    measure, who = MEASURES[name], np.arange(20, 50)
    above = below = 0.0
    for row in answers.itertuples():
        is_counted = measure.over is None or getattr(row, measure.over)
        if row.person in who and is_counted:
            chance = chances[row.setting][row.person]
            above += chance * getattr(row, measure.column)
            below += chance
    mean = Mean.of(answers, measure, chances)
    assert mean(who) == pytest.approx(np.array([[above / below]]))
    assert mean.n_counted(who) == round(below) and mean.n_successes(who) == round(above)
    expected = round(above) if name in ("joint", "hap") else round(below)
    assert mean.n_in_ratio(who, measure) == expected
    drawn = np.random.default_rng(2).choice(30, (4, 30))  # resampled people
    counts = np.stack([np.bincount(rows, minlength=30) for rows in drawn])
    by_hand = [mean(who[rows]).item() for rows in drawn]
    assert mean(who, counts)[:, 0] == pytest.approx(by_hand)


def test_every_network_has_its_own_mean(answers, chances):
    several = pd.concat(
        answers.assign(member=number, cost=answers.cost + number, reported=number == 4)
        for number in (9, 4, 7)
    )
    mean, who = Mean.of(several, MEASURES["cost"], chances), np.arange(N_PEOPLE)
    alone = Mean.of(answers, MEASURES["cost"], chances)(who).item()
    assert mean(who)[0] == pytest.approx([alone + 4, alone + 7, alone + 9])
    assert mean.reported == 0  # members in the order of their ids
    with pytest.raises(ValueError, match="3 networks are marked as reported"):
        Mean.of(several.assign(reported=True), MEASURES["cost"], chances)
    fewer = several[(several.member != 7) | (several.person > 0)]
    with pytest.raises(ValueError, match="one answer for each of 60 people"):
        Mean.of(fewer, MEASURES["cost"], chances)


def test_a_ratio_of_nothing_rests_on_nobody(answers, chances):
    mean = Mean.of(answers.assign(cost=0.0), MEASURES["cost"], chances)
    assert mean.n_in_ratio(np.arange(10), MEASURES["cost"]) == 0


def test_a_set_without_a_column_has_no_chance(answers):
    sure = pd.DataFrame({"income": np.ones(N_PEOPLE)})
    alone = answers[(answers.setting == "income") & answers.valid]
    mean = Mean.of(answers, MEASURES["cost"], sure)
    assert mean(np.arange(N_PEOPLE)).item() == pytest.approx(alone.cost.mean())


def test_values_stand_where_the_chances_do(answers, chances):
    values = wide(answers, "cost", chances)
    for row in answers.itertuples():
        assert values[row.person, list(chances).index(row.setting)] == row.cost


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: pd.concat([rows, rows.assign(seed=1)]), "several seeds or methods"),
        (
            lambda rows: rows[rows.person < 10],
            "one answer for each of 60 people and 2 sets",
        ),
        (lambda rows: rows.assign(person=rows.person + 7), "Expected one answer"),
        (lambda rows: rows[1:], r"\(income; savings\), got 119"),
        (lambda rows: rows[:0], "There are no answers"),
        (lambda rows: rows.drop(columns="cost"), "no column cost; found person, setting"),
        (lambda rows: rows.drop(columns="valid"), "no column valid"),
        (lambda rows: rows.assign(cost=np.nan), r"cost of person \d+ is NaN or infinite"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers, chances, change, message):
    with pytest.raises(ValueError, match=message):
        Mean.of(change(answers), MEASURES["cost"], chances)


@pytest.mark.parametrize(
    ("share", "message"),
    [(np.nan, "chances must be"), (-0.5, "chances must be"), (np.inf, "chances must be")],
)
def test_chances_that_are_none_are_refused(answers, chances, share, message):
    wrong = chances.assign(income=share)
    with pytest.raises(ValueError, match=message):
        Mean.of(answers, MEASURES["joint"], wrong)


def test_who_does_not_count_may_be_nan(answers, chances):
    unknown = answers.assign(cost=answers.cost.where(answers.valid))
    who = np.arange(N_PEOPLE)
    means = [Mean.of(rows, MEASURES["cost"], chances)(who) for rows in (answers, unknown)]
    assert means[0] == means[1]
