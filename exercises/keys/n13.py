"""Against the field."""

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from exercises.keys import applied, as_percent
from lib.io import ROOT

TOLD = [  # before, after, and what each person may change
    (
        pd.DataFrame({"age": [30, 40, 50, 60], "income": [1.0, 2.0, 3.0, 4.0]}),
        pd.DataFrame({"age": [30, 41, 50, 60], "income": [2.0, 2.0, 5.0, 4.0]}),
        pd.DataFrame({"age": [False] * 4, "income": [True, True, False, False]}),
    ),
    (
        pd.DataFrame({"debt": [5, 6, 7], "income": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"debt": [4, 5, 7], "income": [2.0, 3.0, 3.0]}),
        pd.DataFrame({"debt": [True, False, False], "income": [False, False, True]}),
    ),
]


def row(package: str, method: str, effort: str = "default") -> pd.Series:
    """Return what is stored of a method on Loan, for all people."""
    table = pd.read_csv(ROOT / "benchmarks" / "rivals.csv")
    keys = ["problem", "people", "package", "method", "effort"]
    return table.set_index(keys).loc[("Loan", "all", package, method, effort)]


@key("13.1")
def random_sampling() -> Key:
    """How many DiCE's random answers help."""
    shares = {"A": 0.05, "B": 0.3, "C": 0.6, "D": 0.95}
    truth = row("dice-ml", "random").carried
    return choice(
        min(shares, key=lambda letter: abs(shares[letter] - truth)),
        f"{truth:.3f}: the bank says yes to nearly all, and most are rarer than before.",
        {
            "A": "Look up the row in the table of section 2, under *helped*.",
            "B": "Is a profile that was drawn evenly over the range likely?",
            "C": "That is what networks reach, which were trained for density.",
            "D": "That is the bank's yes. Helped asks for density, too.",
        },
    )


def share_forbidden(before: pd.DataFrame, after: pd.DataFrame, may: pd.DataFrame) -> float:
    """Return the share of people of whom something forbidden is asked."""
    is_told = before.to_numpy() != after.to_numpy()
    return float((is_told & ~may.to_numpy()).any(axis=1).mean())


@key("13.2")
def forbidden() -> Key:
    """The share of people who are told to change what they may not."""
    truth = np.array([share_forbidden(*case) for case in TOLD])
    moved = [(before != after).to_numpy() for before, after, _ in TOLD]
    closed = [~may.to_numpy() for _, _, may in TOLD]
    values = np.array([(m & c).mean() for m, c in zip(moved, closed, strict=True)])
    numbers = np.array([(m & c).sum() for m, c in zip(moved, closed, strict=True)])
    return Key(
        truth,
        "One forbidden feature is enough, however good the rest of the profile is.",
        (
            (values, "That is a share of the entries. A share of the people is asked for."),
            (numbers, "These are numbers of entries. A share of people is asked for."),
            (1 - truth, "These are the people of whom nothing forbidden is asked."),
            (
                np.array([m.any(axis=1).mean() for m in moved]),
                "That is everybody who is told to change something. Is it closed to them?",
            ),
        ),
        within=0.001,
        of=applied(TOLD),
        each="small table",
    )


@key("13.3")
def more_time() -> Key:
    """What a larger budget does for DiCE's random sampling."""
    gain = row("dice-ml", "random", "budget").carried - row("dice-ml", "random").carried
    return choice(
        "A" if gain > 0.05 else "C" if gain < -0.05 else "B",
        f"The share changes by {gain:+.3f}: more draws find a yes that was found already.",
        {
            "A": "What does it look for longer: a yes, or a likely person?",
            "B": "Compare both efforts in benchmarks/rivals.csv.",
            "C": "Does who looks longer return worse answers here?",
        },
    )


@key("13.4")
def too_rare() -> Key:
    """Of those whom Wachter's answers bring a yes, how many are too rare."""
    wachter = row("ours", "Wachter")
    yes = wachter.carried + wachter["too rare"]
    truth = wachter["too rare"] / yes
    return Key(
        truth,
        "A yes is cheap. What costs is a yes as somebody whom the data knows.",
        (
            (wachter["too rare"], "That is of all who asked. Of those with a yes?"),
            (wachter.carried / yes, "That is the share that is helped. The others?"),
            (
                wachter["too rare"] / wachter.carried,
                "Divide by all with a yes, not by who is helped.",
            ),
            *as_percent(truth, "In percent it is right. As a number below 1?"),
        ),
        within=0.003,
    )
