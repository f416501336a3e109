"""Give Me Some Credit: spread, made whole, split; a stand-in only where asked for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib import io
from lib.beyond.hare.hare import Dialogue, remembered
from lib.beyond.hare.spaces import Actions
from lib.method import classifier, flow, icarma
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import (
    Problem,
    Recommendation,
    scatter_to_features,
)
from lib.method.samplers import RankingSampler
from lib.paper import gmsc
from lib.paper.gmsc import Applicants
from lib.search import continuous, evaluator

COUNTS = [*gmsc.FEATURES.index[gmsc.FEATURES.is_count]]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Three hundred and ninety invented people, cleaned."""
    rng = np.random.default_rng(0)
    counts = {name: rng.poisson(1.0, 390) for name in COUNTS}
    return pd.DataFrame(counts).assign(
        paid_back=rng.random(390) < 0.9,
        age=rng.integers(20, 90, 390),
        income=rng.integers(0, 30_000, 390).clip(max=17_000),
        utilization=(1.2 * rng.random(390)).clip(max=1),
        debt_ratio=rng.exponential(0.5, 390).clip(max=1),
    )


@pytest.fixture(scope="module")
def small() -> Problem:
    """A problem of invented people whose debts follow from their credit lines."""
    rng = np.random.default_rng(2)
    people = pd.DataFrame({name: rng.poisson(1.5, 900) for name in gmsc.COLUMNS}).assign(
        age=rng.integers(20, 80, 900),
        income=rng.uniform(500, 9_000, 900),
        utilization=rng.random(900),
        debt_ratio=rng.random(900),
    )
    people["late_90"] = rng.poisson(0.2 + people.credit_lines / 3)
    owed = people.utilization + 0.3 * people.late_90
    people["paid_back"] = owed + 0.3 * rng.normal(size=900) < 1
    drawn = gmsc.population(Applicants(people, is_real=False))
    drawn = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    h, _ = classifier.fit(drawn, n_epochs=40, negative_class_weight=1.5)
    density, _ = flow.fit(
        drawn.graph,
        drawn.x["flow/train"],
        drawn.x["flow/validation"],
        hidden=(80,),
        n_bins=6,
        n_epochs=10,
        batch_size=100,
    )
    return Problem(drawn, h, density)


def test_the_published_graph_and_the_others():
    causes = gmsc.graph().parents
    assert list(causes) == list(gmsc.COLUMNS) and causes["utilization"] == ("income",)
    graphs = gmsc.graphs()
    n_edges = [int(graph.adjacency().sum()) for graph in graphs.values()]
    assert n_edges == [19, 19, 18, 19, 10]
    turned = graphs["utilization changes income"].parents
    assert turned["income"] == ("age", "utilization") and turned["utilization"] == ()
    past = graphs[gmsc.PAST]
    acted_on = ("income", "credit_lines", "real_estate_loans", "utilization")
    assert not past.reachability[[past.index(name) for name in acted_on]][:, -3:].any()


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            lambda people, folder: gmsc.graph(remove=[["utilization", "income"]]),
            "no edge from utilization to income",
        ),
        (
            lambda people, folder: gmsc.graph(reverse=[["age", "debt_ratio"]]),
            "in a circle: .*debt_ratio -> age",
        ),
        (
            lambda people, folder: gmsc.applicants("", 100, seed=0),
            r"was not found. Download .*or_stand_in=True",
        ),
        # both have one scaler, so that the fingerprint does not tell them apart
        (
            lambda people, folder: gmsc.problem(Applicants(people, is_real=True), folder),
            r"fitted to the stand-in: remove .*gmsc_\*",
        ),
    ],
)
def test_what_cannot_be_is_refused(people, tmp_path, monkeypatch, refused, message):
    scaler = gmsc.scaler(io.MODELS)[0]
    io.save(tmp_path, "gmsc_scaler", scaler, {"people": "synthetic"}, {})
    monkeypatch.setattr(gmsc, "find", lambda path: None)
    with pytest.raises(ValueError, match=message):
        refused(people, tmp_path)


