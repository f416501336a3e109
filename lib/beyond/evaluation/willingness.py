"""What people answered about recourse, and answers SIMULATED to fit what was printed of it.

In the study 362 people each saw five changed profiles, and rated on
seven points whether a change is a reasonable explanation (acceptance)
and whether they would carry it out (action). Their answers are not
public. So here are the design of the study, as far as it is told, a
family of curves of rating against number of changes, and answers
drawn from them.

Source: Tominaga, Yamashita and Kurashima, Reassessing Evaluation
Functions in Algorithmic Recourse (IJCAI 2024), called the study.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib import checks, io

N_PEOPLE, N_REMOVED = 362, 72  # people, and answers removed: a change was impossible
LOWEST, HIGHEST = 1, 7  # of the scale; 4 is neutral
MOST_SHOWN = 14  # changes of a profile of 16 items that a drawn pool shows at most
MOST_QUOTED = 12  # changes of a plan in the study's quotes
FIRST, LAST = 1.0, 9.0  # changes between which a curve falls by its amplitude
SPARSEST = (0.2, 0.3, 0.3, 0.2)  # shares of sparsest plans with 1, 2, 3 and 4 changes
FEW_OF_ONE = (0.05, 0.2, 0.4, 0.35)  # the same, with few plans of one change

ANSWERS = "ICARMA_TOMINAGA_CSV"  # environment variable: where the study's answers lie
COLUMNS = ("uid", "sparsity", "proximity", "acceptance", "action")
HOW_TO_GET_THEM = (
    "The study's answers are not public: its authors give them on reasonable request "
    f"(appendix D). Set {ANSWERS} to a csv with the columns {', '.join(COLUMNS)}."
)


@dataclass(frozen=True)
class Pool:
    """Hold where the three plans come from that a person saw at random.

    The study does not print how many changes its plans had. Those of
    a pool are normal, rounded, and not fewer than the sparsest plan's.

    Arguments:
        mean, sd: Of the number of changes in the pool.
        sparsest: Shares of people whose sparsest plan has 1, 2, 3 and
            4 changes; they sum to one.
    Raises: ValueError: mean or sd is not above zero, or the shares
        are none.
    """

    mean: float
    sd: float
    sparsest: tuple[float, ...] = SPARSEST

    def __post_init__(self) -> None:
        checks.positive(mean=self.mean, sd=self.sd)
        shares = np.array(self.sparsest)
        if len(shares) != 4 or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-9:
            raise ValueError(
                f"sparsest must be four shares that sum to one, got {self.sparsest}."
            )

    def drawn(
        self,
        rng: np.random.Generator,
        n_people: int = N_PEOPLE,
        n_removed: int = N_REMOVED,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of changes, and to whom they were shown, a row each.

        Five for each person: the sparsest plan (1 to 4 changes), the
        one nearest by proximity (up to 3 more), and three of the
        pool. Then answers are removed, with chances proportional to
        the number of changes, as any of them may be impossible.

        Arguments:
            n_people: Who answer.
            n_removed: Answers removed.
        Raises: ValueError: there is nobody, or nothing would be left.
        """
        checks.positive_int(n_people=n_people)
        if not 0 <= n_removed < 5 * n_people:
            raise ValueError(
                f"n_removed is {n_removed}, expected 0 to {5 * n_people - 1}: each of "
                f"{n_people} people gives five answers."
            )
        sparsest = 1 + rng.choice(4, n_people, p=self.sparsest)
        nearest = sparsest + rng.choice(4, n_people, p=[0.4, 0.3, 0.2, 0.1])
        others = np.rint(rng.normal(self.mean, self.sd, (n_people, 3)))
        others = others.clip(sparsest[:, None], MOST_SHOWN)
        x = np.column_stack([sparsest, nearest, others]).astype(float).ravel()
        people = np.repeat(np.arange(n_people), 5)
        removed = rng.choice(len(x), n_removed, replace=False, p=x / x.sum())
        kept = np.delete(np.arange(len(x)), removed)
        return x[kept], people[kept]


