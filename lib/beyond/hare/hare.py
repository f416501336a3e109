"""Ask after the answer: HARE's dialogue, in features or in actions.

A person is shown two options and says which is better, again and
again. The better one stays. `rounds` is HARE: a few candidates around
the best so far are compared in a knock-out, and all answers but the
last winner are forgotten. In `remembered` every answer counts. Both
are written for any `Space`, and for many people at once.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare.draws import draw
from lib.beyond.hare.proposals import Local, Proposal, farthest
from lib.beyond.hare.spaces import Space, chosen, walk_back
from lib.method.problem import Recommendation

CALIBRATED = ("every", "best")
NEARBY = Local()


@dataclass(frozen=True)
class Question:
    """Hold two options for each person, and who is asked which is better.

    Arguments:
        incumbent: The best so far, each part with shape (N, D).
        challenger: What it is compared with, likewise.
        is_asked: Who is asked, with shape (N,).
    """

    incumbent: Recommendation
    challenger: Recommendation
    is_asked: Tensor


# whether the challenger is better, and whether the better of the two will do: each (N,)
Reply: TypeAlias = tuple[Tensor, Tensor]
Steps: TypeAlias = Generator[Question, Reply, Recommendation]


class Dialogue:
    """Hold a dialogue that can stop at any question, and go on.

    Arguments:
        steps: `rounds(...)` or `remembered(...)`.
    Attributes:
        question: The one that is open; None at the end.
        incumbent: The best so far, for everyone.
        answers: The questions so far, in order, each with whether the
            challenger was better, (N,).
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.answers: list[tuple[Question, Tensor]] = []
        self.question: Question | None
        self.incumbent: Recommendation
        self._step(lambda: next(steps))

    def _step(self, ask: Callable[[], Question]) -> None:
        """Keep the next question, or what the dialogue comes to at its end."""
        self.question = None
        try:
            self.question = ask()
            self.incumbent = self.question.incumbent
        except StopIteration as end:
            self.incumbent = end.value

    @property
    def n_questions(self) -> Tensor:
        """How many questions each person has answered, with shape (N,)."""
        nobody = torch.zeros(len(self.incumbent.values), dtype=torch.long)
        return sum((q.is_asked.long() for q, _ in self.answers), start=nobody)

    def answer(self, is_better: Tensor, is_satisfied: Tensor | None = None) -> None:
        """Take everyone's answer to the open question, and move to the next one.

        Arguments:
            is_better: Whether the challenger is the better option,
                with shape (N,), bool; not looked at for who is not
                asked.
            is_satisfied: Whether the better option will do, so that
                the person is not asked again, with shape (N,); left
                out: nobody is.
        Raises: ValueError: no question is open, or the answers have
            another shape or dtype: an open question stays open. The
            search for the next question failed: the dialogue is at
            its end, and `incumbent` is the best so far.
        """
        if self.question is None:
            raise ValueError("No question is open: the dialogue is at its end.")
        if is_satisfied is None:
            is_satisfied = torch.zeros_like(self.question.is_asked)
        for name, reply in (("is_better", is_better), ("is_satisfied", is_satisfied)):
            if not isinstance(reply, Tensor) or reply.dtype != torch.bool:
                raise ValueError(
                    f"{name} is {reply!r}: expected a bool tensor, one a person. The "
                    "question stays open."
                )
            checks.shape(name, reply, self.question.is_asked.shape)
        question = self.question
        self.answers.append((question, is_better))
        is_won = question.is_asked & is_better
        self.incumbent = chosen(is_won, question.challenger, question.incumbent)
        try:
            self._step(lambda: self._steps.send((is_better, is_satisfied)))
        except Exception as error:  # of a classifier, or of somebody's own proposal
            raise ValueError(
                "The answer is kept, but there is no next question: the search for it "
                f"raised {type(error).__name__}: {error} This dialogue is at its end. "
                "`incumbent` is the best so far; begin another one with it as the base."
            ) from error


