"""The page in a real browser: what a reader does, and what the page then shows."""

import shutil
from collections.abc import Iterator
from typing import Any

import build
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MOST_MEDIAN, MOST_SEARCH = 16.0, 200.0  # milliseconds


def test_the_file_is_in_step():
    """After a change: .venv/bin/python page/build.py."""
    assert build.PAGE.read_text(encoding="utf-8") == build.page()


def test_nothing_is_fetched():
    page = build.page()
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
    opened.goto(build.PAGE.as_uri())
    settled(opened)
    yield opened
    opened.close()
    asked = (build.PAGE.as_uri(), "data:")
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


@pytest.mark.parametrize("width", [390, 800, 1600])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_speed(page):
    """From an event to the drawn page, and the searches that follow a pause."""
    times = page.evaluate(
        """async () => {
          const input = document.getElementById("track-5");
          const drawn = [];
          for (let i = 0; i < 60; i++) {
            input.value = Number(input.min) + (i / 60) * (input.max - input.min);
            const start = performance.now();
            input.dispatchEvent(new Event("input"));
            document.body.getBoundingClientRect();
            drawn.push(performance.now() - start);
          }
          return drawn.sort((a, b) => a - b);
        }"""
    )
    assert times[len(times) // 2] <= MOST_MEDIAN
    settled(page)
    assert float(page.locator("#page").get_attribute("data-searched")) <= MOST_SEARCH
