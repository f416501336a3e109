"""What a scenario lets each person act on, against draws of privilege and of rankings."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.io import PARAMS
from lib.method.samplers import RankingSampler
from lib.paper.fairness import groups, scenarios
from lib.paper.fairness.scenarios import Scenario

SCENARIOS = sorted((PARAMS / "scenarios").glob("*.yaml"))


@pytest.fixture(scope="module")
def attributes(population):
    return groups.read_attributes(PARAMS / "groups.yaml", population.features)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_chances_are_those_of_drawing_privilege_and_rankings(path, population, attributes):
    scenario = scenarios.read_scenario(path, attributes, population.actionable)
    kinds = pd.DataFrame(
        {
            "gender": ["women", "men"] * 2,
            "race": ["white", "white", "non-white", "non-white"],
        }
    )
    kinds["income"] = kinds["income_among_applicants"] = [
        "top quarter",
        "lower income",
        "lower income",
        "top quarter",
    ]
    chances = scenario.chances(population.actionable, kinds)
    assert np.allclose(chances.sum(axis=1), 1)
    rng, n_people = np.random.default_rng(0), 40_000
    for i, kind in kinds.iterrows():
        rate = scenario.rates[kind[scenario.by]] if scenario.by else 0.0
        alike = [
            RankingSampler(population.actionable, distribution, scenario.n_actionable)
            for distribution in (scenario.others, scenario.privileged)
        ]
        is_privileged = torch.from_numpy(rng.random(n_people) < rate)[:, None]
        others, privileged = (
            sampler.draw(range(n_people), rng).is_actionable for sampler in alike
        )
        drawn = torch.where(is_privileged, privileged, others)
        for name, mask in scenarios.sets(
            population.actionable, [scenario.n_actionable]
        ).items():
            share = (drawn == mask).all(1).double().mean().item()
            assert share == pytest.approx(
                chances.get(name, pd.Series(0.0, range(4)))[i], abs=0.012
            )  # five standard errors


def test_a_drawn_number_of_features_gives_every_size_its_share(population):
    chances = Scenario("any", None, others="co").chances(
        population.actionable, pd.DataFrame(index=range(2))
    )
    size = pd.Series({name: name.count(",") + 1 for name in chances})
    assert np.allclose(chances.T.groupby(size).sum(), 0.25)


def test_the_privileged_of_the_race_scenario_are_mostly_white(population, attributes):
    scenario = scenarios.read_scenario(
        PARAMS / "scenarios" / "race.yaml", attributes, population.actionable
    )
    chances = scenario.chances(
        population.actionable, pd.DataFrame({"race": ["white", "non-white"]})
    )
    # the best pair of the privileged: 2/3 of them can act on it, of the others nobody
    assert chances["income, savings"].tolist() == pytest.approx([0.9 * 2 / 3, 0.05 * 2 / 3])


def test_preferences_are_of_the_named_features_only(population):
    by_set = scenarios.preferences_by_set(population.actionable, ["income, savings"], 3)
    assert (
        by_set["income, savings"].is_actionable.tolist() == [[False, False, True, True]] * 3
    )


def write(folder, text):
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_actionable: 5", "Expected that people can act on 1 to 4"),
        ("n_actionable: two", "n_actionable is 'two': expected how many"),
        (
            "privileged: {by: race, rates: {white: 1, non-white: 0}}",
            "Nothing is said of n_actionable",
        ),
        (
            "n_actionable: 2\nprivileged: {by: rase, rates: {}}",
            "Unknown attribute that privilege follows: 'rase'.*Did you mean 'race'",
        ),
        (
            "n_actionable: 2\nprivileged: {by: race, rates: {white: 0.9}}",
            "rate within .0, 1. for each label of race, got None for 'non-white'",
        ),
        (
            "n_actionable: 2\nprivileged: {by: race, rates: {white: 90, non-white: 5}}",
            "rate within .0, 1. .*got 90 for 'white'",
        ),
        (
            "n_actionable: 2\nprivileged: {by: race, rates: {white: .nan, non-white: 0}}",
            "got nan for 'white'",
        ),
        (
            "n_actionable: 2\nprivileged: {by: race, rates: {white: 0.9, black: 0.1}}",
            "Unknown label of race 'black'",
        ),
        (
            "n_actionable: 2\nprivileged: {by: race, rate: 0.5}",
            "Unknown entry of privileged 'rate'",
        ),
        (
            "n_actionable: 2\ndistributions: {others: rich}",
            "Unknown permutation distribution 'rich'",
        ),
        ("n_actionable: 2\ndistribution: co", "Unknown entry of a scenario 'distribution'"),
        (
            "n_actionable: 2\ndistributions: {privileged: co}",
            "Unknown kind of people 'privileged'",
        ),
        ("n_actionable: [", "is not YAML"),
        ("- 2", "should hold lines"),
    ],
)
def test_a_wrong_scenario_is_named(tmp_path, population, attributes, text, message):
    with pytest.raises(ValueError, match=f"mine.yaml.*{message}"):
        scenarios.read_scenario(write(tmp_path, text), attributes, population.actionable)


def test_a_scenario_made_by_hand_is_checked_too(population):
    labels = pd.DataFrame({"race": ["white", "non-white"]})
    with pytest.raises(
        ValueError, match=r"rate within .0, 1. for each label of race, got 1.5 for 'white'"
    ):
        Scenario("mine", 2, "race", {"white": 1.5, "non-white": -0.5})
    with pytest.raises(ValueError, match="got None for 'non-white'"):
        Scenario("mine", 2, "race", {"white": 0.5}).chances(population.actionable, labels)
    with pytest.raises(ValueError, match="act on 1 to 4 features, got 7"):
        Scenario("mine", 7).chances(population.actionable, labels)


def test_a_missing_file_says_what_there_is(population, attributes):
    with pytest.raises(
        ValueError, match=r"found none. Those in its folder: any_pair, baseline"
    ):
        scenarios.read_scenario(
            PARAMS / "scenarios" / "class.yaml", attributes, population.actionable
        )


@pytest.mark.parametrize(
    ("by", "rates"),
    [("race", None), ("race", {}), (None, {"white": 0.5}), ("", {"white": 0.5})],
)
def test_privilege_needs_an_attribute_and_rates(by, rates):
    with pytest.raises(
        ValueError, match="expected an attribute and, for each of its labels"
    ):
        Scenario("mine", 2, by, rates)
    with pytest.raises(ValueError, match="Leave both out if nobody is privileged"):
        Scenario("mine", 2, by=by, rates=rates)


def test_people_without_the_label_are_named(population):
    scenario = Scenario("mine", 2, "race", {"white": 0.5, "non-white": 0.5})
    with pytest.raises(ValueError, match=r"people have labels of: 'race'.*one of rase"):
        scenario.rate(pd.DataFrame({"rase": ["white"]}))
    with pytest.raises(ValueError, match="got None for nan"):
        scenario.rate(pd.DataFrame({"race": ["white", np.nan]}))


def test_nobody_is_privileged_without_an_attribute(population):
    labels = pd.DataFrame({"race": ["white", "non-white"]})
    assert Scenario("mine", 2).rate(labels).tolist() == [0, 0]


def test_sets_and_preferences_of_unknown_names():
    assert list(scenarios.sets(("a", "b", "c"), [2])) == ["a, b", "a, c", "b, c"]
    with pytest.raises(ValueError, match="Unknown set of features 'b, a': expected one of"):
        scenarios.preferences_by_set(("a", "b"), ["b, a"], 3)
