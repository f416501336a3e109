"""HARE's tables beside ours: the loop *as published*, and with *own ideals*.

As published is what the paper's released code does: its hidden ideals
(`ideals.as_published`), its shorter steps, values outside the range of the data, and
equal random numbers for everybody. Only with that can its numbers be compared. Own
ideals (`ideals.personal`) are the ones to believe: everyone has an ideal of their own,
which is possible.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import io
from lib.beyond.hare import fitted, ideals
from lib.beyond.hare.draws import streams
from lib.beyond.hare.fitted import Models
from lib.beyond.hare.generators import growing_spheres
from lib.beyond.hare.hare import Dialogue, Simulated, remembered, rounds
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Features
from lib.beyond.hare.tabular import Tabular
from lib.io import PUBLISHED
from lib.method.classifier import Classifier
from lib.method.problem import Recommendation

N_PEOPLE = 100
SCALES = {"near": ideals.NEAR, "intermediate": ideals.INTERMEDIATE, "far": ideals.FAR}
# ours agrees with a printed mean within this, or within the printed standard deviation
WITHIN = 0.05
# of `remembered`, as they were best for people of the training split; guesses at features
# are moved farther than those about actions
FARTHER, SHARPNESS, SHARPNESS_OF_NOISE = Local(first=1.0), 0.02, 0.1
CHANGED = 1e-5  # a feature that moved by less counts as unchanged
# what a row of a table is of; iters_T counts the candidates of a round
SETTING = ["classifier", "gt_scale", "base", "method", "budget_B", "iters_T", "calibration"]
CELL = ["dataset", *SETTING, "metric"]
COIN = "HARE, answers of a coin"  # the control: the same candidates, and no answers
CONTROL = ["ANN", "far", COIN, 30, 1, "every"]  # its setting, without the base
CLAIMS = PUBLISHED / "hare_claims.csv"


def published() -> pd.DataFrame:
    """Return the cells of HARE's six tables: a row a cell.

    A number that is printed in several tables comes several times.

    Returns: Columns table, those of `CELL`, mean, sd and note. Numbers that a method
        does not have are 0: a base has no budget. The calibration of a base is "".
    Source: data/published/hare_table1.csv to 6, from OpenReview 56EBglCFvx.
    """
    tables = [io.read_csv(PUBLISHED / f"hare_table{i}.csv") for i in range(1, 7)]
    rows = pd.concat(tables, ignore_index=True)
    counts = {name: rows[name].fillna(0).astype(int) for name in ("budget_B", "iters_T")}
    calibration = rows.calibration.mask(rows.method == "base", "")
    note = rows.note.astype(object).fillna("")
    return rows.assign(calibration=calibration, note=note, **counts)


def rounds_of(method: str, budget: int, iters: int) -> tuple[int, int]:
    """Return how many rounds of how many candidates the paper's words mean.

    What the paper calls T iterations is, in its code, the number of candidates of a
    round.

    Raises: ValueError: the budget is no whole number of rounds.
    Example:
        >>> rounds_of("HARE", 30, 1), rounds_of("Multi-HARE", 30, 5)
        ((1, 30), (6, 5))
    """
    if method != "Multi-HARE":
        return 1, budget
    if iters < 1 or budget % iters:
        raise ValueError(
            f"A budget of {budget} is no whole number of rounds with {iters} candidates."
        )
    return budget // iters, iters


def settings() -> pd.DataFrame:
    """Return what is held for the six tables, once each, and the control, a row each."""
    columns = ["classifier", "gt_scale", "method", "budget_B", "iters_T", "calibration"]
    controls = pd.DataFrame([CONTROL] * 3, columns=columns)
    controls = controls.assign(base=["Wachter", "GS", "FACE"])
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
    Returns: Columns dataset, seed, those of `SETTING`, metric and value, which is a mean
        over people.
    """
    classifier = models.classifier(kind, seed)
    x = table.refused(classifier.accepts, n_people)
    every, proposal = settings(), Directions(n_steps=n_steps, is_held=False)
    every, rows = every[every.classifier == kind], []
    goals = {
        scale: ideals.as_published(table, classifier, x, seed, SCALES[scale])
        for scale in every.gt_scale.unique()
    }
    for name, of_base in every.groupby("base", sort=False):
        base = fitted.base(name, table, classifier, models, x, seed)
        for scale, of_scale in of_base.groupby("gt_scale", sort=False):
            for setting in of_scale.to_dict("records"):
                how = (base, goals[scale], setting, seed, proposal)
                row = {"dataset": table.name.upper(), "seed": seed} | setting
                for metric, value in _hold(table, classifier, x, *how).items():
                    rows.append(row | {"metric": metric, "value": value})
    return pd.DataFrame(rows)


