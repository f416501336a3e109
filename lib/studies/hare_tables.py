"""HARE's tables beside ours: the loop *as published*, and with *own ideals*.

As published is what the paper's released code does: its hidden ideals
(`ideals.as_published`), its shorter steps, values outside the range
of the data, and equal random numbers for everybody. Only with that
can its numbers be compared. Own ideals (`ideals.own`) are the ones to
believe: everyone has an ideal of their own, which is possible.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.base import checks
from lib.base.files import PUBLISHED
from lib.problem.classifier import Classifier
from lib.problem.recourse import Recommendation
from lib.problem.tabular import Tabular
from lib.solvers import metrics
from lib.solvers.generators import streams
from lib.solvers.hare import Dialogue, Steps, remembered, rounds
from lib.solvers.proposals import Directions
from lib.solvers.spaces import Features
from lib.solvers.users import Simulated, refine
from lib.studies import ideals

SEEDS, N_PEOPLE = (1, 2, 3, 4), 100
SCALES = {"near": ideals.NEAR, "intermediate": ideals.INTERMEDIATE, "far": ideals.FAR}
NUMBERS = range(1, 7)
# ours agrees with a printed mean within this, or within the printed standard deviation
WITHIN = 0.05
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
    Source: published/hare_table1.csv to 6, from OpenReview
        56EBglCFvx.
    Example:
        >>> len(published()), published(5)["mean"].iloc[0]
        (783, 0.93)
    """
    checks.known("table of HARE", [number or 1], tuple(NUMBERS))
    numbers = NUMBERS if number is None else (number,)
    rows = pd.concat(
        [pd.read_csv(PUBLISHED / f"hare_table{i}.csv") for i in numbers], ignore_index=True
    )
    counts = {name: rows[name].fillna(0).astype(int) for name in ("budget_B", "iters_T")}
    rows = rows.assign(**counts)
    rows.loc[rows.method == "base", "calibration"] = ""
    rows["note"] = rows.note.fillna("")
    return rows


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
    checks.known("method", [method], ("HARE", "Multi-HARE", COIN))
    if method != "Multi-HARE":
        return 1, budget
    if iters < 1 or budget % iters:
        raise ValueError(
            f"A budget of {budget} is no whole number of rounds with {iters} candidates."
        )
    return budget // iters, iters


def as_published(
    table: Tabular,
    classifiers: Mapping[tuple[str, int], Classifier],
    bases: Mapping[tuple[str, int, str], Tensor],
) -> Iterator[pd.DataFrame]:
    """Yield what the loop comes to in every setting of the six tables, seed by seed.

    Arguments:
        table: A data set of the paper.
        classifiers: By kind ("ANN" or "LR") and seed.
        bases: First recourse of the refused people (`people_of`), by
            kind, seed and generator, with NaN where there is none.
    Returns: Frames with the columns dataset, seed, those of
        `SETTING`, metric and value, which is a mean over people.
    Example:
        >>> from lib.problem import tabular
        >>> table = tabular.compas()
        >>> h = Classifier(table.features, lambda x: 0.25 - x[:, 2])  # few priors
        >>> bases = {("ANN", 1, "GS"): people_of(table, h)}
        >>> bases["ANN", 1, "GS"][:, 2] = 0.2
        >>> frame = next(as_published(table, {("ANN", 1): h}, bases))
        >>> base = frame[(frame.method == "base") & (frame.gt_scale == "far")]
        >>> base[base.metric == "proximity"]["value"].round(3).tolist()
        [0.051]
    """
    cells = published()
    settings = cells[SETTING].drop_duplicates()
    controls = [CONTROL | {"base": base} for base in ("Wachter", "GS", "FACE")]
    settings = pd.concat([settings, pd.DataFrame(controls)], ignore_index=True)
    for (kind, seed), classifier in classifiers.items():
        x = people_of(table, classifier)
        space = Features(classifier, x, table.is_free, within=None)
        found = {}
        for (scale, name), own in settings[settings.classifier == kind].groupby(
            ["gt_scale", "base"], sort=False
        ):
            if (kind, seed, name) not in bases:
                continue
            if scale not in found:
                found[scale] = ideals.as_published(
                    table, classifier, x, seed, SCALES[scale]
                )
            for setting in own.to_dict("records"):
                values = _held(
                    table, space, bases[kind, seed, name], found[scale], setting, seed
                )
                yield pd.DataFrame(
                    {"dataset": table.name.upper(), "seed": seed} | setting | row
                    for row in ({"metric": k, "value": v} for k, v in values.items())
                )


def people_of(table: Tabular, classifier: Classifier, n_people: int = N_PEOPLE) -> Tensor:
    """Return the first refused people of the test split, or all if there are fewer.

    Example:
        >>> from lib.problem import tabular
        >>> table = tabular.compas()
        >>> h = Classifier(table.features, lambda x: 0.25 - x[:, 2])
        >>> people_of(table, h).shape
        torch.Size([100, 7])
    """
    x = table.x["test"]
    return x[~classifier.accepts(x)][:n_people]


