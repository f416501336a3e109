"""Who is compared with whom in section 5.5, and what each of them can act on.

Gender is a feature of Loan; race is drawn, independent of everything.
A scenario says how many features people can act on, and who is
privileged. Another assumption is another `Scenario`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.method.data import Population
from lib.method.preferences import Preferences
from lib.method.samplers import permutation_probabilities

LABELS = {"gender": ("women", "men"), "race": ("white", "non-white")}
TOP = 0.75  # the share of people below the top quarter of income


def draw_people(
    population: Population, refused: Tensor, seed: int
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return rows of refused people that make four equally large cells, and their labels.

    A cell is a gender with a race. Chance decides who is left out, and
    who is of which race.

    Arguments:
        population: Of Loan.
        refused: Standardised features of N people, with shape (N, D).
        seed: Of who is left out and of race.
    Returns: Row numbers with shape (n,), ascending, and the columns
        gender, race and income (whether in the top quarter of the
        refused).
    Raises: ValueError: there are too few people for one in each cell.
    """
    values = population.inverse_transform(refused).double().numpy()
    income = values[:, population.features.index("income")]
    gender = np.where(
        values[:, population.features.index("gender")] < 0.5, *LABELS["gender"]
    )
    size = min((gender == label).sum() for label in LABELS["gender"]) // 2
    if size == 0:
        raise ValueError(
            f"Of {len(refused):,} refused people too few are women, or men, for two cells. "
            "Draw more people."
        )
    rng = np.random.default_rng(seed)
    race = pd.Series(dtype=object)
    for label in LABELS["gender"]:
        stay = rng.permutation(np.flatnonzero(gender == label))[: 2 * size]
        race = pd.concat([race, pd.Series([*LABELS["race"]] * size, index=stay)])
    race = race.sort_index()
    rows = race.index.to_numpy(copy=True)
    labels = pd.DataFrame({"gender": gender[rows], "race": race.to_numpy()})
    is_top = income[rows] >= np.quantile(income, TOP)
    labels["income"] = np.where(is_top, "top quarter", "lower income")
    return rows, labels


def members(labels: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the row numbers of the people in each group: by gender, race, and cell.

    Example:
        >>> labels = pd.DataFrame({"gender": ["women", "men"], "race": ["white"] * 2})
        >>> rows = members(labels)
        >>> rows["white"], rows["white men"]
        (array([0, 1]), array([1]))
    """
    groups = {
        label: np.flatnonzero(labels[name] == label)
        for name, both in LABELS.items()
        for label in both
    }
    for gender, race in product(*LABELS.values()):
        groups[f"{race} {gender}"] = np.intersect1d(groups[gender], groups[race])
    return groups


@dataclass(frozen=True)
class Scenario:
    """What people can act on: everyone the same number of features, drawn by privilege.

    Arguments:
        n_actionable: How many features each person can act on.
        by: Column of labels that privilege follows; "": nobody is
            privileged, and all sets of so many features are alike.
        rates: Share of each of its labels that is privileged.
    Raises: ValueError: a rate is outside of [0, 1].
    Source: section 5.5 and appendix B of arXiv:2604.08030. The paper
        draws once for each person; `chances` are of all draws.
    """

    n_actionable: int
    by: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(
                    f"The rate of {label!r} is {rate!r}: expected the share of them that "
                    "is privileged, from 0 to 1."
                )

    def share_privileged(self, labels: pd.DataFrame) -> np.ndarray:
        """Return how likely each person is to be privileged, with shape (N,)."""
        if not self.by:
            return np.zeros(len(labels))
        return np.array([self.rates[label] for label in labels[self.by]], dtype=float)

    def chances(self, features: Sequence[str], labels: pd.DataFrame) -> pd.DataFrame:
        """Return how likely each person is to be able to act on just these features.

        The chances are over all draws of privilege and of rankings.

        Arguments:
            features: Names of the K actionable features.
            labels: As `draw_people` gives them.
        Returns: A row for each person, a column for each set that
            anyone may have (see `sets`); rows sum to 1.

        Example:
            >>> features = ("loan_amount", "loan_duration", "income", "savings")
            >>> scenario = Scenario(1, "race", {"white": 1.0, "non-white": 0.0})
            >>> labels = pd.DataFrame({"race": ["white", "non-white"]})
            >>> scenario.chances(features, labels).round(2)
               loan_amount  loan_duration  income  savings
            0          0.0            0.0     0.5      0.5
            1          0.5            0.5     0.0      0.0
        """
        drawn = {"uniform": np.ones(len(labels))}
        if self.by:
            share = self.share_privileged(labels)
            drawn = {"non_privileged": 1 - share, "privileged": share}
        names = list(sets(features, self.n_actionable))
        total = pd.DataFrame(0.0, index=range(len(labels)), columns=names)
        for distribution, weight in drawn.items():
            rankings, probabilities = permutation_probabilities(distribution, features)
            for ranking, probability in zip(rankings, probabilities, strict=True):
                name = _name(features, ranking <= self.n_actionable)
                total[name] += weight * probability
        return total.loc[:, (total > 0).any()]


SCENARIOS = {
    "baseline": Scenario(4),  # [P], as the three below
    "random": Scenario(2, "gender", {"women": 0.5, "men": 0.5}),  # the coin is [R]
    # that the quarter is of the refused is [R]
    "income": Scenario(2, "income", {"lower income": 0, "top quarter": 1}),
    "race": Scenario(2, "race", {"white": 0.9, "non-white": 0.05}),
}


def sets(features: Sequence[str], size: int) -> dict[str, Tensor]:
    """Return all sets of so many features, as masks with shape (K,), by their names.

    Example:
        >>> for name, mask in sets(("income", "savings"), 1).items():
        ...     print(name, mask.tolist())
        income [True, False]
        savings [False, True]
    """
    masks = [
        [name in chosen for name in features] for chosen in combinations(features, size)
    ]
    return {_name(features, mask): torch.tensor(mask) for mask in masks}


def preferences_by_set(
    features: Sequence[str], names: Sequence[str], n_people: int
) -> dict[str, Preferences]:
    """Return for each set preferences of people who can act on just its features.

    Arguments:
        features: Names of the K actionable features.
        names: Of the sets, as `sets` names them.
        n_people: How many people; all are alike.
    """
    sizes = range(1, len(features) + 1)
    masks = {name: mask for size in sizes for name, mask in sets(features, size).items()}
    return {name: Preferences.from_mask(masks[name].expand(n_people, -1)) for name in names}


def _name(features: Sequence[str], mask: Sequence[bool] | np.ndarray) -> str:
    """Return the name of a set of features, for instance "income, savings"."""
    return ", ".join(name for name, is_in in zip(features, mask, strict=True) if is_in)
