"""What the columns of a table hold: leaks, counts, atoms, codes, outliers, duplicates.

Each check yields results, also where all is well;
`checkup.examine` runs them all.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.beyond.own_table.results import CheckResult
from lib.method import data

ATOM = 0.05  # share of people with one and the same value
MAX_ATOMS = 3  # of a feature, that are named
MAX_COUNTS = 100  # different values, up to which whole numbers are counts
N_BINS = 20  # of a feature that predicts the label
MIN_IN_BIN = 10  # people; with fewer a bin predicts the label by chance
LEAK = 0.15  # share of the majority's errors that a single feature may leave
COLLINEAR = 0.98
FAR = 10.0  # interquartile ranges from the median
DUPLICATES = 0.01  # share of people who equal somebody else
# what often stands for a missing value
CODES = (-1, -9, -99, -999, 96, 97, 98, 99, 996, 997, 998, 999, 9999, 99999)
CODED = 0.01  # share of people with a code among other values
MIN_BESIDE_CODES = 4  # different values that a feature has beside its codes
MAX_EXACT = 2**53  # up to here whole numbers are exact in float64


def numbers(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as float64, gaps as NaN."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def is_number(column: pd.Series | pd.DataFrame) -> bool:
    """Return whether a column holds real numbers."""
    return isinstance(column, pd.Series) and column.dtype.kind in "iufb"


def is_usable(column: pd.Series) -> bool:
    """Return whether a column holds numbers without gaps that differ."""
    if not is_number(column) or len(column) == 0:
        return False
    values = numbers(column)
    return bool(np.isfinite(values).all() and np.ptp(values) > 0)


def abbreviate(names: Sequence[str]) -> str:
    """Return up to eight names, and how many more there are."""
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
        and (numbers(frame[name]) % 1 == 0).all()
        and frame[name].nunique() <= MAX_COUNTS
    ]


def atoms(
    frame: pd.DataFrame, features: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """Return each feature's atoms, the most common first: pairs of a value and its share.

    An atom is a value that `ATOM` of all people share, of a feature
    that is no whole number. At most `MAX_ATOMS` of a feature are
    returned; features without one are left out.

    Example:
        >>> atoms(pd.DataFrame({"savings": [0.0] * 9 + [10.5]}), ["savings"])
        {'savings': [(0.0, 0.9)]}
    """
    counts = whole_numbers(frame, features)
    atoms_of = {}
    for name in features:
        if name not in counts and is_number(frame[name]):
            people = pd.Series(numbers(frame[name])).value_counts()
            common = people[people >= max(ATOM * len(frame), 2)].head(MAX_ATOMS)
            if len(common):
                atoms_of[name] = [(float(v), n / len(frame)) for v, n in common.items()]
    return atoms_of


def at_an_end(
    frame: pd.DataFrame, atoms_of: Mapping[str, Sequence[tuple[float, float]]]
) -> list[str]:
    """Return the features of which an atom is the lowest or highest value.

    Arguments:
        atoms_of: As `atoms` returns them.
    """
    pairs = atoms_of.items()
    return [name for name, values in pairs if _spread_atom(frame[name], values) is not None]


def _spread_atom(column: pd.Series, values: Sequence[tuple[float, float]]) -> float | None:
    """Return the one atom that is spread: at the end that more people share."""
    ends = (column.min(), column.max())
    return next((value for value, _ in values if value in ends), None)


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
    names = list(frame.columns)
    left_out = [
        name
        for name in names
        if isinstance(name, str) and names.count(name) == 1
        if name not in (label, *usable) and is_usable(frame[name])
    ]
    errors_left = {name: _errors_left(frame[name], y) for name in [*usable, *left_out]}
    for name, left in errors_left.items():
        if left > LEAK:
            continue
        message = f"{name} alone leaves {left:.0%} of the errors of a constant answer"
        if name in left_out:
            yield CheckResult("fine", "leaks", f"{message}; it is left out", "Keep it out.")
        elif left == 0 and frame[name].nunique() == 2:
            hint = "It is the label by another name: leave it out."
            yield CheckResult("error", "leaks", message, hint)
        else:
            hint = "Is it made after the decision? Then leave it out."
            yield CheckResult("warning", "leaks", message, hint)
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
    values = numbers(column)
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


def contents(
    frame: pd.DataFrame, usable: Sequence[str], kinds: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check whole numbers, atoms, codes, outliers, duplicates, pairs and categories.

    Arguments:
        usable: Features, see `is_usable`.
        kinds: Of each feature, see `Population`.
    """
    yield from _counts(frame, usable)
    yield from _atoms(frame, usable)
    yield from _codes(frame, usable)
    yield _outliers(frame, usable)
    yield _duplicates(frame, usable)
    yield _pairs(frame, usable)
    yield from _categories(frame, usable, kinds)


