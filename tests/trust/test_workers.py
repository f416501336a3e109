"""Workers that share a search: signs of life, a killed worker, a real database."""

import contextlib
import getpass
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import optuna
import pandas as pd
import pytest
import sqlalchemy
import tune
import yaml
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState

from lib.paper import stacks, tuning, workers

ROOT = Path(__file__).parents[2]


def wait_until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def long_ago(storage: optuna.storages.RDBStorage) -> None:
    """Make all signs of life old."""
    with storage.engine.begin() as connection:
        old = "UPDATE trial_heartbeats SET heartbeat = '2000-01-01 00:00:00.000000'"
        connection.execute(sqlalchemy.text(old))


def test_trials_without_a_sign_of_life_are_failed_and_tried_again(tmp_path):
    storage = workers.database(f"sqlite:///{tmp_path}/tuning.db")
    study = optuna.create_study(storage=storage)
    with workers.SignsOfLife(storage) as killed:
        abandoned = killed.ask(study)
        proposed = abandoned.suggest_float("x", 0, 1)
        long_ago(storage)
        with workers.SignsOfLife(storage) as signs:
            signs.ask(study)
            signs.fail_abandoned([study])
            again = signs.ask(study)
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
    assert again.suggest_float("x", 0, 1) == proposed


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_a_worker_that_ended_before_its_first_sign_is_noticed(tmp_path):
    storage = workers.database(f"sqlite:///{tmp_path}/tuning.db")
    study = optuna.create_study(storage=storage)
    for begun in (study, optuna.create_study(storage=storage)):
        begun.ask()  # and killed at once
    with workers.SignsOfLife(storage) as signs:
        signs.fail_abandoned([study])
        assert [trial.state for trial in study.trials] == [TrialState.RUNNING]
        long_ago(storage)
        signs.fail_abandoned([study])
        signs.fail_abandoned([study])
    assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.WAITING]
    with storage.engine.begin() as connection:
        signed = "SELECT study_id FROM trials JOIN trial_heartbeats USING (trial_id)"
        found = connection.scalars(sqlalchemy.text(signed)).all()
    assert set(found) == {storage.get_study_id_from_name(study.study_name)}


def test_signs_of_life_go_on_as_long_as_a_batch(tmp_path):
    storage = workers.database(f"sqlite:///{tmp_path}/tuning.db", interval=1)
    study = optuna.create_study(storage=storage)

    def newest() -> str:
        with storage.engine.begin() as connection:
            newest = sqlalchemy.text("SELECT max(heartbeat) FROM trial_heartbeats")
            return connection.execute(newest).scalar()

    with workers.SignsOfLife(storage) as signs:
        signs.ask(study)
        long_ago(storage)
        wait_until(lambda: newest() > "2001")
    long_ago(storage)
    time.sleep(1.2)
    assert newest() < "2001"


