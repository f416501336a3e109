"""What an audit says of groups: means, gaps between two groups, and how sure one can be.

Answers and chances are those of the room `measures`. Groups are row
numbers of people. A scenario is a frame of chances: a row for each
person, a column for each set of features.

Intervals are 95 % percentile bootstrap intervals over people, of
the reported network. The spread over networks is another thing and
stands in a table of its own, `over_seeds`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lib.base import checks
from lib.studies.bootstrap import TOO_FEW, Groups, Question, answered, check_groups
from lib.studies.measures import MEASURES, Mean, needs, wide

NO_GAP = {"difference": 0.0, "ratio": 1.0}

Scenarios = Mapping[str, pd.DataFrame]
Pairs = Mapping[str, tuple[str, str]]


def means(
    answers: pd.DataFrame, scenarios: Scenarios, groups: Groups, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Return the mean of every measure in every group, for the reported network.

    Of a share that is true for everyone, or for no one, resampling
    knows no spread: there the interval is the exact one of the
    binomial law (Clopper and Pearson).

    Arguments:
        scenarios: Chances of each set of features, by the
            scenario's name.
        groups: Row numbers of the people in each group.
        n_resamples: How often people are resampled for an interval.
        seed: Of the resampling.
    Returns: Columns scenario, method, group, measure, n_people,
        n_counted, estimate, low, high. Of n_people in the group
        n_counted are averaged over. If these are fewer than
        `bootstrap.FEWEST`, low and high are the words "too few",
        and so is estimate if there is no one at all.
    Raises: ValueError: the answers, the scenarios or the groups do
        not fit together.

    Example:
        >>> answers = pd.DataFrame({"person": range(60), "cost": 0.2}).assign(
        ...     setting="income", method="oracle", reported=True, valid=True,
        ...     joint=True, log_p_cf=-8.0, log_p_change=0.0,
        ... )
        >>> scenarios = {"one": pd.DataFrame({"income": np.ones(60)})}
        >>> groups = {"women": np.arange(30), "men": np.arange(30, 60)}
        >>> table = means(answers, scenarios, groups, 100, seed=0)
        >>> table[table.measure == "joint"].round(3)[["group", "estimate", "low", "high"]]
           group  estimate    low  high
        8  women       1.0  0.884   1.0
        9    men       1.0  0.884   1.0
    """
    _check(answers, scenarios, groups)
    asked, averaged = [], []
    for method, scenario, name, mean in _each(_reported(answers), scenarios):
        for group, who in groups.items():
            row: dict[str, Any] = {
                "scenario": scenario,
                "method": method,
                "group": group,
                "measure": name,
                "n_people": len(who),
                "n_counted": mean.n_counted(who),
            }
            asked.append(Question(row, (group,), mean))
            averaged.append(mean)
    rows = answered(asked, groups, n_resamples, seed)
    for row, mean in zip(rows, averaged, strict=True):
        if MEASURES[row["measure"]].over is None and row["low"] == row["high"] != TOO_FEW:
            successes = mean.n_successes(groups[row["group"]])
            exact = stats.binomtest(successes, row["n_counted"]).proportion_ci()
            row |= {"low": float(exact.low), "high": float(exact.high)}
    return pd.DataFrame(rows)


