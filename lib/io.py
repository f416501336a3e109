"""Files: where they lie, models in safetensors, settings in YAML, tables in CSV.

A file is written whole or not at all. A model is a safetensors file:
its tensors, and in the metadata a JSON text with its settings, what
it was made with, and the fingerprint of the population that it was
fitted to. No pickles.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from tqdm.auto import tqdm

from lib import checks

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
PARAMS = ROOT / "params"
MODELS = ROOT / "models"  # the committed ones
DATA = ROOT / "data"  # tables of people that come with the repository
PUBLISHED = DATA / "published"  # tables of papers, as CSV
ENDING = ".safetensors"


def inside(folder: str | Path) -> Path:
    """Return the folder as an absolute path; relative ones start at the repository's root.

    Raises: ValueError: a relative path leads out of the repository.

    Example:
        >>> inside("models") == MODELS
        True
    """
    if not Path(folder).is_absolute() and os.path.normpath(folder).split(os.sep)[0] == "..":
        raise ValueError(
            f"{folder} leads out of the repository. Give an absolute path if that is meant."
        )
    return ROOT / folder


def write(path: Path, content: bytes | str) -> None:
    """Write a file in one step: it is there whole, or as it was before.

    Arguments:
        path: Of the file; its folder is made if it does not exist.
        content: Text is written as UTF-8.
    Raises: OSError: it can't be written, for instance because the
        disk is full, or its folder can't be made.
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(raw)
        partial.replace(path)
    except OSError as error:
        raise OSError(
            f"{path} can't be written, {len(raw):,} bytes: {error.strerror}. What was "
            "there before is whole."
        ) from error
    finally:
        with suppress(OSError):  # it may not be there, nor its folder
            partial.unlink()


@contextmanager
def in_file(path: str | Path, hint: str = "") -> Iterator[None]:
    """Raise what a block can't make of a file's content as ValueError that names the file.

    Arguments:
        path: Of the file; its name begins the message.
        hint: What to do about it; ends the message.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}{hint and ' '}{hint}") from error


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the entries of a YAML file by name.

    Raises: ValueError: there is no such file (the message names those
        in its folder), or it does not hold lines `name: value`.
    """
    if not path.is_file():
        others = sorted(other.stem for other in path.parent.glob("*.yaml"))
        raise ValueError(
            f"Expected a file {path}, found none. "
            f"Those in its folder: {', '.join(others) or 'none'}."
        )
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: This is not YAML: {error}.") from error
    if not isinstance(entries, dict):
        raise ValueError(
            f"{path}: It should hold lines `name: value`, got {entries!r:.60}."
        )
    return entries


def read_csv(path: Path, columns: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Return the table of a CSV file.

    Arguments:
        columns: Those that it needs; there may be others.
        options: As for `pandas.read_csv`.
    Raises: ValueError: there is no such file, it is no CSV in UTF-8,
        or a column is missing.
    """
    try:
        table = pd.read_csv(path, **options)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: It can't be read: {error}.") from error
    with in_file(path):
        checks.one_of("column that it needs:", columns, tuple(map(str, table)))
    return table


def save(
    folder: Path,
    name: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Save a model as folder/name.safetensors, and return the path.

    Arguments:
        folder: Made if it does not exist.
        name: Without the ending.
        tensors: The weights, as a `state_dict`.
        settings: What is needed to rebuild the model beside them, as
            JSON can hold it.
        made_with: What is needed to fit it again: sizes of the
            population, seed, epochs.
        fingerprint: Of the population that it was fitted to
            (`Population.fingerprint`).
    Raises: TypeError: JSON cannot hold the settings. OSError: as
        `write`.

    Example:
        >>> with TemporaryDirectory() as folder:
        ...     path = save(Path(folder), "mine", {"w": torch.ones(2)}, {"depth": 1}, {})
        ...     tensors, settings = load(Path(folder), "mine")
        >>> path.name, tensors["w"].tolist(), settings
        ('mine.safetensors', [1.0, 1.0], {'depth': 1})
    """
    path = folder / f"{name}{ENDING}"
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    header = {
        "settings": settings,
        "made_with": dict(made_with) | versions,
        "fingerprint": fingerprint,
    }
    contents = {key: tensor.detach().contiguous() for key, tensor in tensors.items()}
    write(path, to_bytes(contents, metadata={"model": json.dumps(header)}))
    return path


def load(
    folder: Path, name: str, fingerprint: str = ""
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the settings of folder/name.safetensors.

    Arguments:
        fingerprint: Of the population that it is to be used for; ""
            asks for no check.
    Raises: ValueError: the file is missing or damaged, or the model
        was fitted to another population.
    """
    path = folder / f"{name}{ENDING}"
    if not path.is_file():
        raise ValueError(
            f"Expected a fitted model at {path}, found none. Restore the file, or fit it."
        )
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["model"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        settings, made_with = header["settings"], header["made_with"]
        fitted_to = header["fingerprint"]
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no model, or damaged: {error}. Restore it, or fit it again."
        ) from error
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError(
            f"{path} holds NaN or infinite values. Restore it, or fit it again."
        )
    if fingerprint and fitted_to != fingerprint:
        sizes = ", ".join(f"{key} {value}" for key, value in made_with.items())
        raise ValueError(
            f"{path} was fitted to another population (made with {sizes}). Make the "
            "population with the same sizes and seed, or fit the model to this one."
        )
    return tensors, settings


@contextmanager
def loading(what: str, folder: Path, name: str) -> Iterator[None]:
    """Raise what a block finds wrong in a model file as ValueError that names the file."""
    try:
        yield
    except (ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        raise ValueError(
            f"{folder / name}{ENDING} holds no {what}: {error} Restore the file, or "
            "fit and save it again."
        ) from error


def same(name: str, folder: Path, other: Path) -> bool:
    """Return whether two folders hold the same model, settings and weights, to the bit."""
    if not (other / f"{name}{ENDING}").is_file():
        return False
    (tensors, settings), (others, other_settings) = load(folder, name), load(other, name)
    return (
        settings == other_settings
        and tensors.keys() == others.keys()
        and all(torch.equal(tensor, others[key]) for key, tensor in tensors.items())
    )


def flatten(models: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of models that share a file, called "model/tensor"."""
    return {
        f"{model}/{name}": tensor
        for model, tensors in models.items()
        for name, tensor in tensors.items()
    }


def unflatten(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return what `flatten` put together, by model and by the tensors' names."""
    models: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        model, _, rest = name.partition("/")
        models.setdefault(model, {})[rest] = tensor
    return models


def from_dict(kind: type[T], entries: Any) -> T:
    """Return a dataclass from what `dataclasses.asdict` made of it.

    Raises: ValueError: an entry is missing or unknown, or the class
        refuses a value.
    """
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    checks.keys(entries, names, f"setting of {kind.__name__}")
    if missing := [name for name in names if name not in entries]:
        raise ValueError(f"{kind.__name__} lacks {', '.join(missing)}.")
    return kind(**entries)


def progress_bar(label: str) -> Callable[[range], Iterable[int]]:
    """Return a function that wraps a range of steps in a progress bar.

    The bar is shown in JupyterLab and in a terminal, and nowhere
    else: a Jupyter server names the session of each kernel that it
    starts; papermill, nbval and nbconvert do not.

    Arguments:
        label: What stands in front of the bar.
    """
    watched = "JPY_SESSION_NAME" in os.environ or sys.stderr.isatty()
    return lambda steps: tqdm(steps, desc=label, leave=False, disable=not watched)
