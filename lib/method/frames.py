"""What a table must hold to become a population; see `Population.from_frame`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.method.world import Graph

Edges: TypeAlias = (
    Graph | Mapping[str, Sequence[str]] | pd.DataFrame | Iterable[tuple[str, str]]
)

SPREAD = 0.2  # standard deviations over which an atom is spread
MOST_CATEGORIES = 30
FAR = 1e6  # interquartile ranges from the median; real tables reach half of that
EXPECTED = 10  # people with both of two categories, if these were independent


def values(frame: pd.DataFrame, features: Sequence[str]) -> np.ndarray:
    """Return the features of a table as float64, with shape (N, D).

    Raises: ValueError: a column is missing or twice, or holds text,
        gaps or infinities.

    Example:
        >>> values(pd.DataFrame({"age": [30, 40], "name": ["A", "B"]}), ["age"])
        array([[30.],
               [40.]])
    """
    for name in features:
        if _column(frame, name).dtype.kind not in "iufb":
            raise ValueError(
                f"Column {name!r} holds {frame[name].dtype}: expected numbers, or up to "
                f"{MOST_CATEGORIES} categories as words."
            )
        finite = np.isfinite(frame[name].to_numpy(dtype=float, na_value=np.nan))
        if not finite.all():
            raise ValueError(
                f"Column {name!r} has {(~finite).sum()} gaps or infinite values (the first "
                f"in row {int((~finite).argmax())}). Drop or fill those rows first."
            )
    return frame[list(features)].to_numpy(dtype=float, copy=True)


def check_near(name: str, column: np.ndarray) -> None:
    """Raise ValueError if a value is so far from the others that these look alike.

    Arguments:
        name: Of the column.
        column: Numbers, with shape (N,).
    Example:
        >>> check_near("income", np.array([1.0, 2, 3, 4, 1e12]))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: income of row 4 is 1e+12, and the others lie around 3: beside ...
    """
    middle = np.median(column)
    far = np.abs(column - middle)
    others = np.delete(column, far.argmax())
    others = others[others != middle]
    spread = np.subtract(*np.quantile(others, [0.75, 0.25])) if len(others) else 0.0
    if spread > 0 and far.max() > FAR * spread:
        raise ValueError(
            f"{name} of row {int(far.argmax())} is {column[far.argmax()]:g}, and the "
            f"others lie around {middle:g}: beside it they all look alike. Correct or drop "
            "it, or take logarithms."
        )


def check_columns(frame: pd.DataFrame, features: Sequence[str]) -> None:
    """Raise ValueError unless a table has people, and each feature one column.

    Example:
        >>> check_columns(pd.DataFrame({"age": [30]}), ["age"])
    """
    for name in features:
        _column(frame, name)
    if len(frame) == 0:
        raise ValueError("There is nobody: expected a row a person.")


def categories(
    frame: pd.DataFrame, features: Sequence[str], labels: np.ndarray, rows: np.ndarray
) -> dict[str, tuple[str, ...]]:
    """Return the categories of each feature that has some, in the order of their codes.

    A feature has categories if its column is of pandas' category type
    or holds words. Those of an ordered type keep their order. Others
    are ordered by how often the label is positive among some people,
    so that neighbours are alike; then by name.

    Arguments:
        labels: Whether each decision should be positive, (N,).
        rows: The people by whom others are ordered.
    Raises: ValueError: a column is missing or twice, has gaps, or too
        many categories.

    Example:
        >>> frame = pd.DataFrame({"job": ["cook", "clerk", "cook"], "age": [30, 40, 50]})
        >>> labels = np.array([False, True, False])
        >>> categories(frame, ["job", "age"], labels, np.arange(3))
        {'job': ('cook', 'clerk')}
    """
    found = {}
    for name in features:
        column = _column(frame, name)
        if not has_categories(column):
            continue
        if column.isna().any():
            raise ValueError(
                f"Column {name!r} has {int(column.isna().sum())} gaps (the first in row "
                f"{int(column.isna().argmax())}). Drop or fill those rows first."
            )
        seen = [str(own) for own in column.unique()]
        if len(seen) > MOST_CATEGORIES:
            raise ValueError(
                f"Column {name!r} has {len(seen)} categories: expected "
                f"{MOST_CATEGORIES} at most. Join those that are rare, or leave it out."
            )
        share = pd.Series(labels[rows]).groupby(column.astype(str).to_numpy()[rows]).mean()
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
            given = [str(own) for own in column.cat.categories]
            found[name] = tuple(own for own in given if own in seen)
        else:
            order = sorted(seen, key=lambda own: (share.get(own, 2.0), own))
            found[name] = tuple(order)
    return found


def has_categories(column: pd.Series) -> bool:
    """Return whether a column holds categories: of that type, or words and no number.

    Example:
        >>> [has_categories(pd.Series(own)) for own in (["cook", "clerk"], ["1", "a"])]
        [True, False]
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if not pd.api.types.is_string_dtype(column) and column.dtype != object:
        return False
    known = column.dropna()
    is_word = all(isinstance(own, str) for own in known)
    return is_word and not pd.to_numeric(known, errors="coerce").notna().any()


