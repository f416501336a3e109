"""Whole numbers of Give Me Some Credit: the search beside an enumeration of them all."""

import torch
from test_gmsc_data import needs_data

from lib.method.problem import Recommendation, is_plausible, is_valid
from lib.paper import gmsc
from lib.search.continuous import Search

COUNTS = ("credit_lines", "real_estate_loans")


def enumerated(problem, person, names):
    """Return the lowest cost of a person (D,) over every whole number of these features."""
    population = problem.population
    columns = [population.features.index(name) for name in names]
    ends = population.to_records(torch.stack([population.low, population.high]))
    numbers = [torch.arange(*(ends[:, j] + torch.tensor([0, 1]))) for j in columns]
    counts = torch.cartesian_prod(*numbers).view(-1, len(columns))
    x = person.expand(len(counts), -1)
    values, is_acted = x.clone(), torch.zeros_like(x, dtype=torch.bool)
    mean, std = population.mean[columns], population.std[columns]
    values[:, columns], is_acted[:, columns] = ((counts - mean) / std).to(x), True
    done = problem.discretise(x, Recommendation(is_acted, values, values))
    log_odds, gain = problem.outcome(x, done.x_cf)
    holds = is_valid(log_odds) & is_plausible(gain)
    return torch.where(holds, problem.cost_of(x, done), torch.inf).min().item()


def check_search(problem, x):
    """Assert that the search has each person's lowest cost, for each set of counts."""
    table = Search(problem, n_samples=32, n_starts=1, n_steps=3).table(x)
    actionable, n_sets = problem.population.actionable, 0
    for is_acted, cost in zip(table.sets.tolist(), table.cost.T, strict=True):
        names = [name for name, acted in zip(actionable, is_acted, strict=True) if acted]
        if set(names) <= set(COUNTS):
            expected = torch.tensor([enumerated(problem, one, names) for one in x])
            torch.testing.assert_close(cost, expected, rtol=1e-4, atol=1e-6)
            n_sets += expected.isfinite().any()
    assert n_sets > 0


def test_counts_alone_are_enumerated(monkeypatch):
    monkeypatch.setattr(gmsc, "find", lambda path: None)
    problem = gmsc.problem(gmsc.applicants("", 4_000, 0, or_stand_in=True))
    check_search(problem, problem.refused("test")[:12])


@needs_data
def test_real_applicants():
    """The first three are people whom descents alone had failed, under an earlier flow."""
    problem = gmsc.problem(gmsc.applicants("", 120_269, 0))
    check_search(problem, problem.refused("test")[[1391, 2795, 1256, *range(0, 320, 32)]])
