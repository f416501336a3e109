"""Settings as printed: what is lost is read from what the calibration chose."""

from dataclasses import asdict, replace

import pytest
import torch
import yaml

from lib.method.icarma import Settings
from lib.method.preferences import CONSTANT, LINEAR, PROFILES, Preferences, Profile
from lib.paper import readings
from lib.paper.readings import Reading


def test_defaults_of_the_method_are_as_printed():
    assert Settings() == readings.as_printed("ranking", "linear")
    assert readings.profile("linear") == LINEAR
    assert {name: readings.profile(name) for name in readings.POWERS} == PROFILES


def test_a_reading_completes_what_is_printed():
    reading = Reading(
        *("any", "sum", 0.9, 0.01, 32, "constant", 5e-4, "inverse"),
        *("half", "mean", "nothing"),
    )
    settings = reading.settings("ranking", "linear")
    assert settings.plausibility == 0.225 * 128
    assert settings.mask == 1.5 / 4 and settings.n_epochs == 450
    assert settings.hinge == "lagrangian" and settings.plausibility_form == "nll"
    assert settings.margin_on == "probability" and not settings.cosine_schedule
    assert settings.prior_form == "weight" and settings.p_min == 0.01
    constant = reading.settings("score", "constant")
    assert constant.prior_form == "difficulty" and constant.n_epochs == 900
    assert constant.p_min == constant.p_max == 0.5
    by_sum = replace(reading, mask="sum", constant_prior="p_max")
    constant = by_sum.settings("score", "constant")
    assert constant.p_min == constant.p_max == 0.9 and constant.mask == 0.9


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(readings, "PARAMS", tmp_path)
    return tmp_path


def test_as_printed_reads_what_was_chosen(folder):
    reading = Reading(
        *("any", "mean", 0.9, 0.01, 32, "falling", 0.0, "as w"),
        *("half", "sum", "nothing"),
    )
    entries = vars(reading) | {"shape": "mirrored", "gamma": 1.5, "w_max": 4.0}
    entries["w_max_scores"] = 3.0
    (folder / "calibrated.yaml").write_text(yaml.safe_dump(entries))
    assert readings.profile("concave") == Profile(1 / 1.5, 4.0, "mirrored")
    assert readings.profile("convex", "score") == Profile(1.5, 3.0, "mirrored")
    assert readings.profile("constant") == CONSTANT
    sees = yaml.safe_dump(entries | {"constant_sees": "scores"})
    (folder / "calibrated.yaml").write_text(sees)
    scores = torch.tensor([[1, 2, 3]])
    seeing = Preferences(scores, profile=readings.profile("constant"))
    assert seeing.weight.tolist() == [[1, 1, 1]]  # nothing costs more
    assert seeing.difficulty.tolist() == [[0, 0.5, 1]]
    (folder / "calibrated.yaml").write_text(yaml.safe_dump(entries))
    concave = readings.as_printed("ranking", "concave")
    assert concave == reading.settings("ranking", "concave") and concave.width == 32
    with pytest.raises(ValueError, match="steep"):
        readings.as_printed("ranking", "steep")


def test_as_chosen_is_read_from_its_file(folder):
    path = folder / "chosen_score.yaml"
    settings = Settings(hinge=2.5)
    entries = {name: asdict(settings) for name in readings.CHOSEN}
    path.write_text(yaml.safe_dump(entries))
    assert readings.chosen("score", "linear") == settings
    entries["linear"]["tau"] = -0.3
    path.write_text(yaml.safe_dump(entries))
    with pytest.raises(ValueError, match="tau must be above zero"):
        readings.chosen("score", "linear")
    with pytest.raises(ValueError, match="concave"):
        readings.chosen("score", "concave")
