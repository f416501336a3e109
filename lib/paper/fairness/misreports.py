"""People who say something else than what they can do, and what becomes of them."""

import numpy as np
import torch
from torch import Tensor

from lib.base import checks

KINDS = ("hides", "claims")


def misreported(
    is_actionable: Tensor, share: float, kind: str, rng: np.random.Generator
) -> Tensor:
    """Return what people say they can act on, if a share of them errs in one feature.

    Arguments:
        is_actionable: What they can act on, with shape (N, K), bool.
        share: Of people who err, drawn at random. Whoever can't err
            in this way tells the truth: nobody hides their last
            feature, and nobody claims one where all are open.
        kind: "hides" says "can't" of a feature that they can act on,
            "claims" says that they can act on one that they can't.
        rng: Draws who errs, and in which feature.
    Returns: A mask with shape (N, K).
    Raises: ValueError: the share is outside of [0, 1], the kind is
        unknown, or is_actionable is no mask.
    """
    checks.known("kind of error", [kind], KINDS)
    if is_actionable.dtype != torch.bool or is_actionable.ndim != 2:
        raise ValueError(
            f"is_actionable is of {is_actionable.dtype} with shape "
            f"{tuple(is_actionable.shape)}: expected a mask with shape (N, K)."
        )
    if not 0 <= share <= 1:
        raise ValueError(f"Expected a share of people within [0, 1], got {share!r}.")
    errs_in = is_actionable if kind == "hides" else ~is_actionable
    least = 2 if kind == "hides" else 1
    order = rng.random(is_actionable.shape)
    errs = rng.random(len(is_actionable)) < share
    errs &= errs_in.sum(-1).numpy() >= least
    feature = np.where(errs_in.numpy(), order, -1.0).argmax(-1)
    said = is_actionable.numpy().copy()
    said[errs, feature[errs]] = kind == "claims"
    return torch.from_numpy(said)


def can_follow(is_acted: Tensor, is_actionable: Tensor) -> Tensor:
    """Return whether a person can do all that is recommended, with shape (*, N).

    Arguments:
        is_acted: Over the K actionable features, with shape (*, N,
            K).
        is_actionable: What they can act on in truth, (N, K).
    Raises: ValueError: the last two axes differ.
    """
    checks.shape("is_acted", is_acted, (*is_acted.shape[:-2], *is_actionable.shape))
    return ~(is_acted & ~is_actionable).any(-1)
