"""A recommendation as a table: what changes, what follows, and what is missing."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method import report
from lib.method.classifier import Classifier
from lib.method.data import Discretisation
from lib.method.grid import Grid
from lib.method.problem import Problem, Recommendation


def act(problem, x, columns, values):
    """Return the recommendation that everybody sets these columns to these values."""
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, columns] = True
    values = torch.where(is_acted, values, x)
    return Recommendation(
        is_acted, values, problem.flow.counterfactual(x, is_acted, values)
    )


def test_percentile_ranks_by_counting(problem, people):
    x = people[0][:3].clone()
    x[0, 5], x[1, 5] = 99, -99
    result = report.percentile_ranks(problem.population, x)
    applicants = problem.population.x["recourse/train"]
    is_less = applicants < x[:, None]
    assert torch.allclose(result, 100 * is_less.float().mean(1))
    table = report.standing(problem.population, x[2])
    assert table.loc["gender", "more than"] == ""
    assert table.loc["income", "more than"] == f"{result[2, 5]:.0f} of 100"
    units = problem.population.inverse_transform(x[2])
    assert table.value.to_numpy() == pytest.approx(units.numpy(), abs=0.00501)
    with pytest.raises(ValueError, match="x has "):
        report.standing(problem.population, x[2, :6])


@pytest.mark.parametrize("has_units", [True, False])
def test_changes_and_downstream_effects_have_units_or_ranks(problem, people, has_units):
    problem = replace(problem, population=replace(problem.population, has_units=has_units))
    x = people[0][:1]
    result = act(problem, x, [5], x + 1)
    row = report.table(problem, x, result, people=["Ana"]).loc["Ana"]
    before, after = (
        problem.population.inverse_transform(features)[0] for features in (x, result.x_cf)
    )
    for text, name, j in ((row.change, "income", 5), (row.follows, "savings", 6)):
        units = f"{before[j]:.4g} -> {after[j]:.4g}"
        low, high = (
            report.percentile_ranks(problem.population, features)[0, j]
            for features in (x, result.x_cf)
        )
        ranks = f"{low:.0f} -> {high:.0f} of 100 ({units})"
        assert text == (f"{name} {units}" if has_units else f"{name} {ranks}")
    assert row.income == pytest.approx(after[5].item())
    assert row.cost == pytest.approx(1 / problem.range[5].item() / 4)


def test_outcomes_have_a_reason(problem, people):
    """Somebody who pays everything back at once is accepted but implausible."""
    x, preferences = people
    at_once, a_little = (act(problem, x, [3], x - step) for step in (9, 1e-3))
    searched = Grid(problem, problem.flow, n_values=9).recommend(x, preferences)
    for result, outcome, why in (
        (at_once, "implausible", r"the log-density falls by .* nats"),
        (a_little, "refused", r"the rating is .* %, below 50 %"),
        (searched, "joint", ""),
        (searched, "nothing", r"nothing is recommended; the rating stays at .* %"),
    ):
        table = report.table(problem, x, result)
        rows = table[table.outcome == report.OUTCOMES[outcome]]
        assert len(rows) and rows.why.str.fullmatch(why).all()
        assert (rows.cost.isna() == (outcome == "nothing")).all()
        assert ((rows.change == "") == (outcome == "nothing")).all()


@pytest.mark.parametrize(
    ("probability", "threshold", "text"),
    [
        (0.123, 0.5, "12 %"),
        (0.49996, 0.5, "49.996 %"),
        (0.7996, 0.8, "79.96 %"),
        (1e-6, 0.5, "below 0.01 %"),
    ],
)
def test_a_rating_below_the_threshold_reads_so(probability, threshold, text):
    log_odds = torch.tensor(probability, dtype=torch.float64).logit().item()
    assert report._rating(log_odds, 100 * threshold) == text


@pytest.mark.parametrize("threshold", [0.5, 0.7004, 0.50049, 0.9996])
def test_what_is_just_refused_reads_as_less_than_what_is_asked_for(threshold):
    h = Classifier(("income",), lambda x: x[:, 0]).with_threshold(threshold)
    why = report._why("refused", -1e-5, 0.0, h)
    rating, asked = map(float, re.findall(r"([0-9.]+) %", why))
    assert rating < asked == pytest.approx(100 * threshold)


def test_names_of_people(problem, people):
    x = people[0][:2]
    result = act(problem, x, [5], x + 1)
    for names in (["Ana", "Ana"], [("Ana", 1), ("Ben", 2)]):
        table = report.table(problem, x, result, people=names)
        assert table.index.tolist() == names and table.savings.notna().all()
    with pytest.raises(ValueError, match="Length mismatch"):
        report.table(problem, x, result, people=["Ana"])
    for function in (report.table, report.options):
        with pytest.raises(ValueError, match=r"recommendation.values has shape \(2, 7\)"):
            function(problem, people[0][:5], result)


def test_options_are_one_line_a_person(problem, people):
    """The words of the table: who acts, who moves others, who does nothing."""
    x = people[0][:3]
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[0, [3, 5]] = is_acted[1, 6] = True
    values = torch.where(is_acted, x + 1, x)
    x_cf = problem.flow.counterfactual(x, is_acted, values)
    result = Recommendation(is_acted, values, x_cf)
    table = report.table(problem, x, result)
    both, alone, nothing = report.options(problem, x, result)
    assert both == f"{table.change[0]}; then follows: {table.follows[0]}"
    assert "loan_amount" in table.change[0] and "income" in table.change[0]
    assert "savings" in table.follows[0] and table.follows[1] == ""
    assert alone == table.change[1] and alone.startswith("savings ")
    assert nothing == "nothing changes"


def test_whole_numbers_are_whole(problem, people):
    population = problem.population
    seen = population.inverse_transform(population.x["recourse/train"]).numpy()
    whole = Discretisation.of(seen.round(), np.ones(seen.shape[1], dtype=bool))
    population = replace(population, discretisation=whole, has_units=True)
    problem = replace(problem, population=population)
    x = population.to_feasible(people[0])
    x = x[~problem.accepts(x)][:1]
    before = round(population.inverse_transform(x)[0, 5].item())
    for moved, after in ((2.3, before + 2), (0.2, before)):
        values = x + moved / population.std[5]
        (line,) = report.options(problem, x, act(problem, x, [5], values))
        change = f"income {before} -> {after}" if after != before else "nothing changes"
        assert line.split(";")[0] == change and "." not in line


def test_digits_that_float32_does_not_have_are_zero():
    assert report._text(1_034_000_008_780, 1e5) == "1,034,000,000,000"
    assert report._text(1_234_567.4, 0.4) == "1,234,567"


def test_a_held_feature_is_shown_where_it_would_follow(problem, people):
    """Income moves: savings, its effect, are kept; the loan's amount would stay anyway."""
    x = people[0][:1]
    values = x.clone()
    values[0, 5] += 1
    result = act(problem, x, [3, 5, 6], values)
    row = report.table(problem, x, result).loc[0]
    income, savings = row.change.split("; ")
    rank = report.percentile_ranks(problem.population, x)[0, 6]
    assert income.startswith("income ") and "loan_amount" not in row.change
    assert savings.startswith(f"keep savings at {rank:.0f} of 100 (")
    assert "savings" not in row.follows
    held = act(problem, x, [6], x)  # while nothing moves
    assert report.options(problem, x, held) == ["nothing changes"]


def test_categories_have_their_names():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(3, 1, 400)})
    frame["job"] = rng.choice(["clerk", "cook", "nurse"], 400)
    frame["repaid"] = frame.income + (frame.job == "nurse") > 3.5
    kinds = {"income": "actionable", "job": "actionable"}
    problem = Problem.from_frame(frame, "repaid", kinds, {"job": ["income"]}, n_epochs=3)
    population = problem.population
    x = problem.refused("test")[:1]
    codes = {name: code for code, name in enumerate(population.categories["job"])}
    job = population.to_frame(x).job[0]
    other = next(name for name in codes if name != job)
    values = x.clone()
    values[0, 1] = (codes[other] - population.mean[1]) / population.std[1]
    row = report.table(problem, x, act(problem, x, [1], values)).loc[0]
    assert row.change == f"job {job} -> {other}" and row.job == other
    standing = report.standing(population, x[0])
    assert standing.loc["job"].to_list() == ["", job]
    assert standing.loc["income", "more than"].endswith(" of 100")
