"""Which settings? A rule that was fixed beforehand."""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from exercises.keys import applied, place_by_place
from lib.base.files import PARAMS
from lib.paper import selection

STUDY = ["elicitation", "profile"]

# five people: who is helped, what they pay, and the least that they could pay
HELPED = np.array([True, True, True, False, False])
PAID = np.array([0.02, 0.08, 0.04, 0.05, 0.01])
LEAST = np.array([0.02, 0.03, 0.05, 0.04, np.inf])


@functools.cache
def trials() -> pd.DataFrame:
    """Return the trials of both ways of asking, a row each."""
    files = [PARAMS / f"trials_{way}.csv" for way in ("ranking", "score")]
    return pd.concat([pd.read_csv(path) for path in files], ignore_index=True)


@key("03b.1")
def efficiency_and_ratio() -> Key:
    """Efficiency and cost ratio of five people."""
    most_one = np.minimum(1, LEAST / PAID)
    each = np.where(HELPED, most_one, 0.0)
    uncapped = np.where(HELPED, LEAST / PAID, 0.0)
    found = np.isfinite(LEAST)
    both = HELPED & found
    truth = [each.mean(), PAID[both].mean() / LEAST[both].mean()]
    unhelped = (
        "Efficiency: it is a mean over all people, and who is not helped counts as 0."
    )
    capped = "Efficiency: nobody counts more than 1, cheaper than the search or not."
    whom = "Cost ratio: of means over those whom both help."
    of_efficiency = [
        (each[HELPED].mean(), unhelped),
        (each[found].mean(), unhelped),
        (most_one.mean(), unhelped),
        (most_one[found].mean(), unhelped),
        (uncapped.mean(), capped),
        (uncapped[HELPED].mean(), f"{capped} And who is not helped counts as 0."),
        (LEAST[both].sum() / PAID[both].sum(), "Efficiency: it is a mean of ratios."),
    ]
    of_ratio = [
        ((PAID[both] / LEAST[both]).mean(), "Cost ratio: of two means, no mean of ratios."),
        (PAID[found].mean() / LEAST[found].mean(), whom),
        (PAID[HELPED].mean() / LEAST[found].mean(), whom),
        (PAID.mean() / LEAST[found].mean(), whom),
        (1 / truth[1], "Cost ratio: what is paid over the least."),
    ]
    return Key(
        np.array(truth),
        f"{(~HELPED).sum()} of {len(HELPED)} people are not helped. The ratio does not see "
        "them; in the efficiency they count as 0.",
        (
            *place_by_place(truth, [of_efficiency, of_ratio]),
            (np.array(truth[::-1]), "Both are right, in the other order."),
        ),
        within=0.0015,
    )


@functools.cache
def cases() -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Return joint share, efficiency and number of people: eight studies, and one of ours.

    Ours tells the standard error of the best from each trial's own.
    """
    groups = trials()[trials().n_seeds == 1].groupby(STUDY, sort=False)
    found = [(g.joint.to_numpy(), g.efficiency.to_numpy(), 2_391) for _, g in groups]
    ours = np.array([0.9, 0.832, 0.85, 0.7]), np.array([0.3, 0.5, 0.4, 0.6])
    return [*found, (*ours, 100)]


Rule = Callable[[np.ndarray, int], np.ndarray | float]


def chosen_by(line: Rule, counts_kept: bool = False) -> np.ndarray:
    """Return the row that is chosen in each case, if those at or above a line are kept.

    Arguments:
        line: From joint shares and the number of people.
        counts_kept: Count the row among those that are kept alone.
    """
    found = []
    for joint, efficiency, n_people in cases():
        kept = joint >= line(joint, n_people)
        row = int(np.where(kept, efficiency, -1).argmax())
        found.append(int(kept[:row].sum()) if counts_kept else row)
    return np.array(found, dtype=float)


def error_of(joint: np.ndarray | float, n_people: int) -> np.ndarray:
    """Return the standard error of shares."""
    return np.sqrt(np.asarray(joint) * (1 - np.asarray(joint)) / n_people)


def lower_by(n_errors: float) -> Rule:
    """Return the line that lies so many standard errors of the best below it."""
    return lambda joint, n: joint.max() - n_errors * error_of(joint.max(), n)


@key("03b.2")
def the_rule() -> Key:
    """What the rule chooses in eight studies, and in a made-up one."""
    frames = [
        pd.DataFrame({"joint": j, "efficiency": e, "n_people": n}) for j, e, n in cases()
    ]
    by_lib = [selection.ranked(own).index[0] for own in frames]
    whose = "Whose standard error? That of the highest share, for all."
    return Key(
        np.array(by_lib, dtype=float),
        "It was asked of the trials with one network, in each of the eight studies, and of "
        "a made-up study of 100 people.",
        (
            (
                chosen_by(lambda joint, n: joint.max()),
                "By help alone, or nearly: how wide is the tolerance, and who wins in it?",
            ),
            (
                chosen_by(lambda joint, n: -np.inf),
                "By efficiency alone: who is given up by that?",
            ),
            (
                chosen_by(lower_by(2), counts_kept=True),
                "You count among the kept alone. Which place is it among all?",
            ),
            (chosen_by(lower_by(1)), "The rule has two standard errors of tolerance."),
            (chosen_by(lower_by(3)), "The rule has two standard errors of tolerance."),
            (
                chosen_by(lambda joint, n: joint.max() - 2 * error_of(joint, n)),
                whose,
            ),
            (
                chosen_by(lambda joint, n: joint.max() - 2 * error_of(joint, n).mean()),
                whose,
            ),
            (
                chosen_by(lambda joint, n: lower_by(2)(joint, 2_391)),
                "On how many people was it measured? It is an argument.",
            ),
        ),
        of=applied(cases()),
        each="study",
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
        f"{len(helped)} of 8 choices change: joint {few}, efficiency {many} on average. "
        "Whoever is chosen only now lies below the old line, and is the most efficient of "
        "more.",
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
            (
                1.96**2 * p * (1 - p) / wanted**2,
                "Two standard errors are asked for, not 1.96.",
            ),
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
