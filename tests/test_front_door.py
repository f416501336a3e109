"""What can be imported from lib itself, and a problem made of a table in one call."""

import numpy as np
import pandas as pd
import pytest
import torch

import lib
from lib.base import files
from lib.method import classifier, flow, loan
from lib.method.icarma import ICarma
from lib.method.population import Population
from lib.method.preferences import Preferences


def test_every_name_is_that_of_its_room():
    for name, room in lib._ROOMS.items():
        own = getattr(lib, name)
        assert own.__name__ == name and own.__module__ == room
    assert set(lib._ROOMS) < set(dir(lib))


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(
        AttributeError, match="no 'Gird'; it offers CausalFlow, Graph, Grid"
    ):
        _ = lib.Gird


def test_the_map_names_every_room_of_the_method_in_order():
    rooms = {path.stem for path in (files.ROOT / "lib" / "method").glob("[a-z]*.py")}
    indented = [line for line in lib.__doc__.splitlines() if line.startswith("    ")]
    listed = [line.split()[0] for line in indented if line.split()[0] in rooms]
    assert set(listed) == rooms and listed[0] == "world" and listed[-1] == "loan"


def test_a_problem_of_a_table_is_that_of_its_parts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(3, 1, 200)})
    frame["savings"] = frame.income + rng.normal(0, 1, 200)
    frame["repaid"] = frame.savings + frame.income > 6
    kinds, edges = {"income": "mutable", "savings": "actionable"}, {"savings": ["income"]}
    ours = lib.Problem.from_frame(frame, "repaid", kinds, edges, seed=3, n_epochs=4)
    population = Population.from_frame(frame, "repaid", kinds, edges, seed=3)
    h, _ = classifier.fit(population, n_epochs=4, seed=3)
    splits = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, *splits, n_epochs=4, seed=3)
    assert ours.population.fingerprint == population.fingerprint
    assert all(map(torch.equal, ours.classifier.weights, h.weights))
    for name, weight in density.weights.items():
        assert torch.equal(ours.flow.weights[name], weight), name


def test_a_member_recommends_as_its_stack_does():
    problem = loan.problem()
    stack = ICarma.load(files.MODELS, "loan_icarma_hard", problem)
    x = problem.refused("test")[:20]
    own = Preferences.from_mask(torch.ones(20, 4, dtype=torch.bool))
    one, all_of_them = stack.member(stack.ids[3]).recommend(x, own), stack.recommend(x, own)
    assert torch.equal(one.is_acted, all_of_them[3].is_acted)
    assert torch.allclose(one.values, all_of_them[3].values, atol=1e-5)
    with pytest.raises(ValueError, match="Unknown member 77"):
        stack.member(77)
