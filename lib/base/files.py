"""Where this project keeps its files, and how fitted models are saved and loaded.

A model is a safetensors file: tensors, and a header with everything
else. No pickles. What a file holds is checked before it is used:
`load` checks the header, `check_tensors` what a model's tensors have
to be like, and `rebuilt` its settings.
"""

import dataclasses
import errno
import hashlib
import json
import math
import os
import platform
import secrets
import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor

from lib.base import checks

FULL = (errno.ENOSPC, errno.EDQUOT)
HALF_DONE = ".partial"  # of a file that is being written, or was when its process ended


def write(path: Path, content: bytes | str) -> None:
    """Write a file in one step: it is there whole, or as it was before.

    What is written lies beside it until it is whole, as
    .<name>.<at random>.partial, so that two processes that write the
    same file don't meet.

    Arguments:
        path: Of the file; its folder is made if it does not exist.
        content: Text is written as UTF-8.
    Raises: OSError: it can't be written, for instance because the
        disk is full; what stood there before is whole.

    Example:
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "tables" / "one.csv"
        ...     write(path, "a,b\\n")
        ...     path.read_text(), [found.name for found in path.parent.iterdir()]
        ('a,b\\n', ['one.csv'])
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content
    half_done = path.with_name(f".{path.name}.{secrets.token_hex(4)}{HALF_DONE}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half_done.write_bytes(raw)
        os.replace(half_done, path)
    except OSError as error:
        way_out = "Make room, and start" if error.errno in FULL else "Mend that, and start"
        raise OSError(
            f"{path} can't be written, {len(raw):,} bytes: {error.strerror}. What was "
            f"there before is whole. {way_out} again: what is finished is kept."
        ) from error
    finally:
        with suppress(OSError):
            half_done.unlink(missing_ok=True)


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

    Raises: ValueError: there is no such file (the message names those
        in its folder), or it does not hold lines `name: value`.
    Example:
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
    if not path.is_file():
        there = sorted(other.stem for other in path.parent.glob("*.yaml"))
        raise ValueError(
            f"Expected a file {path}, found none. "
            f"Those in its folder: {', '.join(there) or 'none'}."
        )
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


ROOT = Path(__file__).resolve().parents[2]
PARAMS = ROOT / "params"  # a folder for each size of the batch, and what tuning found
MODELS = ROOT / "models"  # the committed ones
DATA = ROOT / "data"  # tables of people that come with the repository
PUBLISHED = ROOT / "data" / "published"  # tables of papers and the GMSC graph, as CSV

ENDING = ".safetensors"
REMEDY = (
    "`make all`, then `make models`, makes this project's; or restore the file."
    if (ROOT / "notebooks").is_dir()
    else "This package was installed without models: name the folder `models` of a clone."
)
MOST_BYTES = 1_000_000_000  # of a model; the largest of this project has 6 million
FLOATS = (torch.float32, torch.float64)
LARGEST = 2**62  # of the whole numbers in a header
T = TypeVar("T")


def save(
    folder: Path,
    name: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Save a model as folder/name.safetensors, and return the path.

    The file is written in one step: it is there whole or not at all.
    Equal models are equal files, byte by byte.

    Arguments:
        folder: Made if it does not exist.
        name: Any plain file name, without the ending.
        tensors: The weights.
        settings: What is needed to rebuild the model beside them, as
            JSON can hold it.
        made_with: What is needed to fit it again: sizes of the
            population, seed, epochs.
        fingerprint: Of the population that it was fitted to
            (`Population.fingerprint`). Without one, it can only be
            loaded without a check.
    Raises: ValueError: the name is not a plain file name, or JSON
        cannot hold the settings. OSError: as `files.write`.

    Example:
        >>> with TemporaryDirectory() as folder:
        ...     path = save(Path(folder), "mine", {"w": torch.ones(2)}, {"depth": 1}, {})
        ...     tensors, settings = load(Path(folder), "mine")
        >>> path.name, tensors["w"].tolist(), settings
        ('mine.safetensors', [1.0, 1.0], {'depth': 1})
    """
    path = _path(folder, name)
    versions = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "processor": platform.machine(),
    }
    # One key: safetensors writes several in an order that changes from run to run. The
    # order inside is kept, because that of the features in a graph means something.
    header = {
        "settings": settings,
        "provenance": dict(made_with) | versions,
        "fingerprint": fingerprint,
    }
    contents = {key: part.detach().contiguous() for key, part in tensors.items()}
    try:
        header["checksum"] = checksum(contents, header)
        metadata = {"model": json.dumps(header)}
    except TypeError as error:
        raise ValueError(
            f"The settings of {name} and what it was made with must be numbers, texts, "
            f"lists or dictionaries of these: {error}."
        ) from error
    write(path, as_bytes(contents, metadata=metadata))
    return path


