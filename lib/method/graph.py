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
        listed twice, or not a sequence of names; features cause each
        other in a circle.
    Example:
        >>> graph = Graph({"savings": ("income",), "income": (), "age": ()})
        >>> graph.features, graph.parent_index, graph.order
        (('savings', 'income', 'age'), [[1], [], []], [1, 0, 2])
    """

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        checks.not_empty("parents", parents)
        self.features = tuple(parents)
        for name, causes in parents.items():
            _check_causes(name, causes, self.features)
        self.parents = {name: tuple(causes) for name, causes in parents.items()}
        self.parent_index = [
            [self.features.index(cause) for cause in causes]
            for causes in self.parents.values()
        ]
        self._graph = nx.DiGraph(dict(enumerate(self.parent_index))).reverse()
        if not nx.is_directed_acyclic_graph(self._graph):
            edges = nx.find_cycle(self._graph)
            circle = " -> ".join(self.features[i] for i, _ in [*edges, edges[0]])
            raise ValueError(
                f"Some features cause each other in a circle: {circle}. "
                "Remove or turn round one of these edges."
            )
        self.order = list(nx.lexicographical_topological_sort(self._graph))

    @classmethod
    def from_edges(
        cls, features: Sequence[str], edges: nx.DiGraph | Iterable[Sequence[str]]
    ) -> "Graph":
        """Return the graph over these features with edges (cause, effect).

        Causes of one feature stand in the order of the features, in
        whatever order the edges come.

        Arguments:
            edges: Pairs (cause, effect), or a networkx DiGraph.
        Raises: ValueError: as `Graph`; an edge is no pair, or given
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
            edges = nx.DiGraph(edges).edges  # parallel edges are one
        if len(set(features)) < len(features):
            raise ValueError(f"Expected each feature once, got {', '.join(features)}.")
        parents: dict[str, list[str]] = {name: [] for name in features}
        for edge in edges:
            if isinstance(edge, str) or len(edge) != 2:
                raise ValueError(f"Expected edges as pairs (cause, effect), got {edge!r}.")
            checks.one_of("feature of an edge", edge, features)
            cause, effect = edge
            parents[effect].append(cause)
        order = list(features).index
        return cls({name: sorted(causes, key=order) for name, causes in parents.items()})

    def __eq__(self, other: object) -> bool:
        """Return whether both list the same features in one order, with equal causes."""
        return (
            isinstance(other, Graph)
            and self.features == other.features
            and self._graph.adj == other._graph.adj
        )

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
        causes_whom = nx.to_numpy_array(self._graph, dtype=bool)
        return torch.from_numpy(causes_whom).T.contiguous()

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
        paths = nx.transitive_closure_dag(self._graph)
        return torch.from_numpy(nx.to_numpy_array(paths, dtype=bool))

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
        """Return those of these columns none of whose direct causes is among them."""
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


def _check_causes(name: str, causes: Sequence[str], features: Sequence[str]) -> None:
    """Raise ValueError unless the causes of a feature are features, each once."""
    if isinstance(causes, str | Mapping) or not isinstance(causes, Iterable):
        text = "the text " if isinstance(causes, str) else ""
        raise ValueError(
            f"The causes of {name} are {text}{causes!r}. Expected names in a tuple or a "
            "list, such as ('income',)."
        )
    checks.one_of(f"cause of {name}", causes, features)
    if len(set(causes)) < len(causes):
        raise ValueError(
            f"The causes of {name} are {', '.join(causes)}: expected each once."
        )