def test_spreading_is_undone_by_making_whole(people):
    spread = gmsc.dequantised(people, np.random.default_rng(1))
    whole = gmsc.DISCRETISATION(torch.from_numpy(spread))
    names, given = list(gmsc.COLUMNS), people[list(gmsc.COLUMNS)].to_numpy(dtype=float)
    assert np.allclose(whole, given, atol=1e-12)
    is_count = np.array([name in COUNTS for name in names])
    off = (spread - given)[:, is_count]
    assert -0.5 <= off.min() < -0.45 and 0.45 < off.max() < 0.5
    shares, caps = spread[:, ~is_count], gmsc.HIGHEST.to_numpy()[~is_count]
    at_cap, at_zero = given[:, ~is_count] == caps, given[:, ~is_count] == 0
    assert (at_cap.sum(0) > 10).all()  # atoms before, and none after
    assert all(len(np.unique(column)) == len(column) for column in shares[at_cap.any(1)].T)
    beyond = (shares / caps)[at_cap] - 1
    assert beyond.min() >= 0 and 0.04 < beyond.max() < gmsc.SPREAD
    stays = ~at_cap & ~at_zero
    assert (shares == given[:, ~is_count])[stays].all()
    zeros = gmsc.dequantised(people * 0, np.random.default_rng(0))[:, ~is_count] / caps
    assert -gmsc.SPREAD < zeros.min() < -0.049 and zeros.max() <= 0


def test_population_has_the_kinds_and_splits_of_the_paper(people):
    drawn = gmsc.population(Applicants(people, is_real=True), seed=3)
    actionable = ("income", "credit_lines", "real_estate_loans", "utilization")
    assert drawn.name == "Give Me Some Credit" and drawn.actionable == actionable
    immutable = [name for name, kind in drawn.kinds.items() if kind == "immutable"]
    assert immutable == ["age", "dependents"]
    splits = ("train", "validation", "test")
    assert [len(drawn.x[f"recourse/{split}"]) for split in splits] == [195, 97, 98]
    assert torch.equal(drawn.x["flow/train"], drawn.x["recourse/train"])
    x = drawn.x["recourse/train"]
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    # people keep their labels: nobody's features are dealt to somebody else
    x = torch.cat([drawn.x[f"recourse/{split}"] for split in splits])
    back = drawn.inverse_transform(drawn.to_feasible(x.double())).numpy()
    paid = torch.cat([drawn.y[f"recourse/{split}"] for split in splits]).numpy()
    there = np.column_stack([back.round(4), paid])
    given = np.column_stack([people[list(gmsc.COLUMNS)].round(4), people.paid_back])
    there, given = (rows[np.lexsort(rows.T[::-1])] for rows in (there, given))
    assert np.allclose(there, given, atol=2e-2)


def test_real_applicants_are_drawn_without_replacement(people, monkeypatch):
    for step in ("find", "read", "clean"):
        monkeypatch.setattr(gmsc, step, lambda given: people)
    drawn = gmsc.applicants("there", 100, seed=1, or_stand_in=True)  # no need of one
    assert drawn.is_real and drawn.heading == "100 real applicants"
    assert len(drawn.people) == drawn.people.index.nunique() == 100
    assert len(gmsc.applicants("there", 10_000, seed=1).people) == 390


def test_a_stand_in_resembles_the_people_it_stands_for(small, tmp_path, monkeypatch):
    """Possible features, the real people's spread, and the rate of an unweighted label."""
    population, made = small.population, small.population.fingerprint
    scaler = {"mean": population.mean, "std": population.std, "weight": torch.tensor(1.5)}
    io.save(tmp_path, "gmsc_scaler", scaler, {"people": "real"}, {}, made)
    small.classifier.save(tmp_path, "gmsc_classifier", {}, made)
    small.flow.save(tmp_path, "gmsc_flow", {}, made)
    monkeypatch.setattr(gmsc, "find", lambda path: None)
    stand_in = gmsc.applicants("", 3_000, 0, or_stand_in=True, models=tmp_path)
    assert stand_in.heading == "SYNTHETIC STAND-IN, 3,000 drawn people"
    drawn = stand_in.people
    assert (drawn[COUNTS] % 1 == 0).all(axis=None)
    assert (drawn >= 0).all(axis=None) and drawn.utilization.max() <= 1
    off = abs(drawn.age.mean() - float(population.mean[0]))
    assert off < 0.25 * float(population.std[0])
    paid = population.y["classifier/train"].float().mean().item()
    assert abs(drawn.paid_back.mean() - paid) < 0.1
    again = gmsc.applicants("", 3_000, 0, or_stand_in=True, models=tmp_path)
    assert again.people.equals(drawn)
    # in the real people's standard deviations, so that their models fit it
    measured = gmsc.population(stand_in)
    assert measured.name == "Give Me Some Credit, synthetic stand-in"
    assert torch.equal(measured.mean, population.mean)
    assert torch.equal(measured.std, population.std) and measured.fingerprint == made


