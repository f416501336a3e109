"""Pictures of one person: their action on the causal graph, the decisions around them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

from lib import checks
from lib.method.graph import Graph
from lib.paper.pictures.look import COLOURS, readable

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
    "dependents": (0.09, 0.6),
    "income": (0.42, 0.9),
    "utilization": (0.9, 0.66),
    "credit_lines": (0.36, 0.5),
    "real_estate_loans": (0.64, 0.5),
    "debt_ratio": (0.14, 0.14),
    "late_30_to_59": (0.42, 0.14),
    "late_60_to_89": (0.66, 0.14),
    "late_90": (0.9, 0.14),
}
# the face, the rim and the text of a feature, by what happens to it
NODES = {
    "acted on": (COLOURS["icarma"], "#333333", "white"),
    "follows": ("#F5CE85", "#333333", "black"),
    "forbidden": ("white", "#B2187A", "black"),
    "stays": ("#F2F2F2", "#888888", "black"),
}
NUMBERS = {"acted on": COLOURS["icarma"], "follows": "#8A5A00"}
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5}
BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind a text
PATHS: dict[str, dict[str, Any]] = {
    "follows": {"color": "#C98500", "lw": 2.0},
    "cut": {"color": "#BBBBBB", "lw": 0.9, "ls": ":"},
    "stays": {"color": "#999999", "lw": 0.9},
}


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
    Raises: ValueError: a name is no feature, or a feature has no
        place.
    """
    if missing := [name for name in graph.features if name not in at]:
        raise ValueError(f"There is no place for {', '.join(missing)}.")
    checks.one_of("feature", [*moves, *is_acted, *forbidden], graph.features)
    for name in graph.features:
        kind = _what_happens(name, moves, is_acted, forbidden)
        _node(ax, at[name], readable(name), kind, is_closed=name in forbidden)
        if name in moves:
            x, y = at[name]
            how = moves[name].split(" (")[0].replace("->", "→").replace("-", "−")
            style = CENTRED | {"color": NUMBERS[kind], "weight": "bold", "bbox": BLANK}
            below = y < 0.85  # above the topmost, where no arrows are
            ax.text(x, y - 0.165 if below else y + 0.165, how, **style)
        for cause in graph.parents[name]:
            path = "cut" if name in is_acted else "follows" if cause in moves else "stays"
            _arrow(ax, at[cause], at[name], PATHS[path], shrink=24.5)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.09, 1.1))
    ax.axis("off")
    return ax


def _what_happens(
    name: str, moved: Collection[str], is_acted: Collection[str], forbidden: Collection[str]
) -> str:
    """Return the key of `NODES` for a feature."""
    if name in is_acted:
        return "acted on"
    if name in moved:
        return "follows"
    return "forbidden" if name in forbidden else "stays"


def _node(
    ax: Axes, place: tuple[float, float], words: str, kind: str, is_closed: bool
) -> None:
    """Draw a feature as a disc with its name, a word a line."""
    face, rim, ink = NODES[kind]
    style: dict[str, Any] = {"linewidth": 1.1, "zorder": 3}
    if is_closed:
        rim, style = NODES["forbidden"][1], style | {"linestyle": "--"}
    ax.scatter(*place, s=2_150, color=face, edgecolor=rim, **style)
    ax.text(*place, words.replace(" ", "\n"), color=ink, **CENTRED)


def _arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    style: Mapping[str, Any],
    shrink: float,
) -> None:
    """Draw a straight arrow that stops a number of points short of both ends."""
    ends: dict[str, Any] = {"shrinkA": shrink, "shrinkB": shrink}
    head: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9}
    ax.add_patch(FancyArrowPatch(start, end, zorder=2, **ends, **head, **style))


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
    Raises: ValueError: a name has no colour, or `accepts` gives
        another shape.
    """
    checks.one_of("move", moves, tuple(COLOURS))
    lines = [np.linspace(*ends, 200) for ends in zip(low, high, strict=True)]
    across, up = np.meshgrid(*lines)
    points = np.stack([across.ravel(), up.ravel()], -1)
    accepted = np.asarray(accepts(points))
    if accepted.shape != (len(points),):
        raise ValueError(
            f"accepts gave shape {accepted.shape} for {len(points)} points: expected one "
            f"decision a point, ({len(points)},)."
        )
    ground = [COLOURS["refused"], COLOURS["accepted"]]
    levels: dict[str, Any] = {"levels": [-0.5, 0.5, 1.5], "colors": ground, "alpha": 0.22}
    ax.contourf(across, up, accepted.reshape(across.shape).astype(float), **levels)
    for name, end in moves.items():
        _arrow(ax, now, end, {"color": COLOURS[name], "lw": 2}, shrink=0)
        ax.scatter(*end, s=16, color=COLOURS[name], zorder=4)
    ax.scatter(*now, s=30, color="black", zorder=5)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.grid(visible=False)
    return ax
