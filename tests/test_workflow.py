"""The batch: parameters, rules, pins, and the report."""

from lib.reproducible import VARIABLES

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import fit
import numpy as np
import pandas as pd
import parameters
import pytest
import report
import yaml
from packaging.requirements import Requirement

from lib.io import ROOT

SIZES = ("paper", "quick", "smoke")
DEFAULTS = {"n": 10, "rate": 0.5, "folder": "models", "n_epochs": None, "kinds": {"a": 1}}


@pytest.mark.parametrize("size", SIZES)
def test_each_size_fits_all_notebooks_and_fits(size):
    parameters.check_size(size)


@pytest.mark.parametrize(
    "line",
    ["n: 3", "rate: 1", "rate: 0.1", "n_epochs: 4", "n_epochs: null", "kinds: {b: x}"],
)
def test_a_parameter_that_fits(line):
    parameters.check(yaml.safe_load(line), DEFAULTS, "mine.yaml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("N: 3", "Unknown parameter of mine.yaml: 'N'"),
        ("folders: x", "Did you mean 'folder'"),
        ("n: 3.0", "n is 3.0, a float; expected an int, such as 10"),
        ("n: true", "n is True, a bool"),
        ("rate: 1e-3", "rate is '1e-3', a str"),  # YAML reads it as a text
        ("folder: off", "folder is False, a bool"),
    ],
)
def test_a_parameter_that_does_not_fit(line, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.check(yaml.safe_load(line), DEFAULTS, "mine.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"all": {"n_flow": "800"}}, "n_flow is '800', a str"),
        ({"all": {"n_flows": 800}}, "Did you mean 'n_flow'?"),
        ({"notebooks": {"04_hard": {}}}, "Unknown notebook '04_hard'"),
        (
            {"notebooks": {"04_hard_constraints": {"n_value": 3}}},
            "Did you mean 'n_values'?",
        ),
        ({"fits": {"n_seeds": 1.5}}, "n_seeds is 1.5, a float"),
        ({"fits": {"n_epochs": {"loan_carma": 2}}}, "fits, n_epochs lacks loan_icarma"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_before_any_kernel(tmp_path, changes, message):
    sections = parameters.read("smoke")
    for section, values in changes.items():
        sections[section] = sections[section] | values
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(sections))
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.check_size("mine", tmp_path)


def test_what_is_printed_for_papermill_are_the_parameters():
    command = [sys.executable, "workflow/parameters.py", "smoke", "04_hard_constraints"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    expected = parameters.given("smoke", "04_hard_constraints")
    assert yaml.safe_load(printed.stdout) == expected
    assert expected["n_values"] == 4 and expected["models"] == "runs/smoke/models"


# --- the rules


RULES = """
import json
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings, OutputSettings, ResourceSettings, StorageSettings)

with SnakemakeApi(OutputSettings()) as api:
    batch = api.workflow(
        ResourceSettings(cores=1), ConfigSettings(config={"size": "paper"}),
        StorageSettings(), snakefile=Path("workflow/Snakefile"))._workflow
    rules = {rule.name: [list(map(str, rule.input)), list(map(str, rule.output))]
             for rule in batch.rules}
    print(json.dumps(rules))
"""


@pytest.fixture(scope="module")
def rules() -> dict[str, tuple[list[str], list[str]]]:
    """Inputs and outputs of each rule, as Snakemake reads them."""
    command = [sys.executable, "-c", RULES]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def test_the_batch_runs_each_notebook_and_each_fit(rules):
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    made = {Path(path).name for _, outputs in rules.values() for path in outputs}
    assert notebooks <= made
    fits = {name for name in rules if not name.startswith("notebook_")}
    assert fits - {"all", "paper", "beyond", "hare_tables"} == set(fit.JOBS)


def test_what_a_rule_reads_is_there_or_is_made(rules):
    made = [path for _, outputs in rules.values() for path in outputs]
    assert len(made) == len(set(made))
    for name, (inputs, _) in rules.items():
        for path in inputs:
            assert path in made or (ROOT / path).is_file(), (name, path)


def test_every_committed_model_is_made(rules):
    made = {Path(path).name for _, outputs in rules.values() for path in outputs}
    assert {path.name for path in (ROOT / "models").iterdir()} <= made


def test_a_notebook_waits_for_the_models_and_modules_that_it_names(rules):
    for name, (inputs, outputs) in rules.items():
        if not name.startswith("notebook_"):
            continue
        (path,) = [path for path in inputs[:1] if path.endswith(".ipynb")]
        cells = json.loads((ROOT / path).read_text())["cells"]
        source = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        for folder in re.findall(r"lib\.beyond\.(\w+)", source):
            assert any(f"lib/beyond/{folder}/" in read for read in inputs), (name, folder)
        files = {Path(path).stem for path in inputs + outputs}
        for model in re.findall(r'"((?:loan|gmsc)_[a-z_]+)"', source):
            if (ROOT / "models" / f"{model}.safetensors").is_file():
                assert model in files, (name, model)


# --- pins

LOCKS = ("-r requirements.lock", "-r torch.lock")
TORCH = re.search(r"^torch==([0-9.]+)", (ROOT / "torch.lock").read_text(), re.MULTILINE)[1]
DIGESTS = re.findall(r"--hash=sha256:([0-9a-f]{64})", (ROOT / "torch.lock").read_text())


@pytest.mark.parametrize("folder", [".", "docs/book"])
def test_lock_pins_each_direct_dependency(folder):
    lock = (ROOT / folder / "requirements.lock").read_text()
    digests = r"((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)"
    entry = rf"^([a-z0-9.-]+)==([0-9a-z.]+)(?: ; .*)? \\\n{digests}"
    entries = re.findall(entry, lock, re.MULTILINE)
    rest = re.sub(entry, "", lock, flags=re.MULTILINE)
    assert re.fullmatch(r"(#.*\n)+", rest), "pins with checksums only, no index"
    pins = {name: version for name, version, _ in entries} | {"torch": TORCH}
    assert not [name for name in pins if name.startswith(("nvidia", "cuda", "triton"))]
    for line in (ROOT / folder / "requirements.in").read_text().splitlines():
        if line and not line.startswith("#"):
            name, operator, version = re.fullmatch(
                r"([a-z0-9-]+)(==|<|)([0-9.*]*)", line
            ).groups()
            assert name in pins, f"{name} is not in the lock"
            if operator == "==":
                assert re.fullmatch(version.replace("*", r"\d+"), pins[name]), (
                    f"{name} is {pins[name]}"
                )


def test_only_builds_of_torch_without_cuda_are_allowed():
    """Their checksums, as other projects that lock them hold them (nixpkgs, for one)."""
    for_linux, of_cuda = (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
        "60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7",
    )
    assert for_linux in DIGESTS and of_cuda not in DIGESTS
    assert len(DIGESTS) == 9  # three Pythons on three platforms


def test_what_torch_needs_is_what_its_build_says():
    """The lock is made with what pyproject.toml lists, without the packages of CUDA."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    (listed,) = settings["dependency-metadata"]
    assert listed["version"] == TORCH == version("torch").partition("+")[0]
    needed = [line for line in requires("torch") if "extra ==" not in line]
    assert {Requirement(line).name for line in needed} == {
        Requirement(line).name for line in listed["requires-dist"]
    }


def test_conda_and_make_install_the_same():
    pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    script = (ROOT / "workflow" / "environment.sh").read_text()
    index = re.search(r"^torch=(.*)$", script, re.MULTILINE)[1]
    assert pip == [f"--find-links {index}", "--require-hashes", *LOCKS]
    assert f"--require-hashes $links {' '.join(LOCKS)}\n" in script
    (line,) = re.findall(r'echo "\$PWD" > (.*)\n', script)
    assert line.replace(".venv/bin/", "") in (ROOT / "postBuild").read_text()


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
    write_table(folder, "07_gmsc", table="1, GMSC")
    rows = report.collect(tmp_path, report.TABLES)
    assert list(rows["table"]) == ["Table 1", "Table 2", "1, GMSC"]
    without = report.collect(tmp_path, report.TABLES, has_data=False)
    assert list(without["table"]) == ["Table 1", "Table 2"]
    with pytest.raises(ValueError, match="There is no table"):
        report.collect(tmp_path, report.CLAIMS)
    (folder / "04_claims.csv").write_text("section\n5.3\n")
    (folder / "05_claims.csv").write_text("section\n5.3\nD.1\n")
    rows = report.collect(tmp_path, report.CLAIMS)
    assert rows.section.tolist() == ["5.3", "5.3", "D.1"]


def test_report_asks_tables_that_no_notebook_asks():
    seconds = pd.Series(
        {
            "oracle, all test people, three features, 25 values": 0.3,
            "oracle, all test people, four features, 25 values": 0.5,
            "iCARMA's answer for all test people at once": 0.1,
        }
    )
    shares = {"accuracy †": 0.9, "share refused †": 0.1, "share that defaults": 0.07}
    asked = report.ask_tables(seconds, pd.Series(shares))
    assert asked.ours.tolist() == pytest.approx([4, 0.9, 0.1, 0.03])
    assert asked.here.tolist() == ["does not hold", "holds", "holds", "does not hold"]
    assert report.ask_tables(seconds, pd.Series()).section.tolist() == ["5.3"]


def test_report_counts_the_verdicts():
    rows = pd.DataFrame(
        {
            "section": "5.3",
            "claim": ["validity falls"] * 2 + ["cost rises"] * 2 + ["cost doubles"] * 2,
            "who": "search",
            "part": ["4", "3"] * 3,
            "paper": [0.1, 0.2] + [np.nan] * 4,
            "in the paper": ["a tie"] * 2 + ["cannot be asked"] * 4,
            "here": [
                "holds",
                "does not hold",
                "holds",
                "holds",
                "undecided",
                "does not hold",
            ],
        }
    )
    counts = report.count_verdicts(rows)
    of_search = {"a tie": 0, "does not hold": 1, "holds": 1, "in part": 1}
    assert counts.loc["search"].to_dict() == of_search
    assert counts.loc["the paper's numbers", "a tie"] == 1


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
