"""What unlocks recourse, by enumeration on a made-up table."""

from itertools import product

import numpy as np
import pytest
import torch

from lib.search import sets


@pytest.mark.parametrize("n_features", [1, 4, 8])
def test_the_sets_are_all_there_is_small_ones_first(n_features):
    found = sets.sets_of(n_features)
    assert len(found) == 2**n_features - 1 == len({tuple(own) for own in found.tolist()})
    assert (found.sum(-1).diff() >= 0).all() and found.any(-1).all()


@pytest.mark.parametrize(("n_features", "n_sets"), [(9, "511"), (40, "1,099,511,627,775")])
def test_too_many_features_say_how_many_sets(n_features, n_sets):
    with pytest.raises(ValueError, match=rf"{n_features} .* make {n_sets} sets.* 1 to 8"):
        sets.sets_of(n_features)
    with pytest.raises(ValueError, match=r"expected 1 to 8 features"):
        sets.sets_of(0)


@pytest.fixture(scope="module")
def table() -> sets.Table:
    """Most sets lead nowhere."""
    rng = np.random.default_rng(0)
    own = sets.sets_of(4)
    cost, log_odds, gain = (torch.from_numpy(rng.normal(size=(60, 15))) for _ in range(3))
    cost = cost.abs().masked_fill(torch.from_numpy(rng.random((60, 15)) < 0.85), torch.inf)
    return sets.Table(own, cost, torch.zeros(60, 15, 4), log_odds, gain)


def test_a_cap_on_the_number_of_actions_by_enumeration(table):
    """Nobody acts on more; fewer never cost less; as many as there are is no cap."""
    may = torch.from_numpy(np.random.default_rng(1).random((60, 4)) < 0.8)
    without, _ = table.cheapest(may)
    before = None
    for most in (4, 3, 2, 1):
        cost, which = table.cheapest(may, max_acted=most)
        assert most < 4 or torch.equal(cost, without)
        assert before is None or (cost >= before).all()
        assert (table.sets[which].sum(-1) <= most)[cost.isfinite()].all()
        small = [j for j, own in enumerate(table.sets) if own.sum() <= most]
        for i, own in enumerate(may):
            open_to = [j for j in small if not (table.sets[j] & ~own).any()]
            assert cost[i] == min([torch.inf, *table.cost[i, open_to].tolist()])
        before = cost
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="max_acted must be a whole number above zero"):
            table.cheapest(may, max_acted=wrong)


def test_what_would_unlock_recourse_by_enumeration(table):
    may = torch.from_numpy(np.random.default_rng(1).random((60, 4)) < 0.4)
    may[~may.any(-1), 0] = True
    listed = [set(np.flatnonzero(own)) for own in table.sets.numpy()]

    def cheapest(person, allowed):
        return min(
            (
                table.cost[person, j].item()
                for j, own in enumerate(listed)
                if own <= allowed
            ),
            default=np.inf,
        )

    single, key, lowest = table.unlocked_by(may), table.key(may), table.cheapest(may)[0]
    log_odds, gain = table.blocked_by(may)
    for i, mask in enumerate(may):
        mine = set(np.flatnonzero(mask.numpy()))
        assert lowest[i].item() == cheapest(i, mine)
        for k in range(4):
            assert single[i, k].item() == cheapest(i, mine | {k})
        inside = [j for j, own in enumerate(listed) if own <= mine]
        assert (
            log_odds[i] == table.log_odds[i, inside].max()
            and gain[i] == table.gain[i, inside].max()
        )
        closed = sorted(set(range(4)) - mine)
        best = set()
        if not np.isfinite(cheapest(i, mine)):
            prices = {
                more: cheapest(i, mine | set(more))
                for more in product(*[[k, None] for k in closed])
                if any(k is not None for k in more)
            }
            prices = {
                tuple(k for k in more if k is not None): price
                for more, price in prices.items()
            }
            finite = {more: price for more, price in prices.items() if np.isfinite(price)}
            if finite:
                size = min(map(len, finite))
                best = set(
                    min((more for more in finite if len(more) == size), key=finite.get)
                )
        assert set(np.flatnonzero(key[i].numpy())) == best
    assert key.any() and (lowest.isinf()).any()
    assert lowest.isfinite().any() and (key.sum(-1) == 2).any()


@pytest.mark.parametrize(
    ("may", "message"),
    [
        (
            torch.ones(60, 3, dtype=torch.bool),
            r"may has shape \(60, 3\), expected \(60, 4\)",
        ),
        (torch.ones(1, 4, dtype=torch.bool), r"may has shape \(1, 4\), expected \(60, 4\)"),
        (torch.ones(60, 4), r"may must be a mask of bool, got torch.float32"),
    ],
)
def test_a_mask_of_others_is_named(table, may, message):
    with pytest.raises(ValueError, match=message):
        table.cheapest(may)
    with pytest.raises(ValueError, match=message):
        table.blocked_by(may)
