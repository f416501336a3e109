"""Somebody's own table: each check finds its fault, and nothing raises but ValueError."""

import contextlib
import itertools
import re
import subprocess
import sys

import nbformat
import numpy as np
import own_table as own_table_program
import pandas as pd
import parameters
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from lib import io
from lib.beyond.own_table import checkup, columns, credit_union, findings
from lib.beyond.own_table.checkup import examine
from lib.beyond.own_table.findings import Finding, Unfit
from lib.io import ROOT
from lib.method import classifier, flow
from lib.method.population import Population
from lib.method.problem import Problem

KINDS = {"age": "immutable", "income": "actionable", "cards": "mutable"}
EDGES = {"income": ["age"], "cards": ["income"]}


def table(n_people=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 70, n_people)})
    frame["income"] = (30.0 * frame.age + rng.normal(0, 400, n_people)).round(2)
    frame["cards"] = rng.poisson(2, n_people)
    score = frame.income + rng.normal(0, 800, n_people)
    return frame.assign(repaid=(score > 1_300).astype(int), origin="here")


def said(frame, label="repaid", kinds=KINDS, edges=EDGES, verdict="error", **others):
    """What is found of a verdict: one text, a line a finding."""
    found = examine(frame, label, kinds, edges, **others)
    lines = [f"{one.check}: {one.found} | {one.do}" for one in found]
    return "\n".join(
        line for line, one in zip(lines, found, strict=True) if one.verdict == verdict
    )


def test_a_good_table_has_no_errors_and_a_line_for_each_check():
    assert said(table()) == ""
    checks = {one.check for one in examine(table(), "repaid", KINDS, EDGES)}
    assert checks >= {
        *("people", "columns", "text, gaps, constants", "label", "edges", "leaks"),
        *("whole numbers", "atoms", "outliers", "duplicates", "collinear pairs"),
    }


def one_value(frame, name, value):
    return frame.assign(**{name: value})


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda f: f.head(19), "people: 19 rows | At least 20"),
        (lambda f: f.head(0), "people: 0 rows"),
        (lambda f: f.drop(columns="repaid"), "there is no column 'repaid'"),
        (lambda f: f.rename(columns={"income": "incomes"}), "Did you mean incomes?"),
        (lambda f: one_value(f, "repaid", f.age % 3), "label: repaid holds 2, 0, 1"),
        (lambda f: one_value(f, "repaid", np.where(f.repaid, "yes", "no")), "Expected 1"),
        (lambda f: one_value(f, "repaid", f.repaid.where(f.age > 30)), "no gaps"),
        (lambda f: one_value(f, "repaid", 1), "people of both kinds"),
        (lambda f: one_value(f, "repaid", 0), "people of both kinds"),
        (lambda f: one_value(f, "income", f.income.astype(str)), "held as text"),
        (lambda f: one_value(f, "income", "$" + f.income.astype(str)), "held as text"),
        (lambda f: one_value(f, "income", f.origin), "2 to 30 categories as words"),
        (
            lambda f: one_value(
                f, "income", (f.income.abs() + 1_000).map("{:,.0f}".format)
            ),
            "thousands, set off by commas",
        ),
        (
            lambda f: one_value(f, "income", pd.date_range("2020-01-01", periods=400)),
            "seem to be days",
        ),
        (
            lambda f: one_value(
                f, "income", f.income.map("{:.2f}".format).str.replace(".", ",")
            ),
            "decimal commas",
        ),
        (
            lambda f: one_value(f, "income", f.income.where(f.age > 30)),
            "of income, the first",
        ),
        (lambda f: one_value(f, "income", f.income.where(f.age > 30, np.inf)), "gaps: "),
        (lambda f: one_value(f, "income", 5.0), "constant columns: income is 5"),
        (lambda f: one_value(f, "cards", 5), "constant columns: cards is 5"),
        (lambda f: one_value(f, "income", f.income * 1e300), "size: income reaches"),
        (
            lambda f: one_value(f, "income", f.income.where(f.index != 7, 1e12)),
            "size: income of row 7 is 1e+12",
        ),
        (lambda f: one_value(f, "income", f.income * 1j), "text columns: income"),
        (lambda f: one_value(f, "cards", f.repaid), "label by another name"),
        (lambda f: one_value(f, "cards", 1 - f.repaid), "label by another name"),
        (lambda f: pd.concat([f, f[["income"]]], axis=1), "columns: twice: income"),
        (lambda f: f.rename(columns={"origin": 3}), "columns: 3 is no name"),
    ],
    ids=itertools.count(),
)
def test_errors_of_a_table(spoilt, message):
    frame = spoilt(table())
    assert message in said(frame)
    with pytest.raises(ValueError, match=re.escape("This table can't be used yet.")):
        findings.require(examine(frame, "repaid", KINDS, EDGES))


