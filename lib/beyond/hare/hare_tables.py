"""HARE's tables beside ours: the loop *as published*, and with *own ideals*.

As published is what the paper's released code does: its hidden ideals
(`ideals.as_published`), its shorter steps, values outside the range
of the data, and equal random numbers for everybody. Only with that
can its numbers be compared. Own ideals (`ideals.personal`) are the ones to
believe: everyone has an ideal of their own, which is possible.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks, io
from lib.beyond.hare import fitted, ideals
from lib.beyond.hare.draws import streams
from lib.beyond.hare.fitted import Models
from lib.beyond.hare.hare import Dialogue, Steps, remembered, rounds
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Features
from lib.beyond.hare.tabular import Tabular
from lib.beyond.hare.users import Simulated, refine
from lib.io import PUBLISHED
from lib.method.classifier import Classifier
from lib.method.problem import Recommendation

N_PEOPLE = 100
SCALES = {"near": ideals.NEAR, "intermediate": ideals.INTERMEDIATE, "far": ideals.FAR}
NUMBERS = range(1, 7)
# ours agrees with a printed mean within this, or within the printed standard deviation
WITHIN = 0.05
# of `remembered`, as they were best for people of the training split; guesses at features
# are moved farther than those about actions
FARTHER, SHARPNESS, SHARPNESS_OF_NOISE = Local(first=1.0), 0.02, 0.1
SLIGHTLY = 0.03  # by which a claim's two numbers may differ the wrong way
CHANGED = 1e-5  # a feature that moved by less counts as unchanged
# what a row of a table is of; iters_T counts the candidates of a round
SETTING = ["classifier", "gt_scale", "base", "method", "budget_B", "iters_T", "calibration"]
CELL = ["dataset", *SETTING, "metric"]
COIN = "HARE, answers of a coin"  # the control: the same candidates, and no answers
CONTROL = {
    "classifier": "ANN",
    "gt_scale": "far",
    "method": COIN,
    "budget_B": 30,
    "iters_T": 1,
    "calibration": "every",
}


def published(number: int | None = None) -> pd.DataFrame:
    """Return the cells of one of HARE's tables, or of all: a row a cell.

    Arguments:
        number: 1 to 6; left out: all of them, so that a number which
            is printed in several tables comes several times.
    Returns: Columns table, those of `CELL`, mean, sd and note.
        Numbers that a method does not have are 0: a base has no
        budget. The calibration of a base is "".
    Raises: ValueError: there is no such table.
    Source: data/published/hare_table1.csv to 6, from OpenReview
        56EBglCFvx.
    """
    checks.one_of("table of HARE", [number or 1], tuple(NUMBERS))
    numbers = NUMBERS if number is None else (number,)
    rows = pd.concat(
        [io.read_csv(PUBLISHED / f"hare_table{i}.csv") for i in numbers],
        ignore_index=True,
    )
    counts = {name: rows[name].fillna(0).astype(int) for name in ("budget_B", "iters_T")}
    rows = rows.assign(**counts)
    rows.loc[rows.method == "base", "calibration"] = ""
    return rows.assign(note=rows.note.astype(object).fillna(""))


def rounds_of(method: str, budget: int, iters: int) -> tuple[int, int]:
    """Return how many rounds of how many candidates the paper's words mean.

    What the paper calls T iterations is, in its code, the number of
    candidates of a round.

    Raises: ValueError: the method is unknown, or the budget is no
        whole number of rounds.
    Example:
        >>> rounds_of("HARE", 30, 1), rounds_of("Multi-HARE", 30, 5)
        ((1, 30), (6, 5))
    """
    checks.one_of("method", [method], ("HARE", "Multi-HARE", COIN))
    if method != "Multi-HARE":
        return 1, budget
    if iters < 1 or budget % iters:
        raise ValueError(
            f"A budget of {budget} is no whole number of rounds with {iters} candidates."
        )
    return budget // iters, iters


def settings() -> pd.DataFrame:
    """Return what is held for the six tables, once each, and the control, a row each."""
    controls = pd.DataFrame(
        [CONTROL | {"base": base} for base in ("Wachter", "GS", "FACE")]
    )
    return pd.concat([published()[SETTING], controls], ignore_index=True).drop_duplicates()


def as_published(
    table: Tabular,
    models: Models,
    kind: str,
    seed: int,
    n_people: int = N_PEOPLE,
    n_steps: int = Directions.n_steps,
) -> pd.DataFrame:
    """Return what the loop comes to in every setting of the six tables, for one classifier.

    Arguments:
        table: A data set of the paper.
        models: What is fitted to it.
        kind, seed: Of the classifier: "ANN" or "LR", and a seed.
        n_people: The first refused people of the test split.
        n_steps: Of the descent on directions.
    Returns: Columns dataset, seed, those of `SETTING`, metric and
        value, which is a mean over people.
    Raises: ValueError: there is no such classifier.
    """
    _check_fitted(models, kind, seed)
    classifier = models.classifiers[kind, seed]
    x = table.refused(classifier.accepts, n_people)
    every, proposal = settings(), Directions(n_steps=n_steps, is_held=False)
    ideal_of, frames = {}, []
    for name, of_base in every[every.classifier == kind].groupby("base", sort=False):
        base = fitted.base(name, table, classifier, models, x, seed, as_published=True)
        for scale, of_scale in of_base.groupby("gt_scale", sort=False):
            if scale not in ideal_of:
                ideal_of[scale] = ideals.as_published(
                    table, classifier, x, seed, SCALES[scale]
                )
            for setting in of_scale.to_dict("records"):
                values = _held(
                    table, classifier, x, base, ideal_of[scale], setting, seed, proposal
                )
                same = {"dataset": table.name.upper(), "seed": seed} | setting
                frames += [same | {"metric": k, "value": v} for k, v in values.items()]
    return pd.DataFrame(frames)


def _check_fitted(models: Models, kind: str, seed: int) -> None:
    """Raise ValueError unless there is such a classifier."""
    fits = [f"{kind}, seed {seed}" for kind, seed in models.classifiers]
    checks.one_of("classifier", [f"{kind}, seed {seed}"], fits)


class _AsCoded(Features):
    """The space of the released code: nothing is held to [0, 1], or to what is free."""

    def __init__(self, classifier: Classifier, x: Tensor, is_free: Tensor) -> None:
        super().__init__(classifier, x, is_free, within=None)

    def outcome(self, is_acted: Tensor, values: Tensor) -> Recommendation:
        """Return features as they are given."""
        return Recommendation(values != self.x, values, values)


def _held(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    base: Tensor,
    ideal: Tensor,
    setting: Mapping[str, Any],
    seed: int,
    proposal: Directions,
) -> dict[str, float]:
    """Return metrics of a setting, means over the people with a base and an ideal."""
    has = ~(base.isnan().any(-1) | ideal.isnan().any(-1))
    success = float((~base.isnan().any(-1)).double().mean())
    if not has.any():
        return {"success_rate": success}
    x, base, ideal = x[has], base[has], ideal[has]
    space = _AsCoded(classifier, x, table.is_free)
    start = end = Recommendation(base != x, base, base)
    asked, method = torch.zeros(len(x)), setting["method"]
    if method != "base":
        how = rounds_of(method, setting["budget_B"], setting["iters_T"])
        rngs = streams(len(x), seed, are_equal=True)
        calibrated = setting["calibration"]
        dialogue = Dialogue(rounds(space, start, proposal, *how, rngs, calibrated))
        coins = streams(len(x), seed) if method == COIN else ()
        end = refine(dialogue, Simulated(ideal, 0.5 if coins else 0.0, coins))
        asked = dialogue.n_questions.double()
    gtp, gtd = ideals.closeness(x, end.x_cf, ideal)
    before, _ = ideals.closeness(x, start.x_cf, ideal)
    values = classical(table, classifier, x, end.x_cf)
    values |= {"GTP": gtp, "GTD": gtd, "asked": asked}
    values |= {"worse": (gtp > before + 1e-9).double()}
    means = {name: float(value.nanmean()) for name, value in values.items()}
    return {"success_rate": success} | means


def classical(
    table: Tabular, classifier: Classifier, x: Tensor, r: Tensor
) -> dict[str, Tensor]:
    """Return what the recourse literature measures, of each person: values with shape (N,).

    They are constraint_violations (immutable features that changed),
    redundancy (features that changed, and could change back without
    losing the decision), proximity (sum of squared changes), sparsity
    (features that changed), in_range (is everything within [0, 1]?)
    and accepted.

    Arguments:
        x, r: People and their recourse, with shape (N, D).
    Raises: ValueError: the shapes differ.
    """
    checks.shape("r", r, x.shape)
    way = r - x
    is_changed = way.abs() > CHANGED
    back = torch.diag_embed(torch.ones_like(x)).bool()  # (N, D, D): one goes back
    returned = torch.where(back, x[:, None], r[:, None])
    return {
        "constraint_violations": (is_changed & table.is_immutable).sum(-1).double(),
        "redundancy": (is_changed & classifier.accepts(returned)).sum(-1).double(),
        "proximity": way.square().sum(-1),
        "sparsity": is_changed.sum(-1).double(),
        "in_range": ((r >= 0) & (r <= 1)).all(-1).double(),
        "accepted": classifier.accepts(r).double(),
    }


def beside_paper(ours: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return one of the paper's tables with ours beside it: a row a cell.

    Arguments:
        ours: Rows as `as_published` yields them.
        number: Of the table.
    Returns: `published` with the columns ours (mean over seeds),
        ours_sd (standard deviation over seeds, as the paper counts
        it), difference, and agrees: within `WITHIN` or the printed
        standard deviation, whichever is larger; None where there is
        nothing to compare.
    Raises: ValueError: there is no such table.
    """
    paper = published(number)
    over_seeds = ours.groupby(CELL)["value"].agg(
        ours="mean", ours_sd=lambda v: v.std(ddof=0)
    )
    rows = paper.merge(over_seeds.reset_index(), on=CELL, how="left")
    rows["difference"] = rows.ours - rows["mean"]
    tolerance = rows.sd.fillna(0).clip(lower=WITHIN)
    agrees = (rows.difference.abs() <= tolerance + 1e-9).astype(object)
    return rows.assign(agrees=agrees.where(rows.difference.notna(), None))


