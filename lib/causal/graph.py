"""A causal graph: its features, their order, who reaches whom, and what falls apart."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import networkx as nx
import torch
from torch import Tensor

from lib.base import checks


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
            name: self._causes(name, causes) for name, causes in parents.items()
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
        self._descendants = [
            nx.descendants(self._graph, j) for j in range(len(self.features))
        ]

    @classmethod
    def from_edges(cls, features: Sequence[str], edges: Iterable[Sequence[str]]) -> "Graph":
        """Return the graph over these features with edges (cause, effect).

        Causes of one feature stand in the order of the features, in
        whatever order the edges come. Rows of a table are edges, too:
        `table[["cause", "effect"]].to_numpy()`.

        Raises: ValueError: as `Graph`; an edge is no pair or given
            twice; a feature is listed twice.
        Example:
            >>> Graph.from_edges(["age", "income"], [("age", "income")]).parents
            {'age': (), 'income': ('age',)}
        """
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
            checks.known("feature of an edge", (cause, effect), tuple(parents))
            if cause in parents[effect]:
                raise ValueError(
                    f"The edge {cause} -> {effect} is given twice. Expected each once."
                )
            parents[effect].append(cause)
        order = list(parents).index
        return cls({name: sorted(causes, key=order) for name, causes in parents.items()})

    def _causes(self, name: str, causes: Sequence[str]) -> tuple[str, ...]:
        """Return the causes of this feature, checked."""
        if isinstance(causes, str):
            raise ValueError(
                f"The causes of {name} are the text {causes!r}. Expected names in a tuple "
                f"or a list, such as ({causes!r},)."
            )
        if isinstance(causes, Mapping) or not isinstance(causes, Iterable):
            raise ValueError(
                f"The causes of {name} are {causes!r}. Expected names in a tuple or a list."
            )
        checks.known(f"cause of {name}", causes, self.features)
        if len(set(causes)) < len(causes):
            raise ValueError(
                f"The causes of {name} are {', '.join(causes)}: expected each once."
            )
        if name in causes:
            raise ValueError(f"{name} is listed among its own causes. Remove it there.")
        return tuple(causes)

    def _causal_order(self) -> list[int]:
        """Return columns with causes first, else in the order in which they are listed."""
        try:
            return list(nx.lexicographical_topological_sort(self._graph, key=int))
        except nx.NetworkXUnfeasible:
            edges = nx.find_cycle(self._graph)
            circle = " -> ".join(
                self.features[i] for i in [edges[0][0], *(j for _, j in edges)]
            )
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
        Example:
            >>> Graph({"age": (), "income": ("age",)}).index("income")
            1
        """
        checks.known("feature", [name], self.features)
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
    def reaches(self) -> Tensor:
        """Where directed paths lead, with shape (D, D): entry (i, j) is True from i to j.

        Example:
            >>> Graph({"age": (), "income": ("age",), "savings": ("income",)}).reaches.int()
            tensor([[0, 1, 1],
                    [0, 0, 1],
                    [0, 0, 0]], dtype=torch.int32)
        """
        matrix = torch.zeros(len(self.features), len(self.features), dtype=torch.bool)
        for i, descendants in enumerate(self._descendants):
            matrix[i, sorted(descendants)] = True
        return matrix

    def reached_by(self, columns: Iterable[int]) -> list[int]:
        """Return the columns downstream of an action on these columns, ascending.

        An acted-on column is among them only if another one reaches
        it.

        Raises: ValueError: there is no such column.
        Example:
            >>> graph = Graph({"age": (), "income": ("age",), "savings": ("income",)})
            >>> graph.reached_by([0, 1])
            [1, 2]
        """
        columns = list(columns)
        checks.known("column", columns, range(len(self.features)))
        return sorted(set().union(*(self._descendants[i] for i in columns)))

    def moved_by(self, columns: Iterable[int]) -> list[int]:
        """Return the columns that an action on these columns can change, ascending.

        Raises: ValueError: there is no such column.
        Example:
            >>> graph = Graph({"age": (), "income": ("age",), "savings": ("income",)})
            >>> graph.moved_by([1])
            [1, 2]
        """
        columns = list(columns)
        return sorted({*columns, *self.reached_by(columns)})

    def at_rest(self, columns: Sequence[int]) -> list[int]:
        """Return those of these columns none of whose direct causes is among them.

        Raises: ValueError: there is no such column.
        Example:
            >>> graph = Graph({"age": (), "income": ("age",), "savings": ("income",)})
            >>> graph.at_rest([1, 2])
            [1]
        """
        checks.known("column", columns, range(len(self.features)))
        return [j for j in columns if not set(self.parent_index[j]) & set(columns)]

    def blocks(self, columns: Iterable[int]) -> list[list[int]]:
        """Return the connected parts of what an action on these columns can change.

        No cause in one part has an effect in another, so parts can be
        searched apart.

        Raises: ValueError: there is no such column.
        Example:
            >>> graph = Graph({"income": (), "savings": ("income",), "rent": ()})
            >>> graph.blocks([0, 2])
            [[0, 1], [2]]
        """
        moved = self._graph.subgraph(self.moved_by(columns))
        parts = nx.connected_components(moved.to_undirected(as_view=True))
        return sorted(sorted(part) for part in parts)
