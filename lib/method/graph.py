"""The causal graph over named features, a thin layer on networkx."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import networkx as nx
import torch
from torch import Tensor

from lib import checks


class Graph:
    """Hold the causal graph over D named features.

    It has `features` (their names), `parents` (direct causes by
    name), `parent_index` (direct causes by column), and `order`: the
    columns such that causes come before their effects.

    Arguments:
        parents: The direct causes of each feature, by name. Features
            keep the order in which they are listed; causes may be
            listed after their effects.
    Raises: ValueError: there are no features; causes are unknown,
        listed twice, or not a sequence of names; a feature causes
        itself; features cause each other in a circle.
    Example:
        >>> graph = Graph({"savings": ("income",), "income": (), "age": ()})
        >>> graph.features, graph.parent_index, graph.order
        (('savings', 'income', 'age'), [[1], [], []], [1, 0, 2])
    """

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        if not parents:
            raise ValueError("A graph needs at least one feature, got none.")
        self.features = tuple(parents)
        self.parents = {
            name: _checked_causes(name, causes, self.features)
            for name, causes in parents.items()
        }
        self.parent_index = [
            [self.features.index(cause) for cause in causes]
            for causes in self.parents.values()
        ]
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(range(len(self.features)))
        self._graph.add_edges_from(
            (i, j) for j, causes in enumerate(self.parent_index) for i in causes
        )
        self.order = self._causal_order()

    @classmethod
    def from_edges(
        cls, features: Sequence[str], edges: nx.DiGraph | Iterable[Sequence[str]]
    ) -> "Graph":
        """Return the graph over these features with edges (cause, effect).

        Causes of one feature stand in the order of the features, in
        whatever order the edges come.

        Arguments:
            edges: Pairs (cause, effect), or a networkx DiGraph.
        Raises: ValueError: as `Graph`; an edge is no pair or given
            twice; a feature is listed twice.
        Example:
            >>> Graph.from_edges(["age", "income"], [("age", "income")]).parents
            {'age': (), 'income': ('age',)}
        """
        if isinstance(edges, nx.Graph):
            if not edges.is_directed():
                raise ValueError(
                    "The graph has no directions: give a networkx.DiGraph, from causes to "
                    "effects."
                )
            edges = list(edges.edges)
        parents: dict[str, list[str]] = {name: [] for name in features}
        if len(parents) < len(features):
            twice = sorted({name for name in features if list(features).count(name) > 1})
            raise ValueError(
                f"Features are listed twice: {', '.join(twice)}. Expected each once."
            )
        for edge in edges:
            if isinstance(edge, str) or len(edge) != 2:
                raise ValueError(f"Expected edges as pairs (cause, effect), got {edge!r}.")
            cause, effect = edge
            checks.one_of("feature of an edge", (cause, effect), tuple(parents))
            if cause in parents[effect]:
                raise ValueError(
                    f"The edge {cause} -> {effect} is given twice. Expected each once."
                )
            parents[effect].append(cause)
        order = list(parents).index
        return cls({name: sorted(causes, key=order) for name, causes in parents.items()})

    def _causal_order(self) -> list[int]:
        """Return columns with causes first, else in the order in which they are listed."""
        try:
            return list(nx.lexicographical_topological_sort(self._graph, key=int))
        except nx.NetworkXUnfeasible:
            edges = nx.find_cycle(self._graph)
            columns = [edges[0][0], *(j for _, j in edges)]
            circle = " -> ".join(self.features[i] for i in columns)
            raise ValueError(
                f"Some features cause each other in a circle: {circle}. "
                "Remove or turn round one of these edges."
            ) from None

    def __eq__(self, other: object) -> bool:
        """Return whether both list the same features in one order, with equal causes."""
        return isinstance(other, Graph) and [
            (name, set(causes)) for name, causes in self.parents.items()
        ] == [(name, set(causes)) for name, causes in other.parents.items()]

    def __hash__(self) -> int:
        return hash(self.features)

    def __repr__(self) -> str:
        return f"Graph({self.parents})"

    def index(self, name: str) -> int:
        """Return the column of a feature.

        Raises: ValueError: there is none of that name.
        """
        checks.one_of("feature", [name], self.features)
        return self.features.index(name)

    def adjacency(self) -> Tensor:
        """Return who causes whom, with shape (D, D): entry (j, i) is True where i causes j.

        Example:
            >>> Graph({"age": (), "income": ("age",)}).adjacency().tolist()
            [[False, False], [True, False]]
        """
        matrix = torch.zeros(len(self.features), len(self.features), dtype=torch.bool)
        for j, causes in enumerate(self.parent_index):
            matrix[j, causes] = True
        return matrix

    @cached_property
    def reachability(self) -> Tensor:
        """Where directed paths lead, with shape (D, D): entry (i, j) is True from i to j.

        Example:
            >>> graph = Graph({"age": (), "income": ("age",), "savings": ("income",)})
            >>> graph.reachability.int()
            tensor([[0, 1, 1],
                    [0, 0, 1],
                    [0, 0, 0]], dtype=torch.int32)
        """
        matrix = torch.zeros(len(self.features), len(self.features), dtype=torch.bool)
        for i in range(len(self.features)):
            matrix[i, sorted(nx.descendants(self._graph, i))] = True
        return matrix

    def descendants_of(self, columns: Iterable[int]) -> list[int]:
        """Return the columns downstream of an action on these columns, ascending.

        An acted-on column is among them only if another one reaches
        it.

        Raises: ValueError: there is no such column.
        """
        columns = list(columns)
        checks.one_of("column", columns, range(len(self.features)))
        return self.reachability[columns].any(0).nonzero().squeeze(-1).tolist()

    def affected_by(self, columns: Iterable[int]) -> list[int]:
        """Return the columns that an action on these columns can change, ascending.

        Raises: ValueError: there is no such column.
        """
        columns = list(columns)
        return sorted({*columns, *self.descendants_of(columns)})

    def roots_within(self, columns: Sequence[int]) -> list[int]:
        """Return those of these columns none of whose direct causes is among them.

        Raises: ValueError: there is no such column.
        """
        checks.one_of("column", columns, range(len(self.features)))
        return [j for j in columns if not set(self.parent_index[j]) & set(columns)]

    def components(self, columns: Iterable[int]) -> list[list[int]]:
        """Return the connected components of what an action on these columns can change.

        No cause in one component has an effect in another, so they
        can be searched separately.

        Raises: ValueError: there is no such column.
        Example:
            >>> graph = Graph({"income": (), "savings": ("income",), "rent": ()})
            >>> graph.components([0, 2])
            [[0, 1], [2]]
        """
        affected = self._graph.subgraph(self.affected_by(columns))
        components = nx.connected_components(affected.to_undirected(as_view=True))
        return sorted(sorted(component) for component in components)


def _checked_causes(
    name: str, causes: Sequence[str], features: Sequence[str]
) -> tuple[str, ...]:
    """Return the causes of a feature, or raise ValueError."""
    if isinstance(causes, str):
        raise ValueError(
            f"The causes of {name} are the text {causes!r}. Expected names in a tuple "
            f"or a list, such as ({causes!r},)."
        )
    if isinstance(causes, Mapping) or not isinstance(causes, Iterable):
        raise ValueError(
            f"The causes of {name} are {causes!r}. Expected names in a tuple or a list."
        )
    checks.one_of(f"cause of {name}", causes, features)
    if len(set(causes)) < len(causes):
        raise ValueError(
            f"The causes of {name} are {', '.join(causes)}: expected each once."
        )
    if name in causes:
        raise ValueError(f"{name} is listed among its own causes. Remove it there.")
    return tuple(causes)
