"""The ensembles that the studies need: their members, by profile, and their people.

They are trained as jobs of the batch (`workflow/fit.py`), beside
the notebooks; those of the constant profile in notebook 03. A study's
members are samplers, settings and seeds, as `icarma.fit` takes them,
for each profile.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch

from lib import checks
from lib.method.icarma import Settings
from lib.method.preferences import GAMMA, LINEAR, Preferences, Profile
from lib.method.samplers import RankingSampler, Sampler, ScoreSampler, TableSampler
from lib.paper import readings

ELICITATIONS = ("ranking", "score")
# the elicitation in each search for settings; "transfer" is Give Me Some Credit's
ASKED = {"ranking": "ranking", "score": "score", "transfer": "ranking"}

# the two settings of tables 2 and 3: everything can be done, or some things can't
SOFT, MIXED = "soft", "hard (random) + soft"

# seeds of what has fewer than all: two profiles as printed, and all as chosen
FEW = 4
FEWER_SEEDS = {"concave": FEW, "convex": FEW}

# the preferences that CARMA gives to everyone: no feature is harder than another, or two
# are (rounded means under `rco`)
EVERYONE = {"uniform": (1, 1, 1, 1), "rco": (3, 2, 3, 2)}

# weights of the mask's demand that are tried beside the printed one, with so many seeds
OTHER_WEIGHTS, SEEDS_OF_WEIGHTS = (0.6, 0.3, 0.25, 0.2, 0.0), 3

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


def printed(
    search: str,
    profiles: Sequence[str],
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> ByProfile:
    """Return the members as the paper prints them, by profile.

    Arguments:
        search: A key of `readings.PRINTED`.
        profiles: Keys of `GAMMA`.
        features: Names of the K actionable features.
        seeds: One a member of the constant and the linear profile, at
            least one; the other profiles have the first four.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds of each profile.
    Raises: ValueError: there are no seeds; see `readings.as_printed`.
    """
    return {
        name: members(
            _sampler(search, features, name),
            [readings.as_printed(search, name)],
            seeds[: FEWER_SEEDS.get(name)],
            n_epochs,
        )
        for name in profiles
    }


def hard(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return the members of the study of hard constraints, as printed.

    For rankings they serve as the constant profile, too.

    Arguments, Returns and Raises: as for `printed`.
    """
    return printed("ranking", ["constant"], features, seeds, n_epochs)


def biased(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return members as printed that in training see the rankings of `rco` only.

    Arguments, Returns and Raises: as for `printed`, and features to
        which `rco` leans are not there.
    """
    profile = readings.profile("constant")
    sampler = RankingSampler(tuple(features), "rco", profile=profile)
    settings = readings.as_printed("ranking", "constant")
    return {"constant": members(sampler, [settings], seeds, n_epochs)}


def weights(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return members with the linear profile, weight of the mask by weight.

    First come those with the printed weight, then `OTHER_WEIGHTS`; all
    else is as printed. Of the seeds the first three are used.

    Arguments, Returns and Raises: as for `printed`.
    """
    as_printed = readings.as_printed("ranking", "linear")
    settings = [replace(as_printed, mask=w) for w in (as_printed.mask, *OTHER_WEIGHTS)]
    sampler = _sampler("ranking", features, "linear")
    return {"linear": members(sampler, settings, seeds[:SEEDS_OF_WEIGHTS], n_epochs)}


def chosen(
    search: str,
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> ByProfile:
    """Return the members with the settings of our own rule, by profile.

    Arguments:
        search: A key of `readings.PRINTED`.
        features: Names of the K actionable features.
        seeds: The first four are used, or all if there are fewer.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds of each profile.
    Raises: ValueError: there are no seeds; see `readings.chosen`.
    """
    return {
        name: members(
            _sampler(search, features, name),
            [readings.chosen(search, name)],
            seeds[:FEW],
            n_epochs,
        )
        for name in readings.CHOSEN
    }


def lateness_is_past(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> ByProfile:
    """Return the members of Give Me Some Credit under the graph where lateness is past.

    They are as printed with the constant profile; the flow they are
    trained with makes the difference, see `gmsc.PAST`.

    Arguments, Returns and Raises: as for `chosen`.
    """
    return printed("transfer", ["constant"], features, seeds[:FEW], n_epochs)


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

    Arguments:
        features: Names of the four actionable features.
        seeds: One a member of each population, at least one.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds of each profile.
    Raises: ValueError: there are no seeds, or not four features.
    Source: CARMA, doi 10.1145/3630106.3659003.
    """
    n_scores = len(EVERYONE["uniform"])
    if len(features) != n_scores:
        raise ValueError(
            f"CARMA's common preferences are about {n_scores} actionable features, got "
            f"{len(features)} ({', '.join(features)}). Give `stacks.EVERYONE` as many."
        )
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
        sampler = TableSampler(everyone(population, 1, readings.profile(name)))
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
    Raises: ValueError: there are no seeds.
    """
    if not len(seeds):
        raise ValueError("Expected at least one seed, one a member, got none.")
    if n_epochs is not None:
        settings = [replace(s, n_epochs=n_epochs) for s in settings]
    of_members = [s for s in settings for _ in seeds]
    return [sampler] * len(of_members), of_members, [*seeds] * len(settings)


def everyone(population: str, n_people: int, profile: Profile = LINEAR) -> Preferences:
    """Return the same preferences for n_people, those of a population as a whole.

    Arguments:
        population: A key of `EVERYONE`.
        n_people: How many people, at least one.
        profile: Of the preferences.
    Raises: ValueError: the population is unknown, or there is nobody.
    """
    checks.one_of("population", [population], tuple(EVERYONE))
    checks.positive_int(n_people=n_people)
    scores = torch.tensor([EVERYONE[population]]).expand(n_people, -1)
    return Preferences(scores, profile=profile)


def _sampler(search: str, features: Sequence[str], name: str) -> Sampler:
    """Return the sampler that networks of a search and a profile are trained on."""
    elicitation = ASKED[search]
    profile = readings.profile(name, elicitation)
    return soft_samplers(features, elicitation, profile)[MIXED]


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
