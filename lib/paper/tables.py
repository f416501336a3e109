"""The studies' tables: a solver is asked in every setting of a table of the paper, and what
it recommends is judged, a row for each setting, member and person.

`claims.beside_paper` sets them beside the published numbers.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from lib.base import checks
from lib.method import metrics
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem, Recommendation, Solver
from lib.method.pruned import Pruned
from lib.method.samplers import Sampler
from lib.paper.designs import DISTRIBUTIONS, hard_preferences
from lib.paper.stacks import by_profile


def judged(
    problem: Problem,
    solver: Solver | Mapping[str, Recommendation],
    x: Tensor,
    preferences: Mapping[str, Preferences],
    chosen: int | None = None,
    method: str | None = None,
    carried_out: bool = False,
    networks: str = "",
) -> pd.DataFrame:
    """Return what a solver recommends, judged: a row a setting, member and person.

    Arguments:
        problem: Of the people.
        solver: Any solver, a stack of networks too, also pruned; or
            what it has recommended already, for some of the settings.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, with scores of shape
            (N, K).
        chosen: Id of the member of a stack to report, see
            `best_member`; left out: none is reported.
        method: What the solver is called; left out: "iCARMA" for a
            stack, "oracle" for what knows the true equations, else
            "search".
        carried_out: Judge recommendations as people can follow
            them, see `Problem.carried_out`.
        networks: Which set of networks answers, for instance "as
            printed"; of a search, none.
    Returns: Columns of `metrics.per_person`, then setting, method,
        networks, member (its id), seed, reported (is it the chosen
        one?) and person. A member has N rows in each setting, whichever seed
        it shares with others. Of a solver that is no stack, member
        and seed are 0, and all rows are reported.
    Raises: ValueError: there is nobody or no setting, x and
        preferences do not fit each other or the problem, a setting is
        unknown, or the stack has no such member.
    """
    if not preferences:
        raise ValueError(
            "Expected preferences for at least one setting, got none. "
            "designs.hard_preferences draws those of table 1."
        )
    for own in preferences.values():
        problem.check(x, own)
    members = [(0, 0, True)]
    stack = solver.solver if isinstance(solver, Pruned) else solver
    if isinstance(stack, ICarma):
        if chosen is not None:
            stack.position(chosen)
        each = zip(stack.ids, stack.seeds, strict=True)
        members = [(member, seed, member == chosen) for member, seed in each]
        method = method or "iCARMA"
    method = method or ("search" if problem.population.truth is None else "oracle")
    settings = solver if isinstance(solver, Mapping) else preferences
    checks.known("setting", settings, tuple(preferences))
    parts = []
    for setting in settings:
        own = preferences[setting]
        found = solver[setting] if isinstance(solver, Mapping) else solver.recommend(x, own)
        if carried_out:
            found = problem.carried_out(x, found)
        for i, (member, seed, reported) in enumerate(members):
            answer = found[i] if found.values.ndim == 3 else found
            truth = problem.population.truth
            people = metrics.per_person(problem, x, own, answer, truth=truth)
            of_whom = {"member": member, "seed": seed, "reported": reported}
            names = {"setting": setting, "method": method, "networks": networks}
            people = people.assign(**names, **of_whom)
            parts.append(people.assign(person=np.arange(len(people))))
    return pd.concat(parts, ignore_index=True)


def best_member(validation: pd.DataFrame, setting: str = "random") -> int:
    """Return the id of the member to report.

    It has the lowest mean cost plus share that stays refused, among
    validation people, where preferences are drawn as in training.

    Arguments:
        validation: Rows of `judged` for validation people, of
            one method.
        setting: In which preferences are drawn as in training.
    Raises: ValueError: the setting is unknown, or a member answers
        one person more than once.
    Source: appendix C.2.4 of arXiv:2604.08030, "balancing the recourse
        cost and validity"; the sum is that of CARMA's code.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1], "person": [0, 1, 0, 1]})
        >>> rows = rows.assign(setting="random", valid=[True, True, True, False])
        >>> best_member(rows.assign(cost=[0.2, 0.3, 0.1, 0.0]))
        0
    """
    checks.known("setting", [setting], list(validation.setting.unique()))
    rows = validation[validation.setting == setting]
    if rows.duplicated(["member", "person"]).any():
        raise ValueError(
            "A member answers one person more than once, so that its shares would be of "
            "other people than those of the rest. Give the rows of one stack and method."
        )
    cost = rows[rows.valid].groupby("member").cost.mean()
    refused = 1 - rows.groupby("member").valid.mean()
    return int((cost + refused).fillna(np.inf).idxmin())


TIMES_AS_DEAR, TIMES_AS_FEW = 2.0, 0.5  # of the median member


def diverged(training: pd.DataFrame) -> list[int]:
    """Return the ids of the members that diverged, by what training people show.

    A member diverged if its recommendations cost more than twice as
    much as those of the median member, or if it helps less than half
    as many people.

    Arguments:
        training: Rows of `judged` for training people, with
            preferences drawn as in training; of the members of one
            profile, at least three.
    Raises: ValueError: there are fewer members, so that there is no
        telling which is the odd one.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1, 2, 2], "valid": True})
        >>> rows = rows.assign(cost=[0.2, 0.2, 0.2, 0.1, 0.9, 1.1], joint=True)
        >>> diverged(rows)
        [2]
    """
    by_member = training.groupby("member")
    if by_member.ngroups < 3:
        raise ValueError(
            f"Expected rows of three members or more, got {by_member.ngroups}: of fewer "
            "there is no telling which one diverged."
        )
    cost = training[training.valid].groupby("member").cost.mean()
    joint = by_member.joint.mean()
    is_dear = (cost > TIMES_AS_DEAR * cost.median()).reindex(joint.index, fill_value=True)
    found = is_dear | (joint < TIMES_AS_FEW * joint.median())
    return found.index[found].tolist()


class Networks(NamedTuple):
    """Hold the networks of one set that were trained for one profile.

    Arguments:
        solver: A stack without the members that diverged, or that
            stack pruned.
        reported: Id of the member to report.
        profile: Of its members' weights.
        diverged: Ids of those that are not in the stack.
    """

    solver: ICarma | Pruned
    reported: int
    profile: Profile
    diverged: list[int]


Sets = Mapping[str, Mapping[str, Networks]]  # by the name of the set, and by profile


def sets(
    problem: Problem,
    printed: Sequence[ICarma],
    chosen: Sequence[ICarma],
    sampler: Sampler,
    seed: int,
) -> dict[str, dict[str, Networks]]:
    """Return three sets of networks: as printed, as chosen, and the latter pruned.

    Training people say who diverged. Of the others validation people
    choose the one to report, the `best_member`.

    Arguments:
        problem: Of the people.
        printed, chosen: Stacks with members of one profile or more,
            each profile in one of them; without any, the set is empty.
        sampler: Of preferences, as in training.
        seed: Of their draws.
    """
    people = [problem.refused(split) for split in ("train", "validation")]
    rng = np.random.default_rng(seed)
    drawn = [sampler.draw(range(len(x)), rng) for x in people]
    found: dict[str, dict[str, Networks]] = {}
    for name, every in {"as printed": printed, "as chosen": chosen}.items():
        found[name] = {}
        for profile, stack in by_profile(*every).items():
            trained, validation = (
                judged(problem, stack, x, {"drawn": own}, carried_out=_in_units(problem))
                for x, own in zip(people, drawn, strict=True)
            )
            odd = diverged(trained) if stack.n_members > 2 else []
            kept = [i for i, own in enumerate(stack.ids) if own not in odd]
            sound = validation[~validation.member.isin(odd)]
            reported, own = best_member(sound, "drawn"), stack.settings[0].profile
            found[name][profile] = Networks(stack.select(kept), reported, own, odd)
    found["pruned"] = {
        profile: own._replace(solver=Pruned(own.solver, problem, own.profile))
        for profile, own in found["as chosen"].items()
    }
    return found


def answered(
    problem: Problem,
    networks: Sets,
    x: Tensor,
    asked: Mapping[str, tuple[Preferences, str]],
) -> pd.DataFrame:
    """Return the rows of `judged` for sets of networks.

    Arguments:
        problem: Of the people.
        networks: As `sets` gives them.
        x: Refused people, with shape (N, D).
        asked: For each setting, named as in `claims.published`, their
            preferences and the profile that is asked. A set without
            the profile has no row.
    Returns: Columns of `judged`.
    Raises: ValueError: as `judged`.
    """
    return pd.concat(
        [
            judged(
                problem,
                of[profile].solver,
                x,
                {setting: own},
                of[profile].reported,
                carried_out=_in_units(problem),
                networks=name,
            )
            for name, of in networks.items()
            for setting, (own, profile) in asked.items()
            if profile in of
        ],
        ignore_index=True,
    )


def _in_units(problem: Problem) -> bool:
    """Return whether people act in units of their own: whole numbers, within a range."""
    return problem.population.truth is None


def ablation(
    problem: Problem,
    x: Tensor,
    seed: int,
    n_values: int = 25,
    progress: Callable[[range], Iterable[int]] = iter,
    centred: float | None = None,
) -> pd.DataFrame:
    """Return the rows of `judged` for table 6, of a search on a grid.

    With one or two features, a plausible action is demanded, or is
    not.

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        seed: Preferences are drawn with the next one.
        n_values, progress, centred: As for `Grid`.
    Returns: Columns of `judged`.
    Raises: ValueError: there is nobody.
    """
    parts = []
    for name, distribution in DISTRIBUTIONS.items():
        preferences = hard_preferences(problem, len(x), seed + 1, distribution)
        for demanded, slack in (("No", math.inf), ("Yes", 0.0)):
            named = {f"{name}, {k}, {demanded}": preferences[k] for k in ("1", "2")}
            solver = Grid(
                problem,
                n_values=n_values,
                slack=slack,
                progress=progress,
                centred=centred,
            )
            parts.append(judged(problem, solver, x, named))
    return pd.concat(parts, ignore_index=True)
