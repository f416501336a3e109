"""A fit that was interrupted ends with the same bits, in a new process too, or refuses."""

import lib.pinned

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lib.base import files, fits, rooms
from lib.base.fits import Live, OtherInputs
from lib.beyond.propose import propose, teaching
from lib.method import classifier, flow, icarma, loan, training
from lib.method.population import Population
from lib.method.problem import Problem
from lib.method.samplers import RankingSampler, ScoreSampler

Progress = Callable[[range], Iterable[int]]
Found = dict[str, Tensor]


# --- small fits of each kind; this file, run as a program, runs them all


@cache
def problem() -> Problem:
    population = loan.population(300, 400, 400, seed=1)
    h = classifier.NetworkClassifier.load(files.MODELS, "loan_classifier")
    density = flow.CausalFlow.load(files.MODELS, "loan_flow")
    return Problem(population, h, density)


def fit_classifier(
    folder: Path | None, progress: Progress, optimiser: str = "adam", **changes: Any
) -> Found:
    how = {"n_epochs": 5, "batch_size": 32, "optimiser": optimiser} | changes
    h, losses = classifier.fit(
        problem().population, progress=progress, checkpoint=folder, **how
    )
    by_layer = {f"layer {i}": w for i, w in enumerate([*h.weights, *h.biases])}
    return by_layer | {"losses": torch.from_numpy(losses)}


def fit_flow(
    folder: Path | None, progress: Progress, n_bins: int = 0, **changes: Any
) -> Found:
    population = problem().population
    x = population.x["flow/train"], population.x["flow/validation"]
    # few people and a high rate: the best epoch is not the last
    how = {"n_bins": n_bins, "n_epochs": 8, "batch_size": 10, "learning_rate": 0.1}
    fitted, history = flow.fit(
        population.graph, *x, progress=progress, checkpoint=folder, **(how | changes)
    )
    return fitted.weights | arrays(history)


def fit_networks(folder: Path | None, progress: Progress, **changes: Any) -> Found:
    """Two members with fixed weights, and after them one with CARMA's multiplier."""
    features = problem().population.actionable
    two = icarma.Settings(n_epochs=5, batch_size=32, hidden=8)
    one = icarma.Settings(n_epochs=4, batch_size=32, hidden=8, hinge=None)
    how = {
        "samplers": [RankingSampler(features), ScoreSampler.uniform(4, True)] * 2,
        "settings": [two, one, two, one],
        "seeds": [1, 2, 3, 4],
    }

    def after_epoch(epoch: int, stack: icarma.ICarma) -> np.ndarray | None:
        return np.array(stack.seeds) + epoch * np.pi if epoch % 2 else None

    stack, history = training.fit(
        problem(),
        **(how | changes),
        progress=progress,
        after_epoch=after_epoch,
        checkpoint=folder,
    )
    return dict(stack.weights) | arrays(history)


def search_lessons(folder: Path | None, progress: Progress, **changes: Any) -> Found:
    how = {"n_people": 4, "n_scouts": 4, "n_starts": 1, "seed": 3} | changes
    return vars(teaching.searched(problem(), progress=progress, checkpoint=folder, **how))


@cache
def lessons() -> teaching.Lessons:
    return teaching.searched(problem(), 10, n_scouts=8, n_starts=1)


def fit_proposer(folder: Path | None, progress: Progress, **changes: Any) -> Found:
    small = propose.Settings(n_epochs=5, batch_size=32, hidden=8)
    how = {"settings": small, "seed": 3, "lessons": lessons()} | changes
    fitted, history = teaching.fit(problem(), progress=progress, checkpoint=folder, **how)
    return dict(fitted.weights) | arrays(history)


FITS: dict[str, Callable[..., Found]] = {
    "classifier": fit_classifier,
    "classifier, plain descent": partial(fit_classifier, optimiser="sgd"),
    "flow": fit_flow,
    "flow of splines": partial(fit_flow, n_bins=4, n_epochs=5, batch_size=100),
    "networks": fit_networks,
    "lessons": search_lessons,
    "proposer": fit_proposer,
}
LAST = dict.fromkeys(FITS, 4) | {"flow": 7, "lessons": 3}  # steps


def arrays(history: dict[str, np.ndarray]) -> Found:
    """A history as tensors, beside weights of the same names."""
    return {f"history of {name}": torch.from_numpy(own) for name, own in history.items()}


def count(steps: range, seen: list[int]) -> Iterator[int]:
    """Note which steps are taken."""
    for step in steps:
        seen.append(step)
        yield step


