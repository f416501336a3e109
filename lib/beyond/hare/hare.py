"""Ask after the answer: HARE's dialogue, in features or in actions.

A person is shown two options and says which is better, again and again. The better
one stays. `rounds` is HARE: a few candidates around the best so far are compared in a
knock-out, and all answers but the last winner are forgotten. In `remembered` every
answer counts. Both are written for any space (`lib.beyond.hare.spaces`), for many
people at once, and for any user: a function from a question to a reply.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from lib import checks
from lib.beyond.hare.draws import draw
from lib.beyond.hare.proposals import Local, Proposal, Streams, farthest
from lib.beyond.hare.spaces import Space, chosen, walk_back
from lib.method.problem import Recommendation

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


# whether the challenger is better, and whether the better of the two will do: each (N,),
# bool; not looked at for who is not asked
Reply: TypeAlias = tuple[Tensor, Tensor]
User: TypeAlias = Callable[[Question], Reply]


@dataclass(frozen=True)
class Simulated:
    """Answer for people with a hidden ideal, who prefer what is nearer to it.

    Of two options that are equally near they keep the one they have.

    Arguments:
        ideal: What each of them would like best, with shape (N, D).
        flips: Probability that an answer is the wrong one.
        rngs: Of random numbers, one a person; needed for flips.
        within: An option this near, with shape (N,) or a number, will do.
    Raises: ValueError: flips is no probability, or there are no rngs for them.
    """

    ideal: Tensor
    flips: float = 0.0
    rngs: Streams = ()
    within: Tensor | float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.flips <= 1:
            raise ValueError(f"flips is {self.flips!r}, expected a probability.")
        if self.flips and len(self.rngs) != len(self.ideal):
            raise ValueError(
                f"Wrong answers are drawn at random: expected {len(self.ideal)} rngs, "
                f"one a person, got {len(self.rngs)}."
            )

    def distance(self, x_cf: Tensor) -> Tensor:
        """Return how far outcomes (*, N, D) are from the ideal, with shape (*, N)."""
        return (x_cf - self.ideal).square().sum(-1).sqrt()

    def is_better(self, question: Question) -> Tensor:
        """Return for whom the challenger is the better option, with shape (N,)."""
        one, other = question.incumbent.x_cf, question.challenger.x_cf
        return self.distance(other) < self.distance(one)

    def __call__(self, question: Question) -> Reply:
        """Return who says that the challenger is better, and for whom the better will do.

        Only who is asked draws a number for wrong answers.
        """
        is_better = self.is_better(question)
        if self.flips:
            drawn = torch.ones(len(is_better), dtype=torch.float64)
            for i in question.is_asked.nonzero().squeeze(-1).tolist():
                drawn[i] = self.rngs[i].random()
            is_better = is_better ^ (drawn < self.flips)
        better = chosen(is_better, question.challenger, question.incumbent)
        return is_better, self.distance(better.x_cf) <= self.within


class Dialogue:
    """Hold a dialogue: where it begins, what it has come to, and its questions.

    A base that is not acceptable, and sets what is not free, is held to what is free.
    Any other stays as it is, to the bit.

    Arguments:
        space: Where it moves.
        base: Where it begins, each part with shape (N, D).
        user: Who answers.
        rngs: Of random numbers, one a person.
    Attributes:
        incumbent: The best so far, for everyone.
        is_good: Who has one that is acceptable, with shape (N,).
        is_satisfied: Who is not asked again, with shape (N,).
        answers: The questions so far, in order, each with whether the challenger was
            better, (N,).
    Raises: ValueError: base or rngs are of other people, or the base holds NaN.
    """

    def __init__(
        self, space: Space, base: Recommendation, user: User, rngs: Streams
    ) -> None:
        checks.shape("base.values", base.values, space.x.shape)
        if len(rngs) != len(space.x):
            raise ValueError(
                f"Got {len(rngs)} streams of random numbers for {len(space.x)} people: "
                "expected one each, for instance np.random.default_rng(0).spawn(n)."
            )
        if not (base.values.isfinite() & base.x_cf.isfinite()).all():
            raise ValueError(
                "The base holds NaN or infinite values. For whom there is no "
                "recommendation, act on nothing and give the factual values."
            )
        self.space, self.user, self.rngs = space, user, rngs
        is_good = space.accepts(base) & base.has_recourse
        held = space.outcome(base.is_acted, base.values)
        is_held = (base.is_acted & ~space.free).any(-1) & ~is_good
        self.incumbent = chosen(is_held, held, base)
        self.is_good = is_good | (is_held & space.accepts(held) & held.has_recourse)
        self.is_satisfied = torch.zeros_like(is_good)
        self.answers: list[tuple[Question, Tensor]] = []

    @property
    def n_questions(self) -> Tensor:
        """How many questions each person has answered, with shape (N,)."""
        nobody = torch.zeros(len(self.incumbent.values), dtype=torch.long)
        return sum((q.is_asked.long() for q, _ in self.answers), start=nobody)

    def after(self, n: int) -> "Dialogue":
        """Return the dialogue as it was after the first n answers, one or more."""
        question, is_better = self.answers[:n][-1]
        is_won = question.is_asked & is_better
        before = copy.copy(self)
        before.answers = self.answers[:n]
        before.incumbent = chosen(is_won, question.challenger, question.incumbent)
        return before

    def compare(
        self, challenger: Recommendation, is_there: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Ask those who have a challenger, and keep the better option.

        Whose best so far is not acceptable gets the challenger without a question.

        Returns: Who was asked, and for whom the challenger was better, each with
            shape (N,).
        Raises: ValueError: the reply is not two masks of bool with shape (N,).
        """
        self.incumbent = chosen(is_there & ~self.is_good, challenger, self.incumbent)
        is_asked = is_there & self.is_good & ~self.is_satisfied
        self.is_good = self.is_good | is_there
        if not is_asked.any():
            return is_asked, is_asked
        question = Question(self.incumbent, challenger, is_asked)
        is_better, is_satisfied = self.user(question)
        for name, reply in (("is_better", is_better), ("is_satisfied", is_satisfied)):
            if not isinstance(reply, Tensor) or reply.dtype != torch.bool:
                raise ValueError(f"{name} is {reply!r}: expected a bool tensor, (N,).")
            checks.shape(name, reply, is_asked.shape)
        self.answers.append((question, is_better))
        self.incumbent = chosen(is_asked & is_better, challenger, self.incumbent)
        self.is_satisfied = self.is_satisfied | (is_satisfied & is_asked)
        return is_asked, is_better


