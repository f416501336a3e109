"""The page's own models, in JavaScript, give what those of lib give."""

import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import export
import numpy as np
import pytest
import torch
from torch import Tensor

from exercises.checking import key_of
from lib.base.files import ROOT
from lib.method import grid, loan, words
from lib.method.classifier import NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma
from lib.method.limits import Limits
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem, in_columns
from lib.method.pruned import Pruned
from lib.method.samplers import ScoreSampler
from lib.search import descent
from lib.search.sets import Table, sets_of

N_PEOPLE, N_SEARCHED = 300, 16
THRESHOLD = 0.7  # of a bank that is asked, too
WORLDS = ("flow", "truth")
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node.js, which runs the page's models, is missing"
)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return loan.problem()


@pytest.fixture(scope="module")
def double(problem: Problem) -> Problem:
    """The same problem, which computes with float64, as the page does."""
    flow, h = problem.flow, problem.classifier
    weights = {name: weight.double() for name, weight in flow.weights.items()}
    x = {split: people.double() for split, people in problem.population.x.items()}
    layers = ([part.double() for part in parts] for parts in (h.weights, h.biases))
    return Problem(
        replace(problem.population, x=x),
        NetworkClassifier(h.features, *layers),
        CausalFlow(flow.graph, weights=weights, **flow.settings),
    )


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return json.loads(export.PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def asked(problem: Problem) -> dict[str, Any]:
    """Refused people with scores drawn as in training, and an action of each at random."""
    rng = np.random.default_rng(11)
    columns = problem.population.actionable_index
    sampler = ScoreSampler.uniform(len(columns), with_impossible=True)
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
def said(asked: dict[str, Tensor]) -> dict[str, Any]:
    """What the page says to these people."""
    script = str(ROOT / "tests" / "page_answers.mjs")
    given = {name: part.tolist() for name, part in asked.items()}
    given["limits"] = [
        [limit(*each) for each in zip(*person, strict=True)]
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
    """Return one person's limit on one feature, as the page says it."""
    said: dict[str, Any] = {"fall": way != "up", "rise": way != "down"}
    if not np.isnan(end):
        said["low" if way == "down" else "high"] = end
    return said


def limited(problem: Problem, asked: dict[str, Any], some: slice) -> Preferences:
    """Return the same preferences, with limits, as lib says them."""
    columns = problem.population.actionable_index
    mean, std = (
        part[columns].double() for part in (problem.population.mean, problem.population.std)
    )
    ways, ends = asked["ways"][some], asked["ends"][some].double() * std + mean
    limits = Limits.nothing(*ends.shape)
    for way, name, end in (("up", "fall", limits.high), ("down", "rise", limits.low)):
        is_so = torch.from_numpy(ways == way)
        getattr(limits, name)[is_so] = 0.0
        end[is_so] = ends[is_so]
    return Preferences(asked["scores"][some], limits=limits)


@pytest.fixture(scope="module")
def answers(said: dict[str, Any]) -> list[dict[str, Any]]:
    """What the page says to each of these people, at a threshold of one half."""
    return said["people"]


def of_all(answers: list[dict[str, Any]], *path: str) -> np.ndarray:
    """Return what stands at a place of each answer, as one array; null becomes infinite."""
    found: list[Any] = answers
    for name in path:
        found = [own[name] for own in found]
    return np.array([np.inf if own is None else own for own in found])


def profile_of(written: dict[str, Any]) -> Profile:
    """Return the profile of the page's network."""
    return Profile(**written["icarma"]["profile"])


def world_of(problem: Problem, name: str) -> Any:
    """Return a world by its name on the page."""
    return problem.flow if name == "flow" else problem.population.truth


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
@pytest.mark.parametrize("name", WORLDS)
def test_what_follows_from_an_action(problem, asked, answers, name):
    world, columns = world_of(problem, name), problem.population.actionable_index
    x, acts, values = asked["x"], asked["acts"], asked["values"]
    noise = of_all(answers, "noise", name)
    assert np.allclose(noise, world.abduct(x), rtol=0, atol=2e-5)
    is_acted = in_columns(acts.float(), columns, x.shape[-1]) > 0
    spread = in_columns(values, columns, x.shape[-1])
    expected = world.counterfactual(x, is_acted, spread)
    assert np.allclose(of_all(answers, "after", name), expected, rtol=0, atol=1e-5)


@needs_node
def test_recommendations(problem, asked, answers, written):
    stack = ICarma.load(export.MODELS, "loan_icarma_score", problem)
    network = stack.select([stack.position(written["icarma"]["member"])])
    x, columns = asked["x"], problem.population.actionable_index
    preferences = Preferences(asked["scores"])
    weights = profile_of(written).weight(preferences)
    assert np.allclose(of_all(answers, "weights"), weights, rtol=0, atol=1e-6)
    expected = network.recommend(x, preferences)[0]
    acts = of_all(answers, "recommended", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "recommended", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    for name in WORLDS:
        world = world_of(problem, name)
        after = of_all(answers, "said", name, "after")
        x_cf = world.counterfactual(x, expected.is_acted, expected.values)
        assert np.allclose(after, x_cf, rtol=0, atol=1e-5)


@needs_node
@pytest.mark.parametrize("name", WORLDS)
def test_outcomes(double, asked, answers, written, name):
    """What is said of a recommendation is what lib says of it."""
    x, columns = asked["x"].double(), double.population.actionable_index
    after = torch.from_numpy(of_all(answers, "said", name, "after"))
    expected = double.classifier.probability(after)
    found = of_all(answers, "said", name, "probability")
    assert np.allclose(found, expected, rtol=0, atol=1e-6)
    expected = double.flow.log_prob(after) - double.flow.log_prob(x)
    assert np.allclose(of_all(answers, "said", name, "gain"), expected, rtol=0, atol=1e-6)
    acts, values = (
        torch.from_numpy(of_all(answers, "said", name, part)) for part in ("acts", "values")
    )
    weights = profile_of(written).weight(Preferences(asked["scores"]))
    for cost, by in (("cost", None), ("weightedCost", weights)):
        expected = double.action_cost(x[:, columns], acts, values, by)
        assert np.allclose(of_all(answers, "said", name, cost), expected, rtol=0, atol=1e-6)


@needs_node
def test_exact_search_finds_the_grids_optimum(problem, asked, answers, written):
    x, preferences = asked["x"], Preferences(asked["scores"])
    profile, truth = profile_of(written), problem.population.truth
    expected = grid.Grid(
        problem, truth, profile=profile, n_values=export.N_VALUES
    ).recommend(x, preferences)
    weights, none = profile.weight(preferences), torch.tensor(torch.inf)
    cost = problem.cost_of(x, expected, weights).where(expected.has_recourse, none)
    found = [own["exact"] for own in answers]
    found = np.array([np.inf if own is None else own["cost"] for own in found])
    assert (np.isfinite(found) == expected.has_recourse.numpy()).all()
    assert np.allclose(found, cost, rtol=0, atol=1e-6)
    assert 0.3 < np.isfinite(found).mean() < 0.9  # both kinds of people were asked


@needs_node
def test_a_bank_may_ask_for_more(problem, asked, said, written):
    """The threshold of the page is that of `Classifier.at`."""
    h, x = problem.classifier.at(THRESHOLD), asked["x"]
    strict = replace(problem, classifier=h)
    odds = of_all(said["strict"], "logOdds")
    assert np.allclose(odds, h.logit(x), rtol=0, atol=1e-4)
    before = of_all(said["people"], "probability")
    assert np.allclose(of_all(said["strict"], "probability"), before, rtol=0, atol=1e-12)
    profile, preferences = profile_of(written), Preferences(asked["scores"])
    search = grid.Grid(strict, strict.world, profile=profile, n_values=export.N_VALUES)
    expected = search.recommend(x, preferences)
    has = np.array([own["exact"] is not None for own in said["strict"]])
    assert (has == expected.has_recourse.numpy()).all()
    cost = strict.cost_of(x, expected, profile.weight(preferences)).numpy()[has]
    found = [own["exact"]["cost"] for own in said["strict"] if own["exact"]]
    assert np.allclose(found, cost, rtol=0, atol=1e-6)
    assert has.sum() < sum(own["exact"] is not None for own in said["people"])


@needs_node
@pytest.mark.parametrize("name", WORLDS)
def test_search_over_all_values(double, asked, answers, name):
    """Each set's cheapest action, beside the same descents by lib."""
    columns = double.population.actionable_index
    sets = sets_of(len(columns))
    x = asked["x"][:N_SEARCHED].double().repeat_interleave(len(sets), 0)
    weights = torch.from_numpy(of_all(answers[:N_SEARCHED], "weights"))
    judge = descent.Judge(
        double,
        world_of(double, name),
        x,
        sets.repeat(N_SEARCHED, 1),
        weights.repeat_interleave(len(sets), 0),
    )
    found = descent.Found.nothing(judge.factual)
    rng = np.random.default_rng(export.SEED)
    (scouted,) = descent.scout(judge, found, export.N_SCOUTS, 1, rng)
    for start in (judge.factual, scouted):
        descent.descend(judge, start, found, export.N_STEPS)
    rows = [row for own in answers[:N_SEARCHED] for row in own["searched"][name]["table"]]
    assert np.array([row["acts"] for row in rows]).tolist() == judge.acts.tolist()
    for ours, theirs in (("cost", "cost"), ("odds", "log_odds"), ("gain", "gain")):
        own = np.array([np.inf if r[ours] is None else r[ours] for r in rows])
        expected = getattr(found, theirs).numpy()
        expected = np.where(np.isfinite(expected), expected, np.inf)
        assert np.allclose(own, expected, rtol=1e-6, atol=1e-6), ours


@needs_node
@pytest.mark.parametrize("name", WORLDS)
def test_what_would_unlock_it(asked, answers, name):
    """Looked up in the page's own table of costs, as lib looks it up."""
    some = [own["searched"][name] for own in answers[:N_SEARCHED]]
    cost = torch.tensor(
        [[np.inf if r["cost"] is None else r["cost"] for r in own["table"]] for own in some]
    )
    n_features = asked["scores"].shape[-1]
    nothing = torch.zeros_like(cost)
    values = torch.zeros(*cost.shape, n_features)
    table = Table(sets_of(n_features), cost, values, nothing, nothing)
    may = Preferences(asked["scores"][:N_SEARCHED]).is_actionable
    unlocked = [[np.inf if c is None else c for c in own["unlocked"]] for own in some]
    assert np.allclose(unlocked, table.unlocked_by(may), rtol=1e-6)
    assert of_all(some, "key").tolist() == table.key(may).tolist()
    assert np.allclose(of_all(some, "cost"), table.cheapest(may)[0], rtol=1e-6)
    assert of_all(some, "key").any()  # somebody needs one


@needs_node
def test_a_place_is_above_so_many_of_100_people(problem, asked, answers):
    """Between two of them it is in between, so that a place leads back to its value."""
    expected = words.ranks(problem.population, asked["x"])
    found = of_all(answers, "places")
    told = [j for j, name in enumerate(problem.population.features) if name != "gender"]
    assert np.abs(found - expected.numpy())[:, told].max() < 1
    inside = ((found > 0) & (found < 100))[:, told]
    back = np.abs(of_all(answers, "there") - asked["x"].numpy())[:, told]
    assert back[inside].max() < 1e-5 and inside.mean() > 0.99


@needs_node
def test_recommendations_within_limits(problem, asked, answers, written):
    stack = ICarma.load(export.MODELS, "loan_icarma_score", problem)
    network = stack.select([stack.position(written["icarma"]["member"])])
    columns = problem.population.actionable_index
    preferences = limited(problem, asked, slice(None))
    interval = problem.interval(asked["x"], preferences)
    assert (of_all(answers, "within", "may") == interval.may.numpy()).all()
    expected = network.recommend(asked["x"], preferences)[0]
    acts = of_all(answers, "within", "recommended", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "within", "recommended", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    free = of_all(answers, "recommended", "values")
    is_felt = (np.abs(values - free) > 1e-3).any(-1)
    assert is_felt.mean() > 0.1


@needs_node
def test_what_can_be_left_out_is_left_out(problem, asked, answers, written):
    stack = ICarma.load(export.MODELS, "loan_icarma_score", problem)
    network = stack.member(stack.position(written["icarma"]["member"]))
    solver = Pruned(network, problem, profile_of(written))
    expected = solver.recommend(asked["x"], Preferences(asked["scores"]))
    columns = problem.population.actionable_index
    acts = of_all(answers, "pruned", "acts")
    assert (acts == expected.is_acted[:, columns].numpy()).all()
    values = of_all(answers, "pruned", "values")
    assert np.allclose(values, expected.values[:, columns], rtol=0, atol=1e-5)
    assert acts.sum() < of_all(answers, "recommended", "acts").sum()


@needs_node
def test_exact_search_within_limits(problem, asked, answers, written):
    x, preferences = asked["x"], limited(problem, asked, slice(None))
    profile, truth = profile_of(written), problem.population.truth
    search = grid.Grid(problem, truth, profile=profile, n_values=export.N_VALUES)
    expected = search.recommend(x, preferences)
    cost = problem.cost_of(x, expected, profile.weight(preferences))
    cost = cost.where(expected.has_recourse, torch.tensor(torch.inf)).numpy()
    found = [own["within"]["exact"] for own in answers]
    found = np.array([np.inf if own is None else own["cost"] for own in found])
    assert (np.isfinite(found) == np.isfinite(cost)).all()
    assert np.allclose(found, cost, rtol=0, atol=1e-6)
    assert 0.1 < np.isfinite(found).mean() < 0.9


@needs_node
def test_search_within_limits(double, asked, answers):
    """Each set's cheapest action, beside the same descents by lib."""
    columns = double.population.actionable_index
    sets, some = sets_of(len(columns)), slice(N_SEARCHED)
    x = asked["x"][some].double()
    own = limited(double, asked, some)
    everything = Preferences(torch.ones_like(own.scores), limits=own.limits)
    people = torch.arange(N_SEARCHED).repeat_interleave(len(sets))
    judge = descent.Judge(
        double,
        double.population.truth,
        x[people],
        sets.repeat(N_SEARCHED, 1),
        torch.from_numpy(of_all(answers[some], "weights"))[people],
        interval=double.interval(x, everything)[people],
    )
    found = descent.Found.nothing(judge.factual)
    rng = np.random.default_rng(export.SEED)
    (scouted,) = descent.scout(judge, found, export.N_SCOUTS, 1, rng)
    for start in (judge.factual, scouted):
        descent.descend(judge, start, found, export.N_STEPS)
    is_closed = (judge.acts & ~judge.interval.may).any(-1)
    expected = found.cost.masked_fill(is_closed, torch.inf).numpy()
    rows = [row for own in answers[some] for row in own["within"]["searched"]["table"]]
    cost = np.array([np.inf if row["cost"] is None else row["cost"] for row in rows])
    assert np.allclose(cost, expected, rtol=1e-6, atol=1e-6)
    assert is_closed.any() and np.isfinite(cost).any()


@needs_node
def test_ways_differ(answers):
    """By enumeration: the cheapest first; each spares what every cheaper one asks for."""
    n_ways = []
    for own in answers[:N_SEARCHED]:
        searched = own["within"]["searched"]
        open_to = [
            row
            for row in searched["table"]
            if row["cost"] is not None
            and all(own["within"]["may"][k] for k in range(4) if row["acts"][k])
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
        found = [(row["cost"], tuple(row["acts"])) for row in searched["plans"]]
        assert found == sorted(expected)[:3]
        n_ways.append(len(found))
    assert max(n_ways) == 3 and min(n_ways) == 0


@needs_node
def test_predictions_are_judged_as_the_exercises_judge_them(said):
    letters = {name: key_of(name).truth for name in said["letters"]}
    assert said["letters"] == letters and len(letters) == 7
