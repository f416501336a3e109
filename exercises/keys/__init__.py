"""The truth of every checked exercise, a module for each notebook."""

import copy
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from exercises.checking import NotUnderstood
from lib.method import loan

problem = functools.cache(loan.problem)


def applied(cases: Sequence[tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Return what turns a function into the numbers it gives for each case.

    It can be the `of` of a key: an array stays as it is, since keys
    work out theirs before. The function gets copies, so that it may
    change what it is given.

    Raises: NotUnderstood: the answer is no function.

    Example:
        >>> applied([(1, 2), (3, 4)])(lambda a, b: a + b)
        array([3., 7.])
        >>> applied([(1, 2), (3, 4)])(3)
        Traceback (most recent call last):
        ...
        exercises.checking.NotUnderstood: expected a function, and int came.
    """

    def of_each(answer: Any) -> Any:
        if isinstance(answer, np.ndarray):
            return answer
        if not callable(answer):
            what = f"expected a function, and {type(answer).__name__} came."
            raise NotUnderstood(what)
        answers = [answer(*copy.deepcopy(case)) for case in cases]
        if any(one is None for one in answers):
            raise ValueError("the function returned nothing. Is a `return` missing?")
        return np.array(answers, dtype=float)

    return of_each


def place_by_place(
    truth: Sequence[float], wrong: Sequence[Sequence[tuple[float, str]]]
) -> tuple[tuple[np.ndarray, str], ...]:
    """Return the mistakes of an array in which several places can be wrong at once.

    Arguments:
        truth: A number for each place.
        wrong: For each place, pairs of a wrong number and its hint.

    Example:
        >>> pairs = place_by_place([1, 2], [[(0, "First: up.")], [(9, "Second: down.")]])
        >>> [(mistake.tolist(), hint) for mistake, hint in pairs]  # doctest: +ELLIPSIS
        [([1.0, 9.0], 'Second: down.'), ([0.0, 2.0], 'First: up.'), ([0.0, 9.0], 'First: ...
    """
    places = [((right, ""), *pairs) for right, pairs in zip(truth, wrong, strict=True)]
    mistakes = []
    for choices in itertools.product(*places):
        values, hints = zip(*choices, strict=True)
        if any(hints):
            mistakes.append((np.array(values, dtype=float), " ".join(filter(None, hints))))
    return tuple(mistakes)


def as_percent(share: float, hint: str) -> tuple[tuple[float, str], ...]:
    """Return the mistakes of giving a share in percent, rounded or not.

    Example:
        >>> [percent for percent, _ in as_percent(1 / 8, "No percent.")]
        [12.0, 12.5, 12.5, 12.5]
    """
    exact = 100 * share
    return tuple((round(exact, digits), hint) for digits in (0, 1, 2, 15))
