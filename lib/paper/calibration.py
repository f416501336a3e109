"""What the paper's text has lost is chosen here, by a few cells of its tables.

What is printed stays as printed. The candidates and the cells that
decide stand in params/calibration.yaml and were written down before
anything was fitted. Validation people are asked, never those of the
test split. Each stage returns a row a candidate, with its value in
each cell and its score; none of them reads a file. A "bank" in the
files is a classifier, a "shape" the curve of a profile.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import dask
import numpy as np
import pandas as pd
from torch import Tensor

from lib.method import classifier, icarma, metrics
from lib.method.data import Population
from lib.method.flow import CausalFlow
from lib.method.grid import Grid
from lib.method.icarma import Settings
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import Problem, Recommendation
from lib.paper.designs import hard_preferences
from lib.paper.readings import CONSTANT_SEES, POWERS, Reading
from lib.paper.stacks import MIXED, SOFT, soft_samplers

Progress = Callable[[range], Iterable[int]]
Cells = Mapping[str, float]
# the cell and the setting of stage 3, by profile
ASKED = {"constant": ("random", "random"), "linear": ("soft linear", "all (4)")}


def score(ours: Cells, paper: Cells, n_people: int, spread: float) -> float:
    r"""Return how far our cells lie from the paper's: the lower, the nearer.

    .. math:: \sum_i \frac{(o_i - p_i)^2}{p_i (1 - p_i) / n + s^2}

    Arguments:
        n_people: How many people a cell is a share of.
        spread: Standard deviation of one cell from one network of the
            paper to another.
    Raises: KeyError: a cell is missing.
    Example:
        >>> round(score({"validity": 0.52}, {"validity": 0.5}, 10_000, 0.0), 6)
        16.0
    """
    return sum(
        (ours[cell] - p) ** 2 / (p * (1 - p) / n_people + spread**2)
        for cell, p in paper.items()
    )


def fit_problem(population: Population, flow: CausalFlow, seed: int, **how: Any) -> Problem:
    """Return the problem of a population with a classifier fitted as `how` says."""
    h, _ = classifier.fit(population, seed=seed, **how)
    return Problem(population, h, flow)


def _shares(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    name: str,
) -> dict[str, float]:
    """Return validity, plausibility, hap and joint of one solver, by cell."""
    people = metrics.per_person(problem, x, preferences, recommendation)
    row = metrics.summarise(people.assign(all="people"), ["all"]).iloc[0]
    shares = ("validity", "plausibility", "hap", "joint")
    return {f"{metric}, {name}": float(row[metric]) for metric in shares}


def banks(
    population: Population, flow: CausalFlow, given: Mapping[str, Any]
) -> pd.DataFrame:
    """Return stage 1: the oracle's cells for every classifier, seed and grid.

    Dask gives every core a classifier.

    Arguments:
        given: The contents of params/calibration.yaml.
    Returns: Columns bank (the classifier), grid, bank_seed, accuracy,
        log_odds (the median of the refused), a column a cell, and
        score.
    """
    job = dask.delayed(_bank, pure=False)
    jobs = [
        job(population, flow, name, seed, given)
        for name, seed in product(given["banks"], given["bank_seeds"])
    ]
    return pd.concat(dask.compute(*jobs), ignore_index=True)


def _bank(
    population: Population, flow: CausalFlow, name: str, seed: int, given: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the rows of one classifier and seed, one a grid; see `banks`."""
    problem = fit_problem(population, flow, seed, **given["banks"][name])
    x, y = population.x["classifier/test"], population.y["classifier/test"]
    is_right = problem.accepts(x) == y.bool()
    refused = problem.refused("validation")
    about = {
        "bank": name,
        "bank_seed": seed,
        "accuracy": is_right.float().mean().item(),
        "log_odds": problem.classifier.logit(refused).median().item(),
    }
    preferences = hard_preferences(problem, len(refused), seed=0)
    # settings of tables 1 and 6, the name of the cell, and how many nats may be given up
    demands = [(setting, setting, 0.0) for setting in preferences]
    demands += [(k, f"{k}, no demand", math.inf) for k in ("1", "2")]
    rows = []
    for grid, half_width in given["grids"].items():
        cells: dict[str, float] = {}
        for setting, cell, slack in demands:
            drawn = preferences[setting]
            solver = Grid(problem, half_width=half_width, slack=slack)
            answer = solver.recommend(refused, drawn)
            cells |= _shares(problem, refused, drawn, answer, cell)
        distance = score(cells, given["cells"]["bank"], len(refused), given["spread"])
        rows.append(about | {"grid": grid} | cells | {"score": distance})
    return pd.DataFrame(rows)


