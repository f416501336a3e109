"""Twins and cut edges against a linear SCM worked out by hand, and against sampling."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method import loan
from lib.method.data import Population
from lib.method.scm import SCM, additive
from lib.paper.fairness.twins import OUTCOMES, compared, cut, redrawn, twins


def linear() -> SCM:
    """Gender moves income by 2 and savings by 1; savings are 3 times the income."""
    return SCM(
        {
            "gender": additive((), lambda pa: 0.0, stats.bernoulli(0.5)),
            "income": additive(("gender",), lambda pa: 2 * pa["gender"], stats.norm()),
            "savings": additive(
                ("gender", "income"),
                lambda pa: pa["gender"] + 3 * pa["income"],
                stats.norm(),
            ),
        }
    )


@pytest.fixture(scope="module")
def population():
    kinds = {"gender": "immutable", "income": "actionable", "savings": "actionable"}
    return Population.from_scm(
        linear(), kinds, lambda x: x[:, 1] > 0, "linear", 100, 100, 400, 0
    )


def test_a_twin_differs_by_the_total_effect(population):
    x = population.x["recourse/test"]
    before, after = (
        population.inverse_transform(x),
        population.inverse_transform(twins(population, x, "gender")),
    )
    sign = 1 - 2 * before[:, 0]  # women become men
    moved = torch.stack([sign, 2 * sign, 7 * sign], -1)  # 1 + 3 * 2 in savings
    assert torch.allclose(after - before, moved, atol=1e-5)


def test_the_twin_of_a_twin_is_the_person(population):
    x = population.x["recourse/test"]
    again = twins(population, twins(population, x, "gender"), "gender")
    assert torch.allclose(again, x, atol=1e-5)


def test_twins_need_an_scm_and_two_values(population):
    x = population.x["recourse/test"]
    with pytest.raises(ValueError, match="a feature with two values, income has 200"):
        twins(population, x, "income")
    with pytest.raises(ValueError, match="Unknown feature 'race'"):
        twins(population, x, "race")
    with pytest.raises(ValueError, match="has no true SCM"):
        twins(replace(population, truth=None), x, "gender")


@pytest.mark.parametrize(
    ("effects", "moved"),
    [
        (["income"], (0.0, 2.0, 6.0)),  # 2 in income, 3 * 2 in savings
        (["savings"], (0.0, 0.0, 1.0)),
        (["income", "savings"], (0.0, 2.0, 7.0)),
    ],
)
def test_a_cut_edge_takes_its_own_effect_from_the_others(effects, moved):
    """Women, as if income and savings had taken them for men; men stay as they are."""
    scm = linear()
    other = cut(scm, "gender", 1.0, effects)
    x = scm.sample(200, np.random.default_rng(0))
    women = x[:, 0] == 0
    change = redrawn(x, scm, other) - x
    assert torch.allclose(change[women], torch.tensor(moved).double(), atol=1e-9)
    assert change[~women].abs().max() < 1e-9
    assert other.graph == scm.graph and torch.equal(
        scm.sample(5, np.random.default_rng(1)),
        linear().sample(5, np.random.default_rng(1)),
    )


def test_all_edges_cut_is_the_twin_with_the_old_gender():
    scm = loan.scm()
    effects = ["education", "loan_amount", "loan_duration", "income"]
    x = scm.sample(300, np.random.default_rng(0))
    women = x[x[:, 0] == 0]
    as_men = scm.counterfactual(women, do={"gender": 1.0})
    as_men[:, 0] = 0
    assert torch.allclose(redrawn(women, scm, cut(scm, "gender", 1.0, effects)), as_men)


def test_in_a_cut_world_actions_still_have_their_effects():
    scm = linear()
    other = cut(scm, "gender", 1.0, ["savings"])
    x = torch.tensor([[0.0, 1.0, 5.0]], dtype=torch.float64)
    after = other.counterfactual(x, do={"income": 2.0})
    assert after.tolist() == [[0.0, 2.0, 8.0]]


def test_what_cannot_be_cut_is_named():
    with pytest.raises(ValueError, match=r"no edge from gender to savings .* by income"):
        cut(loan.scm(), "gender", 1.0, ["savings"])
    with pytest.raises(ValueError, match=r"no edge from income to gender .* by nothing"):
        cut(loan.scm(), "income", 1.0, ["gender"])
    with pytest.raises(ValueError, match="Unknown feature 'race'"):
        cut(loan.scm(), "race", 1.0, ["income"])
    with pytest.raises(ValueError, match="list the features"):
        redrawn(torch.zeros(1, 3), linear(), loan.scm())


def test_every_pair_has_one_outcome():
    none = np.inf
    cost = np.array([0.1, none, 0.1, 0.1, none, none])
    twin = np.array([0.3, 0.3, 0.3, none, 0.3, none])
    accepted = np.array([True, True, False, False, False, False])
    table = compared(cost, twin, accepted)
    first, *others = OUTCOMES
    assert table.outcome.tolist() == [first, first, *others]
    assert table.difference[2] == pytest.approx(-0.2)
    assert table.difference.notna().sum() == 1
    with pytest.raises(ValueError, match="twin_cost"):
        compared(cost, twin[:2], accepted)
