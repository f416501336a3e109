"""Ten distances against sums by hand, plain loops, and laws."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.beyond.evaluation.distances import ACTION, DISTANCES, PROFILE, measure
from lib.method import grid, metrics
from lib.method.data import Discretisation
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation


def in_whole_units(population):
    """Return the population with features that are whole, in the units of the data."""
    is_whole = torch.ones(7, dtype=torch.bool)
    infinite = torch.full((7,), torch.inf, dtype=torch.float64)
    return replace(population, discretisation=Discretisation(is_whole, -infinite, infinite))


@pytest.fixture(scope="module", params=["any", "whole"])
def grid_case(request, problem):
    """A problem, also one of whole numbers, with ten people and the grid's actions."""
    population = problem.population
    if request.param == "whole":
        population = in_whole_units(population)
    problem = replace(problem, population=population)
    x = problem.refused("test")[:10]
    preferences = Preferences(torch.ones(10, 4, dtype=torch.long))
    preferences.scores[0, 1:] = 5
    solver = grid.Grid(problem, population.truth, n_values=5)
    recommendation = solver.recommend(x, preferences)
    assert 0 < recommendation.has_recourse.sum() < 10
    return problem, x, preferences, recommendation


def test_by_hand(problem):
    """Five training people with 0, 1, 2, 4, 10 in every feature: range 10, MAD 2."""
    line = torch.tensor([0.0, 1, 2, 4, 10], dtype=torch.float64)
    x = {"recourse/train": line[:, None].expand(-1, 7)}
    problem = replace(problem, population=replace(problem.population, x=x, y={}))
    before = torch.ones(3, 7, dtype=torch.float64)
    acts = torch.zeros(3, 7, dtype=torch.bool)
    acts[0, 3] = acts[1, 5] = acts[1, 6] = True
    values, after = before.clone(), before.clone()
    values[0, 3] = after[0, 3] = 4.0
    after[0, 4] = 0.0  # follows
    values[1, 5] = after[1, 5] = 2.0
    values[1, 6] = after[1, 6] = 1.05  # less than 1 % of the range
    recommendation = Recommendation(acts, values, after)
    measured = measure(problem, before, recommendation)
    # ranks: 1.5 / 5 below 1, 2 / 5 below 1.05, 2.5 / 5 below 2, 3.5 / 5 below 4
    expected = pd.DataFrame(
        {
            "carma_cost": [9 / 10 / 4, (1 + 0.05**2) / 10 / 4],
            "acted": [1, 2],
            "shown": [2, 1],
            "proximity_of_action": [0.3, 0.105],
            "proximity_of_profile": [0.4, 0.105],
            "l2": [0.1**0.5, (0.1**2 + 0.005**2) ** 0.5],
            "linf": [0.3, 0.1],
            "mad": [1.5 + 0.5, 0.5 + 0.025],
            "percentile_shift_max": [0.4, 0.2],
            "percentile_shift_sum": [0.4, 0.3],
        }
    )
    pd.testing.assert_frame_equal(
        measured[:2], expected[list(DISTANCES)], check_dtype=False
    )
    assert measured.loc[2].isna().all()  # not 0: there is no recommendation
    finer = measure(problem, before, recommendation, ["shown"], tolerance=0.004)
    assert finer.shown[:2].tolist() == [2, 2]


