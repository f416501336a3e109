"""The designs: the same people in every setting of a table."""

import pytest
import torch

from lib.io import MODELS
from lib.method import grid, loan
from lib.method.icarma import ICarma, load_by_profile
from lib.method.preferences import CONSTANT, LINEAR, Preferences, from_words
from lib.method.problem import is_plausible, is_valid
from lib.paper import designs, tables


def test_settings_of_table_one_are_nested(problem):
    drawn = designs.hard_preferences(problem, 300, seed=0)
    assert list(drawn) == ["all (4)", "3", "2", "1", "random"]
    for more, fewer in (("all (4)", "3"), ("3", "2"), ("2", "1")):
        assert not (drawn[fewer].is_actionable & ~drawn[more].is_actionable).any()
    shared = drawn["2"].is_actionable
    assert torch.equal(drawn["2"].scores[shared], drawn["all (4)"].scores[shared])


@pytest.mark.parametrize("elicitation", ["ranking", "score"])
def test_soft_settings_are_those_of_the_tables(problem, elicitation):
    drawn = designs.soft_preferences(problem, elicitation, 400, seed=0)
    assert list(drawn) == ["soft", "hard (random) + soft"]
    assert (
        drawn["soft"].is_actionable.all()
        and not drawn["hard (random) + soft"].is_actionable.all()
    )
    if elicitation == "ranking":  # the same ranking, cut for some
        kept = drawn["hard (random) + soft"].is_actionable
        assert torch.equal(
            drawn["soft"].scores[kept], drawn["hard (random) + soft"].scores[kept]
        )
    with pytest.raises(ValueError, match="Did you mean 'ranking'"):
        designs.soft_preferences(problem, "rankings", 3, seed=0)


def test_populations_that_lean(problem):
    drawn = designs.biased_preferences(problem, 200, seed=0)
    assert list(drawn) == list(dict.fromkeys(tables.published(5).setting))
    features = problem.population.actionable
    for bias, favourites in (
        ("causal order aligned", ("income", "loan_amount")),
        ("reverse causal order aligned", ("loan_duration", "savings")),
    ):
        only = drawn[f"{bias}, 1"].is_actionable
        assert not only[
            :, [j for j, name in enumerate(features) if name not in favourites]
        ].any()


def test_rankings_are_shared_by_the_settings_of_the_transfer(problem):
    drawn = designs.transfer_preferences(problem, 40, seed=1)
    assert drawn["soft, linear"].profile == LINEAR
    assert drawn["all (4)"].profile == drawn["hard (3) + soft, constant"].profile
    assert drawn["all (4)"].profile == CONSTANT
    assert torch.equal(drawn["soft, linear"].scores, drawn["all (4)"].scores)
    assert (drawn["hard (3) + soft, linear"].is_actionable.sum(-1) == 3).all()


def test_the_first_applicant_is_typical_and_everybody_helps_her():
    """By rule: of refused women nearest to the middle, the first whom all can help."""
    problem = loan.problem()
    population, h = problem.population, problem.classifier
    x = problem.refused("test")
    x = x[population.inverse_transform(x)[:, 0] < 0.5]
    everyone = problem.refused("test")
    compared = [
        (h.logit(everyone), h.logit(x)),
        (population.truth.log_prob(everyone), population.truth.log_prob(x)),
    ]
    places = [(a[None] < b[:, None]).double().mean(-1) for a, b in compared]
    order = (torch.stack(places) - 0.5).abs().amax(0).argsort()
    x = x[order[: loan.EXAMPLE_INDEX + 1]]
    answers = from_words(loan.EXAMPLE_PREFERENCES, population.actionable)
    preferences = Preferences(answers.scores.expand(len(x), -1))
    ensembles = [
        ICarma.load(MODELS, "loan_icarma_hard", problem),
        load_by_profile(MODELS, "loan_icarma_ranking", problem)["linear"],
    ]
    is_helped = []
    for ensemble in ensembles:
        asked = preferences.with_profile(ensemble.profile)
        log_odds, gain = problem.outcome(x, ensemble.recommend_each(x, asked).x_cf)
        is_helped.append(is_valid(log_odds) & is_plausible(gain))
    on_grid = grid.Grid(problem, population.truth).recommend(x, preferences)
    by_all = torch.cat(is_helped).all(0) & on_grid.has_recourse
    assert by_all.tolist() == [False] * loan.EXAMPLE_INDEX + [True]
    n_failed = (~is_helped[1]).sum(0)  # of the ten networks conditioned on difficulty
    assert n_failed.tolist() == [6, 0]
    assert torch.equal(loan.first_applicant(population, h), x[-1:])
