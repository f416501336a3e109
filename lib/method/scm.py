"""Structural causal models whose equations can be inverted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from lib.base import checks
from lib.method.world import Graph, World

Parents = dict[str, Tensor]
N_TRIED = 8  # people drawn to try the equations of a new model


@dataclass(frozen=True)
class Equation:
    """One structural equation x = f(parents, u), its inverse in u, and the law of u.

    Both functions work on people side by side, entry by entry, and
    are written in torch. Where noise is just added, `additive` is
    shorter.

    Arguments:
        parents: Names of the direct causes.
        forward: f; takes the parents by name, each with shape (*,),
        and u with shape (*,).
        inverse: The u for which f gives x; takes the parents and x.
        noise: Law of u, a frozen scipy distribution.
    Example:
        Rent is a share of the income, and the share is what chance
        decides:

        >>> rent = Equation(
        ...     ("income",),
        ...     forward=lambda pa, u: pa["income"] * u.sigmoid(),
        ...     inverse=lambda pa, x: torch.logit(x / pa["income"]),
        ...     noise=stats.norm(),
        ... )
        >>> parents = {"income": torch.tensor([1_000.0, 3_000.0])}
        >>> x = rent.forward(parents, torch.tensor([0.0, 0.0]))
        >>> x, rent.inverse(parents, x)
        (tensor([ 500., 1500.]), tensor([0., 0.]))
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
    """Return the equation x = mechanism(parents) + u.

    Example:
        >>> savings = additive(("income",), lambda pa: pa["income"] / 2, stats.norm())
        >>> savings.forward({"income": torch.tensor(4.0)}, torch.tensor(1.0))
        tensor(3.)
        >>> savings.inverse({"income": torch.tensor(4.0)}, torch.tensor(3.0))
        tensor(1.)
    """
    return Equation(
        parents, lambda pa, u: mechanism(pa) + u, lambda pa, x: x - mechanism(pa), noise
    )


