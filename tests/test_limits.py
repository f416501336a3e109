"""Limits in words and numbers, the intervals they leave, and solvers that respect them."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.beyond.propose.propose import Proposer
from lib.io import MODELS
from lib.method import icarma, loan
from lib.method.grid import Grid
from lib.method.limits import CHANGES, NUMBERS, Interval, Limits, intersect
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences, from_frame, from_words, stack
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler, WithLimits
from lib.search.continuous import Search

INF = math.inf
JOBS = ("none", "cook", "clerk", "doctor")


# --- in words


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        ("", {}),
        ("Up  only, ", {"max_decrease": 0}),
        ("at most 60", {"high": 60}),
        ("at least -1e3", {"low": -1000}),
        ("at most 1,234,567.8 less", {"max_decrease": 1_234_567.8}),
        ("at most 10 % more, only down", {"max_percent_increase": 10, "max_increase": 0}),
        ("at most 2.5percent less", {"max_percent_decrease": 2.5}),
        ("between 5 and 2,000,in steps of 9", {"low": 5, "high": 2000, "step": 9}),
        ("up or down, at most 9", {"high": 9} | dict.fromkeys(CHANGES, INF)),
    ],
)
def test_phrases_set_limits(phrases, expected):
    limits = Limits.from_words({"income": phrases}, ("income",))
    stated = {k: v.item() for k, v in limits.numbers.items() if not v.isnan()}
    assert stated == expected and limits.is_stated.any() == bool(expected)
    assert not limits.allowed_categories.any()


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ({"income": "upward"}, "income: can't read 'upward'. Say only up"),
        ({"income": "at most 3,5 more"}, "can't read '5 more'"),
        ({"income": "at most 1.000 more"}, "income: 1.000 may be 1000 or 1.0000. Write"),
        ({"income": "one of cook or clerk"}, "income: can't read 'one of cook"),
        ({"income": "at least 9, at most 3"}, "income: The lowest value is above"),
        ({"income": "between 1 and 3, at most 3"}, "income: 'at most 3' says again"),
        ({"income": "in steps of -5"}, "income: A step or change is below zero"),
        ({"job": "at most 10 % more"}, "job: Categories have no direction"),
        ({"job": "one of docter"}, "Did you mean 'doctor'"),
        ({"income": "only up, only down"}, "leave no value. Say can't"),
        ({"jobs": "one of cook"}, "Unknown feature 'jobs'"),
    ],
)
def test_limits_that_cannot_be_meant_are_named(phrases, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Limits.from_words(phrases, ("income", "job"), {"job": JOBS})


def test_categories_in_words():
    features, categories = ("job", "income", "home"), {"job": JOBS, "home": ("rent", "own")}
    phrases = {"job": "one of Cook or  doctor", "home": "one of own"}
    limits = Limits.from_words(phrases, features, categories)
    mask = [[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert limits.allowed_categories.int().tolist() == mask
    with pytest.raises(ValueError, match="job: It has fewer categories"):
        limits.check(features, {"job": JOBS[:3], "home": ("rent", "own")})


def test_categories_that_differ_by_a_capital_are_two():
    jobs = {"job": ("Cook", "cook", "head_cook")}
    for name, mask in {
        "Cook": [1, 0, 0],
        "cook": [0, 1, 0],
        "Head cook": [0, 0, 1],
    }.items():
        read = from_words(f"job: easy, one of {name}", ("job",), 5, jobs).limits
        assert read.allowed_categories[0, 0].int().tolist() == mask
    with pytest.raises(ValueError, match="'COOK' may be several of Cook, cook, head_cook"):
        Limits.from_words({"job": "one of COOK"}, ("job",), jobs)


def test_limits_in_a_table():
    income = ["easy, only up,at most 1,000 more", "2"]
    frame = pd.DataFrame({"duration": ["can't", "1"], "income": income})
    limits = from_frame(frame, ("income", "duration")).limits
    assert limits.is_stated.tolist() == [[True, False], [False, False]]
    assert (limits.max_decrease[0, 0], limits.max_increase[0, 0]) == (0, 1000)
    assert from_frame(frame[1:], ("income", "duration")).limits is None


# --- in numbers


def with_mask(rows):
    """Return limits whose categories alone are stated, (N, K, C)."""
    mask = torch.tensor(rows).bool()
    return replace(Limits.unlimited(*mask.shape[:-1]), allowed_categories=mask)


def test_what_is_not_stated_is_filled():
    features = ("income", "duration", "savings")
    person = Limits.unlimited(5, 3)
    person.low[0] = torch.tensor([1, math.nan, -INF])
    filled = person.fill_from(
        Limits.from_words({"savings": "at least 3", "duration": "only up"}, features)
    )
    expected = torch.tensor([[1, math.nan, -INF], [math.nan, math.nan, 3]]).double()
    torch.testing.assert_close(filled.low[:2], expected, equal_nan=True)
    assert (filled.max_decrease[:, 1] == 0).all()
    two, three = with_mask([[[1, 0], [0, 0]]]), with_mask([[[0, 1, 1], [0, 0, 1]]])
    mask = two.fill_from(three).allowed_categories
    assert mask.int().tolist() == [[[1, 0, 0], [0, 0, 1]]]


def test_limits_follow_their_people():
    limits = with_mask([[[1, 0], [0, 0]], [[0, 1], [0, 0]], [[1, 1], [0, 1]]])
    limits.high[:, 0] = torch.tensor([1.0, 2.0, 3.0])
    scores = torch.ones(3, 2, dtype=torch.long)
    both = stack([Preferences(scores, limits=limits), Preferences(scores)])
    chosen = both[[2, 0]].limits
    assert chosen.high[0, :, 0].tolist() == [3.0, 1.0] and chosen.high[1].isnan().all()
    assert torch.equal(chosen.allowed_categories[0], limits.allowed_categories[[2, 0]])
    assert both.members(0)[1].limits.high[0, 0] == 2.0


# --- intervals


quarters = st.integers(-40, 40).map(lambda i: i / 4)
amounts = st.sampled_from([0, 0.25, 1, 2.5, 7, INF])


@st.composite
def cases(draw):
    """Return today's value, a range, limits by name, whether it is whole, and a mask."""
    is_whole = draw(st.booleans())
    values = st.integers(0, 6).map(float) if is_whole else quarters
    ends = sorted([draw(values), draw(values)])
    limits = {}
    for name in NUMBERS:
        if draw(st.booleans()):
            limits[name] = draw(quarters if name in ("low", "high") else amounts)
    if limits.get("low", -INF) > limits.get("high", INF):
        del limits["low"]
    if "step" in limits:
        limits["step"] = draw(st.sampled_from([0, 1, 2] if is_whole else [0, 0.5, 2]))
    mask = draw(st.lists(st.booleans(), min_size=7, max_size=7)) if is_whole else [False]
    if any(mask):
        limits.pop("step", None)
    return draw(values), ends, limits, is_whole, mask


