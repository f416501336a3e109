"""The search over all values, and what unlocks recourse."""

import functools
from collections.abc import Callable

import numpy as np
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, problem
from lib.solvers import continuous
from lib.solvers.descent import cheapest_within
from lib.solvers.sets import Table
from lib.studies import estimates

N_PEOPLE = 120
SLACK = 0.25  # nats


@functools.cache
def table() -> Table:
    """Return what the search finds for the first refused test people."""
    x, truth = problem().refused("test")[:N_PEOPLE], problem().population.truth
    assert truth is not None
    return continuous.search(problem(), truth, x)


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
        found = cheapest_within((slopes, none), bounds, torch.from_numpy(price)[None])
        return found[0].numpy()

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
        ),
        within=1e-3,
        of=of_each,
    )


@key("08.2")
def two_things_and_little_slack() -> Key:
    """Whether two actions with slack help more than four without."""
    two, four = helped(2, SLACK), helped(4, 0.0)
    return choice(
        "A" if two > four + 0.005 else "B" if two < four - 0.005 else "C",
        f"{two:.3f} with two things and {SLACK} nats, {four:.3f} with four and none: a "
        "cap of two loses few people, and many a no is a close call.",
        {
            "A": "How many people lose recourse by a cap of two? Section 6.",
            "B": "How near to a yes are those who have none? Section 9.",
            "C": "How many does a cap of two lose, and how many does slack win?",
        },
    )


@key("08.3")
def read_off_the_table() -> Key:
    """The share helped by one thing to do and little slack."""
    share = helped(1, SLACK)
    return Key(
        share,
        f"Without slack it is {helped(1, 0.0):.3f}.",
        (
            (helped(1, 0.0), "That is without slack. What may be given up?"),
            (helped(4, SLACK), "That is with any number of things to do."),
            (
                (table().gain[:, table().sets.sum(-1) <= 1] >= -SLACK)
                .double()
                .mean()
                .item(),
                "That is a share of people and sets. A person needs one set that helps.",
            ),
            (
                (table().gain[:, table().sets.sum(-1) <= 1] >= SLACK)
                .any(1)
                .double()
                .mean()
                .item(),
                "The sign: here the log-density has to rise by that much.",
            ),
            (N_PEOPLE * share, "That is how many people. Divide by all of them."),
        ),
        within=0.001,
    )


@key("08.4")
def a_second_key() -> Key:
    """Which key frees most of the people who may act on income alone."""
    only = torch.tensor([[False, False, True, False]]).expand(N_PEOPLE, -1)
    has_none = table().cheapest(only)[0].isinf()
    freed = table().unlocked_by(only)[has_none].isfinite().sum(0).tolist()
    numbers = {"A": freed[0], "B": freed[1], "C": freed[3]}
    best = max(numbers, key=lambda letter: numbers[letter])
    hint = "Count it: `table.unlocked_by(only_income)`, of those who have no recourse."
    return choice(
        best,
        f"Of {int(has_none.sum())} people without recourse the amount frees {freed[0]}, "
        f"the duration {freed[1]}, savings {freed[3]}. Savings follow from income "
        "already.",
        dict.fromkeys("ABC", hint),
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
            (0.0, "Zero were seen. So would they often be of a share of 1 in 1,000."),
            (0.01, f"With 1 in {n}, zero are seen in more than a third of such samples."),
            (0.05, "That is the chance. Which share leads to it?"),
            (1 - 0.05**n, "The chance of no error in n answers is (1 - p) ** n."),
            (100 * bound, "A share between 0 and 1 is asked for, no percent."),
        ),
        within=0.0006,
    )


def two_solvers() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return whom two made-up solvers help, in two cases: nearly the same people."""
    rng, cases = np.random.default_rng(0), []
    for n, share in ((200, 0.7), (80, 0.4)):
        first = rng.random(n) < share
        second = first & (rng.random(n) < 0.9)
        cases.append((first.astype(float), second.astype(float)))
    return cases


@key("08.6")
def paired() -> Key:
    """A function that returns a paired difference and its standard error."""
    of_each = applied(two_solvers())

    def error(first: np.ndarray, second: np.ndarray) -> float:
        return estimates.ratio(first - second).se_people

    def alone(first: np.ndarray, second: np.ndarray) -> float:
        return float(np.sqrt((first.var() + second.var()) / len(first)))

    def with_error(how: Callable[[np.ndarray, np.ndarray], float]) -> np.ndarray:
        return of_each(lambda first, second: ((first - second).mean(), how(first, second)))

    return Key(
        with_error(error),
        f"{error(*two_solvers()[0]):.3f} in one made-up case; as if the two had been asked "
        f"about different people it would be {alone(*two_solvers()[0]):.3f}.",
        (
            (
                with_error(alone),
                "That is for two samples of different people. Here they are the same: "
                "take the difference of each person first.",
            ),
            (
                with_error(lambda first, second: (first - second).std()),
                "That is the standard deviation over people. And of their mean?",
            ),
            (
                with_error(lambda first, second: 2 * error(first, second)),
                "One standard error is asked for, not two.",
            ),
            (
                with_error(error) * [-1, 1],
                "The sign: the first less the second.",
            ),
        ),
        within=0.001,
        of=of_each,
    )
