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

from lib.io import ROOT
from lib.paper.pictures import applicant

FILE = applicant.PAGE / "applicant.html"
SIZES = ((390, 844), (1280, 720), (1920, 1080))
# What is painted on what: texts, and lines and shapes, as (what, colour, colour behind).
PAINTED = """() => {
  const style = (element) => getComputedStyle(element);
  const all = (selector) => [...document.querySelectorAll(`#page ${selector}`)];
  const isSeen = (element) =>
    element.getClientRects().length > 0 &&
    !element.matches(".unseen") &&
    !element.closest("label:has(:disabled)") &&
    !element.matches(":disabled");
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
      ...all(".stem, .tip, .rail, .dot")
        .filter(isSeen)
        .map((own) => [
          own.className,
          own.matches(".rail, .dot") ? style(own).backgroundColor : style(own).color,
          behind(own.parentElement),
        ]),
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
    """After a change: page/build.py."""
    assert FILE.read_text(encoding="utf-8") == applicant.page()


def test_nothing_is_fetched():
    page = applicant.page().replace('href="https://arxiv.org/', "")  # a link to click
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
def page(browser: Any, request: Any) -> Iterator[Any]:
    """The page, freshly opened from disk; at the end, without a word on the console.

    It is opened at its start, or `opened_at` another address.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: messages.append(request.url))
    page.goto(FILE.as_uri() + getattr(request, "param", ""))
    settled(page)
    yield page
    page.close()
    asked = (FILE.as_uri(), "data:", "Unsafe attempt to load URL file:")  # by devtools
    assert not [text for text in messages if not text.startswith(asked)]


def settled(page: Any) -> None:
    """Wait until the searches are done."""
    page.wait_for_selector("#page[data-settled=yes]", timeout=60_000)


def opened_at(address: str) -> pytest.MarkDecorator:
    """Return what has a test's page opened at an address, as by a link."""
    return pytest.mark.parametrize(
        "page", [f"#{address}"], indirect=True, ids=[pytest.HIDDEN_PARAM]
    )


def open_again(page: Any, address: str) -> None:
    """Open the page at an address, as somebody does who was sent it."""
    page.goto("about:blank")
    page.goto(f"{FILE.as_uri()}#{address}")
    settled(page)


def go(page: Any, address: str) -> None:
    """Go to another address in the same tab, which takes half as long."""
    page.evaluate(
        """address => {
          if (location.hash === `#${address}`) throw new Error("It is there already.");
          document.querySelector("#page").dataset.settled = "no";
          location.hash = address;
        }""",
        address,
    )
    settled(page)


def step(page: Any, number: int) -> None:
    """Go to a step of the story."""
    page.locator(f'[data-to="{number}"]').click()


def click(page: Any, name: str, value: str) -> None:
    """Choose a radio button by its label, as a reader does."""
    page.locator(f'label:has(input[name="{name}"][value="{value}"])').click()
    settled(page)


def slide(page: Any, slider: str, key: str, times: int) -> None:
    """Move a dot by the keyboard."""
    page.locator(f"#{slider}").focus()
    for _ in range(times):
        page.keyboard.press(key)
    settled(page)


def words(page: Any) -> str:
    """Return what is said of the answer that is shown."""
    return page.locator(".outcome").inner_text().replace("\xa0", " ")


# --- the story


def test_it_opens_with_the_first_applicant_before_her_answer(page):
    assert page.locator("#who").inner_text() == "applicant 1 of 201"
    assert page.locator("#decision .pill").all_inner_texts() == ["refused"]
    assert page.locator("#headline").inner_text().startswith("A computer refused you")
    places = page.locator("#yourself .track").all_inner_texts()
    assert [place.split("\n")[0] for place in places] == [
        "gender woman",
        "age older than 91 of 100",
        "education more than 65 of 100",
        "loan amount larger than 85 of 100",
        "loan duration longer than 98 of 100",
        "income more than 72 of 100",
        "savings more than 54 of 100",
    ]  # as in notebook 00


