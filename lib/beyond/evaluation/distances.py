"""Ten rulers: how far away a recommendation is, by the functions that the field uses.

A ruler measures one of two things. The *action* is what a person
does: the features acted on, and what they are set to. The *profile*
is what a person then looks like: what they did, and all that follows
from it. The survey calls a ruler of the first `cost`, one of the
second `dist`. In a causal model the two differ by what follows.

The ten are the cost of this project; two counts of features (those
acted on, those that change to the eye); the sum of changes, of the
action and of the profile; two further norms of the profile; Wachter's
sum over median absolute deviations; and two shifts among the people
of the population, the largest and the sum. All but `carma_cost`
compare features as people can have them: where a population has whole
numbers, whole numbers.

Rulers have different units. What can be compared between them is how
they order recommendations for the same person; see `kendall`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method import metrics
from lib.method.problem import Problem, Recommendation

KARIMI = "Karimi et al. 2022 (survey), eq. 4"
USTUN = "Ustun et al. 2019; survey, eq. 5"
TOLERANCE = 0.01  # of a feature's range: a change up to this is not seen


@dataclass(frozen=True)
class _Change:
    """Hold what N people do and what they then look like.

    Arguments:
        problem: Says of which features, and how far they range.
        cost: As `Problem.cost_of`, with shape (N,).
        is_acted: True where a person acts, with shape (N, D).
        before: Features as they are, with shape (N, D).
        action: Those acted on set to their new value, the others as
            they are, with shape (N, D).
        profile: Features after the action, with shape (N, D).
        tolerance: A share of a feature's range.
    """

    problem: Problem
    cost: np.ndarray
    is_acted: np.ndarray
    before: np.ndarray
    action: np.ndarray
    profile: np.ndarray
    tolerance: float

    @property
    def people(self) -> np.ndarray:
        """The recourse training people, as they can be, with shape (n, D)."""
        return _as_they_are(self.problem, self.problem.population.x["recourse/train"])

    def over_range(self, after: np.ndarray) -> np.ndarray:
        """Return how far features moved, as shares of their range, with shape (N, D)."""
        return np.abs(after - self.before) / self.problem.range.double().numpy()


def _as_they_are(problem: Problem, x: Tensor) -> np.ndarray:
    """Return standardised features (*, D) that people can have, as float64."""
    return problem.population.to_feasible(x).double().numpy()


def _mad(change: _Change) -> np.ndarray:
    """Return changes of the profile over median absolute deviations, summed, (N,)."""
    people = change.people
    mad = np.median(np.abs(people - np.median(people, 0)), 0)
    moved = np.abs(change.profile - change.before)
    if (is_lost := (mad == 0) & (moved > 0).any(0)).any():
        names = np.array(change.problem.population.features)[is_lost]
        raise ValueError(
            f"mad can't measure changes of {', '.join(names)}: more than half of the "
            "training people have the same value, so that the median absolute deviation "
            f"is 0, and {int((moved[:, is_lost] > 0).any(1).sum())} of {len(moved)} "
            "recommendations change it. Leave mad out: rulers=[name for name in RULERS if "
            'name != "mad"].'
        )
    return (moved / np.where(mad > 0, mad, 1.0)).sum(-1)


def _percentile_shifts(change: _Change) -> np.ndarray:
    """Return over what share of people each feature acted on moves, with shape (N, D)."""
    shifts = np.zeros_like(change.before)
    for k, column in enumerate(np.sort(change.people, axis=0).T):
        ranks = [  # mid-ranks: those who have the same value count by half
            np.searchsorted(column, x[:, k], "left")
            + np.searchsorted(column, x[:, k], "right")
            for x in (change.before, change.action)
        ]
        shifts[:, k] = np.abs(ranks[1] - ranks[0]) / (2 * len(column))
    return shifts


@dataclass(frozen=True)
class Ruler:
    """Hold one way to measure a recommendation, and the words that go with it.

    Letters: x before, a what is set, x_cf after; I the features acted
    on, k any feature, K how many are actionable; Q_k(v) the share of
    the training people below v in feature k, and half of those at v;
    MAD_k their median absolute deviation from the median; range_k
    their range; t the tolerance.

    Arguments:
        measures: "action" or "profile".
        formula: In the letters above.
        unit: What one of it is.
        source: Whose it is.
        distance: From changes of N people to values with shape (N,).
    """

    measures: str
    formula: str
    unit: str
    source: str
    distance: Callable[[_Change], np.ndarray]


RULERS: Mapping[str, Ruler] = {
    "carma_cost": Ruler(
        "action",
        "1/K sum over I of (a_k - x_k)^2 / range_k",
        "standard deviations",
        "CARMA (doi 10.1145/3630106.3659003), unweighted",
        lambda change: change.cost,
    ),
    "acted": Ruler(
        "action",
        "number of features in I",
        "features",
        "survey, section 3.4.2",
        lambda change: change.is_acted.sum(-1),
    ),
    "shown": Ruler(
        "profile",
        "number of k with |x_cf_k - x_k| > t range_k",
        "features",
        f"{KARIMI}, l0; the tolerance is ours",
        lambda change: (change.over_range(change.profile) > change.tolerance).sum(-1),
    ),
    "proximity_of_action": Ruler(
        "action",
        "sum over I of |a_k - x_k| / range_k",
        "ranges",
        f"{KARIMI}, l1; of the action: ours",
        lambda change: change.over_range(change.action).sum(-1),
    ),
    "proximity_of_profile": Ruler(
        "profile",
        "sum over k of |x_cf_k - x_k| / range_k",
        "ranges",
        f"{KARIMI}, l1",
        lambda change: change.over_range(change.profile).sum(-1),
    ),
    "l2": Ruler(
        "profile",
        "square root of the sum over k of ((x_cf_k - x_k) / range_k)^2",
        "ranges",
        f"{KARIMI}, l2",
        lambda change: np.sqrt((change.over_range(change.profile) ** 2).sum(-1)),
    ),
    "linf": Ruler(
        "profile",
        "largest over k of |x_cf_k - x_k| / range_k",
        "ranges",
        f"{KARIMI}, l infinity",
        lambda change: change.over_range(change.profile).max(-1),
    ),
    "mad": Ruler(
        "profile",
        "sum over k of |x_cf_k - x_k| / MAD_k",
        "MADs",
        "Wachter et al. 2018; survey, eq. 3",
        _mad,
    ),
    "percentile_shift_max": Ruler(
        "action",
        "largest over I of |Q_k(a_k) - Q_k(x_k)|",
        "shares of people",
        USTUN,
        lambda change: _percentile_shifts(change).max(-1),
    ),
    "percentile_shift_sum": Ruler(
        "action",
        "sum over I of |Q_k(a_k) - Q_k(x_k)|",
        "shares of people",
        f"{USTUN}, with a sum: ours; not their total log percentile shift",
        lambda change: _percentile_shifts(change).sum(-1),
    ),
}


def measure(
    problem: Problem,
    x: Tensor,
    recommendation: Recommendation,
    rulers: Sequence[str] = tuple(RULERS),
    tolerance: float = TOLERANCE,
) -> pd.DataFrame:
    """Return each person's recommendation as rulers measure it: a row a person.

    Arguments:
        x: People, with shape (N, D).
        recommendation: One for each person, each tensor with shape
            (N, D). Its x_cf is taken as it is: of the causal model
            that the solver searched.
        rulers: Keys of `RULERS`.
        tolerance: A share of a feature's range, for `shown`: what
            moves by no more is not seen.
    Returns: A column a ruler, in its unit. All are NaN, and not 0,
        for a person without a recommendation.
    Raises: ValueError: there are several recommendations a person,
        shapes or features differ, or something is not finite; a
        ruler is unknown; the tolerance is not above zero; or `mad` is
        asked for, and somebody's recommendation changes a feature
        that is the same for more than half of the training people (a
        feature that nobody's changes adds nothing).
    Source: sections 3.1 and 3.4.2 of Karimi et al., A survey of
        algorithmic recourse, ACM Computing Surveys 55(5), 2022; each
        ruler names its own.
    """
    metrics.check_one_each(problem, x, recommendation)
    features = problem.population.features
    checks.people("recommendation.values", recommendation.values, features)
    checks.people("recommendation.x_cf", recommendation.x_cf, features)
    checks.one_of("ruler", rulers, tuple(RULERS))
    checks.positive(tolerance=tolerance)
    has = recommendation.has_recourse
    given, x = recommendation[has], x[has]
    change = _Change(
        problem,
        cost=problem.cost_of(x, given).numpy(),
        is_acted=given.is_acted.numpy(),
        before=_as_they_are(problem, x),
        action=_as_they_are(problem, torch.where(given.is_acted, given.values, x)),
        profile=_as_they_are(problem, given.x_cf),
        tolerance=tolerance,
    )
    table = pd.DataFrame(np.nan, index=range(len(has)), columns=list(rulers))
    for name in rulers:
        table.loc[has.numpy(), name] = RULERS[name].distance(change)
    return table


def kendall(values: np.ndarray) -> np.ndarray:
    r"""Return how alike every two rulers order solvers, for each person: Kendall's tau-b.

    .. math:: \tau = \frac{n_+ - n_-}{\sqrt{n_r\, n_q}}

    Of all pairs of solvers, n_+ are ordered alike by both rulers, n_-
    the opposite way; n_r and n_q are those that a ruler does not tie.

    Arguments:
        values: Of S solvers, N people and R rulers, with shape (S, N,
            R).
    Returns: From -1 to 1, with shape (N, R, R); NaN where a solver
        has no value, or a ruler ties all solvers.
    Raises: ValueError: values are not (S, N, R), with two solvers or
        more.
    Example:
        Three solvers, two rulers. They agree on two of three pairs,
        and say the opposite of the third:

        >>> kendall(np.array([[[1.0, 10.0]], [[2.0, 30.0]], [[3.0, 20.0]]])).round(3)
        array([[[1.   , 0.333],
                [0.333, 1.   ]]])
    """
    if values.ndim != 3 or len(values) < 2:
        raise ValueError(
            f"values have shape {values.shape}, expected (S, N, R): two solvers or more, "
            "people, and rulers."
        )
    first, second = np.triu_indices(len(values), 1)
    signs = np.sign(values[first] - values[second])  # (pairs, N, R)
    alike = np.einsum("pnr,pnq->nrq", signs, signs)
    untied = np.abs(signs).sum(0)
    with np.errstate(invalid="ignore"):
        return alike / np.sqrt(untied[:, :, None] * untied[:, None, :])
