"""Laws of counterfactuals that hold in every world, and closed forms for a linear one."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.causal.graph import Graph
from lib.causal.scm import SCM, additive


def chain() -> SCM:
    """A -> M -> B, linear: M = 2 A + u_M, B = M - A + u_B."""
    return SCM(
        {
            "a": additive((), lambda pa: 0.0, stats.norm()),
            "m": additive(("a",), lambda pa: 2 * pa["a"], stats.norm()),
            "b": additive(("a", "m"), lambda pa: pa["m"] - pa["a"], stats.norm()),
        }
    )


@pytest.fixture(params=["scm", "flow"])
def world(request, problem):
    return problem.population.truth if request.param == "scm" else problem.flow


@pytest.fixture
def actions(problem):
    """Two hundred people, random masks over every feature, random values."""
    rng = np.random.default_rng(0)
    x = problem.population.x["recourse/test"][:200]
    is_acted = torch.from_numpy(rng.random(x.shape) < 0.3)
    return x, is_acted, torch.from_numpy(rng.normal(size=x.shape))


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        ({}, [1.0, 3.0, 5.0]),  # u = (1, 1, 3)
        ({"a": 0.0}, [0.0, 1.0, 4.0]),
        ({"m": 0.0}, [1.0, 0.0, 2.0]),
        ({"a": 0.0, "m": 0.0}, [0.0, 0.0, 3.0]),
        (
            {"a": 0.0, "b": 9.0},
            [0.0, 1.0, 9.0],
        ),  # the mediator follows, B is exactly as commanded
    ],
)
def test_chain_by_hand(do, expected):
    x = torch.tensor([[1.0, 3.0, 5.0]], dtype=torch.float64)
    is_acted = torch.tensor([[name in do for name in ("a", "m", "b")]])
    values = torch.tensor(
        [[do.get(name, torch.nan) for name in ("a", "m", "b")]], dtype=torch.float64
    )
    assert chain().counterfactual(x, is_acted, values).tolist() == [expected]


def test_abduction_and_prediction_are_inverse(world, problem):
    x = problem.population.x["recourse/test"]
    assert torch.allclose(world.predict(world.abduct(x)), x, atol=1e-9)


def test_no_action_changes_nothing(world, actions):
    x, is_acted, values = actions
    assert torch.equal(world.counterfactual(x, torch.zeros_like(is_acted), values), x)


def test_acted_on_features_take_their_values(world, actions):
    x, is_acted, values = actions
    x_cf = world.counterfactual(x, is_acted, values)
    assert torch.equal(x_cf[is_acted], values[is_acted])


def test_non_descendants_never_move(world, actions):
    x, is_acted, values = actions
    reached = (is_acted.double() @ world.graph.reaches.double()) > 0
    stays = ~reached & ~is_acted
    assert torch.equal(world.counterfactual(x, is_acted, values)[stays], x[stays])
    assert (world.counterfactual(x, is_acted, values) != x)[
        reached & ~is_acted
    ].float().mean() > 0.9


def test_mechanisms_left_alone_keep_their_noise(world, actions):
    x, is_acted, values = actions
    u_cf = world.abduct(world.counterfactual(x, is_acted, values))
    assert torch.allclose(u_cf[~is_acted], world.abduct(x)[~is_acted], atol=1e-8)


def test_people_do_not_affect_each_other(world, actions):
    x, is_acted, values = actions
    together = world.counterfactual(x, is_acted, values)
    alone = torch.cat(
        [
            world.counterfactual(x[i : i + 1], is_acted[i : i + 1], values[i : i + 1])
            for i in range(20)
        ]
    )
    assert torch.allclose(together[:20], alone, atol=1e-12)
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(x)))
    assert torch.allclose(
        world.counterfactual(x[order], is_acted[order], values[order]),
        together[order],
        atol=1e-12,
    )


def test_inputs_are_left_unmodified(world, actions):
    before = [part.clone() for part in actions]
    world.counterfactual(*actions)
    for part, copy in zip(actions, before, strict=True):
        assert torch.equal(part, copy)


def test_graph_of_loan(problem):
    graph = problem.population.graph
    descendants = {
        name: {graph.features[j] for j in graph.reaches[i].nonzero()}
        for i, name in enumerate(graph.features)
    }
    assert descendants["income"] == {"savings"}
    assert descendants["loan_amount"] == {"loan_duration"}
    assert descendants["savings"] == set()
    assert descendants["age"] == {
        "education",
        "loan_amount",
        "loan_duration",
        "income",
        "savings",
    }
    assert graph.adjacency().sum() == 11


def test_bad_input_is_named(world, actions):
    x, is_acted, values = actions
    with pytest.raises(ValueError, match="label column"):
        world.counterfactual(x[:, :6], is_acted[:, :6], values[:, :6])
    with pytest.raises(ValueError, match="is_acted has shape"):
        world.counterfactual(x, is_acted[:10], values)
    broken = x.clone()
    broken[3, 5] = torch.nan
    with pytest.raises(ValueError, match="in income"):
        world.counterfactual(broken, is_acted, values)
    with pytest.raises(ValueError, match="values holds NaN"):
        world.counterfactual(x, is_acted, torch.full_like(values, torch.nan))
    with pytest.raises(ValueError, match="Did you mean 'income'"):
        world.index("incme")


def test_a_cause_must_be_a_feature():
    with pytest.raises(ValueError, match="cause of a 'c'"):
        Graph({"a": ["c"], "b": []})


def test_a_circle_of_causes_is_refused():
    with pytest.raises(
        ValueError, match="in a circle: a -> b -> a|in a circle: b -> a -> b"
    ):
        Graph({"c": [], "a": ["b", "c"], "b": ["a"]})


def test_the_order_in_which_features_are_listed_does_not_matter(problem):
    """The Loan model with its features listed backwards gives the same answers, in the other order."""
    model = problem.population.truth
    backwards = SCM(
        dict(reversed(model.equations.items())), model.mean.flip(0), model.std.flip(0)
    )
    assert torch.equal(backwards.graph.reaches, model.graph.reaches.flip(0, 1))
    assert backwards.graph.order[0] > backwards.graph.order[-1]
    x = problem.population.x["recourse/test"][:50]
    is_acted = torch.from_numpy(np.random.default_rng(0).random(x.shape) < 0.3)
    assert torch.equal(
        backwards.predict(backwards.abduct(x.flip(-1))),
        model.predict(model.abduct(x)).flip(-1),
    )
    there = backwards.counterfactual(x.flip(-1), is_acted.flip(-1), (x + 1).flip(-1))
    assert torch.equal(there, model.counterfactual(x, is_acted, x + 1).flip(-1))
