"""What can be imported from lib itself, and a problem made of a table in one call."""

import numpy as np
import pandas as pd
import pytest
import torch

import lib
from lib import io
from lib.method import classifier, flow
from lib.method.data import Population


def test_every_name_is_that_of_its_module():
    for name, module in lib._MODULES.items():
        public = getattr(lib, name)
        assert public.__name__ == name and public.__module__ == module
    with pytest.raises(AttributeError, match="no 'Gird'; it offers CausalFlow, Classifier"):
        _ = lib.Gird


def test_the_map_names_every_module_of_the_method():
    modules = {path.stem for path in (io.ROOT / "lib" / "method").glob("[a-z]*.py")}
    indented = [line.split() for line in lib.__doc__.splitlines() if line.startswith("  ")]
    listed = [words[0] for words in indented if words and words[0] in modules]
    assert set(listed) == modules and listed[0] == "graph" and listed[-1] == "loan"


def test_reproducible_sets_one_thread():
    import lib.reproducible

    assert torch.get_num_threads() == 1
    assert torch.are_deterministic_algorithms_enabled()
    assert lib.reproducible.VARIABLES["OMP_NUM_THREADS"] == "1"


def test_a_problem_of_a_table_is_that_of_its_parts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(3, 1, 200)})
    frame["savings"] = frame.income + rng.normal(0, 1, 200)
    frame["repaid"] = frame.savings + frame.income > 6
    kinds, edges = {"income": "mutable", "savings": "actionable"}, {"savings": ["income"]}
    how = {"seed": 3, "n_epochs": 4}
    problem = lib.Problem.from_frame(frame, "repaid", kinds, edges, name="my bank", **how)
    population = Population.from_frame(frame, "repaid", kinds, edges, seed=3)
    h, _ = classifier.fit(population, **how)
    x, x_validation = population.x["flow/train"], population.x["flow/validation"]
    density, _ = flow.fit(population.graph, x, x_validation, **how)
    assert problem.population.name == "my bank"
    assert problem.population.fingerprint == population.fingerprint
    test = population.x["recourse/test"]
    assert torch.equal(problem.classifier.logit(test), h.logit(test))
    assert torch.equal(problem.flow.log_prob(test), density.log_prob(test))
