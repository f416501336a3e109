"""Compare an answer with the stored one, and name the likely mistake.

A function in exercises/keys works out the wrong answers that people arrive at, from the
variables of the solution. exercises/make.py runs the solutions and the keys, and writes
both to answers.json. `check` only reads that file, so it answers at once.
"""

import copy
import functools
import importlib
import itertools
import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from lib.io import ROOT

ANSWERS = ROOT / "exercises" / "answers.json"
TWO = "Two mistakes. "
PERCENT = "Give a share between 0 and 1, no percent."

Status = Literal["right", "mistake", "wrong", "not answered yet", "not understood"]


@dataclass(frozen=True)
class Key:
    """What is known of an exercise.

    Arguments:
        because: Said when the answer is right.
        mistakes: Pairs of a wrong answer and a hint. If names are
            asked for: pairs of a name and a hint, for whoever has it
            wrongly or lacks it. If a function is asked for: pairs of
            a wrong function and a hint; stored is what it returns.
        within: How far numbers may be from the truth.
        truth: A letter, a number, an array, or a set of names. Left
            out: what the solution answers.
        places: For each number of an array, pairs as in `mistakes`.
            Mistakes in several places are all named.
        is_share: A share is asked for, and some give it in percent.
        each: What each number of an array stands for, as "person".
        is_function: A function is asked for; the numbers are what it
            returns.
    """

    because: str
    mistakes: Sequence[tuple[Any, str]] = ()
    within: float = 0.0
    truth: Any = None
    places: Sequence[Sequence[tuple[Any, str]]] = ()
    is_share: bool = False
    each: str = ""
    is_function: bool = False


class Source(NamedTuple):
    """A key as it is written: from the solution's variables; and what a function gets."""

    key: Callable[..., Key]
    cases: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Verdict:
    """What is said of an answer; shown as its text."""

    status: Status
    text: str

    def __repr__(self) -> str:
        """Return the text, for the end of a cell."""
        return self.text


class NotUnderstood(ValueError):
    """An answer is not of the kind that was asked for."""


SOURCES: dict[str, Source] = {}


def key(
    number: str, cases: Sequence[tuple[Any, ...]] = ()
) -> Callable[[Callable[..., Key]], Callable[..., Key]]:
    """Return a decorator that makes a function the key of an exercise.

    The function's parameters are variables of the solution.

    Arguments:
        number: Of the exercise, as "04.2".
        cases: Where a function is asked for: the arguments of each call.
    """

    def register(function: Callable[..., Key]) -> Callable[..., Key]:
        if number in SOURCES:
            raise ValueError(f"Exercise {number} has two keys: expected one.")
        SOURCES[number] = Source(function, cases)
        return function

    return register


def choice(truth: str, because: str, hints: Mapping[str, str]) -> Key:
    """Return the key of a choice between letters, with a hint for each that can be wrong.

    Letters that share a hint are written together.

    Example:
        >>> choice("A", "One is odd.", {"AB": "Halve it.", "C": "Add."}).mistakes
        [('B', 'Halve it.'), ('C', 'Add.')]
    """
    of_letter = {letter: hint for letters, hint in hints.items() for letter in letters}
    wrong = [(letter, of_letter[letter]) for letter in sorted(of_letter) if letter != truth]
    return Key(because, wrong, truth=truth)


def wrong_ways(
    formula: Callable[..., Any], *others: tuple[Any, str], **ways: Sequence[Any]
) -> list[tuple[Any, str]]:
    """Return the results of one or two mistakes in a formula, each with its hint.

    Arguments:
        formula: Called with keywords.
        others: Further pairs of a wrong answer and a hint.
        ways: For each keyword the right value, then pairs of a wrong
            value and a hint.

    Example:
        >>> wrong_ways(lambda a, b: a * b, a=[2, (3, "Not 3.")], b=[5, (7, "Not 7.")])
        [(15, 'Not 3.'), (14, 'Not 7.'), (21, 'Two mistakes. Not 3. Not 7.')]
    """
    right = {name: values[0] for name, values in ways.items()}
    mistakes = []
    for n, start in ((1, ""), (2, TWO)):
        for names in itertools.combinations(ways, n):
            for pairs in itertools.product(*(ways[name][1:] for name in names)):
                wrong = dict(zip(names, (value for value, _ in pairs), strict=True))
                hint = start + " ".join(dict.fromkeys(hint for _, hint in pairs))
                mistakes.append((formula(**{**right, **wrong}), hint))
    return [*mistakes, *others]


def wrong_functions(
    function: Callable[..., Any], *others: tuple[Any, str], **ways: Sequence[Any]
) -> list[tuple[Any, str]]:
    """Return functions with one or two mistakes, each with its hint; as `wrong_ways`.

    Arguments:
        function: Called with a case of the exercise, and the keywords.
        others: Further pairs of a wrong answer and a hint.
        ways: For each keyword the right value, then pairs of a wrong
            value and a hint.
    """

    def with_mistakes(**values: Any) -> Callable[..., Any]:
        return functools.partial(function, **values)

    return wrong_ways(with_mistakes, *others, **ways)


