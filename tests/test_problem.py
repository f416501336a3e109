"""What a problem and a recommendation refuse, and how a recommendation is indexed."""

from dataclasses import replace

import pytest
import torch

from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.world import Graph, World


def test_any_classifier_decides(problem):
    """A module, a function and the network itself decide alike; a step has no gradient."""
    h, x = problem.classifier, problem.population.x["recourse/test"]
    module = torch.nn.Linear(7, 1, dtype=torch.float64)
    by_module = Classifier(h.features, module)
    assert torch.equal(by_module.logit(x), module(x).squeeze(-1)) and by_module.has_gradient
    with torch.no_grad():
        assert Classifier(h.features, h.logit).has_gradient  # its weights are float64
    by_function = Classifier(h.features, h.logit)
    stacked = x[:12].reshape(3, 4, 7)
    assert torch.equal(by_function.logit(stacked), h.logit(x[:12]).reshape(3, 4))
    step = Classifier(h.features, lambda x: torch.where(h.logit(x) >= 0, 1.0, -1.0))
    assert torch.equal(step.accepts(x), h.accepts(x)) and not step.has_gradient
    numpy = Classifier(h.features, lambda x: torch.from_numpy(x.numpy().sum(-1)))
    assert not numpy.has_gradient
    assert torch.allclose(numpy.logit(x.clone().requires_grad_()), x.sum(-1))
    assert len(replace(problem, classifier=step).refused("test")) == len(
        problem.refused("test")
    )


def test_a_classifier_that_gives_no_numbers_is_named(problem):
    h, x = problem.classifier, problem.population.x["recourse/test"]
    broken = Classifier(h.features, lambda x: x.sum(-1) * torch.nan)
    with pytest.raises(ValueError, match=f"NaN or infinite log-odds for {len(x)} of"):
        broken.accepts(x)
    never_empty = Classifier(h.features, lambda x: torch.zeros(len(x)) / (len(x) > 0))
    assert never_empty.logit(x[:0]).shape == (0,)
    module = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(7, 1)).double()
    dropped = Classifier(h.features, module)
    assert torch.equal(dropped.logit(x), dropped.logit(x))
    with pytest.raises(ValueError, match="AttributeError"):
        replace(problem, classifier=Classifier(h.features, lambda x: x.iloc[0]))


def test_parts_of_a_problem_must_fit(problem):
    h, population = problem.classifier, problem.population
    turned = NetworkClassifier(h.features[::-1], h.weights, h.biases)
    with pytest.raises(
        ValueError, match=r"The classifier is for the features savings, income"
    ):
        Problem(population, turned, problem.flow)
    single = {split: x.float() for split, x in population.x.items()}
    with pytest.raises(ValueError, match=r"of torch.float32, the flow of torch.float64"):
        replace(problem, population=replace(population, x=single))
    with pytest.raises(ValueError, match=r"can't decide for people of torch.float64"):
        replace(problem, classifier=Classifier(h.features, torch.nn.Linear(7, 1)))
    with pytest.raises(
        ValueError, match=r"shape \(400, 7\) for 400 people: expected one log-odds"
    ):
        replace(problem, classifier=Classifier(h.features, lambda x: x))


def test_people_and_preferences_are_checked(problem, people):
    x, preferences = people
    problem.check(x, preferences)
    accepted = problem.population.x["recourse/test"]
    accepted = accepted[problem.accepts(accepted)]
    broken = x.clone()
    broken[0, 2] = torch.nan
    for wrong, message in (
        (x[:, :6], "label column"),
        (x.float(), r"torch.float32, the model works in torch.float64: use x.double\(\)"),
        (x.long(), "floating-point"),
        (broken, r"NaN or infinite values \(in education\)"),
        (x[0], r"expected a row a person"),
        (x[:0], "at least one of them"),
        (accepted[: len(x)], "are already accepted"),
    ):
        with pytest.raises(ValueError, match=message):
            problem.check(wrong, preferences)
    with pytest.raises(ValueError, match=r"preferences.scores has shape \(29, 4\)"):
        problem.check(x, Preferences(preferences.scores[:29]))


@pytest.mark.parametrize(
    "wrong", [lambda p: p, lambda p: (p >= 0.5).double(), lambda p: 0.2 + 0.1 * p]
)
def test_probabilities_and_decisions_are_no_log_odds(problem, wrong):
    h = problem.classifier
    as_given = Classifier(h.features, lambda x: wrong(torch.sigmoid(h.logit(x))))
    with pytest.raises(ValueError, match=r"probabilities or decisions. Expected log-odds"):
        replace(problem, classifier=as_given)
    signs = Classifier(h.features, lambda x: 2 * (h.logit(x) >= 0).double() - 1)
    replace(problem, classifier=signs)
    replace(problem, classifier=h.at(0.9))


def test_a_classifier_against_the_labels_is_noticed_and_a_blind_one_is_not(problem):
    h = problem.classifier
    turned = Classifier(h.features, lambda x: -h.logit(x))
    with pytest.raises(ValueError, match=r"prefers the first in [0-9]% of cases"):
        replace(problem, classifier=turned)
    for k in range(100, 150):  # as good as chance
        blind = Classifier(h.features, lambda x, k=k: torch.sin(1_000 * k * x[:, 5]))
        replace(problem, classifier=blind)


def test_a_flow_of_other_units_or_of_another_graph_is_noticed(problem):
    population = problem.population
    in_cents = {split: 100 * population.in_units(x) for split, x in population.x.items()}
    with pytest.raises(ValueError, match=r"fitted in other units"):
        replace(problem, population=replace(population, x=in_cents))
    causes = dict(problem.flow.graph.parents) | {"savings": ()}
    with pytest.raises(ValueError, match=r"another graph: the causes of savings differ"):
        replace(problem, population=replace(population, graph=Graph(causes)))
    assert problem.under(problem.flow).population.fingerprint == population.fingerprint
    other = replace(population, graph=Graph(causes))
    assert other.fingerprint != population.fingerprint


def test_a_world_with_its_features_in_another_order_is_refused(problem):
    backwards = Graph(dict(reversed(problem.flow.graph.parents.items())))
    with pytest.raises(ValueError, match="the order of the features differ"):
        problem.check_world(World(backwards))


def test_a_recommendation_is_indexed_as_a_tensor(people):
    x, _ = people
    rng = torch.Generator().manual_seed(0)
    acts = torch.rand(4, *x.shape, generator=rng) < 0.3
    stack = Recommendation(acts, acts * 1.0, x.expand(4, -1, -1))
    rows = torch.tensor([3, 1])
    assert torch.equal(stack[2].is_acted, acts[2])
    assert torch.equal(stack[:, rows].is_acted, acts[:, rows])
    assert torch.equal(stack[2][rows].values, stack[:, rows][2].values)
    assert torch.equal(stack.has_recourse, acts.any(-1))
    with pytest.raises(ValueError, match=r"values has shape"):
        Recommendation(acts, x, x)
    with pytest.raises(ValueError, match=r"must be of bool, got torch.float64"):
        Recommendation(x, x, x)
