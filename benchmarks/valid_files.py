"""Small valid files of every kind that loaders read: fuzzing and its tests start here."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import save
from torch import Tensor

from lib.base import files
from lib.causal import flow
from lib.problem import gmsc, gmsc_data, loan
from lib.problem.classifier import NetworkClassifier
from lib.solvers import autoencoders, fitted, icarma, propose
from lib.studies import willingness

CSV = b"age,paid\n30,1\n40,0\n"
SCENARIO = (
    b"n_actionable: 2\nprivileged:\n  by: race\n  rates: {white: 0.9, non-white: 0.05}\n"
)
GROUPS = (
    b"income:\n  feature: income\n  quantiles: [0.75]\n  of: refused\n  labels: [a, b]\n"
)
NOTEBOOK = b"""{"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]},
  "source": ["n = 1\\n", "ks = [3]"]}]}"""
ANSWERS = ",".join(willingness.COLUMNS).encode() + b"\nP1,2,0.4,3,5\n"
RAW = (
    ",SeriousDlqin2yrs," + ",".join(gmsc_data.COLUMNS.values()) + "\n1,0,40,0,5000,3,1,0.5,"
    "0.3,0,0,0\n"
).encode()
LINEAR = {"weight_0": torch.ones(2, 1), "bias_0": torch.zeros(1)}


def packed(content: bytes, name: str = "cs-training.csv") -> bytes:
    """Return a zip with one file."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return zipped.getvalue()


def of_columns(compression: str) -> bytes:
    """Return a Parquet file of three people, one of whose ages is missing."""
    people = pa.table({"age": [30, None, 50], "paid": [True, False, True]})
    written = io.BytesIO()
    pq.write_table(people, written, row_group_size=2, compression=compression)
    return written.getvalue()


def saved(tensors: dict[str, Tensor], settings: Any) -> bytes:
    """Return the bytes of a model file."""
    header = {"settings": settings, "provenance": {}, "fingerprint": ""}
    return save(tensors, {"model": json.dumps(header)})


def small_models(problem: Any, table: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a small model of each kind, (tensors, settings), and what loads it."""

    def zeros(shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
        return {name: torch.zeros(shape) for name, shape in shapes.items()}

    members = icarma.Settings(hidden=2)
    two = {"seeds": [1, 2], "ids": [0, 1], "settings": [as_json(members)] * 2}
    small = propose.Settings(hidden=2, n_hidden=1)
    weights = zeros(files.layers(propose.widths(problem, small, 1)))
    proposer = weights | {"sets": torch.ones(1, 4, dtype=torch.bool)}
    h = zeros(files.layers([len(loan.KINDS), 2, 1]))
    density, settings = files.load(files.MODELS, "loan_flow")
    nets = {
        f"compas/LR/1/{i}": part.double()
        for i, part in enumerate(zeros(files.layers([len(table.features), 1])).values())
    }
    for net, widths in autoencoders.widths(table, "CRUDS").items():
        own = zeros(files.layers(widths)).values()
        nets |= {f"compas/CRUDS/{net}/{i}": part for i, part in enumerate(own)}
    prints = {"fingerprints": {"compas": table.fingerprint}}
    models: dict[str, Any] = {
        "classifier": (h, {"features": list(loan.KINDS)}),
        "flow": (density, settings),
        "flows": ({f"a/{k}": v for k, v in density.items()}, {"a": settings}),
        "icarma": (zeros(icarma.weight_shapes(problem, 2, 2)), two),
        "proposers": ({f"a/{k}": v for k, v in proposer.items()}, {"a": as_json(small)}),
        "fits": (nets, prints),
        "gmsc_scaler": files.load(files.MODELS, "gmsc_scaler"),
    }
    own = problem.population.fingerprint
    loads: dict[str, Callable[[Path], object]] = {
        "classifier": lambda folder: NetworkClassifier.load(folder, "classifier", own),
        "flow": lambda folder: flow.CausalFlow.load(folder, "flow", own),
        "flows": lambda folder: flow.load_all(folder, "flows", own),
        "icarma": lambda folder: icarma.ICarma.load(folder, "icarma", problem),
        "proposers": lambda folder: propose.load_all(folder, "proposers", problem),
        "fits": lambda folder: fitted.load(folder, "fits", {"compas": table}),
        "gmsc_scaler": gmsc.scaler,
    }
    return models, loads


def as_json(settings: Any) -> Any:
    """Return a dataclass as a header holds it."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))
