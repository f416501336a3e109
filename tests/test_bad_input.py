"""Every door refuses what it can't use: what was expected, what came, and the way out.

The first table walks all functions that take people through all that can be wrong with
people. The second walks what else can be handed over. Rooms test their own details.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from lib.base import files
from lib.base.files import MODELS
from lib.method import classifier, flow, grid, loan, metrics, training, words
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma, Settings
from lib.method.preferences import Preferences, Profile, from_frame, from_words
from lib.method.problem import Known, Problem, Recommendation
from lib.method.samplers import Grouped, RankingSampler, ScoreSampler, TableSampler
from lib.method.world import Graph
from lib.paper import gmsc
from lib.search import continuous

# What is wrong with people of 7 features, float64, and what the error has to say of it.
FAULTS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a feature is missing": (lambda x: x[:, :6], r"7 features|label column"),
    "a feature too many": (
        lambda x: torch.cat([x, x[:, :1]], -1),
        r"7 features|label column",
    ),
    "whole numbers": (lambda x: x.long(), r"torch.int64|floating"),
    "other floats": (lambda x: x.float(), r"float32.*float64|double\(\)"),
    "a gap": (lambda x: torch.where(torch.arange(7) == 2, torch.nan, x), r"NaN.*education"),
    "infinite": (
        lambda x: torch.where(torch.arange(7) == 5, torch.inf, x),
        r"infinite.*income",
    ),
    "no tensor": (lambda x: x.numpy(), r"ndarray|tensor"),
}
ONLY_FOR_SOLVERS = {
    "nobody": (lambda x: x[:0], r"nobody|at least one|one person or more"),
    "one person without a row": (lambda x: x[0], r"row a|shape"),
    "people who are accepted": (None, r"already accepted"),
}


def nothing(x: Tensor) -> Recommendation:
    """Return the recommendation to do nothing, for people of whatever shape."""
    return Recommendation(torch.zeros(x.shape, dtype=torch.bool), x, x)


def doors(problem: Problem, preferences: Preferences, stack: ICarma) -> dict[str, Callable]:
    """Return every function that takes people, by name, as a function of them alone."""
    x = problem.refused("test")[: len(preferences.scores)]
    still = nothing(x)
    truth, density, h = problem.world, problem.flow, problem.classifier
    acts = torch.zeros_like(x, dtype=torch.bool)
    return {
        "SCM.counterfactual": lambda x: truth.counterfactual(x, acts, torch.zeros(30, 7)),
        "SCM.counterfactual by name": lambda x: truth.counterfactual(x, do={"income": 1.0}),
        "CausalFlow.counterfactual": lambda x: density.counterfactual(
            x, do={"income": 1.0}
        ),
        "CausalFlow.abduct": density.abduct,
        "CausalFlow.log_prob": density.log_prob,
        "Classifier.accepts": h.accepts,
        "Classifier.probability": h.probability,
        "Problem.check": lambda x: problem.check(x, preferences),
        "Problem.check_people": problem.check_people,
        "ICarma.recommend": lambda x: stack.recommend(x, preferences),
        "Grid.recommend": lambda x: grid.Grid(problem, truth, n_values=3).recommend(
            x, preferences
        ),
        "Search.table": lambda x: continuous.Search(problem, truth).table(x),
        "Refined.recommend": lambda x: continuous.Refined(
            Known(still), problem, truth
        ).recommend(x, preferences),
        "metrics.per_person": lambda x: metrics.per_person(problem, x, preferences, still),
        "words.table": lambda x: words.table(problem, x, still),
    }


SOLVERS = {
    "Problem.check",
    "Problem.check_people",
    "ICarma.recommend",
    "Grid.recommend",
    "Search.table",
    "Refined.recommend",
    "metrics.per_person",
    "words.table",
}
# worlds and classifiers answer for either kind of floats where the mathematics does
EITHER_FLOAT = {"SCM.counterfactual", "SCM.counterfactual by name", "Classifier.accepts"}
EITHER_FLOAT |= {"Classifier.probability"}


@pytest.fixture(scope="module")
def stack(problem):
    sampler = RankingSampler(problem.population.actionable)
    short = Settings(n_epochs=1, batch_size=64, hidden=8)
    return training.fit(problem, sampler, short)[0]


@pytest.mark.parametrize("fault", [*FAULTS, *ONLY_FOR_SOLVERS])
def test_people_that_no_door_lets_in(problem, people, stack, fault):
    x, preferences = people
    change, message = (FAULTS | ONLY_FOR_SOLVERS)[fault]
    if change is None:
        everyone = problem.population.x["recourse/test"]
        wrong = everyone[problem.accepts(everyone)][: len(x)]
    else:
        wrong = change(x)
    refusals = {}
    for name, door in doors(problem, preferences, stack).items():
        if fault in ONLY_FOR_SOLVERS and name not in SOLVERS:
            continue
        if fault == "other floats" and name in EITHER_FLOAT:
            continue
        if fault == "people who are accepted" and name == "metrics.per_person":
            continue  # a measure may be asked of anybody
        refusals[name] = refusal_of(lambda door=door: door(wrong))
    assert len(refusals) >= 7
    assert not {
        name: said for name, said in refusals.items() if not re.search(message, said)
    }


def others(problem: Problem, people: tuple) -> dict[str, tuple[Callable[[], object], str]]:
    """Return what else can be wrong: a call, and what its error has to say."""
    x, preferences = people
    population, truth = problem.population, problem.world
    features, graph = population.actionable, population.graph
    fitted_x = population.x["flow/train"]
    columns = {name: ["easy"] for name in features}
    backwards = flow.World(Graph(dict(reversed(graph.parents.items()))))
    nobody = torch.zeros(2, 4, dtype=torch.bool)
    sampler = RankingSampler(features)
    step = Classifier(population.features, lambda x: 2.0 * (x[:, 5] > 0) - 1)
    blunt = replace(problem, classifier=step)
    few = Preferences(preferences.scores[:3])
    return {
        "Graph: circle": (lambda: Graph({"a": ["b"], "b": ["a"]}), "in a circle"),
        "Graph: unknown": (lambda: Graph({"a": ["c"]}), "cause of a 'c'"),
        "counterfactual: both": (
            lambda: truth.counterfactual(x, x > 0, x, do={"income": 1.0}),
            "do",
        ),
        "counterfactual: neither": (lambda: truth.counterfactual(x), "do"),
        "counterfactual: unknown": (
            lambda: truth.counterfactual(x, do={"incme": 1.0}),
            "mean 'income'",
        ),
        "sample: nobody": (lambda: truth.sample(0, np.random.default_rng(0)), "n_people"),
        "flow.fit: rate": (
            lambda: flow.fit(graph, fitted_x, fitted_x, learning_rate=0.0),
            "learning_rate must be",
        ),
        "flow.fit: diverges": (
            lambda: flow.fit(graph, fitted_x * 1e150, fitted_x, n_epochs=2),
            "diverged|finite",
        ),
        "classifier.fit: epochs": (
            lambda: classifier.fit(population, n_epochs=0),
            "n_epochs must be",
        ),
        "classifier.fit: optimiser": (
            lambda: classifier.fit(population, optimiser="SGD"),
            "Unknown optimiser 'SGD'.*adam, sgd",
        ),
        "Preferences: none": (lambda: Preferences.from_mask(nobody), "nothing at all"),
        "Preferences: floats": (lambda: Preferences(torch.zeros(2, 4)), "whole numbers"),
        "Profile: weight": (lambda: Profile(w_max=0.5), "w_max must be"),
        "from_words: unknown": (lambda: from_words("debt: easy", features), "'debt'"),
        "from_frame: column": (
            lambda: from_frame(pd.DataFrame(columns | {"debt": ["hard"]}), features),
            "debt",
        ),
        "from_frame: gap": (
            lambda: from_frame(pd.DataFrame(columns | {"income": [None]}), features),
            "income",
        ),
        "RankingSampler: too many": (
            lambda: RankingSampler(tuple("abcdefghi")),
            r"362,880.*ScoreSampler|TableSampler",
        ),
        "RankingSampler: none": (
            lambda: RankingSampler(features, n_actionable=0),
            "1 to 4",
        ),
        "ScoreSampler: sum": (lambda: ScoreSampler((0.5, 0.2, 0.0)), "summing to 1"),
        "Grouped: too few": (
            lambda: Grouped((TableSampler(few),), torch.zeros(2).long()).draw(
                range(5), np.random.default_rng(0)
            ),
            "5|2",
        ),
        "loan.population: small": (lambda: loan.population(n_flow=3), "n_flow is 3"),
        "loan.problem: other seed": (
            lambda: loan.problem(MODELS, seed=1),
            "another population",
        ),
        "loan.problem: other size": (
            lambda: loan.problem(MODELS, n_recourse=400),
            "n_recourse.? 20000",
        ),
        "gmsc: a table": (lambda: gmsc.population(pd.DataFrame()), "Applicants"),
        "files.load: missing": (lambda: files.load(MODELS, "loan_flwo"), "found none"),
        "files.load: a path": (lambda: files.load(MODELS, "../x"), "name"),
        "CausalFlow.load: no flow": (
            lambda: CausalFlow.load(MODELS, "loan_classifier"),
            "holds no causal flow",
        ),
        "NetworkClassifier.load: no classifier": (
            lambda: NetworkClassifier.load(MODELS, "loan_flow"),
            "holds no classifier",
        ),
        "Problem: other world": (lambda: problem.check_world(backwards), "order"),
        "Problem: split": (lambda: problem.refused("tset"), "mean 'test'"),
        "Settings: below zero": (lambda: Settings(hinge=-1.0), "hinge"),
        "training.fit: lengths": (
            lambda: training.fit(problem, [sampler], Settings(), seeds=[1, 2]),
            "one seed a member",
        ),
        "training.fit: no gradient": (lambda: training.fit(blunt, sampler), "gradient"),
        "training.fit: diverges": (
            lambda: training.fit(
                problem, sampler, Settings(n_epochs=2, learning_rate=1e200)
            ),
            "diverged",
        ),
        "grid: preferences of others": (
            lambda: grid.Grid(problem, truth).recommend(x, few),
            r"scores has shape \(3, 4\), expected \(30, 4\)",
        ),
        "grid: too fine": (
            lambda: grid.Grid(problem, truth, n_values=5_000).recommend(x, preferences),
            "n_values|actions",
        ),
        "continuous: no gradient": (
            lambda: continuous.Search(blunt, truth).table(x),
            "gradient",
        ),
        "continuous: weights": (
            lambda: continuous.Search(problem, truth).table(x, torch.ones(3, 4)),
            "weights has shape",
        ),
        "per_person: a stack": (
            lambda: metrics.per_person(
                problem, x, preferences, nothing(x.expand(2, -1, -1))
            ),
            "member",
        ),
        "words: names": (
            lambda: words.table(problem, x, nothing(x), people=["Ana"]),
            "people names 1",
        ),
    }


@pytest.mark.filterwarnings("ignore:.*encountered in matmul")
def test_what_else_no_door_lets_in(problem, people):
    table = others(problem, people)
    refusals = {name: refusal_of(call) for name, (call, _) in table.items()}
    assert not {
        name: said for name, said in refusals.items() if not re.search(table[name][1], said)
    }


def refusal_of(call: Callable[[], object]) -> str:
    """Return what the ValueError says that a call ends with."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return "it was let in"


def test_an_immutable_feature_that_an_action_would_move(population):
    kinds = dict(population.kinds) | {"savings": "immutable"}
    with pytest.raises(ValueError, match="savings is immutable, but income causes it"):
        replace(population, kinds=kinds)


def test_people_far_outside_are_named(problem, people):
    x, preferences = people
    far = x.clone()
    far[3, 1] = 2e4
    with pytest.raises(ValueError, match=r"age of row 3 is 20,000 standard deviations"):
        grid.Grid(problem, n_values=3).recommend(far, preferences)
