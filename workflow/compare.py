"""Compare the tables of a batch with the committed ones, cell by cell, with a tolerance.

`python workflow/compare.py [SIZE]`

On one machine a batch gives the same bits, and on other x86 processors
nearly all of them, with the variables of `lib.reproducible`. Elsewhere
another rounding acts like another seed. So a number may differ

- by six standard errors of the difference of two means over seeds, in
  tables that have them, which for ten seeds happens by chance in one
  cell of 100,000 (a single member's by ten), or by `LEAST` if that is
  more;
- an estimate with an interval, by half the widths of both, squared and
  added; the ends, whose distance is estimated too, are not compared;
- else by `ABSOLUTE` and `RELATIVE` of its size, or, if that is more,
  by two standard errors over people: those that the table has
  (`ERRORS`), that of a share of so many `people`, or the root of a
  count (`COUNTS`).

Texts must be the same but for the numbers in them, and a verdict may
be undecided in one of the two: then it is at its bound. What lies
outside is printed, and fails.
"""

import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from lib import io
from lib.paper import gmsc

LEAST, ABSOLUTE, RELATIVE = 0.005, 0.02, 0.05
OF_MEMBERS = ("lowest", "highest", "reported")
FOLLOWS = ("agrees", "members")  # from the numbers beside them
ESTIMATES, ENDS = {"ours", "estimate"}, {"low", "high"}
ERRORS = {"2 s.e.": 1, "+-": 2, "se": 2}  # columns, and how often each makes two errors
COUNTS = ("worse",)  # dialogues that ended farther away
VERDICTS, UNDECIDED = ("here", "verdict"), ["undecided", "open"]
NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\w.])"
SHOWN = 20  # cells outside that are printed, of each table


def compare(run: Path, root: Path, names: Collection[str]) -> pd.DataFrame:
    """Return how tables of a batch compare with the committed ones, a row a table.

    Arguments:
        run: Folder of the batch.
        root: The repository.
        names: Of the files in tables.
    Returns: By name: `verdict`, "equal" (to the byte), "within the
        tolerance", "OUTSIDE" or "MISSING", and `cells`, what is
        outside.
    """
    rows: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        ours, committed = run / "tables" / name, root / "tables" / name
        if not ours.is_file():
            rows[name] = ("MISSING", [])
        elif ours.read_bytes() == committed.read_bytes():
            rows[name] = ("equal", [])
        else:
            cells = outside(io.read_csv(ours), io.read_csv(committed))
            rows[name] = ("OUTSIDE" if cells else "within the tolerance", cells)
    return pd.DataFrame.from_dict(rows, "index", columns=["verdict", "cells"])


def outside(ours: pd.DataFrame, committed: pd.DataFrame) -> list[str]:
    """Return the cells of a table that differ by more than they may, a text each.

    Example:
        >>> committed = pd.DataFrame({"setting": ["1", "2"], "validity": [0.50, 0.80]})
        >>> outside(committed.assign(validity=[0.51, 0.95]), committed)
        ['validity of row 1 (2): 0.95, committed 0.8, may differ by 0.06']
    """
    if list(ours) != list(committed) or len(ours) != len(committed):
        return [f"{ours.shape} with {', '.join(ours)}; committed {committed.shape}"]
    cells = []
    for column in committed:
        new, old = ours[column], committed[column]
        if column in FOLLOWS or (column in ENDS and ESTIMATES & set(committed)):
            continue
        if pd.api.types.is_numeric_dtype(old) and pd.api.types.is_numeric_dtype(new):
            limit = tolerance(ours, committed, str(column))
            differs = (new.astype(float) - old.astype(float)).abs() > limit
            differs |= new.isna() != old.isna()
        else:
            limit = pd.Series(np.nan, old.index)
            differs = words(new) != words(old)
            if column in VERDICTS:
                differs &= ~(new.isin(UNDECIDED) | old.isin(UNDECIDED))
        for i in differs.to_numpy().nonzero()[0]:
            may = "" if np.isnan(limit[i]) else f", may differ by {limit[i]:.2g}"
            row = committed.iloc[i, 0]
            cells.append(f"{column} of row {i} ({row}): {new[i]}, committed {old[i]}{may}")
    return cells