class SCM(World):
    """A structural causal model: one equation a feature, each with its inverse.

    A few people are drawn when the model is made, to try every
    equation and its inverse.

    Arguments:
        equations: One equation a feature, by name. Features keep the
            order in which they are listed; causes may be listed after
            their effects.
        mean, std: Features are handed over and returned as (model
            units - mean) / std, each with shape (D,). Left out: model
            units.
    Raises: ValueError: as `Graph`; an equation fails, gives another
        shape or values that are not finite, or its inverse does not
        give its noise back; the scaler does not fit.
    Source: definition in section 3 of arXiv:2604.08030.
    Example:
        Savings follow income, income follows age. What if a person of
        40 earned 5 instead of 3?

        >>> scm = SCM({
        ...     "age": additive((), lambda pa: 18.0, stats.gamma(10, scale=3.5)),
        ...     "income": additive(("age",), lambda pa: pa["age"] / 10, stats.norm()),
        ...     "savings": additive(("income",), lambda pa: 2 * pa["income"], stats.norm()),
        ... })
        >>> person = torch.tensor([40.0, 3.0, 5.0])
        >>> scm.abduct(person)
        tensor([22., -1., -1.])
        >>> scm.counterfactual(person, do={"income": 5.0})
        tensor([40.,  5.,  9.])
    """

    def __init__(
        self,
        equations: Mapping[str, Equation],
        mean: Tensor | None = None,
        std: Tensor | None = None,
    ) -> None:
        for name, equation in equations.items():
            if not isinstance(equation, Equation):
                raise ValueError(
                    f"{name} must be an Equation, got {type(equation).__name__}. Write "
                    "additive(parents, mechanism, noise) where the noise is just added."
                )
        super().__init__(Graph({name: e.parents for name, e in equations.items()}))
        self.equations = dict(equations)
        n_features = len(self.features)
        mean = torch.zeros(n_features) if mean is None else mean
        std = torch.ones(n_features) if std is None else std
        for name, part in (("mean", mean), ("std", std)):
            self.check(name, part)
            checks.shape(name, part, (n_features,))
        if not (std > 0).all():
            raise ValueError(f"std must be above zero everywhere, got {std.tolist()}.")
        self.mean, self.std = mean.double(), std.double()
        self._try_equations()

    def _try_equations(self) -> None:
        """Raise ValueError unless each equation works and is inverted, for a few people."""
        rng = np.random.default_rng(0)
        x: Parents = {}
        for name in (self.features[j] for j in self.graph.order):
            equation = self.equations[name]
            if not hasattr(equation.noise, "rvs"):
                raise ValueError(
                    f"The noise of {name} must be a frozen scipy distribution such as "
                    f"stats.norm(0, 1), got {type(equation.noise).__name__}."
                )
            u = torch.from_numpy(
                np.asarray(equation.noise.rvs(N_TRIED, random_state=rng), dtype=float)
            )
            parents = {cause: x[cause] for cause in equation.parents}
            x[name] = _tried(f"forward of {name}", equation.forward, parents, u)
            # the log-density asks for its derivative, where the noise is not discrete
            given = x[name].clone().requires_grad_(not _is_discrete(equation))
            found = _tried(f"inverse of {name}", equation.inverse, parents, given)
            if not torch.allclose(found, u, rtol=1e-4, atol=1e-6):
                worst = int((found - u).abs().argmax())
                raise ValueError(
                    f"The inverse of {name} does not invert its forward: from the noise "
                    f"{u[worst]:.6g}, forward gives {x[name][worst]:.6g}, and from that, "
                    f"inverse gives {found[worst]:.6g}."
                )

    def standardised(self, mean: Tensor, std: Tensor) -> "SCM":
        """Return the same model, speaking of features in standard deviations from the mean.

        Arguments:
            mean, std: In model units, each with shape (D,).
        Example:
            >>> scm = SCM({"age": additive((), lambda pa: 0.0, stats.norm(40, 10))})
            >>> scaled = scm.standardised(torch.tensor([40.0]), torch.tensor([10.0]))
            >>> scaled.abduct(torch.tensor([1.0]))  # one standard deviation above the mean
            tensor([50.])
        """
        return SCM(self.equations, mean, std)

    def draw_noise(self, n_people: int, rng: np.random.Generator) -> Tensor:
        """Return noise by the law of each equation, in float64, with shape (N, D).

        Example:
            >>> scm = SCM({"age": additive((), lambda pa: 18.0, stats.gamma(10))})
            >>> (scm.draw_noise(100, np.random.default_rng(0)) > 0).all()
            tensor(True)
        """
        noise = [
            equation.noise.rvs(n_people, random_state=rng)
            for equation in self.equations.values()
        ]
        return torch.tensor(np.stack(noise, -1), dtype=torch.float64)

    def _by_name(self, j: int, x_parents: Tensor) -> Parents:
        """Return the parents of feature j by name, in model units, each with shape (*,)."""
        causes = self.graph.parent_index[j]
        std, mean = self.std[causes].to(x_parents), self.mean[causes].to(x_parents)
        names = self.graph.parents[self.features[j]]
        return dict(zip(names, (x_parents * std + mean).unbind(-1), strict=True))

    def feature(self, j: int, x_parents: Tensor, noise: Tensor) -> Tensor:
        """Return feature j, with shape (*,); see `World.feature`.

        Example:
            >>> scm = SCM({"age": additive((), lambda pa: 18.0, stats.gamma(10))})
            >>> scm.feature(0, torch.zeros(1, 0), torch.tensor([4.0]))
            tensor([22.])
        """
        value = self.equations[self.features[j]].forward(self._by_name(j, x_parents), noise)
        return (value - self.mean[j].to(value)) / self.std[j].to(value)

    def abduct(self, x: Tensor) -> Tensor:
        """Return the noise behind each person's features; see `World.abduct`.

        Raises: ValueError: x has another shape, or is not finite.
        Example:
            >>> scm = SCM({"age": additive((), lambda pa: 18.0, stats.gamma(10))})
            >>> scm.abduct(torch.tensor([22.0]))
            tensor([4.])
        """
        self.check("x", x)
        in_units = x * self.std.to(x) + self.mean.to(x)
        noise = [
            equation.inverse(
                self._by_name(j, x[..., self.graph.parent_index[j]]), in_units[..., j]
            )
            for j, equation in enumerate(self.equations.values())
        ]
        return torch.stack(noise, -1)

    def log_prob(self, x: Tensor) -> Tensor:
        r"""Return the log-density of each person, in nats and float64, with shape (*,).

        .. math:: \log p(x) = \sum_j \log p(u_j) + \log |du_j / dx_j|

        Discrete noise counts with its probability and without a
        volume term.

        Arguments:
            x: Features, with shape (*, D).
        Raises: ValueError: x has another shape, or is not finite.
        Example:
            >>> scm = SCM({"age": additive((), lambda pa: 40.0, stats.norm(0, 10))})
            >>> scm.log_prob(torch.tensor([[40.0], [60.0]])).numpy().round(2)
            array([-3.22, -5.22])
            >>> stats.norm(40, 10).logpdf([40.0, 60.0]).round(2)
            array([-3.22, -5.22])
        """
        self.check("x", x)
        x = x.detach().double().requires_grad_()
        u = self.abduct(x)
        total = torch.zeros(x.shape[:-1], dtype=torch.float64)
        for j, equation in enumerate(self.equations.values()):
            own = u[..., j].detach().numpy()
            if _is_discrete(equation):
                total += torch.from_numpy(np.asarray(equation.noise.logpmf(own.round())))
                continue
            # u_j depends on x_j and on the parents; only the derivative by x_j is volume
            (gradient,) = torch.autograd.grad(u[..., j].sum(), x, retain_graph=True)
            total += torch.from_numpy(np.asarray(equation.noise.logpdf(own)))
            total += gradient[..., j].abs().log()
        return total


def _is_discrete(equation: Equation) -> bool:
    """Return whether the noise takes single values only, each with a probability."""
    return hasattr(equation.noise.dist, "pmf")


def _tried(
    what: str,
    function: Callable[[Parents, Tensor], Tensor],
    parents: Parents,
    given: Tensor,
) -> Tensor:
    """Return what one function of an equation gives; ValueError unless it is usable."""
    try:
        result = function(dict(parents), given)
    except Exception as error:
        raise ValueError(
            f"The {what} failed with {type(error).__name__}: {error}. It is called with a "
            f"dictionary of its parents ({', '.join(parents) or 'none'}) and a tensor, "
            "both with one number a person, and must be written in torch."
        ) from error
    if not isinstance(result, Tensor) or result.shape != given.shape:
        came = (
            f"a tensor with shape {tuple(result.shape)}"
            if isinstance(result, Tensor)
            else type(result).__name__
        )
        raise ValueError(
            f"The {what} gives {came} for {len(given)} people, expected a tensor with "
            f"shape {tuple(given.shape)}."
        )
    if given.requires_grad and not result.requires_grad:
        raise ValueError(
            f"The {what} has no derivative that torch can follow, and the log-density "
            "needs it. Write it with torch's own functions, and let it depend on its "
            "second argument."
        )
    if not torch.isfinite(result).all():
        raise ValueError(
            f"The {what} gives NaN or infinite values for people drawn from the model. Can "
            "it take every value that its parents and its noise can have?"
        )
    return result.detach()
