"""What an audit says of groups: means, gaps between two groups, how sure one can be, and what an assumption changes.

Answers are rows of `metrics.per_person` as `studies.recommend` and `studies.search` give them: one for each method, seed,
person (0 to N - 1) and set of features that the person may be able to act on (the column setting). A scenario says how
likely each set is for each person (`groups.Scenario.chances`); a mean is the expected sum over all draws of sets, by the
expected number of people counted. Groups are row numbers of people.

Intervals are 95 % percentile bootstrap intervals over people, of the reported network. The spread over the seeds is
another thing and stands in a table of its own.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lib.base import checks

FEWEST = 30  # people that a mean must be over for an interval to be given
TOO_FEW = "too few"
NO_GAP = {"difference": 0.0, "ratio": 1.0}


@dataclass(frozen=True)
class Measure:
    """What is averaged, and over whom.

    Arguments:
        column: Of the answers.
        over: Column that is true for those who are counted; None: everyone.
        worse: 1 if more of it is worse for a person, -1 if less is.
        has_zero: Whether it has a natural zero, so that ratios mean something.
    """

    column: str
    over: str | None
    worse: int
    has_zero: bool


MEASURES = {
    "cost": Measure("cost", "valid", 1, True),
    "log-density": Measure("log_p_cf", "valid", -1, False),
    "change of log-density": Measure("log_p_change", "valid", -1, False),
    "validity": Measure("valid", None, -1, True),
    "joint": Measure("joint", None, -1, True),
}

Scenarios = Mapping[str, pd.DataFrame]
Groups = Mapping[Hashable, np.ndarray]
Pairs = Mapping[str, tuple[Hashable, Hashable]]


@dataclass(frozen=True)
class Mean:
    """Mean of a measure over people with the row numbers who: (*, n) -> (*,).

    Arguments:
        total, counted: What each person adds above and below the line, each with shape (N,).
    """

    total: np.ndarray
    counted: np.ndarray

    @classmethod
    def of(cls, answers: pd.DataFrame, measure: Measure, chances: pd.DataFrame) -> "Mean":
        """The mean over people and over the sets of features that they may have.

        Arguments:
            answers: Of one method and one seed.
            chances: A row a person, a column for each set.
        Raises: ValueError: a person has no answer for one of the sets, or several; a value that counts is not finite.
        """
        value = _wide(answers, measure.column, chances)
        weight = chances.to_numpy() * (
            1.0 if measure.over is None else _wide(answers, measure.over, chances)
        )
        if not np.isfinite(value[weight > 0]).all():
            person = np.argwhere((weight > 0) & ~np.isfinite(value))[0, 0]
            raise ValueError(
                f"{measure.column} of person {person} is NaN or infinite. Leave such people out, or find out why."
            )
        return cls(np.where(weight > 0, weight * value, 0.0).sum(1), weight.sum(1))

    def __call__(self, who: np.ndarray) -> np.ndarray:
        return self.total[who].sum(-1) / self.counted[who].sum(-1)

    def n_counted(self, who: np.ndarray) -> int:
        """How many of them the mean is over; an expected number, rounded."""
        return round(self.counted[who].sum())

    def n_successes(self, who: np.ndarray) -> int:
        """For how many of them the measure, a share, is true; an expected number, rounded."""
        return round(self.total[who].sum())

    def n_in_ratio(self, who: np.ndarray, measure: Measure) -> int:
        """How many of them a ratio rests on: those who succeed, of a share; else all who are counted, if it isn't zero for all."""
        return (
            self.n_successes(who)
            if measure.over is None
            else self.n_counted(who) * (self.total[who].sum() != 0)
        )