def test_a_recommendation_is_carried_out_in_whole_numbers(small):
    population, x = small.population, small.refused("test")
    column = population.features.index
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, [column("credit_lines"), column("utilization")]] = True
    x_cf = small.flow.counterfactual(x, acts, x + 1.3)
    done = small.discretise(x, Recommendation(acts, x + 1.3, x_cf))
    moved = done.x_cf != x
    in_units = population.inverse_transform(done.x_cf)
    for name in ("credit_lines", "late_90"):
        counts = in_units[moved[:, column(name)], column(name)]
        assert len(counts) and (counts - counts.round()).abs().max() < 1e-9
        assert counts.min() > -1e-9
    for name in ("age", "dependents", "income", "real_estate_loans"):
        assert not moved[:, column(name)].any(), name  # nothing has moved them
    # what follows is that of the whole numbers, not of the numbers that were recommended
    again = small.flow.counterfactual(x, acts, done.values)
    assert torch.equal(population.to_feasible(again)[moved], done.x_cf[moved])
    nothing = small.discretise(x, Recommendation(torch.zeros_like(acts), x, x))
    assert torch.equal(nothing.x_cf, x)
    # a count that is set to what it was keeps its place in its cell: nothing follows
    acts[:, column("utilization")] = False
    the_same = population.to_feasible(x)
    assert (the_same != x)[acts].any()
    done = small.discretise(x, Recommendation(acts, the_same, the_same))
    assert torch.equal(done.values, x) and torch.equal(done.x_cf, x)
    assert (small.cost_of(x, done) == 0).all() and not small.accepts(the_same).any()


@pytest.fixture(scope="module")
def table(small):
    """What the search over all values finds for eight people."""
    return continuous.Search(small, small.flow, n_samples=128, n_starts=2).table(
        small.refused("test")[:8]
    )


def test_the_search_over_whole_numbers_against_brute_force(small, table):
    """Every number of credit lines with four hundred shares of the limit in use.

    But for actions with consequences on the edge between two whole
    numbers: there the search counts the worst.
    """
    x, population = small.refused("test")[:8], small.population
    names = ("credit_lines", "utilization")
    wanted = torch.tensor([name in names for name in population.actionable])
    set_index = (table.sets == wanted).all(-1).nonzero().item()
    column = [population.features.index(name) for name in names]
    most = population.inverse_transform(population.high)[column[0]].round()
    lines = torch.arange(0, most + 1, dtype=torch.float64)
    shares = torch.linspace(0, 1, 400, dtype=torch.float64)
    pairs = torch.cartesian_prod(lines, shares)
    pairs = (pairs - population.mean[column]) / population.std[column]
    n_helped = 0
    for i, person in enumerate(x):
        rows = person.expand(len(pairs), -1)
        values, is_acted = rows.clone(), torch.zeros_like(rows, dtype=torch.bool)
        values[:, column], is_acted[:, column] = pairs, True
        acted = small.discretise(rows, Recommendation(is_acted, values, values))
        gain = small.flow.log_prob(acted.x_cf) - small.flow.log_prob(person)
        followed = small.flow.counterfactual(rows, is_acted, acted.values)
        near = evaluator.EDGE * (
            population.discretisation.is_whole & ~is_acted & (followed != rows)
        )
        sides = [
            population.round_counterfactual(rows, followed + side) for side in (-near, near)
        ]
        is_clear = (sides[0] == sides[1]).all(-1)
        is_good = small.accepts(acted.x_cf) & (gain >= 0) & is_clear
        cost = small.cost_of(rows, acted)
        least = cost.masked_fill(~is_good, torch.inf).min()
        assert table.cost[i, set_index] <= 1.01 * least, i
        n_helped += least.isfinite().item()
    assert n_helped >= 3


