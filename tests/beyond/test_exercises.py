"""Files are in step, solutions right, blanks empty; every hint is reached."""

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.formatters import PlainTextFormatter

from exercises import make
from exercises.checking import (
    Key,
    Verdict,
    check,
    judged,
    key,
    keys,
    read,
    source_of,
)
from lib.io import ROOT

SOLUTIONS = sorted(make.SOLUTIONS.glob("*.ipynb"))
HEADING = re.compile(r"^## (\w+\.\d+) ", re.MULTILINE)
CALL = re.compile(r'^check\("([^"]+)", ', re.MULTILINE)
NUMBERS = list(keys())
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


def numbers_of(path: Path) -> list[str]:
    return [n for n in NUMBERS if n.split(".")[0] == path.name.split("_")[0]]


def read_notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_every_notebook_has_exercises():
    names = {path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")}
    assert names == {path.name for path in SOLUTIONS}
    assert {path.name for path in (ROOT / "exercises").glob("*.ipynb")} == names


def test_what_is_made_from_the_solutions_is_in_step():
    stale = [p.name for p, text in make.made().items() if p.read_text() != text]
    assert not stale, f"{stale} differ from exercises/solutions: exercises/make.py."


@of_files
def test_three_or_four_exercises_with_a_key_and_a_check_each(path):
    solutions = read_notebook(path)
    text = "\n".join(cell.source for cell in solutions.cells)
    numbers = HEADING.findall(text)
    assert 3 <= len(numbers) <= 4
    assert numbers == CALL.findall(text) == numbers_of(path)


@of_files
def test_solutions_are_right_and_say_again_what_is_committed(path):
    solutions, stored = read_notebook(path), {}

    def checked(number: str, answer: Any, names: dict[str, Any]) -> Verdict:
        stored[number] = make.stored(number, answer, names)
        return check(number, answer)

    values = make.run(solutions, checked)
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
    assert statuses == ["right"] * len(numbers_of(path))
    for number, fields in stored.items():
        assert_near(fields, json.loads(make.ANSWERS.read_text())[number], number)


def assert_near(made: Any, stored: Any, number: str) -> None:
    """Compare keys: texts are equal, numbers to their last stored digits."""
    assert isinstance(stored, type(made)) or isinstance(made, int | float), number
    if isinstance(made, dict):
        assert list(made) == list(stored), number
        made, stored = list(made.values()), list(stored.values())
    if isinstance(made, list):
        assert len(made) == len(stored), number
        for one, other in zip(made, stored, strict=True):
            assert_near(one, other, number)
    elif isinstance(made, str):
        assert made == stored, number
    else:
        assert made == pytest.approx(stored, rel=1e-4, abs=1e-6), number


@of_files
def test_blanks_are_not_answered_yet(path):
    blank = read_notebook(ROOT / "exercises" / path.name)
    values = make.run(blank, lambda number, answer, _: check(number, answer))
    verdicts = [value for value in values if isinstance(value, Verdict)]
    assert len(verdicts) == len(numbers_of(path))
    assert {verdict.text for verdict in verdicts} == {"Not answered yet."}


def wrong_answers(asked: Key) -> list[tuple[Any, str]]:
    """Return each wrong answer that has a hint, and those with a mistake in each place."""
    wrong = list(asked.mistakes)
    if isinstance(asked.truth, list) and isinstance(asked.truth[0], str):
        return [(set(asked.truth) ^ {name}, hint) for name, hint in wrong]
    for place, pairs in enumerate(asked.places):
        for value, hint in pairs:
            wrong.append(([*asked.truth[:place], value, *asked.truth[place + 1 :]], hint))
    if asked.places:
        firsts = zip(*(pairs[0] for pairs in asked.places if pairs), strict=True)
        values, hints = map(list, firsts)
        for place, pairs in enumerate(asked.places):
            if not pairs:
                values.insert(place, asked.truth[place])
        wrong.append((values, " ".join(dict.fromkeys(hints))))
    return wrong


@of_keys
def test_the_truth_is_right_and_every_hint_is_reached(number):
    asked = keys()[number]
    assert judged(asked.truth, asked) == Verdict("right", f"Right. {asked.because}")
    assert wrong_answers(asked)
    for wrong, hint in wrong_answers(asked):
        assert judged(wrong, asked) == Verdict("mistake", f"Not yet. {hint}")


@of_keys
def test_a_share_in_percent_is_recognised_alone_and_with_another_mistake(number):
    asked = keys()[number]
    if asked.is_share:
        assert "no percent" in judged(100 * asked.truth, asked).text
        for wrong, _ in asked.mistakes:
            if 0.02 < wrong < 1 and judged(100 * wrong, asked).text.count("."):
                assert judged(100 * wrong, asked).status == "mistake"


def test_two_mistakes_are_both_named():
    assert "set" in check("01.2", {"education", "income"}).text
    assert "what follows from what follows" in check("01.2", {"education", "income"}).text
    text = check(
        "13.2", lambda before, after, may: (before != after).any(axis=1).sum()
    ).text
    assert "closed to them" in text and "how many people" in text


@of_keys
def test_no_answer_crashes(number):
    for answer in ODD:
        assert check(number, answer).status != "not answered yet"
    for answer in (None, ...):
        assert check(number, answer).text == "Not answered yet."


@pytest.mark.parametrize("number", [n for n in NUMBERS if keys()[n].is_function])
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
    asked = keys()[number]
    if asked.is_function or isinstance([asked.truth][0], str) or number == "01.2":
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
    asked = Key("They are.", truth=np.array([1.0, 0.0]))
    for values in (answer, list(answer), [answer[0], np.float32(0)], answer.to_sparse()):
        np.testing.assert_array_equal(read(values, asked), asked.truth)


def test_a_number_that_is_no_exercise():
    with pytest.raises(ValueError, match=r"no checked exercise '01\.77'"):
        check("01.77", 1)


def test_one_key_an_exercise():
    source_of(NUMBERS[0])
    with pytest.raises(ValueError, match="two keys"):
        key(NUMBERS[0])(lambda: None)


def test_a_wrong_answer_that_is_right(monkeypatch):
    asked = Key("", [(2.0, "Not 2.")])
    monkeypatch.setattr(make, "source_of", lambda number: (lambda: asked, ()))
    with pytest.raises(ValueError, match="neither the right one"):
        make.stored("99.1", 2.0, {})


def test_a_solution_without_an_end():
    with pytest.raises(ValueError, match="# end"):
        make.blanked("# solution: a = ...\na = 1")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is missing")
def test_the_book_says_the_same(tmp_path):
    """The script of the book, on each wrong answer as a reader would type it."""
    said, asked_for = [], []
    for number, asked in keys().items():
        if asked.is_function:
            continue
        for answer, _ in [(asked.truth, ""), *wrong_answers(asked)]:
            flat = np.ravel(sorted(answer) if isinstance(answer, set) else answer)
            typed = flat if flat.dtype.kind == "U" else flat.astype(float)
            asked_for.append([number, ", ".join(map(str, typed.tolist()))])
            said.append(judged(answer, asked).text)
    script = (ROOT / "docs" / "book" / "static" / "check.js").read_text()
    script += f"""
    const ANSWERS = {make.ANSWERS.read_text()};
    const asked = {json.dumps(asked_for)};
    const said = asked.map(([number, answer]) => judged(answer, ANSWERS[number]));
    process.stdout.write(JSON.stringify(said));"""
    (tmp_path / "book.js").write_text(script)
    result = subprocess.run(
        ["node", tmp_path / "book.js"], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == said
