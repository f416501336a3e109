"""A Likert scale has as many categories as it has, whatever the number of features."""

import pytest
import torch

from lib.base.files import MODELS
from lib.beyond.propose.propose import Proposer
from lib.method import loan, metrics
from lib.method.grid import Grid
from lib.method.icarma import ICarma
from lib.method.preferences import Preferences, Profile, from_words
from lib.method.pruned import Pruned
from lib.method.samplers import ScoreSampler
from lib.method.training import Settings, fit
from lib.search.continuous import Refined, Search

LINEAR = Profile(1.0, w_max=7.0)


@pytest.fixture(scope="module")
def problem():
    return loan.problem()


@pytest.fixture(scope="module")
def solvers(problem):
    stack = ICarma.load(MODELS, "loan_icarma_score", problem).select([20])
    grid = Grid(problem, profile=LINEAR, n_values=9)
    effort = {"n_scouts": 16, "n_starts": 1, "n_steps": 3}
    return {
        "grid": grid,
        "search": Search(problem, profile=LINEAR, **effort),
        "iCARMA": stack,
        "pruned": Pruned(stack, problem, LINEAR),
        "refined": Refined(grid, problem, profile=LINEAR, **effort),
        "proposer": Proposer.load(MODELS, "loan_propose", problem),
    }


@pytest.mark.parametrize(
    "name", ["grid", "search", "iCARMA", "pruned", "refined", "proposer"]
)
def test_easiest_hardest_and_cannot_mean_the_same_on_any_scale(problem, solvers, name):
    """1, 4 and can't of four are as hard as 1, 5 and can't of five: the same answers."""
    x = problem.refused("test")[:20]
    rng = torch.Generator().manual_seed(0)
    drawn = torch.randint(3, (20, 4), generator=rng)
    drawn[:, 0] = drawn[:, 0] % 2  # everyone can do something
    of_four = Preferences(torch.tensor([1, 4, 5])[drawn])
    of_five = Preferences(torch.tensor([1, 5, 6])[drawn], n_categories=5)
    given = {"profile": LINEAR} if name == "proposer" else {}
    one, other = (solvers[name].recommend(x, own, **given) for own in (of_four, of_five))
    assert one.is_acted.any()
    for part in ("is_acted", "values", "x_cf"):
        assert torch.equal(getattr(one, part), getattr(other, part))
    acts = one.is_acted[..., problem.population.actionable_index]
    hard = [metrics.hard_action(own, acts) for own in (of_four, of_five)]
    assert torch.equal(*hard)


def test_weights_rise_over_the_categories():
    of_six = Preferences(torch.arange(1, 7)[None], n_categories=6)
    assert Profile(1.0, w_max=6.0).weight(of_six).tolist() == [[1, 2, 3, 4, 5, 6]]
    of_three = Preferences(torch.tensor([[1, 2, 3, 4, 2, 1]]), n_categories=3)
    weights = Profile(1.0, w_max=7.0).weight(of_three)
    assert weights.tolist() == [[1, 4, 7, 1, 4, 1]]
    assert of_three.is_actionable.tolist() == [[True, True, True, False, True, True]]


def test_networks_are_trained_on_five_categories(problem):
    sampler = ScoreSampler.uniform(4, with_impossible=True, n_categories=5)
    stack, history = fit(problem, sampler, Settings(LINEAR, n_epochs=1), seeds=[0])
    x = problem.refused("test")[:5]
    asked = from_words(
        "loan_amount: 5; loan_duration: can't; income: 1; savings: 3",
        problem.population.actionable,
        n_categories=5,
    )
    assert asked.scores.tolist() == [[5, 6, 1, 3]]
    found = stack.recommend(x, Preferences(asked.scores.expand(5, -1), 5))
    assert not found.is_acted[..., 4].any() and history["cost"].shape == (1, 1)


def test_a_scale_is_checked():
    with pytest.raises(ValueError, match=r"between 1 and 5 \(6 for"):
        Preferences(torch.tensor([[1, 7]]), n_categories=5)
    with pytest.raises(ValueError, match=r"from 1 \(easiest\) to 5"):
        from_words("a: 6; b: 1", ["a", "b"], n_categories=5)
