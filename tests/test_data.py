"""A table becomes a population that holds its values, or an error names what is wrong."""

import warnings
from dataclasses import replace
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import stats

from lib.method import data
from lib.method.data import DoubtfulTable, Population
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


def drawn(seed=1):
    normal = stats.norm(0, 1)
    model = SCM(
        {
            "income": additive((), lambda pa: 3.0, normal),
            "savings": additive(("income",), lambda pa: 2 * pa["income"], normal),
        }
    )
    kinds = {"income": "actionable", "savings": "mutable"}
    sizes = dict.fromkeys(["n_classifier", "n_flow", "n_recourse"], 200)
    return Population.from_scm(model, kinds, lambda x: x[:, 1] > 6, **sizes, seed=seed)


def test_people_of_a_model_are_three_draws():
    population = drawn()
    sizes = {name: len(x) for name, x in population.x.items()}
    for use, expected in (("flow", (160, 20, 20)), ("recourse", (100, 50, 50))):
        splits = ("train", "validation", "test")
        assert tuple(sizes[f"{use}/{split}"] for split in splits) == expected
    x = population.x["recourse/train"]
    assert x.dtype == torch.float32
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
    assert population.name == "the bank's" and population.actionable_index == [1, 2]
    income = population.inverse_transform(population.x["recourse/train"].double())[:, 1]
    assert torch.equal(income > 2_000, population.y["recourse/train"])
    assert same_people(population, population_of(frame))
    assert not same_people(population, population_of(frame, seed=1))


def test_the_same_random_numbers_as_in_the_third_edition(frame):
    """Sums over all splits of a table, spread counts and shuffled rows included."""
    x = population_of(frame, seed=3).x
    weights = torch.arange(1, 101).double()[:, None]
    total = (x["recourse/train"].double() * weights).sum(0)
    expected = [-506.5080631838646, -630.2161572612822, -126.84680493548512]
    assert total.tolist() == pytest.approx(expected, abs=1e-6)


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
    for pair in ([1, 2], [3, 2], ["1", "2"], [3.0, 2.0]):
        x = population.standardise(person.assign(education=pair))
        code = round(float(population.to_records(x)[1, column]))
        assert population.categories["education"][code] == "2"
    with pytest.raises(ValueError, match="Unknown category of education: '0'"):
        population.standardise(person.assign(education=0))


def test_categories_are_ordered_by_the_labels_that_count_or_by_their_type():
    frame = pd.DataFrame({"job": list("xxyyz")})
    is_positive = pd.Series([1.0, np.nan, 0.0, np.nan, np.nan])
    assert data.categories(frame, ["job"], is_positive) == {"job": ("y", "x", "z")}
    ordered = frame.astype(pd.CategoricalDtype(list("zxy"), ordered=True))
    assert data.categories(ordered, ["job"], is_positive) == {"job": ("z", "x", "y")}


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


@pytest.mark.parametrize("dtype", ["float32", "Float64", "int8", "double[pyarrow]"])
def test_whole_numbers_are_recognised_whatever_the_type(frame, dtype):
    given = frame.astype({"cards": dtype})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        population = population_of(given)
    assert same_people(population, population_of(frame))
    messages = [str(one.message) for one in caught if one.category is UserWarning]
    assert len(messages) == (0 if dtype == "int8" else 1)
    assert all(message.startswith("cards: no value has a fraction") for message in messages)


def test_whole_decides_otherwise(frame):
    given = frame.astype({"cards": float})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DoubtfulTable)  # income decides the label
        population = population_of(given, whole=["age"])
        with_atom = population_of(given, atoms=["cards"])
    assert population.discretisation.is_whole.tolist() == [True, False, False]
    assert with_atom.discretisation.is_whole.tolist() == [True, False, False]
    assert len(population.counts(2)) == 0
    assert population_of(given, whole=[]).discretisation is None


def test_atoms_are_spread_beyond_their_end_and_brought_back(frame):
    rng = np.random.default_rng(2)
    savings = np.where(rng.random(200) < 0.3, 0.0, rng.gamma(2, 500, 200))
    kinds = KINDS | {"savings": "actionable"}
    given = frame.assign(savings=savings)
    population = population_of(given, kinds=kinds, atoms=["savings"])
    x = torch.cat([population.x[f"recourse/{name}"] for name in data.FOR_RECOURSE])
    units = population.inverse_transform(x.double())[:, 3]
    assert (units <= 0).sum() == (savings == 0).sum() and len(units.unique()) == 200
    assert (population.to_records(x)[:, 3] == 0).sum() == (savings == 0).sum()
    assert same_people(population_of(frame, atoms=["cards"]), population_of(frame))


