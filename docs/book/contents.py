"""What the book takes from docs/notebooks.md, so that it is written once."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "notebooks.md"


@dataclass(frozen=True)
class Row:
    """A row of the table of notebooks.

    Example:
        >>> rows()[0].name
        '00_start_here'
        >>> rows()[0].figure
        'figures/00_first_applicant.png'
    """

    name: str
    title: str
    claim: str
    figure: str
    minutes: str


def rows() -> list[Row]:
    """Return the notebooks in the table's order.

    Raises: ValueError: there is no table of notebooks.
    Example:
        >>> [row.title for row in rows()][:2]
        ['00 Start here', '01 Data and the SCM']
    """
    pattern = (
        r"^\| \[(?P<title>[^]]+)\]\(\.\./notebooks/(?P<name>\w+)\.ipynb\) "
        r"\| (?P<claim>.+?) "
        r"\| [^|]* \| \[[^]]*\]\(\.\./(?P<figure>[^)]+)\) \| (?P<minutes>\S+) \|$"
    )
    matches = re.finditer(pattern, TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    table = [Row(**one.groupdict()) for one in matches]
    if not table:
        raise ValueError(
            f"{TABLE.name} has no table of notebooks: expected rows | [title]"
            "(../notebooks/name.ipynb) | claim | paper | [figure](../path) | minutes |."
        )
    return table


def cards() -> str:
    """Return a grid of cards, claim first; a notebook like 06b stands on the card of 06.

    Example:
        >>> cards().count("grid-item-card") == sum(row.name[2] == "_" for row in rows())
        True
    """
    items = []
    for row in rows():
        link = f"[{row.title}](../../notebooks/{row.name}.ipynb)"
        if row.name[2] == "_":
            items.append(
                f"::::{{grid-item-card}}\n:img-top: ../../{row.figure}\n"
                f":img-alt: The figure of {row.title}\n:link: ../../notebooks/{row.name}\n"
                f":link-type: doc\n\n{row.claim}\n\n"
                f":::{{card-footer}}\n**{link}** · runs in {row.minutes} min\n:::\n::::"
            )
        else:
            items[-1] = items[-1].removesuffix(":::\n::::")
            items[-1] += f"\n{link} · runs in {row.minutes} min: {row.claim}\n:::\n::::"
    inside = "\n\n".join(items)
    options = ":gutter: 3\n:class-container: cards"
    return f":::::{{grid}} 1 1 2 3\n{options}\n\n{inside}\n\n:::::"


def exercises() -> str:
    """Return a list of the notebooks' exercises: to read, to fill in, and solved.

    Example:
        >>> exercises().splitlines()[0].split(" (")[0]
        '- [00 Start here](../../exercises/00_start_here.ipynb)'
    """
    lines = []
    for row in rows():
        unsolved = f"../../exercises/{row.name}.ipynb"
        solved = f"../../exercises/solutions/{row.name}.ipynb"
        download = f"{{download}}`the file <{unsolved}>`"
        lines.append(f"- [{row.title}]({unsolved}) ({download}, [solved]({solved}))")
    return "\n".join(lines)
