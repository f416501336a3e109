"""What the study of evaluation functions printed.

Tominaga, Yamashita and Kurashima, *Reassessing Evaluation Functions
in Algorithmic Recourse*, IJCAI 2024, asked 362 people about plans.
People and plans are described by 16 items with options, for instance
working hours. What the 362 answered is not public, but for thirteen
quotes.
"""

import math
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


def published(name: str) -> pd.DataFrame:
    """Return one of the tables that are transcribed from the study, as it is printed.

    Arguments:
        name: tableS2, quotes (of thirteen people), numbers (of the
            text) or claims.
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
