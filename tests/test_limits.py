"""Nothing beyond a limit, nothing in a closed direction, whatever the solver."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from laws import FAR, broken, random_limits

from lib.beyond.hare.spaces import Actions
from lib.beyond.propose.propose import Proposer, widths
from lib.beyond.propose.propose import Settings as ProposerSettings
from lib.method import loan
from lib.method.grid import Grid
from lib.method.icarma import Settings
from lib.method.limits import Interval, Limits
from lib.method.preferences import Preferences, from_frame, from_words, side_by_side
from lib.method.problem import Problem
from lib.method.pruned import Pruned
from lib.method.samplers import RankingSampler, WithLimits
from lib.method.training import fit
from lib.paper import gmsc
from lib.search.continuous import Refined, Search
from lib.search.sets import sets_of

N = 120


def counts():
    """Return a problem with counts and fractions, each followed by others."""
    rng = np.random.default_rng(0)
    income = rng.normal(30, 8, 1_200)
    lines = rng.poisson(np.clip(income / 6, 0.5, None))
    debt = 40 - 0.5 * income + 2 * lines + rng.normal(0, 4, 1_200)
    frame = pd.DataFrame({"income": income, "lines": lines, "debt": debt})
    frame["paid"] = income - 0.4 * debt + rng.normal(0, 3, 1_200) > 18
    kinds = {"income": "actionable", "lines": "actionable", "debt": "actionable"}
    edges = {"lines": ["income"], "debt": ["income", "lines"]}
    return Problem.from_frame(frame, "paid", kinds, edges, n_epochs=30)


@pytest.fixture(scope="module")
def with_counts():
    return counts()


def solvers_of(problem):
    """Return solvers by name, the networks hardly trained or not at all."""
    n = len(problem.population.actionable)
    sampler = RankingSampler(problem.population.actionable)
    stack, _ = fit(problem, sampler, Settings(n_epochs=2, hidden=16), seeds=[0])
    network = stack.member(0)
    rng = np.random.default_rng(1)
    settings = ProposerSettings(hidden=16, n_hidden=1)
    shape = widths(problem, settings, 2**n - 1)
    weights = {}
    for i, (n_in, n_out) in enumerate(itertools.pairwise(shape)):
        for part, size in (("weight", (n_in, n_out)), ("bias", (n_out,))):
            drawn = torch.from_numpy(rng.normal(scale=n_in**-0.5, size=size))
            weights[f"{part}_{i}"] = drawn.to(problem.flow.dtype)
    proposer = Proposer(problem, settings, sets_of(n), weights)
    hearing = Settings(n_epochs=2, hidden=16)
    drawn = WithLimits(sampler, problem.population)
    found = {
        "hearing network": fit(problem, drawn, hearing, seeds=[0])[0].member(0),
        "grid": Grid(problem, n_values=9),
        "search": Search(problem, n_scouts=16, n_starts=2, n_steps=4),
        "network": network,
        "proposer": proposer,
        "refined": Refined(network, problem, n_scouts=16, n_starts=1, n_steps=4),
        "pruned": Pruned(network, problem),
    }
    if problem.population.whole is None:
        found["centred grid"] = Grid(problem, n_values=9, centred=0.3)
    return found


def violation(problem, x, preferences, recommendation):
    """Return by how many standard deviations a limit is broken at most."""
    done = problem.carried_out(x, recommendation)
    columns = problem.population.actionable_index
    assert not (done.is_acted[:, columns] & ~preferences.is_actionable).any()
    return broken(problem, x, preferences, done).max().item()


@pytest.mark.parametrize("which", ["loan", "counts"])
def test_no_solver_goes_beyond_a_limit(which, request):
    problem = request.getfixturevalue({"loan": "problem"}.get(which, "with_counts"))
    rng = np.random.default_rng(7)
    refused = problem.refused("test")
    x = refused[rng.integers(0, len(refused), N)]
    sampler = RankingSampler(problem.population.actionable)
    scores = sampler.draw(range(N), rng).scores
    own = Preferences(scores, limits=random_limits(problem.population, x, rng))
    n_helped = 0
    for name, solver in solvers_of(problem).items():
        found = solver.recommend(x, own)
        assert violation(problem, x, own, found) < FAR, name
        n_helped += int(found.has_recourse.sum())
        without = solver.recommend(x, Preferences(scores))
        more = violation(problem, x, own, without)
        assert more > 0.01, f"{name} never meets a limit"
    assert n_helped > N


def test_limits_that_say_nothing_change_nothing(problem, people):
    """To the bit where nothing is drawn or rounded again."""
    x, preferences = people
    nothing = Limits.nothing(*preferences.scores.shape)
    for name, solver in solvers_of(problem).items():
        if name == "hearing network":
            continue  # it hears the ends of the range as well
        before = solver.recommend(x, preferences)
        after = solver.recommend(x, replace(preferences, limits=nothing))
        assert torch.equal(before.is_acted, after.is_acted), name
        assert torch.allclose(before.values, after.values, atol=1e-9), name


def test_the_grid_misses_nothing_within_limits(problem, people):
    """Its values within limits are a subset: the answer is the cheapest that is left."""
    x, preferences = people
    grid = Grid(problem, n_values=7)
    free = grid.recommend(x, preferences)
    columns = problem.population.actionable_index
    ends = problem.population.as_recorded(free.values)[:, columns]
    exactly = Limits.nothing(*preferences.scores.shape)
    parts = vars(exactly) | {"low": ends - 1e-6, "high": ends + 1e-6}
    own = replace(preferences, limits=Limits(*parts.values()))
    found = grid.recommend(x, own)
    helped = free.has_recourse
    cost = problem.cost_of(x, found), problem.cost_of(x, free)
    assert torch.equal(found.has_recourse, helped) and helped.any()
    assert torch.allclose(cost[0][helped], cost[1][helped], rtol=1e-4)


def test_the_population_speaks_for_who_says_nothing(problem, people):
    x, preferences = people
    names = problem.population.actionable
    default = Limits.from_words({"income": "only up", "savings": "only up"}, names)
    ours = replace(problem, population=replace(problem.population, limits=default))
    low = ours.interval(x, preferences).low
    income, savings = (problem.population.features.index(n) for n in ("income", "savings"))
    assert torch.equal(low[:, 2], x[:, income]) and torch.equal(low[:, 3], x[:, savings])
    said = Limits.from_words({"income": "up or down"}, names)
    own = Limits(*(part.expand(len(x), -1) for part in vars(said).values()))
    low = ours.interval(x, replace(preferences, limits=own)).low
    assert (low[:, 2] < x[:, income]).all() and torch.equal(low[:, 3], x[:, savings])


def test_who_has_no_value_left_may_not_set_the_feature(problem, people):
    x, preferences = people
    names = problem.population.actionable
    high = float(problem.population.as_recorded(problem.population.high)[5])
    said = Limits.from_words({"income": f"at least {high + 1}"}, names)
    own = Limits(*(part.expand(len(x), -1) for part in vars(said).values()))
    own = replace(preferences, limits=own)
    assert not problem.interval(x, own).may[:, 2].any()
    for name, solver in solvers_of(problem).items():
        assert not solver.recommend(x, own).is_acted[:, 5].any(), name
    assert (
        not Search(problem, n_scouts=16)
        .table(x, interval=problem.interval(x, own))
        .cost[:, sets_of(4)[:, 2]]
        .isfinite()
        .any()
    )


def test_whole_numbers_and_steps_round_inward(with_counts):
    problem, names = with_counts, with_counts.population.actionable
    x = problem.refused("test")[:1]
    own = from_words(
        "income: 1, in steps of 4, at least 21; lines: 2, at most 3.7; debt: 3", names
    )
    interval = problem.interval(x, own)
    ends = []
    for part in (interval.low, interval.high):
        spread = x.clone()
        spread[:, problem.population.actionable_index] = part
        ends.append(problem.population.in_units(spread)[0])
    assert ends[0][0].item() == pytest.approx(24, abs=1e-4)
    assert ends[1][0].item() % 4 == pytest.approx(0, abs=1e-4)
    assert ends[1][1].item() == pytest.approx(3, abs=1e-4)


def test_words_and_tables_say_the_same():
    names = ("income", "duration")
    own = from_words("income: easy, only up, at most 5 more; duration: can't", names)
    frame = pd.DataFrame(
        {"duration": ["can't"], "income": ["easy, only up,at most 5 more"]}
    )
    other = from_frame(frame, names)
    assert torch.equal(own.scores, other.scores)
    for one, two in zip(
        vars(own.limits).values(), vars(other.limits).values(), strict=True
    ):
        assert torch.equal(one.nan_to_num(-9), two.nan_to_num(-9))
    assert own.limits.fall[0, 0] == 0 and own.limits.rise[0, 0] == 5
    assert from_words("income: 1; duration: 2", names).limits is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("income: easy, upward; duration: 1", "can't read 'upward'. Say only up"),
        ("income: easy, at least 9, at most 3; duration: 1", "lowest value, 9, is above"),
        ("income: easy, only up, at most 3 less; duration: 1", "says again"),
        ("income: easy, in steps of -5; duration: 1", "step must not be below zero"),
    ],
)
def test_what_cannot_be_read_is_said(said, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_words(said, ("income", "duration"))


def test_limits_of_other_people_are_refused():
    with pytest.raises(ValueError, match="limits has shape"):
        Preferences(torch.ones(3, 2, dtype=torch.long), limits=Limits.nothing(4, 2))


def test_limits_follow_their_people():
    limits = Limits.nothing(3, 2)
    limits.high[:, 0] = torch.tensor([1.0, 2.0, 3.0])
    own = Preferences(torch.ones(3, 2, dtype=torch.long), limits=limits)
    assert own[[2, 0]].limits.high[:, 0].tolist() == [3.0, 1.0]
    both = side_by_side([own, Preferences(torch.ones(3, 2, dtype=torch.long))])
    assert both.limits.high.shape == (2, 3, 2) and both.limits.high[1].isnan().all()
    assert both.member(0)[1].limits.high[0, 0] == 2.0


def test_bent_values_stay_within_and_keep_a_gradient():
    low, high = torch.tensor([[-1.0, 0.3]]).double(), torch.tensor([[2.0, 0.3]]).double()
    interval = Interval(low < 9, low, high)
    values = torch.linspace(-5, 5, 101).double()[:, None].expand(-1, 2).clone()
    values.requires_grad_()
    bent = interval.smoothly(values)
    assert ((bent >= low - 1e-12) & (bent <= high + 1e-12)).all()
    assert (bent[:, 0].diff() >= 0).all() and torch.allclose(bent[:, 1], high[0, 1])
    well_within = (values[:, 0] > -0.5) & (values[:, 0] < 1.5)
    assert torch.allclose(bent[well_within, 0], values[well_within, 0], atol=1e-2)
    near = (values[:, 0] > -1.2) & (values[:, 0] < 2.2)
    (slope,) = torch.autograd.grad(bent[:, 0].sum(), values)
    assert (slope[near, 0] > 0.1).all()


def test_a_network_that_hears_limits_gets_more_people_accepted(problem):
    """Where some way is closed it goes farther on others; cut answers stop short."""
    sampler = RankingSampler(problem.population.actionable)
    drawn = WithLimits(sampler, problem.population, share=0.5)
    settings = Settings(n_epochs=150, hidden=32, batch_size=32, hinge=None)
    x = problem.refused("test")
    own = drawn.draw(range(len(x)), np.random.default_rng(3))
    hearing, deaf = (
        problem.accepts(
            fit(problem, one, settings, seeds=[0])[0].recommend(x, own)[0].x_cf
        ).double()
        for one in (drawn, sampler)
    )
    assert hearing.mean() > deaf.mean() + 0.05


def test_members_of_a_stack_hear_alike(problem):
    sampler = RankingSampler(problem.population.actionable)
    drawn = WithLimits(sampler, problem.population)
    with pytest.raises(ValueError, match="Some samplers draw limits"):
        fit(problem, [sampler, drawn], Settings(n_epochs=1), seeds=[0, 1])


def test_options_of_a_dialogue_keep_within_limits(problem):
    rng = np.random.default_rng(2)
    x = problem.refused("test")[:40]
    scores = RankingSampler(problem.population.actionable).draw(range(40), rng).scores
    own = Preferences(scores, limits=random_limits(problem.population, x, rng))
    space = Actions(problem, x, own)
    anywhere = x + torch.from_numpy(rng.normal(size=(5, *x.shape)))
    found = space.outcome(torch.ones_like(anywhere, dtype=torch.bool), anywhere)
    for option in (found[i] for i in range(5)):
        assert violation(problem, x, own, option) < FAR
    assert found.is_acted.any()


def test_the_defaults_of_both_populations_can_be_read(problem):
    careful = problem.with_limits(loan.LIMITS).population.limits
    assert careful.rise[:2].tolist() == careful.fall[2:].tolist() == [0.0, 0.0]
    names = [name for name, kind in gmsc.KINDS.items() if kind == "actionable"]
    credit = Limits.from_words(gmsc.LIMITS, names)
    assert (
        credit.fall[names.index("income")] == credit.rise[names.index("utilization")] == 0
    )


def test_who_has_no_plausible_action_is_rated_as_the_bank_sees_them(with_counts):
    """In whole numbers: a spread count may lie on the other side of the bound."""
    x = with_counts.refused("test")
    as_spread, as_seen = with_counts.classifier.logit(x), with_counts.log_odds(x)
    assert not torch.allclose(as_spread, as_seen, atol=1e-2)
    search = Search(with_counts, slack=-1e6, n_scouts=4, n_starts=1, n_steps=1)
    seen = search.table(x).log_odds
    assert torch.allclose(seen, as_seen[:, None].expand_as(seen), atol=1e-5)


def test_what_was_found_without_limits_is_no_answer_within_them(problem, people):
    """Neither a known action nor a table that was made before brings one back."""
    x, preferences = people
    search = Search(problem, n_scouts=16, n_starts=1, n_steps=4)
    free = search.recommend(x, preferences)
    limits = random_limits(problem.population, x, np.random.default_rng(4))
    own = replace(preferences, limits=limits)
    assert violation(problem, x, own, free) > 0.1
    interval = problem.interval(x, own)
    table = search.table(x, starts=[free], interval=interval)
    cost, which = table.cheapest(interval.may)
    for row in cost.isfinite().nonzero().squeeze(-1):
        acts = table.sets[which[row]]
        values = table.values[row, which[row]]
        near = interval[row : row + 1].nearest(values[None])[0]
        assert torch.equal(near[acts], values[acts])
    with pytest.raises(ValueError, match="made before"):
        search.recommend(x, own, table=table)
