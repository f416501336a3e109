"""One look for all figures. Functions draw on the axes they are given and return them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from scipy.stats import gaussian_kde

from lib.causal.graph import Graph

# Okabe and Ito's colours, fixed by meaning
COLOURS = {
    "icarma": "#0072B2",
    "oracle": "#D55E00",
    "search": "#D55E00",
    "icarma (rco-trained)": "#56B4E9",
    "constant": "#555555",
    "concave": "#E69F00",
    "linear": "#0072B2",
    "convex": "#009E73",
    "actionability ignored": "#999999",
    "actionability known": "#0072B2",
    "data": "#555555",
    "flow": "#009E73",
    "truth": "#E69F00",
    "misled": "#CC79A7",
    "accepted": "#009E73",
    "refused": "#CC79A7",
    "chosen": "#000000",
    "actionable": "#56B4E9",
    "mutable": "#F0E442",
    "immutable": "#BBBBBB",
}
# of up to four groups of people, in the order in which they are drawn
GROUPS = (("#0072B2", "-"), ("#56B4E9", "--"), ("#D55E00", "-"), ("#E69F00", "--"))
MARKERS = {
    "icarma": "o",
    "oracle": "s",
    "icarma (rco-trained)": "D",
    "actionability ignored": "o",
    "actionability known": "o",
}
LINES = {"constant": ":", "concave": "--", "linear": "-", "convex": "-."}


def use_style() -> None:
    """Set matplotlib's defaults for every figure of the notebooks."""
    mpl.rcParams.update(
        {
            "figure.dpi": 90,
            "savefig.dpi": 150,
            "svg.hashsalt": "icarma",
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e6e6e6",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
        }
    )


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write folder/name.png and .pdf, without dates, so that a rerun gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})


def readable(name: str) -> str:
    return name.replace("_", " ")


def box(
    ax: Axes, x: float, y: float, text: str, colour: str, width: float, height: float = 0.15
) -> None:
    """A rounded box with a text, centred at (x, y)."""
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
    """An arrow that stops the given number of points short of both ends."""
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
    """The graph, features coloured by what may be done about them; `at` places them in the unit square."""
    for name, (x, y) in at.items():
        ax.scatter(
            x,
            y,
            s=2_300,
            color=COLOURS[kinds[name]],
            edgecolor="#333333",
            linewidth=0.8,
            zorder=3,
        )
        ax.text(
            x,
            y,
            readable(name).replace(" ", "\n"),
            ha="center",
            va="center",
            fontsize=7.5,
            zorder=4,
        )
    for child, causes in graph.parents.items():
        for cause in causes:
            arrow(ax, at[cause], at[child], shrink=25)
    for kind in ("actionable", "mutable", "immutable"):
        ax.scatter(
            [],
            [],
            marker="s",
            s=60,
            color=COLOURS[kind],
            edgecolor="#333333",
            linewidth=0.8,
            label=kind,
        )
    ax.legend(loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.08))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def architecture(ax: Axes) -> Axes:
    """How iCARMA recommends: the paper's Fig. 1 in our own drawing."""
    grey, blue, green = COLOURS["immutable"], COLOURS["actionable"], "#A6DCC9"
    box(ax, 0.07, 0.80, "factual $x$", "white", 0.11)
    box(ax, 0.26, 0.80, "flow: abduct\n$z = T(x)$", green, 0.14)
    box(ax, 0.07, 0.20, "scores $s$", "white", 0.11)
    box(ax, 0.26, 0.20, "mask of $A_u$,\nhardness $h(s)$", grey, 0.14)
    box(
        ax,
        0.48,
        0.50,
        "mask network\n$q_j = P(m_j = 1)$,\n$m_j = 0$ if $j \\notin A_u$",
        blue,
        0.15,
        0.2,
    )
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
    ax.text(
        0.91,
        0.36,
        "judged by the\nclassifier $h$ and\nthe density $\\log p$",
        ha="center",
        va="center",
        fontsize=7.5,
    )
    arrow(ax, (0.91, 0.28), (0.91, 0.23))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def marginal(
    ax: Axes, samples: Mapping[str, np.ndarray], name: str, bins: int = 40
) -> Axes:
    """Histograms of one feature as densities, one outline for each key of `samples` ("data", "flow", ...)."""
    low = min(values.min() for values in samples.values())
    high = max(values.max() for values in samples.values())
    edges = np.linspace(low, high, bins + 1)
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