def _counts(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[CheckResult]:
    """Check whole numbers, and the steps that they come in."""
    names = whole_numbers(frame, usable)
    for name in names:
        values = numbers(frame[name])
        if np.abs(values).max() > MAX_EXACT:
            continue
        step = int(np.gcd.reduce(values.astype(np.int64)))
        if step > 1:
            message = f"{name} comes in steps of {step:,}, and is spread by 1 only"
            hint = f"Divide it by {step:,}: then it is spread, and rounded, by its step."
            yield CheckResult("warning", "whole numbers", message, hint)
    yield CheckResult("fine", "whole numbers", abbreviate(names) or "none")


def _atoms(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[CheckResult]:
    """Check for values that many people share; name which of them is spread."""
    atoms_of = atoms(frame, usable)
    for name, pairs in atoms_of.items():
        values = ", ".join(f"{value:g} for {share:.0%}" for value, share in pairs)
        spread = _spread_atom(frame[name], pairs)
        hint = "A density can't be fitted to it: add a column for who has it."
        if spread is not None:
            which = "It is" if len(pairs) == 1 else f"Of these only {spread:g} is"
            hint = f"{which} spread before the flow is fitted. Trust densities there less."
        yield CheckResult("warning", "atoms", f"{name} is exactly {values}", hint)
    if not atoms_of:
        yield CheckResult("fine", "atoms", f"no value is shared by {ATOM:.0%} of people")


def _codes(frame: pd.DataFrame, usable: Sequence[str]) -> Iterator[CheckResult]:
    """Check for numbers that stand apart, and often stand for a missing value.

    They lie far beyond the others, or are ten times as common as any
    of them.
    """
    for name in usable:
        values = numbers(frame[name])
        is_code = np.isin(values, CODES)
        others, n_people = np.unique(values[~is_code], return_counts=True)
        if len(others) < MIN_BESIDE_CODES:
            continue
        odd = {}
        for code in np.unique(values[is_code]):
            n = int((values == code).sum())
            is_far = code < 0 <= others[0] or code > 2 * others[-1] > 0
            if is_far or n > max(10 * n_people.max(), CODED * len(values)):
                odd[code] = n
        if odd:
            codes = ", ".join(f"{code:g} for {n:,}" for code, n in odd.items())
            hint = "Does it stand for something else, as 'not known'? Then drop or fill it."
            yield CheckResult("warning", "codes", f"{name} is {codes}", hint)


def _outliers(frame: pd.DataFrame, usable: Sequence[str]) -> CheckResult:
    """Check for people who are far from the others."""
    n_far = {}
    for name in usable:
        values = numbers(frame[name])
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        if low == high:  # most are equal: look at the others
            low, middle, high = np.quantile(values[values != middle], [0.25, 0.5, 0.75])
        is_far = np.abs(values - middle) > FAR * (high - low)
        if high > low and is_far.any():
            n_far[name] = int(is_far.sum())
    if not n_far:
        return CheckResult("fine", "outliers", f"none {FAR:g} interquartile ranges away")
    message = ", ".join(f"{name} of {n:,} people" for name, n in n_far.items())
    hint = (
        "Cap them, or take logarithms: they stretch the scale of the fits and, of an "
        "actionable feature, the range that cost is measured by."
    )
    return CheckResult("warning", "outliers", message, hint)


def _duplicates(frame: pd.DataFrame, usable: Sequence[str]) -> CheckResult:
    """Check for people who are equal in all features."""
    n = int(frame[list(usable)].duplicated().sum())
    message = f"{n:,} people equal another in all features"
    if n / len(frame) <= DUPLICATES:
        return CheckResult("fine", "duplicates", message)
    hint = "Is a person there twice? Then drop one: it could be in two splits."
    return CheckResult("warning", "duplicates", message, hint)


def _pairs(frame: pd.DataFrame, usable: Sequence[str]) -> CheckResult:
    """Check for pairs of features that are nearly the same."""
    r = frame[list(usable)].astype(float).corr().abs()
    pairs = r.where(np.triu(np.ones(r.shape, dtype=bool), 1)).stack().dropna()
    if pairs.empty:
        return CheckResult("fine", "collinear pairs", "only one feature")
    same = [f"{a} and {b} ({r:.3f})" for (a, b), r in pairs.items() if r > COLLINEAR]
    if same:
        hint = "Leave one out: nobody was seen to change one without the other."
        return CheckResult("warning", "collinear pairs", abbreviate(same), hint)
    (a, b), closest = pairs.idxmax(), pairs.max()
    return CheckResult(
        "fine", "collinear pairs", f"the closest, {a} and {b}, {closest:.2f}"
    )


def _categories(
    frame: pd.DataFrame, usable: Sequence[str], kinds: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check for columns of 0 and 1 of which nobody has two, as get_dummies makes them."""
    for names in data.dummies(frame, usable):
        kinds_of = {kinds.get(name) for name in names}
        if kinds_of == {"immutable"}:
            continue
        is_one = bool((frame[names].sum(axis=1) == 1).all())
        message = abbreviate(names)
        message += " add up to one" if is_one else " exclude each other"
        hint = (
            "One by one they leave people with none or two. Give them as one column of "
            "words, or call all of them immutable."
        )
        verdict = "error" if "actionable" in kinds_of else "warning"
        yield CheckResult(verdict, "categories", message, hint)
