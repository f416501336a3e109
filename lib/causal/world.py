"""A world: a causal graph, and the answer to "what would this person look like, had they acted?".

The true SCM (`lib/scm.py`) and the causal flow (`lib/flow.py`) are both worlds. They differ in how one
feature follows from its parents and its noise; the walk through the graph is the same and stands here.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lib.base import checks
from lib.causal.graph import Graph


class World:
    """A causal graph whose features follow from their parents and their noise.

    Subclasses give `abduct` (features to noise) and `feature` (one feature from parents and noise).

    Arguments:
        graph: Over the D features.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the D features, in the graph's order."""
        return self.graph.features

    def index(self, name: str) -> int:
        """Return the column of a feature; see `Graph.index`."""
        return self.graph.index(name)

    def abduct(self, x: Tensor) -> Tensor:
        """Noise behind each person's features, both with shape (*, D)."""
        raise NotImplementedError

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Value of feature j with shape (*,), from its parents (*, P) and its own noise (*,)."""
        raise NotImplementedError

    def predict(self, noise: Tensor) -> Tensor:
        """Features that follow from the noise: the inverse of `abduct`, both with shape (*, D)."""
        columns = list(noise.unbind(-1))
        for j in self.graph.order:
            columns[j] = self.feature(j, self.of_parents(j, columns), noise[..., j])
        return torch.stack(columns, -1)

    def of_parents(self, j: int, columns: Sequence[Tensor]) -> Tensor:
        """The direct causes of feature j side by side, with shape (*, P), from all features, each with shape (*,)."""
        causes = [columns[i] for i in self.graph.parent_index[j]]
        return (
            torch.stack(causes, -1)
            if causes
            else columns[0].new_zeros(*columns[0].shape, 0)
        )

    def counterfactual(
        self, x: Tensor, is_acted: Tensor, values: Tensor, noise: Tensor | None = None
    ) -> Tensor:
        r"""Each person after their own action :math:`do(X_I = a)`.

        .. math:: x^{CF}_j = a_j \text{ if } j \in I, \text{ else } f_j(x^{CF}_{pa(j)}, u_j), \quad u = f^{-1}(x)

        Arguments:
            x: Features before the action, with shape (*, D).
            is_acted: True where the person acts, with shape (*, D).
            values: What they set it to, with shape (*, D); read only where `is_acted`.
            noise: What `abduct` gives for x, where that is known already.
        Returns: Features after the action, with shape (*, D). Features that no acted-on feature reaches are
            returned unchanged, to the bit.
        Raises: ValueError: shapes differ, or a value that is used is not finite.
        Source: sections 3 and 4 of arXiv:2604.08030 (abduction, action, prediction). By hand in notebook 01.
        """
        checks.people("x", x, self.features)
        checks.shape("is_acted", is_acted, x.shape)
        checks.shape("values", values, x.shape)
        values = torch.where(is_acted, values, torch.zeros((), dtype=x.dtype))
        checks.people("values", values, self.features)
        noise = self.abduct(x) if noise is None else noise
        downstream = (
            is_acted.to(x.dtype) @ self.graph.reaches.to(x.dtype)
        ) > 0  # something upstream was acted on
        moved = downstream & ~is_acted
        may_move = moved.flatten(0, -2).any(0).tolist()
        columns = list(torch.where(is_acted, values, x).unbind(-1))
        for j in self.graph.order:
            if may_move[j]:
                follows = self.feature(j, self.of_parents(j, columns), noise[..., j])
                columns[j] = torch.where(moved[..., j], follows, columns[j])
        return torch.stack(columns, -1)
