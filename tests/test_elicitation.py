"""What an answer tells, against closed forms and against plain enumeration."""

import numpy as np
import pytest
import torch

from lib.method import grid
from lib.method.preferences import Preferences
from lib.paper import elicitation
from lib.paper.elicitation import SHIFT, Way, Weighted


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_kinds_of_people_are_what_they_say():
    independent = elicitation.draw("independent", 20_000, 4, rng())
    assert independent.mean(0) == pytest.approx([0.5] * 4, abs=0.01)
    assert np.abs(np.corrcoef(independent.T) - np.eye(4)).max() < 0.03
    assert set(np.unique(elicitation.draw("two levels", 50, 4, rng()))) == {0, 1}
    only = elicitation.draw("order only", 6_000, 4, rng())
    assert np.sort(only, axis=1) == pytest.approx(np.tile([0, 1 / 3, 2 / 3, 1], (6_000, 1)))
    assert only.mean(0) == pytest.approx([0.5] * 4, abs=0.02)
    orders = np.unique(only.argsort(1), axis=0, return_counts=True)[1]
    assert len(orders) == 24 and orders == pytest.approx(250, rel=0.25)


def test_a_ranking_has_no_ties_and_ties_have_any_order():
    known = np.zeros((4_000, 3))
    ranks = Way(None).answer(known, rng())
    assert (np.sort(ranks, 1) == [1, 2, 3]).all()
    assert ranks.mean(0) == pytest.approx([2, 2, 2], abs=0.05)
    known = elicitation.draw("independent", 50, 4, rng())
    assert (Way(None).answer(known, rng()).argsort(1) == known.argsort(1)).all()


def test_a_ruler_of_ones_own_moves_scores_and_no_rank():
    known = elicitation.draw("independent", 2_000, 4, rng())
    shared, personal = (
        Way(4).answer(known, rng()),
        Way(4, own_ruler=True).answer(known, rng()),
    )
    assert (shared != personal).mean() > 0.3
    assert np.abs(shared - personal).max() <= 1 + 4 * SHIFT
    # within a person the order can become a tie, and is never turned round
    turned = np.diff(np.take_along_axis(personal, known.argsort(1), 1), axis=1)
    assert (turned >= 0).all()


def test_expected_hardness_is_the_mean_of_order_statistics_and_of_cells():
    ranks, levels = np.array([[1, 2, 3, 4]]), np.array([[1, 2, 1, 2]])
    of_ranks = Way(None).expected("independent", ranks, rng())[0]
    assert of_ranks == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=0.01)
    of_levels = Way(2).expected("independent", levels, rng())[0]
    assert of_levels == pytest.approx([0.25, 0.75, 0.25, 0.75], abs=0.01)
    nothing = Way(1).expected("order only", np.ones((1, 4), dtype=int), rng())[0]
    assert nothing == pytest.approx([0.5] * 4)


def test_given_weights_are_searched_by():
    given = torch.tensor([[1.0, 2.5]])
    assert Weighted(torch.tensor([[2, 1]]), given=given).weight is given
    with pytest.raises(ValueError, match=r"given has shape \(1, 2\), expected \(2, 2\)"):
        Weighted(torch.tensor([[2, 1], [1, 1]]), given=given)


def test_weights_of_a_ranking_give_the_search_by_the_linear_profile(problem):
    """The same weights by two ways, and the same recommendations."""
    x = problem.refused("test")[:12]
    scores = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] * 4)
    weights = elicitation.weights_of((scores.numpy() - 1) / 3, 7.0)
    cheapest = elicitation.cheapest(problem, x, weights, n_values=5)
    expected = grid.Grid(problem, n_values=5).recommend(x, Preferences(scores))
    assert torch.equal(cheapest.is_acted, expected.is_acted)
    assert torch.equal(cheapest.values, expected.values)


def test_nobody_who_knows_all_pays_less_by_being_asked(problem):
    """By true weights the search with these weights is cheapest; all are helped alike."""
    x = problem.refused("test")[:15]
    known = elicitation.draw("independent", len(x), 4, rng())
    true = elicitation.weights_of(known, 7.0)
    best = elicitation.cheapest(problem, x, true, n_values=5)
    lowest = problem.cost_of(x, best, true)
    for name, way in elicitation.WAYS.items():
        answers = way.answer(known, rng())
        expected = elicitation.weights_of(way.expected("independent", answers, rng()), 7.0)
        cheapest = elicitation.cheapest(problem, x, expected, n_values=5)
        assert torch.equal(cheapest.has_recourse, best.has_recourse), name
        assert (problem.cost_of(x, cheapest, true) >= lowest - 1e-6).all(), name


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: elicitation.draw("some", 2, 4, rng()), r"Unknown kind of people 'some'"),
        (lambda: elicitation.draw("independent", 0, 4, rng()), r"n_people"),
        (lambda: Way(0), r"n_levels"),
    ],
)
def test_bad_questions_are_named(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
