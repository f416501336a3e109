"""What an audit says of groups: means, gaps between two groups, and how sure one can be.

Answers and chances are those of the module `measures`. Groups are row
numbers of people. A scenario is a frame of chances: a row for each
person, a column for each set of features.

Estimates are means over the networks of a method, and intervals are
over people and networks (`bootstrap`). `gaps` and `growth` return
questions, and `bootstrap.answered` answers them: what is asked in one
call is one family, and its intervals hold for all of it at once.
`simulated` says what small audits would have seen of a known gap.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lib import checks
from lib.paper.fairness.bootstrap import (
    FEWEST,
    TOO_FEW,
    Groups,
    Question,
    answered,
    check_groups,
)
from lib.paper.fairness.measures import MEASURES, SHARES, Mean, needs, wide

NO_GAP = {"difference": 0.0, "ratio": 1.0}
USUAL = ("cost", "log-density", "joint")
STANDARD_ERRORS = 1.96  # on either side, of the interval of a simulated audit

Scenarios = Mapping[str, pd.DataFrame]
Pairs = Mapping[str, tuple[str, str]]


def means(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    n_resamples: int,
    seed: int,
    measures: Sequence[str] = USUAL,
) -> pd.DataFrame:
    """Return the mean of each measure in each group, over people and networks.

    Of a share that is true for everyone, or for no one, resampling
    knows no spread: there the interval of the row alone is the exact
    one of the binomial law (Clopper and Pearson).

    Arguments:
        scenarios: Chances of each set of features, by the
            scenario's name.
        groups: Row numbers of the people in each group.
        n_resamples: How often people and networks are resampled.
        seed: Of the resampling.
        measures: Names of `MEASURES`.
    Returns: Columns scenario, method, group, measure, n_people,
        n_counted, and those of `bootstrap.answered`. Of n_people in
        the group n_counted are averaged over.
    Raises: ValueError: the answers, the scenarios or the groups do
        not fit together; a measure is unknown.
    """
    _check(answers, scenarios, groups, measures)
    asked, averaged = [], []
    for method, scenario, name, mean in _each(answers, scenarios, measures):
        for group, who in groups.items():
            row: dict[str, Any] = {
                "scenario": scenario,
                "method": method,
                "group": group,
                "measure": name,
                "n_people": len(who),
                "n_counted": mean.n_counted(who),
            }
            statistic = partial(mean, who)
            asked.append(Question(row, (group,), statistic, reported=mean.reported))
            averaged.append(mean)
    rows = answered(asked, groups, n_resamples, seed).to_dict("records")
    for row, mean in zip(rows, averaged, strict=True):
        is_share = MEASURES[row["measure"]].column in SHARES
        if is_share and row["low_alone"] == row["high_alone"] != TOO_FEW:
            successes = mean.n_successes(groups[row["group"]])
            exact = stats.binomtest(successes, row["n_counted"]).proportion_ci()
            row |= {"low_alone": float(exact.low), "high_alone": float(exact.high)}
    return pd.DataFrame(rows)


def gaps(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    pairs: Pairs,
    measures: Sequence[str] = USUAL,
) -> list[Question]:
    """Return the questions for the gaps between two groups.

    `bootstrap.answered` answers them.

    A group in which everyone succeeds adds no width to an interval.

    Arguments:
        scenarios, groups, measures: As for `means`.
        pairs: The two groups of each gap, by its name.
    Returns: Questions whose rows have scenario, method, gap, measure,
        kind, n_counted. kind is "difference" (first group minus
        second) or, where the measure has a natural zero, "ratio"
        (first by second). n_counted is the fewest who are counted in
        either group; for a ratio of shares, the fewest who succeed.
    Raises: ValueError: the answers, the scenarios, the groups or
        the pairs do not fit together; a measure is unknown.
    """
    _check(answers, scenarios, groups, measures, pairs)
    asked = []
    for method, scenario, name, mean in _each(answers, scenarios, measures):
        row = {"scenario": scenario, "method": method}
        asked += gaps_of(row, name, [mean], groups, pairs)
    return asked


def growth(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    pairs: Pairs,
    since: str,
    measures: Sequence[str] = USUAL,
) -> list[Question]:
    """Return the questions how each gap compares with that of the same people elsewhere.

    A difference less the difference there; a ratio divided by the
    ratio there.

    Arguments:
        scenarios, groups, pairs, measures: As for `gaps`.
        since: The scenario that the others are compared with.
    Returns: Questions with rows as of `gaps` and a column since, for
        all scenarios but that one.
    Raises: ValueError: as `gaps`; or there is no scenario `since`.
    """
    _check(answers, scenarios, groups, measures, pairs)
    checks.one_of("scenario", [since], tuple(scenarios))
    every = list(_each(answers, scenarios, measures))
    before = {
        (method, name): mean for method, scenario, name, mean in every if scenario == since
    }
    asked = []
    for method, scenario, name, mean in every:
        if scenario != since:
            row = {"scenario": scenario, "since": since, "method": method}
            both = [mean, before[method, name]]
            asked += gaps_of(row, name, both, groups, pairs)
    return asked


def gaps_of(
    row: dict[str, Any], name: str, means: Sequence[Mean], groups: Groups, pairs: Pairs
) -> list[Question]:
    """Return the questions about the gaps of one measure.

    Arguments:
        row: What their rows say already.
        name: Of the measure.
        means: Its mean; of two means the first one's gap is
            compared with the second's.
        groups, pairs: As for `gaps`.
    """
    measure, asked = MEASURES[name], []
    for gap, pair in pairs.items():
        every = [(one, groups[group]) for one in means for group in pair]
        n_counted = min(one.n_counted(who) for one, who in every)
        kinds = {"difference": n_counted}
        if measure.has_zero:  # rare successes make a ratio jump, and zero can't divide
            n_in_ratio = min(one.n_in_ratio(who, measure) for one, who in every)
            kinds["ratio"] = min(n_counted, n_in_ratio)
        for kind, n in kinds.items():
            about = row | {"gap": gap, "measure": name, "kind": kind, "n_counted": n}
            statistic = _gap_of(means, [groups[group] for group in pair], kind)
            is_ratio, reported = kind == "ratio", means[0].reported
            asked.append(Question(about, tuple(pair), statistic, is_ratio, reported))
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


def simulated(
    answers: pd.DataFrame,
    measure: str,
    chances: pd.DataFrame,
    pair: Sequence[np.ndarray],
    sizes: Sequence[int],
    n_audits: int,
    seed: int,
) -> pd.DataFrame:
    """Return what audits of so many people would have reported of a difference.

    Each audit draws people with replacement from the two groups, as
    if these were everyone there is, and for each person one set of
    features. Its interval is the difference plus and minus 1.96
    standard errors of two means over whoever is counted.

    Arguments:
        answers: Of one method and one network.
        measure: Name of one of `MEASURES`.
        chances: A row for each person, a column for each set.
        pair: Row numbers of the two groups.
        sizes: How many people an audit draws from each group.
        n_audits: How many audits of each size.
        seed: Of all draws.
    Returns: Columns n_people, width, seen, too_few. seen is the share
        of audits whose interval leaves out zero, too_few the share
        that can give no interval, width the mean of the intervals
        given ("too few" if there are none).
    Raises: ValueError: the measure is unknown, a number is not above
        zero, or the answers, the chances and the groups do not fit
        together.
    Source: Cochran, Sampling Techniques, chapter 6, for the standard
        error of a mean over a random number of people.
    """
    checks.one_of("measure", [measure], tuple(MEASURES))
    checks.positive(n_audits=n_audits)
    if not sizes or not all(isinstance(n, Integral) and n > 0 for n in sizes):
        raise ValueError(
            f"sizes must be whole numbers of people above zero, one or more, got {sizes!r}."
        )
    if len(pair) != 2:
        raise ValueError(f"Expected row numbers of two groups, got {len(pair)}.")
    check_groups({"first": pair[0], "second": pair[1]}, len(chances))
    rng = np.random.default_rng(seed)
    alone = [
        Mean.of(answers, MEASURES[measure], pd.DataFrame({name: np.ones(len(chances))}))
        for name in chances
    ]
    total = np.stack([one.total[0] for one in alone], 1)  # (N, S)
    counted = np.stack([one.counted[0] for one in alone], 1)
    steps = chances.to_numpy().cumsum(1)[:, :-1]
    rows = []
    for n_people in sizes:
        halves = []
        for group in pair:
            who = rng.choice(group, (n_audits, n_people))
            drawn = (rng.random((n_audits, n_people, 1)) >= steps[who]).sum(-1)
            halves.append(_half(total[who, drawn], counted[who, drawn]))
        (first, error, n_first), (second, other, n_second) = halves
        is_given = np.minimum(n_first, n_second) >= FEWEST
        away = (STANDARD_ERRORS * np.hypot(error, other))[is_given]
        gap = (first - second)[is_given]
        row = {
            "n_people": n_people,
            "width": float(2 * away.mean()) if is_given.any() else TOO_FEW,
            "seen": float((np.abs(gap) > away).sum() / n_audits),
            "too_few": float(1 - is_given.mean()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def verdict(row: pd.Series) -> str:
    """Return whether a gap, or its growth, says that the first group is worse off.

    Arguments:
        row: Answered, of `gaps` or `growth`.
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