@pytest.mark.parametrize(
    ("given_instead", "message"),
    [
        ({"edges": EDGES | {"age": ["cards"]}}, "age -> income -> cards -> age"),
        ({"edges": EDGES | {"repaid": ["age"]}}, "age -> repaid names the label"),
        ({"edges": EDGES | {"age": ["repaid"]}}, "age is made after the label"),
        ({"edges": EDGES | {"age": ["age"]}}, "age causes itself"),
        ({"edges": EDGES | {"cards": ["incme"]}}, "Did you mean income?"),
        ({"edges": {"income": "age"}}, "'age', which is no list"),
        ({"edges": [["age", "income", "cards"]]}, "is no pair"),
        ({"edges": [[["age"], "income"]]}, "is no pair"),
        ({"edges": None}, "None is no list"),
        ({"kinds": {}}, "kinds: {}"),
        ({"kinds": ["age"]}, "kinds: ['age']"),
        ({"kinds": KINDS | {"income": "acted on"}}, "income is 'acted on'"),
        ({"kinds": KINDS | {"income": "mutable"}}, "0 actionable features"),
        ({"kinds": KINDS | {"repaid": "mutable"}}, "label 'repaid' is among"),
        ({"kinds": KINDS | {"wealth": "mutable"}}, "there is no column 'wealth'"),
        ({"kinds": dict.fromkeys(KINDS, "actionable"), "most_actionable": 2}, "1 to 2"),
        ({"group": "race"}, "groups: no such column, 'race'"),
        ({"group": "age", "person": "age"}, "'age' is also what people are called"),
        ({"kinds": KINDS | {2020: "mutable"}}, "2020 is no text | Put quotes around it"),
        (
            {"kinds": {2020: "actionable", "income": "mutable"}, "edges": EDGES},
            "there is no feature 'age'",
        ),
        ({"kinds": KINDS | {"cost": "mutable"}}, "a feature is called 'cost'"),
        ({"kinds": KINDS | {"helped": "mutable"}}, "a feature is called 'helped'"),
    ],
    ids=itertools.count(),
)
def test_errors_of_what_is_said_about_it(given_instead, message):
    assert message in said(table(), **given_instead)


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda f: f, "people: 400 rows"),
        (lambda f: one_value(f, "income", f.income.where(f.age > 30, 0.0)), "exactly 0"),
        (
            lambda f: one_value(f, "income", f.income.where(f.age > 30, 1000.5)),
            "add a column that says who has it",
        ),
        (lambda f: one_value(f, "cards", f.income * 2 + 3), "income and cards (1.000)"),
        (
            lambda f: f.assign(income=f.income.where(f.index != 7, 9e6)),
            "income of 1 people",
        ),
        (lambda f: pd.concat([f, f.head(50)]), "50 people equal another"),
        (lambda f: one_value(f, "repaid", (f.income > 1_300) * 1), "income alone leaves"),
        (lambda f: one_value(f, "repaid", (f.index < 20) * 1), "Only 20 of the rarer"),
        (
            lambda f: f.assign(
                repaid=f.index % 25 == 0, cards=lambda g: g.repaid * 9 + 1.5
            ).assign(cards=lambda g: g.cards + g.index / 1_000),
            "cards alone leaves 0%",
        ),
        (lambda f: one_value(f, "cards", f.cards * 500), "cards comes in steps of 500"),
        (
            lambda f: one_value(f, "income", f.income.where(f.index % 20 > 0, -1.0)),
            "codes: income is -1 for 20",
        ),
        (
            lambda f: one_value(f, "cards", f.cards.where(f.index % 40 > 0, 98)),
            "codes: cards is 98 for 10",
        ),
        (
            lambda f: one_value(
                f, "cards", ((f.index % 5 == 0) * f.cards).where(f.index != 7, 500)
            ),
            "cards of 1 people",
        ),
        (
            lambda f: one_value(
                f, "income", f.income.where(f.age > 25, 0.5).where(f.age < 60, 900.25)
            ),
            "add a column",
        ),
        (
            lambda f: one_value(
                f, "income", f.income.abs().where(f.age > 30, 0).where(f.age < 60, 9_000)
            ),
            "Of these only 9000 is spread",
        ),
    ],
    ids=itertools.count(),
)
def test_warnings(spoilt, message):
    assert message in said(spoilt(table()), verdict="warning")


