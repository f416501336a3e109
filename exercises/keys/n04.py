"""Hard constraints."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from exercises.checking import Key, choice, key, wrong_ways
from lib.method.problem import Problem, Recommendation


@key("04.1")
def favourite(problem: Problem, search: Callable[..., Recommendation]) -> Key:
    """Which single feature helps most people."""
    names = problem.population.actionable
    masks = torch.eye(len(names), dtype=torch.bool).tolist()
    shares = [search(200, mask).has_recourse.float().mean() for mask in masks]
    listed = ", ".join(f"{n} {s:.2f}" for n, s in zip(names, shares, strict=True))
    along = "Which feature brings another one along that counts, too?"
    return choice(
        "ABCD"[int(np.argmax(shares))],
        f"Helped with one feature: {listed}.",
        {
            "A": "The amount moves the duration. But whom does the classifier refuse most "
            "often (table in section 4 of notebook 01)?",
            "BC": along,
            "D": f"Nothing follows from savings. {along}",
        },
    )


@key("04.2")
def between_what(bounds: list[float], one_open: pd.Series) -> Key:
    """Between what the joint share must lie."""
    product = "That takes the two to be independent: a guess, and no bound."
    either = "Both at once can't be more frequent than either."
    return Key(
        f"If the two had nothing to do with each other it would be {one_open.prod():.3f}; "
        "that is a guess, and no bound.",
        [(bounds[::-1], "Both are right, in the other order.")],
        places=[
            [
                (0.0, "The two shares overlap: together they are more than everybody."),
                (one_open.prod(), product),
            ],
            [(one_open.max(), either), (one_open.prod(), product), (1.0, either)],
        ],
        within=0.0006,
    )


@key("04.3")
def what_the_same_people_pay(
    problem: Problem, x: Tensor, four: Recommendation, two: Recommendation, both: Tensor
) -> Key:
    """By what factor the cost grows when income and savings close."""
    cost, dearer = (problem.cost_of(x[:200], answer) for answer in (four, two))
    before, after = cost[both], dearer[both]
    whoever = dearer[two.has_recourse].mean() / cost[four.has_recourse].mean()
    return Key(
        f"{int(both.sum())} of 200 people are helped both times. Over whoever is "
        f"helped the factor is {whoever:.2f}: the dear ones have left that mean.",
        wrong_ways(
            lambda factor, less: (factor - less).item(),
            factor=[
                after.mean() / before.mean(),
                (whoever, "Those are not the same people in both means."),
                ((after / before).mean(), "Divide the means, not each person's costs."),
                (dearer.mean() / cost.mean(), "Leave out who has no recourse."),
            ],
            less=[0, (1, "The factor, not by how much of itself.")],
        ),
        within=0.01,
    )