def test_equal_to_scipy_and_plain_loops(grid_case):
    problem, x, _, given = grid_case
    population = problem.population
    people, before, after, values = (
        population.to_feasible(features).numpy()
        for features in (population.x["recourse/train"], x, given.x_cf, given.values)
    )
    acts = given.is_acted.numpy()
    mad = stats.median_abs_deviation(people)
    span = (population.high - population.low).numpy()
    measured = measure(problem, x, given)
    has = given.has_recourse.numpy()
    assert measured.notna().all(axis=1).tolist() == has.tolist()
    assert has.any()
    for i in np.flatnonzero(has):
        moved = [abs(after[i, k] - before[i, k]) for k in range(7)]
        shares = [change / width for change, width in zip(moved, span, strict=True)]
        on = np.flatnonzero(acts[i])
        shifts = [
            abs(
                stats.percentileofscore(people[:, k], values[i, k], kind="mean")
                - stats.percentileofscore(people[:, k], before[i, k], kind="mean")
            )
            / 100
            for k in on
        ]
        expected = {
            "acted": len(on),
            "shown": sum(share > 0.01 for share in shares),
            "proximity_of_action": sum(
                abs(values[i, k] - before[i, k]) / span[k] for k in on
            ),
            "proximity_of_profile": sum(shares),
            "l2": np.linalg.norm(shares),
            "linf": max(shares),
            "mad": sum(
                change / one for change, one in zip(moved, mad, strict=True) if change > 0
            ),
            "percentile_shift_max": max(shifts),
            "percentile_shift_sum": sum(shifts),
        }
        for name, value in expected.items():
            assert measured.loc[i, name] == pytest.approx(value, abs=1e-12), name


def test_cost_and_features_acted_on_are_those_of_the_metrics(grid_case):
    problem, x, preferences, given = grid_case
    measured = measure(problem, x, given, ["carma_cost", "acted"])
    people = metrics.per_person(problem, x, preferences, given)
    has = people.has_recourse
    assert (measured.carma_cost[has] == people.cost[has]).all()
    assert (measured.acted[has] == people.n_acted[has]).all()
    assert list(measured) == ["carma_cost", "acted"]


def test_a_distance_sees_what_it_measures_and_nothing_else(grid_case):
    problem, x, _, given = grid_case
    measured = measure(problem, x, given)
    has = given.has_recourse
    x_cf = given.x_cf.clone()
    x_cf[has, 3:] += 2
    elsewhere = replace(given, x_cf=x_cf)
    seen = measure(problem, x, elsewhere)
    pd.testing.assert_frame_equal(seen[list(ACTION)], measured[list(ACTION)])
    assert (seen.shown >= measured.shown)[has.numpy()].all()  # all four may be already
    others = [name for name in PROFILE if name != "shown"]
    assert (seen[others] != measured[others])[has.numpy()].all(axis=None)
    # what is not acted on counts for nothing, whatever its value
    noisy = replace(given, values=torch.where(given.is_acted, given.values, 9.0))
    pd.testing.assert_frame_equal(measure(problem, x, noisy), measured)
    otherwise = replace(given, values=torch.where(given.is_acted, x + 2, x))
    seen = measure(problem, x, otherwise)
    pd.testing.assert_frame_equal(seen[list(PROFILE)], measured[list(PROFILE)])


def test_what_follows_only_adds(grid_case):
    """An action is a part of its profile; two and more changes order the norms."""
    problem, x, _, given = grid_case
    m = measure(problem, x, given, tolerance=1e-9)[given.has_recourse.numpy()]
    assert (m.proximity_of_profile >= m.proximity_of_action - 1e-12).all()
    assert (m.proximity_of_profile > m.proximity_of_action + 1e-3).any()
    assert (m.shown >= m.acted).all() and (m.shown > m.acted).any()
    assert (m.linf <= m.l2 + 1e-12).all() and (m.l2 <= m.proximity_of_profile + 1e-12).all()
    largest, total = m.percentile_shift_max, m.percentile_shift_sum
    assert (largest <= total).all() and (total <= largest * m.acted + 1e-12).all()


def test_units_do_not_matter_but_to_the_cost(problem, people):
    """Features in other units, each in its own; then bent, which ranks do not see."""
    x = people[0]
    given = grid.Grid(problem, problem.population.truth, n_values=5).recommend(*people)
    measured = measure(problem, x, given)
    scale = torch.tensor([1.0, 4, 0.5, 2, 8, 0.25, 16], dtype=x.dtype)
    columns = problem.population.actionable_index
    for name, to in (("units", lambda v: v * scale), ("bent", lambda v: v**3)):
        x_to = {split: to(features) for split, features in problem.population.x.items()}
        other = replace(problem, population=replace(problem.population, x=x_to))
        moved = Recommendation(given.is_acted, to(given.values), to(given.x_cf))
        seen = measure(other, to(x), moved)
        same = (seen - measured).abs().max() < 1e-9
        free = set(DISTANCES) - {"carma_cost"}
        if name == "bent":
            free = {"acted", "percentile_shift_max", "percentile_shift_sum"}
        assert set(same.index[same]) == free, name
        if name == "units":  # squared, over the range to the power one
            effort = (given.values - x)[:, columns] ** 2 / problem.range[columns]
            cost = (given.is_acted[:, columns] * effort * scale[columns]).mean(-1)
            has = given.has_recourse
            assert seen.carma_cost[has.numpy()].to_numpy() == pytest.approx(cost[has])