def test_more_warnings():
    immutable = KINDS | {"cards": "immutable"}
    assert "cards may not change" in said(table(), kinds=immutable)
    assert "no edge between two" in said(table(), edges={}, verdict="warning")
    assert "groups: 1: here 400" in said(table(), group="origin", verdict="warning")


def test_few_people_do_not_look_like_a_leak():
    drawn = np.random.default_rng(1).integers(0, 2, (20, 22))
    for repaid in drawn:
        frame = table(22).assign(repaid=repaid)
        assert "leaks" not in said(frame, verdict="warning")


def test_categories_that_exclude_each_other():
    homes = pd.get_dummies(pd.Series(list("abc") * 200), prefix="home").head(400)
    frame = table().join(homes)
    kinds = KINDS | dict.fromkeys(homes, "actionable")
    together = "home_a, home_b, home_c add up to one | One by one they leave people"
    assert together in said(frame, kinds=kinds)
    two = KINDS | dict.fromkeys(["home_a", "home_b"], "mutable")
    assert "home_a, home_b exclude each other" in said(frame, kinds=two, verdict="warning")
    fixed = KINDS | dict.fromkeys(homes, "immutable")
    assert "categories" not in said(frame, kinds=fixed, verdict="warning")
    free = table().assign(a=lambda f: f.age % 2, b=lambda f: f.index % 2)
    both = KINDS | {"a": "actionable", "b": "actionable"}
    assert "categories" not in said(free, kinds=both, verdict="warning")


def test_what_people_are_called():
    assert "no such column of people, 'name'" in said(table(), person="name")
    assert "several people are called 'here'" in said(table(), person="origin")


def test_which_outcome_is_good_is_asked():
    assert "1 is the good outcome? (" in said(table(), verdict="fine")


def test_a_leak_that_is_left_out_is_said():
    reminded = table().assign(reminders=lambda f: 3.0 - 2 * f.repaid)
    assert "reminders alone leaves 0%" in said(reminded, verdict="fine")


def test_all_errors_are_said_at_once():
    frame = table().assign(income="much", cards=1).drop(columns="repaid")
    with pytest.raises(Unfit) as raised:
        findings.require(
            examine(frame, "repaid", KINDS, {"age": ["cards"], "cards": ["age"]})
        )
    assert re.findall(r"^  (\d)\. (\w+)", str(raised.value), flags=re.MULTILINE) == [
        ("1", "names"),
        ("2", "text"),
        ("3", "constant"),
        ("4", "edges"),
    ]


