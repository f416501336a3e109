"""A table becomes a population that holds its values, or an error names what is wrong."""

import warnings
from dataclasses import replace
from datetime import date
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import stats

from lib.method import data
from lib.method.data import Discretisation, Population
from lib.method.graph import Graph
from lib.method.scm import SCM, additive

KINDS = {"age": "immutable", "income": "actionable", "cards": "actionable"}
EDGES = {"income": ["age"], "cards": ["income"]}
PARENTS = {"age": (), "income": ("age",), "cards": ("income",)}
PAIRS = [("age", "income"), ("income", "cards")]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 200)
    income = 50.0 * age + rng.normal(0, 300, 200)
    table = pd.DataFrame({"age": age, "income": income, "cards": rng.poisson(2, 200)})
    return table.assign(repaid=(income > 2_000).astype(int), name="somebody")


@pytest.fixture
def coded(frame):
    """A table with integer categories, whose codes do not follow their values."""
    rng = np.random.default_rng(1)
    education = rng.choice([1, 2, 3, 4], 200)
    frame["sex"] = pd.Categorical(1 - frame.repaid)
    frame["education"] = pd.Categorical(np.where(rng.random(200) < 0.7, education, 4))
    frame["repaid"] = np.where(education == 2, 0, frame.repaid)
    return frame


CODED_KINDS = KINDS | {"sex": "immutable", "education": "actionable"}


def population_of(frame, **others):
    given = {"label": "repaid", "kinds": KINDS, "edges": EDGES} | others
    return Population.from_frame(frame, **given)


def same_people(one, other):
    return all(torch.equal(one.x[name], other.x[name]) for name in one.x)


# -- splits, scaler, labels ---------------------------------------------------------------


def drawn(seed=1, n_people=200):
    normal = stats.norm(0, 1)
    model = SCM(
        {
            "income": additive((), lambda pa: 3.0, normal),
            "savings": additive(("income",), lambda pa: 2 * pa["income"], normal),
        }
    )
    kinds = {"income": "actionable", "savings": "mutable"}
    sizes = {"n_classifier": n_people, "n_flow": n_people, "n_recourse": n_people}
    return Population.from_scm(
        model, kinds, lambda x: x[:, 1] > 6, "drawn", **sizes, seed=seed
    )


def test_people_of_a_model_are_three_draws():
    population = drawn()
    sizes = {name: len(x) for name, x in population.x.items()}
    assert sizes == {
        "classifier/train": 160,
        "classifier/validation": 20,
        "classifier/test": 20,
        "flow/train": 160,
        "flow/validation": 20,
        "flow/test": 20,
        "recourse/train": 100,
        "recourse/validation": 50,
        "recourse/test": 50,
    }
    x = population.x["recourse/train"]
    assert x.dtype == torch.float32 and population.name == "drawn"
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    assert torch.equal(population.low, x.amin(0))
    assert torch.equal(population.high, x.amax(0))
    paid = population.inverse_transform(x.double())[:, 1] > 6
    assert torch.equal(paid, population.y["recourse/train"])
    assert not torch.equal(population.x["flow/train"][:50], x[:50])
    assert same_people(population, drawn())
    assert not same_people(population, drawn(seed=2))


def test_the_truth_is_standardised_with_the_people():
    """Where income is 1 higher, the true savings are 2 higher, in any units."""
    population = drawn()
    x = population.x["recourse/test"].double()
    is_acted = torch.tensor([True, False]).expand_as(x)
    after = population.truth.counterfactual(x, is_acted, x + 1 / population.std)
    change = population.inverse_transform(after) - population.inverse_transform(x)
    torch.testing.assert_close(change, torch.tensor([1.0, 2.0]).double().expand_as(x))


def test_the_fingerprint_is_what_models_carry():
    graph = Graph({"age": (), "job": ("age",)})
    kinds = {"age": "immutable", "job": "actionable"}
    x = {"recourse/train": torch.tensor([[20.0, 0.0], [40.0, 1.0]]).double()}
    population = Population.from_units("two", kinds, graph, x, {})
    assert population.fingerprint == "9038b836b1ba5952"  # of the third edition
    assert replace(population, name="other").fingerprint == population.fingerprint
    named = replace(population, categories={"job": ("cook", "clerk")})
    assert named.fingerprint == "1bcb55239c8aa1b2"


