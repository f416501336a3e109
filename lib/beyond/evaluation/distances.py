"""Ten functions of the field that measure how far away a recommendation is.

Some measure the *action*: the features that a person acts on, and
what these are set to. The survey by Karimi et al. calls such a
function `cost`. Others measure the *profile* that results: what the
person did, and all that follows from it. These are called `dist`. In a
causal model the two differ by the downstream effects.

Their units differ. What can be compared between them is how they
order recommendations for the same person.

Letters: x before, a what is set, x' after; I the features acted on, k
any feature, K how many are actionable; r_k the range of a feature
among the training people, MAD_k their median absolute deviation from
the median; Q_k(v) the share of them below v, and half of those at v;
t the tolerance.

Of the action:
- carma_cost: 1/K sum over I of (a_k - x_k)^2 / r_k, the cost of CARMA
- acted: the number of features in I (survey, section 3.4.2)
- proximity_of_action: sum over I of |a_k - x_k| / r_k
- percentile_shift_max: largest over I of |Q_k(a_k) - Q_k(x_k)|
  (Ustun et al. 2019; survey, equation 5)
- percentile_shift_sum: their sum (ours; not Ustun's total log shift)

Of the profile, with m_k = |x'_k - x_k| / r_k:
- shown: the number of k with m_k > t (survey, equation 4, l0; the
  tolerance is ours)
- proximity_of_profile, l2, linf: the norms of m (survey, equation 4)
- mad: sum over k of |x'_k - x_k| / MAD_k (Wachter et al. 2018)
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib import checks
from lib.method import metrics
from lib.method.problem import Problem, Recommendation

TOLERANCE = 0.01  # of a feature's range: a change up to this does not count
ACTION = (
    "carma_cost",
    "acted",
    "proximity_of_action",
    "percentile_shift_max",
    "percentile_shift_sum",
)
PROFILE = ("shown", "proximity_of_profile", "l2", "linf", "mad")
DISTANCES = ACTION + PROFILE


def measure(
    problem: Problem,
    x: Tensor,
    recommendation: Recommendation,
    names: Sequence[str] = DISTANCES,
    tolerance: float = TOLERANCE,
) -> pd.DataFrame:
    """Return how far away each person's recommendation is, by several distances.

    All but `carma_cost` compare features as people can have them:
    where a population has whole numbers, whole numbers.

    Arguments:
        x: People, with shape (N, D).
        recommendation: One for each person, each tensor with shape
            (N, D). Its x_cf is taken as it is: of the causal model
            that the solver searched.
        names: Of `DISTANCES`.
        tolerance: A share of a feature's range, for `shown`: what
            moves by no more does not count.
    Returns: A row a person, a column a distance. All are NaN, and not
        0, for a person without a recommendation.
    Raises: ValueError: there are several recommendations a person,
        shapes or features differ, or something is not finite; a name
        is unknown; the tolerance is not above zero; or `mad` is asked
        for, and somebody's recommendation changes a feature that is
        the same for more than half of the training people.
    Source: sections 3.1 and 3.4.2 of Karimi et al., A survey of
        algorithmic recourse, ACM Computing Surveys 55(5), 2022; each
        distance names its own.
    """
    population = problem.population
    metrics.check_one_each(problem, x, recommendation)
    checks.people("recommendation.values", recommendation.values, population.features)
    checks.people("recommendation.x_cf", recommendation.x_cf, population.features)
    checks.one_of("distance", names, DISTANCES)
    checks.positive(tolerance=tolerance)
    has = recommendation.has_recourse
    given, x = recommendation[has], x[has]
    before, action, profile, people = (
        population.to_feasible(features).double().numpy()
        for features in (
            x,
            torch.where(given.is_acted, given.values, x),
            given.x_cf,
            population.x["recourse/train"],
        )
    )
    span = problem.range.double().numpy()
    action_moves, moves = np.abs(action - before) / span, np.abs(profile - before) / span
    mad = stats.median_abs_deviation(people)
    if "mad" in names and (is_lost := (mad == 0) & (moves > 0).any(0)).any():
        lost = ", ".join(np.array(population.features)[is_lost])
        raise ValueError(
            f"mad can't measure changes of {lost}: more than half of the training people "
            "have the same value, so that the median absolute deviation is 0. Leave mad "
            'out: names=[name for name in DISTANCES if name != "mad"].'
        )
    shifts = np.abs(_percentiles(people, action) - _percentiles(people, before))
    every = {
        "carma_cost": problem.cost_of(x, given).numpy(),
        "acted": given.is_acted.sum(1).numpy(),
        "shown": (moves > tolerance).sum(1),
        "proximity_of_action": action_moves.sum(1),
        "proximity_of_profile": moves.sum(1),
        "l2": np.sqrt((moves**2).sum(1)),
        "linf": moves.max(1),
        "mad": (moves * span / np.where(mad > 0, mad, 1.0)).sum(1),
        "percentile_shift_max": shifts.max(1),
        "percentile_shift_sum": shifts.sum(1),
    }
    index = np.flatnonzero(has.numpy())
    table = pd.DataFrame({name: every[name] for name in names}, index, dtype=float)
    return table.reindex(range(len(has)))


def _percentiles(people: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Q_k of each feature of x (N, D), with shape (N, D)."""
    columns = zip(people.T, x.T, strict=True)
    ranks = [stats.percentileofscore(one, values, kind="mean") for one, values in columns]
    return np.column_stack(ranks) / 100