@pytest.mark.parametrize("while_it", ["_suggest", "_judge"])
def test_a_worker_that_was_taken_for_dead_does_not_stop_the_search(
    problem, monkeypatch, tmp_path, while_it
):
    """It comes back after a long sleep: its proposals are somebody else's now."""
    storage = workers.database(f"sqlite:///{tmp_path}/tuning.db")
    studies = tuning.open_studies("score", storage)
    nothing = dict.fromkeys(studies, problem.refused("validation")[:, 0] * 0)
    search = tuning.Search(problem, "score", studies, nothing, None, storage)

    suggest = tuning._suggest

    def sleep(now):
        for study in studies.values() if now == while_it else ():
            study.tell(0, state=TrialState.FAIL, skip_if_finished=True)

    def slow_suggest(*asked):
        sleep("_suggest")
        return suggest(*asked)

    def slow_judge(self, proposals, numbers, progress):
        sleep("_judge")
        return [dict.fromkeys(("has_recourse", *tuning.OBJECTIVES), 1.0)] * len(proposals)

    monkeypatch.setattr(tuning, "_suggest", slow_suggest)
    monkeypatch.setattr(tuning.Search, "_judge", slow_judge)
    search.run_batch(1)
    assert search.n_finished == 0
    assert {t.state for study in studies.values() for t in study.trials} == {
        TrialState.FAIL
    }


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("tuning.db", r"The storage tuning.db is not understood"),
        ("nothing://host/x", r"The storage nothing://host/x is not understood"),
        ("postgresql+asyncpg2://me:secret@host/x", r"storage postgresql\+asyncpg2://me@"),
        ("sqlite:////nowhere/tuning.db", r"does not answer: unable to open database"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(url, message):
    with pytest.raises(ValueError, match=message):
        workers.database(url)


def test_a_database_of_another_optuna_is_named(tmp_path):
    """As an older one, and one that is not yet known, would have left it."""
    path = tmp_path / "tuning.db"
    workers.database(f"sqlite:///{path}")
    for version in ("v2.6.0.a", "v9.0.0.a"):
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE alembic_version SET version_num = ?", [version])
        with pytest.raises(ValueError, match=r"tuning\.db was made by another version of"):
            workers.database(f"sqlite:///{path}")


@pytest.mark.parametrize("said", ["", " \n", "denied\nhint"])
@pytest.mark.parametrize("kind", ["OperationalError", "ProgrammingError", "IntegrityError"])
def test_a_database_that_says_nothing_is_named(monkeypatch, kind, said):
    """It is asked again where another worker may have been faster, and then given up."""
    asked = []

    def fails(*arguments, **options):
        asked.append(arguments)
        raise getattr(sqlalchemy.exc, kind)("SELECT 1", {}, sqlite3.Error(said))

    monkeypatch.setattr(workers, "RDBStorage", fails)
    monkeypatch.setattr(workers.time, "sleep", lambda seconds: None)
    why = "denied" if said.strip() else "Error"
    with pytest.raises(ValueError, match=rf"sqlite:///a\.db does not answer: {why}$"):
        workers.database("sqlite:///a.db")
    assert len(asked) == (1 if kind == "OperationalError" else workers.N_ATTEMPTS)


DRIVER = sqlite3.OperationalError("the server closed the connection\nhint")


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_a_database_that_goes_away_ends_in_a_sentence(monkeypatch, is_wrapped):
    """As Optuna says it, and as it comes from a query of ours."""

    def gone(arguments):
        error = sqlalchemy.exc.OperationalError("SELECT 1", {}, DRIVER)
        if is_wrapped:
            raise StorageInternalError("An exception is raised") from error
        raise error

    monkeypatch.setattr(tune, "run", gone)
    monkeypatch.setattr(sys, "argv", ["tune.py", "score"])
    said = r"^The database failed \(the server closed the connection\)\. The same command"
    with pytest.raises(SystemExit, match=said):
        tune.main()


# --- PostgreSQL


@pytest.fixture
def postgresql() -> Iterator[str]:
    """A server of its own, in a folder that is removed; yields its URL."""
    pytest.importorskip("psycopg")
    places = [os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    initdb = shutil.which("initdb", path=os.pathsep.join(places))
    if not initdb:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    is_root = os.geteuid() == 0  # whom the server refuses
    user = "postgres" if is_root else getpass.getuser()
    as_user = {"user": user, "group": user, "extra_groups": []} if is_root else {}
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # a socket's path has to be short
    try:
        if is_root:
            shutil.chown(folder, user)
        data = folder / "data"
        create = [
            initdb,
            "--pgdata",
            data,
            "--auth=trust",
            "--no-sync",
            f"--username={user}",
        ]
        subprocess.run(
            create,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=120,
            **as_user,
        )
        serve = [Path(initdb).with_name("postgres"), "-D", data, "-k", folder, "-h", ""]
        with open(folder / "log", "w") as log:
            server = subprocess.Popen(serve, cwd=folder, stdout=log, stderr=log, **as_user)
        try:
            wait_until((folder / ".s.PGSQL.5432").exists)
            yield f"postgresql+psycopg://{user}@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)  # at once, whoever is connected
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


# `make tune` in small: little is trained, and only when the file `go` is there; a second
# counts as a minute
WORKER = """
import lib.pinned
import functools, pathlib, sys, time
import tune
from optuna.distributions import CategoricalDistribution, FloatDistribution
from lib.paper import tuning, workers

go = pathlib.Path(sys.argv.pop())
fit = tuning.training.fit
def wait_and_fit(*arguments, **others):
    while not go.exists():
        time.sleep(0.05)
    return fit(*arguments, **others)
tuning.training.fit = wait_and_fit
tune.EFFORT["score"] = {"n_scouts": 2, "n_starts": 1, "n_steps": 1}
tuning.SPACE["n_epochs"] = CategoricalDistribution((1,))
for name, low, high in ("hinge", 1.0, 2.0), ("plausibility", 0.05, 0.1):
    tuning.SPACE[name] = FloatDistribution(low, high, log=True)
workers.database = functools.partial(workers.database, interval=1)
tune.main()
"""


def test_two_workers_share_a_search_and_one_is_killed(postgresql, tmp_path):
    """Both find an empty database; the killed one's proposals are tried by the other."""
    before = {path: path.read_bytes() for path in (ROOT / "params").rglob("*.*")}
    results, go = tmp_path / "mine", tmp_path / "go"
    command = ["--storage", postgresql, "--folder", str(results)]
    command += ["--trials", "2", "--batch", "1", "--finalists", "1", str(go)]
    killed, other = (
        subprocess.Popen(
            [sys.executable, "-c", WORKER, "score", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    )
    try:
        storage = workers.database(postgresql)

        def running() -> list[optuna.trial.FrozenTrial]:
            assert killed.poll() is None, killed.communicate()[0]
            assert other.poll() is None, other.communicate()[0]
            return [
                trial
                for study in optuna.get_all_study_names(storage)
                for trial in optuna.load_study(study_name=study, storage=storage).trials
                if trial.state == TrialState.RUNNING
                and trial.params.keys() >= tuning.SPACE.keys()
            ]

        n_profiles = len(stacks.SEARCHES["score"])
        wait_until(lambda: len(running()) == 2 * n_profiles)
        killed.kill()
        time.sleep(3.1)  # the other one waits as long, and is seen to be alive
        go.touch()
        output, _ = other.communicate(timeout=300)
        assert other.returncode == 0, output
    finally:
        for worker in (killed, other):
            worker.kill()
            worker.communicate()
    for study in tuning.open_studies("score", storage).values():
        (failed,) = study.get_trials(states=[TrialState.FAIL])
        *single, finalist = tuning.finished(study)
        assert len(study.trials) == 4
        assert finalist.user_attrs["n_seeds"] == 3
        (again,) = [t for t in single if t.system_attrs.get("failed_trial") is not None]
        assert again.system_attrs["failed_trial"] == failed.number
        assert again.params == failed.params
    assert sorted(path.name for path in results.iterdir()) == [
        *("cheapest_score.safetensors", "trials_score.csv", "tuned_score.yaml")
    ]
    assert pd.read_csv(results / "trials_score.csv").chosen.sum() == n_profiles
    assert len(yaml.safe_load((results / "tuned_score.yaml").read_text())) == n_profiles
    assert {path: path.read_bytes() for path in (ROOT / "params").rglob("*.*")} == before
