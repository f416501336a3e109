"""Hidden ideals: where they lie, and how the two protocols differ."""

import numpy as np
import pytest
import torch

from lib.beyond.hare import fitted, ideals, tabular
from lib.beyond.hare.draws import streams
from lib.beyond.hare.generators import growing_spheres
from lib.method.classifier import Classifier

N = 20


@pytest.fixture(scope="module")
def table():
    return tabular.compas()


@pytest.fixture(scope="module")
def h(table):
    return Classifier(table.features, fitted.fit_classifier(table, seed=1)[0])


@pytest.fixture(scope="module")
def x(table, h):
    return table.refused(h.accepts, N)


@pytest.mark.parametrize("radius", [ideals.NEAR, ideals.INTERMEDIATE, ideals.FAR])
def test_own_ideals_are_recourse_on_the_boundary(table, h, x, radius):
    given = x.clone()
    ideal = ideals.personal(table, h, x, radius, streams(N, 0))
    assert torch.equal(x, given)
    has_one = ~ideal.isnan().any(-1)
    assert has_one.sum() >= N - 2
    ideal, person = ideal[has_one], x[has_one]
    assert h.accepts(ideal).all()
    assert ((ideal >= 0) & (ideal <= 1)).all()
    assert torch.equal(ideal[:, ~table.is_free], person[:, ~table.is_free])
    assert (h.logit(ideal) < 1e-9).all()  # accepted, and only just


def test_own_ideals_differ_between_people_and_travel_with_them(table, h, x):
    ideal = ideals.personal(table, h, x, ideals.FAR, streams(N, 0))
    twins = x[:1].repeat(2, 1)
    one, other = ideals.personal(table, h, twins, ideals.FAR, streams(2, 0))
    assert not torch.equal(one, other)
    moved = ideals.personal(table, h, x.flip(0), ideals.FAR, streams(N, 0)[::-1])
    assert torch.allclose(moved, ideal.flip(0), rtol=0, atol=1e-9, equal_nan=True)


def test_directions_are_the_published_ones():
    """Unit vectors; the first of a seed is a plain draw of numpy's legacy generator."""
    for table in (tabular.adult(), tabular.compas()):
        for seed in (1, 2, 3, 4):
            z = ideals.directions(table, seed).numpy()
            np.testing.assert_allclose(np.square(z).sum(-1), 1, atol=1e-5)
            first = np.random.RandomState(seed).uniform(-1, 1, z.shape[1])
            np.testing.assert_allclose(z[0], first / np.linalg.norm(first), atol=1e-6)
    with pytest.raises(ValueError, match="Unknown data set and seed"):
        ideals.directions(table, 9)


def test_as_published_all_share_a_direction(table, h, x):
    """Each starts at the first attempt that is refused; step by step, one person a time."""
    seed, radius = 2, ideals.INTERMEDIATE
    published = ideals.as_published(table, h, x, seed, radius)
    ways = ideals.directions(table, seed)
    for i, person in enumerate(x):
        for z in ways:
            p = person.clone()
            p[table.is_free] = (p[table.is_free] + radius * z).clamp(0, 1)
            if not h.accepts(p[None]).item():
                break
        rng = [np.random.default_rng(seed)]
        ideal = growing_spheres(table, h, p[None], rng, is_clipped=False).clamp(0, 1)
        assert torch.allclose(published[i], ideal[0], atol=1e-12), i
    # they are clipped after they were judged; our own are not
    assert not h.accepts(ideals.as_published(table, h, x, seed, ideals.FAR)).all()


def test_closeness_obeys_its_laws():
    """Law 10, and numpy's formula person by person."""
    rng = np.random.default_rng(0)
    x, r, ideal = (torch.from_numpy(rng.normal(size=(3, 50, 4))) for _ in range(3))
    near, away = ideals.closeness(x, r, ideal)
    for i in np.ndindex(3, 50):
        move, wanted = (r[i] - x[i]).numpy(), (ideal[i] - x[i]).numpy()
        cosine = move @ wanted / np.linalg.norm(move) / np.linalg.norm(wanted)
        assert away[i].item() == pytest.approx(1 - cosine, abs=1e-12)
        assert near[i].item() == pytest.approx(np.linalg.norm((r - ideal)[i]))
    assert not any(distance.any() for distance in ideals.closeness(x, ideal, ideal))
    for scale in (1e-30, 1e-3, 7.0):
        scaled = ideals.closeness(0 * x, scale * (r - x), ideal - x)[1]
        assert scaled.numpy() == pytest.approx(away.numpy(), abs=1e-9)
    # who did not move, or wants nothing, has no direction
    is_still = torch.stack([ideals.closeness(x, x, ideal)[1], ideals.closeness(x, r, x)[1]])
    assert is_still.isnan().all()
    for few in ((x, r[:2], ideal), (x, r, ideal[:2])):
        with pytest.raises(ValueError, match="has shape"):
            ideals.closeness(*few)
