"""Figures are the same bytes on a rerun, and say what they show."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.method.graph import Graph
from lib.paper.pictures import plots


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


def test_samples_become_densities():
    figure, ax = plt.subplots()
    rng = np.random.default_rng(0)
    plots.marginal(ax, {"data": rng.normal(size=3_000)}, "loan_amount", bins=40)
    assert ax.get_xlabel() == "loan amount (model units)"
    x, y = ax.patches[0].get_xy().T  # what is filled, once around
    assert (x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 == pytest.approx(1)
    plt.close(figure)


def test_in_the_legend_a_label_stands_once():
    figure, ax = plt.subplots()
    for height in (0, 1):
        ax.axhline(height, label="loss")
    plots.legend_once(figure, ax)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["loss"]
    plt.close(figure)


def test_people_seen_stay_below_the_errors():
    figure, ax = plt.subplots()
    seen = np.random.default_rng(0).normal(size=200)
    plots.errors_by_place(ax, np.array([-9.0, 9.0]), np.array([0.1, -0.2]), seen)
    (below,) = (other for other in figure.axes if other is not ax)
    heights = [bar.get_height() for bar in below.patches]
    assert sum(heights) == len(seen)
    assert max(heights) == below.get_ylim()[1] / 4
    assert ax.get_xlim()[0] < -9 and ax.get_xlim()[1] > 9
    plt.close(figure)


def test_what_icarma_adds_to_carma_has_a_colour_of_its_own():
    figure, ax = plt.subplots()
    plots.architecture(ax)
    added = matplotlib.colors.to_rgba(plots.COLOURS["added"])
    boxes = [patch for patch in ax.patches if patch.get_edgecolor() == added]
    centres = [
        (box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2)
        for box in boxes
        if isinstance(box, matplotlib.patches.FancyBboxPatch)
    ]
    box_texts = {
        text.get_text()
        for text in ax.texts
        if any(np.allclose(text.get_position(), centre) for centre in centres)
    }
    assert {
        "weights\n$w(s)$",
        "priors\n$p(s)$",
        "difficulty\n$\\eta(s)$",
        "can do\n$A_u$",
        "plausibility:\n$-\\log p$",
        "feasibility:\nin range?",
    } < box_texts
    assert (
        not {"person $x$\n(N, 7)", "mask network\n$q$ (N, 4)", "cost\n(weighted)"}
        & box_texts
    )
    plt.close(figure)


def beside_paper(method: str) -> pd.DataFrame:
    """One setting of the paper's table with ours beside it."""
    row = {"setting": "4", "metric": "joint", "mean": 0.9, "paper": 0.8, "method": method}
    row |= {"networks": "", "lowest": np.nan, "highest": np.nan, "reported": 0.9}
    return pd.DataFrame([row])


@pytest.mark.parametrize("method", ["iCARMA", "oracle", "search", "as printed", "pruned"])
def test_every_method_of_the_tables_can_be_drawn_beside_the_paper(method):
    figure, ax = plt.subplots()
    plots.beside_paper(ax, beside_paper(method), "joint")
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0, 0.9]]]
    assert ax.get_legend_handles_labels()[1] == [f"{method}, ours", "the paper"]
    plt.close(figure)


def test_of_networks_mean_range_and_the_reported_member_are_drawn():
    rows = beside_paper("iCARMA").assign(lowest=0.7, highest=0.95, reported=0.75)
    figure, ax = plt.subplots()
    plots.beside_paper(ax, rows, "joint")
    mean, reported = (line.get_xydata().tolist() for line in ax.lines)
    assert (mean, reported) == ([[0, 0.9]], [[0, 0.75]])
    band, dash = (lines.get_segments()[0].tolist() for lines in ax.collections)
    assert band == [[0, 0.7], [0, 0.95]] and dash[0][1] == 0.8
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


def test_intervals_are_drawn_where_there_are_enough_people_and_said_where_not():
    figure, ax = plt.subplots()
    plots.intervals(ax, intervals([0.1, "too few"]), "group", ["b", "a"])
    (bar,) = ax.containers[0].lines[2][0].get_segments()
    assert np.allclose(bar, [[0.1, 1], [0.4, 1]])  # "a" is the second category
    assert [(text.get_position()[1], text.get_text()) for text in ax.texts] == [
        (0, "too few")
    ]
    plt.close(figure)


def test_the_reported_network_is_drawn_beside_the_mean_of_several():
    figure, ax = plt.subplots()
    rows = intervals([0.1, "too few"]).assign(reported=[0.2, 0.3])
    networks = rows.assign(method="iCARMA", reported=[0.25, 0.35])
    nobody = networks.iloc[:1].assign(reported="too few", low="too few", group="b")
    plots.intervals(ax, pd.concat([rows, networks[:1], nobody]), "group", ["a", "b"])
    dots = [dot for dot in ax.collections if "reported" in str(dot.get_label())]
    assert [dot.get_label() for dot in dots] == ["iCARMA, the reported network"]
    assert np.allclose(dots[0].get_offsets(), [[0.25, 0.17 + 0.13]])
    plt.close(figure)


CHAIN = Graph({"amount": (), "income": ("amount",), "savings": ("income",), "age": ()})
PLACES = {"amount": (0.1, 0.5), "income": (0.4, 0.5), "savings": (0.7, 0.5), "age": (1, 1)}


def test_an_action_is_drawn_as_what_happens_to_each_feature():
    """Acted on, following and forbidden features differ, and only movers have numbers."""
    moves = {"income": "10 -> 30 of 100 (-1.3 -> 2.0)", "savings": "-2 -> -0.5"}
    figure, ax = plt.subplots()
    plots.action_on_graph(
        ax, CHAIN, PLACES, moves, is_acted=["income"], forbidden=["savings", "age"]
    )
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if "→" in text] == ["10 → 30 of 100", "−2 → −0.5"]
    faces = [tuple(np.round(dots.get_facecolor()[0], 2)) for dots in ax.collections]
    assert len(set(faces)) == 4  # what is closed and follows all the same is a follower
    assert [dots.get_linestyle()[0][1] is not None for dots in ax.collections] == [
        False,
        False,
        True,
        True,
    ]
    into_income, into_savings = ax.patches
    assert into_income.get_linestyle() == ":"  # its causes no longer decide it
    assert into_savings.get_linewidth() > into_income.get_linewidth()
    plt.close(figure)


def test_a_slice_shows_the_decision_at_each_point():
    """The ground is green just where the person would be accepted."""
    figure, ax = plt.subplots()
    plots.decision_slice(
        ax,
        lambda points: points[:, 0] > 1,
        low=(0, 0),
        high=(2, 2),
        now=(0.5, 1),
        moves={"misled": (1.5, 1), "truth": (1.8, 1.5)},
    )
    refused, accepted = (path.get_extents() for path in ax.collections[0].get_paths())
    assert refused.x1 == pytest.approx(1, abs=0.02) == accepted.x0
    assert len(ax.patches) == 2
    plt.close(figure)
