"""How long the page takes from an event to the paint that shows it.

    .venv/bin/python benchmarks/page.py [applicants, 20 if left out]

A reader answers, drags and clicks through all steps, in Chromium; the browser itself times
each event until the next paint (Event Timing), in steps of 8 ms; 50 ms at the 95th
percentile are asked for. Searches run between events, and their whole time is told, too.
The result is benchmarks/page.csv.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd
from playwright.sync_api import Page, sync_playwright

from lib.io import ROOT

PATH = Path(__file__).with_suffix(".csv")
FILE = ROOT / "page" / "applicant.html"
SIZES = {"telephone": (390, 844), "screen": (1280, 720)}
WATCH = """() => {
  window.seen = [];
  new PerformanceObserver((list) => {
    for (const own of list.getEntries()) {
      if (own.interactionId || own.name === "input") seen.push([own.name, own.duration]);
    }
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
}"""
KEYS = ("ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft")


def read(page: Page, n_people: int) -> tuple[int, list[float]]:
    """Do what a reader does for so many applicants.

    Returns: How many events that were, and the milliseconds of all searches for each
        applicant.
    """
    n, searched = 0, []
    for _ in range(n_people):
        page.locator('[data-to="1"]').click()
        page.locator("#be-5").focus()
        for key in KEYS:
            page.keyboard.press(key)
        page.locator('[data-to="2"]').click()
        for k, score in ((0, 4), (1, 5), (1, 2), (0, 1)):
            page.locator(f'label:has([name="score-{k}"][value="{score}"])').click()
        page.wait_for_selector("[data-settled=yes]")
        took = page.evaluate("Number(document.getElementById('page').dataset.searched)")
        searched.append(took)
        page.locator('[data-to="3"]').click()
        for whose in ("plan0", "grid", "instant"):
            page.locator(f".answer.{whose}").click()
        page.locator('[data-to="4"]').click()
        page.locator("#do-5").focus()
        for key in KEYS:
            page.keyboard.press(key)
        page.locator("#next").click()
        n += 4 + len(KEYS) * 2 + 4 + 3 + 1
    return n, searched


def main() -> None:
    """Measure both sizes, print and save."""
    n_people = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium is not installed.")
    rows = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        )
        for size, (width, height) in SIZES.items():
            page = chromium.new_page(viewport={"width": width, "height": height})
            page.goto(FILE.as_uri())
            page.wait_for_selector("[data-settled=yes]")
            page.evaluate(WATCH)
            n, searched = read(page, n_people)
            page.wait_for_timeout(300)
            slow = pd.Series([took for _, took in page.evaluate("seen")], dtype=float)
            # what took less than 16 ms is not reported
            all_of_them = pd.concat([slow, pd.Series([16.0] * max(n - len(slow), 0))])
            row = {"size": size, "events": n, "median_ms": all_of_them.median()}
            row |= {"p95_ms": all_of_them.quantile(0.95), "worst_ms": all_of_them.max()}
            row["searches_median_ms"] = round(float(pd.Series(searched).median()), 1)
            rows.append(row)
    table = pd.DataFrame(rows)
    table.to_csv(PATH, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
