"""Random numbers for many people at once, each from their own stream."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lib import checks


def streams(n_people: int, seed: int, are_equal: bool = False) -> list[np.random.Generator]:
    """Return a generator for each person: of their own, or equal ones.

    Nobody's draws then depend on who else is in the batch.

    Arguments:
        are_equal: Whether all draw the same, as in the released code
            of HARE, which resets the seed for every person.
    Raises: ValueError: n_people is not above zero.
    Example:
        >>> [round(rng.random(), 2) for rng in streams(2, seed=0)]
        [0.94, 0.68]
        >>> [round(rng.random(), 2) for rng in streams(2, seed=0, are_equal=True)]
        [0.64, 0.64]
    """
    checks.positive_int(n_people=n_people)
    if are_equal:
        return [np.random.default_rng(seed) for _ in range(n_people)]
    return np.random.default_rng(seed).spawn(n_people)


def draw(rngs: Sequence[np.random.Generator], how: str, size: tuple[int, ...]) -> Tensor:
    """Return draws of numpy, each person's from their own stream: (size[0], N, *size[1:]).

    Arguments:
        rngs: One a person.
        how: Name of the generator's method: "standard_normal",
            "random", ...
        size: Of one person's draws.
    """
    draws = [getattr(rng, how)(size=size) for rng in rngs]
    return torch.from_numpy(np.stack(draws, axis=1))
