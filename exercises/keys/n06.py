"""Fairness."""

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key, wrong_functions
from lib.io import ROOT
from lib.method import loan
from lib.method.preferences import Preferences
from lib.search import continuous

N_SEARCHED = 100  # refused people of each gender


def groups_of_applicants() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return made-up groups: who is refused, whose action is valid, what it costs."""
    made = []
    for seed, rate in ((0, 0.6), (1, 0.3)):
        rng = np.random.default_rng(seed)
        is_refused = rng.random(50) < rate
        is_valid = is_refused & (rng.random(50) < 0.8)
        made.append((is_refused, is_valid, np.where(is_refused, rng.random(50), 0.0)))
    return made


@key("06.1")
def the_same_two_for_everybody() -> Key:
    """Whether a gap by gender goes if all may act on income and savings."""
    stored = pd.read_csv(ROOT / "tables" / "06_groups.csv")
    is_any_two = "method == 'search' and scenario == 'random' and measure == 'helped'"
    any_two = stored.query(is_any_two).set_index("group").estimate
    problem = loan.problem()
    x = problem.refused("test")
    is_man = problem.population.inverse_transform(x)[:, 0] > 0.5
    people = torch.cat([x[~is_man][:N_SEARCHED], x[is_man][:N_SEARCHED]])
    same_two = torch.tensor([False, False, True, True]).expand(len(people), -1)
    answers = continuous.Search(problem, problem.causal_model).recommend(
        people, Preferences.from_mask(same_two)
    )
    women, men = answers.has_recourse.double().view(2, N_SEARCHED).mean(1).tolist()
    before, after = any_two.men - any_two.women, men - women
    return choice(
        "A" if after < 0.05 else "B" if after < before else "C",
        f"With any two features {100 * any_two.women:.0f} of 100 women and "
        f"{100 * any_two.men:.0f} of 100 men are helped, with income and savings "
        f"{100 * women:.0f} and {100 * men:.0f}. The same permission helps some people "
        "more than others.",
        {
            "A": "They may do the same. Do they begin at the same place?",
            "BC": "Both gain by a better pair. Who gains more?",
        },
    )


@key("06.2", cases=groups_of_applicants())
def burdens() -> Key:
    """A function that returns the burden of a group."""
    over = "The mean is over valid actions only."
    return Key(
        "The share refused counts as much as what it costs them.",
        wrong_functions(
            lambda refused, *case, rate, mean: rate(refused) * mean(refused, *case),
            rate=[np.mean, (lambda _: 1.0, "How likely is it to be refused at all?")],
            mean=[
                lambda refused, valid, cost: cost[valid].mean(),
                (lambda refused, valid, cost: cost[refused].mean(), over),
                (lambda refused, valid, cost: (cost * valid).mean(), over),
            ],
        ),
        within=1e-6,
        each="made-up group",
    )


@key("06.3")
def on_two_scales(before: pd.Series, after: pd.Series, changes: list[float]) -> Key:
    """How a gap changes as a difference and as a ratio."""
    gaps = [share.women - share.men for share in (before, after)]
    ratios = [share.women / share.men for share in (before, after)]
    turned = "In the {}, is it women {} men, and *income* {} *random*?"
    return Key(
        f"The difference goes from {gaps[0]:.3f} to {gaps[1]:.3f}, women's share of men's "
        f"from {ratios[0]:.3f} to {ratios[1]:.3f}: on one scale the gap shrinks, "
        "on the other it grows.",
        [(changes[::-1], "Both are right, in the other order: the difference first.")],
        places=[
            [(-changes[0], turned.format("difference", "less", "less"))],
            [
                (1 / changes[1], turned.format("ratio", "over", "over")),
                (ratios[1] - ratios[0], "Ratios are compared by a ratio here."),
            ],
        ],
        within=0.002,
    )


@key("06.4")
def an_audit_just_large_enough() -> Key:
    """How often an audit sees a gap that is two standard errors wide."""
    return choice(
        "A",
        "An audit sees a gap if its estimate is two standard errors or more, as large as "
        "the gap is. Half of the estimates come out smaller.",
        {
            "B": "That is how often the interval holds the true gap. Does it leave out 0?",
            "C": "The estimate is not the gap. How often does it come out smaller?",
        },
    )
