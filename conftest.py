"""Make nbval strict where it passes in silence: notebooks not run, images, digits.

nbval runs each code cell again and compares its outputs with the committed ones. By itself
it compares text to the last digit, never compares images, and passes a notebook that holds
no outputs. Here instead, under `pytest --nbval`:

- a notebook must be committed as executed from top to bottom (In [1], In [2], ...), without
  an error and without stderr;
- numbers may differ by `RELATIVE` (of the committed one), all other text may not; the width
  of gaps between words is free;
- a cell tagged `few-people` shows shares of so few people that the rounding of another
  processor moves them: its numbers may differ by `SHARE` as well;
- images may differ by `GREY_LEVELS`, of 255, in the mean over their pixels, and must have
  the same size;
- a cell tagged `nbval-ignore-output` still has to run, and its outputs are not compared;
- a notebook whose committed outputs come from data that is not here (`NEEDS_DATA`) is
  checked as committed, and not run; in other notebooks, so is a cell tagged `needs-data`;
- cells run with a history, as in Jupyter: without one, a closing `;` does not hide a cell's
  last value.

And nothing that is asked for is left out in silence: `ICARMA_REQUIRE=chromium,node` makes
a failure of each test that is skipped because one of these is missing (`REQUIRED`).
"""

import lib.reproducible

import base64
import functools
import io
import itertools
import math
import os
import re
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile
from PIL import Image, ImageChops, ImageStat

RELATIVE = 1e-3
ABSOLUTE = 1e-9  # for rounding errors around zero
# Of 150 people (notebook 11) rounding in five ways moved two. As for a table, docs/run.md.
SHARE = 0.02
# Moving every point of a figure by 0.1 % changes 0.06 to 0.19 grey levels, by 1 % 0.2 to
# 0.6; another curve, 2.
GREY_LEVELS = 0.2
IMAGES = ("image/png", "image/jpeg")
# A widget's identity is drawn at random.
WIDGET = "application/vnd.jupyter.widget-view+json"

# These are run by tests/beyond/test_exercises.py.
collect_ignore_glob = [str(Path(__file__).parent / "exercises" / "*.ipynb")]

# On a stand-in for its data such a notebook says something else than what was committed.
NEEDS_DATA = {Path(__file__).parent / "notebooks" / "07_gmsc_transfer.ipynb"}

# What a machine may lack, and how the reason of a skip names it.
REQUIRED = {
    "chromium": "chromium is not|playwright is not",
    "gmsc": "data is not here",
    "make": "make is not",
    "node": "node.js",
}

# A number that is not part of a word, with the gaps around it.
NUMBER = re.compile(
    r"[ \t]*((?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w))[ \t]*"
)


def pytest_configure() -> None:
    """Refuse to require what nobody knows."""
    unknown = [name for name in required() if name not in REQUIRED]
    if unknown:
        raise pytest.UsageError(
            f"ICARMA_REQUIRE names {', '.join(unknown)}: expected some of "
            f"{', '.join(REQUIRED)}, with commas between them."
        )


def required() -> list[str]:
    """Return what must not be missing, by name."""
    names = os.environ.get("ICARMA_REQUIRE", "").split(",")
    return [name.strip() for name in names if name.strip()]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """Let a test fail that is skipped for want of something that is required."""
    report = (yield).get_result()
    if report.skipped and isinstance(report.longrepr, tuple):
        why = report.longrepr[-1]
        missing = [
            name for name in required() if re.search(REQUIRED[name], why, re.IGNORECASE)
        ]
        if missing:
            report.outcome = "failed"
            report.longrepr = f"ICARMA_REQUIRE names {missing[0]}, and: {why}"


@pytest.fixture(autouse=True)
def _shared_names(request: pytest.FixtureRequest) -> None:
    """Give examples in docstrings the names that many of them need."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("doctest_namespace").update(shared_names())


@functools.cache
def shared_names() -> dict[str, Any]:
    """Return what examples in docstrings may use without an import, by name.

    `problem` is Loan's, with the committed models.
    """
    from tempfile import TemporaryDirectory

    import numpy as np
    import pandas as pd
    import torch

    from lib.io import MODELS
    from lib.method import loan

    return {
        "np": np,
        "pd": pd,
        "torch": torch,
        "TemporaryDirectory": TemporaryDirectory,
        "Path": Path,
        "MODELS": MODELS,
        "loan": loan,
        "problem": loan.problem(),
    }


class OutputsDiffer(Exception):
    """What is committed is not what the notebook should hold; the message says where."""


class CommittedOutputs(pytest.Item):
    """The check of a notebook as it was committed; stands before its cells."""

    def runtest(self) -> None:
        """Raise OutputsDiffer unless the notebook was executed from top to bottom."""
        cells = [
            cell
            for cell in self.parent.nb.cells
            if cell.cell_type == "code" and cell.source.strip()
        ]
        for number, cell in enumerate(cells, start=1):
            if cell.execution_count != number:
                raise OutputsDiffer(
                    f"code cell {number} is committed as In [{cell.execution_count}], "
                    f"expected In [{number}]: execute the notebook from top to bottom "
                    "(workflow/notebooks.sh)."
                )
            for output in cell.outputs:
                if output.output_type == "error" or output.get("name") == "stderr":
                    text = output.get("evalue") or output.get("text")
                    raise OutputsDiffer(
                        f"In [{number}] is committed with an error or a warning: "
                        f"{text.strip()}"
                    )

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """Return the failure in one line, with the notebook's name."""
        return f"{self.path.name}: {excinfo.value}"

    def reportinfo(self) -> tuple[Any, int, str]:
        """Return where the item stands, as pytest prints it."""
        return self.path, 0, self.nodeid


