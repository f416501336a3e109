"""One table of a batch: the paper's numbers beside ours."""

from pathlib import Path

import pandas as pd

COLUMNS = [
    "table",
    "setting",
    "method",
    "metric",
    "paper",
    "ours",
    "difference",
    "seed_low",
    "seed_high",
    "standard_error",
    "within",
]


def collect(run: Path) -> pd.DataFrame:
    """Rows of all tables/*_paper_vs_ours.csv of a batch, in the notebooks' order; also left in paper_vs_ours.csv.

    Raises: ValueError: there is no such table, or one has other columns.
    """
    paths = sorted((run / "tables").glob("*_paper_vs_ours.csv"))
    if not paths:
        raise ValueError(
            f"No table *_paper_vs_ours.csv in {run / 'tables'}: did the notebooks write to another folder?"
        )
    tables = []
    for path in paths:
        table = pd.read_csv(path)
        if list(table.columns) != COLUMNS:
            raise ValueError(
                f"{path} has the columns {', '.join(table.columns)}; expected {', '.join(COLUMNS)}."
            )
        tables.append(table)
    rows = pd.concat(tables, ignore_index=True)
    rows.to_csv(run / "paper_vs_ours.csv", index=False)
    return rows


def as_text(rows: pd.DataFrame) -> str:
    """The rows as rounded text, one block a table; a number that the paper does not give stays empty."""
    blocks = []
    for name, block in rows.groupby("table", sort=False):
        text = block.drop(columns="table").to_string(
            index=False, na_rep="", float_format="{:.3f}".format
        )
        blocks.append(f"{name}\n{text}")
    return "\n\n".join(blocks)
