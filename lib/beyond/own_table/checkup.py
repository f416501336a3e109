"""Checks of a table of past applicants, before anything is fitted.

What makes recourse impossible is an error, and all errors are listed
at once (`results.require` raises them). The rest are warnings, with
what to do about them. Values, graph and limits are checked by the
functions that read them later (`lib.method.data`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from lib.beyond.own_table import columns, tables
from lib.beyond.own_table.results import VERDICTS, CheckResult, from_error
from lib.method import data, report
from lib.method.limits import Limits
from lib.method.problem import Problem

FEW = 1_000  # people; with fewer a flow learns little, and half of them train it
FEW_OF_A_CLASS = 100  # labels of the rarer kind
MIN_IN_GROUP = 120  # people, for an interval of those who are refused
MAX_GROUPS = 6
# columns of the recommendations as notebook 12 writes them
TAKEN = (
    *("split", "person", *report.COLUMNS),
    *("helped", "holds_in", "is_sparse", "moves_an_atom"),
)
NEARLY_ALL = 0.95  # share of people refused, from which on few are left to learn from
TOO_LARGE = 1e15


def examine(
    frame: pd.DataFrame,
    label: str,
    kinds: Mapping[str, str],
    edges: Any,
    group: str = "",
    max_actionable: int = 8,
    person: str = "",
    limits: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Return the results of all checks of a table, errors first.

    Arguments:
        frame: A row a person.
        label, kinds: As for `Population.from_frame`.
        edges: A dict effect -> causes, or pairs (cause, effect).
        group: Column whose groups are audited; "": none.
        max_actionable: Actionable features that a search over all
            sets can bear.
        person: Column with people's names; "": none.
        limits: As for `Limits.from_words`; None: none.
    Raises: TableError: frame is no table. Everything else is a
        result.

    Example:
        >>> frame = pd.DataFrame({"age": range(30), "pay": 1.0, "repaid": [0, 1, 1] * 10})
        >>> kinds = {"age": "immutable", "pay": "actionable"}
        >>> results = examine(frame, "repaid", kinds, {"pay": ["age"]})
        >>> [r.message for r in results if r.is_error]
        ['pay is 1.0 for everyone']
    """
    if not isinstance(frame, pd.DataFrame):
        raise tables.TableError(f"Expected a table of pandas, got {type(frame).__name__}.")
    if not all(isinstance(name, str) for name in (label, group, person)):
        raise tables.TableError(
            f"Expected names of columns, got label {label!r}, group {group!r}, person "
            f"{person!r}."
        )
    features = [name for name in _existing(kinds, frame) if name != label]
    results = [
        _people(frame),
        *_names(frame, label, kinds, max_actionable),
        *_values(frame, features),
        *_label(frame, label),
        *_edges(kinds if isinstance(kinds, Mapping) else {}, label, edges),
    ]
    usable = [name for name in features if columns.is_usable(frame[name])]
    if usable:
        if label in frame and _is_label(frame[label]):
            results += columns.leaks(frame, label, usable)
        results += columns.contents(frame, usable, kinds)
    if group:
        results.append(_group(frame, group, features, person))
    if person:
        try:
            tables.with_names(frame, person)
        except ValueError as error:
            results.append(from_error("names", error))
    if limits:
        results.append(_limits(features, kinds, limits, frame))
    return sorted(results, key=lambda r: VERDICTS.index(r.verdict))


def refusals(problem: Problem) -> CheckResult:
    """Return how many people the classifier refuses, and whether these are enough.

    Raises: TableError: it refuses nobody in one of the splits.

    Example:
        >>> refusals(problem).message
        '4,879 of 10,000 train, 2,410 of 5,000 validation, 2,426 of 5,000 test people'
    """
    splits = ("train", "validation", "test")
    n_all = [len(problem.population.x[f"recourse/{split}"]) for split in splits]
    n_refused = [len(problem.refused(split)) for split in splits]
    counts = zip(n_refused, n_all, splits, strict=True)
    message = ", ".join(f"{n:,} of {n_split:,} {split}" for n, n_split, split in counts)
    message += " people"
    more = "Bring more people whose label is {}, or change their weight in the fit."
    if min(n_refused) == 0:
        raise tables.TableError(
            f"The classifier refuses {message}. Recourse is for refused people. "
            + more.format(0)
        )
    verdict, hint = "fine", ""
    if max(n / n_split for n, n_split in zip(n_refused, n_all, strict=True)) > NEARLY_ALL:
        verdict = "warning"
        hint = "Nearly everybody: few accepted people are left to learn from. "
        hint += more.format(1)
    elif min(n_refused) < FEW_OF_A_CLASS:
        verdict = "warning"
        hint = "Too few to learn from, or to be sure of anything. Bring more people."
    return CheckResult(verdict, "who is refused", message, hint)


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


def _is_label(column: pd.Series) -> bool:
    """Return whether a column holds 0 and 1, and both."""
    return columns.is_number(column) and set(column.unique()) == {0, 1}


