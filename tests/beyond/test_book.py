"""The book: built from the committed notebooks, whole, and quiet in a browser."""

import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from lib.io import ROOT

HTML = ROOT / "runs" / "book" / "html"
FRONT = HTML / "docs" / "book" / "index.html"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = (390, 1000, 1600)


@pytest.fixture(scope="module")
def book() -> Path:
    """The folder of the built book; sphinx-build -W has stopped at a warning."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    made = subprocess.run(["make", "book"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return HTML


class Page(HTMLParser):
    """Ids, images, and addresses that a page refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: list[tuple[str, str]] = []
        self.images: list[tuple[str, str]] = []  # address and alternative text
        self.next = ""  # the address of the next page
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value is not None:
                self.addresses.append((tag, value))
        named = {name: value or "" for name, value in attributes}
        if tag == "img":
            self.images.append((named["src"], named.get("alt", "")))
        if named.get("class") == "right-next":
            self.next = named["href"]


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[Path, Page]:
    ours = (path for path in book.rglob("*.html") if "_static" not in path.parts)
    return {path: Page(path) for path in ours}


def test_every_notebook_has_a_page_and_a_place_in_the_contents(pages):
    named = [urlsplit(address).path for _, address in pages[FRONT].addresses]
    for name in NOTEBOOKS:
        assert HTML / "notebooks" / f"{name}.html" in pages, name
        assert f"../../notebooks/{name}.html" in named, name


def test_links_and_images_are_there(pages):
    missing = []
    for path, page in pages.items():
        for _, address in page.addresses:
            link = urlsplit(address)
            if link.scheme in ("http", "https", "data"):
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            if not target.is_file():
                missing.append((path.name, address))
            elif link.fragment and target.suffix == ".html":
                known = pages[target].ids if target in pages else Page(target).ids
                # the browser's own word for the top of a page
                if unquote(link.fragment) not in {*known, "#"}:
                    missing.append((path.name, address))
    assert not missing


def test_images_have_words_for_who_cannot_see_them(pages):
    """Not a file's name, which for a notebook's output is a hash."""
    for path, page in pages.items():
        for source, text in page.images:
            assert text.strip() and Path(source).name not in text, (path.name, source)


def test_next_leads_through_the_notebooks(pages):
    path, seen = FRONT, []
    for _ in NOTEBOOKS:
        path = (path.parent / pages[path].next).resolve()
        seen.append(path.stem)
    assert seen == NOTEBOOKS


def test_the_start_page_of_the_code_names_all_that_lib_offers(pages):
    import lib

    path = HTML / "runs" / "book" / "autoapi" / "lib" / "index.html"
    links = {urlsplit(address).fragment for _, address in pages[path].addresses}
    assert set(lib.__all__) <= {link.rpartition(".")[2] for link in links}


def test_only_links_lead_outside(pages):
    """What a page needs to be shown lies beside it."""
    for path, page in pages.items():
        for tag, address in page.addresses:
            is_fetched = tag != "a" and urlsplit(address).scheme in ("http", "https")
            assert not is_fetched, (path.name, tag, address)


def test_a_card_for_each_notebook(book):
    import contents

    text = FRONT.read_text(encoding="utf-8")
    assert {row.name for row in contents.rows()} == set(NOTEBOOKS)
    n_cards = text.count("sd-card-img-top")
    assert n_cards == len([name for name in NOTEBOOKS if name[2] == "_"])
    assert 8 <= n_cards <= 14


def test_every_exercise_is_linked(pages):
    page = pages[HTML / "docs" / "book" / "exercises.html"]
    linked = {Path(address).name for _, address in page.addresses}
    files = {path.name for path in (ROOT / "exercises").rglob("[0-9]*.ipynb")}
    assert files <= linked


