"""The batch: parameter files, the report, the lock, failures, kills, the environment."""

import ast
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import lifeline
import measure
import nbformat
import pandas as pd
import parameters
import pytest
import report
import rooms
import yaml
from nbformat.v4 import new_code_cell, new_notebook
from reproduce import run_notebooks

from lib.paper import stacks

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
    parameters.check_parameters(yaml.safe_load(line), DEFAULTS, "p.yaml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sed: 7", "p.yaml: the notebook has no parameter 'sed'; did you mean seed"),
        ("zzz: 7", "known are seed, rate"),
        (
            "rate: 1e-3",
            "rate is '1e-3' (str), expected float like the notebook's 0.001. "
            "YAML reads 1e-3 as text: write 0.001",
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
        parameters.check_parameters(yaml.safe_load(line), DEFAULTS, "p.yaml")


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
        match=r"a.ipynb: the parameters cell may hold only lines `name = literal`",
    ):
        parameters.notebook_defaults(write_notebook(tmp_path / "a.ipynb", source))


def test_parameters_cell_must_be_tagged(tmp_path):
    with pytest.raises(ValueError, match=r"a.ipynb has 0 code cells tagged `parameters`"):
        parameters.notebook_defaults(
            write_notebook(tmp_path / "a.ipynb", "n = 1", tag="other")
        )


# --- this repository's own parameter files and pins


@pytest.mark.parametrize("notebook", NOTEBOOKS)
@pytest.mark.parametrize("size", SIZES)
def test_parameter_file_fits_its_notebook(size, notebook):
    values = parameters.read_parameters(size, notebook)
    defaults = parameters.notebook_defaults(ROOT / "notebooks" / f"{notebook}.ipynb")
    # From nothing: a batch reads what it made itself, not the committed models, and leaves
    # what is committed as it is.
    folders = {
        "models": f"runs/{size}/models",
        "outputs": f"runs/{size}",
        "figures": f"runs/{size}/figures",
    }
    assert {name: values.get(name) for name in folders if name in defaults} == {
        name: folder for name, folder in folders.items() if name in defaults
    }


@pytest.mark.parametrize("size", SIZES)
def test_each_parameter_file_has_a_notebook(size):
    assert sorted(path.stem for path in (ROOT / "params" / size).iterdir()) == [
        *NOTEBOOKS,
        "networks",
        "run",
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
@pytest.mark.parametrize("size", SIZES)
def test_what_is_shared_reaches_each_notebook(size, notebook):
    """Whoever reads the same name gets the same value, and the networks do as well."""
    defaults = parameters.notebook_defaults(ROOT / "notebooks" / f"{notebook}.ipynb")
    shared = parameters.read_shared(size)
    values = parameters.read_parameters(size, notebook)
    networks = parameters.read_network_parameters(size)
    assert shared.keys() & defaults.keys() >= {"seed", "outputs", "figures"}
    for name in shared.keys() & defaults.keys():
        assert values[name] == shared[name] == networks[name], name


@pytest.mark.parametrize("size", SIZES)
def test_networks_are_described(size):
    values = parameters.read_network_parameters(size)
    assert values["models"] == f"runs/{size}/models"
    fitted_with = {"gmsc_classifier", "gmsc_flow", "gmsc_icarma", "gmsc_other_flows"}
    fitted_with |= {"gmsc_propose", "loan_propose", "loan_propose_others"}
    assert sorted(values["n_epochs"]) == sorted(set(stacks.STACKS) | fitted_with)


NOTEBOOK = "n_people = 10\nn_values = 25\nseed = 0"


@pytest.fixture
def sizes(tmp_path):
    """A repository with one notebook and the sizes paper and tiny."""
    write_notebook(tmp_path / "notebooks" / "one.ipynb", NOTEBOOK)
    for size in ("paper", "tiny"):
        folder = tmp_path / "params" / size
        folder.mkdir(parents=True)
        (folder / "run.yaml").write_text("n_people: 5\nseed: 1\n")
        (folder / "one.yaml").write_text("n_values: 3\n")
        (folder / "networks.yaml").write_text("n_seeds: 2\nn_epochs:\n  a: 1\n  b: 1\n")
    return tmp_path


def test_shared_values_are_merged(sizes):
    (sizes / "params" / "tiny" / "run.yaml").write_text("n_people: 7\nseed: 1\n")
    assert parameters.read_parameters("tiny", "one", sizes) == {
        "n_people": 7,
        "seed": 1,
        "n_values": 3,
    }
    assert parameters.read_network_parameters("tiny", sizes) == {
        "n_people": 7,
        "seed": 1,
        "n_seeds": 2,
        "n_epochs": {"a": 1, "b": 1},
    }


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run", None, "params/tiny/run.yaml is missing"),
        ("one", None, "params/tiny/one.yaml is missing"),
        ("run", "n_people: 5", "params/tiny/run.yaml says nothing about seed"),
        ("run", "n_people: 5\nseed: a", "seed is 'a' (str), expected int"),
        ("run", "n_poeple: 5\nseed: 1", "no parameter 'n_poeple'; did you mean n_people"),
        ("run", "", "should hold lines `name: value`"),
        ("one", "n_people: 9", "run.yaml says n_people for all notebooks of this size"),
        ("one", "n_vlaues: 9", "no parameter 'n_vlaues'; did you mean n_values?"),
    ],
)
def test_shared_values_that_do_not_fit(sizes, file, content, message):
    path = sizes / "params" / "tiny" / f"{file}.yaml"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.read_parameters("tiny", "one", sizes)


