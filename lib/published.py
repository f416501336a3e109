"""The paper's numbers (arXiv:2604.08030), as CSV in `published/`; its cost columns are lost and left out."""

import pandas as pd

from lib import checks
from lib.paths import PUBLISHED

TABLES = {1: "icarma_table1", 2: "icarma_table2", 3: "icarma_table3", 5: "icarma_table5", 6: "icarma_table6"}


def table(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Rows of one of the paper's tables for one data set ("Loan" or "GMSC"), without the lost columns."""
    checks.known("table of the paper", [number], tuple(TABLES))
    checks.known("data set", [dataset], ("Loan", "GMSC"))
    rows = pd.read_csv(PUBLISHED / f"{TABLES[number]}.csv")
    rows = rows[rows.dataset == dataset].drop(columns=["table", "dataset", "cost_mean", "cost_sd", "note"])
    return rows.reset_index(drop=True)
