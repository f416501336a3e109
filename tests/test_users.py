"""Users: noise against exact chances, one real person, and a dialogue that goes on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.beyond.hare.hare import Dialogue, Question, remembered, rounds
from lib.beyond.hare.proposals import Local
from lib.beyond.hare.spaces import Features
from lib.beyond.hare.users import Asked, Simulated, refine
from lib.method.classifier import Classifier
from lib.method.problem import Recommendation

N = 4_000


def option(x_cf, is_acted=None):
    x_cf = torch.as_tensor(x_cf, dtype=torch.float64)
    return Recommendation(x_cf == x_cf if is_acted is None else is_acted, x_cf, x_cf)


def question(one, other, is_asked=None):
    everyone = torch.ones(len(one.x_cf), dtype=torch.bool)
    return Question(one, other, everyone if is_asked is None else is_asked)


def streams(n, seed=0):
    return np.random.default_rng(seed).spawn(n)


def dialogue_of(kind=rounds, n=1):
    """Return a dialogue in three features, and what its people want."""
    h = Classifier(("a", "b", "c"), lambda x: x.sum(1) - 1)
    x = torch.zeros(n, 3, dtype=torch.float64)
    space = Features(h, x, torch.tensor([True] * 3))
    base = space.outcome(x == 0, x + 1 / 3 + 1e-9)
    ideal = torch.tensor([[0.8, 0.2, 0.0]], dtype=torch.float64).expand(n, 3)
    if kind is remembered:
        return Dialogue(remembered(space, base, 15, streams(n), n_guesses=200)), ideal
    return Dialogue(rounds(space, base, Local(), 5, 3, streams(n))), ideal


def in_words(recommendation):
    return [", ".join(f"{value:.4f}" for value in row) for row in recommendation.x_cf]


def nearer(ideal):
    """Return a function that prefers the text nearer to an ideal."""

    def ask(one, other):
        far = [
            np.linalg.norm(np.array(text.split(", "), float) - ideal.numpy()[0])
            for text in (one, other)
        ]
        return other if far[1] < far[0] else one

    return ask


def test_a_simulated_person_prefers_what_is_nearer_and_says_when_it_will_do():
    rng = np.random.default_rng(0)
    ideal, one, other = (torch.from_numpy(rng.normal(size=(50, 3))) for _ in range(3))
    was, would_be = (np.linalg.norm(x - ideal, axis=1) for x in (one, other))
    within = torch.full((50,), 1.5, dtype=torch.float64)
    is_better, will_do = Simulated(ideal, within=within).reply(
        question(option(one), option(other))
    )
    assert is_better.tolist() == (would_be < was).tolist()
    assert will_do.tolist() == (np.minimum(was, would_be) <= 1.5).tolist()
    assert 0 < will_do.sum() < 50 and 0 < is_better.sum() < 50
    same, _ = Simulated(ideal).reply(question(option(one), option(one)))
    assert not same.any()


def test_what_is_ruled_out_comes_last_however_near():
    """All four cases: neither, the old, the new, both."""
    x = torch.zeros(4, 2, dtype=torch.float64)
    old_bad, new_bad = (torch.tensor(which) for which in ([0, 1, 0, 1], [0, 0, 1, 1]))
    rules_out = torch.tensor([[True, False]] * 4)
    for near in (0, 1):  # which option is nearer
        old = option(x + 1 + near, torch.stack([old_bad == 1, old_bad == 0], 1))
        new = option(x + 2 - near, torch.stack([new_bad == 1, new_bad == 0], 1))
        user = Simulated(x, rules_out=rules_out)
        expected = [near == 1, True, False, near == 1]
        assert user.reply(question(old, new))[0].tolist() == expected


@pytest.mark.parametrize("flips", [0.1, 0.5, 1.0])
def test_wrong_answers_are_as_frequent_as_they_say(flips):
    """Of 4,000 people; within four standard errors."""
    x = torch.zeros(N, 1, dtype=torch.float64)
    user = Simulated(x, flips=flips, rngs=streams(N))
    is_better, _ = user.reply(question(option(x + 1), option(x + 2)))
    se = (flips * (1 - flips) / N) ** 0.5
    assert is_better.double().mean().item() == pytest.approx(flips, abs=4 * se)


def test_a_coin_chooses_like_a_coin():
    """Law 3: of a knock-out of k the first is left with chance 2^-k, the last with 1/2."""
    islands = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    h = Classifier(("a",), lambda x: 0.01 - (x - islands).abs().amin(1))
    space = Features(h, torch.zeros(N, 1).double(), torch.tensor([True]), within=None)
    values = islands[1:].view(3, 1, 1).expand(3, N, 1)
    base = space.outcome(space.x == 0, space.x + 1)
    dialogue = Dialogue(rounds(space, base, lambda *_: values, 1, 3, streams(N)))
    user, shown = Simulated(space.x, flips=0.5, rngs=streams(N, 1)), [1.0]
    while (asked := dialogue.question) is not None:
        shown += [asked.challenger.x_cf[0].item()]
        dialogue.answer(*user.reply(asked))
    assert (dialogue.n_questions == 3).all()
    for place, chance in enumerate((1 / 8, 1 / 8, 1 / 4, 1 / 2)):
        se = (chance * (1 - chance) / N) ** 0.5
        share = (dialogue.incumbent.x_cf == shown[place]).double().mean().item()
        assert share == pytest.approx(chance, abs=3.3 * se), place


def test_only_who_is_asked_draws_a_number():
    """Law 14: what others are asked changes nobody's wrong answers."""
    x = torch.zeros(2, 1, dtype=torch.float64)
    user, other = (Simulated(x, flips=0.5, rngs=streams(2)) for _ in range(2))
    far, near = option(x + 2), option(x + 1)
    for _ in range(5):
        user.reply(question(far, near, torch.tensor([False, True])))
    first, second = (
        torch.stack([one.reply(question(far, near))[0] for _ in range(25)])
        for one in (user, other)
    )
    assert first[:, 0].equal(second[:, 0]) and 5 < first[:, 0].sum() < 20
    assert first[:20, 1].equal(second[5:, 1])


