"""conftest.py's guard: each way a notebook may differ from what was committed.

One pytest run over a tiny notebook tries what cells may show; whether a notebook was
executed from top to bottom is asked of the guard itself.
"""

import re
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parents[1]
PIXELS = """
import base64, io
from PIL import Image
from IPython.display import Image as Show
def square(grey, size=8):
    data = io.BytesIO()
    Image.new("L", (size, size), grey).save(data, "png")
    return data.getvalue()
"""


def stdout(text):
    return new_output("stream", name="stdout", text=text)


def image(grey, size=8):
    """A committed image output, made by the same code as the cell's."""
    names = {}
    exec(PIXELS, names)
    data = names["base64"].b64encode(names["square"](grey, size)).decode()
    return new_output(
        "execute_result",
        data={"text/plain": "<IPython.core.display.Image object>", "image/png": data},
        execution_count=1,
    )


def drawn(grey):
    return f"{PIXELS}\nShow(square({grey}))"


def html(text):
    return new_output(
        "execute_result",
        data={"text/plain": "<IPython.core.display.HTML object>", "text/html": text},
    )


# what differs: source of a cell, its committed output, and a part of the failure's message
# (None: the cell should pass)
CELLS = {
    "nothing": ("print('joint 0.5')", stdout("joint 0.5\n"), None),
    "number within tolerance": ("print('joint   0.5004')", stdout("joint 0.5\n"), None),
    "number": (
        "print('a\\nn 10 joint 0.51')",
        stdout("a\nn 10 joint 0.5\n"),
        "stdout 1, line 2: 0.5 became 0.51",
    ),
    "sign": ("print(-0.5)", stdout("0.5\n"), "0.5 became -0.5"),
    "text": ("print('income 1.0')", stdout("savings 1.0\n"), "line 1: text differs"),
    "digit of a name": ("print('x2')", stdout("x1\n"), "line 1: text differs"),
    "line missing": ("print('a')", stdout("a\nb\n"), "line 2: text differs"),
    "output missing": ("a = 1", stdout("1\n"), "stdout: 1 committed, 0 now"),
    "output added": ("print('a')\n'b'", stdout("a\n"), "text/plain: 0 committed, 1 now"),
    "result": (
        "1 + 1",
        new_output("execute_result", data={"text/plain": "3"}),
        "text/plain 1, line 1: 3 became 2",
    ),
    "html": (
        "from IPython.display import HTML\nHTML('<b>2</b>')",
        html("<b>1</b>"),
        "text/html 1, line 1: ",
    ),
    "no pixel": (drawn(100), image(100), None),
    "pixels": (drawn(101), image(100), "image/png 1: differs by 1.00 of 255 grey levels"),
    "image size": (drawn(100), image(100, size=9), "9 x 9 pixels became 8 x 8"),
    "image missing": ("a = 1", image(100), "image/png: 1 committed, 0 now"),
    "error now": ("1 / 0", stdout("a"), "ZeroDivisionError"),
    "nothing, value hidden": ("b = 1\nb;", None, None),
    "error then": (
        "1 / 0",
        new_output("error", ename="ZeroDivisionError", evalue="by zero"),
        "ZeroDivisionError",
    ),
    "text, ignored": ("# NBVAL_IGNORE_OUTPUT\nprint('now')", stdout("then\n"), None),
}

# source of a cell, its committed output, and its tag
TAGGED = {
    "ignored": ("print('now')", stdout("then\n"), "nbval-ignore-output"),
    "few people, within": ("print('a 0.519')", stdout("a 0.5\n"), "few-people"),
    "few people, beyond": ("print('a 0.521')", stdout("a 0.5\n"), "few-people"),
    "few people, text": ("print('b 0.5')", stdout("a 0.5\n"), "few-people"),
}

# a notebook, as cells (source, execution count, output, tag), and a part of the failure's
# message
NOTEBOOKS = {
    "executed": (
        [("a = 1", 1, None), (" ", None, None), ("print(2)", 2, stdout("2\n"))],
        None,
    ),
    "not_executed": (
        [("print(1)", None, None)],
        "code cell 1 is committed as In [None], expected In [1]",
    ),
    "executed_out_of_order": (
        [("a = 1", 1, None), ("b = 2", 3, None)],
        "code cell 2 is committed as In [3], expected In [2]",
    ),
    "holds_error": (
        [("1 / 0", 1, new_output("error", ename="ZeroDivisionError", evalue="by zero"))],
        "an error or a warning: by zero",
    ),
    "holds_stderr": (
        [("a = 1", 1, new_output("stream", name="stderr", text="careful"))],
        "an error or a warning: careful",
    ),
}


