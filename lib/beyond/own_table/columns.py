"""What the columns of somebody's table hold: leaks, counts, atoms, codes, categories.

Each look returns findings, also where all is well; `checkup.examine`
asks them all.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from lib.beyond.own_table.findings import Finding
from lib.method import frames

ATOM = 0.05  # share of people with one and the same value
MOST_ATOMS = 3  # of a feature, that are named
MOST_COUNTED = 100  # different values, up to which whole numbers are counted
N_BINS = 20  # of a feature that is asked for the label
FEWEST_IN_A_BIN = 10  # people; with fewer a bin knows the label by chance
LEAK = 0.15  # share of the majority's errors that a single feature may leave
COLLINEAR = 0.98
FAR = 10.0  # interquartile ranges from the median
TWICE = 0.01  # share of people who are somebody else's double
# what often stands for something that is missing
CODES = (-1, -9, -99, -999, 96, 97, 98, 99, 996, 997, 998, 999, 9999, 99999)
CODED = 0.01  # share of people with a code among other values
FEWEST_BESIDE_CODES = 4  # different values that a feature has beside its codes
LARGEST = 2**53  # up to here whole numbers are exact in float64


def numbers(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as float64, gaps as NaN."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def is_number(column: pd.Series | pd.DataFrame) -> bool:
    """Return whether a column holds real numbers."""
    is_column = isinstance(column, pd.Series) and pd.api.types.is_numeric_dtype(column)
    return is_column and not pd.api.types.is_complex_dtype(column)


def is_usable(column: pd.Series) -> bool:
    """Return whether a column holds numbers without gaps that differ."""
    return (
        is_number(column)
        and len(column) > 0
        and bool(np.isfinite(numbers(column)).all())
        and bool(np.ptp(numbers(column)) > 0)
    )


def some(names: Sequence[str]) -> str:
    """Return up to eight names, and how many more.

    Example:
        >>> some(list("abcdefghij"))
        'a, b, c, d, e, f, g, h and 2 more'
    """
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


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
        if is_number(frame[name])
        if ((numbers(frame[name]) % 1 == 0).all() and frame[name].nunique() <= MOST_COUNTED)
        or pd.api.types.is_bool_dtype(frame[name])
    ]


def atoms(
    frame: pd.DataFrame, features: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """Return each feature's atoms, commonest first: pairs of a value and its share.

    An atom is a value that `ATOM` of all people share, of a feature
    that is no whole number. At most `MOST_ATOMS` of a feature are
    returned; features without one are left out.

    Example:
        >>> atoms(pd.DataFrame({"savings": [0, 0, 10.5, *range(1, 98)]}), ["savings"])
        {}
        >>> atoms(pd.DataFrame({"savings": [0.0] * 9 + [10.5]}), ["savings"])
        {'savings': [(0.0, 0.9)]}
    """
    counted, found = whole_numbers(frame, features), {}
    for name in features:
        if name not in counted and is_number(frame[name]):
            people = pd.Series(numbers(frame[name])).value_counts()
            common = people[people >= max(ATOM * len(frame), 2)].head(MOST_ATOMS)
            if len(common):
                found[name] = [(float(v), n / len(frame)) for v, n in common.items()]
    return found


def at_an_end(
    frame: pd.DataFrame, found: Mapping[str, Sequence[tuple[float, float]]]
) -> list[str]:
    """Return the features of which an atom is the lowest or highest value.

    Arguments:
        found: As `atoms` returns them.
    """
    return [name for name in found if _spread(frame[name], found[name]) is not None]


def _spread(column: pd.Series, own: Sequence[tuple[float, float]]) -> float | None:
    """Return the one atom that is spread: at the end that more people share."""
    ends = (column.min(), column.max())
    return next((value for value, _ in own if value in ends), None)


def leaks(frame: pd.DataFrame, label: str, usable: Sequence[str]) -> Iterator[Finding]:
    """Look for columns that tell the label nearly alone, among all columns.

    Arguments:
        label: Column of 0 and 1.
        usable: Features, see `is_usable`.

    Example:
        >>> frame = pd.DataFrame({"late": range(40), "repaid": [1] * 20 + [0] * 20})
        >>> next(leaks(frame, "repaid", ["late"])).found
        'late alone leaves 0% of the errors of a constant answer'
    """
    y = frame[label].to_numpy(dtype=bool)
    columns = list(frame.columns)
    left_out = [
        name
        for name in columns
        if isinstance(name, str) and columns.count(name) == 1
        if name not in (label, *usable) and is_usable(frame[name])
    ]
    left_by = {name: _errors_left(frame[name], y) for name in [*usable, *left_out]}
    for name, left in left_by.items():
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
    best = min(usable, key=left_by.__getitem__)
    if left_by[best] > LEAK:
        said = f"the most telling feature, {best}, leaves {left_by[best]:.0%} of the errors"
        yield Finding("fine", "leaks", said)


def _errors_left(column: pd.Series, y: np.ndarray) -> float:
    """Return what a column by itself still gets wrong, as a share.

    It is a share of the errors that are made without the column. Two
    answers are tried, and the better one counts: the commoner label
    in each of 20 bins (of ten people or more), and one threshold,
    which also finds what only a few people have.
    """
    values = numbers(column)
    n_bins = min(N_BINS, len(values) // FEWEST_IN_A_BIN)
    bins = values
    if column.nunique() > n_bins:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]))
        bins = np.searchsorted(edges, values)
    in_bins = pd.crosstab(bins, y).to_numpy().min(1).sum()
    by_value = pd.crosstab(values, y).to_numpy().cumsum(0)
    n_no, n_yes = by_value[-1]
    above = by_value[:, 0] + n_yes - by_value[:, 1]  # errors if high values mean no
    beyond = min(above.min(), (len(y) - above).min())
    return float(min(in_bins, beyond) / min(n_no, n_yes))


def contents(
    frame: pd.DataFrame, usable: Sequence[str], kinds: Mapping[str, str]
) -> Iterator[Finding]:
    """Look at whole numbers, atoms, codes, outliers, doubles, pairs and categories.

    Arguments:
        usable: Features, see `is_usable`.
        kinds: Of each feature, see `Population`.
    """
    yield from _counts(frame, usable)
    yield from _atoms(frame, usable)
    yield from _codes(frame, usable)
    yield _outliers(frame, usable)
    yield _doubles(frame, usable)
    yield _pairs(frame, usable)
    yield from _categories(frame, usable, kinds)


def _counts(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[Finding]:
    """Look at whole numbers, and at the steps that they come in."""
    counted = whole_numbers(frame, usable)
    for name in counted:
        values = numbers(frame[name])
        if np.abs(values).max() > LARGEST:
            continue
        step = int(np.gcd.reduce(values.astype(np.int64)))
        if step > 1:
            said = f"{name} comes in steps of {step:,}, and is spread by 1 only"
            do = f"Divide it by {step:,}: then it is spread, and rounded, by its step."
            yield Finding("warning", "whole numbers", said, do)
    yield Finding("fine", "whole numbers", some(counted) or "none")


def _atoms(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[Finding]:
    """Look at values that many people share; name which of them is spread."""
    found = atoms(frame, usable)
    for name, own in found.items():
        spread = _spread(frame[name], own)
        said = f"{name} is exactly "
        said += ", ".join(f"{value:g} for {share:.0%}" for value, share in own)
        do = "A density can't be fitted to it: add a column that says who has it."
        if spread is not None:
            is_spread = "It is" if len(own) == 1 else f"Of these only {spread:g} is"
            do = (
                f"{is_spread} spread before the flow is fitted. Trust densities there less."
            )
        yield Finding("warning", "atoms", said, do)
    if not found:
        yield Finding("fine", "atoms", f"no value is shared by {ATOM:.0%} of people")


def _codes(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[Finding]:
    """Look for numbers that stand apart from all others, and often mean: not known.

    They lie far beyond the others, or are ten times as common as any
    of them.
    """
    for name in usable:
        values = numbers(frame[name])
        is_code = np.isin(values, CODES)
        others, in_each = np.unique(values[~is_code], return_counts=True)
        if len(others) < FEWEST_BESIDE_CODES:
            continue
        odd = {}
        for code in np.unique(values[is_code]):
            n = int((values == code).sum())
            is_far = code < 0 <= others[0] or code > 2 * others[-1] > 0
            if is_far or n > max(10 * in_each.max(), CODED * len(values)):
                odd[code] = n
        if odd:
            said = ", ".join(f"{code:g} for {n:,}" for code, n in odd.items())
            do = "Does it stand for something else, as 'not known'? Then drop or fill it."
            yield Finding("warning", "codes", f"{name} is {said}", do)


def _outliers(frame: pd.DataFrame, usable: Sequence[str]) -> Finding:
    """Look for people who are far from the others."""
    far = {}
    for name in usable:
        values = numbers(frame[name])
        middle = np.median(values)
        low, high = np.quantile(values, [0.25, 0.75])
        if low == high:  # most are equal: look at the others
            low, middle, high = np.quantile(values[values != middle], [0.25, 0.5, 0.75])
        is_far = np.abs(values - middle) > FAR * (high - low)
        if high > low and is_far.any():
            far[name] = int(is_far.sum())
    if far:
        said = ", ".join(f"{name} of {n:,} people" for name, n in far.items())
        do = (
            "Cap them, or take logarithms: they stretch the scale of the fits and, of an "
            "actionable feature, the range that cost is measured by."
        )
        return Finding("warning", "outliers", said, do)
    return Finding("fine", "outliers", f"none {FAR:g} interquartile ranges away")


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
    values = np.stack([numbers(frame[name]) for name in usable], -1)
    with np.errstate(all="ignore"):
        scaled = (values - values.mean(0)) / values.std(0)
    size = {}
    for i, j in combinations(range(len(usable)), 2):
        size[usable[i], usable[j]] = abs(float((scaled[:, i] * scaled[:, j]).mean()))
    same = [f"{a} and {b} ({r:.3f})" for (a, b), r in size.items() if r > COLLINEAR]
    if same:
        do = "Leave one out: acting on one without the other is nothing that was seen."
        return Finding("warning", "collinear pairs", some(same), do)
    if not size:
        return Finding("fine", "collinear pairs", "only one feature")
    (a, b), r = max(size.items(), key=lambda one: one[1])
    return Finding("fine", "collinear pairs", f"the closest, {a} and {b}, at {r:.2f}")


def _categories(
    frame: pd.DataFrame, usable: Sequence[str], kinds: Mapping[str, str]
) -> Iterator[Finding]:
    """Look for columns of 0 and 1 of which nobody has two, as get_dummies makes them."""
    for names in frames.dummies(frame, usable):
        if all(kinds.get(name) == "immutable" for name in names):
            continue
        sums = "add up to one" if (frame[names].sum(axis=1) == 1).all() else "exclude"
        said = f"{some(names)} {sums}" + (" each other" if sums == "exclude" else "")
        do = (
            "One by one they leave people with none or two. Give them as one column of "
            "words, or call all of them immutable."
        )
        is_acted = any(kinds.get(name) == "actionable" for name in names)
        yield Finding("error" if is_acted else "warning", "categories", said, do)
