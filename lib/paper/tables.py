"""The studies' tables: what the paper prints, and ours beside it.

`evaluate` asks solvers in each setting of a table, and gives a row a
member and person. `published` reads what the paper prints, and
`beside_paper` sets our means beside it, with standard errors.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from lib import checks, io
from lib.io import PUBLISHED
from lib.method import metrics
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.metrics import Pruned
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem, Recommendation, Solver
from lib.method.samplers import Sampler
from lib.paper.designs import BIASES, CONSTRAINTS, DISTRIBUTIONS, hard_preferences
from lib.paper.estimates import STANDARD_ERRORS, by_person, ratio
from lib.paper.readings import POWERS
from lib.paper.stacks import MIXED, SOFT

NUMBERS = (1, 2, 3, 5, 6)  # of the paper's tables with results
DATASETS = ("Loan", "GMSC")
SEARCHES = ("oracle", "search")  # methods without networks, and so without seeds

# of which column of `metrics.per_person` each metric is the mean, and over which people;
# None: over all. `metrics.summarise` says why.
MEAN_OF: dict[str, tuple[str, str | None]] = {
    "validity": ("valid", None),
    "plausibility": ("plausible", "has_recourse"),
    "joint": ("joint", None),
    "hap": ("hard_action", "has_recourse"),
    "cost_mean": ("cost", "valid"),
    "n_acted": ("n_acted", "has_recourse"),
    "cost_l2": ("cost_l2", "valid"),
    "cost_l1": ("cost_l1", "valid"),
    "log_density": ("log_p_cf", "has_recourse"),
    "unlikely": ("unlikely", "has_recourse"),  # see `sums`
}
METRICS = ("validity", "plausibility", "joint", "hap", "cost_mean", "n_acted")
RARE = 0.05  # share of today's profiles that are rarer than the rest

# how far one network of the paper lies from the mean of its kind, as a standard deviation:
# that of the three numbers that it prints for one quantity
ONE_NETWORK = 0.011
CLOSE = 0.05  # cells that differ by no more count as near

# the cells that `workflow/calibrate.py` used, and those that repeat them, by table,
# method and metric; params/calibration.yaml says which are which
DECLARED: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("1", "oracle", "validity"): tuple(CONSTRAINTS),
    ("2", "oracle", "validity"): tuple(f"{s}, {p}" for s in (SOFT, MIXED) for p in POWERS),
    ("2", "oracle", "hap"): tuple(f"{SOFT}, {p}" for p in POWERS),
    ("2", "iCARMA", "hap"): (f"{SOFT}, linear",),
    ("3", "iCARMA", "hap"): (f"{SOFT}, linear",),
    ("5", "oracle", "validity"): tuple(f"{bias}, all (4)" for bias in BIASES),
    ("6", "oracle", "validity"): tuple(
        f"uniform random, {k}, {demand}" for k in (1, 2) for demand in ("No", "Yes")
    ),
    ("6", "oracle", "plausibility"): ("uniform random, 1, No", "uniform random, 2, No"),
}
for _metric in ("validity", "plausibility"):
    DECLARED["1", "iCARMA", _metric] = ("random",)
    DECLARED["2", "iCARMA", _metric] = (f"{SOFT}, linear", f"{MIXED}, constant")
    DECLARED["3", "iCARMA", _metric] = (f"{SOFT}, linear",)


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
    Raises: ValueError: as the solver.
    """
    ensemble = solver.solver if isinstance(solver, Pruned) else solver
    seeds, best = [0], 0
    if isinstance(ensemble, ICarma):
        seeds, best = ensemble.seeds, ensemble.best_index
    truth = problem.population.truth
    if method is None:
        others = "search" if truth is None else "oracle"
        method = "iCARMA" if isinstance(ensemble, ICarma) else others
    tables = []
    for setting in solver if isinstance(solver, Mapping) else preferences:
        drawn = preferences[setting]
        if isinstance(solver, Mapping):
            answers = [solver[setting]]
        elif isinstance(ensemble, ICarma) and isinstance(solver, ICarma | Pruned):
            each = solver.recommend_each(x, drawn.with_profile(ensemble.profile))
            answers = [each[member] for member in range(len(seeds))]
        else:
            answers = [solver.recommend(x, drawn)]
        for member, recommendation in enumerate(answers):
            if discretise:
                recommendation = problem.discretise(x, recommendation)
            people = metrics.per_person(problem, x, drawn, recommendation, truth=truth)
            people = people.assign(
                setting=setting,
                method=method,
                networks=networks,
                member=member,
                seed=seeds[member],
                reported=member == best,
                person=np.arange(len(people)),
            )
            tables.append(people)
    return pd.concat(tables, ignore_index=True)