def test_search_knows_the_notebooks(book):
    index = (book / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"notebooks/{name}"' in index for name in NOTEBOOKS)


def test_a_file_without_a_table_is_refused(tmp_path, monkeypatch):
    import contents

    monkeypatch.setattr(contents, "TABLE", tmp_path / "notebooks.md")
    contents.TABLE.write_text("[a](../lib/a.py)\n")
    with pytest.raises(ValueError, match="has no table of notebooks"):
        contents.rows()


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
def tab(book: Path, browser: Any) -> Iterator[Any]:
    """An empty tab; at the end, without an error, a failure or a request that leaves."""
    opened = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
    messages: list[str] = []
    opened.on("console", lambda m: messages.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.on("requestfailed", lambda r: messages.append(r.url) if failed(r) else None)
    opened.on("request", lambda r: None if is_ours(r.url) else messages.append(r.url))
    yield opened
    opened.close()
    assert not messages


def failed(request: Any) -> bool:
    """Return whether a request failed; who leaves a page calls off what it still loads."""
    return bool(request.failure != "net::ERR_ABORTED")


def is_ours(address: str) -> bool:
    """Return whether a request stays in the book."""
    return address.startswith((HTML.as_uri(), "data:", "blob:"))


def test_math_is_shown_and_narrow_pages_fit(tab, pages):
    for path in sorted(set(pages) - {HTML / "index.html"}):  # leads to the front page
        tab.goto(path.as_uri())
        if "tex-svg.js" in path.read_text(encoding="utf-8"):
            tab.evaluate("MathJax.startup.promise")
        n_formulas = tab.locator(".math").count()
        assert tab.locator(".math mjx-container svg").count() >= n_formulas, path.name
        assert tab.locator("[data-mjx-error]").count() == 0, path.name
        assert overhang(tab) <= 0, path.name


def test_wide_pages_fit(tab):
    for name in ("docs/book/index", "docs/book/reading", "notebooks/06_fairness"):
        tab.goto((HTML / f"{name}.html").as_uri())
        for width in WIDTHS[1:]:
            tab.set_viewport_size({"width": width, "height": 900})
            assert overhang(tab) <= 0, (name, width)


def overhang(tab: Any) -> int:
    """Return by how many pixels a page is wider than its window."""
    return tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_the_applicant_answers_on_the_front_page(tab):
    tab.goto((HTML / "index.html").as_uri())  # leads to the front page
    tab.wait_for_url(FRONT.as_uri())
    settled = "#page[data-settled=yes]"
    tab.wait_for_selector(settled, timeout=60_000)
    tab.locator('[data-to="2"]').click()
    before = tab.locator("#headline").inner_text()
    tab.locator('label:has([name="score-0"][value="5"])').click()
    tab.wait_for_selector(settled, timeout=60_000)
    assert tab.locator("#headline").inner_text() != before
    assert "#" not in tab.url  # the address is the book's own


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("00_start_here", 1),
        ("01_data_and_scm", 4),
        ("04_hard_constraints", 2),
        ("08_exact_and_unlocked", 5),
    ],
)
def test_the_applicant_stands_in_notebooks(tab, name, step):
    tab.goto((HTML / "notebooks" / f"{name}.html").as_uri())
    tab.wait_for_selector("#page[data-settled=yes]", timeout=60_000)
    assert tab.locator("#page .step:visible").get_attribute("data-step") == f"{step}"


def test_code_is_folded_and_can_be_opened(tab):
    tab.goto((HTML / "notebooks" / "02_causal_flow.html").as_uri())
    code = tab.locator(".cell_input pre").first
    assert not code.is_visible()
    tab.locator(".cell details summary").first.click()
    assert code.is_visible()


def test_the_method_has_pages_from_its_docstrings(pages):
    folder = HTML / "runs" / "book" / "autoapi" / "lib"
    modules = {path.stem for path in (ROOT / "lib" / "method").glob("[a-z]*.py")}
    pages_of = (folder / "method").glob("*/index.html")
    assert {path.parent.name for path in pages_of} == modules
    page = pages[folder / "method" / "problem" / "index.html"]
    assert "lib.method.problem.Problem.from_frame" in page.ids


def test_figures_bear_the_night(tab):
    """In the dark they are turned over; by day they are as the notebooks left them."""
    tab.goto((HTML / "notebooks" / "04_hard_constraints.html").as_uri())
    filters = []
    for theme in ("light", "dark"):
        tab.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        image = tab.locator(".cell_output img").first
        filters.append(image.evaluate("own => getComputedStyle(own).filter"))
    assert filters[0] == "none" and filters[1].startswith("invert(0.9)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_errors(tab, theme):
    from axe_playwright_python.sync_playwright import Axe

    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
    some = [
        "docs/book/index",
        "docs/book/reading",
        "notebooks/01_data_and_scm",
        "README",
        "search",
    ]
    some += ["exercises/08_exact_and_unlocked", "runs/book/autoapi/lib/method/grid/index"]
    for name in some:
        tab.goto((HTML / f"{name}.html").as_uri())
        tab.wait_for_timeout(300)  # until the theme has faded in
        if tab.locator("#page").count():  # until no old answer of the applicant is dimmed
            tab.wait_for_selector("#page[data-settled=yes]", timeout=60_000)
        results = Axe().run(tab, options={"preload": False}).response["violations"]
        assert not [
            (violation["id"], violation["nodes"][0]["html"]) for violation in results
        ], name


def test_an_answer_is_checked_without_an_install(tab):
    tab.goto((HTML / "exercises" / "08_exact_and_unlocked.html").as_uri())
    answers = tab.locator(".answer")
    assert answers.count() == 3
    number, letter = answers.nth(0), answers.nth(1)
    number.locator("button").click()
    assert number.locator("[role=status]").inner_text() == "Not answered yet."
    number.locator("input").fill("0.817")
    number.locator("button").click()
    assert number.locator("[role=status]").inner_text().startswith("Right.")
    letter.locator('[value="A"]').check()
    letter.locator("button").click()
    assert letter.locator("[role=status]").inner_text().startswith("Not yet. The amount")


def test_the_applicant_follows_the_switch(tab):
    tab.goto(FRONT.as_uri())
    colours = []
    for theme in ("light", "dark"):
        tab.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        colours.append(
            tab.locator("#page").evaluate("element => getComputedStyle(element).color")
        )
    assert colours == ["rgb(27, 31, 36)", "rgb(230, 237, 243)"]


def test_search_finds(tab):
    tab.goto((HTML / "search.html").as_uri() + "?q=counterfactual")
    n_results = "document.querySelectorAll('#search-results li a').length"
    tab.wait_for_function(f"{n_results} >= 10", timeout=60_000)
    excerpt = tab.locator("#search-results .context").first
    excerpt.wait_for(timeout=60_000)
    assert "counterfactual" in excerpt.inner_text().lower()
