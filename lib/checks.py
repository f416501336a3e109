"""Argument validation: what was expected, what came, and the way out."""

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor


def one_of(what: str, names: Iterable[str | int], allowed: Sequence[str | int]) -> None:
    """Raise ValueError if one of the names is not among the allowed ones.

    Arguments:
        what: What the names are of, for the message.
        names: Those that a caller gave.
        allowed: Those that there are.

    Example:
        >>> one_of("split", ["train"], ("train", "test"))
        >>> one_of("split", ["tets"], ("train", "test"))
        Traceback (most recent call last):
        ValueError: Unknown split 'tets': expected one of train, test. Did you mean 'test'?
    """
    for name in names:
        if name not in allowed:
            near = get_close_matches(str(name), map(str, allowed), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"Unknown {what} {name!r}: expected one of "
                f"{', '.join(map(str, allowed))}.{hint}"
            )


def keys(mapping: Any, allowed: Sequence[str], what: str) -> None:
    """Raise ValueError unless this is a mapping with no other keys than the allowed ones.

    Arguments:
        what: What a key is called in the message.
    """
    if not isinstance(mapping, dict):
        raise ValueError(f"Expected {', '.join(allowed)} with values, got {mapping!r}.")
    one_of(what, mapping, allowed)


def people(
    name: str, x: Tensor, features: Sequence[str], dtype: torch.dtype | None = None
) -> None:
    """Raise ValueError unless x holds people: a finite floating-point tensor (*, D).

    Arguments:
        name: What the caller calls x, for the message.
        x: What should have the shape (*, D); no people at all are
            allowed.
        features: The names of the D features.
        dtype: That of the model; left out: any floating-point one.

    Example:
        >>> people("x", torch.zeros(3, 2), ("income", "savings"))
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{name} must be a floating-point tensor, got {kind}.")
    if x.ndim < 1 or x.shape[-1] != len(features):
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, but its last axis must hold the "
            f"{len(features)} features ({', '.join(features)}). Was the label column "
            "dropped, or one kept too many?"
        )
    if dtype is not None and x.dtype != dtype:
        raise ValueError(
            f"{name} holds {x.dtype}, the model works in {dtype}: use {name}.to({dtype})."
        )
    is_bad = ~x.isfinite().reshape(-1, len(features)).all(0)
    if is_bad.any():
        where = ", ".join(features[j] for j in is_bad.nonzero().flatten().tolist())
        raise ValueError(
            f"{name} holds NaN or infinite values (in {where}). Drop or repair those rows."
        )


def shape(name: str, x: Tensor, expected: Sequence[int]) -> None:
    """Raise ValueError unless x has exactly the expected shape."""
    if tuple(x.shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(x.shape)}, expected {tuple(expected)}.")


def refused(is_accepted: Tensor) -> None:
    """Raise ValueError if somebody is accepted already: they need no recourse.

    Arguments:
        is_accepted: Whether the classifier accepts each person, with
            shape (*, N).
    """
    if is_accepted.any():
        first = int(is_accepted.reshape(-1).nonzero()[0])
        raise ValueError(
            f"{int(is_accepted.sum())} of {is_accepted.numel()} people are already "
            f"accepted (the first is row {first}): recourse is for refused people. Keep "
            "x[~problem.accepts(x)]."
        )


def positive(**values: float) -> None:
    """Raise ValueError unless every value is a finite number above zero."""
    for name, value in values.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            raise ValueError(f"{name} must be above zero, got {value!r}.")


def positive_int(**values: int) -> None:
    """Raise ValueError unless every value is a whole number above zero."""
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a whole number above zero, got {value!r}.")


def not_empty(name: str, values: Sized) -> None:
    """Raise ValueError if there is nothing in it: no people, no members, no names."""
    if len(values) == 0:
        raise ValueError(f"{name} is empty: expected at least one.")


class Diverged(ValueError):
    """A term of a fit's loss is NaN or infinite."""


def converging(what: str, epoch: int, terms: Mapping[str, float]) -> None:
    """Raise Diverged if a term of a fit's loss is NaN or infinite after an epoch.

    Arguments:
        what: What is fitted, for the message.
        epoch: Which epoch has ended, from 0.
        terms: Name and value of each term.
    """
    for name, value in terms.items():
        if not math.isfinite(value):
            raise Diverged(
                f"The fit of the {what} diverged: its {name} is {value} after epoch "
                f"{epoch + 1}. Try a tenth of the learning_rate, and see that no feature "
                "has values thousands of standard deviations from the mean."
            )
