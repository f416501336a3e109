"""A reader who types, or clicks: every way through a dialogue, and what goes wrong."""

import ipywidgets as widgets
import numpy as np
import pytest
import torch
from IPython.core.error import StdinNotImplementedError

from lib.beyond.hare import asking
from lib.beyond.hare.hare import Dialogue, rounds
from lib.beyond.hare.proposals import Local
from lib.beyond.hare.spaces import Features
from lib.beyond.hare.users import Asked, refine
from lib.method.classifier import Classifier


def dialogue_of(n=1, proposal=None):
    h = Classifier(("a", "b", "c"), lambda x: x.sum(1) - 1)
    x = torch.zeros(n, 3, dtype=torch.float64)
    space = Features(h, x, torch.tensor([True] * 3))
    base = space.outcome(x == 0, x + 0.34)
    rngs = np.random.default_rng(0).spawn(n)
    return Dialogue(rounds(space, base, proposal or Local(), 2, 3, rngs))


def in_words(recommendation):
    return [" < ".join(f"{value:.3f}" for value in row) for row in recommendation.x_cf]


def less_of_the_first(one, other):
    return min(one, other, key=lambda text: float(text.split(" < ")[0]))


def controls(widget):
    """Return status, both texts, both buttons and the line for trouble."""
    status, options, trouble = widget.children
    texts, buttons = zip(*(option.children for option in options.children), strict=True)
    return status, texts, buttons, trouble


def plain(text):
    return text.value.replace("&lt;", "<")


def test_clicks_lead_a_dialogue_to_the_end_that_answers_in_words_do():
    straight, dialogue = dialogue_of(), dialogue_of()
    expected = refine(straight, Asked(less_of_the_first, in_words))
    widget = asking.buttons(dialogue, in_words)
    status, texts, buttons, trouble = controls(widget)
    for n in range(6):
        question = dialogue.question
        one, other = map(plain, texts)
        assert [one] == in_words(question.incumbent)
        assert [other] == in_words(question.challenger)
        assert plain(status).startswith(f"{n} question{'s' * (n != 1)} answered")
        assert plain(status).endswith(f"The best so far: <b>{one}</b>")
        buttons[less_of_the_first(one, other) == other].click()
        assert trouble.value == ""
    assert dialogue.question is None and dialogue.incumbent.x_cf.equal(expected.x_cf)
    assert plain(status) == (
        f"At its end after 6 questions. The best: <b>{in_words(expected)[0]}</b>"
    )
    assert all(b.disabled for b in buttons) and [t.value for t in texts] == ["", ""]
    assert widget.children[1].layout.display == "none"
    buttons[0].click()
    assert "no longer open, so nothing was answered" in trouble.value
    assert len(dialogue.answers) == 6


def test_the_widget_goes_on_where_the_dialogue_stands():
    dialogue = dialogue_of()
    dialogue.answer(torch.tensor([True]))
    status, texts, buttons, trouble = controls(asking.buttons(dialogue, in_words))
    assert status.value.startswith("1 question answered")
    # somebody answers elsewhere: a click is about what was shown, and answers nothing else
    dialogue.answer(torch.tensor([False]))
    buttons[1].click()
    assert len(dialogue.answers) == 2 and "nothing was answered" in trouble.value
    assert plain(texts[1]) == in_words(dialogue.question.challenger)[0]
    buttons[1].click()
    assert len(dialogue.answers) == 3 and trouble.value == ""
    assert dialogue.answers[2][1].tolist() == [True]


def test_texts_wrap_and_are_no_markup():
    """Text stands in HTML widgets, which wrap; a button's description would be cut."""
    status, texts, buttons, _ = controls(
        asking.buttons(dialogue_of(), lambda option: [f"<b>&{option.x_cf[0, 0]:.3f} " * 40])
    )
    assert all(isinstance(text, widgets.HTML) for text in (status, *texts))
    assert all("&lt;b&gt;&amp;0" in text.value for text in texts)
    assert [b.description for b in buttons] == ["1 is better", "2 is better"]
    options = asking.buttons(dialogue_of(), in_words).children[1]
    assert options.layout.flex_flow == "row wrap"
    assert all(child.layout.flex == "1 1 18em" for child in options.children)


def test_what_goes_wrong_is_said_in_the_widget():
    dialogue, broken = dialogue_of(), []

    def sometimes(option):
        if broken:
            raise KeyError("income")
        return in_words(option)

    _, _, buttons, trouble = controls(asking.buttons(dialogue, sometimes))
    open_question = dialogue.question
    broken.append(True)
    buttons[1].click()
    assert "`in_words` raised KeyError" in trouble.value
    assert dialogue.question is open_question and not dialogue.answers
    assert all(b.disabled for b in buttons)  # nobody chooses what they can't read
    broken.clear()
    _, _, buttons, trouble = controls(asking.buttons(dialogue, sometimes))
    buttons[1].click()
    assert trouble.value == "" and len(dialogue.answers) == 1


def test_a_search_that_fails_ends_in_words_with_the_best_so_far():
    def proposal(space, incumbent, n_candidates, round_index, rngs):
        if round_index:
            raise RuntimeError("<no more>")
        return Local()(space, incumbent, n_candidates, round_index, rngs)

    dialogue = dialogue_of(proposal=proposal)
    status, texts, buttons, trouble = controls(asking.buttons(dialogue, in_words))
    for _ in range(3):
        last = plain(texts[1])
        buttons[1].click()
    assert "RuntimeError: &lt;no more&gt;" in trouble.value
    assert plain(status) == f"At its end after 3 questions. The best: <b>{last}</b>"


def test_options_that_read_alike_are_skipped():
    dialogue = dialogue_of()
    _, _, _, trouble = controls(asking.buttons(dialogue, lambda _: ["all the same"]))
    assert dialogue.question is None and trouble.value == ""
    assert not any(is_better.any() for _, is_better in dialogue.answers)
    with pytest.raises(ValueError, match="The dialogue is of 2 people, and one reader"):
        asking.buttons(dialogue_of(n=2), in_words)


def test_typed_answers(monkeypatch, capsys):
    lines = iter(["", " 3", "first", " 2 ", "1"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    assert asking.typed("work", "save") == "save"
    assert capsys.readouterr().out.splitlines() == [
        "1: work",
        "2: save",
        *(f"Expected 1 or 2, got {reply!r}." for reply in ("", "3", "first")),
    ]
    assert asking.typed("work", "save") == "work"


@pytest.mark.parametrize("error", [EOFError, StdinNotImplementedError])
def test_nobody_there_to_type_is_named_and_the_question_stays(error, monkeypatch):
    def nobody(prompt):
        raise error

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(ValueError, match="nobody can type here, or the input has ended"):
        asking.typed("work", "save")
    dialogue = dialogue_of()
    with pytest.raises(ValueError, match=r"nobody can type here.*question stays open"):
        refine(dialogue, Asked(asking.typed, in_words))
    monkeypatch.setattr("builtins.input", lambda prompt: "1")
    refine(dialogue, Asked(asking.typed, in_words))
    assert len(dialogue.answers) == 6