@pytest.mark.parametrize("size", SIZES)
def test_every_solver_has_one_sentence_for_her_and_a_click_redraws_the_graph(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    step(page, 3)
    graphs = set()
    for whose in ("plan0", "plan1", "plan2", "instant", "printed", "grid"):
        card = page.locator(f".answer.{whose}")
        card.click()
        sentence = card.locator(".do").inner_text()
        assert card.locator(".do").is_visible()
        assert page.locator("#headline").inner_text() == sentence
        assert "effort" in card.locator(".brief").inner_text()
        graphs.add(page.locator("#graph").get_attribute("aria-label"))
    assert len(graphs) >= 5
    assert page.locator("#graph .acted").count() == 2  # the grid's answer


def test_the_story_goes_on_and_back(page):
    for number in range(2, 6):
        page.locator("#after").click()
        assert page.locator(".step:not([hidden])").get_attribute("data-step") == f"{number}"
        assert page.evaluate("document.activeElement.tagName") == "H2"
    assert page.locator("#after").is_disabled()
    page.locator("#before").click()
    assert page.locator('[aria-current="step"]').get_attribute("data-to") == "4"


# --- what a reader says


def test_one_answer_changes_what_is_recommended(page):
    """Of the first eight applicants: "very hard" is felt by most, "can't" by all."""
    changes = []
    for person in range(1, 9):
        go(page, f"step=2&answer=instant&person={person}&hard=1.1.1.1")
        before = page.locator("#headline").inner_text()
        acted = page.locator("#graph .acted").first.get_attribute("id")
        k = int(acted.removeprefix("node-")) - 3
        click(page, f"score-{k}", "4")
        changes.append(page.locator("#headline").inner_text() != before)
        click(page, f"score-{k}", "5")
        assert page.locator("#headline").inner_text() != before
        assert "acted" not in page.locator(f"#node-{k + 3}").get_attribute("class")
    assert sum(changes) >= 5


def test_an_old_answer_stays_until_the_new_one_is_there(page):
    """Nobody else's is shown meanwhile, and the old one is dimmed."""
    watch = """() => {
      window.seen = [];
      const look = () => seen.push([
        document.querySelector("#headline").innerText,
        document.querySelector("#graph").getAttribute("aria-label"),
      ].join());
      look();
      const what = { subtree: true, childList: true, attributes: true };
      new MutationObserver(look).observe(document.querySelector("#page"), what);
    }"""
    opacity = "getComputedStyle(document.querySelector('.outcome')).opacity"
    for person in (1, 4, 7):
        go(page, f"step=2&person={person}&hard=1.1.1.1")
        page.evaluate(watch)
        page.locator('label:has(input[name="score-0"][value="5"])').click()
        dimmed = page.evaluate(
            f"[document.querySelector('#page').dataset.settled, {opacity}]"
        )
        settled(page)
        assert page.evaluate(opacity) == "1"
        if dimmed[0] == "no":  # a fast machine may be done
            assert float(dimmed[1]) < 1
        seen = page.evaluate("seen")
        assert len(set(seen)) == 2, set(seen)


@opened_at("step=2&person=1")
def test_where_an_answer_changes_nothing_the_page_says_why(page):
    """All single changes of what an applicant starts with; a sentence, or a change."""
    n_explained = 0
    start = page.locator("#headline").inner_text()
    for k, begun in enumerate((1, 2, 3, 5)):
        for score in {1, 2, 3, 4, 5} - {begun}:
            click(page, f"score-{k}", str(score))
            why = page.locator("#why").inner_text()
            is_same = page.locator("#headline").inner_text() == start
            assert bool(why) == is_same, (k, score)
            kind = page.locator(f"#node-{k + 3}").get_attribute("class")
            assert ("only follows" not in why) or "follows" in kind
            n_explained += is_same
            click(page, f"score-{k}", str(begun))
    assert n_explained > 5


def test_cannot_is_obeyed(page):
    step(page, 2)
    click(page, "score-1", "5")
    step(page, 3)
    for sentence in page.locator(".answer .do").all_inner_texts():
        assert "pay it back" not in sentence
    assert "closed" in page.locator("#node-4").get_attribute("class")


def test_directions_are_obeyed_and_what_breaks_them_is_marked(page):
    """Nobody of the first ten is told to earn or save less, or to borrow more."""
    n_odd = 0
    odd = ("larger loan", "longer", "earn less", "save less")
    for person in range(1, 11):
        go(page, f"step=3&person={person}&hard=1.1.1.1")
        for whose in ("instant", "plan0", "plan1", "plan2", "grid"):
            for sentence in page.locator(f".answer.{whose} .do").all_inner_texts():
                first = sentence.split(". Then")[0].lower()
                assert not any(deed in first for deed in odd), (person, sentence)
        printed = page.locator(".answer.printed")
        breaks = any(deed in printed.locator(".do").inner_text().lower() for deed in odd)
        assert printed.locator(".odd").count() == breaks, person
        n_odd += breaks
    assert n_odd > 0


@opened_at("step=2&answer=plan0")
def test_how_far_is_obeyed(page):
    assert "85 → 63" in words(page)
    page.select_option("#end-0", "75")
    settled(page)
    assert "85 → 75" in words(page)
    click(page, "way-0", "any")
    assert page.locator("#end-0").is_disabled()
    assert "85 → 63" in words(page)


def test_what_holds_is_told_from_what_does_not(page):
    """Whom the network fails, the search still helps; what fails is only proposed."""
    for person in range(1, 60):
        go(page, f"step=3&person={person}")
        briefs = page.locator(".answer.instant .brief, .answer.printed .brief")
        is_helped = "effort" in page.locator(".answer.plan0 .brief").inner_text()
        if is_helped and all("too rare" in brief for brief in briefs.all_inner_texts()):
            break
    assert page.locator("#decision .pill").all_inner_texts() == ["refused", "accepted"]
    page.locator(".answer.printed").click()
    assert page.locator("#headline").inner_text().startswith("It proposes: ")
    assert "must not be rarer" in words(page)


def test_a_change_can_be_seen(page):
    for person in range(1, 9):
        go(page, f"step=3&person={person}")
        text = page.locator("#page").inner_text()
        changes = re.findall(
            r"\((\d+(?:\.\d+)?)\s→\s(\d+(?:\.\d+)?|a little \w+)[)\s]", text
        )
        assert changes and all(one != other for one, other in changes), changes


def test_who_is_accepted_reads_something_else(page):
    slide(page, "be-5", "End", 1)
    slide(page, "be-6", "End", 1)
    assert "You are accepted" in page.locator(".step h2").first.inner_text()
    assert page.locator("#headline").inner_text() == (
        "The bank accepts you as you are. There is nothing to do."
    )
    for number in (2, 3, 4, 5):
        step(page, number)
        assert page.locator("#graph .acted").count() == 0
    assert "nothing is locked" in page.locator("#unlock").inner_text()


@opened_at("step=3&hard=5.5.5.5")
def test_who_can_change_nothing_is_told_so(page):
    assert "You say that you can change nothing" in words(page)


def test_a_bank_that_asks_for_more_gets_more(page):
    """Of the same applicant: the search's answer ends at the rating that is asked for."""
    for share in ("0.3", "0.7"):
        go(page, f"step=3&answer=plan0&from={share}")
        decision = page.locator("#decision").inner_text()
        assert "accepted" in decision and f"{share[-1]}0 %" in decision


# --- what follows, and why


@opened_at("step=4&answer=plan1")
def test_consequences_light_up(page):
    # a smaller loan alone
    slide(page, "do-5", "ArrowRight", 40)  # income; savings follow
    assert "acted" in page.locator("#node-5").get_attribute("class")
    assert "follows" in page.locator("#node-6").get_attribute("class")
    assert page.locator("#edge-5-6").get_attribute("class") == "lit"
    assert "follows from your income" in page.locator("#follows").inner_text()
    assert "though you can't change it yourself" in page.locator("#follows").inner_text()
    assert page.locator("#do-6").is_disabled()  # savings, which she can't change


@opened_at("step=4&hard=1.2.3.4&answer=own&try=0_-300")
def test_a_dot_put_back_is_no_action(page):
    """Savings and then income are moved; savings put back follow income again."""
    slide(page, "do-6", "ArrowRight", 20)
    slide(page, "do-5", "ArrowRight", 40)
    assert "acted" in page.locator("#node-6").get_attribute("class")
    slide(page, "do-6", "ArrowLeft", 20)
    assert "follows" in page.locator("#node-6").get_attribute("class")
    slide(page, "do-5", "ArrowLeft", 40)
    assert page.locator("#node-6").get_attribute("class").strip() == ""
    page.locator("#untry").click()
    assert page.locator("#whose b").inner_text() == "Easiest way found"


@opened_at("step=4")
def test_what_is_tried_begins_at_the_answer_and_is_judged_as_one(page):
    """The rest of the plan stays; against what was said is marked; a link keeps it."""
    assert page.locator("#graph .acted").count() == 2
    slide(page, "do-5", "ArrowLeft", 30)
    assert page.locator("#graph .acted").count() == 2
    assert "earn less" in words(page).lower()
    assert "Against what you said: earn less." in page.locator("#follows").inner_text()
    step(page, 3)
    assert "effort" in page.locator(".answer.own .brief").inner_text()
    shown = page.locator("#page").inner_text()
    open_again(page, page.evaluate("location.hash")[1:])
    assert page.locator("#page").inner_text() == shown


def test_what_is_left_without_one_part_is_what_the_models_say(page):
    """The sentences of step 4, against the models of the page asked anew."""
    ask = """([script, person]) => {
      const model = new Function(`${script}\nreturn createModel;`)()(
        JSON.parse(document.getElementById("data").textContent),
      );
      const [x, scores] = [model.applicants[person], [1, 2, 3, 5]];
      const limits = model.directions.map((way) => ({
        fall: way !== "up",
        rise: way !== "down",
      }));
      const open = model.intervalOf(x, [1, 2, 3, 4], limits);
      const table = model.searched(x, model.weightsOf([1, 2, 3, 4]), open);
      const may = scores.map((score) => score < 5);
      const best = model.cheapest(table, may);
      return best && best.acts.flatMap((acted, k) => {
        if (!acted || Math.abs(best.values[k] - x[model.columns[k]]) < 1e-6) return [];
        const without = (flags) => flags.map((isSet, i) => isSet && i !== k);
        const weights = model.weightsOf(scores);
        const left = model.outcome(x, without(best.acts), best.values, weights);
        const other = model.cheapest(table, without(may));
        return [[left, best.cost, other && other.cost]];
      });
    }"""
    n_none = n_other = 0
    for person in range(8):
        go(page, f"step=4&answer=plan0&person={person + 1}")
        sentences = [
            line
            for line in page.locator("#follows p").all_inner_texts()
            if line.startswith("If you don't ")
        ]
        expected = page.evaluate(ask, [applicant.script(), person]) or []
        assert len(sentences) == len(expected)
        for sentence, (left, cost, other) in zip(sentences, expected, strict=True):
            is_enough = left["isValid"] and left["isPlausible"]
            assert ("you are refused" in sentence) == (not left["isValid"]), sentence
            assert ("the rest is enough" in sentence) == is_enough, sentence
            if not left["isValid"] and left["probability"] >= 0.01:
                assert f"at {int(100 * left['probability'])} %" in sentence, sentence
            if other is None:
                assert sentence.endswith("Without it, nothing was found."), sentence
                n_none += 1
            else:
                least, than = (round(1000 * c) or "below 1" for c in (other, cost))
                efforts = (
                    f"without it has nearly the same effort, {than}."
                    if least == than
                    else f"without it has effort {least}; this one {than}."
                )
                assert sentence.endswith(efforts), sentence
                n_other += 1
    assert n_none > 0 and n_other > 0


# --- over all applicants


def shares_of(page, whose):
    """Return the cells of one row of the table over all applicants."""
    page.locator("#all summary").click()
    page.wait_for_selector("#shares table", timeout=120_000)
    rows = [row.split("\t") for row in page.locator("#shares tr").all_inner_texts()]
    (row,) = (row for row in rows if row[0] == whose)
    return row


@opened_at("step=3")
def test_for_four_in_ten_applicants_the_networks_answer_does_not_hold(page):
    """With the answers that are filled in; and the search's last less often in truth."""
    network = shares_of(page, "iCARMA network, adjusted")
    assert "for four in ten applicants its answer does not hold" in page.inner_text("main")
    assert 55 < int(network[4].split()[0]) < 65


@opened_at("step=3&hard=1.5.5.5")
def test_shares_of_all_applicants_are_what_the_models_say(page):
    """Of the grid, asked anew, with one feature open."""
    ask = """(script) => {
      const model = new Function(`${script}\nreturn createModel;`)()(
        JSON.parse(document.getElementById("data").textContent),
      );
      const limits = model.directions.map((way) => ({
        fall: way !== "up",
        rise: way !== "down",
      }));
      const scores = [1, 5, 5, 5];
      const answerTo = (x) => model.exact(x, scores, model.intervalOf(x, scores, limits));
      const helped = model.applicants.filter(answerTo);
      const inTruth = helped.filter((x) => {
        const { acts, values } = answerTo(x);
        return model.trueGain(x, model.counterfactual(x, acts, values)) >= 0;
      });
      return [helped.length, inTruth.length, model.applicants.length];
    }"""
    row = shares_of(page, "Easiest in coarse steps")
    n_helped, n_in_truth, n_all = page.evaluate(ask, applicant.script())
    share, in_truth = (f"{100 * n / n_all:.0f}\xa0%" for n in (n_helped, n_in_truth))
    assert row[1:5] == [share, share, in_truth, share] and 0 < n_helped < n_all
    assert f"Of {n_all} refused applicants" in page.locator("#shares").inner_text()


# --- what would unlock a no


def test_unlocking(page):
    """Go through applicants with income alone open, until one can be unlocked."""
    for person in range(1, 30):
        go(page, f"step=5&answer=plan0&hard=5.5.1.5&person={person}")
        buttons = page.locator("#unlock button")
        if "No way was found." in page.locator("#unlock").inner_text() and buttons.count():
            break
    assert "No way was found that the bank accepts" in words(page)
    buttons.first.focus()
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("#decision .pill").all_inner_texts() == ["refused", "accepted"]


@opened_at("step=5&answer=plan0")
def test_an_unlocked_feature_is_as_hard_as_before(page):
    before = words(page)
    page.locator("#unlock button", has_text="I can't change my loan amount").click()
    settled(page)
    assert words(page) != before
    step(page, 2)
    assert page.locator('[name="score-0"][value="5"]').is_checked()
    click(page, "score-1", "5")
    step(page, 5)
    key = page.locator("#unlock button", has_text="I can change my loan amount after all")
    key.click()
    settled(page)
    step(page, 2)
    assert page.locator('[name="score-0"][value="1"]').is_checked()


@opened_at("step=5&person=2")
def test_whom_no_one_thing_helps_may_be_helped_by_all(page):
    """She needs her savings and another direction."""
    page.locator("#unlock button", has_text="changes of your savings and every").click()
    settled(page)
    assert page.locator("#decision .pill").all_inner_texts() == ["refused", "accepted"]


@opened_at("step=3&person=153&hard=1.1.1.1")
def test_easiest_is_no_dearer_than_the_grid(page):
    """Her descents fall short of what 25 values a feature find."""
    efforts = [
        int(
            re.search(r"effort (\d+)", page.locator(f".answer.{who} .brief").inner_text())[
                1
            ]
        )
        for who in ("plan0", "grid")
    ]
    assert efforts[0] <= efforts[1]


def test_limits_can_be_taken_back(page):
    """Where directions alone stand in the way, to allow the others is offered."""
    for person in range(1, 60):
        go(page, f"step=5&answer=plan0&hard=1.1.1.1&ways=up.up.down.down&person={person}")
        button = page.locator("#unlock button", has_text="every direction")
        if button.count():
            break
    button.click()
    settled(page)
    assert page.locator("#decision .pill").all_inner_texts() == ["refused", "accepted"]


@pytest.mark.parametrize(
    ("page", "name", "value", "why"),
    [
        ("#step=2&answer=plan1", "score-1", "3", "still the second way."),
        ("#step=2&answer=plan0", "way-0", "any", "the new freedom makes nothing easier."),
        (
            "#step=2&answer=grid",
            "score-3",
            "1",
            "still the least effort of the steps tried.",
        ),
    ],
    indirect=["page"],
)
def test_why_other_answers_than_the_easiest_stay(page, name, value, why):
    click(page, name, value)
    assert page.locator("#why").inner_text() == f"The same answer: {why}"


# --- links, and starting again


def test_back_goes_back_a_step_and_what_was_said_stays(page):
    page.locator("#next").click()
    settled(page)
    for _ in range(2):
        page.locator("#after").click()
    page.locator(".answer.grid").click()
    shown = page.locator("#page").inner_text()
    step(page, 4)
    page.go_back()
    settled(page)
    assert page.locator("#page").inner_text() == shown
    page.go_back()
    settled(page)
    assert page.locator('[aria-current="step"]').get_attribute("data-to") == "2"
    click(page, "score-3", "1")
    page.go_back()
    settled(page)
    assert page.locator('[aria-current="step"]').get_attribute("data-to") == "1"
    assert page.locator("#who").inner_text() == "applicant 2 of 201"
    page.locator("#after").click()
    assert page.locator('[name="score-3"][value="1"]').is_checked()


def test_a_link_can_be_copied(page):
    step(page, 2)
    click(page, "score-2", "1")
    take = "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    page.evaluate(f"() => {{ {take} }}")
    page.locator("#link").click()
    page.wait_for_selector("#link:text('Link copied')")
    assert page.evaluate("copied === location.href && copied.includes('hard=1.2.1.5')")


def test_a_link_says_what_was_said(page):
    step(page, 2)
    click(page, "score-2", "1")
    click(page, "way-2", "any")
    page.select_option("#end-0", "50")
    page.locator("#next").click()
    settled(page)
    step(page, 1)
    slide(page, "be-5", "ArrowLeft", 30)
    step(page, 3)
    page.locator(".answer.grid").click()
    address, shown = page.evaluate("location.hash"), page.locator("#page").inner_text()
    open_again(page, address[1:])
    assert page.locator("#page").inner_text() == shown
    assert page.evaluate("location.hash") == address


@pytest.mark.parametrize(
    "address",
    ["person=0&step=9&hard=1.2", "x=9_1.2&ways=a.b.c.d&from=2&answer=toString", "%"],
)
def test_an_address_that_cannot_be_read_is_the_start(page, address):
    start = page.locator("#page").inner_text()
    open_again(page, address)
    assert page.locator("#page").inner_text() == start


@opened_at("step=3&x=0_50.5_9999")
def test_numbers_of_an_address_stay_within_the_range(page):
    assert "over a million" not in page.locator("#page").inner_text()
    step(page, 1)
    assert page.locator("#yourself .value").first.inner_text() == "man"


def test_another_address_in_the_same_tab_is_read(page):
    page.evaluate("location.hash = 'step=2&person=7'")
    page.wait_for_selector("#who:text('applicant 7 of 201')")
    settled(page)
    assert page.locator('[aria-current="step"]').get_attribute("data-to") == "2"


def test_starting_again(page):
    start = page.locator("#page").inner_text()
    go(page, "step=4&person=7&hard=5.1.1.1&ways=any.up.up.up&ends=any.50.any.any&from=0.7")
    slide(page, "do-5", "End", 1)
    page.locator("#back").click()
    settled(page)
    assert page.locator("#page").inner_text() == start
    assert page.evaluate("location.hash") == ""


# --- how it looks


@pytest.mark.parametrize("size", SIZES)
def test_controls_and_outcome_are_on_one_screen(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for person in (1, 7):
        go(page, f"step=1&person={person}")
        for number in range(1, 6):
            step(page, number)
            ends = page.evaluate(
                """() => [...document.querySelectorAll("input, button, select, .outcome")]
                  .filter((element) => element.getClientRects().length)
                  .map((element) => element.getBoundingClientRect().bottom + scrollY)"""
            )
            assert max(ends) <= size[1], (person, number, max(ends))


@pytest.mark.parametrize("size", [(1600, 900), (1920, 950), (1920, 1080), (2560, 1440)])
def test_a_large_screen_is_used(page, size):
    """Nearly its whole width and height, and no more."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for number in range(1, 6):
        step(page, number)
        box = page.locator(".inner").bounding_box()
        for length, whole in zip((box["width"], box["height"]), size, strict=True):
            assert 0.75 * whole <= length <= whole, (number, box)


@pytest.mark.parametrize("width", [320, 390, 800, 1600])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for number in range(1, 6):
        step(page, number)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, number


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1280, 720)])
@pytest.mark.parametrize(("number", "purpose"), [(1, "be"), (4, "do")])
def test_nothing_moves_while_a_dot_is_dragged(page, size, number, purpose):
    """From end to end: all dots and the graph stay, whatever is said around them."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    places = f"""() => [...document.querySelectorAll("[id^={purpose}-], #graph")]
      .map((shape) => shape.getBoundingClientRect().top + scrollY)"""
    for person in (1, 7):
        go(page, f"step={number}&person={person}&hard=1.1.1.1")
        before = page.evaluate(places)
        for column in (3, 4, 5, 6):
            for key in ("Home", "End"):
                slide(page, f"{purpose}-{column}", key, 1)
                assert page.evaluate(places) == before, (person, column, key)


@opened_at("hard=5.1.5.1")
def test_every_control_has_a_name(page):
    """As Chromium tells it to a screen reader; also the graph, and what unlocks."""
    devtools = page.context.new_cdp_session(page)
    for number in range(1, 6):
        step(page, number)
        nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
        roles = ("button", "radio", "slider", "image", "combobox")
        controls = [node for node in nodes if node["role"]["value"] in roles]
        seen = page.evaluate(
            """() => [...document.querySelectorAll("input, button, select, svg")]
              .filter((own) => own.getClientRects().length).length"""
        )
        assert len(controls) == seen
        for node in controls:
            assert node["name"]["value"].strip(" ◀▶"), node


def test_what_changes_is_announced(page):
    step(page, 2)
    click(page, "score-0", "5")
    announced = page.locator('[role="status"]').inner_text()
    assert page.locator("#enough").inner_text() in announced
    assert page.locator("#headline").inner_text() in announced


@opened_at("hard=1.2.5.5")
@pytest.mark.parametrize("size", SIZES)
def test_targets_are_24_pixels(page, size):
    """WCAG 2.2, 2.5.8: whatever can be pressed, in both directions."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for number in range(1, 6):
        step(page, number)
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, select, summary, input")]
              .map((own) => own.type === "radio" ? own.parentElement : own)
              .filter((own) => own.getClientRects().length)
              .map((own) => [own.innerText, own.getBoundingClientRect()])
              .filter(([, { width, height }]) => Math.min(width, height) < 23.99)"""
        )
        assert not small, (number, small)


@opened_at("hard=5.1.5.1")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing(page, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme)
    for number in range(1, 6):
        step(page, number)
        assert axe.run(page).violations_count == 0, number


@opened_at("step=3&answer=plan0")
def test_chosen_colours_are_kept(page):
    """Forced colours: what is set, what follows and what is checked still differ."""
    page.emulate_media(forced_colors="active")
    circle = "own => { const s = getComputedStyle(own); return [s.stroke, s.strokeWidth] }"
    kinds = [
        page.locator(f"#graph {kind} circle").first.evaluate(circle)
        for kind in (".acted", ".follows", "g:not(.acted, .follows)")
    ]
    assert len({tuple(kind) for kind in kinds}) == 3
    step(page, 2)
    colour = "own => getComputedStyle(own).backgroundColor"
    stem, rail = (
        page.locator(f".lane .{part}").first.evaluate(colour) for part in ("stem", "rail")
    )
    assert stem != rail
    checked, other = (
        page.locator(f"[name=score-0]{which} + span").first.evaluate(colour)
        for which in (":checked", ":not(:checked)")
    )
    assert checked != other


def luminance(colour: str) -> float:
    """Return the relative luminance of rgb(r, g, b), by WCAG 2."""
    assert colour.startswith("rgb("), colour
    shares = [int(channel) / 255 for channel in re.findall(r"\d+", colour)]
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
            colours += [
                entry["value"] for entry in style if entry["name"] == "background-color"
            ]
    return colours


@opened_at("answer=plan0")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    """WCAG 2, 1.4.3 and 1.4.11: of text at least 4.5, of lines and shapes at least 3."""
    page.emulate_media(color_scheme=scheme)
    n_lit = n_cut = 0
    for number in range(1, 6):
        step(page, number)
        painted = page.evaluate(PAINTED)
        for what, colour, behind in painted["texts"]:
            assert contrast(colour, behind) >= 4.5, (number, what, colour, behind)
        for what, colour, behind in painted["shapes"]:
            assert contrast(colour, behind) >= 3, (number, what, colour, behind)
        n_lit += page.locator("line.lit").count()
        n_cut += page.locator("line.cut").count()
    assert n_lit > 0 and n_cut > 0  # each kind of arrow was seen
    step(page, 1)
    paper = page.locator("#page").evaluate("own => getComputedStyle(own).backgroundColor")
    rails = rails_of(page)
    assert len(rails) == 11
    for rail in rails:
        assert contrast(rail, paper) >= 3, (rail, paper)


def test_the_graph_can_be_read(page):
    for person in range(1, 9):
        go(page, f"step=3&answer=plan0&person={person}")
        for width in (390, 800, 1600):
            page.set_viewport_size({"width": width, "height": 900})
            seen = page.evaluate(GRAPH)
            assert seen["size"] >= 11, (person, width)
            assert not seen["crowded"], (person, width, seen["crowded"])


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
    jupyter_folders = {name: str(tmp_path / name) for name in folders}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command,
            env=os.environ | jupyter_folders | {"PYTHONPATH": str(ROOT)},
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
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(lab)
    kernel = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"
    page.wait_for_function(f"{kernel}?.status === 'idle'", timeout=60_000)
    page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.wait_for_selector(".applicant[data-settled=yes]", timeout=60_000)
    page.locator('[data-to="2"]').click()
    assert "smaller loan" in page.locator("#headline").inner_text()
    page.locator('label:has(input[name="score-0"][value="5"])').click()
    page.wait_for_selector(".applicant[data-settled=yes]")
    assert "smaller loan" not in page.locator("#headline").inner_text()
    assert "person" not in page.url  # the address is the lab's own
    page.close()
    assert not errors
