"""All pictures under one name: each draws on the axes it is given and returns them."""

from lib.paper.pictures.diagrams import architecture, arrow, box, causal_graph, proposing
from lib.paper.pictures.distributions import (
    band,
    errors_by_place,
    log_densities,
    marginal,
)
from lib.paper.pictures.look import (
    COLOURS,
    GROUPS,
    LINES,
    MARKERS,
    legend_once,
    rank_axis,
    readable,
    save,
    use_style,
)
from lib.paper.pictures.portraits import (
    CREDIT_PLACES,
    LOAN_PLACES,
    action_on_graph,
    decision_slice,
)
from lib.paper.pictures.results import beside_paper, intervals

__all__ = [
    "COLOURS",
    "CREDIT_PLACES",
    "GROUPS",
    "LINES",
    "LOAN_PLACES",
    "MARKERS",
    "action_on_graph",
    "architecture",
    "arrow",
    "band",
    "beside_paper",
    "box",
    "causal_graph",
    "decision_slice",
    "errors_by_place",
    "intervals",
    "legend_once",
    "log_densities",
    "marginal",
    "proposing",
    "rank_axis",
    "readable",
    "save",
    "use_style",
]
