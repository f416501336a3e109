"""Makes nbval strict where it passes in silence: notebooks that were not executed, images, and digits that matter.

nbval runs each code cell again and compares its outputs with the committed ones. By itself it compares text to the last
digit, never compares images, and passes a notebook that holds no outputs. Here instead, under `pytest --nbval`:

- a notebook must be committed as executed from top to bottom (In [1], In [2], ...), without an error and without stderr;
- numbers may differ by `RELATIVE` (of the committed one), all other text may not; the width of gaps between words is free;
- images may differ by `GREY_LEVELS`, of 255, in the mean over their pixels, and must have the same size;
- a cell tagged `nbval-ignore-output` still has to run, and its outputs are not compared;
- a notebook whose committed outputs come from data that is not here (`NEEDS_DATA`) is checked as committed, and not run;
- cells run with a history, as in Jupyter: without one, a closing `;` does not hide a cell's last value.
"""

import lib.pinned

import base64
import functools
import io
import itertools
import math
import re

import nbval.kernel
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile
from PIL import Image, ImageChops, ImageStat

from lib.problem import gmsc

RELATIVE = 1e-3
ABSOLUTE = 1e-9  # for rounding errors around zero
# Moving every point of a figure by 0.1 % changes 0.06 to 0.19 grey levels, by 1 % 0.2 to 0.6; another curve, 2.
GREY_LEVELS = 0.2

# On a stand-in for its data such a notebook says something else than what was committed.
NEEDS_DATA = {"07_gmsc_transfer.ipynb"}

# A number that is not part of a word, with the gaps around it.
NUMBER = re.compile(
    r"[ \t]*((?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w))[ \t]*"
)


class CommittedOutputs(pytest.Item):
    """The check of a notebook as it was committed; stands before its cells."""

    def runtest(self):
        cells = [
            cell
            for cell in self.parent.nb.cells
            if cell.cell_type == "code" and cell.source.strip()
        ]
        for number, cell in enumerate(cells, start=1):
            if cell.execution_count != number:
                raise OutputsDiffer(
                    f"code cell {number} is committed as In [{cell.execution_count}], expected In [{number}]: "
                    "execute the notebook from top to bottom (make notebooks)."
                )
            for output in cell.outputs:
                if output.output_type == "error" or output.get("name") == "stderr":
                    text = output.get("evalue") or output.get("text")
                    raise OutputsDiffer(
                        f"In [{number}] is committed with an error or a warning: {text.strip()}"
                    )

    def repr_failure(self, excinfo):
        return f"{self.path.name}: {excinfo.value}"

    def reportinfo(self):
        return self.path, 0, self.nodeid


class OutputsDiffer(Exception):
    """What is committed is not what the notebook should hold; the message says where."""


def collect(notebook: IPyNbFile):
    """nbval's items of a notebook, one a code cell, after the check of what was committed."""
    cells = list(nbval_collect(notebook))
    if notebook.path.name in NEEDS_DATA and gmsc.find(download=False) is None:
        for cell in cells:
            cell.add_marker(
                pytest.mark.skip(reason=f"its data is not here: {gmsc.VARIABLE} names it")
            )
    return [CommittedOutputs.from_parent(notebook, name="committed outputs"), *cells]


def compare_outputs(cell: IPyNbCell, fresh: list, committed: list) -> bool:
    """Whether a cell's fresh outputs agree with the committed ones; if not, nbval prints `comparison_traceback`."""
    try:
        fresh, committed = by_kind(fresh), by_kind(committed)
        for kind in sorted(fresh.keys() | committed.keys()):
            then, now = committed.get(kind, []), fresh.get(kind, [])
            if len(then) != len(now):
                raise OutputsDiffer(f"{kind}: {len(then)} committed, {len(now)} now")
            for number, pair in enumerate(zip(then, now), start=1):
                compare = (
                    compare_images if kind in ("image/png", "image/jpeg") else compare_text
                )
                compare(f"{kind} {number}", *pair)
    except OutputsDiffer as difference:
        cell.comparison_traceback = [
            f"{cell.path.name}, In [{cell.cell.execution_count}], {difference}"
        ]
        return False
    return True


def by_kind(outputs: list) -> dict:
    """Contents of a cell's outputs in their order, under stdout, stderr, text/plain, image/png, ..."""
    contents = {}
    for output in outputs:
        if output.output_type == "stream":
            contents.setdefault(output.name, []).append(output.text)
        else:
            for kind, content in output.get("data", {}).items():
                if (
                    kind != "application/vnd.jupyter.widget-view+json"
                ):  # a widget's identity is drawn at random
                    contents.setdefault(kind, []).append(content)
    return contents


def compare_text(place: str, then: str, now: str) -> None:
    """Nothing; line by line, numbers within the tolerance and all other text exactly."""
    pairs = itertools.zip_longest(
        str(then).splitlines(), str(now).splitlines(), fillvalue="(no line)"
    )
    for number, (line_then, line_now) in enumerate(pairs, start=1):
        parts_then, parts_now = NUMBER.split(line_then), NUMBER.split(line_now)
        # re.split puts the numbers at odd places, between the texts.
        words_agree = [" ".join(t.split()) for t in parts_then[::2]] == [
            " ".join(t.split()) for t in parts_now[::2]
        ]
        numbers = list(zip(parts_then[1::2], parts_now[1::2]))
        off = [
            f"{a} became {b}"
            for a, b in numbers
            if not math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        ]
        if off or not words_agree:
            what = off[0] if off else "text differs"
            raise OutputsDiffer(
                f"{place}, line {number}: {what}\n  committed: {line_then}\n  now:       {line_now}"
            )


def compare_images(place: str, then: str, now: str) -> None:
    """Nothing; pixel by pixel, the mean absolute difference within the tolerance."""
    then, now = (
        Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
        for data in (then, now)
    )
    if then.size != now.size:
        raise OutputsDiffer(
            f"{place}: {then.width} x {then.height} pixels became {now.width} x {now.height}"
        )
    difference = sum(ImageStat.Stat(ImageChops.difference(then, now)).mean) / 3
    if difference > GREY_LEVELS:
        raise OutputsDiffer(
            f"{place}: differs by {difference:.2f} of 255 grey levels in the mean, {GREY_LEVELS} allowed"
        )


def execute_cell_input(kernel: RunningKernel, source: str, allow_stdin: bool) -> str:
    """Identity of the request that runs a cell's source."""
    return kernel.kc.execute(
        source, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )


# The one place where nbval is changed. The history stays in memory: kernels side by side would share a file.
nbval_collect = IPyNbFile.collect
nbval.kernel.start_new_kernel = functools.partial(
    nbval.kernel.start_new_kernel, extra_arguments=["--HistoryManager.hist_file=:memory:"]
)
RunningKernel.execute_cell_input = execute_cell_input
IPyNbFile.collect = collect
IPyNbCell.compare_outputs = compare_outputs
