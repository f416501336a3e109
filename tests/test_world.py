"""Laws of counterfactuals that hold in every world, and closed forms for a linear one."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method.scm import SCM, additive


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
        ({"a": 0.0, "b": 9.0}, [0.0, 1.0, 9.0]),  # M follows, B is exactly as commanded
    ],
)
def test_chain_by_hand(do, expected):
    x = torch.tensor([[1.0, 3.0, 5.0]], dtype=torch.float64)
    is_acted = torch.tensor([[name in do for name in ("a", "m", "b")]])
    values = torch.tensor(
        [[do.get(name, torch.nan) for name in ("a", "m", "b")]], dtype=torch.float64
    )
    assert chain().counterfactual(x, is_acted, values).tolist() == [expected]
    assert chain().counterfactual(x, do=do).tolist() == [expected]
    assert chain().counterfactual(x[0], do=do).tolist() == expected


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


def test_an_action_by_name_is_the_same_action(world, actions):
    x, _, values = actions
    j, k = world.index("income"), world.index("age")
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, [j, k]] = True
    values[:, k] = 0.5
    by_name = world.counterfactual(x, do={"income": values[:, j], "age": 0.5})
    assert torch.equal(by_name, world.counterfactual(x, is_acted, values))
    assert torch.equal(world.counterfactual(x, do={}), x)


def test_one_person_is_a_batch_of_one(world, actions):
    x, is_acted, values = actions
    for i in range(20):
        one = world.counterfactual(x[i], is_acted[i], values[i])
        assert torch.allclose(
            one, world.counterfactual(x, is_acted, values)[i], rtol=0, atol=1e-12
        )
    person, some = x[0], slice(0, 1)
    pairs = {
        "abduct": (world.abduct(person), world.abduct(x[some])[0]),
        "predict": (world.predict(person), world.predict(x[some])[0]),
        "log_prob": (world.log_prob(person), world.log_prob(x[some])[0]),
        "do": (
            world.counterfactual(person, do={"income": 1.0}),
            world.counterfactual(x[some], do={"income": 1.0})[0],
        ),
        "do, by a tensor": (
            world.counterfactual(person, do={"income": torch.tensor(1.0)}),
            world.counterfactual(x[some], do={"income": torch.tensor([1.0])})[0],
        ),
    }
    for name, (one, of_batch) in pairs.items():
        assert one.shape == of_batch.shape and torch.allclose(one, of_batch), name


def test_any_leading_axes_will_do(world, actions):
    x, is_acted, values = actions
    there = world.counterfactual(x, is_acted, values)
    deep = [part.reshape(4, 5, 10, 7) for part in actions]
    assert torch.allclose(world.counterfactual(*deep).reshape(200, 7), there, atol=1e-12)
    assert torch.allclose(
        world.log_prob(deep[0]).reshape(200), world.log_prob(x), atol=1e-12
    )
    assert world.counterfactual(x[:0], is_acted[:0], values[:0]).shape == (0, 7)


def test_known_noise_changes_nothing(world, actions):
    expected = world.counterfactual(*actions)
    assert torch.equal(world.counterfactual(*actions, world.abduct(actions[0])), expected)


def test_sample_is_what_follows_from_fresh_noise(world):
    x = world.sample(500, np.random.default_rng(0))
    noise = world.draw_noise(500, np.random.default_rng(0))
    assert x.shape == (500, 7) and torch.equal(x, world.predict(noise))
    assert torch.allclose(world.abduct(x), noise, atol=1e-8)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="n_people must be"):
            world.sample(wrong, np.random.default_rng(0))


WRONG = {  # what is handed over, from x, is_acted and values; what is said
    "no action": (lambda x, i, v: ((x,), {}), r"in one of two ways"),
    "half an action": (lambda x, i, v: ((x, i), {}), r"in one of two ways"),
    "two actions": (lambda x, i, v: ((x, i, v), {"do": {}}), r"in one of two ways"),
    "no label": (lambda x, i, v: ((x[:, :6], i[:, :6], v[:, :6]), {}), r"label column"),
    "fewer masks": (lambda x, i, v: ((x, i[:10], v), {}), r"is_acted has shape \(10, 7\)"),
    "masks of 0 and 1": (lambda x, i, v: ((x, i.double(), v), {}), r"tensor of torch.bool"),
    "fewer values": (lambda x, i, v: ((x, i, v[:10]), {}), r"values has shape \(10, 7\)"),
    "other numbers": (lambda x, i, v: ((x, i, v.float()), {}), r"values.to\(torch.float64"),
    "a list": (lambda x, i, v: ((x, i, v.tolist()), {}), r"got list"),
    "less noise": (lambda x, i, v: ((x, i, v, x[:1]), {}), r"noise has shape \(1, 7\)"),
    "NaN values": (lambda x, i, v: ((x, i, v * torch.nan), {}), r"values holds NaN"),
    "NaN people": (lambda x, i, v: ((x * torch.nan, i, v), {}), r"x holds NaN"),
    "a typing error": (lambda x, i, v: ((x,), {"do": {"incme": 1}}), r"mean 'income'"),
    "text": (
        lambda x, i, v: ((x,), {"do": {"income": "3 euros"}}),
        r"income must be set to a number or to a tensor .* \(200,\), got '3 euros'",
    ),
    "values of some": (
        lambda x, i, v: ((x,), {"do": {"income": v[:10, 0]}}),
        r"income must be set to .* shape \(200,\), got a tensor with shape \(10,\)",
    ),
    "do NaN": (
        lambda x, i, v: ((x,), {"do": {"income": float("nan")}}),
        r"values holds NaN or infinite values \(in income\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_action_is_named(world, actions, case):
    call, message = WRONG[case]
    args, kwargs = call(*actions)
    with pytest.raises(ValueError, match=message):
        world.counterfactual(*args, **kwargs)


@pytest.mark.parametrize("question", ["abduct", "predict", "log_prob"])
def test_wrong_people_are_named(world, actions, question):
    x, ask = actions[0].clone(), getattr(world, question)
    with pytest.raises(ValueError, match="label column"):
        ask(x[:, :6])
    with pytest.raises(ValueError, match="must be a floating-point tensor"):
        ask(x.long())
    x[3, 5] = torch.inf
    with pytest.raises(ValueError, match="in income"):
        ask(x)


def test_the_order_in_which_features_are_listed_does_not_matter(problem):
    """The Loan model with its features listed backwards gives the same answers."""
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