@dataclass
class _Best:
    """Hold the best option so far, who has one that is acceptable, and who is satisfied."""

    incumbent: Recommendation
    is_good: Tensor
    is_satisfied: Tensor

    @classmethod
    def of(
        cls, space: Space, base: Recommendation, rngs: Sequence[np.random.Generator]
    ) -> "_Best":
        """Return where a dialogue begins, after checking that all is of the same people.

        A base that is not acceptable, and sets what is not free, is
        held to what is free. Any other stays as it is, to the bit.
        """
        checks.shape("base.values", base.values, space.x.shape)
        if len(rngs) != len(space.x):
            raise ValueError(
                f"Got {len(rngs)} streams of random numbers for {len(space.x)} people: "
                "expected one each, for instance np.random.default_rng(0).spawn(n)."
            )
        for name, values in (("values", base.values), ("x_cf", base.x_cf)):
            if not values.isfinite().all():
                raise ValueError(
                    f"base.{name} holds NaN or infinite values. For whom there is no "
                    "recommendation, act on nothing and give the factual values."
                )
        is_good = space.accepts(base) & base.has_recourse
        held = space.outcome(base.is_acted, base.values)
        is_held = (base.is_acted & ~space.free).any(-1) & ~is_good
        is_good = is_good | (is_held & space.accepts(held) & held.has_recourse)
        return cls(chosen(is_held, held, base), is_good, torch.zeros_like(is_good))

    def compare(
        self, challenger: Recommendation, is_there: Tensor
    ) -> Generator[Question, Reply, tuple[Tensor, Tensor]]:
        """Ask those who have a challenger, and keep the better; return who was asked.

        Whose best so far is not acceptable gets the challenger
        without a question.

        Returns: Who was asked, and for whom the challenger was
            better, each with shape (N,).
        """
        self.incumbent = chosen(is_there & ~self.is_good, challenger, self.incumbent)
        is_asked = is_there & self.is_good & ~self.is_satisfied
        self.is_good = self.is_good | is_there
        if not is_asked.any():
            return is_asked, is_asked
        is_better, is_satisfied = yield Question(self.incumbent, challenger, is_asked)
        self.incumbent = chosen(is_asked & is_better, challenger, self.incumbent)
        self.is_satisfied = self.is_satisfied | (is_satisfied & is_asked)
        return is_asked, is_better


def rounds(
    space: Space,
    base: Recommendation,
    proposal: Proposal,
    n_rounds: int,
    n_candidates: int,
    rngs: Sequence[np.random.Generator],
    calibrated: str = "every",
    eps: float = 1e-6,
) -> Steps:
    """Return the steps of HARE: rounds of candidates around the best so far.

    Nobody is asked more than n_rounds x n_candidates questions; fewer
    where candidates are not acceptable. A base that is not acceptable
    is held to what is free, and replaced by the first candidate that
    is acceptable, without a question.

    Arguments:
        base: Where the first round begins, each part with shape (N,
            D).
        proposal: Which candidates are looked at. Of those that are
            acceptable, those farthest from each other are shown.
        n_rounds, n_candidates: One round of 30 is the paper's HARE,
            six rounds of 5 are its Multi-HARE.
        rngs: Of random numbers, one a person.
        calibrated: Whether "every" candidate is walked back to the
            boundary before it is shown, or only the "best" of a
            round, if it is new and does not do as it is.
        eps: As for `walk_back`.
    Raises: ValueError: a count is below one, there are other people,
        the base holds NaN, the proposal gives no such values, or
        `calibrated` is unknown.
    Source: algorithms 1 to 4 of HARE (OpenReview 56EBglCFvx). The
        best so far is kept as it is; there it is calibrated again.
    """
    checks.positive_int(n_rounds=n_rounds, n_candidates=n_candidates)
    checks.one_of("calibrated", [calibrated], CALIBRATED)
    best = _Best.of(space, base, rngs)
    for i in range(n_rounds):
        values = proposal(space, best.incumbent, n_candidates, i, rngs)
        _check_proposed(space, values, n_candidates)
        candidates, is_good = _tried(space, values, eps if calibrated == "every" else None)
        start = best.incumbent.x_cf
        for which in farthest(candidates.x_cf, is_good, start, n_candidates):
            challenger = _of_each(candidates, which.clamp_min(0))
            yield from best.compare(challenger, which >= 0)
        if calibrated == "best":
            closer, _ = walk_back(space, best.incumbent, eps)
            is_new = (best.incumbent.x_cf != start).any(-1) & ~best.is_satisfied
            best.incumbent = chosen(is_new, closer, best.incumbent)
    return best.incumbent