def bounds(today, ends, limits):
    """Return the lowest and the highest value by hand."""

    def most(way):
        percent = limits.get(f"max_percent_{way}", INF)
        of_today = INF if percent == INF else abs(today) * percent / 100
        return min(limits.get(f"max_{way}", INF), of_today)

    low = max(ends[0], limits.get("low", -INF), today - most("decrease"))
    return low, min(ends[1], limits.get("high", INF), today + most("increase"))


def interval_of(today, ends, limits, is_whole, mask, mean=4.0, std=2.0):
    """Return the interval of one person and feature in units that are exact."""
    now, low, high = (torch.tensor([(v - mean) / std]).double() for v in (today, *ends))
    numbers = {name: torch.tensor([[float(value)]]) for name, value in limits.items()}
    limits = replace(Limits.unlimited(1, 1), **numbers)
    limits = replace(limits, allowed_categories=torch.tensor([[mask]]))
    is_allowed, is_whole = torch.tensor([[True]]), torch.tensor([is_whole])
    units = torch.tensor([mean]).double(), torch.tensor([std]).double()
    return intersect(is_allowed, now[None], low, high, limits, is_whole, *units)


@given(case=cases(), wished=st.floats(-20, 20))
@settings(max_examples=400, deadline=None, derandomize=True)
def test_what_may_be_set_by_enumeration(case, wished):
    today, ends, limits, is_whole, mask = case
    low, high = bounds(today, ends, limits)
    step = max(limits.get("step", 0), int(is_whole))
    interval = interval_of(*case)
    standardised = torch.tensor([[(wished - 4) / 2]], dtype=torch.float64)
    projected = interval.project(standardised)
    value = (projected * 2 + 4).item()
    if interval.is_allowed:
        assert torch.allclose(interval.project(projected), projected, atol=1e-9)
    if step == 0:
        assert interval.is_allowed.item() == (low <= high)
        nearest = min(max(wished, low), high)
        assert not interval.is_allowed or value == pytest.approx(nearest)
        return
    candidates = step * np.arange(-100, 101)
    candidates = candidates[(candidates >= low - 1e-6) & (candidates <= high + 1e-6)]
    if any(mask):
        candidates = [v for v in candidates if 0 <= v < 7 and mask[int(v)]]
    assert interval.is_allowed.item() == (len(candidates) > 0)
    if len(candidates):
        distance = np.abs(np.array(candidates) - value)
        assert distance.min() < 1e-6
        # categories are rounded before the nearest is chosen
        best = np.abs(np.array(candidates) - wished).min()
        assert abs(value - wished) <= best + (1 if any(mask) else 1e-6)
        ends = (interval.low.item() * 2 + 4, interval.high.item() * 2 + 4)
        assert ends == pytest.approx((min(candidates), max(candidates)), abs=1e-6)


