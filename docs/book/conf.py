"""Settings of the book: the committed notebooks, as they are, and pages around them."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "page"
MADE = HERE.parents[1] / "runs" / "book" / "static"  # what is made here for the book
sys.path.insert(0, str(HERE))

import contents  # noqa: E402

project = "Recourse for this person"
author = "the maintainers of this companion"
html_title = project
root_doc = "docs/book/index"
extensions = ["myst_nb", "sphinx_design", "sphinx.ext.napoleon", "autoapi.extension"]

# The source is the whole repository, so that notebooks stay where they are.
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/book/*.md",
    "*/README.md",
    "notebooks/*.ipynb",
]
include_patterns += ["exercises/*.ipynb", "exercises/solutions/*.ipynb"]
include_patterns += ["lib/search/README.md", "lib/beyond/*/README.md"]
include_patterns += ["runs/book/autoapi/**"]
exclude_patterns = [".*", "docs/slides", "runs/[!b]*", "runs/book/[!a]*"]

# The method, from its docstrings; nothing is imported.
autoapi_dirs = ["lib"]
autoapi_root = "runs/book/autoapi"
autoapi_keep_files = True
autoapi_file_patterns = ["*.py"]
autoapi_ignore = [f"*/lib/{folder}/*" for folder in ("paper", "beyond")]
autoapi_options = ["members", "show-module-summary"]
autoapi_add_toctree_entry = False
autoapi_member_order = "bysource"
napoleon_custom_sections = ["Source"]
default_role = "code"
highlight_language = "text"
suppress_warnings = ["autoapi.python_import_resolution"]

nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}  # would be fetched
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {
    "cards": contents.cards(),
    "exercises": contents.exercises(),
}

html_use_index = False
html_theme = "sphinx_book_theme"
html_theme_options = {
    "show_navbar_depth": 1,
    "show_toc_level": 1,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
}
html_context = {"default_mode": "auto"}
html_static_path = ["static", "mathjax", str(MADE)]
html_css_files = ["book.css"]
html_js_files = ["accessible.js"]
html_copy_source = True
mathjax_path = "tex-svg.js"


# Where the applicant stands, and what she has said there: on the front page in place of a
# comment, in a notebook at its end.
LIVE = {
    root_doc: "",
    "notebooks/00_start_here": "",
    "notebooks/01_data_and_scm": "step=4",
    "notebooks/04_hard_constraints": "step=2",
    "notebooks/08_exact_and_unlocked": "step=5&hard=5.5.1.5",
}
# Reports whose tables need the space of the contents at the right
WIDE = ("docs/hare_tables", "docs/print_read_backwards")
PLACE = "<!-- the applicant -->"
TRY = f"<section><h2>Try it: you are the applicant</h2>{PLACE}</section>"


def applicant(address: str) -> str:
    """Return page/applicant.html as an element of another page.

    It stands in a shadow root, out of reach of the theme's styles, and takes light or dark
    from the element around it.

    Arguments:
        address: What the person has answered, as in the page's address.
    """
    text = (PAGE / "applicant.html").read_text(encoding="utf-8")
    sections = re.search(
        r"(<style>.*?)</style>.*?<body>\s*(<main.*?</main>)(.*)</body>", text, re.DOTALL
    )
    place, how = 'document.getElementById("page")', "{ hasAddress: true }"
    if sections is None or place not in sections[3] or how not in sections[3]:
        raise ValueError(
            f"page/applicant.html has no <style>, <main>, {place} or {how}: expected each. "
            "If the page was rebuilt in another form, change docs/book/conf.py with it."
        )
    style, main, scripts = sections.groups()
    main = main.replace("main", "div")  # the page around it has one
    style += ".applicant { color-scheme: inherit; background: none; }</style>"
    inside = 'document.getElementById("applicant").shadowRoot.getElementById("page")'
    shadow = f'<template shadowrootmode="open">{style}{main}</template>'
    scripts = scripts.replace(place, inside).replace(how, f'{{ hash: "{address}" }}')
    return f'<div id="applicant">{shadow}</div>{scripts}'


TEXTS: dict[str, str] = {}  # of pages, for excerpts where a browser may not read others


def with_what_is_alive(
    app: Any, page: str, template: str, context: dict, tree: Any
) -> None:
    """Put the applicant where `LIVE` says, and scripts where they have work to do."""
    body = context.get("body", "")
    TEXTS[page] = re.sub(r"<[^>]*>", " ", body)
    if page in WIDE:
        context["meta"] = {**context["meta"], "html_theme.sidebar_secondary.remove": ""}
    if page in LIVE:
        body = body if PLACE in body else body + TRY
        context["body"] = body.replace(PLACE, applicant(LIVE[page]))
    if page.startswith("exercises/") and "solutions" not in page:
        app.add_js_file("answers.js")
        app.add_js_file("check.js")
    if page == "search":
        app.add_js_file("excerpts.js")


def as_restructured(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Write a docstring as napoleon reads it: headings alone, asterisks as they are.

    That of lib is followed by all public names.
    """
    text = "\n".join(lines)
    text = re.sub(
        r"^Raises: (.+(?:\n    .+)*)",
        lambda match: "\nRaises:\n    " + " ".join(match[1].split()),
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"^(Returns|Source): (.+)", r"\n\1:\n    \2", text, flags=re.MULTILINE)
    text = re.sub(
        r"^(?! *(?:>>>|\.\.\.)).*",
        lambda match: re.sub(r"(?<=\S)\*|\*(?=\S)", r"\\*", match[0]),
        text,
        flags=re.MULTILINE,
    )
    if name == "lib":
        text += f"\n\n{contents.names()}"
    lines[:] = text.split("\n")


