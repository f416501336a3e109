"""A small Loan problem in float64, fitted once for all tests."""

import lib.reproducible

from dataclasses import replace

import numpy as np
import pytest
from torch import Tensor

from lib.method import classifier, flow, loan
from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler


@pytest.fixture(scope="session")
def population() -> Population:
    drawn = loan.population(n_classifier=1_000, n_flow=1_500, n_recourse=800, seed=3)
    return replace(drawn, x={split: x.double() for split, x in drawn.x.items()})


@pytest.fixture(scope="session")
def problem(population: Population) -> Problem:
    x = population.x
    h, _ = classifier.fit(population, n_epochs=30)
    density, _ = flow.fit(
        population.graph, x["flow/train"], x["flow/validation"], n_epochs=40, batch_size=100
    )
    return Problem(population, h, density)


@pytest.fixture(scope="session")
def people(problem: Problem) -> tuple[Tensor, Preferences]:
    """Thirty refused people and their preferences."""
    sampler = RankingSampler(problem.population.actionable)
    return problem.refused("test")[:30], sampler.draw(range(30), np.random.default_rng(5))
