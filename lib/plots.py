"""One look for all figures. Functions draw on the axes they are given and return them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from scipy.stats import gaussian_kde

# Okabe and Ito's colours, fixed by meaning
COLOURS = {
    "icarma": "#0072B2",
    "oracle": "#D55E00",
    "data": "#555555",
    "flow": "#009E73",
    "truth": "#E69F00",
    "misled": "#CC79A7",
    "actionable": "#56B4E9",
    "mutable": "#F0E442",
    "immutable": "#BBBBBB",
}
MARKERS = {"icarma": "o", "oracle": "s"}


def use_style() -> None:
    """Set matplotlib's defaults for every figure of the notebooks."""
    mpl.rcParams.update(
        {
            "figure.dpi": 90, "savefig.dpi": 150, "svg.hashsalt": "icarma", "font.size": 9, "axes.titlesize": 9.5,
            "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
            "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
            "figure.constrained_layout.use": True,
        }
    )  # fmt: skip


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write folder/name.png and .pdf, without dates, so that a rerun gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})


def readable(name: str) -> str:
    return name.replace("_", " ")


def box(ax: Axes, x: float, y: float, text: str, colour: str, width: float = 0.2, height: float = 0.13) -> tuple[float, float]:
    """A rounded box with a text, centred at (x, y); returns its centre."""
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.012", fc=colour, ec="#333333", lw=0.8, zorder=3
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=8, zorder=4)
    return x, y


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0.0, colour: str = "#333333") -> None:
    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=10, lw=1, color=colour, shrinkA=22, shrinkB=22,
            connectionstyle=f"arc3,rad={bend}", zorder=2,
        )
    )  # fmt: skip


def causal_graph(
    ax: Axes, parents: Mapping[str, Sequence[str]], kinds: Mapping[str, str], at: Mapping[str, tuple[float, float]]
) -> Axes:
    """The graph, features coloured by what may be done about them; `at` places them in the unit square."""
    for name, (x, y) in at.items():
        box(ax, x, y, readable(name), COLOURS[kinds[name]])
    for child, causes in parents.items():
        for cause in causes:
            far = abs(at[child][0] - at[cause][0]) > 0.5 and abs(at[child][1] - at[cause][1]) < 0.1
            arrow(ax, at[cause], at[child], bend=-0.25 if far else 0.0)
    for kind in ("actionable", "mutable", "immutable"):
        ax.scatter([], [], marker="s", s=60, color=COLOURS[kind], edgecolor="#333333", linewidth=0.8, label=kind)
    ax.legend(loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.08))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def architecture(ax: Axes) -> Axes:
    """How iCARMA recommends: the paper's Fig. 1 in our own drawing."""
    grey, blue, green = COLOURS["immutable"], COLOURS["actionable"], COLOURS["flow"]
    person = box(ax, 0.08, 0.72, "factual\n$x$", "white", 0.11)
    latent = box(ax, 0.27, 0.72, "flow: abduct\n$z = T(x)$", green + "66", 0.15)
    scores = box(ax, 0.08, 0.25, "preferences\nscores $s$", "white", 0.11)
    derived = box(ax, 0.27, 0.25, "mask of $A_u$\nhardness $h(s)$", grey, 0.15)
    mask_net = box(ax, 0.48, 0.72, "mask network\n$q_j = P(m_j = 1)$", blue, 0.16)
    mask = box(ax, 0.48, 0.48, "mask $m$\n(never outside $A_u$)", "white", 0.16)
    action_net = box(ax, 0.70, 0.48, "action network\nvalues $a_j$", blue, 0.16)
    world = box(ax, 0.70, 0.25, "flow: predict\n$do(x_I = a)$", green + "66", 0.16)
    result = box(ax, 0.92, 0.25, "counterfactual\n$x^{CF}$", "white", 0.12)
    for start, end, bend in (
        (person, latent, 0), (latent, mask_net, 0), (scores, derived, 0), (derived, mask_net, 0), (derived, mask, 0),
        (mask_net, mask, 0), (mask, action_net, 0), (latent, action_net, -0.45), (derived, action_net, 0.25),
        (action_net, world, 0), (world, result, 0),
    ):  # fmt: skip
        arrow(ax, start, end, bend)
    ax.text(0.92, 0.09, "classifier $h$, density $\\log p$", ha="center", fontsize=8)
    ax.text(0.92, 0.02, "judge it", ha="center", fontsize=8)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return ax


