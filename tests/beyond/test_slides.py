"""The lecture: every slide whole, with notes, and with numbers that the tables hold."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lib.io import ROOT
from lib.paper import choosing, tables

SOURCE = (ROOT / "docs" / "slides" / "index.md").read_text(encoding="utf-8")
HTML = ROOT / "runs" / "slides" / "html"
MINUTES = 45
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def slides() -> dict[str, tuple[str, str]]:
    """Return text and notes of each slide, by its title."""
    by_title = {}
    for slide in re.split(r"^#{1,2} ", SOURCE, flags=re.MULTILINE)[1:]:
        title, rest = slide.split("\n", 1)
        text, *notes = rest.split(":::{revealjs-notes}\n")
        assert len(notes) == 1, f"{title}: one note"
        by_title[title] = (text, notes[0])
    return by_title


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
    assert f"take {minutes:g} minutes" in core[0]


def test_few_words_beside_the_figure():
    for title, (text, _) in slides().items():
        shown = re.sub(r"!\[.*?\]\(.*?\)|<.*?>|:::.*|\$\$.*?\$\$", "", text)
        assert len(re.findall(r"[^\W\d]+", shown)) <= 30, title


def test_figures_are_the_notebooks_own():
    figures = re.findall(r"!\[.+?\]\((.+?)\)", SOURCE)
    assert figures
    for path in figures:
        assert path.startswith(("../../figures/", "../../page/"))
        assert (ROOT / "docs" / "slides" / path).is_file(), path


def table(name: str, **options: Any) -> pd.DataFrame:
    """Return a committed table."""
    return pd.read_csv(ROOT / "tables" / f"{name}.csv", **options)


def per_cent(*shares: float) -> list[str]:
    """Return shares in whole per cent."""
    return [f"{100 * share:.0f}" for share in shares]


def shown(notebook: str, pattern: str) -> list[float]:
    """Return the numbers that a committed notebook shows where the pattern matches."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_bytes())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = [o.get("text") or o.get("data", {}).get("text/plain", []) for o in outputs]
    matches = re.search(pattern, "\n".join("".join(text) for text in texts), re.DOTALL)
    assert matches, (notebook, pattern)
    return [float(number) for number in matches.groups()]


def of_people_and_networks() -> Iterator[str]:
    """Yield what is said with numbers of notebooks 00, 01 and 03."""
    (first,) = shown("00_start_here", r"iCARMA +\+([\d.]+) nats")
    yield f"more plausible than before by {first:.2f} nats"

    women, men = shown("01_data_and_scm", r"gender *\n0 +\d+ +([\d.]+)\n1 +\d+ +([\d.]+)")
    yield f"{women} are refused, of gender 1 {men}"
    counts_of = r" +(\d+) +(\d+)"  # too much, too little
    misled = rf"of (\d+) people.*?our classifier{counts_of}.*?the rule{counts_of}"
    refused, never, *counts = shown("01_data_and_scm", misled)
    assert never == 1
    yield f"one person of {refused:,.0f}"
    bank, rule, reverse = (f"{100 * count / refused:.1f} %" for count in counts)
    yield f"it promises too little to {bank} of the refused"
    yield f"it promises too much to {rule}, and too little to {reverse}"

    counted = shown("03_icarma_training", r"four open +(\d+) .*?some can't +(\d+) ")
    yield f"Counted over {sum(counted):,.0f} recommendations"


def of_hard_constraints() -> Iterator[str]:
    """Yield what is said with numbers of notebook 04."""
    errors = {1: "one standard error", 2: "two standard errors"}[choosing.STANDARD_ERRORS]
    yield f"of all within {errors} of the highest joint share"
    rows = table("04_paper_vs_ours").query("metric == 'joint' and method == 'oracle'")
    helped = per_cent(*rows.set_index("setting")["mean"][["all (4)", "3", "2", "1"]])
    yield f"helps {', '.join(helped)} of 100 with 4, 3, 2, 1 features open"
    rows = table("04_paper_vs_ours").query("networks == 'as printed'")
    rows = rows.pivot(index="setting", columns="metric", values=["mean", "paper"])
    for metric in ("validity", "plausibility"):
        most, least = rows["mean", metric][["all (4)", "1"]]
        yield f"from {most:.2f} to {least:.2f} in {metric}"
    ours, theirs = per_cent(
        *(1 - rows.loc["1", [("mean", "validity"), ("paper", "validity")]])
    )
    yield f"its networks leave {theirs} of 100 refused, ours {ours}"