def test_a_shared_name_is_one_of_some_notebook(sizes):
    """Else a slip in the paper's own file would leave a notebook its default, unseen."""
    for size in ("paper", "tiny"):
        (sizes / "params" / size / "run.yaml").write_text("n_poeple: 5\nseed: 1\n")
    with pytest.raises(ValueError, match=r"no notebook has .*'n_poeple'; did you"):
        parameters.read_parameters("paper", "one", sizes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "params/tiny/networks.yaml is missing"),
        ("n_seeds: 2", "params/tiny/networks.yaml says nothing about n_epochs"),
        (
            "n_sedes: 2\nn_epochs: {a: 1, b: 1}",
            "params/paper has no parameter 'n_sedes'; did you mean n_seeds",
        ),
        ("n_seeds: 2\nn_epochs: {a: 1}", "networks.yaml, n_epochs says nothing about b"),
        (
            "n_seeds: 2\nn_epochs: {a: 1, c: 1}",
            "params/paper has no parameter 'c'",
        ),
        ("n_seeds: 2\nn_epochs: {a: 1, b: x}", "b is 'x' (str), expected int"),
        ("n_seeds: 2\nn_epochs: 3", "n_epochs is 3 (int), expected dict"),
    ],
)
def test_networks_that_are_described_wrongly(sizes, content, message):
    path = sizes / "params" / "tiny" / "networks.yaml"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.read_network_parameters("tiny", sizes)


def said_in_snakefile(name: str) -> dict | set:
    """A table of the Snakefile that holds nothing but literals."""
    text = (ROOT / "workflow" / "Snakefile").read_text()
    table = re.search(rf"^{name} = (\{{.*?^\}})", text, flags=re.DOTALL | re.MULTILINE)
    return ast.literal_eval(table.group(1))


def test_edits_that_train_no_network_again():
    trained_with = set(rooms.imported_by("workflow/train.py"))
    assert {
        "lib/pinned.py",
        "lib/method/icarma.py",
        "lib/base/arithmetic.py",
    } < trained_with
    assert {"lib/__init__.py", "lib/method/__init__.py"} < trained_with
    looking = {"method/metrics", "method/grid", "paper/fairness/audit", "paper/tables"}
    assert all((ROOT / "lib" / f"{room}.py").is_file() for room in looking)
    assert not {f"lib/{room}.py" for room in looking} & trained_with
    held_with = set(rooms.imported_by("workflow/hare.py"))
    assert {
        "lib/beyond/hare/hare.py",
        "lib/beyond/hare/hare_tables.py",
    } < held_with - trained_with
    assert "lib/method/icarma.py" not in held_with


