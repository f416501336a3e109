"""Settings of the book: the committed notebooks, as they are, and pages around them."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import readme  # noqa: E402

project = "Recourse for this person"
author = "the authors of the iCARMA companion"
html_title = project
root_doc = "book/index"
extensions = ["myst_nb", "sphinx_design"]

# The source is the whole repository, so that notebooks stay where they are.
include_patterns = ["book/*.md", "*/README.md", "notebooks/*.ipynb"]
include_patterns += ["exercises/*.ipynb", "exercises/solutions/*.ipynb"]
exclude_patterns = [".*", "runs"]

nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}  # would be fetched
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {
    "cards": readme.cards(),
    "exercises": readme.exercises(),
    "quick_start": readme.section("Quick start"),
    "data": readme.section("The data of notebooks 07, 09, 10 and 11"),
    "change": readme.section("Run one, run all, change something"),
    "same_bits": readme.section("Same bits, and where they end"),
}

html_theme = "sphinx_book_theme"
html_theme_options = {
    "show_navbar_depth": 1,
    "show_toc_level": 1,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
}
html_context = {"default_mode": "auto"}
html_static_path = ["static", "mathjax"]
html_css_files = ["book.css"]
html_show_search_summary = False  # a browser reads no other page from disk
html_copy_source = True
mathjax_path = "tex-svg.js"


def applicant() -> str:
    """Return page/applicant.html as an element of another page.

    It stands in a shadow root, out of reach of the theme's styles, and takes light or dark
    from the element around it.
    """
    text = (HERE.parent / "page" / "applicant.html").read_text(encoding="utf-8")
    found = re.search(
        r"(<style>.*?)</style>.*?<body>\s*(<main.*?</main>)(.*)</body>", text, re.DOTALL
    )
    place = 'document.getElementById("page")'
    if found is None or place not in found[3]:
        raise ValueError(
            f"page/applicant.html has no <style>, <main> or {place}: expected each. If the "
            "page was rebuilt in another form, change book/conf.py with it."
        )
    style, main, scripts = found.groups()
    style += ".applicant { color-scheme: inherit; background: none; }</style>"
    inside = 'document.getElementById("applicant").shadowRoot.getElementById("page")'
    shadow = f'<template shadowrootmode="open">{style}{main}</template>'
    return f'<div id="applicant">{shadow}</div>{scripts.replace(place, inside)}'


def with_applicant(app: Any, page: str, template: str, context: dict, tree: Any) -> None:
    """Put the applicant where the front page says so."""
    if page == root_doc:
        body = context["body"]
        context["body"] = body.replace("<!-- the applicant -->", applicant())


def with_a_door(app: Any, error: Exception | None) -> None:
    """Let index.html of the output open the front page."""
    if error is None:
        to = f"{root_doc}.html"
        door = f'<!doctype html><title>{project}</title><meta http-equiv="refresh"'
        (Path(app.outdir) / "index.html").write_text(f'{door} content="0; url={to}">\n')


def setup(app: Any) -> None:
    """Register both."""
    app.connect("html-page-context", with_applicant)
    app.connect("build-finished", with_a_door)