def of_agreement() -> Iterator[str]:
    """Yield how near the tables of notebooks 04 and 05 are to the paper's."""
    names = ("04", *(f"05_table{k}" for k in (2, 3, 5, 6)))
    rows = [table(f"{name}_paper_vs_ours", dtype={"table": str}) for name in names]
    near = tables.agreement(pd.concat(rows).fillna({"networks": ""})).unstack("who")
    off = near["mean |difference|"]
    about = {
        "1": "hard",
        "2": "soft, rankings",
        "3": "soft, scores",
        "5": "hard, in an order",
    }
    for k, what in about.items():
        printed, chosen = off.loc[k, ["as printed", "as chosen"]]
        yield f"| Table {k}, {what} | {printed:.2f} | {chosen:.2f} |"
    near = near.xs("as printed", axis=1, level="who").loc[list(about)]
    close = near[f"within {tables.CLOSE:g}"] * near["without dagger"]
    free, close = (
        "{:.0f}, {:.0f}, {:.0f} and {:.0f}".format(*n)
        for n in (near["without dagger"], close)
    )
    yield f"{free} for the networks as printed; of these {close} lie within 0.05"
    yield f"Cells of the oracle lie within {off.oracle.max():.2f} on average"


def of_soft_constraints() -> Iterator[str]:
    """Yield what is said with numbers of notebook 05."""
    rows = table("05_table2_paper_vs_ours")
    rows = rows.pivot(
        index=["method", "networks", "setting"], columns="metric", values=["mean", "paper"]
    )
    printed = rows.loc["iCARMA", "as printed"]
    soft = printed["paper"].loc[[f"soft, {k}" for k in ("concave", "linear", "convex")]]
    yield "a hap of {} to {} %".format(*per_cent(soft.hap.min(), soft.hap.max()))
    most = soft[["validity", "plausibility"]].min(axis=1)
    yield "help at most {} to {} of 100".format(*per_cent(most.min(), most.max()))

    linear = printed["mean"].loc["soft, linear"]
    acted, helped = per_cent(linear.hap, linear.joint)
    yield f"{acted} of 100 act on what is hardest, and {helped} are helped"

    names = {
        "never a hardest": "never on what is hardest",
        "only if need be": "on it only if need be",
        "linear weights": "least cost, linear weights",
        "no weights": "least cost, no weights",
    }
    for name, row in names.items():
        acts, helps = shown("05_soft_constraints", rf"{name} +([\d.]+) +([\d.]+)")
        yield "| {} | {} % | {} % |".format(row, *per_cent(acts, helps))
        if name == "never a hardest":
            (could_be,) = per_cent(helps)
            yield f"{helped} are helped. Without a hardest action {could_be} could be"
            assert 0.6 < linear.joint / helps < 0.7, "two thirds"
        if name == "only if need be":
            yield f"{100 * (1 - acts):.0f} of 100 who can be helped need no hardest action"
    (scores,) = shown("05_soft_constraints", r"score +never.*?only if need be +([\d.]+)")
    yield f"With scores {100 * (1 - scores):.0f} of 100 need none"
    pruned = rows.loc[("iCARMA", "pruned", "soft, linear"), ("mean", "hap")]
    pruned, plain = per_cent(pruned, acts)
    yield f"their hap is {pruned} %, that of the oracle without weights is {plain} %"


def of_groups() -> Iterator[str]:
    """Yield what is said with numbers of notebook 06."""
    groups = table("06_groups").query("method == 'search' and measure == 'helped'")
    share = groups.set_index(["scenario", "group"]).estimate
    cells = ("white men", "non-white men", "white women", "non-white women")
    each = dict(zip(cells, per_cent(*share["race"][list(cells)]), strict=True))
    yield f"{each[cells[0]]} % of white men, {each[cells[-1]]} % of non-white women"
    yield ", ".join(f"{of} % of {cell}" for cell, of in each.items())
    yield f"{per_cent(share['baseline', cells[-1]])[0]} % of non-white women and every"
    assert share["baseline", "white men"] == 1


