"""Who answers in a dialogue: a simulated person with a hidden ideal, or a real one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.beyond.hare.hare import Dialogue, Question, Reply
from lib.method.problem import Recommendation

InWords = Callable[[Recommendation], list[str]]
GO_ON = "The question stays open: go on with `refine(dialogue, user)`."


class User(Protocol):
    """Anybody who answers questions, one or many at a time.

    Example:
        A user who changes as little as possible:

        >>> class Lazy:
        ...     def reply(self, question):
        ...         new, old = question.challenger, question.incumbent
        ...         is_less = new.is_acted.sum(-1) < old.is_acted.sum(-1)
        ...         return is_less, torch.zeros_like(is_less)
    """

    def reply(self, question: Question) -> Reply:
        """Return whether the challenger is better, and whether the better will do."""


@dataclass(frozen=True)
class Simulated:
    """Hold people with a hidden ideal, who prefer what is nearer to it.

    Of two options that are equally near they keep the one they have.

    Arguments:
        ideal: What each of them would like best, with shape (N, D).
        flips: Probability that an answer is the wrong one.
        rngs: Of random numbers, one a person; needed for flips.
        within: An option this near, with shape (N,) or a number, will
            do.
        rules_out: What a person would never do, a mask (N, D): an
            option without it is better than one with it, however
            near. Left out: only nearness counts.
    Raises: ValueError: flips is no probability, there are no rngs
        for them, or the shapes differ.
    """

    ideal: Tensor
    flips: float = 0.0
    rngs: Sequence[np.random.Generator] = ()
    within: Tensor | float = 0.0
    rules_out: Tensor | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.flips <= 1:
            raise ValueError(f"flips is {self.flips!r}, expected a probability.")
        if self.flips and len(self.rngs) != len(self.ideal):
            raise ValueError(
                f"Wrong answers are drawn at random: expected {len(self.ideal)} rngs, "
                f"one a person, got {len(self.rngs)}."
            )
        if self.rules_out is not None:
            checks.shape("rules_out", self.rules_out, self.ideal.shape)

    def distance(self, x_cf: Tensor) -> Tensor:
        """Return how far outcomes (*, N, D) are from the ideal, with shape (*, N)."""
        return (x_cf - self.ideal).square().sum(-1).sqrt()

    def reply(self, question: Question) -> Reply:
        """Return who prefers the challenger, and for whom the better option will do.

        Raises: ValueError: the options are of other people than the
            ideals.
        """
        one, other = question.incumbent, question.challenger
        checks.shape("ideal", self.ideal, one.x_cf.shape)
        was, would_be = self.distance(one.x_cf), self.distance(other.x_cf)
        is_better = would_be < was
        if self.rules_out is not None:
            bad, worse = ((o.is_acted & self.rules_out).any(-1) for o in (one, other))
            is_better = torch.where(bad == worse, is_better, bad)
        if self.flips:
            is_better = is_better ^ self._errs(question)
        return is_better, torch.where(is_better, would_be, was) <= self.within

    def _errs(self, question: Question) -> Tensor:
        """Return who gives the wrong answer, (N,); only who is asked draws a number."""
        drawn = torch.ones(len(question.is_asked), dtype=torch.float64)
        for i in question.is_asked.nonzero().squeeze(-1).tolist():
            drawn[i] = self.rngs[i].random()
        return drawn < self.flips


@dataclass(frozen=True)
class Asked:
    """Hold one real person, who is asked through a function.

    Arguments:
        ask: Is shown two options in words, and returns the better of
            the two.
        in_words: From a recommendation to one text a person, for
            instance `words.options`.
    Example:
        Whoever answers here likes short texts:

        >>> user = Asked(ask=lambda one, other: min(one, other, key=len), in_words=str)
        >>> user.ask("work", "rest and wait")
        'work'
    """

    ask: Callable[[str, str], str]
    in_words: InWords

    def reply(self, question: Question) -> Reply:
        """Return whether the person prefers the challenger; nothing is ever good enough.

        Two options that read the same are not asked about.

        Raises: ValueError: several people are asked at once; a
            function raises, or returns something else than an option.
            The question stays open.
        """
        if len(question.is_asked) != 1:
            raise ValueError(
                f"Questions are for {len(question.is_asked)} people, and there is one to "
                "answer: begin a dialogue for this person alone."
            )
        one, other = map(self.text, (question.incumbent, question.challenger))
        no = torch.tensor([False])
        if one == other:
            return no, no
        try:
            answer = self.ask(one, other)
        except Exception as error:  # whatever the reader's function raises
            raise ValueError(
                f"`ask` raised {type(error).__name__}: {error}. {GO_ON}"
            ) from error
        if not isinstance(answer, str) or answer not in (one, other):
            raise ValueError(
                f"The answer was {answer!r}: expected one of the two options, {one!r} or "
                f"{other!r}. {GO_ON}"
            )
        return torch.tensor([answer == other]), no

    def text(self, option: Recommendation) -> str:
        """Return an option in words.

        Raises: ValueError: `in_words` raises, or returns something
            else than a list of one text.
        """
        try:
            texts = self.in_words(option)
        except Exception as error:
            raise ValueError(
                f"`in_words` raised {type(error).__name__}: {error}. {GO_ON}"
            ) from error
        if not isinstance(texts, list) or len(texts) != 1 or not isinstance(texts[0], str):
            raise ValueError(
                f"`in_words` returned {texts!r}: expected a list of one text. {GO_ON}"
            )
        return texts[0]


def refine(dialogue: Dialogue, user: User) -> Recommendation:
    """Return what a dialogue comes to when this user answers all that is still open.

    Raises: ValueError: as the user's `reply` and `Dialogue.answer`.
        What was answered is kept, and the same call goes on.
    """
    while (question := dialogue.question) is not None:
        dialogue.answer(*user.reply(question))
    return dialogue.incumbent
