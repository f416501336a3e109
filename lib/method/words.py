"""People and recommendations as people can read them.

Where the data has units that people know, a value is told in them.
Where it has none (Loan), it is told by its rank, "31 of 100": more
than 31 of 100 applicants have; the model's number stands behind it.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method.classifier import Classifier
from lib.method.population import Population
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
        is well), change (their own actions, in words; "keep cards at
        1" where one holds what would follow from another action),
        follows (what moves as a consequence), cost (unweighted, without unit; see
        `Problem.action_cost`; NaN where nothing is recommended),
        log_odds (of a positive decision, afterwards),
        log_density_change (in nats), and every feature afterwards.
    Raises: ValueError: x and the recommendation differ in shape,
        people do not fit, or a feature is called like one of the
        columns.
    Example:
        >>> x = problem.refused("test")[:1]
        >>> is_acted = torch.zeros_like(x, dtype=torch.bool)
        >>> is_acted[0, 5] = True  # income
        >>> x_cf = problem.flow.counterfactual(x, is_acted, x + 1)
        >>> row = table(problem, x, Recommendation(is_acted, x + is_acted, x_cf)).loc[0]
        >>> row.change
        'income 36 -> 75 of 100 (-0.4053 -> 2.097)'
    """
    recommendation = _carried_out(problem, x, recommendation)
    if people is not None and len(people) != len(x):
        raise ValueError(f"people names {len(people)}, but x holds {len(x)}.")
    acts, x_cf = recommendation.is_acted, recommendation.x_cf
    with torch.no_grad():
        log_odds, gain = problem.outcome(x, x_cf)
    kinds = _kinds(recommendation.has_recourse, log_odds, gain)
    moved = moves(problem.population, x, x_cf)
    after = _as_told(problem.population, x_cf)
    shown = (
        [OUTCOMES[kind] for kind in kinds],
        [
            _why(*row, problem.classifier)
            for row in zip(kinds, log_odds.tolist(), gain.tolist(), strict=True)
        ],
        _acted(problem.population, x, acts, moved),
        _followed(problem.population, acts, moved),
        np.where(recommendation.has_recourse, problem.cost_of(x, recommendation), np.nan),
        log_odds.numpy(),
        gain.numpy(),
    )
    if clash := [name for name in problem.population.features if name in COLUMNS]:
        raise ValueError(
            f"A feature is called {clash[0]!r}, as a column of this table is: rename it."
        )
    index = pd.Index(range(len(x)) if people is None else people, name="person")
    rows = dict(zip(COLUMNS, shown, strict=True))
    return pd.DataFrame({**rows, **after}, index=index)


def _as_told(population: Population, x: Tensor) -> dict[str, np.ndarray]:
    """Return features (N, D) as a table would hold them, by name; categories as words."""
    columns = population.as_recorded(x).numpy().T
    told = dict(zip(population.features, columns, strict=True))
    for name, order in population.categories.items():
        told[name] = np.array(order, dtype=object)[told[name].astype(int)]
    return told


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
        >>> said = options(problem, x, Recommendation(is_acted, x + is_acted, x_cf))
        >>> said[0].split("; ")[1]
        'then follows: savings 31 -> 52 of 100 (-4.923 -> -2.033)'
    """
    recommendation = _carried_out(problem, x, recommendation)
    acts, population = recommendation.is_acted, problem.population
    moved = moves(population, x, recommendation.x_cf)
    parts = _acted(population, x, acts, moved), _followed(population, acts, moved)
    return [_line(*pair) for pair in zip(*parts, strict=True)]


def ranks(population: Population, x: Tensor) -> Tensor:
    """Return how many of 100 applicants have less of each feature, with shape (*, D).

    Arguments:
        population: The applicants are those of its recourse training
            split.
        x: Standardised features, with shape (*, D).
    Example:
        >>> x = problem.refused("test")[0]
        >>> ranks(problem.population, x)[5].round()  # income
        tensor(36.)
    """
    everyone = population.possible(population.x["recourse/train"]).T.contiguous()
    asked = population.possible(x).movedim(-1, 0).contiguous()
    below = torch.searchsorted(everyone.sort(-1).values, asked.reshape(len(everyone), -1))
    return (100 * below / everyone.shape[-1]).reshape(asked.shape).movedim(0, -1)


def standing(population: Population, x: Tensor) -> pd.DataFrame:
    """Return where one person stands among all applicants: a row a feature.

    Arguments:
        x: Standardised features, with shape (D,).
    Returns: Columns "more than", of 100 applicants, empty where a
        feature takes two values only; and "value", in the units of
        the data.
    Example:
        >>> standing(problem.population, problem.refused("test")[0]).loc["income"].to_dict()
        {'more than': '36 of 100', 'value': -0.41}
    """
    checks.people("x", x, population.features)
    people = population.x["recourse/train"]
    is_binary = [len(column.unique()) == 2 for column in people.T]
    told = [f"{rank:.0f} of 100" for rank in ranks(population, x).tolist()]
    shown = ["" if two else own for two, own in zip(is_binary, told, strict=True)]
    value = population.as_recorded(x).numpy().round(2) + 0.0  # -0 becomes 0
    if population.categories:
        value = np.array(
            [own[0] for own in _as_told(population, x[None]).values()], dtype=object
        )
        shown = [
            "" if name in population.categories else own
            for name, own in zip(population.features, shown, strict=True)
        ]
    return pd.DataFrame({"more than": shown, "value": value}, list(population.features))


def moves(population: Population, x: Tensor, x_cf: Tensor) -> list[dict[str, str]]:
    """Return what becomes of each feature that changes, in words: a dict a person.

    Arguments:
        x, x_cf: Standardised features before and after, with shape
            (N, D).
    Example:
        >>> x = problem.refused("test")[:1]
        >>> x_cf = x.clone()
        >>> x_cf[0, 5] += 1  # income
        >>> moves(problem.population, x, x_cf)
        [{'income': '36 -> 75 of 100 (-0.4053 -> 2.097)'}]
    """
    values = [population.as_recorded(part).tolist() for part in (x, x_cf)]
    places = [ranks(population, part).tolist() for part in (x, x_cf)]
    told = []
    for person in zip(*values, *places, strict=True):
        own = {}
        for name, then, now, low, high in zip(population.features, *person, strict=True):
            before, after = (_said(population, name, value) for value in (then, now))
            if before != after:
                own[name] = f"{before} -> {after}"
                if not population.has_units and name not in population.categories:
                    own[name] = f"{low:.0f} -> {high:.0f} of 100 ({own[name]})"
        told.append(own)
    return told


def _said(population: Population, name: str, value: float) -> str:
    """Return a feature's value, in the units of the data, as text."""
    order = population.categories.get(name)
    return order[int(value)] if order else _number(value)


