"""Parameter files in YAML: read with an error that says what to write instead."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.base import checks, inputs


def read(path: Path) -> dict[str, Any]:
    """Return the entries of a YAML file by name.

    Raises: ValueError: there is no such file (the message names those
        in its folder), or as `inputs.entries`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.yaml"
        >>> _ = path.write_text("n_actionable: 2")
        >>> read(path)
        {'n_actionable': 2}
    """
    if not path.is_file():
        there = sorted(other.stem for other in path.parent.glob("*.yaml"))
        raise ValueError(
            f"Expected a file {path}, found none. "
            f"Those in its folder: {', '.join(there) or 'none'}."
        )
    return inputs.entries(path)


def only(given: Any, allowed: Sequence[str], what: str) -> None:
    """Raise ValueError unless given is a mapping with no other keys than the allowed ones.

    Arguments:
        what: What a key is called in the message.

    Example:
        >>> only({"by": "race"}, ["by", "rates"], "entry of privileged")
        >>> only({"of": "race"}, ["by", "rates"], "entry of privileged")
        Traceback (most recent call last):
        ...
        ValueError: Unknown entry of privileged 'of': expected one of by, rates.
    """
    if not isinstance(given, dict):
        raise ValueError(f"Expected {', '.join(allowed)} with a value each, got {given!r}.")
    checks.known(what, given, allowed)
