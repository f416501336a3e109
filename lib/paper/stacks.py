"""The ensembles that the studies need: their members, by profile, and their people.

They are trained as jobs of the batch (`workflow/fit.py`), beside
the notebooks; those of the constant profile in notebook 03. A study's
members are samplers, settings and seeds, as `icarma.fit` takes them,
for each profile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from lib import checks
from lib.method.icarma import Settings
from lib.method.preferences import LINEAR, Preferences, Profile
from lib.method.samplers import RankingSampler, Sampler, ScoreSampler, TableSampler
from lib.paper import readings

ELICITATIONS = ("ranking", "score")
# the elicitation in each search for settings; "transfer" is Give Me Some Credit's
ASKED = {"ranking": "ranking", "score": "score", "transfer": "ranking"}

# the two settings of tables 2 and 3: everything can be done, or some things can't
SOFT, MIXED = "soft", "hard (random) + soft"

# how many of the seeds the networks of a profile have; None: all
WEIGHTED = {"concave": 4, "linear": None, "convex": 4}
CHOSEN = dict.fromkeys(readings.CHOSEN, 4)

# the preferences that CARMA gives to everyone: no feature is harder than another, or two
# are (rounded means under `rco`)
EVERYONE = {"uniform": (1, 1, 1, 1), "rco": (3, 2, 3, 2)}

CARMAS_PRIOR = 0.5  # of acting on the easiest feature, in its code

Members = tuple[list[Sampler], list[Settings], list[int]]  # as `icarma.fit` takes them
ByProfile = dict[str, Members]
# from features, seeds, and n_epochs (None: as printed)
Stack = Callable[[Sequence[str], Sequence[int], int | None], ByProfile]


def soft_samplers(
    features: Sequence[str], elicitation: str, profile: Profile = LINEAR
) -> dict[str, Sampler]:
    """Return samplers for the two settings of table 2 (rankings) or 3 (scores).

    Networks are trained on the mixed one.

    Arguments:
        features: Names of the K actionable features.
        elicitation: "ranking" or "score".
        profile: Of the preferences.
    Returns: A sampler for `SOFT`, everything can be done, and one
        for `MIXED`, each person can't do some things.
    Raises: ValueError: the elicitation is unknown.
    Source: tables 2 and 3 of arXiv:2604.08030.
    """
    checks.one_of("elicitation", [elicitation], ELICITATIONS)
    if elicitation == "ranking":
        names = tuple(features)
        return {
            SOFT: RankingSampler(names, n_actionable=len(names), profile=profile),
            MIXED: RankingSampler(names, profile=profile),
        }
    return {
        SOFT: ScoreSampler(len(features), False, profile=profile),
        MIXED: ScoreSampler(len(features), True, profile=profile),
    }


def of_search(
    settings_of: Callable[[str, str], Settings],
    search: str,
    n_seeds: Mapping[str, int | None],
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> ByProfile:
    """Return the members of a study, with settings as printed or as chosen.

    Arguments:
        settings_of: `readings.as_printed` or `readings.chosen`.
        search: A key of `readings.PRINTED`.
        n_seeds: The first so many seeds are used, by profile; None:
            all.
        features: Names of the K actionable features.
        seeds: One a member, at least one.
        n_epochs: Of training; None: as the settings say.
    Returns: Samplers, settings and seeds of each profile.
    """
    by_profile = {}
    for name, n in n_seeds.items():
        profile = readings.profile(name, ASKED[search])
        sampler = soft_samplers(features, ASKED[search], profile)[MIXED]
        settings = [settings_of(search, name)]
        by_profile[name] = members(sampler, settings, seeds[:n], n_epochs)
    return by_profile


def biased(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return members as printed that in training see the rankings of `rco` only.

    Arguments and Returns: as for `of_search`.
    """
    profile = readings.profile("constant")
    sampler = RankingSampler(tuple(features), "rco", profile=profile)
    settings = readings.as_printed("ranking", "constant")
    return {"constant": members(sampler, [settings], seeds, n_epochs)}


def carma(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return the members of the baseline without individuals.

    Everything can be done, and weights and priors are the
    population's. The members of the constant profile are for a
    population without common preferences, those of the linear profile
    for one that leans to `rco`. There is no plausibility and no
    feasibility in their loss, and the prior is that of CARMA's code,
    0.5 / w; all else is as printed for rankings.

    Arguments and Returns: as for `of_search`, with four features.
    Source: CARMA, doi 10.1145/3630106.3659003.
    """
    by_profile = {}
    for population, name in {"uniform": "constant", "rco": "linear"}.items():
        as_printed = readings.as_printed("ranking", name)
        settings = replace(
            as_printed,
            p_max=CARMAS_PRIOR,
            p_min=min(as_printed.p_min, CARMAS_PRIOR),
            prior_form="weight",
            plausibility=0.0,
            feasibility=0.0,
        )
        scores = torch.tensor([EVERYONE[population]])
        everyone = Preferences(scores, profile=readings.profile(name))
        sampler = TableSampler(everyone)
        by_profile[name] = members(sampler, [settings], seeds, n_epochs)
    return by_profile


def members(
    sampler: Sampler,
    settings: Sequence[Settings],
    seeds: Sequence[int],
    n_epochs: int | None,
) -> Members:
    """Return the members of one profile: each of the settings with each of the seeds.

    Arguments:
        sampler: Whose people all are trained on.
        n_epochs: Of training; None: as the settings say.
    Returns: Samplers, settings and seeds, one of each a member.
    """
    if n_epochs is not None:
        settings = [replace(s, n_epochs=n_epochs) for s in settings]
    of_members = [s for s in settings for _ in seeds]
    return [sampler] * len(of_members), of_members, [*seeds] * len(settings)


printed = partial(of_search, readings.as_printed)
chosen = partial(of_search, readings.chosen)

# the study of hard constraints; for rankings it serves as the constant profile, too
hard: Stack = partial(printed, "ranking", {"constant": None})

STACKS: dict[str, Stack] = {
    "loan_icarma_ranking": partial(printed, "ranking", WEIGHTED),
    "loan_icarma_score": partial(printed, "score", {"constant": None} | WEIGHTED),
    "loan_icarma_rco": biased,
    "loan_carma": carma,
    "loan_chosen_ranking": partial(chosen, "ranking", CHOSEN),
    "loan_chosen_score": partial(chosen, "score", CHOSEN),
}
# those of `gmsc_icarma_past` are trained with another flow: see `gmsc.PAST`
TRANSFER: dict[str, Stack] = {
    "gmsc_icarma": partial(printed, "transfer", dict.fromkeys(readings.CHOSEN)),
    "gmsc_icarma_past": partial(printed, "transfer", {"constant": 4}),
    "gmsc_chosen": partial(chosen, "transfer", CHOSEN),
}