def _held(
    table: Tabular,
    space: Features,
    base: Tensor,
    ideal: Tensor,
    setting: Mapping[str, object],
    seed: int,
) -> dict[str, float]:
    """Return metrics of a setting, means over the people with a base and an ideal."""
    has = ~(base.isnan().any(-1) | ideal.isnan().any(-1))
    part = Features(space.classifier, space.x[has], space.free[0], within=None)
    start, asked = _as_recommendation(part.x, base[has]), torch.zeros(int(has.sum()))
    found, method = start, str(setting["method"])
    if method != "base" and has.any():
        n_rounds, n_candidates = rounds_of(method, setting["budget_B"], setting["iters_T"])
        rngs = streams(len(part.x), seed, are_equal=True)
        steps = rounds(
            part,
            start,
            Directions(is_held=False),
            n_rounds,
            n_candidates,
            rngs,
            str(setting["calibration"]),
        )
        dialogue = Dialogue(steps)
        flips = 0.5 if method == COIN else 0.0
        found = refine(dialogue, Simulated(ideal[has], flips, rngs))
        asked = dialogue.n_questions
    values = {"success_rate": (~base.isnan().any(-1)).double()}
    values |= classical(table, space.classifier, part.x, found.x_cf)
    gtp, gtd = metrics.closeness(part.x, found.x_cf, ideal[has])
    before, _ = metrics.closeness(part.x, start.x_cf, ideal[has])
    values |= {"GTP": gtp, "GTD": gtd, "asked": asked.double()}
    values |= {"worse": (gtp > before + 1e-9).double()}
    return {name: float(value.nanmean()) for name, value in values.items()}


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
    Example:
        >>> from lib.problem import tabular
        >>> table = tabular.compas()
        >>> h = Classifier(table.features, lambda x: x[:, 2] - 0.5)
        >>> x = torch.zeros(1, 7, dtype=torch.float64)
        >>> r = x.clone()
        >>> r[0, 2], r[0, 3] = 0.6, 2.0  # only the first of them is needed
        >>> found = classical(table, h, x, r)
        >>> {name: float(value) for name, value in found.items()}["redundancy"]
        1.0
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
    Example:
        >>> one = published(1).iloc[[0]]
        >>> ours = pd.concat([one.assign(seed=i, value=v) for i, v in ((1, 0.9), (2, 1.0))])
        >>> beside_paper(ours, 1).loc[0, ["ours", "agrees"]].to_dict()
        {'ours': 0.95, 'agrees': True}
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


# how a dialogue about features is held with own ideals
METHODS: Mapping[str, tuple[int, int] | int] = {
    "HARE, 30": (1, 30),
    "Multi-HARE, 6 x 5": (6, 5),
    "remembered, 10": 10,
    "remembered, 30": 30,
}


def own(
    table: Tabular,
    classifier: Classifier,
    x: Tensor,
    base: Tensor,
    ideal: Tensor,
    seed: int,
    flips: float = 0.0,
) -> pd.DataFrame:
    """Return how near to their own ideals people come: a row a method and person.

    Nothing leaves [0, 1], directions are held to what is free, and
    everyone has random numbers of their own.

    Arguments:
        x: Refused people, with shape (N, D).
        base: Their first recourse, with shape (N, D); whoever has
            none, or no ideal, is left out.
        ideal: As `ideals.own` gives it.
        seed: Of the dialogues.
        flips: Probability of a wrong answer.
    Returns: Columns method ("base", then those of `METHODS`), person,
        gtp, gtd, asked, and worse (is it farther from the ideal than
        the base?).
    Example:
        >>> from lib.problem import tabular
        >>> table = tabular.compas()
        >>> h = Classifier(table.features, lambda x: 0.25 - x[:, 2])
        >>> x = people_of(table, h, 2)
        >>> base, ideal = x.clone(), x.clone()
        >>> base[:, 2], ideal[:, 2] = 0.1, 0.25
        >>> rows = own(table, h, x, base, ideal, seed=0)
        >>> rows.groupby("method").worse.sum().tolist()
        [0, 0, 0, 0, 0]
    """
    has = ~(base.isnan().any(-1) | ideal.isnan().any(-1))
    x, base, ideal = x[has], base[has].clamp(0, 1), ideal[has]
    space = Features(classifier, x, table.is_free)
    start = _as_recommendation(x, base)
    before, gtd = metrics.closeness(x, base, ideal)
    nobody = torch.zeros(len(x), dtype=torch.long)
    frames = [_rows("base", has, before, gtd, nobody, before)]
    for i, (method, how) in enumerate(METHODS.items()):
        rngs = streams(len(x), [seed, i])
        dialogue = Dialogue(_steps(space, start, how, rngs, flips))
        found = refine(dialogue, Simulated(ideal, flips, streams(len(x), [seed, i, 1])))
        gtp, gtd = metrics.closeness(x, found.x_cf, ideal)
        frames.append(_rows(method, has, gtp, gtd, dialogue.n_questions, before))
    return pd.concat(frames, ignore_index=True)


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
    return remembered(space, start, how, rngs, sharpness=0.1 if flips else 0.05)


def _rows(
    method: str, has: Tensor, gtp: Tensor, gtd: Tensor, asked: Tensor, before: Tensor
) -> pd.DataFrame:
    """Return a row a person of `own`."""
    return pd.DataFrame(
        {
            "method": method,
            "person": has.nonzero().squeeze(-1).numpy(),
            "gtp": gtp.numpy(),
            "gtd": gtd.numpy(),
            "asked": asked.numpy(),
            "worse": (gtp > before).numpy(),
        }
    )


def _as_recommendation(x: Tensor, r: Tensor) -> Recommendation:
    """Return recourse features as a recommendation."""
    return Recommendation(r != x, r, r)
