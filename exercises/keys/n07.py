"""Real applicants; no exercise needs their data."""

import math

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key, wrong_ways
from lib.io import MODELS
from lib.method import flow
from lib.paper import gmsc

N_PEOPLE = 8_000  # of the synthetic substitute


@key("07.1")
def half_the_strip(gain: float) -> Key:
    """The gain of somebody who leaves a pile, with strips of half the width."""
    more = math.log(2)
    logarithm = "The density doubles. What happens to its logarithm?"
    return Key(
        f"Half the width is twice the density, log 2 = {more:.2f} nats more, and only "
        "before they act. The verdict turns round.",
        [
            (0.5, "Somebody on a pile is in its strip. Is their density still the same?"),
            (0.5 + more, "Which of the two profiles is on the pile, before or after?"),
            (0.25, logarithm),
            (1.0, logarithm),
            (0.5 - 2, "Twice the density is not two nats more."),
            (0.0, "Half the width takes off no half nat. What of the logarithm?"),
            (0.5 - math.log10(2), "A nat is a natural logarithm: not to the base of 10."),
            (0.5 + math.log10(2), f"{logarithm} It is natural. And before, or after?"),
            (0.5 - 1, "A nat is a natural logarithm: not to the base of 2."),
            (more, "That is by how much it changes. Which way, and from where?"),
            (-more, "That is the change. They had 0.5 nats to begin with."),
        ],
        within=0.01,
    )


@key("07.2")
def carried_out(costs: list[float]) -> Key:
    """The cost of an action as it is said, and as it is carried out."""

    def both(
        lines: float, used: float, sd: list[float], wide: list[float], k: int, power: int
    ) -> np.ndarray:
        moves = np.array([[4.4 - 11, -0.35 - 0.97], [lines - 11, used - 0.97]])
        return (np.abs(moves / sd) ** power / wide).sum(1) / k

    return Key(
        "Nobody has a utilization below zero: what is beyond it costs and does nothing.",
        [
            *wrong_ways(
                both,
                lines=[
                    4,
                    (4.4, "Can somebody have 4.4 credit lines?"),
                    (5, "To which whole number is 4.4 nearer?"),
                ],
                used=[0, (-0.35, "Can somebody use less than nothing of their limit?")],
                sd=[[5.2, 0.35], ([1, 1], "Moves are in standard deviations.")],
                wide=[
                    [11, 2.8],
                    ([121, 2.8**2], "The range is not squared."),
                    ([1, 1], "Each is divided by its range."),
                ],
                k=[
                    4,
                    (2, "The mean is over all four actionable features, acted on or not."),
                    (1, "That is the sum. Divide by the number of actionable features."),
                ],
                power=[2, (1, "The moves are squared.")],
            ),
            (costs[::-1], "Give the cost as it is said first."),
        ],
        within=0.004,
    )


@key("07.3")
def if_lateness_is_past() -> Key:
    """Who is accepted where lateness does not follow."""
    problem = gmsc.problem(gmsc.stand_in(MODELS, N_PEOPLE, seed=0))
    population, x = problem.population, problem.refused("test")
    j = population.features.index("utilization")
    changed = x.clone()
    changed[:, j] = -population.mean[j] / population.std[j]
    other = flow.load_all(MODELS, "gmsc_other_flows", population.fingerprint)
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, j] = True
    alone, acted, promised = (
        problem.accepts(profile).double().mean().item()
        for profile in (
            changed,
            other["lateness is past"].counterfactual(x, is_acted, changed),
            problem.flow.counterfactual(x, is_acted, changed),
        )
    )
    arrows = "What follows from utilization in that world? Look at its arrows."
    return choice(
        "B" if abs(acted - alone) < 0.001 else "A" if acted > alone else "C",
        f"{acted:.3f} of the refused are accepted either way. Under the published graph "
        f"acting brings {promised:.3f}: the rest rests on the arrows into lateness.",
        {"A": arrows, "B": arrows, "C": arrows},
    )


@key("07.4")
def rests_on_an_arrow(lost: float, graphs: pd.DataFrame) -> Key:
    """The share of good recommendations that rests on lateness being undone."""
    joint, valid, past = graphs.joint, graphs.validity, "lateness is past"
    fair = joint["refitted"]
    return Key(
        f"Joint falls from {fair:.3f} to {joint[past]:.3f}: the promise that being "
        "late is undone holds up the rest.",
        [
            (1 - lost, "That is the share that stays."),
            (fair - joint[past], "Of all people. What share of joint is it?"),
            (1 - joint[past], "Joint was not 1 to begin with. What share of it is lost?"),
            *wrong_ways(
                lambda share, row: 1 - share[past] / share[row],
                share=[joint, (valid, "Valid is not enough here: look at joint.")],
                row=[
                    "refitted",
                    ("the paper's graph", "Compare with *refitted*, no other row."),
                    ("refitted again", "Compare with *refitted*, no other row."),
                ],
            ),
        ],
        within=0.001,
        is_share=True,
    )
