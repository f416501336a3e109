"""The stacks of networks that the studies of soft preferences and of transfer need: who is in them, trained on what.

They are trained as jobs of the batch (`workflow/train.py`), side by side with the notebooks.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
import yaml

from lib.base import checks
from lib.base.files import PARAMS
from lib.preferences.samplers import RankingSampler, Sampler, ScoreSampler, TableSampler
from lib.preferences.scores import GAMMA, Preferences, Profile
from lib.solvers.icarma import ICarma, Settings

ELICITATIONS = ("ranking", "score")
SOFT, MIXED = (
    "soft",
    "hard (random) + soft",
)  # everything can be done; each person can't do some things

# the weight of the hardest feature that can still be done: where the oracle's hap comes nearest to the paper's (notebook 05)
W_MAX = 7.0

# what everyone is told to be in CARMA: no feature is harder than another, or (rounded means under `rco`) two are
EVERYONE = {"uniform": (1, 1, 1, 1), "rco": (3, 2, 3, 2)}

# Give Me Some Credit: how the classifier and the flow are fitted, and what networks do otherwise than for Loan. A margin
# keeps advice valid when consequences are made whole; chosen on the validation split.
GMSC_CLASSIFIER = {"weight_of_refusable": 4.5}
GMSC_FLOW = {"hidden": (32,), "n_bins": 16}
GMSC = {"batch_size": 512, "learning_rate": 5e-3, "margin": 0.1, "tau": 1.0}
GMSC_LINEAR_MASK = 0.8

Members = tuple[list[Sampler], list[Settings], list[int]]
Stack = Callable[
    [Sequence[str], Sequence[int], int], Members
]  # of the actionable features, the seeds, the epochs


def soft_samplers(features: Sequence[str], elicitation: str) -> dict[str, Sampler]:
    """The two settings of tables 2 (elicitation "ranking") and 3 ("score"); networks are trained on the mixed one."""
    checks.known("elicitation", [elicitation], ELICITATIONS)
    if elicitation == "ranking":
        return {
            SOFT: RankingSampler(features, n_actionable=len(features)),
            MIXED: RankingSampler(features),
        }
    return {
        SOFT: ScoreSampler.uniform(len(features), False),
        MIXED: ScoreSampler.uniform(len(features), True),
    }


def tuned(elicitation: str) -> dict[str, dict[str, float]]:
    """What the search for settings found for each profile but the constant one: params/tuned_<elicitation>.yaml."""
    checks.known("elicitation", [elicitation], ELICITATIONS)
    path = PARAMS / f"tuned_{elicitation}.yaml"
    if not path.is_file():
        raise ValueError(
            f"Expected tuned settings at {path}, found none. Restore the file, or `make tune`, which takes about an hour."
        )
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def soft_settings(found: Mapping[str, float], profile: str, **shared: float) -> Settings:
    """Settings for a profile: p_min, p_max and any others of `Settings` as found; `shared` as in `Settings`."""
    others = {
        name: value for name, value in found.items() if name not in ("p_min", "p_max")
    }
    return Settings(profile=soft_profile(found, profile), **others, **shared)


def soft_profile(found: Mapping[str, float], profile: str) -> Profile:
    return Profile(GAMMA[profile], W_MAX, found["p_min"], found["p_max"])


def soft(
    elicitation: str, features: Sequence[str], seeds: Sequence[int], n_epochs: int
) -> Members:
    """All four profiles times all seeds; the constant profile has the settings of the study of hard constraints."""
    found = tuned(elicitation)
    settings = [
        soft_settings(found[profile], profile, n_epochs=n_epochs)
        if profile in found
        else Settings(n_epochs=n_epochs)
        for profile in GAMMA
        for _ in seeds
    ]
    sampler = soft_samplers(features, elicitation)[MIXED]
    return [sampler] * len(settings), settings, list(seeds) * len(GAMMA)


def biased(features: Sequence[str], seeds: Sequence[int], n_epochs: int) -> Members:
    """Networks that in training see the rankings of `rco` only, with the settings of the study of hard constraints."""
    return (
        [RankingSampler(features, "rco")] * len(seeds),
        [Settings(n_epochs=n_epochs)] * len(seeds),
        list(seeds),
    )


def carma(features: Sequence[str], seeds: Sequence[int], n_epochs: int) -> Members:
    """The baseline without individuals: everything can be done, weights and priors are the population's.

    First the members for a population without common preferences, then those for one that leans to `rco` (with the
    weights, the priors and the mask term that were found for the linear profile). No plausibility, no feasibility.
    """
    found = tuned("ranking")["linear"]
    without = {"plausibility": 0.0, "feasibility": 0.0, "n_epochs": n_epochs}
    own = {
        "uniform": Settings(**without),
        "rco": Settings(
            profile=soft_profile(found, "linear"), mask=found["mask"], **without
        ),
    }
    samplers, settings = [], []
    for population in EVERYONE:
        samplers += [TableSampler(everyone(population, 1))] * len(seeds)
        settings += [own[population]] * len(seeds)
    return samplers, settings, list(seeds) * 2


def everyone(population: str, n_people: int) -> Preferences:
    """The same preferences for all people, those of a population as a whole: "uniform" or "rco"."""
    return Preferences(torch.tensor([EVERYONE[population]]).expand(n_people, -1))


def transfer(features: Sequence[str], seeds: Sequence[int], n_epochs: int) -> Members:
    """Networks for Give Me Some Credit: those of the constant profile, then those of the linear one with the priors of Loan."""
    profile = soft_profile(tuned("ranking")["linear"], "linear")
    constant, linear = (
        Settings(n_epochs=n_epochs, **GMSC),
        Settings(profile, mask=GMSC_LINEAR_MASK, n_epochs=n_epochs, **GMSC),
    )
    settings = [constant] * len(seeds) + [linear] * len(seeds)
    return [RankingSampler(features)] * len(settings), settings, list(seeds) * 2


STACKS: dict[str, Stack] = {
    "loan_icarma_ranking": lambda *given: soft("ranking", *given),
    "loan_icarma_score": lambda *given: soft("score", *given),
    "loan_icarma_rco": biased,
    "loan_carma": carma,
}


def of_profile(stack: ICarma, profile: str) -> ICarma:
    """The members of a stack that were trained for one profile."""
    return stack.select(
        [i for i, own in enumerate(stack.settings) if own.profile.gamma == GAMMA[profile]]
    )
