"""Figures are the same bytes on a rerun, and show the numbers that they are given."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from lib.method.graph import Graph
from lib.paper.pictures import plots

CHAIN = Graph({"amount": (), "income": ("amount",), "savings": ("income",), "age": ()})
PLACES = {"amount": (0.1, 0.5), "income": (0.4, 0.5), "savings": (0.7, 0.5), "age": (1, 1)}


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_saved_figures_are_byte_equal(problem, tmp_path):
    plots.use_style()
    population = problem.population
    for run in ("one", "two"):
        figure, (left, right) = plt.subplots(2)
        plots.causal_graph(left, population.graph, population.kinds, plots.LOAN_PLACES)
        plots.architecture(right)
        plots.legend_once(figure, left)
        plots.save(figure, tmp_path / run, "graph")
        plt.close(figure)
    for kind in ("png", "pdf"):
        one, two = (tmp_path / f"{run}/graph.{kind}" for run in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), kind


def test_samples_become_densities(ax):
    sample = np.random.default_rng(0).normal(size=3_000)
    plots.marginal(ax, {"data": sample}, "loan_amount", bins=40)
    x, y = ax.patches[0].get_xy().T  # what is filled, once around
    assert (x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 == pytest.approx(1)


def test_people_seen_stay_below_the_errors(ax):
    seen = np.random.default_rng(0).normal(size=200)
    plots.errors_by_place(ax, np.array([-9.0, 9.0]), np.array([0.1, -0.2]), seen)
    (below,) = (other for other in ax.figure.axes if other is not ax)
    heights = [bar.get_height() for bar in below.patches]
    assert sum(heights) == len(seen)
    assert max(heights) == below.get_ylim()[1] / 4


@pytest.mark.parametrize("networks", ["as printed", "as chosen", "pruned"])
def test_of_networks_mean_range_and_the_reported_member_are_drawn(ax, networks):
    row = {"setting": "4", "metric": "joint", "networks": networks, "agrees": None}
    row |= {"mean": 0.9, "paper": 0.8, "lowest": 0.7, "highest": 0.95, "reported": 0.75}
    plots.beside_paper(ax, pd.DataFrame([row]), "joint")
    mean, reported = (line.get_xydata().tolist() for line in ax.lines)
    assert (mean, reported) == ([[0, 0.9]], [[0, 0.75]])
    band, dash = (lines.get_segments()[0].tolist() for lines in ax.collections)
    assert band == [[0, 0.7], [0, 0.95]] and dash[0][1] == 0.8


def test_intervals_stand_in_the_order_of_the_categories(ax):
    rows = {"group": ["a", "b"], "estimate": [0.2, 0.3], "low": 0.1, "high": [0.4, 0.5]}
    plots.intervals(ax, pd.DataFrame(rows), "group", ["b", "a"])
    of_a, of_b = ax.containers[0].lines[2][0].get_segments()
    assert np.allclose(of_a, [[0.1, 1], [0.4, 1]]) and np.allclose(
        of_b, [[0.1, 0], [0.5, 0]]
    )


def test_an_action_is_drawn_as_what_happens_to_each_feature(ax):
    """Only what moves has numbers, and only what is acted on is cut from its causes."""
    moves = {"income": "10 -> 30 of 100 (-1.3 -> 2.0)", "savings": "-2 -> -0.5"}
    plots.action_on_graph(
        ax, CHAIN, PLACES, moves, ["income"], forbidden=["savings", "age"]
    )
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if "→" in text] == ["10 → 30 of 100", "−2 → −0.5"]
    into_income, into_savings = ax.patches
    assert into_income.get_linestyle() == ":"  # its causes no longer decide it
    assert into_savings.get_linewidth() > into_income.get_linewidth()


def test_a_slice_shows_the_decision_at_each_point(ax):
    """The ground is green just where the person would be accepted."""
    moves = {"misled": (1.5, 1), "truth": (1.8, 1.5)}
    plots.decision_slice(ax, lambda at: at[:, 0] > 1, (0, 0), (2, 2), (0.5, 1), moves)
    refused, accepted = (path.get_extents() for path in ax.collections[0].get_paths())
    assert refused.x1 == pytest.approx(1, abs=0.02) == accepted.x0
    assert len(ax.patches) == 2


def test_a_figure_for_a_slide_has_type_of_9_points_and_leaves_the_figure_as_it_is():
    figure, axes = plt.subplots(1, 2, figsize=(10, 5))
    axes[0].set_xlabel("small", fontsize=6)
    figure.suptitle("the slide's own")
    large = plots.for_slide(figure)
    assert min(text.get_fontsize() for text in large.findobj(Text)) == 9
    assert (large.get_size_inches() <= plots.SLIDE).all() and not large.get_suptitle()
    assert axes[0].xaxis.label.get_fontsize() == 6 and figure.get_suptitle()
    assert figure.get_size_inches().tolist() == [10, 5]
    assert plt.get_fignums() == [figure.number]
    plt.close(figure)
