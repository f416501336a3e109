"""Evaluation functions."""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import applied, place_by_place, problem
from lib.beyond.evaluation import distances, gamm, willingness
from lib.io import MODELS, ROOT
from lib.method import icarma
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import Recommendation
from lib.paper import readings
from lib.search import continuous

N_PEOPLE = 60


@key("10.1")
def four_rulers() -> Key:
    """Four rulers on one action, by hand."""
    income, amount, savings = 0.8, 0.07, 0.45
    ranges = np.array([7.65, 8.0, 8.16])
    shares = np.array([income, amount, savings]) / ranges
    efforts = np.array([income, amount, savings]) ** 2 / ranges
    cost, shown = efforts[:2].sum() / 4, float((shares > 0.02).sum())
    truth = [cost, 2.0, shown, shares.sum()]
    wrong: list[list[tuple[float, str]]] = [
        [
            (efforts.sum() / 4, "Cost: what follows by itself is no effort."),
            (efforts[:2].sum(), "Cost: it is a mean over K features."),
            (efforts[:2].sum() / 2, "Cost: K counts all actionable features."),
            (shares[:2].sum() / 4, "Cost: the moves are squared."),
            ((shares[:2] ** 2).sum() / 4, "Cost: the range is not squared."),
            (efforts[0] / 4, "Cost: small steps count here, however small."),
        ],
        [
            (3.0, "Acted on: savings are not set, they follow."),
            (1.0, "Acted on: small steps count here, however small."),
        ],
        [
            (3.0, "Shown: is each move above 2 % of its range?"),
            (1.0, "Shown: it counts the profile. What follows shows, too."),
        ],
        [
            (shares[:2].sum(), "Proximity of the profile: what follows is in it."),
            (shares.sum() / 4, "Proximity of the profile: a sum, and no mean."),
            (shares.sum() / 3, "Proximity of the profile: a sum, and no mean."),
            (
                shares.sum() - 2 * shares[1],
                "Proximity of the profile: a move down is a move, too.",
            ),
            (
                shares.sum() - shares[1],
                "Proximity of the profile: small moves count here.",
            ),
            (efforts.sum(), "Proximity of the profile: moves are not squared."),
        ],
    ]
    return Key(
        np.array(truth),
        "Two features are set and three move, of which two show: cost measures the "
        "action, proximity the profile.",
        place_by_place(truth, wrong),
        within=0.00007,
    )


RULED = (
    (np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 3.0, 5.0, 4.0])),
    (np.array([4.0, 1.0, 2.0, 2.0]), np.array([0.1, 0.4, 0.3, 0.2])),
    (np.array([1.0, 1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.2, 0.9])),
)


@key("10.2")
def kendalls_tau() -> Key:
    """A function that returns Kendall's tau, ties considered."""

    of_each = applied(RULED)

    def signs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        rows = np.triu_indices(len(one), 1)
        return np.array(
            [np.sign(ruler[rows[0]] - ruler[rows[1]]) for ruler in (one, other)]
        )

    def over(pairs: Callable[[np.ndarray], float]) -> np.ndarray:
        return of_each(
            lambda one, other: (
                signs(one, other).prod(0).sum() / pairs(np.abs(signs(one, other)))
            )
        )

    truth = of_each(
        lambda one, other: distances.kendall(np.stack([one, other], -1)[:, None])[0, 0, 1]
    )
    return Key(
        truth,
        f"For three made-up pairs of rulers: {', '.join(f'{tau:.3f}' for tau in truth)}.",
        (
            (over(lambda untied: untied.shape[1]), "Pairs that are tied do not count."),
            *(
                (
                    over(count),
                    "Each ruler has ties of its own: the geometric mean of both counts.",
                )
                for count in (
                    lambda untied: untied[0].sum(),
                    lambda untied: untied[1].sum(),
                    lambda untied: untied.sum() / 2,
                )
            ),
            (
                over(lambda untied: untied[0].sum() * untied[1].sum()),
                "The product of both counts needs its root.",
            ),
            (
                of_each(lambda one, other: np.corrcoef(one, other)[0, 1]),
                "Only the order counts, and not by how much solvers differ.",
            ),
            (
                over(lambda untied: untied.prod(0).sum()),
                "Each ruler has ties of its own: the geometric mean of both counts.",
            ),
            (
                of_each(lambda one, other: signs(one, other).prod(0).sum()),
                "That is a number of pairs. Divide by how many there are.",
            ),
            (-truth, "Turned round: pairs that are ordered alike count as plus."),
        ),
        within=1e-4,
        of=of_each,
        each="made-up pair",
    )


def of_fewest(capped: dict[int, Recommendation], field: str) -> torch.Tensor:
    """Return a field of each person's recommendation on the fewest features, (N, D)."""
    has = torch.stack([r.has_recourse for r in capped.values()])
    every = torch.stack([getattr(r, field) for r in capped.values()])
    return every[has.int().argmax(0), torch.arange(every.shape[1])]


