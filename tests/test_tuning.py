"""The search for settings at its smallest: batches, resuming, and what the rule sees."""

import ast
import copy
import dataclasses
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import optuna
import pandas as pd
import pytest
import torch
import tune
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage

from lib.base import files, fits
from lib.method.icarma import ICarma
from lib.method.preferences import Profile
from lib.method.problem import Recommendation
from lib.paper import selection, stacks, tuning
from lib.search import continuous

ROOT = Path(__file__).parents[1]
SHORT = {"n_epochs": 1, "hidden": 32}


@pytest.fixture(autouse=True)
def no_high_prices(monkeypatch):
    """Proposals under which networks recommend something after a single epoch."""
    strong = ("mask", 1e-4, 1e-3), ("hinge", 1.0, 2.0), ("plausibility", 0.05, 0.1)
    for name, low, high in strong:
        narrow = FloatDistribution(low, high, log=True)
        monkeypatch.setitem(tuning.SPACE, name, narrow)


@pytest.fixture(scope="module")
def cheapest(problem):
    """A search of little effort for the constant profile, for all."""
    x = problem.refused("validation")
    table = continuous.Search(
        problem, problem.flow, n_scouts=16, n_starts=1, n_steps=3
    ).table(x)
    may = tuning.judged_by(problem, "ranking").is_actionable
    return dict.fromkeys(stacks.SEARCHES["ranking"], table.cheapest(may)[0])


@pytest.fixture
def opened(problem, cheapest):
    """A search, opened as often as it is called: as another worker, or after a stop."""
    in_memory = InMemoryStorage()

    def opened(elicitation, storage=in_memory):
        studies = tuning.open_studies(elicitation, storage)
        return tuning.Search(problem, elicitation, studies, cheapest, SHORT)

    return opened


def test_a_batch_is_told_and_a_search_goes_on(opened, tmp_path):
    database = f"sqlite:///{tmp_path / 'tuning.db'}"
    search = opened("score", database)
    search.run_batch(n_each=2)
    again = opened("score", database)
    again.run_batch(n_each=1)
    assert search.n_finished == again.n_finished == 3
    for study in again.studies.values():
        assert len(tuning.finished(study)) == 3
        for trial in tuning.finished(study):
            assert trial.values == [trial.user_attrs[name] for name in tuning.OBJECTIVES]
            for name, distribution in tuning.SPACE.items():
                assert distribution._contains(
                    distribution.to_internal_repr(trial.params[name])
                ), name


def test_every_profile_has_the_same_space(opened):
    search = opened("ranking")
    search.run_batch(n_each=1)
    asked = [tuning.finished(study)[0] for study in search.studies.values()]
    assert len(asked) == 4 and all(t.distributions == tuning.SPACE for t in asked)
    # seed 0 each, but not one network
    assert len({(t.user_attrs["validity"], t.user_attrs["n_acted"]) for t in asked}) > 1


def test_an_interrupted_batch_is_not_waited_for(opened, monkeypatch):
    search = opened("ranking")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.training, "fit", stop)
    with pytest.raises(KeyboardInterrupt):
        search.run_batch(n_each=1)
    states = {t.state for study in search.studies.values() for t in study.trials}
    assert states == {optuna.trial.TrialState.FAIL}


def test_a_proposal_that_recommends_nothing_fails(opened, monkeypatch):
    search = opened("score")

    def nothing(self, x, preferences):
        x = x.expand(self.n_members, -1, -1)
        return Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)

    monkeypatch.setattr(ICarma, "recommend", nothing)
    search.run_batch(n_each=1)
    assert search.n_finished == 0
    for study in search.studies.values():
        assert [t.state for t in study.trials] == [optuna.trial.TrialState.FAIL]


def test_measured_by_hand(problem, people, cheapest):
    """The cheapest known recommendation is as efficient as can be, at any weights."""
    x, preferences = problem.refused("validation"), tuning.judged_by(problem, "ranking")
    profile = Profile(1.0, stacks.W_MAX, 0.01)
    weights = profile.weight(preferences)
    effort = {"n_scouts": 16, "n_starts": 1, "n_steps": 3}
    table = continuous.Search(problem, problem.flow, **effort).table(x, weights)
    lowest, _ = table.cheapest(preferences.is_actionable)
    found = continuous.Search(problem, problem.flow).recommend(x, preferences, table)
    measured = tuning.measure(problem, x, preferences, found, profile, lowest)
    assert measured["efficiency"] == pytest.approx(measured["joint"], abs=1e-4)
    assert measured["cost_ratio"] == pytest.approx(1, abs=1e-4)
    half = tuning.measure(problem, x, preferences, found, profile, lowest / 2)
    assert half["efficiency"] == pytest.approx(measured["joint"] / 2, abs=1e-4)
    assert half["cost_ratio"] == pytest.approx(2, abs=1e-4)


