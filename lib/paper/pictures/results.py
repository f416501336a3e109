"""Pictures of results: beside the paper's, with their intervals, and as a trade."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lib import checks
from lib.paper.pictures.look import COLOURS, MARKERS, by_name, need


def beside_paper(
    ax: Axes, rows: pd.DataFrame, metric: str, xlabel: str = "features a person may act on"
) -> Axes:
    """Draw one metric by setting, ours as dots, the paper's as dashes; return the axes.

    Of networks the dot is the mean over seeds, the pale bar their
    range, and the hollow dot the member that validation chose. Each
    set of networks has a place of its own. Where the rows have a
    column "agrees", those that do have a ring.

    Arguments:
        rows: As `tables.beside_paper` gives them.
        metric: Which of their metrics.
    Raises: ValueError: a column is missing, the metric is not in the
        table, or a method has no marker.
    """
    ours = ("mean", "lowest", "highest", "reported")
    need(rows, ("metric", "setting", "method", "networks", "paper", *ours))
    checks.one_of("metric", [metric], tuple(dict.fromkeys(rows.metric)))
    rows = rows[rows.metric == metric]
    settings = list(dict.fromkeys(rows.setting))
    who = rows.method.where(rows.networks == "", rows.networks)
    names = list(dict.fromkeys(who))
    apart = 0.78 / max(3, len(names))
    for i, name in enumerate(names):
        group = rows[who == name]
        places = np.array([settings.index(s) for s in group.setting])
        at = places + apart * (i - (len(names) - 1) / 2)
        _ours(ax, group, at, name)
        if "agrees" in group and (agrees := group.agrees.eq(True).to_numpy()).any():
            ring: dict[str, Any] = {"s": 230, "facecolors": "none", "edgecolors": "#333333"}
            ax.scatter(at[agrees], group["mean"][agrees], label="agrees", **ring)
        dashes: dict[str, Any] = {"color": "#333333", "lw": 1.3, "ls": "--"}
        half = 0.46 * apart
        ax.hlines(group.paper, at - half, at + half, label="the paper", **dashes)
    ax.set_xticks(range(len(settings)), settings)
    ax.set(ylim=(-0.04, 1.06), ylabel=metric, xlabel=xlabel)
    return ax


def intervals(
    ax: Axes,
    rows: pd.DataFrame,
    along: str,
    order: Sequence[str],
) -> Axes:
    """Draw estimates with their intervals, a line a category from the top; return the axes.

    Where there is no interval, "too few" stands in its place. Where
    the rows have a column "reported", a hollow dot below the interval
    is the reported network.

    Arguments:
        rows: Estimates with low and high, of one measure, with
            a column `along` that holds the categories.
        along: Name of that column.
        order: Of the categories.
    Raises: ValueError: a column is missing, a category is not in the
        order, or a method has no marker.
    """
    need(rows, ("method", along, "estimate", "low", "high"))
    checks.one_of(along, dict.fromkeys(rows[along]), order)
    methods = list(dict.fromkeys(rows.method))
    for i, method in enumerate(methods):
        group = rows[rows.method == method]
        offset = 0.34 * (i - (len(methods) - 1) / 2)
        at = np.array([order.index(name) for name in group[along]]) + offset
        _intervals_of(ax, group, at, method)
        if "reported" not in group or (group.reported == group.estimate).all():
            continue
        label = f"{method}, the reported network"
        given = (group.reported != "too few").to_numpy()
        reported = group.reported[given].to_numpy(dtype=float)
        hollow: dict[str, Any] = {"s": 12, "facecolors": "none", "lw": 0.8}
        colour = by_name("method", method, COLOURS)
        ax.scatter(reported, at[given] + 0.13, edgecolors=colour, label=label, **hollow)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.4, -0.6)
    return ax


def _ours(ax: Axes, rows: pd.DataFrame, at: np.ndarray, who: str) -> None:
    """Draw a method's, or set of networks', numbers of `beside_paper` at these places."""
    colour = by_name("method", who, COLOURS)
    marker = by_name("method", who, MARKERS)
    if rows.lowest.isna().any():
        ax.plot(at, rows["mean"], marker, color=colour, label=f"{who}, ours")
        return
    band: dict[str, Any] = {"lw": 16, "alpha": 0.3, "color": colour}
    ax.vlines(at, rows.lowest, rows.highest, label=f"{who}, range over seeds", **band)
    label = f"{who}, mean over seeds"
    ax.plot(at, rows["mean"], marker, color=colour, label=label)
    hollow: dict[str, Any] = {"ms": 8, "mfc": "none", "mew": 0.8, "color": colour}
    label = f"{who}, the member reported"
    ax.plot(at, rows.reported, marker, label=label, **hollow)


def _intervals_of(ax: Axes, rows: pd.DataFrame, at: np.ndarray, method: str) -> None:
    """Draw one method's intervals at these heights, or that there are too few people."""
    colour, given = by_name("method", method, COLOURS), (rows.low != "too few").to_numpy()
    estimate, low, high = (
        rows[name][given].to_numpy(dtype=float) for name in ("estimate", "low", "high")
    )
    ax.errorbar(
        estimate,
        at[given],
        xerr=[estimate - low, high - estimate],
        fmt=by_name("method", method, MARKERS),
        ms=3.5,
        lw=1.4,
        color=colour,
        label=f"{method}, 95 % interval",
    )
    look: dict[str, Any] = {"fontsize": 9, "va": "center", "color": colour}
    for missing in at[~given]:
        across = ax.get_yaxis_transform()
        ax.text(0.02, missing, "too few", transform=across, **look)
