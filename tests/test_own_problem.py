"""The documented way from a table to recommendations; it listens to what is hard."""

import ast
import re

import pandas as pd
import pytest
from own_problem import EDGES, KINDS, past_applicants

from lib.io import ROOT
from lib.method.preferences import from_words
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


@pytest.mark.parametrize(("log_odds", "what"), [(-5.0, "refuses"), (5.0, "accepts")])
def test_a_classifier_with_one_answer_for_everybody_is_told(log_odds, what):
    def model(units):
        return log_odds + 0 * units[:, 0]

    how = {"n_epochs": 1, "classifier_model": model}
    with pytest.warns(UserWarning, match=rf"{what} all \d+ people of the training"):
        Problem.from_frame(past_applicants(), "repaid", KINDS, EDGES, **how)


def test_the_documented_code_runs_from_a_csv_to_the_frame(tmp_path, monkeypatch):
    """Every block of docs/own_data.md, in order; what it promises of each frame."""
    past_applicants().to_csv(tmp_path / "past_applicants.csv", index=False)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
    names: dict = {}
    frames = []
    for block in re.findall("```python\n(.*?)```", text, re.DOTALL):
        *statements, last = ast.parse(block).body
        exec(compile(ast.Module(statements, []), "own_data.md", "exec"), names)
        frames.append(
            eval(compile(ast.Expression(last.value), "own_data.md", "eval"), names)
        )
        assert frames[1:] or len(statements) + 1 <= 15

    first, careful, plans, grid, strict, many = frames
    for frame in (first, careful, grid, strict):
        assert frame.index.tolist() == ["Ana", "Ben"]
        assert (frame.accepted & frame.plausible).all()
    people, names_of_columns = names["applicants"], list(KINDS)
    assert (first.age == people.age).all() and first.loc["Ana"].debt >= 799.99
    assert not first.change["Ben"].startswith("income")
    assert (careful.income >= people.income - 0.01).all()
    assert (careful.debt <= people.debt + 0.01).all()
    pd.testing.assert_frame_equal(plans.xs(1, level="plan"), first)
    x_cf = grid[names_of_columns].astype({"age": int, "cards": int})
    assert (names["model"].predict_proba(x_cf)[:, 1] >= 0.5 - 1e-6).all()
    population = names["problem"].population
    h = names["problem"].classifier
    assert (h.probability(population.standardise(strict)) >= 0.7 - 1e-3).all()
    assert len(many) == 1000 and many.accepted.mean() > 0.8
