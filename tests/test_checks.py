"""Checks: what passes, and what a message says where something does not."""

import math
import re

import numpy as np
import pytest
import torch

from lib import checks

FEATURES = ("age", "income")
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("names", "allowed", "message"),
    [
        (["a"], ("a", "b"), None),
        ([], ("a",), None),
        ([4], (1, 4), None),
        (
            ["incme"],
            FEATURES,
            "Unknown thing 'incme': expected one of age, income. Did",
        ),
        (["zzz"], FEATURES, "expected one of age, income."),
        ([3], (1, 2), "Unknown thing 3: expected one of 1, 2."),
    ],
)
def test_one_of(names, allowed, message):
    outcome(lambda: checks.one_of("thing", names, allowed), message)


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        (torch.zeros(3, 2), None, None),
        (torch.zeros(2), None, None),
        (torch.zeros(4, 3, 2), torch.float32, None),
        (torch.zeros(0, 2), None, None),
        (torch.zeros(2, dtype=torch.float64), torch.float64, None),
        (
            np.zeros((3, 2)),
            None,
            "x must be a floating-point tensor with shape (*, 2), got",
        ),
        (torch.zeros(3, 2, dtype=torch.int64), None, "got a tensor of torch.int64"),
        (
            torch.zeros(3, 3),
            None,
            "x has shape (3, 3), but its last axis must hold the",
        ),
        (torch.zeros(()), None, "x has shape ()"),
        (
            torch.zeros(3, 2).double(),
            torch.float32,
            "x holds torch.float64, the model works in torch.float32: use x.to(torch.",
        ),
        (torch.zeros(2), torch.float64, "use x.to(torch.float64)."),
        (torch.zeros(2), torch.bfloat16, "use x.to(torch.bfloat16)."),
        (
            torch.tensor([[0.0, 1.0], [0.0, NAN]]),
            None,
            "NaN or infinite values (in income)",
        ),
        (torch.tensor([INF, 0.0]), None, "NaN or infinite values (in age)"),
        (torch.tensor([[[-INF, NAN]]]), None, "NaN or infinite values (in age, income)"),
    ],
)
def test_people(x, dtype, message):
    outcome(lambda: checks.people("x", x, FEATURES, dtype), message)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((3, 2), None),
        ([3, 2], None),
        (torch.Size((3, 2)), None),
        ((2, 3), "x has shape (3, 2), expected (2, 3)."),
        ((3,), "expected (3,)."),
    ],
)
def test_shape(expected, message):
    outcome(lambda: checks.shape("x", torch.ones(3, 2), expected), message)


@pytest.mark.parametrize(
    ("is_accepted", "message"),
    [
        ([False, False], None),
        ([], None),
        ([False, True, True], "2 of 3 people are already accepted (the first is row 1)"),
        (True, "1 of 1 people are already accepted"),
    ],
)
def test_refused(is_accepted, message):
    accepted = torch.tensor(is_accepted, dtype=torch.bool)
    outcome(lambda: checks.refused(accepted), message)


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float32(2), np.int64(3)])
def test_positive(value):
    checks.positive(a=value)


@pytest.mark.parametrize("value", [0, -1, NAN, INF, True, "1", None, [1]])
def test_not_positive(value):
    outcome(lambda: checks.positive(a=1, b=value), f"b must be above zero, got {value!r}.")


@pytest.mark.parametrize("value", [1, 20_000, np.int64(3)])
def test_positive_int(value):
    checks.positive_int(a=value)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, NAN, True, "1", None])
def test_not_positive_int(value):
    message = f"b must be a whole number above zero, got {value!r}."
    outcome(lambda: checks.positive_int(a=1, b=value), message)


def test_not_empty():
    for full in (torch.zeros(3, 2), [0], ("a",), {"a": 1}):
        checks.not_empty("x", full)
    for empty in (torch.zeros(0, 2), [], (), {}):
        outcome(lambda empty=empty: checks.not_empty("x", empty), "x is empty")


def test_converging():
    checks.converging("flow", 0, {"a": -3.0, "b": 0.0})
    for value in (NAN, INF, -INF):
        outcome(
            lambda value=value: checks.converging("flow", 4, {"a": 1.0, "b": value}),
            f"The fit of the flow diverged: its b is {value} after epoch 5.",
        )


def outcome(check, message: str | None) -> None:
    """Passes where no message is expected; otherwise a ValueError with it."""
    if message is None:
        assert check() is None
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        check()
