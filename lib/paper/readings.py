"""Settings of the paper's networks as printed, and those that we would choose.

What the text prints stands in `PRINTED`. What it has lost was chosen
by `make calibrate` and is read from params/calibrated.yaml; what our
own rule chose (`workflow/choose.py`) from params/chosen_*.yaml.
"""

from dataclasses import dataclass, fields
from typing import Any

from lib.base import checks, files
from lib.base.files import PARAMS
from lib.method.icarma import Settings
from lib.method.preferences import Profile

# the profiles, and by which power of the chosen gamma each of them is shaped
POWERS = {"constant": 0, "concave": -1, "linear": 0, "convex": 1}
CHOSEN = ("constant", "linear")  # the profiles of our own rule

# by how people are asked; "transfer" is Give Me Some Credit's.
# The paper's settings, as printed in C.2.4 and C.3.3 of arXiv:2604.08030
PRINTED: dict[str, dict[str, Any]] = {
    "ranking": {
        "batch_size": 128,
        "n_epochs": 450,
        "learning_rate": 5e-3,
        "margin": 0.013,
        "tau": 0.36,
        "cost": 1.1,
        "mask": 1.5,
        "plausibility": 0.225,
        "feasibility": 0.1,
    },
    "score": {
        "batch_size": 128,
        "n_epochs": 900,
        "learning_rate": 1e-3,
        "margin": 0.004,
        "tau": 0.49,
        "cost": 1.3,
        "mask": 0.9,
        "plausibility": 0.125,
        "feasibility": 0.1,
    },
    "transfer": {
        "batch_size": 256,
        "n_epochs": 400,
        "learning_rate": 1e-3,
        "margin": 0.013,
        "tau": 0.33,
        "cost": 1.1,
        "mask": 1.1,
        "plausibility": 0.04,
        "feasibility": 0.09,
    },
}


@dataclass(frozen=True)
class Reading:
    """Hold one way to read what the text has lost of the networks.

    Arguments:
        bank: Name of the bank.
        plausibility: "mean" or "sum" of -log p over the batch.
        p_max, p_min: Of the profiles.
        width: Of the networks' hidden layers.
        learning_rate, weight_decay: Of Adam; the rate is "constant"
            or "falling".
        prior: How it follows from w: "inverse" or "as w".
    """

    bank: str
    plausibility: str
    p_max: float
    p_min: float
    width: int
    learning_rate: str
    weight_decay: float
    prior: str

    def __post_init__(self) -> None:
        # in a table with gaps it is a fraction
        object.__setattr__(self, "width", int(self.width))

    def settings(
        self, elicitation: str, gamma: float | None, shape: str, w_max: float
    ) -> Settings:
        """Return the printed settings of an elicitation, completed by this reading."""
        printed = dict(PRINTED[elicitation])
        if self.plausibility == "sum":
            printed["plausibility"] *= printed["batch_size"]
        profile = Profile(p_min=self.p_max, p_max=self.p_max)  # nothing is harder
        if gamma is not None:
            inverse = self.prior == "inverse"
            profile = Profile(gamma, w_max, self.p_min, self.p_max, shape, inverse)
        return Settings(
            profile=profile,
            hinge=None,
            likelihood=True,
            on_probability=True,
            weight_decay=self.weight_decay,
            falling=self.learning_rate == "falling",
            hidden=self.width,
            **printed,
        )


def calibrated() -> dict[str, Any]:
    """Return what `make calibrate` chose: the contents of params/calibrated.yaml.

    Raises: ValueError: the file can't be read, or the calibration has
        not come to an end.
    Example:
        >>> calibrated()["shape"]
        'slope'
    """
    found = files.entries(PARAMS / "calibrated.yaml")
    needed = [own.name for own in fields(Reading)] + ["shape", "gamma", "w_max"]
    if missing := [name for name in needed if name not in found]:
        raise ValueError(
            f"The calibration has not chosen {', '.join(missing)} yet: `make calibrate` "
            "goes on where it stopped."
        )
    return found


def reach() -> float | None:
    """Return the reach of the exact search's grid, as for `Grid`, that was chosen."""
    found = calibrated()
    reach: float | None = found["grids"][found["bank"]]
    return reach


def as_printed(search: str, profile: str) -> Settings:
    """Return the paper's settings as printed, completed by what was chosen for the lost.

    Arguments:
        search: A key of `PRINTED`.
        profile: A key of `POWERS`.
    Raises: ValueError: the search or the profile is unknown; see
        `calibrated`.
    Example:
        >>> as_printed("ranking", "linear").tau
        0.36
    """
    checks.known("search", [search], tuple(PRINTED))
    checks.known("profile", [profile], tuple(POWERS))
    found = calibrated()
    reading = Reading(**{own.name: found[own.name] for own in fields(Reading)})
    gamma = None if profile == "constant" else found["gamma"] ** POWERS[profile]
    return reading.settings(search, gamma, found["shape"], found["w_max"])


def chosen(search: str, profile: str) -> Settings:
    """Return the settings that our own rule chose, of params/chosen_<search>.yaml.

    Arguments:
        search: A key of `PRINTED`.
        profile: A key of `CHOSEN`.
    Raises: ValueError: the search or the profile is unknown, or the
        file can't be read.
    Example:
        >>> chosen("ranking", "constant").profile.gamma is None
        True
    """
    checks.known("search", [search], tuple(PRINTED))
    checks.known("profile", [profile], CHOSEN)
    path = PARAMS / f"chosen_{search}.yaml"
    found = files.entries(path)
    checks.known(f"profile in {path}", found, CHOSEN)
    with files.in_file(path):
        return files.rebuilt(Settings, found[profile])
