"""Start here: one person, from refusal to recommendation."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from exercises.checking import Key, choice, key, wrong_ways
from lib.method.icarma import ICarma
from lib.method.loan import EXAMPLE_PREFERENCES
from lib.method.preferences import Preferences, from_words
from lib.method.problem import Problem
from lib.paper import readings

# whether something is recommended, valid, plausible, and its cost; all of eight people
EIGHT = (
    np.array([True, True, True, True, True, True, False, False]),
    np.array([True, True, True, False, True, False, False, False]),
    np.array([True, False, True, True, True, True, True, True]),
    np.array([0.04, 0.01, 0.10, 0.30, 0.05, 0.02, 0.0, 0.0]),
)


@key("00.1")
def income_closed_too(problem: Problem, x_first: Tensor, networks: ICarma) -> Key:
    """What ten networks do once she can act on amount and duration alone."""
    answers = {**EXAMPLE_PREFERENCES, "income": "can't"}
    preferences = from_words(answers, problem.population.actionable)
    x_cf = networks.recommend_each(x_first, preferences).x_cf[:, 0]
    savings = problem.population.features.index("savings")
    moves = bool((x_cf[:, savings] != x_first[:, savings]).any())
    n_accepted = int(problem.accepts(x_cf).sum())
    return choice(
        "AB"[n_accepted == 0] if moves else "CD"[n_accepted == 0],
        "Only income, and what moves income, reaches savings. The classifier accepts "
        f"{n_accepted} of the ten answers.",
        {
            "AB": "Look at the arrows that lead into savings. Does she set any of their "
            "causes?",
            "C": "Savings: right. But are amount and duration alone enough to be accepted?",
            "D": "Savings: right. But a smaller and shorter loan? Run the ten networks.",
        },
    )


@key("00.2")
def what_it_costs_her(cost: float, action: pd.DataFrame, weights: pd.Series) -> Key:
    """The cost of an action, weighted by her own answers."""
    in_units, ranges = action["step (model units)"], action["range"]
    steps = in_units / action["standard deviation"]
    of_income = (weights * steps**2 / ranges)["income"] / 4
    return Key(
        f"By her weights {of_income / cost:.0%} of the cost is her income.",
        wrong_ways(
            lambda weight, step, k: (weight * step**2 / ranges).sum() / k,
            weight=[
                weights,
                (1, "Each feature counts alike in this. What did she say?"),
                (action["score s"], "A weight is no score: it runs from 1 to w_max = 7."),
            ],
            step=[
                steps,
                (in_units, "The range is standardised, so the steps have to be, too."),
            ],
            k=[4, (1, "That is the sum. Divide by the number K of features.")],
        ),
        within=0.0001,
    )


@key("00.3")
def who_is_easier_to_help(problem: Problem, x: Tensor) -> Key:
    """Whether rare or ordinary people have recourse on the grid more often."""
    x = x[:200]
    log_p = problem.flow.log_prob(x)
    any_way = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    helped = readings.oracle(problem).recommend(x, any_way).has_recourse.float()
    is_ordinary = log_p > log_p.median()
    ordinary, rare = helped[is_ordinary].mean().item(), helped[~is_ordinary].mean().item()
    return choice(
        "C" if abs(rare - ordinary) < 0.05 else "A" if rare > ordinary else "B",
        f"{rare:.2f} of the rarer half are helped, {ordinary:.2f} of the other: from the "
        "top, most ways lead down.",
        {
            "A": "Their density is low already. Is that an advantage here? Try it.",
            "B": "Their density is high already. What does plausible ask of it afterwards?",
            "C": "Plausible compares with one's own density. Is that as easy for both?",
        },
    )


@key("00.4", cases=[EIGHT])
def over_whom() -> Key:
    """Validity, plausibility, joint and cost of eight people."""
    has_any, valid, plausible, cost = EIGHT
    good = valid & plausible
    product = valid.mean() * plausible[has_any].mean()
    return Key(
        "Whoever is recommended nothing is not valid, and is left out of the second share.",
        places=[
            [(valid[has_any].mean(), "Validity is a share of all people, helped or not.")],
            [(plausible.mean(), "Leave out of the second share who does nothing.")],
            [
                (product, "Joint is no product of two shares: count who is both."),
                (good[has_any].mean(), "Joint is a share of all people, helped or not."),
            ],
            [
                (cost.mean(), "Who is left as they are has no place in the mean cost."),
                (cost[has_any].mean(), "Who stays refused has no place in the mean cost."),
            ],
        ],
        within=0.0005,
    )
