"""Your own problem."""

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key, wrong_functions
from lib.beyond.own_table import checkup

TABLES = [  # a column, and who repaid
    (pd.Series([0, 0, 0, 0, 3, 2, 5, 1]), pd.Series([1, 1, 1, 0, 0, 0, 0, 0])),
    (pd.Series([1, 2, 1, 2, 1, 2, 1, 2]), pd.Series([1, 1, 0, 0, 1, 1, 0, 1])),
    (pd.Series([5, 5, 7, 7, 9, 9]), pd.Series([0, 0, 1, 1, 0, 1])),
]


@key("12.1", cases=TABLES)
def how_telling() -> Key:
    """How many errors a column leaves."""

    def of_values(column: pd.Series, repaid: pd.Series) -> float:
        share = repaid.groupby(column).mean()
        return len(repaid) * float(np.minimum(share, 1 - share).mean())

    def of_people(column: pd.Series, repaid: pd.Series) -> float:
        share = repaid.groupby(column).transform("mean")
        return float(np.minimum(share, 1 - share).sum())

    divide = "Divide by the errors of one answer for everybody."
    commoner = "One answer for everybody is the commoner one, not always {}."
    return Key(
        "The check objects at 0.15 or less: was such a column written down after the "
        "decision?",
        wrong_functions(
            lambda column, repaid, left, by, form: form(left(column, repaid) / by(repaid)),
            left=[
                of_people,
                (of_values, "Values count alike in this, and people should."),
                (lambda *case: len(case[1]) - of_people(*case), "Errors are asked for."),
            ],
            by=[
                lambda repaid: min(repaid.sum(), (1 - repaid).sum()),
                (len, f"These are shares of the people. {divide}"),
                (lambda repaid: 1, f"These are numbers of errors. {divide}"),
                (lambda repaid: repaid.sum(), commoner.format(0)),
                (lambda repaid: (1 - repaid).sum(), commoner.format(1)),
            ],
            form=[
                lambda share: share,
                (lambda share: 1 - share, "What the column leaves is asked for."),
            ],
        ),
        within=0.005,
        each="small table",
    )


@key("12.2")
def a_leak_that_follows(
    frame: pd.DataFrame, kinds: dict[str, str], edges: dict[str, list[str]]
) -> Key:
    """What becomes of the edges if reminders are a feature."""
    kinds = kinds | {"reminders": "actionable"}
    edges = edges | {"reminders": ["repaid"]}
    results = checkup.examine(frame, "repaid", kinds, edges)
    checks = {result.check for result in results if result.verdict != "fine"}
    letters = {(True, False): "A", (True, True): "B", (False, True): "C"}
    return choice(
        letters.get(("leaks" in checks, "edges" in checks), "D"),
        "The leak shows in the numbers, the edge in the graph: neither needs the other.",
        {
            "A": "The label is a cause in this graph. Is that allowed?",
            "BD": "Run `checkup.examine`, and read the column `verdict`.",
            "C": "Reminders were sent after the loan was paid out. What do they tell?",
        },
    )


@key("12.3")
def pays_back(before: float, after: float) -> Key:
    """By how much the true chance of repaying rises."""
    return Key(
        "In a real table only the label of *past* applicants is known, and not this.",
        [
            (after, "That is the chance afterwards. By how much has it risen?"),
            (before, "That is the chance before. What is it afterwards?"),
            (before - after, "Right but for the sign: it rises."),
            (after / before, "That is a factor. A difference is asked for."),
            (after / before - 1, "That is relative to before. A difference is asked for."),
        ],
        within=0.002,
        is_share=True,
    )
