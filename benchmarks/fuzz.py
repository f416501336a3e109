"""Throw damaged files at every loader: it reads them, or raises ValueError with their name.

    pip install --target runs/atheris atheris==3.0.0
    PYTHONPATH=runs/atheris:workflow .venv/bin/python benchmarks/fuzz.py
    PYTHONPATH=runs/atheris:workflow .venv/bin/python benchmarks/fuzz.py 600 1000000
    PYTHONPATH=runs/atheris:workflow .venv/bin/python benchmarks/fuzz.py models 600

The second line tries all targets in turn, a minute each; the third for 600 seconds each,
or until it has tried a million inputs; the fourth one of them, for 600 seconds. Each starts
from small valid files and is led by coverage; what led further lies in runs/fuzz, and the
next run goes on from there. It ends with how many inputs it tried, or at the first that
crashes: that one lies in runs/fuzz, too, and named in the place of seconds, it is tried
again. What is found becomes a test in tests/test_unsafe.py.
"""

import lib.pinned

import functools
import gzip
import io
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(
    include=["lib", "answer", "clusters", "parameters", "plans", "csv", "yaml", "zipfile"]
):
    import answer
    import clusters
    import parameters
    import plans

    from lib.base import files, sandbox
    from lib.beyond.evaluation import willingness
    from lib.beyond.hare import tabular
    from lib.beyond.millions import parquet_blocks
    from lib.beyond.own_table import checkup, findings
    from lib.method import loan
    from lib.method.classifier import NetworkClassifier
    from lib.method.preferences import from_frame, from_words, read_answers
    from lib.paper import gmsc
    from lib.paper.fairness import groups, scenarios

import compare
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
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


@contextmanager
def here(task: str, path: object, given: dict[str, Any]) -> Iterator[pa.RecordBatchReader]:
    """Do a task of the sandbox in this process, where coverage is seen."""
    yield sandbox.TASKS[task](**given)


