"""Many applicants by Dask: the same answers, in order, each once, whoever is lost."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from distributed import Client, LocalCluster

from lib.beyond import batches
from lib.beyond.batches import Adviser
from lib.method import report
from lib.method.preferences import LINEAR, Preferences


@pytest.fixture
def applicants(problem, tmp_path):
    """Fifty of Loan's applicants, in five row groups of a Parquet file."""
    frame = problem.population.to_frame(problem.population.x["recourse/test"][:50])
    answers = dict.fromkeys(problem.population.actionable, "easy") | {"income": "can't"}
    frame = frame.assign(**{f"answer_{name}": word for name, word in answers.items()})
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=10)
    return frame


@pytest.mark.parametrize("solver", ["loan_icarma_ranking", "grid"])
@pytest.mark.parametrize("has_answers", [True, False])
def test_an_adviser_answers_as_its_solver_does(applicants, solver, has_answers):
    """Without answers all is easy."""
    adviser = Adviser(solver=solver)
    problem, chosen = batches.load(adviser)
    preferences = Preferences(torch.tensor([[1, 1, 5, 1]] * 50), profile=LINEAR)
    if not has_answers:
        applicants, preferences = applicants[[*problem.population.features]], None
    expected = report.recommend_frame(problem, chosen, applicants, preferences)
    pd.testing.assert_frame_equal(adviser.recommend_frame(applicants), expected)


def test_everybody_is_answered_once_though_a_worker_is_killed(
    applicants, tmp_path, monkeypatch
):
    """Dask's own scheduler, two processes, and one of them dies on the way."""
    monkeypatch.setattr(batches, "PARTITION", "1KiB")
    expected = batches.typed(Adviser(), applicants).reset_index(drop=True)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        (pid, _) = client.run(os.getpid).values()
        kill = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
        kill.start()
        n_people = batches.recommend(
            Adviser(),
            tmp_path / "people.parquet",
            tmp_path / "answers",
            cluster.scheduler_address,
        )
        kill.join()
    assert n_people == 50
    answers = pd.read_parquet(tmp_path / "answers")
    assert len(list((tmp_path / "answers").glob("*.parquet"))) == 5
    assert answers.outcome.equals(expected.outcome)
    numbers = expected.select_dtypes("float64").columns
    np.testing.assert_allclose(answers[numbers], expected[numbers], rtol=1e-3, atol=1e-4)


def test_nobody_and_an_unknown_population_are_refused(applicants, tmp_path):
    applicants[:0].to_parquet(tmp_path / "nobody.parquet")
    with pytest.raises(ValueError, match="no applicants"):
        batches.recommend(Adviser(), tmp_path / "nobody.parquet", tmp_path / "out")
    with pytest.raises(ValueError, match="Unknown population 'lone'"):
        Adviser(population="lone")
