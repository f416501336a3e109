"""The study's printed tables, and its distances by hand."""

import numpy as np
import pytest

from lib.beyond.evaluation import tominaga


@pytest.mark.parametrize("name", tominaga.TABLES)
def test_every_table_is_there(name):
    assert len(tominaga.published(name)) > 1
    with pytest.raises(ValueError, match="Did you mean"):
        tominaga.published(name + "1")


def test_sixteen_items_have_as_many_options_as_the_table_says():
    table, options = tominaga.published("table1"), tominaga.items()
    assert [len(values) for values in options.values()] == table.n_options.tolist()
    assert list(options) == table["item"].tolist() and len(options) == 16
    assert all(len(set(values)) == len(values) for values in options.values())
    # a rule of their own for categorical items would change nothing
    unordered = ["Residential prefecture", "Type of residence", "Workplace"]
    assert all(len(options[item]) == 2 for item in unordered)


def test_the_printed_numbers_add_up():
    value = tominaga.published("numbers").set_index("what")["value"]
    people, plans, removed, analysed = (
        int(value[what])
        for what in (
            "participants",
            "recourse evaluations collected",
            "evaluations removed",
            "evaluations analysed",
        )
    )
    assert people * 5 == plans and plans - removed == analysed == 1738


def test_the_seven_complete_quotes_by_hand():
    """Five of seven agree with options less one; two are stated, and not corrected."""
    quoted = tominaga.quoted().set_index("participant")
    by_hand = {
        "P006": (1, 1 / 6),
        "P446": (1, 1 / 4),
        "P706": (2, 3 / 9 + 1 / 6),
        "P674": (1, 1 / 7),
        "P718": (1, 1 / 6),
        "P294": (1, 1 / 5),
        "P655": (1, 1 / 5),
    }
    assert list(quoted.index) == list(by_hand)
    for who, (sparsity, proximity) in by_hand.items():
        assert quoted.sparsity_by_formula[who] == sparsity, who
        assert quoted.proximity_by_formula[who] == pytest.approx(proximity), who
    assert quoted.index[~quoted.agrees].tolist() == ["P446", "P718"]
    assert quoted.proximity[["P446", "P718"]].tolist() == [0.4, 0.2]


def test_distances_of_drawn_plans():
    """A change never counts for more than one; from lowest to highest it counts for one."""
    options, rng = tominaga.items(), np.random.default_rng(0)
    for _ in range(50):
        ends = {
            item: tuple(rng.choice(values, 2).tolist()) for item, values in options.items()
        }
        sparsity, proximity = tominaga.distances(ends, options)
        assert sparsity == sum(before != after for before, after in ends.values())
        assert 0 < proximity <= sparsity
        back = {item: (after, before) for item, (before, after) in ends.items()}
        assert tominaga.distances(back, options) == (sparsity, proximity)
    farthest = {item: (values[0], values[-1]) for item, values in options.items()}
    assert tominaga.distances(farthest, options) == (16, 16.0)
    assert tominaga.distances({}, options) == (0, 0)


def test_bad_plans_are_named():
    options = tominaga.items()
    with pytest.raises(ValueError, match="Unknown item 'Salary'"):
        tominaga.distances({"Salary": ("low", "high")}, options)
    with pytest.raises(ValueError, match="Unknown option of Position 'Chief'"):
        tominaga.distances({"Position": ("Employee", "Chief")}, options)
    for text in ("Position", "Position: Employee", "Employee -> President", ""):
        with pytest.raises(
            ValueError, match=r"is no change: expected 'item: before -> after'"
        ):
            tominaga.plan(text)
