"""Dialogues on top of a solver: asked beforehand, afterwards, both, or not at all.

Simulated people have a hidden ideal: an action of their own, valid in a causal model
that the solver does not see, and plausible by the flow of the problem at hand. A
dialogue is measured by how near to the ideal it ends, and by what it showed on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.beyond.hare.draws import draw, streams
from lib.beyond.hare.hare import Dialogue, User, remembered, rounds
from lib.beyond.hare.ideals import closeness
from lib.beyond.hare.proposals import Directions, Local, Streams
from lib.beyond.hare.spaces import Actions, Space, walk_back
from lib.method import metrics
from lib.method.flow import CausalFlow
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation, is_plausible, scatter_to_features
from lib.method.scm import SCM, CausalModel

EPS = 1e-4  # standard deviations; more digits than any user sees
# How a dialogue is held, by its name in tables. HARE's step of one unit would cross the
# whole range of a feature: a fifth of it is about one standard deviation.
METHODS: dict[str, Callable[..., Dialogue]] = {
    "HARE's directions, 6 x 5": partial(
        rounds, proposal=Directions(length=0.2), n_rounds=6, n_candidates=5
    ),
    "local, 2 x 5": partial(rounds, proposal=Local(), n_rounds=2, n_candidates=5),
    "local, 10 x 3": partial(rounds, proposal=Local(), n_rounds=10, n_candidates=3),
    "remembered, 10": partial(remembered, n_questions=10),
    "remembered, 30": partial(remembered, n_questions=30),
}


@dataclass(frozen=True)
class Participants:
    """Hold simulated people: who they are, what they can do, and what they would like best.

    Arguments:
        x: Refused people, with shape (N, D).
        preferences: What they can do.
        ideal: The outcome that they would like best, with shape (N, D).
    """

    x: Tensor
    preferences: Preferences
    ideal: Tensor

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

    Actions are scattered over all that is free; those that are acceptable are walked
    back until they are only just so; one of them is drawn, with a probability that
    falls by a factor e for each unit of beta times its weighted length, in spans.

    Arguments:
        space: Where the people live: the true SCM, or a flow that the solver does not
            know.
        beta: Zero: any acceptable action is as likely as any other.
        weights: How hard each feature is, with shape (N, D); left out: all alike.
        n_drawn: Actions that are scattered for each person.
    """
    weights = torch.ones_like(space.x) if weights is None else weights
    scattered = Local(n_points=n_drawn, anywhere=1.0)
    values = scattered(space, space.x, 1, 0, rngs)
    candidates, is_good = walk_back(
        space, space.outcome(space.free.expand_as(values), values), EPS
    )
    length = ((candidates.values - space.x).abs() / space.span * weights).sum(-1)
    chances = draw(rngs, "gumbel", (n_drawn,)).to(length) - beta * length
    most, which = torch.where(is_good, chances, -torch.inf).max(0)
    return candidates[which, torch.arange(len(which))], most > -torch.inf


def participants(
    problem: Problem,
    x: Tensor,
    preferences: Preferences,
    seed: int,
    model: CausalModel | None = None,
    beta: float = 0.0,
) -> Participants:
    """Return those of these people who have an ideal.

    Arguments:
        problem: Its flow says what is plausible to the people.
        x: Refused people, with shape (N, D).
        preferences: What they can do. Where beta is above zero, the weights of the
            ideals are theirs.
        seed: Of the ideals.
        model: In which the ideal takes effect; None: the problem's flow.
        beta: As for `ideals`.
    Raises: ValueError: nobody has an ideal; as for `Actions`.
    """
    space = Actions(problem, x, preferences, model=model)
    columns = problem.population.actionable_index
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
    user: User,
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
    more = {"sharpness": sharpness} if method.startswith("remembered") else {}
    with torch.set_grad_enabled("directions" in method):
        return METHODS[method](Dialogue(space, base, user, rngs), eps=EPS, **more)


def evaluate(
    problem: Problem,
    people: Participants,
    recommendation: Recommendation,
    dialogue: Dialogue | None = None,
    truth: SCM | CausalFlow | None = None,
) -> pd.DataFrame:
    """Return what each person is left with, and what the dialogue showed: a row a person.

    Arguments:
        recommendation: What they are left with.
        dialogue: That led to it, if there was one.
        truth: As for `metrics.per_person`; adds joint_in_truth: whether the action, by
            this model's consequences and density, is valid and plausible.
    Returns: Columns of `metrics.per_person`; gtp and gtd as `closeness`; forbidden (is
        there an action on what the person cannot do?), usable (joint and not
        forbidden), asked (questions) and wasted (questions whose new option acts on
        what the person cannot do).
    """
    x, preferences = people.x, people.preferences
    columns = problem.population.actionable_index
    rows = metrics.per_person(problem, x, preferences, recommendation, truth)
    if truth is not None:
        x_true = truth.counterfactual(x, recommendation.is_acted, recommendation.values)
        plausible = is_plausible(truth.log_prob(x_true) - truth.log_prob(x))
        rows["joint_in_truth"] = rows.valid_in_truth & plausible.numpy()
    gtp, gtd = closeness(x, recommendation.x_cf, people.ideal)

    def is_forbidden(option: Recommendation) -> Tensor:
        return (option.is_acted[:, columns] & ~preferences.is_actionable).any(-1)

    asked, wasted = (torch.zeros(len(x), dtype=torch.long) for _ in range(2))
    for question, _ in dialogue.answers if dialogue is not None else ():
        asked += question.is_asked
        wasted += question.is_asked & is_forbidden(question.challenger)
    forbidden = is_forbidden(recommendation).numpy()
    return rows.assign(
        gtp=gtp.numpy(),
        gtd=gtd.numpy(),
        forbidden=forbidden,
        usable=rows.joint & ~forbidden,
        asked=asked.numpy(),
        wasted=wasted.numpy(),
    )


def summary(rows: pd.DataFrame) -> pd.Series:
    """Return a line of a table: means over people, and the median distance.

    Arguments:
        rows: As `evaluate` gives them, with a truth.
    """
    return pd.Series(
        {
            "people": len(rows),
            "questions": rows.asked.mean(),
            "wasted": rows.wasted.mean(),
            "GTP": rows.gtp.mean(),
            "+-": rows.gtp.sem(),
            "median": rows.gtp.median(),
            "GTD": rows.gtd.mean(),
            "joint": rows.joint.mean(),
            "forbidden": rows.forbidden.mean(),
            "usable": rows.usable.mean(),
            "valid in truth": rows.valid_in_truth.mean(),
            "joint in truth": rows.joint_in_truth.mean(),
        }
    )
