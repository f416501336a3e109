"""At the edge of a model."""

from typing import Any

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key, wrong_ways
from lib.beyond.propose import margins, propose
from lib.io import MODELS
from lib.method import loan
from lib.paper import designs
from lib.search.sets import sets_of

N_PEOPLE = 400


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


def lowest_of(cost: np.ndarray, keeps: np.ndarray) -> int:
    """Return the row of the lowest cost among those kept, or 0 if none is."""
    return int(np.where(keeps, cost, np.inf).argmin())


def first_of(cost: np.ndarray, keeps: np.ndarray) -> int:
    """Return the row of the lowest cost among those kept, or -1 if none is."""
    return lowest_of(cost, keeps) if keeps.any() else -1


@key("11.1", cases=proposals())
def verify() -> Key:
    """A function that chooses the cheapest proposal that holds."""

    def verifier(can: Any, reaches: Any, odds: Any, gain: Any, first: Any) -> Any:
        def row(cost, log_odds, gains, sets, may, margin, nats):  # type: ignore[no-untyped-def]
            holds = reaches(odds(log_odds), margin) & reaches(gain(gains), nats)
            return first(cost, can(sets, may) & holds)

        return row

    ignored = "{} is not enough: is the profile {}, too?"
    return Key(
        f"The same row for {len(proposals())} made-up people; -1 for whom none helps.",
        wrong_ways(
            verifier,
            can=[
                lambda sets, may: ~(sets & ~may).any(1),
                (lambda sets, may: True, "Can the person act on all features of the row?"),
                (lambda sets, may: (sets == may).all(1), "Any subset of these is allowed."),
            ],
            reaches=[
                np.greater_equal,
                (np.greater, "At least means that the bound itself is enough."),
                (lambda value, bound: value >= 0, "Reach the bounds that are asked for."),
            ],
            odds=[
                lambda odds: odds,
                (lambda odds: odds + np.inf, ignored.format("Plausible", "accepted")),
            ],
            gain=[
                lambda gain: gain,
                (lambda gain: gain + np.inf, ignored.format("Accepted", "plausible")),
            ],
            first=[
                first_of,
                (lowest_of, "Whom no proposal helps gets -1."),
                (
                    lambda cost, keeps: cost[keeps].argmin() if keeps.any() else -1,
                    "That is the place among the rows that hold. Which row of all is it?",
                ),
            ],
        ),
        each="made-up person",
    )


@key("11.2")
def without_the_walk() -> Key:
    """How many of those helped by the flow are helped in truth, without a walk."""
    problem = loan.problem()
    x, truth = problem.refused("test")[:N_PEOPLE], problem.population.truth
    assert truth is not None
    proposer = propose.Proposer.load(MODELS, "loan_propose", problem)
    drawn = designs.hard_preferences(problem, len(x), 1)["random"]

    def shares_helped(n_steps: int) -> list[float]:
        answer = proposer.recommend(x, drawn, n_steps=n_steps)
        models = (problem.flow, truth)
        return [margins.is_helped(problem, model, x, answer).mean() for model in models]

    walked = shares_helped(propose.N_STEPS)
    proposed = shares_helped(0)
    kept, before = proposed[1] / proposed[0], walked[1] / walked[0]
    return choice(
        "A" if abs(kept - before) < 0.1 else "B" if kept > 0.85 else "C",
        f"As proposed: {proposed[0]:.3f} by the flow, {proposed[1]:.3f} in truth. Walked: "
        f"{walked[0]:.3f} and {walked[1]:.3f}. The walk takes off what was more than "
        "needed by the flow, and that was a margin.",
        {
            "A": "Both are verified by the same flow. Are both equally near to its bounds?",
            "BC": "Where does a proposal lie before the walk, and where after it?",
        },
    )


PAIRS = [  # joint share, its standard error, cost
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
    # the second pair has the highest share less its own error
    (np.array([0.9, 0.893, 0.88]), np.array([0.03, 0.01, 0.01]), np.array([0.4, 0.3, 0.2])),
]


@key("11.3", cases=PAIRS)
def the_rule() -> Key:
    """A function that chooses a margin by the rule."""

    def cheapest(bound: Any) -> Any:
        return lambda joint, se, cost: first_of(cost, joint >= bound(joint, se))

    whose = "Whose standard error? That of the pair with the highest share, for all."
    return Key(
        "Nobody can say that it helps fewer than the best, and it costs less.",
        [
            (cheapest(lambda joint, se: joint.max()), "That is the best. And near it?"),
            (cheapest(lambda joint, se: 0), "That is the cheapest. Is it near the best?"),
            (cheapest(lambda joint, se: joint.max() - se), whose),
            (cheapest(lambda joint, se: (joint - se).max()), whose),
            (cheapest(lambda joint, se: joint.max() - se.mean()), whose),
            (
                cheapest(lambda joint, se: joint.max() - 2 * se[joint.argmax()]),
                "One standard error, not two.",
            ),
        ],
        each="made-up case",
    )


@key("11.4")
def brought_back(share: float, helped: pd.Series) -> Key:
    """The part of what the search misses in truth that a margin brings back."""
    bare, spared, best = helped[["search", "proposals, walked, margin", "iCARMA"]]
    return Key(
        f"From {bare:.3f} to {spared:.3f}, of the {best:.3f} that iCARMA helps.",
        [
            (1 - share, "That is what is still missing. What came back?"),
            (spared - bare, "That is of all people. Of what is missing without a margin?"),
            (spared / best, "Some of these are helped without a margin, too."),
            (spared / bare - 1, "Divide by what is missing, and not by what is there."),
            (best - bare, "That is what is missing. What part of it came back?"),
        ],
        within=0.001,
        is_share=True,
    )