def rounds(
    dialogue: Dialogue,
    proposal: Proposal,
    n_rounds: int,
    n_candidates: int,
    calibrated: str = "every",
    eps: float = 1e-6,
) -> Dialogue:
    """Hold HARE's dialogue: rounds of candidates around the best so far.

    Nobody is asked more than n_rounds x n_candidates questions; fewer where candidates
    are not acceptable. A base that is not acceptable is held to what is free, and
    replaced by the first candidate that is acceptable, without a question.

    Arguments:
        dialogue: Without a question yet.
        proposal: Which candidates are looked at. Of those that are acceptable, those
            farthest from each other are shown.
        n_rounds, n_candidates: One round of 30 is the paper's HARE, six rounds of 5
            are its Multi-HARE.
        calibrated: Whether "every" candidate is walked back to the boundary before it
            is shown, or only the "best" of a round, if it is new and does not do as it
            is.
        eps: As for `walk_back`.
    Returns: The dialogue at its end.
    Raises: ValueError: a count is below one, the proposal gives other shapes, or
        `calibrated` is unknown.
    Source: algorithms 1 to 4 of HARE (OpenReview 56EBglCFvx). The best so far is kept
        as it is; there it is calibrated again.
    """
    checks.positive_int(n_rounds=n_rounds, n_candidates=n_candidates)
    checks.one_of("calibrated", [calibrated], ("every", "best"))
    space = dialogue.space
    for i in range(n_rounds):
        start = dialogue.incumbent
        values = proposal(space, start.values, n_candidates, i, dialogue.rngs)
        checks.shape("what the proposal gave", values, (len(values), *space.x.shape))
        candidates, is_good = _try(space, values, eps if calibrated == "every" else None)
        for which in farthest(candidates.x_cf, is_good, start.x_cf, n_candidates):
            dialogue.compare(_of_each(candidates, which.clamp_min(0)), which >= 0)
        if calibrated == "best":
            closer, _ = walk_back(space, dialogue.incumbent, eps)
            is_new = (dialogue.incumbent.x_cf != start.x_cf).any(
                -1
            ) & ~dialogue.is_satisfied
            dialogue.incumbent = chosen(is_new, closer, dialogue.incumbent)
    return dialogue