def checksum(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    """Return a digest of a model: its tensors, and what stands in its header beside it.

    Raises: TypeError: JSON cannot hold the header.
    Example:
        >>> one, other = torch.tensor([1.0]), torch.tensor([1.5])
        >>> checksum({"w": one}, {}) == checksum({"w": other}, {})
        False
    """
    told = {key: value for key, value in header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(told).encode())
    for name in sorted(tensors):
        part = tensors[name]
        digest.update(f"{name} {part.dtype} {tuple(part.shape)}".encode())
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()[:32]


def load(
    folder: Path, name: str, fingerprint: str = ""
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the settings of folder/name.safetensors.

    Arguments:
        folder: Where the model lies.
        name: What it was saved as.
        fingerprint: Of the population that it is to be used for; ""
            asks for no check.
    Raises: ValueError: the file is missing or damaged, its checksum is
        not that of what it holds, or the model was fitted to another
        population. The message says to which, and what to do.

    Example:
        >>> tensors, settings = load(MODELS, "loan_classifier")
        >>> settings["features"][-2:]
        ['income', 'savings']
    """
    path = _path(folder, name)
    if not path.is_file():
        raise ValueError(f"Expected a fitted model at {path}, found none. {REMEDY}")
    tensors, metadata = read(path)
    parts = {"settings": dict, "provenance": dict, "fingerprint": str, "checksum": str}
    header = metadata.get("model")
    found: dict[str, Any] = header if isinstance(header, dict) else {}
    for part, kind in parts.items():
        if not isinstance(found.get(part), kind):
            raise ValueError(
                f"{path} is damaged or was not written by this project (its header has no "
                f"{part}). {REMEDY}"
            )
    if found["checksum"] != checksum(tensors, found):
        raise ValueError(
            f"{path} is damaged, or was changed after it was saved: it holds something "
            f"else than its checksum says. {REMEDY}"
        )
    if fingerprint:
        _check_fingerprint(path, found["fingerprint"], fingerprint, found["provenance"])
    return tensors, found["settings"]


def read(path: Path, remedy: str = REMEDY) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a model file, and what its header says, unchecked.

    Arguments:
        path: Of the file.
        remedy: What to do if it is damaged, for the message.
    Raises: ValueError: the file can't be read, is larger than a model
        is, or is damaged; a name stands in it twice.

    Example:
        >>> tensors, header = read(MODELS / "loan_classifier.safetensors")
        >>> tensors["bias_2"].shape, header["model"]["provenance"]["seed"]
        (torch.Size([1]), 0)
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        metadata = _metadata(path)
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {key: file.get_tensor(key) for key in names}, metadata
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged or was not written by this project ({error}). {remedy}"
        ) from error


@contextmanager
def holding(what: str, folder: Path, name: str) -> Iterator[None]:
    """Raise what a block finds wrong in a model file as ValueError that names the file.

    Arguments:
        what: The file should hold.
        folder, name: Of the file, as for `load`.

    Example:
        >>> with holding("classifier", Path("models"), "mine"):
        ...     check_tensors({}, {"weight_0": (2, 1)})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: models/mine.safetensors holds no classifier: weight_0 must have ...
    """
    try:
        yield
    except ValueError as error:
        said = f"{folder / name}{ENDING} holds no {what}: {error}"
        raise ValueError(f"{said} Restore the file, or fit and save it again.") from error


def check_tensors(
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, Sequence[int]],
    dtypes: Sequence[torch.dtype] = FLOATS,
) -> None:
    """Raise ValueError unless tensors are as a model needs them.

    They must have just these names and shapes, one dtype among these,
    and nothing but finite numbers.

    Arguments:
        tensors: By name.
        shapes: Of each, by name.
        dtypes: That all of them may have.

    Example:
        >>> check_tensors({"bias": torch.zeros(2)}, {"bias": (2,)})
        >>> check_tensors({"bias": torch.zeros(2)}, {"bias": (2,)}, [torch.float64])
        Traceback (most recent call last):
        ...
        ValueError: bias must be of torch.float64, got torch.float32.
        >>> check_tensors({"bias": torch.tensor([0.0, torch.nan])}, {"bias": (2,)})
        Traceback (most recent call last):
        ...
        ValueError: bias has 1 NaN or infinite values of 2, expected finite numbers.
    """
    came = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    due = {name: tuple(shape) for name, shape in shapes.items()}
    wrong = [name for name in due | came if came.get(name) != due.get(name)]
    if wrong:
        name, others = wrong[0], f" ({len(wrong)} tensors are wrong)" if wrong[1:] else ""
        raise ValueError(
            f"{name} must have shape {due.get(name, 'none')}, got "
            f"{came.get(name, 'none')}{others}."
        )
    first = next(iter(tensors.values())).dtype if tensors else dtypes[0]
    for name, tensor in tensors.items():
        if tensor.dtype not in dtypes or tensor.dtype != first:
            allowed = [first] if first in dtypes else dtypes
            raise ValueError(
                f"{name} must be of {' or '.join(map(str, allowed))}, got {tensor.dtype}."
            )
        ends = tensor.detach().aminmax() if tensor.numel() else ()  # NaN if there is one
        if not all(map(math.isfinite, ends)):
            n_wrong = int((~tensor.isfinite()).sum())
            raise ValueError(
                f"{name} has {n_wrong} NaN or infinite values of {tensor.numel()}, "
                "expected finite numbers."
            )


def layers(
    widths: Sequence[int], start: str = "", n_members: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's weights and biases, by name.

    Arguments:
        widths: Of its inputs, its hidden layers and its outputs.
        start: Of each name.
        n_members: Of a stack of networks; None: it is a single one.

    Example:
        >>> layers([7, 32, 1])
        {'weight_0': (7, 32), 'bias_0': (32,), 'weight_1': (32, 1), 'bias_1': (1,)}
        >>> layers([7, 4], "mask_", n_members=10)
        {'mask_weight_0': (10, 7, 4), 'mask_bias_0': (10, 1, 4)}
    """
    found: dict[str, tuple[int, ...]] = {}
    for i, (n_in, n_out) in enumerate(pairwise(widths)):
        weight, bias = (n_in, n_out), (n_out,)
        stacked = () if n_members is None else (n_members,)
        found[f"{start}weight_{i}"] = (*stacked, *weight)
        found[f"{start}bias_{i}"] = (*stacked, 1, *bias) if stacked else bias
    return found


def rebuilt(kind: type[T], given: Any) -> T:
    """Return a dataclass from what `dataclasses.asdict` made of it, with types checked.

    Arguments:
        kind: Its fields are numbers, bools, None or such dataclasses.
        given: A value for each field, by name.
    Raises: ValueError: a field is missing, unknown or of another
        type; or as the dataclass.

    Example:
        >>> @dataclasses.dataclass
        ... class Settings:
        ...     tau: float
        ...     hidden: int | None
        >>> rebuilt(Settings, {"tau": 1, "hidden": None})
        Settings(tau=1, hidden=None)
        >>> rebuilt(Settings, {"tau": 0.5, "hidden": "8"})
        Traceback (most recent call last):
        ...
        ValueError: hidden of Settings must be int | None, got '8'.
    """
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    names = [field.name for field in fields]
    if not isinstance(given, dict):
        raise ValueError(f"{kind.__name__} must be settings by name, got {given!r}.")
    if missing := [name for name in names if name not in given]:
        raise ValueError(f"{kind.__name__} lacks {', '.join(missing)}.")
    checks.known(f"setting of {kind.__name__}", given, names)
    values = {}
    for field in fields:
        value = given[field.name]
        if dataclasses.is_dataclass(field.type):
            value = rebuilt(typing.cast(type[Any], field.type), value)
        elif not _fits(value, typing.get_args(field.type) or (field.type,)):
            expected = getattr(field.type, "__name__", str(field.type))
            raise ValueError(
                f"{field.name} of {kind.__name__} must be {expected}, got {value!r}."
            )
        values[field.name] = value
    return kind(**values)


def in_one_file(models: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of models that share a file, called "model/tensor".

    Arguments:
        models: Tensors by their own names, by a name of the model
            without a slash.
    Raises: ValueError: a model's name holds a slash.

    Example:
        >>> one = torch.ones(1)
        >>> list(in_one_file({"a": {"w": one, "b": one}, "other": {"w": one}}))
        ['a/w', 'a/b', 'other/w']
    """
    for name in models:
        if "/" in name:
            raise ValueError(f"Names of models must not hold a slash, got {name!r}.")
    return {f"{a}/{b}": part for a, own in models.items() for b, part in own.items()}


def by_first_name(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
) -> dict[str, dict[str, Tensor]]:
    """Return what `in_one_file` put together, by model and by the tensors' own names.

    Arguments:
        tensors: Called "model/tensor".
        settings: Of each model, by its name.
    Raises: ValueError: there is no model, or a tensor of none.

    Example:
        >>> tensors = {"a/w": torch.ones(1), "b/w": torch.ones(1)}
        >>> parts = by_first_name(tensors, {"b": 1, "a": 2})
        >>> {name: list(own) for name, own in parts.items()}
        {'b': ['w'], 'a': ['w']}
    """
    if not settings:
        raise ValueError("it has settings of no model.")
    found: dict[str, dict[str, Tensor]] = {model: {} for model in settings}
    for name, tensor in tensors.items():
        model, slash, own = name.partition("/")
        if model not in found or not slash:
            raise ValueError(f"its tensor {name} is of no model that it has settings of.")
        found[model][own] = tensor
    return found


def filled(what: str, given: Any) -> list[Any]:
    """Return a header's list if it is one, with something in it.

    Raises: ValueError: it is something else.

    Example:
        >>> filled("settings", [1])
        [1]
        >>> filled("settings", None)
        Traceback (most recent call last):
        ...
        ValueError: settings must be a list with something in it, got None.
    """
    if not isinstance(given, list) or not given:
        raise ValueError(f"{what} must be a list with something in it, got {given!r}.")
    return given


def names(what: str, given: Any) -> list[str]:
    """Return a header's list of names, each once; at least one.

    Raises: ValueError: it is something else.

    Example:
        >>> names("features", ["age", "age"])
        Traceback (most recent call last):
        ...
        ValueError: features must be names, each once, got ['age', 'age'].
    """
    found = filled(what, given)
    if not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise ValueError(f"{what} must be names, each once, got {given!r}.")
    return found


def whole_numbers(what: str, given: Any) -> list[int]:
    """Return a header's list of whole numbers, 0 or more, such as seeds; at least one.

    Raises: ValueError: it is something else.

    Example:
        >>> whole_numbers("seeds", [1000, 2000])
        [1000, 2000]
        >>> whole_numbers("seeds", [-1])
        Traceback (most recent call last):
        ...
        ValueError: seeds must be whole numbers, 0 or more, got [-1].
    """
    is_one = [_fits(value, (int,)) and value >= 0 for value in filled(what, given)]
    if not all(is_one):
        raise ValueError(f"{what} must be whole numbers, 0 or more, got {given!r}.")
    return given


def same(name: str, folder: Path, other: Path) -> bool:
    """Return whether two folders hold the same model.

    It is the same if settings are equal, and weights to the bit. What
    it was made with may differ. A model that the other folder does
    not have is not the same.

    Arguments:
        name: What it was saved as, in both.
        folder, other: The two folders; the first must have it.
    Raises: ValueError: the first folder does not have it, or a file
        is damaged.

    Example:
        >>> same("loan_flow", MODELS, MODELS), same("loan_flow", MODELS, ROOT / "nowhere")
        (True, False)
    """
    if not _path(other, name).is_file():
        return False
    (tensors, settings), (others, other_settings) = load(folder, name), load(other, name)
    return (
        settings == other_settings
        and tensors.keys() == others.keys()
        and all(torch.equal(tensor, others[key]) for key, tensor in tensors.items())
    )


def difference(tensors: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> str:
    """Return in what named tensors differ from others, in words; "" if in no bit.

    Not a number equals itself, and 0 is not -0.

    Example:
        >>> one, other = {"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([1.0, 2.5])}
        >>> difference(one, one), difference(one, other)
        ('', '1 of 2 values, by 0.5 at most, in w')
        >>> difference(one, {"w": torch.ones(3)}), difference(one, {})
        ('w is (2,) torch.float32, not (3,) torch.float32', 'has w, which the other lacks')
    """
    for here, there, has in ((tensors, others, "has"), (others, tensors, "lacks")):
        if names := [name for name in here if name not in there]:
            lacks = "the other lacks" if has == "has" else "the other has"
            return f"{has} {', '.join(names)}, which {lacks}"
    n_values, n_differ, most, where = 0, 0, 0.0, []
    for name, tensor in tensors.items():
        own, other = tensor.detach().numpy(), others[name].detach().numpy()
        if own.shape != other.shape or own.dtype != other.dtype:
            kinds = [f"{part.shape} torch.{part.dtype}" for part in (own, other)]
            return f"{name} is {kinds[0]}, not {kinds[1]}"
        n_values += own.size
        bits = [
            np.ascontiguousarray(part).reshape(-1, 1).view(np.uint8)
            for part in (own, other)
        ]
        differs = (bits[0] != bits[1]).any(-1)
        if differs.any():
            n_differ += int(differs.sum())
            pairs = (part.reshape(-1)[differs].astype(float) for part in (own, other))
            most = max(most, float(np.nanmax(np.abs(np.subtract(*pairs)), initial=0.0)))
            where.append(name)
    if not where:
        return ""
    named = ", ".join(where[:3]) + (f" and {len(where) - 3} more" if where[3:] else "")
    return f"{n_differ:,} of {n_values:,} values, by {most:.2g} at most, in {named}"


def inside(folder: str | Path) -> Path:
    """Return the folder as an absolute path; relative ones start at the repository's root.

    An absolute path is on purpose and taken as it is.

    Raises: ValueError: a relative path leads out of the repository.

    Example:
        >>> inside("models") == MODELS
        True
        >>> inside("../models")
        Traceback (most recent call last):
        ...
        ValueError: ../models leads out of the repository. Give an absolute path if ...
    """
    if not Path(folder).is_absolute() and os.path.normpath(folder).split(os.sep)[0] == "..":
        raise ValueError(
            f"{folder} leads out of the repository. Give an absolute path if that is meant."
        )
    return ROOT / folder


def _path(folder: Path, name: str) -> Path:
    """Return where a model lies; raise ValueError unless its name is a plain file name."""
    plain = bool(name) and not name.startswith(".") and not set(name) & set("/\\\0")
    if not plain or name.endswith(ENDING):
        raise ValueError(
            f"A model cannot be called {name!r}: expected a plain file name, without a "
            f"folder and without {ENDING}."
        )
    return folder / f"{name}{ENDING}"


def _metadata(path: Path) -> dict[str, Any]:
    """Return what the header of a model file says beside its tensors.

    safetensors itself takes the last of two names that are the same.

    Raises: OSError: it can't be read. ValueError: it is no header.
    """
    with open(path, "rb") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
        if n_bytes > MOST_JSON:
            raise ValueError(f"a header of {n_bytes:,} bytes")
        header = parsed(file.read(n_bytes).decode("utf-8"))
    texts = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not all(isinstance(t, str) for t in texts.values()):
        raise ValueError("its header has no settings")
    return {key: parsed(said) for key, said in texts.items()}


def _fits(value: Any, kinds: Sequence[Any]) -> bool:
    """Return whether a header's value is of one of these types; an int may be a float."""
    if isinstance(value, bool) or value is None:
        return type(value) in kinds
    if isinstance(value, int):
        return (int in kinds or float in kinds) and abs(value) <= LARGEST
    return type(value) in kinds and not (isinstance(value, float) and math.isnan(value))


def _check_fingerprint(
    path: Path, own: str, expected: str, made_with: Mapping[str, Any]
) -> None:
    """Raise ValueError unless a model was fitted to the expected population."""
    if own == expected:
        return
    versions = ("torch", "numpy", "processor")
    sizes = [f"{key} {value}" for key, value in made_with.items() if key not in versions]
    if not own:
        raise ValueError(
            f"{path} does not say which population it was fitted to. Save it again with "
            "fingerprint=population.fingerprint, or fit it again."
        )
    raise ValueError(
        f"{path} was fitted to another population (made with {', '.join(sizes)}; its "
        f"fingerprint is {own}). Features, their kinds or their scaler differ in the "
        f"population at hand (fingerprint {expected}). Make the population with the same "
        "sizes and seed, or fit the model again to this one."
    )
