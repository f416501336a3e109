"""Start here: one person, from refusal to recommendation."""

from typing import Any

import numpy as np
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.io import inside
from lib.method import grid, icarma
from lib.method.loan import EXAMPLE_PREFERENCES, first_applicant
from lib.method.preferences import Preferences, from_words
from lib.paper import readings

STEPS = np.array([-1.0, -2.0, 1.0])  # of amount, duration and income, in model units

# whether something is recommended, valid, plausible, and its cost; all of eight people
EIGHT = (
    np.array([True, True, True, True, True, True, False, False]),
    np.array([True, True, True, False, True, False, False, False]),
    np.array([True, False, True, True, True, True, True, True]),
    np.array([0.04, 0.01, 0.10, 0.30, 0.05, 0.02, 0.0, 0.0]),
)


@key("00.1")
def income_closed_too() -> Key:
    """What ten networks do once she can act on amount and duration alone."""
    population = problem().population
    x = first_applicant(population, problem().classifier)
    answers = {**EXAMPLE_PREFERENCES, "income": "can't"}
    preferences = from_words(answers, population.actionable)
    by_profile = icarma.load_by_profile(inside("models"), "loan_icarma_ranking", problem())
    x_cf = by_profile["linear"].recommend_each(x, preferences).x_cf[:, 0]
    savings = population.features.index("savings")
    moves = bool((x_cf[:, savings] != x[:, savings]).any())
    n_accepted = int(problem().accepts(x_cf).sum())
    log_p = problem().flow.log_prob
    n_plausible = int((log_p(x_cf) >= log_p(x)).sum())
    truth = "AB"[n_accepted == 0] if moves else "CD"[n_accepted == 0]
    because = (
        f"Only income, and what moves income, reaches savings. The classifier accepts "
        f"{n_accepted} of the ten answers; {n_plausible} of the ten are plausible."
    )
    arrows = "Look at the arrows that lead into savings. Does she set any of their causes?"
    hints = {
        "A": arrows,
        "B": arrows,
        "C": "Savings: right. But are amount and duration alone enough to be accepted?",
        "D": "Savings: right. But a smaller and shorter loan? Run the ten networks.",
    }
    return choice(truth, because, hints)


@key("00.2")
def what_it_costs_her() -> Key:
    """The cost of an action, weighted by her own answers."""
    population = problem().population
    acted = population.actionable_index[:3]
    effort = (STEPS / population.std[acted].numpy()) ** 2
    ranges = problem().range[acted].double().numpy()
    weights = 1 + 6 * np.array([0, 1, 2]) / 3  # easy, manageable, hard; linear, up to 7
    each = effort / ranges
    cost = (weights * each).sum() / 4
    return Key(
        cost,
        f"Without her weights the cost is {each.sum() / 4:.4f}. With them, "
        f"{weights[2] * each[2] / 4 / cost:.0%} of it is her income.",
        (
            (each.sum() / 4, "Each feature counts alike in this. What did she say?"),
            (
                (weights * each).sum(),
                "That is the sum. The cost is divided by the number K of features.",
            ),
            (
                (weights * each).sum() / 3,
                "K counts what is actionable in general, and not what she acts on.",
            ),
            (
                (np.arange(1, 4) * each).sum() / 4,
                "Those weights are the scores. A weight runs from 1 to w_max = 7.",
            ),
            (
                (weights * each / ranges).sum() / 4,
                "The square stands over the range to the power one.",
            ),
            (
                (weights * STEPS**2 / ranges).sum() / 4,
                "The range is standardised, so the steps have to be, too.",
            ),
            (
                (weights * STEPS**2 / (ranges * population.std[acted].numpy())).sum() / 4,
                "That is all in model units, the range, too. Here everything is "
                "standardised.",
            ),
        ),
        within=0.0001,
    )