def test_less_than_half_a_unit_is_no_change_of_a_whole_number(problem):
    population = in_whole_units(problem.population)
    rounded = replace(problem, population=population)
    units = rounded.refused("test")[:1] * population.std + population.mean
    x = (units.round() + 0.2 - population.mean) / population.std
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, 3] = True
    for to, shown in ((0.4, 0), (0.8, 1)):
        values = torch.where(acts, x + (to - 0.2) / population.std, x)
        recommendation = Recommendation(acts, values, values)
        m = measure(rounded, x, recommendation).loc[0]
        assert m.shown == shown and m.acted == 1
        width = (rounded.range * population.std)[3].item()  # in the units of the data
        assert m.linf == pytest.approx(shown / width)


def test_people_permuted_and_inputs_left_alone(grid_case):
    problem, x, _, given = grid_case
    copies = [tensor.clone() for tensor in (x, given.is_acted, given.values, given.x_cf)]
    measured = measure(problem, x, given)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    permuted = measure(problem, x[order], given[order])
    expected = measured.iloc[order.numpy()].reset_index(drop=True)
    pd.testing.assert_frame_equal(permuted, expected)
    now = (x, given.is_acted, given.values, given.x_cf)
    assert all(torch.equal(a, b) for a, b in zip(copies, now, strict=True))


def test_nobody_helped_is_all_nan(problem, people):
    x = people[0]
    nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
    assert measure(problem, x, nothing).isna().all(axis=None)


def test_a_feature_that_hardly_varies_has_no_mad(problem, people):
    """Three of four people have the same savings. Who does not move them is measured."""
    x = people[0][:2]
    train = problem.population.x["recourse/train"].clone()
    train[torch.arange(len(train)) % 4 > 0, 6] = 0.25
    population = replace(problem.population, x={"recourse/train": train}, y={})
    problem = replace(problem, population=population)
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, 3] = True
    values = torch.where(acts, x + 1, x)
    measured = measure(problem, x, Recommendation(acts, values, values))
    one = stats.median_abs_deviation(train[:, 3].numpy())
    assert measured["mad"].to_numpy() == pytest.approx(1 / one)
    after = values.clone()
    after[1, 6] += 0.5
    moves_it = Recommendation(acts, values, after)
    with pytest.raises(ValueError, match=r"changes of savings: .*Leave mad"):
        measure(problem, x, moves_it)
    others = [name for name in DISTANCES if name != "mad"]
    assert measure(problem, x, moves_it, others).notna().all(axis=None)


@pytest.mark.parametrize("tolerance", [0, np.nan])
def test_a_tolerance_that_is_none_is_named(grid_case, tolerance):
    problem, x, _, given = grid_case
    with pytest.raises(ValueError, match="tolerance must be above zero"):
        measure(problem, x, given, tolerance=tolerance)


def test_bad_input_is_named(grid_case):
    problem, x, _, given = grid_case
    with pytest.raises(ValueError, match="Unknown distance 'l1'"):
        measure(problem, x, given, ["l1"])
    with pytest.raises(ValueError, match=r"recommendation.values has shape \(10, 7\)"):
        measure(problem, x[:9], given)
    with pytest.raises(ValueError, match="ensemble's: choose a member"):
        measure(
            problem, x, Recommendation(*(tensor[None] for tensor in vars(given).values()))
        )
    with pytest.raises(ValueError, match="its last axis must hold the 7 features"):
        measure(problem, x[:, :6], given)
    lost = replace(given, x_cf=given.x_cf * torch.nan)
    with pytest.raises(ValueError, match=r"recommendation.x_cf holds NaN"):
        measure(problem, x, lost)
