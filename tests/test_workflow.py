"""The batch: parameter files, the report, the lock, what stays after a failure or a kill, and the pinned environment."""

import ast
import fcntl
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pandas as pd
import parameters
import pytest
import report
import yaml
from nbformat.v4 import new_code_cell, new_notebook

from lib.studies import stacks

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
SIZES = sorted(path.parent.name for path in (ROOT / "params").glob("*/networks.yaml"))
DEFAULTS = {
    "seed": 0,
    "rate": 1e-3,
    "fast": True,
    "models": "models",
    "ks": [4, 3],
    "weights": [0.5],
    "limit": None,
    "any": [],
}


# --- one parameter file against a notebook's defaults


@pytest.mark.parametrize(
    "line",
    [
        "seed: 7",
        "rate: 0.01",
        "rate: 1",
        "rate: 1.0e-3",
        "fast: false",
        "models: runs/x",
        "ks: [1]",
        "ks: []",
        "weights: [1, 0.5]",
        "limit: 3",
        "limit: text",
        "any: [1, a]",
    ],
)
def test_parameter_that_fits(line):
    parameters.check_parameters(yaml.safe_load(line), DEFAULTS, Path("p.yaml"))


@pytest.mark.parametrize(
    "line, message",
    [
        ("sed: 7", "p.yaml: the notebook has no parameter 'sed'; did you mean seed"),
        ("zzz: 7", "it has seed, rate"),
        (
            "rate: 1e-3",
            "rate is '1e-3' (str), expected float like the notebook's 0.001. YAML reads 1e-3 as text: write 0.001",
        ),
        ("seed: '7'", "no quotes around a number"),
        ("seed: 1.5", "seed is 1.5 (float), expected int"),
        ("seed: true", "seed is True (bool), expected int"),
        ("rate: true", "expected float"),
        ("fast: 1", "fast is 1 (int), expected bool"),
        ("models: no", "YAML reads no, off, yes and on as true or false: put quotes"),
        ("models: 3", "expected str"),
        ("ks: 4", "ks is 4 (int), expected list of int"),
        ("ks: [4, 1.5]", "expected list of int"),
        (
            "weights: [0.5, 1e-3]",
            "expected list of float like the notebook's [0.5]. YAML reads 1e-3 as text",
        ),
        ("seed:", "seed is None (NoneType), expected int"),
        ("", "should hold lines `name: value`"),
        ("- seed", "should hold lines `name: value`"),
    ],
)
def test_parameter_that_does_not_fit(line, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.check_parameters(yaml.safe_load(line), DEFAULTS, Path("p.yaml"))


def write_notebook(path: Path, *sources: str, tag: str = "parameters") -> Path:
    """A notebook of code cells, the first one tagged."""
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = [tag]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_defaults_are_read(tmp_path):
    path = write_notebook(
        tmp_path / "a.ipynb",
        "# of draws\nseed = -1  # any\nrate = 1e-3\nn = 20_000\nks = [4, 3]\nlimit = None",
    )
    assert parameters.notebook_defaults(path) == {
        "seed": -1,
        "rate": 1e-3,
        "n": 20_000,
        "ks": [4, 3],
        "limit": None,
    }


@pytest.mark.parametrize(
    "source",
    [
        "n = 2 * 10",
        "n = f()",
        "import os",
        "a = b = 1",
        "a, b = 1, 2",
        "n: int = 1",
        "n =",
        "%matplotlib",
    ],
)
def test_parameters_cell_holds_literals_only(tmp_path, source):
    with pytest.raises(
        ValueError,
        match="a.ipynb: the parameters cell may hold only lines `name = literal`",
    ):
        parameters.notebook_defaults(write_notebook(tmp_path / "a.ipynb", source))


def test_parameters_cell_must_be_tagged(tmp_path):
    with pytest.raises(ValueError, match="a.ipynb has 0 code cells tagged `parameters`"):
        parameters.notebook_defaults(
            write_notebook(tmp_path / "a.ipynb", "n = 1", tag="other")
        )


# --- this repository's own parameter files and pins


@pytest.mark.parametrize("notebook", NOTEBOOKS)
@pytest.mark.parametrize("size", SIZES)
def test_parameter_file_fits_its_notebook(size, notebook):
    values = parameters.read_parameters(size, notebook)
    defaults = parameters.notebook_defaults(ROOT / "notebooks" / f"{notebook}.ipynb")
    # From nothing: a batch reads what it made itself, not the committed models.
    folders = {
        "models": f"runs/{size}/models",
        "outputs": f"runs/{size}",
        "figures": "figures" if size == "paper" else f"runs/{size}/figures",
    }
    assert {name: values.get(name) for name in folders if name in defaults} == {
        name: folder for name, folder in folders.items() if name in defaults
    }


@pytest.mark.parametrize("size", SIZES)
def test_each_parameter_file_has_a_notebook(size):
    assert sorted(path.stem for path in (ROOT / "params" / size).iterdir()) == [
        *NOTEBOOKS,
        "networks",
    ]


@pytest.mark.parametrize("size", SIZES)
def test_networks_are_described(size):
    values = parameters.read_network_parameters(size)
    assert values["models"] == f"runs/{size}/models"
    fitted_with = {"gmsc_classifier", "gmsc_flow", "gmsc_icarma", "gmsc_other_flows"}
    assert sorted(values["n_epochs"]) == sorted(set(stacks.STACKS) | fitted_with)
    transfer = ROOT / "notebooks" / "07_gmsc_transfer.ipynb"
    people = parameters.notebook_defaults(transfer) | parameters.read_parameters(
        size, transfer.stem
    )
    assert (
        people["n_applicants"] == values["n_applicants"]
        and people["seed"] == values["seed"]
    )
    notebook = ROOT / "notebooks" / "05_soft_constraints.ipynb"
    read_by = parameters.notebook_defaults(notebook) | parameters.read_parameters(
        size, notebook.stem
    )
    assert all(
        values[name] == read_by[name]
        for name in ("seed", "n_classifier", "n_flow", "n_recourse")
    )


def test_networks_that_are_not_described(tmp_path):
    with pytest.raises(ValueError, match="params/tiny/networks.yaml is missing"):
        parameters.read_network_parameters("tiny", tmp_path)
    (tmp_path / "params" / "tiny").mkdir(parents=True)
    (tmp_path / "params" / "tiny" / "networks.yaml").write_text("seed: 0\nn_seeds: 2\n")
    with pytest.raises(
        ValueError,
        match="says nothing about n_classifier, n_flow, n_recourse, n_applicants, models, n_epochs",
    ):
        parameters.read_network_parameters("tiny", tmp_path)


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "n_seeds: 1",
            "n_sedes: 1",
            "a description of networks has no parameter 'n_sedes'; did you mean n_seeds",
        ),
        (
            "loan_carma: 2",
            "loan_crma: 2",
            "n_epochs: a description of networks has no parameter 'loan_crma'; did you mean loan_carma",
        ),
        ("  loan_carma: 2\n", "", "n_epochs says nothing about loan_carma"),
        ("loan_carma: 2", "loan_carma: many", "loan_carma is 'many' (str), expected int"),
    ],
)
def test_networks_that_are_described_wrongly(tmp_path, old, new, message):
    right = (ROOT / "params" / "smoke" / "networks.yaml").read_text()
    assert old in right
    (tmp_path / "params" / "tiny").mkdir(parents=True)
    (tmp_path / "params" / "tiny" / "networks.yaml").write_text(right.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.read_network_parameters("tiny", tmp_path)


def test_edits_that_train_no_network_again():
    """The rooms that the Snakefile leaves out are not imported by what trains a stack, but for the bars."""
    rooms = ast.literal_eval(
        re.search(
            r"NOT_TRAINED_WITH = (\{.*?\})", (ROOT / "workflow" / "Snakefile").read_text()
        ).group(1)
    )
    assert all((ROOT / "lib" / f"{room}.py").is_file() for room in rooms)
    code = "import lib.pinned, sys; from lib.causal import flow; from lib.problem import classifier, gmsc, loan; from lib.solvers import icarma; from lib.studies import stacks; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"lib." + room.replace("/", ".") for room in rooms} & set(loaded)


def test_the_batch_runs_each_notebook():
    needs = (ROOT / "workflow" / "Snakefile").read_text().split("NEEDS = ")[1].split("\n}")[
        0
    ] + "}"
    needs = ast.literal_eval(needs)
    assert sorted(needs) == NOTEBOOKS
    assert {name for needed in needs.values() for name in needed} - set(needs) == set(
        stacks.STACKS
    ) | {"gmsc_icarma", "gmsc_other_flows"}


def test_lock_pins_each_direct_dependency():
    lock = [
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[0-9a-z.]+", line) for line in lock), (
        "exact pins only, no +cpu, no index"
    )
    pins = dict(line.split("==") for line in lock)
    assert not [name for name in pins if name.startswith(("nvidia", "cuda", "triton"))]
    for line in (ROOT / "requirements.in").read_text().splitlines():
        if line and not line.startswith("#"):
            name, operator, version = re.fullmatch(
                r"([a-z0-9-]+)(==|<|)([0-9.*]*)", line
            ).groups()
            assert name in pins, f"{name} is not in the lock: make lock"
            if operator == "==":
                assert re.fullmatch(version.replace("*", r"\d+"), pins[name]), (
                    f"{name} is {pins[name]}: make lock"
                )


def test_conda_installs_the_lock():
    pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    assert pip == [
        "--extra-index-url https://download.pytorch.org/whl/cpu",
        "-r requirements.lock",
        "-e .",
    ]


# --- the report


def write_table(folder: Path, name: str, **changes) -> None:
    row = {
        "table": "Table 1",
        "setting": "k = 4",
        "method": "iCARMA",
        "metric": "validity",
        "paper": 0.999,
        "ours": 0.99812,
        "difference": -0.00088,
        "seed_low": 0.997,
        "seed_high": 1.0,
        "standard_error": 0.001,
        "within": True,
    } | changes
    folder.mkdir(exist_ok=True)
    pd.DataFrame([row]).to_csv(folder / f"{name}_paper_vs_ours.csv", index=False)


def test_report_joins_the_tables(tmp_path):
    write_table(tmp_path / "tables", "04_hard")
    write_table(
        tmp_path / "tables",
        "05_soft",
        table="Table 2",
        paper=None,
        difference=None,
        within=None,
    )
    rows = report.collect(tmp_path)
    assert list(rows["table"]) == ["Table 1", "Table 2"]
    assert (tmp_path / "paper_vs_ours.csv").is_file()
    first, second = report.as_text(rows).split("\n\n")
    assert (
        first.startswith("Table 1\n")
        and "0.998" in first
        and "0.99812" not in first
        and "True" in first
    )
    assert second.startswith("Table 2\n") and "nan" not in second.lower()


def test_report_refuses_other_columns(tmp_path):
    write_table(tmp_path / "tables", "04_hard", note="x")
    with pytest.raises(ValueError, match="04_hard_paper_vs_ours.csv has the columns"):
        report.collect(tmp_path)


def test_report_needs_a_table(tmp_path):
    with pytest.raises(ValueError, match="No table"):
        report.collect(tmp_path)


# --- a batch of two tiny notebooks

FIRST = "seconds = 0\nmodels = 'models'\noutputs = 'out'\nfigures = 'figures'"
WRITE = (
    "import pathlib, sys, time\ntime.sleep(seconds)\npathlib.Path(outputs, 'tables').mkdir(parents=True, exist_ok=True)\n"
    "pathlib.Path(outputs, 'python').write_text(sys.executable)\n"
    "pathlib.Path(outputs, 'tables', '1_paper_vs_ours.csv').write_text('"
    + ",".join(report.COLUMNS)
    + "\\nT1,k = 4,iCARMA,validity,,0.5,,0.4,0.6,\\n')"
)


@pytest.fixture
def batch(tmp_path):
    """A repository with this workflow and two notebooks, the second of which needs the first."""
    shutil.copytree(
        ROOT / "workflow",
        tmp_path / "workflow",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    snakefile = tmp_path / "workflow" / "Snakefile"
    needs = 'NEEDS = {"one": [], "two": ["one"]}\n'
    snakefile.write_text(
        re.sub(
            r"^NEEDS = \{.*?^\}\n",
            needs,
            snakefile.read_text(),
            flags=re.DOTALL | re.MULTILINE,
        )
    )
    (tmp_path / "params" / "tiny").mkdir(parents=True)
    shutil.copy(ROOT / "params" / "smoke" / "networks.yaml", tmp_path / "params" / "tiny")
    for name in ("one", "two"):
        write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", FIRST, WRITE)
        set_parameters(tmp_path, name)
    return tmp_path


def set_parameters(batch: Path, notebook: str, **changes) -> None:
    path = batch / "params" / "tiny" / f"{notebook}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump({"outputs": "runs/tiny", "models": "runs/tiny/models"} | changes)
    )


def start(batch: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "workflow/reproduce.py", "tiny"],
        cwd=batch,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def reproduce(batch: Path) -> tuple[int, str]:
    """Exit code and output of a whole batch."""
    run = start(batch)
    output, _ = run.communicate(timeout=120)
    return run.returncode, output


def test_batch_runs_resumes_and_reruns_what_an_edit_touches(batch):
    # Killed in the middle of the second notebook: its kernel ends too, and the next call begins there.
    set_parameters(batch, "two", seconds=60)
    run = start(batch)
    for line in run.stdout:
        if line == "two: started\n":
            break
    time.sleep(3)
    run.kill()
    run.communicate(timeout=20)  # returns once no process of the batch is left to write
    assert [path.name for path in (batch / "runs/tiny/done").iterdir()] == ["one"]
    set_parameters(batch, "two")
    status, output = reproduce(batch)
    assert status == 0, output
    assert "one: started" not in output and "two: finished" in output
    assert "T1\n" in output and (batch / "runs/tiny/paper_vs_ours.csv").is_file()
    assert (batch / "runs/tiny/python").read_text() == sys.executable

    # An edit of the first one's parameters runs both again; that of the second one's above did not touch the first.
    set_parameters(batch, "one", figures="elsewhere")
    assert re.findall(r"^(\w+): started", reproduce(batch)[1], flags=re.MULTILINE) == [
        "one",
        "two",
    ]


def test_failed_notebook_is_kept_and_named(batch):
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "a = 1",
        "\nassert a == 2, 'no luck'\n",
        "b = 1",
    )
    status, output = reproduce(batch)
    assert status == 1
    # In [1] is the parameters cell, In [2] the values that papermill puts after it.
    assert (
        "one failed in cell In [4]: assert a == 2, 'no luck'\n  AssertionError: no luck\n  kept: runs/tiny/one.ipynb"
        in output
    )
    assert "two" not in output
    kept = nbformat.read(batch / "runs/tiny/one.ipynb", as_version=4)
    assert [c.execution_count for c in kept.cells if c.cell_type == "code"] == [
        1,
        2,
        3,
        4,
        None,
    ]
    assert not (batch / "runs/tiny/done/one").exists()


