"""Checks of a table of past applicants, before anything is fitted.

What makes recourse impossible is an error, and all errors are listed
at once (`require` raises them). The rest are warnings, with
what to do about them, and lines on what is fine.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lib import checks
from lib.beyond.own_table import tables
from lib.beyond.own_table.tables import TableError
from lib.method import data, report
from lib.method.limits import Limits
from lib.search.recommend import SENTENCE
from lib.search.sets import MAX_FEATURES

VERDICTS = ("error", "warning", "fine")
FEW = 1_000  # people; with fewer a flow learns little, and half of them train it
FEW_OF_A_CLASS = 100  # labels of the rarer kind
MIN_IN_GROUP = 120  # people, for an interval of those who are refused
MAX_GROUPS = 6
ATOM = 0.05  # share of people with one and the same value
MAX_COUNTS = 100  # different values, up to which whole numbers are counts
N_BINS = 20  # of a feature that predicts the label
MIN_IN_BIN = 10  # people; with fewer a bin predicts the label by chance
LEAK = 0.15  # share of the majority's errors that a single feature may leave
COLLINEAR = 0.98
FAR = 10.0  # interquartile ranges from the median
DUPLICATES = 0.01  # share of people who equal somebody else


class CheckResult(NamedTuple):
    """Hold the result of one check.

    Arguments:
        verdict: One of `VERDICTS`. An error makes recourse impossible.
        check: What was checked.
        message: The result, in words.
        hint: What to do about it; empty where all is well.
    """

    verdict: str
    check: str
    message: str
    hint: str = ""


def examine(
    frame: pd.DataFrame,
    label: str,
    kinds: Mapping[str, str],
    edges: data.Edges,
    group: str = "",
    person: str = "",
    limits: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Return the results of all checks of a table, errors first.

    A table without errors becomes a population.

    Arguments:
        frame: A row a person.
        label, kinds, edges: As for `Population.from_frame`.
        group: Column whose groups are audited; "": none.
        person: Column with people's names; "": none.
        limits: As for `Limits.from_words`; None: none.
    Raises: ValueError: frame is no table, or kinds are no dict.

    Example:
        >>> frame = pd.DataFrame({"age": range(30), "pay": 1.0, "repaid": [0, 1, 1] * 10})
        >>> kinds = {"age": "immutable", "pay": "actionable"}
        >>> results = examine(frame, "repaid", kinds, {"pay": ["age"]})
        >>> [r.message for r in results if r.verdict == "error"]
        ['pay is 1.0 for everyone']
    """
    if not isinstance(frame, pd.DataFrame) or not isinstance(kinds, Mapping):
        raise TableError(
            f"Expected a table of pandas, and a dict feature -> kind; got "
            f"{type(frame).__name__} and {type(kinds).__name__}."
        )
    results = [*_people(frame), *_kinds(frame, label, kinds)]
    features = [name for name in kinds if name in frame and name != label]
    if frame.columns.is_unique and len(frame):
        columns = [result for name in features for result in _column(frame, name)]
        results += [*columns, *_label(frame, label), *_edges(kinds, label, edges)]
        if group:
            results.append(_group(frame, group, person))
        usable = [name for name in features if is_usable(frame[name])]
        is_label = label in frame and is_usable(frame[label])
        if usable and is_label and frame[label].isin([0, 1]).all():
            results += leaks(frame, label, usable)
        results += _contents(frame, usable)
    if not any(result.verdict == "error" for result in results):
        results += _population(frame, label, kinds, edges, person, limits)
    return sorted(results, key=lambda r: VERDICTS.index(r.verdict))


def to_frame(results: Iterable[CheckResult]) -> pd.DataFrame:
    """Return results as a table, a row each: verdict, check, result, what to do."""
    return pd.DataFrame(results, columns=["verdict", "check", "result", "what to do"])


