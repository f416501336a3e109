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
from lib.paper.pictures import applicant

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
# What is painted on what: texts, and lines and shapes, as (what, colour, colour behind).
PAINTED = """() => {
  const style = (element) => getComputedStyle(element);
  const all = (selector) => [...document.querySelectorAll(`#page ${selector}`)];
  const isSeen = (element) => element.getClientRects().length > 0;
  const behind = (element) => {
    const colour = style(element).backgroundColor;
    return colour === "rgba(0, 0, 0, 0)" ? behind(element.parentElement) : colour;
  };
  const hasText = (element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const texts = all(":not(svg, svg *)").filter((own) => isSeen(own) && hasText(own));
  const onCircle = (own) => style(own.parentElement.querySelector("circle")).fill;
  const paper = behind(document.querySelector("#graph"));
  return {
    texts: [
      ...texts.map((own) => [own.textContent, style(own).color, behind(own)]),
      ...all("svg .label").map((own) => [own.textContent, style(own).fill, onCircle(own)]),
      ...all("svg .moved").map((own) => [own.textContent, style(own).fill, paper]),
    ],
    shapes: [
      ...all("line, circle").map((own) => [own.id, style(own).stroke, paper]),
      ...all(".stem, .tip, .key")
        .filter(isSeen)
        .map((own) => [own.className, style(own).color, behind(own.parentElement)]),
    ],
  };
}"""
# The graph's texts: how high a letter is on the screen, and which run into something else.
# Of a text its ink counts: how high its line box is depends on the font.
GRAPH = """() => {
  const graph = document.querySelector("#graph");
  const pen = document.createElement("canvas").getContext("2d");
  const texts = [...graph.querySelectorAll("text")].filter((own) => own.textContent);
  const circles = [...graph.querySelectorAll("circle")];
  const box = (own) => {
    const { x, y, width, height } = own.getBBox();
    return { left: x, right: x + width, top: y, bottom: y + height };
  };
  const ink = (own) => {
    pen.font = getComputedStyle(own).font;
    const letters = pen.measureText(own.textContent);
    const line = Number(own.getAttribute("y")); // that the letters stand on
    const top = line - letters.actualBoundingBoxAscent;
    const bottom = line + letters.actualBoundingBoxDescent;
    return { ...box(own), top, bottom };
  };
  const meet = (a, b) =>
    Math.min(a.right, b.right) > Math.max(a.left, b.left) &&
    Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top);
  const holds = (a, b) =>
    a.left <= b.left && b.right <= a.right && a.top <= b.top && b.bottom <= a.bottom;
  const { width, height } = graph.viewBox.baseVal;
  const runsInto = (own) =>
    !holds({ left: 0, right: width, top: 0, bottom: height }, ink(own)) ||
    texts.some((other) => other !== own && meet(ink(own), ink(other))) ||
    circles.some((circle) =>
      own.parentElement.contains(circle) && own.classList.contains("label")
        ? !holds(box(circle), ink(own))
        : meet(ink(own), box(circle)),
    );
  const size = (own) => parseFloat(getComputedStyle(own).fontSize) * own.getScreenCTM().a;
  return {
    size: Math.min(...texts.map(size)),
    crowded: texts.filter(runsInto).map((own) => own.textContent),
  };
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
def page(opened: Any) -> Any:
    """The page, after savings were opened, too."""
    click(opened, "score-3", "4")
    return opened


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
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


def seventh(page: Any) -> None:
    """Become the seventh applicant, who needs income, and whom iCARMA doesn't help."""
    for _ in range(6):
        page.locator("#next").click()
    settled(page)


def slide(page: Any, column: int, key: str, times: int) -> None:
    """Move a dot by the keyboard."""
    page.locator(f"#track-{column}").focus()
    for _ in range(times):
        page.keyboard.press(key)
    settled(page)


def test_it_opens_with_the_first_applicant_whom_all_can_help(opened):
    for whose in ("icarma", "exact", "any"):
        assert "Do:" in opened.locator(f".card.{whose}").inner_text()
    assert "closed" in opened.locator("#node-6").get_attribute("class")
    assert "applicant 1 of 60" in opened.locator("#who").inner_text()


