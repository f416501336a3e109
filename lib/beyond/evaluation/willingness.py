"""What 362 people were shown, as far as it is printed, and SIMULATED answers to it.

In the study each person saw five changed profiles, and rated on seven
points whether a change is a reasonable explanation (acceptance) and
whether they would carry it out (action). Their answers are not
public. So here are the design of the study, a family of curves of
rating against number of changes, and answers drawn from them.

Source: Tominaga, Yamashita and Kurashima, Reassessing Evaluation
Functions in Algorithmic Recourse (IJCAI 2024), called the study.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib import checks
from lib.beyond.evaluation.tominaga import N_PEOPLE, N_REMOVED

LOWEST, HIGHEST = 1, 7  # of the scale; 4 is neutral
MOST_SHOWN = 14  # changes of a profile of 16 items that a drawn pool shows at most
MOST_QUOTED = 12  # changes of a plan in the study's quotes
FIRST, LAST = 1.0, 9.0  # changes between which a curve falls by its amplitude
SPARSEST = (0.2, 0.3, 0.3, 0.2)  # shares of sparsest plans with 1, 2, 3 and 4 changes
FEW_OF_ONE = (0.05, 0.2, 0.4, 0.35)  # the same, with few plans of one change


@dataclass(frozen=True)
class Pool:
    """Where the three plans come from that a person saw at random.

    The study does not print how many changes its plans had. Those of
    a pool are normal, rounded, and not fewer than the sparsest plan's.

    Arguments:
        mean, sd: Of the number of changes in the pool.
        sparsest: Shares of people whose sparsest plan has 1, 2, 3 and
            4 changes; they sum to one.
    """

    mean: float
    sd: float
    sparsest: tuple[float, ...] = SPARSEST

    def draw(
        self,
        rng: np.random.Generator,
        n_people: int = N_PEOPLE,
        n_removed: int = N_REMOVED,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of changes, and to whom they were shown, a row each.

        Five for each person: the sparsest plan (1 to 4 changes), the
        one nearest by proximity (up to 3 more), and three of the
        pool. Then n_removed answers are removed, with chances
        proportional to the number of changes, as any of them may be
        impossible.
        """
        sparsest = 1 + rng.choice(4, n_people, p=self.sparsest)
        nearest = sparsest + rng.choice(4, n_people, p=[0.4, 0.3, 0.2, 0.1])
        others = np.rint(rng.normal(self.mean, self.sd, (n_people, 3)))
        others = others.clip(sparsest[:, None], MOST_SHOWN)
        x = np.column_stack([sparsest, nearest, others]).astype(float).ravel()
        people = np.repeat(np.arange(n_people), 5)
        removed = rng.choice(len(x), n_removed, replace=False, p=x / x.sum())
        return np.delete(x, removed), np.delete(people, removed)


# With these the standard errors of models 1 and 3 come out within two percent of those
# printed, in the mean over draws (`refits.read_backwards`), and there are plans with as
# many changes as those of the study's quotes.
POOLS = {
    "low": Pool(5.0, 2.4),
    "middle": Pool(6.0, 1.8),
    "high": Pool(7.0, 2.4, FEW_OF_ONE),
    "highest": Pool(8.0, 1.8, FEW_OF_ONE),
}


def _later(share: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return an elbow at 3, with a share of the fall on a line from 1 to 9."""
    return lambda x: (1 - share) * np.maximum(3 - x, 0) / 2 + share * (9 - x) / 8


# how ratings may fall with the number of changes; the scale of each does not matter
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "elbow at 3": lambda x: np.maximum(3 - x, 0),
    "elbow at 3.5": lambda x: np.maximum(3.5 - x, 0),
    "elbow at 4": lambda x: np.maximum(4 - x, 0),
    "elbow at 5": lambda x: np.maximum(5 - x, 0),
    "elbow at 3, 1/4 later": _later(1 / 4),
    "elbow at 3, 1/2 later": _later(1 / 2),
    "elbow at 3, 3/4 later": _later(3 / 4),
    "exp(-(x-1)/1)": lambda x: np.exp(-(x - 1)),
    "exp(-(x-1)/1.5)": lambda x: np.exp(-(x - 1) / 1.5),
    "exp(-(x-1)/2)": lambda x: np.exp(-(x - 1) / 2),
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
    first, last = SHAPES[shape](np.array([FIRST, LAST]))
    return (SHAPES[shape](x) - last) / (first - last)


@dataclass(frozen=True)
class Latent:
    """What answers are drawn from, in points of the scale.

    The answer of person u to a plan with x changes is
    mean + amplitude (f(x) - f_0) + b_u + c_u x + e, with f a curve of
    the family and f_0 its mean over the plans shown.

    Arguments:
        mean: Of all answers, before they are rounded.
        between, slope, error: Standard deviations of b, c and e.
        amplitude: By how much the curve falls from 1 change to 9.
        shape: A key of `SHAPES`, or `FLAT`.
    """

    mean: float
    between: float
    slope: float
    error: float
    amplitude: float
    shape: str

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
        x: Of plans of ours.
    Raises: ValueError: as for `curve`; a plan has more changes than
        any that the study quotes.
    Example:
        >>> shown = np.arange(1.0, 10.0)
        >>> predicted("line", 0.8, 2.6, shown, np.array([1.0, 5.0])).round(2)
        array([3. , 2.6])
    """
    x = np.asarray(x, dtype=float)
    if (x > MOST_QUOTED).any():
        raise ValueError(
            f"A plan has {x.max():g} changes, expected 1 to {MOST_QUOTED}, as in the plans "
            "that the study quotes: its curve says nothing of more."
        )
    return anchor + amplitude * (curve(shape, x) - curve(shape, shown).mean())
