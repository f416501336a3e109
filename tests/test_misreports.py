"""Who errs, and in what: by counting."""

import numpy as np
import pytest
import torch

from lib.paper.fairness.misreports import can_follow, misreported

CAN = torch.tensor([[True, True, False, False], [True, False, False, False], [True] * 4])


def said(kind, share=1.0, can=CAN, seed=0):
    return misreported(can, share, kind, np.random.default_rng(seed))


def test_one_feature_is_hidden_and_never_the_last():
    hidden = CAN & ~said("hides")
    assert hidden.sum(-1).tolist() == [1, 0, 1]
    assert not (said("hides") & ~CAN).any()


def test_one_feature_is_claimed_where_one_is_closed():
    claimed = said("claims") & ~CAN
    assert claimed.sum(-1).tolist() == [1, 1, 0]
    assert not (CAN & ~said("claims")).any()


def test_a_share_errs_and_every_feature_is_as_likely():
    can = CAN[:1].expand(20_000, -1)
    for kind, columns in (("hides", [0, 1]), ("claims", [2, 3])):
        differs = said(kind, 0.3, can) ^ can
        assert differs.any(-1).float().mean().item() == pytest.approx(0.3, abs=0.01)
        shares = differs[:, columns].float().mean(0).tolist()
        assert shares == pytest.approx([0.15, 0.15], abs=0.01)
    assert torch.equal(said("hides", 0.0, can), can)


def test_whoever_errs_at_a_small_share_errs_at_a_larger_one():
    can = CAN[:1].expand(500, -1)
    few, many = ((said("hides", share, can) ^ can).any(-1) for share in (0.2, 0.5))
    assert (many | ~few).all() and many.sum() > few.sum()


def test_following_needs_every_feature():
    acted = torch.tensor([[[True, True, False, False]] * 3, [[False] * 4] * 3])
    assert can_follow(acted, CAN).tolist() == [[True, False, True], [True] * 3]
    with pytest.raises(ValueError, match="is_acted"):
        can_follow(acted[:, :2], CAN)


def test_what_is_no_share_or_no_mask_is_named():
    with pytest.raises(ValueError, match=r"within \[0, 1\], got 1.5"):
        said("hides", 1.5)
    with pytest.raises(ValueError, match="Unknown kind of error 'lies'"):
        said("lies")
    with pytest.raises(ValueError, match="expected a mask"):
        said("hides", can=CAN.float())
