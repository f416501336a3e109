"""Compare an answer with the truth, and name the likely mistake.

A key is a function in exercises/keys that computes the truth of one exercise, and the wrong
answers that people arrive at. Nothing that somebody answers makes `check` fail.
"""

import functools
import importlib
import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from lib.io import ROOT

Truth = str | float | frozenset[str] | np.ndarray | torch.Tensor
Status = Literal["right", "mistake", "wrong", "not answered yet", "not understood"]

_KEYS: dict[str, Callable[[], "Key"]] = {}


@dataclass(frozen=True)
class Key:
    """The truth of an exercise.

    Arguments:
        truth: A letter of `options`, a number, a set of names, or an
            array or tensor of numbers.
        because: Said when the answer is right.
        mistakes: Pairs of a wrong answer and a hint, which names the
            mistake that leads there.
        within: How far numbers may be from the truth.
        options: The letters to choose from, if it is a choice.
        of: Turns what was answered into what is compared, where that
            is not the answer itself: calls a function that was asked
            for. What it raises is told, and stops nothing.
        each: What each number of an array stands for, as "person"; said
            of the first that differs.
    """

    truth: Truth
    because: str
    mistakes: tuple[tuple[Any, str], ...] = ()
    within: float = 0.0
    options: str = ""
    of: Callable[[Any], Any] | None = None
    each: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is said of an answer; shown as its text."""

    status: Status
    text: str

    def __repr__(self) -> str:
        """Return the text, for the end of a cell."""
        return self.text


def choice(truth: str, because: str, hints: Mapping[str, str]) -> Key:
    """Return the key of a choice between letters.

    Arguments:
        truth: The right letter, computed.
        because: Said when the answer is right.
        hints: For each letter that can be wrong, what is said of it.

    Example:
        >>> key = choice("A", "One is odd.", {"A": "Halve it.", "B": "Halve it."})
        >>> key.options, key.mistakes
        ('AB', (('B', 'Halve it.'),))
    """
    wrong = tuple((letter, hint) for letter, hint in hints.items() if letter != truth)
    return Key(truth, because, wrong, options="".join(sorted({truth, *hints})))


class NotUnderstood(ValueError):
    """An answer is not of the kind that was asked for."""


def key(number: str) -> Callable[[Callable[[], Key]], Callable[[], Key]]:
    """Return a decorator that makes a function the key of an exercise.

    Example:
        >>> @key("01.99")
        ... def two_and_two() -> Key:
        ...     return Key(4.0, "2 + 2 = 4.", ((22.0, "You joined them as texts."),))
        >>> check("01.99", 22)
        Not yet. You joined them as texts.
        >>> del _KEYS["01.99"]
    """

    def register(function: Callable[[], Key]) -> Callable[[], Key]:
        if number in _KEYS:
            raise ValueError(f"Exercise {number} has two keys: expected one.")
        _KEYS[number] = functools.cache(function)
        return _KEYS[number]

    return register


def numbers_of(notebook: str) -> list[str]:
    """Return the numbers of a notebook's checked exercises, in the order of its keys.

    Raises: ValueError: no keys belong to a notebook of this number.

    Example:
        >>> numbers_of("01")[0]
        '01.1'
    """
    if not (ROOT / "exercises" / "keys" / f"n{notebook}.py").is_file():
        raise ValueError(
            f"Notebook {notebook!r} has no checked exercises: expected the number of a "
            "notebook, as '04'."
        )
    importlib.import_module(f"exercises.keys.n{notebook}")
    return [number for number in _KEYS if number.split(".")[0] == notebook]


def key_of(number: str) -> Key:
    """Return the key of an exercise.

    Raises: ValueError: there is no checked exercise of this number.

    Example:
        >>> key_of("01.77")
        Traceback (most recent call last):
        ...
        ValueError: There is no checked exercise '01.77': expected one of 01.1, ...
    """
    known = numbers_of(str(number).split(".")[0])
    if number not in known:
        raise ValueError(
            f"There is no checked exercise {number!r}: expected one of {', '.join(known)}."
        )
    return _KEYS[number]()


def check(number: str, answer: Any) -> Verdict:
    """Return what is said of an answer to an exercise.

    The truth is computed again. A wrong answer that people often give
    gets a hint.

    Raises: ValueError: there is no checked exercise of this number.

    Example:
        >>> check("01.1", ...)
        Not answered yet.
    """
    asked = key_of(number)
    if answer is None or answer is Ellipsis:
        return Verdict("not answered yet", "Not answered yet.")
    try:
        given = _read(_result(asked, answer), asked)
    except NotUnderstood as why:
        return Verdict("not understood", f"Not understood: {why}")
    if _agree(given, _read(asked.truth, asked), asked.within):
        return Verdict("right", f"Right. {asked.because}")
    for wrong, hint in asked.mistakes:
        if _agree(given, _read(wrong, asked), asked.within):
            return Verdict("mistake", f"Not yet. {hint}")
    return Verdict("wrong", f"Not yet. {_difference(given, asked)}")


def _result(asked: Key, answer: Any) -> Any:
    if asked.of is None:
        return answer
    try:
        return asked.of(answer)
    except NotUnderstood:
        raise
    except Exception as error:  # of somebody else's function: whatever it is, tell them
        what = f"{type(error).__name__}: {error}"
        raise NotUnderstood(f"trying your answer ended with {what}") from error


def _read(answer: Any, asked: Key) -> Any:
    """Return an answer as the kind of the truth; raise NotUnderstood."""
    if isinstance(asked.truth, str):
        return _choice(answer, asked.options)
    if isinstance(asked.truth, frozenset):
        return _names(answer)
    array = _array(answer)
    shape = tuple(np.shape(asked.truth))
    if not shape and array.size == 1:
        array = array.reshape(())
    if array.shape != shape:
        expected = f"numbers of shape {shape}" if shape else "one number"
        raise NotUnderstood(f"expected {expected}, and shape {array.shape} came.")
    if np.isnan(array).any():
        raise NotUnderstood("expected numbers, and NaN came.")
    return array


def _choice(answer: Any, options: str) -> str:
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if len(letter) != 1 or letter not in options:
        letters = ", ".join(f'"{option}"' for option in options)
        raise NotUnderstood(f"expected one of {letters}.")
    return letter


def _names(answer: Any) -> frozenset[str]:
    expected = "expected names, as in {'income', 'savings'}"
    if isinstance(answer, str):
        answer = answer.split(",")
    if not isinstance(answer, Iterable):
        raise NotUnderstood(f"{expected}, and {type(answer).__name__} came.")
    try:
        names = list(itertools.islice(answer, 1_000))
    except Exception as error:
        raise NotUnderstood(f"{expected}.") from error
    if not all(isinstance(name, str) for name in names):
        raise NotUnderstood(f"{expected}.")
    return frozenset(name.strip().lower().replace(" ", "_") for name in names)


def _array(answer: Any) -> np.ndarray:
    what = f"expected numbers, and {type(answer).__name__} came."
    if isinstance(answer, (str, bytes)):
        raise NotUnderstood(what)
    try:
        array = np.asarray(_without_tensors(answer))
        is_number = array.dtype.kind in "biuf"
        return array.astype(float) if is_number else _of_numbers(array, what)
    except Exception as error:  # of anybody's class: whatever it is, tell them
        raise NotUnderstood(what) from error


def _without_tensors(answer: Any) -> Any:
    """Return an answer with arrays for tensors, also those in lists and tuples."""
    if isinstance(answer, (list, tuple)):
        return [_without_tensors(one) for one in answer]
    if not isinstance(answer, torch.Tensor):
        return answer
    # numpy knows no gradients, no sparse tensors, and not every kind of number.
    dense = answer.detach().cpu().to_dense()
    return dense.to(torch.complex128 if dense.is_complex() else torch.float64).numpy()


def _of_numbers(array: np.ndarray, what: str) -> np.ndarray:
    if array.dtype != object or not array.size:
        raise NotUnderstood(what)
    if not all(isinstance(one, numbers.Real) for one in array.flat):
        raise NotUnderstood(what)
    return array.astype(float)


def _agree(given: Any, truth: Any, within: float) -> bool:
    if isinstance(truth, np.ndarray):
        # Infinite numbers are equal or not: their difference is no number.
        near = np.isclose(given, truth, rtol=0.0, atol=within + 1e-9)
        return bool(near.all())
    return given == truth


def _difference(given: Any, asked: Key) -> str:
    """Return how an answer that no hint fits differs, without giving the truth away."""
    truth = _read(asked.truth, asked)
    if isinstance(truth, str):
        return "Look at the question again."
    if isinstance(truth, frozenset):
        return f"{len(given - truth)} too many, {len(truth - given)} missing."
    if truth.shape:
        off = ~np.isclose(given, truth, rtol=0.0, atol=asked.within + 1e-9)
        first = np.argwhere(off)[0]
        place = f"at [{', '.join(map(str, first))}]"
        if asked.each:
            place = f"for {asked.each} {first[0] + 1}"
        return f"{off.sum()} of {off.size} numbers differ, the first {place}."
    direction = "small" if given < truth else "large"
    digits = max(0, -math.floor(math.log10(asked.within))) if asked.within else 3
    return f"{float(given):.{digits}f} is too {direction}."