def pair(
    ax: Axes, samples: Mapping[str, np.ndarray], levels: Sequence[float] = (0.1, 0.5, 0.9)
) -> Axes:
    """Contours that hold the given shares of people, for two features (N, 2), one colour for each key."""
    both = np.concatenate(list(samples.values()))
    grid = [np.linspace(*np.quantile(both[:, k], (0.001, 0.999)), 60) for k in (0, 1)]
    mesh = np.stack(np.meshgrid(*grid), 0)
    for key, values in samples.items():
        kernel = gaussian_kde(values[:2000].T)
        density = kernel(mesh.reshape(2, -1)).reshape(mesh.shape[1:])
        cuts = np.quantile(
            kernel(values[:2000].T), [1 - share for share in sorted(levels, reverse=True)]
        )
        ax.contour(
            *grid,
            density,
            levels=cuts,
            colors=COLOURS[key],
            linewidths=1.1,
            linestyles="--" if key == "flow" else "-",
        )
    return ax


def band(ax: Axes, steps: np.ndarray, curves: np.ndarray, colour: str, label: str) -> Axes:
    """Mean of the curves (n_steps, n_members), and a band from the lowest to the highest."""
    ax.plot(steps, curves.mean(1), color=colour, label=label)
    ax.fill_between(steps, curves.min(1), curves.max(1), color=colour, alpha=0.2, lw=0)
    return ax


def beside_paper(
    ax: Axes, rows: pd.DataFrame, metric: str, xlabel: str = "features a person may act on"
) -> Axes:
    """One metric by setting: ours as dots with the range over seeds, the paper's as dashes.

    Arguments:
        rows: As `studies.beside_paper` gives them.
    """
    rows = rows[rows.metric == metric]
    settings = list(dict.fromkeys(rows.setting))
    methods = list(dict.fromkeys(rows.method))
    for i, method in enumerate(methods):
        own, key = rows[rows.method == method], method.lower()
        at = np.array([settings.index(s) for s in own.setting]) + 0.26 * (
            i - (len(methods) - 1) / 2
        )
        if own.seed_low.notna().all():
            ax.vlines(
                at,
                own.seed_low,
                own.seed_high,
                color=COLOURS[key],
                lw=4,
                alpha=0.3,
                label=f"{method}, range over seeds",
            )
        ax.plot(at, own.ours, MARKERS[key], color=COLOURS[key], label=f"{method}, ours")
        ax.hlines(
            own.paper,
            at - 0.12,
            at + 0.12,
            color="#333333",
            lw=1.3,
            ls="--",
            label="the paper",
        )
    ax.set_xticks(range(len(settings)), settings)
    ax.set(ylim=(-0.02, 1.03), ylabel=metric, xlabel=xlabel)
    return ax


def intervals(
    ax: Axes,
    rows: pd.DataFrame,
    along: str,
    order: Sequence[str],
    seeds: pd.DataFrame | None = None,
) -> Axes:
    """Estimates with their intervals, a line a category from top to bottom; "too few" where there is no interval.

    Arguments:
        rows: Of `lib.fairness`, of one measure, with the column `along` whose values are the categories.
        order: Of the categories.
        seeds: Of `fairness.over_seeds`; every network is a pale dot below its interval.
    """
    methods = list(dict.fromkeys(rows.method))
    for i, method in enumerate(methods):
        own, key = rows[rows.method == method], method.lower()
        place = {
            name: order.index(name) + 0.34 * (i - (len(methods) - 1) / 2)
            for name in own[along]
        }
        at, given = np.array(list(place.values())), (own.low != "too few").to_numpy()
        estimate, low, high = (
            own[name][given].to_numpy(dtype=float) for name in ("estimate", "low", "high")
        )
        label = f"{method}, 95 % interval over people"
        ax.errorbar(
            estimate,
            at[given],
            xerr=[estimate - low, high - estimate],
            fmt=MARKERS[key],
            ms=3.5,
            lw=1.4,
            color=COLOURS[key],
            label=label,
        )
        for missing in at[~given]:
            ax.text(
                0.02,
                missing,
                "too few",
                fontsize=6.5,
                va="center",
                color=COLOURS[key],
                transform=ax.get_yaxis_transform(),
            )
        if seeds is not None:
            theirs = seeds[(seeds.method == method) & seeds[along].isin(list(place))]
            ax.scatter(
                theirs.estimate,
                theirs[along].map(place) + 0.13,
                s=9,
                color=COLOURS[key],
                alpha=0.45,
                lw=0,
                label=f"{method}, each network" * (len(theirs) > 0),
            )
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.4, -0.6)
    return ax


