"""Whom actions help, worked out by hand; the choice of a margin; resampled noise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.beyond.propose import margins
from lib.beyond.propose.margins import PartlyResampled
from lib.method import flow
from lib.method.classifier import Classifier
from lib.method.data import Population
from lib.method.problem import Problem, Recommendation
from lib.method.scm import SCM, Equation, additive

KINDS = {"amount": "immutable", "income": "actionable", "savings": "actionable"}
WEIGHTS = torch.tensor([-0.5, 0.7, 1.1], dtype=torch.float64)  # of the classifier


def linear(slope: float) -> SCM:
    """Savings are a multiple of the income, and noise."""
    root = additive((), lambda pa: 0.0, stats.norm())
    savings = additive(("income",), lambda pa: slope * pa["income"], stats.norm())
    return SCM({"amount": root, "income": root, "savings": savings})


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A problem of the linear model with a linear classifier, in float64."""
    population = Population.from_scm(
        linear(3.0), KINDS, lambda x: x[:, 1] > 0, "linear", 300, 300, 800, 0
    )
    x = {split: x.double() for split, x in population.x.items()}
    population = replace(population, x=x)
    splits = x["flow/train"], x["flow/validation"]
    density, _ = flow.fit(population.graph, *splits, n_epochs=20, batch_size=50)
    h = Classifier(tuple(KINDS), lambda x: x @ WEIGHTS.to(x))
    return Problem(population, h, density)


def test_whom_actions_help_in_each_model(problem):
    """Savings move by slope times as much as the income, worked out by hand."""
    x = problem.refused("validation")[:40]
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[1:, 1] = True  # the first does nothing
    more = torch.linspace(0.1, 1.5, len(x), dtype=x.dtype)[:, None]
    values = torch.where(is_acted, x + more, x)
    recommendation = Recommendation(is_acted, values, x)
    mean, std = problem.population.mean, problem.population.std
    before, after = x * std + mean, values * std + mean

    def log_p(units, slope):
        """Return the log-density of standard normal noise, but for constants."""
        noise = units[:, 2] - slope * units[:, 1]
        return -(units[:, 0] ** 2 + units[:, 1] ** 2 + noise**2) / 2

    for slope in (2.0, 3.0, 4.5):
        units = after.clone()
        units[:, 2] = before[:, 2] + slope * (after[:, 1] - before[:, 1])
        x_cf = (units - mean) / std
        valid = (x_cf @ WEIGHTS) >= 0
        is_dense = log_p(units, slope) >= log_p(before, slope)
        expected = (valid & is_dense).numpy()
        expected[0] = False
        model = linear(slope).standardised(mean, std)
        helped = margins.is_helped(problem, model, x, recommendation)
        assert (helped == expected).all(), slope
        assert 0 < helped.sum() < len(x) - 1


def people_of(joint, cost) -> pd.DataFrame:
    """Rows of margins 0, 1, ... from people's joint (P, N) and the cost of each margin."""
    joint = np.asarray(joint, dtype=bool)
    margin, person = (index.ravel() for index in np.indices(joint.shape))
    table = pd.DataFrame({"margin": margin, "slack": -0.02, "person": person})
    cost = np.asarray(cost, dtype=float)[margin]
    return table.assign(joint=joint.ravel(), has_recourse=True, cost=cost)


def test_the_cheapest_pair_within_one_standard_error():
    # the best is 0.8 with an error of sqrt(0.16 / 99) = 0.0402: 0.76 is near, 0.75 is not
    joint = [np.arange(100) < k for k in (75, 76, 80, 78)]
    table, chosen = margins.choose(people_of(joint, [1, 3, 5, 4]))
    assert table.se[2] == pytest.approx(0.4 / np.sqrt(99))
    assert list(table.is_near) == [False, True, True, True]
    assert chosen == (1.0, -0.02)
    assert margins.choose(people_of(joint, [1, 9, 5, 4]))[1] == (3.0, -0.02)


