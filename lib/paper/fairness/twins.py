"""Twins: who a person would have been, had one of their causes been another.

The equations of the true SCM are known, so a person's noise is too.
The twin has the same noise and another gender, say. And an edge of
the graph can be cut: one effect then sees the same gender in
everybody, and all else stays.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method.data import Population
from lib.method.scm import SCM, CausalModel, Equation, Parents

OUTCOMES = ("twin accepted", "both", "only the person", "only the twin", "neither")


def twins(population: Population, x: Tensor, feature: str) -> Tensor:
    """Return each person's twin: the same noise, the other value of one feature.

    Arguments:
        population: Whose true SCM is known.
        x: Standardised features of N people, with shape (N, D).
        feature: One with two values, such as gender.
    Returns: With shape (N, D).
    Raises: ValueError: the population has no true SCM or no such
        feature, or the feature has other values than two.
    Source: Kusner et al., Counterfactual Fairness, 2017; von Kuegelgen
        et al., On the Fairness of Causal Algorithmic Recourse, 2022,
        ask for the recourse of both.
    """
    if population.truth is None:
        raise ValueError(
            f"{population.name} has no true SCM, so that nobody's twin is known. Draw the "
            "population from equations (Population.from_scm)."
        )
    checks.one_of("feature", [feature], population.features)
    column = population.features.index(feature)
    values = population.x["recourse/train"][:, column].unique()
    if len(values) != 2 or not torch.isin(x[:, column], values).all():
        raise ValueError(
            f"Expected a feature with two values, {feature} has {len(values)} among the "
            "training people. Choose gender, or set the feature yourself by "
            "truth.counterfactual(x, do=...)."
        )
    return population.truth.counterfactual(x, do={feature: values.sum() - x[:, column]})


def compared(
    cost: np.ndarray, twin_cost: np.ndarray, twin_is_accepted: np.ndarray
) -> pd.DataFrame:
    """Return what became of each refused person and of their twin, a row a person.

    Arguments:
        cost, twin_cost: Of the cheapest valid and plausible action,
            infinite where there is none, with shape (N,). What stands
            for a twin who is accepted is not looked at.
        twin_is_accepted: Who needs no recourse, with shape (N,).
    Returns: Columns outcome (one of `OUTCOMES`: for whom recourse
        exists) and difference (the person's cost less the twin's, NaN
        unless both have recourse).
    Raises: ValueError: the shapes differ.

    Example:
        >>> none = np.inf
        >>> compared(
        ...     np.array([0.3, 0.1, none]),
        ...     np.array([none, 0.4, 0.2]),
        ...     np.array([True, False, False]),
        ... )
                 outcome  difference
        0  twin accepted         NaN
        1           both        -0.3
        2  only the twin         NaN
    """
    parts = {"twin_cost": twin_cost, "twin_is_accepted": twin_is_accepted}
    for name, values in parts.items():
        checks.shape(name, torch.as_tensor(values), tuple(cost.shape))
    has, twin_has = np.isfinite(cost), np.isfinite(twin_cost)
    cases = [twin_is_accepted, has & twin_has, has & ~twin_has, ~has & twin_has]
    outcome = np.select(cases, OUTCOMES[:4], OUTCOMES[4])
    is_paired = outcome == "both"
    difference = np.full(len(cost), np.nan)
    difference[is_paired] = cost[is_paired] - twin_cost[is_paired]
    return pd.DataFrame({"outcome": outcome, "difference": difference})


def cut(scm: SCM, cause: str, value: float, effects: Sequence[str]) -> SCM:
    """Return the same model with edges cut: these effects see one fixed value of a cause.

    The graph keeps its arrows, so that searches and flows that know
    the graph still fit.

    Arguments:
        scm: The model, standardised or not.
        cause: Whose edges are cut.
        value: What the effects see in its place, in model units.
        effects: Direct effects of the cause.
    Raises: ValueError: there is no edge from the cause to an effect.
    Source: Chiappa, Path-specific counterfactual fairness, 2019: an
        effect along some paths, with the others at a reference.

    Example:
        >>> from lib.method import loan
        >>> all_alike = cut(loan.scm(), "gender", 1.0, ["loan_duration"])
        >>> woman = torch.tensor([0.0, 0, 0, 1, 4, 0, 0])
        >>> redrawn(woman, loan.scm(), all_alike)  # two units of duration less
        tensor([0., 0., 0., 1., 2., 0., 0.])
    """
    checks.one_of("feature", [cause, *effects], scm.features)
    for effect in effects:
        if cause not in scm.equations[effect].parents:
            parents = ", ".join(scm.equations[effect].parents) or "nothing"
            raise ValueError(
                f"There is no edge from {cause} to {effect} that could be cut: {effect} is "
                f"caused by {parents}."
            )
    equations = {
        name: _blind_to(equation, cause, value) if name in effects else equation
        for name, equation in scm.equations.items()
    }
    return SCM(equations, scm.mean, scm.std)


def redrawn(x: Tensor, model: CausalModel, other: CausalModel) -> Tensor:
    """Return the same people, with the same noise, as another model would have made them.

    Arguments:
        x: Features in the first model, with shape (*, D).
        model, other: The two causal models.
    Raises: ValueError: x does not fit, or the models list
        other features.
    """
    if model.features != other.features:
        raise ValueError(
            f"The models list the features {', '.join(model.features)} and "
            f"{', '.join(other.features)}: expected the same in the same order."
        )
    return other.predict(model.abduct(x))


def _blind_to(equation: Equation, cause: str, value: float) -> Equation:
    """Return an equation that sees one fixed value of a cause."""

    def seen(pa: Parents) -> Parents:
        return pa | {cause: torch.full_like(pa[cause], value)}

    return replace(
        equation,
        forward=lambda pa, u: equation.forward(seen(pa), u),
        inverse=lambda pa, x: equation.inverse(seen(pa), x),
    )