def test_splits_of_a_table(frame):
    population = population_of(frame, name="the bank's")
    sizes = [len(population.x[f"recourse/{name}"]) for name in data.FOR_RECOURSE]
    assert sizes == [100, 50, 50]
    assert population.name == "the bank's" and population.features == tuple(KINDS)
    assert population.actionable == ("income", "cards")
    assert population.actionable_index == [1, 2]
    income = population.inverse_transform(population.x["recourse/train"].double())[:, 1]
    assert torch.equal(income > 2_000, population.y["recourse/train"])
    assert same_people(population, population_of(frame))
    assert not same_people(population, population_of(frame, seed=1))


def test_the_same_random_numbers_as_in_the_third_edition(frame):
    """Sums over all splits of a table, spread counts and shuffled rows included."""
    x = population_of(frame, seed=3).x
    weights = torch.arange(1, 101).double()[:, None]
    total = (x["recourse/train"].double() * weights).sum(0)
    expected = torch.tensor(THIRD_EDITION, dtype=torch.float64)
    torch.testing.assert_close(total, expected, atol=1e-6, rtol=0)


THIRD_EDITION = [-506.5080631838646, -630.2161572612822, -126.84680493548512]


def test_people_are_known_by_the_labels_of_their_rows(frame):
    named = frame.set_axis([f"p{i}" for i in range(200)])
    population = population_of(named, seed=3)
    row_labels = population.people["recourse/test"]
    assert len({*row_labels}) == 50
    assert not {*row_labels} & {*population.people["recourse/train"]}
    rows = named.loc[row_labels]
    x = population.x["recourse/test"]
    assert torch.equal(population.standardise(rows), population.to_feasible(x))
    again = population.to_frame(x).set_axis(row_labels)
    pd.testing.assert_frame_equal(again, rows[list(KINDS)], rtol=1e-5)


# -- categories are values, never codes (case 1) ------------------------------------------


def test_integer_categories_agree_in_every_row(coded):
    population = population_of(coded, kinds=CODED_KINDS)
    assert population.categories["sex"] == ("1", "0")
    assert population.categories["education"] != ("1", "2", "3", "4")
    for name, row_labels in population.people.items():
        rows, x = coded.loc[row_labels], population.x[name]
        feasible = population.to_feasible(x)
        assert torch.equal(population.standardise(rows), feasible)
        again = population.to_frame(x)
        assert again.education.tolist() == rows.education.tolist()
        assert again.sex.tolist() == rows.sex.tolist()


def test_a_value_is_read_alike_whoever_else_is_in_the_table(coded):
    population = population_of(coded, kinds=CODED_KINDS)
    person = coded.iloc[[0, 0]].astype({"education": int})
    column = population.features.index("education")
    alike = [
        population.standardise(person.assign(education=pair))[1, column]
        for pair in ([1, 2], [3, 2], ["1", "2"], [np.nan, 2.0])
        if not pd.isna(pair[0])
    ]
    alike.append(population.standardise(person[1:].assign(education=2.0))[0, column])
    assert len({float(value) for value in alike}) == 1
    code = population.categories["education"].index("2")
    assert population.to_records(population.standardise(person.assign(education=2)))[
        0, column
    ] == pytest.approx(code)
    with pytest.raises(ValueError, match="Unknown category of education: '0'"):
        population.standardise(person.assign(education=0))


