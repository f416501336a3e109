"""What the book takes from elsewhere, so that it is written once: the table of notebooks,
the texts of figures, the names and docstrings of lib."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "notebooks.md"
TEXTS = yaml.safe_load((ROOT / "docs/book/figures.yaml").read_text(encoding="utf-8"))
# Folders of lib with pages of their own, those without a folder last
PACKAGES = ("method", "search", "")


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
            text = TEXTS.get(Path(row.figure).stem, f"The figure of {row.title}")
            items.append(
                f"::::{{grid-item-card}}\n:img-top: ../../{row.figure}\n"
                f":img-alt: {text}\n:link: ../../notebooks/{row.name}\n"
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


def figure_text(source: str) -> str | None:
    """Return what the figure shows that a cell saves, or None where nothing is known of it.

    Arguments:
        source: The code of the cell.
    Example:
        >>> figure_text('plots.save(figure, folder, "01_graph")')[:24]
        'The causal graph of Loan'
        >>> figure_text("1 + 1") is None
        True
    """
    names = re.findall(r'"(\d\d_\w+)"', source)
    return next((TEXTS[name] for name in reversed(names) if name in TEXTS), None)


def public(path: Path) -> dict[str, str]:
    """Return the public functions and classes of a module, with what each is.

    Arguments:
        path: The module's file.
    Returns: Names to the first sentence of their docstrings.
    """
    named = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    ours = [one for one in body if isinstance(one, named) and one.name[0] != "_"]
    return {one.name: first_sentence(ast.get_docstring(one) or "") for one in ours}


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring.

    Example:
        >>> first_sentence("Return this (N, D).\\nIt is new.")
        'Return this (N, D).'
    """
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph)[0]


def names() -> str:
    """Return every public name of lib in reStructuredText: what `import lib` offers, then
    the functions and classes of each module that has a page."""
    source = (ROOT / "lib" / "__init__.py").read_text(encoding="utf-8")
    offered = re.findall(r'^    "(\w+)": "(lib[.\w]+)",$', source, re.MULTILINE)
    lines = [".. rubric:: Names that lib offers", "", ".. list-table::", "   :class: names"]
    lines += ["   :widths: 30 70", ""]
    for name, module in offered:
        path = (ROOT / module.replace(".", "/")).with_suffix(".py")
        lines += [f"   * - :py:obj:`{name} <{module}.{name}>`"]
        lines += [f"     - {public(path)[name]}"]
    lines += ["", ".. rubric:: All public names, by module", ""]
    lines += [".. list-table::", "   :class: names", "   :widths: 30 70", ""]
    # in the order in which the docstring of lib says to read them
    order = re.findall(r"^    (\w+)  +\w", source, re.MULTILINE)
    for package in PACKAGES:
        paths = sorted((ROOT / "lib" / package).glob("[a-z]*.py"))
        for path in sorted(paths, key=lambda path: [*order, path.stem].index(path.stem)):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            links = [f":py:obj:`{name} <{module}.{name}>`" for name in public(path)]
            if links:
                lines += [f"   * - :py:mod:`{module}`", f"     - {', '.join(links)}"]
    return "\n".join(lines)
