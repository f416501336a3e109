"""Give Me Some Credit: where the data is found, how it is read, and how it is cleaned.

The data is not part of this repository. `find` looks for the
competition's cs-training.csv (150,000 people), as a csv or inside a
zip. It looks at a path that is handed over, at the one in the
environment variable ICARMA_GMSC_CSV, in the cache, and at last on the
web. Whatever the source, the SHA-256 of the csv decides whether it is
the data.
"""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pooch

from lib.base import csv_files, inputs
from lib.problem import frames

VARIABLE = "ICARMA_GMSC_CSV"
SHA256 = "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac"
MIRROR = (
    "https://raw.githubusercontent.com/SureshThyagara1/CYO---Kaggle-Give-Me-Some-Credit/"
    "master/Data/cs-training.csv.zip"
)
HOW_TO_GET_IT = (
    "Download cs-training.csv from the Kaggle competition GiveMeSomeCredit "
    f"(it asks for a login) or from {MIRROR}, and say where it lies: "
    f"{VARIABLE}=/path/to/cs-training.csv (or .zip)."
)
N_ROWS = 150_000
MOST_BYTES = 50_000_000  # of a file that may be the data, which has 7.6 million

# our names, in causal order, and the columns of the csv
COLUMNS = {
    "age": "age",
    "dependents": "NumberOfDependents",
    "income": "MonthlyIncome",
    "credit_lines": "NumberOfOpenCreditLinesAndLoans",
    "real_estate_loans": "NumberRealEstateLoansOrLines",
    "utilization": "RevolvingUtilizationOfUnsecuredLines",
    "debt_ratio": "DebtRatio",
    "late_30_to_59": "NumberOfTime30-59DaysPastDueNotWorse",
    "late_60_to_89": "NumberOfTime60-89DaysPastDueNotWorse",
    "late_90": "NumberOfTimes90DaysLate",
}
LABEL = "SeriousDlqin2yrs"
LATENESS = ("late_30_to_59", "late_60_to_89", "late_90")
COUNTS = ("age", "dependents", "credit_lines", "real_estate_loans", *LATENESS)
MOST = dict.fromkeys(LATENESS, 18) | {  # of anybody
    "age": 103,
    "dependents": 20,
    "credit_lines": 58,
    "real_estate_loans": 54,
}
CAPS = {"debt_ratio": 1.0, "utilization": 1.0, "income": 17_000.0}
UNREADABLE, WORST = 90, 18  # lateness above 90 times is a code, not a count
TYPICAL = {  # what a median may be, in the unit of the competition
    "income": (1_000, 20_000, "dollars a month"),
    "utilization": (0.01, 1.0, "a share of the credit limit"),
    "age": (20, 90, "years"),
    "debt_ratio": (0.01, 3.0, "a share of income"),
}


def find(path: str | Path = "", download: bool = True) -> Path | None:
    """Return the file with the data (csv or zip), or None if there is none.

    Arguments:
        path: Where it lies; "": look in the environment variable,
            then in the cache and (unless download is False) on the
            web.
        download: Whether to try the web at last. None is returned too
            if that fails.
    Raises: ValueError: there is no file at the path, or where the
        variable points.

    Example:
        A path that is handed over is taken as it is; only `read`
        looks inside.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        ...     find(file.name) == Path(file.name)
        True
    """
    for source, given in (("path", path), (VARIABLE, os.environ.get(VARIABLE, ""))):
        if given:
            if not Path(given).is_file():
                raise ValueError(
                    f"{source} names {given}, and there is no such file. {HOW_TO_GET_IT}"
                )
            return Path(given)
    cached = Path(pooch.os_cache("icarma-companion")) / "cs-training.csv.zip"
    if cached.is_file():
        return cached
    return _downloaded(cached) if download else None


