"""Which settings? Our own rule, and what calibration can and can't show."""

import functools

import numpy as np
import pandas as pd

from exercises.checking import Key, choice, key
from exercises.keys import applied, place_by_place
from lib import io
from lib.io import PARAMS
from lib.paper import calibration, choosing

READING = ["plausibility", "bank", "prior", "p_max", "p_min", "width"]
READING += ["learning_rate", "weight_decay"]
N_PEOPLE, SPREAD = 2_400, 0.011  # of a cell, and of a network

# five people: who is helped, what they pay, and the least that they could pay
HELPED = np.array([True, True, True, False, False])
PAID = np.array([0.02, 0.08, 0.04, 0.05, 0.01])
LEAST = np.array([0.02, 0.03, 0.05, 0.04, np.inf])


@functools.cache
def trials() -> pd.DataFrame:
    """Return the candidates of our own rule for both ways of asking, a row each."""
    tables = [PARAMS / f"chosen_{way}_trials.csv" for way in ("ranking", "score")]
    return pd.concat([pd.read_csv(path) for path in tables], ignore_index=True)


@functools.cache
def first_round() -> pd.DataFrame:
    """Return the candidates of the first round for rankings and the linear profile."""
    linear_rankings = trials().query("search == 'ranking' and profile == 'linear'")
    return linear_rankings[linear_rankings["round"] == 0].reset_index(drop=True)


@key("03b.1")
def efficiency_and_ratio() -> Key:
    """Efficiency and cost ratio of five people."""
    most_one = np.minimum(1, LEAST / PAID)
    efficiency = np.where(HELPED, most_one, 0.0)
    uncapped = np.where(HELPED, LEAST / PAID, 0.0)
    has_least = np.isfinite(LEAST)
    both = HELPED & has_least
    truth = [efficiency.mean(), PAID[both].mean() / LEAST[both].mean()]
    unhelped = (
        "Efficiency: it is a mean over all people, and who is not helped counts as 0."
    )
    capped = "Efficiency: nobody counts more than 1, cheaper than the search or not."
    whom = "Cost ratio: of means over those whom both help."
    of_efficiency = [
        (efficiency[HELPED].mean(), unhelped),
        (efficiency[has_least].mean(), unhelped),
        (most_one.mean(), unhelped),
        (most_one[has_least].mean(), unhelped),
        (uncapped.mean(), capped),
        (uncapped[HELPED].mean(), f"{capped} And who is not helped counts as 0."),
        (LEAST[both].sum() / PAID[both].sum(), "Efficiency: it is a mean of ratios."),
    ]
    of_ratio = [
        ((PAID[both] / LEAST[both]).mean(), "Cost ratio: of two means, no mean of ratios."),
        (PAID[has_least].mean() / LEAST[has_least].mean(), whom),
        (PAID[HELPED].mean() / LEAST[has_least].mean(), whom),
        (PAID.mean() / LEAST[has_least].mean(), whom),
        (1 / truth[1], "Cost ratio: what is paid over the least."),
    ]
    return Key(
        np.array(truth),
        f"{(~HELPED).sum()} of {len(HELPED)} people are not helped. The ratio does not see "
        "them; in the efficiency they count as 0.",
        (
            *place_by_place(truth, [of_efficiency, of_ratio]),
            (np.array(truth[::-1]), "Both are right, in the other order."),
        ),
        within=0.0015,
    )


Case = tuple[np.ndarray, np.ndarray, np.ndarray, int, int]


@functools.cache
def cases() -> list[Case]:
    """Return what the rule sees: of each round of the four searches, and of one of ours.

    Ours tells whose standard error it is, and of how many people.
    """
    shares = ["joint", "avoidable", "efficiency"]
    rounds: list[Case] = []
    for _, candidates in trials().groupby(["search", "profile", "round"], sort=False):
        joint, avoidable, efficiency = candidates[shares].to_numpy().T
        n_people, n_spared = candidates[["n_people", "n_spared"]].iloc[0]
        rounds.append((joint, avoidable, efficiency, int(n_people), int(n_spared)))
    joint = np.array([0.9, 0.85, 0.832, 0.86, 0.87, 0.5])
    avoidable = np.array([0.4, 0.2, 0.05, 0.3, 0.37, 0.0])
    efficiency = np.array([0.2, 0.3, 0.6, 0.35, 0.4, 0.7])
    return [*rounds, (joint, avoidable, efficiency, 100, 40)]


