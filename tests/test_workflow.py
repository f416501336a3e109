"""The batch: parameters, what it is made of, what an edit touches, pins, the report."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import chain
import hare
import how_sure
import measure
import nbformat
import networks
import numpy as np
import other_flows
import pandas as pd
import parameters
import proposers
import pytest
import report
import reproduce
import torch
import willingness
import yaml
from nbformat.v4 import new_code_cell, new_notebook

from lib.base import files, rooms
from lib.base.files import MODELS
from lib.paper import claims, gmsc, stacks

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


# --- this repository's own parameter files


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
    found = sorted(path.stem for path in (ROOT / "params" / size).iterdir())
    assert found == sorted([*NOTEBOOKS, "networks", "run"])


@pytest.mark.parametrize("notebook", NOTEBOOKS)
@pytest.mark.parametrize("size", SIZES)
def test_what_is_shared_reaches_each_notebook(size, notebook):
    """Whoever reads the same name gets the same value, and the networks do as well."""
    defaults = parameters.notebook_defaults(ROOT / "notebooks" / f"{notebook}.ipynb")
    shared = parameters.read_shared(size)
    values = parameters.read_parameters(size, notebook)
    networks = parameters.read_network_parameters(size)
    assert shared.keys() & defaults.keys() >= {"seed"}
    for name in shared.keys() & defaults.keys():
        assert values[name] == shared[name] == networks[name], name


@pytest.mark.parametrize("size", SIZES)
def test_networks_are_described(size):
    values = parameters.read_network_parameters(size)
    assert values["models"] == f"runs/{size}/models"
    fitted_with = {"gmsc_classifier", "gmsc_flow", "gmsc_icarma", "gmsc_other_flows"}
    fitted_with |= {"gmsc_propose", "loan_propose", "loan_propose_others", *stacks.TRANSFER}
    assert sorted(values["n_epochs"]) == sorted(set(networks.STACKS) | fitted_with)


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


# --- what the batch is made of


def test_the_batch_runs_each_notebook_and_each_stack():
    assert sorted(chain.NEEDS) == NOTEBOOKS
    paper, beyond = chain.PARTS["paper"], chain.PARTS["beyond"]
    assert sorted([*paper, *beyond]) == NOTEBOOKS and "07_gmsc_transfer" in paper
    for program in (networks, other_flows, proposers, hare, willingness, how_sure):
        own = {fit for fit, (name, _) in chain.FITS.items() if name == program.__name__}
        assert own == set(program.JOBS)
    assert {name for name, _ in chain.FITS.values()} == set(chain.PROGRAMS)
    assert set(networks.JOBS) == {*networks.STACKS, *stacks.TRANSFER}


def test_every_model_is_left_by_one_job_and_needed_by_what_comes_after():
    """All that a model was made from is directly in front of whoever reads it.

    Else Snakemake runs it, though what was made again is as it was: it looks again only at
    what is directly behind a job that has ended.
    """
    jobs = [*chain.NEEDS, *chain.FITS]
    maker = {model: job for job in jobs for model in chain.left_by(job)}
    assert len(maker) == sum(len(chain.left_by(job)) for job in jobs)
    for job in jobs:
        behind = {maker[model] for model in chain.needed_by(job)}
        assert behind == chain.run_for([job]) - {job}, job
    assert {chain.file_of(model) for model in maker} == {
        path.name for path in MODELS.iterdir() if path.is_file()
    }


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_is_behind_the_models_that_it_names(notebook):
    before = {model for job in chain.run_for([notebook]) for model in chain.left_by(job)}
    models = {model for job in (*chain.NEEDS, *chain.FITS) for model in chain.left_by(job)}
    assert models & set(re.findall(r'"(\w+)"', code_of(notebook))) <= before


def code_of(notebook: str) -> str:
    """The code of a notebook."""
    cells = nbformat.read(ROOT / "notebooks" / f"{notebook}.ipynb", as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def test_what_a_job_reads_is_there():
    for job, patterns in chain.READS.items():
        assert job in chain.NEEDS or job in chain.FITS
        for pattern in patterns:
            assert list(ROOT.glob(pattern.format(size="paper"))), (job, pattern)


# --- what an edit touches


def touched(lib: Path, room: str, old: str, new: str) -> set[str]:
    """The notebooks and fits whose digest another text in a room of a copy changes."""
    jobs = [*chain.NEEDS, *chain.FITS]
    path = lib.parent / room
    before, text = [digest(job, lib.parent) for job in jobs], path.read_text()
    assert text.count(old)
    path.write_text(text.replace(old, new, 1))
    after = [digest(job, lib.parent) for job in jobs]
    path.write_text(text)
    return {job for job, a, b in zip(jobs, before, after, strict=True) if a != b}


def digest(job: str, root: Path) -> str:
    return rooms.digest(*chain.code_files(job, root), root=root)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The code of this repository, to be edited."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("lib", "notebooks", "workflow"):
        only = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / folder, root / folder, ignore=only)
    return root / "lib"


NETWORKS, PROPOSERS, HARE = set(networks.JOBS), set(proposers.JOBS), set(hare.JOBS)
FLOWS, LOOKS = set(other_flows.JOBS), set(how_sure.JOBS)


@pytest.mark.parametrize(
    ("room", "fits", "notebooks"),
    [
        ("lib/beyond/hare/hare.py", HARE, {"09"}),
        ("lib/beyond/propose/propose.py", PROPOSERS, {"11", "12"}),
        ("lib/method/training.py", NETWORKS, {"03", "04", "12"}),
        ("lib/method/icarma.py", NETWORKS | PROPOSERS | LOOKS, None),
        ("lib/paper/stacks.py", NETWORKS | LOOKS, None),
        ("lib/paper/pictures/results.py", set(), None),
        ("lib/method/flow.py", {*chain.FITS} - {"willingness"}, None),
        ("lib/beyond/evaluation/gamm.py", {"willingness"}, {"10"}),
        ("lib/base/progress.py", set(), set()),
        ("workflow/fitting.py", NETWORKS | PROPOSERS | FLOWS | LOOKS, set()),
    ],
)
def test_an_edit_touches_what_imports_it(copy, room, fits, notebooks):
    """None for notebooks: many."""
    found = touched(copy, room, "\n\n\n", "\n\nEDITED = 1\n\n\n")
    assert found & chain.FITS.keys() == fits
    numbers = {name.partition("_")[0] for name in found - chain.FITS.keys()}
    assert numbers == notebooks if notebooks is not None else len(numbers) > 5


@pytest.mark.parametrize(
    ("old", "new"), [('"""', '"""Look: '), ("\n\n\n", "\n\n# a comment\n\n")]
)
def test_what_is_only_read_touches_nothing(copy, old, new):
    assert touched(copy, "lib/method/icarma.py", old, new) == set()


def test_a_notebook_that_shows_what_a_room_says_is_touched_by_that():
    for notebook in NOTEBOOKS:
        shown = re.findall(r"(\w+)\.__doc__|getsource\((\w+)", code_of(notebook))
        own = {Path(file).stem for file in chain.READS.get(notebook, ())}
        assert {a or b for a, b in shown} <= own, notebook


# --- pins


@pytest.mark.parametrize("folder", [".", "docs/book"])
def test_lock_pins_each_direct_dependency(folder):
    lock = (ROOT / folder / "requirements.lock").read_text()
    digests = r"((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)"
    entry = rf"^([a-z0-9.-]+)==([0-9a-z.]+)(?: ; .*)? \\\n{digests}"
    found = re.findall(entry, lock, re.MULTILINE)
    rest = re.sub(entry, "", lock, flags=re.MULTILINE)
    assert re.fullmatch(r"# Exact pins, .*\n", rest), "pins with checksums only, no index"
    pins = {name: version for name, version, _ in found}
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


def test_only_builds_of_torch_without_cuda_are_allowed():
    """Their checksums, as other projects that lock them hold them (nixpkgs, for one)."""
    lock = (ROOT / "requirements.lock").read_text()
    entry = re.search(r"^torch==2\.13\.0 .*\n((?:    --hash.*\n)+)", lock, re.MULTILINE)
    for_linux, of_cuda = (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
        "60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7",
    )
    assert for_linux in entry[1] and of_cuda not in entry[1]
    assert len(re.findall("sha256", entry[1])) == 9  # three Pythons on three platforms


def test_conda_and_make_install_the_same():
    pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    makefile = (ROOT / "Makefile").read_text()
    index = re.search(r"^TORCH := (.*)$", makefile, re.MULTILINE)[1]
    assert pip == [f"--find-links {index}", "--require-hashes", "-r requirements.lock"]
    recipe = re.search(r"^environment:(.*\n(?:\t.*\n)+)", makefile, re.MULTILINE)[1]
    assert re.findall(r"--require-hashes \$\$links -r (\S+)", recipe) == [
        "requirements.lock"
    ]
    (own,) = re.findall(r'\t@echo "\$\(CURDIR\)" > (.*)\n', recipe)
    own = own.replace("$$", "$").replace("$(BIN)/python", "python")
    assert f'echo "$PWD" > {own}\n' in (ROOT / "postBuild").read_text()


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
        f"  *purelib*) echo {tmp_path};;\n"
        "esac\n"
    )
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "setup", f"PYTHON={python}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    installs = [line for line in asked if line.startswith("pip install")]
    is_linux = sys.platform == "linux"
    link = "--find-links https://download.pytorch.org/whl/cpu/torch/ " * (
        answers and is_linux
    )
    assert f"--require-hashes {link}-r requirements.lock" in installs[0]
    assert len(installs) == 1
    assert (tmp_path / "icarma_companion.pth").read_text() == f"{tmp_path}\n"
    assert ("has to find torch's build" in made.stdout) == (is_linux and not answers)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_make_clean_leaves_nothing(tmp_path):
    """Of all that git ignores, as the repository says and as tools say of their own."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    names = [line.strip("/") for line in ignored if line and not line.startswith("#")]
    names = [name.replace("*", "a") for name in names if name != "*.pyc"]
    for name in (*names, ".mypy_cache", ".ruff_cache", ".import_linter_cache"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "left").touch()
    for name in ("lib/base/__pycache__", "notebooks/.ipynb_checkpoints"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lib" / "kept.py").touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    left = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["Makefile", "kept.py"]


# --- the report


def write_table(folder: Path, name: str, **changes) -> None:
    row = {
        "table": "Table 1",
        "setting": "k = 4",
        "method": "iCARMA",
        "networks": "as printed",
        "metric": "validity",
        "calibration": False,
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
    folder = tmp_path / "tables"
    write_table(folder, "04_hard")
    write_table(folder, "05_soft", table="Table 2", networks="pruned", calibration=True)
    nothing = dict.fromkeys(("paper", "difference", "agrees", "networks"))
    write_table(folder, "05_table6", table="Table 6", **nothing)
    rows = report.collect(tmp_path)
    assert list(rows["table"]) == ["Table 1", "Table 2", "Table 6"]
    assert (tmp_path / "paper_vs_ours.csv").is_file()
    first, second = report.as_text(rows).splitlines()[-2:]  # nothing is printed of table 6
    assert first.split()[:6] == ["Table", "1", "as", "printed", "1", "1"]
    assert "0.001" in first and "nan" not in second.lower()
    assert second.split()[:5] == ["Table", "2", "pruned", "1", "0"]


def test_report_counts_the_verdicts(tmp_path):
    folder = tmp_path / "tables"
    write_table(folder, "04_hard")
    verdicts = claims.Verdicts()
    for what, value in {"4": 0.5, "3": -0.5}.items():
        own = claims.Estimate(value, value, value, 0.01)
        verdicts.ask("5.3: validity falls", "search", what, own, below=0)
        verdicts.ask("5.3: cost rises", "search", what, claims.ratio(np.ones(9)), above=0)
    pd.DataFrame(verdicts.parts).to_csv(folder / "04_claims.csv", index=False)
    said = report.verdicts(tmp_path)
    assert said.loc["search"].to_dict() == {"holds": 1, "in part": 1}
    assert len(pd.read_csv(tmp_path / "claims.csv")) == 4


def test_report_refuses_other_columns(tmp_path):
    write_table(tmp_path / "tables", "04_hard", note="x")
    with pytest.raises(ValueError, match=r"04_hard_paper_vs_ours.csv has the columns"):
        report.collect(tmp_path)


@pytest.mark.parametrize("people", ["real", "synthetic"])
def test_the_paper_is_not_put_beside_a_stand_in(tmp_path, capsys, people):
    write_table(tmp_path / "tables", "04_hard")
    write_table(tmp_path / "tables", "07", table="Table 1, GMSC")
    ones = torch.ones(len(gmsc.COLUMNS), dtype=torch.float64)
    scaler = {"mean": ones, "std": ones.clone(), "weight": torch.tensor(1.0)}
    files.save(tmp_path / "models", "gmsc_scaler", scaler, {"people": people}, {})
    expected = ["Table 1", "Table 1, GMSC"] if people == "real" else ["Table 1"]
    assert report.collect(tmp_path).table.tolist() == expected
    assert pd.read_csv(tmp_path / "paper_vs_ours.csv").table.tolist() == expected
    reproduce.print_table(tmp_path)
    said = capsys.readouterr().out
    assert ("GMSC" in said) is (people == "real")
    assert (reproduce.LEFT_OUT in said) is (people == "synthetic")


def test_report_needs_a_table(tmp_path):
    with pytest.raises(ValueError, match="No table"):
        report.collect(tmp_path)


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
