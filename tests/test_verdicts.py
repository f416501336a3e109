"""The paper's claims: asked of people who behave as its tables say, ours is its verdict."""

import numpy as np
import pandas as pd
import pytest

from lib.paper import claims, designs, verdicts

N = 20_000  # people, so that intervals are narrow


def people_of(number: int, dataset: str = "Loan") -> pd.DataFrame:
    """Rows of people with the shares that a table of the paper prints."""
    tables = []
    for row in claims.published(number, dataset).to_dict("records"):
        i = np.arange(N)
        is_search = row["method"] == "oracle"
        if row["method"] not in ("oracle", "iCARMA"):
            continue
        valid = i < round(row["validity"] * N)
        has_recourse = valid if is_search else np.ones(N, dtype=bool)
        n_told = has_recourse.sum()
        rest = {
            "plausible": has_recourse & (i < round(row["plausibility"] * n_told)),
            "hard_action": has_recourse & (i < round(row.get("hap", 0) * n_told)),
            "cost": np.where(valid, 0.1, 0.0),
            "log_p": np.where(i % 2, -8.0, -9.0),
            "log_p_cf": np.where(i % 2, -8.0, -9.0),
        }
        of_whom = {"setting": row["setting"], "method": row["method"], "member": 0}
        of_whom |= {"networks": "" if is_search else "as printed", "seed": 0}
        of_whom |= {"reported": True, "n_acted": 1, "outside": False}
        rows = pd.DataFrame(
            {"valid": valid, "has_recourse": has_recourse, "person": i} | rest
        )
        tables.append(rows.assign(**of_whom, joint=rows.valid & rows.plausible))
    return pd.concat(tables, ignore_index=True)


@pytest.fixture(scope="module")
def claims_by_section() -> dict[str, pd.DataFrame]:
    """The parts of all claims, asked of such people."""
    five = people_of(5)
    trained = claims.published(5).query("method == 'iCARMA (rco-trained)'")
    usual = five[five.networks == "as printed"]
    of_rco = []
    for row in trained.to_dict("records"):
        rows = usual[usual.setting == row["setting"]].copy()
        i = rows.person.to_numpy()
        rows["valid"], rows["plausible"] = (
            i < round(row[name] * N) for name in ("validity", "plausibility")
        )
        of_rco.append(rows)
    every = {
        "hard": verdicts.hard(people_of(1)),
        "soft": verdicts.soft({"ranking": people_of(2), "score": people_of(3)}),
        "order": verdicts.order(five, pd.concat(of_rco)),
        "ablation": verdicts.ablation(people_of(6), designs.DISTRIBUTIONS),
        "transfer": verdicts.transfer({n: gmsc_people(n) for n in (1, 2)}),
    }
    return {name: pd.DataFrame(verdict.parts) for name, verdict in every.items()}


def gmsc_people(number: int) -> pd.DataFrame:
    """Rows of Give Me Some Credit; settings that are not printed are as all four."""
    rows = people_of(number, "GMSC")
    if number == 2:
        return rows
    four = rows[rows.setting == "all (4)"]
    more = [four.assign(setting=k) for k in ("3", "2", "1") if k not in set(rows.setting)]
    return pd.concat([rows, *more], ignore_index=True)


@pytest.mark.parametrize("name", ["hard", "soft", "order", "ablation", "transfer"])
def test_the_papers_people_come_to_the_papers_verdicts(claims_by_section, name):
    asked = claims_by_section[name]
    asked = asked[~asked["in the paper"].isin([claims.CANNOT, claims.TIE])]
    assert len(asked) >= {"hard": 25, "transfer": 4}.get(name, 8)
    clear = asked[asked.here != "undecided"]
    assert len(clear) >= 0.9 * len(asked)
    differ = clear[clear.here != clear["in the paper"]]
    assert differ.empty, differ[["claim", "what", "paper", "ours"]].to_string()
    assert (asked.ours - asked.paper).abs().max() < 3e-4


def test_every_section_is_asked(claims_by_section):
    sections = {section for rows in claims_by_section.values() for section in rows.section}
    assert sections == {"5.3", "5.4", "D.1", "D.2", "D.3"}
    n_claims = sum(rows.claim.nunique() for rows in claims_by_section.values())
    assert n_claims >= 30


def test_people_who_end_where_nobody_is_are_counted():
    """A tenth fall far with one feature, nobody with more: they spread, at that step."""
    people = people_of(1)
    falls = (people.setting == "1") & (people.person < N // 10)
    people.loc[falls, "log_p_cf"] = -30.0
    rows = pd.DataFrame(verdicts.hard(people).parts)
    spread = rows[rows.claim == "and spread to low density"].set_index("what")
    assert spread.here["2 to 1"] == "holds" and spread.ours["2 to 1"] == pytest.approx(0.1)
    assert spread.ours["3 to 2"] == 0