def remembered(
    space: Space,
    base: Recommendation,
    n_questions: int,
    rngs: Sequence[np.random.Generator],
    proposal: Local = NEARBY,
    n_guesses: int = 1000,
    sharpness: float = 0.02,
    renewed: int = 5,
    eps: float = 1e-4,
) -> Steps:
    """Return the steps of a dialogue in which every answer counts.

    Acceptable candidates are guesses at what the person wants. An
    answer speaks for the guesses that lie nearer to the better
    option: where it is nearer by s, their log-likelihood gains log
    sigma(s / sharpness). The next question pits the best so far
    against a guess that is drawn by its likelihood. Guesses are
    renewed at the start and from time to time: drawn by likelihood,
    and moved a little where that is acceptable.

    Arguments:
        n_questions: At most so many.
        proposal: How far guesses are moved.
        n_guesses: How many there are at a time.
        sharpness: In the units of outcomes; larger for people whose
            answers can be wrong.
        renewed: Every so many questions.
        base, rngs, eps: As for `rounds`.
    Raises: ValueError: a setting is not above zero, there are other
        people, the base holds NaN, or the proposal is not `Local`.
    Source: ours. The paper announces that a personal metric is
        learned, and has none.
    """
    checks.positive_int(n_questions=n_questions, n_guesses=n_guesses, renewed=renewed)
    checks.positive(sharpness=sharpness)
    if not isinstance(proposal, Local):
        raise ValueError(f"proposal is {proposal!r}: expected Local(...).")
    best = _Best.of(space, base, rngs)
    anywhere = replace(proposal, n_points=n_guesses, anywhere=1.0, n_anywhere=1)
    nearby = replace(proposal, n_points=n_guesses, anywhere=0.0)
    values = anywhere(space, base, 1, 0, rngs)
    guesses, is_guess = _tried(space, values, eps)
    answers: list[tuple[Tensor, Tensor, Tensor]] = []
    fit = torch.where(is_guess, 0.0, -torch.inf).to(values)
    for i in range(n_questions):
        if i % renewed == 0:
            rows = _drawn(fit, rngs)
            drawn = _of_each(guesses, rows)
            moved, is_good = _tried(space, nearby(space, drawn, 1, i // renewed, rngs), eps)
            guesses = chosen(is_good, moved, drawn)
            is_guess = is_good | is_guess.gather(0, rows)
            fit = torch.where(is_guess, 0.0, -torch.inf).to(fit)
            for answer in answers:
                fit = fit + _likelihood(guesses, answer, sharpness)
        is_other = (guesses.x_cf != best.incumbent.x_cf).any(-1) | ~best.is_good
        chances = fit + draw(rngs, "gumbel", (n_guesses,)).to(fit)
        highest, which = torch.where(is_other, chances, -torch.inf).max(0)
        incumbent, challenger = best.incumbent, _of_each(guesses, which)
        is_asked, is_better = yield from best.compare(challenger, highest > -torch.inf)
        options = (challenger.x_cf, incumbent.x_cf)
        better, worse = (
            torch.where(is_better[:, None], *pair) for pair in (options, options[::-1])
        )
        answers.append((better, worse, is_asked))
        fit = fit + _likelihood(guesses, answers[-1], sharpness)
    return best.incumbent


def _tried(
    space: Space, values: Tensor, eps: float | None
) -> tuple[Recommendation, Tensor]:
    """Return what comes of setting all that is free to values (P, N, D), walked back.

    Without eps they are not walked back.

    Returns: Candidates, and which are acceptable, with shape (P, N).
    """
    candidates = space.outcome(space.free.expand_as(values), values)
    if eps is not None:
        return walk_back(space, candidates, eps)
    return candidates, space.accepts(candidates)


def _check_proposed(space: Space, values: Tensor, n: int) -> None:
    """Raise ValueError unless values are what a round asked for: finite, (*, N, D)."""
    came = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
    expected = (n, *space.x.shape)
    if isinstance(came, str) or came[1:] != expected[1:] or not came[0]:
        raise ValueError(
            f"The proposal gave {came}, expected a tensor of values with shape {expected}; "
            "more rows will do."
        )
    if not values.isfinite().all():
        raise ValueError("The proposal gave NaN or infinite values: expected numbers.")


def _likelihood(
    guesses: Recommendation, answer: tuple[Tensor, Tensor, Tensor], sharpness: float
) -> Tensor:
    """Return the log-likelihood of an answer under each guess, with shape (P, N).

    Arguments:
        answer: The better and the worse outcome, each with shape (N,
            D), and who gave it, (N,).
    """
    better, worse, is_asked = answer
    nearer = _distance(guesses.x_cf, worse) - _distance(guesses.x_cf, better)
    return is_asked * F.logsigmoid(nearer / sharpness)


def _drawn(fit: Tensor, rngs: Sequence[np.random.Generator]) -> Tensor:
    """Return as many rows as there are of fit (P, N), drawn by likelihood: (P, N)."""
    weights = torch.softmax(fit.double().nan_to_num(neginf=-1e9), 0)
    share = weights.cumsum(0).T.contiguous()
    places = draw(rngs, "random", (len(fit),)).T.contiguous() * share[:, -1:]
    return torch.searchsorted(share, places, right=True).clamp_max(len(fit) - 1).T


def _of_each(candidates: Recommendation, which: Tensor) -> Recommendation:
    """Return each person's candidate in the row `which` (*, N), of candidates (P, N, D)."""
    return candidates[which, torch.arange(which.shape[-1])]


def _distance(x: Tensor, y: Tensor) -> Tensor:
    """Return the distance of outcomes (*, N, D), with shape (*, N)."""
    return (x - y).square().sum(-1).sqrt()
