"""The stacks of networks that the studies need: who is in them, and trained on what.

They are trained as jobs of the batch (`workflow/networks.py`), side
by side with the notebooks; those of the constant profile in notebook
03.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from lib.base import checks
from lib.method.icarma import ICarma, Settings
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.samplers import RankingSampler, Sampler, ScoreSampler, TableSampler
from lib.paper import readings

ELICITATIONS = ("ranking", "score")
# how people are asked in each search for settings; "transfer" is Give Me Some Credit's
ASKED = {"ranking": "ranking", "score": "score", "transfer": "ranking"}

# the two settings of tables 2 and 3: everything can be done, or some things can't
SOFT, MIXED = "soft", "hard (random) + soft"

# the weight of the hardest feature that can still be done, as the calibration chose it
W_MAX = 7.0

# seeds of what has fewer than all: two profiles as printed, and all as chosen
FEW = 4
FEWER_SEEDS = {"concave": FEW, "convex": FEW}

# the preferences that CARMA gives to everyone: no feature is harder than another, or two
# are (rounded means under `rco`)
EVERYONE = {"uniform": (1, 1, 1, 1), "rco": (3, 2, 3, 2)}

# weights of the mask's demand that are tried beside the printed one, with so many seeds
OTHER_WEIGHTS, SEEDS_OF_WEIGHTS = (0.6, 0.3, 0.25, 0.2, 0.0), 3

CARMAS_PRIOR = 0.5  # of acting on the easiest feature, in its code

Members = tuple[list[Sampler], list[Settings], list[int]]  # what `training.fit` is given
# from features, seeds, and n_epochs (None: as printed)
Stack = Callable[[Sequence[str], Sequence[int], int | None], Members]


def soft_samplers(features: Sequence[str], elicitation: str) -> dict[str, Sampler]:
    """Return samplers for the two settings of table 2 (rankings) or 3 (scores).

    Networks are trained on the mixed one.

    Arguments:
        features: Names of the K actionable features.
        elicitation: "ranking" or "score".
    Returns: A sampler for `SOFT`, everything can be done, and one
        for `MIXED`, each person can't do some things.
    Raises: ValueError: the elicitation is unknown.
    Source: tables 2 and 3 of arXiv:2604.08030.
    """
    checks.known("elicitation", [elicitation], ELICITATIONS)
    if elicitation == "ranking":
        names = tuple(features)
        return {
            SOFT: RankingSampler(names, n_actionable=len(names)),
            MIXED: RankingSampler(names),
        }
    return {
        SOFT: ScoreSampler.uniform(len(features), False),
        MIXED: ScoreSampler.uniform(len(features), True),
    }


def printed(
    search: str,
    profiles: Sequence[str],
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> Members:
    """Return the members as the paper prints them, profile by profile.

    Arguments:
        search: A key of `readings.PRINTED`.
        profiles: Keys of `GAMMA`.
        features: Names of the K actionable features.
        seeds: One a member of the constant and the linear profile, at
            least one; the other profiles have the first four.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; see `readings.as_printed`.
    """
    each = {
        name: (readings.as_printed(search, name), seeds[: FEWER_SEEDS.get(name)])
        for name in profiles
    }
    return members(soft_samplers(features, ASKED[search])[MIXED], each, n_epochs)


def hard(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members of the study of hard constraints, as printed.

    For rankings they serve as the constant profile, too.

    Arguments, Returns and Raises: as for `printed`.
    """
    return printed("ranking", ["constant"], features, seeds, n_epochs)


