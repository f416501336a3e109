"""Training of a stack of iCARMA's networks: side by side, each with its own draws."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import fits
from lib.base.arithmetic import Adam
from lib.method.icarma import TERMS, ICarma, Settings, weight_shapes
from lib.method.preferences import side_by_side
from lib.method.problem import Problem
from lib.method.samplers import Sampler

# members that agree in these are trained side by side
SIDE_BY_SIDE = ("n_epochs", "batch_size", "learning_rate", "weight_decay", "falling")

# by how much CARMA's code holds its multiplier back while people still lack validity
DAMPING = 10.0

History = dict[str, np.ndarray]
AfterEpoch = Callable[[int, ICarma], np.ndarray | None]


def fit(
    problem: Problem,
    samplers: Sampler | Sequence[Sampler],
    settings: Settings | Sequence[Settings] | None = None,
    seeds: Sequence[int] = (0,),
    progress: Callable[[range], Iterable[int]] = iter,
    after_epoch: AfterEpoch | None = None,
    checkpoint: Path | None = None,
) -> tuple[ICarma, History]:
    """Train members on the refused people of the training split; return them and history.

    Members that agree in `SIDE_BY_SIDE` are trained at once, the
    others after them. Preferences are drawn anew for every person in
    every epoch; an epoch ends with the last full batch. Each member
    has its own random stream, so that its result does not depend on
    who is trained beside it (up to rounding).

    Where `Settings.hinge` is None, the hinge has a multiplier, as in
    CARMA's code. It begins at zero and grows with every batch by the
    hinge H of that batch; the weight is the multiplier less 10 H.

    Arguments:
        samplers, settings: Of each of the M members; one alone serves
            them all. Left out: `Settings()`. Networks whose sampler
            draws limits are told of them, and trained to keep them.
        seeds: Of each member.
        progress: Wraps the range of epochs, for instance `tqdm`.
        after_epoch: Called with the number of epochs done and the
            stack of those trained side by side, as it stands. It may
            return a number for each of these members.
        checkpoint: A folder for how far the training is. Started
            again with the same arguments, it goes on from there (see
            `lib.base.fits`). Remove it when the stack is
            saved.
    Returns: The stack, and the mean of each loss term (see
        `icarma.TERMS`) by epoch and member, with shape (n_epochs, M)
        for the largest n_epochs; NaN after a member's last. If
        `after_epoch` was given, the history has what it returned
        under "after_epoch", NaN where that was nothing.
    Raises: ValueError: lists of different lengths; widths differ; no
        one is refused; the classifier has no gradient; the fit
        diverges; the checkpoint is of other arguments.
    Source: CARMA's multiplier: its public code, see notebook 03.
    Example:
        >>> from lib.method.samplers import RankingSampler
        >>> sampler = RankingSampler(problem.population.actionable)
        >>> stack, history = fit(problem, sampler, Settings(n_epochs=1), seeds=[0, 1])
        >>> stack.n_members, history["cost"].shape
        (2, (1, 2))
    """
    settings = Settings() if settings is None else settings
    settings = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    samplers = list(samplers) if isinstance(samplers, Sequence) else [samplers] * len(seeds)
    _check(problem, samplers, settings, seeds)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, own in enumerate(settings):
        key = tuple(getattr(own, name) for name in SIDE_BY_SIDE)
        groups.setdefault(key, []).append(i)
    longest = max(own.n_epochs for own in settings)
    weights: dict[str, Tensor] = {}
    history: History = {}
    for number, members in enumerate(groups.values()):
        fitted, terms = _fit_side_by_side(
            problem,
            [samplers[i] for i in members],
            [settings[i] for i in members],
            [seeds[i] for i in members],
            progress,
            after_epoch,
            checkpoint,
            f"networks_{number}",
        )
        for name, weight in fitted.items():
            every = weights.setdefault(
                name, weight.new_empty(len(seeds), *weight.shape[1:])
            )
            every[members] = weight
        for name, values in terms.items():
            empty = np.full((longest, len(seeds)), np.nan)
            history.setdefault(name, empty)[: len(values), members] = values
    return ICarma(problem, settings, seeds, weights), history


def _check(
    problem: Problem,
    samplers: Sequence[Sampler],
    settings: Sequence[Settings],
    seeds: Sequence[int],
) -> None:
    """Raise ValueError unless these members can be trained as one stack."""
    problem.check_gradient("iCARMA's training")
    if not len(samplers) == len(settings) == len(seeds) > 0:
        raise ValueError(
            "Expected one sampler, one setting and one seed a member, got "
            f"{len(samplers)}, {len(settings)} and {len(seeds)}."
        )
    if len({own.hidden for own in settings}) > 1:
        raise ValueError(
            "Members of one stack must share hidden. Train those that differ in a stack of "
            "their own."
        )
    n_people = len(problem.refused("train"))
    if len({_draws_limits(own, n_people) for own in samplers}) > 1:
        raise ValueError(
            "Some samplers draw limits, others don't. Train those that differ in a stack "
            "of their own."
        )
    if n_people == 0:
        raise ValueError(
            "Nobody in the training split is refused, so there is no one to train on. "
            "Does the classifier return log-odds, 0 or above for yes? (A probability p "
            "has the log-odds log(p / (1 - p)).) Else draw more people."
        )


def _fit_side_by_side(
    problem: Problem,
    samplers: Sequence[Sampler],
    settings: Sequence[Settings],
    seeds: Sequence[int],
    progress: Callable[[range], Iterable[int]],
    after_epoch: AfterEpoch | None,
    checkpoint: Path | None,
    name: str,
) -> tuple[dict[str, Tensor], History]:
    """Return the weights, and the history with shape (n_epochs, M) of each entry.

    Arguments:
        name: Of the file in the folder of the checkpoint.
    """
    shared, x = settings[0], problem.refused("train")
    rngs = [np.random.default_rng(seed) for seed in seeds]
    hears_limits = _draws_limits(samplers[0], len(x))
    weights = initial_weights(problem, shared.hidden, rngs, x.dtype, hears_limits)
    stack = ICarma(problem, settings, seeds, weights)
    optimiser = Adam(
        weights.values(),
        shared.learning_rate,
        n_decays=shared.n_epochs if shared.falling else 0,
        weight_decay=shared.weight_decay,
    )
    weigh = _TermWeights(settings, x.dtype)
    factual = problem.flow.factual(x, stack.columns)
    batch_size = min(shared.batch_size, len(x))
    n_batches = len(x) // batch_size
    history = np.zeros((len(TERMS), shared.n_epochs, len(seeds)))
    said = np.full((shared.n_epochs, len(seeds)), np.nan)
    live = fits.Live(
        {
            "multiplier": weigh.multiplier,
            "history": torch.from_numpy(history),
            "after_epoch": torch.from_numpy(said),
        },
        rngs,
    )

    def inputs() -> dict[str, Any]:
        return {
            **problem.described(x),
            **{f"draws of sampler {i}": _drawn(s, len(x)) for i, s in enumerate(samplers)},
            "settings": [asdict(own) for own in settings],
            "seeds": [int(seed) for seed in seeds],
            "after_epoch": _source(after_epoch),
        }

    def epoch(number: int, step: Callable[[Tensor], None]) -> dict[str, float]:
        rows = _epoch(stack, samplers, factual, rngs)
        for i in range(n_batches):
            own = slice(i * batch_size, (i + 1) * batch_size)
            by_term = stack.loss_terms({name: row[:, own] for name, row in rows.items()})
            terms = torch.stack([by_term[name] for name in TERMS])
            step((weigh(terms.detach()) * terms).sum())
            history[:, number] += terms.detach().numpy() / n_batches
        return dict(zip(TERMS, history[:, number].sum(1).tolist(), strict=True))

    def after(number: int) -> None:
        found = after_epoch(number + 1, stack) if after_epoch is not None else None
        said[number] = np.nan if found is None else found

    how = (live, inputs, checkpoint, progress, after, name)
    fits.descend("networks", optimiser, shared.n_epochs, epoch, *how)
    by_name = dict(zip(TERMS, history, strict=True))
    if after_epoch is not None:
        by_name["after_epoch"] = said
    return {name: weight.detach() for name, weight in weights.items()}, by_name


def _source(function: AfterEpoch | None) -> bytes:
    """Return the source of a function, or the name of its type where there is none."""
    try:
        return inspect.getsource(function).encode() if function else b""
    except (OSError, TypeError):
        return type(function).__name__.encode()


class _TermWeights:
    """Hold the weight of each term of the loss, and the multipliers that grow."""

    def __init__(
        self, settings: Sequence[Settings], dtype: torch.dtype = torch.float32
    ) -> None:
        by_term = [[getattr(own, term) for own in settings] for term in TERMS]
        grows = [own.hinge is None for own in settings]
        self._fixed = torch.tensor([[w or 0.0 for w in row] for row in by_term])
        self._grows = torch.tensor(grows) if any(grows) else None
        self.multiplier = torch.zeros(len(settings), dtype=dtype)

    def __call__(self, terms: Tensor) -> Tensor:
        """Return the weights, with shape (5, M), for terms of one batch, of that shape."""
        if self._grows is None:
            return self._fixed
        weights, at = self._fixed.clone(), TERMS.index("hinge")
        self.multiplier.add_(terms[at])
        now = self.multiplier - DAMPING * terms[at]
        weights[at] = torch.where(self._grows, now, self._fixed[at])
        return weights


def initial_weights(
    problem: Problem,
    hidden: int,
    rngs: Sequence[np.random.Generator],
    dtype: torch.dtype,
    hears_limits: bool = False,
) -> dict[str, Tensor]:
    """Return weights uniform within 1/sqrt(fan-in), each member's from its own stream.

    Arguments:
        hidden: Width of the two hidden layers of either network.
        hears_limits: Whether they are told of limits.
        rngs: The stream of each of the M members.
    Returns: By name, as in `ICarma`; they ask for gradients.
    Example:
        >>> rngs = [np.random.default_rng(seed) for seed in (0, 1)]
        >>> weights = initial_weights(problem, 64, rngs, torch.float32)
        >>> weights["mask_weight_0"].shape  # members, inputs, width
        torch.Size([2, 15, 64])
    """
    weights, n_in = {}, 1
    shapes = weight_shapes(problem, hidden, len(rngs), hears_limits)
    for name, (_, *shape) in shapes.items():
        if "weight" in name:  # a layer's weight, and then its bias
            n_in = shape[0]
        drawn = np.stack([rng.uniform(-1, 1, shape) / np.sqrt(n_in) for rng in rngs])
        weights[name] = torch.tensor(drawn, dtype=dtype, requires_grad=True)
    return weights


def _draws_limits(sampler: Sampler, n_people: int) -> bool:
    """Return whether a sampler draws limits for so many people."""
    return sampler.draw(range(n_people), np.random.default_rng(0)).limits is not None


def _drawn(sampler: Sampler, n_people: int) -> Tensor:
    """Return the scores that a sampler draws from a stream of its own, with shape (N, K).

    They tell samplers apart.
    """
    return sampler.draw(range(n_people), np.random.default_rng(0)).scores


def _epoch(
    stack: ICarma,
    samplers: Sequence[Sampler],
    factual: dict[str, Tensor],
    rngs: Sequence[np.random.Generator],
) -> dict[str, Tensor]:
    """Return the people of an epoch for `ICarma.loss_terms`, in each member's own order."""
    n_people, n_actionable = len(factual["x"]), len(stack.columns)
    orders = [rng.permutation(n_people) for rng in rngs]
    draws = zip(samplers, orders, rngs, strict=True)
    drawn = [sampler.draw(own, rng) for sampler, own, rng in draws]
    uniform = np.stack([rng.random((n_people, n_actionable)) for rng in rngs])
    noise = torch.logit(torch.from_numpy(uniform), eps=1e-9).to(factual["x"].dtype)
    order = np.stack(orders)
    shuffled = {
        name: torch.from_numpy(np.take(value.numpy(), order, axis=0))
        for name, value in factual.items()
    }
    return stack.batch(shuffled, side_by_side(drawn), noise)