def test_on_the_edge_between_two_whole_numbers_the_worst_counts(small, monkeypatch):
    """The evaluator against all three sides of every action, worked out in full."""
    monkeypatch.setattr(evaluator, "EDGE", 1e-3)  # wider, so that some are on it
    x, population = small.refused("test").repeat(40, 1), small.population
    columns, rng = population.actionable_index, np.random.default_rng(0)
    acts = torch.from_numpy(rng.random((len(x), len(columns))) < 0.4)
    weights = torch.ones(acts.shape, dtype=x.dtype)
    evaluate = evaluator.ActionEvaluator(
        small, small.flow, x, acts, weights, slack=0.2, margin=0.3
    )
    away = torch.from_numpy(rng.normal(size=acts.shape)).to(x)
    values = evaluate.project(evaluate.factual + away).requires_grad_()
    outcomes = evaluate(values)[1:]

    is_acted = scatter_to_features(acts.to(x), columns, x.shape[-1]) > 0
    spread = torch.where(is_acted, scatter_to_features(values, columns, x.shape[-1]), x)
    followed = small.flow.counterfactual(x, is_acted, spread)
    counts = population.discretisation.is_whole & ~is_acted & (followed != x)
    sides = []
    for side in (-evaluator.EDGE, 0.0, evaluator.EDGE):
        there = followed + side * counts
        whole = population.round_counterfactual(x, there.detach())
        whole = whole + (there - there.detach())
        change = small.flow.log_prob_terms(whole).sum(-1) - small.flow.log_prob(x)
        log_odds = small.classifier.logit(population.to_feasible(whole))
        sides.append((whole, log_odds - 0.3, change + 0.2))
    wholes, *in_full = zip(*sides, strict=True)
    on_edge = (wholes[0] != wholes[1]) | (wholes[1] != wholes[2])
    assert 5 < on_edge.any(-1).sum() < len(x) / 2
    for outcome, worst in zip(outcomes, in_full, strict=True):
        least = torch.stack(worst).min(0).values
        assert (least < worst[1]).any()  # it makes a difference to somebody
        torch.testing.assert_close(outcome, least, rtol=1e-4, atol=1e-4)
        slopes = [
            torch.autograd.grad(f.sum(), values, retain_graph=True)[0]
            for f in (outcome, least)
        ]
        torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-3)


def test_a_dialogue_shows_whole_numbers(small):
    x, columns = small.refused("test")[:12], small.population.actionable_index
    easy = Preferences(torch.ones(len(x), len(columns), dtype=torch.long))
    space, rngs = Actions(small, x, easy), np.random.default_rng(0).spawn(len(x))
    nothing = Recommendation(x > 99, x, x)
    is_even = torch.arange(len(x)) % 2 == 0
    dialogue = Dialogue(space, nothing, lambda _: (is_even, x[:, 0] > 99), rngs)
    remembered(dialogue, 6, n_guesses=100, eps=1e-3)
    n_asked = 0
    for question, _ in dialogue.answers:
        for option in (question.incumbent, question.challenger):
            done = small.discretise(x, option)
            asked = question.is_asked
            for field in ("values", "x_cf"):
                shown, whole = (getattr(one, field)[asked] for one in (option, done))
                torch.testing.assert_close(shown, whole, rtol=0, atol=1e-9)
            n_asked += asked.sum()
    assert n_asked > 20


def test_training_shows_the_classifier_whole_numbers(small):
    """The hinge is that of whole numbers; its gradient passes as if unrounded."""
    features, columns = small.population.actionable, small.population.actionable_index
    sampler = RankingSampler(features, n_actionable=4, profile=CONSTANT)
    settings = icarma.Settings(
        n_epochs=1, batch_size=32, width=8, margin=0.0, margin_on="log_odds"
    )
    network, _ = icarma.fit(small, sampler, settings, [1])
    network.requires_grad_()
    x = small.refused("train")[:20]
    preferences = sampler.draw(range(20), np.random.default_rng(0))
    factual = small.flow.factual(x)
    on_all = torch.full((1, 20, 4), 50.0, dtype=x.dtype)
    terms = network.loss_terms(network.batch(factual, preferences, noise=on_all))
    context = network.context(x, factual["z"], preferences)
    everything = torch.ones(1, 20, 4, dtype=x.dtype)
    values = network.action_values(x[None], context, everything)
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, columns] = True
    acted = x.clone()
    acted[:, columns] = values[0].detach()
    x_cf = small.flow.counterfactual(x, is_acted, acted)
    log_odds = small.classifier.logit(small.population.to_feasible(x_cf))
    assert not torch.allclose(log_odds, small.classifier.logit(x_cf), atol=1e-3)
    hinge = icarma.saturating((-log_odds).relu(), settings.saturation)
    assert torch.allclose(terms["hinge"][0], hinge.mean(), atol=1e-9)
    terms["hinge"].sum().backward()
    assert network.action.weights[2].grad.abs().sum() > 0
