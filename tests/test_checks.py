"""Checks: what passes, and what a message says where something does not."""

import math
import re

import numpy as np
import pytest
import torch

from lib import checks

FEATURES = ("age", "income")
NAN, INF = math.nan, math.inf


def outcome(check, message: str | None) -> None:
    """Passes where no message is expected; otherwise a ValueError with it."""
    if message is None:
        assert check() is None
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        check()


@pytest.mark.parametrize(
    ("names", "allowed", "message"),
    [
        (["a"], ("a", "b"), None),
        ([4], (1, 4), None),
        (
            ["incme"],
            FEATURES,
            "'incme': expected one of age, income. Did you mean 'income'",
        ),
        ([3], (1, 2), "Unknown thing 3: expected one of 1, 2."),
    ],
)
def test_one_of(names, allowed, message):
    outcome(lambda: checks.one_of("thing", names, allowed), message)


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        (torch.zeros(2), None, None),
        (torch.zeros(4, 3, 2), torch.float32, None),
        (torch.zeros(0, 2), None, None),
        (np.zeros((3, 2)), None, "x must be a floating-point tensor, got ndarray"),
        (torch.zeros(3, 2).long(), None, "got torch.int64"),
        (torch.zeros(3, 3), None, "x has shape (3, 3), but its last axis must hold the"),
        (torch.zeros(()), None, "x has shape ()"),
        (
            torch.zeros(3, 2).double(),
            torch.float32,
            "torch.float32: use x.to(torch.float32",
        ),
        (torch.tensor([[0.0, 1.0], [0.0, NAN]]), None, "infinite values (in income)"),
        (torch.tensor([[[-INF, NAN]]]), None, "NaN or infinite values (in age, income)"),
    ],
)
def test_people(x, dtype, message):
    outcome(lambda: checks.people("x", x, FEATURES, dtype), message)


@pytest.mark.parametrize(
    ("expected", "message"),
    [([3, 2], None), ((2, 3), "x has shape (3, 2), expected (2, 3).")],
)
def test_shape(expected, message):
    outcome(lambda: checks.shape("x", torch.ones(3, 2), expected), message)


@pytest.mark.parametrize(
    ("is_accepted", "message"),
    [
        ([False, False], None),
        ([False, True, True], "2 of 3 people are already accepted (the first is row 1)"),
    ],
)
def test_refused(is_accepted, message):
    outcome(lambda: checks.refused(torch.tensor(is_accepted)), message)


@pytest.mark.parametrize("value", [0, -1, NAN, INF, True, "1", None])
def test_not_positive(value):
    checks.positive(a=1e-300, b=np.float32(2))
    checks.positive_int(a=1, b=np.int64(3))
    outcome(lambda: checks.positive(a=1, b=value), f"b must be above zero, got {value!r}.")
    message = f"b must be a whole number above zero, got {value!r}."
    outcome(lambda: checks.positive_int(a=1, b=value), message)
    outcome(lambda: checks.positive_int(a=2.0), "a must be a whole number")


def test_not_empty():
    checks.not_empty("x", torch.zeros(3, 2))
    outcome(lambda: checks.not_empty("x", torch.zeros(0, 2)), "x is empty")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_converging(value):
    checks.converging("flow", 0, {"a": -3.0, "b": 0.0})
    message = f"The fit of the flow diverged: its b is {value} after epoch 5."
    outcome(lambda: checks.converging("flow", 4, {"a": 1.0, "b": value}), message)
