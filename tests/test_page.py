"""The page's own models, in JavaScript, give what those of lib give."""

import copy
import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import export
import numpy as np
import pytest
import torch

from lib.io import ROOT
from lib.method import icarma, loan, report
from lib.method.icarma import ICarma
from lib.method.limits import Limits
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences
from lib.method.problem import Problem, scatter_to_features
from lib.method.samplers import ScoreSampler
from lib.paper import readings
from lib.search import descent
from lib.search.evaluator import ActionEvaluator, Incumbents
from lib.search.sets import Table, sets_of

N_PEOPLE, N_SEARCHED = 120, 10
THRESHOLD = 0.7  # of a bank that is asked, too
PROFILE = readings.profile("linear", "score")
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node.js, which runs the page's models, is missing"
)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return loan.problem()


@pytest.fixture(scope="module")
def double(problem: Problem) -> Problem:
    """The same problem, which computes with float64, as the page does."""
    x = {split: people.double() for split, people in problem.population.x.items()}
    return Problem(
        replace(problem.population, x=x),
        copy.deepcopy(problem.classifier).double(),
        copy.deepcopy(problem.flow).double(),
    )


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return json.loads(export.PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def network(problem: Problem, written: dict[str, Any]) -> ICarma:
    """The member that the page shows."""
    ensembles = icarma.load_by_profile(export.MODELS, "loan_icarma_score", problem)
    ensemble = ensembles[export.PROFILE]
    return ensemble[ensemble.seeds.index(written["icarma"]["seed"])]


@pytest.fixture(scope="module")
def asked(problem: Problem) -> dict[str, Any]:
    """Refused people with scores drawn as in training, and an action of each at random."""
    rng = np.random.default_rng(11)
    columns = problem.population.actionable_index
    sampler = ScoreSampler(len(columns), with_impossible=True)
    shares = torch.from_numpy(rng.random((N_PEOPLE, len(columns)))).float()
    ends = torch.from_numpy(rng.random((N_PEOPLE, len(columns)))).float()
    ways = rng.choice(["down", "any", "up"], (N_PEOPLE, len(columns)))
    has_end = (rng.random(ways.shape) < 0.5) & (ways != "any")
    return {
        "ways": ways,
        "ends": torch.where(
            torch.from_numpy(has_end),
            problem.population.low[columns] + ends * problem.range[columns],
            torch.nan,
        ),
        "x": problem.refused("test")[-N_PEOPLE:],
        "scores": sampler.draw(range(N_PEOPLE), rng).scores,
        "acts": torch.from_numpy(rng.random((N_PEOPLE, len(columns))) < 0.5),
        "values": problem.population.low[columns] + shares * problem.range[columns],
    }


@pytest.fixture(scope="module")
def replies(asked: dict[str, Any]) -> dict[str, Any]:
    """What the page answers to these people, at both thresholds."""
    script = str(ROOT / "tests" / "page_answers.mjs")
    given = {name: tensor.tolist() for name, tensor in asked.items()}
    given["limits"] = [
        [limit(*of_feature) for of_feature in zip(*person, strict=True)]
        for person in zip(given.pop("ways"), given.pop("ends"), strict=True)
    ]
    run = subprocess.run(
        ["node", script],
        input=json.dumps(given | {"n_searched": N_SEARCHED, "threshold": THRESHOLD}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def limit(way: str, end: float) -> dict[str, Any]:
    """Return one person's limit on one feature, as the page takes it."""
    limits: dict[str, Any] = {"fall": way != "up", "rise": way != "down"}
    if not np.isnan(end):
        limits["low" if way == "down" else "high"] = end
    return limits


def limited(problem: Problem, asked: dict[str, Any], some: slice) -> Preferences:
    """Return the same preferences, with limits, as lib takes them."""
    columns = problem.population.actionable_index
    mean, std = (
        moment[columns].double()
        for moment in (problem.population.mean, problem.population.std)
    )
    ways, ends = asked["ways"][some], asked["ends"][some].double() * std + mean
    limits = Limits.unlimited(*ends.shape)
    for way, name, end in (
        ("up", "max_decrease", limits.high),
        ("down", "max_increase", limits.low),
    ):
        is_so = torch.from_numpy(ways == way)
        getattr(limits, name)[is_so] = 0.0
        end[is_so] = ends[is_so]
    return Preferences(asked["scores"][some], limits=limits, profile=PROFILE)


@pytest.fixture(scope="module")
def answers(replies: dict[str, Any]) -> list[dict[str, Any]]:
    """What the page answers to each of these people, at a threshold of one half."""
    return replies["people"]


def of_all(answers: list[dict[str, Any]], *path: str) -> np.ndarray:
    """Return what stands at a place of each answer, as one array; null becomes infinite."""
    entries: list[Any] = answers
    for name in path:
        entries = [entry[name] for entry in entries]
    return np.array([np.inf if entry is None else entry for entry in entries])


def cost_of(actions: list[dict[str, Any] | None]) -> np.ndarray:
    """Return the cost of each action, infinite where there is none."""
    return np.array(
        [np.inf if a is None or a["cost"] is None else a["cost"] for a in actions]
    )


def cheapest_of_sets(evaluator: ActionEvaluator) -> Incumbents:
    """Return what the descents of the page find in lib."""
    incumbents = Incumbents.empty(evaluator.factual)
    rng = np.random.default_rng(export.SEED)
    (scouted,) = descent.sobol_starts(evaluator, incumbents, export.N_SCOUTS, 1, rng)
    for start in (evaluator.factual, scouted):
        descent.descend(evaluator, start, incumbents, export.N_STEPS)
    return incumbents


def test_the_file_is_of_these_models(written):
    """After new models: .venv/bin/python page/export.py."""
    now = json.loads(export.text())
    assert written["fingerprints"] == now["fingerprints"]
    assert written == now


def test_other_models_would_be_noticed(tmp_path, monkeypatch, written):
    for name in export.READ:
        shutil.copy(export.MODELS / f"{name}.safetensors", tmp_path)
    monkeypatch.setattr(export, "MODELS", tmp_path)
    assert export.fingerprints() == written["fingerprints"]
    file = tmp_path / "loan_flow.safetensors"
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1  # one bit of one weight
    file.write_bytes(contents)
    assert export.fingerprints() != written["fingerprints"]


@needs_node
def test_decision_and_density(double, asked, answers):
    """In float64: in float32, log-odds of lib are rounded by up to 2e-5."""
    x = asked["x"].double()
    expected = double.classifier.probability(x)
    assert np.allclose(of_all(answers, "probability"), expected, rtol=0, atol=1e-6)
    expected = double.flow.log_prob(x)
    assert np.allclose(of_all(answers, "logDensity"), expected, rtol=0, atol=1e-6)


@needs_node
def test_what_follows_from_an_action(problem, asked, answers):
    """By the true equations."""
    model, columns = problem.population.truth, problem.population.actionable_index
    x, acts, values = asked["x"], asked["acts"], asked["values"]
    noise = of_all(answers, "noise")
    assert np.allclose(noise, model.abduct(x), rtol=0, atol=2e-5)
    is_acted = scatter_to_features(acts.float(), columns, x.shape[-1]) > 0
    spread = scatter_to_features(values, columns, x.shape[-1])
    expected = model.counterfactual(x, is_acted, spread)
    assert np.allclose(of_all(answers, "after"), expected, rtol=0, atol=1e-5)


@needs_node
def test_recommendations(problem, network, asked, answers):
    x, columns = asked["x"], problem.population.actionable_index
    preferences = Preferences(asked["scores"], profile=PROFILE)
    weights = of_all(answers, "weights")
    assert np.allclose(weights, preferences.weight, rtol=0, atol=1e-6)
    expected = network.recommend(x, preferences)
    acts = of_all(answers, "recommended", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "recommended", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    after = of_all(answers, "outcome", "after")
    truth = problem.population.truth
    x_cf = truth.counterfactual(x, expected.is_acted, expected.values)
    assert np.allclose(after, x_cf, rtol=0, atol=1e-5)


@needs_node
def test_outcomes(double, asked, answers):
    """What a recommendation comes to is what it comes to in lib."""
    x, columns = asked["x"].double(), double.population.actionable_index
    after = torch.from_numpy(of_all(answers, "outcome", "after"))
    expected = double.classifier.probability(after)
    probability = of_all(answers, "outcome", "probability")
    assert np.allclose(probability, expected, rtol=0, atol=1e-6)
    expected = double.flow.log_prob(after) - double.flow.log_prob(x)
    assert np.allclose(of_all(answers, "outcome", "gain"), expected, rtol=0, atol=1e-6)
    truth = double.population.truth
    expected = truth.log_prob(after) - truth.log_prob(x)
    assert np.allclose(of_all(answers, "trueGain"), expected, rtol=0, atol=1e-4)
    acts, values = (
        torch.from_numpy(of_all(answers, "outcome", key)) for key in ("acts", "values")
    )
    weights = Preferences(asked["scores"], profile=PROFILE).weight
    expected = double.action_cost(x[:, columns], acts, values, weights)
    assert np.allclose(of_all(answers, "outcome", "cost"), expected, rtol=0, atol=1e-6)


@needs_node
def test_exact_search_finds_the_grids_optimum(problem, asked, answers):
    x, preferences = asked["x"], Preferences(asked["scores"], profile=PROFILE)
    oracle = readings.oracle(problem, n_values=export.N_VALUES)
    expected = oracle.recommend(x, preferences)
    none = torch.tensor(torch.inf)
    cost = problem.cost_of(x, expected, preferences.weight)
    cost = cost.where(expected.has_recourse, none)
    exact = cost_of([answer["exact"] for answer in answers])
    assert (np.isfinite(exact) == expected.has_recourse.numpy()).all()
    assert np.allclose(exact, cost, rtol=0, atol=1e-6)
    assert 0.3 < np.isfinite(exact).mean() < 0.9  # both kinds of people were asked


@needs_node
def test_a_bank_may_ask_for_more(problem, asked, replies):
    """The threshold of the page is that of `Classifier.with_threshold`."""
    h, x = problem.classifier.with_threshold(THRESHOLD), asked["x"]
    strict = replace(problem, classifier=h)
    odds = of_all(replies["strict"], "logOdds")
    assert np.allclose(odds, h.logit(x), rtol=0, atol=1e-4)
    before = of_all(replies["people"], "probability")
    probability = of_all(replies["strict"], "probability")
    assert np.allclose(probability, before, rtol=0, atol=1e-12)
    preferences = Preferences(asked["scores"], profile=PROFILE)
    oracle = readings.oracle(strict, n_values=export.N_VALUES)
    expected = oracle.recommend(x, preferences)
    exact = cost_of([answer["exact"] for answer in replies["strict"]])
    has = np.isfinite(exact)
    assert (has == expected.has_recourse.numpy()).all()
    cost = strict.cost_of(x, expected, preferences.weight).numpy()
    assert np.allclose(exact[has], cost[has], rtol=0, atol=1e-6)
    at_one_half = cost_of([answer["exact"] for answer in replies["people"]])
    assert has.sum() < np.isfinite(at_one_half).sum()


@needs_node
def test_search_over_all_values(double, asked, answers):
    """Each set's cheapest action, beside the same descents by lib."""
    columns = double.population.actionable_index
    sets = sets_of(len(columns))
    x = asked["x"][:N_SEARCHED].double().repeat_interleave(len(sets), 0)
    weights = torch.from_numpy(of_all(answers[:N_SEARCHED], "weights"))
    evaluator = ActionEvaluator(
        double,
        double.population.truth,
        x,
        sets.repeat(N_SEARCHED, 1),
        weights.repeat_interleave(len(sets), 0),
    )
    incumbents = cheapest_of_sets(evaluator)
    rows = [row for answer in answers[:N_SEARCHED] for row in answer["searched"]["table"]]
    assert np.array([row["acts"] for row in rows]).tolist() == evaluator.mask.tolist()
    for key, of_lib in (("cost", "cost"), ("odds", "log_odds"), ("gain", "gain")):
        values = np.array([np.inf if row[key] is None else row[key] for row in rows])
        expected = getattr(incumbents, of_lib).numpy()
        expected = np.where(np.isfinite(expected), expected, np.inf)
        assert np.allclose(values, expected, rtol=1e-6, atol=1e-6), key


@needs_node
def test_what_would_unlock_it(asked, answers):
    """Looked up in the page's own table of costs, as lib looks it up."""
    some = [answer["searched"] for answer in answers[:N_SEARCHED]]
    cost = torch.from_numpy(np.array([cost_of(answer["table"]) for answer in some]))
    n_features = asked["scores"].shape[-1]
    unused = torch.zeros_like(cost)
    values = torch.zeros(*cost.shape, n_features)
    table = Table(sets_of(n_features), cost, values, unused, unused)
    is_open = Preferences(asked["scores"][:N_SEARCHED], profile=PROFILE).is_actionable
    unlocked = of_all([cost for answer in some for cost in answer["unlocked"]])
    expected = table.unlocked_by(is_open)
    assert np.allclose(unlocked.reshape(expected.shape), expected, rtol=1e-6)
    key = of_all(some, "key")
    assert key.tolist() == table.minimal_unlocking_set(is_open).tolist()
    assert np.allclose(of_all(some, "cost"), table.cheapest(is_open)[0], rtol=1e-6)
    assert key.any()  # somebody needs one


@needs_node
def test_a_place_is_above_so_many_of_100_people(problem, asked, answers):
    """Between two of them it is in between, so that a place leads back to its value."""
    expected = report.percentile_ranks(problem.population, asked["x"])
    places = of_all(answers, "places")
    shown = [j for j, name in enumerate(problem.population.features) if name != "gender"]
    assert np.abs(places - expected.numpy())[:, shown].max() < 1
    inside = ((places > 0) & (places < 100))[:, shown]
    back = np.abs(of_all(answers, "there") - asked["x"].numpy())[:, shown]
    assert back[inside].max() < 1e-5 and inside.mean() > 0.99


@needs_node
def test_recommendations_within_limits(problem, network, asked, answers):
    columns = problem.population.actionable_index
    preferences = limited(problem, asked, slice(None))
    interval = problem.interval(asked["x"], preferences)
    assert (of_all(answers, "within", "may") == interval.is_allowed.numpy()).all()
    expected = network.recommend(asked["x"], preferences)
    acts = of_all(answers, "within", "recommended", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "within", "recommended", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    free = of_all(answers, "recommended", "values")
    is_changed = (np.abs(values - free) > 1e-3).any(-1)
    assert is_changed.mean() > 0.1


@needs_node
def test_what_can_be_left_out_is_left_out(problem, network, asked, answers, monkeypatch):
    """In lib what follows is by the flow; on the page, and here, by the true equations."""
    flow = copy.deepcopy(problem.flow)
    by_truth = problem.population.truth.counterfactual
    monkeypatch.setattr(flow, "counterfactual", by_truth)
    solver = Pruned(network, replace(problem, flow=flow))
    expected = solver.recommend(asked["x"], Preferences(asked["scores"], profile=PROFILE))
    columns = problem.population.actionable_index
    acts = of_all(answers, "pruned", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "pruned", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    assert acts.sum() < of_all(answers, "recommended", "acts").sum()


@needs_node
def test_exact_search_within_limits(problem, asked, answers):
    x, preferences = asked["x"], limited(problem, asked, slice(None))
    oracle = readings.oracle(problem, n_values=export.N_VALUES)
    expected = oracle.recommend(x, preferences)
    cost = problem.cost_of(x, expected, preferences.weight)
    cost = cost.where(expected.has_recourse, torch.tensor(torch.inf)).numpy()
    exact = cost_of([answer["within"]["exact"] for answer in answers])
    assert (np.isfinite(exact) == np.isfinite(cost)).all()
    assert np.allclose(exact, cost, rtol=0, atol=1e-6)
    assert 0.1 < np.isfinite(exact).mean() < 0.9


@needs_node
def test_search_within_limits(double, asked, answers):
    """Each set's cheapest action, beside the same descents by lib."""
    columns = double.population.actionable_index
    sets, some = sets_of(len(columns)), slice(N_SEARCHED)
    x = asked["x"][some].double()
    limits = limited(double, asked, some).limits
    everything = Preferences(
        torch.ones_like(asked["scores"][some]), limits=limits, profile=PROFILE
    )
    people = torch.arange(N_SEARCHED).repeat_interleave(len(sets))
    evaluator = ActionEvaluator(
        double,
        double.population.truth,
        x[people],
        sets.repeat(N_SEARCHED, 1),
        torch.from_numpy(of_all(answers[some], "weights"))[people],
        interval=double.interval(x, everything)[people],
    )
    incumbents = cheapest_of_sets(evaluator)
    is_closed = (evaluator.mask & ~evaluator.interval.is_allowed).any(-1)
    expected = incumbents.cost.masked_fill(is_closed, torch.inf).numpy()
    tables = [answer["within"]["searched"]["table"] for answer in answers[some]]
    cost = cost_of([row for table in tables for row in table])
    assert np.allclose(cost, expected, rtol=1e-6, atol=1e-6)
    assert is_closed.any() and np.isfinite(cost).any()


@needs_node
def test_ways_differ(answers):
    """By enumeration: the cheapest first; each spares what every cheaper one asks for."""
    n_ways = []
    for answer in answers[:N_SEARCHED]:
        within = answer["within"]
        searched = within["searched"]
        open_to = [
            row
            for row in searched["table"]
            if row["cost"] is not None
            and all(within["may"][k] for k in range(4) if row["acts"][k])
        ]
        sets = {tuple(row["acts"]): row["cost"] for row in open_to}
        expected = [
            (cost, acts)
            for acts, cost in sets.items()
            if not any(
                other != acts and price <= cost and not any(np.greater(other, acts))
                for other, price in sets.items()
            )
        ]
        plans = [(row["cost"], tuple(row["acts"])) for row in searched["plans"]]
        assert plans == sorted(expected)[:3]
        n_ways.append(len(plans))
    assert max(n_ways) == 3 and min(n_ways) == 0