def test_categories_of_words():
    rng = np.random.default_rng(0)
    job = rng.choice(["doctor", "clerk", "cook"], 300)
    good = {"cook": 0.1, "clerk": 0.5, "doctor": 0.9}
    repaid = rng.random(300) < pd.Series(job).map(good)
    frame = pd.DataFrame({"job": job, "age": rng.normal(40, 9, 300), "repaid": repaid})
    kinds = {"job": "actionable", "age": "immutable"}
    population = population_of(frame, kinds=kinds, edges={})
    assert population.categories == {"job": ("cook", "clerk", "doctor")}
    assert population.n_counts(0) == 3
    assert torch.equal(population.grid("job", 2), population.counts(0))
    x = population.standardise(frame)
    assert population.to_frame(x).job.tolist() == job.tolist()
    with pytest.raises(ValueError, match=r"Unknown category of job: 'cock'.*mean 'cook'"):
        population.standardise(frame.assign(job="cock"))
    with pytest.raises(ValueError, match="Unknown category of job: '0'"):
        population.standardise(frame.assign(job=0))
    with pytest.raises(ValueError, match=r"'job' has 1 gaps.*first in row 2"):
        population.standardise(frame.assign(job=frame.job.where(frame.index != 2)))
    order = pd.CategoricalDtype(["doctor", "clerk", "cook"], ordered=True)
    ordered = population_of(frame.astype({"job": order}), kinds=kinds, edges={})
    assert ordered.categories == {"job": ("doctor", "clerk", "cook")}


def test_order_by_the_label_looks_at_some_people_only():
    frame = pd.DataFrame({"a": list("xxyy")})
    is_positive = np.array([True, False, False, True])
    names = data.categories(frame, ["a"], is_positive, np.array([0, 2]))
    assert names == {"a": ("y", "x")}


# -- whole numbers (cases 2 to 4) ---------------------------------------------------------


def test_whole_numbers_are_spread_and_made_whole_again(frame):
    population = population_of(frame)
    x = torch.cat([population.x[f"recourse/{name}"] for name in data.FOR_RECOURSE])
    cards = population.inverse_transform(x.double())[:, 2]
    assert (cards % 1 != 0).float().mean() > 0.95
    assert sorted(population.to_records(x)[:, 2].tolist()) == sorted(frame.cards.tolist())
    far = population.to_records(torch.full((1, 3), 99.0))
    assert far[0].tolist() == frame[list(KINDS)].max().tolist()
    assert population.to_frame(x).cards.dtype == "int64"


def test_a_gradient_passes_rounding_and_ends_at_the_range(frame):
    """Else training drives people ever farther beyond what the classifier can see."""
    population = population_of(frame)
    x = torch.tensor([[0.1, 0.2, 0.3], [99.0, 0.2, -99.0]], requires_grad=True)
    feasible = population.to_feasible(x)
    assert not torch.equal(feasible[0, 2], x[0, 2])
    feasible.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([[1.0, 1, 1], [0, 1, 0]]))


def test_only_what_changed_is_rounded(frame):
    population = population_of(frame)
    x = population.x["recourse/test"]
    assert torch.equal(population.round_counterfactual(x, x + 1e-4)[:, 2], x[:, 2])
    one_more = x.double() + 1 / population.std
    after = population.round_counterfactual(x.double(), one_more)
    difference = population.to_records(after) - population.to_records(x)
    beyond = population.to_records(x)[:, 2] == frame.cards.max()
    assert set(difference[~beyond, 2].tolist()) == {1.0}


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "Float64", "int8", "double[pyarrow]"]
)
def test_whole_numbers_are_recognised_whatever_the_type(frame, dtype):
    given = frame.astype({"cards": dtype})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        population = population_of(given)
    assert same_people(population, population_of(frame))
    messages = [str(one.message) for one in caught]
    assert len(messages) == (0 if dtype == "int8" else 1)
    assert all(message.startswith("cards: no value has a fraction") for message in messages)


def test_whole_decides_otherwise(frame):
    given = frame.astype({"cards": float})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        population = population_of(given, whole=["age"])
        with_atom = population_of(given, atoms=["cards"])
    assert population.discretisation.is_whole.tolist() == [True, False, False]
    assert with_atom.discretisation.is_whole.tolist() == [True, False, False]
    assert population.n_counts(2) == 0 and len(population.counts(2)) == 0
    assert population_of(given, whole=[]).discretisation is None


def test_atoms_are_spread_beyond_their_end_and_brought_back(frame):
    rng = np.random.default_rng(2)
    savings = np.where(rng.random(200) < 0.3, 0.0, rng.gamma(2, 500, 200))
    kinds = KINDS | {"savings": "actionable"}
    population = population_of(
        frame.assign(savings=savings), kinds=kinds, atoms=["savings"]
    )
    x = torch.cat([population.x[f"recourse/{name}"] for name in data.FOR_RECOURSE])
    units = population.inverse_transform(x.double())[:, 3]
    assert (units <= 0).sum() == (savings == 0).sum() and len(units.unique()) == 200
    assert (population.to_records(x)[:, 3] == 0).sum() == (savings == 0).sum()
    with pytest.raises(ValueError, match=r"cards is a whole number.*leave it out"):
        population_of(frame, atoms=["cards"])


