"""Small valid files of every kind that loaders read: fuzzing and its tests start here."""

import dataclasses
import datetime
import decimal
import functools
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from safetensors.torch import save
from torch import Tensor

from lib.base import files
from lib.beyond.evaluation import willingness
from lib.beyond.hare import autoencoders, fitted
from lib.beyond.propose import propose
from lib.method import flow, icarma, loan
from lib.method.classifier import NetworkClassifier
from lib.paper import gmsc

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
    ",SeriousDlqin2yrs," + ",".join(gmsc.COLUMNS.values()) + "\n1,0,40,0,5000,3,1,0.5,"
    "0.3,0,0,0\n"
).encode()
OWN = b"person,age,income,paid,group\nA,30,2.5,1,x\nB,40,1.5,0,y\nC,50,4.5,1,x\n"
MINE = b"label: repaid\nkinds: {age: immutable}\nedges: {age: [income]}\nn_people: 1\n"
PROFILE = b"# a scheduler\nexecutor: local\njobs: 2\ndefault-resources: {mem_mb: 1000}\n"
PLAN = b"""{"parameters": {"problem": "loan", "members": [0], "models": "models",
  "solver": "icarma", "model": "loan_icarma_hard", "data": "runs/applicants",
  "outputs": "runs/recommend", "n_per_job": 250000}, "models": {"loan_flow": "a"},
  "parts": ["recommendations/blocks_000000_000000.parquet"]}"""
METHODS = (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)  # of zips
DAY = datetime.datetime(2020, 1, 31, 12)
CELLS: list[tuple[pa.DataType, list[Any]]] = [  # of a Parquet file: kinds, and some of each
    (pa.int64(), [1, None, -(2**63)]),
    (pa.uint8(), [0, 255]),
    (pa.float64(), [0.5, float("nan"), 1e308, None]),
    (pa.float16(), [0.5]),
    (pa.bool_(), [True, None]),
    (pa.string(), ["", "a", "easy", None, "\u00e9" * 40]),
    (pa.large_string(), ["a"]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
    (pa.date32(), [DAY.date(), None]),
    (pa.timestamp("ns", "CET"), [DAY]),
    (pa.time64("us"), [DAY.time()]),
    (pa.duration("s"), [datetime.timedelta(days=1)]),
    (pa.decimal128(6, 2), [decimal.Decimal("1.20"), None]),
    (pa.null(), [None]),
    (pa.binary(), [b"a"]),
    (pa.list_(pa.int8()), [[1], [], None]),
    (pa.struct([("x", pa.string())]), [{"x": "a"}, None]),
]
LINEAR = {"weight_0": torch.ones(2, 1), "bias_0": torch.zeros(1)}


def packed(
    content: bytes, name: str = "cs-training.csv", method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """Return a zip with one file."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", method) as file:
        file.writestr(name, content)
    return zipped.getvalue()


def parquets() -> list[bytes]:
    """Return Parquet files: with and without dictionaries, packed and not, by pandas."""
    table = pa.table({"age": [30, 40, None], "job": ["cook", "cook", None]})
    found = []
    for options in (
        {"compression": "none", "use_dictionary": False, "store_schema": False},
        {"compression": "snappy"},
        {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 1},
    ):
        packed = io.BytesIO()
        pq.write_table(table, packed, write_statistics=False, **options)
        found.append(packed.getvalue())
    packed = io.BytesIO()
    pd.DataFrame({"age": [1.5]}, index=["A"]).to_parquet(packed)
    return [*found, packed.getvalue()]


def applicants(compression: str) -> bytes:
    """Return a Parquet file of three people, one of whose ages is missing."""
    people = pa.table({"age": [30, None, 50], "paid": [True, False, True]})
    written = io.BytesIO()
    pq.write_table(people, written, row_group_size=2, compression=compression)
    return written.getvalue()


@functools.cache
def results() -> dict[str, bytes]:
    """Return a small result of each kind that is compared, by ending."""
    drawn = io.BytesIO()
    Image.new("RGB", (3, 2), "white").save(drawn, "png")
    model = saved(LINEAR, {"features": ["a", "b"]})
    return {".csv": CSV, ".png": drawn.getvalue(), ".safetensors": model}


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