def mean_over(
    rows: pd.DataFrame, by: Sequence[str], paper: Cells, **how: Any
) -> pd.DataFrame:
    """Return the mean of each cell over seeds, scored anew, the lowest score first.

    Arguments:
        by: Columns that tell candidates apart; their order is kept
            where scores tie.
        paper: The cells that decide.
        how: n_people and spread, as for `score`.
    """
    means = rows.groupby(list(by), sort=False)[list(paper)].mean()
    means["score"] = [score(row, paper, **how) for row in means.to_dict("records")]
    return nearest(means.reset_index(), 0.0)


def nearest(candidates: pd.DataFrame, tie: float) -> pd.DataFrame:
    """Return candidates, the one with the lowest score first.

    Arguments:
        candidates: With a column score; their order is kept where
            scores are alike.
        tie: Scores that exceed the lowest by no more are like it.
    Example:
        >>> table = pd.DataFrame({"score": [3.0, 1.5, 1.0]})
        >>> nearest(table, tie=0.0).index.tolist(), nearest(table, tie=1.0).index.tolist()
        ([2, 1, 0], [1, 2, 0])
    """
    alike = candidates.score.clip(lower=candidates.score.min() + tie)
    order = alike.sort_values(kind="stable").index
    return candidates.loc[order]


def shapes(
    problem: Problem,
    half_width: float | None,
    given: Mapping[str, Any],
    progress: Progress = iter,
) -> pd.DataFrame:
    """Return stage 2: the oracle's hap, soft, for every curve, gamma and slope of w.

    Arguments:
        problem, half_width: Of the classifier and the grid that stage
            1 chose.
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of candidates.
    Returns: Columns shape (the curve), gamma, w_max, a column a cell,
        and score.
    """
    x = problem.refused("validation")
    ranking = hard_preferences(problem, len(x), seed=0)["all (4)"]
    grid = Grid(problem, half_width=half_width)

    @cache
    def hap(profile: Profile) -> float:
        preferences = ranking.with_profile(profile)
        recommendation = grid.recommend(x, preferences)
        return _shares(problem, x, preferences, recommendation, "")["hap, "]

    rows = []
    candidates = list(product(given["shapes"], given["gammas"], given["w_max"]))
    for i in progress(range(len(candidates))):
        shape, gamma, w_max = candidates[i]
        cells = {"hap, constant": hap(CONSTANT)}
        for name in ("concave", "linear", "convex"):
            # a straight line is the same on every curve
            curve = given["shapes"][0] if name == "linear" else shape
            profile = Profile(gamma ** POWERS[name], w_max, curve)
            cells[f"hap, {name}"] = hap(profile)
        distance = score(cells, given["cells"]["shape"], len(x), given["spread"])
        about = {"shape": shape, "gamma": gamma, "w_max": w_max}
        rows.append(about | cells | {"score": distance})
    return pd.DataFrame(rows)


Fit = tuple[str, Profile, Settings]  # the classifier, the profile, and how