def require(results: Iterable[CheckResult]) -> None:
    """Raise `TableError` with all errors at once, if there are any.

    Example:
        >>> require([CheckResult("fine", "gaps", "none")])
        >>> require([CheckResult("error", "gaps", "3 in income", "Drop these people.")])
        Traceback (most recent call last):
        ...
        lib.beyond.own_table.tables.TableError: This table can't be used yet. To correct:
          1. gaps: 3 in income. Drop these people.
    """
    errors = [r for r in results if r.verdict == "error"]
    if errors:
        lines = ["This table can't be used yet. To correct:"]
        for i, r in enumerate(errors, start=1):
            lines.append(f"  {i}. {r.check}: {r.message}. {r.hint}".rstrip())
        raise TableError("\n".join(lines))


def is_usable(column: pd.Series) -> bool:
    """Return whether a column holds numbers without gaps that differ."""
    if column.dtype.kind not in "iufb":
        return False
    values = _numbers(column)
    return bool(np.isfinite(values).all() and np.ptp(values) > 0)


def whole_numbers(frame: pd.DataFrame, features: Sequence[str]) -> list[str]:
    """Return the features that count something: whole numbers, of few different values.

    A whole number of dollars takes many values, and is left out.

    Example:
        >>> frame = pd.DataFrame({"cards": [0.0, 1.0, 3.0], "share": [0.5, 1.0, 0.0]})
        >>> whole_numbers(frame, ["cards", "share"])
        ['cards']
    """
    return [
        name
        for name in features
        if is_usable(frame[name])
        and (_numbers(frame[name]) % 1 == 0).all()
        and frame[name].nunique() <= MAX_COUNTS
    ]


def atoms(frame: pd.DataFrame, features: Sequence[str]) -> dict[str, float]:
    """Return each feature's atom: a value that `ATOM` of all people share, or more.

    Of a feature with several it is the commonest. Whole numbers are
    left out, since they are spread in any case.

    Example:
        >>> atoms(pd.DataFrame({"savings": [0.0] * 9 + [10.5]}), ["savings"])
        {'savings': 0.0}
    """
    atom_of = {}
    for name in features:
        if is_usable(frame[name]) and not whole_numbers(frame, [name]):
            shares = frame[name].value_counts(normalize=True)
            if shares.iloc[0] >= ATOM:
                atom_of[name] = float(shares.index[0])
    return atom_of


def atoms_at_an_end(frame: pd.DataFrame, features: Sequence[str]) -> list[str]:
    """Return the features whose atom is their lowest or highest value."""
    return [
        name
        for name, value in atoms(frame, features).items()
        if value in (frame[name].min(), frame[name].max())
    ]


def groups_of(column: pd.Series) -> dict[str, np.ndarray]:
    """Return the row numbers of the people in each group that a column makes.

    Numbers with more than six values make two groups, at the median.
    Gaps are a group of their own.

    Example:
        >>> groups_of(pd.Series(["a", "b", "a"]))
        {'a': array([0, 2]), 'b': array([1])}
        >>> list(groups_of(pd.Series(range(10))))
        ['up to 4.5', 'above 4.5']
    """
    names = column.astype(object).where(column.notna(), "not known").astype(str)
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > MAX_GROUPS:
        median = column.median()
        halves = np.where(column <= median, f"up to {median:g}", f"above {median:g}")
        names = names.where(column.isna(), halves)
    return {name: np.flatnonzero(names == name) for name in dict.fromkeys(names)}


