"""Fairness."""

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, applied, choice, key, wrong_ways
from lib.method import loan
from lib.paper.fairness.groups import sets
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
    problem = loan.problem()
    population, x = problem.population, problem.refused("test")
    assert population.truth is not None
    is_man = population.inverse_transform(x)[:, 0] > 0.5
    people = torch.cat([x[~is_man][:N_SEARCHED], x[is_man][:N_SEARCHED]])
    table = continuous.Search(problem, population.truth).table(people)
    by_pair = {}
    for name, mask in sets(population.actionable, 2).items():
        is_helped = table.cheapest(mask.expand(len(people), -1))[0].isfinite().double()
        by_pair[name] = is_helped.unflatten(0, (2, -1)).mean(1).tolist()
    helped = pd.DataFrame(by_pair, index=["women", "men"])
    of_any, same = helped.mean(axis=1), helped["income, savings"]
    before, after = of_any.men - of_any.women, same.men - same.women
    better = "Both gain by a better pair. Who gains more?"
    return choice(
        "A" if after < 0.05 else "B" if after < before else "C",
        f"With any two features {100 * of_any.women:.0f} of 100 women and "
        f"{100 * of_any.men:.0f} of 100 men are helped, with income and savings "
        f"{100 * same.women:.0f} and {100 * same.men:.0f}. The same permission helps some "
        "people more than others.",
        {
            "A": "They may do the same. Do they begin at the same place?",
            "B": better,
            "C": better,
        },
    )


@key("06.2", cases=groups_of_applicants())
def burdens() -> Key:
    """A function that returns the burden of a group."""
    over = "The mean is over valid actions only."
    return Key(
        "The share refused counts as much as what it costs them.",
        wrong_ways(
            lambda rate, mean: applied(
                lambda refused, valid, cost: rate(refused) * mean(refused, valid, cost),
                groups_of_applicants(),
            ),
            rate=[
                np.mean,
                (lambda refused: 1.0, "How likely is it to be refused at all?"),
                (np.sum, "The share of the group is asked for, not how many people."),
            ],
            mean=[
                lambda refused, valid, cost: cost[valid].mean(),
                (lambda refused, valid, cost: cost[refused].mean(), over),
                (lambda refused, valid, cost: (cost * valid)[refused].mean(), over),
                (lambda refused, valid, cost: (cost * valid).mean(), over),
                (lambda refused, valid, cost: cost[valid].sum(), "That is a sum of costs."),
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
    under = "That is the gap under *income*. How does it differ from *random*?"
    turned = "In the {}, is it women {} men, and *income* {} *random*?"
    return Key(
        f"The difference goes from {gaps[0]:.3f} to {gaps[1]:.3f}, women's share of men's "
        f"from {ratios[0]:.3f} to {ratios[1]:.3f}: on one scale the gap shrinks, "
        "on the other it grows.",
        [(changes[::-1], "Both are right, in the other order: the difference first.")],
        places=[
            [
                (-changes[0], turned.format("difference", "less", "less")),
                (gaps[1], under),
            ],
            [
                (1 / changes[1], turned.format("ratio", "over", "over")),
                (ratios[1], under),
                (ratios[1] - ratios[0], "Ratios are compared by a ratio here."),
            ],
        ],
        within=0.002,
    )


@key("06.4")
def an_audit_just_large_enough(rows: pd.DataFrame) -> Key:
    """How often an audit sees a gap that is two standard errors wide."""
    helps = rows[rows.scenario == "race"].set_index("group").estimate
    white, other = helps["white"], helps["non-white"]
    spread = white * (1 - white) + other * (1 - other)
    n = int(np.ceil(4 * spread / (white - other) ** 2))
    rng = np.random.default_rng(0)
    first, second = (rng.binomial(n, share, 10_000) / n for share in (white, other))
    error = np.sqrt((first * (1 - first) + second * (1 - second)) / n)
    seen = float((np.abs(first - second) > 2 * error).mean())
    return choice(
        "A" if seen < 0.75 else "B" if seen < 0.98 else "C",
        f"With {n} people a group {seen:.2f} of simulated audits see it: half of the "
        "estimates come out smaller than the gap is.",
        {
            "A": "The interval is around the estimate. Where do estimates lie?",
            "B": "That is how often the interval holds the true gap. Does it leave out 0?",
            "C": "The estimate is not the gap. How often does it come out smaller?",
        },
    )
