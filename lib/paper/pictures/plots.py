"""All pictures under one name: each draws on the axes it is given and returns them."""

from lib.paper.pictures.diagrams import CREDIT_PLACES as CREDIT_PLACES
from lib.paper.pictures.diagrams import LOAN_PLACES as LOAN_PLACES
from lib.paper.pictures.diagrams import action_on_graph as action_on_graph
from lib.paper.pictures.diagrams import architecture as architecture
from lib.paper.pictures.diagrams import causal_graph as causal_graph
from lib.paper.pictures.diagrams import decision_slice as decision_slice
from lib.paper.pictures.look import COLOURS as COLOURS
from lib.paper.pictures.look import GROUPS as GROUPS
from lib.paper.pictures.look import LINES as LINES
from lib.paper.pictures.look import MARKERS as MARKERS
from lib.paper.pictures.look import legend_once as legend_once
from lib.paper.pictures.look import readable as readable
from lib.paper.pictures.look import save as save
from lib.paper.pictures.look import use_style as use_style
from lib.paper.pictures.results import beside_paper as beside_paper
from lib.paper.pictures.results import errors_by_place as errors_by_place
from lib.paper.pictures.results import intervals as intervals
from lib.paper.pictures.results import marginal as marginal
