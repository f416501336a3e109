"""Evaluation functions."""

import functools

import numpy as np
import pandas as pd
import torch

from exercises.checking import Key, choice, key
from exercises.keys import place_by_place, problem
from lib.beyond.evaluation import gamm, refits, willingness
from lib.io import MODELS, ROOT
from lib.method import icarma
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import Recommendation
from lib.paper import readings
from lib.search import continuous

N_PEOPLE = 60


@key("10.1")
def four_distances() -> Key:
    """Four distances of one action, by hand."""
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


@functools.cache
def recommended() -> dict[str, Recommendation]:
    """Return what four solvers recommend to the first refused test people."""
    x, model = problem().refused("test")[:N_PEOPLE], problem().causal_model
    all_open = torch.ones(len(x), 4, dtype=torch.bool)
    anything = Preferences.from_mask(all_open).with_profile(CONSTANT)
    search = continuous.Search(problem(), model)
    table = search.table(x)
    fewest, *others = (
        search.recommend(x, anything, table, max_acted=n) for n in (1, 2, 3, 4)
    )
    for other in others:  # for those who have none yet
        pairs = zip(vars(fewest).values(), vars(other).values(), strict=True)
        has = fewest.has_recourse[:, None]
        fewest = Recommendation(*(torch.where(has, few, many) for few, many in pairs))
    network = icarma.ICarma.load(MODELS, "loan_icarma_hard", problem())[0]
    r = network.recommend(x, anything)
    x_cf = model.counterfactual(x, r.is_acted, r.values)
    return {
        "cheapest": others[-1],
        "fewest": fewest,
        "grid": readings.oracle(problem()).recommend(x, anything),
        "iCARMA": Recommendation(r.is_acted, r.values, x_cf),
    }


@key("10.2")
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


@key("10.3")
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


@key("10.4")
def a_smaller_study() -> Key:
    """The factor by which the error of the mean grows with 100 people."""
    answers = pd.read_csv(ROOT / "tests" / "reference" / "gamm_t1.csv")
    fitted = gamm.fit(answers.y, answers.x, answers.u)
    errors = []
    for n in (100, 362):
        rng = np.random.default_rng(0)
        design = refits.design(*willingness.POOLS["middle"].draw(rng, n, n // 5))
        errors.append(design.known(fitted.log_ratio)[1] * fitted.sigma2**0.5)
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