def means(
    answers: pd.DataFrame, scenarios: Scenarios, groups: Groups, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Columns scenario, method, group, measure, n_people, n_counted, estimate, low, high; of the reported seed.

    Of n_people in the group n_counted are averaged over. If these are fewer than `FEWEST`, low and high are the words
    "too few", and so is estimate if there is no one at all. Of a share that is true for everyone, or for no one, resampling
    knows no spread: there the interval is the exact one of the binomial law (Clopper and Pearson).
    """
    _check(groups, {})
    asked = []
    for method, scenario, name, mean in _each(_reported(answers), scenarios):
        for group, who in groups.items():
            row = {
                "scenario": scenario,
                "method": method,
                "group": group,
                "measure": name,
                "n_people": len(who),
                "n_counted": mean.n_counted(who),
            }
            asked.append(Question(row, (group,), mean))
    rows = _answered(asked, groups, n_resamples, seed)
    for row, question in zip(rows, asked, strict=True):
        if MEASURES[row["measure"]].over is None and row["low"] == row["high"] != TOO_FEW:
            exact = stats.binomtest(
                question.statistic.n_successes(groups[row["group"]]), row["n_counted"]
            ).proportion_ci()
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
    """Columns scenario, method, gap, measure, kind, n_counted, estimate, low, high; of the reported seed.

    kind is "difference" (first group minus second) or, where the measure has a natural zero, "ratio" (first by second).
    n_counted is the fewest who are counted in either group; for a ratio of shares, the fewest who succeed. A group in which
    everyone succeeds adds no width to an interval.

    Arguments:
        pairs: The two groups of each gap, by its name.
    """
    _check(groups, pairs)
    asked = []
    for method, scenario, name, mean in _each(_reported(answers), scenarios):
        asked += _gaps_of(
            {"scenario": scenario, "method": method}, name, [mean], groups, pairs
        )
    return pd.DataFrame(_answered(asked, groups, n_resamples, seed))


def growth(
    answers: pd.DataFrame,
    scenarios: Scenarios,
    groups: Groups,
    pairs: Pairs,
    since: str,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Columns as `gaps`: how each gap compares with that of the same people in another scenario.

    A difference less the difference there; a ratio divided by the ratio there.

    Arguments:
        since: The scenario that the others are compared with.
    """
    _check(groups, pairs)
    checks.known("scenario", [since], tuple(scenarios))
    asked = []
    every = list(_each(_reported(answers), scenarios))
    before = {
        (method, name): mean for method, scenario, name, mean in every if scenario == since
    }
    for method, scenario, name, mean in every:
        if scenario != since:
            asked += _gaps_of(
                {"scenario": scenario, "method": method},
                name,
                [mean, before[method, name]],
                groups,
                pairs,
            )
    return pd.DataFrame(_answered(asked, groups, n_resamples, seed))


def over_seeds(
    answers: pd.DataFrame, scenarios: Scenarios, groups: Groups, pairs: Pairs
) -> pd.DataFrame:
    """Columns seed, scenario, method, gap, measure, kind, estimate: the gaps of every seed, without intervals.

    Only of methods that have seeds, and of gaps with someone to count on both sides.
    """
    _check(groups, pairs)
    rows = []
    n_seeds = answers.groupby("method").seed.transform("nunique")
    for seed, own in answers[n_seeds > 1].groupby("seed"):
        for method, scenario, name, mean in _each(own, scenarios):
            for question in _gaps_of(
                {"seed": seed, "scenario": scenario, "method": method},
                name,
                [mean],
                groups,
                pairs,
            ):
                if question.row.pop("n_counted"):
                    rows.append(
                        question.row
                        | {
                            "estimate": float(
                                question.statistic(
                                    *(groups[group] for group in question.groups)
                                )
                            )
                        }
                    )
    return pd.DataFrame(
        rows, columns=["seed", "scenario", "method", "gap", "measure", "kind", "estimate"]
    )


def audits(
    answers: pd.DataFrame,
    measure: str,
    chances: pd.DataFrame,
    pair: Sequence[np.ndarray],
    sizes: Sequence[int],
    n_audits: int,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Columns n_people, width, seen, too_few: what audits of so many people a group would have reported of a difference.

    Each audit draws people with replacement from the two groups, as if these were everyone there is, and for each person
    one set of features. seen is the share of audits whose interval leaves out zero, too_few the share that can give no
    interval, width the mean of the intervals given ("too few" if there are none).

    Arguments:
        answers: Of one method and one seed.
        measure: Name of one of `MEASURES`.
        chances: A row a person, a column for each set.
        pair: Row numbers of the two groups.
    """
    checks.known("measure", [measure], tuple(MEASURES))
    checks.positive(n_audits=n_audits)
    _check(dict(enumerate(pair)), {})
    rng = np.random.default_rng(seed)
    alone = [
        Mean.of(answers, MEASURES[measure], pd.DataFrame({name: np.ones(len(chances))}))
        for name in chances
    ]
    total, counted = (
        np.stack([one.total for one in alone], 1),
        np.stack([one.counted for one in alone], 1),
    )
    steps = chances.to_numpy().cumsum(1)[:, :-1]
    rows = []
    for n_people in sizes:
        found = []
        halves = {0: np.arange(n_people), 1: np.arange(n_people, 2 * n_people)}
        for _ in range(n_audits):
            who = np.concatenate([rng.choice(group, n_people) for group in pair])
            drawn = (rng.random((len(who), 1)) >= steps[who]).sum(1)
            mean = Mean(total[who, drawn], counted[who, drawn])
            found += _answered(
                _gaps_of({}, measure, [mean], halves, {"": (0, 1)})[:1],
                halves,
                n_resamples,
                int(rng.integers(2**31)),
            )
        given = [(own["low"], own["high"]) for own in found if own["low"] != TOO_FEW]
        rows.append(
            {
                "n_people": n_people,
                "width": float(np.mean([high - low for low, high in given]))
                if given
                else TOO_FEW,
                "seen": sum(low > 0 or high < 0 for low, high in given) / n_audits,
                "too_few": 1 - len(given) / n_audits,
            }
        )
    return pd.DataFrame(rows)


def within_budget(
    answers: pd.DataFrame, chances: pd.DataFrame, who: np.ndarray, budgets: Sequence[float]
) -> np.ndarray:
    """Share of a group that has valid and plausible recourse at each cost or less, with shape (B,).

    Arguments:
        answers: Of one method and one seed.
        chances: A row a person, a column for each set.
        who: Row numbers of the group.
    """
    own_cost, own_chances = (
        _wide(answers.assign(cost=answers.cost.where(answers.joint)), "cost", chances)[who],
        chances.to_numpy()[who],
    )
    return np.array(
        [(own_chances * (own_cost <= budget)).sum(1).mean() for budget in budgets]
    )


def verdict(row: pd.Series) -> str:
    """Whether a gap, or its growth, says that the first group is worse off: "holds", "opposite holds", "open" or "too few"."""
    if row.low == TOO_FEW:
        return TOO_FEW
    equal = NO_GAP[row.kind]
    if row.low <= equal <= row.high:
        return "open"
    return (
        "holds"
        if (row.low > equal) == (MEASURES[row.measure].worse > 0)
        else "opposite holds"
    )


def as_text(row: pd.Series, digits: int = 3) -> str:
    """An estimate and its interval: "0.031 [0.012, 0.050]", or "0.031 [too few: 12]"."""
    if row.estimate == TOO_FEW:
        return TOO_FEW
    interval = (
        f"{TOO_FEW}: {row.n_counted}"
        if row.low == TOO_FEW
        else f"{row.low:.{digits}f}, {row.high:.{digits}f}"
    )
    return f"{row.estimate:.{digits}f} [{interval}]"


@dataclass(frozen=True)
class Question:
    """A statistic of one or two groups of people whose interval is wanted, and what its row says already (with n_counted)."""

    row: dict[str, Any]
    groups: tuple[Hashable, ...]
    statistic: Callable[..., np.ndarray]


def _each(
    answers: pd.DataFrame, scenarios: Scenarios
) -> Iterator[tuple[str, str, str, Mean]]:
    """Method, scenario, name of the measure, and its mean; answers are of one seed a method."""
    for scenario, chances in scenarios.items():
        for method, own in answers.groupby("method", sort=False):
            for name, measure in MEASURES.items():
                yield method, scenario, name, Mean.of(own, measure, chances)


def _gaps_of(
    row: dict[str, Any], name: str, means: Sequence[Mean], groups: Groups, pairs: Pairs
) -> list[Question]:
    """The gaps of a measure: of its mean or, if there are two means, how the first one's gap compares with the second one's."""
    mean, since = means[0], means[1] if len(means) > 1 else None
    statistics = {
        "difference": lambda a, b: mean(a) - mean(b) - (since(a) - since(b) if since else 0)
    }
    if MEASURES[name].has_zero:
        statistics["ratio"] = lambda a, b: (
            mean(a) / mean(b) / (since(a) / since(b) if since else 1)
        )
    asked = []
    for gap, pair in pairs.items():
        for kind, statistic in statistics.items():
            n_counted = min(one.n_counted(groups[group]) for one in means for group in pair)
            if (
                kind == "ratio"
            ):  # rare successes make it jump, and nothing at all can't be divided by
                n_counted = min(
                    n_counted,
                    *(
                        one.n_in_ratio(groups[group], MEASURES[name])
                        for one in means
                        for group in pair
                    ),
                )
            asked.append(
                Question(
                    row
                    | {"gap": gap, "measure": name, "kind": kind, "n_counted": n_counted},
                    pair,
                    statistic,
                )
            )
    return asked


def _answered(
    asked: Sequence[Question], groups: Groups, n_resamples: int, seed: int
) -> list[dict[str, Any]]:
    """The questions' rows with estimate, low and high; the same resampled people answer all questions about the same groups."""
    found: dict[int, dict[str, float | str]] = {}
    for who in dict.fromkeys(question.groups for question in asked):
        people = tuple(groups[group] for group in who)
        own = {
            i: question
            for i, question in enumerate(asked)
            if question.groups == who and question.row["n_counted"] >= FEWEST
        }
        if own:
            both = stats.bootstrap(
                people,
                lambda *drawn, axis, own=own: np.stack(
                    [question.statistic(*drawn) for question in own.values()]
                ),
                n_resamples=n_resamples,
                batch=200,
                method="percentile",
                rng=np.random.default_rng(seed),
            ).confidence_interval
            found |= {
                i: {"low": float(low), "high": float(high)}
                for i, low, high in zip(own, both.low, both.high, strict=True)
            }
    rows = []
    for i, question in enumerate(asked):
        people = (groups[group] for group in question.groups)
        estimate = (
            float(question.statistic(*people)) if question.row["n_counted"] else TOO_FEW
        )
        rows.append(
            question.row
            | {"estimate": estimate}
            | found.get(i, {"low": TOO_FEW, "high": TOO_FEW})
        )
    return rows


def _check(groups: Groups, pairs: Pairs) -> None:
    """Raise ValueError if a group has no one in it, or a pair names an unknown group."""
    for group, who in groups.items():
        if len(who) == 0:
            raise ValueError(
                f"There is no one in the group {group!r}, so nothing can be said of it."
            )
    for pair in pairs.values():
        checks.known("group", pair, tuple(groups))


def _reported(answers: pd.DataFrame) -> pd.DataFrame:
    """Answers of the reported seeds. Raises ValueError if a method has none."""
    if missing := sorted(set(answers.method) - set(answers.method[answers.reported])):
        raise ValueError(
            f"No seed of {missing[0]} is reported, so it would be missing from the table: choose one when you ask it (`chosen`)."
        )
    return answers[answers.reported]


def _wide(answers: pd.DataFrame, column: str, chances: pd.DataFrame) -> np.ndarray:
    """A column of the answers of one method and one seed, for each person and each set that has a chance, with shape (N, M).

    Raises: ValueError: a person has no answer for one of the sets, or several.
    """
    own = answers[answers.setting.isin(chances.columns)]
    person, column_of = own.person.to_numpy(), chances.columns.get_indexer(own.setting)
    times = np.zeros(chances.shape, dtype=int)
    known = (person >= 0) & (person < len(chances))
    np.add.at(times, (person[known], column_of[known]), 1)
    if not known.all() or (times != 1).any():
        raise ValueError(
            f"Expected one answer for each of {chances.shape[0]} people and {chances.shape[1]} sets ({'; '.join(chances)}), "
            f"got {len(own)}. Are there answers of several seeds or methods, or of other people?"
        )
    wide = np.empty(chances.shape)
    wide[person, column_of] = own[column]
    return wide
