"""The figures: each function draws on the axes it is given, and returns them.

First the look of all of them, then results, then drawings. Where
features stand, and the boxes and arrows of the two diagrams, are in
diagrams.yaml.
"""

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.text import Text

from lib import io
from lib.method.graph import Graph

# Okabe and Ito's colours, fixed by meaning
COLOURS = {
    "icarma": "#0072B2",
    "oracle": "#D55E00",
    "search": "#D55E00",
    "as printed": "#0072B2",
    "as chosen": "#009E73",
    "pruned": "#CC79A7",
    "constant": "#555555",
    "concave": "#E69F00",
    "linear": "#0072B2",
    "convex": "#009E73",
    "data": "#555555",
    "flow": "#009E73",
    "truth": "#E69F00",
    "changed number": "#555555",
    "action": "#E69F00",
    "misled": "#CC79A7",
    "accepted": "#009E73",
    "refused": "#CC79A7",
    "added": "#D55E00",
    "actionable": "#56B4E9",
    "mutable": "#F0E442",
    "immutable": "#BBBBBB",
}
# of up to four groups of people, in the order in which they are drawn
GROUPS = (("#0072B2", "-"), ("#56B4E9", "--"), ("#D55E00", "-"), ("#E69F00", "--"))
MARKERS = {
    "icarma": "o",
    "oracle": "s",
    "search": "s",
    "as printed": "o",
    "as chosen": "^",
    "pruned": "v",
}
SLIDE = (8.28, 3.3)  # inches of a figure that fills a slide, at 144 pixels an inch
# The lecture shows these in a version of their own (docs/slides).
ON_SLIDES = (
    "00_first_applicant",
    "01_action_or_change",
    "01_decisions",
    "01_graph",
    "02_mechanism",
    "03_architecture",
    "03_training_curves",
    "04_validity_plausibility",
    "05_frontier",
    "06_closing",
    "06_within_budget",
    "07_graphs",
    "08_unlocked",
    "09_pre_post",
    "10_curves",
    "11_margins",
)
LINES = {"constant": ":", "concave": "--", "linear": "-", "convex": "-."}

DIAGRAMS = io.load_yaml(Path(__file__).with_name("diagrams.yaml"))
Point = tuple[float, float]
Places = Mapping[str, Point]  # of each feature, in the unit square
LOAN_PLACES, CREDIT_PLACES = DIAGRAMS["places"].values()
INK, ADDED = "#333333", COLOURS["added"]
# a box of a diagram, by what it holds: its ground, and its rim
BOXES = {
    "plain": ("white", INK),
    "network": ("#CFE3F3", INK),
    "flow": ("#CDEBDF", INK),
    "loss": ("#EDEDED", INK),
    "added": ("#F8DDCB", ADDED),
    "frame": ("white", ADDED),
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
    "follows": {"color": "#C98500", "linewidth": 2.0},
    "cut": {"color": "#BBBBBB", "linewidth": 0.9, "linestyle": ":"},
    "stays": {"color": "#999999", "linewidth": 0.9},
}
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5}


def use_style() -> None:
    """Set matplotlib's defaults for every figure of the notebooks."""
    style.use(Path(__file__).with_name("icarma.mplstyle"))


def save(figure: Figure, folder: Path, name: str) -> None:
    """Save folder/name.png and .pdf, without dates: a rerun gives the same bytes.

    Where the lecture shows the figure, name_slide.png is saved, too.
    """
    for kind, undated in (("png", "Software"), ("pdf", "CreationDate")):
        drawn = BytesIO()
        figure.savefig(drawn, format=kind, metadata={undated: None})
        io.write(folder / f"{name}.{kind}", drawn.getvalue())
    if name in ON_SLIDES:
        large, drawn = for_slide(figure), BytesIO()
        large.savefig(drawn, format="png", metadata={"Software": None})
        io.write(folder / f"{name}_slide.png", drawn.getvalue())


def for_slide(figure: Figure) -> Figure:
    """Return a copy of the figure on a smaller sheet, with no type below 9 points.

    These are 18 pixels where the sheet fills a slide. A title of the whole figure is left
    out, for the slide has its own.
    """
    large: Figure = pickle.loads(pickle.dumps(figure))  # figures have no deep copy
    plt.close(large)
    width, height = figure.get_size_inches()
    shrink = min(1, SLIDE[1] / height)
    is_wide = width > 1.6 * height  # what is wide fills the slide from side to side
    large.set_size_inches(
        min(width if is_wide else width * shrink, SLIDE[0]), height * shrink
    )
    if len(large.axes) == 1:
        large.axes[0].set_title(" ", loc="left")  # what rises into it keeps its place
    else:
        large.suptitle("")
    for text in large.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), 9))
    return large


