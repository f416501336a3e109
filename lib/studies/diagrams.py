"""Drawings: causal graphs, and how iCARMA recommends."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lib.base import checks
from lib.causal.graph import Graph
from lib.studies.look import COLOURS, readable

EDGE: dict[str, Any] = {"edgecolor": "#333333", "linewidth": 0.8}


def box(
    ax: Axes, x: float, y: float, text: str, colour: str, width: float, height: float = 0.15
) -> None:
    """Draw a rounded box with a text, centred at (x, y).

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> box(ax, 0.5, 0.5, "classifier", "white", width=0.2)
        >>> len(ax.patches), ax.texts[0].get_text()
        (1, 'classifier')
    """
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.012",
            fc=colour,
            ec="#333333",
            lw=0.8,
            zorder=3,
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=8, zorder=4)


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    bend: float = 0.0,
    shrink: float = 0.0,
) -> None:
    """Draw an arrow that stops the given number of points short of both ends.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> arrow(ax, (0.1, 0.1), (0.9, 0.9), shrink=25)
        >>> ax.patches[0].shrinkA
        25
    """
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=10,
            lw=1,
            color="#333333",
            shrinkA=shrink,
            shrinkB=shrink,
            connectionstyle=f"arc3,rad={bend}",
            zorder=2,
        )
    )


def causal_graph(
    ax: Axes, graph: Graph, kinds: Mapping[str, str], at: Mapping[str, tuple[float, float]]
) -> Axes:
    """Draw the graph, features coloured by what may be done about them; return the axes.

    Arguments:
        graph: Whose features and edges are drawn.
        kinds: Of each feature: "actionable", "mutable" or
            "immutable".
        at: Where each feature stands in the unit square.
    Raises: ValueError: a feature has no kind or no place, or a kind
        is unknown.

    Example:
        >>> from matplotlib.figure import Figure
        >>> graph = Graph({"age": (), "income": ("age",)})
        >>> kinds = {"age": "immutable", "income": "actionable"}
        >>> at = {"age": (0.2, 0.5), "income": (0.8, 0.5)}
        >>> ax = causal_graph(Figure().subplots(), graph, kinds, at)
        >>> [text.get_text() for text in ax.texts], len(ax.patches)  # an arrow an edge
        (['age', 'income'], 1)
    """
    for what, given in (("kind", kinds), ("place", at)):
        if missing := [name for name in graph.features if name not in given]:
            raise ValueError(f"There is no {what} for {', '.join(missing)}.")
    checks.known("place of a feature", at, graph.features)
    checks.known("kind of feature", kinds.values(), ("actionable", "mutable", "immutable"))
    for name, (x, y) in at.items():
        _feature(ax, x, y, name, COLOURS[kinds[name]])
    for child, causes in graph.parents.items():
        for cause in causes:
            arrow(ax, at[cause], at[child], shrink=25)
    for kind in ("actionable", "mutable", "immutable"):
        ax.scatter([], [], marker="s", s=60, label=kind, color=COLOURS[kind], **EDGE)
    ax.legend(loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.08))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def architecture(ax: Axes) -> Axes:
    """Draw how iCARMA recommends, the paper's Fig. 1 in our own drawing; return the axes.

    Example:
        >>> from matplotlib.figure import Figure
        >>> ax = architecture(Figure().subplots())
        >>> ax.texts[0].get_text()
        'factual $x$'
    """
    grey, blue, green = COLOURS["immutable"], COLOURS["actionable"], "#A6DCC9"
    box(ax, 0.07, 0.80, "factual $x$", "white", 0.11)
    box(ax, 0.26, 0.80, "flow: abduct\n$z = T(x)$", green, 0.14)
    box(ax, 0.07, 0.20, "scores $s$", "white", 0.11)
    box(ax, 0.26, 0.20, "mask of $A_u$,\nhardness $h(s)$", grey, 0.14)
    mask = "mask network\n$q_j = P(m_j = 1)$,\n$m_j = 0$ if $j \\notin A_u$"
    box(ax, 0.48, 0.50, mask, blue, 0.15, 0.2)
    box(ax, 0.69, 0.50, "action network\nvalues $a_j$", blue, 0.15)
    box(ax, 0.69, 0.14, "flow: predict\n$do(x_I = a)$", green, 0.15)
    box(ax, 0.91, 0.14, "counterfactual\n$x^{CF}$", "white", 0.13)
    for start, end in (
        ((0.14, 0.80), (0.18, 0.80)),
        ((0.14, 0.20), (0.18, 0.20)),
        ((0.34, 0.76), (0.42, 0.63)),
        ((0.34, 0.24), (0.42, 0.37)),
        ((0.57, 0.50), (0.60, 0.50)),
        ((0.69, 0.41), (0.69, 0.24)),
        ((0.78, 0.14), (0.83, 0.14)),
        ((0.34, 0.82), (0.66, 0.60)),
        ((0.34, 0.18), (0.66, 0.40)),
    ):
        arrow(ax, start, end)
    ax.text(0.585, 0.545, "$m$", ha="center", fontsize=9)
    judged = "judged by the\nclassifier $h$ and\nthe density $\\log p$"
    ax.text(0.91, 0.36, judged, ha="center", va="center", fontsize=7.5)
    arrow(ax, (0.91, 0.28), (0.91, 0.23))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def _feature(ax: Axes, x: float, y: float, name: str, colour: str) -> None:
    """Draw a feature as a disc with its name, a word a line."""
    ax.scatter(x, y, s=2_300, color=colour, zorder=3, **EDGE)
    words = readable(name).replace(" ", "\n")
    ax.text(x, y, words, ha="center", va="center", fontsize=7.5, zorder=4)
