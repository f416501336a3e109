"""Where a dialogue moves: in a person's features, or in their actions in a causal model.

Both are asked the same things: what may be set (`free`, (N, D)), what comes of it
(`outcome`), whether that is acceptable (`accepts`), and how far the decision is
(`log_odds`). So the dialogue of `lib.beyond.hare.hare` is written once.
"""

import copy
import math
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor
from zuko.transforms import Transform

from lib import checks
from lib.method.classifier import Classifier
from lib.method.preferences import Preferences
from lib.method.problem import ROUNDING, Problem, Recommendation, is_plausible, is_valid
from lib.method.scm import CausalModel

# shares of the training people below the least and above the greatest value that a
# proposal reaches: outliers would stretch the range
RARE = 0.005
PARTS = ("is_acted", "values", "x_cf")  # of a recommendation


class Features:
    """The space of HARE: features with values in [0, 1], and nothing follows from anything.

    Arguments:
        classifier: Which decides.
        x: Refused people, with shape (N, D).
        is_free: Which features may be set, with shape (D,), bool.
        is_held: Whether outcomes are held to [0, 1] and to what is free. The released
            code of the paper does neither.
    Raises: ValueError: nothing is free, or someone is accepted already.
    Source: TMLR 2025, OpenReview 56EBglCFvx.
    Example:
        >>> h = Classifier(("income", "age"), lambda x: x[:, 0] - 0.5)
        >>> x = torch.zeros(1, 2, dtype=torch.float64)
        >>> space = Features(h, x, torch.tensor([True, False]))
        >>> space.outcome(x == 0, x + 0.7).x_cf
        tensor([[0.7000, 0.0000]], dtype=torch.float64)
    """

    def __init__(
        self, classifier: Classifier, x: Tensor, is_free: Tensor, is_held: bool = True
    ) -> None:
        checks.people("x", x, classifier.features)
        checks.refused(classifier.accepts(x))
        checks.shape("is_free", is_free, x.shape[-1:])
        if not is_free.any():
            raise ValueError("No feature is free: expected one or more that may be set.")
        self.classifier, self.x, self.is_held = classifier, x, is_held
        self.free = is_free.expand_as(x)
        self.low, self.high = torch.zeros_like(x[0]), torch.ones_like(x[0])
        self.span = torch.ones_like(x[0])

    def of(self, people: Tensor) -> "Features":
        """Return the space of some people, by their rows; they may come several times."""
        some = copy.copy(self)
        some.x, some.free = self.x[people], self.free[people]
        return some

    def outcome(self, is_acted: Tensor, values: Tensor) -> Recommendation:
        """Return features as they are set, each part with shape (*, N, D)."""
        if not self.is_held:
            return Recommendation(values != self.x, values, values)
        x_cf = torch.where(is_acted & self.free, _within(self, values), self.x)
        return Recommendation(x_cf != self.x, x_cf, x_cf)

    def log_odds(self, values: Tensor) -> Tensor:
        """Return log-odds if all that is free is set to values, with shape (*, N)."""
        return self.classifier.logit(torch.where(self.free, values, self.x))

    def accepts(self, candidates: Recommendation) -> Tensor:
        """Return whether candidates overturn the decision, with shape (*, N)."""
        return self.classifier.accepts(candidates.x_cf)


