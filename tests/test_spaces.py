"""Spaces: nothing forbidden, and a walk back to the boundary against closed forms."""

import numpy as np
import pytest
import torch

from lib.beyond.hare.spaces import Actions, Features, walk_back
from lib.method.classifier import Classifier
from lib.method.graph import Graph
from lib.method.preferences import Preferences
from lib.method.problem import ROUNDING
from lib.method.scm import CausalModel

NAMES = ("a", "b", "c", "d")
FREE = torch.tensor([True, True, False, True])
WEIGHTS = torch.tensor([1.0, 0.5, 0.3, -0.7], dtype=torch.float64)


def linear(x):
    return x @ WEIGHTS - 0.9


def winding(x):
    """Log-odds whose sign changes many times on a straight line."""
    return torch.sin(9 * x[:, 0]) + torch.cos(7 * x[:, 1] * x[:, 3]) - 1.3


def space_of(logit, n=40, **settings):
    """Return refused people between 0 and 0.3, and what they may set."""
    x = torch.from_numpy(np.random.default_rng(0).random((20 * n, 4))) * 0.3
    x = x[logit(x) < -0.05][:n]
    return Features(Classifier(NAMES, logit), x, FREE, **settings)


def candidates_of(space, n=30, seed=1):
    values = torch.from_numpy(np.random.default_rng(seed).random((n, *space.x.shape)))
    return space.outcome(torch.ones_like(values, dtype=torch.bool), values)


@pytest.fixture
def everything(problem, people):
    x, _ = people
    return Actions(problem, x, Preferences(torch.ones(len(x), 4, dtype=torch.long)))


def test_walked_back_stands_at_the_boundary_on_the_way():
    """Law 1: on the segment, accepted, refused a little nearer to x, never farther."""
    space, eps = space_of(winding), 1e-7
    raw = candidates_of(space)
    closer, is_good = walk_back(space, raw, eps)
    assert is_good.equal(winding(raw.x_cf.reshape(-1, 4)).view(30, 40) >= 0)
    assert 100 < is_good.sum() < 1_100 and space.accepts(closer)[is_good].all()
    way, gone = raw.x_cf - space.x, closer.x_cf - space.x
    share = (gone * way).sum(-1) / way.square().sum(-1)
    torch.testing.assert_close(gone, share[..., None] * way, rtol=0, atol=1e-12)
    assert ((share > 0) & (share <= 1))[is_good].all() and share[is_good].mean() < 0.95
    step = eps * way / way.abs().amax(-1, keepdim=True)
    assert (winding((closer.x_cf - step)[is_good]) < 0).all()
    # nothing is done with what is not acceptable
    for field in ("values", "x_cf", "is_acted"):
        assert getattr(closer, field)[~is_good].equal(getattr(raw, field)[~is_good])


def test_walk_back_on_a_linear_classifier_is_the_closed_form():
    """Law 2: t = -f(x) / (f(c) - f(x)); once more changes nothing."""
    space, eps = space_of(linear), 1e-10
    raw = candidates_of(space)
    closer, is_good = walk_back(space, raw, eps)
    f_x, f_c = linear(space.x), linear(raw.x_cf.reshape(-1, 4)).view(30, 40)
    exact = space.x + (-f_x / (f_c - f_x))[..., None] * (raw.x_cf - space.x)
    torch.testing.assert_close(closer.x_cf[is_good], exact[is_good], rtol=0, atol=eps)
    again, _ = walk_back(space, closer, eps)
    torch.testing.assert_close(again.x_cf, closer.x_cf, rtol=0, atol=eps)
    with pytest.raises(ValueError, match="eps must be above zero"):
        walk_back(space, raw, 0)


def test_features_that_are_not_free_keep_their_bits():
    """Law 4, and what is free stays between low and high."""
    space = space_of(linear)
    wild = 5 * torch.from_numpy(np.random.default_rng(2).normal(size=(50, 40, 4)))
    raw = space.outcome(torch.ones_like(wild, dtype=torch.bool), wild)
    for option in (raw, walk_back(space, raw)[0]):
        kept = option.x_cf[..., ~FREE]
        assert kept.equal(space.x[:, ~FREE].expand_as(kept))
        assert not option.is_acted[..., ~FREE].any() and option.is_acted.any()
        assert ((option.x_cf >= 0) & (option.x_cf <= 1)).all()
    assert raw.x_cf.amax() == 1 and raw.x_cf[..., FREE].amin() == 0
    as_coded = space_of(linear, is_held=False)
    assert as_coded.outcome(torch.ones_like(wild) > 0, wild).x_cf.equal(wild)
    torch.testing.assert_close(space.log_odds(raw.values), linear(raw.x_cf))


