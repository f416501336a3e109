"""Drawings: causal graphs, one person's action, how networks recommend."""

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lib.method.graph import Graph
from lib.paper.pictures.look import COLOURS, readable

INK = "#333333"
EDGE: dict[str, Any] = {"edgecolor": INK, "linewidth": 0.8}
# where the features of Loan stand in the unit square
LOAN_PLACES = {
    "gender": (0.07, 0.72),
    "age": (0.07, 0.28),
    "education": (0.34, 0.10),
    "loan_amount": (0.36, 0.90),
    "loan_duration": (0.74, 0.80),
    "income": (0.62, 0.30),
    "savings": (0.92, 0.30),
}
CREDIT_PLACES = {  # of Give Me Some Credit
    "age": (0.14, 0.9),
    "dependents": (0.05, 0.6),
    "income": (0.42, 0.9),
    "utilization": (0.9, 0.66),
    "credit_lines": (0.36, 0.5),
    "real_estate_loans": (0.64, 0.5),
    "debt_ratio": (0.14, 0.14),
    "late_30_to_59": (0.42, 0.14),
    "late_60_to_89": (0.66, 0.14),
    "late_90": (0.9, 0.14),
}
# a feature, and the arrows to it, by what happens to it
NODES: dict[str, dict[str, Any]] = {
    "acted on": {"facecolor": COLOURS["icarma"], "edgecolor": INK},
    "follows": {"facecolor": "#F5CE85", "edgecolor": INK},
    "forbidden": {"facecolor": "white"},
    "stays": {"facecolor": "#F2F2F2", "edgecolor": "#888888"},
}
CLOSED = {"edgecolor": "#B2187A", "linestyle": "--"}
NUMBERS = {"acted on": COLOURS["icarma"], "follows": "#8A5A00"}
PATHS: dict[str, dict[str, Any]] = {
    "follows": {"color": "#C98500", "lw": 2.0},
    "cut": {"color": "#BBBBBB", "lw": 0.9, "ls": ":"},
    "stays": {"color": "#999999", "lw": 0.9},
}
HEAD: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "zorder": 2}
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5}
BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind a text


def box(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    colour: str,
    width: float,
    height: float = 0.15,
    edge: str = INK,
    zorder: float = 3,
) -> None:
    """Draw a rounded box with a text, centred at (x, y)."""
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.012",
            fc=colour,
            ec=edge,
            lw=0.8,
            zorder=zorder,
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=9, zorder=4)


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    bend: float = 0.0,
    shrink: float = 0.0,
    colour: str = INK,
    style: str = "-",
) -> None:
    """Draw an arrow that stops the given number of points short of both ends."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=10,
            lw=1,
            color=colour,
            linestyle=style,
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
    """
    for name, (x, y) in at.items():
        ax.scatter(
            x, y, s=2_900, color=COLOURS[kinds[name]], zorder=3, clip_on=False, **EDGE
        )
        words = readable(name).replace(" ", "\n")  # a word a line
        ax.text(x, y, words, ha="center", va="center", fontsize=9, zorder=4)
    for child, causes in graph.parents.items():
        for cause in causes:
            arrow(ax, at[cause], at[child], shrink=28)
    for kind in ("actionable", "mutable", "immutable"):
        ax.scatter([], [], marker="s", s=60, label=kind, color=COLOURS[kind], **EDGE)
    ax.legend(loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.13))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def action_on_graph(
    ax: Axes,
    graph: Graph,
    at: Mapping[str, tuple[float, float]],
    moves: Mapping[str, str],
    is_acted: Collection[str],
    forbidden: Collection[str] = (),
) -> Axes:
    """Draw one person's action and what follows from it; return the axes.

    A feature that is acted on is blue; the arrows into it are dotted,
    since its causes no longer decide it. A feature that moves as a
    consequence is amber, as are the arrows by which it was reached.
    Beside both stands how they move. What the person can't act on has
    a dashed rim, and may follow all the same.

    Arguments:
        graph: Who causes whom.
        at: Where each feature stands in the unit square, for instance
            `LOAN_PLACES`.
        moves: How each feature moves that does, as `report.changes`
            gives it; what stands there in brackets is left out.
        is_acted: Names of the features acted on.
        forbidden: Names of those that the person can't act on.
    """
    for name, causes in graph.parents.items():
        if name in is_acted:
            kind = "acted on"
        elif name in moves:
            kind = "follows"
        else:
            kind = "forbidden" if name in forbidden else "stays"
        node = NODES[kind] | (CLOSED if name in forbidden else {})
        x, y = at[name]
        ax.scatter(x, y, s=2_150, linewidth=1.1, zorder=3, **node)
        ink = "white" if name in is_acted else "black"
        ax.text(x, y, readable(name).replace(" ", "\n"), color=ink, **CENTRED)
        if name in moves:
            how = moves[name].split(" (")[0].replace("->", "→").replace("-", "−")
            bold: dict[str, Any] = {"color": NUMBERS[kind], "weight": "bold"}
            below = y < 0.85  # above the topmost, where no arrows are
            y = y - 0.165 if below else y + 0.165
            ax.text(x, y, how, bbox=BLANK, **bold, **CENTRED)
        for cause in causes:
            path = "cut" if name in is_acted else "follows" if cause in moves else "stays"
            look = PATHS[path] | {"shrinkA": 24.5, "shrinkB": 24.5}
            ax.add_patch(FancyArrowPatch(at[cause], at[name], **look, **HEAD))
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.09, 1.1))
    ax.axis("off")
    return ax


