"""A stranger's table: each check finds its fault, and nothing raises but ValueError."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import own_table as own_table_program
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib import io
from lib.beyond.own_table import checkup, credit_union, tables
from lib.beyond.own_table.checkup import examine
from lib.beyond.own_table.tables import TableError
from lib.io import ROOT
from lib.method.data import Population

KINDS = {"age": "immutable", "income": "actionable", "cards": "mutable"}
EDGES = {"income": ["age"], "cards": ["income"]}


def table(n_people=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 70, n_people)})
    frame["income"] = (30.0 * frame.age + rng.normal(0, 400, n_people)).round(2)
    frame["cards"] = rng.poisson(2, n_people)
    score = frame.income + rng.normal(0, 800, n_people)
    return frame.assign(repaid=(score > 1_300).astype(int), origin="here")


def lines(frame, label="repaid", kinds=KINDS, edges=EDGES, verdict="error", **others):
    """Return the results with a verdict: one text, a line a result."""
    checked = examine(frame, label, kinds, edges, **others)
    return "\n".join(
        f"{r.check}: {r.message} | {r.hint}" for r in checked if r.verdict == verdict
    )


def test_a_good_table_has_no_errors_and_says_what_it_is():
    frame = table().assign(reminders=lambda f: 3.0 - 2 * f.repaid)
    frame["home"] = ["owned", "rented"] * 200
    of_all = {"kinds": KINDS | {"home": "actionable"}, "limits": {"income": "only up"}}
    assert lines(frame, **of_all) == ""
    fine = lines(frame, verdict="fine", **of_all)
    assert "4 features, 2 actionable; left out: origin, reminders" in fine
    assert "2 edges, no circle" in fine and "categories: home is one of 2: owned" in fine
    assert "reminders alone leaves 0%" in fine
    assert "repaid is 1, the good outcome, for" in fine and "turn the label round" in fine


ERRORS = {
    "people: 19 rows | At least 20": lambda f: f.head(19),
    "names: Unknown column 'repaid'": lambda f: f.drop(columns="repaid"),
    "label: The label 'repaid' holds [2]": lambda f: f.assign(repaid=f.age % 3),
    "people of both kinds": lambda f: f.assign(repaid=1),
    "values: Column 'income' has": lambda f: f.assign(income=f.income.where(f.age > 30)),
    "cards is 5 for everyone | Leave it out": lambda f: f.assign(cards=5),
    "income of row 7 is 1e+12": lambda f: f.assign(
        income=f.income.where(f.index != 7, 1e12)
    ),
    "label by another name": lambda f: f.assign(cards=1 - f.repaid),
    "columns: twice: income": lambda f: pd.concat([f, f[["income"]]], axis=1),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_of_a_table(message):
    frame = ERRORS[message](table())
    assert message in lines(frame)
    with pytest.raises(TableError, match="This table can't be used yet"):
        checkup.require(examine(frame, "repaid", KINDS, EDGES))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": EDGES | {"age": ["cards"]}}, "age -> income -> cards -> age"),
        ({"edges": EDGES | {"repaid": ["age"]}}, "age -> repaid names the label"),
        ({"edges": EDGES | {"cards": ["repaid"]}}, "cards is made after the label"),
        ({"kinds": KINDS | {"income": "acted on"}}, "kinds: Unknown kind 'acted on'"),
        ({"kinds": KINDS | {"income": "mutable"}}, "3 features, 0 actionable"),
        ({"kinds": KINDS | {"repaid": "mutable"}}, "label 'repaid' is among"),
        ({"kinds": KINDS | {"cards": "immutable"}}, "cards is immutable, but an action"),
        ({"kinds": KINDS | {"cost": "mutable"}}, "'cost' is a column of the recommend"),
        ({"group": "race"}, "groups: 'race' is no column with groups"),
        ({"group": "age", "person": "age"}, "'age' is no column with groups"),
        ({"person": "name"}, "column with people's names: 'name'"),
        ({"person": "origin"}, "Several people are called 'here'"),
        ({"limits": {"age": "only up"}}, "Unknown feature 'age'"),
    ],
)
def test_errors_of_the_settings(changed, message):
    assert message in lines(table(), **changed)


WARNINGS = {
    "people: 400 rows": lambda f: f,
    "It is spread before the flow": lambda f: f.assign(income=f.income.clip(1_500)),
    "add a column for who has it": lambda f: f.assign(
        income=f.income.where(f.age > 30, 1000.5)
    ),
    "collinear pairs: income and cards (1.000)": lambda f: f.assign(cards=f.income * 2 + 3),
    "cards of 1 people": lambda f: f.assign(
        cards=((f.index % 5 == 0) * f.cards).where(f.index != 7, 500)
    ),
    "50 people equal another": lambda f: pd.concat([f, f.head(50)]),
    "income alone leaves": lambda f: f.assign(repaid=(f.income > 1_300) * 1),
    "Only 20 of the rarer": lambda f: f.assign(repaid=(f.index < 20) * 1),
    "cards comes in steps of 500": lambda f: f.assign(cards=f.cards * 500),
    "running numbers: cards is whole": lambda f: f.assign(
        cards=np.random.default_rng(0).permutation(len(f)) * 1.0 + 1_000
    ),
    "table: cards is 999 for 10 people": lambda f: f.assign(
        cards=f.cards.where(f.index % 40 > 0, 999)
    ),
}


@pytest.mark.parametrize("message", WARNINGS)
def test_warnings(message):
    assert message in lines(WARNINGS[message](table()), verdict="warning")


def test_more_warnings():
    assert "no edge between two" in lines(table(), edges={}, verdict="warning")
    assert "groups: 1: here 400" in lines(table(), group="origin", verdict="warning")


def test_whole_numbers_that_are_no_running_number():
    order = np.random.default_rng(0).permutation(400)
    for cards in (order * 3, order.clip(1), order + 0.5):  # wide, one twice, no number
        assert "running" not in lines(table().assign(cards=cards), verdict="warning")


def test_few_people_do_not_look_like_a_leak():
    drawn = np.random.default_rng(1).integers(0, 2, (20, 22))
    for repaid in drawn:
        frame = table(22).assign(repaid=repaid)
        assert "leaks" not in lines(frame, verdict="warning")


def test_all_errors_are_listed_at_once_and_without_a_traceback():
    frame = table().assign(income="much", cards=1).drop(columns="repaid")
    circle = {"age": ["cards"], "cards": ["age"]}
    with pytest.raises(TableError) as raised:
        checkup.require(examine(frame, "repaid", KINDS, circle))
    checks = re.findall(r"^  (\d)\. (\w+)", str(raised.value), flags=re.MULTILINE)
    assert checks == [("1", "names"), ("2", "values"), ("3", "values"), ("4", "edges")]
    assert TableError("One.\nTwo.")._render_traceback_() == ["One.", "Two."]  # IPython's


def test_groups_cover_everybody_once():
    for column in (pd.Series(["a", None, "b"]), pd.Series([1.5, np.nan, *range(20)])):
        rows = np.concatenate(list(checkup.groups_of(column).values()))
        assert sorted(rows) == list(range(len(column)))


# --- files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"age,income,age\n1,2,3\n", "has the column age twice"),
        ("a.csv", "age,job\n1,Köchin\n".encode("latin-1"), "not UTF-8.*iconv"),
        ("a.xlsx", b"PK\x03\x04", "a.xlsx is a spreadsheet. Save it as csv"),
        ("a.csv", b"age;pay\n1;2\n2;3\n", "'age;pay'.*set separator.*decimal"),
        ("a.csv", b"age;pay\n1,5;2\n2,5;3\n", "Length of header.*set separator"),
        ("a.csv", b"age;pay\n1;2\n2,5;3\n", "Expected 1 fields.*set separator"),
        ("a.zip", b"PK\x03\x04 nothing of the kind", "It can't be read"),
        ("a.parquet", b"PK\x03\x04 nothing of the kind", "a.parquet: "),
    ],
)
def test_files_that_are_no_table(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        tables.read(tmp_path / name)


def test_csv_and_parquet_hold_the_same(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv.gz", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "c.parquet")
    pd.testing.assert_frame_equal(tables.read(tmp_path / "a.csv"), frame)
    pd.testing.assert_frame_equal(tables.read(tmp_path / "b.csv.gz", ";", ","), frame)
    pd.testing.assert_frame_equal(tables.read(tmp_path / "c.parquet"), frame)
    with pytest.raises(ValueError, match=r"nowhere.csv: It can't be read"):
        tables.read("nowhere.csv")


def test_only_an_empty_cell_is_a_gap_and_ids_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,home,pay\n00502,NA,1\n00503,None,\n00504,,3\n")
    frame = tables.read(path, person="id")
    assert frame.id.tolist() == ["00502", "00503", "00504"]
    assert frame.home.tolist()[:2] == ["NA", "None"]
    assert frame.isna().to_numpy().sum() == 2 and frame.pay[2] == 3


@pytest.mark.parametrize("column", ["cards", "repaid"])
def test_a_word_among_numbers_is_named_with_its_row(column):
    frame = table().astype({column: object})
    frame.loc[17:316, column] = "NA"
    text = lines(frame)
    assert f"{column} of row 17 is 'NA': expected a number | 300 cells" in text


# --- any table at all

numbers = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
)
cells = st.one_of(numbers, st.text(max_size=3))
names = st.sampled_from(["age", "income", "cards", "repaid", ""])


@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_any_table_has_errors_or_becomes_a_population(data):
    """A table without errors becomes a population; nothing raises but ValueError."""
    drawn = data.draw(st.lists(names, max_size=5))
    n_rows = data.draw(st.sampled_from([0, 1, 25, 40]))
    kinds_of_cells = (numbers, cells, st.integers(0, 1), st.floats(-9, 9))
    lists = [st.lists(k, min_size=n_rows, max_size=n_rows) for k in kinds_of_cells]
    series = [pd.Series(data.draw(st.one_of(lists)), dtype=object) for _ in drawn]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame = frame.infer_objects()
    frame.columns = drawn
    kinds = data.draw(st.dictionaries(names, st.sampled_from([*KINDS.values(), "no"])))
    edges = data.draw(st.dictionaries(names, st.lists(names, max_size=3)))
    with contextlib.suppress(TableError):  # and nothing else
        checkup.require(examine(frame, "repaid", kinds, edges, group="age"))
        atoms = checkup.atoms_at_an_end(frame, list(kinds))
        whole = checkup.whole_numbers(frame, list(kinds))
        Population.from_frame(frame, "repaid", kinds, edges, whole=whole, atoms=atoms)


# --- from the checks to a problem


def test_atoms_at_an_end():
    rest = [*np.arange(10) + 0.5]
    atoms = {"low": 0.0, "middle": 5.0, "high": 99.0}
    frame = pd.DataFrame({name: [atom] * 10 + rest for name, atom in atoms.items()})
    assert checkup.atoms_at_an_end(frame, list(frame)) == ["low", "high"]


# --- the simulated table


def test_the_table_is_what_its_equations_draw(tmp_path):
    people, _ = credit_union.draw()
    people.to_csv(tmp_path / "again.csv", index=False, lineterminator="\n")
    assert (tmp_path / "again.csv").read_bytes() == credit_union.FILE.read_bytes()


def test_the_true_equations_move_descendants_only():
    people, noise = credit_union.draw(500)
    features = list(credit_union.KINDS)
    before = people[features]
    is_acted = np.zeros(before.shape, dtype=bool)
    same = credit_union.counterfactual(noise, is_acted, before.to_numpy())
    pd.testing.assert_frame_equal(same, before)
    is_acted[:, features.index("cards")] = True
    after = credit_union.counterfactual(noise, is_acted, before.to_numpy() + 1)
    moved = (after != before).any()
    assert moved[moved].index.tolist() == ["cards", "debt"]
    assert (after.cards == before.cards + 1).all() and (after.debt >= before.debt).all()


# --- the notebook, as papermill runs it on a stranger's table

SMALL = {
    "n_people": 200,
    "n_epochs": 3,
    "to_spare": [[0.0, 0.0], [0.5, 0.2]],
    **dict.fromkeys(("n_chosen", "n_tested"), 4),
    **dict.fromkeys(("n_steps", "n_refits", "n_edges"), 1),
}


def run_notebook(tmp_path, **values):
    """Return the exit code, stderr, and the names of all files that were written."""
    entries = io.load_yaml(ROOT / "examples" / "own_table.yaml") | SMALL | values
    entries = {name: value for name, value in entries.items() if value is not None}
    entries |= {"table": str(ROOT / entries["table"]), "outputs": str(tmp_path / "out")}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(entries))
    run = subprocess.run(
        [sys.executable, "workflow/own_table.py", tmp_path / "mine.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    written = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    return run.returncode, run.stderr, written


def test_the_notebook_runs_on_another_table(tmp_path):
    """With the required parameters only; nothing is about the table of the repository."""
    optional = ("group", "person", "limits", "threshold")
    status, stderr, written = run_notebook(tmp_path, **dict.fromkeys(optional))
    assert status == 0, stderr[-2_000:]
    executed = nbformat.read(tmp_path / "out" / "12_your_own_problem.ipynb", 4)
    texts = [cell.source for cell in executed.cells if cell.cell_type == "markdown"]
    assert not any("**Here**" in text or "savings" in text for text in texts[1:])
    assert "Claim" not in texts[0] and "| claim" not in texts[0]
    links = [link for text in texts for link in re.findall(r"\]\((?!http)([^)#]+)", text)]
    assert links and all((tmp_path / "out" / link).is_file() for link in links)
    assert written >= {
        "12_your_own_problem.ipynb",
        *(f"12_{n}.csv" for n in ("checks", "recommendations", "audit", "trust")),
        *(f"{n}.safetensors" for n in ("classifier", "flow")),
    }
    answers = pd.read_csv(tmp_path / "out" / "tables" / "12_recommendations.csv")
    assert {"education-num", "outcome", "holds_in"} <= set(answers)
    assert (answers[["age", "education-num", "hours-per-week"]] % 1 == 0).all(axis=None)


def test_a_model_of_ones_own_decides_and_is_fitted_anew(tmp_path, monkeypatch):
    """A tree, which has no gradient: once here, and once in each other world."""
    lines = (
        "from pathlib import Path",
        "from sklearn.tree import DecisionTreeClassifier",
        "def fit(people, is_positive):",
        f"    folder = Path({str(tmp_path)!r})",
        "    n_fits = len(list(folder.glob('*.csv')))",
        "    people.to_csv(folder / f'{n_fits}.csv')",
        "    return DecisionTreeClassifier(max_depth=3).fit(people, is_positive)",
    )
    (tmp_path / "tree.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    status, stderr, written = run_notebook(tmp_path, own_model="tree:fit")
    assert status == 0, stderr[-2_000:]
    assert "flow.safetensors" in written and "classifier.safetensors" not in written
    fitted_to = [pd.read_csv(path) for path in sorted(tmp_path.glob("*.csv"))]
    here, chooses, redrawn, affine, same = fitted_to
    assert here.equals(same) and {"age", "hours-per-week"} <= set(here)
    assert all(len(people) == len(here) for people in fitted_to)
    assert not any(here.equals(people) for people in (chooses, redrawn, affine))


def test_the_notebook_lists_what_is_wrong_and_fails(tmp_path):
    status, stderr, _ = run_notebook(tmp_path, label="incom", group="sx")
    assert status == 1 and "lib/beyond" not in stderr
    message = stderr[stderr.index("This table can't be used yet.") :]
    assert "Unknown column 'incom'" in message and "Did you mean 'income'?" in message
    assert "groups: 'sx' is no column with groups" in message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seperator": ";"}, "Did you mean 'separator'?"),
        ({}, "does not name outputs"),
        ({"outputs": "models"}, "outputs is 'models', a folder of the repository"),
        ({"outputs": "runs/mine", "figures": "figures"}, "figures is 'figures', a folder"),
    ],
)
def test_a_parameter_file_that_does_not_fit_is_refused(tmp_path, values, message):
    """A run writes below runs only."""
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ValueError, match=re.escape(message)):
        own_table_program.run(path)


@pytest.fixture
def started(monkeypatch):
    """Return the parameters of each notebook that would have been executed."""
    calls = []
    monkeypatch.setattr(
        own_table_program.papermill,
        "execute_notebook",
        lambda notebook, executed, given, **others: calls.append(given),
    )
    return calls


def test_a_table_is_looked_for_beside_the_parameter_file(tmp_path, monkeypatch, started):
    (tmp_path / "study").mkdir()
    for name in ("study/people.csv", "mine.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    path = Path("study", "mine.yaml")
    monkeypatch.chdir(tmp_path)
    path.write_text(yaml.safe_dump({"table": "people.csv", "outputs": f"{tmp_path}/out"}))
    own_table_program.run(path)
    assert Path("study/people.csv").samefile(started.pop()["table"])
    for name in ("mine.csv", "data/credit_union.csv"):  # where it runs; in the repository
        path.write_text(yaml.safe_dump({"table": name, "outputs": f"{tmp_path}/no"}))
        with pytest.raises(ValueError, match=rf"there is no file .*study/{name}"):
            own_table_program.run(path)
    assert not started and not (tmp_path / "no").exists()


def test_the_table_of_the_example_is_that_of_the_repository(monkeypatch, tmp_path, started):
    example = io.load_yaml(own_table_program.EXAMPLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        own_table_program.io, "load_yaml", lambda _: example | {"outputs": str(tmp_path)}
    )
    own_table_program.run(own_table_program.EXAMPLE)
    assert started[0]["table"] == str(ROOT / example["table"])


def test_a_folder_that_cannot_be_made_starts_no_kernel(tmp_path, started):
    (tmp_path / "file").touch()
    path, nowhere = tmp_path / "mine.yaml", str(tmp_path / "file" / "out")
    path.write_text(yaml.safe_dump({"outputs": str(tmp_path / "out"), "figures": nowhere}))
    with pytest.raises(ValueError, match=rf"the folder {nowhere} can't be made"):
        own_table_program.run(path)
    assert not started
