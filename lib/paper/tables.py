"""The studies' tables: a solver is asked in every setting of a table of the paper, and what
it recommends is judged, a row for each setting, member and person.

`claims.beside_paper` sets them beside the published numbers.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd
from torch import Tensor

from lib.base import checks
from lib.method import grid, metrics
from lib.method.icarma import ICarma
from lib.method.preferences import CONSTANT, GAMMA, Preferences, Profile
from lib.method.problem import Problem, Recommendation
from lib.paper.designs import (
    DISTRIBUTIONS,
    TRANSFER,
    hard_preferences,
    soft_preferences,
    transfer_preferences,
)
from lib.paper.stacks import MIXED


def recommend(
    problem: Problem,
    stack: ICarma,
    x: Tensor,
    preferences: Mapping[str, Preferences],
    chosen: int | None = None,
    method: str = "iCARMA",
    carried_out: bool = False,
) -> pd.DataFrame:
    """Return every member's recommendations, judged: a row a setting, member and person.

    Arguments:
        problem: Of the people.
        stack: The M members.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, with scores of shape
            (N, K).
        chosen: Id of the member to report, see `best_member`; left
            out: none is reported.
        method: What the stack is called.
        carried_out: Judge recommendations as people can follow
            them, see `Problem.carried_out`.
    Returns: Columns of `metrics.per_person`, then setting, method,
        member (its id), seed, reported (is it the chosen one?) and
        person. A member has N rows in each setting, whichever seed
        it shares with others.
    Raises: ValueError: there is nobody or no setting, x and
        preferences do not fit each other or the problem, or the
        stack has no such member.
    Example:
        >>> from lib.base.files import MODELS
        >>> from lib.method import loan
        >>> problem = loan.problem()
        >>> stack = ICarma.load(MODELS, "loan_icarma_hard", problem)
        >>> x = problem.refused("test")[:50]
        >>> preferences = hard_preferences(problem, len(x), seed=1)
        >>> people = recommend(problem, stack, x, preferences, chosen=stack.ids[1])
        >>> people.groupby(["setting", "member"]).size().unique()
        array([50])
        >>> people[people.reported].seed.unique()
        array([2000])
    """
    _check_asked(problem, x, preferences)
    if chosen is not None:
        stack.position(chosen)
    parts = []
    for setting, own in preferences.items():
        recommendations = stack.recommend(x, own)
        if carried_out:
            recommendations = problem.carried_out(x, recommendations)
        for i, (member, seed) in enumerate(zip(stack.ids, stack.seeds, strict=True)):
            people = _judged(problem, x, own, recommendations[i], setting, method)
            parts.append(_of(people, member, seed, member == chosen))
    return pd.concat(parts, ignore_index=True)


def search(
    problem: Problem,
    x: Tensor,
    preferences: Mapping[str, Preferences],
    profile: Profile = CONSTANT,
    n_values: int = 25,
    slack: float = 0.0,
    progress: Callable[[range], Iterable[int]] = iter,
    centred: float | None = None,
) -> pd.DataFrame:
    """Return what the grid search finds, judged: a row for each setting and person.

    It searches the true world; where no equations are known it goes
    through the flow.

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, with scores of shape
            (N, K).
        profile: Of the weights in the cost that is made least.
        n_values: Grid values a feature.
        slack: Nats of log-density that may be given up; infinite: no
            demand for plausibility.
        progress: As for `grid.search`.
        centred: Reach of a grid around each person's own values, as
            for `grid.search`; None: the grid is even.
    Returns: Columns as of `recommend`; member and seed are 0, and
        all rows are reported.
    Raises: ValueError: there is nobody or no setting, or x and
        preferences do not fit each other or the problem.
    Example:
        >>> from lib.method import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:5]
        >>> preferences = hard_preferences(problem, len(x), seed=1)
        >>> people = search(problem, x, {"1": preferences["1"]}, n_values=5)
        >>> (people.n_acted <= 1).all() and people[people.valid].plausible.all()
        np.True_
        >>> people[["method", "member", "reported"]].drop_duplicates()
           method  member  reported
        0  oracle       0      True
    """
    _check_asked(problem, x, preferences)
    how = (profile, n_values, slack, progress, centred)
    answers = {
        setting: grid.search(problem, problem.world, x, own, *how)
        for setting, own in preferences.items()
    }
    return searched(problem, x, preferences, answers)


def searched(
    problem: Problem,
    x: Tensor,
    preferences: Mapping[str, Preferences],
    answers: Mapping[str, Recommendation],
) -> pd.DataFrame:
    """Return what an exact search has found, judged: a row for each setting and person.

    It is called "oracle" where the true equations are known, else
    "search".

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, with scores of shape
            (N, K).
        answers: What was found for them, for each setting.
    Returns: Columns as of `recommend`; member and seed are 0, and
        all rows are reported.
    Raises: ValueError: there is nobody or no setting, a setting is
        unknown, or x and preferences do not fit each other or the
        problem.
    Example:
        >>> from lib.method import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:5]
        >>> everything = {"all (4)": hard_preferences(problem, 5, seed=1)["all (4)"]}
        >>> nothing = Recommendation(x > x, x, x)
        >>> people = searched(problem, x, everything, {"all (4)": nothing})
        >>> people[["setting", "method", "valid"]].drop_duplicates()
           setting  method  valid
        0  all (4)  oracle  False
    """
    _check_asked(problem, x, preferences)
    checks.known("setting", answers, tuple(preferences))
    method = "search" if problem.population.truth is None else "oracle"
    parts = []
    for setting, found in answers.items():
        people = _judged(problem, x, preferences[setting], found, setting, method)
        parts.append(_of(people, member=0, seed=0, reported=True))
    return pd.concat(parts, ignore_index=True)


def _check_asked(
    problem: Problem, x: Tensor, preferences: Mapping[str, Preferences]
) -> None:
    """Raise ValueError unless there are people, settings, and preferences that fit."""
    if not preferences:
        raise ValueError(
            "Expected preferences for at least one setting, got none. "
            "designs.hard_preferences draws those of table 1."
        )
    for own in preferences.values():
        problem.check(x, own)


def _judged(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    setting: str,
    method: str,
) -> pd.DataFrame:
    """Return `metrics.per_person` of one recommendation, with its setting and method."""
    people = metrics.per_person(
        problem, x, preferences, recommendation, truth=problem.population.truth
    )
    return people.assign(setting=setting, method=method)


def _of(people: pd.DataFrame, member: int, seed: int, reported: bool) -> pd.DataFrame:
    """Return rows of `_judged` with the columns that say whose they are."""
    return people.assign(
        member=member, seed=seed, reported=reported, person=np.arange(len(people))
    )


def best_member(validation: pd.DataFrame, setting: str = "random") -> int:
    """Return the id of the member to report.

    It is the one with the highest joint share among validation
    people, where preferences are drawn as in training.

    Arguments:
        validation: Rows of `recommend` for validation people, of
            one method.
        setting: In which preferences are drawn as in training.
    Raises: ValueError: the setting is unknown, or a member answers
        one person more than once.
    Source: section 5.1 of arXiv:2604.08030 reports the model with the
        best validation result; that this is the joint share is our
        reading.
    Example:
        >>> columns = {"setting": "random", "person": range(4), "valid": True}
        >>> rows = [
        ...     pd.DataFrame(columns | {"member": i, "joint": [True, i > 0, i > 1, False]})
        ...     for i in range(3)
        ... ]
        >>> best_member(pd.concat(rows))
        2
    """
    checks.known("setting", [setting], list(validation.setting.unique()))
    rows = validation[validation.setting == setting]
    if rows.duplicated(["member", "person"]).any():
        raise ValueError(
            "A member answers one person more than once, so that its shares would be of "
            "other people than those of the rest. Give the rows of one stack and method."
        )
    return int(rows.groupby("member").joint.mean().idxmax())


def soft(
    problem: Problem,
    members: Mapping[str, ICarma],
    elicitation: str,
    x: Tensor,
    x_validation: Tensor,
    seed: int,
) -> pd.DataFrame:
    """Return the rows of `recommend` for table 2 (rankings) or 3 (scores).

    Each profile reports its own `best_member`.

    Arguments:
        problem: Of the people.
        members: Of each profile, as `stacks.by_profile` gives them.
        elicitation: "ranking" for table 2, "score" for table 3.
        x: Refused people, with shape (N, D).
        x_validation: Refused people to choose members by, with
            shape (V, D).
        seed: Of the preferences of x_validation; those of x have
            the next one.
    Returns: Columns of `recommend`, and profile. Settings are named
        as in `claims.published`, for instance "soft, linear".
    Raises: ValueError: there is nobody, or a profile or the
        elicitation is unknown.
    Example:
        >>> from lib.base.files import MODELS
        >>> from lib.method import loan
        >>> from lib.paper.stacks import by_profile
        >>> problem = loan.problem()
        >>> members = by_profile(ICarma.load(MODELS, "loan_icarma_ranking", problem))
        >>> x, x_validation = (problem.refused(s)[:20] for s in ("test", "validation"))
        >>> people = soft(problem, members, "ranking", x, x_validation, seed=0)
        >>> people[people.reported].groupby("profile", sort=False).member.nunique()
        profile
        concave    1
        linear     1
        convex     1
        Name: member, dtype: int64
    """
    checks.known("profile", members, tuple(GAMMA))
    preferences = soft_preferences(problem, elicitation, len(x), seed + 1)
    drawn = soft_preferences(problem, elicitation, len(x_validation), seed)
    on_validation = {MIXED: drawn[MIXED]}
    parts = []
    for profile, stack in members.items():
        validation = recommend(problem, stack, x_validation, on_validation)
        chosen = best_member(validation, MIXED)
        named = {f"{setting}, {profile}": own for setting, own in preferences.items()}
        people = recommend(problem, stack, x, named, chosen)
        parts.append(people.assign(profile=profile))
    return pd.concat(parts, ignore_index=True)


def ablation(
    problem: Problem,
    x: Tensor,
    seed: int,
    n_values: int = 25,
    progress: Callable[[range], Iterable[int]] = iter,
    centred: float | None = None,
) -> pd.DataFrame:
    """Return the rows of `search` for table 6.

    With one or two features, a plausible action is demanded, or is
    not.

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        seed: As for `soft`: preferences are drawn with the next
            one.
        n_values: Grid values a feature.
        progress: As for `grid.search`.
        centred: As for `search`.
    Returns: Columns of `search`.
    Raises: ValueError: there is nobody.
    Example:
        >>> from lib.method import loan
        >>> problem = loan.problem()
        >>> people = ablation(problem, problem.refused("test")[:4], seed=0, n_values=3)
        >>> people.setting.unique()[:4].tolist()  # doctest: +NORMALIZE_WHITESPACE
        ['uniform random, 1, No', 'uniform random, 2, No',
         'uniform random, 1, Yes', 'uniform random, 2, Yes']
    """
    parts = []
    for name, distribution in DISTRIBUTIONS.items():
        preferences = hard_preferences(problem, len(x), seed + 1, distribution)
        for demanded, slack in (("No", math.inf), ("Yes", 0.0)):
            named = {f"{name}, {k}, {demanded}": preferences[k] for k in ("1", "2")}
            how = (CONSTANT, n_values, slack, progress, centred)
            parts.append(search(problem, x, named, *how))
    return pd.concat(parts, ignore_index=True)


def transfer(
    problem: Problem,
    members: Mapping[str, ICarma],
    x: Tensor,
    x_validation: Tensor,
    seed: int,
    carried_out: bool = True,
) -> pd.DataFrame:
    """Return the rows of `recommend` for Give Me Some Credit, tables 1 and 2.

    Each profile reports its own `best_member`, judged by
    recommendations that are carried out, where preferences are
    drawn as in training.

    Arguments:
        problem: Of the people.
        members: Of each profile, the constant and the linear among
            them, as `stacks.by_profile` gives them.
        x: Refused people, with shape (N, D).
        x_validation: Refused people to choose members by, with
            shape (V, D).
        seed: Of the preferences of x_validation; those of x have
            the next one.
        carried_out: As for `recommend`.
    Returns: Columns of `recommend`, number (of the table) and
        profile.
    Raises: ValueError: there is nobody, or a profile lacks members.
    Example:
        >>> from lib.base.files import MODELS
        >>> from lib.method import loan
        >>> from lib.paper.stacks import by_profile
        >>> problem = loan.problem()  # any problem with four actionable features will do
        >>> names = ("loan_icarma_hard", "loan_icarma_ranking")
        >>> members = by_profile(*(ICarma.load(MODELS, name, problem) for name in names))
        >>> x, x_validation = (problem.refused(s)[:20] for s in ("test", "validation"))
        >>> people = transfer(problem, members, x, x_validation, seed=0)
        >>> people.groupby("number").setting.unique()[2].tolist()
        ['soft, linear', 'hard (3) + soft, constant', 'hard (3) + soft, linear']
    """
    preferences = transfer_preferences(problem, len(x), seed + 1)
    drawn = transfer_preferences(problem, len(x_validation), seed)
    on_validation = {"random": drawn["random"]}
    chosen = {}
    for profile in ("constant", "linear"):
        checks.known("profile", [profile], tuple(members))
        validation = recommend(
            problem, members[profile], x_validation, on_validation, carried_out=True
        )
        chosen[profile] = best_member(validation)
    parts = []
    for number, settings in TRANSFER.items():
        for setting, (_, profile) in settings.items():
            people = recommend(
                problem,
                members[profile],
                x,
                {setting: preferences[setting]},
                chosen[profile],
                carried_out=carried_out,
            )
            parts.append(people.assign(number=number, profile=profile))
    return pd.concat(parts, ignore_index=True)
