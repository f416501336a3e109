"""Margins against outcomes worked out by hand, brute force, and laws."""

from dataclasses import replace

import numpy as np
import other_flows
import pandas as pd
import pytest
import torch
from parameters import read_network_parameters
from scipy import stats

from lib.base.files import MODELS
from lib.beyond.propose import margins
from lib.beyond.propose.margins import Renewed
from lib.method import flow, loan
from lib.method.classifier import Classifier
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.scm import SCM, Equation, additive
from lib.method.world import World
from lib.search import continuous

KINDS = {"amount": "immutable", "income": "actionable", "savings": "actionable"}
SLOPE = 3.0  # of savings in income
WEIGHTS = torch.tensor([-0.5, 0.7, 1.1], dtype=torch.float64)  # of the classifier


def linear(slope: float = SLOPE) -> SCM:
    """Savings are a multiple of the income, and noise."""
    alone = additive((), lambda pa: 0.0, stats.norm())
    savings = additive(("income",), lambda pa: slope * pa["income"], stats.norm())
    return SCM({"amount": alone, "income": alone, "savings": savings})


def of_linear(logit) -> Problem:
    """A problem of the linear model with a classifier, in float64."""
    drawn = Population.from_scm(
        linear(), KINDS, lambda x: x[:, 1] > 0, "linear", 300, 300, 800, 0
    )
    population = replace(drawn, x={split: x.double() for split, x in drawn.x.items()})
    fitted_to = (population.x["flow/train"], population.x["flow/validation"])
    density, _ = flow.fit(population.graph, *fitted_to, n_epochs=20, batch_size=50)
    return Problem(population, Classifier(tuple(KINDS), logit), density)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return of_linear(lambda x: x @ WEIGHTS.to(x))


def in_std(problem: Problem, scm: SCM) -> SCM:
    """Return a model of the same features on the problem's scale."""
    return scm.standardised(problem.population.mean, problem.population.std)


def worlds_of(problem: Problem, slopes=(2.0, 3.0, 4.5)) -> dict[str, World]:
    """Return worlds that differ in what income brings."""
    return {f"{slope}": in_std(problem, linear(slope)) for slope in slopes}


@pytest.fixture(scope="module")
def earners(problem):
    """Refused people, everyone's preferences, and more income for all but the first."""
    x = problem.refused("validation")[:40]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[1:, 1] = True
    more = torch.linspace(0.1, 1.5, len(x), dtype=x.dtype)[:, None]
    values = torch.where(acts, x + more, x)
    x_cf = problem.flow.counterfactual(x, acts, values)
    easy = Preferences(torch.ones(len(x), 2, dtype=torch.long))
    return x, easy, Recommendation(acts, values, x_cf)


def followed(problem, slope, x, values):
    """Return people after a new income, by hand: savings move by slope times as much."""
    mean, std = problem.population.mean, problem.population.std
    before, after = x * std + mean, values * std + mean
    after[:, 2] = before[:, 2] + slope * (after[:, 1] - before[:, 1])
    return (after - mean) / std


# --- carried out


def test_recommendations_are_carried_out_in_each_world(problem, earners):
    x, easy, rec = earners
    people = margins.carried_out(problem, worlds_of(problem), x, easy, rec)
    assert list(people.world.unique()) == ["2.0", "3.0", "4.5"]
    log_p = problem.flow.log_prob(x)
    for slope in (2.0, 3.0, 4.5):
        x_cf = followed(problem, slope, x, rec.values)
        valid = ((x_cf @ WEIGHTS) >= 0).numpy()
        plausible = (problem.flow.log_prob(x_cf) >= log_p).numpy()
        own = people[people.world == f"{slope}"]
        assert list(own.person) == list(range(len(x)))
        assert (own.valid == valid).all() and 0 < valid.sum() < len(x)
        # whoever does nothing is as plausible as before, but for rounding
        assert (own.plausible[1:] == plausible[1:]).all() and 0 < plausible.sum() < len(x)
        assert (own.joint[1:] == (valid & plausible)[1:]).all() and own.joint.any()
        assert not own.joint.iloc[0] and not own.has_recourse.iloc[0]
        assert np.allclose(own.cost, problem.cost_of(x, rec))


