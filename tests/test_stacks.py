"""Who is in the ensembles: the constant profile is the study of hard constraints, and CARMA
knows no individuals.
"""

import numpy as np
import pytest
import torch

from lib.method import icarma
from lib.method.samplers import permutation_probabilities
from lib.paper import readings, stacks

LOAN = ("loan_amount", "loan_duration", "income", "savings")
EVERY = stacks.STACKS | stacks.TRANSFER


@pytest.mark.parametrize("name", EVERY)
def test_every_study_has_its_members(name):
    for profile, members in EVERY[name](LOAN, [1000, 2000], 5).items():
        samplers, settings, seeds = members
        assert len(samplers) == len(settings) == len(seeds)
        assert set(seeds) == {1000, 2000}
        assert {s.n_epochs for s in settings} == {5}
        elicitation = "score" if name.endswith("_score") else "ranking"
        assert {s.profile for s in samplers} == {readings.profile(profile, elicitation)}
        for shared in icarma.SHARED:
            assert len({getattr(s, shared) for s in settings}) == 1


def test_networks_have_the_settings_that_are_printed_or_chosen():
    """Length included, unless another is asked for; two profiles have fewer seeds."""
    ten = [1000 * (i + 1) for i in range(10)]
    by_profile = stacks.STACKS["loan_icarma_score"](LOAN, ten, None)
    n_seeds = {"constant": 10, "concave": 4, "linear": 10, "convex": 4}
    assert list(by_profile) == list(n_seeds)
    for name, (_, settings, seeds) in by_profile.items():
        assert settings == [readings.as_printed("score", name)] * n_seeds[name]
        assert seeds == ten[: n_seeds[name]]
    for name, (_, settings, seeds) in stacks.STACKS["loan_chosen_ranking"](
        LOAN, ten, None
    ).items():
        assert settings == [readings.chosen("ranking", name)] * 4 and seeds == ten[:4]
    # the constant profile of rankings is the study of hard constraints
    assert "constant" not in stacks.STACKS["loan_icarma_ranking"](LOAN, ten, None)
    constant = [readings.as_printed("ranking", "constant")] * 10
    assert stacks.hard(LOAN, ten)["constant"][1] == constant


def test_carma_is_given_the_rounded_mean_of_its_population():
    for population, scores in stacks.EVERYONE.items():
        rankings, probabilities = permutation_probabilities(population, LOAN)
        mean = probabilities @ rankings
        if population == "uniform":
            assert mean == pytest.approx([2.5] * 4)  # no feature is harder than another
            assert len(set(scores)) == 1
        else:
            assert mean.round().tolist() == list(scores)
    by_profile = stacks.carma(LOAN, [1000], 5)
    for name, population in {"constant": "uniform", "linear": "rco"}.items():
        samplers, settings, _ = by_profile[name]
        drawn = samplers[0].draw(range(50), np.random.default_rng(0))
        expected = torch.tensor([stacks.EVERYONE[population]]).expand(50, -1)
        assert torch.equal(drawn.scores, expected) and drawn.is_actionable.all()
        assert settings[0].plausibility == settings[0].feasibility == 0
        torch.testing.assert_close(settings[0].prior(drawn), 0.5 / drawn.weight)
