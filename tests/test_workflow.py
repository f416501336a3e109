"""The batch: parameters, what it is made of, what an edit touches, pins, the report."""

from lib.reproducible import VARIABLES

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import chain
import hare
import how_sure
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

from lib import io
from lib.io import MODELS
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
    names = sorted(path.stem for path in (ROOT / "params" / size).iterdir())
    assert names == sorted([*NOTEBOOKS, "networks", "run"])


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
        fits = {fit for fit, (name, _) in chain.FITS.items() if name == program.__name__}
        assert fits == set(program.JOBS)
    assert set(networks.JOBS) == {*networks.STACKS, *stacks.TRANSFER}


def test_every_model_is_left_by_one_job():
    jobs = [*chain.NEEDS, *chain.FITS]
    maker = {model: job for job in jobs for model in chain.left_by(job)}
    assert len(maker) == sum(len(chain.left_by(job)) for job in jobs)
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
    assert chain.READS.keys() <= chain.NEEDS.keys() | chain.FITS.keys()
    for job in (*chain.NEEDS, *chain.FITS):
        for pattern in (*chain.READS.get(job, ()), *chain.code_of(job)):
            assert list(ROOT.glob(pattern.format(size="paper"))), (job, pattern)


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_again_for_the_folders_that_it_imports(notebook):
    imported = set(re.findall(r"lib\.beyond\.(\w+)", code_of(notebook)))
    assert imported == set(chain.BEYOND_FOLDERS.get(notebook, ()))


def test_a_program_runs_again_for_the_folders_that_it_imports():
    for program in (networks, other_flows, proposers, hare, willingness, how_sure):
        imported = set(
            re.findall(r"lib\.beyond\.(\w+)", Path(program.__file__).read_text())
        )
        assert imported == set(chain.BEYOND_FOLDERS.get(program.__name__, ()))


# --- pins


@pytest.mark.parametrize("folder", [".", "docs/book"])
def test_lock_pins_each_direct_dependency(folder):
    lock = (ROOT / folder / "requirements.lock").read_text()
    digests = r"((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)"
    entry = rf"^([a-z0-9.-]+)==([0-9a-z.]+)(?: ; .*)? \\\n{digests}"
    entries = re.findall(entry, lock, re.MULTILINE)
    rest = re.sub(entry, "", lock, flags=re.MULTILINE)
    assert re.fullmatch(r"# Exact pins, .*\n", rest), "pins with checksums only, no index"
    pins = {name: version for name, version, _ in entries}
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
    (line,) = re.findall(r'\t@echo "\$\(CURDIR\)" > (.*)\n', recipe)
    line = line.replace("$$", "$").replace("$(BIN)/python", "python")
    assert f'echo "$PWD" > {line}\n' in (ROOT / "postBuild").read_text()


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
        estimate = claims.Estimate(value, value, value, 0.01)
        verdicts.ask("5.3: validity falls", "search", what, estimate, below=0)
        verdicts.ask("5.3: cost rises", "search", what, claims.ratio(np.ones(9)), above=0)
    pd.DataFrame(verdicts.parts).to_csv(folder / "04_claims.csv", index=False)
    counts = report.verdicts(tmp_path)
    assert counts.loc["search"].to_dict() == {"holds": 1, "in part": 1}
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
    io.save(tmp_path / "models", "gmsc_scaler", scaler, {"people": people}, {})
    expected = ["Table 1", "Table 1, GMSC"] if people == "real" else ["Table 1"]
    assert report.collect(tmp_path).table.tolist() == expected
    assert pd.read_csv(tmp_path / "paper_vs_ours.csv").table.tolist() == expected
    reproduce.print_table(tmp_path)
    output = capsys.readouterr().out
    assert ("GMSC" in output) is (people == "real")
    assert (reproduce.LEFT_OUT in output) is (people == "synthetic")


def test_report_needs_a_table(tmp_path):
    with pytest.raises(ValueError, match="No table"):
        report.collect(tmp_path)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_gives_programs_and_kernels_the_variables_for_equal_bits():
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    makefile = f"include {ROOT}/Makefile\nshow:\n\t@{sys.executable} -c '{code}'\n"
    run = subprocess.run(
        ["make", "--silent", "-f", "-", "show"],
        input=makefile,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert json.loads(run.stdout).items() >= VARIABLES.items()
