"""The code behind the notebooks: iCARMA, individualized and amortized causal recourse.

Somebody is refused. Which changes, that they can make and do not find
too hard, would be accepted, and what follows from them? Read the rooms
of `method` in this order; each uses only those before it:

    world        graphs, and what a person would look like, had they acted otherwise
    scm          a world whose equations are known
    maps         one feature's map between its values and its noise
    networks     the small networks behind the maps, and their fit
    flow         a world that is learned: the causal normalizing flow
    limits       between what values a person may set a feature
    preferences  what a person can do and finds hard; weights and priors that follow
    frames       tables of people as numbers
    population   who applies: splits, units, which features may be acted on
    samplers     preferences that are drawn, for training and for studies
    classifier   who decides
    problem      population, classifier and flow; what a recommendation and a solver are
    icarma       the mask network, the action network, and their loss
    training     their fit
    pruned       what is recommended, less what can be left out, from the hardest on
    grid         the oracle: the cheapest action on a grid
    metrics      what a recommendation is worth, person by person
    words        the same in sentences, in the data's units
    loan         the population that most notebooks are about

Below them lies `base` (arithmetic with equal bits, the loop of every
fit, files, tables, checks). Above them: `search` (cheapest actions
over all values), `paper` (its studies, and Give Me Some Credit) and
`beyond`, whose guests know nothing of each other: propose, hare,
evaluation, own_table, millions. Imports go down only.

The names below can be imported from here. They are loaded when they
are asked for; `import lib` alone loads nothing.

Example:
    >>> from lib import Graph
    >>> Graph({"income": (), "savings": ("income",)}).features
    ('income', 'savings')
"""

from importlib import import_module
from typing import Any

# each name, and where it stands
_ROOMS = {
    "CausalFlow": "lib.method.flow",
    "Graph": "lib.method.world",
    "Grid": "lib.method.grid",
    "ICarma": "lib.method.icarma",
    "Population": "lib.method.population",
    "Preferences": "lib.method.preferences",
    "Problem": "lib.method.problem",
    "Profile": "lib.method.preferences",
    "Pruned": "lib.method.pruned",
    "RankingSampler": "lib.method.samplers",
    "Recommendation": "lib.method.problem",
    "SCM": "lib.method.scm",
    "Search": "lib.search.continuous",
    "Settings": "lib.method.icarma",
    "from_words": "lib.method.preferences",
    "per_person": "lib.method.metrics",
}

__all__ = list(_ROOMS)


def __getattr__(name: str) -> Any:
    """Return a name of `_ROOMS` from its room."""
    if name not in _ROOMS:
        raise AttributeError(f"lib has no {name!r}; it offers {', '.join(_ROOMS)}.")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """Return what can be imported from here."""
    return sorted([*globals(), *_ROOMS])