def _existing(names: Any, frame: pd.DataFrame) -> list[str]:
    """Return those of the names that are columns, there once."""
    there = list(frame.columns)
    return [name for name in names if isinstance(name, str) and there.count(name) == 1]


def _people(frame: pd.DataFrame) -> CheckResult:
    """Check how many people there are."""
    message = f"{len(frame):,} rows"
    if len(frame) < data.MIN_PEOPLE:
        hint = f"At least {data.MIN_PEOPLE} are needed to fill three splits."
        return CheckResult("error", "people", message, hint)
    if len(frame) < FEW:
        hint = f"With fewer than {FEW:,} the flow learns little: believe it less."
        return CheckResult("warning", "people", message, hint)
    return CheckResult("fine", "people", message)


def _names(
    frame: pd.DataFrame, label: Any, kinds: Any, max_actionable: int
) -> Iterator[CheckResult]:
    """Check the names of columns, and the kinds of features."""
    there = [str(name) for name in frame.columns]
    if unnamed := [name for name in frame.columns if not isinstance(name, str)]:
        hint = "Name them, with frame.rename(columns=str)."
        yield CheckResult("error", "columns", f"{unnamed[0]!r} is no name", hint)
    if twice := sorted({name for name in there if there.count(name) > 1}):
        message = f"twice: {', '.join(twice)}"
        yield CheckResult("error", "columns", message, "Keep one of them.")
    if not isinstance(kinds, Mapping) or not kinds:
        hint = "Expected a kind for each feature, for instance income: actionable."
        yield CheckResult("error", "kinds", f"{kinds!r}", hint)
        return
    if taken := [name for name in kinds if name in TAKEN]:
        message = f"{taken[0]!r} is a column of the recommendations, too"
        hint = "Rename it in the table, in kinds and edges."
        yield CheckResult("error", "names", message, hint)
    for name in [label, *kinds]:
        if not isinstance(name, str):
            hint = f"Put quotes around it: '{name}'."
            yield CheckResult("error", "names", f"{name!r} is no text", hint)
        elif name not in there:
            message = f"there is no column {name!r}"
            hint = _near(name, there, f"There are {columns.abbreviate(there)}.")
            yield CheckResult("error", "names", message, hint)
    for name, kind in kinds.items():
        if kind not in data.KINDS:
            hint = f"Expected one of {', '.join(data.KINDS)}."
            yield CheckResult("error", "kinds", f"{name} is {kind!r}", hint)
    if label in kinds:
        message = f"the label {label!r} is among the features"
        hint = "Leave it out there, or the classifier learns from the answer."
        yield CheckResult("error", "kinds", message, hint)
    n_actionable = sum(kind == "actionable" for kind in kinds.values())
    if 1 <= n_actionable <= max_actionable:
        left_out = [name for name in there if name not in {label, *kinds}]
        message = f"{len(kinds)} features, {n_actionable} actionable; left out: "
        message += columns.abbreviate(left_out) or "none"
        yield CheckResult("fine", "columns", message)
    else:
        hint = f"Make 1 to {max_actionable} features actionable."
        yield CheckResult("error", "kinds", f"{n_actionable} actionable features", hint)


def _near(name: str, names: Iterable[str], hint: str) -> str:
    """Return a hint at the name that was perhaps meant, else another hint."""
    near = get_close_matches(name, list(names), n=1)
    return f"Did you mean {near[0]}?" if near else hint


