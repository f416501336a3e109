"""Students' files are in step, solutions right, blanks empty; every hint is reached."""

import ast
import itertools
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.formatters import PlainTextFormatter

from exercises import make
from exercises.checking import Key, Verdict, _read, check, key, key_of, numbers_of
from lib.io import ROOT

SOLUTIONS = sorted(make.SOLUTIONS.glob("*.ipynb"))
CALL = re.compile(r'^check\("([^"]+)", ', re.MULTILINE)
NUMBERS = [n for path in SOLUTIONS for n in numbers_of(path.name.split("_")[0])]
ODD = [float("nan"), float("inf"), 10**400, -1, True, 1j, "", "z", b"A", [], {}, {1}]
ODD += [[["A"], 2], object(), lambda x: x, itertools.count(), type]
WITHIN_ITSELF: list[Any] = []
WITHIN_ITSELF.append(WITHIN_ITSELF)
ODD += [WITHIN_ITSELF, torch.tensor(1j).conj(), torch.empty(0)]
ODD += [torch.ones(2, device="meta")]  # has a shape, and no numbers
for odd in (torch.tensor(0.1).bfloat16(), torch.eye(2).to_sparse(), torch.ones(3).half()):
    learned = odd.clone().requires_grad_()
    ODD += [odd, [odd, odd], learned, [learned * 2, odd]]

of_files = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
of_keys = pytest.mark.parametrize("number", NUMBERS)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def last_values(notebook: nbformat.NotebookNode) -> list[Any]:
    """Return the last value of each code cell, run in order in one namespace."""
    values, names = [], {"display": lambda *_: None}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell.id, "exec"), names)
            asked = last and compile(ast.Expression(last.value), cell.id, "eval")
            values.append(eval(asked, names) if asked else None)
            plt.close("all")
    return values


