"""The short way: applicants and what they say, in; a table of recommendations, out."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method import icarma
from lib.method.data import to_table
from lib.method.grid import Grid
from lib.method.preferences import Preferences, for_people
from lib.method.problem import (
    PrecomputedSolver,
    Problem,
    Recommendation,
    Solver,
    is_plausible,
    is_valid,
)
from lib.method.report import ACCEPTED, COLUMNS, OUTCOMES, check_names, recommend_frame
from lib.method.samplers import RankingSampler
from lib.search.continuous import Search
from lib.search.sets import contains, sets_to_search

SOLVERS = ("search", "grid", "icarma")
MAX_COMBINATIONS = 100_000  # of whole numbers that are tried one by one
SENTENCE = ("accepted", "plausible", "sentence")  # columns beside those of a report


def recommend(
    problem: Problem,
    applicants: Any,
    answers: Any = None,
    solver: str | Solver = "search",
    n_plans: int = 1,
    progress: Callable[[range], Iterable[int]] | None = None,
) -> pd.DataFrame:
    """Return what applicants can do, in the units of the data, a row a person.

    Equal applicants with equal answers get equal rows.

    Arguments:
        problem: As `Problem.from_frame` makes it.
        applicants: A table with a column for each feature; one person
            may be a dict or a Series.
        answers: What they can do and find hard, as for
            `preferences.for_people`: a text or dict of one person, a
            list of these, a dict or Series of these by name, or a
            frame with a row a person. None: they can do anything, all
            equally easy.
        solver: "search" (over all values; needs a classifier that
            torch can differentiate), "grid" (any classifier), or
            "icarma": networks are trained first, which takes minutes.
            Or a solver that is there already, such as `networks.best`.
        n_plans: Of different features for each person, by the search:
            each is the cheapest that does without some feature of
            every plan before it.
        progress: Wraps the range of batches, or of epochs; None: a
            progress bar.
    Returns: Columns change, follows, cost, accepted and plausible
        (whether the person is, after the action), sentence; and what
        else `report.table` has. Where there are several plans the
        index is (person, plan), and plans that nobody found are left
        out.
    Raises: ValueError: before any work, where applicants lie outside
        of what was seen (`Population.standardise`), answers can't be
        read, or the solver is unknown, needs a gradient, or offers no
        plans.

    Example:
        >>> applicants = problem.population.to_frame(problem.refused("test")[:2])
        >>> answers = dict.fromkeys(problem.population.actionable, "easy")
        >>> answers |= {"income": "can't"}
        >>> frame = recommend(problem, applicants, [answers, answers])
        >>> frame.change.str.contains("income").any(), frame.accepted.all()
        (np.False_, np.True_)
    """
    population = problem.population
    checks.positive_int(n_plans=n_plans)
    check_names(population, (*COLUMNS, *SENTENCE))
    chosen = _solver_named(problem, solver, progress)
    if n_plans > 1 and not isinstance(chosen, Search):
        raise ValueError(
            f"n_plans is {n_plans}, and only the search finds several plans: take "
            'solver="search", or n_plans=1.'
        )
    people = to_table(applicants, population.features)
    checks.not_empty("The table of applicants", people)
    population.check_range(people)
    names = population.actionable
    preferences = for_people(answers, people.index, names, population.categories)

    group = _equal(population.standardise(people), preferences)
    first = np.unique(group, return_index=True)[1]
    frames = _frames(
        problem, chosen, people.iloc[first], preferences[first], n_plans, progress
    )
    index = people.index.rename(people.index.name or "person")
    frames = [frame.iloc[group].set_axis(index) for frame in frames]
    if n_plans == 1:
        return frames[0]
    numbers = range(1, n_plans + 1)
    plans = pd.concat(frames, keys=numbers, names=["plan", index.name])
    plans = plans.iloc[np.arange(len(plans)).reshape(n_plans, -1).T.ravel()].swaplevel()
    return plans[(plans.index.get_level_values("plan") == 1) | plans.cost.notna()]


def _equal(x: Tensor, preferences: Preferences) -> np.ndarray:
    """Return a number for each person, equal where people and answers are, (N,)."""
    cells = [x.double(), preferences.scores]
    if preferences.limits is not None:
        mask = preferences.limits.allowed_categories.flatten(1)
        cells += [*preferences.limits.numbers.values(), mask]
    rows = pd.DataFrame(torch.cat(cells, 1).numpy())
    return rows.groupby([*rows], sort=False, dropna=False).ngroup().to_numpy()


def _solver_named(
    problem: Problem, solver: str | Solver, progress: Callable[..., Any] | None
) -> Solver | None:
    """Return a solver by its name; None where networks have to be trained."""
    if not isinstance(solver, str):
        return solver
    checks.one_of("solver", [solver], SOLVERS)
    if solver == "grid":
        return Grid(problem, progress=progress)
    if solver == "search":
        return Search(problem, progress=progress, max_combinations=MAX_COMBINATIONS)
    problem.check_gradient("iCARMA")
    return None


def _frames(
    problem: Problem,
    solver: Solver | None,
    people: pd.DataFrame,
    preferences: Preferences,
    n_plans: int,
    progress: Callable[[range], Iterable[int]] | None,
) -> list[pd.DataFrame]:
    """Return a table for each plan, a row a person; arguments as for `recommend`.

    Where there is no further plan, the cost is NaN.
    """
    x = problem.population.standardise(people)
    (rows,) = (~problem.accepts(x)).nonzero(as_tuple=True)
    if len(rows) == 0:  # nobody asks a solver
        nothing = PrecomputedSolver(Recommendation(torch.zeros_like(x).bool(), x, x))
        frame = recommend_frame(problem, nothing, people, preferences)
        return [_with_sentences(frame, pd.Series("", people.index))] * n_plans
    if solver is None:
        sampler = RankingSampler(problem.population.actionable)
        solver, _ = icarma.fit(problem, sampler, progress=progress)
    refused, answers = x[rows], preferences[rows]
    looked = pd.Series("", people.index)
    looked.iloc[rows.numpy()] = _how_looked(problem, solver, refused, answers)
    if isinstance(solver, Search):
        stacked = solver.plans(refused, answers, n_plans)
        plans = [stacked[i] for i in range(n_plans)]
    else:
        plans = [solver.recommend(refused, answers)]
    frames: list[pd.DataFrame] = []
    for plan in plans:
        frame = recommend_frame(problem, PrecomputedSolver(plan), people, preferences)
        frame = _with_sentences(frame, looked)
        for other in frames:  # it may be on other features, and read the same
            frame["cost"] = frame.cost.mask(frame.change == other.change)
        frames.append(frame)
    return frames


def _how_looked(
    problem: Problem, solver: Solver, x: Tensor, preferences: Preferences
) -> list[str]:
    """Return how a solver looked, in words, for each refused person (N, D)."""
    if isinstance(solver, Search):
        allowed = problem.interval(x, preferences).is_allowed
        n_sets = [int(contains(one[None], sets_to_search(one)).sum()) for one in allowed]
        return [
            f"The search descended from {solver.n_starts + 2} starts on each of {n} sets "
            "of features, over all values: a thorough look, and no proof."
            for n in n_sets
        ]
    name = "iCARMA" if isinstance(solver, icarma.ICarma) else type(solver).__name__
    text = f"{name} gave its one answer and did not search; the search may find another."
    if isinstance(solver, Grid):
        text = f"The grid tried {solver.n_values} values of a feature, none between them."
    return [text] * len(x)


def _with_sentences(frame: pd.DataFrame, looked: pd.Series) -> pd.DataFrame:
    """Return a table of `recommend_frame` with the columns `SENTENCE`, in reading order.

    Arguments:
        looked: How the solver looked for each person, in words.
    """
    log_odds, gain = (
        torch.tensor(frame[name].to_numpy(dtype=float))
        for name in ("log_odds", "log_density_change")
    )
    is_accepted = is_valid(log_odds).numpy() | (frame.outcome == ACCEPTED)
    plausible = pd.Series(is_plausible(gain).numpy(), frame.index, dtype="boolean")
    texts = (frame.change, frame.follows, frame.outcome, frame.why, looked)
    columns = {
        "accepted": is_accepted,
        "plausible": plausible.where(frame.cost.notna()),
        "sentence": [_sentence(*row) for row in zip(*texts, strict=True)],
    }
    first = ["change", "follows", "cost", *SENTENCE]
    frame = frame.assign(**columns)
    return frame[[*first, *frame.columns.drop(first)]]


def _sentence(change: str, follows: str, outcome: str, why: str, looked: str) -> str:
    """Return in words what is recommended, what follows, and what a "no" is worth."""
    if outcome == ACCEPTED:
        return "Accepted already."
    parts = [f"{change}." if change else "", f"Then follows: {follows}." if follows else ""]
    parts.append(f"{outcome.capitalize()}{f': {why}' if why else ''}.")
    if outcome != OUTCOMES["joint"]:
        parts.append(looked)
    return " ".join(filter(None, parts))
