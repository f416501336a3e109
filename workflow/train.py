"""Trains one stack of networks that notebook 05 reads: `python workflow/train.py SIZE NAME`, called by the Snakefile.

NAME is one of `lib.training.STACKS`; params/SIZE/networks.yaml says how many people, seeds and epochs, and where the
fitted classifier and flow lie. The stack is left beside them.
"""

import sys
import time

import lib  # noqa: F401  (before torch: it pins the arithmetic)

from lifeline import end_with_batch
from parameters import ROOT, read_network_parameters

from lib import classifier, flow, icarma, populations, progress, training
from lib.paths import inside
from lib.recourse import Problem


def train(size: str, name: str) -> None:
    """Nothing; writes runs/<size>/models/<name>.safetensors."""
    given = read_network_parameters(size)
    drawn = {key: given[key] for key in ("n_classifier", "n_flow", "n_recourse", "seed")}
    models = inside(given["models"])
    h = classifier.Classifier.load(models, "loan_classifier")
    problem = Problem(populations.loan(**drawn), h, flow.CausalFlow.load(models, "loan_flow"))
    seeds = [1000 * (i + 1) for i in range(given["n_seeds"])]
    members = training.STACKS[name](problem.population.actionable, seeds, given["n_epochs"][name])
    start = time.monotonic()
    print(f"{name}: {len(members[2])} networks", flush=True)
    stack, _ = icarma.fit(problem, *members, progress=progress.bar(name))
    stack.save(models, name, drawn)
    print(f"{name}: finished after {(time.monotonic() - start) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    end_with_batch()
    if len(sys.argv) != 3 or sys.argv[2] not in training.STACKS:
        sys.exit(f"usage: train.py SIZE NAME, where NAME is one of {', '.join(training.STACKS)}")
    size, name = sys.argv[1:]
    try:
        train(size, name)
    except Exception as error:  # said at the end of the batch, as of a failed notebook
        note = ROOT / "runs" / size / "failed" / f"{name}.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{name} failed\n  {type(error).__name__}: {error}\n", encoding="utf-8")
        sys.exit(f"{name}: failed")