def test_no_traceback_in_a_notebook():
    shell = InteractiveShell()
    error = Unfit("One.\nTwo.")
    shown = []
    shell._showtraceback = lambda kind, value, lines: shown.append((kind, lines))
    try:
        raise error
    except Unfit:
        shell.showtraceback()
    assert shown == [(Unfit, ["One.", "Two."])]


# --- files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "No columns to parse from file"),
        (b"\n\n", "No columns to parse from file"),
        (b"age;income\n1;2\n", "its separator seems to be a semicolon"),
        (b"age;income\n1;2,5\n3;4,5\n", "its separator seems to be a semicolon"),
        (b"age\tincome\n1\t2\n", "its separator seems to be a tab"),
        (b"age,income,age\n1,2,3\n", "has the column age twice"),
        (b"age,income\n1,2,3\n4,5,6\n", "Its rows have more fields than its"),
        (b"age,income\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        (b"\xff\xfe\x00\x01", "It can't be read as a csv in UTF-8"),
        (b'age,income\n1,"2\n', "EOF inside string"),
    ],
    ids=itertools.count(),
)
def test_files_that_are_no_table(tmp_path, content, message):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(Unfit, match=message):
        findings.read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.csv.gz", "It can't be read as a csv"),
        ("mine.zip", "It can't be read as a csv"),
        ("mine.parquet", "It can't be read as Parquet"),
    ],
)
def test_packed_files_that_are_damaged(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"PK\x03\x04 nothing of the kind")
    with pytest.raises(Unfit, match=f"{name}: {message}"):
        findings.read(tmp_path / name)


@pytest.mark.parametrize("path", ["nowhere.csv", "", None, 3, "."])
def test_paths_that_lead_nowhere(path):
    with pytest.raises(Unfit, match=r"There is no file|expected the name of a file"):
        findings.read(path)


def test_csv_and_parquet_hold_the_same(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv.gz", index=False, sep=";")
    frame.to_parquet(tmp_path / "c.parquet")
    pd.testing.assert_frame_equal(findings.read(tmp_path / "a.csv"), frame)
    pd.testing.assert_frame_equal(findings.read(tmp_path / "b.csv.gz", ";"), frame)
    pd.testing.assert_frame_equal(findings.read(tmp_path / "c.parquet"), frame)


def test_parquet_keeps_an_index_and_texts_and_refuses_lists(tmp_path):
    frame = table().assign(job=pd.Categorical(["cook"] * 400))
    frame.index = pd.Index(list(range(7, 407)), name="person")
    frame.to_parquet(tmp_path / "a.parquet")
    read = findings.read(tmp_path / "a.parquet")
    assert {"person", "job"} <= set(read) and read.job.eq("cook").all()
    assert not isinstance(read.job.dtype, pd.CategoricalDtype)
    frame.assign(job=[["cook"]] * 400).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(Unfit, match="Column job holds list"):
        findings.read(tmp_path / "a.parquet")


def test_decimal_commas_and_columns_without_a_name(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"age;income;;\n1;2,5;;\n3;4,5;;\n")
    assert findings.read(path, ";", ",").income.tolist() == [2.5, 4.5]


def test_names_must_differ():
    frame = table(40)
    with pytest.raises(ValueError, match="Several people are called 'here'"):
        findings.named(frame, "origin")
    with pytest.raises(ValueError, match="Unknown column"):
        findings.named(frame, "orign")


# --- any table at all

numbers = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
)
cells = st.one_of(numbers, st.text(max_size=3))
names = st.sampled_from(["age", "income", "cards", "repaid", ""])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_table_is_found_out_or_becomes_a_population(data):
    """What has no error becomes a population, or says in a ValueError why not."""
    columns = data.draw(st.lists(names, max_size=5))
    n_rows = data.draw(st.sampled_from([0, 1, 25, 40]))
    drawn = [
        data.draw(
            st.one_of(
                st.lists(kind, min_size=n_rows, max_size=n_rows)
                for kind in (numbers, cells, st.integers(0, 1), st.floats(-9, 9))
            )
        )
        for _ in columns
    ]
    series = [pd.Series(own, dtype=None if own else object) for own in drawn]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = columns
    kinds = data.draw(st.dictionaries(names, st.sampled_from([*KINDS.values(), "no"])))
    edges = data.draw(st.dictionaries(names, st.lists(names, max_size=3)))
    with contextlib.suppress(ValueError):  # and nothing else
        findings.require(examine(frame, "repaid", kinds, edges, group="age"))
        features = list(kinds)
        piled = columns.at_an_end(frame, columns.atoms(frame, features))
        whole = columns.whole_numbers(frame, features)
        Population.from_frame(frame, "repaid", kinds, edges, whole=whole, atoms=piled)


