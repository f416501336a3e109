"""The documented way from a table to recommendations listens to what is hard."""

import pandas as pd
import pytest
import torch
from own_problem import EDGES, KINDS, past_applicants

from lib.method.preferences import CONSTANT, from_words
from lib.method.problem import Problem
from lib.search.continuous import Search


@pytest.fixture(scope="module")
def problem():
    return Problem.from_frame(past_applicants(), "repaid", KINDS, EDGES, n_epochs=60)


def test_what_is_hard_changes_the_recommendation(problem):
    """`income: hard; debt: easy` moves debt more and income less than the reverse."""
    applicant = pd.DataFrame({"age": [27], "income": [2100], "cards": [2], "debt": [1300]})
    x, actionable = problem.population.standardise(applicant), problem.population.actionable
    one, other = (
        from_words(answers, actionable)
        for answers in (
            "income: hard; debt: easy; cards: can't",
            "income: easy; debt: hard; cards: can't",
        )
    )
    search = Search(problem, n_samples=64, n_starts=2)
    change = [
        (search.recommend(x, preferences).values - x)[0] for preferences in (one, other)
    ]
    income, debt = problem.population.features.index("income"), 3
    assert change[0][income] < change[1][income] and change[0][debt] < change[1][debt]
    same = [
        search.recommend(x, preferences.with_profile(CONSTANT)).values
        for preferences in (one, other)
    ]
    assert torch.equal(*same)
