"""What the study of evaluation functions printed: its tables, and its two distances.

Tominaga, Yamashita and Kurashima, *Reassessing Evaluation Functions
in Algorithmic Recourse*, IJCAI 2024, asked 362 people about plans.
People and plans are described by 16 items with options, for instance
working hours. What the 362 answered is not public, but for thirteen
quotes; seven of these name all changes of their plan.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib import checks, io
from lib.io import PUBLISHED

TABLES = ("table1", "table2", "tableS1", "tableS2", "quotes", "numbers", "questionnaire")
# what quotes call otherwise than table 1 does
ITEMS_IN_QUOTES = {"TOEIC": "TOEIC Best score"}
OPTIONS_IN_QUOTES = {
    "University": "University (bachelor)",
    "0-1 years": "0-1 year",
    "0-400": "10-400",
}
ROUNDED = 0.005  # printed numbers have two digits


def published(name: str) -> pd.DataFrame:
    """Return one of the tables that were transcribed from the study, as it is printed.

    Arguments:
        name: Of `TABLES`: the study's own, then what thirteen people
            were quoted with, numbers of its text, and the questions.
    Raises: ValueError: there is no such table.
    Source: data/published/tominaga_*.csv, from arXiv:2405.14264.
    """
    checks.one_of("table of the study", [name], TABLES)
    return io.read_csv(PUBLISHED / f"tominaga_{name}.csv")


def items() -> dict[str, tuple[str, ...]]:
    """Return the options of each of the 16 items of a profile, lowest first."""
    table = published("table1")
    return {
        item: tuple(options.split("|"))
        for item, options in zip(table["item"], table["options"], strict=True)
    }


def plan(changes: str) -> dict[str, tuple[str, str]]:
    """Return the changes of a quoted plan: an item's option before, and after.

    Items and options are called as in table 1.

    Arguments:
        changes: "item: before -> after; item: ...".
    Raises: ValueError: this is no such text.
    Example:
        >>> plan("TOEIC: No -> 0-400; Position: Employee -> Section Chief")
        {'TOEIC Best score': ('No', '10-400'), 'Position': ('Employee', 'Section Chief')}
    """
    renamed = {}
    for change in changes.split("; "):
        item, named, options = change.partition(": ")
        before, arrow, after = options.partition(" -> ")
        if not (named and arrow):
            raise ValueError(
                f"{change!r} is no change: expected 'item: before -> after', several of "
                "them with '; ' between."
            )
        renamed[ITEMS_IN_QUOTES.get(item, item)] = (
            OPTIONS_IN_QUOTES.get(before, before),
            OPTIONS_IN_QUOTES.get(after, after),
        )
    return renamed


def distances(
    changes: Mapping[str, tuple[str, str]], options: Mapping[str, Sequence[str]]
) -> tuple[int, float]:
    r"""Return a plan's sparsity and proximity, of the profile; both without unit.

    .. math:: \text{sparsity} = \sum_i 1[\delta_i \ne 0], \quad
        \text{proximity} = \sum_i \delta_i, \quad
        \delta_i = |x'_i - x_i| / M_i

    An option counts by its place. The range M_i is the number of
    options less one, which is how we read the study; five of the
    seven quoted plans agree (`quoted`). A categorical item, whose
    delta is 1 where it changes, needs no rule of its own: all of the
    study's have two options.

    Arguments:
        changes: Before and after, of the items that change; others
            add nothing.
        options: Of each item, lowest first; see `items`.
    Raises: ValueError: there is no such item, or no such option.
    Source: equations 2 and 3 of arXiv:2405.14264.
    Example:
        Three of nine steps up, and one of six down:

        >>> changes = {
        ...     "Position": ("Employee", "Section Chief"),
        ...     "Working hours per day": ("10-12 hours", "8-10 hours"),
        ... }
        >>> distances(changes, items())
        (2, 0.5)
    """
    checks.one_of("item", changes, tuple(options))
    deltas = []
    for item, ends in changes.items():
        places = list(options[item])
        checks.one_of(f"option of {item}", ends, places)
        before, after = map(places.index, ends)
        deltas.append(abs(after - before) / (len(places) - 1))
    return sum(delta != 0 for delta in deltas), sum(deltas)


def quoted() -> pd.DataFrame:
    """Return the quoted plans of which all changes are known, printed and by formula.

    Returns: Columns participant, changes, sparsity and proximity (as
        printed), sparsity_by_formula and proximity_by_formula, and
        agrees: both are the same, as far as is printed. A row a plan.
    """
    quotes, options = published("quotes"), items()
    rows = quotes[quotes.changes_named_are == "all"].reset_index(drop=True)
    by_formula = [distances(plan(changes), options) for changes in rows.changes_named]
    sparsity, proximity = (pd.Series(values) for values in zip(*by_formula, strict=True))
    columns = ["participant", "changes_named", "sparsity", "proximity"]
    return (
        rows[columns]
        .rename(columns={"changes_named": "changes"})
        .assign(
            sparsity_by_formula=sparsity,
            proximity_by_formula=proximity,
            agrees=(sparsity == rows.sparsity)
            & ((proximity - rows.proximity).abs() <= ROUNDED),
        )
    )
