"""Graphs against brute force on random ones: powers of the adjacency matrix, and scipy."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components

from lib.method.graph import Graph


@pytest.fixture(params=range(25))
def edges(request) -> tuple[list[str], list[tuple[str, str]]]:
    """Features in random order, and edges that run along a hidden causal order."""
    rng = np.random.default_rng(request.param)
    names = [f"x{i}" for i in range(rng.integers(1, 9))]
    hidden = list(rng.permutation(names))
    share = rng.random()
    pairs = [pair for pair in itertools.combinations(hidden, 2) if rng.random() < share]
    return names, [pairs[i] for i in rng.permutation(len(pairs))]


def matrix(names, pairs):
    one_step = np.zeros((len(names), len(names)), dtype=int)
    for cause, effect in pairs:
        one_step[names.index(cause), names.index(effect)] = 1
    return one_step


def test_paths_are_those_of_matrix_powers(edges):
    (names, _), graph, one_step = edges, Graph.from_edges(*edges), matrix(*edges)
    paths = sum(np.linalg.matrix_power(one_step, k) for k in range(1, len(names) + 1))
    assert np.array_equal(graph.reachability.numpy(), paths > 0)
    assert np.array_equal(graph.adjacency().numpy().T, one_step > 0)
    in_order = paths[np.ix_(graph.order, graph.order)]
    assert np.array_equal(in_order, np.triu(in_order, 1))
    for columns in itertools.combinations(range(len(names)), min(2, len(names))):
        downstream = (paths[list(columns)] > 0).any(0)
        assert graph.descendants_of(columns) == list(np.flatnonzero(downstream))
        downstream[list(columns)] = True
        assert graph.affected_by(columns) == list(np.flatnonzero(downstream))
        roots = [j for j in columns if not one_step[list(columns), j].any()]
        assert roots == graph.roots_within(columns)


def test_components_are_those_of_scipy(edges):
    graph, one_step = Graph.from_edges(*edges), matrix(*edges)
    columns = [int(j) for j in np.random.default_rng(0).permutation(len(one_step))[:3]]
    moved = np.array(graph.affected_by(columns))
    n_components, label = connected_components(one_step[np.ix_(moved, moved)])
    expected = [moved[label == i].tolist() for i in range(n_components)]
    assert graph.components(columns) == sorted(expected)


def test_edges_and_parents_say_the_same(edges):
    names, pairs = edges
    graph = Graph.from_edges(names, iter(pairs))
    assert graph == Graph({name: graph.parents[name][::-1] for name in names})
    backwards = Graph({name: graph.parents[name] for name in names[::-1]})
    assert (graph == backwards) == (len(names) == 1)
    for j, causes in enumerate(graph.parent_index):
        assert causes == sorted(names.index(c) for c, e in pairs if e == names[j])


def test_features_stay_in_their_order_where_no_cause_forbids_it():
    assert Graph({"a": (), "b": (), "c": ("b",)}).order == [0, 1, 2]
    assert Graph({"a": ("c",), "b": (), "c": ()}).order == [1, 2, 0]


def test_rows_of_a_table_are_edges():
    rows = pd.DataFrame({"cause": ["a", "b"], "effect": ["b", "c"]}).to_numpy()
    assert Graph.from_edges("abc", rows) == Graph({"a": (), "b": ("a",), "c": ("b",)})


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({}, "parents is empty"),
        ({"a": ["c"], "b": []}, r"cause of a 'c': expected one of a, b"),
        ({"a": [], "b": ["a", "a"]}, r"causes of b are a, a: expected each once"),
        (
            {"income": [], "b": "income"},
            r"b are the text 'income'. Expected names in a tuple",
        ),
        ({"a": ["a"]}, r"in a circle: a -> a\."),
        ({"c": [], "a": ["b", "c"], "b": ["a"]}, r"circle: (a -> b -> a|b -> a -> b)\."),
    ],
)
def test_wrong_parents_are_named(parents, message):
    with pytest.raises(ValueError, match=message):
        Graph(parents)


@pytest.mark.parametrize(
    ("features", "pairs", "message"),
    [
        ("aba", [], "each feature once, got a, b, a"),
        ("ab", [("a", "b"), ("a", "b")], "causes of b are a, a: expected each once"),
        ("ab", [("a", "c")], "feature of an edge 'c'"),
        ("ab", [("a", "b", "a")], r"pairs \(cause, effect\), got \('a', 'b', 'a'\)"),
        ("ab", ["ab"], r"pairs \(cause, effect\), got 'ab'"),
    ],
)
def test_wrong_edges_are_named(features, pairs, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(features, pairs)


@pytest.mark.parametrize("column", [-1, 2])
def test_unknown_columns_and_names_are_refused(column):
    graph = Graph({"income": (), "debt": ("income",)})
    with pytest.raises(ValueError, match=f"Unknown column {column}: expected one of 0, 1"):
        graph.components([column])
    with pytest.raises(ValueError, match="Did you mean 'income'"):
        graph.index("incme")