def test_the_number_of_whole_numbers_is_known_without_listing_them(frame):
    rng = np.random.default_rng(3)
    money = np.exp(rng.normal(11, 1.2, 200)).astype(int)
    money[:2] = 5_350, 5_000_000
    population = population_of(frame.assign(income=money))
    n_counts = population.n_counts(1)
    assert 100_000 < n_counts <= 5_000_000 - 5_350 + 1
    assert len(population.grid("income", 25)) <= 25
    cards = population.counts(2)
    assert len(cards) == population.n_counts(2) < 12
    values = population.mean.float().repeat(len(cards), 1)
    values[:, 2] = cards
    assert torch.equal(population.to_feasible(values)[:, 2], cards)


@pytest.mark.parametrize("size", [10**10, 10**12])
def test_large_numbers_keep_their_differences(frame, size):
    large = frame.assign(income=size + frame.income.astype(int))
    population = population_of(large)
    x = population.x["recourse/train"]
    rows = large.loc[population.people["recourse/train"]]
    assert population.to_records(x)[:, 1].tolist() == rows.income.tolist()
    assert len(population.to_feasible(x)[:, 1].unique()) == rows.income.nunique()
    assert torch.equal(population.standardise(rows), population.to_feasible(x))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda n: 10**17 + n,  # not told apart in float64
        lambda n: n + 10**12 * (n % 2),  # nor, in two heaps, in float32
    ],
)
def test_numbers_that_collapse_are_refused(frame, spoil):
    with pytest.raises(ValueError, match=r"income has 200 different values, of which \d+"):
        population_of(frame.assign(income=spoil(np.arange(200))))


def test_grid(frame):
    population = population_of(frame)
    ages = population.to_records(
        torch.nn.functional.pad(population.grid("age", 5)[:, None], (0, 2))
    )[:, 0]
    assert (ages % 1 == 0).all() and len(ages) == 5
    free = population_of(frame, whole=[])
    expected = torch.linspace(float(free.low[1]), float(free.high[1]), 7)
    assert torch.equal(free.grid("income", 7), expected)
    with pytest.raises(ValueError, match="at least its two ends"):
        population.grid("age", 1)
    with pytest.raises(ValueError, match=r"Unknown feature 'agee'.*mean 'age'"):
        population.grid("agee", 5)


def test_discretisation_of_given_ends():
    whole = Discretisation(
        is_whole=torch.tensor([True, False]),
        low=torch.zeros(2).double(),
        high=torch.tensor([9.0, 1.0]).double(),
    )
    assert whole(torch.tensor([-0.3, 0.4])).tolist() == pytest.approx([0.0, 0.4])
    assert str(whole(torch.tensor([-0.3, 0.4]))[0].item()) == "0.0"


# -- what a table may be (cases 10 to 13) -------------------------------------------------


class Polars:
    """As polars' frames: neither columns as pandas has them nor a copy."""

    def __init__(self, frame):
        self._frame = frame

    def to_pandas(self):
        return self._frame


