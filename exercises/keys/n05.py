"""Soft constraints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exercises.checking import PERCENT, Key, applied, choice, key, wrong_ways
from lib.io import MODELS
from lib.method import icarma, metrics
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation


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
    linear = 1 + s / 3
    return Key(
        f"The hardest counts {weights[3]:.2f} here and {linear[3]:.2f} in the linear "
        "profile: the shape is not normalised.",
        [
            *wrong_ways(
                lambda s, gamma, k, w, base: base + w * s**gamma / k,
                s=[s, (s + 1, "From s - 1: the easiest has difficulty 0.")],
                gamma=[
                    1 / 1.5,
                    (1, "That is the linear profile. Concave has another exponent."),
                    (1.5, "That is the convex profile: its exponent is above 1."),
                    (0.5, "The exponent is 1/1.5."),
                ],
                k=[3, (4, "The difficulty is divided by C - 1.")],
                w=[
                    1,
                    (2, "The difficulty is multiplied by w_max - 1."),
                    (6, "For scores w_max is 2. That is the ranking's."),
                ],
                base=[1, (0, "The easiest has the weight 1.")],
            ),
            (1 + (s / 3) ** (1 / 1.5), "Only s - 1 is raised to the power. C - 1 is not."),
            (linear ** (1 / 1.5), "The power is of s - 1, not of the weight."),
        ],
        within=0.01,
    )


@key("05.2")
def how_far_on_the_hard_one() -> Key:
    """How far the cheapest action goes on a feature that weighs 7."""
    w = 7.0
    shares = [1 / (1 + weight) for weight in (1.0, w, 100.0)]
    return Key(
        f"{shares[0]:.3f} at a weight of 1, {shares[1]:.3f} at 7, {shares[2]:.3f} at 100: "
        "it goes less and less far, and always a little.",
        [
            (0.0, "A first small step costs next to nothing, since it is squared."),
            (w / (1 + w), "That is how far it goes on the easy one."),
            (1 / w, "That is the ratio of the two steps. They add up to 1."),
            (1 / (1 + w**2), "The step is squared, the weight is not."),
            (0.5, "That is without weights. Where do both cost the same for a bit more?"),
            (1 / (1 + w**0.5), "At equal costs of the two? The slopes have to be equal."),
        ],
        within=0.002,
        is_share=True,
    )


@key("05.3", cases=groups_of_people())
def share_of_hard_actions(hap: Callable[[Tensor, Tensor], Tensor]) -> Key:
    """The hard actions probability of three groups."""

    def highest(scores: Tensor) -> Tensor:
        return scores == scores.amax(-1, keepdim=True)

    def first(is_hardest: Tensor) -> Tensor:
        return is_hardest & (is_hardest.cumsum(-1) == 1)

    def share(hardest: Any, any_of: Any, among: Any, unit: float) -> np.ndarray:
        def of_group(scores: Tensor, acts: Tensor) -> Tensor:
            is_hardest = hardest(torch.where(scores <= 4, scores, 0), scores)
            return any_of(acts, is_hardest)[among(acts)].double().mean() * unit

        return applied(of_group, groups_of_people())

    ties = "Where several tie at the worst, any of them will do."
    truth = applied(hap, groups_of_people())
    return Key(
        f"For three made-up groups: {', '.join(f'{share:.2f}' for share in truth)}.",
        wrong_ways(
            share,
            hardest=[
                lambda can, _: highest(can),
                (lambda _, scores: scores == 4, "Hardest is what this person likes least."),
                (
                    lambda _, scores: highest(-scores),
                    "A high score is hard: not favourites.",
                ),
                (lambda _, scores: highest(scores), "What is closed is not the hardest."),
                (lambda can, _: first(highest(can)), ties),
            ],
            any_of=[
                lambda acts, hard: (acts & hard).any(-1),
                (lambda acts, hard: (acts | ~hard).all(-1), ties),
                (lambda acts, hard: ~(acts & hard).any(-1), "That is who is spared."),
            ],
            among=[
                lambda acts: acts.any(-1),
                (lambda acts: slice(None), "Leave out who is recommended nothing."),
            ],
            unit=[1, (100, PERCENT)],
        ),
        within=0.001,
        each="made-up group",
    )


@key("05.4")
def without_it_first(
    problem: Problem,
    search: Callable[..., Recommendation],
    drawn: dict[str, Preferences],
    helped: Tensor,
    spared: Tensor,
    share: Tensor,
) -> Key:
    """The hap of a search that tries without the hardest features first."""
    weighted = search(drawn["score"], w_max=2.0)
    acts = weighted.is_acted[:, problem.population.actionable_index]
    is_hard = metrics.hard_action(drawn["score"], acts)[weighted.has_recourse]
    by_weights = is_hard.double().mean().item()
    n_needs, n_helped, n = (helped & ~spared).sum(), helped.sum(), len(helped)
    nothing = "Some of these can't be helped at all: they act on nothing."
    return Key(
        f"By weights alone it is {by_weights:.2f}, and as many people are helped.",
        [
            (n_needs / n, "It is a share of those whom it helps."),
            (spared.sum() / n, "That is who is helped without a hardest action."),
            ((~spared).sum() / n, nothing),
            (spared.sum() / n_helped, "That is who is spared, of those who are helped."),
            ((~spared).sum() / n_helped, nothing),
            (
                n_needs / (~spared).sum(),
                "That is who is helped in the second stage. Of all who are helped?",
            ),
            (n_needs, "That is how many people. Give a share."),
            (by_weights, "That is the search by weights, in one stage."),
        ],
        within=0.0008,
        is_share=True,
    )


@key("05.5")
def all_very_hard(
    problem: Problem, x: Tensor, search: Callable[..., Recommendation]
) -> Key:
    """What exact search and networks do if everything is very hard."""
    easy, hard = (Preferences(torch.full((len(x), 4), score)) for score in (1, 4))
    first, second = (search(preferences, w_max=2.0) for preferences in (easy, hard))
    networks = icarma.load_by_profile(MODELS, "loan_icarma_score", problem)["linear"]
    n_acted = [
        networks.recommend_each(x, preferences.with_profile(networks.profile))
        .is_acted.double()
        .sum(-1)
        .mean()
        for preferences in (easy, hard)
    ]
    fewer = int(second.is_acted.sum()) < int(first.is_acted.sum())
    twice = "All weights are twice as large. Which action is the cheapest now?"
    return choice(
        "C" if torch.equal(first.x_cf, second.x_cf) else "A" if fewer else "B",
        "All weights grow alike, so the cheapest action stays the cheapest. The networks "
        f"follow priors, which fall: they act on {n_acted[1]:.1f} features instead of "
        f"{n_acted[0]:.1f}.",
        {"A": twice, "B": twice, "C": "Compare the two answers of the search."},
    )
