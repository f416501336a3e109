"""The paper's claims: the evaluator by hand, the csv, and the paper's own numbers."""

import numpy as np
import pandas as pd
import pytest

from lib.paper import claims, tables
from lib.paper.estimates import Estimate

N = 5_000  # people who behave as a table of the paper says
HEADER = "section,claim,words,who,part,metric,how,after,before,times,low,high,mark\n"


def people_of(table: str) -> pd.DataFrame:
    """Rows of people with the shares that a table of the paper prints."""
    frames = []
    for row in tables.published(*claims.TABLES[table]).to_dict("records"):
        i, is_search = np.arange(N), row["method"] == "oracle"
        valid = i < round(row["validity"] * N)
        answered = valid if is_search else i < N
        n_answered = answered.sum()
        people = {
            "person": i,
            "valid": valid,
            "has_recourse": answered,
            "plausible": answered & (i < round(row["plausibility"] * n_answered)),
            "hard_action": answered & (i < round(row.get("hap", 0.0) * n_answered)),
            "setting": row["setting"],
            "method": row["method"],
            "networks": "as printed" if row["method"] == "iCARMA" else "",
            "member": 0,
        }
        frames.append(pd.DataFrame(people))
    rows = pd.concat(frames, ignore_index=True)
    rows["joint"] = rows.valid & rows.plausible
    rows["cost"] = rows["cost_l2"] = rows["cost_l1"] = 0.1 * rows.valid
    rows["log_p"] = rows["log_p_cf"] = np.where(rows.person % 2, -8.0, -9.0)
    return rows


@pytest.fixture(scope="module")
def people() -> dict[str, pd.DataFrame]:
    return {table: people_of(table) for table in claims.TABLES}


@pytest.fixture(scope="module")
def asked(people) -> pd.DataFrame:
    return claims.ask(people)


def test_people_as_the_paper_says_come_to_the_papers_verdicts(asked):
    clear = asked[asked["in the paper"].isin(["holds", "does not hold"])]
    assert (clear.ours - clear.paper).abs().max() < 2e-3
    assert len(clear) > 150
    clear = clear[clear.here != "undecided"]
    differ = clear[clear.here != clear["in the paper"]]
    assert differ.empty, differ[["claim", "part", "paper", "ours"]].to_string()


@pytest.mark.parametrize(
    ("section", "claim", "who", "of_paper"),
    [
        # all of 0.999 to 0.995 to 0.991 to 0.836, and of 0.959 to 0.796 to 0.539 to 0.22
        ("5.3", "validity and plausibility fall with fewer features", "search", "holds"),
        # 0.539 lies between 0.4 and 0.6 times 0.959
        ("5.3", "with two, the oracle's validity is nearly half", "search", "holds"),
        # by rankings 0.002, 0.099, 0.015 soft and 0.011, 0.068, 0.011 mixed; by scores
        # 0.013, 0.213, 0.047 and 0.026, 0.175, 0.092
        ("5.4", "scores make profiles more pronounced", "as printed", "holds"),
        # 0.876, 0.994, 0.923, 0.997, 0.838, 0.997 against 0.85
        ("D.2", "without the demand, validity is very high", "search", "5 of 6 hold"),
    ],
)
def test_the_papers_own_numbers_by_hand(asked, section, claim, who, of_paper):
    verdicts = claims.overall(asked).loc[(section, claim)]
    assert verdicts["the paper's numbers"] == of_paper
    assert verdicts[who] != ""


def test_the_table_names_cells_that_there_are_and_ranges(people, asked):
    parts = claims.read()
    assert parts.metric.isin([*tables.MEAN_OF, claims.FACT]).all()
    assert parts.how.isin(["sum", "range"]).all() and (parts.low <= parts.high).all()
    assert not np.isinf(parts[["low", "high"]]).all(axis=1).any()
    assert not parts.duplicated(["section", "claim", "who", "part"]).any()
    names = ["section", "claim", "part"]
    is_fact = parts.metric == claims.FACT
    without_demand = parts.after.map(str).str.contains(claims.NO_DEMAND)
    needed = parts[~is_fact & ~without_demand][names].drop_duplicates()
    assert len(needed) == len(needed.merge(asked[names].drop_duplicates()))
    two = people["2"].query("method == 'oracle'").assign(method=claims.NO_DEMAND)
    rows = claims.ask(people | {"2": pd.concat([people["2"], two])})
    assert len(rows) == len(asked) + without_demand.sum()


# --- each kind of row, on a table of claims made by hand

