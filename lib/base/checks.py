"""Checks at the door of public functions: what was expected, what came, the way out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import torch
from torch import Tensor


def known(what: str, names: Iterable[str | int], allowed: Sequence[str | int]) -> None:
    """Raise ValueError if one of the names is not among the allowed ones."""
    for name in names:
        if name not in allowed:
            near = get_close_matches(str(name), map(str, allowed), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"Unknown {what} {name!r}: expected one of {', '.join(map(str, allowed))}.{hint}"
            )


def people(name: str, x: Tensor, features: Sequence[str]) -> None:
    """Raise ValueError unless x is a finite floating-point tensor with shape (*, D)."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = f"a tensor of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(
            f"{name} must be a floating-point tensor with shape (*, {len(features)}), got {kind}."
        )
    if x.ndim < 1 or x.shape[-1] != len(features):
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, but its last axis must hold the {len(features)} features "
            f"({', '.join(features)}). Was the label column dropped, or one kept too many?"
        )
    if (x - x).any():  # nothing but zeros where all are finite
        bad = (
            (~torch.isfinite(x)).flatten(0, -2).any(0) if x.ndim > 1 else ~torch.isfinite(x)
        )
        where = ", ".join(f for f, b in zip(features, bad.tolist(), strict=True) if b)
        raise ValueError(
            f"{name} holds NaN or infinite values (in {where}). Drop or repair those rows first."
        )


def shape(name: str, x: Tensor, expected: Sequence[int]) -> None:
    """Raise ValueError unless x has exactly the expected shape."""
    if tuple(x.shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(x.shape)}, expected {tuple(expected)}.")


def refused(is_accepted: Tensor) -> None:
    """Raise ValueError if somebody is accepted already: they need no recourse."""
    if is_accepted.any():
        first = int(is_accepted.nonzero()[0, 0])
        raise ValueError(
            f"{int(is_accepted.sum())} of {len(is_accepted)} people are already accepted (the first is row {first}): "
            "recourse is for refused people. Keep x[~problem.accepts(x)]."
        )


def positive(**values: float) -> None:
    """Raise ValueError unless every value is a number above zero."""
    for name, value in values.items():
        if isinstance(value, bool) or not value > 0:
            raise ValueError(f"{name} must be above zero, got {value!r}.")


def converging(what: str, epoch: int, terms: Mapping[str, float]) -> None:
    """Raise ValueError if a term of a fit's loss is NaN or infinite after an epoch.

    Example:
        >>> converging("flow", 3, {"log-likelihood": float("nan")})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: The fit of the flow diverged: its log-likelihood is nan after epoch 4. Try ...
    """
    for name, value in terms.items():
        if not math.isfinite(value):
            raise ValueError(
                f"The fit of the {what} diverged: its {name} is {value} after epoch {epoch + 1}. "
                "Try a smaller learning_rate, a tenth of it say; and see that no feature has "
                "values thousands of standard deviations from the mean."
            )