class Actions:
    """Actions in a causal model: what a person sets, and what follows from it.

    A candidate is acceptable if it acts on nothing that is not free, its log-odds
    reach the margin, and its outcome is as plausible as the person is now, both by so
    much that rounding cannot take it back (`problem.is_valid`). Of two candidates the
    person compares the outcomes, in standard deviations.

    Arguments:
        problem: Its flow says what is plausible.
        x: Refused people, with shape (N, D).
        preferences: What they can do; for people who were not asked, everything.
        margin: Log-odds that a candidate must have, zero or more.
        model: Where actions take effect; None: the problem's flow.
    Raises: ValueError: x or preferences do not fit the problem, the margin is below
        zero, or the model has another graph than the flow.
    """

    def __init__(
        self,
        problem: Problem,
        x: Tensor,
        preferences: Preferences,
        margin: float = 0.0,
        model: CausalModel | None = None,
    ) -> None:
        problem.check(x, preferences)
        if not margin >= 0:
            raise ValueError(f"margin is {margin!r}, expected log-odds, zero or more.")
        self.problem, self.x, self.margin = problem, x, margin
        self.model = problem.flow if model is None else problem.resolve_model(model)
        self.free = torch.zeros_like(x, dtype=torch.bool)
        self.interval = problem.interval(x, preferences)
        self.free[:, problem.population.actionable_index] = self.interval.is_allowed
        people = problem.population.x["recourse/train"].double()
        ends = torch.tensor([RARE, 1 - RARE], dtype=people.dtype)
        self.low, self.high = torch.quantile(people, ends, dim=0).to(x)
        self.span = self.high - self.low
        with torch.no_grad():
            self._noise = self.model.abduct(x)
            self._log_p = problem.flow.log_prob(x)

    def of(self, people: Tensor) -> "Actions":
        """Return the space of some people, by their rows; they may come several times."""
        some = copy.copy(self)
        vars(some).pop("_cached", None)  # those are of all people, not of these
        some.x, some.free = self.x[people], self.free[people]
        some.interval = self.interval[people]
        some._noise, some._log_p = self._noise[people], self._log_p[people]
        return some

    @cached_property
    def _cached(self) -> dict[int, Transform]:
        """The flow's transforms of these people that no action changes, by column."""
        flow = self.problem.flow
        affected = flow.graph.affected_by(self.problem.population.actionable_index)
        unaffected = [j for j in range(self.x.shape[-1]) if j not in affected]
        return flow.transforms(self.x, [*unaffected, *flow.graph.roots_within(affected)])

    def outcome(self, is_acted: Tensor, values: Tensor) -> Recommendation:
        """Return what follows from actions, (*, N, D) each; whole where features are."""
        population = self.problem.population
        values = _within(self, values)
        if self.interval.step is not None:
            columns, values = population.actionable_index, values.clone()
            values[..., columns] = self.interval.project(values[..., columns])
        values = population.round_counterfactual(self.x, values)
        is_acted = is_acted & self.free & (values != self.x)
        values = torch.where(is_acted, values, self.x)
        before, noise = (tensor.expand_as(values) for tensor in (self.x, self._noise))
        x_cf = self.model.counterfactual(before, is_acted, values, noise)
        return Recommendation(
            is_acted, values, population.round_counterfactual(before, x_cf)
        )

    def log_odds(self, values: Tensor) -> Tensor:
        """Return log-odds if all that is free is set to values, with shape (*, N)."""
        before, noise = (tensor.expand_as(values) for tensor in (self.x, self._noise))
        free = self.free.expand_as(values)
        x_cf = self.model.counterfactual(before, free, values, noise)
        return self.problem.log_odds(x_cf)

    def accepts(self, candidates: Recommendation) -> Tensor:
        """Return whether candidates are allowed, valid with the margin, and plausible."""
        log_odds = self.problem.log_odds(candidates.x_cf)
        cached = self._cached if candidates.x_cf.shape == self.x.shape else {}
        log_p_terms = self.problem.flow.log_prob_terms(candidates.x_cf, cached=cached)
        gain = log_p_terms.sum(-1) - self._log_p
        valid = is_valid(log_odds, self.margin, tolerance=ROUNDING)
        plausible = is_plausible(gain, tolerance=ROUNDING)
        return valid & plausible & ~(candidates.is_acted & ~self.free).any(-1)


Space: TypeAlias = Features | Actions


def walk_back(
    space: Space, candidates: Recommendation, eps: float = 1e-6
) -> tuple[Recommendation, Tensor]:
    """Return candidates moved towards the factual values until they are only just good.

    The way from the factual values to the candidate is halved again and again; the end
    that is kept is always acceptable. Where the way crosses the boundary more than
    once, the crossing that is found need not be the nearest. A candidate that is not
    acceptable is returned as it is.

    Arguments:
        candidates: Each part with shape (*, N, D).
        eps: The walk ends within this length of what is not acceptable, in the units
            of the values.
    Returns: The candidates, and whether each is acceptable, with shape (*, N).
    Source: BoundaryPointSearch of HARE.
    Example:
        The classifier accepts from 0.5 on:

        >>> h = Classifier(("income",), lambda x: x[:, 0] - 0.5)
        >>> x = torch.zeros(1, 1, dtype=torch.float64)
        >>> space = Features(h, x, torch.tensor([True]))
        >>> closer, is_good = walk_back(space, space.outcome(x == 0, x + 0.9))
        >>> round(float(closer.x_cf), 5), is_good
        (0.5, tensor([True]))
    """
    checks.positive(eps=eps)
    is_good = space.accepts(candidates)
    some = space.of(is_good.nonzero()[:, -1])  # only what is good has a way to go
    good = candidates[is_good]
    way = good.values - some.x
    longest = float(way.abs().max()) if way.numel() else 0.0
    n_halvings = max(0, math.ceil(math.log2(max(longest / eps, 1.0)))) + 1
    refused, accepted = torch.zeros_like(way[:, :1]), torch.ones_like(way[:, :1])
    for _ in range(n_halvings):
        middle = (refused + accepted) / 2
        candidate = some.outcome(good.is_acted, some.x + middle * way)
        is_enough = some.accepts(candidate)[:, None]
        accepted = torch.where(is_enough, middle, accepted)
        refused = torch.where(is_enough, refused, middle)
    nearest = some.outcome(good.is_acted, some.x + accepted * way)
    nearest = chosen(accepted[:, 0] < 1, nearest, good)
    closer = [getattr(candidates, name).clone() for name in PARTS]
    for tensor, name in zip(closer, PARTS, strict=True):
        tensor[is_good] = getattr(nearest, name)
    return Recommendation(*closer), is_good


def chosen(which: Tensor, one: Recommendation, other: Recommendation) -> Recommendation:
    """Return one recommendation where `which` is true, a mask (*, N), else the other."""
    return Recommendation(
        *(
            torch.where(which[..., None], getattr(one, name), getattr(other, name))
            for name in PARTS
        )
    )


def _within(space: Space, values: Tensor) -> Tensor:
    """Return values (*, N, D) between low and high, or between these and the factual one.

    Nobody is moved because they stand outside already.
    """
    low, high = space.low.minimum(space.x), space.high.maximum(space.x)
    return values.maximum(low).minimum(high)
