"""Soft constraints."""

import functools
from typing import Any

import numpy as np
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.io import inside
from lib.method import grid, icarma, metrics
from lib.method.preferences import CONSTANT, GAMMA, Preferences, Profile
from lib.method.problem import Recommendation
from lib.paper import designs, readings

N_PEOPLE = 150  # that are searched


def groups_of_people() -> list[tuple[torch.Tensor, torch.Tensor]]:
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
def convex_weights() -> Key:
    """The weights of the convex profile."""
    four = torch.tensor([[1, 2, 3, 4]])
    weights = {
        name: Preferences(four, profile=Profile(gamma, w_max=7.0)).weight[0]
        for name, gamma in GAMMA.items()
    }
    truth, difficulty = weights["convex"], (weights["convex"] - 1) / 6
    steps = torch.arange(4)
    return Key(
        truth,
        f"The hardest counts {truth[3]:.2f} here, {weights['linear'][3]:.2f} in the linear "
        f"profile and {weights['concave'][3]:.2f} in the concave one: the shape is not "
        "normalised.",
        (
            (weights["linear"], "That is the linear profile. Convex has another exponent."),
            (weights["concave"], "That is the concave profile: its exponent is below 1."),
            (difficulty, "That is the difficulty. A weight is 1 or more."),
            (1 + 7 * difficulty, "The difficulty is multiplied by w_max - 1."),
            (6 * difficulty, "The easiest has the weight 1."),
            (7 * difficulty, "The easiest has the weight 1, and w_max - 1 multiplies."),
            (
                1 + 6 * (steps / 3) ** 1.5,
                "Only s - 1 is raised to the power. K - 1 is not.",
            ),
            (1 + 6 * steps**2 / 3, "The exponent is 1.5."),
            *(
                (1 + 6 * h, "From s - 1, over K - 1: the easiest has difficulty 0.")
                for h in ((steps + 1) ** 1.5 / 3, (steps + 1) ** 1.5 / 4, steps**1.5 / 4)
            ),
            (weights["linear"] ** 1.5, "The power is of s - 1, not of the weight."),
        ),
        within=0.01,
    )


@key("05.2")
def how_far_on_the_hard_one() -> Key:
    """How far the cheapest action goes on a feature that weighs 7."""
    w = 7.0
    shares = [1 / (1 + weight) for weight in (1.0, w, 100.0)]
    return Key(
        shares[1],
        f"{shares[0]:.3f} at a weight of 1, {shares[1]:.3f} at 7, {shares[2]:.3f} at 100: "
        "it goes less and less far, and always a little.",
        (
            (0.0, "A first small step costs next to nothing, since it is squared."),
            (w / (1 + w), "That is how far it goes on the easy one."),
            (1 / w, "That is the ratio of the two steps. They add up to 1."),
            (
                1 / (1 + w**2),
                "The step is squared, the weight is not.",
            ),
            *as_percent(1 / (1 + w), "Give it as a part of 1, no percent."),
            (0.5, "That is without weights. Where do both cost the same for a bit more?"),
            (
                1 / (1 + w**0.5),
                "At equal costs of the two? The slopes have to be equal.",
            ),
        ),
        within=0.002,
    )