def is_copied(cells: pd.DataFrame) -> pd.Series:
    """Return which cells of the paper for an ANN are those of the linear classifier again.

    A base's cells are not among them. All that are lie in the rows of
    CRUDS: mean and standard deviation are the same in every cell of
    such a row, though another classifier decides.

    Arguments:
        cells: As `published` gives them.
    """
    refined = cells[cells.method != "base"]
    at = ["gt_scale", "dataset", "base", "method", "budget_B", "iters_T", "calibration"]
    wide = refined.pivot_table(
        index=at, columns=["classifier", "metric"], values=["mean", "sd"]
    )
    if "LR" not in set(refined.classifier):
        return pd.Series(False, index=cells.index)
    one, other = (wide.xs(kind, axis=1, level="classifier") for kind in ("ANN", "LR"))
    same = (one[other.columns] == other).all(axis=1)
    rows = set(same[same].index)
    is_in = [key in rows for key in cells[at].itertuples(index=False, name=None)]
    return pd.Series(is_in, index=cells.index) & (cells.classifier == "ANN")


def claims(cells: pd.DataFrame, numbers: str) -> pd.DataFrame:
    """Return in how many comparisons each of HARE's claims (a) to (f) holds.

    A claim is a comparison of two cells of one table: the same data
    set, classifier and base, and the same of GTP and GTD.

    (a) table 1: HARE is below the base, and Multi-HARE not above HARE
    by more than 0.03; (b) table 2: more questions do harm by no more
    than 0.03; (c) table 5: calibrating every candidate is better than
    calibrating the best one; (d) table 6: near ideals are found more
    closely than intermediate ones, those than far ones; (e) table 4:
    as many people have a recourse with HARE as without; (f) table 4:
    it lies farther away than the base.

    Arguments:
        cells: `beside_paper` of all tables, one below the other;
            copied cells left out.
        numbers: Which column to ask: "mean" (the paper's) or "ours".
    Returns: Columns claim, holds and comparisons; rows in the order
        of the claims.
    """
    cells = cells[cells[numbers].notna()]

    def of(number: int, *metrics: str) -> pd.DataFrame:
        rows = cells[(cells.table == number) & cells.metric.isin(metrics)]
        how = rows.method + rows.budget_B.astype(str).where(rows.table == 2, "")
        how = how + rows.calibration.where(rows.table == 5, "")
        index = ["classifier", "gt_scale", "dataset", "base", "metric"]
        return (
            rows.assign(how=how).pivot(index=index, columns="how", values=numbers).dropna()
        )

    both = ("GTP", "GTD")
    first, second, fourth = of(1, *both), of(2, *both), of(4, "success_rate")
    nearer = of(6, "GTP").stack().unstack("gt_scale")
    proximity = of(4, "proximity")
    asked = {
        "(a) HARE is below the base": [first["HARE"] < first["base"]],
        "(a) Multi-HARE is not above HARE": [
            first["Multi-HARE"] <= first["HARE"] + SLIGHTLY
        ],
        "(b) more questions do no harm": [
            second[f"HARE{more}"] <= second[f"HARE{fewer}"] + SLIGHTLY
            for fewer, more in ((10, 30), (30, 70), (70, 100))
        ],
        "(c) better to calibrate every candidate": [
            (of(5, *both)["Multi-HAREevery"] < of(5, *both)["Multi-HAREbest"])
        ],
        "(d) nearer ideals are found more closely": [
            nearer["near"] < nearer["intermediate"],
            nearer["intermediate"] < nearer["far"],
        ],
        "(e) as many have a recourse": [
            fourth[method] == fourth["base"] for method in ("HARE", "Multi-HARE")
        ],
        "(f) it lies farther away": [
            proximity[method] > proximity["base"] for method in ("HARE", "Multi-HARE")
        ],
    }
    return pd.DataFrame(
        {
            "holds": {
                claim: int(sum(c.sum() for c in compared))
                for claim, compared in asked.items()
            },
            "comparisons": {
                claim: sum(len(c) for c in compared) for claim, compared in asked.items()
            },
        }
    ).rename_axis("claim")


