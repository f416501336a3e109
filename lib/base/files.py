"""Where this project keeps its files, and how fitted models are saved and loaded.

A model is a safetensors file: tensors, and a header with everything
else. No pickles.
"""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
PARAMS = ROOT / "params"  # a folder for each size of the batch, and what tuning found
MODELS = ROOT / "models"  # the committed ones
DATA = ROOT / "data"  # tables of people that come with the repository
PUBLISHED = ROOT / "published"  # tables of papers and the GMSC graph, as CSV

ENDING = ".safetensors"
REMEDY = "`make reproduce`, then `make models`, makes this project's; or restore the file."


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
        cannot hold the settings.

    Example:
        >>> from tempfile import TemporaryDirectory
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
    try:
        metadata = {"model": json.dumps(header)}
    except TypeError as error:
        raise ValueError(
            f"The settings of {name} and what it was made with must be numbers, texts, "
            f"lists or dictionaries of these: {error}."
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    half_done = path.with_suffix(".partial")
    contents = {key: part.detach().contiguous() for key, part in tensors.items()}
    save_file(contents, half_done, metadata=metadata)
    os.replace(half_done, path)
    return path


def load(
    folder: Path, name: str, fingerprint: str = ""
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the settings of folder/name.safetensors.

    Arguments:
        folder: Where the model lies.
        name: What it was saved as.
        fingerprint: Of the population that it is to be used for; ""
            asks for no check.
    Raises: ValueError: the file is missing or damaged, or the model
        was fitted to another population. The message says to which,
        and what to do.

    Example:
        >>> tensors, settings = load(MODELS, "loan_classifier")
        >>> settings["features"][-2:]
        ['income', 'savings']
    """
    path = _path(folder, name)
    if not path.is_file():
        raise ValueError(f"Expected a fitted model at {path}, found none. {REMEDY}")
    try:
        with safe_open(path, framework="pt") as file:
            header = _header(file.metadata())
            settings, made_with = header["settings"], header["provenance"]
            names = file.keys()
            tensors = {key: file.get_tensor(key) for key in names}
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is damaged or was not written by this project ({error}). {REMEDY}"
        ) from error
    if fingerprint:
        _check_fingerprint(path, header.get("fingerprint", ""), fingerprint, made_with)
    return tensors, settings


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

    Example:
        >>> inside("models") == MODELS
        True
    """
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


def _header(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return settings, provenance and fingerprint; older files have a key for each."""
    if "model" in metadata:
        return json.loads(metadata["model"])
    return {key: json.loads(text) for key, text in metadata.items()}


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