@key("05.3")
def hap() -> Key:
    """The hard actions probability of three groups."""
    of_each = applied(groups_of_people())

    def hardest(scores: torch.Tensor) -> torch.Tensor:
        can = torch.where(scores <= 4, scores, 0)
        return can == can.amax(-1, keepdim=True)

    def share(of: Any, among_answered: bool = True) -> np.ndarray:
        def mean(scores: torch.Tensor, acts: torch.Tensor) -> float:
            rows = acts.any(-1) | (not among_answered)
            return of(scores, acts)[rows].double().mean().item()

        return of_each(mean)

    def hard(scores: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
        return (acts & hardest(scores)).any(-1)

    def among_all(scores: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
        return (acts & (scores == scores.amax(-1, keepdim=True))).any(-1)

    def of_ties(scores: torch.Tensor, acts: torch.Tensor, last: bool) -> torch.Tensor:
        place = torch.arange(1.0, 5.0) if last else torch.arange(4.0, 0.0, -1.0)
        one = (hardest(scores) * place).argmax(-1, keepdim=True)
        return acts.gather(-1, one).squeeze(-1)

    ties = "Where several features tie at the worst, any of them will do."
    truth = share(lambda s, a: metrics.hard_action(Preferences(s), a))
    return Key(
        truth,
        f"For three made-up groups: {', '.join(f'{one:.2f}' for one in truth)}.",
        (
            (
                share(hard, among_answered=False),
                "Who is recommended nothing is not asked: of whom is it a share?",
            ),
            (
                share(lambda s, a: (a & (s == 4)).any(-1)),
                "Hardest is what this person likes least, whatever its score.",
            ),
            (
                share(lambda s, a: (a & (s == s.amin(-1, keepdim=True))).any(-1)),
                "Those are the favourites: a high score is hard.",
            ),
            (share(among_all), "What is closed is not among the hardest."),
            (share(lambda s, a: of_ties(s, a, False)), ties),
            (share(lambda s, a: of_ties(s, a, True)), ties),
            (share(lambda s, a: (a | ~hardest(s)).all(-1)), ties),
            (
                of_each(lambda s, a: (a & hardest(s)).sum() / a.sum()),
                "That is a share of the actions. A share of people is asked for.",
            ),
            (1 - truth, "That is who is spared: at least one is asked for."),
            (100 * truth, "A share between 0 and 1 is asked for, no percent."),
            (
                of_each(lambda s, a: hard(s, a).sum()),
                "That is how many people. Give a share.",
            ),
        ),
        within=0.001,
        of=of_each,
        each="made-up group",
    )


def exact_search() -> grid.Grid:
    """Return the notebook's exact search."""
    return grid.Grid(problem(), half_width=readings.half_width())


@functools.cache
def exact(way: str, w_max: float) -> tuple[Preferences, Recommendation]:
    """Return people's preferences, all possible, and exact answers by linear weights."""
    x, linear = problem().refused("test"), Profile(GAMMA["linear"], w_max)
    drawn = designs.soft_preferences(problem(), way, len(x), seed=1, profile=linear)
    preferences = drawn["soft"][:N_PEOPLE]
    return preferences, exact_search().recommend(x[:N_PEOPLE], preferences)


@functools.cache
def two_stages(way: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return who is helped, and who is helped without a hardest action."""
    preferences, answer = exact(way, 7.0)
    x, scores = problem().refused("test")[:N_PEOPLE], preferences.scores
    closed = torch.where(scores == scores.amax(-1, keepdim=True), 5, scores)
    left = (closed <= 4).any(-1)
    spared = torch.zeros(len(x), dtype=torch.bool)
    rest = Preferences(closed[left], profile=CONSTANT)
    spared[left] = exact_search().recommend(x[left], rest).has_recourse
    return answer.has_recourse, spared


def hap_by_search(way: str, w_max: float) -> float:
    """Return the hap of exact search."""
    preferences, answer = exact(way, w_max)
    acts = answer.is_acted[:, problem().population.actionable_index]
    is_hard = metrics.hard_action(preferences, acts)[answer.has_recourse]
    return is_hard.double().mean().item()


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
    by_weights = hap_by_search("score", readings.profile("linear", "score").w_max)
    n_needs = (helped & ~spared).sum().item()
    share, n_helped = n_needs / helped.sum().item(), helped.sum().item()
    return Key(
        share,
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
            (
                (~spared).sum().item() / n_helped,
                "Some of these can't be helped at all: they act on nothing.",
            ),
            (
                n_needs / (~spared).sum().item(),
                "That is who is helped in the second stage. Of all who are helped?",
            ),
            (n_needs, "That is how many people. Give a share."),
            *as_percent(share, "A share between 0 and 1 is asked for, no percent."),
            (by_weights, "That is the search by weights, in one stage."),
        ),
        within=0.0008,
    )


@key("05.6")
def all_very_hard() -> Key:
    """What exact search and networks do if everything is very hard."""
    x = problem().refused("test")[:N_PEOPLE]
    networks = icarma.load_by_profile(inside("models"), "loan_icarma_score", problem())
    ensemble = networks["linear"]
    exact_answers, n_acted, helps = [], [], []
    for score in (1, 4):
        scores = torch.full((len(x), 4), score)
        preferences = Preferences(scores, profile=ensemble.profile)
        exact_answers.append(exact_search().recommend(x, preferences))
        answers = ensemble.recommend_each(x, preferences)
        n_acted.append(answers.is_acted.double().sum(-1).mean().item())
        people = [
            metrics.per_person(problem(), x, preferences, answers[i])
            for i in range(len(ensemble))
        ]
        helps.append(np.mean([of_member.joint.mean() for of_member in people]))
    easy, hard = exact_answers
    fewer = int(hard.is_acted.sum()) < int(easy.is_acted.sum())
    is_same = torch.equal(hard.is_acted, easy.is_acted) and torch.equal(
        hard.x_cf, easy.x_cf
    )
    hints = {
        "A": "All weights are twice as large. Which action is the cheapest now?",
        "B": "All weights are twice as large. Which action is the cheapest now?",
        "C": "Compare the two answers of the search.",
    }
    return choice(
        "C" if is_same else "A" if fewer else "B",
        "All weights grow alike, so the cheapest action stays the cheapest. The networks "
        f"follow priors, which fall: they act on {n_acted[1]:.1f} features instead of "
        f"{n_acted[0]:.1f}, and help {helps[1]:.2f} of people instead of {helps[0]:.2f}.",
        hints,
    )
