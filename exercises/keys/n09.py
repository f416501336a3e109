"""Human in the loop."""

import functools
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.beyond.hare import dialogues, ideals
from lib.beyond.hare.hare import Simulated
from lib.beyond.hare.spaces import Actions, Features, walk_back
from lib.io import MODELS
from lib.method import icarma
from lib.method.classifier import Classifier
from lib.method.preferences import Preferences
from lib.paper import designs

N_PEOPLE = 50  # refused test people, of whom some have an ideal
MARGIN = 0.3  # log-odds, the notebook's
SHARP, BLUNT, DEAF = 0.02, 0.2, 1e6  # the last counts no answer


@functools.cache
def people() -> dialogues.Participants:
    """Return those of the first refused test people who have an ideal."""
    x = problem().refused("test")[:N_PEOPLE]
    asked = designs.hard_preferences(problem(), len(x), 1)["random"]
    return dialogues.participants(problem(), x, asked, 2, problem().causal_model)


def end(known: Preferences, sharpness: float = SHARP) -> pd.DataFrame:
    """Return what people are left with after ten remembered answers, a row a person.

    Arguments:
        known: What the solver takes for their preferences.
        sharpness: As for `dialogues.hold`.
    """
    network = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem())[0]
    space = Actions(problem(), people().x, known, MARGIN)
    dialogue = dialogues.hold(
        space,
        network.recommend(people().x, known),
        "remembered, 10",
        Simulated(people().ideal),
        people().streams(3),
        sharpness,
    )
    return dialogues.evaluate(problem(), people(), dialogue.incumbent, dialogue)


@functools.cache
def with_true_masks() -> pd.DataFrame:
    """Return what they are left with if the solver knows what they can do."""
    return end(people().preferences)


@key("09.1")
def which_way() -> Key:
    """GTD of a made-up outcome."""
    x, outcome, ideal = torch.tensor([[0.2, 0.3], [0.9, 0.3], [0.5, 0.7]]).double()
    far, away = (value.item() for value in ideals.closeness(x, outcome, ideal))
    from_zero = (outcome @ ideal / outcome.norm() / ideal.norm()).item()
    return Key(
        away,
        "The ways are (0.7, 0) and (0.3, 0.4), of length 0.7 and 0.5.",
        (
            (1 - away, "That is the cosine. One less that is asked for."),
            (1 - from_zero, "A way begins at the person, and not at (0, 0)."),
            (from_zero, "A way begins at the person, and not at (0, 0)."),
            (
                ideals.closeness(outcome, x, ideal)[1].item(),
                "Both ways begin at the person. The ideal's, too.",
            ),
            (
                2 - away,
                "One less the cosine, and not one more: the same way has a GTD of 0.",
            ),
            (
                1 - ((outcome - x) @ (ideal - x)).item(),
                "For a cosine the product is divided by both lengths.",
            ),
            *as_percent(away, "Give the number as it is, no percent."),
            (far, "That is the distance, GTP. Which way does the outcome lie?"),
            (float(np.arccos(1 - away)), "That is the angle. Its cosine is needed."),
            (float(np.degrees(np.arccos(1 - away))), "That is the angle, in degrees."),
        ),
        within=0.005,
    )


@key("09.2")
def walked_back() -> Key:
    """Where a candidate is walked back to, with a margin."""

    def to(margin: float) -> np.ndarray:
        h = Classifier(("x1", "x2"), lambda x: x.sum(-1) - 1 - margin)
        x, last = torch.tensor([[[0.2, 0.3]], [[0.8, 0.5]]]).double()
        space = Features(h, x, torch.tensor([True, True]))
        both = torch.ones_like(x, dtype=torch.bool)
        nearer, _ = walk_back(space, space.outcome(both, last))
        return nearer.x_cf[0].numpy()

    place, bare = to(0.1), to(0.0)
    person, last = np.array([0.2, 0.3]), np.array([0.8, 0.5])
    before, after = person.sum() - 1, last.sum() - 1
    share = (place[0] - person[0]) / (last - person)[0]
    straight = person + (0.1 - before) / 2
    return Key(
        place,
        f"{share:.2f} of the way: log-odds go from {before:.1f} to {after:.1f}, and 0.1 "
        "are asked for.",
        (
            (bare, "There the log-odds are 0. A margin of 0.1 is asked for."),
            (
                last - share * (last - person),
                "That is so far from the end. Measure from the person.",
            ),
            (to(-0.1), "There the person is still refused: mind the sign of the margin."),
            (share * (last - person), "That is how far it is. From where?"),
            (straight, "It lies on no line between the person and the candidate."),
            (
                last - 0.1 * (last - person),
                "The margin is in log-odds. It is no share of the way.",
            ),
        ),
        within=0.001,
    )


