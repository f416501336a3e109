"""How far a long fit is, kept in a file, so that a kill loses seconds and not the fit.

A fit hands over what changes while it runs: tensors, generators, rows
of results. From time to time, and at its end, they are written to a
safetensors file in one step. Started again with the same inputs, in
this process or another, the fit goes on from there and ends with the
same bits; with other inputs it refuses. The folder is the caller's,
who removes it once the model is saved: until then, a fit that had
ended is not repeated either.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.base import checks, files, rooms
from lib.base.arithmetic import SGD, Adam, RMSprop
from lib.base.files import parsed

FORMAT = 1  # of the file; raise it when the meaning of what is in it changes
EVERY = 10.0  # seconds between two writes, at least


class OtherInputs(ValueError):
    """A checkpoint is of a fit with other inputs; the message says which differ.

    Example:
        >>> issubclass(OtherInputs, ValueError)
        True
    """


@dataclass(frozen=True)
class Live:
    """Hold what changes while a fit runs; all of it is restored in place.

    Arguments:
        tensors: By name: weights, moments, losses. An array of numpy
            shares its memory with `torch.from_numpy` of it.
        rngs: Generators that the steps draw from.
        rows: Results of steps, as JSON can hold them.
    Example:
        >>> Live({"w": torch.zeros(2)}).rows
        []
    """

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    rngs: Sequence[np.random.Generator] = ()
    rows: list[Any] = field(default_factory=list)


def steps(
    n_steps: int,
    live: Live,
    inputs: Callable[[], Mapping[str, Any]],
    folder: Path | None,
    name: str,
    progress: Callable[[range], Iterable[int]] = iter,
    every: float = EVERY,
) -> Iterator[int]:
    """Yield the number of each step that is left, and keep what was done so far.

    What is kept after a step must be all that the next ones depend
    on, beside the inputs.

    Arguments:
        n_steps: In all.
        live: As it is before the first step.
        inputs: Gives what the fit depends on, by name: tensors,
            bytes, and what JSON can hold. It is asked only if there
            is a folder. The number of steps, `code`, and the versions
            of torch and numpy are added here.
        folder: For the file; None: nothing is kept.
        name: Of the file, without the ending.
        progress: Wraps the range of the steps that are left.
        every: Seconds after which a step is followed by a write.
    Raises: OtherInputs: the file is of other inputs. ValueError: it
        is damaged. OSError: it can't be written.

    Example:
        A sum that is interrupted after two of four steps, and goes on:
        >>> folder = Path(tempfile.mkdtemp())
        >>> def add_up(stop=None):
        ...     total, seen = torch.zeros(()), []
        ...     live = Live({"total": total}, rows=seen)
        ...     for i in steps(4, live, dict, folder, "sum", every=0.0):
        ...         if i == stop:
        ...             raise KeyboardInterrupt
        ...         total += i
        ...         seen.append(i)
        ...     return total.item(), seen
        >>> try:
        ...     add_up(stop=2)
        ... except KeyboardInterrupt:
        ...     print([path.name for path in folder.iterdir()])
        ['sum.safetensors']
        >>> add_up()
        (6.0, [0, 1, 2, 3])
    """
    if folder is None:
        yield from progress(range(n_steps))
        return
    made_of = _described({"steps": n_steps, **inputs(), **code(inputs)})
    path = folder / f"{name}{files.ENDING}"
    n_done = _restored(path, live, made_of) if path.exists() else 0
    written = time.monotonic()
    for step in progress(range(n_done, n_steps)):
        yield step
        if step + 1 == n_steps or time.monotonic() - written >= every:
            _keep(path, live, made_of, step + 1)
            written = time.monotonic()


def descend(
    what: str,
    descent: Adam | SGD | RMSprop,
    n_epochs: int,
    epoch: Callable[[int, Callable[[Tensor], None]], Mapping[str, float]],
    live: Live,
    inputs: Callable[[], Mapping[str, Any]] = dict,
    folder: Path | None = None,
    progress: Callable[[range], Iterable[int]] = iter,
    after: Callable[[int], None] | None = None,
    name: str | None = None,
) -> None:
    """Fit weights in place by descent, epoch by epoch: the one loop of every fit.

    Arguments:
        what: What is fitted, for messages.
        descent: Holds the weights.
        n_epochs: How many there are; where the descent has a
            schedule, its rate is lowered after each.
        epoch: Runs one. It gets its number, and a function that takes
            one step against a loss; it returns what has to be finite
            at the end, by name.
        live: What else the epochs change.
        inputs, folder, progress: As for `steps`.
        after: Called with the number of an epoch that ended well.
        name: Of the file in the folder; left out: as `what`.
    Raises: ValueError: the fit diverged; as `steps`.

    Example:
        The mean of three numbers, as what is least far from them:

        >>> x, mean = torch.tensor([1.0, 2.0, 6.0]), torch.zeros((), requires_grad=True)
        >>> def epoch(number, step):
        ...     loss = (x - mean).square().mean()
        ...     step(loss)
        ...     return {"loss": loss.item()}
        >>> descend("mean", SGD([mean], learning_rate=0.1), 50, epoch, Live())
        >>> round(mean.item(), 3)
        3.0
    """
    weights = {f"weight_{i}": weight for i, weight in enumerate(descent.weights)}
    every = Live({**weights, **descent.state, **live.tensors}, live.rngs, live.rows)

    def step(loss: Tensor) -> None:
        descent.step(torch.autograd.grad(loss, descent.weights))

    for number in steps(n_epochs, every, inputs, folder, name or what, progress):
        checks.converging(what, number, epoch(number, step))
        if isinstance(descent, Adam) and descent.n_decays:
            descent.decay()
        if after is not None:
            after(number)


def digest(inputs: Mapping[str, Any]) -> str:
    """Return a short text that differs where inputs do, as `steps` compares them.

    Example:
        >>> digest({"w": torch.zeros(2)}) == digest({"w": torch.zeros(3)})
        False
    """
    return _digest(json.dumps(_described(inputs), sort_keys=True).encode())


def _described(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs as JSON gives them back; tensors and bytes by their digest."""
    said = dict(given)
    for name, value in given.items():
        if isinstance(value, Tensor):
            said[name] = f"{tuple(value.shape)} {value.dtype} {_digest(_bytes(value))}"
        elif isinstance(value, bytes):
            said[name] = _digest(value)
    return _as_read(said)


