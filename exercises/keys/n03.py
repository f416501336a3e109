"""iCARMA: two small networks."""

from typing import Any

import numpy as np
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.io import inside
from lib.method import icarma, metrics
from lib.method.preferences import Preferences

LOGITS = np.array([[2.1, 0.3, -0.8, 1.2], [0.3, -0.2, 0.45, 3.0], [-1.5, 0.2, 0.9, 0.1]])
SCORES = np.array([[1, 4, 5, 5], [5, 1, 2, 5], [2, 5, 5, 1]])

MASK_WEIGHT, PRICE = 1.5, 0.5
LOG_ODDS = np.array([-90.0, -6.0, -1.0, 0.05, 3.0])  # of five people
MARGIN = 0.1


@key("03.1")
def masks() -> Key:
    """The masks of three people."""
    can = SCORES <= 4
    probability = 1 / (1 + np.exp(-LOGITS))
    wanted = probability > 0.5
    return Key(
        (wanted & can).astype(float),
        f"Closed features are {int((wanted & ~can).sum())} of the {int(wanted.sum())} that "
        "the network wanted. The product leaves them out.",
        (
            (wanted, "This is what the network wants. What does the person say?"),
            (can, "This is what the person can do. What does the network want?"),
            (
                (LOGITS > 0.5) & can,
                "A logit is no probability: at which logit is the probability 0.5?",
            ),
            (probability * can, "A mask is 0 or 1: a feature is acted on or it is not."),
            (
                wanted & (SCORES < 4),
                "A 4 is the hardest that somebody can still do.",
            ),
            (
                wanted | ~can,
                "Which of these does the person say that they can't do?",
            ),
            (~wanted & can, "Those are the features that it does not want to act on."),
        ),
    )


@key("03.2")
def two_draws() -> Key:
    """The straight-through slope of a loss at two draws."""
    ell, noise, tau = -0.4, np.array([0.7, -1.0]), 0.36
    soft = 1 / (1 + np.exp(-(ell + noise) / tau))
    slope_of_soft = soft * (1 - soft) / tau
    mask = (ell + noise > 0).astype(float)
    return Key(
        -2 * (1 - mask) * slope_of_soft,
        f"The masks are {mask[0]:.0f} and {mask[1]:.0f}: where the feature was acted on "
        "there is nothing left to gain, and the other draw says to act more often.",
        (
            (np.zeros(2), "That is the plain step. What stands in for its slope?"),
            (
                -2 * (1 - soft) * slope_of_soft,
                "Forwards the mask is hard: the loss sees 0 or 1.",
            ),
            (
                -2 * (1 - mask) * slope_of_soft * tau,
                "The temperature divides inside the sigmoid: mind the chain rule.",
            ),
            (
                2 * (1 - mask) * slope_of_soft,
                "A loss that falls as the logit rises has a negative slope.",
            ),
            (
                -(1 - mask) * slope_of_soft,
                "The square has a slope, too: the chain rule brings a factor.",
            ),
            (
                -2 * slope_of_soft,
                "The slope of the square depends on the mask: what is it where m is 1?",
            ),
            (
                -2 * mask * slope_of_soft,
                "The loss is the square of 1 - m, and not of m.",
            ),
            (
                slope_of_soft,
                "That is the slope of the mask. The loss has one in the mask, too.",
            ),
        ),
        within=0.005,
    )


@key("03.3")
def colder() -> Key:
    """What a colder temperature does to a slope from batches of 128 draws."""
    ell, temperatures = -4.0, (1.0, 0.36, 0.1)
    noise = np.random.default_rng(0).logistic(size=(2_000, 128))
    probability = 1 / (1 + np.exp(-ell))
    off, spread = [], []
    for tau in temperatures:
        soft = 1 / (1 + np.exp(-(ell + noise) / tau))
        slopes = (-2 * (ell + noise <= 0) * soft * (1 - soft) / tau).mean(1)
        off.append(abs(slopes.mean() + probability * (1 - probability)))
        spread.append(slopes.std())
    nearer, wider = off[-1] < off[0], spread[-1] > spread[0]
    letter = ("A" if wider else "B") if nearer else ("C" if wider else "D")
    listed = [
        f"{t:g}: {o:.3f} and {s:.3f}"
        for t, o, s in zip(temperatures, off, spread, strict=True)
    ]
    mean = "On average over very many draws, what did the notebook's two columns show?"
    batch = "The colder, the fewer draws have a slope at all. What does that do to a mean?"
    return choice(
        letter,
        f"Distance and spread at each temperature are {'; '.join(listed)}. The colder, the "
        "fewer draws have a slope, and the steeper it is: right in the mean, and noisy.",
        {"A": mean, "B": batch, "C": mean, "D": f"{mean} {batch}"},
    )