def leaks(frame: pd.DataFrame, label: str, usable: Sequence[str]) -> Iterator[CheckResult]:
    """Look for columns that predict the label nearly alone, among all columns.

    Arguments:
        label: Column of 0 and 1.
        usable: Features, see `is_usable`.

    Example:
        >>> frame = pd.DataFrame({"late": range(40), "repaid": [1] * 20 + [0] * 20})
        >>> next(leaks(frame, "repaid", ["late"])).message
        'late alone leaves 0% of the errors of a constant answer'
    """
    y = frame[label].to_numpy(dtype=bool)
    left_out = [
        name
        for name in frame.columns
        if name not in (label, *usable) and is_usable(frame[name])
    ]
    errors_left = {name: _errors_left(frame[name], y) for name in [*usable, *left_out]}
    for name, left in errors_left.items():
        if left > LEAK:
            continue
        message = f"{name} alone leaves {left:.0%} of the errors of a constant answer"
        verdict, hint = "warning", "Is it made after the decision? Then leave it out."
        if name in left_out:
            verdict, message, hint = "fine", f"{message}; it is left out", "Keep it out."
        elif left == 0 and frame[name].nunique() == 2:
            verdict, hint = "error", "It is the label by another name: leave it out."
        yield CheckResult(verdict, "leaks", message, hint)
    best = min(usable, key=errors_left.__getitem__)
    if errors_left[best] > LEAK:
        message = f"the best single predictor, {best}, leaves {errors_left[best]:.0%}"
        yield CheckResult("fine", "leaks", f"{message} of the errors")


def _errors_left(column: pd.Series, y: np.ndarray) -> float:
    """Return the share of errors that is left when a single column predicts the label.

    It is a share of the errors that are made without the column. Two
    predictions are tried, and the better one counts: the more common
    label in each of 20 bins (of ten people or more), and one
    threshold, which also finds what only a few people have.
    """
    values = _numbers(column)
    n_bins = min(N_BINS, len(values) // MIN_IN_BIN)
    bins = values
    if column.nunique() > n_bins:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]))
        bins = np.searchsorted(edges, values)
    in_bins = pd.crosstab(bins, y).to_numpy().min(1).sum()
    by_value = pd.crosstab(values, y).to_numpy().cumsum(0)
    n_negative, n_positive = by_value[-1]
    errors = by_value[:, 0] + n_positive - by_value[:, 1]  # if high values are negative
    by_threshold = min(errors.min(), (len(y) - errors).min())
    return float(min(in_bins, by_threshold) / min(n_negative, n_positive))


def _from_error(
    check: str, error: Exception | Warning | str, verdict: str = "error"
) -> CheckResult:
    """Return an exception or a warning as a result; its first sentence is the message."""
    message, _, hint = str(error).partition(". ")
    return CheckResult(verdict, check, message.removesuffix("."), hint)


def _errors_of(
    check: str, function: Callable[..., Any], *given: Any
) -> Iterator[CheckResult]:
    """Return the ValueError that a function raises, if it does, as a result."""
    try:
        function(*given)
    except ValueError as error:
        yield _from_error(check, error)


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as float64, gaps as NaN."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def _people(frame: pd.DataFrame) -> Iterator[CheckResult]:
    """Check how many people there are, and whether each column is there once."""
    verdict, hint = "fine", ""
    if len(frame) < data.MIN_PEOPLE:
        verdict = "error"
        hint = f"At least {data.MIN_PEOPLE} are needed to fill three splits."
    elif len(frame) < FEW:
        verdict = "warning"
        hint = f"With fewer than {FEW:,} the flow learns little: believe it less."
    yield CheckResult(verdict, "people", f"{len(frame):,} rows", hint)
    if twice := list(map(str, frame.columns[frame.columns.duplicated()])):
        message = f"twice: {', '.join(twice)}"
        yield CheckResult("error", "columns", message, "Keep one of them.")


