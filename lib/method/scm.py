"""Structural causal models: what a person would look like, had they acted otherwise.

The true SCM and the causal flow (`lib/method/flow.py`) are both
causal models. They differ in how one feature follows from its parents
and its noise. The walk along the graph is the same, and stands here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from lib import checks
from lib.method.graph import Graph

Parents = dict[str, Tensor]

N_TRIED = 8  # people for whom the equations are tried when a model is made


class CausalModel:
    """A causal graph whose features follow from their parents and their noise.

    Subclasses give `abduct` (features to noise), `feature` (one
    feature from its parents and its noise) and `draw_noise`. One
    person has shape (D,), many have (N, D) or any (*, D).

    Arguments:
        graph: Over the D features.
    """

    graph: Graph

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the D features, in the order of the graph."""
        return self.graph.features

    def index(self, name: str) -> int:
        """Return the column of a feature.

        Raises: ValueError: there is none of that name.
        """
        return self.graph.index(name)

    def check(self, name: str, x: Tensor) -> None:
        """Raise ValueError unless x can be handed to this model: finite numbers, (*, D).

        Arguments:
            name: What the message calls x.
        """
        checks.people(name, x, self.features)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features, both with shape (*, D)."""
        raise NotImplementedError

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j (*,) from its parents (*, P) and its noise (*,)."""
        raise NotImplementedError

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return noise drawn from its distribution, with shape (N, D)."""
        raise NotImplementedError

    def sample(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return the features of people drawn from this model, with shape (N, D)."""
        return self.predict(self.draw_noise(n_people, rng))

    def predict(self, noise: Tensor) -> Tensor:
        """Return the features that follow from the noise, both with shape (*, D).

        This is the inverse of `abduct`.

        Raises: ValueError: noise has another shape, or is not finite.
        """
        self.check("noise", noise)
        columns = list(noise.unbind(-1))
        for j in self.graph.order:
            columns[j] = self.feature(j, self.parent_values(j, columns), noise[..., j])
        return torch.stack(columns, -1)

    def parent_values(self, j: int, columns: Sequence[Tensor]) -> Tensor:
        """Return the direct causes of feature j, stacked, with shape (*, P).

        Arguments:
            columns: All D features, each with shape (*,).
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
            none; shapes differ, or dtypes of x and values; a feature
            is unknown; a value that is used is not finite.
        Source: sections 3 and 4 of arXiv:2604.08030 (abduction,
            action, prediction). By hand in notebook 01.
        Example:
            Of two people, everyone earns 2 more; then only the first
            does. Savings follow.

            >>> from scipy import stats
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
            is_acted, values = self._action_by_name(x, do)
        elif do is not None or is_acted is None or values is None:
            raise ValueError(
                "Expected an action in one of two ways: "
                "counterfactual(x, is_acted, values), or "
                'counterfactual(x, do={"income": 3.0}).'
            )
        noise = self.abduct(x) if noise is None else noise
        for name, tensor in (("is_acted", is_acted), ("values", values), ("noise", noise)):
            checks.shape(name, tensor, x.shape)
        values = torch.where(is_acted, values, torch.zeros((), dtype=x.dtype))
        checks.people("values", values, self.features, x.dtype)
        noise = self.counterfactual_noise(x, noise)
        columns = torch.where(is_acted, values, x).unbind(-1)
        return torch.stack(self.propagate(columns, self.affected(is_acted), noise), -1)

    def counterfactual_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return the noise after an action: the person keeps theirs.

        A subclass may draw some of it anew.

        Arguments:
            x, noise: Features before the action, and the noise behind
                them, each with shape (*, D).
        """
        return noise

    def affected(self, is_acted: Tensor) -> dict[int, Tensor]:
        """Return who moves each feature by acting on others, by its column.

        Arguments:
            is_acted: True where the person acts, with shape (*, D).
        Returns: A mask (*,) for each feature that somebody moves,
            causes first.
        """
        downstream = (is_acted.float() @ self.graph.reachability.float()) > 0
        moves = downstream & ~is_acted
        is_moved = moves.reshape(-1, len(self.features)).any(0).tolist()
        return {j: moves[..., j] for j in self.graph.order if is_moved[j]}

    def propagate(
        self, columns: Sequence[Tensor], affected: Mapping[int, Tensor], noise: Tensor
    ) -> list[Tensor]:
        """Return features after an action, once what is acted on has been set.

        It is the walk of `counterfactual` without its checks, for
        callers that try many values on the same features.

        Arguments:
            columns: The D features: as they are set where they are
                acted on, else as before; each with shape (*,).
            affected: As the method of this name gives it.
            noise: As `counterfactual_noise` gives it, with shape (*, D).
        """
        after = list(columns)
        for j, moves in affected.items():
            follows = self.feature(j, self.parent_values(j, after), noise[..., j])
            after[j] = torch.where(moves, follows, after[j])
        return after

    def _action_by_name(
        self, x: Tensor, do: Mapping[str, float | Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return `is_acted` and `values` (*, D) of an action that is given by name."""
        checks.one_of("feature", do, self.features)
        is_acted = torch.tensor([name in do for name in self.features])
        values = x.clone()
        for name, value in do.items():
            values[..., self.index(name)] = torch.as_tensor(value, dtype=x.dtype)
        return is_acted.expand(x.shape), values


@dataclass(frozen=True)
class Equation:
    """One structural equation x = f(parents, u), its inverse in u, and u's distribution.

    Arguments:
        parents: Names of the direct causes.
        forward: From the parents by name, and u, to x; each with
            shape (*,).
        inverse: From the parents by name, and x, to u.
        noise: A frozen scipy distribution.
    """

    parents: tuple[str, ...]
    forward: Callable[[Parents, Tensor], Tensor]
    inverse: Callable[[Parents, Tensor], Tensor]
    noise: stats.distributions.rv_frozen


def additive(
    parents: tuple[str, ...],
    mechanism: Callable[[Parents], Tensor | float],
    noise: stats.distributions.rv_frozen,
) -> Equation:
    """Return the equation x = mechanism(parents) + u."""
    return Equation(
        parents,
        lambda pa, u: mechanism(pa) + u,
        lambda pa, x: x - mechanism(pa),
        noise,
    )


class SCM(CausalModel):
    """A structural causal model: one equation a feature, each with its inverse.

    Arguments:
        equations: By feature; causes may be listed after effects.
        mean, std: Where features are spoken of in standard deviations
            from the mean: both, with shape (D,). Equations are always
            in the model's units.
    Raises: ValueError: as `Graph`; an equation fails for a few people
        who are drawn, or its inverse does not invert it; mean or std
        have another shape.
    """

    def __init__(
        self,
        equations: Mapping[str, Equation],
        mean: Tensor | None = None,
        std: Tensor | None = None,
    ) -> None:
        self.graph = Graph({name: e.parents for name, e in equations.items()})
        self.equations = dict(equations)
        n_features = len(self.features)
        self.mean = torch.zeros(n_features).double() if mean is None else mean.double()
        self.std = torch.ones(n_features).double() if std is None else std.double()
        checks.shape("mean", self.mean, (n_features,))
        checks.shape("std", self.std, (n_features,))
        self._try_equations()

    def standardised(self, mean: Tensor, std: Tensor) -> "SCM":
        """Return the same model, with features in standard deviations from the mean."""
        return SCM(self.equations, mean, std)

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return noise from each equation's distribution, in float64, with shape (N, D)."""
        noise = [
            equation.noise.rvs(n_people, random_state=rng)
            for equation in self.equations.values()
        ]
        return torch.tensor(np.stack(noise, -1), dtype=torch.float64)

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j, with shape (*,); see `CausalModel.feature`."""
        equation = self.equations[self.features[j]]
        value = equation.forward(self._parents_by_name(j, x_parents), noise)
        return (value - self.mean[j].to(value)) / self.std[j].to(value)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features; see `CausalModel.abduct`.

        Raises: ValueError: x has another shape, or is not finite.
        """
        self.check("x", x)
        in_units = x * self.std.to(x) + self.mean.to(x)
        noise = []
        for j, equation in enumerate(self.equations.values()):
            parents = self._parents_by_name(j, x[..., self.graph.parent_index[j]])
            noise.append(equation.inverse(parents, in_units[..., j]))
        return torch.stack(noise, -1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density of each person, in nats and float64, with shape (*,).

        The density is that of standardised features; of a feature
        with single values only it is the probability.

        Raises: ValueError: x has another shape, or is not finite.
        """
        self.check("x", x)
        with torch.enable_grad():  # the slope of the noise by its feature
            x = x.detach().double().requires_grad_()
            u = self.abduct(x)
            total = torch.zeros(x.shape[:-1], dtype=torch.float64)
            for j, equation in enumerate(self.equations.values()):
                u_j = u[..., j].detach().numpy()
                if is_discrete(equation):
                    total += torch.as_tensor(equation.noise.logpmf(u_j.round()))
                else:
                    (slope,) = torch.autograd.grad(u[..., j].sum(), x, retain_graph=True)
                    total += torch.as_tensor(equation.noise.logpdf(u_j))
                    total += slope[..., j].abs().log()
        return total

    def _parents_by_name(self, j: int, x_parents: Tensor) -> Parents:
        """Return the parents of feature j by name, in model units, each with shape (*,)."""
        causes = self.graph.parent_index[j]
        mean, std = self.mean[causes].to(x_parents), self.std[causes].to(x_parents)
        names = self.graph.parents[self.features[j]]
        return dict(zip(names, (x_parents * std + mean).unbind(-1), strict=True))

    @torch.enable_grad()
    def _try_equations(self) -> None:
        """Raise ValueError unless each equation works and is inverted, for a few people."""
        rng = np.random.default_rng(0)
        x: Parents = {}
        for name in (self.features[j] for j in self.graph.order):
            equation = self.equations[name]
            parents = {cause: x[cause] for cause in equation.parents}
            try:
                drawn = equation.noise.rvs(N_TRIED, random_state=rng)
                u = torch.tensor(drawn, dtype=torch.float64)
                x[name] = equation.forward(parents, u)
                value = x[name].clone().requires_grad_(not is_discrete(equation))
                inverted = equation.inverse(parents, value)
                checks.shape("what forward returns", value, u.shape)
                checks.shape("what inverse returns", inverted, u.shape)
            except Exception as error:
                raise ValueError(
                    f"The equation of {name} failed with {type(error).__name__}: {error}. "
                    "Its noise must be a frozen scipy distribution. forward and inverse, "
                    f"in torch, take a dictionary of parents ({', '.join(parents)}) and a "
                    "tensor, and return a tensor; all have one number a person."
                ) from error
            if value.requires_grad and not inverted.requires_grad:
                raise ValueError(
                    f"The inverse of {name} has no derivative that torch can follow, and "
                    "the log-density needs it. Write it with torch's own functions."
                )
            if not torch.allclose(inverted, u, rtol=1e-4, atol=1e-6):
                worst = int((inverted - u).abs().argmax())
                raise ValueError(
                    f"The inverse of {name} does not invert its forward: from the noise "
                    f"{u[worst]:.6g}, forward gives {value[worst]:.6g}, and from that, "
                    f"inverse gives {inverted[worst]:.6g}."
                )


def is_discrete(equation: Equation) -> bool:
    """Return whether the noise takes single values only, each with a probability."""
    return hasattr(equation.noise.dist, "pmf")
