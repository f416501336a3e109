"""The look of all figures: colours fixed by meaning, defaults, saving, legends."""

from io import BytesIO
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import io

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
LINES = {"constant": ":", "concave": "--", "linear": "-", "convex": "-."}


def use_style() -> None:
    """Set matplotlib's defaults for every figure of the notebooks."""
    style.use(Path(__file__).with_name("icarma.mplstyle"))


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
    handles, labels = [*once.values()], [*once]
    figure.legend(handles, labels, loc="outside lower center", ncol=n_columns)
