"""Parameter files that can't be read say why."""

import pytest

from lib.base import checks, files


def test_entries_by_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("rates: {white: 0.9, non-white: 0.05}\n# a comment\nby: race\n")
    assert files.entries(path) == {
        "rates": {"white": 0.9, "non-white": 0.05},
        "by": "race",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_actionable: [", "mine.yaml: This is not YAML"),
        ("- 2", r"mine.yaml: It should hold lines `name: value`, it holds \[2\]"),
        ("", "it holds None"),
    ],
)
def test_what_holds_no_entries_is_named(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        files.entries(path)


def test_a_missing_file_names_its_neighbours(tmp_path):
    with pytest.raises(ValueError, match=r"found none. Those in its folder: none"):
        files.entries(tmp_path / "mine.yaml")
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text("by: race")
    with pytest.raises(ValueError, match=r"Those in its folder: a, b\."):
        files.entries(tmp_path / "mine.yaml")


def test_only_known_keys():
    checks.only({}, ["by"], "entry")
    checks.only({"by": 1}, ["by", "rates"], "entry")
    with pytest.raises(ValueError, match=r"Unknown entry 'rate'.*Did you mean 'rates'"):
        checks.only({"rate": 1}, ["by", "rates"], "entry")
    for wrong in (None, [], "by", 2):
        with pytest.raises(ValueError, match="Expected by, rates with a value each, got"):
            checks.only(wrong, ["by", "rates"], "entry")
