"""The studies' tables: what solvers recommend in each setting of a table of the paper,
evaluated for each member and person.

`claims.beside_paper` sets them beside the published numbers.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from lib import checks
from lib.method import metrics
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem, Recommendation, Solver
from lib.method.samplers import Sampler
from lib.paper.designs import DISTRIBUTIONS, hard_preferences


def evaluate(
    problem: Problem,
    solver: Solver | ICarma | Mapping[str, Recommendation],
    x: Tensor,
    preferences: Mapping[str, Preferences],
    method: str | None = None,
    discretise: bool = False,
    networks: str = "",
) -> pd.DataFrame:
    """Return how good a solver's recommendations are: a row a setting, member and person.

    Arguments:
        problem: Of the people.
        solver: Any solver, an ensemble too, also pruned; or what it
            has recommended already, for some of the settings. An
            ensemble gets the preferences under its profile.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, with scores of shape
            (N, K).
        method: What the solver is called; None: "iCARMA" for an
            ensemble, "oracle" for what knows the true equations, else
            "search".
        discretise: Evaluate recommendations as people can carry them
            out, see `Problem.discretise`.
        networks: Which set of networks this is, for instance "as
            printed"; of a search, none.
    Returns: Columns of `metrics.per_person`, then setting, method,
        networks, member (its position in the ensemble), seed,
        reported (is it the ensemble's best?) and person. A member has
        N rows in each setting. Of a solver that is no ensemble,
        member and seed are 0, and all rows are reported.
    Raises: ValueError: there is nobody or no setting, x and
        preferences do not fit each other or the problem, or a setting
        is unknown.
    """
    if not preferences:
        raise ValueError(
            "Expected preferences for at least one setting, got none. "
            "designs.hard_preferences draws those of table 1."
        )
    for drawn in preferences.values():
        problem.check(x, drawn)
    ensemble = solver.solver if isinstance(solver, Pruned) else solver
    if not isinstance(ensemble, ICarma):
        ensemble = None
    if method is None:
        is_true = problem.population.truth is not None
        method = "iCARMA" if ensemble else "oracle" if is_true else "search"
    settings = solver if isinstance(solver, Mapping) else preferences
    checks.one_of("setting", settings, tuple(preferences))
    parts = []
    for setting in settings:
        drawn = preferences[setting]
        for member, seed, reported, recommendation in _recommended(
            solver, ensemble, x, drawn, setting
        ):
            if discretise:
                recommendation = problem.discretise(x, recommendation)
            truth = problem.population.truth
            people = metrics.per_person(problem, x, drawn, recommendation, truth=truth)
            people = people.assign(
                setting=setting,
                method=method,
                networks=networks,
                member=member,
                seed=seed,
                reported=reported,
                person=np.arange(len(people)),
            )
            parts.append(people)
    return pd.concat(parts, ignore_index=True)


def _recommended(
    solver: Solver | ICarma | Mapping[str, Recommendation],
    ensemble: ICarma | None,
    x: Tensor,
    preferences: Preferences,
    setting: str,
) -> Iterator[tuple[int, int, bool, Recommendation]]:
    """Yield member, seed, whether it is reported, and what it recommends."""
    if isinstance(solver, Mapping):
        yield 0, 0, True, solver[setting]
    elif ensemble is not None and isinstance(solver, ICarma | Pruned):
        preferences = preferences.with_profile(ensemble.profile)
        recommendation = solver.recommend_each(x, preferences)
        for member, seed in enumerate(ensemble.seeds):
            yield member, seed, member == ensemble.best_index, recommendation[member]
    else:
        yield 0, 0, True, solver.recommend(x, preferences)


def best_member(validation: pd.DataFrame, setting: str = "random") -> int:
    """Return the position of the member to report in its ensemble.

    It has the lowest mean cost plus share that stays refused, among
    validation people, where preferences are drawn as in training.

    Arguments:
        validation: Rows of `evaluate` for validation people, of
            one ensemble.
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
    checks.one_of("setting", [setting], list(validation.setting.unique()))
    rows = validation[validation.setting == setting]
    if rows.duplicated(["member", "person"]).any():
        raise ValueError(
            "A member answers one person more than once, so that its shares would be of "
            "other people than those of the rest. Give the rows of one ensemble."
        )
    cost = rows[rows.valid].groupby("member").cost.mean()
    refused = 1 - rows.groupby("member").valid.mean()
    return int((cost + refused).fillna(np.inf).idxmin())


TIMES_AS_DEAR, TIMES_AS_FEW = 2.0, 0.5  # of the median member


def diverged(training: pd.DataFrame) -> list[int]:
    """Return the positions of the members that diverged, by what training people show.

    A member diverged if its recommendations cost more than twice as
    much as those of the median member, or if it helps less than half
    as many people.

    Arguments:
        training: Rows of `evaluate` for training people, with
            preferences drawn as in training; of one ensemble, with at
            least three members.
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
    is_diverged = is_dear | (joint < TIMES_AS_FEW * joint.median())
    return is_diverged.index[is_diverged].tolist()


class Networks(NamedTuple):
    """Hold the networks of one set that were trained for one profile.

    Arguments:
        solver: The ensemble without the members that diverged, or
            that ensemble pruned. Its `best_index` is the member to
            report.
        profile: That of the ensemble.
        diverged: Positions of those that are not in the ensemble.
    """

    solver: ICarma | Pruned
    profile: Profile
    diverged: list[int]


Sets = Mapping[str, Mapping[str, Networks]]  # by the name of the set, and by profile


def sets(
    problem: Problem,
    printed: Mapping[str, ICarma],
    chosen: Mapping[str, ICarma],
    sampler: Sampler,
    seed: int,
) -> dict[str, dict[str, Networks]]:
    """Return three sets of networks: as printed, as chosen, and the latter pruned.

    Training people show who diverged. Of the others validation people
    choose the one to report, the `best_member`.

    Arguments:
        problem: Of the people.
        printed, chosen: Ensembles by the name of their profile, as
            `icarma.load_by_profile` gives them; without any, the set
            is empty.
        sampler: Of preferences, as in training.
        seed: Of their draws.
    """
    people = [problem.refused(split) for split in ("train", "validation")]
    rng = np.random.default_rng(seed)
    drawn = [sampler.draw(range(len(x)), rng) for x in people]
    by_set: dict[str, dict[str, Networks]] = {}
    for name, ensembles in {"as printed": printed, "as chosen": chosen}.items():
        by_set[name] = {}
        for profile, ensemble in ensembles.items():
            trained, validation = (
                evaluate(problem, ensemble, x, {"drawn": p}, discretise=_is_real(problem))
                for x, p in zip(people, drawn, strict=True)
            )
            odd = diverged(trained) if len(ensemble) > 2 else []
            kept = [i for i in range(len(ensemble)) if i not in odd]
            best = best_member(validation[validation.member.isin(kept)], "drawn")
            sound = ensemble[kept]
            sound.best_index = kept.index(best)
            by_set[name][profile] = Networks(sound, ensemble.profile, odd)
    by_set["pruned"] = {
        profile: networks._replace(solver=Pruned(networks.solver, problem))
        for profile, networks in by_set["as chosen"].items()
    }
    return by_set


def evaluate_sets(
    problem: Problem,
    networks: Sets,
    x: Tensor,
    preferences: Mapping[str, Preferences],
) -> pd.DataFrame:
    """Return the rows of `evaluate` for sets of networks.

    Arguments:
        problem: Of the people.
        networks: As `sets` gives them.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, named as in
            `claims.published`. The networks of their profile are
            asked; a set without that profile has no row.
    Returns: Columns of `evaluate`.
    Raises: ValueError: as `evaluate`; no network has one of the
        profiles.
    """
    parts = [
        evaluate(
            problem,
            of_profile.solver,
            x,
            {setting: drawn},
            discretise=_is_real(problem),
            networks=name,
        )
        for name, by_profile in networks.items()
        for setting, drawn in preferences.items()
        for of_profile in by_profile.values()
        if of_profile.profile == drawn.profile
    ]
    if not parts:
        raise ValueError(
            "No network has a profile of these preferences. Give them one, "
            "preferences.with_profile(readings.profile(name))."
        )
    return pd.concat(parts, ignore_index=True)


def _is_real(problem: Problem) -> bool:
    """Return whether people act in units of the data: whole numbers, within a range."""
    return problem.population.truth is None


def ablation(
    problem: Problem,
    x: Tensor,
    seed: int,
    n_values: int = 25,
    progress: Callable[[range], Iterable[int]] | None = None,
    half_width: float | None = None,
) -> pd.DataFrame:
    """Return the rows of `evaluate` for table 6, of a search on a grid.

    With one or two features, a plausible action is demanded, or is
    not.

    Arguments:
        problem: Of the people.
        x: Refused people, with shape (N, D).
        seed: Preferences are drawn with the next one.
        n_values, progress, half_width: As for `Grid`.
    Returns: Columns of `evaluate`.
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
                half_width=half_width,
            )
            parts.append(evaluate(problem, solver, x, named))
    return pd.concat(parts, ignore_index=True)