def as_text(row: pd.Series, digits: int = 3, ends: Sequence[str] = ("low", "high")) -> str:
    """Return an estimate with its interval: "0.031 [0.012, 0.050]", "0.031 [too few: 12]".

    Arguments:
        row: Of `means`, or answered of `gaps` or `growth`.
        digits: After the point.
        ends: Columns of the interval's ends.

    Example:
        >>> row = pd.Series({"estimate": 0.0312, "low": 0.0121, "high": 0.0503})
        >>> as_text(row)
        '0.031 [0.012, 0.050]'
        >>> as_text(pd.Series({"estimate": 0.0312, "low": "too few", "n_counted": 12}))
        '0.031 [too few: 12]'
    """
    if row.estimate == TOO_FEW:
        return TOO_FEW
    low, high = row[ends[0]], row.get(ends[1])
    interval = (
        f"{TOO_FEW}: {row.n_counted}"
        if low == TOO_FEW
        else f"{low:.{digits}f}, {high:.{digits}f}"
    )
    return f"{row.estimate:.{digits}f} [{interval}]"


def _gap_of(means: Sequence[Mean], pair: Sequence[np.ndarray], kind: str) -> Any:
    """Return the statistic of a gap, or of two means' growth of one, for `Question`."""

    def statistic(*counts: np.ndarray) -> np.ndarray:
        gaps = []
        for mean in means:
            first, second = (mean(*pair_of) for pair_of in zip(pair, counts, strict=True))
            with np.errstate(divide="ignore", invalid="ignore"):  # no success drawn
                gaps.append(first / second if kind == "ratio" else first - second)
        if len(gaps) == 1:
            return gaps[0]
        now, before = gaps
        return now / before if kind == "ratio" else now - before

    return statistic


