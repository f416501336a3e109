"""What unlocks a "no"."""

import torch

from exercises.checking import Key, choice, key, wrong_ways
from lib.search.sets import Table

SLACK = 0.25  # nats


def helped(table: Table, most: int, least: float) -> float:
    """Return the share helped by at most so many actions, read off the table."""
    is_small = table.sets.sum(1) <= most
    return (table.gain[:, is_small] >= least).any(1).double().mean().item()


@key("08.1")
def read_off_the_table(share: torch.Tensor, table: Table) -> Key:
    """The share helped by one thing to do and little slack."""
    by_one = (table.gain[:, table.sets.sum(1) == 1] >= -SLACK).double()
    # two mistakes may give the same number: they share a hint
    for_all_or_sign = (
        "Is it one feature for all, or a rise by that much? Each person may take their "
        "own feature, and the log-density may fall by 0.25."
    )
    return Key(
        f"Without slack it is {helped(table, 1, 0.0):.3f}.",
        [
            (helped(table, 1, SLACK), for_all_or_sign),
            (by_one.mean(0).max(), for_all_or_sign),
            *wrong_ways(
                lambda most, least: helped(table, most, least),
                most=[
                    1,
                    (2, "That is with one or two things to do."),
                    (4, "That is with all that can be done. One thing is asked for."),
                ],
                least=[-SLACK, (0.0, "That is without slack. What may be given up?")],
            ),
            (by_one.sum(1).mean(), "Who can be helped by two features is counted twice."),
            (1 - share, "That is who has no recourse."),
            (by_one.mean(), "A share of people and sets. A person needs one that helps."),
            (len(by_one) * share, "That is how many people. Divide by all of them."),
        ],
        within=0.001,
        is_share=True,
    )


@key("08.2")
def a_second_key(table: Table) -> Key:
    """Which feature frees most of the people who may act on the duration alone."""
    only = torch.tensor([[False, True, False, False]]).expand(len(table.gain), -1)
    has_none = table.cheapest(only)[0].isinf()
    is_freed = table.unlocked_by(only)[has_none].isfinite()
    amount, _, income, savings = is_freed.sum(0).tolist()
    freed = {"A": amount, "B": income, "C": savings}
    count = "Count it with `table.unlocked_by`, of those who have no recourse."
    return choice(
        max(freed, key=lambda letter: freed[letter]),
        f"Of {int(has_none.sum())} people without recourse the amount frees {amount}, "
        f"income {income}, savings {savings}. Savings follow from income.",
        {
            "A": f"The amount moves the duration along. But that is open already. {count}",
            "B": count,
            "C": f"Savings move alone. What moves them along? {count}",
        },
    )


@key("08.3")
def seen_zero_times(p: float) -> Key:
    """The largest share that may well be seen zero times in 100."""
    n = 100
    return Key(
        f"(1 - {p:.3f}) to the power of {n} is 0.05. Nearly 3 / n, the rule of three.",
        [
            (1 - 0.95 ** (1 / n), "Zero are seen in 95 of 100 samples then. In 5 of 100?"),
            (1 - p, "That is the share without. How large is the other?"),
            (0.0, "Zero were seen. So would they often be of a share of 1 in 1,000."),
            (0.01, f"With 1 in {n}, zero are seen in more than a third of such samples."),
            (0.05, "That is the chance. Which share leads to it?"),
            (1 - 0.05**n, "The chance of no error in n answers is (1 - p) ** n."),
        ],
        within=0.0005,
        is_share=True,
    )