def best_member(validation: pd.DataFrame, setting: str = "random") -> int:
    """Return the position of the member to report in its ensemble.

    It has the lowest mean cost plus share that stays refused, among
    validation people, where preferences are drawn as in training.

    Arguments:
        validation: Rows of `evaluate` for validation people, of
            one ensemble.
        setting: In which preferences are drawn as in training.
    Source: appendix C.2.4 of arXiv:2604.08030, "balancing the recourse
        cost and validity"; the sum is that of CARMA's code.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1], "person": [0, 1, 0, 1]})
        >>> rows = rows.assign(setting="random", valid=[True, True, True, False])
        >>> best_member(rows.assign(cost=[0.2, 0.3, 0.1, 0.0]))
        0
    """
    rows = validation[validation.setting == setting]
    cost = rows[rows.valid].groupby("member").cost.mean()
    refused = 1 - rows.groupby("member").valid.mean()
    return int((cost + refused).fillna(np.inf).idxmin())


def diverged(training: pd.DataFrame) -> list[int]:
    """Return the positions of the members that diverged, by what training people show.

    A member diverged if its recommendations cost more than twice as
    much as those of the median member, or if it helps less than half
    as many people.

    Arguments:
        training: Rows of `evaluate` for training people, with
            preferences drawn as in training; of one ensemble, with at
            least three members.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1, 2, 2], "valid": True})
        >>> rows = rows.assign(cost=[0.2, 0.2, 0.2, 0.1, 0.9, 1.1], joint=True)
        >>> diverged(rows)
        [2]
    """
    by_member = training.groupby("member")
    cost = training[training.valid].groupby("member").cost.mean()
    joint = by_member.joint.mean()
    is_dear = (cost > 2 * cost.median()).reindex(joint.index, fill_value=True)
    is_diverged = is_dear | (joint < joint.median() / 2)
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


def sets(
    problem: Problem,
    printed: Mapping[str, ICarma],
    chosen: Mapping[str, ICarma],
    sampler: Sampler,
    seed: int,
) -> dict[str, dict[str, Networks]]:
    """Return three sets of networks: as printed, as chosen, and the latter pruned.

    Training people show who diverged. The member to report is the
    ensemble's best, as its fit chose it on validation people; if that
    one diverged, it is the `best_member` of the others.

    Arguments:
        problem: Of the people.
        printed, chosen: Ensembles by the name of their profile, as
            `icarma.load_by_profile` gives them; without any, the set
            is empty.
        sampler: Of preferences, as in training.
        seed: Of their draws.
    """
    is_real = problem.population.truth is None  # people act in units of the data
    rng = np.random.default_rng(seed)
    training, validation = (problem.refused(split) for split in ("train", "validation"))
    in_training = {"drawn": sampler.draw(range(len(training)), rng)}
    in_validation = {"drawn": sampler.draw(range(len(validation)), rng)}
    by_set: dict[str, dict[str, Networks]] = {"as printed": {}, "as chosen": {}}
    for name, ensembles in zip(by_set, (printed, chosen), strict=True):
        for profile, ensemble in ensembles.items():
            rows = evaluate(problem, ensemble, training, in_training, discretise=is_real)
            odd = diverged(rows) if len(ensemble) > 2 else []
            sound = ensemble[[i for i in range(len(ensemble)) if i not in odd]]
            if ensemble.best_index in odd:
                rows = evaluate(
                    problem, sound, validation, in_validation, discretise=is_real
                )
                sound.best_index = best_member(rows, "drawn")
            by_set[name][profile] = Networks(sound, ensemble.profile, odd)
    by_set["pruned"] = {
        profile: networks._replace(solver=Pruned(networks.solver, problem))
        for profile, networks in by_set["as chosen"].items()
    }
    return by_set