sandbox.asked = here
pa.set_memory_pool(pa.system_memory_pool())  # as sandbox.SETTINGS say
# half of what the sandbox allows, so that an input is over soon
resource.setrlimit(resource.RLIMIT_DATA, (sandbox.MOST_MEMORY // 2,) * 2)


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
    from_words(data.decode("utf-8", "replace"), FEATURES)


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
    from_frame(frame, FEATURES)


def of_a_table(data: bytes) -> None:
    """Read a data set of HARE's kind from a csv."""
    path = FOLDER / "table.csv"
    path.write_bytes(data)
    table = sandbox.table(path)
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
    given = files.entries(path)
    parameters.check_parameters(given, known | {"n_epochs": None, "ks": [4, 3]}, where)
    parameters._check_folders(given, "a", where)


def of_yaml(path: Path) -> None:
    """Read a scenario, and attributes that make groups."""
    known = known_attributes()
    actionable = tuple(name for name, kind in loan.KINDS.items() if kind == "actionable")
    for read in (
        lambda: scenarios.read_scenario(path, known, actionable),
        lambda: groups.read_attributes(path, tuple(loan.KINDS)),
        lambda: files.entries(path),
    ):
        try:
            read()
        except ValueError as error:
            if path.stem not in str(error):
                raise RuntimeError(f"The error does not name the file: {error}") from error


def of_own_csv(path: Path) -> None:
    """Read somebody's csv, with one of four separators, as its length has it."""
    ways = ((",", "."), (";", ","), ("\t", "."), ("|", "."))
    read_own(path, *ways[path.stat().st_size % len(ways)])


def read_own(path: Path, *signs: str) -> pd.DataFrame | None:
    """Return somebody's table, or None if it is refused in its name."""
    try:
        return findings.read(path, *signs)
    except ValueError as error:
        if path.name not in str(error):
            raise RuntimeError(f"The error does not name the file: {error}") from error
    return None


def of_own_table(path: Path) -> None:
    """Read somebody's table, and look for what is wrong with it."""
    frame = read_own(path)
    if frame is not None:
        kinds = {"age": "immutable", "income": "actionable"}
        edges = {"income": ["age"]}
        checkup.examine(frame, "paid", kinds, edges, group="group", person="person")


def made_parquet(data: bytes) -> None:
    """Read a Parquet file of cells of many kinds, in which some bytes are others."""
    given = atheris.FuzzedDataProvider(data)
    n_rows = given.PickValueInList([0, 1, 2, 3, 70])
    columns = {}
    for i in range(given.ConsumeIntInRange(0, 3)):
        kind, cells = given.PickValueInList(valid_files.CELLS)
        chosen = [given.PickValueInList(cells) for _ in range(min(n_rows, 4))]
        name = given.PickValueInList([f"c{i}", "age", "a.b", ""])
        columns[name] = pa.array((chosen * n_rows)[:n_rows], kind)
    packed = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        packed,
        compression=given.PickValueInList(["none", "snappy", "gzip", "zstd"]),
        use_dictionary=given.ConsumeBool(),
        data_page_version=given.PickValueInList(["1.0", "2.0"]),
        store_schema=given.ConsumeBool(),
        write_page_checksum=given.ConsumeBool(),
        row_group_size=given.PickValueInList([1, 100]),
    )
    content = bytearray(packed.getvalue())
    for _ in range(given.ConsumeIntInRange(0, 3)):
        content[given.ConsumeIntInRange(0, len(content) - 1)] = given.ConsumeIntInRange(
            0, 255
        )
    load_parquet(bytes(content))


@functools.cache
def known_table() -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the parameters of notebook 12, and some of its people."""
    path = files.ROOT / "notebooks" / "12_your_own_problem.ipynb"
    return parameters.notebook_defaults(path), findings.read("data/credit_union.csv").head(
        60
    )


def of_own_parameters(path: Path) -> None:
    """Read the parameters of somebody's table, and check what they say of it."""
    defaults, frame = known_table()
    given = defaults | parameters.read_own(path, defaults)
    described = {name: given[name] for name in ("label", "kinds", "edges", "group")}
    checkup.examine(frame, **described, person=given["person"])


def of_results(data: bytes) -> None:
    """Compare a result that is damaged with a sound one; that raises nothing."""
    sound = valid_files.results()
    ending = list(sound)[data[0] % len(sound) if data else 0]
    one, other = FOLDER / f"rebuilt{ending}", FOLDER / f"committed{ending}"
    one.write_bytes(data[1:])
    if not other.is_file():
        other.write_bytes(sound[ending])
    compare.verdict_on(one, other)


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
    return list(parquet_blocks.find(path, ["age", "paid"]).blocks(2, 0, 3))


def of_plan(path: Path) -> None:
    """Read what a run was planned with, which is as it was."""
    plans.check_same({"parameters": answer.parameters_of(path.parent)}, path.parent)


def of_profile(path: Path) -> None:
    """Read the configuration of a profile of Snakemake."""
    own = FOLDER / clusters.PROFILES / "own" / "config.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(path.read_bytes())
    clusters.check_profile("own", FOLDER)


def of_bytes(path: Path) -> object:
    """Load a model file whose bytes are damaged."""
    return NetworkClassifier.load(path.parent, path.stem)


load_parquet = file_of("own.parquet", findings.read)

# by name: what a target tries, and the valid files that it starts from
TARGETS: dict[str, tuple[Callable[[], Try], list[bytes]]] = {
    "words": (lambda: quiet(in_words), [b"income: hard; savings: 1; loan amount: can't"]),
    "frame": (lambda: quiet(as_frame), [b"\x01\x02\x03"]),
    "answers": (
        lambda: file_of("answers.csv", lambda path: read_answers(path, FEATURES)),
        [b"name,income,savings,loan_amount\nA,easy,2,can't\n"],
    ),
    "gz": (
        lambda: file_of("table.csv.gz", sandbox.table),
        [gzip.compress(valid_files.CSV)],
    ),
    "zip": (
        lambda: file_of("table.zip", sandbox.table),
        [valid_files.packed(valid_files.CSV, method=own) for own in valid_files.METHODS],
    ),
    "own_csv": (
        lambda: file_of("own.csv", of_own_csv),
        [valid_files.CSV, b'a;"b; c";\n1,5;2;\n', b"a\tb\n1\t\n"],
    ),
    "own_table": (
        lambda: file_of("own.csv", of_own_table),
        [valid_files.OWN, valid_files.OWN.replace(b"1", b"-9")],
    ),
    "parquet": (lambda: load_parquet, valid_files.parquets()),
    "made_parquet": (lambda: made_parquet, [b"\x01\x02\x03", bytes(range(60))]),
    "own_parameters": (
        lambda: file_of("mine.yaml", of_own_parameters),
        [valid_files.MINE, b"group: origin\nperson: person\nspare_nats: [0, .5]\n"],
    ),
    "graphs": (
        lambda: file_of("graphs.yaml", gmsc.graphs),
        [b"a: {remove: [[income, utilization]]}\nb: {reverse: [[age, income]]}\nc: {}\n"],
    ),
    "results": (
        lambda: of_results,
        [bytes([i]) + own for i, own in enumerate(valid_files.results().values())],
    ),
    "table": (lambda: quiet(of_a_table), [valid_files.CSV]),
    "study": (
        lambda: file_of("study.csv", willingness.read_answers),
        [valid_files.ANSWERS],
    ),
    "credit": (
        lambda: file_of("credit.zip", gmsc.read),
        [
            valid_files.packed(valid_files.RAW),
            valid_files.packed(valid_files.RAW, "data/cs-training.csv"),
            valid_files.packed(valid_files.CSV, "other.csv"),
        ],
    ),
    "credit_csv": (lambda: file_of("credit.csv", gmsc.read), [valid_files.RAW]),
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
        [b"seed: 0\nn_recourse: 20\nmodels: runs/a/models\n", b"ks: [4, .nan]\n"],
    ),
    "applicants": (
        lambda: file_of("applicants.parquet", of_applicants),
        [valid_files.applicants(how) for how in ("none", "zstd")],
    ),
    "plan": (lambda: file_of("plan.json", of_plan), [valid_files.PLAN, b"{}"]),
    "profile": (lambda: file_of("own.yaml", of_profile), [valid_files.PROFILE]),
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
    """Fuzz the target that the command line names, or all in turn."""
    if len(sys.argv) > 1 and sys.argv[1] in TARGETS:
        fuzz(*sys.argv[1:])
    failed = [name for name in TARGETS if not ended_well(name, *sys.argv[1:])]
    sys.exit(f"crashed: {', '.join(failed)}" if failed else 0)


def ended_well(name: str, *limits: str) -> bool:
    """Fuzz a target in a process of its own, say how it went, and return whether well."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, name, *limits],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = done.stderr + done.stdout  # libFuzzer's lines, then the traceback
    tried = re.findall(r"(?:^#|Done )(\d+)", said, re.MULTILINE)
    verdict = (
        "no crash" if done.returncode == 0 else f"CRASHED\n{said[said.find('Uncaught') :]}"
    )
    n_tried, seconds = int(tried[-1]) if tried else 0, time.monotonic() - start
    print(f"{name}: {n_tried:,} inputs, {seconds:.0f} s, {verdict}", flush=True)
    return done.returncode == 0


def fuzz(name: str, how: str = "60", most: str = "-1") -> None:
    """Fuzz one target, or try one input again; ends the process.

    Arguments:
        name: Of the target.
        how: So many seconds, or the path of an input.
        most: So many inputs at most; -1: any number.
    """
    attempt, seeds = TARGETS[name][0](), TARGETS[name][1]
    corpus = FOUND / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed_{i}").write_bytes(seed)
    options = [
        f"-artifact_prefix={FOUND}/",
        "-max_len=4096",
        f"-timeout={sandbox.MOST_SECONDS}",
        "-rss_limit_mb=4096",
    ]
    limits = [f"-max_total_time={how}", f"-runs={most}", str(corpus)]
    atheris.Setup([sys.argv[0], *options, *(limits if how.isdecimal() else [how])], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
