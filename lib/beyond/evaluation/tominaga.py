"""What the study of evaluation functions printed: its tables, and its two distances.

Tominaga, Yamashita and Kurashima, *Reassessing Evaluation Functions
in Algorithmic Recourse*, IJCAI 2024, asked 362 people about plans.
People and plans are described by 16 items with options, for instance
working hours. What the 362 answered is not public, but for thirteen
quotes; seven of these name all changes of their plan.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from lib import checks, io
from lib.io import PUBLISHED

N_PEOPLE, N_REMOVED = 362, 72  # people, and answers removed: a change was impossible
N_ANSWERS = 5 * N_PEOPLE - N_REMOVED
MODELS = (1, 2, 3, 4)
KINDS = {
    "smooth": "smooth",
    "intercepts": "random intercept",
    "slopes": "random slope",
}  # of terms of `gamm`, as table S2's transcription calls them
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
        name: table1, table2, tableS1, tableS2; quotes (of thirteen
            people), numbers (of the text), questionnaire, claims.
    Source: data/published/tominaga_*.csv, from arXiv:2405.14264.
    """
    return io.read_csv(PUBLISHED / f"tominaga_{name}.csv")


@dataclass(frozen=True)
class Printed:
    """What table S2 prints of one model.

    Arguments:
        outcome, distance: What was asked, and what explains it.
        intercept, t, aic: As printed.
        edf, F: By term: a key of `KINDS`.
    """

    outcome: str
    distance: str
    intercept: float
    t: float
    aic: float
    edf: dict[str, float]
    F: dict[str, float]

    @property
    def se(self) -> float:
        """Standard error of the intercept, with more digits than printed."""
        return self.intercept / self.t

    @property
    def error(self) -> float:
        """Standard deviation of the residuals that the AIC implies."""
        return error_of(self.aic, 1 + sum(self.edf.values()), N_ANSWERS)


def printed(model: int) -> Printed:
    """Return what table S2 prints of a model, 1 to 4.

    Raises: ValueError: there is no such model.
    """
    checks.one_of("model", [model], MODELS)
    table = published("tableS2")
    rows = table[table.model == model].set_index("kind")
    first = rows.loc["parametric"]
    return Printed(
        outcome=str(first.outcome),
        distance=str(rows.term["smooth"]),
        intercept=float(first.coefficient),
        t=float(first.t),
        aic=float(first.aic_of_model),
        edf={term: float(rows.edf[kind]) for term, kind in KINDS.items()},
        F={term: float(rows.F[kind]) for term, kind in KINDS.items()},
    )


def error_of(aic: float, edf: float, n: int) -> float:
    """Return the standard deviation of a Gaussian fit's residuals, from its AIC.

    AIC = n (1 + log(2 pi RSS / n)) + 2 (edf + 1), and the variance is
    RSS / (n - edf). This is the conditional AIC; the corrected one
    adds degrees of freedom for the variances, which depend on the
    answers.

    Arguments:
        aic: Conditional, with the fit's degrees of freedom.
        edf: Of all terms, the intercept included.
        n: Answers.
    """
    rss = n * math.exp((aic - 2 * (edf + 1)) / n - 1) / (2 * math.pi)
    return math.sqrt(rss / (n - edf))


def items() -> dict[str, tuple[str, ...]]:
    """Return the options of each of the 16 items of a profile, lowest first."""
    table = published("table1")
    options = table["options"].str.split("|").map(tuple)
    return dict(zip(table["item"], options, strict=True))


def plan(changes: str) -> dict[str, tuple[str, str]]:
    """Return a quoted plan's options before and after, by item, called as in table 1.

    Example:
        >>> plan("TOEIC: No -> 0-400; Position: Employee -> Section Chief")
        {'TOEIC Best score': ('No', '10-400'), 'Position': ('Employee', 'Section Chief')}
    """
    renamed = {}
    for change in changes.split("; "):
        item, options = change.split(": ")
        before, after = (OPTIONS_IN_QUOTES.get(o, o) for o in options.split(" -> "))
        renamed[ITEMS_IN_QUOTES.get(item, item)] = (before, after)
    return renamed


def distances(changes: Mapping[str, tuple[str, str]]) -> tuple[int, float]:
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
    Raises: ValueError: there is no such item, or no such option.
    Source: equations 2 and 3 of arXiv:2405.14264.
    Example:
        Three of nine steps up, and one of six down:

        >>> changes = {
        ...     "Position": ("Employee", "Section Chief"),
        ...     "Working hours per day": ("10-12 hours", "8-10 hours"),
        ... }
        >>> distances(changes)
        (2, 0.5)
    """
    options, deltas = items(), []
    checks.one_of("item", changes, tuple(options))
    for item, ends in changes.items():
        checks.one_of(f"option of {item}", ends, options[item])
        before, after = map(options[item].index, ends)
        deltas.append(abs(after - before) / (len(options[item]) - 1))
    return sum(delta != 0 for delta in deltas), sum(deltas)


def quoted() -> pd.DataFrame:
    """Return the quoted plans of which all changes are known, printed and by formula.

    Returns: A row a plan, and the columns of the quotes, with
        sparsity_by_formula, proximity_by_formula, and agrees: both
        are the same, as far as is printed.
    """
    quotes = published("quotes")
    rows = quotes[quotes.changes_named_are == "all"].reset_index(drop=True)
    by_formula = [distances(plan(changes)) for changes in rows.changes_named]
    columns = ["sparsity_by_formula", "proximity_by_formula"]
    rows[columns] = pd.DataFrame(by_formula)
    off = (rows.proximity_by_formula - rows.proximity).abs()
    return rows.assign(
        agrees=(rows.sparsity_by_formula == rows.sparsity) & (off <= ROUNDED)
    )
