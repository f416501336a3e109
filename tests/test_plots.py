"""Figures are the same bytes on a rerun, and say what they show."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.studies import plots


def test_saved_figures_are_byte_equal(problem, tmp_path):
    plots.use_style()
    graph = problem.population.graph
    at = {
        name: (0.1 + 0.13 * j, 0.2 + 0.1 * (j % 3)) for j, name in enumerate(graph.features)
    }
    for run in ("one", "two"):
        figure, ax = plt.subplots()
        plots.causal_graph(ax, graph, problem.population.kinds, at)
        plots.save(figure, tmp_path / run, "graph")
        plt.close(figure)
    for kind in ("png", "pdf"):
        assert (tmp_path / f"one/graph.{kind}").read_bytes() == (
            tmp_path / f"two/graph.{kind}"
        ).read_bytes(), kind


def test_log_densities_are_drawn_at_the_edge_and_not_dropped():
    figure, ax = plt.subplots()
    plots.log_densities(
        ax, np.array([-8.0, -9.0]), np.array([-7.0, -400.0]), np.array([True, True])
    )
    assert ax.collections[0].get_offsets().tolist() == [[-8.0, -7.0], [-9.0, -25.0]]
    plt.close(figure)


def test_frontier_draws_a_line_only_where_something_was_searched():
    trials = pd.DataFrame(
        {
            "profile": ["linear"] * 3,
            "plausibility_mean": [0.5, 0.4, 0.6],
            "hap_mean": [0.2, 0.1, 0.9],
            "on_front": [True, True, False],
        }
    )
    ours = pd.DataFrame(
        {
            "profile": ["constant", "linear"],
            "plausibility": [0.8, 0.5],
            "hap": [1.0, 0.2],
            "validity": [0.99, 0.9],
            "reported": True,
        }
    )
    figure, ax = plt.subplots()
    plots.frontier(ax, trials, ours, ours, lowest_validity=0.95)
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0.4, 0.1], [0.5, 0.2]]]
    hollow = [
        tuple(dots.get_facecolor()[0]) == (1, 1, 1, 1)
        for dots in ax.collections
        if dots.get_label().endswith("ours")
    ]
    assert hollow == [False, True]
    assert "constant: front of the search" not in ax.get_legend_handles_labels()[1]
    plt.close(figure)


def intervals(low: list) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": "oracle",
            "group": ["a", "b"],
            "estimate": [0.2, 0.3],
            "low": low,
            "high": [0.4, 0.5],
        }
    )


def test_intervals_are_drawn_where_there_are_enough_people_and_told_where_not():
    figure, ax = plt.subplots()
    plots.intervals(ax, intervals([0.1, "too few"]), "group", ["b", "a"])
    (bar,) = ax.containers[0].lines[2][0].get_segments()
    assert np.allclose(bar, [[0.1, 1], [0.4, 1]])  # "a" is the second category
    assert [(text.get_position()[1], text.get_text()) for text in ax.texts] == [
        (0, "too few")
    ]
    plt.close(figure)


def test_bands_have_a_gap_where_there_are_too_few_people():
    figure, ax = plt.subplots()
    plots.interval_band(ax, [0.5, 0.9], intervals(["too few", 0.1]), "oracle")
    assert ax.lines[0].get_ydata().tolist() == [0.2, 0.3]
    assert (
        len(ax.collections[0].get_paths()) == 1
        and ax.collections[0].get_paths()[0].vertices[:, 0].min() == 0.9
    )
    plt.close(figure)
