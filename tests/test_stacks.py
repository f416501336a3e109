"""Who is in the stacks: the constant profile is the study of hard constraints, and CARMA
knows no individuals.
"""

from dataclasses import replace

import networks
import numpy as np
import pytest
import torch

from lib.method import icarma, training
from lib.method.icarma import Settings
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.samplers import (
    Grouped,
    RankingSampler,
    TableSampler,
    permutation_probabilities,
)
from lib.paper import readings, stacks

LOAN = ("loan_amount", "loan_duration", "income", "savings")
SHORT = {"n_epochs": 3, "batch_size": 64, "hidden": 16}


EVERY = networks.STACKS | stacks.TRANSFER


@pytest.mark.parametrize("name", EVERY)
def test_every_stack_has_its_members(name):
    samplers, settings, seeds = EVERY[name](LOAN, [1000, 2000], 5)
    assert len(samplers) == len(settings) == len(seeds)
    assert set(seeds) == ({1000} if name == "loan_icarma_leaky" else {1000, 2000})
    assert all(own.n_epochs == 5 for own in settings)
    assert len({own.hidden for own in settings}) == 1  # one width a file


def test_networks_have_the_settings_that_are_printed_or_chosen():
    """Length included, unless another is asked for; two profiles have fewer seeds."""
    ten = [1000 * (i + 1) for i in range(10)]
    _, settings, seeds = stacks.STACKS["loan_icarma_score"](LOAN, ten, None)
    n_each = {"constant": 10, "concave": 4, "linear": 10, "convex": 4}
    expected = [
        (readings.as_printed("score", name), seed)
        for name, n in n_each.items()
        for seed in ten[:n]
    ]
    assert list(zip(settings, seeds, strict=True)) == expected
    _, settings, seeds = stacks.STACKS["loan_chosen_ranking"](LOAN, ten, None)
    expected = [
        (readings.chosen("ranking", name), seed)
        for name in ("constant", "linear")
        for seed in ten[:4]
    ]
    assert list(zip(settings, seeds, strict=True)) == expected
    # the constant profile of rankings is the study of hard constraints
    _, settings, seeds = stacks.STACKS["loan_icarma_ranking"](LOAN, ten, None)
    assert len(seeds) == 18 and readings.as_printed("ranking", "constant") not in settings
    assert stacks.hard(LOAN, ten)[1] == [readings.as_printed("ranking", "constant")] * 10


def test_weights_are_those_that_the_calibration_chose():
    """GAMMA and W_MAX, which the method and its notebooks use, are what it found."""
    for name, gamma in GAMMA.items():
        profile = readings.as_printed("ranking", name).profile
        if gamma is not None:
            assert profile.gamma == pytest.approx(gamma)
            assert (profile.w_max, profile.shape) == (stacks.W_MAX, Profile().shape)


def test_constant_profile_equals_the_study_of_hard_constraints(problem):
    """Trained beside other profiles it becomes the network of the hard study.

    Scores move it only by what they forbid.
    """
    sampler = RankingSampler(problem.population.actionable)
    hard, _ = training.fit(problem, [sampler], [Settings(**SHORT)], [7])
    linear = Settings(profile=Profile(gamma=1.0, w_max=5.0, p_min=0.01), mask=1.0, **SHORT)
    constant = Settings(profile=Profile(GAMMA["constant"]), **SHORT)
    both, _ = training.fit(problem, [sampler] * 2, [linear, constant], [7, 7])
    for name, weight in hard.weights.items():
        assert torch.allclose(weight[0], both.weights[name][1], atol=1e-8), name
        assert not torch.allclose(weight[0], both.weights[name][0], atol=1e-8), name
    x = problem.refused("test")[:20]
    one, other = (
        Preferences(torch.tensor([scores]).expand(20, -1))
        for scores in ([1, 2, 5, 4], [4, 3, 5, 1])
    )
    first, second = both.recommend(x, one), both.recommend(x, other)
    assert torch.equal(first[1].x_cf, second[1].x_cf)
    assert not torch.equal(first[0].x_cf, second[0].x_cf)
    for part, profile in ((both.select([0]), "linear"), (both.select([1]), "constant")):
        assert torch.equal(
            stacks.by_profile(both)[profile].weights["mask_weight_0"],
            part.weights["mask_weight_0"],
        )


def test_carma_is_given_the_rounded_mean_of_its_population():
    for population in stacks.EVERYONE:
        rankings, probabilities = permutation_probabilities(population, LOAN)
        mean = probabilities @ rankings
        if population == "uniform":
            assert mean == pytest.approx([2.5] * 4)  # no feature is harder than another
            assert len(set(stacks.EVERYONE[population])) == 1
        else:
            assert mean.round().tolist() == list(stacks.EVERYONE[population])
    samplers, settings, _ = stacks.carma(LOAN, [1000], 5)
    drawn = samplers[1].draw(range(50), np.random.default_rng(0))
    assert (
        torch.equal(drawn.scores, stacks.everyone("rco", 50).scores)
        and drawn.is_actionable.all()
    )
    assert all(own.plausibility == own.feasibility == 0 for own in settings)
    for population, own in zip(stacks.EVERYONE, settings, strict=True):
        told, profile = stacks.everyone(population, 1), own.profile
        torch.testing.assert_close(profile.prior(told), 0.5 / profile.weight(told))


def test_groups_follow_people_when_an_epoch_is_shuffled(problem, monkeypatch):
    """In training, preferences of each person come from the sampler of their own group."""
    x = problem.refused("train")
    group = (x[:, 0] > 0).long()  # by gender
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    seen = []
    batch = icarma.ICarma.batch

    def record(self, factual, preferences, noise):
        seen.append(((factual["x"][0, :, 0] > 0).long(), preferences.scores[0, :, 0]))
        return batch(self, factual, preferences, noise)

    monkeypatch.setattr(icarma.ICarma, "batch", record)
    training.fit(
        problem, [Grouped((one, two), group)], [replace(Settings(**SHORT), n_epochs=2)], [0]
    )
    assert len(seen) == 2 and not torch.equal(seen[0][0], seen[1][0])
    for own, scores in seen:
        assert torch.equal(scores, own + 1)


@pytest.mark.parametrize("name", EVERY)
def test_a_stack_needs_a_seed(name):
    with pytest.raises(ValueError, match=r"at least one seed"):
        EVERY[name](LOAN, [], 5)


def test_carma_asks_for_four_features():
    with pytest.raises(ValueError, match=r"about 4 actionable features, got 2 \(income, "):
        stacks.carma(("income", "savings"), [1], 5)
    with pytest.raises(ValueError, match=r"Unknown population 'co'"):
        stacks.everyone("co", 3)


def test_a_profile_is_selected_with_its_ids(problem):
    """Members of a selection are still told apart by the ids of the whole stack."""
    samplers, settings, seeds = stacks.STACKS["loan_icarma_score"](LOAN, [1000, 2000], 1)
    small = [replace(own, batch_size=64, hidden=8) for own in settings]
    stack, _ = training.fit(problem, samplers, small, seeds)
    linear = stacks.by_profile(stack)["linear"]
    assert linear.ids == [4, 5] and linear.seeds == [1000, 2000]
    assert list(stacks.by_profile(linear)) == ["linear"]
    with pytest.raises(ValueError, match=r"Two stacks have members of the linear profile"):
        stacks.by_profile(stack, linear)
    steep = replace(small[0], profile=Profile(gamma=1.5, p_min=0.1, p_max=0.2))
    odd = icarma.ICarma(problem, [steep], [1], stack.select([0]).weights)
    assert list(stacks.by_profile(odd)) == ["convex"]