# how a dialogue about features is held with own ideals
METHODS: Mapping[str, tuple[int, int] | int] = {
    "HARE, 30": (1, 30),
    "Multi-HARE, 6 x 5": (6, 5),
    "remembered, 10": 10,
    "remembered, 30": 30,
}


def own_ideals(
    table: Tabular,
    models: Models,
    seed: int,
    n_people: int,
    scale: str = "far",
    flips: float = 0.0,
) -> pd.DataFrame:
    """Return how near to ideals of their own people come: a row a method.

    The base is Growing Spheres, the classifier an ANN. Nothing leaves
    [0, 1], directions are held to what is free, and everyone has
    random numbers of their own.

    Arguments:
        models: What is fitted to the data set.
        seed: Of the classifier, the ideals and the dialogues.
        n_people: The first refused people of the test split.
        scale: A key of `SCALES`: how far ideals are.
        flips: Probability of a wrong answer.
    Returns: Columns dataset, seed, scale, flips, method ("base", then
        those of `METHODS`), people, gtp with its standard error se,
        gtd, asked (questions), and worse (people who end farther from
        their ideal than the base).
    Raises: ValueError: the scale is unknown, there is no such
        classifier, or nobody has an ideal.
    """
    checks.one_of("scale", [scale], tuple(SCALES))
    _check_fitted(models, "ANN", seed)
    h = models.classifiers["ANN", seed]
    x = table.refused(h.accepts, n_people)
    ideal = ideals.personal(table, h, x, SCALES[scale], streams(len(x), seed))
    base = fitted.base("GS", table, h, models, x, seed)
    has = ~(base.isnan().any(-1) | ideal.isnan().any(-1))
    if not has.any():
        raise ValueError(f"None of {len(x)} people has an ideal: take more people.")
    x, base, ideal = x[has], base[has], ideal[has]
    space = Features(h, x, table.is_free)
    start = Recommendation(base != x, base, base)
    before, gtd = ideals.closeness(x, base, ideal)
    same = {"dataset": table.name.upper(), "seed": seed, "scale": scale, "flips": flips}
    ended = [("base", before, gtd, torch.zeros(len(x)))]
    for i, (method, how) in enumerate(METHODS.items(), start=1):
        rngs, wrong = (streams(len(x), 100 * seed + 10 * j + i) for j in (0, 1))
        dialogue = Dialogue(_steps(space, start, how, rngs, flips))
        end = refine(dialogue, Simulated(ideal, flips, wrong if flips else ()))
        gtp, gtd = ideals.closeness(x, end.x_cf, ideal)
        ended.append((method, gtp, gtd, dialogue.n_questions.double()))
    return pd.DataFrame(
        same
        | {
            "method": method,
            "people": len(x),
            "gtp": float(gtp.mean()),
            "se": float(gtp.std() / np.sqrt(len(x))),
            "gtd": float(gtd.nanmean()),
            "asked": float(asked.mean()),
            "worse": int((gtp > before + 1e-9).sum()),
        }
        for method, gtp, gtd, asked in ended
    )


def _steps(
    space: Features,
    start: Recommendation,
    how: tuple[int, int] | int,
    rngs: list[np.random.Generator],
    flips: float,
) -> Steps:
    """Return the steps of a dialogue: rounds and candidates, or a number of questions."""
    if isinstance(how, tuple):
        return rounds(space, start, Directions(), *how, rngs)
    sharpness = SHARPNESS_OF_NOISE if flips else SHARPNESS
    return remembered(space, start, how, rngs, FARTHER, sharpness=sharpness)
