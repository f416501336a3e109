"""Recommendations as people can read them, a table or a line each, in units of the data."""

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method.problem import Problem, Recommendation, is_plausible, is_valid

OUTCOMES = {
    "joint": "accepted, and as plausible as before",
    "implausible": "accepted, but less plausible than before",
    "refused": "still refused",
    "nothing": "no recourse found",
}
# of a table, beside the features
COLUMNS = ("outcome", "why", "change", "follows", "cost", "log_odds", "log_density_change")


def table(
    problem: Problem,
    x: Tensor,
    recommendation: Recommendation,
    people: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Return what is recommended to each person, and what comes of it: a row a person.

    Where a population has whole numbers, the recommendation is shown
    as people can carry it out.

    Arguments:
        x: Refused people, standardised, with shape (N, D).
        recommendation: One for each person, each part with shape (N,
            D).
        people: What they are called, for the table's index, for
            instance `population.people["recourse/test"]`; left out: 0
            to N - 1.
    Returns: Columns outcome (one of `OUTCOMES`), why (empty where all
        is well), change (their own actions, in words), follows (what
        moves as a consequence), cost (unweighted, without unit; see
        `Problem.action_cost`), log_odds (of a positive decision,
        afterwards), log_density_change (in nats), and every feature
        afterwards.
    Raises: ValueError: x and the recommendation differ in shape,
        people do not fit, or a feature is called like one of the
        columns.
    Example:
        >>> x = problem.refused("test")[:1]
        >>> is_acted = torch.zeros_like(x, dtype=torch.bool)
        >>> is_acted[0, 5] = True  # income
        >>> x_cf = problem.flow.counterfactual(x, is_acted, x + 1)
        >>> row = table(problem, x, Recommendation(is_acted, x + is_acted, x_cf)).loc[0]
        >>> row.change, row.follows
        ('income -0.4053 -> 2.097', 'savings -4.923 -> -2.033')
    """
    recommendation = _carried_out(problem, x, recommendation)
    if people is not None and len(people) != len(x):
        raise ValueError(f"people names {len(people)}, but x holds {len(x)}.")
    acts, x_cf = recommendation.is_acted, recommendation.x_cf
    with torch.no_grad():
        log_odds, gain = problem.outcome(x, x_cf)
    kinds = _kinds(recommendation.has_recourse, log_odds, gain)
    before, after = (_in_units(problem, part) for part in (x, x_cf))
    shown = (
        [OUTCOMES[kind] for kind in kinds],
        [_why(*row) for row in zip(kinds, log_odds.tolist(), gain.tolist(), strict=True)],
        [_moves(*row) for row in _each(before, after, acts)],
        [_moves(*row) for row in _each(before, after, ~acts)],
        problem.cost_of(x, recommendation).numpy(),
        log_odds.numpy(),
        gain.numpy(),
    )
    if clash := [name for name in problem.population.features if name in COLUMNS]:
        raise ValueError(
            f"A feature is called {clash[0]!r}, as a column of this table is: rename it."
        )
    index = pd.Index(range(len(x)) if people is None else people, name="person")
    rows = dict(zip(COLUMNS, shown, strict=True))
    return pd.DataFrame({**rows, **after.to_dict("list")}, index=index)


def options(problem: Problem, x: Tensor, recommendation: Recommendation) -> list[str]:
    """Return what each person does, and what follows from it, in one line a person.

    Whole numbers are as people can carry them out. A person who is
    asked which of two options is better reads two such lines.

    Arguments:
        x: Refused people, standardised, with shape (N, D).
        recommendation: One for each person, each part with shape (N,
            D).
    Raises: ValueError: x and the recommendation differ in shape.
    Example:
        >>> x = problem.refused("test")[:1]
        >>> is_acted = torch.zeros_like(x, dtype=torch.bool)
        >>> is_acted[0, 5] = True  # income
        >>> x_cf = problem.flow.counterfactual(x, is_acted, x + 1)
        >>> options(problem, x, Recommendation(is_acted, x + is_acted, x_cf))
        ['income -0.4053 -> 2.097; then follows: savings -4.923 -> -2.033']
    """
    recommendation = _carried_out(problem, x, recommendation)
    before, after = (_in_units(problem, part) for part in (x, recommendation.x_cf))
    acts = recommendation.is_acted
    pairs = zip(_each(before, after, acts), _each(before, after, ~acts), strict=True)
    return [_line(_moves(*own), _moves(*others)) for own, others in pairs]


def _line(change: str, follows: str) -> str:
    """Return what somebody does and what follows from it, as one text."""
    parts = [change, f"then follows: {follows}" if follows else ""]
    return "; ".join(part for part in parts if part) or "nothing changes"


def _carried_out(
    problem: Problem, x: Tensor, recommendation: Recommendation
) -> Recommendation:
    """Return a recommendation in whole numbers, where there are; check that all fits."""
    problem.check_people(x)
    checks.shape("recommendation.values", recommendation.values, x.shape)
    if problem.population.whole is None:
        return recommendation
    return problem.carried_out(x, recommendation)


def _in_units(problem: Problem, x: Tensor) -> pd.DataFrame:
    """Return people as a table in the units of the data."""
    recorded = problem.population.as_recorded(x)
    return pd.DataFrame(recorded.numpy(), columns=list(problem.population.features))


def _kinds(has_recourse: Tensor, log_odds: Tensor, gain: Tensor) -> list[str]:
    """Return which of `OUTCOMES` each person's recommendation has."""
    valid, plausible = is_valid(log_odds).numpy(), is_plausible(gain).numpy()
    named = np.where(valid, np.where(plausible, "joint", "implausible"), "refused")
    return np.where(has_recourse.numpy(), named, "nothing").tolist()


def _why(kind: str, log_odds: float, gain: float) -> str:
    """Return what is missing, in words."""
    if kind == "nothing":
        return f"nothing is recommended; the log-odds stay at {log_odds:.2f}"
    if kind == "refused":
        return f"the log-odds of a positive decision are {log_odds:.2f}, below 0"
    if kind == "implausible":
        return f"the log-density falls by {-gain:.2f} nats"
    return ""


def _each(before: pd.DataFrame, after: pd.DataFrame, which: Tensor) -> zip:
    """Return each person's features before and after, and which of them to tell."""
    rows = (part.to_dict("records") for part in (before, after))
    return zip(*rows, which.tolist(), strict=True)


def _moves(before: dict[str, float], after: dict[str, float], which: list[bool]) -> str:
    """Return the features that changed, of those asked for: "income 2,100 -> 2,600"."""
    parts = []
    for name, is_asked in zip(before, which, strict=True):
        then, now = (_number(row[name]) for row in (before, after))
        if is_asked and then != now:
            parts.append(f"{name} {then} -> {now}")
    return "; ".join(parts)


def _number(value: float) -> str:
    """Return a number in four digits, with all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
