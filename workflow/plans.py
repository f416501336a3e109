"""Plans: what a run of many parts is made of, kept beside them, so that no two runs mix."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from parameters import ROOT

from lib.base import files, rooms

MOST_BYTES = 100_000_000  # of a plan
WAY_OUT = "Delete the folder, and begin anew."  # where a plan is damaged
PACKAGES = ("torch", "numpy", "pyarrow")


def made_with(program: str, models: Sequence[Path]) -> dict[str, Any]:
    """Return what parts are made with: models, code and versions, as JSON can hold it.

    Arguments:
        program: Of the parts; what it imports of lib counts, too.
        models: Files.

    Example:
        >>> sorted(made_with("workflow/seeds.py", []))
        ['code', 'models', 'versions']
    """
    return {
        "models": {path.name: digest([path]) for path in models},
        "code": rooms.digest(program, *rooms.imported_by(program, root=ROOT), root=ROOT),
        "versions": {name: version(name) for name in PACKAGES}
        | {"processor": platform.machine()},
    }


def leave(plan: Mapping[str, Any], outputs: Path, parts: str) -> None:
    """Write a plan for the jobs, unless it is there.

    Arguments:
        plan: As JSON gives it back.
        outputs: Folder of the run.
        parts: Folder of its parts, in it.
    Raises: ValueError: another plan is there, or parts without one; or
        this one holds NaN, with which it could not be read again.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     leave({"n_seeds": 1, "parts": []}, Path(folder), "parts")
        ...     leave({"n_seeds": 1, "parts": []}, Path(folder), "parts")
        ...     leave({"n_seeds": 2}, Path(folder), "parts")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: ... was begun with others: n_seeds. Parts of two runs would be mixed...
    """
    path, said = outputs / "plan.json", json.dumps(plan, indent=1)
    with files.in_file(path, "Fill what is empty in the parameters, or in their table."):
        files.parsed(said)
    if path.is_file():
        check_same(plan, outputs)
    elif any((outputs / parts).glob("*")):
        raise ValueError(
            f"{outputs / parts} holds parts of a run whose plan.json is gone. Name another "
            "folder as outputs, or delete this one."
        )
    else:
        files.write(path, said)


def read(outputs: Path) -> dict[str, Any]:
    """Return the plan of a folder; its "parts" are texts.

    Raises: ValueError: there is none, or it is damaged.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "plan.json").write_text("[]")
        ...     read(Path(folder))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: ...plan.json: It is no plan: expected an object with a list of parts...
    """
    path = outputs / "plan.json"
    with files.in_file(path, WAY_OUT):
        plan = files.parsed(files.text(path, MOST_BYTES))
        parts = plan.get("parts") if isinstance(plan, dict) else None
        if not isinstance(parts, list) or not all(isinstance(own, str) for own in parts):
            raise ValueError(
                f"It is no plan: expected an object with a list of parts, got "
                f"{json.dumps(plan)[:60]}."
            )
    return plan


def check_same(now: Mapping[str, Any], outputs: Path) -> None:
    """Raise ValueError if something is not as it was when the folder's plan was made."""
    before = read(outputs)
    if differ := [key for key in now if now[key] != before.get(key)]:
        raise ValueError(
            f"{outputs} was begun with others: {', '.join(differ)}. Parts of two runs "
            "would be mixed: name another folder as outputs, or delete this one."
        )


def digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the content of files, one after the other.

    Example:
        >>> digest([])[:8]
        'e3b0c442'
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
