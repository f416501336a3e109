"""Graphs against brute force on random ones: powers of the adjacency matrix, union-find."""

import itertools

import numpy as np
import pytest

from lib.method.graph import Graph

SEEDS = range(25)


def random_edges(seed: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Features in random order, and edges that run along a hidden causal order."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(rng.integers(1, 9))]
    hidden = list(rng.permutation(names))
    share = rng.random()
    edges = [pair for pair in itertools.combinations(hidden, 2) if rng.random() < share]
    return names, [edges[i] for i in rng.permutation(len(edges))]


def matrix(names, edges):
    found = np.zeros((len(names), len(names)), dtype=int)
    for cause, effect in edges:
        found[names.index(cause), names.index(effect)] = 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_reachability_is_that_of_matrix_powers(seed):
    names, edges = random_edges(seed)
    graph, one_step = Graph.from_edges(names, edges), matrix(*random_edges(seed))
    paths = sum(np.linalg.matrix_power(one_step, k) for k in range(1, len(names) + 1))
    assert np.array_equal(graph.reachability.numpy(), paths > 0)
    assert np.array_equal(graph.adjacency().numpy().T, one_step > 0)
    for columns in itertools.combinations(range(len(names)), min(2, len(names))):
        downstream = (paths[list(columns)] > 0).any(0)
        assert graph.descendants_of(columns) == list(np.flatnonzero(downstream))
        downstream[list(columns)] = True
        assert graph.affected_by(columns) == list(np.flatnonzero(downstream))
        roots = [j for j in columns if not one_step[list(columns), j].any()]
        assert roots == graph.roots_within(columns)


@pytest.mark.parametrize("seed", SEEDS)
def test_components_are_those_of_union_find(seed):
    names, edges = random_edges(seed)
    graph, one_step = Graph.from_edges(names, edges), matrix(names, edges)
    columns = [int(j) for j in np.random.default_rng(seed).permutation(len(names))[:3]]
    moved = graph.affected_by(columns)
    root = {j: j for j in moved}

    def find(j):
        while root[j] != j:
            j = root[j]
        return j

    for i, j in itertools.product(moved, repeat=2):
        if one_step[i, j]:
            root[find(i)] = find(j)
    parts = {}
    for j in moved:
        parts.setdefault(find(j), []).append(j)
    assert graph.components(columns) == sorted(parts.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_causes_come_before_effects(seed):
    names, edges = random_edges(seed)
    graph = Graph.from_edges(names, edges)
    place = {names[j]: at for at, j in enumerate(graph.order)}
    assert sorted(graph.order) == list(range(len(names)))
    assert all(place[cause] < place[effect] for cause, effect in edges)


def test_features_stay_in_their_order_where_no_cause_forbids_it():
    assert Graph({"a": (), "b": (), "c": ("b",)}).order == [0, 1, 2]
    assert Graph({"a": ("c",), "b": (), "c": ()}).order == [1, 2, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_edges_and_parents_say_the_same(seed):
    names, edges = random_edges(seed)
    graph = Graph.from_edges(names, iter(edges))
    again = Graph({name: graph.parents[name][::-1] for name in names})
    assert graph == again and hash(graph) == hash(again)
    backwards = Graph({name: graph.parents[name] for name in names[::-1]})
    assert (graph == backwards) == (len(names) == 1)
    for j, causes in enumerate(graph.parent_index):
        assert causes == sorted(names.index(c) for c, e in edges if e == names[j])


def test_rows_of_a_table_are_edges():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"cause": ["a", "b"], "effect": ["b", "c"], "note": ["", ""]})
    expected = Graph({"a": (), "b": ("a",), "c": ("b",)})
    rows = table[["cause", "effect"]]
    assert Graph.from_edges("abc", rows.to_numpy()) == expected
    assert Graph.from_edges("abc", rows.itertuples(index=False)) == expected


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({}, "at least one feature"),
        ({"a": ["c"], "b": []}, r"cause of a 'c': expected one of a, b"),
        ({"a": [], "b": ["a", "a"]}, r"causes of b are a, a: expected each once"),
        ({"income": [], "b": "income"}, r"text 'income'. Expected names in a tuple"),
        ({"a": ["a"]}, r"a is listed among its own causes"),
        (
            {"c": [], "a": ["b", "c"], "b": ["a"]},
            r"in a circle: (a -> b -> a|b -> a -> b)\. Remove or turn round",
        ),
    ],
)
def test_wrong_parents_are_named(parents, message):
    with pytest.raises(ValueError, match=message):
        Graph(parents)


@pytest.mark.parametrize(
    ("features", "edges", "message"),
    [
        (["a", "b", "a"], [], r"Features are listed twice: a\."),
        (["a", "b"], [("a", "b"), ("a", "b")], r"edge a -> b is given twice"),
        (["a", "b"], [("a", "c")], r"feature of an edge 'c'"),
        (["a", "b"], [("a", "b", "a")], r"pairs \(cause, effect\), got \('a', 'b', 'a'\)"),
        (["a", "b"], ["ab"], r"pairs \(cause, effect\), got 'ab'"),
        (["a", "b"], [("a", "a")], r"a is listed among its own causes"),
        (["a", "b"], [("a", "b"), ("b", "a")], r"in a circle"),
    ],
)
def test_wrong_edges_are_named(features, edges, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(features, edges)


@pytest.mark.parametrize(
    "question", ["descendants_of", "affected_by", "roots_within", "components"]
)
@pytest.mark.parametrize("column", [-1, 2])
def test_unknown_columns_are_refused(question, column):
    graph = Graph({"a": (), "b": ("a",)})
    with pytest.raises(ValueError, match=f"Unknown column {column}: expected one of 0, 1"):
        getattr(graph, question)([column])


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'income'"):
        Graph({"income": ()}).index("incme")