# With these the standard errors of models 1 and 3 come out within two percent of those
# printed, in the mean over draws (`refits.read_backwards`), and there are plans with as
# many changes as those of the study's quotes.
POOLS = {
    "low": Pool(5.0, 2.4),
    "middle": Pool(6.0, 1.8),
    "high": Pool(7.0, 2.4, FEW_OF_ONE),
    "highest": Pool(8.0, 1.8, FEW_OF_ONE),
}


def _elbow(at: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.maximum(at - x, 0)


def _decay(over: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.exp(-(x - 1) / over)


def _later(share: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: (1 - share) * np.maximum(3 - x, 0) / 2 + share * (9 - x) / 8


# how ratings may fall with the number of changes; the scale of each does not matter
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elbow at 3": _elbow(3.0),
    "elbow at 3.5": _elbow(3.5),
    "elbow at 4": _elbow(4.0),
    "elbow at 5": _elbow(5.0),
    "elbow at 3, 1/4 later": _later(1 / 4),  # of the fall, on a line from 1 to 9
    "elbow at 3, 1/2 later": _later(1 / 2),
    "elbow at 3, 3/4 later": _later(3 / 4),
    "exp(-(x-1)/1)": _decay(1.0),
    "exp(-(x-1)/1.5)": _decay(1.5),
    "exp(-(x-1)/2)": _decay(2.0),
    "1/x": lambda x: 1 / x,
    "line": lambda x: -x,
}
MIDDLE = "elbow at 3.5"  # from the middle of what fits the print
FLAT = "flat"  # no curve at all


def curve(shape: str, x: np.ndarray) -> np.ndarray:
    """Return a curve of the family, scaled to fall by 1 from 1 change to 9, the shape kept.

    Arguments:
        shape: A key of `SHAPES`, or `FLAT`, which is 0.
        x: Numbers of changes, 1 or more.
    Raises: ValueError: the shape is unknown, or a number is below 1.
    Example:
        >>> curve("elbow at 3", np.array([1.0, 2.0, 3.0, 9.0])).tolist()
        [1.0, 0.5, 0.0, 0.0]
        >>> curve("line", np.array([1.0, 5.0, 9.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    checks.one_of("shape", [shape], (*SHAPES, FLAT))
    x = np.asarray(x, dtype=float)
    if (x < 1).any():
        raise ValueError(
            f"Curves begin at 1 change, got {x.min():g}: leave out people for whom "
            "nothing changes."
        )
    if shape == FLAT:
        return np.zeros_like(x)
    raw = SHAPES[shape]
    first, last = raw(np.array([FIRST, LAST]))
    return (raw(x) - last) / (first - last)


@dataclass(frozen=True)
class Latent:
    """Hold what answers are drawn from, in points of the scale.

    The answer of person u to a plan with x changes is
    mean + amplitude (f(x) - f_0) + b_u + c_u x + e, with f a curve of
    the family and f_0 its mean over the plans shown.

    Arguments:
        mean: Of all answers, before they are rounded.
        between, slope, error: Standard deviations of b, c and e.
        amplitude: By how much the curve falls from 1 change to 9.
        shape: A key of `SHAPES`, or `FLAT`.
    Raises: ValueError: a standard deviation is negative, the error's
        is zero, or the shape is unknown.
    """

    mean: float
    between: float
    slope: float
    error: float
    amplitude: float
    shape: str

    def __post_init__(self) -> None:
        if not (self.between >= 0 and self.slope >= 0 and self.error > 0):
            raise ValueError(
                "between, slope and error are standard deviations: expected 0 or more, and "
                f"an error above 0; got {self.between}, {self.slope} and {self.error}."
            )
        checks.one_of("shape", [self.shape], (*SHAPES, FLAT))

    def answers(
        self,
        x: np.ndarray,
        people: np.ndarray,
        rng: np.random.Generator,
        is_rounded: bool = True,
    ) -> np.ndarray:
        """Return SIMULATED answers, a number each.

        Arguments:
            x: Numbers of changes.
            people: To whom they were shown: 0, 1, ...
            is_rounded: Whether answers are whole points from 1 to 7,
                as on the study's scale; else any number.
        """
        n_people = int(people.max()) + 1
        b = rng.normal(0, self.between, n_people)[people]
        c = rng.normal(0, self.slope, n_people)[people]
        error = rng.normal(0, self.error, len(x))
        f = curve(self.shape, x)
        y = self.mean + self.amplitude * (f - f.mean()) + b + c * x + error
        return np.rint(y).clip(LOWEST, HIGHEST) if is_rounded else y


def predicted(
    shape: str, amplitude: float, anchor: float, shown: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return the mean rating of plans with so many changes, if the curve carried over.

    Only differences between plans mean anything: everybody is
    anchored at the study's mean.

    Arguments:
        shape: A key of `SHAPES`.
        amplitude: By how much the curve falls from 1 change to 9.
        anchor: The study's mean rating.
        shown: Numbers of changes of the study's plans.
        x: Of plans of ours; NaN, for nobody, stays NaN.
    Raises: ValueError: as for `curve`; a plan has more changes than
        any that the study quotes.
    Example:
        >>> shown = np.arange(1.0, 10.0)
        >>> predicted("line", 0.8, 2.6, shown, np.array([1.0, 5.0, np.nan])).round(2)
        array([3. , 2.6, nan])
    """
    x = np.asarray(x, dtype=float)
    if (x > MOST_QUOTED).any():
        raise ValueError(
            f"A plan has {np.nanmax(x):g} changes, expected 1 to {MOST_QUOTED}, as in the "
            "plans that the study quotes: its curve says nothing of more. Leave such plans "
            "out."
        )
    known = ~np.isnan(x)
    rating = np.full(x.shape, np.nan)
    f_0 = curve(shape, shown).mean()
    rating[known] = anchor + amplitude * (curve(shape, x[known]) - f_0)
    return rating


def find_answers() -> Path | None:
    """Return where the study's answers lie, or None where nobody has them.

    Raises: ValueError: the environment variable names no file.
    """
    name = os.environ.get(ANSWERS, "")
    if not name:
        return None
    path = Path(name)
    if not path.is_file():
        raise ValueError(
            f"{ANSWERS} is {name!r}, and there is no such file. {HOW_TO_GET_THEM}"
        )
    return path


def read_answers(path: Path) -> pd.DataFrame:
    """Return the study's answers, a row each, with the columns `COLUMNS`.

    Arguments:
        path: Of a csv file.
    Raises: ValueError: a column is missing, a person or a number is,
        a rating is off the scale of 1 to 7, or a distance is below 0.
    """
    table = io.read_csv(path, COLUMNS)[list(COLUMNS)]
    _check_cells(path, table[["uid"]].isna(), "is missing: whose answer is it?")
    numbers = table[list(COLUMNS[1:])].apply(pd.to_numeric, errors="coerce").astype(float)
    _check_cells(path, ~np.isfinite(numbers), "is not a finite number")
    ratings = numbers[["acceptance", "action"]]
    is_off = (ratings < LOWEST) | (ratings > HIGHEST)
    _check_cells(path, is_off, f"is off the scale of {LOWEST} to {HIGHEST}")
    _check_cells(path, numbers[["sparsity", "proximity"]] < 0, "is a distance below 0")
    return table.assign(**numbers)


def _check_cells(path: Path, is_wrong: pd.DataFrame, why: str) -> None:
    """Raise ValueError for the first cell that is wrong, and say how many there are."""
    for name in is_wrong:
        rows = np.flatnonzero(is_wrong[name])
        if len(rows):
            raise ValueError(
                f"{path.name}, line {rows[0] + 2}: {name} {why} ({len(rows)} such lines). "
                "Mend or drop them."
            )
