"""Who is in the stacks: the constant profile is the study of hard constraints, CARMA knows no individuals."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.base import files
from lib.preferences.samplers import (
    Grouped,
    RankingSampler,
    TableSampler,
    permutation_probabilities,
)
from lib.preferences.scores import GAMMA, Preferences, Profile
from lib.solvers import icarma
from lib.solvers.icarma import Settings
from lib.studies import stacks

LOAN = ("loan_amount", "loan_duration", "income", "savings")
SHORT = {"n_epochs": 3, "batch_size": 64, "hidden": 16}


@pytest.mark.parametrize("name", stacks.STACKS)
def test_every_stack_has_its_members(name):
    samplers, settings, seeds = stacks.STACKS[name](LOAN, [1000, 2000], 5)
    assert len(samplers) == len(settings) == len(seeds) and set(seeds) == {1000, 2000}
    assert all(own.n_epochs == 5 for own in settings)


@pytest.mark.parametrize("elicitation", stacks.ELICITATIONS)
def test_constant_members_have_the_settings_of_the_hard_study(elicitation):
    _, settings, _ = stacks.soft(elicitation, LOAN, [1000], 450)
    assert settings[0] == Settings()
    assert [own.profile.gamma for own in settings] == list(GAMMA.values())
    assert all(
        own.profile.w_max == stacks.W_MAX and own.profile.p_min < 0.5
        for own in settings[1:]
    )


def test_constant_profile_equals_the_study_of_hard_constraints(problem):
    """Trained beside other profiles it becomes the network of that study, and scores move it only by what they forbid."""
    sampler = RankingSampler(problem.population.actionable)
    hard, _ = icarma.fit(problem, [sampler], [Settings(**SHORT)], [7])
    linear = Settings(profile=Profile(gamma=1.0, w_max=5.0, p_min=0.01), mask=1.0, **SHORT)
    constant = Settings(profile=Profile(GAMMA["constant"]), **SHORT)
    both, _ = icarma.fit(problem, [sampler] * 2, [linear, constant], [7, 7])
    for name, weight in hard.weights.items():
        assert torch.allclose(weight[0], both.weights[name][1], atol=1e-8), name
        assert not torch.allclose(weight[0], both.weights[name][0], atol=1e-8), name
    x = problem.refused("test")[:20]
    one, other = (
        Preferences(torch.tensor([scores]).expand(20, -1))
        for scores in ([1, 2, 5, 4], [4, 3, 5, 1])
    )
    told, told_other = both.recommend(x, one), both.recommend(x, other)
    assert torch.equal(told[1].x_cf, told_other[1].x_cf)
    assert not torch.equal(told[0].x_cf, told_other[0].x_cf)
    for part, profile in ((both.select([0]), "linear"), (both.select([1]), "constant")):
        assert torch.equal(
            stacks.of_profile(both, profile).weights["mask_weight_0"],
            part.weights["mask_weight_0"],
        )


def test_carma_is_told_the_rounded_mean_of_its_population():
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


def test_groups_follow_people_when_an_epoch_is_shuffled(problem, monkeypatch):
    """In training, the preferences of each person come from the distribution of their own group."""
    x = problem.refused("train")
    group = (x[:, 0] > 0).long()  # by gender
    one, two = (TableSampler(Preferences(torch.tensor([[s] * 4]))) for s in (1, 2))
    seen = []
    batch = icarma.ICarma.batch

    def record(self, factual, preferences, noise):
        seen.append(((factual["x"][0, :, 0] > 0).long(), preferences.scores[0, :, 0]))
        return batch(self, factual, preferences, noise)

    monkeypatch.setattr(icarma.ICarma, "batch", record)
    icarma.fit(
        problem, [Grouped((one, two), group)], [replace(Settings(**SHORT), n_epochs=2)], [0]
    )
    assert len(seen) == 2 and not torch.equal(seen[0][0], seen[1][0])
    for own, scores in seen:
        assert torch.equal(scores, own + 1)


def test_missing_settings_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(stacks, "PARAMS", tmp_path)
    with pytest.raises(
        ValueError,
        match=re.escape("tuned_ranking.yaml, found none. Restore the file, or `make tune`"),
    ):
        stacks.tuned("ranking")
    with pytest.raises(ValueError, match="Did you mean 'score'"):
        stacks.tuned("scores")
    assert (files.PARAMS / "tuned_score.yaml").is_file()
