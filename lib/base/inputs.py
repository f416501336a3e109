"""Files that somebody hands over: read within bounds, with errors that name the file.

Whatever a file holds, reading it ends with its content or with a
ValueError. How large it is, how deep, and whether a name stands in it
twice is found out before anything is made of it.
"""

import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

MOST_PARAMETERS = 100_000  # bytes of a YAML file; those of this project have below 2,000
MOST_JSON = 100_000_000  # bytes of a notebook, or of a model's header
DEEPEST = 20  # brackets within brackets


@contextmanager
def in_file(path: str | Path, way_out: str = "") -> Iterator[None]:
    """Raise what a block can't make of a file's content as ValueError that names the file.

    Arguments:
        path: Of the file; its name begins the message.
        way_out: What to do about it; ends the message.
    Example:
        >>> with in_file("mine.yaml", "Mend it."):
        ...     raise ValueError("seed is -1, expected 0 or more.")
        Traceback (most recent call last):
        ...
        ValueError: mine.yaml: seed is -1, expected 0 or more. Mend it.
    """
    try:
        yield
    except (ValueError, RecursionError) as error:
        said = str(error) or type(error).__name__
        raise ValueError(f"{path}: {said}{way_out and ' '}{way_out}") from error


def content(path: Path, most: int) -> bytes:
    """Return the bytes of a file, if there are not too many.

    Arguments:
        path: Of a plain file.
        most: So many bytes at most.
    Raises: ValueError: there is no such file, it can't be read, or it
        is larger.
    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
        >>> _ = path.write_text("income,savings")
        >>> content(path, 100)
        b'income,savings'
        >>> content(path, 10)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...answers.csv is 14 bytes long: expected 10 at most. Is it the right...
    """
    if not path.is_file():
        raise ValueError(f"There is no file {path}: expected one to read.")
    try:
        with open(path, "rb") as file:
            found = file.read(most + 1)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}.") from error
    if len(found) > most:
        raise ValueError(
            f"{path} is {path.stat().st_size:,} bytes long: expected {most:,} at most. Is "
            "it the right file?"
        )
    return found


def text(path: Path, most: int) -> str:
    """Return the text of a file in UTF-8; a mark at its beginning, as of Excel, is dropped.

    Raises: ValueError: as `content`, or it is no text.
    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
        >>> _ = path.write_bytes(b"income: caf\\xe9")
        >>> text(path, 100)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...answers.csv is no text in UTF-8 (byte 11): save it as UTF-8.
    """
    try:
        return content(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no text in UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error


def parsed(json_text: str) -> Any:
    """Return what a JSON text says; infinity may stand in it.

    Raises: ValueError: it is no JSON, too deep, has a key twice, or a
        number that is none.
    Example:
        >>> parsed('{"cap": Infinity, "seeds": [1, 2]}')
        {'cap': inf, 'seeds': [1, 2]}
        >>> parsed('{"seed": 1, "seed": 2}')
        Traceback (most recent call last):
        ...
        ValueError: 'seed' stands there twice. Keep one.
    """
    try:
        return json.loads(
            json_text, object_pairs_hook=_each_once, parse_constant=_only_infinity
        )
    except RecursionError as error:
        raise ValueError("Its brackets are too deep.") from error


def entries(path: Path) -> dict[str, Any]:
    """Return the entries of a YAML file by name.

    The file is plain: names, numbers, texts, lists and mappings.
    Tags, and anchors with their references, are refused; so is a name
    that stands twice in one place, of which YAML keeps the last.

    Raises: ValueError: there is no such file, or it does not hold
        lines `name: value`.
    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.yaml"
        >>> _ = path.write_text("n_actionable: 2")
        >>> entries(path)
        {'n_actionable': 2}
        >>> _ = path.write_text("seed: 1\\nseed: 2")
        >>> entries(path)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...mine.yaml: line 2: 'seed' stands there twice. Keep one.
    """
    said = text(path, MOST_PARAMETERS)
    with in_file(path):
        try:
            _check_plain(said)
            given = yaml.load(said, _Loader)  # a SafeLoader: it makes plain values only
        except yaml.YAMLError as error:
            raise ValueError(f"This is not YAML: {error}.") from error
        except OverflowError as error:
            raise ValueError("It holds a sign or a number that is too large.") from error
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            raise ValueError(
                f"It should hold lines `name: value`, it holds {_shortened(given)}."
            )
    return given


class _Loader(yaml.SafeLoader):
    """Make plain values of YAML, and refuse a name that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        found = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            line = f"line {key.start_mark.line + 1}: "
            if not isinstance(name, Hashable):
                raise ValueError(f"{line}a list can't be a name.")
            if name in found:
                raise ValueError(f"{line}{name!r} stands there twice. Keep one.")
            found.add(name)
        return super().construct_mapping(node, deep)


def _check_plain(said: str) -> None:
    """Raise ValueError if a YAML text is deep, or has tags, anchors or references."""
    depth = 0
    for event in yaml.parse(said, yaml.SafeLoader):
        line = f"line {event.start_mark.line + 1}: "
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError(f"{line}more than {DEEPEST} brackets within brackets.")
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise ValueError(f"{line}& and * are not allowed. Write it out.")
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"{line}the tag {event.tag} is not allowed. Leave it out.")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dictionary, unless a key stands twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} stands there twice. Keep one.")
        found[key] = value
    return found


def _only_infinity(name: str) -> float:
    """Return infinity, which JSON calls so; raise ValueError for NaN."""
    if name == "NaN":
        raise ValueError("It holds NaN, expected numbers.")
    return float(name)


def _shortened(value: Any) -> str:
    """Return a value as Python writes it, cut after a few words."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:60]}..."