@functools.cache
def recommended() -> dict[str, Recommendation]:
    """Return what four solvers recommend to the first refused test people."""
    x, model = problem().refused("test")[:N_PEOPLE], problem().causal_model
    all_open = torch.ones(len(x), 4, dtype=torch.bool)
    anything = Preferences.from_mask(all_open).with_profile(CONSTANT)
    table = continuous.Search(problem(), model).table(x)
    capped = {
        n: continuous.Search(problem(), model).recommend(x, anything, table, max_acted=n)
        for n in (1, 2, 3, 4)
    }
    fewest = [of_fewest(capped, field) for field in ("is_acted", "values", "x_cf")]
    network = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem())[0]
    r = network.recommend(x, anything)
    x_cf = model.counterfactual(x, r.is_acted, r.values)
    return {
        "search": capped[4],
        "sparsest": Recommendation(*fewest),
        "grid": readings.oracle(problem()).recommend(x, anything),
        "iCARMA": Recommendation(r.is_acted, r.values, x_cf),
    }


@key("10.3")
def square_roots() -> Key:
    """Which solver a sum of square roots puts first."""
    x, every = problem().refused("test")[:N_PEOPLE], recommended()
    log_p, rounding = problem().flow.log_prob, 1e-4
    all_have = torch.stack(
        [
            r.has_recourse
            & problem().accepts(r.x_cf)
            & (log_p(r.x_cf) >= log_p(x) - rounding)
            for r in every.values()
        ]
    ).all(0)
    far = {
        name: ((r.x_cf - x).abs() / problem().range).sqrt().sum(-1)[all_have].mean().item()
        for name, r in every.items()
    }
    cost = {
        name: problem().cost_of(x, r)[all_have].mean().item() for name, r in every.items()
    }
    names = dict(zip("ABCD", every, strict=True))
    return choice(
        min(names, key=lambda letter: far[names[letter]]),
        f"Means over {int(all_have.sum())} people: "
        + ", ".join(
            f"{name} {total:.2f} (cost {cost[name]:.3f})" for name, total in far.items()
        )
        + ". A root makes small steps dear, as a count does.",
        {
            "A": "It was built for squares, which make small steps cheap. And roots?",
            "B": "Compare one step of 0.16 with four of 0.04: roots, and squares.",
            "C": "It has few small steps. Who has fewest steps of all?",
            "D": "How many features does it move? What is the root of a small number?",
        },
    )


@key("10.4")
def answers_enough() -> Key:
    """How many answers a person make levels nearly free."""
    ratio = (1.1 / 1.0) ** 2
    exact = 9 / ratio
    return Key(
        float(np.ceil(exact)),
        f"{exact:.2f} would give just 0.9. More answers, less shrinking.",
        (
            (exact, "Answers come in whole numbers."),
            (float(np.floor(exact)), "With so many it is still a little below 0.9."),
            (float(np.ceil(9 / 1.1)), "The formula has variances: squares of these."),
            (
                9 / 1.1,
                "The formula has variances: squares of these. And answers are whole.",
            ),
            (float(np.ceil(9 * ratio)), "Which variance is multiplied by n?"),
            (9 * ratio, "Which variance is multiplied by n?"),
            (362 * 0.9, "That is the EDF itself. How many answers lead to it?"),
        ),
        within=0.01,
    )


@key("10.5")
def another_elbow() -> Key:
    """What two changes fewer are worth with a later elbow."""
    latents = pd.read_csv(MODELS / "willingness_latent.csv")
    amplitude = latents[(latents.study == "family") & (latents.pool == "low")]
    amplitude = amplitude.set_index("shape").amplitude
    at = np.array([2.0, 4.0, 6.0])
    early, late = (
        amplitude[shape] * willingness.curve(shape, at)
        for shape in ("elbow at 3.5", "elbow at 5")
    )
    before, after = early[0] - early[1], late[0] - late[1]
    return choice(
        "A" if after > before + 0.02 else "B" if after < before - 0.02 else "C",
        f"From 4 changes to 2: {before:.2f} points with the early elbow, {after:.2f} with "
        f"the late one. From 6 to 4 {early[1] - early[2]:.2f} and "
        f"{late[1] - late[2]:.2f}. Both curves fit the print.",
        dict.fromkeys("ABC", "How steep is each curve between two changes and four?"),
    )


@key("10.6")
def a_smaller_study() -> Key:
    """The factor by which the error of the mean grows with 100 people."""
    answers = pd.read_csv(ROOT / "tests" / "reference" / "gamm_t1.csv")
    fitted = gamm.fit(answers.y, answers.x, answers.u)
    errors = []
    for n in (100, 362):
        rng = np.random.default_rng(0)
        at, who = willingness.POOLS["middle"].drawn(rng, n, n // 5)
        design = gamm.Design(at, who, k=min(10, len(np.unique(at))))
        errors.append(design.known(fitted.log_lambda)[1] * fitted.sigma2**0.5)
    factor = errors[0] / errors[1]
    return Key(
        factor,
        f"From {errors[1]:.3f} to {errors[0]:.3f} points, by the fitted model: the root "
        "of 362 / 100.",
        (
            (3.62, "That is by what factor there are fewer people. And the error?"),
            (1 / 3.62, "With fewer people, is the error smaller?"),
            (1 / factor, "With fewer people, is the error smaller?"),
            (factor - 1, "That is by how much it grows. By what factor?"),
            (3.62**2, "The variance falls as 1 / n. And the standard error?"),
        ),
        within=0.05,
    )