def read(path: str | Path) -> pd.DataFrame:
    """Return the 150,000 rows of the csv: label and ten features, called as in `COLUMNS`.

    Raises: ValueError: there is no file, it is no csv or zip, or it
        is not the data.

    Example:
        Any other file is refused, however much it looks like the
        data.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     _ = file.write("id,age,DebtRatio")
        ...     file.flush()
        ...     try:
        ...         read(file.name)
        ...     except ValueError as error:
        ...         print(str(error).removeprefix(file.name)[:47])
         is not the data: There is no column dependents
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}. {HOW_TO_GET_IT}")
    content = inputs.content(path, MOST_BYTES)
    with inputs.in_file(path, f"Is it half a download? Delete it. {HOW_TO_GET_IT}"):
        if path.suffix == ".zip" or zipfile.is_zipfile(io.BytesIO(content)):
            content = csv_files.unzipped(content, "cs-training.csv", MOST_BYTES)
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{path} is not the data: {_what_differs(content)} "
            f"Expected SHA-256 {SHA256}, found {found}. "
            f"If it is a download, delete it. {HOW_TO_GET_IT}"
        )
    return _named(content)


def clean(raw: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the people that can be used, and how many each step of the cleaning concerns.

    Rows with missing values are dropped. Debt ratio, utilization and
    income are capped. Lateness codes become 18 times.

    Arguments:
        raw: The label and the ten features, called as in `COLUMNS`;
            it stays as it is.
    Returns: Columns "paid_back" (bool) and the ten features; and the
        counts by step.
    Raises: ValueError: a column is missing, holds no numbers, has
        negative or infinite values, or is in another unit; nobody is
        left.
    Source: the cleaning of PEAR (De Toni et al.), as in appendix C of
        arXiv:2604.08030.

    Example:
        >>> raw = pd.DataFrame(dict.fromkeys(COLUMNS, [0.5, 0.5, 0.5])).assign(
        ...     age=[30, 40, 50],
        ...     income=[3_000, 20_000, np.nan],
        ...     late_90=[0, 98, 0],
        ...     SeriousDlqin2yrs=[0, 1, 0],
        ... )
        >>> people, steps = clean(raw)
        >>> people[["paid_back", "age", "income", "late_90"]]
           paid_back  age   income  late_90
        0       True   30   3000.0        0
        1      False   40  17000.0       18
        >>> steps["without missing values"], steps["income capped at 17,000"]
        (2, 1)
    """
    _check_columns(raw)
    people = raw.dropna(subset=[LABEL, *COLUMNS])
    if len(people) == 0:
        raise ValueError(f"All {len(raw)} rows miss a value, so nobody is left.")
    _check_values(people)
    steps = {"rows": len(raw), "without missing values": len(people)}
    people = people.copy()
    for name, cap in CAPS.items():
        steps[f"{name} capped at {cap:,.0f}"] = int((people[name] > cap).sum())
        people[name] = people[name].clip(upper=cap)
    lateness = people[list(LATENESS)]
    steps[f"lateness codes made {WORST}"] = int((lateness > UNREADABLE).any(axis=1).sum())
    people[list(LATENESS)] = lateness.where(lateness <= UNREADABLE, WORST)
    people.insert(0, "paid_back", people.pop(LABEL) == 0)
    return people[["paid_back", *COLUMNS]].reset_index(drop=True), steps


def check(people: pd.DataFrame) -> None:
    """Raise ValueError unless every feature holds values that somebody can have.

    Arguments:
        people: The ten features, as `clean` gives them; other columns
            are not looked at.

    Example:
        >>> check(pd.DataFrame(dict.fromkeys(COLUMNS, [1.5])))
        Traceback (most recent call last):
        ValueError: age counts, so it must be whole. See `clean`.
    """
    values = frames.values(people, list(COLUMNS))
    for name, own in zip(COLUMNS, values.T, strict=True):
        if (own < 0).any():
            raise ValueError(f"{name} has negative values. See `clean`.")
        if name in COUNTS and (own % 1 != 0).any():
            raise ValueError(f"{name} counts, so it must be whole. See `clean`.")


def _downloaded(path: Path) -> Path | None:
    """Download the data to this path; return it, or None if that fails."""
    pooch.get_logger().setLevel("WARNING")
    web = pooch.HTTPDownloader(timeout=20, progressbar=False)
    try:
        # pooch moves a file to its place at the end, so that half a download is never found
        pooch.retrieve(MIRROR, None, path.name, path.parent, downloader=web)
    except (OSError, ValueError):
        return None
    return path


def _named(content: bytes) -> pd.DataFrame:
    """Return the rows of a csv, its columns called as in `COLUMNS`."""
    raw = csv_files.table(content, index_col=0)
    return raw.rename(columns={theirs: ours for ours, theirs in COLUMNS.items()})


def _what_differs(content: bytes) -> str:
    """Say in words: half a file, another file, missing columns, or another unit."""
    try:
        raw = _named(content)
        clean(raw)
    except ValueError as error:
        return f"{error}"
    if len(raw) != N_ROWS:
        return f"it has {len(raw):,} rows, expected {N_ROWS:,}."
    return "some of its values differ."


def _check_columns(raw: pd.DataFrame) -> None:
    """Raise ValueError unless every column is there, once, and holds numbers."""
    if not isinstance(raw, pd.DataFrame):
        raise ValueError(f"raw must be a pandas DataFrame, got {type(raw).__name__}.")
    expected = COLUMNS | {LABEL: LABEL}
    columns = raw.columns.tolist()
    if missing := [
        f"{ours} ({theirs})" for ours, theirs in expected.items() if ours not in raw
    ]:
        raise ValueError(
            f"There is no column {', '.join(missing)}; "
            f"found {', '.join(map(str, columns))}."
        )
    if twice := [name for name in expected if columns.count(name) > 1]:
        raise ValueError(f"There are several columns {twice[0]}: expected one.")
    if unknown := frames.not_binary(raw[LABEL].dropna()):
        raise ValueError(
            f"{LABEL} holds {unknown[0]!r}: "
            "expected 1 for a serious delinquency and 0 for none."
        )
    for name in COLUMNS:
        if not pd.api.types.is_numeric_dtype(raw[name]):
            raise ValueError(f"{name} holds {raw[name].dtype} values: expected numbers.")


def _check_values(people: pd.DataFrame) -> None:
    """Raise ValueError unless values are finite, not negative, and in the expected unit."""
    for name in COLUMNS:
        if (people[name] < 0).any():
            raise ValueError(f"{name} has values below zero: drop or repair those rows.")
        if not np.isfinite(people[name].to_numpy(dtype=float)).all():
            raise ValueError(f"{name} has infinite values: drop or repair those rows.")
    for name, (low, high, unit) in TYPICAL.items():
        if not low <= people[name].median() <= high:
            raise ValueError(
                f"{name} has the median {people[name].median():g}: "
                f"expected {unit}, {low:,} to {high:,}. Is the column in another unit?"
            )