def applied(function: Any, cases: Sequence[tuple[Any, ...]]) -> np.ndarray:
    """Return what a function gives for each case; of a single case, what it gives.

    The function gets copies, so that it may change what it is given.

    Raises: NotUnderstood: it is no function, or it fails.

    Example:
        >>> applied(lambda a, b: a + b, [(1, 2), (3, 4)])
        array([3., 7.])
        >>> applied(3, [(1, 2), (3, 4)])
        Traceback (most recent call last):
        ...
        exercises.checking.NotUnderstood: expected a function, and int came.
    """
    if not callable(function):
        raise NotUnderstood(f"expected a function, and {type(function).__name__} came.")
    try:
        results = [function(*copy.deepcopy(case)) for case in cases]
        if any(result is None for result in results):
            raise ValueError("the function returned nothing. Is a `return` missing?")
        return np.array(results if len(cases) > 1 else results[0], dtype=float)
    except Exception as error:  # of somebody else's function: whatever it is, tell them
        what = f"{type(error).__name__}: {error}"
        raise NotUnderstood(f"trying your answer ended with {what}") from error


@functools.cache
def keys() -> dict[str, Key]:
    """Return the stored key of each checked exercise, by its number."""
    stored = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return {number: Key(**fields) for number, fields in stored.items()}


def source_of(number: str) -> Source:
    """Return a key as it is written, and what a function is called with."""
    importlib.import_module(f"exercises.keys.n{number.split('.')[0]}")
    return SOURCES[number]


def check(number: str, answer: Any) -> Verdict:
    """Return what is said of an answer to an exercise.

    Raises: ValueError: there is no checked exercise of this number.

    Example:
        >>> check("01.1", ...)
        Not answered yet.
        >>> check("01.77", 1)
        Traceback (most recent call last):
        ...
        ValueError: There is no checked exercise '01.77': expected one of 00.1, ...
    """
    if number not in keys():
        listed = ", ".join(keys())
        raise ValueError(
            f"There is no checked exercise {number!r}: expected one of {listed}."
        )
    if answer is None or answer is Ellipsis:
        return Verdict("not answered yet", "Not answered yet.")
    try:
        if keys()[number].is_function:
            answer = applied(answer, source_of(number).cases)
        return judged(answer, keys()[number])
    except NotUnderstood as why:
        return Verdict("not understood", f"Not understood: {why}")


def judged(answer: Any, asked: Key) -> Verdict:
    """Return what is said of an answer, by a key.

    Raises: NotUnderstood: the answer is not of the kind of the truth.
    """
    given, truth = read(answer, asked), read(asked.truth, asked)
    if agree(given, truth, asked.within):
        return Verdict("right", f"Right. {asked.because}")
    hint = _hint(given, truth, asked, asked.within)
    if not hint and asked.is_share and given > 1:
        share, within = given / 100, max(asked.within, 0.005)
        hint = _hint(share, truth, asked, within)
        hint = f"{TWO}{hint} {PERCENT}" if hint else ""
        if agree(share, truth, within):
            hint = PERCENT
    if hint:
        return Verdict("mistake", f"Not yet. {hint}")
    return Verdict("wrong", f"Not yet. {_difference(given, truth, asked)}")


def _hint(given: Any, truth: Any, asked: Key, within: float) -> str:
    """Return the hints of the mistakes that an answer shows; empty if there are none."""
    if isinstance(truth, frozenset):
        named = [hint for name, hint in asked.mistakes if name in given ^ truth]
        return " ".join(dict.fromkeys(named))
    for wrong, hint in asked.mistakes:
        if agree(given, read(wrong, asked), within):
            return hint
    hints = []
    for place, pairs in enumerate(asked.places):
        if not agree(given[place], truth[place], within):
            at_place = [hint for wrong, hint in pairs if agree(given[place], wrong, within)]
            if not at_place:
                return ""
            hints.append(at_place[0])
    return " ".join(dict.fromkeys(hints))


def _difference(given: Any, truth: Any, asked: Key) -> str:
    """Return how an answer that no hint fits differs, without giving the truth away."""
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


def agree(given: Any, wanted: Any, within: float) -> bool:
    """Return whether an answer is another: equal, or as near as numbers may be."""
    if isinstance(wanted, str | frozenset):
        return bool(given == wanted)
    # Infinite numbers are equal or not: their difference is no number.
    return bool(np.isclose(given, wanted, rtol=0.0, atol=within + 1e-9).all())


def read(answer: Any, asked: Key) -> Any:
    """Return an answer as the kind of the truth: a letter, a set of names, or an array.

    Raises: NotUnderstood: it is of another kind.
    """
    if isinstance(asked.truth, str):
        return _letter(answer, {asked.truth, *(letter for letter, _ in asked.mistakes)})
    if isinstance(asked.truth, list) and isinstance(asked.truth[0], str):
        return _names(answer)
    array, shape = _array(answer), np.shape(asked.truth)
    if not shape and array.size == 1:
        array = array.reshape(())
    if array.shape != shape:
        expected = f"numbers of shape {shape}" if shape else "one number"
        raise NotUnderstood(f"expected {expected}, and shape {array.shape} came.")
    if np.isnan(array).any():
        raise NotUnderstood("expected numbers, and NaN came.")
    return array


def _letter(answer: Any, options: set[str]) -> str:
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in options:
        letters = ", ".join(f'"{option}"' for option in sorted(options))
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
        is_number = array.dtype.kind in "biuf" or (
            array.size > 0 and all(isinstance(one, numbers.Real) for one in array.flat)
        )
        if not is_number:
            raise NotUnderstood(what)
        return array.astype(float)
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
