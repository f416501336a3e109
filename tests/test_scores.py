"""Scores, profiles and answers in words against numbers worked out by hand."""

import pytest
import torch

from lib.preferences.scores import GAMMA, Preferences, Profile, from_words, read

LOAN = ("loan_amount", "loan_duration", "income", "savings")


def test_scores_say_what_is_actionable():
    preferences = Preferences(torch.tensor([[1, 2, 5, 4], [5, 5, 5, 1]]))
    assert preferences.is_actionable.tolist() == [
        [True, True, False, True],
        [False, False, False, True],
    ]
    from_mask = Preferences.from_mask(torch.tensor([[True, False, True, True]]))
    assert from_mask.scores.tolist() == [[1, 5, 1, 1]]


@pytest.mark.parametrize(
    ("profile", "weights", "priors"),
    [
        (Profile(), [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]),
        (Profile(gamma=1, w_max=4, p_min=0.05), [1, 2, 3, 4], [0.5, 0.35, 0.2, 0.05]),
        (Profile(gamma=2, w_max=10, p_min=0.05), [1, 2, 5, 10], [0.5, 0.45, 0.3, 0.05]),
        (
            Profile(gamma=0.5, w_max=4, p_min=0.05),
            [1, 1 + 3 / 3**0.5, 1 + 3 * (2 / 3) ** 0.5, 4],
            None,
        ),
    ],
)
def test_weights_and_priors_by_hand(profile, weights, priors):
    preferences = Preferences(torch.tensor([[1, 2, 3, 4]]))
    assert profile.weight(preferences)[0].tolist() == pytest.approx(weights, abs=1e-6)
    if priors is not None:
        assert profile.prior(preferences)[0].tolist() == pytest.approx(priors, abs=1e-6)


def test_what_cannot_be_done_has_no_hardness():
    profile = Profile(gamma=1, w_max=4, p_min=0.05)
    assert profile.hardness(Preferences(torch.tensor([[5, 4, 1, 5]])))[0].tolist() == [
        0,
        1,
        0,
        0,
    ]


def test_bad_preferences_are_named():
    with pytest.raises(
        ValueError, match="1 people may act on nothing at all .the first is row 1."
    ):
        Preferences(torch.tensor([[1, 2, 3, 4], [5, 5, 5, 5]]))
    with pytest.raises(ValueError, match="act on nothing"):
        Preferences.from_mask(torch.zeros(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="A mask must be of bool"):
        Preferences.from_mask(torch.ones(2, 4))
    for wrong in (
        {"gamma": 0},
        {"w_max": 0.5},
        {"p_min": 0},
        {"p_min": 0.6},
        {"p_max": 1.0},
    ):
        with pytest.raises(ValueError, match="gamma|w_max|Priors"):
            Profile(**wrong)
    with pytest.raises(ValueError, match="between 1 and 4"):
        Preferences(torch.tensor([[0, 1, 2, 3]]))
    with pytest.raises(ValueError, match="whole numbers"):
        Preferences(torch.ones(3, 4))


def test_profiles_of_the_paper_by_hand():
    """h at the scores 1 to 4: thirds, their roots and their squares."""
    expected = {
        "constant": [0, 0, 0, 0],
        "concave": [0, 3**-0.5, (2 / 3) ** 0.5, 1],
        "linear": [0, 1 / 3, 2 / 3, 1],
        "convex": [0, 1 / 9, 4 / 9, 1],
    }
    scores = Preferences(torch.tensor([[1, 2, 3, 4]]))
    for name, gamma in GAMMA.items():
        profile = Profile(gamma, w_max=11, p_min=0.1)
        assert profile.hardness(scores)[0].tolist() == pytest.approx(
            expected[name], abs=1e-6
        ), name
        assert profile.weight(scores)[0].tolist() == pytest.approx(
            [1 + 10 * h for h in expected[name]], abs=1e-5
        ), name
        assert profile.prior(scores)[0].tolist() == pytest.approx(
            [0.5 - 0.4 * h for h in expected[name]], abs=1e-6
        ), name


def test_the_smallest_prior_is_never_zero():
    """Its logarithm stands in the loss; in single precision 0.5 - (0.5 - 1e-12) is 0."""
    assert Profile(gamma=1, p_min=1e-12).prior(Preferences(torch.tensor([[4, 1, 1, 1]])))[
        0, 0
    ] == torch.tensor(1e-12)


def test_what_one_person_says():
    said = from_words(
        "Income: can't; savings: hard; loan amount: easy; loan_duration: 2", LOAN
    )
    assert said.scores.tolist() == [[1, 2, 5, 3]]
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
    ("said", "message"),
    [
        (
            "income: can't",
            "Nothing was said about loan_amount, loan_duration, savings. For each feature say easy",
        ),
        ("incme: easy", "Unknown feature 'incme'.*Did you mean 'income'"),
        ("income: easy; Income: hard", "income is answered twice"),
        ("income easy", "parts divided by semicolons, got 'income easy'"),
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
def test_answers_that_cannot_be_read(said, message):
    with pytest.raises(ValueError, match=message):
        from_words(said, LOAN)


def test_answers_from_a_file(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "savings,income,loan_duration,loan_amount,name\n3,can't,easy,2,A\nhard,1,very hard,2,B\n",
        encoding="utf-8",
    )
    assert read(path, LOAN).scores.tolist() == [[2, 1, 5, 3], [2, 4, 1, 3]]
    path.write_text(
        "savings,income,loan_duration,loan_amount\n3,1,2,2\n3,1,2,six\n", encoding="utf-8"
    )
    with pytest.raises(
        ValueError, match="answers.csv, line 3: loan_amount: can't read 'six'"
    ):
        read(path, LOAN)
    path.write_text("savings,income,loan_duration\n3,1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column loan_amount; found savings"):
        read(path, LOAN)
    path.write_text("savings,income,loan_duration,loan_amount\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no answers below its header"):
        read(path, LOAN)
    with pytest.raises(ValueError, match="found none"):
        read(tmp_path / "nowhere.csv", LOAN)
