"""Against the field."""

import pandas as pd

from exercises.checking import Key, choice, key, wrong_functions

TABLES = [  # before, after, and what each person may change
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


@key("13.1")
def random_sampling(loan: pd.DataFrame) -> Key:
    """How many DiCE's random answers help."""
    shares = {"A": 0.05, "B": 0.3, "C": 0.6, "D": 0.95}
    truth = loan.loc[("dice-ml", "random", 0), "carried"]
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


@key("13.2", cases=TABLES)
def forbidden() -> Key:
    """The share of people who are told to change what they may not."""
    return Key(
        "One forbidden feature is enough, however good the rest of the profile is.",
        wrong_functions(
            lambda before, after, may, asked, of: of(asked(before != after, may)),
            asked=[
                lambda moved, may: moved & ~may,
                (lambda moved, may: moved, "Is what they change closed to them?"),
            ],
            of=[
                lambda cells: cells.any(axis=1).mean(),
                (lambda cells: cells.to_numpy().mean(), "A share of people, not entries."),
                (lambda cells: cells.any(axis=1).sum(), "That is how many people."),
            ],
        ),
        within=0.001,
        each="small table",
    )


@key("13.3")
def too_rare(wachter: pd.Series, share: float) -> Key:
    """Of those whom Wachter's answers bring a yes, how many are too rare."""
    return Key(
        "A yes is cheap. What costs is a yes as somebody whom the data knows.",
        [
            (wachter["too rare"], "That is of all who asked. Of those with a yes?"),
            (1 - share, "That is the share that is helped. The others?"),
            (wachter["too rare"] / wachter.carried, "Divide by all who have a yes."),
        ],
        within=0.003,
        is_share=True,
    )
