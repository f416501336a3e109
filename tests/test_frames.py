"""A table becomes a population, or an error says what is wrong with it."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method import classifier, frames
from lib.method.population import Population
from lib.method.world import Graph

KINDS = {"age": "immutable", "income": "actionable", "cards": "actionable"}
EDGES = {"income": ["age"], "cards": ["income"]}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 200)
    income = 50.0 * age + rng.normal(0, 300, 200)
    table = pd.DataFrame({"age": age, "income": income, "cards": rng.poisson(2, 200)})
    return table.assign(repaid=(income > 2_000).astype(int), name="somebody")


def made(frame, **others):
    given = {"label": "repaid", "kinds": KINDS, "edges": EDGES} | others
    return Population.from_frame(frame, **given)


def test_splits_scaler_and_labels(frame):
    population = made(frame)
    assert [
        len(population.x[f"recourse/{part}"]) for part in ("train", "validation", "test")
    ] == [
        100,
        50,
        50,
    ]
    x = population.x["recourse/train"]
    assert x.dtype == torch.float32 and population.features == tuple(KINDS)
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    # the label is a function of income, so each person still has their own
    income = population.in_units(x.double())[:, 1]
    assert torch.equal(income > 2_000, population.y["recourse/train"])


def test_whole_numbers_are_spread_and_made_whole_again(frame):
    population = made(frame)
    everyone = torch.cat(
        [population.x[f"recourse/{p}"] for p in ("train", "validation", "test")]
    )
    cards = population.in_units(everyone.double())[:, 2]
    assert (cards % 1 != 0).float().mean() > 0.95
    again = population.in_units(population.possible(everyone.double()))
    assert sorted(again[:, 2].round(decimals=6).tolist()) == sorted(frame.cards.tolist())
    assert torch.allclose(again[:, 1], population.in_units(everyone.double())[:, 1])
    far = population.in_units(population.possible(torch.full((1, 3), 99.0)))
    assert far[0].tolist() == pytest.approx(frame[list(KINDS)].max().tolist(), rel=1e-5)


def test_a_gradient_passes_rounding_and_ends_at_the_range(frame):
    """Else training drives people ever farther beyond what the bank can see."""
    population = made(frame)
    x = torch.tensor([[0.1, 0.2, 0.3], [99.0, 0.2, -99.0]], requires_grad=True)
    shown = population.possible(x)
    assert not torch.equal(shown[0, 2], x[0, 2])  # made whole
    shown.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.tensor([[1.0, 1, 1], [0, 1, 0]]))


@pytest.mark.parametrize(
    "edges",
    [
        EDGES,
        [("age", "income"), ("income", "cards")],
        pd.DataFrame({"cause": ["age", "income"], "effect": ["income", "cards"]}),
        Graph({"age": (), "income": ("age",), "cards": ("income",)}),
    ],
    ids=["dict", "pairs", "frame", "graph"],
)
def test_edges_may_be_given_in_four_ways(frame, edges):
    assert made(frame, edges=edges).graph.parents == {
        "age": (),
        "income": ("age",),
        "cards": ("income",),
    }


def test_the_same_seed_gives_the_same_people(frame):
    one, same, other = (made(frame, seed=seed).x["flow/train"] for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_give_the_same_population(frame, kind, tmp_path):
    path = tmp_path / f"people.{kind}"
    getattr(frame, f"to_{kind}")(path, index=False)
    again = made(getattr(pd, f"read_{kind}")(path))
    assert torch.equal(again.x["flow/train"], made(frame).x["flow/train"])


def gap(frame):
    frame.loc[7, "income"] = np.nan
    return frame


BAD_TABLES = {
    "no such column": (
        lambda f: f.drop(columns="income"),
        {},
        r"column of the table: 'income'",
    ),
    "a gap": (gap, {}, r"'income' has 1 gaps or infinite values \(the first in row 7"),
    "text": (
        lambda f: f.assign(age=f.age.astype(str).where(f.index > 3, "old")),
        {},
        "'age' holds .*: expected numbers",
    ),
    "a column twice": (
        lambda f: pd.concat([f, f[["age"]]], axis=1),
        {},
        "two columns 'age'",
    ),
    "another label": (lambda f: f.assign(repaid=2), {}, r"'repaid' holds \[2\]"),
    "no label": (
        lambda f: f,
        {"label": "paid"},
        r"column of the table: 'paid'.*mean 'repaid'",
    ),
    "all alike": (lambda f: f.assign(repaid=1), {}, "same repaid: nothing to decide"),
    "a constant": (
        lambda f: f.assign(cards=3),
        {},
        "cards has the same value for everyone",
    ),
    "nobody": (lambda f: f[:0], {}, "There is nobody"),
    "too few": (lambda f: f[:19], {}, "number of rows is 19: at least 20"),
    "the label as a feature": (
        lambda f: f,
        {"kinds": KINDS | {"repaid": "mutable"}},
        "learns from the answer",
    ),
    "kinds as a list": (
        lambda f: f,
        {"kinds": list(KINDS)},
        "expected a dict feature -> kind",
    ),
    "no edges said": (lambda f: f, {"edges": None}, r"edges is None: expected a dict"),
    "causes as text": (lambda f: f, {"edges": {"cards": "income"}}, "text"),
    "a file": (lambda f: "people.csv", {}, "read the file first"),
    "numbered columns": (
        lambda f: f.set_axis(range(5), axis=1),
        {"kinds": {0: "actionable"}},
        "name the columns first",
    ),
    "the label twice": (
        lambda f: pd.concat([f, f[["repaid"]]], axis=1),
        {},
        "two columns 'repaid'",
    ),
    "a kind": (lambda f: f, {"kinds": KINDS | {"age": "fixed"}}, "Unknown kind of feature"),
    "an effect": (lambda f: f, {"edges": {"incme": ["age"]}}, r"'incme'.*mean 'income'"),
    "a cause": (lambda f: f, {"edges": [("agee", "income")]}, r"'agee'.*mean 'age'"),
    "a circle": (lambda f: f, {"edges": EDGES | {"age": ["cards"]}}, "in a circle"),
    "other order": (
        lambda f: f,
        {"edges": Graph({"income": (), "age": (), "cards": ()})},
        "same features in the same order",
    ),
    "fractions": (lambda f: f, {"whole": ["income"]}, "income has fractions"),
    "nothing to do": (
        lambda f: f,
        {"kinds": dict.fromkeys(KINDS, "immutable")},
        "No feature is actionable",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_named(frame, name):
    change, others, message = BAD_TABLES[name]
    with pytest.raises(ValueError, match=message):
        made(change(frame), **others)


def test_a_frame_of_edges_needs_its_columns():
    with pytest.raises(ValueError, match=r"column of the edges: 'cause'"):
        frames.graph(["a"], pd.DataFrame({"from": ["a"], "to": ["a"]}))


def test_people_are_known_by_the_labels_of_their_rows(frame):
    """A person of a split, looked up in the table and standardised again, is the same."""
    population = made(frame.set_axis([f"p{i}" for i in range(200)]), seed=3)
    labels = population.people["recourse/test"]
    assert len({*labels}) == 50 and not {*labels} & {*population.people["recourse/train"]}
    rows = frame.set_axis([f"p{i}" for i in range(200)]).loc[labels]
    x = population.x["recourse/test"]
    assert torch.allclose(population.standardised(rows)[:, 1], x[:, 1], atol=1e-5)
    recorded = population.as_recorded(x)
    assert torch.equal(
        recorded[:, [0, 2]], torch.tensor(rows[["age", "cards"]].to_numpy()).double()
    )


def test_labels_are_learned(frame):
    population = made(frame)
    h, losses = classifier.fit(population, n_epochs=150, learning_rate=1e-2)
    assert losses[-1] < losses[0] / 3
    x, y = population.x["recourse/test"], population.y["recourse/test"]
    assert (h.accepts(x) == y).float().mean() > 0.85