def test_kernel_that_dies_is_a_failure(batch):
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "b = 1",
    )
    (batch / "runs" / "tiny").mkdir(parents=True)
    run = subprocess.Popen(
        [sys.executable, "workflow/run_notebook.py", "tiny", "one"],
        cwd=batch,
        stdin=subprocess.PIPE,
    )
    assert run.wait(timeout=60) == 1
    note = (batch / "runs/tiny/failed/one.txt").read_text()
    assert note.startswith(
        "one failed in cell In [3]: import os, signal\n  DeadKernelError: Kernel died"
    )


def test_wrong_parameter_is_refused_before_any_kernel_starts(batch):
    set_parameters(batch, "two", secnods=1)
    status, output = reproduce(batch)
    assert status == 1
    assert (
        "params/tiny/two.yaml: the notebook has no parameter 'secnods'; did you mean seconds?"
        in output
    )
    assert not (batch / "runs").exists()


def test_second_batch_at_once_is_refused(batch):
    (batch / "runs" / "tiny").mkdir(parents=True)
    with open(batch / "runs" / "tiny" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print("1234", end="", file=lock, flush=True)
        status, output = reproduce(batch)
    assert status == 1
    assert "A batch of this size is running already (process 1234, in runs/tiny)" in output


# --- what notebooks read of the benchmarks


def test_every_measurement_that_a_notebook_reads_is_one_that_is_taken():
    sys.path.append(str(ROOT / "benchmarks"))
    import measure

    cells = nbformat.read(ROOT / "notebooks" / "08_exact_and_unlocked.ipynb", 4).cells
    (code,) = (
        cell.source
        for cell in cells
        if cell.cell_type == "code" and "results.csv" in cell.source
    )
    named = {
        node.targets[0].id: node.value
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    }
    features, work, alone = (
        ast.literal_eval(named[name]).values() for name in ("features", "work", "alone")
    )
    read = {title.format(k) for title in work for k in features} | set(alone)
    taken = {work.title for work in measure.WORK.values()}
    assert len(read) > len(work) and read <= taken
    assert read <= set(pd.read_csv(ROOT / "benchmarks" / "results.csv").work) <= taken
