r"""Individualized, amortized, causal recourse: iCARMA, and what stands around it.

Somebody with features x is refused, h(x) < 1/2. Which changes a of
features that this person can change, A_u, would be accepted at the
lowest cost by their own weights w, and leave a profile that is as
likely as before, once everything has followed from them?

.. math::

    \min_{I \subseteq A_u,\, a} \; \frac1K \sum_{j \in I} w_j\,
        \frac{(x_j - a_j)^2}{\text{range}_j}
    \quad \text{with} \quad h(x^{CF}) \ge \tfrac12, \\
    \log p(x^{CF}) \ge \log p(x), \quad
    x^{CF} = f\big(f^{-1}(x);\, do(x_I = a)\big)

Here f gives the features that follow from a person's noise.

Read `lib.method` in this order; each module uses only those before it::

    graph        the causal graph
    scm          causal models: sample, abduct, counterfactual; known equations
    flow         the causal normalizing flow: a causal model learned from data
    limits       to what values a person can set a feature
    preferences  what a person can do and finds hard; difficulty and weights
    data         who applies: splits, units, which features can be acted on
    samplers     preferences drawn for training and for studies
    classifier   who decides
    problem      population, classifier and flow; what a recommendation is
    icarma       the mask network, the action network, their loss and fit
    grid         the oracle: the cheapest action on a grid
    metrics      validity, plausibility, hap, cost; pruning
    report       recommendations in words and tables
    loan         the population that most notebooks are about

`lib.search` finds cheapest actions over all values and minimal
unlocking sets; its `recommend` is the short way from applicants and
answers to a table. `lib.paper` holds the paper's studies, `lib.beyond`
what goes further (batches, evaluation, hare, own_table, propose). Imports go
one way: method < search < paper < beyond. Beside them are `io`
(files), `checks` (argument validation) and `reproducible` (seeds, one
thread).

The names below can be imported from here; `import lib` alone loads
nothing.

Example:
    >>> from lib import Graph
    >>> Graph({"income": (), "savings": ("income",)}).features
    ('income', 'savings')
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "CausalFlow": "lib.method.flow",
    "Classifier": "lib.method.classifier",
    "Graph": "lib.method.graph",
    "Grid": "lib.method.grid",
    "ICarma": "lib.method.icarma",
    "Population": "lib.method.data",
    "Preferences": "lib.method.preferences",
    "Problem": "lib.method.problem",
    "Profile": "lib.method.preferences",
    "RankingSampler": "lib.method.samplers",
    "Recommendation": "lib.method.problem",
    "SCM": "lib.method.scm",
    "Search": "lib.search.continuous",
    "Settings": "lib.method.icarma",
    "from_words": "lib.method.preferences",
    "recommend": "lib.search.recommend",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Return a public name from its module, which is loaded then."""
    if name not in _MODULES:
        raise AttributeError(f"lib has no {name!r}; it offers {', '.join(_MODULES)}.")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return what can be imported from here."""
    return sorted([*globals(), *_MODULES])
