"""Write HARE's tables beside ours, and what dialogues on Loan come to, in full.

`python workflow/hare.py [SIZE [MODELS OUTPUTS]]`

It reads the results of workflow/fit.py in the folder of models, and leaves
docs/hare_tables.md and tables/09_*.csv in that of outputs. Notebook 09 shows a part.
"""

import lib.reproducible

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import parameters
import torch
from torch import Tensor

from lib import io
from lib.beyond.hare import dialogues, fitted, hare_tables, ideals, tabular
from lib.beyond.hare.dialogues import Participants
from lib.beyond.hare.draws import draw, streams
from lib.beyond.hare.hare import Dialogue, Question, Simulated
from lib.beyond.hare.proposals import Local
from lib.beyond.hare.spaces import Actions, walk_back
from lib.method import flow, icarma, loan
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.paper import designs, gmsc, stacks

NOTEBOOK = "09_human_in_the_loop"
MARGINS, ENOUGH = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5), 0.97
FEW = 10  # cells that can tell, below which a table is undecided
REBUILT = 0.8  # of these, from which a table is rebuilt
LAYOUT = {  # of each table: its rows and columns
    1: (["metric", "base"], ["dataset", "method"]),
    2: (["metric", "budget_B"], ["dataset", "base"]),
    3: (["metric", "iters_T"], ["dataset", "base"]),
    4: (["metric", "method"], ["dataset", "base"]),
    5: (["metric", "calibration"], ["dataset", "base"]),
    6: (["metric", "gt_scale", "method"], ["dataset", "base"]),
}


# ---------------------------------------------------------------- HARE's own tables


def shown(cells: pd.DataFrame, number: int, classifier: str = "ANN") -> pd.DataFrame:
    """Return a table of the paper with cells "ours (the paper's)" and a mark.

    "+": agrees where the guess does not; "*": does not agree; "c": copied.
    """
    rows = cells[(cells.table == number) & (cells.classifier == classifier)]
    is_off = rows.agrees.eq(False)
    can_tell = rows.agrees.eq(True) & ~rows.guess_agrees
    mark = np.select([rows.copied, is_off, can_tell], [" c", " *", " +"], "")
    both = zip(rows.ours, rows["mean"], mark, strict=True)
    text = [f"{a:.2f} ({b:.2f}){m}".replace("nan", "-") for a, b, m in both]
    index, columns = LAYOUT[number]
    wide = rows.assign(text=text).pivot(index=index, columns=columns, values="text")
    return wide.sort_index(axis=1)


def agreement(unique: pd.DataFrame) -> pd.DataFrame:
    """Return how many cells agree, ours and guessed, by table, method and data set."""
    apart = unique.metric == "redundancy"
    once = unique[unique.metric.isin(("GTP", "GTD"))]
    groups = {f"table {n}": unique[(unique.table == n) & ~apart] for n in LAYOUT}
    groups |= {"table 4, redundancy": unique[apart], "all GTP and GTD": once}
    both = once.dataset + ", " + once.method
    for key in ("method", "dataset", both):
        groups |= {f"of these, {name}": rows for name, rows in once.groupby(key)}
    groups["of these, CRUDS"] = once[once.base == "CRUDS"]
    groups["of these, all but CRUDS"] = once[once.base != "CRUDS"]
    rows = {}
    for name, group in groups.items():
        can_tell = group[~group.guess_agrees]
        n, n_agree = len(can_tell), can_tell.agrees.sum()
        verdict = "rebuilt" if n_agree >= REBUILT * n else "not rebuilt"
        rows[name] = {
            "cells": len(group),
            "agree": group.agrees.sum(),
            "guess agrees": group.guess_agrees.sum(),
            "can tell": n,
            "of these agree": n_agree,
            "verdict": "undecided" if n < FEW else verdict,
            "error": group.difference.abs().mean(),
            "error of the guess": (group.guess - group["mean"]).abs().mean(),
        }
    return pd.DataFrame(rows).T


