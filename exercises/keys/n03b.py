"""Which settings? A rule that was fixed beforehand."""

import functools
from typing import Any

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from lib.base.files import PARAMS
from lib.studies import selection

STUDY = ["elicitation", "profile"]

# five people: who is helped, what they pay, and the least that they could pay
HELPED = np.array([True, True, True, False, False])
PAID = np.array([0.02, 0.06, 0.04, 0.05, 0.01])
LEAST = np.array([0.02, 0.03, 0.05, 0.04, np.inf])


@functools.cache
def trials() -> pd.DataFrame:
    """Return the trials of both ways of asking, a row each."""
    files = [PARAMS / f"trials_{way}.csv" for way in ("ranking", "score")]
    return pd.concat([pd.read_csv(path) for path in files], ignore_index=True)


@key("03b.1")
def efficiency_and_ratio() -> Key:
    """Efficiency and cost ratio of five people."""
    each = np.where(HELPED, np.minimum(1, LEAST / PAID), 0.0)
    both = HELPED & np.isfinite(LEAST)
    truth = np.array([each.mean(), PAID[both].mean() / LEAST[both].mean()])
    uncapped = np.where(HELPED, LEAST / PAID, 0.0)
    return Key(
        truth,
        f"{(~HELPED).sum()} of {len(HELPED)} people are not helped. The ratio does not see "
        "them; in the efficiency they count as 0.",
        (
            (
                np.array([each[HELPED].mean(), truth[1]]),
                "Efficiency is a mean over all people: who is not helped counts as 0.",
            ),
            (
                np.array([uncapped.mean(), truth[1]]),
                "Nobody counts more than 1, cheaper than the search or not.",
            ),
            (
                np.array([truth[0], (PAID[both] / LEAST[both]).mean()]),
                "The cost ratio is a ratio of two means, not a mean of ratios.",
            ),
            (
                np.array([truth[0], PAID[:4].mean() / LEAST[:4].mean()]),
                "In the cost ratio are those whom both help.",
            ),
            (truth[::-1], "Both are right, in the other order."),
        ),
        within=0.002,
    )


def chosen_in_each_study(answer: Any) -> Any:
    """Return the rows that a function chooses, of the trials of each of eight studies."""
    if not callable(answer):
        return answer
    found = []
    for _, own in trials()[trials().n_seeds == 1].groupby(STUDY, sort=False):
        joint, efficiency = own.joint.to_numpy(), own.efficiency.to_numpy()
        found.append(int(answer(joint.copy(), efficiency.copy(), 2_391)))
    return found


def by_errors(n_errors: float, counts_kept: bool = False) -> list[int]:
    """Return what the rule chooses with so many standard errors, in eight studies.

    Arguments:
        counts_kept: Count the row among those that are kept alone.
    """
    found = []
    for _, own in trials()[trials().n_seeds == 1].groupby(STUDY, sort=False):
        joint, efficiency = own.joint.to_numpy(), own.efficiency.to_numpy()
        error = np.sqrt(joint.max() * (1 - joint.max()) / 2_391)
        kept = joint >= joint.max() - n_errors * error
        row = int(np.where(kept, efficiency, -1).argmax())
        found.append(int(kept[:row].sum()) if counts_kept else row)
    return found


@key("03b.2")
def the_rule() -> Key:
    """What the rule chooses in eight studies."""
    own = trials()[trials().n_seeds == 1].groupby(STUDY, sort=False)
    by_lib = [g.index.get_loc(selection.ranked(g).index[0]) for _, g in own]
    return Key(
        np.array(by_lib, dtype=float),
        "It was asked of the trials with one network, in each of the eight studies.",
        (
            (by_errors(0), "By help alone: what is the second step of the rule?"),
            (by_errors(np.inf), "By efficiency alone: who is given up by that?"),
            (
                by_errors(2, counts_kept=True),
                "You count among the kept alone. Which place is it among all?",
            ),
            (by_errors(1), "The rule has two standard errors of tolerance."),
        ),
        of=chosen_in_each_study,
    )


