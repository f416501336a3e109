"""What Snakemake would run after an edit of a room, where all of the batch has run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import chain
import pytest
from reproduce import LARGEST_MODEL
from test_batch import LIMIT
from test_workflow import HARE, LOOKS, NETWORKS, PROPOSERS, ROOT

# these share what they copy, so that one worker takes them all
pytestmark = pytest.mark.xdist_group("reruns")
EDITED = ("lib", "notebooks", "params", "workflow")


def snakemake(root: Path, *options: str) -> str:
    """What Snakemake says of the smallest batch of a copy."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", "workflow/Snakefile"]
    command += ["--profile", "workflow/profiles/local", "--config", "size=smoke"]
    command += ["profile=local", "--max-checksum-file-size", str(LARGEST_MODEL), *options]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LIMIT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """A copy of this repository; Snakemake takes its batch for done."""
    root = tmp_path_factory.mktemp("done")
    for path in ROOT.iterdir():
        if path.name in EDITED:
            only = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(path, root / path.name, ignore=only)
        elif path.is_dir() and path.name[0] != "." and path.name != "runs":
            (root / path.name).symlink_to(path)
    made = [f"done/{notebook}" for notebook in chain.NEEDS]
    for job in (*chain.NEEDS, *chain.FITS):
        made += [f"models/{chain.file_of(model)}" for model in chain.left_by(job)]
    for name in made:
        path = root / "runs" / "smoke" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    snakemake(root, "--touch", "--forceall")
    return root


def run_after(root: Path, file: str, old: str, new: str) -> set[str]:
    """The notebooks and fits that would run after an edit, which is taken back."""
    path = root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    said = snakemake(root, "--dry-run")
    path.write_text(text)
    return set(re.findall(r"^checkpoint (?:notebook_)?(\w+):$", said, re.MULTILINE))


CODE = ("\n\n\n", "\n\nEDITED = 1\n\n\n")


def test_an_edit_of_hare_runs_its_fits_and_those_who_import_it(done):
    found = run_after(done, "lib/beyond/hare/hare.py", *CODE)
    assert found == {*HARE, "09_human_in_the_loop"}


def test_an_edit_of_the_proposer_runs_no_networks(done):
    found = run_after(done, "lib/beyond/propose/propose.py", *CODE)
    assert found & chain.FITS.keys() == PROPOSERS
    assert not found & set(chain.PARTS["paper"])


def test_an_edit_of_the_networks_runs_no_flow(done):
    found = run_after(done, "lib/method/icarma.py", *CODE)
    assert found & chain.FITS.keys() == NETWORKS | PROPOSERS | LOOKS
    assert not found & {"01_data_and_scm", "02_causal_flow"}


def test_an_edit_of_a_docstring_runs_nothing(done):
    """Nor does a parameter file that was written again as it was."""
    (done / "params/smoke/run.yaml").touch()
    assert run_after(done, "lib/method/icarma.py", '"""', '"""Look: ') == set()
