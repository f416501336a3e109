"""Ask a reader which of two options is better: by typing, or with two buttons."""

from collections.abc import Callable
from html import escape

import ipywidgets as widgets
import torch
from IPython.core.error import StdinNotImplementedError

from lib.beyond.hare.hare import Dialogue, Question
from lib.beyond.hare.users import Asked, InWords
from lib.method.problem import Recommendation

PLACES = ("1", "2")
# side by side where both fit, else one below the other; a text of HTML wraps, that of
# a button would be cut
SIDE_BY_SIDE = {"flex_flow": "row wrap", "max_width": "60em"}
OPTION = {"flex": "1 1 18em", "border": "1px solid silver", "padding": "0.5em"}


def typed(one: str, other: str) -> str:
    """Return the option that the reader prefers: they type 1 or 2.

    Whoever types something else is asked again.

    Arguments:
        one, other: The two options, in words.
    Raises: ValueError: nobody can type here, or the input ends.
    Example:
        >>> from unittest.mock import patch
        >>> with patch("builtins.input", side_effect=["both", "2"]):
        ...     typed("work more", "save more")
        1: work more
        2: save more
        Expected 1 or 2, got 'both'.
        'save more'
    """
    print(f"1: {one}\n2: {other}")
    while True:
        try:
            answer = input("Which is better, 1 or 2? ").strip()
        except (EOFError, StdinNotImplementedError):
            raise ValueError(
                "Expected 1 or 2, but nobody can type here, or the input has ended. Run "
                "this where somebody answers, or give a function that does."
            ) from None
        if answer in ("1", "2"):
            return one if answer == "1" else other
        print(f"Expected 1 or 2, got {answer!r}.")


def buttons(dialogue: Dialogue, in_words: InWords) -> widgets.Widget:
    """Return a widget in which the reader answers a dialogue by clicks.

    It shows both options, a button for each, how many questions were
    answered, and the best so far. What goes wrong is said below; an
    open question stays open.

    Arguments:
        dialogue: Of one person; it goes on where it stands.
        in_words: As for `Asked`.
    Raises: ValueError: the dialogue is of several people.
    """
    if len(dialogue.incumbent.values) != 1:
        raise ValueError(
            f"The dialogue is of {len(dialogue.incumbent.values)} people, and one reader "
            "answers: begin one for a single person."
        )
    return _Buttons(dialogue, in_words).widget


class _Buttons:
    """Hold the widget of a dialogue: what it shows, and what a click does."""

    def __init__(self, dialogue: Dialogue, in_words: InWords) -> None:
        self.dialogue, self.in_words = dialogue, in_words
        self.shown: Question | None = None  # the question that the reader sees
        self.status, self.trouble = widgets.HTML(), widgets.HTML()
        self.texts = [widgets.HTML() for _ in PLACES]
        self.choices = [
            widgets.Button(description=f"{place} is better", layout={"width": "100%"})
            for place in PLACES
        ]
        for place, choice in enumerate(self.choices):
            choice.on_click(lambda _, place=place: self.take(place))
        options = [
            widgets.VBox(pair, layout=OPTION)
            for pair in zip(self.texts, self.choices, strict=True)
        ]
        self.options = widgets.HBox(options, layout=SIDE_BY_SIDE)
        self.widget = widgets.VBox([self.status, self.options, self.trouble])
        self.say(self.show)

    def say(self, *acts: Callable[[], None]) -> None:
        """Do one after the other, and say below what went wrong."""
        wrong = []
        for act in acts:
            try:
                act()
            except Exception as error:  # of the reader's function, or of the search
                wrong.append(escape(str(error) or type(error).__name__))
        self.trouble.value = "<br>".join(wrong)

    def take(self, place: int) -> None:
        """Take the option in this place as the better one, and show what comes next."""
        self.say(lambda: self.answer(place), self.show)

    def answer(self, place: int) -> None:
        """Answer the question that is shown, if it is still the open one."""
        if self.shown is None or self.shown is not self.dialogue.question:
            raise ValueError(
                "The question that was shown is no longer open, so nothing was answered."
            )
        user = Asked(lambda *options: options[place], self.in_words)
        self.dialogue.answer(*user.reply(self.shown))

    def show(self) -> None:
        """Show the open question, or the end.

        A question whose options read alike is skipped. Nothing can be
        chosen unless both options could be shown.
        """
        self.shown = None
        for text, choice in zip(self.texts, self.choices, strict=True):
            text.value, choice.disabled = "", True
        best = self.tell(self.dialogue.incumbent)
        while (question := self.dialogue.question) is not None:
            two = [
                self.tell(option) for option in (question.incumbent, question.challenger)
            ]
            if two[0] != two[1]:
                break
            no = torch.tensor([False])
            self.dialogue.answer(no, no)
            best = self.tell(self.dialogue.incumbent)
        n = int(self.dialogue.n_questions)
        answered = f"{n} question" + "s" * (n != 1)
        if question is None:
            self.options.layout.display = "none"
            self.status.value = f"At its end after {answered}. The best: <b>{best}</b>"
            return
        self.status.value = f"{answered} answered. The best so far: <b>{best}</b>"
        for text, choice, words in zip(self.texts, self.choices, two, strict=True):
            text.value, choice.disabled = words, False
        self.shown = question

    def tell(self, option: Recommendation) -> str:
        """Return an option in words, safe to show as HTML."""
        return escape(Asked(min, self.in_words).text(option))
