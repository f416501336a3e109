"""How a proposer is trained: through the flow, and on what a search found.

Everybody acts on every set of features, and the flow says what
follows and how much is missing: so no solved example is needed.
Lessons, the answers of `lib.search.continuous`, are imitated beside
that. They lead out of local optima.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import checks, fits
from lib.base.arithmetic import Adam
from lib.beyond.propose.propose import TERMS, Proposer, Settings, widths
from lib.method.icarma import capped
from lib.method.problem import Problem
from lib.search import continuous
from lib.search.sets import sets_of

# log of the factor by which a random weight differs from one, at most
SPREAD = 1.2
# what the four quarters of the people ask for, as shares of the most that is asked for
SHARES = ((0.0, 0.0), (0.0, 0.0), (0.3, 0.2), (0.6, 0.4))

LAST = 0.3  # size of the last layer's first weights, beside that of the others
ASK_FOR_NOTHING = 0.3  # share of people who ask for no margin, in each epoch
# of Give Me Some Credit's proposer
GMSC_PROPOSE: dict[str, Any] = {
    "hinge": 4.0,
    "plausibility": 1.5,
    "cap": 2.0,
    "spare_log_odds": 0.1,
    "most_log_odds": 1.0,
    "batch_size": 256,
}


@dataclass(frozen=True)
class Lessons:
    """Hold the answers of a search for L people on S sets of the K actionable features.

    Arguments:
        sets: With shape (S, K), bool.
        people: Their rows among the refused training people, with
            shape (L,).
        weights: Of their cost, with shape (L, K).
        asked: Log-odds that they asked for, and nats that were to be
            gained, with shape (L, 2).
        cost: Of the cheapest action that was found on each set,
            infinite where none was, with shape (L, S).
        values: Of that action, with shape (L, S, K).
    """

    sets: Tensor
    people: Tensor
    weights: Tensor
    asked: Tensor
    cost: Tensor
    values: Tensor

    def __len__(self) -> int:
        """Return the number of people L."""
        return len(self.people)

    def __getitem__(self, rows: Tensor | slice) -> "Lessons":
        """Return some of the lessons."""
        names = ("people", "weights", "asked", "cost", "values")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def on(self, sets: Tensor) -> "Lessons":
        """Return the lessons on these sets, a mask with shape (S', K).

        Raises: ValueError: there are no lessons on one of them, or
            they are of another number of features.
        """
        checks.shape("sets", sets, (len(sets), self.sets.shape[-1]))
        same = (sets[:, None] == self.sets).all(-1)
        if not same.any(-1).all():
            missing = sets[~same.any(-1)][0].nonzero().squeeze(-1).tolist()
            raise ValueError(
                f"There are no lessons on the set of the actionable features {missing}: "
                "search them, or leave that set out."
            )
        which = same.long().argmax(-1)
        return replace(
            self, sets=sets, cost=self.cost[:, which], values=self.values[:, which]
        )

    def likeliest(self, n_sets: int) -> Tensor:
        """Return the sets that are most often the cheapest, in their order, (n_sets, K).

        All masks count alike: each person is asked for their cheapest
        set under every one of the 2^K - 1.

        Example:
            >>> lessons = searched(problem, n_people=20, n_scouts=16, n_starts=1)
            >>> lessons.likeliest(5).shape
            torch.Size([5, 4])
        """
        checks.counts(n_sets=n_sets)
        times = torch.zeros(len(self.sets), dtype=torch.long)
        for may in sets_of(self.sets.shape[-1]):
            closed = (self.sets & ~may).any(-1)
            cost, which = self.cost.masked_fill(closed, math.inf).min(-1)
            times += torch.bincount(which[cost.isfinite()], minlength=len(times))
        most = times.argsort(descending=True, stable=True)[:n_sets]
        return self.sets[most.sort().values]


def drawn_weights(n_people: int, n_features: int, rng: np.random.Generator) -> Tensor:
    """Return random weights of the cost, with shape (n_people, n_features).

    For half of the people all are one; for the others each is between
    0.3 and 3.3, evenly on a log scale.
    """
    is_plain = torch.from_numpy(rng.random((n_people, 1)) < 0.5)
    drawn = torch.from_numpy(rng.uniform(-SPREAD, SPREAD, (n_people, n_features)))
    return torch.where(is_plain, 1.0, drawn.exp())


def searched(
    problem: Problem,
    n_people: int | None = None,
    most: tuple[float, float] = (8.0, 0.05),
    n_scouts: int = 64,
    n_starts: int = 2,
    seed: int = 0,
    n_threads: int = 1,
    progress: Callable[[range], Iterable[int]] = iter,
    checkpoint: Path | None = None,
) -> Lessons:
    """Search for refused training people through the flow, and return what was found.

    Arguments:
        n_people: How many people, drawn without replacement; None,
            and more than there are: all.
        most: Log-odds and nats. A half of the people ask for nothing
            more than a positive decision, a quarter for 0.3 and 0.2
            of these, and a quarter for 0.6 and 0.4.
        n_scouts, n_starts, n_threads: As for `Search`.
        seed: Of all draws.
        progress: Wraps the range of the four groups of people.
        checkpoint: A folder for how far the search is, as for `fit`.
    Raises: ValueError: as `Search`; the checkpoint is of
        other arguments.
    """
    x = problem.refused("train")
    checks.counts(n_people=len(x) if n_people is None else n_people)
    rng = np.random.default_rng(seed)
    people = torch.from_numpy(rng.permutation(len(x))[:n_people])
    weights = drawn_weights(len(people), len(problem.population.actionable), rng).to(x)
    sets = sets_of(weights.shape[-1])
    shape = (len(people), len(sets))
    found = Lessons(
        sets,
        people,
        weights,
        torch.zeros(len(people), 2),
        x.new_full(shape, torch.inf),
        x.new_zeros(*shape, sets.shape[-1]),
    )
    live = fits.Live({"asked": found.asked, "cost": found.cost, "values": found.values})

    def inputs() -> dict[str, Any]:
        effort = {"n_scouts": n_scouts, "n_starts": n_starts, "seed": seed}
        own = {"people": people, "weights": weights, "most": list(most)}
        return problem.described(x) | own | effort

    for i in fits.steps(len(SHARES), live, inputs, checkpoint, "lessons", progress):
        own = slice(i, None, len(SHARES))
        if not len(people[own]):
            continue
        log_odds, nats = (
            share * whole for share, whole in zip(SHARES[i], most, strict=True)
        )
        search = continuous.Search(
            problem,
            problem.flow,
            n_scouts=n_scouts,
            n_starts=n_starts,
            seed=seed + i,
            n_threads=n_threads,
            slack=-nats,
            margin=log_odds,
        )
        table = search.table(x[people[own]], weights[own])
        found.asked[own] = torch.tensor([log_odds, nats])
        found.cost[own], found.values[own] = table.cost, table.values
    return found


def fit(
    problem: Problem,
    settings: Settings,
    seed: int = 0,
    lessons: Lessons | None = None,
    sets: Tensor | None = None,
    progress: Callable[[range], Iterable[int]] = iter,
    checkpoint: Path | None = None,
) -> tuple[Proposer, dict[str, np.ndarray]]:
    """Train a proposer on refused people; return it, and the terms of its loss by epoch.

    Weights and margins are drawn anew for everybody in each epoch.

    Arguments:
        seed: Of the first weights and all draws.
        lessons: What a search found for some of the people; None:
            the flow alone.
        sets: Those to propose for, with shape (S, K), bool; None: all
            (at most `sets.MOST_FEATURES` features); see
            `Lessons.likeliest`.
        progress: Wraps the range of epochs, for instance `tqdm`.
        checkpoint: A folder for how far the training is. Started
            again with the same arguments, it goes on from there (see
            `lib.base.fits`). Remove it when the proposer is
            saved.
    Returns: The proposer, and for each of `TERMS` an array
        (n_epochs,).
    Raises: ValueError: the classifier has no gradient, nobody is
        refused, lessons are on other sets or none, the training
        diverges, or the checkpoint is of other arguments.
    """
    n_features = len(problem.population.actionable)
    sets = sets_of(n_features) if sets is None else sets
    rng = np.random.default_rng(seed)
    x = problem.refused("train")
    checks.not_empty('problem.refused("train")', x)
    weights = _first_weights(problem, settings, len(sets), rng, x.dtype)
    proposer = Proposer(problem, settings, sets, weights)
    if lessons is not None:
        checks.not_empty("lessons", lessons)
        lessons = lessons.on(sets)
    optimiser = Adam(weights.values(), settings.learning_rate, settings.n_epochs)
    factual = problem.flow.factual(x, proposer.columns)
    batch_size = min(settings.batch_size, len(x))
    n_batches = len(x) // batch_size
    history = {name: np.zeros(settings.n_epochs) for name in TERMS}
    scale = {name: getattr(settings, name) for name in TERMS}
    order = torch.arange(0 if lessons is None else len(lessons))
    by_term = {name: torch.from_numpy(values) for name, values in history.items()}
    live = fits.Live({**by_term, "order of lessons": order}, [rng])

    def inputs() -> dict[str, Any]:
        taught = {} if lessons is None else vars(lessons)
        own = {f"{name} of lessons": part for name, part in taught.items()}
        own |= {"settings": asdict(settings), "seed": seed, "sets": sets}
        return problem.described(x) | own

    def epoch(number: int, step: Callable[[Tensor], None]) -> dict[str, float]:
        people = _Epoch.drawn(x, n_features, settings, rng)
        for i in range(n_batches):
            own = slice(i * batch_size, (i + 1) * batch_size)
            terms: dict[str, Tensor] = {}
            if any(scale[name] for name in TERMS[:4]):
                terms |= _terms(proposer, factual, people, own)
            if lessons is not None:
                rows = order[torch.arange(own.start, own.stop) % len(lessons)]
                terms["imitation"] = _imitation(proposer, factual, lessons, rows)
            step(sum(scale[name] * term for name, term in terms.items()))
            for name, term in terms.items():
                history[name][number] += term.item() / n_batches
        if lessons is not None:
            order.copy_(order[torch.from_numpy(rng.permutation(len(lessons)))])
        return {name: float(values[number]) for name, values in history.items()}

    how = (live, inputs, checkpoint, progress)
    fits.descend("proposer", optimiser, settings.n_epochs, epoch, *how)
    trained = {name: weight.detach() for name, weight in weights.items()}
    return Proposer(problem, settings, sets, trained), history


def _first_weights(
    problem: Problem,
    settings: Settings,
    n_sets: int,
    rng: np.random.Generator,
    dtype: torch.dtype,
) -> dict[str, Tensor]:
    """Return weights uniform within 1/sqrt(fan-in), which ask for gradients.

    Those of the last layer are smaller, so that the first proposals
    are near the factual values.
    """
    weights = {}
    for i, (n_in, n_out) in enumerate(pairwise(widths(problem, settings, n_sets))):
        size = (LAST if i == settings.n_hidden else 1.0) / math.sqrt(n_in)
        for part, shape in (("weight", (n_in, n_out)), ("bias", (n_out,))):
            drawn = torch.tensor(rng.uniform(-size, size, shape), dtype=dtype)
            weights[f"{part}_{i}"] = drawn.requires_grad_()
    return weights


@dataclass(frozen=True)
class _Epoch:
    """Hold the order of N people, their weights (N, K), and what they ask for (N, 2)."""

    order: Tensor
    weights: Tensor
    asked: Tensor

    @classmethod
    def drawn(
        cls, x: Tensor, n_features: int, settings: Settings, rng: np.random.Generator
    ) -> "_Epoch":
        """Return a random epoch of people (N, D); some ask for nothing more."""
        order = torch.from_numpy(rng.permutation(len(x)))
        weights = drawn_weights(len(x), n_features, rng).to(x)
        most = torch.tensor([settings.most_log_odds, settings.most_nats])
        asked = torch.from_numpy(rng.random((len(x), 2))).to(x) * most
        asks = torch.from_numpy(rng.random((len(x), 1)) >= ASK_FOR_NOTHING)
        return cls(order, weights, asked * asks)


def _terms(
    proposer: Proposer, factual: Mapping[str, Tensor], people: _Epoch, own: slice
) -> dict[str, Tensor]:
    """Return the terms of the loss of a batch of an epoch, each a mean over all sets."""
    problem, settings = proposer.problem, proposer.settings
    rows, weights, asked = people.order[own], people.weights[own], people.asked[own]
    part = {name: value[rows] for name, value in factual.items()}
    a = proposer.values(part["x"], part["z"], weights, asked)
    on_sets = {
        name: value[:, None].expand(-1, a.shape[1], -1) for name, value in part.items()
    }
    m = proposer.sets.to(a).expand_as(a)
    x_cf, gain = problem.flow.act(on_sets, proposer.columns, m, a)
    log_odds = problem.log_odds(x_cf)
    lacks_odds = asked[:, :1] + settings.spare_log_odds - log_odds
    lacks_nats = asked[:, 1:] + settings.spare_nats - gain
    before = on_sets["x"][..., proposer.columns]
    terms = {
        "cost": problem.action_cost(before, m, a, weights[:, None].expand_as(a)),
        "hinge": capped(lacks_odds.relu(), settings.cap),
        "plausibility": capped(lacks_nats.relu(), settings.cap),
        "feasibility": problem.outside(x_cf),
    }
    return {name: term.mean() for name, term in terms.items()}


def _imitation(
    proposer: Proposer, factual: Mapping[str, Tensor], lessons: Lessons, rows: Tensor
) -> Tensor:
    """Return how far proposals are from what a search found, in units of the cost."""
    own = lessons[rows]
    x, z = (factual[name][own.people] for name in ("x", "z"))
    a = proposer.values(x, z, own.weights, own.asked)
    m = proposer.sets & own.cost.isfinite()[..., None]
    return proposer.problem.action_cost(own.values, m.to(a), a).mean()