def test_rooms_are_found_through_others(tmp_path):
    files = {
        "train.py": "import numpy, lib.pinned\nfrom lib.a import one",
        "lib/__init__.py": "",
        "lib/pinned.py": "",
        "lib/a/__init__.py": "",
        "lib/a/one.py": "def f():\n    from lib.b.two import name",
        "lib/b/two.py": "from lib.a import one",  # a circle
        "lib/b/three.py": "import lib.pinned",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert rooms.imported_by("train.py", tmp_path) == sorted(
        files.keys() - {"train.py", "lib/b/three.py"}
    )


def test_the_batch_runs_each_notebook():
    needs = said_in_snakefile("NEEDS")
    assert sorted(needs) == NOTEBOOKS
    assert {name for needed in needs.values() for name in needed} - set(needs) == set(
        stacks.STACKS
    ) | {
        *("gmsc_icarma", "gmsc_other_flows", "gmsc_propose"),
        *("loan_other_flows", "loan_propose", "loan_propose_others"),
        *("hare", "gmsc_hare", "willingness"),
    }


@pytest.mark.parametrize("folder", [".", "book"])
def test_lock_pins_each_direct_dependency(folder):
    lock = [
        line
        for line in (ROOT / folder / "requirements.lock").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[0-9a-z.]+", line) for line in lock), (
        "exact pins only, no +cpu, no index"
    )
    pins = dict(line.split("==") for line in lock)
    assert not [name for name in pins if name.startswith(("nvidia", "cuda", "triton"))]
    for line in (ROOT / folder / "requirements.in").read_text().splitlines():
        if line and not line.startswith("#"):
            name, operator, version = re.fullmatch(
                r"([a-z0-9-]+)(==|<|)([0-9.*]*)", line
            ).groups()
            assert name in pins, f"{name} is not in the lock: make lock"
            if operator == "==":
                assert re.fullmatch(version.replace("*", r"\d+"), pins[name]), (
                    f"{name} is {pins[name]}: make lock"
                )


def test_conda_and_make_install_the_same():
    pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    makefile = (ROOT / "Makefile").read_text()
    index = re.search(r"^TORCH := (.*)$", makefile, re.MULTILINE)[1]
    assert pip == [f"--extra-index-url {index}", "-r requirements.lock", "-e ."]
    recipe = re.search(r"^environment:(.*\n(?:\t.*\n)+)", makefile, re.MULTILINE)[1]
    assert re.findall(r"-r (\S+)", recipe) == ["requirements.lock"]
    assert recipe.count(" -e .\n") == 1
    assert "--index-url $(TORCH) $$(grep ^torch== requirements.lock);" in recipe


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("answers", [True, False])
def test_torch_comes_from_its_own_index_if_that_answers(tmp_path, answers):
    """The recipe, with programs that write down what they are asked."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python3"
    python.write_text(
        "#!/bin/sh\n"
        f'echo "$(basename $0) $*" >> {tmp_path}/asked\n'
        'case "$*" in\n'
        "  '-m venv'*) mkdir -p .venv/bin; cp $0 .venv/bin/python; cp $0 .venv/bin/pip;;\n"
        '  workflow/environment.py*) shift; "$@";;\n'
        f"  *urlopen*) exit {0 if answers else 1};;\n"
        "esac\n"
    )
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "setup", f"PYTHON={python}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    installs = [line for line in asked if line.startswith("pip install")]
    torch = next(
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if line.startswith("torch==")
    )
    is_linux = sys.platform == "linux"
    of_torch = [line for line in installs if line.endswith(torch)]
    assert len(of_torch) == (answers and is_linux)
    assert all("--no-deps --index-url https://download.pytorch.org" in i for i in of_torch)
    assert [line.split()[-1] for line in installs[-2:]] == ["requirements.lock", "."]
    assert ("several gigabytes" in made.stdout) == (is_linux and not answers)


# --- the report


def write_table(folder: Path, name: str, **changes) -> None:
    row = {
        "table": "Table 1",
        "setting": "k = 4",
        "method": "iCARMA",
        "metric": "validity",
        "paper": 0.999,
        "mean": 0.99812,
        "lowest": 0.997,
        "highest": 1.0,
        "reported": 0.997,
        "difference": -0.00088,
        "se_people": 0.001,
        "se_networks": 0.0005,
        "se_paper": 0.001,
        "agrees": True,
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
        agrees=None,
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
    with pytest.raises(ValueError, match=r"04_hard_paper_vs_ours.csv has the columns"):
        report.collect(tmp_path)


def test_report_needs_a_table(tmp_path):
    with pytest.raises(ValueError, match="No table"):
        report.collect(tmp_path)


# --- a batch of two tiny notebooks

FIRST = "seconds = 0\nmodels = 'models'\noutputs = 'out'\nfigures = 'figures'"
TABLE = (
    ",".join(report.COLUMNS)
    + "\\nT1,k = 4,iCARMA,validity,,0.5,0.4,0.6,0.5,,0.01,0.01,,\\n"
)
WRITE = f"""
import pathlib, sys, time
folder = pathlib.Path(outputs)
(folder / "tables").mkdir(parents=True, exist_ok=True)
(folder / "python").write_text(sys.executable)
(folder / "seconds").write_text(str(seconds))
time.sleep(seconds)
(folder / "tables" / "1_paper_vs_ours.csv").write_text("{TABLE}")
"""


@pytest.fixture
def batch(tmp_path):
    """A repository with this workflow and two notebooks; the second needs the first."""
    shutil.copytree(
        ROOT / "workflow",
        tmp_path / "workflow",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    snakefile = tmp_path / "workflow" / "Snakefile"
    text, n_tables = re.subn(
        r"^NEEDS = \{.*?^\}\n",
        'NEEDS = {"one": [], "two": ["one"]}\n',
        snakefile.read_text(),
        flags=re.DOTALL | re.MULTILINE,
    )
    assert n_tables == 1
    snakefile.write_text(text)
    shared = {"outputs": "runs/tiny", "models": "runs/tiny/models"}
    for size in ("paper", "tiny"):
        (tmp_path / "params" / size).mkdir(parents=True)
        (tmp_path / "params" / size / "run.yaml").write_text(yaml.safe_dump(shared))
        shutil.copy(ROOT / "params/smoke/networks.yaml", tmp_path / "params" / size)
    for name in ("one", "two"):
        write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", FIRST, WRITE)
        set_parameters(tmp_path, name)
    return tmp_path


def set_parameters(batch: Path, notebook: str, **values) -> None:
    path = batch / "params" / "tiny" / f"{notebook}.yaml"
    path.write_text(yaml.safe_dump({"seconds": 0} | values))


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
    output, _ = run.communicate(timeout=300)
    return run.returncode, output


def killed_when(run: subprocess.Popen, is_so: Callable[[], bool]) -> None:
    """Kill a batch as soon as something is so, and wait until its processes are gone."""
    end = time.monotonic() + 300
    try:
        while not is_so():
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.05)
    finally:
        run.kill()
    run.communicate(timeout=60)  # returns once no process is left to write


def test_batch_runs_resumes_and_reruns_what_an_edit_touches(batch):
    # Killed in the middle of the second notebook: its kernel ends too, and the next call
    # begins there.
    set_parameters(batch, "two", seconds=600)
    said = batch / "runs/tiny/seconds"
    killed_when(start(batch), lambda: said.is_file() and said.read_text() == "600")
    assert [path.name for path in (batch / "runs/tiny/done").iterdir()] == ["one"]
    set_parameters(batch, "two")
    status, output = reproduce(batch)
    assert status == 0, output
    assert "one: started" not in output and "two: finished" in output
    assert "T1\n" in output and (batch / "runs/tiny/paper_vs_ours.csv").is_file()
    assert (batch / "runs/tiny/python").read_text() == sys.executable

    # An edit of what is shared runs both again; that of the second one's file above did not
    # touch the first.
    for size in ("paper", "tiny"):
        with open(batch / "params" / size / "run.yaml", "a") as shared:
            print(f"figures: runs/{size}/elsewhere", file=shared)
    assert re.findall(r"^(\w+): started", reproduce(batch)[1], flags=re.MULTILINE) == [
        "one",
        "two",
    ]


def test_part_of_a_batch_runs_in_a_copy_and_imports_its_lib(batch):
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lib", batch / "lib", ignore=without)
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "import lib, pathlib\npathlib.Path('seen').write_text(lib.__file__)",
    )
    run_notebooks("tiny", batch, ["one"])
    assert (batch / "seen").read_text() == str(batch / "lib" / "__init__.py")
    assert [path.name for path in (batch / "runs/tiny/done").iterdir()] == ["one"]


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
        "one failed in cell In [4]: assert a == 2, 'no luck'\n"
        "  AssertionError: no luck\n"
        "  kept: runs/tiny/one.ipynb"
    ) in output
    assert "two" not in output
    kept = nbformat.read(batch / "runs/tiny/one.ipynb", as_version=4)
    counts = [c.execution_count for c in kept.cells if c.cell_type == "code"]
    assert counts == [1, 2, 3, 4, None]
    assert not (batch / "runs/tiny/done/one").exists()


def test_kernel_that_dies_is_a_failure(batch):
    write_notebook(
        batch / "notebooks" / "one.ipynb",
        FIRST,
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "b = 1",
    )
    (batch / "runs" / "tiny").mkdir(parents=True)
    run = subprocess.run(
        [sys.executable, "workflow/run_notebook.py", "tiny", "one"], cwd=batch, timeout=60
    )
    assert run.returncode == 1
    note = (batch / "runs/tiny/failed/one.txt").read_text()
    assert note.startswith(
        "one failed in cell In [3]: import os, signal\n  DeadKernelError: Kernel died"
    )


def test_wrong_parameter_is_refused_before_any_kernel_starts(batch):
    set_parameters(batch, "two", secnods=1)
    status, output = reproduce(batch)
    assert status == 1
    assert (
        "params/tiny/two.yaml: the notebook has no parameter 'secnods'; did you mean "
        "seconds?"
    ) in output
    assert not (batch / "runs").exists()


def test_second_batch_at_once_is_refused(batch):
    (batch / "runs" / "tiny").mkdir(parents=True)
    with open(batch / "runs" / "tiny" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print("1234", end="", file=lock, flush=True)
        status, output = reproduce(batch)
    assert status == 1
    assert "A batch in runs/tiny is running already (process 1234): wait for it" in output


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (None, ""),
        ("runs/a/mine/.lock", "A batch in runs/a/mine is running already (process 12): it"),
        ("runs/environment.lock", "The making of .venv is running already (process 12): w"),
    ],
)
def test_the_environment_is_made_alone(tmp_path, lock, message):
    (tmp_path / "workflow").mkdir()
    for name in ("environment.py", "only.py"):
        shutil.copy(ROOT / "workflow" / name, tmp_path / "workflow")
    with contextlib.ExitStack() as held:
        if lock:
            (tmp_path / lock).parent.mkdir(parents=True)
            file = held.enter_context(open(tmp_path / lock, "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            print("12", end="", file=file, flush=True)
        ended = subprocess.run(
            [sys.executable, "workflow/environment.py", "sh", "-c", "echo made; exit 3"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.stderr.startswith(message)
    expected = (1, "") if lock else (3, "made\n")
    assert (ended.returncode, ended.stdout) == expected


# --- the line from a job to its batch

JOB = """
import os, subprocess, sys, time
from lifeline import VARIABLE, end_with_batch
end_with_batch()
print(os.environ.get(VARIABLE, "not passed on"), flush=True)
time.sleep(float(sys.argv[1]))
"""


def start_job(seconds: float, **environment) -> subprocess.Popen:
    """A job with a pipe as standard input."""
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(seconds)],
        env={k: v for k, v in os.environ.items() if k != lifeline.VARIABLE} | environment,
        cwd=ROOT / "workflow",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_job_of_a_batch_ends_with_it_and_says_so():
    job = start_job(60, **{lifeline.VARIABLE: "stdin"})
    assert job.stdout.readline() == "not passed on\n"
    with pytest.raises(subprocess.TimeoutExpired):  # the batch lives, and the job too
        job.wait(timeout=0.5)
    _, why = job.communicate(timeout=20)  # closes its standard input
    assert job.returncode == 1 and why == "The batch has ended, and so does this job.\n"


def test_job_started_by_hand_outlives_its_pipe():
    job = start_job(0.5)
    assert job.communicate(timeout=20) == ("not passed on\n", "")
    assert job.returncode == 0


# --- what notebooks read of the benchmarks


def test_every_measurement_that_a_notebook_reads_is_one_that_is_taken():
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
    sizes, work, alone = (
        ast.literal_eval(named[name]).values() for name in ("sizes", "work", "alone")
    )
    read = {title.format(k) for title in work for k in sizes} | set(alone)
    taken = {work.title for work in measure.WORK.values()}
    assert len(read) > len(work) and read <= taken
    assert read <= set(pd.read_csv(ROOT / "benchmarks" / "results.csv").work) <= taken