def test_each_person_counts_once():
    rng = np.random.default_rng(0)
    one, other = (people_of(rng.random((3, 50)) < 0.5, [3, 2, 1]) for _ in range(2))
    table, chosen = margins.choose(one)
    repeated, again = margins.choose(pd.concat([one] * 8))
    pd.testing.assert_frame_equal(table, repeated)
    assert chosen == again
    table, _ = margins.choose(pd.concat([one, other]))
    mean = (one.joint + 0.0 + other.joint).to_numpy().reshape(3, 50) / 2
    assert np.allclose(table.joint, mean.mean(1))
    assert np.allclose(table.se, mean.std(1, ddof=1) / np.sqrt(50))


def test_cost_is_of_people_with_a_recommendation():
    people = people_of(np.ones((2, 4)), [1.0, 1.0])
    people["cost"] = [0.0, 0.0, 9.0, 9.0, 0.0, 5.0, 5.0, 5.0]
    people["has_recourse"] = people.cost > 0
    table, chosen = margins.choose(people)
    assert list(table.cost) == [9.0, 5.0] and list(table.has_recourse) == [0.5, 0.75]
    assert chosen == (1.0, -0.02)


def test_people_of_no_use_are_named():
    people = people_of(np.ones((2, 4)), [1.0, 1.0])
    for wrong, message in (
        (people.drop(columns="slack"), "Unknown column of people 'slack'"),
        (people.iloc[1:], "not of the same people"),
        (people[people.person == 0], "people has one person"),
        (people.assign(has_recourse=False), "Nobody has a recommendation"),
    ):
        with pytest.raises(ValueError, match=message):
            margins.choose(wrong)


def skewed() -> SCM:
    """Noise of three distributions: discrete, bounded, skewed."""
    income = Equation(
        ("amount",),
        lambda pa, u: pa["amount"] + 2 * u,
        lambda pa, x: (x - pa["amount"]) / 2,
        stats.uniform(1, 3),
    )
    gamma = stats.gamma(3, scale=2.0)
    savings = additive(("income",), lambda pa: pa["income"].square(), gamma)
    amount = additive((), lambda pa: 0.0, stats.bernoulli(0.5))
    return SCM({"amount": amount, "income": income, "savings": savings})


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_share_of_the_noise_is_new_and_its_distribution_the_old(share):
    scm, n = skewed(), 4_000
    x = scm.sample(n, np.random.default_rng(0))
    models = [PartlyResampled(scm, share, seed) for seed in (1, 2)]
    after = [scm.abduct(m.counterfactual(x, do={"amount": 1.0})) for m in models]
    distributions = {1: stats.uniform(1, 3), 2: stats.gamma(3, scale=2.0)}
    for j, distribution in distributions.items():
        noise = [u[:, j].numpy() for u in (scm.abduct(x), *after)]
        assert stats.kstest(noise[1], distribution.cdf).pvalue > 0.01
        # of a person's noise and the new, and of two draws: within 3 standard errors
        r = np.corrcoef([stats.norm.ppf(distribution.cdf(u)) for u in noise])
        keep = 1 - share**2
        assert r[0, 1] == pytest.approx(np.sqrt(keep), abs=3 / np.sqrt(n))
        assert r[1, 2] == pytest.approx(keep, abs=3 / np.sqrt(n))
    # discrete noise stays
    noise = scm.abduct(x)
    assert torch.equal(models[0].counterfactual_noise(x, noise)[:, 0], noise[:, 0])


def test_new_noise_shows_in_downstream_effects_only():
    scm = skewed()
    x, do = scm.sample(40, np.random.default_rng(0)), {"income": 3.0}
    one, other = (
        PartlyResampled(scm, 1.0, seed).counterfactual(x, do=do) for seed in (0, 1)
    )
    assert torch.equal(one[:, 0], x[:, 0]) and (one[:, 1] == 3.0).all()
    for same in (scm.counterfactual(x, do=do), other):
        assert (one[:, 2] != same[:, 2]).all()


def test_noise_in_the_tails_stays_finite():
    x = torch.tensor([[0.0, 0.0, 60.0], [0.0, 0.0, -60.0]], dtype=torch.float64)
    x_cf = PartlyResampled(linear(3.0), 0.5, seed=0).counterfactual(x, do={"income": 1.0})
    assert x_cf.isfinite().all()


def test_a_share_out_of_range_is_named():
    with pytest.raises(ValueError, match=r"share is 1\.5"):
        PartlyResampled(linear(3.0), 1.5, 0)
