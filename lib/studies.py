"""The paper's studies: a solver times a setting gives one tidy table, joined with the published numbers."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from torch import Tensor

from lib import metrics, oracle, published
from lib.icarma import ICarma
from lib.preferences import Preferences, RankingSampler
from lib.recourse import Problem

# table 1: how many of the four features a person may act on; None draws the number for each person
CONSTRAINTS = {"all (4)": 4, "3": 3, "2": 2, "1": 1, "random": None}

TOLERANCE = {"iCARMA": 0.03, "oracle": 0.04}  # how far below a published share ours may be and still count as reached


def hard_preferences(problem: Problem, n_people: int, seed: int) -> dict[str, Preferences]:
    """Preferences of the same n_people under each setting of table 1: the same ranking, cut at another threshold."""
    features = problem.population.actionable
    return {
        setting: RankingSampler(features, n_actionable=k).draw(n_people, np.random.default_rng(seed))
        for setting, k in CONSTRAINTS.items()
    }


def recommend(problem: Problem, stack: ICarma, x: Tensor, preferences: dict[str, Preferences]) -> pd.DataFrame:
    """One row for each setting, seed and person: `metrics.per_person` of every member's recommendation."""
    parts = []
    for setting, wishes in preferences.items():
        told = stack.recommend(x, wishes)
        for member, seed in enumerate(stack.seeds):
            people = metrics.per_person(problem, x, wishes, told[member], truth=problem.population.graph)
            parts.append(people.assign(setting=setting, method="iCARMA", seed=seed, person=np.arange(len(x))))
    return pd.concat(parts, ignore_index=True)


def search(
    problem: Problem,
    x: Tensor,
    preferences: dict[str, Preferences],
    n_values: int = 25,
    progress: Callable[[range], range] = iter,
) -> pd.DataFrame:
    """One row for each setting and person: `metrics.per_person` of what the oracle finds in the true world."""
    parts = []
    for setting, wishes in preferences.items():
        found = oracle.search(problem, problem.population.graph, x, wishes, n_values=n_values, progress=progress)
        people = metrics.per_person(problem, x, wishes, found, truth=problem.population.graph)
        parts.append(people.assign(setting=setting, method="oracle", seed=0, person=np.arange(len(x))))
    return pd.concat(parts, ignore_index=True)


def best_seed(validation: pd.DataFrame) -> int:
    """Seed to report: valid and plausible most often, with preferences drawn as in training.

    Seeds within one standard error (over people) of the best are tied; of those, the one that is valid most often.
    """
    seeds = validation[validation.setting == "random"].groupby("seed")[["joint", "valid"]].mean()
    n_people = validation[validation.setting == "random"].person.nunique()
    best = seeds.joint.max()
    tied = seeds.joint >= best - np.sqrt(best * (1 - best) / n_people)
    return int(seeds.valid[tied].idxmax())


def beside_paper(people: pd.DataFrame, chosen: int) -> pd.DataFrame:
    """Table 1 with the paper's numbers beside ours, a row for each setting, method and metric.

    Arguments:
        people: Rows of `recommend` and `search`.
        chosen: The seed that validation chose; the oracle has none.
    Returns: Columns table, setting, method, metric, paper, ours, difference, seed_low, seed_high (over all seeds;
        empty for the oracle), standard_error (over people) and within: is ours above the paper's number less the
        method's `TOLERANCE` (empty where the paper gives no number)?
    """
    summary = metrics.summarise(people, ["setting", "method", "seed"])
    paper = published.table(1).rename(columns={"n_individually_actionable": "setting"})
    wanted = ["validity", "plausibility", "joint", "cost_mean", "sparsity"]
    rows = []
    for (setting, method), seeds in summary.groupby(["setting", "method"], sort=False):
        ours = seeds if method == "oracle" else seeds[seeds.seed == chosen]
        theirs = paper[(paper.setting == setting) & (paper.method == method)]
        for metric in wanted:
            value = ours[metric].item()
            printed = theirs[metric].item() if metric in theirs else np.nan
            is_share = metric in ("validity", "plausibility", "joint")
            many = method != "oracle"
            rows.append(
                {
                    "table": "1",
                    "setting": setting,
                    "method": method,
                    "metric": metric,
                    "paper": printed,
                    "ours": value,
                    "difference": value - printed,
                    "seed_low": seeds[metric].min() if many else np.nan,
                    "seed_high": seeds[metric].max() if many else np.nan,
                    "standard_error": np.sqrt(value * (1 - value) / ours.n_people.item()) if is_share else np.nan,
                    "within": value >= printed - TOLERANCE[method] if np.isfinite(printed) else None,
                }
            )
    return pd.DataFrame(rows)
