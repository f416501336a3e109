"""Time the page "you are the applicant" in Chromium: `.venv/bin/python benchmarks/page.py`.

Printed are milliseconds: from the event of a moved dot to the drawn page (the limit is 16
in the median, one frame), and what both searches take after a pause, the exact one and the
one over all values (the limit of the exact one is 200 in the worst case), for every
applicant with every feature open.
"""

import shutil
import sys

import numpy as np
from playwright.sync_api import sync_playwright

from lib.paper.pictures import applicant

MOVE = """async () => {
  const input = document.getElementById("track-5");
  const drawn = [];
  for (let i = 0; i < 60; i++) {
    input.value = Number(input.min) + (i / 60) * (input.max - input.min);
    const start = performance.now();
    input.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    drawn.push(performance.now() - start);
  }
  return drawn;
}"""
SETTLED = "#page[data-settled=yes]"


def main() -> None:
    """Print both times."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("There is no Chromium here: install it, then run this again.")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=browser, args=options)
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto((applicant.PAGE / "applicant.html").as_uri())
        page.wait_for_selector(SETTLED)
        drawn = page.evaluate(MOVE)
        page.locator("#back").click()
        searched = []
        for _ in range(page.evaluate("JSON.parse(data.textContent).applicants.shape[0]")):
            page.locator("#next").click()
            page.wait_for_selector(SETTLED)
            took = page.evaluate("Number(document.getElementById('page').dataset.searched)")
            searched.append(took)
        chromium.close()
    for what, times in (("event to drawn", drawn), ("both searches", searched)):
        median, worst = np.median(times), np.max(times)
        print(f"{what}: median {median:.1f} ms, worst {worst:.1f} ms, of {len(times)}")


if __name__ == "__main__":
    main()
