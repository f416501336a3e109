"""Write what the page needs of the models, as page/model.json.

The page computes for itself: the classifier, the flow, the true
equations and the searches are written again in page/model.js. Their
numbers come from here, so that no number is typed twice.

Numbers of the classifier and the flow are those of the models, to the
bit (float32, base64). The networks of iCARMA are the largest part;
theirs are rounded to 24 bits, which moves a recommended value by less
than 1e-5. `tests/test_page.py` compares both with Python.

Run from the root of the repository: .venv/bin/python page/export.py
"""

import lib.reproducible  # one thread, deterministic algorithms

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor

from lib.io import MODELS
from lib.method import grid, loan
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma
from lib.method.maps import LOG_LEAST
from lib.method.preferences import IMPOSSIBLE, WORDS
from lib.method.problem import ROUNDING, Problem
from lib.paper import designs, stacks, tables
from lib.search import descent
from lib.search.sets import sets_of

PAGE = Path(__file__).resolve().parent / "model.json"
READ = ("loan_classifier", "loan_flow", "loan_icarma_score")  # models, by name
PROFILE = "linear"  # of the network, and of the weights in the searches
N_APPLICANTS = 201  # that a reader can be: the first applicant, then refused test people
N_VALUES = 25  # of each feature on the grid [P]
N_SCOUTS, N_STEPS = 64, 10  # of the search over all values
PLACES = torch.linspace(0, 1, 101, dtype=torch.float64)  # in hundredths of the people
SEED = 0  # of the scouts, and of preferences by which the network is chosen


def fingerprints() -> dict[str, str]:
    """Return a digest of each model file that the page is made of, by name.

    Example:
        >>> list(fingerprints())
        ['loan_classifier', 'loan_flow', 'loan_icarma_score']
    """
    found = {}
    for name in READ:
        contents = (MODELS / f"{name}.safetensors").read_bytes()
        found[name] = hashlib.sha256(contents).hexdigest()[:16]
    return found


def chosen(problem: Problem) -> ICarma:
    """Return the network that the page shows: one member, in a stack of its own.

    Of the members that were trained for scores with the profile of
    the page, it is the `tables.best_member` for refused validation
    people, whose scores are drawn as in training.

    Example:
        >>> chosen(loan.problem()).n_members
        1
    """
    stack = ICarma.load(MODELS, "loan_icarma_score", problem)
    stack = stacks.by_profile(stack)[PROFILE]
    x = problem.refused("validation")
    drawn = designs.soft_preferences(problem, "score", len(x), SEED)
    own = {stacks.MIXED: drawn[stacks.MIXED]}
    judged = tables.evaluate(problem, stack, x, own)
    return stack.select([stack.position(tables.best_member(judged, stacks.MIXED))])


def data() -> dict[str, Any]:
    """Return everything that the page needs, as JSON can hold it.

    Example:
        >>> sorted(data())[:3]
        ['applicants', 'classifier', 'directions']
    """
    problem = loan.problem()
    population, network = problem.population, chosen(problem)
    columns, actionable = population.actionable_index, population.actionable
    people = population.x["recourse/train"]
    grids = grid.grids(problem, N_VALUES)
    first = loan.first_applicant(population, problem.classifier)
    sobol = qmc.Sobol(len(columns) + 1, rng=np.random.default_rng(SEED))
    return {
        "fingerprints": fingerprints(),
        "population": {
            "features": list(population.features),
            "kinds": list(population.kinds.values()),
            "parents": population.graph.parent_index,
            "order": population.graph.order,
            "blocks": population.graph.blocks(columns),
            "mean": population.mean.tolist(),
            "std": population.std.tolist(),
            "low": population.low.tolist(),
            "high": population.high.tolist(),
        },
        "classifier": _classifier(problem.classifier),
        "flow": _flow(problem.flow),
        "icarma": _icarma(network),
        "words": [*WORDS, IMPOSSIBLE[0]],
        "grid": [grids[j].tolist() for j in columns],
        "walk": {
            "sets": sets_of(len(columns)).int().tolist(),
            "scouts": sobol.random(N_SCOUTS).tolist(),
            "n_steps": N_STEPS,
            "sure": ROUNDING,
            "missing": descent.MISSING,
            "tiny": descent.TINY,
            "least_weight": descent.LEAST_WEIGHT,
        },
        "directions": [loan.LIMITS[name].removeprefix("only ") for name in actionable],
        "quantiles": _exact(torch.quantile(people.double(), PLACES, dim=0).T.float()),
        "applicants": _exact(torch.cat([first, problem.refused("test")])[:N_APPLICANTS]),
    }


def _exact(values: Tensor) -> dict[str, Any]:
    """Return a tensor of float32 as text, to the bit."""
    raw = values.detach().numpy().astype("<f4").tobytes()
    return {"shape": list(values.shape), "f32": base64.b64encode(raw).decode()}


def _rounded(values: Tensor) -> dict[str, Any]:
    """Return a tensor as text, in whole multiples of a step, three bytes each."""
    exact = values.detach().double().numpy()
    step = float(np.abs(exact).max() / (2**23 - 1))
    whole = np.round(exact / step).astype("<i4")
    raw = whole.reshape(-1, 1).view(np.uint8)[:, :3].tobytes()
    encoded = base64.b64encode(raw).decode()
    return {"shape": list(values.shape), "i24": encoded, "step": step}


def _layers(
    weights: Mapping[str, Tensor], start: str, n_layers: int, encode: Any = _exact
) -> list[dict[str, Any]]:
    """Return the layers of a network, each with its weight (in, out) and bias (out,)."""
    return [
        {part: encode(weights[f"{start}{part}_{i}"]) for part in ("weight", "bias")}
        for i in range(n_layers)
    ]


def _classifier(h: Classifier) -> list[dict[str, Any]]:
    """Return the layers of the classifier."""
    if not isinstance(h, NetworkClassifier):
        raise ValueError(f"The page knows a NetworkClassifier, got {type(h).__name__}.")
    layers = zip(h.weights, h.biases, strict=True)
    return [{"weight": _exact(w), "bias": _exact(b)} for w, b in layers]


def _flow(flow: CausalFlow) -> dict[str, Any]:
    """Return the flow: of each feature its raw parameters, or the layers behind them."""
    if flow.settings["n_bins"] or flow.settings["activation"] != "elu":
        raise ValueError(f"The page knows affine flows with ELU, got {flow.settings}.")
    n_layers = len(flow.settings["hidden"]) + 1
    features = [
        {"layers": _layers(flow.weights, f"{name}.", n_layers)}
        if causes
        else {"raw": flow.weights[f"{name}.raw"].tolist()}
        for name, causes in flow.graph.parents.items()
    ]
    return {"log_least": LOG_LEAST, "features": features}


def _icarma(network: ICarma) -> dict[str, Any]:
    """Return the mask and the action network of a stack of one member."""
    weights = {name: weight.squeeze(0) for name, weight in network.weights.items()}
    for name in [name for name in weights if "bias" in name]:
        weights[name] = weights[name].squeeze(0)
    return {
        "member": network.ids[0],
        "seed": network.seeds[0],
        "profile": asdict(network.settings[0].profile),
        "mask": _layers(weights, "mask_", 3, _rounded),
        "action": _layers(weights, "action_", 3, _rounded),
    }


def text() -> str:
    """Return `data` as the page's file holds it.

    Example:
        >>> text()[0]
        '{'
    """
    return json.dumps(data(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    print(f"{PAGE.name}: {PAGE.stat().st_size / 1000:.0f} kB")
