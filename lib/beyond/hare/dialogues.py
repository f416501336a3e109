"""Dialogues on top of a solver: asked beforehand, afterwards, both, or not at all.

Simulated people have a hidden ideal: an action of their own, valid in
a causal model that the solver does not see, and plausible by the flow
of whoever judges. A dialogue is judged by how near to the ideal it ends,
and by what it showed on the way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.beyond.hare.draws import draw, streams
from lib.beyond.hare.hare import Dialogue, Steps, remembered, rounds
from lib.beyond.hare.ideals import closeness
from lib.beyond.hare.proposals import Directions, Local
from lib.beyond.hare.spaces import Actions, Space, walk_back
from lib.beyond.hare.users import Simulated, refine
from lib.method import metrics
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, scatter_to_features
from lib.method.scm import CausalModel

Streams = Sequence[np.random.Generator]
EPS = 1e-4  # standard deviations; more digits than any user sees
# margins from which one is chosen, in log-odds, and the share that must be valid in the
# causal model that judges
MARGINS, ENOUGH = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5), 0.97

# how a dialogue is held: the name in tables, and its steps. HARE's step of one unit would
# cross the whole range of a feature: a fifth of it is about one standard deviation.
METHODS: dict[str, Callable[[Space, Recommendation, Streams, float], Steps]] = {
    "HARE's directions, 6 x 5": lambda space, base, rngs, _: rounds(
        space, base, Directions(length=0.2), 6, 5, rngs, eps=EPS
    ),
    "local, 2 x 5": lambda space, base, rngs, _: rounds(
        space, base, Local(), 2, 5, rngs, eps=EPS
    ),
    "local, 10 x 3": lambda space, base, rngs, _: rounds(
        space, base, Local(), 10, 3, rngs, eps=EPS
    ),
    "remembered, 10": lambda space, base, rngs, sharpness: remembered(
        space, base, 10, rngs, sharpness=sharpness, eps=EPS
    ),
    "remembered, 30": lambda space, base, rngs, sharpness: remembered(
        space, base, 30, rngs, sharpness=sharpness, eps=EPS
    ),
}


@dataclass(frozen=True)
class Participants:
    """Hold simulated people: who they are, what they can do, and what they would like best.

    Arguments:
        x: Refused people, with shape (N, D).
        preferences: What they can do.
        ideal: The outcome that they would like best, with shape (N,
            D).
    Raises: ValueError: the shapes differ.
    """

    x: Tensor
    preferences: Preferences
    ideal: Tensor

    def __post_init__(self) -> None:
        checks.shape("ideal", self.ideal, self.x.shape)
        checks.shape(
            "preferences.scores",
            self.preferences.scores,
            (len(self.x), self.preferences.scores.shape[-1]),
        )

    def __len__(self) -> int:
        return len(self.x)

    def streams(self, seed: int) -> list[np.random.Generator]:
        """Return a stream of random numbers for each of them."""
        return streams(len(self), seed)


@torch.no_grad()
def ideals(
    space: Space,
    rngs: Streams,
    beta: float = 0.0,
    weights: Tensor | None = None,
    n_drawn: int = 1000,
) -> tuple[Recommendation, Tensor]:
    """Return an ideal action of each person, and for whom one was found, with shape (N,).

    Actions are scattered over all that is free; those that are
    acceptable are walked back until they are only just so; one of
    them is drawn, with a probability that falls by a factor e for
    each unit of beta times its weighted length, in spans.

    Arguments:
        space: Where the people live: the true SCM, or a flow that
            the solver does not know.
        beta: Zero: any acceptable action is as likely as any other.
        weights: How hard each feature is, with shape (N, D); left
            out: all are alike.
        n_drawn: Actions that are scattered for each person.
    Raises: ValueError: beta is below zero, or weights have another
        shape.
    """
    if not beta >= 0:
        raise ValueError(f"beta is {beta!r}, expected zero or more.")
    weights = torch.ones_like(space.x) if weights is None else weights
    checks.shape("weights", weights, space.x.shape)
    scattered = Local(n_points=n_drawn, anywhere=1.0)
    nothing = Recommendation(torch.zeros_like(space.free), space.x, space.x)
    values = scattered(space, nothing, 1, 0, rngs)
    candidates, is_good = walk_back(
        space, space.outcome(space.free.expand_as(values), values), EPS
    )
    length = ((candidates.values - space.x).abs() / space.span * weights).sum(-1)
    chances = draw(rngs, "gumbel", (n_drawn,)).to(length) - beta * length
    most, which = torch.where(is_good, chances, -torch.inf).max(0)
    return candidates[which, torch.arange(len(which))], most > -torch.inf


def participants(
    judge: Problem,
    x: Tensor,
    preferences: Preferences,
    seed: int,
    model: CausalModel | None = None,
    beta: float = 0.0,
) -> Participants:
    """Return those of these people who have an ideal.

    Arguments:
        judge: A problem whose flow says what is plausible to the
            people.
        x: Refused people, with shape (N, D).
        preferences: What they can do. Where beta is above zero, the
            weights of the ideals are theirs.
        seed: Of the ideals.
        model: In which the ideal takes effect; None: the judge's
            flow.
        beta: As for `ideals`.
    Raises: ValueError: nobody has an ideal; as for `Actions`.
    """
    space = Actions(judge, x, preferences, model=model)
    columns = judge.population.actionable_index
    weights = scatter_to_features(preferences.weight.to(x), columns, x.shape[-1])
    ideal, has = ideals(space, streams(len(x), seed), beta, weights)
    if not has.any():
        raise ValueError(
            f"None of {len(x)} people has an acceptable action within what they can do, so "
            "there is no ideal: take more people, or let them do more."
        )
    return Participants(x[has], preferences[has], ideal.x_cf[has])


def hold(
    space: Space,
    base: Recommendation,
    method: str,
    user: Simulated,
    rngs: Streams,
    sharpness: float = 0.02,
) -> Dialogue:
    """Return a dialogue that was held to its end.

    Arguments:
        base: What is recommended before any question.
        method: A key of `METHODS`.
        rngs: Of random numbers, one a person.
        sharpness: As for `remembered`.
    Raises: ValueError: the method is unknown; as for `rounds`.
    """
    checks.one_of("method", [method], tuple(METHODS))
    with torch.set_grad_enabled("directions" in method):
        dialogue = Dialogue(METHODS[method](space, base, rngs, sharpness))
        refine(dialogue, user)
    return dialogue


def judged(
    problem: Problem,
    people: Participants,
    recommendation: Recommendation,
    dialogue: Dialogue | None = None,
    truth: CausalModel | None = None,
) -> pd.DataFrame:
    """Return what each person is left with, and what the dialogue showed: a row a person.

    Arguments:
        recommendation: What they are left with.
        dialogue: That led to it, if there was one.
        truth: As for `metrics.per_person`.
    Returns: Columns of `metrics.per_person`; gtp and gtd as
        `closeness`; forbidden (is there an action on what the
        person cannot do?), usable (joint and not forbidden), asked
        (questions) and wasted (questions whose new option acts on
        what the person cannot do).
    """
    x, preferences = people.x, people.preferences
    columns = problem.population.actionable_index
    rows = metrics.per_person(problem, x, preferences, recommendation, truth)
    gtp, gtd = closeness(x, recommendation.x_cf, people.ideal)

    def is_forbidden(option: Recommendation) -> Tensor:
        return (option.is_acted[:, columns] & ~preferences.is_actionable).any(-1)

    asked, wasted = (torch.zeros(len(x), dtype=torch.long) for _ in range(2))
    for question, _ in dialogue.answers if dialogue is not None else ():
        asked += question.is_asked
        wasted += question.is_asked & is_forbidden(question.challenger)
    forbidden = is_forbidden(recommendation)
    return rows.assign(
        gtp=gtp.numpy(),
        gtd=gtd.numpy(),
        forbidden=forbidden.numpy(),
        usable=rows.joint & ~forbidden.numpy(),
        asked=asked.numpy(),
        wasted=wasted.numpy(),
    )


def margin_chosen(judged_by_margin: Iterable[tuple[float, pd.DataFrame]]) -> float:
    """Return the least margin with which enough people are valid in the model that judges.

    Enough are `ENOUGH`; if no margin is enough, the one with most.

    Arguments:
        judged_by_margin: Margins in log-odds, each with validation
            people as `judged` gives them.
    Raises: ValueError: there is no margin.
    Example:
        >>> tables = [pd.DataFrame({"valid_in_truth": [True, ok]}) for ok in (False, True)]
        >>> margin_chosen(zip((0.0, 3.0), tables))
        3.0
    """
    shares = {margin: rows.valid_in_truth.mean() for margin, rows in judged_by_margin}
    checks.not_empty("margins", shares)
    enough = [margin for margin, share in shares.items() if share >= ENOUGH]
    return min(enough) if enough else max(shares, key=lambda margin: shares[margin])


def summary(rows: pd.DataFrame) -> pd.Series:
    """Return a line of a table: means over people, and what is usual for distances.

    Arguments:
        rows: As `judged` gives them.
    """
    n = len(rows)
    return pd.Series(
        {
            "people": n,
            "questions": rows.asked.mean(),
            "wasted": rows.wasted.mean(),
            "GTP": rows.gtp.mean(),
            "+-": rows.gtp.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan,
            "median": rows.gtp.median(),
            "GTD": rows.gtd.mean(),
            "joint": rows.joint.mean(),
            "forbidden": rows.forbidden.mean(),
            "usable": rows.usable.mean(),
            "valid in truth": rows.valid_in_truth.mean(),
        }
    )
