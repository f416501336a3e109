"""Put the page into one file, and take its picture.

page/applicant.html opens from disk. page/applicant.png is what a notebook shows where no
kernel runs; it is taken with playwright and Chromium, and left as it is without them.

Run from the root of the repository: .venv/bin/python page/build.py
"""

import shutil

from playwright.sync_api import sync_playwright

from lib.paper.pictures import applicant

FILE = applicant.PAGE / "applicant.html"
SHOWN = "step=3"  # in its picture


def take_picture(browser: str) -> None:
    """Save what the page shows of the first applicant's answers as a picture."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser,
            args=["--no-sandbox", "--disable-background-networking"],
        )
        view = chromium.new_page(
            viewport={"width": 1280, "height": 720}, color_scheme="light"
        )
        view.goto(f"{FILE.as_uri()}#{SHOWN}")
        view.wait_for_selector('[data-settled="yes"]')
        view.screenshot(path=applicant.PICTURE)
        chromium.close()


if __name__ == "__main__":
    FILE.write_text(applicant.page(), encoding="utf-8")
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser:
        take_picture(browser)
    else:
        print(f"There is no Chromium, so that {applicant.PICTURE.name} stays as it was.")
