"""Verdicts on claims, on intervals made by hand."""

import numpy as np
import pytest

from lib.paper.claims import Estimate, Verdicts


def at(value: float, error: float = 0.05) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, se_people=error, se_networks=0.01)


def asked() -> Verdicts:
    verdicts = Verdicts()
    verdicts.ask("rises", "linear", at(0.5), above=0, paper=0.2)
    verdicts.ask("rises", "convex", at(0.05), above=0, paper=-0.2)
    verdicts.ask("rises", "concave", at(-0.5), above=0)
    verdicts.ask("dearer", "k = 1", at(1.5), above=1)
    return verdicts


def test_the_whole_interval_decides_of_ours_and_one_number_of_the_paper():
    table = asked().of("rises")
    assert table.here.to_dict() == {
        "linear": "holds",
        "convex": "undecided",
        "concave": "does not hold",
    }
    of_paper = ["holds", "does not hold", "cannot be asked"]
    assert table["in the paper"].tolist() == of_paper
    assert table.loc["linear", "members"] == "0.400 to 0.600"


def test_a_number_at_the_bound_is_a_tie():
    """0.991 less 0.991 is no rise."""
    verdicts = Verdicts()
    verdicts.ask("rises", "linear", at(0.5), above=0, paper=0.991 - 0.991)
    verdicts.ask("rises", "convex", at(0.5), above=0, paper=0.1)
    assert verdicts.of("rises")["in the paper"].tolist() == ["a tie", "holds"]
    assert verdicts.overall().loc["rises", "in the paper"] == "in part (holds 1, a tie 1)"


def test_what_was_not_asked_of_the_paper_has_no_columns_for_it():
    verdicts = asked()
    assert "paper" not in verdicts.of("dearer") and "paper" in verdicts.of("rises")
    search = Estimate(0.5, 0.5, 0.5, se_people=0.1)  # without networks
    verdicts.ask("is possible", "search", search, above=0)
    assert "members" not in verdicts.of("is possible")


def test_the_parts_of_two_claims_stand_in_one_table():
    both = asked().of("dearer", "rises")
    assert both.index.tolist() == ["linear", "convex", "concave", "k = 1"]
    assert both.loc["k = 1", "in the paper"] == "cannot be asked"
    with pytest.raises(ValueError, match=r"Unknown claim 'falls'"):
        asked().of("rises", "falls")


def test_one_verdict_a_claim_counts_its_parts():
    overall = asked().overall()
    assert overall.loc["dearer"].tolist() == ["cannot be asked", "holds (1 of 1)"]
    said = "in part (holds 1, does not hold 1, undecided 1)"
    assert overall.loc["rises", "here"] == said
    assert overall.loc["rises", "in the paper"] == "in part (holds 1, does not hold 1)"


def test_a_number_that_is_not_there_decides_nothing():
    verdicts = Verdicts()
    verdicts.ask("rises", "nobody", Estimate(np.nan, np.nan, np.nan, np.nan), above=0)
    assert verdicts.of("rises").here.tolist() == ["undecided"]


def test_a_part_is_asked_once_and_a_claim_is_known():
    verdicts = asked()
    with pytest.raises(ValueError, match=r"'rises' has a part 'linear' already"):
        verdicts.ask("rises", "linear", at(0.5), above=0)
    with pytest.raises(ValueError, match=r"Unknown claim 'rise'.*Did you mean 'rises'"):
        verdicts.of("rise")
    with pytest.raises(ValueError, match=r"Unknown claim 'rises'"):
        Verdicts().of("rises")
