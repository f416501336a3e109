"""Soft constraints."""

import functools
from typing import Any

import torch

from exercises.checking import Key, choice, key
from exercises.keys import problem
from lib.base.files import inside
from lib.preferences.scores import GAMMA, Preferences, Profile
from lib.problem.recourse import Recommendation
from lib.solvers import grid, icarma, metrics
from lib.studies import designs, stacks

N_PEOPLE = 150  # that are searched

# scores of six people, and what they are recommended to act on
SIX = torch.tensor(
    [[1, 2, 3, 4], [1, 2, 3, 5], [2, 2, 1, 2], [3, 1, 3, 5], [1, 5, 5, 5], [4, 3, 2, 1]]
)
ACTS = torch.tensor(
    [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
    dtype=torch.bool,
)


@key("05.1")
def convex_weights() -> Key:
    """The weights of the convex profile."""
    four = Preferences(torch.tensor([[1, 2, 3, 4]]))
    weights = {
        name: Profile(gamma, w_max=7.0).weight(four)[0] for name, gamma in GAMMA.items()
    }
    truth, hardness = weights["convex"], (weights["convex"] - 1) / 6
    return Key(
        truth,
        f"The second hardest counts {truth[2]:.2f} here, {weights['linear'][2]:.2f} in the "
        f"linear profile and {weights['concave'][2]:.2f} in the concave one.",
        (
            (weights["linear"], "That is the linear profile. Convex has another exponent."),
            (weights["concave"], "That is the concave profile: its exponent is a half."),
            (hardness, "That is the hardness. A weight runs from 1 to w_max."),
            (
                1 + 7 * hardness,
                "The hardest has the weight w_max, so how far is it from 1?",
            ),
            (
                1 + 6 * (torch.arange(1, 5) / 4) ** 2,
                "The easiest has hardness 0: count from s - 1, up to K - 1.",
            ),
        ),
        within=0.01,
    )


@key("05.2")
def how_far_on_the_hard_one() -> Key:
    """How far the cheapest action goes on a feature that weighs 7."""
    w = 7.0
    shares = [1 / (1 + own) for own in (1.0, w, 100.0)]
    return Key(
        shares[1],
        f"{shares[0]:.3f} at a weight of 1, {shares[1]:.3f} at 7, {shares[2]:.3f} at 100: "
        "it goes less and less far, and always a little.",
        (
            (0.0, "A first small step costs next to nothing, since it is squared."),
            (w / (1 + w), "That is how far it goes on the easy one."),
            (1 / w, "That is the ratio of the two steps. They add up to 1."),
            (0.5, "That is without weights. Where do both cost the same for a bit more?"),
            (
                1 / (1 + w**0.5),
                "At equal costs of the two? The slopes have to be equal.",
            ),
        ),
        within=0.002,
    )


def hap_of_six(answer: Any) -> Any:
    """Return what a function finds for six people."""
    return float(answer(SIX.clone(), ACTS.clone())) if callable(answer) else answer


@key("05.3")
def hap() -> Key:
    """The hard actions probability of six people."""
    has_any = ACTS.any(-1)
    can = SIX <= 4
    hard = metrics.hard_action(Preferences(SIX), ACTS)
    is_4 = (ACTS & (SIX == 4)).any(-1)
    worst = torch.where(can, SIX, 0)
    first = torch.zeros_like(ACTS).scatter(-1, worst.argmax(-1, keepdim=True), True)
    one_of_ties = (ACTS & first).any(-1)
    closed_too = (ACTS & (SIX.amax(-1, keepdim=True) == SIX)).any(-1)

    def share(of: torch.Tensor) -> float:
        return of[has_any].double().mean().item()

    return Key(
        share(hard),
        f"{int(hard.sum())} of the {int(has_any.sum())} who are recommended something.",
        (
            (
                hard.double().mean().item(),
                "Who is recommended nothing is not asked: of whom is it a share?",
            ),
            (
                share(is_4),
                "Hardest is what this person likes least, whatever its score.",
            ),
            (share(closed_too), "What is closed is not among the hardest."),
            (share(one_of_ties), "Where several features tie at the worst, all count."),
            (hard.double().sum().item(), "That is how many people. Give a share."),
        ),
        within=0.001,
        of=hap_of_six,
    )


@functools.cache
def exact(way: str, w_max: float) -> tuple[Preferences, Recommendation]:
    """Return people's preferences, all possible, and exact answers by linear weights."""
    x, truth = problem().refused("test"), problem().population.truth
    assert truth is not None
    own = designs.soft_preferences(problem(), way, len(x), seed=1)["soft"][:N_PEOPLE]
    profile = Profile(GAMMA["linear"], w_max)
    return own, grid.search(problem(), truth, x[:N_PEOPLE], own, profile)


@functools.cache
def two_stages(way: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return who is helped, and who is helped without a hardest action."""
    own, found = exact(way, 7.0)
    x, truth = problem().refused("test")[:N_PEOPLE], problem().population.truth
    assert truth is not None
    closed = torch.where(own.scores == own.scores.amax(-1, keepdim=True), 5, own.scores)
    left = (closed <= 4).any(-1)
    spared = torch.zeros(len(x), dtype=torch.bool)
    without = grid.search(problem(), truth, x[left], Preferences(closed[left]))
    spared[left] = without.has_recourse
    return found.has_recourse, spared


def hap_by_search(way: str, w_max: float) -> float:
    """Return the hap of exact search."""
    own, found = exact(way, w_max)
    acts = found.is_acted[:, problem().population.actionable_index]
    helped = found.has_recourse
    return metrics.hard_action(own, acts)[helped].double().mean().item()


@key("05.4")
def dear_without_end() -> Key:
    """Whether hap falls to what is needed if the hardest feature is dear enough."""
    helped, spared = two_stages("ranking")
    needed = ((helped & ~spared).sum() / helped.sum()).item()
    at_7, at_1000 = (hap_by_search("ranking", w) for w in (7.0, 1000.0))
    letter = "C" if at_1000 < needed - 0.02 else "A" if at_1000 < needed + 0.02 else "B"
    hints = {
        "A": "Another feature is dear, too: which weight has the second hardest?",
        "B": "Run it with w_max = 1000.",
        "C": "Weights move nobody from helped to not helped. Who needs a hardest action?",
    }
    return choice(
        letter,
        f"hap is {at_7:.3f} at 7 and {at_1000:.3f} at 1000; {needed:.3f} need a hardest "
        "action. A large weight is no priority: the other features weigh more, too.",
        hints,
    )


@key("05.5")
def without_it_first() -> Key:
    """The hap of a search that tries without the hardest features first."""
    helped, spared = two_stages("score")
    by_weights = hap_by_search("score", 7.0)
    n_needs = (helped & ~spared).sum().item()
    return Key(
        n_needs / helped.sum().item(),
        f"By weights alone it is {by_weights:.2f}, and as many people are helped.",
        (
            (n_needs / len(helped), "It is a share of those whom it helps."),
            (
                spared.double().mean().item(),
                "That is who is helped without a hardest action. Who is to act on one?",
            ),
            (
                1 - spared.double().mean().item(),
                "Some of these can't be helped at all: they act on nothing.",
            ),
            (
                spared.sum().item() / helped.sum().item(),
                "That is who is spared, of those who are helped.",
            ),
            (by_weights, "That is the search by weights, in one stage."),
        ),
        within=0.002,
    )


@key("05.6")
def all_very_hard() -> Key:
    """What exact search and networks do if everything is very hard."""
    x, truth = problem().refused("test")[:N_PEOPLE], problem().population.truth
    assert truth is not None
    linear = Profile(GAMMA["linear"], 7.0)
    networks = icarma.ICarma.load(inside("models"), "loan_icarma_score", problem())
    of_linear = stacks.by_profile(networks)["linear"]
    found, costs = [], []
    for score in (1, 4):
        own = Preferences(torch.full((len(x), 4), score))
        found.append(grid.search(problem(), truth, x, own, linear))
        answer = of_linear.recommend(x, own)
        costs.append(problem().cost_of(x, answer).mean().item())
    easy, hard = found
    fewer = int(hard.is_acted.sum()) < int(easy.is_acted.sum())
    is_same = torch.equal(hard.is_acted, easy.is_acted) and torch.equal(
        hard.x_cf, easy.x_cf
    )
    hints = {
        "A": "All weights are seven times as large. Which action is the cheapest now?",
        "B": "All weights are seven times as large. Which action is the cheapest now?",
        "C": "Compare the two answers of the search.",
    }
    return choice(
        "C" if is_same else "A" if fewer else "B",
        "All weights grow alike, so the cheapest action stays the cheapest. What the "
        f"networks recommend changes: it costs {costs[1] / costs[0]:.2f} times as much "
        "(unweighted).",
        hints,
    )