def _hold(
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
    end, asked, method = base, torch.zeros(len(x)), setting["method"]
    if method != "base":
        space = Features(classifier, x, table.is_free, is_held=False)
        coins = streams(len(x), seed) if method == COIN else ()
        user, rngs = (
            Simulated(ideal, 0.5 if coins else 0.0, coins),
            streams(len(x), seed, True),
        )
        dialogue = Dialogue(space, Recommendation(base != x, base, base), user, rngs)
        how = rounds_of(method, setting["budget_B"], setting["iters_T"])
        rounds(dialogue, proposal, *how, calibrated=setting["calibration"])
        end, asked = dialogue.incumbent.x_cf, dialogue.n_questions.double()
    gtp, gtd = ideals.closeness(x, end, ideal)
    before, _ = ideals.closeness(x, base, ideal)
    values = classical(table, classifier, x, end)
    values |= {"GTP": gtp, "GTD": gtd, "asked": asked}
    values |= {"worse": (gtp > before + 1e-9).double()}
    means = {name: float(value.nanmean()) for name, value in values.items()}
    return {"success_rate": success} | means


def classical(
    table: Tabular, classifier: Classifier, x: Tensor, r: Tensor
) -> dict[str, Tensor]:
    """Return what the recourse literature measures, of each person: values with shape (N,).

    They are constraint_violations (immutable features that changed), redundancy
    (features that changed, and could change back without losing the decision), proximity
    (sum of squared changes), sparsity (features that changed), in_range (is everything
    within [0, 1]?) and accepted.

    Arguments:
        x, r: People and their recourse, with shape (N, D).
    """
    change = r - x
    is_changed = change.abs() > CHANGED
    back = torch.diag_embed(torch.ones_like(x)).bool()  # (N, D, D): one goes back
    returned = torch.where(back, x[:, None], r[:, None])
    return {
        "constraint_violations": (is_changed & table.is_immutable).sum(-1).double(),
        "redundancy": (is_changed & classifier.accepts(returned)).sum(-1).double(),
        "proximity": change.square().sum(-1),
        "sparsity": is_changed.sum(-1).double(),
        "in_range": ((r >= 0) & (r <= 1)).all(-1).double(),
        "accepted": classifier.accepts(r).double(),
    }


def beside_paper(ours: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's cells with ours and a guess beside them: a row a cell.

    A cell's guess is the mean of the same cell over the paper's other bases: what
    somebody would say who has read only the rest of the table.

    Arguments:
        ours: Rows as `as_published` yields them. Cells of other data sets are left out.
    Returns: `published` with the columns ours (mean over seeds), ours_sd (standard
        deviation over seeds, as the paper counts it), difference, agrees (within
        `WITHIN` or the printed standard deviation, whichever is larger; None where there
        is nothing to compare), copied (the paper prints its linear classifier's numbers
        again), guess, guess_agrees, is_near and guess_is_near (within `WITHIN`).
    """
    paper = published()
    over_seeds = ours.groupby(CELL)["value"].agg(
        ours="mean", ours_sd=lambda v: v.std(ddof=0)
    )
    rows = paper[paper.dataset.isin(ours.dataset)].merge(
        over_seeds.reset_index(), on=CELL, how="left"
    )
    is_ann = rows.classifier == "ANN"
    copied = is_ann & (rows.base == "CRUDS") & (rows.method != "base")
    printed = rows["mean"].where(~copied)
    same = [rows[name] for name in ("table", *CELL) if name != "base"]
    groups = printed.groupby(same)
    guess = (groups.transform("sum") - printed) / (groups.transform("count") - 1)
    difference, off = rows.ours - rows["mean"], (guess - rows["mean"]).abs()
    within, near = rows.sd.fillna(0).clip(lower=WITHIN) + 1e-9, WITHIN + 1e-9
    agrees = (difference.abs() <= within).astype(object)
    return rows.assign(
        difference=difference,
        agrees=agrees.where(difference.notna(), None),
        copied=copied,
        guess=guess,
        guess_agrees=off <= within,
        is_near=difference.abs() <= near,
        guess_is_near=off <= near,
    )


def to_compare(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that count once each: printed, found, not copied, in one table.

    Arguments:
        cells: As `beside_paper` gives them. A cell counts in the first table that prints
            it.
    """
    rows = cells[cells.agrees.notna() & ~cells.copied].drop_duplicates(CELL)
    return rows.assign(agrees=rows.agrees.astype(bool))


def claims(cells: pd.DataFrame, numbers: str) -> pd.DataFrame:
    """Return in how many comparisons each of HARE's claims about its tables holds.

    A comparison is of two cells of one table: the same data set, classifier, base and
    metric (and scale, where the claim names none), on the one side with the setting
    `after`, on the other with `before`.

    Arguments:
        cells: `beside_paper`; copied cells are left out.
        numbers: Which column to ask: "mean" (the paper's) or "ours".
    Returns: Columns holds, ties and comparisons, by claim and words.
    Source: data/published/hare_claims.csv.
    """
    cells = cells[cells[numbers].notna() & ~cells.copied]
    rows = []
    for part in io.read_csv(CLAIMS).itertuples():
        of_table = cells[
            (cells.table == part.table) & cells.metric.isin(part.metric.split())
        ]
        after, before = (
            _side(of_table, side)[numbers] for side in (part.after, part.before)
        )
        change = (after - before).dropna().round(6)
        holds = {"lower": change < 0, "higher": change > 0, "same": change == 0}
        counts = (holds[part.relation].sum(), (change == 0).sum(), len(change))
        rows.append((part.claim, part.words, *counts))
    columns = ["claim", "words", "holds", "ties", "comparisons"]
    return pd.DataFrame(rows, columns=columns).groupby(columns[:2], sort=False).sum()


def _side(cells: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Return the cells of a setting such as "method=HARE; budget_B=10", by all else."""
    for condition in setting.split("; "):
        name, _, value = condition.partition("=")
        cells = cells[cells[name].astype(str) == value]
    scale = [] if "gt_scale" in setting else ["gt_scale"]
    return cells.set_index(["classifier", "dataset", "base", "metric", *scale])


def own_ideals(
    table: Tabular,
    models: Models,
    seed: int,
    n_people: int,
    scale: str = "far",
    flips: float = 0.0,
) -> pd.DataFrame:
    """Return how near to ideals of their own people come: a row a method.

    The base is Growing Spheres, the classifier an ANN. Nothing leaves [0, 1], directions
    are held to what is free, and everyone has random numbers of their own.

    Arguments:
        models: What is fitted to the data set.
        seed: Of the classifier, the ideals and the dialogues.
        n_people: The first refused people of the test split.
        scale: A key of `SCALES`: how far ideals are.
        flips: Probability of a wrong answer.
    Returns: Columns dataset, seed, scale, flips, method, people, gtp with its standard
        error se, gtd, asked (questions), and worse (people who end farther from their
        ideal than the base).
    Raises: ValueError: nobody has an ideal.
    """
    h = models.classifier("ANN", seed)
    x = table.refused(h.accepts, n_people)
    ideal = ideals.personal(table, h, x, SCALES[scale], streams(len(x), seed))
    base = growing_spheres(table, h, x, streams(len(x), seed))
    has = ~(base.isnan().any(-1) | ideal.isnan().any(-1))
    if not has.any():
        raise ValueError(f"None of {len(x)} people has an ideal: take more people.")
    x, base, ideal = x[has], base[has], ideal[has]
    space = Features(h, x, table.is_free)
    start = Recommendation(base != x, base, base)
    sharpness = SHARPNESS_OF_NOISE if flips else SHARPNESS
    learn = partial(remembered, proposal=FARTHER, sharpness=sharpness)
    methods = {
        "HARE, 30": partial(rounds, proposal=Directions(), n_rounds=1, n_candidates=30),
        "Multi-HARE, 6 x 5": partial(
            rounds, proposal=Directions(), n_rounds=6, n_candidates=5
        ),
        "remembered, 10": partial(learn, n_questions=10),
        "remembered, 30": partial(learn, n_questions=30),
    }
    before, gtd = ideals.closeness(x, base, ideal)
    ends = [("base", before, gtd, torch.zeros(len(x)))]
    for i, (method, hold) in enumerate(methods.items(), start=1):
        rngs, wrong = (streams(len(x), 100 * seed + 10 * j + i) for j in (0, 1))
        user = Simulated(ideal, flips, wrong if flips else ())
        dialogue = hold(Dialogue(space, start, user, rngs))
        closeness = ideals.closeness(x, dialogue.incumbent.x_cf, ideal)
        ends.append((method, *closeness, dialogue.n_questions.double()))
    same = {"dataset": table.name.upper(), "seed": seed, "scale": scale, "flips": flips}
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
        for method, gtp, gtd, asked in ends
    )


def over_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds of `own_ideals`, by data set, scale, flips and method.

    Returns: Columns runs (people, summed over seeds), gtp, gtd, asked, worse (summed)
        and se: the larger of two standard errors of gtp, over seeds, and over people as
        if all came once for each seed.
    """
    groups = results.groupby(["dataset", "scale", "flips", "method"], sort=False)
    summary = groups.agg(
        runs=("people", "sum"),
        gtp=("gtp", "mean"),
        gtd=("gtd", "mean"),
        asked=("asked", "mean"),
        worse=("worse", "sum"),
    )
    return summary.assign(se=np.fmax(groups.se.mean(), groups.gtp.sem()))
