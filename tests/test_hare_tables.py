"""The paper's tables as read, and what is measured beside them."""

import hare
import numpy as np
import pandas as pd
import pytest
import torch

from lib.beyond.hare import fitted, hare_tables, tabular
from lib.beyond.hare.hare import Question
from lib.io import MODELS
from lib.method.classifier import Classifier
from lib.method.problem import Recommendation


@pytest.fixture(scope="module")
def compas():
    table = tabular.compas()
    return table, fitted.load(MODELS, "hare", {"compas": table})["compas"]


def test_rounds_spend_the_budget():
    for how in hare_tables.settings().itertuples():
        if how.method != "base":
            asked = hare_tables.rounds_of(how.method, how.budget_B, how.iters_T)
            assert np.prod(asked) == how.budget_B
    assert hare_tables.rounds_of("Multi-HARE", 30, 3) == (10, 3)  # and not 3 rounds of 10
    with pytest.raises(ValueError, match="no whole number of rounds"):
        hare_tables.rounds_of("Multi-HARE", 30, 7)


def test_a_cell_agrees_within_five_hundredths_or_the_printed_deviation(monkeypatch):
    cells = hare_tables.published().head(5)
    cells = cells.assign(mean=0.5, sd=[0.01, 0.01, 0.2, 0.2, None])
    ours = np.array([0.55, 0.56, 0.69, 0.29, 0.54])
    monkeypatch.setattr(hare_tables, "published", lambda: cells)
    seeds = [cells.assign(seed=i, value=ours + d) for i, d in ((1, -0.1), (2, 0.1))]
    rows = hare_tables.beside_paper(pd.concat(seeds))
    assert rows.agrees.tolist() == [True, False, True, False, True]
    assert rows.ours.tolist() == pytest.approx(ours)
    assert rows.ours_sd.tolist() == pytest.approx([0.1] * 5)  # divided by the seeds' number


def test_a_guess_is_the_mean_over_other_bases_and_copied_cells_do_not_count():
    cells = hare_tables.beside_paper(hare_tables.published().assign(value=0.0))
    one = cells[(cells.table == 1) & (cells.dataset == "CREDIT") & (cells.method == "HARE")]
    one = one[(one.classifier == "ANN") & (one.metric == "GTP")].set_index("base")
    assert one.index[one.copied].tolist() == ["CRUDS"] and cells.copied.sum() == 12
    others = one["mean"].drop(["CRUDS", "GS"])
    assert one.guess["GS"] == pytest.approx(others.mean())


def test_classical_metrics_against_one_person_at_a_time():
    table = tabular.compas()
    h = Classifier(table.features, lambda x: x[:, 2] + x[:, 3] - 0.5)
    rng = torch.Generator().manual_seed(0)
    x = 0.2 * torch.rand(20, 7, generator=rng, dtype=torch.float64)
    r = x + (torch.rand(20, 7, generator=rng) < 0.5) * 1.2
    measured = hare_tables.classical(table, h, x, r)
    for i in range(len(x)):
        moved = [j for j in range(7) if abs(r[i, j] - x[i, j]) > hare_tables.CHANGED]
        redundant = 0
        for j in moved:
            back = r[i].clone()
            back[j] = x[i, j]
            redundant += bool(h.accepts(back[None]))
        expected = {
            "sparsity": len(moved),
            "constraint_violations": sum(table.is_immutable[j].item() for j in moved),
            "redundancy": redundant,
            "proximity": sum((r[i, j] - x[i, j]).item() ** 2 for j in moved),
            "in_range": float((r[i] <= 1).all()),
            "accepted": float(h.accepts(r[i : i + 1])),
        }
        assert {name: v[i].item() for name, v in measured.items()} == pytest.approx(
            expected
        )


def test_claims_count_what_is_printed():
    """Notebook 09 shows the other counts."""
    cells = hare_tables.published().assign(copied=False)
    printed = hare_tables.claims(cells, "mean").droplevel("words")
    assert printed.loc["as many people have recourse"].tolist() == [16, 16, 18]
    assert printed.loc["more questions end nearer"].tolist() == [47, 3, 54]


def test_as_published_nobody_ends_worse_but_by_a_coin(compas):
    table, models = compas
    rows = hare_tables.as_published(table, models, "LR", 1, n_people=4, n_steps=5)
    worse = rows[rows.metric == "worse"].groupby("method")["value"].max()
    assert worse["HARE"] == worse["Multi-HARE"] == 0
    asked = rows[rows.metric == "asked"]
    assert (asked["value"] <= asked.budget_B).all()
    expected = hare_tables.settings().query("classifier == 'LR'")
    assert len(rows.drop_duplicates(hare_tables.SETTING)) == len(expected)


def test_with_own_ideals_more_answers_come_nearer(compas):
    table, models = compas
    rows = hare_tables.own_ideals(table, models, 1, n_people=15).set_index("method")
    assert (rows.worse == 0).all()
    assert rows.gtp["remembered, 30"] < rows.gtp["remembered, 10"] < rows.gtp["base"]
    assert rows.asked["remembered, 10"] <= 10


def test_who_refuses_what_they_cannot_do_prefers_any_other_option():
    """All four cases: neither, the old, the new, both; whichever is nearer."""
    x = torch.zeros(4, 2, dtype=torch.float64)
    old_bad, new_bad = (torch.tensor(which) > 0 for which in ([0, 1, 0, 1], [0, 0, 1, 1]))
    cannot, asked = torch.tensor([[True, False]] * 4), torch.ones(4, dtype=torch.bool)
    user = hare.Refuses(x, cannot=cannot)
    for near in (0, 1):  # which option is nearer
        old = Recommendation(torch.stack([old_bad, ~old_bad], 1), x, x + 1 + near)
        new = Recommendation(torch.stack([new_bad, ~new_bad], 1), x, x + 2 - near)
        is_better, _ = user(Question(old, new, asked))
        assert is_better.tolist() == [near == 1, True, False, near == 1]


def test_a_table_is_rebuilt_if_four_in_five_of_the_cells_that_can_tell_agree():
    cells = hare_tables.published()
    cells = cells[(cells.table == 1) & (cells.metric == "GTP")].head(25)
    cells = cells.assign(difference=0.1, guess=cells["mean"] + 0.3, guess_agrees=False)
    for n_agree, verdict in ((20, "rebuilt"), (19, "not rebuilt")):
        row = hare.agreement(cells.assign(agrees=[i < n_agree for i in range(25)])).iloc[0]
        counts = row[["can tell", "of these agree"]].tolist()
        assert (counts, row.verdict) == ([25, n_agree], verdict)
        assert row[["error", "error of the guess"]].tolist() == pytest.approx([0.1, 0.3])
    few = hare.agreement(cells.assign(agrees=True).head(9)).iloc[0]
    assert few.verdict == "undecided"
