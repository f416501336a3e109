"""Claims on rows made by hand, beside the paper's own."""

import pandas as pd

from lib.studies import claims


def people(hap: dict[str, dict[int, float]], reported: int) -> pd.DataFrame:
    """Ten people a setting and seed, of whom the given share is told to do their hardest action."""
    rows = []
    for setting, by_seed in hap.items():
        for seed, share in by_seed.items():
            for person in range(10):
                rows.append(
                    {
                        "setting": setting,
                        "method": "iCARMA",
                        "seed": seed,
                        "reported": seed == reported,
                        "hard_action": person < 10 * share,
                    }
                )
    same = {
        "has_recourse": True,
        "valid": True,
        "plausible": True,
        "joint": True,
        "cost": 1.0,
        "n_acted": 1,
    }
    return pd.DataFrame(rows).assign(**same)


def lower(value):
    """hap of soft preferences, linear and convex, against constant; in the paper 0.029 and 0.044 against 0.852."""
    return {
        p: value("hap", f"soft, {p}") < value("hap", "soft, constant")
        for p in ("linear", "convex")
    }


def test_a_claim_is_asked_of_the_paper_of_ours_and_of_every_seed():
    rows = people(
        {
            "soft, constant": {1: 0.9, 2: 0.5},
            "soft, linear": {1: 0.1, 2: 0.2},
            "soft, convex": {1: 0.3, 2: 0.6},
        },
        reported=1,
    )
    verdict = claims.check("spared", [(2, rows)], lower)
    assert list(verdict.paper.values()) == list(verdict.ours.values()) == [True, True]
    assert verdict.seeds == {1: True, 2: False}
    assert (
        str(verdict)
        == "spared: holds. Paper 2 of 2, ours 2 of 2; all of them in 1 of 2 seeds"
    )


def test_what_does_not_hold_is_named():
    rows = people(
        {"soft, constant": {1: 0.5}, "soft, linear": {1: 0.1}, "soft, convex": {1: 0.6}},
        reported=1,
    )
    verdict = claims.check("spared", [(2, rows)], lower)
    assert (
        str(verdict)
        == "spared: holds partly. Paper 2 of 2, ours 1 of 2\n   not here: table 2, convex"
    )
    rows = people(
        {"soft, constant": {1: 0.0}, "soft, linear": {1: 0.1}, "soft, convex": {1: 0.6}},
        reported=1,
    )
    assert "does not hold here" in str(claims.check("spared", [(2, rows)], lower))