def _values(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[CheckResult]:
    """Check for text, gaps, constant columns, and values far from all others."""
    n_errors = 0
    for name in features:
        if len(frame) == 0:
            return
        try:
            _check_column(frame, name)
        except ValueError as error:
            n_errors += 1
            yield from_error("values", error)
        else:
            if data.has_categories(frame[name]):
                names = sorted(frame[name].astype(str).unique())
                message = f"{name} is one of {len(names)}: {columns.abbreviate(names)}"
                yield CheckResult("fine", "categories", message)
    if n_errors == 0:
        yield CheckResult("fine", "values", "no text, gaps or constants among the features")


def _check_column(frame: pd.DataFrame, name: str) -> None:
    """Raise ValueError unless a column holds numbers or categories that differ."""
    column = frame[name]
    is_gap = column.isna().to_numpy()
    if is_gap.any():
        raise ValueError(
            f"{name} has {is_gap.sum():,} gaps, the first in row {int(is_gap.argmax())}. "
            "Drop these people, or fill what is missing."
        )
    if column.nunique() == 1:
        raise ValueError(
            f"{name} is {column.iloc[0]} for everyone. Leave it out: nothing can be "
            "learned from it."
        )
    if data.has_categories(column):
        data.categories(frame, [name], pd.Series(0.0, range(len(frame))))
        return
    values = data.values(frame, [name])[:, 0]
    if np.abs(values).max() > TOO_LARGE:
        raise ValueError(
            f"{name} reaches {np.abs(values).max():g}. Use another unit, or drop what is a "
            "mistake."
        )
    data.check_near(name, values, column.nunique())


def _limits(
    features: Sequence[str],
    kinds: Mapping[str, str],
    limits: Mapping[str, str],
    frame: pd.DataFrame,
) -> CheckResult:
    """Check whether limits can be read, and are of actionable features."""
    actionable = [name for name in features if kinds[name] == "actionable"]
    categories = {
        name: [str(value) for value in frame[name].dropna().unique()]
        for name in actionable
        if data.has_categories(frame[name])
    }
    try:
        Limits.from_words(limits, actionable, categories)
    except ValueError as error:
        return from_error("limits", error)
    message = "; ".join(f"{name}: {phrases}" for name, phrases in limits.items())
    return CheckResult("fine", "limits", message)


def _label(frame: pd.DataFrame, label: str) -> Iterator[CheckResult]:
    """Check the label: 0 and 1, both, and how many."""
    if len(frame) == 0 or not _existing([label], frame):
        return
    try:
        is_positive = data.labels(frame, label)
    except ValueError as error:
        yield from_error("label", error)
        return
    n, n_positive = len(frame), int(is_positive.sum())
    n_rarer = min(n_positive, n - n_positive)
    message = f"{label} is 1 for {n_positive / n:.0%} of {n:,}"
    if n_rarer == 0:
        hint = "Bring people of both kinds: there is nothing to decide."
        yield CheckResult("error", "label", message, hint)
        return
    if n_rarer < FEW_OF_A_CLASS:
        hint = f"Only {n_rarer} of the rarer kind: the classifier learns little of them."
        yield CheckResult("warning", "label", message, hint)
    else:
        yield CheckResult("fine", "label", message)
    message = f"1 is the good outcome? ({n_positive:,} people; 0: {n - n_positive:,})"
    hint = "No check can know. If 1 is the bad one, turn the label round."
    yield CheckResult("fine", "label", message, hint)


def _edges(kinds: Any, label: str, edges: Any) -> Iterator[CheckResult]:
    """Check the causal graph: names, circles, effects on what is immutable."""
    features = [name for name in kinds if isinstance(name, str)]
    if isinstance(edges, Mapping):
        is_list = [
            not isinstance(v, str) and isinstance(v, Iterable) for v in edges.values()
        ]
        if not all(is_list):
            effect = list(edges)[is_list.index(False)]
            message = f"the causes of {effect} are {edges[effect]!r}, which is no list"
            yield CheckResult("error", "edges", message, "Write effect: [cause, cause].")
            return
        edges = [(cause, effect) for effect in edges for cause in edges[effect]]
    try:
        edges = list(dict.fromkeys(map(tuple, edges)))
    except TypeError:
        message = f"{edges!r} is no list of causes by effect"
        yield CheckResult("error", "edges", message, "Write effect: [cause, cause].")
        return
    good = []
    for edge in edges:
        if label in edge:
            message, hint = f"{' -> '.join(edge)} names the label", "Remove this edge."
            if edge[0] == label:
                hint += f" {edge[-1]} is made after the label: leave that out, too."
            yield CheckResult("error", "edges", message, hint)
            continue
        try:
            data.to_graph(features, [edge])
            good.append(edge)
        except ValueError as error:
            yield from_error("edges", error)
    if not good:
        hint = "Then nothing follows from an action. Is that so?"
        yield CheckResult("warning", "edges", "no edge between two features", hint)
        return
    try:
        graph = data.to_graph(features, good)
    except ValueError as error:
        yield from_error("edges", error)
        return
    actionable = [j for j, name in enumerate(features) if kinds[name] == "actionable"]
    affected = [features[j] for j in graph.descendants_of(actionable)]
    if fixed := [name for name in affected if kinds[name] == "immutable"]:
        message = f"{', '.join(fixed)} may not change, but an action would move it"
        hint = "Call it mutable, or remove the edge into it."
        yield CheckResult("error", "edges", message, hint)
    yield CheckResult("fine", "edges", f"{len(good)} edges, no circle")


def _group(
    frame: pd.DataFrame, group: str, features: Sequence[str], person: str
) -> CheckResult:
    """Check the groups that are to be audited."""
    if group == person:
        message = f"{group!r} also holds people's names: a group for each of them"
        hint = "Name another column for one of them, or none: group: ''."
        return CheckResult("error", "groups", message, hint)
    if not _existing([group], frame):
        hint = "Name a column that is there once, or none: group: ''."
        return CheckResult("error", "groups", f"no such column, {group!r}", hint)
    sizes = {name: len(rows) for name, rows in groups_of(frame[group]).items()}
    message = ", ".join(f"{name} {n:,}" for name, n in list(sizes.items())[:MAX_GROUPS])
    is_feature = "sees" if group in features else "does not see"
    message += f"; the classifier {is_feature} it"
    if 2 <= len(sizes) <= MAX_GROUPS and min(sizes.values()) >= MIN_IN_GROUP:
        return CheckResult("fine", "groups", message)
    hint = f"Expected two to six groups of {MIN_IN_GROUP} people or more: join small ones."
    return CheckResult("warning", "groups", f"{len(sizes)}: {message}", hint)
