"""What the paper's text has lost is chosen here, by a few cells of its tables.

What is printed stays as printed. The candidates and the cells that
decide stand in params/calibration.yaml and were written down before
anything was fitted. Validation people are asked, never those of the
test split. Each function returns a row a candidate, with what it came
to in each cell and its score; none of them reads a file.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd
from torch import Tensor

from lib.method import classifier, metrics, training
from lib.method.flow import CausalFlow
from lib.method.grid import Grid
from lib.method.population import Population
from lib.method.preferences import Preferences, Profile
from lib.method.problem import Problem, Recommendation
from lib.method.samplers import RankingSampler
from lib.paper.designs import hard_preferences
from lib.paper.readings import POWERS, Reading

Progress = Callable[[range], Iterable[int]]
Cells = Mapping[str, float]
# the cells of stage 3, of the constant and of the linear profile, and who is asked there
ASKED = {"random": "random", "soft linear": "all (4)"}


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


def bank(population: Population, flow: CausalFlow, seed: int, **how: Any) -> Problem:
    """Return the problem of a population with a classifier fitted as `how` says."""
    h, _ = classifier.fit(population, seed=seed, **how)
    return Problem(population, h, flow)


def oracle_cells(problem: Problem, centred: float | None, seed: int) -> dict[str, float]:
    """Return what the oracle comes to in tables 1 and 6, by the names of the cells.

    Arguments:
        problem: Its refused validation people are asked.
        centred: As for `Grid`.
        seed: Of their preferences.
    Source: tables 1 and 6 of arXiv:2604.08030.
    """
    x = problem.refused("validation")
    found: dict[str, float] = {}
    preferences = hard_preferences(problem, len(x), seed)
    demands = [(setting, setting, 0.0) for setting in preferences]
    demands += [(k, f"{k}, no demand", math.inf) for k in ("1", "2")]
    for setting, name, slack in demands:
        own = preferences[setting]
        answer = Grid(problem, centred=centred, slack=slack).recommend(x, own)
        found |= _shares(problem, x, own, answer, name)
    return found


def _shares(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    answer: Recommendation,
    name: str,
) -> dict[str, float]:
    """Return validity, plausibility and hap of one answer a person, by cell."""
    people = metrics.per_person(problem, x, preferences, answer)
    row = metrics.summarise(people.assign(all="people"), ["all"]).iloc[0]
    told = ("validity", "plausibility", "hap", "joint")
    return {f"{metric}, {name}": float(row[metric]) for metric in told}


def banks(
    population: Population, flow: CausalFlow, given: Mapping[str, Any], progress: Progress
) -> pd.DataFrame:
    """Return stage 1: the oracle's cells for every bank, seed and grid.

    Arguments:
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of banks.
    Returns: Columns bank, grid, bank_seed, accuracy, log_odds (the
        median of the refused), a column a cell, and score.
    """
    rows = []
    every = list(product(given["banks"].items(), given["bank_seeds"]))
    for i in progress(range(len(every))):
        (name, how), seed = every[i]
        problem = bank(population, flow, seed, **how)
        x, y = (part["classifier/test"] for part in (population.x, population.y))
        is_right = problem.accepts(x) == y.bool()
        refused = problem.refused("validation")
        about = {
            "bank": name,
            "bank_seed": seed,
            "accuracy": is_right.float().mean().item(),
            "log_odds": problem.classifier.logit(refused).median().item(),
        }
        for grid, centred in given["grids"].items():
            cells = oracle_cells(problem, centred, seed=0)
            own = score(cells, given["cells"]["bank"], len(refused), given["spread"])
            rows.append(about | {"grid": grid} | cells | {"score": own})
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
    problem: Problem, centred: float | None, given: Mapping[str, Any], progress: Progress
) -> pd.DataFrame:
    """Return stage 2: the oracle's hap, soft, for every shape, gamma and slope of w.

    Arguments:
        problem, centred: Of the bank and the grid that stage 1 chose.
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of candidates.
    Returns: Columns shape, gamma, w_max, a column a cell, and score.
    """
    x = problem.refused("validation")
    preferences = hard_preferences(problem, len(x), seed=0)["all (4)"]
    known: dict[Profile, float] = {}

    def hap(profile: Profile) -> float:
        if profile not in known:
            grid = Grid(problem, profile=profile, centred=centred)
            found = grid.recommend(x, preferences)
            known[profile] = _shares(problem, x, preferences, found, "")["hap, "]
        return known[profile]

    rows = []
    every = list(product(given["shapes"], given["gammas"], given["w_max"]))
    for i in progress(range(len(every))):
        shape, gamma, w_max = every[i]
        cells = {"hap, constant": hap(Profile())}
        for name, power in POWERS.items():
            if name != "constant":
                # a straight line is the same in every shape
                own = shape if power else given["shapes"][0]
                cells[f"hap, {name}"] = hap(Profile(gamma**power, w_max, shape=own))
        own_score = score(cells, given["cells"]["shape"], len(x), given["spread"])
        about = {"shape": shape, "gamma": gamma, "w_max": w_max}
        rows.append(about | cells | {"score": own_score})
    return pd.DataFrame(rows)


def networks(
    problems: Mapping[str, Problem],
    readings: Sequence[Reading],
    shape: Mapping[str, Any],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    progress: Progress,
) -> pd.DataFrame:
    """Return stage 3: what networks of some readings come to, a row a reading and seed.

    Each reading is fitted twice, with the constant and with the linear
    profile; those of one bank and width are trained side by side.

    Arguments:
        problems: By the name of the bank.
        shape: shape, gamma and w_max, as stage 2 chose them.
        seeds: Of the networks.
        given: The contents of params/calibration.yaml.
        progress: Wraps the range of epochs.
    Returns: The fields of `Reading`, seed, a column a cell, and
        score.
    """
    rows = []
    for name, width in dict.fromkeys((own.bank, own.width) for own in readings):
        some = [own for own in readings if (own.bank, own.width) == (name, width)]
        problem = problems[name]
        members = [
            (own.settings("ranking", gamma, shape["shape"], shape["w_max"]), seed)
            for own in some
            for seed in seeds
            for gamma in (None, 1.0)
        ]
        distinct = list(dict.fromkeys(members))
        sampler = RankingSampler(problem.population.actionable)
        settings, own_seeds = zip(*distinct, strict=True)
        stack, _ = training.fit(problem, sampler, settings, own_seeds, progress)
        x = problem.refused("validation")
        asked = hard_preferences(problem, len(x), seed=0)
        answers = {
            setting: stack.recommend(x, asked[setting]) for setting in ASKED.values()
        }
        for i, (own, seed) in enumerate(product(some, seeds)):
            cells: dict[str, float] = {}
            for j, (cell, setting) in enumerate(ASKED.items()):
                answer = answers[setting][distinct.index(members[2 * i + j])]
                cells |= _shares(problem, x, asked[setting], answer, cell)
            found = score(cells, given["cells"]["networks"], len(x), given["spread"])
            rows.append(vars(own) | {"seed": seed} | cells | {"score": found})
    return pd.DataFrame(rows)
