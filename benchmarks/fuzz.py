"""Throw damaged files at every loader: it reads them, or raises ValueError with their name.

    pip install --target runs/atheris atheris==3.0.0
    PYTHONPATH=runs/atheris:workflow .venv/bin/python benchmarks/fuzz.py
    PYTHONPATH=runs/atheris:workflow .venv/bin/python benchmarks/fuzz.py models 600

The second line tries all targets in turn, a minute each (or as many seconds as stand
behind it); the third one of them, for 600 seconds. Each starts from small valid
files and is led by coverage. It ends with how many inputs it tried, or at the first that
crashes: that one lies in runs/fuzz, and named in the place of seconds, it is tried again.
What is found becomes a test in tests/test_unsafe.py.
"""

import lib.pinned

import functools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["lib", "parameters", "yaml", "csv", "zipfile"]):
    import parameters

    from lib.base import csv_files, files, inputs, parquet
    from lib.preferences import scores
    from lib.problem import gmsc_data, loan, tabular
    from lib.problem.classifier import NetworkClassifier
    from lib.studies import groups, scenarios, willingness, yaml_files

import pandas as pd
import torch
import valid_files
from safetensors.torch import save
from torch import Tensor

FOUND = files.ROOT / "runs" / "fuzz"
FEATURES = ("income", "savings", "loan_amount")
MEMORY = Path("/dev/shm")  # where there is one, files are not written to a disk
FOLDER = (MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())) / "icarma_fuzz"
FOLDER.mkdir(exist_ok=True)
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**70,
    0.5,
    -0.5,
    float("inf"),
    float("nan"),
    "",
    "a",
]
ODD += [[], [1], [[]], ["a", "a"], {}, {"a": 1}, {"gamma": None}, "1", 1e308]

Try = Callable[[bytes], object]


def file_of(name: str, load: Callable[[Path], object]) -> Try:
    """Return what writes bytes to a file of this name and loads it."""
    path = FOLDER / name

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        try:
            load(path)
        except ValueError as error:
            if path.name not in str(error) and path.stem not in str(error):
                raise RuntimeError(f"The error does not name the file: {error}") from error

    return attempt


def quiet(use: Callable[[bytes], object]) -> Try:
    """Return what tries bytes, for loaders that are not told of a file."""

    def attempt(data: bytes) -> None:
        try:
            use(data)
        except ValueError:
            return

    return attempt


def in_words(data: bytes) -> None:
    """Read one person's answers."""
    scores.from_words(data.decode("utf-8", "replace"), FEATURES)


def as_frame(data: bytes) -> None:
    """Read a frame whose cells are of all sorts."""
    given = atheris.FuzzedDataProvider(data)
    cells: list[Any] = ["easy", "hard", "can't", 1, 2.0, *ODD, pd.NaT, pd.NA]
    names = [*FEATURES, "name", "", 3]
    columns = [given.PickValueInList(names) for _ in range(given.ConsumeIntInRange(0, 5))]
    rows = [
        [given.PickValueInList(cells) for _ in columns]
        for _ in range(given.ConsumeIntInRange(0, 3))
    ]
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    if given.ConsumeBool():
        frame = frame.reindex(columns=list(FEATURES))
    scores.from_frame(frame, FEATURES)


def of_a_table(data: bytes) -> None:
    """Read a data set of HARE's kind from a csv."""
    table = csv_files.table(data, ["age", "paid"])
    tabular.from_frames("own", {"train": table, "test": table}, "paid", ("age",), (), ())


@functools.cache
def known_parameters() -> dict[str, Any]:
    """Return the paper's shared parameters."""
    return parameters.read_shared("paper")


@functools.cache
def known_attributes() -> Any:
    """Return the attributes that people are told apart by."""
    return groups.read_attributes(files.PARAMS / "groups.yaml", tuple(loan.KINDS))


def of_parameters(path: Path) -> None:
    """Check a parameter file against the paper's."""
    known = known_parameters()
    where = path.name
    given = inputs.entries(path)
    parameters.check_parameters(given, known | {"n_epochs": None, "ks": [4, 3]}, where)
    parameters._check_folders(given, where)


