"""People and recommendations in words and tables.

Where the data has units that people know, values are given in them.
Where it has none (Loan), a value is given by its percentile rank, "31
of 100": it is more than 31 of 100 applicants have. The number that
the models compute with stands behind it.
"""

from collections.abc import Hashable, Sequence
from math import ceil, log10
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method.classifier import Classifier
from lib.method.data import Population, to_table
from lib.method.preferences import LINEAR, Preferences
from lib.method.problem import Problem, Recommendation, Solver, is_plausible, is_valid

OUTCOMES = {
    "joint": "accepted, and as plausible as before",
    "implausible": "accepted, but less plausible than before",
    "refused": "still refused",
    "nothing": "no recourse found",
}
FLOAT32 = 1e-6  # standard deviations from 0 that rounding makes of 0
ACCEPTED = "accepted already"  # of people who need no recourse
# of a table, beside the features
COLUMNS = ("outcome", "why", "change", "follows", "cost", "log_odds", "log_density_change")


def table(
    problem: Problem,
    x: Tensor,
    recommendation: Recommendation,
    people: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Return what is recommended to each person, and its outcome, a row a person.

    In a population with whole numbers the recommendation is shown as
    people can carry it out.

    Arguments:
        x: Refused people, standardised, with shape (N, D).
        recommendation: Of shape (N, D).
        people: Their names, for the table's index, for instance
            `population.people["recourse/test"]`; None: 0 to N - 1.
    Returns: Columns outcome (one of `OUTCOMES`), why (empty where
        nothing is missing), change (the actions; "keep cards at 1"
        where an action holds what would follow from another), follows
        (the downstream effects), cost (unweighted, see
        `Problem.action_cost`; NaN where nothing is recommended),
        log_odds (of a positive decision, afterwards),
        log_density_change (in nats), and every feature afterwards.
    Raises: ValueError: x and the recommendation differ in shape;
        people do not fit; a feature is called like a column.
    """
    population = problem.population
    check_names(population, COLUMNS)
    recommendation = _discretise(problem, x, recommendation)
    has_recourse = recommendation.has_recourse.numpy()
    with torch.no_grad():
        log_odds, gain = problem.outcome(x, recommendation.x_cf)
    valid, plausible = is_valid(log_odds).numpy(), is_plausible(gain).numpy()
    kinds = np.select(
        [~has_recourse, ~valid, ~plausible], ["nothing", "refused", "implausible"], "joint"
    ).tolist()
    outcomes = zip(kinds, log_odds.tolist(), gain.tolist(), strict=True)
    actions, effects = _in_words(population, x, recommendation)
    columns = (
        [OUTCOMES[kind] for kind in kinds],
        [_why(*outcome, problem.classifier) for outcome in outcomes],
        actions,
        effects,
        np.where(has_recourse, problem.cost_of(x, recommendation), np.nan),
        log_odds.numpy(),
        gain.numpy(),
    )
    rows = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    rows = pd.concat([rows, population.to_frame(recommendation.x_cf)], axis=1)
    names = list(range(len(x)) if people is None else people)
    return rows.set_axis(pd.Index(names, name="person", tupleize_cols=False))


def check_names(population: Population, columns: Sequence[str]) -> None:
    """Raise ValueError if a feature is called like one of the columns of a table."""
    for name in population.features:
        if name in columns:
            raise ValueError(
                f"A column of this table is called {name!r}: rename the feature."
            )


def recommend_frame(
    problem: Problem,
    solver: Solver,
    frame: pd.DataFrame,
    preferences: Preferences | None = None,
) -> pd.DataFrame:
    """Return recommendations for a table of applicants, in the units of the data.

    Arguments:
        solver: Of this problem, for instance `icarma.best`.
        frame: A row a person, with a column for each feature; what
            `Population.standardise` takes.
        preferences: Of these people, with scores (N, K); None: they
            can do anything, all equally easy.
    Returns: A row a person, with the frame's index and the columns of
        `table`. The outcome of those who are accepted already says
        so, and their other cells are empty.
    Raises: ValueError: as `Population.standardise` and the solver.
    """
    population = problem.population
    people = to_table(frame, population.features)
    x = population.standardise(people)
    shape = len(x), len(population.actionable)
    if preferences is None:
        scores = torch.ones(shape, dtype=torch.long)
        preferences = Preferences(scores, profile=getattr(solver, "profile", LINEAR))
    checks.shape("preferences.scores", preferences.scores, shape)
    is_refused = ~problem.accepts(x)
    rows = is_refused.nonzero().squeeze(-1)
    answers = pd.DataFrame(columns=[*COLUMNS, *population.features])
    if len(rows):
        recommendation = solver.recommend(x[rows], preferences[rows])
        answers = table(problem, x[rows], recommendation, rows.tolist())
    answers = answers.reindex(range(len(x)))
    answers.loc[~is_refused.numpy(), "outcome"] = ACCEPTED
    return answers.set_axis(people.index)


def options(problem: Problem, x: Tensor, recommendation: Recommendation) -> list[str]:
    """Return what each person does and what follows from it, one line a person.

    Somebody who is asked which of two options is better reads two
    such lines. Whole numbers are as people can carry them out.

    Arguments:
        x: Refused people, standardised, with shape (N, D).
        recommendation: Of shape (N, D).
    Raises: ValueError: x and the recommendation differ in shape.
    """
    recommendation = _discretise(problem, x, recommendation)
    in_words = _in_words(problem.population, x, recommendation)
    lines = []
    for actions, effects in zip(*in_words, strict=True):
        follows = f"then follows: {effects}" if effects else ""
        lines.append("; ".join(filter(None, [actions, follows])) or "nothing changes")
    return lines


def percentile_ranks(population: Population, x: Tensor) -> Tensor:
    """Return how many of 100 applicants have less of each feature, with shape (*, D).

    Arguments:
        population: The applicants are its recourse training split.
        x: Standardised features, with shape (*, D).
    """
    applicants = population.to_feasible(population.x["recourse/train"]).T.contiguous()
    values = population.to_feasible(x).movedim(-1, 0)
    flat = values.reshape(len(applicants), -1).contiguous()
    n_below = torch.searchsorted(applicants.sort(-1).values, flat)
    return (100 * n_below / applicants.shape[-1]).reshape(values.shape).movedim(0, -1)


def standing(population: Population, x: Tensor) -> pd.DataFrame:
    """Return where one person stands among all applicants, a row a feature.

    Arguments:
        x: Standardised features, with shape (D,).
    Returns: Columns "more than" (of 100 applicants; empty where a
        feature has categories or takes two values only) and "value",
        in the units of the data.
    Raises: ValueError: x has other features.
    """
    checks.people("x", x, population.features)
    applicants = population.to_feasible(population.x["recourse/train"])
    more_than = []
    for j, rank in enumerate(percentile_ranks(population, x).tolist()):
        is_binary = len(applicants[:, j].unique()) == 2
        has_rank = not is_binary and population.features[j] not in population.categories
        more_than.append(f"{rank:.0f} of 100" if has_rank else "")
    value = population.to_frame(x[None]).round(2).replace(-0.0, 0.0).iloc[0].to_list()
    return pd.DataFrame({"more than": more_than, "value": value}, [*population.features])


def changes(population: Population, x: Tensor, x_cf: Tensor) -> list[dict[str, str]]:
    """Return how each feature changes, in words, by name; a dict a person.

    Arguments:
        x, x_cf: Standardised features before and after, with shape
            (N, D).
    Example:
        >>> x = problem.refused("test")[:1]
        >>> x_cf = x.clone()
        >>> x_cf[0, 5] += 1  # income
        >>> changes(problem.population, x, x_cf)
        [{'income': '36 -> 75 of 100 (-0.4053 -> 2.097)'}]
    """
    texts = [_texts(population, people) for people in (x, x_cf)]
    ranks = [percentile_ranks(population, people).tolist() for people in (x, x_cf)]
    moves = []
    for before, after, first, last in zip(*texts, *ranks, strict=True):
        moves.append(
            {
                name: _shown(population, name, (before[j], after[j]), (first[j], last[j]))
                for j, name in enumerate(population.features)
                if before[j] != after[j]
            }
        )
    return moves


def _shown(
    population: Population, name: str, texts: Sequence[str], ranks: Sequence[float]
) -> str:
    """Return values of a feature as text, behind their percentile ranks if without unit."""
    values = " -> ".join(texts)
    if population.has_units or name in population.categories:
        return values
    return f"{' -> '.join(f'{rank:.0f}' for rank in ranks)} of 100 ({values})"


def _texts(population: Population, x: Tensor) -> list[list[str]]:
    """Return every value as text, in the units of the data, a list a person."""
    rows = population.to_frame(x).to_numpy(object)
    smallest = (FLOAT32 * population.std).tolist()
    return [[_text(*cell) for cell in zip(row, smallest, strict=True)] for row in rows]


def _text(value: Any, smallest: float) -> str:
    """Return a number in four digits, with all digits before the point; or a name.

    A number below the smallest is 0, and digits below it are.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    number = number if abs(number) > smallest else 0.0
    if smallest > 1:
        number = round(number, -ceil(log10(smallest)))
    return f"{number:,.0f}" if abs(number) >= 1_000 else f"{number:.4g}"


def _in_words(
    population: Population, x: Tensor, recommendation: Recommendation
) -> tuple[list[str], list[str]]:
    """Return what each person does, and what follows from it, each a line a person.

    Somebody holds a feature that is acted on, stays as it is, and
    would follow: one of its causes moves.
    """
    texts, ranks = _texts(population, x), percentile_ranks(population, x).tolist()
    moves = changes(population, x, recommendation.x_cf)
    actions, effects = [], []
    for is_acted, moved, now, rank in zip(
        recommendation.is_acted.tolist(), moves, texts, ranks, strict=True
    ):
        acted: list[str] = []
        following: list[str] = []
        for j, name in enumerate(population.features):
            causes = population.graph.parents[name]
            if name in moved:
                (acted if is_acted[j] else following).append(f"{name} {moved[name]}")
            elif is_acted[j] and any(cause in moved for cause in causes):
                value = _shown(population, name, [now[j]], [rank[j]])
                acted.append(f"keep {name} at {value}")
        actions.append("; ".join(acted))
        effects.append("; ".join(following))
    return actions, effects


def _discretise(
    problem: Problem, x: Tensor, recommendation: Recommendation
) -> Recommendation:
    """Return a recommendation as people can carry it out; check that shapes fit."""
    problem.check_people(x)
    checks.shape("recommendation.values", recommendation.values, x.shape)
    if problem.population.discretisation is None:
        return recommendation
    return problem.discretise(x, recommendation)


def _why(kind: str, log_odds: float, gain: float, classifier: Classifier) -> str:
    """Return what is missing, in words."""
    if kind == "joint":
        return ""
    if kind == "implausible":
        return f"the log-density falls by {-gain:.2f} nats"
    threshold = float(f"{100 * classifier.threshold:.6g}")
    rating = _rating(log_odds + classifier.threshold_logit, threshold)
    if kind == "nothing":
        return f"nothing is recommended; the rating stays at {rating}"
    return f"the rating is {rating}, below {threshold:g} %"


def _rating(log_odds: float, threshold: float) -> str:
    """Return the probability of a positive decision, in percent.

    It has two digits, or as many as show that it is below the
    threshold.
    """
    percent = 100 * torch.tensor(log_odds, dtype=torch.float64).sigmoid().item()
    if percent < 0.01:
        return "below 0.01 %"
    texts = [f"{percent:.{n_digits}g}" for n_digits in range(2, 17)]
    below = (text for text in texts if float(text) < threshold)
    return f"{next(below, texts[-1])} %"
