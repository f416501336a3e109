"""Scores, profiles and samplers against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.preferences import Preferences, Profile, RankingSampler, permutation_probabilities

LOAN = ("loan_amount", "loan_duration", "income", "savings")


def test_scores_say_what_is_actionable():
    preferences = Preferences(torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1]]))
    assert preferences.is_actionable.tolist() == [[True, True, False, True], [False, False, False, True]]
    from_mask = Preferences.from_mask(torch.tensor([[True, False, True, True]]))
    assert from_mask.scores.tolist() == [[1, 5, 1, 1]]


@pytest.mark.parametrize(
    ("profile", "weights", "priors"),
    [
        (Profile(), [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]),
        (Profile(gamma=1, w_max=4, p_min=0.05), [1, 2, 3, 4], [0.5, 0.35, 0.2, 0.05]),
        (Profile(gamma=2, w_max=10, p_min=0.05), [1, 2, 5, 10], [0.5, 0.45, 0.3, 0.05]),
        (Profile(gamma=0.5, w_max=4, p_min=0.05), [1, 1 + 3 / 3**0.5, 1 + 3 * (2 / 3) ** 0.5, 4], None),
    ],
)
def test_weights_and_priors_by_hand(profile, weights, priors):
    preferences = Preferences(torch.tensor([[1, 2, 3, 4]]))
    assert profile.weight(preferences)[0].tolist() == pytest.approx(weights, abs=1e-6)
    if priors is not None:
        assert profile.prior(preferences)[0].tolist() == pytest.approx(priors, abs=1e-6)


def test_what_cannot_be_done_has_no_hardness():
    profile = Profile(gamma=1, w_max=4, p_min=0.05)
    assert profile.hardness(Preferences(torch.tensor([[5, 4, 1, 5]])))[0].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("distribution", ["uniform", "co", "rco", "privileged", "non_privileged"])
def test_probabilities_of_permutations(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    assert rankings.shape == (24, 4) and len({tuple(r) for r in rankings}) == 24
    assert probabilities.sum() == pytest.approx(1)


def test_causal_order_by_hand():
    rankings, probabilities = permutation_probabilities("co", LOAN)
    by_ranking = {tuple(r): p for r, p in zip(rankings.tolist(), probabilities, strict=True)}
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


@pytest.mark.parametrize("distribution", ["uniform", "co", "rco", "privileged", "non_privileged"])
def test_sampled_rankings_follow_their_distribution(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    drawn = RankingSampler(LOAN, distribution, n_actionable=4).draw(4_000, np.random.default_rng(0)).scores.numpy()
    counts = np.array([(drawn == ranking).all(1).sum() for ranking in rankings])
    assert counts.sum() == 4_000
    assert (counts[probabilities == 0] == 0).all()
    some = probabilities > 0
    assert stats.chisquare(counts[some], probabilities[some] * 4_000).pvalue > 0.01


@pytest.mark.parametrize("n_actionable", [1, 2, 3, 4])
def test_threshold_leaves_the_favourites(n_actionable):
    drawn = RankingSampler(LOAN, n_actionable=n_actionable).draw(500, np.random.default_rng(1))
    assert (drawn.is_actionable.sum(-1) == n_actionable).all()
    ranks = drawn.scores.sort(-1).values[:, :n_actionable]
    assert (ranks == torch.arange(1, n_actionable + 1)).all()


def test_random_threshold_is_uniform():
    drawn = RankingSampler(LOAN).draw(4_000, np.random.default_rng(2))
    counts = torch.bincount(drawn.is_actionable.sum(-1), minlength=5)[1:]
    assert stats.chisquare(counts.numpy()).pvalue > 0.01


def test_bad_preferences_are_named():
    with pytest.raises(ValueError, match="1 people may act on nothing at all .the first is row 1."):
        Preferences(torch.tensor([[1, 2, 3, 4], [5, 5, 5, 5]]))
    with pytest.raises(ValueError, match="act on nothing"):
        Preferences.from_mask(torch.zeros(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="A mask must be of bool"):
        Preferences.from_mask(torch.ones(2, 4))
    for wrong in ({"gamma": 0}, {"w_max": 0.5}, {"p_min": 0}, {"p_min": 0.6}, {"p_max": 1.0}):
        with pytest.raises(ValueError, match="gamma|w_max|Priors"):
            Profile(**wrong)
    with pytest.raises(ValueError, match="between 1 and 4"):
        Preferences(torch.tensor([[0, 1, 2, 3]]))
    with pytest.raises(ValueError, match="whole numbers"):
        Preferences(torch.ones(3, 4))
    with pytest.raises(ValueError, match="Did you mean 'rco'"):
        RankingSampler(LOAN, "rcoo")
    with pytest.raises(ValueError, match="Unknown favourite"):
        RankingSampler(("age", "wealth"), "co")
    with pytest.raises(ValueError, match="n_actionable is 0"):
        RankingSampler(LOAN, n_actionable=0)