def _acted(
    population: Population, x: Tensor, acts: Tensor, moved: Sequence[Mapping[str, str]]
) -> list[str]:
    """Return what each person does, in one line, with what they hold where it is.

    Somebody holds a feature if it is acted on, stays as it is, and
    would follow: one of its causes moves.

    Arguments:
        x: Features before, standardised, with shape (N, D).
        acts: The features acted on, bool with shape (N, D).
        moved: As `moves` gives it.
    """
    values, places = population.as_recorded(x).tolist(), ranks(population, x).tolist()
    lines = []
    for own, *person in zip(moved, acts.tolist(), values, places, strict=True):
        parts = []
        for name, is_acted, value, place in zip(population.features, *person, strict=True):
            if is_acted and name in own:
                parts.append(f"{name} {own[name]}")
            elif is_acted and any(cause in own for cause in population.graph.parents[name]):
                now = _said(population, name, value)
                if not population.has_units and name not in population.categories:
                    now = f"{place:.0f} of 100 ({now})"
                parts.append(f"keep {name} at {now}")
        lines.append("; ".join(parts))
    return lines


def _followed(
    population: Population, acts: Tensor, moved: Sequence[Mapping[str, str]]
) -> list[str]:
    """Return what moves as a consequence, in one line a person; see `_acted`."""
    return [
        "; ".join(
            f"{name} {own[name]}"
            for name, is_acted in zip(population.features, acted, strict=True)
            if name in own and not is_acted
        )
        for own, acted in zip(moved, acts.tolist(), strict=True)
    ]


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


def _kinds(has_recourse: Tensor, log_odds: Tensor, gain: Tensor) -> list[str]:
    """Return which of `OUTCOMES` each person's recommendation has."""
    valid, plausible = is_valid(log_odds).numpy(), is_plausible(gain).numpy()
    named = np.where(valid, np.where(plausible, "joint", "implausible"), "refused")
    return np.where(has_recourse.numpy(), named, "nothing").tolist()


def _why(kind: str, log_odds: float, gain: float, classifier: Classifier) -> str:
    """Return what is missing, in words."""
    rating = _rating(log_odds + classifier.bound)
    if kind == "nothing":
        return f"nothing is recommended; the rating stays at {rating}"
    if kind == "refused":
        return f"the rating is {rating}, below {100 * classifier.threshold:.3g} %"
    if kind == "implausible":
        return f"the log-density falls by {-gain:.2f} nats"
    return ""


def _rating(log_odds: float) -> str:
    """Return the probability of a positive decision, in percent."""
    percent = 100 * torch.tensor(log_odds).sigmoid().item()
    return f"{percent:.2g} %" if percent >= 0.01 else "below 0.01 %"


def _number(value: float) -> str:
    """Return a number in four digits, with all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