# --- from the checks to a problem


def test_atoms_are_spread_and_come_back():
    frame = credit_union.draw(1_000)[0]
    features = list(credit_union.KINDS)
    piled = columns.at_an_end(frame, columns.atoms(frame, features))
    assert piled == ["savings"]
    population = Population.from_frame(
        frame, "repaid", credit_union.KINDS, credit_union.EDGES, whole=["age"], atoms=piled
    )
    everyone = torch.cat([population.x[f"recourse/{p}"] for p in ("train", "test")])
    savings = population.in_units(everyone.double())[:, features.index("savings")]
    width = 0.2 * frame.savings.std(ddof=0)
    assert -width < savings.min() < -0.9 * width
    assert len(savings.unique()) > 0.99 * (savings < 0).sum() + (savings > 0).sum() * 0.5
    again = population.as_recorded(everyone)[:, features.index("savings")]
    assert again.min() == 0
    assert ((again == 0) == (savings <= 0)).all()


def test_an_atom_at_the_top_is_spread_upwards():
    frame = table().assign(income=lambda f: f.income.clip(upper=1_200.0))
    population = Population.from_frame(
        frame, "repaid", KINDS, EDGES, whole=["age", "cards"], atoms=["income"]
    )
    income = population.in_units(population.x["recourse/train"].double())[:, 1]
    assert income.max() > 1_201
    assert population.as_recorded(population.x["recourse/train"])[:, 1].max() == 1_200


@pytest.mark.parametrize(
    ("atoms", "message"), [(["cards"], "whole number"), (["carts"], "Unknown feature")]
)
def test_atoms_that_are_none(atoms, message):
    with pytest.raises(ValueError, match=message):
        Population.from_frame(table(), "repaid", KINDS, EDGES, whole=["cards"], atoms=atoms)


def problem_with(bias):
    population = Population.from_frame(table(), "repaid", KINDS, EDGES)
    x = population.x["flow/train"]
    fitted, _ = flow.fit(population.graph, x, x, n_epochs=1)
    h = classifier.Classifier(population.features, lambda x: x[:, 1] + bias)
    return Problem(population, h, fitted)


def test_nearly_everybody_refused_is_a_warning():
    (found,) = checkup.refusals(problem_with(-99.0))
    assert (found.verdict, found.do[:16]) == ("warning", "Nearly everybody")


def test_everybody_accepted_is_an_error():
    with pytest.raises(Unfit, match="refuses 0 of 200 train"):
        checkup.refusals(problem_with(99.0))


def test_few_refused_are_a_warning():
    assert [one.verdict for one in checkup.refusals(problem_with(0.0))] == ["warning"]


def test_groups_cover_everybody_once():
    for column in (pd.Series(["a", None, "b"]), pd.Series([1.5, np.nan, *range(20)])):
        rows = np.concatenate(list(checkup.groups_of(column).values()))
        assert sorted(rows) == list(range(len(column)))


def test_findings_are_a_table():
    rows = findings.as_table([Finding("fine", "gaps", "none")])
    assert rows.iloc[0].tolist() == ["fine", "gaps", "none", ""]


