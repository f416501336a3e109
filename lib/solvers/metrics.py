"""What is measured of a recommendation, person by person, and how people are averaged."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lib.causal.world import World
from lib.preferences.scores import Preferences
from lib.problem.recourse import Problem, Recommendation


def hard_action(preferences: Preferences, is_acted: Tensor) -> Tensor:
    """Whether a person is told to act on a feature they like least among those they can act on; ties all count.

    Its mean over people who are told to do something is the paper's hap, the hard actions probability.

    Arguments:
        preferences: Scores with shape (*, N, K).
        is_acted: Over the K actionable features, with shape (*, N, K).
    Source: section 5.4 of arXiv:2604.08030; the tie rule is ours.
    """
    scores = torch.where(preferences.is_actionable, preferences.scores, 0)
    is_worst = scores == scores.amax(-1, keepdim=True)
    return (is_acted & is_worst).any(-1)


def per_person(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    truth: World | None = None,
) -> pd.DataFrame:
    """One row a person: has_recourse, valid, plausible, joint, spared, cost, hard_action, n_acted, log_p, log_p_cf, log_p_change.

    Arguments:
        x: Rejected people, with shape (N, D).
        recommendation: One for each person, each tensor with shape (N, D).
        truth: A world to repeat the action in; adds valid_in_truth, the decision where the flow is not trusted.
    Source: section 5.1 of arXiv:2604.08030: valid is h(x_cf) >= 0.5, plausible is log p(x_cf) >= log p(x).
        joint is both, spared is joint without a hardest action. cost is unweighted.
    """
    log_p, log_p_cf = problem.flow.log_prob(x), problem.flow.log_prob(recommendation.x_cf)
    acts, actionable = recommendation.is_acted, problem.population.actionable_index
    columns = {
        "has_recourse": recommendation.has_recourse,
        "valid": problem.accepts(recommendation.x_cf),
        "plausible": log_p_cf >= log_p,
        "cost": problem.action_cost(
            *(part[..., actionable] for part in (x, acts, recommendation.values))
        ),
        "hard_action": hard_action(preferences, acts[..., actionable]),
        "n_acted": acts.sum(-1),
        "log_p": log_p,
        "log_p_cf": log_p_cf,
        "log_p_change": log_p_cf - log_p,
    }
    columns["joint"] = columns["valid"] & columns["plausible"]
    columns["spared"] = columns["joint"] & ~columns["hard_action"]
    if truth is not None:
        columns["valid_in_truth"] = problem.accepts(
            truth.counterfactual(x, acts, recommendation.values)
        )
    return pd.DataFrame({name: values.numpy() for name, values in columns.items()})


def summarise(people: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means over people, a row for each group of `by`: the metrics of the paper's tables and ours.

    has_recourse, validity and joint are shares of all people. plausibility and hap are shares of those who were told to
    do something: the paper says so of the oracle's plausibility, its oracle's hap can be nothing else (notebook 05), and
    for every other solver it is our reading. cost_mean and cost_sd are over valid recommendations; sparsity is the mean
    of n_acted.
    """
    rows = []
    for key, group in people.groupby(list(by), sort=False):
        told, valid = group[group.has_recourse], group[group.valid]
        row = dict(zip(by, key, strict=True)) | {
            "n_people": len(group),
            "has_recourse": group.has_recourse.mean(),
            "validity": group.valid.mean(),
            "plausibility": told.plausible.mean(),
            "joint": group.joint.mean(),
            "cost_mean": valid.cost.mean(),
            "cost_sd": valid.cost.std(),
            "hap": told.hard_action.mean(),
            "sparsity": group.n_acted.mean(),
        }
        if "valid_in_truth" in group:
            row["validity_in_truth"] = group.valid_in_truth.mean()
        rows.append(row)
    return pd.DataFrame(rows)