def gaps(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    pairs: Pairs,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return the gaps between two groups in every measure, for the reported network.

    A group in which everyone succeeds adds no width to an interval.

    Arguments:
        scenarios, groups, n_resamples, seed: As for `means`.
        pairs: The two groups of each gap, by its name.
    Returns: Columns scenario, method, gap, measure, kind,
        n_counted, estimate, low, high. kind is "difference" (first
        group minus second) or, where the measure has a natural
        zero, "ratio" (first by second). n_counted is the fewest who
        are counted in either group; for a ratio of shares, the
        fewest who succeed.
    Raises: ValueError: the answers, the scenarios, the groups or
        the pairs do not fit together.

    Example:
        >>> answers = pd.DataFrame({"person": range(60), "valid": True}).assign(
        ...     setting="income", method="oracle", reported=True,
        ...     cost=lambda rows: 0.2 + 0.1 * (rows.person < 30),
        ...     joint=True, log_p_cf=-8.0, log_p_change=0.0,
        ... )
        >>> scenarios = {"one": pd.DataFrame({"income": np.ones(60)})}
        >>> groups = {"women": np.arange(30), "men": np.arange(30, 60)}
        >>> pairs = {"women - men": ("women", "men")}
        >>> table = gaps(answers, scenarios, groups, pairs, 100, seed=0)
        >>> table[table.measure == "cost"].round(3)[["kind", "estimate", "low", "high"]]
                 kind  estimate  low  high
        0  difference       0.1  0.1   0.1
        1       ratio       1.5  1.5   1.5
    """
    _check(answers, scenarios, groups, pairs)
    asked = []
    for method, scenario, name, mean in _each(_reported(answers), scenarios):
        row = {"scenario": scenario, "method": method}
        asked += gaps_of(row, name, [mean], groups, pairs)
    return pd.DataFrame(answered(asked, groups, n_resamples, seed))


def growth(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    pairs: Pairs,
    since: str,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return how each gap compares with that of the same people in another scenario.

    A difference less the difference there; a ratio divided by the
    ratio there.

    Arguments:
        scenarios, groups, pairs, n_resamples, seed: As for `gaps`.
        since: The scenario that the others are compared with.
    Returns: Columns as of `gaps`, for all scenarios but `since`.
    Raises: ValueError: as `gaps`; or there is no scenario `since`.

    Example:
        >>> answers = pd.concat(
        ...     pd.DataFrame({"person": range(60), "setting": setting}).assign(
        ...         cost=lambda rows: 0.2 + share * (rows.person < 30),
        ...         method="oracle", reported=True, valid=True,
        ...         joint=True, log_p_cf=-8.0, log_p_change=0.0,
        ...     )
        ...     for setting, share in (("income", 0.1), ("savings", 0.3))
        ... )
        >>> scenarios = {
        ...     "before": pd.DataFrame({"income": np.ones(60)}),
        ...     "after": pd.DataFrame({"savings": np.ones(60)}),
        ... }
        >>> groups = {"women": np.arange(30), "men": np.arange(30, 60)}
        >>> pairs = {"women - men": ("women", "men")}
        >>> table = growth(answers, scenarios, groups, pairs, "before", 100, seed=0)
        >>> table[table.measure == "cost"].round(3)[["scenario", "kind", "estimate"]]
          scenario        kind  estimate
        0    after  difference     0.200
        1    after       ratio     1.667
    """
    _check(answers, scenarios, groups, pairs)
    checks.known("scenario", [since], tuple(scenarios))
    every = list(_each(_reported(answers), scenarios))
    before = {
        (method, name): mean for method, scenario, name, mean in every if scenario == since
    }
    asked = []
    for method, scenario, name, mean in every:
        if scenario != since:
            row = {"scenario": scenario, "method": method}
            both = [mean, before[method, name]]
            asked += gaps_of(row, name, both, groups, pairs)
    return pd.DataFrame(answered(asked, groups, n_resamples, seed))


def over_seeds(
    answers: pd.DataFrame, scenarios: Scenarios, groups: Groups, pairs: Pairs
) -> pd.DataFrame:
    """Return the gaps of every network, without intervals.

    Only of methods that have several networks, and of gaps with
    someone to count on both sides. Networks are told apart by the
    column member of the answers, and by seed where there is no such
    column.

    Arguments:
        scenarios, groups, pairs: As for `gaps`.
    Returns: Columns seed, scenario, method, gap, measure, kind,
        estimate; a network has its own rows even if another one has
        the same seed.
    Raises: ValueError: as `gaps`.

    Example:
        >>> answers = pd.concat(
        ...     pd.DataFrame({"person": range(60), "member": member}).assign(
        ...         cost=lambda rows: 0.2 + 0.1 * member * (rows.person < 30),
        ...         seed=7, setting="income", method="iCARMA", reported=member == 0,
        ...         valid=True, joint=True, log_p_cf=-8.0, log_p_change=0.0,
        ...     )
        ...     for member in range(2)
        ... )
        >>> scenarios = {"one": pd.DataFrame({"income": np.ones(60)})}
        >>> groups = {"women": np.arange(30), "men": np.arange(30, 60)}
        >>> table = over_seeds(answers, scenarios, groups, {"gap": ("women", "men")})
        >>> table[table.measure == "cost"].round(3)[["seed", "kind", "estimate"]]
           seed        kind  estimate
        0     7  difference       0.0
        1     7       ratio       1.0
        8     7  difference       0.1
        9     7       ratio       1.5
    """
    _check(answers, scenarios, groups, pairs)
    network = "member" if "member" in answers else "seed"
    needs(answers, ["seed"])
    n_networks = answers.groupby("method")[network].transform("nunique")
    rows = []
    for seed, own in answers[n_networks > 1].groupby("seed"):
        for method, scenario, name, mean in _each(own, scenarios, ["method", network]):
            row = {"seed": seed, "scenario": scenario, "method": method}
            for question in gaps_of(row, name, [mean], groups, pairs):
                if question.row.pop("n_counted"):
                    who = (groups[group] for group in question.groups)
                    estimate = float(question.statistic(*who))
                    rows.append(question.row | {"estimate": estimate})
    columns = ["seed", "scenario", "method", "gap", "measure", "kind", "estimate"]
    return pd.DataFrame(rows, columns=columns)


def gaps_of(
    row: dict[str, Any], name: str, means: Sequence[Mean], groups: Groups, pairs: Pairs
) -> list[Question]:
    """Return the questions about the gaps of one measure, for `bootstrap.answered`.

    Arguments:
        row: What their rows say already.
        name: Of the measure.
        means: Its mean; of two means the first one's gap is
            compared with the second's.
        groups, pairs: As for `gaps`.

    Example:
        >>> mean = Mean(np.array([0.3, 0.1]), np.array([1.0, 1.0]))
        >>> groups = {"women": np.array([0]), "men": np.array([1])}
        >>> asked = gaps_of({}, "cost", [mean], groups, {"gap": ("women", "men")})
        >>> for question in asked:
        ...     kind, (a, b) = question.row["kind"], groups.values()
        ...     print(kind, round(float(question.statistic(a, b)), 1))
        difference 0.2
        ratio 3.0
    """
    mean, since = means[0], means[1] if len(means) > 1 else None

    def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return mean(a) - mean(b) - (since(a) - since(b) if since else 0)

    def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return mean(a) / mean(b) / (since(a) / since(b) if since else 1)

    measure = MEASURES[name]
    asked = []
    for gap, pair in pairs.items():
        every = [(one, groups[group]) for one in means for group in pair]
        n_counted = min(one.n_counted(who) for one, who in every)
        own = row | {"gap": gap, "measure": name}
        counted = {"kind": "difference", "n_counted": n_counted}
        asked.append(Question(own | counted, tuple(pair), difference))
        if measure.has_zero:  # rare successes make a ratio jump, and zero can't divide
            n_in_ratio = min(one.n_in_ratio(who, measure) for one, who in every)
            counted = {"kind": "ratio", "n_counted": min(n_counted, n_in_ratio)}
            asked.append(Question(own | counted, tuple(pair), ratio))
    return asked


def within_budget(
    answers: pd.DataFrame, chances: pd.DataFrame, who: np.ndarray, budgets: Sequence[float]
) -> np.ndarray:
    """Return the share of a group that has joint recourse at each cost or less.

    Joint recourse is valid and plausible.

    Arguments:
        answers: Of one method and one network.
        chances: A row for each person, a column for each set.
        who: Row numbers of the group.
        budgets: Costs, B of them.
    Returns: Shares with shape (B,).
    Raises: ValueError: the answers, the chances and the group do
        not fit together.

    Example:
        >>> answers = pd.DataFrame({"person": [0, 1], "setting": "income"}).assign(
        ...     cost=[0.1, 0.3], joint=[True, True]
        ... )
        >>> chances = pd.DataFrame({"income": [1.0, 1.0]})
        >>> within_budget(answers, chances, np.array([0, 1]), [0.0, 0.2, 0.4]).tolist()
        [0.0, 0.5, 1.0]
    """
    needs(answers, ["cost", "joint"])
    check_groups({"who": who}, len(chances))
    cost = answers.assign(cost=answers.cost.where(answers.joint))
    own_cost, own_chances = wide(cost, "cost", chances)[who], chances.to_numpy()[who]
    return np.array(
        [(own_chances * (own_cost <= budget)).sum(1).mean() for budget in budgets]
    )


def verdict(row: pd.Series) -> str:
    """Return whether a gap, or its growth, says that the first group is worse off.

    Arguments:
        row: Of `gaps` or `growth`.
    Returns: "holds", "opposite holds", "open" or "too few".

    Example:
        >>> row = {"measure": "cost", "kind": "difference", "low": 0.1, "high": 0.2}
        >>> verdict(pd.Series(row)), verdict(pd.Series(row | {"low": -0.1}))
        ('holds', 'open')
    """
    if row.low == TOO_FEW:
        return TOO_FEW
    equal = NO_GAP[row.kind]
    if row.low <= equal <= row.high:
        return "open"
    is_more = row.low > equal
    return "holds" if is_more == (MEASURES[row.measure].worse > 0) else "opposite holds"


def as_text(row: pd.Series, digits: int = 3) -> str:
    """Return an estimate with its interval: "0.031 [0.012, 0.050]", "0.031 [too few: 12]".

    Arguments:
        row: Of `means`, `gaps` or `growth`.
        digits: After the point.

    Example:
        >>> row = pd.Series({"estimate": 0.0312, "low": 0.0121, "high": 0.0503})
        >>> as_text(row)
        '0.031 [0.012, 0.050]'
        >>> as_text(pd.Series({"estimate": 0.0312, "low": "too few", "n_counted": 12}))
        '0.031 [too few: 12]'
    """
    if row.estimate == TOO_FEW:
        return TOO_FEW
    interval = (
        f"{TOO_FEW}: {row.n_counted}"
        if row.low == TOO_FEW
        else f"{row.low:.{digits}f}, {row.high:.{digits}f}"
    )
    return f"{row.estimate:.{digits}f} [{interval}]"


def _each(
    answers: pd.DataFrame, scenarios: Scenarios, by: Sequence[str] = ("method",)
) -> Iterator[tuple[str, str, str, Mean]]:
    """Yield method, scenario, name of the measure, and its mean.

    Arguments:
        by: Columns that tell networks apart; left out, there is one
            for each method.
    """
    for scenario, chances in scenarios.items():
        for (method, *_), own in answers.groupby(list(by), sort=False):
            for name, measure in MEASURES.items():
                yield method, scenario, name, Mean.of(own, measure, chances)


def _check(
    answers: pd.DataFrame, scenarios: Scenarios, groups: Groups, pairs: Pairs | None = None
) -> None:
    """Raise ValueError unless answers, scenarios, groups and pairs fit together."""
    needs(answers, ["method", "reported"])
    if not scenarios or not groups:
        raise ValueError(
            f"Expected one scenario or more and one group or more, "
            f"got {len(scenarios)} and {len(groups)}."
        )
    for chances in scenarios.values():
        check_groups(groups, len(chances))
    for pair in (pairs or {}).values():
        checks.known("group", pair, tuple(groups))


def _reported(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of the reported networks; every method must have one."""
    if missing := sorted(set(answers.method) - set(answers.method[answers.reported])):
        raise ValueError(
            f"No seed of {missing[0]} is reported, so it would be missing from the table: "
            "choose one when you ask it (`chosen`)."
        )
    return answers[answers.reported]
