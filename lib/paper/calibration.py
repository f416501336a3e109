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
from functools import cache
from itertools import product
from typing import Any

import pandas as pd
from torch import Tensor

from lib.method import classifier, icarma, metrics
from lib.method.data import Population
from lib.method.flow import CausalFlow
from lib.method.grid import Grid
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import Problem, Recommendation
from lib.method.samplers import RankingSampler
from lib.paper.designs import hard_preferences
from lib.paper.readings import POWERS, Reading

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


def oracle_cells(problem: Problem, half_width: float | None, seed: int) -> dict[str, float]:
    """Return what the oracle comes to in tables 1 and 6, by the names of the cells.

    Arguments:
        problem: Its refused validation people are asked.
        half_width: As for `Grid`.
        seed: Of their preferences.
    Source: tables 1 and 6 of arXiv:2604.08030.
    """
    x = problem.refused("validation")
    cells: dict[str, float] = {}
    preferences = hard_preferences(problem, len(x), seed)
    demands = [(setting, setting, 0.0) for setting in preferences]
    demands += [(k, f"{k}, no demand", math.inf) for k in ("1", "2")]
    for setting, name, slack in demands:
        drawn = preferences[setting]
        solver = Grid(problem, half_width=half_width, slack=slack)
        cells |= _shares(problem, x, drawn, solver.recommend(x, drawn), name)
    return cells


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
    population: Population,
    flow: CausalFlow,
    given: Mapping[str, Any],
    progress: Progress = iter,
) -> pd.DataFrame:
    """Return stage 1: the oracle's cells for every classifier, seed and grid.

    Arguments:
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of classifiers.
    Returns: Columns bank (the classifier), grid, bank_seed, accuracy,
        log_odds (the median of the refused), a column a cell, and
        score.
    """
    rows = []
    candidates = list(product(given["banks"].items(), given["bank_seeds"]))
    for i in progress(range(len(candidates))):
        (name, how), seed = candidates[i]
        problem = fit_problem(population, flow, seed, **how)
        x, y = (splits["classifier/test"] for splits in (population.x, population.y))
        is_right = problem.accepts(x) == y.bool()
        refused = problem.refused("validation")
        about = {
            "bank": name,
            "bank_seed": seed,
            "accuracy": is_right.float().mean().item(),
            "log_odds": problem.classifier.logit(refused).median().item(),
        }
        for grid, half_width in given["grids"].items():
            cells = oracle_cells(problem, half_width, seed=0)
            paper = given["cells"]["bank"]
            distance = score(cells, paper, len(refused), given["spread"])
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
        for name, power in POWERS.items():
            if name != "constant":
                # a straight line is the same on every curve
                curve = shape if power else given["shapes"][0]
                cells[f"hap, {name}"] = hap(Profile(gamma**power, w_max, curve))
        distance = score(cells, given["cells"]["shape"], len(x), given["spread"])
        about = {"shape": shape, "gamma": gamma, "w_max": w_max}
        rows.append(about | cells | {"score": distance})
    return pd.DataFrame(rows)


def networks(
    problems: Mapping[str, Problem],
    readings: Sequence[Reading],
    shape: Mapping[str, Any],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return stage 3: what networks of some readings come to, a row a reading and seed.

    Each reading is fitted twice, under the constant and under the
    linear profile. Those of one classifier that share what an
    ensemble must share (`icarma.SHARED`) are trained as one.

    Arguments:
        problems: By the name of the classifier.
        shape: shape, gamma and w_max, as stage 2 chose them.
        seeds: Of the networks.
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of epochs.
    Returns: The fields of `Reading`, seed, a column a cell, and
        score.
    """
    profiles = {
        "constant": CONSTANT,
        "linear": Profile(1.0, shape["w_max"], shape["shape"]),
    }
    cells: dict[tuple[Reading, int], dict[str, float]] = {
        key: {} for key in product(readings, seeds)
    }
    for name, (cell, setting) in ASKED.items():
        groups: dict[tuple[Any, ...], list[Reading]] = {}
        for reading in readings:
            settings = reading.settings("ranking", name)
            shared = [getattr(settings, field) for field in icarma.SHARED]
            groups.setdefault((reading.bank, *shared), []).append(reading)
        for (bank, *_), group in groups.items():
            problem, members = problems[bank], list(product(group, seeds))
            sampler = RankingSampler(problem.population.actionable, profile=profiles[name])
            ensemble, _ = icarma.fit(
                problem,
                sampler,
                [reading.settings("ranking", name) for reading, _ in members],
                [seed for _, seed in members],
                progress,
            )
            x = problem.refused("validation")
            drawn = hard_preferences(problem, len(x), seed=0, profile=profiles[name])
            recommendation = ensemble.recommend_each(x, drawn[setting])
            for i, member in enumerate(members):
                cells[member] |= _shares(
                    problem, x, drawn[setting], recommendation[i], cell
                )
    rows = []
    for (reading, seed), of_member in cells.items():
        n_people = len(problems[reading.bank].refused("validation"))
        paper = given["cells"]["networks"]
        distance = score(of_member, paper, n_people, given["spread"])
        rows.append(vars(reading) | {"seed": seed} | of_member | {"score": distance})
    return pd.DataFrame(rows)