def readable(name: str) -> str:
    """Return the name of a feature as it is printed.

    Example:
        >>> readable("loan_amount")
        'loan amount'
    """
    return name.replace("_", " ")


def legend_once(figure: Figure, ax: Axes, n_columns: int = 4) -> None:
    """Draw one legend below the figure, in which each label of the axes stands once."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    handles, labels = [*once.values()], [*once]
    figure.legend(handles, labels, loc="outside lower center", ncol=n_columns)


def marginal(ax: Axes, samples: Mapping[str, np.ndarray], name: str, bins: int) -> Axes:
    """Draw one feature's histograms as densities, one for each sample; return the axes.

    Arguments:
        samples: Values (N,) under the keys "data" (filled), "flow",
            ...
        name: Of the feature.
        bins: How many, all equally wide.
    """
    low = min(values.min() for values in samples.values())
    high = max(values.max() for values in samples.values())
    edges = np.linspace(low, high, bins + 1).tolist()
    for key, values in samples.items():
        look: dict[str, Any] = {"histtype": "step", "alpha": 1}
        if key == "data":
            look = {"histtype": "stepfilled", "alpha": 0.35}
        ax.hist(values, edges, density=True, label=key, color=COLOURS[key], lw=1.4, **look)
    ax.set(xlabel=f"{readable(name)} (model units)", ylabel="density")
    return ax


def errors_by_place(
    ax: Axes, place: np.ndarray, errors: np.ndarray, seen: np.ndarray
) -> Axes:
    """Draw errors, a dot a person, over a histogram of where people are; return the axes.

    The histogram has no scale: it takes up the lowest quarter.

    Arguments:
        place: The value at which each error was made, with shape (N,).
        errors: Flow minus truth, with shape (N,).
        seen: Values of people on the same axis, with shape (P,).
    """
    ax.scatter(place, errors, s=3, color=COLOURS["flow"], alpha=0.4, rasterized=True)
    ax.axhline(0, color=COLOURS["truth"], ls="--")
    below = ax.twinx()
    heights, _, _ = below.hist(seen, 40, color=COLOURS["data"], alpha=0.3)
    below.set_ylim(0, 4 * np.max(heights))
    below.axis("off")
    return ax


def beside_paper(ax: Axes, rows: pd.DataFrame, metric: str) -> Axes:
    """Draw one metric of networks by setting, the paper's as dashes; return the axes.

    The dot is the mean over seeds, the pale bar their range, and the
    hollow dot the member that validation chose. Each set of networks
    has a place of its own. Those that agree with the paper have a
    ring.

    Arguments:
        rows: Of networks, as `tables.beside_paper` gives them.
        metric: Which of their metrics.
    """
    rows = rows[rows.metric == metric]
    settings = list(dict.fromkeys(rows.setting))
    names = list(dict.fromkeys(rows.networks))
    apart = 0.78 / max(3, len(names))
    for i, name in enumerate(names):
        group = rows[rows.networks == name]
        places = np.array([settings.index(setting) for setting in group.setting])
        at = places + apart * (i - (len(names) - 1) / 2)
        colour, marker = COLOURS[name], MARKERS[name]
        band: dict[str, Any] = {"lw": 16, "alpha": 0.3, "color": colour}
        label = f"{name}, range over seeds"
        ax.vlines(at, group.lowest, group.highest, label=label, **band)
        label = f"{name}, mean over seeds"
        ax.plot(at, group["mean"], marker, color=colour, label=label)
        hollow: dict[str, Any] = {"ms": 8, "mfc": "none", "mew": 0.8, "color": colour}
        label = f"{name}, the member reported"
        ax.plot(at, group.reported, marker, label=label, **hollow)
        agrees = group.agrees.eq(True).to_numpy()
        if agrees.any():
            ring: dict[str, Any] = {"s": 230, "facecolors": "none", "edgecolors": "#333333"}
            ax.scatter(at[agrees], group["mean"][agrees], label="agrees", **ring)
        dashes: dict[str, Any] = {"color": "#333333", "lw": 1.3, "ls": "--"}
        half = 0.46 * apart
        ax.hlines(group.paper, at - half, at + half, label="the paper", **dashes)
    ax.set_xticks(range(len(settings)), settings)
    ax.set(ylim=(-0.04, 1.06), ylabel=metric)
    return ax


def intervals(ax: Axes, rows: pd.DataFrame, along: str, order: Sequence[str]) -> Axes:
    """Draw estimates with their intervals, a line a category from the top; return the axes.

    Arguments:
        rows: Estimates of networks, with low and high, of one
            measure, with a column `along` that holds the categories.
        along: Name of that column.
        order: Of the categories.
    """
    at = [order.index(name) for name in rows[along]]
    ends = [rows.estimate - rows.low, rows.high - rows.estimate]
    look: dict[str, Any] = {"fmt": "o", "ms": 3.5, "lw": 1.4, "color": COLOURS["icarma"]}
    ax.errorbar(rows.estimate, at, xerr=ends, label="95 % interval", **look)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.4, -0.6)
    return ax


def arrow(
    ax: Axes,
    start: Point,
    end: Point,
    shrink: float = 0.0,
    size: float = 9.0,
    color: str = INK,
    **look: Any,
) -> None:
    """Draw an arrow that stops the given number of points short of both ends."""
    look |= {"shrinkA": shrink, "shrinkB": shrink, "mutation_scale": size, "color": color}
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", zorder=2, **look))


def causal_graph(ax: Axes, graph: Graph, kinds: Mapping[str, str], at: Places) -> Axes:
    """Draw the graph, features coloured by what may be done about them; return the axes.

    Arguments:
        graph: Whose features and edges are drawn.
        kinds: Of each feature: "actionable", "mutable" or
            "immutable".
        at: Where each feature stands in the unit square.
    """
    edge: dict[str, Any] = {"edgecolor": INK, "linewidth": 0.8}
    for name, (x, y) in at.items():
        colour = COLOURS[kinds[name]]
        ax.scatter(x, y, s=2_900, color=colour, zorder=3, clip_on=False, **edge)
        ax.text(x, y, readable(name).replace(" ", "\n"), **CENTRED)  # a word a line
    for child, causes in graph.parents.items():
        for cause in causes:
            arrow(ax, at[cause], at[child], shrink=28, size=10)
    for kind in ("actionable", "mutable", "immutable"):
        ax.scatter([], [], marker="s", s=60, label=kind, color=COLOURS[kind], **edge)
    ax.legend(loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.13))
    return _bare(ax, (0, 1), (0, 1))


def action_on_graph(
    ax: Axes,
    graph: Graph,
    at: Places,
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
            y += -0.165 if y < 0.85 else 0.165  # above the topmost, where no arrows are
            blank = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            colour = NUMBERS[kind]
            ax.text(x, y, how, bbox=blank, color=colour, weight="bold", **CENTRED)
        for cause in causes:
            path = "cut" if name in is_acted else "follows" if cause in moves else "stays"
            arrow(ax, at[cause], at[name], shrink=24.5, **PATHS[path])
    return _bare(ax, (-0.03, 1.03), (-0.09, 1.1))


def decision_slice(
    ax: Axes,
    accepts: Callable[[np.ndarray], np.ndarray],
    low: Point,
    high: Point,
    now: Point,
    moves: Places,
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
        arrow(ax, now, end, color=COLOURS[name], linewidth=2)
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
    _diagram(ax, **DIAGRAMS["architecture"])
    return _bare(ax, (-0.01, 1.01), (0, 1.10))


def _diagram(ax: Axes, boxes: Sequence[Any], arrows: Sequence[Any]) -> None:
    """Draw boxes and arrows, as they stand in diagrams.yaml."""
    for x, y, text, *box in boxes:
        if box:
            width, height, kind = box
            ground, rim = BOXES[kind]
            corner, depth = (x - width / 2, y - height / 2), 1 if kind == "frame" else 3
            look: dict[str, Any] = {"fc": ground, "ec": rim, "lw": 0.8, "zorder": depth}
            style = "round,pad=0.012"
            ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, **look))
        ax.text(x, y, text, **CENTRED | {"zorder": 4 if box else 3})
    for x, y, to_x, to_y, *changes in arrows:
        look = {"linewidth": 1} | (changes[0] if changes else {})
        colour = COLOURS.get(look.pop("color", ""), INK)
        arrow(ax, (x, y), (to_x, to_y), size=10, color=colour, **look)


def _bare(ax: Axes, xlim: tuple[float, float], ylim: tuple[float, float]) -> Axes:
    """Set the limits of a drawing without axes, and return it."""
    ax.set(xlim=xlim, ylim=ylim)
    ax.axis("off")
    return ax
