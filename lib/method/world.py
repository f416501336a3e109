"""A world: a causal graph, and what a person would look like, had they acted otherwise.

The true SCM (`lib/method/scm.py`) and the causal flow
(`lib/method/flow.py`) are both worlds. They differ in how one feature
follows from its parents and its noise. The walk through the graph is
the same, and stands here.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import networkx as nx
import numpy as np
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


class World:
    """A causal graph whose features follow from their parents and their noise.

    Subclasses give `abduct` (features to noise), `feature` (one
    feature from its parents and its noise) and `draw_noise`. One
    person has shape (D,), many have (N, D) or any (*, D).

    Arguments:
        graph: Over the D features.
    Example:
        Savings are half of the income, and what chance adds:

        >>> from lib.method.world import Graph
        >>> class Savings(World):
        ...     def abduct(self, x):
        ...         return x - torch.stack([torch.zeros_like(x[..., 0]), x[..., 0] / 2], -1)
        ...
        ...     def feature(self, j, x_parents, noise):
        ...         return noise + x_parents.sum(-1) / 2
        >>> world = Savings(Graph({"income": (), "savings": ("income",)}))
        >>> world.counterfactual(torch.tensor([4.0, 3.0]), do={"income": 6.0})
        tensor([6., 4.])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the D features, in the order of the graph.

        Example:
            >>> World(Graph({"income": (), "savings": ("income",)})).features
            ('income', 'savings')
        """
        return self.graph.features

    def index(self, name: str) -> int:
        """Return the column of a feature.

        Raises: ValueError: there is none of that name.
        Example:
            >>> World(Graph({"income": (), "savings": ("income",)})).index("savings")
            1
        """
        return self.graph.index(name)

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless x can be handed to this world: finite numbers, (*, D).

        Arguments:
            name: What the message calls x.
        Example:
            >>> World(Graph({"income": (), "savings": ()})).check("x", torch.zeros(3, 2))
        """
        checks.people(name, x, self.features)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features, both with shape (*, D).

        Raises: ValueError: x has another shape, or is not finite.
        Example:
            >>> x = loan.scm().sample(2, np.random.default_rng(0))
            >>> noise = loan.scm().abduct(x)
            >>> torch.allclose(noise[:, 0], x[:, 0])  # gender has no causes
            True
        """
        raise NotImplementedError

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j (*,) from its parents (*, P) and its own noise (*,).

        Example:
            Savings of somebody without income, and without luck, in
            the Loan model:
            >>> loan.scm().feature(6, torch.tensor([0.0]), torch.tensor(0.0))
            tensor(-4.)
        """
        raise NotImplementedError

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return noise as this world's law has it, with shape (N, D).

        Example:
            >>> loan.scm().draw_noise(3, np.random.default_rng(0)).shape
            torch.Size([3, 7])
        """
        raise NotImplementedError

    def sample(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return the features of people drawn from this world, with shape (N, D).

        Raises: ValueError: n_people is no whole number above zero.
        Example:
            >>> x = loan.scm().sample(1_000, np.random.default_rng(0))
            >>> share_of_ones = x[:, 0].mean()  # gender is 0 or 1
            >>> round(share_of_ones.item(), 1)
            0.5
        """
        checks.counts(n_people=n_people)
        return self.predict(self.draw_noise(n_people, rng))

    def predict(self, noise: Tensor) -> Tensor:
        """Return the features that follow from the noise, both with shape (*, D).

        This is the inverse of `abduct`.

        Raises: ValueError: noise has another shape, or is not finite.
        Example:
            >>> x = loan.scm().sample(5, np.random.default_rng(0))
            >>> torch.allclose(loan.scm().predict(loan.scm().abduct(x)), x)
            True
        """
        self.check("noise", noise)
        columns = list(noise.unbind(-1))
        for j in self.graph.order:
            columns[j] = self.feature(j, self.of_parents(j, columns), noise[..., j])
        return torch.stack(columns, -1)

    def of_parents(self, j: int, columns: Sequence[Tensor]) -> Tensor:
        """Return the direct causes of feature j side by side, with shape (*, P).

        Arguments:
            columns: All D features, each with shape (*,).
        Example:
            >>> world = World(Graph({"age": (), "wage": (), "savings": ("age", "wage")}))
            >>> world.of_parents(2, [torch.tensor(value) for value in (30.0, 2.0, 9.0)])
            tensor([30.,  2.])
        """
        causes = [columns[i] for i in self.graph.parent_index[j]]
        if not causes:
            return columns[0].new_zeros(*columns[0].shape, 0)
        return torch.stack(causes, -1)

    def counterfactual(
        self,
        x: Tensor,
        is_acted: Tensor | None = None,
        values: Tensor | None = None,
        noise: Tensor | None = None,
        *,
        do: Mapping[str, float | Tensor] | None = None,
    ) -> Tensor:
        r"""Return each person after an action :math:`do(X_I = a)`.

        .. math:: x^{CF}_j = a_j \text{ if } j \in I, \text{ else }
                  f_j(x^{CF}_{pa(j)}, u_j), \quad u = f^{-1}(x)

        The action is given in one of two ways: as `is_acted` and
        `values`, so that each person has their own action; or by name
        as `do`, so that all act on the same features.

        Arguments:
            x: Features before the action, with shape (*, D).
            is_acted: True where the person acts, with shape (*, D).
            values: What they set it to, with shape (*, D); read only
                where `is_acted`.
            noise: What `abduct` gives for x, where that is known
                already.
            do: What each feature by name is set to: a number, or a
                tensor with shape (*,).
        Returns: Features after the action, with shape (*, D).
            Features that no acted-on feature reaches are returned
            unchanged, to the bit.
        Raises: ValueError: the action is given in both ways or in
            none; shapes or dtypes differ; a feature is unknown; a
            value that is used is not finite.
        Source: sections 3 and 4 of arXiv:2604.08030 (abduction,
            action, prediction). By hand in notebook 01.
        Example:
            Of two people, everyone earns 2 more; then only the first
            does. Savings follow.

            >>> from scipy import stats
            >>> from lib.method.scm import additive, SCM
            >>> scm = SCM({
            ...     "income": additive((), lambda pa: 0.0, stats.norm()),
            ...     "savings": additive(("income",), lambda pa: pa["income"], stats.norm()),
            ... })
            >>> x = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
            >>> scm.counterfactual(x, do={"income": x[:, 0] + 2})
            tensor([[3., 5.],
                    [4., 4.]])
            >>> is_acted = torch.tensor([[True, False], [False, False]])
            >>> scm.counterfactual(x, is_acted, x + 2)
            tensor([[3., 5.],
                    [2., 2.]])
        """
        self.check("x", x)
        if do is not None and is_acted is None and values is None:
            is_acted, values = self._by_column(x, do)
        elif do is not None or is_acted is None or values is None:
            raise ValueError(
                "Expected an action in one of two ways: "
                "counterfactual(x, is_acted, values), or "
                'counterfactual(x, do={"income": 3.0}).'
            )
        _matches("is_acted", is_acted, x, torch.bool)
        _matches("values", values, x, x.dtype)
        values = torch.where(is_acted, values, torch.zeros((), dtype=x.dtype))
        checks.people("values", values, self.features)
        if noise is None:
            noise = self.abduct(x)
        else:
            _matches("noise", noise, x, x.dtype)
        noise = self.noise_after(x, noise)
        columns = torch.where(is_acted, values, x).unbind(-1)
        return torch.stack(self.follow(columns, self.reached(is_acted), noise), -1)

    def noise_after(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return the noise behind features that follow from an action: the person's own.

        Arguments:
            x, noise: Features before the action, and the noise behind
                them, each with shape (*, D).
        Example:
            >>> x, noise = torch.zeros(1, 7), torch.ones(1, 7)
            >>> bool((loan.scm().noise_after(x, noise) == noise).all())
            True
        """
        return noise

    def reached(self, is_acted: Tensor) -> dict[int, Tensor]:
        """Return who moves each feature by acting on others, by its column.

        Arguments:
            is_acted: True where the person acts, with shape (*, D).
        Returns: A mask (*,) for each feature that somebody moves,
            causes first.
        Example:
            >>> world = World(Graph({"income": (), "savings": ("income",)}))
            >>> world.reached(torch.tensor([[True, False], [True, True]]))
            {1: tensor([ True, False])}
        """
        downstream = (is_acted.float() @ self.graph.reaches.float()) > 0
        moved = downstream & ~is_acted
        may_move = moved.reshape(-1, len(self.features)).any(0).tolist()
        return {j: moved[..., j] for j in self.graph.order if may_move[j]}

    def follow(
        self, columns: Sequence[Tensor], reached: Mapping[int, Tensor], noise: Tensor
    ) -> list[Tensor]:
        """Return features after an action, once what is acted on has been set.

        It is the walk of `counterfactual` without its checks: what is
        set must be finite. It is for callers that try many values on
        the same features.

        Arguments:
            columns: The D features: as they are set where they are
                acted on, else as before; each with shape (*,).
            reached: What the action reaches, as the method of this
                name gives it.
            noise: As `noise_after` gives it, with shape (*, D).
        Example:
            >>> world, x = loan.scm(), torch.zeros(1, 7)
            >>> income, acts = world.index("income"), torch.zeros(1, 7, dtype=torch.bool)
            >>> acts[:, income] = True
            >>> columns = torch.where(acts, x + 1, x).unbind(-1)
            >>> after = world.follow(columns, world.reached(acts), world.abduct(x))
            >>> by_name = world.counterfactual(x, do={"income": 1.0})
            >>> torch.equal(torch.stack(after, -1), by_name)
            True
        """
        after = list(columns)
        for j, moves in reached.items():
            follows = self.feature(j, self.of_parents(j, after), noise[..., j])
            after[j] = torch.where(moves, follows, after[j])
        return after

    def _by_column(
        self, x: Tensor, do: Mapping[str, float | Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return `is_acted` and `values` (*, D) of an action that is given by name."""
        checks.known("feature", do, self.features)
        columns = list(x.unbind(-1))
        for name, value in do.items():
            try:
                given = torch.as_tensor(value, dtype=x.dtype)
                columns[self.index(name)] = given.expand(x.shape[:-1])
            except (TypeError, ValueError, RuntimeError):
                came = (
                    f"a tensor with shape {tuple(value.shape)}"
                    if isinstance(value, Tensor)
                    else repr(value)
                )
                raise ValueError(
                    f"{name} must be set to a number or to a tensor with one value a "
                    f"person, shape {tuple(x.shape[:-1])}, got {came}."
                ) from None
        acts = torch.tensor([name in do for name in self.features])
        return acts.expand(x.shape), torch.stack(columns, -1)


def _matches(name: str, part: Tensor, x: Tensor, dtype: torch.dtype) -> None:
    """Raise ValueError unless part is a tensor with the shape of x and this dtype."""
    if not isinstance(part, Tensor) or part.dtype != dtype:
        came = (
            f"a tensor of {part.dtype}" if isinstance(part, Tensor) else type(part).__name__
        )
        raise ValueError(
            f"{name} must be a tensor of {dtype} with the shape of x, {tuple(x.shape)}, "
            f"got {came}. Convert it with {name}.to({dtype})."
        )
    checks.shape(name, part, x.shape)
