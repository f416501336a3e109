"""Whom actions help in another model than the flow, and margins chosen without the truth.

A recommendation that a search found through a fitted flow lies on the
bound of what the flow calls valid and plausible. In truth it may lie
beyond it. A search can ask for more: log-odds above the threshold
(`margin`), and a rise of the log-density (`slack` below zero). How
much more is chosen by flows that were refitted to other people, in
place of the truth.
"""

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib import checks
from lib.method import metrics
from lib.method.flow import CausalFlow
from lib.method.problem import Problem, Recommendation, is_plausible, is_valid
from lib.method.scm import SCM, is_discrete

NORMAL = stats.norm()
BOUNDS = ["margin", "slack"]  # columns: what was asked for
# of a quantile, so that noise stays finite: seven standard deviations
SMALLEST_TAIL = 1e-12


def is_helped(
    problem: Problem,
    model: SCM | CausalFlow,
    x: Tensor,
    recommendation: Recommendation,
) -> np.ndarray:
    """Return whom recommended actions help in a causal model, with shape (N,).

    Helped is who is accepted after the action, at a profile that is as
    dense as before. Where the model is the truth this is *helped in
    truth*: true consequences and true density.

    Arguments:
        model: The true SCM or a flow, which says what follows from the
            actions, and how dense a profile is.
        x: Refused people, with shape (N, D).
        recommendation: One for each person, each part (N, D).
    Raises: ValueError: as `metrics.check_one_each`.
    """
    metrics.check_one_each(problem, x, recommendation)
    is_acted, values = recommendation.is_acted, recommendation.values
    x_cf = model.counterfactual(x, is_acted, values)
    x_cf = problem.population.round_counterfactual(x, x_cf)
    gain = model.log_prob(x_cf) - model.log_prob(x)
    is_good = is_valid(problem.log_odds(x_cf)) & is_plausible(gain)
    return (is_good & recommendation.has_recourse).numpy()


def choose(people: pd.DataFrame) -> tuple[pd.DataFrame, tuple[float, float]]:
    """Return how each pair of margin and slack does, and the pair that the rule chooses.

    The rule, one standard error: of all pairs whose mean joint share
    is at most one standard error below the highest, the one with the
    lowest mean cost over people who have a recommendation. Each
    person counts once, with the mean over their rows; the standard
    error is that of the best pair, over people.

    Arguments:
        people: A row for each pair, person, and model in place of the
            truth, with the columns margin and slack (what was asked
            for), person, joint (whether the person is helped there,
            or in what share of several models), has_recourse and
            cost. Every pair must be of the same people.
    Returns: A row a pair: margin, slack, joint, its standard error
        se, has_recourse, cost, and is_near, whether it is within one
        standard error of the best. Then the chosen margin and slack.
    Raises: ValueError: a column is missing, pairs are of different
        people, there are less than two people, or nobody has a
        recommendation.
    """
    needed = [*BOUNDS, "person", "joint", "has_recourse", "cost"]
    checks.one_of("column of people", needed, tuple(people.columns))
    by_person = people.groupby([*BOUNDS, "person"]).agg(
        joint=("joint", "mean"), has_recourse=("has_recourse", "mean"), n=("joint", "size")
    )
    n_rows = by_person["n"]
    if n_rows.unstack("person").isna().any(axis=None) or n_rows.nunique() != 1:
        raise ValueError(
            "The pairs of margin and slack are not of the same people and models: expected "
            "as many rows for each person at every pair."
        )
    by_pair = by_person.groupby(BOUNDS)
    table = by_pair["joint"].agg(joint="mean", se="sem")
    if table["se"].isna().any():
        raise ValueError("people has one person, expected at least two: no error is known.")
    table["has_recourse"] = by_pair["has_recourse"].mean()
    table["cost"] = people[people["has_recourse"]].groupby(BOUNDS)["cost"].mean()
    best = table.loc[table["joint"].idxmax()]
    table["is_near"] = table["joint"] >= best["joint"] - best["se"]
    near = table.loc[table["is_near"], "cost"].dropna()
    if near.empty:
        raise ValueError(
            "Nobody has a recommendation at the best pairs, so that none is cheapest. Can "
            "anybody be helped at a margin of zero?"
        )
    margin, slack = near.idxmin()
    return table.reset_index(), (float(margin), float(slack))


class PartlyResampled(SCM):
    r"""A true SCM in which some of the noise has changed by the time somebody acts.

    .. math:: z' = \sqrt{1 - s^2}\, z + s\, \epsilon, \quad \epsilon \sim N(0, 1)

    z is a person's noise, turned into standard normal noise by its
    quantile. z' is turned back, so that the distribution of the noise,
    and with it the density, stays as it is. Discrete noise (gender's)
    is kept. New noise shows in downstream effects only.

    Arguments:
        scm: The true SCM.
        share: s, from 0 (the model as it is) to 1 (all is new).
        seed: Of the draws, which are by row of x.
    Raises: ValueError: share is out of its range.
    """

    def __init__(self, scm: SCM, share: float, seed: int) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share!r}, expected a number from 0 to 1.")
        super().__init__(scm.equations, scm.mean, scm.std)
        self.share, self.seed = share, seed

    def counterfactual_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return noise (*, D) of which a share is drawn anew."""
        fresh = np.random.default_rng(self.seed).standard_normal(x.shape)
        after = noise.clone()
        for j, equation in enumerate(self.equations.values()):
            if is_discrete(equation):
                continue
            u = noise[..., j].detach().double().numpy()
            quantile = equation.noise.cdf(u).clip(SMALLEST_TAIL, 1 - SMALLEST_TAIL)
            z = np.sqrt(1 - self.share**2) * NORMAL.ppf(quantile)
            z += self.share * fresh[..., j]
            after[..., j] = torch.from_numpy(equation.noise.ppf(NORMAL.cdf(z)))
        return after
