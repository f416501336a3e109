"""The stacks of networks that the studies of soft preferences and of transfer need: who is
in them, and trained on what.

They are trained as jobs of the batch (`workflow/networks.py`), side
by side with the notebooks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lib.base import checks, files
from lib.base.files import PARAMS
from lib.method.icarma import TERMS, ICarma, Settings
from lib.method.preferences import GAMMA, Preferences, Profile
from lib.method.samplers import RankingSampler, Sampler, ScoreSampler, TableSampler
from lib.paper import readings

ELICITATIONS = ("ranking", "score")
# the searches for settings, how people are asked in each, and the profiles of each;
# "transfer" is Give Me Some Credit's
ASKED = {"ranking": "ranking", "score": "score", "transfer": "ranking"}
SEARCHES = {
    "ranking": tuple(GAMMA),
    "score": tuple(GAMMA),
    "transfer": ("constant", "linear"),
}

# the two settings of tables 2 and 3: everything can be done, or some things can't
SOFT, MIXED = "soft", "hard (random) + soft"

# the weight of the hardest feature that can still be done: with 7 and above, the oracle's
# hap lies within some hundredths of the paper's (notebook 05)
W_MAX = 7.0

# seeds of what has fewer than all: profiles as printed, and all profiles as chosen
FEW = 4
FEWER_SEEDS = {"concave": FEW, "convex": FEW}

# what the search for settings finds, for each profile
PRIORS = ("p_min", "p_max")
TUNABLE = (*PRIORS, *TERMS, "cap", "margin", "tau", "n_epochs")

# the preferences that CARMA gives to everyone: no feature is harder than another, or two
# are (rounded means under `rco`)
EVERYONE = {"uniform": (1, 1, 1, 1), "rco": (3, 2, 3, 2)}

# the batches of Give Me Some Credit's networks; their other settings are searched for
GMSC: dict[str, Any] = {"batch_size": 512, "learning_rate": 5e-3}

Members = tuple[list[Sampler], list[Settings], list[int]]  # what `icarma.fit` is given
# from features, seeds, and n_epochs (None: as the search found)
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


def tuned(search: str) -> dict[str, dict[str, float]]:
    """Return what a search for settings found, for each of its profiles.

    It is read from params/tuned_<search>.yaml.

    Arguments:
        search: A key of `SEARCHES`.
    Returns: For each profile, some of `TUNABLE` and their values.
    Raises: ValueError: the search is unknown; the file is
        missing or cannot be read; a profile is missing or unknown;
        a value is missing, unknown, no number or out of range. The
        message names the file.
    """
    checks.known("search", [search], tuple(SEARCHES))
    path = PARAMS / f"tuned_{search}.yaml"
    if not path.is_file():
        raise ValueError(
            f"Expected tuned settings at {path}, found none. Restore the file, or "
            "`make tune`, which takes about an hour."
        )
    found = files.entries(path)
    _check_tuned(path, found, SEARCHES[search])
    return found


def _check_tuned(path: Path, found: Mapping[str, Any], profiles: Sequence[str]) -> None:
    """Raise ValueError unless the contents of a file of tuned settings can be used."""
    checks.known(f"profile in {path}", found, profiles)
    if missing := [profile for profile in profiles if profile not in found]:
        raise ValueError(f"{path} has no settings for {', '.join(missing)}.")
    for profile, settings in found.items():
        where = f"{path}, {profile}"
        if not isinstance(settings, dict):
            raise ValueError(
                f"{where}: expected settings by name, got {type(settings).__name__}."
            )
        checks.known(f"setting in {where}", settings, TUNABLE)
        if missing := [name for name in PRIORS if name not in settings]:
            raise ValueError(f"{where}: {', '.join(missing)} is missing.")
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(
                    f"{where}: {name} must be a number, got {value!r}. Is there a typing "
                    "error, as in 1e-3 for 1.0e-3?"
                )
        try:
            soft_settings(settings, profile)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error


def soft_settings(found: Mapping[str, Any], profile: str, **others: Any) -> Settings:
    """Return the settings of a member for a profile.

    Arguments:
        found: p_min, p_max and any others of `Settings`, for
            instance from `tuned`.
        profile: A key of `GAMMA`.
        others: What to set otherwise, as for `Settings`; None: as
            found.
    Raises: ValueError: the profile is unknown, or a value is
        missing or out of range.
    """
    given: dict[str, Any] = {k: v for k, v in found.items() if k not in PRIORS}
    given |= {name: value for name, value in others.items() if value is not None}
    return Settings(profile=soft_profile(found, profile), **given)


def soft_profile(found: Mapping[str, float], profile: str) -> Profile:
    """Return a profile with the weight `W_MAX` and the priors that were found.

    Arguments:
        found: p_min and p_max; others are not looked at.
        profile: A key of `GAMMA`.
    Raises: ValueError: the profile is unknown, or a prior is
        missing or out of range.
    """
    checks.known("profile", [profile], tuple(GAMMA))
    if missing := [name for name in PRIORS if name not in found]:
        raise ValueError(
            f"{', '.join(missing)} of the {profile} profile is missing: expected p_min and "
            f"p_max, got {', '.join(found) or 'nothing'}."
        )
    return Profile(GAMMA[profile], W_MAX, found["p_min"], found["p_max"])


def hard(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members of the study of hard constraints.

    For rankings they serve as the constant profile of `soft`, too.

    Arguments:
        features: Names of the K actionable features.
        seeds: One a member, at least one.
        n_epochs: Of training; None: as the search found.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; see `tuned`.
    """
    _check_seeds(seeds)
    own = soft_settings(tuned("ranking")["constant"], "constant", n_epochs=n_epochs)
    sampler = soft_samplers(features, "ranking")[MIXED]
    return [sampler] * len(seeds), [own] * len(seeds), list(seeds)


