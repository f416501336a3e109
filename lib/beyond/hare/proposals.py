"""Which candidates a round of a dialogue looks at: HARE's directions, or points nearby.

A proposal is a function of the space, the values of the best so far (N, D) or of other
points (P, N, D), how many candidates n are asked for, the number i of the round, and a
stream of random numbers for each person. It returns values with shape (at least n, N,
D).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare.draws import draw
from lib.beyond.hare.spaces import Space

Streams: TypeAlias = Sequence[np.random.Generator]
Proposal: TypeAlias = Callable[[Space, Tensor, int, int, Streams], Tensor]


@dataclass(frozen=True)
class Directions:
    """Propose steps of one length in directions that differ, and lead to acceptance.

    Directions are found by descent: their loss is `diversity` times the mean
    similarity to the most similar other direction, and the cross-entropy of being
    accepted after the step.

    Arguments:
        length: Of the step, in spans.
        diversity: Weight of the first term.
        n_steps, learning_rate: Of the descent.
        is_held: Whether directions are held to what is free, and to length one, after
            every step, as the paper says; else only what is not free is left out at
            the end, as its code does it, and steps are shorter.
    Source: ActionableSampling of HARE.
    """

    length: float = 1.0
    diversity: float = 10.0
    n_steps: int = 100
    learning_rate: float = 0.1
    is_held: bool = True

    def __call__(self, space: Space, at: Tensor, n: int, i: int, rngs: Streams) -> Tensor:
        """Return values with shape (n, N, D).

        Raises: ValueError: the classifier has no gradient.
        """
        start = draw(rngs, "standard_normal", (n, space.x.shape[-1]))
        p = start.to(space.x).transpose(0, 1).contiguous()  # (N, n, D)
        free = space.free[:, None].to(p)
        step = self.length * space.span
        if self.is_held:
            p = F.normalize(p * free, dim=-1)
        p.requires_grad_()
        adam = torch.optim.Adam([p], self.learning_rate, fused=True)
        for _ in range(self.n_steps):
            unit = F.normalize(p, dim=-1)
            nearest = most_similar(unit.detach())
            similarity = (unit * unit.gather(1, nearest.expand_as(unit))).sum(-1).mean(-1)
            log_odds = space.log_odds(at + step * unit.transpose(0, 1))
            if not log_odds.requires_grad:
                raise ValueError(
                    "Directions need the gradient of the classifier, and this one has "
                    "none. Propose points nearby, Local()."
                )
            cross_entropy = F.softplus(-log_odds).sum() / n
            loss = self.diversity * similarity.sum() + cross_entropy
            adam.zero_grad()
            loss.backward(inputs=[p])
            adam.step()
            if self.is_held:
                p.data.copy_(F.normalize(p.data * free, dim=-1))
        unit = free * F.normalize(p.detach(), dim=-1)
        return at + step * unit.transpose(0, 1)


def most_similar(unit: Tensor) -> Tensor:
    """Return which other direction each of them (N, n, D) is most similar to: (N, n, 1)."""
    if unit.shape[1] == 1:  # it has no other
        return torch.zeros_like(unit[..., :1], dtype=torch.long)
    cosine = unit @ unit.mT
    cosine.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    return cosine.argmax(-1, keepdim=True)


@dataclass(frozen=True)
class Local:
    """Propose points around the best so far, ever nearer, and a few from anywhere.

    Arguments:
        n_points: Points for each candidate that is asked for.
        first, shrink: Greatest distance in the first round, in spans, and what it is
            multiplied by from round to round.
        still: With which probability a feature stays as it is: in the incumbent, or,
            of a point from anywhere, in the person.
        least: A feature nearer than this to its factual value, in spans, is not acted
            on.
        anywhere: Share of the points that come from anywhere between low and high ...
        n_anywhere: ... in so many rounds at the start.
    Raises: ValueError: first or shrink is not above zero, or a share is not one.
    """

    n_points: int = 24
    first: float = 0.35
    shrink: float = 0.8
    still: float = 0.25
    least: float = 0.02
    anywhere: float = 0.3
    n_anywhere: int = 3

    def __post_init__(self) -> None:
        checks.positive(first=self.first, shrink=self.shrink)
        for name in ("still", "anywhere"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a share.")

    def __call__(self, space: Space, at: Tensor, n: int, i: int, rngs: Streams) -> Tensor:
        """Return values with shape (n x n_points, N, D)."""
        n_points, n_features = self.n_points * n, space.x.shape[-1]
        away = draw(rngs, "standard_normal", (n_points, n_features)).to(space.x)
        chances = draw(rngs, "random", (n_points, 2 * n_features + 2)).to(space.x)
        stays, places, far, elsewhere = chances.split([n_features, n_features, 1, 1], -1)
        away = away * space.free
        n_free = space.free.sum(-1, keepdim=True)
        # uniform in a ball: the radius is a root of a uniform number
        lengths = self.first * self.shrink**i * far ** (1 / n_free)
        near = at + space.span * lengths * F.normalize(away, dim=-1)
        near = torch.where(stays < self.still, at, near)
        is_anywhere = (elsewhere < self.anywhere) & (i < self.n_anywhere)
        anywhere = space.low + (space.high - space.low) * places
        anywhere = torch.where(stays < self.still, space.x, anywhere)
        values = torch.where(is_anywhere & space.free, anywhere, near)
        is_little = (values - space.x).abs() < self.least * space.span
        return torch.where(is_little, space.x, values)


def farthest(points: Tensor, is_good: Tensor, start: Tensor, n: int) -> list[Tensor]:
    """Return which good points lie farthest from each other and from a start, one by one.

    Arguments:
        points: With shape (P, N, D): P for each of N people.
        is_good: Which of them may be taken, with shape (P, N).
        start: With shape (N, D).
        n: How many are taken.
    Returns: n rows of points, each with shape (N,); -1 where no good point is left that
        differs from the start and those taken.
    Source: Gonzalez (1985), clustering by farthest points, doi
        10.1016/0304-3975(85)90224-5.
    Example:
        >>> points = torch.tensor([1.0, 5.0, 3.0, 9.0]).view(4, 1, 1)
        >>> is_good = torch.tensor([[True], [True], [True], [False]])
        >>> [int(row) for row in farthest(points, is_good, torch.zeros(1, 1), 4)]
        [1, 2, 0, -1]
    """
    apart = (points - start).square().sum(-1)
    apart = torch.where(is_good, apart, -torch.inf)
    people, taken = torch.arange(points.shape[1]), []
    for _ in range(n):
        most, row = apart.max(0)
        is_left = most > 0
        taken.append(torch.where(is_left, row, -1))
        nearest = (points - points[row, people]).square().sum(-1)
        apart = torch.minimum(apart, torch.where(is_left, nearest, torch.inf))
    return taken