class Capsule:
    """A table that only offers Arrow's interface."""

    def __init__(self, frame):
        self._table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def through_arrow(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize(
    "kind",
    [
        Polars,
        Capsule,
        pa.Table.from_pandas,
        through_arrow,
        lambda f: f.to_dict("list"),
        lambda f: f[["cards", "name", "repaid", "income", "age"]],
        lambda f: f.convert_dtypes(),
        lambda f: f.set_axis([7] * len(f)),
        lambda f: f.assign(repaid=f.repaid == 1),
        lambda f: f.assign(repaid=f.repaid.astype(float)),
        lambda f: f.assign(repaid=f.repaid.astype(object)),
        lambda f: f.assign(repaid=f.repaid.astype("Int64")),
        lambda f: f.assign(repaid=f.repaid.astype("category")),
        lambda f: f.assign(cards=f.cards.astype(object)),
    ],
    ids=[
        "polars",
        "Arrow's interface",
        "Arrow table",
        "Arrow types",
        "dict",
        "other order",
        "nullable",
        "equal row labels",
        "bool labels",
        "float labels",
        "object labels",
        "nullable labels",
        "category labels",
        "object numbers",
    ],
)
@pytest.mark.filterwarnings("ignore:cards. no value has a fraction")
def test_all_these_tables_are_the_same_people(frame, kind):
    population, expected = population_of(kind(frame)), population_of(frame)
    assert same_people(population, expected)
    assert population.fingerprint == expected.fingerprint
    assert torch.equal(expected.standardise(kind(frame)), expected.standardise(frame))


def test_arrow_words_dictionaries_and_decimals(frame):
    rng = np.random.default_rng(4)
    job = rng.choice(["cook", "clerk"], 200)
    kinds = KINDS | {"job": "mutable"}
    plain = frame.assign(job=job, income=frame.income.round(2))
    expected = population_of(plain, kinds=kinds)
    decimals = [Decimal(str(value)) for value in plain.income]
    table = pa.table(
        {
            "age": plain.age,
            "income": pa.array(decimals, pa.decimal128(12, 2)),
            "cards": plain.cards,
            "repaid": plain.repaid,
            "job": pa.array(job).dictionary_encode(),
        }
    )
    for given in (
        table.to_pandas(types_mapper=pd.ArrowDtype),
        table.to_pandas(),
        plain.astype({"job": "string[pyarrow]"}),
        plain.assign(income=decimals),
    ):
        population = population_of(given, kinds=kinds)
        assert same_people(population, expected)
        assert population.categories == expected.categories
        assert set(population.categories["job"]) == {"cook", "clerk"}


def test_one_applicant_may_be_a_dict_or_a_series(coded):
    population = population_of(coded, kinds=CODED_KINDS)
    row = coded.iloc[[5]]
    expected = population.standardise(row)
    assert expected.shape == (1, 5)
    for person in (row.iloc[0], row.iloc[0].to_dict(), row.to_dict("list")):
        assert torch.equal(population.standardise(person), expected)
    assert population.standardise(coded[:0]).shape == (0, 5)


@pytest.mark.parametrize(
    "edges",
    [
        EDGES,
        PAIRS,
        np.array(PAIRS),
        pd.DataFrame(PAIRS, columns=["cause", "effect"]),
        nx.DiGraph(PAIRS),
        nx.DiGraph(PAIRS).edges,
        Graph(PARENTS),
    ],
    ids=["dict", "pairs", "array", "frame", "DiGraph", "edges", "Graph"],
)
def test_edges_may_be_given_in_these_ways(edges):
    assert data.to_graph(list(KINDS), edges).parents == PARENTS


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (None, "edges is None: expected a dict"),
        ("digraph {age -> income}", "read_dot"),
        (np.eye(3), "from_pandas_adjacency"),
        (nx.Graph(PAIRS), "no directions"),
        (nx.Graph(PAIRS).edges, "no directions"),
        ({"cards": "income"}, "text"),
        ({"incme": ["age"]}, "'incme'.*mean 'income'"),
        ([("agee", "income")], "'agee'.*mean 'age'"),
        (EDGES | {"age": ["cards"]}, "in a circle"),
        (pd.DataFrame({"from": ["a"], "to": ["a"]}), "column of the edges: 'cause'"),
    ],
)
def test_other_edges_are_refused_with_a_way_out(edges, message):
    with pytest.raises(ValueError, match=message):
        data.to_graph(list(KINDS), edges)


def test_a_feature_may_have_any_name(frame):
    names = {"age": "Größe (cm)", "income": "class", "cards": "self"}
    kinds = {names[name]: kind for name, kind in KINDS.items()}
    population = population_of(frame.rename(columns=names), kinds=kinds, edges={})
    assert same_people(population, population_of(frame, edges={}))


# -- what is wrong with a table (cases 14 to 16) ------------------------------------------


def cell(column, row, value):
    def spoil(frame):
        cells = frame[column].astype(object)
        cells[row] = value
        return frame.assign(**{column: cells})

    return spoil


