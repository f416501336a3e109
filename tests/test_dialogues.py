"""The study on top of a solver: ideals, who is asked, what a dialogue showed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.beyond.hare import dialogues
from lib.beyond.hare.draws import streams
from lib.beyond.hare.hare import Question, Simulated
from lib.beyond.hare.spaces import Actions
from lib.method import loan
from lib.method.classifier import Classifier
from lib.method.preferences import CONSTANT, Preferences
from lib.method.problem import Recommendation
from lib.paper import designs


@pytest.fixture(scope="module")
def refused():
    problem = loan.problem()
    x = problem.refused("validation")[:40]
    return problem, x, designs.hard_preferences(problem, len(x), 3)["random"]


def test_an_ideal_is_the_persons_own_and_only_just_so(refused):
    problem, x, preferences = refused
    truth = problem.population.truth
    space = Actions(problem, x, preferences, model=truth)
    ideal, has = dialogues.ideals(space, streams(len(x), 0))
    assert 5 < has.sum() < len(x)
    columns = problem.population.actionable_index
    assert not (ideal.is_acted[:, columns] & ~preferences.is_actionable)[has].any()
    x_cf = truth.counterfactual(x, ideal.is_acted, ideal.values)
    assert problem.accepts(x_cf)[has].all()
    assert (problem.flow.log_prob(x_cf) >= problem.flow.log_prob(x))[has].all()
    # a hundredth of the way back it is no longer acceptable, for nearly everybody
    back = space.outcome(ideal.is_acted, x + 0.99 * (ideal.values - x))
    assert space.accepts(back)[has].float().mean() < 0.1


def test_weights_keep_ideals_from_what_is_hard(refused):
    problem, x, _ = refused
    income_is_hardest = Preferences(torch.tensor([[1, 1, 4, 1]] * len(x)))
    truth, income = problem.population.truth, problem.population.features.index("income")

    def moved(beta, preferences=income_is_hardest):
        people = dialogues.participants(problem, x, preferences, 0, truth, beta)
        return (people.ideal - people.x)[:, income].abs().mean()

    assert moved(4.0) < moved(0.0)
    assert moved(4.0) < moved(4.0, income_is_hardest.with_profile(CONSTANT))


def test_who_has_no_ideal_is_left_out_and_nobody_is_named(refused):
    problem, x, preferences = refused
    people = dialogues.participants(problem, x, preferences, 0, problem.population.truth)
    assert 0 < len(people) < len(x)
    never = Classifier(problem.population.features, lambda x: -1 + 0 * x.sum(-1))
    with pytest.raises(ValueError, match="None of 40 people has an acceptable"):
        dialogues.participants(replace(problem, classifier=never), x, preferences, 0)


def test_knowing_the_mask_nothing_forbidden_is_shown_and_else_much_is(refused):
    problem, x, preferences = refused
    truth = problem.population.truth
    people = dialogues.participants(problem, x, preferences, 0, truth)
    nothing = Recommendation(people.x > 99, people.x, people.x)
    everything = Preferences(torch.ones_like(people.preferences.scores))
    rows = {}
    for known in (people.preferences, everything):
        space = Actions(problem, people.x, known, 3.0)
        user, rngs = Simulated(people.ideal), people.streams(1)
        dialogue = dialogues.hold(space, nothing, "remembered, 10", user, rngs)
        end = dialogue.incumbent
        measured = dialogues.evaluate(problem, people, end, dialogue, truth)
        assert (measured.asked <= 10).all()
        rows[known is everything] = measured
    assert rows[False].wasted.sum() == rows[False].forbidden.sum() == 0
    assert rows[True].wasted.mean() > 1
    assert (rows[True].usable <= rows[True].joint).all()


def test_a_question_is_wasted_if_its_new_option_is_forbidden(refused):
    problem, x, _ = refused
    closed = Preferences(torch.tensor([[1, 1, 5, 1]]))  # income is out of reach
    people = dialogues.Participants(x[:1], closed, x[:1] + 1)
    income = problem.population.features.index("income")
    bad, good = (
        Recommendation(acts[None], x[:1] + acts, x[:1] + acts)
        for acts in (torch.arange(7) == income, torch.arange(7) == income + 1)
    )
    asked = torch.tensor([True])
    answers = [
        (Question(good, bad, asked), asked),
        (Question(good, bad, asked), asked),
        (Question(bad, good, asked), asked),
        (Question(good, bad, ~asked), asked),  # not asked
    ]
    held = SimpleNamespace(answers=answers)
    row = dialogues.evaluate(problem, people, bad, held).iloc[0]
    assert (row.asked, row.wasted, row.forbidden, row.usable) == (3, 2, True, False)


def test_a_line_of_a_table_by_hand():
    rows = pd.DataFrame({"gtp": [0.5, 0.1], "gtd": [0.3, np.nan], "joint": [True, False]})
    rows = rows.assign(usable=rows.joint, forbidden=False, valid_in_truth=True, wasted=0)
    line = dialogues.summary(rows.assign(joint_in_truth=rows.joint, asked=[3, 2]))
    assert (line["people"], line["questions"], line["joint"]) == (2, 2.5, 0.5)
    assert (line["GTP"], line["+-"]) == pytest.approx((0.3, 0.2))
    assert line["GTD"] == 0.3  # of those who have one