def disagreements(unique: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that do not agree, redundancy aside, with a reason each."""
    off = unique[~unique.agrees & (unique.metric != "redundancy")]
    off = off.rename(columns={"mean": "paper"})
    by_network = off.base.isin(("CCHVAE", "CLUE", "CRUDS"))
    at_30 = unique[unique.budget_B == 30].assign(budget_B=10)
    printed = off[hare_tables.CELL].merge(at_30, on=hare_tables.CELL, how="left")["mean"]
    as_30 = off.budget_B.eq(10) & ((off.paper - printed.to_numpy()).abs() < 0.0101)
    fitted_anew = "autoencoder: layers not printed, fitted anew"
    doubtful = "as printed ten questions do what thirty do: doubtful"
    reason = np.select([by_network, as_30], [fitted_anew, doubtful], "unknown")
    where = ["table", *(name for name in hare_tables.CELL if name != "calibration")]
    columns = ["paper", "sd", "ours", "guess", "reason"]
    return off.assign(reason=reason).set_index(where)[columns]


def redundancy(cells: pd.DataFrame, tables: dict[str, tabular.Tabular]) -> pd.DataFrame:
    """Return redundancy, the paper's less the immutable features that float32 changes."""
    rounded = {}
    for name, table in tables.items():
        is_off = table.x["test"] != table.x["test"].float().double()
        rounded[name] = (is_off & table.is_immutable).sum(1).double().mean().item()
    rows = cells[(cells.metric == "redundancy") & cells.ours.notna()]
    passes = (rows.base == "Wachter") | ((rows.base == "GS") & (rows.method != "base"))
    corrected = rows["mean"] - rows.dataset.map(rounded) * passes
    within = rows.sd.fillna(0).clip(lower=hare_tables.WITHIN) + 1e-9
    agrees = (corrected - rows.ours).abs() <= within
    columns = ["dataset", "base", "method", "paper", "corrected", "ours", "agrees then"]
    rows = rows.rename(columns={"mean": "paper"})
    rows = rows.assign(corrected=corrected, **{"agrees then": agrees})[columns]
    return rows.reset_index(drop=True)


def what_ideals_rest_on(
    tables: dict[str, tabular.Tabular], models: dict[str, fitted.Models]
) -> pd.DataFrame:
    """Return, by data set and seed, the usual first direction, and who has an ideal."""
    rows = {}
    for name, table in tables.items():
        for seed in models[table.name].seeds:
            h = models[table.name].classifier("ANN", seed)
            x = table.refused(h.accepts, hare_tables.N_PEOPLE)
            ideal = ideals.as_published(table, h, x, seed, ideals.FAR)
            ways = ideals.directions(table, seed)
            ends = x.repeat(len(ways), 1, 1)
            moved = x[:, table.is_free] + ideals.FAR * ways[:, None]
            ends[..., table.is_free] = moved.clamp(0, 1)
            attempt = (~h.accepts(ends)).int().argmax(0)
            usual = int(attempt.mode().values)
            has = ~ideal.isnan().any(-1)
            rows[name, seed] = {
                "direction": ", ".join(f"{v:+.2f}" for v in ways[usual].tolist()),
                "share of people": (attempt == usual).double().mean().item(),
                "length": (ideal - x).norm(dim=-1).nanmean().item(),
                "ideal accepted": h.accepts(ideal[has]).double().mean().item(),
            }
    return pd.DataFrame(rows).T.rename_axis(["dataset", "seed"])


def controls(published: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what a coin's answers come to, and the shares of outcomes within [0, 1]."""
    far = published[(published.gt_scale == "far") & (published.classifier == "ANN")]
    far = far[(far.calibration != "best") & far.budget_B.isin((0, 30))]
    one = far[far.iters_T.isin((0, 1)) & far.metric.isin(("GTP", "GTD"))]
    by = ["dataset", "base", "metric"]
    coin = one.groupby([*by, "method"])["value"].mean().unstack("method").dropna()
    refined = far[far.method.isin(("HARE", "Multi-HARE")) & far.iters_T.isin((1, 5))]
    inside = refined[refined.metric == "in_range"].groupby(["dataset", "method"])
    coin = coin.rename(columns={"base": "no question"})
    return coin, inside["value"].mean().unstack()


# ---------------------------------------------------------------- dialogues on Loan


@dataclass(frozen=True)
class Weighted(Simulated):
    """Answer for people with a metric of their own: weights, and a sum (L1) or a length."""

    weights: Tensor | float = 1.0
    is_sum: bool = False

    def distance(self, x_cf: Tensor) -> Tensor:
        """Return how far outcomes are from the ideal by their metric, with shape (*, N)."""
        apart = (x_cf - self.ideal).abs() * self.weights
        return apart.sum(-1) if self.is_sum else apart.square().sum(-1).sqrt()


@dataclass(frozen=True)
class Refuses(Simulated):
    """Answer for people who refuse what they cannot do, a mask (N, D), however near."""

    cannot: Tensor | None = None

    def is_better(self, question: Question) -> Tensor:
        """Return for whom the challenger is the better option, with shape (N,)."""
        assert self.cannot is not None
        options = (question.incumbent, question.challenger)
        before, after = ((option.is_acted & self.cannot).any(-1) for option in options)
        return torch.where(before == after, super().is_better(question), before)


class Study:
    """Hold the people of notebook 09, and hold dialogues with them.

    Arguments:
        models: Folder of the fitted models.
        given: The notebook's parameters.
    """

    def __init__(self, models: Path, given: dict) -> None:
        sizes = {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse")}
        self.models, self.seed, self.given = models, given["seed"], given
        self.problem = loan.problem(models, **sizes, seed=self.seed)
        self.truth = self.problem.population.truth
        self.network = icarma.ICarma.load(models, "loan_icarma_hard", self.problem)[0]
        self.x, self.asked, self.people = self.taken_in("test")
        self.margin = given["margin"]

    def taken_in(self, split: str) -> tuple[Tensor, Preferences, Participants]:
        """Return people of a split, what they can do, and those who have an ideal."""
        x = self.problem.refused(split)[: self.given["n_people"]]
        asked = designs.hard_preferences(self.problem, len(x), self.seed + 1)["random"]
        people = dialogues.participants(self.problem, x, asked, self.seed + 2, self.truth)
        return x, asked, people

    def base(self, people: Participants, known: Preferences) -> Recommendation:
        """Return what iCARMA recommends to people with known preferences."""
        return self.network.recommend(people.x, known)

    def hold(
        self,
        method: str,
        people: Participants,
        known: Preferences | None = None,
        user: Simulated | None = None,
        sharpness: float = 0.02,
        margin: float | None = None,
        base: Recommendation | None = None,
    ) -> Dialogue:
        """Return a dialogue at its end; left out: as in the notebook, told the mask."""
        known = people.preferences if known is None else known
        margin = self.margin if margin is None else margin
        space = Actions(self.problem, people.x, known, margin)
        base = self.base(people, known) if base is None else base
        user = Simulated(people.ideal) if user is None else user
        rngs = people.streams(self.seed + 3)
        return dialogues.hold(space, base, method, user, rngs, sharpness)

    def line(self, people: Participants, end: Recommendation | Dialogue) -> pd.Series:
        """Return a line of a table: how people end, with a dialogue or without."""
        dialogue = end if isinstance(end, Dialogue) else None
        last = end.incumbent if isinstance(end, Dialogue) else end
        how = (self.problem, people, last, dialogue, self.truth)
        return dialogues.summary(dialogues.evaluate(*how))

    def margins(self) -> pd.DataFrame:
        """Return what thirty remembered answers of validation people come to, by margin."""
        _, _, people = self.taken_in("validation")
        rows = {
            m: self.line(people, self.hold("remembered, 30", people, margin=m))
            for m in MARGINS
        }
        return pd.DataFrame(rows).T.rename_axis("margin")

    def before_and_after(self) -> pd.DataFrame:
        """Return every method, with people who are asked what they cannot do, or not."""
        people, rows = self.people, {}
        everything = Preferences(torch.ones_like(people.preferences.scores))
        everything = everything.with_profile(self.network.profile)
        columns = self.problem.population.actionable_index
        cannot = torch.zeros_like(people.x, dtype=torch.bool)
        cannot[:, columns] = ~people.preferences.is_actionable
        for mask, known in (("told", people.preferences), ("not told", everything)):
            rows[mask, "iCARMA alone"] = self.line(people, self.base(people, known))
            for method in (m for m in dialogues.METHODS if m != "remembered, 10"):
                dialogue = self.hold(method, people, known)
                if method == "remembered, 30":
                    ten = self.line(people, dialogue.after(10))
                    rows[mask, "+ remembered, 10"] = ten
                rows[mask, f"+ {method}"] = self.line(people, dialogue)
        forgotten = self.hold("remembered, 30", people, sharpness=1e6)
        row = "told", "+ 30, the same guesses, forgotten"
        rows[row] = self.line(people, forgotten)
        user = Refuses(people.ideal, cannot=cannot)
        refused = self.hold("remembered, 30", people, everything, user)
        rows["not told", "+ remembered, 30, says no"] = self.line(people, refused)
        table = pd.DataFrame(rows).T.rename_axis(["hard mask", "recommendation"])
        return table.sort_index(level=0, ascending=False, sort_remaining=False)

    def soft_preferences(self) -> pd.DataFrame:
        """Return what it helps to ask beforehand how hard features are."""
        by_profile = icarma.load_by_profile(
            self.models, "loan_icarma_ranking", self.problem
        )
        soft, rows = by_profile["linear"][0], {}
        n, seed = len(self.x), self.seed + 1
        design = designs.soft_preferences(self.problem, "ranking", n, seed)
        scored = design[stacks.MIXED].with_profile(soft.profile)
        for beta in (0.0, 4.0):
            how = (self.x, scored, self.seed + 2, self.truth, beta)
            people = dialogues.participants(self.problem, *how)
            hard = people.preferences.with_profile(self.network.profile)
            first = {
                "hard": self.network.recommend(people.x, hard),
                "hard and soft": soft.recommend(people.x, people.preferences),
            }
            for name, base in first.items():
                rows[f"beta {beta:g}", f"{name}, alone"] = self.line(people, base)
                ten = self.line(people, self.hold("remembered, 10", people, base=base))
                rows[f"beta {beta:g}", f"{name}, 10 remembered"] = ten
        return pd.DataFrame(rows).T.rename_axis(["ideals", "told"])

    def wishing(self, how: str, n: int = 1000) -> Participants:
        """Return people whose ideals are drawn otherwise than the guesses at them."""
        space = Actions(self.problem, self.x, self.asked, model=self.truth)
        rngs = streams(len(self.x), self.seed + 2)
        values = Local(n_points=n, anywhere=1.0)(space, space.x, 1, 0, rngs)
        free = space.free.expand_as(values)
        if how == "one feature":
            lot = draw(rngs, "random", (n, values.shape[-1])).where(free, -1.0)
            free = free & (lot == lot.amax(-1, keepdim=True))
        options = space.outcome(free, values)
        is_good = space.accepts(options)
        if how != "more than needed":
            options, is_good = walk_back(space, options, dialogues.EPS)
        luck = draw(rngs, "gumbel", (n,))
        if how == "least change":
            luck = -((options.values - space.x).abs() / space.span).sum(-1)
        most, which = torch.where(is_good, luck, -torch.inf).max(0)
        has = most > -torch.inf
        ideal = options.x_cf[which, torch.arange(len(which))]
        return Participants(self.x[has], self.asked[has], ideal[has])

    def other_users(self) -> pd.DataFrame:
        """Return ten remembered answers beside thirty forgotten ones, by kind of user."""
        people = self.people

        def weights(most: float) -> Tensor:
            rngs = people.streams(self.seed + 5)
            drawn = [rng.uniform(-1, 1, people.x.shape[1]) for rng in rngs]
            weights = torch.from_numpy(most ** np.stack(drawn))
            return weights / weights.square().mean(-1, keepdim=True).sqrt()

        Made = Callable[[Tensor], Simulated]
        users: dict[str, tuple[Participants, Made, float]] = {
            "as believed": (people, Simulated, 0.02)
        }
        for most in (2, 3, 10):
            made = partial(Weighted, weights=weights(most))
            users[f"weights from 1/{most} to {most}"] = (people, made, 0.02)
        users["L1"] = (people, partial(Weighted, is_sum=True), 0.02)
        for how in ("one feature", "least change", "more than needed"):
            users[f"ideal: {how}"] = (self.wishing(how), Simulated, 0.02)

        def errs(ideal: Tensor) -> Simulated:
            return Simulated(ideal, 0.1, streams(len(ideal), self.seed + 4))

        users["one in ten wrong"] = (people, errs, 0.1)
        return pd.DataFrame({name: self.ends(*who) for name, who in users.items()}).T

    def ends(
        self, people: Participants, made: Callable[[Tensor], Simulated], tau: float
    ) -> dict[tuple[str, str], float]:
        """Return how far from their ideals people end, as parts of the first distance."""
        first, ideal = self.base(people, people.preferences).x_cf, people.ideal
        forgotten = self.hold("local, 10 x 3", people, user=made(ideal))
        remembered = self.hold("remembered, 30", people, None, made(ideal), tau)
        at_end = {
            "30 forgotten": forgotten.incumbent.x_cf,
            "10 remembered": remembered.after(10).incumbent.x_cf,
            "30 remembered": remembered.incumbent.x_cf,
        }
        row = {("", "people"): float(len(people))}
        user, plain = made(ideal), Simulated(ideal)
        at_first = user.distance(first).mean()
        left = {name: user.distance(x_cf) / at_first for name, x_cf in at_end.items()}
        for name, x_cf in at_end.items():
            row["GTP", name] = plain.distance(x_cf).mean().item()
        for name, shares in left.items():
            row["by own metric, left", name] = shares.mean().item()
        more = left["10 remembered"] - left["30 forgotten"]
        se = more.std() / len(more) ** 0.5
        row["10 less 30", "difference"] = more.mean().item()
        row["10 less 30", "+-"] = se.item()
        row["10 less 30", "in +-"] = (more.mean() / se).item()
        return row


def real_applicants(models: Path, given: dict) -> pd.DataFrame:
    """Return dialogues with people of Give Me Some Credit, judged by another flow."""
    seed = given["seed"]
    real = gmsc.problem(gmsc.applicants("", given["n_applicants"], seed), models, seed)
    print_of = real.population.fingerprint
    other = flow.load_all(models, "gmsc_other_flows", print_of)["refitted"]
    judge = Problem(real.population, real.classifier, other)
    network = icarma.load_by_profile(models, "gmsc_icarma", real)["constant"][0]
    x = real.refused("test")[: given["n_credit"]]
    asked = designs.transfer_preferences(real, len(x), seed + 1)["random"]
    people = dialogues.participants(judge, x, asked, seed + 2)
    base = network.recommend(people.x, people.preferences)
    base = real.discretise(people.x, base)

    def line(end: Recommendation, dialogue: Dialogue | None = None) -> pd.Series:
        return dialogues.summary(dialogues.evaluate(real, people, end, dialogue, other))

    rows = {("", "iCARMA alone"): line(base)}
    for margin in (0.0, 0.5, 1.0):
        space = Actions(real, people.x, people.preferences, margin)
        for method in ("local, 2 x 5", "remembered, 10"):
            user, rngs = Simulated(people.ideal), people.streams(seed + 3)
            dialogue = dialogues.hold(space, base, method, user, rngs)
            rows[f"{margin:g}", method] = line(dialogue.incumbent, dialogue)
    table = pd.DataFrame(rows).T.rename_axis(["margin", "recommendation"])
    names = {f"{what} in truth": f"{what} by the other flow" for what in ("valid", "joint")}
    return table.rename(columns=names)


# ---------------------------------------------------------------- the report


def read(models: Path, ending: str, has_data: bool) -> pd.DataFrame:
    """Return the results of the jobs `hare` and, with its data, `gmsc_hare`."""
    names = ["hare", "gmsc_hare"] if has_data else ["hare"]
    results = pd.concat([io.read_csv(models / f"{name}_{ending}.csv") for name in names])
    if "calibration" in results:
        results["calibration"] = results.calibration.fillna("")
    return results


def main(size: str = "paper", models: str = "", outputs: str = "") -> None:
    """Write the report and its tables."""
    given = parameters.with_defaults(size, NOTEBOOK)
    where = io.inside(models or given["models"])
    folder = io.inside(outputs or given["outputs"])
    path = gmsc.find()
    data = [tabular.adult(), tabular.compas()]
    kits = fitted.load(where, "hare", {table.name: table for table in data})
    if path is not None:
        data.append(tabular.credit(path))
        kits |= fitted.load(where, "gmsc_hare", {"credit": data[-1]})
    tables = {table.name.upper(): table for table in data}

    published = read(where, "as_published", path is not None)
    cells = hare_tables.beside_paper(published)
    unique = hare_tables.to_compare(cells)
    with_own_ideals = hare_tables.over_seeds(read(where, "own_ideals", path is not None))
    claims = {
        who: hare_tables.claims(cells, numbers)
        for who, numbers in (("the paper's", "mean"), ("ours", "ours"))
    }
    coin, inside = controls(published)
    study = Study(where, given)
    is_credit = cells.dataset == "CREDIT"
    off = disagreements(unique)
    saved = {
        "hare_tables": cells[~is_credit],
        "own_ideals": with_own_ideals.drop(index="CREDIT", errors="ignore").reset_index(),
        "margin": study.margins().reset_index(),
        "pre_post": study.before_and_after().reset_index(),
        "variants": study.soft_preferences().reset_index(),
        "memory_under_fire": study.other_users(),
    }
    if path is not None:
        saved |= {
            "gmsc_hare_tables": cells[is_credit],
            "gmsc_own_ideals": with_own_ideals.loc[["CREDIT"]].reset_index(),
            "gmsc_disagreements": off.reset_index(),
            "gmsc_dialogues": real_applicants(where, given).reset_index(),
        }
    for name, table in saved.items():
        text = table.to_csv(float_format="%.6g", index=name == "memory_under_fire")
        io.write(folder / "tables" / f"09_{name}.csv", text)

    sections: list[tuple[str, str, pd.DataFrame]] = [
        (
            "Claims",
            "Comparisons of two cells of one table in which a claim holds, and ties.",
            pd.concat(claims, axis=1),
        ),
        (
            "Agreement",
            "A cell *agrees* within 0.05 or the printed deviation. The *guess* is the mean "
            "of the same cell over the paper's other bases; a cell *can tell* if the guess "
            f"fails. *rebuilt*: of {FEW} such cells or more four in five agree. *error*: "
            "mean absolute difference to the printed number.",
            agreement(unique),
        ),
    ]
    how = "Ours (the paper's). +: agrees, and the guess fails; *: does not agree; c: the "
    how += "paper prints its linear classifier's number again."
    sections += [("Table 1, linear classifier", how, shown(cells, 1, "LR"))]
    sections += [(f"Table {n}, network", how, shown(cells, n)) for n in LAYOUT]
    sections += [
        ("Cells that do not agree", "Redundancy aside.", off),
        (
            "Redundancy",
            "In the paper's code immutable numbers pass through float32, and count as "
            "changed and redundant. *corrected*: less these.",
            redundancy(cells, tables),
        ),
        (
            "What the ideals rest on",
            "As published, *far*: the direction along which most people of a seed go, and "
            "the share of ideals that the classifier accepts.",
            what_ideals_rest_on(tables, kits),
        ),
        ("Answers of a coin", "The same candidates, and no information.", coin),
        ("Within the range of the data", "Shares of outcomes.", inside),
        ("Ideals of people's own", "Means over four seeds.", with_own_ideals),
        (
            "Loan: the margin",
            f"Validation people, thirty remembered answers. The least margin with which "
            f"{100 * ENOUGH:.0f} of 100 are valid under the true equations is taken.",
            saved["margin"],
        ),
        (
            "Loan: before and after",
            "*joint*: valid and plausible by the flow; *in truth*: by the true "
            "consequences and, for joint, the true density.",
            saved["pre_post"],
        ),
        ("Loan: soft preferences told, too", "", saved["variants"]),
        (
            "Loan: users who do not judge as believed",
            "*left*: the distance by the user's own metric, as a part of the first.",
            saved["memory_under_fire"],
        ),
    ]
    if path is not None:
        name = "Give Me Some Credit: dialogues with real applicants"
        sections.append((name, "Judged by another flow.", saved["gmsc_dialogues"]))
    lines = [
        "# HARE: all tables",
        "Written by `workflow/hare.py`. [Notebook 09](../notebooks/09_human_in_the_loop."
        "ipynb) explains the main terms. *flips*: the share of wrong answers. *says no*: "
        "people who may refuse what they cannot do.",
    ]
    for title, text, frame in sections:
        lines += [f"## {title}", text, as_markdown(frame)]
    io.write(folder / "docs" / "hare_tables.md", "\n\n".join(filter(None, lines)) + "\n")


def as_markdown(frame: pd.DataFrame) -> str:
    """Return a table in Markdown, rounded to three digits, without an index of numbers."""
    frame = frame.round(3)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [
        ", ".join(filter(None, name)) if isinstance(name, tuple) else name
        for name in frame.columns
    ]
    return frame.to_markdown(index=False, floatfmt=".3g")


if __name__ == "__main__":
    main(*sys.argv[1:])