def test_the_rule_by_hand():
    """Of 400 people 0.5 has a standard error of 0.025: who helps 0.45 or more is kept."""
    trials = pd.DataFrame(
        {
            "joint": [0.50, 0.46, 0.44, 0.46],
            "efficiency": [0.10, 0.20, 0.90, 0.30],
            "n_people": 400,
        }
    )
    assert selection.kept(trials).tolist() == [True, True, False, True]
    assert selection.ranked(trials).index.tolist() == [3, 1, 0, 2]
    with pytest.raises(ValueError, match="candidates is empty"):
        selection.kept(trials[:0])
    with pytest.raises(ValueError, match="Unknown column 'efficiency'"):
        selection.ranked(trials.drop(columns="efficiency"))


def test_finalists_are_the_best_so_far_and_the_choice_is_among_them(opened):
    search = opened("ranking")
    search.run_batch(n_each=3)
    before = search.trials_table()
    for _ in range(2):  # another worker, or the same command again, finds them done
        search.run_finalists(n_each=1, seeds=[1001, 1002])
    after = search.trials_table()
    assert len(after) == len(before) + len(stacks.SEARCHES["ranking"])
    for profile in stacks.SEARCHES["ranking"]:
        best = selection.ranked(before[before.profile == profile]).iloc[0]
        chosen = after[(after.profile == profile) & after.chosen].squeeze()
        assert chosen.n_seeds == 2
        for name in tuning.SPACE:
            assert chosen[name] == pytest.approx(best[name]), name


def test_a_finalist_that_another_worker_trained_meanwhile_is_told_once(opened, monkeypatch):
    """Both find it missing, and both train it; the slower one sees that it is there."""
    faster, slower = opened("ranking"), opened("ranking")
    faster.run_batch(n_each=1)
    fit, begun = tuning.training.fit, []

    def overtaken(*arguments, **others):
        if not begun:
            begun.append(True)
            faster.run_finalists(n_each=1, seeds=[1001, 1002])
        return fit(*arguments, **others)

    monkeypatch.setattr(tuning.training, "fit", overtaken)
    slower.run_finalists(n_each=1, seeds=[1001, 1002])
    assert begun
    table = slower.trials_table()
    assert table[table.n_seeds == 2].profile.tolist() == list(stacks.SEARCHES["ranking"])


def test_finalists_go_on_after_a_kill(problem, cheapest, monkeypatch, tmp_path):
    """Stopped in the second of three epochs, they end as if nothing had happened."""
    monkeypatch.setattr(fits, "steps", partial(fits.steps, every=0.0))
    folder, of_others, seen = tmp_path / "kept", tmp_path / "of_others", []

    def opened(name):
        studies = tuning.open_studies("ranking", f"sqlite:///{tmp_path / name}")
        shared = SHORT | {"n_epochs": 3}
        return tuning.Search(problem, "ranking", studies, cheapest, shared)

    def killed(epochs):
        for epoch in epochs:
            if epoch == 1:
                raise KeyboardInterrupt
            yield epoch

    def noted(epochs):
        seen.extend(epochs)
        return epochs

    opened("killed").run_batch(n_each=1)
    for name in ("in one go", "other code"):
        shutil.copy(tmp_path / "killed", tmp_path / name)
    with pytest.raises(KeyboardInterrupt):
        opened("killed").run_finalists(1, tune.FINALIST_SEEDS, killed, folder)
    shutil.copytree(folder, of_others)
    opened("killed").run_finalists(1, tune.FINALIST_SEEDS, noted, folder)
    assert seen == [1, 2]
    assert not list(folder.iterdir())
    opened("in one go").run_finalists(1, tune.FINALIST_SEEDS)
    ends = [opened(name).trials_table() for name in ("killed", "in one go")]
    pd.testing.assert_frame_equal(*ends)
    monkeypatch.setattr(fits, "code", lambda inputs: {})  # other code begins anew
    opened("other code").run_finalists(1, tune.FINALIST_SEEDS, noted, of_others)
    assert seen == [1, 2, 0, 1, 2]
    pd.testing.assert_frame_equal(opened("other code").trials_table(), ends[0])


def test_the_lowest_costs_are_kept_and_found_anew_for_another_flow(
    problem, monkeypatch, tmp_path, capsys
):
    """`make tune` goes on from what it kept, also if it was killed between two profiles."""
    search, calls = continuous.Search.table, []
    little = {"n_scouts": 2, "n_starts": 1, "n_steps": 1}
    profiles = stacks.SEARCHES["ranking"]

    def counted(asked, x, weights):
        if len(calls) == 2:
            calls.append("killed")
            raise KeyboardInterrupt
        calls.append(asked.problem)
        return search(asked, x, weights)

    def equal(one, other):
        return all(torch.equal(one[profile], other[profile]) for profile in profiles)

    monkeypatch.setattr(continuous.Search, "table", counted)
    monkeypatch.setitem(tune.EFFORT, "ranking", little)
    with pytest.raises(KeyboardInterrupt):
        tune.cheapest_known(problem, "ranking", tmp_path)
    found = tune.cheapest_known(problem, "ranking", tmp_path)
    assert calls == [problem, problem, "killed", problem, problem]
    assert equal(tune.cheapest_known(problem, "ranking", tmp_path), found)
    assert len(calls) == 5
    assert equal(tuning.cheapest_known(problem, "ranking", **little), found)
    flow = copy.deepcopy(problem.flow)
    for weights in flow.weights.values():
        weights *= 1.1
    capsys.readouterr()
    other = tune.cheapest_known(
        dataclasses.replace(problem, flow=flow), "ranking", tmp_path
    )
    assert "searched anew" in capsys.readouterr().out
    assert not equal(other, found)
    spoilt = {profile: cost * torch.nan for profile, cost in found.items()}
    files.save(tmp_path, "cheapest_ranking", spoilt, {}, {})
    with pytest.raises(ValueError, match=r"cheapest_ranking\.safetensors holds nothing"):
        tune.cheapest_known(problem, "ranking", tmp_path)