def words(column: pd.Series) -> pd.Series:
    """Return texts without their numbers: these stand in columns of their own.

    Example:
        >>> words(pd.Series(["savings 36 -> 51 of 100 (-4.239)", None])).tolist()
        ['savings # -> # of # (#)', '']
    """
    texts = column.astype(object).where(column.notna(), "").astype(str)
    return texts.str.replace(NUMBER, "#", regex=True)


def tolerance(ours: pd.DataFrame, committed: pd.DataFrame, column: str) -> pd.Series:
    """Return by how much each number of a column may differ."""
    usual = ABSOLUTE + RELATIVE * committed[column].astype(float).abs()
    if "se_networks" in committed:
        n_errors = 10 if column in OF_MEMBERS else 6
        errors = n_errors * np.hypot(ours["se_networks"], committed["se_networks"])
        return errors.clip(lower=LEAST).fillna(LEAST)
    if column in ESTIMATES and set(committed) >= ENDS:
        half = [(table["high"] - table["low"]) / 2 for table in (ours, committed)]
        return np.hypot(*half).clip(lower=LEAST).fillna(usual)
    numbers = committed.apply(pd.to_numeric, errors="coerce")  # people may have a name
    limits = [usual]
    limits += [n * numbers[name] for name, n in ERRORS.items() if name in numbers]
    if column in COUNTS:
        limits.append(2 * np.sqrt(numbers[column]))
    if "people" in numbers and column != "people":
        limits.append(two_errors(numbers[column], numbers["people"]))
    return pd.concat(limits, axis=1).max(axis=1)


def two_errors(share: pd.Series, n_people: pd.Series) -> pd.Series:
    """Return two standard errors of a share of people; 0 for what is no share.

    Example:
        >>> two_errors(pd.Series([0.5, 1.7]), pd.Series([100, 100])).tolist()
        [0.1, 0.0]
    """
    return 2 * np.sqrt((share * (1 - share)).clip(lower=0) / n_people)


def has_real_people(models: Path) -> bool:
    """Return whether models of Give Me Some Credit were fitted to the real people."""
    return gmsc.scaler(models)[1] == "real"


def is_of_credit(name: str) -> bool:
    """Return whether a table, a model or a figure is of Give Me Some Credit.

    Example:
        >>> is_of_credit("11_gmsc.csv"), is_of_credit("07_past.csv"), is_of_credit("04_a")
        (True, True, False)
    """
    return name.startswith(("07_", "gmsc_")) or "_gmsc" in name


def main(size: str = "paper") -> None:
    """Print how the tables of a batch compare; exit with 1 if one is outside."""
    run = io.ROOT / "runs" / size
    names = sorted(path.name for path in (io.ROOT / "tables").glob("*.csv"))
    done = {path.name.partition("_")[0] for path in (run / "done").iterdir()}
    names = [name for name in names if name.partition("_")[0] in done]
    if not has_real_people(run / "models"):
        left_out = [name for name in names if is_of_credit(name)]
        names = [name for name in names if name not in left_out]
        print(f"Not compared, without the data: {', '.join(left_out)}")
    result = compare(run, io.ROOT, names)
    models = sorted(path.stem for path in (run / "models").glob("*.safetensors"))
    same = [name for name in models if io.same(name, run / "models", io.MODELS)]
    print(f"{len(same)} of {len(models)} models are equal to the bit.")
    counts = result.verdict.value_counts()
    print(f"Tables: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}")
    for name, row in result[result.verdict != "equal"].iterrows():
        print(f"  {name}: {row.verdict}")
        for cell in row["cells"][:SHOWN]:
            print(f"    {cell}")
    if result.verdict.isin(["OUTSIDE", "MISSING"]).any():
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
