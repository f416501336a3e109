"""The problem every solver gets, and the recommendation every solver returns."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method import classifier, flow
from lib.method.classifier import Classifier
from lib.method.flow import CausalFlow
from lib.method.frames import Edges
from lib.method.limits import Interval, Limits, narrowed
from lib.method.population import Population
from lib.method.preferences import Preferences
from lib.method.world import Graph, World

CHANGE = 0.25  # effort of another category: as a change by 1 over a range of 4; chosen here
FAR = 10_000  # standard deviations from the mean, beyond which numbers may overflow
ASKED = 1_000  # people by whom classifier and flow are looked at
ROUNDING = 1e-4  # log-odds, or nats: more than rounding moves either


def is_valid(log_odds: Tensor, margin: float = 0.0, surely: bool = False) -> Tensor:
    """Return whether the decision after an action is positive, with shape (*,).

    Everything that searches, recommends or judges asks this function,
    and `is_plausible`.

    Arguments:
        log_odds: Of a positive decision, with shape (*,).
        margin: How much of them is asked for.
        surely: Say yes only where rounding can't take it back, as
            solvers do of their answers.
    Source: section 5.1 of arXiv:2604.08030: h(x_cf) >= 0.5.
    Example:
        >>> log_odds = torch.tensor([2.0, 0.0, -0.1])
        >>> is_valid(log_odds), is_valid(log_odds, surely=True)
        (tensor([ True,  True, False]), tensor([ True, False, False]))
    """
    return log_odds >= margin + ROUNDING * surely


def is_plausible(gain: Tensor, slack: float = 0.0, surely: bool = False) -> Tensor:
    """Return whether a person is as plausible after an action as before, with shape (*,).

    Arguments:
        gain: Log-density after the action less that before, in nats,
            with shape (*,).
        slack: How much of it may be given up.
        surely: As for `is_valid`.
    Source: section 5.1 of arXiv:2604.08030: log p(x_cf) >= log p(x).
    Example:
        >>> gain = torch.tensor([0.1, 0.0, -0.1])
        >>> is_plausible(gain), is_plausible(gain, surely=True)
        (tensor([ True,  True, False]), tensor([ True, False, False]))
    """
    return gain >= -slack + ROUNDING * surely


def _differing(one: Graph, other: Graph) -> str:
    """Return in words where two graphs over the same features differ."""
    ours, theirs = one.parents, other.parents
    at = [name for name in ours if set(ours[name]) != set(theirs.get(name, ()))]
    return f"the causes of {', '.join(at)}" if at else "the order of the features"


@dataclass(frozen=True)
class Problem:
    """Hold who applies, who decides, and the flow that says what is plausible.

    Arguments:
        population: The applicants.
        classifier: Any `Classifier` of their features; solvers that
            need gradients say so.
        flow: Fitted to them.
    Raises: ValueError: the parts are for other features, in another
        order, under another graph, or for other kinds of numbers; the
        classifier gives probabilities or decisions, or refuses those
        whose label is positive; the flow was fitted in other units.
    Example:
        >>> problem.refused("test").shape
        torch.Size([2426, 7])
    """

    population: Population
    classifier: Classifier
    flow: CausalFlow

    def __post_init__(self) -> None:
        expected = self.population.features
        parts = {"classifier": self.classifier.features, "flow": self.flow.features}
        for what, features in parts.items():
            if features != expected:
                raise ValueError(
                    f"The {what} is for the features {', '.join(features)}; the population "
                    f"has {', '.join(expected)}. Both must list the same in the same "
                    f"order: fit the {what} to this population."
                )
        if self.flow.graph != self.population.graph:
            raise ValueError(
                "The flow was fitted under another graph: "
                f"{_differing(self.population.graph, self.flow.graph)} differ. Fit it "
                "under the population's; or take problem.under(flow)."
            )
        x = self.population.x["recourse/train"][:ASKED]
        if x.dtype != self.flow.dtype:
            raise ValueError(
                f"The population is of {x.dtype}, the flow of {self.flow.dtype}. Fit the "
                "flow to this population."
            )
        try:
            self.accepts(x)
        except ValueError:
            raise
        except Exception as error:  # of whatever library
            raise ValueError(
                f"The classifier can't decide for people of {x.dtype} with shape "
                f"{tuple(x.shape)}: {type(error).__name__}: {error}"
            ) from error
        y = self.population.y.get("recourse/train", x.new_zeros(0))[:ASKED]
        self.classifier.check(self.population.possible(x), y)
        self.flow.check_units(x)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        label: str,
        kinds: Mapping[str, str],
        edges: Edges,
        seed: int = 0,
        n_epochs: int | None = None,
        progress: Callable[[range], Iterable[int]] = iter,
    ) -> "Problem":
        """Return the problem of a table of past applicants: classifier and flow are fitted.

        They get the settings that `classifier.fit` and `flow.fit`
        have by themselves; with categories the flow has splines. Who
        wants others, or has a classifier
        already, builds the three parts one by one.

        Arguments:
            frame, label, kinds, edges: As for `Population.from_frame`.
            seed: Of the splits and of both fits.
            n_epochs: Of either fit; left out: 500 and 300.
            progress: Wraps the ranges of epochs, for instance `tqdm`.
        Raises: ValueError: as `Population.from_frame`, or a fit
            diverges.
        Example:
            >>> rng = np.random.default_rng(0)
            >>> frame = pd.DataFrame({"income": rng.normal(3, 1, 80)})
            >>> frame["savings"] = frame.income + rng.normal(0, 1, 80)
            >>> frame["repaid"] = frame.savings > 3
            >>> kinds = dict.fromkeys(("income", "savings"), "actionable")
            >>> edges = {"savings": ["income"]}
            >>> problem = Problem.from_frame(frame, "repaid", kinds, edges, n_epochs=5)
            >>> problem.world is problem.flow  # nobody knows the true equations
            True
        """
        population = Population.from_frame(frame, label, kinds, edges, seed=seed)
        epochs = {} if n_epochs is None else {"n_epochs": n_epochs}
        how: dict[str, Any] = {"seed": seed, "progress": progress, **epochs}
        h, _ = classifier.fit(population, **how)
        for_flow = population.x["flow/train"], population.x["flow/validation"]
        if population.categories:  # a density over codes has several peaks
            how |= {"hidden": (16,), "n_bins": 8}
        density, _ = flow.fit(population.graph, *for_flow, **how)
        return cls(population, h, density)

    @property
    def world(self) -> World:
        """Where actions take effect: the true SCM where it is known, else the flow.

        Example:
            >>> problem.world is problem.population.truth
            True
        """
        return self.flow if self.population.truth is None else self.population.truth

    @cached_property
    def range(self) -> Tensor:
        """Range of each standardised feature, with shape (D,).

        It is taken over the recourse training split.

        Example:
            >>> population = problem.population
            >>> bool((problem.range == population.high - population.low).all())
            True
        """
        return self.population.high - self.population.low

    @cached_property
    def _leeway(self) -> Tensor:
        """Range of each feature, infinite where it is immutable: it may lie anywhere."""
        kinds = self.population.kinds.values()
        can_move = torch.tensor([kind != "immutable" for kind in kinds])
        return torch.where(can_move, self.range, torch.inf)

    def outside(self, x: Tensor) -> Tensor:
        """Return by how many ranges features (*, D) lie outside theirs, in sum, (*,).

        Immutable features do not count.

        Example:
            >>> x = problem.population.high.clone()
            >>> x[5] += 2 * problem.range[5]  # income
            >>> problem.outside(x[None])
            tensor([2.])
        """
        population = self.population
        beyond = (x - population.high).relu() + (population.low - x).relu()
        return (beyond / self._leeway).sum(-1)

    def with_limits(self, said: Mapping[str, str]) -> "Problem":
        """Return the problem with other limits for who says nothing.

        Arguments:
            said: As for `Population.with_limits`.
        Raises: ValueError: as `Limits.from_words`.
        Example:
            >>> careful = problem.with_limits({"income": "only up"})
            >>> careful.population.limits.fall
            tensor([nan, nan, 0., nan], dtype=torch.float64)
        """
        return replace(self, population=self.population.with_limits(said))

    def under(self, flow: CausalFlow) -> "Problem":
        """Return the problem with another flow, and its graph.

        Raises: ValueError: as a problem's parts.
        Example:
            >>> problem.under(problem.flow).flow is problem.flow
            True
        """
        population = replace(self.population, graph=flow.graph)
        return replace(self, population=population, flow=flow)

    def refused(self, split: str) -> Tensor:
        """Return the people of a recourse split that h refuses, with shape (N, D).

        Arguments:
            split: "train", "validation" or "test".
        Raises: ValueError: there is no such split.
        Example:
            >>> bool(problem.accepts(problem.refused("test")).any())
            False
        """
        checks.known("recourse split", [split], ("train", "validation", "test"))
        x = self.population.x[f"recourse/{split}"]
        return x[~self.accepts(x)]

    def accepts(self, x: Tensor) -> Tensor:
        """Return whether h accepts each person (*, D), with shape (*,).

        The classifier is shown values that people can have (whole
        numbers).

        Example:
            >>> x = problem.population.x["recourse/test"]
            >>> problem.accepts(x).float().mean().round(decimals=2)
            tensor(0.5100)
        """
        return self.classifier.accepts(self.population.possible(x))

    def log_odds(self, x: Tensor) -> Tensor:
        """Return the log-odds of a positive decision, with shape (*,); see `accepts`.

        Arguments:
            x: Standardised features, with shape (*, D); they are not
                checked.
        Example:
            >>> bool((problem.log_odds(problem.refused("test")) < 0).all())
            True
        """
        return self.classifier.logit(self.population.possible(x))

    def check(self, x: Tensor, preferences: Preferences) -> None:
        """Raise ValueError unless x are refused people (N, D) with these preferences.

        Example:
            >>> x = problem.refused("test")[:2]
            >>> mask = torch.ones(3, 4, dtype=torch.bool)
            >>> problem.check(x, Preferences.from_mask(mask))
            Traceback (most recent call last):
            ...
            ValueError: preferences.scores has shape (3, 4), expected (2, 4).
        """
        self.check_people(x)
        expected = (*x.shape[:-1], len(self.population.actionable))
        checks.shape("preferences.scores", preferences.scores, expected)

    def check_people(self, x: Tensor) -> None:
        """Raise ValueError unless x are refused people (N, D), of the flow's dtype.

        Example:
            >>> problem.check_people(torch.zeros(7))  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: x has shape (7,): expected a row a person, (N, 7), and at least ...
        """
        features = self.population.features
        checks.people("x", x, features, self.flow.dtype)
        if (far := x.abs() > FAR).any():
            row, j = far.nonzero()[0].tolist()[-2:]
            raise ValueError(
                f"{features[j]} of row {row} is {x[..., row, j].item():,.0f} standard "
                f"deviations from the mean: expected {FAR:,} at most, or numbers overflow. "
                "Is it in another unit?"
            )
        if x.ndim != 2 or len(x) == 0:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: expected a row a person, "
                f"(N, {len(features)}), and at least one of them."
            )
        checks.refused(self.accepts(x))

    def interval(self, x: Tensor, preferences: Preferences) -> Interval:
        """Return to what values each person may set each actionable feature, (*, N, K).

        Within the range of the data, what a person says holds, and
        the population's limits where they say nothing. Who has no
        value left may not set the feature at all.

        Arguments:
            x: People, with shape (*, N, D).
            preferences: Theirs.
        Raises: ValueError: whole numbers have a step with a fraction.
        Example:
            >>> x = problem.refused("test")[:1]
            >>> from lib.method.preferences import from_words
            >>> answers = {"income": "2, only up", "savings": 1, "loan_duration": 1}
            >>> answers["loan_amount"] = "can't"
            >>> own = from_words(answers, problem.population.actionable)
            >>> interval = problem.interval(x, own)
            >>> interval.may, bool(interval.low[0, 2] == x[0, 5])
            (tensor([[False,  True,  True,  True]]), True)
        """
        population = self.population
        columns, may = population.actionable_index, preferences.is_actionable
        ends = [part[columns].to(x) for part in (population.low, population.high)]
        limits = population.limits
        if preferences.limits is not None:
            limits = preferences.limits.or_else(limits)
        if limits is not None:
            self._check_limits(limits)
        if limits is None:
            return Interval(may, *(end.expand(may.shape) for end in ends))
        own = x if population.whole is None else population.possible(x)
        scale = [part[columns].double() for part in (population.mean, population.std)]
        is_whole = torch.zeros(len(columns), dtype=torch.bool)
        if population.whole is not None:
            is_whole = population.whole.is_whole[columns]
            ends = [
                population.possible(e)[columns] for e in (population.low, population.high)
            ]
        return narrowed(may, own[..., columns], ends, limits, is_whole, scale)

    def _check_limits(self, limits: Limits) -> None:
        """Raise ValueError unless limits fit what is whole and what has categories."""
        population = self.population
        limits.check(population.actionable, population.categories)
        if population.whole is not None:
            is_whole = population.whole.is_whole[population.actionable_index]
            if (is_whole & (limits.step.nan_to_num() % 1 != 0)).any():
                raise ValueError(
                    "Whole numbers have a step with a fraction: expected 1 or another "
                    "whole number."
                )

    def outcome(self, x: Tensor, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Return what tells whether people who become x_cf are helped, each (*, N).

        Arguments:
            x, x_cf: Features before and after an action, with shapes
                (N, D) and (*, N, D).
        Returns: The log-odds of a positive decision, and the gain in
            log-density in nats.
        Example:
            >>> x = problem.refused("test")[:2]
            >>> problem.outcome(x, x)[1]  # nothing is done
            tensor([0., 0.])
        """
        return self.log_odds(x_cf), self.flow.log_prob(x_cf) - self.flow.log_prob(x)

    def in_world(self, world: World | None) -> World:
        """Return the world in which actions take effect: this one, or the problem's own.

        Raises: ValueError: as `check_world`.
        Example:
            >>> problem.in_world(None) is problem.world
            True
        """
        if world is None:
            return self.world
        self.check_world(world)
        return world

    def check_world(self, world: World) -> None:
        """Raise ValueError unless the world has the flow's graph.

        Who moves, and whose density changes, must be the same, column
        by column.

        Example:
            >>> problem.check_world(loan.scm())
        """
        if world.graph != self.flow.graph:
            raise ValueError(
                "The world and the flow have different graphs: "
                f"{_differing(self.flow.graph, world.graph)} differ. Search in a world "
                "with the flow's graph, or make the problem with a flow that was fitted "
                "under the world's."
            )

    def check_gradient(self, solver: str) -> None:
        """Raise ValueError unless torch can differentiate the classifier.

        Arguments:
            solver: Who needs the gradient, for the message.
        Example:
            >>> problem.check_gradient("iCARMA")
        """
        if not self.classifier.has_gradient:
            raise ValueError(
                f"{solver} needs the gradient of the classifier, and this one has none. "
                "Search on a grid (lib.method.grid), or fit a NetworkClassifier to its "
                "decisions."
            )

    def described(self, x: Tensor) -> dict[str, Any]:
        """Return what tells a fit to people x apart, by name, for `fits.steps`.

        The classifier may be any function, and is described by what
        it says of these people.

        Arguments:
            x: Standardised features, with shape (N, D).
        Example:
            >>> list(problem.described(problem.refused("train")))[:3]
            ['x', 'log-odds of x', 'weights of the flow']
        """
        population, flow = self.population, self.flow
        return {
            "x": x,
            "log-odds of x": self.log_odds(x).detach(),
            "weights of the flow": torch.cat([w.flatten() for w in flow.weights.values()]),
            "settings of the flow": flow.settings,
            "parents": {name: list(own) for name, own in flow.graph.parents.items()},
            "kinds": dict(population.kinds),
            "range": torch.stack([population.low, population.high]),
        }

    def carried_out(self, x: Tensor, recommendation: "Recommendation") -> "Recommendation":
        """Return the recommendation as people can carry it out, in whole numbers.

        Values and their consequences are made possible, for instance
        whole credit lines. What nothing moves stays as it is, to the
        bit; so does a count that is set to the number it was.

        Arguments:
            x: People, with shape (N, D).
            recommendation: For them, each part with shape (*, N, D).
        Example:
            >>> problem = loan.problem()  # any value is possible here
            >>> x = problem.refused("test")[:1]
            >>> nothing = Recommendation(x > 99, x, x)
            >>> bool((problem.carried_out(x, nothing).x_cf == x).all())
            True
        """
        acts = recommendation.is_acted
        x = x.expand_as(recommendation.values)
        settled = self.population.settled(x, recommendation.values)
        values = torch.where(acts, settled, x)
        x_cf = self.flow.counterfactual(x, acts, values)
        is_moved = (values != x).any(-1, keepdim=True)
        x_cf = torch.where(is_moved, self.population.settled(x, x_cf), x)
        return Recommendation(acts, values, x_cf)

    def action_cost(
        self, x: Tensor, m: Tensor, a: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        r"""Return the effort of each person's own actions, with shape (*,).

        Effects downstream cost nothing.

        .. math:: c = \frac{1}{K} \sum_{j \in A}
            w_j\, m_j\, \frac{(x_j - a_j)^2}{\max_j - \min_j}

        Another category costs `CHANGE`, whichever it is, in place of
        the fraction.

        Arguments:
            x, m, a: Factual value, whether it is acted on (bool or
                0/1), and to what it is set, for the K actionable
                features in standardised units, each with shape (*,
                K).
            weights: Individual weights, with shape (*, K); left out:
                the unweighted cost.
        Source: CARMA's cost (doi 10.1145/3630106.3659003) with the
            weights of section 4.2, arXiv:2604.08030.
        Example:
            >>> x, m = torch.zeros(4), torch.tensor([True, False, False, False])
            >>> cost = problem.action_cost(x, m, x + 1)
            >>> bool(torch.isclose(cost, 1 / problem.range[3] / 4))
            True
        """
        effort = m * (x - a).square() / self.range[self.population.actionable_index].to(x)
        if self.population.categories:
            effort = torch.where(
                self._is_category, m * CHANGE * self._differs(x, a), effort
            )
        return (effort if weights is None else weights * effort).mean(-1)

    @cached_property
    def _is_category(self) -> Tensor:
        """Which of the K actionable features are one of several, with shape (K,)."""
        population = self.population
        return torch.tensor([n in population.categories for n in population.actionable])

    def _differs(self, x: Tensor, a: Tensor) -> Tensor:
        """Return whether codes of the K actionable features differ, with shape (*, K)."""
        columns = self.population.actionable_index
        std, mean = (
            own[columns].to(x) for own in (self.population.std, self.population.mean)
        )
        before, after = (((part * std) + mean).round() for part in (x, a))
        return (before != after).to(x.dtype)

    def cost_of(
        self, x: Tensor, recommendation: "Recommendation", weights: Tensor | None = None
    ) -> Tensor:
        """Return the `action_cost` of recommendations, with shape (*, N).

        Arguments:
            x: People, with shape (N, D).
            recommendation: For them, each part with shape (*, N, D).
            weights: Individual weights, with shape (N, K); left out:
                the unweighted cost.
        Example:
            >>> x = problem.refused("test")[:2]
            >>> problem.cost_of(x, Recommendation(x > 99, x, x))  # nothing is done
            tensor([0., 0.])
        """
        columns = self.population.actionable_index
        acts, values = recommendation.is_acted, recommendation.values
        own, m, a = (part[..., columns] for part in (x, acts, values))
        return self.action_cost(own, m, a, weights)


@dataclass(frozen=True)
class Recommendation:
    """Hold what each person is recommended to do, and what they would then look like.

    Arguments:
        is_acted: True where the person acts; nowhere for someone who
            has no recourse.
        values: What to set those features to, in standardised units;
            the factual value elsewhere.
        x_cf: Features after the action, by the world the solver
            searched. Each part has shape (N, D), or (M, N, D) for a
            stack of M members.
    Raises: ValueError: is_acted is not of bool, or the shapes differ.
    Example:
        >>> x = torch.zeros(2, 7)
        >>> Recommendation(x > 0, x, x).has_recourse
        tensor([False, False])
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
        """Whether anything is recommended, with shape (N,) or (M, N).

        Example:
            >>> x = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
            >>> Recommendation(x > 0, x, x).has_recourse
            tensor([ True, False])
        """
        return self.is_acted.any(-1)

    def __getitem__(self, key: Any) -> "Recommendation":
        """Return the part at this place; the leading axes are indexed as a tensor's.

        Example:
            >>> people = torch.zeros(10, 3, 7)  # ten members of a stack, three people
            >>> stack = Recommendation(people > 0, people, people)
            >>> stack[0].x_cf.shape, stack[:, [0, 2]].x_cf.shape, stack[0][:2].x_cf.shape
            (torch.Size([3, 7]), torch.Size([10, 2, 7]), torch.Size([2, 7]))
        """
        return Recommendation(self.is_acted[key], self.values[key], self.x_cf[key])


class Solver(Protocol):
    """Anything that recommends an action to each person: all solvers have this shape.

    `Grid`, `Search`, a member of `ICarma`, a `Proposer`, `Refined`; a
    stack of networks gives each part a leading member axis.

    Example:
        A solver that recommends nothing to anybody:

        >>> class Nothing:
        ...     def recommend(self, x, preferences):
        ...         return Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
        >>> solver: Solver = Nothing()
        >>> x, all_easy = torch.zeros(2, 7), Preferences(torch.ones(2, 4).long())
        >>> solver.recommend(x, all_easy).has_recourse
        tensor([False, False])
    """

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return a recommendation for each of these refused people.

        Arguments:
            x: Their features, with shape (N, D).
            preferences: What they can do and find hard, with scores
                of shape (N, K).
        Returns: Parts of shape (N, D); nothing is acted on where the
            solver finds nothing.
        """
        ...


@dataclass(frozen=True)
class Known:
    """Hold what was recommended to some people; it is a solver that says it again.

    Arguments:
        recommendation: Parts of shape (N, D).
    Example:
        >>> x, all_easy = torch.zeros(2, 7), Preferences(torch.ones(2, 4).long())
        >>> nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
        >>> Known(nothing).recommend(x, all_easy) is nothing
        True
    """

    recommendation: "Recommendation"

    def recommend(self, x: Tensor, preferences: Preferences) -> "Recommendation":
        """Return what is known, whoever asks."""
        return self.recommendation


def in_columns(part: Tensor, columns: list[int], n_features: int) -> Tensor:
    """Return values of the K actionable features (*, K) spread over all D, zero elsewhere.

    Example:
        >>> in_columns(torch.tensor([[5.0, 6.0]]), [2, 0], n_features=4)
        tensor([[6., 0., 5., 0.]])
    """
    given = dict(zip(columns, part.unbind(-1), strict=True))
    zero = part.new_zeros(part.shape[:-1])
    return torch.stack([given.get(j, zero) for j in range(n_features)], -1)


def check_bounds(margin: float, slack: float) -> None:
    """Raise ValueError unless these say what an action must reach; see `Judge`.

    Example:
        >>> check_bounds(margin=-1.0, slack=0.0)
        Traceback (most recent call last):
        ...
        ValueError: margin is -1.0, expected log-odds, zero or more.
    """
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin is {margin!r}, expected log-odds, zero or more.")
    if not slack > -math.inf:
        raise ValueError(
            f"slack is {slack!r}, expected nats: by how much the log-density may fall; "
            "below zero, by how much it must rise; infinite, it is not asked for."
        )


def check_weights(weights: Tensor, expected: tuple[int, int]) -> None:
    """Raise ValueError unless weights of the cost are (N, K), finite and not negative.

    Example:
        >>> check_weights(torch.ones(2, 3), expected=(2, 4))
        Traceback (most recent call last):
        ...
        ValueError: weights has shape (2, 3), expected (2, 4).
    """
    checks.shape("weights", weights, expected)
    if not (weights.isfinite() & (weights >= 0)).all():
        raise ValueError(
            "weights must be finite and not below zero. Profile.weight gives such weights."
        )
