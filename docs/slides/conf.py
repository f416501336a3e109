"""Settings of the lecture: one file of slides, figures as the notebooks left them."""

from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

project = "Recourse for this person"
author = "the maintainers of this companion"
root_doc = "index"
extensions = ["myst_parser", "sphinx_revealjs", "sphinx.ext.mathjax"]
include_patterns = ["index.md"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
mathjax_path = "tex-svg.js"  # the book's, so that formulas need no network

revealjs_static_path = ["slides.css", "../book/mathjax"]
revealjs_css_files = ["slides.css"]
revealjs_style_theme = "white"
revealjs_script_conf = {
    "controlsLayout": "edges",  # not over the text
    "width": 1280,
    "height": 720,
    "margin": 0.02,
    "center": False,
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    "totalTime": 45 * 60,
    "pdfSeparateFragments": False,  # a page a slide
}
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]


def with_applicant(app: Any, error: Exception | None) -> None:
    """Lay the applicant beside the slides, without what leaves no space for the answers.

    Keys that she does not need herself move the slides.
    """
    if error is None:
        page = (HERE.parents[1] / "page" / "applicant.html").read_text(encoding="utf-8")
        style = (HERE / "applicant.css").read_text(encoding="utf-8")
        static = Path(app.outdir) / "_static"
        static.mkdir(exist_ok=True)
        keys = (HERE / "applicant.js").read_text(encoding="utf-8")
        inside = f"<style>\n{style}</style>\n<script>\n{keys}</script>\n</head>"
        shown = page.replace("</head>", inside, 1)
        (static / "applicant.html").write_text(shown, encoding="utf-8")


def setup(app: Any) -> None:
    """Register it."""
    app.connect("build-finished", with_applicant)
