"""What unlocks recourse, by enumeration on a made-up table."""

from itertools import combinations

import numpy as np
import pytest
import torch

from lib.search import sets


@pytest.mark.parametrize("n_features", [1, 4, 8])
def test_the_sets_are_all_there_is_small_ones_first(n_features):
    listed = sets.sets_of(n_features)
    assert len(listed) == 2**n_features - 1 == len(listed.unique(dim=0))
    assert (listed.sum(-1).diff() >= 0).all() and listed.any(-1).all()
    small = sets.sets_of(n_features, max_size=1)
    assert torch.equal(small, torch.eye(n_features, dtype=torch.bool))


@pytest.mark.parametrize(("n_features", "n_sets"), [(9, "511"), (0, "0")])
def test_too_many_features_say_how_many_sets(n_features, n_sets):
    with pytest.raises(ValueError, match=rf"{n_features} .* make {n_sets} sets.* 1 to 8"):
        sets.sets_of(n_features)


@pytest.mark.parametrize(
    ("n_features", "n_open", "n_sets"),
    [(4, 2, 15), (9, 8, 255), (75, 6, 63), (9, 9, 256), (75, 75, 76), (75, 0, 76)],
)
def test_sets_of_what_is_open(n_features, n_open, n_sets):
    is_open = torch.arange(n_features) < n_open
    listed = sets.sets_to_search(is_open)
    assert listed.shape == (n_sets, n_features)
    if n_features > 8 and n_open:
        assert not (listed & ~is_open).any() and (listed == is_open).all(-1).any()


@pytest.fixture(scope="module")
def table() -> sets.Table:
    """Most sets lead nowhere."""
    rng = np.random.default_rng(0)
    cost, log_odds, gain = torch.from_numpy(rng.normal(size=(3, 60, 15)))
    has_none = torch.from_numpy(rng.random((60, 15)) < 0.85)
    cost = cost.abs().masked_fill(has_none, torch.inf)
    return sets.Table(sets.sets_of(4), cost, torch.zeros(60, 15, 4), log_odds, gain)


@pytest.fixture(scope="module")
def is_allowed() -> torch.Tensor:
    mask = torch.from_numpy(np.random.default_rng(1).random((60, 4)) < 0.4)
    mask[~mask.any(-1), 0] = True
    return mask


def cheapest(table, person, features, max_acted=4):
    """The lowest cost of a person over the sets of these features, one by one."""
    costs = [torch.inf]
    for cost, mask in zip(table.cost[person].tolist(), table.sets, strict=True):
        acted = set(mask.nonzero().squeeze(-1).tolist())
        if acted <= features and len(acted) <= max_acted:
            costs.append(cost)
    return min(costs)


def test_the_cheapest_by_enumeration(table, is_allowed):
    for max_acted in (None, 4, 3, 2, 1):
        cost, set_index = table.cheapest(is_allowed, max_acted)
        has = cost.isfinite()
        assert (table.sets[set_index].sum(-1) <= (max_acted or 4))[has].all()
        for i, mask in enumerate(is_allowed):
            features = set(mask.nonzero().squeeze(-1).tolist())
            assert cost[i] == cheapest(table, i, features, max_acted or 4)
    with pytest.raises(ValueError, match="max_acted must be a whole number above zero"):
        table.cheapest(is_allowed, max_acted=0)


def test_plans_by_enumeration(table, is_allowed):
    """Each is the cheapest that is no superset of one before it."""
    is_allowed = is_allowed | (torch.arange(60) < 40)[:, None]
    costs, rows = table.plans(is_allowed, 5)
    assert (costs.isfinite().sum(-1) >= 2).sum() > 10
    for i, mask in enumerate(is_allowed):
        left = {
            frozenset(one.nonzero().squeeze(-1).tolist()): cost
            for one, cost in zip(table.sets, table.cost[i].tolist(), strict=True)
            if cost < torch.inf and not (one & ~mask).any()
        }
        for cost, row in zip(costs[i].tolist(), rows[i], strict=True):
            assert cost == min(left.values(), default=torch.inf)
            if left:
                plan = min(left, key=left.__getitem__)
                assert plan == {*table.sets[row].nonzero().squeeze(-1).tolist()}
                left = {one: cost for one, cost in left.items() if not one >= plan}


def test_what_would_unlock_recourse_by_enumeration(table, is_allowed):
    one_more = table.unlocked_by(is_allowed)
    unlocking = table.minimal_unlocking_set(is_allowed)
    log_odds, gain = table.blocked_by(is_allowed)
    for i, mask in enumerate(is_allowed):
        features = set(mask.nonzero().squeeze(-1).tolist())
        is_inside = ~(table.sets & ~mask).any(-1)
        assert log_odds[i] == table.log_odds[i, is_inside].max()
        assert gain[i] == table.gain[i, is_inside].max()
        for k in range(4):
            assert one_more[i, k] == cheapest(table, i, features | {k})
        forbidden = set(range(4)) - features
        expected: set[int] = set()
        if cheapest(table, i, features) == torch.inf:
            for size in range(1, len(forbidden) + 1):
                costs = {
                    added: cheapest(table, i, features | set(added))
                    for added in combinations(forbidden, size)
                }
                best = min(costs, key=costs.__getitem__)
                if costs[best] < torch.inf:
                    expected = set(best)
                    break
        assert set(unlocking[i].nonzero().squeeze(-1).tolist()) == expected
    assert unlocking.any() and (unlocking.sum(-1) == 2).any()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(1, 4, dtype=torch.bool), r"shape \(1, 4\), expected \(60, 4\)"),
        (torch.ones(60, 4), r"is_allowed must be a mask of bool, got torch.float32"),
    ],
)
def test_a_mask_of_others_is_named(table, mask, message):
    with pytest.raises(ValueError, match=message):
        table.cheapest(mask)
