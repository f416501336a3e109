"""Soft constraints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exercises.checking import Key, choice, key, wrong_functions, wrong_ways
from lib.method.problem import Recommendation


def groups_of_people() -> list[tuple[Tensor, Tensor]]:
    """Return scores and what is acted on, of three groups: only what can be done."""
    rng, groups = np.random.default_rng(0), []
    for n in (8, 12, 20):
        scores = rng.integers(1, 6, (n, 4))
        scores[:, 0] = np.minimum(scores[:, 0], 4)  # everybody can do something
        acts = (scores <= 4) & (rng.random((n, 4)) < 0.4)
        acts[0] = False
        groups.append((torch.tensor(scores), torch.tensor(acts)))
    return groups


@key("05.1")
def concave_weights(weights: Tensor) -> Key:
    """The weights of the concave profile."""
    s = torch.arange(4)  # a score less 1
    return Key(
        f"The hardest counts {weights[3]:.2f} here and 2.00 in the linear profile: the "
        "shape is not normalised.",
        wrong_ways(
            lambda s, gamma, k, w: 1 + w * s**gamma / k,
            (1 + (s / 3) ** (1 / 1.5), "Only s - 1 is raised to the power. C - 1 is not."),
            s=[s, (s + 1, "From s - 1: the easiest has difficulty 0.")],
            gamma=[
                1 / 1.5,
                (1, "That is the linear profile. Concave has another exponent."),
                (1.5, "That is the convex profile: its exponent is above 1."),
            ],
            k=[3, (4, "The difficulty is divided by C - 1.")],
            w=[1, (2, "The difficulty is multiplied by w_max - 1.")],
        ),
        within=0.01,
    )


@key("05.2")
def how_far_on_the_hard_one() -> Key:
    """How far the cheapest action goes on a feature that weighs 7."""
    w = 7.0
    return Key(
        "0.500 at a weight of 1, 0.125 at 7, 0.010 at 100: it goes less and less far, and "
        "always a little.",
        [
            (0.0, "A first small step costs next to nothing, since it is squared."),
            (w / (1 + w), "That is how far it goes on the easy one."),
            (1 / w, "That is the ratio of the two steps. They add up to 1."),
            (0.5, "That is without weights. Where do both cost the same for a bit more?"),
        ],
        within=0.002,
        is_share=True,
    )


@key("05.3", cases=groups_of_people())
def share_of_hard_actions() -> Key:
    """The hard actions probability of three groups."""

    def highest(scores: Tensor) -> Tensor:
        return scores == scores.amax(-1, keepdim=True)

    def first(is_hardest: Tensor) -> Tensor:
        return is_hardest & (is_hardest.cumsum(-1) == 1)

    def share(scores: Tensor, acts: Tensor, hardest: Any, among: Any) -> Tensor:
        is_hardest = hardest(torch.where(scores <= 4, scores, 0), scores)
        return (acts & is_hardest).any(-1)[among(acts)].double().mean()

    return Key(
        "Any of the hardest counts, and who is recommended nothing is left out.",
        wrong_functions(
            share,
            hardest=[
                lambda can, _: highest(can),
                (lambda _, scores: scores == 4, "Hardest is what this person likes least."),
                (lambda _, scores: highest(scores), "What is closed is not the hardest."),
                (lambda can, _: first(highest(can)), "Where several tie, any will do."),
            ],
            among=[
                lambda acts: acts.any(-1),
                (lambda acts: slice(None), "Leave out who is recommended nothing."),
            ],
        ),
        within=0.001,
        each="made-up group",
    )


@key("05.4")
def all_very_hard(search: Callable[[int], Recommendation]) -> Key:
    """What exact search does if everything is very hard."""
    easy, hard = search(1), search(4)
    fewer = int(hard.is_acted.sum()) < int(easy.is_acted.sum())
    twice = "All weights are twice as large. Which action is the cheapest now?"
    return choice(
        "C" if torch.equal(easy.x_cf, hard.x_cf) else "A" if fewer else "B",
        "All weights grow alike, so the cheapest action stays the cheapest.",
        {"AB": twice, "C": "Compare the two answers of the search."},
    )
