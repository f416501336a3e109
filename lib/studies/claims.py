"""Claims as comparisons between rows of a table: do they hold in the paper's numbers, in ours, in every seed?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pandas as pd

from lib.base import checks
from lib.base.files import PUBLISHED
from lib.solvers import metrics

# columns that tell the rows of one method apart
SETTING = {
    1: ["n_individually_actionable"],
    2: ["constraints", "cost_profile"],
    3: ["constraints", "cost_profile"],
    5: ["bias", "n_individually_actionable"],
    6: ["distribution", "n_individually_actionable", "plausibility_constraint"],
}
TABLES = {
    1: "icarma_table1",
    2: "icarma_table2",
    3: "icarma_table3",
    5: "icarma_table5",
    6: "icarma_table6",
}

Value = Callable[..., float]


@dataclass
class Verdict:
    """What came of a claim's comparisons.

    Arguments:
        claim: In words.
        paper, ours: Whether each comparison holds, by name, in the published numbers and in those of the reported seed.
        seeds: Whether all comparisons hold, for each seed; empty for an oracle.
    """

    claim: str
    paper: dict[str, bool] = field(default_factory=dict)
    ours: dict[str, bool] = field(default_factory=dict)
    seeds: dict[int, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        held = sum(self.ours.values())
        word = (
            "holds"
            if held == len(self.ours)
            else "holds partly"
            if held
            else "does not hold here"
        )
        text = f"{self.claim}: {word}. Paper {sum(self.paper.values())} of {len(self.paper)}, ours {held} of {len(self.ours)}"
        if self.seeds:
            text += (
                f"; all of them in {sum(self.seeds.values())} of {len(self.seeds)} seeds"
            )
        return "\n".join(
            [
                text,
                *(
                    f"   not here: {name}"
                    for name, is_true in self.ours.items()
                    if not is_true
                ),
            ]
        )


def check(
    claim: str,
    tables: Iterable[tuple[int, pd.DataFrame]],
    compare: Callable[[Value], dict[str, bool]],
) -> Verdict:
    """The verdict on a claim.

    Arguments:
        tables: Number of each table that the claim is about, with rows of `studies.recommend` or `studies.search`.
        compare: From value(metric, setting, method="iCARMA") to named comparisons. It is asked of the paper's numbers,
            of the reported seed, and of every seed where there is more than the reported one.
    """
    verdict = Verdict(claim)
    for number, people in tables:
        summary = metrics.summarise(people, ["setting", "method", "seed", "reported"])
        verdict.paper |= _ask(compare, published(number), number)
        verdict.ours |= _ask(compare, summary[summary.reported], number)
        if not summary.reported.all():
            for seed, rows in summary.groupby("seed"):
                verdict.seeds[int(seed)] = verdict.seeds.get(int(seed), True) and all(
                    _ask(compare, rows, number).values()
                )
    return verdict


def _ask(
    compare: Callable[[Value], dict[str, bool]], rows: pd.DataFrame, number: int
) -> dict[str, bool]:
    rows = rows.set_index(["setting", "method"])
    held = compare(
        lambda metric, setting, method="iCARMA": float(rows.at[(setting, method), metric])
    )
    return {f"table {number}, {name}": bool(is_true) for name, is_true in held.items()}


def published(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Rows of one of the paper's tables for one data set ("Loan" or "GMSC"), without the lost columns.

    The column "setting" joins what tells the rows of one method apart, for instance "soft, linear".
    """
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("data set", [dataset], ("Loan", "GMSC"))
    rows = pd.read_csv(
        PUBLISHED / f"{TABLES[number]}.csv", dtype={"n_individually_actionable": str}
    )
    rows = rows[rows.dataset == dataset].drop(
        columns=["table", "dataset", "cost_mean", "cost_sd", "note"]
    )
    rows.insert(0, "setting", rows[SETTING[number]].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)
