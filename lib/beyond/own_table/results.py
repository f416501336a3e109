"""The results of checks: errors, warnings, and what is fine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from lib.beyond.own_table.tables import TableError

VERDICTS = ("error", "warning", "fine")


@dataclass(frozen=True)
class CheckResult:
    """Hold the result of one check.

    Arguments:
        verdict: One of `VERDICTS`.
        check: What was checked.
        message: The result, in words.
        hint: What to do about it; empty where all is well.
    """

    verdict: str
    check: str
    message: str
    hint: str = ""

    @property
    def is_error(self) -> bool:
        """Whether recourse is impossible."""
        return self.verdict == "error"


def from_error(
    check: str, error: Warning | Exception | str, verdict: str = "error"
) -> CheckResult:
    """Return an exception or a warning as a result; its first sentence is the message.

    Example:
        >>> from_error("label", ValueError("It holds 2. Use 0 and 1.")).hint
        'Use 0 and 1.'
    """
    message, _, hint = str(error).partition(". ")
    return CheckResult(verdict, check, message.removesuffix("."), hint)


def to_frame(results: Iterable[CheckResult]) -> pd.DataFrame:
    """Return results as a table, a row each: verdict, check, result, what to do."""
    rows = [(r.verdict, r.check, r.message, r.hint) for r in results]
    return pd.DataFrame(rows, columns=["verdict", "check", "result", "what to do"])


def require(results: Sequence[CheckResult]) -> None:
    """Raise `TableError` with all errors at once, if there are any.

    Example:
        >>> require([CheckResult("fine", "gaps", "none")])
        >>> require([CheckResult("error", "gaps", "3 in income", "Drop these people.")])
        Traceback (most recent call last):
        ...
        lib.beyond.own_table.tables.TableError: This table can't be used yet. To correct:
          1. gaps: 3 in income. Drop these people.
    """
    errors = [r for r in results if r.is_error]
    if errors:
        lines = ["This table can't be used yet. To correct:"]
        for i, r in enumerate(errors, start=1):
            lines.append(f"  {i}. {r.check}: {r.message}. {r.hint}".rstrip())
        raise TableError("\n".join(lines))