def test_who_got_nothing_is_not_helped_by_being_accepted(problem, earners):
    x, easy, rec = earners
    accepted = problem.population.x["recourse/validation"]
    accepted = accepted[problem.accepts(accepted)][: len(x)]
    nothing = Recommendation(rec.is_acted & False, accepted, accepted)
    people = margins.carried_out(problem, worlds_of(problem), accepted, easy, nothing)
    assert people.valid.all() and people.plausible.all() and not people.joint.any()


def test_permuting_people_permutes_what_becomes_of_them(problem, earners):
    x, easy, rec = earners
    worlds = worlds_of(problem) | {"renewed": Renewed(problem.flow, 0.6, seed=3)}
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    people = margins.carried_out(problem, worlds, x, easy, rec).set_index("world")
    other = margins.carried_out(problem, worlds, x[order], easy, rec[order])
    for name, own in other.groupby("world"):
        there = people.loc[name].set_index("person")
        assert (there.joint.to_numpy()[order] == own.joint).all(), name


def test_carried_out_asks_for_worlds_of_the_flows_graph(problem, earners):
    with pytest.raises(ValueError, match="worlds is empty"):
        margins.carried_out(problem, {}, *earners)
    with pytest.raises(ValueError, match="different graphs"):
        margins.carried_out(problem, {"other": loan.scm()}, *earners)


# --- the rule


def people_of(joint, cost, has_recourse=True) -> pd.DataFrame:
    """Rows of margins 0, 1, ... from their people's joint (P, N) and the pairs' cost."""
    joint = np.asarray(joint, dtype=bool)
    margin, person = (part.ravel() for part in np.indices(joint.shape))
    return pd.DataFrame(
        {
            "margin": margin,
            "slack": -0.02,
            "person": person,
            "joint": joint.ravel(),
            "has_recourse": has_recourse,
            "cost": np.asarray(cost, dtype=float)[margin],
        }
    )


def test_the_cheapest_pair_within_one_standard_error():
    n = 100
    # the best is 0.8 with an error of sqrt(0.16 / 99) = 0.0402: 0.76 is near, 0.75 is not
    joint = [np.arange(n) < k for k in (75, 76, 80, 78)]
    table, chosen = margins.choose(people_of(joint, [1, 3, 5, 4]))
    assert table.se[2] == pytest.approx(0.4 / np.sqrt(99))
    assert list(table.is_near) == [False, True, True, True]
    assert chosen == (1.0, -0.02)
    _, chosen = margins.choose(people_of(joint, [1, 9, 5, 4]))
    assert chosen == (3.0, -0.02)


def test_people_are_the_clusters():
    rng = np.random.default_rng(0)
    joint = rng.random((3, 50)) < 0.5
    table, chosen = margins.choose(people_of(joint, [3, 2, 1]))
    often, again = margins.choose(pd.concat([people_of(joint, [3, 2, 1])] * 8))
    pd.testing.assert_frame_equal(table, often)  # eight equal worlds say no more than one
    assert chosen == again
    # worlds that differ: the error is that of the people's means
    other = rng.random((3, 50)) < 0.5
    table, _ = margins.choose(
        pd.concat([people_of(joint, [3, 2, 1]), people_of(other, [3, 2, 1])])
    )
    mean = (joint + 0.0 + other) / 2
    assert np.allclose(table.joint, mean.mean(1))
    assert np.allclose(table.se, mean.std(1, ddof=1) / np.sqrt(50))


def test_cost_is_of_people_with_a_recommendation():
    people = people_of(np.ones((2, 4)), [1.0, 1.0])
    people["cost"] = [0.0, 0.0, 9.0, 9.0, 0.0, 5.0, 5.0, 5.0]
    people["has_recourse"] = people.cost > 0
    table, chosen = margins.choose(people)
    assert list(table.cost) == [9.0, 5.0] and list(table.has_recourse) == [0.5, 0.75]
    assert chosen == (1.0, -0.02)


