"""Argument validation: what was expected, what came, and the way out.

The table walks all entry points that take people through all that can be wrong with
people.
"""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lib.io import MODELS
from lib.method import grid, icarma, loan, metrics, report
from lib.method.classifier import NetworkClassifier
from lib.method.icarma import ICarma, Settings
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.samplers import RankingSampler
from lib.search import continuous

# what is wrong with people of 7 features, float64, and what the error must name
FAULTS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a feature is missing": (lambda x: x[:, :6], r"7 features|label column"),
    "whole numbers": (lambda x: x.long(), r"torch.int64|floating"),
    "other floats": (lambda x: x.float(), r"float32.*float64|double\(\)"),
    "a gap": (lambda x: torch.where(torch.arange(7) == 2, torch.nan, x), r"NaN.*education"),
    "infinite": (
        lambda x: torch.where(torch.arange(7) == 5, torch.inf, x),
        r"infinite.*income",
    ),
    "no tensor": (lambda x: x.numpy(), r"ndarray|tensor"),
}
ONLY_FOR_SOLVERS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "nobody": (lambda x: x[:0], r"at least one|one person or more"),
    "one person without a row": (lambda x: x[0], r"row a|shape"),
    "far outside": (
        lambda x: torch.where(torch.arange(7) == 1, 2e4, x),
        r"age of row 0 is 20,000 standard deviations",
    ),
    "accepted": (lambda x: x, r"already accepted"),
}
SOLVERS = (
    "Problem.check",
    "Problem.check_people",
    "ICarma.recommend",
    "Grid.recommend",
    "Search.table",
    "metrics.per_person",
    "report.table",
)
# causal models and classifiers answer for either floats where the mathematics does
EITHER_FLOAT = (
    "SCM.counterfactual",
    "Classifier.accepts",
    "Classifier.probability",
)
# may be asked about anybody
ANYBODY = {
    "far outside": ("metrics.per_person", "report.table"),
    "accepted": ("metrics.per_person", "report.table"),
}


def entry_points(
    problem: Problem, x: Tensor, preferences: Preferences, network: ICarma
) -> dict[str, Callable]:
    """Return every function that takes people, by name, as a function of them alone."""
    still = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    truth, density, h = problem.causal_model, problem.flow, problem.classifier
    coarse = grid.Grid(problem, truth, n_values=3)
    return {
        "SCM.counterfactual": lambda x: truth.counterfactual(x, still.is_acted, still.x_cf),
        "CausalFlow.counterfactual": lambda x: density.counterfactual(
            x, do={"income": 1.0}
        ),
        "CausalFlow.abduct": density.abduct,
        "CausalFlow.log_prob": density.log_prob,
        "Classifier.accepts": h.accepts,
        "Classifier.probability": h.probability,
        "Problem.check": lambda x: problem.check(x, preferences),
        "Problem.check_people": problem.check_people,
        "ICarma.recommend": lambda x: network.recommend(x, preferences),
        "Grid.recommend": lambda x: coarse.recommend(x, preferences),
        "Search.table": lambda x: continuous.Search(problem, truth).table(x),
        "metrics.per_person": lambda x: metrics.per_person(problem, x, preferences, still),
        "report.table": lambda x: report.table(problem, x, still),
    }


@pytest.fixture(scope="module")
def network(problem):
    return ICarma(problem, [Settings(width=8)], [0])


@pytest.mark.parametrize("fault", [*FAULTS, *ONLY_FOR_SOLVERS])
def test_people_that_no_entry_point_takes(problem, people, network, fault):
    x, preferences = people
    change, message = (FAULTS | ONLY_FOR_SOLVERS)[fault]
    everyone = problem.population.x["recourse/test"]
    accepted = everyone[problem.accepts(everyone)][: len(x)]
    wrong = change(accepted if fault == "accepted" else x)
    calls = entry_points(problem, x, preferences, network)
    left_out = ANYBODY.get(fault, EITHER_FLOAT if fault == "other floats" else ())
    names = SOLVERS if fault in ONLY_FOR_SOLVERS else calls
    errors = {
        name: error_of(lambda name=name: calls[name](wrong))
        for name in names
        if name not in left_out
    }
    assert len(errors) >= 5
    assert not {name: e for name, e in errors.items() if not re.search(message, e)}


def error_of(call: Callable[[], object]) -> str:
    """Return the message of the ValueError that a call ends with."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return "no error"


@pytest.mark.filterwarnings("ignore:.*encountered in matmul")
def test_other_arguments_that_are_refused(problem):
    sampler = RankingSampler(problem.population.actionable)
    diverging = Settings(n_epochs=2, learning_rate=1e200)
    for call, message in (
        (lambda: icarma.fit(problem, sampler, diverging), "diverged"),
        (lambda: loan.problem(MODELS, n_recourse=400), "another population.*n_recourse"),
        (lambda: NetworkClassifier.load(MODELS, "loan_flow"), "holds no classifier"),
    ):
        assert re.search(message, error_of(call)), message
