"""The page "you are the applicant", in one file or in a notebook.

Its parts are in the folder page; models, style and scripts are joined
here.
"""

import json
import os
import re
from functools import cache
from typing import Any

import anywidget
import traitlets
from IPython.display import Image, display

from lib.io import ROOT

PAGE = ROOT / "page"
PICTURE = PAGE / "applicant.png"
# What a notebook's front end asks of a module of a widget.
RENDER = """
export default {
  render({ model, el }) {
    const root = document.createElement("div");
    el.append(root);
    mount(root, model.get("data"));
  },
};
"""


@cache
def text_of(name: str) -> str:
    """Return one part of the page, by the name of its file."""
    return (PAGE / name).read_text(encoding="utf-8")


def script() -> str:
    """Return the page's two modules as one script without imports."""
    modules = (text_of("model.js"), text_of("app.js"))
    return "\n".join(re.sub(r"^import .*\n|^export ", "", s, flags=re.M) for s in modules)


def page() -> str:
    """Return the page as one self-contained text, which opens from disk.

    A browser does not load modules from disk, so everything is in it.
    """
    filled = text_of("index.html")
    for place, content in (
        ("/* font.css, style.css */", text_of("font.css") + text_of("style.css")),
        ("<!-- model.json -->", text_of("model.json").strip().replace("</", "<\\/")),
        ("/* model.js, app.js */", script()),
    ):
        filled = filled.replace(place, content)
    return filled


class Applicant(anywidget.AnyWidget):
    """The page as a widget, for JupyterLab."""

    _esm = script() + RENDER
    _css = text_of("font.css") + text_of("style.css")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, **given: Any) -> None:
        super().__init__(data=json.loads(text_of("model.json")), **given)


def show() -> None:
    """Show the page: as a widget to somebody in JupyterLab, else its picture.

    A notebook that is executed without a front end would keep a widget
    that nobody can draw.
    """
    is_watched = bool(os.environ.get("JPY_SESSION_NAME"))
    display(Applicant() if is_watched else Image(filename=str(PICTURE), width=900))
