"""Real applicants; no exercise needs their data."""

import math

import numpy as np
import pandas as pd

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
            (0.5 - math.log10(2), "A nat is a natural logarithm: not to the base of 10."),
            (-more, "That is the change. They had 0.5 nats to begin with."),
        ],
        within=0.01,
    )


@key("07.2")
def carried_out(costs: list[float]) -> Key:
    """The cost of an action as it is said, and as it is carried out."""

    def both(lines: float, used: float, sd: list[float], k: int) -> np.ndarray:
        moves = np.array([[4.4 - 11, -0.35 - 0.97], [lines - 11, used - 0.97]])
        return ((moves / sd) ** 2 / [11, 2.8]).sum(1) / k

    return Key(
        "Nobody has a utilization below zero: what is beyond it costs and does nothing.",
        wrong_ways(
            both,
            (costs[::-1], "Give the cost as it is said first."),
            lines=[4, (4.4, "Can somebody have 4.4 credit lines?")],
            used=[0, (-0.35, "Can somebody use less than nothing of their limit?")],
            sd=[[5.2, 0.35], ([1, 1], "Moves are in standard deviations.")],
            k=[4, (2, "All four actionable features count, acted on or not.")],
        ),
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
    to_zero = {"utilization": changed[:, j]}
    past = other["lateness is past"].counterfactual(x, do=to_zero)
    published = problem.flow.counterfactual(x, do=to_zero)
    alone, acted, promised = (
        problem.accepts(profile).double().mean().item()
        for profile in (changed, past, published)
    )
    return choice(
        "B" if abs(acted - alone) < 0.001 else "A" if acted > alone else "C",
        f"{acted:.3f} of the refused are accepted either way. Under the published graph "
        f"acting brings {promised:.3f}: the rest rests on the arrows into lateness.",
        {"ABC": "What follows from utilization in that world? Look at its arrows."},
    )


@key("07.4")
def rests_on_an_arrow(lost: float, graphs: pd.DataFrame) -> Key:
    """The share of good recommendations that rests on lateness being undone."""
    joint, past = graphs.joint, graphs.joint["lateness is past"]
    fair = joint["refitted"]
    return Key(
        f"Joint falls from {fair:.3f} to {past:.3f}: the promise that being late is undone "
        "holds up the rest.",
        [
            (1 - lost, "That is the share that stays."),
            (fair - past, "Of all people. What share of joint is it?"),
            (1 - past / joint["the paper's graph"], "Compare with *refitted*."),
        ],
        within=0.001,
        is_share=True,
    )
