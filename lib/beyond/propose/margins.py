"""Margins chosen without the truth, and causal models that differ from the flow.

A recommendation that a search found through a fitted flow lies on the
bound of what the flow calls valid and plausible. In truth it may lie
beyond it. A search can ask for more: log-odds above the threshold
(`margin`), and a rise of the log-density (`slack` below zero). How
much more is chosen by flows that were refitted to other people, in
place of the truth.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib import checks
from lib.method import metrics
from lib.method.flow import CausalFlow
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.scm import SCM, CausalModel

NORMAL = stats.norm()
BOUNDS = ["margin", "slack"]  # columns: what was asked for
OUTCOMES = ["has_recourse", "valid", "plausible", "joint", "cost"]  # of `per_person`
MAX_ABS_NOISE = 37.0  # standard normal noise that still has a probability in float64


def outcomes(
    problem: Problem,
    models: Mapping[str, CausalModel],
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
) -> pd.DataFrame:
    """Return what recommended actions lead to in several causal models.

    Arguments:
        models: By name, for instance as `flow.load_all` gives them.
        x: Refused people, with shape (N, D).
        preferences: Theirs.
        recommendation: One for each person, each part (N, D).
    Returns: A row for each model and person: model, person (the row
        of x), and has_recourse, valid, plausible, joint, cost, as
        `metrics.per_person` has them. Plausible is always by the
        problem's own flow; joint is valid, plausible, and something
        was recommended.
    Raises: ValueError: there is no model; a model's graph is not the
        flow's; otherwise as `metrics.per_person`.
    """
    checks.not_empty("models", models)
    metrics.check_one_each(problem, x, recommendation)
    is_acted, values = recommendation.is_acted, recommendation.values
    tables = []
    for name, model in models.items():
        x_cf = problem.resolve_model(model).counterfactual(x, is_acted, values)
        x_cf = problem.population.round_counterfactual(x, x_cf)
        there = Recommendation(is_acted, values, x_cf)
        people = metrics.per_person(problem, x, preferences, there)[OUTCOMES]
        people.insert(0, "model", name)
        people.insert(1, "person", np.arange(len(x)))
        people["joint"] &= people["has_recourse"]
        tables.append(people)
    return pd.concat(tables, ignore_index=True)


def choose(people: pd.DataFrame) -> tuple[pd.DataFrame, tuple[float, float]]:
    """Return how each pair of margin and slack does, and the pair that the rule chooses.

    The rule, one standard error: of all pairs whose mean joint share
    is at most one standard error below the highest, the one with the
    lowest mean cost over people who have a recommendation. Each
    person counts once, with the mean over their rows; the standard
    error is that of the best pair, over people.

    Arguments:
        people: As `outcomes` gives them for models in place of the
            truth, with the columns margin and slack: what was asked
            for. Every pair must be of the same people.
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


class PartlyResampled(CausalModel):
    r"""A causal model in which some of the noise has changed by the time somebody acts.

    .. math:: z' = \sqrt{1 - s^2}\, z + s\, \epsilon, \quad \epsilon \sim N(0, 1)

    z is a person's noise, as standard normal. A flow's noise is that
    already. The noise of a true equation becomes so by its quantile,
    and is turned back: its distribution stays as it is. Discrete
    noise (gender's) is kept.

    New noise shows in downstream effects only. What is drawn for a
    person depends on the seed and on their features before the action
    alone, not on who is beside them.

    Arguments:
        model: A flow or a true SCM.
        share: s, from 0 (the model as it is) to 1 (all is new).
        seed: Of the draws, a whole number, zero or more.
    Raises: ValueError: the model is of another kind, or share or seed
        are out of range.
    """

    def __init__(self, model: CausalModel, share: float, seed: int) -> None:
        if not isinstance(model, SCM | CausalFlow):
            raise ValueError(
                f"model is a {type(model).__name__}, expected an SCM or a CausalFlow: the "
                "distribution of its noise must be known."
            )
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share!r}, expected a number from 0 to 1.")
        if seed < 0:
            raise ValueError(f"seed is {seed!r}, expected a whole number, zero or more.")
        self.graph, self.model, self.share, self.seed = model.graph, model, share, seed

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless the model below takes x; see `CausalModel.check`."""
        self.model.check(name, x)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features, before they act."""
        return self.model.abduct(x)

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j (*,) from its parents (*, P) and its noise (*,)."""
        return self.model.feature(j, x_parents, noise)

    def counterfactual_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return noise (*, D) of which a share is drawn anew."""
        keep = float(np.sqrt(1 - self.share**2))
        fresh = self.share * self._draw(x)
        if isinstance(self.model, CausalFlow):
            return keep * noise + torch.from_numpy(fresh).to(noise)
        assert isinstance(self.model, SCM)
        columns = list(noise.unbind(-1))
        for j, equation in enumerate(self.model.equations.values()):
            distribution = equation.noise
            if hasattr(distribution.dist, "pdf"):
                u = noise[..., j].detach().double().numpy()
                z = _match_quantiles(u, distribution, NORMAL)
                z = keep * z.clip(-MAX_ABS_NOISE, MAX_ABS_NOISE) + fresh[..., j]
                u = _match_quantiles(z, NORMAL, distribution)
                columns[j] = torch.from_numpy(u).to(noise)
        return torch.stack(columns, -1)

    def _draw(self, x: Tensor) -> np.ndarray:
        """Return standard normal draws (*, D), keyed by the seed and features."""
        bits = (x.detach().double().numpy() + 0.0).view(np.uint64)  # -0 is 0
        key = np.full(x.shape[:-1], self.seed, np.uint64)
        n_features = bits.shape[-1]
        for j in range(n_features):
            key = _split_mix(key ^ bits[..., j])
        drawn = np.stack(
            [_split_mix(key ^ np.uint64(j + 1)) for j in range(n_features)], -1
        )
        return NORMAL.ppf(((drawn >> np.uint64(11)) + 0.5) / 2.0**53)


def _match_quantiles(
    values: np.ndarray,
    distribution: stats.distributions.rv_frozen,
    other: stats.distributions.rv_frozen,
) -> np.ndarray:
    """Return the other distribution's values at the same quantiles; exact in both tails."""
    upper = distribution.sf(values) < 0.5
    high, low = other.isf(distribution.sf(values)), other.ppf(distribution.cdf(values))
    return np.where(upper, high, low)


def _split_mix(key: np.ndarray) -> np.ndarray:
    """Return 64 bits that look drawn at random: one step of the generator SplitMix64."""
    with np.errstate(over="ignore"):
        key = key + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
