"""What the paper claims, asked of its own numbers and of ours.

`data/published/icarma_claims.csv` has a row for each part of a claim:
cells of the paper's tables, and the range in which a sum of them lies
if the part holds. `ask` asks the numbers that the paper prints, the
search and each set of networks. `overall` and `in_short` give one
verdict a claim, `unfitted` the parts that are evidence.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import checks, io
from lib.io import PUBLISHED
from lib.paper.estimates import Estimate, combined, contrast, ratio
from lib.paper.tables import DECLARED, MEAN_OF, SEARCHES, published, sums

CLAIMS = PUBLISHED / "icarma_claims.csv"
TABLES = {str(number): (number, "Loan") for number in (1, 2, 3, 5, 6)}
TABLES |= {f"{number} GMSC": (number, "GMSC") for number in (1, 2)}
ORACLE, ICARMA, NO_DEMAND = "oracle", "iCARMA", "search, no demand"
METHODS = (ORACLE, ICARMA, "iCARMA (rco-trained)", NO_DEMAND)
SEARCH, NETWORKS, BOTH = "search", "networks", "both"
WHO = (SEARCH, NETWORKS, BOTH, "as printed", "as chosen", "pruned")
FACT = "fact"  # the metric of parts that no table answers
OURS, THE_PAPER = "ours", "the paper"  # who answers with a fact, unless it is said
CANNOT = "cannot be asked"  # of the paper, where it prints no number
TIE = "a tie"  # of the paper, where its number is an end of the range
UNIT = ", (L2|squares|L1)$"  # at the end of a part about cost
VERDICTS = ("holds", "does not hold", "undecided", TIE)

Cell = tuple[str, str, str]  # table, method, setting
Fact = float | Estimate
Answer = tuple[str, float, Estimate]  # who answers, the paper's number, ours
Sums = Callable[[Cell, str], tuple[np.ndarray, np.ndarray]]


def read(path: Path = CLAIMS) -> pd.DataFrame:
    r"""Return the parts of the paper's claims, a row each.

    A part holds if this value lies in [low, high]:

    .. math:: \sum \text{metric(after)} - \text{times} \sum \text{metric(before)}

    Where `how` is "range", the highest less the lowest takes the
    place of each sum. A cell is `TABLE: SETTING`, or `TABLE: METHOD:
    SETTING` where it is not of the method that answers. Where the
    metric is "fact", cells are names of numbers that `ask` is given.

    Arguments:
        path: Of the table.
    Returns: Columns section, claim, words (of the paper), who
        (answers), part, metric, how, after and before (tuples of
        cells, as they are written), times, low, high, and mark: "R"
        where an end of the range is ours.
    Raises: ValueError: a row names an unknown metric, table, method or
        setting, has no range, or is there twice. The message names
        the row.
    """
    parts = io.read_csv(path, dtype=str).fillna("")
    for name, default in {"times": 1.0, "low": -np.inf, "high": np.inf}.items():
        parts[name] = pd.to_numeric(parts[name]).fillna(default)
    for side in ("after", "before"):
        parts[side] = [tuple(filter(None, text.split("; "))) for text in parts[side]]
    is_twice = parts.duplicated(["section", "claim", "who", "part"])
    for part, again in zip(parts.itertuples(), is_twice, strict=True):
        try:
            _check(part)
            if again:
                raise ValueError("It is there twice: expected another part.")
        except ValueError as error:
            name = f"{part.section}, {part.claim!r}, {part.part!r}"
            message = f"Line {part.Index + 2} of {path.name} ({name}): {error}"
            raise ValueError(message) from None
    return parts


def _check(part: Any) -> None:
    """Raise ValueError unless a part has a range, and names what there is."""
    checks.one_of("metric", [part.metric], (*MEAN_OF, FACT))
    checks.one_of("way to join cells", [part.how], ("sum", "range"))
    if not part.after or not part.low <= part.high or np.isinf([part.low, part.high]).all():
        raise ValueError("Expected a cell in the column after, and low, high, or both.")
    if part.metric != FACT:
        checks.one_of("who answers", [part.who], WHO)
        for cell in (*part.after, *part.before):
            table, method, setting = _parse(cell, ORACLE)
            checks.one_of("table", [table], tuple(TABLES))
            checks.one_of("method", [method], METHODS)
            checks.one_of("setting", [setting], tuple(_published(table).index.levels[1]))


def _parse(cell: str, method: str) -> Cell:
    """Return table, method and setting of a cell.

    Arguments:
        cell: As it is written.
        method: That of a cell which names none.
    """
    names = cell.split(": ")
    if len(names) == 2:
        names.insert(1, method)
    if len(names) != 3:
        raise ValueError(f"Expected TABLE: SETTING or TABLE: METHOD: SETTING, got {cell!r}")
    return names[0], names[1], names[2]


def ask(
    people: Mapping[str, pd.DataFrame],
    facts: Mapping[str, Fact | Mapping[str, Fact]] | None = None,
    section: str | None = None,
    path: Path = CLAIMS,
) -> pd.DataFrame:
    """Return the verdicts of the paper's claims, a row a part and who answers.

    Who lacks a cell of a part has no row for it. Where our interval
    reaches over an end of the range, the verdict is "undecided".

    Arguments:
        people: Rows of `tables.evaluate`, by the name of the table, a
            key of `TABLES`.
        facts: Numbers that no table has, by their names in the table
            of claims: one number, or one for each who answers. "the
            paper" answers with a number of its text.
        section: Ask the claims of this section only.
        path: Of the table of claims.
    Returns: Columns section, claim, words, who, part, paper (its
        number), "in the paper" ("holds", "does not hold", "a tie" or
        "cannot be asked"), ours, low, high, members (lowest to
        highest), here ("holds", "does not hold" or "undecided").
    Raises: ValueError: as `read`; a table, a fact or the section is
        unknown.
    """
    parts = read(path)
    facts_asked = parts[parts.metric == FACT]
    known = {name for names in facts_asked.after + facts_asked.before for name in names}
    checks.one_of("table", people, tuple(TABLES))
    checks.one_of("fact", facts or {}, sorted(known))
    if section is not None:
        checks.one_of("section", [section], tuple(parts.section.unique()))
        parts = parts[parts.section == section]
    numbers = {
        name: fact if isinstance(fact, Mapping) else {OURS: fact}
        for name, fact in (facts or {}).items()
    }
    rows_of = dict(_by_cell(people))
    ratios = cache(lambda cell, metric: sums(rows_of[cell], metric))
    rows = []
    for part in parts.itertuples():
        if part.metric == FACT:
            answers = _by_facts(part, numbers)
        else:
            answers = _by_cells(part, [*rows_of], ratios)
        rows += [_row(part, *answer) for answer in answers]
    return pd.DataFrame(rows)


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
    asked = {SEARCH: [ORACLE], NETWORKS: [*sets], BOTH: [ORACLE, *sets]}
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


def _by_facts(part: Any, numbers: Mapping[str, Mapping[str, Fact]]) -> Iterator[Answer]:
    """Yield the same for a part that numbers from elsewhere answer."""
    of_names = [numbers.get(name, {}) for name in part.after + part.before]
    times = [1.0] * len(part.after) + [-part.times] * len(part.before)
    printed = [fact.get(THE_PAPER, np.nan) for fact in of_names]
    paper = combined(*zip(times, printed, strict=True)).value
    for who in of_names[0]:
        if who != THE_PAPER and all(who in fact for fact in of_names):
            ours = [fact[who] for fact in of_names]
            yield who, paper, combined(*zip(times, ours, strict=True))


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
        in_paper = TIE
    members = f"{ours.lowest:.3f} to {ours.highest:.3f}"
    return {name: getattr(part, name) for name in ("section", "claim", "words")} | {
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

    Where parts differ, the verdict says how many came to which. Who
    was not asked about a claim has an empty cell.

    Arguments:
        asked: As `ask` gives it.
    Returns: A row a section and claim.
    """
    return _by_claim(asked, _together)