def interval_band(ax: Axes, at: Sequence[float], rows: pd.DataFrame, method: str) -> Axes:
    """A method's estimates along a number, with their intervals as a band; a gap where there are too few people."""
    estimate, low, high = (
        pd.to_numeric(rows[name], errors="coerce").to_numpy()
        for name in ("estimate", "low", "high")
    )
    ax.fill_between(
        at,
        low,
        high,
        color=COLOURS[method.lower()],
        alpha=0.2,
        lw=0,
        label=f"{method}, 95 % interval over people",
    )
    ax.plot(
        at,
        estimate,
        MARKERS[method.lower()] + "-",
        ms=3,
        lw=1.4,
        color=COLOURS[method.lower()],
        label=method,
    )
    return ax


def frontier(
    ax: Axes,
    trials: pd.DataFrame,
    networks: pd.DataFrame,
    paper: pd.DataFrame,
    lowest_validity: float,
) -> Axes:
    """Hap against plausibility, each the mean of the two settings; a line for each profile.

    Arguments:
        trials: Of the search, as `tuning.trials_table` gives them, with columns plausibility_mean and hap_mean.
        networks: Ours, with columns profile, plausibility, hap, validity (the lower of the two settings); a row a seed,
            the reported one marked in "reported". It is drawn hollow if it is not as valid as the search demands.
        paper: The paper's, with columns profile, plausibility, hap.
    """
    for profile, own in networks.groupby("profile", sort=False):
        colour = COLOURS[profile]
        tried = trials[trials.profile == profile]
        front = tried[tried.on_front].sort_values("plausibility_mean")
        ax.scatter(
            tried.plausibility_mean, tried.hap_mean, s=4, color=colour, alpha=0.25, lw=0
        )
        if len(front):
            ax.plot(
                front.plausibility_mean,
                front.hap_mean,
                LINES[profile],
                color=colour,
                lw=1.2,
                label=f"{profile}: front of the search",
            )
        ax.scatter(own.plausibility, own.hap, s=12, color=colour, alpha=0.45, lw=0)
        reported = own[own.reported]
        face = colour if reported.validity.item() >= lowest_validity else "white"
        ax.scatter(
            reported.plausibility,
            reported.hap,
            s=50,
            facecolor=face,
            edgecolor=colour,
            lw=1.6,
            zorder=4,
            label=f"{profile}: ours",
        )
        theirs = paper[paper.profile == profile]
        ax.scatter(
            theirs.plausibility,
            theirs.hap,
            s=90,
            marker="*",
            color=colour,
            edgecolor="#333333",
            lw=0.8,
            zorder=5,
            label=f"{profile}: the paper",
        )
    ax.set(xlabel="plausibility", ylabel="hap", xlim=(0.2, 0.9), ylim=(-0.03, 1.05))
    return ax


def log_densities(
    ax: Axes, log_p: np.ndarray, log_p_cf: np.ndarray, valid: np.ndarray
) -> Axes:
    """Log-density after the action against before, a dot a person; below the diagonal is less plausible.

    People below -16 nats before or -25 nats after are drawn at that edge.
    """
    left, low = -16.0, -25.0
    for mask, colour, marker, alpha, label in (
        (valid, COLOURS["icarma"], "o", 0.3, "accepted"),
        (~valid, COLOURS["refused"], "x", 0.9, "still refused"),
    ):
        ax.scatter(
            np.maximum(log_p[mask], left),
            np.maximum(log_p_cf[mask], low),
            s=6,
            marker=marker,
            lw=0.6,
            color=colour,
            alpha=alpha,
            label=label,
            rasterized=True,
        )
    ax.plot([low, -4], [low, -4], color="#333333", lw=1)
    ax.set(
        xlim=(left - 0.3, -4),
        ylim=(low - 1, -3),
        xlabel="log p(x) (nats)",
        ylabel="log p(x$^{CF}$) (nats)",
    )
    return ax


def legend_once(figure: Figure, ax: Axes, n_columns: int = 4) -> None:
    """One legend below the figure, each label once."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncol=n_columns)
