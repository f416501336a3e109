"""The look of all figures: colours fixed by meaning, defaults, saving, legends."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from lib import checks, io
from lib.method.data import Population

# Okabe and Ito's colours, fixed by meaning
COLOURS = {
    "icarma": "#0072B2",
    "oracle": "#D55E00",
    "search": "#D55E00",
    "icarma (rco-trained)": "#56B4E9",
    "as printed": "#0072B2",
    "as chosen": "#009E73",
    "pruned": "#CC79A7",
    "trained on rco": "#56B4E9",
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
    "icarma (rco-trained)": "D",
    "as printed": "o",
    "as chosen": "^",
    "pruned": "v",
    "trained on rco": "D",
    "actionability ignored": "o",
    "actionability known": "o",
}
# at which an axis is marked: the two ends leave out one applicant of 100 each
RANKS = (1, 10, 30, 50, 70, 90, 99)
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
    """Save folder/name.png and .pdf, without dates: a rerun gives the same bytes."""
    for kind, undated in (("png", "Software"), ("pdf", "CreationDate")):
        drawn = BytesIO()
        figure.savefig(drawn, format=kind, metadata={undated: None})
        io.write(folder / f"{name}.{kind}", drawn.getvalue())


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
    figure.legend(
        list(once.values()), list(once), loc="outside lower center", ncol=n_columns
    )


def rank_axis(axis: Axis, population: Population, name: str) -> None:
    """Mark on an axis how many of 100 applicants have less of a feature.

    Arguments:
        axis: `ax.xaxis` or `ax.yaxis`, whose values are in the units
            of the data.
        population: The applicants are those of its recourse training
            split.
        name: Of the feature.
    Raises: ValueError: there is no such feature.
    """
    checks.one_of("feature", [name], population.features)
    everyone = population.to_records(population.x["recourse/train"])
    column = everyone[:, population.features.index(name)].numpy()
    axis.set_ticks(np.percentile(column, RANKS).tolist(), [f"{rank}" for rank in RANKS])
    axis.set_label_text(f"{readable(name)}: more than ... of 100 applicants")


def by_name(what: str, name: str, table: Mapping[str, Any]) -> Any:
    """Return what `COLOURS`, `MARKERS` or `LINES` give a name; capitals do not count.

    Raises: ValueError: there is nothing by that name.
    """
    key = name if name in table else name.lower()
    checks.one_of(what, [key], tuple(table))
    return table[key]


def need(rows: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError unless the table has these columns."""
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(
            f"The table has no column {', '.join(missing)}; "
            f"found {', '.join(map(str, rows))}."
        )
