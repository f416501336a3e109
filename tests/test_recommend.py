"""`make recommend`: applicants in Parquet, batch by batch, and what comes back."""

import numpy as np
import pandas as pd
import pytest
import recommend
import torch

from lib import io
from lib.method import report
from lib.method.preferences import LINEAR, Preferences


def double(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["income"]] * 2


@pytest.mark.parametrize("batch_size", [3, 7, 100])
def test_batches_are_joined_in_order(tmp_path, batch_size):
    frame = pd.DataFrame({"income": np.arange(20.0), "age": 30})
    frame[:8].to_parquet(tmp_path / "a.parquet")
    frame[8:].to_parquet(tmp_path / "b.parquet")
    target = tmp_path / "out" / "answers.parquet"
    assert recommend.recommend(double, tmp_path, target, batch_size) == 20
    pd.testing.assert_frame_equal(pd.read_parquet(target), double(frame))
    assert list(target.parent.iterdir()) == [target]


def test_a_batch_that_fails_leaves_no_answers(tmp_path):
    pd.DataFrame({"age": [30]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(KeyError, match="income"):
        recommend.recommend(double, tmp_path / "a.parquet", tmp_path / "b.parquet", 10)
    assert not (tmp_path / "b.parquet").exists()


def test_a_file_without_people_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no applicants"):
        recommend.recommend(double, tmp_path / "empty", tmp_path / "b.parquet", 10)


@pytest.fixture
def applicants():
    """Loan's problem, and fifty applicants in the data's units."""
    problem = recommend.loan_problem(io.MODELS)
    x = problem.population.x["recourse/test"][:50]
    return problem, problem.population.to_frame(x)


@pytest.mark.parametrize("solver", ["loan_icarma_ranking", "grid"])
def test_applicants_of_loan_are_answered_as_one_by_one(tmp_path, applicants, solver):
    problem, frame = applicants
    answers = dict.fromkeys(problem.population.actionable, "easy") | {"income": "can't"}
    frame = frame.assign(**{f"answer_{name}": word for name, word in answers.items()})
    frame.to_parquet(tmp_path / "people.parquet")
    (tmp_path / "mine.yaml").write_text(
        f"solver: {solver}\ninput: {tmp_path}/people.parquet\n"
        f"output: {tmp_path}/answers.parquet\nbatch_size: 20\n"
    )
    recommend.main(tmp_path / "mine.yaml")
    networks = recommend.solver_of(solver, "linear", io.MODELS, problem)
    scores = torch.tensor([[1, 1, 5, 1]] * len(frame))
    expected = report.recommend_frame(problem, networks, frame, Preferences(scores))
    table = pd.read_parquet(tmp_path / "answers.parquet")
    pd.testing.assert_frame_equal(table, expected.reset_index(drop=True))


def test_without_answers_all_is_easy(applicants):
    problem, frame = applicants
    preferences = recommend.preferences_of(frame, problem.population, LINEAR)
    assert preferences.scores.eq(1).all() and len(preferences) == len(frame)
    network = recommend.solver_of("loan_icarma_hard", "linear", io.MODELS, problem)
    with pytest.raises(ValueError, match="trained under"):
        report.recommend_frame(problem, network, frame, preferences)