def test_ends_are_rounded_inward():
    rng = np.random.default_rng(0)
    now = torch.from_numpy(rng.normal(size=(200, 3))).float()
    mean, std = (torch.from_numpy(rng.random(3)) for _ in range(2))
    low = torch.from_numpy(rng.normal(size=(200, 3)))
    limits = replace(Limits.unlimited(200, 3), low=low, high=low + 1)
    far, is_any = torch.full((3,), 9.0), torch.ones(200, 3, dtype=torch.bool)
    interval = intersect(is_any, now, -far, far, limits, ~is_any[0], mean, std)
    inside = interval.low - (low - mean) / std, (low + 1 - mean) / std - interval.high
    for distance in inside:  # in float64, interval in float32
        assert (distance >= -1e-15).all() and 0 < distance.max() < 1e-5


def test_soft_clamp_stays_within_and_keeps_a_gradient():
    low, high = torch.tensor([[-1.0, 0.3]]).double(), torch.tensor([[2.0, 0.3]]).double()
    values = torch.linspace(-5, 5, 101).double()[:, None].expand(-1, 2).clone()
    values.requires_grad_()
    bent = Interval(low < 9, low, high).soft_clamp(values)
    assert ((bent >= low - 1e-12) & (bent <= high + 1e-12)).all()
    is_inside = (values[:, 0] > -0.5) & (values[:, 0] < 1.5)
    assert torch.allclose(bent[is_inside, 0], values[is_inside, 0], atol=1e-2)
    is_near = (values[:, 0] > -1.2) & (values[:, 0] < 2.2)
    (slope,) = torch.autograd.grad(bent[:, 0].sum(), values)
    assert (slope >= 0).all() and (slope[is_near, 0] > 0.1).all()