# --- the simulated table


def test_the_table_is_what_its_equations_draw(tmp_path):
    people, _ = credit_union.draw()
    people.to_csv(tmp_path / "again.csv", index=False, lineterminator="\n")
    assert (tmp_path / "again.csv").read_bytes() == credit_union.FILE.read_bytes()


def test_truth_moves_descendants_only():
    people, noise = credit_union.draw(500)
    features = list(credit_union.KINDS)
    before = people[features]
    nobody = np.zeros(before.shape, dtype=bool)
    same = credit_union.counterfactual(noise, nobody, before.to_numpy())
    pd.testing.assert_frame_equal(same, before)
    acts = nobody.copy()
    acts[:, features.index("cards")] = True
    after = credit_union.counterfactual(noise, acts, before.to_numpy() + 1)
    moved = (after != before).any()
    assert moved[moved].index.tolist() == ["cards", "debt"]
    assert (after.cards == before.cards + 1).all() and (after.debt >= before.debt).all()


# --- the notebook, as papermill runs it on somebody's table

SMALL = {
    **dict.fromkeys(("n_epochs_classifier", "n_epochs_flow"), 3),
    **dict.fromkeys(("n_epochs_icarma", "n_epochs_proposer"), 1),
    **dict.fromkeys(("n_searched", "n_starts", "n_steps", "n_refits", "n_edges"), 1),
    "n_chosen": 5,
    "n_people": 200,
    "n_resamples": 20,
}


