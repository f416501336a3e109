"""The page and the widget in a real browser: what a reader does, and then sees."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lib.base.files import ROOT
from lib.studies import applicant

FILE = applicant.PAGE / "applicant.html"
FEATURES = ("loan amount", "loan duration", "income", "savings")
TABLE = """([script, person, scores]) => {
  const model = new Function(`${script}\nreturn createModel;`)()(
    JSON.parse(document.getElementById("data").textContent),
  );
  const weights = model.weightsOf(scores);
  return model
    .searched(model.truth, model.applicants[person], weights)
    .map(({ acts, cost }) => [acts, cost === Infinity ? null : cost]);
}"""
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def test_the_file_is_in_step():
    """After a change: make page."""
    assert FILE.read_text(encoding="utf-8") == applicant.page()


def test_nothing_is_fetched():
    page = applicant.page()
    for word in ('src="', "url(h", "fetch(", "@import", "https://"):
        assert word not in page, word


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    options = ["--no-sandbox", "--disable-background-networking"]
    with api.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The page, freshly opened from disk; at the end, without a word on the console."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: said.append(request.url))
    opened.goto(FILE.as_uri())
    settled(opened)
    yield opened
    opened.close()
    asked = (FILE.as_uri(), "data:")
    assert not [text for text in said if not text.startswith(asked)]


def settled(page: Any) -> None:
    """Wait until the searches are done."""
    page.wait_for_selector("#page[data-settled=yes]", timeout=10_000)


def click(page: Any, name: str, value: str) -> None:
    """Choose a radio button by its label, as a reader does."""
    page.locator(f'label:has(input[name="{name}"][value="{value}"])').click()
    settled(page)


def slide(page: Any, column: int, key: str, times: int) -> None:
    """Move a dot by the keyboard."""
    page.locator(f"#track-{column}").focus()
    for _ in range(times):
        page.keyboard.press(key)
    settled(page)


def test_another_income_another_recommendation(page):
    before = page.locator(".card.icarma").inner_text()
    slide(page, 5, "ArrowLeft", 30)
    assert page.locator(".card.icarma").inner_text() != before


def test_cannot_is_obeyed(page):
    assert "savings" in page.locator(".card.icarma b").inner_text()
    click(page, "score-3", "5")
    for card in page.locator(".card.icarma, .card.exact, .card.any").all():
        for asked in card.locator("b").all():
            assert "savings" not in asked.inner_text()
    assert "closed" in page.locator("#node-6").get_attribute("class")


def test_consequences_light_up(page):
    click(page, "mode", "do")
    slide(page, 5, "ArrowRight", 40)  # income; savings follow
    assert "acted" in page.locator("#node-5").get_attribute("class")
    assert "follows" in page.locator("#node-6").get_attribute("class")
    assert page.locator("#edge-5-6").get_attribute("class") == "lit"
    assert "Then follows: savings" in page.locator(".card.own").inner_text()
    assert page.locator("#track-1").is_disabled()  # age


def test_unlocking(page):
    """Go through applicants with income alone open, until one can be unlocked."""
    for k in ("0", "1", "3"):
        click(page, f"score-{k}", "5")
    for _ in range(20):
        if page.locator("#unlock button").count():
            break
        page.locator("#next").click()
        settled(page)
    assert page.locator(".card.any b").count() == 0
    page.locator("#unlock button").first.click()
    settled(page)
    assert page.locator(".card.any b").count() == 1


def test_why_is_what_the_table_says(page):
    """Each sentence against the cheapest answer of the sets without that feature."""
    n_none = n_dearer = 0
    for person in range(8):
        asked = [applicant.script(), person, [1, 2, 3, 4]]
        found = [(acts, cost) for acts, cost in page.evaluate(TABLE, asked) if cost]
        for said in page.locator(".card.why p").all_inner_texts():
            without = re.match("Without acting on your ([a-z ]+), ", said)
            assert without, said
            k = FEATURES.index(without[1])
            left = [cost for acts, cost in found if not acts[k]]
            if "nothing was found" in said:
                assert not left, said
                n_none += 1
            else:
                best = min(cost for _, cost in found)
                numbers = [float(number) for number in re.findall(r"\d\.\d+", said)]
                assert numbers == pytest.approx([min(left), best], abs=6e-4), said
                n_dearer += 1
        page.locator("#next").click()
        settled(page)
    assert n_none > 0 and n_dearer > 0  # both kinds were said


def test_an_unlocked_feature_is_as_hard_as_before(page):
    before = page.locator(".card.any").inner_text()
    click(page, "score-0", "5")
    click(page, "score-2", "5")
    assert page.locator(".card.any b").count() == 0
    button = page.locator("#unlock button")
    said = "loan amount, if easy and income, if hard (cost 0.040)"
    assert button.all_inner_texts() == [said]
    button.focus()
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".card.any").inner_text() == before
    assert page.evaluate("document.activeElement.name") == "score-0"
    assert page.locator('[name="score-2"][value="3"]').is_checked()


def test_what_does_not_hold_is_only_proposed(page):
    """The first applicant: iCARMA's answer is implausible, a search's is not."""
    assert "It proposes:" in page.locator(".card.icarma").inner_text()
    assert "Do:" in page.locator(".card.any").inner_text()
    assert page.locator("#decision .pill").all_inner_texts() == ["refused", "accepted"]
    assert "by the search over all values" in page.locator("#decision").inner_text()


def test_a_change_can_be_seen(page):
    for _ in range(22):
        said = page.locator("#page").inner_text()
        changes = re.findall(r"(−?\d+\.\d+)\s→\s(−?\d+\.\d+)", said)
        assert changes and all(one != other for one, other in changes), changes
        assert not re.search(r"0\.000(?!\d)", said)
        page.locator("#next").click()
        settled(page)
    click(page, "mode", "do")
    slide(page, 5, "ArrowRight", 1)
    one, other = page.locator(".card.own b").inner_text().split(" ")[1::2]
    assert one != other


def test_nothing_is_closed_and_nothing_found(page):
    for _ in range(23):
        page.locator("#next").click()
    settled(page)
    assert "very little is missing" in page.locator(".card.why").inner_text()
    assert page.locator("#unlock").inner_text() == ""


def test_starting_again(page):
    start = page.locator("#page").inner_text()
    assert "has refused you" in start
    click(page, "score-1", "5")
    slide(page, 5, "End", 1)
    slide(page, 6, "End", 1)
    assert "has accepted you" in page.locator("header").inner_text()
    click(page, "mode", "do")
    page.locator("#back").click()
    settled(page)
    assert page.locator("#page").inner_text() == start


@pytest.mark.parametrize("width", [390, 1000, 1280])
def test_a_dragged_track_stays_where_it_is(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    click(page, "mode", "do")
    places = "[4, 6].map((j) => document.getElementById(`track-${j}`).offsetTop)"
    before = page.evaluate(places)
    for column in (3, 4, 5):
        slide(page, column, "Home", 1)
        assert page.evaluate(places) == before


@pytest.mark.parametrize("width", [390, 800, 1600])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """JupyterLab with one notebook, which shows the widget; its address."""
    cell = new_code_cell("from lib.studies import applicant\n\napplicant.show()")
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    notebook = new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "one.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "IdentityProvider.token": "",
        "ServerApp.port": port,
        "ServerApp.root_dir": tmp_path,
        "ServerApp.open_browser": False,
        "LabApp.expose_app_in_browser": True,
    }
    command = [sys.executable, "-m", "jupyterlab", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    own = {name: str(tmp_path / name) for name in folders}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command,
            env=os.environ | own | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(f"{address}/api/status")
            yield f"{address}/lab/tree/one.ipynb?reset"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except OSError:
            time.sleep(0.25)
        else:
            return
    raise TimeoutError(f"{address} did not answer within a minute.")


def test_the_widget_in_jupyterlab(browser, lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(lab)
    kernel = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"
    page.wait_for_function(f"{kernel}?.status === 'idle'", timeout=60_000)
    page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.wait_for_selector(".applicant[data-settled=yes]", timeout=60_000)
    before = page.locator(".card.icarma").inner_text()
    assert "savings" in before
    page.locator('label:has(input[name="score-3"][value="5"])').click()
    page.wait_for_selector(".applicant[data-settled=yes]")
    assert "savings" not in page.locator(".card.icarma b").inner_text()
    page.close()
    assert not said
