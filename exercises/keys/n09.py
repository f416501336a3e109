"""Human in the loop."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key, wrong_functions, wrong_ways
from lib.beyond.hare import dialogues
from lib.beyond.hare.hare import Simulated
from lib.beyond.hare.spaces import Actions
from lib.io import MODELS
from lib.method import icarma, loan
from lib.method.preferences import Preferences
from lib.paper import designs

N_PEOPLE = 50  # refused test people, of whom some have an ideal
MARGIN = 0.3  # log-odds, the notebook's

GUESSES = np.array([[0.5, 0.5], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7], [0.1, 0.9]])
ANSWERS = [  # guesses, better, worse, tau
    (GUESSES, np.array([0.6, 0.45]), np.array([0.3, 0.75]), 0.2),
    (GUESSES, np.array([0.2, 0.8]), np.array([0.8, 0.3]), 0.5),
]


@key("09.1")
def walked_back(person: np.ndarray, candidate: np.ndarray) -> Key:
    """Where a candidate is walked back to, with a margin."""
    whole = candidate - person
    return Key(
        "Three quarters of the way: log-odds go from -0.5 to 0.3, and 0.1 are asked for.",
        wrong_ways(
            lambda margin, place: place((margin + 0.5) / (0.3 + 0.5)),
            (person + 0.3, "It lies on no line between the person and the candidate."),
            (candidate - 0.1 * whole, "The margin is in log-odds, no share of the way."),
            margin=[
                0.1,
                (0.0, "There the log-odds are 0. A margin of 0.1 is asked for."),
                (-0.1, "There the person is still refused: the sign of the margin."),
            ],
            place=[
                lambda share: person + share * whole,
                (
                    lambda share: candidate - share * whole,
                    "That is so far from the end. Measure from the person.",
                ),
                (lambda share: share * whole, "That is how far it is. From where?"),
            ],
        ),
        within=0.001,
    )


@key("09.2", cases=ANSWERS)
def belief() -> Key:
    """A function that returns how an answer changes beliefs."""

    def log_sigmoid(t: np.ndarray) -> np.ndarray:
        return -np.log1p(np.exp(-t))

    def added(*case: Any, far: Any, sign: int, by_tau: Any, last: Any) -> np.ndarray:
        guesses, better, worse, tau = case
        apart = sign * (far(guesses - worse) - far(guesses - better))
        return last(by_tau(apart, tau))

    return Key(
        "A guess near the better outcome loses little, one near the worse a lot.",
        wrong_functions(
            added,
            far=[
                lambda gap: np.linalg.norm(gap, axis=1),
                (lambda gap: np.abs(gap).sum(1), "Distances are straight lines."),
                (lambda gap: (gap**2).sum(1), "Distances are not squared here."),
            ],
            sign=[1, (-1, "Turned round: guesses near the better outcome lose most.")],
            by_tau=[
                np.divide,
                (lambda apart, tau: apart, "How sharply are answers read? Divide by tau."),
                (np.multiply, "The difference is divided by tau, and not multiplied."),
            ],
            last=[
                log_sigmoid,
                (lambda t: -log_sigmoid(t), "The logarithm of a chance is below zero."),
                (lambda t: t, "Then comes the sigmoid, and the logarithm of it."),
                (lambda t: np.exp(log_sigmoid(t)), "The weight is a logarithm."),
            ],
        ),
        within=1e-4,
        each="made-up answer",
    )


@key("09.3")
def told_too_much_or_nothing() -> Key:
    """Which is worse for the distance: too many closed, or nothing told."""
    problem = loan.problem()
    x = problem.refused("test")[:N_PEOPLE]
    drawn = designs.hard_preferences(problem, len(x), 1)["random"]
    people = dialogues.participants(problem, x, drawn, 2, problem.causal_model)
    network = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem)[0]

    def end(known: Preferences) -> pd.DataFrame:
        space = Actions(problem, people.x, known, MARGIN)
        first = network.recommend(people.x, known)
        person = Simulated(people.ideal)
        dialogue = dialogues.hold(
            space, first, "remembered, 10", person, people.streams(3), 0.02
        )
        return dialogues.evaluate(problem, people, dialogue.incumbent, dialogue)

    true = people.preferences
    scores = true.scores.clone()
    is_open = true.is_actionable & (true.is_actionable.sum(1, keepdim=True) > 1)
    rows = is_open.any(1).nonzero().squeeze(1)
    scores[rows, is_open.int().argmax(1)[rows]] = scores.shape[1] + 1
    cautious = end(replace(true, scores=scores)).gtp.mean()
    untold = end(replace(true, scores=torch.ones_like(true.scores)))
    apart = cautious - untold.gtp.mean()
    return choice(
        "C" if abs(apart) < 0.05 else "A" if apart > 0 else "B",
        f"Told too much {cautious:.2f}, told nothing {untold.gtp.mean():.2f}, told "
        f"right {end(true).gtp.mean():.2f}: answers show what a person wants, but "
        "no answer opens what was closed by mistake. Told nothing, "
        f"{untold.forbidden.mean():.0%} end with something that they cannot do.",
        {
            "A": "Which of the two mistakes can answers mend?",
            "B": "Ten answers say where a person wants to go. Which mistake do they mend?",
            "C": "One mistake can be mended by answers, the other not.",
        },
    )
