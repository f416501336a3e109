"""Structural causal models whose equations can be inverted, and the Loan model."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from lib.world import World

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

    def __init__(self, equations: dict[str, Equation], mean: Tensor | None = None, std: Tensor | None = None) -> None:
        super().__init__({name: equation.parents for name, equation in equations.items()})
        self.equations = equations
        n_features = len(self.features)
        self.mean = torch.zeros(n_features, dtype=torch.float64) if mean is None else mean.double()
        self.std = torch.ones(n_features, dtype=torch.float64) if std is None else std.double()

    def standardised(self, mean: Tensor, std: Tensor) -> "SCM":
        """The same model, speaking of features in standard deviations from the mean."""
        return SCM(self.equations, mean, std)

    def sample(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Features of people drawn from the model, in float64, with shape (N, D)."""
        noise = [equation.noise.rvs(n_people, random_state=rng) for equation in self.equations.values()]
        return self.predict(torch.tensor(np.stack(noise, -1), dtype=torch.float64))

    def _by_name(self, j: int, x_parents: Tensor) -> Parents:
        x_parents = x_parents * self.std[self.parent_index[j]].to(x_parents) + self.mean[self.parent_index[j]].to(x_parents)
        return dict(zip(self.parents[self.features[j]], x_parents.unbind(-1), strict=True))

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        value = self.equations[self.features[j]].forward(self._by_name(j, x_parents), noise)
        return (value - self.mean[j].to(value)) / self.std[j].to(value)

    def abduct(self, x: Tensor) -> Tensor:
        in_units = x * self.std.to(x) + self.mean.to(x)
        return torch.stack(
            [
                equation.inverse(self._by_name(j, x[..., self.parent_index[j]]), in_units[..., j])
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
                total += torch.from_numpy(np.asarray(equation.noise.logpmf(u[..., j].detach().round().numpy())))
                continue
            # u_j depends on x_j and on the parents; only the derivative by x_j belongs to the volume
            (gradient,) = torch.autograd.grad(u[..., j].sum(), x, retain_graph=True)
            total += torch.from_numpy(np.asarray(equation.noise.logpdf(u[..., j].detach().numpy())))
            total += gradient[..., j].abs().log()
        return total


def additive(parents: tuple[str, ...], mechanism: Callable[[Parents], Tensor | float], noise: stats.distributions.rv_frozen) -> Equation:
    """Equation x = mechanism(parents) + u."""
    return Equation(parents, lambda pa, u: mechanism(pa) + u, lambda pa, x: x - mechanism(pa), noise)


def loan() -> SCM:
    """The semi-synthetic Loan model, in model units (centred; neither euros nor years).

    Source: names and shape from arXiv:2604.08030; the equations are facts of the public code of CARMA
    (Majumdar & Valera, doi 10.1145/3630106.3659003). Explained line by line in notebook 01.
    """

    def education_score(pa: Parents) -> Tensor:
        return -1 + 0.5 * pa["gender"] + torch.sigmoid(0.1 * pa["age"])

    return SCM(
        {
            "gender": additive((), lambda pa: 0.0, stats.bernoulli(0.5)),
            "age": additive((), lambda pa: -35.0, stats.gamma(10, scale=3.5)),
            "education": Equation(
                ("gender", "age"),
                lambda pa, u: -0.5 + torch.sigmoid(education_score(pa) + u),
                lambda pa, x: torch.logit(x + 0.5) - education_score(pa),
                stats.norm(0, 0.5),
            ),
            "loan_amount": additive(
                ("gender", "age"),
                lambda pa: 1 - 0.01 * (pa["age"] - 5).square() + (1 - pa["gender"]),
                stats.norm(0, 2),
            ),
            "loan_duration": additive(
                ("gender", "age", "loan_amount"),
                lambda pa: -1 + 0.1 * pa["age"] + 2 * (1 - pa["gender"]) + pa["loan_amount"],
                stats.norm(0, 3),
            ),
            "income": additive(
                ("gender", "age", "education"),
                lambda pa: -4 + 0.1 * (pa["age"] + 35) + 2 * pa["gender"] + pa["gender"] * pa["education"],
                stats.norm(0, 2),
            ),
            "savings": additive(
                ("income",),
                lambda pa: -4 + 1.5 * pa["income"].clamp(min=0),
                stats.norm(0, 5),
            ),
        }
    )


def loan_label(x: Tensor) -> Tensor:
    r"""Whether a loan was paid back, as a function of the features in model units, with shape (*, 7) -> (*,).

    .. math:: Y = 1 \iff \sigma(0.3\,(-L - D + I + S + k\,I\,S)) \ge 0.5, \quad
              k = 1 \text{ if } I \ge 0 \text{ and } S \ge 0 \text{ else } -1
    """
    amount, duration, income, savings = x[..., 3:].unbind(-1)
    k = torch.where((income >= 0) & (savings >= 0), 1.0, -1.0)
    return -amount - duration + income + savings + k * income * savings >= 0