def of_real_people() -> Iterator[str]:
    """Yield what is said with numbers of notebook 07."""
    rows = (
        table("07_paper_vs_ours").query("networks == 'as printed'").dropna(subset="paper")
    )
    agrees = rows.agrees.astype(str) == "True"
    yield f"{agrees.sum()} of the paper's {len(rows)} numbers agree"
    rows = rows.set_index(["setting", "metric"])
    paper, ours = (rows[who].map("{:.2f}".format) for who in ("paper", "mean"))
    pairs = (paper + ", " + ours).unstack()
    for setting, pair in pairs.iterrows():
        name = {"all (4)": "everything open"}.get(setting, setting.replace(" (3)", ""))
        yield f"| {name} | {pair.validity} | {pair.plausibility} |"
    yield from (f"| {hap} |" for hap in pairs.hap.dropna())
    rows = rows.loc["all (4)"]
    for metric, word in (("validity", "accepted"), ("plausibility", "plausible")):
        yield f"{rows['mean'][metric]:.2f} {word}, the paper {rows.paper[metric]:.2f}"
    same = table("07_search")
    more = 100 * (same["joint: search"] - same["joint: as printed"])
    yield f"helps {more.min():.0f} to {more.max():.0f} more of 100 than these"
    more = 100 * (same["joint: search"] - same["joint: as chosen"])
    yield f"it helps {more.min():.0f} to {more.max():.0f} more"

    graphs = table("07_graphs").set_index("graph").loc[["refitted", "lateness is past"]]
    yield "validity falls from {:.2f} to {:.2f}".format(*graphs.validity)
    yield "good recommendations fall from {:.2f} to {:.2f}".format(*graphs.joint)
    here, there = graphs.validity
    assert 0.45 < 1 - there / here < 0.55, "half"


def of_searches() -> Iterator[str]:
    """Yield what is said with numbers of notebook 08."""
    looks = pd.read_csv(ROOT / "benchmarks" / "how_sure.csv").set_index(["people", "look"])
    harder = looks.loc["Loan", "ten times, all fifteen sets"]
    assert (harder["more than 1 % dearer"], harder.missed) == (1, 1)
    yield f'one of {harder.answers:,} answers, and turns one "no" into a "yes"'
    worlds = table("08_worlds").set_index("another model")
    in_truth, refitted, past = worlds["they work"]
    one, keys, same = worlds["one-feature keys"]
    assert keys == same
    yield f"| Loan, {one} | in truth | {in_truth} |"
    yield f"| real applicants, {keys} | another fit of the flow | {refitted} |"
    yield f"| the same | past lateness stays | {past} |"
    yield f"if being late can't be undone, {past} of the {keys} work"
    with_no = table("08_why").set_index("people").loc['a "no"']
    stuck, _, stuck_real = (text.split(" of ")[0] for text in with_no)
    yield f"Opening one feature helps {one} of {stuck} people without recourse"
    yield f"for {keys} of {stuck_real} one feature is enough"


def of_what_is_beyond() -> Iterator[str]:
    """Yield what is said with numbers of notebooks 09 to 11."""
    asked = table("09_pre_post").set_index(["hard mask", "recommendation"])
    before, ten, thirty = asked.GTP["told"][
        ["iCARMA alone", "+ remembered, 10", "+ local, 10 x 3"]
    ]
    yield f"{before:.2f} standard deviations from what they want"
    yield f"ten remembered answers {ten:.2f}, thirty forgotten ones {thirty:.2f}"
    assert asked.forbidden["told"].max() == 0
    yield f"spends {asked.wasted['not told', '+ local, 10 x 3']:.0f} of 30 questions"

    caps = table("10_caps").set_index("features at most").loc[2]
    yield f"takes recourse from {caps['lose recourse']:.0f} of {caps.of:.0f} people"

    worlds = ["by the flow", "in truth"]
    truth = table("11_in_truth").set_index(["open features", "solver"])
    for k, row in zip(("all (4)", "3", "2", "1"), (4, 3, 2, 1), strict=True):
        of_both = truth.loc[k].loc[["search", "iCARMA"]]
        helped = [of_both[world] for world in worlds]
        cells = "".join(f" {cell} % |" for both in helped for cell in per_cent(*both))
        yield f"| {row} |{cells} {1 / of_both['cost ratio']['search']:.1f} |"
        assert helped[0].search > helped[0].iCARMA and helped[1].search < helped[1].iCARMA
    of_search, of_network = (
        per_cent(*truth.loc[("random", who), worlds]) for who in ("search", "iCARMA")
    )
    yield f"{of_search[0]} % are helped by the flow, {of_search[1]} % in truth"
    yield f"iCARMA: {of_network[0]} and {of_network[1]} %, at twice the cost"
    assert 1.9 < 1 / truth.loc[("random", "search"), "cost ratio"] < 2.2, "twice"

    spared = table("11_with_margin", index_col=0)["in truth"]
    (share,) = per_cent(spared["proposals, walked, margin"])
    yield f"moved back to this margin, help {share} % of test people in truth"
    renewed = table("11_new_noise", index_col=0)["0.1"]
    with_noise = per_cent(*renewed[["proposals, walked, margin", "iCARMA"]])
    yield "new noise leaves {} %, iCARMA {} %".format(*with_noise)


