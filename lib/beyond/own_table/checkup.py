"""Checks of somebody's own table, each of which says what it looked at and what it found.

What makes recourse impossible is an error, and all errors are found at
once (`findings.require` raises them). The rest are warnings, with what
to do about them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from lib.beyond.own_table import columns
from lib.beyond.own_table.findings import VERDICTS, Finding, Unfit
from lib.method import frames, words
from lib.method.limits import Limits
from lib.method.population import FEWEST, KINDS
from lib.method.problem import Problem

FEW = 1_000  # people; with fewer a flow knows little, and half of them teach it
FEW_OF_A_CLASS = 100  # labels of the rarer kind
FEW_IN_A_GROUP = 30  # people that an interval needs, see lib.paper.fairness.bootstrap
FORMS = {  # of texts that are numbers or days, and what to do about them
    r"-?\d{1,3}(,\d{3})+(\.\d+)?": "These seem to be thousands, set off by commas: write "
    "1234. If they are decimal commas, say decimal: ','.",
    r"-?\d{1,3}(\.\d{3})+(,\d+)?": "These seem to be thousands, set off by points: write "
    "1234, and decimals after a point.",
    r"-?\d*,\d+": "These seem to be decimal commas: say decimal: ','.",
    r"\d{4}-\d\d?-\d\d?.*|\d\d?[./]\d\d?[./]\d{2,4}.*": "These seem to be days: make them "
    "a number, for instance of years until the decision.",
    r"\D{0,3}\d[\d.]*\D{0,3}": "These seem to be numbers held as text: leave out signs and "
    "units, and turn them with pandas.to_numeric.",
}
# columns of the recommendations as notebook 12 writes them
TAKEN = (
    *("split", "person", *words.COLUMNS),
    *("helped", "holds_in", "is_sparse", "moves_an_atom"),
)
NEARLY_ALL = 0.95  # share of people refused, from which on few are left to learn from


def examine(
    frame: pd.DataFrame,
    label: str,
    kinds: Mapping[str, str],
    edges: Any,
    group: str = "",
    most_actionable: int = 8,
    person: str = "",
    limits: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Return what all checks of a table find, before anything is fitted.

    Arguments:
        frame: A row a person.
        label, kinds: As for `Population.from_frame`.
        edges: A dict effect -> causes, or pairs (cause, effect).
        group: Column whose groups are audited; "": none.
        most_actionable: Features that a search over all sets bears.
        person: Column with what people are called; "": none.
        limits: As for `Limits.from_words`; None: none.
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
    if not all(isinstance(name, str) for name in (label, group, person)):
        raise Unfit(
            f"Expected names of columns, got label {label!r}, group {group!r}, person "
            f"{person!r}."
        )
    found = [_people(frame), *_names(frame, label, kinds, most_actionable)]
    features = [name for name in _known(kinds, frame) if name != label]
    nothing = Finding("fine", "text, gaps, constants", "none among the features")
    contents = list(_contents(frame, features))
    found += contents if any(one.is_error for one in contents) else [nothing, *contents]
    found += _label(frame, label)
    found += _edges(list(kinds) if isinstance(kinds, Mapping) else [], label, kinds, edges)
    usable = [name for name in features if columns.is_usable(frame[name])]
    if label in frame and usable and len(frame) and _is_label(frame[label]):
        found += columns.leaks(frame, label, usable)
    if usable and len(frame):
        found += columns.contents(frame, usable, kinds)
    if group:
        found.append(_group(frame, group, features, person))
    if person:
        found += _person(frame, person)
    if limits:
        found.append(_limits(features, kinds, limits, frame))
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))


def refusals(problem: Problem) -> list[Finding]:
    """Return whom the classifier refuses, and whether these are enough people.

    Raises: Unfit: it refuses nobody in one of the splits.

    Example:
        >>> refusals(problem)[0].found
        '4,879 of 10,000 train, 2,410 of 5,000 validation, 2,426 of 5,000 test people'
    """
    parts, fewest, most = [], np.inf, 0.0
    for split in ("train", "validation", "test"):
        n_all = len(problem.population.x[f"recourse/{split}"])
        n_refused = len(problem.refused(split))
        fewest, most = min(fewest, n_refused), max(most, n_refused / n_all)
        parts.append(f"{n_refused:,} of {n_all:,} {split}")
    found = f"{', '.join(parts)} people"
    if fewest == 0:
        raise Unfit(
            f"The classifier refuses {found}. Recourse is for refused people: bring more "
            "people whose label is 0, or weigh them more."
        )
    if most > NEARLY_ALL:
        do = (
            "Nearly everybody: what an accepted person looks like is hardly known. Bring "
            "more people whose label is 1, or weigh them more."
        )
        return [Finding("warning", "who is refused", found, do)]
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


def _is_label(column: pd.Series) -> bool:
    """Return whether a column holds 0 and 1, and both."""
    return columns.is_number(column) and set(pd.unique(column)) == {0, 1}


def _known(names: Any, frame: pd.DataFrame) -> list[str]:
    """Return those of the names that are columns, each once."""
    there = list(frame.columns)
    return [name for name in names if isinstance(name, str) and there.count(name) == 1]


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
    there = [str(name) for name in frame.columns]
    if unnamed := [name for name in frame.columns if not isinstance(name, str)]:
        do = "Name them, with frame.rename(columns=str)."
        yield Finding("error", "columns", f"{unnamed[0]!r} is no name", do)
    if twice := sorted({name for name in there if there.count(name) > 1}):
        yield Finding("error", "columns", f"twice: {', '.join(twice)}", "Keep one of each.")
    if not isinstance(kinds, Mapping) or not kinds:
        do = "Expected a kind for each feature, for instance income: actionable."
        yield Finding("error", "kinds", f"{kinds!r}", do)
        return
    if taken := [name for name in kinds if name in TAKEN]:
        said = f"a feature is called {taken[0]!r}, as a column of the recommendations is"
        yield Finding("error", "names", said, "Rename it in the table, in kinds and edges.")
    for name in [label, *kinds]:
        if not isinstance(name, str):
            do = f"Put quotes around it: '{name}'."
            yield Finding("error", "names", f"{name!r} is no text", do)
        elif name not in list(frame.columns):
            near = get_close_matches(str(name), there, n=1)
            hint = (
                f"Did you mean {near[0]}?" if near else f"There are {columns.some(there)}."
            )
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
        left_out = [name for name in there if name not in {label, *kinds}]
        said = f"{len(kinds)} features, {n_actionable} actionable; left out: "
        yield Finding("fine", "columns", said + (columns.some(left_out) or "none"))


def _contents(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[Finding]:
    """Look for text, gaps, infinities and constant columns among the features."""
    texts = [name for name in features if not columns.is_number(frame[name])]
    for name in texts:
        seen = frame[name].dropna().astype(str).head(100)
        several = frame[name].nunique()
        is_form = any(seen.str.fullmatch(form).mean() > 0.5 for form in FORMS)
        is_one_of = frames.has_categories(frame[name]) and not is_form
        if is_one_of and (gaps := frame[name].isna()).any():
            said = f"{gaps.sum():,} of {name}, the first in row {int(gaps.argmax())}"
            do = "Drop these people, or make it a category of its own."
            yield Finding("error", "gaps", said, do)
            continue
        if is_one_of and 1 < several <= frames.MOST_CATEGORIES:
            said = f"{name} is one of {several}: {columns.some(sorted(seen.unique()))}"
            yield Finding("fine", "categories", said)
            continue
        do = next(
            (do for form, do in FORMS.items() if seen.str.fullmatch(form).mean() > 0.5),
            f"Expected numbers, or 2 to {frames.MOST_CATEGORIES} categories as words.",
        )
        first = repr(seen.iloc[0][:30]) if len(seen) else "nothing"
        yield Finding("error", "text columns", f"{name} holds {first}", do)
    for name in (name for name in features if name not in texts):
        values = columns.numbers(frame[name])
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
        elif len(values):
            try:
                frames.check_near(name, values)
            except ValueError as error:
                said, do = str(error).split(": ", 1)
                yield Finding("error", "size", said, do)


def _limits(
    features: Sequence[str],
    kinds: Mapping[str, str],
    limits: Mapping[str, str],
    frame: pd.DataFrame,
) -> Finding:
    """Look whether limits can be read, and are of features that can be acted on."""
    acted = [name for name in features if kinds[name] == "actionable"]
    words_of = {
        name: [str(own) for own in frame[name].dropna().unique()]
        for name in acted
        if frames.has_categories(frame[name])
    }
    try:
        Limits.from_words(limits, acted, words_of).check(acted, words_of)
    except ValueError as error:
        do = "Limits are of features that can be acted on, in the units of the table."
        return Finding("error", "limits", str(error), do)
    told = "; ".join(f"{name}: {said}" for name, said in limits.items())
    return Finding("fine", "limits", told)


def _label(frame: pd.DataFrame, label: Any) -> Iterator[Finding]:
    """Look at the label: 0 and 1, both, and how many."""
    if label not in _known([label], frame):
        return  # said among the names
    column = frame[label]
    if len(column) == 0:
        return
    values = list(pd.unique(column))
    is_told = columns.is_number(column) and not column.isna().any()
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
    if fewer:
        said = f"1 is the good outcome? ({n_positive:,} people; 0: "
        said += f"{len(column) - n_positive:,})"
        do = "No check can know. If 1 is the bad one, turn the label round."
        yield Finding("fine", "label", said, do)


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
            near = get_close_matches(unknown[0], map(str, features), n=1)
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
        yield Finding("error", "edges", said, do)
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


def _group(
    frame: pd.DataFrame, group: str, features: Sequence[str], person: str
) -> Finding:
    """Look at the groups that are to be audited."""
    if group and group == person:
        do = "Name another column for one of them, or none: group: ''."
        said = f"{group!r} is also what people are called: each is a group of their own"
        return Finding("error", "groups", said, do)
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


def _person(frame: pd.DataFrame, person: str) -> Iterator[Finding]:
    """Look at the column with what people are called."""
    if person not in _known([person], frame):
        do = "Name a column that is there once, or none: person: ''."
        yield Finding("error", "names", f"no such column of people, {person!r}", do)
    elif not frame[person].is_unique:
        twice = frame[person][frame[person].duplicated()].iloc[0]
        said = f"several people are called {twice!r} in {person!r}"
        do = "Give each a name of their own, or none: person: ''."
        yield Finding("error", "names", said, do)