def test_every_notebook_has_exercises():
    names = {path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    assert names == {path.name for path in SOLUTIONS}
    assert {path.name for path in (ROOT / "exercises").glob("*.ipynb")} == names


def test_what_is_made_from_the_solutions_is_in_step():
    stale = [p.name for p, text in make.made().items() if p.read_text() != text]
    assert not stale, f"{stale} differ from exercises/solutions: exercises/make.py."


@of_files
def test_titles_tell_a_solution_from_an_exercise(path):
    solved = read(path).cells[0].source
    asked = read(ROOT / "exercises" / path.name).cells[0].source
    assert solved.startswith("# Solutions: ")
    assert asked.splitlines()[0] == solved.splitlines()[0].replace("Solutions", "Exercises")


@of_files
def test_at_least_four_and_two_that_ask_for_a_prediction(path):
    titles = make.titles(read(path))
    prefix = path.name.split("_")[0]
    assert list(titles) == [f"{prefix}.{i}" for i in range(1, len(titles) + 1)]
    assert len(titles) >= 4
    assert sum(title.startswith("Predict") for title in titles.values()) >= 2


@of_files
def test_each_exercise_is_checked_or_has_a_written_solution(path):
    cells: dict[str, list[nbformat.NotebookNode]] = {"": []}
    for cell in read(path).cells:
        heading = make.HEADING.match(cell.source)
        if heading:
            cells[heading[1]] = []
        cells[list(cells)[-1]].append(cell)
    assert not CALL.search("\n".join(cell.source for cell in cells.pop("")))
    for number, section in cells.items():
        calls = CALL.findall("\n".join(cell.source for cell in section))
        is_written = any("solution" in cell.metadata.get("tags", ()) for cell in section)
        assert calls == [] if is_written else [number], number
        assert is_written == (number not in numbers_of(path.name.split("_")[0]))


@of_files
def test_solutions_are_right_and_say_again_what_is_committed(path):
    solutions = read(path)
    values = last_values(solutions)
    committed = [
        "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        for cell in solutions.cells
        if cell.cell_type == "code"
    ]
    as_text = PlainTextFormatter()  # as Jupyter shows a value
    with pd.option_context("display.width", 80, "display.max_columns", 20):
        for value, text in zip(values, committed, strict=True):
            assert text == ("" if value is None else as_text(value))
    statuses = [value.status for value in values if isinstance(value, Verdict)]
    assert statuses == ["right"] * len(numbers_of(path.name.split("_")[0]))


@of_files
def test_blanks_are_not_answered_yet(path):
    values = last_values(read(ROOT / "exercises" / path.name))
    verdicts = [value for value in values if isinstance(value, Verdict)]
    assert len(verdicts) == len(numbers_of(path.name.split("_")[0]))
    assert {verdict.status for verdict in verdicts} == {"not answered yet"}


@of_keys
def test_the_truth_is_right_and_every_hint_is_reached(number):
    asked = key_of(number)
    assert check(number, asked.truth) == Verdict("right", f"Right. {asked.because}")
    assert asked.mistakes
    for wrong, hint in asked.mistakes:
        assert check(number, wrong) == Verdict("mistake", f"Not yet. {hint}")
    if asked.options:
        assert {asked.truth, *(w for w, _ in asked.mistakes)} == set(asked.options)


@of_keys
def test_no_answer_crashes(number):
    for answer in ODD:
        assert check(number, answer).status != "not answered yet"
    for answer in (None, ...):
        assert check(number, answer).text == "Not answered yet."


FUNCTIONS = ["00.4", "02.4", "03.5", "05.3", "06.3", "08.1", "09.3"]
FUNCTIONS += ["11.1", "12.1"]


@pytest.mark.parametrize("number", FUNCTIONS)
def test_a_number_where_a_function_is_asked(number):
    for answer in (3.0, [0.5, 0.8, 0.4, 0.1]):
        verdict = check(number, answer)
        assert verdict.status == "not understood"
        assert "expected a function" in verdict.text


@pytest.mark.parametrize(
    ("names", "over"),
    [
        ("the best lower bound", lambda joint, se: (joint - se).max()),
        ("the mean error", lambda joint, se: joint.max() - se.mean()),
        ("the smallest error", lambda joint, se: joint.max() - se.min()),
        ("the largest error", lambda joint, se: joint.max() - se.max()),
    ],
)
def test_a_rule_by_another_error_is_not_right(names, over):
    verdict = check(
        "11.3", lambda joint, se, cost: _cheapest(cost, joint >= over(joint, se))
    )
    assert verdict.status in ("mistake", "wrong"), names
    assert "two" not in verdict.text


def _cheapest(cost: np.ndarray, kept: np.ndarray) -> int:
    return int(np.where(kept, cost, np.inf).argmin())


def test_a_difference_says_whose():
    text = check("11.1", lambda cost, *_: int(cost.argmin())).text
    assert re.search(r"the first for made-up person \d+\.", text)


def test_names_may_be_written_in_other_ways():
    for answer in ("Income, savings", ["savings", "income"], {"income ": 1, "Savings": 2}):
        assert check("01.2", answer).status == "right", answer


def in_lists(rows: torch.Tensor) -> Any:
    """Return nested lists that end in tensors without a shape, or such a tensor."""
    return [in_lists(row) for row in rows] if rows.ndim else rows


@of_keys
def test_numbers_may_come_in_other_kinds(number):
    asked = key_of(number)
    if asked.of or isinstance(asked.truth, (str, frozenset)):
        return  # no numbers, or a function that is asked for
    truth = np.asarray(asked.truth, float)
    tensor = torch.from_numpy(truth)
    learned = tensor.clone().requires_grad_() * 1
    kinds = {
        "a tensor": tensor,
        "with gradients": learned,
        "in lists, with gradients": in_lists(learned),
        "sparse": tensor.to_sparse(),
        "numpy's": truth[()],
        "a tuple of numpy's": tuple(np.atleast_1d(truth)),
    }
    for kind, answer in kinds.items():
        assert check(number, answer).status == "right", kind
    assert check(number, in_lists(2 * learned + 1)).status in ("mistake", "wrong")


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.int8, torch.bool])
def test_numbers_that_numpy_does_not_know(kind):
    answer = torch.tensor([1.0, 0.0]).to(kind)
    asked = Key(np.array([1.0, 0.0]), "They are.")
    for values in (answer, list(answer), [answer[0], np.float32(0)], answer.to_sparse()):
        np.testing.assert_array_equal(_read(values, asked), asked.truth)


def test_a_number_that_is_no_exercise():
    with pytest.raises(ValueError, match=r"no checked exercise '01\.77'"):
        check("01.77", 1)
    with pytest.raises(ValueError, match="no checked exercises: expected the"):
        check("77.1", 1)


def test_one_key_an_exercise():
    number = NUMBERS[0]
    with pytest.raises(ValueError, match="two keys"):
        key(number)(lambda: None)


def test_a_solution_without_an_end():
    with pytest.raises(ValueError, match="# end"):
        make.blanked("# solution: a = ...\na = 1")