def evaluate_sets(
    problem: Problem,
    networks: Mapping[str, Mapping[str, Networks]],
    x: Tensor,
    preferences: Mapping[str, Preferences],
) -> pd.DataFrame:
    """Return the rows of `evaluate` for sets of networks.

    Arguments:
        problem: Of the people.
        networks: By the name of the set, and by profile, as `sets`
            gives them.
        x: Refused people, with shape (N, D).
        preferences: Theirs, for each setting, named as in
            `published`. The networks of their profile are
            asked; a set without that profile has no row.
    Returns: Columns of `evaluate`.
    """
    tables = [
        evaluate(
            problem,
            of_profile.solver,
            x,
            {setting: drawn},
            discretise=problem.population.truth is None,
            networks=name,
        )
        for name, by_profile in networks.items()
        for setting, drawn in preferences.items()
        for of_profile in by_profile.values()
        if of_profile.profile == drawn.profile
    ]
    return pd.concat(tables, ignore_index=True)


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
    """
    tables = []
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
            tables.append(evaluate(problem, solver, x, named))
    return pd.concat(tables, ignore_index=True)


def published(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return the rows of one of the paper's tables, without the lost columns.

    Arguments:
        number: Of the table, one of `NUMBERS`.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting and method. The column "setting"
        joins what tells the rows of one method apart, for instance
        "soft, linear".
    Raises: ValueError: the table or the data set is unknown.
    Source: data/published/, from arXiv:2604.08030.
    """
    checks.one_of("table of the paper", [number], NUMBERS)
    checks.one_of("data set", [dataset], DATASETS)
    path = PUBLISHED / f"icarma_table{number}.csv"
    rows = io.read_csv(path, dtype={"n_individually_actionable": str})
    rows = rows[rows.dataset == dataset]
    rows = rows.drop(columns=["table", "dataset", "cost_mean", "cost_sd", "note"])
    labels = rows.loc[:, :"method"].columns.drop(["method", "elicitation"], errors="ignore")
    rows.insert(0, "setting", rows[labels].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)