def _bytes(tensor: Tensor) -> bytes:
    """Return the values of a tensor, in order."""
    return tensor.detach().contiguous().numpy().tobytes()


def _digest(content: bytes) -> str:
    """Return the first letters of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def _as_read(said: Any) -> Any:
    """Return what will be read again where this is written; ValueError if JSON can't."""
    try:
        return parsed(json.dumps(said))
    except TypeError as error:
        raise ValueError(f"JSON can't hold what is to be kept: {error}.") from error


def code(inputs: Callable[[], Mapping[str, Any]]) -> dict[str, str]:
    """Return what a fit computes with: its code, versions, the pins.

    Its code is the module in which its inputs are defined, and what
    of lib that imports, without docstrings and comments; all of lib
    if that module has no file, as a notebook's cells.

    Arguments:
        inputs: As for `steps`.
    Example:
        >>> list(code(dict))[:2]
        ['format of checkpoints', 'its code']
    """
    defined_in = getattr(inputs, "func", inputs).__module__  # func: of a partial
    return {
        "format of checkpoints": str(FORMAT),
        "its code": _code_of(defined_in),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "lib.pinned": "imported" if "lib.pinned" in sys.modules else "not imported",
    }


@cache
def _code_of(module: str) -> str:
    """Return the digest of a module and of what it imports, as when first asked."""
    program = getattr(sys.modules.get(module), "__file__", None)
    if program is None:
        return rooms.digest(*sorted((files.ROOT / "lib").rglob("*.py")))
    return rooms.digest(program, *rooms.imported_by(program))


def _keep(path: Path, live: Live, made_of: Mapping[str, Any], n_done: int) -> None:
    """Write how far a fit is, in one step."""
    state = {
        "inputs": made_of,
        "n_done": n_done,
        "rngs": [rng.bit_generator.state for rng in live.rngs],
        "rows": live.rows,
    }
    state = _as_read(state)
    sealed = {**state, "seal": _seal(live.tensors, state)}
    files.save(path.parent, path.stem, live.tensors, sealed, {})


def _seal(tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> str:
    """Return a digest of all that a checkpoint holds."""
    digests = {name: _digest(_bytes(tensor)) for name, tensor in tensors.items()}
    return _digest(json.dumps([digests, state], sort_keys=True).encode())


def _restored(path: Path, live: Live, made_of: Mapping[str, Any]) -> int:
    """Put what a file holds into what is live, and return how many steps were done."""
    way_out = f"Delete {path} to begin anew."
    tensors, header = files.read(path, way_out)
    try:
        state = dict(header["model"]["settings"])
        if state.pop("seal") != _seal(tensors, state):
            raise ValueError("it was changed after it was written")
        if not isinstance(state["inputs"], dict) or not isinstance(state["rows"], list):
            raise ValueError("its inputs or its rows are missing")
        if difference := _difference(state["inputs"], made_of):
            raise OtherInputs(
                f"{path} is how far a fit with other inputs got: {difference}. Give the "
                f"same inputs again. {way_out}"
            )
        (n_done,) = files.whole_numbers("n_done", [state["n_done"]])
        if n_done > made_of["steps"]:
            raise ValueError(f"{n_done} steps were done of {made_of['steps']}")
        _put(live, tensors, state)
    except OtherInputs:
        raise
    except (LookupError, TypeError, ArithmeticError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} holds nothing that this fit could go on from ({error}). {way_out}"
        ) from error
    return n_done


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return in which inputs two fits differ, in words; "" if in none."""
    old, new = dict(_leaves(there)), dict(_leaves(here))
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    said = [
        f"{name} is {old.get(name, 'nothing')} there, {new.get(name, 'nothing')} here"
        for name in names[:3]
    ]
    return "; ".join(said + [f"and {len(names) - 3} more"] * bool(names[3:]))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield what stands in nested lists and dictionaries, each with its path."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        yield name, repr(value)
        return
    for key, part in value.items():
        yield from _leaves(part, f"{name}.{key}" if name else str(key))


def _put(live: Live, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Put a checked state into what is live, in place.

    Values must be finite where a fit begins with finite ones.
    """
    names = live.tensors.keys() | tensors.keys()
    for name in sorted(names):
        own, saved = live.tensors[name].detach(), tensors[name]
        checked = saved if own.isfinite().all() else saved.nan_to_num()
        files.check_tensors({name: checked}, {name: own.shape}, [own.dtype])
        own.copy_(saved)
    for rng, saved_rng in zip(live.rngs, state["rngs"], strict=True):
        rng.bit_generator.state = saved_rng
    live.rows[:] = state["rows"]
