"""Whole numbers of Give Me Some Credit: what a search says beside a full enumeration."""

import pytest
import torch
from test_gmsc_data import needs_data

from lib.method.problem import Recommendation, is_plausible, is_valid
from lib.paper import gmsc
from lib.search.continuous import Search

COUNTS = ("credit_lines", "real_estate_loans")


def enumerated(problem, person, names):
    """The lowest cost of a person (D,) over every whole number of these features."""
    population = problem.population
    ends = population.as_recorded(torch.stack([population.low, population.high]))
    columns = [population.features.index(name) for name in names]
    numbers = [torch.arange(float(ends[0, j]), float(ends[1, j]) + 1) for j in columns]
    combined = torch.cartesian_prod(*numbers).view(-1, len(columns))
    values = person.expand(len(combined), -1).clone()
    mean, std = population.mean[columns], population.std[columns]
    values[:, columns] = ((combined - mean) / std).float()
    acts = torch.zeros_like(values, dtype=torch.bool)
    acts[:, columns] = True
    x = person.expand_as(values)
    before = Recommendation(acts, values, values)
    after = problem.carried_out(x, before)
    log_odds, gain = problem.outcome(x, after.x_cf)
    holds = is_valid(log_odds) & is_plausible(gain)
    return torch.where(holds, problem.cost_of(x, after), torch.inf).min().item()


def compared(problem, x):
    """Costs of the search and of the enumeration, for each person and set of counts."""
    table = Search(problem, n_scouts=32, n_starts=1, n_steps=3).table(x)
    pairs = []
    for s, acts in enumerate(table.sets):
        chosen = zip(problem.population.actionable, acts, strict=True)
        names = [name for name, on in chosen if on]
        if set(names) <= set(COUNTS):
            own = table.cost[:, s].tolist()
            each = zip(x, own, strict=True)
            pairs += [(cost, enumerated(problem, one, names)) for one, cost in each]
    return torch.tensor(pairs).T


def test_counts_alone_are_enumerated(monkeypatch):
    monkeypatch.setattr(gmsc, "find", lambda path: None)
    problem = gmsc.problem(gmsc.applicants("", 4_000, 0, or_stand_in=True))
    found, truth = compared(problem, problem.refused("test")[:30])
    assert torch.equal(found.isfinite(), truth.isfinite()) and truth.isfinite().any()
    torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-6)


@needs_data
def test_real_applicants_whom_descents_alone_failed():
    """Descents alone found nothing for the first, and too dear an action for the others."""
    problem = gmsc.problem(gmsc.applicants("", 120_269, 0))
    x = problem.refused("test")
    for row, names, cost in (
        (1391, COUNTS, 0.0172),
        (2795, COUNTS, 0.0232),
        (1256, COUNTS[:1], 0.0336),
    ):
        assert enumerated(problem, x[row], names) == pytest.approx(cost, abs=5e-5)
    rows = [1391, 2795, 1256, *range(0, 320, 10)]
    found, truth = compared(problem, x[rows])  # 105 pairs of a person and a set
    assert torch.equal(found.isfinite(), truth.isfinite())
    torch.testing.assert_close(found, truth, rtol=1e-4, atol=1e-6)
