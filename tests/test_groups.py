"""Who is compared with whom, and what a scenario lets each person act on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.io import PARAMS
from lib.method import loan
from lib.paper.fairness import groups
from lib.paper.fairness.groups import Attribute

COMPARED = ("gender", "race")


@pytest.fixture(scope="module")
def attributes(population):
    return groups.read_attributes(PARAMS / "groups.yaml", population.features)


@pytest.fixture(scope="module")
def sample(problem, attributes):
    return groups.balanced(
        problem.population, problem.refused("train"), attributes, COMPARED, seed=0
    )


def test_all_cells_have_the_same_size_and_no_one_is_in_two(problem, attributes, sample):
    rows, labels = sample
    assert labels.groupby(list(COMPARED)).size().nunique() == 1 and len(labels) == len(
        rows
    ) == len(set(rows.tolist()))
    gender = (
        problem.refused("train")[rows, 0] > 0
    )  # standardised, so that women lie below zero
    assert (labels.gender.to_numpy() == np.where(gender, "men", "women")).all()
    fewest = min(
        int((problem.refused("train")[:, 0] > 0).sum()),
        int((problem.refused("train")[:, 0] < 0).sum()),
    )
    assert len(rows) == 4 * (fewest // 2)


def test_race_does_not_look_at_any_other_feature(problem, attributes, sample):
    x = problem.refused("train")
    others = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))].clone()
    others[:, 0] = x[:, 0]  # everyone is somebody else but for gender
    rows, labels = groups.balanced(problem.population, others, attributes, COMPARED, seed=0)
    assert (rows == sample[0]).all() and labels.race.equals(sample[1].race)


def test_race_is_associated_with_no_feature_and_not_with_the_label(attributes):
    # p-values of an independent label are uniform: over 300 draws of race, for each
    # feature and for the label
    population = loan.population(50, 50, 4_000, seed=1)
    x, y = population.x["recourse/train"], population.y["recourse/train"].float()
    columns = torch.cat(
        [x[:, 1:], y[:, None]], 1
    )  # all but gender, of which every race has half
    p_values = []
    for seed in range(300):
        rows, labels = groups.balanced(population, x, attributes, COMPARED, seed)
        is_white = torch.tensor((labels.race == "white").tolist())
        assert is_white.float().mean() == 0.5
        result = stats.ttest_ind(
            columns[rows][is_white].double().numpy(),
            columns[rows][~is_white].double().numpy(),
        )
        p_values.append(result.pvalue)
    for name, column_p_values in zip(
        [*population.features[1:], "label"], np.array(p_values).T, strict=True
    ):
        assert stats.kstest(column_p_values, "uniform").pvalue > 1e-3, name


def test_labels_are_cut_where_the_file_says(problem, attributes):
    population, x = problem.population, problem.refused("train")
    income = population.inverse_transform(x)[:, population.features.index("income")]
    of_refused = attributes["income"].read_off(population, x) == "top quarter"
    assert abs(of_refused.mean() - 0.25) < 1 / len(x) + 1e-9
    assert (
        income[torch.from_numpy(of_refused)].min()
        >= income[torch.from_numpy(~of_refused)].max()
    )
    of_applicants = (
        attributes["income_among_applicants"].read_off(population, x) == "top quarter"
    )
    everyone = (
        population.inverse_transform(population.x["recourse/train"])[
            :, population.features.index("income")
        ]
        .double()
        .numpy()
    )
    assert (
        of_applicants == (income.double().numpy() >= np.quantile(everyone, 0.75))
    ).all() and of_applicants.mean() < 0.2
    three = Attribute("age", ("young", "middle", "old"), "age", cuts=(-5.0, 5.0))
    age = population.inverse_transform(x)[:, 1].double().numpy()
    assert (
        three.read_off(population, x)
        == np.select([age < -5, age < 5], ["young", "middle"], "old")
    ).all()


def test_an_attribute_that_is_not_compared_is_labelled_but_not_balanced(
    problem, attributes
):
    drawn = attributes | {"handedness": Attribute("handedness", ("left", "right"))}
    rows, labels = groups.balanced(
        problem.population, problem.refused("train"), drawn, COMPARED, seed=0
    )
    assert set(labels) == {
        "gender",
        "race",
        "income",
        "income_among_applicants",
        "handedness",
    }
    assert 0.3 < (labels.handedness == "left").mean() < 0.7
    of_refused = attributes["income"].read_off(problem.population, problem.refused("train"))
    assert (
        labels.income == of_refused[rows]
    ).all()  # the quarter is of all refused people, whoever is left out


def test_any_attributes_may_be_compared(problem, attributes):
    x = problem.refused("train")
    three = attributes | {"drawn": Attribute("drawn", ("a", "b", "c"))}
    for compared, n_cells in (
        (["race"], 2),
        (["gender"], 2),
        (["race", "drawn"], 6),
        (["drawn", "gender", "race"], 12),
    ):
        _, labels = groups.balanced(problem.population, x, three, compared, seed=0)
        sizes = labels.groupby(compared).size()
        assert len(sizes) == n_cells and sizes.nunique() == 1
        assert len(groups.members(labels, three, compared)) == sum(
            len(three[name].labels) for name in compared
        ) + n_cells * (len(compared) > 1)
    for wrong in ([], ["gender", "gender"]):
        with pytest.raises(ValueError, match="one attribute to compare or more, each once"):
            groups.balanced(problem.population, x, attributes, wrong, seed=0)


def test_groups_are_by_attribute_and_by_cell(attributes):
    labels = pd.DataFrame(
        {
            "gender": ["women", "women", "men", "men"],
            "race": ["white", "non-white", "white", "non-white"],
        }
    )
    members = groups.members(labels, attributes, COMPARED)
    assert {name: rows.tolist() for name, rows in members.items()} == {
        "women": [0, 1],
        "men": [2, 3],
        "white": [0, 2],
        "non-white": [1, 3],
        "white women": [0],
        "non-white women": [1],
        "white men": [2],
        "non-white men": [3],
    }


def write(folder, text):
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "wealth: {feature: wealth, cuts: [1], labels: [poor, rich]}",
            "Unknown feature that the attribute 'wealth' is read off: 'wealth'",
        ),
        (
            "age: {feature: age, labels: [young, old]}",
            "needs 1 ascending cuts or quantiles",
        ),
        (
            "age: {feature: age, cuts: [0], quantiles: [0.5], labels: [young, old]}",
            "not both",
        ),
        (
            "age: {feature: age, cuts: [5, 0], labels: [young, middle, old]}",
            "needs 2 ascending cuts",
        ),
        (
            "age: {feature: age, quantiles: [50], labels: [young, old]}",
            "expected shares within",
        ),
        (
            "age: {feature: age, quantiles: [0.5], of: people, labels: [young, old]}",
            "expected one of refused, applicants",
        ),
        ("age: {feature: '', cuts: [0], labels: [young, old]}", "Unknown feature"),
        ("race: {labels: [white]}", "expected two or more"),
        ("race: {labels: [white, white]}", "each once"),
        ("race: {cuts: [0.5], labels: [white, non-white]}", "none where labels are drawn"),
        (
            "race: {colours: [white, non-white]}",
            "Unknown entry of the attribute 'race' 'colours'",
        ),
        ("race: [white, non-white]", "with values"),
    ],
)
def test_a_wrong_attribute_is_named(tmp_path, population, text, message):
    with pytest.raises(ValueError, match=f"mine.yaml.*{message}"):
        groups.read_attributes(write(tmp_path, text), population.features)


def test_a_cell_without_people_is_named(problem, attributes):
    x = problem.refused("train")
    with pytest.raises(
        ValueError, match="0 are women, but one is needed for each of 2 cells"
    ):
        groups.balanced(problem.population, x[x[:, 0] > 0], attributes, COMPARED, seed=0)
    with pytest.raises(ValueError, match="Unknown attribute to compare: 'religion'"):
        groups.balanced(problem.population, x, attributes, ("religion",), seed=0)


def test_a_group_without_people_and_a_name_for_two_are_refused(attributes):
    labels = pd.DataFrame({"gender": ["women"] * 2, "race": ["white", "non-white"]})
    with pytest.raises(ValueError, match="no one in the group 'men'"):
        groups.members(labels, attributes, COMPARED)
    confused = {
        "race": attributes["race"],
        "wine": replace(attributes["race"], name="wine"),
    }
    with pytest.raises(ValueError, match="'white' is a label of two attributes"):
        groups.members(labels.assign(wine="white"), confused, ("race", "wine"))


def test_what_cannot_be_read_off_is_named(problem, attributes):
    population, x = problem.population, problem.refused("train")
    for people, message in [
        (x[:, 1:], "last axis must hold the 7 features"),
        (x * float("nan"), "NaN or infinite"),
        (x.numpy(), "must be a floating-point tensor"),
    ]:
        with pytest.raises(ValueError, match=message):
            attributes["gender"].read_off(population, people)
        with pytest.raises(ValueError, match=message):
            groups.balanced(population, people, attributes, COMPARED, seed=0)
    with pytest.raises(ValueError, match="'race' is read off no feature"):
        attributes["race"].read_off(population, x)
    with pytest.raises(ValueError, match="Unknown feature 'wealth'"):
        Attribute("rich", ("no", "yes"), "wealth", cuts=(0.0,)).read_off(population, x)
    with pytest.raises(ValueError, match="needs 1 ascending cuts"):
        Attribute("age", ("young", "old"), "age", cuts=(float("nan"),))
    with pytest.raises(ValueError, match="Unknown attribute that people have labels of"):
        groups.members(pd.DataFrame({"gender": ["women"]}), attributes, COMPARED)
