"""Structural causal models whose equations can be inverted, and the Loan model."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from lib.causal.graph import Graph
from lib.causal.world import World

Parents = dict[str, Tensor]


@dataclass(frozen=True)
class Equation:
    """One structural equation x = f(parents, u), its inverse in u, and the law of u.

    Arguments:
        parents: Names of the direct causes.
        forward: f; takes the parents by name, each with shape (*,), and u with shape (*,).
        inverse: The u for which f gives x; takes the parents and x.
        noise: Law of u, a frozen scipy distribution.
    """

    parents: tuple[str, ...]
    forward: Callable[[Parents, Tensor], Tensor]
    inverse: Callable[[Parents, Tensor], Tensor]
    noise: stats.distributions.rv_frozen


class SCM(World):
    """A structural causal model: equations in causal order, with inverses.

    Arguments:
        equations: One equation a feature, by name, in causal order.
        mean, std: Features are handed over and returned as (model units - mean) / std, each with
            shape (D,). Left out: model units.
    Source: definition in section 3 of arXiv:2604.08030.
    """

    def __init__(
        self,
        equations: dict[str, Equation],
        mean: Tensor | None = None,
        std: Tensor | None = None,
    ) -> None:
        super().__init__(
            Graph({name: equation.parents for name, equation in equations.items()})
        )
        self.equations = equations
        n_features = len(self.features)
        self.mean = (
            torch.zeros(n_features, dtype=torch.float64) if mean is None else mean.double()
        )
        self.std = (
            torch.ones(n_features, dtype=torch.float64) if std is None else std.double()
        )

    def standardised(self, mean: Tensor, std: Tensor) -> "SCM":
        """The same model, speaking of features in standard deviations from the mean."""
        return SCM(self.equations, mean, std)

    def sample(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Features of people drawn from the model, in float64, with shape (N, D)."""
        noise = [
            equation.noise.rvs(n_people, random_state=rng)
            for equation in self.equations.values()
        ]
        return self.predict(torch.tensor(np.stack(noise, -1), dtype=torch.float64))

    def _by_name(self, j: int, x_parents: Tensor) -> Parents:
        x_parents = x_parents * self.std[self.graph.parent_index[j]].to(
            x_parents
        ) + self.mean[self.graph.parent_index[j]].to(x_parents)
        return dict(
            zip(self.graph.parents[self.features[j]], x_parents.unbind(-1), strict=True)
        )

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        value = self.equations[self.features[j]].forward(self._by_name(j, x_parents), noise)
        return (value - self.mean[j].to(value)) / self.std[j].to(value)

    def abduct(self, x: Tensor) -> Tensor:
        in_units = x * self.std.to(x) + self.mean.to(x)
        return torch.stack(
            [
                equation.inverse(
                    self._by_name(j, x[..., self.graph.parent_index[j]]), in_units[..., j]
                )
                for j, equation in enumerate(self.equations.values())
            ],
            -1,
        )

    def log_prob(self, x: Tensor) -> Tensor:
        r"""Log-density of each person, in nats, with shape (*,).

        .. math:: \log p(x) = \sum_j \log p(u_j) + \log |du_j / dx_j|

        Discrete noise counts with its probability and without a volume term.
        """
        x = x.detach().double().requires_grad_()
        u = self.abduct(x)
        total = torch.zeros(x.shape[:-1], dtype=torch.float64)
        for j, equation in enumerate(self.equations.values()):
            if hasattr(equation.noise.dist, "pmf"):
                total += torch.from_numpy(
                    np.asarray(equation.noise.logpmf(u[..., j].detach().round().numpy()))
                )
                continue
            # u_j depends on x_j and on the parents; only the derivative by x_j belongs to the volume
            (gradient,) = torch.autograd.grad(u[..., j].sum(), x, retain_graph=True)
            total += torch.from_numpy(
                np.asarray(equation.noise.logpdf(u[..., j].detach().numpy()))
            )
            total += gradient[..., j].abs().log()
        return total


def additive(
    parents: tuple[str, ...],
    mechanism: Callable[[Parents], Tensor | float],
    noise: stats.distributions.rv_frozen,
) -> Equation:
    """Equation x = mechanism(parents) + u."""
    return Equation(
        parents, lambda pa, u: mechanism(pa) + u, lambda pa, x: x - mechanism(pa), noise
    )
