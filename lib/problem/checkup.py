"""Checks of somebody's own table, each of which says what it looked at and what it found.

What makes recourse impossible is an error, and all errors are found at
once (`findings.require` raises them). The rest are warnings, with what
to do about them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from lib.problem import frames
from lib.problem.findings import VERDICTS, Finding, Unfit
from lib.problem.population import FEWEST, KINDS
from lib.problem.recourse import Problem

FEW = 1_000  # people; with fewer a flow knows little, and half of them teach it
FEW_OF_A_CLASS = 100  # labels of the rarer kind
FEW_IN_A_GROUP = 30  # people that an interval needs, see lib.studies.bootstrap
ATOM = 0.05  # share of people with one and the same value
MOST_COUNTED = 100  # different values, up to which whole numbers are counted
N_BINS = 20  # of a feature that is asked for the label
LEAK = 0.15  # share of the majority's errors that a single feature may leave
COLLINEAR = 0.98
FAR = 10.0  # interquartile ranges from the median
TWICE = 0.01  # share of people who are somebody else's double


def examine(
    frame: pd.DataFrame,
    label: str,
    kinds: Mapping[str, str],
    edges: Any,
    group: str = "",
    most_actionable: int = 8,
) -> list[Finding]:
    """Return what all checks of a table find, before anything is fitted.

    Arguments:
        frame: A row a person.
        label, kinds: As for `Population.from_frame`.
        edges: A dict effect -> causes, or pairs (cause, effect).
        group: Column whose groups are audited; "": none.
        most_actionable: Features that a search over all sets bears.
    Raises: Unfit: frame is no table. Everything else is a finding.

    Example:
        >>> frame = pd.DataFrame({"age": range(30), "pay": 1.0, "repaid": [0, 1, 1] * 10})
        >>> kinds = {"age": "immutable", "pay": "actionable"}
        >>> found = examine(frame, "repaid", kinds, {"pay": ["age"]})
        >>> [one.check for one in found if one.is_error]
        ['constant columns']
    """
    if not isinstance(frame, pd.DataFrame):
        raise Unfit(f"Expected a table of pandas, got {type(frame).__name__}.")
    if not isinstance(label, str) or not isinstance(group, str):
        raise Unfit(f"Expected names of columns, got label {label!r}, group {group!r}.")
    found = [_people(frame), *_names(frame, label, kinds, most_actionable)]
    features = [name for name in _known(kinds, frame) if name != label]
    nothing = Finding("fine", "text, gaps, constants", "none among the features")
    found += list(_contents(frame, features)) or [nothing]
    found += _label(frame, label)
    found += _edges(list(kinds) if isinstance(kinds, Mapping) else [], label, kinds, edges)
    usable = [name for name in features if _is_usable(frame[name])]
    if label in frame and usable and len(frame) and _is_label(frame[label]):
        found += _leaks(frame, label, usable)
    if usable and len(frame):
        found += [*_values(frame, usable), _doubles(frame, usable), _pairs(frame, usable)]
    if group:
        found.append(_group(frame, group, features))
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))


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
        if (
            (_numbers(frame[name]) % 1 == 0).all() and frame[name].nunique() <= MOST_COUNTED
        )
        or pd.api.types.is_bool_dtype(frame[name])
    ]


def atoms(frame: pd.DataFrame, features: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return each feature's commonest value and its share, where it holds an atom.

    An atom is a value that `ATOM` of all people share, of a feature
    that is no whole number.

    Example:
        >>> atoms(pd.DataFrame({"savings": [0, 0, 10.5, *range(1, 98)]}), ["savings"])
        {}
        >>> atoms(pd.DataFrame({"savings": [0.0] * 9 + [10.5]}), ["savings"])
        {'savings': (0.0, 0.9)}
    """
    counted, found = whole_numbers(frame, features), {}
    for name in features:
        if name not in counted:
            shares = pd.Series(_numbers(frame[name])).value_counts(normalize=True)
            if shares.iloc[0] >= ATOM:
                found[name] = (float(shares.index[0]), float(shares.iloc[0]))
    return found


