"""Who is compared with whom, and what a scenario lets each person act on."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method.samplers import RankingSampler
from lib.paper.fairness import groups
from lib.paper.fairness.groups import SCENARIOS, Scenario


@pytest.fixture(scope="module")
def sample(problem):
    return groups.draw_people(problem.population, problem.refused("train"), seed=0)


def test_all_cells_have_the_same_size_and_no_one_is_in_two(problem, sample):
    rows, labels = sample
    x = problem.refused("train")
    assert labels.groupby(["gender", "race"]).size().nunique() == 1
    assert len(labels) == len(rows) == len(set(rows.tolist()))
    is_man = x[rows, 0] > 0  # standardised, so that women lie below zero
    assert (labels.gender.to_numpy() == np.where(is_man, "men", "women")).all()
    fewest = min(int((x[:, 0] > 0).sum()), int((x[:, 0] < 0).sum()))
    assert len(rows) == 4 * (fewest // 2)


def test_race_does_not_look_at_any_other_feature(problem, sample):
    x = problem.refused("train")
    others = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))].clone()
    others[:, 0] = x[:, 0]  # everyone is somebody else but for gender
    rows, labels = groups.draw_people(problem.population, others, seed=0)
    assert (rows == sample[0]).all() and labels.race.equals(sample[1].race)


def test_the_top_quarter_is_of_all_refused(problem, sample):
    population, x = problem.population, problem.refused("train")
    column = population.features.index("income")
    income = population.inverse_transform(x)[:, column].double().numpy()
    rows, labels = sample
    bound = sorted(income)[int(0.75 * len(income))]
    is_top = (labels.income == "top quarter").to_numpy()
    assert abs((income >= bound).mean() - 0.25) < 0.01
    assert (is_top == (income[rows] >= bound)).mean() > 0.999  # all but at the bound


@pytest.mark.parametrize("name", SCENARIOS)
def test_chances_are_those_of_drawing_privilege_and_rankings(name, population):
    scenario = SCENARIOS[name]
    labels = pd.DataFrame(
        {
            "gender": ["women", "men"] * 2,
            "race": ["white", "white", "non-white", "non-white"],
            "income": ["top quarter", "lower income"] * 2,
        }
    )
    chances = scenario.chances(population.actionable, labels)
    assert np.allclose(chances.sum(axis=1), 1)

    rng, n_people, k = np.random.default_rng(0), 40_000, scenario.n_actionable
    everyone = "non_privileged" if scenario.by else "uniform"
    for i, label in labels.iterrows():
        rate = scenario.rates[label[scenario.by]] if scenario.by else 0.0
        is_privileged = torch.from_numpy(rng.random(n_people) < rate)[:, None]
        others, privileged = (
            RankingSampler(population.actionable, distribution, k)
            .draw(range(n_people), rng)
            .is_actionable
            for distribution in (everyone, "privileged")
        )
        drawn = torch.where(is_privileged, privileged, others)
        for of, mask in groups.sets(population.actionable, k).items():
            share = (drawn == mask).all(1).double().mean().item()
            expected = chances[of][i] if of in chances else 0.0
            assert share == pytest.approx(expected, abs=0.012)  # five standard errors


def test_preferences_are_of_the_named_features_only(population):
    by_set = groups.preferences_by_set(population.actionable, ["income, savings"], 3)
    is_actionable = by_set["income, savings"].is_actionable
    assert is_actionable.tolist() == [[False, False, True, True]] * 3


def test_what_cannot_be_is_refused(problem):
    x = problem.refused("train")
    with pytest.raises(ValueError, match="too few are women, or men, for two cells"):
        groups.draw_people(problem.population, x[x[:, 0] > 0], seed=0)
    with pytest.raises(ValueError, match="rate of 'white' is 90: expected the share"):
        Scenario(2, "race", {"white": 90, "non-white": 5})