def cell(source, count, output, tags=()):
    return new_code_cell(
        source,
        execution_count=count,
        outputs=[output] if output else [],
        metadata={"tags": list(tags)},
    )


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """Messages of the items that fail in a run over the cells, by (notebook, item)."""
    folder = tmp_path_factory.mktemp("guard")
    shutil.copy(ROOT / "conftest.py", folder)
    one = [
        cell(source, count, output)
        for count, (source, output, _) in enumerate(CELLS.values(), start=1)
    ]
    for source, output, tag in TAGGED.values():
        one.append(cell(source, len(one) + 1, output, tags=[tag]))
    nbformat.write(new_notebook(cells=one), folder / "cells.ipynb")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--nbval",
            "--nbval-current-env",
            "--color=no",
            "--junitxml=out.xml",
            "-p",
            "no:cacheprovider",
            folder,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    items = ElementTree.parse(folder / "out.xml").iter("testcase")
    return {
        (item.get("classname").removesuffix(".ipynb"), item.get("name")): item.find(
            "failure"
        ).text
        for item in items
        if item.find("failure") is not None
    }


@pytest.mark.parametrize(("number", "name"), list(enumerate(CELLS)))
def test_cell(failures, number, name):
    message = CELLS[name][2]
    failure = failures.get(("cells", f"Cell {number}"))
    if message is None:
        assert failure is None
    else:
        assert message in failure
        assert "cells.ipynb" in failure or "Cell execution caused an exception" in failure


def test_what_a_tag_allows(failures):
    assert ("cells", f"Cell {len(CELLS)}") not in failures
    assert ("cells", f"Cell {len(CELLS) + 1}") not in failures
    assert "0.5 became 0.521" in failures[("cells", f"Cell {len(CELLS) + 2}")]
    assert "text differs" in failures[("cells", f"Cell {len(CELLS) + 3}")]


def test_an_error_that_was_committed_is_found(failures):
    """One of the cells holds one, and it fails beside them."""
    assert (
        "cells.ipynb: In [18] is committed with an error"
        in failures[("cells", "committed outputs")]
    )


@pytest.fixture(scope="module")
def guard(pytestconfig):
    return pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))


@pytest.mark.parametrize("port", ["shell_port", "iopub_port"])
def test_a_kernel_whose_port_was_taken_is_started_again(guard, monkeypatch, port):
    """Without its shell port a kernel ends; without iopub it lives, and never answers."""
    attempts = []

    class Manager(KernelManager):
        def __init__(self, **settings):
            super().__init__(**settings)
            attempts.append(self)
            if len(attempts) == 1:
                self.cache_ports = False
                setattr(self, port, taken)

    monkeypatch.setattr("nbval.kernel.KernelManager", Manager)
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        taken = other_program.getsockname()[1]
        with pytest.warns(UserWarning, match="started again: Kernel di"):
            manager, client = guard.start_kernel(
                startup_timeout=10, stderr=subprocess.DEVNULL
            )
    assert len(attempts) == 2 and manager is attempts[1]
    assert getattr(attempts[0], port) == taken and not attempts[0].is_alive()
    reply = client.execute_interactive("1 + 1", timeout=60)
    assert reply["content"]["status"] == "ok"
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_kernel_that_never_starts_is_an_error(guard, monkeypatch):
    attempts = []

    def start(**settings):
        attempts.append(settings)
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(guard, "start_nbval_kernel", start)
    with pytest.warns(match="again"), pytest.raises(RuntimeError, match="Kernel died"):
        guard.start_kernel(kernel_name="python3")
    assert len(attempts) == 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_committed_outputs(guard, name):
    cells, message = NOTEBOOKS[name]
    notebook = new_notebook(cells=[cell(*c) for c in cells])
    item = SimpleNamespace(parent=SimpleNamespace(nb=notebook))
    if message is None:
        guard.CommittedOutputs.runtest(item)
    else:
        with pytest.raises(guard.OutputsDiffer, match=re.escape(message)):
            guard.CommittedOutputs.runtest(item)