def soft(
    elicitation: str,
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> Members:
    """Return the members of the profiles times all seeds, profile by profile.

    The constant profile is among them for scores. For rankings its
    members would be those of `hard`, which are not repeated.

    Arguments:
        elicitation: "ranking" or "score".
        features: Names of the K actionable features.
        seeds: One a member of each profile, at least one.
        n_epochs: Of training; None: as the search found.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; the elicitation is
        unknown; see `tuned`.
    """
    _check_seeds(seeds)
    found = tuned(elicitation)
    profiles = [name for name in GAMMA if (elicitation, name) != ("ranking", "constant")]
    settings = [
        soft_settings(found[profile], profile, n_epochs=n_epochs)
        for profile in profiles
        for _ in seeds
    ]
    sampler = soft_samplers(features, elicitation)[MIXED]
    return [sampler] * len(settings), settings, list(seeds) * len(profiles)


def biased(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return members that in training see the rankings of `rco` only.

    They have the settings of the study of hard constraints.

    Arguments:
        features: Names of the K actionable features.
        seeds: One a member, at least one.
        n_epochs: Of training; None: as the search found.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds, or `rco` leans to
        features that are not there.
    """
    _, settings, seeds = hard(features, seeds, n_epochs)
    samplers: list[Sampler] = [RankingSampler(tuple(features), "rco")] * len(seeds)
    return samplers, settings, seeds


def carma(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members of the baseline without individuals.

    Everything can be done, and weights and priors are the
    population's. First come the members for a population without
    common preferences, with the settings found for the constant
    profile, then those for one that leans to `rco`, with the settings
    found for the linear one. There is no plausibility and no
    feasibility in their loss.

    Arguments:
        features: Names of the four actionable features.
        seeds: One a member of each population, at least one.
        n_epochs: Of training; None: as the search found.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds, not four features; see
        `tuned`.
    Source: CARMA, doi 10.1145/3630106.3659003.
    """
    _check_seeds(seeds)
    n_scores = len(EVERYONE["uniform"])
    if len(features) != n_scores:
        raise ValueError(
            f"CARMA's common preferences are about {n_scores} actionable features, got "
            f"{len(features)} ({', '.join(features)}). Give `stacks.EVERYONE` as many."
        )
    found = tuned("ranking")
    profile_of = {"uniform": "constant", "rco": "linear"}
    samplers: list[Sampler] = []
    settings: list[Settings] = []
    for population, profile in profile_of.items():
        own = soft_settings(
            found[profile], profile, n_epochs=n_epochs, plausibility=0.0, feasibility=0.0
        )
        samplers += [TableSampler(everyone(population, 1))] * len(seeds)
        settings += [own] * len(seeds)
    return samplers, settings, list(seeds) * len(EVERYONE)


def printed(
    search: str,
    features: Sequence[str],
    seeds: Sequence[int],
    n_epochs: int | None = None,
) -> Members:
    """Return the members as the paper prints them, profile by profile.

    Arguments:
        search: A key of `readings.PRINTED`.
        features: Names of the K actionable features.
        seeds: One a member of the constant and the linear profile, at
            least one; the other profiles have the first four.
        n_epochs: Of training; None: as printed.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; see `readings.as_printed`.
    """
    profiles = {
        name: (readings.as_printed(search, name), seeds[: FEWER_SEEDS.get(name)])
        for name in SEARCHES[search]
    }
    return _members(search, features, profiles, n_epochs)


def printed_biased(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return members as printed that in training see the rankings of `rco` only.

    Arguments, Returns and Raises: as for `biased`.
    """
    profiles = {"constant": (readings.as_printed("ranking", "constant"), seeds)}
    _, settings, every = _members("ranking", features, profiles, n_epochs)
    return [RankingSampler(tuple(features), "rco")] * len(settings), settings, every


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
    profiles = {
        name: (readings.chosen(search, name), seeds[:FEW]) for name in readings.CHOSEN
    }
    return _members(search, features, profiles, n_epochs)


def _members(
    search: str,
    features: Sequence[str],
    profiles: Mapping[str, tuple[Settings, Sequence[int]]],
    n_epochs: int | None,
) -> Members:
    """Return members of some profiles: each profile's settings with each of its seeds."""
    settings: list[Settings] = []
    every: list[int] = []
    for own, seeds in profiles.values():
        _check_seeds(seeds)
        own = own if n_epochs is None else replace(own, n_epochs=n_epochs)
        settings += [own] * len(seeds)
        every += seeds
    sampler = soft_samplers(features, ASKED[search])[MIXED]
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


def transfer(
    features: Sequence[str], seeds: Sequence[int], n_epochs: int | None = None
) -> Members:
    """Return the members for Give Me Some Credit.

    First come those of the constant profile, then those of the
    linear one, with the settings of a search of their own, and those
    of `GMSC`.

    Arguments:
        features: Names of the K actionable features.
        seeds: One a member of each profile, at least one.
        n_epochs: Of training; None: as the search found.
    Returns: Samplers, settings and seeds, one of each a member.
    Raises: ValueError: there are no seeds; see `tuned`.
    """
    _check_seeds(seeds)
    found = tuned("transfer")
    settings = [
        soft_settings(found[profile], profile, n_epochs=n_epochs, **GMSC)
        for profile in SEARCHES["transfer"]
        for _ in seeds
    ]
    samplers: list[Sampler] = [RankingSampler(tuple(features))] * len(settings)
    return samplers, settings, list(seeds) * len(SEARCHES["transfer"])


STACKS: dict[str, Stack] = {
    "loan_icarma_ranking": partial(soft, "ranking"),
    "loan_icarma_score": partial(soft, "score"),
    "loan_icarma_rco": biased,
    "loan_carma": carma,
}
# those of the bank and the settings that the calibration chose
CALIBRATED: dict[str, Stack] = {
    "loan_printed_ranking": partial(printed, "ranking"),
    "loan_printed_score": partial(printed, "score"),
    "loan_printed_rco": printed_biased,
    "loan_chosen_ranking": partial(chosen, "ranking"),
    "loan_chosen_score": partial(chosen, "score"),
}
TRANSFER: dict[str, Stack] = {
    "gmsc_printed": partial(printed, "transfer"),
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


def _check_seeds(seeds: Sequence[int]) -> None:
    """Raise ValueError unless there is a seed."""
    if not len(seeds):
        raise ValueError("Expected at least one seed, one a member, got none.")
