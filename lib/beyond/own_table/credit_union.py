"""A simulated table of past applicants, whose equations are known.

It looks as tables do: whole numbers, skewed amounts of money, many
people without any savings, a group that the bank does not see, and a
column that was made after the decision. The noise behind a person
can't be read off such a table, since whole numbers and zeros hide it.
Here it is drawn again from the same seed, so that what would follow
from an action is known exactly.

`python lib/beyond/own_table/credit_union.py` writes data/credit_union.csv.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib import checks
from lib.io import DATA

FILE = DATA / "credit_union.csv"
N_PEOPLE, SEED = 4_000, 0  # of the table in the repository
LABEL, GROUP = "repaid", "origin"
KINDS = {
    "age": "immutable",
    "job_years": "immutable",
    "income": "actionable",
    "cards": "actionable",
    "savings": "actionable",
    "debt": "mutable",
    "amount": "actionable",
}
EDGES = {
    "job_years": ["age"],
    "income": ["age", "job_years"],
    "cards": ["income"],
    "savings": ["age", "income"],
    "debt": ["income", "cards", "savings"],
    "amount": ["income"],
}


def draw(n_people: int = N_PEOPLE, seed: int = SEED) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table of past applicants, and the noise behind each of them.

    Arguments:
        n_people: How many.
        seed: Of all draws.
    Returns: The table: person, origin, the features of `KINDS` (age
        and job_years in years; cards a number; income in dollars a
        month; savings, debt, amount in dollars), reminders (sent
        after the loan was paid out), repaid (0 or 1). The noise, a
        column a feature.
    Raises: ValueError: n_people is no whole number above zero.
    """
    checks.positive_int(n_people=n_people)
    rng = np.random.default_rng(seed)
    has_moved = rng.random(n_people) < 0.3
    noise = pd.DataFrame(
        {
            "age": rng.beta(1.5, 2.5, n_people),
            "job_years": rng.beta(1.0, 2.2, n_people) * np.where(has_moved, 0.6, 1.0),
            "income": 0.32 * rng.standard_normal(n_people) - 0.15 * has_moved,
            "cards": 1.1 * rng.standard_normal(n_people),
            "savings": rng.gamma(1.5, 2_600.0, n_people),
            "debt": 0.5 * rng.standard_normal(n_people),
            "amount": 0.45 * rng.standard_normal(n_people),
        }
    )
    nobody_acts = np.zeros(noise.shape, dtype=bool)
    features = counterfactual(noise, nobody_acts, np.zeros(noise.shape))
    repaid = rng.random(n_people) < chance(features)
    people = pd.DataFrame({"person": [f"A{i:04d}" for i in range(n_people)]})
    people[GROUP] = np.where(has_moved, "moved here", "born here")
    people = people.join(features)
    people["reminders"] = rng.poisson(np.where(repaid, 0.03, 4.0))
    people[LABEL] = repaid.astype(int)
    return people, noise


def counterfactual(
    noise: pd.DataFrame, is_acted: np.ndarray, values: np.ndarray
) -> pd.DataFrame:
    """Return what each person looks like after an action, by the true equations.

    Arguments:
        noise: As `draw` gives it, N rows.
        is_acted: Which features each person acts on, bool with shape
            (N, D), in the order of `KINDS`.
        values: To what they set them, in the units of the table, with
            shape (N, D).
    Returns: The features, N rows.
    Raises: ValueError: columns or shapes do not fit.
    Example:
        With 1,000 dollars a month more, savings follow:

        >>> people, noise = draw(3)
        >>> before = people[list(KINDS)]
        >>> acts = np.array([[name == "income" for name in KINDS]] * 3)
        >>> after = counterfactual(noise, acts, before.to_numpy() + 1_000)
        >>> (after - before).loc[1, ["age", "income", "savings"]].tolist()
        [0, 1000, 900]
    """
    checks.one_of("column of the noise:", KINDS, tuple(noise.columns))
    shape = (len(noise), len(KINDS))
    for name, array in (("is_acted", is_acted), ("values", values)):
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, expected {shape}.")
    x: dict[str, np.ndarray] = {}
    for j, name in enumerate(KINDS):  # causes stand before their effects
        follows = _follows(name, x, noise[name].to_numpy())
        x[name] = np.where(is_acted[:, j], values[:, j], follows)
    after = pd.DataFrame(x, index=noise.index)
    return after.astype(int) if (after % 1 == 0).all(axis=None) else after


def chance(x: pd.DataFrame) -> np.ndarray:
    """Return each person's true chance of paying the loan back, with shape (N,).

    Arguments:
        x: The features, a row a person.
    Example:
        With 500 dollars of savings, and with 10,000:

        >>> person = {"job_years": 5, "income": 2_000, "cards": 1, "debt": 600}
        >>> x = pd.DataFrame([person] * 2).assign(savings=[500, 10_000], amount=6_000)
        >>> chance(x).round(2)
        array([0.67, 0.93])
    """
    score = (
        1.0
        + 2.0 * np.log(x["income"] / 2_300)
        + 1.5e-4 * x["savings"]
        - 1.6 * np.log(x["amount"] / 6_000)
        - 5e-4 * x["debt"]
        + 0.05 * x["job_years"]
        - 0.2 * x["cards"]
    )
    return (1 / (1 + np.exp(-1.3 * score))).to_numpy()


def _follows(name: str, x: Mapping[str, np.ndarray], u: np.ndarray) -> np.ndarray:
    """Return a feature as its causes and its noise make it, in whole units."""
    match name:
        case "age":
            return np.floor(20 + 55 * u)
        case "job_years":
            return np.floor((x["age"] - 18) * u)
        case "income":
            seniority = 0.02 * np.minimum(x["job_years"], 25) + 0.004 * (x["age"] - 20)
            return 10 * np.round(150 * np.exp(seniority + u))
        case "cards":
            return np.floor(np.maximum(0.5 + x["income"] / 1_500 + u, 0))
        case "savings":
            on_average = 0.9 * x["income"] + 40 * (x["age"] - 20) - 4_500
            return 10 * np.round(np.maximum(on_average + u, 0) / 10)
        case "debt":
            load = 0.25 * x["cards"] + 1.5e-4 * x["income"] - 4e-5 * x["savings"]
            return 10 * np.round(40 * np.exp(load + u))
        case _:  # the amount
            return 100 * np.round(48 * np.exp(1.2e-4 * x["income"] + u))


def write() -> None:
    """Write the table of the repository, data/credit_union.csv."""
    draw()[0].to_csv(FILE, index=False, lineterminator="\n")


if __name__ == "__main__":
    write()
