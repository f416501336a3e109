"""The study's printed tables, and its distances by hand."""

import numpy as np
import pandas as pd
import pytest

from lib.beyond.evaluation import gamm, tominaga
from lib.io import ROOT

TABLE_S2 = {  # from the paper: outcome, distance, intercept, t, AIC, EDFs, F
    1: ("acceptance", "sparsity", 3.28, 45.60, 5597.44, (1.01, 235.35, 142.98)),
    2: ("acceptance", "proximity", 3.29, 45.93, 5590.47, (1.00, 258.69, 133.20)),
    3: ("action", "sparsity", 2.63, 38.06, 5261.35, (4.25, 269.32, 99.44)),
    4: ("action", "proximity", 2.63, 38.77, 5280.33, (4.32, 288.58, 69.98)),
}
F = {1: (0.0, 9.21, 5.21), 2: (0.89, 9.4, 4.0), 3: (18.46, 10.37, 2.89)}
F[4] = (20.81, 8.49, 1.13)


@pytest.mark.parametrize("model", TABLE_S2)
def test_the_print_is_that_of_the_table(model):
    actual = tominaga.printed(model)
    outcome, distance, intercept, t, aic, edf = TABLE_S2[model]
    assert (actual.outcome, actual.distance) == (outcome, distance)
    assert (actual.intercept, actual.t, actual.aic) == (intercept, t, aic)
    assert tuple(actual.edf.values()) == edf and tuple(actual.F.values()) == F[model]
    assert actual.se == intercept / t and round(actual.se, 2) == 0.07  # as printed, too
    # AIC = n (1 + log(2 pi RSS / n)) + 2 (e + 1), and sigma^2 = RSS / (n - e)
    e, rss = 1 + sum(edf), actual.error**2 * (1738 - 1 - sum(edf))
    assert 1738 * (1 + np.log(2 * np.pi * rss / 1738)) + 2 * (e + 1) == pytest.approx(aic)


def test_an_error_follows_from_the_aic_of_a_fit():
    data = pd.read_csv(ROOT / "tests" / "reference" / "gamm_small.csv")
    fit = gamm.fit(data.y, data.x, data.u, k=8)
    error = tominaga.error_of(fit.aic, 1 + sum(fit.edf.values()), len(data))
    assert error**2 == pytest.approx(fit.sigma2, rel=1e-10)


def test_claims_are_of_models_and_terms_that_are_printed():
    claims = tominaga.published("claims").dropna(subset="models")
    for claim in claims.itertuples():
        terms = claim.term.split()
        assert set(terms) <= set(tominaga.KINDS) and claim.quantity in ("p", "edf")
        assert set(map(int, claim.models.split())) <= set(tominaga.MODELS)


def test_sixteen_items_have_as_many_options_as_the_table_says():
    table, options = tominaga.published("table1"), tominaga.items()
    assert [len(values) for values in options.values()] == table.n_options.tolist()
    assert list(options) == table["item"].tolist() and len(options) == 16
    assert all(len(set(values)) == len(values) for values in options.values())
    # a rule of their own for categorical items would change nothing
    unordered = ["Residential prefecture", "Type of residence", "Workplace"]
    assert all(len(options[item]) == 2 for item in unordered)


def test_the_printed_numbers_add_up():
    value = tominaga.published("numbers").set_index("what")["value"]
    people, plans, removed, analysed = (
        int(value[what])
        for what in (
            "participants",
            "recourse evaluations collected",
            "evaluations removed",
            "evaluations analysed",
        )
    )
    assert people * 5 == plans and plans - removed == analysed == 1738


def test_the_seven_complete_quotes_by_hand():
    """Five of seven agree with options less one; two are stated, and not corrected."""
    quoted = tominaga.quoted().set_index("participant")
    by_hand = {
        "P006": (1, 1 / 6),
        "P446": (1, 1 / 4),
        "P706": (2, 3 / 9 + 1 / 6),
        "P674": (1, 1 / 7),
        "P718": (1, 1 / 6),
        "P294": (1, 1 / 5),
        "P655": (1, 1 / 5),
    }
    assert list(quoted.index) == list(by_hand)
    for who, (sparsity, proximity) in by_hand.items():
        assert quoted.sparsity_by_formula[who] == sparsity, who
        assert quoted.proximity_by_formula[who] == pytest.approx(proximity), who
    assert quoted.index[~quoted.agrees].tolist() == ["P446", "P718"]
    assert quoted.proximity[["P446", "P718"]].tolist() == [0.4, 0.2]


def test_distances_of_drawn_plans():
    """A change never counts for more than one; from lowest to highest it counts for one."""
    options, rng = tominaga.items(), np.random.default_rng(0)
    for _ in range(50):
        ends = {
            item: tuple(rng.choice(values, 2).tolist()) for item, values in options.items()
        }
        sparsity, proximity = tominaga.distances(ends)
        assert sparsity == sum(before != after for before, after in ends.values())
        assert 0 < proximity <= sparsity
        back = {item: (after, before) for item, (before, after) in ends.items()}
        assert tominaga.distances(back) == (sparsity, proximity)
    farthest = {item: (values[0], values[-1]) for item, values in options.items()}
    assert tominaga.distances(farthest) == (16, 16.0)
    assert tominaga.distances({}) == (0, 0)


def test_bad_plans_are_named():
    with pytest.raises(ValueError, match="Unknown model 5: expected one of 1, 2, 3, 4"):
        tominaga.printed(5)
    with pytest.raises(ValueError, match="Unknown item 'Salary'"):
        tominaga.distances({"Salary": ("low", "high")})
    with pytest.raises(ValueError, match="Unknown option of Position 'Chief'"):
        tominaga.distances({"Position": ("Employee", "Chief")})