def collect(notebook: IPyNbFile) -> list[pytest.Item]:
    """Return the check of what was committed, and nbval's items: one for each code cell."""
    cells = list(nbval_collect(notebook))
    of_data = [
        item
        for item in cells
        if notebook.path in NEEDS_DATA or "needs-data" in item.cell.metadata.get("tags", ())
    ]
    if of_data:
        from lib.paper import gmsc

        if gmsc.find(download=False) is None:
            why = f"its data is not here: {gmsc.VARIABLE} names it"
            for cell in of_data:
                cell.add_marker(pytest.mark.skip(reason=why))
    return [CommittedOutputs.from_parent(notebook, name="committed outputs"), *cells]


def compare_outputs(
    cell: IPyNbCell, fresh: Sequence[Any], committed: Sequence[Any]
) -> bool:
    """Return whether a cell's fresh outputs agree with the committed ones.

    If not, `comparison_traceback` of the cell says where, and nbval prints it.
    """
    is_of_few = "few-people" in cell.cell.metadata.get("tags", ())
    try:
        compare_kinds(by_kind(fresh), by_kind(committed), SHARE if is_of_few else ABSOLUTE)
    except OutputsDiffer as difference:
        cell.comparison_traceback = [
            f"{cell.path.name}, In [{cell.cell.execution_count}], {difference}"
        ]
        return False
    return True


def compare_kinds(
    now: dict[str, list[str]], then: dict[str, list[str]], absolute: float
) -> None:
    """Raise OutputsDiffer unless each kind has as many contents, and they agree."""
    for kind in sorted(now.keys() | then.keys()):
        contents_then, contents_now = then.get(kind, []), now.get(kind, [])
        if len(contents_then) != len(contents_now):
            raise OutputsDiffer(
                f"{kind}: {len(contents_then)} committed, {len(contents_now)} now"
            )
        pairs = zip(contents_then, contents_now, strict=True)
        for number, pair in enumerate(pairs, start=1):
            if kind in IMAGES:
                compare_images(f"{kind} {number}", *pair)
            else:
                compare_text(f"{kind} {number}", *pair, absolute)


def by_kind(outputs: Sequence[Any]) -> dict[str, list[str]]:
    """Return contents of outputs in order, under stdout, text/plain, image/png, ..."""
    contents: dict[str, list[str]] = {}
    for output in outputs:
        if output.output_type == "stream":
            contents.setdefault(output.name, []).append(output.text)
        else:
            for kind, content in output.get("data", {}).items():
                if kind != WIDGET:
                    contents.setdefault(kind, []).append(content)
    return contents


def compare_text(place: str, then: str, now: str, absolute: float) -> None:
    """Raise OutputsDiffer unless two texts agree, line by line.

    Numbers may differ within the tolerance, and all other text not at all.
    """
    pairs = itertools.zip_longest(
        str(then).splitlines(), str(now).splitlines(), fillvalue="(no line)"
    )
    for number, (line_then, line_now) in enumerate(pairs, start=1):
        what = difference_of_lines(line_then, line_now, absolute)
        if what:
            raise OutputsDiffer(
                f"{place}, line {number}: {what}\n  committed: {line_then}\n"
                f"  now:       {line_now}"
            )


def difference_of_lines(then: str, now: str, absolute: float) -> str:
    """Return in what two lines differ, or an empty text."""
    parts_then, parts_now = NUMBER.split(then), NUMBER.split(now)
    # re.split puts the numbers at odd places, between the texts.
    for a, b in zip(parts_then[1::2], parts_now[1::2], strict=False):
        if not math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=absolute):
            return f"{a} became {b}"
    words_then, words_now = (
        [" ".join(text.split()) for text in parts[::2]] for parts in (parts_then, parts_now)
    )
    return "" if words_then == words_now else "text differs"


def compare_images(place: str, then: str, now: str) -> None:
    """Raise OutputsDiffer unless two images have one size and nearly the same pixels."""
    image_then, image_now = (
        Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
        for data in (then, now)
    )
    if image_then.size != image_now.size:
        raise OutputsDiffer(
            f"{place}: {image_then.width} x {image_then.height} pixels became "
            f"{image_now.width} x {image_now.height}"
        )
    difference = sum(ImageStat.Stat(ImageChops.difference(image_then, image_now)).mean) / 3
    if difference > GREY_LEVELS:
        raise OutputsDiffer(
            f"{place}: differs by {difference:.2f} of 255 grey levels in the mean, "
            f"{GREY_LEVELS} allowed"
        )


def execute_cell_input(kernel: RunningKernel, source: str, allow_stdin: bool) -> str:
    """Run a cell's source with a history, and return the identity of the request."""
    return kernel.kc.execute(
        source, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )


def start_kernel(**settings: Any) -> tuple[KernelManager, Any]:
    """Start a kernel; if it does not answer, another one, at most three in all.

    A kernel's ports are chosen before it starts. If another program takes one of them
    meanwhile, the kernel ends, or it lives and never answers.
    """
    # The history stays in memory: kernels side by side would share a file.
    start = functools.partial(
        start_nbval_kernel,
        extra_arguments=["--HistoryManager.hist_file=:memory:"],
        **settings,
    )
    for _ in range(2):
        try:
            return start()
        except RuntimeError as error:
            warnings.warn(f"a kernel is started again: {error}", stacklevel=2)
    return start()


# The one place where nbval is changed.
nbval_collect = IPyNbFile.collect
start_nbval_kernel = nbval.kernel.start_new_kernel
nbval.kernel.start_new_kernel = start_kernel
RunningKernel.execute_cell_input = execute_cell_input
IPyNbFile.collect = collect
IPyNbCell.compare_outputs = compare_outputs
