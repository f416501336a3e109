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
