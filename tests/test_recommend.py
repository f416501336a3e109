"""`make recommend`: applicants in Parquet, batch by batch, and what comes back."""

import lib.reproducible

import numpy as np
import pandas as pd
import pytest
import recommend

from lib import io


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


# Needs `Problem.recommend_frame` and `ICarma.best` of the new core; then unmark it.
@pytest.mark.skipif(
    not hasattr(recommend.Problem, "recommend_frame"), reason="the new core is not here"
)
def test_applicants_of_loan_are_answered_as_one_by_one(tmp_path):
    problem = recommend.loan_problem(io.MODELS)
    population = problem.population
    people = population.in_units(population.x["recourse/test"][:50]).numpy()
    frame = pd.DataFrame(people, columns=list(population.features))
    frame.to_parquet(tmp_path / "people.parquet")
    (tmp_path / "mine.yaml").write_text(
        f"solver: loan_icarma_hard\ninput: {tmp_path}/people.parquet\n"
        f"output: {tmp_path}/answers.parquet\nbatch_size: 20\n"
    )
    recommend.main(tmp_path / "mine.yaml")
    solver = recommend.solver_of("loan_icarma_hard", io.MODELS, problem)
    expected = problem.recommend_frame(solver, frame)
    answers = pd.read_parquet(tmp_path / "answers.parquet")
    pd.testing.assert_frame_equal(answers, expected.reset_index(drop=True))
