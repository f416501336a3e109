"""What unlocks a "no"."""

import functools

import numpy as np
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent, problem
from lib.search import continuous
from lib.search.descent import cheapest_within
from lib.search.sets import Table

N_PEOPLE = 120
SLACK = 0.25  # nats


@functools.cache
def table() -> Table:
    """Return what the search finds for the first refused test people."""
    x, truth = problem().refused("test")[:N_PEOPLE], problem().population.truth
    assert truth is not None
    return continuous.Search(problem(), truth).table(x)


def helped(most: int, slack: float) -> float:
    """Return the share helped by at most so many actions, read off the table."""
    is_small = table().sets.sum(-1) <= most
    return (table().gain[:, is_small] >= -slack).any(1).double().mean().item()


STEPS = (  # price, slope and what is lacking
    (np.array([0.03, 0.05, 0.03, 0.04]), np.array([-20.0, -10.0, 60.0, 25.0]), 90.0),
    (np.array([0.03, 0.05, 0.03, 0.04]), np.array([-4.0, 0.0, 0.0, 12.0]), 8.0),
)


@key("08.1")
def one_step() -> Key:
    """A function that returns the cheapest step to a tangent."""

    of_each = applied(STEPS)

    def by_search(price: np.ndarray, slope: np.ndarray, lacking: float) -> np.ndarray:
        slopes, none = torch.from_numpy(slope)[None], torch.zeros(1, 4).double()
        bounds = torch.tensor([[lacking], [-1.0]]).double()
        step = cheapest_within((slopes, none), bounds, torch.from_numpy(price)[None])
        return step[0].numpy()

    return Key(
        of_each(by_search),
        "It goes along slope over price, just as far as the tangent asks.",
        (
            (
                of_each(lambda _, slope, lacking: slope * lacking / (slope**2).sum()),
                "That is the shortest step. The cheapest goes farther where a change "
                "costs less: divide by the price.",
            ),
            (
                of_each(lambda price, slope, _: slope / price),
                "The direction is right. How far along it does the tangent reach?",
            ),
            (
                of_each(
                    lambda price, slope, lacking: (
                        slope * price * lacking / (slope**2 * price).sum()
                    )
                ),
                "That goes farther where a change costs more.",
            ),
            (
                of_each(
                    lambda price, slope, lacking: (
                        -slope / price * lacking / (slope**2 / price).sum()
                    )
                ),
                "The sign: this step makes it lack more.",
            ),
            (
                of_each(lambda *case: np.abs(by_search(*case))),
                "Where the slope is negative, the feature has to fall.",
            ),
            *(
                (
                    of_each(lambda *case, factor=factor: factor * by_search(*case)),
                    "The direction is right. How far along it does the tangent reach?",
                )
                for factor in (0.5, 2.0)
            ),
            (
                of_each(
                    lambda price, slope, lacking: np.where(
                        slope**2 / price == (slope**2 / price).max(),
                        lacking / np.where(slope == 0, 1, slope),
                        0,
                    )
                ),
                "All on one feature is dear, since moves are squared. Share it out.",
            ),
        ),
        within=1e-3,
        of=of_each,
        each="made-up case",
    )


@key("08.2")
def two_things_and_little_slack() -> Key:
    """Whether two actions with slack help more than four without."""
    two, four = helped(2, 2 * SLACK), helped(4, 0.0)
    return choice(
        "A" if two > four + 0.005 else "B" if two < four - 0.005 else "C",
        f"{two:.3f} with two things and {2 * SLACK} nats, {four:.3f} with four and none: a "
        "cap of two loses few people, and slack wins back more.",
        {
            "A": "How many people lose recourse by a cap of two? Section 2.",
            "B": "How near to a yes are those who have none? Section 4.",
            "C": "How many does a cap of two lose, and how many does slack win?",
        },
    )


@key("08.3")
def read_off_the_table() -> Key:
    """The share helped by one thing to do and little slack."""
    share = helped(1, SLACK)
    by_one = table().gain[:, table().sets.sum(-1) == 1] >= -SLACK
    # two mistakes may give the same number: they share a hint
    for_all_or_sign = (
        "Is it one feature for all, or a rise by that much? Each person may take their "
        "own feature, and the log-density may fall by 0.25."
    )
    return Key(
        share,
        f"Without slack it is {helped(1, 0.0):.3f}.",
        (
            (helped(1, 0.0), "That is without slack. What may be given up?"),
            (
                helped(4, SLACK),
                "One thing to do, and 0.25 nats: you leave out one of the two conditions.",
            ),
            (helped(2, SLACK), "That is with one or two things to do."),
            (
                by_one.double().sum(1).mean().item(),
                "Who can be helped by two features is counted twice.",
            ),
            (by_one.double().mean(0).max().item(), for_all_or_sign),
            (1 - share, "That is who has no recourse."),
            (
                by_one.double().mean().item(),
                "That is a share of people and sets. A person needs one set that helps.",
            ),
            (
                (table().gain[:, table().sets.sum(-1) <= 1] >= SLACK)
                .any(1)
                .double()
                .mean()
                .item(),
                for_all_or_sign,
            ),
            (N_PEOPLE * share, "That is how many people. Divide by all of them."),
            *as_percent(share, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.001,
    )


@key("08.4")
def a_second_key() -> Key:
    """Which key frees most of the people who may act on the duration alone."""
    only = torch.tensor([[False, True, False, False]]).expand(N_PEOPLE, -1)
    has_none = table().cheapest(only)[0].isinf()
    freed = table().unlocked_by(only)[has_none].isfinite().sum(0).tolist()
    numbers = {"A": freed[0], "B": freed[2], "C": freed[3]}
    best = max(numbers, key=lambda letter: numbers[letter])
    count = "Count it with `table.unlocked_by`, of those who have no recourse."
    return choice(
        best,
        f"Of {int(has_none.sum())} people without recourse the amount frees {freed[0]}, "
        f"income {freed[2]}, savings {freed[3]}. Savings follow from income.",
        {
            "A": f"The amount moves the duration along. But that is open already. {count}",
            "B": count,
            "C": f"Savings move alone. What moves them along? {count}",
        },
    )


@key("08.5")
def seen_zero_times() -> Key:
    """The largest share that may well be seen zero times in 100."""
    n = 100
    bound = 1 - 0.05 ** (1 / n)
    return Key(
        bound,
        f"(1 - {bound:.3f}) to the power of {n} is 0.05. Nearly 3 / n, the rule of three.",
        (
            (
                1 - 0.95 ** (1 / n),
                "With so small a share zero are seen in 95 of 100 samples. In 5 of 100?",
            ),
            (1 - bound, "That is the share without. How large is the other?"),
            (0.0, "Zero were seen. So would they often be of a share of 1 in 1,000."),
            (0.01, f"With 1 in {n}, zero are seen in more than a third of such samples."),
            (0.05, "That is the chance. Which share leads to it?"),
            (1 - 0.05**n, "The chance of no error in n answers is (1 - p) ** n."),
            *as_percent(bound, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.0005,
    )