def decision_slice(
    ax: Axes,
    accepts: Callable[[np.ndarray], np.ndarray],
    low: tuple[float, float],
    high: tuple[float, float],
    now: tuple[float, float],
    moves: Mapping[str, tuple[float, float]],
) -> Axes:
    """Draw decisions over two features, and a person's moves among them; return the axes.

    Where the person would be accepted the ground is green, elsewhere
    pink. Each move is an arrow in the colour of its name, from where
    the person stands now.

    Arguments:
        accepts: Says of points (N, 2) whether each is accepted, with
            shape (N,), bool. All other features are as this person's.
        low, high: Lower left and upper right corner of what is drawn.
        now: Where the person stands.
        moves: Where each move ends, by a name of `COLOURS`.
    """
    across, up = np.meshgrid(*np.linspace(low, high, 200).T)
    accepted = accepts(np.stack([across.ravel(), up.ravel()], -1))
    ground = [COLOURS["refused"], COLOURS["accepted"]]
    levels: dict[str, Any] = {"levels": [-0.5, 0.5, 1.5], "colors": ground, "alpha": 0.22}
    ax.contourf(across, up, accepted.reshape(across.shape).astype(float), **levels)
    for name, end in moves.items():
        look: dict[str, Any] = {"color": COLOURS[name], "lw": 2, "shrinkA": 0, "shrinkB": 0}
        ax.add_patch(FancyArrowPatch(now, end, **look, **HEAD))
        ax.scatter(*end, s=16, color=COLOURS[name], zorder=4)
    ax.scatter(*now, s=30, color="black", zorder=5)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.grid(visible=False)
    return ax


def architecture(ax: Axes) -> Axes:
    """Draw how iCARMA recommends and learns; return the axes.

    It is the paper's Fig. 1, drawn from its text. What iCARMA adds to
    CARMA is in the colour of `COLOURS["added"]`; dashed arrows are ours.
    """
    added, pale = COLOURS["added"], "#F8DDCB"
    grey, blue, green = "#EDEDED", "#CFE3F3", "#CDEBDF"
    forward = (
        (0.05, "person $x$\n(N, 7)", "white", 0.08),
        (0.185, "flow: abduct\n$z = T(x)$", green, 0.12),
        (0.345, "mask network\n$q$ (N, 4)", blue, 0.12),
        (0.505, "mask\n$m_j = 0$ if $j \\notin A_u$", pale, 0.13),
        (0.67, "action network\n$a$ (N, 4)", blue, 0.12),
        (0.825, "flow: predict\n$do(x_I = a)$", green, 0.12),
        (0.955, "$x^{CF}$\n(N, 7)", "white", 0.07),
    )
    says = (
        (0.21, "weights\n$w(s)$"),
        (0.31, "priors\n$p(s)$"),
        (0.41, "difficulty\n$\\eta(s)$"),
        (0.51, "can do\n$A_u$"),
    )
    loss = (
        (0.21, "cost\n(weighted)", grey),
        (0.37, "mask against\nprior", grey),
        (0.53, "hinge:\nvalid?", grey),
        (0.69, "plausibility:\n$-\\log p$", pale),
        (0.86, "feasibility:\nin range?", pale),
    )
    for x, text, colour, width in forward:
        box(ax, x, 0.86, text, colour, width, 0.17, added if colour == pale else INK)
    box(ax, 0.30, 0.48, "", "white", 0.56, 0.23, added, zorder=1)
    ax.text(0.085, 0.48, "this person\nsays: $s$", ha="center", va="center", fontsize=9)
    for x, text in says:
        box(ax, x, 0.48, text, pale, 0.07, 0.15, added)
    ax.text(0.05, 0.11, "the loss:", ha="center", va="center", fontsize=9)
    for x, text, colour in loss:
        box(ax, x, 0.11, text, colour, 0.125, 0.15, added if colour == pale else INK)
    for (left, _, _, wide), (right, _, _, width) in pairwise(forward):
        arrow(ax, (left + wide / 2 + 0.012, 0.86), (right - width / 2 - 0.012, 0.86))
    for start, end, style in (
        ((0.40, 0.57), (0.33, 0.75), "--"),
        ((0.42, 0.57), (0.635, 0.75), "--"),
        ((0.495, 0.57), (0.36, 0.75), "-"),
        ((0.51, 0.57), (0.51, 0.75), "-"),
        ((0.525, 0.57), (0.665, 0.75), "-"),
        ((0.21, 0.39), (0.21, 0.21), "-"),
        ((0.31, 0.39), (0.36, 0.21), "-"),
    ):
        arrow(ax, start, end, colour=added, style=style)
    judged = "judged by the classifier $h$, the\ndensity $p$ and the range of the data"
    ax.text(0.825, 0.48, judged, ha="center", va="center", fontsize=9)
    arrow(ax, (0.185, 0.96), (0.66, 0.96), bend=-0.08)  # z goes into both networks
    arrow(ax, (0.05, 0.96), (0.69, 0.96), bend=-0.12, style="--")
    arrow(ax, (0.955, 0.75), (0.90, 0.55))
    for left, right in ((0.74, 0.55), (0.79, 0.70), (0.84, 0.86)):
        arrow(ax, (left, 0.41), (right, 0.21))
    ax.set(xlim=(-0.01, 1.01), ylim=(0, 1.10))
    ax.axis("off")
    return ax
