"""Your own problem."""

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent
from lib.beyond.own_table import checkup, credit_union
from lib.io import DATA, ROOT

LEAKS = [  # a column, and who repaid
    (pd.Series([0, 0, 0, 0, 3, 2, 5, 1]), pd.Series([1, 1, 1, 0, 0, 0, 0, 0])),
    (pd.Series([1, 2, 1, 2, 1, 2, 1, 2]), pd.Series([1, 1, 0, 0, 1, 1, 0, 1])),
    (pd.Series([5, 5, 7, 7, 9, 9]), pd.Series([0, 0, 1, 1, 0, 1])),
]


def table(name: str) -> pd.DataFrame:
    """Return a committed table of notebook 12."""
    return pd.read_csv(ROOT / "tables" / f"12_{name}.csv")


def people() -> pd.DataFrame:
    """Return the past applicants."""
    return pd.read_csv(DATA / "credit_union.csv")


def errors_left(column: pd.Series, repaid: pd.Series) -> float:
    """Return the errors of the commoner answer for each value, over those of one answer."""
    by_value = repaid.groupby(column).mean()
    left = (np.minimum(by_value, 1 - by_value) * column.value_counts()).sum()
    return left / len(repaid) / min(repaid.mean(), 1 - repaid.mean())


@key("12.1")
def how_telling() -> Key:
    """How many errors a column leaves."""
    truth = np.array([errors_left(*case) for case in LEAKS])
    one_answer = np.array([min(y.mean(), 1 - y.mean()) for _, y in LEAKS])
    n_people = np.array([len(y) for _, y in LEAKS])
    repaid = np.array([y.mean() for _, y in LEAKS])
    of_values = [
        np.minimum(by, 1 - by).mean()
        for by in (repaid.groupby(column).mean() for column, repaid in LEAKS)
    ]
    right = np.array([1 - t * e for t, e in zip(truth, one_answer, strict=True)])
    return Key(
        truth,
        "The check objects at 0.15 or less: was such a column written down after the "
        "decision?",
        (
            (
                truth * one_answer,
                "These are shares of the people. Divide by the errors "
                "of one answer for everybody.",
            ),
            (
                truth * one_answer * n_people,
                "These are numbers of errors. Divide by those of one answer for everybody.",
            ),
            (
                truth * one_answer / repaid,
                "One answer for everybody is the commoner one, 0 or 1. Do you always "
                "answer 0?",
            ),
            (
                truth * one_answer / (1 - repaid),
                "One answer for everybody is the commoner one, 0 or 1. Do you always "
                "answer 1?",
            ),
            (
                np.array(of_values) / one_answer,
                "Values count alike in this, and people should: some values are commoner.",
            ),
            (right, "These are shares that are right. Errors are asked for."),
            (1 - truth, "This is what the column removes. What it leaves is asked for."),
        ),
        within=0.005,
        of=applied(LEAKS),
        each="small table",
    )


@key("12.2")
def a_leak_that_follows() -> Key:
    """What becomes of the edges if reminders are a feature."""
    kinds = credit_union.KINDS | {"reminders": "actionable"}
    edges = {**credit_union.EDGES, "reminders": ["repaid"]}
    results = checkup.examine(people(), "repaid", kinds, edges)
    checks = {result.check for result in results if result.verdict != "fine"}
    of_both = {"leaks", "edges"} <= checks
    return choice(
        "B" if of_both else "A",
        "The leak shows in the numbers, the edge in the graph: neither needs the other.",
        {
            "A": "The label is a cause in this graph. Is that allowed?",
            "B": "Run `checkup.examine`, and read the column `verdict`.",
            "C": "Reminders were sent after the loan was paid out. What do they tell?",
            "D": "Run `checkup.examine`, and read the column `verdict`.",
        },
    )


@key("12.3")
def burden() -> Key:
    """The burden of both groups, and its ratio, from its parts."""
    audit = table("audit").set_index(["group", "part"]).estimate
    groups = ("born here", "moved here")
    refused, cost = (
        np.array([audit[group, quantity] for group in groups])
        for quantity in ("refused", "mean cost")
    )
    each = refused * cost
    return Key(
        np.array([*each, each[1] / each[0]]),
        "The refusals raise the ratio; the cost takes a part of it back.",
        (
            (
                [*cost, cost[1] / cost[0]],
                "That is the cost of those who are refused. How "
                "many of a group are refused at all?",
            ),
            (
                [*refused, refused[1] / refused[0]],
                "That counts refusals, and not what they cost.",
            ),
            (
                [*each, each[0] / each[1]],
                "The ratio is the other way round: moved here over born here.",
            ),
        ),
        within=0.0006,
    )


@key("12.4")
def at_the_bound() -> Key:
    """What something to spare gives and takes in the worst world."""
    trust = table("trust")
    trust.columns = ["what", "world", *trust.columns[2:]]
    columns = list(trust.columns[2:])
    here = trust[trust.what == "here"].set_index("world")
    is_both = trust.what == "accepted and plausible"
    worst = trust[is_both & (trust.world != "the true equations")]
    kept = worst[columns].min() * here.loc["helped", columns]
    best = "ABC"[int(kept.to_numpy(float).argmax())]
    shares = ", ".join(f"{share:.3f}" for share in kept)
    return choice(
        best,
        f"Of all refused people {shares} are helped, and stay both in the worst world.",
        {
            "A": "Everybody is helped, and how many stay accepted and plausible?",
            "B": "Multiply: who is helped, times who of them stays both.",
            "C": "Most stay both, and how many were helped at all?",
        },
    )


@key("12.5")
def dearer() -> Key:
    """By what factor something to spare raises the cost."""
    trust = table("trust")
    cost = trust[trust.iloc[:, 1] == "cost"].iloc[0, 2:].astype(float).to_numpy()
    return Key(
        cost[1] / cost[0],
        "And these are not quite the same people: a few are helped at the bound alone.",
        (
            (cost[2] / cost[0], "That is with twice as much to spare."),
            (cost[0] / cost[1], "That is the other way round."),
            (cost[1] - cost[0], "That is a difference. A factor is asked for."),
            (cost[1] / cost[0] - 1, "That is by how much of itself it grows. As a factor?"),
            *as_percent(cost[1] / cost[0] - 1, "In percent it is right. As a factor?"),
        ),
        within=0.01,
    )


@key("12.6")
def pays_back() -> Key:
    """What an action that does not change the chance of repaying would look like."""
    person = people().loc[[0], list(credit_union.KINDS)]
    before = credit_union.chance(person)[0]
    after = credit_union.chance(person.assign(amount=person.amount / 2))[0]
    return Key(
        after - before,
        "In a real table only the label of *past* applicants is known, and not this.",
        (
            (after, "That is the chance afterwards. By how much has it risen?"),
            (before, "That is the chance before. What is it afterwards?"),
            (before - after, "Right but for the sign: it rises."),
            (after / before, "That is a factor. A difference is asked for."),
            (after / before - 1, "That is relative to before. A difference is asked for."),
            *as_percent(after - before, "In percent it is right. As a number below 1?"),
        ),
        within=0.002,
    )
