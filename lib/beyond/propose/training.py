"""Training of a proposer: through the flow, and on actions that a search found.

Everybody acts on every set of features, and the flow gives the
consequences and their gradients: no solved example is needed. Targets,
the actions that `lib.search.continuous` finds, are imitated beside
that; they lead out of local optima.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, io
from lib.beyond.propose.propose import TERMS, Proposer, Settings
from lib.method.icarma import saturating
from lib.method.problem import Problem
from lib.search import continuous
from lib.search.sets import sets_of

# drawn weights of the cost: of half of the people all are one; of the others each has a
# logarithm between minus and plus this
MAX_LOG_WEIGHT = 1.2
# margin and gain that a search for targets asks for, as shares of the largest: of four
# groups of people
TARGET_DEMANDS = ((0.0, 0.0), (0.0, 0.0), (0.3, 0.2), (0.6, 0.4))
LAST_LAYER_SCALE = 0.3  # of its first weights, so that proposals begin near today's values
SHARE_WITHOUT_DEMANDS = 0.3  # of people, in each epoch

# settings that differ for Give Me Some Credit
GMSC_SETTINGS: dict[str, Any] = {
    "hinge": 4.0,
    "plausibility": 1.5,
    "saturation": 2.0,
    "extra_margin": 0.1,
    "max_margin": 1.0,
    "batch_size": 256,
}


@dataclass(frozen=True)
class Targets:
    """Hold the cheapest actions that a search found for L people, on all S sets.

    Arguments:
        people: Rows among the refused training people, with shape
            (L,).
        weights: Of their cost, with shape (L, K).
        demands: Log-odds, and nats to be gained, with shape (L, 2).
        cost: Of the cheapest action on each set, infinite where none
            was found, with shape (L, S).
        values: Of that action, with shape (L, S, K).
    """

    people: Tensor
    weights: Tensor
    demands: Tensor
    cost: Tensor
    values: Tensor

    def __len__(self) -> int:
        """Return the number of people L."""
        return len(self.people)

    def __getitem__(self, rows: Tensor | slice) -> "Targets":
        """Return the targets of some people."""
        return Targets(*(tensor[rows] for tensor in vars(self).values()))


def search_targets(
    problem: Problem,
    n_people: int | None = None,
    max_margin: float = 8.0,
    n_samples: int = 64,
    n_starts: int = 2,
    seed: int = 0,
) -> Targets:
    """Search through the flow for refused training people, and return what is found.

    A half of the people ask for no more than a positive decision, a
    quarter for 0.3 and 0.2 of the largest margin and gain, and a
    quarter for 0.6 and 0.4.

    Arguments:
        n_people: Drawn without replacement; None, or more than there
            are: all.
        max_margin: As of `Settings`, whose `max_gain` is searched for, too.
        n_samples, n_starts: As for `Search`.
        seed: Of all draws.
    Raises: ValueError: n_people is no whole number above zero;
        otherwise as `Search`.
    """
    x = problem.refused("train")
    checks.positive_int(n_people=len(x) if n_people is None else n_people)
    rng = np.random.default_rng(seed)
    people = torch.from_numpy(rng.permutation(len(x))[:n_people])
    n_features = len(problem.population.actionable)
    weights = draw_cost_weights(len(people), n_features, rng).to(x)
    demands = torch.zeros(len(people), 2)
    cost = x.new_full((len(people), len(sets_of(n_features))), torch.inf)
    values = x.new_zeros(*cost.shape, n_features)
    for i, (margin, gain) in enumerate(TARGET_DEMANDS):
        rows = slice(i, None, len(TARGET_DEMANDS))
        if not len(people[rows]):
            continue
        margin, gain = margin * max_margin, gain * Settings.max_gain
        search = continuous.Search(
            problem,
            problem.flow,
            n_samples=n_samples,
            n_starts=n_starts,
            seed=seed + i,
            progress=io.progress_bar("targets"),
            slack=-gain,
            margin=margin,
        )
        table = search.table(x[people[rows]], weights[rows])
        demands[rows] = torch.tensor([margin, gain])
        cost[rows], values[rows] = table.cost, table.values
    return Targets(people, weights, demands, cost, values)


def draw_cost_weights(n_people: int, n_features: int, rng: np.random.Generator) -> Tensor:
    """Return random weights of the cost, with shape (n_people, n_features).

    For half of the people all are one; for the others each is between
    0.3 and 3.3, uniform on a log scale.
    """
    is_one = torch.from_numpy(rng.random((n_people, 1)) < 0.5)
    log_weights = rng.uniform(-MAX_LOG_WEIGHT, MAX_LOG_WEIGHT, (n_people, n_features))
    return torch.where(is_one, 1.0, torch.from_numpy(log_weights).exp())


def fit(
    problem: Problem,
    settings: Settings,
    seed: int = 0,
    targets: Targets | None = None,
    progress: Callable[[range], Iterable[int]] | None = None,
) -> tuple[Proposer, pd.DataFrame]:
    """Train a proposer on the refused people of the training split.

    Weights of the cost and demands are drawn anew for everybody in
    each epoch; an epoch ends with the last full batch.

    Arguments:
        seed: Of the first weights and all draws.
        targets: Actions that a search found for some of the people;
            None: the flow alone.
        progress: Wraps the range of epochs; None: a progress bar.
    Returns: The proposer, frozen, and a table by epoch with the mean
        of each term of the loss, its columns `TERMS`.
    Raises: ValueError: the classifier has no gradient, nobody is
        refused, targets are empty, or the fit diverges.
    """
    x = problem.refused("train")
    checks.not_empty('problem.refused("train")', x)
    if targets is not None:
        checks.not_empty("targets", targets)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        proposer = Proposer(problem, settings)
    with torch.no_grad():
        for parameter in proposer.network[-1].parameters():
            parameter.mul_(LAST_LAYER_SCALE)
    rng = np.random.default_rng(seed)
    adam = torch.optim.Adam(proposer.parameters(), settings.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, settings.n_epochs)
    factual = problem.flow.factual(x)
    batch_size = min(settings.batch_size, len(x))
    n_batches = len(x) // batch_size
    term_weights = {name: getattr(settings, name) for name in TERMS}
    progress = progress or io.progress_bar("proposer")
    history = []
    for epoch in progress(range(settings.n_epochs)):
        order = torch.from_numpy(rng.permutation(len(x)))
        weights, demands = _draw_demands(proposer, len(x), rng)
        if targets is not None:
            targets = targets[torch.from_numpy(rng.permutation(len(targets)))]
        means = dict.fromkeys(TERMS, 0.0)
        for i in range(n_batches):
            batch = torch.arange(i * batch_size, (i + 1) * batch_size)
            people = {name: t[order[batch]] for name, t in factual.items()}
            terms = loss_terms(proposer, people, weights[batch], demands[batch])
            if targets is not None:
                some = targets[batch % len(targets)]
                terms["imitation"] = imitation(proposer, factual, some)
            loss = sum(term_weights[name] * term for name, term in terms.items())
            adam.zero_grad()
            loss.backward()
            adam.step()
            for name, term in terms.items():
                means[name] += term.item() / n_batches
        schedule.step()
        checks.converging("proposer", epoch, means)
        history.append(means)
    epochs = pd.RangeIndex(1, settings.n_epochs + 1, name="epoch")
    return proposer.requires_grad_(False), pd.DataFrame(history, epochs)


def _draw_demands(
    proposer: Proposer, n_people: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return weights of the cost (N, K), and demands (N, 2), of which some are zero."""
    settings, dtype = proposer.settings, proposer.problem.flow.dtype
    weights = draw_cost_weights(n_people, len(proposer.columns), rng)
    largest = torch.tensor([settings.max_margin, settings.max_gain], dtype=dtype)
    demands = torch.from_numpy(rng.random((n_people, 2))).to(dtype) * largest
    has_demands = torch.from_numpy(rng.random((n_people, 1)) >= SHARE_WITHOUT_DEMANDS)
    return weights.to(dtype), demands * has_demands