def run_all(root: Path) -> None:
    """Run each fit with what it finds in its folder; save what comes out, and its steps."""
    for name, fit in FITS.items():
        seen: list[int] = []
        found = fit(root / name, partial(count, seen=seen))
        steps = {"steps": torch.tensor(seen)}
        save_file(
            {k: own.contiguous() for k, own in found.items()} | steps,
            root / f"{name}.safetensors",
        )


# --- the same bits


class Stop(Exception):
    """Stands for a kill."""


def stopped_before(step: int) -> Progress:
    def progress(steps: range) -> Iterator[int]:
        for i in steps:
            if i == step:
                raise Stop
            yield i

    return progress


@pytest.fixture
def each_step(monkeypatch):
    """Keep what is done after every step, however short."""
    monkeypatch.setattr(fits, "steps", partial(fits.steps, every=0.0))


def stopped(name: str, folder: Path, step: int) -> None:
    with pytest.raises(Stop):
        FITS[name](folder, stopped_before(step))


def test_stopped_fits_end_with_the_same_bits_in_a_new_process(tmp_path, each_step):
    """Each is stopped twice, here; its last step is taken elsewhere."""
    whole = {name: fit(None, iter) for name, fit in FITS.items()}
    for name in FITS:
        stopped(name, tmp_path / name, 1)
        stopped(name, tmp_path / name, LAST[name])
    subprocess.run([sys.executable, __file__, tmp_path], check=True, timeout=300)
    for name, expected in whole.items():
        found = load_file(tmp_path / f"{name}.safetensors")
        steps = found.pop("steps").tolist()
        # of networks the second group, too, was still to come
        others = [0, 1, 2, 3] if name == "networks" else []
        assert steps == [LAST[name], *others], name
        assert files.difference(found, expected) == "", name


def test_the_fits_here_do_what_may_be_lost():
    """Else the test above could not see it: multipliers, another best epoch, gaps."""
    assert fit_flow(None, iter)["history of validation"].argmax() < LAST["flow"]
    by_epoch = fit_networks(None, iter)["history of after_epoch"]
    assert by_epoch[0].tolist() == pytest.approx([s + np.pi for s in (1, 2, 3, 4)])
    assert by_epoch.isnan().any(1).tolist() == [False, True, False, True, True]
    assert not by_epoch[4, [0, 2]].isnan().any() and by_epoch[4, [1, 3]].isnan().all()
    hinge = fit_networks(None, iter)["history of hinge"]
    assert (hinge[:4, [1, 3]] > 0).all()


@pytest.mark.parametrize("name", FITS)
def test_an_ended_fit_is_not_repeated(name, tmp_path):
    first = FITS[name](tmp_path, iter)
    again = FITS[name](tmp_path, stopped_before(0))
    assert files.difference(again, first) == ""


def test_without_a_folder_nothing_is_written_and_no_input_is_looked_at(tmp_path):
    def inputs() -> dict[str, Any]:
        raise AssertionError("asked")

    assert list(fits.steps(3, Live(), inputs, None, "none")) == [0, 1, 2]


def test_a_write_follows_only_when_it_is_due(tmp_path, monkeypatch):
    clock, written = [0.0], []
    monkeypatch.setattr(fits.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(
        fits.files, "save", lambda *given: written.append(given[3]["n_done"])
    )
    for _ in fits.steps(10, Live(), dict, tmp_path, "slow", every=10.0):
        clock[0] += 4.0
    assert written == [3, 6, 9, 10]


# --- other inputs


def with_other(name: str) -> dict[str, Any]:
    """One argument of a fit that is another than before."""
    population: Population = problem().population
    features = population.actionable
    return {
        "classifier": {"batch_size": 16},
        "flow": {"hidden": (4,)},
        "networks": {"samplers": RankingSampler(features, n_actionable=2)},
        "lessons": {"seed": 4},
        "proposer": {"lessons": None},
    }[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("classifier", "batch_size is 32 there, 16 here"),
        ("flow", "hidden.0 is 8 there, 4 here"),
        ("networks", r"draws of sampler 0 is '\(\d+, 4\) torch.int64 \w{16}' there, "),
        ("lessons", r"people is .* there, .* here; .*seed is 3 there, 4 here"),
        ("proposer", r"order|people of lessons is '\(10,\) torch.int64 .* there, nothing"),
    ],
)
def test_a_checkpoint_of_other_inputs_is_refused(tmp_path, each_step, name, said):
    stopped(name, tmp_path, 2)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OtherInputs, match=f"with other inputs got: .*{said}") as error:
        FITS[name](tmp_path, iter, **with_other(name))
    (path,) = before
    assert str(error.value).startswith(str(path))
    assert str(error.value).endswith(f"Delete {path} to begin anew.")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_other_people_another_classifier_and_another_flow_are_refused(
    tmp_path, each_step, monkeypatch
):
    stopped("networks", tmp_path, 2)
    own = problem()
    h = own.classifier
    others = {
        "x": Problem(loan.population(300, 400, 400, seed=2), h, own.flow),
        "log-odds of x": Problem(
            own.population,
            classifier.NetworkClassifier(
                h.features, h.weights, [*h.biases[:2], h.biases[2] - 1e-6]
            ),
            own.flow,
        ),
        "weights of the flow": Problem(
            own.population,
            h,
            flow.CausalFlow(
                own.flow.graph,
                weights={k: w * 1.001 for k, w in own.flow.weights.items()},
                **own.flow.settings,
            ),
        ),
    }
    for what, other in others.items():
        monkeypatch.setitem(globals(), "problem", lambda other=other: other)
        with pytest.raises(OtherInputs, match=f"got: {what} is .* there, .* here"):
            FITS["networks"](tmp_path, iter)


