"""Saving and loading fitted models: safetensors, with their settings in the header. No pickles."""

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

from lib.base import checks

ROOT = Path(__file__).resolve().parents[2]
PARAMS = ROOT / "params"  # a folder for each size of the batch, and what tuning found
MODELS = ROOT / "models"  # the committed ones
PUBLISHED = ROOT / "published"  # the paper's tables and the GMSC graph, as CSV


def save(
    folder: Path,
    name: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    made_with: Mapping[str, Any],
    fingerprint: str = "",
) -> Path:
    """Write tensors, settings and provenance to folder/name.safetensors, in one step; return the path.

    Arguments:
        settings: What is needed to rebuild the model.
        made_with: What is needed to fit it again: sizes of the population, seed, epochs.
        fingerprint: Of the population that it was fitted to (`Population.fingerprint`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.safetensors"
    half_done = path.with_suffix(".partial")
    versions = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "processor": platform.machine(),
    }
    # one key: safetensors writes several in random order, and equal models would differ in bytes
    header = {
        "settings": settings,
        "provenance": dict(made_with) | versions,
        "fingerprint": fingerprint,
    }
    save_file(
        {k: v.detach().contiguous() for k, v in tensors.items()},
        half_done,
        metadata={"model": json.dumps(header)},
    )
    os.replace(half_done, path)
    return path


def load(
    folder: Path, name: str, fingerprint: str = ""
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the settings of folder/name.safetensors.

    Arguments:
        fingerprint: Of the population that it is to be used for; "" asks for no check.
    Raises: ValueError: the file is missing or damaged, or the model was fitted to another
        population. The message says to which, and what to do.
    """
    path = folder / f"{name}.safetensors"
    remedy = (
        "`make reproduce`, then `make models`, makes this project's; or restore the file."
    )
    if not path.is_file():
        raise ValueError(f"Expected a fitted model at {path}, found none. {remedy}")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()["model"])
            settings, provenance = header["settings"], header["provenance"]
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is damaged or was not written by this project ({error}). {remedy}"
        ) from error
    if fingerprint and header.get("fingerprint") != fingerprint:
        fitted_to = ", ".join(f"{key} {value}" for key, value in provenance.items())
        raise ValueError(
            f"{path} was fitted to another population (made with {fitted_to}): its features, "
            "their kinds or their scaler differ from those of the population at hand. Make "
            "the population with the same sizes and seed, or fit the model again to this one."
        )
    return tensors, settings


def same(name: str, folder: Path, other: Path) -> bool:
    """Whether the other folder holds the same model: equal settings, and weights equal to the bit."""
    if not (other / f"{name}.safetensors").is_file():
        return False
    (tensors, settings), (others, other_settings) = load(folder, name), load(other, name)
    return (
        settings == other_settings
        and tensors.keys() == others.keys()
        and all(torch.equal(tensor, others[key]) for key, tensor in tensors.items())
    )


def inside(folder: str | Path) -> Path:
    """Return the folder as an absolute path; relative ones start at the repository's root.

    Example:
        >>> inside("models") == MODELS
        True
    """
    return ROOT / folder