def test_the_number_of_whole_numbers_is_known_without_listing_them(frame):
    rng = np.random.default_rng(3)
    money = np.exp(rng.normal(11, 1.2, 200)).astype(int)
    money[:2] = 5_350, 5_000_000
    population = population_of(frame.assign(income=money))
    n_values = len(population.whole_range(1))
    assert 100_000 < n_values <= 5_000_000 - 5_350 + 1
    assert len(population.grid("income", 25)) <= 25
    cards = population.counts(2)
    assert len(cards) == len(population.whole_range(2)) < 12
    values = population.mean.float().repeat(len(cards), 1)
    values[:, 2] = cards
    assert torch.equal(population.to_feasible(values)[:, 2], cards)


def test_large_numbers_keep_their_differences(frame):
    large = frame.assign(income=10**12 + frame.income.astype(int))
    population = population_of(large)
    x = population.x["recourse/train"]
    rows = large.loc[population.people["recourse/train"]]
    assert population.to_records(x)[:, 1].tolist() == rows.income.tolist()
    assert torch.equal(population.standardise(rows), population.to_feasible(x))


def test_numbers_that_collapse_are_refused(frame):
    n = np.arange(200)
    for income in (10**17 + n, n + 10**12 * (n % 2)):  # in float64; in two heaps, float32
        with pytest.raises(ValueError, match="many of them look alike"):
            population_of(frame.assign(income=income))


def test_grid(frame):
    population = population_of(frame)
    ages = population.grid("age", 5).double() * population.std[0] + population.mean[0]
    assert torch.allclose(ages, ages.round(), atol=1e-4) and len(ages) == 5
    free = population_of(frame, whole=[])
    expected = torch.linspace(float(free.low[1]), float(free.high[1]), 7)
    assert torch.equal(free.grid("income", 7), expected)
    with pytest.raises(ValueError, match=r"Unknown feature 'agee'.*mean 'age'"):
        population.grid("agee", 5)


# -- what a table may be (cases 10 to 13) -------------------------------------------------


def through_arrow(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


TABLES = {
    "Arrow table": pa.Table.from_pandas,
    "Arrow types": through_arrow,
    "dict": lambda f: f.to_dict("list"),
    "other order": lambda f: f[["cards", "name", "repaid", "income", "age"]],
    "nullable": lambda f: f.convert_dtypes(),
    "equal row labels": lambda f: f.set_axis([7] * len(f)),
    "bool labels": lambda f: f.assign(repaid=f.repaid == 1),
    "float labels": lambda f: f.assign(repaid=f.repaid.astype(float)),
    "object labels": lambda f: f.assign(repaid=f.repaid.astype(object)),
    "category labels": lambda f: f.assign(repaid=f.repaid.astype("category")),
    "object numbers": lambda f: f.assign(cards=f.cards.astype(object)),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.filterwarnings("ignore:cards. no value has a fraction")
def test_all_these_tables_are_the_same_people(frame, kind):
    given, expected = TABLES[kind](frame), population_of(frame)
    assert same_people(population_of(given), expected)
    assert torch.equal(expected.standardise(given), expected.standardise(frame))


def test_arrow_words_dictionaries_and_decimals(frame):
    rng = np.random.default_rng(4)
    job = rng.choice(["cook", "clerk"], 200)
    kinds = KINDS | {"job": "mutable"}
    plain = frame.assign(job=job, income=frame.income.round(2))
    expected = population_of(plain, kinds=kinds)
    decimals = [Decimal(str(value)) for value in plain.income]
    columns = {
        "age": plain.age,
        "income": pa.array(decimals, pa.decimal128(12, 2)),
        "cards": plain.cards,
        "repaid": plain.repaid,
        "job": pa.array(job).dictionary_encode(),
    }
    as_arrow = pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)
    for given in (as_arrow, plain.assign(income=decimals)):
        population = population_of(given, kinds=kinds)
        assert same_people(population, expected)
        assert population.categories == expected.categories


def test_one_applicant_may_be_a_dict_or_a_series(coded):
    population = population_of(coded, kinds=CODED_KINDS)
    row = coded.iloc[[5]]
    expected = population.standardise(row)
    assert expected.shape == (1, 5)
    for person in (row.iloc[0], row.iloc[0].to_dict(), row.to_dict("list")):
        assert torch.equal(population.standardise(person), expected)
    assert population.standardise(coded[:0]).shape == (0, 5)


EDGES_GIVEN = {
    "dict": EDGES,
    "pairs": PAIRS,
    "array": np.array(PAIRS),
    "frame": pd.DataFrame(PAIRS, columns=["cause", "effect"]),
    "DiGraph": nx.DiGraph(PAIRS),
    "edges": nx.DiGraph(PAIRS).edges,
    "MultiDiGraph": nx.MultiDiGraph([*PAIRS, PAIRS[0]]),
    "matrix": nx.to_pandas_adjacency(nx.DiGraph(PAIRS)),
    "Graph": Graph(PARENTS),
}


@pytest.mark.parametrize("kind", EDGES_GIVEN)
def test_edges_may_be_given_in_these_ways(kind):
    assert data.to_graph(list(KINDS), EDGES_GIVEN[kind]).parents == PARENTS


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (3, "edges is 3: expected a dict"),
        ("digraph {age -> income}", "a networkx.DiGraph"),
        (np.eye(3), r"pd.DataFrame\(matrix, features, features\)"),
        (nx.Graph(PAIRS), "no directions"),
        ({"incme": ["age"]}, "'incme'.*mean 'income'"),
        ([("agee", "income")], "'agee'.*mean 'age'"),
        (pd.DataFrame({"from": ["a"], "to": ["a"]}), "column of the edges: 'cause'"),
    ],
)
def test_other_edges_are_refused_with_a_way_out(edges, message):
    with pytest.raises(ValueError, match=message):
        data.to_graph(list(KINDS), edges)