def test_other_code_and_versions_are_refused(tmp_path, each_step, monkeypatch):
    stopped("classifier", tmp_path, 2)
    code = fits.code(dict)
    assert code["torch"] == torch.__version__ and code["lib.pinned"] == "imported"
    as_it_is = fits.code
    for key in code:
        other = {key: "x"}
        monkeypatch.setattr(
            fits, "code", lambda inputs, other=other: as_it_is(inputs) | other
        )
        with pytest.raises(OtherInputs, match=f"got: {key} is '.*' there, 'x' here"):
            FITS["classifier"](tmp_path, iter)


ROOMS = {
    "lib/__init__.py": "",
    "lib/fit.py": '"""A fit."""\n\nfrom lib import rates\n\ndef inputs():\n    return {}\n',
    "lib/rates.py": "RATE = 1  # a step\n",
    "lib/pictures.py": "INK = 1\n",
}
FIT = ROOMS["lib/fit.py"]


@pytest.fixture
def code_after(tmp_path, monkeypatch) -> Callable[..., str]:
    """Say what a fit of another lib computes with, after an edit of one of its rooms."""
    monkeypatch.setattr(fits.files, "ROOT", tmp_path)
    monkeypatch.setattr(
        fits.rooms, "imported_by", partial(rooms.imported_by, root=tmp_path)
    )
    monkeypatch.setattr(fits.rooms, "digest", partial(rooms.digest, root=tmp_path))

    def edited(room: str = "fit", text: str = FIT, module: str = "a_fit") -> str:
        for path, own in (ROOMS | {f"lib/{room}.py": text}).items():
            files.write(tmp_path / path, own)
        here = ModuleType("a_fit")
        here.__file__ = str(tmp_path / "lib" / "fit.py")
        monkeypatch.setitem(sys.modules, "a_fit", here)
        return fits._code_of.__wrapped__(module)

    return edited


@pytest.mark.parametrize(
    ("room", "text", "is_other"),
    [
        ("fit", FIT.replace("{}", "{1: 2}"), True),
        ("rates", "RATE = 2  # a step\n", True),
        ("fit", FIT.replace("A fit.", "The fit of all fits."), False),
        ("fit", FIT.replace("    return", '    """Say nothing."""\n    return'), False),
        ("fit", FIT.replace("{}\n", "{\n    }  # nothing\n"), False),
        ("rates", "# in all\nRATE = 1", False),
        ("pictures", "INK = 2\n", False),
    ],
)
def test_an_edit_of_what_a_fit_imports_is_other_code(code_after, room, text, is_other):
    """Not one of a docstring, a comment, the layout, or another room."""
    assert (code_after(room, text) != code_after()) is is_other


def test_a_fit_whose_file_is_not_known_computes_with_all_of_lib(code_after):
    """As one of a notebook's cell."""
    before = code_after(module="builtins")
    assert code_after("pictures", "INK = 2\n", module="builtins") != before
    assert code_after("pictures", "INK = 1  # blue\n", module="builtins") == before


def test_the_code_of_a_fit_is_that_of_the_room_of_its_inputs(monkeypatch):
    """Through a partial, too."""
    asked = []
    monkeypatch.setattr(fits, "_code_of", asked.append)
    fits.code(dict)
    fits.code(partial(flow.fit, None))
    fits.code(lambda: {})
    assert asked == ["builtins", "lib.method.flow", __name__]


# --- damaged files