SMALL = {
    "1: all (4)": [0.5, 0.5, 0.75],
    "1: 3": [0.25, 0.5, 0.75],
    "1: 2": [0.25, 0.25, 0.5],
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Put rows in the place of the paper's claims."""
    monkeypatch.setattr(claims, "CLAIMS", tmp_path / "made_up.csv")

    def write(*rows: str) -> None:
        text = "\n".join(f"5.3,falls,it falls,{row}" for row in rows)
        claims.CLAIMS.write_text(HEADER + text)

    return write


@pytest.fixture
def few() -> dict[str, pd.DataFrame]:
    """Four people, a search and two networks: shares of `SMALL`, in this order."""
    frames = [
        pd.DataFrame(
            {
                "setting": cell.removeprefix("1: "),
                "method": method,
                "networks": networks,
                "member": member,
                "person": range(4),
                "valid": np.arange(4) < 4 * share,
                "has_recourse": True,
                "cost_l1": [1.0, 2.0, 3.0, 4.0],
            }
        )
        for cell, shares in SMALL.items()
        for (method, networks, member), share in zip(
            [("oracle", "", 0), ("iCARMA", "as printed", 0), ("iCARMA", "as printed", 1)],
            shares,
            strict=True,
        )
    ]
    return {"1": pd.concat(frames)}


@pytest.mark.parametrize(
    ("row", "ours", "paper"),
    [
        ("search,a,validity,sum,1: 3,1: all (4),,,0,", [-0.25], [-0.163]),
        ("networks,a,validity,sum,1: 3,1: all (4),,,0,", [0.0], [-0.004]),
        ("both,a,validity,sum,1: 3,1: all (4),,,0,", [-0.25, 0.0], [-0.163, -0.004]),
        ("as printed,a,validity,sum,1: 3,,,,0,", [0.625], [0.995]),
        ("pruned,a,validity,sum,1: 3,,,,0,", [], []),
        ("networks,a,validity,sum,1: 3,1: oracle: 3,0.5,,0,R", [0.5], [0.597]),
        ("search,a,validity,sum,1: all (4); 1: 2,1: 3,2,,0,", [0.25], [-0.094]),
        ("search,a,validity,range,1: all (4); 1: 3; 1: 2,,,0,,", [0.25], [0.42]),
        ("networks,a,validity,range,1: 3; 1: 2,1: 2; 1: all (4),3,0,,", [-0.5], [-0.02]),
        ("search,a,cost_l1,sum,1: 3,1: all (4),,,0,", [-0.5], [np.nan]),
        ("search,a,validity,sum,1: 1,1: all (4),,,0,", [], []),
    ],
)
def test_values_by_hand(write, few, row, ours, paper):
    write(row)
    asked = claims.ask(few)
    assert len(asked) == len(ours)
    if ours:
        assert asked.ours.tolist() == pytest.approx(ours)
        assert asked.paper.tolist() == pytest.approx(paper, nan_ok=True)


def test_verdicts_of_ours_are_those_of_the_interval_and_the_papers_of_one_number(
    write, few
):
    write(
        "search,below 0.9,validity,sum,1: all (4),,,,0.9,",
        "search,below 0.959,validity,sum,1: all (4),,,,0.959,",
        "search,above 1.2,validity,sum,1: all (4),,,1.2,,",
        "search,of cost,cost_l1,sum,1: all (4),,,0,,",
        "networks,below 2,validity,sum,1: all (4),,,,2,",
    )
    asked = claims.ask(few).set_index("part")
    in_paper = ["does not hold", "a tie", "does not hold", "cannot be asked", "holds"]
    assert asked["in the paper"].tolist() == in_paper
    # one half of four people, with two standard errors of a quarter
    here = ["undecided", "undecided", "does not hold", "holds", "holds"]
    assert asked.here.tolist() == here
    assert asked.low["below 0.9"] == pytest.approx(0.0)
    assert asked.high["below 0.9"] == pytest.approx(1.0)
    assert asked.members.tolist() == ["", "", "", "", "0.500 to 0.750"]
    overall = claims.overall(asked.reset_index()).loc[("5.3", "falls")]
    assert overall.tolist() == ["1 of 4 hold", "1 of 4 hold", "holds"]


def test_parts_without_a_cell_outside_calibration_are_no_evidence(asked):
    of_both = asked[asked.who.isin(["search", "as printed"]) & (asked.section == "5.3")]
    shown = claims.unfitted(of_both)
    assert set(shown.index) < set(of_both.index)
    # all cells were used for calibration
    assert "with two, the oracle's validity is nearly half" not in set(shown.claim)
    # the search's cells were, those of the networks were not
    rows = shown[shown.claim == "validity and plausibility fall with fewer features"]
    assert set(rows.who) == {"as printed"} and set(rows.bound) == {"0 or less"}
    rows = shown[shown.claim == "the mean cost rises, and moderately"]
    assert set(rows.unit) == {"L2", "squares", "L1"}
    assert set(rows.bound) == {"0 or more", "0 or less [R]"}
    assert set(shown.unit) == {"", "L2", "squares", "L1"}


def test_facts_by_who_answers_and_with_intervals(write):
    write(
        "both,alone,fact,sum,gap now,,,0,,",
        "both,against,fact,sum,gap now,gap before,1.5,0.2,,R",
    )
    gaps = {"as printed": Estimate(0.5, 0.4, 0.6, se_people=0.1), "full search": 0.2}
    facts = {"gap now": gaps, "gap before": {"as printed": 0.1}}
    asked = claims.ask({}, facts).set_index(["part", "who"])
    assert asked.here.to_dict() == {
        ("alone", "as printed"): "holds",
        ("alone", "full search"): "holds",
        ("against", "as printed"): "undecided",
    }
    assert set(asked["in the paper"]) == {"cannot be asked"}
    assert asked.members.tolist() == ["0.400 to 0.600", "", ""]
    against = asked.loc[("against", "as printed")]
    assert [against.low, against.ours, against.high] == pytest.approx([0.15, 0.35, 0.55])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"people": {"4": pd.DataFrame()}}, "Unknown table '4'"),
        ({"people": {}, "facts": {"speed": {}}}, "Unknown fact 'speed'"),
        ({"people": {}, "section": "5.2"}, "Unknown section '5.2'"),
    ],
)
def test_what_cannot_be_asked_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        claims.ask(**wrong)