def test_a_fraction_of_a_whole_number_is_no_person(coded):
    population = population_of(coded, kinds=CODED_KINDS)
    person = coded.iloc[[5]].astype({"cards": float}).assign(cards=1.4)
    with pytest.raises(ValueError, match=r"cards of 5 is 1.4: expected a whole number"):
        population.standardise(person)


def test_a_blank_is_no_category(frame):
    jobs = np.array(["cook", "clerk", " "])[np.arange(len(frame)) % 3]
    with pytest.raises(ValueError, match=r"'job' has \d+ gaps .*in row 2"):
        population_of(frame.assign(job=jobs), kinds=KINDS | {"job": "actionable"})


@pytest.mark.parametrize("settings", [{"whole": "cards"}, {"atoms": "income"}])
def test_a_name_is_no_list_of_names(frame, settings):
    with pytest.raises(ValueError, match=r"a list of names, \['(cards|income)'\], got"):
        Population.from_frame(frame, "repaid", KINDS, EDGES, **settings)


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


def as_text(column, form=str):
    return lambda f: f.assign(**{column: [form(value) for value in f[column]]})


WITH_NAME = KINDS | {"name": "mutable"}
BAD_TABLES = {
    "^cards is missing: the": lambda f: f.drop(columns="cards"),
    "^age, cards are missing: the": lambda f: f[["income", "repaid"]],
    r"'income' has 1 gaps.*first in row 7": cell("income", 7, None),
    "'income' has 1 gaps or infinite": cell("income", 7, np.inf),
    "income of row 0 is '2,298'.*thous": as_text("income", "{:,.0f}".format),
    "cards of row 0 is '6,5'": as_text("cards", "{},5".format),
    "age of row 0 is '54'.*to_numeric": as_text("age"),
    r"income of row 0 is '\$ 2297": as_text("income", "$ {:.2f}".format),
    r"age of row 17 is '\?'.*na_values": cell("age", 17, "?"),
    r"cards of row 3 is '3\+'": cell("cards", 3, "3+"),
    "cards of row 3 is 'n/a'.*na_values": cell("cards", 3, "n/a"),
    r"age of row 2 is \[1\]: expected a number": cell("age", 2, [1]),
    "age of row 0 is Timestamp.*years": lambda f: f.assign(age=pd.Timestamp("2020")),
    "several levels": lambda f: f.set_axis(
        pd.MultiIndex.from_product([["a"], f.columns]), axis=1
    ),
    "columns 'age'": lambda f: pd.concat([f, f[["age"]]], axis=1),
    r"'repaid' holds \[2\]": lambda f: f.assign(repaid=2),
    "'repaid' holds.*'0'.*Turn text": as_text("repaid"),
    "'repaid' holds.*without gaps": cell("repaid", 1, None),
    "same repaid.*Bring people of both": lambda f: f.assign(repaid=1),
    "cards has the same.*Leave the feature": lambda f: f.assign(cards=3),
    r"income of row 4 is 1e\+12": cell("income", 4, 1e12),
    "has 19 rows: expected 20 at least": lambda f: f[:19],
    "got str: read the file first": lambda f: "people.csv",
}
BAD_SETTINGS = {
    "repayd is missing.*mean 'repaid'": {"label": "repayd"},
    r"rename\(columns=str\)": {"kinds": {0: "actionable"}},
    "learns from the answer": {"kinds": KINDS | {"repaid": "mutable"}},
    "expected a dict feature": {"kinds": list(KINDS)},
    "Unknown kind of feature": {"kinds": KINDS | {"age": "fixed"}},
    "same in one order": {"edges": Graph(dict(reversed(PARENTS.items())))},
    "income has fractions: leave": {"whole": ["income"]},
    "whole number: 'card'.*mean 'cards'": {"whole": ["card"]},
    "an atom: 'card'.*mean 'cards'": {"atoms": ["card"]},
    "No feature is actionable": {"kinds": dict.fromkeys(KINDS, "immutable")},
    "age is immutable.*its causes, income": {"edges": {"age": ["income"]}},
}


