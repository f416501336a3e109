"""Samplers against their distributions; rankings and their probabilities by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lib.method.preferences import CONSTANT, LINEAR, Preferences
from lib.method.samplers import (
    FAVOURITES,
    RankingSampler,
    ScoreSampler,
    TableSampler,
    WithLimits,
    permutation_probabilities,
)

LOAN = ("loan_amount", "loan_duration", "income", "savings")


# --- rankings and their probabilities


@pytest.mark.parametrize("distribution", FAVOURITES)
def test_probabilities_of_permutations(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    assert rankings.shape == (24, 4) and len(np.unique(rankings, axis=0)) == 24
    assert probabilities.sum() == pytest.approx(1)
    favourites = FAVOURITES[distribution]
    if favourites is None:
        assert probabilities == pytest.approx(1 / 24)
        return
    on_top = np.sort(rankings[:, [LOAN.index(name) for name in favourites]], 1).tolist()
    both = np.array([ranks == [1, 2] for ranks in on_top])
    first = np.array([ranks[0] == 1 for ranks in on_top])
    assert both.sum() == 4 and probabilities[both] == pytest.approx(1 / 6)
    assert (first & ~both).sum() == 8
    assert probabilities[first & ~both] == pytest.approx(1 / 24)
    assert (probabilities[~first] == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RankingSampler(LOAN, "rcoo"), "Did you mean 'rco'"),
        (lambda: RankingSampler(("age", "wealth"), "co"), "Unknown favourite"),
        (lambda: RankingSampler("abcdefghi"), r"362,880 rankings.*ScoreSampler"),
        (lambda: RankingSampler(LOAN, n_actionable=0), "1 to 4 features, got 0"),
        (lambda: RankingSampler(LOAN, min_actionable=5), "1 to 4 features, got 5"),
        (lambda: WithLimits(RankingSampler(LOAN), None, 1.5), "share is 1.5"),
    ],
)
def test_a_bad_sampler_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- samplers and their distributions


def scores_of(sampler, n=4_000, seed=0):
    return sampler.draw(range(n), np.random.default_rng(seed)).scores


def counts(scores, n_scores):
    return torch.bincount(scores.flatten(), minlength=n_scores + 1)[1:].numpy()


@pytest.mark.parametrize("distribution", FAVOURITES)
def test_sampled_rankings_follow_their_distribution(distribution):
    rankings, probabilities = permutation_probabilities(distribution, LOAN)
    drawn = scores_of(RankingSampler(LOAN, distribution, n_actionable=4)).numpy()
    n_drawn = np.array([(drawn == ranking).all(1).sum() for ranking in rankings])
    assert n_drawn.sum() == 4_000 and (n_drawn[probabilities == 0] == 0).all()
    for count, probability in zip(n_drawn, probabilities, strict=True):
        test = stats.binomtest(int(count), 4_000, probability)
        assert test.pvalue > 0.01 / 24  # 24 rankings at once


@given(
    n_features=st.integers(1, 6),
    data=st.data(),
    seed=st.integers(0, 1000),
    n=st.integers(0, 9),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rankings_are_whole_up_to_the_threshold(n_features, data, seed, n):
    """What a person can do is ranked 1, 2, ...; the others are all "can't"."""
    features = [f"feature {i}" for i in range(n_features)]
    fixed = data.draw(st.none() | st.integers(1, n_features))
    fewest = data.draw(st.integers(1, n_features))
    sampler = RankingSampler(features, n_actionable=fixed, min_actionable=fewest)
    for scores in scores_of(sampler, n, seed).tolist():
        able = sorted(score for score in scores if score <= n_features)
        assert able == list(range(1, len(able) + 1))
        assert len(able) == fixed if fixed else len(able) >= fewest
        assert scores.count(n_features + 1) == n_features - len(able)


@pytest.mark.parametrize("fewest", [1, 2, 3])
def test_a_random_threshold_is_uniform(fewest):
    sampler = RankingSampler(LOAN, min_actionable=fewest)
    n_actionable = (scores_of(sampler, seed=2) <= 4).sum(-1)
    seen = torch.bincount(n_actionable, minlength=5)
    assert seen[:fewest].sum() == 0
    assert stats.chisquare(seen[fewest:].numpy()).pvalue > 0.01


@pytest.mark.parametrize(
    ("with_impossible", "n_answers"), [(False, 4**4), (True, 5**4 - 1)]
)
def test_every_answer_is_drawn_alike(with_impossible, n_answers):
    """That is, but for "can't" four times, which leaves nothing to do."""
    drawn = scores_of(ScoreSampler(4, with_impossible), 20_000, seed=1)
    digits = (4 + with_impossible) ** torch.arange(4).flip(0)
    seen = torch.bincount(((drawn - 1) * digits).sum(-1)).numpy()
    assert len(seen) == n_answers
    assert stats.chisquare(seen).pvalue > 0.01


def test_a_table_is_drawn_row_by_row():
    answers = Preferences(torch.tensor([[1, 2, 3, 4], [4, 4, 5, 1], [2, 2, 2, 2]]))
    drawn = scores_of(TableSampler(answers), 3_000, seed=3)
    rows = np.array([(drawn == row).all(-1).sum() for row in answers.scores])
    assert rows.sum() == 3_000 and stats.chisquare(rows).pvalue > 0.01


def test_preferences_carry_the_profile_of_their_sampler(population):
    answers = Preferences(torch.tensor([[1, 2, 3, 4]]), profile=CONSTANT)
    samplers = [
        RankingSampler(LOAN, profile=CONSTANT),
        ScoreSampler(4, with_impossible=True, n_categories=5, profile=CONSTANT),
        TableSampler(answers),
    ]
    samplers += [WithLimits(sampler, population) for sampler in samplers]
    for sampler in samplers:
        drawn = sampler.draw(range(3), np.random.default_rng(0))
        assert sampler.profile == drawn.profile == CONSTANT
        assert hash(sampler) == hash(sampler)  # equal samplers are drawn from once
    assert RankingSampler(LOAN).profile == LINEAR


# --- limits


def test_six_limits_are_drawn_alike(population):
    sampler = WithLimits(RankingSampler(LOAN), population, share=0.6)
    limits = sampler.draw(range(3_000), np.random.default_rng(4)).limits
    assert not limits.allowed_categories.any() and limits.step.isnan().all()
    changes = (limits.max_decrease, limits.max_increase)
    kinds = [change == 0 for change in changes] + [change > 0 for change in changes]
    kinds += [~limits.low.isnan(), ~limits.high.isnan()]
    assert torch.stack(kinds).sum(0).max() == 1  # one a feature at most
    n_drawn = np.array([int(kind.sum()) for kind in kinds])
    assert stats.chisquare(n_drawn).pvalue > 0.01
    assert stats.binomtest(int(n_drawn.sum()), 12_000, 0.6).pvalue > 0.01
    ends = population.to_records(torch.stack([population.low, population.high]))
    low, high = ends[:, population.actionable_index]
    for k in range(4):
        share = (limits.low[:, k] - low[k]) / (high[k] - low[k])
        assert stats.kstest(share[~share.isnan()].numpy(), "uniform").pvalue > 0.01
        amount = limits.max_increase[:, k] / (high[k] - low[k])
        assert stats.kstest(amount[amount > 0].numpy(), "uniform").pvalue > 0.01


def test_any_set_of_categories_is_drawn_alike(population):
    categories = {"income": ("low", "middle", "high"), "savings": ("no", "yes")}
    sampler = WithLimits(RankingSampler(LOAN), replace(population, categories=categories))
    limits = sampler.draw(range(4_000), np.random.default_rng(5)).limits
    limits.check(LOAN, categories)
    mask = limits.allowed_categories
    assert mask.shape == (4_000, 4, 3) and not mask[:, :2].any()
    for k, n_sets in ((2, 7), (3, 3)):
        number = (mask[:, k] * torch.tensor([1, 2, 4])).sum(-1)
        assert stats.binomtest(int((number > 0).sum()), 4_000, 0.4).pvalue > 0.01
        assert stats.chisquare(counts(number[number > 0], n_sets)).pvalue > 0.01
    nobody = replace(sampler, share=0.0).draw(range(9), np.random.default_rng(0))
    assert not nobody.limits.is_stated.any()
