"""The problem every solver gets, and the recommendation every solver returns."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method import classifier, flow
from lib.method.classifier import Classifier
from lib.method.data import Edges, Population
from lib.method.flow import CausalFlow
from lib.method.graph import Graph
from lib.method.limits import Interval, intersect
from lib.method.preferences import Preferences
from lib.method.scm import CausalModel

# effort of another category, as of a change by 1 where the range is 4; chosen here
CATEGORY_COST = 0.25
MAX_ABS_X = 10_000  # standard deviations from the mean; beyond, numbers overflow
N_ASKED = 1_000  # people for whom classifier and flow are tried when a problem is made
ROUNDING = 1e-4  # by which an action has to be inside its bounds to count as found


def is_valid(log_odds: Tensor, margin: float = 0.0, tolerance: float = 0.0) -> Tensor:
    """Return whether the decision after an action is positive, with shape (*,).

    Arguments:
        log_odds: After the action, with shape (*,).
        margin: Log-odds that are asked for.
        tolerance: By how much they must be exceeded, so that rounding
            does not decide.
    """
    return log_odds >= margin + tolerance


def is_plausible(gain: Tensor, slack: float = 0.0, tolerance: float = 0.0) -> Tensor:
    """Return whether a person is as plausible after an action as before, with shape (*,).

    Arguments:
        gain: Change of the log-density, in nats, with shape (*,).
        slack: Nats that may be given up.
        tolerance: As for `is_valid`.
    """
    return gain >= -slack + tolerance


@dataclass(frozen=True, eq=False)
class Problem:
    """Hold who applies, who decides, and the flow that measures plausibility.

    Arguments:
        population: Whom recourse is for.
        classifier: The decision h, for the population's features.
        flow: Fitted to the population, under its graph.
    Raises: ValueError: features, graphs or dtypes differ; the
        classifier fails for these people, or contradicts their
        labels; the flow was fitted in other units.
    """

    population: Population
    classifier: Classifier
    flow: CausalFlow

    def __post_init__(self) -> None:
        population = self.population
        if not hasattr(self.classifier, "features"):
            raise ValueError(
                f"Expected a Classifier, got {type(self.classifier).__name__}: "
                "Classifier.of(model, population) makes one of it."
            )
        if self.classifier.features != population.features:
            raise ValueError(
                f"The classifier knows {', '.join(self.classifier.features)}; the "
                f"population has {', '.join(population.features)}. Expected the same in "
                "one order: fit it to this population."
            )
        if self.flow.graph != population.graph:
            raise ValueError(
                "The flow was fitted under another graph: "
                f"{_differing(population.graph, self.flow.graph)} differ. Fit it under "
                "the population's; or take problem.with_flow(flow)."
            )
        x = population.x["recourse/train"][:N_ASKED]
        checks.people("The population", x, population.features, self.flow.dtype)
        y = population.y.get("recourse/train", x.new_zeros(0))[:N_ASKED]
        self.classifier.check(population.to_feasible(x), y)
        self.flow.check_units(x)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        label: str,
        kinds: Mapping[str, str],
        edges: Edges = None,
        seed: int = 0,
        n_epochs: int | None = None,
        name: str = "own data",
        progress: Callable[[range], Iterable[int]] | None = None,
        classifier_model: Any = None,
        whole: Sequence[str] | None = None,
        atoms: Sequence[str] = (),
        n_bins: int | None = None,
    ) -> "Problem":
        """Return the problem of a table of past applicants; classifier and flow are fitted.

        Arguments:
            frame, label, kinds, edges, seed, name, whole, atoms: As
                for `Population.from_frame`.
            n_epochs: Of both fits; None: their defaults.
            progress: Wraps the range of epochs; None: progress bars.
            classifier_model: A fitted model that decides, as for
                `Classifier.of`; None: a network is fitted.
            n_bins: Of the flow's splines, as for `CausalFlow`; 0: it
                is affine. None: 8 where there are categories, else 0.
        Raises: ValueError: as `Population.from_frame`, `Classifier.of`
            and `Problem`.
        """
        population = Population.from_frame(
            frame, label, kinds, edges, name, whole, seed, atoms
        )
        how: dict[str, Any] = {"seed": seed, "progress": progress}
        if n_epochs is not None:
            how["n_epochs"] = n_epochs
        if classifier_model is None:
            h: Classifier = classifier.fit(population, **how)[0]
        else:
            h = Classifier.of(classifier_model, population)
        if n_bins is None:
            n_bins = 8 if population.categories else 0
        x, x_validation = population.x["flow/train"], population.x["flow/validation"]
        density, _ = flow.fit(population.graph, x, x_validation, n_bins=n_bins, **how)
        problem = cls(population, h, density)
        decisions = problem.accepts(population.x["recourse/train"])
        if decisions.all() or not decisions.any():
            all_get = "accepts" if decisions.all() else "refuses"
            warnings.warn(
                f"The classifier {all_get} all {len(decisions)} people of the training "
                "split. A model of yours must take the table's columns, in its units; one "
                "that is fitted here may need more epochs; or choose another threshold, "
                "classifier.with_threshold.",
                stacklevel=2,
            )
        return problem

    @property
    def causal_model(self) -> CausalModel:
        """The true SCM where it is known, else the flow.

        Searches act in it. Networks, `discretise` and pruning act in
        the flow, as those who do not know the truth must.
        """
        return self.flow if self.population.truth is None else self.population.truth

    def resolve_model(self, model: CausalModel | None) -> CausalModel:
        """Return the causal model in which actions take effect; None: the problem's.

        Raises: ValueError: its graph is not the flow's.
        """
        if model is None:
            return self.causal_model
        if model.graph != self.flow.graph:
            raise ValueError(
                "The causal model and the flow have different graphs: "
                f"{_differing(self.flow.graph, model.graph)} differ. Search in a model "
                "with the flow's graph, or fit the flow under the model's."
            )
        return model

    @cached_property
    def range(self) -> Tensor:
        """Range of each standardised feature among training people, with shape (D,)."""
        return self.population.high - self.population.low

    def out_of_range(self, x: Tensor) -> Tensor:
        """Return by how many ranges features (*, D) lie outside theirs, in sum, (*,).

        Immutable features may lie anywhere.
        """
        population = self.population
        beyond = (x - population.high).relu() + (population.low - x).relu()
        kinds = population.kinds.values()
        is_immutable = torch.tensor([kind == "immutable" for kind in kinds])
        return (beyond / self.range.masked_fill(is_immutable, torch.inf)).sum(-1)

    def with_limits(self, phrases: Mapping[str, str]) -> "Problem":
        """Return the problem with more limits for those who state none.

        Arguments:
            phrases: As for `Population.with_limits`.
        """
        return replace(self, population=self.population.with_limits(phrases))

    def with_flow(self, flow: CausalFlow) -> "Problem":
        """Return the problem with another flow, and its graph."""
        population = replace(self.population, graph=flow.graph)
        return replace(self, population=population, flow=flow)

    def refused(self, split: str) -> Tensor:
        """Return the people of a recourse split that h refuses, with shape (N, D).

        Whole numbers are spread, so that equal records differ here.
        `population.to_feasible` of the result makes them equal again,
        so that the grid and networks give them one answer.

        Arguments:
            split: "train", "validation" or "test".
        """
        checks.one_of("recourse split", [split], ("train", "validation", "test"))
        x = self.population.x[f"recourse/{split}"]
        return x[~self.accepts(x)]

    def accepts(self, x: Tensor) -> Tensor:
        """Return whether h accepts each person (*, D), with shape (*,)."""
        return self.classifier.accepts(self.population.to_feasible(x))

    def log_odds(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,); see `accepts`."""
        return self.classifier.logit(self.population.to_feasible(x))

    def outcome(self, x: Tensor, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-odds after an action, and the gain of log-density, each (*, N).

        `is_valid` and `is_plausible` read them.
        """
        return self.log_odds(x_cf), self.flow.log_prob(x_cf) - self.flow.log_prob(x)

    def check(self, x: Tensor, preferences: Preferences) -> None:
        """Raise ValueError unless x are refused people (N, D) with these preferences."""
        self.check_people(x)
        expected = (*x.shape[:-1], len(self.population.actionable))
        checks.shape("preferences.scores", preferences.scores, expected)

    def check_people(self, x: Tensor) -> None:
        """Raise ValueError unless x are refused people (N, D), of the flow's dtype."""
        features = self.population.features
        checks.people("x", x, features, self.flow.dtype)
        if x.ndim != 2 or len(x) == 0:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: expected a row a person, (N, "
                f"{len(features)}), and at least one of them. Is nobody refused? Then "
                "nobody needs recourse."
            )
        if (is_far := x.abs() > MAX_ABS_X).any():
            row, j = is_far.nonzero()[0].tolist()
            raise ValueError(
                f"{features[j]} of row {row} is {x[row, j].item():,.0f} standard "
                f"deviations from the mean: expected {MAX_ABS_X:,} at most. Is it in "
                "another unit?"
            )
        checks.refused(self.accepts(x))

    def check_gradient(self, solver: str) -> None:
        """Raise ValueError unless torch can differentiate the classifier.

        Arguments:
            solver: What the message calls the caller.
        """
        if not self.classifier.has_gradient:
            raise ValueError(
                f"{solver} needs the gradient of the classifier, and this one has none. "
                'Search on a grid: Grid(problem), or solver="grid" of recommend.'
            )

    def interval(self, x: Tensor, preferences: Preferences) -> Interval:
        """Return to what values each person may set each actionable feature, (*, N, K).

        That is the range of the training people, cut by the person's
        limits, or by the population's where the person states none.

        Raises: ValueError: limits do not fit whole numbers or
            categories.
        """
        population, columns = self.population, self.population.actionable_index
        is_allowed = preferences.is_actionable
        limits = population.limits
        if preferences.limits is not None:
            limits = preferences.limits.fill_from(limits)
        if limits is None:
            ends = torch.stack([population.low, population.high])[:, columns].to(x)
            low, high = ends[:, None].expand(2, *is_allowed.shape)
            return Interval(is_allowed, low, high)
        limits.check(population.actionable, population.categories)
        is_whole = population.is_whole[columns]
        if (is_whole & (limits.step.nan_to_num() % 1 != 0)).any():
            raise ValueError(
                "Whole numbers have a step with a fraction: expected 1 or another whole "
                "number."
            )
        return intersect(
            is_allowed=is_allowed,
            now=population.to_feasible(x)[..., columns],
            low=population.to_feasible(population.low)[columns],
            high=population.to_feasible(population.high)[columns],
            limits=limits,
            is_whole=is_whole,
            mean=population.mean[columns].double(),
            std=population.std[columns].double(),
        )

    def discretise(self, x: Tensor, recommendation: "Recommendation") -> "Recommendation":
        """Return the recommendation as people can carry it out, in whole numbers.

        Consequences follow by the flow. Features of people whose
        changes all vanish by the rounding stay as they are, though
        they count as acted on.

        Arguments:
            x: Refused people, with shape (N, D).
            recommendation: Each part with shape (*, N, D).
        """
        population, is_acted = self.population, recommendation.is_acted
        x = x.expand_as(recommendation.values)
        feasible = population.round_counterfactual(x, recommendation.values)
        values = torch.where(is_acted, feasible, x)
        x_cf = self.flow.counterfactual(x, is_acted, values)
        is_moved = (values != x).any(-1, keepdim=True)
        x_cf = torch.where(is_moved, population.round_counterfactual(x, x_cf), x)
        return Recommendation(is_acted, values, x_cf)

    def action_cost(
        self, x: Tensor, m: Tensor, a: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        r"""Return the cost of each person's action, with shape (*,).

        .. math:: c = \frac1K \sum_j w_j\, m_j\, (x_j - a_j)^2 / \text{range}_j

        Another category costs `CATEGORY_COST`, whichever it is.

        Arguments:
            x, m, a: Features before, mask and values of the K
                actionable features, each with shape (*, K).
            weights: With shape (*, K); None: 1, the reported cost.
        """
        effort = self.effort(x, m, a)
        return (effort if weights is None else weights * effort).mean(-1)

    def effort(self, x: Tensor, m: Tensor, a: Tensor) -> Tensor:
        """Return the unweighted cost of each change, (*, K); see `action_cost`."""
        squares = m * (x - a).square() / self._actionable(self.range, x)
        return self._with_categories(squares, x, m, a)

    def relative_change(self, x: Tensor, m: Tensor, a: Tensor) -> Tensor:
        """Return the size of each change as a part of the feature's range, (*, K).

        Another category counts as `CATEGORY_COST`, whichever it is.

        Arguments:
            x, m, a: As for `action_cost`.
        """
        sizes = m * (x - a).abs() / self._actionable(self.range, x)
        return self._with_categories(sizes, x, m, a)

    def _actionable(self, of_features: Tensor, x: Tensor) -> Tensor:
        """Return the entries (K,) of the actionable features, of the dtype of x."""
        return of_features[self.population.actionable_index].to(x)

    def _with_categories(self, changes: Tensor, x: Tensor, m: Tensor, a: Tensor) -> Tensor:
        """Return changes (*, K), those of categories replaced by `CATEGORY_COST`."""
        population = self.population
        if not population.categories:
            return changes
        names = population.actionable
        is_category = torch.tensor([name in population.categories for name in names])
        std, mean = (
            self._actionable(population.std, x),
            self._actionable(population.mean, x),
        )
        is_another = (x * std + mean).round() != (a * std + mean).round()
        return torch.where(is_category, m * CATEGORY_COST * is_another.to(x), changes)

    def cost_of(
        self, x: Tensor, recommendation: "Recommendation", weights: Tensor | None = None
    ) -> Tensor:
        """Return the `action_cost` of recommendations, with shape (*, N)."""
        columns = self.population.actionable_index
        m, a = recommendation.is_acted[..., columns], recommendation.values[..., columns]
        return self.action_cost(x[..., columns], m, a, weights)


def _differing(one: Graph, other: Graph) -> str:
    """Return in words where two graphs over the same features differ."""
    names = [
        name
        for name, causes in one.parents.items()
        if set(causes) != set(other.parents.get(name, ()))
    ]
    return f"the causes of {', '.join(names)}" if names else "the order of the features"


@dataclass(frozen=True)
class Recommendation:
    """Hold what each person is recommended to do, and what they would then look like.

    Arguments:
        is_acted: True where a person acts, with shape (N, D); of an
            ensemble, (M, N, D).
        values: What features are set to, standardised; today's value
            where nobody acts.
        x_cf: Features after the action and what follows from it.
    Raises: ValueError: shapes differ, or is_acted is no mask.
    """

    is_acted: Tensor
    values: Tensor
    x_cf: Tensor

    def __post_init__(self) -> None:
        if self.is_acted.dtype != torch.bool:
            raise ValueError(f"is_acted must be of bool, got {self.is_acted.dtype}.")
        checks.shape("values", self.values, self.is_acted.shape)
        checks.shape("x_cf", self.x_cf, self.is_acted.shape)

    @property
    def has_recourse(self) -> Tensor:
        """Whether anything is recommended, with shape (N,) or (M, N)."""
        return self.is_acted.any(-1)

    def __getitem__(self, key: Any) -> "Recommendation":
        """Return the recommendations at this index; the leading axes are a tensor's."""
        return Recommendation(self.is_acted[key], self.values[key], self.x_cf[key])


class Solver(Protocol):
    """Anything that recommends an action to each person: all solvers have this shape."""

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return a recommendation for each of these refused people.

        Arguments:
            x: With shape (N, D).
            preferences: Theirs, with scores (N, K).
        """
        ...


@dataclass(frozen=True)
class PrecomputedSolver:
    """Hold what was recommended to some people; a solver that returns it again."""

    recommendation: Recommendation

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return what is known, whoever asks.

        Raises: ValueError: these are other people.
        """
        checks.shape("recommendation.values", self.recommendation.values, x.shape)
        return self.recommendation


def scatter_to_features(values: Tensor, columns: list[int], n_features: int) -> Tensor:
    """Return values (*, K) of some columns placed among all D, zero elsewhere."""
    zeros = values.new_zeros(*values.shape[:-1], n_features)
    return zeros.index_copy(-1, torch.tensor(columns), values)


def check_bounds(margin: float, slack: float) -> None:
    """Raise ValueError unless these state what an action must reach."""
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin is {margin!r}, expected log-odds, zero or more.")
    if not slack > -math.inf:
        raise ValueError(
            f"slack is {slack!r}, expected nats: by how much the log-density may fall."
        )
