"""Settings of the lecture: one file of slides, figures as the notebooks left them."""

project = "Recourse for this person"
author = "the authors of the iCARMA companion"
root_doc = "index"
extensions = ["myst_parser", "sphinx_revealjs"]
include_patterns = ["index.md"]
myst_enable_extensions = ["colon_fence"]

revealjs_static_path = ["slides.css", "../page/applicant.html"]
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
}
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]
