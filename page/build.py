"""Put the page "you are the applicant" into one file that opens from disk.

A browser does not load modules from disk, so everything is written
into page/applicant.html: style, models and scripts.

Run from the root of the repository: .venv/bin/python page/build.py
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "applicant.html"
MOST_BYTES = 300_000


def page() -> str:
    """Return the page as one self-contained text.

    Raises: ValueError: a place to fill is missing, or the page is too
        large.
    Example:
        >>> page()[:15]
        '<!doctype html>'
    """
    scripts = [(HERE / name).read_text(encoding="utf-8") for name in ("model.js", "app.js")]
    module = "\n".join(re.sub(r"^import .*\n|^export ", "", s, flags=re.M) for s in scripts)
    numbers = (HERE / "model.json").read_text(encoding="utf-8").strip()
    style = (HERE / "style.css").read_text(encoding="utf-8")
    filled = (HERE / "index.html").read_text(encoding="utf-8")
    for place, part in (
        ("/* style.css */", style),
        ("<!-- model.json -->", numbers.replace("</", "<\\/")),
        ("/* model.js, app.js */", module),
    ):
        if place not in filled:
            raise ValueError(f"index.html has no place {place!r}: expected one.")
        filled = filled.replace(place, part)
    n_bytes = len(filled.encode())
    if n_bytes > MOST_BYTES:
        raise ValueError(f"The page is {n_bytes:,} bytes, expected {MOST_BYTES:,} at most.")
    return filled


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {PAGE.stat().st_size / 1000:.0f} kB")
