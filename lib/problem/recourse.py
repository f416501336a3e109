"""The problem every solver gets, and the recommendation every solver returns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lib.base import checks
from lib.causal.flow import CausalFlow
from lib.causal.world import World
from lib.preferences.scores import Preferences
from lib.problem.classifier import Classifier
from lib.problem.population import Population


@dataclass(frozen=True)
class Problem:
    """Who applies, who decides, and the flow that says what is plausible."""

    population: Population
    classifier: Classifier
    flow: CausalFlow

    def __post_init__(self) -> None:
        expected = self.population.features
        for what, part in (("classifier", self.classifier), ("flow", self.flow)):
            if part.features != expected:
                raise ValueError(
                    f"The {what} is for the features {', '.join(part.features)}; the population "
                    f"has {', '.join(expected)}. Both must list the same in the same order: fit "
                    f"the {what} to this population."
                )
        x = self.population.x["recourse/train"][:2]
        if x.dtype != self.flow.dtype:
            raise ValueError(
                f"The population is of {x.dtype}, the flow of {self.flow.dtype}. Fit the flow to "
                "this population."
            )
        try:
            self.accepts(x)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"The classifier can't decide for people of {x.dtype} with shape "
                f"{tuple(x.shape)}: {error}"
            ) from error

    @cached_property
    def range(self) -> Tensor:
        """Range of each standardised feature over the recourse training split, with shape (D,)."""
        return self.population.high - self.population.low

    def refused(self, split: str) -> Tensor:
        """The people of a recourse split ("train", "validation" or "test") that h turns down, with shape (N, D)."""
        checks.known("recourse split", [split], ("train", "validation", "test"))
        x = self.population.x[f"recourse/{split}"]
        return x[~self.accepts(x)]

    def accepts(self, x: Tensor) -> Tensor:
        """Whether h decides for people (*, D), with shape (*,); it is shown values that people can have (whole numbers)."""
        return self.classifier.accepts(self.population.possible(x))

    def check(self, x: Tensor, preferences: Preferences) -> None:
        """Raise ValueError unless x are refused people (N, D) and the preferences are theirs."""
        checks.people("x", x, self.population.features)
        checks.shape(
            "preferences.scores",
            preferences.scores,
            (*x.shape[:-1], len(self.population.actionable)),
        )
        checks.refused(self.accepts(x))

    def check_world(self, world: World) -> None:
        """Raise ValueError unless the world has the flow's graph: who moves, and whose density changes, must be the same."""
        if world.graph != self.flow.graph:
            ours, theirs = self.flow.graph.parents, world.graph.parents
            at = [name for name in ours if set(ours[name]) != set(theirs.get(name, ()))]
            raise ValueError(
                f"The world and the flow have different graphs (causes of {', '.join(at) or 'features unknown to the flow'}). "
                "Search in a world with the flow's graph, or make the problem with a flow that was fitted under the world's."
            )

    def carried_out(
        self, x: Tensor, recommendation: "Recommendation", world: World | None = None
    ) -> "Recommendation":
        """The same advice as people can follow it: values and their consequences are made possible (whole credit lines).

        Arguments:
            x: People, with shape (N, D).
            recommendation: For them, each part with shape (*, N, D).
            world: Where actions take effect; left out: the flow.
        Returns: What nothing moves stays as it is, to the bit.
        """
        acts = recommendation.is_acted
        x = x.expand_as(recommendation.values)
        values = torch.where(acts, self.population.possible(recommendation.values), x)
        return Recommendation(
            acts,
            values,
            self.population.settled(
                x, (world or self.flow).counterfactual(x, acts, values)
            ),
        )

    def action_cost(
        self, x: Tensor, m: Tensor, a: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        r"""Effort of each person's own actions, with shape (*,); effects downstream cost nothing.

        .. math:: c = \frac{1}{K} \sum_{j \in A} w_j\, m_j\, \frac{(x_j - a_j)^2}{\max_j - \min_j}

        Arguments:
            x, m, a: Factual value, whether it is acted on (bool or 0/1), and to what it is set, for the K
                actionable features in standardised units, each with shape (*, K).
            weights: Individual weights, with shape (*, K); left out: the unweighted cost.
        Source: CARMA's cost (doi 10.1145/3630106.3659003) with the weights of section 4.2, arXiv:2604.08030.
        """
        effort = m * (x - a).square() / self.range[self.population.actionable_index].to(x)
        return (effort if weights is None else weights * effort).mean(-1)


@dataclass(frozen=True)
class Recommendation:
    """What each person is told to do, and what they would then look like; each with shape (*, N, D).

    Arguments:
        is_acted: True where the person acts; nowhere for someone who has no recourse.
        values: What to set those features to, in standardised units; the factual value elsewhere.
        x_cf: Features after the action, by the world the solver searched.
    """

    is_acted: Tensor
    values: Tensor
    x_cf: Tensor

    @property
    def has_recourse(self) -> Tensor:
        """Whether anything is recommended, with shape (*, N)."""
        return self.is_acted.any(-1)

    def __post_init__(self) -> None:
        if self.is_acted.dtype != torch.bool:
            raise ValueError(f"is_acted must be of bool, got {self.is_acted.dtype}.")
        checks.shape("values", self.values, self.is_acted.shape)
        checks.shape("x_cf", self.x_cf, self.is_acted.shape)

    def __getitem__(self, key: Any) -> "Recommendation":
        """Return the part at this place of the leading axes, which are indexed as a tensor's.

        Example:
            >>> people = torch.zeros(10, 3, 7)  # ten members of a stack, three people
            >>> stack = Recommendation(people > 0, people, people)
            >>> stack[0].x_cf.shape, stack[:, [0, 2]].x_cf.shape, stack[0][:2].x_cf.shape
            (torch.Size([3, 7]), torch.Size([10, 2, 7]), torch.Size([2, 7]))
        """
        return Recommendation(self.is_acted[key], self.values[key], self.x_cf[key])


def in_columns(part: Tensor, columns: list[int], n_features: int) -> Tensor:
    """Spread values of the K actionable features (*, K) over all D features, zero elsewhere: (*, D)."""
    given, zero = (
        dict(zip(columns, part.unbind(-1), strict=True)),
        part.new_zeros(part.shape[:-1]),
    )
    return torch.stack([given.get(j, zero) for j in range(n_features)], -1)
