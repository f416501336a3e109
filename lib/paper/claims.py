"""What the paper claims, asked of its own numbers and of ours.

`data/published/icarma_claims.csv` has a row for each part of a claim:
cells of the paper's tables, and the range in which a sum of them lies
if the part holds. `ask` asks the numbers that the paper prints, the
search and each set of networks. `overall` gives one verdict a claim,
`unfitted` the parts that are evidence.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lib import checks, io
from lib.io import PUBLISHED
from lib.paper.estimates import Estimate, combined, contrast, ratio
from lib.paper.tables import DECLARED, SEARCHES, published, sums

CLAIMS = PUBLISHED / "icarma_claims.csv"
TABLES = {str(number): (number, "Loan") for number in (1, 2, 3, 5, 6)}
TABLES |= {f"{number} GMSC": (number, "GMSC") for number in (1, 2)}
ORACLE, ICARMA, NO_DEMAND = "oracle", "iCARMA", "search, no demand"
METHODS = (ORACLE, ICARMA, "iCARMA (rco-trained)", NO_DEMAND)
SEARCH = "search"  # who answers with the cells of the oracle
FACT = "fact"  # the metric of parts that no table answers
CANNOT = "cannot be asked"  # of the paper, where it prints no number
UNIT = ", (L2|squares|L1)$"  # at the end of a part about cost

Cell = tuple[str, str, str]  # table, method, setting
Fact = float | Estimate
Answer = tuple[str, float, Estimate]  # who answers, the paper's number, ours
Sums = Callable[[Cell, str], tuple[np.ndarray, np.ndarray]]


def read() -> pd.DataFrame:
    r"""Return the parts of the paper's claims, a row each.

    A part holds if this value lies in [low, high]:

    .. math:: \sum \text{metric(after)} - \text{times} \sum \text{metric(before)}

    Where `how` is "range", the highest less the lowest takes the
    place of each sum. A cell is `TABLE: SETTING`, or `TABLE: METHOD:
    SETTING` where it is not of the method that answers. Where the
    metric is "fact", cells are names of numbers that `ask` is given.

    Returns: Columns section, claim, words (of the paper), who
        (answers), part, metric, how, after and before (tuples of
        cells, as they are written), times, low, high, and mark: "R"
        where an end of the range is ours.
    """
    parts = io.read_csv(CLAIMS, dtype=str).fillna("")
    for name, default in {"times": 1.0, "low": -np.inf, "high": np.inf}.items():
        parts[name] = pd.to_numeric(parts[name]).fillna(default)
    for side in ("after", "before"):
        parts[side] = [tuple(filter(None, text.split("; "))) for text in parts[side]]
    return parts


def ask(
    people: Mapping[str, pd.DataFrame],
    facts: Mapping[str, Mapping[str, Fact]] | None = None,
    section: str | None = None,
) -> pd.DataFrame:
    """Return the verdicts of the paper's claims, a row a part and who answers.

    Who lacks a cell of a part has no row for it. Where our interval
    reaches over an end of the range, the verdict is "undecided".

    Arguments:
        people: Rows of `tables.evaluate`, by the name of the table, a
            key of `TABLES`.
        facts: Numbers that no table has, by their names in the table
            of claims and by who answers.
        section: Ask the claims of this section only.
    Returns: Columns section, claim, words, who, part, paper (its
        number), "in the paper" ("holds", "does not hold", "a tie" or
        "cannot be asked"), ours, low, high, members (lowest to
        highest), here ("holds", "does not hold" or "undecided").
    Raises: ValueError: a table, a fact or the section is unknown.
    """
    parts, facts = read(), facts or {}
    asked_of = parts[parts.metric == FACT]
    known = {name for cells in (*asked_of.after, *asked_of.before) for name in cells}
    checks.one_of("table", people, tuple(TABLES))
    checks.one_of("fact", facts, sorted(known))
    if section is not None:
        checks.one_of("section", [section], tuple(parts.section.unique()))
        parts = parts[parts.section == section]
    rows_of = dict(_by_cell(people))
    ratios = cache(lambda cell, metric: sums(rows_of[cell], metric))
    rows = []
    for part in parts.itertuples():
        if part.metric == FACT:
            answers = _by_facts(part, facts)
        else:
            answers = _by_cells(part, [*rows_of], ratios)
        rows += [_row(part, *answer) for answer in answers]
    return pd.DataFrame(rows)


def _parse(cell: str, method: str) -> Cell:
    """Return table, method and setting of a cell; the method if it names none."""
    table, *middle, setting = cell.split(": ")
    return table, middle[0] if middle else method, setting


def _by_cell(people: Mapping[str, pd.DataFrame]) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Yield the rows of each cell; the method of a set of networks is its name."""
    for table, rows in people.items():
        method = rows.method.mask(rows.method.isin(SEARCHES), ORACLE)
        method = method.mask(method == ICARMA, rows.networks)
        for (who, setting), group in rows.groupby([method, rows.setting], sort=False):
            yield (table, who, setting), group