def prepared(app: Any, page: str, source: list[str]) -> None:
    """Prepare a page for the book.

    README loses its line of links to GitHub's own pages. In a notebook code is folded, so
    that text and figures are what one sees first; a figure says what it shows; and where
    the notebook shows the applicant's widget stands the page itself.
    """
    if page == "README":
        source[0] = re.sub(r"^.*\]\(\.\./\.\./.*\n", "", source[0], flags=re.MULTILINE)
    if not page.startswith("notebooks/"):
        return
    notebook = json.loads(source[0])
    cells, heading = [], ""
    for cell in notebook["cells"]:
        code = "".join(cell["source"])
        cells.append(cell)
        if cell["cell_type"] != "code":
            heading = (re.findall(r"^#+ (.+)", code, re.MULTILINE) or [heading])[-1]
            continue
        tags = cell["metadata"].setdefault("tags", [])
        cell["metadata"]["tags"] = [*tags, "hide-input"]
        text = contents.figure_text(code) or f"Figure of the section {heading}"
        cell["metadata"]["mystnb"] = {"image": {"alt": text}}
        if code.strip() == "applicant.show()":
            cell["outputs"] = []
            place = {"cell_type": "markdown", "metadata": {}, "source": PLACE}
            cells.append({"id": "applicant", **place})
    notebook["cells"] = cells
    source[0] = json.dumps(notebook)


def finished(app: Any, error: Exception | None) -> None:
    """Let index.html open the front page; lay the page and the texts beside the book."""
    if error is None:
        out = Path(app.outdir)
        to = f"{root_doc}.html"
        leads_on = f'<!doctype html><title>{project}</title><meta http-equiv="refresh"'
        (out / "index.html").write_text(f'{leads_on} content="0; url={to}">\n')
        (out / "page").mkdir(exist_ok=True)
        for name in ("applicant.html", "applicant.png"):
            shutil.copy(PAGE / name, out / "page" / name)
        texts = json.dumps({f"{page}.html": text for page, text in TEXTS.items()})
        (out / "_static" / "texts.js").write_text(f"const TEXTS = {texts};\n")


# the answers that need no Python, as a script of the book
MADE.mkdir(parents=True, exist_ok=True)
keys = json.loads((HERE.parents[1] / "exercises" / "answers.json").read_text("utf-8"))
by_hand = {number: key for number, key in keys.items() if "is_function" not in key}
(MADE / "answers.js").write_text(f"const ANSWERS = {json.dumps(by_hand)};\n", "utf-8")


def setup(app: Any) -> None:
    """Register them."""
    app.connect("source-read", prepared)
    app.connect("autodoc-process-docstring", as_restructured, priority=400)
    app.connect("html-page-context", with_what_is_alive)
    app.connect("build-finished", finished)
