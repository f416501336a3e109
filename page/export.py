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

import lib.reproducible

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import qmc
from torch import Tensor, nn

from lib.io import MODELS
from lib.method import icarma, loan
from lib.method.classifier import Classifier, NetworkClassifier
from lib.method.flow import CausalFlow
from lib.method.icarma import ICarma, StackedMLP
from lib.method.preferences import IMPOSSIBLE, WORDS
from lib.method.problem import ROUNDING, Problem
from lib.paper import designs, readings, stacks, tables
from lib.search import descent, evaluator
from lib.search.sets import sets_of

PAGE = Path(__file__).resolve().parent / "model.json"
READ = ("loan_classifier", "loan_flow", "loan_icarma_score")  # models, by name
PROFILE = "linear"  # of the network, and of the weights in the searches
N_APPLICANTS = 201  # that a reader can be: the first applicant, then refused test people
N_VALUES = 25  # of each feature on the grid [P]
N_SCOUTS, N_STEPS = 64, 10  # of the search over all values
PLACES = torch.linspace(0, 1, 101, dtype=torch.float64)  # in hundredths of the people
SEED = 0  # of the scouts, and of preferences by which the network is chosen
MIN_SLOPE = 1e-3  # of zuko's affine transforms

Encode = Callable[[Tensor], dict[str, Any]]  # a tensor as JSON can hold it


def fingerprints() -> dict[str, str]:
    """Return a digest of each model file that the page is made of, by name.

    Example:
        >>> list(fingerprints())
        ['loan_classifier', 'loan_flow', 'loan_icarma_score']
    """
    digests = {}
    for name in READ:
        contents = (MODELS / f"{name}.safetensors").read_bytes()
        digests[name] = hashlib.sha256(contents).hexdigest()[:16]
    return digests


def member_shown(problem: Problem) -> ICarma:
    """Return the network that the page shows, an ensemble of one member.

    Of the members trained for scores, under the profile of the page,
    it is the `tables.best_member` for refused validation people,
    whose scores are drawn as in training.
    """
    ensemble = icarma.load_by_profile(MODELS, "loan_icarma_score", problem)[PROFILE]
    x = problem.refused("validation")
    drawn = designs.soft_preferences(problem, "score", len(x), SEED, ensemble.profile)
    drawn = {stacks.MIXED: drawn[stacks.MIXED]}
    people = tables.evaluate(problem, ensemble, x, drawn)
    return ensemble[tables.best_member(people, stacks.MIXED)]


def data() -> dict[str, Any]:
    """Return everything that the page needs, as JSON can hold it.

    Example:
        >>> sorted(data())[:3]
        ['applicants', 'classifier', 'directions']
    """
    problem = loan.problem()
    population = problem.population
    columns, actionable = population.actionable_index, population.actionable
    people = population.x["recourse/train"]
    first = loan.first_applicant(population, problem.classifier)
    half_width = readings.oracle(problem).half_width
    assert half_width is not None, "the oracle's grid is around a person"
    shares = torch.linspace(-half_width, half_width, N_VALUES)
    sobol = qmc.Sobol(len(columns) + 1, rng=np.random.default_rng(SEED))
    return {
        "fingerprints": fingerprints(),
        "population": {
            "features": list(population.features),
            "kinds": list(population.kinds.values()),
            "parents": population.graph.parent_index,
            "order": population.graph.order,
            "blocks": population.graph.components(columns),
            "mean": population.mean.tolist(),
            "std": population.std.tolist(),
            "low": population.low.tolist(),
            "high": population.high.tolist(),
        },
        "classifier": _classifier(problem.classifier),
        "flow": _flow(problem.flow),
        "icarma": _icarma(member_shown(problem)),
        "words": [*WORDS, IMPOSSIBLE[0]],
        # distances from a person's own value
        "grid": (shares * problem.range[columns, None]).tolist(),
        "walk": {
            "sets": sets_of(len(columns)).int().tolist(),
            "scouts": sobol.random(N_SCOUTS).tolist(),
            "n_steps": N_STEPS,
            "sure": ROUNDING,
            "missing": evaluator.PENALTY,
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
    layers: Iterable[tuple[Tensor, Tensor]], encode: Encode = _exact
) -> list[dict[str, Any]]:
    """Return the layers of a network, each with its weight (in, out) and bias (out,)."""
    return [{"weight": encode(weight), "bias": encode(bias)} for weight, bias in layers]


def _classifier(h: Classifier) -> list[dict[str, Any]]:
    """Return the layers of the classifier."""
    if not isinstance(h, NetworkClassifier):
        raise ValueError(f"The page knows a NetworkClassifier, got {type(h).__name__}.")
    linears = [layer for layer in h.network if isinstance(layer, nn.Linear)]
    return _layers((layer.weight.T, layer.bias) for layer in linears)


def _flow(flow: CausalFlow) -> dict[str, Any]:
    """Return the flow: of each feature its raw parameters, or the layers behind them."""
    how, networks = flow.settings, flow._feature_networks()
    is_deep = any(len(layers) > 2 for layers in networks)
    if how["n_bins"] or how["activation"] != "elu" or is_deep:
        raise ValueError(
            f"The page knows affine flows with ELU and one hidden layer, got {how}."
        )
    features = []
    for layers, causes in zip(networks, flow.graph.parents.values(), strict=True):
        if causes:
            features.append({"layers": _layers((w.T, bias) for w, bias in layers)})
        else:
            features.append({"raw": layers[-1][1].tolist()})
    return {"log_least": math.log(MIN_SLOPE), "features": features}


def _icarma(network: ICarma) -> dict[str, Any]:
    """Return the mask and the action network of one member."""
    if network.profile.gamma is None or network.profile.curve != "slope":
        raise ValueError(
            f"The page knows profiles of the curve slope, got {network.profile}."
        )
    return {
        "seed": network.seeds[0],
        "profile": asdict(network.profile),
        "mask": _layers(_of_member(network.mask), _rounded),
        "action": _layers(_of_member(network.action), _rounded),
    }


def _of_member(mlp: StackedMLP) -> Iterable[tuple[Tensor, Tensor]]:
    """Return the layers of networks that hold one member."""
    return zip(
        (weight.squeeze(0) for weight in mlp.weights),
        (bias.squeeze((0, 1)) for bias in mlp.biases),
        strict=True,
    )


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
