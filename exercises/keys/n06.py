"""Fairness."""

import functools

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.io import ROOT
from lib.paper.fairness.groups import Scenario, sets
from lib.search import continuous

N_SEARCHED = 100  # refused people of each gender


@functools.cache
def helped() -> pd.DataFrame:
    """Return the share helped with each pair of features, a column for each gender."""
    population, x = problem().population, problem().refused("test")
    is_man = population.inverse_transform(x)[:, 0] > 0.5
    assert population.truth is not None
    people = torch.cat([x[~is_man][:N_SEARCHED], x[is_man][:N_SEARCHED]])
    table = continuous.Search(problem(), population.truth).table(people)
    by_pair = {}
    for name, mask in sets(population.actionable, 2).items():
        is_helped = table.cheapest(mask.expand(len(people), -1))[0].isfinite().double()
        by_pair[name] = is_helped.unflatten(0, (2, -1)).mean(1).tolist()
    return pd.DataFrame(by_pair, index=["women", "men"]).T


@functools.cache
def shares(scenario: str) -> pd.Series:
    """Return the share that the search helps under a scenario, by group."""
    rows = pd.read_csv(ROOT / "tables" / "06_groups.csv")
    rows = rows[(rows.scenario == scenario) & (rows.measure == "helped")]
    return rows[rows.method == "search"].set_index("group").estimate


@key("06.1")
def who_may_act_on_both() -> Key:
    """The gap by race in who may act on income and savings."""
    scenario = Scenario(2, "race", {"white": 0.7, "non-white": 0.2})
    labels = pd.DataFrame({"race": ["white", "non-white"]})
    chances = scenario.chances(problem().population.actionable, labels)
    white, other = chances["income, savings"]
    return Key(
        white - other,
        f"{white:.3f} of white and {other:.3f} of non-white people may.",
        (
            (0.5, "That is the gap in privilege. May all privileged people act on both?"),
            (white, "That is the share of white people. Take off the other share."),
            (other, "That is the share of non-white people. The gap is asked for."),
            (other - white, "The size is right. Who has more?"),
            *as_percent(white - other, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.005,
    )


@key("06.2")
def the_same_two_for_everybody() -> Key:
    """Whether a gap by gender goes if all may act on income and savings."""
    of_any, same = helped().mean(), helped().loc["income, savings"]
    before, after = of_any.men - of_any.women, same.men - same.women
    return choice(
        "A" if after < 0.05 else "B" if after < before else "C",
        f"With any two features {100 * of_any.women:.0f} of 100 women and "
        f"{100 * of_any.men:.0f} of 100 men are helped, with income and savings "
        f"{100 * same.women:.0f} and {100 * same.men:.0f}. The same permission helps some "
        "people more than others.",
        {
            "A": "They may do the same. Do they begin at the same place?",
            "B": "Both gain by a better pair. Who gains more?",
            "C": "Both gain by a better pair. Who gains more?",
        },
    )


def groups_of_applicants() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return made-up groups: who is refused, whose action is valid, what it costs."""
    made = []
    for seed, rate in ((0, 0.6), (1, 0.3)):
        rng = np.random.default_rng(seed)
        is_refused = rng.random(50) < rate
        is_valid = is_refused & (rng.random(50) < 0.8)
        made.append((is_refused, is_valid, np.where(is_refused, rng.random(50), 0.0)))
    return made


@key("06.3")
def burdens() -> Key:
    """A function that returns the burden of a group."""

    of_each = applied(groups_of_applicants())
    truth, means, everyone, nothing = (
        of_each(function)
        for function in (
            lambda refused, valid, cost: refused.mean() * cost[refused & valid].mean(),
            lambda refused, valid, cost: cost[refused & valid].mean(),
            lambda refused, valid, cost: refused.mean() * cost[refused].mean(),
            lambda refused, valid, cost: (cost * (refused & valid)).mean(),
        )
    )
    return Key(
        truth,
        f"The two made-up groups bear {truth[0]:.3f} and {truth[1]:.3f}.",
        (
            (means, "That is the mean cost. How likely is it to be refused at all?"),
            (everyone, "Costs of actions that are not valid do not count."),
            (
                nothing,
                "Whoever has no valid action is counted as if they paid nothing. The "
                "mean is over valid actions only.",
            ),
        ),
        within=1e-6,
        of=of_each,
        each="made-up group",
    )


@key("06.4")
def on_two_scales() -> Key:
    """How a gap changes as a difference and as a ratio."""
    before, after = shares("random"), shares("income")
    gaps = [share.women - share.men for share in (before, after)]
    ratios = [share.women / share.men for share in (before, after)]
    difference, ratio = gaps[1] - gaps[0], ratios[1] / ratios[0]
    return Key(
        np.array([difference, ratio]),
        f"The difference goes from {gaps[0]:.3f} to {gaps[1]:.3f}, women's share of men's "
        f"from {ratios[0]:.3f} to {ratios[1]:.3f}: on one scale the gap shrinks, "
        "on the other it grows.",
        (
            (
                np.array([-difference, 1 / ratio]),
                "Turned round. Take women first, and *income* after *random*.",
            ),
            (
                np.array([-difference, ratio]),
                "The ratio is right. In the difference, is it women less men, and "
                "*income* less *random*?",
            ),
            (
                np.array([difference, 1 / ratio]),
                "The difference is right. In the ratio, is it women over men, and "
                "*income* over *random*?",
            ),
            (
                np.array([ratio, difference]),
                "Both are right, in the other order: the change of the difference first.",
            ),
            (
                np.array([gaps[1], ratios[1]]),
                "That is the gap under *income*. How does it differ from *random*?",
            ),
            (
                np.array([difference, ratios[1] - ratios[0]]),
                "Ratios are compared by a ratio here, and not by their difference.",
            ),
        ),
        within=0.002,
    )


@key("06.5")
def an_audit_just_large_enough() -> Key:
    """How often an audit sees a gap that is two standard errors wide."""
    helps = shares("race")
    white, other = helps["white"], helps["non-white"]
    gap, spread = white - other, white * (1 - white) + other * (1 - other)
    n = int(np.ceil(4 * spread / gap**2))
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
