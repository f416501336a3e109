"""A small Loan problem in float64, fitted once for all tests."""

import lib.reproducible

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from zuko.flows import MaskedAutoregressiveTransform
from zuko.transforms import Transform

from lib.method import classifier, flow, loan
from lib.method.population import Population
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


def block_structured(ours: flow.CausalFlow) -> nn.Sequential:
    """Return the networks of an affine flow as one plain network, from D to 2 D values.

    Its dense matrices hold a block for each feature, and zeros elsewhere.
    """
    graph, (width,), weights = ours.graph, ours.settings["hidden"], ours.weights
    n = len(graph.features)
    first, last = nn.Linear(n, n * width), nn.Linear(n * width, n * 2)
    network = nn.Sequential(first, nn.ELU(), last).to(ours.dtype).requires_grad_(False)
    for part in network.parameters():
        part.zero_()
    for j, name in enumerate(graph.features):
        causes = graph.parent_index[j]
        units, outputs = slice(width * j, width * (j + 1)), slice(2 * j, 2 * (j + 1))
        if not causes:
            last.bias[outputs] = weights[f"{name}.raw"]
            continue
        first.weight[units, causes] = weights[f"{name}.weight_0"].T
        first.bias[units] = weights[f"{name}.bias_0"]
        last.weight[outputs, units] = weights[f"{name}.weight_1"].T
        last.bias[outputs] = weights[f"{name}.bias_1"]
    return network


@pytest.fixture(scope="session")
def as_zuko() -> Callable[[flow.CausalFlow], Transform]:
    """Turn an affine flow into zuko's own autoregressive transform with its weights."""

    def turn(ours: flow.CausalFlow) -> Transform:
        n_features = len(ours.features)
        adjacency = ours.graph.adjacency() | torch.eye(n_features, dtype=torch.bool)
        layer = MaskedAutoregressiveTransform(n_features, adjacency=adjacency)
        layer.hyper = block_structured(ours)
        return layer()

    return turn