def of_yaml(path: Path) -> None:
    """Read a scenario, and attributes that make groups."""
    known = known_attributes()
    actionable = tuple(name for name, kind in loan.KINDS.items() if kind == "actionable")
    for read in (
        lambda: scenarios.read_scenario(path, known, actionable),
        lambda: groups.read_attributes(path, tuple(loan.KINDS)),
        lambda: yaml_files.read(path),
    ):
        try:
            read()
        except ValueError as error:
            if path.stem not in str(error):
                raise RuntimeError(f"The error does not name the file: {error}") from error


def edited(value: Any, given: atheris.FuzzedDataProvider) -> Any:
    """Return JSON in which something is dropped, or is something else."""
    if isinstance(value, dict) and value and given.ConsumeIntInRange(0, 3):
        key = given.PickValueInList(list(value))
        others = dict(value)
        inner = others.pop(key)
        what = given.ConsumeIntInRange(0, 4)
        if what == 0:
            return others
        if what == 1:
            return others | {given.ConsumeUnicodeNoSurrogates(3): inner}
        return value | {key: edited(inner, given)}
    if isinstance(value, list) and value and given.ConsumeIntInRange(0, 3):
        i = given.ConsumeIntInRange(0, len(value) - 1)
        return [
            *value[:i],
            edited(value[i], given),
            *value[i + given.ConsumeIntInRange(0, 1) :],
        ]
    return given.PickValueInList(ODD)


def spoilt(
    tensors: dict[str, Tensor], given: atheris.FuzzedDataProvider
) -> dict[str, Tensor]:
    """Return tensors of which one is dropped, called otherwise, or is something else."""
    name = given.PickValueInList(list(tensors))
    others = dict(tensors)
    own = others.pop(name)
    ways: list[Callable[[], dict[str, Tensor]]] = [
        lambda: {},
        lambda: {given.ConsumeUnicodeNoSurrogates(6): own},
        lambda: {name: own, f"{name}x": own.clone()},
        lambda: {name: own.double() if own.dtype == torch.float32 else own.float()},
        lambda: {
            name: own.to(given.PickValueInList([torch.int64, torch.bool, torch.half]))
        },
        lambda: {name: own.reshape(-1)[: given.ConsumeIntInRange(0, 3)]},
        lambda: {name: own[None]},
        lambda: {name: own.reshape(-1)[0] if own.numel() else own},
        lambda: {
            name: torch.full(own.shape, given.PickValueInList([torch.nan, -torch.inf]))
        },
        lambda: {name: -own.float()},
    ]
    return others | given.PickValueInList(ways)()


def of_models() -> Try:
    """Return what edits one of the models, in its settings or tensors, and loads it."""
    problem, compas = loan.problem(), tabular.compas()
    models, loads = valid_files.small_models(problem, compas)
    fingerprint = problem.population.fingerprint

    def attempt(data: bytes) -> None:
        given = atheris.FuzzedDataProvider(data)
        kind = given.PickValueInList(list(loads))
        tensors, settings = models[kind]
        header = {
            "settings": settings,
            "provenance": {"seed": 0},
            "fingerprint": fingerprint,
        }
        for _ in range(given.ConsumeIntInRange(0, 2)):
            if given.ConsumeBool() and tensors:
                tensors = spoilt(tensors, given)
            elif given.ConsumeIntInRange(0, 9):
                header["settings"] = edited(header["settings"], given)
            else:
                header = edited(header, given)
                if not isinstance(header, dict) or "settings" not in header:
                    break
        own = {key: tensor.contiguous() for key, tensor in tensors.items()}
        load = file_of(f"{kind}.safetensors", lambda path: loads[kind](path.parent))
        load(save(own, {"model": json.dumps(header)}))

    return attempt


def of_applicants(path: Path) -> object:
    """Read a small Parquet file, a block at a time."""
    return list(parquet.find(path, ["age", "paid"]).blocks(2, 0, 3))


def of_bytes(path: Path) -> object:
    """Load a model file whose bytes are damaged."""
    return NetworkClassifier.load(path.parent, path.stem)


