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
from lib.method.limits import NUMBERS, Interval, Limits, intersect, stack_limits
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences, from_frame, from_words, stack
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler, WithLimits
from lib.paper import gmsc
from lib.search.continuous import Refined, Search

INF = math.inf
JOBS = ("none", "cook", "clerk", "doctor")
UNSTATED = torch.full((3,), math.nan)


# --- in words


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        ("", {}),
        ("only up", {"max_decrease": 0}),
        ("Up  only", {"max_decrease": 0}),
        ("only down", {"max_increase": 0}),
        ("down only", {"max_increase": 0}),
        ("at most 60", {"high": 60}),
        ("at least -1e3", {"low": -1000}),
        ("at most 1,000 more", {"max_increase": 1000}),
        ("at most 1,234,567.5 less", {"max_decrease": 1_234_567.5}),
        ("at most 10 % more", {"max_percent_increase": 10}),
        ("at most 2.5% less", {"max_percent_decrease": 2.5}),
        ("at most 10 percent more", {"max_percent_increase": 10}),
        ("between 5 and 10", {"low": 5, "high": 10}),
        (
            "between 1,000 and 2,000,in steps of 500",
            {"low": 1000, "high": 2000, "step": 500},
        ),
        (["only up", "at most 1", "000"], {"max_decrease": 0, "high": 1000}),
        (
            "up or down, at most 9",
            {"high": 9} | {name: INF for name in NUMBERS if name.startswith("max")},
        ),
    ],
)
def test_phrases_set_limits(phrases, expected):
    limits = Limits.parse(phrases, "income")
    stated = {k: v.item() for k, v in limits.numbers.items() if not v.isnan()}
    assert stated == expected and limits.is_stated.any() == bool(expected)
    assert limits.allowed_categories is None


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ("upward", "income: can't read 'upward'. Say only up"),
        ("at most 10 %", "can't read 'at most 10 %'"),
        ("at most 3,5 more", "can't read '5 more'"),
        ("at most 1,0000", "can't read '0000'"),
        ("only up,", "can't read ''"),
        ("between 9 and 3", "lowest value, 9, is above the highest, 3"),
        ("at least 9, at most 3", "lowest value, 9, is above"),
        ("only up, at most 3 less", "says again"),
        ("between 1 and 3, at most 3", "says again"),
        ("in steps of -5", "step must not be below zero"),
        ("in steps of 1e400", "step must be finite"),
        ("one of cook or clerk", "income has no categories"),
    ],
)
def test_unreadable_phrases_are_named(phrases, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Limits.parse(phrases, "income")


def test_categories_in_words():
    features = ("job", "income", "home")
    categories = {"job": JOBS, "home": ("rent", "own")}
    phrases = {"job": "one of Cook or  doctor", "home": "one of own"}
    limits = Limits.from_words(phrases, features, categories)
    assert limits.allowed_categories.int().tolist() == [
        [0, 1, 0, 1],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
    ]
    limits.check(features, categories)
    with pytest.raises(ValueError, match="Did you mean 'doctor'"):
        Limits.parse("one of docter", "job", JOBS)
    with pytest.raises(ValueError, match="Unknown feature 'jobs'"):
        Limits.from_words({"jobs": "one of cook"}, features, categories)
    beyond = Limits.from_words({"home": "one of clerk"}, features, {"home": JOBS})
    with pytest.raises(ValueError, match="home has 2 categories, and one beyond them"):
        beyond.check(features, categories)


def test_categories_have_no_direction():
    for phrase in ("only up", "at least 2", "at most 10 % more"):
        limits = Limits.from_words({"job": phrase}, ("income", "job"), {"job": JOBS})
        with pytest.raises(ValueError, match=r"job: .*one of none or cook or clerk or doc"):
            limits.check(("income", "job"), {"job": JOBS})


def test_words_and_tables_agree():
    names = ("income", "duration")
    preferences = from_words(
        "income: easy, only up, at most 1,000 more; duration: can't", names
    )
    frame = pd.DataFrame(
        {"duration": ["can't"], "income": ["easy, only up,at most 1,000 more"]}
    )
    other = from_frame(frame, names)
    assert torch.equal(preferences.scores, other.scores)
    for name, values in preferences.limits.numbers.items():
        assert torch.equal(values.nan_to_num(-9), other.limits.numbers[name].nan_to_num(-9))
    assert preferences.limits.max_increase[0, 0] == 1000
    assert from_words("income: 1; duration: 2", names).limits is None


# --- in numbers


def of(**values):
    """Return limits of one feature and one person."""
    return replace(
        Limits.unlimited(1, 1),
        **{name: torch.tensor([[float(value)]]).double() for name, value in values.items()},
    )


def with_mask(rows):
    """Return limits whose categories alone are stated, (N, K, C)."""
    mask = torch.tensor(rows).bool()
    return replace(Limits.unlimited(*mask.shape[:-1]), allowed_categories=mask)


def test_limits_of_another_form_are_refused():
    with pytest.raises(ValueError, match="high has shape"):
        replace(Limits.unlimited(2), high=torch.ones(3).double())
    with pytest.raises(ValueError, match="low must be a floating-point tensor"):
        replace(Limits.unlimited(2), low=torch.ones(2, dtype=torch.long))
    for mask in (torch.ones(2, 3), torch.ones(3, 3, dtype=torch.bool)):
        with pytest.raises(ValueError, match="must be a mask with shape"):
            replace(Limits.unlimited(2), allowed_categories=mask)
    with pytest.raises(ValueError, match="limits has shape"):
        Preferences(torch.ones(3, 2, dtype=torch.long), limits=Limits.unlimited(4, 2))


def test_what_is_not_stated_is_filled():
    person = Limits(
        *(torch.tensor([1.0, math.nan, INF]) for _ in range(2)), *[UNSTATED] * 3
    )
    everybody = Limits(*[UNSTATED] * 2, *[torch.tensor([3.0, 4.0, math.nan])] * 3)
    filled = person.fill_from(everybody)
    assert filled.low.nan_to_num(-9, INF).tolist() == [1.0, -9.0, INF]
    assert filled.step.nan_to_num(-9).tolist() == [3.0, 4.0, -9.0]
    assert person.fill_from(None) is person
    people = Limits.unlimited(5, 3).fill_from(everybody)
    assert people.step.shape == (5, 3) and people.allowed_categories is None
    two, three = with_mask([[[1, 0], [0, 0]]]), with_mask([[[0, 1, 1], [0, 0, 1]]])
    mask = two.fill_from(three).allowed_categories
    assert mask.int().tolist() == [[[1, 0, 0], [0, 0, 1]]]
    mask = three.fill_from(two).allowed_categories
    assert torch.equal(mask, three.allowed_categories)


def test_limits_follow_their_people():
    limits = with_mask([[[1, 0], [0, 0]], [[0, 1], [0, 0]], [[1, 1], [0, 1]]])
    limits.high[:, 0] = torch.tensor([1.0, 2.0, 3.0])
    scores = torch.ones(3, 2, dtype=torch.long)
    preferences = Preferences(scores, limits=limits)
    for rows in ([2, 0], slice(None, None, 2), torch.tensor([True, False, True])):
        chosen = preferences[rows].limits
        expected = {3.0, 1.0} if rows == [2, 0] else {1.0, 3.0}
        assert set(chosen.high[:, 0].tolist()) == expected
        assert chosen.allowed_categories.shape == (2, 2, 2)
    both = stack([preferences, Preferences(scores)])
    assert both.limits.high.shape == (2, 3, 2) and both.limits.high[1].isnan().all()
    assert both.members(0)[1].limits.high[0, 0] == 2.0
    mask = both[[1]].limits.allowed_categories
    assert mask.int().tolist() == [[[[0, 1], [0, 0]]], [[[0, 0], [0, 0]]]]
    narrow = stack_limits([limits, with_mask([[[1], [0]]] * 3)])
    assert narrow.allowed_categories.shape == (2, 3, 2, 2)


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
    percent = {
        way: abs(today) * share / 100 if share < INF else INF
        for way in ("decrease", "increase")
        for share in [limits.get(f"max_percent_{way}", INF)]
    }
    fall = min(limits.get("max_decrease", INF), percent["decrease"])
    rise = min(limits.get("max_increase", INF), percent["increase"])
    low = max(ends[0], limits.get("low", -INF), today - fall)
    return low, min(ends[1], limits.get("high", INF), today + rise)


def interval_of(today, ends, limits, is_whole, mask, mean=4.0, std=2.0):
    """Return the interval of one person and feature in units that are exact."""
    now, low, high = (torch.tensor([(v - mean) / std]).double() for v in (today, *ends))
    row = torch.tensor([[mask]]) if any(mask) else None
    return intersect(
        is_allowed=torch.tensor([[True]]),
        now=now[None],
        low=low,
        high=high,
        limits=replace(of(**limits), allowed_categories=row),
        is_whole=torch.tensor([is_whole]),
        mean=torch.tensor([mean]).double(),
        std=torch.tensor([std]).double(),
    )


@given(case=cases(), wished=st.floats(-20, 20))
@settings(max_examples=400, deadline=None)
def test_what_may_be_set_by_enumeration(case, wished):
    today, ends, limits, is_whole, mask = case
    low, high = bounds(today, ends, limits)
    step = max(limits.get("step", 0), int(is_whole))
    interval = interval_of(*case)
    standardised = torch.tensor([[(wished - 4) / 2]], dtype=torch.float64)
    value = (interval.project(standardised) * 2 + 4).item()
    if step == 0:
        assert interval.is_allowed.item() == (low <= high)
        assert not interval.is_allowed or value == pytest.approx(
            min(max(wished, low), high)
        )
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


@given(case=cases(), wished=st.floats(-20, 20))
@settings(deadline=None)
def test_projection_twice_is_projection(case, wished):
    interval = interval_of(*case)
    once = interval.project(torch.tensor([[wished]]).double())
    if interval.is_allowed:
        assert torch.allclose(interval.project(once), once, atol=1e-9)


def test_an_ordered_category_only_goes_up():
    """Case 25: the codes are the order, also among the categories that are named."""
    every = [True, False, True, True]
    for today, expected in ((0, {0, 2, 3}), (1, {2, 3}), (3, {3})):
        interval = interval_of(today, (0, 3), {"max_decrease": 0}, True, every)
        wished = (torch.arange(-2.0, 6).double() - 4) / 2
        values = interval.project(wished[:, None, None]) * 2 + 4
        assert set(values.flatten().round().int().tolist()) == expected
    alone = interval_of(3, (0, 3), {"max_decrease": 0}, True, [True, True, False, False])
    assert not alone.is_allowed


def test_ends_are_rounded_inward():
    rng = np.random.default_rng(0)
    now = torch.from_numpy(rng.normal(size=(200, 3))).float()
    mean, std = (torch.from_numpy(rng.random(3)) for _ in range(2))
    limits = Limits.unlimited(200, 3)
    limits.low[:] = torch.from_numpy(rng.normal(size=(200, 3)))
    limits.high[:] = limits.low + 1
    ends = -torch.ones(3) * 9, torch.ones(3) * 9
    is_any = torch.ones(200, 3, dtype=torch.bool)
    interval = intersect(is_any, now, *ends, limits, ~is_any[0], mean, std)
    assert interval.low.dtype == torch.float32
    low, high = (((end - mean) / std) for end in (limits.low, limits.high))
    assert (interval.low.double() >= low - 1e-15).all() and (interval.low > low).any()
    assert (interval.high.double() <= high + 1e-15).all()
    assert torch.allclose(interval.low.double(), low, atol=1e-5)


def test_intervals_are_indexed_and_broadcast():
    mask = [[[1, 0, 1], [0, 0, 0]]] * 5
    limits = replace(with_mask(mask), high=torch.arange(10.0).reshape(5, 2).double())
    one, is_any = torch.ones(2).double(), torch.ones(5, 2, dtype=torch.bool)
    interval = intersect(
        is_any, one.expand(5, 2), 0 * one, 9 * one, limits, one > 0, 0 * one, one
    )
    some = interval[[4, 1]]
    assert some.high.tolist() == [[2, 9], [2, 3]]
    assert some.allowed_categories.shape == (2, 2, 3)
    values = torch.rand(7, 5, 2).double() * 12 - 1
    whole = interval.project(values)
    assert whole.shape == (7, 5, 2)
    assert torch.equal(interval[3:].project(values[:, 3:]), whole[:, 3:])
    with_axis = interval[:, None].project(values.transpose(0, 1))
    assert torch.equal(with_axis.transpose(0, 1), whole)


def test_soft_clamp_stays_within_and_keeps_a_gradient():
    low, high = torch.tensor([[-1.0, 0.3]]).double(), torch.tensor([[2.0, 0.3]]).double()
    interval = Interval(low < 9, low, high)
    values = torch.linspace(-5, 5, 101).double()[:, None].expand(-1, 2).clone()
    values.requires_grad_()
    bent = interval.soft_clamp(values)
    assert ((bent >= low - 1e-12) & (bent <= high + 1e-12)).all()
    assert (bent[:, 0].diff() >= 0).all() and torch.allclose(bent[:, 1], high[0, 1])
    is_inside = (values[:, 0] > -0.5) & (values[:, 0] < 1.5)
    assert torch.allclose(bent[is_inside, 0], values[is_inside, 0], atol=1e-2)
    is_near = (values[:, 0] > -1.2) & (values[:, 0] < 2.2)
    (slope,) = torch.autograd.grad(bent[:, 0].sum(), values)
    assert (slope[is_near, 0] > 0.1).all()


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
        "refined": Refined(plain, problem, **effort),
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


def random_limits(problem, x, seed=8):
    """Return limits of all kinds, some of each person's features."""
    rng, population = np.random.default_rng(seed), problem.population
    columns = population.actionable_index
    now, std = population.to_records(x)[:, columns], population.std[columns].double()

    def some(values, share=0.3):
        is_stated = torch.from_numpy(rng.random(now.shape) < share)
        return torch.where(is_stated, values, torch.nan)

    def drawn(values):
        return torch.from_numpy(rng.choice(values, now.shape))

    low = some(now + std * torch.from_numpy(rng.normal(-0.5, 1, now.shape)))
    high = some(now + std * torch.from_numpy(rng.normal(0.5, 1, now.shape)))
    low = torch.where(low > high, torch.nan, low)
    changes = [some(std * drawn([0.0, 0.0, 0.5, INF])) for _ in range(2)]
    step = some(std * drawn([0.1, 0.4]), 0.2)
    if population.discretisation is not None:
        step = torch.where(population.discretisation.is_whole[columns], step.ceil(), step)
    percent = [some(drawn([0.0, 10.0, INF]), 0.15) for _ in range(2)]
    return Limits(low, high, *changes, step, None, *percent)


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
    limits = random_limits(problem, x)
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
    limited = replace(preferences, limits=limits)
    for name in solvers.keys() & {"iCARMA"}:
        together = solvers[name].recommend(x, limited)
        others = solvers[name].recommend(x[1:], preferences[1:])
        torch.testing.assert_close(together[1:].values, others.values, rtol=0, atol=1e-6)


def test_who_has_no_value_left_may_not_set_the_feature(task):
    problem, solvers = task
    x, preferences = people_of(problem)
    population = problem.population
    column = population.features.index("income")
    k = population.actionable_index.index(column)
    limits = Limits.unlimited(*preferences.scores.shape)
    limits.low[:, k] = population.to_records(population.high)[column] + 1
    preferences = replace(preferences, limits=limits)
    assert not problem.interval(x, preferences).is_allowed[:, k].any()
    for name, solver in solvers.items():
        assert not solver.recommend(x, preferences).is_acted[:, column].any(), name


def test_who_has_no_value_left_of_any_feature_has_no_recourse(task):
    problem, solvers = task
    x, preferences = people_of(problem)
    limits = Limits.unlimited(*preferences.scores.shape)
    limits.low[0] = problem.population.to_records(problem.population.high).max() + 1
    limited = replace(preferences, limits=limits)
    assert not problem.interval(x, limited).is_allowed[0].any()
    for name, solver in solvers.items():
        assert not solver.recommend(x, limited).is_acted[0].any(), name


@pytest.mark.parametrize("std", [11.7, 5000.0])
def test_ends_are_exact_whole_numbers_whatever_their_size(std):
    """Standardised float32 has seven digits, so money in single units needs care."""
    mean = 1.3 * std
    units = torch.from_numpy(np.random.default_rng(0).integers(0, int(4 * std), 200))
    ends = [torch.tensor([(end - mean) / std]) for end in (0.0, 4 * std + 10)]
    interval = intersect(
        is_allowed=torch.ones(200, 1, dtype=torch.bool),
        now=((units.double() - mean) / std).float()[:, None],
        low=ends[0],
        high=ends[1],
        limits=Limits.from_words({"money": "only up, at most 5 more"}, ("money",)),
        is_whole=torch.tensor([True]),
        mean=torch.tensor([mean], dtype=torch.float64),
        std=torch.tensor([std], dtype=torch.float64),
    )
    low, high = (end.double() * std + mean for end in (interval.low, interval.high))
    assert torch.equal(low.round().long()[:, 0], units)
    assert torch.equal(high.round().long()[:, 0], units + 5)


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
    """Neither as a start of the search nor in a table that was made before."""
    x, preferences = people
    search = Search(problem, n_samples=16, n_starts=1, n_steps=4)
    free = search.recommend(x, preferences)
    limits = random_limits(problem, x)
    limited = replace(preferences, limits=limits)
    assert violation(problem, x, limits, free).max() > 0.1
    interval = problem.interval(x, limited)
    table = search.table(x, starts=[free], interval=interval)
    cost, which = table.cheapest(interval.is_allowed)
    for row in cost.isfinite().nonzero().squeeze(-1):
        is_acted = table.sets[which[row]]
        values = table.values[row, which[row]]
        nearest = interval[row : row + 1].project(values[None])[0]
        assert torch.equal(nearest[is_acted], values[is_acted])
    with pytest.raises(ValueError, match="made before"):
        search.recommend(x, limited, table=table)


def test_the_limits_of_the_populations_can_be_read(problem):
    careful = problem.with_limits(loan.LIMITS).population.limits
    assert careful.max_increase[:2].tolist() == careful.max_decrease[2:].tolist() == [0, 0]
    names = [name for name, kind in gmsc.KINDS.items() if kind == "actionable"]
    credit = Limits.from_words(gmsc.LIMITS, names)
    assert credit.max_decrease[names.index("income")] == 0
    assert credit.max_increase[names.index("utilization")] == 0