def test_nobody_is_moved_because_they_stand_outside(problem, people):
    """Whoever sets a feature to what it is has done nothing, inside the range or not."""
    x = torch.tensor([[-0.5, 0.1, 0.2, 0.3]], dtype=torch.float64)
    features = Features(Classifier(NAMES, linear), x, FREE)
    assert features.outcome(x == x, x - 9).x_cf[0, 0] == -0.5
    outside = people[0].clone()
    outside[:, 3] = problem.population.high[3] + 1
    outside = outside[~problem.accepts(outside)]
    everything = Preferences(torch.ones(len(outside), 4, dtype=torch.long))
    for space in (features, Actions(problem, outside, everything)):
        assert not space.outcome(space.x == space.x, space.x).has_recourse.any()


def test_actions_by_hand(problem, people, everything):
    """Range, consequences, validity and plausibility against the problem's own parts."""
    x, preferences = people
    column = problem.population.actionable_index
    space = Actions(problem, x, preferences, margin=0.5)
    trained = problem.population.x["recourse/train"].numpy()
    low, high = np.quantile(trained, [0.005, 0.995], axis=0)
    ends = torch.stack([space.low, space.high, space.span])
    assert ends.numpy() == pytest.approx(np.stack([low, high, high - low]))
    values = x + torch.from_numpy(np.random.default_rng(0).normal(size=(60, *x.shape)))
    every = torch.ones_like(values, dtype=torch.bool)
    option = space.outcome(every, values)
    allowed = torch.zeros_like(x, dtype=torch.bool)
    allowed[:, column] = preferences.is_actionable
    assert option.is_acted.equal(allowed.expand_as(values))
    assert option.values[~option.is_acted].equal(x.expand_as(values)[~option.is_acted])
    before = x.expand_as(values)
    followed = problem.flow.counterfactual(before, option.is_acted, option.values)
    torch.testing.assert_close(option.x_cf, followed, rtol=0, atol=1e-12)
    log_odds = problem.classifier.logit(followed)
    torch.testing.assert_close(space.log_odds(option.values), log_odds)
    gain = problem.flow.log_prob(followed) - problem.flow.log_prob(x)
    is_good, plausible = space.accepts(option), gain >= ROUNDING
    assert is_good.equal((log_odds >= 0.5 + ROUNDING) & plausible) and is_good.any()
    assert ((log_odds >= 0) & plausible & ~is_good).any()  # the margin matters
    # what was found where all is free is judged as forbidden where it is not
    free = everything.outcome(every, values)
    is_forbidden = (free.is_acted & ~allowed).any(-1)
    assert (everything.accepts(free) & is_forbidden).any()
    assert not space.accepts(free)[is_forbidden].any()


def test_some_people_are_judged_by_their_own_transforms(problem, everything):
    """Asked before about all, a space of the same people in another order starts afresh."""
    x, order = everything.x, torch.arange(len(everything.x)).flip(0)
    every = torch.ones_like(x, dtype=torch.bool)
    direction = torch.tensor([0.0, 0.0, 0.0, -1.0, -0.5, 0.5, 0.5], dtype=x.dtype)
    n_good = 0
    for size in (0.2, 0.5, 1.0, 2.0):
        everything.accepts(everything.outcome(every, x + size * direction))
        some = everything.of(order)
        tried = some.outcome(every, some.x + size * direction)
        gain = problem.flow.log_prob(tried.x_cf) - problem.flow.log_prob(some.x)
        is_good = (problem.classifier.logit(tried.x_cf) >= ROUNDING) & (gain >= ROUNDING)
        assert torch.equal(some.accepts(tried), is_good)
        n_good += int(is_good.sum())
    assert 0 < n_good < 4 * len(x)


def test_bad_input_is_named(problem, people):
    h, zero = Classifier(NAMES, linear), torch.zeros(3, 4, dtype=torch.float64)
    x, preferences = people
    backwards = CausalModel()
    backwards.graph = Graph(dict(reversed(problem.flow.graph.parents.items())))
    for call, message in (
        (lambda: Features(h, zero, FREE & False), "No feature is free"),
        (lambda: Features(h, zero + 1, FREE), "already accepted"),
        (lambda: Actions(problem, x, preferences[:5]), r"has shape \(5, 4\), expected"),
        (lambda: Actions(problem, x, preferences, -0.1), "margin is -0.1, expected log-"),
        (lambda: Actions(problem, x, preferences, float("nan")), "margin is nan"),
        (lambda: Actions(problem, x, preferences, 0, backwards), "different graphs"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
