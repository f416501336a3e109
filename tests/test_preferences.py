"""Scores, profiles and answers in words against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.method.icarma import Settings
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
    read_answers,
    stack,
)

LOAN = ("loan_amount", "loan_duration", "income", "savings")


def test_scores_give_what_is_actionable():
    preferences = Preferences(torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1]]))
    assert preferences.is_actionable.tolist() == [
        [True, True, False, True],
        [False, False, False, True],
    ]
    from_mask = Preferences.from_mask(torch.tensor([[True, False, True, True]]))
    assert from_mask.scores.tolist() == [[1, 5, 1, 1]]


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


def test_what_cannot_be_done_has_no_difficulty():
    preferences = Preferences(torch.tensor([[5, 4, 1, 5]]))
    assert preferences.difficulty[0].tolist() == [0, 1, 0, 0]


def test_the_default_profile_is_linear_and_kept():
    preferences = Preferences(torch.tensor([[1, 2], [2, 1]]))
    assert preferences.profile == LINEAR == PROFILES["linear"]
    constant = preferences.with_profile(CONSTANT)
    assert constant[1].profile == stack([constant, constant]).profile == CONSTANT
    assert torch.equal(stack([constant] * 3).members([0, 2]).scores[1], constant.scores)
    with pytest.raises(ValueError, match="same people, features, scale and profile"):
        stack([preferences, constant])
    spoken = from_words("a: easy; b: hard", ("a", "b"), profile=CONSTANT)
    assert spoken.profile == CONSTANT


def test_bad_preferences_are_named():
    with pytest.raises(
        ValueError, match=r"1 people may act on nothing at all .the first is row 1."
    ):
        Preferences(torch.tensor([[1, 2, 3, 4], [5, 5, 5, 5]]))
    with pytest.raises(ValueError, match="act on nothing"):
        Preferences.from_mask(torch.zeros(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="A mask must be of bool"):
        Preferences.from_mask(torch.ones(2, 4))
    for wrong in (
        {"gamma": 0},
        {"gamma": float("inf")},
        {"gamma": float("nan")},
        {"w_max": float("inf")},
        {"w_max": float("nan")},
        {"w_max": 0.5},
    ):
        with pytest.raises(ValueError, match=r"gamma|w_max"):
            Profile(**wrong)
    with pytest.raises(ValueError, match="between 1 and 4"):
        Preferences(torch.tensor([[0, 1, 2, 3]]))
    with pytest.raises(ValueError, match="whole numbers"):
        Preferences(torch.ones(3, 4))
    with pytest.raises(ValueError, match=r"a tensor of whole numbers .* got list"):
        Preferences([[1, 2, 3, 4]])


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
    as_mapping = {
        "income": "can\u2019t",
        "savings": "HARD",
        "loan_amount": "1",
        "loan_duration": "manageable",
    }
    assert from_words(as_mapping, LOAN).scores.tolist() == [[1, 2, 5, 3]]
    assert from_words(
        "monthly income: 2; MonthlyIncome2: 1", ("Monthly_Income", "MonthlyIncome2")
    ).scores.tolist() == [[2, 1]]
    assert from_words("a: easy\nb: very hard", ("a", "b")).scores.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            "income: can't",
            r"answer about loan_amount, loan_duration, savings. For each feature say easy",
        ),
        ("incme: easy", "Unknown feature 'incme'.*Did you mean 'income'"),
        ("income: easy; Income: hard", "income is answered twice"),
        ("income easy", "divided by semicolons, got 'income easy'"),
        (
            "income: 5; savings: 1; loan amount: 2; loan duration: 3",
            "income: can't read '5'. Say easy, .* from 1 .easiest. to 4",
        ),
        (
            "income: so-so; savings: 1; loan amount: 2; loan duration: 3",
            "can't read 'so-so'",
        ),
        (
            "income: can't; savings: cannot; loan amount: impossible; loan duration: can't",
            "Is there one feature, however hard",
        ),
    ],
)
def test_answers_that_cannot_be_read(answers, message):
    with pytest.raises(ValueError, match=message):
        from_words(answers, LOAN)


def test_answers_from_a_file(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "savings,income,loan_duration,loan_amount,name\n"
        "3,can't,easy,2,A\n"
        "hard,1,very hard,2,B\n",
        encoding="utf-8",
    )
    assert read_answers(path, LOAN).scores.tolist() == [[2, 1, 5, 3], [2, 4, 1, 3]]
    path.write_text(
        "savings,income,loan_duration,loan_amount\n3,1,2,2\n3,1,2,six\n", encoding="utf-8"
    )
    with pytest.raises(
        ValueError, match=r"answers.csv: line 3: loan_amount: can't read 'six'"
    ):
        read_answers(path, LOAN)
    path.write_text("savings,income,loan_duration\n3,1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column loan_amount; found savings"):
        read_answers(path, LOAN)
    path.write_text("savings,income,loan_duration,loan_amount\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no answers below its header"):
        read_answers(path, LOAN)
    with pytest.raises(ValueError, match="found none"):
        read_answers(tmp_path / "nowhere.csv", LOAN)


def test_some_people_of_many():
    scores = torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1], [1, 1, 1, 1]])
    preferences = Preferences(scores)
    stacked = Preferences(torch.stack([scores, scores.flip(0)]))
    assert (len(preferences), len(stacked)) == (3, 3)
    mask = [True, False, True]
    for rows, expected in [
        (1, [1]),
        (-1, [2]),
        (slice(1, None), [1, 2]),
        (range(2), [0, 1]),
        ([2, 0, 0], [2, 0, 0]),
        (np.array([2, 0]), [2, 0]),
        (torch.tensor([2, 0]), [2, 0]),
        (mask, [0, 2]),
        (np.array(mask), [0, 2]),
        (torch.tensor(mask), [0, 2]),
        ([], []),
    ]:
        assert torch.equal(preferences[rows].scores, scores[expected]), rows
        chosen = stacked[rows].scores
        assert chosen.shape == (2, len(expected), 4), rows
        assert torch.equal(chosen[1], scores.flip(0)[expected]), rows
    assert [person.scores.tolist() for person in preferences] == [
        [row] for row in scores.tolist()
    ]


@pytest.mark.parametrize("rows", [[True, False], [0.5], [[0, 1]], torch.ones(3)])
def test_rows_that_name_nobody_are_refused(rows):
    preferences = Preferences(torch.tensor([[1, 2], [2, 1], [1, 1]]))
    with pytest.raises(ValueError, match=r"row numbers of the 3 people, .* shape \(3,\)"):
        preferences[rows]
    with pytest.raises(IndexError):
        preferences[3]


@pytest.mark.parametrize(
    ("n_features", "expected"),
    [
        (1, [1, 1, 1, 1]),
        (2, [1, 1, 2, 2]),
        (3, [1, 2, 2, 3]),
        (4, [1, 2, 3, 4]),
        (5, [1, 2, 4, 5]),
        (6, [1, 3, 4, 6]),
        (7, [1, 3, 5, 7]),
        (8, [1, 3, 6, 8]),
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
    for number in range(1, n_features + 1):
        preferences = from_words({features[0]: str(number)} | others, features)
        assert preferences.scores[0, 0] == number
    hard = from_words({features[0]: "hard"} | others, features).difficulty[0, 0].item()
    assert hard == pytest.approx((expected[2] - 1) / max(n_features - 1, 1))


def test_who_can_do_nothing_with_one_feature_is_named():
    with pytest.raises(ValueError, match="This person can't act on anything"):
        from_words("visits: can't", ["visits"])


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
    before = frame.copy()
    assert from_frame(frame, LOAN).scores.tolist() == [[1, 2, 5, 3], [4, 4, 1, 1]]
    assert frame.equals(before)
    one_by_one = [from_words(row.to_dict(), LOAN).scores for _, row in frame.iterrows()]
    assert torch.equal(from_frame(frame, LOAN).scores, torch.cat(one_by_one))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame[:0], "holds no answers: expected a row for each person"),
        (
            lambda frame: frame.drop(columns="income"),
            "has no column income; found loan_amount, loan_duration, savings",
        ),
        (lambda frame: frame.assign(incme="easy"), "Unknown column 'incme'.*Did you mean"),
        (
            lambda frame: pd.concat([frame, frame[["income"]]], axis=1),
            "has the column income twice",
        ),
        (
            lambda frame: frame.assign(income=["easy", np.nan]),
            r"row Ben: income is not answered \(the cell is NaN or None\). For each",
        ),
        (
            lambda frame: frame.assign(income=[None, "easy"]),
            "row Ada: income is not answered",
        ),
        (
            lambda frame: frame.assign(income=["easy", "so-so"]),
            "row Ben: income: can't read 'so-so'",
        ),
        (
            lambda frame: pd.DataFrame("can't", frame.index, frame.columns),
            "row Ada: This person can't act on anything",
        ),
        (lambda frame: frame.to_dict(), "Expected a pandas frame .* got dict"),
    ],
)
def test_a_wrong_frame_is_named(change, message):
    frame = pd.DataFrame("easy", index=["Ada", "Ben"], columns=list(LOAN))
    with pytest.raises(ValueError, match=message):
        from_frame(change(frame), LOAN)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ((), "names of one feature or more"),
        ("income", "names of one feature or more, as a sequence, got 'income'"),
        (("Income", "income"), "read alike"),
        (("a_b", "a b"), "read alike"),
    ],
)
def test_features_that_read_alike_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        from_words("income: easy", features)
    with pytest.raises(ValueError, match=message):
        from_frame(pd.DataFrame({"income": ["easy"]}), features)


def test_a_file_names_the_line_and_leaves_other_columns_alone(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("name,income,savings\n\nA,1,\n", encoding="utf-8-sig")
    with pytest.raises(ValueError, match=r"answers.csv: line 3: savings: can't read ''"):
        read_answers(path, ("income", "savings"))
    path.write_text('name,income,savings\n"A\nB",1,2\nC,can\'t,no\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 4: savings: can't read 'no'"):
        read_answers(path, ("income", "savings"))
    path.write_text("income,income,savings\n1,2,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has the column income twice"):
        read_answers(path, ("income", "savings"))
    path.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="no column income, savings; found nothing"):
        read_answers(path, ("income", "savings"))