def in_short(asked: pd.DataFrame) -> pd.DataFrame:
    """Return `overall`, where parts that differ are counted as "1 of 2 hold"."""
    return _by_claim(asked, _how_many)


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
    for cell in (*part.after, *part.before):
        table, method, setting = _parse(cell, answers)
        number, dataset = TABLES[table]
        declared = DECLARED.get((number, method, part.metric), ())
        if dataset != "Loan" or setting not in declared:
            return False
    return True


def _in_words(low: float, high: float) -> str:
    """Return a range, for instance "0.15 or less"."""
    if np.isinf(low):
        return f"{high:g} or less"
    return f"{low:g} or more" if np.isinf(high) else f"{low:g} to {high:g}"


def _by_claim(asked: pd.DataFrame, summary: Callable[[pd.Series], str]) -> pd.DataFrame:
    """Return a summary of the parts of each claim, by who answers."""
    by = ["section", "claim"]
    table = asked.pivot_table("here", by, "who", summary, sort=False)
    printed = asked[asked["in the paper"] != CANNOT].assign(search=asked.who == SEARCH)
    printed = printed.drop_duplicates([*by, "part", "search"])
    of_paper = printed.groupby(by, sort=False)["in the paper"].agg(summary)
    table.insert(0, "the paper's numbers", of_paper.reindex(table.index))
    return table.rename_axis(columns=None).fillna("")


def _together(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts came to which."""
    counts = parts.value_counts()
    listed = ", ".join(f"{word} {counts[word]}" for word in VERDICTS if word in counts)
    return str(parts.iloc[0]) if len(counts) == 1 else f"in part: {listed}"


def _how_many(parts: pd.Series) -> str:
    """Return one verdict of several, with how many parts hold."""
    n_hold = int((parts == "holds").sum())
    return str(parts.iloc[0]) if parts.nunique() == 1 else f"{n_hold} of {len(parts)} hold"