GUESSES = np.array([[0.5, 0.5], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7], [0.1, 0.9]])
ANSWERS = (  # better, worse, tau
    (np.array([0.6, 0.45]), np.array([0.3, 0.75]), 0.2),
    (np.array([0.2, 0.8]), np.array([0.8, 0.3]), 0.5),
)


@key("09.3")
def belief() -> Key:
    """A function that returns how an answer changes beliefs."""

    of_each = applied([(GUESSES, *answer) for answer in ANSWERS])

    def far(guesses: np.ndarray, place: np.ndarray) -> np.ndarray:
        return np.linalg.norm(guesses - place, axis=1)

    def log_sigmoid(t: np.ndarray) -> np.ndarray:
        return -np.log1p(np.exp(-t))

    def streets_of(guesses: np.ndarray, place: np.ndarray) -> np.ndarray:
        return np.abs(guesses - place).sum(1)

    truth, turned, bare, times, streets, plain, squared, chance = (
        of_each(function)
        for function in (
            lambda g, good, bad, tau: log_sigmoid((far(g, bad) - far(g, good)) / tau),
            lambda g, good, bad, tau: log_sigmoid((far(g, good) - far(g, bad)) / tau),
            lambda g, good, bad, tau: log_sigmoid(far(g, bad) - far(g, good)),
            lambda g, good, bad, tau: log_sigmoid((far(g, bad) - far(g, good)) * tau),
            lambda g, good, bad, tau: log_sigmoid(
                (streets_of(g, bad) - streets_of(g, good)) / tau
            ),
            lambda g, good, bad, tau: (far(g, bad) - far(g, good)) / tau,
            lambda g, good, bad, tau: log_sigmoid(
                (far(g, bad) ** 2 - far(g, good) ** 2) / tau
            ),
            lambda g, good, bad, tau: np.exp(
                log_sigmoid((far(g, bad) - far(g, good)) / tau)
            ),
        )
    )
    return Key(
        truth,
        f"For five guesses and two made-up answers: they lose {-truth.max():.3f} to "
        f"{-truth.min():.1f}.",
        (
            (turned, "Turned round: guesses near the better outcome lose most."),
            (bare, "How sharply are answers read? Divide by tau."),
            (times, "The difference is divided by tau, and not multiplied."),
            (-truth, "The sign: the logarithm of a chance is below zero."),
            (streets, "Distances are straight lines: the root of the squares' sum."),
            (plain, "That is inside the sigmoid. Then comes the logarithm of it."),
            (squared, "Distances are not squared here."),
            (chance, "That is the chance of the answer. The weight is a logarithm."),
        ),
        within=1e-4,
        of=of_each,
        each="made-up answer",
    )


@key("09.4")
def told_too_much_or_nothing() -> Key:
    """Which is worse for the distance: too many closed, or nothing told."""
    true = people().preferences
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
        f"right {with_true_masks().gtp.mean():.2f}: answers show what a person wants, but "
        "no answer opens what was closed by mistake. Told nothing, "
        f"{untold.forbidden.mean():.0%} end with something that they cannot do.",
        {
            "A": "Which of the two mistakes can answers mend?",
            "B": "Ten answers say where a person wants to go. Which mistake do they mend?",
            "C": "One mistake can be mended by answers, the other not.",
        },
    )


@key("09.5")
def trusted_less() -> Key:
    """Where ten right answers lead that are hardly trusted."""
    sharp = with_true_masks().gtp.mean()
    blunt, deaf = (end(people().preferences, tau).gtp.mean() for tau in (BLUNT, DEAF))
    share = (blunt - sharp) / (deaf - sharp)
    return choice(
        "A" if share < 0.1 else "B" if share < 0.5 else "C",
        f"{blunt:.2f} from the ideal; {sharp:.2f} where answers are read sharply, "
        f"{deaf:.2f} where they are ignored. Also a blunt answer rules out what is far "
        "from it.",
        {
            "A": "Two guesses that differ by less than tau are hardly told apart.",
            "B": "How large are tau, and the distance that ten answers can take off?",
            "C": "Is a tau of 0.2 large beside the distances at the start, about 0.75?",
        },
    )