def texts(column, form):
    return lambda f: f.assign(**{column: [form(value) for value in f[column]]})


BAD_TABLES = {
    "a missing column": (lambda f: f.drop(columns="cards"), {}, "^cards is missing: the"),
    "two missing": (lambda f: f[["income", "repaid"]], {}, "^age, cards are missing: the"),
    "no label": (lambda f: f, {"label": "repayd"}, "repayd is missing.*mean 'repaid'"),
    "a gap": (cell("income", 7, np.nan), {}, r"'income' has 1 gaps.*first in row 7"),
    "no value": (cell("income", 7, None), {}, r"'income' has 1 gaps.*first in row 7"),
    "infinite": (cell("income", 7, np.inf), {}, r"'income' has 1 gaps or infinite"),
    "thousands": (
        texts("income", "{:,.0f}".format),
        {},
        "income of row 0 is '2,298'.*thous",
    ),
    "decimal commas": (texts("cards", lambda n: f"{n},5"), {}, "cards of row 0 is '6,5'"),
    "numbers as text": (texts("age", str), {}, "age of row 0 is '54'.*to_numeric"),
    "signs": (texts("income", "$ {:.2f}".format), {}, r"income of row 0 is '\$ 2297"),
    "a question mark": (cell("age", 17, "?"), {}, r"age of row 17 is '\?'.*na_values"),
    "three or more": (cell("cards", 3, "3+"), {}, r"cards of row 3 is '3\+'"),
    "not available": (cell("cards", 3, "n/a"), {}, "cards of row 3 is 'n/a'.*na_values"),
    "a number among words": (
        cell("name", 9, "7"),
        {"kinds": KINDS | {"name": "mutable"}},
        "name of row 9 is '7'",
    ),
    "a list": (cell("age", 2, [1]), {}, r"age of row 2 is \[1\]: expected a number"),
    "a day": (
        lambda f: f.assign(age=date(2020, 1, 1)),
        {},
        "age of row 0 is datetime.date",
    ),
    "days": (lambda f: f.assign(age=pd.Timestamp("2020")), {}, "age holds dates: give a"),
    "durations": (lambda f: f.assign(age=pd.Timedelta(1)), {}, "age holds durations: give"),
    "complex": (lambda f: f.assign(age=f.age + 1j), {}, "age holds complex.*instead"),
    "too many words": (
        texts("name", lambda _: "x" * np.random.default_rng().integers(1, 200)),
        {"kinds": KINDS | {"name": "mutable"}},
        "'name' has .* categories: expected 30 at most. Join",
    ),
    "several levels": (
        lambda f: f.set_axis(pd.MultiIndex.from_product([["a"], f.columns]), axis=1),
        {},
        "several levels. Join",
    ),
    "a column twice": (lambda f: pd.concat([f, f[["age"]]], axis=1), {}, "columns 'age'"),
    "the label twice": (lambda f: pd.concat([f, f.repaid], axis=1), {}, "columns 'repaid'"),
    "another label": (lambda f: f.assign(repaid=2), {}, r"'repaid' holds \[2\]"),
    "a label as text": (
        texts("repaid", str),
        {},
        r"\['0', '1'\].*Turn text|\['1', '0'\].*Turn text",
    ),
    "a label with a gap": (cell("repaid", 1, None), {}, "without gaps"),
    "all alike": (lambda f: f.assign(repaid=1), {}, "same repaid.*Bring people of both"),
    "a constant": (
        lambda f: f.assign(cards=3),
        {},
        "cards has the same.*Leave the feature",
    ),
    "an outlier": (cell("income", 4, 1e12), {}, r"income of row 4 is 1e\+12"),
    "nobody": (lambda f: f[:0], {}, "There is nobody"),
    "too few": (lambda f: f[:19], {}, "number of rows is 19: at least 20"),
    "a file": (lambda f: "people.csv", {}, "got str: read the file first"),
    "numbered columns": (
        lambda f: f.set_axis(range(5), axis=1),
        {"kinds": {0: "actionable"}},
        "name the columns first",
    ),
    "the label as a feature": (
        lambda f: f,
        {"kinds": KINDS | {"repaid": "mutable"}},
        "learns from the answer",
    ),
    "kinds as a list": (lambda f: f, {"kinds": list(KINDS)}, "expected a dict feature"),
    "a kind": (lambda f: f, {"kinds": KINDS | {"age": "fixed"}}, "Unknown kind of feature"),
    "other order": (
        lambda f: f,
        {"edges": Graph({"income": (), "age": (), "cards": ()})},
        "same features in the same order",
    ),
    "fractions": (lambda f: f, {"whole": ["income"]}, "income has fractions: leave"),
    "no such whole": (lambda f: f, {"whole": ["card"]}, "'card'.*mean 'cards'"),
    "no such atom": (lambda f: f, {"atoms": ["card"]}, "'card'.*mean 'cards'"),
    "nothing to do": (
        lambda f: f,
        {"kinds": dict.fromkeys(KINDS, "immutable")},
        "No feature is actionable.*Give one or more",
    ),
    "an immutable effect": (
        lambda f: f,
        {"edges": {"age": ["income"]}},
        "age is immutable, but income causes it.*leave out the edge income -> age",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_named_with_a_way_out(frame, name):
    spoil, others, message = BAD_TABLES[name]
    with pytest.raises(ValueError, match=message):
        population_of(spoil(frame), **others)


def test_a_missing_column_of_an_applicant_is_named(frame):
    population = population_of(frame)
    with pytest.raises(ValueError, match=r"^cards is missing"):
        population.standardise({"age": 30, "income": 1_000})
    with pytest.raises(ValueError, match="income of row 0 is '1,000'"):
        population.standardise({"age": 30, "income": "1,000", "cards": 2})


@pytest.mark.parametrize(
    ("column", "value", "n_people"),
    [("income", -999, 1), ("income", 9_999, 30), ("cards", 99, 3), ("cards", -99, 2)],
)
def test_a_number_at_the_edge_that_may_stand_for_a_gap_is_warned_of(
    frame, column, value, n_people
):
    frame[column] = frame[column].where(frame.index >= n_people, value)
    with pytest.warns(UserWarning, match=f"{column} is {value} for {n_people} people"):
        population_of(frame)


def test_ordinary_ends_are_not_warned_of(frame):
    rng = np.random.default_rng(5)
    given = frame.assign(
        income=rng.integers(-99, 1_000, 200), age=rng.integers(20, 100, 200)
    )
    given.loc[:1, ["income", "age"]] = [[999, 99], [-99, 20]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        population_of(given)


def test_dummies_that_can_be_acted_on_are_refused_with_the_way_out(frame):
    rng = np.random.default_rng(6)
    wide = frame.join(pd.get_dummies(pd.Series(rng.choice(list("abc"), 200)), dtype=int))
    acted = KINDS | dict.fromkeys("abc", "actionable")
    with pytest.raises(ValueError, match=r"a, b, c are 0 and 1.*one column of words"):
        population_of(wide, kinds=acted)
    fixed = population_of(wide, kinds=KINDS | dict.fromkeys("abc", "immutable"))
    assert fixed.categories == {}


def test_a_population_is_checked(frame):
    population = population_of(frame)
    empty = population.x | {"recourse/test": torch.zeros(0, 3)}
    with pytest.raises(ValueError, match="Split 'recourse/test' is empty"):
        replace(population, x=empty)
    with pytest.raises(ValueError, match="n_classifier is 19: at least 20"):
        drawn(n_people=19)
    with pytest.raises(ValueError, match="y of split 'flow/test'"):
        replace(population, y={"flow/test": torch.zeros(3, dtype=torch.bool)})
    with pytest.raises(ValueError, match="split with labels: 'flow/tset'"):
        replace(population, y={"flow/tset": torch.zeros(3, dtype=torch.bool)})


def test_limits_in_words(frame):
    population = population_of(frame).with_limits({"income": "only up"})
    assert population.limits.low.shape == (2,)
    with pytest.raises(ValueError, match=r"'incom'.*mean 'income'"):
        population.with_limits({"incom": "only up"})
    with pytest.raises(ValueError, match="limits has shape"):
        replace(population, limits=population.limits[:1])
