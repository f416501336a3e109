"""Write the letters of the page, as page/font.css.

They are those that it needs of DejaVu Sans, which comes with matplotlib and may be passed
on. So text has the same width on every machine.

Run from the root of the repository: .venv/bin/python page/fonts.py
"""

import base64
import io
from pathlib import Path

import matplotlib
from fontTools import subset
from fontTools.ttLib import TTFont

FOLDER = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
LETTERS = "".join(map(chr, range(32, 127))) + "\u00a0→↑↓↕◀▶…−–"
STYLE = Path(__file__).resolve().parent / "font.css"


def text() -> str:
    """Return the page's letters, plain and bold, as rules of a style sheet."""
    rules = []
    for name, weight in (("DejaVuSans", "normal"), ("DejaVuSans-Bold", "bold")):
        font = TTFont(FOLDER / f"{name}.ttf", recalcTimestamp=False)
        options = subset.Options(layout_features=[], hinting=False, name_IDs=["*"])
        cut = subset.Subsetter(options)
        cut.populate(text=LETTERS)
        cut.subset(font)
        font.flavor = "woff"
        held = io.BytesIO()
        font.save(held)
        data = base64.b64encode(held.getvalue()).decode()
        rules.append(
            f'@font-face {{\n  font-family: "Applicant";\n  font-weight: {weight};\n'
            f"  src: url(data:font/woff;base64,{data});\n}}\n"
        )
    return "".join(rules)


if __name__ == "__main__":
    STYLE.write_text(text(), encoding="utf-8")
    print(f"{STYLE.name}: {STYLE.stat().st_size / 1000:.0f} kB")
