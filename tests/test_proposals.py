"""Proposals against closed forms: spread directions, gradients, balls, farthest points."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.beyond.hare.proposals import Directions, Local, farthest
from lib.beyond.hare.spaces import Features
from lib.method.classifier import Classifier

NAMES = ("a", "b", "c", "d", "e")
WEIGHTS = torch.tensor([1.0, -0.5, 0.3, 2.0, -0.1], dtype=torch.float64)


def space_of(n_free, logit=lambda x: x @ WEIGHTS - 9, n=3):
    """Return people of whom the first n_free of five features are free."""
    x = torch.from_numpy(np.random.default_rng(0).random((n, 5))) * 0.5
    return Features(Classifier(NAMES, logit), x, torch.arange(5) < n_free)


def streams(n, seed=0):
    return np.random.default_rng(seed).spawn(n)


def steps_of(proposal, space, n_candidates, round_index=0, incumbent=None):
    """Return the moves that a proposal makes from the incumbent, with shape (P, N, D)."""
    incumbent = space.x if incumbent is None else incumbent
    values = proposal(space, incumbent, n_candidates, round_index, streams(len(space.x)))
    return values - incumbent


@pytest.mark.parametrize(("n_free", "k"), [(5, 2), (2, 3), (4, 5)])
def test_directions_spread_as_far_as_they_can(n_free, k):
    """Law 7: without the classifier's pull k = d + 1 directions meet at cosine -1/d."""
    space = space_of(n_free, lambda x: 0 * x.sum(1) - 1)
    units = steps_of(Directions(n_steps=600, learning_rate=0.01), space, k).transpose(0, 1)
    cosines = units @ units.mT - 9 * torch.eye(k, dtype=torch.float64)
    expected = -1 / min(n_free, k - 1)
    assert cosines.amax((1, 2)).numpy() == pytest.approx(np.full(3, expected), abs=0.01)


def test_without_diversity_every_direction_is_the_gradients():
    """Law 8, over what is free only."""
    space = space_of(4)
    moves = steps_of(Directions(diversity=0, n_steps=300), space, 6)
    gradient = WEIGHTS * space.free[0]
    cosine = moves @ (gradient / gradient.norm())
    assert cosine.numpy() == pytest.approx(np.ones((6, 3)), abs=1e-3)


def test_directions_are_steps_of_one_length_over_what_is_free():
    space = space_of(3)
    space.span = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0], dtype=torch.float64)
    moves = steps_of(Directions(length=0.7, n_steps=20), space, 8)
    assert (moves / space.span).norm(dim=-1).numpy() == pytest.approx(np.full((8, 3), 0.7))
    assert (moves[..., 3:] == 0).all()
    loose = steps_of(Directions(length=0.7, n_steps=20, is_held=False), space, 8)
    assert (loose[..., 3:] == 0).all() and (loose / space.span).norm(dim=-1).max() < 0.7
    one = steps_of(Directions(n_steps=3), space, 1)
    assert (one / space.span).norm(dim=-1).numpy() == pytest.approx(np.ones((1, 3)))


@pytest.mark.parametrize("n_free", [1, 3])
def test_points_are_uniform_in_a_ball(n_free):
    """Of d dimensions: radius^d is uniform, and the mean is the centre."""
    space = space_of(n_free, n=2)
    space.span = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0], dtype=torch.float64)
    local = Local(n_points=1_000, still=0, least=0, anywhere=0)
    moves = steps_of(local, space, 4, round_index=2) / (0.35 * 0.8**2 * space.span)
    assert (moves[..., n_free:] == 0).all()
    volume = moves.norm(dim=-1) ** n_free
    assert volume.max() <= 1 + 1e-9
    places = (torch.arange(4_000) + 0.5) / 4_000
    gap = (volume.sort(0).values - places[:, None]).abs().amax(0)
    assert (gap < 1.63 / math.sqrt(4_000)).all()  # Kolmogorov's bound at 1 %
    assert (moves.mean(0).abs() < 4 / math.sqrt(4_000)).all()


def test_features_stay_at_what_they_are_and_little_is_nothing():
    space = space_of(3, n=2)
    moved = space.x + 0.3 * space.free
    still = Local(n_points=2_000, still=0.25, least=0, anywhere=0)
    share = (steps_of(still, space, 1, incumbent=moved)[..., :3] == 0).double().mean((0, 1))
    assert share.numpy() == pytest.approx(np.full(3, 0.25), abs=0.028)  # four se
    little = Local(n_points=2_000, first=0.5, still=0, least=0.1, anywhere=0)
    values = little(space, space.x, 1, 0, streams(2))
    gone = (values - space.x)[..., :3].abs()
    assert ((gone == 0) | (gone >= 0.1)).all()
    assert 0.1 < (gone == 0).double().mean() < 0.9


def test_some_points_are_from_anywhere_in_the_first_rounds():
    """They reach beyond the ball, evenly between low and high; later none does."""
    space = space_of(2, n=2)
    local = Local(n_points=4_000, first=1e-3, still=0, least=0)
    for round_index, share in ((0, 0.3), (2, 0.3), (3, 0.0)):
        moves = steps_of(local, space, 1, round_index)
        is_far = (moves.norm(dim=-1) > 1e-3).double().mean(0)
        assert is_far.numpy() == pytest.approx(np.full(2, share), abs=0.029 * (share > 0))
        assert (moves[..., 2:] == 0).all()
    everywhere = Local(n_points=4_000, anywhere=1.0, still=0, least=0)
    values = space.x + steps_of(everywhere, space, 1)
    places = ((torch.arange(4_000) + 0.5) / 4_000)[:, None, None]
    assert ((values.sort(0).values - places)[..., :2].abs() < 1.63 / 4_000**0.5).all()
    # a feature that is left alone is as in the person, not as in the best so far
    rare = replace(everywhere, still=0.4)
    values = rare(space, space.x + 0.3 * space.free, 1, 0, streams(2))
    stays = (values == space.x)[..., :2].double().mean((0, 1))
    assert stays.numpy() == pytest.approx(np.full(2, 0.4), abs=0.022)


def test_farthest_by_brute_force():
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.integers(0, 4, (12, 30, 2))).double()  # with duplicates
    is_good = torch.from_numpy(rng.random((12, 30)) < 0.5)
    begin = torch.from_numpy(rng.integers(0, 4, (30, 2))).double()
    chosen = torch.stack(farthest(points, is_good, begin, 6))
    n_taken = set()
    for i in range(30):
        taken, rows = [begin[i]], []
        for _ in range(6):
            reach = {
                p: min((points[p, i] - t).norm().item() for t in taken)
                for p in is_good[:, i].nonzero().flatten().tolist()
            }
            most = max(reach.values(), default=0)
            rows.append(next((p for p, far in reach.items() if far == most > 0), -1))
            taken += [points[rows[-1], i]] if rows[-1] >= 0 else []
        assert chosen[:, i].tolist() == rows, i
        n_taken.add(len(taken) - 1)
    assert len(n_taken) > 2  # somebody has too few, somebody enough


def test_what_a_space_does_not_have_is_named():
    blind = space_of(
        3, lambda x: torch.from_numpy((x.detach().numpy() @ WEIGHTS.numpy()) - 9)
    )
    with pytest.raises(ValueError, match="need the gradient of the classifier"):
        Directions(n_steps=2)(blind, blind.x, 3, 0, streams(3))
    for settings in ({"first": 0}, {"still": 1.5}, {"anywhere": -0.1}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} "):
            Local(**settings)
