"""Evaluation functions."""

import math

import numpy as np

from exercises.checking import Key, key, wrong_ways


@key("10.1")
def four_distances() -> Key:
    """Four distances of one action, by hand."""
    moves = np.array([0.8, 0.07, 0.45])  # income, amount, savings
    ranges = np.array([7.65, 8.0, 8.16])
    shares, efforts = moves / ranges, moves**2 / ranges
    mean = "Sum of moves: it is no mean."
    small = "small steps count here, however small."
    return Key(
        "Two features are set and three move, of which two change: cost measures the "
        "action, the sum of moves the profile.",
        places=[
            [
                (efforts.sum() / 4, "Cost: what follows by itself is no effort."),
                (efforts[:2].sum(), "Cost: it is a mean over K features."),
                (efforts[:2].sum() / 2, "Cost: K counts all actionable features."),
                (shares[:2].sum() / 4, "Cost: the moves are squared."),
                ((shares[:2] ** 2).sum() / 4, "Cost: the range is not squared."),
                (efforts[0] / 4, f"Cost: {small}"),
            ],
            [
                (3, "Acted on: savings are not set, they follow."),
                (1, f"Acted on: {small}"),
            ],
            [
                (3, "Changes: is each move above 2 % of its range?"),
                (1, "Changes: it counts the profile. What follows changes, too."),
            ],
            [
                (shares[:2].sum(), "Sum of moves: what follows is in it."),
                (shares.sum() / 4, mean),
                (shares.sum() / 3, mean),
                (shares @ [1, -1, 1], "Sum of moves: down is a move, too."),
                (shares.sum() - shares[1], f"Sum of moves: {small}"),
                (efforts.sum(), "Sum of moves: moves are not squared."),
            ],
        ],
        within=0.00007,
    )


@key("10.2")
def answers_enough(n: int) -> Key:
    """How many answers a person make levels nearly free."""
    return Key(
        f"{9 / 1.1**2:.2f} would give just 0.9. More answers, less shrinking.",
        wrong_ways(
            lambda ratio, odds, whole: whole(odds * ratio),
            (362 * 0.9, "That is the EDF itself. How many answers lead to it?"),
            ratio=[
                1 / 1.1**2,
                (1 / 1.1, "The formula has variances: squares of these."),
                (1.1**2, "Which variance is multiplied by n?"),
            ],
            odds=[9, (0.9, "0.9 is a share of P. Solve the factor for n.")],
            whole=[
                math.ceil,
                (lambda exact: exact, "Answers come in whole numbers."),
                (math.floor, "With so many it is a little below 0.9."),
            ],
        ),
        within=0.01,
    )


@key("10.3")
def a_smaller_study(factor: float) -> Key:
    """The factor by which the error of the mean grows with 100 people."""
    return Key(
        "An error falls with the root of the number of people.",
        [
            (factor**2, "That is by what factor there are fewer people. And the error?"),
            (1 / factor**2, "With fewer people, is the error smaller? And is it a root?"),
            (1 / factor, "With fewer people, is the error smaller?"),
            (factor - 1, "That is by how much it grows. By what factor?"),
            (factor**4, "The variance falls as 1 / n. And the standard error?"),
        ],
        within=0.05,
    )
