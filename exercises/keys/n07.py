"""Real applicants; no exercise needs their data."""

import functools
import math

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import as_percent
from lib.io import MODELS, ROOT
from lib.method import flow
from lib.method.problem import Problem
from lib.paper import gmsc

N_PEOPLE = 8_000  # of the stand-in


@functools.cache
def stand_in() -> Problem:
    """Return the problem of drawn people, whether the data is here or not."""
    return gmsc.problem(gmsc.stand_in(MODELS, N_PEOPLE, seed=0))


def weight_of_a_default() -> float:
    """Return how many loans repaid a default weighs as much as."""
    scaler, _ = gmsc.scaler(MODELS)
    return scaler["weight"].item()


@key("07.1")
def half_the_strip() -> Key:
    """The gain of somebody who leaves a pile, with strips of half the width."""
    gain, more = 0.5, math.log(2)
    return Key(
        gain - more,
        f"Half the width is twice the density, log 2 = {more:.2f} nats more, and only "
        "before they act. The verdict turns round.",
        (
            (gain, "Somebody on a pile is in its strip. Is their density still the same?"),
            (gain + more, "Which of the two profiles is on the pile, before or after?"),
            (gain / 2, "The density doubles. What happens to its logarithm?"),
            (2 * gain, "The density doubles. What happens to its logarithm?"),
            (gain - 2, "Twice the density is not two nats more."),
            (0.0, "Half the width takes off no half nat. What of the logarithm?"),
            (gain - math.log10(2), "A nat is a natural logarithm: not to the base of 10."),
            (gain - 1, "A nat is a natural logarithm: not to the base of 2."),
            (more, "That is by how much it changes. Which way, and from where?"),
            (-more, "That is the change. They had 0.5 nats to begin with."),
        ),
        within=0.01,
    )


@key("07.2")
def what_follows() -> Key:
    """What can follow of an action on income and credit lines."""
    graph = gmsc.graph()
    names = np.array(graph.features)
    acted = [graph.index(name) for name in ("income", "credit_lines")]
    follow = frozenset(names[graph.reachability.numpy()[acted].any(0)].tolist())
    follow -= {"income", "credit_lines"}
    return Key(
        follow,
        f"{len(follow)} of ten features. Credit lines are set: they follow nothing.",
        (
            (
                {"real_estate_loans", "utilization"},
                "Those follow directly from income. And from credit lines, and from these?",
            ),
            (
                {"debt_ratio", "late_30_to_59", "late_60_to_89", "late_90"},
                "Those follow directly from credit lines. And from income? What could be "
                "acted on can follow, too, if it is not.",
            ),
            (
                {"credit_lines", "real_estate_loans", "utilization"},
                "Those follow directly from income. Which of them is set? And what follows "
                "from these?",
            ),
            (
                follow - {"real_estate_loans"},
                "What could be acted on can follow, too, if it is not.",
            ),
            (
                follow - {"utilization"},
                "What could be acted on can follow, too, if it is not.",
            ),
            (
                follow | {"age", "dependents"},
                "No arrows lead from what is set to age or dependents.",
            ),
            ({"age"}, "That is a cause. Follow the arrows forward."),
            (
                {"late_30_to_59", "late_60_to_89", "late_90"},
                "Those are the ends of the paths. What lies on the way moves, too.",
            ),
            (
                follow | {"credit_lines"},
                "Credit lines would follow from income. But the action sets them.",
            ),
            (
                follow | {"income", "credit_lines"},
                "What is acted on is set: it does not follow.",
            ),
            (
                follow - {"debt_ratio"},
                "Debts over income: nothing comes from income, but from what else?",
            ),
        ),
    )


