"""Ten distances against sums by hand, and laws."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from scipy import stats

from lib.beyond.evaluation.distances import DISTANCES, measure
from lib.method import grid
from lib.method.data import Discretisation
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation


@pytest.fixture(scope="module")
def helped(problem):
    """Ten people, the first of whom can do little, and the grid's actions."""
    x = problem.refused("test")[:10]
    preferences = Preferences(torch.ones(10, 4, dtype=torch.long))
    preferences.scores[0, 1:] = 5
    solver = grid.Grid(problem, problem.population.truth, n_values=5)
    recommendation = solver.recommend(x, preferences)
    assert 0 < recommendation.has_recourse.sum() < 10
    return problem, x, recommendation


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


def test_what_is_not_acted_on_counts_for_nothing_whatever_its_value(helped):
    problem, x, given = helped
    noisy = replace(given, values=torch.where(given.is_acted, given.values, 9.0))
    pd.testing.assert_frame_equal(measure(problem, x, noisy), measure(problem, x, given))


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
    is_whole = torch.ones(7, dtype=torch.bool)
    infinite = torch.full((7,), torch.inf, dtype=torch.float64)
    whole = Discretisation(is_whole, -infinite, infinite)
    population = replace(problem.population, discretisation=whole)
    rounded = replace(problem, population=population)
    units = rounded.refused("test")[:1] * population.std + population.mean
    x = (units.round() + 0.2 - population.mean) / population.std
    acts = torch.arange(7)[None] == 3
    width = (rounded.range * population.std)[3].item()  # in the units of the data
    for to, shown in ((0.4, 0), (0.8, 1)):
        values = torch.where(acts, x + (to - 0.2) / population.std, x)
        m = measure(rounded, x, Recommendation(acts, values, values)).loc[0]
        assert m.shown == shown and m.acted == 1
        assert m.linf == m.proximity_of_action == pytest.approx(shown / width)


def test_people_permuted(helped):
    problem, x, given = helped
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    permuted = measure(problem, x[order], given[order])
    expected = measure(problem, x, given).iloc[order.numpy()].reset_index(drop=True)
    pd.testing.assert_frame_equal(permuted, expected)


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


def test_bad_input_is_named(helped):
    problem, x, given = helped
    lost = replace(given, x_cf=given.x_cf * torch.nan)
    ensemble = Recommendation(*(tensor[None] for tensor in vars(given).values()))
    for arguments, message in (
        ((x, given, ["l1"]), "Unknown distance 'l1'"),
        ((x, given, ["l2"], 0), "tolerance must be above zero"),
        ((x[:9], given), r"recommendation.values has shape \(10, 7\)"),
        ((x, ensemble), "ensemble's: choose a member"),
        ((x, lost), r"recommendation.x_cf holds NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            measure(problem, *arguments)