@key("00.3")
def who_is_easier_to_help() -> Key:
    """Whether rare or ordinary people have recourse on the grid more often."""
    x = problem().refused("test")[:200]
    truth, log_p = problem().population.truth, problem().flow.log_prob(x)
    assert truth is not None
    any_way = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    helped = readings.oracle(problem()).recommend(x, any_way).has_recourse.float()
    is_ordinary = log_p > log_p.median()
    ordinary, rare = helped[is_ordinary].mean().item(), helped[~is_ordinary].mean().item()
    letter = "C" if abs(rare - ordinary) < 0.05 else "A" if rare > ordinary else "B"
    hints = {
        "A": "Their density is low already. Is that an advantage here? Try it.",
        "B": "Their density is high already. What does plausible ask of it afterwards?",
        "C": "Plausible compares with a person's own density. Is that as easy for both?",
    }
    shares = f"{rare:.2f} of the rarer half are helped, {ordinary:.2f} of the other"
    return choice(letter, f"{shares}: from the top, most ways lead down.", hints)


def shares_and_cost(answer: Any) -> Any:
    """Return the four numbers that a function finds for eight people."""
    return applied([EIGHT])(answer).reshape(-1)


@key("00.4")
def over_whom() -> Key:
    """Validity, plausibility, joint and cost of eight people."""
    has_any, valid, plausible, cost = EIGHT
    good = valid & plausible
    truth = np.array(
        [valid.mean(), plausible[has_any].mean(), good.mean(), cost[valid].mean()]
    )

    product = "Joint is no product of two shares: count who is both."
    both_wrong = plausible.mean(), valid.mean() * plausible.mean()
    unchanged = "What leaves a person refused has no place in the mean cost."

    def but(i: int, value: float) -> np.ndarray:
        return np.where(np.arange(4) == i, value, truth)

    return Key(
        truth,
        "Whoever is recommended nothing is not valid, and is left out of the second share.",
        (
            (
                but(1, plausible.mean()),
                "Who does nothing stays as plausible as before: leave them out there.",
            ),
            (but(2, truth[0] * truth[1]), product),
            (but(2, both_wrong[1]), product),
            (
                np.array([truth[0], *both_wrong, truth[3]]),
                f"{product} And leave out of the second share who does nothing.",
            ),
            (
                but(2, good[has_any].mean()),
                "Joint is a share of all people, helped or not.",
            ),
            (but(3, cost.mean()), unchanged),
            (but(3, cost[has_any].mean()), unchanged),
            (
                but(3, cost[good].mean()),
                "The mean cost is over the valid ones, plausible or not.",
            ),
        ),
        within=0.0005,
        of=shares_and_cost,
    )


@key("00.5")
def how_many_times_as_dense() -> Key:
    """The density of the second applicant's profile after, over that before."""
    x, truth = problem().refused("test")[:1], problem().population.truth
    assert truth is not None
    preferences = from_words(EXAMPLE_PREFERENCES, problem().population.actionable)
    answer = grid.Grid(problem(), truth, slack=np.inf).recommend(x, preferences)
    flow, cost = problem().flow, problem().cost_of(x, answer).item()
    before, after = flow.log_prob(x).item(), flow.log_prob(answer.x_cf).item()
    nats = after - before
    return Key(
        float(np.exp(nats)),
        f"She gives up {-nats:.2f} nats, at an unweighted cost of {cost:.3f}. The grid "
        "reaches a positive decision; what it lacks is one that is plausible, too.",
        (
            (nats, "That is the change in nats, a difference of logarithms."),
            (-nats, "That is a difference of logarithms. Densities are asked for."),
            (float(np.exp(-nats)), "That is before over after. Turn it round."),
            *as_percent(float(np.exp(nats)), "That is in percent. Give it as a factor."),
            (after / before, "That is a ratio of logarithms. Densities are asked for."),
            (10**nats, "A nat is a natural logarithm: not to the base of 10."),
        ),
        within=0.006,
    )
