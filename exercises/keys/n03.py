"""iCARMA: two small networks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from exercises.checking import Key, key, wrong_functions, wrong_ways

PEOPLE = torch.tensor([-90.0, -6.0, -1.0, 0.05, 3.0]).double()  # log-odds of five people
MARGIN = 0.1


@key("03.1")
def masks(q: Tensor, logits: Tensor, scores: Tensor) -> Key:
    """The masks of three people."""
    wanted, can = q > 0.5, scores <= 4
    return Key(
        f"Closed features are {int((wanted & ~can).sum())} of the {int(wanted.sum())} that "
        "the network wanted. The product leaves them out.",
        wrong_ways(
            lambda wanted, can: wanted & can,
            (q * can, "A mask is 0 or 1: a feature is acted on or it is not."),
            wanted=[wanted, (logits > 0.5, "Which logit has the probability 0.5?")],
            can=[
                can,
                (scores < 4, "A 4 is the hardest that somebody can still do."),
                (can | ~can, "This is what the network wants. What can people do?"),
            ],
        ),
    )


@key("03.2")
def two_draws(soft: Tensor, hard: Tensor, tau: float) -> Key:
    """The straight-through slope of a loss at two draws."""
    slope = soft * (1 - soft)
    return Key(
        f"The masks are {hard[0]:.0f} and {hard[1]:.0f}: where the feature was acted on "
        "there is nothing left to gain, and the other draw says to act more often.",
        wrong_ways(
            lambda of_loss, of_mask: of_loss * of_mask,
            of_loss=[
                -2 * (1 - hard),
                (-2 * (1 - soft), "Forwards the mask is hard: the loss sees 0 or 1."),
                (2 * (1 - hard), "A loss that falls as the logit rises slopes down."),
                (-(1 - hard), "The square has a slope, too: it brings a factor."),
            ],
            of_mask=[
                slope / tau,
                (slope, "The temperature divides inside the sigmoid: chain rule."),
                (0 * slope, "That is the plain step. What stands in for its slope?"),
            ],
        ),
        within=0.005,
    )


@key("03.3")
def prior_of_a_price(prior: Tensor, price: float, mask_weight: float) -> Key:
    """The prior at which one more feature costs so much."""
    return Key(
        f"At 0.5 the price is 0. Acting for sure costs {-prior.log():.2f} nats here, and "
        f"leaving alone {-(1 - prior).log():.2f}.",
        wrong_ways(
            lambda ratio, solve: solve(np.exp(ratio)),
            ratio=[price / mask_weight, (price, "Is the mask weight in your formula?")],
            solve=[
                lambda odds: 1 / (1 + odds),
                (lambda odds: odds / (1 + odds), "This hands out features: turn it."),
                (lambda odds: 1 / odds, "Those are the odds p / (1 - p). Solve for p."),
            ],
        ),
        within=0.002,
        is_share=True,
    )


def short_of(
    log_odds: Tensor, margin: float, asked: Any, score: Any, sign: float, least: float
) -> Tensor:
    """Return what people lack, by what is asked of a score, a sign and a lower bound."""
    return (sign * (asked(margin) - score(log_odds))).clamp(min=least)


@key("03.4", cases=[(PEOPLE, MARGIN)])
def the_hinge() -> Key:
    """The hinge of five people."""
    return Key(
        "Far below the boundary the sigmoid is flat, and hardly a slope is left.",
        wrong_functions(
            short_of,
            asked=[
                lambda margin: margin,
                (lambda margin: 0.0, "Accepted is not enough: what about the margin?"),
            ],
            score=[
                lambda log_odds: 2 * torch.sigmoid(log_odds) - 1,
                (lambda log_odds: log_odds, "This is on the log-odds. It is on 2 h - 1."),
                (torch.sigmoid, "This is on h. It is on 2 h - 1, 0 at the boundary."),
            ],
            sign=[1, (-1, "The sign: who has too little pays, not who has enough.")],
            least=[0.0, (-np.inf, "Who is beyond the margin lacks nothing.")],
        ),
        within=0.001,
        each="person",
    )