def test_another_income_another_recommendation(page):
    before = page.locator(".card.icarma").inner_text()
    slide(page, 5, "ArrowLeft", 30)
    assert page.locator(".card.icarma").inner_text() != before


def test_cannot_is_obeyed(page):
    assert "loan duration" in page.locator(".card.icarma b").inner_text()
    click(page, "score-1", "5")
    for card in page.locator(".card.icarma, .card.exact, .card.any").all():
        for asked in card.locator("b").all():
            assert "loan duration" not in asked.inner_text()
    assert "closed" in page.locator("#node-4").get_attribute("class")


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


def test_the_only_open_feature_is_all_there_was(page):
    for k in ("0", "1", "3"):
        click(page, f"score-{k}", "5")
    for _ in range(20):
        if page.locator(".card.any b").count():
            break
        page.locator("#next").click()
        settled(page)
    said = (
        "Without acting on your income there is nothing left: it is all that you left open."
    )
    assert page.locator(".card.why p").all_inner_texts() == [said]
    click(page, "score-2", "5")
    assert "You say that you can change nothing" in page.locator("#cards").inner_text()
    assert page.locator(".card.why").count() == 0


def test_a_dot_put_back_is_no_action(page):
    """Savings and then income are moved; savings put back follow income again."""
    click(page, "mode", "do")
    slide(page, 6, "ArrowRight", 20)
    slide(page, 5, "ArrowRight", 40)
    assert "acted" in page.locator("#node-6").get_attribute("class")
    slide(page, 6, "ArrowLeft", 20)
    assert "follows" in page.locator("#node-6").get_attribute("class")
    assert "Then follows: savings" in page.locator(".card.own").inner_text()
    slide(page, 5, "ArrowLeft", 40)
    assert "Nothing yet" in page.locator(".card.own").inner_text()


def test_a_dot_dragged_and_put_back_is_no_action(page):
    click(page, "mode", "do")
    slider = page.locator("#track-6")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    low, high, value = (
        float(slider.evaluate(f"input => input.{name}")) for name in ("min", "max", "value")
    )
    start = box["x"] + 9 + (value - low) / (high - low) * (box["width"] - 18)
    middle = box["y"] + box["height"] / 2
    page.mouse.move(start, middle)
    page.mouse.down()
    page.mouse.move(start + 80, middle)
    page.mouse.move(start, middle)
    page.mouse.move(start - 80, middle)  # past the person's own value, still held
    assert "acted" in page.locator("#node-6").get_attribute("class")
    page.mouse.move(start, middle)
    page.mouse.up()
    assert "Nothing yet" in page.locator(".card.own").inner_text()


def test_a_held_key_moves_a_dot_past_its_own_value(page):
    """Where savings follow income, they would jump if they were let go there."""
    click(page, "mode", "do")
    slide(page, 5, "ArrowRight", 40)
    page.locator("#track-6").focus()
    own = page.evaluate("document.querySelector('#node-6 .moved').textContent")
    own = float(own.split()[0].replace("−", "-"))
    for _ in range(200):
        page.keyboard.down("ArrowLeft")  # repeats, until the key is up
    page.keyboard.up("ArrowLeft")
    assert float(page.locator("#track-6").input_value()) < own
    assert "acted" in page.locator("#node-6").get_attribute("class")


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
    seventh(page)
    before = page.locator(".card.any").inner_text()
    click(page, "score-2", "5")
    assert page.locator(".card.any b").count() == 0
    button = page.locator("#unlock button")
    said = "income, if hard (cost 0.054)"
    assert button.all_inner_texts() == [said]
    button.focus()
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".card.any").inner_text() == before
    assert page.evaluate("document.activeElement.name") == "score-2"
    assert page.locator('[name="score-2"][value="3"]').is_checked()


def test_what_does_not_hold_is_only_proposed(page):
    """The seventh applicant: iCARMA's answer is implausible, a search's is not."""
    seventh(page)
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
    for _ in range(45):
        page.locator("#next").click()
    settled(page)
    assert page.locator(".card.any b").count() == 0
    assert "1.1 times as rare" in page.locator(".card.why").inner_text()
    assert page.locator("#unlock").inner_text() == ""


