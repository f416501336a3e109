"""Settings as we would choose them: a search that can't see what the paper reports.

Candidates are drawn evenly from `SPACE`, which contains what the
paper prints; the first is the paper's own setting, as printed. They
are trained as one ensemble, a few epochs first. Then the better ones
begin anew with more epochs and more seeds, and at last with as many
epochs as the paper prints. Validation people judge, with preferences
drawn as in training. All of it is equal from run to run.

The rule was fixed and committed before the search:

1. Help comes first. A candidate is kept if the share of people with a
   valid and plausible recommendation lies within two standard errors
   of the highest such share among the candidates.
2. Of those, the ones are kept that ask for the least that is hard and
   avoidable: a feature among those that a person finds hardest is
   acted on, and the search helps the same person without it. Again
   within two standard errors.
3. Of those, the most efficient is chosen. A person's efficiency is the
   lowest cost known divided by that of the recommendation, 1 at most;
   it is 0 where the recommendation is not valid and plausible.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import qmc
from torch import Tensor

from lib import checks
from lib.method import icarma, metrics
from lib.method.icarma import Settings
from lib.method.preferences import Preferences
from lib.method.problem import Problem, Recommendation
from lib.method.samplers import Sampler
from lib.search.continuous import Search

Progress = Callable[[range], Iterable[int]]
STANDARD_ERRORS = 2.0
# from the lowest to the highest value, on a logarithmic scale
SPACE = {
    "p_max": (0.05, 0.99),
    "p_min": (1e-4, 0.05),
    "cost": (0.5, 2.0),
    "mask": (1e-4, 2.0),
    "hinge": (0.02, 20.0),
    "plausibility": (0.01, 3.0),
    "saturation": (1.0, 10.0),
    "tau": (0.3, 1.5),
    "margin": (0.003, 0.5),
}
# the second of each pair where a coin falls so; CARMA's multiplier takes the place of the
# hinge's weight
CHOICES: dict[str, tuple[Any, str]] = {
    "hinge": (None, "lagrangian"),
    "plausibility_form": ("drop", "nll"),
    "margin_on": ("log_odds", "probability"),
    "prior_form": ("difficulty", "weight"),
}
N_CANDIDATES = 128
# of the printed number of epochs, with so many seeds; so many go on to the next
ROUNDS = ((1 / 6, 1, 24), (1 / 3, 2, 6), (1.0, 3, 1))
# how the drawn ones are trained; the first has its own
HOW: dict[str, Any] = {
    "learning_rate": 5e-3,
    "cosine_schedule": True,
    "weight_decay": 0.0,
}


def candidates(as_printed: Settings) -> list[Settings]:
    """Return the candidates: the settings as printed, and those that are drawn.

    The draw is a Sobol sequence.

    Arguments:
        as_printed: Its batches, its number of epochs, its width and
            its weight of feasibility are everybody's. Where its prior
            is the same for all features, so is everybody's.
    Example:
        >>> drawn = candidates(Settings())
        >>> len(drawn), drawn[0] == Settings()
        (128, True)
    """
    sobol = qmc.Sobol(len(SPACE) + len(CHOICES), rng=np.random.default_rng(0))
    drawn = [as_printed]
    for point in sobol.random(N_CANDIDATES)[1:].tolist():
        at = zip(SPACE.items(), point, strict=False)
        # three digits, so that they can be printed
        entries: dict[str, Any] = {
            name: float(f"{low * (high / low) ** u:.3g}") for (name, (low, high)), u in at
        }
        for (name, pair), u in zip(CHOICES.items(), point[len(SPACE) :], strict=True):
            value = pair[u > 0.5]
            entries[name] = entries[name] if value is None else value
        if as_printed.p_min == as_printed.p_max:
            entries |= {"p_min": entries["p_max"], "prior_form": "difficulty"}
        drawn.append(replace(as_printed, **HOW, **entries))
    return drawn


@dataclass(frozen=True)
class Validation:
    """Hold the people who decide among candidates, and what a search finds for them.

    Arguments:
        problem: Of the people.
        x: Refused validation people, with shape (N, D).
        preferences: Theirs, drawn as in training.
        cheapest: The lowest cost known, by their weights, infinite
            where there is none, with shape (N,).
        can_be_spared: Whether the search helps without what they find
            hardest, with shape (N,), bool.
    """

    problem: Problem
    x: Tensor
    preferences: Preferences
    cheapest: Tensor
    can_be_spared: Tensor

    @classmethod
    def of(
        cls,
        problem: Problem,
        preferences: Preferences,
        progress: Progress | None = None,
        **effort: Any,
    ) -> "Validation":
        """Return the first refused validation people with what the search finds.

        Arguments:
            preferences: Theirs; as many people are asked.
            effort: As for `Search`.
        """
        x = problem.refused("validation")[: len(preferences)]
        search = Search(problem, problem.flow, progress=progress, **effort)
        table = search.table(x, preferences.weight)
        is_allowed = preferences.is_actionable
        scores = torch.where(is_allowed, preferences.scores, 0)
        without = is_allowed & (scores < scores.amax(-1, keepdim=True))
        cheapest, spared = (table.cheapest(mask)[0] for mask in (is_allowed, without))
        return cls(problem, x, preferences, cheapest, spared.isfinite())

    def measure(self, recommendation: Recommendation) -> dict[str, float]:
        """Return joint, avoidable, efficiency and others of one network."""
        problem, x = self.problem, self.x
        people = metrics.per_person(problem, x, self.preferences, recommendation)
        joint = torch.tensor(people.joint.to_numpy())
        hard = torch.tensor(people.hard_action.to_numpy())
        cost = problem.cost_of(x, recommendation, self.preferences.weight)
        both = joint & self.cheapest.isfinite()
        ratio = torch.where(self.cheapest < cost, self.cheapest / cost, 1.0)
        efficiency = torch.where(joint, ratio, 0.0)
        return {
            "joint": joint.float().mean().item(),
            "validity": people.valid.mean(),
            "avoidable": hard[self.can_be_spared].float().mean().item(),
            "efficiency": efficiency.mean().item(),
            "hap": people.hard_action[people.has_recourse].mean(),
            "cost_ratio": (cost[both].mean() / self.cheapest[both].mean()).item(),
            "n_acted": people.n_acted[people.has_recourse].mean(),
        }


def ranked(measured: pd.DataFrame) -> pd.DataFrame:
    """Return candidates in the order of the rule; the first is the chosen one.

    Arguments:
        measured: A row a candidate, with the columns joint, avoidable
            and efficiency, and n_people and n_spared: how many people
            the two shares are of.
    Example:
        The second helps as many up to chance, and spares; the third
        spares more, and leaves people without help:

        >>> rows = {"joint": [0.6, 0.59, 0.2], "avoidable": [0.5, 0.1, 0.0]}
        >>> table = pd.DataFrame(rows).assign(efficiency=0.5, n_people=900, n_spared=900)
        >>> ranked(table).index.tolist()
        [1, 0, 2]
    """

    def error(share: float, n: float) -> float:
        return STANDARD_ERRORS * float(np.sqrt(share * (1 - share) / n))

    best = measured.loc[measured.joint.idxmax()]
    helps = measured.joint >= best.joint - error(best.joint, best.n_people)
    least = measured.loc[measured[helps].avoidable.idxmin()]
    bound = least.avoidable + error(least.avoidable, least.n_spared)
    spares = helps & (measured.avoidable <= bound)
    first = measured[spares].sort_values("efficiency", ascending=False, kind="stable")
    second = measured[helps & ~spares].sort_values("avoidable", kind="stable")
    rest = measured[~helps].sort_values("joint", ascending=False, kind="stable")
    return pd.concat([first, second, rest])


def search(
    validation: Validation,
    sampler: Sampler,
    as_printed: Settings,
    progress: Progress | None = None,
) -> tuple[Settings, pd.DataFrame]:
    """Return the settings that the rule chooses, and a row for each candidate and round.

    Arguments:
        validation: As `Validation.of` gives them.
        sampler: Of preferences in training, under the profile of
            those of the validation people.
        as_printed: The first candidate.
        progress: Wraps the range of epochs.
    Returns: The settings, with the printed number of epochs; and
        columns round, candidate (its number), n_epochs, n_seeds, what
        `Validation.measure` gives as means over seeds, chosen.
    """
    all_candidates = candidates(as_printed)
    n_spared = int(validation.can_be_spared.sum())
    going_on, tables = list(range(len(all_candidates))), []
    for number, (share, n_seeds, n_kept) in enumerate(ROUNDS):
        n_epochs = max(1, round(share * as_printed.n_epochs))
        seeds = [1000 * (i + 1) for i in range(n_seeds)]
        # those that share what an ensemble must share are trained as one
        groups: dict[tuple[Any, ...], dict[int, Settings]] = {}
        for i in going_on:
            candidate = replace(all_candidates[i], n_epochs=n_epochs)
            shared = tuple(getattr(candidate, name) for name in icarma.SHARED)
            groups.setdefault(shared, {})[i] = candidate
        rows: dict[int, dict[str, float]] = {}
        for group in groups.values():
            rows |= _measured(validation, sampler, group, seeds, progress)
        measured = pd.DataFrame.from_dict(rows, orient="index").sort_index()
        measured = measured.assign(n_people=len(validation.x), n_spared=n_spared)
        best = ranked(measured).index[:n_kept]
        about = {"round": number, "n_epochs": n_epochs, "n_seeds": n_seeds}
        tables.append(measured.assign(**about, chosen=measured.index.isin(best)))
        # the first is always trained to the end, to stand beside the chosen one
        going_on = sorted({0, *best})
    table = pd.concat(tables).rename_axis("candidate").reset_index()
    return all_candidates[best[0]], table


def _measured(
    validation: Validation,
    sampler: Sampler,
    settings: Mapping[int, Settings],
    seeds: Sequence[int],
    progress: Progress | None,
) -> dict[int, dict[str, float]]:
    """Return what is measured of each candidate, as means over seeds, by its number.

    They are trained as one ensemble. Where the loss of one diverges,
    so that the others can't go on, each half is trained by itself.
    Who diverges alone helps nobody.
    """
    problem, numbers = validation.problem, list(settings)
    rows: dict[int, dict[str, float]] = {}
    members = [candidate for candidate in settings.values() for _ in seeds]
    try:
        ensemble, _ = icarma.fit(
            problem, sampler, members, list(seeds) * len(numbers), progress
        )
    except checks.Diverged:
        if len(numbers) == 1:
            return {numbers[0]: {"joint": 0.0, "avoidable": 1.0, "efficiency": 0.0}}
        middle = len(numbers) // 2
        for half in (numbers[:middle], numbers[middle:]):
            some = {i: settings[i] for i in half}
            rows |= _measured(validation, sampler, some, seeds, progress)
        return rows
    recommendation = ensemble.recommend_each(validation.x, validation.preferences)
    recommendation = problem.discretise(validation.x, recommendation)
    measured = [validation.measure(recommendation[k]) for k in range(len(members))]
    for place, i in enumerate(numbers):
        of_seeds = measured[place * len(seeds) : (place + 1) * len(seeds)]
        rows[i] = pd.DataFrame(of_seeds).mean().to_dict()
    return rows