def state_of(folder: Path) -> tuple[Path, Found, dict[str, Any]]:
    """The file of a stopped fit with two tensors, a generator and rows; and its parts."""
    with pytest.raises(Stop):
        toy(folder, stopped_before(2))
    (path,) = folder.iterdir()
    tensors, header = files.read(path)
    return path, tensors, header["model"]["settings"]


def toy(folder: Path, progress: Progress = iter) -> list[float]:
    """Return rows of a sum of random numbers; a gap is filled step by step."""
    rng, total = np.random.default_rng(0), torch.zeros(2)
    gaps = torch.full((4,), torch.nan)
    live = Live({"total": total, "gaps": gaps}, [rng])
    for i in fits.steps(4, live, dict, folder, "toy", progress, every=0.0):
        total += float(rng.random())
        gaps[i] = i
        live.rows.append([i, total[0].item()])
    return live.rows


def test_rows_and_generators_go_on(tmp_path):
    expected = toy(tmp_path / "whole")
    state_of(tmp_path / "stopped")
    assert toy(tmp_path / "stopped") == expected


TOO_LARGE = {"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}


def put(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return state | changes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t, s: (t, put(s, n_done=5)), "5 steps were done of 4"),
        (lambda t, s: (t, put(s, n_done=-1)), "n_done must be whole numbers"),
        (lambda t, s: (t, put(s, n_done=1.5)), "n_done must be whole numbers"),
        (lambda t, s: (t, put(s, rngs=[])), "argument"),
        (lambda t, s: (t, put(s, rngs=[{}])), r"go on from \("),
        (lambda t, s: (t, put(s, rngs=[TOO_LARGE])), r"go on from \("),
        (lambda t, s: (t, put(s, rows=3)), "its inputs or its rows are missing"),
        (lambda t, s: (t, put(s, inputs=[])), "its inputs or its rows are missing"),
        (lambda t, s: (t, {"rows": []}), "inputs"),
        (lambda t, s: ({"total": t["total"]}, s), "gaps"),
        (lambda t, s: (t | {"more": t["gaps"].clone()}, s), "more"),
        (lambda t, s: (t | {"total": torch.zeros(3)}, s), r"shape \(2,\), got \(3,\)"),
        (lambda t, s: (t | {"total": torch.zeros(1)}, s), r"shape \(2,\), got \(1,\)"),
        (lambda t, s: (t | {"total": t["total"].double()}, s), "of torch.float32, got"),
        (lambda t, s: (t | {"total": t["total"] * torch.nan}, s), "2 NaN or infinite"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, change, said):
    """Even with a seal of its own."""
    path, tensors, state = state_of(tmp_path)
    del state["seal"]
    tensors, state = change(tensors, state)
    state["seal"] = fits._seal(tensors, state)
    files.save(tmp_path, "toy", tensors, state, {})
    with pytest.raises(ValueError, match=said) as error:
        toy(tmp_path)
    assert str(error.value).startswith(f"{path} holds nothing that this fit could go on")
    assert str(error.value).endswith(f"Delete {path} to begin anew.")


@pytest.mark.parametrize("part", ["tensor", "state", "no seal"])
def test_a_file_that_was_changed_is_refused(tmp_path, part):
    _, tensors, state = state_of(tmp_path)
    if part == "tensor":
        tensors["total"] += 1
    if part == "state":
        state["rows"][0][1] += 1
    if part == "no seal":
        del state["seal"]
    files.save(tmp_path, "toy", tensors, state, {})
    with pytest.raises(ValueError, match=r"changed after it was written|seal"):
        toy(tmp_path)


def test_bytes_of_all_kinds_are_refused(tmp_path):
    path, _, _ = state_of(tmp_path)
    whole = path.read_bytes()
    deep = json.dumps({"__metadata__": {"model": "[" * 100_000 + "]" * 100_000}}).encode()
    for content in (
        b"",
        b"no checkpoint",
        whole[:-1],
        whole[:40],
        len(deep).to_bytes(8, "little") + deep,
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged or was not written") as error:
            toy(tmp_path)
        assert str(error.value).endswith(f"Delete {path} to begin anew.")


def test_what_json_cannot_hold_is_refused_before_a_file_is_written(tmp_path):
    for row in ({1, 2}, torch.nan):
        live = Live()
        one_step = fits.steps(1, live, dict, tmp_path, "odd")
        live.rows.extend([row] * (next(one_step) + 1))
        with pytest.raises(ValueError, match=r"JSON can't hold|holds NaN"):
            next(one_step)
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    run_all(Path(sys.argv[1]))
