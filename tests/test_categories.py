"""A Likert scale has as many categories as it has, whatever the number of features."""

import pytest
import torch

from lib import io
from lib.beyond.propose.propose import Proposer
from lib.method import icarma, loan, metrics
from lib.method.grid import Grid
from lib.method.preferences import Preferences, Profile, from_words
from lib.method.samplers import ScoreSampler
from lib.search.continuous import Search


@pytest.fixture(scope="module")
def loan_problem():
    return loan.problem()


def test_easiest_hardest_and_cannot_mean_the_same_on_any_scale(loan_problem):
    """1, 4 and can't of four are as hard as 1, 5 and can't of five: the same answers."""
    x = loan_problem.refused("test")[:20]
    drawn = torch.randint(3, (20, 4), generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = drawn[:, 0] % 2  # everyone can do something
    of_four = Preferences(torch.tensor([1, 4, 5])[drawn])
    of_five = Preferences(torch.tensor([1, 5, 6])[drawn], n_categories=5)
    networks = icarma.load_by_profile(io.MODELS, "loan_icarma_score", loan_problem)
    networks, grid = networks["linear"][0], Grid(loan_problem, n_values=9)
    effort = {"n_samples": 16, "n_starts": 1, "n_steps": 3}
    solvers = {
        "grid": grid,
        "search": Search(loan_problem, **effort),
        "iCARMA": networks,
        "pruned": metrics.Pruned(networks, loan_problem),
        "proposer": Proposer.load(io.MODELS, "loan_propose", loan_problem),
    }
    for name, solver in solvers.items():
        asked = [of_four, of_five]
        if name in ("iCARMA", "pruned"):
            asked = [answers.with_profile(networks.profile) for answers in asked]
        one, other = (solver.recommend(x, answers) for answers in asked)
        assert one.is_acted.any(), name
        for tensors in ("is_acted", "values", "x_cf"):
            assert torch.equal(getattr(one, tensors), getattr(other, tensors)), name
        acts = one.is_acted[:, loan_problem.population.actionable_index]
        assert torch.equal(*(metrics.hard_action(p, acts) for p in (of_four, of_five)))


def test_weights_rise_over_the_categories():
    of_six = Preferences(torch.arange(1, 7)[None], 6, profile=Profile(w_max=6.0))
    assert of_six.weight.tolist() == [[1, 2, 3, 4, 5, 6]]
    of_three = Preferences(torch.tensor([[1, 2, 3, 4, 2, 1]]), n_categories=3)
    assert of_three.weight.tolist() == [[1, 4, 7, 1, 4, 1]]
    assert of_three.is_actionable.tolist() == [[True, True, True, False, True, True]]


def test_networks_are_trained_on_five_categories(loan_problem):
    sampler = ScoreSampler(4, with_impossible=True, n_categories=5)
    networks, _ = icarma.fit(loan_problem, sampler, icarma.Settings(n_epochs=1))
    x = loan_problem.refused("test")[:5]
    answers = "loan_amount: 5; loan_duration: can't; income: 1; savings: 3"
    preferences = from_words(answers, loan_problem.population.actionable, n_categories=5)
    assert preferences.scores.tolist() == [[5, 6, 1, 3]]
    recommendation = networks.recommend(x, preferences[[0] * 5])
    assert not recommendation.is_acted[:, 4].any()


def test_a_scale_is_checked():
    with pytest.raises(ValueError, match=r"between 1 and 5 \(6 for"):
        Preferences(torch.tensor([[1, 7]]), n_categories=5)
