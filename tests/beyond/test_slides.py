"""The lecture: every slide whole, with notes, and with numbers that the tables hold."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lib.base.files import ROOT
from lib.paper import selection

SOURCE = (ROOT / "slides" / "index.md").read_text(encoding="utf-8")
HTML = ROOT / "runs" / "slides" / "html"
MINUTES = 45
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def slides() -> dict[str, tuple[str, str]]:
    """Return text and notes of each slide, by its title."""
    found = {}
    for part in re.split(r"^#{1,2} ", SOURCE, flags=re.MULTILINE)[1:]:
        title, rest = part.split("\n", 1)
        text, *notes = rest.split(":::{revealjs-notes}\n")
        assert len(notes) == 1, f"{title}: one note"
        found[title] = (text, notes[0])
    return found


def test_thirty_slides_of_45_minutes():
    assert 25 <= len(slides()) <= 30
    minutes = [
        re.match(r"([\d.]+) minutes?\. \w+", notes) for _, notes in slides().values()
    ]
    assert sum(float(one[1]) for one in minutes if one) == MINUTES
    assert all(minutes)


def test_the_core_leaves_time_for_questions():
    core = [notes for _, notes in slides().values() if " Optional. " not in notes]
    assert 15 <= len(core) <= 18
    minutes = sum(float(notes.split()[0]) for notes in core)
    assert minutes <= MINUTES - 15
    assert f"take {minutes} minutes" in core[0]


def test_few_words_beside_the_figure():
    for title, (text, _) in slides().items():
        shown = re.sub(r"!\[.*?\]\(.*?\)|<.*?>|:::.*", "", text)
        assert len(re.findall(r"[^\W\d]+", shown)) <= 30, title


def test_figures_are_the_notebooks_own():
    figures = re.findall(r"!\[.+?\]\((.+?)\)", SOURCE)
    assert len(figures) >= 20
    for path in figures:
        assert path.startswith("../figures/")
        assert (ROOT / "slides" / path).is_file(), path


def table(name: str, **options: Any) -> pd.DataFrame:
    """Return a committed table."""
    return pd.read_csv(ROOT / "tables" / f"{name}.csv", **options)


def per_cent(*shares: float) -> list[str]:
    """Return shares in whole per cent."""
    return [f"{100 * share:.0f}" for share in shares]


def true_sentences() -> Iterator[str]:
    """Yield what slides and notes say, with the numbers as the tables have them now."""
    errors = {1: "one standard error", 2: "two standard errors"}[selection.STANDARD_ERRORS]
    yield f"of all within {errors} of the highest joint share, the most efficient"

    first = table("00_first_applicant").set_index("person").log_density_change["iCARMA"]
    yield f"less plausible than before by {-first:.2f} nats"

    own = table("04_paper_vs_ours")
    joint = own[(own.method == "oracle") & (own.metric == "joint")].set_index("setting")
    helped = per_cent(*joint["mean"][["all (4)", "3", "2", "1"]])
    yield f"helps {', '.join(helped)} of 100 with 4, 3, 2, 1 features open"

    compared = own[(own.metric != "joint") & own.agrees.notna()]
    compared = compared[(compared.method == "iCARMA") | (compared.metric == "validity")]
    for name, method in (("exact search", "oracle"), ("iCARMA", "iCARMA")):
        agrees = compared.agrees[compared.method == method].astype(str) == "True"
        yield f"| {name} | {agrees.sum()} of {len(agrees)} |"

    ranked = table("05_table2_paper_vs_ours").query("method == 'iCARMA'")
    ranked = ranked.pivot(index="setting", columns="metric")
    soft = ranked.loc[[f"soft, {name}" for name in ("concave", "linear", "convex")]]
    paper = soft["paper"][["validity", "plausibility"]].min(axis=1)
    hap, low, high = per_cent(
        soft["mean", "hap"].min(), soft["paper", "hap"].min(), soft["paper", "hap"].max()
    )
    yield f"{hap} % or more with rankings and everything open"
    yield f"the paper's soft networks have {low} to {high} %"
    yield "help at most {} to {} of 100".format(*per_cent(paper.min(), paper.max()))

    groups = table("06_groups").query("method == 'search' and measure == 'joint'")
    share = groups.set_index(["scenario", "group"]).estimate
    cells = ("white men", "non-white men", "white women", "non-white women")
    each = dict(zip(cells, per_cent(*share["race"][list(cells)]), strict=True))
    yield f"{each[cells[0]]} % of white men, {each[cells[-1]]} % of non-white women"
    yield ", ".join(f"{of} % of {cell}" for cell, of in each.items())
    yield f"{per_cent(share['baseline', cells[-1]])[0]} % of non-white women and every"
    assert share["baseline", "white men"] == 1
    gaps = table("06_gaps").query("family == 'claims'")
    yield f"Of the gaps between groups, {len(gaps)} intervals hold at once"

    twins = table("06_twins").set_index(["scenario", "refused people"])["twin accepted"]
    yield f"{per_cent(twins['baseline', 'women'])[0]} % of their twins"

    validity = table("07_graphs").set_index("world").validity
    yield f"from {validity['refitted']:.2f} to {validity['lateness is past']:.2f}"

    real = table("07_paper_vs_ours").set_index(["setting", "metric"])["mean"]["all (4)"]
    yield f"{real.validity:.2f} accepted, as in the paper, {real.joint:.2f} plausible"
    printed = table("07_paper_vs_ours").dropna(subset="paper")
    n_agree = (printed.agrees.astype(str) == "True").sum()
    yield f"{n_agree} of the paper's {len(printed)} numbers agree"
    same = table("07_search")
    more = 100 * (same["joint: search"] - same["joint: iCARMA"])
    of_cost = 100 / same["iCARMA's cost, times the search's"]
    yield (
        f"helps {more.min():.0f} to {more.max():.0f} more of 100 "
        f"for {of_cost.min():.0f} to {of_cost.max():.0f} % of the cost"
    )

    harder = table("08_how_sure").set_index("look").loc["ten times, all fifteen sets"]
    assert (harder["more than 1 % dearer"], harder.missed) == (2, 1)
    yield f'two of {harder.answers:,} answers, and turns one "no" into a "yes"'
    yield f"of {len(table('08_no_recourse'))} people without recourse"

    solvers = table("08_solvers").set_index(["solver", "setting"])
    fewer = -100 * solvers.loc["grid", "more than the search"]
    yield f"It helps {fewer.min():.0f} to {fewer.max():.0f} of 100 more"
    dearer = solvers.loc["grid", "times its cost"] - 1
    assert 0.18 <= dearer.min() < 0.25 < dearer.max() <= 0.36, "a fifth to a third"

    slack = table("08_slack").set_index(["setting", "slack"]).helped
    now, then = 100 * solvers.helped["search", "1"], 100 * slack["1", 0.25]
    yield f"{now:.1f} % are helped, with a profile 0.78 times as dense {then:.1f} %"
    yield f"A little less plausibility helps {then - now:.0f} of 100 more"

    asked = table("09_pre_post").set_index(["hard mask", "recommendation"])
    before, ten, thirty = asked.GTP["told"][
        ["iCARMA alone", "+ remembered, 10", "+ local, 10 x 3"]
    ]
    yield f"{before:.2f} standard deviations from what they want"
    yield f"ten remembered answers {ten:.2f}, thirty forgotten ones {thirty:.2f}"
    assert asked.forbidden["told"].max() == 0
    yield f"spends {asked.wasted['not told', '+ local, 10 x 3']:.0f} of 30 questions"

    caps = table("10_caps").set_index(["hard constraints", "at most"]).loc[("all open", 2)]
    yield f"takes recourse from {caps['lose recourse']:.0f} of {caps.of:.0f} people"

    flow = table("11_by_flow", header=[0, 1], index_col=0)
    for k, row in zip(("all (4)", "3", "2", "1"), (4, 3, 2, 1), strict=True):
        search, network = per_cent(
            *(flow.loc[k, ("joint", solver)] for solver in ("search", "iCARMA"))
        )
        times = flow.loc[k, ("cost ratio", "iCARMA")]
        yield f"| {row} | {search} % | {network} % | {times:.1f} |"
    lost = 1000 * (flow["joint", "search"] - flow["joint", "walked"]).max()
    times = flow["cost ratio", "walked"]
    yield (
        f"At most {lost:.0f} in 1,000 fewer helped, "
        f"{times.min():.2f} to {times.max():.2f} times the cost"
    )

    truth = table("11_in_truth", header=[0, 1], index_col=0)["helped in truth", "random"]
    flow_now, truth_now, least, most = per_cent(
        flow.loc["random", ("joint", "walked")],
        *truth[["walked", "walked, margin", "walked, wider"]],
    )
    yield f"{flow_now} % helped by the flow, {truth_now} % in truth"
    yield f"{least} to {most} %"
    assert truth["walked, fallback"] > truth["grid, true world"]
    yield f"for the sake of a margin, {per_cent(truth['walked, fallback'])[0]} %"


@pytest.mark.parametrize("sentence", [*true_sentences()])
def test_slides_say_what_the_tables_hold(sentence):
    assert sentence in SOURCE


@pytest.fixture(scope="module")
def lecture() -> Path:
    """The built lecture; sphinx-build -W has stopped at a warning."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    made = subprocess.run(["make", "slides"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return HTML / "index.html"


