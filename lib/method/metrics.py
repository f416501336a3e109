"""What is measured of a recommendation, person by person, and how people are averaged."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, is_plausible, is_valid
from lib.method.world import World

# what `summarise` reads of the columns that `per_person` gives
AVERAGED = (
    "has_recourse",
    "valid",
    "plausible",
    "joint",
    "cost",
    "hard_action",
    "n_acted",
    "outside",
)


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

    Columns: has_recourse, valid, plausible, joint, cost, hard_action,
    n_acted, outside, log_p, log_p_cf, log_p_change. joint is valid
    and plausible; cost is unweighted; outside: is a feature moved out
    of the range of the training people?

    Arguments:
        x: Refused people, with shape (N, D).
        recommendation: One for each person, each tensor with shape
            (N, D).
        truth: A world to repeat the action in; adds valid_in_truth,
            the decision where the flow is not trusted.
    Raises: ValueError: the recommendation is of a stack, or shapes or
        features differ.
    Source: section 5.1 of arXiv:2604.08030: valid is h(x_cf) >= 0.5,
        plausible is log p(x_cf) >= log p(x); see
        `problem.is_plausible`.
    Example:
        Two refused people who do nothing: as plausible as before, and
        refused as before.

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
    gain = log_p_cf - log_p
    acts, actionable = recommendation.is_acted, problem.population.actionable_index
    columns = {
        "has_recourse": recommendation.has_recourse,
        "valid": is_valid(problem.log_odds(recommendation.x_cf)),
        "plausible": is_plausible(gain),
        "cost": problem.cost_of(x, recommendation),
        "hard_action": hard_action(preferences, acts[..., actionable]),
        "n_acted": acts.sum(-1),
        "outside": outside(problem, x, recommendation.x_cf),
        "log_p": log_p,
        "log_p_cf": log_p_cf,
        "log_p_change": gain,
    }
    columns["joint"] = columns["valid"] & columns["plausible"]
    if truth is not None:
        columns["valid_in_truth"] = problem.accepts(
            truth.counterfactual(x, acts, recommendation.values)
        )
    return pd.DataFrame({name: values.numpy() for name, values in columns.items()})


def outside(problem: Problem, x: Tensor, x_cf: Tensor) -> Tensor:
    """Return whether a feature that moved lies outside its range, with shape (*,).

    The range is that of the training people.

    Arguments:
        x, x_cf: Features before and after an action, with shape (*,
            D).
    Raises: ValueError: shapes differ.
    Example:
        >>> x = problem.refused("test")[:2]
        >>> x_cf = x.clone()
        >>> x_cf[1, problem.population.features.index("income")] = 99.0
        >>> outside(problem, x, x_cf)
        tensor([False,  True])
    """
    checks.shape("x_cf", x_cf, x.shape)
    population = problem.population
    is_out = (x_cf > population.high) | (x_cf < population.low)
    return (is_out & (x_cf != x)).any(-1)


def redundant(problem: Problem, x: Tensor, recommendation: Recommendation) -> Tensor:
    """Return whether a person is recommended more than is needed, with shape (N,).

    More than is needed: what is recommended is valid and plausible,
    and stays so, at a lower cost, when one feature is left out and
    the others are set to the same values.

    Arguments:
        x: Refused people, with shape (N, D).
        recommendation: One for each person, each tensor with shape
            (N, D).
    Raises: ValueError: the recommendation is of a stack, or shapes
        differ.
    Example:
        Acting on savings on top of income is not needed where income
        alone is enough:
        >>> x = problem.refused("test")[:1]
        >>> acts = torch.zeros_like(x, dtype=torch.bool)
        >>> acts[:, problem.population.features.index("income")] = True
        >>> values = x + 1.5
        >>> x_cf = problem.flow.counterfactual(x, acts, values)
        >>> enough = Recommendation(acts, values, x_cf)
        >>> redundant(problem, x, enough)
        tensor([False])
    """
    check_one_each(problem, x, recommendation)
    acts, values = recommendation.is_acted, recommendation.values

    def helps(x_cf: Tensor) -> Tensor:
        log_odds, gain = problem.outcome(x, x_cf)
        return is_valid(log_odds) & is_plausible(gain)

    is_redundant = torch.zeros(len(x), dtype=torch.bool)
    for j in problem.population.actionable_index:
        fewer = acts.clone()
        fewer[:, j] = False
        moves = acts[:, j] & (values[:, j] != x[:, j])
        is_redundant |= moves & helps(problem.flow.counterfactual(x, fewer, values))
    return is_redundant & helps(recommendation.x_cf)


def efficiency(joint: Tensor, cost: Tensor, cheapest: Tensor) -> Tensor:
    r"""Return how near each person's recommendation is to the best known, with shape (*,).

    .. math:: e = \mathbb 1[\text{valid and plausible}] \cdot \min(1, c^* / c)

    Arguments:
        joint: Whether it is valid and plausible, with shape (*,).
        cost: What it costs, by the person's own weights, with shape
            (*,).
        cheapest: The lowest cost known for this person, by the same
            weights, infinite where none is known, with shape (*,).
    Raises: ValueError: shapes differ.
    Example:
        Twice as dear as need be, no help, and better than what was
        known:

        >>> joint, cost = torch.tensor([True, False, True]), torch.tensor([0.4, 0.1, 0.2])
        >>> efficiency(joint, cost, torch.tensor([0.2, 0.1, torch.inf]))
        tensor([0.5000, 0.0000, 1.0000])
    """
    checks.shape("cost", cost, joint.shape)
    checks.shape("cheapest", cheapest, joint.shape)
    ratio = torch.where(cheapest < cost, cheapest / cost, 1.0)
    return torch.where(joint, ratio, 0.0)


def _check(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    recommendation: Recommendation,
    truth: World | None,
) -> None:
    """Raise ValueError unless all are of the same people and of the problem's features."""
    population = problem.population
    check_one_each(problem, x, recommendation)
    checks.shape(
        "preferences.scores", preferences.scores, (len(x), len(population.actionable))
    )
    if truth is not None and truth.features != population.features:
        raise ValueError(
            f"truth has the features {', '.join(truth.features)}; the population has "
            f"{', '.join(population.features)}. List them in the population's order."
        )