def test_starting_again(opened):
    page = opened
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


def test_a_bank_that_asks_for_more_gets_more(page):
    """Of the same applicant: each answer ends at the rating that is asked for."""
    for share in ("30", "70", "50"):
        page.select_option("select", f"0.{share[0]}")
        settled(page)
        told = page.locator("#decision").inner_text()
        assert "accepted" in told and f"{share} %" in told
    page.select_option("select", "0.8")
    page.locator("#back").click()
    settled(page)
    assert page.locator("#threshold").input_value() == "0.5"


def test_every_control_has_a_name(page):
    """As Chromium tells it to a screen reader; also the graph, and what unlocks."""
    seventh(page)
    for k in ("0", "2"):
        click(page, f"score-{k}", "5")
    assert page.locator("#unlock button").count() > 0
    devtools = page.context.new_cdp_session(page)
    nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "radio", "slider", "image", "combobox")
    found = [own for own in nodes if own["role"]["value"] in roles]
    assert len(found) == page.locator("input, button, select, svg").count()
    for own in found:
        assert own["name"]["value"].strip(" ◀▶"), own


def luminance(colour: str) -> float:
    """Return the relative luminance of rgb(r, g, b), by WCAG 2."""
    assert colour.startswith("rgb("), colour
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21, by WCAG 2."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def rails_of(page: Any) -> list[str]:
    """Return the colours of the sliders' rails, which no script of a page can ask for."""
    devtools = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        devtools.send(f"{domain}.enable")
    todo = [devtools.send("DOM.getDocument", {"depth": -1, "pierce": True})["root"]]
    colours = []
    while todo:
        node = todo.pop()
        todo += node.get("children", []) + node.get("shadowRoots", [])
        if "-webkit-slider-runnable-track" in node.get("attributes", []):
            asked = {"nodeId": node["nodeId"]}
            style = devtools.send("CSS.getComputedStyleForNode", asked)["computedStyle"]
            colours += [own["value"] for own in style if own["name"] == "background-color"]
    return colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    """WCAG 2, 1.4.3 and 1.4.11: of text at least 4.5, of lines and shapes at least 3."""
    page.emulate_media(color_scheme=scheme)
    n_lit = n_cut = 0
    for name, value in (("mode", "be"), ("score-0", "5"), ("score-3", "5"), ("mode", "do")):
        click(page, name, value)
        if value == "do":
            slide(page, 5, "ArrowRight", 20)
        painted = page.evaluate(PAINTED)
        for what, colour, behind in painted["texts"]:
            assert contrast(colour, behind) >= 4.5, (what, colour, behind)
        for what, colour, behind in painted["shapes"]:
            assert contrast(colour, behind) >= 3, (what, colour, behind)
        n_lit += page.locator("line.lit").count()
        n_cut += page.locator("line.cut").count()
    assert n_lit > 0 and n_cut > 0  # each kind of arrow was seen
    click(page, "mode", "be")
    panel = page.locator(".track").first.evaluate(
        "own => getComputedStyle(own).backgroundColor"
    )
    rails = rails_of(page)
    assert len(rails) == 7
    for rail in rails:
        assert contrast(rail, panel) >= 3, (rail, panel)


def test_the_graph_can_be_read(page):
    for person in range(22):
        for width in (390, 800, 1600):
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(GRAPH)
            assert seen["size"] >= 11, (person, width)
            assert not seen["crowded"], (person, width)
        page.locator("#next").click()
        settled(page)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """JupyterLab with one notebook, which shows the widget; its address."""
    cell = new_code_cell("from lib.paper.pictures import applicant\n\napplicant.show()")
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
    assert "loan duration" in before
    page.locator('label:has(input[name="score-1"][value="5"])').click()
    page.wait_for_selector(".applicant[data-settled=yes]")
    assert "loan duration" not in page.locator(".card.icarma b").inner_text()
    page.close()
    assert not said
