"""Another threshold than one half: who is refused, what holds, and what is said."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.method import words
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.grid import Grid
from lib.method.preferences import Preferences
from lib.method.problem import Recommendation
from lib.search.continuous import Search


def test_probabilities_stay_and_decisions_move(problem):
    h, x = problem.classifier, problem.population.x["recourse/test"]
    for own in (h, Classifier(h.features, h.logit)):
        strict = own.at(0.8)
        assert torch.allclose(strict.probability(x), own.probability(x))
        assert torch.equal(strict.accepts(x), own.probability(x) >= 0.8)
        again = strict.at(0.3)
        assert torch.equal(again.accepts(x), own.probability(x) >= 0.3)
        assert torch.allclose(again.probability(x), own.probability(x))
        assert own.threshold == 0.5 and strict.threshold == 0.8


def test_a_share_is_accepted(problem):
    x = problem.population.x["recourse/train"]
    for share in (0.1, 0.5, 0.9):
        accepts = problem.classifier.accepting(share, x).accepts(x)
        assert accepts.double().mean().item() == pytest.approx(share, abs=1 / len(x))


@pytest.mark.parametrize("solver", [Grid, Search])
def test_solvers_reach_the_threshold(problem, solver):
    strict = replace(problem, classifier=problem.classifier.at(0.8))
    x = strict.refused("test")[:20]
    assert len(strict.refused("test")) > len(problem.refused("test"))
    how = {"n_values": 9} if solver is Grid else {"n_scouts": 32}
    own = Preferences(torch.ones(len(x), 4, dtype=torch.long))
    found = solver(strict, **how).recommend(x, own)
    helped = found.has_recourse
    rating = problem.classifier.probability(found.x_cf[helped])
    assert helped.any() and (rating >= 0.8 - 1e-6).all()
    # a grid is no search around the bound; the search ends close to it
    if solver is Search:
        assert rating.median() < 0.85


def test_words_say_the_threshold(problem):
    strict = replace(problem, classifier=problem.classifier.at(0.8))
    x = strict.refused("test")[:4]
    acts = torch.zeros_like(x, dtype=torch.bool)
    acts[:, 5] = True
    x_cf = problem.flow.counterfactual(x, acts, x)
    told = words.table(strict, x, Recommendation(acts, x, x_cf))
    rating = 100 * problem.classifier.probability(x)[0].item()
    assert told.why[0] == f"the rating is {rating:.2g} %, below 80 %"


def test_it_is_saved(problem, tmp_path):
    strict = problem.classifier.at(0.8)
    strict.save(tmp_path, "h", {"seed": 0})
    again = NetworkClassifier.load(tmp_path, "h")
    x = problem.population.x["recourse/test"]
    assert again.threshold == 0.8
    assert torch.equal(again.probability(x), strict.probability(x))


def test_numbers_out_of_range_are_refused(problem):
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="threshold is"):
            problem.classifier.at(wrong)
        with pytest.raises(ValueError, match="share is"):
            problem.classifier.accepting(wrong, problem.refused("test"))