@key("07.3")
def carried_out() -> Key:
    """The cost of an action as it is said, and as it is carried out."""
    sd = {"credit_lines": 5.2, "utilization": 0.35}
    ranges = {"credit_lines": 11.0, "utilization": 2.8}

    def cost(lines: float, used: float) -> float:
        moved = {"credit_lines": lines - 11, "utilization": used - 0.97}
        return sum((moved[name] / sd[name]) ** 2 / ranges[name] for name in moved) / 4

    as_said, done = cost(4.4, -0.35), cost(4, 0)
    moves = np.array([[4.4 - 11, -0.35 - 0.97], [4 - 11, 0 - 0.97]])
    in_sd = moves / [sd["credit_lines"], sd["utilization"]]
    wide = np.array([ranges["credit_lines"], ranges["utilization"]])
    return Key(
        np.array([as_said, done]),
        "Nobody has a utilization below zero: what is beyond it costs and does nothing.",
        (
            (
                np.array([as_said, cost(4, -0.35)]),
                "The lines are whole now. Can somebody use less than nothing?",
            ),
            (
                np.array([as_said, cost(4.4, 0)]),
                "The utilization is right. Can somebody have 4.4 credit lines?",
            ),
            (
                np.array([2 * as_said, 2 * done]),
                "The mean is over all four actionable features, acted on or not.",
            ),
            (
                np.array([4 * as_said, 4 * done]),
                "That is the sum. Divide by the number of actionable features.",
            ),
            ((moves**2 / wide).sum(1) / 4, "Moves are in standard deviations, too."),
            ((np.abs(in_sd) / wide).sum(1) / 4, "The moves are squared."),
            ((in_sd**2 / wide**2).sum(1) / 4, "The range is not squared."),
            ((in_sd**2).sum(1) / 4, "Each is divided by its range."),
            (
                np.array([as_said, cost(5, 0)]),
                "To which whole number is 4.4 nearer?",
            ),
            (
                np.array([as_said, as_said]),
                "Neither of the two can be carried out as it is said.",
            ),
            (np.array([done, as_said]), "Give the cost as it is said first."),
        ),
        within=0.004,
    )


def refused_who_stop_using(world: str) -> tuple[float, float]:
    """Return the share accepted if the number changes alone, and if they act."""
    problem = stand_in()
    x, j = problem.refused("test"), problem.population.features.index("utilization")
    is_acted = torch.zeros_like(x, dtype=torch.bool)
    is_acted[:, j] = True
    nothing = -problem.population.mean[j] / problem.population.std[j]
    values = torch.where(is_acted, nothing.to(x), x)
    flows = flow.load_all(MODELS, "gmsc_other_flows", problem.population.fingerprint)
    there = problem.flow if world == "as published" else flows[world]
    followed = there.counterfactual(x, is_acted, values)
    alone, acted = (problem.accepts(after).double().mean() for after in (values, followed))
    return alone.item(), acted.item()


@key("07.4")
def if_lateness_is_past() -> Key:
    """Who is accepted where lateness does not follow."""
    alone, acted = refused_who_stop_using("lateness is past")
    _, promised = refused_who_stop_using("as published")
    return choice(
        "B" if abs(acted - alone) < 0.001 else "A" if acted > alone else "C",
        f"{acted:.3f} of the refused are accepted either way. Under the published graph "
        f"acting brings {promised:.3f}: the rest rests on the arrows into lateness.",
        {
            "A": "What follows from utilization in that world? Look at its arrows.",
            "B": "Are there arrows out of utilization left in that world?",
            "C": "What follows from utilization in that world? Look at its arrows.",
        },
    )


@key("07.5")
def rests_on_an_arrow() -> Key:
    """The share of good recommendations that rests on lateness being undone."""
    rows = pd.read_csv(ROOT / "tables" / "07_graphs.csv").set_index("graph")
    fair, past = rows.loc["refitted"], rows.loc["lateness is past"]
    share = 1 - past.joint / fair.joint
    return Key(
        share,
        f"Joint falls from {fair.joint:.3f} to {past.joint:.3f}: the promise that being "
        "late is undone holds up the rest.",
        (
            (past.joint / fair.joint, "That is the share that stays."),
            (fair.joint - past.joint, "Of all people. Of the recommendations that hold?"),
            (1 - past.validity / fair.validity, "Valid is not enough here: look at joint."),
            *(
                (
                    1 - past.joint / rows.joint[other],
                    "Compare with *refitted*, no other row.",
                )
                for other in ("the paper's graph", "refitted again")
            ),
            (1 - past.joint, "Not all were good to begin with. Of those that were?"),
            *as_percent(share, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.001,
    )


@key("07.6")
def a_milder_bank() -> Key:
    """How many of the refused a bank with a weight of 1 would accept."""
    problem, w = stand_in(), weight_of_a_default()
    x = problem.population.to_feasible(problem.refused("test"))
    chance = torch.sigmoid(problem.classifier.logit(x) + math.log(w))
    share = (chance >= 0.5).double().mean().item()
    return choice(
        "A" if share < 0.2 else "B" if share < 0.6 else "C",
        f"By the classifier's own odds {share:.2f} of the refused are more likely to pay "
        f"back than not. Who is accepted now has to be sure by {w / (1 + w):.2f}.",
        {
            "A": "How sure of being paid back does each of the two banks have to be?",
            "B": "How many of the refused paid back? Notebook 07, section 2.",
            "C": "How many of the refused paid back? Notebook 07, section 2.",
        },
    )
