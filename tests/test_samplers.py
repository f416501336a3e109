"""Samplers against their distributions."""

import numpy as np
import pytest
import torch
from scipy import stats

from lib.method import icarma, training
from lib.method.preferences import Preferences
from lib.method.samplers import (
    Grouped,
    HybridSampler,
    RankingSampler,
    ScoreSampler,
    TableSampler,
    permutation_probabilities,
)

LOAN = ("loan_amount", "loan_duration", "income", "savings")


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


@pytest.mark.parametrize("fewest", [1, 2, 4])
def test_random_threshold_is_uniform(fewest):
    sampler = RankingSampler(LOAN, fewest=fewest)
    drawn = sampler.draw(range(4_000), np.random.default_rng(2))
    counts = torch.bincount(drawn.is_actionable.sum(-1), minlength=5)
    assert counts[:fewest].sum() == 0
    assert fewest == 4 or stats.chisquare(counts[fewest:].numpy()).pvalue > 0.01


def test_bad_rankings_are_named():
    with pytest.raises(ValueError, match=r"Did you mean 'rco'"):
        RankingSampler(LOAN, "rcoo")
    with pytest.raises(ValueError, match="Unknown favourite"):
        RankingSampler(("age", "wealth"), "co")
    with pytest.raises(ValueError, match="expected at least three, got 2"):
        RankingSampler(("income", "loan_amount"), "co")
    for wrong in (0, 5, 2.5, "2", True):
        with pytest.raises(ValueError, match=f"n_actionable is {wrong}: expected 1 to 4"):
            RankingSampler(LOAN, n_actionable=wrong)
        with pytest.raises(ValueError, match=f"fewest is {wrong}: expected 1 to 4"):
            RankingSampler(LOAN, fewest=wrong)
    nine = [f"feature {i}" for i in range(9)]
    with pytest.raises(ValueError, match="9 features have 362,880 rankings"):
        RankingSampler(nine)
    assert RankingSampler(list(LOAN), n_actionable=np.int64(2)).n_actionable == 2


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
    for people, expected in [
        (range(5), [1, 2, 2, 1, 2]),
        (np.array([4, 3, 2, 1, 0]), [2, 1, 2, 2, 1]),
        (torch.tensor([0, 3, 1, 2, 4]), [1, 1, 2, 2, 2]),
    ]:
        drawn = sampler.draw(people, np.random.default_rng(0)).scores
        assert drawn[:, 0].tolist() == expected, people


@pytest.mark.parametrize(
    ("people", "message"),
    [
        (range(3), "groups are of 2 people, but preferences of 3 are to be drawn"),
        (range(1), "groups are of 2 people, but preferences of 1 are to be drawn"),
        ([0, 2], "no group for person 2: the groups are of 2 people"),
        ([-1, 0], "no group for person -1"),
    ],
)
def test_groups_of_other_people_are_refused(people, message):
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    sampler = Grouped((one, two), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=message):
        sampler.draw(people, np.random.default_rng(0))


def test_groups_of_all_applicants_do_not_pass_for_those_of_the_refused(problem):
    """In training `training.fit` hands over the rows of the refused people."""
    applicants, refused = problem.population.x["recourse/train"], problem.refused("train")
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    settings = [icarma.Settings(n_epochs=1)]
    of_applicants = Grouped((one, two), (applicants[:, 0] > 0).long())
    with pytest.raises(ValueError, match="Make one sampler for each split"):
        training.fit(problem, [of_applicants], settings, [0])
    of_refused = Grouped((one, two), (refused[:, 0] > 0).long())
    stack, _ = training.fit(problem, [of_refused], settings, [0])
    assert stack.n_members == 1


def test_groups_of_named_distributions():
    group = torch.arange(4_000) % 2
    sampler = Grouped(
        (RankingSampler(LOAN, "privileged", 4), RankingSampler(LOAN, "non_privileged", 4)),
        group,
    )
    favourite = sampler.draw(range(4_000), np.random.default_rng(5)).scores.argmin(-1)
    assert ((favourite >= 2) == (group == 0)).all()  # income or savings, amount or duration


LIKELY = RankingSampler(LOAN)
EMPTY = torch.ones(0, 4, dtype=torch.long)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScoreSampler((0.5, 0.4)), "one probability for each"),
        (lambda: ScoreSampler((1.5, -0.5)), "one probability for each"),
        (lambda: ScoreSampler((1.0,)), "one probability for each"),
        (lambda: ScoreSampler((float("nan"), 1.0)), "one probability for each"),
        (lambda: ScoreSampler((0.0, 0.0, 1.0)), '"can\'t" for everyone'),
        (lambda: ScoreSampler.uniform(0, True), "n_features must be above zero"),
        (
            lambda: HybridSampler((LIKELY,), (0.5, 0.5)),
            "a share for each of the 1 samplers",
        ),
        (lambda: HybridSampler((LIKELY, LIKELY), (0.5, 0.6)), "summing to 1"),
        (lambda: HybridSampler((), ()), "a share for each of the 0 samplers"),
        (
            lambda: Grouped((LIKELY,), torch.tensor([0, 1])),
            r"from 0 to 0, .* values .0, 1.",
        ),
        (lambda: Grouped((LIKELY,), torch.tensor([0.0])), r"got torch.float32"),
        (lambda: Grouped((LIKELY,), torch.tensor([[0]])), r"with shape \(1, 1\)"),
        (lambda: Grouped((), torch.tensor([0])), "a sampler for each group, got none"),
        (lambda: TableSampler(Preferences(EMPTY)), r"of one person or more, .* \(0, 4\)"),
        (
            lambda: TableSampler(Preferences(torch.ones(2, 3, 4, dtype=torch.long))),
            r"got shape \(2, 3, 4\)",
        ),
    ],
)
def test_a_bad_sampler_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_samplers_of_different_features_do_not_mix():
    two = TableSampler(Preferences(torch.tensor([[1, 2]])))
    hybrid = HybridSampler((LIKELY, two), (0.5, 0.5))
    with pytest.raises(
        ValueError, match=r"same people, features and scale, got .*\(3, 2\)"
    ):
        hybrid.draw(range(3), np.random.default_rng(0))
