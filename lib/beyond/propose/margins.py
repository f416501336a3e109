"""Margins chosen without the truth, and worlds that differ from it.

A recommendation that a search found through a fitted flow lies on the
bound of what the flow calls valid and plausible. In the true world it
may lie beyond it. A search can ask for more: log-odds above the
threshold (`margin`), and nats above today's log-density (`slack`,
below zero). How much more is chosen by flows that were refitted to
other people, and stand for the truth that nobody knows.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib.base import checks
from lib.method import metrics
from lib.method.flow import CausalFlow
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.scm import SCM
from lib.method.world import World

Law: TypeAlias = stats.distributions.rv_frozen
NORMAL: Law = stats.norm()
BOUNDS = ["margin", "slack"]  # the columns that say what was asked for
FATES = ["has_recourse", "valid", "plausible", "joint", "cost"]  # of `per_person`
FURTHEST = 37.0  # standard normal noise that still has a probability in float64


def carried_out(
    problem: Problem,
    worlds: Mapping[str, World],
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
) -> pd.DataFrame:
    """Return what becomes of recommendations in several worlds, a row a world and person.

    Columns: world, person (the row of x), has_recourse, valid,
    plausible, joint, cost; as `metrics.per_person` has them, of what
    the action leads to in that world. Plausible is always judged by
    the problem's own flow. joint is valid, plausible, and something
    was recommended.

    Arguments:
        worlds: By name, for instance as `flow.load_all` gives them.
        x: Refused people, with shape (N, D).
        preferences: Of the same people.
        recommendation: One for each person, each part (N, D).
    Raises: ValueError: there is no world; a world's graph is not the
        flow's; otherwise as `metrics.per_person`.
    """
    checks.not_empty("worlds", worlds)
    metrics.check_one_each(problem, x, recommendation)
    acts, values = recommendation.is_acted, recommendation.values
    parts = []
    for name, world in worlds.items():
        problem.check_world(world)
        x_cf = world.counterfactual(x, acts, values)
        there = Recommendation(acts, values, problem.population.settled(x, x_cf))
        people = metrics.per_person(problem, x, preferences, there)[FATES]
        people.insert(0, "world", name)
        people.insert(1, "person", np.arange(len(x)))
        people["joint"] &= people["has_recourse"]
        parts.append(people)
    return pd.concat(parts, ignore_index=True)


def choose(people: pd.DataFrame) -> tuple[pd.DataFrame, tuple[float, float]]:
    """Return how each pair of bounds does, and the pair that the rule chooses.

    The rule: find the pair with the highest mean joint share; take
    all pairs whose share is at most one standard error below it; of
    these, choose the one with the lowest mean cost over people who
    have a recommendation. Each person counts once, with the mean over
    their rows, and the standard error is that of the best pair's
    mean over people.

    Arguments:
        people: As `carried_out` gives them for worlds that stand for
            the truth, with the columns margin and slack: what the
            search asked for. Every pair must be of the same people.
    Returns: A row a pair: margin, slack, joint, its standard error
        se, has_recourse, cost, and is_near: is it within one standard
        error of the best? Then the chosen margin and slack.
    Raises: ValueError: a column is missing, pairs are of different
        people, there are less than two people, or nobody has a
        recommendation.
    """
    needed = [*BOUNDS, "person", "joint", "has_recourse", "cost"]
    checks.known("column of people", needed, tuple(people.columns))
    own = people.groupby([*BOUNDS, "person"]).agg(
        joint=("joint", "mean"), has_recourse=("has_recourse", "mean"), n=("joint", "size")
    )
    if own["n"].unstack("person").isna().any(axis=None) or own["n"].nunique() != 1:
        raise ValueError(
            "The pairs of margin and slack are not of the same people and worlds: expected "
            "as many rows for each person at every pair. Carry all of them out for the "
            "same people, in the same worlds."
        )
    by_pair = own.groupby(BOUNDS)
    table = by_pair["joint"].agg(joint="mean", se="sem")
    if table["se"].isna().any():
        raise ValueError("people has one person, expected at least two: no error is known.")
    table["has_recourse"] = by_pair["has_recourse"].mean()
    helped = people[people["has_recourse"]]
    table["cost"] = helped.groupby(BOUNDS)["cost"].mean()
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


class Renewed(World):
    r"""A world in which chance has partly changed by the time that somebody acts.

    .. math:: z' = \sqrt{1 - s^2}\, z + s\, \epsilon, \quad \epsilon \sim N(0, 1)

    z is a person's own noise, as standard normal. A flow's noise is
    that already. The noise of a true equation becomes so by its
    quantile, and is turned back: its law stays as it is. Noise that
    takes single values only (gender's) is kept.

    New noise shows where an action leads: in features that follow
    from one that is acted on. All others keep their value, as in any
    world. What chance brings to a person depends on the seed and on
    their features before the action alone, whoever else is asked.

    Arguments:
        world: Whose equations hold, a flow or a true SCM.
        share: s, from 0 (the world as it is) to 1 (all is new).
        seed: Of what chance brings, a whole number, zero or more.
    Raises: ValueError: the world is of another kind, or share or seed
        are out of range.
    """

    def __init__(self, world: World, share: float, seed: int) -> None:
        super().__init__(world.graph)
        if not isinstance(world, SCM | CausalFlow):
            raise ValueError(
                f"world is a {type(world).__name__}, expected an SCM or a CausalFlow: the "
                "law of its noise must be known."
            )
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share!r}, expected a number from 0 to 1.")
        if seed < 0:
            raise ValueError(f"seed is {seed!r}, expected a whole number, zero or more.")
        self.world, self.share, self.seed = world, share, seed

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless x can be handed to the world below; see `World.check`."""
        self.world.check(name, x)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features, before they act."""
        return self.world.abduct(x)

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j (*,) from its parents (*, P) and its own noise (*,)."""
        return self.world.feature(j, x_parents, noise)

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return noise as the world below has it, with shape (N, D)."""
        return self.world.draw_noise(n_people, rng)

    def noise_after(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return noise (*, D) of which a share was drawn anew; see `World.noise_after`."""
        keep = np.sqrt(1 - self.share**2)
        fresh = self.share * self._fresh(x)
        if isinstance(self.world, CausalFlow):
            return float(keep) * noise + torch.from_numpy(fresh).to(noise)
        assert isinstance(self.world, SCM)
        columns = list(noise.unbind(-1))
        for j, equation in enumerate(self.world.equations.values()):
            law = equation.noise
            if hasattr(law.dist, "pdf"):
                u = noise[..., j].detach().double().numpy()
                z = _translated(u, law, NORMAL).clip(-FURTHEST, FURTHEST)
                z = keep * z + fresh[..., j]
                columns[j] = torch.from_numpy(_translated(z, NORMAL, law)).to(noise)
        return torch.stack(columns, -1)

    def _fresh(self, x: Tensor) -> np.ndarray:
        """Return standard normal draws (*, D), from the seed and each person's bits."""
        bits = (x.detach().double().numpy() + 0.0).view(np.uint64)  # -0 is 0
        key = np.full(x.shape[:-1], self.seed, np.uint64)
        for j in range(bits.shape[-1]):
            key = _scrambled(key ^ bits[..., j])
        drawn = [_scrambled(key ^ np.uint64(j + 1)) for j in range(bits.shape[-1])]
        uniform = ((np.stack(drawn, -1) >> np.uint64(11)) + 0.5) / 2.0**53
        return NORMAL.ppf(uniform)


def _translated(value: np.ndarray, law: Law, other: Law) -> np.ndarray:
    """Return the quantiles of another law at the same levels; exact in both tails."""
    upper = law.sf(value) < 0.5
    return np.where(upper, other.isf(law.sf(value)), other.ppf(law.cdf(value)))


def _scrambled(key: np.ndarray) -> np.ndarray:
    """Return 64 bits that look drawn at random (the generator SplitMix64, one step)."""
    with np.errstate(over="ignore"):
        key = key + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
