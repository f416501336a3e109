"""Social burden: what a decision asks of a whole group, refused and accepted together.

A mean cost of recourse is over refused people. If one group is
refused twice as often, equal means still ask twice as much of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import checks
from lib.paper.fairness.bootstrap import Groups, Question, check_groups
from lib.paper.fairness.measures import Mean

PARTS = ("refused", "mean cost", "burden")


@dataclass(frozen=True)
class Burden:
    r"""Social burden of a group: how often it is refused, times what recourse costs it.

    .. math:: b_g = P(\text{refused} \mid g) \cdot
              E[\text{cost} \mid \text{refused, recourse exists}, g]

    Whoever is refused and has no recourse bears more than any number;
    count them beside it. Milli et al. and MISOB count only people who
    should be accepted (whose label is positive): hand over groups of
    these.

    Arguments:
        is_refused: Of N applicants, with shape (N,).
        cost: Mean cost of those who have recourse, over the same N
            applicants (see `spread`).
    Raises: ValueError: is_refused is no mask of these applicants, or
        somebody is counted who is not refused.
    Source: Milli et al., The Social Cost of Strategic Classification,
        2019; Barrainkua et al., Who Pays for Fairness? Rethinking
        Recourse under Social Burden, arXiv:2509.04128 (MISOB).

    Example:
        Four applicants, two refused, whose recourse costs 0.1 and
        0.3; then the same mean cost with one refused:

        >>> cost = Mean(np.array([[0.1, 0.3, 0, 0]]), np.array([[1.0, 1, 0, 0]]))
        >>> burden = Burden(np.array([True, True, False, False]), cost)
        >>> burden(np.arange(4)).round(3)
        array([[0.1]])
    """

    is_refused: np.ndarray
    cost: Mean

    def __post_init__(self) -> None:
        n_people = self.cost.total.shape[1]
        if self.is_refused.dtype != bool or self.is_refused.shape != (n_people,):
            raise ValueError(
                f"is_refused is of {self.is_refused.dtype} with shape "
                f"{self.is_refused.shape}: expected a mask of {n_people} applicants."
            )
        if (self.cost.counted[:, ~self.is_refused] > 0).any():
            raise ValueError(
                "The cost counts somebody who is not refused. Were the refused people "
                "spread over the right rows of the applicants?"
            )

    def __call__(self, who: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """Return each network's burden of a group, (R, M); arguments as for `Mean`."""
        return self.part("burden", who, counts)

    def part(
        self, name: str, who: np.ndarray, counts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return one of `PARTS` of a group for each network, with shape (R, M)."""
        checks.one_of("part", [name], PARTS)
        if counts is None:
            counts = np.ones((1, len(who)))
        rate = (counts @ self.is_refused[who] / counts.sum(1))[:, None]
        if name == "refused":
            return np.broadcast_to(rate, (len(rate), len(self.cost.total)))
        cost = self.cost(who, counts)
        return cost if name == "mean cost" else rate * cost

    def n_counted(self, name: str, who: np.ndarray) -> int:
        """Return how many of a group one of `PARTS` is over.

        Shares refused are of everybody, the others of those who have
        recourse.
        """
        checks.one_of("part", [name], PARTS)
        return len(who) if name == "refused" else self.cost.n_counted(who)


def spread(mean: Mean, rows: np.ndarray, n_people: int) -> Mean:
    """Return a mean over some people as one over all, of whom the others don't count.

    Arguments:
        mean: Over n people.
        rows: Their row numbers among all, with shape (n,).
        n_people: How many there are in all.
    Raises: ValueError: there is no row for each of them.

    Example:
        >>> mean = Mean(np.array([[0.2, 0.4]]), np.array([[1.0, 1.0]]))
        >>> spread(mean, np.array([2, 0]), 3).total
        array([[0.4, 0. , 0.2]])
    """
    n_counted = mean.total.shape[1]
    check_groups({"rows": rows}, n_people)
    if len(rows) != n_counted or len(set(rows.tolist())) != n_counted:
        raise ValueError(
            f"Expected {n_counted} different rows, one for each person of the mean, got "
            f"{len(set(rows.tolist()))}."
        )
    total = np.zeros((len(mean.total), n_people))
    counted = np.zeros_like(total)
    total[:, rows], counted[:, rows] = mean.total, mean.counted
    return Mean(total, counted, mean.reported)


def ratios(
    row: dict[str, Any], burden: Burden, groups: Groups, pair: tuple[str, str]
) -> list[Question]:
    """Return the questions for the ratio of two groups in each of `PARTS`.

    The ratio of the burdens is the product of the two others. Shares
    refused are of all applicants, the other parts of those who have
    recourse; the smaller group's number is the n_counted of a row.

    Arguments:
        row: What their rows say already.
        groups: Row numbers of applicants.
        pair: The two groups; the first is divided by the second.
    Raises: ValueError: a group is unknown, empty or no row numbers.
    """
    checks.one_of("group", pair, tuple(groups))
    check_groups(groups, len(burden.is_refused))
    asked = []
    for name in PARTS:
        n_counted = min(burden.n_counted(name, groups[group]) for group in pair)

        def statistic(*counts: np.ndarray, name: str = name) -> np.ndarray:
            first, second = (
                burden.part(name, groups[group], count)
                for group, count in zip(pair, counts, strict=True)
            )
            return first / second

        about = row | {"part": name, "kind": "ratio", "n_counted": n_counted}
        reported = burden.cost.reported
        asked.append(Question(about, tuple(pair), statistic, True, reported))
    return asked