@key("03b.3")
def more_tolerant() -> Key:
    """What five standard errors change, where they change anything."""
    helped, efficient = [], []
    for _, own in trials().groupby(STUDY, sort=False):
        finalists = own[own.n_seeds > 1]
        best = finalists.joint.max()
        error = np.sqrt(best * (1 - best) / finalists.n_people.iloc[0])
        kept = finalists[finalists.joint >= best - 5 * error]
        other = kept.loc[kept.efficiency.idxmax()]
        chosen = finalists[finalists.chosen].iloc[0]
        if other.name != chosen.name:
            helped.append(other.joint - chosen.joint)
            efficient.append(other.efficiency - chosen.efficiency)
    up, down = min(efficient) > 0, max(helped) < 0
    letter = "A" if up and down else "B" if up else "C" if down else "D"
    few, many = (f"{np.mean(own):+.3f}" for own in (helped, efficient))
    more = "More candidates are kept, and the most efficient of them is chosen. So?"
    below = "Who is kept only now lies below the old line. And who was chosen before?"
    return choice(
        letter,
        f"{len(helped)} of 8 choices change: joint {few}, efficiency {many} on average.",
        {"A": "Try it on the trials.", "B": below, "C": more, "D": f"{more} {below}"},
    )


@key("03b.4")
def how_many_people() -> Key:
    """How many people bring two standard errors down to one in a hundred."""
    p, wanted = 0.59, 0.01
    n = 4 * p * (1 - p) / wanted**2
    now = 2 * (p * (1 - p) / 2_391) ** 0.5
    return Key(
        n,
        f"With the 2,391 people that there are, it is {now:.3f}: "
        "half the tolerance takes four times the people.",
        (
            (n / 4, "One standard error is that small then. Two have to be."),
            (n / 2, "Two standard errors: the square of the two counts."),
            (4 * p / wanted**2, "A share p has the variance p (1 - p)."),
            (4 * p * (1 - p) / wanted, "The standard error goes with the root of n."),
            (1 / wanted**2, "That is the worst case, a share of one half."),
        ),
        within=10,
    )


@key("03b.5")
def best_of_thirty() -> Key:
    """By how much the best of thirty equal trials looks better than it is."""
    rng = np.random.default_rng(0)
    shares = rng.binomial(2_391, 0.59, (20_000, 30)) / 2_391
    luck = shares.max(1).mean() - 0.59
    edges = (0.005, 0.015, 0.03)
    letter = "ABCD"[int(np.searchsorted(edges, luck))]
    error = (0.59 * 0.41 / 2_391) ** 0.5
    small = "Draw thirty shares with such errors and take the largest. Do it many times."
    large = "How far does the largest of thirty normal numbers lie above their mean?"
    return choice(
        letter,
        f"By {luck:.3f}, about {luck / error:.1f} standard errors, and the rule's "
        "tolerance is two. So finalists are trained and judged again.",
        {"A": small, "B": small, "C": large, "D": large},
    )


@key("03b.6")
def half_the_tolerance() -> Key:
    """What share of invented targets some trial confirms, at two tolerances."""
    soft = trials()[(trials().n_seeds == 1) & (trials().profile != "constant")]
    rng, shares = np.random.default_rng(0), []
    for _, own in soft.groupby(STUDY, sort=False):
        points = own[["joint", "hap"]].to_numpy()
        low, high = np.quantile(points, [0.1, 0.9], axis=0)
        targets = rng.uniform(low, high, (1_000, 2))
        nearest = np.abs(targets[:, None] - points[None]).max(-1).min(1)
        shares.append([(nearest < 0.05).mean(), (nearest < 0.025).mean()])
    wide, narrow = np.mean(shares, axis=0)
    part = narrow / wide
    letter = "A" if part > 0.7 else "B" if part > 0.4 else "C" if part > 0.1 else "D"
    hints = {
        "A": "Around each trial there is a square that it confirms. How does it shrink?",
        "B": "In one number it would be half. Here two have to agree at once.",
        "C": "Count what the squares around all trials cover, at both tolerances.",
        "D": "There are some thirty trials in each study, and each confirms a square.",
    }
    return choice(
        letter,
        f"{wide:.2f} at 0.05, {narrow:.2f} at 0.025. The square shrinks to a quarter, the "
        "share a little less, since squares overlap.",
        hints,
    )
