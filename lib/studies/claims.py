"""The paper's numbers with ours beside them, and its claims as comparisons between rows of
a table: do they hold in the paper's numbers, in ours, in every
seed?
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
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
DATASETS = ("Loan", "GMSC")

# what a row of one person is of
OF_WHOM = ["setting", "method", "member", "seed", "reported"]

METRICS = ("validity", "plausibility", "joint", "hap", "cost_mean", "n_acted")
SEARCHES = ("oracle", "search")  # methods without networks, and so without seeds

Value = Callable[..., float]  # of (metric, setting, method="iCARMA")
Compare = Callable[[Value], dict[str, bool]]


def published(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return the rows of one of the paper's tables, without the lost columns.

    Arguments:
        number: Of the table, a key of `TABLES`.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting and method. The column "setting"
        joins what tells the rows of one method apart, for instance
        "soft, linear".
    Raises: ValueError: the table or the data set is unknown.
    Source: published/, from arXiv:2604.08030.
    Example:
        >>> table = published(1)
        >>> table[table.method == "iCARMA"][["setting", "validity", "plausibility"]].head(2)
           setting  validity  plausibility
        1  all (4)     0.999         0.886
        3        3     0.995         0.689
    """
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("data set", [dataset], DATASETS)
    rows = pd.read_csv(
        PUBLISHED / f"{TABLES[number]}.csv", dtype={"n_individually_actionable": str}
    )
    rows = rows[rows.dataset == dataset].drop(
        columns=["table", "dataset", "cost_mean", "cost_sd", "note"]
    )
    rows.insert(0, "setting", rows[SETTING[number]].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)