@pytest.mark.parametrize("message", [*BAD_TABLES, *BAD_SETTINGS])
def test_bad_tables_are_named_with_a_way_out(frame, message):
    given = BAD_TABLES[message](frame) if message in BAD_TABLES else frame
    with pytest.raises(ValueError, match=message):
        population_of(given, **BAD_SETTINGS.get(message, {}))


def test_words_with_a_number_among_them_or_too_many_are_no_categories(frame):
    with pytest.raises(ValueError, match="name of row 9 is '7'"):
        population_of(cell("name", 9, "7")(frame), kinds=WITH_NAME)
    with pytest.raises(ValueError, match="'name' has 200 categories: expected 30 at most"):
        population_of(frame.assign(name=frame.index.map("p{}".format)), kinds=WITH_NAME)


@pytest.mark.parametrize(
    ("column", "value", "n_people"),
    [
        ("income", -999, 1),
        ("income", 9_999, 30),
        ("income", -998, 2),
        ("cards", 99, 3),
        ("cards", -99, 2),
        ("cards", -9, 2),
        ("age", -77, 1),
    ],
)
def test_a_number_at_the_edge_that_may_stand_for_a_gap_is_warned_of(
    frame, column, value, n_people
):
    frame[column] = frame[column].where(frame.index >= n_people, value)
    with pytest.warns(UserWarning, match=f"{column} is {value} for {n_people} people"):
        population_of(frame)


@pytest.mark.parametrize("code", [-8, -9])
def test_several_codes_of_a_gap_are_all_warned_of(frame, code):
    frame.loc[:1, "cards"] = [-8, -9]
    with pytest.warns(UserWarning, match=f"cards is {code} for 1 people, and the nearest"):
        population_of(frame)


def test_words_that_may_be_numbers_are_warned_of(frame):
    kinds = KINDS | {"pay": "mutable"}
    pay = frame.index.map(lambda row: ["12k", "EUR 100", "none"][row % 3])
    with pytest.warns(UserWarning, match=r"pay of row 0 is '12k': .*to_numeric"):
        population_of(frame.assign(pay=pay), kinds=kinds)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f.assign(copy=f.repaid), "copy decides repaid alone"),
        (lambda f: f.assign(copy=1 - f.repaid), "copy decides repaid alone"),
        (lambda f: f.assign(copy=-3.0 * f.income), "income and copy are perfectly"),
        (lambda f: f.assign(copy=f.index < 4), "copy is the same for all but 4 people"),
        (lambda f: f.assign(repaid=f.index % 25 == 0), "Only 8 of 200 people"),
    ],
)
def test_what_makes_a_table_doubtful_is_warned_of(frame, spoil, message):
    kinds = KINDS | {"copy": "mutable"}
    table = spoil(frame.assign(copy=frame.age + frame.cards))
    with pytest.warns(DoubtfulTable, match=message):
        population_of(table, kinds=kinds)


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
    population_of(wide, kinds=KINDS | dict.fromkeys("abc", "immutable"))


def test_a_population_is_checked(frame):
    population = population_of(frame)
    empty = population.x | {"recourse/test": torch.zeros(0, 3)}
    with pytest.raises(ValueError, match="Split 'recourse/test' is empty"):
        replace(population, x=empty)
    with pytest.raises(ValueError, match="y of split 'flow/test'"):
        replace(population, y={"flow/test": torch.zeros(3, dtype=torch.bool)})
    with pytest.raises(ValueError, match="Unknown split with labels: 'train'"):
        replace(population, y={"train": population.y["flow/test"]})


def test_limits_in_words(frame):
    population = population_of(frame).with_limits({"income": "only up"})
    assert population.limits.low.shape == (2,)
    with pytest.raises(ValueError, match=r"'incom'.*mean 'income'"):
        population.with_limits({"incom": "only up"})
    assert population_of(frame).with_limits({}).limits is None  # nothing is cut
    both = population.with_limits({"cards": "at most 3"}).limits  # the first stays
    assert both.max_decrease[0] == 0 and both.high[1] == 3
    other_way = population.with_limits({"income": "up or down, at least 900"}).limits
    assert other_way.max_decrease[0] == torch.inf and other_way.low[0] == 900
    with pytest.raises(ValueError, match="cards: The lowest value is above the highest"):
        population.with_limits({"cards": "at most 3"}).with_limits({"cards": "at least 4"})
