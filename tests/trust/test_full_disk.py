"""A disk that fills up: what was there stays whole, the reason is said, the work goes on.

The disk is a small one in memory, which only the processes of this test see.
"""

import lib.pinned

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import kills
import pytest
from test_batch import LIMIT
from test_kills import repository, wait_for

from lib.base import files

SMALL = os.environ.get("ICARMA_SMALL_DISK", "")  # its folder, inside
ENTER = 'mount -t tmpfs -o size=20m tmpfs "$0" && exec "$@"'


@pytest.mark.skipif(bool(SMALL), reason="this is the inside")
def test_all_of_this_on_a_small_disk(tmp_path):
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if (
        not shutil.which("unshare")
        or subprocess.run(
            [*alone, ENTER, tmp_path, "true"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no disk can be mounted here: util-linux, and namespaces of one's own")
    pytest_inside = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    own = {"ICARMA_SMALL_DISK": str(tmp_path), "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(
        [*alone, ENTER, tmp_path, *pytest_inside, __file__],
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0 and "2 passed" in ended.stdout, ended.stdout


inside = pytest.mark.skipif(not SMALL, reason="called by the test above")


@contextmanager
def full() -> Iterator[None]:
    """Leave no room on the disk, for a while."""
    ballast = Path(SMALL) / "ballast"
    with suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(SMALL).free == 0
    try:
        yield
    finally:
        ballast.unlink()


@inside
def test_a_file_that_finds_no_room_is_as_it_was():
    path = Path(SMALL) / "folder" / "one.csv"
    files.write(path, "a,b\n")
    with full(), pytest.raises(OSError, match=r"No space left.*What was there before"):
        files.write(path, "c,d\n" * 10_000)
    assert path.read_text() == "a,b\n"
    assert [found.name for found in path.parent.iterdir()] == ["one.csv"]
    files.write(path, "c,d\n" * 10_000)
    assert path.read_text() == "c,d\n" * 10_000


@inside
def test_a_batch_says_that_the_disk_is_full_and_goes_on_when_there_is_room(tmp_path):
    """The disk fills up in the fit, once it was kept; it does not begin again."""
    whole = kills.Batch(repository(tmp_path / "whole"), "tiny")
    root = repository(Path(SMALL) / "root")
    (root / "tiny.log").write_text("\n")  # has a page of the disk, so there is room in it
    batch = kills.Batch(root, "tiny")
    kept, epochs = batch.run / "partial" / "small_fit", root / "epochs"
    wait_for(batch, lambda: list(kept.glob("*.safetensors")) and epochs.exists())
    with full():
        assert batch.process.wait(LIMIT) == 1
    assert "There is no room left on the disk that" in batch.said.read_text()
    batch = kills.Batch(root, "tiny")
    assert batch.process.wait(LIMIT) == 0, batch.said.read_text()
    assert epochs.read_text().split().count("0") == 1
    assert whole.process.wait(LIMIT) == 0, whole.said.read_text()
    assert kills.results(batch.run) == kills.results(whole.run)
