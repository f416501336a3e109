"""What a rival is asked, and how its answers are measured; needs numpy and pandas alone.

`benchmarks/rivals.py` leaves a folder for each problem: train.csv and people.csv in the
units of the data, low.csv and high.csv (between what each person may set each actionable
feature; equal: not at all), and task.json (names, the classifier's network). A program
`ask_*.py` beside this file runs in the rival's own environment and leaves profiles and
times there:

    python ask_dice-ml.py FOLDER METHOD SEED

Seconds are of processor time.
"""

import contextlib
import io
import json
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

Answer = Callable[[pd.Series], "pd.Series | None"]
Together = Callable[[pd.DataFrame], pd.DataFrame]
N_TIMED = 5  # people who are asked alone, where a method answers everybody at once
# of processor time, which other programs on the machine don't change
MOST_SECONDS = 300.0  # for all; a method that takes longer answers fewer people
PERSON_SECONDS = 60  # for one; whoever takes longer has no answer


class Task:
    """Hold one problem, as its folder has it.

    Attributes:
        train: People with known decisions, in the units of the data.
        people: Who asks; refused.
        low, high: What each of them may set each actionable feature
            to.
        features, actionable, whole: Names; of whole numbers.
        mean, std: Of each feature.
        layers: Weight (in, out) and bias of each layer of the classifier's
            ReLU network over standardised features; its output is in
            log-odds.
    """

    def __init__(self, folder: Path) -> None:
        entries = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        self.name = folder.name
        self.features, self.actionable = entries["features"], entries["actionable"]
        self.whole = entries["whole"]
        self.train = pd.read_csv(folder / "train.csv")
        self.people = pd.read_csv(folder / "people.csv", index_col=0)
        self.low = pd.read_csv(folder / "low.csv", index_col=0)
        self.high = pd.read_csv(folder / "high.csv", index_col=0)
        self.mean, self.std = (np.array(entries[name]) for name in ("mean", "std"))
        self.layers = [
            (np.array(weight), np.array(bias)) for weight, bias in entries["layers"]
        ]

    def probability(self, rows: "pd.DataFrame | np.ndarray") -> np.ndarray:
        """Return the probability of a positive decision, with shape (N,)."""
        values = rows[self.features] if isinstance(rows, pd.DataFrame) else rows
        out = (np.asarray(values, dtype=float) - self.mean) / self.std
        for i, (weight, bias) in enumerate(self.layers):
            out = (np.maximum(out, 0) if i else out) @ weight + bias
        return 1 / (1 + np.exp(-out[:, 0].clip(-60, 60)))

    def open_to(self, name: object) -> list[str]:
        """Return the features that a person may set to another value."""
        is_open = self.low.loc[name] < self.high.loc[name]
        return [feature for feature in self.actionable if is_open[feature]]


def torch_classifier(task: Task, low: np.ndarray, spread: np.ndarray) -> Any:
    """Return the classifier in torch, over features that are (x - low) / spread.

    Its output is the log-odds of a yes, with shape (N, 1).
    """
    import torch

    layers: list[torch.nn.Module] = []
    for i, (weight, bias) in enumerate(task.layers):
        if i == 0:  # what standardises goes into the first layer
            bias = bias + ((low - task.mean) / task.std) @ weight
            weight = weight * (spread / task.std)[:, None]
        layer = torch.nn.Linear(*weight.shape)
        layer.load_state_dict(
            {"weight": torch.tensor(weight.T).float(), "bias": torch.tensor(bias).float()}
        )
        layers += [layer, torch.nn.ReLU()]
    torch.set_num_threads(1)
    return torch.nn.Sequential(*layers[:-1])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Print nothing."""
    with (
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        yield


def peak_memory() -> float:
    """Return the most memory that this process has held, in MB.

    Linux's own count begins anew with a program; getrusage's goes on
    from whoever started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [row for row in status.read_text().splitlines() if "VmHWM" in row]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes more processor time; 0: never."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run(
    prepare: Callable[[Task, str, int], "Answer | Together"],
    at_once: bool = False,
) -> None:
    """Prepare, answer everybody, and save profiles and what it took.

    Arguments:
        prepare: From the task, the method and a seed to a function
            that answers one person, with a profile, or None where
            there is none. Columns "sets FEATURE" beside the features
            say what is acted on, where a method says so. A person for
            whom it raises an error gets nothing; how many do, and the
            first error, is saved.
        at_once: Whether the function answers a table of people, where
            a package does; seconds a person are then shared.
    """
    folder, method, seed = sys.argv[1:]
    task = Task(Path(folder))
    random.seed(int(seed))  # of packages that draw from here
    np.random.seed(int(seed))  # noqa: NPY002
    start = process_time()
    answer: Any = prepare(task, method, int(seed))
    prepared = process_time() - start
    errors: list[str] = []
    each = task.people.iloc[: N_TIMED if at_once else None]
    took, profiles = [], []
    for name, person in each.iterrows():
        asked = each.loc[[name]] if at_once else person
        start = process_time()
        try:
            with at_most(0 if at_once else PERSON_SECONDS):
                profile = answer(asked)
        except Exception as raised:
            if at_once:
                raise
            profile = None
            errors.append(f"{type(raised).__name__}: {raised}".split("\n")[0][:200])
        took.append(process_time() - start)
        profiles.append(pd.Series(dtype=float) if profile is None else profile)
        if sum(took) > MOST_SECONDS:
            break
    alone = shared = float(np.median(took))
    if at_once:
        start, table = process_time(), answer(task.people)
        shared = (process_time() - start) / len(table)
    else:
        table = pd.DataFrame(profiles, each.index[: len(profiles)])
        table = table.reindex(columns=task.features)
    stem = f"{folder}/{Path(sys.argv[0]).stem.removeprefix('ask_')}_{method}_{seed}"
    measured = {
        "prepare_s": prepared,
        "alone_s": alone,
        "person_s": shared,
        "memory_mb": peak_memory(),
        "errors": len(errors),
        "first_error": errors[0] if errors else "",
    }
    table.to_csv(f"{stem}.csv", index_label="person")
    Path(f"{stem}.json").write_text(json.dumps(measured, indent=1), encoding="utf-8")
