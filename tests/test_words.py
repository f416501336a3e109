"""A recommendation as a table says what changes, what follows, and why not."""

from dataclasses import replace

import pytest
import torch

from lib.method import grid, words
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation


@pytest.fixture(scope="module")
def searched(problem, people):
    x, preferences = people
    return x, grid.Grid(problem, problem.flow, n_values=9).recommend(x, preferences)


def test_outcomes_are_those_of_the_classifier_and_the_flow(problem, searched):
    x, found = searched
    table = words.table(problem, x, found)
    has = found.has_recourse.numpy()
    assert (table.outcome[has] == words.OUTCOMES["joint"]).all() and (
        table.why[has] == ""
    ).all()
    assert (table.outcome[~has] == words.OUTCOMES["nothing"]).all()
    assert (table.why[~has] != "").all() and 0 < has.sum() < len(x)
    assert (table.change[~has] == "").all() and (table.follows[~has] == "").all()


def below(problem, column, value):
    """How many of 100 applicants have less, counted one by one."""
    everyone = problem.population.x["recourse/train"][:, column].tolist()
    return 100 * sum(own < value for own in everyone) / len(everyone)


def test_ranks_by_counting(problem, people):
    x = people[0][:3].clone()
    x[0, 5], x[1, 5] = 99, -99
    found = words.ranks(problem.population, x)
    for i, j in ((0, 5), (1, 5), (2, 5), (2, 0), (2, 3)):
        assert found[i, j].item() == pytest.approx(below(problem, j, x[i, j].item()))
    table = words.standing(problem.population, x[2])
    assert table.loc["gender", "more than"] == ""
    assert table.loc["income", "more than"] == f"{found[2, 5]:.0f} of 100"
    with pytest.raises(ValueError, match="x has "):
        words.standing(problem.population, x[2, :6])


@pytest.mark.parametrize("has_units", [True, False])
def test_changes_and_what_follows_are_told_in_units_or_ranks(problem, people, has_units):
    population = replace(problem.population, has_units=has_units)
    problem = replace(problem, population=population)
    x = people[0][:1]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, 5] = True
    x_cf = problem.flow.counterfactual(x, acts, x + 1)
    row = words.table(problem, x, Recommendation(acts, x + acts, x_cf), people=["Ana"]).loc[
        "Ana"
    ]
    before, after = (problem.population.in_units(part)[0] for part in (x, x_cf))
    for said, name, j in ((row.change, "income", 5), (row.follows, "savings", 6)):
        units = f"{before[j]:.4g} -> {after[j]:.4g}"
        then, now = (below(problem, j, part[0, j].item()) for part in (x, x_cf))
        ranked = f"{name} {then:.0f} -> {now:.0f} of 100 ({units})"
        assert said == (f"{name} {units}" if has_units else ranked)
    assert row.income == pytest.approx(after[5].item())
    assert row.cost == pytest.approx(1 / problem.range[5].item() / 4)


def test_failures_say_why(problem, people):
    """Somebody who pays everything back at once is accepted but implausible."""
    x = people[0]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, 3] = True
    far = torch.where(acts, x - 9, x)
    table = words.table(
        problem, x, Recommendation(acts, far, problem.flow.counterfactual(x, acts, far))
    )
    implausible = table[table.outcome == words.OUTCOMES["implausible"]]
    assert (
        len(implausible)
        and implausible.why.str.fullmatch(r"the log-density falls by .* nats").all()
    )
    near = torch.where(acts, x - 1e-3, x)
    table = words.table(
        problem, x, Recommendation(acts, near, problem.flow.counterfactual(x, acts, near))
    )
    refused = table[table.outcome == words.OUTCOMES["refused"]]
    assert (
        len(refused) and refused.why.str.fullmatch(r"the rating is .* %, below 50 %").all()
    )


def test_bad_input_is_named(problem, people, searched):
    x, found = searched
    with pytest.raises(ValueError, match=r"recommendation.values has shape \(30, 7\)"):
        words.table(problem, x[:5], found)
    two = words.table(problem, x[:2], found[:2], people=["Ana", "Ana"])
    assert (
        len(two) == 2
        and two.savings.tolist() == words.table(problem, x, found).savings[:2].tolist()
    )
    with pytest.raises(ValueError, match="people names 2, but x holds 30"):
        words.table(problem, x, found, people=["Ana", "Ben"])
    assert isinstance(people[1], Preferences)


def test_options_are_one_line_a_person(problem, people):
    """The same words as in the table: who acts, who moves others, who does nothing."""
    x = people[0][:3]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, [3, 5]] = acts[1, 6] = True
    values = torch.where(acts, x + 1, x)
    given = Recommendation(acts, values, problem.flow.counterfactual(x, acts, values))
    table = words.table(problem, x, given)
    both, alone, nothing = words.options(problem, x, given)
    assert both == f"{table.change[0]}; then follows: {table.follows[0]}"
    assert "loan_amount" in table.change[0] and "income" in table.change[0]
    assert "savings" in table.follows[0] and table.follows[1] == ""
    assert alone == table.change[1] and alone.startswith("savings ")
    assert nothing == "nothing changes"
    with pytest.raises(ValueError, match=r"recommendation.values has shape \(3, 7\)"):
        words.options(problem, x[:2], given)


def test_options_are_in_whole_numbers_where_people_have_them(problem, people):
    def whole(units):
        return units.round()

    population = replace(problem.population, whole=whole, has_units=True)
    counted = replace(problem, population=population)
    x = counted.population.possible(people[0])
    x = x[~counted.accepts(x)][:1]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, 5] = True
    step = 1 / counted.population.std[5]
    for moved, to in ((2.3, 2), (0.2, 0)):
        values = torch.where(acts, x + moved * step, x)
        x_cf = counted.flow.counterfactual(x, acts, values)
        line = words.options(counted, x, Recommendation(acts, values, x_cf))[0]
        before = round(counted.population.in_units(x)[0, 5].item())
        if to:
            assert line.split(";")[0] == f"income {before} -> {before + to}"
            assert "." not in line
        else:
            assert line == "nothing changes"


def test_a_feature_that_is_held_is_told_where_it_would_follow(problem, people):
    """Income moves: savings, its effect, are kept; the loan's amount would stay anyway."""
    x = people[0][:2]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, [3, 5, 6]] = True
    acts[1, 6] = True  # held, while nothing moves
    values = x.clone()
    values[0, 5] += 1
    given = Recommendation(acts, values, problem.flow.counterfactual(x, acts, values))
    row = words.table(problem, x, given).loc[0]
    first, second = row.change.split("; ")
    place = words.ranks(problem.population, x)[0, 6]
    assert first.startswith("income ") and "loan_amount" not in row.change
    assert second.startswith(f"keep savings at {place:.0f} of 100 (")
    assert "savings" not in row.follows
    assert words.options(problem, x, given)[1] == "nothing changes"
