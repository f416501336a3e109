"""Base generators against closed forms on linear classifiers, and the laws they share."""

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.spatial import distance_matrix

from lib.beyond.hare import fitted, generators, tabular
from lib.beyond.hare.draws import streams
from lib.method.classifier import Classifier

N = 12


@pytest.fixture(scope="module")
def table():
    return tabular.adult()


@pytest.fixture(scope="module")
def h(table):
    network, _ = fitted.fit_classifier(table, n_epochs=2, seed=1)
    return Classifier(table.features, network)


@pytest.fixture(scope="module")
def x(table, h):
    return table.refused(h.accepts, N)


def linear(table, weight, bias):
    return Classifier(table.features, lambda x: x @ weight + bias)


@pytest.fixture(scope="module")
def slope(table):
    """Weights on all features, those that nobody may move the largest."""
    weight = 3 * torch.linspace(-1.0, 1.0, len(table.features), dtype=torch.float64)
    weight[table.is_free] = torch.tensor([2.0, -0.5, 1.5, 1.0], dtype=torch.float64)
    return weight


GENERATORS = {  # as functions of a table, a classifier, people, and their streams
    "wachter": lambda table, h, x, _: generators.wachter(table, h, x),
    "growing spheres": generators.growing_spheres,
    "face": lambda table, h, x, _: generators.face(table, h, x, np.random.default_rng(3)),
}
every = pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)


@every
def test_what_is_found_is_accepted_possible_and_keeps_what_nobody_can_change(
    table, h, x, generate
):
    given = x.clone()
    r = generate(table, h, x, streams(N, 0))
    assert torch.equal(x, given)
    assert h.accepts(r).all()
    assert ((r >= 0) & (r <= 1)).all()
    assert torch.equal(r[:, ~table.is_free], x[:, ~table.is_free])
    assert (r != x).any(-1).all()


@every
def test_a_person_alone_gets_what_they_get_among_others(table, h, x, generate):
    together = generate(table, h, x, streams(N, 0))
    for rows in (torch.arange(N).flip(0), torch.tensor([7])):
        rngs = [streams(N, 0)[i] for i in rows.tolist()]
        some = generate(table, h, x[rows], rngs)
        assert torch.allclose(some, together[rows], rtol=0, atol=1e-9)


@every
def test_no_recourse_is_a_row_of_nan(table, x, generate, monkeypatch):
    """A classifier that looks at sex alone, which nobody can change."""
    monkeypatch.setattr(generators, "N_STEPS", 100)
    only = torch.zeros(len(table.features), dtype=torch.float64)
    only[table.features.index("sex")] = 1.0
    blind = linear(table, only, -2.0)
    assert generate(table, blind, x[:2], streams(2, 0)).isnan().all()


def test_wachter_goes_down_the_slope_and_stops_within_a_step_of_the_boundary(table, slope):
    """On a linear f no free feature moves against the sign of its slope.

    One step of Adam moves no feature by more than about its learning rate.
    """
    h = linear(table, slope, -2.5)
    people = table.refused(h.accepts, 50)
    r = generators.wachter(table, h, people)
    has_one = ~r.isnan().any(-1)
    moves, depth = ((r - people) * slope)[has_one], h.logit(r[has_one])
    assert (moves >= 0).all() and (moves > 0).any(-1).all()
    assert (depth >= 0).all()
    step = 1.05 * generators.STEP * slope[table.is_free].abs().sum()
    assert (depth <= step).all() and has_one.any()


def test_growing_spheres_ends_in_the_first_shell_that_reaches(table, slope):
    """On a linear f of equal slopes, all points of one orthant go straight to the boundary.

    That is a sixteenth of the points, so that a shell which reaches well beyond the
    boundary holds an accepted one.
    """
    equal = torch.where(table.is_free, slope.sign(), slope)
    h = linear(table, equal, -2.5)
    people = table.refused(h.accepts, 50)
    rngs = streams(len(people), 0)
    r = generators.growing_spheres(table, h, people, rngs, is_clipped=False)
    nearest = -h.logit(people)
    length = (r - people).abs().sum(-1)
    outer = generators.SHELL * ((nearest / generators.SHELL).floor() + 1)
    assert (length >= nearest).all()
    reaches = outer - nearest > 0.05
    assert reaches.sum() > 25
    assert (length[reaches] <= outer[reaches]).all()


def test_growing_spheres_leaves_the_range_where_it_is_not_clipped(table, slope):
    """With all of [0, 1] refused, only points outside are left."""
    far = linear(table, slope, -20.0)
    people = table.x["test"][:5]
    free = generators.growing_spheres(table, far, people, streams(5, 0), is_clipped=False)
    assert far.accepts(free).all() and ((free < 0) | (free > 1)).any(-1).all()
    assert generators.growing_spheres(table, far, people, streams(5, 0)).isnan().all()


def test_path_lengths_are_networkxs():
    rng = np.random.default_rng(0)
    sample, starts = rng.random((60, 3)), rng.random((4, 3))
    sample[1] = sample[0]  # twins: an edge of length 0
    lengths = generators.path_lengths(sample, starts, n_neighbours=3)
    between, out = distance_matrix(sample, sample), distance_matrix(starts, sample)
    for n, distances in enumerate(out):
        graph = nx.Graph()
        graph.add_nodes_from(range(61))
        for i, row in enumerate(between):
            near = [j for j in np.argsort(row, kind="stable") if j != i][:3]
            graph.add_weighted_edges_from((i, int(j), row[j]) for j in near)
        near = np.argsort(distances)[:3]
        graph.add_weighted_edges_from((60, int(j), distances[j]) for j in near)
        theirs = nx.single_source_dijkstra_path_length(graph, 60)
        expected = [theirs.get(j, np.inf) for j in range(60)]
        np.testing.assert_allclose(lengths[n], expected, atol=1e-12)


def test_face_ends_at_whoever_is_accepted_with_the_shortest_path(table, h, x):
    r = generators.face(table, h, x, np.random.default_rng(0))
    people = table.x["train"]
    drawn = people[np.random.default_rng(0).permutation(len(people))[: len(people) // 10]]
    for person, path, end in zip(
        x, generators.path_lengths(drawn.numpy(), x.numpy()), r, strict=True
    ):
        ends = torch.where(table.is_free, drawn, person)
        path[~h.accepts(ends).numpy()] = np.inf
        assert torch.equal(end, ends[path.argmin()])


def test_face_as_published_is_the_nearest_accepted_person(table, h, x):
    """By brute force over the same tenth, all features as they are."""
    r = generators.nearest_accepted(table, h, x, np.random.default_rng(5))
    everyone = torch.cat([table.x["train"], table.x["test"]])
    drawn = np.random.default_rng(5).permutation(len(everyone))[: round(len(everyone) / 10)]
    accepted = everyone[drawn][h.accepts(everyone[drawn])]
    assert torch.allclose(
        (r - x).abs().sum(-1), torch.cdist(x, accepted, p=1).amin(-1), atol=1e-12
    )
    assert (r[:, table.is_immutable] != x[:, table.is_immutable]).any()


def test_who_is_accepted_already_is_refused(table, h):
    with pytest.raises(ValueError, match="already accepted"):
        generators.wachter(table, h, table.x["test"][:900])