@key("03.4")
def prior_of_a_price() -> Key:
    """The prior at which one more feature costs so much."""
    odds = np.exp(PRICE / MASK_WEIGHT)
    prior = 1 / (1 + odds)
    return Key(
        prior,
        f"At 0.5 the price is 0. Acting for sure costs {-np.log(prior):.2f} nats here, and "
        f"leaving alone {-np.log(1 - prior):.2f}.",
        (
            (1 - prior, "At this prior features are handed out. Which way up is it?"),
            (
                1 / odds,
                "Those are the odds p / (1 - p): not acting has a price, too. Solve for p.",
            ),
            (odds, "Those are the odds of leaving it alone. Solve for p."),
            (
                1 / (1 + np.exp(MASK_WEIGHT / PRICE)),
                "Turned round: the price is the mask weight times the logarithm.",
            ),
            (0.5, "At 0.5 the price is zero. Is the mask weight in your formula?"),
            *as_percent(prior, "Give it as a probability between 0 and 1."),
        ),
        within=0.002,
    )


def hinges(answer: Any) -> Any:
    """Return what a function finds for five people."""
    return applied([(torch.tensor(LOG_ODDS), MARGIN)])(answer).reshape(-1)


@key("03.5")
def the_hinge() -> Key:
    """The hinge of five people."""
    chance = 1 / (1 + np.exp(-LOG_ODDS))
    left = 4 * chance[:2] * (1 - chance[:2])

    def above(short: np.ndarray) -> np.ndarray:
        return np.maximum(0, short)

    return Key(
        above(MARGIN - (2 * chance - 1)),
        f"With log-odds of {LOG_ODDS[0]:.0f} a share of {left[0]:.0e} of the slope at the "
        f"boundary is left, with {LOG_ODDS[1]:.0f} a share of {left[1]:.2f}.",
        (
            (
                above(MARGIN - LOG_ODDS),
                "This is on the log-odds. The hinge is on 2 h - 1, which never falls below "
                "-1.",
            ),
            (
                above(MARGIN - chance),
                "This is on h, which is 0.5 at the boundary. 2 h - 1 is 0 there.",
            ),
            (
                above(-(2 * chance - 1)),
                "Accepted is not enough: what about the margin?",
            ),
            (
                MARGIN - (2 * chance - 1),
                "Who is beyond the margin lacks nothing: it is never below zero.",
            ),
            (
                above(2 * chance - 1 - MARGIN),
                "The sign: who has too little pays, and not who has enough.",
            ),
            (
                above(-MARGIN - (2 * chance - 1)),
                "The sign of the margin: with it, people need more than to be accepted.",
            ),
        ),
        within=0.001,
        of=hinges,
        each="person",
    )


@key("03.6")
def one_feature_left() -> Key:
    """How many are recommended more than they need with a single open feature."""
    x, features = problem().refused("validation"), 4
    network = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem())[0]
    shares = []
    for k in (features, 1):
        rank = (torch.arange(len(x))[:, None] + torch.arange(features)) % features + 1
        scores = torch.where(rank <= k, rank, features + 1)
        preferences = Preferences(scores, profile=network.profile)
        answer = network.recommend(x, preferences)
        good = metrics.per_person(problem(), x, preferences, answer).joint
        n_more = metrics.redundant(problem(), x, answer).sum().item()
        shares.append(n_more / good.sum())
    letter = "A" if shares[1] == 0 else "B" if shares[1] < shares[0] / 2 else "C"
    hints = {
        "A": "Count them: is there nobody?",
        "B": "What is left of the recommendation when its only feature is left out?",
        "C": "What is left of the recommendation when its only feature is left out?",
    }
    return choice(
        letter,
        f"{shares[1]:.2f}, against {shares[0]:.2f} with all four: without their only "
        "feature people do nothing, and who does nothing stays refused.",
        hints,
    )
