"""What is measured of a recommendation, person by person, and how people are averaged."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.causal.world import World
from lib.preferences.scores import Preferences
from lib.problem.recourse import Problem, Recommendation

# what `summarise` reads of the columns that `per_person` gives
AVERAGED = ("has_recourse", "valid", "plausible", "joint", "cost", "hard_action", "n_acted")


def hard_action(preferences: Preferences, is_acted: Tensor) -> Tensor:
    """Return whether a person acts on a feature they like least of those they can act on.

    Ties all count. The mean over people who have a recommendation is
    the paper's hap, the hard actions probability.

    Arguments:
        preferences: Scores with shape (N, K).
        is_acted: Over the K actionable features, with shape (*, N,
            K), bool.
    Returns: With shape (*, N).
    Raises: ValueError: is_acted has another shape or is no mask.
    Source: section 5.4 of arXiv:2604.08030; the tie rule is ours.
    Example:
        The second person ranks the third feature last; the fourth is
        closed to them.

        >>> preferences = Preferences(torch.tensor([[1, 2, 3, 4], [1, 2, 3, 5]]))
        >>> hard_action(preferences, torch.tensor([[True, True, True, False]] * 2))
        tensor([False,  True])
    """
    expected = tuple(preferences.scores.shape)
    if tuple(is_acted.shape[-len(expected) :]) != expected or is_acted.dtype != torch.bool:
        raise ValueError(
            f"is_acted is of {is_acted.dtype} with shape {tuple(is_acted.shape)}, expected "
            f"a mask of torch.bool with shape (*, {', '.join(map(str, expected))}). Was it "
            "cut to the actionable features?"
        )
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
    """Return a table of what each person's recommendation is worth, a row a person.

    Columns: has_recourse, valid, plausible, joint, spared, cost,
    hard_action, n_acted, log_p, log_p_cf, log_p_change. joint is
    valid and plausible; spared is joint without a hardest action;
    cost is unweighted.

    Arguments:
        x: Refused people, with shape (N, D).
        recommendation: One for each person, each tensor with shape
            (N, D).
        truth: A world to repeat the action in; adds valid_in_truth,
            the decision where the flow is not trusted.
    Raises: ValueError: the recommendation is of a stack, or shapes or
        features differ.
    Source: section 5.1 of arXiv:2604.08030: valid is h(x_cf) >= 0.5,
        plausible is log p(x_cf) >= log p(x).
    Example:
        Two refused people who do nothing: as plausible as before, and
        refused as before.

        >>> from lib.problem import loan
        >>> problem = loan.problem()
        >>> x = problem.refused("test")[:2]
        >>> nothing = Recommendation(torch.zeros_like(x, dtype=torch.bool), x, x)
        >>> all_easy = Preferences(torch.ones(2, 4, dtype=torch.long))
        >>> people = per_person(problem, x, all_easy, nothing)
        >>> people[["has_recourse", "valid", "plausible", "cost"]]
           has_recourse  valid  plausible  cost
        0         False  False       True   0.0
        1         False  False       True   0.0
    """
    _check(problem, x, preferences, recommendation, truth)
    log_p = problem.flow.log_prob(x)
    log_p_cf = problem.flow.log_prob(recommendation.x_cf)
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


def _check(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    truth: World | None,
) -> None:
    """Raise ValueError unless all are of the same people and of the problem's features."""
    population = problem.population
    checks.people("x", x, population.features)
    if x.ndim != 2 or len(x) == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, expected (N, {len(population.features)}) with "
            "one person or more. A single person is x[None]."
        )
    checks.shape(
        "preferences.scores", preferences.scores, (len(x), len(population.actionable))
    )
    if recommendation.values.ndim == 3:
        raise ValueError(
            f"The recommendation is of a stack, with shape "
            f"{tuple(recommendation.values.shape)}: index a member first, "
            "recommendation[member]."
        )
    for name in ("is_acted", "values", "x_cf"):
        checks.shape(f"recommendation.{name}", getattr(recommendation, name), x.shape)
    if truth is not None and truth.features != population.features:
        raise ValueError(
            f"truth has the features {', '.join(truth.features)}; the population has "
            f"{', '.join(population.features)}. List them in the population's order."
        )


def summarise(people: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return means over people, a row for each group of `by`.

    They are the metrics of the paper's tables and ours. has_recourse,
    validity and joint are shares of all people. plausibility and hap
    are shares of those who have a recommendation: the paper says so
    of the oracle's plausibility, its oracle's hap can be nothing else
    (notebook 05), and for every other solver it is our reading.
    cost_mean and cost_sd are over valid recommendations; sparsity is
    the mean of n_acted.

    Arguments:
        people: As `per_person` gives them, with further columns for
            `by`.
        by: Names of columns.
    Raises: ValueError: `people` is empty or lacks a column.
    Example:
        >>> people = pd.DataFrame({
        ...     "solver": ["grid", "grid", "network"],
        ...     "has_recourse": [True, False, True],
        ...     "valid": [True, False, True],
        ...     "plausible": [True, True, False],
        ...     "joint": [True, False, False],
        ...     "cost": [0.2, 0.0, 0.1],
        ...     "hard_action": [False, False, True],
        ...     "n_acted": [2, 0, 1],
        ... })
        >>> columns = ["solver", "n_people", "joint", "plausibility", "cost_mean"]
        >>> summarise(people, ["solver"])[columns]
            solver  n_people  joint  plausibility  cost_mean
        0     grid         2    0.5           1.0        0.2
        1  network         1    0.0           0.0        0.1
    """
    if isinstance(by, str):
        raise ValueError(f"by is the name {by!r}: give a list of names, [{by!r}].")
    checks.known("column of people", [*by, *AVERAGED], tuple(people.columns))
    if people.empty:
        raise ValueError("people is empty: there is nobody to average over.")
    rows = []
    for key, group in people.groupby(list(by), sort=False):
        helped, valid = group[group.has_recourse], group[group.valid]
        row = dict(zip(by, key, strict=True)) | {
            "n_people": len(group),
            "has_recourse": group.has_recourse.mean(),
            "validity": group.valid.mean(),
            "plausibility": helped.plausible.mean(),
            "joint": group.joint.mean(),
            "cost_mean": valid.cost.mean(),
            "cost_sd": valid.cost.std(),
            "hap": helped.hard_action.mean(),
            "sparsity": group.n_acted.mean(),
        }
        if "valid_in_truth" in group:
            row["validity_in_truth"] = group.valid_in_truth.mean()
        rows.append(row)
    return pd.DataFrame(rows)
