"""The paper's numbers with ours beside them, and what its claims come to.

An `Estimate` is a mean over networks with an interval: `ratio` and
`contrast` make it from rows of people. `beside_paper` sets estimates
beside the paper's tables, cell by cell. `Verdicts` collects what its
claims say of such numbers, and whether that holds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from lib import checks, io
from lib.io import PUBLISHED

STANDARD_ERRORS = 2.0  # on either side; about 95 % of a normal distribution


@dataclass(frozen=True)
class Estimate:
    """Hold a mean over members, with what other people and other networks may change.

    Arguments:
        value: Mean over the members.
        lowest, highest: Of the members.
        se_people: Standard error over people. The same people are
            asked by all members, so it does not shrink with their
            number.
        se_networks: Standard error over networks, the standard
            deviation of the M members divided by the root of M; NaN
            for a search and for a single network.
    Example:
        >>> rise = Estimate(0.30, 0.1, 0.5, se_people=0.03, se_networks=0.04)
        >>> round(rise.standard_error, 3), round(rise.low, 3), round(rise.high, 3)
        (0.05, 0.2, 0.4)
    """

    value: float
    lowest: float
    highest: float
    se_people: float
    se_networks: float = np.nan

    @property
    def standard_error(self) -> float:
        """Of both sources together, the root of the sum of squares."""
        return float(np.hypot(self.se_people, np.nan_to_num(self.se_networks)))

    @property
    def low(self) -> float:
        """Lower end of the interval of two standard errors on either side."""
        return self.value - STANDARD_ERRORS * self.standard_error

    @property
    def high(self) -> float:
        """Upper end of the interval of two standard errors on either side."""
        return self.value + STANDARD_ERRORS * self.standard_error

    def lies(self, above: float = -np.inf, below: float = np.inf) -> str:
        """Return whether the value lies in a range: holds, does not hold, or undecided.

        "holds" and "does not hold" are said of the whole interval; if
        it reaches over an end of the range, the data do not decide.

        Example:
            >>> rise = Estimate(0.3, 0.3, 0.3, se_people=0.05)
            >>> rise.lies(above=0), rise.lies(below=0.1), rise.lies(above=0.25)
            ('holds', 'does not hold', 'undecided')
        """
        if not np.isfinite(self.standard_error + self.value):
            return "undecided"
        if above <= self.low and self.high <= below:
            return "holds"
        return "does not hold" if self.high < above or self.low > below else "undecided"


def ratio(numerator: np.ndarray, denominator: np.ndarray | None = None) -> Estimate:
    r"""Estimate a ratio of two sums over people, and its mean over networks.

    .. math:: r = \frac1M \sum_m r_m, \qquad
        r_m = \frac{\sum_i \text{numerator}_{mi}}{\sum_i \text{denominator}_{mi}}

    The denominator of a share of all people is one for everybody. In
    a share or a mean of some people, numerator and denominator are
    zero for the others. A ratio of two mean costs of the same people
    has the costs themselves.

    The standard error over people is that of the linearised ratio: a
    person counts once, with the mean over the members of
    (numerator - r_m denominator) / mean(denominator). For a share of
    one member it is the binomial one.

    Arguments:
        numerator, denominator: With shape (M, N), or (N,) for a
            search. A denominator left out is one for everybody.
    Raises: ValueError: the shapes differ, or there is nobody.
    Source: Cochran, Sampling Techniques, chapter 6.
    Example:
        Two networks and four people, of whom they help two and three:

        >>> helped = np.array([[1, 1, 0, 0], [1, 1, 1, 0]])
        >>> share = ratio(helped)
        >>> share.value, share.lowest, round(share.se_networks, 4)
        (0.625, 0.5, 0.125)

        One in four of one network's people, binomial:

        >>> ratio(np.array([1, 0, 0, 0])).se_people, (0.25 * 0.75 / 4) ** 0.5
        (0.21650635094610965, 0.21650635094610965)
    """
    return contrast((1.0, numerator, denominator))


def contrast(*terms: tuple[float, np.ndarray, np.ndarray | None]) -> Estimate:
    r"""Estimate a weighted sum of ratios of the same people.

    .. math:: \sum_k c_k \, r_k, \qquad r_k \text{ as in `ratio`}

    With coefficients 1 and -1 it is the difference of two shares that
    are of different people among those asked, for instance of all who
    are recommended something by one network and by another. Members
    are set beside each other in their order, as those of one seed;
    where one ratio has more than another, the last are left out.
    Where they are not the same networks this is one of many pairs of
    independent draws, and the error holds all the same.

    Arguments:
        terms: A coefficient c_k, numerator and denominator for each
            ratio, as for `ratio`; of the same N people. A search, or
            a single member, is set beside every member of the others.
    Raises: ValueError: there is no term, the shapes of numerator and
        denominator differ, so do the numbers of people, or there is
        nobody.
    Example:
        Two of four people by one solver, one of the three whom another
        answers:

        >>> valid, fewer = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])
        >>> answered = np.array([1, 1, 1, 0])
        >>> round(contrast((1.0, valid, None), (-1.0, fewer, answered)).value, 3)
        0.167
    """
    if not terms:
        raise ValueError("Expected at least one ratio, got none.")
    parts = [_linearised(numerator, denominator) for _, numerator, denominator in terms]
    n_people = {moves.shape[1] for _, moves in parts}
    if len(n_people) > 1:
        raise ValueError(
            f"The ratios are of {' and '.join(map(str, sorted(n_people)))} people: "
            "expected the same people for all. For others, see `difference`."
        )
    n_members = min((len(ratios) for ratios, _ in parts if len(ratios) > 1), default=1)
    by_member, moved = np.zeros(n_members), np.zeros(parts[0][1].shape[1])
    for (coefficient, *_), (ratios, moves) in zip(terms, parts, strict=True):
        by_member = by_member + coefficient * ratios[:n_members]
        moved = moved + coefficient * moves[:n_members].mean(0)
    se_people = float(np.sqrt((moved**2).sum()) / len(moved))
    return _over_members(by_member, se_people)


def _linearised(
    numerator: np.ndarray, denominator: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios of M members, and what each person moves them by, (M, N)."""
    numerator = np.atleast_2d(np.asarray(numerator, dtype=float))
    base = (
        np.ones_like(numerator)
        if denominator is None
        else np.asarray(denominator, dtype=float)
    )
    base = np.atleast_2d(base)
    if numerator.shape != base.shape or numerator.size == 0:
        raise ValueError(
            f"The numerator has shape {numerator.shape} and the denominator {base.shape}: "
            "expected the same, (M, N) for M networks and N people, with at least one of "
            "each."
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = numerator.sum(1) / base.sum(1)  # NaN where a member counts nobody
        moves = (numerator - ratios[:, None] * base) / base.mean(1, keepdims=True)
    return ratios, moves


def difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Estimate how much higher the mean of the first people is than that of others.

    The people differ, the networks are the same: a network's own
    difference is taken before the mean over networks.

    Arguments:
        first, second: Of M networks each, with shapes (M, N) and (M,
            N').
    Raises: ValueError: the numbers of networks differ, or there is
        nobody.
    Example:
        >>> new, seen = np.array([[1, 0], [1, 1]]), np.array([[1, 1, 0], [1, 1, 1]])
        >>> round(difference(new, seen).value, 3)
        -0.083
    """
    new, old = ratio(first), ratio(second)
    if len(np.atleast_2d(first)) != len(np.atleast_2d(second)):
        raise ValueError(
            f"first is of {len(np.atleast_2d(first))} networks and second of "
            f"{len(np.atleast_2d(second))}: expected answers of the same networks."
        )
    by_member = np.atleast_2d(first).mean(1) - np.atleast_2d(second).mean(1)
    return _over_members(by_member, float(np.hypot(new.se_people, old.se_people)))


def _over_members(values: np.ndarray, se_people: float) -> Estimate:
    """Return the mean of the values of M members, of whom a single one has no spread."""
    n_members, se_networks = len(values), np.nan
    if n_members > 1:
        se_networks = float(values.std(ddof=1) / np.sqrt(n_members))
    return Estimate(
        float(values.mean()),
        float(values.min()),
        float(values.max()),
        se_people,
        se_networks,
    )


def by_person(rows: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column of rows of people with shape (M, N), a row a member.

    Arguments:
        rows: Of one setting and method, as `tables.evaluate` gives them.
        column: Of numbers or of true and false.
    Raises: ValueError: a member answers a person twice, or the members
        answer different people.
    Example:
        >>> rows = pd.DataFrame({"member": [0, 0, 1, 1], "person": [0, 1, 1, 0]})
        >>> by_person(rows.assign(cost=[0.1, 0.2, 0.3, 0.4]), "cost")
        array([[0.1, 0.2],
               [0.4, 0.3]])
    """
    table = rows.pivot(index="member", columns="person", values=column).astype(float)
    if table.isna().to_numpy().any() and not rows[column].isna().any():
        raise ValueError(
            f"The members answer different people in the column {column!r}, so they "
            "can't be set side by side. Give the rows of one setting and method."
        )
    return table.to_numpy()


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
OF_WHOM = ["setting", "method", "networks", "member", "seed", "reported"]

# of which column of `metrics.per_person` each metric is the mean, and over which people;
# None: over all. `metrics.summarise` says why.
MEAN_OF: dict[str, tuple[str, str | None]] = {
    "validity": ("valid", None),
    "plausibility": ("plausible", "has_recourse"),
    "joint": ("joint", None),
    "hap": ("hard_action", "has_recourse"),
    "cost_mean": ("cost", "valid"),
    "n_acted": ("n_acted", "has_recourse"),
}
METRICS = tuple(MEAN_OF)
SEARCHES = ("oracle", "search")  # methods without networks, and so without seeds

# how far one network of the paper lies from the mean of its kind, as a standard deviation:
# that of the three numbers that it prints for one quantity
ONE_NETWORK = 0.011
CLOSE = 0.05  # cells that differ by no more count as near

# the cells that `workflow/calibrate.py` used, and those that repeat them, by table,
# method and metric; params/calibration.yaml says which are which
_BOTH = ("soft", "hard (random) + soft")
_PROFILES = ("constant", "concave", "linear", "convex")
DECLARED: dict[tuple[int, str, str], tuple[str, ...]] = {
    (1, "oracle", "validity"): ("all (4)", "3", "2", "1", "random"),
    (1, "iCARMA", "validity"): ("random",),
    (1, "iCARMA", "plausibility"): ("random",),
    (2, "oracle", "validity"): tuple(f"{s}, {p}" for s in _BOTH for p in _PROFILES),
    (2, "oracle", "hap"): tuple(f"soft, {p}" for p in _PROFILES),
    (2, "iCARMA", "validity"): ("soft, linear", "hard (random) + soft, constant"),
    (2, "iCARMA", "plausibility"): ("soft, linear", "hard (random) + soft, constant"),
    (2, "iCARMA", "hap"): ("soft, linear",),
    (5, "oracle", "validity"): (
        "causal order aligned, all (4)",
        "reverse causal order aligned, all (4)",
    ),
    (6, "oracle", "validity"): tuple(
        f"uniform random, {k}, {demand}" for k in (1, 2) for demand in ("No", "Yes")
    ),
    (6, "oracle", "plausibility"): ("uniform random, 1, No", "uniform random, 2, No"),
}


def published(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return the rows of one of the paper's tables, without the lost columns.

    Arguments:
        number: Of the table, a key of `TABLES`.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting and method. The column "setting"
        joins what tells the rows of one method apart, for instance
        "soft, linear".
    Raises: ValueError: the table or the data set is unknown.
    Source: data/published/, from arXiv:2604.08030.
    """
    checks.one_of("table of the paper", [number], tuple(TABLES))
    checks.one_of("data set", [dataset], DATASETS)
    rows = io.read_csv(
        PUBLISHED / f"{TABLES[number]}.csv", dtype={"n_individually_actionable": str}
    )
    rows = rows[rows.dataset == dataset].drop(
        columns=["table", "dataset", "cost_mean", "cost_sd", "note"]
    )
    rows.insert(0, "setting", rows[SETTING[number]].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)


def _check_rows(people: pd.DataFrame) -> None:
    """Raise ValueError unless there are rows, and a member answers a person once."""
    missing = [name for name in [*OF_WHOM, "person"] if name not in people]
    if missing or not len(people):
        raise ValueError(
            f"Expected rows of people with the columns {', '.join(OF_WHOM)} and person, "
            f"got {len(people)} rows without {', '.join(missing) or 'anybody in them'}. "
            "tables.evaluate makes them."
        )
    twice = people.duplicated(["setting", "method", "networks", "member", "person"])
    if twice.any():
        first = people[twice].iloc[0]
        raise ValueError(
            f"Member {first.member} of {first.method} answers person {first.person} more "
            f"than once in {first.setting!r}. Were rows of two ensembles, or the same "
            "rows twice, joined under one method? Give each ensemble another method."
        )


def estimate(people: pd.DataFrame, metric: str) -> Estimate:
    """Return a metric's mean over the members of one setting, and how sure it is.

    Arguments:
        people: Rows of one setting and method, as `tables.evaluate` gives them.
        metric: One of `METRICS`.
    Raises: ValueError: the metric is unknown, a member answers one
        person twice, or members answer different people.
    """
    return ratio(*sums(people, metric))


def sums(people: pd.DataFrame, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what a metric is the ratio of: two arrays with shape (M, N), for M members.

    `ratio` and `contrast` take them.

    Arguments:
        people: Rows of one setting and method, as `tables.evaluate` gives them.
        metric: One of `METRICS`.
    Returns: Numerator and denominator; zero, in both, for people who
        do not count.
    Raises: ValueError: as for `estimate`.
    Example:
        Nothing is recommended to the second person, who does not
        count:

        >>> rows = pd.DataFrame({"member": 0, "person": [0, 1]})
        >>> rows = rows.assign(hard_action=[True, False], has_recourse=[True, False])
        >>> numerator, denominator = sums(rows, "hap")
        >>> numerator.tolist(), denominator.tolist()
        ([[1.0, 0.0]], [[1.0, 0.0]])
    """
    checks.one_of("metric", [metric], METRICS)
    column, base = MEAN_OF[metric]
    values = by_person(people, column)
    counted = np.ones_like(values) if base is None else by_person(people, base)
    return values * counted, counted


def beside_paper(people: pd.DataFrame, number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Return one of the paper's tables with ours beside it, both ways and with errors.

    What is compared is the *mean over seeds*: it says what the method
    gives, whichever network one happens to have. The member that
    validation chose stands beside it, as the paper reports one model.
    A difference in either direction counts, by the same rule for
    every method, setting and metric:

    agrees: |mean - paper| <= 2 standard errors, where the squares
    of three standard errors are added up [R]:

    - se_people, of ours over people (`ratio`);
    - se_networks, of ours over seeds: standard deviation of the M
      members over the root of M; empty for a search;
    - se_paper, of the paper's number. The paper gives none. It asked
      another draw of people than ours, so ours is the binomial one
      for as many people as we ask; where the number is of one
      network, with `ONE_NETWORK`.

    Arguments:
        people: Rows as `tables.evaluate` gives them: of networks, of
            which one member a set is reported, and of a search.
            Settings are named as in `published`.
        number: Of the table.
        dataset: "Loan" or "GMSC".
    Returns: A row for each setting, method, set of networks and
        metric, with the columns

        - table, setting, method, networks, metric;
        - calibration: whether the cell, or one that it repeats, was
          used to choose what the text has lost (`DECLARED`);
        - paper, empty where it gives no number;
        - mean, lowest, highest: of our members; lowest and highest
          are empty for a search;
        - reported: of the member that validation chose;
        - difference: mean less paper;
        - se_people, se_networks, se_paper; agrees.
    Raises: ValueError: the table or the data set is unknown, there
        are no rows, a member answers one person twice, or not
        exactly one member of a set is reported.
    """
    paper = published(number, dataset).set_index(["setting", "method"])
    _check_rows(people)
    shown = [metric for metric in METRICS if metric != "hap" or "hap" in paper]
    rows = []
    by = ["setting", "method", "networks"]
    for (setting, method, networks), group in people.groupby(by, sort=False):
        of_reported = group[group.member == _reported(group)]
        for metric in shown:
            printed = np.nan
            if metric in paper and (setting, method) in paper.index:
                printed = paper[metric][setting, method]
            declared = DECLARED.get((number, method, metric), ())
            rows.append(
                {
                    "table": str(number) if dataset == "Loan" else f"{number}, {dataset}",
                    "setting": setting,
                    "method": method,
                    "networks": networks,
                    "metric": metric,
                    "calibration": dataset == "Loan" and setting in declared,
                }
                | _compared(group, of_reported, metric, printed)
            )
    return pd.DataFrame(rows)


def printed_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `beside_paper` where the paper has a number that could differ.

    The plausibility of a search that demands it is 1 in both.
    """
    is_demanded = (table.method == "oracle") & (table.metric == "plausibility")
    return table[table.paper.notna() & ~(is_demanded & (table.paper == 1))]


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's cells with ours beside them, a row a setting, as text.

    A dagger marks cells that were used for calibration.

    Arguments:
        table: Of `beside_paper`.
    Returns: Columns by metric, method and who: the paper, then the
        search or each set of networks.
    """
    cells = printed_cells(table)
    three = ["metric", "method", "who"]
    who = cells.networks.where(cells.networks != "", "ours")
    ours = cells.assign(who=who, text=cells["mean"].map("{:.3f}".format))
    marks = np.where(cells.calibration, "†", "")
    theirs = cells.assign(who="paper", text=cells.paper.map("{:.3f}".format) + marks)
    parts = pd.concat([theirs.drop_duplicates(["setting", *three]), ours])
    table = parts.pivot(index="setting", columns=three, values="text")
    order = parts.sort_values(["metric", "method"], ascending=False, kind="stable")
    columns = list(dict.fromkeys(order[three].itertuples(index=False, name=None)))
    return table.loc[list(dict.fromkeys(cells.setting)), columns].fillna("")


def agreement(table: pd.DataFrame) -> pd.DataFrame:
    """Return how near ours are to the paper's, a row a table and set of networks.

    Arguments:
        table: Of `beside_paper`, several below each other too.
    Returns: By table and who answers (the method, and which
        networks): how many cells the paper prints that could differ;
        of those that were not used for calibration: how many, their
        mean |difference|, the share within `CLOSE`, and how many
        agree; and the mean |difference| of all.
    """
    cells = printed_cells(table)
    who = cells.method.where(cells.networks == "", cells.networks)
    rows = {}
    for key, group in cells.groupby([cells.table, who.rename("who")], sort=False):
        free = group[~group.calibration]
        off = free.difference.abs()
        rows[key] = {
            "cells": len(group),
            "without dagger": len(free),
            "mean |difference|": off.mean(),
            f"within {CLOSE:g}": (off <= CLOSE).mean(),
            "agree": int(free.agrees.sum()),
            "all cells: mean |difference|": group.difference.abs().mean(),
        }
    index = pd.MultiIndex.from_tuples(rows, names=["table", "who"])
    return pd.DataFrame([*rows.values()], index=index)


def _compared(
    people: pd.DataFrame, of_reported: pd.DataFrame, metric: str, printed: float
) -> dict[str, float | bool | None]:
    """Return the printed number and ours, in the columns of `beside_paper`."""
    ours, method = estimate(people, metric), people.method.iloc[0]
    difference = ours.value - printed
    se_paper = np.nan
    if np.isfinite(printed):
        _, base = MEAN_OF[metric]
        n_members = people.member.nunique()
        n_people = (len(people) if base is None else people[base].sum()) / n_members
        se_paper = np.sqrt(printed * (1 - printed) / n_people) if n_people else np.nan
        if method not in SEARCHES:
            se_paper = np.hypot(se_paper, ONE_NETWORK)
    error = np.hypot(ours.standard_error, se_paper)
    return {
        "paper": printed,
        "mean": ours.value,
        "lowest": np.nan if method in SEARCHES else ours.lowest,
        "highest": np.nan if method in SEARCHES else ours.highest,
        "reported": estimate(of_reported, metric).value,
        "difference": difference,
        "se_people": ours.se_people,
        "se_networks": ours.se_networks,
        "se_paper": se_paper,
        "agrees": bool(abs(difference) <= STANDARD_ERRORS * error)
        if np.isfinite(difference)
        else None,
    }


def _reported(people: pd.DataFrame) -> int:
    """Return the member that is reported in a setting."""
    reported = people[people.reported].member.unique()
    if len(reported) != 1:
        raise ValueError(
            f"{len(reported)} of {people.member.nunique()} members of "
            f"{people.method.iloc[0]} are reported in {people.setting.iloc[0]!r}, "
            "expected one: the best_index of the ensemble."
        )
    return reported[0]


CANNOT = "cannot be asked"  # of the paper, where it prints no number
TIE = "a tie"  # of the paper, where its two numbers are as far apart as the claim's bound


@dataclass
class Verdicts:
    """Collect the parts of claims and what came of them.

    Arguments:
        parts: A row each: section, claim, who (answers: a search, or
            which networks), what, paper (its number), in the paper,
            ours, low, high, members (lowest to highest), here.
    Example:
        >>> verdicts = Verdicts()
        >>> rise = Estimate(0.3, 0.3, 0.3, se_people=0.05)
        >>> verdicts.ask("5.4: hap rises", "search", "linear", rise, above=0, paper=-0.1)
        >>> verdicts.of("5.4: hap rises")[["in the paper", "here"]].to_numpy().tolist()
        [['does not hold', 'holds']]
    """

    parts: list[dict[str, str | float]] = field(default_factory=list)

    def ask(
        self,
        claim: str,
        who: str,
        what: str,
        ours: Estimate,
        above: float = -np.inf,
        below: float = np.inf,
        paper: float = np.nan,
    ) -> None:
        """Note one part of a claim: does our interval, and the paper's number, lie there?

        Arguments:
            claim: The section of the paper, a colon, and a phrase.
            who: Answers people.
            what: Name of the part.
            ours: Our number, with its interval.
            above, below: Ends of the range that the claim names.
            paper: The paper's number; NaN: it prints none.
        Raises: ValueError: the claim names no section, or has this
            part already.
        """
        section, colon, phrase = claim.partition(": ")
        if not colon:
            raise ValueError(
                f"Expected a section and a phrase, as in '5.4: hap rises', got {claim!r}."
            )
        named: dict[str, str | float] = {
            "section": section,
            "claim": phrase,
            "who": who,
            "what": what,
        }
        if any(named.items() <= row.items() for row in self.parts):
            raise ValueError(
                f"The claim {claim!r} has a part {what!r} of {who!r} already. Was a cell "
                "run twice? Run the notebook from the top."
            )
        by_paper = CANNOT
        if np.isfinite(paper):
            by_paper = "holds" if above <= paper <= below else "does not hold"
            if paper in (above, below):
                by_paper = TIE
        has_members = ours.se_networks > 0
        members = f"{ours.lowest:.3f} to {ours.highest:.3f}" if has_members else ""
        self.parts.append(
            named
            | {
                "paper": paper,
                "in the paper": by_paper,
                "ours": ours.value,
                "low": ours.low,
                "high": ours.high,
                "members": members,
                "here": ours.lies(above, below),
            }
        )

    def of(self, *claims: str) -> pd.DataFrame:
        """Return the parts of one claim or of several, rounded, a row each.

        Columns that the paper fills are left out where it was not
        asked, and the range over members where there is none.

        Arguments:
            claims: As they were asked.
        Raises: ValueError: one of them was not asked.
        """
        rows = pd.DataFrame(self.parts)
        asked = rows.section + ": " + rows.claim if len(rows) else rows
        checks.one_of("claim", claims, tuple(dict.fromkeys(asked)))
        rows = rows[asked.isin(claims)].drop(columns=["section", "claim"])
        rows = rows.set_index(["who", "what"])
        if rows.paper.isna().all():
            rows = rows.drop(columns=["paper", "in the paper"])
        if (rows.members == "").all():
            rows = rows.drop(columns="members")
        return rows.round(3)

    def overall(self) -> pd.DataFrame:
        """Return one verdict a claim: of the paper's own numbers, and of each who answers.

        Who was not asked about a claim has an empty cell.

        Example:
            >>> verdicts = Verdicts()
            >>> for what, value in {"linear": 0.3, "convex": -0.3}.items():
            ...     ours = Estimate(value, value, value, 0.1)
            ...     verdicts.ask("5.4: hap rises", "search", what, ours, above=0)
            >>> verdicts.overall().loc[("5.4", "hap rises"), "search"]
            'in part: holds 1, does not hold 1'
        """
        return self._by_claim(_together)

    def in_short(self) -> pd.DataFrame:
        """Return `overall`, where the parts of a claim differ as "1 of 2 hold"."""
        return self._by_claim(_how_many)

    def _by_claim(self, summary: Callable[[pd.Series], str]) -> pd.DataFrame:
        """Return a summary of the parts of each claim, by who answers."""
        parts = pd.DataFrame(self.parts)
        by_claim = ["section", "claim"]
        table = parts.pivot_table("here", by_claim, "who", summary, sort=False)
        asked = parts[parts["in the paper"] != CANNOT]
        once = asked.drop_duplicates([*by_claim, "what", "paper"])
        of_paper = once.groupby(by_claim, sort=False)["in the paper"].agg(summary)
        table.insert(0, "the paper's numbers", of_paper.reindex(table.index))
        return table.rename_axis(columns=None).fillna("")


def _together(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts came to which."""
    counts = parts.value_counts()
    if len(counts) == 1:
        return str(parts.iloc[0])
    words = ("holds", "does not hold", "undecided", TIE)
    listed = ", ".join(f"{word} {counts[word]}" for word in words if word in counts)
    return f"in part: {listed}"


def _how_many(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts hold."""
    n_hold = int((parts == "holds").sum())
    return str(parts.iloc[0]) if parts.nunique() == 1 else f"{n_hold} of {len(parts)} hold"
