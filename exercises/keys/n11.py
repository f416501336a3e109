"""At the edge of a model."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.beyond.propose import margins, propose
from lib.io import MODELS, ROOT
from lib.paper import designs
from lib.search.sets import sets_of

N_PEOPLE = 400


@functools.cache
def proposer() -> propose.Proposer:
    """Return the committed proposer."""
    return propose.Proposer.load(MODELS, "loan_propose", problem())


@functools.cache
def proposals() -> list[tuple[Any, ...]]:
    """Return made-up proposals, what a person may do, and the bounds: a case each."""
    rng, sets, cases = np.random.default_rng(0), sets_of(4).numpy(), []
    for margin, nats in ((0.0, 0.0), (3.0, 0.03)) * 6:
        cost = rng.random(len(sets))
        log_odds, gain = rng.normal(1.0, 3.0, 15), rng.normal(0.02, 0.1, 15)
        cases.append((cost, log_odds, gain, sets, rng.random(4) < 0.7, margin, nats))
    nobody = np.full(15, -1.0)
    everything = np.ones(4, dtype=bool)
    cases.append((cost, nobody, gain, sets, everything, 0.0, 0.0))
    plenty, at_bound = np.full(15, 1.0), np.array([0.5, *nobody[1:]])
    cases.append((cost, at_bound, plenty, sets, everything, 0.5, 0.5))
    cases.append((cost, plenty, at_bound, sets, everything, 0.5, 0.5))
    return cases


def first_of(cost: np.ndarray, keeps: np.ndarray) -> int:
    """Return the row of the lowest cost among those kept, or -1."""
    return int(np.where(keeps, cost, np.inf).argmin()) if keeps.any() else -1


@key("11.1")
def verify() -> Key:
    """A function that chooses the cheapest proposal that holds."""

    of_each = applied(proposals())

    def kept(
        demands: Callable[..., np.ndarray], choose: Callable[..., int] = first_of
    ) -> np.ndarray:
        return of_each(
            lambda cost, odds, gain, sets, may, margin, nats: choose(
                cost, demands(odds, gain, ~(sets & ~may).any(1), margin, nats)
            )
        )

    def holds(
        odds: np.ndarray, gain: np.ndarray, can: np.ndarray, margin: float, nats: float
    ) -> np.ndarray:
        return (odds >= margin) & (gain >= nats) & can

    return Key(
        kept(holds),
        f"The same row for {len(proposals())} made-up people; -1 for whom none helps.",
        (
            (
                kept(
                    lambda odds, gain, can, margin, nats: holds(
                        odds, gain, can | True, margin, nats
                    )
                ),
                "A row may use only features that the person can act on.",
            ),
            (
                of_each(
                    lambda cost, odds, gain, sets, may, margin, nats: first_of(
                        cost, holds(odds, gain, (sets == may).all(1), margin, nats)
                    )
                ),
                "A person may leave out what they can do: every subset is allowed.",
            ),
            (
                kept(lambda odds, gain, can, margin, nats: (odds >= margin) & can),
                "Accepted is not enough: is the profile plausible, too?",
            ),
            (
                kept(lambda odds, gain, can, margin, nats: holds(odds, gain, can, 0, 0)),
                "Log-odds and nats must reach the bounds that are asked for.",
            ),
            *(
                (
                    kept(
                        lambda odds, gain, can, margin, nats, over=over: (
                            holds(odds, gain, can, margin, nats)
                            & ((odds > margin) | ("odds" not in over))
                            & ((gain > nats) | ("gain" not in over))
                        )
                    ),
                    "At least means that the bound itself is enough.",
                )
                for over in (("odds", "gain"), ("odds",), ("gain",))
            ),
            (
                kept(
                    holds, lambda cost, keeps: int(np.where(keeps, cost, np.inf).argmin())
                ),
                "Whom no proposal helps gets -1.",
            ),
            (
                kept(
                    holds,
                    lambda cost, keeps: int(cost[keeps].argmin()) if keeps.any() else -1,
                ),
                "That is the place among the rows that hold. Which row of all is it?",
            ),
        ),
        of=of_each,
        each="made-up person",
    )


@key("11.2")
def without_the_walk() -> Key:
    """How many of those helped by the flow are helped in truth, without a walk."""
    x, flow, truth = (
        problem().refused("test")[:N_PEOPLE],
        problem().flow,
        problem().population.truth,
    )
    assert truth is not None
    asked = designs.hard_preferences(problem(), len(x), 1)["random"]
    helped = {}
    for name, n_steps in (("walked", propose.N_STEPS), ("as proposed", 0)):
        r = proposer().recommend(x, asked, n_steps=n_steps)
        by_flow, in_truth = (
            margins.is_helped(problem(), model, x, r).mean() for model in (flow, truth)
        )
        helped[name] = by_flow, in_truth
    walked, proposed = helped.values()
    kept, before = proposed[1] / proposed[0], walked[1] / walked[0]
    return choice(
        "A" if abs(kept - before) < 0.1 else "B" if kept > 0.85 else "C",
        f"As proposed: {proposed[0]:.3f} by the flow, {proposed[1]:.3f} in truth. Walked: "
        f"{walked[0]:.3f} and {walked[1]:.3f}. The walk takes off what was more than "
        "needed by the flow, and that was a margin.",
        {
            "A": "Both are verified by the same flow. Are both equally near to its bounds?",
            "B": "Where does a proposal lie before the walk, and where after it?",
            "C": "Where does a proposal lie before the walk, and where after it?",
        },
    )


CASES = (  # joint share, its standard error, cost
    (
        np.array([0.37, 0.53, 0.592, 0.602, 0.604, 0.597]),
        np.array([0.012, 0.012, 0.013, 0.013, 0.013, 0.013]),
        np.array([0.0317, 0.0322, 0.0324, 0.0335, 0.0331, 0.0349]),
    ),
    (
        np.array([0.81, 0.9, 0.88, 0.893, 0.86, 0.85]),
        np.array([0.02, 0.01, 0.03, 0.02, 0.05, 0.02]),
        np.array([0.1, 0.4, 0.2, 0.3, 0.15, 0.5]),
    ),
    (  # the second pair has the highest share less its own error
        np.array([0.90, 0.893, 0.88]),
        np.array([0.03, 0.01, 0.01]),
        np.array([0.4, 0.3, 0.2]),
    ),
)


@key("11.3")
def the_rule() -> Key:
    """A function that chooses a margin by the rule."""

    of_each = applied(CASES)
    whose = "Whose standard error? That of the pair with the highest share, for all."

    return Key(
        of_each(
            lambda joint, se, cost: first_of(
                cost, joint >= joint.max() - se[joint.argmax()]
            )
        ),
        "Nobody can say that it helps fewer than the best, and it costs less.",
        (
            (
                of_each(lambda joint, se, cost: joint.argmax()),
                "That is the best pair. The rule takes the cheapest near it.",
            ),
            (
                of_each(lambda joint, se, cost: cost.argmin()),
                "That is the cheapest of all. Is it near the best?",
            ),
            (
                of_each(lambda joint, se, cost: first_of(cost, joint + se >= joint.max())),
                whose,
            ),
            (
                of_each(
                    lambda joint, se, cost: first_of(cost, joint >= (joint - se).max())
                ),
                whose,
            ),
            (
                of_each(
                    lambda joint, se, cost: first_of(cost, joint >= joint.max() - se.mean())
                ),
                whose,
            ),
            (
                of_each(
                    lambda joint, se, cost: first_of(
                        cost, joint >= joint.max() - 2 * se[joint.argmax()]
                    )
                ),
                "One standard error, not two.",
            ),
        ),
        of=of_each,
        each="made-up case",
    )


@key("11.4")
def new_noise() -> Key:
    """Which answers lose most if a tenth of the noise is drawn anew."""
    table = pd.read_csv(ROOT / "tables" / "11_new_noise.csv", index_col=0)
    names = {"A": "proposals, walked, margin", "B": "proposals", "C": "iCARMA"}
    lost = {
        letter: 1 - table["0.1"][name] / table["0"][name] for letter, name in names.items()
    }
    parts = ", ".join(f"{names[letter]} {100 * part:.0f}" for letter, part in lost.items())
    return choice(
        max(lost, key=lambda letter: lost[letter]),
        f"Of 100 people helped in truth so many are lost: {parts}. A margin of "
        "0.1 log-odds is little beside new noise.",
        {
            "A": "What do these give beyond the bounds, and what do the others?",
            "B": "They are trained to give 0.5 log-odds too much. And the others?",
            "C": "They go furthest beyond the bounds, at twice the cost.",
        },
    )


@key("11.5")
def brought_back() -> Key:
    """The part of what the search misses in truth that a margin brings back."""
    table = pd.read_csv(ROOT / "tables" / "11_with_margin.csv", index_col=0)
    helped = table["in truth"]
    bare, spared, best = helped[["search", "proposals, walked, margin", "iCARMA"]]
    return Key(
        (spared - bare) / (best - bare),
        f"From {bare:.3f} to {spared:.3f}, of the {best:.3f} that iCARMA helps.",
        (
            (
                (best - spared) / (best - bare),
                "That is what is still missing. What came back?",
            ),
            (spared - bare, "That is of all people. Of what is missing without a margin?"),
            (spared / best, "Some of these are helped without a margin, too."),
            (
                (spared - bare) / bare,
                "Divide by what is missing, and not by what is there.",
            ),
            *as_percent(
                (spared - bare) / (best - bare),
                "A number between 0 and 1 is asked for, no percent.",
            ),
        ),
        within=0.001,
    )
