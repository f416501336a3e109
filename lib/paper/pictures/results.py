"""Pictures of people and of results: histograms, errors, intervals, beside the paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lib.paper.pictures.look import COLOURS, MARKERS, readable


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
        filled = key == "data"
        ax.hist(
            values,
            edges,
            density=True,
            label=key,
            color=COLOURS[key],
            lw=1.4,
            histtype="stepfilled" if filled else "step",
            alpha=0.35 if filled else 1,
        )
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


def beside_paper(ax: Axes, rows: pd.DataFrame, metric: str, xlabel: str = "") -> Axes:
    """Draw one metric by setting, ours as dots, the paper's as dashes; return the axes.

    Of networks the dot is the mean over seeds, the pale bar their
    range, and the hollow dot the member that validation chose. Each
    set of networks has a place of its own. Where the rows have a
    column "agrees", those that do have a ring.

    Arguments:
        rows: As `tables.beside_paper` gives them.
        metric: Which of their metrics.
    """
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


def intervals(ax: Axes, rows: pd.DataFrame, along: str, order: Sequence[str]) -> Axes:
    """Draw estimates with their intervals, a line a category from the top; return the axes.

    Where there is no interval, "too few" stands in its place. Where
    the rows have a column "reported", a hollow dot below the interval
    is the reported network.

    Arguments:
        rows: Estimates with low and high, of one measure, with
            a column `along` that holds the categories.
        along: Name of that column.
        order: Of the categories.
    """
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
        colour = COLOURS[method.lower()]
        ax.scatter(reported, at[given] + 0.13, edgecolors=colour, label=label, **hollow)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.4, -0.6)
    return ax


def _ours(ax: Axes, rows: pd.DataFrame, at: np.ndarray, who: str) -> None:
    """Draw a method's, or set of networks', numbers of `beside_paper` at these places."""
    colour = COLOURS[who.lower()]
    marker = MARKERS[who.lower()]
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
    colour, given = COLOURS[method.lower()], (rows.low != "too few").to_numpy()
    estimate, low, high = (
        rows[name][given].to_numpy(dtype=float) for name in ("estimate", "low", "high")
    )
    ax.errorbar(
        estimate,
        at[given],
        xerr=[estimate - low, high - estimate],
        fmt=MARKERS[method.lower()],
        ms=3.5,
        lw=1.4,
        color=colour,
        label=f"{method}, 95 % interval",
    )
    look: dict[str, Any] = {"fontsize": 9, "va": "center", "color": colour}
    for missing in at[~given]:
        across = ax.get_yaxis_transform()
        ax.text(0.02, missing, "too few", transform=across, **look)