def by_member(people: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of each setting, method and member, a row for each.

    Arguments:
        people: Rows as `tables.recommend` and `tables.search` give
            them.
    Returns: Columns setting, method, member, seed, reported, then
        those of `metrics.summarise`.
    Raises: ValueError: there are no rows, columns are missing, or a
        member answers one person twice in a setting, as when rows
        of two stacks are joined under one method.
    Example:
        >>> good = {"has_recourse": True, "valid": True, "plausible": True, "joint": True}
        >>> row = good | {"hard_action": False, "cost": 1.0, "n_acted": 1, "person": 0}
        >>> row |= {"setting": "2", "method": "iCARMA", "seed": 1000, "reported": False}
        >>> people = pd.DataFrame([row | {"member": i} for i in range(2)])  # of one seed
        >>> by_member(people)[["member", "seed", "n_people"]]
           member  seed  n_people
        0       0  1000         1
        1       1  1000         1
    """
    missing = [name for name in [*OF_WHOM, "person"] if name not in people]
    if missing or not len(people):
        raise ValueError(
            f"Expected rows of people with the columns {', '.join(OF_WHOM)} and person, "
            f"got {len(people)} rows without {', '.join(missing) or 'anybody in them'}. "
            "tables.recommend and tables.search make them."
        )
    twice = people.duplicated(["setting", "method", "member", "person"])
    if twice.any():
        first = people[twice].iloc[0]
        raise ValueError(
            f"Member {first.member} of {first.method} answers person {first.person} more "
            f"than once in {first.setting!r}. Were rows of two stacks, or the same rows "
            "twice, joined under one method? Give each stack a method of its own."
        )
    return metrics.summarise(people, OF_WHOM)


def tolerance(number: int, method: str, metric: str, dataset: str = "Loan") -> float:
    """Return how far ours may lie from the paper's number and still count as reached.

    For networks, only the worse side counts.

    Arguments:
        number: Of the table.
        method: For instance "iCARMA" or "oracle".
        metric: One of `METRICS`.
        dataset: "Loan" or "GMSC".
    Raises: ValueError: the table, the metric or the data set is
        unknown.
    Example:
        >>> tolerance(2, "iCARMA", "validity"), tolerance(2, "iCARMA", "hap")
        (0.02, 0.05)
    """
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("metric", [metric], METRICS)
    checks.known("data set", [dataset], DATASETS)
    if dataset == "GMSC":
        return 0.03 if metric == "validity" else 0.05
    if method == "oracle":
        return 0.04
    if number == 1:
        return 0.03
    return 0.02 if metric == "validity" else 0.05


def beside_paper(people: pd.DataFrame, number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return one of the paper's tables with ours beside it.

    Arguments:
        people: Rows as `tables.recommend` gives them, of which one
            member is reported, and as `tables.search` does.
            Settings are named as in `published`.
        number: Of the table.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting, method and metric, with the
        columns

        - table, setting, method, metric;
        - paper, ours (of the reported member), difference;
        - seed_low, seed_high: over all members; empty for a search;
        - standard_error: over the people that the share is of;
        - within: is ours no worse than the paper's by more than the
          `tolerance`? The oracle has nothing to tune and must not
          be better either. Empty where the paper gives no number,
          and for the hap of the constant profile, where nothing
          asks for less.
    Raises: ValueError: the table or the data set is unknown, there
        are no rows, a member answers one person twice, or not
        exactly one member of a method is reported.
    Example:
        >>> good = {"has_recourse": True, "valid": True, "plausible": True, "joint": True}
        >>> row = good | {"hard_action": False, "cost": 1.0, "n_acted": 1}
        >>> row |= {"setting": "2", "method": "iCARMA", "seed": 1000}
        >>> people = pd.DataFrame(
        ...     row | {"member": i, "reported": i == 1, "person": 0, "valid": i > 0}
        ...     for i in range(2)
        ... )
        >>> table = beside_paper(people, number=1).set_index("metric")
        >>> table.loc["validity", ["paper", "ours", "seed_low", "within"]].to_dict()
        {'paper': 0.991, 'ours': 1.0, 'seed_low': 0.0, 'within': True}
    """
    paper = published(number, dataset).set_index(["setting", "method"])
    summary = by_member(people)
    shown = [metric for metric in METRICS if metric != "hap" or "hap" in paper]
    rows = []
    for (setting, method), members in summary.groupby(["setting", "method"], sort=False):
        ours = _reported(members, setting, method)
        for metric in shown:
            printed = np.nan
            if metric in paper and (setting, method) in paper.index:
                printed = paper[metric][setting, method]
            rows.append(
                {
                    "table": str(number) if dataset == "Loan" else f"{number}, {dataset}",
                    "setting": setting,
                    "method": method,
                    "metric": metric,
                    "paper": printed,
                    "ours": ours[metric],
                    "difference": ours[metric] - printed,
                    "seed_low": np.nan if method in SEARCHES else members[metric].min(),
                    "seed_high": np.nan if method in SEARCHES else members[metric].max(),
                    "standard_error": _standard_error(ours, metric),
                    "within": _is_within(
                        printed, ours, metric, tolerance(number, method, metric, dataset)
                    ),
                }
            )
    return pd.DataFrame(rows)


def _reported(members: pd.DataFrame, setting: str, method: str) -> pd.Series:
    """Return the row of the member that is reported in a setting."""
    reported = members[members.reported]
    if len(reported) != 1:
        raise ValueError(
            f"{len(reported)} of {len(members)} members of {method} are reported in "
            f"{setting!r}, expected one. Choose it on validation people, with "
            "tables.best_member, and give its id to tables.recommend as `chosen`."
        )
    return reported.iloc[0]


def _standard_error(ours: pd.Series, metric: str) -> float:
    """Return the standard error of a share, over the people that it is of."""
    if metric in ("cost_mean", "n_acted"):
        return np.nan
    n_people = ours.n_people
    if metric in ("plausibility", "hap"):
        n_people *= ours.has_recourse
    return np.sqrt(ours[metric] * (1 - ours[metric]) / n_people)


def _is_within(printed: float, ours: pd.Series, metric: str, allowed: float) -> bool | None:
    """Return whether ours reaches the printed number; None where that is not asked."""
    if not np.isfinite(printed) or (metric == "hap" and "constant" in ours.setting):
        return None
    worse = ours[metric] - printed if metric == "hap" else printed - ours[metric]
    return bool((abs(worse) if ours.method == "oracle" else worse) <= allowed)


@dataclass
class Verdict:
    """What came of a claim's comparisons.

    Arguments:
        claim: In words.
        paper, ours: Whether each comparison holds, by name, in the
            published numbers and in those of the reported networks.
        seeds: Whether all comparisons hold, for each seed; empty
            for an oracle.
    Example:
        >>> paper = {"linear": True, "convex": True}
        >>> ours = {"linear": True, "convex": False}
        >>> seeds = {1000: True, 2000: False}
        >>> print(Verdict("Lower hap", paper, ours, seeds))
        Lower hap: holds partly. Paper 2 of 2, ours 1 of 2; all of them in 1 of 2 seeds
           not here: convex
    """

    claim: str
    paper: dict[str, bool] = field(default_factory=dict)
    ours: dict[str, bool] = field(default_factory=dict)
    seeds: dict[int, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        held = sum(self.ours.values())
        if held == len(self.ours):
            word = "holds"
        else:
            word = "holds partly" if held else "does not hold here"
        text = (
            f"{self.claim}: {word}. Paper {sum(self.paper.values())} of "
            f"{len(self.paper)}, ours {held} of {len(self.ours)}"
        )
        if self.seeds:
            text += (
                f"; all of them in {sum(self.seeds.values())} of {len(self.seeds)} seeds"
            )
        failed = [f"   not here: {name}" for name, holds in self.ours.items() if not holds]
        return "\n".join([text, *failed])


def check(
    claim: str, tables: Iterable[tuple[int, pd.DataFrame]], compare: Compare
) -> Verdict:
    """Return the verdict on a claim.

    A claim may compare several networks, for instance those of
    different profiles. Of these, the ones with the same seed belong
    together, and are asked together.

    Arguments:
        claim: In words.
        tables: The number of each table that the claim is about,
            with rows as `tables.recommend` and `tables.search` give
            them.
        compare: From value(metric, setting, method="iCARMA") to
            named comparisons. It is asked of the paper's numbers,
            of the reported networks, and of the networks of every
            seed where there are more than the reported ones.
    Returns: Whether each comparison holds, and in which seeds all
        do.
    Raises: ValueError: there is nothing to compare; the paper has
        no such table; a row that is asked for is missing, or stands
        for several networks; a network answers one person twice.
    Example:
        >>> good = {"has_recourse": True, "valid": True, "plausible": True, "joint": True}
        >>> row = good | {"hard_action": False, "cost": 1.0, "n_acted": 1, "person": 0}
        >>> row |= {"method": "iCARMA", "member": 0, "seed": 1000, "reported": True}
        >>> people = pd.DataFrame([row | {"setting": k} for k in ("2", "1")])
        >>> def easier(value):
        ...     return {"two": value("validity", "2") > value("validity", "1")}
        >>> print(check("two features are easier than one", [(1, people)], easier))
        two features are easier than one: does not hold here. Paper 1 of 1, ours 0 of 1
           not here: table 1, two
    """
    verdict = Verdict(claim)
    for number, people in tables:
        verdict.paper |= _ask(compare, published(number), number)
        summary = by_member(people)
        verdict.ours |= _ask(compare, summary[summary.reported], number)
        if not summary.reported.all():
            for seed, rows in summary.groupby("seed"):
                verdict.seeds[int(seed)] = verdict.seeds.get(int(seed), True) and all(
                    _ask(compare, rows, number).values()
                )
    if not verdict.paper:
        raise ValueError(
            f"The claim {claim!r} compares nothing. Give at least one table, with its "
            "number, and at least one named comparison."
        )
    return verdict


def _ask(compare: Compare, rows: pd.DataFrame, number: int) -> dict[str, bool]:
    """Return the named comparisons, asked of rows in which each setting stands once."""

    def value(metric: str, setting: str, method: str = "iCARMA") -> float:
        checks.known(f"metric in table {number}", [metric], list(rows.columns))
        found = rows[(rows.setting == setting) & (rows.method == method)]
        if not len(found):
            known = (rows.setting + " of " + rows.method).unique()
            raise ValueError(
                f"Table {number} has no row {setting!r} of {method}. It has "
                f"{', '.join(known)}."
            )
        if len(found) > 1:
            raise ValueError(
                f"{len(found)} networks of {method} answer in {setting!r} with one seed, "
                "so it is open which of them is meant. Ask each by itself (`stack.select`)"
                ", or give them methods of their own."
            )
        return float(found[metric].iloc[0])

    return {
        f"table {number}, {name}": bool(holds) for name, holds in compare(value).items()
    }