def _by_cells(part: Any, cells: list[Cell], ratios: Sums) -> Iterator[Answer]:
    """Yield who answers a part by cells of tables, the paper's number, and ours."""
    sets = dict.fromkeys(method for _, method, _ in cells if method not in METHODS)
    asked = {SEARCH: [ORACLE], "networks": [*sets], "both": [ORACLE, *sets]}
    for method in asked.get(part.who, [part.who]):
        cell_of = {name: _parse(name, method) for name in part.after + part.before}
        if not set(cell_of.values()) <= set(cells):
            continue
        ratio_of = {name: ratios(cell, part.metric) for name, cell in cell_of.items()}
        means = {name: ratio(*arrays).value for name, arrays in ratio_of.items()}
        ours = contrast(*((times, *ratio_of[name]) for times, name in _terms(part, means)))
        in_paper = ORACLE if method == ORACLE else ICARMA
        printed = {name: _printed(part.metric, _parse(name, in_paper)) for name in cell_of}
        paper = sum(times * printed[name] for times, name in _terms(part, printed))
        yield SEARCH if method == ORACLE else method, paper, ours


def _by_facts(part: Any, facts: Mapping[str, Mapping[str, Fact]]) -> Iterator[Answer]:
    """Yield the same for a part that numbers from elsewhere answer."""
    terms = _terms(part, {})
    for who in facts.get(part.after[0], {}):
        if all(who in facts.get(name, {}) for _, name in terms):
            yield (
                who,
                np.nan,
                combined(*((times, facts[name][who]) for times, name in terms)),
            )


def _terms(part: Any, values: Mapping[str, float]) -> list[tuple[float, str]]:
    """Return the cells of a part with what they are multiplied by.

    Arguments:
        values: Of the cells, by which the highest and the lowest is
            known.
    """
    sides = [(1.0, part.after), (-part.times, part.before)]
    if part.how == "sum":
        return [(times, cell) for times, cells in sides for cell in cells]
    return [
        (sign * times, end(cells, key=values.__getitem__))
        for times, cells in sides
        if cells
        for sign, end in ((1, max), (-1, min))
    ]


@cache
def _published(table: str) -> pd.DataFrame:
    """Return one of the paper's tables by method and setting."""
    return published(*TABLES[table]).set_index(["method", "setting"])


def _printed(metric: str, cell: Cell) -> float:
    """Return the number that the paper prints in a cell; NaN where there is none."""
    table, *row = cell
    rows = _published(table)
    return float(rows[metric].get(tuple(row), np.nan)) if metric in rows else np.nan


def _row(part: Any, who: str, paper: float, ours: Estimate) -> dict[str, str | float]:
    """Return the row of a part and who answers, with both verdicts."""
    in_paper = "holds" if part.low <= paper <= part.high else "does not hold"
    if not np.isfinite(paper):
        in_paper = CANNOT
    elif np.isclose(paper, [part.low, part.high], rtol=0, atol=1e-9).any():
        in_paper = "a tie"
    members = f"{ours.lowest:.3f} to {ours.highest:.3f}"
    return {
        "section": part.section,
        "claim": part.claim,
        "words": part.words,
        "who": who,
        "part": part.part,
        "paper": paper,
        "in the paper": in_paper,
        "ours": ours.value,
        "low": ours.low,
        "high": ours.high,
        "members": members if ours.lowest < ours.highest else "",
        "here": ours.lies(part.low, part.high),
    }


def overall(asked: pd.DataFrame) -> pd.DataFrame:
    """Return one verdict a claim: of the paper's own numbers, and of each who answers.

    Where parts differ, the verdict says how many hold, for instance "1
    of 2 hold". Who was not asked about a claim has an empty cell.

    Arguments:
        asked: As `ask` gives it.
    Returns: A row a section and claim.
    """
    by = ["section", "claim"]
    table = asked.pivot_table("here", by, "who", _together, sort=False)
    printed = asked[asked["in the paper"] != CANNOT].assign(search=asked.who == SEARCH)
    printed = printed.drop_duplicates([*by, "part", "search"])
    of_paper = printed.groupby(by, sort=False)["in the paper"].agg(_together)
    table.insert(0, "the paper's numbers", of_paper.reindex(table.index))
    return table.rename_axis(columns=None).fillna("")


def _together(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts hold."""
    n_hold = int((parts == "holds").sum())
    return str(parts.iloc[0]) if parts.nunique() == 1 else f"{n_hold} of {len(parts)} hold"


def unfitted(asked: pd.DataFrame) -> pd.DataFrame:
    """Return the parts that are evidence, with their bounds.

    Left out are parts whose cells were all used for calibration
    (`tables.DECLARED`).

    Arguments:
        asked: As `ask` gives it.
    Returns: Rows of `asked` with the columns bound, in words, with
        "[R]" where it is ours, and unit, of a cost: "L2", "squares"
        or "L1".
    """
    names = ["section", "claim", "part"]
    parts = read().drop_duplicates(names).set_index(names)
    bounds = []
    for answer in asked.itertuples():
        part = parts.loc[(answer.section, answer.claim, answer.part)]
        is_fitted = _is_declared(part, ORACLE if answer.who == SEARCH else ICARMA)
        ours = f" [{part.mark}]" if part.mark else ""
        bounds.append(np.nan if is_fitted else _in_words(part.low, part.high) + ours)
    unit = asked.part.str.extract(UNIT)[0].fillna("")
    return asked.assign(bound=bounds, unit=unit).dropna(subset="bound")


def _is_declared(part: Any, answers: str) -> bool:
    """Return whether all cells that a method answers were used for calibration."""
    if part.metric == FACT:
        return False
    cells = (_parse(cell, answers) for cell in (*part.after, *part.before))
    return all(
        setting in DECLARED.get((table, method, part.metric), ())
        for table, method, setting in cells
    )


def _in_words(low: float, high: float) -> str:
    """Return a range, for instance "0.15 or less"."""
    if np.isinf(low):
        return f"{high:g} or less"
    return f"{low:g} or more" if np.isinf(high) else f"{low:g} to {high:g}"