def test_headroom_by_hand():
    is_allowed = torch.tensor([[True, False, True]])
    ends = torch.tensor([[-1.0, -1.0, 0.5]]), torch.tensor([[1.0, 1.0, 9.0]])
    now, spread = torch.zeros(1, 3), torch.tensor([4.0, 4.0, 2.0])
    shares = Interval(is_allowed, *ends).headroom(now, spread)
    assert shares.tolist() == [[0.25, 0, -0.25, 0.25, 0, 1]]


# --- every solver respects limits

N_PEOPLE = 120
FAR = 1e-3  # standard deviations: beyond rounding


def with_counts():
    """Return a problem with whole numbers and fractions, each with effects on others."""
    rng = np.random.default_rng(0)
    income = rng.normal(30, 8, 1_200)
    lines = rng.poisson(np.clip(income / 6, 0.5, None))
    debt = 40 - 0.5 * income + 2 * lines + rng.normal(0, 4, 1_200)
    frame = pd.DataFrame({"income": income, "lines": lines, "debt": debt})
    frame["paid"] = income - 0.4 * debt + rng.normal(0, 3, 1_200) > 18
    kinds = dict.fromkeys(("income", "lines", "debt"), "actionable")
    edges = {"lines": ["income"], "debt": ["income", "lines"]}
    return Problem.from_frame(frame, "paid", kinds, edges, n_epochs=30)


@pytest.fixture(scope="module", params=["loan", "counts"])
def task(request):
    """Return a problem, and solvers by name, the networks hardly trained."""
    problem = loan.problem() if request.param == "loan" else with_counts()
    sampler = RankingSampler(problem.population.actionable)
    limited = WithLimits(sampler, problem.population)
    brief = icarma.Settings(n_epochs=2, width=16)
    plain, conditioned = (
        icarma.fit(problem, one, brief, seeds=[0])[0].best for one in (sampler, limited)
    )
    effort = {"n_samples": 16, "n_starts": 1, "n_steps": 4}
    solvers = {
        "grid": Grid(problem, n_values=9),
        "search": Search(problem, **effort),
        "iCARMA": plain,
        "limit-conditioned iCARMA": conditioned,
        "pruned": Pruned(plain, problem),
    }
    if request.param == "loan":
        solvers["centred grid"] = Grid(problem, n_values=9, half_width=0.3)
        solvers["proposer"] = Proposer.load(MODELS, "loan_propose", problem)
    return problem, solvers


def people_of(problem, seed=7):
    """Return refused people and their rankings."""
    rng = np.random.default_rng(seed)
    refused = problem.refused("test")
    x = refused[rng.integers(0, len(refused), N_PEOPLE)]
    sampler = RankingSampler(problem.population.actionable)
    return x, sampler.draw(range(N_PEOPLE), rng)


def random_limits(problem, n_people=N_PEOPLE, seed=8):
    """Return limits of all kinds, some of each person's features."""
    rng, population = np.random.default_rng(seed), problem.population
    sampler = WithLimits(RankingSampler(population.actionable), population, share=0.7)
    limits = sampler.draw(range(n_people), rng).limits
    columns, shape = population.actionable_index, tuple(limits.low.shape)
    step = torch.from_numpy(rng.choice([math.nan, 0.4], shape, p=[0.8, 0.2]))
    step = step * population.std[columns].double()
    if population.discretisation is not None:
        step = torch.where(population.discretisation.is_whole[columns], step.ceil(), step)
    percent = rng.choice([math.nan, 0, 10, INF], (2, *shape), p=[0.85, 0.05, 0.05, 0.05])
    down, up = torch.from_numpy(percent)
    return replace(limits, step=step, max_percent_decrease=down, max_percent_increase=up)


