"""Scores, profiles and answers in words against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method.icarma import Settings
from lib.method.limits import Limits
from lib.method.preferences import (
    CONSTANT,
    GAMMA,
    IMPOSSIBLE,
    LINEAR,
    PROFILES,
    WORDS,
    Preferences,
    Profile,
    from_frame,
    from_words,
    stack,
)

LOAN = ("loan_amount", "loan_duration", "income", "savings")


def test_scores_give_what_is_actionable():
    preferences = Preferences(torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1]]))
    is_actionable = torch.tensor([[True, True, False, True], [False, False, False, True]])
    assert torch.equal(preferences.is_actionable, is_actionable)
    assert preferences.difficulty[:, 2].tolist() == [0, 0]
    from_mask = Preferences.from_mask(is_actionable)
    assert from_mask.scores.tolist() == [[1, 1, 5, 1], [5, 5, 5, 1]]


@pytest.mark.parametrize(
    ("profile", "p_min", "weights", "priors"),
    [
        (CONSTANT, 0.05, [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]),
        (Profile(gamma=1, w_max=4), 0.05, [1, 2, 3, 4], [0.5, 0.35, 0.2, 0.05]),
        # by slope, the hardest is harder than one step after the other: p stops at p_min
        (Profile(gamma=2, w_max=4), 0.05, [1, 2, 5, 10], [0.5, 0.35, 0.05, 0.05]),
        (Profile(0.5, w_max=4), 0.5, [1, 2, 1 + 2**0.5, 1 + 3**0.5], [0.5] * 4),
        (Profile(2, 10, "normalised"), 0.05, [1, 2, 5, 10], [0.5, 0.45, 0.3, 0.05]),
        (Profile(2, 10, "mirrored"), 0.05, [1, 6, 9, 10], None),
    ],
)
def test_weights_and_priors_by_hand(profile, p_min, weights, priors):
    preferences = Preferences(torch.tensor([[1, 2, 3, 4]]), profile=profile)
    assert preferences.weight[0].tolist() == pytest.approx(weights, abs=1e-6)
    prior = Settings(p_max=0.5, p_min=p_min).prior(preferences)
    if priors is not None:
        assert prior[0].tolist() == pytest.approx(priors, abs=1e-6)
    by_weight = Settings(p_max=0.5, p_min=p_min, prior_form="weight").prior(preferences)
    expected = [max(0.5 / w, p_min) for w in weights]
    assert by_weight[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_default_profile_is_linear_and_kept():
    preferences = Preferences(torch.tensor([[1, 2], [2, 1]]))
    assert preferences.profile == LINEAR == PROFILES["linear"]
    constant = preferences.with_profile(CONSTANT)
    assert constant[1].profile == stack([constant, constant]).profile == CONSTANT
    assert torch.equal(stack([constant] * 3).members([0, 2]).scores[1], constant.scores)
    for other in (constant, Preferences(torch.tensor([[1, 2], [2, 1]]), 5)):
        with pytest.raises(ValueError, match="one scale and profile"):
            stack([preferences, other])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preferences(torch.tensor([[1, 2], [3, 3]])), r"act on nothing .* row 1"),
        (lambda: Preferences(torch.tensor([[0, 1, 2, 3]])), "between 1 and 4"),
        (lambda: Preferences(torch.ones(3, 4)), "whole numbers"),
        (lambda: Preferences(torch.ones(3, 4) > 0), "whole numbers"),
        (lambda: Preferences([[1, 2, 3, 4]]), "whole numbers"),
        (
            lambda: Preferences(torch.ones(1, 2).long(), limits=Limits.unlimited(2)),
            "limits has shape",
        ),
        (lambda: Profile(gamma=float("inf")), "gamma"),
        (lambda: Profile(w_max=0.5), "w_max"),
        (lambda: Profile(w_max=float("nan")), "w_max"),
    ],
)
def test_bad_preferences_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_profiles_of_the_paper_by_hand():
    """h at the scores 1 to 4: a third of 0, 1, 2, 3, of their roots and their powers."""
    expected = {
        "constant": [0, 0, 0, 0],
        "concave": [0, 1 / 3, 2 ** (2 / 3) / 3, 3 ** (2 / 3) / 3],
        "linear": [0, 1 / 3, 2 / 3, 1],
        "convex": [0, 1 / 3, 2**1.5 / 3, 3**0.5],
    }
    scores = torch.tensor([[1, 2, 3, 4]])
    for name, gamma in GAMMA.items():
        difficulty = Profile(gamma).difficulty(scores, 4)[0].tolist()
        assert difficulty == pytest.approx(expected[name], abs=1e-6), name


def test_the_smallest_prior_is_never_zero():
    """Its logarithm stands in the loss; in single precision 0.5 - (0.5 - 1e-12) is 0."""
    preferences = Preferences(torch.tensor([[4, 1, 1, 1]]))
    prior = Settings(p_max=0.5, p_min=1e-12).prior(preferences)
    assert prior[0, 0] == torch.tensor(1e-12)


def test_the_answers_of_one_person():
    preferences = from_words(
        "Income: can't; savings: hard; loan amount: easy; loan_duration: 2", LOAN
    )
    assert preferences.scores.tolist() == [[1, 2, 5, 3]]
    as_mapping = {"income": "can\u2019t", "savings": "HARD", "loan_amount": 1}
    as_mapping["loan duration"] = "manageable"
    assert from_words(as_mapping, LOAN).scores.tolist() == [[1, 2, 5, 3]]
    names = ("Monthly_Income", "MonthlyIncome2")
    scores = from_words("monthly income: 2; MonthlyIncome2: 1", names).scores
    assert scores.tolist() == [[2, 1]]
    assert from_words("a: easy\nb: very hard", ("a", "b")).scores.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("income: can't", "about loan_amount, loan_duration, savings. .* say easy"),
        ("incme: easy", "Unknown feature 'incme'.*Did you mean 'income'"),
        ("income easy", "Unknown feature 'income easy'"),
        ("income: easy; Income: hard", "income is answered twice"),
        (
            "income: 5; savings: 1; loan amount: 2; loan duration: 3",
            "income: can't read '5'",
        ),
        (dict.fromkeys(LOAN, "so-so"), "loan_amount: can't read 'so-so'"),
        (dict.fromkeys(LOAN, "can't"), "Is there one feature, however hard"),
    ],
)
def test_answers_that_cannot_be_read(answers, message):
    with pytest.raises(ValueError, match=message):
        from_words(answers, LOAN)


def test_some_people_of_many():
    scores = torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1], [1, 1, 1, 1]])
    preferences = Preferences(scores)
    stacked = Preferences(torch.stack([scores, scores.flip(0)]))
    assert (len(preferences), len(stacked)) == (3, 3)
    for rows, expected in [
        (-1, [2]),
        (slice(1, None), [1, 2]),
        (range(2), [0, 1]),
        ([2, 0, 0], [2, 0, 0]),
        (np.array([2, 0]), [2, 0]),
        (torch.tensor([True, False, True]), [0, 2]),
        ([], []),
    ]:
        assert torch.equal(preferences[rows].scores, scores[expected]), rows
        chosen = stacked[rows].scores
        assert chosen.shape == (2, len(expected), 4), rows
        assert torch.equal(chosen[1], scores.flip(0)[expected]), rows
    assert torch.equal(torch.cat([person.scores for person in preferences]), scores)


@pytest.mark.parametrize("rows", [[True, False], [0.5], 3])
def test_rows_that_name_nobody_are_refused(rows):
    preferences = Preferences(torch.tensor([[1, 2], [2, 1], [1, 1]]))
    with pytest.raises(IndexError):
        preferences[rows]


@pytest.mark.parametrize(
    ("n_features", "expected"),
    [
        (1, [1, 1, 1, 1]),
        (2, [1, 1, 2, 2]),
        (4, [1, 2, 3, 4]),
        (7, [1, 3, 5, 7]),
    ],
)
def test_words_for_any_number_of_features(n_features, expected):
    """The nearest whole numbers to 1, 1 + (K - 1) / 3, 1 + 2 (K - 1) / 3 and K."""
    features = [f"feature {i}" for i in range(n_features)]
    others = dict.fromkeys(features[1:], "easy")
    for word, score in zip(WORDS, expected, strict=True):
        preferences = from_words({features[0]: word} | others, features)
        assert preferences.scores.tolist() == [[score] + [1] * (n_features - 1)], word
        assert preferences.is_actionable.all(), word
    for word in IMPOSSIBLE if n_features > 1 else ():
        preferences = from_words({features[0]: word} | others, features)
        assert preferences.scores[0, 0] == n_features + 1, word
        assert not preferences.is_actionable[0, 0], word


def test_answers_from_a_frame():
    frame = pd.DataFrame(
        {
            "savings": ["hard", 1],
            "income": ["can't", "easy"],
            "loan_duration": [2, 4],
            "loan_amount": ["Easy", "very  hard"],
        },
        index=["Ada", "Ben"],
    )
    assert from_frame(frame, LOAN).scores.tolist() == [[1, 2, 5, 3], [4, 4, 1, 1]]
    assert from_frame(frame, LOAN, n_categories=7).scores[1].tolist() == [7, 4, 1, 1]
    with_floats = frame.astype({"loan_duration": float})
    assert from_frame(with_floats, LOAN).scores[:, 1].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame[:0], "holds no answers: expected a row for each person"),
        (lambda frame: frame.drop(columns="income"), "no answer about income"),
        (lambda frame: frame[[*LOAN, "income"]], "has the column income twice"),
        (lambda frame: frame.assign(incme="easy"), "Unknown feature 'incme'.*Did you mean"),
        (lambda frame: frame.assign(Income="easy"), "row Ada: income is answered twice"),
        (
            lambda frame: frame.assign(income=["easy", np.nan]),
            "row Ben: income: can't read 'nan'. For each feature say easy",
        ),
        (
            lambda frame: pd.DataFrame("can't", frame.index, frame.columns),
            "row Ada: This person can't act on anything",
        ),
    ],
)
def test_a_wrong_frame_is_named(change, message):
    frame = pd.DataFrame("easy", index=["Ada", "Ben"], columns=list(LOAN))
    with pytest.raises(ValueError, match=message):
        from_frame(change(frame), LOAN)


def test_answers_that_several_people_give_are_read_for_each_of_them():
    rows = [{"a": "hard", "b": "easy, only up"}, {"a": 1, "b": "can't"}, {"a": "1", "b": 2}]
    order = [0, 1, 0, 2, 1, 0]
    frame = pd.DataFrame([rows[i] for i in order])
    together = from_frame(frame, ["a", "b"])
    for person, i in enumerate(order):
        alone = from_words(rows[i], ["a", "b"])
        assert torch.equal(together[person].scores, alone.scores)
        stated = together[person].limits.is_stated
        assert torch.equal(
            stated, alone.limits.is_stated if alone.limits else stated & False
        )