def true_sentences() -> Iterator[str]:
    """Yield what slides and notes say, with the numbers as notebooks have left them."""
    yield from of_people_and_networks()
    yield from of_hard_constraints()
    yield from of_agreement()
    yield from of_soft_constraints()
    yield from of_groups()
    yield from of_real_people()
    yield from of_searches()
    yield from of_what_is_beyond()


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
    messages: list[str] = []
    with api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=options)
        opened = browser.new_page(viewport={"width": 1280, "height": 720})
        opened.on(
            "console", lambda m: messages.append(m.text) if m.type == "error" else None
        )
        opened.on("pageerror", lambda error: messages.append(str(error)))
        opened.on("request", lambda r: None if is_ours(r.url) else messages.append(r.url))
        opened.on("requestfailed", lambda r: messages.append(r.url) if failed(r) else None)
        opened.goto(lecture.as_uri())
        opened.wait_for_function("Reveal.isReady()")
        yield opened
        browser.close()
    assert not messages


def failed(request: Any) -> bool:
    """Return whether a request failed; who leaves a page calls off what it still loads."""
    return bool(request.failure != "net::ERR_ABORTED")


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


def live(deck: Any) -> Any:
    """Return the applicant's page, in its slide."""
    (number,) = [i for i, (text, _) in enumerate(slides().values()) if "iframe" in text]
    deck.evaluate(f"Reveal.slide({number})")
    page = deck.frame_locator("section.present iframe")
    page.locator("#page[data-settled=yes]").wait_for(timeout=60_000)
    return page


def test_the_applicant_answers_in_a_slide(deck):
    page = live(deck)
    page.locator('[data-to="2"]').click()
    before = page.locator("#headline").inner_text()
    page.locator('label:has([name="score-0"][value="5"])').click()
    page.locator("#page[data-settled=yes]").wait_for(timeout=60_000)
    assert page.locator("#headline").inner_text() != before
    assert not page.locator("header").is_visible()


def test_the_applicant_can_be_read_in_a_slide(deck):
    """Text of 20 pixels, and no step runs over the frame."""
    page = live(deck)
    size = "own => parseFloat(getComputedStyle(own).fontSize) * own.currentCSSZoom"
    assert page.locator("#headline").evaluate(size) >= 20
    for step in range(1, 6):
        page.locator(f'[data-to="{step}"]').click()
        over = "own => own.scrollHeight - own.clientHeight"
        assert page.locator("html").evaluate(over) <= 0, step


def test_keys_move_the_slides_after_a_click_into_the_page(deck):
    page = live(deck)
    page.locator(".outcome").click()
    where = deck.evaluate("Reveal.getIndices().h")
    page.locator("body").press("ArrowRight")
    deck.wait_for_function(f"Reveal.getIndices().h === {where} + 1")
    page = live(deck)
    page.locator("#be-5").focus()
    page.locator("#be-5").press("ArrowLeft")  # her dot's own
    assert deck.evaluate("Reveal.getIndices().h") == where
    page.locator("#be-5").press("PageDown")
    deck.wait_for_function(f"Reveal.getIndices().h === {where} + 1")


def test_three_times_predict_vote_reveal(deck):
    """The answer is not to be seen before the next key."""
    votes = [i for i, (text, _) in enumerate(slides().values()) if "**Vote:**" in text]
    assert len(votes) == 3
    for number in votes:
        deck.evaluate(f"Reveal.slide({number})")
        hidden = deck.locator("section.present .fragment")
        assert hidden.count() > 0
        for one in hidden.all():
            assert one.evaluate("own => getComputedStyle(own).visibility") == "hidden"
        for _ in range(hidden.count()):
            deck.evaluate("Reveal.next()")
        deck.wait_for_function(
            "[...document.querySelectorAll('section.present .fragment')].every("
            "(own) => getComputedStyle(own).visibility === 'visible')"
        )
