"""Samplers against their distributions."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.preferences.samplers import (
    Grouped,
    HybridSampler,
    RankingSampler,
    ScoreSampler,
    TableSampler,
    permutation_probabilities,
)
from lib.preferences.scores import Preferences

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


@pytest.mark.parametrize(
    "distribution", ["uniform", "co", "rco", "privileged", "non_privileged"]
)
def test_sampled_rankings_follow_their_distribution(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    drawn = (
        RankingSampler(LOAN, distribution, n_actionable=4)
        .draw(range(4_000), np.random.default_rng(0))
        .scores.numpy()
    )
    counts = np.array([(drawn == ranking).all(1).sum() for ranking in rankings])
    assert counts.sum() == 4_000
    assert (counts[probabilities == 0] == 0).all()
    for count, probability in zip(counts, probabilities, strict=True):
        assert (
            stats.binomtest(int(count), 4_000, probability).pvalue > 0.01 / 24
        )  # exact, for 24 rankings at once


@pytest.mark.parametrize("n_actionable", [1, 2, 3, 4])
def test_threshold_leaves_the_favourites(n_actionable):
    drawn = RankingSampler(LOAN, n_actionable=n_actionable).draw(
        range(500), np.random.default_rng(1)
    )
    assert (drawn.is_actionable.sum(-1) == n_actionable).all()
    ranks = drawn.scores.sort(-1).values[:, :n_actionable]
    assert (ranks == torch.arange(1, n_actionable + 1)).all()


def test_random_threshold_is_uniform():
    drawn = RankingSampler(LOAN).draw(range(4_000), np.random.default_rng(2))
    counts = torch.bincount(drawn.is_actionable.sum(-1), minlength=5)[1:]
    assert stats.chisquare(counts.numpy()).pvalue > 0.01


def test_bad_rankings_are_named():
    with pytest.raises(ValueError, match="Did you mean 'rco'"):
        RankingSampler(LOAN, "rcoo")
    with pytest.raises(ValueError, match="Unknown favourite"):
        RankingSampler(("age", "wealth"), "co")
    with pytest.raises(ValueError, match="expected at least three, got 2"):
        RankingSampler(("income", "loan_amount"), "co")
    with pytest.raises(ValueError, match="n_actionable is 0"):
        RankingSampler(LOAN, n_actionable=0)


def counts(scores: torch.Tensor, n_scores: int) -> np.ndarray:
    return torch.bincount(scores.flatten(), minlength=n_scores + 1)[1:].numpy()


def test_soft_scores_are_uniform_and_independent():
    drawn = (
        ScoreSampler.uniform(4, with_impossible=False)
        .draw(range(4_000), np.random.default_rng(0))
        .scores
    )
    assert (drawn <= 4).all()
    for j in range(4):
        assert stats.chisquare(counts(drawn[:, j], 4)).pvalue > 0.01
    pairs = 4 * (drawn[:, 0] - 1) + drawn[:, 1]  # 16 pairs of the first two features
    assert stats.chisquare(counts(pairs, 16)).pvalue > 0.01


def test_mixed_scores_are_uniform_given_that_something_is_left():
    """Of the 5^4 answers, all but "can't" four times are alike."""
    drawn = (
        ScoreSampler.uniform(4, with_impossible=True)
        .draw(range(20_000), np.random.default_rng(1))
        .scores
    )
    code = ((drawn - 1) * torch.tensor([125, 25, 5, 1])).sum(-1)
    seen = torch.bincount(code, minlength=625).numpy()
    assert seen[624] == 0
    assert stats.chisquare(seen[:624]).pvalue > 0.01


def test_biased_scores_follow_their_probabilities():
    given = (0.1, 0.2, 0.3, 0.4, 0.0)
    drawn = ScoreSampler(given).draw(range(5_000), np.random.default_rng(2)).scores
    assert stats.chisquare(counts(drawn, 4), np.array(given[:4]) * 20_000).pvalue > 0.01


def test_a_table_is_drawn_row_by_row():
    answers = Preferences(torch.tensor([[1, 2, 3, 4], [4, 4, 5, 1], [2, 2, 2, 2]]))
    drawn = TableSampler(answers).draw(range(3_000), np.random.default_rng(3)).scores
    rows = np.array([(drawn == row).all(-1).sum() for row in answers.scores])
    assert rows.sum() == 3_000 and stats.chisquare(rows).pvalue > 0.01


def test_a_hybrid_draws_from_each_part_by_its_share():
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    drawn = (
        HybridSampler((one, two), (0.25, 0.75))
        .draw(range(4_000), np.random.default_rng(4))
        .scores
    )
    assert (drawn == drawn[:, :1]).all()
    assert stats.binomtest(int((drawn[:, 0] == 1).sum()), 4_000, 0.25).pvalue > 0.01


def test_groups_draw_from_their_own_distribution():
    group = torch.tensor([0, 1, 1, 0, 1])
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    sampler = Grouped((one, two), group)
    assert sampler.draw(range(5), np.random.default_rng(0)).scores[:, 0].tolist() == [
        1,
        2,
        2,
        1,
        2,
    ]
    assert sampler.draw(np.array([4, 0, 0, 2]), np.random.default_rng(0)).scores[
        :, 0
    ].tolist() == [2, 1, 1, 2]


def test_groups_of_named_distributions():
    group = torch.arange(4_000) % 2
    sampler = Grouped(
        (RankingSampler(LOAN, "privileged", 4), RankingSampler(LOAN, "non_privileged", 4)),
        group,
    )
    favourite = sampler.draw(range(4_000), np.random.default_rng(5)).scores.argmin(-1)
    assert ((favourite >= 2) == (group == 0)).all()  # income or savings, amount or duration


def test_bad_samplers_are_named():
    for wrong in ((0.5, 0.4), (1.5, -0.5), (1.0,)):
        with pytest.raises(ValueError, match="one probability for each"):
            ScoreSampler(wrong)
    with pytest.raises(ValueError, match='"can\'t" for everyone'):
        ScoreSampler((0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="a share for each of the 1 samplers"):
        HybridSampler((RankingSampler(LOAN),), (0.5, 0.5))
    with pytest.raises(ValueError, match=r"from 0 to 0, .* values .0, 1."):
        Grouped((RankingSampler(LOAN),), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="no group for person 2"):
        Grouped((RankingSampler(LOAN),), torch.tensor([0, 0])).draw(
            range(3), np.random.default_rng(0)
        )