# by name: what a target tries, and the valid files that it starts from
TARGETS: dict[str, tuple[Callable[[], Try], list[bytes]]] = {
    "words": (lambda: quiet(in_words), [b"income: hard; savings: 1; loan amount: can't"]),
    "frame": (lambda: quiet(as_frame), [b"\x01\x02\x03"]),
    "answers": (
        lambda: file_of("answers.csv", lambda path: scores.read(path, FEATURES)),
        [b"name,income,savings,loan_amount\nA,easy,2,can't\n"],
    ),
    "csv": (lambda: quiet(csv_files.table), [valid_files.CSV, b'a,"b, c"\n1,2\n']),
    "gz": (
        lambda: file_of("table.csv.gz", lambda path: csv_files.read(path, most=10_000)),
        [csv_files.gzip.compress(valid_files.CSV)],
    ),
    "table": (lambda: quiet(of_a_table), [valid_files.CSV]),
    "study": (
        lambda: file_of("study.csv", willingness.read_answers),
        [valid_files.ANSWERS],
    ),
    "credit": (
        lambda: file_of("credit.zip", gmsc_data.read),
        [
            valid_files.packed(valid_files.RAW),
            valid_files.packed(valid_files.RAW, "data/cs-training.csv"),
            valid_files.packed(valid_files.CSV, "other.csv"),
        ],
    ),
    "credit_csv": (lambda: file_of("credit.csv", gmsc_data.read), [valid_files.RAW]),
    "yaml": (
        lambda: file_of("mine.yaml", of_yaml),
        [
            valid_files.SCENARIO,
            valid_files.GROUPS,
            b"a: &b [1]\nc: *b\n",
            b"? [1]\n: !!int 3\n",
        ],
    ),
    "parameters": (
        lambda: file_of("own.yaml", of_parameters),
        [(files.PARAMS / "paper" / "run.yaml").read_bytes(), b"ks: [4, .nan]\n"],
    ),
    "applicants": (
        lambda: file_of("applicants.parquet", of_applicants),
        [valid_files.of_columns(how) for how in ("none", "zstd")],
    ),
    "notebook": (
        lambda: file_of("one.ipynb", parameters.notebook_defaults),
        [valid_files.NOTEBOOK],
    ),
    "models": (of_models, [b"\x00", b"\x05\x01\x01", b"\x03\x02\x00\x01"]),
    "model_bytes": (
        lambda: file_of("mine.safetensors", of_bytes),
        [valid_files.saved(valid_files.LINEAR, {"features": ["a", "b"]})],
    ),
}


def main() -> None:
    """Fuzz the target that the command line names for so many seconds, or all in turn."""
    if len(sys.argv) > 1 and sys.argv[1] in TARGETS:
        fuzz(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60")
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    failed = [name for name in TARGETS if not ended_well(name, seconds)]
    sys.exit(f"crashed: {', '.join(failed)}" if failed else 0)


def ended_well(name: str, seconds: str) -> bool:
    """Fuzz a target in a process of its own, say how it went, and return whether well."""
    done = subprocess.run(
        [sys.executable, __file__, name, seconds],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr + done.stdout  # libFuzzer's lines, then the traceback
    tried = re.findall(r"(?:^#|Done )(\d+)", said, re.MULTILINE)
    verdict = (
        "no crash" if done.returncode == 0 else f"CRASHED\n{said[said.find('Uncaught') :]}"
    )
    print(f"{name}: {int(tried[-1]) if tried else 0:,} inputs, {verdict}", flush=True)
    return done.returncode == 0


def fuzz(name: str, how: str) -> None:
    """Fuzz one target for so many seconds, or try one input again; ends the process."""
    attempt, seeds = TARGETS[name][0](), TARGETS[name][1]
    corpus = FOUND / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed_{i}").write_bytes(seed)
    options = [
        f"-artifact_prefix={FOUND}/",
        "-max_len=4096",
        "-timeout=10",
        "-rss_limit_mb=4096",
    ]
    where = [f"-max_total_time={how}", str(corpus)] if how.isdecimal() else [how]
    atheris.Setup([sys.argv[0], *options, *where], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