def loss_terms(
    proposer: Proposer, factual: Mapping[str, Tensor], weights: Tensor, demands: Tensor
) -> dict[str, Tensor]:
    """Return four terms of the loss, each a mean over people and sets.

    Arguments:
        factual: Of N people, as `CausalFlow.factual` gives it.
        weights: Of their cost, with shape (N, K).
        demands: Log-odds, and nats to be gained, with shape (N, 2).
    """
    problem, settings = proposer.problem, proposer.settings
    a = proposer(factual["x"], factual["z"], weights, demands)
    n_sets = len(proposer.sets)
    on_sets = {k: t[:, None].expand(-1, n_sets, -1) for k, t in factual.items()}
    m = proposer.sets.to(a).expand_as(a)
    x_cf, log_p_cf = problem.flow.act(on_sets, proposer.columns, m, a)
    gain = log_p_cf - on_sets["log_p"].sum(-1)
    lacks_margin = demands[:, :1] + settings.extra_margin - problem.log_odds(x_cf)
    lacks_gain = demands[:, 1:] + settings.extra_gain - gain
    before = on_sets["x"][..., proposer.columns]
    terms = {
        "cost": problem.action_cost(before, m, a, weights[:, None].expand_as(a)),
        "hinge": saturating(lacks_margin.relu(), settings.saturation),
        "plausibility": saturating(lacks_gain.relu(), settings.saturation),
        "feasibility": problem.out_of_range(x_cf),
    }
    return {name: term.mean() for name, term in terms.items()}


def imitation(
    proposer: Proposer, factual: Mapping[str, Tensor], targets: Targets
) -> Tensor:
    """Return how far proposals are from targets, in the units of the cost, with shape ().

    Arguments:
        factual: Of all refused training people, as
            `CausalFlow.factual` gives it.
    """
    x, z = factual["x"][targets.people], factual["z"][targets.people]
    a = proposer(x, z, targets.weights, targets.demands)
    m = proposer.sets & targets.cost.isfinite()[..., None]
    return proposer.problem.action_cost(targets.values, m.to(a), a).mean()