def _kinds(
    frame: pd.DataFrame, label: str, kinds: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check the names of features and label, and the kinds."""
    names = [*map(str, frame.columns)]
    yield from _errors_of("names", checks.one_of, "column", [label, *kinds], names)
    yield from _errors_of("kinds", checks.one_of, "kind", kinds.values(), data.KINDS)
    if taken := [name for name in kinds if name in (*report.COLUMNS, *SENTENCE)]:
        message = f"{taken[0]!r} is a column of the recommendations, too"
        hint = "Rename it in the table, in kinds and edges."
        yield CheckResult("error", "names", message, hint)
    if label in kinds:
        message = f"the label {label!r} is among the features"
        hint = "Leave it out there, or the classifier learns from the answer."
        yield CheckResult("error", "kinds", message, hint)
    n_actionable = sum(kind == "actionable" for kind in kinds.values())
    left_out = [str(name) for name in frame.columns if name not in {label, *kinds}]
    message = f"{len(kinds)} features, {n_actionable} actionable; left out: "
    message += ", ".join(left_out) or "none"
    verdict, hint = "fine", ""
    if n_actionable == 0:
        verdict, hint = "error", "Make one of them actionable."
    elif n_actionable > MAX_FEATURES:
        verdict = "warning"
        hint = f"With more than {MAX_FEATURES} the search can't try all sets of them."
    yield CheckResult(verdict, "columns", message, hint)


def _column(frame: pd.DataFrame, name: str) -> Iterator[CheckResult]:
    """Check one feature for text among numbers, gaps, constants, and values far away."""
    try:
        names = data.categories(frame, [name], pd.Series(0.0, range(len(frame))))
        values = data.values(frame, [name], names)[:, 0]
        if np.ptp(values) == 0:
            raise ValueError(
                f"{name} is {frame[name].iloc[0]} for everyone. Leave it out: nothing can "
                "be learned from it."
            )
        data.check_near(name, values, frame[name].nunique())
    except ValueError as error:
        yield _words("values", frame[name]) or _from_error("values", error)
    else:
        if names:
            message = f"{name} is one of {len(names[name])}: {', '.join(names[name])}"
            yield CheckResult("fine", "categories", message)


def _words(check: str, column: pd.Series) -> CheckResult | None:
    """Return the error of a column with words among its numbers, such as NA for a gap."""
    rows = [
        row
        for row, cell in enumerate(column)
        if isinstance(cell, str) and not re.search(r"\d", cell)
    ]
    if not rows or data.has_categories(column):
        return None
    message = f"{column.name} of row {rows[0]} is {column.iloc[rows[0]]!r}"
    hint = (
        f"{len(rows):,} cells hold words. Do these stand for gaps? Then drop these rows, "
        "or fill the cells."
    )
    return CheckResult("error", check, f"{message}: expected a number", hint)


def _label(frame: pd.DataFrame, label: str) -> Iterator[CheckResult]:
    """Check the label: 0 and 1, both, and how many."""
    if label not in frame:
        return
    try:
        is_positive = data.labels(frame, label)
    except ValueError as error:
        yield _words("label", frame[label]) or _from_error("label", error)
        return
    n, n_positive = len(frame), int(is_positive.sum())
    n_rarer = min(n_positive, n - n_positive)
    message = f"{label} is 1, the good outcome, for {n_positive / n:.0%} of {n:,}"
    verdict, hint = "fine", "If 1 is the bad one, turn the label round: no check can know."
    if n_rarer == 0:
        verdict, hint = "error", "Bring people of both kinds: there is nothing to decide."
    elif n_rarer < FEW_OF_A_CLASS:
        verdict = "warning"
        hint = f"Only {n_rarer} of the rarer kind: the classifier learns little of them."
    yield CheckResult(verdict, "label", message, hint)


def _edges(
    kinds: Mapping[str, str], label: str, edges: data.Edges
) -> Iterator[CheckResult]:
    """Check the causal graph: names, circles, the label, effects on what is immutable."""
    features = [name for name in kinds if name != label]
    try:
        graph = data.to_graph([*features, label], {} if edges is None else edges)
    except ValueError as error:
        yield _from_error("edges", error)
        return
    parents = dict(graph.parents)
    for cause in parents.pop(label, ()):
        message = f"{cause} -> {label} names the label"
        yield CheckResult("error", "edges", message, "Remove this edge.")
    for name in [name for name in parents if label in parents[name]]:
        hint = f"{name} is made after the label: leave it out."
        yield CheckResult("error", "edges", f"{label} -> {name} names the label", hint)
    if n_edges := sum(map(len, parents.values())):
        yield CheckResult("fine", "edges", f"{n_edges} edges, no circle")
    else:
        hint = "Then nothing follows from an action. Is that so?"
        yield CheckResult("warning", "edges", "no edge between two features", hint)


def _group(frame: pd.DataFrame, group: str, person: str) -> CheckResult:
    """Check the groups that are to be audited."""
    if group not in frame or group == person:
        message = f"{group!r} is no column with groups"
        hint = "Name a column, not that of people's names; or none: group: ''."
        return CheckResult("error", "groups", message, hint)
    sizes = {name: len(rows) for name, rows in groups_of(frame[group]).items()}
    message = ", ".join(f"{name} {n:,}" for name, n in list(sizes.items())[:MAX_GROUPS])
    if 2 <= len(sizes) <= MAX_GROUPS and min(sizes.values()) >= MIN_IN_GROUP:
        return CheckResult("fine", "groups", message)
    hint = f"Expected two to six groups of {MIN_IN_GROUP} people or more: join small ones."
    return CheckResult("warning", "groups", f"{len(sizes)}: {message}", hint)


def _contents(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[CheckResult]:
    """Check for running numbers, steps, atoms, outliers, duplicates and pairs alike."""
    for name in usable:
        values = _numbers(frame[name])
        is_whole = (values % 1 == 0).all()
        if is_whole and frame[name].is_unique and np.ptp(values) < 2 * len(values):
            message = f"{name} is whole and different for everyone, as a running number is"
            hint = "Leave it out if it only tells people apart: name it as person."
            yield CheckResult("warning", "running numbers", message, hint)
        is_count = bool(whole_numbers(frame, [name]))
        if is_count and (step := np.gcd.reduce(values.astype(np.int64))) > 1:
            message = f"{name} comes in steps of {step:,}, and is spread by 1 only"
            hint = f"Divide it by {step:,}: then it is spread, and rounded, by its step."
            yield CheckResult("warning", "whole numbers", message, hint)
        for value in atoms(frame, [name]).values():
            message = f"{name} is {value:g} for {(values == value).mean():.0%}"
            hint = "A density can't be fitted to it: add a column for who has it."
            if value in (values.min(), values.max()):
                hint = "It is spread before the flow is fitted. Trust densities there less."
            yield CheckResult("warning", "atoms", message, hint)
        values = values[values != np.median(values)]  # which most may share
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        n_far = int((np.abs(values - middle) > FAR * (high - low)).sum())
        if high > low and n_far:
            hint = "Cap it, or take logarithms: the range of a feature scales its cost."
            message = f"{name} of {n_far:,} people is far from all others"
            yield CheckResult("warning", "outliers", message, hint)
    n_equal = int(frame[list(usable)].duplicated().sum()) if usable else 0
    if n_equal > DUPLICATES * len(frame):
        message = f"{n_equal:,} people equal another in all features"
        hint = "Is a person there twice? Then drop one: it could be in two splits."
        yield CheckResult("warning", "duplicates", message, hint)
    r = frame[list(usable)].astype(float).corr().abs()
    pairs = r.where(np.triu(np.ones(r.shape, dtype=bool), 1)).stack()
    for (first, second), closeness in pairs[pairs > COLLINEAR].items():
        message = f"{first} and {second} ({closeness:.3f})"
        hint = "Leave one out: nobody was seen to change one without the other."
        yield CheckResult("warning", "collinear pairs", message, hint)


def _population(
    frame: pd.DataFrame,
    label: str,
    kinds: Mapping[str, str],
    edges: data.Edges,
    person: str,
    limits: Mapping[str, str] | None,
) -> Iterator[CheckResult]:
    """Check whether the table becomes a population; pass on what it warns of."""
    whole = whole_numbers(frame, list(kinds))
    ends = atoms_at_an_end(frame, list(kinds))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", data.DoubtfulTable)  # these checks say so above
        try:
            population = data.Population.from_frame(
                frame, label, kinds, edges or {}, whole=whole, atoms=ends
            )
        except ValueError as error:
            yield _from_error("table", error)
            return
    for warning in caught:
        yield _from_error("table", warning.message, "warning")
    stated = limits or {}, population.actionable, population.categories
    yield from _errors_of("limits", Limits.from_words, *stated)
    if person:
        yield from _errors_of("names", tables.with_names, frame, person)