def sums(people: pd.DataFrame, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what a metric is the ratio of: two arrays with shape (M, N), for M members.

    `estimates.ratio` and `contrast` take them. "unlikely" is the
    share of recommendations that lead below the lowest twentieth of
    the log-densities that people have today [R].

    Arguments:
        people: Rows of one setting and method, as `evaluate` gives them.
        metric: A key of `MEAN_OF`.
    Returns: Numerator and denominator; zero, in both, for people who
        do not count.
    Example:
        Nothing is recommended to the second person, who does not
        count:

        >>> rows = pd.DataFrame({"member": 0, "person": [0, 1]})
        >>> rows = rows.assign(hard_action=[True, False], has_recourse=[True, False])
        >>> numerator, denominator = sums(rows, "hap")
        >>> numerator.tolist(), denominator.tolist()
        ([[1.0, 0.0]], [[1.0, 0.0]])
    """
    column, base = MEAN_OF[metric]
    if metric == "unlikely":
        people = people.assign(unlikely=people.log_p_cf < people.log_p.quantile(RARE))
    values = by_person(people, column)
    counted = np.ones_like(values) if base is None else by_person(people, base)
    return values * counted, counted


def beside_paper(people: pd.DataFrame, number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return one of the paper's tables with ours beside it, both ways and with errors.

    What is compared is the *mean over seeds*: it says what the method
    gives, whichever network one happens to have. The member that
    validation chose stands beside it, as the paper reports one model.
    A difference in either direction counts, by the same rule for
    every method, setting and metric:

    agrees: |mean - paper| <= 2 standard errors, where the squares
    of three standard errors are added up [R]:

    - se_people, of ours over people (`estimates.ratio`);
    - se_networks, of ours over seeds: standard deviation of the M
      members over the root of M; empty for a search;
    - se_paper, of the paper's number. The paper gives none. It asked
      another draw of people than ours, so ours is the binomial one
      for as many people as we ask; where the number is of one
      network, with `ONE_NETWORK`.

    Arguments:
        people: Rows as `evaluate` gives them: of networks, of
            which one member a set is reported, and of a search.
            Settings are named as in `published`.
        number: Of the table.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting, method, set of networks and
        metric, with the columns

        - table, setting, method, networks, metric;
        - calibration: whether the cell, or one that it repeats, was
          used to choose what the text has lost (`DECLARED`);
        - paper, empty where it gives no number;
        - mean, lowest, highest: of our members; lowest and highest
          are empty for a search;
        - reported: of the member that validation chose;
        - difference: mean less paper;
        - se_people, se_networks, se_paper; agrees.
    Raises: ValueError: the table or the data set is unknown.
    """
    paper = published(number, dataset).set_index(["setting", "method"])
    shown = [metric for metric in METRICS if metric != "hap" or "hap" in paper]
    paper = paper.reindex(columns=shown)
    rows, table = [], str(number) if dataset == "Loan" else f"{number}, {dataset}"
    by = ["setting", "method", "networks"]
    for (setting, method, networks), group in people.groupby(by, sort=False):
        is_search = method in SEARCHES
        for metric in shown:
            printed = paper[metric].get((setting, method), np.nan)
            numerator, counted = sums(group, metric)
            ours = ratio(numerator, counted)
            n_counted = counted.sum(1).mean() or np.nan
            se_paper = np.sqrt(printed * (1 - printed) / n_counted)
            if not is_search:
                se_paper = np.hypot(se_paper, ONE_NETWORK)
            difference = ours.value - printed
            error = np.hypot(ours.standard_error, se_paper)
            agrees = bool(abs(difference) <= STANDARD_ERRORS * error)
            row = {
                "table": table,
                "setting": setting,
                "method": method,
                "networks": networks,
                "metric": metric,
                "calibration": setting in DECLARED.get((table, method, metric), ()),
                "paper": printed,
                "mean": ours.value,
                "lowest": np.nan if is_search else ours.lowest,
                "highest": np.nan if is_search else ours.highest,
                "reported": ratio(*sums(group[group.reported], metric)).value,
                "difference": difference,
                "se_people": ours.se_people,
                "se_networks": ours.se_networks,
                "se_paper": se_paper,
                "agrees": agrees if np.isfinite(difference) else None,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def printed_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `beside_paper` where the paper has a number that could differ.

    The plausibility of a search that demands it is 1 in both.
    """
    is_demanded = (table.method == "oracle") & (table.metric == "plausibility")
    return table[table.paper.notna() & ~(is_demanded & (table.paper == 1))]


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's cells with ours beside them, a row a setting, as text.

    A dagger marks cells that were used for calibration.

    Arguments:
        table: Of `beside_paper`.
    Returns: Columns by metric, method and who: the paper, then the
        search or each set of networks.
    """
    cells = printed_cells(table)
    three = ["metric", "method", "who"]
    who = cells.networks.where(cells.networks != "", "ours")
    ours = cells.assign(who=who, text=cells["mean"].map("{:.3f}".format))
    marks = np.where(cells.calibration, "†", "")
    theirs = cells.assign(who="paper", text=cells.paper.map("{:.3f}".format) + marks)
    both = pd.concat([theirs.drop_duplicates(["setting", *three]), ours])
    table = both.pivot(index="setting", columns=three, values="text")
    order = both.sort_values(["metric", "method"], ascending=False, kind="stable")
    columns = list(dict.fromkeys(order[three].itertuples(index=False, name=None)))
    return table.loc[list(dict.fromkeys(cells.setting)), columns].fillna("")


def agreement(table: pd.DataFrame) -> pd.DataFrame:
    """Return how near ours are to the paper's, a row a table and set of networks.

    Arguments:
        table: Of `beside_paper`, several below each other too.
    Returns: By table and who answers (the method, and which
        networks): how many cells the paper prints that could differ;
        of those that were not used for calibration: how many, their
        mean |difference|, the share within `CLOSE`, and how many
        agree; and the mean |difference| of all.
    """
    cells = printed_cells(table)
    who = cells.method.where(cells.networks == "", cells.networks)
    rows = {}
    for key, group in cells.groupby([cells.table, who.rename("who")], sort=False):
        free = group[~group.calibration]
        off = free.difference.abs()
        rows[key] = {
            "cells": len(group),
            "without dagger": len(free),
            "mean |difference|": off.mean(),
            f"within {CLOSE:g}": (off <= CLOSE).mean(),
            "agree": int(free.agrees.sum()),
            "all cells: mean |difference|": group.difference.abs().mean(),
        }
    index = pd.MultiIndex.from_tuples(rows, names=["table", "who"])
    return pd.DataFrame([*rows.values()], index=index)