def biased(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return members as printed that in training see the rankings of `rco` only.

    Arguments, Returns and Raises: as for `printed`, and features to
        which `rco` leans are not there.
    """
    each = {"constant": (readings.as_printed("ranking", "constant"), seeds)}
    return members(RankingSampler(tuple(features), "rco"), each, n_epochs)


def weights(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return members with the linear profile, weight of the mask by weight.

    First come those with the printed weight, then `OTHER_WEIGHTS`; all
    else is as printed. Of the seeds the first three are used.

    Arguments, Returns and Raises: as for `printed`.
    """
    own = readings.as_printed("ranking", "linear")
    each = {
        f"{weight:g}": (replace(own, mask=weight), seeds[:SEEDS_OF_WEIGHTS])
        for weight in (own.mask, *OTHER_WEIGHTS)
    }
    return members(RankingSampler(tuple(features)), each, n_epochs)


def chosen(
    search: str,
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> Members:
    """Return the members with the settings of our own rule, profile by profile.

    Arguments:
        search: A key of `readings.PRINTED`.
        features: Names of the K actionable features.
        seeds: The first four are used, or all if there are fewer.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; see `readings.chosen`.
    """
    each = {name: (readings.chosen(search, name), seeds[:FEW]) for name in readings.CHOSEN}
    return members(soft_samplers(features, ASKED[search])[MIXED], each, n_epochs)


def lateness_is_past(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members of Give Me Some Credit for a world where past lateness is past.

    They are as printed with the constant profile; the flow they are
    trained with makes the difference, see `gmsc.PAST`.

    Arguments, Returns and Raises: as for `chosen`.
    """
    return printed("transfer", ["constant"], features, seeds[:FEW], n_epochs)


def carma(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members of the baseline without individuals.

    Everything can be done, and weights and priors are the
    population's. First come the members for a population without
    common preferences, with the constant profile, then those for one
    that leans to `rco`, with the linear one. There is no plausibility
    and no feasibility in their loss, and the prior is that of CARMA's
    code, 0.5 / w; all else is as printed for rankings.

    Arguments:
        features: Names of the four actionable features.
        seeds: One a member of each population, at least one.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds, or not four features.
    Source: CARMA, doi 10.1145/3630106.3659003.
    """
    n_scores = len(EVERYONE["uniform"])
    if len(features) != n_scores:
        raise ValueError(
            f"CARMA's common preferences are about {n_scores} actionable features, got "
            f"{len(features)} ({', '.join(features)}). Give `stacks.EVERYONE` as many."
        )
    samplers: list[Sampler] = []
    settings: list[Settings] = []
    every: list[int] = []
    for population, profile in {"uniform": "constant", "rco": "linear"}.items():
        own = readings.as_printed("ranking", profile)
        p_min = min(own.profile.p_min, CARMAS_PRIOR)
        prior = replace(own.profile, p_max=CARMAS_PRIOR, p_min=p_min, inverse=True)
        own = replace(own, profile=prior, plausibility=0.0, feasibility=0.0)
        sampler = TableSampler(everyone(population, 1))
        parts = members(sampler, {profile: (own, seeds)}, n_epochs)
        samplers += parts[0]
        settings += parts[1]
        every += parts[2]
    return samplers, settings, every


def members(
    sampler: Sampler,
    profiles: Mapping[str, tuple[Settings, Sequence[int]]],
    n_epochs: int | None,
) -> Members:
    """Return members of some profiles: each profile's settings with each of its seeds.

    Arguments:
        sampler: Whose people all are trained on.
        profiles: By name, the settings and the seeds.
        n_epochs: Of training; None: as the settings say.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds.
    """
    settings: list[Settings] = []
    every: list[int] = []
    for own, seeds in profiles.values():
        if not len(seeds):
            raise ValueError("Expected at least one seed, one a member, got none.")
        own = own if n_epochs is None else replace(own, n_epochs=n_epochs)
        settings += [own] * len(seeds)
        every += seeds
    return [sampler] * len(settings), settings, every


def everyone(population: str, n_people: int) -> Preferences:
    """Return the same preferences for n_people, those of a population as a whole.

    Arguments:
        population: "uniform" or "rco".
        n_people: How many people.
    Returns: Scores with shape (n_people, 4).
    Raises: ValueError: the population is unknown, or there are no
        people.
    """
    checks.known("population", [population], tuple(EVERYONE))
    checks.positive(n_people=n_people)
    return Preferences(torch.tensor([EVERYONE[population]]).expand(n_people, -1))


STACKS: dict[str, Stack] = {
    "loan_icarma_ranking": partial(printed, "ranking", [*GAMMA][1:]),
    "loan_icarma_score": partial(printed, "score", [*GAMMA]),
    "loan_icarma_rco": biased,
    "loan_icarma_weights": weights,
    "loan_carma": carma,
    "loan_chosen_ranking": partial(chosen, "ranking"),
    "loan_chosen_score": partial(chosen, "score"),
}
TRANSFER: dict[str, Stack] = {
    "gmsc_icarma": partial(printed, "transfer", readings.CHOSEN),
    "gmsc_icarma_past": lateness_is_past,
    "gmsc_chosen": partial(chosen, "transfer"),
}


def by_profile(*stacks: ICarma) -> dict[str, ICarma]:
    """Return the members that were trained for each profile, as stacks of their own.

    Arguments:
        stacks: Members of several profiles; those of one profile all
            come from one stack.
    Returns: For each profile that has members, in the order of
        `GAMMA`, its members, which keep their ids.
    Raises: ValueError: two stacks have members of the same profile.
    """
    found: dict[str, ICarma] = {}
    for profile in GAMMA:
        for stack in stacks:
            own = [i for i, s in enumerate(stack.settings) if _name(s.profile) == profile]
            if own and profile in found:
                raise ValueError(
                    f"Two stacks have members of the {profile} profile, and their ids can "
                    "be the same. Give one stack for each profile."
                )
            if own:
                found[profile] = stack.select(own)
    return found


def _name(profile: Profile) -> str:
    """Return the name of a profile, a key of `GAMMA`."""
    if profile.gamma is None or profile.gamma == 1:
        return "constant" if profile.gamma is None else "linear"
    return "convex" if profile.gamma > 1 else "concave"