def violation(problem, x, limits, recommendation):
    """Return by how many standard deviations an action breaks a limit, (N, K)."""
    population = problem.population
    columns = population.actionable_index
    values = problem.discretise(x, recommendation).values
    now, then = (population.to_records(v)[:, columns] for v in (x, values))
    beyond = [
        limits.low - then,
        then - limits.high,
        now - then - limits.max_decrease,
        then - now - limits.max_increase,
        now - then - now.abs() * limits.max_percent_decrease / 100,
        then - now - now.abs() * limits.max_percent_increase / 100,
        (then - (then / limits.step).round() * limits.step).abs(),
    ]
    most = torch.stack([v.nan_to_num(-1.0, INF, -INF) for v in beyond]).amax(0)
    return torch.where(
        recommendation.is_acted[:, columns], most / population.std[columns], 0
    )


def test_no_solver_goes_beyond_a_limit(task):
    problem, solvers = task
    x, preferences = people_of(problem)
    limits = random_limits(problem)
    n_helped = 0
    for name, solver in solvers.items():
        recommendation = solver.recommend(x, replace(preferences, limits=limits))
        acted = recommendation.is_acted[:, problem.population.actionable_index]
        assert not (acted & ~preferences.is_actionable).any(), name
        assert violation(problem, x, limits, recommendation).max() < FAR, name
        free = solver.recommend(x, preferences)
        assert violation(problem, x, limits, free).max() > 0.01, f"{name} meets no limit"
        n_helped += int(recommendation.has_recourse.sum())
    assert n_helped > N_PEOPLE


def test_limits_that_state_nothing_change_nothing(task):
    problem, solvers = task
    x, preferences = people_of(problem)
    unlimited = Limits.unlimited(*preferences.scores.shape)
    unlimited = replace(preferences, limits=unlimited)
    same = {"grid", "centred grid", "iCARMA", "proposer"}
    if problem.population.discretisation is None:  # else the search's range is rounded
        same.add("search")
    for name in solvers.keys() & same:
        before = solvers[name].recommend(x, preferences)
        after = solvers[name].recommend(x, unlimited)
        assert torch.equal(before.is_acted, after.is_acted), name
        records = [problem.population.to_records(r.values) for r in (before, after)]
        difference = (records[0] - records[1]) / problem.population.std
        assert difference[after.is_acted].abs().max() < 1e-5, name


def test_networks_answer_each_person_as_if_alone(task):
    problem, solvers = task
    x, preferences = people_of(problem)
    limits = Limits.unlimited(*preferences.scores.shape)
    limits.max_increase[0] = 0.0
    together = solvers["iCARMA"].recommend(x, replace(preferences, limits=limits))
    others = solvers["iCARMA"].recommend(x[1:], preferences[1:])
    torch.testing.assert_close(together[1:].values, others.values, rtol=0, atol=1e-6)


def test_who_has_no_value_left_may_not_set_the_feature(task):
    """Nobody has one of income, and the first person none of any feature."""
    problem, solvers = task
    x, preferences = people_of(problem)
    population = problem.population
    column = population.features.index("income")
    k = population.actionable_index.index(column)
    limits = Limits.unlimited(*preferences.scores.shape)
    limits.low[0] = limits.low[:, k] = population.to_records(population.high).max() + 1
    preferences = replace(preferences, limits=limits)
    is_allowed = problem.interval(x, preferences).is_allowed
    assert not is_allowed[0].any() and not is_allowed[:, k].any() and is_allowed.any()
    for name, solver in solvers.items():
        is_acted = solver.recommend(x, preferences).is_acted
        assert not is_acted[0].any() and not is_acted[:, column].any(), name


@pytest.mark.parametrize("std", [11.7, 5000.0])
def test_ends_are_exact_whole_numbers_whatever_their_size(std):
    """Standardised float32 has seven digits, so money in single units needs care."""
    mean, std = torch.tensor([[1.3 * std], [std]]).double()
    units = torch.from_numpy(np.random.default_rng(0).integers(0, int(4 * std), (200, 1)))
    now, low, high = (((v - mean) / std).float() for v in (units, 0, 4 * std + 10))
    limits = Limits.from_words({"money": "only up, at most 5 more"}, ("money",))
    is_any = torch.ones(200, 1, dtype=torch.bool)
    interval = intersect(is_any, now, low, high, limits, is_any[0], mean, std)
    low, high = (end.double() * std + mean for end in (interval.low, interval.high))
    assert torch.equal(low.round().long(), units)
    assert torch.equal(high.round().long(), units + 5)


