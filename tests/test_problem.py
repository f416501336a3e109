"""What a problem and a recommendation refuse, and how a recommendation is indexed."""

from dataclasses import replace

import pytest
import torch

from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.graph import Graph
from lib.method.problem import PrecomputedSolver, Problem, Recommendation
from lib.method.scm import CausalModel


def test_features_and_dtypes_must_fit(problem):
    h, population = problem.classifier, problem.population
    turned = NetworkClassifier(h.features[::-1], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"The classifier knows savings, in"):
        Problem(population, turned, problem.flow)
    single = {split: x.float() for split, x in population.x.items()}
    with pytest.raises(ValueError, match=r"holds torch.float32.*in torch.float64"):
        replace(problem, population=replace(population, x=single))
    with pytest.raises(ValueError, match=r"shape \(400, 7\) for 400 people: expected one"):
        replace(problem, classifier=Classifier(h.features, lambda x: x))


def test_a_flow_of_other_units_or_of_another_graph_is_noticed(problem):
    population = problem.population
    in_cents = {
        split: 100 * population.inverse_transform(x) for split, x in population.x.items()
    }
    with pytest.raises(ValueError, match=r"fitted in other units"):
        replace(problem, population=replace(population, x=in_cents))
    causes = dict(problem.flow.graph.parents) | {"savings": ()}
    with pytest.raises(ValueError, match=r"another graph: the causes of savings differ"):
        replace(problem, population=replace(population, graph=Graph(causes)))
    same = problem.with_flow(problem.flow).population
    assert same.fingerprint == population.fingerprint
    assert replace(population, graph=Graph(causes)).fingerprint != population.fingerprint


def test_a_causal_model_with_its_features_in_another_order_is_refused(problem):
    backwards = CausalModel()
    backwards.graph = Graph(dict(reversed(problem.flow.graph.parents.items())))
    with pytest.raises(ValueError, match="the order of the features differ"):
        problem.resolve_model(backwards)


def test_cost_by_hand(problem):
    """Half a range in one feature costs a quarter of the range, over four features."""
    x = torch.zeros(1, 4, dtype=torch.float64)
    spread = problem.range[problem.population.actionable_index]
    m = torch.tensor([[0.0, 0.0, 1.0, 0.0]], dtype=torch.float64)
    cost = problem.action_cost(x, m, x + spread / 2)
    assert cost.item() == pytest.approx(spread[2].item() / 4 / 4)
    weights = torch.tensor([[1.0, 1.0, 7.0, 1.0]])
    assert problem.action_cost(x, m, x + spread / 2, weights) == pytest.approx(7 * cost)
    change = problem.relative_change(x, m, x - spread / 2)
    assert change.tolist() == [pytest.approx([0, 0, 0.5, 0])]


def test_a_recommendation_is_indexed_as_a_tensor(people):
    x, _ = people
    rng = torch.Generator().manual_seed(0)
    is_acted = torch.rand(4, *x.shape, generator=rng) < 0.3
    every = Recommendation(is_acted, is_acted * 1.0, x.expand(4, -1, -1))
    rows = torch.tensor([3, 1])
    assert torch.equal(every[2].is_acted, is_acted[2])
    assert torch.equal(every[2][rows].values, every[:, rows][2].values)
    assert torch.equal(every.has_recourse, is_acted.any(-1))
    with pytest.raises(ValueError, match=r"values has shape"):
        Recommendation(is_acted, x, x)
    with pytest.raises(ValueError, match=r"must be of bool, got torch.float64"):
        Recommendation(x, x, x)


def test_what_was_computed_before_is_for_the_same_people(people):
    x, preferences = people
    known = PrecomputedSolver(Recommendation(x > 9, x, x))
    assert known.recommend(x, preferences) is known.recommendation
    with pytest.raises(ValueError, match=r"recommendation.values has shape"):
        known.recommend(x[:3], preferences[:3])
