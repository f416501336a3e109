"""The paper's numbers (arXiv:2604.08030), as CSV in `published/`; its cost columns are lost and left out."""

import pandas as pd

from lib import checks
from lib.paths import PUBLISHED

# columns that tell the rows of one method apart
SETTING = {
    1: ["n_individually_actionable"],
    2: ["constraints", "cost_profile"],
    3: ["constraints", "cost_profile"],
    5: ["bias", "n_individually_actionable"],
    6: ["distribution", "n_individually_actionable", "plausibility_constraint"],
}
TABLES = {1: "icarma_table1", 2: "icarma_table2", 3: "icarma_table3", 5: "icarma_table5", 6: "icarma_table6"}


def table(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Rows of one of the paper's tables for one data set ("Loan" or "GMSC"), without the lost columns.

    The column "setting" joins what tells the rows of one method apart, for instance "soft, linear".
    """
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("data set", [dataset], ("Loan", "GMSC"))
    rows = pd.read_csv(PUBLISHED / f"{TABLES[number]}.csv", dtype={"n_individually_actionable": str})
    rows = rows[rows.dataset == dataset].drop(columns=["table", "dataset", "cost_mean", "cost_sd", "note"])
    rows.insert(0, "setting", rows[SETTING[number]].agg(", ".join, axis=1))
    return rows.reset_index(drop=True)
