"""Who is in the stacks: the constant profile is the study of hard constraints, and CARMA
knows no individuals.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.base import files
from lib.method import icarma, training
from lib.method.icarma import Settings
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.samplers import (
    Grouped,
    RankingSampler,
    TableSampler,
    permutation_probabilities,
)
from lib.paper import stacks

LOAN = ("loan_amount", "loan_duration", "income", "savings")
SHORT = {"n_epochs": 3, "batch_size": 64, "hidden": 16}


@pytest.mark.parametrize("name", stacks.STACKS)
def test_every_stack_has_its_members(name):
    samplers, settings, seeds = stacks.STACKS[name](LOAN, [1000, 2000], 5)
    assert len(samplers) == len(settings) == len(seeds)
    assert set(seeds) == {1000, 2000}
    assert all(own.n_epochs == 5 for own in settings)


def test_networks_have_the_settings_that_the_search_found():
    """Length included, unless another is asked for."""
    for elicitation in stacks.ELICITATIONS:
        _, settings, _ = stacks.soft(elicitation, LOAN, [1000])
        found = stacks.tuned(elicitation)
        first = 1 if elicitation == "ranking" else 0  # the constant profile is `hard`'s
        assert [own.profile.gamma for own in settings] == list(GAMMA.values())[first:]
        for own, values in zip(settings, list(found.values())[first:], strict=True):
            assert own.profile.w_max == stacks.W_MAX
            assert (own.profile.p_min, own.profile.p_max) == (
                values["p_min"],
                values["p_max"],
            )
            for name in values.keys() - set(stacks.PRIORS):
                assert getattr(own, name) == values[name], name


def test_the_study_of_hard_constraints_has_the_constant_profile():
    """It is trained as the other profiles for rankings are, and stands in for it there."""
    samplers, settings, seeds = stacks.hard(LOAN, [1000, 2000])
    of_rankings = stacks.soft("ranking", LOAN, [1000, 2000])
    assert (samplers, seeds) == (of_rankings[0][:2], of_rankings[2][:2])
    found = stacks.tuned("ranking")["constant"]
    assert settings == [stacks.soft_settings(found, "constant")] * 2
    for stack in (stacks.biased, stacks.carma):
        assert stack(LOAN, [1000])[1][0].hinge == settings[0].hinge


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


def test_missing_settings_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(stacks, "PARAMS", tmp_path)
    expected = "tuned_ranking.yaml, found none. Restore the file, or `make tune`"
    with pytest.raises(ValueError, match=re.escape(expected)):
        stacks.tuned("ranking")
    with pytest.raises(ValueError, match="Did you mean 'score'"):
        stacks.tuned("scores")
    assert (files.PARAMS / "tuned_score.yaml").is_file()


GOOD = """
constant: {p_min: 0.01, p_max: 0.6, mask: 1.0}
concave: {p_min: 0.01, p_max: 0.6, mask: 1.0}
linear: {p_min: 0.01, p_max: 0.6, mask: 1.0}
convex: {p_min: 0.01, p_max: 0.6, mask: 1}
"""


@pytest.mark.parametrize(
    ("then", "now", "message"),
    [
        (GOOD, "linear: [", r"is not YAML"),
        (GOOD, "", r"should hold lines `name: value`, it holds None"),
        (GOOD, "- linear", r"should hold lines `name: value`, it holds \['linear'\]"),
        ("linear", "linaer", r"Unknown profile .*'linaer'.*Did you mean 'linear'"),
        ("linear: {p_min: 0.01, p_max: 0.6, mask: 1.0}", "", r"no settings for linear"),
        ("linear: {p_min: 0.01, p_max: 0.6, mask: 1.0}", "linear: 3", r"linear: .* int"),
        ("mask: 1}", "maks: 1}", r"Unknown setting in .*, convex 'maks'.*mean 'mask'"),
        ("mask: 1}", "hidden: 8}", r"Unknown setting in .*, convex 'hidden'"),
        ("mask: 1}", "mask: 1e-3}", r"convex: mask must be a number, got '1e-3'"),
        ("mask: 1}", "mask: yes}", r"convex: mask must be a number, got True"),
        ("mask: 1}", "mask: -1}", r"convex: The weight of mask must not be below zero"),
        ("mask: 1}", "tau: 0}", r"convex: tau must be above zero"),
        ("p_max: 0.6, mask: 1}", "mask: 1}", r"convex: p_max is missing"),
        ("0.01, p_max: 0.6, mask: 1}", "0.7, p_max: 0.6}", r"convex: Priors must satisfy"),
    ],
)
def test_unusable_settings_are_named_with_their_file(
    monkeypatch, tmp_path, then, now, message
):
    monkeypatch.setattr(stacks, "PARAMS", tmp_path)
    path = tmp_path / "tuned_score.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert stacks.tuned("score")["convex"] == {"p_min": 0.01, "p_max": 0.6, "mask": 1}
    path.write_text(GOOD.replace(then, now), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as refusal:
        stacks.tuned("score")
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("name", [*stacks.STACKS, "transfer"])
def test_a_stack_needs_a_seed(name):
    with pytest.raises(ValueError, match=r"at least one seed"):
        (stacks.STACKS | {"transfer": stacks.transfer})[name](LOAN, [], 5)


def test_carma_asks_for_four_features():
    with pytest.raises(ValueError, match=r"about 4 actionable features, got 2 \(income, "):
        stacks.carma(("income", "savings"), [1], 5)
    with pytest.raises(ValueError, match=r"Unknown population 'co'"):
        stacks.everyone("co", 3)


def test_a_profile_is_selected_with_its_ids(problem):
    """Members of a selection are still told apart by the ids of the whole stack."""
    samplers, settings, seeds = stacks.soft("score", LOAN, [1000, 2000], 1)
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