def marginal(ax: Axes, samples: Mapping[str, np.ndarray], name: str, bins: int = 40) -> Axes:
    """Histograms of one feature as densities, one outline for each key of `samples` ("data", "flow", ...)."""
    low = min(values.min() for values in samples.values())
    high = max(values.max() for values in samples.values())
    edges = np.linspace(low, high, bins + 1)
    for key, values in samples.items():
        filled = key == "data"
        ax.hist(
            values, edges, density=True, label=key, color=COLOURS[key], lw=1.4,
            histtype="stepfilled" if filled else "step", alpha=0.35 if filled else 1,
        )  # fmt: skip
    ax.set(xlabel=f"{readable(name)} (model units)", ylabel="density")
    return ax


def pair(ax: Axes, samples: Mapping[str, np.ndarray], levels: Sequence[float] = (0.1, 0.5, 0.9)) -> Axes:
    """Contours that hold the given shares of people, for two features (N, 2), one colour for each key."""
    both = np.concatenate(list(samples.values()))
    grid = [np.linspace(*np.quantile(both[:, k], (0.001, 0.999)), 60) for k in (0, 1)]
    mesh = np.stack(np.meshgrid(*grid), 0)
    for key, values in samples.items():
        kernel = gaussian_kde(values[:2000].T)
        density = kernel(mesh.reshape(2, -1)).reshape(mesh.shape[1:])
        cuts = np.quantile(kernel(values[:2000].T), [1 - share for share in sorted(levels, reverse=True)])
        ax.contour(*grid, density, levels=cuts, colors=COLOURS[key], linewidths=1.1, linestyles="--" if key == "flow" else "-")
    return ax


def band(ax: Axes, steps: np.ndarray, curves: np.ndarray, colour: str, label: str) -> Axes:
    """Mean of the curves (n_steps, n_members), and a band from the lowest to the highest."""
    ax.plot(steps, curves.mean(1), color=colour, label=label)
    ax.fill_between(steps, curves.min(1), curves.max(1), color=colour, alpha=0.2, lw=0)
    return ax


def beside_paper(ax: Axes, rows: pd.DataFrame, metric: str) -> Axes:
    """One metric by setting: ours as dots with the range over seeds, the paper's as dashes.

    Arguments:
        rows: As `studies.beside_paper` gives them.
    """
    rows = rows[rows.metric == metric]
    settings = list(dict.fromkeys(rows.setting))
    for shift, (method, own) in zip((-0.13, 0.13), rows.groupby("method", sort=False), strict=False):
        key = method.lower()
        at = np.array([settings.index(s) for s in own.setting]) + shift
        if own.seed_low.notna().all():
            ax.vlines(at, own.seed_low, own.seed_high, color=COLOURS[key], lw=4, alpha=0.3)
        ax.plot(at, own.ours, MARKERS[key], color=COLOURS[key], label=f"{method}, ours")
        ax.hlines(own.paper, at - 0.12, at + 0.12, color="#333333", lw=1.3, ls="--", label="the paper")
    ax.set_xticks(range(len(settings)), settings)
    ax.set(ylim=(-0.02, 1.03), ylabel=metric, xlabel="features a person may act on")
    return ax


def log_densities(ax: Axes, log_p: np.ndarray, log_p_cf: np.ndarray, valid: np.ndarray, low: float = -25.0) -> Axes:
    """Log-density after the action against before, a dot a person; below the diagonal is less plausible.

    Arguments:
        low: Values below are drawn at this edge, in nats.
    """
    for mask, colour, marker, label in ((valid, COLOURS["icarma"], "o", "valid"), (~valid, COLOURS["misled"], "x", "not valid")):
        ax.scatter(
            np.maximum(log_p[mask], low), np.maximum(log_p_cf[mask], low), s=6, marker=marker, lw=0.6,
            color=colour, alpha=0.35, label=label, rasterized=True,
        )  # fmt: skip
    ax.plot([low, -4], [low, -4], color="#333333", lw=1)
    ax.set(xlim=(-16, -4), ylim=(low - 1, -3), xlabel="log p(x) (nats)", ylabel="log p(x$^{CF}$) (nats)")
    return ax


def legend_once(figure: Figure, ax: Axes, n_columns: int = 4) -> None:
    """One legend below the figure, each label once."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncol=n_columns)