def test_the_population_answers_where_a_person_states_nothing(problem, people):
    x, preferences = people
    names = problem.population.actionable
    up = problem.with_limits({"income": "only up", "savings": "only up"})
    income, savings = (problem.population.features.index(n) for n in ("income", "savings"))
    low = up.interval(x, preferences).low
    assert torch.equal(low[:, 2], x[:, income]) and torch.equal(low[:, 3], x[:, savings])
    free = Limits.from_words({"income": "up or down"}, names)
    free = Limits.unlimited(*preferences.scores.shape).fill_from(free)
    low = up.interval(x, replace(preferences, limits=free)).low
    assert (low[:, 2] < x[:, income]).all() and torch.equal(low[:, 3], x[:, savings])


def test_a_person_who_contradicts_the_population_is_named(problem, people):
    x, preferences = people
    limits = Limits.unlimited(*preferences.scores.shape)
    limits.low[3, 2] = 10
    careful = problem.with_limits({"income": "at most 5"})
    with pytest.raises(ValueError, match=r"income of row 3: .* low 10, high 5"):
        careful.interval(x, replace(preferences, limits=limits))


def test_the_grid_misses_nothing_within_limits(problem, people):
    """Its values within limits are a subset: the answer is the cheapest that is left."""
    x, preferences = people
    grid = Grid(problem, n_values=7)
    free = grid.recommend(x, preferences)
    columns = problem.population.actionable_index
    chosen = problem.population.to_records(free.values)[:, columns]
    exactly = Limits.unlimited(*preferences.scores.shape)
    exactly = replace(exactly, low=chosen - 1e-6, high=chosen + 1e-6)
    limited = grid.recommend(x, replace(preferences, limits=exactly))
    helped = free.has_recourse
    assert torch.equal(limited.has_recourse, helped) and helped.any()
    costs = [problem.cost_of(x, one)[helped] for one in (limited, free)]
    assert torch.allclose(*costs, rtol=1e-4)


def test_a_limit_conditioned_network_gets_more_people_accepted(problem):
    """Where some way is closed it goes farther on others; cut answers stop short."""
    sampler = RankingSampler(problem.population.actionable)
    limited = WithLimits(sampler, problem.population, share=0.5)
    settings = icarma.Settings(n_epochs=60, width=32, batch_size=32)
    x = problem.refused("test")
    preferences = limited.draw(range(len(x)), np.random.default_rng(3))
    shares = []
    for one in (limited, sampler):
        network = icarma.fit(problem, one, settings, seeds=[0])[0].best
        accepted = problem.accepts(network.recommend(x, preferences).x_cf)
        shares.append(accepted.double().mean())
    assert shares[0] > shares[1] + 0.05


def test_a_known_action_beyond_limits_is_no_answer(problem, people):
    """As a start of the search it is brought within them."""
    x, preferences = people
    search = Search(problem, n_samples=16, n_starts=1, n_steps=4)
    free = search.recommend(x, preferences)
    limits = random_limits(problem, len(x))
    assert violation(problem, x, limits, free).max() > 0.1
    interval = problem.interval(x, replace(preferences, limits=limits))
    table = search.table(x, starts=[free], interval=interval)
    cost, which = table.cheapest(interval.is_allowed)
    for row in cost.isfinite().nonzero().squeeze(-1):
        is_acted = table.sets[which[row]]
        values = table.values[row, which[row]]
        nearest = interval[row : row + 1].project(values[None])[0]
        assert torch.equal(nearest[is_acted], values[is_acted])