def remembered(
    dialogue: Dialogue,
    n_questions: int,
    proposal: Local = NEARBY,
    n_guesses: int = 1000,
    sharpness: float = 0.02,
    renewed: int = 5,
    eps: float = 1e-4,
) -> Dialogue:
    """Hold a dialogue in which every answer counts.

    Acceptable candidates are guesses at what the person wants. An answer speaks for
    the guesses that lie nearer to the better option: where it is nearer by s, their
    log-likelihood gains log sigma(s / sharpness). The next question pits the best so
    far against a guess that is drawn by its likelihood. Guesses are renewed at the
    start and from time to time: drawn by likelihood, and moved a little where that is
    acceptable.

    Arguments:
        dialogue: Without a question yet.
        n_questions: At most so many.
        proposal: How far guesses are moved.
        n_guesses: How many there are at a time.
        sharpness: In the units of outcomes; larger for people whose answers can be
            wrong.
        renewed: Every so many questions.
        eps: As for `rounds`.
    Returns: The dialogue at its end.
    Raises: ValueError: a setting is not above zero.
    Source: ours. The paper announces that a personal metric is learned, and has none.
    """
    checks.positive_int(n_questions=n_questions, n_guesses=n_guesses, renewed=renewed)
    checks.positive(sharpness=sharpness)
    space, rngs = dialogue.space, dialogue.rngs
    anywhere = replace(proposal, n_points=n_guesses, anywhere=1.0, n_anywhere=1)
    nearby = replace(proposal, n_points=n_guesses, anywhere=0.0)
    guesses, is_guess = _try(
        space, anywhere(space, dialogue.incumbent.values, 1, 0, rngs), eps
    )
    answers: list[tuple[Tensor, Tensor, Tensor]] = []  # the better, the worse, who answered
    fit = torch.where(is_guess, 0.0, -torch.inf).to(guesses.values)
    for i in range(n_questions):
        if i % renewed == 0:
            rows = _draw_rows(fit, rngs)
            drawn = _of_each(guesses, rows)
            moved, is_good = _try(
                space, nearby(space, drawn.values, 1, i // renewed, rngs), eps
            )
            guesses = chosen(is_good, moved, drawn)
            is_guess = is_good | is_guess.gather(0, rows)
            fit = torch.where(is_guess, 0.0, -torch.inf).to(fit)
            for answer in answers:
                fit = fit + _log_likelihood(guesses, *answer, sharpness)
        incumbent = dialogue.incumbent.x_cf
        is_other = (guesses.x_cf != incumbent).any(-1) | ~dialogue.is_good
        chances = fit + draw(rngs, "gumbel", (n_guesses,)).to(fit)
        highest, which = torch.where(is_other, chances, -torch.inf).max(0)
        challenger = _of_each(guesses, which)
        is_asked, is_better = dialogue.compare(challenger, highest > -torch.inf)
        better = torch.where(is_better[:, None], challenger.x_cf, incumbent)
        worse = torch.where(is_better[:, None], incumbent, challenger.x_cf)
        answers.append((better, worse, is_asked))
        fit = fit + _log_likelihood(guesses, *answers[-1], sharpness)
    return dialogue


def _try(space: Space, values: Tensor, eps: float | None) -> tuple[Recommendation, Tensor]:
    """Return what comes of setting all that is free to values (P, N, D), walked back.

    Without eps they are not walked back.

    Returns: Candidates, and which are acceptable, with shape (P, N).
    """
    candidates = space.outcome(space.free.expand_as(values), values)
    if eps is not None:
        return walk_back(space, candidates, eps)
    return candidates, space.accepts(candidates)


def _log_likelihood(
    guesses: Recommendation, better: Tensor, worse: Tensor, is_asked: Tensor, tau: float
) -> Tensor:
    """Return the log-likelihood of an answer under each guess, with shape (P, N)."""
    nearer = _distance(guesses.x_cf, worse) - _distance(guesses.x_cf, better)
    return is_asked * F.logsigmoid(nearer / tau)


def _draw_rows(fit: Tensor, rngs: Streams) -> Tensor:
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