def at_an_end(frame: pd.DataFrame, found: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the features whose atom is their lowest or highest value.

    Example:
        >>> frame = pd.DataFrame({"savings": [0.0] * 9 + [10.5]})
        >>> at_an_end(frame, atoms(frame, ["savings"]))
        ['savings']
    """
    ends = {name: (frame[name].min(), frame[name].max()) for name in found}
    return [name for name, (value, _) in found.items() if value in ends[name]]


def refusals(problem: Problem) -> list[Finding]:
    """Return whom the classifier refuses, and whether these are enough people.

    Raises: Unfit: it refuses nobody in one of the splits.

    Example:
        >>> from lib.problem import loan
        >>> refusals(loan.problem())[0].found
        '4,826 of 10,000 train, 2,391 of 5,000 validation, 2,444 of 5,000 test people'
    """
    parts, fewest = [], np.inf
    for split in ("train", "validation", "test"):
        n_all = len(problem.population.x[f"recourse/{split}"])
        n_refused = len(problem.refused(split))
        fewest = min(fewest, n_refused)
        parts.append(f"{n_refused:,} of {n_all:,} {split}")
    found = f"{', '.join(parts)} people"
    if fewest == 0:
        raise Unfit(
            f"The classifier refuses {found}. Recourse is for refused people: bring more "
            "people whose label is 0, or weigh them more."
        )
    if fewest < FEW_OF_A_CLASS:
        do = "Too few to learn from, or to be sure of anything. Bring more people."
        return [Finding("warning", "who is refused", found, do)]
    return [Finding("fine", "who is refused", found)]


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
    is_number = pd.api.types.is_numeric_dtype(column)
    named = column.astype(object).where(column.notna(), "not said").astype(str)
    if is_number and column.nunique() > 6:
        middle = f"{column.median():g}"
        halves = np.where(column <= column.median(), f"up to {middle}", f"above {middle}")
        named = named.where(column.isna(), halves)
    labels = list(dict.fromkeys(named))
    return {own: np.flatnonzero(named.to_numpy() == own) for own in labels}


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as float64, gaps as NaN."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def _is_number(column: pd.Series | pd.DataFrame) -> bool:
    """Return whether a column holds real numbers."""
    is_column = isinstance(column, pd.Series) and pd.api.types.is_numeric_dtype(column)
    return is_column and not pd.api.types.is_complex_dtype(column)


def _is_usable(column: pd.Series) -> bool:
    """Return whether a column holds numbers without gaps that differ."""
    return (
        _is_number(column)
        and len(column) > 0
        and bool(np.isfinite(_numbers(column)).all())
        and np.ptp(_numbers(column)) > 0
    )


def _is_label(column: pd.Series) -> bool:
    """Return whether a column holds 0 and 1, and both."""
    return _is_number(column) and set(pd.unique(column)) == {0, 1}


def _known(names: Any, frame: pd.DataFrame) -> list[str]:
    """Return those of the names that are columns, each once."""
    columns = list(frame.columns)
    return [name for name in names if isinstance(name, str) and columns.count(name) == 1]


def _people(frame: pd.DataFrame) -> Finding:
    """Look at how many people there are."""
    n = len(frame)
    if n < FEWEST:
        do = f"At least {FEWEST} are needed to fill three splits."
        return Finding("error", "people", f"{n} rows", do)
    if n < FEW:
        do = f"With fewer than {FEW:,} the flow knows little: believe it less."
        return Finding("warning", "people", f"{n} rows", do)
    return Finding("fine", "people", f"{n:,} rows")


def _names(
    frame: pd.DataFrame, label: Any, kinds: Any, most_actionable: int
) -> Iterator[Finding]:
    """Look at the names of columns, and at the kinds of features."""
    columns = [str(name) for name in frame.columns]
    if unnamed := [name for name in frame.columns if not isinstance(name, str)]:
        do = "Name them, with frame.rename(columns=str)."
        yield Finding("error", "columns", f"{unnamed[0]!r} is no name", do)
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        yield Finding("error", "columns", f"twice: {', '.join(twice)}", "Keep one of each.")
    if not isinstance(kinds, Mapping) or not kinds:
        do = "Expected a kind for each feature, for instance income: actionable."
        yield Finding("error", "kinds", f"{kinds!r}", do)
        return
    for name in [label, *kinds]:
        if name not in list(frame.columns):
            near = get_close_matches(str(name), columns, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {_some(columns)}."
            yield Finding("error", "names", f"there is no column {name!r}", hint)
    for name, kind in kinds.items():
        if kind not in KINDS:
            do = f"Expected one of {', '.join(KINDS)}."
            yield Finding("error", "kinds", f"{name} is {kind!r}", do)
    if label in kinds:
        do = "Leave it out there, or the classifier learns from the answer."
        yield Finding("error", "kinds", f"the label {label!r} is among the features", do)
    n_actionable = sum(kind == "actionable" for kind in kinds.values())
    if not 1 <= n_actionable <= most_actionable:
        do = f"Make 1 to {most_actionable} features actionable."
        yield Finding("error", "kinds", f"{n_actionable} actionable features", do)
    else:
        left_out = [name for name in columns if name not in {label, *kinds}]
        said = f"{len(kinds)} features, {n_actionable} actionable; left out: "
        yield Finding("fine", "columns", said + (_some(left_out) or "none"))


def _contents(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[Finding]:
    """Look for text, gaps, infinities and constant columns among the features."""
    texts = [name for name in features if not _is_number(frame[name])]
    for name in texts:
        do = "Make categories 0 and 1, for instance with pandas.get_dummies."
        seen = frame[name].dropna().astype(str).head(100)
        if len(seen) and seen.str.fullmatch(r"-?[\d.]*,\d+").mean() > 0.5:
            do = "These seem to be decimal commas: write points."
        first = repr(seen.iloc[0][:30]) if len(seen) else "nothing"
        yield Finding("error", "text columns", f"{name} holds {first}", do)
    for name in (name for name in features if name not in texts):
        values = _numbers(frame[name])
        bad = ~np.isfinite(values)
        if bad.any():
            said = f"{bad.sum():,} of {name}, the first in row {int(bad.argmax())}"
            do = "Drop these people, or fill what is missing, and say how."
            yield Finding("error", "gaps", said, do)
        elif len(values) and np.ptp(values) == 0:
            do = "Leave it out: nothing can be learned from it."
            yield Finding("error", "constant columns", f"{name} is {values[0]:g}", do)
        elif len(values) and np.abs(values).max() > 1e15:
            do = "Use another unit, or drop what is a mistake."
            yield Finding("error", "size", f"{name} reaches {values.max():g}", do)


def _label(frame: pd.DataFrame, label: Any) -> Iterator[Finding]:
    """Look at the label: 0 and 1, both, and how many."""
    if label not in _known([label], frame):
        return  # said among the names
    column = frame[label]
    if len(column) == 0:
        return
    values = list(pd.unique(column))
    is_told = _is_number(column) and not column.isna().any()
    if not is_told or not set(values) <= {0, 1}:
        do = "Expected 1 where the decision should be positive, 0 else, and no gaps."
        said = f"{label} holds {', '.join(map(str, values[:5]))}"
        yield Finding("error", "label", said, do)
        return
    n_positive = int((column == 1).sum())
    fewer = min(n_positive, len(column) - n_positive)
    said = f"{label} is 1 for {n_positive / len(column):.0%} of {len(column):,}"
    if fewer == 0:
        do = "Bring people of both kinds: there is nothing to decide."
        yield Finding("error", "label", said, do)
    elif fewer < FEW_OF_A_CLASS:
        do = f"Only {fewer} of the rarer kind: the classifier knows little of them."
        yield Finding("warning", "label", said, do)
    else:
        yield Finding("fine", "label", said)


def _edges(
    features: Sequence[str], label: Any, kinds: Any, edges: Any
) -> Iterator[Finding]:
    """Look at the causal graph: names, circles, what follows from the label."""
    try:
        pairs = _as_pairs(edges)
    except ValueError as error:
        yield Finding("error", "edges", str(error), "Write effect: [cause, cause].")
        return
    good = []
    for cause, effect in dict.fromkeys(pairs):
        if label in (cause, effect):
            said, do = f"{cause} -> {effect} names the label", "Remove this edge."
            if cause == label:
                do = f"Remove it; {effect} is made after the label: leave that out, too."
            yield Finding("error", "edges", said, do)
        elif unknown := [name for name in (cause, effect) if name not in features]:
            near = get_close_matches(str(unknown[0]), features, n=1)
            hint = f"Did you mean {near[0]}?" if near else "Give it a kind, or remove it."
            said = f"{cause} -> {effect}: there is no feature {unknown[0]!r}"
            yield Finding("error", "edges", said, hint)
        elif cause == effect:
            yield Finding("error", "edges", f"{cause} causes itself", "Remove this edge.")
        else:
            good.append((cause, effect))
    if not good:
        do = "Then nothing follows from an action. Is that so?"
        yield Finding("warning", "edges", "no edge between two features", do)
        return
    try:
        graph = frames.graph(list(features), good)
    except ValueError as error:
        said, do = str(error).split(". ", 1)
        yield Finding("error", "edges", said, do)
        return
    acted = [j for j, name in enumerate(features) if kinds[name] == "actionable"]
    moved = [features[j] for j in graph.moved_by(acted)]
    if fixed := [name for name in moved if kinds[name] == "immutable"]:
        said = f"{', '.join(fixed)} may not change, and follows from what people act on"
        do = "Call it mutable, or remove the edge into it."
        yield Finding("warning", "edges", said, do)
    yield Finding("fine", "edges", f"{len(good)} edges, no circle")


def _as_pairs(edges: Any) -> list[tuple[Any, Any]]:
    """Return edges as pairs (cause, effect)."""
    if isinstance(edges, Mapping):
        for effect, causes in edges.items():
            if isinstance(causes, str) or not isinstance(causes, Iterable):
                raise ValueError(f"the causes of {effect} are {causes!r}, which is no list")
        edges = [(cause, effect) for effect, own in edges.items() for cause in own]
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ValueError(f"{edges!r} is no list of causes by effect")
    pairs = [tuple(pair) if isinstance(pair, list | tuple) else (pair,) for pair in edges]
    is_text = [all(isinstance(name, str) for name in pair) for pair in pairs]
    if bad := [p for p, ok in zip(pairs, is_text, strict=True) if len(p) != 2 or not ok]:
        raise ValueError(f"{bad[0]!r} is no pair (cause, effect)")
    return [(cause, effect) for cause, effect in pairs]


def _leaks(frame: pd.DataFrame, label: str, usable: Sequence[str]) -> Iterator[Finding]:
    """Look for columns that tell the label nearly alone, among all columns."""
    y = frame[label].to_numpy(dtype=bool)
    left_out = [
        name
        for name in _known(frame.columns, frame)
        if name != label and name not in usable and _is_usable(frame[name])
    ]
    leaks = {name: _errors_left(frame[name], y) for name in [*usable, *left_out]}
    for name, left in leaks.items():
        if left > LEAK:
            continue
        said = f"{name} alone leaves {left:.0%} of the errors of a constant answer"
        if name in left_out:
            yield Finding("fine", "leaks", said + "; it is left out", "Keep it out.")
        elif left == 0 and frame[name].nunique() == 2:
            do = "It is the label by another name: leave it out."
            yield Finding("error", "leaks", said, do)
        else:
            do = "Is it made after the decision? Then leave it out."
            yield Finding("warning", "leaks", said, do)
    best = min(usable, key=leaks.__getitem__)
    if leaks[best] > LEAK:
        said = f"the most telling feature, {best}, leaves {leaks[best]:.0%} of the errors"
        yield Finding("fine", "leaks", said)


def _errors_left(column: pd.Series, y: np.ndarray) -> float:
    """Return what the majority in each of 20 bins of a column still gets wrong, as a share.

    It is a share of the errors that are made without the column.
    """
    values = _numbers(column)
    bins = values
    if column.nunique() > N_BINS:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, N_BINS + 1)[1:-1]))
        bins = np.searchsorted(edges, values)
    counts = pd.crosstab(bins, y).to_numpy()
    return float(counts.min(1).sum() / min(y.sum(), (~y).sum()))


def _values(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[Finding]:
    """Look at whole numbers, atoms and outliers."""
    counted = whole_numbers(frame, usable)
    yield Finding("fine", "whole numbers", _some(counted) or "none")
    found = atoms(frame, usable)
    ends = at_an_end(frame, found)
    for name, (value, share) in found.items():
        said = f"{name} is exactly {value:g} for {share:.0%}"
        do = "It is spread before the flow is fitted. Trust densities there less."
        if name not in ends:
            do = "A density can't be fitted to it: add a column that says who has it."
        yield Finding("warning", "atoms", said, do)
    if not found:
        yield Finding("fine", "atoms", f"no value is shared by {ATOM:.0%} of people")
    far = {}
    for name in usable:
        values = _numbers(frame[name])
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        is_far = np.abs(values - middle) > FAR * (high - low)
        if high > low and is_far.any():
            far[name] = int(is_far.sum())
    if far:
        said = ", ".join(f"{name} of {n:,} people" for name, n in far.items())
        do = "Cap them, or take logarithms: they set the range that cost is measured by."
        yield Finding("warning", "outliers", said, do)
    else:
        yield Finding("fine", "outliers", f"none {FAR:g} interquartile ranges away")


def _doubles(frame: pd.DataFrame, usable: Sequence[str]) -> Finding:
    """Look for people who are equal in all features."""
    n = int(frame[list(usable)].duplicated().sum())
    said = f"{n:,} people equal another in all features"
    if n / len(frame) > TWICE:
        do = "Is a person there twice? Then drop one: it could be in two splits."
        return Finding("warning", "duplicates", said, do)
    return Finding("fine", "duplicates", said)


def _pairs(frame: pd.DataFrame, usable: Sequence[str]) -> Finding:
    """Look for pairs of features that say the same."""
    values = np.stack([_numbers(frame[name]) for name in usable], -1)
    with np.errstate(all="ignore"):
        scaled = (values - values.mean(0)) / values.std(0)
    size = {}
    for i, j in combinations(range(len(usable)), 2):
        size[usable[i], usable[j]] = abs(float((scaled[:, i] * scaled[:, j]).mean()))
    same = [f"{a} and {b} ({r:.3f})" for (a, b), r in size.items() if r > COLLINEAR]
    if same:
        do = "Leave one out: acting on one without the other is nothing that was seen."
        return Finding("warning", "collinear pairs", _some(same), do)
    if not size:
        return Finding("fine", "collinear pairs", "only one feature")
    (a, b), r = max(size.items(), key=lambda one: one[1])
    return Finding("fine", "collinear pairs", f"the closest, {a} and {b}, at {r:.2f}")


def _group(frame: pd.DataFrame, group: str, features: Sequence[str]) -> Finding:
    """Look at the groups that are to be audited."""
    if group not in _known([group], frame):
        do = "Name a column that is there once, or none: group: ''."
        return Finding("error", "groups", f"no such column, {group!r}", do)
    sizes = {name: len(who) for name, who in groups_of(frame[group]).items()}
    said = ", ".join(f"{name} {n:,}" for name, n in list(sizes.items())[:6])
    said += f"; the classifier {'sees' if group in features else 'does not see'} it"
    if len(sizes) < 2 or len(sizes) > 6 or min(sizes.values()) < 4 * FEW_IN_A_GROUP:
        do = "Expected two to six groups of 120 people or more: join small ones."
        return Finding("warning", "groups", f"{len(sizes)}: {said}", do)
    return Finding("fine", "groups", said)


def _some(names: Sequence[str]) -> str:
    """Return up to eight names, and how many more."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
