"""A recommendation as a table says what changes, what follows, and why not."""

import pytest
import torch

from lib.preferences.scores import Preferences
from lib.problem import words
from lib.problem.recourse import Recommendation
from lib.solvers import grid


@pytest.fixture(scope="module")
def searched(problem, people):
    x, preferences = people
    return x, grid.search(problem, problem.flow, x, preferences, n_values=9)


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


def test_changes_and_what_follows_are_in_the_units_of_the_data(problem, people):
    x = people[0][:1]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[0, 5] = True
    x_cf = problem.flow.counterfactual(x, acts, x + 1)
    row = words.table(problem, x, Recommendation(acts, x + acts, x_cf), people=["Ana"]).loc[
        "Ana"
    ]
    before, after = (problem.population.in_units(part)[0] for part in (x, x_cf))
    assert row.change == f"income {before[5]:.4g} -> {after[5]:.4g}"
    assert row.follows == f"savings {before[6]:.4g} -> {after[6]:.4g}"
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
        len(refused) and refused.why.str.contains("log-odds of a positive decision").all()
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