def check_one_each(problem: Problem, x: Tensor, recommendation: Recommendation) -> None:
    """Raise ValueError unless there is one recommendation for each of these people.

    Arguments:
        x: People, with shape (N, D).
    Example:
        >>> x = problem.refused("test")[:2]
        >>> check_one_each(problem, x, Recommendation(x > 99, x, x)[:1])
        Traceback (most recent call last):
        ...
        ValueError: recommendation.values has shape (1, 7), expected (2, 7).
    """
    features = problem.population.features
    checks.people("x", x, features)
    if x.ndim != 2 or len(x) == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, expected (N, {len(features)}) with "
            "one person or more. A single person is x[None]."
        )
    if recommendation.values.ndim == 3:
        raise ValueError(
            f"The recommendation is of a stack, with shape "
            f"{tuple(recommendation.values.shape)}: index a member first, "
            "recommendation[member]."
        )
    checks.shape("recommendation.values", recommendation.values, x.shape)


def summarise(people: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return means over people, a row for each group of `by`.

    They are the metrics of the paper's tables and ours. has_recourse,
    validity and joint are shares of all people. plausibility and hap
    are shares of those who have a recommendation: the paper says so
    of the oracle's plausibility, its oracle's hap can be nothing else
    (notebook 05), and for every other solver it is our reading.
    n_acted, the number of features acted on, and outside are means
    over the same people. cost_mean and cost_sd are over valid
    recommendations.

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
        ...     "outside": [False, False, False],
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
            "n_acted": helped.n_acted.mean(),
            "outside": helped.outside.mean(),
        }
        if "valid_in_truth" in group:
            row["validity_in_truth"] = group.valid_in_truth.mean()
        rows.append(row)
    return pd.DataFrame(rows)
