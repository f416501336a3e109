"""Settings and profiles of the paper's networks as printed, and as our own rule chose.

What the text prints stands in `PRINTED`. What it has lost was chosen
by `workflow/calibrate.py` and is read from params/calibrated.yaml; what our
own rule chose (`workflow/choose.py`) from params/chosen_*.yaml.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from lib import checks, io
from lib.io import PARAMS
from lib.method.grid import Grid
from lib.method.icarma import Settings
from lib.method.preferences import CONSTANT, Profile
from lib.method.problem import Problem

# the profiles, and the power of the calibrated gamma that is the gamma of each
POWERS = {"constant": 0, "concave": -1, "linear": 0, "convex": 1}
CHOSEN = ("constant", "linear")  # the profiles of our own rule
N_ACTIONABLE = 4  # features, of Loan and of Give Me Some Credit
# what was chosen as the weight of the hardest feature, by how people are asked
W_MAX = {"ranking": "w_max", "score": "w_max_scores"}
# the constant profile, by what networks see of the scores
CONSTANT_SEES = {"nothing": CONSTANT, "scores": Profile(gamma=1.0, w_max=1.0)}

# the paper's settings, as printed in C.2.4 and C.3.3 of arXiv:2604.08030, by how people are
# asked; "transfer" is Give Me Some Credit's
_PRINTED: dict[str, Sequence[Any]] = {
    "batch_size": (128, 128, 256),
    "n_epochs": (450, 900, 400),
    "learning_rate": (5e-3, 1e-3, 1e-3),
    "margin": (0.013, 0.004, 0.013),
    "tau": (0.36, 0.49, 0.33),
    "cost": (1.1, 1.3, 1.1),
    "mask": (1.5, 0.9, 1.1),
    "plausibility": (0.225, 0.125, 0.04),
    "feasibility": (0.1, 0.1, 0.09),
}
PRINTED = pd.DataFrame(_PRINTED, index=["ranking", "score", "transfer"]).to_dict("index")


@dataclass(frozen=True)
class Reading:
    """Hold one way to read what the text has lost of the networks.

    Arguments:
        bank: Name of the classifier.
        plausibility: "mean" or "sum" of -log p over the batch.
        p_max, p_min: Prior probability of acting on the easiest and
            on the hardest feature.
        width: Of the networks' hidden layers.
        learning_rate, weight_decay: Of Adam; the rate is "constant"
            or "falling".
        prior: How it follows from w: "inverse" or "as w".
        constant_prior: Of all features under the constant profile:
            "half", for which the KL divergence is an entropy, as in
            CARMA's default loss (A.5), or "p_max".
        mask: "sum" or "mean" of the KL divergence over features.
        constant_sees: What networks are conditioned on under the
            constant profile, beside what can be done: "nothing" or
            "scores".
    """

    bank: str
    plausibility: str
    p_max: float
    p_min: float
    width: int
    learning_rate: str
    weight_decay: float
    prior: str
    constant_prior: str
    mask: str
    constant_sees: str

    def __post_init__(self) -> None:
        # in a table with gaps it is a fraction
        object.__setattr__(self, "width", int(self.width))

    def settings(self, search: str, profile: str) -> Settings:
        """Return the printed settings, completed by this reading.

        Under the constant profile no feature is harder than another,
        and all have the same prior.

        Arguments:
            search: A key of `PRINTED`.
            profile: A key of `POWERS`.
        """
        printed = dict(PRINTED[search])
        if self.plausibility == "sum":
            printed["plausibility"] *= printed["batch_size"]
        if self.mask == "mean":
            printed["mask"] /= N_ACTIONABLE
        is_constant = profile == "constant"
        p_max = 0.5 if is_constant and self.constant_prior == "half" else self.p_max
        is_inverse = self.prior == "inverse" and not is_constant
        return Settings(
            hinge="lagrangian",
            plausibility_form="nll",
            margin_on="probability",
            p_max=p_max,
            p_min=p_max if is_constant else self.p_min,
            prior_form="weight" if is_inverse else "difficulty",
            weight_decay=self.weight_decay,
            cosine_schedule=self.learning_rate == "falling",
            width=self.width,
            **printed,
        )


def calibrated() -> dict[str, Any]:
    """Return what `workflow/calibrate.py` chose: the contents of params/calibrated.yaml.

    Example:
        >>> calibrated()["shape"]
        'slope'
    """
    return io.load_yaml(PARAMS / "calibrated.yaml")


def half_width() -> float | None:
    """Return the half-width of the exact search's grid, as for `Grid`, that was chosen."""
    entries = calibrated()
    half_width: float | None = entries["grids"][entries["bank"]]
    return half_width


def oracle(problem: Problem, **how: Any) -> Grid:
    """Return the paper's oracle: the exact search, around a person's own values.

    Arguments:
        problem: Of the Loan population.
        how: As for `Grid`, but for half_width.
    Source: appendix C.2.3 of arXiv:2604.08030; the half-width is lost.
    """
    return Grid(problem, half_width=half_width(), **how)


def profile(name: str, elicitation: str = "ranking") -> Profile:
    """Return a profile of the paper, completed by what was chosen for the lost.

    Arguments:
        name: A key of `POWERS`.
        elicitation: "ranking" or "score"; the weight of what is
            hardest was chosen for each.
    Raises: ValueError: the profile is unknown.
    Example:
        >>> profile("convex")
        Profile(gamma=1.5, w_max=7.0, curve='slope')
    """
    checks.one_of("profile", [name], tuple(POWERS))
    entries = calibrated()
    if name == "constant":
        return CONSTANT_SEES[entries["constant_sees"]]
    w_max = entries[W_MAX[elicitation]]
    return Profile(entries["gamma"] ** POWERS[name], w_max, entries["shape"])


def as_printed(search: str, profile: str) -> Settings:
    """Return the paper's settings as printed, completed by what was chosen for the lost.

    Arguments:
        search: A key of `PRINTED`.
        profile: A key of `POWERS`.
    Raises: ValueError: the search or the profile is unknown.
    Example:
        >>> as_printed("ranking", "linear") == Settings()
        True
    """
    checks.one_of("search", [search], tuple(PRINTED))
    checks.one_of("profile", [profile], tuple(POWERS))
    entries = calibrated()
    reading = Reading(**{field.name: entries[field.name] for field in fields(Reading)})
    return reading.settings(search, profile)


def chosen(search: str, profile: str) -> Settings:
    """Return the settings that our own rule chose, of params/chosen_<search>.yaml.

    Arguments:
        search: A key of `PRINTED`.
        profile: A key of `CHOSEN`.
    Raises: ValueError: the search or the profile is unknown.
    Example:
        >>> chosen("ranking", "constant").margin_on
        'log_odds'
    """
    checks.one_of("search", [search], tuple(PRINTED))
    checks.one_of("profile", [profile], CHOSEN)
    return Settings(**io.load_yaml(PARAMS / f"chosen_{search}.yaml")[profile])