def networks(
    problems: Mapping[str, Problem],
    readings: Sequence[Reading],
    shape: Mapping[str, Any],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    known: dict[tuple[Fit, int], dict[str, float]],
) -> pd.DataFrame:
    """Return stage 3: what networks of some readings come to, a row a reading and seed.

    Each reading is fitted under the constant and under the linear
    profile; where two of them agree under a profile, once. Those of
    one classifier that share what an ensemble must share
    (`icarma.SHARED`) are trained as one, and Dask gives every core an
    ensemble.

    Arguments:
        problems: By the name of the classifier.
        shape: shape, gamma and w_max, as stage 2 chose them.
        seeds: Of the networks.
        given: The contents of params/calibration.yaml.
        known: Cells of fits that were made before, by fit and seed;
            those made here are added.
    Returns: The fields of `Reading`, seed, a column a cell, and
        score.
    """
    linear = Profile(1.0, shape["w_max"], shape["shape"])
    fits: dict[tuple[Reading, str], Fit] = {}
    groups: dict[tuple[Any, ...], dict[tuple[Fit, int], Settings]] = {}
    for reading, name in product(readings, ASKED):
        profile = linear if name == "linear" else CONSTANT_SEES[reading.constant_sees]
        settings = reading.settings("ranking", name)
        fit = fits[reading, name] = (reading.bank, profile, settings)
        shared = (getattr(settings, field) for field in icarma.SHARED)
        key = name, reading.bank, profile, *shared
        for seed in seeds:
            if (fit, seed) not in known:
                groups.setdefault(key, {})[fit, seed] = settings
    job = dask.delayed(network_cells, pure=False)
    jobs = []
    for (name, bank, profile, *_), members in groups.items():
        how = list(members.values()), [seed for _, seed in members]
        jobs.append(job(problems[bank], "ranking", profile, *how, *ASKED[name]))
    for members, cells_of in zip(groups.values(), dask.compute(*jobs), strict=True):
        known |= dict(zip(members, cells_of, strict=True))
    rows = []
    for reading, seed in product(readings, seeds):
        cells: dict[str, float] = {}
        for name in ASKED:
            cells |= known[fits[reading, name], seed]
        n_people = len(problems[reading.bank].refused("validation"))
        distance = score(cells, given["cells"]["networks"], n_people, given["spread"])
        rows.append(vars(reading) | {"seed": seed} | cells | {"score": distance})
    return pd.DataFrame(rows)


def network_cells(
    problem: Problem,
    elicitation: str,
    profile: Profile,
    settings: Sequence[Settings],
    seeds: Sequence[int],
    cell: str,
    setting: str,
) -> list[dict[str, float]]:
    """Fit an ensemble, and return validity, plausibility, hap and joint of each member.

    Arguments:
        elicitation: "ranking" or "score".
        settings, seeds: Of each member.
        cell: Ends the names of the cells.
        setting: What validation people are asked: for rankings a key of
            `designs.hard_preferences`, for scores "soft".
    """
    samplers = soft_samplers(problem.population.actionable, elicitation, profile)
    ensemble, _ = icarma.fit(problem, samplers[MIXED], settings, seeds)
    x = problem.refused("validation")
    if elicitation == "ranking":
        preferences = hard_preferences(problem, len(x), seed=0, profile=profile)[setting]
    else:
        preferences = samplers[setting].draw(range(len(x)), np.random.default_rng(0))
    recommendation = ensemble.recommend_each(x, preferences)
    return [
        _shares(problem, x, preferences, recommendation[i], cell) for i in range(len(seeds))
    ]


def scores(
    problem: Problem, reading: Reading, given: Mapping[str, Any], chosen: Profile
) -> pd.DataFrame:
    """Return what networks for scores come to, by the slope of w, a row a seed.

    Where the difficulty is linear in the score every curve is the
    same, so that the declared row of table 3 (soft, linear) tells
    slopes apart, and nothing else.

    Arguments:
        problem, reading: As chosen for rankings.
        given: The contents of params/calibration.yaml.
        chosen: The linear profile for rankings, the first candidate.
    Returns: Columns w_max, seed, a column a cell, and score.
    """
    slopes, seeds = dict.fromkeys([chosen.w_max, *given["w_max"]]), given["seeds"]
    settings = [reading.settings("score", "linear")] * len(seeds)
    job = dask.delayed(network_cells, pure=False)
    jobs = []
    for w_max in slopes:
        profile = replace(chosen, w_max=w_max)
        jobs.append(job(problem, "score", profile, settings, seeds, "scores", SOFT))
    n_people, rows = len(problem.refused("validation")), []
    for w_max, of_seeds in zip(slopes, dask.compute(*jobs), strict=True):
        for seed, cells in zip(seeds, of_seeds, strict=True):
            distance = score(cells, given["cells"]["scores"], n_people, given["spread"])
            rows.append({"w_max": w_max, "seed": seed} | cells | {"score": distance})
    return pd.DataFrame(rows)
