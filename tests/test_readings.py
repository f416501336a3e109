"""Settings as printed: what is lost is read from what the calibration chose."""

from dataclasses import asdict

import pytest
import yaml

from lib.method.icarma import Settings
from lib.paper import readings
from lib.paper.readings import Reading


def test_a_reading_completes_what_is_printed():
    reading = Reading("any", "sum", 0.5, 0.01, 32, "constant", 5e-4, "inverse")
    own = reading.settings("ranking", 1.0, "slope", 7.0)
    assert own.plausibility == 0.225 * 128 and own.mask == 1.5 and own.n_epochs == 450
    assert own.hinge is None and own.likelihood and own.on_probability and not own.falling
    assert own.profile.inverse and own.profile.w_max == 7.0
    constant = reading.settings("score", None, "slope", 7.0)
    assert constant.profile.w_max == 1.0 and constant.n_epochs == 900


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(readings, "PARAMS", tmp_path)
    return tmp_path


def test_as_printed_reads_what_was_chosen_and_says_what_was_not(folder):
    reading = Reading("any", "mean", 0.9, 0.01, 32, "falling", 0.0, "as w")
    found = vars(reading) | {"shape": "slope", "gamma": 1.5, "w_max": 4.0}
    (folder / "calibrated.yaml").write_text(yaml.safe_dump(found))
    concave = readings.as_printed("ranking", "concave")
    assert concave == reading.settings("ranking", 1 / 1.5, "slope", 4.0)
    constant = readings.as_printed("transfer", "constant")
    assert constant.profile.gamma is None and constant.batch_size == 256
    with pytest.raises(ValueError, match="steep"):
        readings.as_printed("ranking", "steep")
    del found["width"]
    (folder / "calibrated.yaml").write_text(yaml.safe_dump(found))
    with pytest.raises(ValueError, match="not chosen width yet: `make calibrate`"):
        readings.as_printed("ranking", "linear")


def test_as_chosen_is_read_with_its_types(folder):
    path = folder / "chosen_score.yaml"
    own = Settings(hinge=None)
    as_text = {name: asdict(own) for name in readings.CHOSEN}
    path.write_text(yaml.safe_dump(as_text))
    assert readings.chosen("score", "linear") == own
    as_text["linear"]["tau"] = "0.3"
    path.write_text(yaml.safe_dump(as_text))
    with pytest.raises(ValueError, match=r"chosen_score.*tau of Settings must be float"):
        readings.chosen("score", "linear")
    with pytest.raises(ValueError, match="concave"):
        readings.chosen("score", "concave")
