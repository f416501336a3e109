"""A causal graph: which features there are, in which order, who reaches whom, what falls apart."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import networkx as nx
import torch
from torch import Tensor

from lib.base import checks


class Graph:
    """Hold the causal graph over D named features.

    Arguments:
        parents: The direct causes of each feature, by name. Features keep the order in which
            they are listed; causes may be listed after their effects.
    Raises: ValueError: a cause is unknown or listed twice, or features cause each other in a
        circle.
    Example:
        >>> graph = Graph({"income": (), "savings": ("income",), "age": ()})
        >>> graph.features, graph.parent_index
        (('income', 'savings', 'age'), [[], [0], []])
    """

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        self.features = tuple(parents)
        self.parents = {name: tuple(causes) for name, causes in parents.items()}
        for name, causes in self.parents.items():
            checks.known(f"cause of {name}", causes, self.features)
            if len(set(causes)) < len(causes):
                raise ValueError(
                    f"The causes of {name} are {', '.join(causes)}: expected each once."
                )
        self.parent_index = [
            [self.index(p) for p in causes] for causes in self.parents.values()
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
    def from_edges(
        cls, features: Sequence[str], edges: Iterable[tuple[str, str]]
    ) -> "Graph":
        """Return the graph over these features with edges (cause, effect).

        Example:
            >>> Graph.from_edges(["age", "income"], [("age", "income")]).parents
            {'age': (), 'income': ('age',)}
        """
        parents: dict[str, list[str]] = {name: [] for name in features}
        for cause, effect in edges:
            checks.known("feature of an edge", (cause, effect), tuple(parents))
            parents[effect].append(cause)
        order = list(parents).index
        return cls({name: sorted(causes, key=order) for name, causes in parents.items()})

    def _causal_order(self) -> list[int]:
        """Return columns such that causes come before their effects, else as they are listed."""
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
        """Return whether both have the same features in the same order, and the same causes."""
        return isinstance(other, Graph) and [
            (name, set(causes)) for name, causes in self.parents.items()
        ] == [(name, set(causes)) for name, causes in other.parents.items()]

    __hash__ = object.__hash__

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

        An acted-on column is among them only if another one reaches it.

        Example:
            >>> Graph({"age": (), "income": ("age",), "savings": ("income",)}).reached_by([0, 1])
            [1, 2]
        """
        return sorted(set().union(*(self._descendants[i] for i in columns)))

    def moved_by(self, columns: Sequence[int]) -> list[int]:
        """Return the columns that an action on these columns can change, ascending.

        Example:
            >>> Graph({"age": (), "income": ("age",), "savings": ("income",)}).moved_by([1])
            [1, 2]
        """
        return sorted({*columns, *self.reached_by(columns)})

    def at_rest(self, columns: Sequence[int]) -> list[int]:
        """Return those of these columns none of whose own causes is among them.

        Example:
            >>> Graph({"age": (), "income": ("age",), "savings": ("income",)}).at_rest([1, 2])
            [1]
        """
        return [j for j in columns if not set(self.parent_index[j]) & set(columns)]

    def blocks(self, columns: Sequence[int]) -> list[list[int]]:
        """Return the connected parts of what an action on these columns can change.

        No cause in one part has an effect in another, so parts can be searched apart.

        Example:
            >>> graph = Graph({"age": (), "income": ("age",), "savings": ("income",), "rent": ()})
            >>> graph.blocks([1, 3])
            [[1, 2], [3]]
        """
        moved = self._graph.subgraph(self.moved_by(columns))
        parts = nx.connected_components(moved.to_undirected(as_view=True))
        return sorted(sorted(part) for part in parts)