def as_codes(frame: pd.DataFrame, categories: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return a table whose categories are whole numbers, as `categories` orders them.

    A column that holds such numbers already stays as it is.

    Raises: ValueError: a column is missing, or somebody has another
        category.

    Example:
        >>> frame = pd.DataFrame({"job": ["cook", "clerk", "cook"]})
        >>> as_codes(frame, {"job": ("clerk", "cook")}).job.tolist()
        [1, 0, 1]
    """
    frame = frame.copy()
    for name, order in categories.items():
        column = _column(frame, name)
        if pd.api.types.is_numeric_dtype(column) and column.isin(range(len(order))).all():
            continue
        column = column.astype(str)
        checks.known(f"category of {name}:", column.unique(), order)
        frame[name] = column.map({own: i for i, own in enumerate(order)}).astype(int)
    return frame


def dummies(frame: pd.DataFrame, features: Sequence[str]) -> list[list[str]]:
    """Return groups of columns of 0 and 1 of which nobody has two, as get_dummies makes.

    Two that would be together in `EXPECTED` people, if they were
    independent, and are in nobody, belong to one group.

    Example:
        >>> frame = pd.get_dummies(pd.Series(["a", "b", "c"] * 30)).astype(int)
        >>> dummies(frame, ["a", "b", "c"])
        [['a', 'b', 'c']]
    """
    binary = [name for name in features if set(pd.unique(frame[name])) == {0, 1}]
    has = {name: frame[name].to_numpy(dtype=float) == 1 for name in binary}
    joined = {name: {name} for name in binary}
    for a, b in combinations(binary, 2):
        expected = has[a].mean() * has[b].sum()
        if expected >= EXPECTED and not (has[a] & has[b]).any():
            together = joined[a] | joined[b]
            joined |= dict.fromkeys(together, together)
    groups = {frozenset(own) for own in joined.values() if len(own) > 1}
    return sorted([name for name in binary if name in group] for group in groups)


def labels(frame: pd.DataFrame, label: str) -> np.ndarray:
    """Return whether each decision should be positive, bool with shape (N,).

    Raises: ValueError: there is no such column, or it holds something
        else than 0 and 1.

    Example:
        >>> labels(pd.DataFrame({"repaid": [1, 0]}), "repaid")
        array([ True, False])
    """
    if others := not_binary(_column(frame, label)):
        raise ValueError(
            f"The label {label!r} holds {others[:5]}: expected True or 1 where the "
            "decision should be positive, and False or 0 else, without gaps."
        )
    return frame[label].to_numpy(dtype=bool)


def not_binary(column: pd.Series) -> list[object]:
    """Return what a column holds that is neither 0 nor 1, each value once.

    Example:
        >>> not_binary(pd.Series([0, 1, 2, 2])), not_binary(pd.Series([[0], True]))
        ([2], [[0]])
    """
    try:
        found = pd.unique(column).tolist()
    except TypeError:  # lists, for instance of a Parquet file
        found = column.tolist()
    known = [
        pd.api.types.is_scalar(value) and not pd.isna(value) and value in (0, 1)
        for value in found
    ]
    return [value for value, is_known in zip(found, known, strict=True) if not is_known]


def graph(features: Sequence[str], edges: Edges) -> Graph:
    """Return the causal graph over these features, in their order.

    Raises: ValueError: an edge names an unknown feature, or there is
        a circle.

    Example:
        >>> graph(["age", "income"], {"income": ["age"]}).parents
        {'age': (), 'income': ('age',)}
        >>> graph(["age", "income"], [("age", "income")]).parents["income"]
        ('age',)
    """
    if isinstance(edges, Graph):
        return edges
    if isinstance(edges, Mapping):
        checks.known("effect among the edges:", edges, tuple(features))
        return Graph({name: edges.get(name, ()) for name in features})
    if not isinstance(edges, Iterable):
        raise ValueError(
            f"edges is {edges!r}: expected a dict effect -> causes, pairs (cause, "
            "effect), a frame with the columns cause and effect, or a Graph."
        )
    if isinstance(edges, pd.DataFrame):
        checks.known("column of the edges:", ("cause", "effect"), tuple(edges.columns))
        edges = zip(edges["cause"], edges["effect"], strict=True)
    return Graph.from_edges(features, edges)


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the one column of this name."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"Expected a pandas table, got {type(frame).__name__}: read the file first, "
            "for instance with pandas.read_csv."
        )
    if not isinstance(name, str):
        raise ValueError(
            f"{name!r} is no text: name the columns first, with frame.rename(columns=str)."
        )
    checks.known("column of the table:", [name], tuple(frame.columns))
    if isinstance(frame[name], pd.DataFrame):
        raise ValueError(f"The table has two columns {name!r}. Keep one.")
    return frame[name]


def is_whole(
    frame: pd.DataFrame, features: Sequence[str], whole: Sequence[str] | None
) -> np.ndarray:
    """Return which features are whole numbers, bool with shape (D,).

    Arguments:
        whole: Their names; None: columns of integers or bools.
    Raises: ValueError: one of them is no feature, or has fractions.

    Example:
        >>> frame = pd.DataFrame({"age": [30, 40], "income": [1.5, 2.0]})
        >>> is_whole(frame, ["age", "income"], None)
        array([ True, False])
    """
    if whole is None:
        return np.array([frame[name].dtype.kind in "iub" for name in features])
    checks.known("feature that is a whole number:", whole, tuple(features))
    for name in whole:
        if (frame[name] % 1 != 0).any():
            raise ValueError(f"{name} has fractions: leave it out of the whole numbers.")
    return np.array([name in whole for name in features])


def is_atom(
    features: Sequence[str], atoms: Sequence[str], is_whole: np.ndarray
) -> np.ndarray:
    """Return which features have an atom, bool with shape (D,).

    Arguments:
        atoms: Their names.
        is_whole: Which features are whole numbers, with shape (D,).
    Raises: ValueError: one of them is no feature, or a whole number.

    Example:
        >>> is_atom(["age", "savings"], ["savings"], np.array([True, False]))
        array([False,  True])
    """
    checks.known("feature with an atom:", atoms, tuple(features))
    has_atom = np.array([name in atoms for name in features])
    if (has_atom & is_whole).any():
        name = features[int((has_atom & is_whole).argmax())]
        raise ValueError(
            f"{name} is a whole number, and each of its values is spread already: leave "
            "it out of the atoms."
        )
    return has_atom


def spread_atoms(values: np.ndarray, is_atom: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return features whose atoms at an end of the range are spread beyond that end.

    Many people with exactly the same lowest (or highest) value have
    an infinite density there. They are spread evenly over `SPREAD`
    standard deviations beyond it. `Nearest` undoes that.

    Arguments:
        values: People, in the units of the data, with shape (N, D).
        is_atom: Which features have an atom, with shape (D,). It is
            at the end that more people share.
        noise: Between 0 and 1, with shape (N, D).
    Example:
        >>> savings = np.array([[0.0], [0.0], [30.0], [50.0]])
        >>> half = np.full((4, 1), 0.5)
        >>> spread_atoms(savings, np.array([True]), half).round(1).ravel().tolist()
        [-2.1, -2.1, 30.0, 50.0]
    """
    at_low, at_high = values == values.min(0), values == values.max(0)
    is_low = at_low.sum(0) >= at_high.sum(0)
    is_in = np.where(is_low, at_low, at_high) & is_atom
    width = np.where(is_low, -SPREAD, SPREAD) * values.std(0)
    return values + is_in * width * noise


@dataclass(frozen=True)
class Nearest:
    """Map features to the nearest that a person can have: some whole, all within a range.

    A gradient goes straight through the rounding, and ends where a
    value is brought into the range.

    Arguments:
        is_whole: Of each feature, bool with shape (D,).
        low, high: Ends of each feature's range, in the units of the
            data, with shape (D,).

    Example:
        >>> seen = np.array([[0.0, 0.0], [9.0, 1.0]])
        >>> nearest = Nearest.of(seen, np.array([True, False]))
        >>> nearest(torch.tensor([[3.7, 0.3], [12.0, -1.0]]))
        tensor([[4.0000, 0.3000],
                [9.0000, 0.0000]])
    """

    is_whole: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, seen: np.ndarray, is_whole: np.ndarray) -> "Nearest":
        """Return the map whose range is that of the people seen, with shape (N, D).

        Example:
            >>> Nearest.of(np.array([[0.0], [9.0]]), np.array([True])).high
            tensor([9.], dtype=torch.float64)
        """
        low, high = torch.from_numpy(seen.min(0)), torch.from_numpy(seen.max(0))
        return cls(torch.from_numpy(is_whole), low, high)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the nearest possible features (*, D), in the units of the data."""
        straight = x.detach().round() + (x - x.detach())
        nearest = torch.where(self.is_whole, straight, x)
        return nearest.clamp(self.low.to(x), self.high.to(x)) + 0.0  # -0 becomes 0