def own_table(tmp_path, **values):
    """Exit code, what was printed, and the tables that were left."""
    given = io.load_yaml(ROOT / "examples" / "own_table.yaml") | SMALL | values
    given = {name: value for name, value in given.items() if value is not None}
    given["outputs"] = str(tmp_path / "out")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(given))
    run = subprocess.run(
        [sys.executable, "workflow/own_table.py", tmp_path / "mine.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    return run.returncode, run.stderr, left


def test_the_notebook_runs_on_another_table(tmp_path):
    """Of what has to be said; and nothing is said of the table that comes with it."""
    unsaid = dict.fromkeys(("group", "person", "limits", "threshold", "share_accepted"))
    status, printed, left = own_table(tmp_path, **unsaid)
    assert status == 0, printed[-2_000:]
    executed = nbformat.read(tmp_path / "out" / "12_your_own_problem.ipynb", 4)
    told = [cell.source for cell in executed.cells if cell.cell_type == "markdown"]
    first, *others = told
    assert not any("**Here**" in one or "savings" in one for one in others)
    assert "Claim" not in first and "| claim" not in first
    assert "are left out of such a run" in first
    printed = str([cell.get("outputs") for cell in executed.cells])
    assert "can't be used" not in printed and "Exercises" not in str(others)
    links = [link for one in told for link in re.findall(r"\]\((?!http)([^)#]+)", one)]
    assert links and all((tmp_path / "out" / link).is_file() for link in links)
    assert left >= {
        "12_your_own_problem.ipynb",
        *(f"12_{n}.csv" for n in ("checks", "recommendations", "audit", "trust")),
        *(f"{n}.safetensors" for n in ("classifier", "flow", "icarma", "proposer")),
    }
    assert any((tmp_path / "out" / "figures").glob("12_*.png"))
    told = pd.read_csv(tmp_path / "out" / "tables" / "12_recommendations.csv")
    assert {"education-num", "outcome", "holds_in"} <= set(told)
    assert (told[["age", "education-num", "hours-per-week"]] % 1 == 0).all(axis=None)


def test_the_notebook_runs_on_a_part_of_its_own_table(tmp_path):
    """Other equations hold; nothing is to be spared; nobody is grouped, or earns less."""
    own = {"table": "data/credit_union.csv", "label": "repaid", "person": "person"}
    own |= {"kinds": dict.fromkeys(("savings", "income"), "actionable"), "group": ""}
    own |= {"edges": {"savings": ["income"]}, "spare_log_odds": [], "spare_nats": []}
    own |= {"limits": {"income": "only up"}}
    status, printed, _ = own_table(tmp_path, n_epochs_classifier=30, **own)
    assert status == 0, printed[-2_000:]
    trust = pd.read_csv(tmp_path / "out" / "tables" / "12_trust.csv", index_col=[0, 1])
    assert "the true equations" not in trust.index.levels[1]
    assert trust["nothing to spare"].equals(trust["as chosen"])
    told = pd.read_csv(tmp_path / "out" / "tables" / "12_distrust.csv", index_col=0)
    assert (told.verdict[told.measured.isna()] != "fine").all()
    answers = pd.read_csv(tmp_path / "out" / "tables" / "12_recommendations.csv")
    moves = answers.change.dropna().str.extract(r"income (\S+) -> ([^;]+)").dropna()
    before, after = (moves[i].str.replace(",", "").astype(float) for i in (0, 1))
    assert (after > before).all() and len(moves) > 20
    has_none = answers.outcome == "no recourse found"
    assert answers[["cost", "holds_in"]][has_none].isna().all(axis=None)


def test_the_notebook_says_what_is_wrong_and_fails(tmp_path):
    status, printed, _ = own_table(tmp_path, label="incom", group="sx")
    assert status == 1
    said = printed[printed.index("This table can't be used yet. 2 things to mend:") :]
    assert "there is no column 'incom'. Did you mean income?" in said
    assert "groups: no such column, 'sx'" in said
    assert "lib/beyond" not in printed


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seperator": ";"}, "has no parameter 'seperator'; did you mean separator?"),
        ({"n_people": "4000"}, "n_people is '4000' (str), expected int"),
        ({"n_people": -1}, "n_people is -1, expected 0 or more"),
        ({"kinds": ["age"]}, "kinds is ['age'] (list), expected dict"),
    ],
)
def test_a_parameter_file_that_does_not_fit_starts_no_kernel(tmp_path, values, message):
    defaults = parameters.notebook_defaults(
        ROOT / "notebooks" / "12_your_own_problem.ipynb"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ValueError, match=re.escape(message)):
        parameters.read_own(path, defaults)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "says nothing about outputs"),
        ({"outputs": "models"}, "outputs is 'models', expected a folder below runs"),
        ({"outputs": str(ROOT / "lib" / "x")}, "outputs is 'lib/x', expected a folder"),
        ({"outputs": "runs/paper"}, "runs/paper is another command's"),
        ({"outputs": "runs/mine", "figures": "figures"}, "figures is 'figures', expected"),
        ({"outputs": "../mine"}, "leads out of the repository"),
    ],
)
def test_a_table_of_ones_own_leaves_nothing_elsewhere(tmp_path, values, message):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ValueError, match=re.escape(message)):
        own_table_program.run(path)


def test_words_are_categories():
    frame = table().assign(home=["own", "rent"] * 200)
    kinds = KINDS | {"home": "actionable"}
    assert said(frame, kinds=kinds) == ""
    found = said(frame, kinds=kinds, verdict="fine")
    assert "categories: home is one of 2: own, rent" in found
    gaps = frame.assign(home=frame.home.where(frame.index > 2))
    assert "3 of home, the first in row 0" in said(gaps, kinds=kinds)
    many = frame.assign(home=[f"street {i}" for i in frame.index])
    assert "text columns: home holds" in said(many, kinds=kinds)


def test_limits_are_looked_at():
    told = said(table(), verdict="fine", limits={"income": "only up, at most 500 more"})
    assert "limits: income: only up, at most 500 more" in told
    assert "Unknown feature 'age'" in said(table(), limits={"age": "only up"})
    assert "can't read 'upward'" in said(table(), limits={"income": "upward"})
