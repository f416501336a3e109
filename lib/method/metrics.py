"""How good recommendations are, person by person and on the mean; and pruning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.method.preferences import Preferences
from lib.method.problem import (
    ROUNDING,
    Problem,
    Recommendation,
    is_plausible,
    is_valid,
)
from lib.method.scm import CausalModel


def hard_action(preferences: Preferences, is_acted: Tensor) -> Tensor:
    """Return whether a person acts on a feature they find hardest of those they can act on.

    Ties all count. The mean over people with a recommendation is the
    paper's hap, the hard actions probability.

    Arguments:
        preferences: With scores (N, K).
        is_acted: Over the K actionable features, bool with shape
            (*, N, K).
    Returns: With shape (*, N).
    Raises: ValueError: is_acted has another shape or is no mask.
    Source: section 5.4 of arXiv:2604.08030; the tie rule is ours.
    Example:
        The second person ranks the third feature last, and cannot act
        on the fourth.

        >>> preferences = Preferences(torch.tensor([[1, 2, 3, 4], [1, 2, 3, 5]]))
        >>> hard_action(preferences, torch.tensor([[True, True, True, False]] * 2))
        tensor([False,  True])
    """
    expected = preferences.scores.shape
    if is_acted.shape[-len(expected) :] != expected or is_acted.dtype != torch.bool:
        raise ValueError(
            f"is_acted is of {is_acted.dtype} with shape {tuple(is_acted.shape)}, expected "
            f"a mask over the actionable features with shape (*, *{tuple(expected)})."
        )
    scores = torch.where(preferences.is_actionable, preferences.scores, 0)
    is_hardest = scores == scores.amax(-1, keepdim=True)
    return (is_acted & is_hardest).any(-1)


def per_person(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    truth: CausalModel | None = None,
) -> pd.DataFrame:
    """Return the metrics of each person's recommendation, a row a person.

    Columns: has_recourse, valid, plausible, joint (valid and
    plausible), cost (unweighted), cost_l2, cost_l1, hard_action,
    n_acted, outside (see the functions of these names), log_p,
    log_p_cf, log_p_change (in nats).

    The paper's cost is a distance whose order is lost. So besides
    `cost`, a mean of squares, there are two lengths of the same
    changes d_j, as parts of the features' ranges: cost_l2, the root
    of the sum of d_j squared, and cost_l1, the sum of d_j
    (`Problem.relative_change`).

    Arguments:
        x: Refused people, with shape (N, D).
        preferences: Theirs, with scores (N, K).
        recommendation: Of shape (N, D).
        truth: A causal model in which the action is repeated: adds
            the column valid_in_truth.
    Raises: ValueError: shapes or features differ; the recommendation
        is an ensemble's.
    Source: section 5.1 of arXiv:2604.08030.
    """
    population = problem.population
    check_one_each(problem, x, recommendation)
    n_actionable = len(population.actionable)
    checks.shape("preferences.scores", preferences.scores, (len(x), n_actionable))
    if truth is not None and truth.features != population.features:
        raise ValueError(
            f"truth has the features {', '.join(truth.features)}: list them in the "
            f"population's order, {', '.join(population.features)}."
        )
    is_acted, values = recommendation.is_acted, recommendation.values
    x_cf = recommendation.x_cf
    actionable = population.actionable_index
    change = problem.relative_change(
        x[:, actionable], is_acted[:, actionable], values[:, actionable]
    )
    log_p, log_p_cf = problem.flow.log_prob(x), problem.flow.log_prob(x_cf)
    columns = {
        "has_recourse": recommendation.has_recourse,
        "valid": is_valid(problem.log_odds(x_cf)),
        "plausible": is_plausible(log_p_cf - log_p),
        "cost": problem.cost_of(x, recommendation),
        "cost_l2": change.square().sum(-1).sqrt(),
        "cost_l1": change.sum(-1),
        "hard_action": hard_action(preferences, is_acted[:, actionable]),
        "n_acted": is_acted.sum(-1),
        "outside": outside(problem, x, x_cf),
        "log_p": log_p,
        "log_p_cf": log_p_cf,
        "log_p_change": log_p_cf - log_p,
    }
    columns["joint"] = columns["valid"] & columns["plausible"]
    if truth is not None:
        in_truth = truth.counterfactual(x, is_acted, values)
        columns["valid_in_truth"] = problem.accepts(in_truth)
    return pd.DataFrame({name: column.numpy() for name, column in columns.items()})


def outside(problem: Problem, x: Tensor, x_cf: Tensor) -> Tensor:
    """Return whether a feature moved, and lies out of the training people's range, (*,).

    Arguments:
        x, x_cf: Features before and after an action, with shape
            (*, D).
    """
    low, high = problem.population.low, problem.population.high
    return (((x_cf > high) | (x_cf < low)) & (x_cf != x)).any(-1)


def redundant(problem: Problem, x: Tensor, recommendation: Recommendation) -> Tensor:
    """Return whether a person is recommended more than is needed, with shape (N,).

    That is: the recommendation is valid and plausible, and stays so
    without one of the features that it moves, the others being set to
    the same values.

    Arguments:
        x: Refused people, with shape (N, D).
        recommendation: Of shape (N, D).
    Raises: ValueError: shapes differ; the recommendation is an
        ensemble's.
    """
    check_one_each(problem, x, recommendation)
    is_acted, values = recommendation.is_acted, recommendation.values
    is_redundant = torch.zeros(len(x), dtype=torch.bool)
    for j in problem.population.actionable_index:
        fewer = is_acted.clone()
        fewer[:, j] = False
        x_cf = problem.flow.counterfactual(x, fewer, values)
        is_moved = is_acted[:, j] & (values[:, j] != x[:, j])
        is_redundant |= is_moved & is_joint(problem, x, x_cf)
    return is_redundant & is_joint(problem, x, recommendation.x_cf)


def is_joint(problem: Problem, x: Tensor, x_cf: Tensor, tolerance: float = 0.0) -> Tensor:
    """Return whether a counterfactual is valid and plausible, with shape (*, N).

    Arguments:
        x, x_cf: Features before, with shape (N, D), and after, with
            shape (*, N, D).
        tolerance: As for `is_valid`.
    """
    log_odds, gain = problem.outcome(x, x_cf)
    return is_valid(log_odds, tolerance=tolerance) & is_plausible(gain, tolerance=tolerance)


def check_one_each(problem: Problem, x: Tensor, recommendation: Recommendation) -> None:
    """Raise ValueError unless there is one recommendation for each person of x (N, D)."""
    checks.people("x", x, problem.population.features)
    checks.not_empty("x", x)
    if x.ndim != 2:
        raise ValueError(f"x has shape {tuple(x.shape)}. A single person is x[None].")
    if recommendation.values.ndim == 3:
        raise ValueError(
            "The recommendation is an ensemble's: choose a member, recommendation[member]."
        )
    checks.shape("recommendation.values", recommendation.values, x.shape)


def summarise(people: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return means over people, a row for each group of `by`: the metrics of the tables.

    has_recourse, validity, joint (and validity_in_truth) are shares
    of all people. plausibility, hap, n_acted and outside are means
    over those who have a recommendation; cost_mean and cost_sd over
    valid recommendations.

    Arguments:
        people: As `per_person` gives them, with further columns for
            `by`.
        by: Names of columns.
    Source: section 5.1 of arXiv:2604.08030; it says of the oracle's
        plausibility whom it is the mean of, and of nothing else.
    """
    rows = []
    for key, group in people.groupby(list(by), sort=False):
        has_recourse, valid = group[group.has_recourse], group[group.valid]
        row = dict(zip(by, key, strict=True)) | {
            "n_people": len(group),
            "has_recourse": group.has_recourse.mean(),
            "validity": group.valid.mean(),
            "plausibility": has_recourse.plausible.mean(),
            "joint": group.joint.mean(),
            "cost_mean": valid.cost.mean(),
            "cost_sd": valid.cost.std(),
            "hap": has_recourse.hard_action.mean(),
            "n_acted": has_recourse.n_acted.mean(),
            "outside": has_recourse.outside.mean(),
        }
        if "valid_in_truth" in group:
            row["validity_in_truth"] = group.valid_in_truth.mean()
        rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Pruned:
    """Leave out what a recommendation does not need, from the hardest feature down.

    This is one pass of backward elimination. A feature is left out
    where the rest stays valid and plausible; values stay as they are. Of features
    that are equally hard the one whose action costs most goes first.
    Who had recourse keeps it.

    Arguments:
        solver: Whose recommendations are pruned: any solver, or an
            ensemble of iCARMA (`recommend_each`).
        problem: Downstream effects follow by its flow.
    """

    solver: Any
    problem: Problem

    def recommend(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the solver's recommendations, pruned, with shape (N, D).

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K).
        Raises: ValueError: as the solver.
        """
        return self.prune(x, preferences, self.solver.recommend(x, preferences))

    def recommend_each(self, x: Tensor, preferences: Preferences) -> Recommendation:
        """Return the recommendations of an ensemble's members, pruned, (M, N, D)."""
        return self.prune(x, preferences, self.solver.recommend_each(x, preferences))

    def prune(
        self, x: Tensor, preferences: Preferences, recommendation: Recommendation
    ) -> Recommendation:
        """Return recommendations without the features that are not needed.

        Arguments:
            x: Refused people, with shape (N, D).
            preferences: Theirs, with scores (N, K).
            recommendation: Of shape (*, N, D).
        """
        problem, columns = self.problem, self.problem.population.actionable_index
        best = problem.discretise(x, recommendation)
        is_joint_before = is_joint(problem, x, best.x_cf, ROUNDING)
        acted = best.is_acted[..., columns].to(x.dtype)
        effort = problem.effort(x[..., columns], acted, best.values[..., columns])
        cost = preferences.weight * effort
        # scores are whole numbers, so that cost decides between equal ones only
        order = (preferences.scores + cost / (1 + cost)).argsort(-1, descending=True)
        order = torch.tensor(columns)[order]
        for feature in order.unbind(-1):
            is_acted = best.is_acted.scatter(-1, feature[..., None], False)
            values = torch.where(is_acted, best.values, x)
            fewer = problem.discretise(x, Recommendation(is_acted, values, values))
            is_left_out = is_joint_before & is_joint(problem, x, fewer.x_cf, ROUNDING)
            is_left_out = is_left_out[..., None]
            best = Recommendation(
                torch.where(is_left_out, fewer.is_acted, best.is_acted),
                torch.where(is_left_out, fewer.values, best.values),
                torch.where(is_left_out, fewer.x_cf, best.x_cf),
            )
        return best
