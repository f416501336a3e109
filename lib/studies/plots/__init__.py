"""One look for all figures. Functions draw on the axes they are given and return them."""

from lib.studies.plots.diagrams import architecture, arrow, box, causal_graph
from lib.studies.plots.distributions import band, log_densities, marginal, pair
from lib.studies.plots.look import (
    COLOURS,
    GROUPS,
    LINES,
    MARKERS,
    legend_once,
    readable,
    save,
    use_style,
)
from lib.studies.plots.results import beside_paper, frontier, interval_band, intervals

__all__ = [
    "COLOURS",
    "GROUPS",
    "LINES",
    "MARKERS",
    "architecture",
    "arrow",
    "band",
    "beside_paper",
    "box",
    "causal_graph",
    "frontier",
    "interval_band",
    "intervals",
    "legend_once",
    "log_densities",
    "marginal",
    "pair",
    "readable",
    "save",
    "use_style",
]