def test_refine_asks_until_the_end_and_stops_whom_it_satisfies():
    dialogue, ideal = dialogue_of(n=4)
    within = torch.tensor([9.0, 0.2, 0.0, 0.0], dtype=torch.float64)
    refined = refine(dialogue, Simulated(ideal, within=within))
    assert dialogue.question is None
    far = Simulated(ideal).distance(refined.x_cf)
    assert dialogue.n_questions.tolist()[0] == 1 and dialogue.n_questions[1] < 15
    assert dialogue.n_questions.tolist()[2:] == [15, 15] and far[1] <= 0.2
    assert (far[2:] < far[1]).all()


@pytest.mark.parametrize("kind", [rounds, remembered])
def test_a_dialogue_that_was_interrupted_ends_like_one_that_was_not(kind):
    """Whatever the reader's function does, the question stays open."""
    straight, ideal = dialogue_of(kind)
    expected = refine(straight, Asked(nearer(ideal), in_words))
    dialogue, _ = dialogue_of(kind)
    calls = iter(range(1_000))

    def ask(one, other):
        n = next(calls)
        if n == 3:
            raise RuntimeError("the coffee is ready")
        if n == 5:
            raise KeyboardInterrupt
        return {7: "both", 9: None, 10: 2}.get(n, nearer(ideal)(one, other))

    stops = []
    while dialogue.question is not None:
        try:
            refine(dialogue, Asked(ask, in_words))
        except (ValueError, KeyboardInterrupt) as stop:
            stops.append(str(stop))
    assert "`ask` raised RuntimeError: the coffee is ready. The question stays" in stops[0]
    assert stops[1] == "" and "The answer was 'both': expected one of the two" in stops[2]
    assert "The answer was None" in stops[3] and "The answer was 2:" in stops[4]
    assert len(stops) == 5 and dialogue.incumbent.x_cf.equal(expected.x_cf)
    assert dialogue.n_questions.equal(straight.n_questions)
    assert [b.item() for _, b in dialogue.answers] == [
        b.item() for _, b in straight.answers
    ]


def test_the_option_that_a_person_names_is_the_better_one():
    x = torch.zeros(1, 1, dtype=torch.float64)
    two = question(option(x + 1), option(x + 2))
    for ask, expected in (
        (lambda one, other: one, False),
        (lambda one, other: other, True),
    ):
        assert Asked(ask, in_words).reply(two)[0].tolist() == [expected]


def test_options_that_read_alike_are_not_asked_about():
    def never(one, other):
        raise AssertionError("asked")

    x = torch.zeros(1, 1, dtype=torch.float64)
    two = question(option(x + 1), option(x + 2))
    is_better, _ = Asked(never, lambda _: ["the same"]).reply(two)
    assert not is_better.any()


def test_bad_input_is_named():
    x = torch.zeros(2, 1, dtype=torch.float64)
    for changes, message in (
        ({"flips": 1.5}, "flips is 1.5, expected a probability"),
        ({"flips": float("nan")}, "flips is nan"),
        ({"flips": 0.1}, "expected 2 rngs, one a person, got 0"),
        ({"flips": 0.1, "rngs": streams(3)}, "expected 2 rngs.*got 3"),
        ({"rules_out": torch.ones(2, 2) > 0}, r"rules_out has shape \(2, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Simulated(x, **changes)
    with pytest.raises(ValueError, match=r"ideal has shape \(2, 1\), expected \(3, 1\)"):
        Simulated(x).reply(question(option(torch.zeros(3, 1)), option(torch.ones(3, 1))))
    two = question(option(x), option(x + 1))
    with pytest.raises(ValueError, match="Questions are for 2 people"):
        Asked(min, in_words).reply(two)
    alone = replace(two, incumbent=option(x)[:1], challenger=option(x + 1)[:1])
    alone = replace(alone, is_asked=torch.tensor([True]))

    def broken(_):
        raise KeyError("income")

    for words, message in (
        (broken, "`in_words` raised KeyError: 'income'. The question stays open"),
        (lambda _: "work", "`in_words` returned 'work': expected a list of one text"),
        (lambda _: None, "`in_words` returned None"),
        (lambda _: [3], r"`in_words` returned \[3\]"),
        (lambda _: ["work", "save"], "expected a list of one text"),
    ):
        with pytest.raises(ValueError, match=message):
            Asked(min, words).reply(alone)
