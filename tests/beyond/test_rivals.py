"""What rivals are asked, and how answers are evaluated, against independent ones."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rivals
import torch

from lib.io import ROOT
from lib.method import metrics
from lib.method.grid import Grid
from lib.method.preferences import Preferences

sys.path.insert(0, str(ROOT / "benchmarks" / "rivals"))
import task as asking

N = 40


@pytest.fixture(scope="module")
def asked() -> rivals.Asked:
    whole = rivals.on_loan()
    return rivals.Asked(
        "Loan", whole.problem, whole.x[:N], whole.preferences[:N], whole.models
    )


@pytest.fixture(scope="module")
def folder(asked: rivals.Asked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rivals") / "Loan"
    rivals.export(asked, folder)
    return folder


@pytest.fixture(scope="module")
def task(folder: Path) -> asking.Task:
    return asking.Task(folder)


def evaluated(asked: rivals.Asked, folder: Path, profiles: pd.DataFrame) -> pd.DataFrame:
    profiles.to_csv(folder / "answers.csv", index_label="person")
    return rivals.evaluate(asked, rivals.read(asked, folder / "answers.csv"))


def test_what_is_exported_is_the_problem(
    asked: rivals.Asked, task: asking.Task, folder: Path
) -> None:
    """And no word of the graph, of what people find hard, or of what is plausible."""
    x = asked.problem.population.standardise(task.people)
    assert torch.allclose(x, asked.x, atol=1e-5)
    odds = torch.from_numpy(task.probability(task.people)).logit()
    assert torch.allclose(odds.float(), asked.problem.log_odds(asked.x), atol=1e-3)
    is_allowed = asked.preferences.is_actionable.numpy()
    for i in range(N):
        names = np.array(asked.problem.population.actionable)[is_allowed[i]]
        assert set(task.open_to(i)) == set(names)
    entries = json.loads((folder / "task.json").read_text())
    assert {*entries} == {"features", "actionable", "whole", "mean", "std", "layers"}


def test_torchs_classifier_is_the_classifier(task: asking.Task) -> None:
    low, high = task.train.min().to_numpy(), task.train.max().to_numpy()
    scaled = torch.tensor(((task.people - low) / (high - low)).to_numpy()).float()
    yes = asking.torch_classifier(task, low, high - low)(scaled).sigmoid()[:, 0]
    assert np.allclose(yes.detach().numpy(), task.probability(task.people), atol=1e-3)


def test_an_action_is_evaluated_as_by_the_studies(
    asked: rivals.Asked, folder: Path
) -> None:
    problem, x = asked.problem, asked.x
    result = Grid(problem, problem.flow).recommend(x, asked.preferences)
    population = problem.population
    profiles = pd.DataFrame(
        population.to_records(result.x_cf).numpy(), columns=population.features
    )
    for k, name in enumerate(population.actionable):
        acts = result.is_acted[:, population.actionable_index[k]]
        profiles[f"sets {name}"] = acts.numpy() * 1.0
    profiles[~result.has_recourse.numpy()] = np.nan
    mine = evaluated(asked, folder, profiles)
    people = metrics.per_person(problem, x, asked.preferences, result)
    assert (mine.answered == result.has_recourse.numpy()).all()
    assert (mine.joint == people.joint).all()
    assert np.allclose(mine.cost, people.cost, atol=1e-4)
    truth = population.truth
    assert truth is not None
    after = truth.counterfactual(x, result.is_acted, result.values)
    helps = problem.accepts(after) & (truth.log_prob(after) >= truth.log_prob(x))
    assert (mine.carried == (helps & result.has_recourse).numpy()).all()
    assert 0 < mine.carried.sum() < mine.joint.sum()
    assert mine.forbidden.sum() == mine.impossible.sum() == 0


def test_a_profile_is_carried_out_by_setting_what_differs(
    asked: rivals.Asked, folder: Path, task: asking.Task
) -> None:
    everybody = rivals.Asked(
        "Loan",
        asked.problem,
        asked.x,
        Preferences(asked.preferences.scores * 0 + 1),
        asked.models,
    )
    profiles = task.people.copy()
    profiles["income"] += 3.0
    mine = evaluated(everybody, folder, profiles)
    truth = asked.problem.population.truth
    assert truth is not None
    after = truth.counterfactual(
        asked.x, do={"income": asked.problem.population.standardise(profiles)[:, 5]}
    )
    assert asked.problem.population.features[5] == "income"
    helps = asked.problem.accepts(after)
    helps &= truth.log_prob(after) >= truth.log_prob(asked.x)
    is_within = profiles["income"] <= float(
        asked.problem.population.inverse_transform(asked.problem.population.high)[5]
    )
    assert (mine.carried == (helps.numpy() & is_within.to_numpy())).all()
    assert (mine.features == 1).all()
    # savings follow from income, so that the profile itself is something else
    log_odds = asked.problem.log_odds(asked.problem.population.standardise(profiles))
    assert (mine.valid == (log_odds >= 0).numpy()).all()


@pytest.mark.parametrize(("name", "by"), [("gender", 1.0), ("age", 5.0), ("income", 1e4)])
def test_who_may_not_do_it_is_not_helped(
    asked: rivals.Asked, folder: Path, task: asking.Task, name: str, by: float
) -> None:
    profiles = task.people.copy()
    profiles[name] = profiles[name] + by
    mine = evaluated(asked, folder, profiles)
    assert (mine.forbidden == 1).all() and (mine.carried == 0).all()


class Refuses:
    """A classifier that accepts nobody."""

    def accepts(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(x), dtype=torch.bool)


def test_a_yes_is_kept_by_the_classifiers_that_give_it(
    asked: rivals.Asked, folder: Path, task: asking.Task
) -> None:
    (task.people + 3.0).to_csv(folder / "answers.csv", index_label="person")
    answers = rivals.read(asked, folder / "answers.csv")
    classifiers = [asked.problem.classifier, Refuses()]
    mine = rivals.evaluate(asked, answers, classifiers)
    assert 0 < mine.valid.sum() < N
    assert (mine["valid anew"] == mine.valid / 2).all()


def test_the_same_again_is_no_answer_and_rounding_is_no_change(
    asked: rivals.Asked, folder: Path, task: asking.Task
) -> None:
    mine = evaluated(asked, folder, task.people.astype(np.float32))
    assert (mine.answered == 0).all() and (mine.forbidden == 0).all()


def test_who_was_not_reached_is_left_out(
    asked: rivals.Asked, folder: Path, task: asking.Task
) -> None:
    mine = evaluated(asked, folder, task.people.head(7))
    assert mine.answered.notna().sum() == 7


def test_the_stored_result_has_everybody() -> None:
    table = pd.read_csv(rivals.PATH)
    for name, rows in table[table.people == "all"].groupby("problem"):
        expected = {
            (package, method, seed)
            for package, methods in rivals.RIVALS.items()
            for method, seeds in methods.items()
            for seed in seeds
            if name == "Loan" or method not in rivals.LOAN_ALONE
        }
        stored = rows[["package", "method", "seed"]].itertuples(index=False, name=None)
        stored = set(stored)
        assert stored <= expected
        unranked = {("ce-library", "PPCEF", 0), ("dice-ml", "gradient", 0)}
        assert {run for run in expected if run[2] == 0} <= stored | unranked
    assert not table.duplicated(rivals.KEY).any()
    assert (table[["valid", "plausible"]].min(axis=1) + 1e-9 >= table.joint).all()
    outcomes = table.carried + table["bank says no"] + table["too rare"]
    assert (outcomes <= table.answered + 2e-3).all()
    assert (outcomes + table.forbidden + 2e-3 >= table.answered).all()
    assert (table["valid anew"] <= table.valid + 1e-9).all()
    assert (table[table.method == "PPCEF, held"].forbidden == 0).all()
    searched = table[table.method.str.contains("search|grid")]
    assert len(searched) >= 6 and (searched.forbidden == 0).all()
    # what is stored is rounded, which costs one person at a bound of whole numbers
    assert (searched.joint >= searched.answered - 0.01).all()