def test_the_rule_says_what_is_missing():
    people = people_of(np.ones((2, 4)), [1.0, 1.0])
    with pytest.raises(ValueError, match="Unknown column of people 'slack'"):
        margins.choose(people.drop(columns="slack"))
    with pytest.raises(ValueError, match="not of the same people"):
        margins.choose(people.iloc[1:])
    with pytest.raises(ValueError, match="people has one person"):
        margins.choose(people[people.person == 0])
    with pytest.raises(ValueError, match="Nobody has a recommendation"):
        margins.choose(people.assign(has_recourse=False))


# --- chance that is drawn anew


def squeezed() -> SCM:
    """Noise of three laws: single values, bounded, skewed."""
    return SCM(
        {
            "amount": additive((), lambda pa: 0.0, stats.bernoulli(0.5)),
            "income": Equation(
                ("amount",),
                lambda pa, u: pa["amount"] + 2 * u,
                lambda pa, x: (x - pa["amount"]) / 2,
                stats.uniform(1, 3),
            ),
            "savings": additive(
                ("income",), lambda pa: pa["income"].square(), stats.gamma(3, scale=2.0)
            ),
        }
    )


def test_no_share_is_the_world_itself(problem, earners):
    x, _, rec = earners
    args = (x, rec.is_acted, rec.values)
    same = Renewed(problem.flow, 0.0, seed=0).counterfactual(*args)
    assert torch.equal(same, problem.flow.counterfactual(*args))
    x = squeezed().sample(500, np.random.default_rng(0))
    same = Renewed(squeezed(), 0.0, seed=0).counterfactual(x, do={"income": 3.0})
    assert torch.allclose(same, squeezed().counterfactual(x, do={"income": 3.0}), atol=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_a_share_of_the_noise_is_new_and_its_law_the_old(share):
    scm, n = squeezed(), 4_000
    x = scm.sample(n, np.random.default_rng(0))
    worlds = [Renewed(scm, share, seed) for seed in (1, 2)]
    cfs = [world.counterfactual(x, do={"amount": 1.0}) for world in worlds]
    laws = {1: stats.uniform(1, 3), 2: stats.gamma(3, scale=2.0)}
    before = scm.abduct(x)
    for j, law in laws.items():
        after = [scm.abduct(x_cf)[:, j].numpy() for x_cf in cfs]
        z = [stats.norm.ppf(law.cdf(u)) for u in (before[:, j].numpy(), *after)]
        assert stats.kstest(after[0], law.cdf).pvalue > 0.01
        # own noise against new, and two draws of the new: both within 3 standard errors
        assert np.corrcoef(z[0], z[1])[0, 1] == pytest.approx(
            np.sqrt(1 - share**2), abs=3 / np.sqrt(n)
        )
        assert np.corrcoef(z[1], z[2])[0, 1] == pytest.approx(
            1 - share**2, abs=3 / np.sqrt(n)
        )
    fresh = worlds[0]._fresh(x)
    assert np.abs(np.corrcoef(fresh.T) - np.eye(3)).max() < 3 / np.sqrt(n)
    assert all(stats.kstest(column, stats.norm.cdf).pvalue > 0.01 for column in fresh.T)


def test_chance_reaches_only_what_the_action_reaches(problem, earners):
    x, _, rec = earners
    world = Renewed(problem.flow, 1.0, seed=0)
    x_cf = world.counterfactual(x, rec.is_acted, rec.values)
    assert torch.equal(x_cf[0], x[0])  # does nothing
    assert torch.equal(x_cf[:, :2], rec.values[:, :2])
    assert (x_cf[1:, 2] != rec.x_cf[1:, 2]).all()
    saved = torch.zeros_like(rec.is_acted)
    saved[:, 2] = True  # nothing follows from savings
    assert torch.equal(world.counterfactual(x, saved, x + 1)[:, :2], x[:, :2])
    # a kept coin: noise of single values stays
    coin = squeezed()
    drawn = coin.sample(50, np.random.default_rng(1))
    noise = coin.abduct(drawn)
    assert torch.equal(Renewed(coin, 1.0, 0).noise_after(drawn, noise)[:, 0], noise[:, 0])


def test_chance_belongs_to_the_person(problem, earners):
    x, _, rec = earners
    args = (x, rec.is_acted, rec.values)
    world = Renewed(problem.flow, 0.5, seed=0)
    x_cf = world.counterfactual(*args)
    assert torch.equal(world.counterfactual(*(part[7:9] for part in args)), x_cf[7:9])
    assert torch.equal(world.counterfactual(*args, noise=world.abduct(x)), x_cf)
    other = Renewed(problem.flow, 0.5, seed=1).counterfactual(*args)
    assert (other[1:, 2] != x_cf[1:, 2]).all()


def test_a_search_can_ask_a_renewed_world(problem, earners):
    x = earners[0][:6]
    world = Renewed(problem.flow, 0.5, seed=0)
    table = continuous.Search(problem, world, n_scouts=32, n_starts=1).table(x)
    everything = Preferences(torch.ones(6, 2, dtype=torch.long))
    rec = continuous.Search(problem, world).recommend(x, everything, table)
    people = margins.carried_out(problem, {"renewed": world}, x, everything, rec)
    assert (people.joint == people.has_recourse).all() and people.joint.any()


def test_noise_far_out_stays_finite():
    scm = linear()
    x = torch.tensor([[0.0, 0.0, 60.0], [0.0, 0.0, -60.0]], dtype=torch.float64)
    x_cf = Renewed(scm, 0.5, seed=0).counterfactual(x, do={"income": 1.0})
    assert x_cf.isfinite().all() and x_cf[0, 2] > 20 and x_cf[1, 2] < -20


def test_minus_zero_is_zero():
    world = Renewed(linear(), 0.5, seed=0)
    x = torch.tensor([[0.0, 1.0, 2.0], [-0.0, 1.0, 2.0]])
    one, other = world.counterfactual(x, do={"income": 3.0})
    assert torch.equal(one[1:], other[1:])


def test_renewal_asks_for_a_known_law(problem):
    with pytest.raises(ValueError, match="world is a World, expected an SCM"):
        Renewed(World(problem.flow.graph), 0.5, 0)
    with pytest.raises(ValueError, match=r"share is 1\.5"):
        Renewed(problem.flow, 1.5, 0)
    with pytest.raises(ValueError, match="seed is -1"):
        Renewed(problem.flow, 0.5, -1)


# --- the refits


def test_refits_are_fits_of_notebook_02_to_people_drawn_anew(tmp_path):
    given = read_network_parameters("smoke") | {"size": "smoke", "models": str(tmp_path)}
    given["partial"] = tmp_path / "partial"
    other_flows.loan_other_flows(given, "loan_other_flows")
    drawn = {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}
    population = loan.population(**drawn)
    refits = flow.load_all(tmp_path, "loan_other_flows", population.fingerprint)
    shapes = [f"{activation} {width}" for activation, width in other_flows.SHAPES]
    assert list(refits) == ["resampled 1", "resampled 2", *shapes]
    other = refits["tanh 16"].settings
    assert (other["activation"], list(other["hidden"])) == ("tanh", [16])
    x, x_validation = population.x["flow/train"], population.x["flow/validation"]
    rows = np.random.default_rng([0, 2]).integers(len(x), size=len(x))
    by_hand, _ = flow.fit(population.graph, x[rows], x_validation, n_epochs=4, seed=2)
    weights = refits["resampled 2"].weights
    assert all(torch.equal(weights[k], weight) for k, weight in by_hand.weights.items())
    assert not torch.equal(weights["age.raw"], refits["resampled 1"].weights["age.raw"])


def test_the_committed_flows_are_of_the_committed_population():
    flows = flow.load_all(MODELS, "loan_other_flows", loan.population().fingerprint)
    ours = flow.CausalFlow.load(MODELS, "loan_flow")
    assert all(other.graph == ours.graph for other in flows.values())
    refits = [other for name, other in flows.items() if "resampled" in name]
    assert len(refits) == read_network_parameters("paper")["n_refits"]
    assert all(refit.settings == ours.settings for refit in refits)
    assert len(flows) == len(refits) + len(other_flows.SHAPES)