def error(share: np.ndarray | float, n: float) -> np.ndarray:
    """Return the standard error of shares of n people."""
    return np.sqrt(np.asarray(share) * (1 - np.asarray(share)) / n)


def by_rule(
    n_errors: float = 2.0,
    n_errors_spared: float = 2.0,
    own_error: bool = False,
    one_number: bool = False,
    least_of_all: bool = False,
    counts_kept: bool = False,
) -> np.ndarray:
    """Return the row that the rule chooses in each case, or a mistaken rule.

    Arguments:
        n_errors, n_errors_spared: How wide the tolerances are; an
            infinite second one leaves the second step out.
        own_error: Take each candidate's own error of the joint share.
        one_number: Take n_people for both errors.
        least_of_all: Look for the least avoidable hap among all.
        counts_kept: Give the place among those that are kept alone.
    """
    rows = []
    for joint, avoidable, efficiency, n_people, n_spared in cases():
        of = joint if own_error else joint.max()
        helps = joint >= joint.max() - n_errors * error(of, n_people)
        least = (avoidable if least_of_all else avoidable[helps]).min()
        n = n_people if one_number else n_spared
        kept = helps
        if np.isfinite(n_errors_spared):
            kept = helps & (avoidable <= least + n_errors_spared * error(least, n))
        row = int(np.where(kept, efficiency, -1).argmax())
        rows.append(int(kept[:row].sum()) if counts_kept else row)
    return np.array(rows, dtype=float)


@key("03b.2")
def the_rule() -> Key:
    """What the rule chooses in twelve rounds, and among six made-up candidates."""
    names = ["joint", "avoidable", "efficiency", "n_people", "n_spared"]
    frames = [pd.DataFrame(dict(zip(names, case, strict=True))) for case in cases()]
    truth = np.array([choosing.ranked(frame).index[0] for frame in frames], dtype=float)
    wide = "Both tolerances are two standard errors wide."
    alone = "That is one of the three steps alone."
    return Key(
        truth,
        "It was asked of the three rounds of all four searches, and of six made-up "
        "candidates.",
        (
            (np.array([case[0].argmax() for case in cases()]), alone),
            (np.array([case[1].argmin() for case in cases()]), alone),
            (np.array([case[2].argmax() for case in cases()]), alone),
            (by_rule(n_errors_spared=np.inf), "Who asks for less that is avoidable?"),
            (by_rule(n_errors_spared=0), "The second step has a tolerance, too."),
            (by_rule(1, 1), wide),
            (by_rule(3, 3), wide),
            (by_rule(own_error=True), "Whose standard error? That of the best, for all."),
            (by_rule(one_number=True), "Of how many people is the avoidable hap a share?"),
            (by_rule(least_of_all=True), "The least of those that the first step kept."),
            (
                by_rule(counts_kept=True),
                "You count among the kept alone. Which place is it among all?",
            ),
        ),
        of=applied(cases()),
        each="case",
    )


@key("03b.3")
def sparing_first() -> Key:
    """The joint share of what a rule would choose that puts sparing first."""
    rows = first_round()
    least = rows.avoidable.min()
    spares = rows[rows.avoidable <= least + 2 * error(least, rows.n_spared.iloc[0])]
    best = spares.joint.max()
    kept = spares[spares.joint >= best - 2 * error(best, rows.n_people.iloc[0])]
    share = rows.joint[kept.efficiency.idxmax()]
    letter = "ABCD"[3 - int(np.searchsorted((0.1, 0.3, 0.5), share))]
    n_silent = int(spares.n_acted.isna().sum())
    look = "Sort the 128 by avoidable hap. Whom do the first ones help?"
    return choice(
        letter,
        f"It helps {share:.3f}. {len(spares)} of {len(rows)} candidates ask nobody for "
        f"anything avoidable; {n_silent} of them recommend nothing at all. Who asks for "
        "nothing spares everybody, so help has to come first.",
        dict.fromkeys("ABCD", look),
    )


@functools.cache
def readings() -> pd.DataFrame:
    """Return what each reading of stage 3 comes to, as means over its seeds."""
    table = pd.read_csv(PARAMS / "calibration_trials.csv")
    fitted = table[table["hap, soft linear"].notna()]
    return fitted.groupby(READING)[list(paper())].mean().reset_index()