def test_trials_of_another_flow_are_not_gone_on_with(problem, opened, cheapest):
    search = opened("ranking")
    search.run_batch(n_each=1)
    opened("ranking")  # the same problem
    flow = copy.deepcopy(problem.flow)
    for weights in flow.weights.values():
        weights *= 1.1
    moved = dataclasses.replace(problem, flow=flow)
    with pytest.raises(ValueError, match=r"'ranking, constant' was begun with another"):
        tuning.Search(moved, "ranking", search.studies, cheapest)
    tuning.Search(moved, "score", tuning.open_studies("score", InMemoryStorage()), cheapest)


def imported_rooms(path, seen):
    """Collect every file of lib or workflow that a file imports, directly or not."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        for name in names:
            for folder in (ROOT, ROOT / "workflow"):
                other = folder / f"{name.replace('.', '/')}.py"
                if other.is_file() and other not in seen:
                    seen.add(other)
                    imported_rooms(other, seen)
    return seen


def is_read(name):
    """Whether a name is looked up here, rather than given a value."""
    return isinstance(name.ctx, ast.Load)


def test_the_choice_of_settings_cannot_reach_what_is_published():
    """No room behind the search reads published/, and searches run without opening it."""
    start = ROOT / "workflow" / "tune.py"
    rooms = imported_rooms(start, {start})
    assert ROOT / "lib" / "paper" / "selection.py" in rooms
    assert ROOT / "lib" / "paper" / "claims.py" not in rooms
    for room in rooms:
        code = ast.parse(room.read_text(encoding="utf-8"))
        read = [n.id for n in ast.walk(code) if isinstance(n, ast.Name) and is_read(n)]
        imported = [
            a.name for n in ast.walk(code) if isinstance(n, ast.ImportFrom) for a in n.names
        ]
        assert "PUBLISHED" not in [*read, *imported], room
    script = """
import lib.pinned, sys
def watch(event, args):
    if event == "open" and "published" in str(args[0]):
        raise SystemExit("opened " + str(args[0]))
sys.addaudithook(watch)
import torch
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from lib.method import loan
from lib.paper import stacks, tuning
problem = loan.problem()
nothing = torch.zeros(len(problem.refused("validation")))
for name in sys.argv[1:]:
    cost = dict.fromkeys(stacks.SEARCHES[name], nothing)
    studies = tuning.open_studies(name, InMemoryStorage())
    search = tuning.Search(problem, name, studies, cost, {"n_epochs": 1})
    for study in studies.values():
        study.enqueue_trial({"hinge": 2.0, "plausibility": 0.05})
    search.run_batch(1)
    search.run_finalists(1, [5, 6])
    print(search.trials_table().chosen.sum())
"""
    names = ("ranking", "transfer")
    ran = subprocess.run(
        [sys.executable, "-c", script, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    n_chosen = [int(line) for line in ran.stdout.split()]
    assert n_chosen == [len(stacks.SEARCHES[name]) for name in names], ran.stderr


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda search: search.run_batch(0), r"n_each must be a whole number above zero"),
        (lambda search: search.run_finalists(0, [1]), r"n_each must be a whole number"),
        (lambda search: search.run_finalists(1, []), r"seeds is empty"),
        (lambda search: search.run_finalists(1, [1]), r"No trial of this search"),
        (lambda search: search.trials_table(), r"No trial of this search is finished"),
    ],
)
def test_what_a_search_cannot_do_is_said(opened, ask, message):
    search = opened("score")
    with pytest.raises(ValueError, match=message):
        ask(search)
    assert not any(study.trials for study in search.studies.values())


def test_a_search_knows_its_elicitation_its_profiles_and_its_people(
    problem, opened, cheapest
):
    studies = opened("score").studies
    with pytest.raises(ValueError, match=r"Did you mean 'score'"):
        tuning.Search(problem, "scores", studies, cheapest)
    with pytest.raises(ValueError, match=r"Expected a study for each .* got linear"):
        tuning.Search(problem, "score", {"linear": studies["linear"]}, cheapest)
    with pytest.raises(ValueError, match=r"Expected a cost for each .* got none"):
        tuning.Search(problem, "score", studies, {})
    of_others = cheapest | {"convex": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"cheapest, convex has shape \(3,\)"):
        tuning.Search(problem, "score", studies, of_others)
    with pytest.raises(ValueError, match=r"Did you mean 'ranking'"):
        tuning.open_studies("rankings", InMemoryStorage())
