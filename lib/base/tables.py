"""Tables in csv files of this project, with errors that name the file.

Other people's are read by `lib.base.sandbox`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from lib.base import files


def read(path: Path, columns: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Return the table of a csv file.

    Arguments:
        path: Of the file.
        columns: That it needs; there may be others.
        options: As for `pandas.read_csv`.
    Raises: ValueError: there is no such file, it is no csv in UTF-8,
        or a column is missing.
    Example:
        >>> path = Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text("age,income\\n30,2000\\n")
        >>> read(path).income.tolist()
        [2000]
        >>> read(path, ["savings"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...people.csv: It has no column savings; found age, income.
    """
    with files.in_file(path):
        try:
            found = pd.read_csv(path, **options)
        except OSError as error:
            raise ValueError(f"It can't be read: {error.strerror}.") from error
        check_columns(found, columns)
    return found


def check_columns(table: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise ValueError if a column is missing.

    Example:
        >>> check_columns(pd.DataFrame({"age": [30]}), ["age"])
        >>> check_columns(pd.DataFrame({"age": [30]}), ["income"])
        Traceback (most recent call last):
        ...
        ValueError: It has no column income; found age.
    """
    found = list(map(str, table))
    if missing := [name for name in columns if name not in found]:
        raise ValueError(
            f"It has no column {', '.join(missing)}; found {', '.join(found) or 'nothing'}."
        )