def test_each_slide_is_there_with_its_notes(lecture):
    text = lecture.read_text(encoding="utf-8")
    assert text.count('<aside class="notes">') == len(slides())
    shown = re.findall(r'<img[^>]*src="([^"]+)"', text)
    assert len(shown) == SOURCE.count("![")
    for path in shown:
        assert (HTML / path).is_file(), path


@pytest.fixture
def deck(lecture: Path) -> Iterator[Any]:
    """The lecture in a browser; at the end, without an error or a request that leaves."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    options = ["--no-sandbox", "--disable-background-networking"]
    said: list[str] = []
    with api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=options)
        opened = browser.new_page(viewport={"width": 1280, "height": 720})
        opened.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda r: None if is_ours(r.url) else said.append(r.url))
        opened.on("requestfailed", lambda request: said.append(request.url))
        opened.goto(lecture.as_uri())
        opened.wait_for_function("Reveal.isReady()")
        yield opened
        browser.close()
    assert not said


def is_ours(address: str) -> bool:
    """Return whether a request stays in the lecture."""
    return address.startswith((HTML.as_uri(), "data:", "blob:", "about:"))


def test_no_slide_runs_over(deck):
    assert deck.evaluate("Reveal.getTotalSlides()") == len(slides())
    for number, title in enumerate(slides()):
        deck.evaluate(f"Reveal.slide({number})")
        shown = "Reveal.getCurrentSlide()"
        images = f"[...{shown}.querySelectorAll('img')]"
        deck.evaluate(f"Promise.all({images}.map(image => image.decode()))")
        height, width = deck.evaluate(f"[{shown}.scrollHeight, {shown}.scrollWidth]")
        assert height <= 720, (title, height)
        assert width <= 1280, (title, width)
        assert deck.evaluate(f"{shown}.querySelector('aside.notes').innerText.length") > 0


def test_parts_of_figures_are_filled_by_them(deck):
    names = re.findall(r"^:::\{container\} crop ([\w-]+)$", SOURCE, flags=re.MULTILINE)
    assert len(names) == 4
    parts = [text for text, _ in slides().values()]
    for name in names:
        (number,) = [i for i, text in enumerate(parts) if f"crop {name}\n" in text]
        deck.evaluate(f"Reveal.slide({number})")
        picture = deck.locator(f".{name} img")
        picture.evaluate("image => image.decode()")
        part, whole = deck.locator(f".{name}").bounding_box(), picture.bounding_box()
        for start, size in (("x", "width"), ("y", "height")):
            end = part[start] + part[size]
            assert whole[start] <= part[start] + 1, (name, start)
            assert end <= whole[start] + whole[size] + 1, (name, start)
        assert part["width"] * part["height"] > 200_000, name


def test_the_applicant_answers_in_a_slide(deck):
    number = [i for i, (text, _) in enumerate(slides().values()) if "iframe" in text]
    deck.evaluate(f"Reveal.slide({number[0]})")
    page = deck.frame_locator("section.present iframe")
    settled = page.locator("#page[data-settled=yes]")
    settled.wait_for(timeout=10_000)
    before = page.locator(".card.icarma").inner_text()
    page.locator("#track-5").focus()
    for _ in range(30):
        deck.keyboard.press("ArrowLeft")
    settled.wait_for(timeout=10_000)
    assert page.locator(".card.icarma").inner_text() != before


def test_what_would_unlock_it_is_in_view(deck):
    (number,) = [i for i, (text, _) in enumerate(slides().values()) if "iframe" in text]
    deck.evaluate(f"Reveal.slide({number})")
    page = deck.frame_locator("section.present iframe")
    settled = page.locator("#page[data-settled=yes]")
    settled.wait_for(timeout=10_000)
    for row in (0, 2):  # loan amount and income
        page.locator(".words").nth(row).locator("label").last.dispatch_event("click")
    settled.wait_for(timeout=10_000)
    last = page.locator(".unlock button").last
    last.wait_for(timeout=10_000)
    assert last.evaluate("it => it.getBoundingClientRect().bottom <= innerHeight")
    assert not page.locator("header").is_visible()