@functools.cache
def paper() -> dict[str, float]:
    """Return the paper's numbers in the cells of stage 3."""
    given = io.load_yaml(PARAMS / "calibration.yaml")
    cells: dict[str, float] = given["cells"]["networks"]
    return cells


def scores(of: list[str]) -> pd.Series:
    """Return the score of each reading by some cells."""
    wanted = {cell: paper()[cell] for cell in of}
    rows = readings().to_dict("records")
    return pd.Series(
        [calibration.score(row, wanted, N_PEOPLE, SPREAD) for row in rows], dtype=float
    )


@key("03b.4")
def score_by_hand() -> Key:
    """The calibration's score of the nearest reading."""
    every = scores(list(paper()))
    truth = every.min()
    ours = readings().loc[every.idxmin(), list(paper())].to_numpy(float)
    p = np.array(list(paper().values()))
    variance = p * (1 - p) / N_PEOPLE
    both = variance + SPREAD**2
    terms = (ours - p) ** 2 / both
    most = list(paper())[int(terms.argmax())]
    return Key(
        truth,
        f"{terms.max():.1f} of it is *{most}*, and {terms[-1]:.1f} is hap. Near 0 and 1 a "
        "share has a small error over people, so a small difference counts much.",
        (
            (((ours - p) ** 2 / variance).sum(), "One network differs from the next, too."),
            (((ours - p) / SPREAD) @ ((ours - p) / SPREAD), "People are drawn, too."),
            (
                ((ours - p) ** 2 / (np.sqrt(variance) + SPREAD) ** 2).sum(),
                "Independent errors add up as squares.",
            ),
            (((ours - p) ** 2 / (variance + SPREAD)).sum(), "0.011 is no variance."),
            ((np.abs(ours - p) / np.sqrt(both)).sum(), "It is a sum of squares."),
            (terms.mean(), "It is a sum, not a mean."),
            (np.sqrt(terms.sum()), "No root is taken."),
            (
                ((ours - p) ** 2 / (ours * (1 - ours) / N_PEOPLE + SPREAD**2)).sum(),
                "The error is that of the paper's number.",
            ),
            (((ours - p) ** 2).sum(), "In standard errors of a cell."),
        ),
        within=0.1,
    )


@key("03b.5")
def chosen_by_two_cells() -> Key:
    """How many readings are nearer elsewhere than the one that two cells choose."""
    cells = list(paper())
    of_table_1 = [cell for cell in cells if cell.endswith("random")]
    by_two = scores(of_table_1)
    elsewhere = scores([cell for cell in cells if cell not in of_table_1])
    chosen = int(by_two.idxmin())
    n_nearer, n_others = int((elsewhere < elsewhere[chosen]).sum()), len(elsewhere) - 1
    letter = "ABCD"[int(np.searchsorted((5, 20, 40), n_nearer))]
    reading = readings().loc[chosen]
    off = max(abs(reading[cell] - paper()[cell]) for cell in of_table_1)
    look = "Score all readings twice: by two cells, then by the three others."
    return choice(
        letter,
        f"{n_nearer} of {n_others}. It lies within {off:.3f} of the two cells that chose "
        f"it; its hap is {reading[cells[-1]]:.2f}, the paper's {paper()[cells[-1]]:.2f}. "
        "Agreement where you chose says nothing about elsewhere: hence the dagger.",
        dict.fromkeys("ABCD", look),
    )


@key("03b.6")
def half_the_tolerance() -> Key:
    """What share of invented targets some candidate confirms, at two tolerances."""
    points = first_round()[["joint", "hap"]].dropna().to_numpy()
    low, high = np.quantile(points, [0.1, 0.9], axis=0)
    targets = np.random.default_rng(0).uniform(low, high, (1_000, 2))
    nearest = np.abs(targets[:, None] - points[None]).max(-1).min(1)
    wide, narrow = (nearest < 0.05).mean(), (nearest < 0.025).mean()
    letter = "DCBA"[int(np.searchsorted((0.15, 0.35, 0.6), narrow / wide))]
    hints = {
        "A": "Each candidate confirms a square around itself. How does it shrink?",
        "B": "Count what the squares around all candidates cover, at both tolerances.",
        "C": "A square shrinks to a quarter. But how many of the large ones overlap?",
        "D": "There are more than a hundred candidates, and each confirms a square.",
    }
    return choice(
        letter,
        f"{wide:.2f} at 0.05, {narrow:.2f} at 0.025. Each square shrinks to a quarter, the "
        "share less, since large squares overlap more.",
        hints,
    )
