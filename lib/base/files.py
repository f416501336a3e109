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

MADE_BY = {
    "loan_classifier": "notebooks/01_data_and_scm.ipynb",
    "loan_flow": "notebooks/02_causal_flow.ipynb",
    "loan_icarma_hard": "notebooks/03_icarma_training.ipynb",
    "loan_icarma_ranking": "workflow/train.py",
    "loan_icarma_score": "workflow/train.py",
    "loan_icarma_rco": "workflow/train.py",
    "loan_carma": "workflow/train.py",
    "gmsc_scaler": "workflow/train.py",
    "gmsc_classifier": "workflow/train.py",
    "gmsc_flow": "workflow/train.py",
    "gmsc_icarma": "workflow/train.py",
    "gmsc_other_flows": "workflow/train.py",
}


def save(
    folder: Path,
    name: str,
    tensors: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    made_with: Mapping[str, Any],
) -> Path:
    """Write tensors, settings and provenance to folder/name.safetensors, in one step; return the path.

    Arguments:
        settings: What is needed to rebuild the model.
        made_with: What is needed to fit it again: sizes of the population, seed, epochs.
    """
    checks.known("model", [name], tuple(MADE_BY))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.safetensors"
    half_done = path.with_suffix(".partial")
    versions = {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "processor": platform.machine(),
    }
    provenance = {"made_by": MADE_BY[name]} | dict(made_with) | versions
    header = {"settings": json.dumps(settings), "provenance": json.dumps(provenance)}
    save_file(
        {k: v.detach().contiguous() for k, v in tensors.items()}, half_done, metadata=header
    )
    os.replace(half_done, path)
    return path


def load(folder: Path, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and settings of folder/name.safetensors.

    Raises: ValueError: the file is missing or damaged; the message names the command that makes it.
    """
    checks.known("model", [name], tuple(MADE_BY))
    path = folder / f"{name}.safetensors"
    remedy = f"{MADE_BY[name]} makes it: `make reproduce`, then `make models` to keep what was made; or restore the file."
    if not path.is_file():
        raise ValueError(f"Expected a fitted model at {path}, found none. {remedy}")
    try:
        with safe_open(path, framework="pt") as file:
            settings = json.loads(file.metadata()["settings"])
            return {key: file.get_tensor(key) for key in file.keys()}, settings
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is damaged or was not written by this project ({error}). {remedy}"
        ) from error


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
