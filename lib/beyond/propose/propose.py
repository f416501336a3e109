"""Propose and verify: recourse as fast as a network's, as good as a search's.

A network proposes values for every set of features at once. The
classifier and the flow then say which proposals hold, and the
cheapest that holds, and that a person may carry out, is the
recommendation. A few steps of descent, from a few proposals, take
off what is more than needed. So the network may be wrong: what it
proposes is a start, and what is returned has been verified.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import checks, files
from lib.base.arithmetic import network
from lib.method.limits import Interval
from lib.method.preferences import CONSTANT, Preferences, Profile
from lib.method.problem import (
    Problem,
    Recommendation,
    check_bounds,
    check_weights,
    in_columns,
    is_plausible,
    is_valid,
)
from lib.search.descent import (
    LEAST_WEIGHT,
    Found,
    Judge,
    descend,
    descend_from_neighbours,
    penalised_cost,
    scout,
)
from lib.search.sets import Table

TERMS = ("cost", "hinge", "plausibility", "feasibility", "imitation")
PEOPLE_AT_ONCE = 4_096  # fewer would take more time each, more would take more memory


@dataclass(frozen=True)
class Settings:
    """Hold how the network is trained.

    Arguments:
        cost, hinge, plausibility, feasibility: Weights of four terms
            of the loss, as of `icarma.Settings`.
        imitation: Weight of the distance to the search's answers;
            without lessons there is no such term.
        cap: Level that the hinge and the plausibility of one action
            approach and never exceed.
        spare_log_odds, spare_nats: By how much more than the margin,
            and than the gain that is asked for, the loss asks for.
        most_log_odds, most_nats: Margins and gains in training reach
            from zero to here.
        n_epochs, batch_size, learning_rate: Of Adam; the rate falls
            to zero along a cosine.
        hidden, n_hidden: Width of the hidden layers, and how many.
    Raises: ValueError: a weight or a spare part is below zero, or
        another setting is not above zero.
    """

    cost: float = 1.0
    hinge: float = 0.2
    plausibility: float = 1.0
    feasibility: float = 0.1
    imitation: float = 8.0
    cap: float = 4.0
    spare_log_odds: float = 0.5
    spare_nats: float = 0.02
    most_log_odds: float = 8.0
    most_nats: float = 0.05
    n_epochs: int = 450
    batch_size: int = 128
    learning_rate: float = 2e-3
    hidden: int = 256
    n_hidden: int = 3

    def __post_init__(self) -> None:
        checks.counts(
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            hidden=self.hidden,
            n_hidden=self.n_hidden,
        )
        checks.positive(
            cap=self.cap,
            most_log_odds=self.most_log_odds,
            most_nats=self.most_nats,
            learning_rate=self.learning_rate,
        )
        for name in (*TERMS, "spare_log_odds", "spare_nats"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} must not be below zero, got {getattr(self, name)!r}; expected "
                    "a finite number."
                )


@dataclass(frozen=True)
class Walk:
    """Hold how proposals are walked to the bound; see `Proposer.recommend`.

    Arguments:
        n_sets: Descents begin at the best proposals on so many sets.
        n_steps: Of each descent.
        n_steps_again, n_scouts: Of the descents for people without an
            answer after that, and how many actions are scattered for
            each of their sets (a power of two).
        has_rescue: Whether there are such descents.
    Raises: ValueError: a number is not a whole number above zero.
    """

    n_sets: int = 4
    n_steps: int = 5
    n_steps_again: int = 10
    n_scouts: int = 32
    has_rescue: bool = True

    def __post_init__(self) -> None:
        numbers = {name: own for name, own in vars(self).items() if name != "has_rescue"}
        checks.counts(**numbers)


WALK = Walk()
# how much more careful proposals are asked for again, as shares of most_log_odds, most_nats
AGAIN = (0.3, 0.6)


@dataclass(frozen=True)
class _Asked:
    """Hold who asks for what: people (N, D), what they may use, and what must hold.

    Arguments:
        is_open: Whether they may use each set, with shape (N, S).
        interval: To what values they may set features, (N, K).
        weights: Of their cost, with shape (N, K).
    """

    x: Tensor
    is_open: Tensor
    weights: Tensor
    interval: Interval
    margin: float
    slack: float

    def of(self, people: Tensor | slice) -> "_Asked":
        """Return what some of the people ask for."""
        x, is_open, weights = self.x[people], self.is_open[people], self.weights[people]
        interval = self.interval[people]
        return _Asked(x, is_open, weights, interval, self.margin, self.slack)


class Proposer:
    """Hold the network that proposes values on S sets of the K actionable features.

    Arguments:
        problem: What it was trained for.
        settings: How.
        sets: The sets that are proposed for, with shape (S, K), bool.
        weights: By name, "weight_0" with shape (in, out), "bias_0"
            with shape (out,), ...
    Raises: ValueError: the classifier has no gradient, or the sets
        are not (S, K) of bool, at least one.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        sets: Tensor,
        weights: dict[str, Tensor],
    ) -> None:
        problem.check_gradient("Proposing")
        self.columns = problem.population.actionable_index
        checks.shape("sets", sets, (*sets.shape[:1], len(self.columns)))
        checks.not_empty("sets", sets)
        if sets.dtype != torch.bool:
            raise ValueError(f"sets must be of bool, got {sets.dtype}.")
        self.problem, self.settings = problem, settings
        self.sets, self.weights = sets, weights

    def select(self, which: Tensor) -> "Proposer":
        """Return the proposer for some of the sets only, a mask (S,) or rows."""
        weights = dict(self.weights)
        for name in (f"{part}_{self.settings.n_hidden}" for part in ("weight", "bias")):
            by_set = weights[name].unflatten(-1, self.sets.shape)
            weights[name] = by_set[..., which, :].flatten(-2)
        return Proposer(self.problem, self.settings, self.sets[which], weights)

    def propose(
        self, x: Tensor, weights: Tensor, margin: float = 0.0, slack: float = 0.0
    ) -> Tensor:
        """Return the network's values on every set, unverified, with shape (N, S, K).

        Arguments:
            x: People, with shape (N, D).
            weights: Of their cost, with shape (N, K).
            margin, slack: As for `recommend`.
        Raises: ValueError: people or weights have another shape,
            weights are below zero, margin or slack are none.
        """
        check_bounds(margin, slack)
        check_weights(weights, (len(x), len(self.columns)))
        asked = torch.tensor([margin, max(-slack, 0.0)]).expand(len(x), -1)
        return self.values(x, self.problem.flow.abduct(x), weights, asked)

    def values(self, x: Tensor, z: Tensor, weights: Tensor, asked: Tensor) -> Tensor:
        """Return the network's values for people who ask for different margins, (N, S, K).

        Arguments:
            x, z: People and their noise, each with shape (N, D).
            weights: Of their cost, with shape (N, K).
            asked: Log-odds, and nats to be gained, with shape (N, 2).
        """
        most = torch.tensor([self.settings.most_log_odds, self.settings.most_nats])
        ratio = weights / weights.mean(-1, keepdim=True).clamp_min(LEAST_WEIGHT)
        inputs = [z, x, ratio.clamp_min(LEAST_WEIGHT).log(), asked / most]
        weight, bias = (
            [self.weights[f"{part}_{i}"] for i in range(self.settings.n_hidden + 1)]
            for part in ("weight", "bias")
        )
        out = network(torch.cat([part.to(x) for part in inputs], -1), weight, bias)
        return x[:, None, self.columns] + out.unflatten(-1, self.sets.shape)

    def recommend(
        self,
        x: Tensor,
        preferences: Preferences,
        profile: Profile = CONSTANT,
        margin: float = 0.0,
        slack: float = 0.0,
        walk: Walk | None = WALK,
    ) -> Recommendation:
        """Return each person's cheapest verified action, or none if nothing holds.

        Proposals on all sets that a person may use are verified by
        the classifier and the flow. Descents (`descent.descend`)
        begin at those with the lowest `penalised_cost`. For people
        without an answer after that, descents begin on all of their
        sets, at proposals with a larger margin and at the best of a
        few scattered actions. Where people have whole numbers, values
        and consequences are whole before they are verified.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs.
            profile: From scores to the weights of the cost.
            margin: Log-odds that a positive decision must have.
            slack: Nats of log-density that may be given up; below
                zero: so many must be gained.
            walk: How far proposals are walked; None: not at all.
        Returns: Nothing forbidden, and nothing that is not valid and
            plausible by the problem's own classifier and flow.
        Raises: ValueError: as `Problem.check`; margin or slack are
            none.
        Example:
            >>> proposer = Proposer.load(files.MODELS, "loan_propose", problem)
            >>> x = problem.refused("test")[:3]
            >>> anything = Preferences(torch.ones(3, 4, dtype=torch.long))
            >>> found = proposer.recommend(x, anything)
            >>> problem.accepts(found.x_cf)
            tensor([True, True, True])
        """
        asked = self._asked(x, preferences, profile, margin, slack)
        parts = [
            self._recommend(asked.of(slice(first, first + PEOPLE_AT_ONCE)), walk)
            for first in range(0, len(x), PEOPLE_AT_ONCE)
        ]
        return Recommendation(
            *(
                torch.cat([getattr(part, name) for part in parts])
                for name in ("is_acted", "values", "x_cf")
            )
        )

    def nearest_miss(
        self,
        x: Tensor,
        preferences: Preferences,
        profile: Profile = CONSTANT,
        margin: float = 0.0,
        slack: float = 0.0,
    ) -> Recommendation:
        """Return what comes nearest to holding, for people for whom nothing may hold.

        That is the proposal, on the sets that a person may use, with
        the lowest `penalised_cost`; it is not walked. It is nothing
        for people who may use none of the sets. Arguments as for
        `recommend`.

        Example:
            Somebody may change the loan's amount only:
            >>> proposer = Proposer.load(files.MODELS, "loan_propose", problem)
            >>> x = problem.refused("test")[2:3]
            >>> only_amount = Preferences(torch.tensor([[1, 5, 5, 5]]))
            >>> miss = proposer.nearest_miss(x, only_amount)
            >>> miss.is_acted.nonzero().tolist(), problem.accepts(miss.x_cf).tolist()
            ([[0, 3]], [False])
        """
        asked = self._asked(x, preferences, profile, margin, slack)
        values = self.propose(x, asked.weights, margin, slack)
        losses, _, values = self._losses(asked, values)
        lowest, which = losses.min(-1)
        acts = self.sets[which] & lowest.isfinite()[:, None]
        return self._outcome(x, acts, values[torch.arange(len(x)), which])

    def table(
        self,
        x: Tensor,
        weights: Tensor | None = None,
        margin: float = 0.0,
        slack: float = 0.0,
        n_steps: int = WALK.n_steps_again,
    ) -> Table:
        """Return what descents from the proposals find on every set, as a search's table.

        In it anybody's recourse, and what would unlock it, is looked
        up; see `sets.Table` and `Search.recommend`.

        Arguments:
            weights: Of the cost, with shape (N, K); left out: all
                one.
            n_steps: Of each descent.
            x, margin, slack: As for `recommend`.
        Raises: ValueError: x are not refused people; as `propose`.
        """
        self.problem.check_people(x)
        check_bounds(margin, slack)
        if weights is None:
            weights = torch.ones(len(x), len(self.columns))
        check_weights(weights, (len(x), len(self.columns)))
        is_open = torch.ones(len(x), len(self.sets), dtype=torch.bool)
        anything = Preferences(torch.ones(len(x), len(self.columns), dtype=torch.long))
        interval = self.problem.interval(x, anything)
        everything = _Asked(x, is_open, weights.to(x), interval, margin, slack)
        parts = []
        for first in range(0, len(x), PEOPLE_AT_ONCE):
            asked = everything.of(slice(first, first + PEOPLE_AT_ONCE))
            values = self.propose(asked.x, asked.weights, margin, slack)
            parts.append(self._walked(asked, asked.is_open, [values], n_steps))
        costs, values, log_odds, gains = (
            torch.cat(part) for part in zip(*parts, strict=True)
        )
        as_they_are = self.problem.log_odds(x)
        log_odds = torch.maximum(log_odds, (as_they_are - margin)[:, None])
        return Table(self.sets, costs, values, log_odds, gains)

    def _asked(
        self,
        x: Tensor,
        preferences: Preferences,
        profile: Profile,
        margin: float,
        slack: float,
    ) -> _Asked:
        """Return what people ask for, checked."""
        self.problem.check(x, preferences)
        check_bounds(margin, slack)
        interval = self.problem.interval(x, preferences)
        closed = self.sets & ~interval.may[:, None]
        weights = profile.weight(preferences).to(x)
        return _Asked(x, ~closed.any(-1), weights, interval, margin, slack)

    def _judge(self, asked: _Asked, who: Tensor, which: Tensor) -> Judge:
        """Return the judge of actions of some people on some sets, each with shape (R,)."""
        return Judge(
            self.problem,
            self.problem.flow,
            asked.x[who],
            self.sets[which],
            asked.weights[who],
            asked.slack,
            asked.margin,
            asked.interval[who],
        )

    def _losses(self, asked: _Asked, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the penalised cost, and the cost where it holds, of values (N, S, K).

        Both have shape (N, S), and are infinite where they do not
        apply; the values come third, as people can have them.
        """
        who, which = asked.is_open.nonzero(as_tuple=True)
        judge = self._judge(asked, who, which)
        allowed = judge.allowed(values[who, which])
        cost, log_odds, gain = judge(allowed)
        holds = is_valid(log_odds, surely=True) & is_plausible(gain, surely=True)
        losses = torch.full(asked.is_open.shape, torch.inf, dtype=values.dtype)
        costs = losses.clone()
        losses[who, which] = penalised_cost(cost, log_odds, gain)
        costs[who, which] = torch.where(holds, cost, torch.inf)
        values = values.clone()
        values[who, which] = allowed
        return losses, costs, values

    def _walked(
        self,
        asked: _Asked,
        is_tried: Tensor,
        starts: Sequence[Tensor],
        n_steps: int,
        n_scouts: int = 0,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what descents find on some sets, a mask (N, S).

        One begins at each start, values with shape (N, S, K); with
        scouts, another at the best of so many scattered actions.

        Returns: Cost, infinite where nothing holds, and values of the
            cheapest; the highest log-odds and gain as `Found` has
            them.
        """
        who, which = is_tried.nonzero(as_tuple=True)
        judge = self._judge(asked, who, which)
        found = Found.nothing(judge.factual)
        begin = [values[who, which] for values in starts]
        if n_scouts:
            begin += scout(judge, found, n_scouts, 1, np.random.default_rng(0))
        for start in begin:
            descend(judge, start, found, n_steps)
        values = self._own_values(asked.x)
        costs = torch.full(is_tried.shape, torch.inf, dtype=values.dtype)
        log_odds, gains = -costs, -costs
        costs[who, which], values[who, which] = found.cost, found.values
        log_odds[who, which], gains[who, which] = found.log_odds, found.gain
        return costs, values, log_odds, gains

    def _recommend(self, asked: _Asked, walk: Walk | None) -> Recommendation:
        """Return the recommendation for some of the people."""
        losses, costs, values = self._first(asked)
        if walk is not None:
            costs, values = self._cheaper(asked, losses, costs, values, walk)
        none = ~costs.isfinite().any(-1)
        if none.any() and (walk is None or walk.has_rescue):
            costs[none], values[none] = self._again(asked.of(none), walk)
        cost, which = costs.min(-1)
        best = values[torch.arange(len(cost)), which]
        has_counts = self.problem.population.whole is not None
        if walk is not None and (has_counts or asked.interval.step is not None):
            judge = self._judge(asked, torch.arange(len(cost)), which)
            found = Found.nothing(best)
            found.cost = cost
            descend_from_neighbours(judge, found, walk.n_steps)
            best = found.values
        return self._outcome(asked.x, self.sets[which] & cost.isfinite()[:, None], best)

    def _own_values(self, x: Tensor) -> Tensor:
        """Return people's own values for every set, with shape (N, S, K)."""
        return x[:, None, self.columns].repeat(1, len(self.sets), 1)

    def _first(self, asked: _Asked) -> tuple[Tensor, Tensor, Tensor]:
        """Return where walks begin.

        Returns: What each set promises, the lowest is walked first,
            and its cost where it holds already, both (N, S) and
            infinite otherwise; values (N, S, K).
        """
        first = self.propose(asked.x, asked.weights, asked.margin, asked.slack)
        return self._losses(asked, first)

    def _outcome(self, x: Tensor, acts: Tensor, values: Tensor) -> Recommendation:
        """Return what follows by the flow from actions (N, K) with values (N, K)."""
        acted, spread = (
            in_columns(part.to(x), self.columns, x.shape[-1]) for part in (acts, values)
        )
        is_acted = acted > 0
        spread = torch.where(is_acted, spread, x)
        x_cf = self.problem.flow.counterfactual(x, is_acted, spread)
        return Recommendation(is_acted, spread, self.problem.population.settled(x, x_cf))

    def _cheaper(
        self, asked: _Asked, losses: Tensor, costs: Tensor, values: Tensor, walk: Walk
    ) -> tuple[Tensor, Tensor]:
        """Return costs (N, S) and values (N, S, K) after descents on the best few sets."""
        best = losses.topk(min(walk.n_sets, len(self.sets)), largest=False).indices
        is_tried = torch.zeros_like(asked.is_open).scatter(1, best, True) & asked.is_open
        walked, cheaper, *_ = self._walked(asked, is_tried, [values], walk.n_steps)
        is_cheaper = (walked < costs)[..., None]
        return torch.minimum(walked, costs), torch.where(is_cheaper, cheaper, values)

    def _again(self, asked: _Asked, walk: Walk | None) -> tuple[Tensor, Tensor]:
        """Return costs (N, S) and values (N, S, K) of more careful proposals."""
        margin = asked.margin + AGAIN[0] * self.settings.most_log_odds
        slack = asked.slack - AGAIN[1] * self.settings.most_nats
        values = self.propose(asked.x, asked.weights, margin, slack)
        if walk is None:
            return self._losses(asked, values)[1:]
        how = walk.n_steps_again, walk.n_scouts
        return self._walked(asked, asked.is_open, [values], *how)[:2]

    def save(self, folder: Path, name: str, made_with: Mapping[str, Any]) -> Path:
        """Save to folder/name.safetensors; arguments and result as for `files.save`."""
        return save_all({"": self}, folder, name, made_with)

    @classmethod
    def load(cls, folder: Path, name: str, problem: Problem) -> "Proposer":
        """Load from folder/name.safetensors.

        Raises: ValueError: no such file, it holds no proposer or
            several, or it was fitted to another population.
        """
        found = load_all(folder, name, problem)
        if list(found) != [""]:
            raise ValueError(
                f"{folder / name}.safetensors holds several proposers "
                f"({', '.join(found)}): use load_all."
            )
        return found[""]


class WithoutNetwork(Proposer):
    """Hold the walk of a `Proposer` that begins at each person's own values.

    Beside a proposer it shows what a network adds: no network is
    asked, and there is nothing to verify before the walk. The largest
    sets that a person may use are walked first; of sets of one size,
    those that are listed first. For people without an answer after
    that, descents begin at the best of a few scattered actions alone.
    Without a walk there is no answer. There is nothing to save.

    Arguments:
        problem: Whose people are helped.
        sets: The sets that are walked, with shape (S, K), bool.
    Raises: ValueError: as `Proposer`.
    Example:
        >>> from lib.search.sets import sets_of
        >>> alone = WithoutNetwork(problem, sets_of(4))
        >>> x = problem.refused("test")[:3]
        >>> anything = Preferences(torch.ones(3, 4, dtype=torch.long))
        >>> found = alone.recommend(x, anything)
        >>> problem.accepts(found.x_cf)
        tensor([True, True, True])
        >>> alone.recommend(x, anything, walk=None).has_recourse
        tensor([False, False, False])
    """

    def __init__(self, problem: Problem, sets: Tensor) -> None:
        super().__init__(problem, Settings(), sets, {})

    def select(self, which: Tensor) -> "WithoutNetwork":
        """Return the walk on some of the sets only, a mask (S,) or rows."""
        return WithoutNetwork(self.problem, self.sets[which])

    def values(self, x: Tensor, z: Tensor, weights: Tensor, asked: Tensor) -> Tensor:
        """Return people's own values on every set, (N, S, K); see `Proposer.values`."""
        return self._own_values(x)

    def _first(self, asked: _Asked) -> tuple[Tensor, Tensor, Tensor]:
        """Return people's own values, of which none holds; the largest sets first."""
        order = self.sets.sum(-1).argsort(descending=True, stable=True)
        place = order.argsort().to(asked.x).expand(asked.is_open.shape)
        nothing = torch.full_like(place, torch.inf)
        values = self._own_values(asked.x)
        return torch.where(asked.is_open, place, nothing), nothing, values

    def _again(self, asked: _Asked, walk: Walk | None) -> tuple[Tensor, Tensor]:
        """Return costs (N, S) and values (N, S, K) from scattered actions alone."""
        if walk is None:
            return self._first(asked)[1:]
        how = walk.n_steps_again, walk.n_scouts
        return self._walked(asked, asked.is_open, [], *how)[:2]


def save_all(
    proposers: Mapping[str, Proposer],
    folder: Path,
    name: str,
    made_with: Mapping[str, Any],
) -> Path:
    """Save proposers for one problem as one file, and return its path.

    Arguments:
        proposers: By a name without a slash.
        folder, name, made_with: As for `files.save`.
    """
    settings = {key: dataclasses.asdict(own.settings) for key, own in proposers.items()}
    parts = {key: own.weights | {"sets": own.sets} for key, own in proposers.items()}
    # each tensor of its own, since a file holds none twice
    tensors = {key: t.clone() for key, t in files.in_one_file(parts).items()}
    fingerprints = {own.problem.population.fingerprint for own in proposers.values()}
    if len(fingerprints) != 1:
        raise ValueError("Expected proposers for one population, at least one of them.")
    return files.save(folder, name, tensors, settings, made_with, *fingerprints)


def load_all(folder: Path, name: str, problem: Problem) -> dict[str, Proposer]:
    """Return the proposers that `save_all` saved, by name.

    Raises: ValueError: as `Proposer.load`.
    """
    tensors, settings = files.load(folder, name, problem.population.fingerprint)
    found = {}
    with files.holding("proposer", folder, name):
        for key, weights in files.by_first_name(tensors, settings).items():
            own = files.rebuilt(Settings, settings[key])
            sets = weights.pop("sets", torch.zeros(0, dtype=torch.bool))
            n_layers = sum(part.startswith("weight_") for part in weights)
            if n_layers != own.n_hidden + 1:
                raise ValueError(f"it has {n_layers} layers, expected {own.n_hidden + 1}.")
            found[key] = Proposer(problem, own, sets, weights)
            shapes = files.layers(widths(problem, own, len(sets)))
            files.check_tensors(weights, shapes, [problem.flow.dtype])
    return found


def widths(problem: Problem, settings: Settings, n_sets: int) -> list[int]:
    """Return the widths of a proposer's network: inputs, hidden layers, outputs.

    Arguments:
        n_sets: How many sets of features it proposes for.
    """
    n_actionable = len(problem.population.actionable)
    n_inputs = 2 * len(problem.population.features) + n_actionable + 2
    return [n_inputs, *[settings.hidden] * settings.n_hidden, n_sets * n_actionable]
