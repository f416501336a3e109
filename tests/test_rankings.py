"""Rankings and their probabilities, against counts by hand."""

import math

import numpy as np
import pytest

from lib.method.samplers import permutation_probabilities

LOAN = ("loan_amount", "loan_duration", "income", "savings")


@pytest.mark.parametrize(
    "distribution", ["uniform", "co", "rco", "privileged", "non_privileged"]
)
def test_probabilities_of_permutations(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    assert rankings.shape == (24, 4) and len({tuple(r) for r in rankings}) == 24
    assert probabilities.sum() == pytest.approx(1)


def test_causal_order_by_hand():
    rankings, probabilities = permutation_probabilities("co", LOAN)
    by_ranking = {
        tuple(r): p for r, p in zip(rankings.tolist(), probabilities, strict=True)
    }
    assert by_ranking[(1, 3, 2, 4)] == pytest.approx(1 / 6)  # amount, income, ...
    assert by_ranking[(2, 4, 1, 3)] == pytest.approx(1 / 6)  # income, amount, ...
    assert by_ranking[(3, 2, 1, 4)] == pytest.approx(1 / 24)  # income, duration, ...
    assert by_ranking[(2, 1, 3, 4)] == 0  # duration first
    assert sorted(np.unique(probabilities.round(9))) == pytest.approx([0, 1 / 24, 1 / 6])
    assert [(probabilities == 0).sum(), np.isclose(probabilities, 1 / 24).sum()] == [12, 8]


@pytest.mark.parametrize(
    ("distribution", "favourites"),
    [
        ("co", ("income", "loan_amount")),
        ("rco", ("loan_duration", "savings")),
        ("privileged", ("income", "savings")),
        ("non_privileged", ("loan_amount", "loan_duration")),
    ],
)
def test_favourites_come_first(distribution, favourites):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    columns = [LOAN.index(name) for name in favourites]
    on_top = np.sort(rankings[:, columns], 1).tolist()
    both = np.array([ranks == [1, 2] for ranks in on_top])
    first = np.array([ranks[0] == 1 for ranks in on_top])
    assert both.sum() == 4 and probabilities[both] == pytest.approx(1 / 6)
    assert probabilities[first & ~both] == pytest.approx(1 / 24)
    assert (probabilities[~first] == 0).all()


def test_nobody_can_change_what_everyone_gets():
    for distribution in ("uniform", "co"):
        for shared in permutation_probabilities(distribution, LOAN):
            before = shared.copy()
            with pytest.raises(ValueError, match="read-only"):
                shared[0] = 0
            with pytest.raises(ValueError, match="read-only"):
                shared *= 2
            assert (shared == before).all()


@pytest.mark.parametrize("n_features", range(1, 8))
def test_all_rankings_are_there_once(n_features):
    features = [f"feature {i}" for i in range(n_features)]  # a list will do
    rankings, probabilities = permutation_probabilities("uniform", features)
    assert rankings.shape == (math.factorial(n_features), n_features)
    assert len(np.unique(rankings, axis=0)) == len(rankings)
    assert (np.sort(rankings, 1) == np.arange(1, n_features + 1)).all()
    assert probabilities == pytest.approx(1 / math.factorial(n_features))


@pytest.mark.parametrize(
    ("distribution", "features", "message"),
    [
        ("rcoo", LOAN, "Did you mean 'rco'"),
        ("co", ("age", "wealth"), "Unknown favourite"),
        ("co", ("income", "loan_amount"), "expected at least three, got 2"),
        ("uniform", (), "one feature or more, each once"),
        ("uniform", "income", "one feature or more, each once"),
        ("uniform", ("income", "income"), "one feature or more, each once"),
        ("uniform", tuple("abcdefghi"), r"362,880 rankings.*ScoreSampler.*TableSampler"),
        ("uniform", [f"x{i}" for i in range(20)], "2,432,902,008,176,640,000 rankings"),
    ],
)
def test_what_cannot_be_ranked_is_named(distribution, features, message):
    with pytest.raises(ValueError, match=message):
        permutation_probabilities(distribution, features)