def _each(
    answers: pd.DataFrame, scenarios: Scenarios, measures: Sequence[str]
) -> Iterator[tuple[str, str, str, Mean]]:
    """Yield method, scenario, name of the measure, and its mean."""
    for scenario, chances in scenarios.items():
        for method, of_method in answers.groupby("method", sort=False):
            for name in measures:
                yield method, scenario, name, Mean.of(of_method, MEASURES[name], chances)


def _check(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    measures: Sequence[str],
    pairs: Pairs | None = None,
) -> None:
    """Raise ValueError unless answers, scenarios, groups and pairs fit together."""
    needs(answers, ["method", "reported"])
    checks.one_of("measure", measures, tuple(MEASURES))
    if not scenarios or not groups:
        raise ValueError(
            f"Expected one scenario or more and one group or more, "
            f"got {len(scenarios)} and {len(groups)}."
        )
    for chances in scenarios.values():
        check_groups(groups, len(chances))
    for pair in (pairs or {}).values():
        checks.one_of("group", pair, tuple(groups))
    if missing := sorted(set(answers.method) - set(answers.method[answers.reported])):
        raise ValueError(
            f"No network of {missing[0]} is reported, so its dot would be missing: "
            "choose one when you ask it (`chosen`)."
        )


def _half(
    total: np.ndarray, counted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each audit's mean of one group, its standard error, and how many count.

    Arguments:
        total, counted: What each person adds above and below the
            line, with shape (audits, n).
    """
    n = counted.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):  # nobody counts
        mean = total.sum(1) / n
        moves = total - mean[:, None] * counted
        error = np.sqrt((moves**2).sum(1) * n / (n - 1)) / n
    return mean, error, n
