"""Hard constraints."""

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import problem
from lib.io import ROOT, inside
from lib.method import grid, icarma
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation
from lib.paper import designs, readings, tables

N_FAVOURITE, N_PAY, N_REACH = 200, 200, 60  # people that three exercises ask


def searched(n_people: int, mask: list[bool], reach: float | None = None) -> Recommendation:
    """Return the grid's answers to the first people, who may all act on the same features.

    Arguments:
        mask: Over the actionable features.
        reach: Of the centred grid, in ranges; left out: the notebook's.
    """
    x = problem().refused("test")[:n_people]
    can = Preferences.from_mask(torch.tensor([mask] * n_people))
    half_width = reach or readings.half_width()
    return grid.Grid(problem(), half_width=half_width).recommend(x, can)


@key("04.1")
def favourite() -> Key:
    """Which single feature helps most people."""
    names = problem().population.actionable
    masks = torch.eye(len(names), dtype=torch.bool).tolist()
    answers = [searched(N_FAVOURITE, mask) for mask in masks]
    shares = [answer.has_recourse.float().mean() for answer in answers]
    best = int(np.argmax(shares))
    listed = ", ".join(f"{n} {s:.2f}" for n, s in zip(names, shares, strict=True))
    hints = dict.fromkeys("BC", "Which feature brings another one along that counts, too?")
    hints["A"] = (
        "The amount moves the duration. But whom does the classifier refuse most often "
        "(table in section 4 of notebook 01)?"
    )
    hints["D"] = "Nothing follows from savings. Which feature brings another one along?"
    return choice("ABCD"[best], f"Helped with one feature: {listed}.", hints)


@key("04.2")
def how_many_errors() -> Key:
    """By how many standard errors a mean is off the paper's number."""
    table = pd.read_csv(ROOT / "tables" / "04_paper_vs_ours.csv")
    cell = table[(table.networks == "as printed") & (table.metric == "plausibility")]
    cell = cell[cell.setting == "2"].iloc[0]
    by_chance = np.sqrt(cell.paper * (1 - cell.paper) / len(problem().refused("test")))
    of_paper = np.hypot(by_chance, tables.ONE_NETWORK)
    ours = cell.se_people, cell.se_networks
    error = np.sqrt(ours[0] ** 2 + ours[1] ** 2 + of_paper**2)
    apart = cell["mean"] - cell.paper
    one_network = "The paper's number is of one network. Another would give another."
    agrees = "agrees" if abs(apart) <= 2 * error else "does not agree"
    return Key(
        apart / error,
        f"The error is {error:.4f}. Two are allowed, so the cell {agrees}.",
        (
            (apart / np.hypot(*ours), "The paper's number was drawn by chance, too."),
            (apart / np.hypot(np.hypot(*ours), by_chance), one_network),
            (
                apart / np.hypot(np.hypot(*ours), tables.ONE_NETWORK),
                "It asked people, too.",
            ),
            (
                apart / (sum(ours) + by_chance + tables.ONE_NETWORK),
                "Independent errors add up as squares.",
            ),
            (apart / error / 2, "In one standard error, not in two."),
            (-apart / error, "Right in size: is our mean above or below?"),
            (apart, "That is the difference. How many standard errors is it?"),
        ),
        within=0.06,
    )


@key("04.3")
def bounds() -> Key:
    """Between what the joint share must lie."""
    table = tables.published(1).set_index(["method", "setting"])
    row = table.loc[("iCARMA", "1")]
    shares = np.array([row.validity, row.plausibility])
    truth = np.array([max(0.0, shares.sum() - 1), shares.min()])
    return Key(
        truth,
        f"If the two had nothing to do with each other it would be {shares.prod():.3f}; "
        "that is a guess, and no bound.",
        (
            (np.array([shares.prod()] * 2), "That takes the two to be independent."),
            (
                np.array([0.0, shares.min()]),
                "The two shares overlap: together they are more than everybody.",
            ),
            (np.sort(shares), "Both at once can't be more frequent than either."),
            (truth[::-1], "Both are right, in the other order."),
            (
                np.array([shares.prod(), shares.min()]),
                "The lower bound is the smallest overlap that is possible.",
            ),
        ),
        within=0.0006,
    )


@key("04.4")
def what_the_same_people_pay() -> Key:
    """By what factor the cost grows when income and savings close."""
    four = searched(N_PAY, [True] * 4)
    two = searched(N_PAY, [True, True, False, False])
    x = problem().refused("test")[:N_PAY]
    cost, dearer = problem().cost_of(x, four), problem().cost_of(x, two)
    both = four.has_recourse & two.has_recourse
    before, after = cost[both], dearer[both]
    factor = (after.mean() / before.mean()).item()
    medians = (after.median() / before.median()).item()
    whoever = dearer[two.has_recourse].mean() / cost[four.has_recourse].mean()
    return Key(
        factor,
        f"{int(both.sum())} of {N_PAY} people are helped both times. Over whoever is "
        f"helped the factor is {whoever:.2f}: the dear ones have left that mean.",
        (
            (whoever.item(), "Those are not the same people in both means."),
            ((after / before).mean().item(), "Divide the means, not each person's costs."),
            (medians, "Those are medians. Means are asked for."),
            (
                (after / before).median().item(),
                "That is a median. Divide the means over these people.",
            ),
            (factor - 1, "That is by how much of itself it grows. Give the factor."),
            (1 / factor, "Turn it round: with two over four."),
            (
                (dearer.mean() / cost.mean()).item(),
                "Who has no recourse pays nothing: leave them out.",
            ),
        ),
        within=0.01,
    )


@key("04.5")
def a_vote() -> Key:
    """What the best of ten members for each person adds."""
    x = problem().refused("test")
    preferences = designs.hard_preferences(problem(), len(x), seed=1)["random"]
    networks = icarma.ICarma.load(inside("models"), "loan_icarma_hard", problem())
    x_cf = networks.recommend_each(x, preferences.with_profile(networks.profile)).x_cf
    flow = problem().flow
    good = problem().accepts(x_cf) & (flow.log_prob(x_cf) >= flow.log_prob(x))
    one, any_of_ten = good.float().mean().item(), good.any(0).float().mean().item()
    more = any_of_ten - one
    letter = "A" if more < 0.01 else "B" if more < 0.05 else "C" if more < 0.15 else "D"
    alike = "The members differ in their seeds only, and answer nearly alike."
    hints = {
        "A": "Nearly alike is not alike. Who stands right at a boundary?",
        "B": "Ask all ten, and count who is helped by any.",
        "C": alike,
        "D": f"{alike} Nobody helps where there is no help.",
    }
    return choice(
        letter,
        f"{one:.3f} by one member, {any_of_ten:.3f} by any. To know which, somebody has to "
        "look at all ten answers.",
        hints,
    )


@key("04.6")
def another_reach() -> Key:
    """Which reach of a centred grid helps most people."""
    reaches = (0.1, 0.34, 1.0)
    helped = [searched(N_REACH, [True] * 4, reach).has_recourse for reach in reaches]
    shares = [is_helped.float().mean().item() for is_helped in helped]
    only_short = int((helped[0] & ~helped[2]).sum())
    listed = ", ".join(f"{s:.3f} at {r:g}" for r, s in zip(reaches, shares, strict=True))
    hints = {
        "A": "Fine steps are good for short ways. What of people who have to go far?",
        "B": "Run the three searches and compare.",
        "C": "25 values over a long way: how large is a step?",
    }
    return choice(
        "ABC"[int(np.argmax(shares))],
        f"{listed}. The longest misses {only_short} whom the shortest helps: its values "
        "do not contain the others.",
        hints,
    )
